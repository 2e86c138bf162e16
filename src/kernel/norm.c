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

// A line whose elements lie apart is brought together, and what becomes of it is put back.
typedef struct {
  run *r;
  lines l;
} line_job;

static void line_together(const run *r, const lines *l, void *to, const ker_tensor *x, i64 at) {
  if (r->real == DT_F32)
    for (i64 k = 0; k < l->n; k++) ((float *)to)[k] = ((const float *)x->data)[at + k * l->inner];
  else
    for (i64 k = 0; k < l->n; k++) ((double *)to)[k] = F(x)[at + k * l->inner];
}

static void line_apart(const run *r, const lines *l, const ker_tensor *y, i64 at, const void *from) {
  if (r->real == DT_F32)
    for (i64 k = 0; k < l->n; k++) ((float *)y->data)[at + k * l->inner] = ((const float *)from)[k];
  else
    for (i64 k = 0; k < l->n; k++) F(y)[at + k * l->inner] = ((const double *)from)[k];
}

static void one_line(const run *r, void *y, const void *x, const void *x2, i64 n) {
  if (r->op == OP_softmax_dx)
    r->v->softmax_dx(y, x, x2, n);
  else
    r->v->softmax(r->op, y, x, n);
}

static void lines_next(const void *arg, i64 from, i64 end) { // inner == 1
  const line_job *j = arg;
  const run *r = j->r;
  for (i64 at = from * j->l.n; from < end; from++, at += j->l.n)
    one_line(r, ker_at(r, &r->res[0], at), ker_at(r, &r->opd[0], at),
             r->nopd > 1 ? ker_at(r, &r->opd[1], at) : NULL, j->l.n);
}

static bool softmax_of(run *r) {
  const lines l = lines_of(r, &r->opd[0]);
  const line_job j = {r, l};
  if (!same_elems(r, 0) || (r->nopd > 1 && !same_elems(r, 1))) return false;
  if (l.inner == 1) {
    ker_deal(r, l.outer, l.n, lines_next, &j);
    return true;
  }
  double *x = NEWN(r->a, double, l.n), *x2 = NEWN(r->a, double, l.n), *y = NEWN(r->a, double, l.n);
  for (i64 o = 0; o < l.outer; o++)
    for (i64 i = 0; i < l.inner; i++) {
      const i64 at = o * l.n * l.inner + i;
      line_together(r, &l, x, &r->opd[0], at);
      if (r->nopd > 1) line_together(r, &l, x2, &r->opd[1], at);
      one_line(r, y, x, x2, l.n);
      line_apart(r, &l, &r->res[0], at, y);
    }
  return true;
}

bool ker_softmax(run *r) { return softmax_of(r); }
bool ker_softmax_dx(run *r) { return softmax_of(r); }

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

static bool fits_row(run *r, const ker_tensor *t, const rows *w) {
  return ker_elems(t) == w->n || ker_misfit(r, "normalised elements", ker_elems(t), w->n);
}

typedef struct {
  const run *r;
  rows w;
  row_stats *s; // of every row, for what goes by columns
  double *dg;
} norm_job;

static void norm_rows(const void *arg, i64 from, i64 end) {
  const norm_job *j = arg;
  const run *r = j->r;
  for (i64 i = from; i < end; i++) {
    const void *x = ker_at(r, &r->opd[0], i * j->w.n);
    const row_stats s = r->v->stats(x, j->w.n, j->w.rms, j->w.eps);
    r->v->norm(&s, ker_at(r, &r->res[0], i * j->w.n), x, r->opd[1].data, r->nopd > 2 ? r->opd[2].data : NULL);
  }
}

bool ker_layernorm(run *r) {
  const norm_job j = {.r = r, .w = rows_of(r, &r->opd[0])};
  if (!same_elems(r, 0)) return false;
  for (u32 k = 1; k < r->nopd; k++)
    if (!fits_row(r, &r->opd[k], &j.w)) return false;
  ker_deal(r, j.w.rows, j.w.n, norm_rows, &j);
  return true;
}

static void norm_dx_rows(const void *arg, i64 from, i64 end) {
  const norm_job *j = arg;
  const run *r = j->r;
  for (i64 i = from; i < end; i++) {
    const void *x = ker_at(r, &r->opd[1], i * j->w.n);
    const row_stats s = r->v->stats(x, j->w.n, j->w.rms, j->w.eps);
    r->v->norm_dx(&s, j->w.rms, ker_at(r, &r->res[0], i * j->w.n), ker_at(r, &r->opd[0], i * j->w.n), x,
                  r->opd[2].data);
  }
}

