// optim.c - optimizer steps: parameter, gradient and state to new parameter and state; element by element,
// but for Adafactor, whose steps are sums and then what is done with each element.
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

static void sgd_part(const void *arg, i64 from, i64 end) {
  const run *r = arg;
  r->v->sgd(ker_at(r, &r->res[0], from), ker_at(r, &r->opd[0], from), ker_at(r, &r->opd[1], from),
            attr_float(r->at, A_lr, 0.01), attr_float(r->at, A_weight_decay, 0), end - from);
}

bool ker_sgd(run *r) {
  if (!all_same(r)) return false;
  ker_deal(r, ker_elems(&r->opd[0]), 1, sgd_part, r);
  return true;
}

bool ker_assign(run *r) {
  const ker_tensor *x = &r->opd[1], *y = &r->res[0];
  if (!all_same(r)) return false;
  ker_convert(y->data, y->t, x->data, x->t, ker_elems(x));
  return true;
}

static void accumulate_part(const void *arg, i64 from, i64 end) {
  const run *r = arg;
  const elementwise add = {.op = OP_add};
  r->v->binary(&add, ker_at(r, &r->res[0], from), ker_at(r, &r->opd[0], from), 1, ker_at(r, &r->opd[1], from),
               1, end - from);
}

bool ker_accumulate(run *r) {
  if (!all_same(r)) return false;
  ker_deal(r, ker_elems(&r->opd[0]), 1, accumulate_part, r);
  return true;
}

static void momentum_part(const void *arg, i64 from, i64 end) {
  const run *r = arg;
  r->v->momentum(ker_at(r, &r->res[0], from), ker_at(r, &r->res[1], from), ker_at(r, &r->opd[0], from),
                 ker_at(r, &r->opd[1], from), ker_at(r, &r->opd[2], from), attr_float(r->at, A_lr, 0.01),
                 attr_float(r->at, A_momentum, 0.9), attr_float(r->at, A_weight_decay, 0),
                 attr_int(r->at, A_nesterov, 0), end - from);
}

bool ker_momentum(run *r) {
  if (!all_same(r)) return false;
  ker_deal(r, ker_elems(&r->opd[0]), 1, momentum_part, r);
  return true;
}

typedef struct {
  const run *r;
  adam_step s;
} adam_job;

static void adam_part(const void *arg, i64 from, i64 end) {
  const adam_job *j = arg;
  const run *r = j->r;
  r->v->adam(&j->s, ker_at(r, &r->res[0], from), ker_at(r, &r->res[1], from), ker_at(r, &r->res[2], from),
             ker_at(r, &r->opd[0], from), ker_at(r, &r->opd[1], from), ker_at(r, &r->opd[2], from),
             ker_at(r, &r->opd[3], from), end - from);
}

bool ker_adam(run *r) {
  const bool decoupled = r->op == OP_adamw;
  adam_step s = {.lr = attr_float(r->at, A_lr, 0.001),
                 .b1 = attr_float(r->at, A_beta1, 0.9),
                 .b2 = attr_float(r->at, A_beta2, 0.999),
                 .eps = attr_float(r->at, A_eps, 1e-8),
                 .decay = attr_float(r->at, A_weight_decay, decoupled ? 0.01 : 0),
                 .decoupled = decoupled};
  const double step = (double)(r->step ? r->step : attr_int(r->at, A_step, 1));
  s.c1 = 1 - pow(s.b1, step), s.c2 = 1 - pow(s.b2, step);
  if (!all_same(r)) return false;
  ker_deal(r, ker_elems(&r->opd[0]), 1, adam_part, &(adam_job){r, s});
  return true;
}

// ---- Adafactor -------------------------------------------------------------------------------------------
// Shazeer and Stern 2018, algorithms 4 and 5; statistics are means, as in the published implementations. The
// paper has sums: r c / (sum of r) is the same either way.
//
// Many matrices [rows, cols] behind each other, as elements of g.
typedef struct {
  i64 many, rows, cols;
  double all; // elements of the whole parameter
} matrices;

static matrices matrices_of(const ker_tensor *g, bool factored) {
  matrices s = {ker_elems(g), 1, 1, 1};
  if (factored) s = (matrices){ker_span(g, 0, g->nd - 2), g->dim[g->nd - 2], g->dim[g->nd - 1], 1};
  for (u32 d = 0; d < g->nd; d++) s.all *= (double)g->whole[d];
  return s;
}

static bool factors_fit(run *r, const matrices *s, const ker_tensor *rows, const ker_tensor *cols,
                        const ker_tensor *mean) {
  if (ker_elems(rows) != s->many * s->rows) return ker_misfit(r, "rows", ker_elems(rows), s->many * s->rows);
  if (ker_elems(cols) != s->many * s->cols)
    return ker_misfit(r, "columns", ker_elems(cols), s->many * s->cols);
  return !mean || ker_elems(mean) == s->many || ker_misfit(r, "matrices", ker_elems(mean), s->many);
}

static double sum_of_squares(const double *x, i64 n) {
  double sum = 0;
  for (i64 i = 0; i < n; i++) sum += x[i] * x[i];
  return sum;
}

// Is index 0 of the dimension in this piece? Then what is counted once counts here.
static bool has_first(const ker_tensor *t, u32 d) {
  for (i64 k = 0; t->index[d] && k < t->dim[d]; k++)
    if (t->index[d][k] == 0) return true;
  return !t->index[d];
}

