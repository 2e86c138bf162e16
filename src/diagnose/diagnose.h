// diagnose.h - from the recordings of a job to answers: what was slow, who was late, what would help. Layer 7.
// Not reading files (trace/), not how answers are printed (report/).
//
// Idea: a job is the files of one run, one for every process, each read when it is asked for and given back, so that
// a job of many ranks takes the memory of a few. What is known of several ranks at once (communications, clocks) is
// small and kept.
#ifndef HEDDLE_DIAGNOSE_H
#define HEDDLE_DIAGNOSE_H
#include "trace/trace.h"
#include "tune/tune.h"

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
  bool comm;            // a communication: it waits for its peers
  sym name, comm_op;    // comm_op: of trace_comm; 0: none
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
// Of the process's events that lie in [from_ps, to_ps); of all with INT64_MIN, INT64_MAX. It does not need the trace any
// more.
job_work *job_work_of(ctx *c, arena *a, const trace *t, u32 process, i64 from_ps, i64 to_ps);

// ---- replay: replay.c -----------------------------------------------------------------------------------
// One figure for a class, the median over the job, and never an op's own: that would hide that it was queued.
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
bool steps_choose(ctx *c, const char *text, const job_steps *s, bool *chosen, const char *path);
// The events of a process that belong to chosen steps, or all where there are no steps. event has room for all of the
// trace. Returns their number.
u32 steps_events(const trace *t, u32 process, const job_steps *s, const bool *chosen, u32 *event);

// ---- where the time goes: breakdown.c -------------------------------------------------------------------
comm_kind comm_kind_of(ctx *c, const trace *t, u32 event); // of a kernel that is a communication
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
// Of the chosen steps, whose events these are: a sum over stretches of steps that follow each other, so that steps
// that were not chosen are not idle time. Without steps of all events.
breakdown breakdown_of_steps(ctx *c, arena *tmp, const trace *t, const job_steps *s, const bool *chosen,
                             u32 n, const u32 *event);
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

// ---- before and after: diff.c ---------------------------------------------------------------------------
typedef struct {
  u32 n;           // samples
  double mean, sd; // sd: of one sample; 0 if n < 2
} sample;
// The difference of two means with its standard error (Welch), and what it must exceed to be told from noise: the 95 %
// quantile of Student's t with Welch's degrees of freedom, times the standard error. INFINITY: one of them has a single
// sample, so nothing is known of its noise.
typedef struct {
  double change, error, noise;
} sample_change;
sample sample_of(const double *v, u32 n);
sample_change sample_compare(const sample *before, const sample *after);

typedef enum { DIFF_FASTER = -1, DIFF_SAME = 0, DIFF_SLOWER = 1, DIFF_UNKNOWN = 2 } diff_verdict;
enum { DIFF_PARTS = 7 };
extern const char *const diff_part_names[DIFF_PARTS]; // "computation" "exposed communication" "copies" ..
typedef struct {
  u32 files, ranks, world; // world: ranks that the job had, as a file says; 0: none does
  sample step; // ps: of every step, that of its slowest rank; of a job without steps one sample, all of it
  double part[DIFF_PARTS]; // ps, mean over ranks and steps
  u32 steps;               // looked at on every rank, at the most
} diff_side;
typedef struct {
  sym name;
  bool comm, split; // split: waiting is known of all of them, on both sides
  double count[2], ps[2],
      wait_ps[2]; // of a rank in a step, before and after; wait_ps: for members that came later
} diff_kernel;
// Of the communications that are split, by how much they and the waiting in them change, and for whom it grows most.
typedef struct {
  bool known;         // there are such, on both sides
  double doubt_ps;    // that corrected clocks leave in wait_ps, at the most; 0: clocks are as recorded
  double ps, wait_ps; // of a rank in a step
  u32 rank;           // TRACE_NONE: no rank that is known makes others wait longer
  double rank_ps;     // by which others wait longer for it
  bool nameless;      // others wait longer for one or several ranks whose files do not say which they are
} diff_waiting;
typedef struct {
  diff_side side[2];
  sample_change change;
  diff_verdict verdict;
  diff_waiting waiting;
  u32 nkernels;
  diff_kernel *kernel; // the largest change of time first
} job_diff;
// steps: as of steps_choose. False and a diagnostic: a file cannot be used.
bool job_diff_of(job *before, job *after, const char *steps, arena *a, job_diff *out);

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

// ---- communications across ranks: match.c -----------------------------------------------------------------
// Which events of different processes are one communication: those that the file says are (trace.match), or that have
// the same number in their group, or else the k-th on the k-th stream of the group. A send belongs to the receive of
// its peer in the same way. Files are added one at a time, while they are loaded; what is kept of them is small.
typedef struct {
  u32 file, process; // of the job; of the file
  u32 rank;          // in the job; TRACE_NONE
  sym host;          // 0: not said
  i64 base_ps;       // of its times, from what counts as zero for all that say when they are; else 0
  bool dated;        // does it say?
} match_place;
typedef struct {
  u32 place, file, event, lane; // lane: of the file's trace
  i64 start_ps, end_ps;         // on the place's clock, base_ps included
  i64 wait_ps, transfer_ps;     // latest start less its own; its end less the latest start (match_time)
} match_member;
typedef enum { MATCH_BY_FILE, MATCH_BY_NUMBER, MATCH_BY_ORDER } match_by;
typedef struct {
  sym op, group, name; // name: of what ran, on the first member
  i64 seq, bytes;      // -1: not said
  u32 first, n;        // members, of match.member, in the order of files; of a message the sender first
  u32 late;            // the member that started last (match_time)
  i64 ahead_ps;        // and how much earlier the one before it did
  u32 size;            // of the group, as its members say; 0: not said
  match_by by;
  i64 at; // start of the first member
} match_row;
typedef enum {
  MATCH_ORPHAN,    // members of the group that are in the job do not have it
  MATCH_DUPLICATE, // a rank has the same number twice
  MATCH_DIFFERENT, // at the same place in the order ranks run different operations
  MATCH_UNKNOWN    // of a message: the peer is not said
} match_trouble;
typedef struct {
  match_trouble is;
  u32 place, file, event;
  sym op, group;
  i64 seq; // number or place in the order
  u32 of,
      other; // ORPHAN: so many members have it, of so many; DIFFERENT: other: event's place that it differs from
} match_problem;
typedef struct match {
  ctx *c;
  arena *a;
  VEC(match_place) places;
  VEC(match_row) row; // by the first member's start
  VEC(match_member) member;
  VEC(match_problem) problem;
  // private: what was added, and the first base of each kind
  VEC(struct match_call) calls;
  i64 zero_ns[2];
} match;
match *match_new(ctx *c, arena *a);
// The communications of a loaded file. rank: of its process, where the trace does not say.
void match_add(match *m, const trace *t, u32 file, u32 rank);
void match_finish(match *m); // matches what was added; times as recorded
// All files of a job. NULL and a diagnostic: one of them cannot be read.
match *match_job(job *j, arena *a);
const char *match_trouble_name(match_trouble t);           // "orphan"
u32 match_place_of(const match *m, u32 file, u32 process); // of a file that was added
struct align_clocks;
// Waits and transfers anew, on corrected clocks (processes are places); NULL: as recorded.
void match_time(match *m, const struct align_clocks *x);

// ---- clocks, hangs, beside a prediction, at another size, tuned ---------------------------------------------
#include "diagnose/clocks.h"
#include "diagnose/compare.h"
#include "diagnose/hang.h"
#include "diagnose/messages.h"
#include "diagnose/rescale.h"
#include "diagnose/tuning.h"
#endif
