// kinds.c - what the best plan gives to each kind of device of a mixed machine, and how far it is from all of them
// working all of the time.
#include "search/internal.h"

// All ranks, skipped ones too, unless it was said how many.
static rank_window within(const search *s) { return s->o->ranks ? s->within : (rank_window){0, s->ranks, 0}; }

bool kinds_told(const search *s) {
  const rank_window in = within(s);
  return !s->o->plain && !machine_one_kind(s->m, in.first, in.n);
}

// The plan was simulated whole.
void kinds_of(search *s, const whole_answer *x, const hybrid_opts *h) {
  const machine *m = s->m;
  planner *pl = s->w[0].pl;
  search_result *r = s->r;
  if (!kinds_told(s)) return;
  double *speed = ZNEWN(s->a, double, m->nkinds);
  arena *tmp = arena_new();
  hybrid_opts own = *h;
  const bool told =
      strategy_settle(s->w[0].c, NULL, 0, h->train, &own.s) && policy_speeds(pl, tmp, &own, speed);
  const plan_given given = plan_given_of(pl, x->plan, MAX(s->o->batch, 0), tmp);
  const rank_window in = within(s);
  const plan_kinds_opts o = {.m = m,
                             .given = &given,
                             .speed = told ? speed : NULL,
                             .first = in.first,
                             .ranks = in.n,
                             .unused = true,
                             .memory_bytes = s->o->memory_bytes};
  r->nkinds = plan_kinds_of(s->a, &o, &x->result, &r->kinds);
  const double all = plan_speed_of(&o, &x->result);
  if (all > 0) r->spread_ps = (i64)((double)policy_batch_extent(pl) / all);
  diag_clear(s->w[0].c);
  arena_free(tmp);
}
