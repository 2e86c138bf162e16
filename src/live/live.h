// live.h - what is alive when, and where it lies. Layer 4: above programs, so that what ends where is said once, for the
// simulator's bytes, the runtime, exports. Not who else holds what lies there, nor how much it is: those know that.
#ifndef HEDDLE_LIVE_H
#define HEDDLE_LIVE_H
#include "ir/ir.h"

// ---- what is alive when (lifetimes.c) ------------------------------------------------------------------
// The instructions of a function count from 1. A value begins with the one that makes it (value_info.def), a parameter
// before all of them, and ends with the one that reads it last. What is returned stays. To wait for a value (`after`) is
// no use. An argument of a call that reads it last ends in the callee, with the parameter.
enum { LIVE_RETURNED = ~0u, LIVE_NOWHERE = ~0u };
// last: by value, who reads it last; who makes it, if nobody reads it; 0: a parameter that nobody reads; LIVE_RETURNED.
// inside: the same without the return, for a caller that does not use the result.
typedef struct {
  const u32 *last, *inside;
} lifetimes;
lifetimes live_of(arena *a, const func_info *f);
// The operand whose place result r of an instruction of f takes, if sizes agree and nothing else holds it: the one that
// it continues (op_continues), if the program donates that; of a communication also if it ends there. LIVE_NOWHERE: none.
u32 live_taken(const func_info *f, const instr *i, const u32 *last, u32 r);

// ---- where it lies (pack.c) ----------------------------------------------------------------------------
// Here moments are numbers, of instructions or of anything else.
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
