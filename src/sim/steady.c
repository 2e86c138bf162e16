// steady.c - time per step when steps follow each other without a barrier: the eigenvalue of main's map over
// (max, +).
//
// Idea: clocks go on from one step to the next, and a parameter is as late as the result that it is donated
// for. The map of main is applied until the whole state repeats up to a constant; the constant is the period.
// Units that never wait for each other need not repeat together; then the growth of the latest over many
// steps is taken.
#include "sim/internal.h"

enum { STEPS = 512, WINDOW = 8 };

// The constant by which x is later than y in every place; -1 if there is none.
static i64 later_by(const i64 *x, const i64 *y, u32 n) {
  for (u32 k = 1; k < n; k++)
    if (x[k] - y[k] != x[0] - y[0]) return -1;
  return n ? x[0] - y[0] : 0;
}

static i64 latest(const i64 *x, u32 n) {
  i64 t = 0;
  for (u32 k = 0; k < n; k++) t = MAX(t, x[k]);
  return t;
}

// next[port]: which output port an input port goes on from.
static i64 iterate(sim *s, const sim_cols *c, const u32 *next) {
  const sim_map *m = c->map;
  u32 n = c->nin;
  i64 *y = NEWN(s->tmp, i64, m->nin + m->nvert), *z = NEWN(s->tmp, i64, m->nout);
  i64 *past = ZNEWN(s->tmp, i64, (size_t)n * WINDOW), half = 0;
  u32 steps = c->total > INT64_MAX / (2 * STEPS) ? WINDOW : STEPS;
  for (u32 k = 1; k <= steps; k++) {
    memcpy(y + 1, past + (size_t)n * ((k - 1) % WINDOW), n * sizeof *y);
    sim_map_apply(m, y, z);
    i64 *now = past + (size_t)n * (k % WINDOW); // the oldest is given up
    for (u32 j = 0; j < n; j++) now[j] = z[next[j]];
    for (u32 back = 1; back < WINDOW && back < k; back++) {
      i64 d = later_by(now, past + (size_t)n * ((k - back) % WINDOW), n);
      if (d >= 0) return (d + back / 2) / back;
    }
    if (k == steps / 2) half = latest(now, n);
  }
  return (latest(past + (size_t)n * (steps % WINDOW), n) - half) / (steps - steps / 2);
}

i64 steady_period(sim *s) {
  const func_info *f = func_in(s, s->p->main);
  arena_mark_t mark = arena_mark(s->tmp);
  u8 *late = ZNEWN(s->tmp, u8, f->nparams + 1), *want = ZNEWN(s->tmp, u8, f->rets.n + 1);
  for (u32 k = 0; k < s->carry.n && !s->one_stream; k++) {
    sim_carry x = s->carry.v[k];
    assert(f->values.v[x.param + 1].ty.i == f->values.v[f->rets.v[x.result]].ty.i);
    late[x.param] = want[x.result] = 1;
  }
  const sim_cols *c = columns_of_step(s, late, want);
  u32 *next = NEWN(s->tmp, u32, c->nin);
  for (u32 k = 0; k < c->nclock; k++) next[k] = k;
  // Ports of late parameters, in order; each starts from the ports of its result.
  u32 in = c->nclock;
  for (u32 p = 0; p < f->nparams; p++) {
    if (!late[p]) continue;
    u32 from = c->nclock, result = 0;
    for (u32 k = 0; k < s->carry.n; k++)
      if (s->carry.v[k].param == p) result = s->carry.v[k].result;
    for (u32 r = 0; r < result; r++)
      if (want[r]) from += uset_of_type(s, f->values.v[f->rets.v[r]].ty, (group){0})->n;
    u32 n = uset_of_type(s, f->values.v[p + 1].ty, (group){0})->n;
    for (u32 k = 0; k < n; k++) next[in++] = from + k;
  }
  i64 period = iterate(s, c, next);
  arena_release(s->tmp, mark);
  return period;
}
