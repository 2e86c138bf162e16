// test_front.c - built-in models: they build, verify and have the published sizes.
#include "front/front.h"
#include "eval/eval.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static void show_errors(ctx *c) {
  if (diag_errors(c)) CHECK_MSG(false, "%s", diag_render(c, ctx_arena(c)));
}

static i64 weights(const prog *p) {
  const func_info *f = func_get(p, p->main);
  i64 n = 0;
  for (u32 k = 0; k < f->nparams; k++)
    if (f->params.v[k].r == ROLE_WEIGHT) n += shape_elems(&val_type(p, f, k + 1)->s);
  return n;
}

TEST(front_families_build) {
  for (u32 i = 0; front_family_get(i); i++)
    for (u32 loss = 0; loss < 2; loss++) {
      ctx *c = ctx_new();
      front_opts o = {.batch = 4, .loss = loss, .t = i % 2 ? DT_F16 : DT_F32};
      prog *p = front_family(c, front_family_get(i)->name, &o);
      CHECK_MSG(p, "%s: %s", front_family_get(i)->name, diag_render(c, ctx_arena(c)));
      if (p) {
        const func_info *f = func_get(p, p->main);
        CHECK_MSG(f->rets.n == 1, "%s", front_family_get(i)->name);
        if (loss) CHECK_EQ_I64(val_type(p, f, f->rets.v[0])->s.nd, 0);
        prog_free(p);
      }
      ctx_free(c);
    }
}

TEST(front_family_sizes) {
  static const struct {
    const char *name;
    i64 n;
  } want[] = {
      {"mlp-1b", 16ll * 8192 * 8192},
      {"gpt2", 124439808},                  // with biases and norms, tied embedding
      {"gpt2-xl", 1557611200},              //
      {"bert-large", 335174458},            // with the masked-word head
      {"llama2-7b", 6738415616},            //
      {"llama3-8b", 8030261248},            //
      {"llama2-70b", 68976648192},          //
      {"t5-small", 60506624},               //
      {"vit-base", 86567656},               //
      {"swin-t", 28288354},                 //
      {"swin-s", 49606258},                 //
      {"swin-b", 87768224},                 //
      {"mbart-large", 610851840},           //
      {"resnet50", 25557032},               //
      {"vgg16", 138357544},                 //
      {"inception-v3", 27161264 - 3326696}, // the auxiliary head left out
  };
  for (u32 i = 0; i < COUNT_OF(want); i++) {
    ctx *c = ctx_new();
    prog *p = front_family(c, want[i].name, NULL);
    REQUIRE(p);
    CHECK_MSG(weights(p) == want[i].n, "%s: %lld weights, not %lld", want[i].name, (long long)weights(p),
              (long long)want[i].n);
    prog_free(p);
    ctx_free(c);
  }
}

// Published sizes are rounded, and not all that a model has is published: how far the sum is from what is
// said.
TEST(front_family_sizes_about) {
  static const struct {
    const char *name;
    double n, within;
  } want[] = {
      {"m6-10b", 10e9, 0.01},     {"m6-moe-100b", 100e9, 0.04}, {"m6-moe-1t", 1e12, 0.01},
      {"swin-1.8b", 1.8e9, 0.01}, {"mbart-4.7b", 4.7e9, 0.01},  {"gpt3-1.3b", 1.3e9, 0.02},
      {"gnmt", 278e6, 0.015}, // as Shazeer et al. (2017) count it
  };
  for (u32 i = 0; i < COUNT_OF(want); i++) {
    ctx *c = ctx_new();
    prog *p = front_family(c, want[i].name, NULL);
    REQUIRE(p);
    double n = (double)weights(p);
    CHECK_MSG(fabs(n / want[i].n - 1) <= want[i].within, "%s: %.4g weights, not %.4g", want[i].name, n,
              want[i].n);
    prog_free(p);
    ctx_free(c);
  }
}

// By the papers' terms: words, LSTM layers of 4 h (in + h) weights and 4 h biases, attention.
TEST(front_gnmt_size) {
  const i64 h = 1024, v = 32000, lstm = 4 * h * (2 * h) + 4 * h, wide = lstm + 4 * h * h;
  ctx *c = ctx_new();
  prog *p = front_family(c, "gnmt", NULL);
  REQUIRE(p);
  CHECK_EQ_I64(weights(p), 3 * v * h + 2 * lstm + wide + 6 * lstm + 8 * wide + 2 * h * h + h);
  prog_free(p);
  ctx_free(c);
}

