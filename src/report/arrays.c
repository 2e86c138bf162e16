// arrays.c - tensors in a line each: their extents and what their elements are like.
#include "kernel/kernel.h"
#include "report/report.h"
#include <math.h>

typedef struct {
  double least, mean, most;
  i64 odd; // infinite or not a number; the rest describe the others
} summary;

static summary summarise(const eval_array *x) {
  enum { RUN = 1024 };
  summary s = {INFINITY, 0, -INFINITY, 0};
  double part[RUN];
  i64 n = shape_elems(&x->s), bytes = dtype_bytes(x->s.t);
  for (i64 at = 0; at < n; at += RUN) {
    i64 run = MIN(n - at, RUN);
    ker_load_f64(part, x->s.t, (const char *)x->data + at * bytes, run);
    for (i64 i = 0; i < run; i++) {
      if (!isfinite(part[i])) {
        s.odd++;
        continue;
      }
      s.least = fmin(s.least, part[i]);
      s.most = fmax(s.most, part[i]);
      s.mean += part[i];
    }
  }
  s.mean = n > s.odd ? s.mean / (double)(n - s.odd) : NAN;
  if (n == s.odd) s.least = s.most = NAN;
  return s;
}

void report_arrays(report *r, arena *a, const eval_array *x, const char *const *name, u32 n) {
  (void)a;
  static const column cols[] = {
      {"name", "name"}, {"dtype", "type"}, {"shape", "shape"},          {"min", "least"},
      {"mean", "mean"}, {"max", "most"},   {"not_finite", "not finite"}};
  report_table(r, "arrays", cols, COUNT_OF(cols));
  for (u32 i = 0; i < n; i++) {
    summary s = summarise(&x[i]);
    report_row(r, (cell[]){cell_text(name[i]), cell_text(dtype_name(x[i].s.t)),
                           cell_dims(x[i].s.dim, x[i].s.nd), cell_x(CELL_REAL, s.least),
                           cell_x(CELL_REAL, s.mean), cell_x(CELL_REAL, s.most), cell_i(CELL_INT, s.odd)});
  }
  report_top(r, 40);
}
