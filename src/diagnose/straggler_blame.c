// straggler_blame.c - what a pipelined job loses to its operations, workers, stages, data ranks and microbatches.
//
// Idea: a group is charged with what a step takes in which all is ideal but the group ("alone"), and credited with what
// is won if all is as recorded but the group ("repaired"). Both are replays of one graph. They differ where several
// groups are late at once: each alone costs the step as much as all, and repairing one of them wins nothing.
#include "diagnose/diagnose.h"
#include "sim/sim.h"
#include <stdlib.h>

// What every operation belongs to, of one kind: its number, TRACE_NONE: to none.
typedef u32 belongs(const straggler *s, const straggler_blame *b, const straggler_node *n);

static u32 to_group(const straggler *s, const straggler_blame *b, const straggler_node *n) {
  (void)s;
  return b->group_of[n->type];
}
static u32 to_data(const straggler *s, const straggler_blame *b, const straggler_node *n) {
  (void)b;
  return s->worker[n->worker].data;
}
static u32 to_stage(const straggler *s, const straggler_blame *b, const straggler_node *n) {
  (void)b;
  return s->worker[n->worker].stage;
}
static u32 to_worker(const straggler *s, const straggler_blame *b, const straggler_node *n) {
  (void)s, (void)b;
  return n->worker;
}
static u32 to_microbatch(const straggler *s, const straggler_blame *b, const straggler_node *n) {
  (void)s, (void)b;
  return n->microbatch;
}

typedef struct {
  const straggler *s;
  const straggler_blame *b;
  belongs *of;
  straggler_score *out;
  i64 **room;       // of every thread: durations, times, which operations
  const bool *many; // several numbers at once; NULL: each number by itself
} scenarios;

// Mean over steps with the operations of number `which` as recorded and others ideal, or the other way round.
static double mixed(const scenarios *x, u32 which, bool recorded, i64 *dur, i64 *times) {
  const straggler *s = x->s;
  sim_graph g = *s->graph;
  bool *in = (bool *)(times + g.nslot);
  for (u32 k = 0; k < s->n; k++) {
    const u32 of = s->node[k].worker == TRACE_NONE ? TRACE_NONE : x->of(s, x->b, &s->node[k]);
    in[k] = (of != TRACE_NONE && (x->many ? x->many[of] : of == which)) == recorded;
  }
  sim_sum sum = 0;
  g.dur = dur;
  for (u32 i = 0; i < s->nsteps; i++) {
    const i64 *rec = s->recorded_ps + (size_t)i * s->n;
    for (u32 k = 0; k < s->n; k++) dur[k] = in[k] ? rec[k] : s->ideal_ps[k];
    sim_flat(&g, times, NULL);
    sum += times[s->n];
  }
  return (double)sum / s->nsteps;
}

static void score(void *arg, u32 which, int thread) {
  const scenarios *x = arg;
  i64 *room = x->room[thread];
  x->out[which].alone_ps = mixed(x, which, true, room, room + x->s->n);
  x->out[which].repaired_ps = mixed(x, which, false, room, room + x->s->n);
}

static void run(scenarios *x, u32 n) {
  arena *tmp = arena_new();
  const int threads = cpu_count();
  x->room = NEWN(tmp, i64 *, threads);
  for (int k = 0; k < threads; k++)
    x->room[k] = NEWN(tmp, i64, (size_t)x->s->n * 2 + 1 + x->s->n / sizeof(i64) + 1);
  parallel_for(threads, n, score, x);
  arena_free(tmp);
}

static straggler_score *scores(arena *a, const straggler *s, const straggler_blame *b, belongs *of, u32 n) {
  scenarios x = {.s = s, .b = b, .of = of, .out = NEWN(a, straggler_score, n + 1)};
  run(&x, n);
  return x.out;
}

