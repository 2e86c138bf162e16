// test_shrink.c - models made small letter by letter: they keep their form, their splits, and can be run.
#include "eval/eval.h"
#include "infer/infer.h"
#include "loaded.h"
#include <math.h>

static const char *shrunk(const shrinking *s, arena *a) {
  strbuf b = {.a = a};
  shrink_print(s, &b);
  return sb_str(&b);
}

// The class of a dimension of a parameter of main (of its atom number `atom`).
static u32 class_at(const model *m, const classes *k, const char *param, u32 dim, u32 atom) {
  const func_info *f = func_get(m->p, m->p->main);
  for (value v = 1; v <= f->nparams; v++) {
    u32 id[16];
    if (strcmp(sym_str(m->c, f->values.v[v].name), param) ||
        classes_dim(k, m->p->main, v, dim, id, 16) <= atom)
      continue;
    return id[atom];
  }
  CHECK_MSG(false, "no parameter %s", param);
  return 0;
}

TEST(shrink_keeps_cuts) {
  model m = open_model("gpt2:layers=2,hidden=1536,heads=24", 16, 1024);
  classes *k = classes_of(m.a, m.p);
  // The fused weight of queries, keys and values is 3 x heads x 64; heads are split 4 ways, the batch 2 x 4.
  u32 heads = class_at(&m, k, "h.0.attn.qkv", 1, 1), batch = class_at(&m, k, "tokens", 0, 0);
  CHECK_EQ_I64(classes_get(k, heads)->extent, 24);
  class_cut cuts[] = {{heads, 6, 4}, {batch, 8, 2}, {batch, 2, 4}};
  shrinking *s = shrink_new(m.a, m.p, k, cuts, COUNT_OF(cuts), 2, 1, 5);
  double elems, points, before;
  shrink_cost(s, &before, &points);
  CHECK(!shrink_until(s, 1, 1));
  shrink_cost(s, &elems, &points);
  CHECK_MSG(elems < before / 1000, "%g to %g", before, elems);
  CHECK_EQ_I64(shrink_extent(s, heads), 8); // 4 ways of at least 2, so that there are 8
  CHECK_EQ_I64(shrink_stride(s, heads, 6), 2);
  CHECK_EQ_I64(shrink_extent(s, batch), 16); // the odd factors between the cuts were 1 and 2
  CHECK_EQ_I64(shrink_stride(s, batch, 8), 8);
  CHECK_STR(shrunk(s, m.a), "1024 -> 8 (tokens[1]), 1536 -> 8 (wte[1]), 24 -> 8 (h.0.attn.qkv[1]), 64 -> 8 "
                            "(h.0.attn.qkv[1]), 6144 -> 8 (h.0.mlp.up[1]), "
                            "50257 -> 9 (wte[0])");
  prog *q = shrink_program(s, UINT32_MAX);
  CHECK_MSG(q != NULL, "%s", diag_render(m.c, m.a));
  if (q) prog_free(q);
  // What there is room for comes back, no more, and cuts still fit.
  double more;
  shrink_grow(s, 50 * elems, 1e18);
  shrink_cost(s, &more, &points);
  CHECK_MSG(more <= 50 * elems && more > 25 * elems, "%g of %g", more, 50 * elems);
  CHECK(shrink_extent(s, batch) % 16 == 0 && shrink_extent(s, heads) % (4 * shrink_stride(s, heads, 6)) == 0);
  q = shrink_program(s, UINT32_MAX);
  CHECK_MSG(q != NULL, "%s", diag_render(m.c, m.a));
  if (q) prog_free(q);
  close_model(&m);
}

static void runs(const prog *p, const char *what) {
  arena *a = arena_new();
  u32 nin = func_get(p, p->main)->nparams, nout = func_get(p, p->main)->rets.n;
  eval_array *in = NEWN(a, eval_array, nin), *out = NEWN(a, eval_array, nout);
  bool ok = eval_random(p, 1, in, nin, a) && eval_run(p, &(eval_opts){.as_f64 = true}, in, nin, out, nout, a);
  CHECK_MSG(ok && isfinite(*(double *)out[0].data), "%s: %s", what, diag_render(p->c, a));
  arena_free(a);
}

// One of each kind, forward and with its gradients.
TEST(shrink_families) {
  static const char *const names[] = {"mlp-17b",
                                      "gpt3-175b:layers=12",
                                      "bert-48l:layers=6",
                                      "llama3-405b:layers=6",
                                      "moe-8x1.3b:layers=2",
                                      "t5-11b:layers=4",
                                      "vit-huge:positions=32,layers=4",
                                      "resnet50:positions=32",
                                      "vgg16:positions=32",
                                      "inception-v3:positions=75"};
  for (u32 i = 0; i < COUNT_OF(names); i++)
    for (int train = 0; train < 2; train++) {
      model m = open_model(names[i], 16, 0);
      optim_opts sgd = optim_default(OPTIM_SGD);
      if (train) CHECK(pass_train(m.p, &sgd, true));
      shrinking *s = shrink_new(m.a, m.p, classes_of(m.a, m.p), NULL, 0, 1, 1, 5);
      double before, elems, points;
      shrink_cost(s, &before, &points);
      shrink_until(s, 1, 1);
      shrink_cost(s, &elems, &points);
      prog *q = shrink_program(s, UINT32_MAX);
      CHECK_MSG(q && elems * 20 < before, "%s: %g of %g: %s", names[i], elems, before, diag_render(m.c, m.a));
      if (q) runs(q, names[i]);
      if (q) prog_free(q);
      close_model(&m);
    }
}
