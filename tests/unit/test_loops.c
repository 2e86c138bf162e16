// test_loops.c - the inner loops of kernels: how exact their functions are, and that neither registers nor threads change
// a bit.
#include "kernel/kernel.h"
#include "kernel/loops.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

enum { N = 4099 };

static double loops_gelu(double x) { return x / (1 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x))); }
static double loops_gelu_exact(double x) {
  return (double)(0.5L * x *
                  erfcl(-x * 0.70710678118654752440084436L)); // the argument's rounding would count x^2 times
}
static double loops_sigmoid(double x) { return 1 / (1 + exp(-x)); }

// Against libm in f64, in units of the last place.
TEST(loops_functions_are_exact) {
  static const struct {
    opcode op;
    double (*want)(double);
    double least, most, ulp;
    bool tanh_form;
  } all[] = {{OP_exp, exp, -80, 80, 2, false},
             {OP_exp, exp, -1, 1, 2, false},
             {OP_tanh, tanh, -12, 12, 4, false},
             {OP_tanh, tanh, -1e-3, 1e-3, 4, false},
             {OP_sigmoid, loops_sigmoid, -80, 80, 4, false},
             {OP_gelu, loops_gelu, -3, 8, 16, true},
             {OP_gelu, loops_gelu_exact, -3, 3, 4, false},
             {OP_gelu, loops_gelu_exact, -12, 60, 4, false},
             {OP_erf, erf, -6, 6, 4, false},
             {OP_erf, erf, -1e-3, 1e-3, 4, false}};
  for (u32 k = 0; k < COUNT_OF(all); k++) {
    const elementwise e = {.op = all[k].op, .tanh_form = all[k].tanh_form};
    double x[N], y[N], worst[2] = {0};
    float xf[N], yf[N];
    for (i64 i = 0; i < N; i++) {
      xf[i] = (float)(all[k].least + (all[k].most - all[k].least) * (double)i / (N - 1));
      x[i] = xf[i];
    }
    CHECK(ker_loops_of(DT_F64)->unary(&e, y, x, N) && ker_loops_of(DT_F32)->unary(&e, yf, xf, N));
    for (i64 i = 0; i < N; i++) {
      const double want = all[k].want(x[i]), size = fmax(fabs(want), 0x1p-100);
      worst[0] = fmax(worst[0], fabs(y[i] - want) / size),
      worst[1] = fmax(worst[1], fabs(yf[i] - want) / size);
    }
    CHECK_MSG(worst[0] <= all[k].ulp * 0x1p-52 && worst[1] <= all[k].ulp * 0x1p-23, "%s: %g and %g ulp",
              op_row_of(all[k].op)->name, worst[0] * 0x1p52, worst[1] * 0x1p23);
  }
}

TEST(loops_know_the_ends) {
  const elementwise e = {.op = OP_exp}, t = {.op = OP_tanh}, f = {.op = OP_erf}, g = {.op = OP_gelu},
                    d = {.op = OP_gelu_dx};
  const double one[] = {1};
  double x[] = {INFINITY, -INFINITY, NAN, 709.5, 710, -745, -746, 0}, y[COUNT_OF(x)];
  float xf[] = {INFINITY, -INFINITY, NAN, 88.5f, 89, -103, -104.5f, 0}, yf[COUNT_OF(xf)];
  for (u32 wide = 0; wide < 2; wide++) {
    (wide ? ker_loops_of : ker_loops_plain)(DT_F64)->unary(&e, y, x, COUNT_OF(x));
    (wide ? ker_loops_of : ker_loops_plain)(DT_F32)->unary(&e, yf, xf, COUNT_OF(xf));
    CHECK(y[0] == INFINITY && y[1] == 0 && y[2] != y[2] && isfinite(y[3]) && y[4] == INFINITY && y[5] > 0 &&
          y[6] == 0 && y[7] == 1);
    CHECK(yf[0] == INFINITY && yf[1] == 0 && yf[2] != yf[2] && isfinite(yf[3]) && yf[4] == INFINITY &&
          yf[5] > 0 && yf[6] == 0 && yf[7] == 1);
    (wide ? ker_loops_of : ker_loops_plain)(DT_F64)->unary(&t, y, x, COUNT_OF(x));
    CHECK(y[0] == 1 && y[1] == -1 && y[2] != y[2]);
    (wide ? ker_loops_of : ker_loops_plain)(DT_F64)->unary(&f, y, x, COUNT_OF(x));
    (wide ? ker_loops_of : ker_loops_plain)(DT_F32)->unary(&f, yf, xf, COUNT_OF(xf));
    CHECK(y[0] == 1 && y[1] == -1 && y[2] != y[2] && y[7] == 0);
    CHECK(yf[0] == 1 && yf[1] == -1 && yf[2] != yf[2] && yf[7] == 0);
    (wide ? ker_loops_of : ker_loops_plain)(DT_F64)->unary(&g, y, x, COUNT_OF(x));
    (wide ? ker_loops_of : ker_loops_plain)(DT_F32)->unary(&g, yf, xf, COUNT_OF(xf));
    CHECK(y[0] == INFINITY && y[2] != y[2] && y[3] == x[3] && y[5] == 0 && y[7] == 0);
    CHECK(yf[0] == INFINITY && yf[2] != yf[2] && yf[3] == xf[3] && yf[5] == 0 && yf[7] == 0);
    (wide ? ker_loops_of : ker_loops_plain)(DT_F64)->binary(&d, y, one, 0, x, 1, COUNT_OF(x));
    CHECK(y[0] == 1 && y[1] == 0 && y[2] != y[2] && y[3] == 1 && y[5] == 0 && fabs(y[7] - 0.5) < 1e-15);
  }
}

