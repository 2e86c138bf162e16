// baselines.c - plans that people use, for a job. Not the search, which has to be better (search.c).
#include "tune/fuse.h"
#include "tune/tune.h"

const tune_baseline_row tune_baseline_rows[TUNE_BASELINES] = {
#define BASELINE(id, name, about) {#id, name, about},
#include "tune/baselines.def"
#undef BASELINE
};

static i64 sync_time(const void *arg, i64 bytes) { return tune_sync_ps(arg, bytes, 1, TUNE_ONE_WORKER); }

enum { MIB = 1 << 20, DDP_MIB = 25 }; // bucket_cap_mb, unless it is set
static const i64 MS = 1000000000;

// Gradients as they are ready without any fusion, and what takes their times.
typedef struct {
  arena *a;
  const tune_job *j;
  fuse_gradient *g;
  fuse_cost c;
} gradients;

static gradients gradients_of(arena *a, const tune_job *j) {
  const tune_plan p = tune_plan_new(a, j);
  const tune_step s = tune_step_of(a, j, &p, TUNE_ONE_WORKER);
  gradients x = {a, j, NEWN(a, fuse_gradient, j->ntensors + 1), {sync_time, j}};
  for (u32 k = 0; k < j->ntensors; k++) x.g[k] = (fuse_gradient){s.ready_ps[k], j->tensor[k].bytes};
  return x;
}

static tune_plan plan_of(const gradients *x, const fuse_plan *f, i64 cycle_ps) {
  tune_plan p = tune_plan_new(x->a, x->j);
  for (u32 b = 0; b < f->n; b++)
    for (u32 k = f->first[b] + 1; k < f->first[b + 1]; k++) p.bucketed[k] = 1;
  p.cycle_ps = cycle_ps;
  return p;
}

static tune_plan ddp(const gradients *x, i64 cap_bytes) {
  const fuse_plan f = fuse_by_bytes(x->a, x->g, x->j->ntensors, &x->c, MIB, cap_bytes);
  return plan_of(x, &f, 0);
}

static tune_plan horovod(const gradients *x, i64 cycle_ps, i64 bytes) {
  const fuse_plan f = fuse_by_cycle(x->a, x->g, x->j->ntensors, &x->c, cycle_ps, bytes);
  return plan_of(x, &f, cycle_ps);
}

static bool better(const tune_job *j, const tune_plan *p, tune_setting *best) {
  const i64 ps = tune_time(j, p, TUNE_ONE_WORKER);
  if (best->ps && ps >= best->ps) return false;
  best->ps = ps, best->plan = *p;
  return true;
}

tune_setting tune_best_ddp(arena *a, const tune_job *j) {
  const gradients x = gradients_of(a, j);
  tune_setting best = {.ps = 0};
  for (i64 k = 257; k; k--) { // of equal ones PyTorch's own, which need not be set, else the largest
    const i64 bytes = (k == 257 ? DDP_MIB : k) * MIB;
    const tune_plan p = ddp(&x, bytes);
    if (better(j, &p, &best)) best.bytes = bytes;
  }
  return best;
}

tune_setting tune_best_horovod(arena *a, const tune_job *j) {
  const gradients x = gradients_of(a, j);
  tune_setting best = {.ps = 0};
  for (i64 ms = 1; ms <= 50; ms = ms < 5 ? ms + 1 : ms + 5)
    for (i64 mib = 1; mib <= 128; mib *= 2) {
      const tune_plan p = horovod(&x, ms * MS, mib * MIB);
      if (better(j, &p, &best)) best.bytes = mib * MIB, best.cycle_ps = ms * MS;
    }
  return best;
}

tune_plan tune_baseline_of(arena *a, const tune_job *j, tune_baseline b) {
  tune_plan p = tune_plan_new(a, j);
  if (!j->ntensors && b != TUNE_BASE_fuse_all) return p;
  const gradients x = gradients_of(a, j);
  switch (b) {
  case TUNE_BASE_none: break;
  case TUNE_BASE_fuse_all:
    for (u32 k = 1; k < j->nops; k++) p.joined[k] = tune_may_join(j, k);
    break;
  case TUNE_BASE_one_bucket: memset(p.bucketed + 1, 1, j->ntensors - 1); break;
  case TUNE_BASE_ddp: return ddp(&x, DDP_MIB * MIB);
  case TUNE_BASE_horovod: return horovod(&x, 5 * MS, 64 * MIB);
  case TUNE_BASE_autotune: return tune_best_horovod(a, j).plan;
  case TUNE_BASE_byteps:
    for (u32 k = 0; k < j->ntensors; k++)
      p.cut[k] = (u32)MIN(MAX(1, (j->tensor[k].bytes + 4095999) / 4096000), 4096);
    break;
  case TUNE_BASELINES: assert(false);
  }
  return p;
}
