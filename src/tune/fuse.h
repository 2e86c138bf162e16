// fuse.h - when gradients are communicated: fused into buckets. Not whose gradients they are, nor what they are cut into
// (tune_best_cut).
//
// The model is dPRO's (MLSys 2022, section 5.1): a backward makes gradients one after the other; one channel
// communicates them in that order, each when it is there and the one before it is done. A bucket is there with the last
// of its gradients and takes the time of its bytes. What is asked for is the end of the last.
#ifndef HEDDLE_TUNE_FUSE_H
#define HEDDLE_TUNE_FUSE_H
#include "base/base.h"

typedef struct {
  i64 ready_ps; // when the backward has made it; does not fall
  i64 bytes;
} fuse_gradient;
typedef struct {
  // ps to communicate that many bytes at once. Any function that does not fall with the bytes.
  i64 (*time)(const void *arg, i64 bytes);
  const void *arg;
} fuse_cost;
typedef struct {
  u32 n;      // buckets
  u32 *first; // n + 1: bucket k has gradients first[k] .. first[k + 1] - 1
  i64 *start_ps, *end_ps;
  i64 ends_ps; // of the last; 0 without gradients
} fuse_plan;

// The earliest end there is, over all ways to cut the sequence into buckets: a dynamic programme, O(n^2). Exact, since
// the channel is free the earlier the better whatever comes then. Of equal ends the one with the fewest buckets. Buckets
// have at most `most` bytes if they have several gradients; 0: no limit.
fuse_plan fuse_exact(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, i64 most);
// These buckets.
fuse_plan fuse_given(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, const u32 *first,
                     u32 buckets);

// Buckets that are closed when they have so many bytes, as PyTorch's; the first when it has first_bytes.
fuse_plan fuse_by_bytes(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, i64 first_bytes,
                        i64 bytes);
// At the end of every cycle what is there, up to so many bytes, as Horovod's. Starts are multiples of the cycle.
fuse_plan fuse_by_cycle(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, i64 cycle_ps, i64 bytes);
#endif
