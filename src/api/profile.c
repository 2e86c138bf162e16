// profile.c - measuring behind heddle.h: events of plans, of the best of a search, and the machine itself.
#include "api/internal.h"
#include "kernel/kernel.h"
#include "machine/machine.h"
#include "profile/profile.h"

struct heddle_profile {
  object o;
  profile_report r;
};

static profile_job job_of(const heddle_transport *t) {
  return (profile_job){
      .link = {.rank = t->link.rank, .arg = t->link.arg, .send = t->link.send, .receive = t->link.receive},
      .nprocs = t->ranks,
      .threads = link_threads(&t->link)};
}

static const char *versions_of(arena *a, const heddle_transport *t) {
  return arena_printf(a, "heddle %s, %s, %s", HEDDLE_VERSION,
                      t->about && *t->about ? t->about : "messages of its own", kernel_blas());
}

static bool is_distributed(const heddle_program *d) {
  if (heddle_program_ranks(d)) return true;
  ctx *c = d->o.s->c;
  diag(c, E_PLAN, (loc){0}, "%s runs on one device: only a distributed program has ranks", d->name);
  diag_hint(c, "heddle_plan_apply makes one");
  return false;
}

static heddle_profile *measure(heddle_program *const *d, uint32_t n, heddle_machine *m,
                               const heddle_transport *t, const char *path) {
  heddle_profile *p = object_new(d[0]->o.s, sizeof *p, NULL);
  const prog **of = NEWN(p->o.a, const prog *, n);
  const profile_job j = job_of(t);
  const profile_opts o = {.path = arena_strdup(p->o.a, path), .versions = versions_of(p->o.a, t)};
  bool ok = true;
  for (uint32_t k = 0; k < n; k++) of[k] = d[k]->p, ok = ok && is_distributed(d[k]);
  profile_session *x = ok ? profile_begin(&j, d[0]->o.s->c, p->o.a, m->m, &o, &p->r) : NULL;
  ok = x && profile_programs(x, of, n);
  profile_end(x);
  if (ok) return p;
  object_drop(p);
  return NULL;
}

static bool may_keep(ctx *c, const char *path) {
  arena *a = arena_new();
  FILE *f = fopen(path, "rb");
  bool ok = true;
  if (f) {
    fseek(f, 0, SEEK_END);
    const bool empty = ftell(f) <= 0;
    fclose(f);
    event_db *db = empty ? NULL : event_db_open(c, a, path, false);
    ok = empty || db;
    event_db_close(db);
  }
  arena_free(a);
  return ok;
}
bool heddle_profile_may_keep(heddle_session *s, const char *path) {
  API_RETURN(bool, false, s, may_keep(s->c, path));
}

heddle_profile *heddle_profile_run(heddle_program *const *distributed, uint32_t n, heddle_machine *m,
                                   const heddle_transport *t, const char *path) {
  if (!distributed || !n || !m || !t || !path) return NULL;
  for (uint32_t k = 0; k < n; k++)
    if (!distributed[k]) return NULL;
  API_RETURN(heddle_profile *, NULL, distributed[0]->o.s, measure(distributed, n, m, t, path));
}

// ---- the best plans of a search -------------------------------------------------------------------------------
// Process 0 searches with the times that it has, and tells the plans: no other process needs the database. What is measured
// makes other plans the best, until all of the best are known.
typedef struct {
  heddle_program *model;
  heddle_machine *m;
  const heddle_search_options *o;
  profile_job j;
  profile_opts to;
  arena *a;
  hmap seen;              // plans that were measured, by their text
  VEC(const char *) text; // of process 0: those of this round
} best_plans;

// The machine with the times of the database, or the machine as it is where the database has none of it yet.
static heddle_machine *with_times(best_plans *x) {
  ctx *c = x->m->o.s->c;
  measured_event *row;
  u32 n;
  event_db *db = event_db_open(c, x->a, x->to.path, true);
  const bool read = db && event_db_get(db, x->a, sym_str(c, x->m->m->name), NULL, &row, &n);
  event_db_close(db);
  if (!read) return NULL;
  if (!n) return object_hold(x->m);
  heddle_machine *m = object_new(x->m->o.s, sizeof *m, NULL);
  m->m = arena_dup(m->o.a, x->m->m, sizeof *m->m);
  if (machine_events_read(m->m, m->o.a, x->to.path)) return m;
  object_drop(m);
  return NULL;
}

// Of process 0: how many of the best plans were not measured; -1 and diagnostics.
static i64 search_again(best_plans *x) {
  ctx *c = x->model->o.s->c;
  const u32 said = diag_count(c);
  heddle_machine *m = with_times(x);
  heddle_search *f = heddle_search_run(x->model, m, x->o);
  const u32 top = x->o->top ? x->o->top : 10, n = MIN(heddle_search_count(f), top);
  x->text.n = 0;
  bool ok = f;
  for (u32 k = 0; k < n && ok; k++) {
    heddle_plan *b = heddle_search_plan(f, k);
    const char *text = heddle_plan_print(b);
    ok = text;
    const u64 h = ok ? hash_bytes(text, strlen(text), 0) : 0;
    if (ok && !hmap_get(&x->seen, h)) {
      hmap_add(x->a, &x->seen, h, 1);
      *vec_push(x->a, &x->text) = arena_strdup(x->a, text);
    }
    heddle_plan_free(b);
  }
  heddle_search_free(f);
  heddle_machine_free(m);
  if (ok) diag_truncate(c, said); // `heddle plan` warns, and once
  return ok ? (i64)x->text.n : -1;
}

