// groups.c - the source program with batch normalisation over groups of the batch: one planner for every
// number of groups. Not here: which number a plan has (policy/batchnorm.c).
//
// Idea: how many groups there are changes the laws of instructions, and with them classes, gradients and
// cuts: all that a planner keeps. So a planner is for one number, and those for other numbers belong to it.
// Functions and instructions have the same numbers in all of them: a plan is about any.
#include "plan/internal.h"

static planner *with_groups(planner *pl, u32 groups, loc where) {
  prog *p = prog_clone(pl->src, pl->src->c);
  p->funcs.n = pl->nfuncs; // the planner's own follow
  for (u32 f = 1; f < p->funcs.n && pl->recompute; f++)
    for (u32 i = 0; i < p->funcs.v[f]->body.n; i++) p->funcs.v[f]->body.v[i].flags &= (u8)~INSTR_RECOMPUTE;
  planner *made = pass_batchnorm(p, groups, where) ? planner_new(p) : NULL;
  prog_free(p);
  if (made) made->groups = groups;
  return made;
}

batchnorm_stats plan_batchnorm(const prog *src, const plan *pn) {
  batchnorm_stats s;
  if (pass_batchnorm_of(src, &s) && pn->batchnorm_groups) s.groups = pn->batchnorm_groups;
  return s;
}

planner *planner_grouped(planner *pl, u32 groups, loc where) {
  if (!groups || groups == pl->groups) return pl;
  for (u32 i = 0; i < pl->grouped.n; i++)
    if (pl->grouped.v[i]->groups == groups) return pl->grouped.v[i];
  planner *made = with_groups(pl, groups, where);
  if (made) *vec_push(pl->a, &pl->grouped) = made;
  return made;
}
