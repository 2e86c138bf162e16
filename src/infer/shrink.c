// shrink.c - the same program at smaller extents: small enough to be evaluated, yet every split that a plan
// makes is still there. Not a smaller model of any other kind: layers, heads per group, windows stay.
//
// Idea: dimensions that are the same index form a class (classes.c), so a program has as many independent
// extents as it has classes: batch, sequence, hidden, heads, ... An extent is a product of digits: the ways
// of the cuts stay, what lies between them shrinks to the least that divides as it did before. The laws then
// tell all attributes that carry extents what they become (law_rescale).
#include "infer/infer.h"
#include <stdlib.h>

enum { ATOMS = 16, LEAST = 8 }; // fewer elements make sums and means degenerate

typedef struct {
  u32 ncuts; // boundaries of digits: strides of the class, ascending, 1 and the extent among them
  i64 *bound;
  bool *stays; // per digit
  i64 now, least;
  i64 *digit; // at the least extent
  bool pinned, small;
} class_state;

// weight times the product of the extents of some classes: elements of a value or points of an instruction
typedef struct {
  double weight;
  u32 first, n;
  bool points;
} term;

struct shrinking {
  arena *a, *tmp;
  prog *p;
  const classes *k;
  u32 nclasses;
  i64 keep;
  class_state *c; // [0] unused
  VEC(u32) order; // of classes, as they were shrunk
  VEC(term) terms;
  VEC(u32) ids;
  double *calls; // per function: how often it runs; 0: not reachable
  bool **given;  // per function and value: indices that come from main's inputs, so they are within what they
                 // address
};

// ---- which functions run, and how often -------------------------------------------------------------------
static bool hands_on(opcode op) { // moves elements as they are
  switch (op) {
  case OP_identity:
  case OP_stop_gradient:
  case OP_cast:
  case OP_reshape:
  case OP_transpose:
  case OP_expand:
  case OP_slice:
  case OP_split:
  case OP_concat: return true;
  default: return false;
  }
}

// Callers before callees: how often each function runs, and which of its values are given indices.
static void trace(shrinking *s) {
  const prog *p = s->p;
  u32 n, *order = ir_call_order(p, s->tmp, &n);
  s->calls = ZNEWN(s->a, double, p->funcs.n);
  s->given = ZNEWN(s->a, bool *, p->funcs.n);
  s->calls[p->main.i] = 1;
  for (u32 k = n; k-- > 0;) {
    const func_info *f = p->funcs.v[order[k]];
    bool *g = s->given[order[k]] = NEWN(s->a, bool, f->values.n);
    for (value v = 0; v < f->values.n; v++) g[v] = v && v <= f->nparams;
  }
  for (u32 k = n; k-- > 0;) {
    const func_info *f = p->funcs.v[order[k]];
    bool *g = s->given[order[k]];
    for (u32 i = 0; i < f->body.n; i++) {
      const instr *in = &f->body.v[i];
      u32 nopd = instr_nopd(f, in);
      if (in->op == OP_call) {
        s->calls[in->callee.i] += s->calls[order[k]];
        for (u32 o = 0; o < nopd; o++) s->given[in->callee.i][o + 1] &= g[opd_of(f, in, o)];
      } else if (hands_on((opcode)in->op)) {
        bool all = true;
        for (u32 o = 0; o < nopd; o++) all &= g[opd_of(f, in, o)];
        for (u32 r = 0; r < in->nres; r++) g[in->res + r] = all;
      }
    }
  }
}

// ---- digits --------------------------------------------------------------------------------------------
static int by_size(const void *x, const void *y) {
  i64 a = *(const i64 *)x, b = *(const i64 *)y;
  return (a > b) - (a < b);
}

