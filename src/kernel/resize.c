// resize.c - interpolation to other extents, as ONNX defines it.
//
// Idea: every mode is separable, so each dimension is one small sparse matrix: per result index the operand
// indices it reads and their weights. Dimensions are done one after the other; one that keeps its extent and
// its coordinates is left alone. The gradient takes the same matrices the other way.
#include "kernel/internal.h"

typedef struct {
  const char *mode, *coord, *nearest;
  double cubic, outside; // coefficient; value beyond the region of interest
  bool exclude, antialias, crops;
} how;

// The operand's coordinate of result index x. n_in, n_out: extents; roi only for tf_crop_and_resize.
static double coordinate(const how *h, double x, double scale, double n_in, double n_out, double lo,
                         double hi) {
  const char *c = h->coord;
  if (!strcmp(c, "asymmetric")) return x / scale;
  if (!strcmp(c, "align_corners")) return n_out == 1 ? 0 : x * (n_in - 1) / (n_out - 1);
  if (!strcmp(c, "pytorch_half_pixel")) return n_out > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (!strcmp(c, "tf_half_pixel_for_nn")) return (x + 0.5) / scale;
  if (!strcmp(c, "tf_crop_and_resize"))
    return n_out > 1 ? lo * (n_in - 1) + x * (hi - lo) * (n_in - 1) / (n_out - 1)
                     : 0.5 * (lo + hi) * (n_in - 1);
  if (!strcmp(c, "half_pixel_symmetric")) {
    double adjust = n_out / (scale * n_in), centre = n_in / 2;
    return centre * (1 - adjust) + (x + 0.5) / scale - 0.5;
  }
  return (x + 0.5) / scale - 0.5;
}

