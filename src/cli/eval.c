// eval.c - heddle eval MODEL: the reference answer, from random inputs or from .npy files.
#include "cli/cli.h"

bool cmd_eval(cli *x) {
  if (x->random.given == (x->inputs != NULL))
    return usage_error("--random 7, or --inputs DIR with a file NAME.npy for every input",
                       "`heddle eval` needs inputs");
  if (x->output && !strcmp(x->output, "-"))
    return usage_error("-o answer",
                       "`heddle eval` writes a folder of arrays; it cannot write to standard output");
  heddle_program *p = model_of(x, x->train);
  heddle_optimizer o;
  if (x->train) p = optimizer_of(x, &o) ? heddle_program_train(p, &o, x->gradients) : NULL;
  heddle_tensors *in =
      x->inputs ? heddle_tensors_read(p, x->inputs) : heddle_tensors_random(p, (uint64_t)x->random.i);
  heddle_tensors *out = heddle_tensors_eval(p, in, x->wide);
  if (out && x->output && !heddle_tensors_write(out, x->output)) return false;
  return put(x, heddle_tensors_report(out, format_of(x)));
}
