// randprog.c - random distributed programs, made through the unchecked builder.
#include "randprog.h"

u32 world_pick(world *w, u32 n) { return (u32)(rng_next(&w->rng) % n); }
static bool chance(world *w, u32 n) { return world_pick(w, n) == 0; }

static type tensor(world *w, layout l, group g) {
  shape s = {.t = DT_F32, .nd = 2, .dim = {EXTENT, EXTENT}};
  return type_tensor(w->p, &s, l, g);
}

static void make_space(world *w) {
  static const u32 sizes[][3] = {{2, 2, 2}, {4, 2, 1}, {2, 4, 1}, {8, 1, 1}, {2, 1, 1}};
  const u32 *n = sizes[world_pick(w, COUNT_OF(sizes))];
  space *sp = w->p->sp;
  const char *name[3] = {"pp", "dp", "tp"};
  for (u32 k = 0; k < 3; k++) w->ax[k] = axis_add(sp, sym_of(w->c, name[k]), n[k], false);
  mesh m = mesh_add(sp, sym_of(w->c, "m"), w->ax, 3, 0, NULL);
  w->groups[w->ngroups++] = group_all(sp, m);
  for (u32 k = 0; k < n[0] && k < 4; k++) w->groups[w->ngroups++] = group_fix(sp, w->groups[0], w->ax[0], k);
  if (n[1] > 1) w->groups[w->ngroups++] = group_fix(sp, w->groups[1], w->ax[1], 1);
  w->lays[0] = w->lays[6] = w->lays[7] = (layout){0};
  for (u32 k = 1; k < 6; k++) {
    u8 axis = w->ax[1 + k % 2];
    u32 size = axis_size(sp, axis);
    w->lays[k] =
        size == 1 ? (layout){0} : layout_with_split(sp, (layout){0}, axis, k & 1, k < 4 ? EXTENT / size : 1);
  }
  for (u32 k = 6; k < LAYOUTS; k++) { // unlike pieces: the first rank has most
    u8 axis = w->ax[k - 5];
    u32 size = axis_size(sp, axis), begin[9] = {0};
    i64 bound[18], at = 0;
    if (size == 1 || size > EXTENT / 2) continue;
    for (u32 j = 0; j < size; j++) {
      bound[2 * j] = at;
      bound[2 * j + 1] = at = j + 1 == size ? EXTENT : at + (j ? 1 : 3);
      begin[j + 1] = j + 1;
    }
    layout_info li = {.nsplit = 1};
    li.split[0] = (lay_split){.axis = axis, .table = (u16)pieces_of(sp, size, begin, bound, EXTENT).i};
    w->lays[k] = layout_of(sp, &li);
  }
}

static bool usable(world *w, layout l, group g) { // every axis of l is free in g
  const layout_info *li = layout_get(w->p->sp, l);
  for (u32 k = 0; k < li->nsplit; k++)
    if (g.i && !group_has_axis(w->p->sp, g, li->split[k].axis)) return false;
  return true;
}

typedef struct { // values that the function being made may use, with the group they live on (0 = its own)
  value v[VALUES];
  group g[VALUES];
  u32 n;
} pool;

static void add(pool *o, value v, group g) {
  if (o->n == VALUES) return;
  o->v[o->n] = v;
  o->g[o->n++] = g;
}

static value any_on(world *w, pool *o, group g) { // a value on g; 0 if there is none
  u32 seen = 0;
  value v = 0;
  for (u32 k = 0; k < o->n; k++)
    if (o->g[k].i == g.i && chance(w, ++seen)) v = o->v[k];
  return v;
}

static value any_tensor_on(world *w, builder *b, pool *o, group g) {
  for (u32 tries = 0; tries < 4; tries++) {
    value v = any_on(w, o, g);
    if (v && !val_type(w->p, func_get(w->p, b->f), v)->tuple) return v;
  }
  type t = tensor(w, (layout){0}, g);
  b->g = g;
  return emit_res(w->p, b->f, emit(b, OP_full, (attrset){0}, NULL, 0, &t, 1));
}

