// law_optim.c - laws of optimizers whose statistics have other extents than the parameter.
//
// Idea: Adafactor keeps means over rows and over columns of a matrix, the last two dimensions; all dimensions
// before these are those of many matrices. A mean is a sum over the letters that the statistic lacks, so it
// may be split, and what a split of the parameter needs to communicate follows from the letters.
#include "op/internal.h"

static law_term without_last(const law_term *t) {
  law_term r = *t;
  r.nd--;
  return r;
}

static law_term without_second_last(const law_term *t) {
  law_term r = without_last(t);
  r.dim[r.nd - 1] = t->dim[t->nd - 1];
  return r;
}

// The letters of operand k, which has at least so many dimensions.
static bool letters_of(law_job *j, u32 k, u32 least, law_term *t) {
  if (!law_rank(j, k, least, DIMS_MAX)) return false;
  *t = (law_term){0};
  for (u32 d = 0; d < j->opd[k].nd; d++) law_term_push(t, law_letter_new(j, j->opd[k].dim[d], 0, 0));
  return true;
}

static bool operand_is(law_job *j, u32 k, const law_term *t) {
  j->l->opd[k] = *t;
  return law_matches(j, t, k);
}

// Operands r (k), c and m (from k2 on) of a parameter with letters t.
static bool factors_are(law_job *j, const law_term *t, u32 k, u32 k2, bool mean) {
  const law_term r = without_last(t), c = without_second_last(t);
  law_term m = without_last(&r);
  return operand_is(j, k, &r) && operand_is(j, k2, &c) && (!mean || operand_is(j, k2 + 1, &m));
}

bool law_adafactor_v(law_job *j) {
  law_term w;
  if (!letters_of(j, 0, 0, &w)) return false;
  j->l->res[0] = (law_term){0}, j->l->res[1] = w;
  return operand_is(j, 0, &w) && operand_is(j, 1, &w) && operand_is(j, 2, &w);
}

bool law_adafactor_rc(law_job *j) {
  law_term w;
  if (!letters_of(j, 0, 2, &w)) return false;
  if (!operand_is(j, 0, &w) || !operand_is(j, 1, &w) || !factors_are(j, &w, 2, 3, false)) return false;
  j->l->res[0] = (law_term){0}, j->l->res[1] = j->l->opd[2], j->l->res[2] = j->l->opd[3];
  j->l->res[3] = without_last(&j->l->opd[2]);
  return true;
}

static bool whole_or_factors(law_job *j, u32 whole, u32 factors) {
  if (j->nopd == whole || j->nopd == factors) return true;
  return law_fail(j, E_ARITY, "%u operands, not %u or %u", j->nopd, whole, factors);
}

bool law_adafactor_norm(law_job *j) {
  law_term g;
  const bool factors = j->nopd == 4;
  if (!whole_or_factors(j, 2, 4) || !letters_of(j, 1, factors ? 2 : 0, &g) || !operand_is(j, 1, &g))
    return false;
  j->l->res[0] = (law_term){0};
  return factors ? factors_are(j, &g, 0, 2, true) : operand_is(j, 0, &g);
}

bool law_adafactor(law_job *j) {
  law_term w, scalar = {0};
  const bool factors = j->nopd == 7;
  if (!whole_or_factors(j, 5, 7) || !letters_of(j, 0, factors ? 2 : 0, &w)) return false;
  for (u32 k = 0; k < 4; k++)
    if (!operand_is(j, k, k < 2 ? &w : &scalar)) return false;
  j->l->res[0] = w;
  return factors ? factors_are(j, &w, 4, 5, true) : operand_is(j, 4, &w);
}
