// synthesis.c - a schedule found for stages that differ, within a limit of memory.
#include "bench.h"
#include "sched/sched.h"

// Eight stages on eight places, the first and the last with more to do.
static void uneven(ctx *c, arena *a, sched_stages *out) {
  strbuf b = {.a = a};
  sb_put(&b, "stage,forward_us,input_us,weight_us,memory\n");
  for (u32 k = 0; k < 8; k++)
    sb_fmt(&b, "%u,%u,%u,%u,1\n", k, k == 7 ? 19 : 10 + (k % 3), k == 7 ? 22 : 11 + (k % 2),
           k == 7 ? 13 : 9 + !k);
  if (!sched_stages_parse(c, a, sym_of(c, "stages.csv"), sb_str(&b), b.n, out)) abort();
}

static void find(const char *time_row, const char *gap_row, u64 limit) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  sched_stages of;
  sched_synthesis x;
  uneven(c, a, &of);
  const double start = bench_ms();
  if (!sched_synthesize(c, a, &of, &(sched_aims){.micro = 32, .memory = limit * 1000000, .seconds = 5}, &x))
    abort();
  bench_add((bench_row){time_row, "ms", bench_ms() - start, 10000, "", false});
  bench_add(
      (bench_row){gap_row, "%", 100 * (double)(x.t.makespan - x.bound) / (double)x.bound, 0, "", false});
  arena_free(a);
  ctx_free(c);
}

int main(void) {
  find("schedule found, 8 stages, 32 microbatches, memory of 1f1b", "its gap to the bound", 8);
  find("schedule found, 8 stages, 32 microbatches, 3/4 of that memory", "its gap to the bound with 3/4", 6);
  find("schedule found, 8 stages, 32 microbatches, half of that memory", "its gap to the bound with half", 4);
  return bench_end();
}
