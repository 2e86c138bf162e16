// splits_beaten.c - which states of a cut (splits_cut.c) no fastest solution goes through: another state is reached so much faster
// that it may convert what lies otherwise and be faster still.
//
// Idea: from two states with the same held options the same options can follow. They then differ only in tensors that lie
// otherwise, and for each of these by no more than the worst that its next readers can ask. If the faster state is faster by more than the sum, the slower one is beaten, ties not counted.
#include "plan/splits_kinds.h"
#include <stdlib.h>

enum { FASTEST = 24 };
typedef struct {
  i64 cost;
  u32 held, number;
} entry;

static int by_held_and_cost(const void *x, const void *y) {
  const entry *p = x, *q = y;
  if (p->held != q->held) return p->held < q->held ? -1 : 1;
  if (p->cost != q->cost) return p->cost < q->cost ? -1 : 1;
  return p->number < q->number ? -1 : 1;
}

// Which slots lie otherwise in some states.
static u32 find_slots(const splits_cut *c, const splits_reached *v, u32 n, u32 *slot) {
  u32 nslot = 0;
  for (u32 j = 0; j < c->nslots; j++) {
    u32 i = 1;
    while (i < n && v[i].kind[j] == v[0].kind[j]) i++;
    if (i < n) slot[nslot++] = j;
  }
  return nslot;
}

// By the kinds of n tensors that are in gaps. Where it was clear the last time comes first: *at.
static bool beats(const splits_cut *c, const u32 *gap, u32 n, const u32 *fast, const u32 *slow, i64 least,
                  u32 *at) {
  if (least <= 0) return false;
  const u32 first = *at;
  i64 ps = n ? splits_more(c->kinds, gap[first], fast[first], slow[first]) : 0;
  for (u32 j = 0; j < n && ps < least; j++) {
    if (j == first) continue;
    ps += splits_more(c->kinds, gap[j], fast[j], slow[j]);
    if (ps >= least) *at = j;
  }
  return ps < least;
}

void splits_find_beaten(arena *a, const splits_cut *c, splits_reached *v, u32 n) {
  entry *e = NEWN(a, entry, n + 1);
  u32 *slot = NEWN(a, u32, c->nslots + 1), *gap = NEWN(a, u32, c->nslots + 1), at = 0;
  const u32 m = find_slots(c, v, n, slot);
  u32 *kind = NEWN(a, u32, (size_t)n * m + 1), fast[FASTEST],
      nfast = 0; // fast: of those with the same held options
  for (u32 i = 0; i < n; i++) e[i] = (entry){v[i].cost, v[i].held, i};
  for (u32 j = 0; j < m; j++) gap[j] = c->gap[slot[j]];
  if (n > 1) qsort(e, n, sizeof *e, by_held_and_cost);
  for (u32 i = 0; i < n; i++) {
    splits_reached *x = &v[e[i].number];
    u32 *own = &kind[(size_t)i * m];
    if (i && e[i].held != e[i - 1].held) nfast = 0;
    for (u32 j = 0; j < m; j++) own[j] = x->kind[slot[j]];
    for (u32 j = 0; j < nfast && !x->beaten; j++)
      x->beaten = beats(c, gap, m, &kind[(size_t)fast[j] * m], own, e[i].cost - e[fast[j]].cost, &at);
    if (!x->beaten && nfast < FASTEST) fast[nfast++] = i;
  }
}
