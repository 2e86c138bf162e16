// synthesis_window.c - orders a window of an order anew, as well as can be.
//
// Idea: what stands before the window says when places are free and when results are there; what stands after it says
// how long the rest takes from each. In between, partial orders are made one item longer at a time, the items in the
// order of their beginnings. Two partial orders with the same items differ only in a few times, and one that is not
// later in any of them makes the other needless; so does a bound that is not below the time to beat. As long as no more
// partial orders remain than are kept, nothing is left out, and the best is the best there is.
#include "sched/synthesis.h"
#include <stdlib.h>

typedef struct {
  u64 hash;  // of the counts
  u64 bound; // no order that begins so ends earlier
  u64 now;   // the latest beginning: nothing begins earlier any more
  u64 after; // what the items so far make of the time of what stands after the window
  u64 idle;  // of all places, so far
  u32 parent, item;
  u16 *count;        // by part: how many began, from the first microbatch on
  u64 *clock, *live; // by place
  u64 *ready;        // by item of the window that did not run: when all is there that is made so far
} partial;

typedef struct {
  u64 bound, idle;
  u32 parent;
  u16 part;
} child;

typedef struct {
  synth *x;
  arena *a;
  u64 before; // the time to beat
  u32 n, width;
  u32 *off, *base, *to; // by part: its first item of the window; its first and last microbatch there
  u64 **tail;           // by part and microbatch - base: from its beginning to the end of all
  u64 *least_tail;      // by part: behind its last item of the window
  u64 *place_tail;      // by place: behind the window
  u64 *left;            // by place: work of the window (of a partial order, when it is looked at)
  u64 *est;             // by part: the earliest beginning of its next item
  u64 *salt;            // by part
} window;

// ---- before and after ---------------------------------------------------------------------------------
static void count_parts(window *w, const order_item *o, u32 from, u32 to) {
  synth *x = w->x;
  for (u32 i = 0; i < from; i++) w->base[o[i]]++;
  memcpy(w->to, w->base, x->nparts * sizeof *w->to);
  for (u32 i = from; i < to; i++) w->to[o[i]]++;
  for (u32 k = 0, n = 0; k < x->nparts; k++) {
    w->off[k] = n, n += w->to[k] - w->base[k];
    w->tail[k] = ZNEWN(w->a, u64, x->micro - w->base[k] + 1);
  }
}

// From the beginning of a part's item to the end of all, if nothing but what is known holds it up. Behind the window
// the order of every place is known: place_tail is what its next item takes.
static u64 tail_of(const window *w, u16 k, u32 m) {
  const synth *x = w->x;
  const part *p = &x->part[k];
  u64 t = m + 1 < x->micro ? w->tail[k][m + 1 - w->base[k]] : 0;
  for (u32 i = 0; i < p->nsucc; i++)
    t = MAX(t, p->succ[i].delay + w->tail[p->succ[i].part][m - w->base[p->succ[i].part]]);
  for (u32 i = 0; i < p->at->n; i++) t = MAX(t, w->place_tail[p->at->v[i]]);
  return t + p->dur;
}

static void set_tails(window *w, const order_item *o, u32 to) {
  const synth *x = w->x;
  u32 *next = NEWN(w->a, u32, x->nparts);
  for (u32 k = 0; k < x->nparts; k++) next[k] = x->micro;
  for (u32 i = x->n; i-- > to;) {
    const u32 m = --next[o[i]];
    const u64 t = tail_of(w, o[i], m);
    w->tail[o[i]][m - w->base[o[i]]] = t;
    for (u32 k = 0; k < x->part[o[i]].at->n; k++) w->place_tail[x->part[o[i]].at->v[k]] = t;
  }
  for (u32 k = x->nparts; k-- > 0;) // those that need it stand after it
    for (u32 m = w->to[k]; m-- > w->base[k];) w->tail[k][m - w->base[k]] = tail_of(w, (u16)k, m);
  for (u32 k = 0; k < x->nparts; k++)
    if (w->to[k] > w->base[k]) w->least_tail[k] = w->tail[k][w->to[k] - 1 - w->base[k]] - x->part[k].dur;
}

