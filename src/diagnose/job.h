// job.h - the files of one run, each read when it is asked for; its steps; which of them, and which changes, are asked for.
// Part of diagnose.h. Not what the files say.
#ifndef HEDDLE_DIAGNOSE_JOB_H
#define HEDDLE_DIAGNOSE_JOB_H
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
  job_file *file;                 // in the order of their ranks, then of their paths
  const struct number_set *steps; // that are loaded; NULL: all
} job;
// Files, and folders with all files of a known format directly in them. Nothing is read but how files begin. NULL and
// diagnostics: a path does not exist, or a file that was said is of no known format, or there is none.
job *job_open(ctx *c, arena *a, u32 n, const char *const *paths);
// Of files that are loaded from now on, memory is taken for these steps only: as of number_set_parse; NULL: all of a file.
// False and a diagnostic: not such a text.
bool job_want_steps(job *j, const char *steps);
// The events of a file; kinds: those wanted (0: all but stacks). NULL and a diagnostic: nothing can be made of it.
// Given back by job_unload or with the job.
const trace *job_load(job *j, u32 file, u32 kinds);
void job_unload(job *j, u32 file);
void job_close(job *j); // all files; the job is the arena's
// Rank of a loaded file: what it says itself, else what its name says, else TRACE_NONE.
u32 job_rank(const job *j, u32 file);

// ---- steps: steps.c -------------------------------------------------------------------------------------
typedef struct {
  u32 number; // as the recorder counts
  i64 start_ps, end_ps;
} step_span;
typedef struct {
  u32 n;
  step_span *step; // in order of start; of one process
  bool
      whole; // the recorder keeps whole steps alone: work of the last one is not cut off (trace_process.serial)
  u32 *of;   // of every event of the trace: index of the step that it belongs to, TRACE_NONE: of none
} job_steps;
// The steps of a process, and what belongs to them: of the host, what starts before the next step does; on a device,
// what was launched then, whenever it runs. Where the file does not say what launched anything, by when it starts.
job_steps *steps_of(arena *a, const trace *t, u32 process);
// Steps that were asked for: "3", "3-5,8"; NULL: all but the last of several, whose work may have been cut off when
// the recording stopped. chosen[k]: is step[k] one? False and a diagnostic: the text cannot be read, or none is there.
bool steps_choose(ctx *c, const char *text, const job_steps *s, bool *chosen, const char *path);
// The events of a process that belong to chosen steps, or all where there are no steps. event has room for all of the
// trace. Returns their number.
u32 steps_events(const trace *t, u32 process, const job_steps *s, const bool *chosen, u32 *event);

// ---- numbers that are asked for: changes.c ---------------------------------------------------------------
// "3" or "3-5,8": steps as the recorder counts, ranks, stages.
typedef struct number_set {
  u32 n; // 0: all
  const u32 *from, *to;
} number_set;
// Of --steps. text NULL: all. False and a diagnostic that points into the text.
bool number_set_parse(ctx *c, arena *a, const char *text, number_set *out);
bool number_set_has(const number_set *s, u32 number);

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
  number_set is;    // numbers; not of WHAT_NAME
  const char *name; // WHAT_NAME
  loc at;
} change_term;
typedef struct job_change {
  const char *text; // as it was said
  loc at;
  u32 nterms; // 0: all
  const change_term *term;
  change_how how;
  i64 ps;       // CHANGE_TIME
  double scale; // CHANGE_SCALE
} job_change;
// False and diagnostics that point into the text, with a hint.
bool changes_parse(ctx *c, arena *a, u32 n, const char *const *text, job_change *out);
bool change_name_matches(const char *pattern, const char *name); // '*' stands for anything
#endif
