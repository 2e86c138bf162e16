// test_auto_order.c - what an automatic plan is said to take does not depend on what was asked before it: choices of storage and of
// where weights are updated share what was solved for one of them.
#include "front/front.h"
#include "plan/plan.h"
#include "search/search.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
  cost_model *k;
} bed;

static hybrid_opts options(const bed *b, const char *line) {
  const search_opts so = {.train = true, .batch = 16, .optim = optim_default(OPTIM_ADAM), .top = 1};
  const strategy at = strategy_of("%s", line);
  hybrid_opts h = search_hybrid(&so, &at);
  h.k = b->k;
  return h;
}

static auto_plan ask(const bed *b, splitter *x, const char *line) {
  const hybrid_opts h = options(b, line);
  auto_plan p = {0};
  CHECK_MSG(policy_auto(x, b->a, &h, 0, NULL, &p), "%s: %s", line, diag_render(b->c, b->a));
  return p;
}

TEST(auto_orders_of_questions) {
  static const char *const lines[] = {"tp=2 offload=none",   "tp=2 offload=params",
                                      "tp=2 offload=acts",   "tp=2 offload=params+grads+states+acts",
                                      "tp=2 offload=states", "tp=2 offload=states update=host"};
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = front_load(b.c, "gpt2:layers=2,hidden=64,heads=4,vocab=1024",
                     &(front_opts){.batch = 16, .seq = 16, .t = DT_F16, .loss = true});
  REQUIRE(b.src != NULL);
  b.pl = planner_new(b.src);
  b.k = cost_model_new(b.c, b.a, machine_load(b.c, b.a, "1x2 v100 hostmem=64GiB host=1GB/s hostbw=10GB/s"),
                       NULL);
  REQUIRE(b.k != NULL);
  auto_plan alone[COUNT_OF(lines)];
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    splitter *x = policy_auto_new(b.pl, true, &(auto_opts){.method = SPLITS_EXACT});
    alone[k] = ask(&b, x, lines[k]);
    policy_auto_free(x);
  }
  for (u32 first = 0; first < COUNT_OF(lines); first++)
    for (u32 k = 0; k < COUNT_OF(lines); k++) {
      splitter *x = policy_auto_new(b.pl, true, &(auto_opts){.method = SPLITS_EXACT});
      ask(&b, x, lines[first]);
      const auto_plan p = ask(&b, x, lines[k]);
      CHECK_MSG(p.time_ps == alone[k].time_ps && p.bytes == alone[k].bytes,
                "%s after %s: %lld ps, %lld bytes; alone %lld, %lld", lines[k], lines[first],
                (long long)p.time_ps, (long long)p.bytes, (long long)alone[k].time_ps,
                (long long)alone[k].bytes);
      policy_auto_free(x);
    }
  planner_free(b.pl), prog_free(b.src);
  arena_free(b.a), ctx_free(b.c);
}
