// passes.c - the graph passes: each proposes changes of a plan. Not which are kept (search.c).
//
// Theorems of dPRO (MLSys 2022, section 5.1) decide without a replay only where they are sure, that is, where both the
// device and the channel are free no later and nothing that comes then can lose:
// - Theorem 1: fusing operations u, v is right if the gradients of u take less to communicate than fusing saves, the
//   channel is idle when they are ready, and the fused operation takes at least as long as the longer of the two. Where
//   it says no, later operations may still gain: that is tried.
// - Theorem 2: fusing gradients u, v is right if the bucket of both ends earlier than those of u and v one after the
//   other, where one channel serves them in order. Of more than a pair it is not the best (fuse.h has that).
#include "tune/tune.h"

static u32 fused_with(const tune_plan *p, u32 op) {
  while (p->joined[op]) op--;
  return op;
}

static u32 bucket_of(const tune_plan *p, u32 tensor) {
  while (p->bucketed[tensor]) tensor--;
  return tensor;
}

static bool plain_channel(const tune_look *x) {
  return !x->whole && x->job->link.sync == TUNE_ALL_REDUCE && !x->plan->cycle_ps && !x->plan->priority &&
         x->plan->accumulate == 1;
}

// Gradients of ops [first, end).
static u32 tensors_of(const tune_job *j, u32 first, u32 end, u32 *from) {
  u32 n = 0;
  for (u32 k = 0; k < j->ntensors; k++)
    if (j->tensor[k].op >= first && j->tensor[k].op < end && !n++) *from = k;
  return n;
}

// Does fusing the group that ends before op with that of op surely help?
static bool theorem_1(const tune_look *x, tune_plan *p, u32 op) {
  const tune_job *j = x->job;
  const u32 u = fused_with(p, op - 1);
  u32 end, from = 0;
  const u32 n = tensors_of(j, u, op, &from);
  if (!n)
    return !x->plan->priority || j->op[op].phase != TUNE_FORWARD; // nothing is made by u that others wait for
  if (!plain_channel(x) || p->recompute[j->op[op].block]) return false;
  const i64 before = tune_group_ps(j, p, u, &end), this = tune_group_ps(j, p, op, &end);
  p->joined[op] = 1;
  const i64 saved = before + this - tune_group_ps(j, p, u, &end);
  p->joined[op] = 0;
  // All gradients of u in one bucket that has no others, on an idle channel.
  const u32 b = bucket_of(p, from);
  const i64 sync = tune_sync_ps(j, tune_bucket_bytes(j, p, b, &end), 1, TUNE_ONE_WORKER);
  return b == from && end == from + n && x->step->start_ps[b] == x->step->ready_ps[end - 1] && sync < saved;
}

static tune_verdict pass_op_fusion(const tune_look *x, u32 k, tune_plan *p) {
  if (k >= x->step->nops) return TUNE_END;
  // The group of the path and the one before it; groups change while the pass runs.
  const u32 op = x->step->op[k];
  if (p->joined[op] || !tune_may_join(x->job, op)) return TUNE_SKIP;
  const bool sure = !x->whole && theorem_1(x, p, op);
  p->joined[op] = 1;
  // Theorem 3: their gradients as well, where they follow each other.
  u32 from = 0, end;
  for (end = op + 1; end < x->job->nops && p->joined[end];) end++;
  if (tensors_of(x->job, op, end, &from) && from && x->job->tensor[from - 1].op >= fused_with(p, op) &&
      !p->bucketed[from])
    p->bucketed[from] = 1;
  else if (sure)
    return TUNE_TAKE;
  return TUNE_TRY;
}

static tune_verdict pass_tensor_fusion(const tune_look *x, u32 k, tune_plan *p) {
  const tune_job *j = x->job;
  if (k >= x->step->nbuckets) return TUNE_END;
  const u32 v = x->step->bucket[k];
  if (!v || p->bucketed[v]) return TUNE_SKIP;
  const u32 u = bucket_of(p, v - 1);
  u32 end, after;
  const i64 u_bytes = tune_bucket_bytes(j, p, u, &end), v_bytes = tune_bucket_bytes(j, p, v, &after);
  p->bucketed[v] = 1;
  if (!x->whole) p->cut[u] = tune_best_cut(j, u_bytes + v_bytes, TUNE_ONE_WORKER);
  if (!plain_channel(x)) return TUNE_TRY;
  // The channel is free for u when the bucket before it has ended.
  const tune_step *s = x->step;
  const i64 free = u ? s->end_ps[bucket_of(p, u - 1)] : 0,
            both = tune_sync_ps(j, u_bytes + v_bytes, 1, x->scope);
  const i64 fused = MAX(free, s->ready_ps[after - 1]) + both;
  const i64 apart = MAX(s->end_ps[u], s->ready_ps[after - 1]) + tune_sync_ps(j, v_bytes, 1, x->scope);
  return fused < apart ? TUNE_TRY : TUNE_SKIP;
}

