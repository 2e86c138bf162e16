// internal.h - what the files of kernel/ share: how a kernel gets its tensors, and walks over them.
#ifndef HEDDLE_KERNEL_INTERNAL_H
#define HEDDLE_KERNEL_INTERNAL_H
#include "kernel/kernel.h"
#include <math.h>

// One application. In a wide kernel the data of operands and results are f64 or i64, whatever `t` says; `t`
// is the stored type and tells how they are meant. A raw kernel gets the stored elements.
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

// ---- walks over several tensors at once (walk.c) -------------------------------------------------------
// A walk visits every point of an iteration space; every tensor has a stride per dimension (0 where it does
// not vary). The innermost dimension is the caller's loop: n[nd-1] points with strides step(w, j).
enum { WALK_TENSORS = 5 };
typedef struct {
  u32 nd, nt;
  i64 n[DIMS_MAX + 4], stride[WALK_TENSORS][DIMS_MAX + 4];
  i64 at[DIMS_MAX + 4], off[WALK_TENSORS];
} walk;
void ker_walk_init(walk *w, u32 nd, const i64 *n);
// The next tensor: by strides; of the space's own extents; aligned at the right (false if that does not fit).
void ker_walk_add(walk *w, const i64 *stride);
void ker_walk_add_dense(walk *w, const ker_tensor *t);
bool ker_walk_add_broadcast(walk *w, const ker_tensor *t);
void ker_strides(u32 nd, const i64 *dim, i64 *stride); // of a dense tensor
bool ker_walk_begin(walk *w); // merges what can be; false if there is nothing to visit
bool ker_walk_next(walk *w);
#define EACH_RUN(w) for (bool more_ = ker_walk_begin(w); more_; more_ = ker_walk_next(w))
static inline i64 walk_inner(const walk *w) { return w->n[w->nd - 1]; }
static inline i64 step(const walk *w, u32 tensor) { return w->stride[tensor][w->nd - 1]; }
void ker_walk_copy(walk *w, size_t bytes, void *dst, const void *src); // tensor 0 from tensor 1

// ---- sums of products (contract.c) ---------------------------------------------------------------------
// res[..] = sum over some letters of a[..] b[..]; a letter is an extent and its stride in each of the three,
// marked by where it occurs. Result wide, operands stored as t.
enum { IN_A = 1, IN_B = 2, IN_C = 4, LETTERS_MAX = 32 };
typedef struct {
  i64 n;
  i64 a, b, c; // strides; only those of `in` count
  u8 in;
} letter;
typedef struct {
  dtype t;
  const void *a, *b;
  void *c;  // f64 or i64
  bool add; // to what is there
  u32 n;
  letter l[LETTERS_MAX];
} contraction;
void ker_contract(run *r, const contraction *k);
#endif
