// index.c - operators that address elements by the values of another tensor.
//
// Idea: an index names an element of the whole tensor (negative ones count from its end). Where the operand
// is a piece, elements of other pieces count as zero, so the pieces' results add up; where the result is a
// piece, what falls outside it is left to its owner.
#include "kernel/internal.h"

// Indices of one addressed dimension: wrapped and checked. NULL and a diagnostic if one is out of range.
static i64 *indices(run *r, const ker_tensor *t, bool wide, i64 extent) {
  i64 n = ker_elems(t), *at = NEWN(r->a, i64, n);
  if (wide)
    memcpy(at, t->data, sizeof *at * (size_t)n);
  else
    ker_load_i64(at, t->t, t->data, n);
  for (i64 i = 0; i < n; i++) {
    i64 v = at[i] < 0 ? at[i] + extent : at[i];
    if (v < 0 || v >= extent) {
      ker_bad_value(r, "index", at[i], extent);
      return NULL;
    }
    at[i] = v;
  }
  return at;
}

static void to_local(i64 *at, i64 n, const i64 *inv) {
  for (i64 i = 0; inv && i < n; i++) at[i] = inv[at[i]];
}

bool ker_gather(run *r) {
  const ker_tensor *x = &r->opd[0], *idx = &r->opd[1], *y = &r->res[0];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, 0), x->nd);
  i64 pre = ker_span(x, 0, axis), post = ker_span(x, axis + 1, x->nd), n = ker_elems(idx);
  i64 *at = indices(r, idx, false, x->whole[axis]);
  if (!at) return false;
  if (ker_elems(y) != pre * n * post) return ker_misfit(r, "elements", ker_elems(y), pre * n * post);
  to_local(at, n, ker_inverse(r, x, axis));
  size_t bytes = dtype_bytes(y->t);
  if (x->index[axis]) memset(y->data, 0, bytes * (size_t)ker_elems(y));
  ker_box b = {.nd = 3, .n = {pre, n, post}, .ddim = {pre, n, post}, .sdim = {pre, x->dim[axis], post}};
  b.sat[1] = at;
  ker_pick(&b, bytes, y->data, x->data, r->a);
  return true;
}

typedef struct {
  const run *r;
  i64 pre, rows, n, post;
  const i64 *at;
} gather_job;

// Columns of every row: a row that is named often is added up in the order of the indices.
static void add_columns(const void *arg, i64 from, i64 end) {
  const gather_job *j = arg;
  const run *r = j->r;
  const ker_tensor *dy = &r->opd[0], *y = &r->res[0];
  const elementwise add = {.op = OP_add};
  for (i64 p = 0; p < j->pre; p++)
    for (i64 i = 0; i < j->n; i++) {
      if (j->at[i] < 0) continue;
      const i64 to = (p * j->rows + j->at[i]) * j->post, of = (p * j->n + i) * j->post;
      if (is_float(y))
        r->v->binary(&add, ker_at(r, y, to + from), ker_at(r, y, to + from), 1, ker_at(r, dy, of + from), 1,
                     end - from);
      else
        for (i64 q = from; q < end; q++) I(y)[to + q] = (i64)((u64)I(y)[to + q] + (u64)I(dy)[of + q]);
    }
}

static void zero_part(const void *arg, i64 from, i64 end) {
  const run *r = arg;
  const size_t bytes = is_float(&r->res[0]) && r->real == DT_F32 ? 4 : 8;
  memset((char *)r->res[0].data + (size_t)from * bytes, 0, (size_t)(end - from) * bytes);
}

bool ker_gather_add(run *r) {
  const ker_tensor *dy = &r->opd[0], *idx = &r->opd[1], *y = &r->res[0];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, 0), y->nd);
  gather_job j = {r, ker_span(y, 0, axis), y->dim[axis], ker_elems(idx), ker_span(y, axis + 1, y->nd), NULL};
  i64 *at = indices(r, idx, true, y->whole[axis]);
  if (!at) return false;
  if (ker_elems(dy) != j.pre * j.n * j.post)
    return ker_misfit(r, "elements", ker_elems(dy), j.pre * j.n * j.post);
  to_local(at, j.n, ker_inverse(r, y, axis));
  j.at = at;
  ker_deal(r, ker_elems(y), 1, zero_part, r);
  ker_deal(r, j.post, j.pre * j.n, add_columns, &j);
  return true;
}

