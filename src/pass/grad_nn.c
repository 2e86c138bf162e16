// grad_nn.c - gradients of products, layers, losses, windows and mixtures of experts.
//
// Idea: the gradient of a product is a product with the same letters in other places (mn,kn->mk and
// mk,mn->kn), never a transpose, so that what a plan says of the forward letters carries over. Normalisations
// and losses take their statistics again from the operands instead of saving them.
#include "pass/grad.h"

#define X  (r->x[0])
#define Y  (r->y)
#define DY (r->dy[0])
#define DX (r->dx[0])

// ---- products --------------------------------------------------------------------------------------------
static value contract(rule *r, const char *letters, value x, value y) {
  attr at = attr_s(A_law, sym_of(r->b->p->c, letters));
  return build(r->b, OP_einsum, (value[]){x, y}, 2, &at, 1);
}

typedef struct {
  u32 n;
  char letter[DIMS_MAX + 1];
} term;
static bool term_has(const term *t, char c) { return memchr(t->letter, c, t->n) != NULL; }

// One factor's gradient: the product of a and b along the factor's letters `t`. Letters that neither has were
// summed over in the factor alone; they come back by broadcasting. x: extents of the factor.
static value factor(rule *r, value a, const term *ta, value b, const term *tb, const term *t,
                    const shape *x) {
  char letters[3 * DIMS_MAX + 5];
  term have = {0};
  shape part = *x;
  for (u32 d = 0; d < t->n; d++)
    if (term_has(ta, t->letter[d]) || term_has(tb, t->letter[d]))
      have.letter[have.n++] = t->letter[d];
    else
      part.dim[d] = 1;
  snprintf(letters, sizeof letters, "%.*s,%.*s->%.*s", (int)ta->n, ta->letter, (int)tb->n, tb->letter,
           (int)have.n, have.letter);
  value g = contract(r, letters, a, b);
  if (have.n == t->n) return g;
  return op_with(r, OP_expand, rule_dims(r, g, part.nd, part.dim), attr_v(A_shape, x->dim, x->nd));
}

// x, w: the operands, without dimensions that were broadcast.
static void product(rule *r, value x, const term *tx, value w, const term *tw, const term *ty) {
  shape sx = shape_of(r, x), sw = shape_of(r, w), fx = shape_of(r, r->x[0]), fw = shape_of(r, r->x[1]);
  if (r->want[0]) r->dx[0] = rule_dims(r, factor(r, DY, ty, w, tw, tx, &sx), fx.nd, fx.dim);
  if (r->want[1]) r->dx[1] = rule_dims(r, factor(r, x, tx, DY, ty, tw, &sw), fw.nd, fw.dim);
}

void grad_einsum(rule *r) {
  const char *s = sym_str(r->b->p->c, attr_get(attrs_in(r), A_law)->u.s);
  term t[3] = {{0}};
  for (u32 k = 0; *s; s++)
    if (*s == ',' || *s == '>')
      k++;
    else if (*s != ' ' && *s != '-')
      t[k].letter[t[k].n++] = *s;
  product(r, r->x[0], &t[0], r->x[1], &t[1], &t[2]);
}

