// replay.h - recorded kernels run again from what host work and kernels take and what waits for what, and who is late in that.
// Part of diagnose.h. Not jobs of messages (messages.h), not pipelined ones (straggler.h).
#ifndef HEDDLE_DIAGNOSE_REPLAY_H
#define HEDDLE_DIAGNOSE_REPLAY_H
#include "diagnose/job.h"

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
  u32 item, stream;     // that launched it; from 0
  u32 event;            // of the trace
  u8 kind;              // launch_kind
  bool comm;            // a communication: it waits for its peers,
  bool leaves;          // ... or for nobody: it sends and goes on
  sym name, comm_op;    // comm_op: of trace_comm; 0: none
  i64 start_ps, dur_ps; // as recorded
  i64 wake_ps;          // of a serial process: it began so much later than it could, its thread slept
  u32 first_after;      // it waits for ops work.after[first_after..first_after of the next), on other streams
} work_op;
typedef struct {
  u32 rank;
  i64 base_ns, start_ps; // when the line begins; times are relative to base_ns
  u32 nitems, nops, nstreams;
  bool serial;     // trace_process.serial: no class of latencies is its own
  work_item *item; // nitems + 1
  work_op *op;     // nops + 1; in the order of their items, then of their starts
  const u32 *wait, *after;
  u32 unlaunched; // device events whose launch is not in the trace: left out
  u32 guessed;    // entries of `after` that stand for events whose streams the trace does not tell
} job_work;
// Of the process's events that lie in [from_ps, to_ps); of all with INT64_MIN, INT64_MAX. It does not need the trace any
// more.
job_work *job_work_of(ctx *c, arena *a, const trace *t, u32 process, i64 from_ps, i64 to_ps);

// ---- replay: replay.c -----------------------------------------------------------------------------------
// One figure for a class, the median over the job, and never an op's own: that would hide that it was queued. Of
// processes with devices: a serial one runs its ops itself, or wakes a thread that runs them one after the other.
typedef struct {
  i64 launch_ps[LAUNCH_KINDS]; // from the end of the call to the start on an idle stream
  i64 queue_ps;                // between two ops of a stream, the second of which was there in time
  i64 cross_ps; // from the end of an op to the start of one on another stream that waited for it
  i64 sync_ps;  // from the end of an op to the return of the call that waited for it
} replay_latency;
// A communication, as it was matched and timed (match.c).
typedef struct {
  sym op;                  // or the kernel's name, where the operation is not known
  u32 process, late_op;    // whose op was there last
  i64 ahead_ps;            // so much before it came the one before it
  i64 wait_ps, longest_ps; // waiting of all members; the longest of one
  i64 transfer_ps;         // of its fastest member
} replay_meeting;
typedef struct {
  u32 n;                      // processes
  job_work *const *w;         // times are compared as recorded: base_ns of all count from one moment
  u32 ncolls;                 // communications with all of their members
  u32 *const *coll;           // coll[process][op]: number from 1; 0: on its own
  const replay_meeting *meet; // [ncolls + 1], by number
  // What the clocks of several hosts leave in doubt, corrected or not: who came last by less than this cannot be told.
  // 0: one clock.
  i64 within_ps;
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
  i64 begin_ps; // until it begins: the rank on which it begins was not the first to be recorded
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
  const u32 *file; // of every process
  u32 lone; // communications without their peers, or of groups that cannot be told apart: they count as computation
  u32 left_out; // files of formats without kernels
  u32 partial;  // communications some of whose members were not recorded
  u32 violated; // communications of all for all that end on a member before another one begins: clocks differ
  i64 worst_ps; // by how much, at most
  u32 nends;    // communications of all for all,
  i64 ends_ps;  // and how far apart they end on their members, summed up
  i64 clocks_by_ps; // clocks of hosts were apart by up to this, and times are corrected; 0: they are as recorded
  i64 clocks_within_ps; // ... and are right to within this
} job_input;
bool job_input_of(job *j, const char *steps, job_input *out);

// Times at the medians over all processes that launch the same ops in the same order; rows are NULL where no other does.
replay_times replay_medians(const replay *r, const replay_times *t, arena *a);
// Changes times (a copy of its own) as asked for: of ranks, of `host`, of kernels and communications by name ("*gemm*",
// "all_reduce"). `median` is over processes that do the same. Returns how many items and ops it touches; 0 and a
// diagnostic: none, or it asks for what kernels do not have, such as stages. replay_change.c.
struct job_change;
u32 replay_apply(ctx *c, const replay *r, const replay_times *median, const struct job_change *x,
                 replay_times *t);

// How far the ends of ops are from those recorded.
typedef struct {
  u64 n;
  double mean_ps;           // of absolute values
  i64 below_99_ps, most_ps; // 99 of 100 are not above the first
  i64 recorded_ps;          // the last end
} replay_errors;
replay_errors replay_errors_of(const replay *r, i64 *const *end, arena *tmp); // end: of replay_run

// ---- who is late: late.c --------------------------------------------------------------------------------
typedef struct {
  u32 rank;
  u32 last;        // communications to which it came last, after all others by more than clocks may be off
  u32 last_read;   // ... by whatever clocks show
  i64 host_ps;     // until its last op ends if devices take no time
  i64 device_ps;   // until its last op ends if hosts take no time
  i64 path_ps;     // of its host, on the longest path over all processes
  i64 repaired_ps; // the job with its host times at the medians; -1: no other process runs the same
} late_process;
typedef struct {
  i64 replayed_ps; // from the earliest start to the last end
  replay_errors error;
  u32 ncolls, n;
  i64 doubt_ps; // of clocks: replay_input.within_ps
  late_process *process;
  u32 late[2];         // the two that come last most often; TRACE_NONE: there are not so many
  i64 both_ps, all_ps; // the job with both of them, with all processes repaired
  i64 no_host_ps;      // without any host time: no less is possible without faster devices
  i64 no_device_ps;    // without any time on devices
  replay_path path;
  u32 hosts; // processes that take longer without devices than without hosts
} late_report;
late_report late_of(replay *r, arena *a);
// Communications of one operation (or kernel, where the operation is not known), as recorded.
typedef struct {
  sym op;
  u32 count;
  i64 transfer_ps; // summed over them: of each, what its fastest member took from the last one's start
  i64 wait_ps, longest_ps; // waiting of all members; the longest wait of one
  u32 last, times;         // the process that came last most often, TRACE_NONE: none; and how often
} late_comm;
// Those with peers; the most waiting first. Returns their number.
u32 late_comms(const replay *r, arena *a, late_comm **out);
#endif
