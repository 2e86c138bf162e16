// cuts.c - layers=auto of every schedule against all cuts of a small model, each simulated.
//
// SHOW=1: what every row takes, and its best cuts.
#include "cost/cost.h"
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"
#include <stdlib.h>

typedef struct {
  ctx *c;
  arena *a;
  planner *pl;
  cost_model *k;
  u32 layers;
} setting;

static i64 step_of(const setting *s, const strategy *of) {
  arena *a = arena_new();
  const u32 before = diag_count(s->c);
  const hybrid_opts o = {
      .s = *of, .train = true, .optim = optim_default(OPTIM_SGD), .k = s->k, .memory_bytes = -1};
  const plan *pn = policy_hybrid(s->pl, a, &o);
  prog *d = pn ? plan_apply(s->pl, pn, s->k) : NULL;
  sim_result r;
  const bool ok = d && sim_run(s->c, a, d, s->k, &(sim_opts){.mode = SIM_FOLDED, .no_bytes = true}, &r);
  prog_free(d);
  if (!ok && getenv("WHY")) puts(diag_render(s->c, a));
  diag_truncate(s->c, before);
  arena_free(a);
  return ok ? r.makespan_ps : -1;
}

// All ways to deal out layers over stages; a stage without any may be the first or the last.
static i64 best_cut(const setting *s, strategy *of, u32 stages, u32 *best) {
  u32 part[8] = {0};
  i64 least = -1;
  of->layers = (choice_value){.nparts = stages, .part = part};
  for (;;) {
    u32 sum = 0;
    for (u32 k = 0; k + 1 < stages; k++) sum += part[k];
    if (sum <= s->layers) {
      part[stages - 1] = s->layers - sum;
      const i64 ps = step_of(s, of);
      if (ps >= 0 && (least < 0 || ps < least)) least = ps, memcpy(best, part, sizeof part);
    }
    u32 k = 0;
    while (k + 1 < stages && ++part[k] > s->layers) part[k++] = 0;
    if (k + 1 >= stages) return least;
  }
}

static void hold_rows(const char *model, i64 batch, i64 seq, u32 layers, u32 pp, u32 mb) {
  setting s = {.c = ctx_new(), .a = arena_new(), .layers = layers};
  prog *src = front_load(s.c, model, &(front_opts){.batch = batch, .seq = seq, .loss = true});
  machine *m = machine_load(s.c, s.a, "1x4 v100");
  if (!CHECK_MSG(src && m, "%s", diag_render(s.c, s.a))) test_leave();
  s.pl = planner_new(src), s.k = cost_model_new(s.c, s.a, m, NULL);
  for (u32 i = 0; sched_row_of(i); i++) {
    const sched_row *row = sched_row_of(i);
    strategy of = strategy_default();
    of.pp.n = pp, of.mb.n = mb, of.schedule.n = i;
    of.v.n = row->chunks == CHUNKS_ANY         ? (strcmp(row->name, "zb-h1") ? 2 : 1)
             : row->placement == PLACED_PASSES ? 1
                                               : row->chunks;
    const u32 stages = pp * of.v.n;
    u32 best[8];
    strategy automatic = of;
    automatic.layers = choice_default(CHOICE_layers);
    automatic.layers.n = 0;
    const i64 cost = step_of(&s, &automatic);
    for (u32 w = 0; !choice_is(CHOICE_layers, automatic.layers, "auto") && w < 8; w++) automatic.layers.n = w;
    const i64 got = step_of(&s, &automatic), least = best_cut(&s, &of, stages, best);
    if (getenv("SHOW")) {
      printf("%-18s pp=%u mb=%u auto %9.1f us, best %9.1f us: %.3f, cost %.3f; best", row->name, pp, mb,
             (double)got / 1e6, (double)least / 1e6, (double)got / (double)least,
             (double)cost / (double)least);
      for (u32 k = 0; k < stages && least >= 0; k++) printf(" %u", best[k]);
      arena *a = arena_new();
      const hybrid_opts o = {
          .s = automatic, .train = true, .optim = optim_default(OPTIM_SGD), .k = s.k, .memory_bytes = -1};
      const plan *pn = policy_hybrid(s.pl, a, &o);
      if (pn) printf(", auto %s", sym_str(s.c, pn->name));
      printf("\n");
      diag_clear(s.c);
      arena_free(a);
    }
  }
  planner_free(s.pl);
  prog_free(src);
  arena_free(s.a);
  ctx_free(s.c);
}

TEST(layers_are_cut_as_well_as_can_be) {
  hold_rows("gpt2:layers=6,hidden=256,heads=4,vocab=8000", 16, 64, 6, 2, 4);
  hold_rows("gpt2:layers=6,hidden=256,heads=4,vocab=40000", 16, 64, 6, 2, 4);
  hold_rows("gpt2:layers=8,hidden=256,heads=4,vocab=40000", 24, 128, 8, 3, 6);
}
