// onnx_math.c - ONNX arithmetic: elementwise operators, products, reductions, and the activations that are
// sums of such. One map per form; onnx.def says which operator uses which.
//
// Idea: what has a native row becomes that row; everything else is written out in rows, so that plans can
// split it and gradients exist without more code.
#include "front/onnx.h"
#include <math.h>

// The value of operand k if it is one known number. Numbers meet tensors as scale and offset, which keep a
// partial sum partial and need no operand.
static bool number(node *n, mixed x, double *v) {
  const mixed_info *i = x ? mix_get(n->x, x) : NULL;
  return i && i->known && shape_elems(&i->s) == 1 && mix_read_f64(n->x, x, v);
}

static mixed scaled(node *n, mixed x, double a) {
  return a == 1 ? x : op_at(n, OP_scale, x, attr_f(A_alpha, a));
}
static mixed shifted(node *n, mixed x, double a) {
  return a == 0 ? x : op_at(n, OP_offset, x, attr_f(A_alpha, a));
}

// ---- one operand ---------------------------------------------------------------------------------------
bool map_unary(node *n) { return set(n, 0, op1(n, (opcode)n->row->arg, in_of(n, 0))); }
bool map_identity(node *n) { return set(n, 0, in_of(n, 0)); }

bool map_isinf(node *n) {
  i64 neg = at_i(n, "detect_negative", 1), pos = at_i(n, "detect_positive", 1);
  mixed x = in_of(n, 0);
  if (!neg && !pos) return set(n, 0, op2(n, OP_lt, x, x)); // never
  const char *mode = neg && pos ? "both" : pos ? "pos" : "neg";
  return set(n, 0, op_at(n, OP_isinf, x, attr_s(A_mode, sym_of(n->x->b.p->c, mode))));
}

bool map_cast(node *n) {
  dtype t = onnx_dtype(at_i(n, "to", 0));
  if (!t) return refuse(n, "to %s", onnx_type_name(at_i(n, "to", 0)));
  return set(n, 0, to_type(n, in_of(n, 0), t));
}
bool map_cast_like(node *n) {
  return in_of(n, 1) && set(n, 0, to_type(n, in_of(n, 0), shape_of(n, in_of(n, 1))->t));
}

bool map_clip(node *n) {
  mixed x = in_of(n, 0), lo = in_of(n, 1), hi = in_of(n, 2);
  if (n->opset < 11) {
    lo = at_find(n, "min") ? full_like(n, x, at_f(n, "min", 0)) : 0;
    hi = at_find(n, "max") ? full_like(n, x, at_f(n, "max", 0)) : 0;
  }
  double v;
  if (lo && number(n, lo, &v) && v == 0)
    x = op1(n, OP_relu, x);
  else if (lo)
    x = op2(n, OP_max, x, lo);
  if (hi) x = op2(n, OP_min, x, hi);
  return set(n, 0, x);
}

bool map_leaky_relu(node *n) {
  return set(n, 0, op_at(n, OP_leaky_relu, in_of(n, 0), attr_f(A_alpha, at_f(n, "alpha", 0.01))));
}

// a (e^x - 1)
static mixed exp_minus_1(node *n, mixed x, double a) {
  return scaled(n, shifted(n, op1(n, OP_exp, x), -1), a);
}

static mixed if_above(node *n, mixed x, double least, mixed then, mixed other) {
  return op3(n, OP_where, op2(n, OP_gt, x, full_like(n, x, least)), then, other);
}

bool map_elu(node *n) {
  mixed x = in_of(n, 0);
  return set(n, 0, if_above(n, x, 0, x, exp_minus_1(n, x, at_f(n, "alpha", 1))));
}

bool map_selu(node *n) {
  mixed x = in_of(n, 0);
  mixed y = if_above(n, x, 0, x, exp_minus_1(n, x, at_f(n, "alpha", 1.6732632423543772)));
  return set(n, 0, scaled(n, y, at_f(n, "gamma", 1.0507009873554805)));
}

bool map_celu(node *n) {
  mixed x = in_of(n, 0);
  double a = at_f(n, "alpha", 1);
  return set(n, 0, if_above(n, x, 0, x, exp_minus_1(n, scaled(n, x, 1 / a), a)));
}

// clamp(a x + b, 0, 1)
static mixed hard_sigmoid(node *n, mixed x, double a, double b) {
  mixed y = op1(n, OP_relu, shifted(n, scaled(n, x, a), b));
  return op2(n, OP_min, y, full_like(n, x, 1));
}

