// coshard.c - heads and hidden units in parts that run one after the other, under a plan: what the backward computes
// again, and how a tensor axis splits what the parts are cut from. The parts themselves are in the program, which
// pass_coshard has rewritten.
//
// Idea: a part that is computed again when its gradient comes keeps nothing but what it reads, which all parts share,
// so of a stretch of a layer one part's activations are alive at a time. A tensor axis splits every part as it would
// the whole, and so the weight that pieces are cut from as they need it: the cut is then of what a rank has.
#include "plan/plan.h"

u32 policy_coshard_parts(const strategy *s) { return s->coshard.n > 1 ? s->coshard.n : 0; }

bool policy_coshard_fits(planner *pl, const strategy *s, loc at) {
  ctx *c = planner_source(pl)->c;
  const u32 tp = strategy_most(s, CHOICE_tp), parts = policy_coshard_parts(s);
  const coshard_index *v;
  const u32 n = parts && tp > 1 && !s->tp_shares.nparts ? planner_coshard_of(pl, &v) : 0;
  i64 all = 0;
  u32 bad = n, fits = parts;
  for (u32 k = n; k-- > 0;) {
    if (v[k].extent % tp) continue; // the tensor axis finds another index, or says so
    all = gcd_i64(all, v[k].extent / tp);
    if (v[k].extent / tp % parts) bad = k;
  }
  if (bad == n) return true;
  while (all % fits) fits--;
  diag(c, E_DIVIDE, at, "coshard=%u: %lld %s (%s) / tp %u = %lld, which do not split in %u parts", parts,
       (long long)v[bad].extent, v[bad].what, v[bad].of, tp, (long long)(v[bad].extent / tp), parts);
  diag_note(c, v[bad].where, "they are here");
  if (fits > 1)
    diag_hint_number(c, fits, "coshard=%u", fits);
  else
    diag_hint(c, "leave out coshard, or use a smaller tp");
  return false;
}

// ---- what is cut for parts ----------------------------------------------------------------------------------
static bool calls_part(const planner *pl, const instr *in) {
  return in->op == OP_call && in->callee.i >= planner_first_part(pl);
}

// The instruction that cuts operand k of a call of a part out of something whole; 0: it is whole. Numbers from 1.
static u32 cut_of(const func_info *f, const instr *call, u32 k) {
  u32 def = val(f, opd_of(f, call, k))->def;
  if (def && f->body.v[def - 1].op == OP_reshape) def = val(f, opd_of(f, &f->body.v[def - 1], 0))->def;
  return def && f->body.v[def - 1].op == OP_split ? def : 0;
}

void policy_coshard_again(planner *pl, arena *a, plan *pn) {
  const prog *p = planner_source(pl);
  const u32 parts = planner_first_part(pl);
  if (!parts || !pn->train) return;
  u32 total = pn->nrecompute + 1;
  for (u32 f = 1; f < parts; f++) total += p->funcs.v[f]->body.n;
  void *more = arena_alloc(a, sizeof *pn->recompute * total);
  if (pn->nrecompute) memcpy(more, pn->recompute, sizeof *pn->recompute * pn->nrecompute);
  pn->recompute = more;
  for (u32 f = 1; f < parts; f++) {
    const func_info *fi = p->funcs.v[f];
    bool *again = ZNEWN(a, bool, fi->body.n + 1);
    for (u32 i = 0; i < fi->body.n; i++) {
      if (!calls_part(pl, &fi->body.v[i])) continue;
      again[i] = true;
      for (u32 k = 0; k < fi->body.v[i].nopd; k++) {
        const u32 cut = cut_of(fi, &fi->body.v[i], k);
        if (cut) again[cut - 1] = true;
      }
    }
    for (u32 k = 0; k < pn->nrecompute; k++)
      if (pn->recompute[k].fn.i == f) again[pn->recompute[k].instr - 1] = false; // marked already
    for (u32 i = 0; i < fi->body.n; i++)
      if (again[i])
        pn->recompute[pn->nrecompute].fn = (func){f}, pn->recompute[pn->nrecompute++].instr = i + 1;
  }
}

