// norm.c - normalisations: softmax and its kin along one dimension, layer and root-mean-square norm, batch
// and group norm, local response.
//
// Idea: all statistics are taken over what the laws keep whole (of a batch in groups, each group), so pieces
// need nothing from each other. Gradients are formed from the inputs again instead of from saved statistics.
#include "kernel/internal.h"

static bool same_elems(run *r, u32 opd) {
  i64 n = ker_elems(&r->opd[opd]), m = ker_elems(&r->res[0]);
  return n == m || ker_misfit(r, "elements", n, m);
}

// ---- softmax, log_softmax, hardmax, gradient -----------------------------------------------------------

typedef struct {
  i64 outer, n, inner;
} lines;
static lines lines_of(run *r, const ker_tensor *x) {
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, -1), x->nd);
  return (lines){ker_span(x, 0, axis), x->dim[axis], ker_span(x, axis + 1, x->nd)};
}

static void softmax_line(opcode op, double *y, const double *x, i64 n, i64 step) {
  double top = -INFINITY, sum = 0;
  i64 best = 0;
  for (i64 k = 0; k < n; k++)
    if (x[k * step] > top) top = x[k * step], best = k;
  if (op == OP_hardmax) {
    for (i64 k = 0; k < n; k++) y[k * step] = k == best;
    return;
  }
  if (top == -INFINITY) top = 0; // all masked: not a number follows from 0/0
  for (i64 k = 0; k < n; k++) {
    double e = x[k * step] - top;
    sum += exp(e);
    y[k * step] = e;
  }
  double l = log(sum);
  for (i64 k = 0; k < n; k++) y[k * step] = op == OP_log_softmax ? y[k * step] - l : exp(y[k * step]) / sum;
}

bool ker_softmax(run *r) {
  lines l = lines_of(r, &r->opd[0]);
  if (!same_elems(r, 0)) return false;
  for (i64 o = 0; o < l.outer; o++)
    for (i64 i = 0; i < l.inner; i++) {
      i64 at = o * l.n * l.inner + i;
      softmax_line(r->op, F(&r->res[0]) + at, F(&r->opd[0]) + at, l.n, l.inner);
    }
  return true;
}

bool ker_softmax_dx(run *r) { // dx = y (dy - sum(dy y))
  lines l = lines_of(r, &r->opd[0]);
  if (!same_elems(r, 0) || !same_elems(r, 1)) return false;
  for (i64 o = 0; o < l.outer; o++)
    for (i64 i = 0; i < l.inner; i++) {
      i64 at = o * l.n * l.inner + i;
      const double *dy = F(&r->opd[0]) + at, *y = F(&r->opd[1]) + at;
      double *dx = F(&r->res[0]) + at, dot = 0;
      for (i64 k = 0; k < l.n; k++) dot += dy[k * l.inner] * y[k * l.inner];
      for (i64 k = 0; k < l.n; k++) dx[k * l.inner] = y[k * l.inner] * (dy[k * l.inner] - dot);
    }
  return true;
}

// ---- layer norm, root-mean-square norm -----------------------------------------------------------------

typedef struct {
  i64 rows, n;
  bool rms;
  double eps;
} rows;
static rows rows_of(run *r, const ker_tensor *x) {
  u32 axis = ker_axis(r, attr_int(r->at, A_axis, -1), x->nd);
  bool rms = r->op == OP_rmsnorm || r->op == OP_rmsnorm_dx || r->op == OP_rmsnorm_dg;
  return (rows){ker_span(x, 0, axis), ker_span(x, axis, x->nd), rms, attr_float(r->at, A_eps, 1e-5)};
}

typedef struct {
  double mean, inv;
} stats; // inv: one over the root of the variance
static stats stats_of(const rows *w, const double *x) {
  double mean = 0, var = 0;
  if (!w->rms) {
    for (i64 k = 0; k < w->n; k++) mean += x[k];
    mean /= (double)w->n;
  }
  for (i64 k = 0; k < w->n; k++) var += (x[k] - mean) * (x[k] - mean);
  return (stats){mean, 1 / sqrt(var / (double)w->n + w->eps)};
}

static bool fits_row(run *r, const ker_tensor *t, const rows *w) {
  return ker_elems(t) == w->n || ker_misfit(r, "normalised elements", ker_elems(t), w->n);
}

