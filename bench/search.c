// search.c - DistIR's grids on 16 V100, every point applied and simulated: no bounds, no limit of memory, one
// thread. Reading the model (once for every batch) and the machine is not included.
#include "bench.h"
#include "front/front.h"
#include "search/search.h"

enum { RUNS = 5 };

// Microbatches with stages only; those that do not divide the batch cost next to nothing.
static const char *const lines[] = {"pp=1 mb=1 zero=0 recompute=none",
                                    "pp=2,4,8,16 mb=2,4,8,16,32,64,128 zero=0 recompute=none overlap=none"};

static double grid_ms(const char *model, const i64 *batch, u32 nbatch, bool train, u32 want) {
  ctx *c = ctx_new();
  machine *m = machine_load(c, ctx_arena(c), "dgx-2");
  prog *src[16];
  for (u32 i = 0; i < nbatch; i++) {
    front_opts fo = {.batch = batch[i], .seq = train ? 0 : 8, .t = DT_F16, .loss = train, .headless = true};
    src[i] = front_load(c, model, &fo);
  }
  double ms[RUNS];
  for (u32 run = 0; run < RUNS; run++) {
    double start = bench_ms();
    u32 simulated = 0;
    arena *a = arena_new();
    for (u32 i = 0; i < nbatch; i++) {
      for (u32 k = 0; k < COUNT_OF(lines); k++) {
        search_opts o = {.train = train,
                         .pow2 = true,
                         .batch = batch[i],
                         .threads = 1,
                         .no_bounds = true,
                         .memory_bytes = -1,
                         .optim = optim_default(OPTIM_SGD)};
        o.optim.master = false;
        search_result r;
        if (!m || !src[i] || !strategy_parse(c, a, lines[k], &o.space) ||
            !search_run(c, a, src[i], m, NULL, &o, &r)) {
          fputs(diag_render(c, a), stderr);
          exit(1);
        }
        simulated += r.count[SEARCH_RAN];
      }
    }
    ms[run] = bench_ms() - start;
    arena_free(a);
    if (simulated != want) {
      fprintf(stderr, "%s: %u simulated, not %u\n", model, simulated, want);
      exit(1);
    }
  }
  for (u32 i = 0; i < nbatch; i++) prog_free(src[i]);
  ctx_free(c);
  return bench_fastest(ms, RUNS);
}

int main(void) {
  i64 batch[14];
  for (u32 i = 0; i < COUNT_OF(batch); i++) batch[i] = (i64)128 << i;
  double ms = grid_ms("gpt2-1.6b", batch, COUNT_OF(batch), false, 1035);
  bench_add((bench_row){"DistIR's grid, GPT-2 1.6B inference, 1,035 configurations", "s", ms / 1e3, 1,
                        "DistIR 35 min, 56 cores", false});
  ms = grid_ms("mlp-1b", (const i64[]){8192}, 1, true, 75);
  bench_add((bench_row){"DistIR's grid, MLP 1B training, 75 configurations", "ms", ms, 50, "", false});
  return bench_end();
}
