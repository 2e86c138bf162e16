// dpro.c - dPRO's memory passes (MLSys 2022, Table 4) from the unmodified run alone: BERT Base, 64 samples a GPU, 16 V100
// of 16 GB, Horovod.
//
// The graph is that of the built-in bert-base with 128 tokens (the paper does not say how many; more do not fit 16 GB),
// priced on a V100. Known is the unmodified run: forward and backward in the proportion of Table 2, the rate of the
// network from its iteration of 459.62 ms with 32 samples, operations scaled so that the iteration with 64 takes 622.12
// ms, what is kept beside the results of matmuls so that it peaks at 16.42 GB. Nothing is fitted to the rows that are predicted.
#include "reproduce.h"
#include "tune/tune.h"

static const i64 MS = 1000000000;

static tune_job *bert(ctx *c, arena *a, i64 batch, const tune_link *l) {
  const front_opts fo = {.batch = batch, .loss = true};
  const optim_opts o = optim_default(OPTIM_ADAM);
  prog *p = front_load(c, "bert-base:positions=128", &fo);
  machine *m = machine_load(c, a, "1x1 v100");
  cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
  tune_job *j = p && k && pass_loss(p) && pass_train(p, &o, false) ? tune_of_program(c, a, p, k, l) : NULL;
  if (p) prog_free(p);
  return j;
}

static i64 horovod(arena *a, const tune_job *j) {
  const tune_plan p = tune_baseline_of(a, j, TUNE_BASE_horovod);
  return tune_time(j, &p, TUNE_ONE_WORKER);
}

// The rate of the network at which the iteration takes so long.
static void fit_network(arena *a, tune_job *j, double want_ms) {
  double lo = 1, hi = 10000;
  for (u32 k = 0; k < 60; k++) {
    j->link.ps_per_byte = (lo + hi) / 2;
    *((double)horovod(a, j) < want_ms * (double)MS ? &lo : &hi) = j->link.ps_per_byte;
  }
}

static void fit_operations(arena *a, tune_job *j, double want_ms) {
  double lo = 10, hi = 2000; // of the forward, ms
  for (u32 k = 0; k < 60; k++) {
    const double f = (lo + hi) / 2;
    tune_scale(j, (i64)(f * (double)MS), (i64)(f * 185.66 / 107.49 * (double)MS));
    *((double)horovod(a, j) < want_ms * (double)MS ? &lo : &hi) = f;
  }
}

// What operations keep but for matmuls, whose results have the size that they have: frameworks keep more in between
// than is needed.
static void fit_memory(arena *a, tune_job *j, double want_gb) {
  const tune_plan p = tune_plan_new(a, j);
  i64 sure = j->fixed_bytes, kept = 0;
  for (u32 k = 0; k < j->nops; k++) *(j->op[k].heavy ? &sure : &kept) += j->op[k].keeps_bytes;
  sure += tune_bytes(j, &p) - sure - kept; // and the gradients at the peak
  const double by = (want_gb * 1e9 - (double)sure) / (double)kept;
  for (u32 k = 0; k < j->nops; k++)
    if (!j->op[k].heavy) j->op[k].keeps_bytes = (i64)((double)j->op[k].keeps_bytes * by);
  j->peak_bytes = tune_bytes(j, &p);
}

static void row(verdict *v, const char *name, const tune_job *j, const tune_plan *p, double ms, double gb,
                bool judged) {
  const double t = (double)tune_time(j, p, TUNE_ONE_WORKER) / (double)MS, b = (double)tune_bytes(j, p) / 1e9;
  printf("%-22s %8.2f ms %8.2f ms %6.1f %%   %6.2f GB %6.2f GB %6.1f %%\n", name, ms, t, 100 * (t / ms - 1),
         gb, b, 100 * (b / gb - 1));
  if (!judged) return;
  require(v, t > 0.9 * ms && t < 1.1 * ms, "%s: time within 10 %%", name);
  require(v, b > 0.9 * gb && b < 1.1 * gb, "%s: memory within 10 %%", name);
}

void reproduce_dpro(ctx *c, verdict *v) {
  arena *a = arena_new();
  tune_link l = {.workers = 16, .start_ps = MS / 20, .step_ps = MS / 200, .ps_per_byte = 80};
  tune_job *small = bert(c, a, 32, &l);
  printf("\ndPRO, Table 4: BERT Base, 64 samples a GPU, 16 GPUs\n");
  if (!small) {
    fputs(diag_render(c, a), stderr);
    v->skipped++;
    arena_free(a);
    return;
  }
  tune_scale(small, (i64)(107.49 * (double)MS), (i64)(185.66 * (double)MS));
  fit_network(a, small, 459.62);
  l = small->link;
  tune_job *j = bert(c, a, 64, &l);
  fit_operations(a, j, 622.12);
  fit_memory(a, j, 16.42);
  printf("network %.2f GB/s\n%-22s %11s %11s %8s   %9s %9s\n", 1e3 / l.ps_per_byte, "", "measured", "ours",
         "off", "measured", "ours");
  tune_plan base = tune_baseline_of(a, j, TUNE_BASE_horovod), re = tune_plan_copy(a, j, &base),
            acc = tune_plan_copy(a, j, &base);
  memset(re.recompute, TUNE_CHEAP, j->nblocks);
  acc.accumulate = 2;
  row(v, "without optimisation", j, &base, 622.12, 16.42, false);
  row(v, "recompute", j, &re, 696.13, 7.43, true);
  row(v, "accumulate over 2", j, &acc, 714.22, 9.96, true);
  require(v,
          tune_bytes(j, &base) > 16000000000 &&
              tune_time(j, &re, TUNE_ONE_WORKER) < tune_time(j, &acc, TUNE_ONE_WORKER) &&
              tune_bytes(j, &re) < tune_bytes(j, &acc),
          "unmodified does not fit 16 GB; recompute is faster and smaller than accumulation");
  const tune_result r = tune_search(a, j, &(tune_opts){.memory_bytes = 16000000000});
  printf("the search within 16 GB: %.1f ms, %.2f GB\n", (double)r.ps / (double)MS, (double)r.bytes / 1e9);
  for (u32 k = 0; k < r.nmemory; k++)
    printf("  %-20s %8.1f ms %6.2f GB%s\n", r.memory[k].name, (double)r.memory[k].ps / (double)MS,
           (double)r.memory[k].bytes / 1e9, r.memory[k].fits ? "" : "  does not fit");
  arena_free(a);
}
