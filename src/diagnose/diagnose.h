// diagnose.h - from the recordings of a job to answers: what was slow, who was late, what would help. Layer 7.
// Not reading files (trace/), not how answers are printed (report/).
//
// Idea: a job is the files of one run, one for every process, each read when it is asked for and given back, so that
// a job of many ranks takes the memory of a few. What is known of several ranks at once (communications, clocks) is
// small and kept.
#ifndef HEDDLE_DIAGNOSE_H
#define HEDDLE_DIAGNOSE_H
#include "trace/trace.h"

// ---- jobs: job.c ----------------------------------------------------------------------------------------
typedef struct {
  const char *path; // as it was said, or of a folder that was said
  trace_format format;
  u32 rank; // by its name ("rank-3", "rank3", "_3."), TRACE_NONE: its name does not say
  // while it is loaded
  arena *a;
  trace *t;
  trace_read_about about;
} job_file;
typedef struct {
  ctx *c;
  arena *a;
  u32 n;
  job_file *file; // in the order of their ranks, then of their paths
} job;
// Files, and folders with all files of a known format directly in them. Nothing is read but how files begin. NULL and
// diagnostics: a path does not exist, or a file that was said is of no known format, or there is none.
job *job_open(ctx *c, arena *a, u32 n, const char *const *paths);
// The events of a file; kinds: those wanted (0: all but stacks). NULL and a diagnostic: nothing can be made of it.
// Given back by job_unload or with the job.
const trace *job_load(job *j, u32 file, u32 kinds);
void job_unload(job *j, u32 file);
void job_close(job *j); // all files; the job is the arena's
// Rank of a loaded file: what it says itself, else what its name says, else TRACE_NONE.
u32 job_rank(const job *j, u32 file);

// ---- steps of training: changes.c ------------------------------------------------------------------------
// "3" or "3-5,8". Every number is a step as the recorder counts.
typedef struct {
  u32 n; // 0: all steps
  const u32 *from, *to;
} step_set;
// text NULL: all. False and a diagnostic that points into the text.
bool step_set_parse(ctx *c, arena *a, const char *text, step_set *out);
bool step_set_has(const step_set *s, u32 step);

// ---- what would be different: changes.c ------------------------------------------------------------------
// CHANGE = WHAT.. '=' VALUE | WHAT.. 'x' FACTOR. All that is said of WHAT must hold: "stage 3 forward-compute x 0.5" is
// the forward computation of stage 3.
//   WHAT    worker N | rank N | stage N | data N | microbatch N | all | NAME (of an operation or kernel, or a part of it
//           before or after '*'); N may be a list, 3,5-7
//   VALUE   ideal | median | 0 | a time with its unit, such as 3ms
typedef enum {
  WHAT_WORKER,
  WHAT_RANK,
  WHAT_STAGE,
  WHAT_DATA,
  WHAT_MICROBATCH,
  WHAT_NAME,
  WHAT_KINDS
} change_what;
typedef enum { CHANGE_IDEAL, CHANGE_MEDIAN, CHANGE_TIME, CHANGE_SCALE } change_how;
typedef struct {
  change_what what;
  step_set is;      // numbers; not of WHAT_NAME
  const char *name; // WHAT_NAME
  loc at;
} change_term;
typedef struct {
  const char *text; // as it was said
  loc at;
  u32 nterms; // 0: all
  const change_term *term;
  change_how how;
  i64 ps;       // CHANGE_TIME
  double scale; // CHANGE_SCALE
} change;
// False and diagnostics that point into the text, with a hint.
bool changes_parse(ctx *c, arena *a, u32 n, const char *const *text, change *out);
bool change_name_matches(const char *pattern, const char *name); // '*' stands for anything

// ---- pipelined jobs: straggler.c, straggler_graph.c, straggler_change.c, straggler_rerun.c, straggler_blame.c -----------------
// What every worker did in every step, and how long a step takes if some of that takes another time. docs/diagnosis.md
// has the rules. A worker is a stage of a data rank.
typedef enum {
#define OPERATION(id, name, is, flags, comm, over) STRAGGLER_##id,
#include "trace/straggler.def"
#undef OPERATION
  STRAGGLER_TYPES
} straggler_type;
typedef struct {
  const char *name;
  bool comm;
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
straggler *straggler_new(ctx *c, arena *a, const trace *t, sym file, const step_set *steps);
// From the one file of a job. steps: as step_set_parse takes them. NULL and diagnostics, also if there are several files
// or they are of another format.
straggler *straggler_of_job(job *j, arena *a, const char *steps);
// No operation may take longer: a sum over a step must fit.
static inline i64 straggler_longest(const straggler *s) { return INT64_MAX / 2 / ((i64)s->n + 1); }
// Times of all steps if node k of step s takes dur_ps[s * n + k], none below 0.
void straggler_replay(const straggler *s, const i64 *dur_ps, i64 *step_ps);
double straggler_mean(const straggler *s, const i64 *step_ps);
// dur_ps (nsteps x n), with a change. Returns how many operations of a step it touches; 0 and a diagnostic: none, or it
// says what this job does not have.
u32 straggler_apply(ctx *c, const straggler *s, const change *x, i64 *dur_ps);
void straggler_mark(const straggler *s, const change *x, u8 *touched); // sets 1 for the nodes that it touches

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
