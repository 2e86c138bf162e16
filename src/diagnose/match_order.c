// match_order.c - which call of one process is which of another, without numbers.
//
// Both make the same calls in the same order, but a recording may begin or end elsewhere, and may lack some. Members of
// a communication end together, so from one call to the next the same time passes on all of them, whatever their
// clocks show. First one is moved against the other until the most pairs agree in what they are and in the time to the
// next; then both are walked from where most of them agree: a call belongs to the one that ends as far away as the last
// pair did, to within a quarter of the time to the next call. What is left over has no partner.
#include "diagnose/match_call.h"
#include <stdlib.h>

enum { EITHER_WAY = 16 };

// v's call k + shift with to's call k: how many pairs there are, how many agree with the next; the middle of the
// longest run of those that do.
typedef struct {
  i64 shift, start;
  u32 pairs, even, run;
  double off; // by how much those that agree do not, on average
} fit;

static fit try_shift(const call *to, u32 nto, const call *v, u32 n, i64 shift) {
  fit f = {.shift = shift, .start = -1};
  u32 run = 0;
  for (i64 k = MAX(0, -shift); k < nto && k + shift < n; k++) {
    const i64 at = k + shift;
    const bool last = k + 1 >= nto || at + 1 >= n;
    const i64 there = last ? 0 : to[k + 1].end - to[k].end, here = last ? 0 : v[at + 1].end - v[at].end;
    f.pairs++;
    const bool agree = last ? run > 0 : llabs(there - here) <= MAX(there, here) / 8;
    run = to[k].what == v[at].what && agree ? run + 1 : 0;
    f.even += run > 0;
    f.off += run ? (double)llabs(there - here) : 0;
    if (run > f.run) f.run = run, f.start = k - run / 2;
  }
  f.off /= MAX(f.even, 1);
  return f;
}

// More of the pairs agree; or as many do, twice as well, and few are left over.
static bool is_better(const fit *f, const fit *best, u32 n) {
  if (!f->even) return false;
  const double share = (double)f->even / f->pairs - (double)best->even / MAX(best->pairs, 1);
  return share > 0.05 ||
         (share > -0.05 && f->off < best->off / 2 && 2 * f->pairs >= n && f->pairs + EITHER_WAY >= n);
}

// The nearest of the best.
static fit best_shift(const call *to, u32 nto, const call *v, u32 n) {
  fit best = try_shift(to, nto, v, n, 0);
  const i64 most = (i64)nto - n + EITHER_WAY;
  for (i64 shift = 1; shift <= most; shift++)
    for (int sign = -1; sign <= 1; sign += 2) {
      if (sign > 0 && shift > EITHER_WAY) continue;
      const fit f = try_shift(to, nto, v, n, sign * shift);
      if (is_better(&f, &best, n)) best = f;
    }
  return best;
}

// A quarter of the time from call k to its nearest neighbour.
static i64 room(const call *v, u32 n, i64 k) {
  i64 least = INT64_MAX;
  if (k > 0) least = MIN(least, v[k].end - v[k - 1].end);
  if (k + 1 < n) least = MIN(least, v[k + 1].end - v[k].end);
  return least / 4;
}

// From a pair that is certain, in one direction.
static void walk(const call *to, u32 nto, const call *v, u32 n, i64 k, i64 at, int step, i64 distance,
                 u32 *pair) {
  while (k >= 0 && k < nto && at >= 0 && at < n) {
    const i64 off = v[at].end - to[k].end - distance;
    if (llabs(off) <= MAX(room(to, nto, k), room(v, n, at))) {
      pair[k] = (u32)at;
      if (v[at].what == to[k].what) distance += off;
      k += step, at += step;
    } else if ((off > 0) == (step > 0)) {
      k += step; // v has it not
    } else {
      at += step;
    }
  }
}

void match_in_order(const call *to, u32 nto, const call *v, u32 n, u32 *pair) {
  for (u32 k = 0; k < nto; k++) pair[k] = TRACE_NONE;
  if (to == v) {
    for (u32 k = 0; k < nto; k++) pair[k] = k;
    return;
  }
  const fit best = best_shift(to, nto, v, n);
  if ((best.shift == 0 && n == nto && best.even == n) || best.start < 0) {
    for (u32 k = 0; k < nto && k < n; k++) pair[k] = k; // all agree, or nothing does
    return;
  }
  const i64 at = best.start + best.shift, distance = v[at].end - to[best.start].end;
  walk(to, nto, v, n, best.start, at, 1, distance, pair);
  walk(to, nto, v, n, best.start, at, -1, distance, pair);
}
