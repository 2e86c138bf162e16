// tune.h - a data-parallel job and what would make its steps shorter: fused operations, buckets of gradients, cut
// tensors, recomputation, accumulation. Layer 6. Not where a job comes from (diagnose/, model.c makes one of a program).
//
// Idea (dPRO, MLSys 2022): a job is what one worker runs, in its order, and the gradients that all workers have to sum.
// A plan says what is done to it; a graph pass proposes changes of a plan; the search keeps those that make the step
// shorter. What a plan is worth is found by replaying its graph, of one worker where all do the same.
#ifndef HEDDLE_TUNE_H
#define HEDDLE_TUNE_H
#include "base/base.h"

enum { TUNE_NONE = ~0u };

// ---- jobs -----------------------------------------------------------------------------------------------
typedef enum { TUNE_FORWARD, TUNE_BACKWARD, TUNE_UPDATE } tune_phase;
typedef struct {
  sym name;
  tune_phase phase;
  bool heavy;       // a matmul or a convolution: not what is computed again cheaply
  i64 ps;           // alone
  i64 half_ps;      // in half precision; 0: not known
  i64 saved_ps;     // so much less if it is fused with the op before it; 0: it cannot be
  i64 keeps_bytes;  // forward: of its results, what the backward reads
  i64 result_bytes; // forward: all of them; of heavy ops these are kept to compute the others again
  u32 block;        // layer that it belongs to; of a phase blocks are consecutive
} tune_op;
typedef struct {
  sym name;
  i64 bytes;
  u32 op; // of the backward, that makes it
  u32 read_by; // the first op of the forward that reads its parameter; no op of the forward: the next step waits for it
} tune_tensor;
typedef enum { TUNE_ALL_REDUCE, TUNE_SERVERS } tune_sync;
typedef struct {
  tune_sync sync;
  u32 workers, servers;   // servers: of TUNE_SERVERS, each with a link of its own
  i64 start_ps;           // before every communication: launch, agreement
  i64 step_ps;            // latency of one step of a ring, or of a message
  double ps_per_byte;     // of a link
  double sum_ps_per_byte; // of a server that adds up
} tune_link;
typedef struct {
  u32 nops;
  tune_op *op; // as one worker runs them: forward, backward, updates
  u32 ntensors;
  tune_tensor *tensor; // by their ops
  u32 nblocks;
  u32 *kind;        // of a block: those of one kind are alike
  i64 *input_bytes; // of a block: what computing it again needs
  i64 fixed_bytes;  // weights, states, workspace; grows with nothing below
  i64 peak_bytes;   // recorded; 0: not known, then memory cannot be planned
  tune_link link;
  double compressed;           // a compressed gradient is so much of its size; 0: it cannot be compressed
  double compress_ps_per_byte; // on the device that made it
} tune_job;
// Do the job's parts fit each other: phases and blocks in order, gradients by backward ops? Who makes a job sees to it.
bool tune_verify(const tune_job *j);

// ---- plans: plan.c --------------------------------------------------------------------------------------
typedef enum { TUNE_KEEP, TUNE_CHEAP, TUNE_WHOLE } tune_recompute; // CHEAP: all but heavy ops
typedef struct {
  u8 *joined;     // of an op: it is one with the op before it
  u8 *bucketed;   // of a gradient: it is in the bucket of the one before it
  u32 *cut;       // of the first gradient of a bucket: partitions, from 1
  u8 *recompute;  // of a block
  u8 *half;       // of an op
  u8 *compressed; // of a gradient
  i64 *ps;        // of an op: what it takes instead; -1: as the job says
  i64 *bytes;     // of a gradient likewise
  u32 accumulate; // microbatches of a step, from 1
  bool
      priority; // what the next forward reads first is communicated first, and no kernel waits for more than it reads
  i64 cycle_ps; // communications start at multiples of it; 0: when they are ready
} tune_plan;
tune_plan tune_plan_new(arena *a, const tune_job *j); // nothing is changed
tune_plan tune_plan_copy(arena *a, const tune_job *j, const tune_plan *p);
void tune_plan_set(const tune_job *j, tune_plan *to, const tune_plan *p); // to has room
// Is op k, or gradient k, allowed to join the one before it?
bool tune_may_join(const tune_job *j, u32 op);
i64 tune_group_ps(const tune_job *j, const tune_plan *p, u32 first,
                  u32 *end); // fused ops from `first`: never less than
                             // the longest of them
i64 tune_bucket_bytes(const tune_job *j, const tune_plan *p, u32 first, u32 *end); // as it is sent

