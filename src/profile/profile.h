// profile.h - measures what the instructions of a plan take on the machine that this runs on, and what the machine
// itself gives. Layer 7. Every process of a job calls the same functions; process 0 has the answers.
//
// Idea: equal events take equal time, so each is measured once, and not the plan as a whole. A computation is measured
// where it stands: a process runs one rank's part of the program, step after step, with nobody at the other end of its
// messages, while the other processes run other ranks' parts, so that memory, caches and cores are as in a real step.
// A communication is measured as a program of its own, among as many processes as it has members.
#ifndef HEDDLE_PROFILE_H
#define HEDDLE_PROFILE_H
#include "cost/cost.h"
#include "eval/eval.h"

enum { PROFILE_SEND_RANKS = 2, PROFILE_GROUP_RANKS = 8 }; // at most so many measure a send, a collective

typedef struct {
  eval_link link; // joins the processes; rank: of this one
  u32 nprocs;
  int threads;         // that a process computes with
  u64 (*now_ns)(void); // what events are timed by; NULL: clock_ns
} profile_job;

// ---- repeats (repeats.c) --------------------------------------------------------------------------------
typedef struct {
  double median, spread; // two repeats in three lie within median * (1 +- spread)
  u32 count;             // repeats that are left
} profile_figure;
// Of repeats v[0..n), n above 0, which are sorted. Those further above the median than OUTLIER times the median distance
// from it are left out: something else ran.
profile_figure profile_settle(double *v, u32 n);
// How far the median of n repeats is off, two times in three, if they are alike and independent; and that median.
double profile_off(const double *v, u32 n);
double profile_median(const double *v, u32 n); // as profile_settle has it, of n above 0
// What events took in steps, v[event * most + step], scaled so that their medians, each count[event] times, add up to the median
// step. Events with count 0 do not run, steps are 0..nsteps.
void profile_add_up(double *v, u32 most, const u32 *count, u32 nevents, u32 nsteps);
// From n members to `wanted`: what a ring moves in proportion, 2(n-1)/n of the bytes of an all-reduce, (n-1)/n of others.
double profile_ring(opcode op, u32 n, u32 wanted);

// A dimension that a communication splits or joins: elements of the dimensions before and behind it; 1 and 1 where it does neither.
typedef struct {
  i64 outer, inner;
} split_at;

// ---- events of a program (events.c) ---------------------------------------------------------------------
typedef struct {
  const char *key;
  cost_event e;       // shapes and placement in the list's arena
  const func_info *f; // where it was found: an instruction that is it
  const instr *i;
  group on; // it runs on these, of which `member` is the rank
  u32 member;
  u32 rank;     // of the program: one that runs it
  u32 nmembers; // communication: of it, and which ranks these are
  const u32 *members;
  split_at at; // ... of what a rank has
  u64 times;   // that a rank runs it in a step, at most
  u64 counted; // the latest instruction that is in them
} profile_event;
typedef struct {
  VEC(profile_event) v;
  hmap by_key;
  cost_model *k;
  const prog *p;
  arena *a;
} profile_events;
// All distinct events of the program on the machine. False and diagnostics if one cannot be priced.
bool profile_events_of(profile_events *x, ctx *c, arena *a, const prog *p, const machine *m);
// The number of an event, from 1; 0: the instruction has no price. member: of g. For rank.
u32 profile_event_of(profile_events *x, const func_info *f, const instr *i, group g, u32 member);

// ---- measuring -------------------------------------------------------------------------------------------
typedef struct {
  const char *machine, *versions, *path;
  u32 nrounds; // searches whose best plans were measured; 0: there was none
  u32 nprograms, nevents, nknown, nmeasured, nscaled,
      nleft; // nleft: that could not be measured with so few processes
  double seconds;
  const char *from;          // a file that was imported: nevents of it are nmeasured, nscaled and nfailed
  u32 nfailed, nplan, nlost; // nplan: events of the plan, of which the database has no times of nlost
  i64 launch_ps, device_ps;  // of a rank's step: to launch computations, and those on the device; 0: not said
  const struct profile_failure { const char *key, *why; } * failure;
  bool fits;        // were made: profile_fit
  u32 nfits, nthin; // kinds of events that have one; that have too few sizes
  const event_fit *fit;
} profile_report;
typedef struct {
  const char *path;     // of the database
  const char *versions; // "heddle 0.1.0, Open MPI 4.1.4": what the times depend on beside the machine
} profile_opts;
// A job that measures programs, some at a time, and tells of all in *out. NULL and diagnostics. What the arguments point to lives as long
// as the session, in arena a; a program while it is measured.
typedef struct profile_session profile_session;
profile_session *profile_begin(const profile_job *j, ctx *c, arena *a, const machine *m,
                               const profile_opts *o, profile_report *out);
// Measures what the database has not of this machine and these versions of the events of n programs, and puts it there. False and
// diagnostics.
bool profile_programs(profile_session *p, const prog *const *of, u32 n);
void profile_end(profile_session *p); // NULL is fine
// All events of a program, *nevents, and how many of them have no time in the machine's measured events. False and diagnostics.
bool profile_missing(profile_events *x, ctx *c, arena *a, const prog *p, const machine *m, u32 *nevents,
                     u32 *nmissing);
// n bytes of process 0, for all. False: a process is gone.
bool profile_tell(const profile_job *j, void *bytes, i64 n);

// Times that a program of `heddle export --to profile-pytorch` has measured, a line of JSON each, into the database at `path`:
// all of them, or on a fault none. m: the machine that they must be of, and p the program whose events are counted; NULL.
bool profile_import(ctx *c, arena *a, const char *file, const char *path, const machine *m, const prog *p,
                    profile_report *out);

// Fits of all kinds of events that the database has of this machine, put there in place of older ones; for process 0. False
// and diagnostics.
bool profile_fit(ctx *c, arena *a, const machine *m, const char *path, profile_report *out);

// ---- the machine (probe.c) -------------------------------------------------------------------------------
// A machine file of the machine that this runs on, every figure with how it was measured. name: of the machine. NULL and
// diagnostics; on processes other than 0 "".
const char *profile_machine(const profile_job *j, ctx *c, arena *a, const char *name, const char *versions);
#endif
