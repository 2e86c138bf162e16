// onnx_nn.c - ONNX operators of neural networks: convolutions, windows, normalisations, losses, resizing,
// random numbers.
//
// Idea: ONNX gives these one operator with many conveniences (automatic padding, optional biases, statistics
// that may be of the batch); here each is resolved into the plain row, so that no later stage knows them.
#include "front/onnx.h"
#include <math.h>

// ---- windows -------------------------------------------------------------------------------------------
typedef struct {
  u32 n; // spatial dimensions
  i64 window[DIMS_MAX], stride[DIMS_MAX], dilation[DIMS_MAX],
      pad[2 * DIMS_MAX]; // pads: all before, then all after
  bool ceil;
} windows;

static bool ints_exact(node *n, const char *name, i64 *v, u32 count, i64 absent) {
  const i64 *given;
  u32 got = at_ints(n, name, &given);
  for (u32 k = 0; k < count; k++) {
    v[k] = got ? (k < got ? given[k] : 0) : absent;
    if (v[k] < -INT32_MAX || v[k] > INT32_MAX) return wrong(n, "%s: %lld", name, (long long)v[k]);
  }
  return !got || got == count || wrong(n, "%s has %u entries, %u are needed", name, got, count);
}

// Attributes of a window over x[n,c,space]; `window` given by the caller or the attribute kernel_shape.
static bool windows_of(node *n, const shape *x, const i64 *window, windows *w) {
  *w = (windows){.n = x->nd - 2, .ceil = at_i(n, "ceil_mode", 0)};
  if (x->nd < 3) return wrong(n, "an input of %u dimensions has no space", x->nd);
  const i64 *given;
  u32 got = at_ints(n, "kernel_shape", &given);
  if (!window && got != w->n) return wrong(n, "kernel_shape has %u entries, %u are needed", got, w->n);
  memcpy(w->window, window ? window : given, w->n * sizeof *w->window);
  if (window && got && (got != w->n || memcmp(given, window, got * sizeof *given)))
    return wrong(n, "kernel_shape is not the weight's");
  if (!ints_exact(n, "strides", w->stride, w->n, 1) || !ints_exact(n, "dilations", w->dilation, w->n, 1) ||
      !ints_exact(n, "pads", w->pad, 2 * w->n, 0))
    return false;
  const char *mode = at_s(n, "auto_pad", "NOTSET");
  bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
  if (strcmp(mode, "VALID") == 0) memset(w->pad, 0, sizeof w->pad);
  for (u32 d = 0; d < w->n; d++) {
    i64 least = MIN(MIN(w->window[d], w->stride[d]), w->dilation[d]);
    i64 most = MAX(MAX(w->window[d], w->stride[d]), w->dilation[d]);
    if (least < 1 || most > INT32_MAX)
      return wrong(n, "window, stride or dilation of %lld", (long long)(least < 1 ? least : most));
    if (x->dim[d + 2] > INT32_MAX) return wrong(n, "%lld elements of space", (long long)x->dim[d + 2]);
    if (!upper && !lower) continue;
    i64 in = x->dim[d + 2], out = ceil_div(in, w->stride[d]);
    i64 all = MAX((out - 1) * w->stride[d] + (w->window[d] - 1) * w->dilation[d] + 1 - in, 0);
    w->pad[d] = upper ? all / 2 : all - all / 2;
    w->pad[w->n + d] = all - w->pad[d];
  }
  return true;
}

static u32 windows_attrs(const windows *w, attr *at) {
  at[0] = attr_v(A_strides, w->stride, w->n);
  at[1] = attr_v(A_dilations, w->dilation, w->n);
  at[2] = attr_v(A_pads, w->pad, 2 * w->n);
  return 3;
}

// x + bias along dimension 1.
mixed add_bias(node *n, mixed x, mixed bias) {
  if (!bias || !x) return x;
  shape s = *shape_of(n, bias);
  for (u32 d = 1; d + 1 < shape_of(n, x)->nd; d++) s.dim[d] = 1;
  return op2(n, OP_add, x, to_shape(n, bias, s.dim, shape_of(n, x)->nd - 1));
}