static partial *partial_new(const window *w) {
  partial *s = NEW(w->a, partial);
  s->count = ZNEWN(w->a, u16, w->x->nparts);
  s->clock = ZNEWN(w->a, u64, w->x->nplaces), s->live = ZNEWN(w->a, u64, w->x->nplaces);
  s->ready = ZNEWN(w->a, u64, w->n + 1);
  return s;
}

// Notes that an item ends: what needs it can begin then.
static void tell(const window *w, partial *s, u16 k, u32 m, u64 end) {
  const part *p = &w->x->part[k];
  for (u32 i = 0; i < p->nsucc; i++) {
    const u16 to = p->succ[i].part;
    const u64 at = end + p->succ[i].delay;
    if (m < w->base[to]) continue;
    if (m < w->to[to])
      s->ready[w->off[to] + m - w->base[to]] = MAX(s->ready[w->off[to] + m - w->base[to]], at);
    else
      s->after = MAX(s->after, at + w->tail[to][m - w->base[to]]);
  }
}

static partial *first_partial(const window *w, const order_item *o, u32 from, const u64 *begin) {
  const synth *x = w->x;
  partial *s = partial_new(w);
  for (u32 i = 0; i < from; i++) {
    const part *p = &x->part[o[i]];
    const u32 m = s->count[o[i]]++;
    const u64 end = begin[o[i] * x->micro + m] + p->dur;
    for (u32 k = 0; k < p->at->n; k++) {
      const u32 at = p->at->v[k];
      s->clock[at] = end, s->live[at] += p->takes, s->live[at] -= p->gives;
    }
    tell(w, s, o[i], m, end);
  }
  for (u32 k = 0; k < x->nplaces; k++) s->after = MAX(s->after, s->clock[k] + w->place_tail[k]);
  return s;
}

// ---- bounds -------------------------------------------------------------------------------------------
// When every part can begin its next item, and by that when all ends: by what its next items need, and by the work of
// its places.
static u64 bound_of(window *w, const partial *s) {
  const synth *x = w->x;
  u64 bound = s->after;
  u64 *const first = w->left + x->nplaces, *const last = first + x->nplaces;
  for (u32 p = 0; p < x->nplaces; p++) w->left[p] = 0, first[p] = last[p] = UINT64_MAX;
  for (u32 k = 0; k < x->nparts; k++) {
    const part *p = &x->part[k];
    const u32 m = s->count[k];
    if (m == w->to[k]) continue;
    u64 t = MAX(s->now, s->ready[w->off[k] + m - w->base[k]]);
    for (u32 i = 0; i < p->at->n; i++) t = MAX(t, s->clock[p->at->v[i]]);
    for (u32 i = 0; i < p->npred; i++) {
      const part_edge *e = &p->pred[i];
      if (s->count[e->part] == m && m < w->to[e->part])
        t = MAX(t, w->est[e->part] + x->part[e->part].dur + e->delay);
    }
    w->est[k] = t;
    bound = MAX(bound, t + w->tail[k][m - w->base[k]]);
    for (u32 i = 0; i < p->at->n; i++) {
      const u32 at = p->at->v[i];
      w->left[at] += p->dur * (w->to[k] - m);
      first[at] = MIN(first[at], t), last[at] = MIN(last[at], w->least_tail[k]);
    }
  }
  for (u32 p = 0; p < x->nplaces; p++)
    if (first[p] != UINT64_MAX) bound = MAX(bound, first[p] + w->left[p] + last[p]);
  return bound;
}

// ---- steps --------------------------------------------------------------------------------------------
// Can a part run its next item? Then when.
static bool can_begin(const window *w, const partial *s, u16 k, u64 *begin) {
  const part *p = &w->x->part[k];
  const u32 m = s->count[k];
  if (m == w->to[k]) return false;
  for (u32 i = 0; i < p->npred; i++)
    if (s->count[p->pred[i].part] <= m) return false;
  u64 t = MAX(s->now, s->ready[w->off[k] + m - w->base[k]]);
  for (u32 i = 0; i < p->at->n; i++) {
    const u32 at = p->at->v[i];
    if (p->takes && s->live[at] + p->takes > w->x->limit) return false;
    t = MAX(t, s->clock[at]);
  }
  *begin = t;
  return true;
}

