// best.c - DistIR's best configuration for every model and batch of its paper, against ours over the same
// grid: D x T x P = 16 and K in powers of two, half precision, 28 GB of 32 usable. Agreement is the same
// D/T/P/K, or theirs within 5 % of our best by our simulator.
#include "reproduce.h"

typedef struct {
  const char *model;
  i64 batch;
  degrees best;
} paper_row;
static const paper_row paper[] = {{"mlp-1b", 128, {1, 16, 1, 1}},     {"mlp-1b", 256, {1, 16, 1, 1}},
                                  {"mlp-1b", 512, {1, 16, 1, 1}},     {"mlp-1b", 1024, {1, 16, 1, 1}},
                                  {"mlp-1b", 2048, {2, 8, 1, 1}},     {"mlp-1b", 4096, {4, 4, 1, 1}},
                                  {"mlp-1b", 8192, {4, 4, 1, 1}},     {"mlp-1b", 16384, {8, 2, 1, 1}},
                                  {"mlp-1b", 32768, {8, 2, 1, 1}},    {"mlp-1b", 65536, {16, 1, 1, 1}},
                                  {"mlp-1b", 131072, {16, 1, 1, 1}},  {"mlp-1b", 262144, {16, 1, 1, 1}},
                                  {"mlp-17b", 128, {1, 16, 1, 1}},    {"mlp-17b", 256, {1, 16, 1, 1}},
                                  {"mlp-17b", 512, {1, 16, 1, 1}},    {"mlp-17b", 1024, {1, 16, 1, 1}},
                                  {"mlp-17b", 2048, {1, 16, 1, 1}},   {"mlp-17b", 4096, {2, 8, 1, 1}},
                                  {"mlp-17b", 8192, {4, 4, 1, 1}},    {"mlp-17b", 16384, {4, 4, 1, 1}},
                                  {"mlp-17b", 32768, {2, 4, 2, 8}},   {"mlp-17b", 65536, {4, 2, 2, 8}},
                                  {"mlp-17b", 131072, {4, 2, 2, 32}}, {"mlp-103b", 128, {1, 16, 1, 1}},
                                  {"mlp-103b", 256, {1, 16, 1, 1}},   {"mlp-103b", 512, {1, 16, 1, 1}},
                                  {"mlp-103b", 1024, {1, 16, 1, 1}},  {"gpt2-1.6b", 32768, {16, 1, 1, 1}},
                                  {"gpt2-13b", 16384, {16, 1, 1, 1}}, {"gpt3-175b", 1024, {1, 8, 2, 2}}};

static const double limit = 28e9;

static bool same(degrees x, degrees y) { return x.d == y.d && x.t == y.t && x.p == y.p && x.k == y.k; }

static const char *text_of(arena *a, degrees d) { return arena_printf(a, "%u/%u/%u/%u", d.d, d.t, d.p, d.k); }

// Fastest of the grid that fits; theirs is priced on the way.
static degrees search_grid(bench_model *b, i64 batch, degrees theirs, price *best, price *at_theirs) {
  degrees pick = {0};
  *best = (price){0};
  *at_theirs = (price){0};
  for (u32 D = 1; D <= 16; D *= 2)
    for (u32 T = 1; T <= 16 / D; T *= 2)
      for (u32 K = D * T == 16 ? 1 : 2; K <= (D * T == 16 ? 1 : 128) && batch / D >= K; K *= 2) {
        degrees d = {D, T, 16 / D / T, K};
        price p = model_price(b, d);
        if (!p.ok) continue;
        if (same(d, theirs)) *at_theirs = p;
        if (p.peak_bytes < limit && (!best->ok || p.s < best->s)) *best = p, pick = d;
      }
  return pick;
}

void reproduce_best(ctx *c, verdict *v) {
  arena *a = ctx_arena(c);
  const machine *m = machine_load(c, a, "dgx-2");
  printf("== DistIR's best D/T/P/K (cost models of DistIR, the datasheet's figures)\n");
  printf("%-10s %8s %14s %14s %10s %10s %10s  %s\n", "model", "batch", "theirs", "ours", "theirs s", "ours s",
         "behind", "");
  u32 agree = 0, equal = 0;
  for (u32 i = 0; i < COUNT_OF(paper); i++) {
    const paper_row *r = &paper[i];
    bench_model b;
    if (!model_open(&b, m, &(model_opts){r->model, r->batch, DT_F16}, NULL)) exit(1);
    price best, theirs;
    degrees ours = search_grid(&b, r->batch, r->best, &best, &theirs);
    model_close(&b);
    double behind = theirs.ok ? theirs.s / best.s - 1 : INFINITY;
    bool fits = theirs.ok && theirs.peak_bytes < limit, equal_now = same(ours, r->best);
    bool ok = equal_now || (fits && behind <= 0.05);
    equal += equal_now, agree += ok;
    const char *why = equal_now    ? "the same"
                      : ok         ? "within 5 %"
                      : !theirs.ok ? "NO: cannot be planned"
                      : !fits      ? arena_printf(a, "NO: theirs needs %.1f GB", theirs.peak_bytes / 1e9)
                                   : "NO";
    printf("%-10s %8lld %14s %14s %10.5f %10.5f %+9.1f%%  %s\n", r->model, (long long)r->batch,
           text_of(a, r->best), text_of(a, ours), theirs.s, best.s, 100 * behind, why);
  }
  require(v, agree >= 25, "%u of %u rows agree, at least 25; %u are the same", agree, (u32)COUNT_OF(paper),
          equal);
  printf("\n");
}