// ---- convolutions --------------------------------------------------------------------------------------
mixed conv_of(node *n, mixed x, mixed w) {
  windows k;
  attr at[4];
  if (!x || !w) return wrong(n, "two inputs are needed");
  if (shape_of(n, w)->nd != shape_of(n, x)->nd || shape_of(n, w)->nd < 3)
    return wrong(n, "the weight has %u dimensions, the input %u", shape_of(n, w)->nd, shape_of(n, x)->nd);
  shape sw = *shape_of(n, w);
  if (!windows_of(n, shape_of(n, x), sw.dim + 2, &k)) return 0;
  u32 nat = windows_attrs(&k, at);
  at[nat++] = attr_i(A_group, at_i(n, "group", 1));
  return opn(n, OP_conv, (mixed[]){x, w}, 2, at, nat);
}

bool map_conv(node *n) {
  is_weight(n, 1, ROLE_WEIGHT);
  is_weight(n, 2, ROLE_WEIGHT);
  mixed y = conv_of(n, in_of(n, 0), in_of(n, 1));
  return y && set(n, 0, add_bias(n, y, in_of(n, 2)));
}

// The extent that windows at `count` places need, with `extra` elements behind. False: told, it is not
// countable.
static bool window_reach(node *n, const windows *k, u32 d, i64 count, i64 extra, i64 *out) {
  double most = (double)k->stride[d] * (double)(count - 1) + (double)k->dilation[d] * (double)k->window[d];
  if (!(most < 0x1p60)) return wrong(n, "%.3g elements of space", most);
  *out = k->stride[d] * (count - 1) + (k->window[d] - 1) * k->dilation[d] + 1 + extra;
  return true;
}

// Channels of the result: groups of w[c, f/group, window].
static bool transposed_channels(node *n, const shape *x, const shape *w, i64 groups, i64 *out) {
  if (groups < 1 || w->dim[0] % groups)
    return wrong(n, "%lld channels do not divide into %lld groups", (long long)w->dim[0], (long long)groups);
  if (x->dim[1] != w->dim[0])
    return wrong(n, "the input has %lld channels, the weight is for %lld", (long long)x->dim[1],
                 (long long)w->dim[0]);
  return mul_i64(w->dim[1], groups, out) || wrong(n, "group is %lld", (long long)groups);
}

// The transposed convolution is the gradient of a convolution whose output its input is.
bool map_conv_transpose(node *n) {
  mixed x = in_of(n, 0), w = in_of(n, 1);
  if (!x || !w) return wrong(n, "two inputs are needed");
  is_weight(n, 1, ROLE_WEIGHT);
  is_weight(n, 2, ROLE_WEIGHT);
  shape sx = *shape_of(n, x), sw = *shape_of(n, w), y = sx;
  windows k;
  i64 extra[DIMS_MAX], groups = at_i(n, "group", 1);
  const i64 *want;
  u32 nwant = at_ints(n, "output_shape", &want);
  if (sw.nd != sx.nd || !windows_of(n, &sx, sw.dim + 2, &k)) return false;
  if (!ints_exact(n, "output_padding", extra, k.n, 0)) return false;
  if (nwant && nwant != k.n && nwant != sx.nd) return wrong(n, "output_shape has %u entries", nwant);
  bool same = strncmp(at_s(n, "auto_pad", "NOTSET"), "SAME", 4) == 0;
  bool upper = strcmp(at_s(n, "auto_pad", "NOTSET"), "SAME_UPPER") == 0;
  if (!transposed_channels(n, &sx, &sw, groups, &y.dim[1])) return false;
  for (u32 d = 0; d < k.n; d++) {
    i64 full = 0;
    if (!window_reach(n, &k, d, sx.dim[d + 2], extra[d], &full)) return false;
    if (nwant || same) { // the extent is given: padding follows
      y.dim[d + 2] = nwant ? want[d + nwant - k.n] : sx.dim[d + 2] * k.stride[d];
      if (y.dim[d + 2] < 1) return wrong(n, "output_shape: %lld", (long long)y.dim[d + 2]);
      i64 all = MAX(full - y.dim[d + 2], 0);
      k.pad[d] = upper ? all / 2 : all - all / 2;
      k.pad[k.n + d] = all - k.pad[d];
    } else {
      y.dim[d + 2] = full - k.pad[d] - k.pad[k.n + d];
    }
  }
  attr at[5];
  u32 nat = windows_attrs(&k, at);
  at[nat++] = attr_i(A_group, groups);
  at[nat++] = attr_v(A_shape, y.dim, y.nd);
  mixed r = opn(n, OP_conv_dx, (mixed[]){x, w}, 2, at, nat);
  return r && set(n, 0, add_bias(n, r, in_of(n, 2)));
}

