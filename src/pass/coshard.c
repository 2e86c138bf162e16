// coshard.c - co-sharding: heads and hidden units in parts that are computed one after the other by the device
// that has them. Not here: that the backward computes every part again (plan/policy/coshard.c).
//
// Idea: an index class that one matmul with a weight makes and another one sums over (heads between QKV and the
// output projection, hidden units between two layers) runs through a stretch of the function, and the laws say
// through which. What has the index in that stretch can be computed for some of its coordinates alone; what comes
// out is a sum over them. So the stretch becomes a function of a C-th of the index, called C times with a C-th of
// the weights each, and the results are added. Weights stay parameters of main, whole.
#include "pass/internal.h"
#include <stdlib.h>

enum { ATOMS = 16, SEGMENTS = 16 };

typedef struct {
  u32 class, n, matmuls; // n: instructions; matmuls: those with a weight
  i64 extent;
  bool *in;   // per instruction
  value seen; // a weight that has the class
  bool heads; // it is of products of activations, too
  func part;
} segment;

typedef struct {
  prog *p;
  arena *a;
  const classes *k;
  func f;
  const func_info *fi;
  const law **law; // per instruction; NULL: call and the like
  bool *weight;    // per value: a weight, or made of weights alone
  u32 n;
  segment v[SEGMENTS];
} finder;

// ---- where an index is ------------------------------------------------------------------------------------
typedef struct {
  u32 dim, times; // times: in how many places of the value
  i64 before, after;
} place; // of a class in a dimension: before x extent x after

static place place_of(const finder *x, value v, u32 class) {
  const type_info *t = val_type(x->p, x->fi, v);
  place at = {0};
  for (u32 d = 0; !t->tuple && d < t->s.nd; d++) {
    u32 id[ATOMS], n = classes_dim(x->k, x->f, v, d, id, ATOMS);
    i64 before = 1;
    for (u32 j = 0; j < n; j++) {
      const i64 e = classes_get(x->k, id[j])->extent;
      if (id[j] == class)
        at = (place){.dim = d, .times = at.times + 1, .before = before, .after = t->s.dim[d] / before / e};
      before *= e;
    }
  }
  return at;
}

static bool has(const finder *x, value v, u32 class) { return place_of(x, v, class).times > 0; }

// The letter of a dimension within which neighbours are so many elements apart; -1: none.
static int letter_at(const law *l, const law_dim *d, i64 after) {
  i64 inner = 1;
  for (u32 j = d->n; j-- > 0;) {
    inner *= l->letter[d->f[j]].extent;
    if (after < inner) return d->f[j];
  }
  return -1;
}

enum { NOWHERE = -1, AMBIGUOUS = -2 };
static int same_letter(const finder *x, int was, const law *l, const law_term *t, value v, u32 class) {
  const place at = place_of(x, v, class);
  if (!at.times || was == AMBIGUOUS) return was;
  const int is = at.times == 1 ? letter_at(l, &t->dim[at.dim], at.after) : AMBIGUOUS;
  return is < 0 || (was != NOWHERE && was != is) ? AMBIGUOUS : is;
}

// The one letter of an instruction that has the class.
static int letter_of(const finder *x, u32 index, u32 class) {
  const instr *in = &x->fi->body.v[index];
  const law *l = x->law[index];
  int is = NOWHERE;
  for (u32 k = 0; l && k < l->nopd; k++) is = same_letter(x, is, l, &l->opd[k], opd_of(x->fi, in, k), class);
  for (u32 k = 0; l && k < l->nres; k++) is = same_letter(x, is, l, &l->res[k], in->res + k, class);
  return is;
}

// A dimension with the index in its middle becomes three to be cut.
static bool has_room(const finder *x, const instr *in) {
  for (u32 k = 0; k < instr_nopd(x->fi, in); k++)
    if (val_type(x->p, x->fi, opd_of(x->fi, in, k))->s.nd + 2 > DIMS_MAX) return false;
  return true;
}