bool ker_layernorm(run *r) {
  rows w = rows_of(r, &r->opd[0]);
  const double *g = F(&r->opd[1]), *b = r->nopd > 2 ? F(&r->opd[2]) : NULL;
  if (!same_elems(r, 0) || !fits_row(r, &r->opd[1], &w) || (b && !fits_row(r, &r->opd[2], &w))) return false;
  for (i64 i = 0; i < w.rows; i++) {
    const double *x = F(&r->opd[0]) + i * w.n;
    double *y = F(&r->res[0]) + i * w.n;
    stats s = stats_of(&w, x);
    for (i64 k = 0; k < w.n; k++) y[k] = (x[k] - s.mean) * s.inv * g[k] + (b ? b[k] : 0);
  }
  return true;
}

bool ker_layernorm_dx(run *r) { // dx = inv (d - mean(d) - h mean(d h)), d = dy g, h the normalised x
  rows w = rows_of(r, &r->opd[1]);
  const double *g = F(&r->opd[2]);
  if (!same_elems(r, 0) || !same_elems(r, 1) || !fits_row(r, &r->opd[2], &w)) return false;
  for (i64 i = 0; i < w.rows; i++) {
    const double *dy = F(&r->opd[0]) + i * w.n, *x = F(&r->opd[1]) + i * w.n;
    double *dx = F(&r->res[0]) + i * w.n, sum = 0, dot = 0;
    stats s = stats_of(&w, x);
    for (i64 k = 0; k < w.n; k++) {
      sum += dy[k] * g[k];
      dot += dy[k] * g[k] * (x[k] - s.mean) * s.inv;
    }
    sum = w.rms ? 0 : sum / (double)w.n;
    dot /= (double)w.n;
    for (i64 k = 0; k < w.n; k++) dx[k] = s.inv * (dy[k] * g[k] - sum - (x[k] - s.mean) * s.inv * dot);
  }
  return true;
}

bool ker_layernorm_dg(run *r) {
  rows w = rows_of(r, &r->opd[1]);
  double *dg = F(&r->res[0]);
  i64 n = ker_elems(&r->opd[0]);
  if (!fits_row(r, &r->res[0], &w)) return false;
  if (n != w.rows * w.n) return ker_misfit(r, "elements", n, w.rows * w.n);
  memset(dg, 0, sizeof *dg * (size_t)w.n);
  for (i64 i = 0; i < w.rows; i++) {
    const double *dy = F(&r->opd[0]) + i * w.n, *x = F(&r->opd[1]) + i * w.n;
    stats s = stats_of(&w, x);
    for (i64 k = 0; k < w.n; k++) dg[k] += dy[k] * (x[k] - s.mean) * s.inv;
  }
  return true;
}

// ---- batch norm: statistics per channel, dimension 1 ---------------------------------------------------

typedef struct {
  i64 n, c, inner;
} planes; // element (i, channel, k) is at (i * c + channel) * inner + k
static planes planes_of(const ker_tensor *x) {
  return x->nd < 2 ? (planes){x->dim[0], 1, 1} : (planes){x->dim[0], x->dim[1], ker_span(x, 2, x->nd)};
}

#define EACH_OF_CHANNEL(p, ch, at)                                                                           \
  for (i64 i_ = 0; i_ < (p).n; i_++)                                                                         \
    for (i64 at = (i_ * (p).c + (ch)) * (p).inner, end_ = at + (p).inner; at < end_; at++)

static bool fits_channels(run *r, const planes *p, u32 from, u32 to) {
  for (u32 k = from; k < to; k++)
    if (ker_elems(&r->opd[k]) != p->c) return ker_misfit(r, "channels", ker_elems(&r->opd[k]), p->c);
  return true;
}

bool ker_batchnorm(run *r) {
  const ker_tensor *x = &r->opd[0];
  planes p = planes_of(x);
  double eps = attr_float(r->at, A_eps, 1e-5);
  if (!same_elems(r, 0) || !fits_channels(r, &p, 1, 5)) return false;
  for (i64 c = 0; c < p.c; c++) {
    double scale = F(&r->opd[1])[c] / sqrt(F(&r->opd[4])[c] + eps), mean = F(&r->opd[3])[c],
           b = F(&r->opd[2])[c];
    EACH_OF_CHANNEL(p, c, at) F(&r->res[0])[at] = (F(x)[at] - mean) * scale + b;
  }
  return true;
}

