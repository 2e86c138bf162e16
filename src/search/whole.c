// whole.c - from a strategy to its answer by the program written out: what the winner of a search is held against,
// and what `--why` looks at.
#include "search/internal.h"

bool whole_run(planner *pl, cost_model *k, arena *a, const hybrid_opts *h, const sim_opts *so,
               whole_answer *out) {
  ctx *c = planner_source(pl)->c;
  *out = (whole_answer){0};
  out->plan = policy_hybrid(pl, a, h); // what is split, which stage runs where and when, what is stored how
  if (!out->plan) return false;
  out->program = plan_apply(pl, out->plan, k); // stages sharded, tasks and sends written out, updates
  if (!out->program) return false;
  if (!plan_validate(out->program))
    return false; // everything made once, sums complete, nobody waits for ever
  return sim_run(c, a, out->program, k, so, &out->result); // time and bytes of every rank
}

void whole_free(whole_answer *x) {
  prog_free(x->program);
  x->program = NULL;
}

const char *whole_differs(planner *pl, cost_model *k, arena *a, const search_opts *o, const search_point *p,
                          search *told) {
  const sim_opts so = {.mode = SIM_FOLDED, .bytes = o->bytes, .peak_only = true, .steady = search_steady(o)};
  const strategy s = search_strategy(p);
  hybrid_opts h = search_hybrid(o, &s);
  h.k = k;
  ctx *c = planner_source(pl)->c;
  const u32 before = diag_count(c);
  arena *tmp = arena_new();
  whole_answer x;
  const char *why = NULL;
  if (!whole_run(pl, k, tmp, &h, &so, &x))
    why = arena_strdup(a, diag_count(c) > before ? diag_get(c, before).message : "it cannot be made");
  else if (x.result.period_ps != p->time_ps || x.result.makespan_ps != p->alone_ps ||
           x.result.peak_bytes != p->peak_bytes)
    why = arena_printf(a, "it takes %lld ps, %lld alone, and %lld bytes, the search has %lld, %lld and %lld",
                       (long long)x.result.period_ps, (long long)x.result.makespan_ps,
                       (long long)x.result.peak_bytes, (long long)p->time_ps, (long long)p->alone_ps,
                       (long long)p->peak_bytes);
  if (told && !why) kinds_of(told, &x, &h);
  whole_free(&x);
  arena_free(tmp);
  return why;
}
