// test_attention.c - attention that keeps no scores: its kernels against softmax written out in f64, what they take of memory,
// where models have attention, what their layers keep, and that plans compute what the model computes.
#include "eval/eval.h"
#include "kernel/kernel.h"
#include "split_model.h"
#include <math.h>

// ---- the kernels ------------------------------------------------------------------------------------------
// One head: q[s,d], k[t,d], v[t,e], bias[s,t] and mask[s,t] or none, in f64, with all scores.
typedef struct {
  i64 s, t, d, e;
  bool bias, mask, causal;
  double alpha, value;
} one_case;

typedef struct {
  double *q, *k, *v, *bias, *dy, *y, *lse, *dq, *dk, *dv, *db;
  u8 *mask;
} numbers;

static u64 R;
static double *drawn(arena *a, i64 n) {
  double *x = NEWN(a, double, n + 1);
  for (i64 i = 0; i < n; i++) x[i] = (float)(rng_unit(&R) * 2 - 1); // f32 has it, too
  return x;
}

static numbers numbers_of(arena *a, const one_case *c) {
  numbers x = {.q = drawn(a, c->s * c->d), .k = drawn(a, c->t * c->d), .v = drawn(a, c->t * c->e)};
  x.bias = drawn(a, c->s * c->t);
  x.dy = drawn(a, c->s * c->e);
  x.mask = NEWN(a, u8, c->s * c->t + 1);
  for (i64 i = 0; i < c->s * c->t; i++) x.mask[i] = rng_unit(&R) < 0.6 || i % c->t == 0;
  for (i64 j = 0; j < c->t && c->s > 2; j++) x.mask[2 * c->t + j] = j + 1 == c->t; // one key alone
  x.y = ZNEWN(a, double, c->s * c->e + 1), x.lse = NEWN(a, double, c->s + 1);
  x.dq = ZNEWN(a, double, c->s * c->d + 1), x.dk = ZNEWN(a, double, c->t * c->d + 1);
  x.dv = ZNEWN(a, double, c->t * c->e + 1), x.db = ZNEWN(a, double, c->s * c->t + 1);
  return x;
}

static bool is_hidden(const one_case *c, const numbers *x, i64 i, i64 j) {
  return (c->causal && j > i) || (c->mask && !x->mask[i * c->t + j]);
}

static void written_out(arena *a, const one_case *c, numbers *x) {
  double *p = NEWN(a, double, c->t), *dp = NEWN(a, double, c->t);
  for (i64 i = 0; i < c->s; i++) {
    double top = -INFINITY, sum = 0, dot = 0;
    for (i64 j = 0; j < c->t; j++) {
      p[j] = 0;
      for (i64 k = 0; k < c->d; k++) p[j] += x->q[i * c->d + k] * x->k[j * c->d + k];
      p[j] = c->alpha * p[j] + (c->bias ? x->bias[i * c->t + j] : 0);
      if (is_hidden(c, x, i, j)) p[j] = c->value;
      top = fmax(top, p[j]);
    }
    for (i64 j = 0; j < c->t; j++) sum += p[j] = exp(p[j] - top);
    x->lse[i] = top + log(sum);
    for (i64 j = 0; j < c->t; j++) {
      p[j] /= sum, dp[j] = 0;
      for (i64 k = 0; k < c->e; k++) {
        x->y[i * c->e + k] += p[j] * x->v[j * c->e + k];
        x->dv[j * c->e + k] += p[j] * x->dy[i * c->e + k];
        dp[j] += x->dy[i * c->e + k] * x->v[j * c->e + k];
      }
      dot += p[j] * dp[j];
    }
    for (i64 j = 0; j < c->t; j++) {
      const double ds = is_hidden(c, x, i, j) ? 0 : p[j] * (dp[j] - dot);
      x->db[i * c->t + j] = ds;
      for (i64 k = 0; k < c->d; k++) {
        x->dq[i * c->d + k] += c->alpha * ds * x->k[j * c->d + k];
        x->dk[j * c->d + k] += c->alpha * ds * x->q[i * c->d + k];
      }
    }
  }
}