// Numpy's rules in letters: batch dimensions a, b, .. from the right, then m and k, k and n.
void grad_matmul(rule *r) {
  shape s[2] = {shape_of(r, r->x[0]), shape_of(r, r->x[1])}, y = shape_of(r, Y);
  bool vec[2] = {s[0].nd == 1, s[1].nd == 1};
  u32 lead[2] = {vec[0] ? 0 : s[0].nd - 2, vec[1] ? 0 : s[1].nd - 2}, most = MAX(lead[0], lead[1]);
  term t[2] = {{0}}, ty = {0};
  value v[2];
  for (u32 d = most; d-- > 0;) ty.letter[ty.n++] = (char)('a' + d);
  for (u32 k = 0; k < 2; k++) {
    i64 dim[DIMS_MAX];
    for (u32 i = 0; i < lead[k]; i++) { // a dimension that is broadcast has no letter
      u32 d = lead[k] - 1 - i;
      if (s[k].dim[i] != y.dim[most - lead[k] + i]) continue;
      dim[t[k].n] = s[k].dim[i], t[k].letter[t[k].n++] = (char)('a' + d);
    }
    for (u32 i = lead[k]; i < s[k].nd; i++) {
      char c = k == 0 ? (i + 1 < s[k].nd ? 'm' : 'k') : (vec[1] || i + 1 < s[k].nd ? 'k' : 'n');
      dim[t[k].n] = s[k].dim[i], t[k].letter[t[k].n++] = c;
      if (c != 'k') ty.letter[ty.n++] = c;
    }
    v[k] = rule_dims(r, r->x[k], t[k].n, dim);
  }
  product(r, v[0], &t[0], v[1], &t[1], &ty);
}

static value sum_but(rule *r, value x, u32 keep) { // over all dimensions but one
  shape s = shape_of(r, x);
  i64 axes[DIMS_MAX];
  u32 n = 0;
  for (u32 d = 0; d < s.nd; d++)
    if (d != keep) axes[n++] = d;
  attr at[] = {attr_v(A_axes, axes, n), attr_i(A_keepdims, 0)};
  return build(r->b, OP_reduce_sum, &x, 1, at, 2);
}

void grad_conv(rule *r) {
  shape x = shape_of(r, X), w = shape_of(r, r->x[1]);
  if (r->want[0])
    r->dx[0] = rule_same_and(r, OP_conv_dx, (value[]){DY, r->x[1]}, 2, attr_v(A_shape, x.dim, x.nd));
  if (r->want[1]) r->dx[1] = rule_same_and(r, OP_conv_dw, (value[]){DY, X}, 2, attr_v(A_shape, w.dim, w.nd));
  if (r->nopd == 3 && r->want[2]) r->dx[2] = sum_but(r, DY, 1);
}

// conv_dx is linear in both operands; as the transposed convolution it is a forward operator.
void grad_conv_dx(rule *r) {
  shape w = shape_of(r, r->x[1]);
  attrs a = attrs_in(r);
  attr at[8];
  u32 n = 0;
  for (u32 i = 0; i < a.n; i++)
    if (a.v[i].key != A_shape) at[n++] = a.v[i];
  if (r->want[0]) r->dx[0] = build(r->b, OP_conv, (value[]){DY, r->x[1]}, 2, at, n);
  if (r->want[1]) r->dx[1] = rule_same_and(r, OP_conv_dw, (value[]){X, DY}, 2, attr_v(A_shape, w.dim, w.nd));
}

// ---- along a dimension -----------------------------------------------------------------------------------
void grad_softmax(rule *r) { DX = rule_same(r, OP_softmax_dx, (value[]){DY, Y}, 2); }

void grad_log_softmax(rule *r) { // dy - exp(y) sum(dy)
  i64 axis = attr_int(attrs_in(r), A_axis, -1);
  attr at[] = {attr_v(A_axes, &axis, 1), attr_i(A_keepdims, 1)};
  value sum = build(r->b, OP_reduce_sum, &DY, 1, at, 2);
  DX = sub(r, DY, mul(r, op1(r, OP_exp, Y), sum));
}

static void norm(rule *r, opcode dx, opcode dg) {
  if (r->want[0]) r->dx[0] = rule_same(r, dx, (value[]){DY, X, r->x[1]}, 3);
  if (r->want[1]) r->dx[1] = rule_same(r, dg, (value[]){DY, X}, 2);
  if (r->nopd == 3 && r->want[2]) r->dx[2] = rule_sum_to(r, DY, r->x[2]);
}
void grad_layernorm(rule *r) { norm(r, OP_layernorm_dx, OP_layernorm_dg); }
void grad_rmsnorm(rule *r) { norm(r, OP_rmsnorm_dx, OP_rmsnorm_dg); }

