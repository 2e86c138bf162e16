// grids.c - the points that DistIR's authors simulated on 16 V100 with their calibrated parameters: does our
// ranking of plans agree with theirs, and do the peaks of memory?
#include "reproduce.h"

typedef struct {
  const char *name, *ours;
} alias;
static const alias models[] = {{"mlp-small", "mlp-small"}, {"mlp-medium", "mlp-medium"},
                               {"mlp-large", "mlp-large"}, {"gpt3-xl", "gpt2-1.6b"},
                               {"gpt3-13B", "gpt2-13b"},   {"gpt3-175B", "gpt3-175b"}};

typedef struct {
  u32 n;
  double *theirs, *ours, *other, *time_error, *byte_error;
} column;

static void one_model(ctx *c, const machine *m, const machine *calibrated, const table *t, const alias *who,
                      verdict *v) {
  arena *a = ctx_arena(c);
  bool *done = ZNEWN(a, bool, t->rows);
  column k = {0,
              NEWN(a, double, t->rows),
              NEWN(a, double, t->rows),
              NEWN(a, double, t->rows),
              NEWN(a, double, t->rows),
              NEWN(a, double, t->rows)};
  for (u32 i = 0; i < t->rows; i++) {
    if (done[i] || strcmp(table_text(t, i, "model"), who->name)) continue;
    bench_model b, other; // every row with this batch
    model_opts o = {who->ours, (i64)table_number(t, i, "batch"), DT_F16};
    if (!model_open(&b, m, &o, NULL) || !model_open(&other, calibrated, &o, NULL)) exit(1);
    for (u32 j = i; j < t->rows; j++) {
      if (strcmp(table_text(t, j, "model"), who->name) || (i64)table_number(t, j, "batch") != o.batch)
        continue;
      done[j] = true;
      degrees d = {(u32)table_number(t, j, "D"), (u32)table_number(t, j, "T"), (u32)table_number(t, j, "P"),
                   (u32)table_number(t, j, "K")};
      price p = model_price(&b, d), q = model_price(&other, d);
      if (!p.ok || !q.ok) {
        printf("  %s D%u T%u P%u K%u batch %lld: no plan\n", who->name, d.d, d.t, d.p, d.k,
               (long long)o.batch);
        continue;
      }
      double bytes = table_number(t, j, "sim_peak_mem_GB") * 1e9;
      k.theirs[k.n] = table_number(t, j, "sim_throughput");
      k.ours[k.n] = (double)o.batch / p.s, k.other[k.n] = (double)o.batch / q.s;
      k.time_error[k.n] = fabs(k.other[k.n] / k.theirs[k.n] - 1);
      k.byte_error[k.n++] = fabs(p.peak_bytes / bytes - 1);
      if (getenv("REPRODUCE_ROWS"))
        printf("  %s D%-2u T%-2u P%-2u K%-3u batch %-7lld %12.1f/s theirs %12.1f ours %12.1f identified "
               "%12.0f B theirs %+12.0f ours\n",
               who->name, d.d, d.t, d.p, d.k, (long long)o.batch, k.theirs[k.n - 1], k.ours[k.n - 1],
               k.other[k.n - 1], bytes, p.peak_bytes - bytes);
    }
    model_close(&b);
    model_close(&other);
  }
  double rank = spearman(a, k.theirs, k.ours, k.n), bytes = median_of(a, k.byte_error, k.n);
  printf("%-11s %5u %18.4f %18.4f %17.2f%% %17.2f%%\n", who->name, k.n, rank,
         spearman(a, k.theirs, k.other, k.n), 100 * median_of(a, k.time_error, k.n), 100 * bytes);
  require(v, rank >= 0.95, "%s: Spearman of throughput %.4f, at least 0.95", who->name, rank);
  require(v, bytes <= 0.03, "%s: median error of peak memory %.2f %%, at most 3 %%", who->name, 100 * bytes);
}

void reproduce_grids(ctx *c, verdict *v) {
  printf("== DistIR's simulated grids, 16 V100\n");
  const table *t = table_read(ctx_arena(c), "distir/sim_mem_vs_thr.csv");
  if (!t) {
    printf("skipped: no distir/sim_mem_vs_thr.csv\n\n");
    v->skipped++;
    return;
  }
  const machine *m = machine_load(c, ctx_arena(c), "dgx-2");
  const machine *calibrated = machine_load(c, ctx_arena(c), "bench/reproduce/dgx-2-distir.yaml");
  if (!m || !calibrated) {
    fputs(diag_render(c, ctx_arena(c)), stderr);
    exit(1);
  }
  printf("%-11s %5s %18s %18s %18s %18s\n", "", "", "datasheet", "identified", "identified", "");
  printf("%-11s %5s %18s %18s %18s %18s\n", "model", "rows", "Spearman", "Spearman", "error of time",
         "error of memory");
  for (u32 i = 0; i < COUNT_OF(models); i++) one_model(c, m, calibrated, t, &models[i], v);
  printf("\n");
}
