// quadratic.c - convex quadratic programmes with sparse rows: a matrix with a skyline, its Cholesky factor, and a
// primal-dual interior point method (Mehrotra's predictor and corrector) over both.
//
// Rows touch few unknowns, those of two neighbouring clocks: in the right order of clocks the factor stays as narrow as
// the matrix. For all pairs it is dense, and still right.
#include "diagnose/align.h"
#include <math.h>

sky sky_new(arena *a, u32 n, const u32 *first) {
  sky m = {.n = n, .first = first, .at = NEWN(a, size_t, n + 1)};
  for (u32 i = 0; i < n; i++) {
    m.at[i] = m.size - first[i];
    m.size += i + 1 - first[i];
  }
  m.v = ZNEWN(a, double, m.size + 1);
  return m;
}

void sky_clear(sky *m) { memset(m->v, 0, m->size * sizeof *m->v); }
void sky_copy(sky *to, const sky *from) {
  assert(to->size == from->size);
  memcpy(to->v, from->v, to->size * sizeof *to->v);
}

void sky_row(sky *m, const row *r, double weight) {
  for (u32 i = 0; i < r->n; i++)
    for (u32 j = 0; j < r->n; j++)
      if (r->col[j] <= r->col[i]) *sky_cell(m, r->col[i], r->col[j]) += weight * r->val[i] * r->val[j];
}

// Four sums at a time: one after the other would wait for each addition.
static double dot(const double *x, const double *y, size_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    s0 += x[k] * y[k], s1 += x[k + 1] * y[k + 1];
    s2 += x[k + 2] * y[k + 2], s3 += x[k + 3] * y[k + 3];
  }
  for (; k < n; k++) s0 += x[k] * y[k];
  return (s0 + s1) + (s2 + s3);
}

void sky_factor(sky *m) {
  for (u32 i = 0; i < m->n; i++) {
    double *ri = m->v + m->at[i];
    const double before = ri[i];
    for (u32 j = m->first[i]; j < i; j++) {
      const double *rj = m->v + m->at[j];
      const u32 from = MAX(m->first[i], m->first[j]);
      ri[j] = (ri[j] - dot(ri + from, rj + from, j - from)) / rj[j];
    }
    const double pivot = before - dot(ri + m->first[i], ri + m->first[i], i - m->first[i]);
    ri[i] = pivot > 1e-14 * before && pivot > 1e-300 ? sqrt(pivot) : 1e150;
  }
}

void sky_solve(const sky *m, double *x) {
  for (u32 i = 0; i < m->n; i++) {
    const double *ri = m->v + m->at[i];
    x[i] = (x[i] - dot(ri + m->first[i], x + m->first[i], i - m->first[i])) / ri[i];
  }
  for (u32 i = m->n; i-- > 0;) {
    const double *ri = m->v + m->at[i];
    x[i] /= ri[i];
    for (u32 j = m->first[i]; j < i; j++) x[j] -= ri[j] * x[i];
  }
}

// ---- interior point ------------------------------------------------------------------------------------------
// y: multipliers of rows; w: what rows are, kept positive. At the answer H x + g = A^T y, A x + c = w, and y w = 0.
typedef struct {
  const sky *h;
  const double *g;
  const rows *keep;
  sky factor;
  u32 n, m;
  double *x, *y, *w, *dx, *dy, *dw, *rd, *rp, *rhs;
} interior;

static void multiply(const sky *h, const double *x, double *out) { // out += H x
  for (u32 i = 0; i < h->n; i++) {
    const double *ri = h->v + h->at[i];
    out[i] += ri[i] * x[i];
    for (u32 j = h->first[i]; j < i; j++) out[i] += ri[j] * x[j], out[j] += ri[j] * x[i];
  }
}

static void residuals(interior *q) {
  memcpy(q->rd, q->g, q->n * sizeof *q->rd);
  multiply(q->h, q->x, q->rd);
  for (u32 k = 0; k < q->m; k++) {
    const row *r = &q->keep->v[k];
    q->rp[k] = row_at(r, q->x) - q->w[k];
    for (u32 t = 0; t < r->n; t++) q->rd[r->col[t]] -= r->val[t] * q->y[k];
  }
}

