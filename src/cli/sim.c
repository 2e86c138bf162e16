// sim.c - heddle sim MODEL: time and memory of a model under a plan, or of a distributed program as it is.
#include "cli/cli.h"

bool cmd_sim(cli *x) {
  heddle_machine *m = machine_of(x);
  heddle_program *d = m ? distributed_of(x, m) : NULL;
  heddle_result *r = heddle_result_run(d, m, &(heddle_simulate_options){.flat = x->flat, .costs = x->costs});
  return put(heddle_result_report(r, format_of(x)));
}
