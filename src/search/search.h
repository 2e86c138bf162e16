// search.h - which plan is best: the space of choices, bounds that rule out, every remaining plan applied and
// simulated. Layer 7. Values are never approximated: the time of a plan here is what `heddle sim` says of it,
// to the picosecond.
#ifndef HEDDLE_SEARCH_H
#define HEDDLE_SEARCH_H
#include "plan/plan.h"
#include "cost/cost.h"
#include "sim/sim.h"

enum { SEARCH_DEGREES = 64 };
typedef struct {
  u32 ranks; // devices to use; 0: all of the machine
  // Fixed choices are lists of one; empty lists are searched: degrees over the divisors of ranks (powers of
  // two only if pow2), microbatches over the powers of two (and divisors of the batch unless pow2) up to
  // max_micro, only with stages.
  u32 ndata, ntensor, npipeline, nmicro, nzero, nrecompute, nschedule;
  u32 data[SEARCH_DEGREES], tensor[SEARCH_DEGREES], pipeline[SEARCH_DEGREES], micro[SEARCH_DEGREES];
  u32 zero[4], recompute[3], schedule[2];
  bool pow2, train, sequence, overlap, sync_batchnorm;
  bool micro_all;   // microbatches without stages too (gradient accumulation)
  u32 max_micro;    // 0: 128
  i64 batch;        // samples, for throughput and for dealing out; 0: extent of the batch of the program
  i64 memory_bytes; // of every rank; 0: what the machine leaves usable; -1: no limit
  optim_opts optim;
  sim_bytes accounting;
  u32 top;         // how many plans to keep; 0: all
  bool no_bounds;  // evaluate everything (tests)
  int threads;     // 0: all cores
  u32 part, parts; // of the space, from 0; parts 0: all of it
} search_opts;

typedef enum {
  SEARCH_RAN,
  SEARCH_INDIVISIBLE,
  SEARCH_BOUND_MEMORY,
  SEARCH_BOUND_TIME,
  SEARCH_OVER_MEMORY,
  SEARCH_STATES
} search_state;
typedef struct {
  u32 data, tensor, pipeline, micro, zero, recompute, schedule;
  search_state state;
  i64 time_ps, peak_bytes;   // of one step; peak of the fullest rank. 0 where the plan was not simulated
  i64 bound_ps, bound_bytes; // proven lower bounds
  double utilisation, bubble,
      comm;        // mean over ranks: computing; neither; communication that holds up computing
  const char *why; // of those that did not run: the reason; in `a`
} search_point;
typedef struct {
  u32 npoints;
  search_point *point; // ranked: plans that fit by time, then the others; ties by less memory, then by order
  u32 nfit;            // how many ran and fit
  u32 count[SEARCH_STATES];
  u64 time_ns;      // wall clock of the search
  i64 memory_bytes; // the limit that was applied
  i64 batch;
  i64 one_device_ps; // of one step on one device, where that is faster than the best plan; else 0
} search_result;

// Searches. src: forward program (with a loss first if o->train). Everything in the result is in `a`. false
// and diagnostics if nothing fits (E_NO_PLAN, with the counts of reasons).
bool search_run(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                const search_opts *o, search_result *r);

// What moving a byte between devices is worth in flops on a machine: policy_hybrid's flops_per_byte.
double search_price(const machine *m);
// The options of policy_hybrid that a point stands for (flops_per_byte left to the caller).
hybrid_opts search_hybrid(const search_opts *o, const search_point *p);
#endif
