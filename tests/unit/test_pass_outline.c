// test_pass_outline.c - repeated layers are found again after every call was inlined, and nothing else
// changes.
#include "eval/eval.h"
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"

static u32 calls_of(const prog *p, func f) {
  const func_info *m = func_get(p, p->main);
  u32 n = 0;
  for (u32 k = 0; k < m->body.n; k++) n += m->body.v[k].op == OP_call && m->body.v[k].callee.i == f.i;
  return n;
}

// Instructions of the largest function called n times; 0 if there is none.
static u32 block_called(const prog *p, u32 n) {
  u32 most = 0;
  for (u32 k = 1; k < p->funcs.n; k++)
    if (k != p->main.i && calls_of(p, (func){k}) == n) most = MAX(most, p->funcs.v[k]->body.n);
  return most;
}

static void same_numbers(const prog *p, const prog *q, const char *what) {
  arena *a = arena_new();
  u32 nin = func_get(p, p->main)->nparams, nout = func_get(p, p->main)->rets.n;
  eval_array *in = NEWN(a, eval_array, nin), *x = NEWN(a, eval_array, nout), *y = NEWN(a, eval_array, nout);
  REQUIRE(func_get(q, q->main)->nparams == nin && func_get(q, q->main)->rets.n == nout);
  REQUIRE(eval_random(p, 3, in, nin, a));
  REQUIRE(eval_run(p, &(eval_opts){.as_f64 = true}, in, nin, x, nout, a));
  REQUIRE(eval_run(q, &(eval_opts){.as_f64 = true}, in, nin, y, nout, a));
  for (u32 k = 0; k < nout; k++)
    CHECK_MSG(eval_difference(&x[k], &y[k], NULL) == 0, "%s: result %u differs", what, k);
  arena_free(a);
}

static const struct {
  const char *model;
  u32 calls, least; // a function called so often, of at least so many instructions
} families[] = {
    {"mlp-xs:layers=5,hidden=16", 5, 2},
    {"gpt2:layers=3,hidden=32,heads=4,vocab=64,positions=16", 3, 25},
    {"bert-base:layers=4,hidden=32,heads=4,vocab=64,positions=16", 4, 20},
    {"llama2-70b:layers=3,hidden=32,heads=4,kv_heads=2,ffn=48,vocab=64,positions=16", 3, 30},
    {"moe-8x125m:layers=3,hidden=32,heads=4,vocab=64,positions=16,experts=4", 3, 25},
    {"t5-small:layers=3,hidden=32,heads=4,head_dim=8,vocab=64,positions=16", 3, 12},
    {"vit-base:layers=5,hidden=32,heads=4,positions=32", 5, 20},
    {"resnet50:hidden=8,positions=32", 5, 8},
};

TEST(outline_families) {
  for (u32 k = 0; k < COUNT_OF(families); k++) {
    ctx *c = ctx_new();
    front_opts o = {.batch = 2};
    prog *p = front_family(c, families[k].model, &o);
    REQUIRE(p != NULL);
    prog *q = prog_clone(p, c);
    pass_inline(q);
    CHECK(ir_verify(q) && q->funcs.v[q->main.i]->body.n > p->funcs.v[p->main.i]->body.n);
    CHECK(pass_outline(q) >= 1);
    pass_compact(q);
    CHECK_MSG(block_called(q, families[k].calls) >= families[k].least,
              "%s: no block of %u instructions is called %u times", families[k].model, families[k].least,
              families[k].calls);
    if (!CHECK(ir_verify(q))) puts(diag_render(c, ctx_arena(c)));
    same_numbers(p, q, families[k].model);
    prog_free(p);
    prog_free(q);
    ctx_free(c);
  }
}

// Main's instructions in a random order that is still an order.
static void shuffle(prog *p, u64 *rng) {
  func_info *f = func_get(p, p->main);
  u32 n = f->body.n, nready = 0;
  instr *old = arena_dup(p->a, f->body.v, n * sizeof *old);
  u32 *ready = NEWN(p->a, u32, n), *missing = ZNEWN(p->a, u32, n), *was = NEWN(p->a, u32, n);
  uses u = func_uses(p->a, f);
  for (u32 k = 0; k < n; k++) {
    for (u32 o = 0; o < old[k].nopd; o++) missing[k] += val(f, opd_of(f, &old[k], o))->def != 0;
    if (!missing[k]) ready[nready++] = k;
  }
  for (u32 k = 0; k < n; k++) {
    u32 at = (u32)(rng_next(rng) % nready), i = ready[at];
    ready[at] = ready[--nready];
    f->body.v[k] = old[i], was[k] = i;
    for (u32 r = 0; r < old[i].nres; r++) {
      value v = old[i].res + r;
      f->values.v[v].def = k + 1;
      for (u32 j = u.begin[v]; j < u.begin[v + 1]; j++)
        if (u.use[j] && --missing[u.use[j] - 1] == 0) ready[nready++] = u.use[j] - 1;
    }
  }
}

TEST(outline_in_any_order) {
  u64 rng = 1;
  for (u32 k = 0; k < COUNT_OF(families); k++) {
    ctx *c = ctx_new();
    front_opts o = {.batch = 2};
    prog *p = front_family(c, families[k].model, &o);
    REQUIRE(p != NULL);
    prog *q = prog_clone(p, c);
    pass_inline(q);
    shuffle(q, &rng);
    CHECK(ir_verify(q));
    pass_outline(q);
    pass_compact(q);
    CHECK_MSG(block_called(q, families[k].calls) >= families[k].least,
              "%s: no block of %u instructions is called %u times", families[k].model, families[k].least,
              families[k].calls);
    CHECK(ir_verify(q));
    same_numbers(p, q, families[k].model);
    prog_free(p);
    prog_free(q);
    ctx_free(c);
  }
}

TEST(outline_imports) {
  static const struct {
    const char *path;
    i64 batch;
    u32 calls, least;
  } files[] = {
      {"onnx/srijanie_ortgraphs__torchtune_llama2_forward.onnx", 1, 32, 60},
      {"onnx/onnx_light_resnet50.onnx", 0, 5, 8},
      {"onnx/onnx_light_vgg19.onnx", 0, 4, 4},
      {"onnx/izan_resnet50_ort__training_model.onnx", 2, 5, 10},
      {"reference/gpt_small_loss_train.onnx", 0, 4, 30},
  };
  for (u32 k = 0; k < COUNT_OF(files); k++) {
    const char *path = test_data(files[k].path); // may leave
    ctx *c = ctx_new();
    prog *p = front_load(c, path, &(front_opts){.batch = files[k].batch});
    CHECK_STR(p ? "" : diag_render(c, ctx_arena(c)), "");
    REQUIRE(p != NULL);
    pass_outline(p);
    CHECK_MSG(block_called(p, files[k].calls) >= files[k].least,
              "%s: no block of %u instructions is called %u times", files[k].path, files[k].least,
              files[k].calls);
    CHECK(ir_verify(p));
    prog_free(p);
    ctx_free(c);
  }
}
