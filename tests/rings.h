// rings.h - jobs of which the clocks are known: ranks in a ring that send to their neighbours for a minute. Included by
// tests only.
#ifndef HEDDLE_TEST_RINGS_H
#define HEDDLE_TEST_RINGS_H
#include "diagnose/diagnose.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static const double US = 1e6, SECOND = 1e12;

static inline double exponential(u64 *rng, double mean) { return -mean * log(1 - rng_unit(rng)); }

typedef struct {
  u32 ranks, each;        // messages of a link
  double drift;           // up to so much, of one
  double latency, jitter; // ps
  bool one_way;           // links to the right only
  u32 jumper;             // rank whose clock jumps in the middle; 0: none
  double jump;            // ps
  double bend;            // of one: rates change by up to so much in the middle
} ring;
typedef struct {
  align_seen seen;
  double *offset, *drift, *bend; // truth
  const ring *of;
} ring_job;

static inline i64 ring_reading(const ring_job *j, u32 rank, double t) {
  const double late = fmax(t - 30 * SECOND, 0);
  const double jump = j->of->jumper && rank == j->of->jumper && late > 0 ? j->of->jump : 0;
  return (i64)floor(t + j->offset[rank] + j->drift[rank] * t + j->bend[rank] * late + jump + 0.5);
}

// Messages over a minute, at any time; rank 0 shows true time.
static inline ring_job ring_make(arena *a, const ring *r, u64 seed) {
  ring_job j = {.offset = ZNEWN(a, double, r->ranks),
                .drift = ZNEWN(a, double, r->ranks),
                .bend = ZNEWN(a, double, r->ranks),
                .of = r};
  for (u32 k = 1; k < r->ranks; k++) {
    j.offset[k] = (rng_unit(&seed) * 2 - 1) * 50e3 * US;
    j.drift[k] = (rng_unit(&seed) * 2 - 1) * r->drift;
    if (r->bend > 0) j.bend[k] = (rng_unit(&seed) * 2 - 1) * r->bend;
  }
  const u32 nlinks = r->ranks * (r->one_way ? 1 : 2);
  align_link *link = NEWN(a, align_link, nlinks);
  align_message *m = NEWN(a, align_message, (size_t)nlinks * r->each);
  for (u32 l = 0; l < nlinks; l++) {
    const u32 x = l % r->ranks, y = (x + 1) % r->ranks;
    link[l] = l < r->ranks ? (align_link){x, y, 0} : (align_link){y, x, 0};
    for (u32 k = 0; k < r->each; k++) {
      const double t = 60 * SECOND * (k + rng_unit(&seed)) / r->each;
      const double took = r->latency + exponential(&seed, r->jitter);
      m[l * r->each + k] =
          (align_message){l, ring_reading(&j, link[l].from, t), ring_reading(&j, link[l].to, t + took)};
    }
  }
  j.seen = (align_seen){.nprocesses = r->ranks,
                        .nfamilies = 1,
                        .nlinks = nlinks,
                        .link = link,
                        .nmessages = nlinks * r->each,
                        .message = m};
  return j;
}

// By how much, in microseconds, corrected readings of any rank are off those of rank 0, at any time.
static inline double ring_error(const ring_job *j, const align_clocks *x) {
  double worst = 0;
  for (u32 k = 0; k < j->of->ranks; k++)
    for (u32 i = 0; i <= 10; i++) {
      const double t = 6 * SECOND * i;
      const i64 off = align_time(x, k, ring_reading(j, k, t)) - align_time(x, 0, ring_reading(j, 0, t));
      worst = fmax(worst, fabs((double)off));
    }
  return worst / US;
}

static inline int ring_by_value(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

// The median over seeds 1, 2, .. in microseconds; no tie may be violated.
static inline double ring_median_error(const ring *r, u32 seeds) {
  double *error = malloc(seeds * sizeof *error);
  for (u32 k = 0; k < seeds; k++) {
    arena *a = arena_new();
    const ring_job j = ring_make(a, r, k + 1);
    const align_clocks *x = align_find(a, &j.seen, NULL);
    error[k] = ring_error(&j, x);
    CHECK_EQ_I64((i64)x->after, 0);
    CHECK(x->before > 0 && x->slack_ps > 0 && x->ncomponents == 1);
    arena_free(a);
  }
  qsort(error, seeds, sizeof *error, ring_by_value);
  const double m = (error[(seeds - 1) / 2] + error[seeds / 2]) / 2;
  free(error);
  return m;
}
#endif
