// search.c - the search for plans behind heddle.h.
#include "api/internal.h"

static void search_fini(object *o) {
  heddle_search *f = (heddle_search *)o;
  object_drop(f->p);
  object_drop(f->m);
}

static bool options_read(ctx *c, arena *a, const heddle_search_options *o, search_opts *s) {
  *s = (search_opts){.ranks = o->ranks,
                     .pow2 = o->powers_of_two,
                     .train = o->train,
                     .batch = o->batch,
                     .memory_bytes = o->memory_bytes,
                     .accounting = bytes_by(o->costs),
                     .top = o->top,
                     .threads = o->threads};
  return strategy_parse(c, a, o->strategy, &s->space) && optimizer_read(c, &o->optimizer, &s->optim);
}

// Simulating a plan tells; a search prices thousands, on threads.
static void quiet(void *arg, const cost_event *e, double factor) { (void)arg, (void)e, (void)factor; }

// Nobody asked for so few samples, and most devices have none.
static void tell_batch(const heddle_program *p, const search_opts *o, u32 devices) {
  ctx *c = p->p->c;
  if (!p->default_batch || o->batch <= 0 || o->batch >= devices) return;
  diag(c, W_BATCH, func_get(p->p, p->p->main)->where,
       "the batch of %s is %lld where none is given, on %u devices", p->name, (long long)o->batch, devices);
  diag_hint(c, "--batch %u, or what you train with", devices);
}

static heddle_search *run(heddle_program *p, heddle_machine *m, const heddle_search_options *o) {
  ctx *c = p->o.s->c;
  if (!program_to_plan(p)) return NULL;
  heddle_search *f = object_new(p->o.s, sizeof *f, search_fini);
  f->p = object_hold(p);
  f->m = object_hold(m);
  f->costs = o->costs ? arena_strdup(f->o.a, o->costs) : NULL;
  cost_opts costs = {.accounting = f->costs, .extrapolated = quiet};
  if (options_read(c, f->o.a, o, &f->so)) {
    if (!f->so.batch) f->so.batch = program_batch(p->p);
    tell_batch(p, &f->so, f->so.ranks ? f->so.ranks : m->m->nranks);
    if (search_run(c, f->o.a, p->p, m->m, &costs, &f->so, &f->r)) return f;
    const char *types = report_types(f->o.a, p->p, ROLE_WEIGHT);
    if (f->r.count[SEARCH_BOUND_MEMORY] + f->r.count[SEARCH_OVER_MEMORY] &&
        front_kind_of(p->name) == FRONT_FAMILY && types && !strcmp(types, "f32"))
      diag_hint(c, "the model is in f32: --dtype f16 or bf16 needs half the memory");
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
uint32_t heddle_search_count(const heddle_search *f) { return f ? f->r.nfit : 0; }

static heddle_plan *plan_at(heddle_search *f, u32 index) {
  hybrid_opts h = search_hybrid(&f->so, &f->r.point[index]);
  heddle_plan *b = plan_open(f->p);
  heddle_plan_on(b, f->m, f->costs);
  b->pn = policy_hybrid(program_planner(f->p), b->o.a, &h);
  if (b->pn) return b;
  object_drop(b);
  return NULL;
}
heddle_plan *heddle_search_plan(heddle_search *f, uint32_t index) {
  if (!f || index >= f->r.nfit) return NULL;
  API_RETURN(heddle_plan *, NULL, f->o.s, plan_at(f, index));
}

static const char *describe(heddle_search *f, heddle_format format) {
  report *r = report_new(f->o.a);
  report_search(r, f->o.a, f->p->p, f->m->m, &f->so, &f->r, f->p->name);
  return rendered(f->o.a, r, format);
}
const char *heddle_search_report(heddle_search *f, heddle_format format) {
  if (!f) return NULL;
  API_RETURN(const char *, NULL, f->o.s, describe(f, format));
}
