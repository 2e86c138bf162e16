// baselines.c - plans that people use, for a job. Not the search, which has to be better (search.c).
#include "tune/fuse.h"
#include "tune/tune.h"

const tune_baseline_row tune_baseline_rows[TUNE_BASELINES] = {
#define BASELINE(id, name, about) {#id, name, about},
#include "tune/baselines.def"
#undef BASELINE
};

static i64 sync_time(const void *arg, i64 bytes) { return tune_sync_ps(arg, bytes, 1, TUNE_ONE_WORKER); }

// Buckets by a policy, of gradients that are ready as without any fusion.
static void fuse(arena *a, const tune_job *j, tune_plan *p, fuse_policy policy, i64 cycle_ps) {
  const tune_step s = tune_step_of(a, j, p, TUNE_ONE_WORKER);
  fuse_gradient *g = NEWN(a, fuse_gradient, j->ntensors + 1);
  for (u32 k = 0; k < j->ntensors; k++) g[k] = (fuse_gradient){s.ready_ps[k], j->tensor[k].bytes};
  const fuse_plan f = fuse_by(a, policy, g, j->ntensors, &(fuse_cost){sync_time, j});
  for (u32 b = 0; b < f.n; b++)
    for (u32 k = f.first[b] + 1; k < f.first[b + 1]; k++) p->bucketed[k] = 1;
  p->cycle_ps = cycle_ps;
}

tune_plan tune_baseline_of(arena *a, const tune_job *j, tune_baseline b) {
  tune_plan p = tune_plan_new(a, j);
  if (!j->ntensors && b != TUNE_BASE_fuse_all) return p;
  switch (b) {
  case TUNE_BASE_none: break;
  case TUNE_BASE_fuse_all:
    for (u32 k = 1; k < j->nops; k++) p.joined[k] = tune_may_join(j, k);
    break;
  case TUNE_BASE_one_bucket: memset(p.bucketed + 1, 1, j->ntensors - 1); break;
  case TUNE_BASE_ddp: fuse(a, j, &p, FUSE_ddp, 0); break;
  case TUNE_BASE_horovod: fuse(a, j, &p, FUSE_horovod, 5000000000); break;
  case TUNE_BASE_autotune: fuse(a, j, &p, FUSE_autotune, 0); break;
  case TUNE_BASE_byteps:
    for (u32 k = 0; k < j->ntensors; k++)
      p.cut[k] = (u32)MIN(MAX(1, (j->tensor[k].bytes + 4095999) / 4096000), 4096);
    break;
  case TUNE_BASELINES: assert(false);
  }
  return p;
}