// ---- what a plan is worth: graph.c, memory.c ---------------------------------------------------------------
// TUNE_ALL_WORKERS: every worker and every step of a ring or message to a server is a node. TUNE_ONE_WORKER: one stands
// for all; the same times, as they do the same.
typedef enum { TUNE_ONE_WORKER, TUNE_ALL_WORKERS } tune_scope;
// A step begins with the forward; with plan.priority, where the forward of the next step begins before all gradients are
// there, it is taken from the first op of the backward to the last one of the next forward.
typedef struct {
  i64 ps;
  u32 nops, *op;          // first ops of groups on the critical path, in its order
  u32 nbuckets, *bucket;  // first gradients of buckets on it
  i64 *ready_ps;          // of every gradient
  i64 *start_ps, *end_ps; // of the bucket of a first gradient
} tune_step;
i64 tune_time(const tune_job *j, const tune_plan *p, tune_scope scope);
tune_step tune_step_of(arena *a, const tune_job *j, const tune_plan *p, tune_scope scope); // in a
// Of one bucket alone, from ready to summed up on all workers: its part of the graph.
i64 tune_sync_ps(const tune_job *j, i64 bytes, u32 cut, tune_scope scope);
// The cut of 1 to 64 with the least tune_sync_ps, the lowest of equal ones.
u32 tune_best_cut(const tune_job *j, i64 bytes, tune_scope scope);
i64 tune_bytes(const tune_job *j, const tune_plan *p); // peak of one worker

// ---- graph passes: passes.def ------------------------------------------------------------------------------
// Where the search is, as a pass sees it.
typedef struct {
  const tune_job *job;
  const tune_plan *plan;
  const tune_step *step; // of the plan when the pass began
  tune_scope scope;
  bool whole; // decide by replaying the whole graph alone
  void *arg;  // of the pass
} tune_look;
typedef enum {
  TUNE_END,  // there are no more proposals
  TUNE_SKIP, // the k-th one is not worth trying
  TUNE_TRY,  // kept if a replay says that the step is shorter
  TUNE_TAKE  // known to be no worse without one
} tune_verdict;
typedef struct tune_pass {
  const char *id, *about;
  bool usual; // on unless said otherwise: numbers stay what they are, and frameworks can be told
  // Edits p, a copy of the plan, as its k-th proposal.
  tune_verdict (*propose)(const tune_look *x, u32 k, tune_plan *p);
  void *arg;
} tune_pass;
typedef enum {
#define PASS(id, usual, about) TUNE_PASS_##id,
#include "tune/passes.def"
#undef PASS
  TUNE_PASSES
} tune_pass_id;
extern const tune_pass tune_passes[TUNE_PASSES];
// 1 << TUNE_PASS_.. of names with commas between them, "op_fusion,half". 0 and a diagnostic: there is no such pass.
u32 tune_passes_named(ctx *c, const char *list);
u32 tune_passes_usual(void);

// ---- baselines: baselines.def --------------------------------------------------------------------------------
typedef enum {
#define BASELINE(id, name, about) TUNE_BASE_##id,
#include "tune/baselines.def"
#undef BASELINE
  TUNE_BASELINES
} tune_baseline;
typedef struct {
  const char *id, *name, *about;
} tune_baseline_row;
extern const tune_baseline_row tune_baseline_rows[TUNE_BASELINES];
tune_plan tune_baseline_of(arena *a, const tune_job *j, tune_baseline b);
// The best that a framework can be told: PyTorch's bucket_cap_mb of 1 to 256 MiB; Horovod's cycle of 1 to 50 ms and
// threshold of 1 to 128 MiB. In a; ps of plan.
typedef struct {
  tune_plan plan;
  i64 ps, bytes, cycle_ps;
} tune_setting;
tune_setting tune_best_ddp(arena *a, const tune_job *j);
tune_setting tune_best_horovod(arena *a, const tune_job *j);

// ---- the search: search.c -----------------------------------------------------------------------------------
typedef struct {
  bool fine;        // not the coarsened view
  bool whole;       // no partial replay and no theorem
  tune_scope scope; // TUNE_ONE_WORKER unless every worker shall be replayed
  bool plain;       // dPRO's Algorithm 1 alone: without the exact programme and the baselines
  i64 memory_bytes; // of a device; 0: no limit
  u32 passes;       // 1 << TUNE_PASS_..; 0: tune_passes_usual
  u32 nown;         // passes of the caller
  const tune_pass *own;
} tune_opts;
typedef struct {
  const char *name; // "recompute", "accumulate 2", ..
  tune_plan plan;
  i64 ps, bytes;
  bool fits;
} tune_memory;
typedef struct {
  tune_plan plan;
  i64 ps, bytes, unchanged_ps, unchanged_bytes;
  i64 base_ps[TUNE_BASELINES]; // with the same memory pass; 0: opts.plain
  u32 nmemory;                 // ways to fit that were tried; 0: it fits as it is, or memory is not known
  const tune_memory *memory;
  bool fits;
  u32 *kept;   // proposals of every pass, the caller's behind the built-in ones
  u64 replays; // of whole graphs
} tune_result;
// In a. Never worse than any baseline that fits, unless opts.plain.
tune_result tune_search(arena *a, const tune_job *j, const tune_opts *o);

// ---- from a program: model.c ----------------------------------------------------------------------------------
// The job that every worker of the program does: one device's training step, priced by k. p is inlined. NULL and a
// diagnostic: it does not train, or an instruction has no price.
struct prog;
struct cost_model;
tune_job *tune_of_program(ctx *c, arena *a, struct prog *p, struct cost_model *k, const tune_link *l);
// All times scaled: forward and backward (0: as they are).
void tune_scale(tune_job *j, i64 forward_ps, i64 backward_ps);
#endif