void grad_groupnorm(rule *r) { // weights may have a type of their own
  if (r->want[0]) r->dx[0] = rule_same(r, OP_groupnorm_dx, (value[]){DY, X, r->x[1]}, 3);
  if (r->want[1]) r->dx[1] = rule_same(r, OP_groupnorm_dg, (value[]){DY, X}, 2);
  if (r->want[2]) r->dx[2] = sum_but(r, DY, 1);
  for (u32 k = 1; k < 3; k++)
    if (r->dx[k]) r->dx[k] = rule_dtype(r, r->dx[k], shape_of(r, r->x[k]).t);
}

// The sum over neighbouring channels, as a mean along the first spatial dimension of [n, 1, channels, rest].
static value mean_of_channels(rule *r, value v, i64 size, i64 before, i64 after) {
  shape x = shape_of(r, X);
  i64 rest = 1, window[] = {size, 1}, pads[] = {before, 0, after, 0};
  for (u32 d = 2; d < x.nd; d++) rest *= x.dim[d];
  attr at[] = {attr_v(A_window, window, 2), attr_v(A_pads, pads, 4), attr_i(A_include_pad, 1)};
  value flat = rule_dims(r, v, 4, (i64[]){x.dim[0], 1, x.dim[1], rest});
  return rule_dims(r, build(r->b, OP_avgpool, &flat, 1, at, COUNT_OF(at)), x.nd, x.dim);
}

// y = x s^-b with s = value + a mean(x^2): dx = dy s^-b - 2 a b x mean'(dy x s^(-b-1)), mean' over the
// channels that have this one among their neighbours.
void grad_lrn(rule *r) {
  attrs at = attrs_in(r);
  i64 size = attr_int(at, A_size, 1), before = (size - 1) / 2, after = size / 2;
  double a = attr_float(at, A_alpha, 1e-4), b = attr_float(at, A_beta, 0.75), v = attr_float(at, A_value, 1);
  dtype t = shape_of(r, X).t;
  value s = offset(r, scale(r, mean_of_channels(r, mul(r, X, X), size, before, after), a), v);
  value g = mul(r, DY, op2(r, OP_pow, s, rule_scalar(r, t, -b)));
  value back = mean_of_channels(r, op2(r, OP_div, mul(r, g, X), s), size, after, before);
  DX = sub(r, g, mul(r, scale(r, X, 2 * a * b), back));
}

void grad_resize(rule *r) {
  shape x = shape_of(r, X), y = shape_of(r, Y);
  attrs a = attrs_in(r);
  attr at[A_COUNT];
  u32 n = 0;
  for (u32 i = 0; i < a.n; i++)
    if (a.v[i].key != A_shape && a.v[i].key != A_value) at[n++] = a.v[i];
  at[n++] = attr_v(A_shape, x.dim, x.nd);
  DX = shape_elems(&y) ? build(r->b, OP_resize_dx, &DY, 1, at, n) : rule_full(r->b, &x, 0);
}

// ---- batch normalisation ---------------------------------------------------------------------------------
void grad_batchnorm_train(rule *r) {
  if (r->nres > 1 && (r->dy[1] || r->dy[2])) {
    grad_refuse(r, "a gradient through its statistics");
    return;
  }
  value g = rule_same(r, OP_batchnorm_dx, (value[]){DY, X, r->x[1]}, 3);
  for (u32 k = 0; k < 3 && g; k++) r->dx[k] = g + k;
}

