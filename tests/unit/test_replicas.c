// test_replicas.c - several replicas of the model in one plan, placed differently: verified in numbers, written and read,
// refused where they do not fit, and validated when something is missing.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"
#include "two_products.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
} session;

static session open_source(prog *src, ctx *c) {
  session s = {c, arena_new(), src, NULL};
  CHECK_MSG(src != NULL, "%s", diag_render(c, s.a));
  REQUIRE(src);
  s.pl = planner_new(src);
  return s;
}

static session open_text(const char *text) {
  ctx *c = ctx_new();
  return open_source(ir_parse(c, sym_of(c, "model"), text, strlen(text)), c);
}

static session open_model(const char *name) {
  ctx *c = ctx_new();
  return open_source(front_load(c, name, &(front_opts){.batch = 16, .seq = 8}), c);
}

static void close_source(session *s) {
  planner_free(s->pl);
  prog_free(s->src);
  arena_free(s->a);
  ctx_free(s->c);
}

static void check_verified(session *s, const plan *pn, const char *what) {
  verify_report r = {0};
  bool ok = pn && plan_verify(s->pl, pn, NULL, &(verify_opts){.seed = 3}, s->a, &r) && r.passed;
  CHECK_MSG(ok, "%s: %s", what, diag_render(s->c, s->a));
  prog *p = pn ? plan_apply(s->pl, pn, NULL) : NULL;
  CHECK_MSG(p && ir_verify(p) && infer_verify(p) && plan_validate(p), "%s: %s", what,
            diag_render(s->c, s->a));
  strbuf text = {.a = s->a}, again = {.a = s->a};
  if (p) ir_print(p, &text);
  prog *read = p ? ir_parse(s->c, sym_of(s->c, "printed"), sb_str(&text), text.n) : NULL;
  CHECK_MSG(read && plan_validate(read), "%s: %s", what, diag_render(s->c, s->a));
  if (read) ir_print(read, &again);
  CHECK_STR(sb_str(&again), sb_str(&text));
  prog_free(read);
  prog_free(p);
}

// ---- in two directions --------------------------------------------------------------------------------------
static void check_strategy(const char *model, const char *line, bool train) {
  session s = open_model(model);
  strategy_set set;
  hybrid_opts o = {.train = train, .optim = optim_default(OPTIM_ADAM), .keep_gradients = true};
  REQUIRE(strategy_parse(s.c, s.a, line, &set) && strategy_one(s.c, &set, &o.s));
  const plan *pn = policy_hybrid(s.pl, s.a, &o);
  check_verified(&s, pn, line);
  CHECK(pn && pn->nreplicas == 2);
  close_source(&s);
}

TEST(replicas_in_two_directions) {
  static const char *const lines[] = {"pp=2 mb=4 schedule=chimera",
                                      "pp=4 mb=4 schedule=chimera",
                                      "pp=4 mb=8 schedule=chimera recompute=full",
                                      "pp=2 mb=2 dp=2 tp=2 schedule=chimera zero=1 overlap=none",
                                      "pp=2 mb=4 dp=2 schedule=chimera zero=2 channels=one",
                                      "pp=2 mb=4 dp=2 schedule=chimera zero=3",
                                      "pp=2 mb=4 tp=2 schedule=chimera tp.stages=2/1 places=2/1",
                                      "pp=2 mb=4 dp=2 schedule=dualpipe zero=2",
                                      "pp=4 mb=8 schedule=dualpipe recompute=full",
                                      "pp=4 mb=4 schedule=gems",
                                      "pp=2 mb=4 dp=2 tp=2 schedule=gems zero=1 overlap=none"};
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    check_strategy("mlp-xs:layers=8,hidden=16", lines[k], true);
    check_strategy("gpt2:layers=4,hidden=16,heads=2,vocab=32", lines[k], true);
  }
  check_strategy("gpt2:layers=4,hidden=16,heads=2,vocab=32", "pp=4 mb=4 schedule=chimera", false);
}

static void check_make_up(const char *model, const char *line, bool train) {
  session s = open_model(model);
  strategy_set set;
  hybrid_opts o = {.train = train, .optim = optim_default(OPTIM_ADAM), .keep_gradients = true};
  REQUIRE(strategy_parse(s.c, s.a, line, &set) && strategy_one(s.c, &set, &o.s));
  check_verified(&s, policy_hybrid(s.pl, s.a, &o), line);
  close_source(&s);
}

