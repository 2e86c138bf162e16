// offload.c - a function whose parameters and results lie in host memory: what its instructions read of them is copied
// to the device, what they make of them back. What lies there its caller says (plan/offload.c). Not when copies run
// (prefetch.c).
//
// Idea: instructions that read or make such values are *steps*. What a step reads is fetched just before it, what it makes
// is stored just after it. A value that steps next to each other read is fetched once.
#include "pass/internal.h"

typedef struct {
  prog *p;
  const func_info *f; // as it was
  const offload_opts *o;
  builder b;
  value *map;        // old value to new; of one on the host, to that
  bool *host, *put;  // old values on the host; values that become some there
  u32 nsteps, *step; // by instruction its step + 1
  value *here;       // by value on the host: its latest copy on the device ...
  u32 *last;         // ... and the last step that reads it, + 1
  value *sent;       // by value that is put: there
  bool to_host;      // the copy at hand: of these operands, of these values
  u32 nwant, want[COPIES_AT_ONCE];
  value of[COPIES_AT_ONCE];
} moving;

static void copy_wanted(moving *x);

static bool is_end(const moving *x, const instr *i) { // gathers results that lie on the host
  return i->op == OP_pack && x->put[i->res];
}

static void find_put(moving *x) {
  for (u32 r = 0; r < x->f->rets.n; r++) {
    const value v = x->f->rets.v[r];
    const u32 def = x->f->values.v[v].def;
    if (!x->o->ret[r] || x->host[v]) continue;
    x->put[v] = true;
    if (!def || !type_get(x->p, x->f->values.v[v].ty)->tuple) continue;
    const instr *i = &x->f->body.v[def - 1];
    assert(i->op == OP_pack); // as plans return tuples
    for (u32 k = 0; k < i->nopd; k++) x->put[opd_of(x->f, i, k)] = true;
  }
}

static void find_steps(moving *x) {
  const func_info *f = x->f;
  for (u32 k = 0; k < f->nparams; k++) x->host[k + 1] = x->o->param[k];
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    for (u32 r = 0; i->op == OP_unpack && x->host[opd_of(f, i, 0)] && r < i->nres; r++)
      x->host[i->res + r] = true;
  }
  find_put(x);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    bool any = false;
    if (is_end(x, i) || (i->op == OP_unpack && x->host[opd_of(f, i, 0)])) continue;
    for (u32 o = 0; o < i->nopd; o++) any |= x->host[opd_of(f, i, o)];
    for (u32 r = 0; r < i->nres; r++) any |= x->put[i->res + r];
    if (any) x->step[k] = ++x->nsteps;
  }
}

// What is copied in one go.
static void want(moving *x, u32 entry, value old) {
  if (x->nwant == COPIES_AT_ONCE) copy_wanted(x);
  x->want[x->nwant] = entry, x->of[x->nwant++] = old;
}

static void copy_wanted(moving *x) {
  const attr to = attr_s(A_to, sym_of(x->p->c, x->to_host ? "host" : "device"));
  const u32 n = x->nwant;
  type t[COPIES_AT_ONCE];
  if (!n) return;
  for (u32 k = 0; k < n; k++) t[k] = x->f->values.v[x->of[k]].ty;
  x->b.strm = x->to_host ? x->o->out : x->o->in, x->b.origin = 0;
  const u32 at = emit(&x->b, OP_copy, attrs_of(x->p, &to, 1), x->want, n, t, n);
  value made = emit_res(x->p, x->b.f, at);
  for (u32 k = 0; k < n; k++, made++) {
    value_name(x->p, x->b.f, made, x->f->values.v[x->of[k]].name);
    *(x->to_host ? &x->sent[x->of[k]] : &x->here[x->of[k]]) = made;
  }
  x->nwant = 0;
}

static void copies_begin(moving *x, const instr *i, bool to_host) {
  x->b.flags = INSTR_PLAN | (i ? i->flags & (INSTR_BACKWARD | INSTR_UPDATE) : 0);
  x->b.where = i ? i->where : x->f->where, x->b.g = i ? i->g : (group){0}, x->b.coord = i ? i->coord : 0;
  x->to_host = to_host, x->nwant = 0;
}

// What step j reads.
static void fetch(moving *x, u32 j, const instr *i) {
  copies_begin(x, i, false);
  for (u32 k = 0; k < i->nopd; k++) {
    const u32 entry = x->f->opds.v[i->opd + k];
    const value v = entry & OPD_VALUE;
    if (!x->host[v] || x->last[v] == j + 1) continue;
    if (!x->last[v] || x->last[v] + x->o->ahead < j + 1) want(x, x->map[v] | (entry & OPD_DONATED), v);
    x->last[v] = j + 1;
  }
  copy_wanted(x);
}

