// price.c - time and bytes of a plan, by its stages or by its program written out. Not kept for the next plan: a search
// keeps stages and lines (search/evaluate.c).
#include "plan/plan.h"

bool plan_price_stages(planner *pl, const plan *pn, cost_model *k, arena *tmp, const sim_opts *o,
                       sim_pipe_result *r) {
  ctx *c = planner_source(pl)->c;
  u32 n;
  const sim_order *order;
  plan_probed about;
  prog *probe = plan_probe(pl, pn, k, tmp, false, &about);
  const sim_stages *st = probe ? sim_stages_of(c, tmp, probe, k, o, &about.pipeline) : NULL;
  const bool ordered = st && plan_line(c, tmp, pn, &about.graph, &n, &order);
  const sim_line *line = ordered ? sim_line_new(tmp, st, order, n) : NULL;
  if (line) sim_pipe(st, tmp, line, r);
  prog_free(probe);
  return line != NULL;
}

bool plan_price_whole(planner *pl, const plan *pn, cost_model *k, arena *tmp, const sim_opts *o,
                      sim_pipe_result *r) {
  const machine *m = cost_model_machine(k);
  prog *p = plan_apply(pl, pn, k);
  sim_result s;
  const bool ok = p && sim_run(planner_source(pl)->c, tmp, p, k, o, &s);
  const sim_host h = ok ? sim_host_memory(&s, m) : (sim_host){0};
  const u32 t = ok ? sim_tightest(&s, m) : 0;
  if (ok)
    *r = (sim_pipe_result){.makespan_ps = s.makespan_ps,
                           .period_ps = s.period_ps,
                           .peak_bytes = s.peak_bytes,
                           .host_bytes = h.bytes,
                           .host_over_bytes = MAX(h.bytes - h.usable_bytes, 0),
                           .over_bytes =
                               s.cls[s.class_of_rank[t]].peak_bytes - machine_kind_of(m, t)->usable_bytes,
                           .utilisation = s.utilisation,
                           .comm = s.comm,
                           .bubble = s.bubble};
  prog_free(p);
  return ok;
}
