// compare_places.c - the instructions of a program, measured beside predicted: one operator at one place of the model.
//
// Idea: both sides say of a slice which operator it is, in which function, and which node of the model it comes from.
// What agrees in these is one instruction, or a few that nobody would tell apart: blocks that are alike share a function.
#include "diagnose/compare.h"
#include <stdlib.h>

typedef struct {
  const ctx *c;
  arena *a;
  VEC(compare_place) place;
  hmap by_key;
  bool functions; // do both sides say them?
} tally;

static bool says_function(const job_compare *o, u32 side) {
  for (u32 k = 0; k < o->n; k++)
    for (u32 i = 0; i < o->rank[k].n[side]; i++)
      if (o->rank[k].slice[side][i].at.func.i) return true;
  return false;
}

static const char *text_of(const tally *y, sym s) { return s.i ? sym_str(y->c, s) : ""; }

static void count_slice(tally *y, const compare_slice *s, u32 side) {
  const sym fn = y->functions ? s->at.func : (sym){0};
  const u64 h = hash_u64(hash_step(hash_step(hash_step(15, s->name.i), s->at.node.i), fn.i), s->row + 1u);
  u32 at = hmap_get(&y->by_key, h);
  if (!at) {
    *vec_push(y->a, &y->place) = (compare_place){.name = sym_str(y->c, s->name),
                                                 .node = text_of(y, s->at.node),
                                                 .func = text_of(y, fn),
                                                 .row = s->row};
    hmap_add(y->a, &y->by_key, h, at = y->place.n);
  }
  assert(y->place.v);
  compare_place *p = &y->place.v[at - 1];
  p->count[side] += !s->goes_on, p->total_ps[side] += s->end_ps - s->start_ps - s->wait_ps;
}

static int by_difference(const void *x, const void *y) {
  const compare_place *a = x, *b = y;
  const i64 u = llabs(a->total_ps[0] - a->total_ps[1]), v = llabs(b->total_ps[0] - b->total_ps[1]);
  if (u != v) return u > v ? -1 : 1;
  const int name = strcmp(a->name, b->name), node = strcmp(a->node, b->node);
  return name ? name : node ? node : strcmp(a->func, b->func);
}

void compare_places(const ctx *c, arena *a, job_compare *o) {
  tally y = {.c = c, .a = a, .functions = says_function(o, 0) && says_function(o, 1)};
  for (u32 k = 0; k < o->n; k++)
    for (u32 side = 0; side < 2; side++)
      for (u32 i = 0; i < o->rank[k].n[side]; i++) {
        const compare_slice *s = &o->rank[k].slice[side][i];
        if (compare_in_step(o, side, s)) count_slice(&y, s, side);
      }
  if (y.place.n) qsort(y.place.v, y.place.n, sizeof *y.place.v, by_difference);
  o->nplaces = y.place.n, o->place = y.place.v;
}
