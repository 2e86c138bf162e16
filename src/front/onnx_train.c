// onnx_train.c - operators of training graphs: gradients and updates as onnxruntime's graph transformer
// writes them (domain com.microsoft), and the optimizers of ai.onnx.preview.training.
//
// Idea: a gradient node becomes the gradient row that the forward row has; updates that the graph leaves to
// side effects become results of main.
#include "front/onnx.h"

static mixed scaled(node *n, mixed x, double a) { return op_at(n, OP_scale, x, attr_f(A_alpha, a)); }

static mixed sum_over(node *n, mixed x, bool keep_channels) {
  i64 axes[DIMS_MAX];
  u32 count = 0;
  for (u32 d = 0; x && d < shape_of(n, x)->nd; d++)
    if (!(keep_channels && d == 1)) axes[count++] = d;
  attr at[] = {attr_v(A_axes, axes, count), attr_i(A_keepdims, 0)};
  return opn(n, OP_reduce_sum, &x, 1, at, 2);
}

// ---- losses --------------------------------------------------------------------------------------------
// Labels are distributions: -sum(label log softmax(x)), over the number of rows for "mean".
static double rows_of(node *n, mixed x) {
  bool mean = strcmp(at_s(n, "reduction", "mean"), "mean") == 0;
  const shape *s = shape_of(n, x);
  return mean ? (double)(shape_elems(s) / MAX(s->dim[s->nd - 1], 1)) : 1;
}

bool map_ms_xent(node *n) {
  mixed x = in_of(n, 0), label = in_of(n, 1);
  if (!x || !label || shape_of(n, x)->nd == 0) return wrong(n, "scores and labels are needed");
  is_weight(n, 1, ROLE_LABEL);
  mixed y = op_at(n, OP_log_softmax, x, attr_i(A_axis, -1));
  set(n, 1, y);
  return set(n, 0, scaled(n, sum_over(n, op2(n, OP_mul, y, label), false), -1 / rows_of(n, x)));
}

bool map_ms_xent_grad(node *n) {
  mixed dy = in_of(n, 0), y = in_of(n, 1), label = in_of(n, 2);
  if (!dy || !y || !label || shape_of(n, y)->nd == 0) return wrong(n, "three inputs are needed");
  is_weight(n, 2, ROLE_LABEL);
  mixed d = scaled(n, op2(n, OP_sub, op1(n, OP_exp, y), label), 1 / rows_of(n, y));
  return set(n, 0, op2(n, OP_mul, d, dy));
}

// From dy, log softmax(x) and labels: softmax does not tell its argument from its own logarithm.
bool map_ms_xent_loss_grad(node *n) {
  mixed dy = in_of(n, 0), y = in_of(n, 1), label = in_of(n, 2);
  if (!dy || !y || !label) return wrong(n, "three inputs are needed");
  if (in_of(n, 3) || in_of(n, 5)) return refuse(n, "with weights or a bias");
  is_weight(n, 2, ROLE_LABEL);
  attr at[2];
  u32 nat = loss_attrs(n, 4, at), nd = shape_of(n, y)->nd;
  if (!nat) return false;
  mixed rows = classes_last(n, y);
  if (!rows) return false;
  mixed d = opn(n, OP_cross_entropy_dx, (mixed[]){dy, rows, label}, 3, at, nat);
  i64 perm[DIMS_MAX] = {0, nd - 1};
  for (u32 k = 2; k < nd; k++) perm[k] = k - 1;
  return d && set(n, 0, to_perm(n, d, perm, nd));
}

// ---- gradients -----------------------------------------------------------------------------------------
bool map_ms_scale(node *n) { // the scale may be an integer, such as a number of elements
  mixed x = in_of(n, 0), by = in_of(n, 1);
  if (!x || !by) return wrong(n, "two inputs are needed");
  return set(n, 0, op2(n, at_i(n, "scale_down", 0) ? OP_div : OP_mul, x, to_type(n, by, shape_of(n, x)->t)));
}

