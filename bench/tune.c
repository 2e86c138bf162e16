// tune.c - dPRO's search on its four models: 16 workers, 32 samples each, over a ring and over parameter servers. How
// much faster the coarsened view, partial replay with the theorems, and symmetry make it (dPRO, MLSys 2022, Table 5:
// 16 to 300 times), and whether the result stays. Graphs are those of the built-in models on a V100; forward and
// backward of ResNet-50 and BERT are scaled to its Table 2. The strawman replays all workers at every decision.
#include "bench.h"
#include "job.h"
#include "tune/fuse.h"
#include <stdarg.h>

static const struct {
  const char *name;
  i64 seq, forward_us, backward_us;
} models[] = {{"resnet50", 0, 34780, 71340},
              {"vgg16", 0, 0, 0},
              {"inception-v3", 0, 0, 0},
              {"bert-base:positions=128", 0, 107490, 185660}};

static const char *format(arena *a, const char *fmt, ...) {
  char b[160];
  va_list args;
  va_start(args, fmt);
  vsnprintf(b, sizeof b, fmt, args);
  va_end(args);
  return strcpy(NEWN(a, char, strlen(b) + 1), b);
}

static tune_job *job_of(ctx *c, arena *a, u32 k, const tune_link *l) {
  const front_opts fo = {.batch = 32, .seq = models[k].seq, .loss = true};
  tune_job *j = job_of_model(c, a, models[k].name, &fo, OPTIM_ADAM, "1x1 v100", NULL, l);
  if (!j) {
    fputs(diag_render(c, a), stderr);
    exit(1);
  }
  tune_scale(j, models[k].forward_us * 1000000, models[k].backward_us * 1000000);
  return j;
}

// The search with and without each way to make it faster. Slower results than the strawman's are told.
static void measure(u32 k, const tune_link *l) {
  static const struct {
    const char *name;
    tune_opts o;
  } ways[] = {{"strawman", {.fine = true, .whole = true, .scope = TUNE_ALL_WORKERS, .plain = true}},
              {"+ coarsened view", {.whole = true, .scope = TUNE_ALL_WORKERS, .plain = true}},
              {"+ partial replay", {.scope = TUNE_ALL_WORKERS, .plain = true}},
              {"+ symmetry", {.plain = true}},
              {"the whole search", {.fine = false}}};
  ctx *c = ctx_new();
  arena *a = arena_new(); // the rows' names
  const tune_job *j = job_of(c, a, k, l);
  double straw = 0, took = 0;
  i64 straw_ps = 0, worst_ps = 0, base = INT64_MAX;
  for (u32 w = 0; w < COUNT_OF(ways); w++) {
    const double start = bench_ms();
    const tune_result r = tune_search(a, j, &ways[w].o);
    took = bench_ms() - start;
    if (!w) straw = took, straw_ps = r.ps;
    worst_ps = MAX(worst_ps, r.ps);
    for (u32 b = 0; b < TUNE_BASELINES && !ways[w].o.plain; b++) base = MIN(base, r.base_ps[b]);
    const char *name = format(a, "%s, %s: %s", models[k].name, l->sync ? "servers" : "ring", ways[w].name);
    if (w == 3)
      bench_add((bench_row){name, "x", straw / took, 36, "50 to 300 (dPRO, Table 5)", true});
    else
      bench_add((bench_row){name, "ms", took, 0, "", false});
    if (w + 1 == COUNT_OF(ways))
      bench_add((bench_row){
          format(a, "%s, %s: step over the best baseline's", models[k].name, l->sync ? "servers" : "ring"),
          "", (double)r.ps / (double)base, 1, "", false});
  }
  bench_add(
      (bench_row){format(a, "%s, %s: step over the strawman's", models[k].name, l->sync ? "servers" : "ring"),
                  "", (double)worst_ps / (double)straw_ps, 1.01, "", false});
  ctx_free(c);
}

static i64 line(const void *arg, i64 bytes) { return *(const i64 *)arg + 80 * bytes; }

static void measure_fusion(void) {
  enum { N = 1000 };
  arena *a = arena_new();
  fuse_gradient *g = NEWN(a, fuse_gradient, N);
  const i64 start_ps = 50000000;
  u64 seed = 1;
  for (u32 k = 0; k < N; k++)
    g[k] = (fuse_gradient){(i64)k * 100000000, 1000 + (i64)(rng_next(&seed) % 4000000)};
  const double start = bench_ms();
  fuse_exact(a, g, N, &(fuse_cost){line, &start_ps}, 0);
  bench_add((bench_row){"exact buckets of 1,000 gradients", "ms", bench_ms() - start, 50, "", false});
  arena_free(a);
}

int main(void) {
  measure_fusion();
  // 100 Gb/s; a server on every worker.
  tune_link l = {.workers = 16,
                 .servers = 16,
                 .start_ps = 50000000,
                 .step_ps = 5000000,
                 .ps_per_byte = 80,
                 .sum_ps_per_byte = 20};
  for (u32 sync = 0; sync < 2; sync++)
    for (u32 k = 0; k < COUNT_OF(models); k++) {
      l.sync = sync ? TUNE_SERVERS : TUNE_ALL_REDUCE;
      measure(k, &l);
    }
  return bench_end();
}
