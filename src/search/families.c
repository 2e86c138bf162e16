// families.c - by how much the other schedules, and the other numbers of co-shard parts, are behind the winner.
//
// Idea: what a search knows of its points says it: the best plan of a value that was simulated, and the least bound of
// those of it that were ruled out. Only these bounds are worked out further, until the least is one of work: then it
// does not depend on which points a search, or a part of one, came to first. A program that several values make is one
// point, and of the families of them all.
#include "search/internal.h"
#include <stdlib.h>

static const choice_id rows[SEARCH_FAMILIES] = {CHOICE_schedule, CHOICE_coshard};

// Were several values of the row said?
static bool is_wanted(const search_opts *o, choice_id id) {
  const choice_set *x = &o->space.of[id];
  return !o->plain && x->said && (x->all || x->n > 1);
}

static bool is_of(const search_family *f, const strategy *s, bool train) {
  return choice_applies(f->of, s, train) ? f->applies && choice_same(f->value, s->of[f->of]) : !f->applies;
}

// Is it of the same family as the point before for sure: the same in the row and in all that the row may need?
static bool like_before(const search_result *r, u32 i, choice_id id) {
  const strategy_packed *s = &r->point[i].packed, *t = &r->point[i ? i - 1 : 0].packed;
  return i && !s->more && !t->more && !memcmp(s->n, t->n, (id + 1) * sizeof *s->n);
}

// The family of a point in that row; NULL: there is none. Neighbours are of one, so `last` is asked first.
static search_family *family_of(search_result *r, choice_id id, const strategy *s, bool train, u32 *last) {
  for (u32 k = 0; k < r->nfamilies; k++) {
    const u32 i = (k + *last) % r->nfamilies;
    if (r->family[i].of != id || !is_of(&r->family[i], s, train)) continue;
    *last = i;
    return &r->family[i];
  }
  return NULL;
}

static int by_value(const void *a, const void *b) {
  const search_family *x = a, *y = b;
  if (x->of != y->of) return x->of < y->of ? -1 : 1;
  if (x->applies != y->applies) return x->applies ? -1 : 1;
  return choice_compare(x->value, y->value);
}

// The point that has the plan of another one, as screening found it.
static const search_point *first_of(const search_result *r, const search_point *p) {
  while (p->same_as) p = &r->point[p->same_as - 1];
  return p;
}

static void add_also(arena *a, search_point *p, u32 family) {
  for (u32 k = 0; k < p->nalso; k++)
    if (p->also[k] == family) return;
  u32 *v = NEWN(a, u32, p->nalso + 1);
  if (p->nalso) memcpy(v, p->also, p->nalso * sizeof *v);
  v[p->nalso++] = family, p->also = v;
}

static void find_also(arena *a, search_result *r, u32 row) {
  for (u32 i = 0; i < r->npoints && r->nfamilies; i++) {
    if (!r->point[i].same_as) continue;
    search_point *p = &r->point[first_of(r, &r->point[i]) - r->point];
    const u32 also = r->point[i].family[row];
    if (also && also != p->family[row]) add_also(a, p, also - 1);
  }
}

// Sorted; points say where theirs came to.
static void sort_families(arena *a, search_result *r) {
  u16 *to = ZNEWN(a, u16, r->nfamilies + 1);
  if (!r->nfamilies) return;
  for (u32 k = 0; k < r->nfamilies; k++) r->family[k].fit = k + 1;
  qsort(r->family, r->nfamilies, sizeof *r->family, by_value);
  for (u32 k = 0; k < r->nfamilies; k++) to[r->family[k].fit] = (u16)(k + 1), r->family[k].fit = 0;
  for (u32 i = 0; i < r->npoints; i++)
    for (u32 k = 0; k < SEARCH_FAMILIES; k++) r->point[i].family[k] = to[r->point[i].family[k]];
}

void families_of(const search_opts *o, search_result *r) {
  u32 last[SEARCH_FAMILIES] = {0};
  for (u32 i = 0; i < r->npoints && r->nfamilies; i++) {
    const strategy s = search_strategy(&r->point[i]);
    for (u32 k = 0; k < SEARCH_FAMILIES; k++) {
      const search_family *f = family_of(r, rows[k], &s, o->train, &last[k]);
      r->point[i].family[k] = (u16)(f ? f - r->family + 1 : 0);
    }
  }
}

