// classes.c - index classes: which dimensions of a program are the same index.
//
// Idea: union-find whose nodes can also be split. A node is a leaf (an atom), forwarded to another node, or
// split into a major and a minor child. Equating two nodes of equal extent merges leaves; a leaf equated with
// a split node takes over its children; two different splits are refined against each other, major first, as
// far as they divide. Functions are analysed once for all their calls: repeated blocks have the same extents
// in every call.
#include "infer/infer.h"

typedef struct {
  i64 extent;
  u32 fwd, child;
  u8 fixed;
} atom; // child: index of the major of two children; 0 = leaf

struct classes {
  u32 **dims;           // per function: value * DIMS_MAX + dim -> where its list begins (0: extent 1)
  u32 nfuncs;           // functions made later have no classes
  VEC(u32) lists;       // how many classes, and which, major first; [0] unused
  VEC(class_info) info; // [0] unused
};

typedef struct {         // while functions are analysed
  arena *a, *work, *tmp; // of the result; of what is here; of laws, one instruction at a time
  const prog *p;
  VEC(atom) atoms; // [0] unused
  u32 **dims;      // as above, -> atom
  bool *done;
} analysis;

static u32 atom_new(analysis *k, i64 extent) {
  *vec_push(k->work, &k->atoms) = (atom){.extent = extent};
  return k->atoms.n - 1;
}
static u32 root(analysis *k, u32 x) {
  while (k->atoms.v[x].fwd) {
    u32 up = k->atoms.v[x].fwd;
    if (k->atoms.v[up].fwd) k->atoms.v[x].fwd = k->atoms.v[up].fwd;
    x = up;
  }
  return x;
}
static void split(analysis *k, u32 x, i64 major) {
  u32 c = atom_new(k, major), d = atom_new(k, k->atoms.v[x].extent / major);
  assert(d == c + 1);
  (void)d;
  k->atoms.v[c].fixed = k->atoms.v[d].fixed = k->atoms.v[x].fixed;
  k->atoms.v[x].child = c;
}

enum { LIST_MAX = 64 };
static u32 leaves(analysis *k, u32 x, u32 *out, u32 n) {
  x = root(k, x);
  u32 c = k->atoms.v[x].child;
  if (!c) {
    if (n < LIST_MAX) out[n++] = x;
    return n;
  }
  n = leaves(k, c, out, n);
  return leaves(k, c + 1, out, n);
}

// Equates two lists of atoms, major first, refining either side as far as extents divide.
static void unify(analysis *k, const u32 *xs, u32 nx, const u32 *ys, u32 ny) {
  u32 a[LIST_MAX], b[LIST_MAX], na = 0, nb = 0;
  for (u32 i = 0; i < nx; i++) na = leaves(k, xs[i], a, na);
  for (u32 i = 0; i < ny; i++) nb = leaves(k, ys[i], b, nb);
  for (u32 i = 0, j = 0; i < na && j < nb;) {
    u32 x = root(k, a[i]), y = root(k, b[j]);
    if (x == y) {
      i++, j++;
      continue;
    }
    if (k->atoms.v[x].child ||
        k->atoms.v[y].child) { // split by an earlier step of this walk: start again from the leaves
      unify(k, a + i, na - i, b + j, nb - j);
      return;
    }
    i64 ex = k->atoms.v[x].extent, ey = k->atoms.v[y].extent;
    if (ex == ey) {
      k->atoms.v[x].fixed |= k->atoms.v[y].fixed;
      k->atoms.v[y].fwd = x;
      i++, j++;
    } else if (ex > ey && ex % ey == 0) {
      split(k, x, ey);
      k->atoms.v[k->atoms.v[x].child].fixed |= k->atoms.v[y].fixed;
      k->atoms.v[y].fwd = k->atoms.v[x].child;
      a[i] = k->atoms.v[x].child + 1;
      j++;
    } else if (ey > ex && ey % ex == 0) {
      split(k, y, ex);
      k->atoms.v[k->atoms.v[y].child].fixed |= k->atoms.v[x].fixed;
      k->atoms.v[x].fwd = k->atoms.v[y].child;
      b[j] = k->atoms.v[y].child + 1;
      i++;
    } else {
      return; // no common refinement: the rest stays unrelated
    }
  }
}

static u32 *dims_of(analysis *k, func f, value v) { return k->dims[f.i] + (size_t)v * DIMS_MAX; }

static void equate_values(analysis *k, func f, value v, func g, value w) {
  const type_info *t = val_type(k->p, func_get(k->p, f), v);
  if (t->tuple) return;
  u32 *x = dims_of(k, f, v), *y = dims_of(k, g, w);
  for (u32 d = 0; d < t->s.nd; d++)
    if (x[d] && y[d] && k->atoms.v[x[d]].extent == k->atoms.v[y[d]].extent) unify(k, x + d, 1, y + d, 1);
}

static void term(analysis *k, u32 *dim, const law_term *t, const u32 *letter) {
  for (u32 d = 0; d < t->nd; d++) {
    u32 list[LAW_FACTORS];
    for (u32 j = 0; j < t->dim[d].n; j++) list[j] = letter[t->dim[d].f[j]];
    if (dim[d] && t->dim[d].n) unify(k, list, t->dim[d].n, dim + d, 1);
  }
}

