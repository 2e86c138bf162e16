// onnx_form.c - ONNX operators that move elements without arithmetic, and those that make them from extents.
//
// Idea: here meet shapes and values. What ONNX passes as a tensor (extents, axes, starts, repeats, indices)
// must be known by now and becomes an attribute; a chain that computes it from extents has evaluated itself
// on the way.
#include "front/onnx.h"
#include <math.h>
#include <stdlib.h>

// Operand k or, in older opsets, an attribute: its integers. -1: told; 0 may also mean absent.
static i64 ints_or_attr(node *n, u32 k, const char *name, i64 *v, u32 cap) {
  const i64 *a;
  u32 count = at_ints(n, name, &a);
  if (in_of(n, k)) return ints_in(n, k, v, cap);
  if (count > cap) {
    wrong(n, "%s has %u entries", name, count);
    return -1;
  }
  if (count) memcpy(v, a, count * sizeof *v);
  return count;
}

static bool missing(node *n, u32 k) { return !in_of(n, k) && !wrong(n, "input %u is missing", k + 1); }

static mixed fill(node *n, dtype t, const i64 *dim, u32 nd, double v) {
  attr at[] = {attr_t(A_dtype, t), attr_v(A_shape, dim, nd), attr_f(A_value, v)};
  return opn(n, OP_full, NULL, 0, at, 3);
}

// ---- extents -------------------------------------------------------------------------------------------
bool map_reshape(node *n) {
  i64 dim[DIMS_MAX], known = 1, open = -1;
  if (missing(n, 0)) return false;
  mixed x = in_of(n, 0);
  i64 nd = ints_or_attr(n, 1, "shape", dim, DIMS_MAX);
  if (nd < 0) return false;
  bool zero = at_i(n, "allowzero", 0);
  for (i64 d = 0; d < nd; d++) {
    if (dim[d] == 0 && !zero && d < shape_of(n, x)->nd) dim[d] = shape_of(n, x)->dim[d];
    if (dim[d] == -1 && open >= 0) return wrong(n, "two extents are -1");
    if (dim[d] == -1)
      open = d;
    else if (dim[d] < 0 || !mul_i64(known, dim[d], &known))
      return wrong(n, "extent %lld", (long long)dim[d]);
  }
  i64 elems = shape_elems(shape_of(n, x));
  if (open >= 0 && (known == 0 || elems % known))
    return wrong(n, "%lld elements do not divide into %lld", (long long)elems, (long long)known);
  if (open >= 0) dim[open] = elems / known;
  return set(n, 0, to_shape(n, x, dim, (u32)nd));
}

bool map_flatten(node *n) {
  mixed x = in_of(n, 0);
  if (missing(n, 0)) return false;
  const shape *s = shape_of(n, x);
  i64 axis = at_i(n, "axis", 1), dim[2] = {1, 1};
  if (axis < 0) axis += s->nd;
  if (axis < 0 || axis > s->nd) return wrong(n, "axis %lld of %u dimensions", (long long)axis, s->nd);
  for (u32 d = 0; d < s->nd; d++) dim[d >= axis] *= s->dim[d];
  return set(n, 0, to_shape(n, x, dim, 2));
}

// Marks the dimensions of a tensor of rank nd that axes name.
static bool marked(node *n, const i64 *axes, i64 count, u32 nd, bool *mark) {
  for (i64 k = 0; k < count; k++) {
    u32 d;
    if (!axis_of(n, axes[k], nd, &d)) return false;
    if (mark[d]) return wrong(n, "axis %u occurs twice", d);
    mark[d] = true;
  }
  return true;
}

bool map_squeeze(node *n) {
  i64 axes[DIMS_MAX], dim[DIMS_MAX];
  bool mark[DIMS_MAX] = {0};
  if (missing(n, 0)) return false;
  const shape s = *shape_of(n, in_of(n, 0));
  i64 count = ints_or_attr(n, 1, "axes", axes, DIMS_MAX);
  if (count < 0 || !marked(n, axes, count, s.nd, mark)) return false;
  u32 nd = 0;
  for (u32 d = 0; d < s.nd; d++) {
    if (mark[d] && s.dim[d] != 1) return wrong(n, "dimension %u has %lld elements", d, (long long)s.dim[d]);
    if (!(count ? mark[d] : s.dim[d] == 1)) dim[nd++] = s.dim[d];
  }
  return set(n, 0, to_shape(n, in_of(n, 0), dim, nd));
}