bool map_hard_sigmoid(node *n) {
  return set(n, 0, hard_sigmoid(n, in_of(n, 0), at_f(n, "alpha", 0.2), at_f(n, "beta", 0.5)));
}
bool map_hard_swish(node *n) {
  return set(n, 0, op2(n, OP_mul, in_of(n, 0), hard_sigmoid(n, in_of(n, 0), 1.0 / 6, 0.5)));
}

bool map_softsign(node *n) {
  return set(n, 0, op2(n, OP_div, in_of(n, 0), shifted(n, op1(n, OP_abs, in_of(n, 0)), 1)));
}

bool map_thresholded_relu(node *n) {
  mixed x = in_of(n, 0);
  return set(n, 0, if_above(n, x, at_f(n, "alpha", 1), x, full_like(n, x, 0)));
}

bool map_shrink(node *n) {
  mixed x = in_of(n, 0);
  double edge = at_f(n, "lambd", 0.5), bias = at_f(n, "bias", 0);
  mixed low =
      op3(n, OP_where, op2(n, OP_lt, x, full_like(n, x, -edge)), shifted(n, x, bias), full_like(n, x, 0));
  return set(n, 0, if_above(n, x, edge, shifted(n, x, -bias), low));
}

bool map_mish(node *n) {
  mixed x = in_of(n, 0);
  return set(n, 0, op2(n, OP_mul, x, op1(n, OP_tanh, op1(n, OP_softplus, x))));
}

bool map_gelu(node *n) {
  bool form = strcmp(at_s(n, "approximate", "none"), "tanh") == 0;
  return set(n, 0, op_at(n, OP_gelu, in_of(n, 0), attr_i(A_approx, form)));
}

bool map_bitwise_not(node *n) {
  mixed x = in_of(n, 0);
  shape one = {.t = shape_of(n, x)->t};
  static const u64 ones = UINT64_MAX;
  return set(n, 0, op2(n, OP_xor, x, mix_known(n->x, &one, &ones)));
}

// ---- several operands ----------------------------------------------------------------------------------
// Before opset 7 an operand was only broadcast on demand, aligned at `axis` instead of the last
// dimension.
static mixed aligned(node *n, mixed x, mixed y) {
  const onnx_attr *axis = n->opset < 7 && at_i(n, "broadcast", 0) ? at_find(n, "axis") : NULL;
  u32 at, nx = shape_of(n, x)->nd, ny = shape_of(n, y)->nd;
  if (!axis || !axis_of(n, axis->i, nx, &at) || at + ny > nx) return y;
  shape s = *shape_of(n, y);
  for (u32 d = ny; d < nx - at; d++) s.dim[d] = 1;
  return to_shape(n, y, s.dim, nx - at);
}

// x op y where y is one number and x is not: without an operand, exactly. 0 if it cannot be.
static mixed with_number(node *n, opcode op, mixed x, mixed y) {
  double v;
  int power;
  if (!number(n, y, &v) || mix_get(n->x, x)->known || shape_of(n, y)->nd > shape_of(n, x)->nd) return 0;
  if (dtype_kind_of(shape_of(n, x)->t) != DK_FLOAT || shape_of(n, y)->t != shape_of(n, x)->t || !isfinite(v))
    return 0;
  switch (op) {
  case OP_mul: return scaled(n, x, v);
  case OP_add: return shifted(n, x, v);
  case OP_sub: return shifted(n, x, -v);
  case OP_div: return fabs(frexp(v, &power)) == 0.5 ? scaled(n, x, 1 / v) : 0;
  default: return 0;
  }
}

static bool is_one(node *n, mixed x, mixed y) {
  double v;
  bool real = dtype_kind_of(shape_of(n, y)->t) == DK_FLOAT;
  return real && number(n, x, &v) && v == 1 && shape_of(n, x)->nd <= shape_of(n, y)->nd;
}

bool map_binary(node *n) {
  opcode op = (opcode)n->row->arg;
  mixed x = in_of(n, 0), y = in_of(n, 1);
  if (!x || !y) return wrong(n, "two inputs are needed");
  y = aligned(n, x, y);
  mixed z = with_number(n, op, x, y);
  if (!z && (op == OP_mul || op == OP_add)) z = with_number(n, op, y, x);
  if (!z && op == OP_div && is_one(n, x, y)) z = op1(n, OP_recip, y);
  return set(n, 0, z ? z : op2(n, op, x, y));
}