// ---- pools ---------------------------------------------------------------------------------------------
static u32 pool_attrs(const windows *w, attr *at) {
  u32 nat = windows_attrs(w, at);
  at[nat++] = attr_v(A_window, w->window, w->n);
  at[nat++] = attr_i(A_ceil, w->ceil);
  return nat;
}

bool map_max_pool(node *n) {
  mixed x = in_of(n, 0);
  windows w;
  attr at[6];
  if (!x || !windows_of(n, shape_of(n, x), NULL, &w)) return false;
  u32 nat = pool_attrs(&w, at);
  if (!set(n, 0, opn(n, OP_maxpool, &x, 1, at, nat))) return false;
  if (n->nout < 2 || !n->n->out.v[1].i) return true;
  at[nat++] = attr_s(A_mode, sym_of(n->x->b.p->c, at_i(n, "storage_order", 0) ? "column" : "row"));
  return set(n, 1, opn(n, OP_maxpool_arg, &x, 1, at, nat));
}

bool map_average_pool(node *n) {
  mixed x = in_of(n, 0);
  windows w;
  attr at[6];
  if (!x || !windows_of(n, shape_of(n, x), NULL, &w)) return false;
  u32 nat = pool_attrs(&w, at);
  at[nat++] = attr_i(A_include_pad, at_i(n, "count_include_pad", 0));
  return set(n, 0, opn(n, OP_avgpool, &x, 1, at, nat));
}

// Elements back at the flat places that a pool took them from. The places count in the smallest tensor that
// the pool could have had; a larger one that the model asks for is that one with zeros behind it.
bool map_max_unpool(node *n) {
  mixed x = in_of(n, 0), at = in_of(n, 1);
  windows w;
  if (!x || !at || !windows_of(n, shape_of(n, x), NULL, &w))
    return wrong(n, "elements and places are needed");
  shape s = *shape_of(n, x);
  i64 from = shape_elems(&s), want[DIMS_MAX], pads[2 * DIMS_MAX] = {0}, into = s.dim[0] * s.dim[1];
  for (u32 d = 0; d < w.n; d++) {
    if (!window_reach(n, &w, d, s.dim[d + 2], 0, &s.dim[d + 2])) return false;
    s.dim[d + 2] -= w.pad[d] + w.pad[w.n + d];
    if (!mul_i64(into, s.dim[d + 2], &into))
      return wrong(n, "%lld elements of space", (long long)s.dim[d + 2]);
  }
  i64 count = in_of(n, 2) ? ints_in(n, 2, want, DIMS_MAX) : 0;
  if (count < 0) return false;
  if (count && count != s.nd) return wrong(n, "%lld extents for %u dimensions", (long long)count, s.nd);
  for (i64 d = 0; d < count; d++)
    if (want[d] < 0) return wrong(n, "an extent of %lld", (long long)want[d]);
  attr zero[] = {attr_t(A_dtype, s.t), attr_v(A_shape, &into, 1), attr_f(A_value, 0)},
       axis = attr_i(A_axis, 0);
  mixed y = opn(n, OP_full, NULL, 0, zero, 3);
  y = opn(n, OP_put, (mixed[]){y, to_shape(n, at, &from, 1), to_shape(n, x, &from, 1)}, 3, &axis, 1);
  y = y ? to_shape(n, y, s.dim, s.nd) : 0;
  for (i64 d = 0; d < count; d++) pads[s.nd + d] = want[d] - s.dim[d];
  return set(n, 0, count ? op_at(n, OP_pad, y, attr_v(A_pads, pads, 2 * s.nd)) : y);
}

