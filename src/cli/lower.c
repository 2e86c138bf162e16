// lower.c - heddle lower MODEL: what one rank runs.
#include "cli/cli.h"

bool cmd_lower(cli *x) {
  if (!x->rank.given) return usage_error("--rank 0", "`heddle lower` needs --rank");
  heddle_machine *m = x->machine ? heddle_machine_load(x->s, x->machine) : NULL;
  if (x->machine && !m) return false;
  const char *text = heddle_program_lower(distributed_of(x, m), (uint32_t)x->rank.i, format_of(x));
  if (text && x->output) return heddle_session_write(x->s, x->output, text);
  return put(x, text);
}
