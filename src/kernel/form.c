// form.c - operators that only move elements: each one of the result is one of the operands', or a constant.
//
// Idea: most of these are a table per dimension (where does index k of the result come from?), and the tables
// are made from global indices, so that pieces of the result come from pieces of the operand.
// The rest is strides.
#include "kernel/internal.h"

// y = x with sat[d][k] the index in the operand's piece; negative: left as it is.
static void pick(run *r, const ker_tensor *y, const ker_tensor *x, const i64 *const *sat) {
  ker_box b = {.nd = y->nd};
  for (u32 d = 0; d < y->nd; d++) {
    b.n[d] = b.ddim[d] = y->dim[d];
    b.sdim[d] = x->dim[d];
    b.sat[d] = sat[d];
  }
  ker_pick(&b, dtype_bytes(y->t), y->data, x->data, r->a);
}

bool ker_transpose(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  const i64 *perm = NULL;
  i64 own[DIMS_MAX], stride[DIMS_MAX];
  attr_ints(r->at, A_perm, &perm);
  ker_strides(x->nd, x->dim, own);
  for (u32 d = 0; d < x->nd; d++) {
    if (y->dim[d] != x->dim[perm[d]]) return ker_misfit(r, "extents", y->dim[d], x->dim[perm[d]]);
    stride[d] = own[perm[d]];
  }
  walk w;
  ker_walk_init(&w, y->nd, y->dim);
  ker_walk_add_dense(&w, y);
  ker_walk_add(&w, stride);
  ker_walk_copy(&w, dtype_bytes(y->t), y->data, x->data);
  return true;
}

bool ker_expand(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  walk w;
  ker_walk_init(&w, y->nd, y->dim);
  ker_walk_add_dense(&w, y);
  if (!ker_walk_add_broadcast(&w, x)) return ker_misfit(r, "elements", ker_elems(x), ker_elems(y));
  ker_walk_copy(&w, dtype_bytes(y->t), y->data, x->data);
  return true;
}

// The table of dimension d: where in its piece x has the elements first + by * i, for every i of y's piece.
// Behind the last element comes the first.
static bool places(run *r, const ker_tensor *x, const ker_tensor *y, u32 d, i64 first, i64 by,
                   const i64 **sat) {
  const i64 *inv = ker_inverse(r, x, d);
  i64 *at = NEWN(r->a, i64, y->dim[d]);
  for (i64 k = 0; k < y->dim[d]; k++) {
    i64 g = (first + by * whole_or_map(y, d, k)) % x->whole[d];
    at[k] = inv ? inv[g] : g;
    if (at[k] < 0) return ker_lacks(r, x, d, g);
  }
  sat[d] = at;
  return true;
}

static bool same_other_dims(run *r, const ker_tensor *x, const ker_tensor *y, u32 axis) {
  for (u32 d = 0; d < x->nd; d++)
    if (d != axis && x->dim[d] != y->dim[d]) return ker_misfit(r, "extents", x->dim[d], y->dim[d]);
  return true;
}

bool ker_concat(run *r) {
  const ker_tensor *y = &r->res[0];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, 0), y->nd);
  const i64 *inv = ker_inverse(r, y, axis);
  i64 base = 0, filled = 0;
  for (u32 j = 0; j < r->nopd; base += r->opd[j++].whole[axis]) {
    const ker_tensor *x = &r->opd[j];
    if (!same_other_dims(r, x, y, axis)) return false;
    ker_box b = {.nd = y->nd};
    i64 *at = NEWN(r->a, i64, x->dim[axis]);
    for (i64 k = 0; k < x->dim[axis]; k++) {
      i64 g = base + whole_or_map(x, axis, k);
      at[k] = inv ? inv[g] : g;
      filled += at[k] >= 0;
    }
    for (u32 d = 0; d < y->nd; d++) {
      b.n[d] = b.sdim[d] = x->dim[d];
      b.ddim[d] = y->dim[d];
    }
    b.dat[axis] = at;
    ker_pick(&b, dtype_bytes(y->t), y->data, x->data, r->a);
  }
  return filled == y->dim[axis] || ker_misfit(r, "elements along the dimension", filled, y->dim[axis]);
}

bool ker_split(run *r) {
  const ker_tensor *x = &r->opd[0];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, 0), x->nd);
  i64 base = 0;
  for (u32 j = 0; j < r->nres; base += r->res[j++].whole[axis]) {
    const ker_tensor *y = &r->res[j];
    if (!same_other_dims(r, x, y, axis)) return false;
    const i64 *sat[DIMS_MAX] = {0};
    if (!places(r, x, y, axis, base, 1, sat)) return false;
    pick(r, y, x, sat);
  }
  return true;
}

bool ker_slice(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  const i64 *starts = NULL, *axes = NULL, *steps = NULL;
  u32 n = attr_ints(r->at, A_starts, &starts), nsteps = attr_ints(r->at, A_steps, &steps);
  attr_ints(r->at, A_axes, &axes);
  const i64 *sat[DIMS_MAX] = {0};
  for (u32 d = 0; d < x->nd; d++) {
    i64 start = 0, by = 1;
    for (u32 i = 0; i < n; i++)
      if (ker_axis(r, axes[i], x->nd) == d) start = starts[i], by = nsteps ? steps[i] : 1;
    if (!places(r, x, y, d, start, by, sat)) return false;
  }
  pick(r, y, x, sat);
  return true;
}

