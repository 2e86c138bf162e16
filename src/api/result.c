// result.c - time and memory of programs behind heddle.h.
#include "api/internal.h"
#include "machine/machine.h"
#include "profile/profile.h"

static void result_fini(object *o) {
  heddle_result *r = (heddle_result *)o;
  object_drop(r->p);
  object_drop(r->m);
}

// What throughput counts: the extent of the first dimension of the first input.
i64 program_batch(const prog *p) {
  const func_info *m = func_get(p, p->main);
  for (u32 i = 0; i < m->nparams; i++) {
    const type_info *t = val_type(p, m, i + 1);
    if (m->params.v[i].r == ROLE_INPUT && !t->tuple && t->s.nd) return t->s.dim[0];
  }
  return 0;
}

static batchnorm_stats program_batchnorm(const heddle_program *p) {
  batchnorm_stats s = p->batchnorm;
  if (!p->plan) pass_batchnorm_of(p->p, &s);
  return s;
}

// Does the program end with an update, so that another step can follow it?
static bool has_update(const prog *p) {
  for (u32 k = 1; k < p->funcs.n; k++)
    for (u32 i = 0; i < p->funcs.v[k]->body.n; i++)
      if (p->funcs.v[k]->body.v[i].flags & INSTR_UPDATE) return true;
  return false;
}

// A program without a mesh runs on one device.
static heddle_program *on_ranks(heddle_program *p) {
  if (mesh_count(p->p->sp)) return object_hold(p);
  if (!program_has_work(p->p)) return NULL;
  planner *pl = program_planner(p);
  return program_wrap(p->o.s, plan_apply(pl, plan_single(p->o.a, planner_source(pl), false, NULL), NULL),
                      p->name);
}

// A timeline of so many events, some 150 bytes each, is more than viewers open; of so many, more than anybody
// has room for.
enum { EVENTS_VIEWED = 3000000, EVENTS_MOST = 100000000 };

// How a timeline is made: of all ranks, or where that is too much of one of those that are alike.
static bool timeline_mode(heddle_result *r, cost_model *k, sim_opts *so) {
  ctx *c = r->o.s->c;
  arena *a = arena_new();
  sim_opts count = {.mode = SIM_FOLDED, .bytes = so->bytes, .no_bytes = true};
  u32 before = diag_count(c);
  bool ok = sim_run(c, a, r->p->p, k, &count, &r->r);
  double all = (double)r->r.instructions, alike = all * r->r.nclasses / MAX(r->r.nranks, 1);
  so->mode = all > EVENTS_VIEWED ? SIM_FLAT_FOLDED : SIM_FLAT;
  arena_free(a);
  if (!ok) return false;
  diag_truncate(c, before); // what it told is told again
  if (all <= EVENTS_VIEWED) return true;
  loc where = func_get(r->p->p, r->p->p->main)->where;
  if (alike > EVENTS_MOST) {
    diag(c, E_LIMIT, where,
         "the timeline has %.3g events, %.3g of them of ranks that differ; at most %.3g are written", all,
         alike, (double)EVENTS_MOST);
    diag_hint(c, "take fewer layers or microbatches: gpt3-xl:layers=4, mb=8");
    return false;
  }
  if (r->r.nclasses == r->r.nranks) {
    diag(c, W_TIMELINE, where,
         "the timeline has %.3g events, and no two ranks are alike; viewers open about %.3g", all,
         (double)EVENTS_VIEWED);
    return true;
  }
  diag(c, W_TIMELINE, where,
       "the timeline shows %u of %u ranks, one for all that are alike; together they have %.3g events",
       r->r.nclasses, r->r.nranks, all);
  return true;
}

// A database of which little is used: of other models, or its keys were changed.
static void tell_unmeasured(const heddle_result *r) {
  ctx *c = r->o.s->c;
  arena *a = arena_new();
  u32 n, missing;
  profile_events x;
  if (profile_missing(&x, c, a, r->p->p, r->m->m, &n, &missing) && 2 * missing > n)
    diag(c, W_UNMEASURED, (loc){0}, "%u of the %u distinct events of the program are not in %s", missing, n,
         r->m->m->events->file);
  arena_free(a);
}

