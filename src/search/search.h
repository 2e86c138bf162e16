// search.h - which plan is best: the space of strategies, bounds that rule out, every remaining plan applied
// and simulated. Layer 7. Values are never approximated: the time of a plan here is what `heddle sim` says of
// it, to the picosecond.
#ifndef HEDDLE_SEARCH_H
#define HEDDLE_SEARCH_H
#include "plan/plan.h"
#include "cost/cost.h"
#include "sim/sim.h"

typedef struct {
  strategy_set space; // what was said; other rows are searched as choices.def has it (docs/strategy.md)
  u64 only; // by choice_id: leave out plans in which what was said of it cannot be chosen. Not 0: no value need be in a plan
  u32 ranks; // devices to use, dp x tp x pp; 0: all of the machine
  bool pow2; // `*` of degrees and microbatches: powers of two only
  bool train;
  i64 batch;        // samples, for throughput and for dealing out; 0: extent of the batch of the program
  i64 memory_bytes; // of every rank; 0: what the machine leaves usable; -1: no limit
  optim_opts optim;
  sim_bytes bytes;
  u32 top;         // how many plans to keep; 0: all
  bool fusible;    // the model has attention that attention=fused changes: reports and hints name it
  bool plain;      // nothing is searched besides: not what equal shares would take
  u32 part, parts; // evaluate this part of the space, from 1, of so many; 0: all of it
  bool no_bounds;  // evaluate everything (tests)
  int threads;     // 0: all cores
} search_opts;

