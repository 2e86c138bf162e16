// shrink.c - a smaller program of the same form, so that a plan for a model that fits no test machine can
// still be verified with numbers. Not an approximation of anything: the same instructions, calls and letters,
// other extents.
//
// Idea: an index class is one index wherever it occurs, so giving every class another extent gives every
// value another shape and leaves every law as it was. A class that a window, a constant or arithmetic pins
// keeps its extent. All larger ones become equally large: whatever was an index into something stays one.
#include "infer/infer.h"

typedef struct {
  const prog *p;
  const classes *k;
  arena *a;
  i64 *extent; // class -> new extent; 0: pinned
} shrinker;

// ---- letters of one application --------------------------------------------------------------------------
// Which classes a letter is: those of a dimension that has it, from where the letters before it end. n; 0 if
// no tensor has the letter.
static u32 letter_in(const shrinker *s, func f, value v, const law *l, const law_term *t, u32 letter,
                     u32 *id) {
  for (u32 d = 0; d < t->nd; d++) {
    u32 all[16], n = classes_dim(s->k, f, v, d, all, COUNT_OF(all)), c = 0;
    for (u32 i = 0; i < t->dim[d].n; i++) {
      u32 from = c;
      i64 e = 1, want = l->letter[t->dim[d].f[i]].extent;
      while (c < n && e < want) e *= classes_get(s->k, all[c++])->extent;
      if (e != want) break;
      if (t->dim[d].f[i] != letter) continue;
      memcpy(id, all + from, (c - from) * sizeof *id);
      return c - from;
    }
  }
  return 0;
}

static u32 letter_classes(const shrinker *s, func f, const instr *in, const law *l, u32 letter, u32 id[16]) {
  const func_info *fi = func_get(s->p, f);
  u32 n = 0;
  for (u32 k = 0; k < l->nopd && !n; k++) n = letter_in(s, f, opd_of(fi, in, k), l, &l->opd[k], letter, id);
  for (u32 k = 0; k < l->nres && !n; k++) n = letter_in(s, f, in->res + k, l, &l->res[k], letter, id);
  return n;
}

static const law *law_of(const shrinker *s, func f, const instr *in) {
  const func_info *fi = func_get(s->p, f);
  if (in->op == OP_call) return NULL;
  u32 n = instr_nopd(fi, in), nres = in->nres;
  shape *opd = NEWN(s->a, shape, n), res[OP_RES_MAX];
  for (u32 k = 0; k < n; k++) opd[k] = val_type(s->p, fi, opd_of(fi, in, k))->s;
  return op_law(s->p->c, s->a, in->op, attrs_get(s->p, in->at), n, opd, &nres, res, in->where);
}

// ---- extents ---------------------------------------------------------------------------------------------
// Does an index stay within a dimension that shrinks as what it counts does? Inputs are drawn within it,
// positions of a shorter sequence are fewer; what was computed, or came with the model, is not known.
static bool follows(const prog *p, func f, value v) {
  const func_info *fi = func_get(p, f);
  for (;;) {
    u32 def = val(fi, v)->def;
    if (!def) return f.i == p->main.i && !fi->params.v[v - 1].data;
    const instr *in = &fi->body.v[def - 1];
    attrs a = attrs_get(p, in->at);
    switch (in->op) {
    case OP_iota: return attr_float(a, A_alpha, 1) == 1 && attr_float(a, A_beta, 0) == 0;
    case OP_argmax:
    case OP_argmin:
    case OP_topk:
    case OP_moe_gate: return true;
    case OP_identity:
    case OP_cast:
    case OP_reshape:
    case OP_transpose:
    case OP_expand:
    case OP_slice:
    case OP_split: v = opd_of(fi, in, 0); break;
    default: return false;
    }
  }
}

// What is pinned; false if a function cannot be shrunk at all.
static bool pin(shrinker *s, func f, bool *seen) {
  if (seen[f.i]) return true;
  seen[f.i] = true;
  const func_info *fi = func_get(s->p, f);
  for (u32 k = 0; k < fi->body.n; k++) {
    const instr *in = &fi->body.v[k];
    if (in->op == OP_call && !pin(s, in->callee, seen)) return false;
    if (in->op == OP_pack || in->op == OP_unpack || in->op == OP_opaque) {
      diag(s->p->c, E_LIMIT, in->where, "a program with %s cannot be shrunk", op_row_of(in->op)->name);
      return false;
    }
    arena_mark_t m = arena_mark(s->a);
    const law *l = law_of(s, f, in);
    u32 pinned = LAW_FIXED; // operators that address by value take their indices as the second operand
    if (l && l->nopd > 1 && !follows(s->p, f, opd_of(fi, in, 1))) pinned |= LAW_ADDRESSED;
    for (u32 i = 0; l && i < l->nletters; i++) {
      u32 id[16], n = l->letter[i].flags & pinned ? letter_classes(s, f, in, l, i, id) : 0;
      while (n) s->extent[id[--n]] = 0;
    }
    arena_release(s->a, m);
  }
  return true;
}

