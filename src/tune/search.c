// search.c - dPRO's Algorithm 1 and what makes it exact where it can be. Not what a pass proposes (passes.c).
//
// Idea: a memory pass first, if the job does not fit; then graph passes along the critical path, round after round, until
// none helps. What is kept is kept in all blocks that are alike (symmetry). Then the buckets by the exact dynamic
// programme (fuse.h), and every baseline as it is: the best of all is the result.
#include "tune/fuse.h"
#include "tune/tune.h"

typedef struct {
  arena *a, *tmp;
  const tune_job *j;
  const tune_opts *o;
  tune_result *r;
  tune_plan now, trial; // trial: room for a proposal
  i64 ps;               // of now
} search;

static i64 price(search *s, const tune_plan *p) {
  s->r->replays++;
  return tune_time(s->j, p, s->o->scope);
}

static bool allowed(const search *s, u32 pass) {
  return (s->o->passes ? s->o->passes : tune_passes_usual()) >> pass & 1;
}

// ---- the coarsened view ---------------------------------------------------------------------------------
// Operations that make no gradient join the next one of their phase that does, or that ends it; gradients of one
// operation are one. Neither makes a gradient wait.
static void coarsen(search *s) {
  const tune_job *j = s->j;
  bool *makes = ZNEWN(s->tmp, bool, j->nops + 1);
  for (u32 k = 0; k < j->ntensors; k++) {
    makes[j->tensor[k].op] = true;
    if (k && j->tensor[k].op == j->tensor[k - 1].op && allowed(s, TUNE_PASS_tensor_fusion))
      s->now.bucketed[k] = 1;
  }
  for (u32 k = 1; k < j->nops && allowed(s, TUNE_PASS_op_fusion); k++)
    if (!makes[k - 1] && tune_may_join(j, k)) s->now.joined[k] = 1;
}

// ---- symmetry -------------------------------------------------------------------------------------------
static void mirror_ops(const search *s, const tune_plan *was, tune_plan *p) {
  const tune_job *j = s->j;
  for (u32 k = 0; k < j->nops; k++) {
    if (p->joined[k] == was->joined[k]) continue;
    u32 first = k;
    while (first && j->op[first - 1].block == j->op[k].block && j->op[first - 1].phase == j->op[k].phase)
      first--;
    for (u32 i = 0; i < j->nops; i++) {
      const bool begins = !i || j->op[i - 1].block != j->op[i].block || j->op[i - 1].phase != j->op[i].phase;
      const u32 like = i + k - first;
      if (begins && like < j->nops && j->op[like].phase == j->op[k].phase &&
          j->op[i].phase == j->op[k].phase && j->op[i].block == j->op[like].block &&
          j->kind[j->op[i].block] == j->kind[j->op[k].block] && tune_may_join(j, like))
        p->joined[like] = p->joined[k];
    }
  }
}

static void mirror_tensors(const search *s, const tune_plan *was, tune_plan *p) {
  const tune_job *j = s->j;
#define BLOCK(t) j->op[j->tensor[t].op].block
  for (u32 k = 0; k < j->ntensors; k++) {
    if (p->bucketed[k] == was->bucketed[k] && p->cut[k] == was->cut[k]) continue;
    u32 first = k;
    while (first && BLOCK(first - 1) == BLOCK(k)) first--;
    for (u32 i = 0; i < j->ntensors; i++) {
      const u32 like = i + k - first;
      if ((!i || BLOCK(i - 1) != BLOCK(i)) && like < j->ntensors && BLOCK(like) == BLOCK(i) &&
          j->kind[BLOCK(i)] == j->kind[BLOCK(k)] && like) {
        p->bucketed[like] = p->bucketed[k], p->cut[like] = p->cut[k];
      }
    }
  }
#undef BLOCK
}

// ---- Algorithm 1 ----------------------------------------------------------------------------------------
static void keep(search *s, const tune_plan *p, i64 ps) {
  tune_plan_set(s->j, &s->now, p);
  s->ps = ps;
}

// One proposal; with its likes in other blocks first, if those are wanted and help.
static bool consider(search *s, tune_verdict v) {
  if (v == TUNE_TAKE) {
    keep(s, &s->trial, s->ps);
    return true;
  }
  if (!s->o->fine) {
    tune_plan all = tune_plan_copy(s->tmp, s->j, &s->trial);
    mirror_ops(s, &s->now, &all), mirror_tensors(s, &s->now, &all);
    const i64 ps = price(s, &all);
    if (ps < s->ps) {
      keep(s, &all, ps);
      return true;
    }
  }
  const i64 ps = price(s, &s->trial);
  if (ps >= s->ps) return false;
  keep(s, &s->trial, ps);
  return true;
}