void families_find(arena *a, const search_opts *o, search_result *r) {
  r->family = NULL, r->nfamilies = 0;
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    const u32 first = r->nfamilies;
    u32 last = 0, cap = r->nfamilies;
    for (u32 i = 0; i < r->npoints && is_wanted(o, rows[k]); i++) {
      if (like_before(r, i, rows[k])) {
        r->point[i].family[k] = r->point[i - 1].family[k];
        continue;
      }
      const strategy of = search_strategy(&r->point[i]), *s = &of;
      const search_family *f = family_of(r, rows[k], s, o->train, &last);
      r->point[i].family[k] = (u16)(f ? f - r->family + 1 : r->nfamilies + 1);
      if (f) continue;
      r->family = vec_grow(a, r->family, r->nfamilies, &cap, r->nfamilies + 1, sizeof *r->family);
      const bool applies = choice_applies(rows[k], s, o->train);
      r->family[r->nfamilies++] = (search_family){.of = rows[k], .applies = applies, .value = s->of[rows[k]]};
    }
    if (r->nfamilies - first >= 2) continue;
    for (u32 i = 0; i < r->npoints && r->nfamilies > first; i++) r->point[i].family[k] = 0;
    r->nfamilies = first; // nothing to compare
  }
  sort_families(a, r);
  families_also(a, r);
}

void families_also(arena *a, search_result *r) {
  for (u32 k = 0; k < COUNT_OF(rows); k++) find_also(a, r, k);
}

static void at_least(search_family *f, i64 bound_ps) {
  if (bound_ps && (!f->bound_ps || bound_ps < f->bound_ps)) f->bound_ps = bound_ps;
}

void families_bound(search *s, i64 (*least)(search *s, search_point **v, u32 n)) {
  search_result *r = s->r;
  if (!r->nfamilies) return;
  typedef VEC(search_point *) passed;
  passed *of = ZNEWN(s->a, passed, r->nfamilies);
  for (u32 i = 0; i < r->npoints; i++) {
    search_point *p = &r->point[i];
    if (p->state != SEARCH_BOUND_TIME || p->applied) continue;
    for (u32 k = 0; k < SEARCH_FAMILIES; k++)
      if (p->family[k]) *vec_push(s->a, &of[p->family[k] - 1]) = p;
    for (u32 k = 0; k < p->nalso; k++) *vec_push(s->a, &of[p->also[k]]) = p;
  }
  for (u32 k = 0; k < r->nfamilies; k++)
    if (of[k].n) at_least(&r->family[k], least(s, of[k].v, of[k].n));
}

static void count(search_family *f, const search_point *p) { // points are counted as they are ranked
  f->fit += p->state == SEARCH_RAN;
  f->large += p->state == SEARCH_BOUND_MEMORY || p->state == SEARCH_OVER_MEMORY;
  f->slow += p->state == SEARCH_BOUND_TIME;
  if (p->state == SEARCH_BOUND_TIME &&
      p->applied) // no work_ps: bounds are off, its busiest stream ruled it out
    at_least(f, p->work_ps ? p->work_ps : p->bound_ps);
  if (p->state == SEARCH_RAN && (!f->best || p->time_ps < f->time_ps))
    f->best = p, f->time_ps = p->time_ps, f->alone_ps = p->alone_ps;
}

void families_count(search_result *r, u32 n, const search_point *point) {
  for (u32 k = 0; k < SEARCH_FAMILIES; k++)
    for (u32 i = 0; i < n && r->nfamilies; i++)
      if (point[i].family[k]) count(&r->family[point[i].family[k] - 1], &point[i]);
  for (u32 i = 0; i < n; i++)
    for (u32 k = 0; k < point[i].nalso; k++) count(&r->family[point[i].also[k]], &point[i]);
}

// ---- of parts -------------------------------------------------------------------------------------------------
void families_copy(arena *a, const search_result *from, search_result *to) {
  to->nfamilies = from->nfamilies;
  to->family = NEWN(a, search_family, from->nfamilies + 1);
  for (u32 k = 0; k < from->nfamilies; k++) {
    const search_family *f = &from->family[k];
    to->family[k] = (search_family){f->of, f->applies, f->value, .bound_ps = f->bound_ps};
  }
}

bool families_add(search_result *to, const search_result *more) {
  bool same = to->nfamilies == more->nfamilies;
  for (u32 k = 0; same && k < to->nfamilies; k++) {
    search_family *f = &to->family[k];
    const search_family *x = &more->family[k];
    same = !by_value(f, x);
    f->slow += x->slow;
    if (x->bound_ps) at_least(f, x->bound_ps);
  }
  return same;
}
