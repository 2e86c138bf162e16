// grad_rules.c - gradients of elementwise operators, reductions and operators that move elements; and what
// all rules build with. Products, layers and losses are in grad_nn.c.
//
// Idea: of the forms that a gradient can take, the one that needs the fewest saved values: the result where
// that is enough (tanh, relu, sqrt), else the operand. Masks are compared anew, not saved. Activations have
// one operator each for their gradient: written out, they would cost as many launches and passes over memory
// as formulas have operations.
#include "pass/grad.h"
#include <math.h>

#define PI 3.14159265358979323846

// ---- what rules build with -------------------------------------------------------------------------------
value rule_same(rule *r, opcode op, const value *x, u32 n) {
  attrs a = attrs_in(r);
  return build(r->b, op, x, n, a.v, a.n);
}

value rule_same_and(rule *r, opcode op, const value *x, u32 n, attr more) {
  attrs a = attrs_in(r);
  attr at[A_COUNT];
  u32 k = 0;
  for (u32 i = 0; i < a.n; i++)
    if (a.v[i].key != more.key) at[k++] = a.v[i];
  at[k++] = more;
  return build(r->b, op, x, n, at, k);
}

value rule_full(builder *b, const shape *s, double v) {
  attr at[] = {attr_t(A_dtype, s->t), attr_v(A_shape, s->dim, s->nd), attr_f(A_value, v)};
  return build(b, OP_full, NULL, 0, at, COUNT_OF(at));
}

value rule_scalar(rule *r, dtype t, double v) { return rule_full(r->b, &(shape){.t = t}, v); }

value rule_dims(rule *r, value x, u32 nd, const i64 *dim) {
  if (r->b->failed) return 0;
  shape s = shape_of(r, x);
  if (s.nd == nd && !memcmp(s.dim, dim, nd * sizeof *dim)) return x;
  return op_with(r, OP_reshape, x, attr_v(A_shape, dim, nd));
}

value rule_dtype(rule *r, value x, dtype t) {
  if (r->b->failed || shape_of(r, x).t == t) return x;
  return op_with(r, OP_cast, x, attr_t(A_dtype, t));
}

static value reduce(rule *r, opcode op, value x, const i64 *axes, u32 n, bool keep) {
  attr at[] = {attr_v(A_axes, axes, n), attr_i(A_keepdims, keep)};
  return n ? build(r->b, op, &x, 1, at, 2) : x;
}

value rule_sum_to(rule *r, value g, value like) {
  if (r->b->failed) return 0;
  shape from = shape_of(r, g), to = shape_of(r, like);
  i64 axes[DIMS_MAX] = {0};
  u32 n = 0, lead = from.nd - to.nd;
  for (u32 d = 0; d < from.nd; d++)
    if (d < lead || to.dim[d - lead] != from.dim[d]) axes[n++] = d;
  return rule_dims(r, reduce(r, OP_reduce_sum, g, axes, n, lead == 0), to.nd, to.dim);
}

static value expand(rule *r, value x, const shape *to) {
  return op_with(r, OP_expand, x, attr_v(A_shape, to->dim, to->nd));
}

static value where(rule *r, value c, value x, value y) {
  return build(r->b, OP_where, (value[]){c, x, y}, 3, NULL, 0);
}

// ---- elementwise, one operand: y = f(x) ------------------------------------------------------------------
#define X  (r->x[0])
#define Y  (r->y)
#define DY (r->dy[0])
#define DX (r->dx[0])