bool ker_adafactor_v(run *r) {
  const double *g = F(&r->opd[1]), *v = F(&r->opd[2]);
  double b2 = attr_float(r->at, A_beta2, 0.999), eps = attr_float(r->at, A_eps, 1e-30), *v2 = F(&r->res[1]);
  if (!all_same(r)) return false;
  for (i64 i = 0, n = ker_elems(&r->opd[1]); i < n; i++) v2[i] = b2 * v[i] + (1 - b2) * (g[i] * g[i] + eps);
  F(&r->res[0])[0] = sum_of_squares(F(&r->opd[0]), ker_elems(&r->opd[0]));
  return true;
}

bool ker_adafactor_rc(run *r) {
  const ker_tensor *g = &r->opd[1];
  const matrices s = matrices_of(g, true);
  const double b2 = attr_float(r->at, A_beta2, 0.999), eps = attr_float(r->at, A_eps, 1e-30);
  const double rows = (double)g->whole[g->nd - 2], cols = (double)g->whole[g->nd - 1];
  const double old_row = has_first(g, g->nd - 1) ? b2 : 0, old_col = has_first(g, g->nd - 2) ? b2 : 0;
  double *row = F(&r->res[1]), *col = F(&r->res[2]), *mean = F(&r->res[3]), *sum = NEWN(r->a, double, s.cols);
  if (ker_elems(&r->opd[0]) != ker_elems(g))
    return ker_misfit(r, "elements", ker_elems(g), ker_elems(&r->opd[0]));
  if (!factors_fit(r, &s, &r->opd[2], &r->opd[3], NULL)) return false;
  const double *x = F(g), *r1 = F(&r->opd[2]), *c1 = F(&r->opd[3]);
  for (i64 o = 0; o < s.many; o++, c1 += s.cols, col += s.cols) {
    memset(sum, 0, (size_t)s.cols * sizeof *sum);
    mean[o] = 0;
    for (i64 i = 0; i < s.rows; i++, x += s.cols, r1++, row++) {
      double in_row = 0;
      for (i64 k = 0; k < s.cols; k++) {
        const double sq = x[k] * x[k] + eps;
        in_row += sq, sum[k] += sq;
      }
      *row = old_row * *r1 + (1 - b2) * in_row / cols;
      mean[o] += *row / rows;
    }
    for (i64 k = 0; k < s.cols; k++) col[k] = old_col * c1[k] + (1 - b2) * sum[k] / rows;
  }
  F(&r->res[0])[0] = sum_of_squares(F(&r->opd[0]), ker_elems(&r->opd[0]));
  return true;
}

typedef struct {
  const double *v;             // NULL: factors
  const double *row, *col, *m; // of one matrix
} second_moment;

static double update_of(const second_moment *s, i64 i, i64 k, double g) {
  assert(s->v || (s->row && s->col && s->m));
  return g / sqrt(s->v ? s->v[k] : s->row[i] * s->col[k] / *s->m);
}

bool ker_adafactor_norm(run *r) {
  const ker_tensor *g = &r->opd[1];
  const bool factored = r->nopd == 4;
  const matrices s = matrices_of(g, factored);
  second_moment v = {.v = F(&r->opd[0])};
  const double *x = F(g);
  double sum = 0;
  if (factored) v = (second_moment){NULL, F(&r->opd[0]), F(&r->opd[2]), F(&r->opd[3])};
  if (factored ? !factors_fit(r, &s, &r->opd[0], &r->opd[2], &r->opd[3]) : !all_same(r)) return false;
  for (i64 o = 0; o < s.many; o++) {
    for (i64 i = 0; i < s.rows; i++, x += s.cols)
      for (i64 k = 0; k < s.cols; k++) {
        const double u = update_of(&v, i, k, x[k]);
        sum += u * u;
      }
    if (factored)
      v.row += s.rows, v.col += s.cols, v.m++;
    else
      v.v++;
  }
  F(&r->res[0])[0] = sum;
  return true;
}

bool ker_adafactor(run *r) {
  const ker_tensor *g = &r->opd[1];
  const bool factored = r->nopd == 7;
  const matrices s = matrices_of(g, factored);
  const double *w = F(&r->opd[0]), *x = F(g);
  const double rms_u = sqrt(*F(&r->opd[2]) / s.all), rms_w = sqrt(*F(&r->opd[3]) / s.all);
  const double lr = attr_float(r->at, A_lr, 0.01) * fmax(attr_float(r->at, A_floor, 1e-3), rms_w);
  const double less = fmax(1, rms_u / attr_float(r->at, A_clip, 1));
  const double decay = attr_float(r->at, A_weight_decay, 0);
  double *out = F(&r->res[0]);
  second_moment v = {.v = F(&r->opd[4])};
  if (factored) v = (second_moment){NULL, F(&r->opd[4]), F(&r->opd[5]), F(&r->opd[6])};
  if (ker_elems(&r->opd[0]) != ker_elems(g))
    return ker_misfit(r, "elements", ker_elems(g), ker_elems(&r->opd[0]));
  if (factored && !factors_fit(r, &s, &r->opd[4], &r->opd[5], &r->opd[6])) return false;
  if (!factored && ker_elems(&r->opd[4]) != ker_elems(g))
    return ker_misfit(r, "elements", ker_elems(g), ker_elems(&r->opd[4]));
  for (i64 o = 0; o < s.many; o++) {
    for (i64 i = 0; i < s.rows; i++, x += s.cols, w += s.cols, out += s.cols)
      for (i64 k = 0; k < s.cols; k++) out[k] = w[k] - lr * (update_of(&v, i, k, x[k]) / less + decay * w[k]);
    if (factored)
      v.row += s.rows, v.col += s.cols, v.m++;
    else
      v.v++;
  }
  return true;
}