bool map_pow(node *n) {
  mixed x = in_of(n, 0), y = in_of(n, 1);
  double v = 0;
  if (!x || !y) return wrong(n, "two inputs are needed");
  bool power = number(n, y, &v) && shape_of(n, y)->nd <= shape_of(n, x)->nd;
  if (power && v == 2) return set(n, 0, op2(n, OP_mul, x, x));
  if (power && v == 0.5 && dtype_kind_of(shape_of(n, x)->t) == DK_FLOAT) return set(n, 0, op1(n, OP_sqrt, x));
  return set(n, 0, op2(n, OP_pow, x, aligned(n, x, y)));
}

bool map_mod(node *n) {
  attr mode = attr_s(A_mode, sym_of(n->x->b.p->c, at_i(n, "fmod", 0) ? "fmod" : "floor"));
  return set(n, 0, opn(n, OP_mod, (mixed[]){in_of(n, 0), in_of(n, 1)}, 2, &mode, 1));
}

bool map_bit_shift(node *n) {
  bool left = strcmp(at_s(n, "direction", ""), "LEFT") == 0;
  return set(n, 0, op2(n, left ? OP_shl : OP_shr, in_of(n, 0), in_of(n, 1)));
}

bool map_variadic(node *n) { // Mean is a scaled sum
  bool mean = n->row->arg == OP_scale;
  mixed x = in_of(n, 0);
  for (u32 k = 1; k < n->nin; k++) x = op2(n, mean ? OP_add : (opcode)n->row->arg, x, in_of(n, k));
  return set(n, 0, mean ? scaled(n, x, 1.0 / n->nin) : x);
}

bool map_where(node *n) { return set(n, 0, op3(n, OP_where, in_of(n, 0), in_of(n, 1), in_of(n, 2))); }

bool map_prelu(node *n) {
  mixed x = in_of(n, 0), slope = in_of(n, 1);
  if (!x || !slope) return wrong(n, "two inputs are needed");
  is_weight(n, 1, ROLE_WEIGHT);
  shape s = *shape_of(n, slope);
  if (n->opset < 7 && s.nd == 1 && s.dim[0] > 1) { // one slope per channel
    for (u32 d = 1; d + 1 < shape_of(n, x)->nd; d++) s.dim[d] = 1;
    slope = to_shape(n, slope, s.dim, shape_of(n, x)->nd - 1);
  }
  return set(n, 0, op3(n, OP_where, op2(n, OP_lt, x, full_like(n, x, 0)), op2(n, OP_mul, slope, x), x));
}

// ---- products ------------------------------------------------------------------------------------------
// The operand of the transposition that made x, if it exchanged the two dimensions of a matrix: products
// read a transposed matrix as well as any other, and weights are often stored so.
static mixed untransposed(node *n, mixed x) {
  const prog *p = n->x->b.p;
  const func_info *f = func_get(p, n->x->b.f);
  value v = mix_get(n->x, x)->v;
  u32 def = v ? val(f, v)->def : 0;
  if (!def || f->body.v[def - 1].op != OP_transpose || shape_of(n, x)->nd != 2) return 0;
  const i64 *perm;
  attr_ints(attrs_get(p, f->body.v[def - 1].at), A_perm, &perm);
  return perm[0] == 1 ? mix_value(n->x, opd_of(f, &f->body.v[def - 1], 0)) : 0;
}

static mixed einsum(node *n, const char *law_text, mixed x, mixed y) {
  attr a = attr_s(A_law, sym_of(n->x->b.p->c, law_text));
  return opn(n, OP_einsum, (mixed[]){x, y}, 2, &a, 1);
}

bool map_matmul(node *n) {
  mixed x = in_of(n, 0), y = in_of(n, 1);
  if (!x || !y) return wrong(n, "two inputs are needed");
  if (shape_of(n, y)->nd == 2) is_weight(n, 1, ROLE_WEIGHT);
  u32 nd = shape_of(n, x)->nd;
  mixed w = nd >= 2 ? untransposed(n, y) : 0;
  if (!w) return set(n, 0, op2(n, OP_matmul, x, y));
  char text[32];
  snprintf(text, sizeof text, "%.*sk,nk->%.*sn", (int)nd - 1, "abcdefg", (int)nd - 1, "abcdefg");
  return set(n, 0, einsum(n, text, x, w));
}