// Which dimensions of two broadcast shapes a gradient is summed over, for each of them.
bool map_ms_broadcast_args(node *n) {
  i64 dim[2][DIMS_MAX], axes[DIMS_MAX];
  i64 na = ints_in(n, 0, dim[0], DIMS_MAX), nb = na < 0 ? -1 : ints_in(n, 1, dim[1], DIMS_MAX);
  if (nb < 0) return false;
  i64 nd[2] = {na, nb}, most = MAX(na, nb);
  for (u32 k = 0; k < 2; k++) {
    u32 count = 0;
    for (i64 d = most; d-- > 0;) {
      i64 mine = d - (most - nd[k]), other = d - (most - nd[!k]);
      i64 a = mine >= 0 ? dim[k][mine] : 1, b = other >= 0 ? dim[!k][other] : 1;
      if (mine < 0 || (a == 1 && b != 1)) axes[count++] = d;
    }
    if (!set(n, k, mix_i64s(n->x, axes, count))) return false;
  }
  return true;
}

// y, running mean and variance (not kept by anyone here), mean and inverse deviation of the batch.
bool map_ms_batch_norm(node *n) {
  if (n->nin != 5) return wrong(n, "five inputs are needed");
  double eps = at_f(n, "epsilon", 1e-5), momentum = at_f(n, "momentum", 0.9);
  attr a = attr_f(A_eps, eps);
  for (u32 k = 1; k < 3; k++) is_weight(n, k, ROLE_WEIGHT);
  for (u32 k = 3; k < 5; k++) is_weight(n, k, ROLE_CONST);
  if (!at_i(n, "training_mode", 0)) return set(n, 0, opn(n, OP_batchnorm, n->in, 5, &a, 1));
  mixed r = opn(n, OP_batchnorm_train, n->in, 3, &a, 1);
  if (!set(n, 0, r)) return false;
  for (u32 k = 1; k < 3; k++) {
    mixed old = scaled(n, in_of(n, k + 2), momentum);
    if (!set(n, k, op2(n, OP_add, old, scaled(n, r + k, 1 - momentum)))) return false;
  }
  mixed inv = op1(n, OP_rsqrt, op_at(n, OP_offset, r + 2, attr_f(A_alpha, eps)));
  return set(n, 3, r + 1) && set(n, 4, inv);
}

bool map_ms_batch_norm_grad(node *n) { // the statistics follow from x again
  attr a = attr_f(A_eps, at_f(n, "epsilon", 1e-5));
  if (n->nin < 3) return wrong(n, "dy, x and scale are needed");
  mixed r = opn(n, OP_batchnorm_dx, n->in, 3, &a, 1);
  for (u32 k = 0; k < 3 && r; k++) set(n, k, r + k);
  return r != 0;
}

bool map_ms_conv_grad(node *n) {
  mixed dy = in_of(n, 0), x = in_of(n, 1), w = in_of(n, 2);
  if (!dy || !x || !w) return wrong(n, "dy, x and the weight are needed");
  const shape sx = *shape_of(n, x), sw = *shape_of(n, w);
  const i64 *v;
  attr at[5] = {attr_i(A_group, at_i(n, "group", 1))};
  static const struct {
    const char *name;
    attr_key key;
  } same[] = {{"strides", A_strides}, {"dilations", A_dilations}, {"pads", A_pads}};
  u32 nat = 1;
  if (strcmp(at_s(n, "auto_pad", "NOTSET"), "NOTSET")) return refuse(n, "with auto_pad");
  for (u32 k = 0; k < COUNT_OF(same); k++) {
    u32 count = at_ints(n, same[k].name, &v);
    if (count) at[nat++] = attr_v(same[k].key, v, count);
  }
  bool wants[3];
  for (u32 k = 0; k < 3; k++) wants[k] = k < n->nout && n->n->out.v[k].i;
  at[nat] = attr_v(A_shape, sx.dim, sx.nd);
  if (wants[0] && !set(n, 0, opn(n, OP_conv_dx, (mixed[]){dy, w}, 2, at, nat + 1))) return false;
  at[nat] = attr_v(A_shape, sw.dim, sw.nd);
  if (wants[1] && !set(n, 1, opn(n, OP_conv_dw, (mixed[]){dy, x}, 2, at, nat + 1))) return false;
  return !wants[2] || set(n, 2, sum_over(n, dy, true));
}

