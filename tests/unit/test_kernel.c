// test_kernel.c - reference kernels against numbers worked out by hand or by a second, naive formula.
#include "kernel/kernel.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static ctx *C;
static arena *A;
static u64 R;

static void begin(void) {
  C = ctx_new();
  A = arena_new();
  R = 1;
}
static void end(void) {
  arena_free(A);
  ctx_free(C);
}

static ker_tensor made(dtype t, u32 nd, const i64 *dim, const double *v) {
  shape s = {.t = t, .nd = nd};
  memcpy(s.dim, dim, sizeof(i64) * nd);
  ker_tensor x = ker_whole(&s, NULL);
  i64 n = ker_elems(&x);
  x.data = arena_alloc(A, (size_t)n * dtype_bytes(t));
  double *f = NEWN(A, double, n);
  for (i64 i = 0; i < n; i++) f[i] = v ? v[i] : rng_unit(&R) * 2 - 1;
  ker_convert(x.data, t, f, DT_F64, n);
  return x;
}
#define DIMS(...)                                                                                            \
  (sizeof((i64[]){__VA_ARGS__}) / sizeof(i64)), (i64[]) { __VA_ARGS__ }
#define VALUES(...)                                                                                          \
  (double[]) { __VA_ARGS__ }

static double at(const ker_tensor *x, i64 i) {
  double v;
  ker_convert(&v, DT_F64, (const char *)x->data + (size_t)i * dtype_bytes(x->t), x->t, 1);
  return v;
}

static attrs with(u32 n, const attr *v) { // sorted by key, as the kernels expect
  attr *s = arena_dup(A, v, sizeof *v * n);
  for (u32 i = 0; i < n; i++)
    for (u32 j = i + 1; j < n; j++)
      if (s[j].key < s[i].key) {
        attr t = s[i];
        s[i] = s[j];
        s[j] = t;
      }
  return (attrs){n, s};
}
static attr ai(attr_key k, i64 v) { return (attr){.key = (u16)k, .kind = AK_INT, .u.i = v}; }
static attr af(attr_key k, double v) { return (attr){.key = (u16)k, .kind = AK_FLOAT, .u.f = v}; }
static attr as(attr_key k, const char *v) {
  return (attr){.key = (u16)k, .kind = AK_STR, .u.s = sym_of(C, v)};
}
static attr at_(attr_key k, dtype t) { return (attr){.key = (u16)k, .kind = AK_DTYPE, .u.t = t}; }
static attr av(attr_key k, u32 n, const i64 *v) {
  return (attr){.key = (u16)k, .kind = AK_INTS, .n = n, .u.ints = v};
}
#define WITH(...) with(sizeof((attr[]){__VA_ARGS__}) / sizeof(attr), (attr[]){__VA_ARGS__})

static ker_tensor run(opcode op, attrs a, u32 n, const ker_tensor *x) {
  ker_tensor y[4] = {0};
  u32 nres = MAX(op_row_of(op)->res, 1);
  bool ok = kernel_fold(C, A, op, a, NULL, n, x, nres, y, (loc){0});
  if (!CHECK_MSG(ok, "%s: %s", op_row_of(op)->name, diag_render(C, A))) test_leave();
  return y[0];
}
static ker_tensor run1(opcode op, attrs a, ker_tensor x) { return run(op, a, 1, &x); }
static ker_tensor run2(opcode op, attrs a, ker_tensor x, ker_tensor y) {
  return run(op, a, 2, (ker_tensor[]){x, y});
}

static void check_values(const ker_tensor *x, i64 n, const double *want, double rel) {
  if (!CHECK_EQ_I64(ker_elems(x), n)) return;
  for (i64 i = 0; i < n; i++) CHECK_CLOSE(at(x, i), want[i], rel);
}
#define CHECK_VALUES(x, rel, ...)                                                                            \
  check_values((x), sizeof(VALUES(__VA_ARGS__)) / sizeof(double), VALUES(__VA_ARGS__), (rel))

// ---- element types -------------------------------------------------------------------------------------

TEST(kernel_half_rounds_to_nearest_even) {
  begin();
  static const struct {
    double x;
    u16 h;
  } f16[] = {{0, 0},
             {-0.0, 0x8000},
             {1, 0x3c00},
             {65504, 0x7bff},
             {65519.999, 0x7bff},
             {65520, 0x7c00},
             {-1e9, 0xfc00},
             {0x1p-24, 1},
             {0x1p-25, 0},
             {0x1.8p-25, 1},
             {0x1p-14, 0x400},
             {0x1.ffep-15, 0x400},
             {1 + 0x1p-11, 0x3c00},
             {1 + 0x3p-11, 0x3c02},
             {1 + 0x1.0001p-11, 0x3c01},
             {INFINITY, 0x7c00}};
  for (u32 i = 0; i < COUNT_OF(f16); i++) {
    u16 h;
    ker_store_f64(&h, DT_F16, &f16[i].x, 1);
    CHECK_MSG(h == f16[i].h, "%a: %04x, want %04x", f16[i].x, h, f16[i].h);
  }
  for (u32 h = 0; h < 65536; h++)
    for (int b = 0; b < 2; b++) { // every number of 16 bits survives the way out and back
      u16 in = (u16)h, out;
      double x;
      dtype t = b ? DT_BF16 : DT_F16;
      ker_load_f64(&x, t, &in, 1);
      ker_store_f64(&out, t, &x, 1);
      if (x != x) continue;
      CHECK_MSG(out == in, "%s %04x -> %a -> %04x", dtype_name(t), in, x, out);
      if (b) {
        u32 w = h << 16;
        float f;
        memcpy(&f, &w, 4);
        CHECK(f == x);
      }
    }
  double big = 3.4e38, tie = 1 + 0x1p-8, up = 1 + 0x3p-8;
  u16 h;
  ker_store_f64(&h, DT_BF16, &big, 1);
  CHECK_EQ_I64(h, 0x7f80);
  ker_store_f64(&h, DT_BF16, &tie, 1);
  CHECK_EQ_I64(h, 0x3f80);
  ker_store_f64(&h, DT_BF16, &up, 1);
  CHECK_EQ_I64(h, 0x3f82);
  end();
}

