// explain.c - heddle explain [CODE]: printed from the table of diagnostics.
#include "cli/cli.h"

bool cmd_explain(cli *x) {
  return put(x, x->operand ? heddle_docs_diagnostic(x->s, x->operand, format_of(x))
                           : heddle_docs_diagnostics(x->s, format_of(x)));
}