bool map_ms_fused_matmul(node *n) {
  mixed x = in_of(n, 0), y = in_of(n, 1);
  if (at_i(n, "transBatchA", 0) || at_i(n, "transBatchB", 0))
    return refuse(n, "with transposed batch dimensions");
  mixed side[2] = {x, y};
  for (u32 k = 0; k < 2; k++) {
    u32 nd = side[k] ? shape_of(n, side[k])->nd : 0;
    if (!at_i(n, k ? "transB" : "transA", 0) || nd < 2) continue;
    i64 perm[DIMS_MAX];
    for (u32 d = 0; d < nd; d++) perm[d] = d + 2 < nd ? d : (i64)(2 * nd - 3 - d);
    side[k] = to_perm(n, side[k], perm, nd);
  }
  return set(n, 0, scaled(n, op2(n, OP_matmul, side[0], side[1]), at_f(n, "alpha", 1)));
}

bool map_gemm(node *n) {
  mixed a = in_of(n, 0), b = in_of(n, 1), c = in_of(n, 2);
  if (!a || !b) return wrong(n, "two inputs are needed");
  is_weight(n, 1, ROLE_WEIGHT);
  is_weight(n, 2, ROLE_WEIGHT);
  bool ta = at_i(n, "transA", 0), tb = at_i(n, "transB", 0);
  if (shape_of(n, a)->nd != 2 || shape_of(n, b)->nd != 2) return wrong(n, "inputs must be matrices");
  static const char *const laws[] = {"mk,kn->mn", "mk,nk->mn", "km,kn->mn", "km,nk->mn"};
  mixed y = ta || tb ? einsum(n, laws[2 * ta + tb], a, b) : op2(n, OP_matmul, a, b);
  y = scaled(n, y, at_f(n, "alpha", 1));
  if (c) y = op2(n, OP_add, y, scaled(n, aligned(n, y, c), at_f(n, "beta", 1)));
  return set(n, 0, y);
}

// ---- einsum --------------------------------------------------------------------------------------------
// One operand's letters, in order; "..." stands for the spare letters A, B, ... of the dimensions it
// covers.
typedef struct {
  mixed x;
  char letter[DIMS_MAX + 1];
} einsum_term;

static bool term_parse(node *n, const char *text, size_t len, mixed x, einsum_term *t) {
  u32 nd = x ? shape_of(n, x)->nd : 0, k = 0, written = 0;
  for (size_t i = 0; i < len; i++) written += text[i] != ' ' && text[i] != '.';
  if (!x || written > nd) return wrong(n, "equation and operands do not agree");
  for (size_t i = 0; i < len; i++) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      if (i + 2 >= len || text[i + 1] != '.') return wrong(n, "a lone dot in the equation");
      for (u32 d = 0; d < nd - written && k < DIMS_MAX; d++)
        t->letter[k++] = (char)('A' + DIMS_MAX - (nd - written) + d);
      i += 2;
    } else if (k < DIMS_MAX) {
      t->letter[k++] = text[i];
    }
  }
  t->letter[k] = 0;
  t->x = x;
  for (u32 i = 0; i < k; i++)
    if (strchr(t->letter + i + 1, t->letter[i])) return refuse(n, "with a diagonal");
  return k == nd || wrong(n, "equation and operands do not agree");
}

// Sums over letters that neither the result nor a later operand has.
static void term_sum(node *n, einsum_term *t, const char *keep) {
  i64 axes[DIMS_MAX];
  u32 nax = 0, k = 0;
  for (u32 d = 0; t->letter[d]; d++) {
    if (strchr(keep, t->letter[d]))
      t->letter[k++] = t->letter[d];
    else
      axes[nax++] = d;
  }
  t->letter[k] = 0;
  attr at[] = {attr_v(A_axes, axes, nax), attr_i(A_keepdims, 0)};
  if (nax) t->x = opn(n, OP_reduce_sum, &t->x, 1, at, 2);
}

