// search.c - the search for plans behind heddle.h.
#include "api/internal.h"
#include "machine/machine.h"
#include "profile/profile.h"

static void search_fini(object *o) {
  heddle_search *f = (heddle_search *)o;
  object_drop(f->p);
  object_drop(f->m);
}

bool search_options_read(ctx *c, arena *a, const heddle_search_options *o, search_opts *s) {
  *s = (search_opts){.ranks = o->ranks,
                     .pow2 = o->powers_of_two,
                     .train = o->train,
                     .batch = o->batch,
                     .memory_bytes = o->memory_bytes,
                     .bytes = bytes_by(o->costs),
                     .top = o->top,
                     .part = o->part,
                     .parts = o->parts,
                     .threads = o->threads};
  if (o->parts ? o->part < 1 || o->part > o->parts : o->part != 0) {
    diag(c, E_USAGE, (loc){0}, "part %u of %u does not exist: parts are 1 to %u", o->part, o->parts,
         o->parts);
    return false;
  }
  return strategy_parse(c, a, o->strategy, &s->space) && optimizer_read(c, &o->optimizer, &s->optim);
}

void search_quiet(void *arg, const cost_event *e, double factor) { (void)arg, (void)e, (void)factor; }

// Nobody asked for so few samples, and most devices have none.
static void tell_batch(const heddle_program *p, const search_opts *o, u32 devices) {
  ctx *c = p->p->c;
  if (!p->default_batch || o->batch <= 0 || o->batch >= devices) return;
  diag(c, W_BATCH, func_get(p->p, p->p->main)->where,
       "no --batch given: %s has a batch of %lld, for %u devices", p->name, (long long)o->batch, devices);
  diag_hint(c, "--batch %u, or what you train with", devices);
}

static double weights_of(const prog *p) {
  const func_info *f = func_get(p, p->main);
  double n = 0;
  for (u32 i = 0; i < f->nparams; i++) {
    const type_info *t = val_type(p, f, i + 1);
    if (f->params.v[i].r == ROLE_WEIGHT && !t->tuple) n += (double)shape_elems(&t->s);
  }
  return n;
}

// Nobody asked for f32 either, in which hardly anybody trains a large model.
void search_tell_dtype(const heddle_program *p, const machine *m, const search_opts *o) {
  enum { LARGE = 1000000000, FASTER = 3 };
  ctx *c = p->p->c;
  if (!p->default_dtype || !o->train || weights_of(p->p) <= LARGE) return;
  for (u32 k = 0; k < m->nkinds; k++) {
    const device_kind *d = &m->kind[k];
    const dtype half = d->rate[DT_BF16] > 0 ? DT_BF16 : DT_F16;
    if (d->rate[half] < FASTER * d->rate[DT_F32]) continue;
    diag(c, W_DTYPE, func_get(p->p, p->p->main)->where,
         "no --dtype given: %s is trained in f32, in which %s has %.4g TFLOP/s; in %s it has %.4g", p->name,
         sym_str(c, d->name), d->rate[DT_F32] * 1e-12, dtype_name(half), d->rate[half] * 1e-12);
    diag_hint(c, "--dtype %s", dtype_name(half));
    return;
  }
}

static void describe_best(heddle_search *f) {
  const prog *p = f->p->p;
  f->about = (search_about){.model = f->p->name,
                            .types = report_types(f->o.a, p, ROLE_WEIGHT),
                            .machine = machine_title(f->o.a, f->m->m),
                            .ranks = f->so.ranks ? f->so.ranks : f->m->m->nranks};
  if (!f->r.nfit) return;
  batchnorm_stats has;
  pass_batchnorm_of(p, &has);
  const strategy best = search_strategy(&f->r.point[0]);
  const plan pn = {.batchnorm_groups = policy_batchnorm(&has, &best)}; // what policy_hybrid gives it
  f->about.batchnorm = plan_batchnorm(p, &pn);
}

static void tell_types(ctx *c, const heddle_search *f) {
  const char *types = f->about.types;
  if (f->r.count[SEARCH_BOUND_MEMORY] + f->r.count[SEARCH_OVER_MEMORY] > f->r.host_count &&
      front_kind_of(f->about.model) == FRONT_FAMILY && types && !strcmp(types, "f32"))
    diag_hint(c, f->so.train // its f32 masters take what weights and gradients no longer do
                     ? "the model is in f32; --dtype f16 or bf16 halves activations"
                     : "the model is in f32; --dtype f16 or bf16 halves its memory");
}

