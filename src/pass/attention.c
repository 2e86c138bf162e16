// attention.c - attention that keeps no scores: where a program writes softmax(q k^T ..) v as products, scales, masks and a
// softmax, the operator `attention` takes their place. Gradients follow by its rule, so of a training step none has scores.
//
// Idea: from a softmax one way leads up, through scales, what is added and masks, to the product that makes scores, and one
// down to the product that reads the softmax. If nothing else reads what is between, all of it is one law: letters of the
// first product, to which those of the second and of masks are found by their place. The operator stands where the second
// product stood. What then is read by nobody goes, except in main, whose instructions plans name by number.
#include "kernel/kernel.h"
#include "pass/internal.h"

enum { SCALARS = 16, BIASES = 4 };

typedef struct {
  char c[DIMS_MAX + 1]; // letters of dimensions, in order
  u32 n;
} term;

typedef struct { // a product of two, in letters
  value x[2];
  term t[2], y;
} contraction;

typedef struct {
  u32 softmax, product; // instructions
  value q, k, v, bias[BIASES], mask;
  value added, seen; // of bias and mask, where they are put
  u32 nbias;
  bool hidden; // the mask says what is masked, not what is seen
  char causal; // the letter of queries; 0: not causal
  bool masked; // value counts
  double alpha, value;
  term scores, of[2]; // of[]: of q and k
  char key;
  char law[ATTENTION_OPDS * (DIMS_MAX + 2) + DIMS_MAX + 4];
} match;

typedef struct {
  prog *p;
  arena *a;
  const func_info *f;
  u32 *uses; // by value; of a returned one 2 at least
  match *at; // by instruction: the product that ends one
  bool *ends;
  u32 *begins; // by instruction: 1 + the product that ends what has it as its softmax
  attention_count n;
} finder;

static const instr *def_of(const finder *x, value v) {
  const u32 def = v ? val(x->f, v)->def : 0;
  return def ? &x->f->body.v[def - 1] : NULL;
}
static const shape *shape_in(const finder *x, value v) { return &val_type(x->p, x->f, v)->s; }
static attrs attrs_at(const finder *x, const instr *in) { return attrs_get(x->p, in->at); }

// ---- products in letters ---------------------------------------------------------------------------------
static bool read_einsum(const finder *x, const instr *in, contraction *k) {
  const char *s = sym_str(x->p->c, attr_get(attrs_at(x, in), A_law)->u.s);
  term *t = k->t;
  for (u32 n = 0; *s; s++) {
    if (*s == ',' || *s == '>')
      t = ++n == 1 ? &k->t[1] : &k->y;
    else if (*s != ' ' && *s != '-')
      t->c[t->n++] = *s;
  }
  return true;
}

// Numpy's rules, where nothing is broadcast: a batch, rows, the sum, columns.
static bool read_matmul(const finder *x, contraction *k) {
  static const char batch[] = "bhwxyz";
  const shape *s[2] = {shape_in(x, k->x[0]), shape_in(x, k->x[1])};
  const u32 nd = s[0]->nd;
  if (nd < 2 || nd != s[1]->nd || nd - 2 > sizeof batch - 1) return false;
  for (u32 d = 0; d + 2 < nd; d++) {
    if (s[0]->dim[d] != s[1]->dim[d]) return false;
    k->t[0].c[d] = k->t[1].c[d] = k->y.c[d] = batch[d];
  }
  k->t[0].c[nd - 2] = k->y.c[nd - 2] = 's';
  k->t[0].c[nd - 1] = k->t[1].c[nd - 2] = 'd';
  k->t[1].c[nd - 1] = k->y.c[nd - 1] = 't';
  k->t[0].n = k->t[1].n = k->y.n = nd;
  return true;
}

static bool read_product(const finder *x, const instr *in, contraction *k) {
  *k = (contraction){0};
  if (!in || in->flags & INSTR_BACKWARD || (in->op != OP_einsum && in->op != OP_matmul)) return false;
  for (u32 o = 0; o < 2; o++) k->x[o] = opd_of(x->f, in, o);
  return in->op == OP_einsum ? read_einsum(x, in, k) : read_matmul(x, k);
}

static bool has(const term *t, char c) { return c && memchr(t->c, c, t->n); }

