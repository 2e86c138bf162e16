// clocks.c - are the clocks of a job's processes far enough apart to be corrected, before times are compared?
#include "diagnose/diagnose.h"
#include <math.h>

// Members of one host, whose clock is one, end up to 15 us apart on average in recordings at hand: so much may
// be no clock's, and twice as much is needed to tell.
static const i64 ENDS_PS = 15000000, LEAST_PS = 30000000;

// How far a clock is off at most: in the middle, or where a drift has taken it by then.
static i64 off_by(const align_clocks *x, u32 process) {
  const align_clock *c = &x->clock[process];
  const i64 middle = align_offset(x, process);
  double most = fabs((double)middle);
  for (u32 k = 0; k < x->nknots; k++) most = fmax(most, fabs((double)c->coarse_ps + c->at[k]));
  return (i64)fmin(4e18, most);
}

const align_clocks *clocks_apart(arena *a, const match *m, bool own_clocks, i64 *by_ps, i64 *within_ps) {
  const align_seen *seen = align_observe(a, m, own_clocks);
  *by_ps = *within_ps = 0;
  if (m->places.n < 2 || (!seen->ncollectives && !seen->nmessages)) return NULL;
  const align_clocks *x = align_find(a, seen, NULL);
  bool apart = false;
  i64 by = 0, within = ENDS_PS;
  for (u32 k = 0; k < x->n; k++) {
    const i64 size = off_by(x, k);
    const double sd = align_sd_ps(x, k);
    apart |= size >= LEAST_PS && (double)size > 4 * MAX(sd, x->ends_sd_ps);
    by = MAX(by, size), within = MAX(within, (i64)sd);
  }
  if (!apart) return NULL;
  *by_ps = by, *within_ps = within;
  return x;
}
