// straggler_blame.c - what a pipelined job loses to its operations, workers, stages, data ranks and microbatches.
//
// Idea: a group is charged with what a step takes in which all is ideal but the group ("alone"), and credited with what
// is won if all is as recorded but the group ("repaired"). Both are replays of one graph in which little differs from
// one that was replayed before (straggler_rerun.c). They differ where several groups are late at once: each alone costs
// the step as much as all, and repairing one of them wins nothing.
#include "diagnose/straggler_making.h"
#include "sim/sim.h"

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

// The nodes of every number of a kind, and the end of every step with them alone and without them.
typedef struct {
  u32 n;
  u32 *at, *node;        // n + 1
  i64 *alone, *repaired; // n x nsteps
  straggler_score *score;
} kind;
enum { KINDS = 5 };
typedef struct {
  const straggler *s;
  kind kinds[KINDS];
  straggler_rerun **rerun; // of every thread
} scoring;

static kind kind_of(arena *a, arena *tmp, const straggler *s, const straggler_blame *b, belongs *of, u32 n) {
  kind k = {.n = n,
            .at = ZNEWN(tmp, u32, (size_t)n + 1),
            .node = NEWN(tmp, u32, s->n),
            .alone = NEWN(tmp, i64, (size_t)n * s->nsteps + 1),
            .repaired = NEWN(tmp, i64, (size_t)n * s->nsteps + 1),
            .score = NEWN(a, straggler_score, n + 1)};
  u32 *to = NEWN(tmp, u32, s->n);
  for (u32 i = 0; i < s->n; i++) {
    to[i] = s->node[i].worker == TRACE_NONE ? TRACE_NONE : of(s, b, &s->node[i]);
    if (to[i] != TRACE_NONE) k.at[to[i] + 1]++;
  }
  for (u32 i = 0; i < n; i++) k.at[i + 1] += k.at[i];
  u32 *fill = arena_dup(tmp, k.at, ((size_t)n + 1) * sizeof *fill);
  for (u32 i = 0; i < s->n; i++)
    if (to[i] != TRACE_NONE) k.node[fill[to[i]]++] = i;
  return k;
}

static void score_step(void *arg, u32 step, int thread) {
  const scoring *x = arg;
  const straggler *s = x->s;
  straggler_rerun *r = x->rerun[thread];
  const i64 *recorded = s->recorded_ps + (size_t)step * s->n;
  for (u32 repaired = 0; repaired < 2; repaired++) {
    const i64 *base = repaired ? recorded : s->ideal_ps, *other = repaired ? s->ideal_ps : recorded;
    straggler_rerun_base(r, base);
    for (u32 k = 0; k < KINDS; k++) {
      const kind *of = &x->kinds[k];
      i64 *out = repaired ? of->repaired : of->alone;
      for (u32 i = 0; i < of->n; i++)
        out[(size_t)i * s->nsteps + step] =
            straggler_rerun_with(r, of->node + of->at[i], of->at[i + 1] - of->at[i], other, base);
    }
  }
}

static void score_all(arena *a, const straggler *s, straggler_blame *b) {
  arena *tmp = arena_new();
  scoring x = {
      .s = s,
      .kinds = {kind_of(a, tmp, s, b, to_group, b->ngroups), kind_of(a, tmp, s, b, to_data, s->ndata),
                kind_of(a, tmp, s, b, to_stage, s->nstages), kind_of(a, tmp, s, b, to_worker, s->nworkers),
                kind_of(a, tmp, s, b, to_microbatch, s->nmicro)}};
  const int threads = MIN(cpu_count(), (int)s->nsteps);
  const straggler_next *next = straggler_next_of(tmp, s);
  x.rerun = NEWN(tmp, straggler_rerun *, threads);
  for (int k = 0; k < threads; k++) x.rerun[k] = straggler_rerun_new(tmp, s, next);
  parallel_for(threads, s->nsteps, score_step, &x);
  for (u32 k = 0; k < KINDS; k++)
    for (u32 i = 0; i < x.kinds[k].n; i++)
      x.kinds[k].score[i] = (straggler_score){straggler_mean(s, x.kinds[k].alone + (size_t)i * s->nsteps),
                                              straggler_mean(s, x.kinds[k].repaired + (size_t)i * s->nsteps)};
  b->type = x.kinds[0].score, b->data = x.kinds[1].score, b->stage = x.kinds[2].score;
  b->worker = x.kinds[3].score, b->microbatch = x.kinds[4].score;
  arena_free(tmp);
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
  arena *tmp = arena_new();
  bool *slow = ZNEWN(tmp, bool, s->nworkers);
  for (u32 k = 0; k < b->nslow; k++) slow[by[k]] = true;
  const size_t all = (size_t)s->nsteps * s->n;
  i64 *dur = NEWN(tmp, i64, all), *step = NEWN(tmp, i64, s->nsteps);
  for (size_t i = 0; i < all; i++) {
    const u32 k = (u32)(i % s->n), w = s->node[k].worker;
    dur[i] = w != TRACE_NONE && slow[w] ? s->ideal_ps[k] : s->recorded_ps[i];
  }
  straggler_replay(s, dur, step);
  b->workers_repaired_ps = straggler_mean(s, step);
  arena_free(tmp);
}

straggler_blame *straggler_blame_of(arena *a, const straggler *s) {
  straggler_blame *b = NEW(a, straggler_blame);
  find_groups(a, s, b);
  i64 *replayed = NEWN(a, i64, s->nsteps), *ideal = NEWN(a, i64, s->nsteps);
  straggler_replay(s, s->recorded_ps, replayed);
  arena *tmp = arena_new();
  i64 *dur = NEWN(tmp, i64, (size_t)s->nsteps * s->n);
  for (u32 i = 0; i < s->nsteps; i++) memcpy(dur + (size_t)i * s->n, s->ideal_ps, s->n * sizeof *dur);
  straggler_replay(s, dur, ideal);
  arena_free(tmp);
  b->replayed_step_ps = replayed, b->ideal_step_ps = ideal;
  b->replayed_ps = straggler_mean(s, replayed), b->ideal_ps = straggler_mean(s, ideal);
  spend(a, s, b);
  score_all(a, s, b);
  find_slowest(a, s, b);
  return b;
}
