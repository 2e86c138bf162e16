// law.c - the law of one application: the workbench, textual laws, dtype rules, attributes, points and flops.
//
// Idea: op_law runs for every instruction of every candidate plan, so the rows come compiled (table.c),
// letters are collected on the stack, and the arena is asked twice. Result extents are never computed beside
// the letters: a dimension's extent is the product of its letters, so shapes and laws cannot disagree.
#include "op/internal.h"

bool law_fail(law_job *j, diag_id id, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(j->c, id, j->where, "%s: %s", j->row->name, text);
  return false;
}

// ---- letters -----------------------------------------------------------------------------------------

law_dim law_letter_new(law_job *j, i64 extent, u32 flags, char name) {
  if (extent == 1) return (law_dim){0};
  if (j->nletters < LETTERS_MAX) j->letter[j->nletters] = (law_letter){extent, (u8)flags, name};
  return (law_dim){1, {(u8)j->nletters++}}; // too many: op_law refuses when it sees the count
}

static i64 dim_extent(const law_job *j, const law_dim *d) {
  i64 n = 1;
  for (u32 i = 0; i < d->n; i++)
    if (!mul_i64(n, j->letter[d->f[i]].extent, &n)) return INT64_MAX; // refused as uncountable
  return n;
}

bool law_dim_push(law_dim *to, const law_dim *minor) {
  if (to->n + minor->n > LAW_FACTORS) return false;
  for (u32 i = 0; i < minor->n; i++) to->f[to->n++] = minor->f[i];
  return true;
}

// ---- checks that laws share --------------------------------------------------------------------------

bool law_axis(law_job *j, attr_key k, i64 absent, u32 nd, u32 *axis) {
  i64 v = attr_int(j->at, k, absent), n = nd;
  if (v < -n || v >= n)
    return law_fail(j, E_ATTR, "%s %lld is outside the %u dimensions", attr_name(k), (long long)v, nd);
  *axis = (u32)(v < 0 ? v + n : v);
  return true;
}

bool law_rank(law_job *j, u32 operand, u32 least, u32 most) {
  u32 nd = j->opd[operand].nd;
  if (nd >= least && nd <= most) return true;
  if (least == most)
    return law_fail(j, E_SHAPE, "operand %u has %u dimensions, not %u", operand + 1, nd, least);
  if (nd < least)
    return law_fail(j, E_SHAPE, "operand %u has %u dimensions, at least %u are needed", operand + 1, nd,
                    least);
  return law_fail(j, E_SHAPE, "operand %u has %u dimensions, at most %u are allowed", operand + 1, nd, most);
}

bool law_equal(law_job *j, u32 p, u32 pd, u32 q, u32 qd) {
  i64 x = j->opd[p].dim[pd], y = j->opd[q].dim[qd];
  if (x == y) return true;
  return law_fail(j, E_SHAPE, "dimension %u of operand %u is %lld, dimension %u of operand %u is %lld", pd,
                  p + 1, (long long)x, qd, q + 1, (long long)y);
}

bool law_same_dims(law_job *j, u32 p, u32 q) {
  const shape *x = &j->opd[p], *y = &j->opd[q];
  if (x->nd != y->nd)
    return law_fail(j, E_SHAPE, "operand %u has %u dimensions, operand %u has %u", p + 1, x->nd, q + 1,
                    y->nd);
  for (u32 d = 0; d < x->nd; d++)
    if (!law_equal(j, p, d, q, d)) return false;
  return true;
}

bool law_result_rank(law_job *j, u32 nd) {
  return nd <= DIMS_MAX ||
         law_fail(j, E_LIMIT, "the result has %u dimensions, the limit is %d", nd, DIMS_MAX);
}

