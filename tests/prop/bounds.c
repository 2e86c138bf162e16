// bounds.c - measured lower bounds on time (search/work.c) against every plan of small searches: chains of
// layers of unlike widths, some of which begin with work on their weights alone, on machines whose nodes
// groups do not divide. Every plan is simulated, and the search says whether one was faster than its bound.
#include "front/front.h"
#include "search/search.h"
#include "test.h"
#include <stdlib.h>

enum { SEARCHES = 70 };

static u32 upto(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

typedef struct {
  u32 batch, wide, narrow;
  const char *layers; // "wn": a wide one, then one that is narrow in the middle
  bool cast;          // weights of wide ones pass through an operator first
  bool half;          // in f16
} chain;

static const char *text_of(arena *a, const chain *x) {
  const u32 n = x->batch, w = x->wide, v = x->narrow;
  strbuf b = {.a = a}, main = {.a = a};
  sb_fmt(&b, "func @wide(%%x: f32[%u,%u], %%w: f32[%u,%u] weight) -> (f32[%u,%u]) {\n", n, w, w, w, n, w);
  if (x->cast) sb_fmt(&b, "  %%c = tanh %%w : f32[%u,%u]\n", w, w);
  sb_fmt(&b, "  %%y = matmul %%x, %%%s : f32[%u,%u]\n  %%z = relu %%y : f32[%u,%u]\n  return %%z\n}\n",
         x->cast ? "c" : "w", n, w, n, w);
  sb_fmt(&b,
         "func @narrow(%%x: f32[%u,%u], %%w: f32[%u,%u] weight, %%v: f32[%u,%u] weight) -> (f32[%u,%u]) {\n"
         "  %%y = matmul %%x, %%w : f32[%u,%u]\n  %%z = matmul %%y, %%v : f32[%u,%u]\n  return %%z\n}\n",
         n, w, w, v, v, w, n, w, n, v, n, w);
  sb_fmt(&b, "func @main(%%h0: f32[%u,%u]", n, w);
  u32 i = 0;
  for (; x->layers[i]; i++) {
    const bool wide = x->layers[i] == 'w';
    sb_fmt(&b, ", %%w%u: f32[%u,%u] weight", i, w, wide ? w : v);
    if (!wide) sb_fmt(&b, ", %%v%u: f32[%u,%u] weight", i, v, w);
    sb_fmt(&main, "  %%h%u = call @%s(%%h%u, %%w%u", i + 1, wide ? "wide" : "narrow", i, i);
    if (!wide) sb_fmt(&main, ", %%v%u", i);
    sb_fmt(&main, ") : f32[%u,%u]\n", n, w);
  }
  sb_fmt(&b, ") -> (f32[%u,%u]) {\n%s  return %%h%u\n}\n", n, w, sb_str(&main), i);
  char *text = (char *)sb_str(&b);
  for (char *s = text; x->half && (s = strstr(s, "f32")); s += 3) memcpy(s, "f16", 3);
  return text;
}

// Every plan is simulated: none is as slow as the last of so many. False: there is none.
static bool search(ctx *c, const chain *x, const char *on, u32 ranks, bool train, const char *line,
                   search_result *r) {
  arena *a = ctx_arena(c);
  const char *text = text_of(a, x);
  prog *src = ir_parse(c, sym_of(c, "chain"), text, strlen(text));
  if (!src || !pass_loss(src)) printf("%s", diag_render(c, a));
  REQUIRE(src);
  search_opts o = {.train = train,
                   .batch = x->batch,
                   .ranks = ranks,
                   .threads = 1,
                   .memory_bytes = -1,
                   .top = 1 << 20,
                   .optim = optim_default(OPTIM_ADAM)};
  const machine *m = machine_load(c, a, on);
  REQUIRE(m && strategy_parse(c, a, line, &o.space));
  const bool found = search_run(c, a, src, m, NULL, &o, r);
  prog_free(src);
  return found;
}

static void holds(const chain *x, const char *on, u32 ranks, const char *line) {
  ctx *c = ctx_new();
  search_result r;
  CHECK(search(c, x, on, ranks, true, line, &r) && r.point[0].bound_work);
  CHECK_MSG(!r.bound_failed, "%s: %s", x->layers, line);
  ctx_free(c);
}

// What a stage does with its weights alone need not wait for what arrives, so all places begin with it at
// once.
TEST(bounds_know_what_needs_no_input) {
  const chain cast = {16, 8192, 64, "wnwnwnwn", true, false},
              plain = {16, 8192, 64, "wnwnwnwn", false, false};
  for (u32 mb = 1; mb <= 2; mb++) {
    char line[80];
    snprintf(line, sizeof line, "dp=1 pp=4 tp=1 mb=%u zero=0 recompute=none layers=equal", mb);
    holds(&cast, "dgx-h100", 4, line);
  }
  holds(&plain, "dgx-h100", 8, "dp=2 pp=4 tp=1 mb=2 zero=3 recompute=none layers=equal");
}

// Five ranks of nodes of four: the first five share two links, and the others have two each.
TEST(bounds_know_how_groups_lie) {
  const chain x = {20, 8000, 80, "nnnw", false, false};
  holds(&x, "4x4 h100 nvlink=450GB/s ib=4x400Gb/s", 10, "dp=5 pp=2 tp=1 mb=2 zero=3 layers=equal");
}

static chain random_chain(u64 *rng, char layers[16]) {
  const u32 n = 3 + upto(rng, 6);
  for (u32 i = 0; i < n; i++) layers[i] = "wn"[upto(rng, 2)];
  layers[n] = 0;
  return (chain){4 * (2 + upto(rng, 9)), 1000 * (4 + upto(rng, 5)), 40u << upto(rng, 4), layers, upto(rng, 2),
                 !upto(rng, 3)};
}

typedef struct {
  const char *text;
  u32 ranks[3];
} cluster;

// Chains on clusters, lines[0] and [1] for inference too.
static void hold_on(const cluster *machines, u32 nmachines, const char *const *lines, u32 nlines, u32 least) {
  const char *one = getenv("SEED");
  const u32 from = one ? (u32)atoi(one) : 1, to = one ? from : test_cases(SEARCHES);
  u32 plans = 0, measured = 0;
  double tight = 0;
  for (u32 seed = from; seed <= to; seed++) {
    u64 rng = seed * 7919;
    ctx *c = ctx_new();
    char layers[16];
    const chain x = random_chain(&rng, layers);
    const u32 k = upto(&rng, nmachines), ranks = machines[k].ranks[upto(&rng, 3)];
    const bool train = upto(&rng, 4) > 0;
    const char *line = lines[train ? upto(&rng, nlines) : upto(&rng, 2)];
    search_result r;
    if (search(c, &x, machines[k].text, ranks, train, line, &r)) {
      CHECK_MSG(!r.bound_failed, "seed %u: %s, %u ranks, %s%s", seed, machines[k].text, ranks, line,
                train ? "" : ", inference");
      for (u32 i = 0; i < r.nfit; i++, plans++)
        if (r.point[i].bound_work)
          measured++, tight += (double)r.point[i].bound_ps / (double)r.point[i].time_ps;
    }
    ctx_free(c);
  }
  printf("  %u plans, %u with measured bounds, on average %.2f of the time\n", plans, measured,
         tight / MAX(measured, 1u));
  CHECK(one || !test_all_cases() || measured > least);
}

TEST(bounds_hold_for_every_plan) {
  static const cluster machines[] = {{"dgx-h100", {4, 6, 8}},
                                     {"4x4 h100 nvlink=450GB/s ib=4x400Gb/s", {8, 10, 12}},
                                     {"3x5 v100 nvlink=100GB/s ib=10Gb/s", {6, 10, 15}},
                                     {"16x1 a100 ib=200Gb/s", {4, 6, 12}}};
  static const char *const lines[] = {"",
                                      "layers=equal",
                                      "schedule=1f1b,zb-h1,chimera recompute=none",
                                      "schedule=* recompute=none zero=0",
                                      "v=1,2 schedule=interleaved",
                                      "overlap=none zero=3",
                                      "overlap=* zero=0,1 recompute=none",
                                      "grads=* zero=*",
                                      "sync=ps zero=0 recompute=none"};
  hold_on(machines, COUNT_OF(machines), lines, COUNT_OF(lines), 1000);
}

// Each replica runs its own microbatches on its own places.
TEST(bounds_hold_for_replicas) {
  static const cluster machines[] = {{"1x4 v100 ib=100Gb/s + 1x4 h100 ib=4x400Gb/s", {6, 8, 8}},
                                     {"1x2 p100 ib=10Gb/s + 2x2 a100 ib=200Gb/s", {4, 6, 6}}};
  static const char *const lines[] = {
      "replicas=* dp.shares=equal,auto mb=*", "replicas=* schedule=1f1b,zb-h1,gpipe dp.shares=equal",
      "replicas=* zero=* recompute=* dp.shares=equal", "replicas=* v=1,2 schedule=interleaved layers=equal",
      "replicas=* overlap=none dp.shares=auto"};
  hold_on(machines, COUNT_OF(machines), lines, COUNT_OF(lines), 200);
}

// Nodes of one kind and of two, nodes of one kind with other links, kinds that differ by much.
TEST(bounds_hold_on_devices_of_several_kinds) {
  static const cluster machines[] = {
      {"1x4 v100 ib=100Gb/s + 1x4 h100 ib=4x400Gb/s", {6, 8, 8}},
      {"1x2 p100 ib=10Gb/s + 2x2 a100 ib=200Gb/s", {3, 4, 6}},
      {"1x4 a100 nvlink=600GB/s ib=100Gb/s + 1x4 v100 ib=25Gb/s + 1x4 a100 nvlink=100GB/s ib=100Gb/s",
       {8, 10, 12}},
      {"2x3 t4 ib=50Gb/s + 1x3 v100 ib=10Gb/s", {6, 8, 9}}};
  static const char *const lines[] = {"dp.shares=auto layers=auto",
                                      "layers=auto,equal,whale",
                                      "dp.shares=auto,equal mb=* tp.shares=auto",
                                      "dp.shares=auto schedule=1f1b,zb-h1,chimera recompute=none",
                                      "schedule=* recompute=none zero=0 layers=auto",
                                      "v=1,2 schedule=interleaved",
                                      "overlap=none zero=* dp.shares=auto",
                                      "overlap=dp+pp zero=0,1 dp.shares=auto recompute=none",
                                      "places=* dp.shares=equal",
                                      "grads=* zero=* dp.shares=auto"};
  hold_on(machines, COUNT_OF(machines), lines, COUNT_OF(lines), 1000);
}

static const char *random_machine(arena *a, u64 *rng) {
  static const char *const kind[] = {"p100", "v100", "t4", "a100", "h100"};
  static const char *const link[] = {"10Gb/s", "25Gb/s", "100Gb/s", "2x100Gb/s", "4x200Gb/s"};
  strbuf b = {.a = a};
  const u32 n = 2 + upto(rng, 2), first = upto(rng, COUNT_OF(kind));
  for (u32 k = 0; k < n; k++)
    sb_fmt(&b, "%s%ux%u %s ib=%s", k ? " + " : "", 1 + upto(rng, 2), 1 + upto(rng, 4),
           kind[(first + k) % COUNT_OF(kind)], link[upto(rng, COUNT_OF(link))]);
  return sb_str(&b);
}

// Tensor groups over nodes of several kinds, in unequal parts or not.
TEST(bounds_know_what_tensor_groups_send) {
  static const char *const lines[] = {"tp=* dp.shares=auto,equal layers=auto tp.shares=auto recompute=*",
                                      "tp=* dp.shares=equal tp.shares=equal,auto zero=*",
                                      "tp=* dp.shares=auto tp.shares=auto mb=* sp=*",
                                      "tp=* dp.shares=equal tp.shares=2/1,1/2,3/1/2 schedule=* layers=auto",
                                      "tp=* tp.stages=* dp.shares=equal layers=auto"};
  const char *one = getenv("SEED");
  const u32 from = one ? (u32)atoi(one) : 1, to = one ? from : test_cases(SEARCHES);
  u32 plans = 0;
  for (u32 seed = from; seed <= to; seed++) {
    u64 rng = seed * 104729;
    ctx *c = ctx_new();
    char layers[16];
    const chain x = random_chain(&rng, layers);
    const char *on = random_machine(ctx_arena(c), &rng);
    const machine *m = machine_load(c, ctx_arena(c), on);
    const char *line = lines[upto(&rng, COUNT_OF(lines))];
    search_result r;
    REQUIRE(m);
    if (m->nranks > 2 && search(c, &x, on, m->nranks, upto(&rng, 4) > 0, line, &r)) {
      CHECK_MSG(!r.bound_failed, "seed %u: %s, %s", seed, on, line);
      for (u32 i = 0; i < r.nfit; i++)
        plans += r.point[i].bound_work && search_value(&r.point[i], CHOICE_tp).n > 4;
    }
    ctx_free(c);
  }
  printf("  %u plans of tensor groups of more than 4\n", plans);
  CHECK(one || !test_all_cases() || plans > 8 * (to - from + 1));
}

// No plan is made that a slow link between nodes rules out: of those with tensor groups over several nodes few are.
TEST(bounds_rule_out_tensor_groups_over_slow_links) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const front_opts fo = {.batch = 32, .t = DT_F16, .loss = true};
  prog *src = front_load(c, "gpt2-xl:layers=12", &fo);
  search_opts o = {.train = true, .batch = 32, .threads = 1, .top = 5, .optim = optim_default(OPTIM_ADAM)};
  const machine *m = machine_load(c, a, "1x4 v100 ib=10Gb/s + 1x4 a100 ib=50Gb/s + 1x4 h100 ib=50Gb/s");
  search_result r;
  REQUIRE(src && m && strategy_parse(c, a, "tp=* dp.shares=auto layers=auto tp.shares=auto", &o.space));
  CHECK(search_run(c, a, src, m, NULL, &o, &r) && !r.bound_failed);
  u32 wide = 0, made = 0;
  for (u32 i = 0; i < r.npoints; i++) {
    const search_point *p = &r.point[i];
    if (search_value(p, CHOICE_tp).n < 6 || (p->state != SEARCH_BOUND_TIME && p->state != SEARCH_RAN))
      continue;
    wide++, made += p->applied;
  }
  printf("  of %u plans with tensor groups over several nodes %u are made\n", wide, made);
  CHECK(wide > 100 && made * 10 < wide);
  prog_free(src);
  ctx_free(c);
}

