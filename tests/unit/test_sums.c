// test_sums.c - gradients that are summed beside the last backward: the function that does so ends with the gradient that is
// made last, which is when its task has ended.
#include "split_model.h"

static const instr *maker(const func_info *f, value v) {
  return val(f, v)->def ? &f->body.v[val(f, v)->def - 1] : NULL;
}

// How many gradients a function sums: its result before the last packs all of them, and the last is the one made last, as
// it is before it is summed.
static u32 sums_of(const func_info *f, u8 on) {
  u32 n = 0, latest = 0;
  for (u32 k = 0; k < f->body.n; k++) n += f->body.v[k].strm == on;
  if (!n) return 0;
  const instr *all = maker(f, f->rets.v[f->rets.n - 2]);
  REQUIRE(all && all->op == OP_pack);
  for (u32 k = 0; k < all->nopd; k++) {
    value v = opd_of(f, all, k);
    while (maker(f, v) && maker(f, v)->strm == on) v = opd_of(f, maker(f, v), 0);
    latest = MAX(latest, val(f, v)->def);
  }
  CHECK_EQ_I64(val(f, f->rets.v[f->rets.n - 1])->def, latest);
  return n;
}

TEST(sums_end_with_the_last_gradient) {
  static const char *const lines[] = {"dp=2 mb=2 overlap=dp", "dp=2 pp=2 mb=2 overlap=pp+dp",
                                      "dp=2 pp=2 mb=2 schedule=zb-h1 overlap=pp+dp",
                                      "dp=2 zero=1 overlap=dp"};
  for (u32 i = 0; i < COUNT_OF(lines); i++) {
    const hybrid_opts h = {
        .s = strategy_of("%s", lines[i]), .train = true, .optim = optim_default(OPTIM_ADAM)};
    split_model m = split_open("gpt2:layers=4,hidden=32,heads=4,vocab=64", 0, &h);
    CHECK_MSG(m.p != NULL, "%s: %s", lines[i], diag_render(m.c, m.a));
    REQUIRE(m.p != NULL);
    const u8 on = (u8)stream_of(m.p, m.pn->sum_stream).i;
    u32 n = 0, functions = 0;
    for (u32 f = 1; f < m.p->funcs.n; f++) {
      const u32 sums = f == m.p->main.i ? 0 : sums_of(m.p->funcs.v[f], on);
      n += sums, functions += sums > 0;
    }
    CHECK_MSG(n >= 4 && functions, "%s: %u sums in %u functions", lines[i], n, functions);
    split_close(&m);
  }
}

// Elements of all that ranks sum in one run of a function of one rank, but for single numbers (the loss).
static i64 summed_in(const prog *p, func fn) {
  const func_info *f = func_get(p, fn);
  i64 n = 0;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    const i64 of = in->op == OP_all_reduce ? shape_elems(&val_type(p, f, in->res)->s) : 0;
    n += in->op == OP_call ? summed_in(p, in->callee) : of > 1 ? of : 0;
  }
  return n;
}

// A data rank sums each parameter once in a step, which takes 2 (n - 1) / n of their bytes, however many microbatches
// there are: tables of relative positions, whose gradients come out of far larger ones, as the others, and what is used
// transposed as well.
TEST(sums_are_of_each_parameter_once) {
  static const char *const models[] = {
      "t5-small:layers=2,hidden=32,heads=4,vocab=64", "swin-t:layers=8,hidden=24",
      "gpt2:layers=2,hidden=32,heads=4,vocab=64,positions=16", "tests/transposed.heddle"};
  for (u32 i = 0; i < COUNT_OF(models); i++)
    for (u32 mb = 1; mb <= 2; mb++) {
      const hybrid_opts h = {
          .s = strategy_of("dp=2 mb=%u", mb), .train = true, .optim = optim_default(OPTIM_ADAM)};
      split_model m = split_open(models[i], 0, &h);
      CHECK_MSG(m.p != NULL, "%s: %s", models[i], diag_render(m.c, m.a));
      REQUIRE(m.p != NULL);
      const func_info *f = func_get(m.src, m.src->main);
      i64 all = 0;
      for (u32 k = 0; k < f->nparams; k++)
        if (f->params.v[k].r == ROLE_WEIGHT) all += shape_elems(&val_type(m.src, f, k + 1)->s);
      prog *one = plan_lower(m.p, 0);
      REQUIRE(one != NULL);
      CHECK_EQ_I64(summed_in(one, one->main), all);
      prog_free(one);
      split_close(&m);
    }
}

// By call of an update in main, in order: the first parameter that it is given.
static u32 updated(const prog *p, u32 *first, u32 most) {
  const func_info *f = func_get(p, p->main);
  u32 n = 0;
  for (u32 k = 0; k < f->body.n && n < most; k++)
    if (f->body.v[k].op == OP_call && f->body.v[k].flags & INSTR_UPDATE)
      first[n++] = opd_of(f, &f->body.v[k], 0);
  return n;
}

// Sums beside the backward end with those of the first layers, so the last layers are updated first.
TEST(sums_beside_the_backward_are_updated_in_their_order) {
  for (u32 beside = 0; beside < 2; beside++) {
    const hybrid_opts h = {.s = strategy_of(beside ? "dp=2 overlap=dp" : "dp=2"),
                           .train = true,
                           .optim = optim_default(OPTIM_ADAM)};
    split_model m = split_open("gpt2:layers=4,hidden=32,heads=4,vocab=64", 0, &h);
    REQUIRE(m.p != NULL);
    u32 first[8];
    const u32 n = updated(m.p, first, COUNT_OF(first));
    CHECK(n >= 4);
    for (u32 k = 1; k < n; k++) CHECK(beside ? first[k] < first[k - 1] : first[k] > first[k - 1]);
    split_close(&m);
  }
}
