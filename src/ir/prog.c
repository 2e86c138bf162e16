// prog.c - the program's tables: interned types, attributes, points and streams, functions, copies of
// programs. Not the builder (build.c) and not the text.
//
// Idea: everything that instructions share is stored once and named by a small id, so that equality is
// equality of ids and an instruction is one flat record that may be copied with memcpy.
#include "ir/ir.h"
#include <stdatomic.h>

static u64 next_serial(void) {
  static atomic_ullong last;
  return atomic_fetch_add(&last, 1) + 1;
}

void prog_renumbered(prog *p) { p->serial = next_serial(); }

prog *prog_new(ctx *c) {
  arena *a = arena_new();
  prog *p = NEW(a, prog);
  p->c = c;
  p->a = a;
  p->serial = next_serial();
  p->sp = space_new(c, a);
  *vec_push(a, &p->funcs) = NULL;
  *vec_push(a, &p->types) = (type_info){0};
  *vec_push(a, &p->attrsets) = (attrs){0};
  *vec_push(a, &p->streams) = sym_of(c, "compute");
  *vec_push(a, &p->data) = (data_info){0};
  *vec_push(a, &p->points) = (coords){0};
  *vec_push(a, &p->fixed) = 0;
  *vec_push(a, &p->scopes) = (scope_info){0};
  return p;
}

void prog_free(prog *p) {
  if (p) prog_free(p->shorter);
  if (p) arena_free(p->a); // the program itself lives in its arena
}

// ---- types ------------------------------------------------------------------------------------------
type type_tensor(prog *p, const shape *s, layout l, group g) {
  assert(s->nd <= DIMS_MAX);
  u64 h = (u64)s->t << 8 | s->nd;
  for (u32 d = 0; d < s->nd; d++) h = hash_step(h, (u64)s->dim[d]);
  h = hash_u64((u64)l.i << 32 | g.i, h);
  for (u32 it = 0, id; hmap_next(&p->type_map, h, &it, &id);) {
    const type_info *t = &p->types.v[id];
    if (!t->tuple && t->lay.i == l.i && t->g.i == g.i && shape_same(&t->s, s)) return (type){id};
  }
  u32 id = p->types.n;
  type_info *t = vec_push(p->a, &p->types);
  *t = (type_info){.s = {.t = s->t, .nd = s->nd}, .lay = l, .g = g};
  if (s->nd) memcpy(t->s.dim, s->dim, s->nd * sizeof *s->dim);
  hmap_add(p->a, &p->type_map, h, id);
  return (type){id};
}

type type_tuple(prog *p, const type *elem, u32 n) {
  u64 h = hash_u64(n, 0x7u);
  for (u32 k = 0; k < n; k++) h = hash_u64(elem[k].i, h);
  for (u32 it = 0, id; hmap_next(&p->type_map, h, &it, &id);) {
    const type_info *t = &p->types.v[id];
    if (t->tuple && t->n == n && (n == 0 || memcmp(t->elem, elem, n * sizeof *elem) == 0)) return (type){id};
  }
  u32 id = p->types.n;
  const type *copy = n ? arena_dup(p->a, elem, n * sizeof *elem) : NULL;
  *vec_push(p->a, &p->types) = (type_info){.tuple = true, .n = n, .elem = copy};
  hmap_add(p->a, &p->type_map, h, id);
  return (type){id};
}

u32 type_leaves(const prog *p, type t) {
  const type_info *ti = type_get(p, t);
  u32 n = 0;
  for (u32 k = 0; ti->tuple && k < ti->n; k++) n += type_leaves(p, ti->elem[k]);
  return ti->tuple ? n : 1;
}

type type_with(prog *p, type t, layout l, group g) {
  const type_info *i = type_get(p, t);
  assert(!i->tuple && t.i);
  if (i->lay.i == l.i && i->g.i == g.i) return t;
  shape s = i->s; // a copy: interning may move the table
  return type_tensor(p, &s, l, g);
}

