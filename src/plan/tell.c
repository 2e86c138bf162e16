// tell.c - does a comparison of results say anything about the plan?
//
// Idea: results that are the same whatever the inputs are (a sum of probabilities, a saturated softmax,
// zeros, numbers that are none) are the same under a wrong plan too. So the reference runs once more on other
// inputs: an element that stays as it was tells nothing. What is updated tells what its gradient tells.
#include "plan/plan.h"
#include <math.h>
#include <stdlib.h>

// So many times further apart than on other inputs, where an element says nothing: rounding may be no further.
static const double ROUNDING = 8;

// Far above what a comparison lets pass: what a wrong plan changes may be less than what other inputs change.
static const double TELLING = 1e3;

static bool tells(double x, double y, double least, double tolerance) {
  if (!isfinite(x) || !isfinite(y)) return false;
  return fabs(x - y) > TELLING * tolerance * fmax(fmax(fabs(x), fabs(y)), least);
}

void plan_tell(const plan_numbers *want, const double *scale, const plan_numbers *other, verify_report *r) {
  for (u32 i = 0; i < r->nrows; i++) {
    verify_row *row = &r->row[i];
    const eval_array *x = &want->v[row->result], *y = &other->v[row->result];
    i64 told = 0, odd = 0;
    for (i64 k = 0; k < row->elems; k++) {
      const double e = plan_element(x, k), f = plan_element(y, k);
      const bool tell = tells(e, f, scale[row->result], r->tolerance);
      told += tell;
      if (!tell && isfinite(e) && isfinite(f)) row->spread = fmax(row->spread, fabs(e - f));
      odd += !isfinite(e);
    }
    row->told = MAX(row->told, told);
    row->odd = odd;
  }
}

static int rounding_last(const void *x, const void *y) {
  const verify_row *a = x, *b = y;
  if (a->rounding != b->rounding) return a->rounding - b->rounding;
  return a->max_rel > b->max_rel ? -1 : a->max_rel < b->max_rel ? 1 : strcmp(a->name, b->name);
}

void plan_rounding(verify_report *r) {
  for (u32 i = 0; i < r->nrows; i++) {
    verify_row *row = &r->row[i];
    row->rounding =
        row->max_rel > r->tolerance && !row->told && !row->odd && row->max_abs <= ROUNDING * row->spread;
  }
  qsort(r->row, r->nrows, sizeof *r->row, rounding_last);
  r->worst = r->nrows && !r->row[0].rounding ? r->row[0].max_rel : 0;
  r->passed = r->worst <= r->tolerance;
}

static bool counts(const verify_row *row) { return plan_result_kind(row->name) <= RESULT_GRAD; }

bool plan_all_told(const verify_report *r) {
  for (u32 i = 0; i < r->nrows; i++)
    if (counts(&r->row[i]) && !r->row[i].told) return false;
  return true;
}

// "all zero", "8 everywhere", "not a number", "the same".
static const char *how(arena *a, const eval_array *x) {
  i64 n = shape_elems(&x->s);
  if (!n) return "empty";
  double first = plan_element(x, 0), least = first, most = first;
  for (i64 k = 0; k < n; k++) {
    double e = plan_element(x, k);
    if (!isfinite(e)) return "not finite";
    least = fmin(least, e), most = fmax(most, e);
  }
  if (most - least > 1e-9 * fmax(fabs(least), fabs(most))) return "the same on other inputs";
  return first == 0 ? "zero" : arena_printf(a, n > 1 ? "%.6g everywhere" : "%.6g", first);
}

// Names of results, with what they are; up to four.
static const char *list(arena *a, const plan_numbers *want, const verify_report *r, bool odd) {
  strbuf b = {.a = a};
  u32 n = 0;
  for (u32 k = 0; k < want->n; k++)
    for (u32 i = 0; i < r->nrows; i++) {
      const verify_row *row = &r->row[i];
      if (row->result != k || !counts(row) || (odd ? !row->odd : row->told > 0)) continue;
      if (n++ < 4)
        sb_fmt(&b, "%s%s (%s)", n > 1 ? ", " : "", row->name,
               odd ? arena_printf(a, "%lld of %lld", (long long)row->odd, (long long)row->elems)
                   : how(a, &want->v[k]));
    }
  if (n > 4) sb_fmt(&b, " and %u more", n - 4);
  return sb_str(&b);
}

void plan_judge(ctx *c, loc where, const plan_numbers *want, verify_report *r) {
  u32 n[2] = {0}, told[2] = {0}, odd = 0; // plain results, gradients
  for (u32 i = 0; i < r->nrows; i++) {
    if (!counts(&r->row[i])) continue;
    result_kind kind = plan_result_kind(r->row[i].name);
    n[kind]++, told[kind] += r->row[i].told > 0, odd += r->row[i].odd > 0 && r->row[i].told > 0;
  }
  arena *a = ctx_arena(c);
  r->told = told[0] + told[1] && (!n[1] || told[1]);
  if (!r->told) {
    r->passed = false;
    bool grads = told[0] > 0;
    diag(c, E_UNTOLD, where, "no %s depends on the inputs, so nothing is proved: %s",
         grads ? "gradient" : "result", list(a, want, r, false));
    diag_hint(c, "another --seed, or a part of the model whose results are not constant");
    return;
  }
  u32 same = n[0] + n[1] - told[0] - told[1];
  if (same)
    diag(c, W_UNTOLD, where, "%s: %s", "results that say nothing about the plan", list(a, want, r, false));
  if (odd)
    diag(c, W_UNTOLD, where, "%s: %s", "results with elements that are not finite", list(a, want, r, true));
}