// ---- constants -------------------------------------------------------------------------------------------
// A number that all elements of v are.
static bool is_number(const finder *x, value v, double *out) {
  const instr *in = def_of(x, v);
  for (u32 k = 0; in && k < SCALARS && (in->op == OP_cast || in->op == OP_reshape || in->op == OP_expand);
       k++)
    in = def_of(x, opd_of(x->f, in, 0));
  if (!in) return false;
  if (in->op == OP_full) *out = attr_float(attrs_at(x, in), A_value, 0);
  if (in->op == OP_full) return true;
  if (in->op != OP_constant || shape_elems(shape_in(x, in->res)) != 1) return false;
  const data_info *d = &x->p->data.v[attr_get(attrs_at(x, in), A_data)->u.data];
  if (d->bytes) ker_load_f64(out, shape_in(x, in->res)->t, d->bytes, 1);
  return d->bytes != NULL;
}

// 0, 1, 2 .. along one dimension: which, counted from the last; ~0: it is none.
static u32 counted_dim(const finder *x, value v) {
  const instr *in = def_of(x, v);
  if (!in || in->op != OP_iota) return ~0u;
  const attrs at = attrs_at(x, in);
  const shape *s = shape_in(x, v);
  const i64 axis = attr_int(at, A_axis, 0);
  if (attr_float(at, A_alpha, 1) != 1 || attr_float(at, A_beta, 0) != 0) return ~0u;
  return s->nd - 1 - (u32)(axis < 0 ? axis + s->nd : axis);
}

// The constant that is `in_it` in the lower triangle of its last two dimensions and there alone.
static bool is_triangle(const finder *x, value v, bool in_it) {
  const instr *in = def_of(x, v);
  const shape *s = shape_in(x, v);
  if (!in || in->op != OP_constant || s->t != DT_BOOL || s->nd < 2) return false;
  const data_info *d = &x->p->data.v[attr_get(attrs_at(x, in), A_data)->u.data];
  const i64 m = s->dim[s->nd - 2], n = s->dim[s->nd - 1];
  if (!d->bytes || shape_elems(s) != m * n) return false;
  for (i64 i = 0; i < m; i++)
    for (i64 j = 0; j < n; j++)
      if ((((const u8 *)d->bytes)[i * n + j] != 0) != ((j <= i) == in_it)) return false;
  return true;
}

// Is what the mask shows, or hides, all keys up to the query's index? The letter of queries; 0: no.
static char causal_letter(const finder *x, const match *m, value mask, bool hidden) {
  const instr *in = def_of(x, mask);
  const u32 n = m->scores.n;
  if (is_triangle(x, mask, !hidden) && m->scores.c[n - 1] == m->key) return m->scores.c[n - 2];
  if (!in || in->nopd != 2) return 0;
  u32 query, key;
  const value l = opd_of(x->f, in, 0), r = opd_of(x->f, in, 1);
  if (in->op == (hidden ? OP_lt : OP_ge))
    query = counted_dim(x, l), key = counted_dim(x, r);
  else if (in->op == (hidden ? OP_gt : OP_le))
    query = counted_dim(x, r), key = counted_dim(x, l);
  else
    return 0;
  return query < n && key < n && m->scores.c[n - 1 - key] == m->key && query != key
             ? m->scores.c[n - 1 - query]
             : 0;
}

// ---- from the softmax up ---------------------------------------------------------------------------------
static bool spans(const finder *x, value v, value of) { return shape_same(shape_in(x, v), shape_in(x, of)); }

// Is v a product of two, through what scores may go through? Where two operands could be, the one that is.
static bool leads_to_product(const finder *x, value v, u32 depth) {
  const instr *in = def_of(x, v);
  if (!in || !depth) return false;
  switch (in->op) {
  case OP_einsum:
  case OP_matmul: return true;
  case OP_scale:
  case OP_mul:
  case OP_div:
  case OP_add:
  case OP_where:
    for (u32 k = 0; k < in->nopd; k++)
      if (spans(x, opd_of(x->f, in, k), v) && leads_to_product(x, opd_of(x->f, in, k), depth - 1))
        return true;
    return false;
  default: return false;
  }
}

