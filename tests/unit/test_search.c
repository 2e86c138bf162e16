// test_search.c - the search against itself: bounds only rule out, threads change nothing, and the time of a
// plan is what the simulator says of it.
#include "front/front.h"
#include "search/search.h"
#include "test.h"
#include <unistd.h>

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
  const strategy s = search_strategy(y);
  return search_is(x, &s) && x->state == y->state && x->time_ps == y->time_ps && x->alone_ps == y->alone_ps &&
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

// Searches with one thread and with three, and holds one against the other. False: a search fails.
static bool same_on_threads(setting *s, search_opts *o, search_result *one) {
  search_result three;
  o->threads = 1;
  if (!search_run(s->c, s->a, s->p, s->m, NULL, o, one)) return false;
  o->threads = 3;
  if (!search_run(s->c, s->a, s->p, s->m, NULL, o, &three) || one->npoints != three.npoints) return false;
  for (u32 i = 0; i < one->npoints; i++)
    CHECK(same_point(&one->point[i], &three.point[i]) && one->point[i].bound_ps == three.point[i].bound_ps);
  for (u32 k = 0; k < SEARCH_STATES; k++) CHECK(one->count[k] == three.count[k]);
  return true;
}

TEST(search_is_the_same_on_any_number_of_threads) {
  setting s = set_up(small, "dgx-2", 64, true);
  search_opts o = {.train = true, .optim = optim_default(OPTIM_SGD), .batch = 64, .top = 3};
  search_result one;
  REQUIRE(same_on_threads(&s, &o, &one));
  tear_down(&s);
}

// Of one that is too slow the busiest place is known that its stages have, or also that its sends make busier: whichever
// thread has met stages like its own.
TEST(search_has_the_same_bounds_on_any_number_of_threads) {
  setting s = set_up(small, "1x4 v100 + 1x4 a100 ib=100Gb/s", 64, true);
  search_opts o = {.train = true, .optim = optim_default(OPTIM_SGD), .batch = 64, .top = 1};
  REQUIRE(strategy_parse(s.c, s.a, "overlap=* mb=4,8 schedule=1f1b,gpipe,zb-h1", &o.space));
  search_result one;
  REQUIRE(same_on_threads(&s, &o, &one));
  tear_down(&s);
}

// Blocks of a worker and sets of a part are others then; every point is in one part, with the same figures.
TEST(search_without_bounds_is_the_same_on_threads_and_in_parts) {
  setting s = set_up(small, "dgx-2", 64, true);
  search_opts o = {.train = true, .optim = optim_default(OPTIM_ADAM), .batch = 64, .no_bounds = true};
  REQUIRE(strategy_parse(
      s.c, s.a, "mb=1,4 v=1,2 schedule=1f1b,interleaved,zb-h1,chimera overlap=none,pp zero=0,1", &o.space));
  search_result one, other;
  REQUIRE(same_on_threads(&s, &o, &one));
  u32 dealt = 0, applied = 0, both = 0;
  for (o.parts = 2, o.part = 1; o.part <= 2; o.part++) {
    REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &other));
    dealt += other.dealt, both += other.dealt > 0;
    for (u32 i = 0, k = 0; i < other.npoints; i++) { // both are ranked
      const search_point *p = &other.point[i];
      if (!p->time_ps) continue;
      while (k < one.npoints && !same_point(&one.point[k], p)) k++;
      CHECK(k < one.npoints);
      applied++;
    }
  }
  CHECK(both == 2 && dealt == one.dealt && applied == one.count[SEARCH_RAN] + one.count[SEARCH_OVER_MEMORY]);
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
    cost_model *k = cost_model_new(s.c, s.a, s.m, NULL);
    const strategy is = search_strategy(p);
    hybrid_opts h = search_hybrid(&o, &is);
    plan *pn = policy_hybrid(pl, s.a, &h);
    prog *d = pn ? plan_apply(pl, pn, k) : NULL;
    REQUIRE(d);
    static const sim_mode mode[] = {SIM_FLAT, SIM_COMPOSED, SIM_FOLDED};
    for (u32 j = 0; j < COUNT_OF(mode); j++) {
      sim_opts so = {.mode = mode[j], .steady = true};
      sim_result one;
      REQUIRE(sim_run(s.c, s.a, d, k, &so, &one));
      CHECK_EQ_I64(one.makespan_ps, p->alone_ps);
      CHECK_EQ_I64(one.period_ps, p->time_ps);
      CHECK_EQ_I64(one.peak_bytes, p->peak_bytes);
    }
    prog_free(d);
    planner_free(pl);
    seen++;
  }
  CHECK(seen >= 8);
  tear_down(&s);
}

