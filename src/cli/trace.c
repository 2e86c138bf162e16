// trace.c - heddle trace QUESTION PATH...: an answer from the traces of a job.
#include "cli/cli.h"

static bool takes(const char *options, const char *name) {
  const size_t n = strlen(name);
  for (const char *p = options; (p = strstr(p, name)); p += n)
    if ((p == options || p[-1] == ',') && (!p[n] || p[n] == ',')) return true;
  return false;
}

static bool trace_agree(const cli *x, const char *question) {
  const struct {
    const char *name;
    bool given;
  } o[] = {{"output", x->output}, {"top", x->top.given}, {"steps", x->steps},
           {"set", x->set.n},     {"to", x->to},         {"memory", x->memory}};
  heddle_question q;
  for (uint32_t k = 0; heddle_question_get(k, &q); k++) {
    if (strcmp(q.name, question)) continue;
    for (size_t i = 0; i < sizeof o / sizeof *o; i++)
      if (o[i].given && !takes(q.options, o[i].name))
        return usage_error("leave it out", "`heddle trace %s` has no option --%s", question, o[i].name);
  }
  return true;
}

bool cmd_trace(cli *x) {
  if (!trace_agree(x, x->operands[0])) return false;
  heddle_trace_options o = {.output = x->output,
                            .top = (uint32_t)x->top.i,
                            .steps = x->steps,
                            .nset = x->set.n,
                            .set = x->set.v,
                            .to = x->to};
  if (x->memory && !heddle_session_bytes(x->s, "--memory", x->memory, &o.memory_bytes)) return false;
  return put(heddle_trace_ask(x->s, x->operands[0], x->noperands - 1, x->operands + 1, &o, format_of(x)));
}
