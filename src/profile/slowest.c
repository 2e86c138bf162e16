// slowest.c - what ranks lose by waiting for each other.
//
// Idea: a collective begins when the last of its members has come. Each takes now longer, now shorter, and one may stand on a slower
// core than another for minutes; so a step takes longer than any rank's computations. All processes run their parts at the same time,
// step by step. What the slowest of them took before each collective that runs in its turn, added up over the step, is what a step with waiting computes.
// Where their programs do not have as many collectives (stages of a pipeline), the slowest in the whole step is taken.
#include "profile/internal.h"

// Of every process.
typedef struct {
  double settled, ncollectives, program, ranks;
} head;
enum { HEAD = 4 };

// The steps of `ranks` processes from q on, as if they were those of a program whose longest part takes `longest`.
typedef struct {
  const head *of;
  const double *ns; // [process][step][part]
  u32 nprocs, nsteps, nparts;
} heard;
static double slowest_from(const heard *x, u32 q, u32 ranks, double program, double longest, double *step) {
  for (u32 s = 0; s < x->nsteps; s++) {
    step[s] = 0;
    for (u32 k = 0; k < x->nparts; k++) {
      double most = 0;
      for (u32 i = 0; i < ranks; i++) {
        const u32 at = (q + i) % x->nprocs;
        const double by = x->of[at].program != program ? longest / x->of[at].settled : 1;
        most = MAX(most, by * x->ns[((size_t)at * x->nsteps + s) * x->nparts + k]);
      }
      step[s] += most;
    }
  }
  return profile_settle(step, x->nsteps).median;
}

// Which processes stand for the ranks of a program: all that are neighbours, on average.
static double waited(const heard *x, const head *of, double *step) {
  const u32 ranks = MIN((u32)of->ranks, x->nprocs);
  double longest = 0, sum = 0;
  if (ranks < 2) return 1;
  for (u32 q = 0; q < x->nprocs; q++) {
    if (!(x->of[q].settled > 0)) return 1; // it computes nothing
    if (x->of[q].program == of->program) longest = MAX(longest, x->of[q].settled);
  }
  for (u32 q = 0; q < x->nprocs; q++) sum += slowest_from(x, q, ranks, of->program, longest, step);
  return sum / x->nprocs / longest;
}

bool slowest_of_all(const profile_job *j, arena *a, const walk_steps *own, double settled, u32 program,
                    u32 ranks, double *by) {
  const u32 n = j->nprocs, parts = own->ncollectives + 1;
  head *of = NEWN(a, head, n);
  heard x = {.of = of, .nprocs = n, .nsteps = own->nsteps, .nparts = parts};
  const head mine = {settled, own->ncollectives, program, ranks};
  if (!together_gather(j, n, &mine.settled, HEAD, &of->settled)) return false;
  for (u32 q = 1; q < n && !j->link.rank; q++)
    if (of[q].ncollectives != mine.ncollectives) x.nparts = 1;
  if (!profile_tell(j, &x.nparts, sizeof x.nparts)) return false;
  const u32 each = x.nsteps * x.nparts;
  double *ns = ZNEWN(a, double, each), *all = j->link.rank ? ns : NEWN(a, double, (size_t)each *n);
  for (u32 k = 0; k < x.nsteps * parts; k++) ns[x.nparts == 1 ? k / parts : k] += own->ns[k];
  if (!together_gather(j, n, ns, each, all)) return false;
  x.ns = all;
  double *step = NEWN(a, double, x.nsteps);
  for (u32 q = 0; q < n && !j->link.rank; q++) by[q] = waited(&x, &of[q], step);
  return true;
}
