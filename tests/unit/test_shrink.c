// test_shrink.c - shrunk models keep their form and can be run.
#include "eval/eval.h"
#include "front/front.h"
#include "infer/infer.h"
#include "pass/pass.h"
#include "test.h"
#include <math.h>

static i64 largest(const prog *p) {
  i64 n = 0;
  for (u32 f = 1; f < p->funcs.n; f++)
    for (value v = 1; v < p->funcs.v[f]->values.n; v++)
      n = MAX(n, shape_elems(&val_type(p, p->funcs.v[f], v)->s));
  return n;
}

static void runs(const prog *p, const char *what) {
  arena *a = arena_new();
  u32 nin = func_get(p, p->main)->nparams, nout = func_get(p, p->main)->rets.n;
  eval_array *in = NEWN(a, eval_array, nin), *out = NEWN(a, eval_array, nout);
  bool ok = eval_random(p, 1, in, nin, a) && eval_run(p, &(eval_opts){.as_f64 = true}, in, nin, out, nout, a);
  CHECK_MSG(ok && isfinite(*(double *)out[0].data), "%s: %s", what, diag_render(p->c, a));
  arena_free(a);
}

TEST(shrink_families) {
  static const struct {
    const char *model;
    i64 most, elems; // no value has more elements
  } rows[] = {
      {"mlp-17b", 4, 16},
      {"gpt3-175b", 4, 1024},
      {"bert-48l", 4, 1024},
      {"llama3-405b", 4, 2048},
      {"moe-8x1.3b", 4, 200000},
      {"t5-11b", 4, 2048},
      {"vit-huge:positions=32", 4, 20000},
      {"gpt2-xl:layers=3", 8, 32768},
      {"resnet50:positions=32", 4, 100000},
  };
  for (u32 k = 0; k < COUNT_OF(rows); k++)
    for (u32 train = 0; train < 2; train++) {
      ctx *c = ctx_new();
      arena *a = arena_new();
      front_opts o = {.batch = 16, .loss = true};
      prog *p = front_family(c, rows[k].model, &o);
      REQUIRE(p != NULL);
      optim_opts sgd = optim_default(OPTIM_SGD);
      if (train) CHECK(pass_train(p, &sgd, true));
      classes *kk = classes_of(a, p);
      i64 *extent = NEWN(a, i64, classes_count(kk) + 1);
      prog *q = infer_shrink(p, kk, rows[k].most, NULL, extent);
      CHECK_MSG(q != NULL, "%s: %s", rows[k].model, diag_render(c, a));
      if (q) {
        CHECK_EQ_I64(func_get(q, q->main)->body.n, func_get(p, p->main)->body.n);
        CHECK_MSG(largest(q) <= rows[k].elems, "%s: a value has %lld elements", rows[k].model,
                  (long long)largest(q));
        runs(q, rows[k].model);
        prog_free(q);
      }
      prog_free(p);
      arena_free(a);
      ctx_free(c);
    }
}

// A fused projection (3 parts, heads, 128 per head) split over heads, and within a class.
TEST(shrink_strides) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  front_opts o = {.batch = 16};
  prog *p = front_family(c, "gpt3-175b", &o);
  REQUIRE(p != NULL);
  classes *k = classes_of(a, p);
  u32 n = classes_count(k);
  i64 *extent = NEWN(a, i64, n + 1), *ways = ZNEWN(a, i64, n + 1);
  func layer = func_find(p, sym_of(c, "layer"));
  value qkv = 0;
  const func_info *f = func_get(p, layer);
  for (value v = 1; v <= f->nparams; v++)
    if (!strcmp(sym_str(c, val(f, v)->name), "attn.qkv")) qkv = v;
  u32 id[8];
  REQUIRE(classes_dim(k, layer, qkv, 1, id, 8) == 3);
  ways[id[1]] = 6; // heads
  prog *q = infer_shrink(p, k, 4, ways, extent);
  REQUIRE(q != NULL);
  CHECK_EQ_I64(extent[id[0]], 3);
  CHECK_EQ_I64(extent[id[1]], 6);
  CHECK_EQ_I64(extent[id[2]], 4);
  CHECK_EQ_I64(val_type(q, func_get(q, layer), qkv)->s.dim[1], 3 * 6 * 4);
  CHECK_EQ_I64(infer_shrink_stride(k, extent, layer, qkv, 1, 96 / 6 * 128), 4);     // heads 6 ways
  CHECK_EQ_I64(infer_shrink_stride(k, extent, layer, qkv, 1, 96 / 3 * 128), 2 * 4); // heads 3 ways
  CHECK_EQ_I64(infer_shrink_stride(k, extent, layer, qkv, 1, 64), 2);               // each head 2 ways
  CHECK_EQ_I64(infer_shrink_stride(k, extent, layer, qkv, 1, 96 * 128), 24);        // parts
  CHECK_EQ_I64(infer_shrink_stride(k, extent, layer, qkv, 1, 96 / 4 * 128), 0);     // 4 ways do not divide 6
  prog_free(q);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}
