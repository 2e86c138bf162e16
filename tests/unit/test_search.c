// test_search.c - the search against itself: bounds only rule out, threads change nothing, and the time of a
// plan is what the simulator says of it.
#include "front/front.h"
#include "search/search.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
  machine *m;
} setting;

static setting set_up(const char *model, const char *spec, i64 batch, bool train) {
  setting s = {ctx_new(), arena_new(), NULL, NULL};
  front_opts fo = {.batch = batch, .seq = 16, .t = DT_F16, .loss = train};
  s.p = front_load(s.c, model, &fo);
  s.m = machine_load(s.c, s.a, spec);
  REQUIRE(s.p && s.m);
  return s;
}

static void tear_down(setting *s) {
  prog_free(s->p);
  arena_free(s->a);
  ctx_free(s->c);
}

static const char small[] = "gpt2:layers=4,hidden=64,heads=4,head_dim=16,ffn=256,vocab=128,positions=32";

static bool same_point(const search_point *x, const search_point *y) {
  return !memcmp(&x->data, &y->data, 7 * sizeof(u32)) && x->state == y->state && x->time_ps == y->time_ps &&
         x->peak_bytes == y->peak_bytes;
}

TEST(search_bounds_only_rule_out) {
  setting s = set_up("gpt2:layers=4,hidden=1024,heads=8,head_dim=128,ffn=4096,vocab=128,positions=32",
                     "dgx-2", 4096, true);
  search_opts o = {
      .train = true, .optim = optim_default(OPTIM_ADAM), .batch = 4096, .top = 5, .threads = 1, .pow2 = true};
  search_result with, without;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &with));
  o.no_bounds = true;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &without));
  CHECK(with.npoints == without.npoints);
  CHECK(with.count[SEARCH_BOUND_TIME] + with.count[SEARCH_BOUND_MEMORY] > 0); // else this test shows nothing
  for (u32 i = 0; i < 5; i++) CHECK(same_point(&with.point[i], &without.point[i]));
  for (u32 i = 0; i < without.npoints; i++) {
    const search_point *p = &without.point[i];
    if (!p->time_ps) continue;
    CHECK(p->bound_ps <= p->time_ps);
    CHECK(p->bound_bytes <= p->peak_bytes);
  }
  tear_down(&s);
}

TEST(search_is_the_same_on_any_number_of_threads) {
  setting s = set_up(small, "dgx-2", 64, true);
  search_opts o = {.train = true, .optim = optim_default(OPTIM_SGD), .batch = 64, .top = 3, .threads = 1};
  search_result one, three;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &one));
  o.threads = 3;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &three));
  REQUIRE(one.npoints == three.npoints);
  for (u32 i = 0; i < one.npoints; i++) CHECK(same_point(&one.point[i], &three.point[i]));
  for (u32 k = 0; k < SEARCH_STATES; k++) CHECK(one.count[k] == three.count[k]);
  tear_down(&s);
}

TEST(search_value_is_the_simulated_value) {
  setting s = set_up(small, "a40-4x4", 32, true);
  search_opts o = {
      .train = true, .optim = optim_default(OPTIM_ADAMW), .batch = 32, .threads = 2, .pow2 = true};
  search_result r;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  u32 seen = 0;
  for (u32 i = 0; i < r.npoints; i += 1 + r.npoints / 12) {
    const search_point *p = &r.point[i];
    if (!p->time_ps) continue;
    planner *pl = planner_new(s.p);
    coster *k = coster_new(s.c, s.a, s.m, NULL);
    hybrid_opts h = search_hybrid(&o, p);
    h.flops_per_byte = search_price(s.m);
    plan *pn = policy_hybrid(pl, s.a, &h);
    prog *d = pn ? plan_apply(pl, pn, k) : NULL;
    REQUIRE(d);
    static const sim_mode mode[] = {SIM_FLAT, SIM_COMPOSED, SIM_FOLDED};
    for (u32 j = 0; j < COUNT_OF(mode); j++) {
      sim_opts so = {.mode = mode[j]};
      sim_result one;
      REQUIRE(sim_run(s.c, s.a, d, k, &so, &one));
      CHECK_EQ_I64(one.makespan_ps, p->time_ps);
      CHECK_EQ_I64(one.peak_bytes, p->peak_bytes);
    }
    prog_free(d);
    planner_free(pl);
    seen++;
  }
  CHECK(seen >= 8);
  tear_down(&s);
}

// Over 3 ranks the weights of 2 elements cannot be dealt out, over 3 ranks those of 4 can.
TEST(search_leaves_out_levels_of_zero_that_are_the_same) {
  for (u32 hidden = 2; hidden <= 4; hidden += 2) {
    ctx *c = ctx_new();
    setting s = set_up(arena_printf(ctx_arena(c), "mlp-xs:hidden=%u", hidden), "a40-4x4", 12, true);
    search_opts o = {.train = true,
                     .optim = optim_default(OPTIM_ADAM),
                     .batch = 12,
                     .ranks = 3,
                     .ndata = 1,
                     .data = {3},
                     .threads = 1};
    search_result r;
    REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
    CHECK_EQ_I64(r.count[SEARCH_INDIVISIBLE], hidden == 2 ? 9 : 0);
    CHECK_EQ_I64(r.count[SEARCH_RAN], hidden == 2 ? 3 : 12);
    for (u32 i = r.nfit; i < r.npoints; i++)
      CHECK(r.point[i].zero > 0 && strstr(r.point[i].why, "splits no more over 3 data ranks than ZeRO 0"));
    o.nzero = 1, o.zero[0] = 3; // asked for by name: a plan like any other
    REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
    CHECK_EQ_I64(r.count[SEARCH_RAN], 3);
    tear_down(&s);
    ctx_free(c);
  }
}

TEST(search_says_why_nothing_fits) {
  setting s = set_up(small, "dgx-2", 6, true);
  search_opts o = {.train = true,
                   .optim = optim_default(OPTIM_SGD),
                   .batch = 6,
                   .ndata = 1,
                   .data = {4},
                   .npipeline = 1,
                   .pipeline = {1}};
  search_result r;
  CHECK(!search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  const char *text = diag_render(s.c, s.a);
  CHECK(strstr(text, "E0506") && strstr(text, "a batch of 6 leaves 6, which cannot be split 4 ways over dp"));
  diag_clear(s.c);
  search_opts none = {.train = true,
                      .batch = 6,
                      .ndata = 1,
                      .data = {1},
                      .ntensor = 1,
                      .tensor = {1},
                      .npipeline = 1,
                      .pipeline = {1}};
  CHECK(!search_run(s.c, s.a, s.p, s.m, NULL, &none, &r));
  CHECK(strstr(diag_render(s.c, s.a), "no choice of data x tensor x pipeline makes 16 devices"));
  tear_down(&s);
}