// (sum |x|^p)^(1/p) is the mean, padding counted, times the window's size.
bool map_lp_pool(node *n) {
  mixed x = in_of(n, 0);
  windows w;
  attr at[6];
  i64 p = at_i(n, "p", 2);
  if (!x || !windows_of(n, shape_of(n, x), NULL, &w)) return false;
  if (p != 1 && p != 2) return refuse(n, "with p = %lld", (long long)p);
  if (w.ceil) return refuse(n, "with ceil_mode");
  u32 nat = pool_attrs(&w, at);
  at[nat++] = attr_i(A_include_pad, 1);
  double size = 1;
  for (u32 d = 0; d < w.n; d++) size *= (double)w.window[d];
  x = p == 1 ? op1(n, OP_abs, x) : op2(n, OP_mul, x, x);
  x = op_at(n, OP_scale, opn(n, OP_avgpool, &x, 1, at, nat), attr_f(A_alpha, size));
  return set(n, 0, p == 1 ? x : op1(n, OP_sqrt, x));
}

bool map_global_pool(node *n) {
  mixed x = in_of(n, 0);
  i64 axes[DIMS_MAX];
  u32 nd = x ? shape_of(n, x)->nd : 0;
  if (nd < 2) return wrong(n, "an input of %u dimensions has no space", nd);
  for (u32 d = 2; d < nd; d++) axes[d - 2] = d;
  return set(n, 0, op_at(n, (opcode)n->row->arg, x, attr_v(A_axes, axes, nd - 2)));
}

// ---- normalisations ------------------------------------------------------------------------------------
// old * momentum + new * (1 - momentum); var of the batch is the biased one.
static mixed running(node *n, mixed old, mixed now, double momentum) {
  mixed a = op_at(n, OP_scale, old, attr_f(A_alpha, momentum));
  return op2(n, OP_add, a,
             to_type(n, op_at(n, OP_scale, now, attr_f(A_alpha, 1 - momentum)), shape_of(n, old)->t));
}

bool map_batch_norm(node *n) {
  mixed x = in_of(n, 0), r;
  attr eps = attr_f(A_eps, at_f(n, "epsilon", 1e-5));
  if (n->opset < 7 && !at_i(n, "is_test", 0)) return refuse(n, "in training mode before opset 7");
  for (u32 k = 0; k < 5; k++)
    if (!in_of(n, k)) return wrong(n, "five inputs are needed");
  if (n->opset < 9 && at_i(n, "spatial", 1) == 0) return refuse(n, "with spatial=0");
  for (u32 k = 1; k < 3; k++) is_weight(n, k, ROLE_WEIGHT);
  for (u32 k = 3; k < 5; k++) is_weight(n, k, ROLE_CONST);
  u32 named = 0; // before opset 14 more outputs than one mean training
  for (u32 k = 0; k < n->nout; k++) named += n->n->out.v[k].i != 0;
  if (n->opset < 14 && named > 1) return refuse(n, "in training mode before opset 14");
  if (!at_i(n, "training_mode", 0)) return set(n, 0, opn(n, OP_batchnorm, n->in, 5, &eps, 1));
  r = opn(n, OP_batchnorm_train, n->in, 3, &eps, 1);
  if (!set(n, 0, r) || !x) return false;
  double momentum = at_f(n, "momentum", 0.9);
  return set(n, 1, running(n, in_of(n, 3), r + 1, momentum)) &&
         set(n, 2, running(n, in_of(n, 4), r + 2, momentum));
}

