// build.c - the builder: the one way to put an instruction into a function. Not the checker of whole programs
// (verify.c).
//
// Idea: `build` asks the operator's law for the result shapes, so that a front end writes operands only and a
// shape error is reported where it is made; `emit` records what its caller has already decided.
#include "ir/ir.h"

builder builder_at(prog *p, func f) { return (builder){.p = p, .f = f}; }

u32 emit(builder *b, opcode op, attrset at, const u32 *opd, u32 n, const type *res, u32 nres) {
  prog *p = b->p;
  func_info *f = func_get(p, b->f);
  instr *i = vec_push(p->a, &f->body);
  *i = (instr){.op = (u16)op,
               .strm = b->strm,
               .flags = b->flags,
               .opd = f->opds.n,
               .nopd = n,
               .res = f->values.n,
               .nres = nres,
               .at = at,
               .g = b->g,
               .coord = b->coord,
               .where = b->where,
               .origin = b->origin,
               .scope = b->scope};
  if (n) memcpy(vec_push_n(p->a, &f->opds, n), opd, n * sizeof *opd);
  if (nres == 0) return f->body.n;
  value_info *v = vec_push_n(p->a, &f->values, nres);
  for (u32 k = 0; k < nres; k++) v[k] = (value_info){.ty = res[k], .def = f->body.n};
  return f->body.n;
}

u32 emit_copy(builder *b, const func_info *f, const instr *i, value *map) {
  prog *p = b->p;
  u32 few[64], *opd = i->nopd <= COUNT_OF(few) ? few : NEWN(p->a, u32, i->nopd);
  type some[16], *res = i->nres <= COUNT_OF(some) ? some : NEWN(p->a, type, i->nres);
  for (u32 k = 0; k < i->nopd; k++) {
    const u32 o = f->opds.v[i->opd + k];
    assert(map[o & OPD_VALUE]);
    opd[k] = map[o & OPD_VALUE] | (o & ~(u32)OPD_VALUE);
  }
  for (u32 k = 0; k < i->nres; k++) res[k] = f->values.v[i->res + k].ty;
  b->strm = i->strm, b->flags = i->flags, b->origin = i->origin, b->where = i->where;
  const u32 first = i->res, nres = i->nres;
  const func callee = i->callee;
  const u32 at = emit(b, (opcode)i->op, i->at, opd, i->nopd, res, nres);
  instr *made = &func_get(p, b->f)->body.v[at - 1];
  made->callee = callee;
  for (u32 k = 0; k < nres; k++) map[first + k] = made->res + k;
  return at;
}

bool instr_alike(const func_info *f, const instr *i, const func_info *g, const instr *j, u8 ignored) {
  if (i->op != j->op || i->callee.i != j->callee.i || i->at.i != j->at.i || i->strm != j->strm ||
      i->g.i != j->g.i || (i->flags ^ j->flags) & (u8)~ignored || i->nopd != j->nopd || i->nres != j->nres)
    return false;
  for (u32 r = 0; r < i->nres; r++)
    if (f->values.v[i->res + r].ty.i != g->values.v[j->res + r].ty.i) return false;
  return true;
}

static value fail(builder *b) {
  b->failed = true;
  return 0;
}

static value build_tuple(builder *b, opcode op, const value *opd, u32 n) {
  prog *p = b->p;
  const func_info *f = func_get(p, b->f);
  arena_mark_t m = arena_mark(ctx_arena(p->c));
  type *elem = NEWN(ctx_arena(p->c), type, n), t;
  for (u32 k = 0; k < n; k++) elem[k] = val(f, opd[k])->ty;
  if (op == OP_pack) {
    t = type_tuple(p, elem, n);
    arena_release(ctx_arena(p->c), m);
    return emit_res(p, b->f, emit(b, op, (attrset){0}, opd, n, &t, 1));
  }
  arena_release(ctx_arena(p->c), m);
  const type_info *i = val_type(p, f, opd[0]);
  if (n != 1 || !i->tuple) {
    diag(p->c, E_SHAPE, b->where, "unpack takes one tuple");
    return fail(b);
  }
  return emit_res(p, b->f, emit(b, op, (attrset){0}, opd, 1, i->elem, i->n));
}

value build_n(builder *b, opcode op, const value *opd, u32 n, const attr *at, u32 nat, u32 nres) {
  assert(op != OP_call && op != OP_opaque); // build_call; emit with given types
  prog *p = b->p;
  const func_info *f = func_get(p, b->f);
  shape in[32], out[OP_RES_MAX];
  if (b->failed) return 0;
  for (u32 k = 0; k < n; k++)
    if (!opd[k]) return fail(b);
  if (op == OP_pack || op == OP_unpack) return build_tuple(b, op, opd, n);

  attrset as = attrs_of(p, at, nat);
  // The law is scratch, and scratch and program share the arena: it is given back before types are interned.
  arena_mark_t m = arena_mark(p->a);
  shape *s = n <= COUNT_OF(in) ? in : NEWN(p->a, shape, n);
  for (u32 k = 0; k < n; k++) {
    const type_info *t = val_type(p, f, opd[k]);
    if (t->tuple) diag(p->c, E_SHAPE, b->where, "%s: operand %u is a tuple", op_row_of(op)->name, k + 1);
    if (t->tuple) return fail(b);
    s[k] = t->s;
  }
  const law *l = op_law(p->c, p->a, op, attrs_get(p, as), n, s, &nres, out, b->where);
  arena_release(p->a, m);
  if (!l) return fail(b);
  type res[OP_RES_MAX];
  for (u32 k = 0; k < nres; k++) res[k] = type_tensor(p, &out[k], (layout){0}, b->g);
  return emit_res(p, b->f, emit(b, op, as, opd, n, res, nres));
}

value build(builder *b, opcode op, const value *opd, u32 n, const attr *at, u32 nat) {
  return build_n(b, op, opd, n, at, nat, op_row_of(op)->res);
}
value build1(builder *b, opcode op, value x) { return build(b, op, &x, 1, NULL, 0); }
value build2(builder *b, opcode op, value x, value y) { return build(b, op, (value[]){x, y}, 2, NULL, 0); }

value build_call(builder *b, func callee, const value *opd, u32 n) {
  prog *p = b->p;
  const func_info *f = func_get(p, b->f), *g = func_get(p, callee);
  if (b->failed) return 0;
  if (n != g->nparams) {
    diag(p->c, E_ARITY, b->where, "@%s: %u arguments given, it takes %u", sym_str(p->c, g->name), n,
         g->nparams);
    return fail(b);
  }
  for (u32 k = 0; k < n; k++) {
    if (!opd[k]) return fail(b);
    type want = type_bind(p, val(g, k + 1)->ty, b->g), have = val(f, opd[k])->ty;
    if (want.i == have.i) continue;
    diag(p->c, E_SHAPE, b->where, "@%s: argument %u is %s, the parameter is %s", sym_str(p->c, g->name),
         k + 1, ir_type_str(p, have), ir_type_str(p, want));
    return fail(b);
  }
  arena_mark_t m = arena_mark(ctx_arena(p->c));
  u32 nres = g->rets.n;
  type *res = NEWN(ctx_arena(p->c), type, nres);
  for (u32 k = 0; k < nres; k++) res[k] = type_bind(p, val(g, g->rets.v[k])->ty, b->g);
  u32 at = emit(b, OP_call, (attrset){0}, opd, n, res, nres);
  func_get(p, b->f)->body.v[at - 1].callee = callee;
  arena_release(ctx_arena(p->c), m);
  return nres ? emit_res(p, b->f, at) : 0;
}