static layout any_layout(world *w, group g) {
  layout l = w->lays[world_pick(w, LAYOUTS)];
  return usable(w, l, g) ? l : (layout){0};
}

// A value of exactly this type on g; tuples are packed if there is none.
static value any_of_type(world *w, builder *b, pool *o, group g, type t) {
  const func_info *f = func_get(w->p, b->f);
  type on = type_bind(w->p, t, g);
  u32 seen = 0;
  value v = 0;
  if (!type_get(w->p, t)->tuple) return any_tensor_on(w, b, o, g);
  for (u32 k = 0; k < o->n; k++)
    if (o->g[k].i == g.i && f->values.v[o->v[k]].ty.i == on.i && chance(w, ++seen)) v = o->v[k];
  if (v) return v;
  u32 n = type_get(w->p, on)->n, opd[4];
  for (u32 k = 0; k < n; k++) {
    type e = type_get(w->p, on)->elem[k];
    b->g = g;
    opd[k] = emit_res(w->p, b->f, emit(b, OP_full, (attrset){0}, NULL, 0, &e, 1));
  }
  v = emit_res(w->p, b->f, emit(b, OP_pack, (attrset){0}, opd, n, &on, 1));
  add(o, v, g);
  return v;
}

static void gen_call(world *w, builder *b, pool *o, group g) {
  if (!w->nfn) return;
  func callee = w->fn[world_pick(w, w->nfn)];
  const func_info *f = func_get(w->p, callee);
  u32 opd[16], n = 0, nret = f->rets.n;
  type res[8];
  for (u32 k = 0; k < f->nparams; k++) opd[n++] = any_of_type(w, b, o, g, f->values.v[k + 1].ty);
  b->g = g;
  if (chance(w, 4)) {
    value v = any_on(w, o, g);
    if (v) opd[n++] = v | OPD_AFTER;
  }
  for (u32 k = 0; k < nret; k++) res[k] = type_bind(w->p, f->values.v[f->rets.v[k]].ty, g);
  u32 i = emit(b, OP_call, (attrset){0}, opd, n, res, nret);
  func_get(w->p, b->f)->body.v[i - 1].callee = callee;
  for (u32 k = 0; k < nret; k++) add(o, emit_res(w->p, b->f, i) + k, g);
}

static u32 gen_pack(world *w, builder *b, pool *o, group g, value x, value y) {
  const func_info *f = func_get(w->p, b->f);
  type ty = f->values.v[y].ty;
  if (type_get(w->p, ty)->tuple && chance(w, 2)) {
    add(o, y, g);
    u32 n = type_get(w->p, ty)->n;
    type part[4];
    for (u32 k = 0; k < n; k++) part[k] = type_get(w->p, ty)->elem[k];
    return emit(b, OP_unpack, (attrset){0}, &y, 1, part, n);
  }
  u32 opd[2] = {x, y}; // y may be a tuple itself
  type e[2] = {f->values.v[x].ty, ty}, t = type_tuple(w->p, e, 2);
  return emit(b, OP_pack, (attrset){0}, opd, 2, &t, 1);
}