bool map_unsqueeze(node *n) {
  i64 axes[DIMS_MAX], dim[DIMS_MAX];
  bool mark[DIMS_MAX] = {0};
  if (missing(n, 0)) return false;
  const shape s = *shape_of(n, in_of(n, 0));
  i64 count = ints_or_attr(n, 1, "axes", axes, DIMS_MAX);
  if (count < 0) return false;
  if (s.nd + count > DIMS_MAX) return refuse(n, "to more than %d dimensions", DIMS_MAX);
  u32 nd = s.nd + (u32)count, from = 0;
  if (!marked(n, axes, count, nd, mark)) return false;
  for (u32 d = 0; d < nd; d++) dim[d] = mark[d] ? 1 : s.dim[from++];
  return set(n, 0, to_shape(n, in_of(n, 0), dim, nd));
}

bool map_transpose(node *n) {
  const i64 *given;
  i64 perm[DIMS_MAX];
  if (missing(n, 0)) return false;
  u32 nd = shape_of(n, in_of(n, 0))->nd, count = at_ints(n, "perm", &given);
  if (count && count != nd) return wrong(n, "perm has %u entries for %u dimensions", count, nd);
  for (u32 d = 0; d < nd; d++) perm[d] = count ? given[d] : nd - 1 - d;
  return set(n, 0, to_perm(n, in_of(n, 0), perm, nd));
}

bool map_expand(node *n) {
  i64 want[DIMS_MAX], dim[DIMS_MAX];
  mixed x = in_of(n, 0);
  if (missing(n, 0)) return false;
  i64 count = ints_in(n, 1, want, DIMS_MAX);
  if (count < 0) return false;
  const shape *s = shape_of(n, x);
  u32 nd = MAX((u32)count, s->nd);
  bool same = nd == s->nd;
  for (u32 d = 0; d < nd; d++) { // aligned at the right; either side may have 1
    i64 a = d + s->nd >= nd ? s->dim[d + s->nd - nd] : 1, b = d + count >= nd ? want[d + count - nd] : 1;
    if (a != b && a != 1 && b != 1)
      return wrong(n, "extents %lld and %lld do not broadcast", (long long)a, (long long)b);
    dim[d] = a == 1 ? b : a;
    same = same && dim[d] == a;
  }
  double v;
  if (same || !x) return set(n, 0, x);
  if (shape_elems(s) == 1 && dtype_kind_of(s->t) == DK_FLOAT && mix_read_f64(n->x, x, &v))
    return set(n, 0, fill(n, s->t, dim, nd, v));
  return set(n, 0, op_at(n, OP_expand, x, attr_v(A_shape, dim, nd)));
}

bool map_shape(node *n) {
  if (missing(n, 0)) return false;
  const shape s = *shape_of(n, in_of(n, 0));
  i64 lo = at_i(n, "start", 0), hi = at_i(n, "end", s.nd);
  lo = MIN(MAX(lo < 0 ? lo + s.nd : lo, 0), s.nd);
  hi = MIN(MAX(hi < 0 ? hi + s.nd : hi, lo), s.nd);
  return set(n, 0, mix_i64s(n->x, s.dim + lo, (u32)(hi - lo)));
}

bool map_size(node *n) {
  return !missing(n, 0) && set(n, 0, mix_full(n->x, DT_I64, (double)shape_elems(shape_of(n, in_of(n, 0)))));
}

// ---- parts ---------------------------------------------------------------------------------------------
bool map_concat(node *n) {
  u32 axis;
  if (missing(n, 0) || !axis_of(n, at_i(n, "axis", 1), shape_of(n, in_of(n, 0))->nd, &axis)) return false;
  attr a = attr_i(A_axis, axis);
  return set(n, 0, n->nin == 1 ? in_of(n, 0) : opn(n, OP_concat, n->in, n->nin, &a, 1));
}

