// optim.c - optimizer steps: parameter, gradient and state to new parameter and state, element by element.
//
// Formulas as in PyTorch: L2 decay is added to the gradient (sgd, momentum, adam) or taken off the parameter
// (adamw); the bias of Adam's moments is corrected by step number; eps is added to the root.
#include "kernel/internal.h"

static bool all_same(run *r) {
  i64 n = ker_elems(&r->opd[0]);
  for (u32 k = 1; k < r->nopd; k++)
    if (ker_elems(&r->opd[k]) != n) return ker_misfit(r, "elements", ker_elems(&r->opd[k]), n);
  return true;
}

bool ker_sgd(run *r) {
  const double *w = F(&r->opd[0]), *g = F(&r->opd[1]);
  double lr = attr_float(r->at, A_lr, 0.01), decay = attr_float(r->at, A_weight_decay, 0),
         *out = F(&r->res[0]);
  if (!all_same(r)) return false;
  for (i64 i = 0, n = ker_elems(&r->opd[0]); i < n; i++) out[i] = w[i] - lr * (g[i] + decay * w[i]);
  return true;
}

bool ker_assign(run *r) {
  const ker_tensor *x = &r->opd[1], *y = &r->res[0];
  if (!all_same(r)) return false;
  ker_convert(y->data, y->t, x->data, x->t, ker_elems(x));
  return true;
}

bool ker_momentum(run *r) {
  const double *w = F(&r->opd[0]), *g = F(&r->opd[1]), *m = F(&r->opd[2]);
  double lr = attr_float(r->at, A_lr, 0.01), mu = attr_float(r->at, A_momentum, 0.9);
  double decay = attr_float(r->at, A_weight_decay, 0), *out = F(&r->res[0]), *m2 = F(&r->res[1]);
  bool ahead = attr_int(r->at, A_nesterov, 0);
  if (!all_same(r)) return false;
  for (i64 i = 0, n = ker_elems(&r->opd[0]); i < n; i++) {
    double d = g[i] + decay * w[i], v = mu * m[i] + d;
    out[i] = w[i] - lr * (ahead ? d + mu * v : v);
    m2[i] = v;
  }
  return true;
}

bool ker_adam(run *r) {
  const double *w = F(&r->opd[0]), *g = F(&r->opd[1]), *m = F(&r->opd[2]), *v = F(&r->opd[3]);
  double *out = F(&r->res[0]), *m2 = F(&r->res[1]), *v2 = F(&r->res[2]);
  bool decoupled = r->op == OP_adamw;
  double lr = attr_float(r->at, A_lr, 0.001), b1 = attr_float(r->at, A_beta1, 0.9);
  double b2 = attr_float(r->at, A_beta2, 0.999), eps = attr_float(r->at, A_eps, 1e-8);
  double decay = attr_float(r->at, A_weight_decay, decoupled ? 0.01 : 0);
  double step = (double)attr_int(r->at, A_step, 1), c1 = 1 - pow(b1, step), c2 = 1 - pow(b2, step);
  if (!all_same(r)) return false;
  for (i64 i = 0, n = ker_elems(&r->opd[0]); i < n; i++) {
    double d = g[i] + (decoupled ? 0 : decay * w[i]);
    double mi = b1 * m[i] + (1 - b1) * d, vi = b2 * v[i] + (1 - b2) * d * d;
    double at = decoupled ? w[i] - lr * decay * w[i] : w[i];
    out[i] = at - lr * (mi / c1) / (sqrt(vi / c2) + eps);
    m2[i] = mi;
    v2[i] = vi;
  }
  return true;
}