// Every point ends in one of them, the first that is true of it in this order:
//
//   1. impossible, or equal to another, as its plan alone shows;
//   2. too large, by its lower bound;
//   3. too slow: its lower bound on time is above last_ps;
//   4. impossible, or equal to another, as shows when it is applied; too large; it fits.
//
// A point of step 1 that is equal to another stays so if that one is impossible by step 4: then both are, and
// its reason is that of both.
//
// So the state of a point does not depend on when, where or beside which others it was evaluated. A point
// that was simulated before last_ps was known, and turns out too slow, says nothing of its simulation. With
// no_bounds 2 and 3 are left out.
typedef enum {
  SEARCH_OPEN,         // not looked at; at the end of a search: left to another part
  SEARCH_IMPOSSIBLE,   // no plan: something does not divide
  SEARCH_EQUAL,        // the same program as another point
  SEARCH_BOUND_MEMORY, // too large, by its lower bound
  SEARCH_BOUND_TIME,   // too slow to be kept, by its lower bound
  SEARCH_OVER_MEMORY,  // simulated, and too large
  SEARCH_RAN,          // simulated, and it fits
  SEARCH_STATES
} search_state;
enum { SEARCH_FAMILIES = 2 }; // choices whose values have families
typedef struct {
  strategy_packed packed; // search_strategy
  u8 state;               // search_state
  u8 same_zero;           // the level of ZeRO that is the same program; its own if there is none lower
  u16 why_id;             // the diagnostic of its reason, where this part of the search found it
  u32 stands;      // for so many strategies, of which it is the first: all impossible for its reason; else 1
  bool applied;    // its plan was applied: the state is of step 3 or 4
  bool fitted;     // its first cuts (CUTS_TO_TRY) are too large, so it stands for those that fit
  bool bound_work; // bound_ps is that of the busiest place, measured; else of products at the best rate
  u32 same_as; // number from 1 of the point that has its plan, until points are ranked; 0: it is the first that has it
  u16 family[SEARCH_FAMILIES]; // (below) that it is of, numbers from 1; 0: none
  u32 nalso;                   // families (below) of points with its plan that it is not of
  const strategy_packed *
      resolved; // of those that are kept: with the numbers that `auto` stands for; NULL: it has none, or is not kept
  const strategy_packed *
      cuts_of; // it stands for other cuts of the plan of that one, which was too large when it was applied; NULL: no
  u64 plan;                // plan_hash; 0 where there is none
  i64 time_ps, peak_bytes; // per step; peak of the fullest rank. 0 where the plan was not simulated
  i64 host_bytes,
      host_usable; // too large of host memory alone: what the node that lacks most needs, and has; else 0
  i64 alone_ps;    // of one step alone, to the end of its last rank; not below time_ps
  i64 bound_ps, bound_bytes; // lower bounds
  i64 products_ps; // lower bound on time of products at the best rate alone, which is all that is known of every point
  i64 bound_fill_ps; // of bound_ps, to fill and drain the pipeline; the rest is work
  i64 stages_ps; // ... of the work of its busiest stages on devices of several kinds; 0: it was not measured
  i64 first_ps; // ... with its first cuts, which are too large (fitted): those that fit are not looked for if it is too slow with these
  i64 work_ps;  // bound_ps as it was before the point was applied, which may raise it; 0: it was not measured
  double utilisation, bubble,
      comm; // of one step alone, mean over ranks: computing; neither; communication that holds up computing
  const u32 *also; // nalso of them
  const char *why; // of those that are impossible or equal to another: the reason; in `a`
} search_point;
static inline strategy search_strategy(const search_point *p) { return strategy_unpack(&p->packed); }
static inline choice_value search_value(const search_point *p, choice_id id) {
  return strategy_packed_value(&p->packed, id);
}
static inline bool search_is(const search_point *p, const strategy *s) {
  const strategy own = search_strategy(p);
  return !strategy_compare(&own, s);
}
static inline const char *search_str(arena *a, const search_point *p) {
  const strategy s = search_strategy(p);
  return strategy_str(a, &s);
}
// Impossible points whose reasons differ in numbers only.
typedef struct {
  u32 count;
  u16 why_id;
  const char *why; // of the example
  const strategy *example;
  bool varies; // their reasons are not all the same
} search_reason;
// The plans of one value of schedule or coshard, where a search was told several.
typedef struct {
  choice_id of;
  bool applies; // false: those in which it cannot be chosen
  choice_value value;
  u32 fit, large, slow; // programs: simulated, and they fit; too large; too slow, by their bounds
  const search_point
      *best;             // the fastest that was simulated and fits, maybe said by another value; NULL: none
  i64 time_ps, alone_ps; // of it, as of a point
  i64 bound_ps;          // none of the slow ones takes less, nor less than last_ps; 0: there are none
} search_family;
// Replicas of different make-up, and what became of the plans with them (make_ups.c).
typedef struct {
  choice_value is;
  u32 plans, simulated;
  i64 bound_ps;            // none of them takes less; 0: not known
  const search_point *top; // of the best that became of them
  // Of those that are not listed in the file of a part:
  strategy_packed first; // the first plan of all
  search_point rest; // the first of those that need no applying, of the best that became of them; open: none
  i64 rest_ps;       // their least bound; 0: not known
  u32 slow;          // how many others, all too slow
  VEC(i64) bounds;   // their bounds, in order
  u32 lead;          // of those that are listed the number of the first, by rank
} search_make_up;
// The best plan of fewer devices, where it is faster than the best of all; else time_ps is 0.
typedef struct {
  u32 ranks;
  i64 time_ps; // of a step
  const char *strategy;
} search_fewer;
// What is known of the host memory of a machine.
typedef enum { HOST_NONE, HOST_HOLDS, HOST_UPDATES } search_host;
typedef struct {
  u32 space;           // how many points there are
  u32 npoints;         // of them that are listed: all, but where parts were merged those that the parts list
  search_point *point; // ranked: plans that fit by time, then the others; ties by less memory, then by order
  u32 nfit;            // how many ran and fit
  i64 last_ps;         // time of the last plan that is kept, o->top from the best; INT64_MAX: all are kept
  u32 count[SEARCH_STATES]; // of the space
  u32 nreasons, reasons_cap;
  search_reason *reason; // the most frequent first
  u32 nfamilies;         // by choice, then by value; of a choice there is none or several
  search_family *family;
  u32 nmake_ups; // the best first
  search_make_up *make_up;
  u32 most_microbatches;   // of mb=*, where the batch is not known; else 0
  const char *no_replicas; // of replicas=*, which were too many to be tried; NULL: none
  const char *devices;     // of several kinds: ranks that plans were tried on; NULL: all
  i64 bound_ps;            // of the step on devices of several kinds, whatever the plan; 0: not known
  u32 host_count;          // of those that are too large, which fit the devices but not host memory ...
  i64 host_least,
      host_usable; // ... what the smallest of them needs on a node, and how much that has
  i64 least_bytes; // that a plan which is too large for devices needs at least; 0: none is
  search_fewer one_device, one_node;
  u32 dealt;        // points that were left to applying them, in this part
  u32 refit;        // besides: they were equal to one that is too large, and stand for other cuts
  const char *hint; // where nothing fits: of the one reason why points are impossible; NULL: none
  search_host host;
  u64 screened;      // fingerprint of all points, their plans and bounds, before any was applied
  bool bound_failed; // a plan was faster than its measured bound, so these were not used: a bug
  // Of the best plan on devices of several kinds; nkinds 0: of one kind, or no plan was simulated whole
  u32 nkinds;
  const plan_kind *kinds;
  // The best plan that gives every device the same, searched by itself. 0 and NULL: none fits, or the best
  // one does
  i64 even_ps;
  const char *even;
  i64 spread_ps;    // its step, if no device ever waited, at the speed of its microbatches; 0: not known
  i64 memory_bytes; // the limit that was applied; of devices with limits of their own the largest ...
  i64 memory_least; // ... and the smallest; else the same
  i64 batch;
} search_result;

// Searches. src: forward program (with a loss first if o->train). Everything in the result is in `a`. false
// and diagnostics if nothing fits (E_NO_PLAN, with the counts of reasons) or if a value that was said is in
// no point (E_STRATEGY).
bool search_run(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                const search_opts *o, search_result *r);