TEST(kernel_cast_saturates_and_wraps) {
  begin();
  i64 out;
  double nan = NAN, big = 1e30, neg = -1e30, frac = -2.9;
  ker_convert(&out, DT_I64, &nan, DT_F64, 1);
  CHECK_EQ_I64(out, 0);
  ker_convert(&out, DT_I64, &big, DT_F64, 1);
  CHECK(out == INT64_MAX);
  ker_convert(&out, DT_I64, &neg, DT_F64, 1);
  CHECK(out == INT64_MIN);
  ker_convert(&out, DT_I64, &frac, DT_F64, 1);
  CHECK_EQ_I64(out, -2);
  i64 v = 300;
  u8 b;
  ker_convert(&b, DT_U8, &v, DT_I64, 1);
  CHECK_EQ_I64(b, 44);
  ker_convert(&b, DT_BOOL, &v, DT_I64, 1);
  CHECK_EQ_I64(b, 1);
  u64 huge = UINT64_MAX;
  double d;
  ker_convert(&d, DT_F64, &huge, DT_U64, 1);
  CHECK(d == 0x1p64);
  end();
}

// ---- elementwise ---------------------------------------------------------------------------------------

TEST(kernel_elementwise_broadcasts) {
  begin();
  ker_tensor x = made(DT_F32, DIMS(2, 3), VALUES(1, 2, 3, 4, 5, 6)),
             y = made(DT_F32, DIMS(3), VALUES(10, 20, 30));
  ker_tensor z = run2(OP_add, (attrs){0}, x, y);
  CHECK_VALUES(&z, 0, 11, 22, 33, 14, 25, 36);
  ker_tensor col = made(DT_F32, DIMS(2, 1), VALUES(2, -1));
  z = run2(OP_mul, (attrs){0}, col, x);
  CHECK_VALUES(&z, 0, 2, 4, 6, -4, -5, -6);
  z = run2(OP_lt, (attrs){0}, x, y);
  CHECK_EQ_I64(z.t, DT_BOOL);
  CHECK_VALUES(&z, 0, 1, 1, 1, 1, 1, 1);
  z = run(OP_where, (attrs){0}, 3, (ker_tensor[]){made(DT_BOOL, DIMS(3), VALUES(1, 0, 1)), x, y});
  CHECK_VALUES(&z, 0, 1, 20, 3, 4, 20, 6);
  end();
}

TEST(kernel_integer_arithmetic) {
  begin();
  ker_tensor x = made(DT_I32, DIMS(4), VALUES(7, -7, 7, -7)), y = made(DT_I32, DIMS(4), VALUES(2, 2, -2, -2));
  ker_tensor z = run2(OP_div, (attrs){0}, x, y);
  CHECK_VALUES(&z, 0, 3, -3, -3, 3);
  z = run2(OP_mod, (attrs){0}, x, y);
  CHECK_VALUES(&z, 0, 1, 1, -1, -1);
  z = run2(OP_mod, WITH(as(A_mode, "fmod")), x, y);
  CHECK_VALUES(&z, 0, 1, -1, 1, -1);
  z = run2(OP_pow, (attrs){0}, x, made(DT_I32, DIMS(1), VALUES(3)));
  CHECK_VALUES(&z, 0, 343, -343, 343, -343);
  z = run2(OP_pow, (attrs){0}, x, made(DT_F32, DIMS(1), VALUES(2)));
  CHECK_EQ_I64(z.t, DT_I32);
  CHECK_VALUES(&z, 0, 49, 49, 49, 49);
  ker_tensor res[1] = {x}, in[2] = {x, made(DT_I32, DIMS(4), VALUES(1, 0, 1, 1))};
  ker_args args = {.op = OP_div, .nopd = 2, .nres = 1, .opd = in, .res = res};
  CHECK(!kernel_run(C, &args, (loc){0}));
  CHECK_EQ_I64(diag_get(C, 0).id, E_VALUE);
  end();
}

