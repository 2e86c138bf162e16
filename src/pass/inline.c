// inline.c - bodies of functions put where they are called. The inverse of outline.c; no choice of what is
// worth it.
#include "pass/internal.h"

value pass_param_like(prog *p, func to, const func_info *f, u32 k) {
  value v = func_param(p, to, val(f, k + 1)->ty, val(f, k + 1)->name, f->params.v[k].r);
  func_get(p, to)->params.v[v - 1].data = f->params.v[k].data;
  func_get(p, to)->params.v[v - 1].host = f->params.v[k].host;
  return v;
}

void pass_replace(prog *p, func old, func made) {
  assert(made.i == p->funcs.n - 1);
  func_info *f = func_get(p, made);
  f->name = func_get(p, old)->name;
  p->funcs.v[old.i] = f;
  p->funcs.n--;
}

// What calls around wait for: so does the first instruction of their bodies on every stream.
typedef struct waits {
  struct waits *around;
  u32 n, *opd;
  group g;
  bool done[UINT8_MAX + 1]; // by stream
} waits;
static void splice(builder *b, func f, value *id, waits *w, bool deep, bool names, const pass_behind *behind);

u32 pass_tasks_move(prog *p, u32 t, u32 k, u32 to) {
  for (; t < p->tasks.n && p->tasks.v[t].from <= k; t++) p->tasks.v[t].from = to;
  return t;
}

// Groups and coordinates of the call hold where the callee leaves them open.
static void splice_call(builder *b, const func_info *f, const instr *in, value *id, waits *w, bool deep) {
  const func_info *g = func_get(b->p, in->callee);
  value *inner = NEWN(b->p->a, value, g->values.n);
  for (u32 k = 0; k < g->nparams; k++) inner[k + 1] = id[opd_of(f, in, k)];
  builder c = *b;
  if (in->g.i) c.g = in->g;
  c.coord = point_merge(b->p, b->coord, in->coord);
  c.flags |= in->flags;
  const u32 n = instr_nopd(f, in);
  waits own = {.around = w, .n = in->nopd - n, .opd = NEWN(b->p->a, u32, in->nopd), .g = c.g};
  for (u32 k = n; k < in->nopd; k++) own.opd[k - n] = id[opd_of(f, in, k)] | OPD_AFTER;
  splice(&c, in->callee, inner, own.n ? &own : w, deep, false, NULL);
  for (u32 r = 0; r < in->nres; r++) id[in->res + r] = inner[g->rets.v[r]];
}

static void put_waits(prog *p, func_info *to, instr *out, waits *w) {
  const bool works = !(op_row_of((opcode)out->op)->flags & (OPF_META | OPF_VIEW));
  for (; works && w; w = w->around) {
    for (u32 k = 0; k < w->n && !w->done[out->strm]; k++) *vec_push(p->a, &to->opds) = w->opd[k], out->nopd++;
    w->done[out->strm] |= out->g.i == w->g.i;
  }
}

static void splice_instr(builder *b, const func_info *from, const instr *in, value *id, waits *w,
                         bool names) {
  prog *p = b->p;
  func_info *to = func_get(p, b->f);
  instr *out = vec_push(p->a, &to->body);
  *out = *in;
  out->opd = to->opds.n, out->res = to->values.n;
  out->flags |= b->flags;
  out->coord = point_merge(p, b->coord, in->coord);
  if (!out->g.i) out->g = b->g;
  for (u32 o = 0; o < in->nopd; o++) {
    u32 e = from->opds.v[in->opd + o];
    *vec_push(p->a, &to->opds) = id[e & OPD_VALUE] | (e & ~(u32)OPD_VALUE);
  }
  put_waits(p, to, out, w);
  for (u32 r = 0; r < in->nres; r++) {
    const value_info *v = val(from, in->res + r);
    id[in->res + r] = to->values.n;
    *vec_push(p->a, &to->values) =
        (value_info){type_bind(p, v->ty, b->g), to->body.n, names ? v->name : (sym){0}};
  }
}

static void splice(builder *b, func f, value *id, waits *w, bool deep, bool names,
                   const pass_behind *behind) {
  const func_info *from = func_get(b->p, f);
  for (u32 k = 0; k < from->body.n; k++) {
    const instr *in = &from->body.v[k];
    if (deep && in->op == OP_call)
      splice_call(b, from, in, id, w, true);
    else
      splice_instr(b, from, in, id, w, names);
    if (behind) behind->put(behind->arg, b, k, id);
  }
}

void pass_splice(builder *b, func f, const value *args, value *rets, bool names, const pass_behind *behind) {
  const func_info *fi = func_get(b->p, f);
  value *id = NEWN(b->p->a, value, fi->values.n);
  for (u32 k = 0; k < fi->nparams; k++) id[k + 1] = args[k];
  splice(b, f, id, NULL, false, names, behind);
  for (u32 k = 0; k < fi->rets.n; k++) rets[k] = id[fi->rets.v[k]];
}

void pass_inline_calls(prog *p, const bool *which) {
  const func_info *old = func_get(p, p->main);
  const func made = func_new(p, old->name, old->where);
  builder b = builder_at(p, made);
  value *id = NEWN(p->a, value, old->values.n);
  const bool spans = p->tasks_of == old->body.n;
  for (u32 k = 0; k < old->nparams; k++) id[k + 1] = pass_param_like(p, made, old, k);
  for (u32 k = 0, t = 0; k < old->body.n; k++) {
    t = spans ? pass_tasks_move(p, t, k, func_get(p, made)->body.n) : 0;
    const instr *in = &old->body.v[k];
    if (which[k])
      splice_call(&b, old, in, id, NULL, false);
    else
      splice_instr(&b, old, in, id, NULL, true);
    for (u32 r = 0; which[k] && r < in->nres; r++) // what main returns is known by its name
      if (*sym_str(p->c, val(old, in->res + r)->name))
        value_name(p, made, id[in->res + r], val(old, in->res + r)->name);
  }
  for (u32 k = 0; k < old->rets.n; k++) *vec_push(p->a, &func_get(p, made)->rets) = id[old->rets.v[k]];
  if (spans) p->tasks_of = func_get(p, made)->body.n;
  pass_replace(p, p->main, made);
}

void pass_inline(prog *p) {
  const func_info *old = func_get(p, p->main);
  func made = func_new(p, old->name, old->where);
  builder b = builder_at(p, made);
  value *id = NEWN(p->a, value, old->values.n);
  for (u32 k = 0; k < old->nparams; k++) id[k + 1] = pass_param_like(p, made, old, k);
  splice(&b, p->main, id, NULL, true, true, NULL);
  for (u32 k = 0; k < old->rets.n; k++) *vec_push(p->a, &func_get(p, made)->rets) = id[old->rets.v[k]];
  pass_replace(p, p->main, made);
  IR_VERIFY_PASS(p);
}
