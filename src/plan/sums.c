// sums.c - gradients summed over data ranks beside the last backward of a stage: a function that does what the stage's last
// task that makes gradients does, and then sums them on a stream of its own. Not which tasks come when (schedule.c). What
// is not summed here the update sums (finish.c).
//
// A gradient that several stages make is summed when theirs have been added, by the update.
#include "plan/main.h"

// The layout in which the update of a weight reads its gradient: as the weight's states lie, which may be in pieces.
static layout read_by_update(const main_build *mb, value w) {
  const func_info *f = func_get(mb->p, mb->b.f);
  const u32 nd = val_type(mb->s, mb->m, w)->s.nd;
  for (u32 j = 0; j < OPTIM_STATES; j++) {
    const type_info *t = mb->state[j][w - 1] ? val_type(mb->p, f, mb->state[j][w - 1]) : NULL;
    if (t && t->s.nd == nd) return t->lay;
  }
  return mb->home[w - 1].lay;
}

static u32 makers_of(const main_build *mb, value w) {
  u32 n = 0;
  for (u32 i = 0; i < mb->nstages; i++) {
    const stage_build *s = &mb->stage[i];
    for (u32 k = 0; s->gp && k < s->gp->nacc; k++) n += s->src->weight[s->gp->acc[k]] == w;
  }
  return n;
}

// By accumulator: as its gradient leaves the last task. Are there any that ranks sum?
static bool find_layouts(const main_build *mb, const stage_build *s, layout *to) {
  bool any = false;
  for (u32 k = 0; k < s->gp->nacc; k++) {
    const value w = s->src->weight[s->gp->acc[k]];
    to[k] = s->acc_lay[k];
    if (mb->home[w - 1].g.i != s->g.i || mb->server[w - 1].axis || makers_of(mb, w) > 1) continue;
    to[k] = read_by_update(mb, w);
    const layout own = mb->time ? layout_without(mb->p->sp, s->acc_lay[k], mb->time) : s->acc_lay[k];
    if (to[k].i == own.i) to[k] = s->acc_lay[k];
    any |= to[k].i != s->acc_lay[k].i;
  }
  return any;
}

static const instr *maker_of(const func_info *f, value v) { return &f->body.v[f->values.v[v].def - 1]; }

// The gradients of a function, as its body is written again.
typedef struct {
  main_build *mb;
  const func_info *f; // as it is
  u32 n, done;        // done: of `order`
  const value *grad;  // of f
  const u32 *order;   // numbers of gradients, as they are made
  const layout *to;
  value *sum; // here, by gradient
  group g;
} summing;

// What of an instruction's results is made first: of a call what its callee makes first.
static u32 made_within(const prog *p, const func_info *f, value v) {
  const u32 def = f->values.v[v].def;
  const instr *i = def ? &f->body.v[def - 1] : NULL;
  const func_info *g = i && i->op == OP_call ? func_get(p, i->callee) : NULL;
  return g ? val(g, g->rets.v[v - i->res])->def : 0;
}

static bool made_before(const prog *p, const func_info *f, value x, value y) {
  const u32 a = val(f, x)->def, b = val(f, y)->def;
  return a != b ? a < b : made_within(p, f, x) < made_within(p, f, y);
}

// By insertion: gradients are some hundreds, and mostly in the opposite order.
static const u32 *in_order(const main_build *mb, const func_info *f, const value *grad, u32 n) {
  u32 *v = NEWN(mb->x->a, u32, n + 1);
  for (u32 k = 0; k < n; k++) {
    u32 at = k;
    for (; at > 0 && made_before(mb->p, f, grad[k], grad[v[at - 1]]); at--) v[at] = v[at - 1];
    v[at] = k;
  }
  return v;
}

// Behind what makes a gradient its sum. Where that is as large the gradient ends with it; a piece of it does not take its
// memory, so the gradient is there until the task ends.
static void put_sums(void *arg, builder *b, u32 k, value *id) {
  summing *x = arg;
  apply *ap = x->mb->x;
  prog *p = x->mb->p;
  for (; x->done < x->n && val(x->f, x->grad[x->order[x->done]])->def <= k + 1; x->done++) {
    const u32 j = x->order[x->done];
    const value v = id[x->grad[j]];
    const builder before = *b;
    x->sum[j] = v;
    if (val_type(p, func_get(p, b->f), v)->lay.i == x->to[j].i || b->failed) continue;
    b->flags = INSTR_UPDATE, b->where = x->f->body.v[k].where,
    b->strm = (u8)stream_of(p, ap->pn->sum_stream).i;
    ap->update = true;
    x->sum[j] = shard_convert(ap, b, v, x->to[j], x->g);
    ap->update = false;
    b->flags = before.flags, b->where = before.where, b->strm = before.strm;
    if (b->failed || x->done + 1 == x->n) continue; // the last one is returned as it is
    const func_info *f = func_get(p, b->f);
    const type_info *had = val_type(p, f, v), *has = val_type(p, f, x->sum[j]);
    if (layout_get(p->sp, had->lay)->nsplit == layout_get(p->sp, has->lay)->nsplit)
      id[x->grad[j]] = x->sum[j];
  }
}

