// test_auto.c - what automatic plans count besides operators, which formulas say: bytes of weights under ZeRO and offload,
// what ends a step, tasks of a pipeline, what is computed again.
#include "cost/cost.h"
#include "front/front.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "search/search.h"
#include "sim/sim.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
  cost_model *k;
  splitter *x;
  search_opts so;
} bed;

// model: a name, or a program as text.
static bed open_bed(const char *model, const char *spec) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = strchr(model, '{') ? ir_parse(b.c, sym_of(b.c, "text"), model, strlen(model))
                             : front_load(b.c, model, &(front_opts){.batch = 64, .t = DT_F16, .loss = true});
  machine *m = machine_load(b.c, b.a, spec);
  CHECK_MSG(b.src && m, "%s", diag_render(b.c, b.a));
  REQUIRE(b.src && m);
  b.pl = planner_new(b.src);
  b.k = cost_model_new(b.c, b.a, m, NULL);
  b.x = policy_auto_new(b.pl, true, &(auto_opts){.method = SPLITS_EXACT});
  b.so = (search_opts){.train = true, .batch = 64, .optim = optim_default(OPTIM_ADAM), .top = 1};
  return b;
}

static void close_bed(bed *b) {
  policy_auto_free(b->x);
  planner_free(b->pl);
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

static hybrid_opts options(const bed *b, const char *line) {
  strategy_set set = {0};
  strategy at = strategy_default();
  REQUIRE(strategy_parse(b->c, b->a, line, &set));
  for (u32 k = 0; k < CHOICE_COUNT; k++)
    if (set.of[k].said && set.of[k].n) at.of[k] = set.of[k].v[0];
  hybrid_opts h = search_hybrid(&b->so, &at);
  h.k = b->k;
  return h;
}

// The fastest split for one line of degrees.
static auto_plan solve(const bed *b, const char *line) {
  const hybrid_opts h = options(b, line);
  auto_plan p = {0};
  CHECK_MSG(policy_auto(b->x, b->a, &h, 0, NULL, &p), "%s: %s", line, diag_render(b->c, b->a));
  return p;
}

enum { LAYERS = 8, WEIGHTS = LAYERS * 512 * 512 * 2 }; // bytes of the model's weights in f16

// Adam in f16: of an element of a weight 2 bytes, its gradient 2, its states 12. ZeRO 1 deals out the states over data ranks, 2 gradients
// too, 3 weights too. Each weight's gradient is summed by itself over the data ranks, which are tp apart; with ZeRO 2 for every
// microbatch; with ZeRO 3 weights are gathered for every forward and backward, else after the update.
static void hold_zero(const bed *b, u32 dp, u32 pp, const u32 *rank) {
  enum { MICRO = 4 };
  auto_plan p[4];
  for (u32 z = 0; z < COUNT_OF(p); z++)
    p[z] = solve(b, arena_printf(b->a, "dp=%u tp=2 pp=%u mb=4 zero=%u recompute=none", dp, pp, z));
  const i64 w = WEIGHTS / pp, dealt = w - w / dp;
  CHECK(p[1].time_ps < p[0].time_ps); // an update of what a data rank has
  CHECK_EQ_I64(p[0].bytes - p[1].bytes, 6 * dealt);
  CHECK_EQ_I64(p[1].bytes - p[2].bytes, dealt);
  CHECK_EQ_I64(p[2].bytes - p[3].bytes, dealt);
  const i64 n = LAYERS / pp, scatter = n * cost_comm(b->k, OP_reduce_scatter, w / n, rank, dp, DT_F16),
            gather = n * cost_comm(b->k, OP_all_gather, w / n, rank, dp, DT_F16);
  CHECK(scatter > 0 && gather > 0);
  CHECK_EQ_I64(p[2].time_ps - p[1].time_ps, scatter * (MICRO - 1));
  CHECK_EQ_I64(p[3].time_ps - p[2].time_ps, gather * (2 * MICRO - 1));
}

TEST(zero_and_what_ends_a_step) {
  bed b = open_bed("mlp-xs", "2x4 v100 nvlink=100GB/s ib=100Gb/s");
  hold_zero(&b, 4, 1, (const u32[]){0, 2, 4, 6});
  hold_zero(&b, 2, 2, (const u32[]){0, 2});
  close_bed(&b);
}

// What is offloaded takes no bytes of a device, in whatever order strategies are asked; the step is as long.
TEST(offloaded_bytes_are_not_counted) {
  bed b = open_bed("mlp-xs", "2x4 v100 nvlink=100GB/s ib=100Gb/s");
  const char *const word[] = {"none", "acts", "states", "grads", "params"};
  auto_plan p[COUNT_OF(word)];
  for (u32 k = 0; k < COUNT_OF(word); k++) {
    p[k] = solve(&b, arena_printf(b.a, "dp=4 tp=2 pp=1 mb=2 zero=0 recompute=none offload=%s", word[k]));
    CHECK_EQ_I64(p[k].time_ps, p[0].time_ps);
  }
  CHECK_EQ_I64(p[1].bytes, 8 * (i64)WEIGHTS);
  CHECK(p[0].bytes > p[1].bytes);
  CHECK_EQ_I64(p[0].bytes - p[2].bytes, 6 * (i64)WEIGHTS);
  CHECK_EQ_I64(p[0].bytes - p[3].bytes, WEIGHTS);
  CHECK_EQ_I64(p[0].bytes - p[4].bytes, WEIGHTS);
  close_bed(&b);
}

// GPipe keeps all microbatches, 1F1B of two stages two in the first one. The last stage keeps what the loss reads as well.
TEST(stages_keep_what_is_under_way) {
  bed b = open_bed("mlp-xs", "1x4 a100");
  const auto_plan all = solve(&b, "dp=1 tp=2 pp=2 mb=4 zero=0 recompute=none schedule=gpipe"),
                  two = solve(&b, "dp=1 tp=2 pp=2 mb=4 zero=0 recompute=none schedule=1f1b");
  const i64 fixed = 8 * (i64)WEIGHTS / 2, loss = 64 / 4 * 512 * 2;
  CHECK_EQ_I64(all.layers.nparts, 2);
  CHECK_EQ_I64(all.layers.part[0], LAYERS / 2);
  CHECK(two.bytes > fixed);
  CHECK_EQ_I64(all.bytes - fixed, 2 * (two.bytes - fixed) + 4 * loss);
  close_bed(&b);
}

// What was asked before changes no answer: prices are kept for strategies that they hold for alone.
TEST(order_of_strategies_changes_nothing) {
  static const char *const line[] = {
      "dp=2 tp=2 pp=1 mb=2 zero=0 recompute=none", "dp=2 tp=2 pp=1 mb=2 zero=1 recompute=none",
      "dp=2 tp=2 pp=1 mb=2 zero=3 recompute=none", "dp=2 tp=2 pp=1 mb=4 zero=0 recompute=none",
      "dp=2 tp=2 pp=1 mb=2 zero=0 recompute=full", "dp=2 tp=2 pp=1 mb=2 zero=0 recompute=none offload=acts",
      "dp=1 tp=2 pp=2 mb=4 zero=0 recompute=none", "dp=1 tp=2 pp=2 mb=4 zero=0 recompute=none schedule=gpipe",
      "dp=1 tp=2 pp=1 mb=4 zero=0 recompute=none", "dp=1 tp=4 pp=1 mb=4 zero=0 recompute=none"};
  bed b = open_bed("mlp-xs:hidden=4096,layers=3",
                   "1x2 a100 + 1x2 v100 ib=100Gb/s"); // two ranks are faster than four
  for (u32 tight = 0; tight < 2; tight++) {
    for (u32 k = 0; k < COUNT_OF(line); k++) {
      hybrid_opts h = options(&b, line[k]);
      auto_plan p = solve(&b, line[k]), q = {0};
      h.memory_bytes = tight ? p.bytes * 9 / 10 : 0;
      splitter *fresh = policy_auto_new(b.pl, true, &(auto_opts){.method = SPLITS_EXACT});
      CHECK_EQ_I64(policy_auto_least(b.x, &h), policy_auto_least(fresh, &h));
      CHECK(policy_auto_within(b.x, b.a, &h, &p) && policy_auto_within(fresh, b.a, &h, &q));
      CHECK_MSG(p.time_ps == q.time_ps && p.bytes == q.bytes && p.fits == q.fits,
                "%s: %lld and %lld ps, %lld and %lld bytes", line[k], (long long)p.time_ps,
                (long long)q.time_ps, (long long)p.bytes, (long long)q.bytes);
      CHECK_EQ_I64(p.splits.n, q.splits.n);
      policy_auto_free(fresh);
    }
  }
  close_bed(&b);
}

// A plan fits if its bytes do, of what there is or is said, less what is to be left.
TEST(plans_fit_that_are_small_enough) {
  static const char *const line[] = {"dp=2 tp=2 pp=1 mb=2 zero=0 recompute=none",
                                     "dp=1 tp=2 pp=2 mb=4 zero=0 recompute=none",
                                     "dp=1 tp=2 pp=2 mb=4 zero=0 recompute=none schedule=interlaced"};
  bed b = open_bed("gpt2:layers=2,hidden=64,heads=4,vocab=1024", "1x4 a100");
  const i64 usable = machine_kind_of(cost_model_machine(b.k), 0)->usable_bytes;
  for (u32 k = 0; k < COUNT_OF(line); k++) {
    hybrid_opts h = options(&b, line[k]);
    const i64 bytes = solve(&b, line[k]).bytes;
    auto_plan p;
    for (i64 less = 0; less < 2; less++) {
      h.memory_bytes = bytes - less, h.least_bytes = 0;
      CHECK(policy_auto(b.x, b.a, &h, 0, NULL, &p) && p.fits == (p.bytes <= bytes - less));
      h.memory_bytes = 0, h.least_bytes = usable - bytes + less;
      CHECK(policy_auto(b.x, b.a, &h, 0, NULL, &p) && p.fits == (p.bytes <= bytes - less));
    }
  }
  close_bed(&b);
}

// The fastest of those that fit.
static u32 fastest_in(const auto_plan *v, u32 n, i64 bytes) {
  u32 best = 0;
  while (best + 1 < n && v[best].bytes > bytes) best++;
  return best;
}

// What is made to fit is the fastest of all assignments that fit, each priced by itself; if none does, the smallest. By chains, of which prices on
// bytes are asked, it is the same here, where all of the front is convex.
static void hold_fit(const bed *b, splitter *priced, const char *line) {
  enum { MOST = 20000, PARTS = 16 };
  hybrid_opts h = options(b, line);
  auto_plan *v = NEWN(b->a, auto_plan, MOST), p;
  h.memory_bytes = -1;
  const u32 n = policy_auto_few(b->x, b->a, &h, MOST, v);
  i64 least = INT64_MAX;
  u32 slower = 0;
  for (u32 k = 0; k < n; k++) least = MIN(least, v[k].bytes);
  CHECK(n > 100 && n < MOST && least < v[0].bytes);
  for (i64 part = 0; part <= PARTS; part++) {
    h.memory_bytes = least + (v[0].bytes - least) * part / PARTS;
    const auto_plan *best = &v[fastest_in(v, n, h.memory_bytes)];
    CHECK(policy_auto_within(b->x, b->a, &h, &p) && p.fits && p.bytes <= h.memory_bytes);
    CHECK_EQ_I64(p.time_ps, best->time_ps);
    slower += p.time_ps > v[0].time_ps;
    CHECK(policy_auto_within(priced, b->a, &h, &p) && p.fits && p.bytes <= h.memory_bytes);
    CHECK_EQ_I64(p.time_ps, best->time_ps);
  }
  CHECK(slower > PARTS / 2);
  h.memory_bytes = least - 1;
  CHECK(policy_auto_within(b->x, b->a, &h, &p) && !p.fits);
  CHECK_EQ_I64(p.bytes, least);
}

TEST(the_fastest_that_fits) {
  static const char text[] =
      "func @main(%x: f32[16384,1024], %w0: f32[1024,256] weight, %w1: f32[256,1024] weight, %w2: "
      "f32[1024,512] weight) "
      "-> (f32[]) {\n"
      "  %v1 = matmul %x, %w0\n  %v2 = gelu %v1\n  %v3 = matmul %v2, %w1\n  %v4 = matmul %v3, %w2\n"
      "  %loss = reduce_mean %v4 {keepdims=0}\n  return %loss\n}\n";
  bed b = open_bed(text, "1x4 v100 nvlink=100GB/s");
  splitter *priced = policy_auto_new(b.pl, true, &(auto_opts){.method = SPLITS_MCMC, .proposals = 2000});
  hold_fit(&b, priced, "dp=1 tp=4 pp=1 mb=1 zero=0 recompute=none");
  hold_fit(&b, priced, "dp=1 tp=4 pp=1 mb=1 zero=0 recompute=none offload=acts");
  policy_auto_free(priced);
  close_bed(&b);
}

static i64 zero3_end(const bed *b, i64 weights, i64 micro) {
  static const u32 rank[] = {0, 2, 4, 6};
  return LAYERS * micro *
         (cost_comm(b->k, OP_reduce_scatter, weights / LAYERS, rank, 4, DT_F16) +
          2 * cost_comm(b->k, OP_all_gather, weights / LAYERS, rank, 4, DT_F16));
}

// Of what is slower nothing is told. What a step ends with counts, for weights that may all be split.
TEST(what_is_slower_is_ruled_out) {
  bed b = open_bed("mlp-xs", "2x4 v100 nvlink=100GB/s ib=100Gb/s");
  const char *const line = "dp=4 tp=2 pp=1 mb=4 zero=3 recompute=none";
  const hybrid_opts h = options(&b, line);
  const i64 ps = solve(&b, line).time_ps, may = zero3_end(&b, WEIGHTS, 4) - zero3_end(&b, WEIGHTS / 2, 4);
  for (u32 k = 0; k < 2; k++) {
    splitter *fresh = policy_auto_new(b.pl, true, &(auto_opts){.method = SPLITS_EXACT});
    auto_plan p;
    bool out;
    CHECK_EQ_I64(policy_auto(fresh, b.a, &h, k ? ps - may - ps / 1000 : ps, &out, &p), !k);
    CHECK_EQ_I64(out, k);
    CHECK(policy_auto_least(fresh, &h) <= ps);
    policy_auto_free(fresh);
  }
  close_bed(&b);
}

// On one node the estimate is near what `heddle sim` says of the plan, and so are its bytes but for what single operators need besides.
static void hold_near(const bed *b, const char *line, double within) {
  hybrid_opts h = options(b, line);
  const auto_plan p = solve(b, line);
  const i64 least = policy_auto_least(b->x, &h);
  CHECK_MSG(least > p.time_ps / 3 && least <= p.time_ps, "%s: %lld ps, at least %lld", line,
            (long long)p.time_ps, (long long)least);
  h.splits = &p.splits, h.s.layers = p.layers;
  const plan *pn = policy_hybrid(b->pl, b->a, &h);
  prog *d = pn ? plan_apply(b->pl, pn, b->k) : NULL;
  sim_result r;
  if (CHECK_MSG(d && sim_run(b->c, b->a, d, b->k, &(sim_opts){.mode = SIM_FOLDED, .steady = true}, &r),
                "%s: %s", line, diag_render(b->c, b->a))) {
    CHECK_MSG(p.bytes > r.peak_bytes * 0.4 && p.bytes < r.peak_bytes, "%s: %lld bytes, %lld simulated", line,
              (long long)p.bytes, (long long)r.peak_bytes);
    CHECK_MSG(p.time_ps > r.period_ps * (1 - within) && p.time_ps < r.period_ps * (1 + within),
              "%s: %lld ps, %lld simulated", line, (long long)p.time_ps, (long long)r.period_ps);
  }
  prog_free(d);
}

TEST(estimates_are_near_simulation) {
  static const char *const line[] = {"dp=1 tp=4 pp=1 mb=1 zero=0 recompute=none",
                                     "dp=1 tp=4 pp=1 mb=4 zero=0 recompute=none",
                                     "dp=1 tp=4 pp=1 mb=2 zero=0 recompute=full",
                                     "dp=1 tp=4 pp=1 mb=2 zero=0 recompute=selective",
                                     "dp=2 tp=2 pp=1 mb=2 zero=1 recompute=none",
                                     "dp=2 tp=2 pp=1 mb=2 zero=2 recompute=none",
                                     "dp=2 tp=2 pp=1 mb=2 zero=0 recompute=full",
                                     "dp=1 tp=2 pp=2 mb=4 zero=0 recompute=none",
                                     "dp=1 tp=2 pp=2 mb=8 zero=0 recompute=full",
                                     "dp=1 tp=2 pp=2 mb=4 zero=0 recompute=none schedule=interlaced",
                                     "dp=1 tp=4 pp=1 mb=2 zero=0 recompute=none materialise=p2p"};
  bed b = open_bed("gpt2:layers=4,hidden=1024,heads=16,vocab=8192", "1x4 a100");
  for (u32 k = 0; k < COUNT_OF(line); k++) hold_near(&b, line[k], 0.05);
  close_bed(&b);
  // sums of such gradients take little more than it takes to start them
  b = open_bed("gpt2:layers=4,hidden=128,heads=4,vocab=256,positions=64", "1x4 v100");
  hold_near(&b, "dp=2 tp=2 pp=1 mb=1 zero=1 recompute=none", 0.25);
  close_bed(&b);
}
