// test_plan_shrink.c - plans too large to be evaluated, verified on the same model made small.
#include "plan/plan.h"
#include "loaded.h"

TEST(shrink_verifies_plans) {
  static const struct {
    const char *name;
    i64 batch, seq;
    const char *line;
  } plans[] = {
      {"gpt2:layers=2", 16, 128, "dp=2 tp=4 pp=2 mb=4 zero=3 sp schedule=gpipe"},
      {"llama2-7b:layers=2", 16, 128, "dp=2 tp=2 pp=2 mb=2 zero=1 recompute=full schedule=gpipe"},
      {"moe-8x125m:layers=2", 8, 64, "dp=2 tp=4 mb=2 zero=2"},
      {"resnet50", 16, 64, "dp=2 tp=2 pp=2 mb=2 schedule=gpipe"},
      {"inception-v3", 4, 75, "dp=2 tp=2 pp=2 mb=2 schedule=gpipe"},
  };
  for (u32 i = 0; i < COUNT_OF(plans); i += test_step()) {
    model m = open_model(plans[i].name, plans[i].batch, plans[i].seq);
    planner *pl = planner_new(m.p);
    hybrid_opts o = {.s = strategy_of("%s", plans[i].line), .train = true, .optim = optim_default(OPTIM_SGD)};
    plan *pn = policy_hybrid(pl, m.a, &o);
    verify_report r = {0};
    bool ok = pn &&
              plan_verify(pl, pn, NULL, &(verify_opts){.seed = 1, .memory_bytes = 40 << 20, .points = 3e7},
                          m.a, &r) &&
              r.passed && *r.shrunk;
    CHECK_MSG(ok, "%s: %s", plans[i].name, diag_render(m.c, m.a));
    planner_free(pl);
    close_model(&m);
  }
}

TEST(shrink_has_limits) {
  model m = open_model("gpt2:layers=2", 16, 128);
  planner *pl = planner_new(m.p);
  plan *one = plan_single(m.a, m.p, false, NULL);
  verify_report r;
  CHECK(!plan_verify(pl, one, NULL, &(verify_opts){.memory_bytes = 1000}, m.a, &r));
  CHECK_STR(diag_row_of(diag_get(m.c, 0).id)->code, "E0901");
  planner_free(pl);
  close_model(&m);
}