static heddle_plan *plan_at(heddle_search *f, u32 index);

// Where some events were measured, the machine's figures may be kinder to a plan of which fewer were.
static void tell_unmeasured(heddle_search *f) {
  ctx *c = f->p->o.s->c;
  arena *a = arena_new();
  u32 n, missing;
  profile_events x;
  heddle_plan *b = f->r.nfit ? plan_at(f, 0) : NULL;
  heddle_program *d = heddle_plan_apply(b);
  if (d && profile_missing(&x, c, a, d->p, f->m->m, &n, &missing) && missing) {
    diag(c, W_UNMEASURED, (loc){0}, "%u of the %u distinct events of the best plan were not measured",
         missing, n);
    diag_hint(c,
              "heddle profile MODEL --train --machine FILE --top 10 -o %s measures the best plans, and "
              "searches again, until all are",
              f->m->m->events->file);
  }
  heddle_program_free(d);
  heddle_plan_free(b);
  arena_free(a);
}

static heddle_search *run(heddle_program *p, heddle_machine *m, const heddle_search_options *o) {
  ctx *c = p->o.s->c;
  if (!program_to_plan(p)) return NULL;
  program_leave_annotations(p);
  heddle_search *f = object_new(p->o.s, sizeof *f, search_fini);
  f->p = object_hold(p);
  f->m = object_hold(m);
  f->costs = o->costs ? arena_strdup(f->o.a, o->costs) : NULL;
  cost_opts costs = {.model = f->costs, .extrapolated = search_quiet};
  if (search_options_read(c, f->o.a, o, &f->so)) {
    if (!f->so.batch) f->so.batch = program_batch(p->p);
    tell_batch(p, &f->so, f->so.ranks ? f->so.ranks : m->m->nranks);
    search_tell_dtype(p, m->m, &f->so), program_tell_eights(p, m->m);
    program_tell_batchnorm(p, &f->so.space), program_tell_attention(p, &f->so.space);
    f->so.fusible = program_has_fusible(p);
    const bool found = search_run(c, f->o.a, p->p, m->m, &costs, &f->so, &f->r);
    describe_best(f);
    if (found && m->m->events) tell_unmeasured(f);
    if (found) return f;
    tell_types(c, f);
  }
  object_drop(f);
  return NULL;
}
heddle_search *heddle_search_run(heddle_program *p, heddle_machine *m, const heddle_search_options *o) {
  static const heddle_search_options none;
  if (!p || !m) return NULL;
  API_RETURN(heddle_search *, NULL, p->o.s, run(p, m, o ? o : &none));
}

void heddle_search_free(heddle_search *f) { object_drop(f); }
// Of others than those that were asked for it is not known that none is better.
static u32 known(const heddle_search *f) { return f->so.top ? MIN(f->so.top, f->r.nfit) : f->r.nfit; }
uint32_t heddle_search_count(const heddle_search *f) { return f ? known(f) : 0; }

// ---- plans ------------------------------------------------------------------------------------------------
// A search that was merged of parts has no model.
static bool has_model(const heddle_search *f, const char *what) {
  if (f->p) return true;
  diag(f->o.s->c, E_USAGE, (loc){0}, "%s is not available: merged parts carry no model", what);
  diag_hint(f->o.s->c, "run `heddle plan` with the strategy of that plan");
  return false;
}

static heddle_plan *plan_at(heddle_search *f, u32 index) {
  if (!has_model(f, "the plan")) return NULL;
  const strategy s = search_strategy(&f->r.point[index]);
  hybrid_opts h = search_hybrid(&f->so, &s);
  heddle_plan *b = plan_open(f->p);
  heddle_plan_on(b, f->m, f->costs);
  h.k = plan_cost_model(b);
  b->pn = policy_hybrid(program_planner(f->p), b->o.a, &h);
  if (b->pn) {
    b->pn->model = f->p->name;
    return b;
  }
  object_drop(b);
  return NULL;
}
heddle_plan *heddle_search_plan(heddle_search *f, uint32_t index) {
  if (!f || index >= known(f)) return NULL;
  API_RETURN(heddle_plan *, NULL, f->o.s, plan_at(f, index));
}