// Maps the group of every tensor in t: `all` sets it, else only group 0 is bound. Kept: a pipeline's main
// asks for every call again.
static type regroup(prog *p, type t, group g, bool all) {
  const type_info *i = type_get(p, t);
  if (!i->tuple && (i->g.i == g.i || (!all && i->g.i))) return t;
  assert(t.i < 1u << 31);
  u64 key = (u64)t.i << 33 | (u64)all << 32 | g.i;
  u32 id = hmap_get(&p->regroup_map, key);
  if (id) return (type){id};
  if (i->tuple) {
    u32 n = i->n;
    type few[16], *elem = n <= COUNT_OF(few) ? few : NEWN(p->a, type, n);
    for (u32 k = 0; k < n; k++) elem[k] = regroup(p, type_get(p, t)->elem[k], g, all);
    id = type_tuple(p, elem, n).i;
  } else {
    id = type_with(p, t, i->lay, g).i;
  }
  hmap_add(p->a, &p->regroup_map, key, id);
  return (type){id};
}

type type_on(prog *p, type t, group g) { return regroup(p, t, g, true); }
type type_bind(prog *p, type t, group g) { return g.i ? regroup(p, t, g, false) : t; }

// ---- attributes -------------------------------------------------------------------------------------
static attr attr_new(attr_key k, attr_kind kind, u32 n) {
  assert(k != A_NONE && k < A_COUNT && attr_kind_of(k) == kind);
  return (attr){.key = (u16)k, .kind = (u8)kind, .n = n};
}

attr attr_i(attr_key k, i64 v) {
  attr a = attr_new(k, AK_INT, 0);
  a.u.i = v;
  return a;
}
attr attr_f(attr_key k, double v) {
  attr a = attr_new(k, AK_FLOAT, 0);
  a.u.f = v;
  return a;
}
attr attr_s(attr_key k, sym s) {
  attr a = attr_new(k, AK_STR, 0);
  a.u.i = 0;
  a.u.s = s;
  return a;
}
attr attr_t(attr_key k, dtype t) {
  attr a = attr_new(k, AK_DTYPE, 0);
  a.u.i = 0;
  a.u.t = t;
  return a;
}
attr attr_v(attr_key k, const i64 *v, u32 n) {
  attr a = attr_new(k, AK_INTS, n);
  a.u.ints = v;
  return a;
}
attr attr_d(attr_key k, u32 data) {
  attr a = attr_new(k, AK_DATA, 0);
  a.u.i = 0;
  a.u.data = data;
  return a;
}
attr attr_x(attr_key k, const u8 *axes, u32 n) {
  attr a = attr_new(k, AK_AXES, n);
  a.u.axes = axes;
  return a;
}

static size_t attr_bytes(const attr *a) { // of what the attribute points at
  switch ((attr_kind)a->kind) {
  case AK_INTS: return a->n * sizeof(i64);
  case AK_FLOATS: return a->n * sizeof(double);
  case AK_AXES: return a->n;
  default: return 0;
  }
}

// The bits of a scalar; a double is compared by its bits, so that NaN and -0 are themselves.
static u64 attr_bits(const attr *a) {
  u64 bits = 0;
  switch ((attr_kind)a->kind) {
  case AK_INT: return (u64)a->u.i;
  case AK_FLOAT: memcpy(&bits, &a->u.f, sizeof bits); return bits;
  case AK_STR: return a->u.s.i;
  case AK_DTYPE: return a->u.t;
  case AK_DATA: return a->u.data;
  default: return 0;
  }
}

static u64 attrs_hash(const attr *v, u32 n) {
  u64 h = n;
  for (u32 k = 0; k < n; k++) {
    size_t bytes = attr_bytes(&v[k]);
    h = hash_u64((u64)v[k].key << 32 | v[k].n, h);
    h = bytes ? hash_bytes(v[k].u.ints, bytes, h) : hash_u64(attr_bits(&v[k]), h);
  }
  return h;
}

static bool attrs_same(const attr *x, const attr *y, u32 n) {
  for (u32 k = 0; k < n; k++) {
    if (x[k].key != y[k].key || x[k].kind != y[k].kind || x[k].n != y[k].n) return false;
    size_t bytes = attr_bytes(&x[k]);
    if (bytes ? memcmp(x[k].u.ints, y[k].u.ints, bytes) != 0 : attr_bits(&x[k]) != attr_bits(&y[k]))
      return false;
  }
  return true;
}

