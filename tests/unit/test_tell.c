// test_tell.c - a plan is certified only by results that depend on the inputs.
#include "plan/plan.h"
#include "test.h"

// Verifies a plan over two devices that deal out the batch; the first diagnostic, "" if there is none.
static void check(const char *model, bool train, bool passed, const char *want) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = ir_parse(c, sym_of(c, "model"), model, strlen(model));
  CHECK_MSG(p, "%s", diag_render(c, a));
  REQUIRE(p);
  planner *pl = planner_new(p);
  hybrid_opts o = {.s = strategy_of("dp=2"), .train = train};
  plan *pn = policy_hybrid(pl, a, &o);
  verify_report r;
  CHECK_MSG(pn && plan_verify(pl, pn, NULL, &(verify_opts){.seed = 3}, a, &r), "%s", diag_render(c, a));
  CHECK(r.passed == passed);
  CHECK_STR(diag_count(c) ? diag_get(c, 0).message : "", want);
  planner_free(pl);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}

#define HEAD "func @main(%x: f32[8,16], %w: f32[16,16] weight) -> "
#define Y    "  %y = matmul %x, %w\n"

TEST(tell_constant_results) {
  check(HEAD "(f32[8,16]) {\n" Y "  return %y\n}\n", false, true, "");
  check(HEAD "(f32[8]) {\n" Y
             "  %p = softmax %y\n  %s = reduce_sum %p {axes=[1], keepdims=0}\n  return %s\n}\n",
        false, false, "no result depends on the inputs, so nothing is proved: s (1 everywhere)");
  check(HEAD "(f32[8,16]) {\n" Y "  %z = sub %y, %y\n  return %z\n}\n", false, false,
        "no result depends on the inputs, so nothing is proved: z (zero)");
  check(HEAD "(f32[8,16]) {\n" Y "  %e = exp %y\n  %n = neg %e\n  %z = sqrt %n\n  return %z\n}\n", false,
        false, "no result depends on the inputs, so nothing is proved: z (not finite)");
}

TEST(tell_constant_beside_others) {
  check(HEAD "(f32[8,16], f32[8,16]) {\n" Y "  %z = sub %y, %y\n  return %y, %z\n}\n", false, true,
        "results that say nothing about the plan: z (zero)");
  check(HEAD "(f32[8,16]) {\n" Y "  %z = sqrt %y\n  return %z\n}\n", false, true,
        "results with elements that are not finite: z (64 of 128)");
}

// The loss depends on the inputs, no gradient does.
TEST(tell_gradients) {
  check(HEAD "(f32[]) {\n" Y "  %e = exp %y\n  %n = neg %e\n  %r = relu %n\n  %s = add %x, %r\n"
             "  %l = reduce_sum %s {keepdims=0}\n  return %l\n}\n",
        true, false, "no gradient depends on the inputs, so nothing is proved: w.grad (zero)");
}

// Weights of which the file says nothing but zeros would hide all that comes before them.
TEST(tell_given_weights) {
  static const char text[] =
      "func @main(%x: f32[4,4], %w: f32[4,4] weight = $1) -> (f32[4,4]) {\n  %y = matmul %x, %w\n"
      "  return %y\n}\n"
      "data $1 : f32[4,4] = base64\n"
      "  \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\"\n";
  check(text, false, true, "");
}
