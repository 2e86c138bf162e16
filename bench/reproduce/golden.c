// golden.c - DistIR's own code with its default parameters (uncalibrated: 14 TFLOP/s, 900 GB/s, 10 us, 25
// Gb/s): latency and peak memory of MLP training steps, row by row.
#include "reproduce.h"

static const distir_params defaults = {
    .launch_ps = 10000000, .mem_bw = 900e9, .rate = 14e12, .network = 25e9 / 8};

// How many devices have the peak that a row gives ("1:BYTES;2:BYTES"), to the four bytes of the batch size, a
// number that their program takes. Theirs are numbered stage by stage within a replica and a part of it, ours
// by stage first.
static u32 equal_peaks(const char *peaks, degrees d, const price *p, u32 *devices) {
  u32 equal = 0, n = d.d * d.t * d.p;
  for (const char *s = peaks; *s; s += strcspn(s, ";"), s += *s == ';') {
    char *end;
    u32 at = (u32)strtoul(s, &end, 10) - 1, rank = at % d.p * d.d * d.t + at / d.p;
    if (*end != ':' || at >= n || n > COUNT_OF(p->bytes)) continue;
    equal += fabs(strtod(end + 1, NULL) - p->bytes[rank]) <= 4;
    ++*devices;
  }
  return equal;
}

static void golden(ctx *c, const machine *m, const char *file, const char *model, dtype t, verdict *v) {
  arena *a = ctx_arena(c);
  const table *g = table_read(a, file);
  if (!g) {
    printf("skipped: no %s\n\n", file);
    v->skipped++;
    return;
  }
  printf("%-4s %-4s %-4s %-4s %12s %12s %8s %10s %10s %8s\n", "D", "T", "P", "K", "theirs s", "ours s",
         "error", "theirs MB", "ours MB", "error");
  double *time = NEWN(a, double, g->rows), *bytes = NEWN(a, double, g->rows);
  double *want = NEWN(a, double, g->rows), *got = NEWN(a, double, g->rows);
  bench_model b;
  model_opts o = {model, (i64)table_number(g, 0, "batch"), t};
  if (!model_open(&b, m, &o, &defaults)) exit(1);
  u32 n = 0, devices = 0, equal = 0;
  for (u32 i = 0; i < g->rows; i++) {
    degrees d = {(u32)table_number(g, i, "D"), (u32)table_number(g, i, "T"), (u32)table_number(g, i, "P"),
                 (u32)table_number(g, i, "K")};
    price p = model_price(&b, d);
    want[n] = table_number(g, i, "latency_s"), got[n] = p.s;
    double wb = table_number(g, i, "peak_bytes");
    time[n] = fabs(p.s / want[n] - 1), bytes[n] = fabs(p.peak_bytes / wb - 1);
    equal += equal_peaks(table_text(g, i, "peak_by_device"), d, &p, &devices);
    printf("%-4u %-4u %-4u %-4u %12.6f %12.6f %+7.1f%% %10.1f %10.1f %+7.1f%%\n", d.d, d.t, d.p, d.k, want[n],
           p.s, 100 * (p.s / want[n] - 1), wb / 1e6, p.peak_bytes / 1e6, 100 * (p.peak_bytes / wb - 1));
    n++;
  }
  model_close(&b);
  printf("%s: median error of latency %.2f %%, of peak memory %.2f %%, Spearman %.4f over %u rows; "
         "%u of %u devices have the same peak\n\n",
         file, 100 * median_of(a, time, n), 100 * median_of(a, bytes, n), spearman(a, want, got, n), n, equal,
         devices);
}

void reproduce_golden(ctx *c, verdict *v) {
  const machine *m = machine_load(c, ctx_arena(c), "dgx-2");
  printf("== DistIR's code, default parameters\n");
  golden(c, m, "distir/golden_mlp_small_fp16.csv", "mlp-small", DT_F16, v);
  golden(c, m, "distir/golden_mlp_xs_fp32.csv", "mlp-xs", DT_F32, v);
}
