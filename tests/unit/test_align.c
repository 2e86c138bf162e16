// test_align.c - clocks found again: rings of 128 ranks of which the truth is known; jumps, components, machines.
#include "diagnose/diagnose.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

enum { RANKS = 128, SEEDS = 20 };
static const double US = 1e6, SECOND = 1e12;

static double exponential(u64 *rng, double mean) { return -mean * log(1 - rng_unit(rng)); }

typedef struct {
  u32 ranks, each;        // messages of a link
  double drift;           // up to so much, of one
  double latency, jitter; // ps
  bool one_way;           // links to the right only
  u32 jumper;             // rank that jumps in the middle; 0: none
  double jump;            // ps
} ring;
typedef struct {
  align_seen seen;
  double *offset, *drift; // truth
  i64 *sent, *received;   // truth
  const ring *of;
} ring_job;

static i64 reading(const ring_job *j, u32 rank, double t) {
  const double jump = j->of->jumper && rank == j->of->jumper && t > 30 * SECOND ? j->of->jump : 0;
  return (i64)floor(t + j->offset[rank] + j->drift[rank] * t + jump + 0.5);
}

// Messages over a minute, at any time; rank 0 shows true time.
static ring_job make_ring(arena *a, const ring *r, u64 seed) {
  ring_job j = {.offset = ZNEWN(a, double, r->ranks), .drift = ZNEWN(a, double, r->ranks), .of = r};
  for (u32 k = 1; k < r->ranks; k++) {
    j.offset[k] = (rng_unit(&seed) * 2 - 1) * 50e3 * US;
    j.drift[k] = (rng_unit(&seed) * 2 - 1) * r->drift;
  }
  const u32 nlinks = r->ranks * (r->one_way ? 1 : 2);
  align_link *link = NEWN(a, align_link, nlinks);
  align_message *m = NEWN(a, align_message, (size_t)nlinks * r->each);
  j.sent = NEWN(a, i64, (size_t)nlinks * r->each), j.received = NEWN(a, i64, (size_t)nlinks * r->each);
  for (u32 l = 0; l < nlinks; l++) {
    const u32 x = l % r->ranks, y = (x + 1) % r->ranks;
    link[l] = l < r->ranks ? (align_link){x, y, 0} : (align_link){y, x, 0};
    for (u32 k = 0; k < r->each; k++) {
      const u32 at = l * r->each + k;
      const double t = 60 * SECOND * (k + rng_unit(&seed)) / r->each;
      const double took = r->latency + exponential(&seed, r->jitter);
      j.sent[at] = (i64)t, j.received[at] = (i64)(t + took);
      m[at] = (align_message){l, reading(&j, link[l].from, t), reading(&j, link[l].to, t + took)};
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

// By how much a corrected reading of any rank is off, at any time: less what rank 0's is off.
static double worst_error(const ring_job *j, const align_clocks *x) {
  double worst = 0;
  for (u32 k = 0; k < j->of->ranks; k++)
    for (u32 i = 0; i <= 10; i++) {
      const double t = 6 * SECOND * i;
      const double off = (double)(align_time(x, k, reading(j, k, t)) - align_time(x, 0, reading(j, 0, t)));
      worst = fmax(worst, fabs(off));
    }
  return worst / US;
}

static int by_value(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

// Median over seeds, in microseconds; no tie may be violated.
static double median_error(const ring *r, u32 seeds) {
  double *error = malloc(seeds * sizeof *error);
  for (u32 k = 0; k < seeds; k++) {
    arena *a = arena_new();
    const ring_job j = make_ring(a, r, k + 1);
    const align_clocks *x = align_find(a, &j.seen, NULL);
    error[k] = worst_error(&j, x);
    CHECK_EQ_I64((i64)x->after, 0);
    CHECK(x->before > 0 && x->slack_ps > 0 && x->ncomponents == 1);
    if (getenv("ALIGN_PRINT")) {
      u32 in = 0;
      for (u32 i = 1; i < r->ranks; i++) {
        const double off = (double)(align_time(x, i, reading(&j, i, 30 * SECOND)) - (i64)(30 * SECOND));
        in += fabs(off) <= 2 * align_sd_ps(x, i);
      }
      printf("seed %u: %.3f us, slack %.3f us, knots %u, sd of 64 %.3f us, within 2 sd %u\n", k + 1, error[k],
             (double)x->slack_ps / US, x->nknots, align_sd_ps(x, r->ranks / 2) / US, in);
    }
    arena_free(a);
  }
  qsort(error, seeds, sizeof *error, by_value);
  const double m = (error[(seeds - 1) / 2] + error[seeds / 2]) / 2;
  free(error);
  return m;
}

TEST(align_ring_of_128_with_10000_messages_a_link) {
  const double us = median_error(&(ring){RANKS, 10000, 0, 10 * US, 30 * US, .one_way = false}, SEEDS);
  CHECK_MSG(us <= 2, "median error %.3f us, at most 2", us);
}
TEST(align_ring_of_128_with_10_messages_a_link) {
  const double us = median_error(&(ring){RANKS, 10, 0, 10 * US, 30 * US, .one_way = false}, SEEDS);
  CHECK_MSG(us <= 20, "median error %.3f us, at most 20", us);
}
TEST(align_ring_of_128_with_drifts_of_20_ppm) {
  const double us = median_error(&(ring){RANKS, 10000, 20e-6, 10 * US, 30 * US, .one_way = false}, SEEDS);
  CHECK_MSG(us <= 5, "median error %.3f us, at most 5", us);
}
TEST(align_ring_of_128_with_drifts_of_100_ppm) {
  const double us = median_error(&(ring){RANKS, 10000, 100e-6, 10 * US, 30 * US, .one_way = false}, SEEDS);
  CHECK_MSG(us <= 10, "median error %.3f us, at most 10", us);
}