void grad_same(rule *r) { DX = DY; }
void grad_cast(rule *r) { DX = rule_dtype(r, DY, shape_of(r, X).t); }
void grad_neg(rule *r) { DX = op1(r, OP_neg, DY); }
void grad_abs(rule *r) { DX = mul(r, DY, op1(r, OP_sign, X)); }
void grad_exp(rule *r) { DX = mul(r, DY, Y); }
void grad_log(rule *r) { DX = op2(r, OP_div, DY, X); }
void grad_sqrt(rule *r) { DX = op2(r, OP_div, scale(r, DY, 0.5), Y); }
void grad_rsqrt(rule *r) { DX = mul(r, scale(r, DY, -0.5), mul(r, Y, mul(r, Y, Y))); }
void grad_recip(rule *r) { DX = mul(r, op1(r, OP_neg, DY), mul(r, Y, Y)); }
void grad_sin(rule *r) { DX = mul(r, DY, op1(r, OP_cos, X)); }
void grad_cos(rule *r) { DX = mul(r, op1(r, OP_neg, DY), op1(r, OP_sin, X)); }
void grad_softplus(rule *r) { DX = mul(r, DY, op1(r, OP_sigmoid, X)); }
void grad_scale(rule *r) { DX = rule_same(r, OP_scale, &DY, 1); }

void grad_sinh(rule *r) { DX = mul(r, DY, op1(r, OP_cosh, X)); }
void grad_cosh(rule *r) { DX = mul(r, DY, op1(r, OP_sinh, X)); }
void grad_tan(rule *r) { DX = mul(r, DY, offset(r, mul(r, Y, Y), 1)); }

// dy over a root of, or over, 1 + sign x^2.
static value square_1(rule *r, double sign) { return offset(r, scale(r, mul(r, X, X), sign), 1); }
void grad_asin(rule *r) { DX = mul(r, DY, op1(r, OP_rsqrt, square_1(r, -1))); }
void grad_acos(rule *r) { DX = mul(r, op1(r, OP_neg, DY), op1(r, OP_rsqrt, square_1(r, -1))); }
void grad_asinh(rule *r) { DX = mul(r, DY, op1(r, OP_rsqrt, square_1(r, 1))); }
void grad_acosh(rule *r) { DX = mul(r, DY, op1(r, OP_rsqrt, offset(r, mul(r, X, X), -1))); }
void grad_atan(rule *r) { DX = op2(r, OP_div, DY, square_1(r, 1)); }
void grad_atanh(rule *r) { DX = op2(r, OP_div, DY, square_1(r, -1)); }

void grad_tanh(rule *r) { DX = op2(r, OP_tanh_dx, DY, Y); }
void grad_sigmoid(rule *r) { DX = op2(r, OP_sigmoid_dx, DY, Y); }
void grad_relu(rule *r) { DX = op2(r, OP_relu_dx, DY, Y); }
void grad_gelu(rule *r) { DX = rule_same(r, OP_gelu_dx, (value[]){DY, X}, 2); }
void grad_silu(rule *r) { DX = op2(r, OP_silu_dx, DY, X); }

void grad_leaky_relu(rule *r) {
  DX = build(r->b, OP_relu_dx, (value[]){DY, X}, 2,
             (attr[]){attr_f(A_alpha, attr_float(attrs_in(r), A_alpha, 0.01))}, 1);
}

void grad_erf(rule *r) { // dy 2/sqrt(pi) exp(-x^2)
  value e = op1(r, OP_exp, op1(r, OP_neg, mul(r, X, X)));
  DX = mul(r, scale(r, DY, 2 / sqrt(PI)), e);
}

// ---- elementwise, several operands: broadcasting is undone by a sum --------------------------------------
void grad_add(rule *r) {
  for (u32 k = 0; k < 2; k++)
    if (r->want[k]) r->dx[k] = rule_sum_to(r, DY, r->x[k]);
}

void grad_sub(rule *r) {
  if (r->want[0]) r->dx[0] = rule_sum_to(r, DY, r->x[0]);
  if (r->want[1]) r->dx[1] = op1(r, OP_neg, rule_sum_to(r, DY, r->x[1]));
}

void grad_mul(rule *r) {
  if (r->x[0] == r->x[1]) { // a square
    DX = mul(r, DY, scale(r, X, 2));
    return;
  }
  for (u32 k = 0; k < 2; k++)
    if (r->want[k]) r->dx[k] = rule_sum_to(r, mul(r, DY, r->x[1 - k]), r->x[k]);
}

