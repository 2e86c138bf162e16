// ops.c - heddle ops [OPERATOR]: printed from the table of operators.
#include "cli/cli.h"

bool cmd_ops(cli *x) {
  return put(x->operand ? heddle_docs_operator(x->s, x->operand, format_of(x))
                        : heddle_docs_operators(x->s, format_of(x)));
}
