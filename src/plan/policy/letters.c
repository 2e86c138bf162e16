// letters.c - indices and how the rows of a program use them, read from the laws. Not here: which of them is
// split (tensor.c, sequence.c).
#include "plan/policy/letters.h"

static bool any_has(const law_term *t, u32 n, u32 x) {
  for (u32 k = 0; k < n; k++)
    if (law_term_has(&t[k], x)) return true;
  return false;
}

// The letter of a dimension within which an index lies whose neighbours are `inner` elements apart; -1: none.
static int letter_within(const law *l, const law_dim *d, i64 inner) {
  i64 at = 1;
  for (u32 j = d->n; j-- > 0;) {
    at *= l->letter[d->f[j]].extent;
    if (inner < at) return d->f[j];
  }
  return -1;
}

static const instr *instr_at(const letters *ls, func f, u32 index) {
  return &func_get(planner_source(ls->pl), f)->body.v[index];
}

static bool is_matmul(const instr *in) { return op_row_of(in->op)->flags & OPF_GEMM; }

static bool has_weight(const letters *ls, func f, const instr *in) {
  const func_info *fi = func_get(planner_source(ls->pl), f);
  for (u32 o = 0; o < instr_nopd(fi, in); o++)
    if (ls->weight[f.i][opd_of(fi, in, o)]) return true;
  return false;
}

// The classes of one letter of a term, at most 16.
static u32 classes_of_letter(const letters *ls, func f, value v, const law *l, const law_term *t, u32 x,
                             u32 *out) {
  const shape *s = &val_type(planner_source(ls->pl), func_get(planner_source(ls->pl), f), v)->s;
  u32 found = 0;
  for (u32 d = 0; d < t->nd && d < s->nd; d++) {
    u32 id[16], n = classes_dim(ls->k, f, v, d, id, COUNT_OF(id));
    i64 inner = s->dim[d];
    for (u32 j = 0; j < n && found < 16; j++) {
      inner /= classes_get(ls->k, id[j])->extent;
      if (letter_within(l, &t->dim[d], inner) == (int)x) out[found++] = id[j];
    }
  }
  return found;
}

static bool value_has(const letters *ls, func f, value v, u32 class) {
  const shape *s = &val_type(planner_source(ls->pl), func_get(planner_source(ls->pl), f), v)->s;
  for (u32 d = 0; d < s->nd; d++) {
    u32 id[16], n = classes_dim(ls->k, f, v, d, id, COUNT_OF(id));
    for (u32 j = 0; j < n; j++)
      if (id[j] == class) return true;
  }
  return false;
}

// Does what a row reduces over a letter meet a value that still has it (x - mean(x))? A loss does not.
static bool comes_back(const letters *ls, func f, u32 index, const law *l, u32 x) {
  const func_info *fi = func_get(planner_source(ls->pl), f);
  const instr *in = &fi->body.v[index];
  u32 id[16], n = 0;
  for (u32 o = 0; o < l->nopd && !n; o++)
    n = classes_of_letter(ls, f, opd_of(fi, in, o), l, &l->opd[o], x, id);
  if (!n) return false;
  arena *tmp = arena_new();
  bool *from = ZNEWN(tmp, bool, fi->values.n), back = false;
  for (u32 r = 0; r < in->nres; r++) from[in->res + r] = true;
  for (u32 i = index + 1; i < fi->body.n && !back; i++) {
    const instr *u = &fi->body.v[i];
    bool any = false, other = false;
    for (u32 o = 0; o < instr_nopd(fi, u); o++) {
      value v = opd_of(fi, u, o);
      any |= from[v];
      other |= !from[v] && !ls->weight[f.i][v] && value_has(ls, f, v, id[0]);
    }
    back = any && other && u->op != OP_call;
    for (u32 r = 0; r < u->nres; r++) from[u->res + r] = any;
  }
  arena_free(tmp);
  return back;
}

// How one instruction uses the letters of its law.
static void read_uses(letters *ls, func f, u32 index, const law *l, u8 *use) {
  const instr *in = instr_at(ls, f, index);
  bool matmul = is_matmul(in), weight = matmul && has_weight(ls, f, in), asked = false, decomposes = false;
  for (u32 x = 0; x < l->nletters; x++) {
    u8 flags = l->letter[x].flags;
    bool kept = any_has(l->res, l->nres, x);
    bool whole = flags & LAW_WHOLE || (!kept && op_row_of(in->op)->red == RED_NONE);
    use[x] = 0;
    if (matmul && (!kept || (any_has(l->opd, 1, x) && any_has(l->opd + 1, l->nopd - 1, x))))
      use[x] = LETTER_INNER;
    if (weight || flags & LAW_ADDRESSED || (kept && !whole)) continue;
    if (!asked) decomposes = planner_decompose(ls->pl, f, index).i, asked = true;
    if (decomposes) continue;
    if (matmul || whole)
      use[x] |= LETTER_WHOLE;
    else if (comes_back(ls, f, index, l, x))
      use[x] |= LETTER_AGAIN;
  }
}

