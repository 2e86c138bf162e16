// clean.c - what a program does not need: instructions nobody uses, and table entries that nothing names. Not an optimizer:
// costs play no part.
//
// Idea: all instructions are pure, so one is needed if a returned value depends on it. Every walk is one pass over a function.
#include "pass/internal.h"

// ---- dead code -------------------------------------------------------------------------------------------
// Drops the instructions that are not alive and numbers values anew.
static u32 sweep(func_info *f, const bool *alive, arena *tmp) {
  const value_info *values = arena_dup(tmp, f->values.v, f->values.n * sizeof *values);
  u32 *opds = NEWN(tmp, u32, f->opds.n + 1);
  if (f->opds.n) memcpy(opds, f->opds.v, f->opds.n * sizeof *opds);
  value *id = NEWN(tmp, value, f->values.n), nv = f->nparams + 1;
  u32 nb = 0, no = 0, was = f->body.n;
  for (u32 k = 0; k <= f->nparams; k++) id[k] = k;
  for (u32 k = 0; k < was; k++) {
    instr in = f->body.v[k];
    if (!alive[k]) continue;
    for (u32 o = 0; o < in.nopd; o++)
      f->opds.v[no + o] = id[opds[in.opd + o] & OPD_VALUE] | (opds[in.opd + o] & ~(u32)OPD_VALUE);
    for (u32 r = 0; r < in.nres; r++) {
      id[in.res + r] = nv + r;
      f->values.v[nv + r] = values[in.res + r];
      f->values.v[nv + r].def = nb + 1;
    }
    in.opd = no, in.res = nv;
    no += in.nopd, nv += in.nres;
    f->body.v[nb++] = in;
  }
  for (u32 k = 0; k < f->rets.n; k++) f->rets.v[k] = id[f->rets.v[k]];
  f->values.n = nv, f->body.n = nb, f->opds.n = no;
  return was - nb;
}

static u32 dce(func_info *f, arena *tmp) {
  bool *used = ZNEWN(tmp, bool, f->values.n), *alive = ZNEWN(tmp, bool, f->body.n);
  u32 dead = 0;
  for (u32 k = 0; k < f->rets.n; k++) used[f->rets.v[k]] = true;
  for (u32 k = f->body.n; k-- > 0;) {
    const instr *in = &f->body.v[k];
    for (u32 r = 0; r < in->nres; r++) alive[k] |= used[in->res + r];
    for (u32 o = 0; o < in->nopd && alive[k]; o++) used[opd_of(f, in, o)] = true;
    dead += !alive[k];
  }
  return dead ? sweep(f, alive, tmp) : 0;
}

static void drop_unreachable(prog *p, arena *tmp) {
  u32 n, *order = ir_call_order(p, tmp, &n), *id = ZNEWN(tmp, u32, p->funcs.n);
  if (n + 1 == p->funcs.n) return;
  for (u32 k = 0; k < n; k++) id[order[k]] = 1;
  n = 1;
  for (u32 k = 1; k < p->funcs.n; k++)
    if (id[k]) id[k] = n, p->funcs.v[n++] = p->funcs.v[k];
  p->funcs.n = n;
  func_renumbered(p);
  p->main.i = id[p->main.i];
  for (u32 k = 1; k < n; k++)
    for (u32 i = 0; i < p->funcs.v[k]->body.n; i++)
      p->funcs.v[k]->body.v[i].callee.i = id[p->funcs.v[k]->body.v[i].callee.i];
}

u32 pass_dce(prog *p) {
  arena *tmp = arena_new();
  u32 n = 0;
  for (u32 k = 1; k < p->funcs.n; k++) n += dce(p->funcs.v[k], tmp);
  drop_unreachable(p, tmp);
  arena_free(tmp);
  IR_VERIFY_PASS(p);
  return n;
}

// ---- tables ----------------------------------------------------------------------------------------------
typedef struct {
  prog *p;
  VEC(type_info) types;
  VEC(attrs) attrsets;
  VEC(data_info) data;
  u32 *type_id, *attr_id, *data_id; // old -> new; 0 = not yet
} tables;

static type keep_type(tables *t, type old) {
  if (!old.i || t->type_id[old.i]) return (type){t->type_id[old.i]};
  const type_info *i = &t->types.v[old.i];
  type made;
  if (i->tuple) {
    type *elem = NEWN(t->p->a, type, i->n);
    for (u32 k = 0; k < i->n; k++) elem[k] = keep_type(t, i->elem[k]);
    made = type_tuple(t->p, elem, i->n);
  } else {
    made = type_tensor(t->p, &i->s, i->lay, i->g);
  }
  t->type_id[old.i] = made.i;
  return made;
}

static u32 keep_data(tables *t, u32 old) {
  if (!old || t->data_id[old]) return t->data_id[old];
  *vec_push(t->p->a, &t->p->data) = t->data.v[old];
  return t->data_id[old] = t->p->data.n - 1;
}

static attrset keep_attrs(tables *t, attrset old) {
  if (!old.i || t->attr_id[old.i]) return (attrset){t->attr_id[old.i]};
  attrs a = t->attrsets.v[old.i];
  attr v[A_COUNT];
  for (u32 k = 0; k < a.n; k++) {
    v[k] = a.v[k];
    if (v[k].kind == AK_DATA) v[k].u.data = keep_data(t, v[k].u.data);
  }
  attrset made = attrs_of(t->p, v, a.n);
  t->attr_id[old.i] = made.i;
  return made;
}

#define TAKE(to, from) ((to).v = (from).v, (to).n = (from).n, (from).v = NULL, (from).n = (from).cap = 0)
void pass_compact(prog *p) {
  prog_renumbered(p);
  arena *tmp = arena_new();
  tables t = {.p = p};
  drop_unreachable(p, tmp);
  TAKE(t.types, p->types);
  TAKE(t.attrsets, p->attrsets);
  TAKE(t.data, p->data);
  p->type_map = p->attr_map = p->regroup_map = (hmap){0};
  *vec_push(p->a, &p->types) = (type_info){0};
  *vec_push(p->a, &p->attrsets) = (attrs){0};
  *vec_push(p->a, &p->data) = (data_info){0};
  t.type_id = ZNEWN(tmp, u32, t.types.n);
  t.attr_id = ZNEWN(tmp, u32, t.attrsets.n);
  t.data_id = ZNEWN(tmp, u32, t.data.n);
  for (u32 k = 1; k < p->funcs.n; k++) {
    func_info *f = p->funcs.v[k];
    for (value v = 1; v < f->values.n; v++) f->values.v[v].ty = keep_type(&t, f->values.v[v].ty);
    for (u32 i = 0; i < f->body.n; i++) f->body.v[i].at = keep_attrs(&t, f->body.v[i].at);
    for (u32 i = 0; i < f->nparams; i++) f->params.v[i].data = keep_data(&t, f->params.v[i].data);
  }
  arena_free(tmp);
  IR_VERIFY_PASS(p);
}