static bool touches(const finder *x, const instr *in, u32 class) {
  for (u32 k = 0; k < instr_nopd(x->fi, in); k++)
    if (has(x, opd_of(x->fi, in, k), class)) return true;
  for (u32 k = 0; k < in->nres; k++)
    if (has(x, in->res + k, class)) return true;
  return false;
}

static u32 results_with(const finder *x, const instr *in, u32 class) {
  u32 n = 0;
  for (u32 k = 0; k < in->nres; k++) n += has(x, in->res + k, class);
  return n;
}

static bool is_matmul(const instr *in) { return op_row_of((opcode)in->op)->flags & OPF_GEMM; }

// ---- which stretches there are ------------------------------------------------------------------------------
// Does the instruction do with some coordinates what it does with all? Where it sums over them, the parts' results are
// added: so of products of two alone.
static bool in_parts(const finder *x, u32 index, u32 class) {
  const instr *in = &x->fi->body.v[index];
  const op_row *row = op_row_of((opcode)in->op);
  const int letter = letter_of(x, index, class);
  if (letter < 0) return false;
  const u32 made = results_with(x, in, class);
  const u8 flags = x->law[index]->letter[letter].flags;
  if (flags & (LAW_WHOLE | LAW_ADDRESSED | LAW_FIXED | LAW_DERIVED) || row->flags & OPF_RANDOM) return false;
  if (!made) return is_matmul(in) && row->red == RED_SUM && x->law[index]->nopd == 2 && in->nres == 1;
  // Some look at positions, or at how many elements there are, of other dimensions than this one.
  const bool elsewhere = in->op == OP_slice || in->op == OP_reduce_mean;
  return made == in->nres && (!(row->flags & OPF_POS) || elsewhere);
}

// Does something in the stretch wait for what comes out of it?
static bool waits_for_itself(const finder *x, const segment *s) {
  bool *after = ZNEWN(x->a, bool, x->fi->values.n);
  for (u32 i = 0; i < x->fi->body.n; i++) {
    const instr *in = &x->fi->body.v[i];
    bool any = false;
    for (u32 k = 0; k < in->nopd; k++) any |= after[opd_of(x->fi, in, k)];
    if (any && s->in[i]) return true;
    const bool out = s->in[i] && !results_with(x, in, s->class);
    for (u32 r = 0; r < in->nres; r++) after[in->res + r] = any || out;
  }
  return false;
}

static bool try_class(finder *x, u32 class, segment *s) {
  const func_info *fi = x->fi;
  bool comes_out = false;
  *s = (segment){
      .class = class, .extent = classes_get(x->k, class)->extent, .in = ZNEWN(x->a, bool, fi->body.n + 1)};
  for (u32 k = 0; k < fi->rets.n; k++)
    if (has(x, fi->rets.v[k], class)) return false;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (!touches(x, in, class)) continue;
    if (!in_parts(x, i, class) || !has_room(x, in)) return false;
    s->in[i] = true, s->n++;
    comes_out |= !results_with(x, in, class);
    bool weight = !is_matmul(in);
    for (u32 k = 0; k < in->nopd; k++) {
      const value v = opd_of(fi, in, k);
      weight |= x->weight[v];
      if (x->weight[v] && is_matmul(in)) s->matmuls++;
      if (v <= fi->nparams && x->weight[v] && has(x, v, class) && is_matmul(in)) s->seen = v;
    }
    s->heads |= !weight;
  }
  return comes_out && !waits_for_itself(x, s);
}

static bool known(const u32 *class, u32 n, u32 id) {
  for (u32 k = 0; k < n; k++)
    if (class[k] == id) return true;
  return false;
}

// Indices that a matmul with a weight makes: the weight has them and no other operand.
static u32 made_by(const finder *x, u32 index, u32 *class, u32 n, u32 most) {
  const instr *in = &x->fi->body.v[index];
  if (!is_matmul(in) || in->nopd != 2 || in->nres != 1) return n;
  for (u32 o = 0; o < 2; o++) {
    const value w = opd_of(x->fi, in, o), other = opd_of(x->fi, in, 1 - o);
    const type_info *t = val_type(x->p, x->fi, w);
    for (u32 d = 0; x->weight[w] && !x->weight[other] && d < t->s.nd; d++) {
      u32 id[ATOMS], na = classes_dim(x->k, x->f, w, d, id, ATOMS);
      for (u32 j = 0; j < na && n < most; j++)
        if (has(x, in->res, id[j]) && !has(x, other, id[j]) && !known(class, n, id[j])) class[n++] = id[j];
    }
  }
  return n;
}

