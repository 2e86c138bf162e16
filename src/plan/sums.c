// sums.c - gradients summed over data ranks beside the last backward of a stage: a function that does what the stage's last
// task that makes gradients does, and then sums them on a stream of its own. Not which tasks come when (schedule.c). What
// is not summed here the update sums (finish.c).
//
// Idea: sums follow everything else in the function. A stream knows only what comes before on it and what is read, so each
// begins when its gradient is there; and memory, which is counted in the order of issue, is what it is where updates sum.
// A gradient that several stages make is summed when theirs have been added, by the update.
#include "plan/main.h"
#include <stdlib.h>

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

// By accumulator: as its gradient leaves the last task. Are there any that are summed?
static bool find_layouts(const main_build *mb, const stage_build *s, layout *to) {
  bool any = false;
  for (u32 k = 0; k < s->gp->nacc; k++) {
    const value w = s->src->weight[s->gp->acc[k]];
    to[k] = s->acc_lay[k];
    if (mb->home[w - 1].g.i != s->g.i || mb->server[w - 1].axis || makers_of(mb, w) > 1) continue;
    to[k] = read_by_update(mb, w);
    any |= to[k].i != s->acc_lay[k].i;
  }
  return any;
}

// When a function makes a value: after so many instructions of its own, and of what the last of these calls.
typedef struct {
  u32 k, def, within;
} made_at;

static int by_time(const void *x, const void *y) {
  const made_at *a = x, *b = y;
  return a->def != b->def         ? (a->def < b->def ? -1 : 1)
         : a->within != b->within ? (a->within < b->within ? -1 : 1)
                                  : (a->k > b->k) - (a->k < b->k);
}

// Values in the order in which they are made.
static made_at *in_order(const main_build *mb, const func_info *f, const value *v, u32 n) {
  made_at *out = NEWN(mb->x->a, made_at, n);
  for (u32 k = 0; k < n; k++) {
    const u32 def = f->values.v[v[k]].def;
    const instr *i = def ? &f->body.v[def - 1] : NULL;
    const func_info *g = i && i->op == OP_call ? func_get(mb->p, i->callee) : NULL;
    out[k] = (made_at){k, def, g ? val(g, g->rets.v[v[k] - i->res])->def : 0};
  }
  qsort(out, n, sizeof *out, by_time);
  return out;
}

// What `f` does with, at the end, the sums of the gradients that its last result packs. The gradient that is made last
// is returned as it is, too: when it is there the task has ended.
static func with_sums(main_build *mb, func f, const layout *to, group g) {
  apply *x = mb->x;
  prog *p = mb->p;
  const func_info *from = func_get(p, f);
  const func made = func_new(p, from->name, from->where);
  builder b = builder_at(p, made);
  const u32 nret = from->rets.n;
  value *arg = NEWN(x->a, value, from->nparams + 1), *ret = NEWN(x->a, value, nret + 1);
  for (u32 k = 0; k < from->nparams; k++)
    arg[k] = func_param(p, made, val(from, k + 1)->ty, val(from, k + 1)->name, from->params.v[k].r);
  pass_splice(&b, f, arg, ret, true);
  const func_info *own = func_get(p, made);
  const instr *all = &own->body.v[own->values.v[ret[nret - 1]].def - 1];
  const u32 n = all->nopd;
  value *grad = NEWN(x->a, value, n);
  type *ty = NEWN(x->a, type, n);
  for (u32 k = 0; k < n; k++) grad[k] = opd_of(own, all, k);
  const made_at *order = in_order(mb, own, grad, n);
  ret[nret] = grad[order[n - 1].k];
  b.flags = INSTR_UPDATE, b.where = from->where;
  b.strm = (u8)stream_of(p, x->pn->sum_stream).i;
  x->update = true;
  for (u32 j = 0; j < n && !b.failed; j++) {
    const u32 k = order[j].k;
    if (val_type(p, own, grad[k])->lay.i != to[k].i) grad[k] = shard_convert(x, &b, grad[k], to[k], g);
  }
  x->update = false, b.strm = 0;
  if (b.failed) return (func){0};
  for (u32 k = 0; k < n; k++) ty[k] = val(func_get(p, made), grad[k])->ty;
  const type t = type_tuple(p, ty, n);
  ret[nret - 1] = emit_res(p, made, emit(&b, OP_pack, (attrset){0}, grad, n, &t, 1));
  func_return(p, made, ret, nret + 1);
  return made;
}

bool main_sums(main_build *mb) {
  if (!mb->x->pn->sum_stream.i) return true;
  for (u32 i = 0; i < mb->nstages; i++) {
    stage_build *s = &mb->stage[i];
    if (!s->gp || !s->gp->nacc) continue;
    const func f = s->gp->wgt.i ? s->wgt.dst : s->bwd.dst;
    layout *to = NEWN(mb->x->a, layout, s->gp->nacc);
    if (!find_layouts(mb, s, to)) continue;
    for (u32 j = 0; j < i && !s->last.i; j++) {
      const stage_build *o = &mb->stage[j];
      const bool same = o->last.i && (o->gp->wgt.i ? o->wgt.dst : o->bwd.dst).i == f.i;
      if (same && !memcmp(o->last_lay, to, s->gp->nacc * sizeof *to)) s->last = o->last;
    }
    s->last_lay = to;
    if (!s->last.i) s->last = with_sums(mb, f, to, s->g);
    if (!s->last.i) return false;
  }
  return true;
}
