// sim.c - heddle sim MODEL: time and memory of a model under a plan, or of a distributed program as it is.
// What does not fit is shown all the same, with status 1.
#include "cli/cli.h"

bool cmd_sim(cli *x) {
  heddle_machine *m = machine_of(x);
  heddle_program *d = m ? distributed_of(x, m) : NULL;
  heddle_simulate_options o = {.flat = x->flat, .costs = x->costs, .timeline = x->timeline != NULL};
  heddle_result *r = heddle_result_run(d, m, &o);
  if (r && x->timeline && !heddle_result_timeline(r, x->timeline)) return false;
  if (r && x->timeline && !strcmp(x->timeline, "-")) return heddle_result_fits(r); // standard output is taken
  return put(x, heddle_result_report(r, format_of(x))) && heddle_result_fits(r);
}