// By the terms of the supplement's algorithms; recycling adds two normalisations and no other weight.
TEST(front_alphafold_size) {
  const i64 d = 256, p = 128, e = 32, linear = d * d + d, pair = p * p + p;
  const i64 row = 2 * d + 3 * d * d + 2 * linear + 2 * p + p * (d / e), column = row - 2 * p - p * (d / e);
  const i64 transitions = 2 * d + 8 * d * d + 5 * d + 2 * p + 8 * p * p + 5 * p;
  const i64 outer = 2 * d + 2 * (d * e + e) + e * e * p + p, triangle = 4 * p + 6 * pair;
  const i64 edge = 2 * p + 3 * p * p + 2 * pair + p * (p / e);
  const i64 block = row + column + transitions + outer + 2 * triangle + 2 * edge;
  const i64 ends = 49 * d + d + 22 * d + d + 2 * (22 * p + p) + 65 * p + p * 64 + 64;
  ctx *c = ctx_new();
  prog *once = front_family(c, "alphafold2", NULL), *again = front_family(c, "alphafold2:recycle=3", NULL);
  REQUIRE(once && again);
  CHECK_EQ_I64(weights(once), 48 * block + ends);
  CHECK_EQ_I64(weights(again), 48 * block + ends + 2 * d + 2 * p);
  prog_free(once);
  prog_free(again);
  ctx_free(c);
}

TEST(front_family_overrides) {
  ctx *c = ctx_new();
  prog *p = front_family(c, "llama2-70b:layers=2,hidden=256,heads=8,vocab=100,positions=32", NULL);
  show_errors(c);
  REQUIRE(p);
  CHECK_EQ_I64(func_get(p, p->main)->nparams, 1 + 1 + 2 * 9 + 2);
  CHECK(!front_family(c, "gpt2:layers=0", NULL));
  CHECK(!front_family(c, "gpt2:wings=2", NULL));
  CHECK(!front_family(c, "mlp-xs:heads=2", NULL));
  CHECK(!front_family(c, "gpt2:heads=7", NULL));
  CHECK(!front_family(c, "resnet50:layers=51", NULL));
  CHECK(!front_family(c, "gpt22", NULL));
  CHECK(!front_family(c, "inception", NULL));
  CHECK(!front_family(c, "inception-v3:layers=48", NULL));
  CHECK(!front_family(c, "inception-v3", &(front_opts){.seq = 74}));
  CHECK(!front_load(c, "nothing-like-it", NULL));
  CHECK(!front_family(c, "mlp-xs:layers=1000000000", NULL));
  CHECK(!front_family(c, "gpt2:vocab=9000000000000000000", NULL));
  CHECK(!front_family(c, "mlp-xs:hidden=2000000000", NULL));
  CHECK(!front_family(c, "inception-v3:hidden=2000000000", NULL));
  CHECK(!front_family(c, "gpt2:heads=2000000000", NULL));
  CHECK(!front_family(c, "vit-base", &(front_opts){.seq = 16000000000000}));
  CHECK(!front_family(c, "swin-t:layers=6", NULL));
  CHECK(!front_family(c, "swin-t", &(front_opts){.seq = 225}));
  CHECK(!front_family(c, "swin-t:window=8", NULL));
  CHECK(!front_family(c, "swin-t:recycle=2", NULL));
  CHECK(!front_family(c, "mbart-large:window=7", NULL));
  CHECK(!front_family(c, "mbart-large:heads=3", NULL));
  CHECK(!front_family(c, "alphafold2:pair=100", NULL));
  CHECK(!front_family(c, "alphafold2:recycle=0", NULL));
  CHECK(!front_family(c, "alphafold2:recycle=300", NULL));
  CHECK_EQ_I64(diag_errors(c), 25);
  CHECK_GOLDEN("front/overrides.txt", diag_render(c, ctx_arena(c)));
  prog_free(p);
  ctx_free(c);
}

// Multiply-adds of the convolutions and products, in f and what it calls: what is published as work.
static double multiply_adds(const prog *p, func fi, arena *a) {
  const func_info *f = func_get(p, fi);
  double sum = 0;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    u32 n = instr_nopd(f, i), nres = i->nres;
    shape in[2], res[OP_RES_MAX];
    if (i->op == OP_call) sum += multiply_adds(p, i->callee, a);
    if (i->op != OP_conv && i->op != OP_matmul) continue;
    for (u32 j = 0; j < n; j++) in[j] = val_type(p, f, opd_of(f, i, j))->s;
    attrs at = attrs_get(p, i->at);
    const law *l = op_law(p->c, a, i->op, at, n, in, &nres, res, i->where);
    REQUIRE(l);
    sum += op_flops(i->op, at, l) / 2;
  }
  return sum;
}

TEST(front_family_work) {
  static const struct {
    const char *name;
    double n; // of one image
  } want[] = {{"resnet50", 4089184256}, {"vgg16", 15470264320}, {"inception-v3", 5713216096}};
  for (u32 i = 0; i < COUNT_OF(want); i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *p = front_family(c, want[i].name, &(front_opts){.batch = 1});
    REQUIRE(p);
    double n = multiply_adds(p, p->main, a);
    CHECK_MSG(n == want[i].n, "%s: %.0f multiply-adds, not %.0f", want[i].name, n, want[i].n);
    prog_free(p);
    arena_free(a);
    ctx_free(c);
  }
}