static ker_tensor tensor(arena *a, dtype t, i64 m, i64 n, const double *from) {
  const shape s = {.t = t, .nd = n ? 2 : 1, .dim = {m, n}};
  ker_tensor x = ker_whole(&s, arena_alloc(a, (size_t)shape_bytes(&s) + 1));
  if (from) ker_store_f64(x.data, t, from, ker_elems(&x));
  return x;
}

static void check_near(arena *a, const char *what, const one_case *c, const ker_tensor *got,
                       const double *want, double tol) {
  const i64 n = ker_elems(got);
  double *v = NEWN(a, double, n + 1), size = 1;
  ker_load_f64(v, got->t, got->data, n);
  for (i64 i = 0; i < n; i++) size = fmax(size, fabs(want[i]));
  for (i64 i = 0; i < n; i++)
    if (!CHECK_MSG(fabs(v[i] - want[i]) <= tol * size,
                   "%s of %lld x %lld, %s: element %lld is %.17g, not %.17g", what, (long long)c->s,
                   (long long)c->t, dtype_name(got->t), (long long)i, v[i], want[i]))
      return;
}

static u32 attributes(ctx *c, const one_case *x, attr *at) {
  static const char *const laws[] = {"sd,td,te->se", "sd,td,te,st->se", "sd,td,te,st,st->se"};
  u32 n = 0;
  at[n++] = (attr){.key = A_law, .kind = AK_STR, .u.s = sym_of(c, laws[x->bias + x->mask])};
  if (x->causal) at[n++] = (attr){.key = A_causal, .kind = AK_STR, .u.s = sym_of(c, "s")};
  at[n++] = (attr){.key = A_value, .kind = AK_FLOAT, .u.f = x->value};
  at[n++] = (attr){.key = A_alpha, .kind = AK_FLOAT, .u.f = x->alpha};
  return n;
}

static void check_case(const one_case *x, dtype t, int threads) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  numbers n = numbers_of(a, x);
  const double tol = t == DT_F64 ? 1e-13 : 2e-6;
  written_out(a, x, &n);
  attr at[4];
  const attrs with = {attributes(c, x, at), at};
  ker_tensor in[8] = {tensor(a, t, x->s, x->e, n.dy), tensor(a, t, x->s, x->e, NULL),
                      tensor(a, t, x->s, 0, NULL),    tensor(a, t, x->s, x->d, n.q),
                      tensor(a, t, x->t, x->d, n.k),  tensor(a, t, x->t, x->e, n.v)};
  u32 nopd = 3;
  if (x->bias) in[3 + nopd++] = tensor(a, t, x->s, x->t, n.bias);
  if (x->mask) in[3 + nopd] = tensor(a, DT_BOOL, x->s, x->t, NULL), in[3 + nopd++].data = n.mask;
  ker_args args = {.op = OP_attention,
                   .at = with,
                   .nopd = nopd,
                   .nres = 2,
                   .opd = in + 3,
                   .res = in + 1,
                   .threads = threads};
  REQUIRE(kernel_run(c, &args, (loc){0}));
  check_near(a, "y", x, &in[1], n.y, tol), check_near(a, "lse", x, &in[2], n.lse, tol);
  ker_tensor out[4] = {tensor(a, t, x->s, x->d, NULL), tensor(a, t, x->t, x->d, NULL),
                       tensor(a, t, x->t, x->e, NULL), tensor(a, t, x->s, x->t, NULL)};
  args.op = OP_attention_dx, args.opd = in, args.nopd = 3 + nopd, args.res = out, args.nres = 3;
  REQUIRE(kernel_run(c, &args, (loc){0}));
  check_near(a, "dq", x, &out[0], n.dq, tol), check_near(a, "dk", x, &out[1], n.dk, tol);
  check_near(a, "dv", x, &out[2], n.dv, tol);
  if (x->bias) {
    args.op = OP_attention_db, args.res = out + 3, args.nres = 1;
    REQUIRE(kernel_run(c, &args, (loc){0}));
    check_near(a, "db", x, &out[3], n.db, tol);
  }
  arena_free(a);
  ctx_free(c);
}

