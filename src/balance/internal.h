// internal.h - what the files of balance/ share among themselves and hide from everybody else.
#ifndef HEDDLE_BALANCE_INTERNAL_H
#define HEDDLE_BALANCE_INTERNAL_H
#include "balance/balance.h"

__extension__ typedef __int128 wide; // products of two i64

// ---- shares -------------------------------------------------------------------------------------------
static inline i64 share_time(const balance_batch *in, u32 kind, i64 quanta) {
  if (in->time) return in->time(in->arg, kind, quanta);
  return add_sat(in->kind[kind].fixed_ps, mul_sat(in->kind[kind].each_ps, quanta));
}
// Quanta that a rank of a kind can have: no more than there are.
static inline i64 share_most(const balance_batch *in, u32 kind) { return MIN(in->kind[kind].cap, in->total); }

// Shares of times that may fall; tmp is scratch. The sums of least shares and caps have been checked.
balance_fault shares_any(arena *a, arena *tmp, const balance_batch *in, balance_split *out);
i64 shares_bound(const balance_batch *in);
#endif