// ---- one index per element: take, put ------------------------------------------------------------------

typedef enum { SET, ADD, MUL, MAX_, MIN_ } scatter;
static scatter scatter_of(const run *r) {
  const char *m = ker_mode(r, A_scatter, "none");
  return !strcmp(m, "add")   ? ADD
         : !strcmp(m, "mul") ? MUL
         : !strcmp(m, "max") ? MAX_
         : !strcmp(m, "min") ? MIN_
                             : SET;
}

static void put_one(const ker_tensor *y, i64 to, const ker_tensor *u, i64 from, scatter how) {
  if (is_float(y)) {
    double *a = &F(y)[to], b = F(u)[from];
    *a = how == SET    ? b
         : how == ADD  ? *a + b
         : how == MUL  ? *a * b
         : how == MAX_ ? (b > *a ? b : *a)
         : b < *a      ? b
                       : *a;
  } else {
    i64 *a = &I(y)[to], b = I(u)[from];
    u64 flip = is_uint(y) ? (u64)1 << 63 : 0;
    bool more = (i64)((u64)b ^ flip) > (i64)((u64)*a ^ flip);
    *a = how == SET              ? b
         : how == ADD            ? (i64)((u64)*a + (u64)b)
         : how == MUL            ? (i64)((u64)*a * (u64)b)
         : more == (how == MAX_) ? b
                                 : *a;
  }
}

// Visits idx together with the tensor x that it addresses along `axis`; x's offset leaves that dimension out.
static bool address_walk(run *r, walk *w, const ker_tensor *idx, const ker_tensor *x, u32 axis, i64 *along) {
  i64 stride[DIMS_MAX];
  ker_strides(x->nd, x->dim, stride);
  for (u32 d = 0; d < x->nd; d++)
    if (d != axis && idx->dim[d] > x->dim[d]) return ker_misfit(r, "extents", idx->dim[d], x->dim[d]);
  if (x->index[axis])
    return ker_misfit(r, "the addressed dimension must be whole:", x->dim[axis], x->whole[axis]);
  *along = stride[axis];
  stride[axis] = 0;
  ker_walk_init(w, idx->nd, idx->dim);
  ker_walk_add_dense(w, idx);
  ker_walk_add(w, stride);
  return true;
}

bool ker_take(run *r) {
  const ker_tensor *x = &r->opd[0], *idx = &r->opd[1], *y = &r->res[0];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, 0), x->nd);
  i64 along = 0, *at = indices(r, idx, true, x->whole[axis]);
  walk w;
  if (!at || !address_walk(r, &w, idx, x, axis, &along)) return false;
  if (ker_elems(y) != ker_elems(idx)) return ker_misfit(r, "elements", ker_elems(y), ker_elems(idx));
  EACH_RUN(&w) {
    for (i64 i = 0; i < walk_inner(&w); i++) {
      i64 k = w.off[0] + i * step(&w, 0);
      ((u64 *)y->data)[k] = ((u64 *)x->data)[w.off[1] + i * step(&w, 1) + at[k] * along];
    }
  }
  return true;
}

bool ker_put(run *r) {
  const ker_tensor *x = &r->opd[0], *idx = &r->opd[1], *u = &r->opd[2], *y = &r->res[0];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, 0), x->nd);
  i64 along = 0, *at = indices(r, idx, true, x->whole[axis]);
  scatter how = scatter_of(r);
  walk w;
  if (!at || !address_walk(r, &w, idx, y, axis, &along)) return false;
  if (ker_elems(u) != ker_elems(idx)) return ker_misfit(r, "updates", ker_elems(u), ker_elems(idx));
  if (ker_elems(y) != ker_elems(x)) return ker_misfit(r, "elements", ker_elems(y), ker_elems(x));
  memmove(y->data, x->data, 8 * (size_t)ker_elems(x));
  EACH_RUN(&w) {
    for (i64 i = 0; i < walk_inner(&w); i++) {
      i64 k = w.off[0] + i * step(&w, 0);
      put_one(y, w.off[1] + i * step(&w, 1) + at[k] * along, u, k, how);
    }
  }
  return true;
}

