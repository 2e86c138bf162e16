// straggler.h - pipelined jobs: what every worker did, what a step would take otherwise, and what that blames. Part of diagnose.h.
// Not how they are made of a timeline (straggler_making.h).
#ifndef HEDDLE_DIAGNOSE_STRAGGLER_H
#define HEDDLE_DIAGNOSE_STRAGGLER_H
#include "diagnose/job.h"

// ---- pipelined jobs: straggler.c, straggler_graph.c, straggler_change.c, straggler_rerun.c, straggler_blame.c -----------------
// What every worker did in every step, and how long a step takes if some of that takes another time. docs/diagnosis.md
// has the rules. A worker is a stage of a data rank.
typedef enum {
#define OPERATION(id, name, is, flags, comm, over) STRAGGLER_##id,
#include "trace/straggler.def"
#undef OPERATION
  STRAGGLER_TYPES
} straggler_type;
typedef enum { // who takes part: straggler.def
  STRAGGLER_OVER_NONE,
  STRAGGLER_OVER_NEXT,
  STRAGGLER_OVER_DATA,
  STRAGGLER_OVER_TENSOR,
  STRAGGLER_OVER_ENDS,
  STRAGGLER_OVER_ALL
} straggler_over;
typedef struct {
  const char *name, *op; // op: of trace_comm; "": no communication
  bool comm;
  straggler_over over;
} straggler_type_row;
extern const straggler_type_row straggler_types[STRAGGLER_TYPES];

// A node of a step: an operation, or the moment at which all members of a communication are there, or the end. Nodes
// come in an order in which none waits for a later one.
typedef struct {
  u32 worker; // TRACE_NONE: no operation
  u8 type;
  u32 seq;        // of its type on its worker, by start
  u32 microbatch; // of a send or receive that of the computation that it serves; TRACE_NONE: none
  u32 chunk;
} straggler_node;
typedef struct {
  u32 rank, data, stage;
} straggler_worker;
typedef struct {
  u32 ndata, nstages, nworkers; // worker number stage * ndata + data
  const straggler_worker *worker;
  u32 nmicro;           // microbatches
  u32 nsteps, left_out; // steps that are used; that are not, as they have other operations or another order
  const u32 *step;
  const i64 *span_ps; // by step, as recorded: first start to last end
  u32 n, nops;        // nodes of a step; operations among them
  const straggler_node *node;
  const i64 *recorded_ps; // nsteps x n: of communications the transfer, without the wait for other members
  const i64 *ideal_ps, *median_ps; // n: over all operations of the type
  u32 count[STRAGGLER_TYPES];      // operations of a type in a step
  const u32 *after_at, *after;     // n + 1: node k begins after the nodes after[after_at[k]..after_at[k + 1])
  const struct sim_graph *graph;   // of one step, without durations
} straggler;
// From a loaded timeline. NULL and diagnostics: it has no steps or microbatches, or operations that fit no pipeline.
straggler *straggler_new(ctx *c, arena *a, const trace *t, sym file, const number_set *steps);
// What a job's files are of: timelines of operations, or recordings of other kinds. JOB_MIXED and a diagnostic: both.
typedef enum { JOB_MIXED, JOB_KERNELS, JOB_PIPELINE } job_kind;
job_kind job_kind_of(job *j);
// From the one file of a job of JOB_PIPELINE. steps: as number_set_parse takes them. NULL and diagnostics, also if there
// are several files.
straggler *straggler_of_job(job *j, arena *a, const char *steps);
// No operation may take longer: a sum over a step must fit.
static inline i64 straggler_longest(const straggler *s) { return INT64_MAX / 2 / ((i64)s->n + 1); }
// Times of all steps if node k of step s takes dur_ps[s * n + k], none below 0.
void straggler_replay(const straggler *s, const i64 *dur_ps, i64 *step_ps);
double straggler_mean(const straggler *s, const i64 *step_ps);
// dur_ps (nsteps x n), with a change. Returns how many operations of a step it touches; 0 and a diagnostic: none, or it
// says what this job does not have.
u32 straggler_apply(ctx *c, const straggler *s, const job_change *x, i64 *dur_ps);
void straggler_mark(const straggler *s, const job_change *x,
                    u8 *touched); // sets 1 for the nodes that it touches

// Times are means over steps. S = with / ideal; a group's `alone` is a step in which all is ideal but the group, which
// is as recorded; `repaired` one in which all is as recorded but the group, which is ideal.
typedef struct {
  double alone_ps, repaired_ps;
} straggler_score;
typedef struct {
  u32 ngroups;                  // forward and backward sends and receives are one each
  const char *const *group;     // name
  const u8 *group_of;           // by type
  double replayed_ps, ideal_ps; // of a step: all as recorded, all ideal
  const i64 *replayed_step_ps, *ideal_step_ps;
  straggler_score *type, *data, *stage, *worker, *microbatch; // type: by group
  double *took_ps,
      *waited_ps;     // by group: mean over workers of a step's time in it; of waiting for other members
  const u32 *slowest; // workers, by what they cost alone
  double workers_repaired_ps; // the slowest 3 %, rounded up
  u32 nslow;
} straggler_blame;
straggler_blame *straggler_blame_of(arena *a, const straggler *s);
#endif