static search_opts told(setting *s, const char *line, i64 batch) {
  search_opts o = {.train = true, .optim = optim_default(OPTIM_ADAM), .batch = batch, .threads = 1};
  REQUIRE(strategy_parse(s->c, s->a, line, &o.space));
  return o;
}

// Schedules from files beside others of the same stages: where the stages lie, and in which order they run,
// is the file's. What is the same program as another's is found, too.
TEST(search_values_of_files_are_simulated_values) {
  setting s = set_up("gpt2:layers=8,hidden=32,heads=4,vocab=64,positions=16", "a40-4x4", 16, true);
  search_opts o = told(&s,
                       "dp=1 tp=1 pp=4 v=2 mb=8 recompute=none,full schedule=bfs,examples/zbv.csv,"
                       "interleaved,tests/golden/sched/dualpipev_p4_m8.csv,zb-h1",
                       16);
  search_result r;
  o.ranks = 4;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK_EQ_I64(r.nfit, 10);
  for (u32 i = 0; i < r.nfit; i++) {
    planner *pl = planner_new(s.p);
    cost_model *k = cost_model_new(s.c, s.a, s.m, NULL);
    const strategy is = search_strategy(&r.point[i]);
    hybrid_opts h = search_hybrid(&o, &is);
    plan *pn = policy_hybrid(pl, s.a, &h);
    prog *d = pn ? plan_apply(pl, pn, k) : NULL;
    sim_result one;
    REQUIRE(d && sim_run(s.c, s.a, d, k, &(sim_opts){.mode = SIM_FLAT, .steady = true}, &one));
    CHECK_EQ_I64(one.makespan_ps, r.point[i].alone_ps);
    CHECK_EQ_I64(one.period_ps, r.point[i].time_ps);
    CHECK_EQ_I64(one.peak_bytes, r.point[i].peak_bytes);
    prog_free(d);
    planner_free(pl);
  }
  const char *same = arena_printf(s.a, "/tmp/heddle-same-%d.csv", (int)getpid());
  strbuf text = {.a = s.a};
  const sched_shape form = {.places = 4, .chunks = 2, .micro = 8, .backward = true};
  sched_print(sched_make(s.c, s.a, "zb-h1", &form, (loc){0}), &text);
  REQUIRE(file_write(s.c, same, sb_str(&text), text.n));
  o = told(&s, arena_printf(s.a, "dp=1 tp=1 pp=4 v=2 mb=8 recompute=none schedule=%s,zb-h1", same), 16);
  o.ranks = 4;
  CHECK(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK(r.nfit == 1 && r.count[SEARCH_EQUAL] == 1);
  unlink(same);
  tear_down(&s);
}

static u32 total(const search_result *r) {
  u32 n = 0;
  for (u32 k = 0; k < SEARCH_STATES; k++) n += r->count[k];
  return n;
}

static search_point *find_point(search_result *r, const char *line) {
  strategy s = strategy_of("%s", line);
  for (u32 i = 0; i < r->npoints; i++)
    if (search_is(&r->point[i], &s)) return &r->point[i];
  return NULL;
}

// Over 3 ranks the weights of 2 elements cannot be dealt out, over 3 ranks those of 4 can. Nothing lies
// between two products of activations, so `selective` recomputes nothing.
TEST(search_counts_equal_programs_once) {
  for (u32 hidden = 2; hidden <= 4; hidden += 2) {
    ctx *c = ctx_new();
    setting s = set_up(arena_printf(ctx_arena(c), "mlp-xs:hidden=%u", hidden), "a40-4x4", 12, true);
    search_opts o = told(&s, "dp=3 mb=1", 12);
    o.ranks = 3;
    search_result r;
    REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
    CHECK_EQ_I64(r.npoints, 12);
    CHECK_EQ_I64(r.count[SEARCH_EQUAL], hidden == 2 ? 10 : 4);
    CHECK_EQ_I64(r.count[SEARCH_RAN], hidden == 2 ? 2 : 8);
    CHECK_EQ_I64(r.count[SEARCH_IMPOSSIBLE], 0);
    for (u32 i = r.nfit; i < r.npoints; i++)
      CHECK_MSG(strstr(r.point[i].why, "the same program as dp=3 tp=1 pp=1"), "%s", r.point[i].why);
    o = told(&s, "dp=3 mb=1 zero=3 recompute=none,full", 12); // asked for by name: a plan like any other
    o.ranks = 3;
    REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
    CHECK_EQ_I64(r.count[SEARCH_RAN], 2);
    tear_down(&s);
    ctx_free(c);
  }
}

// sgd has no states to shard.
TEST(search_knows_optimizers_without_states) {
  setting s = set_up("mlp-xs", "a40-4x4", 16, true);
  search_opts o = told(&s, "dp=4 tp=1 pp=4 mb=4 recompute=none", 16);
  o.optim = optim_default(OPTIM_SGD), o.optim.master = false;
  search_result r;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK_EQ_I64(r.count[SEARCH_RAN], 3);
  search_point *p = find_point(&r, "dp=4 pp=4 mb=4 zero=1");
  REQUIRE(p);
  CHECK(p->state == SEARCH_EQUAL && strstr(p->why, "no states"));
  tear_down(&s);
}

// Of a plan that turns out impossible when it is applied its equals stay equal to it: here there are no times of
// layers on two tensor ranks.
TEST(search_keeps_equals_of_impossible_plans) {
  static const char times[] = "layer,device,samples,tensor,forward_us,backward_us,update_us\n"
                              "layer,a40,4,1,10,20,1\nfirst,a40,4,1,10,20,1\nlast,a40,4,1,10,20,1\n";
  setting s = set_up(small, "a40-4x4", 16, true);
  REQUIRE(machine_profile_parse(s.m, s.a, sym_of(s.c, "times"), times, sizeof times - 1));
  for (u32 tp = 1; tp <= 2; tp++) {
    search_opts o =
        told(&s, arena_printf(s.a, "dp=2 tp=%u pp=1 mb=2 zero=0,1 recompute=none sp=off", tp), 16);
    o.optim = optim_default(OPTIM_SGD), o.optim.master = false, o.ranks = 2 * tp;
    search_result r;
    CHECK(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r) == (tp == 1));
    const search_point *of = find_point(&r, tp == 1 ? "dp=2 mb=2" : "dp=2 tp=2 mb=2"),
                       *equal = find_point(&r, tp == 1 ? "dp=2 mb=2 zero=1" : "dp=2 tp=2 mb=2 zero=1");
    REQUIRE(of && equal);
    CHECK(of->state == (tp == 1 ? SEARCH_RAN : SEARCH_IMPOSSIBLE) && equal->state == SEARCH_EQUAL);
    CHECK(r.count[SEARCH_EQUAL] == 1 && r.count[SEARCH_IMPOSSIBLE] == tp - 1);
  }
  tear_down(&s);
}

