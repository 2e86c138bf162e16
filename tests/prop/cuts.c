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

static void show(const setting *s, const char *row, const strategy *automatic, u32 stages, const i64 *ps,
                 const u32 *best) {
  arena *a = arena_new();
  const hybrid_opts o = {
      .s = *automatic, .train = true, .optim = optim_default(OPTIM_SGD), .k = s->k, .memory_bytes = -1};
  const plan *pn = policy_hybrid(s->pl, a, &o);
  printf("  %-16s auto %8.1f us (%s), cost %8.1f, best %8.1f by", row, (double)ps[0] / 1e6,
         pn ? sym_str(s->c, pn->name) : "", (double)ps[1] / 1e6, (double)ps[2] / 1e6);
  for (u32 k = 0; k < stages; k++) printf(" %u", best[k]);
  printf("\n");
  arena_free(a);
}

// exact: of rows that put layers on all places, or two replicas on each, which no formula of balance/ says.
static void hold_rows(const char *model, i64 batch, i64 seq, u32 layers, u32 pp, u32 mb, bool exact) {
  setting s = {.c = ctx_new(), .a = arena_new(), .layers = layers};
  prog *src = front_load(s.c, model, &(front_opts){.batch = batch, .seq = seq, .loss = true});
  machine *m = machine_load(s.c, s.a, "1x4 v100");
  if (!CHECK_MSG(src && m, "%s", diag_render(s.c, s.a))) test_leave();
  s.pl = planner_new(src), s.k = cost_model_new(s.c, s.a, m, NULL);
  u32 looked = 0;
  for (u32 i = 0; sched_row_of(i); i++) {
    const sched_row *row = sched_row_of(i);
    strategy of = strategy_default();
    of.pp.n = pp, of.mb.n = mb, of.schedule.n = i, of.v.n = MAX(row->chunks, 1);
    if (row->chunks == CHUNKS_ANY && row->ahead == AHEAD_OTHER) of.v.n = 2;
    if (row->placement == PLACED_PASSES) continue; // its layers are alike
    strategy automatic = of;
    i64 ps[3] = {-1, step_of(&s, &of), -1};
    u32 best[8];
    while (!choice_is(CHOICE_layers, automatic.layers, "auto")) automatic.layers.n++;
    ps[0] = step_of(&s, &automatic), ps[2] = best_cut(&s, &of, pp * of.v.n, best);
    if (ps[2] < 0) continue; // not of so many places
    looked++;
    if (getenv("SHOW")) show(&s, row->name, &automatic, pp * of.v.n, ps, best);
    const bool border =
        row->placement == PLACED_WIDE || (row->placement == PLACED_BOTH && strcmp(row->name, "gems"));
    CHECK_MSG(ps[0] >= ps[2], "%s: not all cuts were tried", row->name);
    if (exact && border)
      CHECK_MSG(ps[0] == ps[2], "%s: %lld ps for %lld", row->name, (long long)ps[0], (long long)ps[2]);
  }
  CHECK(looked > 12);
  planner_free(s.pl);
  prog_free(src);
  arena_free(s.a);
  ctx_free(s.c);
}

TEST(layers_are_cut_as_well_as_can_be) {
  hold_rows("gpt2:layers=6,hidden=256,heads=4,vocab=8000", 16, 64, 6, 2, 4, true);
  hold_rows("gpt2:layers=6,hidden=256,heads=4,vocab=40000", 16, 64, 6, 2, 4, true);
  hold_rows("gpt2:layers=8,hidden=256,heads=4,vocab=40000", 24, 128, 8, 3, 6, false);
}
