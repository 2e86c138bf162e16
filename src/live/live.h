// live.h - where values lie that are alive for a time each. Layer 1. Knows no programs: moments are numbers, sizes come
// from the caller. What is alive when is for the caller to know: the runtime's pieces (eval/), or any other list.
#ifndef HEDDLE_LIVE_H
#define HEDDLE_LIVE_H
#include "base/base.h"

typedef struct {
  i64 bytes;    // 0 and more
  u32 from, to; // alive in moments from, ..., to - 1; from < to
} live_value;
typedef struct {
  i64 peak;   // bytes alive at once, at most, every size rounded up to `align`: no packing takes less
  i64 extent; // bytes that the offsets reach
} live_packed;

// offset[k]: where value k begins, from 0, a multiple of align (a power of two). Values that are alive at the same
// moment do not overlap. Several packings, the best of which is taken, none after one that reaches no further than the
// peak: first the greedy algorithm by size of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference" (2020), section 5.2; then those that begin with what is alive in the moment of the peak. Each is tried again
// with what stuck out above the peak first. Same input, same offsets. Time: of one packing n log n, and for every value
// those that are alive with it; 24 packings and four million such neighbours at most, the last packing whole. tmp: scratch.
live_packed live_pack(arena *tmp, const live_value *v, u32 n, i64 align, i64 *offset);
// That peak alone.
i64 live_peak(arena *tmp, const live_value *v, u32 n, i64 align);
#endif
