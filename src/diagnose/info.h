// info.h - what the recordings of a job are, and what is missing in them. Part of diagnose.h.
#ifndef HEDDLE_DIAGNOSE_INFO_H
#define HEDDLE_DIAGNOSE_INFO_H
#include "diagnose/job.h"

// ---- what a job's recordings are: info.c ------------------------------------------------------------------
typedef enum {
  CLOCK_NONE,  // times are relative to nothing that others know
  CLOCK_HOST,  // since the host started
  CLOCK_WORLD, // since 1970
} clock_kind;
typedef struct {
  const char *path;
  trace_format format;
  u32 rank, world_size; // TRACE_NONE, 0: not known
  sym host, device;
  u32 nsteps, first_step, last_step;
  u32 streams, threads, processes;
  u64 events, skipped, device_events, launches; // launches: device events whose call is known
  u32 comms, sized;                             // communications, and those whose bytes are known
  bool truncated;
  i64 base_ns, first_ps, last_ps; // of events, relative to base_ns
  clock_kind clock;
} file_info;
typedef struct {
  u32 rank; // TRACE_NONE: of the job, or of a file whose rank is not known
  const char *what;
} missing_info; // "its file ends early"
typedef struct {
  u32 n;
  file_info *file;
  VEC(missing_info) missing;
} job_info;
// Reads every file. NULL and a diagnostic: nothing can be made of one.
job_info *job_info_of(job *j, arena *a);
// Numbers in order as "0-3,7", at most so many words of them: "0,2,4,..".
const char *number_list(arena *a, const u32 *number, u32 n);
#endif