// Exporters of training graphs wrote it long before opset 17 had it, in the same form.
bool map_layer_norm(node *n) {
  mixed x = in_of(n, 0), g = in_of(n, 1), b = in_of(n, 2);
  u32 axis;
  if (!x || !g || !axis_of(n, at_i(n, "axis", -1), shape_of(n, x)->nd, &axis)) return false;
  is_weight(n, 1, ROLE_WEIGHT);
  is_weight(n, 2, ROLE_WEIGHT);
  const shape s = *shape_of(n, x);
  shape tail = {.t = s.t, .nd = s.nd - axis};
  memcpy(tail.dim, s.dim + axis, tail.nd * sizeof *s.dim);
  if (!b) {
    attr zero[] = {attr_t(A_dtype, s.t), attr_v(A_shape, tail.dim, tail.nd), attr_f(A_value, 0)};
    b = opn(n, OP_full, NULL, 0, zero, 3);
  }
  if (!shape_same(shape_of(n, g), &tail)) return refuse(n, "with a scale that broadcasts");
  double eps = at_f(n, "epsilon", 1e-5);
  attr at[] = {attr_i(A_axis, axis), attr_f(A_eps, eps)};
  if (!set(n, 0, opn(n, OP_layernorm, (mixed[]){x, g, b}, 3, at, 2))) return false;
  if (n->nout < 2) return true;
  i64 axes[DIMS_MAX];
  for (u32 d = axis; d < s.nd; d++) axes[d - axis] = d;
  attr over = attr_v(A_axes, axes, tail.nd);
  if (dtype_bytes(s.t) < 4 && at_i(n, "stash_type", 1) == 1) x = to_type(n, x, DT_F32);
  mixed mean = op_at(n, OP_reduce_mean, x, over), diff = op2(n, OP_sub, x, mean);
  mixed var = op_at(n, OP_reduce_mean, op2(n, OP_mul, diff, diff), over);
  mixed inv = op1(n, OP_rsqrt, op_at(n, OP_offset, var, attr_f(A_alpha, eps)));
  return set(n, 1, mean) && set(n, 2, inv);
}

bool map_instance_norm(node *n) {
  attr at[] = {attr_i(A_groups, 0), attr_f(A_eps, at_f(n, "epsilon", 1e-5))};
  is_weight(n, 1, ROLE_WEIGHT);
  is_weight(n, 2, ROLE_WEIGHT);
  return n->nin == 3 && set(n, 0, opn(n, OP_groupnorm, n->in, 3, at, 2));
}

bool map_group_norm(node *n) {
  i64 groups = at_i(n, "num_groups", 0);
  mixed x = in_of(n, 0), g = in_of(n, 1), b = in_of(n, 2);
  if (!x || !g || !b) return wrong(n, "three inputs are needed");
  is_weight(n, 1, ROLE_WEIGHT);
  is_weight(n, 2, ROLE_WEIGHT);
  if (n->opset < 21) { // one scale per group, not per channel
    if (groups < 1 || shape_of(n, x)->dim[1] % groups) return wrong(n, "%lld groups", (long long)groups);
    i64 each = shape_of(n, x)->dim[1] / groups, wide[] = {groups, each}, flat[] = {groups * each};
    mixed *side[] = {&g, &b};
    for (u32 k = 0; k < 2; k++) {
      mixed column = to_shape(n, *side[k], (const i64[]){groups, 1}, 2);
      *side[k] = to_shape(n, op_at(n, OP_expand, column, attr_v(A_shape, wide, 2)), flat, 1);
    }
  }
  attr at[] = {attr_i(A_groups, groups), attr_f(A_eps, at_f(n, "epsilon", 1e-5))};
  return set(n, 0, opn(n, OP_groupnorm, (mixed[]){x, g, b}, 3, at, 2));
}

bool map_mvn(node *n) {
  const i64 *axes;
  static const i64 usual[] = {0, 2, 3};
  u32 count = at_ints(n, "axes", &axes);
  attr over = attr_v(A_axes, count ? axes : usual, count ? count : 3);
  mixed x = in_of(n, 0), diff = op2(n, OP_sub, x, op_at(n, OP_reduce_mean, x, over));
  mixed var = op_at(n, OP_reduce_mean, op2(n, OP_mul, diff, diff), over);
  mixed dev = op_at(n, OP_offset, op1(n, OP_sqrt, var), attr_f(A_alpha, 1e-9));
  return set(n, 0, op2(n, OP_div, diff, dev));
}

bool map_lrn(node *n) {
  attr at[] = {attr_i(A_size, at_i(n, "size", 1)), attr_f(A_alpha, at_f(n, "alpha", 1e-4)),
               attr_f(A_beta, at_f(n, "beta", 0.75)), attr_f(A_value, at_f(n, "bias", 1))};
  return set(n, 0, opn(n, OP_lrn, n->in, 1, at, 4));
}

