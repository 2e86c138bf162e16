// make_ups.c - which replicas of different make-up a search tried, and what became of each.
//
// Idea: points that the file of a part lists are known one by one; all others are summed up here. Of
// those that are too slow a report says the least bound, and where bounds of several kinds are known of a point, the
// first that is above last_ps: so it does not matter what else was worked out of it. Of many points that is the least
// of all their bounds that is above. A part does not know last_ps of the whole search, which is not above its own: it
// keeps all bounds up to the first above its own.
#include "search/internal.h"
#include <stdlib.h>

static void at_least(i64 *least, i64 ps) {
  if (ps && (!*least || ps < *least)) *least = ps;
}

static search_make_up *find(search_result *r, choice_value is) {
  for (u32 k = 0; k < r->nmake_ups; k++)
    if (choice_same(r->make_up[k].is, is)) return &r->make_up[k];
  return NULL;
}

// ---- what is summed up --------------------------------------------------------------------------------------
// What is told of a make-up: the larger before the smaller.
static u32 worth(const search_point *p) {
  static const u32 of[SEARCH_STATES] = {
      [SEARCH_OPEN] = 0,       [SEARCH_IMPOSSIBLE] = 1,  [SEARCH_EQUAL] = 2, [SEARCH_BOUND_MEMORY] = 3,
      [SEARCH_BOUND_TIME] = 4, [SEARCH_OVER_MEMORY] = 5, [SEARCH_RAN] = 6};
  return of[p->state];
}

static bool is_first(const search_point *p, const search_point *q) {
  return strategy_packed_compare(&p->packed, &q->packed) < 0;
}

// Of a point that is too slow, in the order in which they are found: 0 where one was not.
static void add_bounds(arena *a, search_make_up *m, const search_point *p, i64 last_ps) {
  const i64 found[] = {p->products_ps, p->work_ps, p->stages_ps, p->first_ps, p->bound_ps};
  i64 ps = 0;
  m->slow++;
  for (u32 k = 0; k < COUNT_OF(found) && ps <= last_ps; k++) {
    ps = MAX(ps, found[k]);
    if (ps && (!m->bounds.n || m->bounds.v[m->bounds.n - 1] != ps)) // neighbours are often alike
      *vec_push(a, &m->bounds) = ps;
  }
}

static int by_time(const void *x, const void *y) {
  const i64 a = *(const i64 *)x, b = *(const i64 *)y;
  return a < b ? -1 : a > b;
}

// Each once, up to the first above last_ps.
static void sort_bounds(search_make_up *m, i64 last_ps) {
  u32 n = 0;
  if (m->bounds.n) qsort(m->bounds.v, m->bounds.n, sizeof *m->bounds.v, by_time);
  for (u32 k = 0; k < m->bounds.n; k++) {
    if (n && m->bounds.v[n - 1] == m->bounds.v[k]) continue;
    m->bounds.v[n++] = m->bounds.v[k];
    if (m->bounds.v[k] > last_ps) break;
  }
  m->bounds.n = n;
}

void make_ups_find(arena *a, const search_opts *o, search_result *r) {
  u32 cap = 0;
  r->nmake_ups = 0, r->make_up = NULL;
  if (!o->space.of[CHOICE_replicas].said) return;
  for (u32 i = 0; i < r->npoints; i++) {
    const search_point *p = &r->point[i];
    const choice_value is = search_value(p, CHOICE_replicas);
    if (!is.nparts) continue;
    search_make_up *m = find(r, is);
    if (!m) {
      r->make_up = vec_grow(a, r->make_up, r->nmake_ups, &cap, r->nmake_ups + 1, sizeof *r->make_up);
      m = &r->make_up[r->nmake_ups++];
      *m = (search_make_up){.is = is, .first = p->packed};
    }
    m->plans++;
    if (strategy_packed_compare(&p->packed, &m->first) < 0) m->first = p->packed;
    if (p->state == SEARCH_OPEN || part_lists(p)) continue;
    if (p->state == SEARCH_BOUND_TIME) {
      add_bounds(a, m, p, r->last_ps);
      continue;
    }
    at_least(&m->rest_ps, p->bound_ps);
    if (worth(p) > worth(&m->rest) || (worth(p) == worth(&m->rest) && is_first(p, &m->rest))) m->rest = *p;
  }
  for (u32 k = 0; k < r->nmake_ups; k++) sort_bounds(&r->make_up[k], r->last_ps);
}

bool make_ups_add(arena *a, search_result *to, const search_result *more) {
  for (u32 k = 0; k < more->nmake_ups; k++) {
    const search_make_up *x = &more->make_up[k];
    search_make_up *m = find(to, x->is);
    if (!m) return false;
    m->slow += x->slow;
    for (u32 j = 0; j < x->bounds.n; j++) *vec_push(a, &m->bounds) = x->bounds.v[j];
  }
  return to->nmake_ups == more->nmake_ups;
}

void make_ups_slow(arena *a, search_result *r) {
  for (u32 i = 0; i < r->npoints && r->nmake_ups; i++) {
    search_make_up *m = find(r, search_value(&r->point[i], CHOICE_replicas));
    if (m && r->point[i].state == SEARCH_BOUND_TIME && !part_lists(&r->point[i]))
      add_bounds(a, m, &r->point[i], r->last_ps);
  }
  for (u32 k = 0; k < r->nmake_ups; k++) sort_bounds(&r->make_up[k], INT64_MAX);
}

// ---- what is told ---------------------------------------------------------------------------------------------
// The place of its best plan that was simulated first, then its first strategy.
static int by_rank(const void *x, const void *y) {
  const search_make_up *a = x, *b = y;
  if (a->lead != b->lead) return a->lead < b->lead ? -1 : 1;
  return strategy_packed_compare(&a->first, &b->first);
}

// Points are ranked, so the first of a state is the one that is told.
static void tell(search_make_up *m, const search_point *p) {
  m->simulated += p->state == SEARCH_RAN || p->state == SEARCH_OVER_MEMORY;
  at_least(&m->bound_ps, p->bound_ps);
  if (worth(p) > worth(m->top) || (worth(p) == worth(m->top) && m->top == &m->rest && is_first(p, m->top)))
    m->top = p;
}

void make_ups_settle(search_result *r) {
  static const search_point too_slow = {.state = SEARCH_BOUND_TIME};
  for (u32 k = 0; k < r->nmake_ups; k++) r->make_up[k].lead = r->npoints;
  for (u32 i = r->npoints; i-- > 0 && r->nmake_ups;) {
    const search_point *p = &r->point[i];
    search_make_up *m = find(r, search_value(p, CHOICE_replicas));
    if (m && part_lists(p) && (p->state == SEARCH_RAN || p->time_ps)) m->lead = i;
  }
  if (r->nmake_ups) qsort(r->make_up, r->nmake_ups, sizeof *r->make_up, by_rank);
  for (u32 k = 0; k < r->nmake_ups; k++) {
    search_make_up *m = &r->make_up[k];
    u32 above = 0;
    while (above < m->bounds.n && m->bounds.v[above] <= r->last_ps) above++;
    m->simulated = 0, m->bound_ps = m->rest_ps, m->top = &m->rest;
    if (above < m->bounds.n) at_least(&m->bound_ps, m->bounds.v[above]);
    if (m->slow) m->top = &too_slow;
  }
  for (u32 i = 0; i < r->npoints && r->nmake_ups; i++) {
    search_make_up *m = find(r, search_value(&r->point[i], CHOICE_replicas));
    if (m && part_lists(&r->point[i])) tell(m, &r->point[i]);
  }
}
