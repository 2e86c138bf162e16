// ir.c - random programs: whatever the builder can say, the verifier accepts, the text keeps and a copy
// keeps; and every step that layout/ takes from one layout to another is a communication that the verifier
// accepts.
#include "infer/infer.h"
#include "test.h"
#include <stdlib.h>

enum { POOL = 64, ROUNDS = 400 };

typedef struct {
  u64 rng;
  ctx *c;
  prog *p;
  builder b;
  value pool[POOL]; // values that may be used
  u32 n;
  u8 axis[6], time[2];
  u32 naxes, ntime;
  group group[8];
  u32 ngroups;
} maker;

static u32 dice(maker *m, u32 n) { return (u32)(rng_next(&m->rng) % n); }
static func_info *fi(maker *m) { return func_get(m->p, m->b.f); }
static const type_info *ty(maker *m, value v) { return val_type(m->p, fi(m), v); }

static void add(maker *m, value v) {
  static const char *const names[] = {"x", "y", "x.1", "a/b c", "12", "\xff\"\\", "_", "main"};
  if (dice(m, 2)) value_name(m->p, m->b.f, v, sym_of(m->c, names[dice(m, COUNT_OF(names))]));
  m->pool[m->n < POOL ? m->n++ : dice(m, POOL)] = v;
}

static value pick(maker *m, bool tensor) {
  for (u32 k = 0; k < 20 && m->n; k++) {
    value v = m->pool[dice(m, m->n)];
    if (ty(m, v)->tuple != tensor) return v;
  }
  return 0;
}

static void forget(maker *m, value v) {
  for (u32 k = 0; k < m->n; k++)
    if (m->pool[k] == v) m->pool[k--] = m->pool[--m->n];
}

static bool spatial_in(maker *m, u8 axis, group g) {
  return !axis_get(m->p->sp, axis)->temporal && group_has_axis(m->p->sp, g, axis);
}

// Every axis of the group takes a place or none. Axes in time too, where `time` says so.
static layout random_layout(maker *m, const shape *s, group g, bool parts, bool time) {
  layout l = {0};
  for (u32 k = 0; k < m->naxes + (time ? m->ntime : 0); k++) {
    u8 axis = k < m->naxes ? m->axis[k] : m->time[k - m->naxes];
    if (k < m->naxes && !spatial_in(m, axis, g)) continue;
    u32 what = dice(m, 4), d = s->nd ? dice(m, s->nd) : 0;
    if (what == 1 && parts) l = layout_with_part(m->p->sp, l, axis, dice(m, 4) ? RED_SUM : RED_MAX);
    if (what < 2 || !s->nd) continue;
    i64 stride = layout_next_stride(m->p->sp, l, (u8)d, s->dim[d], axis_size(m->p->sp, axis));
    if (!stride) continue;
    if (what == 3 && dice(m, 2)) stride = 1;
    layout next = layout_with_split(m->p->sp, l, axis, (u8)d, stride);
    if (layout_fits(m->p->sp, next, s->nd, s->dim)) l = next;
  }
  return l;
}

static shape random_shape(maker *m) {
  static const i64 extents[] = {1, 24, 48, 6, 0, 5};
  shape s = {.t = dice(m, 3) ? DT_F32 : (dtype)(1 + dice(m, DT_COUNT - 1)), .nd = dice(m, 4)};
  for (u32 d = 0; d < s.nd; d++) s.dim[d] = extents[dice(m, dice(m, 4) ? 3 : COUNT_OF(extents))];
  return s;
}

static void random_marks(maker *m, group g) {
  m->b.g = g;
  m->b.strm = dice(m, 4) ? 0 : (u8)dice(m, m->p->streams.n);
  m->b.flags = dice(m, 4) ? 0 : (u8)dice(m, 16);
  m->b.origin = dice(m, 3) ? 0 : ++m->p->norigins;
  sym node = sym_fmt(m->c, "/h.%u/node", dice(m, 9)), part = dice(m, 2) ? (sym){0} : sym_of(m->c, "input 1");
  m->b.where = dice(m, 2) ? (loc){0}
                          : loc_node(m->c, sym_of(m->c, dice(m, 3) ? "a.onnx" : "b \"2\".onnx"), node, part);
}