// What is said of letters, said of the classes that they are made of.
static void note_value(letters *ls, func f, value v, const law *l, const law_term *t, const u8 *use) {
  const shape *s = &val_type(planner_source(ls->pl), func_get(planner_source(ls->pl), f), v)->s;
  for (u32 d = 0; d < t->nd && d < s->nd; d++) {
    u32 id[16], n = classes_dim(ls->k, f, v, d, id, COUNT_OF(id));
    i64 inner = s->dim[d];
    for (u32 j = 0; j < n; j++) {
      inner /= classes_get(ls->k, id[j])->extent;
      int x = letter_within(l, &t->dim[d], inner);
      if (x >= 0) ls->use[id[j]] |= use[x];
    }
  }
}

static void read_function(letters *ls, func f, arena *a) {
  prog *p = planner_source(ls->pl);
  const func_info *fi = func_get(p, f);
  bool *weight = ls->weight[f.i] = ZNEWN(a, bool, fi->values.n);
  for (u32 i = 0; i < fi->nparams; i++) weight[i + 1] = fi->params.v[i].r == ROLE_WEIGHT;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    u32 n = instr_nopd(fi, in);
    if (in->op == OP_call || in->op == OP_pack || in->op == OP_unpack || in->op == OP_opaque) continue;
    bool all = n > 0 && !is_matmul(in);
    for (u32 o = 0; o < n; o++) all = all && weight[opd_of(fi, in, o)];
    for (u32 r = 0; r < in->nres; r++) weight[in->res + r] = all;
    const law *l = plan_law(ls->pl, f, i);
    if (!l) continue;
    u8 use[256];
    read_uses(ls, f, i, l, use);
    for (u32 o = 0; o < l->nopd; o++) note_value(ls, f, opd_of(fi, in, o), l, &l->opd[o], use);
    for (u32 r = 0; r < l->nres; r++) note_value(ls, f, in->res + r, l, &l->res[r], use);
  }
}

letters letters_of(planner *pl, arena *a) {
  letters l = {.pl = pl, .k = planner_classes(pl)};
  u32 n = planner_funcs(pl);
  l.use = ZNEWN(a, u8, classes_count(l.k) + 1);
  l.weight = ZNEWN(a, bool *, n);
  for (u32 f = 1; f < n; f++) read_function(&l, (func){f}, a);
  return l;
}

bool letters_is_matmul(const letters *ls, func f, u32 index) {
  const instr *in = instr_at(ls, f, index);
  return is_matmul(in) && has_weight(ls, f, in);
}

u32 letters_weight(const letters *ls, func f, u32 index, letter *out) {
  const prog *p = planner_source(ls->pl);
  const func_info *fi = func_get(p, f);
  const instr *in = instr_at(ls, f, index);
  const law *l = is_matmul(in) ? plan_law(ls->pl, f, index) : NULL;
  u32 n = 0;
  for (u32 o = 0; l && o < l->nopd; o++) {
    value w = opd_of(fi, in, o);
    if (!ls->weight[f.i][w]) continue;
    const shape *s = &val_type(p, fi, w)->s;
    for (u32 d = 0; d < s->nd; d++) {
      u32 id[16], na = classes_dim(ls->k, f, w, d, id, COUNT_OF(id));
      i64 inner = s->dim[d];
      for (u32 j = 0; j < na && n < WEIGHT_LETTERS; j++) {
        i64 e = classes_get(ls->k, id[j])->extent;
        inner /= e;
        int x = letter_within(l, &l->opd[o].dim[d], inner);
        if (x < 0 || l->letter[x].flags & LAW_WHOLE) continue;
        bool kept = any_has(l->res, l->nres, (u32)x), shared = false;
        for (u32 k = 0; k < l->nopd; k++)
          shared |= !ls->weight[f.i][opd_of(fi, in, k)] && law_term_has(&l->opd[k], (u32)x);
        out[n++] = (letter){.kind = !kept    ? LETTER_ROW
                                    : shared ? LETTER_BATCH
                                             : LETTER_COLUMN,
                            .class = id[j],
                            .operand = o,
                            .dim = (u8)d,
                            .alone = na == 1,
                            .extent = e,
                            .inner = inner};
      }
    }
  }
  return n;
}