// ---- operations -----------------------------------------------------------------------------------------
static void find_groups(arena *a, const straggler *s, straggler_blame *b) {
  u8 *of = ZNEWN(a, u8, STRAGGLER_TYPES);
  const char **name = NEWN(a, const char *, STRAGGLER_TYPES);
  u32 n = 0, forward = TRACE_NONE, backward = TRACE_NONE;
  for (u32 t = 0; t < STRAGGLER_TYPES; t++) {
    if (!s->count[t]) continue;
    u32 *shared = t == STRAGGLER_FORWARD_SEND || t == STRAGGLER_FORWARD_RECV     ? &forward
                  : t == STRAGGLER_BACKWARD_SEND || t == STRAGGLER_BACKWARD_RECV ? &backward
                                                                                 : NULL;
    if (shared && *shared != TRACE_NONE) {
      of[t] = (u8)*shared;
      continue;
    }
    if (shared) *shared = n;
    name[n] = shared == &forward    ? "forward-pp-comm"
              : shared == &backward ? "backward-pp-comm"
                                    : straggler_types[t].name;
    of[t] = (u8)n++;
  }
  b->ngroups = n, b->group = name, b->group_of = of;
}

// How long workers are in operations, and wait in them for other members, when all takes what was recorded.
static void spend(arena *a, const straggler *s, straggler_blame *b) {
  arena *tmp = arena_new();
  sim_graph g = *s->graph;
  i64 *x = NEWN(tmp, i64, g.nslot);
  sim_sum *took = ZNEWN(tmp, sim_sum, b->ngroups), *waited = ZNEWN(tmp, sim_sum, b->ngroups);
  for (u32 i = 0; i < s->nsteps; i++) {
    g.dur = s->recorded_ps + (size_t)i * s->n;
    sim_flat(&g, x, NULL);
    for (u32 k = 0; k < s->n; k++) {
      if (s->node[k].worker == TRACE_NONE) continue;
      i64 ready = 0;
      for (u32 d = s->after_at[k]; d < s->after_at[k + 1]; d++) ready = MAX(ready, x[s->after[d] + 1]);
      const u32 of = b->group_of[s->node[k].type];
      took[of] += g.dur[k];
      waited[of] += x[k + 1] - g.dur[k] - ready;
    }
  }
  const double n = (double)s->nsteps * s->nworkers;
  b->took_ps = NEWN(a, double, b->ngroups), b->waited_ps = NEWN(a, double, b->ngroups);
  for (u32 k = 0; k < b->ngroups; k++)
    b->took_ps[k] = (double)took[k] / n, b->waited_ps[k] = (double)waited[k] / n;
  arena_free(tmp);
}

// ---- workers --------------------------------------------------------------------------------------------
static void find_slowest(arena *a, const straggler *s, straggler_blame *b) {
  u32 *by = NEWN(a, u32, s->nworkers);
  for (u32 k = 0; k < s->nworkers; k++) { // equal ones in the order of their numbers
    u32 at = k;
    while (at && b->worker[by[at - 1]].alone_ps < b->worker[k].alone_ps) by[at] = by[at - 1], at--;
    by[at] = k;
  }
  b->slowest = by;
  b->nslow = (s->nworkers * 3 + 99) / 100;
  bool *many = ZNEWN(a, bool, s->nworkers);
  for (u32 k = 0; k < b->nslow; k++) many[by[k]] = true;
  straggler_score out;
  scenarios x = {.s = s, .b = b, .of = to_worker, .out = &out, .many = many};
  run(&x, 1);
  b->workers_repaired_ps = out.repaired_ps;
}

straggler_blame *straggler_blame_of(arena *a, const straggler *s) {
  straggler_blame *b = NEW(a, straggler_blame);
  find_groups(a, s, b);
  i64 *replayed = NEWN(a, i64, s->nsteps), *ideal = NEWN(a, i64, s->nsteps);
  straggler_replay(s, s->recorded_ps, replayed);
  i64 *dur = base_malloc((size_t)s->nsteps * s->n * sizeof *dur);
  for (u32 i = 0; i < s->nsteps; i++) memcpy(dur + (size_t)i * s->n, s->ideal_ps, s->n * sizeof *dur);
  straggler_replay(s, dur, ideal);
  free(dur);
  b->replayed_step_ps = replayed, b->ideal_step_ps = ideal;
  b->replayed_ps = straggler_mean(s, replayed), b->ideal_ps = straggler_mean(s, ideal);
  spend(a, s, b);
  b->type = scores(a, s, b, to_group, b->ngroups);
  b->data = scores(a, s, b, to_data, s->ndata);
  b->stage = scores(a, s, b, to_stage, s->nstages);
  b->worker = scores(a, s, b, to_worker, s->nworkers);
  b->microbatch = scores(a, s, b, to_microbatch, s->nmicro);
  find_slowest(a, s, b);
  return b;
}
