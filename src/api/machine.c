// machine.c - machines behind heddle.h.
#include "api/internal.h"
#include "machine/machine.h"

static void fini(object *o) {
  heddle_machine *m = (heddle_machine *)o;
  if (m->m) machine_predictor_stop(m->m);
}

static heddle_machine *load(heddle_session *s, const char *spec) {
  heddle_machine *m = object_new(s, sizeof *m, fini);
  m->m = machine_load(s->c, m->o.a, spec);
  if (m->m) return m;
  object_drop(m);
  return NULL;
}
heddle_machine *heddle_machine_load(heddle_session *s, const char *spec) {
  API_RETURN(heddle_machine *, NULL, s, load(s, spec));
}

static heddle_machine *parse(heddle_session *s, const char *text) {
  heddle_machine *m = object_new(s, sizeof *m, fini);
  m->m = machine_parse(s->c, m->o.a, sym_of(s->c, "machine"), text, strlen(text));
  if (m->m) return m;
  object_drop(m);
  return NULL;
}
heddle_machine *heddle_machine_parse(heddle_session *s, const char *text) {
  if (!text) return NULL;
  API_RETURN(heddle_machine *, NULL, s, parse(s, text));
}

static bool profiles(heddle_machine *m, const char *path) {
  ctx *c = m->o.s->c;
  file_view f;
  if (!file_map(c, path, &f)) return false;
  if (event_db_is(f.data, f.size)) {
    file_unmap(&f);
    return machine_events_read(m->m, m->o.a, path);
  }
  const bool ok = machine_profile_parse(m->m, m->o.a, sym_of(c, path), (const char *)f.data, f.size);
  file_unmap(&f);
  return ok;
}
bool heddle_machine_profiles(heddle_machine *m, const char *path) {
  if (!m) return false;
  API_RETURN(bool, false, m->o.s, profiles(m, path));
}

bool heddle_machine_predictor(heddle_machine *m, const char *command) {
  if (!m || !command) return false;
  machine_predictor_stop(m->m);
  API_RETURN(bool, false, m->o.s, machine_predictor_start(m->m, m->o.a, command, 0));
}

void heddle_machine_free(heddle_machine *m) { object_drop(m); }

static const char *print(heddle_machine *m) {
  strbuf b = {.a = m->o.a};
  machine_print(m->m, &b);
  return sb_str(&b);
}
const char *heddle_machine_print(heddle_machine *m) {
  if (!m) return NULL;
  API_RETURN(const char *, NULL, m->o.s, print(m));
}

static const char *describe(heddle_machine *m, const char *output, heddle_format f) {
  report *r = report_new(m->o.a);
  if (output) report_fact(r, "output", NULL, cell_text(output));
  report_machine(r, m->o.a, m->m);
  return rendered(m->o.a, r, f);
}
const char *heddle_machine_report(heddle_machine *m, heddle_format f) {
  if (!m) return NULL;
  API_RETURN(const char *, NULL, m->o.s, describe(m, NULL, f));
}
const char *heddle_machine_written(heddle_machine *m, const char *output) {
  if (!m || !output) return NULL;
  API_RETURN(const char *, NULL, m->o.s, describe(m, output, HEDDLE_JSON));
}

uint32_t heddle_machine_ranks(const heddle_machine *m) { return m ? m->m->nranks : 0; }
uint32_t heddle_machine_cores(const heddle_machine *m, uint32_t rank) {
  return m && rank < m->m->nranks ? m->m->kind[m->m->dev[rank].kind].cores : 0;
}