// A sum is made by the stage that reads it where that is the same one, else by the stage before; a tensor
// group that crosses nodes may be faster than the first one, which does not; and where the layers of a decoder are
// several stages, that of the encoder adds up the gradients of what they all read.
TEST(bounds_know_what_moves_with_a_border) {
  static const struct {
    const char *model, *on, *line;
    i64 batch, seq;
    u32 ranks;
  } cases[] = {{"tests/border.heddle", "8x1 v100 ib=10Gb/s", "dp=1 tp=4 pp=2 mb=16,64 zero=0 recompute=none",
                0, 512, 8},
               {"gpt2", "2x3 a10 ib=8x400Gb/s",
                "dp=1 tp=2 pp=3 mb=8,16 zero=0 recompute=none layers=cost,1/10/1", 32, 512, 6},
               {"t5-small:layers=2,hidden=64,heads=4,vocab=512", "1x4 v100",
                "dp=1 tp=1 pp=4 mb=512 schedule=1f1b,zb-2p zero=0 recompute=none", 512, 16, 4},
               {"mbart:layers=2,hidden=64,heads=4,vocab=512", "1x2 v100 + 1x2 p100 eth=50Gb/s",
                "dp=1 tp=1 pp=4 mb=512 schedule=1f1b,zb-1p zero=0 recompute=none,full layers=cost", 512, 16,
                4}};
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    ctx *c = ctx_new();
    arena *a = ctx_arena(c);
    prog *src = front_load(c, cases[i].model,
                           &(front_opts){.batch = cases[i].batch, .seq = cases[i].seq, .loss = true});
    search_opts o = {.train = true,
                     .batch = cases[i].batch ? cases[i].batch : 64,
                     .ranks = cases[i].ranks,
                     .threads = 1,
                     .memory_bytes = -1,
                     .top = 1 << 20,
                     .optim = optim_default(OPTIM_ADAM)};
    const machine *m = machine_load(c, a, cases[i].on);
    search_result r;
    REQUIRE(src && m && (pass_loss(src) || true) && strategy_parse(c, a, cases[i].line, &o.space));
    CHECK_MSG(search_run(c, a, src, m, NULL, &o, &r) && r.nfit && !r.bound_failed, "%s", cases[i].model);
    prog_free(src);
    ctx_free(c);
  }
}

