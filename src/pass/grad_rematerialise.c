// grad_rematerialise.c - chooses which forward values the backward is given: saved, passed or made again
// (rematerialised). Makes the functions fwd, bwd and, with split, wgt.
//
// Idea: a forward value that the body uses is a parameter, is made again, or is saved. Made again, just
// before the first use, is what is marked for it and what costs nothing to speak of: views, and what depends
// on no parameter (masks, positions). Saved is the rest. The inputs of a call that is made again are kept, or
// recomputing one block would recompute all blocks before it; but not what is marked and cut out of a parameter. With split, what the input gradients need is
// bwd and the rest is wgt; what crosses over is carried.
#include "pass/grad.h"

enum { NEVER = UINT32_MAX };
typedef struct {
  u32 index; // into the backward body, or into the forward body
  bool again;
  bool wgt;
} step;
typedef struct {
  job *j;
  u32 *first;  // value of the body -> where it is first used; NEVER
  bool *keep;  // F -> input of a call that is made again
  bool *saved; // F
  u32 *at;     // forward instruction -> where it is made again; NEVER
  step *steps; // the backward body with what is made again
  u32 nsteps;
} remat;

static u32 results_of(const job *j, u32 index) { // F ids of one forward instruction
  return j->fi->body.v[index].nres + (j->callee[index] ? j->callee[index]->pair.nsaved : 0);
}

// Costs nothing to speak of.
static bool is_free(const job *j, const instr *in) {
  if (op_row_of(in->op)->flags & OPF_VIEW) return true;
  return in->op != OP_call && in->nres && !(j->flags[in->res] & (BY_WEIGHTS | BY_INPUTS));
}

// ---- which forward values are made again, where, and which are saved -------------------------------------
static void find_uses(remat *s) {
  const job *j = s->j;
  const func_info *b = j->body;
  for (u32 v = 0; v < b->values.n; v++) s->first[v] = NEVER;
  for (u32 k = 0; k < b->body.n; k++)
    for (u32 o = 0; o < b->body.v[k].nopd; o++) {
      value v = opd_of(b, &b->body.v[k], o);
      s->first[v] = MIN(s->first[v], k);
    }
  for (u32 k = 0; k < j->pair.ndx + j->pair.nacc; k++)
    s->first[j->out[k]] = MIN(s->first[j->out[k]], b->body.n);
}

// Values made of parameters alone by what is marked and by views: to make them again no chain begins.
static bool *near_params(const job *j) {
  bool *near = ZNEWN(j->tmp, bool, j->fi->values.n);
  for (u32 k = 0; k < j->fi->nparams; k++) near[k + 1] = true;
  for (u32 k = 0; k < j->fi->body.n; k++) {
    const instr *in = &j->fi->body.v[k];
    bool all =
        in->op != OP_call && (in->flags & INSTR_RECOMPUTE || op_row_of((opcode)in->op)->flags & OPF_VIEW);
    for (u32 o = 0; o < in->nopd; o++) all = all && near[opd_of(j->fi, in, o)];
    for (u32 r = 0; r < in->nres; r++) near[in->res + r] = all;
  }
  return near;
}

// Users come before what they use, so that every instruction sees all uses of its results.
static void choose(remat *s) {
  const job *j = s->j;
  const bool *near = near_params(j);
  for (u32 k = j->fi->body.n; k-- > 0;) {
    const instr *in = &j->fi->body.v[k];
    value y = in->nres ? j->to[in->res] : 0;
    bool marked = in->flags & INSTR_RECOMPUTE, frees = is_free(j, in), kept = false;
    s->at[k] = NEVER;
    for (u32 r = 0; r < results_of(j, k); r++) {
      if (s->first[y + r] == NEVER) continue;
      if ((marked && (!s->keep[y + r] || near[in->res])) || frees)
        s->at[k] = MIN(s->at[k], s->first[y + r]);
      else
        s->saved[y + r] = true;
      kept |= s->keep[y + r];
    }
    if (s->at[k] == NEVER) continue;
    for (u32 o = instr_nopd(j->fi, in); o-- > 0;) {
      value x = j->to[opd_of(j->fi, in, o)];
      s->first[x] = MIN(s->first[x], s->at[k]);
      s->keep[x] |= in->op == OP_call || (frees && kept);
    }
  }
}