static const one_case shapes[] = {
    {1, 1, 4, 4, 0, 0, 0, 1, 0},
    {1, 300, 8, 5, 0, 0, 0, 0.4, 0},
    {129, 257, 16, 16, 0, 0, 0, 0.25, 0},
    {300, 70, 7, 9, 1, 0, 0, 0.5, 0},
    {131, 260, 8, 8, 0, 1, 0, 1, -INFINITY}, // whole blocks of some rows are masked
    {140, 140, 8, 8, 1, 1, 0, 0.3, -1e4},
    {257, 257, 8, 8, 0, 0, 1, 0.35, -INFINITY},
    {257, 257, 8, 8, 0, 0, 1, 0.35, -1e4},
    {200, 390, 8, 8, 1, 0, 1, 0.35, -1}, // what is masked counts
    {150, 130, 3, 2, 1, 1, 1, 2, -0.5},
};

TEST(attention_is_softmax_written_out) {
  R = 5;
  for (u32 blas = 0; blas < 2; blas++) {
    if (kernel_set_blas(blas) != (blas > 0)) continue; // there is none
    for (u32 k = 0; k < COUNT_OF(shapes); k++)
      for (dtype t = DT_F32; t <= DT_F64; t++) check_case(&shapes[k], t, 1);
  }
  kernel_set_blas(true);
}

// A row of which all is masked is not a number, as softmax says; others are what they are.
TEST(attention_of_a_row_that_sees_nothing) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const one_case x = {3, 200, 4, 4, 0, 1, 0, 1, -INFINITY};
  numbers n = numbers_of(a, &x);
  memset(n.mask + 200, 0, 200);
  attr at[4];
  ker_tensor in[4] = {tensor(a, DT_F64, 3, 4, n.q), tensor(a, DT_F64, 200, 4, n.k),
                      tensor(a, DT_F64, 200, 4, n.v), tensor(a, DT_BOOL, 3, 200, NULL)},
             out[2] = {tensor(a, DT_F64, 3, 4, NULL), tensor(a, DT_F64, 3, 0, NULL)};
  in[3].data = n.mask;
  const ker_args args = {.op = OP_attention,
                         .at = {attributes(c, &x, at), at},
                         .nopd = 4,
                         .nres = 2,
                         .opd = in,
                         .res = out,
                         .threads = 1};
  REQUIRE(kernel_run(c, &args, (loc){0}));
  for (u32 i = 0; i < 12; i++) CHECK((i / 4 == 1) == isnan(((const double *)out[0].data)[i]));
  arena_free(a);
  ctx_free(c);
}

// Many heads on any number of threads, to the bit; and of memory only blocks, where scores have 32 MB a head.
TEST(attention_takes_blocks_on_any_threads) {
  enum { H = 3, S = 2048, D = 8 };
  ctx *c = ctx_new();
  arena *a = arena_new();
  R = 9;
  const attr at[] = {{.key = A_law, .kind = AK_STR, .u.s = sym_of(c, "shd,thd,the->she")},
                     {.key = A_causal, .kind = AK_STR, .u.s = sym_of(c, "s")}};
  const shape whole = {.t = DT_F64, .nd = 3, .dim = {S, H, D}}, rows = {.t = DT_F64, .nd = 2, .dim = {S, H}};
  const size_t bytes = (size_t)shape_bytes(&whole);
  ker_tensor in[6], out[2][5];
  for (u32 k = 0; k < 6; k++) in[k] = ker_whole(k == 2 ? &rows : &whole, drawn(a, S * H * D));
  for (u32 i = 0; i < 2; i++) {
    for (u32 k = 0; k < 5; k++) out[i][k] = ker_whole(k == 1 ? &rows : &whole, arena_zalloc(a, bytes));
    arena *scratch = arena_new();
    ker_args args = {.op = OP_attention,
                     .at = {2, at},
                     .nopd = 3,
                     .nres = 2,
                     .opd = in + 3,
                     .res = out[i],
                     .scratch = scratch,
                     .threads = i ? 3 : 1};
    REQUIRE(kernel_run(c, &args, (loc){0}));
    in[1].data = out[i][0].data, in[2].data = out[i][1].data;
    args.op = OP_attention_dx, args.opd = in, args.nopd = 6, args.res = out[i] + 2, args.nres = 3;
    REQUIRE(kernel_run(c, &args, (loc){0}));
    CHECK_MSG(arena_bytes(scratch) < 1 << 20, "%zu bytes", arena_bytes(scratch));
    arena_free(scratch);
  }
  for (u32 k = 0; k < 5; k++) CHECK(!memcmp(out[0][k].data, out[1][k].data, k == 1 ? bytes / D : bytes));
  arena_free(a);
  ctx_free(c);
}

