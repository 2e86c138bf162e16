// align.c - clocks of a ring of 128 ranks over a minute, 10 and 10,000 messages a link, with and without drifts.
#include "bench.h"
#include "diagnose/diagnose.h"

enum { RANKS = 128, RUNS = 3 };

static double exponential(u64 *rng, double mean) { return -mean * log(1 - rng_unit(rng)); }

static align_seen make_ring(arena *a, u32 each, double drift) {
  u64 rng = 1;
  double offset[RANKS] = {0}, rate[RANKS] = {0};
  for (u32 k = 1; k < RANKS; k++)
    offset[k] = (rng_unit(&rng) * 2 - 1) * 50e9, rate[k] = (rng_unit(&rng) * 2 - 1) * drift;
  align_link *link = NEWN(a, align_link, 2 * RANKS);
  align_message *m = NEWN(a, align_message, 2 * RANKS * each);
  for (u32 l = 0; l < 2 * RANKS; l++) {
    const u32 x = l % RANKS, y = (x + 1) % RANKS;
    link[l] = l < RANKS ? (align_link){x, y, 0} : (align_link){y, x, 0};
    for (u32 k = 0; k < each; k++) {
      const double t = 60e12 * (k + rng_unit(&rng)) / each, end = t + 10e6 + exponential(&rng, 30e6);
      m[l * each + k] = (align_message){l, (i64)(t + offset[link[l].from] + rate[link[l].from] * t),
                                        (i64)(end + offset[link[l].to] + rate[link[l].to] * end)};
    }
  }
  return (align_seen){.nprocesses = RANKS,
                      .nfamilies = 1,
                      .nlinks = 2 * RANKS,
                      .link = link,
                      .nmessages = 2 * RANKS * each,
                      .message = m};
}

static double seconds(u32 each, double drift) {
  arena *a = arena_new();
  const align_seen seen = make_ring(a, each, drift);
  double ms[RUNS];
  for (u32 k = 0; k < RUNS; k++) {
    arena *out = arena_new();
    const double start = bench_ms();
    if (align_find(out, &seen, NULL)->after) abort();
    ms[k] = bench_ms() - start;
    arena_free(out);
  }
  arena_free(a);
  return bench_fastest(ms, RUNS) / 1e3;
}

int main(void) {
  bench_add(
      (bench_row){"align clocks: ring of 128, 10 messages a link", "s", seconds(10, 0), 0.3, "", false});
  bench_add((bench_row){"align clocks: ring of 128, 10,000 messages a link", "s", seconds(10000, 0), 0.3, "",
                        false});
  bench_add((bench_row){"align clocks: ring of 128, 10,000 messages a link, drifts of 20 ppm", "s",
                        seconds(10000, 20e-6), 0.3, "", false});
  bench_add((bench_row){"align clocks: ring of 128, 10,000 messages a link, drifts of 100 ppm", "s",
                        seconds(10000, 100e-6), 0.3, "", false});
  return bench_end();
}
