// splits_live.h - what one tensor and one operator cost in an assignment, step by step: what both solvers of splits.h are made
// of (the dynamic program by splits_kinds.h). Private to splits_*.c.
#ifndef HEDDLE_PLAN_SPLITS_LIVE_H
#define HEDDLE_PLAN_SPLITS_LIVE_H
#include "plan/splits.h"

// A live tensor: the state it was made in (LIES_NONE: a weight that nobody has read), the state of its sum,
// which other states there are in forward and backward, and the sum of gradients so far.
typedef struct {
  u8 made, base, grad;
  u8 back; // the state in which the gradient is needed
  u16 has[2];
} live;
typedef struct {
  i64 time_ps, bytes;
  bool possible;
} step;

// A result is made with an option of its operator.
live splits_begin(const splits_tensor *t, const splits_option *o, u32 result, step *s);
// An operand is read, forward and backward, and its gradient comes back.
void splits_read(const splits_problem *p, const splits_tensor *t, live *l, const splits_op *x, u32 operand,
                 const splits_option *o, step *s);
void splits_end(const splits_tensor *t, const live *x, step *s); // after the last reader

// The steps of one tensor alone depend on the options of the operator that makes it and of those that read it: an assignment
// costs what its operators take and what these sums are.
typedef struct {
  u32 *begin;            // by tensor: its readers in `reader`, in order
  u32 *reader, *operand; // operators, and which operand it is
  u32 *maker, *result;   // by tensor: number from 1 of its operator, 0: none; which result
} splits_readers;
void splits_readers_of(arena *a, const splits_problem *p, splits_readers *out);
step splits_tensor_cost(const splits_problem *p, const splits_readers *r, u32 tensor, const u16 *option);

// The same problem without the weights that one operator alone reads: what they cost follows from its option, and is part of
// that option's time and bytes.
typedef struct {
  splits_problem p;
  const bool *const *never; // [operator][option]: there is no way for such a weight
} splits_folded;
void splits_fold(arena *a, const splits_problem *p, const splits_readers *r, splits_folded *out);

// What a tensor between a named operator and the others costs at most to be in another state: with that more than the
// fastest solution, one with other named options is beaten by the fastest and conversions.
i64 splits_slack(const splits_problem *p, double ps_per_byte);
#endif
