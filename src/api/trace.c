// trace.c - questions about traces behind heddle.h.
#include "api/internal.h"

bool heddle_question_get(uint32_t index, heddle_question *out) {
  const trace_question *q = trace_question_get(index);
  if (q) *out = (heddle_question){q->id, q->operands, q->options, q->about, q->examples, q->answers};
  return q;
}

static bool option_named(const char *options, const char *name) {
  const size_t n = strlen(name);
  for (const char *p = options; (p = strstr(p, name)); p += n)
    if ((p == options || p[-1] == ',') && (!p[n] || p[n] == ',')) return true;
  return false;
}

static const char *ask(heddle_session *s, const char *question, u32 n, const char *const *paths,
                       const heddle_trace_options *o, heddle_format f) {
  const trace_question *q = trace_question_find(s->c, question);
  if (!q) return NULL;
  arena *a = ctx_arena(s->c);
  heddle_result *p = o->predicted;
  prediction predicted;
  if (p)
    predicted = (prediction){
        &p->r, p->m->m, p->p->name, p->p->plan, program_digest(p->p), report_types(a, p->p->p, ROLE_WEIGHT)};
  if (option_named(q->options, "plan") && (!p || !p->r.timeline)) {
    diag(s->c, E_USAGE, (loc){0}, "`%s` needs what is predicted: a result with a timeline", question);
    return NULL;
  }
  report *r = report_new(a);
  const trace_ask of = {.npaths = n,
                        .path = paths,
                        .output = o->output,
                        .top = o->top,
                        .steps = o->steps,
                        .nset = o->nset,
                        .set = o->set,
                        .to = o->to,
                        .memory_bytes = o->memory_bytes,
                        .npasses = o->npasses,
                        .pass = tuning_passes(s->c, a, o->npasses, o->passes),
                        .use_passes = o->use_passes,
                        .timeline = o->timeline,
                        .ranks = o->ranks,
                        .machine = o->machine ? o->machine->m : NULL,
                        .predicted = p ? &predicted : NULL};
  return q->answer(r, s->c, a, &of) ? rendered(a, r, f) : NULL;
}

const char *heddle_trace_ask(heddle_session *s, const char *question, uint32_t n, const char *const *paths,
                             const heddle_trace_options *o, heddle_format f) {
  static const heddle_trace_options none;
  if (!s || !question || (n && !paths)) return NULL;
  API_RETURN(const char *, NULL, s, ask(s, question, n, paths, o ? o : &none, f));
}