TEST(kernel_unary_values) {
  begin();
  ker_tensor x = made(DT_F64, DIMS(4), VALUES(-1.5, 0, 0.5, 2));
  static const struct {
    opcode op;
    double y[4];
  } rows[] = {{OP_gelu, {-1.5 * 0.06680720126885807, 0, 0.5 * 0.6914624612740131, 2 * 0.9772498680518208}},
              {OP_sigmoid, {0.18242552380635635, 0.5, 0.6224593312018546, 0.8807970779778823}},
              {OP_softplus, {0.2014132779827524, 0.6931471805599453, 0.9740769841801067, 2.1269280110429727}},
              {OP_round, {-2, 0, 0, 2}},
              {OP_sign, {-1, 0, 1, 1}},
              {OP_relu, {0, 0, 0.5, 2}}};
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    ker_tensor y = run1(rows[i].op, (attrs){0}, x);
    check_values(&y, 4, rows[i].y, 1e-14);
  }
  ker_tensor y = run1(OP_leaky_relu, WITH(af(A_alpha, 0.1)), x);
  CHECK_VALUES(&y, 1e-15, -0.15, 0, 0.5, 2);
  ker_tensor dy = made(DT_F64, DIMS(4), VALUES(-2, INFINITY, 3, 4));
  y = run2(OP_relu_dx, (attrs){0}, dy, x); // no 0 times infinity
  CHECK_VALUES(&y, 0, 0, 0, 3, 4);
  y = run2(OP_relu_dx, WITH(af(A_alpha, 0.1)), made(DT_F64, DIMS(1), VALUES(-2)), x);
  CHECK_VALUES(&y, 1e-15, -0.2, -0.2, -2, -2);
  end();
}

// ---- products ------------------------------------------------------------------------------------------

static double rel_error(const ker_tensor *x, const double *want) {
  double worst = 0, top = 0;
  for (i64 i = 0, n = ker_elems(x); i < n; i++) {
    top = fmax(top, fabs(want[i]));
    worst = fmax(worst, fabs(at(x, i) - want[i]));
  }
  return worst / fmax(top, 1e-300);
}

TEST(kernel_matmul_all_sizes) {
  begin();
  for (i64 m = 1; m < 15; m += 3)
    for (i64 n = 1; n < 20; n += 3)
      for (i64 k = 0; k < 9; k += 4) {
        ker_tensor x = made(DT_F64, DIMS(2, m, k), NULL), y = made(DT_F64, DIMS(k, n), NULL);
        ker_tensor z = run2(OP_matmul, (attrs){0}, x, y);
        double *want = ZNEWN(A, double, 2 * m * n);
        for (i64 i = 0; i < 2 * m; i++)
          for (i64 j = 0; j < n; j++)
            for (i64 p = 0; p < k; p++) want[i * n + j] += at(&x, i * k + p) * at(&y, p * n + j);
        CHECK(rel_error(&z, want) < 1e-14);
      }
  ker_tensor v = made(DT_I32, DIMS(3), VALUES(1, 2, 3)),
             w = made(DT_I32, DIMS(3, 2), VALUES(1, 4, 2, 5, 3, 6));
  ker_tensor z = run2(OP_matmul, (attrs){0}, v, w);
  CHECK_EQ_I64(z.nd, 1);
  CHECK_VALUES(&z, 0, 14, 32);
  z = run2(OP_matmul, (attrs){0}, v, v);
  CHECK_EQ_I64(z.nd, 0);
  CHECK_VALUES(&z, 0, 14);
  end();
}

TEST(kernel_einsum_is_a_sum_over_letters) {
  begin();
  ker_tensor x = made(DT_F32, DIMS(2, 3, 4), NULL), y = made(DT_F32, DIMS(4, 2, 5), NULL);
  ker_tensor z = run2(OP_einsum, WITH(as(A_law, "bsk,kbn->nbs")), x, y);
  double *want = ZNEWN(A, double, 5 * 2 * 3);
  for (int b = 0; b < 2; b++)
    for (int s = 0; s < 3; s++)
      for (int n = 0; n < 5; n++)
        for (int k = 0; k < 4; k++)
          want[(n * 2 + b) * 3 + s] += at(&x, (b * 3 + s) * 4 + k) * at(&y, (k * 2 + b) * 5 + n);
  CHECK(rel_error(&z, want) < 1e-6);
  end();
}

// Larger than every block, whichever way operands lie. Without a BLAS sums are added in the order of the inner letter, to
// the bit; one may add in any order, in the type of the result.
static void check_products(bool in_order) {
  static const struct {
    const char *law;
    dtype t;
    i64 m, k, n;
  } all[] = {{"mk,kn->mn", DT_F64, 203, 601, 907},   {"km,kn->mn", DT_F64, 203, 601, 907},
             {"mk,nk->mn", DT_F32, 203, 601, 907},   {"km,nk->nm", DT_F32, 101, 257, 1103},
             {"mk,kn->mn", DT_F32, 5003, 1201, 231}, {"mk,kn->mn", DT_BF16, 97, 300, 9}};
  for (u32 c = 0; c < COUNT_OF(all); c++) {
    begin();
    const i64 m = all[c].m, k = all[c].k, n = all[c].n;
    const bool am = all[c].law[0] == 'm', bk = all[c].law[3] == 'k', cm = all[c].law[7] == 'm';
    ker_tensor x = made(all[c].t, DIMS(am ? m : k, am ? k : m), NULL),
               y = made(all[c].t, DIMS(bk ? k : n, bk ? n : k), NULL);
    ker_tensor z = run2(OP_einsum, WITH(as(A_law, all[c].law)), x, y);
    for (u32 q = 0; q < 300; q++) {
      const i64 i = (i64)(hash_u64(q, 1) % (u64)m), j = (i64)(hash_u64(q, 2) % (u64)n);
      double sum = 0, size = 0;
      for (i64 p = 0; p < k; p++) {
        const double xy = at(&x, am ? i * k + p : p * m + i) * at(&y, bk ? p * n + j : j * k + p);
        sum += xy, size += fabs(xy);
      }
      char bits[8] = {0};
      ker_store_f64(bits, all[c].t, &sum, 1);
      double want;
      ker_load_f64(&want, all[c].t, bits, 1);
      const double got = at(&z, cm ? i * n + j : j * m + i), one = all[c].t == DT_F64 ? 0x1p-53 : 0x1p-24;
      CHECK(in_order || all[c].t == DT_BF16 ? got == want : fabs(got - want) <= (double)k * one * size);
    }
    end();
  }
}
TEST(kernel_products_add_in_order) {
  kernel_set_blas(false);
  check_products(true);
  kernel_set_blas(true);
}
TEST(kernel_products_of_a_blas) {
  if (!kernel_set_blas(true)) SKIP("there is no BLAS");
  check_products(false);
}

