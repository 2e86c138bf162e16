// internal.h - what the files of kernel/ share: how a kernel gets its tensors, and walks over them.
#ifndef HEDDLE_KERNEL_INTERNAL_H
#define HEDDLE_KERNEL_INTERNAL_H
#include "kernel/kernel.h"
#include "kernel/loops.h"
#include <math.h>

// One application. In a wide kernel the data of operands and results are f64 or i64, whatever `t` says; `t`
// is the stored type and tells how they are meant. In a real kernel floats are f32 where all are stored so, else f64.
// A raw kernel gets the stored elements.
typedef struct {
  ctx *c;
  arena *a; // scratch
  loc where;
  opcode op;
  attrs at;
  u32 nopd, nres;
  ker_tensor *opd, *res;
  const ker_tensor *blob;
  int threads;
  arena **temps;      // of threads but the first; NULL: none is kept
  dtype real;         // f32 or f64: what the floats of a real kernel are computed in ...
  const ker_loops *v; // ... by these loops
  i64 step;
} run;

#define F(t) ((double *)(t)->data)
#define I(t) ((i64 *)(t)->data)
static inline bool is_float(const ker_tensor *t) { return dtype_kind_of(t->t) == DK_FLOAT; }
static inline bool is_uint(const ker_tensor *t) { return dtype_kind_of(t->t) == DK_UINT; }

#define K(name, opd, res) bool ker_##name(run *r);
#include "kernel/kernels.def"
#undef K

// ---- shapes (run.c) ------------------------------------------------------------------------------------
i64 ker_span(const ker_tensor *t, u32 from, u32 to); // product of the extents of dimensions from..to-1
static inline i64 whole_or_map(const ker_tensor *t, u32 d, i64 k) { return t->index[d] ? t->index[d][k] : k; }
u32 ker_axis(const run *r, i64 axis, u32 nd);                   // negative counts from the end
bool ker_misfit(run *r, const char *what, i64 x, i64 y);        // E_LAYOUT; always false
bool ker_bad_value(run *r, const char *what, i64 v, i64 limit); // E_VALUE; always false
// E_COVERAGE: element g along dimension d is needed but not in the piece; always false.
bool ker_lacks(run *r, const ker_tensor *t, u32 d, i64 g);
// whole index -> index in the piece or -1; NULL where the dimension is whole. Scratch.
const i64 *ker_inverse(run *r, const ker_tensor *t, u32 d);
const char *ker_mode(const run *r, attr_key k, const char *absent);
// Element i of a real kernel's floats.
static inline void *ker_at(const run *r, const ker_tensor *t, i64 i) {
  return (char *)t->data + i * (r->real == DT_F32 ? 4 : 8);
}
// Deals units 0..n-1, of `each` elements, to threads where there are enough: job(arg, from, end).
void ker_deal(const run *r, i64 n, i64 each, void (*job)(const void *arg, i64 from, i64 end),
              const void *arg);
// An arena for each thread, the first r's own.
arena **ker_scratches(run *r, int threads);
void ker_scratches_free(const run *r, arena **a, int threads);

// ---- walks over several tensors at once (walk.c) -------------------------------------------------------
// A walk visits every point of an iteration space; every tensor has a stride per dimension (0 where it does
// not vary). The innermost dimension is the caller's loop: n[nd-1] points with strides step(w, j).
enum { WALK_TENSORS = 5, WALK_DIMS = 2 * DIMS_MAX };
typedef struct {
  u32 nd, nt;
  i64 n[WALK_DIMS], stride[WALK_TENSORS][WALK_DIMS];
  i64 at[WALK_DIMS], off[WALK_TENSORS];
} walk;
void ker_walk_init(walk *w, u32 nd, const i64 *n);
// The next tensor: by strides; of the space's own extents; aligned at the right (false if that does not fit).
void ker_walk_add(walk *w, const i64 *stride);
void ker_walk_add_dense(walk *w, const ker_tensor *t);
bool ker_walk_add_broadcast(walk *w, const ker_tensor *t);
void ker_strides(u32 nd, const i64 *dim, i64 *stride); // of a dense tensor
bool ker_walk_begin(walk *w); // merges what can be; false if there is nothing to visit
bool ker_walk_next(walk *w);
// Begins a walk and deals its outermost dimension to threads, each with a walk of its own, begun: job(arg, walk).
void ker_walk_deal(const run *r, walk *w, void (*job)(const void *arg, walk *w), const void *arg);
#define EACH_RUN(w) for (bool more_ = ker_walk_begin(w); more_; more_ = ker_walk_next(w))
static inline i64 walk_inner(const walk *w) { return w->n[w->nd - 1]; }
static inline i64 step(const walk *w, u32 tensor) { return w->stride[tensor][w->nd - 1]; }
void ker_walk_copy(walk *w, size_t bytes, void *dst, const void *src); // tensor 0 from tensor 1

// ---- sums of products (contract.c) ---------------------------------------------------------------------
// res[..] = sum over some letters of a[..] b[..]; a letter is an extent and its stride in each of the three,
// marked by where it occurs. Operands stored as t.
enum { IN_A = 1, IN_B = 2, IN_C = 4, LETTERS_MAX = 32 };
enum { FROM_A, FROM_B, FROM_C };
typedef struct {
  i64 n;
  i64 a, b, c; // strides; only those of `in` count
  u8 in;
} letter;
typedef struct {
  dtype t, to; // of operands; of the result: f32, f64 or i64
  const void *a, *b;
  void *c;
  bool add; // to what is there
  u32 n;
  letter l[LETTERS_MAX];
} contraction;
void ker_contract(run *r, const contraction *k);
static inline dtype ker_result(const run *r) { return is_float(&r->res[0]) ? r->real : DT_I64; }
// Offsets, in one tensor, of all combinations of the letters that occur in exactly `in`, the last one fastest.
i64 *ker_offsets(arena *scratch, const contraction *k, u8 in, int from, i64 *count);

// By offset tables (product.c): c[cm[i] + cn[j]] = sum over k of a[i][k] b[j][k].
typedef struct {
  const void *data;
  i64 nrow, ncol;
  const i64 *row, *col; // offsets
} ker_table;
typedef struct {
  dtype t, to;
  ker_table a, b;
  void *c;
  const i64 *cm, *cn;
  bool add;
} ker_product_of;
void ker_product(arena *scratch, const ker_product_of *p);     // of floats, added in f64
void ker_product_i64(arena *scratch, const ker_product_of *p); // of the others
i64 ker_product_cut(i64 n, bool rows, u32 part, u32 cuts);     // where a part of n rows or columns begins

// By the library (matrices.c, blas.c). False: there is none, or it has no such product; nothing is done then.
bool ker_contract_by_blas(run *r, const contraction *k);
bool ker_has_blas(dtype t);
typedef struct { // c[m][n], its rows c_row apart, = a[m][k] b[k][n]
  i64 m, n, k;
  const void *a, *b;
  i64 a_row, a_col, b_row, b_col; // strides
  void *c;
  i64 c_row;
  bool add;
} matrix_product;
bool ker_blas_takes(i64 rows, i64 cols, i64 row, i64 col); // a matrix with these strides
void ker_blas_product(dtype t, const matrix_product *x);
#endif
