// test_fingerprint.c - which programs share a plan file, and what happens to one that is for another program.
#include "front/front.h"
#include "heddle.h"
#include "plan/plan.h"
#include "test.h"
#include <stdlib.h>

static u64 fingerprint(const char *text) {
  ctx *c = ctx_new();
  prog *p = ir_parse(c, sym_of(c, "model"), text, strlen(text));
  REQUIRE(p);
  const u64 h = plan_fingerprint(p);
  prog_free(p);
  ctx_free(c);
  return h;
}

#define MODEL(types, name, first, op, factor, data)                                                          \
  "func @main(%" name ": " types "[4], %b: " types "[4]) -> (" types "[4]) {\n"                              \
  "  %s = scale %" first " {alpha=" factor "} : " types "[4]\n"                                              \
  "  %k = constant {shape=[4], dtype=" types ", data=" data "} : " types "[4]\n"                             \
  "  %r = " op " %s, %k : " types "[4]\n  return %r\n}\n"

TEST(fingerprint_is_of_the_structure) {
  const u64 h = fingerprint(MODEL("f32", "a", "a", "add", "2", "[1, 2, 3, 4]"));
  CHECK(h == fingerprint(MODEL("f32", "a", "a", "add", "3", "[1, 2, 3, 4]")));
  CHECK(h == fingerprint(MODEL("f32", "a", "a", "add", "2", "[9, 9, 9, 9]")));
  CHECK(h != fingerprint(MODEL("f64", "a", "a", "add", "2", "[1, 2, 3, 4]")));
  CHECK(h != fingerprint(MODEL("f32", "x", "x", "add", "2", "[1, 2, 3, 4]"))); // a plan names inputs
  CHECK(h != fingerprint(MODEL("f32", "a", "b", "add", "2", "[1, 2, 3, 4]")));
  CHECK(h != fingerprint(MODEL("f32", "a", "a", "mul", "2", "[1, 2, 3, 4]")));
}

// The text of a model, in a session of its own, and a model whose plans were made, which adds functions to
// it.
TEST(fingerprint_survives_text_and_plans) {
  static const char *const models[] = {"mlp-xs:layers=3", "gpt2:layers=2,hidden=32,heads=4,vocab=64",
                                       "llama2-7b:layers=2,hidden=32,heads=4,ffn=64,vocab=64"};
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *p = front_family(c, models[i], &(front_opts){.batch = 4, .seq = i ? 16 : 0, .loss = true});
    const u64 h = plan_fingerprint(p);
    strbuf text = {.a = a};
    ir_print(p, &text);
    CHECK(fingerprint(sb_str(&text)) == h);
    planner *pl = planner_new(p);
    hybrid_opts o = {.s = strategy_default(), .train = true, .optim = optim_default(OPTIM_ADAM)};
    o.s.tp.n = 2;
    prog *d = plan_apply(pl, policy_hybrid(pl, a, &o), NULL);
    REQUIRE(d);
    CHECK(plan_fingerprint(planner_source(pl)) == h);
    prog *twice = front_family(c, models[i], &(front_opts){.batch = 8, .seq = i ? 16 : 0, .loss = true});
    CHECK(plan_fingerprint(twice) != h);
    prog_free(twice), prog_free(d), planner_free(pl), prog_free(p);
    arena_free(a);
    ctx_free(c);
  }
}

TEST(fingerprint_refuses_once) {
  heddle_session *s = heddle_session_new();
  heddle_load_options four = {.batch = 4, .loss = true}, eight = {.batch = 8, .loss = true};
  heddle_program *p = heddle_program_load(s, "mlp-xs:layers=2,hidden=8", &four);
  const char *text = heddle_plan_print(heddle_plan_make(p, "dp=2", &(heddle_plan_options){.train = true}));
  REQUIRE(text);
  static const struct {
    const char *model;
    bool eight;
    const char *said;
  } others[] = {
      {"mlp-xs:layers=2,hidden=8", true, "with a batch of 4; this is mlp-xs:layers=2,hidden=8 with 8"},
      {"mlp-xs:layers=1,hidden=8", false, "with 6 instructions in main; this is"},
      {"mlp-xs:layers=2,hidden=16", false, "a first input of f32[4,8]; this is"}};
  for (u32 i = 0; i < COUNT_OF(others); i++) {
    heddle_program *q = heddle_program_load(s, others[i].model, others[i].eight ? &eight : &four);
    heddle_diagnostic d;
    CHECK(!heddle_plan_parse(q, "old.plan", text, strlen(text)));
    CHECK_EQ_I64(heddle_session_errors(s), 1);
    REQUIRE(heddle_session_diagnostic(s, 0, &d));
    CHECK_STR(d.code, "E0511");
    CHECK_STR(d.file, "old.plan");
    CHECK_MSG(d.line == 3 && strstr(d.message, others[i].said), "%s", d.message);
    heddle_session_clear(s);
  }
  char *bare = strdup(text), *line = strstr(bare, "model:"); // written by hand: as before
  memset(line, '#', 6);
  heddle_program *q = heddle_program_load(s, others[0].model, &eight);
  heddle_plan *b = heddle_plan_parse(q, "bare.plan", bare, strlen(bare));
  CHECK(b && !strstr(heddle_plan_print(b), "model:"));
  free(bare);
  heddle_session_free(s);
}