attrset attrs_of(prog *p, const attr *v, u32 n) {
  attr in[A_COUNT];
  if (n == 0) return (attrset){0};
  assert(n < A_COUNT);
  for (u32 k = 0, at; k < n; k++) { // insertion sort: attributes are few and mostly in order
    for (at = k; at && in[at - 1].key > v[k].key; at--) in[at] = in[at - 1];
    assert(!at || in[at - 1].key != v[k].key);
    in[at] = v[k];
  }
  u64 h = attrs_hash(in, n);
  for (u32 it = 0, id; hmap_next(&p->attr_map, h, &it, &id);)
    if (p->attrsets.v[id].n == n && attrs_same(p->attrsets.v[id].v, in, n)) return (attrset){id};
  attr *own = arena_dup(p->a, in, n * sizeof *in);
  for (u32 k = 0; k < n; k++) {
    size_t bytes = attr_bytes(&own[k]);
    if (bytes) own[k].u.ints = arena_dup(p->a, own[k].u.ints, bytes);
  }
  u32 id = p->attrsets.n;
  *vec_push(p->a, &p->attrsets) = (attrs){n, own};
  hmap_add(p->a, &p->attr_map, h, id);
  return (attrset){id};
}

// ---- streams, constants, points ---------------------------------------------------------------------
stream stream_of(prog *p, sym name) {
  for (u32 k = 0; k < p->streams.n; k++)
    if (p->streams.v[k].i == name.i) return (stream){k};
  assert(p->streams.n < 255);
  *vec_push(p->a, &p->streams) = name;
  return (stream){p->streams.n - 1};
}

u32 data_add(prog *p, const shape *s, const void *bytes, bool copy) {
  data_info *d = vec_push(p->a, &p->data);
  *d = (data_info){.t = s->t, .nd = s->nd, .size = shape_bytes(s)};
  memcpy(d->dim, s->dim, s->nd * sizeof *s->dim);
  d->bytes = bytes && copy ? arena_dup(p->a, bytes, (size_t)d->size) : bytes;
  return p->data.n - 1;
}

// Two points are the same if they fix the same axes at the same coordinates; nothing else is looked at.
static u32 point_intern(prog *p, const coords *c, u64 fixed) {
  if (!fixed) return 0;
  u64 h = fixed;
  for (u64 rest = fixed; rest; rest &= rest - 1) h = hash_u64(c->at[__builtin_ctzll(rest)], h);
  for (u32 it = 0, id; hmap_next(&p->point_map, h, &it, &id);) {
    u64 rest = p->fixed.v[id] == fixed ? fixed : 0;
    while (rest && p->points.v[id].at[__builtin_ctzll(rest)] == c->at[__builtin_ctzll(rest)])
      rest &= rest - 1;
    if (p->fixed.v[id] == fixed && !rest) return id;
  }
  u32 id = p->points.n;
  coords *own = vec_push(p->a, &p->points);
  *own = (coords){{0}};
  for (u64 rest = fixed; rest; rest &= rest - 1)
    own->at[__builtin_ctzll(rest)] = c->at[__builtin_ctzll(rest)];
  *vec_push(p->a, &p->fixed) = fixed;
  hmap_add(p->a, &p->point_map, h, id);
  return id;
}

u32 point_with(prog *p, u32 point, u8 axis, u16 at) {
  coords c = p->points.v[point];
  c.at[axis] = at;
  return point_intern(p, &c, p->fixed.v[point] | (u64)1 << axis);
}

u32 point_merge(prog *p, u32 outer, u32 inner) {
  if (!outer || !inner || outer == inner) return outer ? outer : inner;
  coords c = p->points.v[outer];
  for (u32 x = 1; x < AXES_MAX; x++)
    if (p->fixed.v[inner] >> x & 1) c.at[x] = p->points.v[inner].at[x];
  return point_intern(p, &c, p->fixed.v[outer] | p->fixed.v[inner]);
}

// ---- functions --------------------------------------------------------------------------------------
static u64 name_hash(sym name) { return hash_u64(name.i, 0); }

func func_find(const prog *p, sym name) {
  for (u32 it = 0, k; hmap_next(&p->func_map, name_hash(name), &it, &k);)
    if (k < p->funcs.n && p->funcs.v[k]->name.i == name.i) return (func){k};
  for (u32 k = MAX(1, p->nmapped); k < p->funcs.n; k++)
    if (p->funcs.v[k]->name.i == name.i) return (func){k};
  return (func){0};
}

static void forget_copies(prog *p) {
  p->copy_map = (hmap){0};
  p->copies.n = 0;
}

void func_renumbered(prog *p) {
  p->func_map = (hmap){0};
  p->nmapped = 0;
  forget_copies(p);
}

