// compare_activity.c - when instructions run, measured beside predicted: by how much the start and the end of each are off.
//
// Idea: both sides say of a slice which operator it is, from which node of the model, and mostly in which function and of which
// microbatch; the k-th of a rank that agree in these are the same instruction. Times count from the beginning of the step. An instruction's error is the mean of that
// of its start and of its end, over the measured step: DistSim's (section 6.3), which compares timestamps of events.
#include "diagnose/compare.h"
#include <stdlib.h>

typedef struct {
  u64 key;
  const compare_slice *of;
  u32 nth; // of its key
} keyed;
typedef struct {
  arena *tmp;
  bool functions, microbatches; // do both sides say them?
  VEC(keyed) side[2];
  VEC(double) error; // of one stage
} pairing;

static void what_is_said(pairing *x, const job_compare *o) {
  bool functions[2] = {0}, microbatches[2] = {0};
  for (u32 k = 0; k < 2 * o->n; k++)
    for (u32 i = 0, side = k & 1; i < o->rank[k / 2].n[side]; i++) {
      const compare_slice *s = &o->rank[k / 2].slice[side][i];
      functions[side] |= s->at.func.i != 0, microbatches[side] |= s->microbatch != TRACE_NONE;
    }
  x->functions = functions[0] && functions[1], x->microbatches = microbatches[0] && microbatches[1];
}

static u64 key_of(const pairing *x, const compare_slice *s) {
  u64 h = hash_step(hash_step(16, s->name.i), s->at.node.i);
  if (x->functions) h = hash_step(h, s->at.func.i);
  return x->microbatches ? hash_u64(h, s->microbatch + 1u) : h;
}

static int by_key(const void *x, const void *y) {
  const keyed *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  if (a->of->start_ps != b->of->start_ps) return a->of->start_ps < b->of->start_ps ? -1 : 1;
  return a->of->end_ps < b->of->end_ps ? -1 : a->of->end_ps > b->of->end_ps;
}

static void take(pairing *x, const job_compare *o, const compare_rank *r, u32 side) {
  x->side[side].n = 0;
  for (u32 i = 0; i < r->n[side]; i++)
    if (compare_in_step(o, side, &r->slice[side][i]) && !r->slice[side][i].goes_on)
      *vec_push(x->tmp, &x->side[side]) = (keyed){key_of(x, &r->slice[side][i]), &r->slice[side][i], 0};
  keyed *v = x->side[side].v;
  if (x->side[side].n) qsort(v, x->side[side].n, sizeof *v, by_key);
  for (u32 k = 1; k < x->side[side].n; k++) v[k].nth = v[k].key == v[k - 1].key ? v[k - 1].nth + 1 : 0;
}

static i64 off(const job_compare *o, i64 measured, i64 predicted) {
  return llabs((measured - o->from_ps[0]) - (predicted - o->from_ps[1]));
}

static void pair_up(pairing *x, const job_compare *o) {
  const keyed *m = x->side[0].v, *p = x->side[1].v;
  for (u32 i = 0, j = 0; i < x->side[0].n && j < x->side[1].n;) {
    const keyed *a = &m[i], *b = &p[j];
    if (a->key != b->key || a->nth != b->nth) {
      const bool first = a->key != b->key ? a->key < b->key : a->nth < b->nth;
      i += first, j += !first;
      continue;
    }
    const i64 ps = off(o, a->of->start_ps, b->of->start_ps) + off(o, a->of->end_ps, b->of->end_ps);
    *vec_push(x->tmp, &x->error) = (double)ps / 2 / (double)MAX(o->step_ps[0], 1);
    i++, j++;
  }
}

static int by_size(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

void compare_activity(arena *a, job_compare *o) {
  pairing x = {.tmp = arena_new()};
  VEC(compare_stage) stages = {0};
  u32 nstages = 0;
  double sum = 0;
  what_is_said(&x, o);
  for (u32 k = 0; k < o->n; k++) nstages = MAX(nstages, o->rank[k].stage + 1);
  for (u32 stage = 0; stage < nstages; stage++) {
    compare_stage s = {.stage = stage};
    x.error.n = 0;
    for (u32 k = 0; k < o->n; k++) {
      if (o->rank[k].stage != stage) continue;
      for (u32 side = 0; side < 2; side++) take(&x, o, &o->rank[k], side);
      pair_up(&x, o);
      s.instructions += x.side[0].n;
    }
    s.paired = x.error.n;
    if (x.error.n)
      qsort(x.error.v, x.error.n, sizeof *x.error.v, by_size), s.median = x.error.v[x.error.n / 2];
    for (u32 k = 0; k < x.error.n; k++) sum += x.error.v[k]; // in this order, whatever the keys are
    o->paired += s.paired, o->instructions += s.instructions;
    if (s.paired) *vec_push(a, &stages) = s;
  }
  o->activity = o->paired ? sum / (double)o->paired : 0;
  o->nstages = stages.n, o->stage = stages.v;
  arena_free(x.tmp);
}