static void make_digits(shrinking *s, u32 id, const class_cut *cut, u32 ncuts, i64 keep, i64 many) {
  class_state *c = &s->c[id];
  i64 extent = classes_get(s->k, id)->extent, *b = NEWN(s->a, i64, 2 * ncuts + 2);
  i64 floor = extent < many ? LEAST : MAX(LEAST, many);
  u32 n = 0;
  b[n++] = 1, b[n++] = extent;
  for (u32 k = 0; k < ncuts; k++)
    if (cut[k].id == id) b[n++] = cut[k].stride, b[n++] = cut[k].stride * cut[k].ways;
  qsort(b, n, sizeof *b, by_size);
  u32 m = 1;
  for (u32 k = 1; k < n; k++)
    if (b[k] != b[m - 1]) b[m++] = b[k];
  c->bound = b, c->ncuts = m - 1;
  c->stays = ZNEWN(s->a, bool, m), c->digit = NEWN(s->a, i64, m);
  c->now = extent, c->least = 1;
  c->pinned = classes_get(s->k, id)->fixed || extent <= floor || b[m - 1] != extent;
  for (u32 k = 0; k + 1 < m; k++) {
    if (b[k + 1] % b[k]) c->pinned = true; // cuts that do not nest
    for (u32 j = 0; j < ncuts; j++)
      c->stays[k] |= cut[j].id == id && cut[j].stride <= b[k] && b[k + 1] <= cut[j].stride * cut[j].ways;
    c->digit[k] = b[k + 1] / b[k];
    if (c->stays[k]) c->least *= c->digit[k];
  }
  for (u32 k = 0; k + 1 < m && !c->pinned; k++) {
    if (c->stays[k]) continue;
    i64 q = c->digit[k], d = 1; // the least that shares with `keep` what q shares, and leaves enough
    while (d < q && (gcd_i64(d, keep) != gcd_i64(q, keep) || d * c->least < MIN(floor, extent))) d++;
    c->digit[k] = d;
    c->least *= d;
  }
  if (c->least >= extent) c->pinned = true;
}

// ---- instructions over classes -------------------------------------------------------------------------
static void pin_dim(shrinking *s, func f, value v, u32 d) {
  u32 id[ATOMS], n = classes_dim(s->k, f, v, d, id, ATOMS);
  for (u32 k = 0; k < n; k++) s->c[id[k]].pinned = true;
}

// The classes of every letter of one dimension: atoms are consumed, major first, until they make up the
// letter. `take` gets them; false if atoms and letters do not match.
typedef struct {
  u32 n, id[ATOMS];
} letter_atoms;
static bool match(const shrinking *s, const law *l, const law_dim *d, const u32 *id, u32 n,
                  letter_atoms *out) {
  u32 at = 0;
  for (u32 j = 0; j < d->n; j++) {
    i64 want = l->letter[d->f[j]].extent, have = 1;
    letter_atoms got = {0};
    while (at < n && have < want && got.n < ATOMS) {
      have *= classes_get(s->k, id[at])->extent;
      got.id[got.n++] = id[at++];
    }
    if (have != want) return false;
    if (got.n > out[d->f[j]].n || !out[d->f[j]].n) out[d->f[j]] = got;
  }
  while (at < n && classes_get(s->k, id[at])->extent == 1) at++;
  return at == n;
}

typedef struct {
  func f;
  const func_info *fi;
  const instr *in;
  u32 nopd;
  const law *l;
  letter_atoms *atoms; // per letter
} view;

static value value_of(const view *w, u32 t) {
  return t < w->nopd ? opd_of(w->fi, w->in, t) : w->in->res + t - w->nopd;
}
static const law_term *term_of(const view *w, u32 t) {
  return t < w->nopd ? &w->l->opd[t] : &w->l->res[t - w->nopd];
}