// From dy and the mask that the forward node made: its operand is the forward operand.
bool map_max_pool_grad(node *n) {
  const prog *p = n->x->b.p;
  const func_info *f = func_get(p, n->x->b.f);
  mixed dy = in_of(n, 0), mask = in_of(n, 1);
  value v = mask ? mix_get(n->x, mask)->v : 0;
  u32 def = v ? val(f, v)->def : 0;
  if (!dy || !def || f->body.v[def - 1].op != OP_maxpool_arg)
    return refuse(n, "without the MaxPool that made its mask");
  const instr pool = f->body.v[def - 1];
  attrs at = attrs_get(p, pool.at);
  attr keep[8];
  u32 nat = 0;
  for (u32 k = 0; k < at.n && nat < COUNT_OF(keep); k++)
    if (at.v[k].key != A_mode) keep[nat++] = at.v[k];
  mixed x = mix_value(n->x, opd_of(f, &pool, 0));
  return set(n, 0, opn(n, OP_maxpool_dx, (mixed[]){dy, x}, 2, keep, nat));
}

static mixed biased(node *n) { return in_of(n, 1) ? op2(n, OP_add, in_of(n, 0), in_of(n, 1)) : in_of(n, 0); }

bool map_ms_fast_gelu(node *n) {
  mixed x = biased(n);
  return set(n, 0, op_at(n, OP_gelu, x, attr_i(A_approx, 1)));
}
bool map_ms_bias_gelu(node *n) { return set(n, 0, op1(n, OP_gelu, biased(n))); }

// ---- updates -------------------------------------------------------------------------------------------
bool map_ms_sgd(node *n) { // rate, weight, gradient
  mixed rate = in_of(n, 0), w = in_of(n, 1), g = in_of(n, 2), r;
  double lr;
  if (!rate || !w || !g) return wrong(n, "rate, weight and gradient are needed");
  is_weight(n, 1, ROLE_WEIGHT);
  if (shape_elems(shape_of(n, rate)) == 1 && mix_read_f64(n->x, rate, &lr)) {
    attr a = attr_f(A_lr, lr);
    r = opn(n, OP_sgd, (mixed[]){w, g}, 2, &a, 1);
  } else {
    r = op2(n, OP_sub, w, op2(n, OP_mul, g, rate));
  }
  effect(n, r);
  return set(n, 0, r);
}

bool map_ms_accumulate(node *n) { // buffer, value, overwrite: the new buffer, and that it is done
  mixed old = in_of(n, 0), v = in_of(n, 1), reset = in_of(n, 2);
  if (!old || !v) return wrong(n, "buffer and value are needed");
  is_weight(n, 0, ROLE_STATE);
  mixed sum = op2(n, OP_add, old, v);
  if (reset) sum = op3(n, OP_where, to_type(n, reset, DT_BOOL), v, sum);
  effect(n, sum);
  set(n, 1, sum);
  shape one = {.t = DT_BOOL, .nd = 1, .dim = {1}};
  static const u8 done = 1;
  return sum && set(n, 0, mix_known(n->x, &one, &done));
}

// rate, step, then tensors by kind: all weights, all gradients, all first states, ...
static mixed tensor_at(node *n, u32 kind, u32 kinds, u32 i) {
  return in_of(n, 2 + kind * ((n->nin - 2) / kinds) + i);
}

static u32 optimizer_tensors(node *n, u32 kinds) {
  u32 count = n->nin > 2 ? (n->nin - 2) / kinds : 0;
  if (count == 0 || count * kinds != n->nin - 2 || count * (kinds - 1) != n->nout)
    return wrong(n, "%u inputs", n->nin);
  return count;
}

static mixed decayed(node *n, mixed x, mixed g) {
  double norm = at_f(n, "norm_coefficient", 0);
  return norm == 0 ? g : op2(n, OP_add, scaled(n, x, norm), g);
}