bool map_split(node *n) {
  i64 sizes[OP_RES_MAX];
  u32 axis;
  if (missing(n, 0) || !axis_of(n, at_i(n, "axis", 0), shape_of(n, in_of(n, 0))->nd, &axis)) return false;
  i64 extent = shape_of(n, in_of(n, 0))->dim[axis], count = ints_or_attr(n, 1, "split", sizes, OP_RES_MAX);
  if (count < 0) return false;
  if (!count) {
    count = at_i(n, "num_outputs", n->nout);
    if (count < 1 || count > OP_RES_MAX) return refuse(n, "into %lld parts", (long long)count);
    i64 each = ceil_div(extent, count);
    if (extent % count && n->opset < 18)
      return wrong(n, "%lld elements do not divide into %lld parts", (long long)extent, (long long)count);
    for (i64 k = 0; k < count; k++) sizes[k] = MAX(MIN(each, extent - k * each), 0);
  }
  if (count != n->nout) return wrong(n, "%lld parts for %u outputs", (long long)count, n->nout);
  attr at[] = {attr_i(A_axis, axis), attr_v(A_sizes, sizes, (u32)count)};
  if (count == 1) return set(n, 0, in_of(n, 0));
  mixed r = opn_res(n, OP_split, n->in, 1, at, 2, (u32)count);
  for (u32 k = 0; k < n->nout && r; k++) set(n, k, r + k);
  return r != 0;
}

// Dimensions cut to [lo, hi) in steps, by ONNX's rules: negative counts from the end, what lies outside is
// clamped.
bool map_slice(node *n) {
  i64 lo[DIMS_MAX], hi[DIMS_MAX], axes[DIMS_MAX], step[DIMS_MAX];
  mixed x = in_of(n, 0);
  if (missing(n, 0)) return false;
  const shape s = *shape_of(n, x);
  i64 count = ints_or_attr(n, 1, "starts", lo, DIMS_MAX), nhi = ints_or_attr(n, 2, "ends", hi, DIMS_MAX);
  if (count < 0 || nhi < 0) return false;
  i64 nax = ints_or_attr(n, 3, "axes", axes, DIMS_MAX), nst = in_of(n, 4) ? ints_in(n, 4, step, DIMS_MAX) : 0;
  if (nax < 0 || nst < 0) return false;
  if (nhi != count || (nax && nax != count) || (nst && nst != count))
    return wrong(n, "starts, ends, axes and steps differ in number");
  u32 k = 0;
  bool seen[DIMS_MAX] = {0}, backwards = false;
  for (i64 i = 0; i < count; i++) {
    u32 d;
    if (!axis_of(n, nax ? axes[i] : i, s.nd, &d)) return false;
    if (seen[d]) return wrong(n, "axis %u occurs twice", d);
    seen[d] = true;
    i64 e = s.dim[d], b = lo[i], c = hi[i], st = nst ? step[i] : 1;
    if (st == 0) return wrong(n, "a step of 0");
    st = MIN(MAX(st, -INT32_MAX), INT32_MAX);
    if (b < 0) b = MAX(b + e, st > 0 ? 0 : -1);
    if (c < 0) c = MAX(c + e, -1);
    b = st > 0 ? MIN(b, e) : MIN(b, e - 1);
    c = st > 0 ? MIN(MAX(c, b), e) : MAX(MIN(c, b), -1);
    if (st < 0 && b < 0) b = c = 0, st = 1; // nothing is left
    if (b == 0 && c == e && st == 1) continue;
    lo[k] = b, hi[k] = c, axes[k] = d, step[k++] = st;
    backwards = backwards || st != 1;
  }
  attr at[] = {attr_v(A_starts, lo, k), attr_v(A_ends, hi, k), attr_v(A_axes, axes, k),
               attr_v(A_steps, step, k)};
  return set(n, 0, k ? opn(n, OP_slice, &x, 1, at, backwards ? 4 : 3) : x);
}

