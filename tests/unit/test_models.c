// test_models.c - Swin, mBART and AlphaFold 2: loss and gradients of small ones against PyTorch's, which
// tools/make-model-numbers.py has written down; their sizes against formulas and published counts.
#include "eval/eval.h"
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// ---- elements that follow from names, as the script has them -------------------------------------------------
static u64 scrambled(u64 x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static u64 name_bits(const char *name) {
  u64 h = 0xcbf29ce484222325u;
  for (; *name; name++) h = (h ^ (u8)*name) * 0x100000001b3u;
  return h;
}

static u64 bits_at(u64 h, i64 i) { return scrambled(h + (u64)(i + 1) * 0x9e3779b97f4a7c15u); }
static double number_at(u64 h, i64 i) { return (double)(bits_at(h, i) >> 11) * 0x1p-53 - 0.5; }

static void fill(arena *a, const char *name, const shape *s, i64 below, eval_array *out) {
  const i64 n = shape_elems(s);
  const u64 h = name_bits(name);
  const size_t len = strlen(name);
  const double more = len > 2 && !strcmp(name + len - 2, ".g"); // gains are about 1
  *out = (eval_array){.s = *s, .data = arena_alloc(a, (size_t)n * 8)};
  for (i64 i = 0; i < n; i++)
    if (s->t == DT_I64)
      ((i64 *)out->data)[i] = (i64)(bits_at(h, i) % (u64)below);
    else
      ((double *)out->data)[i] = number_at(h, i) + more;
}

// ---- one model against its lines -----------------------------------------------------------------------------
typedef struct {
  char name[200];
  i64 batch, seq;
  double loss;
  u32 nweights;
} recorded;

// "model NAME batch seq loss weights", then a line for every weight. Returns what follows that line.
static const char *read_model(const char *text, recorded *r) {
  int used = 0;
  if (sscanf(text, "model %199s %" SCNd64 " %" SCNd64 " %lf %u\n%n", r->name, &r->batch, &r->seq, &r->loss,
             &r->nweights, &used) != 5)
    return NULL;
  return text + used;
}

static void near(const char *model, const char *what, double got, double want, double unit) {
  CHECK_MSG(fabs(got - want) <= 1e-10 * unit, "%s: %s is %.17g, not %.17g", model, what, got, want);
}

static i64 vocab_of(const char *name) {
  const char *at = strstr(name, "vocab=");
  return at ? strtoll(at + strlen("vocab="), NULL, 10) : 0;
}

// Returns what follows the model's lines.
static const char *check_gradients(const char *text, const recorded *r, const prog *p, const eval_array *y) {
  const func_info *f = func_get(p, p->main);
  double along[512], squares[512], all = 0;
  char names[512][64];
  REQUIRE(r->nweights <= COUNT_OF(along));
  for (u32 k = 0; k < r->nweights; k++) {
    int used = 0;
    REQUIRE(sscanf(text, "%63s %lf %lf\n%n", names[k], &along[k], &squares[k], &used) == 3);
    text += used;
    all += squares[k];
  }
  u32 met = 0, at = 1;
  for (u32 i = 0; i < f->nparams; i++) {
    if (f->params.v[i].r != ROLE_WEIGHT) continue;
    const char *name = sym_str(p->c, val(f, i + 1)->name);
    const double *g = y[at++].data;
    u32 k = 0;
    while (k < r->nweights && strcmp(names[k], name)) k++;
    if (!CHECK_MSG(k < r->nweights, "%s: %s is not recorded", r->name, name)) continue;
    const u64 h = name_bits(sym_str(p->c, sym_fmt(p->c, "%s along", name)));
    double sum = 0, square = 0;
    for (i64 j = 0; j < shape_elems(&y[at - 1].s); j++) sum += g[j] * number_at(h, j), square += g[j] * g[j];
    near(r->name, name, sum, along[k], sqrt(all));
    near(r->name, name, square, squares[k], all);
    met++;
  }
  CHECK_EQ_I64(met, r->nweights);
  return text;
}

static const char *check_model(const char *text, const recorded *r) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p =
      front_family(c, r->name, &(front_opts){.batch = r->batch, .seq = r->seq, .t = DT_F64, .loss = true});
  const optim_opts sgd = optim_default(OPTIM_SGD);
  if (!CHECK_MSG(p && pass_train(p, &sgd, true) && ir_verify(p), "%s: %s", r->name, diag_render(c, a)))
    test_leave();
  const func_info *f = func_get(p, p->main);
  eval_array *in = NEWN(a, eval_array, f->nparams), *y = NEWN(a, eval_array, f->rets.n);
  for (u32 k = 0; k < f->nparams; k++)
    fill(a, sym_str(c, val(f, k + 1)->name), &val_type(p, f, k + 1)->s, vocab_of(r->name), &in[k]);
  bool ok = eval_run(p, &(eval_opts){0}, in, f->nparams, y, f->rets.n, a);
  if (!CHECK_MSG(ok, "%s: %s", r->name, diag_render(c, a))) test_leave();
  near(r->name, "the loss", *(double *)y[0].data, r->loss, r->loss);
  text = check_gradients(text, r, p, y);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
  return text;
}

// Of three passes through the layers only the last one saves anything, or has a backward.
TEST(models_recycle_without_gradient) {
  u32 calls[2], backward[2];
  for (u32 again = 0; again < 2; again++) {
    ctx *c = ctx_new();
    const char *name = again ? "alphafold2:layers=4,recycle=3" : "alphafold2:layers=4";
    prog *p = front_family(c, name, &(front_opts){.batch = 1, .loss = true});
    const optim_opts sgd = optim_default(OPTIM_SGD);
    REQUIRE(p && pass_train(p, &sgd, true));
    calls[again] = backward[again] = 0;
    for (u32 f = 1; f < p->funcs.n; f++)
      for (u32 i = 0; i < p->funcs.v[f]->body.n; i++) {
        const instr *in = &p->funcs.v[f]->body.v[i];
        const char *callee = in->op == OP_call ? sym_str(c, func_get(p, in->callee)->name) : "";
        calls[again] += !strncmp(callee, "evoformer", 9),
            backward[again] += strstr(callee, "evoformer.bwd") != NULL;
      }
    prog_free(p);
    ctx_free(c);
  }
  CHECK_EQ_I64(calls[1] - calls[0], 8);
  CHECK(backward[0] == 4 && backward[1] == 4);
}

TEST(models_are_pytorchs) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  file_view v;
  REQUIRE(file_map(c, "tests/golden/front/pytorch.txt", &v));
  const char *text = arena_printf(a, "%.*s", (int)v.size, (const char *)v.data);
  file_unmap(&v);
  u32 models = 0;
  recorded r;
  while (*text) {
    text = read_model(text, &r);
    REQUIRE(text != NULL);
    text = check_model(text, &r), models++;
  }
  CHECK_EQ_I64(models, 5);
  arena_free(a);
  ctx_free(c);
}