bool law_extents(law_job *j, attr_key k, i64 *out, u32 *n) {
  const i64 *v = NULL;
  *n = attr_ints(j->at, k, &v);
  if (*n > DIMS_MAX)
    return law_fail(j, E_LIMIT, "%s has %u dimensions, the limit is %d", attr_name(k), *n, DIMS_MAX);
  for (u32 d = 0; d < *n; d++) {
    if (v[d] < 0)
      return law_fail(j, E_ATTR, "%s: extent %lld of dimension %u is negative", attr_name(k), (long long)v[d],
                      d);
    if (v[d] > (i64)1 << 60)
      return law_fail(j, E_LIMIT, "%s: dimension %u has %.3g elements", attr_name(k), d, (double)v[d]);
    out[d] = v[d];
  }
  return true;
}

bool law_matches(law_job *j, const law_term *t, u32 operand) {
  const shape *s = &j->opd[operand];
  if (!law_rank(j, operand, t->nd, t->nd)) return false;
  for (u32 d = 0; d < t->nd; d++) {
    i64 want = dim_extent(j, &t->dim[d]);
    if (s->dim[d] != want)
      return law_fail(j, E_SHAPE, "dimension %u of operand %u is %lld, the others ask for %lld", d,
                      operand + 1, (long long)s->dim[d], (long long)want);
  }
  return true;
}

bool law_is(const law_job *j, attr_key k, const char *word) {
  const attr *p = attr_get(j->at, k);
  return p && !strcmp(sym_str(j->c, p->u.s), word);
}

// ---- textual laws ------------------------------------------------------------------------------------

static bool broadcast_fail(law_job *j, u32 d, u32 p, i64 x, u32 q, i64 y) {
  law_fail(j, E_SHAPE, "dimension %u counted from the last: %lld in operand %u against %lld in operand %u", d,
           (long long)x, p + 1, (long long)y, q + 1);
  diag_hint(j->c, "extents must be equal, or one of them 1");
  return false;
}

// The dimensions of "...": dimension d from the right (past each term's letters) gets one letter for all
// operands.
static bool text_dots(law_job *j, const row_code *rc, u32 *lead) {
  law *l = j->l;
  *lead = 0;
  for (u32 k = 0; k < rc->nopd; k++)
    if (rc->term[k].dots) *lead = MAX(*lead, j->opd[k].nd - rc->term[k].n);
  for (u32 left = 0; left < *lead; left++) { // from the major dimension, so that letters lie in order
    u32 d = *lead - 1 - left, from = 0;
    i64 extent = 1;
    law_dim letter = {0};
    for (u32 k = 0; k < rc->nopd; k++) {
      u32 n = j->opd[k].nd - rc->term[k].n;
      if (!rc->term[k].dots || d >= n) continue;
      i64 e = j->opd[k].dim[n - 1 - d];
      if (e == 1) continue;
      if (!letter.n)
        extent = e, from = k, letter = law_letter_new(j, e, 0, 0);
      else if (e != extent)
        return broadcast_fail(j, d + rc->term[k].n + 1, from, extent, k, e);
      l->opd[k].dim[n - 1 - d] = letter;
    }
    for (u32 r = 0; r < rc->nres; r++)
      if (rc->term[rc->nopd + r].dots) l->res[r].dim[left] = letter;
  }
  return true;
}

// What letters, and numbers, of a law in letters are so far.
enum { TEXT_SEEN = 2 * 26 + TEXT_NUMBER };
typedef struct {
  u32 n;
  struct {
    u8 name;
    i64 extent;
    law_dim dim;
  } v[TEXT_SEEN];
} seen_letters;

static u32 seen_find(const seen_letters *seen, u8 name) {
  u32 s = 0;
  while (s < seen->n && seen->v[s].name != name) s++;
  return s;
}

static const law_dim *seen_add(law_job *j, seen_letters *seen, u8 name, i64 extent) {
  const bool number = name >= TEXT_NUMBER;
  const u32 flags = number ? LAW_WHOLE | LAW_FIXED : name < 'a' ? LAW_WHOLE : 0;
  const char shown = !number ? (char)name : name < TEXT_NUMBER + 10 ? (char)('0' + name - TEXT_NUMBER) : 0;
  seen->v[seen->n].name = name, seen->v[seen->n].extent = extent;
  seen->v[seen->n].dim = law_letter_new(j, extent, flags, shown);
  return &seen->v[seen->n++].dim;
}