static bool scaled(const finder *x, const instr *in, match *m, value *next) {
  double by;
  if (in->op == OP_scale) {
    m->alpha *= attr_float(attrs_at(x, in), A_alpha, 1);
    return true;
  }
  for (u32 k = in->op == OP_div ? 1 : 0; k < 2; k++)
    if (is_number(x, opd_of(x->f, in, k), &by)) {
      *next = opd_of(x->f, in, 1 - k);
      m->alpha *= in->op == OP_div ? 1 / by : by;
      return by != 0;
    }
  return false;
}

// One instruction between scores and their softmax, going up to *next.
static bool step_up(const finder *x, const instr *in, match *m, value *next) {
  *next = opd_of(x->f, in, 0);
  if (in->op == OP_scale || in->op == OP_mul || in->op == OP_div) return scaled(x, in, m, next);
  if (m->alpha != 1) return false; // what is added, or what masked scores are, would be scaled
  if (in->op == OP_add) {
    const u32 k = spans(x, *next, in->res) && leads_to_product(x, *next, SCALARS) ? 0 : 1;
    if (m->nbias == BIASES) return false;
    *next = opd_of(x->f, in, k);
    m->bias[m->nbias++] = opd_of(x->f, in, 1 - k);
    return true;
  }
  if (in->op != OP_where || m->masked || m->nbias) return false;
  m->hidden = is_number(x, opd_of(x->f, in, 1), &m->value);
  if (!m->hidden && !is_number(x, opd_of(x->f, in, 2), &m->value)) return false;
  m->masked = true, m->mask = opd_of(x->f, in, 0);
  *next = opd_of(x->f, in, m->hidden ? 2 : 1);
  return true;
}

static bool find_scores(const finder *x, const instr *softmax, match *m) {
  value v = opd_of(x->f, softmax, 0);
  const shape *s = shape_in(x, v);
  contraction k;
  for (u32 n = 0; n < SCALARS; n++) {
    const instr *in = def_of(x, v);
    if (!in || x->uses[v] != 1 || !shape_same(shape_in(x, v), s)) return false;
    if (read_product(x, in, &k)) break;
    value next;
    if (!step_up(x, in, m, &next)) return false;
    v = next;
  }
  if (!k.y.n || !def_of(x, v) || def_of(x, v)->res != v) return false;
  const i64 axis = attr_int(attrs_at(x, softmax), A_axis, -1);
  m->scores = k.y;
  m->key = k.y.c[axis < 0 ? axis + k.y.n : axis];
  const u32 o = has(&k.t[0], m->key) ? 0 : 1; // the operand that is k
  m->k = k.x[o], m->q = k.x[1 - o];
  m->of[0] = k.t[1 - o], m->of[1] = k.t[o];
  return !has(&m->of[0], m->key);
}

// ---- from the softmax down -------------------------------------------------------------------------------
static void put_term(char *to, const term *t) { snprintf(to + strlen(to), DIMS_MAX + 2, "%s", t->c); }

// Letters of what is added or masks: those of scores, from the last.
static void put_letters(const finder *x, const match *m, value v, char *to) {
  const u32 nd = shape_in(x, v)->nd;
  snprintf(to + strlen(to), DIMS_MAX + 2, ",%s", m->scores.c + (m->scores.n - nd));
}

// The product that reads the softmax, in the letters of scores.
static bool find_values(const finder *x, const instr *softmax, match *m) {
  contraction k;
  if (!read_product(x, &x->f->body.v[m->product], &k) || k.x[0] == k.x[1]) return false;
  const u32 o = k.x[0] == softmax->res ? 0 : 1; // the operand that is the softmax
  char to[128] = {0}, fresh = 'e';
  if (k.t[o].n != m->scores.n) return false;
  for (u32 d = 0; d < m->scores.n; d++) to[(u8)k.t[o].c[d]] = m->scores.c[d];
  while (has(&m->scores, fresh) || has(&m->of[0], fresh) || has(&m->of[1], fresh))
    fresh = fresh == 'z' ? 'a' : (char)(fresh + 1);
  term *of_v = &k.t[1 - o];
  for (u32 d = 0; d < of_v->n; d++) {
    char *c = &of_v->c[d];
    if (!to[(u8)*c]) to[(u8)*c] = fresh, fresh = '?';
    *c = to[(u8)*c];
  }
  for (u32 d = 0; d < k.y.n; d++) k.y.c[d] = to[(u8)k.y.c[d]];
  m->v = k.x[1 - o];
  put_term(m->law, &m->of[0]), strcat(m->law, ","), put_term(m->law, &m->of[1]), strcat(m->law, ","),
      put_term(m->law, of_v);
  value widest = m->nbias ? m->bias[0] : 0;
  for (u32 i = 1; i < m->nbias; i++)
    if (shape_in(x, m->bias[i])->nd > shape_in(x, widest)->nd) widest = m->bias[i];
  if (widest) put_letters(x, m, widest, m->law);
  if (m->masked && !m->causal) put_letters(x, m, m->mask, m->law);
  strcat(m->law, "->"), put_term(m->law, &k.y);
  attention_law l;
  return !attention_read(m->law, &l) && l.key == m->key &&
         (!m->causal ||
          (strchr(l.opd[0], m->causal) && !strchr(l.opd[1], m->causal) && !strchr(l.opd[2], m->causal)));
}