static bool open_view(shrinking *s, func f, u32 index, view *w) {
  const func_info *fi = func_get(s->p, f);
  const instr *in = &fi->body.v[index];
  *w = (view){.f = f, .fi = fi, .in = in, .nopd = instr_nopd(fi, in)};
  if (in->op == OP_call || in->op == OP_pack || in->op == OP_unpack || in->op == OP_opaque) return false;
  shape *os = NEWN(s->tmp, shape, w->nopd + 1), rs[OP_RES_MAX];
  for (u32 k = 0; k < w->nopd; k++) os[k] = val_type(s->p, fi, opd_of(fi, in, k))->s;
  u32 nres = in->nres;
  w->l = op_law(s->p->c, s->tmp, (opcode)in->op, attrs_get(s->p, in->at), w->nopd, os, &nres, rs, in->where);
  if (!w->l) return false;
  w->atoms = ZNEWN(s->tmp, letter_atoms, w->l->nletters + 1);
  for (u32 t = 0; t < w->nopd + in->nres; t++)
    for (u32 d = 0; d < term_of(w, t)->nd; d++) {
      u32 id[ATOMS], n = classes_dim(s->k, f, value_of(w, t), d, id, ATOMS);
      if (!match(s, w->l, &term_of(w, t)->dim[d], id, n, w->atoms)) pin_dim(s, f, value_of(w, t), d);
    }
  return true;
}

static void add_term(shrinking *s, double weight, bool points) {
  *vec_push(s->a, &s->terms) = (term){weight, s->ids.n, 0, points};
}
static void add_ids(shrinking *s, const u32 *id, u32 n) {
  for (u32 k = 0; k < n; k++) *vec_push(s->a, &s->ids) = id[k];
  s->terms.v[s->terms.n - 1].n += n;
}

static void add_value(shrinking *s, func f, value v, double weight) {
  const type_info *t = val_type(s->p, func_get(s->p, f), v);
  add_term(s, weight, false);
  for (u32 d = 0; !t->tuple && d < t->s.nd; d++) {
    u32 id[ATOMS];
    add_ids(s, id, classes_dim(s->k, f, v, d, id, ATOMS));
  }
}

static void look_at(shrinking *s, func f, u32 index) {
  view w;
  arena_mark_t m = arena_mark(s->tmp);
  if (open_view(s, f, index, &w)) {
    double fixed = s->calls[f.i];
    for (u32 j = 0; j < w.l->nletters; j++)
      if (!w.atoms[j].n && !(w.l->letter[j].flags & (LAW_ADDRESSED | LAW_DERIVED)))
        fixed *= (double)w.l->letter[j].extent;
    add_term(s, fixed, true);
    for (u32 j = 0; j < w.l->nletters; j++)
      if (!(w.l->letter[j].flags & (LAW_ADDRESSED | LAW_DERIVED))) add_ids(s, w.atoms[j].id, w.atoms[j].n);
    bool given = true; // is every index one that was given?
    for (u32 k = 0; k < w.nopd; k++)
      if (dtype_kind_of(val_type(s->p, w.fi, opd_of(w.fi, w.in, k))->s.t) != DK_FLOAT)
        given &= s->given[f.i][opd_of(w.fi, w.in, k)];
    for (u32 j = 0; j < w.l->nletters && !given; j++)
      for (u32 k = 0; w.l->letter[j].flags & LAW_ADDRESSED && k < w.atoms[j].n; k++)
        s->c[w.atoms[j].id[k]].pinned = true;
  }
  arena_release(s->tmp, m);
  const instr *in = &func_get(s->p, f)->body.v[index];
  for (u32 r = 0; r < in->nres && in->op != OP_call && in->op != OP_unpack; r++)
    add_value(s, f, in->res + r, s->calls[f.i]);
}

// ---- consistency ---------------------------------------------------------------------------------------
static i64 extent_of(const shrinking *s, const u32 *id, u32 n) {
  i64 e = 1;
  for (u32 k = 0; k < n; k++) e *= s->c[id[k]].now;
  return e;
}

static i64 dim_extent(const shrinking *s, func f, value v, u32 d) {
  u32 id[ATOMS], n = classes_dim(s->k, f, v, d, id, ATOMS);
  return n ? extent_of(s, id, n) : val_type(s->p, func_get(s->p, f), v)->s.dim[d];
}

