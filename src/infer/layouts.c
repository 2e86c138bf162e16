// layouts.c - do the layouts of a whole program fit through its compute operators? The rule for one operator
// is in ir/ (ir_layouts), those of communication are invariants (ir_verify).
//
// Idea: a program in which every operand has the layout its operator needs is materialised: each rank can run
// its instructions on what it holds. What ir_verify lets pass and this does not is a plan that still lacks
// communication.
#include "infer/infer.h"

enum { ERRORS_MAX = 20, OPERANDS = 32 };

// The layouts that one compute instruction gives its results, from those of its operands in f (ir_layouts has
// the rule). l: the law of this application. False and E_LAYOUT at `where` if the operands do not agree.
static bool infer_layouts(prog *p, const func_info *f, const instr *i, const law *l, layout *res, loc where) {
  layout few[OPERANDS], *opd = few;
  arena *tmp = l->nopd > OPERANDS ? arena_new() : NULL; // a concat of many
  if (tmp) opd = NEWN(tmp, layout, l->nopd);
  for (u32 k = 0; k < l->nopd; k++) opd[k] = val_type(p, f, opd_of(f, i, k))->lay;
  bool ok = ir_layouts(p, (opcode)i->op, l, opd, res, where);
  arena_free(tmp);
  return ok;
}

static bool by_law(opcode op) {
  switch (op) {
  case OP_call:
  case OP_opaque:
  case OP_pack:
  case OP_unpack:
  case OP_join:
  case OP_part:
  case OP_copy: return false;
  default: return !coll_find(op);
  }
}

// Zeros are a partial sum of zeros.
static bool is_zero(const prog *p, const instr *i) {
  return i->op == OP_full && attr_float(attrs_get(p, i->at), A_value, 0) == 0;
}

static bool check(prog *p, arena *tmp, const func_info *f, const instr *i) {
  const op_row *row = op_row_of((opcode)i->op);
  u32 nopd = instr_nopd(f, i), nres = i->nres, any = 0;
  for (u32 k = 0; k < nopd; k++) any |= val_type(p, f, opd_of(f, i, k))->lay.i;
  for (u32 k = 0; k < nres; k++) any |= val_type(p, f, i->res + k)->lay.i;
  if (!any) return true; // everything is everywhere
  shape *in = NEWN(tmp, shape, nopd), out[OP_RES_MAX];
  layout derived[OP_RES_MAX];
  for (u32 k = 0; k < nopd; k++) in[k] = val_type(p, f, opd_of(f, i, k))->s;
  const law *l = op_law(p->c, tmp, (opcode)i->op, attrs_get(p, i->at), nopd, in, &nres, out, i->where);
  if (!l || !infer_layouts(p, f, i, l, derived, i->where)) return false;
  for (u32 k = 0; k < nres; k++) {
    type have = val(f, i->res + k)->ty;
    layout declared = type_get(p, have)->lay;
    if (ir_layout_allowed(p, l, k, declared, derived[k]) || is_zero(p, i)) continue;
    diag(p->c, E_LAYOUT, i->where, "%s: result %u is declared %s, its operands make it %s", row->name, k + 1,
         ir_type_str(p, have), ir_type_str(p, type_with(p, have, derived[k], type_get(p, have)->g)));
    return false;
  }
  return true;
}

bool infer_verify(prog *p) {
  arena *tmp = arena_new();
  u32 errors = diag_errors(p->c);
  for (u32 f = 1; f < p->funcs.n; f++) {
    const func_info *fi = p->funcs.v[f];
    for (u32 k = 0; k < fi->body.n && diag_errors(p->c) - errors < ERRORS_MAX; k++) {
      arena_mark_t m = arena_mark(tmp);
      if (by_law((opcode)fi->body.v[k].op)) check(p, tmp, fi, &fi->body.v[k]);
      arena_release(tmp, m);
    }
  }
  arena_free(tmp);
  return diag_errors(p->c) == errors;
}
