// choices.c - heddle choices: printed from the table of choices.
#include "cli/cli.h"

bool cmd_choices(cli *x) { return put(x, heddle_docs_choices(x->s, format_of(x))); }