// A file, with more microbatches in one direction than in the other.
TEST(replicas_of_a_file) {
  const char *path = "build/replicas.csv";
  FILE *f = fopen(path, "w");
  REQUIRE(f);
  fputs("0F0,1F0r1,1B0r1,0F1,0B0,0F2,0B1,0B2\n0F0r1,1F0,1B0,0B0r1,1F1,1B1,1F2,1B2\n", f);
  fclose(f);
  const char *line = "pp=2 mb=4 schedule=build/replicas.csv";
  check_strategy("gpt2:layers=4,hidden=16,heads=2,vocab=32", line, true);
}

// ---- of different make-up -----------------------------------------------------------------------------------
TEST(replicas_by_strategy) {
  static const char *const lines[] = {"replicas=2x2+1x2 mb=2", "replicas=2x1+1x2+2x1 mb=8 dp.shares=1/2/1",
                                      "replicas=3x1+2x2x2 mb=4 recompute=full dp.shares=3/1",
                                      "replicas=1x1x4+1x1x4 mb=2", "replicas=4x1+3x1 mb=2 skip=1"};
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    check_make_up("gpt2:layers=5,hidden=16,heads=2,vocab=32", lines[k], true);
    check_make_up("mlp-xs:layers=8,hidden=16", lines[k], true);
  }
  check_make_up("gpt2:layers=5,hidden=16,heads=2,vocab=32", lines[0], false);
}

// Replicas that are alike are one mesh; a segment ends where a stage of any replica does.
TEST(replicas_of_a_strategy_lie_on_few_meshes) {
  static const struct {
    const char *line;
    u32 meshes, segments, places;
  } want[] = {{"replicas=2x2+1x2 mb=2", 2, 2, 3},
              {"replicas=2x1+2x1+1x2 mb=4 dp.shares=1/2/1", 2, 2, 5},
              {"replicas=4x1+3x1 mb=2", 2, 6, 7}};
  for (u32 k = 0; k < COUNT_OF(want); k++) {
    session s = open_model("gpt2:layers=12,hidden=16,heads=2,vocab=32");
    strategy_set set;
    hybrid_opts o = {.train = true, .optim = optim_default(OPTIM_ADAM)};
    REQUIRE(strategy_parse(s.c, s.a, want[k].line, &set) && strategy_one(s.c, &set, &o.s));
    const plan *pn = policy_hybrid(s.pl, s.a, &o);
    REQUIRE(pn);
    CHECK_EQ_I64(pn->nmeshes, want[k].meshes);
    CHECK_EQ_I64(pn->nsegments, want[k].segments);
    CHECK_EQ_I64(pn->nseqs, want[k].places);
    close_source(&s);
  }
}

// What auto says, against every way of dealing the microbatches out.
TEST(replicas_shares_by_speed) {
  static const char *const settings[][2] = {{"2x2 v100 + 1x2 a100 ib=100Gb/s", "replicas=2x2+1x2"},
                                            {"1x4 v100 + 1x4 a100 ib=100Gb/s", "replicas=4x1+2x2"},
                                            {"1x2 p100 + 1x2 v100 ib=100Gb/s", "replicas=1x1x2+1x1x2"}};
  enum { K = 12 };
  for (u32 k = 0; k < COUNT_OF(settings); k++) {
    ctx *c = ctx_new();
    session s =
        open_source(front_load(c, "gpt2:layers=12", &(front_opts){.batch = 48, .seq = 256, .loss = true}), c);
    machine *m = machine_load(c, s.a, settings[k][0]);
    REQUIRE(m);
    cost_model *cm = cost_model_new(c, s.a, m, NULL);
    i64 best = INT64_MAX, by_auto = 0;
    for (u32 first = 0; first < K; first++) {
      const char *line = first
                             ? arena_printf(s.a, "%s mb=12 dp.shares=%u/%u", settings[k][1], first, K - first)
                             : arena_printf(s.a, "%s mb=12 dp.shares=auto", settings[k][1]);
      strategy_set set;
      hybrid_opts o = {.train = true, .optim = optim_default(OPTIM_ADAM), .k = cm};
      sim_result r;
      REQUIRE(strategy_parse(c, s.a, line, &set) && strategy_one(c, &set, &o.s));
      const plan *pn = policy_hybrid(s.pl, s.a, &o);
      prog *p = pn ? plan_apply(s.pl, pn, cm) : NULL;
      REQUIRE(p && sim_run(c, s.a, p, cm, &(sim_opts){.mode = SIM_FOLDED, .peak_only = true}, &r));
      if (first) best = MIN(best, r.makespan_ps);
      if (!first) by_auto = r.makespan_ps;
      prog_free(p);
    }
    CHECK_MSG(by_auto == best, "%s: %lld by speed, %lld at best", settings[k][0], (long long)by_auto,
              (long long)best);
    close_source(&s);
  }
}

