// balance.c - exact shares and stages of large mixed clusters. Of several models and memories the slowest
// counts.
#include "balance/balance.h"
#include "bench.h"

enum { RUNS = 5, KINDS = 4, LAYERS = 96, DEVICES = 64, RANKS = 1024 };
static const i64 MS = 1000000000, GB = 1000000000;

static u64 R;
static i64 few(i64 n) { return (i64)(rng_next(&R) % (u64)n); }

// ---- shares -------------------------------------------------------------------------------------------
// A time that is not a straight line, as kernels have them.
static i64 stepped(const void *arg, u32 kind, i64 quanta) {
  const i64 *each = arg;
  return 3 * MS + (quanta + 7) / 8 * 8 * each[kind];
}

static double shares_ms(u32 nkinds, i64 total, balance_time *time) {
  static balance_ranks kind[RANKS];
  static i64 each[RANKS];
  for (u32 k = 0; k < nkinds; k++) {
    each[k] = MS + few(4 * MS);
    kind[k] = (balance_ranks){
        .count = RANKS / nkinds, .cap = total / RANKS * 2, .fixed_ps = 3 * MS, .each_ps = each[k]};
  }
  balance_batch in = {.total = total, .nkinds = nkinds, .kind = kind, .time = time, .arg = each};
  double ms[RUNS];
  for (u32 i = 0; i < RUNS; i++) {
    arena *a = arena_new();
    balance_split s;
    double start = bench_ms();
    if (balance_shares(a, &in, &s)) abort();
    ms[i] = bench_ms() - start;
    arena_free(a);
  }
  return bench_fastest(ms, RUNS);
}

// ---- stages -------------------------------------------------------------------------------------------
typedef enum { ALIKE, RANDOM, LARGE_LAST, BY_THREES, SHAPES } shape;
typedef enum { ENOUGH, MIXED, TIGHT, MEMORIES } memories;
typedef struct {
  balance_devices kind[KINDS];
  i64 time[KINDS][LAYERS], fixed[LAYERS], kept[LAYERS];
  const i64 *times[KINDS];
} model;

static void make_model(model *m, shape s, memories memory) {
  static const i64 percent[KINDS] = {100, 170, 260, 500}, gb[MEMORIES][KINDS] = {
                                                              [ENOUGH] = {1000000, 1000000, 1000000, 1000000},
                                                              [MIXED] = {16, 32, 16, 32},
                                                              [TIGHT] = {32, 32, 32, 32},
                                                          };
  for (u32 l = 0; l < LAYERS; l++) {
    i64 us = s == RANDOM                    ? 100 + few(2000)
             : s == BY_THREES               ? (i64[]){1000, 600, 250}[l % 3]
             : s == ALIKE || l + 1 < LAYERS ? 1000
                                            : 8000;
    for (u32 k = 0; k < KINDS; k++) m->time[k][l] = us * MS / 1000 * percent[k] / 100 + few(MS / 1000);
    m->fixed[l] = 3 * GB + few(GB), m->kept[l] = GB / 5 + few(GB / 10);
  }
  for (u32 k = 0; k < KINDS; k++) {
    m->kind[k] = (balance_devices){DEVICES / KINDS, gb[memory][k] * GB};
    m->times[k] = m->time[k];
  }
}

static i64 send_ps(const void *arg, u32 cut, u32 from, u32 to) {
  (void)arg, (void)cut;
  return from == to ? MS / 20 : MS / 5;
}

static double stages_ms(balance_aim aim, balance_send *send) {
  double worst = 0;
  R = 1;
  for (u32 x = 0; x < SHAPES * MEMORIES; x++) {
    static model m;
    make_model(&m, x % SHAPES, x / SHAPES);
    balance_line in = {.nlayers = LAYERS,
                       .nkinds = KINDS,
                       .kind = m.kind,
                       .time_ps = m.times,
                       .fixed_bytes = m.fixed,
                       .kept_bytes = m.kept,
                       .micro = 256,
                       .send = send,
                       .aim = aim};
    double ms[RUNS];
    for (u32 i = 0; i < RUNS; i++) {
      arena *a = arena_new();
      balance_cuts c;
      double start = bench_ms();
      if (balance_stages(a, &in, &c)) abort();
      ms[i] = bench_ms() - start;
      arena_free(a);
    }
    worst = fmax(worst, bench_fastest(ms, RUNS));
  }
  return worst;
}

int main(void) {
  bench_add(
      (bench_row){"balanced data parallel, 1,024 ranks", "ms", shares_ms(4, 64 * RANKS, NULL), 1, "", false});
  bench_add((bench_row){"balanced data parallel, 1,024 ranks, all different, times in steps", "ms",
                        shares_ms(RANKS, 64 * RANKS, stepped), 0, "", false});
  bench_add((bench_row){"exact order and cuts, 64 devices of 4 kinds, 96 layers", "ms",
                        stages_ms(BALANCE_BOTTLENECK, NULL), 100, "prototype 0.15 s", false});
  bench_add((bench_row){"exact order and cuts, 64 devices of 4 kinds, 96 layers, sends", "ms",
                        stages_ms(BALANCE_BOTTLENECK, send_ps), 0, "", false});
  bench_add((bench_row){"exact order and cuts for the least total, 64 devices of 4 kinds, 96 layers", "ms",
                        stages_ms(BALANCE_TOTAL, NULL), 0, "", false});
  bench_add((bench_row){"exact order and cuts for the least total, 64 devices of 4 kinds, 96 layers, sends",
                        "ms", stages_ms(BALANCE_TOTAL, send_ps), 0, "", false});
  return bench_end();
}
