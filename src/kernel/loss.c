// loss.c - losses against labels: cross entropy with its gradient and the parts of both for classes that
// several ranks share, negative log likelihood.
//
// Idea: a mean divides by the number of labels of the whole tensor, so the pieces' results add up. Only where
// the number depends on the labels (some are ignored, or weighted) must a rank see all of them.
#include "kernel/internal.h"

typedef struct {
  bool none, mean, ignores;
  i64 ignore;
} mode;

static mode mode_of_loss(const run *r) {
  const char *m = ker_mode(r, A_reduce, "mean");
  return (mode){!strcmp(m, "none"), !strcmp(m, "mean"), attr_get(r->at, A_ignore) != NULL,
                attr_int(r->at, A_ignore, 0)};
}

static bool is_piece(const ker_tensor *t) {
  for (u32 d = 0; d < t->nd; d++)
    if (t->index[d]) return true;
  return false;
}

// What the sum over this piece is divided by; 0 and a diagnostic if that takes labels of other pieces.
static double denominator(run *r, const mode *m, const ker_tensor *label, const ker_tensor *weight) {
  double n = 0;
  if (!m->mean) return 1;
  if (!m->ignores && !weight) {
    n = 1;
    for (u32 d = 0; d < label->nd; d++) n *= (double)label->whole[d];
    return n;
  }
  if (is_piece(label)) {
    ker_misfit(r, "a mean over labels that are ignored or weighted takes all labels on every rank:",
               ker_elems(label), -1);
    return 0;
  }
  for (i64 i = 0, k = ker_elems(label); i < k; i++)
    if (!m->ignores || I(label)[i] != m->ignore) n += weight ? F(weight)[I(label)[i]] : 1;
  return n;
}

// Every label that counts names a class.
static bool labels_in(run *r, const mode *m, const ker_tensor *label, i64 classes) {
  for (i64 i = 0, n = ker_elems(label); i < n; i++) {
    i64 v = I(label)[i];
    if ((v < 0 || v >= classes) && !(m->ignores && v == m->ignore))
      return ker_bad_value(r, "label", v, classes);
  }
  return true;
}

typedef struct {
  const run *r;
  mode m;
  i64 classes;
  double by;
  const i64 *here; // whole class -> class of the piece
  double *v;       // by row
} loss_job;

static bool counts(const loss_job *j, const ker_tensor *label, i64 i) {
  return !(j->m.ignores && I(label)[i] == j->m.ignore);
}

static void xent_rows(const void *arg, i64 from, i64 end) {
  const loss_job *j = arg;
  const run *r = j->r;
  for (i64 i = from; i < end; i++) {
    double picked;
    j->v[i] = 0;
    if (!counts(j, &r->opd[1], i)) continue;
    ker_load_f64(&picked, r->real, ker_at(r, &r->opd[0], i * j->classes + I(&r->opd[1])[i]), 1);
    j->v[i] = r->v->log_sum_exp(ker_at(r, &r->opd[0], i * j->classes), j->classes) - picked;
  }
}

bool ker_xent(run *r) {
  const ker_tensor *x = &r->opd[0], *label = &r->opd[1], *y = &r->res[0];
  mode m = mode_of_loss(r);
  i64 classes = x->dim[x->nd - 1], n = ker_elems(label);
  if (classes != x->whole[x->nd - 1]) return ker_misfit(r, "classes", classes, x->whole[x->nd - 1]);
  if (ker_elems(x) != n * classes) return ker_misfit(r, "elements", ker_elems(x), n * classes);
  if (!labels_in(r, &m, label, classes)) return false;
  double sum = 0, by = denominator(r, &m, label, NULL);
  if (m.mean && by == 0 && is_piece(label)) return false;
  const loss_job j = {.r = r, .m = m, .classes = classes, .v = NEWN(r->a, double, n)};
  ker_deal(r, n, classes, xent_rows, &j);
  for (i64 i = 0; i < n; i++) sum += j.v[i];
  sum /= by;
  r->v->store(y->data, m.none ? j.v : &sum, 1, m.none ? n : 1);
  return true;
}

static void xent_dx_rows(const void *arg, i64 from, i64 end) {
  const loss_job *j = arg;
  const run *r = j->r;
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *label = &r->opd[2],
                   *lse = r->nopd > 3 ? &r->opd[3] : NULL;
  assert(label); // the gradient of a loss has its operands
  const size_t bytes = r->real == DT_F32 ? 4 : 8;
  for (i64 i = from; i < end; i++) {
    const void *in = ker_at(r, x, i * j->classes);
    void *out = ker_at(r, &r->res[0], i * j->classes);
    if (!counts(j, label, i)) {
      memset(out, 0, bytes * (size_t)j->classes);
      continue;
    }
    double g, l;
    ker_load_f64(&g, r->real, ker_at(r, dy, j->m.none ? i : 0), 1);
    if (lse)
      ker_load_f64(&l, r->real, ker_at(r, lse, i), 1);
    else
      l = r->v->log_sum_exp(in, j->classes);
    const i64 k = I(label)[i];
    r->v->xent_dx(out, in, l, g / j->by, j->here ? j->here[k] : k, j->classes);
  }
}

