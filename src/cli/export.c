// export.c - heddle export MODEL: a plan as a program of another framework.
#include "cli/cli.h"

bool cmd_export(cli *x) {
  heddle_machine *m = x->machine ? heddle_machine_load(x->s, x->machine) : NULL;
  if (x->machine && !m) return false;
  if (x->arrays && x->to && strcmp(x->to, "pytorch"))
    return usage_error("--to pytorch", "--arrays does not apply to --to %s", x->to);
  heddle_program *d = distributed_of(x, m);
  const char *text = heddle_program_export(d, x->to ? x->to : "pytorch", m);
  if (text && x->arrays && !heddle_tensors_write(heddle_tensors_initial(d, (uint64_t)x->seed.i), x->arrays))
    return false;
  if (text && x->output && !heddle_session_write(x->s, x->output, text)) return false;
  if (text && reports(x))
    text = heddle_program_exported(d, x->to ? x->to : "pytorch", m, x->output, x->arrays);
  return x->output && !reports(x) ? text != NULL : put(x, text);
}
