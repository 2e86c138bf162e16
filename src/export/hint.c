// hint.c - what values without names are best called: after what made them, followed through calls and tuples, so
// that what a forward saves is called the same in the backward that reads it.
#include "export/internal.h"

// How far a value is followed: through functions; through all microbatches as well; and steps in all.
enum { DEPTH = 48, LONG = 8192, PATIENCE = 4000 };

static const char *hint(const py *w, func f, value v, int of, u32 depth);

static bool passes(const instr *i) {
  return (op_row_of((opcode)i->op)->flags & (OPF_VIEW | OPF_COMM)) || i->op == OP_cast || i->op == OP_join ||
         i->op == OP_accumulate;
}

// What an operator makes: "d_gelu" of gelu_dx.
static const char *noun(const py *w, opcode op) {
  static const struct {
    u16 op;
    const char *name;
  } nouns[] = {{OP_iota, "index"},        {OP_pick, "picked"},        {OP_gather, "rows"},
               {OP_gather_add, "d_rows"}, {OP_full, "full"},          {OP_einsum, "product"},
               {OP_matmul, "product"},    {OP_cross_entropy, "loss"}, {OP_nll, "loss"}};
  const char *name = op_row_of(op)->name;
  const size_t n = strlen(name);
  for (u32 k = 0; k < COUNT_OF(nouns); k++)
    if (nouns[k].op == op) return nouns[k].name;
  if (n > 3 && name[n - 3] == '_' && name[n - 2] == 'd') {
    const char *of = sym_str(w->c, sym_ofn(w->c, name, n - 3));
    return sym_str(w->c, sym_fmt(w->c, name[n - 1] == 'x' ? "d_%s" : "d_%s_%c", of, name[n - 1]));
  }
  return name;
}

static const char *of_instr(const py *w, func f, const instr *i, u32 k, int of, u32 depth) {
  const func_info *fi = func_get(w->p, f);
  if (i->op == OP_unpack && of < 0) return hint(w, f, opd_of(fi, i, 0), (int)k, depth);
  if (i->op == OP_pack) return of >= 0 ? hint(w, f, opd_of(fi, i, (u32)of), -1, depth) : "saved";
  if (i->op == OP_call) {
    const value ret = func_get(w->p, i->callee)->rets.v[k];
    return hint(w, i->callee, ret, of, depth);
  }
  if (passes(i) && instr_nopd(fi, i))
    return hint(
        w, f,
        opd_of(fi, i, (op_row_of((opcode)i->op)->flags & OPF_MANY_RES) && k < instr_nopd(fi, i) ? k : 0), of,
        depth);
  return noun(w, (opcode)i->op);
}

// Of a value, or of element `of` of a tuple.
static const char *hint(const py *w, func f, value v, int of, u32 depth) {
  const func_info *fi = func_get(w->p, f);
  const value_info *x = val(fi, v);
  if (of < 0 && x->name.i) return sym_str(w->c, x->name);
  if (depth == DEPTH) return "x";
  if (x->def) {
    const instr *i = &fi->body.v[x->def - 1];
    return of_instr(w, f, i, v - i->res, of, depth + 1);
  }
  const u32 *site = w->site[f.i];
  if (!site[0]) return of < 0 ? "x" : "saved";
  const func_info *caller = func_get(w->p, (func){site[0]});
  const char *name = hint(w, (func){site[0]}, opd_of(caller, &caller->body.v[site[1]], v - 1), of, depth + 1);
  // What the caller has of one layer of many is this function's own.
  return name;
}

// ---- gradients -----------------------------------------------------------------------------------------
// The weight whose update a value reaches as its gradient: followed to where it is used, out of functions and into
// them. NULL: it reaches none.
typedef struct frame frame;
struct frame { // the calls that led into a function
  func f;
  u32 index;
  const frame *up;
};
static const char *updated(py *w, func f, value v, int of, const frame *at, u32 depth);

// The name of what an update is of, in whoever has named it.
static const char *named_outside(const py *w, func f, value v, const frame *at) {
  for (u32 depth = 0; depth < DEPTH; depth++) {
    const func_info *fi = func_get(w->p, f);
    const instr *i = val(fi, v)->def ? &fi->body.v[val(fi, v)->def - 1] : NULL;
    if (i && passes(i)) {
      v = opd_of(fi, i, 0);
      continue;
    }
    if (i || !at) break;
    v = opd_of(func_get(w->p, at->f), &func_get(w->p, at->f)->body.v[at->index], v - 1);
    f = at->f, at = at->up;
  }
  return hint(w, f, v, -1, 0);
}