static void letter_extents(const shrinking *s, const view *w, i64 *out) {
  for (u32 j = 0; j < w->l->nletters; j++)
    out[j] = w->atoms[j].n && !(w->l->letter[j].flags & LAW_FIXED)
                 ? extent_of(s, w->atoms[j].id, w->atoms[j].n)
                 : w->l->letter[j].extent;
}

// Do the dimensions' extents agree with the letters'? Where not (extents that classes could not relate), the
// classes of that instruction go back to what they were.
static bool agree(shrinking *s, func f, u32 index) {
  view w;
  arena_mark_t m = arena_mark(s->tmp);
  bool ok = true;
  if (open_view(s, f, index, &w)) {
    i64 *e = NEWN(s->tmp, i64, w.l->nletters + 1);
    letter_extents(s, &w, e);
    for (u32 t = 0; t < w.nopd + w.in->nres; t++)
      for (u32 d = 0; d < term_of(&w, t)->nd; d++) {
        const law_dim *ld = &term_of(&w, t)->dim[d];
        i64 want = 1;
        for (u32 j = 0; j < ld->n; j++) want *= e[ld->f[j]];
        if (want != dim_extent(s, f, value_of(&w, t), d)) ok = false;
      }
    for (u32 t = 0; t < w.nopd + w.in->nres && !ok; t++)
      for (u32 d = 0; d < term_of(&w, t)->nd; d++) {
        u32 id[ATOMS], n = classes_dim(s->k, f, value_of(&w, t), d, id, ATOMS);
        for (u32 k = 0; k < n; k++)
          s->c[id[k]].pinned = true, s->c[id[k]].now = classes_get(s->k, id[k])->extent,
          s->c[id[k]].small = false;
      }
  }
  arena_release(s->tmp, m);
  return ok;
}

static bool calls_agree(shrinking *s, func f, const instr *in) {
  const func_info *fi = func_get(s->p, f), *g = func_get(s->p, in->callee);
  bool ok = true;
  for (u32 k = 0; k < g->nparams + g->rets.n; k++) {
    value x = k < g->nparams ? opd_of(fi, in, k) : in->res + k - g->nparams,
          y = k < g->nparams ? k + 1 : g->rets.v[k - g->nparams];
    const type_info *t = val_type(s->p, fi, x);
    for (u32 d = 0; !t->tuple && d < t->s.nd; d++) {
      if (dim_extent(s, f, x, d) == dim_extent(s, in->callee, y, d)) continue;
      ok = false;
      for (int side = 0; side < 2; side++) {
        u32 id[ATOMS], n = classes_dim(s->k, side ? in->callee : f, side ? y : x, d, id, ATOMS);
        for (u32 j = 0; j < n; j++)
          s->c[id[j]].pinned = true, s->c[id[j]].now = classes_get(s->k, id[j])->extent,
          s->c[id[j]].small = false;
      }
    }
  }
  return ok;
}

static void settle(shrinking *s) {
  for (bool again = true; again;) {
    again = false;
    for (u32 f = 1; f < s->p->funcs.n; f++)
      for (u32 i = 0; s->calls[f] > 0 && i < s->p->funcs.v[f]->body.n; i++) {
        const instr *in = &s->p->funcs.v[f]->body.v[i];
        again |= in->op == OP_call ? !calls_agree(s, (func){f}, in) : !agree(s, (func){f}, i);
      }
  }
}

// ---- shrinking -----------------------------------------------------------------------------------------
shrinking *shrink_new(arena *a, prog *p, const classes *k, const class_cut *cut, u32 ncuts, i64 keep,
                      i64 many, double copies) {
  shrinking *s = NEW(a, shrinking);
  *s = (shrinking){.a = a, .tmp = arena_new(), .p = p, .k = k, .nclasses = classes_count(k), .keep = keep};
  s->c = ZNEWN(a, class_state, s->nclasses + 1);
  for (u32 id = 1; id <= s->nclasses; id++) make_digits(s, id, cut, ncuts, keep, many);
  trace(s);
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 i = 0; s->calls[f] > 0 && i < p->funcs.v[f]->body.n; i++) look_at(s, (func){f}, i);
  for (value v = 1; v <= func_get(p, p->main)->nparams; v++) add_value(s, p->main, v, copies);
  arena_free(s->tmp);
  s->tmp = NULL;
  return s;
}