// The result's letters: as written, "..." standing for all spare ones; if not written those that occur once,
// sorted.
static bool result_letters(node *n, const char *arrow, const einsum_term t[2], char out[DIMS_MAX + 1]) {
  char spare[DIMS_MAX + 1] = "", once[32] = "", *to = once;
  u32 k = 0;
  for (int ch = 'A'; ch < 'A' + DIMS_MAX; ch++)
    if (strchr(t[0].letter, ch) || strchr(t[1].letter, ch)) spare[k++] = (char)ch;
  for (int ch = 'a'; ch <= 'z'; ch++)
    if (!strchr(t[0].letter, ch) != !strchr(t[1].letter, ch)) *to++ = (char)ch;
  k = 0;
  const char *text = arrow ? arrow + 2 : once, *more = arrow ? "" : spare;
  for (; *more && k < DIMS_MAX; more++) out[k++] = *more;
  for (; *text && k <= DIMS_MAX; text++) {
    bool dots = text[0] == '.' && text[1] == '.' && text[2] == '.';
    for (more = dots ? spare : ""; *more && k < DIMS_MAX; more++) out[k++] = *more;
    if (dots)
      text += 2;
    else if (*text != ' ' && k < DIMS_MAX)
      out[k++] = *text;
    else if (*text != ' ')
      return refuse(n, "with a result of more than %d dimensions", DIMS_MAX);
  }
  out[k] = 0;
  for (u32 i = 0; i < k; i++)
    if (!strchr(t[0].letter, out[i]) && !strchr(t[1].letter, out[i]))
      return wrong(n, "the result's letter %c is in no operand", out[i]);
  return true;
}

bool map_einsum(node *n) {
  const char *text = at_s(n, "equation", ""), *arrow = strstr(text, "->"), *comma = strchr(text, ',');
  const char *end = arrow ? arrow : text + strlen(text);
  einsum_term t[2] = {0};
  char result[DIMS_MAX + 1], keep[2 * DIMS_MAX + 2], law_text[4 * DIMS_MAX];
  if (n->nin == 0 || n->nin > 2) return refuse(n, "with %u operands", n->nin);
  if (comma && comma >= end) comma = NULL;
  if (!comma == (n->nin == 2)) return wrong(n, "the equation `%s` has another number of operands", text);
  if (!term_parse(n, text, (size_t)((comma ? comma : end) - text), in_of(n, 0), &t[0])) return false;
  if (comma && !term_parse(n, comma + 1, (size_t)(end - comma - 1), in_of(n, 1), &t[1])) return false;
  if (!result_letters(n, arrow, t, result)) return false;
  for (u32 k = 0; k < n->nin; k++) {
    snprintf(keep, sizeof keep, "%s%s", result, t[!k].letter);
    term_sum(n, &t[k], keep);
  }
  if (n->nin == 2) {
    snprintf(law_text, sizeof law_text, "%s,%s->%s", t[0].letter, t[1].letter, result);
    return set(n, 0, einsum(n, law_text, t[0].x, t[1].x));
  }
  i64 perm[DIMS_MAX];
  u32 nd = (u32)strlen(result);
  for (u32 d = 0; d < nd; d++) perm[d] = strchr(t[0].letter, result[d]) - t[0].letter;
  return set(n, 0, to_perm(n, t[0].x, perm, nd));
}

// ---- reductions ----------------------------------------------------------------------------------------
// The reduced dimensions: attribute (or, newer, operand 1). False: told. *whole: nothing is reduced.
static bool reduced(node *n, i64 *axes, u32 *count, bool *nothing) {
  u32 nd = shape_of(n, in_of(n, 0))->nd;
  const i64 *v;
  i64 room[64];
  u32 got = at_ints(n, "axes", &v);
  if (in_of(n, 1)) {
    i64 k = ints_in(n, 1, room, COUNT_OF(room));
    if (k < 0) return false;
    got = (u32)k, v = room;
  }
  *nothing = !got && at_i(n, "noop_with_empty_axes", 0);
  *count = got ? got : *nothing ? 0 : nd;
  for (u32 k = 0; k < *count; k++) {
    u32 d = k;
    if (got && !axis_of(n, v[k], nd, &d)) return false;
    axes[k] = d;
    if (k >= DIMS_MAX) return wrong(n, "more axes than dimensions");
  }
  return true;
}

static mixed reduce(node *n, opcode op, mixed x, bool keep) {
  i64 axes[DIMS_MAX + 1];
  u32 count;
  bool nothing;
  if (!x || !reduced(n, axes, &count, &nothing)) return 0;
  if (nothing || count == 0) return x;
  attr at[] = {attr_v(A_axes, axes, count), attr_i(A_keepdims, keep)};
  return opn(n, op, &x, 1, at, 2);
}

static bool keepdims(node *n) { return at_i(n, "keepdims", 1); }

bool map_reduce(node *n) {
  return in_of(n, 0) && set(n, 0, reduce(n, (opcode)n->row->arg, in_of(n, 0), keepdims(n)));
}
bool map_reduce_l1(node *n) {
  return set(n, 0, reduce(n, OP_reduce_sum, op1(n, OP_abs, in_of(n, 0)), keepdims(n)));
}

