// sched.c - schedules: made, checked for equality by their key, and merged.
#include "bench.h"
#include "sched/sched.h"

enum { RUNS = 20 };

// Makes and merges: milliseconds, the fastest run.
static double made_ms(const char *name, sched_shape shape, u32 runs) {
  double ms[RUNS];
  for (u32 i = 0; i < runs; i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    double start = bench_ms();
    const sched *s = sched_make(c, a, name, &shape, (loc){0});
    sched_line line;
    if (!s || !sched_merge(c, a, s, NULL, (loc){0}, &line)) abort();
    ms[i] = bench_ms() - start;
    if (line.n != 2 * shape.places * shape.chunks * shape.micro) abort();
    arena_free(a);
    ctx_free(c);
  }
  return bench_fastest(ms, runs);
}

int main(void) {
  sched_shape shape = {.places = 64, .chunks = 1, .micro = 256, .backward = true};
  bench_add((bench_row){"schedule made and merged, 1f1b, 64 places, 256 microbatches", "ms",
                        made_ms("1f1b", shape, RUNS), 1, "", false});
  shape.places = 16, shape.chunks = 4;
  bench_add((bench_row){"schedule made and merged, interleaved, 16 places, 4 chunks, 256 microbatches", "ms",
                        made_ms("interleaved", shape, RUNS), 1, "", false});
  shape.places = 64, shape.chunks = 8, shape.micro = 4096;
  bench_add((bench_row){"schedule made and merged, interleaved, 64 places, 8 chunks, 4096 microbatches", "ms",
                        made_ms("interleaved", shape, 3), 420, "", false});
  return bench_end();
}
