// tune.c - dPRO's search on its four models: 16 workers, 32 samples each, over a ring and over parameter servers. How
// much faster the coarsened view, partial replay with the theorems, and symmetry make it (dPRO, MLSys 2022, Table 5:
// 24 to 300 times), and whether the result stays. Graphs are those of the built-in models on a V100; forward and
// backward of ResNet-50 and BERT are scaled to its Table 2. The strawman replays all workers at every decision.
#include "bench.h"
#include "cost/cost.h"
#include "front/front.h"
#include "pass/pass.h"
#include "tune/tune.h"

static const struct {
  const char *name;
  i64 seq, forward_us, backward_us;
} models[] = {{"resnet50", 0, 34780, 71340},
              {"vgg16", 0, 0, 0},
              {"inception-v3", 0, 0, 0},
              {"bert-base:positions=128", 0, 107490, 185660}};

static tune_job *job_of(ctx *c, arena *a, u32 k, const tune_link *l) {
  const front_opts fo = {.batch = 32, .seq = models[k].seq, .loss = true};
  const optim_opts o = optim_default(OPTIM_ADAM);
  prog *p = front_load(c, models[k].name, &fo);
  machine *m = machine_load(c, a, "1x1 v100");
  cost_model *cost = m ? cost_model_new(c, a, m, NULL) : NULL;
  tune_job *j =
      p && cost && pass_loss(p) && pass_train(p, &o, false) ? tune_of_program(c, a, p, cost, l) : NULL;
  if (!j) {
    fputs(diag_render(c, a), stderr);
    exit(1);
  }
  tune_scale(j, models[k].forward_us * 1000000, models[k].backward_us * 1000000);
  prog_free(p);
  return j;
}

static void measure(u32 k, const tune_link *l, bool straw) {
  static const struct {
    const char *name;
    tune_opts o;
  } ways[] = {{"strawman", {.fine = true, .whole = true, .scope = TUNE_ALL_WORKERS, .plain = true}},
              {"+ coarsened view", {.whole = true, .scope = TUNE_ALL_WORKERS, .plain = true}},
              {"+ partial replay", {.scope = TUNE_ALL_WORKERS, .plain = true}},
              {"+ symmetry", {.plain = true}},
              {"whole search", {.fine = false}}};
  ctx *c = ctx_new();
  arena *a = arena_new();
  const tune_job *j = job_of(c, a, k, l);
  double first = 0;
  i64 first_ps = 0;
  for (u32 w = straw ? 0 : 3; w < COUNT_OF(ways); w++) {
    const double start = bench_ms();
    const tune_result r = tune_search(a, j, &ways[w].o);
    const double ms = bench_ms() - start;
    if (!w) first = ms, first_ps = r.ps;
    i64 base = INT64_MAX;
    for (u32 b = 0; b < TUNE_BASELINES; b++) base = MIN(base, r.base_ps[b]);
    printf("%-24s %-8s %-18s %10.1f ms %7.1fx %6.1f ms a step (%.1f as it is, best baseline %.1f)%s %llu\n",
           models[k].name, l->sync ? "servers" : "ring", ways[w].name, ms, first ? first / ms : 0.,
           (double)r.ps / 1e9, (double)r.unchanged_ps / 1e9, (double)base / 1e9,
           first_ps && (double)r.ps > 1.01 * (double)first_ps ? "  MORE THAN 1 % SLOWER" : "",
           (unsigned long long)r.replays);
  }
  arena_free(a);
  ctx_free(c);
}

// With the name of a model: its strawman, too, which takes hours of the others.
int main(int argc, char **argv) {
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
      if (argc < 2 || !strcmp(argv[1], models[k].name)) measure(k, &l, argc > 1);
    }
  return 0;
}