// Plans were run on this computer.
static void tell_where_run(ctx *c, const machine *m) {
  if (!machine_has_cores(m))
    diag(c, W_PROCESSOR, (loc){0},
         "devices of %s are no processor cores, and cores of this computer have run the plans",
         sym_str(c, m->name));
  else if (m->nnodes > 1)
    diag(c, W_PROCESSOR, (loc){0}, "%s has %u nodes, and the plans were run on this computer alone",
         sym_str(c, m->name), m->nnodes);
}

static bool measured(heddle_search *f, u32 n, const int64_t *ps, u32 *best) {
  tell_where_run(f->o.s->c, f->m->m);
  *best = 0;
  for (u32 k = 0; k < n; k++)
    if (ps[k] && (!ps[*best] || ps[k] < ps[*best])) *best = k;
  f->about.nmeasured = n;
  f->about.measured_ps = arena_dup(f->o.a, ps, n * sizeof *ps);
  if (n && ps[*best]) return true;
  diag(f->o.s->c, E_NO_PLAN, (loc){0}, "none of the best %u plans could be run", n);
  diag_hint(f->o.s->c, "heddle run MODEL --strategy '%s' says why", search_str(f->o.a, &f->r.point[0]));
  return false;
}
bool heddle_search_measured(heddle_search *f, uint32_t n, const int64_t *ps, uint32_t *best) {
  if (!f || !ps || !best || n > f->r.nfit) return false;
  API_RETURN(bool, false, f->o.s, measured(f, n, ps, best));
}

// ---- reports ----------------------------------------------------------------------------------------------
// Asks for the program of the best plan, so it waits until somebody asks.
void search_tell_mfu(heddle_search *f) {
  ctx *c = f->o.s->c;
  if (!f->p || !f->r.nfit || f->about.mfu > 0) return;
  arena *a = arena_new();
  const u32 before = diag_count(c);
  const strategy best = search_strategy(&f->r.point[0]);
  hybrid_opts h = search_hybrid(&f->so, &best);
  const cost_opts costs = {.model = f->costs, .extrapolated = search_quiet};
  planner *pl = program_planner(f->p);
  h.k = cost_model_new(c, a, f->m->m, &costs);
  plan *pn = policy_hybrid(pl, a, &h);
  prog *d = pn ? plan_apply(pl, pn, h.k) : NULL;
  if (pn) f->about.layers = plan_layers(f->o.a, planner_source(pl), pn);
  if (d) f->about.mfu = report_mfu(d, f->m->m, f->r.point[0].time_ps);
  prog_free(d);
  arena_free(a);
  diag_truncate(c, before);
}

static const char *describe(heddle_search *f, heddle_format format) {
  report *r = report_new(f->o.a);
  search_tell_mfu(f);
  (f->so.parts ? report_part : report_search)(r, f->o.a, &f->about, &f->so, &f->r);
  return rendered(f->o.a, r, format);
}
const char *heddle_search_report(heddle_search *f, heddle_format format) {
  if (!f) return NULL;
  API_RETURN(const char *, NULL, f->o.s, describe(f, format));
}

// ---- parts ------------------------------------------------------------------------------------------------
static const char *part_text(heddle_search *f) {
  const cost_opts costs = {.model = f->costs};
  strbuf b = {.a = f->o.a};
  if (!has_model(f, "a part")) return NULL;
  search_tell_mfu(f);
  search_part_print(search_part_of(f->o.a, f->p->p, f->m->m, &costs, &f->so, &f->about, &f->r), &b);
  return sb_str(&b);
}
const char *heddle_search_part(heddle_search *f) {
  if (!f) return NULL;
  API_RETURN(const char *, NULL, f->o.s, part_text(f));
}

static heddle_search *merge(heddle_session *s, u32 n, const char *const *path, u32 top) {
  heddle_search *f = object_new(s, sizeof *f, search_fini);
  search_part **part = ZNEWN(f->o.a, search_part *, n + 1);
  bool ok = true;
  for (u32 i = 0; i < n && ok; i++) ok = (part[i] = search_part_read(s->c, f->o.a, path[i])) != NULL;
  if (ok && search_merge(s->c, f->o.a, n, part, top, &f->so, &f->about, &f->r)) return f;
  if (f->r.last_ps) tell_types(s->c, f); // they make a search, in which nothing fits
  object_drop(f);
  return NULL;
}
heddle_search *heddle_search_merge(heddle_session *s, uint32_t n, const char *const *paths, uint32_t top) {
  API_RETURN(heddle_search *, NULL, s, merge(s, n, paths, top));
}