// More matmuls first (the heads of grouped queries that keys and values have, too), then the longer stretch.
static int by_size(const void *x, const void *y) {
  const segment *s = x, *t = y;
  if (s->matmuls != t->matmuls) return s->matmuls > t->matmuls ? -1 : 1;
  if (s->n != t->n) return s->n > t->n ? -1 : 1;
  if (s->extent != t->extent) return s->extent > t->extent ? -1 : 1;
  return s->class < t->class ? -1 : s->class > t->class;
}

static void read_function(finder *x) {
  const func_info *fi = x->fi;
  x->law = ZNEWN(x->a, const law *, fi->body.n + 1);
  x->weight = ZNEWN(x->a, bool, fi->values.n);
  for (u32 k = 0; k < fi->nparams; k++) x->weight[k + 1] = fi->params.v[k].r == ROLE_WEIGHT;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    const u32 n = instr_nopd(fi, in);
    if (in->op == OP_call || in->op == OP_pack || in->op == OP_unpack || in->op == OP_opaque) continue;
    bool all = n > 0 && !is_matmul(in);
    shape *os = NEWN(x->a, shape, n + 1), rs[OP_RES_MAX];
    u32 nres = in->nres;
    for (u32 k = 0; k < n; k++) {
      os[k] = val_type(x->p, fi, opd_of(fi, in, k))->s;
      all = all && x->weight[opd_of(fi, in, k)];
    }
    for (u32 r = 0; r < in->nres; r++) x->weight[in->res + r] = all;
    x->law[i] = op_law(x->p->c, x->a, (opcode)in->op, attrs_get(x->p, in->at), n, os, &nres, rs, in->where);
  }
}

// The stretches of a function, none of which share an instruction.
static void find(finder *x) {
  enum { CANDIDATES = 64 };
  u32 class[CANDIDATES], n = 0, found = 0;
  read_function(x);
  for (u32 i = 0; i < x->fi->body.n; i++) n = made_by(x, i, class, n, CANDIDATES);
  segment *v = NEWN(x->a, segment, n + 1);
  for (u32 k = 0; k < n; k++)
    if (try_class(x, class[k], &v[found]) && v[found].seen) found++;
  qsort(v, found, sizeof *v, by_size);
  bool *taken = ZNEWN(x->a, bool, x->fi->body.n + 1);
  for (u32 k = 0; k < found && x->n < SEGMENTS; k++) {
    bool free = true;
    for (u32 i = 0; i < x->fi->body.n; i++) free = free && !(v[k].in[i] && taken[i]);
    for (u32 i = 0; free && i < x->fi->body.n; i++) taken[i] |= v[k].in[i];
    if (free) x->v[x->n++] = v[k];
  }
}

// Calls `each` for every function but main that has stretches.
typedef bool each_fn(finder *x, void *arg);
static bool for_all(prog *p, each_fn *each, void *arg) {
  arena *a = arena_new();
  const classes *k = classes_of(a, p);
  u32 n;
  const u32 *order = ir_call_order(p, a, &n);
  bool ok = true;
  for (u32 i = 0; i + 1 < n && ok; i++) {
    finder x = {.p = p, .a = a, .k = k, .f = {order[i]}, .fi = func_get(p, (func){order[i]})};
    find(&x);
    if (x.n) ok = each(&x, arg);
  }
  arena_free(a);
  return ok;
}

// ---- the stretch as a function of a part ----------------------------------------------------------------------
typedef struct {
  finder *x;
  segment *s;
  u32 parts, narg, nout;
  value *arg, *out; // of the function it was found in
} split;

static type part_type(const split *w, value v) {
  type_info t = *val_type(w->x->p, w->x->fi, v);
  const place at = place_of(w->x, v, w->s->class);
  if (at.times) t.s.dim[at.dim] /= w->parts;
  return type_tensor(w->x->p, &t.s, t.lay, t.g);
}