#define TRAIN "heddle-plan: 1\ntrain: {optimizer: adam, lr: 0.01}\n"

// Four ranks in two stages, each split two ways; two ranks with the batch split, which run both stages.
#define UNLIKE                                                                                               \
  "axes: {pp: 2, tp: 2, dp: 2}\ntime: {mb: 3}\n"                                                             \
  "meshes:\n  old: {axes: [pp, tp]}\n  new: {axes: [dp], first: 4}\n"                                        \
  "segments:\n  - {from: 1, to: 1, on: old, at: {pp: 0}}\n  - {from: 2, to: 5, on: old, at: {pp: 1}}\n"
#define REPLICAS "replicas:\n  - {microbatches: 1}\n  - {microbatches: 2, segments: [{on: new}, {on: new}]}\n"
#define SPLITS                                                                                               \
  "trans:\n  - {input: x, dim: 0, axis: mb}\n  - {input: y, dim: 0, axis: mb}\n"                             \
  "  - {input: x, dim: 0, axis: dp}\n  - {input: y, dim: 0, axis: dp}\n"                                     \
  "  - {in: main, instr: 1, operand: 1, dim: 1, axis: tp, weak: true}\nrest: {states: [dp, tp]}\n"
#define ORDER                                                                                                \
  "order:\n  - \"F0.0 B0.0\"\n  - \"F1.0 B1.0\"\n"                                                           \
  "  - \"F0.0r1 F1.0r1 F0.1r1 B1.0r1 B0.0r1 F1.1r1 B1.1r1 B0.1r1\"\n"

static plan *parsed(session *s, const char *text) {
  return plan_parse(s->a, planner_source(s->pl), NULL, sym_of(s->c, "plan"), text, strlen(text));
}

TEST(replicas_of_different_make_up) {
  static const char *const models[] = {TWO, TIED_WITH_RESULT};
  for (u32 k = 0; k < COUNT_OF(models); k++) {
    session s = open_text(models[k]);
    plan *pn = parsed(&s, TRAIN UNLIKE REPLICAS SPLITS ORDER);
    check_verified(&s, pn, "four ranks and two");
    strbuf text = {.a = s.a}, again = {.a = s.a};
    plan_print(planner_source(s.pl), pn, &text);
    const plan *read = parsed(&s, sb_str(&text));
    REQUIRE(read);
    plan_print(planner_source(s.pl), read, &again);
    CHECK_STR(sb_str(&again), sb_str(&text));
    CHECK(plan_hash(s.c, read) == plan_hash(s.c, pn));
    pn->replicas[1].on[0].mesh = 0;
    CHECK(plan_hash(s.c, read) != plan_hash(s.c, pn));
    close_source(&s);
  }
}

static void check_refused(const char *text, const char *want) {
  session s = open_text(TWO);
  const plan *pn = parsed(&s, text);
  prog *p = pn ? plan_apply(s.pl, pn, NULL) : NULL;
  CHECK(!p);
  CHECK_STR(diag_count(s.c) ? diag_get(s.c, 0).message : "", want);
  prog_free(p);
  close_source(&s);
}

TEST(replicas_refused) {
  check_refused(
      TRAIN UNLIKE
      "replicas:\n  - {microbatches: 2}\n  - {microbatches: 2, segments: [{on: new}, {on: new}]}\n" SPLITS
          ORDER,
      "the replicas have 4 microbatches, but there are 3 in time");
  check_refused(
      TRAIN UNLIKE
      "replicas:\n  - {microbatches: 1}\n  - {microbatches: 2, segments: [{on: new}]}\n" SPLITS ORDER,
      "a replica says where each of the 2 segments lies, found 1");
  check_refused(TRAIN UNLIKE "replicas:\n  - {microbatches: 1, segments: []}\n" SPLITS ORDER,
                "the first replica lies where the plan's `segments` say");
  check_refused(TRAIN UNLIKE "replicas:\n  - {microbatches: 1}\n  - {microbatches: 2}\n" SPLITS ORDER,
                "`segments` is missing");
  check_refused(TRAIN UNLIKE "replicas: 2\n" SPLITS ORDER, "`replicas` must be a list of 1 to 254 replicas");
  check_refused(TRAIN UNLIKE SPLITS ORDER, "the plan has 3 sequences for 2 places");
  check_refused(TRAIN UNLIKE REPLICAS SPLITS
                "order:\n  - \"F0.0 B0.0\"\n  - \"F1.0 B1.0\"\n  - \"F0.0r1 F1.0r1 B1.0r1 B0.0r1\"\n",
                "task 0F1r1 is in no sequence");
  check_refused(TRAIN UNLIKE REPLICAS SPLITS
                "order:\n  - \"F0.0 B0.0 F0.1\"\n  - \"F1.0 B1.0\"\n  - \"F0.0r1 F1.0r1 B1.0r1 B0.0r1\"\n",
                "task 0F1 of place 0: there is no such microbatch");
}

