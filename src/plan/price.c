// price.c - time and bytes of a plan, by its stages or by its program written out; of its stages alone; of its busiest
// stream. Not kept for the next plan: a search keeps stages and lines (search/evaluate.c).
#include "plan/internal.h"

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

// ---- times of stages ------------------------------------------------------------------------------------
static bool no_times(ctx *c, const char *why, const char *hint) {
  diag(c, E_STAGES, (loc){0}, "no times of stages: %s", why);
  diag_hint(c, "%s", hint);
  return false;
}

static void set_stage_costs(arena *a, const plan_graph *g, const sim_stage_cost *of, sched_stages *out) {
  const u32 n = g->nstages;
  u64 *v[6];
  for (u32 i = 0; i < COUNT_OF(v); i++) v[i] = NEWN(a, u64, n);
  sched_places *at = NEWN(a, sched_places, n);
  sched_edge *edge = arena_dup(a, g->edge, (g->nedges + 1) * sizeof *edge);
  for (u32 i = 0; g->forward && i < g->nedges; i++)
    edge[i].no_gradient |= g->forward[edge[i].from] || g->forward[edge[i].to];
  for (u32 k = 0; k < n; k++) {
    const i64 *ps = of[k].task_ps;
    const bool two = ps[TASK_I] || ps[TASK_W];
    v[TASK_F][k] = (u64)ps[TASK_F];
    v[TASK_I][k] = (u64)(two ? ps[TASK_I] : ps[TASK_B]), v[TASK_W][k] = two ? (u64)ps[TASK_W] : 0;
    v[TASK_B][k] = v[TASK_I][k] + v[TASK_W][k];
    v[4][k] = (u64)of[k].send_ps;
    v[5][k] = (u64)(MAX(of[k].activation_bytes, 0) * 15625 + 8192) / 16384; // millionths of 1 MiB
    at[k] = (sched_places){1, &g->place[k]};
  }
  *out = (sched_stages){
      .nstages = n,
      .nplaces = g->nplaces,
      .at = at,
      .nedges = g->nedges,
      .edge = edge,
      .cost = {.task = {v[0], v[1], v[2], v[3]}, .send = v[4], .memory = v[5]},
  };
}

// What makes the tasks of a stage depend on more than its own place, and what a plan says that has none of that.
static bool refuse_times(ctx *c, const plan *pn) {
  char alike[64];
  snprintf(alike, sizeof alike, "%s=%u in place of replicas", pn->nsegments > 1 ? "pp" : "dp",
           pn->nsegments > 1 ? pn->nsegments : pn->nreplicas);
  const struct {
    bool is;
    const char *why, *hint;
  } row[] = {
      {!pn->train, "the plan has no backward", "add --train"},
      {pn->sum_stream.i, "gradients are summed beside the last backward of a stage (overlap=dp)",
       "overlap=pp"},
      {pn->nseqs > 1 && !pn->send_stream.i,
       "a send occupies the places at both ends (overlap=none), which a schedule for given stages does not "
       "know",
       "overlap=pp"},
      {plan_update_group(pn) > 0, "weights are updated between tasks", "schedule=1f1b"},
      {plan_lies_wide(pn), "some stages lie on several places, and hold up all of them", "schedule=zb-h1"},
      {pn->offload, "copies from host memory run beside the tasks of other microbatches (offload)",
       "offload=none"},
      {pn->nstorage[STORAGE_SERVER] > 0, "servers gather gradients and send weights (sync=ps)",
       "sync=allreduce"},
      {pn->nreplicas > 1 && !plan_is_mirrored(pn), "each replica has stages of its own (replicas)", alike},
  };
  for (u32 i = 0; i < COUNT_OF(row); i++)
    if (row[i].is) return !no_times(c, row[i].why, row[i].hint);
  return false;
}

bool plan_stage_times(planner *pl, const plan *pn, cost_model *k, arena *a, sched_stages *out) {
  ctx *c = planner_source(pl)->c;
  const u32 before = diag_count(c);
  const sim_opts o = {.mode = SIM_FOLDED};
  plan_probed about;
  if (refuse_times(c, pn)) return false;
  assert(plan_has_probe(pn)); // nothing is left that it has none for
  prog *probe = plan_probe(pl, pn, k, a, false, &about);
  const sim_stages *st = probe ? sim_stages_of(c, a, probe, k, &o, &about.pipeline) : NULL;
  if (st) {
    sim_stage_cost *of = NEWN(a, sim_stage_cost, about.graph.nstages);
    sim_stages_costs(st, of);
    set_stage_costs(a, &about.graph, of, out);
  } else if (diag_count(c) == before) {
    no_times(c, "ranks of its places hold unlike pieces of what stages exchange",
             "dp.shares=equal tp.shares=equal tp.stages=equal");
  }
  prog_free(probe);
  return st != NULL;
}

// ---- the busiest stream -----------------------------------------------------------------------------------
enum { SAMPLE = 3, WORTH = 4 * SAMPLE }; // microbatches: with fewer than WORTH the whole is as cheap

// What the streams do in the first so many microbatches.
typedef struct {
  sim_result r;
  const sym *name;
} sample;
static bool sample_of(planner *pl, const plan *pn, cost_model *k, arena *tmp, u32 micro, sample *x) {
  const sim_opts o = {.mode = SIM_FOLDED, .no_bytes = true};
  prog *p = plan_apply_first(pl, pn, k, micro);
  const bool ok = p && sim_run(planner_source(pl)->c, tmp, p, k, &o, &x->r);
  if (ok) x->name = arena_dup(tmp, p->streams.v, p->streams.n * sizeof *p->streams.v);
  prog_free(p);
  return ok;
}

static i64 busy_in(const sample *x, u32 rank, sym name) {
  for (u32 q = 0; q < x->r.nstreams; q++)
    if (x->name[q].i == name.i) return x->r.busy_ps[x->r.class_of_rank[rank] * x->r.nstreams + q];
  return 0;
}

i64 plan_busiest(planner *pl, const plan *pn, cost_model *k, arena *tmp) {
  const u32 micro = pn->time ? pn->axes[pn->time - 1].size : 1;
  const u32 said = diag_count(planner_source(pl)->c);
  if (micro < WORTH || pn->offload || pn->nreplicas > 1 || plan_update_group(pn)) return 0;
  sample few, more;
  i64 most = 0;
  const bool known = sample_of(pl, pn, k, tmp, SAMPLE - 1, &few) && sample_of(pl, pn, k, tmp, SAMPLE, &more);
  for (u32 r = 0; known && r < more.r.nranks; r++)
    for (u32 q = 0; q < more.r.nstreams; q++) {
      const i64 all = busy_in(&more, r, more.name[q]);
      const i64 each = all - busy_in(&few, r, more.name[q]);
      i64 rest; // what it takes in all may be more than fits
      most =
          MAX(most, __builtin_mul_overflow(each, (i64)(micro - SAMPLE), &rest) || rest > INT64_MAX / 2 - all
                        ? INT64_MAX / 2
                        : all + rest);
    }
  diag_truncate(planner_source(pl)->c, said);
  return most;
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