// What it reads from outside, and what of it is read outside or returned: its sums.
static void find_ends(split *w) {
  const func_info *fi = w->x->fi;
  bool *seen = ZNEWN(w->x->a, bool, fi->values.n);
  w->arg = NEWN(w->x->a, value, fi->values.n), w->out = NEWN(w->x->a, value, fi->values.n);
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (!w->s->in[i]) continue;
    for (u32 k = 0; k < in->nopd; k++) {
      const value v = opd_of(fi, in, k);
      const u32 def = val(fi, v)->def;
      if (seen[v] || (def && w->s->in[def - 1])) continue;
      seen[v] = true, w->arg[w->narg++] = v;
    }
    if (!results_with(w->x, in, w->s->class)) w->out[w->nout++] = in->res;
  }
}

static attrset part_attrs(const split *w, u32 index) {
  prog *p = w->x->p;
  const instr *in = &w->x->fi->body.v[index];
  const law *l = w->x->law[index];
  const int letter = letter_of(w->x, index, w->s->class);
  i64 *extent = NEWN(w->x->a, i64, l->nletters + 1);
  for (u32 j = 0; j < l->nletters; j++) extent[j] = l->letter[j].extent / ((int)j == letter ? w->parts : 1);
  const attrs at = law_rescale(w->x->a, (opcode)in->op, attrs_get(p, in->at), l, extent);
  return at.n ? attrs_of(p, at.v, at.n) : (attrset){0};
}

static void make_part(split *w) {
  prog *p = w->x->p;
  const func_info *fi = w->x->fi;
  w->s->part = func_new(p, sym_with(p->c, fi->name, ".part"), fi->where);
  builder b = builder_at(p, w->s->part);
  value *map = ZNEWN(w->x->a, value, fi->values.n);
  for (u32 k = 0; k < w->narg; k++) {
    const value v = w->arg[k];
    const role r = v <= fi->nparams ? fi->params.v[v - 1].r : ROLE_INPUT;
    map[v] = func_param(p, w->s->part, part_type(w, v), val(fi, v)->name, r);
  }
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (!w->s->in[i]) continue;
    const u32 at = emit_copy(&b, fi, in, map);
    const attrset attributes = part_attrs(w, i);
    func_info *to = func_get(p, w->s->part);
    to->body.v[at - 1].at = attributes;
    for (u32 r = 0; r < in->nres; r++) {
      const type t = part_type(w, in->res + r);
      to->values.v[map[in->res + r]].ty = t;
      value_name(p, w->s->part, map[in->res + r], val(fi, in->res + r)->name);
    }
  }
  value *ret = NEWN(w->x->a, value, w->nout + 1);
  for (u32 k = 0; k < w->nout; k++) ret[k] = map[w->out[k]];
  func_return(p, w->s->part, ret, w->nout);
}

// ---- the function that calls it --------------------------------------------------------------------------------
// The pieces of one argument, in the order of parts.
static bool cut(builder *b, const split *w, value v, value here, value *piece) {
  const place at = place_of(w->x, v, w->s->class);
  const shape whole = val_type(w->x->p, w->x->fi, v)->s;
  const i64 extent = w->s->extent;
  i64 sizes[OP_RES_MAX], dim[DIMS_MAX];
  u32 nd = 0, axis = at.dim;
  const bool alone = at.before == 1 && at.after == 1;
  for (u32 d = 0; d < whole.nd; d++) {
    if (d == at.dim && at.before > 1) dim[nd++] = at.before;
    if (d == at.dim) axis = nd;
    dim[nd++] = d == at.dim ? extent : whole.dim[d];
    if (d == at.dim && at.after > 1) dim[nd++] = at.after;
  }
  const attr to = attr_v(A_shape, dim, nd);
  const value in = alone ? here : build(b, OP_reshape, &here, 1, &to, 1);
  assert(w->parts && "pass_coshard asks for some");
  for (u32 c = 0; c < w->parts; c++) sizes[c] = extent / w->parts;
  const attr how[2] = {attr_i(A_axis, axis), attr_v(A_sizes, sizes, w->parts)};
  const value first = build_n(b, OP_split, &in, 1, how, 2, w->parts);
  shape part = whole;
  part.dim[at.dim] /= w->parts;
  const attr back = attr_v(A_shape, part.dim, part.nd);
  for (u32 c = 0; c < w->parts && !b->failed; c++) {
    const value one = first + c;
    piece[c] = alone ? one : build(b, OP_reshape, &one, 1, &back, 1);
  }
  return !b->failed;
}

