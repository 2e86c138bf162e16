// compare.c - heddle compare MODEL: runs a plan and holds what was recorded against the simulation of the same plan.
// What is said of them is the question `compare` of `heddle trace`.
#include "cli/run.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

// A recording that is to be thrown away.
static bool make_folder(char *dir, size_t size) {
  const char *tmp = getenv("TMPDIR");
  snprintf(dir, size, "%s/heddle-compare-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (mkdtemp(dir)) return true;
  fprintf(stderr, "error: %s: the folder cannot be made: %s\n  hint: --trace DIR\n", dir, strerror(errno));
  return false;
}

// The ranks are this same command, told where to record.
static bool run_recorded(cli *x, heddle_program *d, const char *dir) {
  const char **argv = calloc((size_t)x->argc + 3, sizeof *argv);
  if (!argv) return false;
  for (int k = 0; k < x->argc; k++) argv[k] = x->argv[k];
  if (!x->trace) argv[x->argc++] = "--trace", argv[x->argc++] = dir;
  x->argv = (char **)argv;
  return run_start(x, d); // what it has of argv is needed until the end
}

static bool compare(cli *x, heddle_program *d, heddle_machine *m, const char *dir) {
  heddle_result *p = heddle_result_run(d, m, &(heddle_simulate_options){.costs = x->costs, .timeline = true});
  const heddle_trace_options o = {.predicted = p, .timeline = x->output, .top = (uint32_t)x->top.i};
  return p && put(x, heddle_trace_ask(x->s, "compare", 1, &dir, &o, format_of(x)));
}

// Nothing is run.
static bool options_of_from(const cli *x) {
  const struct {
    const char *name;
    bool given;
  } o[] = {{"steps", x->run_steps.given}, {"seed", x->seed.given}, {"launcher", x->launcher},
           {"transport", x->transport},   {"trace", x->trace},     {"collectives", x->run_collectives},
           {"chunk", x->run_chunk}};
  for (size_t k = 0; k < sizeof o / sizeof *o; k++)
    if (o[k].given)
      return usage_error("leave it out", "--%s cannot be combined with --from: nothing is run", o[k].name);
  return true;
}

bool cmd_compare(cli *x) {
  char folder[4200];
  heddle_plan *b;
  heddle_program *d;
  int64_t chunk;
  if (!run_collectives_of(x, &chunk)) return false;
  heddle_machine *m = x->from && !options_of_from(x) ? NULL : machine_of(x);
  if (!m || !plan_of(x, m, &b, &d)) return false;
  if (!b) return usage_error("--plan best.plan, or --strategy 'dp=2'", "`heddle compare` needs a plan");
  d = heddle_plan_apply(b);
  if (!heddle_program_validate(d)) return false;
  if (x->from) return compare(x, d, m, x->from);
  x->quiet = true;
  if (is_rank_of_others())
    return usage_error("heddle run ... --trace DIR under the launcher, then heddle compare ... --from DIR",
                       "`heddle compare` starts its ranks itself: not under mpirun or srun");
  if (ranks_are_here()) return run_one_rank(x, m, d, heddle_plan_name(b));
  const char *dir = run_trace_of(x);
  if (!dir) ends_catch(0);
  if (!dir && !make_folder(folder, sizeof folder)) return false;
  const bool ok = run_recorded(x, d, dir ? dir : folder) && compare(x, d, m, dir ? dir : folder);
  if (!dir) folder_remove(folder);
  ends_repeat();
  return ok;
}