bool map_pad(node *n) {
  i64 given[2 * DIMS_MAX] = {0}, axes[DIMS_MAX] = {0}, pads[2 * DIMS_MAX] = {0};
  if (missing(n, 0)) return false;
  mixed x = in_of(n, 0);
  u32 nd = shape_of(n, x)->nd;
  i64 count = n->opset < 11 ? ints_or_attr(n, 99, n->opset < 2 ? "paddings" : "pads", given, 2 * DIMS_MAX)
                            : ints_in(n, 1, given, 2 * DIMS_MAX);
  i64 nax = in_of(n, 3) ? ints_in(n, 3, axes, DIMS_MAX) : nd;
  if (count < 0 || nax < 0) return false;
  if (count != 2 * nax) return wrong(n, "%lld pads for %lld dimensions", (long long)count, (long long)nax);
  for (i64 k = 0; k < nax; k++) {
    u32 d;
    if (!axis_of(n, in_of(n, 3) ? axes[k] : k, nd, &d)) return false;
    pads[d] = given[k], pads[nd + d] = given[nax + k];
  }
  const char *mode = at_s(n, "mode", "constant");
  double v = at_f(n, "value", 0);
  if (n->opset >= 11 && in_of(n, 2)) {
    if (shape_elems(shape_of(n, in_of(n, 2))) != 1) return wrong(n, "the value is not one number");
    if (!known_in(n, 2) || !mix_read_f64(n->x, in_of(n, 2), &v)) return false;
  }
  attr at[] = {attr_v(A_pads, pads, 2 * nd), attr_s(A_mode, sym_of(n->x->b.p->c, mode)), attr_f(A_value, v)};
  return set(n, 0, opn(n, OP_pad, &x, 1, at, strcmp(mode, "constant") ? 2 : 3));
}

bool map_center_crop_pad(node *n) {
  i64 want[DIMS_MAX], pads[2 * DIMS_MAX] = {0};
  const i64 *axes;
  if (missing(n, 0)) return false;
  mixed x = in_of(n, 0);
  const shape *s = shape_of(n, x);
  i64 count = ints_in(n, 1, want, DIMS_MAX);
  u32 nax = at_ints(n, "axes", &axes);
  if (count < 0) return false;
  if (count != (nax ? nax : s->nd))
    return wrong(n, "%lld extents for %u dimensions", (long long)count, nax ? nax : s->nd);
  for (i64 k = 0; k < count;
       k++) { // a crop is negative padding; the odd element is dropped behind, added behind
    u32 d;
    if (!axis_of(n, nax ? axes[k] : k, s->nd, &d)) return false;
    if (want[k] < 0) return wrong(n, "an extent of %lld", (long long)want[k]);
    i64 more = want[k] - s->dim[d];
    pads[d] = more >= 0 ? more / 2 : -(-more / 2);
    pads[s->nd + d] = more - pads[d];
  }
  attr a = attr_v(A_pads, pads, 2 * s->nd);
  return set(n, 0, op_at(n, OP_pad, x, a));
}

bool map_tile(node *n) {
  i64 times[DIMS_MAX];
  if (missing(n, 0)) return false;
  i64 count = ints_in(n, 1, times, DIMS_MAX);
  return count >= 0 && set(n, 0, op_at(n, OP_tile, in_of(n, 0), attr_v(A_sizes, times, (u32)count)));
}

// ---- picked by index -----------------------------------------------------------------------------------
// A known run of neighbours is a slice: plans can split what a gather would keep whole.
static mixed gather_run(node *n, mixed x, mixed idx, u32 axis) {
  const shape s = *shape_of(n, x), si = *shape_of(n, idx);
  i64 count = shape_elems(&si), extent = s.dim[axis];
  if (!mix_get(n->x, idx)->known || mix_get(n->x, x)->known || si.nd > 1 || count < 1 || count > extent)
    return 0;
  i64 *v = NEWN(n->x->a, i64, count);
  mix_read(n->x, idx, v);
  if (v[0] < 0) v[0] += extent;
  for (i64 k = 1; k < count; k++)
    if ((v[k] < 0 ? v[k] + extent : v[k]) != v[0] + k) return 0;
  if (v[0] < 0 || v[0] + count > extent) return 0;
  attr at[] = {attr_v(A_starts, v, 1), attr_v(A_ends, (const i64[]){v[0] + count}, 1),
               attr_v(A_axes, (const i64[]){axis}, 1)};
  mixed y = count == extent ? x : opn(n, OP_slice, &x, 1, at, 3);
  if (si.nd == 1 || !y) return y;
  shape t = s;
  for (u32 d = axis; d + 1 < s.nd; d++) t.dim[d] = s.dim[d + 1];
  return to_shape(n, y, t.dim, s.nd - 1);
}

