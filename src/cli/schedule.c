// schedule.c - heddle schedule NAME or FILE.csv: a schedule as CSV, or in figures and drawn.
//
// The CSV goes to -o FILE. Figures go to standard output, unless the CSV goes there: with -o -, and where a
// schedule is asked for by name and nothing else is said.
#include "cli/cli.h"

static bool is_file(const char *name) {
  size_t n = strlen(name);
  return n >= 4 && !strcmp(name + n - 4, ".csv");
}

bool cmd_schedule(cli *x) {
  const bool file = is_file(x->operand);
  if (!file && (!x->places.given || !x->micro.given))
    return usage_error("--pp 4 --mb 8", "`heddle schedule %s` needs --pp and --mb", x->operand);
  heddle_schedule *s = heddle_schedule_load(x->s, x->operand,
                                            &(heddle_schedule_options){.places = (uint32_t)x->places.i,
                                                                       .chunks = (uint32_t)x->chunks.i,
                                                                       .microbatches = (uint32_t)x->micro.i,
                                                                       .group = (uint32_t)x->group.i,
                                                                       .inference = x->inference});
  if (!s) return false;
  const char *to = x->output ? x->output : file || x->picture || x->json ? NULL : "-";
  if (to && !heddle_session_write(x->s, to, heddle_schedule_print(s))) return false;
  return (to && !strcmp(to, "-")) || put(heddle_schedule_report(s, x->picture, format_of(x)));
}
