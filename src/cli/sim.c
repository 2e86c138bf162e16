// sim.c - heddle sim MODEL: time and memory of a model under a plan, or of a distributed program as it is.
// What does not fit is shown all the same, with status 1.
#include "cli/cli.h"

static bool put_stage_times(cli *x, heddle_program *d) {
  const char *text = heddle_program_stage_times(d);
  if (text) return heddle_session_write(x->s, x->stage_times, text);
  return usage_error("add --strategy, or a plan file",
                     "--stage-times needs a plan: this program says nothing of stages");
}

bool cmd_sim(cli *x) {
  heddle_machine *m = machine_of(x);
  heddle_program *d = m ? distributed_of(x, m) : NULL;
  heddle_simulate_options o = {.flat = x->flat, .costs = x->costs, .timeline = x->timeline != NULL};
  if (d && x->stage_times && !put_stage_times(x, d)) return false;
  const bool taken = d && x->stage_times && !strcmp(x->stage_times, "-"); // standard output
  heddle_result *r = heddle_result_run(d, m, &o);
  if (r && x->timeline && !heddle_result_timeline(r, x->timeline)) return false;
  if (r && (taken || (x->timeline && !strcmp(x->timeline, "-")))) return heddle_result_fits(r);
  return put(x, heddle_result_report(r, format_of(x))) && heddle_result_fits(r);
}
