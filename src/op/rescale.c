// rescale.c - the same application at other extents: which attributes hold extents, and what they become.
//
// Idea: a law's letters are all that an application says about sizes. Give every letter that is not FIXED
// another extent (2 at least) and the attributes can be written anew: the operator then has the same law,
// letter for letter. A verifier shrinks a model this way until it fits, under the same plan.
#include "op/internal.h"

static i64 dim_extent(const law_dim *d, const i64 *extent) {
  i64 n = 1;
  for (u32 i = 0; i < d->n; i++) n *= extent[d->f[i]];
  return n;
}

static void ints_new(arena *a, attr *v, const i64 *x, u32 n) {
  v->n = n;
  v->u.ints = arena_dup(a, x, n * sizeof *x);
}

static void shape_new(arena *a, attr *v, const law_term *t, const i64 *extent) {
  i64 dim[DIMS_MAX];
  for (u32 d = 0; d < t->nd; d++) dim[d] = dim_extent(&t->dim[d], extent);
  ints_new(a, v, dim, t->nd);
}

static void split_sizes(arena *a, attr *v, attrs at, const law *l, const i64 *extent) {
  i64 size[OP_RES_MAX], axis = attr_int(at, A_axis, 0);
  if (axis < 0) axis += l->opd[0].nd;
  for (u32 r = 0; r < l->nres; r++) size[r] = dim_extent(&l->res[r].dim[axis], extent);
  ints_new(a, v, size, l->nres);
}

// Begins and ends of a slice with step 1 are multiples of the letter that operand and result share, the minor
// one of both.
static void slice_bounds(arena *a, attr *v, attrs at, const law *l, const i64 *extent) {
  const i64 *axes = NULL;
  u32 n = attr_ints(at, A_axes, &axes);
  i64 *bound = NEWN(a, i64, n);
  for (u32 i = 0; i < n; i++) {
    i64 d = axes[i] < 0 ? axes[i] + l->opd[0].nd : axes[i];
    const law_dim *x = &l->opd[0].dim[d], *y = &l->res[0].dim[d];
    bool shared = x->n && y->n && x->f[x->n - 1] == y->f[y->n - 1];
    u32 e = shared ? x->f[x->n - 1] : 0;
    bound[i] = shared && l->letter[e].extent ? v->u.ints[i] / l->letter[e].extent * extent[e] : v->u.ints[i];
  }
  v->u.ints = bound;
}

// The letter g of a batch (g n): with one group there is none.
static void batch_groups(attr *v, const law *l, const i64 *extent) {
  if (v->u.i > 1) v->u.i = extent[l->opd[0].dim[0].f[0]];
}

// Zeros before and after whole parts are multiples of the letter that operand and result share.
static void pad_sizes(arena *a, attr *v, const law *l, const i64 *extent) {
  u32 nd = l->opd[0].nd;
  i64 *pad = arena_dup(a, v->u.ints, v->n * sizeof *pad);
  for (u32 i = 0; i < v->n; i++) {
    const law_dim *x = &l->opd[0].dim[i % nd], *y = &l->res[0].dim[i % nd];
    if (!x->n || !y->n || x->f[x->n - 1] != y->f[y->n - 1]) continue;
    u32 e = x->f[x->n - 1];
    if (l->letter[e].extent) pad[i] = pad[i] / l->letter[e].extent * extent[e];
  }
  v->u.ints = pad;
}

attrs law_rescale(arena *a, opcode op, attrs at, const law *l, const i64 *extent) {
  attr *v = arena_dup(a, at.v, at.n * sizeof *v);
  for (u32 i = 0; i < at.n; i++) {
    if (v[i].key == A_shape)
      shape_new(a, &v[i], &l->res[0], extent);
    else if (op == OP_split && v[i].key == A_sizes)
      split_sizes(a, &v[i], at, l, extent);
    else if (op == OP_slice && (v[i].key == A_starts || v[i].key == A_ends))
      slice_bounds(a, &v[i], at, l, extent);
    else if (v[i].key == A_bn_groups)
      batch_groups(&v[i], l, extent);
    else if (op == OP_pad && v[i].key == A_pads)
      pad_sizes(a, &v[i], l, extent);
  }
  return (attrs){at.n, v};
}
