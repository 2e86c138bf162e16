// verify.c - heddle verify MODEL: do the plan's numbers equal the model's?
#include "cli/cli.h"

bool cmd_verify(cli *x) {
  heddle_check_options o = {.seed = (uint64_t)x->seed.i, .tolerance = x->tolerance.x};
  heddle_machine *m = x->machine ? heddle_machine_load(x->s, x->machine) : NULL;
  heddle_plan *b;
  heddle_program *model;
  if ((x->machine && !m) || !plan_of(x, m, &b, &model)) return false;
  if (x->memory && !heddle_session_bytes(x->s, "--memory", x->memory, &o.memory_bytes)) return false;
  if (!b) return usage_error("--plan best.plan, or --strategy 'dp=2 tp=2'", "`heddle verify` needs a plan");
  heddle_check *k = heddle_check_run(b, &o);
  return put(x, heddle_check_report(k, format_of(x))) && heddle_check_passed(k);
}
