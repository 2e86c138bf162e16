// test_batchnorm.c - batch norm over groups of the batch: what it computes, what a plan makes of it, and that
// samples stay where they are.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *src;
  planner *pl;
} state;

static state begin(void) {
  state s = {.c = ctx_new(), .a = arena_new()};
  s.src = front_load(s.c, "examples/batchnorm.heddle", &(front_opts){.loss = true});
  REQUIRE(s.src);
  s.pl = planner_new(s.src);
  return s;
}
static void end(state *s) {
  planner_free(s->pl);
  prog_free(s->src);
  arena_free(s->a);
  ctx_free(s->c);
}

static const char *text_of(state *s, const prog *p) {
  strbuf b = {.a = s->a};
  ir_print(p, &b);
  return sb_str(&b);
}

static hybrid_opts opts(u32 data, u32 micro, bool sync) {
  return (hybrid_opts){.s = strategy_of("dp=%u mb=%u bn=%s", data, micro, sync ? "sync" : "local"),
                       .train = true,
                       .optim = optim_default(OPTIM_SGD)};
}

// The first column of x[4,1] in two groups: 1 and 3, 10 and 30.
TEST(batchnorm_groups_have_their_own_statistics) {
  static const char text[] =
      "func @main(%x: f64[4,1], %g: f64[1], %b: f64[1]) -> (f64[4,1], f64[1], f64[1]) {\n"
      "  %y, %m, %v = batchnorm_train %x, %g, %b {eps=0.0, bn_groups=2}\n"
      "  return %y, %m, %v\n"
      "}\n";
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = ir_parse(c, sym_of(c, "text"), text, sizeof text - 1);
  REQUIRE(p);
  double x[] = {1, 3, 10, 30}, g[] = {2}, b[] = {5};
  eval_array in[] = {{.s = {DT_F64, 2, {4, 1}}, .data = x},
                     {.s = {DT_F64, 1, {1}}, .data = g},
                     {.s = {DT_F64, 1, {1}}, .data = b}},
             out[3];
  REQUIRE(eval_run(p, &(eval_opts){0}, in, 3, out, 3, a));
  static const double y[] = {3, 7, 3, 7};
  for (u32 k = 0; k < 4; k++) CHECK_CLOSE(((double *)out[0].data)[k], y[k], 1e-15);
  CHECK_CLOSE(*(double *)out[1].data, 2, 1e-15); // of the first group
  CHECK_CLOSE(*(double *)out[2].data, 1, 1e-15);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}

// Communication in p of the batch: tensors of four dimensions, the first of which is all samples.
static u32 samples_moved(const prog *p, i64 batch) {
  u32 n = 0;
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 k = 0; k < p->funcs.v[f]->body.n; k++) {
      const func_info *fi = p->funcs.v[f];
      const instr *i = &fi->body.v[k];
      if (!coll_find((opcode)i->op) || !instr_nopd(fi, i)) continue;
      const shape *s = &val_type(p, fi, opd_of(fi, i, 0))->s;
      n += s->nd >= 4 && s->dim[0] == batch;
    }
  return n;
}

static i64 groups_in(const prog *p) { // of all of them; -1: they differ
  i64 all = 0;
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 k = 0; k < p->funcs.v[f]->body.n; k++) {
      const instr *i = &p->funcs.v[f]->body.v[k];
      if (i->op != OP_batchnorm_train && i->op != OP_batchnorm_dx) continue;
      i64 g = attr_int(attrs_get(p, i->at), A_bn_groups, 1);
      all = all && all != g ? -1 : g;
    }
  return all;
}