static void run_pass(search *s, const tune_pass *pass, u32 *kept) {
  const arena_mark_t mark = arena_mark(s->tmp);
  const tune_step step = tune_step_of(s->tmp, s->j, &s->now, s->o->scope);
  const tune_plan was = tune_plan_copy(s->tmp, s->j, &s->now);
  const tune_look look = {
      .job = s->j, .plan = &was, .step = &step, .scope = s->o->scope, .whole = s->o->whole, .arg = pass->arg};
  s->r->replays++;
  for (u32 k = 0;; k++) {
    tune_plan_set(s->j, &s->trial, &s->now);
    const tune_verdict v = pass->propose(&look, k, &s->trial);
    if (v == TUNE_END) break;
    if (v != TUNE_SKIP) *kept += consider(s, v);
  }
  arena_release(s->tmp, mark);
  s->ps = price(s, &s->now); // after what was taken without a replay
}

// Until five rounds in a row change little (dPRO, 7.4), or one changes nothing.
static void algorithm_1(search *s) {
  for (u32 quiet = 0; quiet < 5;) {
    const i64 before = s->ps;
    for (u32 k = 0; k < TUNE_PASSES; k++)
      if (allowed(s, k)) run_pass(s, &tune_passes[k], &s->r->kept[k]);
    for (u32 k = 0; k < s->o->nown; k++) run_pass(s, &s->o->own[k], &s->r->kept[TUNE_PASSES + k]);
    if (s->ps >= before) return;
    quiet = (double)(before - s->ps) < 1e-3 * (double)before ? quiet + 1 : 0;
  }
}

// ---- better than Algorithm 1 ----------------------------------------------------------------------------
static i64 bucket_time(const void *arg, i64 bytes) {
  const tune_job *j = arg;
  return tune_sync_ps(j, bytes, tune_best_cut(j, bytes, TUNE_ONE_WORKER), TUNE_ONE_WORKER);
}

// The exact buckets for operations as they are fused.
static bool exact_buckets(search *s) {
  const tune_job *j = s->j;
  const arena_mark_t mark = arena_mark(s->tmp);
  const tune_step step = tune_step_of(s->tmp, j, &s->now, s->o->scope);
  fuse_gradient *g = NEWN(s->tmp, fuse_gradient, j->ntensors + 1);
  for (u32 k = 0; k < j->ntensors; k++) {
    u32 end;
    tune_plan one = s->now;
    one.bucketed = ZNEWN(s->tmp, u8, j->ntensors + 1);
    g[k] = (fuse_gradient){step.ready_ps[k], tune_bucket_bytes(j, &one, k, &end)};
  }
  const fuse_plan f = fuse_exact(s->tmp, g, j->ntensors, &(fuse_cost){bucket_time, j}, 0);
  tune_plan_set(j, &s->trial, &s->now);
  s->trial.cycle_ps = 0;
  memset(s->trial.bucketed, 1, j->ntensors);
  for (u32 b = 0; b < f.n; b++) s->trial.bucketed[f.first[b]] = 0;
  for (u32 b = 0; b < f.n; b++) {
    u32 end;
    const i64 bytes = tune_bucket_bytes(j, &s->trial, f.first[b], &end);
    s->trial.cut[f.first[b]] = tune_best_cut(j, bytes, TUNE_ONE_WORKER);
  }
  const i64 ps = price(s, &s->trial), was = s->ps;
  if (ps < s->ps) keep(s, &s->trial, ps);
  arena_release(s->tmp, mark);
  return s->ps < was;
}

static bool turn(search *s) {
  const i64 ps = price(s, &s->trial);
  if (ps >= s->ps) return false;
  keep(s, &s->trial, ps);
  return true;
}

// Every border between operations that may be fused, the other way round: alone, and with a border of the gradients that
// the operations on both sides make.
static bool turn_borders(search *s) {
  const tune_job *j = s->j;
  const i64 was = s->ps;
  for (u32 k = 1; k < j->nops && allowed(s, TUNE_PASS_op_fusion); k++) {
    if (!tune_may_join(j, k)) continue;
    tune_plan_set(j, &s->trial, &s->now);
    s->trial.joined[k] ^= 1;
    if (turn(s) || !allowed(s, TUNE_PASS_tensor_fusion)) continue;
    for (u32 t = 1; t < j->ntensors; t++) {
      if (j->tensor[t].op + 1 < k || j->tensor[t - 1].op > k + 1) continue;
      tune_plan_set(j, &s->trial, &s->now);
      s->trial.joined[k] ^= 1, s->trial.bucketed[t] ^= 1;
      if (turn(s)) break;
    }
  }
  return s->ps < was;
}

