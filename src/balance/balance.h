// balance.h - exact shares of work for devices of different speed and memory. Layer 1. Knows no programs and no
// machines: times, bytes and limits come from the caller. Integers only, so that an optimum is one: times in
// picoseconds, memory in bytes.
//
// Every function returns BALANCE_OK, or what makes the problem impossible; the caller words it, from the figures
// that the result then holds. Results lie in the arena that the caller passes, scratch does not stay there. Same
// input, same result, on every machine.
#ifndef HEDDLE_BALANCE_H
#define HEDDLE_BALANCE_H
#include "base/base.h"

typedef enum {
  BALANCE_OK,
  BALANCE_CAPS,   // shares: the caps sum to less than what is shared out, by `off`
  BALANCE_LEASTS, // shares: the least shares sum to more than that, by `off`
  BALANCE_SUM,    // shares: none that are possible have this sum
} balance_fault;

// ---- shares: data, tensor -----------------------------------------------------------------------------
// `total` quanta (samples; heads or tiles of a tensor) are shared out over ranks, so that the slowest rank is as
// fast as it can be: rank i gets b_i quanta, least_i <= b_i <= cap_i, sum b_i = total, and max t_i(b_i) is minimal.
// Ranks that are alike are one kind. A rank without quanta takes part too: t_i(0) counts.
//
// Picoseconds for so many quanta of a rank of a kind, below BALANCE_TIMES. Asked for least to min(cap, total).
typedef i64 balance_time(const void *arg, u32 kind, i64 quanta);
#define BALANCE_TIMES  ((i64)1 << 60)
#define BALANCE_QUANTA ((i64)1 << 31)
#define BALANCE_RANKS  ((i64)1 << 20)
typedef struct {
  u32 count;             // ranks
  i64 least, cap;        // quanta of one rank, 0 <= least <= cap
  i64 fixed_ps, each_ps; // fixed + b * each for b quanta; not read where balance_batch.time is given
} balance_ranks;
typedef struct {
  i64 total; // 0 to BALANCE_QUANTA
  u32 nkinds;
  const balance_ranks *kind; // up to BALANCE_RANKS ranks, one or more
  balance_time *time;        // NULL: fixed_ps and each_ps
  const void *arg;
  // Times may fall as quanta are added (kernels made for whole tiles). INT64_MAX: not possible with so many.
  bool falls;
} balance_batch;
typedef struct {
  const i64 *share; // by rank, those of kind 0 first
  i64 time_ps;      // of the slowest rank: no shares have less
  i64 bound_ps;     // not more than time_ps, and found without a search: see below
  i64 off;          // BALANCE_CAPS, BALANCE_LEASTS
} balance_split;

// The optimum. Where times never fall it is T* = min {T : sum b_i(T) >= total}, b_i(T) the most quanta that rank i
// finishes by T; found by bisection, with O(nkinds log total log T) times asked for. Of all optima it is the one
// that a heap gives: the first `total` quanta in the order of (time of the rank with this quantum, its number on
// the rank, rank); so ranks of one kind differ by one quantum at most, and the first have more.
//
// Where times may fall: bisection over the times that there are, with the sums that the ranks can make as sets of
// bits; O(ranks * cap * total / 64) for each of its log(nkinds * cap) steps. Of all optima, the one in which each
// rank in turn has the share nearest to an even part of what is left, the larger of two.
//
// The bound is the fractional relaxation without caps: B quanta take at least B / sum r_i, r_i the best rate of
// rank i in quanta per second. For fixed + b * each it is (B + sum f_i / e_i) / sum 1 / e_i; the rate of other times
// that never fall is taken from a 16th of the shares and is at most a 16th too high. Also no less than the time
// that a rank needs for the quanta it must have.
balance_fault balance_shares(arena *a, const balance_batch *in, balance_split *out);

// How many quanta of each_bytes fit a memory beside fixed_bytes: a cap. 0 where not even those fit; INT64_MAX
// where quanta take no bytes.
i64 balance_cap(i64 memory_bytes, i64 fixed_bytes, i64 each_bytes);
#endif
