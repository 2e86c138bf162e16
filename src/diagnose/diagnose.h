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
  u32 place, file, event;
  i64 start_ps, end_ps;     // on the place's clock, base_ps included
  i64 wait_ps, transfer_ps; // latest start less its own; its end less the latest start (match_time)
} match_member;
typedef enum { MATCH_BY_FILE, MATCH_BY_NUMBER, MATCH_BY_ORDER } match_by;
typedef struct {
  sym op, group, name; // name: of what ran, on the first member
  i64 seq, bytes;      // -1: not said
  u32 first, n;        // members, of match.member, in the order of files; of a message the sender first
  u32 late;            // the member that started last (match_time)
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
const char *match_trouble_name(match_trouble t); // "orphan"
struct align_clocks;
// Waits and transfers anew, on corrected clocks (processes are places); NULL: as recorded.
void match_time(match *m, const struct align_clocks *x);

// ---- clocks: align.c ------------------------------------------------------------------------------------
// The clocks of processes, from what happened on several of them. This part knows no files: it is given times.
//
// A process reads its clock; true time is what the clock of a reference shows. Two kinds of observations tie clocks
// together. A message is sent on one clock and has been received on another, later. A collective ends on all its
// members at nearly the same time, and on none before the last of them has started. Both must hold once times are
// corrected (else an effect comes before its cause), and among the corrections that keep all of them the one is taken
// that makes the fastest messages of a family, and the ends of a collective, as equal as they can be.
typedef struct {
  u32 from, to; // processes
  u32 family;   // of operations that take alike, 0 .. nfamilies-1: they share a latency
} align_link;
typedef struct {
  u32 link;
  i64 send_ps, recv_ps; // the end of sending on the sender's clock, of receiving on the receiver's
} align_message;
typedef struct {
  u32 first, n; // members, of align_seen.member
  u32 family;   // 0 .. nfamilies-1
} align_collective;
typedef struct {
  u32 process;
  i64 start_ps, end_ps; // on its own clock
} align_member;
// Readings lie within 900,000 s (9e17 ps) of zero.
typedef struct {
  u32 nprocesses, nfamilies;
  const u32 *machine; // by process: equal numbers share a clock. NULL: every process has its own
  u32 nlinks;
  const align_link *link;
  u32 nmessages;
  const align_message *message;
  const i64 *posted_ps; // by message: when the receiver began to wait, on its clock; NULL: not known
  u32 ncollectives;
  const align_collective *collective;
  u32 nmembers;
  const align_member *member;
} align_seen;

typedef enum {
  ALIGN_FLOORS, // weighted least squares over the fastest message of every window, and over ends of collectives
  ALIGN_DPRO    // dPRO: the least variance of the time that receiving takes, within a link. Offsets only
} align_method;
enum { ALIGN_DRIFT_AUTO = 0, ALIGN_DRIFT_NONE, ALIGN_DRIFT_LINEAR, ALIGN_PIECES_MAX = 16 };
typedef struct {
  align_method method;
  u32 drift; // ALIGN_DRIFT_..., or from 3 on: clocks of drift-1 pieces of equal length
} align_opts;

// What a clock shows less true time, at readings of the clock: straight between knots and beyond them.
typedef struct {
  i64 coarse_ps; // whole part, at any time
  double *at;    // [nknots]: ps that come on top, at align_clocks.knot_ps
  double *sd;    // [nknots]: standard error of at; 0: a reference, or not known (ALIGN_DPRO)
  // The offset (at the middle) is certainly between, by the order of causes and effects alone. INT64_MIN, INT64_MAX:
  // nothing says so, or something is violated.
  i64 low_ps, high_ps;
  u32 clock, component; // processes of one number have one clock; are tied together, directly or not
  u64 used;             // messages and ends of collectives of the process
} align_clock;
typedef struct {
  u32 from, to; // processes
  i64 time_ps;  // when it was sent, on the sender's clock
  i64 gap_ps;   // received less sent, corrected
  bool collective;
} align_step;
// A clock that jumps: after time (on its own clock) it is by_ps ahead of what it was.
typedef struct {
  u32 process;
  i64 time_ps, within_ps; // time, and how exactly it is known
  i64 by_ps;
} align_jump;
typedef struct align_clocks {
  u32 n;              // processes
  align_clock *clock; // by process
  u32 nknots;         // 1: offsets; 2: a drift; more: pieces
  i64 *knot_ps;       // readings, less coarse_ps
  u32 ncomponents;
  u32 *reference; // of a component: the process whose clock counts as true
  // The largest time by which every message of the tie can be later than its cause at once. Below 0: no clocks of
  // this form satisfy all of them. INT64_MAX: there is no cycle.
  i64 slack_ps;
  u32 ncycle; // the cycle of messages that allows no more (slack_ps * ncycle is what its gaps add up to)
  align_step *cycle;
  u64 constraints;               // messages, and pairs (latest start, earliest end) of collectives
  u64 before, after;             // of these, violated as recorded and once corrected
  i64 worst_before, worst_after; // by how much at most; 0: none is
  double *latency_ps;            // by family; NAN: no message of it counts
  double ends_sd_ps;             // scatter of ends of collectives; 0: none
  u32 njumps;
  align_jump *jump;
  bool
      flat; // ALIGN_DPRO: the objective does not say where some clocks are (every receiver waited for every message)
} align_clocks;
align_clocks *align_find(arena *a, const align_seen *seen, const align_opts *o); // o: NULL for defaults
// A reading of a process's clock as true time.
i64 align_time(const align_clocks *x, u32 process, i64 reading_ps);
i64 align_offset(const align_clocks *x, u32 process);   // clock less true time at the middle of all readings
double align_drift(const align_clocks *x, u32 process); // from the first knot to the last; 20e-6 = 20 ppm
double align_sd_ps(const align_clocks *x, u32 process); // largest standard error at any knot; 0: see sd
// What matched communications say of clocks (observe.c): processes are places. Sends are messages; of collectives those
// count of which no member can end before all have started. own_clocks: even processes of one host have clocks of
// their own.
const align_seen *align_observe(arena *a, const match *m, bool own_clocks);
#endif