// Its gradient, a sum over parts, is to be complete before that of what else reads it is added: of ranks that each have
// partial sums, one sum then.
static bool varies(const finder *x, value v) {
  return !x->weight[v] && dtype_kind_of(val_type(x->p, x->fi, v)->s.t) == DK_FLOAT;
}

static bool put_calls(builder *b, const split *w, value *map) {
  arena *a = w->x->a;
  value *piece = ZNEWN(a, value, (size_t)w->narg * w->parts + 1), *arg = NEWN(a, value, w->narg + 1);
  for (u32 k = 0; k < w->narg; k++) {
    const value here = map[w->arg[k]];
    value *at = piece + (size_t)k * w->parts;
    if (!has(w->x, w->arg[k], w->s->class)) {
      const value own = varies(w->x, w->arg[k]) ? build1(b, OP_identity, here) : here;
      for (u32 c = 0; c < w->parts; c++) at[c] = own;
    } else if (!cut(b, w, w->arg[k], here, at))
      return false;
  }
  for (u32 c = 0; c < w->parts && !b->failed; c++) {
    for (u32 k = 0; k < w->narg; k++) arg[k] = piece[(size_t)k * w->parts + c];
    const value first = build_call(b, w->s->part, arg, w->narg);
    for (u32 k = 0; k < w->nout && !b->failed; k++)
      map[w->out[k]] = c ? build2(b, OP_add, map[w->out[k]], first + k) : first + k;
  }
  return !b->failed;
}

static bool is_ready(const finder *x, const instr *in, const value *map) {
  for (u32 k = 0; k < in->nopd; k++)
    if (!map[opd_of(x->fi, in, k)]) return false;
  return true;
}

static const instr *first_of(const finder *x, const segment *s) {
  u32 i = 0;
  while (!s->in[i]) i++;
  return &x->fi->body.v[i];
}

// In the order in which what is read is there: a stretch comes when all of its arguments have come.
static bool put_body(finder *x, builder *b, const split *w, value *map) {
  bool *done = ZNEWN(x->a, bool, x->fi->body.n + 1), some = true;
  u32 left = x->n;
  while (some) {
    some = false;
    for (u32 i = 0; i < x->fi->body.n; i++) {
      const instr *in = &x->fi->body.v[i];
      u32 k = 0;
      while (k < x->n && !x->v[k].in[i]) k++;
      if (done[i] || (k == x->n && !is_ready(x, in, map))) continue;
      if (k == x->n) {
        emit_copy(b, x->fi, in, map);
        for (u32 r = 0; r < in->nres; r++)
          value_name(x->p, b->f, map[in->res + r], val(x->fi, in->res + r)->name);
        done[i] = some = true;
        continue;
      }
      bool all = true;
      for (u32 j = 0; j < w[k].narg; j++) all = all && map[w[k].arg[j]];
      if (!all) continue;
      b->where = first_of(x, &x->v[k])->where, b->origin = 0, b->flags = 0, b->strm = 0;
      if (!put_calls(b, &w[k], map)) return false;
      for (u32 j = 0; j < x->fi->body.n; j++) done[j] |= x->v[k].in[j];
      some = true, left--;
    }
  }
  assert(!left && "no stretch waits for itself, nor two for each other");
  return true;
}