// Schedules of inference are one program; every combination is in the space once and in one state.
TEST(search_space_has_every_strategy_once) {
  setting s = set_up(small, "dgx-2", 16, false);
  search_opts o = told(&s, "schedule=* sp=* overlap=* tables=* layers=*", 16);
  o.train = false, o.ranks = 4;
  search_result r;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK_EQ_I64(total(&r), r.space);
  CHECK_EQ_I64(r.count[SEARCH_OPEN], 0);
  CHECK(r.count[SEARCH_EQUAL] > r.npoints / 4);
  for (u32 i = 0; i < r.npoints; i++) {
    const strategy is = search_strategy(&r.point[i]);
    for (u32 k = 0; k < i; k++) CHECK(!search_is(&r.point[k], &is));
    for (u32 k = 0; k < i && r.point[i].state == SEARCH_RAN; k++) CHECK(r.point[i].plan != r.point[k].plan);
  }
  const search_point *gpipe = find_point(&r, "pp=4 mb=4 schedule=gpipe"),
                     *flush = find_point(&r, "pp=4 mb=4");
  REQUIRE(gpipe && flush);
  CHECK(gpipe->state == SEARCH_EQUAL && flush->state == SEARCH_RAN);
  tear_down(&s);
}

// One microbatch on several stages and several on one stage are plans too.
TEST(search_has_all_microbatches) {
  setting s = set_up("mlp-xs:layers=8,hidden=16", "1x2 v100", 4, false);
  for (int train = 0; train < 2; train++) {
    if (train) tear_down(&s), s = set_up("mlp-xs:layers=8,hidden=16", "1x2 v100", 4, true);
    search_opts o = told(&s, "tp=1 zero=0 recompute=none", 4);
    o.train = train;
    search_result r;
    REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
    CHECK_EQ_I64(r.npoints, 5); // dp=2: mb 1, 2; pp=2: mb 1, 2, 4
    CHECK_EQ_I64(r.count[SEARCH_RAN], 5);
    CHECK(find_point(&r, "pp=2") && find_point(&r, "dp=2 mb=2"));
  }
  tear_down(&s);
}