static mixed sum_square(node *n) {
  return reduce(n, OP_reduce_sum, op2(n, OP_mul, in_of(n, 0), in_of(n, 0)), keepdims(n));
}
bool map_reduce_square(node *n) { return set(n, 0, sum_square(n)); }
bool map_reduce_l2(node *n) { return set(n, 0, op1(n, OP_sqrt, sum_square(n))); }
bool map_reduce_log(node *n) {
  return set(n, 0, op1(n, OP_log, reduce(n, OP_reduce_sum, in_of(n, 0), keepdims(n))));
}

bool map_reduce_log_exp(node *n) { // the largest is taken out, so that no exponential overflows
  mixed x = in_of(n, 0), top = reduce(n, OP_reduce_max, x, true);
  mixed sum = reduce(n, OP_reduce_sum, op1(n, OP_exp, op2(n, OP_sub, x, top)), keepdims(n));
  if (!sum) return false;
  top = to_shape(n, top, shape_of(n, sum)->dim, shape_of(n, sum)->nd);
  return set(n, 0, op2(n, OP_add, op1(n, OP_log, sum), top));
}

bool map_arg(node *n) {
  u32 axis;
  mixed x = in_of(n, 0);
  if (!x || !axis_of(n, at_i(n, "axis", 0), shape_of(n, x)->nd, &axis)) return false;
  attr at[] = {attr_i(A_axis, axis), attr_i(A_keepdims, keepdims(n)),
               attr_i(A_select_last, at_i(n, "select_last_index", 0))};
  return set(n, 0, opn(n, (opcode)n->row->arg, &x, 1, at, 3));
}

bool map_cumsum(node *n) {
  i64 v;
  u32 axis;
  mixed x = in_of(n, 0);
  if (!x || ints_in(n, 1, &v, 1) != 1 || !axis_of(n, v, shape_of(n, x)->nd, &axis)) return false;
  attr at[] = {attr_i(A_axis, axis), attr_i(A_exclusive, at_i(n, "exclusive", 0)),
               attr_i(A_reverse, at_i(n, "reverse", 0))};
  return set(n, 0, opn(n, OP_cumsum, &x, 1, at, 3));
}

bool map_topk(node *n) {
  mixed x = in_of(n, 0);
  u32 axis;
  i64 k = at_i(n, "k", 0);
  if (!x || !axis_of(n, at_i(n, "axis", -1), shape_of(n, x)->nd, &axis)) return false;
  if (n->opset >= 10 && ints_in(n, 1, &k, 1) != 1) return false;
  attr at[] = {attr_i(A_axis, axis), attr_i(A_k, k), attr_i(A_largest, at_i(n, "largest", 1)),
               attr_i(A_sorted, at_i(n, "sorted", 1))};
  mixed r = opn(n, OP_topk, &x, 1, at, 4);
  return set(n, 0, r) && (n->nout < 2 || set(n, 1, r + 1));
}

// Before opset 13 all dimensions from `axis` on were one.
bool map_softmax(node *n) {
  mixed x = in_of(n, 0);
  u32 axis, nd = x ? shape_of(n, x)->nd : 0;
  if (!x || !axis_of(n, at_i(n, "axis", n->opset < 13 ? 1 : -1), nd, &axis)) return false;
  opcode op = (opcode)n->row->arg;
  if (n->opset >= 13 || axis + 1 == nd) return set(n, 0, op_at(n, op, x, attr_i(A_axis, axis)));
  shape s = *shape_of(n, x);
  i64 flat = 1;
  for (u32 d = axis; d < nd; d++) flat *= s.dim[d];
  shape t = s;
  t.dim[axis] = flat;
  mixed y = op_at(n, op, to_shape(n, x, t.dim, axis + 1), attr_i(A_axis, axis));
  return y && set(n, 0, to_shape(n, y, s.dim, nd));
}

bool map_lp_norm(node *n) {
  mixed x = in_of(n, 0);
  u32 axis;
  i64 p = at_i(n, "p", 2);
  if (!x || !axis_of(n, at_i(n, "axis", -1), shape_of(n, x)->nd, &axis)) return false;
  if (p != 1 && p != 2) return refuse(n, "with p = %lld", (long long)p);
  attr a = attr_v(A_axes, (const i64[]){axis}, 1);
  mixed y = op_at(n, OP_reduce_sum, p == 1 ? op1(n, OP_abs, x) : op2(n, OP_mul, x, x), a);
  return set(n, 0, op2(n, OP_div, x, p == 1 ? y : op1(n, OP_sqrt, y)));
}