void shrink_pin(shrinking *s, u32 id) { s->c[id].pinned = true; }

void shrink_cost(const shrinking *s, double *elems, double *points) {
  *elems = *points = 0;
  for (u32 t = 0; t < s->terms.n; t++) {
    double x = s->terms.v[t].weight;
    for (u32 k = 0; k < s->terms.v[t].n; k++) x *= (double)s->c[s->ids.v[s->terms.v[t].first + k]].now;
    *(s->terms.v[t].points ? points : elems) += x;
  }
}

static bool fits(const shrinking *s, double elems, double points) {
  double e, x;
  shrink_cost(s, &e, &x);
  return e <= elems && x <= points;
}

// Gives a digit of a class back as much as there is room for, to twice what it is at most: it shares with `keep` what
// the whole one shares. False: nothing.
static bool grow_digit(shrinking *s, class_state *c, u32 k, double elems, double points) {
  const i64 whole = c->bound[k + 1] / c->bound[k], was = c->digit[k], rest = c->now / was;
  for (i64 d = MIN(whole, 2 * was); d > was; d--) {
    if (gcd_i64(d, s->keep) != gcd_i64(whole, s->keep)) continue;
    c->now = rest * d;
    if (!fits(s, elems, points)) continue;
    c->digit[k] = d;
    return true;
  }
  c->now = rest * was;
  return false;
}

bool shrink_until(shrinking *s, double elems, double points) {
  s->tmp = arena_new();
  double e, x;
  for (;;) {
    shrink_cost(s, &e, &x);
    if (e <= elems && x <= points) break;
    u32 best = 0;
    double least = 0;
    for (u32 id = 1; id <= s->nclasses; id++) {
      class_state *c = &s->c[id];
      if (c->pinned || c->small) continue;
      i64 was = c->now;
      c->now = c->least;
      shrink_cost(s, &e, &x);
      c->now = was;
      double worth = MAX(e / elems, x / points);
      if (!best || worth < least) best = id, least = worth;
    }
    if (!best) break;
    s->c[best].now = s->c[best].least, s->c[best].small = true;
    *vec_push(s->a, &s->order) = best;
    settle(s);
  }
  arena_free(s->tmp);
  s->tmp = NULL;
  return e <= elems && x <= points;
}

void shrink_grow(shrinking *s, double elems, double points) {
  for (bool again = true; again;) {
    again = false;
    for (u32 n = 0; n < s->order.n; n++) {
      class_state *c = &s->c[s->order.v[n]];
      for (u32 k = c->ncuts; k-- > 0 && c->small;)
        if (!c->stays[k]) again |= grow_digit(s, c, k, elems, points);
    }
  }
}

i64 shrink_extent(const shrinking *s, u32 id) { return s->c[id].now; }

i64 shrink_stride(const shrinking *s, u32 id, i64 stride) {
  const class_state *c = &s->c[id];
  i64 to = 1;
  if (!c->small) return stride;
  for (u32 k = 0; k < c->ncuts && c->bound[k] < stride; k++) to *= c->digit[k];
  return to;
}

// ---- the program ---------------------------------------------------------------------------------------
static type type_now(const shrinking *s, prog *q, func f, value v) {
  type_info t = *val_type(s->p, func_get(s->p, f), v);
  for (u32 d = 0; d < t.s.nd; d++) t.s.dim[d] = dim_extent(s, f, v, d);
  return type_tensor(q, &t.s, t.lay, t.g);
}

