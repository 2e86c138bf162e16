// plan.c - plans behind heddle.h: made from choices, read from text, applied.
#include "api/internal.h"

static void plan_fini(object *o) {
  object_drop(((heddle_plan *)o)->p);
  object_drop(((heddle_plan *)o)->m);
}

heddle_plan *plan_open(heddle_program *p) {
  heddle_plan *b = object_new(p->o.s, sizeof *b, plan_fini);
  b->p = object_hold(p);
  return b;
}

static heddle_plan *checked(heddle_plan *b, plan *pn) {
  b->pn = pn;
  if (pn) return b;
  object_drop(b);
  return NULL;
}

static bool has_states(const prog *p, const optim_opts *o) {
  const func_info *m = func_get(p, p->main);
  bool any = o->kind != OPTIM_SGD;
  for (u32 k = 0; k < m->nparams && !any; k++)
    any = m->params.v[k].r == ROLE_WEIGHT && optim_has_master(o, val_type(p, m, k + 1)->s.t);
  return any;
}

// Choices that were said and are not in the plan: there is nothing of what they are about.
static void tell_unused(heddle_program *p, const plan *pn, const hybrid_opts *h) {
  ctx *c = p->o.s->c;
  const choice_set *zero = &h->said->of[CHOICE_zero];
  const strategy *s = &h->s;
  const bool stateless = s->zero.n == 1 && !has_states(p->p, &h->optim);
  if (zero->said && stateless)
    diag(c, W_IGNORED, zero->at, "zero=1 changes nothing: the optimizer has no states");
  for (u32 k = 0; k < CHOICE_COUNT; k++) {
    const choice_id id = (choice_id)k;
    if (id == CHOICE_zero ? stateless || !s->replicas.nparts : choice_get(id)->of != CHOICE_OF_STAGES)
      continue;
    if (!h->said->of[id].said || choice_same(s->of[id], choice_default(id))) continue;
    arena *tmp = arena_new();
    hybrid_opts without = *h;
    without.s.of[id] = choice_default(id), without.no_order = true;
    const u32 said = diag_count(c);
    const plan *other = policy_hybrid(program_planner(p), tmp, &without);
    const bool same = other && plan_hash_unordered(c, other) == plan_hash_unordered(c, pn) &&
                      other->materialise == pn->materialise;
    diag_truncate(c, said);
    strbuf b = {.a = tmp};
    choice_say(id, s->of[id], &b);
    if (same)
      diag(c, W_IGNORED, h->said->of[id].at, "%s changes nothing: the plan is the same without it",
           sb_str(&b));
    arena_free(tmp);
  }
}

// A strategy says how many ranks it has: as many as were asked for, and no more than there are.
static bool has_devices(ctx *c, const heddle_plan_options *o, const strategy *s) {
  const u64 ranks = strategy_ranks(s);
  const u32 n = o->devices;
  if (n && o->machine && n > o->machine->m->nranks) {
    diag(c, E_PLAN, (loc){0}, "--devices %u, but the machine has %u", n, o->machine->m->nranks);
    diag_hint(c, "--devices %u, or a larger machine", o->machine->m->nranks);
    return false;
  }
  if (!n || ranks == n) return true;
  diag(c, E_STRATEGY, (loc){0}, "--devices %u, but the strategy has %llu rank%s", n,
       (unsigned long long)ranks, ranks == 1 ? "" : "s");
  diag_hint(c, "--devices %llu, or a strategy with dp x tp x pp = %u", (unsigned long long)ranks, n);
  return false;
}

static heddle_plan *make(heddle_program *p, const char *line, const heddle_plan_options *o) {
  ctx *c = p->o.s->c;
  strategy_set said;
  hybrid_opts h = {.said = &said, .train = o->train};
  if (!program_to_plan(p)) return NULL;
  program_leave_annotations(p);
  heddle_plan *b = plan_open(p);
  const cost_opts costs = {.model = o->costs};
  if (o->machine && !(h.k = cost_model_new(c, b->o.a, o->machine->m, &costs))) return checked(b, NULL);
  bool ok = strategy_parse(c, b->o.a, line, &said) && strategy_one(c, &said, &h.s) &&
            strategy_settle(c, &said, program_batch(p->p), o->train, &h.s) && has_devices(c, o, &h.s) &&
            optimizer_read(c, &o->optimizer, &h.optim);
  b = checked(b, ok ? policy_hybrid(program_planner(p), b->o.a, &h) : NULL);
  if (b)
    b->pn->model = p->name, program_tell_batchnorm(p, &said), program_tell_attention(p, &said),
    tell_unused(p, b->pn, &h);
  return b;
}
heddle_plan *heddle_plan_make(heddle_program *p, const char *line, const heddle_plan_options *o) {
  static const heddle_plan_options none;
  if (!p) return NULL;
  API_RETURN(heddle_plan *, NULL, p->o.s, make(p, line, o ? o : &none));
}

