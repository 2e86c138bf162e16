// make.c - tensors made from nothing: constants, counting, random numbers and what is dropped by them.
//
// Idea: an element is a function of its global index alone, so pieces need no agreement.
#include "kernel/internal.h"

bool ker_constant(run *r) {
  const ker_tensor *x = r->blob, *y = &r->res[0];
  if (!x || !x->data) {
    diag(r->c, E_VALUE, r->where, "constant: its elements are absent");
    return false;
  }
  ker_box b = {.nd = y->nd};
  for (u32 d = 0; d < y->nd; d++) {
    b.n[d] = b.ddim[d] = y->dim[d];
    b.sdim[d] = x->dim[d];
    b.sat[d] = y->index[d];
    if (x->dim[d] != y->whole[d]) return ker_misfit(r, "extents", x->dim[d], y->whole[d]);
  }
  size_t bytes = dtype_bytes(x->t);
  i64 n = ker_elems(y);
  void *picked = x->t == y->t ? y->data : arena_alloc(r->a, bytes * (size_t)n);
  ker_pick(&b, bytes, picked, x->data, r->a);
  if (picked != y->data) ker_convert(y->data, y->t, picked, x->t, n);
  return true;
}

static void set(const ker_tensor *y, i64 i, double v) {
  if (is_float(y))
    F(y)[i] = v;
  else
    I(y)[i] = (i64)v;
}

bool ker_full(run *r) {
  const ker_tensor *y = &r->res[0];
  const double v = attr_float(r->at, A_value, 0);
  const i64 n = ker_elems(y), whole = (i64)v;
  const size_t size = dtype_bytes(y->t);
  if (!n) return true;
  if (is_float(y))
    ker_store_f64(y->data, y->t, &v, 1);
  else
    ker_store_i64(y->data, y->t, &whole, 1);
  for (i64 have = 1; have < n; have *= 2) // the elements as stored, twice as many each time
    memcpy((char *)y->data + (size_t)have * size, y->data, (size_t)MIN(have, n - have) * size);
  return true;
}

bool ker_iota(run *r) {
  const ker_tensor *y = &r->res[0];
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, 0), MAX(y->nd, 1));
  double alpha = attr_float(r->at, A_alpha, 1), beta = attr_float(r->at, A_beta, 0);
  if (y->nd == 0) {
    set(y, 0, beta);
    return true;
  }
  i64 pre = ker_span(y, 0, axis), n = y->dim[axis], post = ker_span(y, axis + 1, y->nd);
  for (i64 k = 0; k < n; k++) {
    double v = beta + alpha * (double)whole_or_map(y, axis, k);
    for (i64 p = 0; p < pre; p++)
      for (i64 q = 0; q < post; q++) set(y, (p * n + k) * post + q, v);
  }
  return true;
}

// splitmix64's finaliser, twice, over a counter that the key displaces.
static u64 mix(u64 x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}
static u64 draw(u64 key, u64 i) {
  return mix(mix(key + 0x9E3779B97F4A7C15u) + (i + 1) * 0x9E3779B97F4A7C15u);
}

double ker_uniform(u64 key, u64 i) { return (double)(draw(key, i) >> 11) * 0x1p-53; }

double ker_normal(u64 key, u64 i) { // Box and Muller; 1-u is never 0
  return sqrt(-2 * log(1 - ker_uniform(key, 2 * i))) *
         cos(6.28318530717958647693 * ker_uniform(key, 2 * i + 1));
}

// Calls fn(arg, element, index of the element in the whole tensor) for every element.
static void each_global(const ker_tensor *y, void (*fn)(void *, i64, u64), void *arg) {
  i64 at[DIMS_MAX] = {0}, stride[DIMS_MAX];
  ker_strides(y->nd, y->whole, stride);
  for (i64 i = 0, n = ker_elems(y); i < n; i++) {
    i64 g = 0;
    for (u32 d = 0; d < y->nd; d++) g += whole_or_map(y, d, at[d]) * stride[d];
    fn(arg, i, (u64)g);
    for (u32 d = y->nd; d-- > 0;) {
      if (++at[d] < y->dim[d]) break;
      at[d] = 0;
    }
  }
}

typedef struct {
  run *r;
  u64 key;
  double alpha, beta;
  bool normal;
} drawing;

static void random_one(void *arg, i64 i, u64 g) {
  drawing *d = arg;
  set(&d->r->res[0], i,
      d->normal ? d->alpha + d->beta * ker_normal(d->key, g)
                : d->alpha + (d->beta - d->alpha) * ker_uniform(d->key, g));
}

bool ker_random(run *r) {
  drawing d = {r, (u64)attr_int(r->at, A_seed, 0), attr_float(r->at, A_alpha, 0),
               attr_float(r->at, A_beta, 1), !strcmp(ker_mode(r, A_mode, "uniform"), "normal")};
  each_global(&r->res[0], random_one, &d);
  return true;
}

static void drop_one(void *arg, i64 i, u64 g) {
  drawing *d = arg;
  bool keep = ker_uniform(d->key, g) >= d->alpha;
  F(&d->r->res[0])[i] = keep ? F(&d->r->opd[0])[i] * d->beta : 0;
  I(&d->r->res[1])[i] = keep;
}

bool ker_dropout(run *r) {
  double ratio = attr_float(r->at, A_ratio, 0.5);
  drawing d = {r, (u64)attr_int(r->at, A_seed, 0), ratio, ratio < 1 ? 1 / (1 - ratio) : 0, false};
  if (ker_elems(&r->res[0]) != ker_elems(&r->opd[0]))
    return ker_misfit(r, "elements", ker_elems(&r->res[0]), ker_elems(&r->opd[0]));
  each_global(&r->res[0], drop_one, &d);
  return true;
}