// The corner of constant elements.
static u32 data_now(const shrinking *s, prog *q, u32 data, const shape *to) {
  const data_info *d = &s->p->data.v[data];
  u32 size = dtype_bytes(d->t);
  i64 n = shape_elems(to);
  if (!d->bytes) {
    data_info x = *d;
    x.size = n * size;
    memcpy(x.dim, to->dim, sizeof x.dim);
    *vec_push(q->a, &q->data) = x;
    return q->data.n - 1;
  }
  char *bytes = arena_alloc(q->a, (size_t)(n * size) + 1);
  for (i64 k = 0; k < n; k++) {
    i64 left = k, from = 0, step = 1;
    for (u32 j = d->nd; j-- > 0; left /= to->dim[j], step *= d->dim[j]) from += left % to->dim[j] * step;
    memcpy(bytes + k * size, (const char *)d->bytes + from * size, size);
  }
  return data_add(q, to, bytes, false);
}

static void instr_now(shrinking *s, prog *q, func f, u32 index) {
  view w;
  arena_mark_t m = arena_mark(s->tmp);
  if (open_view(s, f, index, &w)) {
    i64 *e = NEWN(s->tmp, i64, w.l->nletters + 1);
    letter_extents(s, &w, e);
    attrs at = law_rescale(s->tmp, (opcode)w.in->op, attrs_get(s->p, w.in->at), w.l, e);
    func_get(q, f)->body.v[index].at = at.n ? attrs_of(q, at.v, at.n) : (attrset){0};
  }
  arena_release(s->tmp, m);
}

prog *shrink_program(const shrinking *from, u32 nfuncs) {
  shrinking *s = &(shrinking){0};
  *s = *from;
  prog *q = prog_clone(s->p, s->p->c);
  s->tmp = arena_new();
  q->funcs.n = MIN(q->funcs.n, nfuncs);
  for (u32 f = 1; f < q->funcs.n; f++) {
    func_info *fi = func_get(q, (func){f});
    for (value v = 1; s->calls[f] > 0 && v < fi->values.n; v++)
      if (!val_type(s->p, fi, v)->tuple) fi->values.v[v].ty = type_now(s, q, (func){f}, v);
    for (u32 i = 0; s->calls[f] > 0 && i < fi->body.n; i++) instr_now(s, q, (func){f}, i);
    for (u32 k = 0; k < fi->nparams; k++) {
      const shape *to = &val_type(q, fi, k + 1)->s;
      u32 data = fi->params.v[k].data;
      if (data && !shape_same(to, &val_type(s->p, func_get(s->p, (func){f}), k + 1)->s))
        fi->params.v[k].data = data_now(s, q, data, to);
    }
  }
  arena_free(s->tmp);
  if (ir_verify(q)) return q;
  prog_free(q);
  return NULL;
}

// Where a class is seen: a parameter of main that has it, else the first value of a function.
static const char *seen_in(const shrinking *s, arena *a, u32 id) {
  const prog *p = s->p;
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 j = 0; j < p->funcs.n; j++) {
      func f = j ? (func){j} : p->main;
      const func_info *fi = func_get(p, f);
      if (s->calls[f.i] == 0) continue;
      for (value v = 1; v < (pass ? fi->values.n : fi->nparams + 1); v++) {
        const type_info *t = val_type(p, fi, v);
        for (u32 d = 0; !t->tuple && d < t->s.nd; d++) {
          u32 at[ATOMS], n = classes_dim(s->k, f, v, d, at, ATOMS);
          for (u32 k = 0; k < n; k++)
            if (at[k] == id && fi->values.v[v].name.i)
              return arena_printf(a, "%s[%u]", sym_str(p->c, fi->values.v[v].name), d);
        }
      }
    }
  return "inside";
}

void shrink_print(const shrinking *s, strbuf *out) {
  bool any = false;
  for (u32 id = 1; id <= s->nclasses; id++) {
    const class_state *c = &s->c[id];
    if (!c->small || c->now == classes_get(s->k, id)->extent) continue;
    sb_fmt(out, "%s%lld -> %lld (%s)", any ? ", " : "", (long long)classes_get(s->k, id)->extent,
           (long long)c->now, seen_in(s, out->a, id));
    any = true;
  }
}
