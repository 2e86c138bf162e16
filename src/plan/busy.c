// busy.c - how long one microbatch keeps a rank busy under a plan of one stage, by instruction of main:
// layers that a probe leaves out take what the one does that stands for them.
#include "plan/internal.h"

bool plan_busy(planner *pl, const plan *pn, cost_model *k, sim_busy *out) {
  arena *a = arena_new();
  fewer_layers few;
  plan_probed about;
  planner *formed = planner_formed(pl, pn);
  if (formed) pl = formed;
  const bool any = plan_fewer_layers(pl, pn, a, &few);
  const func_info *m = func_get(pl->src, pl->src->main);
  prog *probe = plan_probe(pl, pn, k, a, false, &about);
  sim_busy *of = ZNEWN(a, sim_busy, (probe ? probe->norigins : 0) + 1);
  bool ok = probe && sim_busy_of(pl->src->c, probe, k, &about.pipeline, of);
  u32 *times = ZNEWN(a, u32, (probe ? probe->norigins : 0) + 1); // by origin: for how many layers it stands
  const bool fewer = any && ok && about.pipeline.nspans;
  const func_info *f = fewer ? func_get(few.pl->src, few.pl->src->main) : m;
  for (u32 i = 0; ok && i < f->body.n; i++) {
    ok = !times[f->body.v[i].origin]; // a program in text may say that two have one
    times[f->body.v[i].origin] = 1;
  }
  for (u32 s = 0; fewer && s < few.span.n; s++)
    for (u32 j = 0; j < few.span.v[s].len; j++)
      times[f->body.v[few.span.v[s].from + j].origin] = 1 + few.span.v[s].more;
  for (u32 i = 0, q = 0; ok && i < m->body.n; i++) {
    const u32 o = m->body.v[i].origin;
    while (q < pl->runs.n && pl->runs.v[q].from + pl->runs.v[q].times * pl->runs.v[q].len <= i) q++;
    assert(times[o] || (q < pl->runs.n && i >= pl->runs.v[q].len));
    out[i] = times[o] ? of[o] : out[i - pl->runs.v[q].len]; // of the period before
    for (u32 d = 0; d < 2 && times[o]; d++)
      out[i].compute[d] /= times[o], out[i].comm[d] /= times[o], out[i].inner[d] /= times[o];
    if (times[o]) out[i].needed /= times[o], out[i].joined /= times[o];
  }
  prog_free(probe);
  arena_free(a);
  return ok;
}