bool ker_layernorm_dx(run *r) {
  const norm_job j = {.r = r, .w = rows_of(r, &r->opd[1])};
  if (!same_elems(r, 0) || !same_elems(r, 1) || !fits_row(r, &r->opd[2], &j.w)) return false;
  ker_deal(r, j.w.rows, j.w.n, norm_dx_rows, &j);
  return true;
}

static void stats_rows(const void *arg, i64 from, i64 end) {
  const norm_job *j = arg;
  for (i64 i = from; i < end; i++)
    j->s[i] = j->r->v->stats(ker_at(j->r, &j->r->opd[1], i * j->w.n), j->w.n, j->w.rms, j->w.eps);
}

static void norm_dg_columns(const void *arg, i64 from, i64 end) {
  const norm_job *j = arg;
  const run *r = j->r;
  for (i64 i = 0; i < j->w.rows; i++)
    r->v->norm_dg(&j->s[i], j->dg, ker_at(r, &r->opd[0], i * j->w.n), ker_at(r, &r->opd[1], i * j->w.n), from,
                  end);
}

bool ker_layernorm_dg(run *r) {
  norm_job j = {.r = r, .w = rows_of(r, &r->opd[1])};
  i64 n = ker_elems(&r->opd[0]);
  if (!fits_row(r, &r->res[0], &j.w)) return false;
  if (n != j.w.rows * j.w.n) return ker_misfit(r, "elements", n, j.w.rows * j.w.n);
  j.s = NEWN(r->a, row_stats, j.w.rows), j.dg = ZNEWN(r->a, double, j.w.n);
  ker_deal(r, j.w.rows, j.w.n, stats_rows, &j);
  ker_deal(r, j.w.n, j.w.rows, norm_dg_columns, &j);
  r->v->store(r->res[0].data, j.dg, 1, j.w.n);
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
// The same by runs of `inner` elements.
#define EACH_RUN_OF_CHANNEL(p, ch, at)                                                                       \
  for (i64 i_ = 0, at = (ch) * (p).inner; i_ < (p).n; i_++, at += (p).c * (p).inner)

static bool fits_channels(run *r, const planes *p, u32 from, u32 to) {
  for (u32 k = from; k < to; k++)
    if (ker_elems(&r->opd[k]) != p->c) return ker_misfit(r, "channels", ker_elems(&r->opd[k]), p->c);
  return true;
}

// A vector per channel, as f64.
static double *per_channel(run *r, const ker_tensor *t) {
  double *x = NEWN(r->a, double, ker_elems(t));
  ker_load_f64(x, r->real, t->data, ker_elems(t));
  return x;
}

// Channels [from, end) of some samples; per channel the given vectors.
typedef struct {
  const run *r;
  planes p;
  i64 from; // first element of the group
  double eps;
  bool first; // the first group of the batch
  const double *g, *b, *mean, *var;
  double *mean2, *var2; // results; of a gradient, those of weight and bias
} bn_job;

static void bn_apply(const bn_job *j, i64 c, double mean, double var) {
  const run *r = j->r;
  const double scale = j->g[c] / sqrt(var + j->eps);
  EACH_RUN_OF_CHANNEL(j->p, c, at)
  r->v->affine(ker_at(r, &r->res[0], j->from + at), scale, ker_at(r, &r->opd[0], j->from + at), mean, j->b[c],
               j->p.inner);
}

static void bn_channels(const void *arg, i64 from, i64 end) {
  const bn_job *j = arg;
  for (i64 c = from; c < end; c++) bn_apply(j, c, j->mean[c], j->var[c]);
}

bool ker_batchnorm(run *r) {
  const planes p = planes_of(&r->opd[0]);
  if (!same_elems(r, 0) || !fits_channels(r, &p, 1, 5)) return false;
  const bn_job j = {.r = r,
                    .p = p,
                    .eps = attr_float(r->at, A_eps, 1e-5),
                    .g = per_channel(r, &r->opd[1]),
                    .b = per_channel(r, &r->opd[2]),
                    .mean = per_channel(r, &r->opd[3]),
                    .var = per_channel(r, &r->opd[4])};
  ker_deal(r, p.c, p.n * p.inner, bn_channels, &j);
  return true;
}

static bool samples_of_group(run *r, u32 x, i64 *samples) {
  i64 groups = attr_int(r->at, A_bn_groups, 1), whole = r->opd[x].whole[0];
  *samples = whole / groups;
  return *samples == 0 || r->opd[x].dim[0] % *samples == 0 ||
         ker_misfit(r, "samples of a group", r->opd[x].dim[0], *samples);
}

static void channel_stats(const bn_job *j, const ker_tensor *x, i64 c, double *mean, double *var) {
  const double n = (double)(j->p.n * j->p.inner);
  double sum = 0, sq = 0;
  EACH_RUN_OF_CHANNEL(j->p, c, at) sum += j->r->v->sum(ker_at(j->r, x, j->from + at), j->p.inner);
  sum /= n;
  EACH_RUN_OF_CHANNEL(j->p, c, at)
  sq += j->r->v->sum_of_squares(ker_at(j->r, x, j->from + at), sum, j->p.inner);
  *mean = sum;
  *var = sq / n;
}

// y of one group; its statistics are the results where it is the first of the batch.
static void bn_train_channels(const void *arg, i64 from, i64 end) {
  const bn_job *j = arg;
  for (i64 c = from; c < end; c++) {
    double mean, var;
    channel_stats(j, &j->r->opd[0], c, &mean, &var);
    bn_apply(j, c, mean, var);
    if (j->first) j->mean2[c] = mean, j->var2[c] = var;
  }
}

// Does what is done to groups of samples, one after the other; they are consecutive, and a piece has all of a group or
// nothing of it. Results 1 and 2 are sums over the pieces: zero where this one gives nothing.
static bool each_group(run *r, const ker_tensor *x, bn_job *j, i64 samples,
                       void (*job)(const void *arg, i64 from, i64 end)) {
  const planes p = planes_of(x);
  j->r = r, j->eps = attr_float(r->at, A_eps, 1e-5);
  j->p = (planes){samples, p.c, p.inner};
  j->mean2 = ZNEWN(r->a, double, p.c), j->var2 = ZNEWN(r->a, double, p.c);
  for (i64 g = 0; samples && g < p.n / samples; g++) {
    j->from = g * samples * p.c * p.inner;
    j->first = (x->index[0] ? x->index[0][g * samples] : g) == 0;
    ker_deal(r, p.c, samples * p.inner, job, j);
  }
  r->v->store(r->res[1].data, j->mean2, 1, p.c);
  r->v->store(r->res[2].data, j->var2, 1, p.c);
  return true;
}

bool ker_batchnorm_train(run *r) {
  const ker_tensor *x = &r->opd[0];
  planes p = planes_of(x);
  i64 samples;
  if (!same_elems(r, 0) || !fits_channels(r, &p, 1, 3) || !samples_of_group(r, 0, &samples)) return false;
  bn_job j = {.g = per_channel(r, &r->opd[1]), .b = per_channel(r, &r->opd[2])};
  return each_group(r, x, &j, samples, bn_train_channels);
}

static void bn_dx_channels(const void *arg, i64 from, i64 end) {
  const bn_job *j = arg;
  const run *r = j->r;
  const double n = (double)(j->p.n * j->p.inner);
  for (i64 c = from; c < end; c++) {
    double mean, var, sum = 0, dot = 0;
    channel_stats(j, &r->opd[1], c, &mean, &var);
    const double inv = 1 / sqrt(var + j->eps);
    EACH_RUN_OF_CHANNEL(j->p, c, at) {
      sum += r->v->sum(ker_at(r, &r->opd[0], j->from + at), j->p.inner);
      dot += r->v->dot(ker_at(r, &r->opd[0], j->from + at), ker_at(r, &r->opd[1], j->from + at), mean,
                       j->p.inner);
    }
    dot *= inv;
    // dx = g inv (dy - sum / n - (x - mean) inv dot / n)
    const double k = j->g[c] * inv;
    EACH_RUN_OF_CHANNEL(j->p, c, at)
    r->v->affine_of(ker_at(r, &r->res[0], j->from + at), k, ker_at(r, &r->opd[0], j->from + at), sum / n,
                    -k * inv * dot / n, ker_at(r, &r->opd[1], j->from + at), mean, j->p.inner);
    j->mean2[c] += dot, j->var2[c] += sum;
  }
}

bool ker_batchnorm_dx(run *r) { // dy, x, g -> dx, dg, db
  planes p = planes_of(&r->opd[1]);
  i64 samples;
  if (!same_elems(r, 0) || !same_elems(r, 1) || !fits_channels(r, &p, 2, 3)) return false;
  if (!samples_of_group(r, 1, &samples)) return false;
  bn_job j = {.g = per_channel(r, &r->opd[2])};
  return each_group(r, &r->opd[1], &j, samples, bn_dx_channels);
}

// ---- group norm: rows are groups of channels -----------------------------------------------------------

typedef struct {
  planes p;
  rows w;
  i64 groups, each; // channels of a group
} grouping;

static row_stats stats_of(const run *r, const rows *w, const double *x) {
  return r->v->stats(x, w->n, w->rms, w->eps);
}

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
    const row_stats s = stats_of(r, &g.w, v);
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
    const row_stats s = stats_of(r, &g.w, v);
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
    const row_stats s = stats_of(r, &g.w, v);
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
