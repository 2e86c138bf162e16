// dpro.c - dPRO's memory passes (MLSys 2022, Table 4) from the unmodified run alone: BERT Base, 64 samples a GPU, 16 V100
// of 16 GB, Horovod.
//
// The graph is that of the built-in bert-base, priced on a V100. Known is the unmodified run: forward and backward in the
// proportion of Table 2, the rate of the network from its iteration of 459.62 ms with 32 samples, operations scaled so that
// the iteration with 64 takes 622.12 ms, what is kept beside the results of matmuls so that it peaks at 16.42 GB. Nothing
// is fitted to the rows that are predicted.
//
// The paper does not say how many tokens a sample has. 128, the length of most steps of BERT's own training, is assumed, and the
// verdict depends on it: the last table has the same predictions with other lengths, each fitted to the unmodified run.
#include "../job.h"
#include "reproduce.h"

static const i64 MS = 1000000000;

enum { TOKENS = 128 };

static tune_job *job_of(ctx *c, arena *a, const char *model, i64 batch, const tune_link *l) {
  const front_opts fo = {.batch = batch, .loss = true};
  return job_of_model(c, a, model, &fo, OPTIM_ADAM, "1x1 v100", NULL, l);
}

static tune_job *bert(ctx *c, arena *a, u32 tokens, i64 batch, const tune_link *l) {
  return job_of(c, a, arena_printf(a, "bert-base:positions=%u", tokens), batch, l);
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

// The unmodified run with 64 samples, of samples that long. NULL: no such model.
static tune_job *fitted(ctx *c, arena *a, u32 tokens) {
  const tune_link l = {.workers = 16, .start_ps = MS / 20, .step_ps = MS / 200, .ps_per_byte = 80};
  tune_job *small = bert(c, a, tokens, 32, &l);
  if (!small) return NULL;
  tune_scale(small, (i64)(107.49 * (double)MS), (i64)(185.66 * (double)MS));
  fit_network(a, small, 459.62);
  tune_job *j = bert(c, a, tokens, 64, &small->link);
  if (!j) return NULL;
  fit_operations(a, j, 622.12);
  fit_memory(a, j, 16.42);
  return j;
}

typedef struct {
  tune_plan base, recompute, accumulate;
} table_4;

static table_4 plans_of(arena *a, const tune_job *j) {
  const tune_plan base = tune_baseline_of(a, j, TUNE_BASE_horovod);
  table_4 t = {base, tune_plan_copy(a, j, &base), tune_plan_copy(a, j, &base)};
  memset(t.recompute.recompute, TUNE_CHEAP, j->nblocks);
  t.accumulate.accumulate = 2;
  return t;
}

static double off(double ours, double measured) { return 100 * (ours / measured - 1); }

// What the rows would be if samples had another length: they say how much the assumption decides.
static void sensitivity(ctx *c, arena *a) {
  static const u32 tokens[] = {64, TOKENS, 256, 384};
  printf("by the assumed length  recompute: time       memory            accumulate: time       memory\n");
  for (u32 k = 0; k < COUNT_OF(tokens); k++) {
    const tune_job *j = fitted(c, a, tokens[k]);
    if (!j) continue;
    const table_4 t = plans_of(a, j);
    const double re = (double)tune_time(j, &t.recompute, TUNE_ONE_WORKER) / (double)MS,
                 acc = (double)tune_time(j, &t.accumulate, TUNE_ONE_WORKER) / (double)MS,
                 re_gb = (double)tune_bytes(j, &t.recompute) / 1e9,
                 acc_gb = (double)tune_bytes(j, &t.accumulate) / 1e9;
    printf("  %3u tokens           %8.2f ms %+5.1f %% %6.2f GB %+5.1f %%   %8.2f ms %+5.1f %% %6.2f GB "
           "%+5.1f %%%s\n",
           tokens[k], re, off(re, 696.13), re_gb, off(re_gb, 7.43), acc, off(acc, 714.22), acc_gb,
           off(acc_gb, 9.96), tokens[k] == TOKENS ? "  judged" : "");
  }
}

// Daydream predicts and plans nothing, so it stands beside predictions. dPRO does not say the bandwidth that it was given:
// 100 Gb/s here, as its machines have. Printed, not judged.
static void daydream(ctx *c, arena *a) {
  static const struct {
    const char *model;
    i64 forward_us, backward_us;
    double measured_ms, published_ms;
  } rows[] = {{"resnet50", 34780, 71340, 138.64, 109.19},
              {"bert-base:positions=128", 107490, 185660, 459.62, 345.68}};
  const tune_link l = {.workers = 16};
  printf("Daydream, Table 2          measured   Daydream (published)     Daydream (here)\n");
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    tune_job *j = job_of(c, a, rows[k].model, 32, &l);
    if (!j) continue;
    tune_scale(j, rows[k].forward_us * (MS / 1000), rows[k].backward_us * (MS / 1000));
    const double ms = (double)daydream_ps(a, j, 80) / (double)MS;
    printf("  %-23s %7.2f ms %8.2f ms %+6.1f %%   %8.2f ms %+6.1f %%\n", rows[k].model, rows[k].measured_ms,
           rows[k].published_ms, off(rows[k].published_ms, rows[k].measured_ms), ms,
           off(ms, rows[k].measured_ms));
  }
}

void reproduce_dpro(ctx *c, verdict *v) {
  arena *a = arena_new();
  printf("\ndPRO, Table 4: BERT Base, 64 samples a GPU, 16 GPUs; %u tokens a sample are assumed\n", TOKENS);
  tune_job *j = fitted(c, a, TOKENS);
  if (!j) {
    fputs(diag_render(c, a), stderr);
    v->skipped++;
    arena_free(a);
    return;
  }
  printf("network %.2f GB/s\n%-22s %11s %11s %8s   %9s %9s\n", 1e3 / j->link.ps_per_byte, "", "measured",
         "ours", "off", "measured", "ours");
  const table_4 t = plans_of(a, j);
  row(v, "without optimisation", j, &t.base, 622.12, 16.42, false);
  row(v, "recompute", j, &t.recompute, 696.13, 7.43, true);
  row(v, "accumulate over 2", j, &t.accumulate, 714.22, 9.96, true);
  require(v,
          tune_bytes(j, &t.base) > 16000000000 &&
              tune_time(j, &t.recompute, TUNE_ONE_WORKER) < tune_time(j, &t.accumulate, TUNE_ONE_WORKER) &&
              tune_bytes(j, &t.recompute) < tune_bytes(j, &t.accumulate),
          "unmodified does not fit 16 GB; recompute is faster and smaller than accumulation");
  const tune_result r = tune_search(a, j, &(tune_opts){.memory_bytes = 16000000000});
  printf("the search within 16 GB: %.1f ms, %.2f GB\n", (double)r.ps / (double)MS, (double)r.bytes / 1e9);
  for (u32 k = 0; k < r.nmemory; k++)
    printf("  %-20s %8.1f ms %6.2f GB%s\n", r.memory[k].name, (double)r.memory[k].ps / (double)MS,
           (double)r.memory[k].bytes / 1e9, r.memory[k].fits ? "" : "  does not fit");
  sensitivity(c, a);
  daydream(c, a);
  arena_free(a);
}
