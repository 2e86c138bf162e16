// synthesis_period.c - orders that repeat: every microbatch does the same as the one before, one period later.
//
// Idea: such an order is one time for every part. A place is busy at the same times of every period, so parts that share
// a place must not meet when their times are taken modulo the period. A branch and bound places one part after the
// other, at the earliest time, then at later ones that leave no gap that nothing fits into. The result is the steady
// state of a schedule; what is before and after it, windows improve.
//
// Parts on several places need a time that is free on all of these, and parts on one place that come first leave none.
// So such parts get their places in the period before all others, in some arrangements of them.
#include "sched/synthesis.h"
#include <stdlib.h>

enum {
  SUBSETS_OF = 5,
  NODES = 4000,         // of a search
  ARRANGEMENTS = 24,    // that are tried without a gap between parts on several places, and as many with one
  NODES_ARRANGED = 400, // of a search with an arrangement
  ARRANGED_MOST = 8,    // parts on several places
};
#define NOT_FIXED UINT64_MAX

typedef struct {
  u64 at, dur; // at: modulo the period
} busy;
typedef struct {
  synth *x;
  u64 period;
  u64 *begin, *best; // by part
  u64 span;          // of best; at first: what a span must be below
  u64 *tail;         // by part: from its beginning to the end of its microbatch, at least
  busy **busy;       // by place
  u32 *nbusy;
  u64 *fixed; // by part: where in the period it is, NOT_FIXED: anywhere
  u32 nodes;  // that may be tried still
} repeat;

static u64 span_of(const repeat *r) {
  u64 end = 0;
  for (u32 k = 0; k < r->x->nparts; k++) end = MAX(end, r->begin[k] + r->x->part[k].dur);
  return end;
}

// ---- places and memory --------------------------------------------------------------------------------
static u64 modulo_distance(u64 from, u64 to, u64 period) {
  return (to % period + period - from % period) % period;
}

static bool is_free(const repeat *r, const part *p, u64 at) {
  for (u32 i = 0; i < p->at->n && p->dur; i++) {
    const u32 place = p->at->v[i];
    for (u32 k = 0; k < r->nbusy[place]; k++) {
      const busy *b = &r->busy[place][k];
      if (modulo_distance(b->at, at, r->period) < b->dur || modulo_distance(at, b->at, r->period) < p->dur)
        return false;
    }
  }
  return true;
}

static void occupy(repeat *r, const part *p, u64 at) {
  for (u32 i = 0; i < p->at->n && p->dur; i++) {
    const u32 place = p->at->v[i];
    r->busy[place][r->nbusy[place]++] = (busy){at % r->period, p->dur};
  }
}

static void vacate(repeat *r, const part *p) {
  for (u32 i = 0; i < p->at->n && p->dur; i++) r->nbusy[p->at->v[i]]--;
}

// The longest time of a period in which a place runs nothing.
static u64 widest_gap(const repeat *r, u32 place) {
  u64 most = r->nbusy[place] ? 0 : r->period;
  for (u32 i = 0; i < r->nbusy[place]; i++) {
    const busy *b = &r->busy[place][i];
    u64 to = r->period;
    for (u32 k = 0; k < r->nbusy[place]; k++)
      if (k != i) to = MIN(to, modulo_distance(b->at, r->busy[place][k].at, r->period));
    most = MAX(most, to - b->dur);
  }
  return most;
}

static bool on_place(const part *p, u32 place) {
  for (u32 i = 0; i < p->at->n; i++)
    if (p->at->v[i] == place) return true;
  return false;
}

// Does the longest of the parts behind part k fit where its place runs nothing?
static bool leaves_room(const repeat *r, u32 k) {
  const synth *x = r->x;
  const part *p = &x->part[k];
  for (u32 i = 0; i < p->at->n; i++) {
    u64 most = 0;
    for (u32 y = k + 1; y < x->nparts; y++)
      if (r->fixed[y] == NOT_FIXED && on_place(&x->part[y], p->at->v[i])) most = MAX(most, x->part[y].dur);
    if (most > widest_gap(r, p->at->v[i])) return false;
  }
  return true;
}

// Microbatches of a stage that are alive when one begins at `when`.
static u64 alive(const repeat *r, u32 stage, u64 when) {
  const u16 f = r->x->forward[stage], e = r->x->release[stage];
  const u64 from = r->begin[f], to = r->begin[e] + r->x->part[e].dur;
  // Those that began, less those that ended: microbatch m is from `from` + m periods on. Far enough ahead that none of
  // the times is negative.
  const u64 t = when + (to / r->period + 1) * r->period;
  return (t - from) / r->period - (t >= to ? (t - to) / r->period + 1 : 0) + 1;
}

