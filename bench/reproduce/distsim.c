// distsim.c - DistSim's search: BERT of 48 layers, 16 A10 on 4 nodes of 4, global batch 16, every D x T x P =
// 16 in powers of two. The paper says neither sequence length nor number of microbatches nor precision: 512
// tokens, one sample a microbatch (its search fixes the global batch only), 1F1B (Dapple), half precision,
// Adam are assumed.
#include "reproduce.h"

typedef struct {
  degrees d;
  double s, bytes;
  bool ok;
} point;

static int by_time(const void *x, const void *y) {
  const point *a = x, *b = y;
  if (a->ok != b->ok) return a->ok ? -1 : 1;
  return (a->s > b->s) - (a->s < b->s);
}

void reproduce_distsim(ctx *c, verdict *v) {
  enum { BATCH = 16, RANKS = 16 };
  arena *a = ctx_arena(c);
  printf("== DistSim's search: BERT of 48 layers, 16 A10 on 4 nodes, global batch 16\n");
  const machine *m = machine_load(c, a, "a10-4x4");
  prog *src = front_load(c, "bert-48l", &(front_opts){.batch = BATCH, .t = DT_F16, .loss = true});
  cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
  if (!src || !k) {
    fputs(diag_render(c, a), stderr);
    exit(1);
  }
  planner *pl = planner_new(src);
  point all[32];
  u32 n = 0;
  for (u32 D = 1; D <= RANKS; D *= 2)
    for (u32 T = 1; T <= RANKS / D; T *= 2) {
      arena *s = arena_new();
      degrees d = {D, T, RANKS / D / T, RANKS / D / T > 1 ? BATCH / D : 1};
      hybrid_opts h = {
          .s = strategy_of("dp=%u tp=%u pp=%u mb=%u%s", d.d, d.t, d.p, d.k, d.p > 1 ? " overlap=none" : ""),
          .train = true,
          .optim = optim_default(OPTIM_ADAM)};
      h.optim.master = false;
      plan *pn = policy_hybrid(pl, s, &h);
      prog *p = pn ? plan_apply(pl, pn, k) : NULL;
      sim_result r;
      bool ok = p && sim_run(c, s, p, k, &(sim_opts){.mode = SIM_FOLDED, .peak_only = true}, &r);
      all[n++] = (point){d, ok ? (double)r.makespan_ps * 1e-12 : 0, ok ? (double)r.peak_bytes : 0, ok};
      if (!ok) fputs(diag_render(c, a), stderr), diag_clear(c);
      prog_free(p);
      arena_free(s);
    }
  qsort(all, n, sizeof *all, by_time);
  printf("%4s %4s %4s %4s %10s %10s\n", "D", "T", "P", "K", "iter/s", "peak GB");
  for (u32 i = 0; i < n; i++)
    printf("%4u %4u %4u %4u %10.3f %10.2f\n", all[i].d.d, all[i].d.t, all[i].d.p, all[i].d.k, 1 / all[i].s,
           all[i].bytes / 1e9);
  const point *first = &all[0], *last = &all[n - 1];
  printf("best over worst: %.2f here, 7.37 in the paper (2.94 over 0.398 iterations a second)\n",
         last->s / first->s);
  require(v, n == 15, "%u plans, 15", n);
  require(v, first->d.d == 2 && first->d.p == 8, "first: %u-way data, %u-way tensor, %u stages; 2, 1, 8",
          first->d.d, first->d.t, first->d.p);
  require(v, last->d.t == 16, "last: %u-way data, %u-way tensor, %u stages; 1, 16, 1", last->d.d, last->d.t,
          last->d.p);
  planner_free(pl);
  prog_free(src);
  printf("\n");
}
