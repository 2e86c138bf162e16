// decompose_batchnorm.c - batch norm with the statistics of samples that lie on several ranks, as frameworks'
// "synchronised" batch norm: the samples stay where they are, sums of one number a channel are communicated.
//
// Idea: mean and variance follow from the sums of x and of its squares, the gradient from those of dy and dy
// x beside them. Both results are then x (and dy) times numbers of the channel, plus one. The batch (g n) of
// groups becomes two dimensions, so that n is summed over and g is not.
#include "plan/decompose.h"

typedef struct {
  decomposition *e;
  shape x;         // grouped: [g, n, c, space], or [n, c, space] of one group
  u32 c;           // the dimension of the channels
  double n;        // elements of a channel in one group
  dtype t;         // of the statistics
  value mean, inv; // of every group and channel: mean, 1/sqrt(var + eps), extents of 1 elsewhere
  value var;
} bn;

static value op2(bn *w, opcode op, value x, value y) { return build2(&w->e->b, op, x, y); }
static value times(bn *w, value x, double k) {
  attr a = attr_f(A_alpha, k);
  return build(&w->e->b, OP_scale, &x, 1, &a, 1);
}
static value as_shape(bn *w, value x, const shape *s) {
  attr a = attr_v(A_shape, s->dim, s->nd);
  return build(&w->e->b, OP_reshape, &x, 1, &a, 1);
}
static value as_type(bn *w, value x, dtype t) {
  attr a = attr_t(A_dtype, t);
  if (val_type(w->e->b.p, w->e->f, x)->s.t == t) return x;
  return build(&w->e->b, OP_cast, &x, 1, &a, 1);
}

static bool is_kept(const bn *w, u32 d) { return d == w->c || (d == 0 && w->c == 2); } // channel, group

// The sum of x, or of x times y, over what a group's statistics are taken over, extents of 1 in its place.
static value group_sum(bn *w, value x, value y) {
  char in[DIMS_MAX + 1] = {0}, out[3] = {0};
  shape s = w->x;
  i64 axes[DIMS_MAX];
  u32 nout = 0, n = 0;
  for (u32 d = 0; d < s.nd; d++) {
    in[d] = (char)('a' + d);
    if (is_kept(w, d))
      out[nout++] = in[d];
    else
      axes[n++] = d, s.dim[d] = 1;
  }
  attr at[] = {attr_v(A_axes, axes, n), attr_i(A_keepdims, 1)};
  if (!y) return build(&w->e->b, OP_reduce_sum, &x, 1, at, 2);
  attr letters = attr_s(A_law, sym_fmt(w->e->b.p->c, "%s,%s->%s", in, in, out));
  return as_shape(w, build(&w->e->b, OP_einsum, (value[]){x, y}, 2, &letters, 1), &s);
}

// What a channel has, beside grouped samples.
static value per_channel(bn *w, value v) {
  shape s = {.t = w->t, .nd = w->x.nd - w->c, .dim = {w->x.dim[w->c]}};
  for (u32 d = 1; d < s.nd; d++) s.dim[d] = 1;
  return as_shape(w, as_type(w, v, w->t), &s);
}

static value grouped(bn *w, value x) { return as_shape(w, as_type(w, x, w->t), &w->x); }
static value ungrouped(bn *w, value y, u32 like) {
  shape s = val_type(w->e->b.p, w->e->f, w->e->x[like])->s;
  return as_type(w, as_shape(w, y, &s), s.t);
}

// false: with the groups apart there are too many dimensions.
static bool begin(bn *w, decomposition *e, u32 x, u32 gain) {
  const shape s = val_type(e->b.p, e->f, e->x[x])->s;
  i64 groups = attr_int(e->at, A_bn_groups, 1);
  *w = (bn){.e = e, .x = s, .c = groups > 1 ? 2 : 1, .t = val_type(e->b.p, e->f, e->x[gain])->s.t};
  if (groups > 1) {
    if (s.nd == DIMS_MAX) return false;
    w->x.nd++;
    memmove(w->x.dim + 2, s.dim + 1, (s.nd - 1) * sizeof *s.dim);
    w->x.dim[0] = groups, w->x.dim[1] = s.dim[0] / groups;
  }
  w->n = 1;
  for (u32 d = 0; d < w->x.nd; d++)
    if (!is_kept(w, d)) w->n *= (double)w->x.dim[d];
  return true;
}

