// profile.c - measuring behind heddle.h: events of a plan, and the machine itself.
#include "api/internal.h"
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
  return arena_printf(a, "heddle %s, %s", HEDDLE_VERSION,
                      t->about && *t->about ? t->about : "messages of its own");
}

static heddle_profile *measure(heddle_program *const *d, uint32_t n, heddle_machine *m,
                               const heddle_transport *t, const char *path) {
  heddle_profile *p = object_new(d[0]->o.s, sizeof *p, NULL);
  ctx *c = d[0]->p->c;
  const prog **of = NEWN(p->o.a, const prog *, n);
  const profile_job j = job_of(t);
  const profile_opts o = {.path = arena_strdup(p->o.a, path), .versions = versions_of(p->o.a, t)};
  bool ok = true;
  for (uint32_t k = 0; k < n && ok; k++) {
    of[k] = d[k]->p;
    if (heddle_program_ranks(d[k])) continue;
    diag(c, E_PLAN, (loc){0}, "%s runs on one device: only a distributed program has ranks", d[k]->name);
    diag_hint(c, "heddle_plan_apply makes one");
    ok = false;
  }
  if (ok && profile_programs(&j, c, p->o.a, of, n, m->m, &o, &p->r)) return p;
  object_drop(p);
  return NULL;
}
heddle_profile *heddle_profile_run(heddle_program *const *distributed, uint32_t n, heddle_machine *m,
                                   const heddle_transport *t, const char *path) {
  if (!distributed || !n || !m || !t || !path) return NULL;
  for (uint32_t k = 0; k < n; k++)
    if (!distributed[k]) return NULL;
  API_RETURN(heddle_profile *, NULL, distributed[0]->o.s, measure(distributed, n, m, t, path));
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