bool map_dropout(node *n) {
  mixed x = in_of(n, 0);
  double ratio = at_f(n, "ratio", 0.5), training = 0;
  if (n->opset < 7 && !at_i(n, "is_test", 0)) return refuse(n, "in training mode before opset 7");
  if (n->opset >= 12) {
    ratio = 0.5;
    for (u32 k = 1; k < 3; k++) {
      if (!in_of(n, k)) continue;
      if (!known_in(n, k)) return false;
      if (shape_elems(shape_of(n, in_of(n, k))) != 1) return wrong(n, "input %u is not one value", k + 1);
      mix_read_f64(n->x, in_of(n, k), k == 1 ? &ratio : &training);
    }
  }
  if (training != 0 && ratio != 0) {
    attr at[] = {attr_f(A_ratio, ratio), attr_i(A_seed, at_i(n, "seed", 0))};
    mixed r = opn(n, OP_dropout, &x, 1, at, 2);
    return set(n, 0, r) && set(n, 1, r + 1);
  }
  if (n->nout > 1 && x) { // the mask keeps all
    const shape *s = shape_of(n, x);
    attr at[] = {attr_t(A_dtype, n->opset < 10 ? s->t : DT_BOOL), attr_v(A_shape, s->dim, s->nd),
                 attr_f(A_value, 1)};
    set(n, 1, opn(n, OP_full, NULL, 0, at, 3));
  }
  return set(n, 0, x);
}

// ---- losses --------------------------------------------------------------------------------------------
// Scores with classes in dimension 1, as rows of classes.
mixed classes_last(node *n, mixed x) {
  u32 nd = x ? shape_of(n, x)->nd : 0;
  i64 perm[DIMS_MAX];
  if (nd < 2) return wrong(n, "scores have %u dimensions", nd);
  for (u32 d = 0; d < nd; d++) perm[d] = d == 0 ? 0 : d + 1 == nd ? 1 : d + 1;
  return to_perm(n, x, perm, nd);
}

u32 loss_attrs(node *n, u32 ignored, attr *at) {
  u32 nat = 0;
  i64 v = at_i(n, "ignore_index", 0);
  bool given = ignored && in_of(n, ignored);
  at[nat++] = attr_s(A_reduce, sym_of(n->x->b.p->c, at_s(n, "reduction", "mean")));
  if (given && ints_in(n, ignored, &v, 1) != 1) return 0;
  if (given || at_find(n, "ignore_index")) at[nat++] = attr_i(A_ignore, v);
  return nat;
}

bool map_nll(node *n) {
  attr at[2];
  u32 nat = loss_attrs(n, 0, at);
  is_weight(n, 1, ROLE_LABEL);
  is_weight(n, 2, ROLE_CONST); // how much the classes count is not trained
  return n->nin >= 2 && set(n, 0, opn(n, OP_nll, n->in, n->nin, at, nat));
}

bool map_xent(node *n) { // a fourth input, the ignored label, only training exports have
  attr at[2];
  u32 nat = loss_attrs(n, 3, at);
  if (!nat) return false;
  mixed x = in_of(n, 0), label = in_of(n, 1), weight = in_of(n, 2);
  if (!x || !label) return wrong(n, "two inputs are needed");
  is_weight(n, 1, ROLE_LABEL);
  is_weight(n, 2, ROLE_CONST);
  if (n->nout > 1 || weight) {
    mixed y = op_at(n, OP_log_softmax, x, attr_i(A_axis, 1));
    if (n->nout > 1) set(n, 1, y);
    if (weight) return set(n, 0, opn(n, OP_nll, (mixed[]){y, label, weight}, 3, at, nat));
  }
  x = classes_last(n, x);
  return x && set(n, 0, opn(n, OP_cross_entropy, (mixed[]){x, label}, 2, at, nat));
}

