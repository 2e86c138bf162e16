// steady.c - time per step when steps follow each other without a barrier: the eigenvalue of main's map over
// (max, +).
//
// Idea: clocks go on from one step to the next, and a parameter is as late as the result that takes its
// place. Steps are run one after the other until the whole state repeats up to a constant; the constant is
// the period. Rank classes that never wait for each other need not repeat together; then the growth of the
// latest over many steps is taken.
#include "sim/internal.h"

enum { STEPS = 512 };

// The constant by which x is later than y in every place that anything ever happens; -1 if there is none.
static i64 later_by(const i64 *x, const i64 *y, u32 n) {
  i64 by = -1;
  for (u32 k = 0; k < n; k++) {
    if (!x[k]) continue;
    if (by >= 0 && x[k] - y[k] != by) return -1;
    by = x[k] - y[k];
  }
  return MAX(by, 0);
}

static i64 latest(const i64 *x, u32 n) {
  i64 t = 0;
  for (u32 k = 0; k < n; k++) t = MAX(t, x[k]);
  return t;
}

// A step lasts no longer than `alone`, so k steps no longer than k of it.
void steps_begin(steps_seen *x, arena *a, u32 n, i64 alone) {
  *x = (steps_seen){.n = n, .steps = (u32)MIN(STEPS, INT64_MAX / MAX(alone, 1)), .period_ps = alone};
  x->past = ZNEWN(a, i64, (size_t)n * STEPS_WINDOW);
}

// The latest state; at first all 0.
static const i64 *steps_last(const steps_seen *x) { return x->past + (size_t)x->n * (x->k % STEPS_WINDOW); }

bool steps_add(steps_seen *x, const i64 *now) {
  if (x->k == x->steps) return true;
  const u32 k = ++x->k;
  memcpy(x->past + (size_t)x->n * (k % STEPS_WINDOW), now, x->n * sizeof *now); // the oldest is given up
  for (u32 back = 1; back < STEPS_WINDOW && back < k; back++) {
    const i64 d = later_by(now, x->past + (size_t)x->n * ((k - back) % STEPS_WINDOW), x->n);
    if (d < 0) continue;
    x->period_ps = (d + back / 2) / back;
    return true;
  }
  if (k == x->steps / 2) x->half = latest(now, x->n);
  if (k == x->steps && k > 1) x->period_ps = (latest(now, x->n) - x->half) / (k - k / 2);
  return k == x->steps;
}

// next[port]: which output port an input port goes on from.
static i64 iterate(sim *s, const sim_graph *c, const u32 *next, i64 alone) {
  const u32 n = c->nin;
  i64 *x = NEWN(s->tmp, i64, c->nslot), *frame = NEWN(s->tmp, i64, c->frame), *now = NEWN(s->tmp, i64, n);
  steps_seen seen;
  steps_begin(&seen, s->tmp, n, alone);
  do {
    for (u32 j = 0; j < n; j++) x[c->port_in[j]] = steps_last(&seen)[j];
    sim_composed(c, x, frame); // where no callee has a map this is sim_flat
    for (u32 j = 0; j < n; j++) now[j] = x[c->port_out[next[j]]];
  } while (!steps_add(&seen, now));
  return seen.period_ps;
}

// The event graph of a step whose parameters may be late.
static step_graph graph_between(sim *s) {
  const func_info *f = func_get(s->p, s->p->main);
  u8 *late = ZNEWN(s->a, u8, f->nparams + 1), *want = ZNEWN(s->a, u8, f->rets.n + 1);
  u32 *result = NEWN(s->a, u32, f->nparams + 1), *port = NEWN(s->a, u32, f->rets.n + 1);
  for (u32 k = 0; k < s->carry.n; k++) {
    sim_carry x = s->carry.v[k];
    assert(f->values.v[x.param + 1].ty.i == f->values.v[f->rets.v[x.result]].ty.i);
    late[x.param] = want[x.result] = 1;
    result[x.param] = x.result;
  }
  const sim_graph *c = graph_of_step(s, late, want);
  if (s->overflow) return (step_graph){0}; // it ends before its ports
  u32 in = c->nclock, out = c->nclock;
  for (u32 r = 0; r < f->rets.n; r++) {
    port[r] = out;
    if (want[r]) out += class_set_of_type(s, f->values.v[f->rets.v[r]].ty, (group){0})->n;
  }
  u32 *next = NEWN(s->a, u32, c->nin + 1);
  for (u32 k = 0; k < c->nclock; k++) next[k] = k;
  for (u32 p = 0; p < f->nparams; p++) {
    if (!late[p]) continue;
    u32 n = class_set_of_type(s, f->values.v[p + 1].ty, (group){0})->n;
    for (u32 k = 0; k < n; k++) next[in++] = port[result[p]] + k;
  }
  assert(in == c->nin && out == c->nout);
  return (step_graph){c, next};
}

// Results that lie where a parameter lay are known from the bytes. A weight that is gathered after its update
// lies elsewhere: it is known by its name, "w.new" for w.
void steady_named(sim *s) {
  const func_info *f = func_get(s->p, s->p->main);
  u8 *taken = ZNEWN(s->tmp, u8, f->nparams + 1);
  hmap by_name = {0};
  for (u32 k = 0; k < s->carry.n; k++) taken[s->carry.v[k].param] = 1;
  for (u32 k = 0; k < f->nparams; k++) {
    const sym name = f->values.v[k + 1].name;
    if (taken[k] || !name.i || (f->params.v[k].r != ROLE_WEIGHT && f->params.v[k].r != ROLE_STATE)) continue;
    hmap_add(s->tmp, &by_name, hash_u64(ir_new_name(s->c, name).i, 0), k);
  }
  for (u32 r = 0; r < f->rets.n && by_name.n; r++) {
    const value_info *v = &f->values.v[f->rets.v[r]];
    for (u32 it = 0, k; v->name.i && hmap_next(&by_name, hash_u64(v->name.i, 0), &it, &k);) {
      if (taken[k] || v->ty.i != f->values.v[k + 1].ty.i) continue;
      taken[k] = 1;
      *vec_push(s->a, &s->carry) = (sim_carry){.result = r, .param = k};
    }
  }
}

step_graph steady_steps(sim *s) {
  for (u32 j = 0; j < s->o->ncarry; j++) *vec_push(s->a, &s->carry) = s->o->carry[j];
  if (!s->o->ncarry) steady_named(s);
  // On one stream nothing waits for a value: every clock covers what was made on it.
  return s->carry.n && !s->one_stream ? graph_between(s) : (step_graph){0};
}

void steady_period(sim *s, const step_graph *x, sim_result *r) {
  arena_mark_t mark = arena_mark(s->tmp);
  u32 *next = NEWN(s->tmp, u32, x->graph->nclock + 1);
  for (u32 k = 0; k < x->graph->nclock; k++) next[k] = k;
  r->ncarried = s->carry.n;
  r->period_ps = iterate(s, x->graph, x->next ? x->next : next, r->makespan_ps);
  arena_release(s->tmp, mark);
}