// Which marks have made a difference. Callees that come one after the other are mostly one.
static void list_again(const remat *s) {
  job *j = s->j;
  u32 n = 0, most = 0;
  const grad_done *last = NULL;
  for (u32 k = 0; k < j->fi->body.n; k++) most += 1 + (j->callee[k] ? j->callee[k]->pair.nagain : 0);
  u32 *again = NEWN(j->tmp, u32, most + 1);
  for (u32 k = 0; k < j->fi->body.n; k++) {
    const instr *in = &j->fi->body.v[k];
    const grad_done *c = j->callee[k];
    if (s->at[k] != NEVER && in->flags & INSTR_RECOMPUTE && !is_free(j, in)) again[n++] = in->origin;
    for (u32 i = 0; c && c != last && i < c->pair.nagain; i++) again[n++] = c->pair.again[i];
    if (c) last = c;
  }
  j->pair.again = arena_dup(j->p->a, again, n * sizeof *again), j->pair.nagain = n;
}

// The backward body, with what is made again before its first use and in forward order.
static void put_steps(remat *s) {
  const job *j = s->j;
  u32 nf = j->fi->body.n, nb = j->body->body.n;
  u32 *head = NEWN(j->tmp, u32, nb + 1), *next = NEWN(j->tmp, u32, nf);
  s->steps = NEWN(j->tmp, step, nf + nb);
  for (u32 k = 0; k <= nb; k++) head[k] = NEVER;
  for (u32 k = nf; k-- > 0;)
    if (s->at[k] != NEVER) next[k] = head[s->at[k]], head[s->at[k]] = k;
  for (u32 k = 0; k <= nb; k++) {
    for (u32 i = head[k]; i != NEVER; i = next[i]) s->steps[s->nsteps++] = (step){i, true, false};
    if (k < nb) s->steps[s->nsteps++] = (step){k, false, false};
  }
}

// Operands and results of a step as values of the body.
typedef struct {
  const func_info *f;
  const instr *in;
  u32 nopd, nres;
  value res;
} step_view;
static step_view view(const remat *s, const step *t) {
  const job *j = s->j;
  const func_info *f = t->again ? j->fi : j->body;
  const instr *in = &f->body.v[t->index];
  if (!t->again) return (step_view){f, in, in->nopd, in->nres, in->res};
  return (step_view){f, in, instr_nopd(f, in), results_of(j, t->index), in->nres ? j->to[in->res] : 0};
}
static value view_opd(const remat *s, const step *t, const step_view *v, u32 k) {
  value x = opd_of(v->f, v->in, k);
  return t->again ? s->j->to[x] : x;
}

// With split: wgt is what no input gradient needs.
static void part_steps(remat *s) {
  const job *j = s->j;
  bool *needed = ZNEWN(j->tmp, bool, j->body->values.n);
  for (u32 k = 0; k < j->pair.ndx; k++) needed[j->out[k]] = true;
  for (u32 k = s->nsteps; k-- > 0;) {
    step *t = &s->steps[k];
    step_view v = view(s, t);
    t->wgt = true;
    for (u32 r = 0; r < v.nres; r++)
      if (needed[v.res + r] && !s->saved[v.res + r]) t->wgt = false;
    for (u32 o = 0; o < v.nopd && !t->wgt; o++) needed[view_opd(s, t, &v, o)] = true;
  }
}

// ---- writing ---------------------------------------------------------------------------------------------
typedef struct {
  prog *p;
  func f;
  func_info *to;
  value *id; // value of the body -> value here; 0 = none
} writer;

static writer writer_at(const job *j, func f) {
  return (writer){j->p, f, func_get(j->p, f), ZNEWN(j->tmp, value, j->body->values.n)};
}

static sym name_of(const job *j, value v) { return val(j->body, v)->name; }

static void put_param(writer *w, const job *j, value v, role r) {
  w->id[v] = func_param(w->p, w->f, val(j->body, v)->ty, name_of(j, v), r);
}