static heddle_program *told_program(best_plans *x, u32 k, arena *a) {
  const bool first = !x->j.link.rank;
  u64 size = first ? strlen(x->text.v[k]) : 0;
  if (!profile_tell(&x->j, &size, sizeof size)) return NULL;
  char *text = first ? (char *)(uintptr_t)x->text.v[k] : ZNEWN(a, char, size + 1);
  if (!profile_tell(&x->j, text, (i64)size)) return NULL;
  heddle_plan *b = plan_read_text(x->model, "plan", text, size);
  heddle_program *d = heddle_plan_apply(b);
  heddle_plan_free(b);
  if (heddle_program_validate(d)) return d;
  heddle_program_free(d);
  return NULL;
}

// One round. *more: there were plans that had not been measured.
static bool measure_round(best_plans *x, profile_session *s, bool *more) {
  arena *a = arena_new();
  i64 n = x->j.link.rank ? 0 : search_again(x);
  bool ok = profile_tell(&x->j, &n, sizeof n) && n >= 0;
  heddle_program **d = ZNEWN(a, heddle_program *, MAX(n, 0) + 1);
  const prog **of = NEWN(a, const prog *, MAX(n, 0) + 1);
  for (u32 k = 0; k < n && ok; k++) {
    d[k] = told_program(x, k, a);
    if ((ok = d[k])) of[k] = d[k]->p;
  }
  ok = ok && (!n || profile_programs(s, of, (u32)n));
  for (u32 k = 0; k < n; k++) heddle_program_free(d[k]);
  arena_free(a);
  *more = n > 0;
  return ok;
}

static heddle_profile *measure_best(heddle_program *model, heddle_machine *m, const heddle_search_options *o,
                                    const heddle_transport *t, const char *path) {
  heddle_profile *p = object_new(model->o.s, sizeof *p, NULL);
  best_plans x = {.model = model, .m = m, .o = o, .j = job_of(t), .a = p->o.a};
  x.to = (profile_opts){.path = arena_strdup(p->o.a, path), .versions = versions_of(p->o.a, t)};
  profile_session *s = profile_begin(&x.j, model->o.s->c, p->o.a, m->m, &x.to, &p->r);
  bool ok = s, more = true;
  for (; ok && more; p->r.nrounds += more) ok = measure_round(&x, s, &more);
  profile_end(s);
  if (ok) return p;
  object_drop(p);
  return NULL;
}
heddle_profile *heddle_profile_best(heddle_program *model, heddle_machine *m, const heddle_search_options *o,
                                    const heddle_transport *t, const char *path) {
  static const heddle_search_options none;
  if (!model || !m || !t || !path) return NULL;
  API_RETURN(heddle_profile *, NULL, model->o.s, measure_best(model, m, o ? o : &none, t, path));
}

bool heddle_profile_fit(heddle_profile *p, heddle_machine *m, const char *path) {
  if (!p || !m || !path) return false;
  API_RETURN(bool, false, p->o.s, profile_fit(p->o.s->c, p->o.a, m->m, path, &p->r));
}

static heddle_profile *import(heddle_session *s, const char *file, const char *path, heddle_machine *m,
                              heddle_program *d) {
  heddle_profile *p = object_new(s, sizeof *p, NULL);
  if (profile_import(s->c, p->o.a, file, arena_strdup(p->o.a, path), m ? m->m : NULL, m && d ? d->p : NULL,
                     &p->r))
    return p;
  object_drop(p);
  return NULL;
}
heddle_profile *heddle_profile_import(heddle_session *s, const char *file, const char *path,
                                      heddle_machine *m, heddle_program *distributed) {
  if (!file || !path) return NULL;
  API_RETURN(heddle_profile *, NULL, s, import(s, file, path, m, distributed));
}
void heddle_profile_free(heddle_profile *p) { object_drop(p); }

static const char *describe(heddle_profile *p, heddle_format f) {
  report *r = report_new(p->o.a);
  report_profile(r, p->o.a, &p->r);
  return rendered(p->o.a, r, f);
}
const char *heddle_profile_report(heddle_profile *p, heddle_format f) {
  if (!p) return NULL;
  API_RETURN(const char *, NULL, p->o.s, describe(p, f));
}

static const char *probe(heddle_session *s, const heddle_transport *t, const char *name) {
  profile_job j = job_of(t);
  j.threads = 1; // a rank on each core
  return profile_machine(&j, s->c, s->a, name, versions_of(s->a, t));
}
const char *heddle_machine_probe(heddle_session *s, const heddle_transport *t, const char *name) {
  if (!t || !name) return NULL;
  API_RETURN(const char *, NULL, s, probe(s, t, name));
}