// Is there memory enough on a place, of the stages whose parts have a time (those before part `known`)?
static bool has_memory(const repeat *r, u32 place, u32 known) {
  const synth *x = r->x;
  for (u32 s = 0; s < x->of->nstages; s++) {
    const part *p = &x->part[x->forward[s]];
    if (!p->takes || x->release[s] >= known || !on_place(p, place)) continue;
    u64 live = 0;
    for (u32 y = 0; y < x->of->nstages; y++) {
      const part *q = &x->part[x->forward[y]];
      if (q->takes && x->release[y] < known && on_place(q, place))
        live += q->takes * alive(r, y, r->begin[x->forward[s]]);
    }
    if (live > x->limit) return false;
  }
  return true;
}

static bool memory_after(const repeat *r, u32 k) {
  const part *p = &r->x->part[k];
  bool ok = true;
  for (u32 i = 0; i < p->at->n && ok && p->gives && r->x->limit != SCHED_NO_LIMIT; i++)
    ok = has_memory(r, p->at->v[i], k + 1);
  return ok;
}

// ---- times that a part may have ------------------------------------------------------------------------
typedef struct {
  u32 n, cap;
  u64 *v;
} times;

static void add_time(repeat *r, times *t, const part *p, u64 ready, u64 at) {
  const u32 k = (u32)(p - r->x->part);
  const u64 when = ready + modulo_distance(ready, at, r->period);
  if (when + r->tail[k] >= r->span || (r->fixed[k] == NOT_FIXED && !is_free(r, p, when))) return;
  *vec_push(r->x->a, t) = when;
}

// Sums of what else the place must run: gaps of these lengths can be filled.
static u32 gaps(const repeat *r, u32 place, u32 k, u64 *sum) {
  u32 n = 1, of = 0;
  sum[0] = 0;
  for (u32 y = k + 1; y < r->x->nparts && of < SUBSETS_OF; y++) {
    if (!on_place(&r->x->part[y], place) || !r->x->part[y].dur || r->fixed[y] != NOT_FIXED) continue;
    for (u32 i = 0; i < n; i++) sum[n + i] = sum[i] + r->x->part[y].dur;
    n *= 2, of++;
  }
  return n;
}

static times times_of(repeat *r, u32 k, u64 ready) {
  const part *p = &r->x->part[k];
  times t = {0};
  u64 sum[1 << SUBSETS_OF];
  add_time(r, &t, p, ready, r->fixed[k] == NOT_FIXED ? ready : r->fixed[k]);
  if (r->fixed[k] != NOT_FIXED) return t;
  for (u32 i = 0; i < p->at->n; i++) {
    const u32 place = p->at->v[i], n = gaps(r, place, k, sum);
    for (u32 b = 0; b < r->nbusy[place]; b++)
      for (u32 g = 0; g < n; g++) {
        const busy *x = &r->busy[place][b];
        if (sum[g] + x->dur + p->dur > r->period) continue;
        add_time(r, &t, p, ready, x->at + x->dur + sum[g]);
        add_time(r, &t, p, ready, x->at + 2 * r->period - p->dur - sum[g]);
      }
  }
  if (t.n) qsort(t.v, t.n, sizeof *t.v, ascending_i64);
  return t;
}

// ---- the search ---------------------------------------------------------------------------------------
static void place_from(repeat *r, u32 k) {
  synth *x = r->x;
  if (k == x->nparts) {
    r->span = span_of(r);
    memcpy(r->best, r->begin, k * sizeof *r->best);
    return;
  }
  const part *p = &x->part[k];
  u64 ready = 0;
  for (u32 i = 0; i < p->npred; i++) {
    const part_edge *e = &p->pred[i];
    ready = MAX(ready, r->begin[e->part] + x->part[e->part].dur + e->delay);
  }
  arena_mark_t mark = arena_mark(x->a);
  const times t = times_of(r, k, ready);
  for (u32 i = 0; i < t.n && r->nodes; i++) {
    if ((i && t.v[i] == t.v[i - 1]) || t.v[i] + r->tail[k] >= r->span) continue;
    r->nodes--, spend(x, 20 * x->nparts);
    r->begin[k] = t.v[i];
    if (r->fixed[k] == NOT_FIXED) occupy(r, p, t.v[i]);
    if (leaves_room(r, k) && memory_after(r, k)) place_from(r, k + 1);
    if (r->fixed[k] == NOT_FIXED) vacate(r, p);
  }
  arena_release(x->a, mark);
}

// ---- parts on several places --------------------------------------------------------------------------
typedef struct {
  u32 n;
  u16 part[ARRANGED_MOST];
  u64 gap;        // that one of them is behind the one before it
  u32 gap_before; // that one, a number in the arrangement
  u32 left;       // arrangements that may be tried still
} arranged;

