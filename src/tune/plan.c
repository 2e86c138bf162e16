// plan.c - jobs and plans: verified, made, copied. Not what they are worth (graph.c, memory.c).
#include "tune/tune.h"

bool tune_verify(const tune_job *j) {
  for (u32 k = 0; k < j->nops; k++) {
    const tune_op *o = &j->op[k];
    if (o->ps < 0 || o->block >= j->nblocks || (k && o->phase < o[-1].phase)) return false;
  }
  for (u32 k = 0; k < j->ntensors; k++) {
    const tune_tensor *t = &j->tensor[k];
    if (t->op >= j->nops || j->op[t->op].phase != TUNE_BACKWARD || t->bytes < 0) return false;
    if (k && t->op < t[-1].op) return false; // not in the order in which they are made
  }
  return true;
}

tune_plan tune_plan_new(arena *a, const tune_job *j) {
  tune_plan p = {.joined = ZNEWN(a, u8, j->nops + 1),
                 .bucketed = ZNEWN(a, u8, j->ntensors + 1),
                 .cut = NEWN(a, u32, j->ntensors + 1),
                 .recompute = ZNEWN(a, u8, j->nblocks + 1),
                 .half = ZNEWN(a, u8, j->nops + 1),
                 .compressed = ZNEWN(a, u8, j->ntensors + 1),
                 .ps = NEWN(a, i64, j->nops + 1),
                 .bytes = NEWN(a, i64, j->ntensors + 1),
                 .accumulate = 1};
  for (u32 k = 0; k < j->nops; k++) p.ps[k] = -1;
  for (u32 k = 0; k < j->ntensors; k++) p.cut[k] = 1, p.bytes[k] = -1;
  return p;
}

void tune_plan_set(const tune_job *j, tune_plan *to, const tune_plan *p) {
  memcpy(to->joined, p->joined, j->nops);
  memcpy(to->bucketed, p->bucketed, j->ntensors);
  memcpy(to->cut, p->cut, j->ntensors * sizeof *p->cut);
  memcpy(to->recompute, p->recompute, j->nblocks);
  memcpy(to->half, p->half, j->nops);
  memcpy(to->compressed, p->compressed, j->ntensors);
  memcpy(to->ps, p->ps, j->nops * sizeof *p->ps);
  memcpy(to->bytes, p->bytes, j->ntensors * sizeof *p->bytes);
  to->accumulate = p->accumulate, to->cycle_ps = p->cycle_ps, to->priority = p->priority;
}

tune_plan tune_plan_copy(arena *a, const tune_job *j, const tune_plan *p) {
  tune_plan to = tune_plan_new(a, j);
  tune_plan_set(j, &to, p);
  return to;
}

bool tune_may_join(const tune_job *j, u32 op) {
  return op && j->op[op].saved_ps > 0 && j->op[op].phase == j->op[op - 1].phase;
}

static i64 op_ps(const tune_job *j, const tune_plan *p, u32 k) {
  const tune_op *o = &j->op[k];
  i64 ps = p->ps[k] >= 0 ? p->ps[k] : p->half[k] && o->half_ps ? o->half_ps : o->ps;
  if (o->phase != TUNE_UPDATE) ps = (ps + p->accumulate - 1) / p->accumulate;
  return ps;
}

i64 tune_group_ps(const tune_job *j, const tune_plan *p, u32 first, u32 *end) {
  i64 sum = op_ps(j, p, first), most = sum;
  u32 k = first + 1;
  for (; k < j->nops && p->joined[k]; k++) {
    const i64 ps = op_ps(j, p, k);
    sum += ps - MIN(j->op[k].saved_ps, ps), most = MAX(most, ps);
  }
  *end = k;
  return MAX(sum, most);
}

i64 tune_bucket_bytes(const tune_job *j, const tune_plan *p, u32 first, u32 *end) {
  i64 sum = 0;
  u32 k = first;
  do {
    i64 b = p->bytes[k] >= 0 ? p->bytes[k] : j->tensor[k].bytes;
    if (p->bytes[k] < 0 && p->half[j->tensor[k].op] && j->op[j->tensor[k].op].half_ps) b = (b + 1) / 2;
    if (p->compressed[k]) b = (i64)((double)b * j->compressed + 0.5);
    sum += b;
  } while (++k < j->ntensors && p->bucketed[k]);
  *end = k;
  return sum;
}
