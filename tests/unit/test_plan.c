// test_plan.c - plans small enough to see what they are about, each verified in numbers: what once went
// wrong.
#include "plan/plan.h"
#include "test.h"
#include "two_products.h"
#include <stdlib.h>

typedef struct {
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
} session;

static session open_source(const char *text) {
  session s = {ctx_new(), arena_new(), NULL, NULL};
  s.src = ir_parse(s.c, sym_of(s.c, "model"), text, strlen(text));
  if (s.src) s.pl = planner_new(s.src);
  CHECK_MSG(s.src != NULL, "%s", diag_render(s.c, s.a));
  REQUIRE(s.src);
  return s;
}

static void close_source(session *s) {
  planner_free(s->pl);
  prog_free(s->src);
  arena_free(s->a);
  ctx_free(s->c);
}

static void check_plan(const char *model, const char *text) {
  session s = open_source(model);
  plan *pn = plan_parse(s.a, planner_source(s.pl), NULL, sym_of(s.c, "plan"), text, strlen(text));
  verify_report r = {0};
  bool ok = pn && plan_verify(s.pl, pn, NULL, &(verify_opts){.seed = 3}, s.a, &r) && r.passed;
  CHECK_MSG(ok, "%s", diag_render(s.c, s.a));
  prog *p = pn ? plan_apply(s.pl, pn, NULL) : NULL;
  CHECK_MSG(p && ir_verify(p) && infer_verify(p), "%s", diag_render(s.c, s.a));
  if (p) prog_free(p);
  close_source(&s);
}

#define TRAIN "heddle-plan: 1\ntrain: {optimizer: sgd}\n"

// A sum over the batch and one over a weight, added.
#define DECAY                                                                                                \
  "func @main(%x: f32[12,8], %w: f32[8,8] weight) -> (f32[]) {\n"                                            \
  "  %1 = matmul %x, %w\n"                                                                                   \
  "  %2 = tanh %1\n"                                                                                         \
  "  %3 = reduce_sum %2 {axes=[0,1], keepdims=0}\n"                                                          \
  "  %4 = mul %w, %w\n"                                                                                      \
  "  %5 = reduce_sum %4 {axes=[0,1], keepdims=0}\n"                                                          \
  "  %6 = add %3, %5\n"                                                                                      \
  "  %7 = scale %6 {alpha=0.5}\n"                                                                            \
  "  return %7\n"                                                                                            \
  "}\n"

// A function sharded for a group with an axis is not the one for a group without; nor is a path, which may
// use an axis that neither layout names.
TEST(plan_segments_with_other_axes) {
  check_plan(TWO,
             TRAIN "axes: {a: 3, b: 2}\nmeshes:\n  m: {axes: [a, b]}\nsegments:\n"
                   "  - {from: 1, to: 1, on: m}\n  - {from: 2, to: 5, on: m, at: {b: 1}}\n"
                   "trans:\n  - {input: x, dim: 0, axis: a}\n  - {input: y, dim: 0, axis: a}\n"
                   "rest: {states: [a, b], weights: [b]}\norder:\n  - \"F0.0 B0.0\"\n  - \"F1.0 B1.0\"\n");
}

// Places that are the coordinates of no axis, and axes of size 1.
TEST(plan_weight_on_unlike_places) {
  check_plan(TIED, TRAIN
             "axes: {a: 2, b: 2, c: 1}\nmeshes:\n  m: {axes: [a, b, c]}\nsegments:\n"
             "  - {from: 1, to: 1, on: m, at: {a: 1, b: 0}}\n  - {from: 2, to: 5, on: m, at: {a: 0, c: 0}}\n"
             "trans:\n  - {in: main, instr: 2, operand: 1, dim: 0, axis: b}\n"
             "rest: {gradients: [b]}\norder:\n  - \"F0.0 B0.0\"\n  - \"F1.0 B1.0\"\n");
  check_plan(TIED, TRAIN "axes: {a: 4}\nmeshes:\n  m: {axes: [a]}\nsegments:\n" // the second coordinate first
                         "  - {from: 1, to: 1, on: m, at: {a: 3}}\n  - {from: 2, to: 5, on: m, at: {a: 1}}\n"
                         "order:\n  - \"F0.0 B0.0\"\n  - \"F1.0 B1.0\"\n");
}

