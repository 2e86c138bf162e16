// trace.c - heddle trace QUESTION PATH...: an answer from the traces of a job.
#include "cli/cli.h"

static bool question_find(const char *name, heddle_question *q) {
  for (uint32_t k = 0; heddle_question_get(k, q); k++)
    if (!strcmp(q->name, name)) return true;
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
  char hint[96];
  heddle_question q;
  const bool known = question_find(x->operands[0], &q); // the library says what is wrong with another
  if (known && x->help) return question_help(command_find("trace"), &q, stdout), true;
  if ((known && !question_agrees(&q)) || !options_agree(x)) return false;
  const bool plan = known && question_takes(&q, "plan");
  if (x->noperands < 2 && known) {
    snprintf(hint, sizeof hint, "`heddle trace %s --help` explains it", q.name);
    return usage_error(hint, "`heddle trace %s` needs %s", q.name, q.operands);
  }
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
      x, heddle_trace_ask(x->s, x->operands[0], x->noperands - 1 - plan, x->operands + 1, &o, format_of(x)));
}