static bool apart(const finder *x) { // no two stretches wait for each other
  bool *reach = ZNEWN(x->a, bool, (size_t)x->n * x->n + 1);
  for (u32 s = 0; s < x->n; s++) {
    bool *after = ZNEWN(x->a, bool, x->fi->values.n);
    for (u32 i = 0; i < x->fi->body.n; i++) {
      const instr *in = &x->fi->body.v[i];
      bool any = x->v[s].in[i];
      for (u32 k = 0; k < in->nopd; k++) any |= after[opd_of(x->fi, in, k)];
      for (u32 r = 0; r < in->nres; r++) after[in->res + r] = any;
      for (u32 t = 0; any && t < x->n; t++) reach[s * x->n + t] |= x->v[t].in[i];
    }
  }
  for (u32 s = 0; s < x->n; s++)
    for (u32 t = 0; t < s; t++)
      if (reach[s * x->n + t] && reach[t * x->n + s]) return false;
  return true;
}

static bool rewrite(finder *x, void *arg) {
  const u32 *parts = arg;
  prog *p = x->p;
  if (!apart(x)) return true;
  split *w = ZNEWN(x->a, split, x->n);
  for (u32 k = 0; k < x->n; k++) {
    w[k] = (split){.x = x, .s = &x->v[k], .parts = *parts};
    find_ends(&w[k]);
    make_part(&w[k]);
  }
  const func made = func_new(p, x->fi->name, x->fi->where);
  builder b = builder_at(p, made);
  value *map = ZNEWN(x->a, value, x->fi->values.n);
  for (u32 k = 0; k < x->fi->nparams; k++) map[k + 1] = pass_param_like(p, made, x->fi, k);
  if (!put_body(x, &b, w, map)) return false;
  for (u32 k = 0; k < x->fi->rets.n; k++) *vec_push(p->a, &func_get(p, made)->rets) = map[x->fi->rets.v[k]];
  pass_replace(p, x->f, made);
  return true;
}

// ---- what is asked for --------------------------------------------------------------------------------------------
typedef struct {
  arena *a;
  coshard_index *v;
  u32 n;
} listing;

static bool list(finder *x, void *arg) {
  listing *o = arg;
  if (!apart(x)) return true;
  coshard_index *v = NEWN(o->a, coshard_index, o->n + x->n);
  if (o->n) memcpy(v, o->v, sizeof *v * o->n);
  for (u32 k = 0; k < x->n; k++) {
    const sym weight = val(x->fi, x->v[k].seen)->name;
    const char *fn = sym_str(x->p->c, x->fi->name);
    v[o->n + k] = (coshard_index){
        .extent = x->v[k].extent,
        .what = x->v[k].heads ? "heads" : "hidden units",
        .of = weight.i ? arena_printf(o->a, "%s of %s", sym_str(x->p->c, weight), fn) : fn,
        .where = first_of(x, &x->v[k])->where,
    };
  }
  o->v = v, o->n += x->n;
  return true;
}

u32 pass_coshard_of(prog *p, arena *a, coshard_index **out) {
  listing o = {.a = a};
  for_all(p, list, &o);
  *out = o.v;
  return o.n;
}

bool pass_coshard(prog *p, u32 parts, loc where) {
  assert(parts && parts <= OP_RES_MAX);
  ctx *c = p->c;
  arena *tmp = arena_new();
  coshard_index *v;
  const u32 n = pass_coshard_of(p, tmp, &v);
  i64 all = 0;
  u32 bad = n;
  for (u32 k = n; k-- > 0;) {
    all = gcd_i64(all, v[k].extent);
    if (v[k].extent % parts) bad = k;
  }
  u32 fits = parts;
  while (n && all % fits) fits--;
  if (!n) {
    diag(c, E_PLAN, where, "coshard=%u: no function that main calls has heads or hidden units to split",
         parts);
    diag_hint(c, "leave out coshard; `heddle import` shows the functions of the model");
  } else if (bad < n) {
    diag(c, E_DIVIDE, where, "coshard=%u: %lld %s (%s) do not split in %u parts", parts,
         (long long)v[bad].extent, v[bad].what, v[bad].of, parts);
    diag_note(c, v[bad].where, "they are here");
    if (fits > 1)
      diag_hint_number(c, fits, "coshard=%u", fits);
    else
      diag_hint(c, "leave out coshard");
  }
  arena_free(tmp);
  if (!n || bad < n) return false;
  return parts < 2 || for_all(p, rewrite, &parts);
}
