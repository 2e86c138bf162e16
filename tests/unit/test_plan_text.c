// test_plan_text.c - the examples of docs/plans.md: they read, print back, apply, and compute what the model
// does.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"

static const char *read_all(arena *a, const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  REQUIRE(f != NULL);
  char *s = arena_alloc(a, 1 << 16);
  *n = fread(s, 1, (1 << 16) - 1, f);
  s[*n] = 0;
  fclose(f);
  return s;
}

static void check_example(prog *p, const char *text, size_t n, arena *a) {
  ctx *c = p->c;
  planner *pl = planner_new(p);
  plan *pn = plan_parse(a, planner_source(pl), NULL, sym_of(c, "docs/plans.md"), text, n);
  CHECK_MSG(pn != NULL, "%s", diag_render(c, a));
  if (pn) {
    strbuf b = {.a = a}, again = {.a = a};
    plan_print(planner_source(pl), pn, &b);
    plan *back = plan_parse(a, planner_source(pl), NULL, sym_of(c, "printed"), sb_str(&b), b.n);
    CHECK_MSG(back != NULL, "%s", diag_render(c, a));
    if (back) plan_print(planner_source(pl), back, &again);
    CHECK_STR(sb_str(&again), sb_str(&b));
    prog *d = plan_apply(pl, pn, NULL);
    verify_report r = {0};
    bool ok =
        d && plan_validate(d) && plan_verify(pl, pn, NULL, &(verify_opts){.seed = 5}, a, &r) && r.passed;
    CHECK_MSG(ok, "%s: %s", sym_str(c, pn->name), diag_render(c, a));
    if (d) prog_free(d);
  }
  planner_free(pl);
}

TEST(plan_text_examples) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = front_family(c, "mlp-xs:hidden=32", &(front_opts){.batch = 32, .loss = true});
  size_t n;
  u32 found = 0;
  for (const char *s = read_all(a, "docs/plans.md", &n); (s = strstr(s, "```yaml\nheddle-plan")); found++) {
    s += strlen("```yaml\n");
    const char *end = strstr(s, "```");
    REQUIRE(end != NULL);
    check_example(p, s, (size_t)(end - s), a);
  }
  CHECK_EQ_I64(found, 2);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}

// Nothing that a plan says is lost, and no name breaks the text.
TEST(plan_text_says_all) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = front_family(c, "mlp-xs:hidden=32", &(front_opts){.batch = 32, .loss = true});
  planner *pl = planner_new(p);
  hybrid_opts o = {.s = strategy_of("dp=2 tp=2 pp=2 mb=4 zero=2 schedule=gpipe"),
                   .train = true,
                   .optim = {OPTIM_ADAMW, true, 1e-3, 0, .9, .95, 1e-6, .1}};
  plan *pn = policy_hybrid(pl, a, &o);
  REQUIRE(pn != NULL);
  pn->input_gradients = pn->keep_gradients = true;
  pn->name = sym_of(c, "a \"b\" \\ c: # d");
  pn->send_stream = sym_of(c, "links, both: ways");
  pn->axes[0].name = sym_of(c, "-x y");
  strbuf text = {.a = a};
  plan_print(planner_source(pl), pn, &text);
  plan *q = plan_parse(a, planner_source(pl), NULL, sym_of(c, "printed"), sb_str(&text), text.n);
  CHECK_MSG(q != NULL, "%s\n%s", diag_render(c, a), sb_str(&text));
  if (q) {
    CHECK(q->train && q->input_gradients && q->keep_gradients);
    CHECK(q->name.i == pn->name.i && q->send_stream.i == pn->send_stream.i);
    CHECK(q->axes[0].name.i == pn->axes[0].name.i && q->time == pn->time);
    strbuf again = {.a = a};
    plan_print(planner_source(pl), q, &again);
    CHECK_STR(sb_str(&again), sb_str(&text));
  }
  planner_free(pl);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}

// Strides that no extent has, and whose products with the parts of an axis are no numbers, are refused.
TEST(plan_text_refuses_strides) {
  static const char *const sizes[] = {"4", "[3, 1]"};
  ctx *c = ctx_new();
  prog *p = front_family(c, "mlp-xs:hidden=32", &(front_opts){.batch = 32, .loss = true});
  planner *pl = planner_new(p);
  for (u32 bits = 5; bits < 63; bits++)
    for (u32 k = 0; k < 4; k++) {
      arena *a = arena_new();
      const char *text = arena_printf(
          a,
          "heddle-plan: 1\naxes: {dp: %s}\nmeshes:\n  m: {axes: [dp]}\nsegments:\n  - {from: 1, to: 12, on: "
          "m}\n"
          "trans:\n  - {%s, axis: dp, stride: %llu}\norder:\n  - \"F0.0\"\n",
          sizes[k % 2], k < 2 ? "input: x, dim: 0" : "in: layer, instr: 1, op: matmul, operand: 1, dim: 1",
          1ull << bits);
      const plan *pn = plan_parse(a, planner_source(pl), NULL, sym_of(c, "strides"), text, strlen(text));
      CHECK_MSG(!pn || !plan_apply(pl, pn, NULL), "%s", text);
      CHECK(diag_errors(c));
      diag_clear(c);
      arena_free(a);
    }
  planner_free(pl);
  prog_free(p);
  ctx_free(c);
}