static void copy_partial(const window *w, partial *to, const partial *from) {
  const partial own = *to;
  *to = *from;
  to->count = own.count, to->clock = own.clock, to->live = own.live, to->ready = own.ready;
  memcpy(to->count, from->count, w->x->nparts * sizeof *to->count);
  memcpy(to->clock, from->clock, w->x->nplaces * sizeof *to->clock);
  memcpy(to->live, from->live, w->x->nplaces * sizeof *to->live);
  memcpy(to->ready, from->ready, w->n * sizeof *to->ready);
}

static void advance(const window *w, partial *s, u16 k, u64 begin) {
  const part *p = &w->x->part[k];
  const u32 m = s->count[k]++;
  const u64 end = begin + p->dur;
  s->now = begin, s->hash += w->salt[k];
  for (u32 i = 0; i < p->at->n; i++) {
    const u32 at = p->at->v[i];
    s->idle += begin - s->clock[at];
    s->clock[at] = end, s->live[at] += p->takes, s->live[at] -= p->gives;
    s->after = MAX(s->after, end + w->place_tail[at]);
  }
  s->ready[w->off[k] + m - w->base[k]] = 0; // it ran: equal in all that have the same items
  tell(w, s, k, m, end);
}

// Is a never later than b? Times before those at which a place is free are as good as these.
static bool covers(const window *w, const partial *a, const partial *b) {
  const synth *x = w->x;
  if (a->hash != b->hash || a->after > b->after || a->now > b->now) return false;
  if (memcmp(a->count, b->count, x->nparts * sizeof *a->count)) return false;
  for (u32 p = 0; p < x->nplaces; p++)
    if (a->clock[p] > MAX(b->clock[p], b->now)) return false;
  for (u32 k = 0; k < x->nparts; k++) {
    const sched_places *at = x->part[k].at;
    for (u32 m = a->count[k]; m < w->to[k]; m++) {
      const u32 i = w->off[k] + m - w->base[k];
      if (!a->ready[i]) continue;
      u64 from = b->now;
      for (u32 q = 0; q < at->n; q++) from = MAX(from, b->clock[at->v[q]]);
      if (a->ready[i] > MAX(b->ready[i], from)) return false;
    }
  }
  return true;
}

static int by_bound(const void *a, const void *b) {
  const child *p = a, *q = b;
  if (p->bound != q->bound) return p->bound < q->bound ? -1 : 1;
  if (p->idle != q->idle) return p->idle < q->idle ? -1 : 1;
  if (p->parent != q->parent) return p->parent < q->parent ? -1 : 1;
  return (int)p->part - q->part;
}

typedef struct {
  u32 n;
  partial **v; // width of them
  hmap seen;
} level;

// The children of all partial orders whose bounds are below the time to beat.
static u32 children_of(window *w, const level *l, partial *try, child *out) {
  u32 n = 0;
  for (u32 i = 0; i < l->n; i++)
    for (u16 k = 0; k < w->x->nparts; k++) {
      u64 begin;
      if (!can_begin(w, l->v[i], k, &begin)) continue;
      copy_partial(w, try, l->v[i]);
      advance(w, try, k, begin);
      const u64 bound = MAX(l->v[i]->bound, bound_of(w, try));
      spend(w->x, w->n / 8 + 4 * w->x->nparts + 20);
      if (bound >= w->before) continue;
      if (w->x->part[k].takes) spend(w->x, w->x->nplaces * w->x->of->nstages);
      if (!w->x->part[k].takes || order_has_way_out(w->x, try->count))
        out[n++] = (child){bound, try->idle, i, k};
    }
  qsort(out, n, sizeof *out, by_bound);
  return n;
}