static bool floats_alike(const finder *x, const match *m) {
  const dtype t = shape_in(x, m->q)->t;
  bool ok = shape_in(x, m->k)->t == t && shape_in(x, m->v)->t == t && dtype_kind_of(t) == DK_FLOAT;
  for (u32 i = 0; i < m->nbias; i++) ok = ok && shape_in(x, m->bias[i])->t == t;
  return ok;
}

static u32 instructions_beside(const match *m) {
  return (m->nbias ? m->nbias - 1 : 0) + (m->masked && !m->causal && m->hidden);
}

static bool find_match(const finder *x, u32 softmax, u32 reader, match *m) {
  const instr *in = &x->f->body.v[softmax];
  *m = (match){.softmax = softmax, .product = reader, .alpha = 1};
  if (x->uses[in->res] != 1 || in->flags & INSTR_BACKWARD || !find_scores(x, in, m)) return false;
  if (m->masked) m->causal = causal_letter(x, m, m->mask, m->hidden);
  if (!find_values(x, in, m) || !floats_alike(x, m)) return false;
  return x->f != func_get(x->p, x->p->main) || instructions_beside(m) <= 1; // in place of the softmax
}

static void find(finder *x) {
  const func_info *f = x->f;
  x->uses = ZNEWN(x->a, u32, f->values.n + 1);
  x->begins = ZNEWN(x->a, u32, f->body.n + 1);
  x->ends = ZNEWN(x->a, bool, f->body.n + 1), x->at = NEWN(x->a, match, f->body.n + 1);
  for (u32 i = 0; i < f->body.n; i++)
    for (u32 k = 0; k < f->body.v[i].nopd; k++) x->uses[opd_of(f, &f->body.v[i], k)]++;
  for (u32 k = 0; k < f->rets.n; k++) x->uses[f->rets.v[k]] += 2;
  for (u32 i = 0; i < f->body.n; i++) { // every product that reads a softmax
    const instr *in = &f->body.v[i];
    for (u32 k = 0;
         k < in->nopd && (in->op == OP_einsum || in->op == OP_matmul) && !(in->flags & INSTR_BACKWARD); k++) {
      const value v = opd_of(f, in, k);
      const instr *softmax = def_of(x, v);
      if (!softmax || softmax->op != OP_softmax || x->ends[i]) continue;
      x->ends[i] = find_match(x, val(f, v)->def - 1, i, &x->at[i]);
      if (x->ends[i]) x->begins[val(f, v)->def - 1] = i + 1;
      if (!x->ends[i] && !x->n.left) x->n.where = in->where;
      *(x->ends[i] ? &x->n.fused : &x->n.left) += 1;
    }
  }
}

// ---- in their place --------------------------------------------------------------------------------------
// In the place of the softmax: what is added as one value, and a mask of what is seen.
static void put_beside_scores(builder *b, const finder *x, match *m, value *map) {
  const instr *in = &x->f->body.v[m->softmax];
  b->where = in->where, b->strm = in->strm, b->flags = in->flags, b->origin = 0;
  for (u32 i = 0; i < m->nbias; i++)
    m->added = i ? build2(b, OP_add, m->added, map[m->bias[i]]) : map[m->bias[i]];
  if (m->masked && !m->causal) m->seen = m->hidden ? build1(b, OP_not, map[m->mask]) : map[m->mask];
}