// Others drop the last functions by their number alone; their names may be given again.
static void map_funcs(prog *p) {
  if (p->funcs.n < p->nmapped) {
    p->nmapped = p->funcs.n;
    forget_copies(p);
  }
  for (p->nmapped = MAX(1, p->nmapped); p->nmapped < p->funcs.n; p->nmapped++)
    hmap_add(p->a, &p->func_map, name_hash(p->funcs.v[p->nmapped]->name), p->nmapped);
}

// "name.1", "name.2", ...: the first that is free. Where nothing was dropped those before the latest one are
// not.
static sym free_name(prog *p, sym name) {
  u32 slot = hmap_get(&p->copy_map, name_hash(name));
  if (!slot) {
    *vec_push(p->a, &p->copies) = 0;
    hmap_add(p->a, &p->copy_map, name_hash(name), slot = p->copies.n);
  }
  sym unique;
  do unique = sym_fmt(p->c, "%s.%u", sym_str(p->c, name), ++p->copies.v[slot - 1]);
  while (func_find(p, unique).i);
  return unique;
}

func func_new(prog *p, sym name, loc where) {
  map_funcs(p);
  func_info *f = NEW(p->a, func_info);
  f->name = func_find(p, name).i ? free_name(p, name) : name;
  f->where = where;
  *vec_push(p->a, &f->values) = (value_info){0};
  *vec_push(p->a, &p->funcs) = f;
  return (func){p->funcs.n - 1};
}

value func_param(prog *p, func f, type t, sym name, role r) {
  func_info *fi = func_get(p, f);
  assert(fi->values.n == fi->nparams + 1); // parameters come before results
  *vec_push(p->a, &fi->values) = (value_info){.ty = t, .name = name};
  *vec_push(p->a, &fi->params) = (param_info){.r = r};
  return ++fi->nparams;
}

void func_return(prog *p, func f, const value *v, u32 n) {
  func_info *fi = func_get(p, f);
  fi->rets.n = 0;
  if (n) memcpy(vec_push_n(p->a, &fi->rets, n), v, n * sizeof *v);
}

void value_name(prog *p, func f, value v, sym name) {
  assert(v && v < func_get(p, f)->values.n);
  func_get(p, f)->values.v[v].name = name;
}

sym ir_new_name(ctx *c, sym old) { return sym_with(c, old, IR_NEW); }

sym ir_old_name(ctx *c, sym name) {
  const char *s = name.i ? sym_str(c, name) : "";
  const size_t n = strlen(s), more = strlen(IR_NEW);
  return n > more && !strcmp(s + n - more, IR_NEW) ? sym_ofn(c, s, n - more) : (sym){0};
}

u32 instr_nopd(const func_info *f, const instr *i) {
  u32 n = i->nopd;
  while (n && f->opds.v[i->opd + n - 1] & OPD_AFTER) n--;
  return n;
}

uses func_uses(arena *a, const func_info *f) {
  u32 nv = f->values.n;
  u32 *begin = ZNEWN(a, u32, nv + 2),
      *next = begin + 1; // next[v] runs from the first to past the last use of v
  for (u32 k = 0; k < f->body.n; k++)
    for (u32 o = 0; o < f->body.v[k].nopd; o++) begin[opd_of(f, &f->body.v[k], o) + 2]++;
  for (u32 k = 0; k < f->rets.n; k++) begin[f->rets.v[k] + 2]++;
  for (u32 k = 1; k < nv + 2; k++) begin[k] += begin[k - 1];
  u32 *use = NEWN(a, u32, begin[nv + 1]);
  for (u32 k = 0; k < f->body.n; k++)
    for (u32 o = 0; o < f->body.v[k].nopd; o++) use[next[opd_of(f, &f->body.v[k], o)]++] = k + 1;
  for (u32 k = 0; k < f->rets.n; k++) use[next[f->rets.v[k]]++] = 0;
  return (uses){begin, use};
}

// ---- copies -----------------------------------------------------------------------------------------
// Symbols and locations belong to a session: a copy into another session names them anew.
typedef struct {
  const ctx *from;
  ctx *to;
} translation;

static sym sym_to(translation *t, sym s) {
  return t->to == t->from || !s.i ? s : sym_of(t->to, sym_str(t->from, s));
}