// Emits, sometimes ordered after something and sometimes donating; results go into the pool.
static void put(maker *m, opcode op, const attr *at, u32 nat, const value *v, u32 n, const type *res,
                u32 nres) {
  u32 opd[8];
  for (u32 k = 0; k < n; k++) opd[k] = v[k];
  for (u32 k = 0; k < n && !dice(m, 4); k++) {
    u32 same = 0;
    for (u32 j = 0; j < n; j++) same += v[j] == v[k];
    if (same > 1) continue;
    opd[k] |= OPD_DONATED;
    forget(m, v[k]);
  }
  if (m->n && !dice(m, 4)) opd[n++] = m->pool[dice(m, m->n)] | OPD_AFTER;
  u32 i = emit(&m->b, op, attrs_of(m->p, at, nat), opd, n, res, nres);
  for (u32 k = 0; k < nres; k++) add(m, emit_res(m->p, m->b.f, i) + k);
}

static void compute(maker *m) {
  static const opcode ops[] = {OP_identity, OP_neg,    OP_relu, OP_add,      OP_mul,
                               OP_where,    OP_concat, OP_sub,  OP_transpose};
  opcode op = ops[dice(m, COUNT_OF(ops))];
  value v[3];
  shape in[3], out;
  layout lay[3], to;
  attr at[1];
  u32 n = op_row_of(op)->opd_min, nat = 0, nres = 1;
  if (op == OP_concat) n = 2;
  for (u32 k = 0; k < n; k++) {
    v[k] = k && dice(m, 2) ? v[k - 1] : pick(m, true);
    if (!v[k] || ty(m, v[k])->g.i != ty(m, v[0])->g.i) return;
    in[k] = ty(m, v[k])->s;
    lay[k] = ty(m, v[k])->lay;
  }
  i64 perm[DIMS_MAX];
  for (u32 d = 0; d < in[0].nd; d++) perm[d] = in[0].nd - 1 - d;
  if (op == OP_concat) at[nat++] = attr_i(A_axis, in[0].nd ? dice(m, in[0].nd) : 0);
  if (op == OP_transpose) at[nat++] = attr_v(A_perm, perm, in[0].nd);
  u32 before = diag_count(m->c);
  arena *tmp = arena_new();
  const law *l =
      op_law(m->c, tmp, op, attrs_get(m->p, attrs_of(m->p, at, nat)), n, in, &nres, &out, (loc){0});
  bool ok = l && ir_layouts(m->p, op, l, lay, &to, (loc){0});
  arena_free(tmp);
  diag_truncate(m->c, before); // many pairs do not fit: they are not part of the program
  if (!ok) return;
  random_marks(m, ty(m, v[0])->g);
  type res = type_tensor(m->p, &out, to, m->b.g);
  put(m, op, at, nat, v, n, &res, 1);
}

static void make_from_nothing(maker *m, group g) {
  shape s = random_shape(m);
  random_marks(m, g);
  attr at[] = {attr_t(A_dtype, s.t), attr_v(A_shape, s.dim, s.nd), attr_f(A_value, (double)dice(m, 5) / 3)};
  if (dice(m, 3)) {
    type res = type_tensor(m->p, &s, random_layout(m, &s, g, false, false), g);
    put(m, OP_full, at, 3, NULL, 0, &res, 1);
    return;
  }
  u8 *bytes = arena_alloc(m->p->a, (size_t)shape_bytes(&s));
  for (i64 k = 0; k < shape_bytes(&s); k++) bytes[k] = (u8)dice(m, 256);
  at[2] = attr_d(A_data, data_add(m->p, &s, dice(m, 5) ? bytes : NULL, false));
  type res = type_tensor(m->p, &s, (layout){0}, g);
  put(m, OP_constant, at, 3, NULL, 0, &res, 1);
}