bool map_gather(node *n) {
  mixed x = in_of(n, 0), idx = in_of(n, 1);
  u32 axis;
  if (missing(n, 0) || missing(n, 1) || !axis_of(n, at_i(n, "axis", 0), shape_of(n, x)->nd, &axis))
    return false;
  mixed y = gather_run(n, x, idx, axis);
  attr a = attr_i(A_axis, axis);
  return set(n, 0, y ? y : opn(n, OP_gather, (mixed[]){x, idx}, 2, &a, 1));
}

bool map_gather_elements(node *n) {
  u32 axis;
  if (missing(n, 0) || !axis_of(n, at_i(n, "axis", 0), shape_of(n, in_of(n, 0))->nd, &axis)) return false;
  attr a = attr_i(A_axis, axis);
  return set(n, 0, opn(n, OP_take, (mixed[]){in_of(n, 0), in_of(n, 1)}, 2, &a, 1));
}

bool map_gather_nd(node *n) {
  attr a = attr_i(A_batch_dims, at_i(n, "batch_dims", 0));
  return set(n, 0, opn(n, OP_gather_nd, (mixed[]){in_of(n, 0), in_of(n, 1)}, 2, &a, 1));
}

static attr scatter_how(node *n) {
  return attr_s(A_scatter, sym_of(n->x->b.p->c, at_s(n, "reduction", "none")));
}

bool map_scatter_elements(node *n) {
  u32 axis;
  if (missing(n, 0) || !axis_of(n, at_i(n, "axis", 0), shape_of(n, in_of(n, 0))->nd, &axis)) return false;
  attr at[] = {attr_i(A_axis, axis), scatter_how(n)};
  return set(n, 0, opn(n, OP_put, (mixed[]){in_of(n, 0), in_of(n, 1), in_of(n, 2)}, 3, at, 2));
}

bool map_scatter_nd(node *n) {
  attr a = scatter_how(n);
  return set(n, 0, opn(n, OP_scatter_nd, (mixed[]){in_of(n, 0), in_of(n, 1), in_of(n, 2)}, 3, &a, 1));
}

bool map_trilu(node *n) {
  i64 k = 0;
  if (in_of(n, 1) && ints_in(n, 1, &k, 1) != 1) return false;
  attr at[] = {attr_i(A_upper, at_i(n, "upper", 1)), attr_i(A_k, k)};
  return set(n, 0, opn(n, OP_trilu, n->in, 1, at, 2));
}

bool map_one_hot(node *n) {
  i64 depth, shape0[1] = {0};
  double v[2];
  if (missing(n, 0) || ints_in(n, 1, &depth, 1) != 1 || missing(n, 2)) return false;
  mixed idx = to_type(n, in_of(n, 0), DT_I64), values = in_of(n, 2);
  attr at[] = {attr_i(A_size, depth), attr_i(A_axis, at_i(n, "axis", -1)), attr_t(A_dtype, DT_BOOL)};
  mixed behind = op2(n, OP_lt, idx, full_like(n, idx, 0)); // negative indices count from the end
  idx = op3(n, OP_where, behind, op2(n, OP_add, idx, full_like(n, idx, (double)depth)), idx);
  if (shape_of(n, values)->nd != 1 || shape_of(n, values)->dim[0] != 2)
    return wrong(n, "two values are needed");
  if (mix_read_f64(n->x, values, v) && v[0] == 0 && v[1] == 1) {
    at[2] = attr_t(A_dtype, shape_of(n, values)->t);
    return set(n, 0, opn(n, OP_one_hot, &idx, 1, at, 3));
  }
  mixed side[2];
  for (i64 k = 0; k < 2; k++) {
    attr cut[] = {attr_v(A_starts, &k, 1), attr_v(A_ends, (const i64[]){k + 1}, 1),
                  attr_v(A_axes, shape0, 1)};
    side[k] = to_shape(n, opn(n, OP_slice, &values, 1, cut, 3), shape0, 0);
  }
  return set(n, 0, op3(n, OP_where, opn(n, OP_one_hot, &idx, 1, at, 3), side[1], side[0]));
}