static loc one_loc_to(translation *t, loc l) {
  const loc_info *i = loc_get(t->from, l);
  size_t len = i->text ? strcspn(i->text, "\n") : 0;
  const char *text = i->text ? arena_strndup(ctx_arena(t->to), i->text, len) : NULL;
  return i->node.i ? loc_node(t->to, sym_to(t, i->file), sym_to(t, i->node), sym_to(t, i->part))
                   : loc_text(t->to, sym_to(t, i->file), i->line, i->col, text);
}

static loc loc_to(translation *t, loc l, loc *last, loc *last_to) {
  if (t->to == t->from || !l.i) return l;
  if (l.i == last->i) return *last_to;
  loc to = one_loc_to(t, l);
  *last = l, *last_to = to;
  for (loc next = loc_get(t->from, l)->alike; next.i; next = loc_get(t->from, next)->alike) {
    const loc more = one_loc_to(t, next);
    loc_set_alike(t->to, to, more);
    to = more;
  }
  return *last_to;
}

#define DUP(a, vec)                                                                                          \
  ((vec)->v = (vec)->n ? arena_dup(a, (vec)->v, (vec)->n * sizeof *(vec)->v) : NULL, (vec)->cap = (vec)->n)

static void copy_map(arena *a, hmap *to, const hmap *from) {
  *to = *from;
  if (!from->cap) return;
  to->hash = arena_dup(a, from->hash, from->cap * sizeof *from->hash);
  to->val = arena_dup(a, from->val, from->cap * sizeof *from->val);
}

static func_info *copy_func(prog *q, const func_info *f, translation *t) {
  func_info *g = arena_dup(q->a, f, sizeof *f);
  DUP(q->a, &g->values);
  DUP(q->a, &g->body);
  DUP(q->a, &g->opds);
  DUP(q->a, &g->rets);
  DUP(q->a, &g->params);
  if (t->to == t->from) return g;
  loc last = {0}, last_to = {0};
  g->name = sym_to(t, f->name);
  g->where = loc_to(t, f->where, &last, &last_to);
  for (u32 k = 1; k < g->values.n; k++) g->values.v[k].name = sym_to(t, g->values.v[k].name);
  for (u32 k = 0; k < g->body.n; k++) g->body.v[k].where = loc_to(t, g->body.v[k].where, &last, &last_to);
  return g;
}

// Attributes in a new session hash anew where they hold a symbol, so their table is rebuilt.
static void copy_attrs(prog *q, const prog *p, translation *t) {
  DUP(q->a, &q->attrsets);
  q->attr_map = (hmap){0};
  for (u32 k = 1; k < q->attrsets.n; k++) {
    u32 n = p->attrsets.v[k].n;
    attr *v = arena_dup(q->a, p->attrsets.v[k].v, n * sizeof *v);
    for (u32 j = 0; j < n; j++) {
      size_t bytes = attr_bytes(&v[j]);
      if (bytes) v[j].u.ints = arena_dup(q->a, v[j].u.ints, bytes);
      if (v[j].kind == AK_STR) v[j].u.s = sym_to(t, v[j].u.s);
    }
    q->attrsets.v[k].v = v;
    hmap_add(q->a, &q->attr_map, attrs_hash(v, n), k);
  }
}

static void copy_shares(arena *a, shares_info *s, translation *t) {
  loc last = {0}, last_to = {0};
  s->where = loc_to(t, s->where, &last, &last_to);
  if (s->n) s->part = arena_dup(a, s->part, s->n * sizeof *s->part);
}

// All but the functions.
static prog *copy_rest(const prog *p, translation *t) {
  arena *a = arena_new();
  prog *q = arena_dup(a, p, sizeof *p);
  ctx *c = t->to;
  op_share(c, p->c);
  loc last = {0}, last_to = {0};
  q->c = c;
  q->a = a;
  q->serial = next_serial();
  q->measured = NULL, q->shorter = NULL;
  q->sp = space_clone(p->sp, c, a);
  DUP(a, &q->types);
  for (u32 k = 1; k < q->types.n; k++) {
    type_info *i = &q->types.v[k];
    if (i->n) i->elem = arena_dup(a, i->elem, i->n * sizeof *i->elem);
  }
  copy_map(a, &q->type_map, &p->type_map);
  q->regroup_map = (hmap){0};
  q->func_map = q->copy_map = (hmap){0};
  memset(&q->copies, 0, sizeof q->copies);
  q->nmapped = 0;
  copy_attrs(q, p, t);
  DUP(a, &q->streams);
  for (u32 k = 0; k < q->streams.n; k++) q->streams.v[k] = sym_to(t, q->streams.v[k]);
  DUP(a, &q->data);
  DUP(a, &q->points);
  DUP(a, &q->fixed);
  copy_map(a, &q->point_map, &p->point_map);
  DUP(a, &q->scopes);
  for (u32 k = 0; k < q->scopes.n; k++) {
    scope_info *s = &q->scopes.v[k];
    s->name = sym_to(t, s->name), s->where = loc_to(t, s->where, &last, &last_to);
    copy_shares(a, &s->shares, t);
  }
  copy_shares(a, &q->replicas, t);
  DUP(a, &q->tasks);
  if (p->layers) q->layers = ir_layers_copy(a, p->layers);
  DUP(a, &q->settings);
  for (u32 k = 0; k < q->settings.n; k++) {
    setting_info *s = &q->settings.v[k];
    s->key = sym_to(t, s->key), s->value = sym_to(t, s->value);
    s->where = loc_to(t, s->where, &last, &last_to);
  }
  memset(&q->funcs, 0, sizeof q->funcs);
  return q;
}