// Keeps the best of them that no other covers.
static void keep(window *w, const level *from, level *to, const child *v, u32 n, u16 *parts, u32 *parents,
                 bool *all) {
  arena *tmp = arena_new();
  to->n = 0, to->seen = (hmap){0};
  for (u32 i = 0; i < n; i++) {
    if (to->n == w->width) {
      *all = false;
      break;
    }
    partial *s = to->v[to->n];
    u64 begin;
    copy_partial(w, s, from->v[v[i].parent]);
    can_begin(w, s, v[i].part, &begin);
    advance(w, s, v[i].part, begin);
    s->bound = v[i].bound;
    bool covered = false;
    for (u32 it = 0, id; !covered && hmap_next(&to->seen, s->hash, &it, &id);)
      covered = covers(w, to->v[id], s);
    spend(w->x, w->n / 4 + 20);
    if (covered) continue;
    hmap_add(tmp, &to->seen, s->hash, to->n);
    parts[to->n] = v[i].part, parents[to->n] = v[i].parent;
    to->n++;
  }
  arena_free(tmp);
}

static void open_window(window *w, const order_item *o, u32 from, u32 to) {
  synth *x = w->x;
  arena *a = w->a;
  w->off = ZNEWN(a, u32, x->nparts), w->base = ZNEWN(a, u32, x->nparts), w->to = ZNEWN(a, u32, x->nparts);
  w->tail = NEWN(a, u64 *, x->nparts), w->least_tail = ZNEWN(a, u64, x->nparts);
  w->place_tail = ZNEWN(a, u64, x->nplaces), w->left = ZNEWN(a, u64, 3 * x->nplaces);
  w->est = ZNEWN(a, u64, x->nparts), w->salt = NEWN(a, u64, x->nparts);
  for (u32 k = 0; k < x->nparts; k++) w->salt[k] = hash_u64(k + 1, 7);
  count_parts(w, o, from, to);
  set_tails(w, o, to);
}

// The best of the last level, which stands first, from its last item back.
static void take(const window *w, u16 **parts, u32 **parents, order_item *o, u32 from) {
  for (u32 i = w->n, at = 0; i-- > 0; at = parents[i][at]) o[from + i] = parts[i][at];
}

bool window_search(synth *x, order_item *o, u32 from, u32 to, u64 before, u32 width, bool *all) {
  arena *a = arena_new();
  window w = {.x = x, .a = a, .before = before, .n = to - from, .width = width};
  open_window(&w, o, from, to);
  spend(x, 20 * x->n);
  u64 *begin = NEWN(a, u64, x->n);
  order_time(x, o, begin);
  u16 **parts = NEWN(a, u16 *, w.n);
  u32 **parents = NEWN(a, u32 *, w.n);
  level l[2] = {{.v = NEWN(a, partial *, width + 1)}, {.v = NEWN(a, partial *, width + 1)}};
  u32 made = 0; // partial orders that there is room for
  u32 room = x->nparts;
  child *v = NEWN(a, child, room);
  partial *try = partial_new(&w);
  l[0].v[0] = first_partial(&w, o, from, begin), l[0].n = 1;
  *all = true;
  u32 i = 0;
  for (; i < w.n && l[i % 2].n && x->steps; i++) {
    level *now = &l[i % 2], *next = &l[(i + 1) % 2];
    if (now->n * x->nparts > room) v = NEWN(a, child, room = 2 * now->n * x->nparts);
    const u32 n = children_of(&w, now, try, v), most = MIN(n, width);
    if (!made) l[1].v[0] = partial_new(&w), made = 1;
    for (; made < most + 1 && made < width; made++)
      l[0].v[made] = partial_new(&w), l[1].v[made] = partial_new(&w);
    parts[i] = NEWN(a, u16, most + 1), parents[i] = NEWN(a, u32, most + 1);
    keep(&w, now, next, v, n, parts[i], parents[i], all);
  }
  const bool found = i == w.n && l[i % 2].n;
  if (i < w.n && !x->steps) *all = false;
  if (found) take(&w, parts, parents, o, from);
  arena_free(a);
  return found;
}