// The same of gradients.
static bool turn_buckets(search *s) {
  const i64 was = s->ps;
  for (u32 k = 1; k < s->j->ntensors; k++) {
    u32 end;
    tune_plan_set(s->j, &s->trial, &s->now);
    s->trial.bucketed[k] ^= 1;
    if (!s->trial.bucketed[k])
      s->trial.cut[k] = tune_best_cut(s->j, tune_bucket_bytes(s->j, &s->trial, k, &end), TUNE_ONE_WORKER);
    turn(s);
  }
  return s->ps < was;
}

enum { CUTS = 4 }; // into 1, 2, 4, 8 pieces
// With priorities a bucket that is cut lets others pass between its pieces.
static bool turn_cuts(search *s) {
  const i64 was = s->ps;
  for (u32 k = 0; k < s->j->ntensors; k++)
    for (u32 cut = 1; cut < 1u << CUTS && s->now.priority && !s->now.bucketed[k]; cut *= 2) {
      if (s->now.cut[k] == cut) continue;
      tune_plan_set(s->j, &s->trial, &s->now);
      s->trial.cut[k] = cut;
      turn(s);
    }
  return s->ps < was;
}

// One change of a plan: of a border of operations, of a border of gradients, of a cut.
static bool change(const search *s, u32 move, tune_plan *p) {
  const tune_job *j = s->j;
  if (move < j->nops) {
    if (!tune_may_join(j, move) || !allowed(s, TUNE_PASS_op_fusion)) return false;
    p->joined[move] ^= 1;
  } else if ((move -= j->nops) < j->ntensors) {
    if (!move || !allowed(s, TUNE_PASS_tensor_fusion)) return false;
    p->bucketed[move] ^= 1;
  } else {
    move -= j->ntensors;
    u32 *cut = &p->cut[move / CUTS];
    if (*cut == 1u << move % CUTS || !allowed(s, TUNE_PASS_partition)) return false;
    *cut = 1u << move % CUTS;
  }
  return true;
}

// With priorities changes depend on each other more than without. Where there are few, every two of them.
enum { MOVES_MOST = 64 };
static bool turn_pairs(search *s) {
  const u32 n = s->j->nops + s->j->ntensors * (1 + CUTS);
  const i64 was = s->ps;
  for (u32 a = 0; a < n && n <= MOVES_MOST && s->now.priority; a++)
    for (u32 b = a + 1; b < n; b++) {
      tune_plan_set(s->j, &s->trial, &s->now);
      if (change(s, a, &s->trial) && change(s, b, &s->trial)) turn(s);
    }
  return s->ps < was;
}

static bool turn_priority(search *s) {
  const i64 was = s->ps;
  if (allowed(s, TUNE_PASS_priority))
    run_pass(s, &tune_passes[TUNE_PASS_priority], &s->r->kept[TUNE_PASS_priority]);
  return s->ps < was;
}

static void better(search *s) {
  const bool buckets = allowed(s, TUNE_PASS_tensor_fusion) && s->j->ntensors && s->j->link.workers > 1;
  const bool one_channel = s->j->link.sync == TUNE_ALL_REDUCE; // the exact programme's
  for (u32 round = 0; round < 8; round++) {
    bool gained = buckets && one_channel && exact_buckets(s);
    gained |= turn_priority(s);
    gained |= turn_borders(s);
    gained |= buckets && turn_buckets(s);
    gained |= allowed(s, TUNE_PASS_partition) && turn_cuts(s);
    gained |= turn_pairs(s);
    if (!gained) break;
  }
}

static bool may_start(const search *s, u32 b) {
  const bool ops = b == TUNE_BASE_fuse_all, cuts = b == TUNE_BASE_byteps;
  return b == TUNE_BASE_none || allowed(s, ops    ? TUNE_PASS_op_fusion
                                           : cuts ? TUNE_PASS_partition
                                                  : TUNE_PASS_tensor_fusion);
}