// Every loop of both types on both sets of registers.
TEST(loops_give_the_same_on_any_registers) {
  static const opcode unary[] = {OP_exp, OP_tanh, OP_gelu, OP_erf, OP_silu, OP_sigmoid, OP_sqrt, OP_relu},
                      binary[] = {OP_add, OP_mul, OP_div, OP_max, OP_gelu_dx, OP_silu_dx, OP_relu_dx};
  for (dtype t = DT_F32; t <= DT_F64; t++) {
    const size_t bytes = dtype_bytes(t);
    double raw[N], x[N], y[N], z[2][N], acc[2][N] = {{0}};
    for (u64 i = 0; i < N; i++) raw[i] = ker_normal(3, i);
    ker_store_f64(x, t, raw, N);
    for (u64 i = 0; i < N; i++) raw[i] = ker_normal(4, i);
    ker_store_f64(y, t, raw, N);
    const ker_loops *v[2] = {ker_loops_plain(t), ker_loops_of(t)};
    for (u32 k = 0; k < 2 * COUNT_OF(unary); k++) {
      const elementwise e = {.op = unary[k / 2], .tanh_form = k % 2};
      for (u32 w = 0; w < 2; w++) v[w]->unary(&e, z[w], x, N);
      CHECK(!memcmp(z[0], z[1], bytes * N));
    }
    for (u32 k = 0; k < 2 * COUNT_OF(binary); k++) {
      const elementwise e = {.op = binary[k / 2], .tanh_form = k % 2};
      for (u32 w = 0; w < 2; w++) v[w]->binary(&e, z[w], x, 1, y, 1, N);
      CHECK(!memcmp(z[0], z[1], bytes * N));
    }
    CHECK(v[0]->sum(x, N) == v[1]->sum(x, N) && v[0]->dot(x, y, 0.5, N) == v[1]->dot(x, y, 0.5, N));
    CHECK(v[0]->log_sum_exp(x, N) == v[1]->log_sum_exp(x, N));
    for (u32 w = 0; w < 2; w++) v[w]->softmax(OP_softmax, z[w], x, N);
    CHECK(!memcmp(z[0], z[1], bytes * N));
    for (u32 w = 0; w < 2; w++) v[w]->softmax_dx(z[w], x, y, N);
    CHECK(!memcmp(z[0], z[1], bytes * N));
    const row_stats s = v[0]->stats(x, N, false, 1e-5);
    for (u32 w = 0; w < 2; w++) v[w]->norm_dx(&s, false, z[w], y, x, y);
    CHECK(!memcmp(z[0], z[1], bytes * N));
    for (u32 w = 0; w < 2; w++) v[w]->norm_dg(&s, acc[w], y, x, 0, N);
    CHECK(!memcmp(acc[0], acc[1], sizeof acc[0]));
  }
}

// What is dealt to threads is the same on any number of them.
TEST(loops_give_the_same_on_threads) {
  static const struct {
    opcode op;
    u32 nopd, nres;
    bool row[4]; // operands of one row
  } all[] = {{OP_add, 2, 1, {0, 1}},
             {OP_gelu, 1, 1, {0}},
             {OP_softmax, 1, 1, {0}},
             {OP_softmax_dx, 2, 1, {0}},
             {OP_layernorm, 3, 1, {0, 1, 1}},
             {OP_layernorm_dx, 3, 1, {0, 0, 1}},
             {OP_layernorm_dg, 2, 1, {0}},
             {OP_reduce_sum, 1, 1, {0}},
             {OP_adam, 4, 3, {0}}};
  enum { ROWS = 700, COLS = 515 };
  ctx *c = ctx_new();
  const i64 axes[1] = {0};
  const attr a[] = {{.key = A_axes, .kind = AK_INTS, .n = 1, .u.ints = axes}};
  for (dtype t = DT_F32; t <= DT_F64; t++)
    for (u32 k = 0; k < COUNT_OF(all); k++) {
      arena *mem = arena_new();
      u64 rng = k + 1;
      ker_tensor x[4], y[2][3];
      const bool to_row = all[k].op == OP_layernorm_dg || all[k].op == OP_reduce_sum;
      const shape whole = {.t = t, .nd = 2, .dim = {ROWS, COLS}}, row = {.t = t, .nd = 1, .dim = {COLS}},
                  kept = {.t = t, .nd = 2, .dim = {1, COLS}};
      for (u32 i = 0; i < all[k].nopd; i++) {
        double *raw = NEWN(mem, double, ROWS *COLS);
        for (i64 j = 0; j < ROWS * COLS; j++) raw[j] = rng_unit(&rng);
        x[i] = ker_whole(all[k].row[i] ? &row : &whole, arena_alloc(mem, sizeof(double) * ROWS * COLS));
        ker_store_f64(x[i].data, t, raw, ROWS * COLS);
      }
      for (u32 w = 0; w < 2; w++) {
        for (u32 i = 0; i < all[k].nres; i++)
          y[w][i] = ker_whole(!to_row                      ? &whole
                              : all[k].op == OP_reduce_sum ? &kept
                                                           : &row,
                              arena_alloc(mem, sizeof(double) * ROWS * COLS));
        const ker_args args = {.op = all[k].op,
                               .at = {all[k].op == OP_reduce_sum, a},
                               .nopd = all[k].nopd,
                               .nres = all[k].nres,
                               .opd = x,
                               .res = y[w],
                               .threads = w ? 3 : 1};
        REQUIRE(kernel_run(c, &args, (loc){0}));
      }
      for (u32 i = 0; i < all[k].nres; i++)
        CHECK(!memcmp(y[0][i].data, y[1][i].data, (size_t)ker_elems(&y[0][i]) * dtype_bytes(t)));
      arena_free(mem);
    }
  ctx_free(c);
}