void grad_div(rule *r) { // dx = dy/b; db = -dx y
  value q = op2(r, OP_div, DY, r->x[1]);
  if (r->want[0]) r->dx[0] = rule_sum_to(r, q, r->x[0]);
  if (r->want[1]) r->dx[1] = op1(r, OP_neg, rule_sum_to(r, mul(r, q, Y), r->x[1]));
}

void grad_pow(rule *r) { // b x^(b-1) dy; y log(x) dy
  dtype t = shape_of(r, X).t;
  value e = r->x[1];
  if (r->want[0]) {
    value slope = mul(r, rule_dtype(r, e, t), op2(r, OP_pow, X, offset(r, e, -1)));
    r->dx[0] = rule_sum_to(r, mul(r, DY, slope), X);
  }
  if (r->want[1]) {
    value g = mul(r, DY, mul(r, Y, op1(r, OP_log, X)));
    r->dx[1] = rule_sum_to(r, rule_dtype(r, g, shape_of(r, e).t), e);
  }
}

void grad_mod(rule *r) { // x - y times a whole number: dy; dy (mod - x)/y
  value x = r->x[0], y = r->x[1];
  if (r->want[0]) r->dx[0] = rule_sum_to(r, DY, x);
  if (r->want[1]) r->dx[1] = rule_sum_to(r, mul(r, DY, op2(r, OP_div, sub(r, Y, x), y)), y);
}

// The mask takes dy to one operand; what is left of dy goes to the other.
static void choose(rule *r, value mask, u32 x, u32 y) {
  value g = where(r, mask, DY, rule_scalar(r, shape_of(r, Y).t, 0));
  if (r->want[x]) r->dx[x] = rule_sum_to(r, g, r->x[x]);
  if (r->want[y] && r->want[x])
    r->dx[y] = rule_sum_to(r, sub(r, DY, g), r->x[y]);
  else if (r->want[y])
    r->dx[y] = rule_sum_to(r, where(r, mask, rule_scalar(r, shape_of(r, Y).t, 0), DY), r->x[y]);
}
void grad_where(rule *r) { choose(r, r->x[0], 1, 2); }
void grad_max(rule *r) { choose(r, op2(r, OP_ge, r->x[0], r->x[1]), 0, 1); }
void grad_min(rule *r) { choose(r, op2(r, OP_le, r->x[0], r->x[1]), 0, 1); }

// ---- reductions ------------------------------------------------------------------------------------------
// The extents of x with 1 for reduced dimensions; which those are, and how many elements became one.
static u32 reduced(rule *r, shape *kept, i64 *axes, double *count) {
  const i64 *given;
  attrs a = attrs_in(r);
  u32 n = attr_ints(a, A_axes, &given), on = attr_get(a, A_axes) ? 0 : ~0u, m = 0;
  *kept = shape_of(r, X);
  for (u32 i = 0; i < n; i++) on |= 1u << (given[i] < 0 ? given[i] + kept->nd : given[i]);
  *count = 1;
  for (u32 d = 0; d < kept->nd; d++)
    if (on >> d & 1) *count *= (double)kept->dim[d], kept->dim[d] = 1, axes[m++] = d;
  return m;
}

void grad_reduce_sum(rule *r) {
  i64 axes[DIMS_MAX];
  double n;
  shape kept, x = shape_of(r, X);
  reduced(r, &kept, axes, &n);
  DX = expand(r, rule_dims(r, DY, kept.nd, kept.dim), &x);
}

void grad_reduce_mean(rule *r) {
  i64 axes[DIMS_MAX];
  double n;
  shape kept, x = shape_of(r, X);
  reduced(r, &kept, axes, &n);
  DX = expand(r, scale(r, rule_dims(r, DY, kept.nd, kept.dim), 1 / n), &x);
}