// The extent of a factor, where it is a number, was seen, or is a dimension of an operand by itself.
static bool factor_extent(const law_job *j, const row_code *rc, const seen_letters *seen, u8 name, i64 *out) {
  const u32 s = seen_find(seen, name);
  if (name >= TEXT_NUMBER) return *out = name - TEXT_NUMBER, true;
  if (s < seen->n) return *out = seen->v[s].extent, true;
  for (u32 k = 0; k < rc->nopd; k++)
    for (u32 i = 0; i < rc->term[k].n; i++)
      if (rc->term[k].dim[i].n == 1 && rc->term[k].dim[i].f[0] == name)
        return *out = j->opd[k].dim[j->opd[k].nd - rc->term[k].n + i], true;
  return false;
}

// Factors of dimension d of term k; of at most one of them the extent follows from the others (own.c has seen to that).
static bool text_group(law_job *j, const row_code *rc, seen_letters *seen, u32 k, const text_dim *x, u32 d) {
  const bool opd = k < rc->nopd;
  const i64 whole = opd ? j->opd[k].dim[d] : 0;
  law_dim *to = opd ? &j->l->opd[k].dim[d] : &j->l->res[k - rc->nopd].dim[d];
  i64 known = 1, e, left = 1;
  bool open = false;
  for (u32 i = 0; i < x->n; i++)
    if (factor_extent(j, rc, seen, x->f[i], &e))
      known = mul_sat(known, e);
    else
      open = true;
  if (opd && open && (!known || whole % known))
    return law_fail(j, E_SHAPE, "dimension %u of operand %u is %lld, not a multiple of %lld", d, k + 1,
                    (long long)whole, (long long)known);
  if (opd && !open && known != whole)
    return law_fail(j, E_SHAPE, "dimension %u of operand %u is %lld, its factors make %lld", d, k + 1,
                    (long long)whole, (long long)known);
  if (opd && open) left = whole / known;
  for (u32 i = 0; i < x->n; i++) {
    if (!factor_extent(j, rc, seen, x->f[i], &e)) e = left;
    const u32 s = seen_find(seen, x->f[i]);
    law_dim_push(to, s < seen->n ? &seen->v[s].dim : seen_add(j, seen, x->f[i], e));
  }
  return true;
}

static bool law_text(law_job *j, const row_code *rc) {
  law *l = j->l;
  u32 lead;
  for (u32 k = 0; k < rc->nopd; k++) {
    const text_term *t = &rc->term[k];
    if (!law_rank(j, k, t->n, t->dots ? DIMS_MAX : t->n)) return false;
    l->opd[k].nd = j->opd[k].nd;
  }
  if (!text_dots(j, rc, &lead)) return false;
  seen_letters seen;
  seen.n = 0;
  for (u32 k = 0; k < rc->nopd + rc->nres; k++) {
    const text_term *t = &rc->term[k];
    law_term *lt = k < rc->nopd ? &l->opd[k] : &l->res[k - rc->nopd];
    if (k >= rc->nopd) lt->nd = (t->dots ? lead : 0) + t->n;
    if (lt->nd > DIMS_MAX) return law_result_rank(j, lt->nd);
    for (u32 i = 0; i < t->n; i++) {
      const u32 d = lt->nd - t->n + i;
      const u8 name = t->dim[i].f[0];
      if (t->dim[i].n > 1 || name >= TEXT_NUMBER) {
        if (!text_group(j, rc, &seen, k, &t->dim[i], d)) return false;
        continue;
      }
      const u32 s = seen_find(&seen, name);
      if (s < seen.n && k < rc->nopd && j->opd[k].dim[d] != seen.v[s].extent)
        return law_fail(j, E_SHAPE, "extents of %c differ: %lld against %lld", name,
                        (long long)seen.v[s].extent, (long long)j->opd[k].dim[d]);
      assert(s < seen.n || k < rc->nopd); // a result has no letter of its own
      lt->dim[d] = s < seen.n ? seen.v[s].dim : *seen_add(j, &seen, name, j->opd[k].dim[d]);
    }
  }
  return true;
}