bool ker_xent_dx(run *r) {
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *label = &r->opd[2],
                   *lse = r->nopd > 3 ? &r->opd[3] : NULL;
  mode m = mode_of_loss(r);
  i64 classes = x->dim[x->nd - 1], all = x->whole[x->nd - 1], n = ker_elems(label);
  const i64 *here = ker_inverse(r, x, x->nd - 1);
  if (!lse && classes != all) return ker_misfit(r, "classes", classes, all);
  if (lse && ker_elems(lse) != n) return ker_misfit(r, "sums", ker_elems(lse), n);
  if (ker_elems(x) != n * classes) return ker_misfit(r, "elements", ker_elems(x), n * classes);
  if (ker_elems(dy) != (m.none ? n : 1)) return ker_misfit(r, "gradients", ker_elems(dy), m.none ? n : 1);
  if (!labels_in(r, &m, label, all)) return false;
  double by = denominator(r, &m, label, NULL);
  if (m.mean && by == 0 && is_piece(label)) return false;
  ker_deal(r, n, classes, xent_dx_rows,
           &(loss_job){.r = r, .m = m, .classes = classes, .by = by, .here = here});
  return true;
}

static void sum_exp_rows(const void *arg, i64 from, i64 end) {
  const loss_job *j = arg;
  for (i64 i = from; i < end; i++) {
    double top;
    ker_load_f64(&top, j->r->real, ker_at(j->r, &j->r->opd[1], i), 1);
    j->v[i] = j->r->v->sum_exp(ker_at(j->r, &j->r->opd[0], i * j->classes), top, j->classes);
  }
}

bool ker_sum_exp(run *r) {
  const ker_tensor *x = &r->opd[0], *m = &r->opd[1], *y = &r->res[0];
  i64 n = ker_elems(y), k = x->dim[x->nd - 1];
  if (ker_elems(x) != n * k) return ker_misfit(r, "elements", ker_elems(x), n * k);
  if (ker_elems(m) != n) return ker_misfit(r, "maxima", ker_elems(m), n);
  const loss_job j = {.r = r, .classes = k, .v = NEWN(r->a, double, n)};
  ker_deal(r, n, k, sum_exp_rows, &j);
  r->v->store(y->data, j.v, 1, n);
  return true;
}

bool ker_xent_pick(run *r) {
  const ker_tensor *x = &r->opd[0], *label = &r->opd[1], *y = &r->res[0];
  i64 classes = x->dim[x->nd - 1], n = ker_elems(label);
  const i64 *here = ker_inverse(r, x, x->nd - 1);
  const mode any = {0};
  if (ker_elems(x) != n * classes) return ker_misfit(r, "elements", ker_elems(x), n * classes);
  if (!labels_in(r, &any, label, x->whole[x->nd - 1])) return false;
  for (i64 i = 0; i < n; i++) {
    i64 k = here ? here[I(label)[i]] : I(label)[i];
    double v = 0; // another rank has it
    if (k >= 0) ker_load_f64(&v, r->real, ker_at(r, x, i * classes + k), 1);
    r->v->store(ker_at(r, y, i), &v, 1, 1);
  }
  return true;
}

bool ker_nll(run *r) { // x[n, class, ..] holds log probabilities
  const ker_tensor *x = &r->opd[0], *label = &r->opd[1], *weight = r->nopd > 2 ? &r->opd[2] : NULL,
                   *y = &r->res[0];
  mode m = mode_of_loss(r);
  u32 class_dim = x->nd > 1;
  i64 classes = x->dim[class_dim], n = ker_elems(label), inner = ker_span(x, class_dim + 1, x->nd);
  if (classes != x->whole[class_dim]) return ker_misfit(r, "classes", classes, x->whole[class_dim]);
  if (ker_elems(x) != n * classes) return ker_misfit(r, "elements", ker_elems(x), n * classes);
  if (weight && ker_elems(weight) != classes) return ker_misfit(r, "weights", ker_elems(weight), classes);
  if (!labels_in(r, &m, label, classes)) return false;
  double sum = 0, by = denominator(r, &m, label, weight);
  if (m.mean && by == 0 && is_piece(label)) return false;
  for (i64 i = 0; i < n; i++) {
    i64 l = I(label)[i];
    bool counts = !(m.ignores && l == m.ignore);
    double v =
        counts ? -F(x)[(i / inner * classes + l) * inner + i % inner] * (weight ? F(weight)[l] : 1) : 0;
    if (m.none) F(y)[i] = v;
    sum += v;
  }
  if (!m.none) F(y)[0] = sum / by;
  return true;
}