// ---- resize --------------------------------------------------------------------------------------------
// Operand k's numbers or the attribute's, spread over all dimensions of x by `axes`. 0: there are none; -1:
// told.
static int numbers(node *n, u32 k, u32 nd, double *v, u32 per, double absent) {
  const i64 *axes;
  u32 nax = at_ints(n, "axes", &axes);
  mixed x = in_of(n, k);
  i64 count = x ? shape_elems(shape_of(n, x)) : 0, width = nax ? nax : nd;
  if (!count) return 0;
  if (count != width * per) return wrong(n, "input %u has %lld entries", k + 1, (long long)count) - 1;
  double *given = NEWN(n->x->a, double, count);
  if (!floats_in(n, k, given)) return -1;
  for (u32 d = 0; d < nd * per; d++) v[d] = d < nd ? absent : 1;
  for (u32 i = 0; i < width * per; i++) {
    u32 d = i % (u32)width;
    if (nax && !axis_of(n, axes[d], nd, &d)) return -1;
    v[d + i / (u32)width * nd] = given[i];
  }
  return 1;
}

// Upsample (7: attribute, 9: operand 1), Resize 10 (operand 1), Resize 11 on (roi, scales, extents).
static int resize_scales(node *n, u32 nd, double *scale) {
  const onnx_attr *a = at_find(n, "scales");
  if (!a) return numbers(n, n->opset < 11 ? 1 : 2, nd, scale, 1, 1);
  if (a->floats.n != nd) return wrong(n, "scales has %u entries", a->floats.n) - 1;
  for (u32 d = 0; d < nd; d++) scale[d] = a->floats.v[d];
  return 1;
}

static bool whole_extent(node *n, double x, i64 *dim) {
  if (!(x >= 0 && x < 1e12)) return wrong(n, "an extent of %g", x);
  *dim = (i64)floor(x);
  return true;
}

static bool resize_extents(node *n, const shape *s, double *scale, i64 *dim, bool *ratio) {
  int have = resize_scales(n, s->nd, scale);
  *ratio = have == 1;
  memcpy(dim, s->dim, s->nd * sizeof *dim);
  for (u32 d = 0; d < s->nd && have == 1; d++)
    if (!whole_extent(n, (double)s->dim[d] * scale[d], &dim[d])) return false;
  if (have) return have > 0;
  double want[DIMS_MAX];
  have = numbers(n, 3, s->nd, want, 1, -1);
  if (have <= 0) return have == 0 && wrong(n, "neither scales nor extents");
  const char *policy = at_s(n, "keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (u32 d = 0; d < s->nd; d++) {
    double r = want[d] / (double)s->dim[d];
    if (want[d] >= 0 && (common == 0 || (strcmp(policy, "not_larger") == 0 ? r < common : r > common)))
      common = r;
  }
  bool keep = strcmp(policy, "stretch") != 0;
  for (u32 d = 0; d < s->nd; d++) {
    if (want[d] == -1) continue; // not among the axes
    if (!whole_extent(n, keep ? common * (double)s->dim[d] + 0.5 : want[d], &dim[d])) return false;
  }
  return true;
}

bool map_resize(node *n) {
  mixed x = in_of(n, 0);
  if (!x) return wrong(n, "input 1 is missing");
  const shape s = *shape_of(n, x);
  ctx *c = n->x->b.p->c;
  double scale[DIMS_MAX], roi[2 * DIMS_MAX];
  i64 dim[DIMS_MAX];
  bool ratio;
  if (!resize_extents(n, &s, scale, dim, &ratio)) return false;
  const char *mode = at_s(n, "mode", "nearest"),
             *coord = at_s(n, "coordinate_transformation_mode", "half_pixel");
  const char *nearest = at_s(n, "nearest_mode", "round_prefer_floor");
  if (n->opset < 11) coord = "asymmetric", nearest = "floor";
  if (strcmp(mode, "bilinear") == 0) mode = "linear";
  for (u32 d = 0; d < s.nd && ratio && strcmp(coord, "align_corners") == 0; d++)
    if ((double)s.dim[d] * scale[d] != (double)dim[d])
      return refuse(
          n, "with align_corners and scales that give no whole extent, where versions of ONNX differ,");
  attr at[10] = {attr_v(A_shape, dim, s.nd),
                 attr_s(A_mode, sym_of(c, mode)),
                 attr_s(A_coord, sym_of(c, coord)),
                 attr_s(A_nearest, sym_of(c, nearest)),
                 attr_f(A_alpha, at_f(n, "cubic_coeff_a", -0.75)),
                 attr_i(A_exclude, at_i(n, "exclude_outside", 0)),
                 attr_i(A_antialias, at_i(n, "antialias", 0))};
  u32 nat = 7;
  if (strcmp(coord, "tf_crop_and_resize") == 0) {
    int have = numbers(n, 1, s.nd, roi, 2, 0);
    if (have <= 0) return have == 0 && wrong(n, "a region is needed");
    at[nat++] = attr_fs(A_roi, roi, 2 * s.nd);
    at[nat++] = attr_f(A_value, at_f(n, "extrapolation_value", 0));
  }
  if (ratio) at[nat++] = attr_fs(A_scales, scale, s.nd);
  return set(n, 0, opn(n, OP_resize, &x, 1, at, nat));
}

