// pack.c - offsets for values that are alive for a time each.
//
// Idea: a value that is placed meets a new one if it is alive when that begins, or begins while that is alive. The
// first are found in a tree over moments, in whose nodes lie the values that are alive throughout; the second, in lists
// by the moment at which they begin.
#include "live/live.h"
#include <stdlib.h>

typedef struct {
  i64 at, end;
} extent;
typedef VEC(u32) numbers;
typedef struct {
  arena *a;
  const live_value *v;
  u32 moments, leaves; // leaves: of the tree, a power of two
  numbers *node;       // values that are alive in all moments of the node, and not in all of its parent's
  u32 *begun;          // by moment: value + 1 that was placed last of those that begin there
  u32 *before;         // by value: likewise, the one placed before it
  extent *place;       // by value
  VEC(extent) met;
} packing;

typedef struct {
  i64 bytes;
  u32 moments, k;
} ranked;

static i64 rounded(i64 bytes, i64 align) { return (bytes + align - 1) & -align; }

static int largest_first(const void *x, const void *y) { // then those that are alive longest
  const ranked *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  if (a->moments != b->moments) return a->moments > b->moments ? -1 : 1;
  return a->k < b->k ? -1 : a->k > b->k;
}

static int by_place(const void *x, const void *y) {
  const extent *a = x, *b = y;
  return a->at < b->at ? -1 : a->at > b->at;
}

// ---- who is alive together ----------------------------------------------------------------------------------
static void note(packing *p, u32 k) {
  const live_value *v = &p->v[k];
  u32 from = v->from + p->leaves, to = v->to + p->leaves;
  for (; from < to; from >>= 1, to >>= 1) {
    if (from & 1) {
      *vec_push(p->a, &p->node[from]) = k;
      from++;
    }
    if (to & 1) {
      to--;
      *vec_push(p->a, &p->node[to]) = k;
    }
  }
  p->before[k] = p->begun[v->from], p->begun[v->from] = k + 1;
}

static void meet(packing *p, u32 k) {
  const live_value *v = &p->v[k];
  p->met.n = 0;
  for (u32 at = v->from + p->leaves; at; at >>= 1)
    for (u32 j = 0; j < p->node[at].n; j++) *vec_push(p->a, &p->met) = p->place[p->node[at].v[j]];
  for (u32 t = v->from + 1; t < v->to; t++)
    for (u32 j = p->begun[t]; j; j = p->before[j - 1]) *vec_push(p->a, &p->met) = p->place[j - 1];
  if (p->met.n) qsort(p->met.v, p->met.n, sizeof *p->met.v, by_place);
}

// The smallest gap between what it meets that has room; above all of it if there is none.
static i64 find_gap(const packing *p, i64 bytes) {
  i64 best = -1, least = INT64_MAX, end = 0;
  for (u32 k = 0; k < p->met.n; k++) {
    const i64 gap = p->met.v[k].at - end;
    if (gap >= bytes && gap < least) best = end, least = gap;
    end = MAX(end, p->met.v[k].end);
  }
  return best < 0 ? end : best;
}

// ---- all of them ---------------------------------------------------------------------------------------------
i64 live_peak(arena *tmp, const live_value *v, u32 n, i64 align) {
  arena_mark_t mark = arena_mark(tmp);
  u32 moments = 0;
  for (u32 k = 0; k < n; k++) moments = MAX(moments, v[k].to);
  i64 *change = ZNEWN(tmp, i64, moments + 1), alive = 0, peak = 0;
  for (u32 k = 0; k < n; k++) {
    const i64 bytes = rounded(v[k].bytes, align);
    change[v[k].from] += bytes, change[v[k].to] -= bytes;
  }
  for (u32 t = 0; t < moments; t++) alive += change[t], peak = MAX(peak, alive);
  arena_release(tmp, mark);
  return peak;
}

live_packed live_pack(arena *tmp, const live_value *v, u32 n, i64 align, i64 *offset) {
  arena_mark_t mark = arena_mark(tmp);
  packing p = {.a = tmp, .v = v, .leaves = 1};
  i64 *bytes = NEWN(tmp, i64, n + 1);
  ranked *order = NEWN(tmp, ranked, n + 1);
  for (u32 k = 0; k < n; k++) {
    assert(v[k].bytes >= 0 && v[k].from < v[k].to);
    bytes[k] = rounded(v[k].bytes, align);
    order[k] = (ranked){bytes[k], v[k].to - v[k].from, k};
    p.moments = MAX(p.moments, v[k].to);
  }
  live_packed r = {.peak = live_peak(tmp, v, n, align)};
  while (p.leaves <= p.moments) p.leaves *= 2;
  p.node = ZNEWN(tmp, numbers, 2 * (size_t)p.leaves), p.begun = ZNEWN(tmp, u32, p.moments + 1);
  p.before = NEWN(tmp, u32, n + 1), p.place = NEWN(tmp, extent, n + 1);
  qsort(order, n, sizeof *order, largest_first);
  for (u32 i = 0; i < n; i++) {
    const u32 k = order[i].k;
    if (bytes[k]) meet(&p, k);
    offset[k] = bytes[k] ? find_gap(&p, bytes[k]) : 0;
    if (!bytes[k]) continue;
    p.place[k] = (extent){offset[k], offset[k] + bytes[k]};
    r.extent = MAX(r.extent, p.place[k].end);
    note(&p, k);
  }
  arena_release(tmp, mark);
  return r;
}
