// test_given.c - what a plan gives to every device: all of the work once, every sample once for each part of the model,
// and as the axes of the plan say. The table that is made of it: tests/golden/cli/mixed.t, annotate.t.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"
#include <math.h>

static prog *model_of(ctx *c, const char *spec, i64 batch, i64 seq) {
  const front_opts o = {.batch = batch, .seq = seq, .loss = true};
  prog *p = front_load(c, spec, &o);
  REQUIRE(p && pass_loss(p));
  return p;
}

static const plan *plan_of(ctx *c, planner *pl, arena *a, const char *line) {
  strategy_set set;
  hybrid_opts h = {.train = true, .said = &set};
  const bool ok = strategy_parse(c, a, line, &set) && strategy_one(c, &set, &h.s);
  const plan *pn = ok ? policy_hybrid(pl, a, &h) : NULL;
  CHECK_MSG(pn, "%s: %s", line, diag_render(c, a));
  REQUIRE(pn);
  return pn;
}

static bool near(double x, double y) { return fabs(x - y) < 1e-9; }

TEST(given_follows_shares_and_stages) {
  static const struct {
    const char *line;
    double work[8]; // relative to the first rank's
    i64 samples[8];
    bool cut;
  } plans[] = {
      {"dp=2", {1, 1}, {24, 24}, false},
      {"dp=2 dp.shares=3/1", {3, 1}, {36, 12}, false},
      {"tp=2 tp.shares=3/1", {3, 1}, {48, 48}, false},
      {"dp=2 tp=2 mb=2 dp.shares=2/1 tp.shares=1/3", {2, 6, 1, 3}, {32, 32, 16, 16}, false},
      {"pp=2 layers=3/1", {3, 1}, {48, 48}, true},
      {"dp=2 tp=1 pp=2 layers=2/2 tp.stages=2/1 mb=2", {1, 1, 1, 1}, {48, 48, 24, 24}, true},
      {"dp=4 pp=2 layers=2/2 tp.stages=2/1 mb=2 dp.shares=1/2/4/5",
       {1.5, 1.5, 4.5, 4.5, 1, 2, 4, 5},
       {12, 12, 36, 36, 4, 8, 16, 20},
       true},
  };
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = model_of(c, "mlp-xs:layers=4,hidden=24", 48, 0);
  planner *pl = planner_new(p);
  for (u32 k = 0; k < COUNT_OF(plans); k++) {
    const plan_given of = plan_given_of(pl, plan_of(c, pl, a, plans[k].line), 48, a);
    double first = 0, all = 0;
    for (u32 r = 0; r < of.nranks; r++) all += of.rank[r].work;
    first = of.rank[0].work / plans[k].work[0];
    CHECK_MSG(near(all, 1) && of.cut == plans[k].cut, "%s: %g of the work", plans[k].line, all);
    for (u32 r = 0; r < of.nranks; r++) {
      CHECK_MSG(near(of.rank[r].work, first * plans[k].work[r]), "%s: rank %u has %g of the work",
                plans[k].line, r, of.rank[r].work);
      CHECK_EQ_I64(of.rank[r].samples[0], plans[k].samples[r]);
      CHECK_EQ_I64(of.rank[r].samples[1], plans[k].samples[r]);
    }
  }
  planner_free(pl);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}

// Products of main are those of its calls and its own: of a GPT three quarters and more are in the layers.
TEST(given_products_are_of_the_whole_program) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = model_of(c, "gpt2:layers=4,hidden=24,heads=4,vocab=24,positions=8,ffn=96", 12, 8);
  planner *pl = planner_new(p);
  const func_info *m = func_get(p, p->main);
  const double *flops = plan_products(pl, a);
  double layer = 0, head = 0;
  u32 layers = 0;
  for (u32 i = 0; i < m->body.n; i++)
    if (m->body.v[i].op == OP_call)
      layer = flops[i], layers++;
    else
      head += flops[i];
  const double tokens = 12 * 8, h = 24; // qkv, out, two of the MLP; scores and their use; 2 flops each
  CHECK_EQ_I64(layers, 4);
  CHECK_MSG(near(layer, 2 * tokens * (12 * h * h + 2 * 8 * h)), "%g", layer);
  CHECK_MSG(near(head, 2 * tokens * h * 24), "%g", head);
  planner_free(pl);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}