static i64 mod(i64 a, i64 n) { return (a % n + n) % n; }

// Where the element at `g` from the operand's begin comes from; -1: the constant.
static i64 border(const char *mode, i64 g, i64 n) {
  if (g >= 0 && g < n) return g;
  if (!strcmp(mode, "edge")) return g < 0 ? 0 : n - 1;
  if (!strcmp(mode, "wrap")) return mod(g, n);
  if (strcmp(mode, "reflect")) return -1;
  if (n == 1) return 0;
  i64 p = mod(g, 2 * n - 2);
  return p < n ? p : 2 * n - 2 - p;
}

bool ker_pad(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  const char *mode = ker_mode(r, A_mode, "constant");
  const i64 *pads = NULL, *sat[DIMS_MAX] = {0};
  double value = attr_float(r->at, A_value, 0);
  attr_ints(r->at, A_pads, &pads);
  size_t bytes = dtype_bytes(y->t);
  u64 fill = 0;
  ker_convert(&fill, y->t, &value, DT_F64, 1);
  for (i64 i = 0, n = ker_elems(y); i < n; i++) memcpy((char *)y->data + (size_t)i * bytes, &fill, bytes);
  for (u32 d = 0; d < x->nd; d++) {
    const i64 *inv = ker_inverse(r, x, d);
    i64 *at = NEWN(r->a, i64, y->dim[d]);
    for (i64 k = 0; k < y->dim[d]; k++) {
      i64 g = border(mode, whole_or_map(y, d, k) - pads[d], x->whole[d]);
      at[k] = g < 0 || !inv ? g : inv[g];
      if (at[k] < 0 && g >= 0) return ker_lacks(r, x, d, g);
    }
    sat[d] = at;
  }
  pick(r, y, x, sat);
  return true;
}

bool ker_tile(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  const i64 *sat[DIMS_MAX] = {0};
  for (u32 d = 0; d < x->nd; d++)
    if (!places(r, x, y, d, 0, 1, sat)) return false;
  pick(r, y, x, sat);
  return true;
}

// y[n, c, h*b + i, w*b + j] = x[n, channel, h, w]; DCR: channel = (i, j, c), CRD: channel = (c, i, j).
bool ker_d2s(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  bool crd = !strcmp(ker_mode(r, A_mode, "DCR"), "CRD");
  i64 b = attr_int(r->at, A_size, 1), c = y->dim[1], h = x->dim[2], w = x->dim[3], p = h * w;
  if (x->dim[1] != c * b * b) return ker_misfit(r, "channels", x->dim[1], c * b * b);
  i64 n[6] = {x->dim[0], c, h, b, w, b}, to[6], from[6] = {x->dim[1] * p, p, w, b * c * p, 1, c * p};
  if (crd) from[1] = b * b * p, from[3] = b * p, from[5] = p;
  ker_strides(6, n, to);
  walk walker;
  ker_walk_init(&walker, 6, n);
  ker_walk_add(&walker, to);
  ker_walk_add(&walker, from);
  ker_walk_copy(&walker, dtype_bytes(y->t), y->data, x->data);
  return true;
}

bool ker_reverse(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  u32 time = ker_axis(r, attr_int(r->at, A_axis, 0), x->nd);
  u32 batch = ker_axis(r, attr_int(r->at, A_batch_dims, 1), x->nd);
  i64 n = x->dim[time], nbatch = x->dim[batch], *len = NEWN(r->a, i64, nbatch), *at = NEWN(r->a, i64, n);
  if (ker_elems(&r->opd[1]) != nbatch) return ker_misfit(r, "lengths", ker_elems(&r->opd[1]), nbatch);
  ker_load_i64(len, r->opd[1].t, r->opd[1].data, nbatch);
  for (i64 s = 0; s < nbatch; s++) {
    if (len[s] < 0 || len[s] > n) return ker_bad_value(r, "length", len[s], n + 1);
    ker_box b = {.nd = x->nd};
    for (u32 d = 0; d < x->nd; d++) b.n[d] = b.ddim[d] = b.sdim[d] = x->dim[d];
    for (i64 k = 0; k < n; k++) at[k] = k < len[s] ? len[s] - 1 - k : k;
    b.n[batch] = 1;
    b.dat[batch] = b.sat[batch] = &s;
    b.sat[time] = at;
    ker_pick(&b, dtype_bytes(y->t), y->data, x->data, r->a);
  }
  return true;
}

bool ker_trilu(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  u32 m = x->nd - 2, n = x->nd - 1;
  bool upper = attr_int(r->at, A_upper, 1);
  i64 k = attr_int(r->at, A_k, 0), rows = ker_span(x, 0, n), cols = x->dim[n];
  size_t bytes = dtype_bytes(x->t);
  if (ker_elems(y) != ker_elems(x)) return ker_misfit(r, "elements", ker_elems(y), ker_elems(x));
  for (i64 i = 0; i < rows; i++) {
    i64 row = whole_or_map(x, m, i % x->dim[m]);
    for (i64 j = 0; j < cols; j++) {
      i64 above = whole_or_map(x, n, j) - row;
      size_t at = (size_t)(i * cols + j) * bytes;
      if (upper ? above >= k : above <= k)
        memcpy((char *)y->data + at, (const char *)x->data + at, bytes);
      else
        memset((char *)y->data + at, 0, bytes);
    }
  }
  return true;
}