// The planes of one group of samples; groups are consecutive, and a piece has all of a group or nothing of
// it.
static planes planes_of_group(const planes *p, i64 number, i64 samples, i64 *from) {
  *from = number * samples * p->c * p->inner;
  return (planes){samples, p->c, p->inner};
}

static bool samples_of_group(run *r, u32 x, i64 *samples) {
  i64 groups = attr_int(r->at, A_bn_groups, 1), whole = r->opd[x].whole[0];
  *samples = whole / groups;
  return *samples == 0 || r->opd[x].dim[0] % *samples == 0 ||
         ker_misfit(r, "samples of a group", r->opd[x].dim[0], *samples);
}

static void channel_stats(const planes *p, i64 c, const double *x, double *mean, double *var) {
  double n = (double)(p->n * p->inner), sum = 0, sq = 0;
  EACH_OF_CHANNEL(*p, c, at) sum += x[at];
  sum /= n;
  EACH_OF_CHANNEL(*p, c, at) sq += (x[at] - sum) * (x[at] - sum);
  *mean = sum;
  *var = sq / n;
}

// y of one group; its statistics are the results where it is the first of the batch.
static void batchnorm_group(run *r, const planes *p, i64 from, bool first) {
  const double *x = F(&r->opd[0]) + from;
  double *y = F(&r->res[0]) + from, eps = attr_float(r->at, A_eps, 1e-5), mean, var;
  for (i64 c = 0; c < p->c; c++) {
    channel_stats(p, c, x, &mean, &var);
    double scale = F(&r->opd[1])[c] / sqrt(var + eps), b = F(&r->opd[2])[c];
    EACH_OF_CHANNEL(*p, c, at) y[at] = (x[at] - mean) * scale + b;
    if (first) F(&r->res[1])[c] = mean, F(&r->res[2])[c] = var;
  }
}

// Pieces without the first group give zeros for its statistics: they are a sum over the pieces.
bool ker_batchnorm_train(run *r) {
  const ker_tensor *x = &r->opd[0];
  planes p = planes_of(x);
  i64 samples, from;
  if (!same_elems(r, 0) || !fits_channels(r, &p, 1, 3) || !samples_of_group(r, 0, &samples)) return false;
  for (u32 k = 1; k < 3; k++) memset(r->res[k].data, 0, sizeof(double) * (size_t)p.c);
  for (i64 g = 0; samples && g < p.n / samples; g++) {
    planes q = planes_of_group(&p, g, samples, &from);
    batchnorm_group(r, &q, from, (x->index[0] ? x->index[0][g * samples] : g) == 0);
  }
  return true;
}

static void batchnorm_dx_group(run *r, const planes *p, i64 from) {
  const double *dy = F(&r->opd[0]) + from, *x = F(&r->opd[1]) + from, *g = F(&r->opd[2]);
  double *dx = F(&r->res[0]) + from, eps = attr_float(r->at, A_eps, 1e-5), n = (double)(p->n * p->inner);
  for (i64 c = 0; c < p->c; c++) {
    double mean, var, sum = 0, dot = 0;
    channel_stats(p, c, x, &mean, &var);
    double inv = 1 / sqrt(var + eps);
    EACH_OF_CHANNEL(*p, c, at) sum += dy[at], dot += dy[at] * (x[at] - mean) * inv;
    EACH_OF_CHANNEL(*p, c, at)
    dx[at] = g[c] * inv * (dy[at] - sum / n - (x[at] - mean) * inv * dot / n);
    F(&r->res[1])[c] += dot;
    F(&r->res[2])[c] += sum;
  }
}

bool ker_batchnorm_dx(run *r) { // dy, x, g -> dx, dg, db
  planes p = planes_of(&r->opd[1]);
  i64 samples, from;
  if (!same_elems(r, 0) || !same_elems(r, 1) || !fits_channels(r, &p, 2, 3)) return false;
  if (!samples_of_group(r, 1, &samples)) return false;
  for (u32 k = 1; k < 3; k++) memset(r->res[k].data, 0, sizeof(double) * (size_t)p.c);
  for (i64 g = 0; samples && g < p.n / samples; g++) {
    planes q = planes_of_group(&p, g, samples, &from);
    batchnorm_dx_group(r, &q, from);
  }
  return true;
}

// ---- group norm: rows are groups of channels -----------------------------------------------------------

typedef struct {
  planes p;
  rows w;
  i64 groups, each; // channels of a group
} grouping;