// An accumulator has one layout from microbatch to microbatch, though its two gradients come in different
// ones.
TEST(plan_accumulator_of_two_gradients) {
  check_plan(
      TIED,
      TRAIN "axes: {a: 2}\ntime: {mb: 3}\nmeshes:\n  m: {axes: [a]}\nsegments:\n  - {from: 1, to: 5, on: m}\n"
            "trans:\n  - {input: x, dim: 0, axis: mb}\n  - {input: y, dim: 0, axis: mb}\n"
            "  - {input: x, dim: 1, axis: a}\n"
            "  - {in: main, instr: 2, operand: 0, dim: 0, axis: a, stride: 1}\n"
            "order:\n  - \"(F0.0 B0.0)*3\"\n");
}

// What is the same for all microbatches counts once in a sum over them; the gradient of such a sum is the
// same for all.
TEST(plan_sums_over_time) {
  static const char *const cut[] = {"  - {from: 1, to: 7, on: m}\n",
                                    "  - {from: 1, to: 3, on: m}\n  - {from: 4, to: 7, on: m}\n",
                                    "  - {from: 1, to: 6, on: m}\n  - {from: 7, to: 7, on: m}\n",
                                    "  - {from: 1, to: 4, on: m}\n  - {from: 5, to: 7, on: m}\n"};
  for (u32 k = 0; k < COUNT_OF(cut); k++) {
    char text[1024];
    snprintf(text, sizeof text,
             TRAIN "axes: {a: 2}\ntime: {mb: 3}\nmeshes:\n  m: {axes: [a]}\nsegments:\n%strans:\n"
                   "  - {input: x, dim: 0, axis: mb}\norder:\n  - \"%s\"\n",
             cut[k], k ? "(F0.0 F1.0 B1.0 B0.0)*3" : "(F0.0 B0.0)*3");
    check_plan(DECAY, text);
  }
}

// All microbatches read the same weight: what each of them needs a piece of is kept whole.
TEST(plan_weight_split_over_time) {
  static const char model[] = "func @main(%x: f32[12], %w: f32[12] weight) -> (f32[12]) {\n"
                              "  %1 = mul %x, %w\n  return %1\n}\n";
  static const char text[] = "heddle-plan: 1\naxes: {a: 2}\ntime: {mb: 2}\nmeshes:\n  m: {axes: [a]}\n"
                             "segments:\n  - {from: 1, to: 1, on: m}\n"
                             "trans:\n  - {input: x, dim: 0, axis: mb}\norder:\n  - \"(F0.0)*2\"\n";
  check_plan(model, text);
  session s = open_source(model);
  plan *pn = plan_parse(s.a, planner_source(s.pl), NULL, sym_of(s.c, "plan"), text, strlen(text));
  prog *p = pn ? plan_apply(s.pl, pn, NULL) : NULL;
  CHECK_MSG(p && plan_validate(p), "%s", diag_render(s.c, s.a));
  if (p) prog_free(p);
  close_source(&s);
}

// An operand split over time says how an instruction runs; what a plan chooses comes after it.
TEST(plan_time_comes_first) {
  check_plan(
      TWO,
      TRAIN "axes: {a: 2}\ntime: {mb: 3}\nmeshes:\n  m: {axes: [a]}\nsegments:\n  - {from: 1, to: 5, on: m}\n"
            "trans:\n  - {input: x, dim: 0, axis: mb}\n  - {input: y, dim: 0, axis: mb}\n"
            "  - {in: main, instr: 2, operand: 0, dim: 0, axis: a, stride: 6, weak: true}\norder:\n  - "
            "\"(F0.0 B0.0)*3\"\n");
}

