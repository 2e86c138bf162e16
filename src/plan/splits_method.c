// splits_method.c - which solver solves the problem of a function, and where chains begin.
#include "plan/splits_ops.h"

const char *const splits_method_names[SPLITS_METHODS] = {"both", "exact", "mcmc"};

// The option + 1 of every operator that a hybrid's splits say; 0 where they say nothing.
static u16 *prefer_of(const splits_prices *x, const splits_sheet *s) {
  u16 *prefer = ZNEWN(x->a, u16, s->p.nops + 1);
  bool any = false;
  for (u32 k = 0; k < s->p.nops; k++) {
    if (!s->instr[k] || !s->way[k]) continue;
    const splits_instr *i = &x->m->fn[s->f.i].v[s->instr[k] - 1];
    for (u32 j = 0; j < x->t.nlike && !prefer[k]; j++) {
      const plan_trans *t = &x->t.like[j];
      if (t->fn.i != s->f.i || t->instr != s->instr[k] || t->axis != x->t.like_axis) continue;
      for (u32 o = 0; o < s->p.op[k].noptions && !prefer[k]; o++)
        if (splits_is_like(x, i, &i->way[s->way[k][o]], t)) prefer[k] = (u16)(o + 1);
    }
    any |= prefer[k] > 0;
  }
  return any ? prefer : NULL;
}

static double cost_of(const splits_prices *x, const splits_choice *c) {
  return (double)c->time_ps + x->t.limits.ps_per_byte * (double)c->bytes;
}

static double least_cost(const splits_prices *x, const splits_solution *s) {
  double least = cost_of(x, &s->v[0]);
  for (u32 k = 1; k < s->n; k++) least = MIN(least, cost_of(x, &s->v[k]));
  return least;
}

bool splits_solve_sheet(const splits_prices *x, i64 most_ps, splits_sheet *s) {
  splits_limits l = x->t.limits;
  l.most_ps = most_ps;
  const bool alone = x->t.method == SPLITS_MCMC, solved = !alone && splits_solve(x->a, &s->p, &l, &s->s);
  if (!alone && (s->s.exact || x->t.method == SPLITS_EXACT)) return solved;
  splits_solution by; // else states were given up, maybe all of those that lead to an end
  l.prefer = prefer_of(x, s), l.known = solved ? &s->s : NULL;
  s->walked = splits_walk(x->a, &s->p, &l, &by);
  if (!s->walked) return solved;
  s->better = !alone && (!solved || least_cost(x, &by) < least_cost(x, &s->s));
  by.points += s->s.points;
  s->s = by;
  return true;
}