// ---- what is missing ----------------------------------------------------------------------------------------
// Two places, each with a stage of each of two replicas that have two microbatches, and a sum over the four.
#define HEAD                                                                                                 \
  "mesh @m [d=2]\n"                                                                                          \
  "time [mb=2+2]\n"                                                                                          \
  "func @f(%x: f32[4{mb},2], %acc: (f32[2]+mb)) -> ((f32[2]+mb)) {\n"                                        \
  "  %a = unpack %acc : f32[2]+mb\n"                                                                         \
  "  %g = reduce_sum %x {axes=[0], keepdims=0}\n"                                                            \
  "  %b = add !%a, %g\n"                                                                                     \
  "  %c = pack %b : (f32[2]+mb)\n"                                                                           \
  "  return %c\n"                                                                                            \
  "}\n"                                                                                                      \
  "func @main(%x: f32[4,2] @m) -> (f32[2] @m) {\n"                                                           \
  "  %y = part %x {at=0} over d @m : f32[4,2] @m[d=0]\n"                                                     \
  "  %z = part %x {at=1} over d @m : f32[4,2] @m[d=1]\n"                                                     \
  "  %0 = part %y {at=0} over mb @m[d=0] @mb=0 : f32[4{mb},2]\n"                                             \
  "  %1 = part %y {at=1} over mb @m[d=0] @mb=1 : f32[4{mb},2]\n"                                             \
  "  %2 = part %z {at=2} over mb @m[d=1] @mb=2 : f32[4{mb},2]\n"                                             \
  "  %3 = part %z {at=3} over mb @m[d=1] @mb=3 : f32[4{mb},2]\n"                                             \
  "  %e = full {shape=[2], dtype=f32} @m[d=0] : f32[2]+mb\n"                                                 \
  "  %f = full {shape=[2], dtype=f32} @m[d=1] : f32[2]+mb\n"                                                 \
  "  %p = pack %e @m[d=0] : (f32[2]+mb)\n"                                                                   \
  "  %q = pack %f @m[d=1] : (f32[2]+mb)\n"                                                                   \
  "  %p0 = call @f(%0, !%p) @m[d=0] @mb=0\n"                                                                 \
  "  %q0 = call @f(%2, !%q) @m[d=1] @mb=2\n"
#define TAIL                                                                                                 \
  "  %g = unpack %p1 @m[d=0] : f32[2]+mb\n"                                                                  \
  "  %h = unpack %q1 @m[d=1] : f32[2]+mb\n"                                                                  \
  "  %s = join %g, %h over d @m : f32[2]+mb,+d\n"                                                            \
  "  %t = all_reduce %s over d @m : f32[2]+mb\n"                                                             \
  "  %u = join %t over mb @m : f32[2]\n"                                                                     \
  "  return %u\n"                                                                                            \
  "}\n"

static void check_text(const char *text, const char *want) {
  ctx *c = ctx_new();
  prog *p = ir_parse(c, sym_of(c, "text"), text, strlen(text));
  CHECK_MSG(p != NULL, "%s", diag_render(c, ctx_arena(c)));
  REQUIRE(p);
  CHECK(plan_validate(p) == !*want);
  CHECK_STR(diag_count(c) ? diag_get(c, 0).message : "", want);
  prog_free(p);
  ctx_free(c);
}

TEST(replicas_validated) {
  check_text(HEAD "  %p1 = call @f(%1, !%p0) @m[d=0] @mb=1\n  %q1 = call @f(%3, !%q0) @m[d=1] @mb=3\n" TAIL,
             "");
  check_text(HEAD "  %p1 = call @f(%1, !%p0) @m[d=0] @mb=1\n  %q1 = pack %f @m[d=1] : (f32[2]+mb)\n" TAIL,
             "join in @main: a sum over mb lacks mb=2, mb=3");
  check_text(HEAD "  %p1 = call @f(%1, !%p0) @m[d=0] @mb=1\n  %q1 = call @f(%2, !%q0) @m[d=1] @mb=2\n" TAIL,
             "join in @main: a sum over mb lacks mb=3");
}
