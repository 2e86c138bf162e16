// attention.c - the law of attention that keeps no scores: which letters q, k, v, what is added to scores and what masks
// them have, for the operator and its gradients alike.
//
// Idea: as an einsum, attention is written in letters, and every role follows from where a letter stands: keys are in k and
// v alone, d is summed over between q and k, e is what v brings. All other letters are of rows of scores or of a batch, and
// may be split as they may be of the products; a row of scores is whole.
#include "op/internal.h"

static bool in_term(const char *term, char c) { return c && strchr(term, c); }

// The one letter that two terms have and two others lack. 0: there is none, or there are several.
static char only(const char *in, const char *also, const char *lack, const char *and_lack) {
  char found = 0;
  for (; *in; in++) {
    if (!in_term(also, *in) || in_term(lack, *in) || in_term(and_lack, *in)) continue;
    if (found) return 0;
    found = *in;
  }
  return found;
}

static const char *read_terms(const char *s, attention_law *l) {
  char *to[ATTENTION_OPDS + 1];
  for (u32 k = 0; k < ATTENTION_OPDS; k++) to[k] = l->opd[k];
  for (u32 n = 0;; s++) {
    if (l->nopd == ATTENTION_OPDS) return "more than 5 terms before the arrow";
    char *term = to[l->nopd];
    if (*s == ' ') continue;
    if ((u32)((*s | 32) - 'a') < 26) {
      if (strchr(term, *s)) return "a letter occurs twice in one term";
      if (n == DIMS_MAX) return "a term has more than 8 letters";
      term[n++] = *s;
      continue;
    }
    l->nopd++, n = 0;
    if (*s == ',') continue;
    if (strncmp(s, "->", 2)) return "terms of letters, an arrow and the result are needed";
    break;
  }
  u32 n = 0;
  for (s += 2; *s; s++) {
    if (*s == ' ') continue;
    if ((u32)((*s | 32) - 'a') >= 26 || n == DIMS_MAX || strchr(l->y, *s)) return "the result is no term";
    l->y[n++] = *s;
  }
  return l->nopd < 3 ? "three terms before the arrow are needed: of q, k and v" : NULL;
}

const char *attention_read(const char *text, attention_law *l) {
  *l = (attention_law){0};
  const char *wrong = read_terms(text, l);
  if (wrong) return wrong;
  const char *q = l->opd[0], *k = l->opd[1], *v = l->opd[2];
  l->key = only(k, v, q, l->y), l->deep = only(q, k, v, l->y), l->wide = only(v, l->y, q, k);
  if (!l->key) return "one letter, of keys, is in k and v, and in neither q nor the result";
  if (!l->deep) return "one letter is in q and k, and in neither v nor the result";
  if (!l->wide) return "one letter is in v and the result, and in neither q nor k";
  for (u32 t = 0; t < 3; t++)
    for (const char *s = l->opd[t]; *s; s++)
      if (*s != l->key && *s != l->deep && !in_term(l->y, *s))
        return "the result lacks a letter that is not summed over";
  u32 n = 0;
  for (const char *s = l->y; *s; s++) {
    if (!in_term(q, *s) && !in_term(k, *s) && !in_term(v, *s))
      return "a letter of the result is in no operand";
    if (*s != l->wide) l->rows[n++] = *s;
  }
  for (u32 t = 3; t < l->nopd; t++)
    for (const char *s = l->opd[t]; *s; s++)
      if (*s != l->key && !in_term(l->rows, *s))
        return "what is added to scores or masks them has a letter that they lack";
  return NULL;
}

// ---- the law ---------------------------------------------------------------------------------------------
typedef struct {
  attention_law l;
  law_dim dim[128];
  i64 extent[128];
  bool seen[128];
} letters;

// Operand k has the letters of the term. loose: extents of 1 stand for any.
static bool take_operand(law_job *j, letters *x, u32 k, const char *term, bool loose) {
  const shape *s = &j->opd[k];
  const u32 n = (u32)strlen(term);
  if (!law_rank(j, k, n, n)) return false;
  law_term *t = &j->l->opd[k];
  for (u32 d = 0; d < n; d++) {
    const u8 c = (u8)term[d];
    if (!x->seen[c] && !loose) {
      const bool whole = (char)c == x->l.key || (char)c == x->l.deep || (char)c == x->l.wide;
      x->seen[c] = true, x->extent[c] = s->dim[d];
      x->dim[c] = law_letter_new(j, s->dim[d], whole ? LAW_WHOLE : 0, (char)c);
    }
    if (loose && s->dim[d] == 1) {
      law_term_push(t, (law_dim){0});
      continue;
    }
    if (x->extent[c] != s->dim[d])
      return law_fail(j, E_SHAPE, "extents of %c differ: %lld against %lld", c, (long long)x->extent[c],
                      (long long)s->dim[d]);
    law_term_push(t, x->dim[c]);
  }
  return true;
}

