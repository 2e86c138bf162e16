// schedule.c - the order in which every place runs its tasks: a row of sched/schedules.def.
#include "plan/plan.h"

const char *policy_schedule_name(u32 i) {
  const sched_row *r = sched_row_of(i);
  return r ? r->name : NULL;
}

bool policy_schedule(planner *pl, arena *a, plan *pn, const strategy *s, loc at) {
  prog *p = planner_source(pl);
  const sched_shape form = {
      .places = s->pp.n, .chunks = s->v.n, .micro = s->mb.n, .group = s->group.n, .backward = pn->train};
  const sched *made = sched_make(p->c, a, policy_schedule_name(s->schedule.n), &form, at);
  if (!made) return false;
  pn->nseqs = made->nplaces;
  pn->seqs = arena_dup(a, made->seq, made->nplaces * sizeof *made->seq);
  return true;
}