// With s = 1/sqrt(var + eps) and c = sum of dy (x - mean): dx = dy g s, dg = c s, db = sum of dy, dmean = -g
// s db, dvar = -g c s^3 / 2. Statistics and weights may have types of their own.
void grad_batchnorm(rule *r) {
  shape x = shape_of(r, X);
  i64 dim[DIMS_MAX];
  for (u32 d = 0; d < x.nd; d++) dim[d] = d == 1 ? x.dim[1] : 1;
  value g = rule_dtype(r, r->x[1], x.t), mean = rule_dtype(r, r->x[3], x.t),
        var = rule_dtype(r, r->x[4], x.t);
  value s = op1(r, OP_rsqrt, offset(r, var, attr_float(attrs_in(r), A_eps, 1e-5))), gs = mul(r, g, s);
  if (r->want[0]) r->dx[0] = mul(r, DY, rule_dims(r, gs, x.nd, dim));
  value sum = r->want[2] || r->want[3] ? sum_but(r, DY, 1) : 0;
  value c = 0;
  if (r->want[1] || r->want[4]) c = sum_but(r, mul(r, DY, sub(r, X, rule_dims(r, mean, x.nd, dim))), 1);
  if (r->want[1]) r->dx[1] = mul(r, c, s);
  if (r->want[2]) r->dx[2] = sum;
  if (r->want[3]) r->dx[3] = op1(r, OP_neg, mul(r, gs, sum));
  if (r->want[4]) r->dx[4] = scale(r, mul(r, mul(r, gs, c), mul(r, s, s)), -0.5);
  for (u32 k = 1; k < 5; k++)
    if (r->dx[k]) r->dx[k] = rule_dtype(r, r->dx[k], shape_of(r, r->x[k]).t);
}

// ---- losses, random numbers ------------------------------------------------------------------------------
void grad_xent(rule *r) { DX = rule_same(r, OP_cross_entropy_dx, (value[]){DY, X, r->x[1]}, 3); }

// -dy, times the weight of the class, at the label and 0 elsewhere; a mean divides by the sum of the weights
// of all labels that count.
void grad_nll(rule *r) {
  attrs a = attrs_in(r);
  shape x = shape_of(r, X), label = shape_of(r, r->x[1]);
  const attr *reduce = attr_get(a, A_reduce), *ignore = attr_get(a, A_ignore);
  const char *how = reduce ? sym_str(r->b->p->c, reduce->u.s) : "mean";
  if (r->nopd == 3 && r->want[2]) {
    grad_refuse(r, "class weights that are trained");
    return;
  }
  value l = r->x[1], ignored = 0, w = 0, g = op1(r, OP_neg, DY); // w: of every label, 0 where it is 1
  if (ignore) {
    ignored = op2(r, OP_eq, l, rule_scalar(r, label.t, (double)ignore->u.i));
    l = build(r->b, OP_where, (value[]){ignored, rule_scalar(r, label.t, 0), l}, 3, NULL, 0);
  }
  if (r->nopd == 3) w = rule_dtype(r, op2(r, OP_gather, r->x[2], l), x.t);
  if (ignore)
    w = build(r->b, OP_where, (value[]){ignored, rule_scalar(r, x.t, 0), w ? w : rule_scalar(r, x.t, 1)}, 3,
              NULL, 0);
  if (w) g = mul(r, g, w);
  if (!strcmp(how, "mean"))
    g = w ? op2(r, OP_div, g, op_with(r, OP_reduce_sum, w, attr_i(A_keepdims, 0)))
          : scale(r, g, 1 / (double)shape_elems(&label));
  i64 apart[DIMS_MAX] = {x.dim[0], 1};
  for (u32 d = 2; d < x.nd; d++) apart[d] = x.dim[d];
  attr at[] = {attr_i(A_axis, 1), attr_i(A_size, x.dim[1]), attr_t(A_dtype, x.t)};
  value hit = build(r->b, OP_one_hot, &l, 1, at, COUNT_OF(at));
  if (w || !strcmp(how, "none")) g = rule_dims(r, g, x.nd, apart);
  DX = mul(r, hit, g);
}

