// diagnose.h - from the recordings of a job to answers: what was slow, who was late, what would help. Layer 7.
// Not reading files (trace/), not how answers are printed (report/).
//
// Idea: a job is the files of one run, one for every process, each read when it is asked for and given back, so that
// a job of many ranks takes the memory of a few. What is known of several ranks at once (communications, clocks) is
// small and kept.
#ifndef HEDDLE_DIAGNOSE_H
#define HEDDLE_DIAGNOSE_H
#include "sim/sim.h"
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

// ---- what a process did: work.c -------------------------------------------------------------------------
// The part of a recording that decides time: the host's work up to every call that launches something or waits, and
// what it launched. All threads of a process are one line of calls, by their ends: they hand work to each other.
typedef enum { LAUNCH_KERNEL, LAUNCH_COPY, LAUNCH_FILL, LAUNCH_KINDS } launch_kind; // classes of latencies
typedef struct {
  i64 start_ps, end_ps; // of the call, as recorded
  i64 host_ps;    // from the end of the item before (or the start) to the end of this call, without waiting
  bool waited;    // it did wait
  i64 early_ps;   // so much before the call returned, what it launched had begun; else 0
  u32 first_wait; // it returns when ops work.wait[first_wait..first_wait of the next) have ended
} work_item;
typedef struct {
  u32 item, stream; // that launched it; from 0
  u32 event;        // of the trace
  u8 kind;          // launch_kind
  bool comm;        // a communication: it waits for its peers
  sym group;        // of it, as trace_comm has them; 0, -1: not said
  i64 seq;
  sym name;
  i64 start_ps, dur_ps; // as recorded
  u32 first_after;      // it waits for ops work.after[first_after..first_after of the next), on other streams
} work_op;
typedef struct {
  u32 rank;
  i64 base_ns, start_ps; // when the line begins; times are relative to base_ns
  u32 nitems, nops, nstreams;
  work_item *item; // nitems + 1
  work_op *op;     // nops + 1; in the order of their items, then of their starts
  const u32 *wait, *after;
  u32 unlaunched; // device events whose launch is not in the trace: left out
  u32 guessed;    // entries of `after` that stand for events whose streams the trace does not tell
} job_work;
// Of the events that lie in [from_ps, to_ps); of all with INT64_MIN, INT64_MAX. It does not need the trace any more.
job_work *job_work_of(ctx *c, arena *a, const trace *t, i64 from_ps, i64 to_ps);

// ---- replay: replay.c -----------------------------------------------------------------------------------
// One figure for a class, the median over the job, and never an op's own: that would hide that it was queued.
typedef struct {
  i64 launch_ps[LAUNCH_KINDS]; // from the end of the call to the start on an idle stream
  i64 queue_ps;                // between two ops of a stream, the second of which was there in time
  i64 cross_ps; // from the end of an op to the start of one on another stream that waited for it
  i64 sync_ps;  // from the end of an op to the return of the call that waited for it
} replay_latency;
typedef struct {
  u32 n;              // processes
  job_work *const *w; // their clocks are aligned: base_ns and times of all can be compared
  u32 ncolls;         // communications with all of their members
  u32 *const *coll;   // coll[process][op]: number from 1; 0: on its own
} replay_input;
typedef struct replay replay;
// The graph of all processes. NULL and a diagnostic: communications are not in one order on all members.
replay *replay_new(ctx *c, arena *a, const replay_input *in);
const replay_latency *replay_latencies(const replay *r);
const replay_input *replay_input_of(const replay *r);
// What a run takes for durations: of items (without waiting), of ops (communications: their transfer, from the moment
// when the last member is there). A scenario is a copy that the caller changes.
typedef struct {
  i64 **host, **op; // [process][item], [process][op]
} replay_times;
replay_times replay_recorded(const replay *r, arena *a);
// Time from the earliest start of a process to the end of the last op. end (or NULL): of every op of every process,
// start likewise, relative to that start.
i64 replay_run(replay *r, const replay_times *t, i64 *const *start, i64 *const *end);
// Of the last run: what its longest path consists of.
typedef struct {
  i64 host_ps, device_ps, transfer_ps, latency_ps;
  i64 *rank_host_ps; // by process
} replay_path;
replay_path replay_critical(replay *r, const replay_times *t, arena *a);
i64 replay_start_of(const replay *r, u32 process); // when its line begins, relative to the earliest

// Works of all files of a job and their communications, matched; files are read one after the other and given back.
// steps: "3" or "3-5,8" (from the first to the last of them), NULL: all there is. False and diagnostics: a file cannot
// be used, a step is not there, two files are of one rank. In the job's arena.
typedef struct {
  replay_input replay;
  u32 *file; // of every process
  u32 lone;  // communications without their peers: they count as computation
} job_input;
bool job_input_of(job *j, const char *steps, job_input *out);

// ---- who is late: late.c --------------------------------------------------------------------------------
typedef struct {
  u32 rank;
  u32 last;        // communications to which it came last; of equal ones the first process counts
  i64 host_ps;     // until its last op ends if devices take no time
  i64 device_ps;   // until its last op ends if hosts take no time
  i64 path_ps;     // of its host, on the longest path over all processes
  i64 repaired_ps; // the job with its host times at the medians; -1: no other process runs the same
} late_process;
typedef struct {
  i64 recorded_ps; // from the earliest start to the last end
  i64 replayed_ps;
  u64 nops;
  double error_ps; // of the ends of ops, mean of absolute values
  i64 error99_ps, error_most_ps;
  u32 ncolls, n;
  late_process *process;
  u32 late[2];         // the two that come last most often; TRACE_NONE: there are not so many
  i64 both_ps, all_ps; // the job with both of them, with all processes repaired
  i64 no_host_ps;      // without any host time: no less is possible without faster devices
  i64 no_device_ps;    // without any time on devices
  replay_path path;
  u32 hosts; // processes that take longer without devices than without hosts
} late_report;
late_report late_of(replay *r, arena *a);
#endif