void grad_reduce_max(rule *r) { // equal largest elements share it
  i64 axes[DIMS_MAX];
  double all;
  shape kept;
  u32 n = reduced(r, &kept, axes, &all);
  value mask = op2(r, OP_eq, X, rule_dims(r, Y, kept.nd, kept.dim));
  value g = rule_dims(r, DY, kept.nd, kept.dim);
  value share = op2(r, OP_div, g, reduce(r, OP_reduce_sum, rule_dtype(r, mask, kept.t), axes, n, true));
  DX = where(r, mask, share, rule_scalar(r, kept.t, 0));
}

// The product of the other elements: y/x, but of those that are not 0 where one is; 0 where more are.
void grad_reduce_prod(rule *r) {
  i64 axes[DIMS_MAX];
  double all;
  shape kept, x = shape_of(r, X);
  u32 n = reduced(r, &kept, axes, &all);
  value one = rule_scalar(r, x.t, 1), none = rule_scalar(r, x.t, 0), zero = op2(r, OP_eq, X, none);
  value others = where(r, zero, one, X),
        zeros = reduce(r, OP_reduce_sum, rule_dtype(r, zero, x.t), axes, n, true);
  value rest = sub(r, zeros, rule_dtype(r, zero, x.t)); // zeros among the other elements
  value product = op2(r, OP_div, reduce(r, OP_reduce_prod, others, axes, n, true), others);
  DX = mul(r, rule_dims(r, DY, kept.nd, kept.dim), where(r, op2(r, OP_eq, rest, none), product, none));
}

void grad_cumsum(rule *r) {
  i64 back = !attr_int(attrs_in(r), A_reverse, 0);
  DX = rule_same_and(r, OP_cumsum, &DY, 1, attr_i(A_reverse, back));
}

static value put(rule *r, value at, value g, i64 axis, const char *how) { // into zeros of x's extents
  shape x = shape_of(r, X);
  attr a[] = {attr_i(A_axis, axis), attr_s(A_scatter, sym_of(r->b->p->c, how))};
  return build(r->b, OP_put, (value[]){rule_full(r->b, &x, 0), at, g}, 3, a, 2);
}

void grad_topk(rule *r) { DX = put(r, Y + 1, DY, attr_int(attrs_in(r), A_axis, -1), "none"); }

// Elements that were replaced give nothing to x.
static bool scatter_adds(rule *r, bool *adds) {
  const attr *how = attr_get(attrs_in(r), A_scatter);
  const char *word = how ? sym_str(r->b->p->c, how->u.s) : "none";
  *adds = !strcmp(word, "add");
  if (*adds || !strcmp(word, "none")) return true;
  grad_refuse(r, "a scatter other than none and add");
  return false;
}

void grad_put(rule *r) {
  bool adds;
  attr axis = attr_i(A_axis, attr_int(attrs_in(r), A_axis, 0));
  if (!scatter_adds(r, &adds)) return;
  if (r->want[2]) r->dx[2] = build(r->b, OP_take, (value[]){DY, r->x[1]}, 2, &axis, 1);
  if (!r->want[0]) return;
  shape u = shape_of(r, r->x[2]);
  r->dx[0] = adds ? DY : rule_same(r, OP_put, (value[]){DY, r->x[1], rule_full(r->b, &u, 0)}, 3);
}

void grad_scatter_nd(rule *r) {
  bool adds;
  if (!scatter_adds(r, &adds)) return;
  if (r->want[2]) r->dx[2] = op2(r, OP_gather_nd, DY, r->x[1]);
  if (!r->want[0]) return;
  shape u = shape_of(r, r->x[2]);
  r->dx[0] = adds ? DY : rule_same(r, OP_scatter_nd, (value[]){DY, r->x[1], rule_full(r->b, &u, 0)}, 3);
}

void grad_gather_nd(rule *r) {
  shape x = shape_of(r, X);
  attr how = attr_s(A_scatter, sym_of(r->b->p->c, "add"));
  if (attr_int(attrs_in(r), A_batch_dims, 0))
    grad_refuse(r, "batch dimensions");
  else
    DX = build(r->b, OP_scatter_nd, (value[]){rule_full(r->b, &x, 0), r->x[1], DY}, 3, &how, 1);
}

