// import.c - heddle import MODEL: a model, or its training step, as program text.
#include "cli/cli.h"

bool cmd_import(cli *x) {
  heddle_program *p = model_of(x, x->train);
  heddle_optimizer o;
  if (x->train) p = optimizer_of(x, &o) ? heddle_program_train(p, &o, x->gradients) : NULL;
  const char *text = heddle_program_print(p);
  if (!text) return false;
  if (!x->output && !x->json) return put(x, text);
  if (x->output && !heddle_session_write(x->s, x->output, text)) return false;
  return !reports(x) || put(x, heddle_program_report(p, HEDDLE_JSON));
}
