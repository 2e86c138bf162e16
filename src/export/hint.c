// hint.c - what values without names are best called: after what made them, followed through calls and tuples, so
// that what a forward saves is called the same in the backward that reads it.
#include "export/internal.h"

enum { DEPTH = 48 };

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
  } nouns[] = {{OP_iota, "index"}, {OP_pick, "picked"},    {OP_gather, "rows"},   {OP_gather_add, "d_rows"},
               {OP_full, "full"},  {OP_einsum, "product"}, {OP_matmul, "product"}};
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

const char *py_hint(const py *w, func f, value v) {
  const type_info *t = val_type(w->p, func_get(w->p, f), v);
  const char *name = hint(w, f, v, -1, 0);
  const size_t n = strlen(name);
  if (t->tuple && !val(func_get(w->p, f), v)->name.i) return "saved";
  // "h.0.ln1.g", of a caller: the layer's number says nothing here.
  if (!val(func_get(w->p, f), v)->name.i && n > 4 && !strcmp(name + n - 4, ".new"))
    return sym_str(w->c, sym_ofn(w->c, name, n - 4));
  return name;
}