// On slow links a step is hardly more than its sums of gradients: of positions, only those that the sequence has.
TEST(bounds_count_what_data_ranks_sum) {
  static const struct {
    const char *model, *on;
  } all[] = {{"gpt2:layers=2,hidden=384,heads=4,vocab=4096", "4x1 a100 ib=5Gb/s"},
             {"gpt2:layers=2,hidden=384,heads=4,vocab=4096", "1x2 v100 + 1x2 a100 ib=5Gb/s"},
             {"moe-8x125m:layers=2,experts=4", "1x2 h100 + 1x1 a100 ib=10Gb/s"},
             {"bert-base:layers=2,hidden=128,heads=4,vocab=256", "4x1 v100 ib=5Gb/s"},
             {"t5-small:layers=2,hidden=128,heads=4,vocab=256", "4x1 v100 ib=5Gb/s"},
             {"gnmt:layers=2", "4x1 v100 ib=5Gb/s"},
             {"resnet50", "4x1 v100 ib=5Gb/s"}};
  u32 plans = 0;
  for (u32 k = 0; k < COUNT_OF(all); k += test_step()) {
    ctx *c = ctx_new();
    arena *a = ctx_arena(c);
    prog *src = front_load(c, all[k].model, &(front_opts){.batch = 48, .seq = 64, .t = DT_F32, .loss = true});
    const machine *m = machine_load(c, a, all[k].on);
    search_opts o = {.train = true,
                     .batch = 48,
                     .threads = 1,
                     .memory_bytes = -1,
                     .top = 1 << 20,
                     .optim = optim_default(OPTIM_SGD)};
    search_result r;
    REQUIRE(src && m && strategy_parse(c, a, "zero=0,1,2 recompute=none mb=1,2,4", &o.space));
    CHECK_MSG(search_run(c, a, src, m, NULL, &o, &r) && r.nfit && !r.bound_failed, "%s on %s", all[k].model,
              all[k].on);
    for (u32 i = 0; i < r.nfit; i++)
      CHECK_MSG(r.point[i].bound_ps <= r.point[i].time_ps, "%s on %s: %s", all[k].model, all[k].on,
                search_str(a, &r.point[i]));
    plans += r.nfit;
    prog_free(src);
    ctx_free(c);
  }
  CHECK(plans > 100 / test_step());
}