// Only one of the segments that share a weight has a backward; another weight has none at all and is updated
// with a gradient of zero, as on one device.
TEST(plan_weights_without_gradient) {
  static const char model[] = "func @main(%x: f32[12,8], %w: f32[8,8] weight, %g: f32[8] weight, %n: i32[8] "
                              "weight) -> (f32[], f32[12,8]) {\n"
                              "  %1 = matmul %x, %w\n"
                              "  %2 = mul %1, %1\n"
                              "  %3 = reduce_sum %2 {axes=[0,1], keepdims=0}\n"
                              "  %4 = matmul %1, %w\n"
                              "  %5 = cast %n {dtype=f32}\n"
                              "  %6 = add %g, %5\n"
                              "  %7 = add %4, %6\n"
                              "  return %3, %7\n"
                              "}\n";
  check_plan(model,
             "heddle-plan: 1\ntrain: {optimizer: adamw}\naxes: {a: 2}\nmeshes:\n  m: {axes: [a]}\nsegments:\n"
             "  - {from: 1, to: 3, on: m, at: {a: 1}}\n  - {from: 4, to: 7, on: m}\nrest: {states: "
             "[a]}\norder:\n  - \"F0.0 B0.0\"\n  - \"F1.0\"\n");
}

// The reference of all verification is the trivial plan; here it is held against the training step that
// pass_train makes without plans.
// Shares that add up to another total: no rank is further than one from its part, but where it would have nothing.
TEST(plan_shares_of_another_total) {
  u64 seed = 1;
  for (u32 t = 0; t < 2000; t++) {
    u32 v[40], was[40], n = 1 + (u32)(seed = hash_u64(seed, 1)) % 40;
    i64 sum = 0, all = 0;
    for (u32 k = 0; k < n; k++) was[k] = v[k] = 1 + (u32)(seed = hash_u64(seed, 1)) % 50, sum += v[k];
    const i64 total = (i64)((seed = hash_u64(seed, 1)) % 400);
    if (!CHECK(strategy_shares_near(v, n, total) == (total >= (i64)n)) || total < n) continue;
    bool plain = true;
    for (u32 k = 0; k < n; k++) all += v[k], plain &= was[k] * total >= sum;
    CHECK_EQ_I64(all, total);
    for (u32 k = 0; k < n; k++) {
      CHECK(v[k] >= 1);
      if (plain) CHECK(llabs(v[k] * sum - was[k] * total) < sum);
    }
  }
}

TEST(plan_single_is_the_training_step) {
  session s = open_source(DECAY);
  optim_opts sgd = optim_default(OPTIM_SGD);
  plan *one = plan_single(s.a, s.src, true, &sgd);
  one->keep_gradients = true;
  prog *p = plan_apply(s.pl, one, NULL), *t = prog_clone(s.src, s.c);
  plan_numbers x, y;
  REQUIRE(p && pass_train(t, &sgd, true));
  REQUIRE(plan_evaluate(s.src, p, 1, s.a, &x) && plan_evaluate(s.src, t, 1, s.a, &y));
  CHECK_EQ_I64(x.n, y.n); // loss, gradient, weight
  for (u32 k = 0; k < MIN(x.n, y.n); k++)
    CHECK_MSG(eval_difference(&x.v[k], &y.v[k], NULL) < 1e-13, "result %u differs", k);
  prog_free(t);
  prog_free(p);
  close_source(&s);
}

// Softmax and cross entropy over classes that several ranks share: what is exchanged is a number a position,
// never the scores.
static u32 gathers(const char *model, const char *text) {
  check_plan(model, text);
  session s = open_source(model);
  plan *pn = plan_parse(s.a, planner_source(s.pl), NULL, sym_of(s.c, "plan"), text, strlen(text));
  prog *p = pn ? plan_apply(s.pl, pn, NULL) : NULL;
  u32 n = 0;
  for (u32 f = 1; p && f < p->funcs.n; f++)
    for (u32 k = 0; k < p->funcs.v[f]->body.n; k++) n += p->funcs.v[f]->body.v[k].op == OP_all_gather;
  if (p) prog_free(p);
  close_source(&s);
  return n;
}
#define SPLIT                                                                                                \
  TRAIN "axes: {tp: 4}\nmeshes:\n  m: {axes: [tp]}\n"                                                        \
        "segments:\n  - {from: 1, to: %u, on: m}\ntrans:\n"                                                  \
        "  - {in: main, instr: 1, op: matmul, operand: 1, dim: 1, axis: tp, stride: 8}\n"                    \
        "order:\n  - \"F0.0 B0.0\"\n"