heddle_plan *plan_read_text(heddle_program *p, const char *name, const char *text, size_t n) {
  if (!program_to_plan(p)) return NULL;
  heddle_plan *b = plan_open(p);
  const prog *src = planner_source(program_planner(p));
  return checked(b, plan_parse(b->o.a, src, p->name, sym_of(p->o.s->c, name), text, n));
}
heddle_plan *heddle_plan_parse(heddle_program *p, const char *name, const char *text, size_t n) {
  if (!p) return NULL;
  API_RETURN(heddle_plan *, NULL, p->o.s, plan_read_text(p, name, text, n));
}

static heddle_plan *read(heddle_program *p, const char *path) {
  file_view f;
  if (!file_map(p->o.s->c, path, &f)) return NULL;
  heddle_plan *b = plan_read_text(p, path, (const char *)f.data, f.size);
  file_unmap(&f);
  return b;
}
heddle_plan *heddle_plan_read(heddle_program *p, const char *path) {
  if (!p) return NULL;
  API_RETURN(heddle_plan *, NULL, p->o.s, read(p, path));
}

static heddle_plan *annotated(heddle_program *p, const char *name, const char *text, size_t n,
                              const heddle_plan_options *o) {
  ctx *c = p->o.s->c;
  strategy_set said;
  hybrid_opts h = {.train = o->train, .said = &said};
  if (!program_to_plan(p)) return NULL;
  heddle_plan *b = plan_open(p);
  const cost_opts costs = {.model = o->costs};
  if (o->machine && !(h.k = cost_model_new(c, b->o.a, o->machine->m, &costs))) return checked(b, NULL);
  if (!strategy_parse(c, b->o.a, o->strategy, &said) || !strategy_one(c, &said, &h.s) ||
      !optimizer_read(c, &o->optimizer, &h.optim))
    return checked(b, NULL);
  if (!text && !annotations_in(p->p)) {
    diag(c, E_ANNOTATE, func_get(p->p, p->p->main)->where, "the program has no annotations");
    diag_hint(c, "a text or a file of them, or heddle_plan_make with a strategy");
    return checked(b, NULL);
  }
  b = checked(
      b, policy_annotated(program_planner(p), b->o.a, sym_of(c, name ? name : ""), text, n, &h, o->devices));
  if (b) b->pn->model = p->name;
  return b;
}
static const heddle_plan_options no_options;
heddle_plan *heddle_plan_annotated(heddle_program *p, const char *name, const char *text, size_t n,
                                   const heddle_plan_options *o) {
  if (!p) return NULL;
  API_RETURN(heddle_plan *, NULL, p->o.s, annotated(p, name, text, n, o ? o : &no_options));
}

static heddle_plan *annotated_read(heddle_program *p, const char *path, const heddle_plan_options *o) {
  file_view f;
  if (!file_map(p->o.s->c, path, &f)) return NULL;
  heddle_plan *b = annotated(p, path, (const char *)f.data, f.size, o);
  file_unmap(&f);
  return b;
}
heddle_plan *heddle_plan_annotated_read(heddle_program *p, const char *path, const heddle_plan_options *o) {
  if (!p) return NULL;
  API_RETURN(heddle_plan *, NULL, p->o.s, annotated_read(p, path, o ? o : &no_options));
}

static bool trains(ctx *c, const char *path, bool *train) {
  file_view f;
  if (!file_map(c, path, &f)) return false;
  arena *a = arena_new();
  const ynode *y = yaml_parse(c, a, sym_of(c, path), (const char *)f.data, f.size);
  if (y) *train = y->kind == Y_MAP && yaml_get(y, "train");
  file_unmap(&f);
  arena_free(a);
  return y != NULL;
}
bool heddle_plan_trains(heddle_session *s, const char *path, bool *train) {
  API_RETURN(bool, false, s, trains(s->c, path, train));
}

void heddle_plan_free(heddle_plan *b) { object_drop(b); }
const char *heddle_plan_name(const heddle_plan *b) { return b ? sym_str(b->o.s->c, b->pn->name) : NULL; }

static const char *print(heddle_plan *b) {
  strbuf t = {.a = b->o.a};
  plan_print(planner_source(program_planner(b->p)), b->pn, &t);
  return sb_str(&t);
}
const char *heddle_plan_print(heddle_plan *b) {
  if (!b) return NULL;
  API_RETURN(const char *, NULL, b->o.s, print(b));
}

// Of every mesh, whether a segment lies there or not: means are over all ranks of meshes.
static bool has_ranks(const heddle_plan *b, const machine *m) {
  assert(m->nranks);
  for (u32 i = 0; b->pn && i < b->pn->nmeshes; i++) {
    const plan_mesh *x = &b->pn->meshes[i];
    u64 size = 1;
    u32 most = 0;
    for (u32 k = 0; k < x->naxes && size < 1u << 24; k++) size *= b->pn->axes[x->axis[k] - 1].size;
    if (size >= 1u << 24) continue; // refused when it is applied
    for (u32 k = 0; k < x->nranks; k++) most = MAX(most, x->ranks[k]);
    if (!x->nranks) most = x->first + (u32)size - 1;
    if (!machine_has_rank(b->o.s->c, m, most, x->at)) return false;
  }
  return true;
}

