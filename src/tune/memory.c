// memory.c - the most memory that a plan takes on a worker. Not times (graph.c).
//
// Idea: a step is walked once: the forward adds what it keeps, the backward of a block makes again what the forward
// threw away, gives back what the block kept and adds gradients.
#include "tune/tune.h"

typedef struct {
  i64 all, heavy, gradients; // kept by the forward; results of heavy ops; of the block's gradients
} block_bytes;

static i64 kept(const tune_job *j, const tune_plan *p, const block_bytes *b, u32 k) {
  switch ((tune_recompute)p->recompute[k]) {
  case TUNE_KEEP: return b[k].all;
  case TUNE_CHEAP: return MIN(b[k].all, b[k].heavy + j->input_bytes[k]);
  case TUNE_WHOLE: return MIN(b[k].all, j->input_bytes[k]);
  }
  return 0;
}

i64 tune_bytes(const tune_job *j, const tune_plan *p) {
  arena *tmp = arena_new();
  block_bytes *b = ZNEWN(tmp, block_bytes, j->nblocks + 1);
  u32 *order = NEWN(tmp, u32, j->nops + 1), n = 0; // blocks as the backward meets them
  bool *met = ZNEWN(tmp, bool, j->nblocks + 1);
  i64 gradients = 0;
  for (u32 k = 0; k < j->nops; k++) {
    const tune_op *o = &j->op[k];
    if (o->phase == TUNE_FORWARD)
      b[o->block].all += o->keeps_bytes, b[o->block].heavy += o->heavy ? o->result_bytes : 0;
    if (o->phase == TUNE_BACKWARD && !met[o->block]) met[o->block] = true, order[n++] = o->block;
  }
  for (u32 k = 0; k < j->ntensors; k++)
    b[j->op[j->tensor[k].op].block].gradients += j->tensor[k].bytes, gradients += j->tensor[k].bytes;
  // Of several microbatches the gradients of the first are there while the last is computed.
  const i64 m = p->accumulate;
  i64 live = m > 1 ? gradients : 0;
  for (u32 k = 0; k < j->nblocks; k++) live += kept(j, p, b, k) / m;
  i64 most = live;
  for (u32 i = 0; i < n; i++) {
    const u32 k = order[i];
    const i64 keeps = kept(j, p, b, k) / m;
    most = MAX(most, live - keeps + b[k].all / m + (m > 1 ? 0 : b[k].gradients));
    live += (m > 1 ? 0 : b[k].gradients) - keeps;
    most = MAX(most, live);
  }
  arena_free(tmp);
  return j->fixed_bytes + most;
}
