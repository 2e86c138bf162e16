// tuning.h - the data-parallel job that a recording shows, to be tuned (tune/). Part of diagnose.h.
#ifndef HEDDLE_DIAGNOSE_TUNING_H
#define HEDDLE_DIAGNOSE_TUNING_H
#include "diagnose/job.h"
#include "tune/tune.h"

// The most that an allocator had given on a device, over all ranks and steps that were recorded.
typedef struct {
  i64 bytes;      // 0: no rank tells
  u32 rank, step; // TRACE_NONE: not known, of no step
} tuning_peak;
// What the recording tells of memory. Texts say what cannot be judged, and why; NULL: it can.
typedef struct {
  tuning_peak peak;
  i64 before_bytes; // taken when the step began
  i64 kept_bytes;   // of what the forward took, what was given back in the backward
  const char *unknown, *no_recompute;
} tuning_memory;
typedef struct {
  tune_job job;
  tune_plan recorded;  // its buckets as they were
  const char *steps;   // that it is of; NULL: all that was recorded
  u32 rank;            // of the worker that stands for all: the slowest
  u32 nbuckets;        // gradient communications
  u32 other;           // communications that carry no gradients: left out
  u32 beside;          // operations of other threads: left out
  u32 partial;         // communications with members that were not recorded, also if they stand alone
  i64 recorded_ps;     // of the whole job, hosts too
  i64 modelled_ps;     // of the recorded plan: device and communication alone
  double fit_error_ps; // of a communication, mean
  bool sized;          // the recording says how large each gradient is
  bool one_size;       // all communications have the same bytes: no start could be told from the rate
  tuning_memory memory;
  const char *no_half; // why neither half precision nor compression has a use; NULL: they have
} tuning;
// What is assumed of passes that change numbers: a kernel of matmuls, convolutions or attention takes half the time in half
// precision (it moves half the bytes; its arithmetic gains as much or more), compressed gradients have 16 bits, and to convert a
// byte there and back takes 3 ps on the device (6 bytes of memory moved for 4, twice, at 1 TB/s).
#define TUNING_HALF_TIME            0.5
#define TUNING_COMPRESSED           0.5
#define TUNING_COMPRESS_PS_PER_BYTE 3.0
// steps: as job_input_of takes them; NULL: one step of median length. In a. False and a diagnostic: it is no
// data-parallel job of kernels.
bool tuning_of(job *j, const char *steps, arena *a, tuning *out);

// tuning_messages.c: of a message_job. The recorded time is that of the step.
bool tuning_of_messages(job *j, const char *steps, arena *a, tuning *out);

// tuning_memory.c. Fills in what j's operations keep, its blocks, what else it takes and its peak; p: the recorded plan, made
// to fit the blocks.
// launch_ps: when the host launched them.
typedef struct {
  const trace *t;
  u32 process;
  i64 device, from_ps, to_ps; // from_ps .. to_ps: the step
  const i64 *launch_ps;
  tuning_peak peak; // of the job: what has to fit; it may be of another rank or step
} tuning_recorded;
// Reads all files, none of which may be loaded. False and a diagnostic: one of them cannot be read.
bool tuning_peak_of(job *j, tuning_peak *out);
tuning_memory tuning_memory_of(arena *a, const tuning_recorded *x, tune_plan *p, tune_job *j);
#endif
