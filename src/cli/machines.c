// machines.c - heddle machines [MACHINE]: the presets, or one machine; -o writes its text, to be changed. `probe` is the
// one that this runs on.
#include "cli/cli.h"

bool cmd_machines(cli *x) {
  const bool probe = x->operand && !strcmp(x->operand, "probe");
  if (!probe && (x->launcher || x->transport))
    return usage_error("leave it out, or heddle machines probe",
                       "--%s applies to `heddle machines probe` only",
                       x->launcher ? "launcher" : "transport");
  if (!x->operand) return put(x, heddle_docs_machines(x->s, format_of(x)));
  if (probe) return machines_probe(x);
  heddle_machine *m = heddle_machine_load(x->s, x->operand);
  return m && machine_put(x, m, heddle_machine_print(m), heddle_machine_report(m, format_of(x)));
}

bool machine_put(cli *x, heddle_machine *m, const char *text, const char *shown) {
  if (!x->output) return put(x, shown);
  return heddle_session_write(x->s, x->output, text) &&
         (!reports(x) || put(x, heddle_machine_written(m, x->output)));
}
