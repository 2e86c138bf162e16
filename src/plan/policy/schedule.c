// schedule.c - the order in which every place runs its tasks: a row of sched/schedules.def, or a file.
#include "plan/plan.h"

const char *policy_schedule_name(u32 i) {
  const sched_row *r = sched_row_of(i);
  return r ? r->name : NULL;
}

bool policy_schedule_files(ctx *c, const strategy_set *set) {
  const choice_set *x = &set->of[CHOICE_schedule];
  arena *a = arena_new();
  bool ok = true;
  for (u32 k = 0; k < x->n && ok; k++) ok = !x->v[k].path || sched_read(c, a, x->v[k].path, x->at);
  arena_free(a);
  return ok;
}

// What a file may say that plans cannot do, or that this one is not for.
static bool can_plan(ctx *c, const sched *s, const char *name, bool train, loc at) {
  const char *lacks = s->nreplicas > 1 ? "several replicas of the model (r1)"
                      : s->npasses > 1 ? "several passes of the forward (p1)"
                                       : NULL;
  for (u32 k = 0; k < s->nstages && !lacks; k++)
    if (s->at[k].n > 1) lacks = "a stage on several places";
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n && !lacks; i++)
      if (s->seq[p].v[i].version) lacks = "several versions of the weights (v1)";
  if (lacks) {
    diag(c, E_PLAN, at, "%s has %s, which is not planned yet", name, lacks);
    diag_hint(c, "a schedule with one replica, one pass, one version, and every stage on one place");
    return false;
  }
  if (s->backward == train) return true;
  if (train)
    diag(c, E_PLAN, at, "%s runs no backward, but this is training", name);
  else
    diag(c, E_PLAN, at, "%s runs backward, but this is inference", name);
  diag_hint(c, train ? "a schedule with backwards (B, or I and W)"
                     : "add --train, or a schedule of forwards (F) only");
  return false;
}

static const sched *from_file(ctx *c, arena *a, const char *path, const sched_shape *form, loc at) {
  sched_line line;
  const sched *s = sched_read(c, a, path, at);
  bool ok = s && can_plan(c, s, path, form->backward, at) && sched_fits(c, s, path, form, at) &&
            sched_merge(c, a, s, NULL, at, &line);
  return ok ? s : NULL;
}

// A place runs one task after the other, those of a pair too.
static sched_seq unpaired(arena *a, sched_seq seq) {
  sched_task *t = arena_dup(a, seq.v, seq.n * sizeof *t);
  for (u32 i = 0; i < seq.n; i++) t[i].paired = false;
  return (sched_seq){seq.n, t};
}

const sched *policy_schedule(planner *pl, arena *a, plan *pn, const strategy *s, loc at) {
  ctx *c = planner_source(pl)->c;
  const sched_shape form = {
      .places = s->pp.n, .chunks = s->v.n, .micro = s->mb.n, .group = s->group.n, .backward = pn->train};
  const sched *made = s->schedule.path ? from_file(c, a, s->schedule.path, &form, at)
                                       : sched_make(c, a, policy_schedule_name(s->schedule.n), &form, at);
  if (!made) return NULL;
  bool *seen = ZNEWN(a, bool, made->nplaces);
  pn->seqs = NEWN(a, sched_seq, made->nplaces);
  for (u32 k = 0; k < made->nstages; k++) { // plans have places in the order in which stages first use them
    u32 p = made->at[k].v[0];
    if (seen[p]) continue;
    seen[p] = true;
    pn->seqs[pn->nseqs++] = s->schedule.path ? unpaired(a, made->seq[p]) : made->seq[p];
  }
  return made;
}
