// sim.c - the simulator alone, flat: every instruction of every rank of distributed programs that exist
// already. Time and memory of every rank; the tables of prices are warm.
#include "bench.h"
#include "front/front.h"
#include "plan/plan.h"
#include "sim/sim.h"

enum { SIZES = 7, RUNS = 25 };

// Milliseconds of a flat simulation of the GPT-3 XL training step with K microbatches.
static double flat_ms(u32 K, u64 *instructions) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  front_opts fo = {.batch = 2 * (i64)K, .seq = 2048, .t = DT_F16, .loss = true};
  prog *src = front_load(c, "gpt3-xl", &fo);
  machine *m = machine_load(c, a, "dgx-2");
  planner *pl = src ? planner_new(src) : NULL;
  cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
  hybrid_opts h = {.s = strategy_of("dp=2 tp=4 pp=2 mb=%u overlap=none", K),
                   .train = true,
                   .optim = optim_default(OPTIM_ADAM)};
  h.optim.master = false;
  plan *pn = pl && k ? policy_hybrid(pl, a, &h) : NULL;
  prog *d = pn ? plan_apply(pl, pn, k) : NULL;
  double ms[RUNS + 1];
  for (u32 i = 0; i <= RUNS; i++) {
    arena *s = arena_new();
    sim_opts so = {.mode = SIM_FLAT, .peak_only = true};
    sim_result r;
    double start = bench_ms();
    if (!d || !sim_run(c, s, d, k, &so, &r)) {
      fputs(diag_render(c, a), stderr);
      exit(1);
    }
    ms[i] = bench_ms() - start;
    *instructions = r.instructions;
    arena_free(s);
  }
  prog_free(d);
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
  return bench_fastest(ms + 1, RUNS); // the first run fills the tables
}

// Of a straight line through the points.
static double r_squared(const double *x, const double *y, u32 n) {
  double mx = 0, my = 0, sxx = 0, syy = 0, sxy = 0;
  for (u32 i = 0; i < n; i++) mx += x[i] / n, my += y[i] / n;
  for (u32 i = 0; i < n; i++) {
    sxx += (x[i] - mx) * (x[i] - mx);
    syy += (y[i] - my) * (y[i] - my);
    sxy += (x[i] - mx) * (y[i] - my);
  }
  return sxy * sxy / (sxx * syy);
}

int main(void) {
  static const u32 micro[SIZES] = {2, 6, 20, 64, 200, 640, 2000};
  double n[SIZES], ms[SIZES], log_n[SIZES], log_ms[SIZES];
  for (u32 i = 0; i < SIZES; i++) {
    u64 count;
    ms[i] = flat_ms(micro[i], &count);
    n[i] = (double)count, log_n[i] = log(n[i]), log_ms[i] = log(ms[i]);
  }
  bench_add((bench_row){"simulator alone, flat: GPT-3 XL training, D2 T4 P2 K640", "M/s", n[5] / ms[5] / 1e3,
                        20, "DistIR 0.02 to 0.06 M/s", true});
  bench_add((bench_row){"simulator alone, flat: R2 of time over instructions, three decades", "",
                        r_squared(n, ms, SIZES), 0.99, "", true});
  bench_add((bench_row){"simulator alone, flat: the same of their logarithms", "",
                        r_squared(log_n, log_ms, SIZES), 0, "", true});
  for (u32 i = 0; i < SIZES; i++)
    printf("  K %4u: %12.0f instructions %9.3f ms %7.2f M/s\n", micro[i], n[i], ms[i], n[i] / ms[i] / 1e3);
  return bench_end();
}
