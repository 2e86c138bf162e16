// plan.c - one plan from the single-device program in memory to time and memory of every rank: the planner,
// the policy, the distributed program, its simulation; or the stages and one pass over their schedule, as in
// a search. Reading the model and the machine is not included.
#include "bench.h"
#include "front/front.h"
#include "plan/plan.h"
#include "sim/sim.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
  const char *model, *machine;
  i64 batch, seq;
  bool headless;
  hybrid_opts h;
  sim_mode mode;
  bool stages; // by its stages, not written out
} work;

typedef struct {
  ctx *c;
  arena *a;
  prog *src;
  machine *m;
} bed;

static void fail(ctx *c) {
  fputs(diag_render(c, ctx_arena(c)), stderr);
  exit(1);
}

static bed bed_new(const work *w) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  front_opts fo = {
      .batch = w->batch, .seq = w->seq, .t = DT_F16, .loss = w->h.train, .headless = w->headless};
  b.src = front_load(b.c, w->model, &fo);
  b.m = machine_load(b.c, b.a, w->machine);
  if (!b.src || !b.m) fail(b.c);
  return b;
}

static void bed_free(bed *b) {
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

static void by_stages(const bed *b, planner *pl, const plan *pn, cost_model *k, arena *a) {
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true};
  plan_probed made;
  const sim_order *order = NULL;
  sim_pipe_result r;
  u32 n = 0;
  prog *probe = plan_probe(pl, pn, k, a, false, &made);
  const sim_stages *st = probe ? sim_stages_of(b->c, a, probe, k, &so, &made.pipeline) : NULL;
  if (!st || !plan_line(b->c, a, pn, &made.graph, &n, &order)) fail(b->c);
  sim_pipe(st, a, sim_line_new(a, st, order, n), &r);
  prog_free(probe);
}

// Milliseconds of one run; the part of the simulation alone in *sim.
static double run(const bed *b, const work *w, u64 *instructions, double *sim) {
  double start = bench_ms();
  arena *a = arena_new();
  planner *pl = planner_new(b->src);
  cost_model *k = cost_model_new(b->c, a, b->m, NULL);
  plan *pn = k ? policy_hybrid(pl, a, &w->h) : NULL;
  prog *d = pn && !w->stages ? plan_apply(pl, pn, k) : NULL;
  sim_result r = {0};
  sim_opts so = {.mode = w->mode, .peak_only = true};
  double before = bench_ms();
  if (!pn || (!d && !w->stages)) fail(b->c);
  if (w->stages)
    by_stages(b, pl, pn, k, a);
  else if (!sim_run(b->c, a, d, k, &so, &r))
    fail(b->c);
  *sim = bench_ms() - before;
  *instructions = r.instructions;
  prog_free(d);
  planner_free(pl);
  arena_free(a);
  return bench_ms() - start;
}

enum { RUNS = 60 };

static double fastest_ms(const work *w, u64 *instructions, double *sim) {
  bed b = bed_new(w);
  double ms[RUNS], s[RUNS];
  for (u32 i = 0; i < RUNS; i++) ms[i] = run(&b, w, instructions, &s[i]);
  bed_free(&b);
  *sim = bench_fastest(s, RUNS);
  return bench_fastest(ms, RUNS);
}

// Peak memory of a process that does nothing else, in MB (10^6 bytes): the program's own text, the model and
// the machine included.
static double peak_mb(const work *w) {
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    u64 n = 0;
    double s;
    bed b = bed_new(w);
    run(&b, w, &n, &s);
    _exit(0);
  }
  struct rusage u = {0};
  int status = 1;
  if (child < 0 || wait4(child, &status, 0, &u) < 0 || status) return NAN;
  return (double)u.ru_maxrss * 1024 / 1e6;
}

int main(void) {
  const hybrid_opts xl = {.s = strategy_of("dp=2 tp=4 pp=2 mb=32 overlap=none")};
  hybrid_opts train = xl;
  train.train = true;
  train.optim = optim_default(OPTIM_ADAM);
  train.optim.master = false;
  hybrid_opts big = train;
  big.s = strategy_of("dp=8 tp=8 pp=16 mb=512 overlap=none");
  work infer = {"gpt3-xl", "dgx-2", 1024, 8, true, xl, SIM_FLAT, false};
  work step = {"gpt3-xl", "dgx-2", 64, 2048, false, train, SIM_FLAT, false};
  work gpt3 = {"gpt3-175b", "dgx-h100*128", 4096, 2048, false, big, SIM_FOLDED, false};
  const double mb = peak_mb(&gpt3);
  u64 n = 0;
  double sim, ms = fastest_ms(&infer, &n, &sim);
  bench_add((bench_row){"GPT-3 XL inference, D2 T4 P2 K32: transform and flat simulation", "s", ms / 1e3,
                        0.25, "DistIR 228 s", false});
  printf("  %llu instructions on 16 ranks; simulation alone %.2f ms\n", (unsigned long long)n, sim);
  infer.mode = SIM_FOLDED;
  ms = fastest_ms(&infer, &n, &sim);
  bench_add((bench_row){"GPT-3 XL inference, D2 T4 P2 K32: transform and composed simulation", "ms", ms, 2,
                        "", false});
  printf("  simulation alone %.2f ms\n", sim);
  ms = fastest_ms(&step, &n, &sim);
  bench_add((bench_row){"GPT-3 XL training, D2 T4 P2 K32: transform and flat simulation", "s", ms / 1e3, 0.25,
                        "", false});
  printf("  %llu instructions on 16 ranks; simulation alone %.2f ms\n", (unsigned long long)n, sim);
  step.mode = SIM_FOLDED;
  ms = fastest_ms(&step, &n, &sim);
  bench_add((bench_row){"GPT-3 XL training, D2 T4 P2 K32: transform and composed simulation", "ms", ms, 2, "",
                        false});
  printf("  simulation alone %.2f ms\n", sim);
  ms = fastest_ms(&gpt3, &n, &sim);
  bench_add((bench_row){"GPT-3 175B training, 1,024 ranks, D8 T8 P16 K512: one plan, written out", "ms", ms,
                        0, "", false});
  printf("  %.3g instructions; simulation alone %.2f ms\n", (double)n, sim);
  gpt3.stages = true;
  ms = fastest_ms(&gpt3, &n, &sim);
  bench_add((bench_row){"GPT-3 175B training, 1,024 ranks, D8 T8 P16 K512: one plan, by its stages", "ms", ms,
                        10, "", false});
  bench_add(
      (bench_row){"GPT-3 175B training, 1,024 ranks, D8 T8 P16 K512: peak memory", "MB", mb, 64, "", false});
  return bench_end();
}