// Laws that a BLAS takes as they lie, only packed, cut into parts, as a batch, and not at all: with and without one, and on
// any number of threads, to the bit.
TEST(kernel_products_with_and_without_a_blas) {
  static const struct {
    const char *law;
    i64 n[128]; // by letter
  } all[] = {
      {"bshd,bthd->bhst", {['b'] = 2, ['s'] = 33, ['h'] = 3, ['d'] = 8, ['t'] = 29}},
      {"bhst,bthd->bshd", {['b'] = 2, ['s'] = 33, ['h'] = 3, ['d'] = 8, ['t'] = 29}},
      {"amk,amn->kn", {['a'] = 3, ['m'] = 17, ['k'] = 40, ['n'] = 21}},
      {"bsd,dhe->bhse", {['b'] = 3, ['s'] = 20, ['d'] = 9, ['h'] = 4, ['e'] = 18}},
      {"bsd,dhe->bhse", {['b'] = 3, ['s'] = 5, ['d'] = 9, ['h'] = 4, ['e'] = 3}},
      {"ab,cb->ca", {['a'] = 5, ['b'] = 7, ['c'] = 30}},
      {"abc,dca->bd", {['a'] = 5, ['b'] = 7, ['c'] = 30, ['d'] = 11}},
      {"ab,c->b", {['a'] = 5, ['b'] = 7, ['c'] = 30}},
      {"ab,ac->abc", {['a'] = 5, ['b'] = 1, ['c'] = 30}},
      {"a,a->", {['a'] = 50}},
      {"ab,ac->bca", {['a'] = 20, ['b'] = 3, ['c'] = 4}},
      {"ab,bc->ac", {['a'] = 700, ['b'] = 900, ['c'] = 1300}},
  };
  for (u32 c = 0; c < COUNT_OF(all); c++)
    for (dtype t = DT_F32; t <= DT_F64; t++) {
      begin();
      i64 dim[2][4];
      u32 nd[2] = {0};
      for (const char *p = all[c].law, *end = strchr(p, '-'), *comma = strchr(p, ','); p < end; p++)
        if (*p != ',') dim[p > comma][nd[p > comma]++] = all[c].n[(u8)*p];
      ker_tensor x = made(t, nd[0], dim[0], NULL), y = made(t, nd[1], dim[1], NULL), z[3];
      for (u32 k = 0; k < 3; k++) {
        kernel_set_blas(k > 0);
        z[k] = run2(OP_einsum, WITH(as(A_law, all[c].law)), x, y);
      }
      const ker_args args = {.op = OP_einsum,
                             .at = WITH(as(A_law, all[c].law)),
                             .nopd = 2,
                             .nres = 1,
                             .opd = (ker_tensor[]){x, y},
                             .res = &z[2],
                             .threads = 3};
      CHECK(kernel_run(C, &args, (loc){0}));
      const i64 n = ker_elems(&z[0]);
      CHECK(!memcmp(z[1].data, z[2].data, (size_t)n * dtype_bytes(t)));
      double worst = 0, size = 0;
      for (i64 k = 0; k < n; k++)
        worst = fmax(worst, fabs(at(&z[0], k) - at(&z[1], k))), size = fmax(size, fabs(at(&z[0], k)));
      CHECK(worst <= (t == DT_F64 ? 1e-13 : 1e-5) * size);
      end();
    }
}

TEST(kernel_matmul_speed) {
  begin();
  i64 n = 384;
  ker_tensor x = made(DT_F64, DIMS(n, n), NULL), y = made(DT_F64, DIMS(n, n), NULL);
  u64 t = clock_ns();
  run2(OP_matmul, (attrs){0}, x, y);
  double gflops = 2.0 * (double)(n * n * n) / (double)(clock_ns() - t);
  if (getenv("HEDDLE_VERBOSE")) printf("matmul f64 %lld: %.1f GFLOP/s\n", (long long)n, gflops);
  end();
}

// A convolution as its definition says.
static void naive_conv(const ker_tensor *x, const ker_tensor *w, ker_tensor *y, double *out, i64 groups,
                       const i64 *s, const i64 *d, const i64 *p) {
  i64 cg = w->dim[1], fg = w->dim[0] / groups, *o = y->dim;
  for (i64 n = 0; n < o[0]; n++)
    for (i64 f = 0; f < o[1]; f++)
      for (i64 i = 0; i < o[2]; i++)
        for (i64 j = 0; j < o[3]; j++) {
          double sum = 0;
          for (i64 c = 0; c < cg; c++)
            for (i64 u = 0; u < w->dim[2]; u++)
              for (i64 v = 0; v < w->dim[3]; v++) {
                i64 a = i * s[0] - p[0] + u * d[0], b = j * s[1] - p[1] + v * d[1];
                if (a < 0 || b < 0 || a >= x->dim[2] || b >= x->dim[3]) continue;
                sum += at(x, ((n * x->dim[1] + f / fg * cg + c) * x->dim[2] + a) * x->dim[3] + b) *
                       at(w, ((f * cg + c) * w->dim[2] + u) * w->dim[3] + v);
              }
          out[((n * o[1] + f) * o[2] + i) * o[3] + j] = sum;
        }
}