static void change_layout(maker *m) {
  static const opcode op_of[] = {[STEP_SHARD] = OP_shard,
                                 [STEP_PARTIAL] = OP_partial,
                                 [STEP_ALL_GATHER] = OP_all_gather,
                                 [STEP_ALL_REDUCE] = OP_all_reduce,
                                 [STEP_REDUCE_SCATTER] = OP_reduce_scatter,
                                 [STEP_ALL_TO_ALL] = OP_all_to_all,
                                 [STEP_PERMUTE] = OP_permute};
  value v = pick(m, true);
  if (!v) return;
  const type_info t = *ty(m, v);
  if (!t.g.i) return;
  layout to = random_layout(m, &t.s, t.g, false, false);
  for (u32 k = 0; k < m->ntime; k++) { // what lies in time stays there
    const lay_split *s = layout_split_of(m->p->sp, t.lay, m->time[k]);
    if (s) to = layout_with_split(m->p->sp, to, s->axis, s->dim, s->stride);
    reduction r = layout_part_of(m->p->sp, t.lay, m->time[k]);
    if (r) to = layout_with_part(m->p->sp, to, m->time[k], r);
  }
  if (!layout_fits(m->p->sp, to, t.s.nd, t.s.dim)) return;
  layout_step step[16];
  double cost;
  int n = layout_path(m->p->sp, t.g, t.s.nd, t.s.dim, t.lay, to, step_cost_elements, NULL, step, 16, &cost);
  for (int k = 0; k < n; k++) {
    random_marks(m, t.g);
    attr at = attr_x(A_over, step[k].axis, step[k].naxes);
    type res = type_tensor(m->p, &t.s, step[k].to, t.g);
    u32 i = emit(&m->b, op_of[step[k].kind], attrs_of(m->p, &at, 1), &v, 1, &res, 1);
    v = emit_res(m->p, m->b.f, i);
  }
  if (n > 0) add(m, v);
}

static void send_away(maker *m) {
  value v = pick(m, true);
  if (!v || m->ngroups < 2) return;
  const type_info t = *ty(m, v);
  group to = m->group[dice(m, m->ngroups)];
  if (!t.g.i || to.i == t.g.i || layout_get(m->p->sp, t.lay)->npart) return;
  layout l = random_layout(m, &t.s, to, false, false);
  for (u32 k = 0; k < m->ntime; k++)
    if (layout_split_of(m->p->sp, t.lay, m->time[k])) return;
  random_marks(m, t.g);
  type res = type_tensor(m->p, &t.s, l, to);
  put(m, OP_send, NULL, 0, &v, 1, &res, 1);
}

// Every piece of a value in time, something done to it there, and all of them joined again.
static void through_time(maker *m) {
  value v = pick(m, true), w[8];
  if (!v || !m->ntime) return;
  const type_info t = *ty(m, v);
  u8 axis = m->time[dice(m, m->ntime)];
  u32 n = axis_size(m->p->sp, axis), d = t.s.nd ? dice(m, t.s.nd) : 0;
  if (!t.s.nd || layout_split_of(m->p->sp, t.lay, axis) || layout_part_of(m->p->sp, t.lay, axis)) return;
  i64 stride = layout_next_stride(m->p->sp, t.lay, (u8)d, t.s.dim[d], n);
  if (!stride) return;
  layout l = layout_with_split(m->p->sp, t.lay, axis, (u8)d, stride);
  if (!layout_fits(m->p->sp, l, t.s.nd, t.s.dim)) return;
  for (u32 k = 0; k < m->ntime; k++)
    if (layout_split_of(m->p->sp, t.lay, m->time[k])) return;
  type piece = type_tensor(m->p, &t.s, l, t.g), whole = type_tensor(m->p, &t.s, t.lay, t.g);
  for (u32 k = 0; k < n; k++) {
    random_marks(m, t.g);
    attr at[] = {attr_i(A_at, k), attr_x(A_over, &axis, 1)};
    m->b.coord = dice(m, 2) ? 0 : point_with(m->p, 0, axis, (u16)k);
    w[k] = emit_res(m->p, m->b.f, emit(&m->b, OP_part, attrs_of(m->p, at, 2), &v, 1, &piece, 1));
    m->b.coord = point_with(m->p, 0, axis, (u16)k);
    w[k] = emit_res(m->p, m->b.f, emit(&m->b, OP_identity, (attrset){0}, &w[k], 1, &piece, 1));
    m->b.coord = 0;
  }
  attr at = attr_x(A_over, &axis, 1);
  put(m, OP_join, &at, 1, w, n, &whole, 1);
}