// ---- index tuples: gather_nd, scatter_nd ---------------------------------------------------------------

typedef struct {
  i64 batch, tuples, slice; // per batch; elements of one slice
  i64 size;                 // elements of one batch of the addressed tensor
  i64 *at;                  // batch * tuples offsets within that
} tuples;

static bool tuples_of(run *r, const ker_tensor *x, const ker_tensor *idx, u32 nb, tuples *t) {
  u32 q = (u32)idx->dim[idx->nd - 1];
  i64 stride[DIMS_MAX];
  ker_strides(x->nd, x->dim, stride);
  t->batch = ker_span(x, 0, nb);
  t->size = ker_span(x, nb, x->nd);
  t->slice = ker_span(x, nb + q, x->nd);
  i64 n = ker_span(idx, 0, idx->nd - 1);
  t->tuples = t->batch ? n / t->batch : 0;
  t->at = ZNEWN(r->a, i64, n);
  for (i64 i = 0; i < n; i++)
    for (u32 j = 0; j < q; j++) {
      i64 raw = I(idx)[i * q + j], extent = x->whole[nb + j], v = raw < 0 ? raw + extent : raw;
      if (v < 0 || v >= extent) return ker_bad_value(r, "index", raw, extent);
      if (x->index[nb + j])
        return ker_misfit(r, "an addressed dimension must be whole:", x->dim[nb + j], extent);
      t->at[i] += v * stride[nb + j];
    }
  return true;
}

bool ker_gather_nd(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  tuples t;
  if (!tuples_of(r, x, &r->opd[1], (u32)attr_int(r->at, A_batch_dims, 0), &t)) return false;
  if (ker_elems(y) != t.batch * t.tuples * t.slice)
    return ker_misfit(r, "elements", ker_elems(y), t.batch * t.tuples * t.slice);
  for (i64 i = 0; i < t.batch * t.tuples; i++)
    memcpy(F(y) + i * t.slice, F(x) + i / t.tuples * t.size + t.at[i], 8 * (size_t)t.slice);
  return true;
}

bool ker_scatter_nd(run *r) {
  const ker_tensor *x = &r->opd[0], *u = &r->opd[2], *y = &r->res[0];
  tuples t;
  scatter how = scatter_of(r);
  if (!tuples_of(r, x, &r->opd[1], 0, &t)) return false;
  if (ker_elems(u) != t.tuples * t.slice) return ker_misfit(r, "updates", ker_elems(u), t.tuples * t.slice);
  if (ker_elems(y) != ker_elems(x)) return ker_misfit(r, "elements", ker_elems(y), ker_elems(x));
  memmove(y->data, x->data, 8 * (size_t)ker_elems(x));
  for (i64 i = 0; i < t.tuples; i++)
    for (i64 k = 0; k < t.slice; k++) put_one(y, t.at[i] + k, u, i * t.slice + k, how);
  return true;
}

bool ker_one_hot(run *r) {
  const ker_tensor *idx = &r->opd[0], *y = &r->res[0];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, -1), y->nd);
  i64 pre = ker_span(y, 0, axis), post = ker_span(y, axis + 1, y->nd), n = y->dim[axis],
      extent = y->whole[axis];
  const i64 *inv = ker_inverse(r, y, axis);
  if (ker_elems(idx) != pre * post) return ker_misfit(r, "elements", ker_elems(idx), pre * post);
  memset(y->data, 0, 8 * (size_t)ker_elems(y));
  for (i64 i = 0; i < pre * post; i++) {
    i64 v = I(idx)[i] < 0 ? I(idx)[i] + extent : I(idx)[i];
    if (v < 0 || v >= extent) continue; // all zero, as ONNX has it
    i64 at = inv ? inv[v] : v, to = (i / post * n + at) * post + i % post;
    if (at < 0) continue;
    if (is_float(y))
      F(y)[to] = 1;
    else
      I(y)[to] = 1;
  }
  return true;
}
