// internal.h - what the files of profile/ share.
#ifndef HEDDLE_PROFILE_INTERNAL_H
#define HEDDLE_PROFILE_INTERNAL_H
#include "profile/profile.h"
#include "machine/machine.h"

static inline u64 now_ns(const profile_job *j) { return j->now_ns ? j->now_ns() : clock_ns(); }

// ---- together (together.c) --------------------------------------------------------------------------------
// *go where any of the processes 0..n-1 says so: a collective call, which is also a barrier. False: a process is gone.
bool together(const profile_job *j, u32 n, bool *go);
// Figures of every process of 0..n-1, to process 0: out has n * count of them there.
bool together_gather(const profile_job *j, u32 n, const double *v, u32 count, double *out);
bool together_lost(ctx *c); // false, with E_PEER

// ---- one communication (comm.c) -----------------------------------------------------------------------------
// A program of `times` communications of the event among n ranks: in a row, or with caches filled with something else before each.
// NULL and a diagnostic.
prog *comm_program(ctx *c, arena *a, const cost_event *e, u32 n, u32 times, split_at at, bool row);
// Among the processes of `members`, n of them, of which this may be one; process 0 gets the figure. off_ns: as far off it may be in any case.
// row: as on a slow link.
bool comm_measure(const profile_job *j, ctx *c, const cost_event *e, split_at at, const u32 *members, u32 n,
                  double off_ns, bool row, profile_figure *out);
// Is what joins these processes slower than a quarter of a GB/s to each? All of the job make the call, and are told.
bool comm_is_slow(const profile_job *j, ctx *c, const u32 *members, u32 n, bool *slow);

// ---- computation (walk.c) --------------------------------------------------------------------------------
// Every process runs the part of a rank of some program, until the wanted events are known as well as the step is to be known. What
// they took is in v[event * WALK_MOST + step], in ns, NAN where there was none.
enum { WALK_MOST = 60 };
// What this part computed in each step, in ns, and how often each event ran in it; in the arena of the events.
typedef struct {
  u32 nsteps;
  double *ns;
  u32 *count;
} walk_steps;
bool walk_rank(const profile_job *j, ctx *c, profile_events *x, u32 rank, const bool *wanted, double *v,
               walk_steps *out);

// ---- waiting (slowest.c) -----------------------------------------------------------------------------------
// Ranks of a step wait for the slowest of them: by how much what every process measured has to be longer. Called by all; process 0 has
// by[process]. settled: what this one computes in a step by the figures of its events. program: a number, the same where
// processes run parts of one program, in which so many ranks take part. False: a process is gone.
bool slowest_of_all(const profile_job *j, arena *a, const walk_steps *own, double settled, u32 program,
                    u32 ranks, double *by);
#endif