void grad_take(rule *r) { DX = put(r, r->x[1], DY, attr_int(attrs_in(r), A_axis, 0), "add"); }

// ---- form ------------------------------------------------------------------------------------------------
void grad_reshape(rule *r) {
  shape x = shape_of(r, X);
  DX = rule_dims(r, DY, x.nd, x.dim);
}

void grad_reverse(rule *r) { DX = rule_same(r, OP_reverse, (value[]){DY, r->x[1]}, 2); }

void grad_d2s(rule *r) { // n c (h b) (w b) back to n (b b c) h w, or n (c b b) h w
  shape x = shape_of(r, X), y = shape_of(r, Y);
  const attr *mode = attr_get(attrs_in(r), A_mode);
  bool crd = mode && !strcmp(sym_str(r->b->p->c, mode->u.s), "CRD");
  i64 b = attr_int(attrs_in(r), A_size, 1), apart[] = {x.dim[0], y.dim[1], x.dim[2], b, x.dim[3], b};
  const i64 perm[2][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}};
  DX = rule_dims(r, op_with(r, OP_transpose, rule_dims(r, DY, 6, apart), attr_v(A_perm, perm[crd], 6)), x.nd,
                 x.dim);
}

void grad_expand(rule *r) { DX = rule_sum_to(r, DY, X); }
void grad_trilu(rule *r) { DX = rule_same(r, OP_trilu, &DY, 1); }

void grad_transpose(rule *r) {
  const i64 *perm = NULL;
  i64 back[DIMS_MAX];
  u32 n = attr_ints(attrs_in(r), A_perm, &perm);
  for (u32 d = 0; d < n; d++) back[perm[d]] = d;
  DX = op_with(r, OP_transpose, DY, attr_v(A_perm, back, n));
}

static u32 axis_of(const rule *r, u32 nd) {
  i64 axis = attr_int(attrs_in(r), A_axis, 0);
  return (u32)(axis < 0 ? axis + nd : axis);
}

void grad_concat(rule *r) {
  enum { PARTS = OP_RES_MAX };
  u32 axis = axis_of(r, shape_of(r, X).nd);
  i64 size[PARTS], begin = 0;
  if (r->nopd <= PARTS) {
    for (u32 k = 0; k < r->nopd; k++) size[k] = shape_of(r, r->x[k]).dim[axis];
    attr at[] = {attr_i(A_axis, axis), attr_v(A_sizes, size, r->nopd)};
    value part = build_n(r->b, OP_split, &DY, 1, at, 2, r->nopd);
    for (u32 k = 0; k < r->nopd && part; k++) r->dx[k] = part + k;
    return;
  }
  for (u32 k = 0; k < r->nopd; k++) {
    i64 end = begin + shape_of(r, r->x[k]).dim[axis];
    attr at[] = {attr_v(A_starts, &begin, 1), attr_v(A_ends, &end, 1), attr_v(A_axes, (i64[]){axis}, 1)};
    if (r->want[k]) r->dx[k] = build(r->b, OP_slice, &DY, 1, at, 3);
    begin = end;
  }
}

void grad_split(rule *r) {
  value part[OP_RES_MAX];
  for (u32 k = 0; k < r->nres; k++) {
    shape s = shape_of(r, Y + k);
    part[k] = r->dy[k] ? r->dy[k] : rule_full(r->b, &s, 0);
  }
  attr at = attr_i(A_axis, axis_of(r, shape_of(r, X).nd));
  DX = build(r->b, OP_concat, part, r->nres, &at, 1);
}

static value slice1(rule *r, value x, u32 d, i64 lo, i64 hi, i64 step) {
  attr at[] = {attr_v(A_starts, &lo, 1), attr_v(A_ends, &hi, 1), attr_v(A_axes, (i64[]){d}, 1),
               attr_v(A_steps, &step, 1)};
  return build(r->b, OP_slice, &x, 1, at, 4);
}