// Dropout is linear: the same elements, drawn again from the same key, drop from dy. No mask is saved.
void grad_dropout(rule *r) {
  attrs a = attrs_in(r);
  DX = build_n(r->b, OP_dropout, &DY, 1, a.v, a.n, 2);
}

// ---- windows ---------------------------------------------------------------------------------------------
void grad_maxpool(rule *r) { DX = rule_same(r, OP_maxpool_dx, (value[]){DY, X}, 2); }
void grad_avgpool(rule *r) { DX = rule_same(r, OP_avgpool_dx, (value[]){DY, X}, 2); }

// ---- mixture of experts ----------------------------------------------------------------------------------
// The weight of a slot is the probability of its expert, 0 if the token was dropped.
void grad_moe_gate(rule *r) {
  value slot = Y, dw = r->dy[1];
  shape p = shape_of(r, X);
  if (!dw) return;
  dtype ti = shape_of(r, slot).t;
  double capacity = (double)attr_int(attrs_in(r), A_capacity, 1);
  value zero = rule_scalar(r, ti, 0), taken = op2(r, OP_ge, slot, zero);
  value expert = op2(r, OP_max, op2(r, OP_div, slot, rule_scalar(r, ti, capacity)), zero);
  value g = build(r->b, OP_where, (value[]){taken, dw, rule_scalar(r, p.t, 0)}, 3, NULL, 0);
  attr at[] = {attr_i(A_axis, 2), attr_s(A_scatter, sym_of(r->b->p->c, "add"))};
  DX = build(r->b, OP_put, (value[]){rule_full(r->b, &p, 0), expert, g}, 3, at, 2);
}

void grad_moe_dispatch(rule *r) { // back with weight 1
  shape w = shape_of(r, r->x[1]);
  w.t = shape_of(r, X).t;
  DX = build(r->b, OP_moe_combine, (value[]){DY, r->x[1], rule_full(r->b, &w, 1)}, 3, NULL, 0);
}

// For expert slots: dy sent to them, times the weight that each slot came back with. The weights get there as
// tokens do, every (token, choice) as a token of its own.
void grad_moe_combine(rule *r) {
  value slots = r->x[1], w = r->x[2];
  shape y = shape_of(r, X), s = shape_of(r, slots);
  if (r->want[2]) r->dx[2] = build(r->b, OP_moe_combine_dw, (value[]){DY, slots, X}, 3, NULL, 0);
  if (!r->want[0]) return;
  attr at[] = {attr_i(A_experts, y.dim[1]), attr_i(A_capacity, y.dim[2])};
  i64 each[] = {s.dim[0], s.dim[1] * s.dim[2], 1};
  value ws = rule_dims(r, rule_dtype(r, w, y.t), 3, each), to = rule_dims(r, slots, 3, each);
  value weight = build(r->b, OP_moe_dispatch, (value[]){ws, to}, 2, at, 2);
  r->dx[0] = mul(r, build(r->b, OP_moe_dispatch, (value[]){DY, slots}, 2, at, 2), weight);
}

// ---- attention -------------------------------------------------------------------------------------------
// From the result and the log-sum-exp of each row of scores, which is no float that anything else reads.
void grad_attention(rule *r) {
  value x[3 + ATTENTION_OPDS] = {DY, Y, Y + 1};
  if (r->dy[1]) {
    grad_refuse(r, "a gradient through its log-sum-exp");
    return;
  }
  for (u32 k = 0; k < r->nopd; k++) x[3 + k] = r->x[k];
  const bool bias = r->nopd > 3 && dtype_kind_of(shape_of(r, r->x[3]).t) == DK_FLOAT && r->want[3];
  const value g = r->want[0] || r->want[1] || r->want[2] ? rule_same(r, OP_attention_dx, x, 3 + r->nopd) : 0;
  for (u32 k = 0; k < 3 && g; k++) r->dx[k] = g + k;
  if (bias) r->dx[3] = rule_same(r, OP_attention_db, x, 3 + r->nopd);
}