static void choose(shrinker *s, i64 most, const i64 *multiple) {
  for (u32 c = 1; c <= classes_count(s->k); c++) {
    i64 was = classes_get(s->k, c)->extent, m = multiple ? MAX(multiple[c], 1) : 1;
    i64 now = ceil_div(MAX(most, 2), m) * m;
    bool pinned = s->extent[c] == 0 || classes_get(s->k, c)->fixed;
    s->extent[c] = pinned || now >= was ? was : now;
  }
}

// ---- the program -----------------------------------------------------------------------------------------
static type smaller(const shrinker *s, prog *q, func f, value v) {
  const type_info *t = val_type(s->p, func_get(s->p, f), v);
  shape sh = t->s;
  for (u32 d = 0; d < sh.nd; d++) {
    u32 id[16], n = classes_dim(s->k, f, v, d, id, COUNT_OF(id));
    if (n) sh.dim[d] = 1;
    for (u32 i = 0; i < n; i++) sh.dim[d] *= s->extent[id[i]];
  }
  return type_tensor(q, &sh, t->lay, t->g);
}

static void rewrite(const shrinker *s, prog *q, func f) {
  func_info *to = func_get(q, f);
  for (value v = 1; v < to->values.n; v++) to->values.v[v].ty = smaller(s, q, f, v);
  for (u32 k = 0; k < to->nparams; k++) // elements of another shape are of no use
    if (to->values.v[k + 1].ty.i != val(func_get(s->p, f), k + 1)->ty.i) to->params.v[k].data = 0;
  for (u32 k = 0; k < to->body.n; k++) {
    instr *in = &to->body.v[k];
    arena_mark_t m = arena_mark(s->a);
    const law *l = law_of(s, f, &func_get(s->p, f)->body.v[k]);
    i64 *extent = l ? NEWN(s->a, i64, l->nletters) : NULL;
    for (u32 i = 0; l && i < l->nletters; i++) {
      u32 id[16], n = letter_classes(s, f, &func_get(s->p, f)->body.v[k], l, i, id);
      extent[i] = n ? 1 : l->letter[i].extent;
      while (n) extent[i] *= s->extent[id[--n]];
    }
    if (l) {
      attrs a = law_rescale(s->a, in->op, attrs_get(s->p, in->at), l, extent);
      in->at = attrs_of(q, a.v, a.n);
    }
    arena_release(s->a, m);
  }
}

prog *infer_shrink(const prog *p, const classes *k, i64 most, const i64 *multiple, i64 *extent) {
  shrinker s = {.p = p, .k = k, .a = arena_new(), .extent = extent};
  bool *seen = ZNEWN(s.a, bool, p->funcs.n);
  prog *q = NULL;
  for (u32 c = 1; c <= classes_count(k); c++) extent[c] = 1;
  if (pin(&s, p->main, seen)) {
    choose(&s, most, multiple);
    q = prog_clone(p, p->c);
    for (u32 f = 1; f < p->funcs.n; f++)
      if (seen[f]) rewrite(&s, q, (func){f});
  }
  arena_free(s.a);
  if (!q || ir_verify(q)) return q;
  prog_free(q);
  return NULL;
}

i64 infer_shrink_stride(const classes *k, const i64 *extent, func f, value v, u32 dim, i64 stride) {
  u32 id[16], n = classes_dim(k, f, v, dim, id, COUNT_OF(id));
  i64 was = 1, now = 1; // stride of the class looked at, the minor ones first
  while (n-- > 0) {
    i64 e = classes_get(k, id[n])->extent, to = extent[id[n]];
    if (stride < was * e) {
      i64 parts = stride % was ? 0 : was * e / stride; // into which the class is cut
      return parts && (was * e) % stride == 0 && to % parts == 0 ? now * (to / parts) : 0;
    }
    was *= e, now *= to;
  }
  return stride == was ? now : 0;
}