// Steps of dimension d undone: turned round if negative, then zeros put between the elements. lo, hi: the
// part of x that is covered, ends of steps included.
static value unstep(rule *r, value g, u32 d, i64 step, i64 *lo, i64 *hi) {
  shape s = shape_of(r, g);
  i64 n = s.dim[d], last = *lo + (n - 1) * step;
  if (step < 0 && n > 0) {
    g = slice1(r, g, d, n - 1, -1, -1);
    *lo = last, step = -step;
  }
  *hi = *lo + n * step;
  if (step == 1 || n == 0) return g;
  i64 dims[DIMS_MAX + 1],
      pads[2 * (DIMS_MAX + 1)] = {0}; // [.., n, rest] as [.., n, 1, rest], padded to [.., n, step, ..]
  for (u32 i = 0, o = 0; i < s.nd; i++) {
    dims[o++] = s.dim[i];
    if (i == d) dims[o++] = 1;
  }
  if (s.nd == DIMS_MAX) {
    grad_refuse(r, "steps over the most dimensions");
    return 0;
  }
  pads[s.nd + 1 + d + 1] = step - 1;
  g = op_with(r, OP_pad, rule_dims(r, g, s.nd + 1, dims), attr_v(A_pads, pads, 2 * (s.nd + 1)));
  s.dim[d] = n * step;
  return rule_dims(r, g, s.nd, s.dim);
}

void grad_slice(rule *r) {
  attrs a = attrs_in(r);
  const i64 *start = NULL, *axes = NULL, *steps = NULL;
  u32 n = attr_ints(a, A_axes, &axes), nsteps = attr_ints(a, A_steps, &steps);
  attr_ints(a, A_starts, &start);
  shape x = shape_of(r, X);
  i64 pads[2 * DIMS_MAX] = {0};
  value g = DY;
  for (u32 i = 0; i < n && !r->b->failed; i++) {
    u32 d = (u32)(axes[i] < 0 ? axes[i] + x.nd : axes[i]);
    i64 lo = start[i], hi;
    g = unstep(r, g, d, nsteps ? steps[i] : 1, &lo, &hi);
    pads[d] = lo, pads[x.nd + d] = x.dim[d] - hi; // below 0: zeros after the last element are cut off again
  }
  DX = op_with(r, OP_pad, g, attr_v(A_pads, pads, 2 * x.nd));
}

// The element that a border repeats: `at` counted from the operand's begin, n its extent.
static i64 repeated(const char *mode, i64 at, i64 n) {
  if (!strcmp(mode, "edge")) return at < 0 ? 0 : MIN(at, n - 1);
  i64 cycle = !strcmp(mode, "wrap") || n == 1 ? n : 2 * n - 2, k = (at % cycle + cycle) % cycle;
  return k < n ? k : cycle - k;
}

// One dimension of a pad that repeats elements: its gradients are added where the elements came from.
static value unpad(rule *r, value g, u32 d, i64 before, i64 n, const char *mode) {
  shape s = shape_of(r, g), list = {.t = DT_I64, .nd = 1, .dim = {s.dim[d]}};
  i64 *from = NEWN(r->b->p->a, i64, s.dim[d]);
  for (i64 k = 0; k < s.dim[d]; k++) from[k] = repeated(mode, k - before, n);
  attr at[] = {attr_t(A_dtype, DT_I64), attr_v(A_shape, list.dim, 1),
               attr_d(A_data, data_add(r->b->p, &list, from, false))};
  value i = build(r->b, OP_constant, NULL, 0, at, COUNT_OF(at));
  s.dim[d] = n;
  attr to[] = {attr_i(A_axis, d), attr_v(A_shape, s.dim, s.nd)};
  return build(r->b, OP_gather_add, (value[]){g, i}, 2, to, COUNT_OF(to));
}

