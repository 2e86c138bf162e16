// law_math.c - laws of products, reductions and of operators that work along one dimension.
//
// Idea: these are the laws that tensor parallelism lives on. A contracted letter (k of a product, the
// dimensions of a sum) may be split and leaves a partial result; a dimension that an operator must see whole
// (softmax) is marked so.
#include "op/internal.h"

// ---- products ----------------------------------------------------------------------------------------

static bool inner_fail(law_job *j, i64 ka, i64 kb) {
  const shape *a = &j->opd[0], *b = &j->opd[1];
  law_fail(j, E_SHAPE, "inner extents differ: %lld against %lld", (long long)ka, (long long)kb);
  if (b->nd > 1 && b->dim[b->nd - 1] == ka)
    diag_hint(j->c, "operand 2 has %lld as its last dimension: transpose it first", (long long)ka);
  else if (a->nd > 1 && a->dim[a->nd - 2] == kb)
    diag_hint(j->c, "operand 1 has %lld as its dimension before the last: transpose it first", (long long)kb);
  return false;
}

bool law_matmul(law_job *j) {
  const shape *a = &j->opd[0], *b = &j->opd[1];
  law_term *ta = &j->l->opd[0], *tb = &j->l->opd[1], *tr = &j->l->res[0];
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_rank(j, 1, 1, DIMS_MAX)) return false;
  bool vec_a = a->nd == 1, vec_b = b->nd == 1;
  i64 ka = a->dim[a->nd - 1], kb = b->dim[vec_b ? 0 : b->nd - 2];
  if (ka != kb) return inner_fail(j, ka, kb);
  u32 na = vec_a ? 0 : a->nd - 2, nb = vec_b ? 0 : b->nd - 2, lead = MAX(na, nb);
  ta->nd = a->nd, tb->nd = b->nd;
  for (u32 d = lead; d-- > 0;) { // batch dimension d from the right
    i64 ea = d < na ? a->dim[na - 1 - d] : 1, eb = d < nb ? b->dim[nb - 1 - d] : 1;
    if (ea != eb && ea != 1 && eb != 1)
      return law_fail(
          j, E_SHAPE,
          "batch extents differ: %lld in dimension %u of operand 1 against %lld in dimension %u of operand 2",
          (long long)ea, na - 1 - d, (long long)eb, nb - 1 - d);
    law_dim x = law_letter_new(j, ea == 1 ? eb : ea, 0, 0);
    if (ea != 1) ta->dim[na - 1 - d] = x;
    if (eb != 1) tb->dim[nb - 1 - d] = x;
    law_term_push(tr, x);
  }
  if (!vec_a) law_term_push(tr, ta->dim[na] = law_letter_new(j, a->dim[na], 0, 'm'));
  ta->dim[a->nd - 1] = tb->dim[nb] = law_letter_new(j, ka, 0, 'k');
  if (!vec_b) law_term_push(tr, tb->dim[nb + 1] = law_letter_new(j, b->dim[nb + 1], 0, 'n'));
  return true;
}

bool law_einsum(law_job *j) {
  const char *text = sym_str(j->c, attr_get(j->at, A_law)->u.s);
  law_dim dim[128];
  u8 seen[128] = {0}; // 1 + the term that has the letter last
  i64 extent[128];
  for (u32 t = 0; t < 3; t++) {
    bool result = t == 2;
    law_term *lt = result ? &j->l->res[0] : &j->l->opd[t];
    for (; *text && *text != ',' && *text != '-'; text++) {
      u8 ch = (u8)*text;
      if (ch == ' ') continue;
      if ((u32)((ch | 32) - 'a') >= 26) return law_fail(j, E_ATTR, "law: %c is not a letter", ch);
      if (seen[ch] == t + 1) return law_fail(j, E_ATTR, "law: %c occurs twice in one term", ch);
      if (result && !seen[ch]) return law_fail(j, E_ATTR, "law: %c of the result is in no operand", ch);
      if (lt->nd == DIMS_MAX) return law_fail(j, E_LIMIT, "law: a term has more than %d letters", DIMS_MAX);
      if (!result) {
        if (lt->nd == j->opd[t].nd) return law_rank(j, t, lt->nd + 1, DIMS_MAX);
        i64 e = j->opd[t].dim[lt->nd];
        if (!seen[ch])
          extent[ch] = e, dim[ch] = law_letter_new(j, e, 0, (char)ch);
        else if (extent[ch] != e)
          return law_fail(j, E_SHAPE, "extents of %c differ: %lld against %lld", ch, (long long)extent[ch],
                          (long long)e);
      }
      seen[ch] = (u8)(t + 1);
      law_term_push(lt, dim[ch]);
    }
    if (!result && !law_rank(j, t, lt->nd, lt->nd)) return false;
    const char *next = t == 0 ? "," : t == 1 ? "->" : "";
    if (strncmp(text, next, strlen(next)) || (result && *text))
      return law_fail(j, E_ATTR, "law: two terms, an arrow and the result are needed, as in \"mk,kn->mn\"");
    text += strlen(next);
  }
  return true;
}