// The only plan that fits: two stages, for the batch is 1 and the hidden extent is prime.
TEST(search_finds_the_plan_that_fits) {
  setting s = set_up("mlp-xs:layers=8,hidden=1009", "1x2 v100", 1, false);
  search_opts o = told(&s, "", 1);
  o.train = false, o.memory_bytes = 10000000; // f16
  search_result r;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK(r.nfit == 1 && search_value(&r.point[0], CHOICE_pp).n == 2 &&
        search_value(&r.point[0], CHOICE_mb).n == 1);
  CHECK_EQ_I64(r.npoints, 3);
  CHECK_EQ_I64(r.count[SEARCH_IMPOSSIBLE], 2);
  REQUIRE(r.nreasons == 2);
  CHECK(r.reason[0].count == 1 && r.reason[0].example && *r.reason[0].why);
  tear_down(&s);
}

TEST(search_groups_reasons) {
  setting s = set_up(small, "dgx-2", 6, true);
  search_opts o = told(&s, "zero=0 recompute=none tp=1 mb=1,4 dp.shares=equal", 6);
  o.ranks = 4;
  search_result r;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK_EQ_I64(r.npoints, 6); // dp 1, 2, 4 x mb 1, 4
  CHECK_EQ_I64(r.count[SEARCH_RAN], 2);
  CHECK_EQ_I64(r.count[SEARCH_IMPOSSIBLE], 4);
  REQUIRE(r.nreasons == 3); // 6 over dp=4, whatever mb; 6 over mb=4; what dp=2 leaves, 3, over mb=4
  CHECK_EQ_I64(r.reason[0].count, 2);
  CHECK(r.reason[1].count == 1 && r.reason[2].count == 1);
  CHECK(strstr(r.reason[0].why, "dp=4") && r.reason[0].example->dp.n == 4);
  tear_down(&s);
}

// On devices of one kind, where equal shares are impossible and there is a sample for each.
TEST(search_deals_out_what_does_not_divide) {
  setting s = set_up(small, "dgx-2", 6, true);
  search_opts o = told(&s, "dp=4 tp=1 pp=1 mb=1,2 zero=0 recompute=none", 6);
  o.ranks = 4;
  search_result r;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK(r.npoints == 2 && r.nfit == 1); // a microbatch of three is for no four
  CHECK(choice_is(CHOICE_dp_shares, search_value(&r.point[0], CHOICE_dp_shares), "auto"));
  REQUIRE(r.point[0].resolved);
  const strategy is = strategy_unpack(r.point[0].resolved);
  CHECK_MSG(strstr(strategy_str(s.a, &is), "dp.shares=2/2/1/1"), "%s", strategy_str(s.a, &is));
  o = told(&s, "dp=2 tp=1 pp=2 mb=1,3 zero=0 recompute=none", 6);
  o.ranks = 4;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  for (u32 k = 0; k < r.npoints; k++)
    CHECK(choice_same(search_value(&r.point[k], CHOICE_dp_shares), choice_default(CHOICE_dp_shares)));
  tear_down(&s);
}