TEST(plan_classes_on_several_ranks) {
  static const char *const loss[] = {"%2 = cross_entropy %1, %t",
                                     "%2 = cross_entropy %1, %t {reduce=\"sum\"}",
                                     ("%3 = cross_entropy %1, %t {reduce=\"none\"}\n"
                                      "  %2 = reduce_sum %3 {axes=[0], keepdims=0}")};
  char model[600], two[400];
  for (u32 k = 0; k < COUNT_OF(loss); k++) {
    snprintf(model, sizeof model,
             "func @main(%%x: f32[12,8], %%t: i64[12] label, %%w: f32[8,32] weight) -> (f32[]) {\n"
             "  %%1 = matmul %%x, %%w\n  %s\n  return %%2\n}\n",
             loss[k]);
    snprintf(two, sizeof two, SPLIT, k == 2 ? 3 : 2);
    CHECK_EQ_I64(gathers(model, two), 0);
  }
  static const char *const norm[] = {"softmax", "log_softmax"};
  for (u32 k = 0; k < COUNT_OF(norm); k++) {
    snprintf(model, sizeof model,
             "func @main(%%x: f32[12,8], %%y: f32[12,32] label, %%w: f32[8,32] weight) -> (f32[]) {\n"
             "  %%1 = matmul %%x, %%w\n  %%2 = %s %%1\n  %%3 = sub %%2, %%y\n  %%4 = mul %%3, %%3\n"
             "  %%5 = reduce_sum %%4 {axes=[0,1], keepdims=0}\n  return %%5\n}\n",
             norm[k]);
    snprintf(two, sizeof two, SPLIT, 5);
    CHECK_EQ_I64(gathers(model, two), 0);
  }
}

// A mean over labels other than -100 is planned as a mean over all: ranks and microbatches have shares of it.
TEST(plan_labels_that_are_ignored) {
  check_plan("func @main(%x: f32[12,8], %t: i64[12] label, %w: f32[8,32] weight) -> (f32[]) {\n"
             "  %1 = matmul %x, %w\n"
             "  %2 = cross_entropy %1, %t {ignore=-100}\n"
             "  return %2\n"
             "}\n",
             TRAIN "axes: {dp: 2}\ntime: {mb: 3}\nmeshes:\n  m: {axes: [dp]}\n"
                   "segments:\n  - {from: 1, to: 2, on: m}\ntrans:\n"
                   "  - {input: x, dim: 0, axis: dp}\n  - {input: t, dim: 0, axis: dp}\n"
                   "  - {input: x, dim: 0, axis: mb}\n  - {input: t, dim: 0, axis: mb}\n"
                   "order:\n  - \"(F0.0 B0.0)*3\"\n");
}

// Stages that do the same are one function; not if the plan says otherwise for one of them.
static u32 stage_functions(const char *trans) {
  session s = open_source("func @main(%x: f32[12,8], %u: f32[8,8] weight, %v: f32[8,8] weight, "
                          "%w: f32[8,8] weight) -> (f32[12,8]) {\n"
                          "  %1 = matmul %x, %u\n"
                          "  %2 = matmul %1, %v\n"
                          "  %3 = matmul %2, %w\n"
                          "  return %3\n"
                          "}\n");
  char text[800];
  snprintf(text, sizeof text,
           "heddle-plan: 1\naxes: {pp: 3, tp: 2}\nmeshes:\n  m: {axes: [pp, tp]}\n"
           "segments:\n  - {from: 1, to: 1, on: m, at: {pp: 0}}\n  - {from: 2, to: 2, on: m, at: {pp: 1}}\n"
           "  - {from: 3, to: 3, on: m, at: {pp: 2}}\n%sorder:\n  - \"F0.0\"\n  - \"F1.0\"\n  - \"F2.0\"\n",
           trans);
  plan *pn = plan_parse(s.a, planner_source(s.pl), NULL, sym_of(s.c, "plan"), text, strlen(text));
  prog *p = pn ? plan_apply(s.pl, pn, NULL) : NULL;
  if (!CHECK_MSG(p, "%s", diag_render(s.c, s.a))) return 0;
  u32 n = p->funcs.n - 2; // without number 0 and main
  prog_free(p);
  close_source(&s);
  return n;
}
TEST(plan_stages_share_functions) {
  CHECK_EQ_I64(stage_functions(""), 2); // the last one may leave sums undone
  CHECK_EQ_I64(
      stage_functions("trans:\n  - {in: main, instr: 2, op: matmul, operand: 1, dim: 1, axis: tp}\n"), 3);
}