// Room for an instruction like `in`; the caller fills in operands.
static instr *put_instr(writer *w, const instr *in, u32 nopd, u32 nres) {
  arena *a = w->p->a;
  instr *out = vec_push(a, &w->to->body);
  *out = *in;
  out->opd = w->to->opds.n, out->nopd = nopd;
  out->res = w->to->values.n, out->nres = nres;
  if (nopd) (void)vec_push_n(a, &w->to->opds, nopd);
  if (nres) (void)vec_push_n(a, &w->to->values, nres);
  return out;
}

static void put_results(writer *w, const job *j, const instr *out, value res) {
  for (u32 r = 0; r < out->nres; r++) {
    bool known = w->id[res + r] != 0; // saved although made again
    w->to->values.v[out->res + r] = (value_info){.ty = val(j->body, res + r)->ty,
                                                 .def = w->to->body.n,
                                                 .name = known ? (sym){0} : name_of(j, res + r)};
    if (!known) w->id[res + r] = out->res + r;
  }
}

static void put_step(writer *w, const remat *s, const step *t) {
  const job *j = s->j;
  step_view v = view(s, t);
  instr *out = put_instr(w, v.in, v.nopd, v.nres);
  if (t->again) out->flags = (v.in->flags | INSTR_RECOMPUTE | INSTR_BACKWARD);
  if (t->again && j->callee[t->index]) out->callee = j->callee[t->index]->pair.fwd;
  for (u32 o = 0; o < v.nopd; o++) {
    u32 marks = t->again ? 0 : v.f->opds.v[v.in->opd + o] & ~(u32)OPD_VALUE;
    w->to->opds.v[out->opd + o] = w->id[view_opd(s, t, &v, o)] | marks;
    assert(w->id[view_opd(s, t, &v, o)]);
  }
  put_results(w, j, out, v.res);
}

static void write_fwd(remat *s) {
  job *j = s->j;
  prog *p = j->p;
  const func_info *fi = j->fi;
  j->pair.fwd = func_new(p, sym_fmt(p->c, "%s.fwd", sym_str(p->c, fi->name)), fi->where);
  writer w = writer_at(j, j->pair.fwd);
  vec_reserve(p->a, &w.to->values, j->nf);
  vec_reserve(p->a, &w.to->body, fi->body.n);
  vec_reserve(p->a, &w.to->opds, fi->opds.n);
  for (u32 k = 0; k < fi->nparams; k++) put_param(&w, j, k + 1, fi->params.v[k].r);
  for (u32 k = 0; k < fi->nparams; k++) w.to->params.v[k].data = fi->params.v[k].data;
  for (u32 k = 0; k < fi->body.n; k++) {
    const instr *in = &fi->body.v[k];
    bool plain = !j->callee[k] || in->flags & INSTR_RECOMPUTE; // what is made again saves nothing
    instr *out = put_instr(&w, in, in->nopd, plain ? in->nres : results_of(j, k));
    out->flags &= (u8)~INSTR_RECOMPUTE;
    if (!plain) out->callee = j->callee[k]->pair.fwd;
    for (u32 o = 0; o < in->nopd; o++) {
      u32 entry = fi->opds.v[in->opd + o];
      value x = j->to[entry & OPD_VALUE];
      u32 marks = entry & ~(u32)OPD_VALUE;
      if (s->saved[x]) marks &= ~(u32)OPD_DONATED;
      w.to->opds.v[out->opd + o] = w.id[x] | marks;
    }
    put_results(&w, j, out, in->nres ? j->to[in->res] : 0);
  }
  for (u32 k = 0; k < fi->rets.n; k++) *vec_push(p->a, &w.to->rets) = w.id[j->to[fi->rets.v[k]]];
  for (value v = fi->nparams + 1; v < j->nf; v++)
    if (s->saved[v]) *vec_push(p->a, &w.to->rets) = w.id[v], j->pair.nsaved++;
}

// Parameters of the forward function that one part reads, as parameters of that part.
static const u32 *put_need(writer *w, const job *j, const bool *used, u32 *n) {
  u32 *need = NEWN(j->p->a, u32, j->fi->nparams);
  for (u32 k = 0; k < j->fi->nparams; k++)
    if (used[k + 1]) need[(*n)++] = k, put_param(w, j, k + 1, j->fi->params.v[k].r);
  return need;
}

static void put_accumulators(writer *w, const job *j) {
  for (u32 k = 0; k < j->fi->nparams; k++)
    if (j->acc[k]) put_param(w, j, j->acc[k], ROLE_STATE);
}

