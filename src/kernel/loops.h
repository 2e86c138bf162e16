// loops.h - the inner loops of kernels, over elements next to each other: of f32 or of f64.
//
// Idea: they are written once (loops_body.h) and compiled for both types and for wider registers. No result depends on
// the registers: elements are computed alike wherever they lie, and sums are in f64, in LANES lanes that are added at the end.
#ifndef HEDDLE_KERNEL_LOOPS_H
#define HEDDLE_KERNEL_LOOPS_H
#include "op/op.h"

typedef struct { // what an element-wise operator is, beside its name
  opcode op;
  double alpha;
  bool tanh_form, of_x; // gelu by tanh; the remainder's sign
} elementwise;

typedef struct { // a row of a normalisation
  i64 n;
  double mean, inv; // inv: one over the root of the variance
} row_stats;

typedef struct {
  double lr, b1, b2, eps, decay, c1, c2;
  bool decoupled;
} adam_step;

// Data are of the loops' type; strides are in elements, 0 or 1. False: the operator is not known.
typedef struct {
  bool (*unary)(const elementwise *e, void *y, const void *x, i64 n);
  bool (*binary)(const elementwise *e, void *z, const void *x, i64 sx, const void *y, i64 sy, i64 n);
  bool (*compare)(opcode op, i64 *z, const void *x, i64 sx, const void *y, i64 sy, i64 n);
  void (*select)(void *z, const i64 *m, i64 sm, const void *x, i64 sx, const void *y, i64 sy, i64 n);
  void (*affine)(void *y, double a, const void *x, double p, double b, i64 n); // y = a (x - p) + b
  void (*affine_of)(void *z, double a, const void *x, double p, double b, const void *y, double q,
                    i64 n); // z = a (x - p) + b (y - q)
  // Sums, and folds of n elements, any stride, into *a (reduce_max, _min, _prod, _sum).
  double (*sum)(const void *x, i64 n);
  double (*sum_of_squares)(const void *x, double mean, i64 n);      // of x - mean
  double (*dot)(const void *y, const void *x, double mean, i64 n);  // of y (x - mean)
  void (*fold)(opcode op, double *a, const void *x, i64 sx, i64 n); // of n elements into one
  void (*fold_rows)(opcode op, double *a, const void *x, i64 n);    // a[i] with x[i]
  void (*store)(void *y, const double *x, double scale, i64 n);     // rounded
  // Rows.
  void (*softmax)(opcode op, void *y, const void *x, i64 n);
  void (*softmax_dx)(void *dx, const void *dy, const void *y, i64 n);
  // Attention, a stretch of a row of scores: x = a x + bias, and `value` where the mask is 0 (NULL: none). The exponentials
  // of x less the largest so far, in place, added to *sum: returned is what all before is multiplied by. dx = p (dp - dot)
  // in dp, of p = exp(x - lse), in x.
  void (*attend_scores)(void *x, i64 n, double a, const void *bias, i64 sb);
  void (*attend_mask)(void *x, i64 n, const u8 *mask, i64 sm, double value);
  double (*attend_exp)(void *x, i64 n, double *top, double *sum);
  void (*attend_dx)(void *x, void *dp, i64 n, double lse, double dot);
  double (*log_sum_exp)(const void *x, i64 n);
  double (*sum_exp)(const void *x, double top, i64 n);                            // of x - top
  void (*xent_dx)(void *dx, const void *x, double lse, double g, i64 hit, i64 n); // hit: the label, or -1
  row_stats (*stats)(const void *x, i64 n, bool rms, double eps);
  void (*norm)(const row_stats *s, void *y, const void *x, const void *g, const void *b); // b: NULL is none
  void (*norm_dx)(const row_stats *s, bool rms, void *dx, const void *dy, const void *x, const void *g);
  void (*norm_dg)(const row_stats *s, double *dg, const void *dy, const void *x, i64 from, i64 end);
  // Optimizers.
  void (*sgd)(void *w2, const void *w, const void *g, double lr, double decay, i64 n);
  void (*momentum)(void *w2, void *m2, const void *w, const void *g, const void *m, double lr, double mu,
                   double decay, bool ahead, i64 n);
  void (*adam)(const adam_step *s, void *w2, void *m2, void *v2, const void *w, const void *g, const void *m,
               const void *v, i64 n);
} ker_loops;

const ker_loops *ker_loops_of(dtype t);    // t: f32 or f64
const ker_loops *ker_loops_plain(dtype t); // for the registers that every machine has: the same numbers
#endif