// ---- numbers from nowhere ------------------------------------------------------------------------------
// The model's seed, whatever bits it has, and a number of the node's own.
static i64 random_key(node *n) {
  float seed = (float)at_f(n, "seed", 0);
  u32 bits;
  memcpy(&bits, &seed, sizeof bits);
  return (i64)bits << 24 | (n->x->v.n & 0xffffff);
}

bool map_random(node *n) {
  bool uniform = n->row->arg;
  const i64 *dim;
  u32 nd = at_ints(n, "shape", &dim);
  mixed like = in_of(n, 0);
  dtype t = at_find(n, "dtype") ? onnx_dtype(at_i(n, "dtype", 1)) : like ? shape_of(n, like)->t : DT_F32;
  const shape s = like ? *shape_of(n, like) : (shape){0};
  double lo = at_f(n, uniform ? "low" : "mean", 0), hi = at_f(n, uniform ? "high" : "scale", 1);
  attr at[] = {attr_t(A_dtype, t),
               like ? attr_v(A_shape, s.dim, s.nd) : attr_v(A_shape, dim, nd),
               attr_i(A_seed, random_key(n)),
               attr_f(A_alpha, lo),
               attr_f(A_beta, hi),
               attr_s(A_mode, sym_of(n->x->b.p->c, uniform ? "uniform" : "normal"))};
  return set(n, 0, opn(n, OP_random, NULL, 0, at, 6));
}

bool map_bernoulli(node *n) {
  mixed x = in_of(n, 0);
  if (!x) return wrong(n, "input 1 is missing");
  const shape s = *shape_of(n, x);
  dtype t = at_find(n, "dtype") ? onnx_dtype(at_i(n, "dtype", 1)) : s.t;
  if (!t) return refuse(n, "to this element type");
  attr at[] = {attr_t(A_dtype, s.t), attr_v(A_shape, s.dim, s.nd), attr_i(A_seed, random_key(n))};
  return set(n, 0, to_type(n, op2(n, OP_lt, opn(n, OP_random, NULL, 0, at, 3), x), t));
}

// a0 - a1 cos(2 pi k / N) + a2 cos(4 pi k / N), periodic or symmetric.
bool map_window(node *n) {
  static const double coef[3][3] = {{0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};
  const double *a = coef[n->row->arg];
  i64 size;
  if (ints_in(n, 0, &size, 1) != 1) return false;
  dtype t = onnx_dtype(at_i(n, "output_datatype", 1));
  double period = (double)(at_i(n, "periodic", 1) ? size : size - 1), turn = 2 * acos(-1.0) / period;
  attr at[] = {attr_t(A_dtype, DT_F64), attr_v(A_shape, &size, 1), attr_f(A_alpha, turn)};
  mixed phase = opn(n, OP_iota, NULL, 0, at, 3);
  mixed y = op_at(n, OP_scale, op1(n, OP_cos, phase), attr_f(A_alpha, -a[1]));
  if (a[2] != 0) {
    mixed twice = op1(n, OP_cos, op_at(n, OP_scale, phase, attr_f(A_alpha, 2)));
    y = op2(n, OP_add, y, op_at(n, OP_scale, twice, attr_f(A_alpha, a[2])));
  }
  return set(n, 0, to_type(n, op_at(n, OP_offset, y, attr_f(A_alpha, a[0])), t));
}