static void tuples(maker *m) {
  value v[3];
  type t[3];
  u32 n = dice(m, 4);
  for (u32 k = 0; k < n; k++) {
    if (!(v[k] = pick(m, dice(m, 4) != 0))) return;
    t[k] = val(fi(m), v[k])->ty;
  }
  random_marks(m, m->ngroups ? m->group[dice(m, m->ngroups)] : (group){0});
  type whole = type_tuple(m->p, t, n);
  put(m, OP_pack, NULL, 0, v, n, &whole, 1);
  value u = pick(m, false);
  if (!u) return;
  const type_info i = *ty(m, u);
  put(m, OP_unpack, NULL, 0, &u, 1, i.elem, i.n);
}

static void finish(maker *m) {
  value out[4];
  u32 n = m->n ? dice(m, 5) : 0;
  for (u32 k = 0; k < n; k++) out[k] = m->pool[dice(m, m->n)];
  func_return(m->p, m->b.f, out, n);
}

static void body(maker *m, u32 length) {
  for (u32 k = 0; k < length; k++) {
    group g = m->ngroups ? m->group[dice(m, m->ngroups)] : (group){0};
    switch (dice(m, 8)) {
    case 0: make_from_nothing(m, g); break;
    case 1: change_layout(m); break;
    case 2: send_away(m); break;
    case 3: through_time(m); break;
    case 4: tuples(m); break;
    default: compute(m); break;
    }
  }
}

static void params(maker *m, u32 n, bool time) {
  m->n = 0;
  for (u32 k = 0; k < n; k++) {
    shape s = random_shape(m);
    group g = m->ngroups ? m->group[dice(m, m->ngroups)] : (group){0};
    type t = type_tensor(m->p, &s, random_layout(m, &s, g, true, time), g);
    add(m, func_param(m->p, m->b.f, t, (sym){0}, (role)dice(m, 5)));
    if (!dice(m, 3))
      fi(m)->params.v[k].data = data_add(m->p, &s, arena_zalloc(m->p->a, (size_t)shape_bytes(&s)), false);
  }
}