static void put_attention(builder *b, const finder *x, const match *m, value *map) {
  const instr *in = &x->f->body.v[m->product];
  value opd[ATTENTION_OPDS] = {map[m->q], map[m->k], map[m->v]};
  u32 n = 3, na = 0;
  attr at[4];
  b->where = x->f->body.v[m->softmax].where, b->strm = in->strm, b->flags = in->flags, b->origin = 0;
  if (m->nbias) opd[n++] = m->added;
  if (m->masked && !m->causal) opd[n++] = m->seen;
  const char causal[] = {m->causal, 0};
  if (m->alpha != 1) at[na++] = attr_f(A_alpha, m->alpha);
  if (m->causal) at[na++] = attr_s(A_causal, sym_of(x->p->c, causal));
  at[na++] = attr_s(A_law, sym_of(x->p->c, m->law));
  if (m->masked) at[na++] = attr_f(A_value, m->value);
  const value y = build_n(b, OP_attention, opd, n, at, na, 2);
  map[in->res] = y;
  if (y) value_name(x->p, b->f, y, val(x->f, in->res)->name);
}

// What somebody reads, before attention is one operator or after.
static bool *find_read(const finder *x, bool after) {
  const func_info *f = x->f;
  bool *read = ZNEWN(x->a, bool, f->values.n + 1);
  for (u32 k = 0; k < f->rets.n; k++) read[f->rets.v[k]] = true;
  for (u32 i = f->body.n; i-- > 0;) {
    const instr *in = &f->body.v[i];
    bool any = false;
    for (u32 r = 0; r < in->nres; r++) any |= read[in->res + r];
    for (u32 k = 0; k < in->nopd && any && !(after && x->ends[i]); k++) read[opd_of(f, in, k)] = true;
    if (!any || !after || !x->ends[i]) continue;
    const match *m = &x->at[i];
    read[m->q] = read[m->k] = read[m->v] = true;
    for (u32 k = 0; k < m->nbias; k++) read[m->bias[k]] = true;
    if (m->masked && !m->causal) read[m->mask] = true;
  }
  return read;
}

// It has no reader, and had one.
static bool goes(const instr *in, const bool *before, const bool *after) {
  bool had = false, has_one = false;
  for (u32 r = 0; r < in->nres; r++) had |= before[in->res + r], has_one |= after[in->res + r];
  return had && !has_one;
}

static bool rewrite(finder *x, func f) {
  prog *p = x->p;
  const bool *before = find_read(x, false), *after = find_read(x, true), stay = f.i == p->main.i;
  const func made = func_new(p, x->f->name, x->f->where);
  builder b = builder_at(p, made);
  value *map = ZNEWN(x->a, value, x->f->values.n + 1);
  for (u32 k = 0; k < x->f->nparams; k++) map[k + 1] = pass_param_like(p, made, x->f, k);
  for (u32 i = 0; i < x->f->body.n && !b.failed; i++) {
    const instr *in = &x->f->body.v[i];
    if (x->begins[i]) put_beside_scores(&b, x, &x->at[x->begins[i] - 1], map);
    const bool instead = x->begins[i] && instructions_beside(&x->at[x->begins[i] - 1]);
    if (x->ends[i]) {
      put_attention(&b, x, &x->at[i], map);
    } else if (stay ? !instead : !goes(in, before, after)) {
      emit_copy(&b, x->f, in, map);
      for (u32 r = 0; r < in->nres; r++) value_name(p, made, map[in->res + r], val(x->f, in->res + r)->name);
    }
  }
  if (b.failed) return false;
  for (u32 k = 0; k < x->f->rets.n; k++) *vec_push(p->a, &func_get(p, made)->rets) = map[x->f->rets.v[k]];
  pass_replace(p, f, made);
  return true;
}

bool pass_attention(prog *p, loc where, attention_count *out) {
  arena *a = arena_new();
  u32 n;
  const u32 *order = ir_call_order(p, a, &n);
  bool ok = true;
  *out = (attention_count){0};
  for (u32 i = 0; i < n && ok; i++) {
    finder x = {.p = p, .a = a, .f = func_get(p, (func){order[i]})};
    find(&x);
    if (!out->left) out->where = x.n.where;
    out->fused += x.n.fused, out->left += x.n.left;
    if (x.n.fused) ok = rewrite(&x, (func){order[i]});
  }
  arena_free(a);
  if (!ok || out->fused) return ok;
  diag(p->c, E_PLAN, where, "attention=fused finds no attention in this model");
  diag_hint(p->c, "attention=scores, or leave it out");
  return false;
}