bool law_same(law_job *j) {
  law_term *t = &j->l->opd[0];
  for (u32 k = 1; k < j->nopd; k++)
    if (!law_same_dims(j, 0, k)) return false;
  for (u32 d = 0; d < j->opd[0].nd; d++) law_term_push(t, law_letter_new(j, j->opd[0].dim[d], 0, 0));
  for (u32 k = 1; k < j->nopd; k++) j->l->opd[k] = *t;
  for (u32 r = 0; r < j->nres; r++) j->l->res[r] = *t;
  return true;
}

bool law_many(law_job *j) {
  for (u32 k = 0; k < j->nopd; k++) {
    law_term *t = &j->l->opd[k];
    for (u32 d = 0; d < j->opd[k].nd; d++) law_term_push(t, law_letter_new(j, j->opd[k].dim[d], 0, 0));
    j->l->res[k] = *t;
  }
  return true;
}

// ---- element types -----------------------------------------------------------------------------------

static const char *class_name(u8 token) {
  return strchr("FGH", token)  ? "a float"
         : strchr("NM", token) ? "a number"
         : strchr("IJ", token) ? "an integer"
                               : "an integer or bool";
}

static bool class_holds(u8 token, dtype_kind k) {
  switch (token) {
  case 'F':
  case 'G':
  case 'H': return k == DK_FLOAT;
  case 'N':
  case 'M': return k != DK_BOOL;
  case 'I':
  case 'J': return k == DK_INT || k == DK_UINT;
  case 'L': return k != DK_FLOAT;
  default: return true;
  }
}

static bool types_operands(law_job *j, const row_code *rc, u8 bound[26], u32 by[26]) {
  for (u32 k = 0; k < j->nopd && rc->type_opd; k++) {
    u8 token = rc->type[MIN(k, rc->type_opd - 1u)];
    dtype t = j->opd[k].t;
    assert(t != DT_NONE);
    if (token & TY_EXACT) {
      dtype want = (dtype)(token & ~TY_EXACT);
      if (t == want) continue;
      law_fail(j, E_DTYPE, "operand %u is %s, %s is needed", k + 1, dtype_name(t), dtype_name(want));
      diag_hint(j->c, "cast it with {dtype=%s}", dtype_name(want));
      return false;
    }
    u8 *b = &bound[token - 'A'];
    if (!*b) {
      if (!class_holds(token, dtype_kind_of(t)))
        return law_fail(j, E_DTYPE, "operand %u is %s, %s is needed", k + 1, dtype_name(t),
                        class_name(token));
      *b = (u8)t, by[token - 'A'] = k;
    } else if (*b != t) {
      law_fail(j, E_DTYPE, "operand %u is %s, operand %u is %s", by[token - 'A'] + 1, dtype_name((dtype)*b),
               k + 1, dtype_name(t));
      diag_hint(j->c, "cast operand %u with {dtype=%s}", k + 1, dtype_name((dtype)*b));
      return false;
    }
  }
  return true;
}

static bool types(law_job *j, const row_code *rc, shape *res) {
  u8 bound[26] = {0};
  u32 by[26];
  if (!types_operands(j, rc, bound, by)) return false;
  for (u32 r = 0; r < j->nres; r++) {
    u8 token = rc->type[rc->type_opd + MIN(r, rc->type_res - 1u)];
    if (token == TY_ATTR)
      res[r].t = attr_get(j->at, A_dtype)->u.t;
    else if (token == TY_EACH)
      res[r].t = j->opd[r].t;
    else if (token == TY_WIDE)
      res[r].t = dtype_bytes(j->opd[0].t) < 4 ? DT_F32 : j->opd[0].t;
    else if (token & TY_EXACT)
      res[r].t = (dtype)(token & ~TY_EXACT);
    else
      res[r].t = (dtype)bound[token - 'A'];
    if (res[r].t == DT_NONE || res[r].t >= DT_COUNT)
      return law_fail(j, E_ATTR, "dtype is not an element type");
  }
  return true;
}

