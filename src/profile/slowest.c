// slowest.c - what ranks lose by waiting for each other.
//
// Idea: ranks meet in every step. Each takes now longer, now shorter, and one may stand on a slower core than another for
// minutes; so a step takes longer than any rank's computations. All processes run their parts at the same time, step by step: the
// slowest of as many as there are ranks is what a step waits for.
//
// Weighed: the slowest before each collective, added up. Processes that measure do not meet, so on a busy machine their stalls add up, which
// ranks that wait anyhow do not feel; and parts of several programs, or of stages, have no collectives in common.
#include "profile/internal.h"

// Of every process.
typedef struct {
  double settled, program, ranks;
} head;
enum { HEAD = 3 };
typedef struct {
  const head *of;
  const double *ns; // [process][step]
  u32 nprocs, nsteps;
} gathered;

// By how much the slowest of `ranks` processes from q on takes longer than the longest of their parts. One that runs another program stands
// for a rank with the longest part of this one.
static double slowest_from(const gathered *x, u32 q, u32 ranks, const head *of, double longest,
                           double *step) {
  double most = 0;
  for (u32 s = 0; s < x->nsteps; s++) step[s] = 0;
  for (u32 i = 0; i < ranks; i++) {
    const u32 at = (q + i) % x->nprocs;
    const bool own = x->of[at].program == of->program;
    const double scale = own ? 1 : longest / x->of[at].settled;
    most = MAX(most, own ? x->of[at].settled : longest);
    for (u32 s = 0; s < x->nsteps; s++) step[s] = MAX(step[s], scale * x->ns[(size_t)at * x->nsteps + s]);
  }
  return profile_settle(step, x->nsteps).median / most;
}

// Which processes stand for the ranks of the program: all that are neighbours, on average.
static double waited(const gathered *x, const head *of, double *step) {
  const u32 ranks = MIN((u32)of->ranks, x->nprocs);
  double longest = 0, sum = 0;
  if (ranks < 2) return 1;
  for (u32 q = 0; q < x->nprocs; q++) {
    if (!(x->of[q].settled > 0)) return 1; // it computes nothing
    if (x->of[q].program == of->program) longest = MAX(longest, x->of[q].settled);
  }
  for (u32 q = 0; q < x->nprocs; q++) sum += slowest_from(x, q, ranks, of, longest, step);
  return sum / x->nprocs;
}

bool slowest_of_all(const profile_job *j, arena *a, const walk_steps *own, double settled, u32 program,
                    u32 ranks, double *by) {
  const u32 n = j->nprocs;
  head *of = NEWN(a, head, n);
  double *all = NEWN(a, double, (size_t)own->nsteps *n), *step = NEWN(a, double, own->nsteps);
  const head mine = {settled, program, ranks};
  if (!together_gather(j, n, &mine.settled, HEAD, &of->settled)) return false;
  if (!together_gather(j, n, own->ns, own->nsteps, all)) return false;
  const gathered x = {.of = of, .ns = all, .nprocs = n, .nsteps = own->nsteps};
  for (u32 q = 0; q < n && !j->link.rank; q++) by[q] = waited(&x, &of[q], step);
  return true;
}