// What lies on all places takes a place as long as its part of the whole at least, between its first forward and its last
// backward. On fast and slow links, with small and large vocabularies, heads that are tied and not.
TEST(bounds_of_interlaced_pipelines) {
  static const struct {
    const char *model, *on, *line;
  } all[] = {
      {"gpt2:layers=8,hidden=1024,heads=16,vocab=50304", "1x8 a100", "dp=* tp=1 pp=2,4,8 mb=1,2,4,8,16"},
      {"gpt2:layers=8,hidden=1024,heads=16,vocab=512", "2x4 v100 ib=100Gb/s",
       "dp=* tp=1,2 pp=2,4 mb=4,8 zero=*"},
      {"llama2-7b:layers=4,vocab=32000,hidden=2048,heads=16,kv_heads=16,head_dim=128,ffn=5504", "1x4 h100",
       "tp=* pp=2,4 dp=1,2 mb=2,8,16 sp=* recompute=*"},
      {"mbart-large:layers=4,hidden=1024,heads=16,vocab=250000", "1x8 a100",
       "dp=1,2 tp=1 pp=4,8 mb=8,16 recompute=*"},
      {"t5-small:layers=4", "4x2 a100 ib=100Gb/s", "dp=1,2,4 tp=1,2 pp=2,4 mb=4,8 overlap=*"}};
  u32 plans = 0, measured = 0;
  double tight = 0;
  for (u32 k = 0; k < COUNT_OF(all); k += test_step()) {
    ctx *c = ctx_new();
    arena *a = ctx_arena(c);
    prog *src = front_load(c, all[k].model, &(front_opts){.batch = 32, .seq = 64, .t = DT_F16, .loss = true});
    const machine *m = machine_load(c, a, all[k].on);
    search_opts o = {.train = true,
                     .batch = 32,
                     .threads = 1,
                     .memory_bytes = -1,
                     .top = 1 << 20,
                     .optim = optim_default(OPTIM_ADAM)};
    search_result r;
    const char *line = arena_printf(a, "%s schedule=1f1b,interlaced,interlaced-block", all[k].line);
    REQUIRE(src && m && strategy_parse(c, a, line, &o.space));
    CHECK_MSG(search_run(c, a, src, m, NULL, &o, &r) && r.nfit && !r.bound_failed, "%s", all[k].model);
    for (u32 i = 0; i < r.nfit; i++) {
      const search_point *p = &r.point[i];
      const strategy is = search_strategy(p);
      if (!policy_is_interlaced(&is)) continue;
      plans++;
      CHECK_MSG(p->bound_ps <= p->time_ps, "%s: %s", all[k].model, search_str(a, p));
      if (p->bound_work) measured++, tight += (double)p->bound_ps / (double)p->time_ps;
    }
    prog_free(src);
    ctx_free(c);
  }
  printf("  %u interlaced plans, %u with measured bounds, on average %.2f of the time\n", plans, measured,
         tight / MAX(measured, 1u));
  CHECK(measured > 100 / test_step());
}