prog *prog_clone(const prog *p, ctx *c) {
  translation t = {p->c, c};
  prog *q = copy_rest(p, &t);
  vec_reserve(q->a, &q->funcs, p->funcs.n);
  for (u32 k = 0; k < p->funcs.n; k++)
    *vec_push(q->a, &q->funcs) = k ? copy_func(q, p->funcs.v[k], &t) : NULL;
  return q;
}

prog *prog_empty(const prog *p) {
  translation t = {p->c, p->c};
  prog *q = copy_rest(p, &t);
  *vec_push(q->a, &q->funcs) = NULL;
  q->main = (func){0};
  return q;
}

// ---- annotations ------------------------------------------------------------------------------------
const scope_row *scope_row_of(scope_kind k) {
  static const scope_row rows[] = {
#define SCOPE(id, word, split, inside, counted, axis, before, after)                                         \
  {word, split, inside, counted, axis, before, after},
#include "ir/scopes.def"
#undef SCOPE
  };
  return &rows[k];
}

u32 scope_add(prog *p, const scope_info *s) {
  assert(s->parent < p->scopes.n);
  *vec_push(p->a, &p->scopes) = *s;
  return p->scopes.n - 1;
}

bool scope_within(const prog *p, u32 inner, u32 outer) {
  while (inner > outer) inner = p->scopes.v[inner].parent;
  return inner == outer;
}

bool scope_is_empty(const prog *p, func f, u32 scope) {
  const func_info *fi = func_get(p, f);
  return !fi->body.n || !scope_within(p, fi->body.v[fi->body.n - 1].scope, scope);
}

void prog_forget_scopes(prog *p) {
  p->scopes.n = 1, p->settings.n = 0, p->has_default = false, p->replicas = (shares_info){0};
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 i = 0; i < p->funcs.v[f]->body.n; i++) p->funcs.v[f]->body.v[i].scope = 0;
}

static void visit(const prog *p, func f, bool *seen, u32 *order, u32 *n) {
  if (seen[f.i]) return;
  seen[f.i] = true;
  const func_info *fi = func_get(p, f);
  for (u32 i = 0; i < fi->body.n; i++)
    if (fi->body.v[i].op == OP_call) visit(p, fi->body.v[i].callee, seen, order, n);
  order[(*n)++] = f.i;
}

u32 *ir_call_order(const prog *p, arena *a, u32 *n) {
  u32 *order = NEWN(a, u32, p->funcs.n);
  *n = 0;
  visit(p, p->main, ZNEWN(a, bool, p->funcs.n), order, n);
  return order;
}

// ---- microbatches and tasks ----------------------------------------------------------------------------
u32 ir_microbatch(const prog *p, u32 coord, u32 around) {
  const u64 fixed = p->fixed.v[coord];
  return fixed ? p->points.v[coord].at[__builtin_ctzll(fixed)] : around;
}

bool ir_has_tasks(const prog *p) { return p->tasks.n && p->tasks_of == func_get(p, p->main)->body.n; }

u32 ir_task_at(const prog *p, u32 index) {
  u32 from = 0, to = p->tasks.n;
  while (from < to) {
    const u32 mid = from + (to - from) / 2;
    if (p->tasks.v[mid].from <= index)
      from = mid + 1;
    else
      to = mid;
  }
  return from && p->tasks.v[from - 1].letter ? from : 0;
}
