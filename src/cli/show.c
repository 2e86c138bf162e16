// show.c - heddle show MODEL: what is in a model.
#include "cli/cli.h"

bool cmd_show(cli *x) {
  if (x->list) return put(x, heddle_docs_models(x->s, format_of(x)));
  if (!x->operand)
    return usage_error("`heddle show --list` lists the built-in models", "`heddle show` needs MODEL");
  heddle_program *p = model_of(x, x->train);
  heddle_optimizer o;
  if (x->train) p = optimizer_of(x, &o) ? heddle_program_train(p, &o, false) : NULL;
  return put(x, heddle_program_report(p, format_of(x)));
}
