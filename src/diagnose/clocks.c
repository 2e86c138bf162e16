// clocks.c - are the clocks of a job's processes far enough apart to be corrected, before times are compared?
#include "diagnose/diagnose.h"

// Members of one host, whose clock is one, end up to 15 us apart on average in recordings at hand: so much may
// be no clock's, and twice as much is needed to tell.
static const i64 ENDS_PS = 15000000, LEAST_PS = 30000000;

const align_clocks *clocks_apart(arena *a, const match *m, i64 *by_ps, i64 *within_ps) {
  const align_seen *seen = align_observe(a, m, false);
  if (m->places.n < 2 || (!seen->ncollectives && !seen->nmessages)) return NULL;
  const align_clocks *x = align_find(a, seen, NULL);
  bool apart = false;
  *by_ps = 0, *within_ps = ENDS_PS;
  for (u32 k = 0; k < x->n; k++) {
    const i64 by = align_offset(x, k), size = by < 0 ? -by : by;
    const double sd = align_sd_ps(x, k);
    apart |= size >= LEAST_PS && (double)size > 4 * MAX(sd, x->ends_sd_ps);
    *by_ps = MAX(*by_ps, size), *within_ps = MAX(*within_ps, (i64)sd);
  }
  return apart ? x : NULL;
}
