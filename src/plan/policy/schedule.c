// schedule.c - the order in which every place runs its tasks: a row of sched/schedules.def.
#include "plan/plan.h"

const char *policy_schedule_name(u32 i) {
  const sched_row *r = sched_row_of(i);
  return r ? r->name : NULL;
}

bool policy_schedule(planner *pl, arena *a, plan *pn, const strategy *s, bool no_order, loc at) {
  prog *p = planner_source(pl);
  const sched_shape form = {
      .places = s->pp.n, .chunks = s->v.n, .micro = s->mb.n, .group = s->group.n, .backward = pn->train};
  const sched_row *row = sched_row_of(s->schedule.n);
  u64 key = planner_schedule_key(pl, row, &form, at);
  if (!key) return false;
  pn->made.row = row, pn->made.shape = form, pn->made.key = key;
  pn->nseqs = form.places;
  if (no_order) return true;
  const sched *made = sched_make(p->c, a, row->name, &form, at);
  pn->seqs = made ? arena_dup(a, made->seq, made->nplaces * sizeof *made->seq) : NULL;
  return made != NULL;
}