static void put_one(moving *x, value v) {
  if (x->put[v] && !x->host[v] && !x->sent[v] && !type_get(x->p, x->f->values.v[v].ty)->tuple)
    want(x, x->map[v], v);
}

// What a step makes.
static void store(moving *x, const instr *i) {
  copies_begin(x, i, true);
  for (u32 r = 0; r < i->nres; r++) put_one(x, i->res + r);
  copy_wanted(x);
}

static void store_rest(moving *x, const instr *end) {
  copies_begin(x, end, true);
  for (u32 k = 0; k < end->nopd; k++) { // parameters as they came
    put_one(x, opd_of(x->f, end, k));
    copy_wanted(x);
  }
}

static void copy_instr(moving *x, const instr *i) {
  const func_info *f = x->f;
  arena *a = x->p->a;
  const u32 n = i->nopd;
  u32 *opd = NEWN(a, u32, n + 1);
  type *res = NEWN(a, type, i->nres + 1);
  const bool end = is_end(x, i);
  for (u32 k = 0; k < n; k++) {
    const u32 entry = f->opds.v[i->opd + k];
    const value v = entry & OPD_VALUE, there = end && x->sent[v] ? x->sent[v] : x->map[v];
    const bool fetched = x->host[v] && !end && i->op != OP_unpack;
    opd[k] = (fetched ? x->here[v] : there) | (entry & ~(u32)OPD_VALUE);
  }
  for (u32 r = 0; r < i->nres; r++) res[r] = f->values.v[i->res + r].ty;
  x->b.strm = i->strm, x->b.flags = i->flags, x->b.origin = i->origin, x->b.where = i->where;
  x->b.g = i->g, x->b.coord = i->coord;
  const u32 at = emit(&x->b, (opcode)i->op, i->at, opd, n, res, i->nres);
  instr *made = &func_get(x->p, x->b.f)->body.v[at - 1];
  made->callee = i->callee, made->scope = i->scope;
  for (u32 r = 0; r < i->nres; r++) {
    x->map[i->res + r] = made->res + r;
    value_name(x->p, x->b.f, made->res + r, f->values.v[i->res + r].name);
  }
}

static void move_all(moving *x) {
  for (u32 k = 0; k < x->f->body.n; k++) {
    const instr *i = &x->f->body.v[k];
    if (x->step[k]) fetch(x, x->step[k] - 1, i);
    if (is_end(x, i)) store_rest(x, i);
    copy_instr(x, i);
    if (x->step[k]) store(x, i);
  }
}

// A result by itself.
static value returned(moving *x, u32 r) {
  const value v = x->f->rets.v[r];
  const bool fetched = x->host[v] && !x->o->ret[r];
  copies_begin(x, NULL, !fetched);
  if (x->o->ret[r] && x->put[v]) put_one(x, v);
  if (fetched) want(x, x->map[v], v);
  copy_wanted(x);
  if (fetched) return x->here[v];
  return x->o->ret[r] && x->sent[v] ? x->sent[v] : x->map[v]; // what is saved may be a result as well
}

void pass_offload(prog *p, func fn, const offload_opts *o) {
  const func_info *f = func_get(p, fn);
  arena *a = arena_new();
  const u32 nv = f->values.n, ni = f->body.n + 1;
  moving x = {.p = p, .f = f, .o = o};
  x.map = ZNEWN(a, value, nv), x.here = ZNEWN(a, value, nv), x.sent = ZNEWN(a, value, nv);
  x.host = ZNEWN(a, bool, nv), x.put = ZNEWN(a, bool, nv), x.last = ZNEWN(a, u32, nv);
  x.step = ZNEWN(a, u32, ni);
  find_steps(&x);
  const func made = func_new(p, f->name, f->where);
  x.b = builder_at(p, made);
  for (u32 k = 0; k < f->nparams; k++) x.map[k + 1] = pass_param_like(p, made, f, k);
  move_all(&x);
  value *ret = NEWN(a, value, f->rets.n + 1);
  for (u32 r = 0; r < f->rets.n; r++) ret[r] = returned(&x, r);
  func_return(p, made, ret, f->rets.n);
  pass_replace(p, fn, made);
  arena_free(a);
}