static void find_used(const remat *s, bool wgt, bool *used) {
  for (u32 k = 0; k < s->nsteps; k++) {
    const step *t = &s->steps[k];
    if (t->wgt != wgt) continue;
    step_view v = view(s, t);
    for (u32 o = 0; o < v.nopd; o++) used[view_opd(s, t, &v, o)] = true;
  }
}

static void write_bwd(remat *s, const bool *carry) {
  job *j = s->j;
  grad_pair *q = &j->pair;
  writer w = writer_at(j, q->bwd);
  bool *used = ZNEWN(j->tmp, bool, j->body->values.n);
  find_used(s, false, used);
  q->need = put_need(&w, j, used, &q->nneed);
  for (value v = j->fi->nparams + 1; v < j->nf; v++)
    if (s->saved[v]) put_param(&w, j, v, ROLE_INPUT);
  for (value v = j->dy0; v < j->acc0; v++) put_param(&w, j, v, ROLE_INPUT);
  if (!j->split) put_accumulators(&w, j);
  for (u32 k = 0; k < s->nsteps; k++)
    if (!s->steps[k].wgt) put_step(&w, s, &s->steps[k]);
  for (u32 k = 0; k < q->ndx + (j->split ? 0 : q->nacc); k++)
    *vec_push(j->p->a, &w.to->rets) = w.id[j->out[k]];
  for (value v = 1; j->split && v < j->body->values.n; v++)
    if (carry[v]) *vec_push(j->p->a, &w.to->rets) = w.id[v], q->ncarry++;
}

// Carried is what wgt uses or returns and neither makes nor finds among the parameters.
static bool *find_carry(const remat *s, bool *used) {
  const job *j = s->j;
  bool *carry = ZNEWN(j->tmp, bool, j->body->values.n);
  find_used(s, true, used);
  for (u32 k = 0; k < j->pair.nacc; k++) used[j->out[j->pair.ndx + k]] = true;
  for (value v = j->fi->nparams + 1; v < j->body->values.n; v++)
    carry[v] = used[v] && !(v >= j->acc0 && v < j->made0);
  for (u32 k = 0; k < s->nsteps; k++) {
    step_view v = view(s, &s->steps[k]);
    for (u32 r = 0; r < v.nres && s->steps[k].wgt; r++)
      if (!s->saved[v.res + r]) carry[v.res + r] = false;
  }
  return carry;
}

static void write_wgt(remat *s, const bool *used, const bool *carry) {
  job *j = s->j;
  grad_pair *q = &j->pair;
  ctx *c = j->p->c;
  q->wgt = func_new(j->p, sym_fmt(c, "%s.wgt", sym_str(c, j->fi->name)), j->fi->where);
  writer w = writer_at(j, q->wgt);
  q->need_w = put_need(&w, j, used, &q->nneed_w);
  for (value v = 1; v < j->body->values.n; v++)
    if (carry[v]) put_param(&w, j, v, ROLE_INPUT);
  put_accumulators(&w, j);
  for (u32 k = 0; k < s->nsteps; k++)
    if (s->steps[k].wgt) put_step(&w, s, &s->steps[k]);
  for (u32 k = 0; k < q->nacc; k++) *vec_push(j->p->a, &w.to->rets) = w.id[j->out[q->ndx + k]];
}

void grad_rematerialise(job *j) {
  remat s = {.j = j};
  u32 nv = j->body->values.n;
  s.first = NEWN(j->tmp, u32, nv);
  s.keep = ZNEWN(j->tmp, bool, nv);
  s.saved = ZNEWN(j->tmp, bool, nv);
  s.at = NEWN(j->tmp, u32, j->fi->body.n);
  find_uses(&s);
  choose(&s);
  list_again(&s);
  put_steps(&s);
  for (value v = 1; v < j->fi->values.n; v++) j->body->values.v[j->to[v]].name = val(j->fi, v)->name;
  write_fwd(&s);
  if (!j->split) {
    write_bwd(&s, NULL);
    return;
  }
  bool *used = ZNEWN(j->tmp, bool, nv);
  part_steps(&s);
  bool *carry = find_carry(&s, used);
  write_bwd(&s, carry);
  write_wgt(&s, used, carry);
}
