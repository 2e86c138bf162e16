// onnx_quant.c - quantised ONNX operators, written out: q = saturate(round(x / scale) + zero), x = (q - zero)
// scale.
//
// Idea: products of quantised tensors are integer products of the differences to the zero points, exact in
// i32, and one rounding at the end.
#include "front/onnx.h"

// A scale or zero point per element of dimension `axis`, or one for all, brought to broadcast against x.
static mixed spread(node *n, mixed s, mixed x, i64 axis) {
  u32 at, nd = shape_of(n, x)->nd;
  i64 dim[DIMS_MAX] = {0};
  if (!s || shape_of(n, s)->nd == 0) return s;
  i64 count = shape_of(n, s)->dim[0];
  if (shape_of(n, s)->nd > 1) return refuse(n, "with scales in blocks");
  if (count == 1) return to_shape(n, s, dim, 0);
  if (!axis_of(n, axis, nd, &at)) return 0;
  for (u32 d = 0; d < nd; d++) dim[d] = d == at ? count : 1;
  return to_shape(n, s, dim, nd);
}

static mixed clamp(node *n, mixed x, double lo, double hi) {
  return op2(n, OP_min, op2(n, OP_max, x, full_like(n, x, lo)), full_like(n, x, hi));
}

// x, already divided by its scale, to the integer type t.
static mixed quantise(node *n, mixed x, mixed zero, dtype t) {
  double top = dtype_bytes(t) == 1 ? 256 : 65536, low = dtype_kind_of(t) == DK_INT ? -top / 2 : 0;
  if (dtype_bytes(t) > 2) return refuse(n, "to %s", dtype_name(t));
  x = op1(n, OP_round, x);
  if (zero && x) x = op2(n, OP_add, x, to_type(n, zero, shape_of(n, x)->t));
  return to_type(n, clamp(n, x, low, low + top - 1), t);
}

// Elements minus their zero point, as i32.
static mixed centred(node *n, mixed x, mixed zero, i64 axis) {
  if (!x) return 0;
  mixed wide = to_type(n, x, DT_I32);
  return zero ? op2(n, OP_sub, wide, to_type(n, spread(n, zero, x, axis), DT_I32)) : wide;
}

bool map_quantize(node *n) {
  mixed x = in_of(n, 0), s = in_of(n, 1), zero = in_of(n, 2);
  i64 axis = at_i(n, "axis", 1);
  if (!x || !s) return wrong(n, "two inputs are needed");
  if (at_i(n, "block_size", 0)) return refuse(n, "with scales in blocks");
  dtype t = zero                         ? shape_of(n, zero)->t
            : at_find(n, "output_dtype") ? onnx_dtype(at_i(n, "output_dtype", 2))
                                         : DT_U8;
  if (!t || dtype_kind_of(t) == DK_FLOAT) return refuse(n, "to this element type");
  x = to_type(n, x, shape_of(n, s)->t);
  x = op2(n, OP_div, x, spread(n, s, x, axis));
  return x && set(n, 0, quantise(n, x, zero ? spread(n, zero, x, axis) : 0, t));
}

bool map_dequantize(node *n) {
  mixed x = in_of(n, 0), s = in_of(n, 1);
  i64 axis = at_i(n, "axis", 1);
  if (!x || !s) return wrong(n, "two inputs are needed");
  if (at_i(n, "block_size", 0)) return refuse(n, "with scales in blocks");
  mixed d = to_type(n, centred(n, x, in_of(n, 2), axis), shape_of(n, s)->t);
  return set(n, 0, op2(n, OP_mul, d, spread(n, s, x, axis)));
}

bool map_dynamic_quantize(node *n) {
  mixed x = in_of(n, 0), zero = full_like(n, x, 0);
  attr whole = attr_i(A_keepdims, 0);
  mixed lo = op2(n, OP_min, op_at(n, OP_reduce_min, x, whole), zero);
  mixed hi = op2(n, OP_max, op_at(n, OP_reduce_max, x, whole), zero);
  mixed scale = op2(n, OP_div, op2(n, OP_sub, hi, lo), full_like(n, x, 255));
  mixed point = clamp(n, op2(n, OP_div, op1(n, OP_neg, lo), scale), 0, 255);
  point = to_type(n, op1(n, OP_round, point), DT_U8);
  return set(n, 0, quantise(n, op2(n, OP_div, x, scale), point, DT_U8)) && set(n, 1, scale) &&
         set(n, 2, point);
}

bool map_matmul_integer(node *n) {
  mixed a = in_of(n, 0), b = in_of(n, 1);
  return set(n, 0, op2(n, OP_matmul, centred(n, a, in_of(n, 2), -2), centred(n, b, in_of(n, 3), -1)));
}

bool map_conv_integer(node *n) {
  mixed x = centred(n, in_of(n, 0), in_of(n, 2), 1), w = centred(n, in_of(n, 1), in_of(n, 3), 0);
  return set(n, 0, conv_of(n, x, w));
}

// Operands a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero; y is their integer product, b's scale
// lies along dimension `axis` of it.
static bool requantise(node *n, mixed y, i64 axis) {
  mixed sa = in_of(n, 1), sb = in_of(n, 4), sy = in_of(n, 6), zy = in_of(n, 7);
  if (!y || !sa || !sb || !sy || !zy) return false;
  mixed ratio =
      op2(n, OP_div, op2(n, OP_mul, spread(n, sa, y, -2), spread(n, sb, y, axis)), spread(n, sy, y, axis));
  mixed x = op2(n, OP_mul, to_type(n, y, shape_of(n, sa)->t), ratio);
  return set(n, 0, quantise(n, x, spread(n, zy, y, axis), shape_of(n, zy)->t));
}

bool map_qlinear_matmul(node *n) {
  mixed a = centred(n, in_of(n, 0), in_of(n, 2), -2), b = centred(n, in_of(n, 3), in_of(n, 5), -1);
  return requantise(n, op2(n, OP_matmul, a, b), -1);
}

bool map_qlinear_conv(node *n) {
  mixed x = centred(n, in_of(n, 0), in_of(n, 2), 1), w = centred(n, in_of(n, 3), in_of(n, 5), 0);
  mixed y = conv_of(n, x, w);
  return y && requantise(n, add_bias(n, y, in_of(n, 8)), 1);
}
