// pack.c - offsets for values that are alive for a time each.
//
// Idea: a value that is placed meets a new one if it is alive when that begins, or begins while that is alive. The
// first are found in a tree over moments, in whose nodes lie the values that are alive throughout; the second, in lists
// by the moment at which they begin. No order of placing is best for all: a few are tried, each again with what stuck out
// above the peak placed first, until nothing does.
#include "live/live.h"
#include <stdlib.h>

typedef struct {
  i64 at, end;
  u32 from, to; // alive
} extent;
typedef VEC(u32) numbers;
typedef struct {
  arena *a;
  const live_value *v;
  u32 moments, leaves; // leaves: of the tree, a power of two
  i64 *bytes;          // of values, rounded up
  i64 peak, work;      // work: values that others have met
  numbers *node;       // values that are alive in all moments of the node, and not in all of its parent's
  u32 *begun;          // by moment: value + 1 that was placed last of those that begin there
  u32 *before;         // by value: likewise, the one placed before it
  extent *place;       // by value
  VEC(extent) met;
} packing;

// Which of the gaps that a value fits: the smallest; or the one at whose edge lies, for the longest time together, what is
// there already, so that gaps that open later are wide. Then the place is at that edge.
typedef enum { FIT_SMALLEST, FIT_CONTACT } fit;

typedef struct {
  i64 first, second; // larger ones first
  u32 moment, k;     // before these, smaller ones
} ranked;

static i64 rounded(i64 bytes, i64 align) { return (bytes + align - 1) & -align; }

