// search.c - whole searches on one thread. DistIR's grids on 16 V100, every point applied and simulated: no
// bounds, no limit of memory; and machines of several kinds, as `heddle plan` searches them. Reading the model
// (once for every batch) and the machine is not included.
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

// As `heddle plan MODEL --batch N --train --machine M --threads 1` does it.
static double several_s(const char *model, i64 batch, i64 seq, dtype t, const char *on, const char *line) {
  double ms[3];
  for (u32 run = 0; run < COUNT_OF(ms); run++) {
    ctx *c = ctx_new();
    arena *a = ctx_arena(c);
    const machine *m = machine_load(c, a, on);
    prog *src = front_load(c, model, &(front_opts){.batch = batch, .seq = seq, .t = t, .loss = true});
    search_opts o = {
        .train = true, .batch = batch, .threads = 1, .top = 10, .optim = optim_default(OPTIM_SGD)};
    search_result r;
    const bool ok = m && src && strategy_parse(c, a, line, &o.space);
    const double start = bench_ms();
    if (!ok || !search_run(c, a, src, m, NULL, &o, &r)) {
      fputs(diag_render(c, a), stderr);
      exit(1);
    }
    ms[run] = bench_ms() - start;
    prog_free(src);
    ctx_free(c);
  }
  return bench_fastest(ms, COUNT_OF(ms)) / 1e3;
}

static void several_kinds(void) {
  static const char *const three = "1x8 v100 ib=100Gb/s + 1x8 a100 ib=8x200Gb/s + 2x8 h100 ib=8x400Gb/s";
  const char *const all = "dp=* dp.shares=auto pp=* layers=auto tp=* tp.shares=auto";
  bench_add((bench_row){"whole search, GPT-13B on 8 V100 + 8 A100 + 16 H100", "s",
                        several_s("gpt3-13b", 64, 0, DT_F16, three, ""), 1, "Metis 171 s for 16 devices",
                        false});
  bench_add((bench_row){"the same with shares of the batch, of tensors and layers", "s",
                        several_s("gpt3-13b", 64, 0, DT_F16, three, all), 1, "", false});
  bench_add((bench_row){"512 devices of 2 kinds: OPT-350M on 128 A100 + 384 V100", "s",
                        several_s("gpt2-medium:vocab=50272,positions=2048", 2048, 2048, DT_F32,
                                  "32x4 a100-40gb ib=100Gb/s + 96x4 v100-16gb ib=100Gb/s", ""),
                        3, "Sailor 23.5 s", false});
  bench_add((bench_row){
      "512 devices of 2 kinds: GPT-3 175B on 256 A100 + 256 H100", "s",
      several_s("gpt3-175b", 1024, 0, DT_BF16, "32x8 a100 ib=8x200Gb/s + 32x8 h100 ib=8x400Gb/s", ""), 3, "",
      false});
}

int main(void) {
  i64 batch[14];
  for (u32 i = 0; i < COUNT_OF(batch); i++) batch[i] = (i64)128 << i;
  double ms = grid_ms("gpt2-1.6b", batch, COUNT_OF(batch), false, 1035);
  bench_add((bench_row){"DistIR's grid, GPT-2 1.6B inference, 1,035 configurations", "s", ms / 1e3, 1,
                        "DistIR 35 min, 56 cores", false});
  ms = grid_ms("mlp-1b", (const i64[]){8192}, 1, true, 75);
  bench_add((bench_row){"DistIR's grid, MLP 1B training, 75 configurations", "ms", ms, 50, "", false});
  several_kinds();
  return bench_end();
}