static bool on_machine(heddle_plan *b, heddle_machine *m, const char *costs) {
  if (m && !has_ranks(b, m->m)) return false;
  if (m) program_tell_eights(b->p, m->m);
  object_drop(b->m);
  b->m = m ? object_hold(m) : NULL;
  b->costs = costs ? arena_strdup(b->o.a, costs) : NULL;
  return true;
}
bool heddle_plan_on(heddle_plan *b, heddle_machine *m, const char *costs) {
  if (!b) return false;
  API_RETURN(bool, false, b->o.s, on_machine(b, m, costs));
}

cost_model *plan_cost_model(heddle_plan *b) {
  cost_opts o = {.model = b->costs, .extrapolated = NULL};
  return b->m ? cost_model_new(b->o.s->c, b->o.a, b->m->m, &o) : NULL;
}

static bool set_times(heddle_plan *b, heddle_program *p, cost_model *k) {
  sched_stages *times = NEW(p->o.a, sched_stages);
  p->times = times;
  if (k) return plan_stage_times(program_planner(b->p), b->pn, k, p->o.a, times);
  diag(b->o.s->c, E_STAGES, (loc){0}, "no times of stages: the plan is on no machine");
  return false;
}
void heddle_plan_time_stages(heddle_plan *b) {
  if (b) b->times = true;
}

// What every function does, in any order of functions: what moves is chosen by the machine.
static u64 hash_done(const prog *p) {
  u64 sum = 0;
  for (u32 k = 1; k < p->funcs.n; k++) {
    const func_info *f = func_get(p, (func){k});
    u64 h = f->body.n;
    for (u32 i = 0; i < f->body.n; i++) h = hash_step(h, (u64)f->body.v[i].op << 8 | f->body.v[i].strm);
    sum += hash_u64(h, f->nparams);
  }
  return sum;
}

// Of a plan's text but for names, so that one that was read is the one that was written; and of what was made by it.
static const char *digest_of(const heddle_plan *b, const prog *made, arena *a) {
  const prog *model = planner_source(program_planner(b->p));
  plan pn = *b->pn;
  strbuf text = {.a = arena_new()};
  pn.name = (sym){0}, pn.model = NULL;
  plan_print(model, &pn, &text);
  const u64 of_model = hash_step(plan_fingerprint(model), hash_done(made));
  const u64 h = hash_step(of_model, hash_bytes(sb_str(&text), text.n, 0));
  arena_free(text.a);
  return arena_printf(a, "%016llx", (unsigned long long)h);
}
const char *program_digest(heddle_program *p) {
  if (!p->digest && p->by) p->digest = digest_of(p->by, p->p, p->o.a);
  return p->digest;
}

static heddle_program *applied(heddle_plan *b) {
  cost_model *k = plan_cost_model(b);
  if (b->m && !k) return NULL;
  prog *d = plan_apply(program_planner(b->p), b->pn, k);
  heddle_program *p = program_wrap(b->o.s, d, b->p->name);
  if (!p) return NULL;
  p->plan = arena_strdup(p->o.a, heddle_plan_name(b));
  p->machine = b->m ? arena_strdup(p->o.a, machine_command(p->o.a, b->m->m)) : NULL;
  p->uses = eval_uses_of(b->p->p, p->o.a);
  p->batchnorm = plan_batchnorm(b->p->p, b->pn);
  p->layers = plan_layers(p->o.a, planner_source(program_planner(b->p)), b->pn);
  if (b->m && b->m->m->nkinds > 1) {
    const plan_given given = plan_given_of(program_planner(b->p), b->pn, program_batch(b->p->p), p->o.a);
    p->given = arena_dup(p->o.a, &given, sizeof given);
  }
  p->schedule = plan_schedule(b->pn);
  if (b->times && !set_times(b, p, k)) return object_drop(p), NULL;
  if (b->pn->task_graphs) p->task_graphs = plan_bridges(p->p, p->o.a, b->pn->task_graphs);
  p->by = object_hold(b); // constants are not copied
  return p;
}
heddle_program *heddle_plan_apply(heddle_plan *b) {
  if (!b) return NULL;
  API_RETURN(heddle_program *, NULL, b->o.s, applied(b));
}

static const char *print_times(heddle_program *p) {
  strbuf b = {.a = p->o.a};
  sched_stages_print(p->times, &b);
  return sb_str(&b);
}
const char *heddle_program_stage_times(heddle_program *p) {
  if (!p || !p->times) return NULL;
  API_RETURN(const char *, NULL, p->o.s, print_times(p));
}
