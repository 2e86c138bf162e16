// life.c - what can be said of the values of a function without knowing where it runs: until when each is alive (live/),
// and what kind of memory it is. Not how much (bytes.c).
//
// Idea: kinds follow from who reads. A gradient is what an optimizer takes as its second operand, and what
// adds up to one; an activation is made by the forward pass and read by the backward pass; the rest is
// temporary, or received.
#include "sim/internal.h"

static bool carries_gradient(opcode op) { // a result that is a gradient is so because its operands are
  return op_row_of(op)->flags & (OPF_VIEW | OPF_META | OPF_COMM) || op == OP_add || op == OP_accumulate ||
         op == OP_scale || op == OP_cast;
}

static u8 pass_of_func(sim *s, func fn) { // flags of the instructions inside
  u8 *known = &s->life_flags[fn.i];
  if (*known) return *known & 0x7f;
  const func_info *f = func_get(s->p, fn);
  u8 all = 0;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    if (i->op == OP_call)
      all |= pass_of_func(s, i->callee);
    else if (!no_work(op_row_of(i->op)))
      all |= i->flags;
  }
  *known = all | 0x80;
  return all;
}

static u8 pass_of(sim *s, const instr *i) {
  return i->op == OP_call ? (u8)(i->flags | pass_of_func(s, i->callee)) : i->flags;
}

// Gradients among the operands of instruction i: of an optimizer, or because its results are gradients.
static void mark_gradients(sim *s, const func_info *f, const instr *i, life *l) {
  u32 n = instr_nopd(f, i);
  if (i->op == OP_call) {
    const life *callee = life_of(s, i->callee);
    for (u32 k = 0; k < n; k++)
      if (callee->flags[k + 1] & LIFE_GRAD) l->flags[opd_of(f, i, k)] |= LIFE_GRAD;
  } else if (i->flags & INSTR_UPDATE && n >= 2 && !carries_gradient(i->op) && i->op != OP_assign) {
    l->flags[opd_of(f, i, 1)] |= LIFE_GRAD;
    return;
  }
  for (u32 r = 0; r < i->nres; r++) {
    if (!(l->flags[i->res + r] & LIFE_GRAD)) continue;
    const bool each = i->op != OP_call && op_row_of(i->op)->flags & OPF_MANY_RES; // a result for each operand
    for (u32 k = each ? r : 0; k < (each ? r + 1 : n); k++) { // of a call: the accumulator that it continues
      value v = opd_of(f, i, k);
      bool same = f->values.v[v].ty.i == f->values.v[i->res + r].ty.i;
      if (i->op == OP_call ? same && opd_donated(f, i, k) : carries_gradient(i->op)) l->flags[v] |= LIFE_GRAD;
    }
  }
}

// An optimizer that takes a master as its weight returns one.
static bool is_state(const func_info *f, value v) {
  return v <= f->nparams && f->params.v[v - 1].r == ROLE_STATE;
}

static void find_kinds(sim *s, func fn, life *l) {
  const func_info *f = func_get(s->p, fn);
  for (u32 k = f->rets.n; k-- > 0;) {
    u32 def = f->values.v[f->rets.v[k]].def;
    u8 pass = def ? pass_of(s, &f->body.v[def - 1]) : 0;
    if (fn.i == s->p->main.i && pass & INSTR_BACKWARD && !(pass & INSTR_UPDATE))
      l->flags[f->rets.v[k]] |= LIFE_GRAD;
  }
  for (u32 k = f->body.n; k-- > 0;) {
    const instr *i = &f->body.v[k];
    const op_row *row = op_row_of(i->op);
    u8 pass = pass_of(s, i);
    mark_gradients(s, f, i, l);
    for (u32 j = 0; j < i->nres; j++) {
      u8 *x = &l->flags[i->res + j];
      if (pass & INSTR_BACKWARD) *x |= LIFE_BACK;
      if (pass & INSTR_UPDATE) *x |= j || (i->nopd && is_state(f, opd_of(f, i, 0))) ? LIFE_STATE : LIFE_PARAM;
      if (row->flags & OPF_COMM) *x |= LIFE_COMM;
    }
    bool view = row->flags & (OPF_VIEW | OPF_META) && i->nres == 1;
    for (u32 j = 0; j < i->nopd && !(f->opds.v[i->opd + j] & OPD_AFTER); j++) {
      value v = opd_of(f, i, j);
      if (pass & INSTR_BACKWARD) l->flags[v] |= LIFE_READ_BACK;
      if (!view) continue;
      l->flags[v] |= l->flags[i->res] & LIFE_READ_BACK;
      if (!l->ret[v]) l->ret[v] = l->ret[i->res];
    }
  }
}

const life *life_of(sim *s, func fn) {
  if (s->lives[fn.i]) return s->lives[fn.i];
  const func_info *f = func_get(s->p, fn);
  u32 nv = f->values.n;
  life *l = NEW(s->a, life);
  l->when = live_of(s->a, f);
  l->ret = ZNEWN(s->a, u32, nv);
  for (u32 k = f->rets.n; k-- > 0;) l->ret[f->rets.v[k]] = k + 1;
  if (!s->o->peak_only) {
    l->flags = ZNEWN(s->a, u8, nv);
    find_kinds(s, fn, l);
  }
  return s->lives[fn.i] = l;
}

mem_kind life_kind(const life *l, value v, bool is_call) {
  u8 x = l->flags[v];
  if (x & LIFE_GRAD) return MEM_GRAD;
  if (x & LIFE_PARAM && !is_call) return MEM_PARAM;
  if (x & LIFE_STATE && !is_call) return MEM_STATE;
  if (!(x & LIFE_BACK) && x & LIFE_READ_BACK) return MEM_ACT;
  return x & LIFE_COMM ? MEM_COMM : MEM_TEMP;
}