// mbs is mb in other words.
TEST(search_takes_sizes_of_microbatches) {
  setting s = set_up(small, "dgx-2", 16, true);
  search_opts o = told(&s, "pp=1 tp=1,2 mbs=2,3 zero=0 recompute=none", 16);
  o.ranks = 2;
  search_result r;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK_EQ_I64(r.npoints, 4);
  CHECK(r.nfit == 2 && find_point(&r, "dp=2 mb=4") && find_point(&r, "tp=2 mb=8"));
  REQUIRE(r.nreasons == 1);
  CHECK(strstr(r.reason[0].why, "is not divisible by mbs=3"));
  o = told(&s, "pp=1 tp=1,2 mbs=2 mb=* zero=0 recompute=none", 16); // mb=*: whatever mbs makes of it
  o.ranks = 2;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK(r.npoints == 2 && r.nfit == 2);
  o = told(&s, "pp=1 tp=1,2 mbs=2 mb=4 zero=0 recompute=none", 16); // of dp=1 they disagree
  o.ranks = 2;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK(r.npoints == 2 && r.nfit == 1 && search_value(&r.point[0], CHOICE_dp).n == 2);
  CHECK(r.nreasons == 1 && strstr(r.reason[0].why, "mb=4 and mbs=2 disagree"));
  tear_down(&s);
}

static void refused(const char *line, bool train, u32 ranks, const char *message) {
  setting s = set_up(small, "dgx-2", 16, train);
  search_opts o = told(&s, line, 16);
  search_result r;
  o.train = train, o.ranks = ranks;
  CHECK_MSG(!search_run(s.c, s.a, s.p, s.m, NULL, &o, &r), "%s", line);
  const char *said = diag_render(s.c, s.a);
  CHECK_MSG(strstr(said, message), "%s: %s", line, said);
  tear_down(&s);
}

TEST(search_drops_nothing_that_was_said) {
  refused("dp=2,3", true, 4, "dp=3 is impossible on 4 devices");
  refused("zero=0,1", false, 4, "zero=1 applies to training only");
  refused("tp=1 sp", true, 4, "sp needs tp > 1; no plan of this search has that");
  refused("pp=1 schedule=gpipe,1f1b", true, 4, "schedule=gpipe needs pp > 1");
  refused("dp=2 tp=1 pp=1", true, 4, "dp=2 tp=1 pp=1 needs 2 devices; there are 4");
  refused("dp=1 tp=1 pp=1", true, 16, "dp=1 tp=1 pp=1 needs 1 device; there are 16");
  refused("dp=4 tp=1 pp=1 v=2", true, 4, "v=2 needs pp > 1");
  refused("dp=1 tp=1 pp=4 v=2", true, 4, "1f1b runs one chunk on each place; got 2");
}