static law_term term_of(const letters *x, const char *text) {
  law_term t = {0};
  for (; *text; text++) law_term_push(&t, x->dim[(u8)*text]);
  return t;
}

// q, k, v and what follows are operands from `first` on.
static bool read_law(law_job *j, letters *x, u32 first) {
  const char *wrong = attention_read(sym_str(j->c, attr_get(j->at, A_law)->u.s), &x->l);
  if (wrong) return law_fail(j, E_ATTR, "law: %s", wrong);
  if (j->nopd != first + x->l.nopd)
    return law_fail(j, E_ARITY, "%u operands, the law has %u", j->nopd, first + x->l.nopd);
  memset(x->seen, 0, sizeof x->seen);
  bool masked = false;
  for (u32 k = 0; k < x->l.nopd; k++) {
    const dtype t = j->opd[first + k].t;
    if (k > 2 && (masked || k > 3 ? t != DT_BOOL : t != DT_BOOL && dtype_kind_of(t) != DK_FLOAT))
      return law_fail(
          j, E_DTYPE,
          "operand %u is %s; after q, k, v come what is added to scores, a float, and a mask, bool",
          first + k + 1, dtype_name(t));
    masked |= k > 2 && t == DT_BOOL;
    if (!take_operand(j, x, first + k, x->l.opd[k], k > 2)) return false;
  }
  const attr *causal = attr_get(j->at, A_causal);
  const char *letter = causal ? sym_str(j->c, causal->u.s) : "";
  if (causal && (strlen(letter) != 1 || !in_term(x->l.rows, *letter) || !in_term(x->l.opd[0], *letter) ||
                 in_term(x->l.opd[1], *letter) || in_term(x->l.opd[2], *letter)))
    return law_fail(j, E_ATTR, "causal is \"%s\", a letter of queries is needed: of q and y, not of k or v",
                    letter);
  return true;
}

bool law_attention(law_job *j) {
  letters x;
  if (!read_law(j, &x, 0)) return false;
  j->l->res[0] = term_of(&x, x.l.y), j->l->res[1] = term_of(&x, x.l.rows);
  return true;
}

// dy, y and the log-sum-exp come before q.
static bool gradient_law(law_job *j, letters *x) {
  if (!read_law(j, x, 3)) return false;
  j->l->opd[0] = j->l->opd[1] = term_of(x, x->l.y), j->l->opd[2] = term_of(x, x->l.rows);
  for (u32 k = 0; k < 3; k++)
    if (!law_matches(j, &j->l->opd[k], k)) return false;
  return true;
}

bool law_attention_dx(law_job *j) {
  letters x;
  if (!gradient_law(j, &x)) return false;
  for (u32 r = 0; r < 3; r++) j->l->res[r] = j->l->opd[3 + r];
  return true;
}

bool law_attention_db(law_job *j) {
  letters x;
  if (!gradient_law(j, &x)) return false;
  if (dtype_kind_of(j->opd[6].t) != DK_FLOAT)
    return law_fail(j, E_DTYPE, "operand 7 is %s: nothing is added to scores", dtype_name(j->opd[6].t));
  j->l->res[0] = j->l->opd[6];
  return true;
}

// ---- arithmetic ------------------------------------------------------------------------------------------
// Products of scores x d and scores x e, and operations per score beside them, as softmax and softmax_dx count them. The
// gradients make scores again from the log-sum-exp. Masked scores count: what a kernel leaves out is its own.
static const struct {
  opcode op;
  u32 deep, wide, each;
  const char *text;
} work[] = {{OP_attention, 1, 1, 5, "2 (d + e) + 5 for each score"},
            {OP_attention_dx, 3, 2, 8, "6 d + 4 e + 8 for each score"},
            {OP_attention_db, 1, 1, 8, "2 (d + e) + 8 for each score"}};

const char *attention_flops_text(opcode op) {
  for (u32 w = 0; w < COUNT_OF(work); w++)
    if (work[w].op == op) return work[w].text;
  return NULL;
}

double attention_flops(opcode op, const law *l) {
  u32 w = 0;
  while (work[w].op != op) w++;
  const u32 q = op == OP_attention ? 0 : 3;
  double scores = 1, deep = 1, wide = 1;
  for (u32 i = 0; i < l->nletters; i++) {
    bool at[3] = {false};
    for (u32 k = 0; k < 3; k++)
      for (u32 d = 0; d < l->opd[q + k].nd; d++) {
        const law_dim *x = &l->opd[q + k].dim[d];
        at[k] |= x->n && x->f[0] == i;
      }
    const double e = (double)l->letter[i].extent;
    const bool whole = l->letter[i].flags & LAW_WHOLE;
    *(whole && at[0] && at[1] ? &deep : whole && !at[0] && !at[1] ? &wide : &scores) *= e;
  }
  return scores * (2 * (work[w].deep * deep + work[w].wide * wide) + work[w].each);
}