// What `f` does, and the sums of the gradients that its last result packs, each behind what makes the gradient. The gradient
// that is made last is returned as it is, too: when it is there the task has ended.
static func with_sums(main_build *mb, func f, const layout *to, group g) {
  apply *x = mb->x;
  prog *p = mb->p;
  const func_info *from = func_get(p, f);
  const instr *all = maker_of(from, from->rets.v[from->rets.n - 1]);
  const u32 n = all->nopd, nret = from->rets.n;
  value *arg = NEWN(x->a, value, from->nparams + 1), *ret = NEWN(x->a, value, nret + 1),
        *grad = NEWN(x->a, value, n);
  type *ty = NEWN(x->a, type, n);
  for (u32 k = 0; k < n; k++) grad[k] = opd_of(from, all, k);
  summing s = {mb, from, n, 0, grad, in_order(mb, from, grad, n), to, NEWN(x->a, value, n), g};
  const pass_behind behind = {put_sums, &s};
  const func made = func_new(p, from->name, from->where);
  builder b = builder_at(p, made);
  for (u32 k = 0; k < from->nparams; k++)
    arg[k] = func_param(p, made, val(from, k + 1)->ty, val(from, k + 1)->name, from->params.v[k].r);
  pass_splice(&b, f, arg, ret, true, &behind);
  if (b.failed) return (func){0};
  func_info *own = func_get(p, made);
  const instr *held = maker_of(own, ret[nret - 1]); // the pack as it was, which nobody reads
  for (u32 k = 0; k < n; k++) ty[k] = val(own, opd_of(own, held, k))->ty;
  own->values.v[held->res].ty = type_tuple(p, ty, n);
  ret[nret] = opd_of(own, held, s.order[n - 1]);
  for (u32 k = 0; k < n; k++) ty[k] = val(own, s.sum[k])->ty;
  const type t = type_tuple(p, ty, n);
  b.flags = INSTR_BACKWARD, b.where = all->where;
  ret[nret - 1] = emit_res(p, made, emit(&b, OP_pack, (attrset){0}, s.sum, n, &t, 1));
  func_return(p, made, ret, nret + 1);
  return made;
}

bool main_sums(main_build *mb) {
  bool any = false;
  if (!mb->x->pn->sum_stream.i) return true;
  for (u32 i = 0; i < mb->nstages; i++) {
    stage_build *s = &mb->stage[i];
    if (!s->gp || !s->gp->nacc || (mb->active && !mb->active[i])) continue;
    const func f = s->gp->wgt.i ? s->wgt.dst : s->bwd.dst;
    layout *to = NEWN(mb->x->a, layout, s->gp->nacc);
    if (!find_layouts(mb, s, to)) continue;
    for (u32 j = 0; j < i && !s->last.i; j++) {
      const stage_build *o = &mb->stage[j];
      assert(o->gp || !o->last.i); // only stages with sums have one
      const bool same = o->last.i && (o->gp->wgt.i ? o->wgt.dst : o->bwd.dst).i == f.i;
      if (same && s->gp->nacc == o->gp->nacc && !memcmp(o->last_lay, to, s->gp->nacc * sizeof *to))
        s->last = o->last;
    }
    s->last_lay = to;
    if (!s->last.i) s->last = with_sums(mb, f, to, s->g);
    if (!s->last.i) return false;
    any = true;
  }
  if (any) return true;
  const plan *pn = mb->x->pn;
  diag(mb->s->c, E_PLAN, pn->sum_at.i ? pn->sum_at : pn->at,
       "no sum of gradients can run beside a backward: no stage alone makes a gradient that ranks sum then");
  diag_hint(mb->s->c, "overlap=pp; in a plan file, leave out `sum-stream`");
  return false;
}

// ---- what is the same but for sums ------------------------------------------------------------------------
// The last task of a stage may be a function of its own: what the others do, and such sums. What it contributes is what they contribute, at instructions of the same number but for the sums.
bool plan_is_sum_beside(const instr *i) { return i->strm && i->flags & INSTR_UPDATE; }

static bool any_sum(const func_info *f) {
  for (u32 k = 0; k < f->body.n; k++)
    if (plan_is_sum_beside(&f->body.v[k])) return true;
  return false;
}

static bool does_as(const func_info *f, const func_info *g,
                    value *of) { // of: value of g by value of f; room for all
  if (f->nparams != g->nparams) return false;
  for (u32 k = 1; k <= g->nparams; k++) {
    if (val(f, k)->ty.i != val(g, k)->ty.i) return false;
    of[k] = k;
  }
  u32 k = 0;
  for (u32 j = 0; k < f->body.n && j < g->body.n; k++) {
    const instr *x = &f->body.v[k], *y = &g->body.v[j];
    if (plan_is_sum_beside(x)) {
      of[x->res] = of[opd_of(f, x, 0)];
      continue;
    }
    const bool last = ++j == g->body.n; // it packs gradients, some as they were summed
    if (x->origin != y->origin || (last ? x->op != y->op : !instr_alike(f, x, g, y, 0))) return false;
    for (u32 o = 0; o < y->nopd; o++) {
      const u32 a = f->opds.v[x->opd + o], b = g->opds.v[y->opd + o];
      if (of[a & OPD_VALUE] != (b & OPD_VALUE) || (a ^ b) & ~(u32)OPD_VALUE) return false;
    }
    for (u32 r = 0; r < y->nres; r++) of[x->res + r] = y->res + r;
  }
  return true;
}

u32 *plan_alike_but_sums(const prog *p, arena *a) {
  u32 *like = NEWN(a, u32, p->funcs.n);
  for (u32 i = 1; i < p->funcs.n; i++) {
    const func_info *f = func_get(p, (func){i});
    like[i] = i;
    if (i == p->main.i || !any_sum(f)) continue;
    value *of = NEWN(a, value, f->values.n);
    for (u32 j = 1; j < i && like[i] == i; j++)
      if (does_as(f, func_get(p, (func){j}), of)) like[i] = j;
  }
  return like;
}