static void gen_instr(world *w, builder *b, pool *o, bool in_main) {
  group g = in_main ? w->groups[world_pick(w, w->ngroups)] : (group){0}, on = g;
  u32 kind = world_pick(w, 12), i = 0;
  value x = any_tensor_on(w, b, o, g), y = any_on(w, o, g), z = any_on(w, o, g);
  layout lx = val_type(w->p, func_get(w->p, b->f), x)->lay;
  u32 opd[3] = {x, y ? y : x, (z ? z : x) | OPD_AFTER};
  b->g = g;
  b->strm = (u8)world_pick(w, STREAMS);
  if (kind < 4) {
    type t = tensor(w, any_layout(w, in_main ? g : w->groups[w->ngroups - 1]), g);
    i = emit(b, OP_add, (attrset){0}, opd, 2 + chance(w, 4), &t, 1);
  } else if (kind < 7) {
    u32 from = 1 + world_pick(w, 2), n = 1 + world_pick(w, 3 - from);
    attr at = attr_x(A_over, w->ax + from, n);
    type t = tensor(w, lx, g);
    i = emit(b, OP_all_reduce, attrs_of(w->p, &at, 1), opd, 1, &t, 1);
  } else if (kind == 7) {
    type t = tensor(w, lx, g);
    i = emit(b, OP_reshape, (attrset){0}, opd, 1, &t, 1);
  } else if (kind == 8)
    i = gen_pack(w, b, o, g, opd[0], opd[1]);
  else if (kind == 9 && in_main) {
    on = w->groups[world_pick(w, w->ngroups)];
    type t = tensor(w, usable(w, lx, on) && !chance(w, 3) ? lx : any_layout(w, on), on);
    i = emit(b, OP_send, (attrset){0}, opd, 1, &t, 1);
  } else if (kind == 10 && in_main && w->ngroups > 2) {
    u32 parts[8], n = 0;
    for (u32 k = 1; k < w->ngroups - 1; k++) parts[n++] = any_tensor_on(w, b, o, w->groups[k]);
    b->g = on = w->groups[0];
    type t = tensor(w, (layout){0}, on);
    i = emit(b, OP_join, (attrset){0}, parts, n, &t, 1);
  } else {
    gen_call(w, b, o, g);
    return;
  }
  const instr *made = &func_get(w->p, b->f)->body.v[i - 1];
  for (u32 k = 0; k < made->nres; k++) add(o, made->res + k, on);
}

// Operands that are used for the last time may be donated.
static void donate(world *w, func fn) {
  func_info *f = func_get(w->p, fn);
  uses u = func_uses(w->a, f);
  for (u32 k = 0; k < f->body.n; k++)
    for (u32 j = 0; j < instr_nopd(f, &f->body.v[k]); j++) {
      u32 *o = &f->opds.v[f->body.v[k].opd + j];
      bool last = true;
      for (u32 q = u.begin[*o & OPD_VALUE]; q < u.begin[(*o & OPD_VALUE) + 1]; q++)
        last &= u.use[q] && u.use[q] <= k + 1;
      if (last && chance(w, 2)) *o |= OPD_DONATED;
    }
}

static func gen_func(world *w, bool is_main) {
  func f = func_new(w->p, sym_fmt(w->c, is_main ? "main" : "f%u", w->nfn), (loc){0});
  pool o = {.n = 0};
  for (u32 np = 1 + world_pick(w, 4); np--;) {
    group g = is_main ? w->groups[world_pick(w, w->ngroups)] : (group){0};
    type t = tensor(w, (layout){0}, g), e[3] = {t, t, t};
    if (!is_main && chance(w, 3)) t = type_tuple(w->p, e, 2 + world_pick(w, 2));
    add(&o, func_param(w->p, f, t, (sym){0}, ROLE_INPUT), g);
  }
  builder b = builder_at(w->p, f);
  for (u32 n = 4 + world_pick(w, is_main ? 40 : 12); n--;) gen_instr(w, &b, &o, is_main);
  value rets[4];
  u32 nret = 0;
  for (u32 k = 1 + world_pick(w, 3); k--; nret++) {
    group g = is_main ? w->groups[0] : (group){0};
    type t = tensor(w, (layout){0}, g), e[2] = {t, t};
    pool none = {.n = 0};
    u32 kind = world_pick(w, 3); // a tensor; anything; a tuple made for this
    rets[nret] = kind == 1   ? any_on(w, &o, g)
                 : kind == 2 ? any_of_type(w, &b, &none, g, type_tuple(w->p, e, 2))
                             : 0;
    if (!rets[nret]) rets[nret] = any_tensor_on(w, &b, &o, g);
  }
  func_return(w->p, f, rets, nret);
  donate(w, f);
  return f;
}

void world_program(world *w) {
  w->p = prog_new(w->c);
  make_space(w);
  for (u32 k = 1; k < STREAMS; k++) stream_of(w->p, sym_fmt(w->c, "s%u", k));
  for (u32 n = world_pick(w, FUNCS + 1); n--; w->nfn++) w->fn[w->nfn] = gen_func(w, false);
  w->p->main = gen_func(w, true);
}
