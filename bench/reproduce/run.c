// run.c - what a plan of a model takes on a machine.
#include "run.h"

void setting_open(setting *x, const setting_opts *o) {
  *x = (setting){.c = ctx_new(),
                 .a = arena_new(),
                 .optim = optim_default(o->optim),
                 .infer = o->infer,
                 .batch = o->batch};
  const front_opts f = {
      .batch = o->batch, .seq = o->seq, .vocab = o->classes, .t = o->half ? DT_F16 : DT_F32, .loss = true};
  prog *src = o->text ? ir_parse(x->c, sym_of(x->c, o->model), o->text, strlen(o->text))
                      : front_load(x->c, o->model, &f);
  if (src && o->text && !pass_loss(src)) src = NULL;
  machine *m = o->machine_text ? machine_parse(x->c, x->a, sym_of(x->c, o->machine), o->machine_text,
                                               strlen(o->machine_text))
                               : machine_load(x->c, x->a, o->machine);
  if (m && o->times && !machine_profile_parse(m, x->a, sym_of(x->c, "times"), o->times, strlen(o->times)))
    m = NULL;
  x->m = m;
  x->k = x->m ? cost_model_new(x->c, x->a, x->m, NULL) : NULL;
  if (!src || !x->k) {
    fputs(diag_render(x->c, x->a), stderr);
    exit(1);
  }
  x->pl = planner_new(src);
  prog_free(src); // the planner has a copy
}

void setting_close(setting *x) {
  planner_free(x->pl);
  arena_free(x->a);
  ctx_free(x->c);
}

static void shares_of(const machine *m, const sim_result *r, outcome *out) {
  double ranks[RUN_KINDS] = {0};
  for (u32 k = 0; k < r->nranks; k++) {
    const u32 kind = m->dev[k].kind, at = r->class_of_rank[k] * r->nstreams;
    assert(kind < RUN_KINDS);
    const double busy = (double)r->busy_ps[at], comm = (double)r->comm_ps[at], span = (double)r->makespan_ps;
    ranks[kind]++;
    out->computes[kind] += (busy - comm) / span, out->communicates[kind] += comm / span;
  }
  for (u32 k = 0; k < RUN_KINDS; k++)
    if (ranks[k] > 0) out->computes[k] /= ranks[k], out->communicates[k] /= ranks[k];
}

outcome run_plan(setting *x, plan *pn) {
  outcome out = {0};
  arena *a = arena_new();
  prog *p = pn ? plan_apply(x->pl, pn, x->k) : NULL;
  sim_result r;
  if (p && sim_run(x->c, a, p, x->k, &(sim_opts){.mode = SIM_FOLDED, .split = true}, &r)) {
    out = (outcome){.ok = true, .s = (double)r.makespan_ps * 1e-12, .peak_bytes = (double)r.peak_bytes};
    out.host_bytes = (double)sim_host_memory(&r, x->m).bytes;
    shares_of(x->m, &r, &out);
    for (u32 k = 0; k < r.nsplit; k++)
      if (r.split[k].kind == SPLIT_COMM && !strcmp(r.split[k].over, "tp"))
        out.bridge += r.split[k].ps / (double)r.makespan_ps;
    out.fits = sim_fits(p, x->m, &r, NULL, NULL);
  }
  fflush(stdout); // what is said of a plan stands where it was tried
  if (!out.ok) fputs(diag_render(x->c, a), stderr);
  diag_clear(x->c);
  prog_free(p);
  arena_free(a);
  return out;
}

// Place p of replica d is number p D + d of the mesh, and to be rank d P + p.
static void put_node_first(arena *a, plan *pn, const strategy *s) {
  const u32 d = s->dp.n, p = s->pp.n, t = s->tp.n;
  u32 *ranks = NEWN(a, u32, d * p * t);
  for (u32 k = 0; k < d * p * t; k++) ranks[k] = (k / t % d * p + k / (t * d)) * t + k % t;
  pn->meshes[0].ranks = ranks, pn->meshes[0].nranks = d * p * t;
}

outcome run_strategy(setting *x, placing where, const char *line) {
  strategy_set said;
  hybrid_opts h = {.said = &said, .train = !x->infer, .optim = x->optim, .k = x->k};
  const bool ok = strategy_parse(x->c, x->a, line, &said) && strategy_one(x->c, &said, &h.s) &&
                  strategy_settle(x->c, &said, x->batch, h.train, &h.s);
  plan *pn = ok ? policy_hybrid(x->pl, x->a, &h) : NULL;
  if (pn && where == NODE_FIRST) put_node_first(x->a, pn, &h.s);
  outcome out = run_plan(x, pn);
  if (pn) snprintf(out.name, sizeof out.name, "%s", sym_str(x->c, pn->name));
  return out;
}

outcome run_once(const setting_opts *o, placing where, const char *line) {
  setting x;
  setting_open(&x, o);
  const outcome out = run_strategy(&x, where, line);
  setting_close(&x);
  return out;
}

i64 largest_batch(setting_opts o, i64 parts, placing where, const char *line) {
  i64 best = 0;
  for (i64 n = 1; n <= 4096; n *= 2) {
    o.batch = n * parts;
    if (!run_once(&o, where, line).fits) break;
    best = n;
  }
  return best;
}