void grad_pad(rule *r) {
  attrs a = attrs_in(r);
  const attr *given = attr_get(a, A_mode);
  const char *mode = given ? sym_str(r->b->p->c, given->u.s) : "constant";
  const i64 *pads = NULL;
  shape x = shape_of(r, X);
  i64 back[2 * DIMS_MAX];
  attr_ints(a, A_pads, &pads);
  if (!strcmp(mode, "constant")) {
    for (u32 d = 0; d < 2 * x.nd; d++) back[d] = -pads[d];
    DX = op_with(r, OP_pad, DY, attr_v(A_pads, back, 2 * x.nd));
    return;
  }
  value g = DY;
  for (u32 d = 0; d < x.nd && !r->b->failed; d++)
    if (pads[d] || pads[x.nd + d]) g = unpad(r, g, d, pads[d], x.dim[d], mode);
  DX = g;
}

void grad_tile(rule *r) { // (times extent) per dimension, summed over the times
  const i64 *times = NULL;
  shape x = shape_of(r, X);
  attr_ints(attrs_in(r), A_sizes, &times);
  for (u32 d = 0; d < x.nd && !r->b->failed; d++) {
    if (times[d] == 1) continue;
    i64 dims[DIMS_MAX + 1], axis = d;
    shape g = shape_of(r, DX ? DX : DY);
    if (g.nd == DIMS_MAX) {
      grad_refuse(r, "the most dimensions");
      return;
    }
    for (u32 i = 0, o = 0; i < g.nd; i++) {
      if (i == d) dims[o++] = times[d];
      dims[o++] = i == d ? x.dim[d] : g.dim[i];
    }
    DX = reduce(r, OP_reduce_sum, rule_dims(r, DX ? DX : DY, g.nd + 1, dims), &axis, 1, false);
  }
  if (!DX) DX = DY;
}

void grad_gather(rule *r) {
  shape x = shape_of(r, X);
  DX = rule_same_and(r, OP_gather_add, (value[]){DY, r->x[1]}, 2, attr_v(A_shape, x.dim, x.nd));
}

// ---- operators from outside ------------------------------------------------------------------------------
// May rule_sum_to make one of the other?
static bool sums_to(const shape *from, const shape *to) {
  const u32 lead = from->nd - to->nd;
  if (from->t != to->t || from->nd < to->nd) return false;
  for (u32 d = 0; d < to->nd; d++)
    if (to->dim[d] != from->dim[lead + d] && to->dim[d] != 1) return false;
  return true;
}

static value own_dx(rule *r, u32 operand, value g) {
  const prog *p = r->b->p;
  const shape from = shape_of(r, g), to = shape_of(r, r->x[operand]);
  if (sums_to(&from, &to)) return rule_sum_to(r, g, r->x[operand]);
  diag(p->c, E_SHAPE, r->b->where, "%s: the gradient of %s is %s, %s is %s", op_row_of(r->op)->name,
       op_row_of(r->op)->own->operand[operand], ir_type_str(p, val(r->f, g)->ty),
       op_row_of(r->op)->own->operand[operand], ir_type_str(p, val(r->f, r->x[operand])->ty));
  r->b->failed = true;
  return 0;
}

void grad_own(rule *r) {
  const formula *f = op_row_of(r->op)->own->formula;
  arena *tmp = arena_new();
  bool *needs = ZNEWN(tmp, bool, r->nres);
  value *dy = arena_dup(tmp, r->dy, r->nres * sizeof *dy);
  ir_formula_needs(f, tmp, r->want, needs);
  for (u32 k = 0; k < r->nres; k++) {
    const shape s = shape_of(r, r->y + k);
    if (needs[k] && !dy[k]) dy[k] = rule_full(r->b, &s, 0);
  }
  const formula_use u = {.at = attrs_in(r), .x = r->x, .y = r->y, .dy = dy, .want = r->want};
  ir_build_formula(f, r->b, tmp, &u, r->dx);
  for (u32 k = 0; k < r->nopd && !r->b->failed; k++)
    if (r->dx[k]) r->dx[k] = own_dx(r, k, r->dx[k]);
  arena_free(tmp);
}