TEST(search_says_why_nothing_fits) {
  setting s = set_up(small, "dgx-2", 6, true);
  search_opts o = told(&s, "dp=4 pp=1 dp.shares=equal", 6);
  search_result r;
  CHECK(!search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  const char *text = diag_render(s.c, s.a);
  CHECK_MSG(strstr(text, "E0506") && strstr(text, "batch 6 is not divisible by dp=4"), "%s", text);
  CHECK_EQ_I64(total(&r), r.npoints);
  tear_down(&s);
}

// What inference returns of the second of two replicas is sent to the first one for every microbatch. The search holds
// its winner against the whole program.
TEST(search_of_inference_in_two_directions) {
  static const char *const lines[] = {"dp=1 tp=1 pp=4 mb=8 schedule=chimera",
                                      "dp=1 tp=2 pp=2 mb=16 schedule=chimera overlap=none"};
  for (u32 i = 0; i < COUNT_OF(lines); i++) {
    setting s = set_up("mlp-xs:layers=8,hidden=24", "1x4 v100", 16, false);
    search_opts o = told(&s, lines[i], 16);
    search_result r;
    o.train = false;
    REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
    CHECK(r.nfit == 1);
    tear_down(&s);
  }
}

// Products take all of the time here, so bounds are as near as they come: the first product has no gradient
// of its input, weight gradients of zb-h1 run where there is room, branches of unet and t5 run side by side,
// and weights that are sharded in storage are not whole on any rank.
TEST(search_bounds_are_below_what_is_true) {
  static const struct {
    const char *model, *line, *costs;
  } all[] = {
      {"mlp-xs:layers=2,hidden=24", "pp=1 mb=1", NULL},
      {"mlp-xs:layers=8,hidden=24", "dp=1 tp=1 schedule=zb-h1 zero=0 recompute=none", NULL},
      {"mlp-xs:layers=8,hidden=24", "dp=1 tp=1 pp=4 v=2 schedule=interleaved recompute=none", NULL},
      {"mlp-xs:layers=4,hidden=24", "dp=1 tp=1 pp=4 mb=2 overlap=pp zero=0 recompute=none", NULL},
      {"mlp-xs:layers=8,hidden=24", "tp=1 schedule=chimera", NULL},
      {"gpt2:layers=8,hidden=48,heads=8,vocab=64,positions=16", "schedule=chimera", NULL},
      {"mlp-xs:layers=8,hidden=24", "tp=1 schedule=zb-h2,zb-v,zb-v-half,zb-v-min,dualpipev", NULL},
      {"gpt2:layers=8,hidden=48,heads=8,vocab=64,positions=16", "schedule=zb-v,zb-v-min,dualpipev", NULL},
      {"mlp-xs:layers=8,hidden=24", "tp=1 schedule=dualpipe,gems", NULL},
      {"gpt2:layers=8,hidden=48,heads=8,vocab=64,positions=16", "schedule=dualpipe,gems", NULL},
      {"tests/unet.heddle", "tp=1 recompute=none zero=0", NULL},
      {"mlp-xs:layers=8,hidden=24", "tp=1 pp=1 zero=3 mb=1 recompute=none", "distir"}};
  for (u32 i = 0; i < COUNT_OF(all); i += test_step()) {
    setting s = set_up(all[i].model, "1x4 v100", 16, true);
    for (u32 t = 0; t < DT_COUNT; t++) s.m->kind[0].rate[t] /= 1e8;
    memset(s.m->kind[0].eff, 0, sizeof s.m->kind[0].eff), s.m->kind[0].launch_ps = 0;
    search_opts o = told(&s, all[i].line, 16);
    cost_opts costs = {.model = all[i].costs};
    search_result r;
    if (costs.model) o.bytes = SIM_BYTES_DISTIR;
    o.no_bounds = true, o.memory_bytes = -1;
    REQUIRE(search_run(s.c, s.a, s.p, s.m, &costs, &o, &r));
    CHECK(r.nfit > 0);
    for (u32 k = 0; k < r.nfit; k++)
      CHECK_MSG(r.point[k].bound_ps <= r.point[k].time_ps && r.point[k].bound_bytes <= r.point[k].peak_bytes,
                "%s %s: bounds %lld, %lld; true are %lld, %lld", all[i].model, all[i].line,
                (long long)r.point[k].bound_ps, (long long)r.point[k].bound_bytes,
                (long long)r.point[k].time_ps, (long long)r.point[k].peak_bytes);
    tear_down(&s);
  }
}

// Synchronised batch norm is another program, though the batch is dealt out in the same way.
TEST(search_keeps_batch_norm_apart) {
  setting s = set_up("examples/batchnorm.heddle", "1x4 v100", 0, true);
  search_opts o = told(&s, "dp=4 mb=1 zero=0 recompute=none bn=*", 24);
  search_result r;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK(r.npoints == 2 && r.nfit == 2 && r.point[0].time_ps != r.point[1].time_ps);
  tear_down(&s);
}

// Devices that no plan uses are no limit.
TEST(search_asks_used_devices_for_memory) {
  setting s = set_up(small, "1x2 v100 ib=100Gb/s + 1x2 t4 ib=100Gb/s", 8, true);
  search_opts o = told(&s, "dp=2 mb=1 zero=0 recompute=none", 8);
  search_result r;
  o.ranks = 2;
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK_EQ_I64(r.memory_bytes, s.m->kind[s.m->dev[0].kind].usable_bytes);
  CHECK_EQ_I64(r.memory_least, r.memory_bytes);
  o = told(&s, "dp=4 mb=1 zero=0 recompute=none", 8);
  REQUIRE(search_run(s.c, s.a, s.p, s.m, NULL, &o, &r));
  CHECK_EQ_I64(r.memory_bytes, s.m->kind[s.m->dev[0].kind].usable_bytes);
  CHECK_EQ_I64(r.memory_least, s.m->kind[s.m->dev[3].kind].usable_bytes);
  CHECK(s.m->kind[s.m->dev[3].kind].usable_bytes < s.m->kind[s.m->dev[0].kind].usable_bytes);
  tear_down(&s);
}