// ---- parts of a search (docs/parts.md) -----------------------------------------------------------------
// A search with o->parts ends well when nothing of its part fits. What reports say beside its result:
typedef struct {
  const char *model, *types,
      *machine; // as they are called; element types of the weights, NULL: there are none
  u32 ranks;
  batchnorm_stats batchnorm; // under the best plan
  const char *layers;        // of the best plan, by stage; NULL: of one stage, or not known
  u32 nmeasured; // of the best plans of the search, what so many of them took when they were run, ps; 0: it was not
  const i64 *measured_ps;
  double mfu; // of the best plan: arithmetic but for what is done again, over the peak; 0: not known
} search_about;

// What one part of a search found, in a form that parts of other machines can be put beside.
typedef struct search_part search_part;
search_part *search_part_of(arena *a, const prog *src, const machine *m, const cost_opts *costs,
                            const search_opts *o, const search_about *about, const search_result *r);
void search_part_print(const search_part *p, strbuf *out);
// NULL and diagnostics if it is no part, is cut off, or was changed.
search_part *search_part_parse(ctx *c, arena *a, sym file, const char *text, size_t n);
search_part *search_part_read(ctx *c, arena *a, const char *path);
// The result of the whole search, of all of its parts in any order. top: how many plans to keep, 0: as many
// as the parts. Of o, what reports read is set. False and diagnostics: parts of several searches, missing or
// doubled ones, a top above theirs; or, as search_run has it, that nothing fits.
bool search_merge(ctx *c, arena *a, u32 n, search_part *const *part, u32 top, search_opts *o,
                  search_about *about, search_result *r);

// ---- what users ask of a search (why.c, whatif.c) --------------------------------------------------------
// One plan, simulated with all that is told of it.
typedef struct {
  strategy s;
  bool ran;
  const char *why; // it did not: the reason
  u64 plan;        // plan_hash
  sim_result r;    // with the kinds of memory, split and critical path
  u32 tightest;    // the rank that lacks most memory, or has least to spare
  i64 limit_bytes; // what it has
  bool has_path;
  cost_parts path;
} search_look;
// Why not these choices? What is not said of them is searched: `asked` is the best plan that agrees.
typedef struct {
  strategy_set said;
  search_result agree;       // the search of the plans that agree
  const search_point *point; // of `agree`, that was looked at
  const search_point *known; // the same strategy where the question came from; NULL: that did not search it
  u32 rank; // of `known` among those that were simulated and fit, from 1; 0: it is none of them
  search_look winner, asked;
} search_why;
// line: values of any choices, one each. False and diagnostics, located in it: it is no strategy, or no plan
// of this machine has them.
bool search_why_not(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                    const search_opts *o, const search_result *r, const char *line, search_why *out);
void search_look_at(arena *a, const prog *src, const machine *m, const cost_opts *costs, const search_opts *o,
                    const strategy *s, search_look *out);
// Choices that are often faster at other values than the ones a search had. several: devices of several kinds.
u32 search_left_out(const search_opts *o, u32 ranks, bool several, choice_id out[CHOICE_COUNT]);
// Other machines, and choices that were left out: searched again.
typedef struct {
  const char *what; // "memory limit +25 %"
  u32 ranks;
  i64 memory_bytes;
  bool found;
  const char *why; // it was not: the reason
  strategy s;
  i64 time_ps, alone_ps, peak_bytes;
} search_what_if;
enum { WHAT_IF_MOST = CHOICE_COUNT + 8 };
u32 search_what_ifs(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                    const search_opts *o, const search_result *r, search_what_if out[WHAT_IF_MOST]);

// ---- one split for every operator (auto.c, docs/auto.md) ---------------------------------------------------
// The best of plans in which every operator has a split of its own, and of all hybrids.
typedef struct {
  bool automatic; // else the answer is a hybrid: no automatic plan that fits is faster
  strategy s;
  auto_plan plan;                    // of an automatic one
  i64 time_ps, alone_ps, peak_bytes; // simulated
  i64 usable_bytes;                  // of the tightest rank
  double utilisation, comm, bubble;
  search_result hybrids; // of all degrees, the best first
  bool has_same;         // is there a hybrid of the same degrees that fits?
  search_point same;     // the best one
  u32 degrees,
      simulated; // degrees (with microbatches, storage, recomputation) that were split; simulated plans
  u32 equal;     // of the degrees: so many whose plan is that of others, and was not simulated again
  // Of the simulated ones, that fit; that are too large for devices, and for host memory alone: of these the least that one
  // needs on a node, and what that node has
  u32 fit, too_large, host_too_large;
  i64 host_least_bytes, host_usable_bytes;
  u32 ruled_out;      // degrees besides that are slower by these estimates than all that were simulated
  u64 points;         // that the dynamic programs looked at
  u32 inexact;        // of the degrees: so many whose dynamic program hit its limits
  u32 walked, better; // of the degrees: split by Markov chains; so many by the better for it
  auto_opts how;
} search_auto;
// Everything is in `a`. False and diagnostics: no plan fits, or what was said leaves none.
bool search_auto_run(planner *pl, arena *a, const machine *m, const cost_opts *costs, const search_opts *o,
                     const auto_opts *how, search_auto *r);

// The options of policy_hybrid that a strategy of the search stands for.
hybrid_opts search_hybrid(const search_opts *o, const strategy *s);
#endif
