// reduce.c - what runs over whole dimensions: reductions, places of extremes, running sums, the k largest.
//
// Idea: a reduction is a walk in which the result does not move along the reduced dimensions. On pieces it
// gives the piece's share (partial results); only the mean needs to know how many elements there are in all.
#include "kernel/internal.h"

// Which dimensions of the operand go, and the result's stride along each (0 for those).
static bool reduced_dims(run *r, const ker_tensor *x, const ker_tensor *y, bool *gone, i64 *stride) {
  const i64 *axes = NULL;
  u32 n = attr_ints(r->at, A_axes, &axes);
  for (u32 d = 0; d < x->nd; d++) gone[d] = n == 0;
  for (u32 i = 0; i < n; i++) gone[ker_axis(r, axes[i], x->nd)] = true;
  bool keep = attr_int(r->at, A_keepdims, 1);
  i64 own[DIMS_MAX];
  ker_strides(y->nd, y->dim, own);
  for (u32 d = 0, to = 0; d < x->nd; d++) {
    stride[d] = gone[d] ? 0 : own[to];
    if (!gone[d] && y->dim[to] != x->dim[d]) return ker_misfit(r, "kept extents", y->dim[to], x->dim[d]);
    to += keep || !gone[d];
  }
  return true;
}

static i64 int_limit(dtype t, bool lowest) {
  u32 bits = dtype_bytes(t) * 8;
  if (t == DT_BOOL) return !lowest;
  if (dtype_kind_of(t) == DK_UINT) return lowest ? 0 : bits == 64 ? -1 : (i64)(((u64)1 << bits) - 1);
  return lowest ? INT64_MIN >> (64 - bits) : INT64_MAX >> (64 - bits);
}

// Folds n elements of x into y; sy is 0 (one result) or 1.
#define FOLD(T, expr)                                                                                        \
  {                                                                                                          \
    if (sy == 0) {                                                                                           \
      T a = *ys;                                                                                             \
      for (i64 i = 0; i < n; i++) {                                                                          \
        T x = xs[i * sx];                                                                                    \
        a = (T)(expr);                                                                                       \
      }                                                                                                      \
      *ys = a;                                                                                               \
    } else                                                                                                   \
      for (i64 i = 0; i < n; i++) {                                                                          \
        T a = ys[i * sy], x = xs[i * sx];                                                                    \
        ys[i * sy] = (T)(expr);                                                                              \
      }                                                                                                      \
    return;                                                                                                  \
  }

static void fold_i64(opcode op, u64 *ys, i64 sy, const u64 *xs, i64 sx, i64 n, u64 flip) {
  switch (op) {
  case OP_reduce_max: FOLD(u64, (i64)(x ^ flip) > (i64)(a ^ flip) ? x : a)
  case OP_reduce_min: FOLD(u64, (i64)(x ^ flip) < (i64)(a ^ flip) ? x : a)
  case OP_reduce_prod: FOLD(u64, a * x)
  default: FOLD(u64, a + x)
  }
}

static double first_of(opcode op) {
  return op == OP_reduce_max ? -INFINITY : op == OP_reduce_min ? INFINITY : op == OP_reduce_prod;
}

// Floats are folded in f64. A walk of which one dimension goes is dealt by what stays: rows that become one number each,
// or columns of rows that are added to each other.
typedef struct {
  const run *r;
  const walk *w;
  double *y;
} fold_job;

static void fold_walk(const void *arg, walk *w) {
  const fold_job *j = arg;
  const run *r = j->r;
  do {
    const void *x = ker_at(r, &r->opd[0], w->off[1]);
    if (step(w, 0) && step(w, 1) == 1 && step(w, 0) == 1)
      r->v->fold_rows(r->op, j->y + w->off[0], x, walk_inner(w));
    else if (!step(w, 0))
      r->v->fold(r->op, j->y + w->off[0], x, step(w, 1), walk_inner(w));
    else
      for (i64 i = 0; i < walk_inner(w); i++)
        r->v->fold(r->op, j->y + w->off[0] + i * step(w, 0),
                   ker_at(r, &r->opd[0], w->off[1] + i * step(w, 1)), 1, 1);
  } while (ker_walk_next(w));
}

static void fold_columns(const void *arg, i64 from, i64 end) {
  const fold_job *j = arg;
  for (i64 i = 0; i < j->w->n[0]; i++)
    j->r->v->fold_rows(j->r->op, j->y + from, ker_at(j->r, &j->r->opd[0], i * j->w->stride[1][0] + from),
                       end - from);
}

static void reduce_floats(const run *r, walk *w, double *y) {
  fold_job j = {r, w, y};
  walk merged = *w;
  if (!ker_walk_begin(&merged)) return;
  if (merged.nd == 2 && !merged.stride[0][0] && merged.stride[0][1] == 1 && merged.stride[1][1] == 1) {
    j.w = &merged;
    ker_deal(r, merged.n[1], merged.n[0], fold_columns, &j);
  } else if (merged.stride[0][0])
    ker_walk_deal(r, w, fold_walk, &j);
  else
    fold_walk(&j, &merged);
}