// ---- reductions --------------------------------------------------------------------------------------

// Which of nd dimensions the attribute `axes` names; all if it is absent or empty.
static bool axes_of(law_job *j, u32 nd, bool *on) {
  const i64 *v = NULL;
  u32 n = attr_ints(j->at, A_axes, &v);
  memset(on, n == 0, nd * sizeof *on);
  for (u32 i = 0; i < n; i++) {
    i64 d = v[i] < 0 ? v[i] + nd : v[i];
    if (d < 0 || d >= nd)
      return law_fail(j, E_ATTR, "axes: %lld is outside the %u dimensions", (long long)v[i], nd);
    if (on[d]) return law_fail(j, E_ATTR, "axes: dimension %lld occurs twice", (long long)d);
    on[d] = true;
  }
  return true;
}

bool law_reduce(law_job *j) {
  const shape *x = &j->opd[0];
  bool on[DIMS_MAX], keep = attr_int(j->at, A_keepdims, 1);
  if (!axes_of(j, x->nd, on)) return false;
  for (u32 d = 0; d < x->nd; d++) {
    law_dim l = law_letter_new(j, x->dim[d], 0, 0);
    law_term_push(&j->l->opd[0], l);
    if (!on[d])
      law_term_push(&j->l->res[0], l);
    else if (keep)
      law_term_push(&j->l->res[0], (law_dim){0});
  }
  return true;
}

bool law_arg(law_job *j) {
  const shape *x = &j->opd[0];
  u32 axis;
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_axis(j, A_axis, 0, x->nd, &axis)) return false;
  if (x->dim[axis] == 0) return law_fail(j, E_SHAPE, "dimension %u is empty: there is nothing to find", axis);
  for (u32 d = 0; d < x->nd; d++) {
    law_dim l = law_letter_new(j, x->dim[d], d == axis ? LAW_WHOLE : 0, 0);
    law_term_push(&j->l->opd[0], l);
    if (d != axis)
      law_term_push(&j->l->res[0], l);
    else if (attr_int(j->at, A_keepdims, 1))
      law_term_push(&j->l->res[0], (law_dim){0});
  }
  return true;
}

// ---- along one dimension -----------------------------------------------------------------------------

bool law_along(law_job *j) {
  const shape *x = &j->opd[0];
  u32 axis;
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_axis(j, A_axis, -1, x->nd, &axis)) return false;
  for (u32 d = 0; d < x->nd; d++)
    law_term_push(&j->l->opd[0], law_letter_new(j, x->dim[d], d == axis ? LAW_WHOLE : 0, 0));
  j->l->res[0] = j->l->opd[0];
  return true;
}

bool law_along2(law_job *j) {
  if (!law_same_dims(j, 0, 1) || !law_along(j)) return false;
  j->l->opd[1] = j->l->opd[0];
  return true;
}

bool law_topk(law_job *j) {
  const shape *x = &j->opd[0];
  i64 k = attr_int(j->at, A_k, 0);
  u32 axis;
  if (!law_rank(j, 0, 1, DIMS_MAX) || !law_axis(j, A_axis, -1, x->nd, &axis)) return false;
  if (k < 0 || k > x->dim[axis])
    return law_fail(j, E_ATTR, "k is %lld, dimension %u has %lld elements", (long long)k, axis,
                    (long long)x->dim[axis]);
  for (u32 d = 0; d < x->nd; d++) {
    law_dim l = law_letter_new(j, x->dim[d], d == axis ? LAW_WHOLE | LAW_FIXED : 0, 0);
    law_term_push(&j->l->opd[0], l);
    law_term_push(&j->l->res[0],
                  d == axis ? law_letter_new(j, k, LAW_WHOLE | LAW_FIXED | LAW_DERIVED, 'K') : l);
  }
  j->l->res[1] = j->l->res[0];
  return true;
}
