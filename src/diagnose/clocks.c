// clocks.c - are the clocks of a job's processes far enough apart to be corrected, before times are compared?
#include "diagnose/diagnose.h"
#include <math.h>

// Members of one host, whose clock is one, end up to 15 us apart on average in recordings at hand: so much may
// be no clock's, and twice as much is needed to tell.
static const i64 ENDS_PS = 15000000, LEAST_PS = 30000000;

typedef struct {
  double low, high;
} range;

static void widen(range *r, double ps) { r->low = fmin(r->low, ps), r->high = fmax(r->high, ps); }

// How far clocks that are tied together are apart at most: in the middle, or where drifts have taken them by then. Not
// how far they are off the first: that may lie between two others.
static i64 most_apart(arena *a, const align_clocks *x) {
  const u32 moments = x->nknots + 1; // the middle is the last
  double most = 0;
  range *r = NEWN(a, range, (size_t)x->ncomponents * moments + 1);
  for (size_t k = 0; k < (size_t)x->ncomponents * moments; k++) r[k] = (range){INFINITY, -INFINITY};
  for (u32 p = 0; p < x->n; p++) {
    const align_clock *c = &x->clock[p];
    range *of = r + (size_t)c->component * moments;
    for (u32 k = 0; k < x->nknots; k++) widen(&of[k], (double)c->coarse_ps + c->at[k]);
    widen(&of[x->nknots], (double)align_offset(x, p));
  }
  for (size_t k = 0; k < (size_t)x->ncomponents * moments; k++) most = fmax(most, r[k].high - r[k].low);
  return (i64)fmin(4e18, most);
}

const align_clocks *clocks_apart(arena *a, const match *m, bool own_clocks, i64 *by_ps, i64 *within_ps) {
  const align_seen *seen = align_observe(a, m, own_clocks);
  *by_ps = *within_ps = 0;
  if (m->places.n < 2 || (!seen->ncollectives && !seen->nmessages)) return NULL;
  const align_clocks *x = align_find(a, seen, NULL);
  double sd = 0;
  for (u32 k = 0; k < x->n; k++) sd = fmax(sd, align_sd_ps(x, k));
  const i64 by = most_apart(a, x);
  if (by < LEAST_PS || (double)by <= 4 * MAX(sd, x->ends_sd_ps)) return NULL;
  *by_ps = by, *within_ps = MAX(ENDS_PS, (i64)sd);
  return x;
}
