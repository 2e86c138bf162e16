// auto.c - automatic plans behind heddle.h.
#include "api/internal.h"
#include "machine/machine.h"

struct heddle_auto {
  object o;
  heddle_program *p;
  heddle_machine *m;
  const char *costs;
  search_about about;
  search_opts so;
  search_auto r;
};

static void auto_fini(object *o) {
  heddle_auto *f = (heddle_auto *)o;
  object_drop(f->p);
  object_drop(f->m);
}

// The file is read into the object's arena: locations point into it.
static bool rules_read(heddle_auto *f, const char *path, splits_rules **out) {
  ctx *c = f->o.s->c;
  file_view v;
  if (!path) return true;
  if (!file_map(c, path, &v)) return false;
  const char *text = arena_strndup(f->o.a, (const char *)v.data, v.size);
  *out = splits_rules_read(program_planner(f->p), f->o.a, sym_of(c, path), text, v.size);
  file_unmap(&v);
  return *out != NULL;
}

static bool how_read(heddle_auto *f, const heddle_auto_options *o, auto_opts *how) {
  ctx *c = f->o.s->c;
  *how = (auto_opts){.seed = o->seed, .proposals = o->proposals};
  splits_rules *rules = NULL;
  if (o->method) {
    near_name near = near_to(o->method, strlen(o->method));
    u32 k = 0;
    for (; k < SPLITS_METHODS && strcmp(splits_method_names[k], o->method); k++)
      near_try(&near, splits_method_names[k]);
    if (k == SPLITS_METHODS) {
      diag(c, E_USAGE, (loc){0}, "unknown method `%s`: exact, mcmc or both", o->method);
      if (near.name) diag_hint(c, "did you mean `%s`?", near.name);
      return false;
    }
    how->method = (splits_method)k;
  }
  if (!rules_read(f, o->rules, &rules)) return false;
  how->rules = rules;
  return true;
}

// Which degrees are split depends on the best hybrid, and that is of all parts.
static bool is_whole(ctx *c, const heddle_search_options *o) {
  if (!o->parts) return true;
  diag(c, E_USAGE, (loc){0},
       "--auto is not dealt out in parts: it needs the best hybrid of the whole search");
  diag_hint(c, "leave out --part; machines may have a degree each: --strategy 'tp=2', --strategy 'tp=4'");
  return false;
}

static heddle_auto *run(heddle_program *p, heddle_machine *m, const heddle_search_options *o,
                        const heddle_auto_options *with) {
  ctx *c = p->o.s->c;
  if (!is_whole(c, o) || !program_to_plan(p)) return NULL;
  program_leave_annotations(p);
  heddle_auto *f = object_new(p->o.s, sizeof *f, auto_fini);
  f->p = object_hold(p), f->m = object_hold(m);
  f->costs = o->costs ? arena_strdup(f->o.a, o->costs) : NULL;
  const cost_opts costs = {.model = f->costs, .extrapolated = search_quiet};
  auto_opts how;
  if (how_read(f, with, &how) && search_options_read(c, f->o.a, o, &f->so)) {
    if (!f->so.batch) f->so.batch = program_batch(p->p);
    search_tell_dtype(p, m->m, &f->so), program_tell_eights(p, m->m);
    program_tell_batchnorm(p, &f->so.space);
    f->about = (search_about){.model = p->name,
                              .types = report_types(f->o.a, p->p, ROLE_WEIGHT),
                              .machine = machine_title(f->o.a, m->m),
                              .ranks = f->so.ranks ? f->so.ranks : m->m->nranks};
    const u32 n = f->about.ranks;
    const bool some = !machine_one_kind(m->m, 0, MIN(n, m->m->nranks));
    if ((!how.rules || splits_rules_fit(how.rules, n, some)) &&
        search_auto_run(program_planner(p), f->o.a, m->m, &costs, &f->so, &how, &f->r))
      return f;
  }
  object_drop(f);
  return NULL;
}
heddle_auto *heddle_auto_run(heddle_program *p, heddle_machine *m, const heddle_search_options *o,
                             const heddle_auto_options *how) {
  static const heddle_search_options none;
  static const heddle_auto_options plain;
  if (!p || !m) return NULL;
  API_RETURN(heddle_auto *, NULL, p->o.s, run(p, m, o ? o : &none, how ? how : &plain));
}
void heddle_auto_free(heddle_auto *f) { object_drop(f); }

static heddle_plan *plan_of(heddle_auto *f) {
  hybrid_opts h = search_hybrid(&f->so, &f->r.s);
  heddle_plan *b = plan_open(f->p);
  heddle_plan_on(b, f->m, f->costs);
  h.k = plan_cost_model(b);
  if (f->r.automatic) h.splits = &f->r.plan.splits;
  b->pn = policy_hybrid(program_planner(f->p), b->o.a, &h);
  if (b->pn) {
    b->pn->model = f->p->name;
    if (f->r.automatic) b->pn->name = sym_fmt(f->p->o.s->c, "auto %s", sym_str(f->p->o.s->c, b->pn->name));
    return b;
  }
  object_drop(b);
  return NULL;
}
heddle_plan *heddle_auto_plan(heddle_auto *f) {
  if (!f) return NULL;
  API_RETURN(heddle_plan *, NULL, f->o.s, plan_of(f));
}

static const char *describe(heddle_auto *f, heddle_format format) {
  report *r = report_new(f->o.a);
  report_auto(r, f->o.a, planner_source(program_planner(f->p)), &f->about, &f->so, &f->r);
  return rendered(f->o.a, r, format);
}
const char *heddle_auto_report(heddle_auto *f, heddle_format format) {
  if (!f) return NULL;
  API_RETURN(const char *, NULL, f->o.s, describe(f, format));
}