// Every baseline as it is, to compare with, and as another start: borders that only help together are found from one
// side or the other. Of large jobs only the baseline that is better than the plan found, if there is one.
enum { STARTS_MOST = 64 };
static void with_baselines(search *s, const tune_plan *memory) {
  if (s->o->plain) return;
  better(s);
  tune_plan best = tune_plan_copy(s->a, s->j, &s->now);
  i64 best_ps = s->ps;
  for (u32 b = 0; b < TUNE_BASELINES; b++) {
    tune_plan p = tune_baseline_of(s->tmp, s->j, (tune_baseline)b);
    memcpy(p.recompute, memory->recompute, s->j->nblocks);
    p.accumulate = memory->accumulate;
    s->r->base_ps[b] = price(s, &p);
    if (!may_start(s, b)) continue;
    const bool large = s->j->nops > STARTS_MOST;
    if (large && s->r->base_ps[b] >= best_ps) continue;
    for (u32 with = 0; with < (allowed(s, TUNE_PASS_priority) && !p.cycle_ps && !large ? 2 : 1); with++) {
      p.priority = with;
      keep(s, &p, with ? price(s, &p) : s->r->base_ps[b]);
      better(s);
      if (s->ps < best_ps) best_ps = s->ps, tune_plan_set(s->j, &best, &s->now);
    }
  }
  keep(s, &best, best_ps);
}

// ---- memory ---------------------------------------------------------------------------------------------
static bool fits(const search *s, i64 bytes) { return !s->o->memory_bytes || bytes <= s->o->memory_bytes; }

// The fewest blocks, from the first, that make it fit; all if that is not enough.
static void recompute(search *s, tune_plan *p, tune_recompute how) {
  for (u32 k = 0; k < s->j->nblocks && !fits(s, tune_bytes(s->j, p)); k++) p->recompute[k] = (u8)how;
}

static void try_memory(search *s, tune_memory *m) {
  m->ps = price(s, &m->plan), m->bytes = tune_bytes(s->j, &m->plan);
  m->fits = fits(s, m->bytes);
  s->r->nmemory++;
}

// The faster that fits; of those that do not the smallest. To compute one block again is to have all of it at once, so
// where there is no other nothing is gained.
static void memory_passes(search *s) {
  static const struct {
    const char *name;
    tune_recompute recompute;
    u32 accumulate;
  } ways[] = {{"as it is", TUNE_KEEP, 1},          {"recompute cheap ops", TUNE_CHEAP, 1},
              {"recompute blocks", TUNE_WHOLE, 1}, {"accumulate over 2", TUNE_KEEP, 2},
              {"accumulate over 4", TUNE_KEEP, 4}, {"accumulate over 8", TUNE_KEEP, 8}};
  tune_memory *best = NULL, *tried = ZNEWN(s->a, tune_memory, COUNT_OF(ways));
  for (u32 k = 0; k < COUNT_OF(ways); k++) {
    if (ways[k].recompute && s->j->nblocks < 2) continue;
    tune_memory *m = &tried[s->r->nmemory];
    m->name = ways[k].name, m->plan = tune_plan_copy(s->a, s->j, &s->now);
    if (ways[k].recompute) recompute(s, &m->plan, ways[k].recompute);
    m->plan.accumulate = ways[k].accumulate;
    try_memory(s, m);
    if (!best || (m->fits != best->fits ? m->fits : m->fits ? m->ps < best->ps : m->bytes < best->bytes))
      best = m;
  }
  s->r->memory = tried;
  keep(s, &best->plan, best->ps);
}

tune_result tune_search(arena *a, const tune_job *j, const tune_opts *o) {
  assert(tune_verify(j));
  tune_result r = {.fits = true, .kept = ZNEWN(a, u32, TUNE_PASSES + o->nown + 1)};
  search s = {.a = a, .tmp = arena_new(), .j = j, .o = o, .r = &r};
  s.now = tune_plan_new(a, j), s.trial = tune_plan_new(s.tmp, j);
  s.ps = r.unchanged_ps = price(&s, &s.now);
  r.unchanged_bytes = j->peak_bytes ? tune_bytes(j, &s.now) : 0;
  if (j->peak_bytes && !fits(&s, r.unchanged_bytes)) memory_passes(&s);
  const tune_plan memory = tune_plan_copy(a, j, &s.now);
  if (!o->fine) coarsen(&s), s.ps = price(&s, &s.now);
  algorithm_1(&s);
  with_baselines(&s, &memory);
  r.plan = s.now, r.ps = s.ps;
  r.bytes = j->peak_bytes ? tune_bytes(j, &r.plan) : 0;
  r.fits = !j->peak_bytes || fits(&s, r.bytes);
  arena_free(s.tmp);
  return r;
}
