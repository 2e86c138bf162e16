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

// ---- steps: steps.c -------------------------------------------------------------------------------------
typedef struct {
  u32 number; // as the recorder counts
  i64 start_ps, end_ps;
} step_span;
typedef struct {
  u32 n;
  step_span *step; // in order of start; of one process
  u32 *of;         // of every event of the trace: index of the step that it belongs to, TRACE_NONE: of none
} job_steps;
// The steps of a process, and what belongs to them: of the host, what starts before the next step does; on a device,
// what was launched then, whenever it runs. Where the file does not say what launched anything, by when it starts.
job_steps *steps_of(arena *a, const trace *t, u32 process);
// Steps that were asked for: "3", "3-5,8"; NULL: all but the last of several, whose work may have been cut off when
// the recording stopped. chosen[k]: is step[k] one? False and a diagnostic: the text cannot be read, or none is there.
bool steps_choose(ctx *c, const char *text, const job_steps *s, bool *chosen);
// The events of a process that belong to chosen steps, or all where there are no steps. event has room for all of the
// trace. Returns their number.
u32 steps_events(const trace *t, u32 process, const job_steps *s, const bool *chosen, u32 *event);

// ---- where the time goes: breakdown.c -------------------------------------------------------------------
// Kinds of communication that are told apart.
enum { COMM_KINDS = 13 };
const char *comm_kind_name(u32 kind);                // "all_reduce" .. "other"
u32 comm_kind_of(ctx *c, const trace *t, u32 event); // of a kernel that is a communication
// Why a device or stream had nothing to do until the next event began.
typedef enum {
  IDLE_HOST,   // it was launched only after the idle time had begun
  IDLE_KERNEL, // it had been launched, and the pause is shorter than 30 us: what starting a kernel takes
  IDLE_OTHER,  // it had been launched: it waited for another stream, or for memory
  IDLE_KINDS
} idle_kind;
// Of the device of one process, from the first start to the last end: span = compute + the exposed + idle. Every
// instant counts once: as compute if a kernel computes, else as communication, else as a copy (or fill), else as idle.
// Of communications that are exposed together the first kind counts.
typedef struct {
  u32 events;
  i64 span_ps, compute_ps;
  i64 comm_ps;    // in which a communication ran, computing or not
  i64 overlap_ps; // of it, while a kernel computed
  i64 exposed_ps[COMM_KINDS], copy_ps;
  i64 idle_ps[IDLE_KINDS];
} breakdown;
// event: n of them, of which those on the device count.
breakdown breakdown_of(ctx *c, arena *tmp, const trace *t, u32 n, const u32 *event);
static inline i64 breakdown_exposed_ps(const breakdown *b) {
  i64 sum = 0;
  for (u32 k = 0; k < COMM_KINDS; k++) sum += b->exposed_ps[k];
  return sum;
}
static inline i64 breakdown_idle_ps(const breakdown *b) {
  return b->idle_ps[IDLE_HOST] + b->idle_ps[IDLE_KERNEL] + b->idle_ps[IDLE_OTHER];
}

// ---- one stream: streams.c ------------------------------------------------------------------------------
typedef struct {
  u32 events;
  i64 busy_ps, idle_ps[IDLE_KINDS]; // idle between its events
  // How many events were launched and had not begun, after every launch and every begin. A launch that comes at
  // the instant of a begin counts first; queue_mean_begin: the mean if the begin does.
  u32 queue_n; // launches and begins; 0: the file does not say what launched anything
  u32 queue_max;
  double queue_mean, queue_mean_begin, queue_std, queue_median;
} stream_times;
stream_times stream_times_of(arena *tmp, const trace *t, u32 lane, u32 n, const u32 *event);

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

// ---- what runs: kernels.c -----------------------------------------------------------------------------------
typedef struct {
  sym name;
  trace_is is;
  bool comm;
  u32 count;
  i64 total_ps, min_ps, max_ps;
} kernel_use;
// Communications of one operation, size of group and number of bytes.
typedef struct {
  sym op, type;
  u32 size;        // 0: not known
  i64 bytes;       // -1: not known
  VEC(i64) dur_ps; // in order when kernel_uses_sort is done
} comm_use;
typedef struct {
  VEC(kernel_use) kernels;
  VEC(comm_use) comms;
  hmap by_name, by_comm;
} kernel_uses;
void kernel_uses_add(arena *a, kernel_uses *u, const trace *t, u32 n, const u32 *event);
void kernel_uses_sort(kernel_uses *u); // the longest total first
// Bytes that cross the slowest link for every byte of the communication, as nccl-tests count; 0: not known.
double comm_bus_factor(const char *op, u32 size);
#endif