static void check_conv(u32 nd, const i64 *image, i64 filters, i64 g, const i64 *strides, const i64 *dilations,
                       const i64 *pads) {
  ker_tensor x = made(DT_F64, nd, image, NULL), w = made(DT_F64, DIMS(filters, image[1] / g, 3, 2), NULL);
  attr common[] = {av(A_strides, 2, strides), av(A_dilations, 2, dilations), av(A_pads, 4, pads),
                   ai(A_group, g), av(A_shape, 4, x.dim)};
  ker_tensor y = run2(OP_conv, with(4, common), x, w);
  double *want = NEWN(A, double, ker_elems(&y));
  naive_conv(&x, &w, &y, want, g, strides, dilations, pads);
  CHECK(rel_error(&y, want) < 1e-14);
  // Bilinear: <dy, conv(x, w)> = <dx, x> = <dw, w>.
  ker_tensor dy = made(DT_F64, y.nd, y.dim, NULL), dx = run2(OP_conv_dx, with(5, common), dy, w);
  common[4] = av(A_shape, 4, w.dim);
  ker_tensor dw = run2(OP_conv_dw, with(5, common), dy, x);
  double a = 0, b = 0, c = 0;
  for (i64 i = 0; i < ker_elems(&y); i++) a += at(&dy, i) * at(&y, i);
  for (i64 i = 0; i < ker_elems(&x); i++) b += at(&dx, i) * at(&x, i);
  for (i64 i = 0; i < ker_elems(&w); i++) c += at(&dw, i) * at(&w, i);
  CHECK_CLOSE(b, a, 1e-12);
  CHECK_CLOSE(c, a, 1e-12);
}

TEST(kernel_conv_and_its_gradients) {
  begin();
  static const struct {
    i64 groups, s[2], d[2], p[4];
  } cases[] = {{1, {1, 1}, {1, 1}, {0, 0, 0, 0}},
               {1, {2, 1}, {1, 2}, {1, 2, 0, 1}},
               {2, {1, 2}, {2, 1}, {2, 0, 2, 0}},
               {4, {3, 2}, {1, 1}, {0, 1, 1, 1}},
               {1, {1, 1}, {1, 1}, {-1, 2, 3, -2}}};
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    check_conv(DIMS(2, 4, 7, 6), 8, cases[k].groups, cases[k].s, cases[k].d, cases[k].p);
    check_conv(DIMS(1, 96, 40, 61), 4, cases[k].groups, cases[k].s, cases[k].d,
               cases[k].p); // in blocks, of some channels
  }
  end();
}

// However large the images are, a convolution takes little beside its tensors.
TEST(kernel_conv_takes_little_memory) {
  enum { MOST = 6 << 20 }; // with its packed copy in f64, where there is no BLAS
  begin();
  static const i64 one[] = {1, 1}, pads[] = {1, 1, 1, 1};
  ker_tensor x = made(DT_F32, DIMS(2, 32, 120, 120), NULL), w = made(DT_F32, DIMS(8, 32, 3, 3), NULL);
  ker_tensor y = made(DT_F32, DIMS(2, 8, 120, 120), NULL); // columns of one image: 16 MiB
  const struct {
    opcode op;
    const ker_tensor *a, *b, *of;
  } ops[] = {{OP_conv, &x, &w, &y}, {OP_conv_dx, &y, &w, &x}, {OP_conv_dw, &y, &x, &w}};
  for (u32 k = 0; k < COUNT_OF(ops); k++) {
    attr given[] = {av(A_strides, 2, one), av(A_pads, 4, pads), av(A_shape, 4, ops[k].of->dim)};
    arena *scratch = arena_new();
    ker_tensor opd[] = {*ops[k].a, *ops[k].b}, res = made(DT_F32, ops[k].of->nd, ops[k].of->dim, NULL);
    const attrs at = k ? with(3, given) : with(2, given);
    const ker_args args = {.op = ops[k].op,
                           .at = at,
                           .nopd = 2,
                           .nres = 1,
                           .opd = opd,
                           .res = &res,
                           .scratch = scratch,
                           .threads = 1};
    const arena_mark_t mark = arena_mark(scratch);
    CHECK(kernel_run(C, &args, (loc){0}));
    CHECK_MSG(arena_bytes(scratch) < MOST, "%s: %zu bytes", op_row_of(ops[k].op)->name, arena_bytes(scratch));
    arena_release(scratch, mark);
    arena_free(scratch);
  }
  end();
}