// ---- arithmetic --------------------------------------------------------------------------------------------
TEST(attention_counts_its_arithmetic) {
  enum { B = 2, H = 3, S = 5, T = 7, D = 11 };
  ctx *c = ctx_new();
  arena *a = arena_new();
  const attr law_of = {.key = A_law, .kind = AK_STR, .u.s = sym_of(c, "bshd,bthd,bthe->bshe")};
  const shape q = {.t = DT_F16, .nd = 4, .dim = {B, S, H, D}},
              k = {.t = DT_F16, .nd = 4, .dim = {B, T, H, D}}, lse = {.t = DT_F32, .nd = 3, .dim = {B, S, H}},
              opd[] = {q, q, lse, q, k, k};
  shape res[OP_RES_MAX];
  u32 nres = 0;
  const law *l = op_law(c, a, OP_attention, (attrs){1, &law_of}, 3, opd + 3, &nres, res, (loc){0});
  REQUIRE(l && nres == 2);
  CHECK(shape_same(&res[0], &q) && shape_same(&res[1], &lse));
  const double products = op_flops(OP_attention, (attrs){1, &law_of}, l) - 5.0 * B * H * S * T;
  CHECK_CLOSE(products, 4.0 * B * H * S * T * D, 0);
  nres = 0;
  l = op_law(c, a, OP_attention_dx, (attrs){1, &law_of}, 6, opd, &nres, res, (loc){0});
  REQUIRE(l && nres == 3);
  CHECK_CLOSE(op_flops(OP_attention_dx, (attrs){1, &law_of}, l) - 8.0 * B * H * S * T, 2.5 * products, 0);
  arena_free(a);
  ctx_free(c);
}

// ---- models ------------------------------------------------------------------------------------------------
typedef struct {
  const char *model;
  u32 dims, fused, left; // attention that is found, and products of a softmax that are not
} family;
static const family families[] = {
    {"gpt2:layers=2,hidden=32,heads=4,vocab=64", 0, 1, 0},
    {"llama2-70b:layers=2,hidden=32,heads=4,kv_heads=2,ffn=64,vocab=64", 0, 1, 0},
    {"bert-base:layers=2,hidden=32,heads=4,vocab=64", 0, 1, 0},
    {"t5-small:layers=2,hidden=32,heads=4,vocab=64", 0, 3, 0}, // encoder, decoder, cross
    {"vit-base:layers=2,hidden=32,heads=4,ffn=64,vocab=8", 0, 1, 0},
    {"swin-t:layers=7,hidden=24,heads=2,ffn=48,vocab=8", 0, 6, 0}, // windows that are moved, too
    {"moe-8x125m:layers=2,hidden=32,heads=4,vocab=64", 0, 1, 0},   // the router's softmax is of no product
    {"mbart:layers=2,hidden=32,heads=4,ffn=64,vocab=64", 0, 3, 0},
    {"alphafold2:layers=2,hidden=16,heads=2,head_dim=8,ffn=24,vocab=12,msa=2,pair=16,positions=8", 0, 4, 0},
    {"examples/gpt2.onnx", 2, 1, 0},
    {"tests/golden/onnx/encoder.onnx", 0, 3, 0}, // in main
};

static prog *loaded(ctx *c, const family *f) {
  front_opts o = {.ndims = f->dims, .dims = split_dims, .loss = true};
  if (!f->dims && !strstr(f->model, ".onnx"))
    o.batch = 4, o.seq = strstr(f->model, "vit") ? 64 : strstr(f->model, "swin") ? 224 : 16;
  if (strstr(f->model, "encoder.onnx")) o.batch = 4;
  prog *p = front_load(c, f->model, &o);
  if (p && f->dims) pass_outline(p);
  return p;
}

