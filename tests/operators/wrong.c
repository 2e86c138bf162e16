// wrong.c - operators from outside that lack something, or whose law is not what their kernel computes.
#include <heddle.h>
#include <math.h>

static int64_t count(const heddle_piece *p) {
  int64_t n = 1;
  for (uint32_t d = 0; d < p->ndims; d++) n *= p->dims[d];
  return n;
}

static bool twice(void *arg, const heddle_application *x) {
  const double *a = x->operands[0].data;
  double *y = x->results[0].data;
  (void)arg;
  for (int64_t i = 0; i < count(x->results); i++) y[i] = 2 * a[i];
  return true;
}

// Divides by the sum of a row, of which a rank that has a part of the row knows a part only.
static bool share(void *arg, const heddle_application *x) {
  const double *a = x->operands[0].data;
  double *y = x->results[0].data;
  const int64_t d = x->results[0].dims[x->results[0].ndims - 1];
  (void)arg;
  for (int64_t i = 0; i < count(x->results); i += d) {
    double sum = 1;
    for (int64_t k = 0; k < d; k++) sum += a[i + k] * a[i + k];
    for (int64_t k = 0; k < d; k++) y[i + k] = a[i + k] / sum;
  }
  return true;
}

// Adds a row up.
static bool total(void *arg, const heddle_application *x) {
  const double *a = x->operands[0].data;
  double *y = x->results[0].data;
  const heddle_piece *in = &x->operands[0];
  const int64_t d = in->dims[in->ndims - 1];
  (void)arg;
  for (int64_t i = 0; i < count(x->results); i++) {
    y[i] = 0;
    for (int64_t k = 0; k < d; k++) y[i] += a[i * d + k];
  }
  return true;
}

static bool fails(void *arg, const heddle_application *x) {
  (void)arg, (void)x;
  return false;
}

static double minus(void *arg, const heddle_application *x) {
  (void)arg, (void)x;
  return -1;
}

static const heddle_operator_row rows[] = {
    {.name = "no_kernel", .operands = "x", .law = "...->...", .gradient = "%d_x = identity %d_y", .flops = 1},
    {.name = "no_gradient", .operands = "x", .law = "...->...", .flops = 1, .kernel = twice},
    {.name = "failing", .operands = "x", .law = "...->...", .gradient = "zero", .kernel = fails},
    {.name = "free_of_cost", .operands = "x", .law = "...->...", .kernel = twice, .bytes_of = minus},
    // The last dimension is not to be split, and the law says that it is.
    {.name = "bad_law",
     .operands = "x",
     .law = "...d->...d",
     .gradient = "%d_x = identity %d_y",
     .kernel = share},
    // The same with another law.
    {.name = "good_law",
     .operands = "x",
     .law = "...D->...D",
     .gradient = "%d_x = identity %d_y",
     .kernel = share},
    // Parts of a row are to be added up, and the row says that the largest of them counts.
    {.name = "bad_reduction",
     .operands = "x",
     .law = "...d->...",
     .reduction = "max",
     .gradient = "zero",
     .kernel = total},
    // Its gradient has another shape than its operand.
    {.name = "bad_gradient",
     .operands = "x",
     .law = "...d->...d",
     .gradient = "%d_x = reduce_sum %d_y",
     .kernel = twice},
    {.name = "bad_line",
     .operands = "x",
     .law = "...d->...d",
     .gradient = "%a = transpose %d_y {perm=[0]}\n%d_x = add %a, %x",
     .kernel = twice},
};

const heddle_operator_row *heddle_operators(uint32_t *n);
const heddle_operator_row *heddle_operators(uint32_t *n) {
  *n = sizeof rows / sizeof *rows;
  return rows;
}