TEST(kernel_pools) {
  begin();
  ker_tensor x = made(DT_F32, DIMS(1, 1, 3, 3), VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9));
  i64 two[] = {2, 2}, pads[] = {1, 1, 0, 0}, three[] = {3, 3}, ones[] = {1, 1, 1, 1};
  ker_tensor y = run1(OP_maxpool, WITH(av(A_window, 2, two), av(A_pads, 4, pads)), x);
  CHECK_VALUES(&y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  y = run1(OP_maxpool_arg, WITH(av(A_window, 2, two)), x);
  CHECK_VALUES(&y, 0, 4, 5, 7, 8);
  y = run1(OP_avgpool, WITH(av(A_window, 2, three), av(A_pads, 4, ones)), x);
  CHECK_VALUES(&y, 1e-6, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7);
  y = run1(OP_avgpool, WITH(av(A_window, 2, three), av(A_pads, 4, ones), ai(A_include_pad, 1)), x);
  CHECK_VALUES(&y, 1e-6, 12 / 9., 21 / 9., 16 / 9., 27 / 9., 5, 33 / 9., 24 / 9., 39 / 9., 28 / 9.);
  end();
}

// ---- reductions, form, index ---------------------------------------------------------------------------

TEST(kernel_reductions) {
  begin();
  ker_tensor x = made(DT_F32, DIMS(2, 3, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  i64 middle[] = {1}, outer[] = {0, -1};
  ker_tensor y = run1(OP_reduce_sum, WITH(av(A_axes, 1, middle), ai(A_keepdims, 0)), x);
  CHECK_VALUES(&y, 0, 9, 12, 27, 30);
  y = run1(OP_reduce_mean, WITH(av(A_axes, 2, outer)), x);
  CHECK_VALUES(&y, 0, 4.5, 6.5, 8.5);
  y = run1(OP_reduce_max, (attrs){0}, x);
  CHECK_VALUES(&y, 0, 12);
  y = run1(OP_reduce_prod, WITH(av(A_axes, 2, outer)), x);
  CHECK_VALUES(&y, 0, 1 * 2 * 7 * 8, 3 * 4 * 9 * 10, 5 * 6 * 11 * 12);
  y = run1(OP_argmax, WITH(ai(A_axis, 1)), x);
  CHECK_VALUES(&y, 0, 2, 2, 2, 2);
  y = run1(OP_cumsum, WITH(ai(A_axis, 1), ai(A_reverse, 1), ai(A_exclusive, 1)), x);
  CHECK_VALUES(&y, 0, 8, 10, 5, 6, 0, 0, 20, 22, 11, 12, 0, 0);
  y = run1(OP_topk, WITH(ai(A_axis, -1), ai(A_k, 2)), made(DT_F32, DIMS(4), VALUES(3, 1, 3, 2)));
  CHECK_VALUES(&y, 0, 3, 3);
  ker_tensor u = run1(OP_reduce_min, (attrs){0}, made(DT_U8, DIMS(3), VALUES(200, 130, 255)));
  CHECK_VALUES(&u, 0, 130);
  end();
}

TEST(kernel_forms) {
  begin();
  ker_tensor x = made(DT_F16, DIMS(2, 3), VALUES(1, 2, 3, 4, 5, 6));
  i64 perm[] = {1, 0}, starts[] = {2}, ends[] = {-1}, axes[] = {1}, steps[] = {-2}, pads[] = {0, 2, 1, 1};
  i64 twice[] = {1, 2}, sizes[] = {1, 2};
  ker_tensor y = run1(OP_transpose, WITH(av(A_perm, 2, perm)), x);
  CHECK_VALUES(&y, 0, 1, 4, 2, 5, 3, 6);
  y = run1(OP_slice,
           WITH(av(A_starts, 1, starts), av(A_ends, 1, ends), av(A_axes, 1, axes), av(A_steps, 1, steps)), x);
  CHECK_VALUES(&y, 0, 3, 1, 6, 4);
  y = run1(OP_pad, WITH(av(A_pads, 4, pads), af(A_value, 9)), x);
  CHECK_VALUES(&y, 0, 9, 9, 1, 2, 3, 9, 9, 9, 4, 5, 6, 9, 9, 9, 9, 9, 9, 9);
  i64 wide[] = {0, 2, 0, 2};
  y = run1(OP_pad, WITH(av(A_pads, 4, wide), as(A_mode, "reflect")), x);
  CHECK_VALUES(&y, 0, 3, 2, 1, 2, 3, 2, 1, 6, 5, 4, 5, 6, 5, 4);
  y = run1(OP_tile, WITH(av(A_sizes, 2, twice)), x);
  CHECK_VALUES(&y, 0, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
  y = run2(OP_concat, WITH(ai(A_axis, 1)), x, x);
  CHECK_VALUES(&y, 0, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
  ker_tensor parts[2];
  REQUIRE(kernel_fold(C, A, OP_split, WITH(ai(A_axis, 1), av(A_sizes, 2, sizes)), NULL, 1, &x, 2, parts,
                      (loc){0}));
  CHECK_VALUES(&parts[0], 0, 1, 4);
  CHECK_VALUES(&parts[1], 0, 2, 3, 5, 6);
  y = run1(OP_trilu, WITH(ai(A_upper, 0), ai(A_k, 0)), x);
  CHECK_VALUES(&y, 0, 1, 0, 0, 4, 5, 0);
  end();
}

TEST(kernel_gathers) {
  begin();
  ker_tensor x = made(DT_F32, DIMS(3, 2), VALUES(1, 2, 3, 4, 5, 6)),
             i = made(DT_I64, DIMS(2, 2), VALUES(0, -1, 1, 0));
  ker_tensor y = run2(OP_gather, WITH(ai(A_axis, 0)), x, i);
  CHECK_VALUES(&y, 0, 1, 2, 5, 6, 3, 4, 1, 2);
  ker_tensor dx = run2(OP_gather_add, WITH(ai(A_axis, 0), av(A_shape, 2, x.dim)), y, i);
  CHECK_VALUES(&dx, 0, 2, 4, 3, 4, 5, 6);
  y = run2(OP_take, WITH(ai(A_axis, 0)), x, made(DT_I64, DIMS(1, 2), VALUES(2, 0)));
  CHECK_VALUES(&y, 0, 5, 2);
  y = run2(OP_gather_nd, (attrs){0}, x, made(DT_I64, DIMS(2, 2), VALUES(0, 1, 2, 0)));
  CHECK_VALUES(&y, 0, 2, 5);
  ker_tensor in[3] = {x, made(DT_I64, DIMS(2, 1), VALUES(2, 2)),
                      made(DT_F32, DIMS(2, 2), VALUES(1, 1, 10, 10))};
  y = run(OP_scatter_nd, WITH(as(A_scatter, "add")), 3, in);
  CHECK_VALUES(&y, 0, 1, 2, 3, 4, 16, 17);
  ker_tensor bad[2] = {x, made(DT_I64, DIMS(1), VALUES(3))}, res[1] = {made(DT_F32, DIMS(1, 2), NULL)};
  ker_args args = {.op = OP_gather, .nopd = 2, .nres = 1, .opd = bad, .res = res};
  CHECK(!kernel_run(C, &args, (loc){0}));
  CHECK_EQ_I64(diag_get(C, diag_count(C) - 1).id, E_VALUE);
  y = run1(OP_one_hot, WITH(ai(A_size, 3), ai(A_axis, 0), at_(A_dtype, DT_F32)),
           made(DT_I64, DIMS(2), VALUES(2, -3)));
  CHECK_VALUES(&y, 0, 0, 1, 0, 0, 1, 0);
  end();
}

// ---- layers, losses, optimizers ------------------------------------------------------------------------

TEST(kernel_layers) {
  begin();
  ker_tensor x = made(DT_F64, DIMS(1, 3), VALUES(1, 2, 3)), one = made(DT_F64, DIMS(3), VALUES(1, 1, 1)),
             b = made(DT_F64, DIMS(3), VALUES(0, 0, 10));
  double r = 1 / sqrt(2. / 3);
  ker_tensor y = run(OP_layernorm, WITH(af(A_eps, 0)), 3, (ker_tensor[]){x, one, b});
  CHECK_VALUES(&y, 1e-14, -r, 0, r + 10);
  y = run(OP_rmsnorm, WITH(af(A_eps, 0)), 2, (ker_tensor[]){x, one});
  double q = sqrt(14. / 3);
  CHECK_VALUES(&y, 1e-14, 1 / q, 2 / q, 3 / q);
  y = run1(OP_softmax, (attrs){0}, made(DT_F64, DIMS(3), VALUES(0, log(2), -INFINITY)));
  CHECK_VALUES(&y, 1e-14, 1. / 3, 2. / 3, 0);
  y = run1(OP_hardmax, (attrs){0}, made(DT_F64, DIMS(3), VALUES(1, 2, 2)));
  CHECK_VALUES(&y, 0, 0, 1, 0);
  y = run1(OP_resize, WITH(av(A_shape, 1, (i64[]){4}), as(A_mode, "linear")),
           made(DT_F64, DIMS(2), VALUES(0, 4)));
  CHECK_VALUES(&y, 1e-14, 0, 1, 3, 4);
  y = run2(OP_reverse, WITH(ai(A_axis, 0), ai(A_batch_dims, 1)),
           made(DT_F64, DIMS(3, 2), VALUES(1, 2, 3, 4, 5, 6)), made(DT_I64, DIMS(2), VALUES(3, 1)));
  CHECK_VALUES(&y, 0, 5, 2, 3, 4, 1, 6);
  end();
}

TEST(kernel_losses) {
  begin();
  ker_tensor x = made(DT_F64, DIMS(3, 4), VALUES(0, 0, 0, 0, 0, 0, 0, 0, log(3), 0, 0, 0));
  ker_tensor l = made(DT_I64, DIMS(3), VALUES(1, 2, 0));
  ker_tensor y = run2(OP_cross_entropy, WITH(as(A_reduce, "none")), x, l);
  CHECK_VALUES(&y, 1e-14, log(4), log(4), log(2));
  y = run2(OP_cross_entropy, (attrs){0}, x, l);
  CHECK_VALUES(&y, 1e-14, (2 * log(4) + log(2)) / 3);
  y = run2(OP_cross_entropy, WITH(ai(A_ignore, 0)), x, l);
  CHECK_VALUES(&y, 1e-14, log(4));
  i64 here[] = {0, 2}; // a mean over labels that count needs all of them
  l.dim[0] = x.dim[0] = 2;
  l.index[0] = x.index[0] = here;
  ker_tensor in[2] = {x, l}, res[1] = {made(DT_F64, 0, (i64[]){0}, NULL)};
  ker_args args = {
      .op = OP_cross_entropy, .at = WITH(ai(A_ignore, 0)), .nopd = 2, .nres = 1, .opd = in, .res = res};
  CHECK(!kernel_run(C, &args, (loc){0}));
  CHECK_EQ_I64(diag_get(C, 0).id, E_LAYOUT);
  args.at = (attrs){0}; // over all labels a piece gives its share
  CHECK(kernel_run(C, &args, (loc){0}));
  CHECK_VALUES(&res[0], 1e-14, 2 * log(4) / 3);
  end();
}

TEST(kernel_optimizers) {
  begin();
  ker_tensor w = made(DT_F64, DIMS(1), VALUES(1)), g = made(DT_F64, DIMS(1), VALUES(0.5)),
             zero = made(DT_F64, DIMS(1), VALUES(0));
  ker_tensor y = run2(OP_sgd, WITH(af(A_lr, 0.1), af(A_weight_decay, 1)), w, g);
  CHECK_VALUES(&y, 1e-15, 1 - 0.1 * 1.5);
  y = run(OP_momentum, WITH(af(A_lr, 0.1)), 3, (ker_tensor[]){w, g, g});
  CHECK_VALUES(&y, 1e-15, 1 - 0.1 * (0.9 * 0.5 + 0.5));
  y = run(OP_adam, WITH(af(A_lr, 0.1)), 4,
          (ker_tensor[]){w, g, zero, zero}); // the first step is lr, whatever g
  CHECK_VALUES(&y, 1e-7, 0.9);
  y = run(OP_adamw, WITH(af(A_lr, 0.1), af(A_weight_decay, 0.5)), 4, (ker_tensor[]){w, g, zero, zero});
  CHECK_VALUES(&y, 1e-7, 1 - 0.05 - 0.1);
  end();
}

TEST(kernel_experts) {
  begin();
  ker_tensor p = made(DT_F64, DIMS(1, 3, 2), VALUES(.6, .4, .7, .3, .8, .2)), gate[2];
  REQUIRE(
      kernel_fold(C, A, OP_moe_gate, WITH(ai(A_k, 1), ai(A_capacity, 2)), NULL, 1, &p, 2, gate, (loc){0}));
  CHECK_VALUES(&gate[0], 0, 0, 1, -1); // expert 0 takes two tokens
  CHECK_VALUES(&gate[1], 0, .6, .7, 0);
  ker_tensor x = made(DT_F64, DIMS(1, 3, 2), VALUES(1, 2, 3, 4, 5, 6));
  ker_tensor d = run2(OP_moe_dispatch, WITH(ai(A_experts, 2), ai(A_capacity, 2)), x, gate[0]);
  CHECK_VALUES(&d, 0, 1, 2, 3, 4, 0, 0, 0, 0);
  ker_tensor y = run(OP_moe_combine, (attrs){0}, 3, (ker_tensor[]){d, gate[0], gate[1]});
  CHECK_VALUES(&y, 1e-15, .6, 1.2, 2.1, 2.8, 0, 0);
  end();
}

// ---- random numbers ------------------------------------------------------------------------------------

TEST(kernel_random_is_uniform_and_normal) {
  begin();
  double sum = 0, sq = 0, normal = 0, nsq = 0;
  int n = 20000;
  for (int i = 0; i < n; i++) {
    double u = ker_uniform(7, (u64)i), z = ker_normal(7, (u64)i);
    CHECK(u >= 0 && u < 1);
    sum += u;
    sq += u * u;
    normal += z;
    nsq += z * z;
  }
  CHECK(fabs(sum / n - 0.5) < 0.01 && fabs(sq / n - 1. / 3) < 0.01);
  CHECK(fabs(normal / n) < 0.03 && fabs(nsq / n - 1) < 0.05);
  CHECK(ker_uniform(7, 1) != ker_uniform(8, 1) && ker_uniform(7, 1) != ker_uniform(7, 2));
  end();
}

// Products cut by rows, by columns and by their batch: the same bits on any number of threads.
TEST(kernel_products_on_threads) {
  static const i64 sizes[][4] = {{1, 331, 203, 170}, {1, 61, 1003, 170}, {7, 90, 101, 90},
                                 {64, 40, 41, 60},   {1, 3, 5, 400000},  {1, 1300, 700, 900}};
  ctx *c = ctx_new();
  u64 rng = 5;
  for (u32 k = 0; k < COUNT_OF(sizes); k++) {
    const i64 b = sizes[k][0], m = sizes[k][1], n = sizes[k][2], p = sizes[k][3];
    arena *a = arena_new();
    float *x = NEWN(a, float, b *m *p), *y = NEWN(a, float, b *p *n);
    for (i64 i = 0; i < b * m * p; i++) x[i] = (float)ker_normal(1, rng++);
    for (i64 i = 0; i < b * p * n; i++) y[i] = (float)ker_normal(2, rng++);
    const shape sx = {.t = DT_F32, .nd = 3, .dim = {b, m, p}}, sy = {.t = DT_F32, .nd = 3, .dim = {b, p, n}},
                sz = {.t = DT_F32, .nd = 3, .dim = {b, m, n}};
    const ker_tensor in[2] = {ker_whole(&sx, x), ker_whole(&sy, y)};
    float *first = NULL;
    for (int threads = 1; threads < 6; threads++) {
      float *z = NEWN(a, float, b *m *n);
      ker_tensor out = ker_whole(&sz, z);
      const ker_args args = {
          .op = OP_matmul, .nopd = 2, .nres = 1, .opd = in, .res = &out, .threads = threads};
      REQUIRE(kernel_run(c, &args, (loc){0}));
      if (!first) first = z;
      CHECK(!memcmp(z, first, sizeof *z * (size_t)(b * m * n)));
    }
    arena_free(a);
  }
  ctx_free(c);
}