TEST(attention_is_found_in_models) {
  ctx *c = ctx_new();
  for (u32 i = 0; i < COUNT_OF(families); i++) {
    prog *p = loaded(c, &families[i]);
    attention_count n;
    REQUIRE(p != NULL);
    const u32 before = func_get(p, p->main)->body.n;
    CHECK_MSG(pass_attention(p, (loc){0}, &n) && ir_verify(p), "%s: %s", families[i].model,
              diag_render(c, ctx_arena(c)));
    CHECK_MSG(n.fused == families[i].fused && n.left == families[i].left, "%s: %u fused, %u left",
              families[i].model, n.fused, n.left);
    CHECK_EQ_I64(func_get(p, p->main)->body.n, before);
    prog_free(p);
  }
  ctx_free(c);
}

// Not attention: scores that something else reads, that are scaled behind a bias, or whose softmax is dropped out of.
TEST(attention_is_not_found_elsewhere) {
  static const struct {
    const char *body;
    u32 fused;
  } cases[] = {
      {"  %s = einsum %q, %k {law=\"bsd,btd->bst\"}\n  %p = softmax %s\n  %y = matmul %p, %k\n  return %y\n",
       1},
      {"  %s = einsum %q, %k {law=\"bsd,btd->bst\"}\n  %p = softmax %s\n  %y = matmul %p, %k\n  return %y, "
       "%p\n",
       0},
      {"  %s = einsum %q, %k {law=\"bsd,btd->bst\"}\n  %p = softmax %s\n  %y = matmul %p, %k\n  return %y, "
       "%s\n",
       0},
      {"  %s = einsum %q, %k {law=\"bsd,btd->bst\"}\n  %z = add %s, %b\n  %w = scale %z {alpha=0.5}\n  %p = "
       "softmax %w\n"
       "  %y = matmul %p, %k\n  return %y\n",
       0},
      {"  %s = einsum %q, %k {law=\"bsd,btd->bst\"}\n  %w = scale %s {alpha=0.5}\n  %z = add %b, %w\n  %p = "
       "softmax %z\n"
       "  %y = matmul %p, %k\n  return %y\n",
       1},
      {"  %s = einsum %q, %k {law=\"bsd,btd->bst\"}\n  %p = softmax %s {axis=1}\n  %y = einsum %p, %q "
       "{law=\"bst,bsd->btd\"}\n"
       "  return %y\n",
       1}, // rows of scores are columns
      {"  %s = einsum %q, %k {law=\"bsd,btd->bst\"}\n  %p = softmax %s {axis=1}\n  %y = matmul %p, %k\n  "
       "return %y\n",
       0},
      {"  %s = einsum %q, %k {law=\"bsd,btd->bst\"}\n  %p = softmax %s\n  %z, %m = dropout %p {ratio=0.1}\n"
       "  %y = matmul %z, %k\n  return %y\n",
       0},
  };
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    ctx *c = ctx_new();
    const char *text = arena_printf(
        ctx_arena(c), "func @main(%%q: f32[2,3,4], %%k: f32[2,3,4], %%b: f32[3]) -> (%s) {\n%s}\n",
        strstr(cases[i].body, "%y, ") ? "f32[2,3,4], f32[2,3,3]" : "f32[2,3,4]", cases[i].body);
    prog *p = ir_parse(c, sym_of(c, "text"), text, strlen(text));
    attention_count n;
    if (!CHECK_MSG(p != NULL, "%u: %s", i, diag_render(c, ctx_arena(c)))) test_leave();
    pass_attention(p, (loc){0}, &n);
    CHECK_MSG(n.fused == cases[i].fused, "%u: %u are attention", i, n.fused);
    prog_free(p), ctx_free(c);
  }
}

static double saved_bytes(const split_model *m, u32 block) {
  const func_info *f = m->p->funcs.v[block];
  double sum = 0;
  for (u32 k = 0; k < f->rets.n; k++) sum += local_bytes(m->p, f, f->rets.v[k]);
  return sum;
}