// ---- attributes and arity ----------------------------------------------------------------------------

// A word must be one of those that the row lists, if it lists any.
static bool word_listed(law_job *j, const attr *p) {
  const char *text = j->row->attrs, *word = sym_str(j->c, p->u.s), *name = attr_name((attr_key)p->key);
  size_t n = strlen(word);
  attr_spec a;
  while (attr_spec_next(&text, &a)) {
    if (strncmp(a.name, name, a.name_len) || name[a.name_len] || !memchr(a.value, '|', a.value_len)) continue;
    for (const char *s = a.value, *end = s + a.value_len; s < end; s += strcspn(s, "| ") + 1)
      if (strcspn(s, "| ") == n && !memcmp(s, word, n)) return true;
    law_fail(j, E_ATTR, "%s is \"%s\"", name, word);
    diag_hint(j->c, "it is one of %.*s", (int)a.value_len, a.value);
    return false;
  }
  return true;
}

static bool attributes(law_job *j, const row_code *rc) {
  u32 found = 0;
  for (u32 i = 0; i < j->at.n; i++) {
    const attr *p = &j->at.v[i];
    assert(p->key > A_NONE && p->key < A_COUNT);
    if (rc->use[p->key] == USE_NO) {
      law_fail(j, E_ATTR, "there is no attribute %s", attr_name((attr_key)p->key));
      diag_hint(j->c, *j->row->attrs ? "it takes: %s" : "it takes none%s", j->row->attrs);
      return false;
    }
    if (p->kind != attr_kind_of((attr_key)p->key))
      return law_fail(j, E_ATTR, "%s must be %s, not %s", attr_name((attr_key)p->key),
                      attr_kind_name(attr_kind_of((attr_key)p->key)), attr_kind_name((attr_kind)p->kind));
    if (p->kind == AK_STR && !word_listed(j, p)) return false;
    found += rc->use[p->key] == USE_REQUIRED;
  }
  if (found == rc->required) return true;
  for (u32 k = 1; k < A_COUNT; k++)
    if (rc->use[k] == USE_REQUIRED && !attr_get(j->at, (attr_key)k))
      return law_fail(j, E_ATTR, "the attribute %s is missing (%s)", attr_name((attr_key)k),
                      attr_doc((attr_key)k));
  assert(!"attributes are sorted and occur once");
  return false;
}

static bool arity(law_job *j, u32 *nres) {
  const op_row *r = j->row;
  if (j->nopd < r->opd_min || (r->opd_max != 255 && j->nopd > r->opd_max)) {
    if (r->opd_min == r->opd_max)
      return law_fail(j, E_ARITY, "%u operands, %u are needed", j->nopd, r->opd_min);
    if (r->opd_max == 255)
      return law_fail(j, E_ARITY, "%u operands, at least %u are needed", j->nopd, r->opd_min);
    return law_fail(j, E_ARITY, "%u operands, %u to %u are needed", j->nopd, r->opd_min, r->opd_max);
  }
  u32 want = r->res;
  if (r->flags & OPF_MANY_RES) {
    const i64 *sizes;
    want = strcmp(r->law, "=split") ? j->nopd : attr_ints(j->at, A_sizes, &sizes);
    if (want > OP_RES_MAX || want == 0)
      return law_fail(j, E_LIMIT, "%u results, 1 to %d are possible", want, OP_RES_MAX);
    if (*nres != 0 && *nres != want)
      return law_fail(j, E_ARITY, "%u results are taken, there are %u", *nres, want);
  }
  *nres = j->nres = want;
  return true;
}

// ---- one application ---------------------------------------------------------------------------------