static const char *through(py *w, func f, u32 index, value v, int of, const frame *at, u32 depth) {
  const frame here = {f, index, at};
  const func_info *fi = func_get(w->p, f);
  const instr *i = &fi->body.v[index];
  const u32 n = instr_nopd(fi, i);
  for (u32 k = 0; k < n; k++) {
    if (opd_of(fi, i, k) != v) continue;
    const char *found = NULL;
    if (i->op == OP_call)
      found = updated(w, i->callee, k + 1, of, &here, depth + 1);
    else if (i->op == OP_pack && of < 0)
      found = updated(w, f, i->res, (int)k, at, depth + 1);
    else if (i->op == OP_unpack && of >= 0)
      found = updated(w, f, i->res + (u32)of, -1, at, depth + 1);
    else if (i->flags & INSTR_UPDATE && k == 1 && of < 0 && !coll_find((opcode)i->op))
      found = named_outside(w, f, opd_of(fi, i, 0), at);
    else if (of < 0 && (i->op == OP_add || passes(i)))
      found = updated(w, f, i->res + (k < i->nres ? k : 0), -1, at, depth + 1);
    if (found) return found;
  }
  return NULL;
}

static const char *updated(py *w, func f, value v, int of, const frame *at, u32 depth) {
  const func_info *fi = func_get(w->p, f);
  if (depth == LONG || !w->patience) return NULL;
  w->patience--;
  if (!w->uses[f.i].begin) w->uses[f.i] = func_uses(w->a, fi);
  const uses *u = &w->uses[f.i];
  for (u32 k = u->begin[v]; k < u->begin[v + 1]; k++) {
    const char *found = u->use[k] ? through(w, f, u->use[k] - 1, v, of, at, depth) : NULL;
    if (found) return found;
  }
  const func caller = at ? at->f : (func){w->last[f.i][0]};
  const u32 index = at ? at->index : w->last[f.i][1];
  for (u32 k = 0; k < fi->rets.n && caller.i; k++) {
    if (fi->rets.v[k] != v) continue;
    const value result = func_get(w->p, caller)->body.v[index].res + k;
    const char *found = updated(w, caller, result, of, at ? at->up : NULL, depth + 1);
    if (found) return found;
  }
  return NULL;
}

// "attn.qkv" of "h.3.attn.qkv": inside a function that stands for every layer.
static const char *without_number(const char *name) {
  const char *end = name;
  for (const char *s = name; *s; s++)
    if (*s >= '0' && *s <= '9' && (s == name || s[-1] == '.') && s[strspn(s, "0123456789")] == '.')
      end = s + strspn(s, "0123456789") + 1;
  return end;
}

static const char *tuple_hint(const py *w, func f, value v) {
  const func_info *fi = func_get(w->p, f);
  const value_info *x = val(fi, v);
  if (!x->def)
    return fi->params.v[v - 1].r == ROLE_WEIGHT  ? "weights"
           : fi->params.v[v - 1].r == ROLE_STATE ? "gradients"
                                                 : "saved";
  const instr *i = &fi->body.v[x->def - 1];
  if (i->flags & INSTR_BACKWARD) return "gradients";
  return i->op == OP_pack && f.i == w->p->main.i ? "weights" : "saved";
}

const char *py_hint(py *w, func f, value v) {
  const func_info *fi = func_get(w->p, f);
  const value_info *x = val(fi, v);
  if (x->name.i) return sym_str(w->c, x->name);
  if (type_get(w->p, x->ty)->tuple) return tuple_hint(w, f, v);
  const instr *i = x->def ? &fi->body.v[x->def - 1] : NULL;
  const bool update = fi->body.n && fi->body.v[0].flags & INSTR_UPDATE;
  const bool sums = !i ? f.i != w->p->main.i && (update || fi->params.v[v - 1].r == ROLE_STATE)
                    : i->op == OP_unpack ? !strcmp(tuple_hint(w, f, opd_of(fi, i, 0)), "gradients")
                    : i->op == OP_full
                        ? i->flags & INSTR_BACKWARD
                        : i->op == OP_add && i->flags & INSTR_BACKWARD && opd_donated(fi, i, 0);
  w->patience = PATIENCE;
  const char *weight = sums ? updated(w, f, v, -1, NULL, 0) : NULL;
  const char *name = weight ? weight : hint(w, f, v, -1, 0);
  if (w->ncalls[f.i] > 1) name = without_number(name);
  const sym old = ir_old_name(w->c, sym_of(w->c, name));
  if (old.i) name = sym_str(w->c, old);
  return weight ? sym_str(w->c, sym_fmt(w->c, "d_%s", name)) : name;
}