static int in_order(const void *x, const void *y) {
  const ranked *a = x, *b = y;
  if (a->moment != b->moment) return a->moment < b->moment ? -1 : 1;
  if (a->first != b->first) return a->first > b->first ? -1 : 1;
  if (a->second != b->second) return a->second > b->second ? -1 : 1;
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

// ---- where there is room ------------------------------------------------------------------------------------
// The smallest gap between what it meets that has room; above all of it if there is none.
static i64 smallest_gap(const packing *p, i64 bytes) {
  i64 best = -1, least = INT64_MAX, end = 0;
  for (u32 k = 0; k < p->met.n; k++) {
    const i64 gap = p->met.v[k].at - end;
    if (gap >= bytes && gap < least) best = end, least = gap;
    end = MAX(end, p->met.v[k].end);
  }
  return best < 0 ? end : best;
}

static i64 together(const live_value *v, const extent *x) {
  return (i64)MIN(v->to, x->to) - (i64)MAX(v->from, x->from);
}

typedef struct {
  i64 at, contact, gap;
} edge;

// Of the gap from `low` to `high`, with contact at both: the better edge.
static void weigh(edge *best, i64 bytes, edge low, edge high) {
  const i64 gap = high.at - low.at;
  edge x = high.contact > low.contact ? (edge){high.at - bytes, high.contact, gap}
                                      : (edge){low.at, low.contact, gap};
  if (gap < bytes) return;
  if (gap == bytes) x.contact = low.contact + high.contact, x.at = low.at;
  if (x.contact > best->contact || (x.contact == best->contact && gap < best->gap)) *best = x;
}

// The bottom is there for ever, and so is the peak, above which nothing should lie; that counts half, so that what stays
// longest gathers below.
static i64 gap_of_contact(const packing *p, u32 k) {
  const live_value *v = &p->v[k];
  const i64 all = (i64)v->to - (i64)v->from;
  edge low = {0, all, 0}, best = {.at = -1, .contact = -1};
  for (u32 j = 0; j < p->met.n; j++) {
    const extent *x = &p->met.v[j];
    if (x->at > low.at) {
      edge high = {x->at, 0, 0};
      for (u32 q = j; q < p->met.n && p->met.v[q].at == x->at; q++) high.contact += together(v, &p->met.v[q]);
      weigh(&best, p->bytes[k], low, high);
    }
    if (x->end > low.at) low = (edge){x->end, 0, 0};
    if (x->end == low.at) low.contact += together(v, x);
  }
  if (low.at < p->peak) weigh(&best, p->bytes[k], low, (edge){p->peak, all / 2, 0});
  return best.at < 0 ? low.at : best.at;
}

// ---- in which order -----------------------------------------------------------------------------------------
typedef enum { BY_SIZE, BY_MOMENT } rule;

// The earliest of the moments of every value in which most is alive, as a number from 0, in the order of what is alive then.
static void rank_moments(packing *p, u32 n, ranked *order) {
  i64 *alive = ZNEWN(p->a, i64, p->moments + 1);
  u32 *most = ZNEWN(p->a, u32, 2 * (size_t)p->leaves), *number = NEWN(p->a, u32, p->moments + 1);
  ranked *moment = NEWN(p->a, ranked, p->moments + 1);
  for (u32 i = 0; i < n; i++) {
    const u32 k = order[i].k;
    alive[p->v[k].from] += p->bytes[k], alive[p->v[k].to] -= p->bytes[k];
  }
  for (u32 t = 1; t <= p->moments; t++) alive[t] += alive[t - 1];
  for (u32 t = 0; t <= p->moments; t++) moment[t] = (ranked){.first = alive[t], .k = t};
  qsort(moment, p->moments + 1, sizeof *moment, in_order);
  for (u32 t = 0; t <= p->moments; t++) number[moment[t].k] = t;
  for (u32 t = 0; t < p->leaves; t++) most[p->leaves + t] = number[MIN(t, p->moments)];
  for (u32 at = p->leaves; --at > 0;) most[at] = MIN(most[2 * at], most[2 * at + 1]);
  for (u32 i = 0; i < n; i++) {
    const live_value *v = &p->v[order[i].k];
    u32 from = v->from + p->leaves, to = v->to + p->leaves, least = UINT32_MAX;
    for (; from < to; from >>= 1, to >>= 1) {
      if (from & 1) least = MIN(least, most[from]), from++;
      if (to & 1) to--, least = MIN(least, most[to]);
    }
    order[i].moment = least;
  }
}

// Values that have a size. By size, then by how long they are alive; or what is alive when most is, those first that are alive
// longest, then what is alive in the next moment.
static u32 *order_of(packing *p, u32 n, rule by, u32 *count) {
  ranked *x = NEWN(p->a, ranked, n + 1);
  u32 *order = NEWN(p->a, u32, n + 1);
  *count = 0;
  for (u32 k = 0; k < n; k++) {
    const i64 moments = (i64)p->v[k].to - p->v[k].from, bytes = p->bytes[k];
    if (bytes)
      x[(*count)++] = by == BY_SIZE ? (ranked){bytes, moments, 0, k} : (ranked){moments, bytes, 0, k};
  }
  if (by == BY_MOMENT) rank_moments(p, *count, x);
  qsort(x, *count, sizeof *x, in_order);
  for (u32 i = 0; i < *count; i++) order[i] = x[i].k;
  return order;
}

// What sticks out above the peak goes first, otherwise all stay in their order.
static void promote(const packing *p, u32 *order, u32 n) {
  u32 *tmp = NEWN(p->a, u32, n + 1), m = 0;
  for (int out = 1; out >= 0; out--)
    for (u32 i = 0; i < n; i++)
      if ((p->place[order[i]].end > p->peak) == out) tmp[m++] = order[i];
  memcpy(order, tmp, n * sizeof *order);
}

// One packing in this order; what it reaches.
static i64 place_all(packing *p, const u32 *order, u32 n, fit how) {
  i64 reach = 0;
  p->node = ZNEWN(p->a, numbers, 2 * (size_t)p->leaves), p->begun = ZNEWN(p->a, u32, p->moments + 1);
  p->met.n = p->met.cap = 0, p->met.v = NULL;
  for (u32 i = 0; i < n; i++) {
    const u32 k = order[i];
    meet(p, k);
    p->work += p->met.n;
    const i64 at = how == FIT_SMALLEST ? smallest_gap(p, p->bytes[k]) : gap_of_contact(p, k);
    p->place[k] = (extent){at, at + p->bytes[k], p->v[k].from, p->v[k].to};
    reach = MAX(reach, at + p->bytes[k]);
    note(p, k);
  }
  return reach;
}

// ---- all of them --------------------------------------------------------------------------------------------
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

static const struct {
  rule by;
  fit how;
} ways[] = {{BY_SIZE, FIT_SMALLEST}, {BY_MOMENT, FIT_CONTACT}, {BY_MOMENT, FIT_SMALLEST}};

// One packing; it goes to `offset` where it is the best so far.
static void try_order(packing *p, u32 *order, u32 n, fit how, i64 *least, i64 *offset) {
  const arena_mark_t mark = arena_mark(p->a);
  const i64 reach = place_all(p, order, n, how);
  for (u32 i = 0; reach < *least && i < n; i++) offset[order[i]] = p->place[order[i]].at;
  *least = MIN(*least, reach);
  promote(p, order, n);
  arena_release(p->a, mark);
}

live_packed live_pack(arena *tmp, const live_value *v, u32 n, i64 align, i64 *offset) {
  enum { TRIES = 8, WORK = 1 << 22 }; // of each way; neighbours looked at, about half a second
  arena_mark_t mark = arena_mark(tmp);
  packing p = {.a = tmp, .v = v, .leaves = 1, .bytes = NEWN(tmp, i64, n + 1)};
  for (u32 k = 0; k < n; k++) {
    assert(v[k].bytes >= 0 && v[k].from < v[k].to);
    p.bytes[k] = rounded(v[k].bytes, align), offset[k] = 0;
    p.moments = MAX(p.moments, v[k].to);
  }
  live_packed r = {.peak = live_peak(tmp, v, n, align), .extent = INT64_MAX};
  p.peak = r.peak;
  while (p.leaves <= p.moments) p.leaves *= 2;
  p.before = NEWN(tmp, u32, n + 1), p.place = NEWN(tmp, extent, n + 1);
  u32 *order[COUNT_OF(ways)], count = 0;
  for (u32 w = 0; w < COUNT_OF(ways); w++) order[w] = order_of(&p, n, ways[w].by, &count);
  for (u32 k = 0; k < TRIES * COUNT_OF(ways) && r.extent > r.peak && p.work < WORK; k++)
    try_order(&p, order[k % COUNT_OF(ways)], count, ways[k % COUNT_OF(ways)].how, &r.extent, offset);
  arena_release(tmp, mark);
  return r;
}