bool map_depth_to_space(node *n) {
  attr at[] = {attr_i(A_size, at_i(n, "blocksize", 0)),
               attr_s(A_mode, sym_of(n->x->b.p->c, at_s(n, "mode", "DCR")))};
  return set(n, 0, opn(n, OP_depth_to_space, n->in, 1, at, 2));
}

bool map_space_to_depth(node *n) {
  i64 b = at_i(n, "blocksize", 0);
  if (missing(n, 0)) return false;
  const shape s = *shape_of(n, in_of(n, 0));
  if (s.nd != 4 || b < 1 || b > 1 << 15 || s.dim[2] % b || s.dim[3] % b)
    return wrong(n, "blocks of %lld do not tile the input", (long long)b);
  i64 apart[] = {s.dim[0], s.dim[1], s.dim[2] / b, b, s.dim[3] / b, b};
  i64 together[] = {s.dim[0], b * b * s.dim[1], s.dim[2] / b, s.dim[3] / b};
  mixed x = to_perm(n, to_shape(n, in_of(n, 0), apart, 6), (const i64[]){0, 3, 5, 1, 2, 4}, 6);
  return set(n, 0, to_shape(n, x, together, 4));
}

bool map_reverse(node *n) {
  attr at[] = {attr_i(A_axis, at_i(n, "time_axis", 0)), attr_i(A_batch_dims, at_i(n, "batch_axis", 1))};
  return set(n, 0, opn(n, OP_reverse, (mixed[]){in_of(n, 0), in_of(n, 1)}, 2, at, 2));
}

// ---- made from extents ---------------------------------------------------------------------------------
static mixed count_up(node *n, dtype t, const i64 *dim, u32 nd, u32 axis, double step, double first) {
  attr at[] = {attr_t(A_dtype, t), attr_v(A_shape, dim, nd), attr_i(A_axis, axis), attr_f(A_alpha, step),
               attr_f(A_beta, first)};
  return opn(n, OP_iota, NULL, 0, at, 5);
}

bool map_range(node *n) {
  double v[3];
  for (u32 k = 0; k < 3; k++) {
    if (missing(n, k)) return false;
    if (shape_elems(shape_of(n, in_of(n, k))) != 1) return wrong(n, "input %u is not one number", k + 1);
    if (!known_in(n, k) || !mix_read_f64(n->x, in_of(n, k), &v[k])) return false;
  }
  double count = v[2] == 0 ? -1 : ceil((v[1] - v[0]) / v[2]);
  if (!(count < 1e12) || v[2] == 0) return wrong(n, "from %g to %g in steps of %g", v[0], v[1], v[2]);
  i64 dim = (i64)MAX(count, 0);
  return set(n, 0, count_up(n, shape_of(n, in_of(n, 0))->t, &dim, 1, 0, v[2], v[0]));
}

bool map_constant(node *n) {
  const onnx_attr *a = n->n->at.n == 1 ? at_find(n, sym_str(n->x->b.p->c, n->n->at.v[0].name)) : NULL;
  if (!a) return wrong(n, "a constant has exactly one attribute");
  if (a->t) return set(n, 0, tensor_of(n, a->t));
  const char *name = sym_str(n->x->b.p->c, a->name);
  shape s = {.t = DT_F32, .nd = 1, .dim = {a->floats.n}};
  if (strcmp(name, "value_float") == 0) return set(n, 0, mix_full(n->x, DT_F32, a->f));
  if (strcmp(name, "value_floats") == 0) return set(n, 0, mix_known(n->x, &s, a->floats.v));
  if (strcmp(name, "value_ints") == 0) return set(n, 0, mix_i64s(n->x, a->ints.v, a->ints.n));
  if (strcmp(name, "value_int") == 0) return set(n, 0, to_shape(n, mix_i64s(n->x, &a->i, 1), NULL, 0));
  return refuse(n, "holding %s", name);
}