static bool grouping_of(run *r, const ker_tensor *x, grouping *g) {
  planes p = planes_of(x);
  i64 groups = attr_int(r->at, A_groups, 0);
  if (groups == 0) groups = p.c;
  if (groups && p.c % groups) return ker_misfit(r, "channels", p.c, groups);
  i64 each = groups ? p.c / groups : 0;
  *g = (grouping){p, {p.n * groups, each * p.inner, false, attr_float(r->at, A_eps, 1e-5)}, groups, each};
  return true;
}

static i64 channel_of(const grouping *g, i64 row, i64 k) {
  return row % g->groups * g->each + k / g->p.inner;
}

bool ker_groupnorm(run *r) {
  const ker_tensor *x = &r->opd[0];
  grouping g = {0};
  if (!grouping_of(r, x, &g) || !same_elems(r, 0) || !fits_channels(r, &g.p, 1, 3)) return false;
  for (i64 i = 0; i < g.w.rows; i++) {
    const double *v = F(x) + i * g.w.n;
    stats s = stats_of(&g.w, v);
    for (i64 k = 0; k < g.w.n; k++) {
      i64 c = channel_of(&g, i, k);
      F(&r->res[0])[i * g.w.n + k] = (v[k] - s.mean) * s.inv * F(&r->opd[1])[c] + F(&r->opd[2])[c];
    }
  }
  return true;
}

bool ker_groupnorm_dx(run *r) { // as layernorm_dx, with a weight per channel
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1];
  grouping g = {0};
  if (!grouping_of(r, x, &g) || !same_elems(r, 0) || !same_elems(r, 1) || !fits_channels(r, &g.p, 2, 3))
    return false;
  for (i64 i = 0; i < g.w.rows; i++) {
    const double *v = F(x) + i * g.w.n, *d = F(dy) + i * g.w.n, *weight = F(&r->opd[2]);
    double sum = 0, dot = 0;
    stats s = stats_of(&g.w, v);
    for (i64 k = 0; k < g.w.n; k++) {
      double t = d[k] * weight[channel_of(&g, i, k)];
      sum += t;
      dot += t * (v[k] - s.mean) * s.inv;
    }
    sum /= (double)g.w.n, dot /= (double)g.w.n;
    for (i64 k = 0; k < g.w.n; k++) F(&r->res[0])
    [i * g.w.n + k] = s.inv * (d[k] * weight[channel_of(&g, i, k)] - sum - (v[k] - s.mean) * s.inv * dot);
  }
  return true;
}

bool ker_groupnorm_dg(run *r) {
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *dg = &r->res[0];
  grouping g = {0};
  if (!grouping_of(r, x, &g)) return false;
  if (ker_elems(dy) != ker_elems(x)) return ker_misfit(r, "elements", ker_elems(dy), ker_elems(x));
  if (ker_elems(dg) != g.p.c) return ker_misfit(r, "channels", ker_elems(dg), g.p.c);
  memset(dg->data, 0, sizeof(double) * (size_t)g.p.c);
  for (i64 i = 0; i < g.w.rows; i++) {
    const double *v = F(x) + i * g.w.n, *d = F(dy) + i * g.w.n;
    stats s = stats_of(&g.w, v);
    for (i64 k = 0; k < g.w.n; k++) F(dg)[channel_of(&g, i, k)] += d[k] * (v[k] - s.mean) * s.inv;
  }
  return true;
}

bool ker_lrn(run *r) { // y = x / (value + alpha/size sum x^2)^beta, the sum over `size` neighbouring channels
  const ker_tensor *x = &r->opd[0];
  planes p = planes_of(x);
  i64 size = attr_int(r->at, A_size, 1);
  double alpha = attr_float(r->at, A_alpha, 1e-4), beta = attr_float(r->at, A_beta, 0.75);
  double value = attr_float(r->at, A_value, 1);
  if (!same_elems(r, 0)) return false;
  for (i64 c = 0; c < p.c; c++) {
    i64 lo = MAX(c - (size - 1) / 2, 0), hi = MIN(c + size / 2, p.c - 1);
    EACH_OF_CHANNEL(p, c, at) {
      double sum = 0;
      for (i64 k = lo; k <= hi; k++) {
        double v = F(x)[at + (k - c) * p.inner];
        sum += v * v;
      }
      F(&r->res[0])[at] = F(x)[at] / pow(value + alpha / (double)size * sum, beta);
    }
  }
  return true;
}