// A layer keeps what Korthikanti et al. 2022 count without the 2 a s^2 b bytes of softmax (test_sequence.c), here in f32,
// and a number of f32 for each row of scores.
TEST(attention_layer_keeps_no_scores) {
  enum { B = 4, S = 16, H = 64, HEADS = 8 };
  static const char *const how[] = {"", " recompute=selective"};
  for (u32 i = 0; i < 2; i++) {
    hybrid_opts h = {.s = strategy_of("attention=fused%s", how[i]), .train = true};
    split_model m = split_open("gpt2:layers=3,hidden=64,heads=8,vocab=512", 0, &h);
    REQUIRE(m.p != NULL);
    CHECK_CLOSE(saved_bytes(&m, split_block(&m, "layer.fwd")), 2.0 * 32 * S * B * H + 4.0 * B * HEADS * S, 0);
    CHECK_EQ_I64(m.pn->nrecompute, 0); // nothing is left to compute again
    split_close(&m);
  }
}

TEST(attention_computes_what_the_model_computes) {
  static const char *const lines[] = {"attention=fused", "dp=2 tp=2 attention=fused",
                                      "pp=2 mb=2 attention=fused", "tp=2 coshard=2 attention=fused",
                                      "dp=2 zero=3 recompute=full attention=fused"};
  for (u32 i = 0; i < COUNT_OF(families); i++)
    for (u32 k = 0; k < COUNT_OF(lines); k++) {
      if (strstr(families[i].model, ".onnx") || (k && k % 4 != i % 4 && !strstr(families[i].model, "gpt2")))
        continue;
      if (strstr(families[i].model, "swin") || strstr(families[i].model, "alphafold"))
        continue; // they are large
      const hybrid_opts h = {
          .s = strategy_of("%s", lines[k]), .train = true, .optim = optim_default(OPTIM_ADAM)};
      split_model m = split_open(families[i].model, families[i].dims, &h);
      verify_report r;
      const bool ok = m.pn && plan_verify(m.pl, m.pn, NULL, &(verify_opts){.seed = 3}, m.a, &r);
      if (CHECK_MSG(ok, "%s: %s: %s", families[i].model, lines[k], diag_render(m.c, m.a)))
        CHECK_MSG(r.passed && r.worst > 0, "%s: %s: %g", families[i].model, lines[k], r.worst);
      split_close(&m);
    }
}

// The simulated peak of a step falls by what all layers keep of scores, and more: what the backward makes of them.
TEST(attention_lowers_the_peak) {
  enum { LAYERS = 4, B = 2, S = 1024, HEADS = 8 };
  double peak[2] = {0};
  for (u32 i = 0; i < 2; i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *src = front_load(c, "gpt2:layers=4,hidden=128,heads=8,vocab=64,positions=1024",
                           &(front_opts){.batch = B, .seq = S, .loss = true});
    machine *m = machine_load(c, a, "1x1 v100");
    planner *pl = src ? planner_new(src) : NULL;
    cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
    REQUIRE(pl && k);
    const hybrid_opts h = {.s = strategy_of("attention=%s", i ? "fused" : "scores"),
                           .train = true,
                           .optim = optim_default(OPTIM_ADAM)};
    const plan *pn = policy_hybrid(pl, a, &h);
    prog *p = pn ? plan_apply(pl, pn, k) : NULL;
    sim_result r;
    if (!CHECK_MSG(p && sim_run(c, a, p, k, &(sim_opts){.mode = SIM_FOLDED}, &r), "%s", diag_render(c, a)))
      test_leave();
    peak[i] = (double)r.peak_bytes;
    prog_free(p), planner_free(pl), prog_free(src);
    arena_free(a);
    ctx_free(c);
  }
  const double scores = 4.0 * HEADS * S * S * B, rows = 4.0 * HEADS * S * B; // of a layer, in f32
  CHECK_MSG(peak[0] - peak[1] >= LAYERS * (scores - rows), "%g less, scores have %g", peak[0] - peak[1],
            LAYERS * scores);
  CHECK_MSG(peak[0] - peak[1] <= (LAYERS + 2) * scores, "%g less, scores have %g", peak[0] - peak[1],
            LAYERS * scores);
}
