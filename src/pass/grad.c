// grad.c - reverse mode, function by function: what depends on what, and the backward body. What each
// operator contributes is in grad_rules.c and grad_nn.c; what is saved and what is made again, in
// grad_rematerialise.c.
//
// Idea: two walks over a function say which values matter: forwards, what varies with the marked parameters;
// backwards, where gradients come from. Callees are differentiated on the way, once for every set of marks. A
// third walk, backwards, calls the rules. A gradient that is zero is no value at all.
#include "pass/grad.h"

static void (*const rules[OP_COUNT])(rule *) = {
#define OP(name, min, max, res, law, lin, types, attrs, red, flops, flags, kernel, grad, doc)                \
  [OP_##name] = grad_##grad,
#include "op/ops.def"
#undef OP
};

static bool is_float(const type_info *t) { return !t->tuple && dtype_kind_of(t->s.t) == DK_FLOAT; }

static void (*rule_of(const instr *in))(rule *) {
  if (in->op < OP_COUNT) return rules[in->op];
  const char *grad = op_row_of((opcode)in->op)->grad;
  return !strcmp(grad, "own") ? grad_own : !strcmp(grad, "zero") ? grad_zero : grad_no;
}

void grad_zero(rule *r) { (void)r; }
void grad_no(rule *r) { grad_refuse(r, NULL); }

void grad_refuse(rule *r, const char *what) {
  ctx *c = r->b->p->c;
  diag(c, E_NOGRAD, r->b->where, "%s%s%s has no gradient", op_row_of(r->op)->name, what ? " with " : "",
       what ? what : "");
  if (op_row_of(r->op)->own)
    diag_hint(c, "register it with one: its member `gradient` (docs/operators.md)");
  else
    diag_hint(c, "`heddle ops` lists the operators that have one");
  r->b->failed = true;
}

// ---- functions differentiated so far ---------------------------------------------------------------------
struct grad_memo {
  prog *p;
  VEC(grad_done *) done;
  hmap map; // hash of the key -> index in done
  arena *tmp;
  func_info body; // the one backward body in the making
};

grad_memo *grad_memo_new(prog *p) {
  grad_memo *m = NEW(p->a, grad_memo);
  m->p = p;
  return m;
}

static u64 key_hash(const job *j) {
  return hash_bytes(j->has_dy, j->fi->rets.n, hash_bytes(j->mark, j->fi->nparams, j->f.i * 2 + j->split));
}

static const grad_done *memo_find(const job *j) {
  const grad_memo *m = j->memo;
  for (u32 it = 0, k; hmap_next(&m->map, key_hash(j), &it, &k);) {
    const grad_done *e = k < m->done.n ? m->done.v[k] : NULL;
    if (e && e->f.i == j->f.i && e->split == j->split && !memcmp(e->mark, j->mark, j->fi->nparams) &&
        !memcmp(e->has_dy, j->has_dy, j->fi->rets.n))
      return e;
  }
  return NULL;
}

static const grad_done *memo_add(const job *j) {
  grad_memo *m = j->memo;
  arena *a = m->p->a;
  grad_done *e = NEW(a, grad_done);
  *e = (grad_done){j->f, j->split, arena_dup(a, j->mark, j->fi->nparams),
                   arena_dup(a, j->has_dy, j->fi->rets.n), j->pair};
  *vec_push(a, &m->done) = e;
  hmap_add(a, &m->map, key_hash(j), m->done.n - 1);
  return e;
}

// ---- what depends on what --------------------------------------------------------------------------------
static void vary(job *j) {
  for (u32 k = 0; k < j->fi->nparams; k++) {
    bool weight = grad_accumulates(j->mark[k]) || j->mark[k] == GRAD_PLAIN;
    j->flags[k + 1] = (u8)((weight ? BY_WEIGHTS : BY_INPUTS) | (j->mark[k] ? VARIES : 0));
    assert(!j->mark[k] || is_float(val_type(j->p, j->fi, k + 1)));
  }
  for (u32 k = 0; k < j->fi->body.n; k++) {
    instr *in = &j->fi->body.v[k];
    u32 by = 0, n = instr_nopd(j->fi, in);
    for (u32 o = 0; o < n; o++) by |= j->flags[opd_of(j->fi, in, o)];
    for (u32 r = 0; r < in->nres; r++) {
      const type_info *t = val_type(j->p, j->fi, in->res + r);
      bool varies = rule_of(in) != grad_zero && (t->tuple || is_float(t));
      j->flags[in->res + r] = (u8)(varies ? by : by & ~(u32)VARIES);
    }
    if (!in->origin) in->origin = ++j->p->norigins;
  }
}

static const grad_done *differentiate(grad_memo *m, func f, const u8 *mark, const bool *has_dy, bool split);

// What depends on weights alone, a cast of one say, is a weight to the callee, too.
static bool differentiate_callee(job *j, u32 index) {
  const instr *in = &j->fi->body.v[index];
  u32 n = instr_nopd(j->fi, in);
  u8 *mark = ZNEWN(j->tmp, u8, n);
  bool *has_dy = ZNEWN(j->tmp, bool, in->nres), tuple = false;
  for (u32 k = 0; k < n; k++) {
    value v = opd_of(j->fi, in, k);
    u8 by = j->flags[v];
    if (!(by & VARIES)) continue;
    mark[k] = by & BY_INPUTS ? GRAD_INPUT : v <= j->fi->nparams ? j->mark[v - 1] : GRAD_PLAIN;
    tuple |= val_type(j->p, j->fi, v)->tuple;
    if (grad_accumulates(mark[k]) && j->handed[v] == index + 1) mark[k] = GRAD_PLAIN; // handed over once
    if (grad_accumulates(mark[k])) j->handed[v] = index + 1;
  }
  for (u32 k = 0; k < in->nres; k++) {
    has_dy[k] = j->flags[in->res + k] & FLOWS;
    tuple |= has_dy[k] && val_type(j->p, j->fi, in->res + k)->tuple;
  }
  if (!tuple) return (j->callee[index] = differentiate(j->memo, in->callee, mark, has_dy, j->split)) != NULL;
  diag(j->p->c, E_NOGRAD, in->where, "a gradient would pass @%s in a tuple",
       sym_str(j->p->c, func_get(j->p, in->callee)->name));
  diag_hint(j->p->c, "pass its elements instead");
  return false;
}

static void flow_to(job *j, value v) {
  if (j->flags[v] & VARIES) j->flags[v] |= FLOWS;
}

static bool flow(job *j) {
  for (u32 k = 0; k < j->fi->rets.n; k++)
    if (j->has_dy[k]) flow_to(j, j->fi->rets.v[k]);
  for (u32 k = j->fi->body.n; k-- > 0;) {
    const instr *in = &j->fi->body.v[k];
    bool flows = false;
    for (u32 r = 0; r < in->nres; r++) flows |= (j->flags[in->res + r] & FLOWS) != 0;
    if (!flows) continue;
    for (u32 o = instr_nopd(j->fi, in); o-- > 0;) flow_to(j, opd_of(j->fi, in, o));
    if (in->op == OP_call && !differentiate_callee(j, k)) return false;
  }
  return true;
}

// ---- the body --------------------------------------------------------------------------------------------
struct sums { // gradients so far
  job *j;
  builder b;
  value *grad;  // F -> gradient; 0 = none
  value **elem; // F of a tuple -> gradients of its elements; NULL = none
  value *acc;   // parameter from 0 -> its accumulator; 0 = it has none
};

static value body_value(job *j, type t) {
  *vec_push(j->p->a, &j->body->values) = (value_info){.ty = t};
  return j->body->values.n - 1;
}

dtype grad_acc_type(grad_mark m, dtype param) {
  return m == GRAD_ACC_F32 && dtype_bytes(param) < 4 ? DT_F32 : param;
}

static type acc_type(const job *j, u32 param) {
  const type_info *t = val_type(j->p, j->fi, param + 1);
  shape s = t->s;
  s.t = grad_acc_type(j->mark[param], s.t);
  return type_tensor(j->p, &s, t->lay, t->g);
}

// The values that the body finds: F, gradients of results, accumulators. Fills in the pair's lists.
static void lay_values(job *j, sums *s) {
  const func_info *fi = j->fi;
  grad_pair *out = &j->pair;
  j->to = ZNEWN(j->tmp, value, fi->values.n);
  for (u32 k = 1; k <= fi->nparams; k++) j->to[k] = body_value(j, val(fi, k)->ty);
  for (u32 k = 0; k < fi->body.n; k++) {
    const instr *in = &fi->body.v[k];
    for (u32 r = 0; r < in->nres; r++) j->to[in->res + r] = body_value(j, val(fi, in->res + r)->ty);
    if (!j->callee[k]) continue;
    const func_info *fwd = func_get(j->p, j->callee[k]->pair.fwd);
    for (u32 r = in->nres; r < fwd->rets.n; r++) body_value(j, val(fwd, fwd->rets.v[r])->ty);
  }
  j->nf = j->dy0 = j->body->values.n;
  u32 *list = NEWN(j->p->a, u32, fi->rets.n + fi->nparams);
  out->dy = list;
  for (u32 k = 0; k < fi->rets.n; k++)
    if (j->has_dy[k]) list[out->ndy++] = k, body_value(j, val(fi, fi->rets.v[k])->ty);
  j->acc0 = j->body->values.n;
  out->dx = list += out->ndy;
  for (u32 k = 0; k < fi->nparams; k++)
    if (j->mark[k] == GRAD_INPUT) list[out->ndx++] = k;
  out->acc = list += out->ndx;
  s->acc = ZNEWN(j->tmp, value, fi->nparams);
  j->acc = ZNEWN(j->tmp, value, fi->nparams);
  for (u32 k = 0; k < fi->nparams; k++) {
    if (grad_accumulates(j->mark[k])) j->acc[k] = s->acc[k] = body_value(j, acc_type(j, k));
    if (grad_accumulates(j->mark[k]) || j->mark[k] == GRAD_PLAIN) list[out->nacc++] = k;
  }
  j->made0 = j->body->values.n;
  s->grad = ZNEWN(j->tmp, value, j->nf);
  s->elem = ZNEWN(j->tmp, value *, j->nf);
}

static value emit_add(sums *s, u32 x, value y) { // x: an operand entry
  const type t = val(s->j->body, x & OPD_VALUE)->ty;
  const opcode op = t.i == val(s->j->body, y)->ty.i ? OP_add : OP_accumulate;
  return emit_res(s->j->p, s->b.f, emit(&s->b, op, (attrset){0}, (u32[]){x, y}, 2, &t, 1));
}

static void contribute(sums *s, value v, value g) {
  if (!g || s->b.failed) return;
  assert(val(s->j->body, v)->ty.i == val(s->j->body, g)->ty.i);
  if (v <= s->j->fi->nparams && s->acc[v - 1])
    s->acc[v - 1] = emit_add(s, s->acc[v - 1] | OPD_DONATED, g);
  else
    s->grad[v] = s->grad[v] ? emit_add(s, s->grad[v], g) : g;
}

// A tuple has no gradient of its own, its elements have.
void grad_tuple(rule *r) {
  value **elem = r->s->elem;
  if (r->op == OP_pack) {
    for (u32 k = 0; elem[r->y] && k < r->nopd; k++) r->dx[k] = elem[r->y][k];
    return;
  }
  value *e = elem[r->x[0]];
  if (!e) e = elem[r->x[0]] = ZNEWN(r->s->j->tmp, value, r->nres);
  for (u32 k = 0; k < r->nres; k++)
    if (r->dy[k]) e[k] = e[k] ? emit_add(r->s, e[k], r->dy[k]) : r->dy[k];
}

static value emit_call(builder *b, func callee, const u32 *opd, u32 n) {
  prog *p = b->p;
  const func_info *f = func_get(p, callee);
  type *res = NEWN(p->a, type, f->rets.n);
  for (u32 k = 0; k < f->rets.n; k++) res[k] = val(f, f->rets.v[k])->ty;
  u32 at = emit(b, OP_call, (attrset){0}, opd, n, res, f->rets.n);
  func_get(p, b->f)->body.v[at - 1].callee = callee;
  return f->rets.n ? emit_res(p, b->f, at) : 0;
}

// A result that is saved, too, is named as the result, so that the callee's second copy of it is dead.
static value saved_of(const job *j, const grad_pair *q, const rule *r, u32 k) {
  const value *rets = func_get(j->p, q->fwd)->rets.v;
  for (u32 i = 0; i < r->nres; i++)
    if (rets[i] == rets[r->nres + k]) return r->y + i;
  return r->y + r->nres + k;
}

// Accumulators go down into the callee and come back. With split there are two calls.
void grad_call(rule *r) {
  sums *s = r->s;
  job *j = s->j;
  const grad_done *c = j->callee[r->index];
  if (!c) return; // it depends on nothing that takes a gradient
  const grad_pair *q = &c->pair;
  u32 n = 0, *opd = NEWN(j->tmp, u32, q->nneed + q->nneed_w + q->nsaved + q->ncarry + q->ndy + q->nacc);
  for (u32 k = 0; k < q->nneed; k++) opd[n++] = r->x[q->need[k]];
  for (u32 k = 0; k < q->nsaved; k++) opd[n++] = saved_of(j, q, r, k);
  for (u32 k = 0; k < q->ndy; k++) {
    shape like = shape_of(r, r->y + q->dy[k]);
    opd[n++] = r->dy[q->dy[k]] ? r->dy[q->dy[k]] : rule_full(&s->b, &like, 0);
  }
  value res = 0, acc;
  if (j->split) {
    if (q->ndx + q->ncarry) res = emit_call(&s->b, q->bwd, opd, n);
    n = 0;
    for (u32 k = 0; k < q->nneed_w; k++) opd[n++] = r->x[q->need_w[k]];
    for (u32 k = 0; k < q->ncarry; k++) opd[n++] = res + q->ndx + k;
  }
  for (u32 k = 0; k < q->nacc; k++)
    if (grad_accumulates(c->mark[q->acc[k]])) opd[n++] = s->acc[r->x[q->acc[k]] - 1] | OPD_DONATED;
  if (j->split)
    acc = q->nacc ? emit_call(&s->b, q->wgt, opd, n) : 0;
  else
    res = q->ndx + q->nacc ? emit_call(&s->b, q->bwd, opd, n) : 0, acc = res + q->ndx;
  for (u32 k = 0; k < q->ndx; k++) r->dx[q->dx[k]] = res + k;
  for (u32 k = 0; k < q->nacc; k++)
    if (grad_accumulates(c->mark[q->acc[k]]))
      s->acc[r->x[q->acc[k]] - 1] = acc + k;
    else
      r->dx[q->acc[k]] = acc + k;
}

static bool differentiate_instr(sums *s, u32 index, rule *r, value *x, value *dy, bool *want) {
  job *j = s->j;
  const instr *in = &j->fi->body.v[index];
  value y = in->nres ? j->to[in->res] : 0;
  bool any = false;
  for (u32 k = 0; k < in->nres; k++) any |= (dy[k] = s->grad[y + k]) || s->elem[y + k];
  if (!any) return true;
  r->op = in->op, r->at = in->at, r->index = index;
  r->nopd = instr_nopd(j->fi, in), r->nres = in->nres, r->y = y;
  for (u32 k = 0; k < r->nopd; k++) {
    value v = opd_of(j->fi, in, k);
    x[k] = j->to[v], want[k] = j->flags[v] & FLOWS, r->dx[k] = 0;
  }
  builder *b = &s->b;
  b->g = in->g, b->strm = in->strm, b->coord = in->coord, b->where = in->where, b->origin = in->origin;
  rule_of(in)(r);
  for (u32 k = 0; k < r->nopd; k++)
    if (want[k]) contribute(s, x[k], r->dx[k]);
  return !b->failed;
}

// Parameters that no gradient has come to have none, and no accumulator: a stage may read one only for what the
// loss does not depend on.
static void drop_idle(job *j, const sums *s) {
  grad_pair *out = &j->pair;
  u32 *dx = arena_dup(j->p->a, out->dx, sizeof *dx * out->ndx), ndx = 0;
  u32 *acc = arena_dup(j->p->a, out->acc, sizeof *acc * out->nacc), nacc = 0;
  for (u32 k = 0; k < out->ndx; k++)
    if (s->grad[out->dx[k] + 1]) dx[ndx++] = out->dx[k];
  for (u32 k = 0; k < out->nacc; k++) {
    const u32 param = out->acc[k];
    if (j->acc[param] ? s->acc[param] != j->acc[param] : s->grad[param + 1] != 0)
      acc[nacc++] = param;
    else
      j->acc[param] = 0;
  }
  out->dx = dx, out->ndx = ndx, out->acc = acc, out->nacc = nacc;
}

static bool make_body(job *j, sums *s) {
  const func_info *fi = j->fi;
  u32 most = 1;
  for (u32 k = 0; k < fi->body.n; k++) most = MAX(most, MAX(fi->body.v[k].nopd, fi->body.v[k].nres));
  value *x = NEWN(j->tmp, value, most), *dy = NEWN(j->tmp, value, most);
  bool *want = NEWN(j->tmp, bool, most);
  rule r = {
      .b = &s->b, .f = j->body, .x = x, .dy = dy, .want = want, .dx = NEWN(j->tmp, value, most), .s = s};
  for (u32 k = 0; k < j->pair.ndy; k++) contribute(s, j->to[fi->rets.v[j->pair.dy[k]]], j->dy0 + k);
  for (u32 k = fi->body.n; k-- > 0;)
    if (!differentiate_instr(s, k, &r, x, dy, want)) return false;
  s->b.where = fi->where, s->b.origin = 0;
  drop_idle(j, s);
  j->out = NEWN(j->tmp, value, j->pair.ndx + j->pair.nacc);
  for (u32 k = 0; k < j->pair.ndx + j->pair.nacc; k++) {
    const u32 param = k < j->pair.ndx ? j->pair.dx[k] : j->pair.acc[k - j->pair.ndx];
    j->out[k] = s->acc[param] ? s->acc[param] : s->grad[param + 1];
  }
  return !s->b.failed;
}

static const grad_done *differentiate(grad_memo *m, func f, const u8 *mark, const bool *has_dy, bool split) {
  prog *p = m->p;
  const func_info *fi = func_get(p, f);
  job j = {
      .p = p, .tmp = m->tmp, .memo = m, .f = f, .fi = fi, .mark = mark, .has_dy = has_dy, .split = split};
  const grad_done *done = memo_find(&j);
  if (done) return done;
  j.flags = ZNEWN(j.tmp, u8, fi->values.n);
  j.handed = ZNEWN(j.tmp, u32, fi->values.n);
  j.callee = ZNEWN(j.tmp, const grad_done *, fi->body.n);
  vary(&j);
  if (!flow(&j)) return NULL;
  j.pair.bwd = func_new(p, sym_fmt(p->c, "%s.bwd", sym_str(p->c, fi->name)), fi->where);
  func_info *bwd = func_get(p, j.pair.bwd);
  j.body = &m->body;
  j.body->values.n = j.body->body.n = j.body->opds.n = 0;
  *vec_push(p->a, &j.body->values) = (value_info){0};
  p->funcs.v[j.pair.bwd.i] = j.body;
  sums s = {.j = &j, .b = builder_at(p, j.pair.bwd)};
  s.b.flags = INSTR_BACKWARD;
  lay_values(&j, &s);
  if (!make_body(&j, &s)) return NULL;
  p->funcs.v[j.pair.bwd.i] = bwd;
  grad_rematerialise(&j);
  return memo_add(&j);
}

bool pass_grad_shared(grad_memo *m, func f, const grad_opts *o, grad_pair *out) {
  prog *p = m->p;
  u32 nfuncs = p->funcs.n, ndone = m->done.n;
  m->tmp = arena_new();
  const grad_done *done = differentiate(m, f, o->mark, o->has_dy, o->split);
  arena_free(m->tmp);
  if (!done) {
    p->funcs.n = nfuncs, m->done.n = ndone;
    return false;
  }
  *out = done->pair;
  IR_VERIFY_PASS(p);
  return true;
}

bool pass_grad(prog *p, func f, const grad_opts *o, grad_pair *out) {
  return pass_grad_shared(grad_memo_new(p), f, o, out);
}