// ---- a tensor axis ------------------------------------------------------------------------------------------
typedef struct {
  u32 class;
  i64 within; // stride within the class
} class_split;

// The class that a split of a dimension is of.
static bool split_class(const classes *k, func f, value v, u32 dim, i64 stride, class_split *out) {
  u32 id[16];
  const u32 n = classes_dim(k, f, v, dim, id, COUNT_OF(id));
  i64 inner = 1;
  for (u32 j = n; j-- > 0;) {
    const i64 e = classes_get(k, id[j])->extent;
    if (stride >= inner && stride < inner * e) {
      *out = (class_split){id[j], stride / inner};
      return true;
    }
    inner *= e;
  }
  return false;
}

static bool find_in(const prog *p, const classes *k, func f, value v, const class_split *s, u32 *dim,
                    i64 *stride) {
  const shape *sh = &val_type(p, func_get(p, f), v)->s;
  for (u32 d = 0; d < sh->nd; d++) {
    u32 id[16];
    const u32 n = classes_dim(k, f, v, d, id, COUNT_OF(id));
    i64 inner = 1;
    for (u32 j = n; j-- > 0; inner *= classes_get(k, id[j])->extent)
      if (id[j] == s->class) {
        *dim = d, *stride = inner * s->within;
        return true;
      }
  }
  return false;
}

// The classes that the axis splits in operands of parts.
static u32 splits_of(planner *pl, const plan *pn, u8 axis, class_split *s) {
  const prog *p = planner_source(pl);
  u32 n = 0;
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    if (t->axis != axis || t->fn.i < planner_first_part(pl) || !t->instr || !t->stride || t->result) continue;
    const func_info *fi = func_get(p, t->fn);
    const value v = opd_of(fi, &fi->body.v[t->instr - 1], t->index);
    if (!split_class(planner_classes(pl), t->fn, v, t->dim, t->stride, &s[n])) continue;
    u32 j = 0;
    while (s[j].class != s[n].class) j++;
    n += j == n;
  }
  return n;
}

// Where a function first looks at what operand k of a call of a part comes from; 0: the part does. Numbers from 1.
static u32 first_look(const func_info *f, const instr *call, u32 k) {
  const u32 cut = cut_of(f, call, k);
  if (!cut) return 0;
  const u32 before = val(f, opd_of(f, &f->body.v[cut - 1], 0))->def;
  const bool shaped = before && f->body.v[before - 1].op == OP_reshape;
  return shaped && !val(f, opd_of(f, &f->body.v[before - 1], 0))->def ? before : cut;
}

// What is cut lies as the parts need it: else every rank would store it whole.
void policy_coshard_tensor(planner *pl, arena *a, plan *pn, u8 axis) {
  const prog *p = planner_source(pl);
  const u32 parts = planner_first_part(pl), before = pn->ntrans;
  if (!parts) return;
  class_split *s = NEWN(a, class_split, before + 1);
  const u32 ns = splits_of(pl, pn, axis, s);
  u32 room = before + 1;
  for (u32 f = 1; f < parts; f++) room += p->funcs.v[f]->body.n;
  plan_trans *more = NEWN(a, plan_trans, room);
  if (before) memcpy(more, pn->trans, sizeof *more * before);
  pn->trans = more;
  for (u32 f = 1; f < parts; f++) {
    const func_info *fi = p->funcs.v[f];
    bool *done = ZNEWN(a, bool, fi->body.n + 1);
    for (u32 i = 0; i < fi->body.n; i++)
      for (u32 o = 0; calls_part(pl, &fi->body.v[i]) && o < fi->body.v[i].nopd; o++) {
        const u32 at = first_look(fi, &fi->body.v[i], o);
        u32 dim;
        i64 stride;
        for (u32 j = 0; at && j < ns && !done[at - 1]; j++) {
          const value v = opd_of(fi, &fi->body.v[at - 1], 0);
          if (!find_in(p, planner_classes(pl), (func){f}, v, &s[j], &dim, &stride)) continue;
          done[at - 1] = true;
          pn->trans[pn->ntrans++] = (plan_trans){
              .fn = {f}, .instr = at, .dim = (u8)dim, .axis = axis, .stride = stride, .weak = true};
        }
      }
  }
}