// yes where the step number is above 0, else no.
static mixed after_first(node *n, mixed yes, mixed no) {
  mixed step = in_of(n, 1);
  return op3(n, OP_where, op2(n, OP_gt, step, full_like(n, step, 0)), yes, no);
}

bool map_momentum(node *n) {
  u32 count = optimizer_tensors(n, 3);
  double alpha = at_f(n, "alpha", 0), beta = at_f(n, "beta", 0);
  bool nesterov = strcmp(at_s(n, "mode", "standard"), "nesterov") == 0;
  mixed rate = in_of(n, 0), first = after_first(n, full_like(n, rate, beta), full_like(n, rate, 1));
  for (u32 i = 0; i < count; i++) {
    mixed x = tensor_at(n, 0, 3, i), g = decayed(n, x, tensor_at(n, 1, 3, i)), v = tensor_at(n, 2, 3, i);
    v = op2(n, OP_add, scaled(n, v, alpha), op2(n, OP_mul, g, first));
    mixed dir = nesterov ? op2(n, OP_add, g, scaled(n, v, alpha)) : v;
    if (!set(n, i, op2(n, OP_sub, x, op2(n, OP_mul, dir, rate))) || !set(n, count + i, v)) return false;
  }
  return count != 0;
}

bool map_adagrad(node *n) {
  u32 count = optimizer_tensors(n, 3);
  mixed rate = in_of(n, 0), step = in_of(n, 1);
  mixed slow = scaled(n, to_type(n, step, rate ? shape_of(n, rate)->t : DT_F32), at_f(n, "decay_factor", 0));
  rate = op2(n, OP_div, rate, op_at(n, OP_offset, slow, attr_f(A_alpha, 1)));
  for (u32 i = 0; i < count; i++) {
    mixed x = tensor_at(n, 0, 3, i), g = decayed(n, x, tensor_at(n, 1, 3, i));
    mixed h = op2(n, OP_add, tensor_at(n, 2, 3, i), op2(n, OP_mul, g, g));
    mixed root = op_at(n, OP_offset, op1(n, OP_sqrt, h), attr_f(A_alpha, at_f(n, "epsilon", 1e-6)));
    mixed y = op2(n, OP_sub, x, op2(n, OP_mul, op2(n, OP_div, g, root), rate));
    if (!set(n, i, y) || !set(n, count + i, h)) return false;
  }
  return count != 0;
}

bool map_adam(node *n) {
  u32 count = optimizer_tensors(n, 4);
  double a = at_f(n, "alpha", 0.9), b = at_f(n, "beta", 0.999), post = at_f(n, "norm_coefficient_post", 0);
  mixed rate = in_of(n, 0), step = in_of(n, 1);
  if (!rate || !step) return wrong(n, "rate and step are needed");
  dtype t = shape_of(n, rate)->t;
  mixed k = to_type(n, step, t), one = full_like(n, rate, 1);
  mixed up = op1(n, OP_sqrt, op2(n, OP_sub, one, op2(n, OP_pow, full_like(n, rate, b), k)));
  mixed down = op2(n, OP_sub, one, op2(n, OP_pow, full_like(n, rate, a), k));
  rate = after_first(n, op2(n, OP_mul, rate, op2(n, OP_div, up, down)), rate);
  for (u32 i = 0; i < count; i++) {
    mixed x = tensor_at(n, 0, 4, i), g = decayed(n, x, tensor_at(n, 1, 4, i));
    mixed v = op2(n, OP_add, scaled(n, tensor_at(n, 2, 4, i), a), scaled(n, g, 1 - a));
    mixed h = op2(n, OP_add, scaled(n, tensor_at(n, 3, 4, i), b), scaled(n, op2(n, OP_mul, g, g), 1 - b));
    mixed root = op_at(n, OP_offset, op1(n, OP_sqrt, h), attr_f(A_alpha, at_f(n, "epsilon", 1e-6)));
    mixed y = op2(n, OP_sub, x, op2(n, OP_mul, op2(n, OP_div, v, root), rate));
    if (post != 0) y = scaled(n, y, 1 - post);
    if (!set(n, i, y) || !set(n, count + i, v) || !set(n, 2 * count + i, h)) return false;
  }
  return count != 0;
}