bool ker_reduce(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  bool gone[DIMS_MAX], flt = is_float(x);
  i64 stride[DIMS_MAX], n = ker_elems(y), count = 1;
  if (!reduced_dims(r, x, y, gone, stride)) return false;
  walk w;
  ker_walk_init(&w, x->nd, x->dim);
  ker_walk_add(&w, stride);
  ker_walk_add_dense(&w, x);
  for (u32 d = 0; d < x->nd && r->op == OP_reduce_mean; d++)
    if (gone[d]) count *= x->whole[d];
  if (flt) {
    double *sum = NEWN(r->a, double, n);
    for (i64 i = 0; i < n; i++) sum[i] = first_of(r->op);
    reduce_floats(r, &w, sum);
    for (i64 i = 0; i < n && r->op == OP_reduce_mean; i++) sum[i] /= (double)count;
    r->v->store(y->data, sum, 1, n);
    return true;
  }
  for (i64 i = 0; i < n; i++) I(y)
  [i] = r->op == OP_reduce_max || r->op == OP_reduce_min ? int_limit(x->t, r->op == OP_reduce_max)
                                                         : r->op == OP_reduce_prod;
  EACH_RUN(&w)
  fold_i64(r->op, (u64 *)I(y) + w.off[0], step(&w, 0), (u64 *)I(x) + w.off[1], step(&w, 1), walk_inner(&w),
           is_uint(x) ? (u64)1 << 63 : 0);
  for (i64 i = 0; i < n && r->op == OP_reduce_mean; i++)
    I(y)[i] = count ? (is_uint(x) ? (i64)((u64)I(y)[i] / (u64)count) : I(y)[i] / count) : 0;
  return true;
}

// ---- along one dimension -------------------------------------------------------------------------------

typedef struct {
  i64 outer, n, inner;
} lines; // element k of line (o, i) is at (o * n + k) * inner + i
static lines lines_of(run *r, const ker_tensor *x, i64 absent) {
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, absent), x->nd);
  return (lines){ker_span(x, 0, axis), x->dim[axis], ker_span(x, axis + 1, x->nd)};
}

// x before y in the order asked for; numbers before what is not a number.
static bool before(const ker_tensor *t, i64 x, i64 y, bool largest) {
  if (is_float(t)) {
    double a = F(t)[x], b = F(t)[y];
    return a != a ? false : b != b ? true : largest ? a > b : a < b;
  }
  u64 flip = is_uint(t) ? (u64)1 << 63 : 0;
  i64 a = (i64)((u64)I(t)[x] ^ flip), b = (i64)((u64)I(t)[y] ^ flip);
  return largest ? a > b : a < b;
}

bool ker_arg(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  lines l = lines_of(r, x, 0);
  bool last = attr_int(r->at, A_select_last, 0), largest = r->op == OP_argmax;
  if (ker_elems(y) != l.outer * l.inner) return ker_misfit(r, "elements", ker_elems(y), l.outer * l.inner);
  for (i64 o = 0; o < l.outer; o++)
    for (i64 i = 0; i < l.inner; i++) {
      i64 best = 0, base = o * l.n * l.inner + i;
      for (i64 k = 1; k < l.n; k++) {
        i64 at = base + k * l.inner, old = base + best * l.inner;
        if (before(x, at, old, largest) || (last && !before(x, old, at, largest))) best = k;
      }
      I(y)[o * l.inner + i] = best;
    }
  return true;
}

bool ker_cumsum(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  lines l = lines_of(r, x, 0);
  bool exclusive = attr_int(r->at, A_exclusive, 0), back = attr_int(r->at, A_reverse, 0);
  if (ker_elems(y) != ker_elems(x)) return ker_misfit(r, "elements", ker_elems(y), ker_elems(x));
  for (i64 o = 0; o < l.outer; o++)
    for (i64 i = 0; i < l.inner; i++) {
      double sum = 0;
      u64 isum = 0;
      for (i64 j = 0; j < l.n; j++) {
        i64 at = (o * l.n + (back ? l.n - 1 - j : j)) * l.inner + i;
        if (is_float(x)) {
          double next = sum + F(x)[at];
          F(y)[at] = exclusive ? sum : next;
          sum = next;
        } else {
          u64 next = isum + (u64)I(x)[at];
          I(y)[at] = (i64)(exclusive ? isum : next);
          isum = next;
        }
      }
    }
  return true;
}

bool ker_topk(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0], *place = &r->res[1];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, -1), x->nd);
  lines l = lines_of(r, x, -1);
  i64 k = y->dim[axis], *top = NEWN(r->a, i64, k + 1);
  bool largest = attr_int(r->at, A_largest, 1);
  if (k > l.n) return ker_misfit(r, "k", k, l.n);
  for (i64 o = 0; o < l.outer; o++)
    for (i64 i = 0; i < l.inner; i++) {
      i64 have = 0, base = o * l.n * l.inner + i;
      for (i64 j = 0; j < l.n;
           j++) { // insertion after all that are not worse: equal elements keep their order
        i64 at = base + j * l.inner, p = have;
        if (have == k && (k == 0 || !before(x, at, base + top[k - 1] * l.inner, largest))) continue;
        for (; p > 0 && before(x, at, base + top[p - 1] * l.inner, largest); p--) top[p] = top[p - 1];
        top[p] = j;
        have = MIN(have + 1, k);
      }
      for (i64 j = 0; j < k; j++) {
        i64 to = (o * k + j) * l.inner + i;
        ((u64 *)y->data)[to] = ((u64 *)x->data)[base + top[j] * l.inner];
        I(place)[to] = top[j];
      }
    }
  return true;
}