// Puts those that are not fixed one behind the other from `at` on, in every order.
static void arrange(repeat *r, arranged *w, u32 nth, u64 at) {
  if (nth == w->n && w->left) {
    w->left--, r->nodes = NODES_ARRANGED;
    place_from(r, 0);
    return;
  }
  if (nth == w->gap_before) at += w->gap;
  for (u32 i = 0; i < w->n && w->left && r->x->steps; i++) {
    const u16 k = w->part[i];
    const part *p = &r->x->part[k];
    if (r->fixed[k] != NOT_FIXED || !is_free(r, p, at)) continue;
    r->fixed[k] = at % r->period;
    occupy(r, p, at);
    arrange(r, w, nth + 1, at + p->dur);
    vacate(r, p), r->fixed[k] = NOT_FIXED;
    if (!nth) return; // the first one is where the period begins
  }
}

// The longest part of a kind on one place.
static u64 longest(const synth *x, bool forward) {
  u64 most = 0;
  for (u32 k = 0; k < x->nparts; k++)
    if (x->part[k].at->n == 1 && (x->part[k].kind == TASK_F) == forward) most = MAX(most, x->part[k].dur);
  return most;
}

static void place_arranged(repeat *r) {
  const synth *x = r->x;
  arranged w = {.left = ARRANGEMENTS, .gap_before = ARRANGED_MOST};
  for (u32 k = 0; k < x->nparts; k++) {
    if (x->part[k].at->n == 1 || !x->part[k].dur) continue;
    if (w.n == ARRANGED_MOST) return;
    w.part[w.n++] = (u16)k;
  }
  if (!w.n) return;
  arrange(r, &w, 0, 0);
  w.left = ARRANGEMENTS;
  for (u32 forward = 0; forward < 2; forward++)
    for (w.gap = longest(x, forward), w.gap_before = 1; w.gap && w.gap_before < w.n; w.gap_before++)
      arrange(r, &w, 0, 0);
}

// ---- the whole ----------------------------------------------------------------------------------------
typedef struct {
  u64 time;
  u32 mb;
  u16 part;
} task_at;

static int by_task(const void *a, const void *b) {
  const task_at *p = a, *q = b;
  if (p->time != q->time) return p->time < q->time ? -1 : 1;
  return p->mb != q->mb ? (p->mb < q->mb ? -1 : 1) : (int)p->part - q->part;
}

static order_item *unrolled(const repeat *r, arena *a) {
  const synth *x = r->x;
  order_item *o = NEWN(a, order_item, x->n);
  task_at *v = NEWN(x->a, task_at, x->n);
  for (u32 k = 0, n = 0; k < x->nparts; k++)
    for (u32 m = 0; m < x->micro; m++) v[n++] = (task_at){r->best[k] + m * r->period, m, (u16)k};
  qsort(v, x->n, sizeof *v, by_task);
  for (u32 i = 0; i < x->n; i++) o[i] = v[i].part;
  return o;
}

static void set_tails(repeat *r) {
  const synth *x = r->x;
  for (u32 k = x->nparts; k-- > 0;) {
    const part *p = &x->part[k];
    for (u32 i = 0; i < p->nsucc; i++)
      r->tail[k] = MAX(r->tail[k], p->succ[i].delay + r->tail[p->succ[i].part]);
    r->tail[k] += p->dur;
  }
}

order_item *period_search(synth *x, arena *a, u64 period, u64 best) {
  if (period * (x->micro - 1) >= best || !period) return NULL;
  arena_mark_t mark = arena_mark(x->a);
  const u64 above = best - period * (x->micro - 1);
  repeat r = {.x = x,
              .period = period,
              .begin = ZNEWN(x->a, u64, x->nparts),
              .best = NEWN(x->a, u64, x->nparts),
              .tail = ZNEWN(x->a, u64, x->nparts),
              .span = above,
              .busy = NEWN(x->a, busy *, x->nplaces),
              .nbusy = ZNEWN(x->a, u32, x->nplaces),
              .fixed = NEWN(x->a, u64, x->nparts),
              .nodes = NODES};
  for (u32 p = 0; p < x->nplaces; p++) r.busy[p] = NEWN(x->a, busy, x->nparts);
  for (u32 k = 0; k < x->nparts; k++) r.fixed[k] = NOT_FIXED;
  set_tails(&r);
  place_from(&r, 0);
  place_arranged(&r);
  order_item *o = r.span < above ? unrolled(&r, a) : NULL;
  arena_release(x->a, mark);
  return o && order_fits(x, o) ? o : NULL;
}

u64 period_least(const synth *x) {
  arena_mark_t mark = arena_mark(x->a);
  u64 *inside = NEWN(x->a, u64, x->of->nstages), least = 1;
  stages_inside(x, inside);
  for (u32 p = 0; p < x->nplaces; p++) {
    long double area = 0;
    for (u32 s = 0; s < x->of->nstages && x->limit != SCHED_NO_LIMIT && x->limit; s++)
      if (on_place(&x->part[x->forward[s]], p))
        area += (long double)x->part[x->forward[s]].takes * (long double)inside[s] / (long double)x->limit;
    least = MAX(least, MAX(x->work[p], (u64)area));
  }
  arena_release(x->a, mark);
  return least;
}
