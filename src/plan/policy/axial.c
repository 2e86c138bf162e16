// axial.c - dynamic axial parallelism (FastFold): of activations that are tables, such as the alignment and the pairs of an
// Evoformer, a tensor axis splits the rows or the columns, not the heads, and changes from one to the other where an
// attention or a product needs what is split whole. Weights stay whole.
//
// Idea: every part of a block begins with a normalisation, which needs no row or column whole. So one choice for the
// result of each is enough, and it is strong: what arrives split otherwise is exchanged there, and what follows is
// split as the laws have it. Which dimension: in order, the one with the least work of a rank, then the least that is moved,
// until no other choice is better. What a trial counts are the pieces that really move.
#include "plan/plan.h"

enum { SWEEPS = 4, TABLE_DIMS = 4 }; // batch, rows, columns, channels

typedef struct {
  planner *pl;
  plan *pn;
  u8 axis;
  u32 ways;
} axial;

static const type_info *normalised(const axial *x, func f, u32 index) {
  const prog *p = planner_source(x->pl);
  const func_info *fi = func_get(p, f);
  const instr *in = &fi->body.v[index];
  if (in->op != OP_layernorm && in->op != OP_rmsnorm) return NULL;
  const type_info *t = val_type(p, fi, in->res);
  return t->s.nd >= TABLE_DIMS ? t : NULL;
}

static bool divides(const axial *x, const shape *s, u32 d) {
  return s->dim[d] % x->ways == 0 && s->dim[d] > 1;
}

// The first dimension between batch and channels that divides; 0: none does.
static u32 first_dim(const axial *x, const shape *s) {
  for (u32 d = 1; d + 1 < s->nd; d++)
    if (divides(x, s, d)) return d;
  return 0;
}

static bool no_dim(const axial *x, func f, u32 index, const shape *s) {
  ctx *c = planner_source(x->pl)->c;
  u32 fits = x->ways;
  while (fits > 1 && s->dim[1] % fits && s->dim[2] % fits) fits--;
  diag(c, E_DIVIDE, func_get(planner_source(x->pl), f)->body.v[index].where,
       "axial: neither %lld rows nor %lld columns are divisible by tp=%u", (long long)s->dim[1],
       (long long)s->dim[2], x->ways);
  if (fits > 1)
    diag_hint_number(c, fits, "tp=%u", fits);
  else
    diag_hint(c, "leave out axial");
  return false;
}

static bool better(const plan_trial_result *x, const plan_trial_result *y) {
  return x->flops != y->flops ? x->flops < y->flops : x->moved < y->moved;
}

// Another dimension for one choice, if that is better.
static bool improve(const axial *x, func f, plan_trans *t, const shape *s, plan_trial_result *best) {
  const u8 was = t->dim;
  u8 pick = was;
  for (u32 d = 1; d + 1 < s->nd; d++) {
    plan_trial_result now;
    if (d == was || !divides(x, s, d)) continue;
    t->dim = (u8)d;
    if (plan_trial(x->pl, x->pn, f, x->axis, &now) && better(&now, best)) *best = now, pick = (u8)d;
  }
  t->dim = pick;
  return pick != was;
}

static bool choose(axial *x, func f) {
  const func_info *fi = func_get(planner_source(x->pl), f);
  const u32 first = x->pn->ntrans;
  plan_trial_result best;
  for (u32 i = 0; i < fi->body.n; i++) {
    const type_info *t = normalised(x, f, i);
    if (!t) continue;
    const u32 d = first_dim(x, &t->s);
    if (!d) return no_dim(x, f, i, &t->s);
    x->pn->trans[x->pn->ntrans++] =
        (plan_trans){.fn = f, .instr = i + 1, .result = true, .dim = (u8)d, .axis = x->axis};
  }
  if (first == x->pn->ntrans || !plan_trial(x->pl, x->pn, f, x->axis, &best)) return true;
  bool changed = true;
  for (u32 sweep = 0; sweep < SWEEPS && changed; sweep++) {
    changed = false;
    for (u32 k = first; k < x->pn->ntrans; k++) {
      plan_trans *t = &x->pn->trans[k];
      changed |= improve(x, f, t, &normalised(x, f, t->instr - 1)->s, &best);
    }
  }
  return true;
}

bool policy_axial(planner *pl, arena *a, plan *pn, u8 axis) {
  prog *p = planner_source(pl);
  const u32 before = pn->ntrans, nf = planner_funcs(pl), said = diag_count(p->c);
  u32 nkept;
  policy_trans_room(pl, a, pn);
  key_words key = {0};
  *vec_push(a, &key) = KEY_AXIAL, *vec_push(a, &key) = axis;
  plan_axis_key(a, &key, &pn->axes[axis - 1]);
  const plan_trans *kept = planner_kept(pl, &key, &nkept);
  if (kept) {
    memcpy(pn->trans + before, kept, sizeof *kept * nkept);
    pn->ntrans += nkept;
    return true;
  }
  if (planner_refused(pl, &key)) return false;
  axial x = {pl, pn, axis, plan_parts(&pn->axes[axis - 1])};
  bool ok = true;
  for (u32 f = 1; f < nf && ok; f++)
    if (f != p->main.i) ok = choose(&x, (func){f});
  if (ok && pn->ntrans == before) {
    diag(p->c, E_PLAN, func_get(p, p->main)->where,
         "axial: no function that main calls normalises a table of rows and columns");
    diag_hint(p->c, "leave out axial");
    ok = false;
  }
  if (ok)
    planner_keep(pl, &key, pn->trans + before, pn->ntrans - before);
  else
    planner_keep_refusal(pl, &key, said);
  return ok;
}