static i64 busiest_stream(planner *pl, const plan *pn, cost_model *k, arena *a) {
  sim_result r;
  prog *p = plan_apply(pl, pn, k);
  REQUIRE(p && sim_run(p->c, a, p, k, &(sim_opts){.mode = SIM_FOLDED, .no_bytes = true}, &r));
  i64 most = 0;
  for (u32 i = 0; i < r.nclasses * r.nstreams; i++) most = MAX(most, r.busy_ps[i]);
  prog_free(p);
  return most;
}

// What the first microbatches tell of the busiest stream is what the whole program has, to the picosecond.
TEST(busiest_stream_of_first_microbatches) {
  static const char *const lines[] = {
      "dp=1 tp=1 pp=4 mb=16 schedule=interlaced",
      "dp=2 tp=1 pp=4 mb=16 schedule=interlaced overlap=none zero=3",
      "dp=1 tp=2 pp=4 mb=32 schedule=interlaced-block channels=one",
      "dp=4 tp=1 pp=2 mb=16 schedule=interlaced-block channels=pass zero=1 recompute=full",
      "dp=2 tp=2 pp=2 mb=16 schedule=1f1b overlap=dp+pp",
      "dp=4 tp=1 pp=2 mb=16 sync=ps",
  };
  for (u32 i = 0; i < COUNT_OF(lines); i++) {
    ctx *c = ctx_new();
    arena *a = ctx_arena(c);
    prog *src = front_load(c, "gpt2:layers=4,hidden=256,heads=8,vocab=50304",
                           &(front_opts){.batch = 64, .seq = 64, .t = DT_F16, .loss = true});
    const machine *m = machine_load(c, a, "2x4 v100 ib=100Gb/s");
    hybrid_opts h = {.train = true, .optim = optim_default(OPTIM_ADAM)};
    strategy_set set;
    REQUIRE(src && m && strategy_parse(c, a, lines[i], &set) && strategy_one(c, &set, &h.s) &&
            strategy_settle(c, &set, 64, true, &h.s));
    planner *pl = planner_new(src);
    cost_model *k = h.k = cost_model_new(c, a, m, NULL);
    const plan *pn = policy_hybrid(pl, a, &h);
    REQUIRE(pn);
    const i64 whole = busiest_stream(pl, pn, k, a), told = plan_busiest(pl, pn, k, a);
    CHECK_MSG(told == whole, "%s: %lld ps of %lld", lines[i], (long long)told, (long long)whole);
    planner_free(pl);
    prog_free(src);
    ctx_free(c);
  }
}