TEST(batchnorm_of_a_rank_is_its_own) {
  state s = begin();
  const char *before = text_of(&s, s.src);
  hybrid_opts o = opts(4, 2, false);
  plan *pn = policy_hybrid(s.pl, s.a, &o);
  prog *p = pn ? plan_apply(s.pl, pn, NULL) : NULL;
  CHECK_MSG(p && plan_validate(p), "%s", diag_render(s.c, s.a));
  if (p) {
    CHECK_EQ_I64(pn->batchnorm_groups, 8);
    CHECK_EQ_I64(groups_in(p), 8);
    CHECK_EQ_I64(samples_moved(p, 24), 0);
    CHECK(plan_batchnorm(s.src, pn).samples == 24 && plan_batchnorm(s.src, pn).groups == 8);
    prog_free(p);
  }
  CHECK_STR(text_of(&s, s.src), before); // the caller's program stays what it was,
  CHECK_EQ_I64(groups_in(planner_source(s.pl)), 1);
  plan *one = plan_single(s.a, s.src, true, &o.optim); // and so does a plan without groups
  p = plan_apply(s.pl, one, NULL);
  CHECK_EQ_I64(p ? groups_in(p) : 0, 1);
  prog_free(p);
  end(&s);
}

TEST(batchnorm_synchronised_moves_sums) {
  static const u32 micro[] = {1, 3};
  state s = begin();
  for (u32 k = 0; k < COUNT_OF(micro); k++) {
    hybrid_opts o = opts(4, micro[k], true);
    plan *pn = policy_hybrid(s.pl, s.a, &o);
    prog *p = pn ? plan_apply(s.pl, pn, NULL) : NULL;
    CHECK_MSG(p && plan_validate(p), "%s", diag_render(s.c, s.a));
    if (!p) continue;
    CHECK_EQ_I64(plan_batchnorm(s.src, pn).groups, micro[k]);
    CHECK_EQ_I64(samples_moved(p, 24), 0);
    CHECK(func_find(p, sym_of(s.c, "batchnorm_train.split")).i);
    prog_free(p);
  }
  end(&s);
}

static u32 groups_of(const prog *p, const strategy *x) {
  batchnorm_stats has;
  pass_batchnorm_of(p, &has);
  return policy_batchnorm(&has, x);
}

// A batch that the ranks cannot share is refused as without batch norm; groups that the model has already
// stay.
TEST(batchnorm_groups_that_are_not_given) {
  state s = begin();
  hybrid_opts o = opts(5, 1, false);
  CHECK_EQ_I64(groups_of(s.src, &o.s), 0);
  CHECK(!policy_hybrid(s.pl, s.a, &o) && diag_get(s.c, 0).id == E_DIVIDE);
  diag_clear(s.c);
  o = opts(1, 1, false);
  CHECK_EQ_I64(groups_of(s.src, &o.s), 0);
  o = opts(2, 2, false);
  CHECK_EQ_I64(groups_of(s.src, &o.s), 4);
  REQUIRE(pass_batchnorm(s.src, 2, (loc){0}));
  CHECK_EQ_I64(groups_of(s.src, &o.s), 0);
  end(&s);
}

// What is kept beside the loss in another stage sends no gradient back, or there were one through statistics.
TEST(batchnorm_running_statistics_in_a_later_stage) {
  state s = begin();
  hybrid_opts o = opts(1, 2, false);
  o.s.pp.n = 3;
  plan *pn = policy_hybrid(s.pl, s.a, &o);
  verify_report r = {0};
  CHECK_MSG(pn && plan_verify(s.pl, pn, NULL, &(verify_opts){.seed = 3}, s.a, &r) && r.passed, "%s",
            diag_render(s.c, s.a));
  end(&s);
}

// A ResNet that was exported with its training step, backward included.
TEST(batchnorm_of_an_exported_training_step) {
  const char *path = test_data("onnx/izan_resnet50_ort__training_model.onnx");
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = front_load(c, path, &(front_opts){.batch = 16, .loss = true});
  REQUIRE(src);
  planner *pl = planner_new(src);
  hybrid_opts o = opts(8, 1, false);
  plan *pn = policy_hybrid(pl, a, &o);
  prog *p = pn ? plan_apply(pl, pn, NULL) : NULL;
  CHECK_MSG(p && plan_validate(p), "%s", diag_render(c, a));
  CHECK(p && groups_in(p) == 8 && samples_moved(p, 16) == 0);
  prog_free(p);
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
}