// One direction: y w is to become aim, less what the predictor says (second: dw, dy hold its step).
static void direction(interior *q, double aim, bool second) {
  for (u32 i = 0; i < q->n; i++) q->rhs[i] = -q->rd[i];
  for (u32 k = 0; k < q->m; k++) {
    const row *r = &q->keep->v[k];
    const double want = aim - q->w[k] * q->y[k] - (second ? q->dw[k] * q->dy[k] : 0);
    const double v = (want - q->y[k] * q->rp[k]) / q->w[k];
    q->dy[k] = v; // what is the same whatever dx is
    for (u32 t = 0; t < r->n; t++) q->rhs[r->col[t]] += r->val[t] * v;
  }
  memcpy(q->dx, q->rhs, q->n * sizeof *q->dx);
  sky_solve(&q->factor, q->dx);
  for (u32 k = 0; k < q->m; k++) {
    const row *r = &q->keep->v[k];
    double s = 0;
    for (u32 t = 0; t < r->n; t++) s += r->val[t] * q->dx[r->col[t]];
    q->dw[k] = s + q->rp[k];
    q->dy[k] -= q->y[k] / q->w[k] * s;
  }
}

static double longest(const double *v, const double *dv, u32 m) { // step that keeps all positive
  double step = 1;
  for (u32 k = 0; k < m; k++)
    if (dv[k] < 0 && -v[k] / dv[k] < step) step = -v[k] / dv[k];
  return step;
}

static void begin(interior *q) {
  double low = 0, most = 1;
  for (u32 k = 0; k < q->m; k++) {
    q->w[k] = row_at(&q->keep->v[k], q->x);
    low = fmin(low, q->w[k]);
    most = fmax(most, fabs(q->w[k]));
  }
  const double up = low < 0 ? -1.5 * low + 1e-3 * most : 0;
  for (u32 k = 0; k < q->m; k++) q->w[k] = fmax(q->w[k] + up, 1e-3), q->y[k] = 1.0 / q->m;
}

static bool all_finite(const double *x, u32 n) {
  for (u32 k = 0; k < n; k++)
    if (!isfinite(x[k])) return false;
  return true;
}

bool quadratic_solve(arena *scratch, const sky *h, const double *g, const rows *keep, double *x) {
  enum { ROUNDS = 100 };
  const u32 n = h->n, m = keep->n;
  interior q = {
      .h = h, .g = g, .keep = keep, .factor = sky_new(scratch, n, h->first), .n = n, .m = m, .x = x};
  double *v = NEWN(scratch, double, 3 * (size_t)n + 5 * (size_t)m + 1);
  q.dx = v, q.rd = v + n, q.rhs = v + 2 * n, v += 3 * (size_t)n;
  q.y = v, q.w = v + m, q.dy = v + 2 * (size_t)m, q.dw = v + 3 * (size_t)m, q.rp = v + 4 * (size_t)m;
  begin(&q);
  const double *start = arena_dup(scratch, x, n * sizeof *x);
  double large = 0; // of the objective's slope: what its remainder is compared with
  for (u32 i = 0; i < n; i++) large = fmax(large, fabs(g[i]));
  bool near = false;
  for (u32 round = 0; round < ROUNDS; round++) {
    residuals(&q);
    double gap = 0, dual = 0, primal = 0;
    for (u32 k = 0; k < m; k++) gap += q.y[k] * q.w[k], primal = fmax(primal, fabs(q.rp[k]));
    for (u32 i = 0; i < n; i++) dual = fmax(dual, fabs(q.rd[i]));
    near = gap < 1e-4 && dual < 1e-4 * (1 + large) && primal < 1e-5;
    if (gap < 1e-7 && dual < 1e-8 * (1 + large) && primal < 1e-7) return true;
    sky_copy(&q.factor, h);
    for (u32 k = 0; k < m; k++) sky_row(&q.factor, &keep->v[k], q.y[k] / q.w[k]);
    for (u32 i = 0; i < n; i++) *sky_cell(&q.factor, i, i) += 1e-12;
    sky_factor(&q.factor);
    direction(&q, 0, false);
    const double ap = longest(q.w, q.dw, m), ad = longest(q.y, q.dy, m);
    double after = 0;
    for (u32 k = 0; k < m; k++) after += (q.w[k] + ap * q.dw[k]) * (q.y[k] + ad * q.dy[k]);
    const double share = m ? gap > 0 ? after / gap : 0 : 0;
    direction(&q, m ? share * share * share * gap / m : 0, true);
    // One length for both: with a quadratic term, x is in both conditions.
    const double step = fmin(1, 0.995 * fmin(longest(q.w, q.dw, m), longest(q.y, q.dy, m)));
    for (u32 i = 0; i < n; i++) x[i] += step * q.dx[i];
    for (u32 k = 0; k < m; k++) q.w[k] += step * q.dw[k], q.y[k] += step * q.dy[k];
    if (all_finite(x, n)) continue;
    memcpy(x, start, n * sizeof *x); // rows of which no numbers can be made
    return false;
  }
  return near;
}
