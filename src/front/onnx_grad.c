// onnx_grad.c - gradients of single operators, as training exports write them (domain com.microsoft), and the
// forward forms that only such exports have.
//
// Idea: each becomes the gradient row that the forward row has. These take statistics again from their
// operands where onnxruntime hands them on, so what a forward node made for them alone is dropped again.
#include "front/onnx.h"

// dy and x, or dy and y, and nothing else.
bool map_ms_slope(node *n) {
  if (!in_of(n, 0) || !in_of(n, 1)) return wrong(n, "two inputs are needed");
  return set(n, 0, op2(n, (opcode)n->row->arg, in_of(n, 0), in_of(n, 1)));
}

bool map_ms_gelu_grad(node *n) { // dy, x and perhaps what is added to x; the argument: the tanh form
  mixed dy = in_of(n, 0), x = in_of(n, 1);
  if (!dy || !x) return wrong(n, "dy and x are needed");
  if (in_of(n, 2)) x = op2(n, OP_add, x, in_of(n, 2));
  attr form = attr_i(A_approx, n->row->arg);
  return set(n, 0, opn(n, OP_gelu_dx, (mixed[]){dy, x}, 2, &form, 1));
}

// ---- softmax -------------------------------------------------------------------------------------------
static mixed softmax_dx(node *n, mixed dy, mixed y, u32 axis) {
  attr a = attr_i(A_axis, axis);
  if (n->row->arg == OP_softmax) return opn(n, OP_softmax_dx, (mixed[]){dy, y}, 2, &a, 1);
  mixed sum = op_at(n, OP_reduce_sum, dy, attr_v(A_axes, (const i64[]){axis}, 1));
  return op2(n, OP_sub, dy, op2(n, OP_mul, op1(n, OP_exp, y), sum));
}

// From dy and y. The older form takes all dimensions from `axis` on as one.
static bool softmax_grad(node *n, i64 usual, bool flat) {
  mixed dy = in_of(n, 0), y = in_of(n, 1);
  u32 axis;
  if (!dy || !y || !axis_of(n, at_i(n, "axis", usual), shape_of(n, y)->nd, &axis))
    return !dy || !y ? wrong(n, "dy and y are needed") : false;
  const shape s = *shape_of(n, y);
  if (!flat || axis + 1 == s.nd) return set(n, 0, softmax_dx(n, dy, y, axis));
  shape t = s;
  for (u32 d = axis + 1; d < s.nd; d++) t.dim[axis] *= s.dim[d];
  mixed dx = softmax_dx(n, to_shape(n, dy, t.dim, axis + 1), to_shape(n, y, t.dim, axis + 1), axis);
  return dx && set(n, 0, to_shape(n, dx, s.dim, s.nd));
}
bool map_ms_softmax_grad(node *n) { return softmax_grad(n, 1, true); }
bool map_ms_softmax_grad_13(node *n) { return softmax_grad(n, -1, false); }

// ---- normalisations ------------------------------------------------------------------------------------
// x/sqrt(mean(x^2) + eps) g, and one over that root.
bool map_ms_rms_norm(node *n) {
  mixed x = in_of(n, 0), g = in_of(n, 1);
  u32 axis;
  if (!x || !g || !axis_of(n, at_i(n, "axis", -1), shape_of(n, x)->nd, &axis))
    return !x || !g ? wrong(n, "x and scale are needed") : false;
  is_weight(n, 1, ROLE_WEIGHT);
  double eps = at_f(n, "epsilon", 1e-5);
  attr at[] = {attr_i(A_axis, axis), attr_f(A_eps, eps)};
  i64 axes[DIMS_MAX];
  u32 nd = shape_of(n, x)->nd;
  for (u32 d = axis; d < nd; d++) axes[d - axis] = d;
  if (!set(n, 0, opn(n, OP_rmsnorm, (mixed[]){x, g}, 2, at, 2)) || n->nout < 2) return n->out[0] != 0;
  if (dtype_bytes(shape_of(n, x)->t) < 4) x = to_type(n, x, DT_F32);
  mixed square = op_at(n, OP_reduce_mean, op2(n, OP_mul, x, x), attr_v(A_axes, axes, nd - axis));
  return set(n, 1, op1(n, OP_rsqrt, op_at(n, OP_offset, square, attr_f(A_alpha, eps))));
}

// What was added under the root whose inverse x is, as the maps of the normalisations write it.
static bool eps_of(node *n, mixed x, double *eps) {
  const prog *p = n->x->b.p;
  const func_info *f = func_get(p, n->x->b.f);
  static const opcode chain[] = {OP_rsqrt, OP_offset};
  value v = x ? mix_get(n->x, x)->v : 0;
  for (u32 k = 0; k < 2; k++) {
    u32 def = v ? val(f, v)->def : 0;
    if (!def || f->body.v[def - 1].op != chain[k])
      return refuse(n, "without the normalisation that made its statistics");
    *eps = attr_float(attrs_get(p, f->body.v[def - 1].at), A_alpha, 0);
    v = opd_of(f, &f->body.v[def - 1], 0);
  }
  return true;
}

