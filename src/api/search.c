// search.c - the search for plans behind heddle.h.
#include "api/internal.h"

static void search_fini(object *o) {
  heddle_search *f = (heddle_search *)o;
  object_drop(f->p);
  object_drop(f->m);
}

static bool copy_list(ctx *c, const char *what, u32 n, const u32 *from, u32 cap, u32 *to, u32 *nto) {
  if (n > cap) {
    diag(c, E_LIMIT, (loc){0}, "%u values for %s; at most %u are searched", n, what, cap);
    return false;
  }
  if (n) memcpy(to, from, n * sizeof *to);
  *nto = n;
  return true;
}

// ZeRO that was asked for, over one device.
static bool zero_fits(ctx *c, const heddle_search_options *o) {
  u32 zero = 3, data = 1;
  for (u32 i = 0; i < o->nzero; i++) zero = MIN(zero, o->zero[i]);
  for (u32 i = 0; i < o->ndata; i++) data = MAX(data, o->data[i]);
  if (!o->nzero || !zero || !o->ndata || data > 1) return true;
  diag(c, E_PLAN, (loc){0}, "zero=%u shards over data-parallel devices, but data=1", zero);
  diag_hint(c, "--data 2 or more, or --zero 0");
  return false;
}

static bool options_read(ctx *c, const heddle_search_options *o, search_opts *s) {
  *s = (search_opts){.ranks = o->ranks,
                     .pow2 = o->powers_of_two,
                     .train = o->train,
                     .micro_all = o->train, // gradients add up over microbatches on any number of stages
                     .sequence = o->sequence,
                     .overlap = o->overlap,
                     .batch = o->batch,
                     .memory_bytes = o->memory_bytes,
                     .accounting = bytes_by(o->costs),
                     .top = o->top,
                     .threads = o->threads};
  u32 recompute[3], schedule[2];
  for (u32 i = 0; i < MIN(o->nrecompute, 3u); i++) recompute[i] = o->recompute[i];
  for (u32 i = 0; i < MIN(o->nschedule, 2u); i++)
    schedule[i] = o->schedule[i] == HEDDLE_GPIPE ? SCHED_GPIPE : SCHED_1F1B;
  return copy_list(c, "data", o->ndata, o->data, SEARCH_DEGREES, s->data, &s->ndata) &&
         copy_list(c, "tensor", o->ntensor, o->tensor, SEARCH_DEGREES, s->tensor, &s->ntensor) &&
         copy_list(c, "pipeline", o->npipeline, o->pipeline, SEARCH_DEGREES, s->pipeline, &s->npipeline) &&
         copy_list(c, "microbatches", o->nmicrobatches, o->microbatches, SEARCH_DEGREES, s->micro,
                   &s->nmicro) &&
         copy_list(c, "zero", o->nzero, o->zero, 4, s->zero, &s->nzero) &&
         copy_list(c, "recompute", o->nrecompute, recompute, 3, s->recompute, &s->nrecompute) &&
         copy_list(c, "schedule", o->nschedule, schedule, 2, s->schedule, &s->nschedule) &&
         optimiser_read(c, &o->optimiser, &s->optim);
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
  if (zero_fits(c, o) && options_read(c, o, &f->so)) {
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
  h.flops_per_byte = search_price(f->m->m);
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
