// kernel.h - plain reference kernels: what every operator computes. Layer 3: knows no programs.
//
// Idea: a kernel sees one rank's pieces. A piece knows the global index of each of its elements, so that the
// few operators whose meaning depends on where an element lies (means, masks, picks by index, random numbers)
// give on the pieces exactly what they give on the whole; all others never look. Floats are computed as f64, but as
// f32 by the operators of networks where all floats are stored so, with sums in f64 except those of a BLAS; every integer
// type as i64 with the stored type's wrap-around. Results are rounded to nearest even when they are stored.
#ifndef HEDDLE_KERNEL_H
#define HEDDLE_KERNEL_H
#include "op/op.h"

typedef struct ker_tensor {
  dtype t;
  u32 nd;
  i64 dim[DIMS_MAX];          // extents of the piece
  i64 whole[DIMS_MAX];        // extents of the tensor it is a piece of
  const i64 *index[DIMS_MAX]; // index in the piece -> index in the tensor; NULL: the dimension is whole
  void *data;                 // dim[0] * .. * dim[nd-1] elements, last dimension fastest
} ker_tensor;

typedef struct {
  opcode op;
  attrs at;
  u32 nopd, nres;
  const ker_tensor *opd;
  ker_tensor *res; // extents, maps and room for the elements are the caller's; a result may take the storage
      // of the operand that it continues (op_continues) where the row is OPF_INPLACE and both have
      // one type and extents
  const ker_tensor *blob; // elements that the attribute `data` names (constant), whole
  arena *scratch;         // for the duration of the run, not the session's; NULL: one is made
  arena **temps; // likewise, of threads but the first: threads - 1; NULL: they are made as they are needed
  i64 step;      // number of the optimizer's update; 0: what the attribute says
  int threads;   // of large products, at most; results do not depend on it
} ker_args;

// Computes the results. Floating-point tensors may have any float type, not only the one the program states:
// all of them as f64 is how plans are verified. False and a diagnostic where elements are outside the
// operator's domain (E_VALUE), pieces do not fit together (E_LAYOUT), a piece ker_lacks elements that a
// result needs (E_COVERAGE), or the operator has no kernel on one rank (communication, calls).
bool kernel_run(ctx *c, const ker_args *k, loc where);

// The same on whole tensors whose results are not yet made: shapes by the operator's law, elements in `a`.
// For constants and for shapes that depend on values.
bool kernel_fold(ctx *c, arena *a, opcode op, attrs at, const ker_tensor *blob, u32 nopd,
                 const ker_tensor *opd, u32 nres, ker_tensor *res, loc where);

// Products of f32 and f64 by OpenBLAS, from now on, or not: by default where the machine has it, unless $HEDDLE_BLAS is
// "none"; it may name another library. False: it is off, or there is none. Not while kernels run.
bool kernel_set_blas(bool on);
const char *kernel_blas(void); // what multiplies: "OpenBLAS 0.3.21", another library's file, or "no BLAS"
// Opens that library, and multiplies once on so many threads at once: what it keeps for each is there then. False: OpenBLAS is not
// used, as limits of the process (ulimit -v, -d) leave no room for what it keeps.
bool kernel_warm(int threads);

ker_tensor ker_whole(const shape *s, void *data);
i64 ker_elems(const ker_tensor *t);

// ---- pieces of pieces ----------------------------------------------------------------------------------
// dst[dat[0][i0], dat[1][i1], ..] = src[sat[0][i0], sat[1][i1], ..] for all i < n. An absent table (NULL)
// means the index itself; entries that are negative are left out. Elements have `bytes` bytes.
typedef struct {
  u32 nd;
  i64 n[DIMS_MAX], ddim[DIMS_MAX], sdim[DIMS_MAX];
  const i64 *dat[DIMS_MAX], *sat[DIMS_MAX];
} ker_box;
void ker_pick(const ker_box *b, size_t bytes, void *dst, const void *src, arena *scratch);

// ---- element types -------------------------------------------------------------------------------------
// n elements of type t to and from f64 or i64. To f16 and bf16: nearest, ties to even; to integers: the low
// bits. Reading integers as f64 and floats as i64 (toward zero, saturated; not a number: 0) is allowed.
void ker_load_f64(double *dst, dtype t, const void *src, i64 n);
void ker_load_i64(i64 *dst, dtype t, const void *src, i64 n);
void ker_store_f64(void *dst, dtype t, const double *src, i64 n); // t: a float type
void ker_store_i64(void *dst, dtype t, const i64 *src, i64 n);    // t: not a float type
// Any type to any other, as `cast` does it.
void ker_convert(void *dst, dtype to, const void *src, dtype from, i64 n);

// ---- random numbers ------------------------------------------------------------------------------------
// A function of key and counter alone, so that whoever needs element i draws the same number.
double ker_uniform(u64 key, u64 i); // [0,1)
double ker_normal(u64 key, u64 i);  // mean 0, variance 1
#endif
