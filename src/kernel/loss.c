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

static double log_sum_exp(const double *x, i64 n) {
  double top = -INFINITY, sum = 0;
  for (i64 k = 0; k < n; k++) top = fmax(top, x[k]);
  for (i64 k = 0; k < n; k++) sum += exp(x[k] - top);
  return top + log(sum);
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
  for (i64 i = 0; i < n; i++) {
    bool counts = !(m.ignores && I(label)[i] == m.ignore);
    double v = counts ? log_sum_exp(F(x) + i * classes, classes) - F(x)[i * classes + I(label)[i]] : 0;
    if (m.none) F(y)[i] = v;
    sum += v;
  }
  if (!m.none) F(y)[0] = sum / by;
  return true;
}

bool ker_xent_dx(run *r) {
  const ker_tensor *dy = &r->opd[0], *x = &r->opd[1], *label = &r->opd[2],
                   *lse = r->nopd > 3 ? &r->opd[3] : NULL, *dx = &r->res[0];
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
  for (i64 i = 0; i < n; i++) {
    const double *in = F(x) + i * classes;
    double *out = F(dx) + i * classes;
    bool counts = !(m.ignores && I(label)[i] == m.ignore);
    double g = counts ? F(dy)[m.none ? i : 0] / by : 0;
    double l = lse ? F(lse)[i] : counts ? log_sum_exp(in, classes) : 0;
    i64 hit = !counts ? -1 : here ? here[I(label)[i]] : I(label)[i];
    for (i64 k = 0; k < classes; k++) out[k] = counts ? g * (exp(in[k] - l) - (k == hit)) : 0;
  }
  return true;
}

bool ker_sum_exp(run *r) {
  const ker_tensor *x = &r->opd[0], *m = &r->opd[1], *y = &r->res[0];
  i64 n = ker_elems(y), k = x->dim[x->nd - 1];
  if (ker_elems(x) != n * k) return ker_misfit(r, "elements", ker_elems(x), n * k);
  if (ker_elems(m) != n) return ker_misfit(r, "maxima", ker_elems(m), n);
  for (i64 i = 0; i < n; i++) {
    double sum = 0;
    for (i64 j = 0; j < k; j++) sum += exp(F(x)[i * k + j] - F(m)[i]);
    F(y)[i] = sum;
  }
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
    F(y)[i] = k < 0 ? 0 : F(x)[i * classes + k]; // 0: another rank has it
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