// One small model of every kind, with its loss, evaluated in f64 on random inputs: finite, and about as large
// as the logarithm of the number of classes.
TEST(front_families_evaluate) {
  static const struct {
    const char *name;
    i64 seq, classes;
  } small[] = {
      {"mlp-xs:layers=3,hidden=16", 0, 0},
      {"gpt2:layers=2,hidden=32,heads=4,vocab=50", 8, 50},
      {"moe-8x125m:layers=2,hidden=32,heads=4,vocab=50,experts=4", 8, 50},
      {"bert-base:layers=2,hidden=32,heads=4,vocab=50", 8, 50},
      {"llama2-7b:layers=2,hidden=32,heads=4,vocab=50,ffn=48", 8, 50},
      {"llama3-8b:layers=2,hidden=32,heads=4,kv_heads=2,vocab=50,ffn=48", 8, 50},
      {"t5-small:layers=2,hidden=32,heads=4,head_dim=8,vocab=50,ffn=64", 8, 50},
      {"m6-10b:layers=2,hidden=32,heads=4,vocab=50", 8, 50},
      {"m6-moe-100b:layers=2,hidden=32,heads=4,vocab=50,experts=4", 8, 50},
      {"gnmt:layers=3,hidden=32,vocab=50", 5, 50},
      {"mbart-large:layers=2,hidden=32,heads=4,vocab=50", 8, 50},
      {"vit-base:layers=2,hidden=32,heads=4,vocab=10", 32, 10},
      {"swin-t:layers=7,hidden=16,heads=2,window=2,vocab=10", 64, 10},
      {"alphafold2:layers=2,hidden=16,heads=2,vocab=10,msa=3,pair=16,recycle=2", 6, 10},
      {"resnet50:hidden=4,vocab=10", 32, 10},
      {"vgg16:hidden=4,vocab=10,ffn=16", 32, 10},
      {"inception-v3:hidden=4,vocab=10", 75, 10},
  };
  for (u32 i = 0; i < COUNT_OF(small); i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *p = front_family(c, small[i].name, &(front_opts){.batch = 2, .seq = small[i].seq, .loss = true});
    CHECK_MSG(p && ir_verify(p), "%s: %s", small[i].name, diag_render(c, a));
    if (p) {
      u32 n = func_get(p, p->main)->nparams;
      eval_array *in = ZNEWN(a, eval_array, n), y;
      bool ok = eval_random(p, 5, in, n, a) && eval_run(p, &(eval_opts){.as_f64 = true}, in, n, &y, 1, a);
      CHECK_MSG(ok, "%s: %s", small[i].name, diag_render(c, a));
      double loss = ok ? *(double *)y.data : 0, even = log((double)MAX(small[i].classes, 1));
      CHECK_MSG(!ok || (loss > 0.3 * even && loss < 20 + 3 * even), "%s: loss %g", small[i].name, loss);
      prog_free(p);
    }
    arena_free(a);
    ctx_free(c);
  }
}

// T5 as its paper has it: distances up to half of a direction's buckets count one by one, the rest
// logarithmically up to 128; an encoder has as many buckets for what lies ahead.
static i64 t5_bucket(i64 at, i64 of, bool both_ways) {
  i64 buckets = both_ways ? 16 : 32, exact = buckets / 2, first = 0;
  i64 far = both_ways ? llabs(at - of) : MAX(at - of, 0);
  if (both_ways && of > at) first = buckets;
  if (far < exact) return first + far;
  double part = log((double)far / (double)exact) / log(128.0 / (double)exact);
  return first + MIN(exact + (i64)(part * (double)exact), buckets - 1);
}

TEST(front_t5_buckets) {
  static const char *const names[] = {"bias.decoder", "bias.encoder"};
  const i64 s = 200;
  for (u32 both = 0; both < 2; both++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *p = front_family(c, "t5-small:heads=1,head_dim=8,layers=1", &(front_opts){.batch = 1, .seq = s});
    REQUIRE(p);
    p->main = func_find(p, sym_of(c, names[both]));
    float table[32];
    for (u32 i = 0; i < 32; i++) table[i] = (float)i;
    eval_array in = {{.t = DT_F32, .nd = 2, .dim = {32, 1}}, table}, y;
    bool ok = eval_run(p, &(eval_opts){.as_f64 = true}, &in, 1, &y, 1, a);
    CHECK_MSG(ok, "%s", diag_render(c, a));
    u32 wrong = 0; // a logarithm may fall on either side of a whole number
    for (i64 i = 0; ok && i < s * s; i++)
      wrong += llabs((i64)((double *)y.data)[i] - t5_bucket(i / s, i % s, both)) > ((i / s - i % s) % 8 == 0);
    CHECK_EQ_I64(wrong, 0);
    prog_free(p);
    arena_free(a);
    ctx_free(c);
  }
}