static void random_program(maker *m) {
  m->naxes = 1 + dice(m, 4);
  m->ntime = dice(m, 3);
  for (u32 k = 0; k < m->naxes; k++)
    m->axis[k] = axis_add(m->p->sp, sym_fmt(m->c, "s%u", k), 1 + dice(m, 4), false);
  for (u32 k = 0; k < m->ntime; k++)
    m->time[k] = axis_add(m->p->sp, sym_fmt(m->c, "t%u", k), 2 + dice(m, 2), true);
  for (u32 k = 0, n = 1 + dice(m, 2); k < n; k++) {
    u8 order[6];
    for (u32 j = 0; j < m->naxes; j++) order[j] = m->axis[(j + k) % m->naxes];
    mesh e = mesh_add(m->p->sp, sym_fmt(m->c, "m%u", k), order, 1 + dice(m, m->naxes), dice(m, 9), NULL);
    m->group[m->ngroups++] = group_all(m->p->sp, e);
    if (axis_size(m->p->sp, order[0]) > 1)
      m->group[m->ngroups++] = group_fix(m->p->sp, group_all(m->p->sp, e), order[0], 1);
  }
  if (dice(m, 2)) stream_of(m->p, sym_of(m->c, "net"));
  if (dice(m, 2)) stream_of(m->p, sym_of(m->c, "x y"));

  // A function on whatever group it is called on: no axes but those of the group that main calls it on.
  group all[8], callee = m->group[dice(m, m->ngroups)];
  u32 nall = m->ngroups;
  memcpy(all, m->group, sizeof all);
  func f = func_new(m->p, sym_of(m->c, dice(m, 2) ? "f" : "f \"g\""), (loc){0});
  m->b = builder_at(m->p, f);
  m->ngroups = 0;
  u32 naxes = m->naxes;
  m->naxes = 0;
  params(m, 1 + dice(m, 3), true);
  m->ntime = 0;
  body(m, 10);
  finish(m);
  m->ntime = axis_count(m->p->sp) - naxes;
  m->naxes = naxes;
  memcpy(m->group, all, sizeof all);
  m->ngroups = nall;

  m->p->main = func_new(m->p, sym_of(m->c, dice(m, 2) ? "main" : "step"), (loc){0});
  m->b = builder_at(m->p, m->p->main);
  params(m, dice(m, 6), false);
  body(m, 40);
  const func_info *g = func_get(m->p, f);
  value arg[3] = {0};
  for (u32 k = 0; k < g->nparams; k++) { // arguments are made to measure
    const type_info t = *val_type(m->p, g, k + 1);
    random_marks(m, callee);
    attr at[] = {attr_t(A_dtype, t.s.t), attr_v(A_shape, t.s.dim, t.s.nd)};
    type bound = type_tensor(m->p, &t.s, t.lay, callee);
    arg[k] = emit_res(m->p, m->b.f, emit(&m->b, OP_full, attrs_of(m->p, at, 2), NULL, 0, &bound, 1));
  }
  value r = build_call(&m->b, f, arg, g->nparams);
  instr *i = &fi(m)->body.v[fi(m)->body.n - 1];
  for (u32 k = 0; k < i->nopd; k++) fi(m)->opds.v[i->opd + k] |= OPD_DONATED;
  for (u32 k = 0; k < i->nres; k++) add(m, r + k);
  finish(m);
}

static const char *printed(const prog *p, ctx *c) {
  strbuf b = {.a = ctx_arena(c)};
  ir_print(p, &b);
  return sb_str(&b);
}

TEST(random_programs_keep_their_text) {
  u32 instrs = 0;
  for (u32 round = 0; round < ROUNDS; round++) {
    ctx *c = ctx_new(), *d = ctx_new();
    maker m = {.rng = round, .c = c, .p = prog_new(c)};
    random_program(&m);
    const char *text = printed(m.p, c);
    bool ok = CHECK_MSG(ir_verify(m.p), "round %u:\n%s\n%s", round, diag_render(c, ctx_arena(c)), text);
    if (ok) infer_verify(m.p); // partial zeros made to measure are refused: only that it ends
    prog *q = ok ? ir_parse(d, sym_of(d, "q"), text, strlen(text)) : NULL;
    if (ok) ok = CHECK_MSG(q != NULL, "round %u:\n%s\n%s", round, diag_render(d, ctx_arena(d)), text);
    if (ok) CHECK_STR(printed(q, d), text);
    prog *r = prog_clone(m.p, d);
    CHECK_STR(printed(r, d), text);
    for (u32 f = 1; f < m.p->funcs.n; f++) instrs += m.p->funcs.v[f]->body.n;
    prog_free(r);
    prog_free(q);
    prog_free(m.p);
    ctx_free(c);
    ctx_free(d);
    if (!ok) break;
  }
  CHECK(instrs > 20 * ROUNDS);
}
