// compare.c - verification: the distributed program's numbers against the single-device program's. Not the
// proof that nothing is missing without numbers (validate.c).
//
// Idea: both programs are made by the same mechanism from the same source, one with the trivial plan, and run
// on the same random inputs in f64. There what is left of a difference is the order of additions, some 1e-15
// of what was added up; a forgotten or misdirected communication is off by as much as the value itself. So
// 1e-9 tells the two apart.
//
// Elements smaller than what was added up to get them are nothing but rounding: the gradient of an
// attention's key bias is zero in exact arithmetic. So a difference counts relative to the larger of both
// elements, but at least to FLOOR_OWN of the tensor's own root mean square and FLOOR_ALL of that of all
// results of its kind.
#include "plan/internal.h"
#include <math.h>
#include <stdlib.h>

static const double FLOOR_OWN = 1e-3, FLOOR_ALL = 1e-5;

static const char *result_name(const prog *p, arena *a, u32 k) {
  const func_info *f = func_get(p, p->main);
  sym s = f->values.v[f->rets.v[k]].name;
  return s.i ? sym_str(p->c, s) : arena_printf(a, "result %u", k);
}

bool plan_evaluate(const prog *src, const prog *p, u64 seed, arena *a, plan_numbers *out) {
  u32 np = func_get(p, p->main)->nparams, ns = func_get(src, src->main)->nparams,
      n = func_get(p, p->main)->rets.n;
  assert(np >= ns);
  eval_array *in = NEWN(a, eval_array, np + 1);
  *out = (plan_numbers){n, NEWN(a, const char *, n + 1), NEWN(a, eval_array, n + 1)};
  for (u32 k = 0; k < n; k++) out->name[k] = result_name(p, a, k);
  // Uses tell what an input must be like, and the source shows them plainest; states come from the program
  // itself.
  return eval_random(p, seed, in, np, a) && eval_random(src, seed, in, ns, a) &&
         eval_run(p, &(eval_opts){.as_f64 = true}, in, np, out->v, n, a);
}

// ---- comparison
// ------------------------------------------------------------------------------------------------
static double element(const eval_array *x, i64 k) {
  switch (x->s.t) {
  case DT_F64: return ((const double *)x->data)[k];
  case DT_I64: return (double)((const i64 *)x->data)[k];
  case DT_I32: return ((const int32_t *)x->data)[k];
  default: return ((const u8 *)x->data)[k]; // bool, u8: compared for equality
  }
}

static double sum_of_squares(const eval_array *x) {
  double sum = 0;
  for (i64 k = 0, n = shape_elems(&x->s); k < n; k++) {
    double e = element(x, k);
    if (isfinite(e)) sum += e * e;
  }
  return sum;
}

static void compare_one(const eval_array *x, const eval_array *y, double least, verify_row *r) {
  r->elems = shape_elems(&y->s);
  for (i64 k = 0; k < r->elems; k++) {
    double a = element(x, k), b = element(y, k), d = fabs(a - b);
    if (a == b || (a != a && b != b)) continue;
    double rel = isfinite(d) ? d / fmax(fmax(fabs(a), fabs(b)), least) : INFINITY;
    if (d > r->max_abs || d != d) r->max_abs = d;
    if (rel > r->max_rel) r->max_rel = rel, r->at = k;
  }
}

// Gradients are compared in size with gradients, weights with weights: by what the name ends in.
static u32 kind_of(const char *name) {
  static const char *const suffix[] = {".grad", ".m.new", ".v.new", ".new"};
  size_t n = strlen(name);
  for (u32 k = 0; k < COUNT_OF(suffix); k++) {
    size_t m = strlen(suffix[k]);
    if (n > m && !strcmp(name + n - m, suffix[k])) return k + 1;
  }
  return 0;
}

static int by_difference(const void *x, const void *y) {
  const verify_row *a = x, *b = y;
  return a->max_rel > b->max_rel ? -1 : a->max_rel < b->max_rel ? 1 : strcmp(a->name, b->name);
}

bool plan_compare(ctx *c, const plan_numbers *want, const plan_numbers *got, double tolerance, arena *a,
                  verify_report *r) {
  double sq[5] = {0};
  i64 count[5] = {0};
  *r = (verify_report){.tolerance = tolerance > 0 ? tolerance : 1e-9,
                       .nrows = want->n,
                       .row = ZNEWN(a, verify_row, want->n + 1),
                       .shrunk = ""};
  for (u32 k = 0; k < want->n; k++) {
    if (k >= got->n || strcmp(want->name[k], got->name[k]) || !shape_same(&want->v[k].s, &got->v[k].s)) {
      diag(c, E_DIFFERS, (loc){0},
           "result %u of the distributed program is %s, of the single-device program %s", k,
           k < got->n ? got->name[k] : "missing", want->name[k]);
      return false;
    }
    sq[kind_of(want->name[k])] += sum_of_squares(&want->v[k]);
    count[kind_of(want->name[k])] += shape_elems(&want->v[k].s);
  }
  for (u32 k = 0; k < want->n; k++) {
    u32 kind = kind_of(want->name[k]);
    i64 n = shape_elems(&want->v[k].s);
    double own = FLOOR_OWN * sqrt(sum_of_squares(&want->v[k]) / (double)MAX(n, 1)),
           all = FLOOR_ALL * sqrt(sq[kind] / (double)MAX(count[kind], 1));
    r->row[k].name = want->name[k];
    compare_one(&got->v[k], &want->v[k], fmax(own, all), &r->row[k]);
  }
  qsort(r->row, r->nrows, sizeof *r->row, by_difference);
  r->worst = r->nrows ? r->row[0].max_rel : 0;
  r->passed = r->worst <= r->tolerance;
  if (r->passed) return true;
  const verify_row *w = &r->row[0];
  diag(c, E_DIFFERS, (loc){0},
       "%s differs by %.3g, %.3g of its size, at element %lld of %lld; %.3g is allowed", w->name, w->max_abs,
       w->max_rel, (long long)w->at, (long long)w->elems, r->tolerance);
  return true;
}

bool plan_verify(planner *pl, const plan *pn, coster *k, const verify_opts *o, arena *a, verify_report *r) {
  ctx *c = pl->src->c;
  plan keep = *pn, *one = plan_single(a, pl->src, pn->train, &pn->optim);
  keep.keep_gradients = one->keep_gradients = pn->train;
  prog *dist = plan_apply(pl, &keep, k), *ref = dist ? plan_apply(pl, one, k) : NULL;
  plan_numbers want, got;
  bool ok = ref && plan_evaluate(pl->src, ref, o->seed, a, &want) &&
            plan_evaluate(pl->src, dist, o->seed, a, &got) &&
            plan_compare(c, &want, &got, o->tolerance, a, r);
  if (dist) prog_free(dist);
  if (ref) prog_free(ref);
  return ok;
}