static void analyse(analysis *k, func f) {
  if (k->done[f.i]) return;
  k->done[f.i] = true;
  const prog *p = k->p;
  const func_info *fi = func_get(p, f);
  k->dims[f.i] = ZNEWN(k->a, u32, (size_t)fi->values.n * DIMS_MAX);
  for (value v = 1; v < fi->values.n; v++) {
    const type_info *t = val_type(p, fi, v);
    for (u32 d = 0; !t->tuple && d < t->s.nd; d++)
      if (t->s.dim[d] > 1) dims_of(k, f, v)[d] = atom_new(k, t->s.dim[d]);
  }
  for (u32 n = 0; n < fi->body.n; n++) {
    const instr *in = &fi->body.v[n];
    u32 nopd = instr_nopd(fi, in);
    if (in->op == OP_call) {
      const func_info *g = func_get(p, in->callee);
      analyse(k, in->callee);
      for (u32 j = 0; j < nopd; j++) equate_values(k, f, opd_of(fi, in, j), in->callee, j + 1);
      for (u32 j = 0; j < in->nres; j++) equate_values(k, f, in->res + j, in->callee, g->rets.v[j]);
      continue;
    }
    if (in->op == OP_pack || in->op == OP_unpack || in->op == OP_opaque) continue;
    arena_mark_t m = arena_mark(k->tmp);
    shape sh[OP_RES_MAX], *os = NEWN(k->tmp, shape, nopd + 1);
    for (u32 j = 0; j < nopd; j++) os[j] = val_type(p, fi, opd_of(fi, in, j))->s;
    u32 nres = in->nres;
    const law *l = op_law(p->c, k->tmp, in->op, attrs_get(p, in->at), nopd, os, &nres, sh, in->where);
    if (l) {
      u32 letter[256] = {0};
      for (u32 j = 0; j < l->nletters; j++) {
        letter[j] = atom_new(k, l->letter[j].extent);
        k->atoms.v[letter[j]].fixed = (l->letter[j].flags & LAW_FIXED) != 0;
      }
      for (u32 j = 0; j < nopd; j++) term(k, dims_of(k, f, opd_of(fi, in, j)), &l->opd[j], letter);
      for (u32 j = 0; j < in->nres; j++) term(k, dims_of(k, f, in->res + j), &l->res[j], letter);
    }
    arena_release(k->tmp, m);
  }
}

// The list of a dimension's classes; those that no dimension had before are numbered.
static u32 list_of(analysis *k, classes *to, u32 *id, u32 *list, u32 x) {
  u32 leaf[LIST_MAX];
  x = root(k, x);
  if (!list[x]) {
    const u32 n = leaves(k, x, leaf, 0);
    list[x] = to->lists.n;
    *vec_push(k->a, &to->lists) = n;
    for (u32 j = 0; j < n; j++) {
      const atom *l = &k->atoms.v[leaf[j]];
      if (!id[leaf[j]]) {
        id[leaf[j]] = to->info.n;
        *vec_push(k->a, &to->info) = (class_info){l->extent, l->fixed, 0};
      }
      *vec_push(k->a, &to->lists) = id[leaf[j]];
    }
  }
  const u32 *l = &to->lists.v[list[x]];
  for (u32 j = 1; j <= l[0]; j++) to->info.v[l[j]].uses++;
  return list[x];
}

classes *classes_of(arena *a, const prog *p) {
  analysis k = {.a = a, .p = p, .work = arena_new(), .tmp = arena_new()};
  classes *to = NEW(a, classes);
  *to = (classes){.dims = ZNEWN(a, u32 *, p->funcs.n), .nfuncs = p->funcs.n};
  k.dims = to->dims, k.done = ZNEWN(k.work, bool, p->funcs.n);
  atom_new(&k, 0);
  analyse(&k, p->main);
  arena_free(k.tmp);
  u32 *id = ZNEWN(k.work, u32, k.atoms.n), *list = ZNEWN(k.work, u32, k.atoms.n);
  *vec_push(a, &to->lists) = 0;
  vec_push(a, &to->info)->extent = 0;
  for (u32 f = 1; f < p->funcs.n; f++) {
    u32 *dims = k.dims[f];
    for (u32 i = DIMS_MAX; k.done[f] && i < p->funcs.v[f]->values.n * DIMS_MAX; i++)
      if (dims[i]) dims[i] = list_of(&k, to, id, list, dims[i]);
  }
  arena_free(k.work);
  return to;
}

u32 classes_count(const classes *k) { return k->info.n - 1; }
const class_info *classes_get(const classes *k, u32 id) { return &k->info.v[id]; }

u32 classes_dim(const classes *k, func f, value v, u32 dim, u32 *id, u32 cap) {
  const u32 at = f.i < k->nfuncs && k->dims[f.i] ? k->dims[f.i][(size_t)v * DIMS_MAX + dim] : 0;
  const u32 n = MIN(k->lists.v[at], cap);
  for (u32 i = 0; i < n; i++) id[i] = k->lists.v[at + 1 + i];
  return n;
}