TEST(plan_verify_tells_what_differs) {
  session s = open_source(DECAY);
  plan *one = plan_single(s.a, s.src, false, NULL);
  prog *p = plan_apply(s.pl, one, NULL);
  plan_numbers x, y;
  verify_report r;
  REQUIRE(p && plan_evaluate(s.src, p, 1, s.a, &x) && plan_evaluate(s.src, p, 1, s.a, &y));
  CHECK(plan_compare(s.c, &x, &y, 0, s.a, &r) && r.passed && r.worst == 0);
  *(double *)y.v[0].data *= 1 + 1e-8;
  CHECK(plan_compare(s.c, &x, &y, 0, s.a, &r) && !r.passed);
  CHECK_CLOSE(r.worst, 1e-8, 1e-6);
  CHECK_STR(diag_row_of(diag_get(s.c, 0).id)->code, "E0701");
  CHECK(plan_compare(s.c, &x, &y, 1e-7, s.a, &r) && r.passed);
  prog_free(p);
  close_source(&s);
}

// Zero in exact arithmetic: as far from the model's as from itself on other inputs is rounding; a partial sum is not,
// nor is anything where an element depends on the inputs.
TEST(plan_verify_measures_rounding) {
  const session s = open_source(DECAY);
  double zero[4] = {1e-15, -2e-15, 0, 1e-15}, there[4] = {-1e-15, 1e-15, 2e-15, 0}, got[4] = {0, 2e-15, 0, 0},
         large[2] = {1, 2}, larger[2] = {2, 3}, same[2] = {1, 2};
  const shape four = {.t = DT_F64, .nd = 1, .dim = {4}}, two = {.t = DT_F64, .nd = 1, .dim = {2}};
  const char *name[2] = {"b.grad", "w.grad"};
  eval_array want_v[2] = {{four, zero}, {two, large}}, got_v[2] = {{four, got}, {two, same}},
             other_v[2] = {{four, there}, {two, larger}};
  const plan_numbers want = {2, name, want_v}, is = {2, name, got_v}, other = {2, name, other_v};
  const double scale[2] = {1e-8, 1e-8}, *all = plan_scales(&want, s.a);
  verify_report r;
  const double tolerance = 1e-11; // relative to 1e-5 of all gradients it is 1e-16
  REQUIRE(plan_compare(s.c, &want, &is, tolerance, s.a, &r));
  CHECK(!r.passed && !strcmp(r.row[0].name, "b.grad"));
  plan_tell(&want, all, &other, &r), plan_rounding(&r);
  CHECK(r.passed && r.row[1].rounding && !r.row[0].rounding && !strcmp(r.row[1].name, "b.grad"));
  got[1] = 1e-13; // a sum that was left undone
  REQUIRE(plan_compare(s.c, &want, &is, tolerance, s.a, &r));
  plan_tell(&want, all, &other, &r), plan_rounding(&r);
  CHECK(!r.passed && !r.row[0].rounding && !strcmp(r.row[0].name, "b.grad"));
  got[1] = 2e-15, there[0] = 1e-9; // it depends on the inputs
  REQUIRE(plan_compare(s.c, &want, &is, tolerance, s.a, &r));
  plan_tell(&want, scale, &other, &r), plan_rounding(&r);
  CHECK(!r.passed);
  close_source((session *)&s);
}

// The batch in both dimensions of one input: an axis splits the first.
TEST(plan_batch_twice) {
  session s = open_source("func @main(%x: f32[6,6], %w: f32[6,6] weight) -> (f32[6,6]) {\n"
                          "  %t = transpose %x {perm=[1,0]}\n  %s = add %x, %t\n"
                          "  %y = matmul %s, %w\n  return %y\n}\n");
  plan *pn = policy_hybrid(s.pl, s.a, &(hybrid_opts){.s = strategy_of("dp=3 mb=2")});
  CHECK_MSG(pn != NULL, "%s", diag_render(s.c, s.a));
  REQUIRE(pn);
  CHECK_EQ_I64(pn->ntrans, 2);
  for (u32 i = 0; i < pn->ntrans; i++) CHECK_EQ_I64(pn->trans[i].dim, 0);
  close_source(&s);
}
