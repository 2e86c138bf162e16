// map.c - operators that work on each element by itself, operands broadcast as numpy does.
//
// Idea: one switch per run of elements, never per element; the expressions stand in one list per type.
#include "kernel/internal.h"

static const double root_half = 0.70710678118654752440, two_over_root_pi_half = 0.79788456080286535588;

static double gelu_tanh(double x) {
  return 0.5 * x * (1 + tanh(two_over_root_pi_half * (x + 0.044715 * x * x * x)));
}
static double sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

static double gelu_slope(double x) { // x P(x), P the normal distribution: P + x P'
  return 0.5 * erfc(-x * root_half) + x * 0.39894228040143267794 * exp(-0.5 * x * x);
}
static double gelu_tanh_slope(double x) { // x sigmoid(u(x))
  double k = 2 * two_over_root_pi_half, c = 0.044715 * x * x, s = sigmoid(k * x * (1 + c));
  return s + x * s * (1 - s) * k * (1 + 3 * c);
}
static double silu_slope(double x) {
  double s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

// Every unary operator on floats, of x, with the attributes alpha and tanh_form.
#define UNARY(DO)                                                                                            \
  DO(neg, -x)                                                                                                \
  DO(abs, fabs(x))                                                                                           \
  DO(exp, exp(x))                                                                                            \
  DO(log, log(x))                                                                                            \
  DO(sqrt, sqrt(x))                                                                                          \
  DO(rsqrt, 1 / sqrt(x))                                                                                     \
  DO(recip, 1 / x)                                                                                           \
  DO(tanh, tanh(x))                                                                                          \
  DO(sigmoid, sigmoid(x))                                                                                    \
  DO(relu, x < 0 ? 0 : x)                                                                                    \
  DO(leaky_relu, x < 0 ? alpha * x : x)                                                                      \
  DO(gelu, tanh_form ? gelu_tanh(x) : 0.5 * x * erfc(-x * root_half))                                        \
  DO(silu, x *sigmoid(x))                                                                                    \
  DO(erf, erf(x))                                                                                            \
  DO(sin, sin(x))                                                                                            \
  DO(cos, cos(x))                                                                                            \
  DO(tan, tan(x))                                                                                            \
  DO(asin, asin(x))                                                                                          \
  DO(acos, acos(x))                                                                                          \
  DO(atan, atan(x))                                                                                          \
  DO(sinh, sinh(x))                                                                                          \
  DO(cosh, cosh(x))                                                                                          \
  DO(asinh, asinh(x))                                                                                        \
  DO(acosh, acosh(x))                                                                                        \
  DO(atanh, atanh(x))                                                                                        \
  DO(softplus, fmax(x, 0) + log1p(exp(-fabs(x))))                                                            \
  DO(floor, floor(x))                                                                                        \
  DO(ceil, ceil(x))                                                                                          \
  DO(round, rint(x))                                                                                         \
  DO(sign, x > 0 ? 1 : x < 0 ? -1 : x)

static bool unary_f64(const run *r, double *y, const double *v, i64 n) {
  double alpha = attr_float(r->at, A_alpha, 0.01);
  bool tanh_form = attr_int(r->at, A_approx, 0);
  switch (r->op) {
#define DO(name, expr)                                                                                       \
  case OP_##name:                                                                                            \
    for (i64 i = 0; i < n; i++) {                                                                            \
      double x = v[i];                                                                                       \
      y[i] = expr;                                                                                           \
    }                                                                                                        \
    return true;
    UNARY(DO)
#undef DO
  default: return false;
  }
}

static bool unary_i64(const run *r, i64 *y, const i64 *v, i64 n, bool is_bool) {
  switch (r->op) {
#define DO(name, expr)                                                                                       \
  case OP_##name:                                                                                            \
    for (i64 i = 0; i < n; i++) {                                                                            \
      i64 x = v[i];                                                                                          \
      y[i] = expr;                                                                                           \
    }                                                                                                        \
    return true;
    DO(neg, (i64)(0 - (u64)x))
    DO(abs, x < 0 ? (i64)(0 - (u64)x) : x)
    DO(relu, x < 0 ? 0 : x)
    DO(sign, (x > 0) - (x < 0))
    DO(not, is_bool ? !x : ~x)
    DO(floor, x)
    DO(ceil, x)
    DO(round, x)
#undef DO
  default: return false;
  }
}

static bool not_for(run *r, const ker_tensor *t) {
  diag(r->c, E_DTYPE, r->where, "%s is not defined for %s", op_row_of(r->op)->name, dtype_name(t->t));
  return false;
}

bool ker_unary(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  i64 n = ker_elems(x);
  if (ker_elems(y) != n) return ker_misfit(r, "elements", ker_elems(y), n);
  if (r->op == OP_isnan || r->op == OP_isinf) {
    const char *mode = ker_mode(r, A_mode, "both");
    bool nan = r->op == OP_isnan, pos = strcmp(mode, "neg"), neg = strcmp(mode, "pos");
    for (i64 i = 0; i < n; i++) {
      double v = is_float(x) ? F(x)[i] : 0;
      I(y)[i] = nan ? v != v : (v == INFINITY && pos) || (v == -INFINITY && neg);
    }
    return true;
  }
  bool known = is_float(x) ? unary_f64(r, F(y), F(x), n) : unary_i64(r, I(y), I(x), n, x->t == DT_BOOL);
  return known || not_for(r, x);
}

// ---- two operands --------------------------------------------------------------------------------------

static double python_mod(double x, double y) {
  double m = fmod(x, y);
  return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

static i64 int_pow(i64 x, i64 e) {
  if (e < 0) return x == 1 ? 1 : x == -1 ? (e & 1 ? -1 : 1) : 0;
  u64 p = 1, b = (u64)x;
  for (; e; e >>= 1, b *= b)
    if (e & 1) p *= b;
  return (i64)p;
}

static i64 int_div(i64 x, i64 y) { return y == -1 ? (i64)(0 - (u64)x) : x / y; }
static i64 int_mod(i64 x, i64 y, bool of_x) {
  i64 m = y == -1 ? 0 : x % y;
  return !of_x && m && (m < 0) != (y < 0) ? m + y : m;
}

// z = x OP y over one run; strides are 0 or 1, and the common case is known to the compiler.
#define EACH(T, Z, expr)                                                                                     \
  {                                                                                                          \
    if (sx == 1 && sy == 1)                                                                                  \
      for (i64 i = 0; i < n; i++) {                                                                          \
        T x = xs[i], y = ys[i];                                                                              \
        zs[i] = (Z)(expr);                                                                                   \
      }                                                                                                      \
    else                                                                                                     \
      for (i64 i = 0; i < n; i++) {                                                                          \
        T x = xs[i * sx], y = ys[i * sy];                                                                    \
        zs[i] = (Z)(expr);                                                                                   \
      }                                                                                                      \
    return true;                                                                                             \
  }

static bool binary_f64(const run *r, double *zs, const double *xs, i64 sx, const double *ys, i64 sy, i64 n) {
  bool of_x = !strcmp(ker_mode(r, A_mode, ""), "fmod"), tanh_form = attr_int(r->at, A_approx, 0);
  double alpha = attr_float(r->at, A_alpha, 0);
  switch (r->op) {
  case OP_add: EACH(double, double, x + y)
  case OP_sub: EACH(double, double, x - y)
  case OP_mul: EACH(double, double, x *y)
  case OP_div: EACH(double, double, x / y)
  case OP_pow: EACH(double, double, pow(x, y))
  case OP_mod: EACH(double, double, of_x ? fmod(x, y) : python_mod(x, y))
  case OP_max: EACH(double, double, x > y || x != x ? x : y)
  case OP_min: EACH(double, double, x < y || x != x ? x : y)
  case OP_relu_dx: EACH(double, double, y <= 0 ? (alpha ? alpha * x : 0) : x)
  case OP_gelu_dx: EACH(double, double, x *(tanh_form ? gelu_tanh_slope(y) : gelu_slope(y)))
  case OP_silu_dx: EACH(double, double, x *silu_slope(y))
  case OP_tanh_dx: EACH(double, double, x *(1 - y * y))
  case OP_sigmoid_dx: EACH(double, double, x *y *(1 - y))
  default: return false;
  }
}

static bool binary_i64(const run *r, i64 *zs, const i64 *xs, i64 sx, const i64 *ys, i64 sy, i64 n) {
  bool of_x = !strcmp(ker_mode(r, A_mode, ""), "fmod"), uns = is_uint(&r->opd[0]);
  switch (r->op) {
  case OP_add: EACH(i64, i64, (u64)x + (u64)y)
  case OP_sub: EACH(i64, i64, (u64)x - (u64)y)
  case OP_mul: EACH(i64, i64, (u64)x * (u64)y)
  case OP_div: EACH(i64, i64, uns ? (i64)((u64)x / (u64)y) : int_div(x, y))
  case OP_mod: EACH(i64, i64, uns ? (i64)((u64)x % (u64)y) : int_mod(x, y, of_x))
  case OP_pow: EACH(i64, i64, int_pow(x, y))
  case OP_max: EACH(i64, i64, (uns ? (u64)x > (u64)y : x > y) ? x : y)
  case OP_min: EACH(i64, i64, (uns ? (u64)x < (u64)y : x < y) ? x : y)
  case OP_and: EACH(i64, i64, x & y)
  case OP_or: EACH(i64, i64, x | y)
  case OP_xor: EACH(i64, i64, x ^ y)
  case OP_shl: EACH(i64, i64, (u64)y < 64 ? (u64)x << y : 0)
  case OP_shr: EACH(i64, i64, (u64)y >= 64 ? (uns ? 0 : x >> 63) : uns ? (i64)((u64)x >> y) : x >> y)
  default: return false;
  }
}

static bool compare_f64(const run *r, i64 *zs, const double *xs, i64 sx, const double *ys, i64 sy, i64 n) {
  switch (r->op) {
  case OP_eq: EACH(double, i64, x == y)
  case OP_lt: EACH(double, i64, x < y)
  case OP_le: EACH(double, i64, x <= y)
  case OP_gt: EACH(double, i64, x > y)
  case OP_ge: EACH(double, i64, x >= y)
  default: return false;
  }
}

static bool compare_i64(const run *r, i64 *zs, const i64 *xs, i64 sx, const i64 *ys, i64 sy, i64 n) {
  u64 flip = is_uint(&r->opd[0]) ? (u64)1 << 63 : 0; // orders unsigned numbers as signed ones
  switch (r->op) {
  case OP_eq: EACH(i64, i64, x == y)
  case OP_lt: EACH(i64, i64, (i64)((u64)x ^ flip) < (i64)((u64)y ^ flip))
  case OP_le: EACH(i64, i64, (i64)((u64)x ^ flip) <= (i64)((u64)y ^ flip))
  case OP_gt: EACH(i64, i64, (i64)((u64)x ^ flip) > (i64)((u64)y ^ flip))
  case OP_ge: EACH(i64, i64, (i64)((u64)x ^ flip) >= (i64)((u64)y ^ flip))
  default: return false;
  }
}

// The result's space with the result and all operands in it.
static bool walk_all(run *r, walk *w) {
  ker_walk_init(w, r->res[0].nd, r->res[0].dim);
  ker_walk_add_dense(w, &r->res[0]);
  for (u32 k = 0; k < r->nopd; k++)
    if (!ker_walk_add_broadcast(w, &r->opd[k]))
      return ker_misfit(r, "elements", ker_elems(&r->opd[k]), ker_elems(&r->res[0]));
  return true;
}

// An integer to the power of a float, or the reverse, goes through f64.
static bool mixed_pow(run *r) {
  ker_tensor t[3] = {r->opd[0], r->opd[1], r->res[0]};
  i64 n = ker_elems(&t[2]);
  for (u32 k = 0; k < 2; k++)
    if (!is_float(&t[k])) {
      t[k].data = NEWN(r->a, double, ker_elems(&t[k]));
      ker_load_f64(t[k].data, is_uint(&t[k]) ? DT_U64 : DT_I64, r->opd[k].data, ker_elems(&t[k]));
      t[k].t = DT_F64;
    }
  bool to_int = !is_float(&t[2]);
  if (to_int) t[2].data = NEWN(r->a, double, n), t[2].t = DT_F64;
  run sub = *r;
  sub.opd = t;
  sub.res = &t[2];
  if (!ker_binary(&sub)) return false;
  if (to_int) ker_load_i64(r->res[0].data, DT_F64, t[2].data, n);
  return true;
}

bool ker_binary(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->opd[1], *z = &r->res[0];
  if (is_float(x) != is_float(y)) return r->op == OP_pow ? mixed_pow(r) : not_for(r, y);
  walk w;
  if (!walk_all(r, &w)) return false;
  if (!is_float(x) && (r->op == OP_div || r->op == OP_mod))
    for (i64 i = 0, n = ker_elems(y); i < n; i++)
      if (I(y)[i] == 0) {
        diag(r->c, E_VALUE, r->where, "%s: division of an integer by zero (element %lld)",
             op_row_of(r->op)->name, (long long)i);
        return false;
      }
  EACH_RUN(&w) {
    i64 o = w.off[0], a = w.off[1], b = w.off[2], n = walk_inner(&w);
    if (is_float(x) ? !binary_f64(r, F(z) + o, F(x) + a, step(&w, 1), F(y) + b, step(&w, 2), n)
                    : !binary_i64(r, I(z) + o, I(x) + a, step(&w, 1), I(y) + b, step(&w, 2), n))
      return not_for(r, x);
  }
  return true;
}

bool ker_compare(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->opd[1], *z = &r->res[0];
  walk w;
  if (is_float(x) != is_float(y)) return not_for(r, y);
  if (!walk_all(r, &w)) return false;
  EACH_RUN(&w) {
    i64 o = w.off[0], a = w.off[1], b = w.off[2], n = walk_inner(&w);
    if (is_float(x))
      compare_f64(r, I(z) + o, F(x) + a, step(&w, 1), F(y) + b, step(&w, 2), n);
    else
      compare_i64(r, I(z) + o, I(x) + a, step(&w, 1), I(y) + b, step(&w, 2), n);
  }
  return true;
}

bool ker_where(run *r) {
  const u64 *x = r->opd[1].data, *y = r->opd[2].data; // f64 and i64 alike
  u64 *z = r->res[0].data;
  walk w;
  if (!walk_all(r, &w)) return false;
  EACH_RUN(&w) {
    i64 n = walk_inner(&w), sm = step(&w, 1), sx = step(&w, 2), sy = step(&w, 3);
    const i64 *m = I(&r->opd[0]) + w.off[1];
    for (i64 i = 0; i < n; i++) z[w.off[0] + i] = m[i * sm] ? x[w.off[2] + i * sx] : y[w.off[3] + i * sy];
  }
  return true;
}

bool ker_scale(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  double alpha = attr_float(r->at, A_alpha, 0);
  i64 n = ker_elems(x);
  if (ker_elems(y) != n) return ker_misfit(r, "elements", ker_elems(y), n);
  bool mul = r->op == OP_scale;
  if (is_float(x))
    for (i64 i = 0; i < n; i++) F(y)[i] = mul ? alpha * F(x)[i] : alpha + F(x)[i];
  else
    for (i64 i = 0; i < n; i++)
      I(y)[i] = (i64)(mul ? (u64)I(x)[i] * (u64)(i64)alpha : (u64)I(x)[i] + (u64)(i64)alpha);
  return true;
}

bool ker_copy(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  i64 n = ker_elems(x);
  if (ker_elems(y) != n) return ker_misfit(r, "elements", ker_elems(y), n);
  if (x->data != y->data) ker_convert(y->data, y->t, x->data, x->t, n);
  return true;
}

bool ker_cast(run *r) { return ker_copy(r); }