bool map_constant_of_shape(node *n) {
  i64 dim[DIMS_MAX];
  i64 nd = ints_in(n, 0, dim, DIMS_MAX);
  if (nd < 0) return false;
  const onnx_attr *a = at_find(n, "value");
  mixed one = a && a->t ? tensor_of(n, a->t) : 0;
  double v = 0;
  if (one && (shape_elems(shape_of(n, one)) != 1 || !mix_read_f64(n->x, one, &v)))
    return wrong(n, "one value is needed");
  return set(n, 0, fill(n, one ? shape_of(n, one)->t : DT_F32, dim, (u32)nd, v));
}

bool map_eye_like(node *n) {
  if (missing(n, 0)) return false;
  const shape s = *shape_of(n, in_of(n, 0));
  dtype t = at_find(n, "dtype") ? onnx_dtype(at_i(n, "dtype", 0)) : s.t;
  if (s.nd != 2 || !t) return wrong(n, "a matrix of a numeric type is needed");
  mixed row = count_up(n, DT_I64, (const i64[]){s.dim[0], 1}, 2, 0, 1, (double)at_i(n, "k", 0));
  mixed col = count_up(n, DT_I64, (const i64[]){1, s.dim[1]}, 2, 1, 1, 0);
  return set(n, 0, to_type(n, op2(n, OP_eq, row, col), t));
}

// ---- extents that are elements: only where these are known ---------------------------------------------
static double *elements(node *n, mixed x) {
  double *v = NEWN(n->x->a, double, shape_elems(shape_of(n, x)));
  mix_read_f64(n->x, x, v);
  return v;
}

bool map_non_zero(node *n) {
  if (!known_in(n, 0)) return false;
  const shape s = *shape_of(n, in_of(n, 0));
  const double *v = elements(n, in_of(n, 0));
  i64 elems = shape_elems(&s), count = 0;
  for (i64 i = 0; i < elems; i++) count += v[i] != 0;
  i64 *at = NEWN(n->x->a, i64, s.nd * count), k = 0;
  for (i64 i = 0; i < elems; i++) {
    if (v[i] == 0) continue;
    i64 rest = i;
    for (u32 d = s.nd; d-- > 0; rest /= s.dim[d]) at[d * count + k] = rest % s.dim[d];
    k++;
  }
  shape r = {.t = DT_I64, .nd = 2, .dim = {s.nd, count}};
  return set(n, 0, mix_known(n->x, &r, at));
}

bool map_compress(node *n) {
  if (missing(n, 0) || !known_in(n, 1)) return false;
  mixed x = in_of(n, 0);
  const shape s = *shape_of(n, x), sc = *shape_of(n, in_of(n, 1));
  u32 axis = 0;
  i64 elems = shape_elems(&s), count = 0;
  bool flat = !at_find(n, "axis");
  if (!flat && !axis_of(n, at_i(n, "axis", 0), s.nd, &axis)) return false;
  if (flat) x = to_shape(n, x, &elems, 1);
  i64 most = MIN(shape_elems(&sc), flat ? elems : s.dim[axis]), *at = NEWN(n->x->a, i64, most + 1);
  const double *keep = elements(n, in_of(n, 1));
  for (i64 i = 0; i < most; i++)
    if (keep[i] != 0) at[count++] = i;
  attr a = attr_i(A_axis, axis);
  return set(n, 0, opn(n, OP_gather, (mixed[]){x, mix_i64s(n->x, at, (u32)count)}, 2, &a, 1));
}

bool map_if(node *n) {
  i64 v;
  if (ints_in(n, 0, &v, 1) != 1) return wrong(n, "the condition is not one value");
  const onnx_attr *branch = at_find(n, v ? "then_branch" : "else_branch");
  return branch && branch->g ? map_graph(n, branch->g) : wrong(n, "a branch is missing");
}
