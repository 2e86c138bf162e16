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
  } o[] = {{"output", x->output},     {"top", x->top.given}, {"steps", x->steps},
           {"set", x->set.n},         {"to", x->to},         {"ranks", x->ranks.given},
           {"timeline", x->timeline}, {"memory", x->memory}, {"passes", x->passes}};
  heddle_question q;
  for (uint32_t k = 0; heddle_question_get(k, &q); k++) {
    if (strcmp(q.name, question)) continue;
    for (size_t i = 0; i < sizeof o / sizeof *o; i++)
      if (o[i].given && !takes(q.options, o[i].name))
        return usage_error("leave it out", "`heddle trace %s` has no option --%s", question, o[i].name);
    if (x->machine && !takes(q.options, "plan") && !takes(q.options, "machine"))
      return usage_error("leave it out", "`heddle trace %s` has no option --machine", question);
    if (x->planning && !takes(q.options, "plan"))
      return usage_error("leave it out", "`heddle trace %s` has no option --%s", question, x->planning);
  }
  return true;
}

static bool needs_plan(const char *question) {
  heddle_question q;
  for (uint32_t k = 0; heddle_question_get(k, &q); k++)
    if (!strcmp(q.name, question)) return takes(q.options, "plan");
  return false;
}

// The model is the last operand; what its plan takes is simulated as `heddle sim` does.
static heddle_result *predicted_of(cli *x) {
  if (x->noperands < 3) {
    usage_error("heddle trace compare DIR MODEL --plan FILE --machine M", "the model is missing");
    return NULL;
  }
  heddle_machine *m = machine_of(x);
  heddle_program *d = m ? distributed_of(x, m) : NULL;
  return heddle_result_run(d, m, &(heddle_simulate_options){.costs = x->costs, .timeline = true});
}

bool cmd_trace(cli *x) {
  if (!trace_agree(x, x->operands[0])) return false;
  const bool plan = needs_plan(x->operands[0]);
  heddle_trace_options o = {.output = x->output,
                            .top = (uint32_t)x->top.i,
                            .steps = x->steps,
                            .nset = x->set.n,
                            .set = x->set.v,
                            .to = x->to,
                            .timeline = x->timeline,
                            .use_passes = x->passes,
                            .ranks = (uint32_t)x->ranks.i};
  if (x->memory && !heddle_session_bytes(x->s, "--memory", x->memory, &o.memory_bytes)) return false;
  if (x->machine && !plan && !(o.machine = machine_of(x))) return false;
  if (plan && !(o.predicted = predicted_of(x))) return false;
  return put(
      heddle_trace_ask(x->s, x->operands[0], x->noperands - 1 - plan, x->operands + 1, &o, format_of(x)));
}
