// map.c - operators that work on each element by itself, operands broadcast as numpy does.
//
// Idea: one switch per run of elements, never per element; the expressions stand in one list for whole numbers, here, and
// one for floats (loops_body.h).
#include "kernel/internal.h"

static elementwise elementwise_of(const run *r, double alpha) {
  return (elementwise){.op = r->op,
                       .alpha = attr_float(r->at, A_alpha, alpha),
                       .tanh_form = attr_int(r->at, A_approx, 0),
                       .of_x = !strcmp(ker_mode(r, A_mode, ""), "fmod")};
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

// ---- floats, element by element ----------------------------------------------------------------------------
typedef struct {
  const run *r;
  elementwise e;
  double a, b; // of affine
} floats;

static void unary_part(const void *arg, i64 from, i64 end) {
  const floats *x = arg;
  x->r->v->unary(&x->e, ker_at(x->r, &x->r->res[0], from), ker_at(x->r, &x->r->opd[0], from), end - from);
}

static bool float_test(run *r) { // isnan, isinf
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  const char *mode = ker_mode(r, A_mode, "both");
  bool nan = r->op == OP_isnan, pos = strcmp(mode, "neg"), neg = strcmp(mode, "pos");
  for (i64 i = 0, n = ker_elems(x); i < n; i++) {
    double v = 0;
    if (is_float(x)) ker_load_f64(&v, r->real, ker_at(r, x, i), 1);
    I(y)[i] = nan ? v != v : (v == INFINITY && pos) || (v == -INFINITY && neg);
  }
  return true;
}

bool ker_unary(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  i64 n = ker_elems(x);
  if (ker_elems(y) != n) return ker_misfit(r, "elements", ker_elems(y), n);
  if (r->op == OP_isnan || r->op == OP_isinf) return float_test(r);
  if (!is_float(x)) return unary_i64(r, I(y), I(x), n, x->t == DT_BOOL) || not_for(r, x);
  const floats f = {.r = r, .e = elementwise_of(r, 0.01)};
  if (!r->v->unary(&f.e, y->data, x->data, 0)) return not_for(r, x);
  ker_deal(r, n, 1, unary_part, &f);
  return true;
}

// ---- two operands --------------------------------------------------------------------------------------

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
  for (u32 k = 0; k < 2; k++) {
    if (is_float(&t[k]) && r->real == DT_F64) continue;
    t[k].data = NEWN(r->a, double, ker_elems(&t[k]));
    ker_load_f64(t[k].data,
                 is_float(&t[k])  ? DT_F32
                 : is_uint(&t[k]) ? DT_U64
                                  : DT_I64,
                 r->opd[k].data, ker_elems(&t[k]));
    t[k].t = DT_F64;
  }
  t[2].data = NEWN(r->a, double, n), t[2].t = DT_F64;
  run sub = *r;
  sub.opd = t, sub.res = &t[2], sub.real = DT_F64, sub.v = ker_loops_of(DT_F64);
  if (!ker_binary(&sub)) return false;
  if (!is_float(&r->res[0]))
    ker_load_i64(r->res[0].data, DT_F64, t[2].data, n);
  else
    ker_store_f64(r->res[0].data, r->real, t[2].data, n);
  return true;
}

static void binary_part(const void *arg, walk *w) {
  const floats *x = arg;
  const run *r = x->r;
  do
    r->v->binary(&x->e, ker_at(r, &r->res[0], w->off[0]), ker_at(r, &r->opd[0], w->off[1]), step(w, 1),
                 ker_at(r, &r->opd[1], w->off[2]), step(w, 2), walk_inner(w));
  while (ker_walk_next(w));
}

static bool divides_by_zero(run *r, const ker_tensor *y) {
  for (i64 i = 0, n = ker_elems(y); i < n; i++)
    if (I(y)[i] == 0) {
      diag(r->c, E_VALUE, r->where, "%s: division of an integer by zero (element %lld)",
           op_row_of(r->op)->name, (long long)i);
      return true;
    }
  return false;
}

bool ker_binary(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->opd[1], *z = &r->res[0];
  if (is_float(x) != is_float(y)) return r->op == OP_pow ? mixed_pow(r) : not_for(r, y);
  walk w;
  if (!walk_all(r, &w)) return false;
  if (is_float(x)) {
    const floats f = {.r = r, .e = elementwise_of(r, 0)};
    if (!r->v->binary(&f.e, z->data, x->data, 1, y->data, 1, 0)) return not_for(r, x);
    ker_walk_deal(r, &w, binary_part, &f);
    return true;
  }
  if ((r->op == OP_div || r->op == OP_mod) && divides_by_zero(r, y)) return false;
  EACH_RUN(&w)
  if (!binary_i64(r, I(z) + w.off[0], I(x) + w.off[1], step(&w, 1), I(y) + w.off[2], step(&w, 2),
                  walk_inner(&w)))
    return not_for(r, x);
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
      r->v->compare(r->op, I(z) + o, ker_at(r, x, a), step(&w, 1), ker_at(r, y, b), step(&w, 2), n);
    else
      compare_i64(r, I(z) + o, I(x) + a, step(&w, 1), I(y) + b, step(&w, 2), n);
  }
  return true;
}

static void select_part(const void *arg, walk *w) {
  const run *r = arg;
  const ker_loops *v = is_float(&r->res[0]) ? r->v : ker_loops_of(DT_F64); // whole numbers: by their bits
  const i64 size = is_float(&r->res[0]) && r->real == DT_F32 ? 4 : 8;
  const char *x = r->opd[1].data, *y = r->opd[2].data;
  char *z = r->res[0].data;
  do
    v->select(z + w->off[0] * size, I(&r->opd[0]) + w->off[1], step(w, 1), x + w->off[2] * size, step(w, 2),
              y + w->off[3] * size, step(w, 3), walk_inner(w));
  while (ker_walk_next(w));
}

bool ker_where(run *r) {
  walk w;
  if (!walk_all(r, &w)) return false;
  ker_walk_deal(r, &w, select_part, r);
  return true;
}

static void scale_part(const void *arg, i64 from, i64 end) {
  const floats *x = arg;
  x->r->v->affine(ker_at(x->r, &x->r->res[0], from), x->a, ker_at(x->r, &x->r->opd[0], from), 0, x->b,
                  end - from);
}

bool ker_scale(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  double alpha = attr_float(r->at, A_alpha, 0);
  i64 n = ker_elems(x);
  if (ker_elems(y) != n) return ker_misfit(r, "elements", ker_elems(y), n);
  bool mul = r->op == OP_scale;
  if (is_float(x))
    ker_deal(r, n, 1, scale_part, &(floats){.r = r, .a = mul ? alpha : 1, .b = mul ? 0 : alpha});
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