static heddle_result *run(heddle_program *p, heddle_machine *m, const heddle_simulate_options *o) {
  ctx *c = p->o.s->c;
  heddle_result *r = object_new(p->o.s, sizeof *r, result_fini);
  cost_opts costs = {.model = o->costs};
  r->p = on_ranks(p);
  r->m = object_hold(m);
  r->batch = o->batch ? o->batch : program_batch(p->p);
  cost_model *k = cost_model_new(c, r->o.a, m->m, &costs);
  if (!p->plan) program_tell_eights(p, m->m);
  if (m->m->profile && r->p && !r->p->p->measured) {
    diag(c, E_PROFILE, (loc){0},
         "measured times of layers need a model and a plan: this program does not say what its layers are");
    diag_hint(c, "give a model and --strategy 'dp=1', or a plan file");
    object_drop(r);
    return NULL;
  }
  sim_opts so = {.mode = o->flat ? SIM_FLAT : SIM_FOLDED,
                 .bytes = bytes_by(o->costs),
                 .critical = true,
                 .steady = r->p && has_update(r->p->p) && bytes_by(o->costs) == SIM_BYTES_HEDDLE,
                 .timeline = o->timeline};
  if (k && r->p && (!o->timeline || timeline_mode(r, k, &so)) && sim_run(c, r->o.a, r->p->p, k, &so, &r->r)) {
    r->path = NEW(r->o.a, cost_parts);
    if (!sim_path_parts(r->p->p, k, &r->r, r->path)) r->path = NULL;
    if (m->m->events && !m->m->events->nfits) tell_unmeasured(r);
    return r;
  }
  object_drop(r);
  return NULL;
}
heddle_result *heddle_result_run(heddle_program *p, heddle_machine *m, const heddle_simulate_options *o) {
  static const heddle_simulate_options none;
  if (!p || !m) return NULL;
  API_RETURN(heddle_result *, NULL, p->o.s, run(p, m, o ? o : &none));
}

void heddle_result_free(heddle_result *r) { object_drop(r); }
int64_t heddle_result_time_ps(const heddle_result *r) { return r ? r->r.makespan_ps : 0; }
int64_t heddle_result_period_ps(const heddle_result *r) { return r ? r->r.period_ps : 0; }
int64_t heddle_result_peak_bytes(const heddle_result *r) { return r ? r->r.peak_bytes : 0; }
double heddle_result_utilisation(const heddle_result *r) { return r ? r->r.utilisation : 0; }

// The scope of the task graph that a rank has; of a strategy for one sample, that nothing splits the batch.
static sim_said said_of(void *arg, u32 rank) {
  const heddle_result *r = arg;
  const plan_task_graphs *t = r->p->task_graphs;
  if (!t && r->batch == 1)
    return (sim_said){.hint = "a larger pp or tp, as dp, mb and zero=3 split nothing of one sample; in "
                              "training recompute=full; "
                              "`heddle plan` finds what fits"};
  if (!t || rank >= t->nranks) return (sim_said){0};
  const plan_task_graph *g = &t->v[t->of_rank[rank]];
  return (sim_said){
      .at = g->where, .what = arena_printf(r->o.a, "rank %u has `%s`", rank, g->name), .hint = t->less};
}

bool heddle_result_fits(heddle_result *r) {
  if (!r) return false;
  API_RETURN(bool, false, r->o.s, sim_fits(r->p->p, r->m->m, &r->r, said_of, r));
}

static const char *describe(heddle_result *r, heddle_format f) {
  report *t = report_new(r->o.a);
  report_sim(t, r->o.a, r->p->p, r->m->m, &r->r,
             &(sim_about){r->p->name, r->p->plan, r->batch, program_batchnorm(r->p), r->path,
                          r->p->task_graphs, r->p->layers, r->p->given, r->p->schedule, r->p->times});
  return rendered(r->o.a, t, f);
}
const char *heddle_result_report(heddle_result *r, heddle_format f) {
  if (!r) return NULL;
  API_RETURN(const char *, NULL, r->o.s, describe(r, f));
}

static bool write_timeline(heddle_result *r, const char *path) {
  ctx *c = r->o.s->c;
  if (r->r.timeline) {
    u32 *alike = ZNEWN(r->o.a, u32, r->r.nclasses);
    const char **name = ZNEWN(r->o.a, const char *, r->r.nranks);
    for (u32 i = 0; i < r->r.nranks; i++) alike[r->r.class_of_rank[i]]++;
    for (u32 i = 0; i < r->r.nranks; i++)
      name[i] = alike[r->r.class_of_rank[i]] > 1
                    ? arena_printf(r->o.a, "rank %u of %u alike", i, alike[r->r.class_of_rank[i]])
                    : arena_printf(r->o.a, "rank %u", i);
    return timeline_write(c, r->r.timeline, &(timeline_opts){.rank_name = name}, path);
  }
  diag(c, E_USAGE, (loc){0}, "the result has no timeline: ask for one when you simulate");
  return false;
}
bool heddle_result_timeline(heddle_result *r, const char *path) {
  if (!r) return false;
  API_RETURN(bool, false, r->o.s, write_timeline(r, path));
}
