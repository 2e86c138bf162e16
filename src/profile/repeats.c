// repeats.c - one figure from repeats.
#include "profile/internal.h"
#include <math.h>
#include <stdlib.h>

static double middle(const double *v, u32 n) { return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2; }

profile_figure profile_settle(double *v, u32 n) {
  enum { OUTLIER = 5 };
  assert(n);
  double *off = malloc(n * sizeof *off);
  if (!off) base_out_of_memory(n * sizeof *off);
  qsort(v, n, sizeof *v, ascending_double);
  const double first = middle(v, n);
  for (u32 i = 0; i < n; i++) off[i] = fabs(v[i] - first);
  qsort(off, n, sizeof *off, ascending_double);
  // A clock that ticks coarsely makes the middle distance nothing.
  const double most = first + MAX(OUTLIER * middle(off, n), 0.02 * first);
  while (n > 1 && v[n - 1] > most) n--;
  profile_figure x = {.median = middle(v, n), .count = n};
  for (u32 i = 0; i < n; i++) off[i] = x.median > 0 ? fabs(v[i] / x.median - 1) : 0;
  qsort(off, n, sizeof *off, ascending_double);
  x.spread = off[MIN((u32)ceil(0.683 * n), n) - 1];
  free(off);
  return x;
}

static profile_figure settled(const double *v, u32 n) {
  double *of = malloc(n * sizeof *of);
  if (!of) base_out_of_memory(n * sizeof *of);
  memcpy(of, v, n * sizeof *of);
  const profile_figure x = profile_settle(of, n);
  free(of);
  return x;
}
double profile_median(const double *v, u32 n) { return settled(v, n).median; }
double profile_off(const double *v, u32 n) {
  const profile_figure x = settled(v, n);
  return x.spread * x.median / sqrt(x.count);
}

void profile_add_up(double *v, u32 most, const u32 *count, u32 nevents, u32 nsteps) {
  arena *a = arena_new();
  double *step = ZNEWN(a, double, nsteps + 1), *of = NEWN(a, double, nsteps + 1), sum = 0;
  for (u32 e = 0; e < nevents && nsteps; e++) {
    if (!count[e]) continue;
    for (u32 s = 0; s < nsteps; s++) {
      of[s] = v[(size_t)e * most + s];
      step[s] += of[s] * count[e];
    }
    sum += profile_settle(of, nsteps).median * count[e];
  }
  const double by = sum > 0 ? profile_settle(step, nsteps).median / sum : 1;
  for (size_t k = 0; k < (size_t)nevents * most; k++) v[k] *= by;
  arena_free(a);
}

static double moved(opcode op, u32 n) {
  if (n < 2) return 0;
  const double part = (double)(n - 1) / n;
  return op == OP_all_reduce                                            ? 2 * part
         : op == OP_send || op == OP_halo_exchange || op == OP_exchange ? 1
                                                                        : part;
}
double profile_ring(opcode op, u32 n, u32 wanted) { return moved(op, wanted) / moved(op, n); }
