// auto.c - automatic plans: a split for every operator, stages, all degrees, and all hybrids beside, by one thread.
#include "bench.h"
#include "cost/cost.h"
#include "front/front.h"
#include "search/search.h"

typedef struct {
  const char *row, *model, *machine, *anchor;
  i64 batch;
  double required_ms;
} job;

static double find(const job *j, u32 *inexact) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const double start = bench_ms();
  prog *src = front_load(c, j->model, &(front_opts){.batch = j->batch, .t = DT_F16, .loss = true});
  machine *m = machine_load(c, a, j->machine);
  if (!src || !m) abort();
  planner *pl = planner_new(src);
  const search_opts o = {
      .train = true, .batch = j->batch, .optim = optim_default(OPTIM_ADAM), .top = 1, .threads = 1};
  search_auto r;
  if (!search_auto_run(pl, a, m, &(cost_opts){0}, &o, &(auto_opts){0}, &r)) {
    fputs(diag_render(c, a), stderr);
    abort();
  }
  const double ms = bench_ms() - start;
  *inexact = r.inexact;
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
  return ms;
}

int main(void) {
  static const job jobs[] = {
      {"automatic plan, GPT-3 1.3B, 4 devices", "gpt3-xl", "1x4 a100", "Aceso 48 s", 32, 1000},
      {"automatic plan, GPT-3 175B, 64 devices", "gpt3-175b", "8x8 a100 ib=8x200Gb/s", "Alpa hours", 64,
       10000}};
  for (u32 k = 0; k < COUNT_OF(jobs); k++) {
    u32 inexact;
    double ms[2];
    for (u32 q = 0; q < COUNT_OF(ms); q++) ms[q] = find(&jobs[k], &inexact);
    bench_add((bench_row){jobs[k].row, "ms", bench_fastest(ms, COUNT_OF(ms)), jobs[k].required_ms,
                          jobs[k].anchor, false});
    if (inexact) printf("of its degrees not exact: %u\n", inexact);
  }
  return bench_end();
}