// dy, x, scale, mean (of layernorm), one over the deviation.
bool map_ms_norm_grad(node *n) {
  mixed dy = in_of(n, 0), x = in_of(n, 1), g = in_of(n, 2);
  bool layer = n->row->arg == OP_layernorm;
  u32 axis;
  double eps = 0;
  if (!dy || !x || !g) return wrong(n, "dy, x and scale are needed");
  if (!axis_of(n, at_i(n, "axis", -1), shape_of(n, x)->nd, &axis) ||
      !eps_of(n, in_of(n, layer ? 4 : 3), &eps))
    return false;
  attr at[] = {attr_i(A_axis, axis), attr_f(A_eps, eps)};
  bool ok = set(n, 0, opn(n, layer ? OP_layernorm_dx : OP_rmsnorm_dx, (mixed[]){dy, x, g}, 3, at, 2)) &&
            set(n, 1, opn(n, layer ? OP_layernorm_dg : OP_rmsnorm_dg, (mixed[]){dy, x}, 2, at, 2));
  if (!ok || !layer || n->nout < 3) return ok;
  i64 axes[DIMS_MAX];
  for (u32 d = 0; d < axis; d++) axes[d] = d;
  attr over[] = {attr_v(A_axes, axes, axis), attr_i(A_keepdims, 0)};
  return set(n, 2, axis ? opn(n, OP_reduce_sum, &dy, 1, over, 2) : dy);
}

// ---- dropout, indices, parts ---------------------------------------------------------------------------
bool map_ms_dropout_grad(node *n) { // dy, mask, ratio (0.5), training mode (false)
  mixed dy = in_of(n, 0), mask = in_of(n, 1);
  double v[2] = {0.5, 0};
  if (!dy || !mask) return wrong(n, "dy and mask are needed");
  for (u32 k = 0; k < 2; k++) {
    if (!in_of(n, k + 2)) continue;
    if (shape_elems(shape_of(n, in_of(n, k + 2))) != 1) return wrong(n, "input %u is not one value", k + 3);
    if (!known_in(n, k + 2) || !mix_read_f64(n->x, in_of(n, k + 2), &v[k])) return false;
  }
  if (v[1] == 0 || v[0] == 0) return set(n, 0, dy);
  if (!(v[0] > 0 && v[0] < 1)) return wrong(n, "a ratio of %g", v[0]);
  mixed kept = op3(n, OP_where, to_type(n, mask, DT_BOOL), dy, full_like(n, dy, 0));
  return set(n, 0, op_at(n, OP_scale, kept, attr_f(A_alpha, 1 / (1 - v[0]))));
}

bool map_ms_gather_grad(node *n) { // x's extents, indices, dy
  i64 dim[DIMS_MAX], nd = ints_in(n, 0, dim, DIMS_MAX);
  mixed i = in_of(n, 1), dy = in_of(n, 2);
  u32 axis;
  if (nd < 0) return false;
  if (!i || !dy) return wrong(n, "extents, indices and dy are needed");
  if (!axis_of(n, at_i(n, "axis", 0), (u32)nd, &axis)) return false;
  attr at[] = {attr_i(A_axis, axis), attr_v(A_shape, dim, (u32)nd)};
  return set(n, 0, opn(n, OP_gather_add, (mixed[]){dy, i}, 2, at, 2));
}

bool map_ms_gather_elements_grad(node *n) { // dy, x's extents, indices
  i64 dim[DIMS_MAX], nd = ints_in(n, 1, dim, DIMS_MAX);
  mixed dy = in_of(n, 0), i = in_of(n, 2);
  u32 axis;
  if (nd < 0) return false;
  if (!dy || !i) return wrong(n, "dy, extents and indices are needed");
  if (!axis_of(n, at_i(n, "axis", 0), (u32)nd, &axis)) return false;
  attr zero[] = {attr_t(A_dtype, shape_of(n, dy)->t), attr_v(A_shape, dim, (u32)nd), attr_f(A_value, 0)};
  attr at[] = {attr_i(A_axis, axis), attr_s(A_scatter, sym_of(n->x->b.p->c, "add"))};
  return set(n, 0, opn(n, OP_put, (mixed[]){opn(n, OP_full, NULL, 0, zero, 3), i, dy}, 3, at, 2));
}

bool map_ms_concat(node *n) { // also how long each part is
  u32 axis;
  mixed x = in_of(n, 0);
  if (!x || !axis_of(n, at_i(n, "axis", 0), shape_of(n, x)->nd, &axis)) return false;
  i64 *size = NEWN(n->I->a, i64, n->nin);
  for (u32 k = 0; k < n->nin; k++) {
    mixed part = in_of(n, k);
    if (!part || shape_of(n, part)->nd <= axis) return wrong(n, "input %u has no dimension %u", k + 1, axis);
    size[k] = shape_of(n, part)->dim[axis];
  }
  attr a = attr_i(A_axis, axis);
  return set(n, 0, n->nin == 1 ? x : opn(n, OP_concat, n->in, n->nin, &a, 1)) &&
         set(n, 1, mix_i64s(n->x, size, n->nin));
}