static double kernel_at(const how *h, double d) {
  d = fabs(d);
  if (!strcmp(h->mode, "linear")) return d < 1 ? 1 - d : 0;
  double a = h->cubic;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static i64 nearest_index(const how *h, double x, i64 n) {
  const char *m = h->nearest;
  double v = !strcmp(m, "floor")               ? floor(x)
             : !strcmp(m, "ceil")              ? ceil(x)
             : !strcmp(m, "round_prefer_ceil") ? floor(x + 0.5)
                                               : ceil(x - 0.5);
  return v < 0 ? 0 : v > (double)(n - 1) ? n - 1 : (i64)v;
}

typedef struct {
  i64 width; // entries per result index
  i64 *at;   // -1: the constant
  double *weight;
} matrix;

static matrix matrix_of(run *r, const how *h, i64 n_in, i64 n_out, double scale, double lo, double hi) {
  bool nearest = !strcmp(h->mode, "nearest");
  double reach = !strcmp(h->mode, "cubic") ? 2 : 1, wide = h->antialias && scale < 1 ? 1 / scale : 1;
  matrix m = {.width = nearest ? 1 : 2 * (i64)ceil(reach * wide) + 1};
  m.at = NEWN(r->a, i64, MAX(n_out * m.width, 1));
  m.weight = NEWN(r->a, double, MAX(n_out * m.width, 1));
  for (i64 o = 0; o < n_out; o++) {
    double x = coordinate(h, (double)o, scale, (double)n_in, (double)n_out, lo, hi), sum = 0;
    i64 *at = m.at + o * m.width;
    double *weight = m.weight + o * m.width;
    bool outside = h->crops && (x < 0 || x > (double)(n_in - 1));
    if (nearest || outside) {
      for (i64 k = 0; k < m.width; k++) at[k] = outside ? -1 : nearest_index(h, x, n_in), weight[k] = k == 0;
      continue;
    }
    i64 first = (i64)floor(x) - (m.width - 1) / 2;
    for (i64 k = 0; k < m.width; k++) {
      i64 i = first + k;
      at[k] = i < 0 ? 0 : i >= n_in ? n_in - 1 : i;
      weight[k] = h->exclude && at[k] != i ? 0 : kernel_at(h, ((double)i - x) / wide);
      sum += weight[k];
    }
    for (i64 k = 0; k < m.width; k++) weight[k] /= sum;
  }
  return m;
}

// One dimension: out[pre][n_out][post] from in[pre][n_in][post].
static void apply(const matrix *m, const how *h, double *out, const double *in, i64 pre, i64 n_in, i64 n_out,
                  i64 post) {
  for (i64 p = 0; p < pre; p++)
    for (i64 o = 0; o < n_out; o++) {
      double *to = out + (p * n_out + o) * post;
      memset(to, 0, sizeof *to * (size_t)post);
      for (i64 k = 0; k < m->width; k++) {
        double w = m->weight[o * m->width + k];
        i64 at = m->at[o * m->width + k];
        if (w == 0) continue;
        const double *from = in + (p * n_in + at) * post;
        for (i64 q = 0; q < post; q++) to[q] += w * (at < 0 ? h->outside : from[q]);
      }
    }
}

// The transposed matrix: out[pre][n_in][post] from in[pre][n_out][post]. The constant takes nothing.
static void apply_back(const matrix *m, double *out, const double *in, i64 pre, i64 n_in, i64 n_out,
                       i64 post) {
  memset(out, 0, sizeof *out * (size_t)(pre * n_in * post));
  for (i64 p = 0; p < pre; p++)
    for (i64 o = 0; o < n_out; o++)
      for (i64 k = 0; k < m->width; k++) {
        double w = m->weight[o * m->width + k];
        i64 at = m->at[o * m->width + k];
        if (w == 0 || at < 0) continue;
        const double *from = in + (p * n_out + o) * post;
        double *to = out + (p * n_in + at) * post;
        for (i64 q = 0; q < post; q++) to[q] += w * from[q];
      }
}

static u32 floats(const run *r, attr_key k, const double **v) {
  const attr *a = attr_get(r->at, k);
  if (a) *v = a->u.floats;
  return a ? a->n : 0;
}

static how how_of(const run *r) {
  how h = {.mode = ker_mode(r, A_mode, "nearest"),
           .coord = ker_mode(r, A_coord, "half_pixel"),
           .nearest = ker_mode(r, A_nearest, "round_prefer_floor"),
           .cubic = attr_float(r->at, A_alpha, -0.75),
           .outside = attr_float(r->at, A_value, 0),
           .exclude = attr_int(r->at, A_exclude, 0),
           .antialias = attr_int(r->at, A_antialias, 0)};
  h.crops = !strcmp(h.coord, "tf_crop_and_resize");
  return h;
}

// The elements `at` through all dimensions, from x to y or back; NULL after a diagnostic.
static const double *through(run *r, const ker_tensor *x, const ker_tensor *y, const double *at, bool back) {
  const how h = how_of(r);
  const double *scales = NULL, *roi = NULL;
  const ker_tensor *from = back ? y : x;
  u32 ns = floats(r, A_scales, &scales), nr = floats(r, A_roi, &roi);
  i64 dim[DIMS_MAX];
  memcpy(dim, from->dim, sizeof dim);
  for (u32 d = 0; d < x->nd; d++) {
    i64 n_in = x->dim[d], n_out = y->dim[d], pre = 1, post = 1;
    double scale = ns ? scales[d] : (double)y->whole[d] / (double)x->whole[d];
    double lo = nr ? roi[d] : 0, hi = nr ? roi[x->nd + d] : 1;
    if (n_in == n_out && scale == 1 && lo == 0 && hi == 1) continue;
    if (from->index[d]) {
      ker_misfit(r, "a resized dimension must be whole:", from->dim[d], from->whole[d]);
      return NULL;
    }
    for (u32 e = 0; e < x->nd; e++) *(e < d ? &pre : &post) *= e == d ? 1 : dim[e];
    matrix m = matrix_of(r, &h, n_in, n_out, scale, lo, hi);
    dim[d] = back ? n_in : n_out;
    double *next = NEWN(r->a, double, pre *dim[d] * post);
    if (back)
      apply_back(&m, next, at, pre, n_in, n_out, post);
    else
      apply(&m, &h, next, at, pre, n_in, n_out, post);
    at = next;
  }
  return at;
}

bool ker_resize(run *r) {
  const ker_tensor *x = &r->opd[0], *y = &r->res[0];
  i64 n = ker_elems(x), total = ker_elems(y);
  double *given = NEWN(r->a, double, n);
  if (is_float(x))
    memcpy(given, x->data, sizeof *given * (size_t)n);
  else
    ker_load_f64(given, is_uint(x) ? DT_U64 : DT_I64, x->data, n);
  const double *at = through(r, x, y, given, false);
  if (!at) return false;
  if (is_float(y))
    memcpy(y->data, at, sizeof *at * (size_t)total);
  else
    for (i64 i = 0; i < total; i++) I(y)[i] = (i64)rint(at[i]);
  return true;
}

bool ker_resize_dx(run *r) {
  const ker_tensor *dy = &r->opd[0], *dx = &r->res[0];
  const double *at = through(r, dx, dy, F(dy), true);
  if (at) memcpy(dx->data, at, sizeof *at * (size_t)ker_elems(dx));
  return at != NULL;
}