static tune_verdict pass_partition(const tune_look *x, u32 k, tune_plan *p) {
  const tune_job *j = x->job;
  const bool ring = j->link.sync != TUNE_SERVERS, powers = x->whole || ring; // powers: of 2, each replayed
  if (ring && !p->priority) return TUNE_END; // pieces only add overheads, unless others go between them
  const u32 ways = powers ? 6 : 1;
  if (k >= x->step->nbuckets * ways) return TUNE_END;
  const u32 b = x->step->bucket[k / ways];
  u32 end;
  if (p->bucketed[b]) return TUNE_SKIP;
  const u32 cut =
      powers ? 2u << k % ways : tune_best_cut(j, tune_bucket_bytes(j, p, b, &end), TUNE_ONE_WORKER);
  if (cut == p->cut[b]) return TUNE_SKIP;
  p->cut[b] = cut;
  return TUNE_TRY;
}

static tune_verdict pass_half(const tune_look *x, u32 k, tune_plan *p) {
  u32 n = 0;
  if (k) return TUNE_END;
  for (u32 i = 0; i < x->job->nops; i++)
    if (!p->half[i] && x->job->op[i].half_ps && x->job->op[i].half_ps < x->job->op[i].ps) p->half[i] = 1, n++;
  return n ? TUNE_TRY : TUNE_END;
}

static tune_verdict pass_compress(const tune_look *x, u32 k, tune_plan *p) {
  if (x->job->compressed <= 0 || k >= x->step->nbuckets) return TUNE_END;
  u32 end;
  tune_bucket_bytes(x->job, p, x->step->bucket[k], &end);
  if (p->compressed[x->step->bucket[k]]) return TUNE_SKIP;
  memset(p->compressed + x->step->bucket[k], 1, end - x->step->bucket[k]);
  return TUNE_TRY;
}

// As it is, with kernels of the forward apart where one reads what the one before does not wait for, with every gradient
// alone, with both: what is fused waits together, so priorities gain little where all is fused already.
static tune_verdict pass_priority(const tune_look *x, u32 k, tune_plan *p) {
  const tune_job *j = x->job;
  if (k > 3 || !j->ntensors || j->link.workers < 2 || p->cycle_ps || p->priority) return TUNE_END;
  p->priority = true;
  for (u32 t = 0; t < j->ntensors && k & 1; t++)
    if (j->tensor[t].read_by < j->nops) p->joined[j->tensor[t].read_by] = 0;
  if (k & 2) memset(p->bucketed, 0, j->ntensors);
  return TUNE_TRY;
}

const tune_pass tune_passes[TUNE_PASSES] = {
#define PASS(id, usual, about) {#id, about, usual, pass_##id, NULL},
#include "tune/passes.def"
#undef PASS
};

u32 tune_passes_usual(void) {
  u32 passes = 0;
  for (u32 k = 0; k < TUNE_PASSES; k++) passes |= (u32)tune_passes[k].usual << k;
  return passes;
}

u32 tune_passes_named(ctx *c, const char *list) {
  u32 passes = 0;
  for (const char *end, *s = list; s; s = *end ? end + 1 : NULL) {
    end = s + strcspn(s, ",");
    char name[32] = {0};
    memcpy(name, s, MIN((size_t)(end - s), sizeof name - 1));
    near_name near = near_to(name, strlen(name));
    u32 k = 0;
    for (; k < TUNE_PASSES && strcmp(name, tune_passes[k].id); k++) near_try(&near, tune_passes[k].id);
    passes |= 1u << k;
    if (k < TUNE_PASSES) continue;
    diag(c, E_USAGE, (loc){0}, "--passes: there is no graph pass '%s'", name);
    if (near.name)
      diag_hint(c, "did you mean '%s'?", near.name);
    else
      diag_hint(c, "a list such as op_fusion,tensor_fusion; docs/diagnosis.md has them all");
    return 0;
  }
  return passes;
}
