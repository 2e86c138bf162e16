// validate_host.c - is what lies in host memory read by copies to the device and by what runs on the host alone, and that by
// nothing else? Part of plan_validate.
//
// Idea: a tensor is on the host or on the device by what made it: a parameter of main that is marked, a copy, or what
// packs, unpacks, restricts or passes on such a tensor. A function is walked once for every way in which it is given
// its parameters.
#include "plan/internal.h"

typedef struct {
  u32 nret;
  bool **ret; // by result, by element
} known_call;
typedef struct {
  prog *p;
  arena *a;
  key_table keys;
  VEC(known_call) known;
  u32 errors;
} hosted;

enum { ERRORS_MAX = 20 };

static const known_call *walk(hosted *w, func fn, bool *const *param);

static void call(hosted *w, const func_info *f, const instr *i, bool **host) {
  const u32 n = instr_nopd(f, i);
  bool **arg = NEWN(w->a, bool *, n + 1);
  for (u32 k = 0; k < n; k++) arg[k] = host[opd_of(f, i, k)];
  const known_call *made = walk(w, i->callee, arg);
  for (u32 r = 0; r < i->nres; r++) host[i->res + r] = made->ret[r];
}

// Elements of all operands, one after the other, are those of all results: so it is with tuples, and with a tensor that is
// restricted.
static void pass_on(const hosted *w, const func_info *f, const instr *i, bool **host) {
  u32 r = 0, at = 0;
  for (u32 k = 0; k < instr_nopd(f, i); k++) {
    const value v = opd_of(f, i, k);
    for (u32 e = 0; e < type_leaves(w->p, f->values.v[v].ty); e++) {
      while (r < i->nres && at == type_leaves(w->p, f->values.v[i->res + r].ty)) r++, at = 0;
      if (r < i->nres) host[i->res + r][at++] = host[v][e];
    }
  }
}

static const char *side(bool host) { return host ? "host memory" : "the device's memory"; }

// there: in host memory is where they must be.
static void check_operands(hosted *w, const func_info *f, const instr *i, bool there, bool *const *host) {
  for (u32 k = 0; k < instr_nopd(f, i) && w->errors < ERRORS_MAX; k++) {
    const value v = opd_of(f, i, k);
    if (type_get(w->p, f->values.v[v].ty)->tuple || host[v][0] == there) continue;
    const char *name = sym_str(w->p->c, val(f, v)->name);
    w->errors++;
    diag(w->p->c, E_COVERAGE, i->where, "%s%s in @%s reads operand %u%s%s, which lies in %s",
         op_row_of((opcode)i->op)->name, there ? " on the host" : "", sym_str(w->p->c, f->name), k + 1,
         *name ? ", " : "", name, side(!there));
    diag_hint(w->p->c, "copy it before: `copy ... {to=\"%s\"}`", there ? "host" : "device");
  }
}

static void step(hosted *w, const func_info *f, const instr *i, bool **host) {
  const attr *to = i->op == OP_copy ? attr_get(attrs_get(w->p, i->at), A_to) : NULL;
  const bool runs_there = i->flags & INSTR_HOST && i->op != OP_call;
  const bool there = runs_there || (to && !strcmp(sym_str(w->p->c, to->u.s), "host"));
  for (u32 r = 0; r < i->nres; r++) {
    const u32 n = type_leaves(w->p, f->values.v[i->res + r].ty);
    host[i->res + r] = ZNEWN(w->a, bool, n + 1);
    if (there) host[i->res + r][0] = true;
  }
  if (i->op == OP_call)
    call(w, f, i, host);
  else if (i->op == OP_pack || i->op == OP_unpack || i->op == OP_part)
    pass_on(w, f, i, host);
  else if (!to || there)
    check_operands(w, f, i, runs_there, host);
}

static const known_call *walk(hosted *w, func fn, bool *const *param) {
  const func_info *f = func_get(w->p, fn);
  key_words key = {0};
  *vec_push(w->a, &key) = fn.i;
  for (u32 k = 0; k < f->nparams; k++)
    key_put_bytes(w->a, &key, param[k], type_leaves(w->p, f->values.v[k + 1].ty));
  const u32 hit = key_find(&w->keys, &key);
  if (hit) return &w->known.v[hit - 1];
  bool **host = NEWN(w->a, bool *, f->values.n + 1);
  for (u32 k = 0; k < f->nparams; k++) host[k + 1] = param[k];
  for (u32 k = 0; k < f->body.n; k++) step(w, f, &f->body.v[k], host);
  known_call made = {f->rets.n, NEWN(w->a, bool *, f->rets.n + 1)};
  for (u32 r = 0; r < f->rets.n; r++) made.ret[r] = host[f->rets.v[r]];
  *vec_push(w->a, &w->known) = made;
  key_add(w->a, &w->keys, &key);
  return &w->known.v[w->known.n - 1];
}

static bool has_copies(const prog *p) {
  const func_info *m = func_get(p, p->main);
  for (u32 k = 0; k < m->nparams; k++)
    if (m->params.v[k].host) return true;
  for (u32 j = 1; j < p->funcs.n; j++)
    for (u32 k = 0; k < p->funcs.v[j]->body.n; k++)
      if (p->funcs.v[j]->body.v[k].op == OP_copy || p->funcs.v[j]->body.v[k].flags & INSTR_HOST) return true;
  return false;
}

bool plan_check_host(prog *p) {
  if (!has_copies(p)) return true;
  const func_info *m = func_get(p, p->main);
  hosted w = {.p = p, .a = arena_new()};
  bool **param = NEWN(w.a, bool *, m->nparams + 1);
  for (u32 k = 0; k < m->nparams; k++) {
    param[k] = ZNEWN(w.a, bool, type_leaves(p, m->values.v[k + 1].ty) + 1);
    param[k][0] = m->params.v[k].host;
  }
  walk(&w, p->main, param);
  arena_free(w.a);
  return !w.errors;
}
