// docs.c - Heddle's own tables behind heddle.h: models, machines, operators, diagnostics.
#include "api/internal.h"

// Strings of the documentation live as long as the session.
static const char *table(heddle_session *s, heddle_format f, void (*fill)(report *, arena *)) {
  arena *a = ctx_arena(s->c);
  report *r = report_new(a);
  fill(r, a);
  return rendered(a, r, f);
}

const char *heddle_docs_models(heddle_session *s, heddle_format f) {
  API_RETURN(const char *, NULL, s, table(s, f, report_families));
}
const char *heddle_docs_choices(heddle_session *s, heddle_format f) {
  API_RETURN(const char *, NULL, s, table(s, f, report_choices));
}
static const char *operators(heddle_session *s, heddle_format f) {
  arena *a = ctx_arena(s->c);
  report *r = report_new(a);
  report_ops(r, s->c, a);
  return rendered(a, r, f);
}
const char *heddle_docs_operators(heddle_session *s, heddle_format f) {
  API_RETURN(const char *, NULL, s, operators(s, f));
}
const char *heddle_docs_diagnostics(heddle_session *s, heddle_format f) {
  API_RETURN(const char *, NULL, s, table(s, f, report_diagnostics));
}

static const char *machines(heddle_session *s, heddle_format f) {
  arena *a = ctx_arena(s->c);
  report *r = report_new(a);
  report_machines(r, s->c, a);
  return rendered(a, r, f);
}
const char *heddle_docs_machines(heddle_session *s, heddle_format f) {
  API_RETURN(const char *, NULL, s, machines(s, f));
}

opcode operator_find(heddle_session *s, const char *name) {
  const opcode op = op_named(s->c, name, strlen(name));
  if (op != OP_none) return op;
  const char *near = op_near(s->c, name, strlen(name));
  diag(s->c, E_USAGE, (loc){0}, "unknown operator '%s'", name);
  if (near) diag_hint(s->c, "did you mean '%s'?", near);
  diag_hint(s->c, "`heddle ops` lists them");
  return OP_none;
}

static const char *operator_page(heddle_session *s, const char *name, heddle_format f) {
  const opcode op = operator_find(s, name);
  if (op == OP_none) return NULL;
  arena *a = ctx_arena(s->c);
  report *r = report_new(a);
  report_op(r, a, op);
  return rendered(a, r, f);
}
const char *heddle_docs_operator(heddle_session *s, const char *name, heddle_format f) {
  API_RETURN(const char *, NULL, s, operator_page(s, name, f));
}

static const char *diagnostic_page(heddle_session *s, const char *code, heddle_format f) {
  char *upper = arena_strdup(ctx_arena(s->c), code);
  if (*upper == 'e' || *upper == 'w') *upper -= 'a' - 'A';
  diag_id id = diag_find(upper);
  if (id == DIAG_NONE) {
    diag(s->c, E_USAGE, (loc){0}, "unknown diagnostic code '%s'", code);
    diag_hint(s->c, "`heddle explain` lists them");
    return NULL;
  }
  arena *a = ctx_arena(s->c);
  report *r = report_new(a);
  report_diagnostic(r, a, id);
  return rendered(a, r, f);
}
const char *heddle_docs_diagnostic(heddle_session *s, const char *code, heddle_format f) {
  API_RETURN(const char *, NULL, s, diagnostic_page(s, code, f));
}

bool heddle_choice_get(uint32_t index, heddle_choice *out) {
  if (index >= CHOICE_COUNT) return false;
  const choice_row *r = choice_get((choice_id)index);
  *out = (heddle_choice){r->name, choice_option((choice_id)index), r->arg, choice_about((choice_id)index),
                         *r->search == '*'};
  return true;
}
