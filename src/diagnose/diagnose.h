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
#endif