// Returns x less the mean: squares are of differences, or what is left of them would be rounding.
static value statistics(bn *w, value x) {
  attr eps = attr_f(A_alpha, attr_float(w->e->at, A_eps, 1e-5));
  w->mean = times(w, group_sum(w, x, 0), 1 / w->n);
  value d = op2(w, OP_sub, x, w->mean);
  w->var = times(w, group_sum(w, d, d), 1 / w->n);
  w->inv = build1(&w->e->b, OP_rsqrt, build(&w->e->b, OP_offset, &w->var, 1, &eps, 1));
  return d;
}

// Summed over the groups, one number a channel.
static value over_groups(bn *w, value v) {
  shape s = {.t = w->t, .nd = 1, .dim = {w->x.dim[w->c]}};
  i64 axis = 0;
  attr at[] = {attr_v(A_axes, &axis, 1), attr_i(A_keepdims, 0)};
  if (w->c == 2) v = build(&w->e->b, OP_reduce_sum, &v, 1, at, 2);
  return as_shape(w, v, &s);
}

// Those of the first group: the sum over all groups, of which the others count nothing.
static value of_first(bn *w, value v) {
  if (w->c == 1) return over_groups(w, v);
  shape s = w->x;
  for (u32 d = 1; d < s.nd; d++) s.dim[d] = 1;
  attr at[] = {attr_t(A_dtype, w->t), attr_v(A_shape, s.dim, s.nd), attr_i(A_axis, 0), attr_f(A_alpha, -1),
               attr_f(A_beta, 1)}; // 1, 0, -1, ..
  value count = build1(&w->e->b, OP_relu, build(&w->e->b, OP_iota, NULL, 0, at, COUNT_OF(at)));
  return over_groups(w, op2(w, OP_mul, v, count));
}

bool decompose_batchnorm(decomposition *e, value *y) {
  bn w;
  if (!begin(&w, e, 0, 1)) return false;
  value d = statistics(&w, grouped(&w, e->x[0]));
  value scaled = op2(&w, OP_mul, d, op2(&w, OP_mul, w.inv, per_channel(&w, e->x[1])));
  y[0] = ungrouped(&w, op2(&w, OP_add, scaled, per_channel(&w, e->x[2])), 0);
  y[1] = of_first(&w, w.mean), y[2] = of_first(&w, w.var);
  return true;
}

// With d = x - mean: db = sum(dy), dg = inv sum(dy d), dx = g inv (dy - mean(dy) - d inv^2 mean(dy d)).
bool decompose_batchnorm_dx(decomposition *e, value *y) {
  bn w;
  if (!begin(&w, e, 1, 2)) return false;
  value dy = grouped(&w, e->x[0]), d = statistics(&w, grouped(&w, e->x[1]));
  value sum = group_sum(&w, dy, 0), dot = op2(&w, OP_mul, group_sum(&w, dy, d), w.inv);
  value a = op2(&w, OP_mul, w.inv, per_channel(&w, e->x[2]));
  value b = times(&w, op2(&w, OP_mul, op2(&w, OP_mul, a, w.inv), dot), -1 / w.n);
  value less = op2(&w, OP_mul, op2(&w, OP_sub, dy, times(&w, sum, 1 / w.n)), a);
  y[0] = ungrouped(&w, op2(&w, OP_add, less, op2(&w, OP_mul, d, b)), 1);
  y[1] = over_groups(&w, dot), y[2] = over_groups(&w, sum);
  return true;
}