// Rows whose linearity an attribute or the element type breaks: rounding, truncation and added constants.
static const char *linearity(const law_job *j, opcode op, const shape *res) {
  dtype_kind from = j->nopd ? dtype_kind_of(j->opd[0].t) : DK_NONE;
  bool linear = true;
  switch (op) {
  case OP_conv:
    if (j->nopd == 3) return "j-j"; // x w + b
    break;
  case OP_cast:
    linear = res[0].t != DT_BOOL && (from != DK_FLOAT || dtype_kind_of(res[0].t) == DK_FLOAT);
    break;
  case OP_div:
  case OP_scale:
  case OP_reduce_mean: linear = from == DK_FLOAT; break;
  case OP_pad: linear = attr_float(j->at, A_value, 0) == 0; break;
  default: break;
  }
  return linear ? j->row->lin : "-";
}

// Letters that no result has may be split only if the row says how partial results combine.
static void keep_contracted_whole(law_job *j) {
  bool kept[LETTERS_MAX] = {false};
  for (u32 r = 0; r < j->nres; r++)
    for (u32 d = 0; d < j->l->res[r].nd; d++)
      for (u32 i = 0; i < j->l->res[r].dim[d].n; i++) kept[j->l->res[r].dim[d].f[i]] = true;
  for (u32 i = 0; i < j->nletters; i++)
    if (!kept[i]) j->letter[i].flags |= LAW_WHOLE;
}

// Empty dimensions do not excuse the others: every product of extents must stay countable.
static bool result_shape(law_job *j, const law_term *t, shape *s) {
  double n = 1;
  s->nd = t->nd;
  for (u32 d = 0; d < t->nd; d++) {
    s->dim[d] = dim_extent(j, &t->dim[d]);
    n *= (double)MAX(s->dim[d], 1);
  }
  return n < 0x1p60 || law_fail(j, E_LIMIT, "the result has %.3g elements", n);
}

const law *op_law(ctx *c, arena *a, opcode op, attrs at, u32 nopd, const shape *opd, u32 *nres, shape *res,
                  loc where) {
  assert(op > OP_none && op < OP_ROWS);
  const row_code *rc = row_code_of(op);
  law_job j;
  j.c = c, j.a = a, j.row = op_row_of(op), j.at = at, j.nopd = nopd, j.opd = opd, j.where = where,
  j.nletters = 0;
  assert(rc->law || rc->nres); // calls and tuples have no law: the program's builder types them
  if (!attributes(&j, rc) || !arity(&j, nres)) return NULL;
  for (u32 r = 0; r < j.nres; r++) res[r].nd = 0;
  if (!types(&j, rc, res)) return NULL;
  law *l = j.l = arena_alloc(a, sizeof *l);
  l->nopd = nopd, l->nres = j.nres;
  l->opd = arena_zalloc(a, (nopd + j.nres) * sizeof *l->opd);
  l->res = l->opd + nopd;
  if (rc->law ? !rc->law->fn(&j) : !law_text(&j, rc)) return NULL;
  if (j.nletters > LETTERS_MAX) {
    law_fail(&j, E_LIMIT, "%u different dimensions, the limit is %d: use several instructions", j.nletters,
             LETTERS_MAX);
    return NULL;
  }
  l->nletters = j.nletters;
  l->lin = linearity(&j, op, res);
  bool rounded = op == OP_reduce_mean && *l->lin == '-'; // a mean of integers is not the sum of parts' means
  if ((rc->law || j.row->own) && (j.row->red == RED_NONE || rounded)) keep_contracted_whole(&j);
  for (u32 r = 0; r < j.nres; r++)
    if (!result_shape(&j, &l->res[r], &res[r])) return NULL;
  l->letter = arena_dup(a, j.letter, j.nletters * sizeof *j.letter);
  return l;
}

double law_points(const law *l) {
  double n = 1;
  for (u32 i = 0; i < l->nletters; i++)
    if (!(l->letter[i].flags & (LAW_ADDRESSED | LAW_DERIVED))) n *= (double)l->letter[i].extent;
  return n;
}

double op_flops(opcode op, attrs at, const law *l) {
  const op_row *row = op_row_of(op);
  if (attention_flops_text(op)) return attention_flops(op, l);
  return row->own && row->own->flops ? op_own_flops(row->own, at, l) : row->flops * law_points(l);
}
