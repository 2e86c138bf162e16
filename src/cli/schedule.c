// schedule.c - heddle schedule NAME or FILE.csv: a schedule as CSV, or in figures and drawn; with --stages one that
// is looked for, or with a name or a file too, that one of these stages.
//
// The CSV goes to -o FILE. Figures go to standard output, unless the CSV goes there: with -o -, and where a
// schedule is asked for by name and nothing else is said.
#include "cli/cli.h"

static bool is_file(const char *name) {
  size_t n = strlen(name);
  return n >= 4 && !strcmp(name + n - 4, ".csv");
}

static bool is_there(const char *path) {
  FILE *f = fopen(path, "r");
  if (f) fclose(f);
  return f != NULL;
}

// A schedule's name is a schedule, whatever files there are.
static bool is_misnamed(cli *x) {
  if (is_file(x->operand) || heddle_schedule_named(x->operand) || !is_there(x->operand)) return false;
  return !usage_error("rename it so", "%s is a file, but its name does not end in .csv", x->operand);
}

// The CSV to `to` (NULL: nowhere), figures to standard output unless it is there.
static bool put_schedule(cli *x, heddle_schedule *s, const char *to) {
  if (!s || (to && !heddle_session_write(x->s, to, heddle_schedule_print(s)))) return false;
  return (to && !strcmp(to, "-")) || put(x, heddle_schedule_report(s, x->picture, format_of(x)));
}

static heddle_schedule *named(cli *x) {
  return heddle_schedule_load(x->s, x->operand,
                              &(heddle_schedule_options){.places = (uint32_t)x->places.i,
                                                         .chunks = (uint32_t)x->chunks.i,
                                                         .microbatches = (uint32_t)x->micro.i,
                                                         .group = (uint32_t)x->group.i,
                                                         .inference = x->inference,
                                                         .buffers = x->room});
}

static bool find(cli *x) {
  const struct {
    const char *name;
    bool given;
  } own[] = {{"pp", x->places.given},
             {"v", x->chunks.given},
             {"group", x->group.given},
             {"inference", x->inference},
             {"buffers", x->room}};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i].given)
      return usage_error("leave it out", "--%s cannot be combined with --stages: the file says what there is",
                         own[i].name);
  if (x->operand && (x->memory || x->seconds.given))
    return usage_error("leave it out, or the name", "--%s is for a search; %s is not looked for",
                       x->memory ? "memory" : "time", x->operand);
  if (x->operand && is_misnamed(x)) return false;
  if (!x->micro.given && !(x->operand && is_file(x->operand)))
    return usage_error("--mb 8", "`heddle schedule --stages` needs --mb");
  const heddle_find_options o = {.microbatches = (uint32_t)x->micro.i,
                                 .memory = x->memory,
                                 .seconds = (uint32_t)x->seconds.i,
                                 .schedule = x->operand};
  return put_schedule(x, heddle_schedule_find(x->s, x->stages, &o), x->output);
}

bool cmd_schedule(cli *x) {
  if (x->stages) return find(x);
  if (!x->operand)
    return usage_error("heddle schedule --help", "`heddle schedule` needs SCHEDULE, or --stages FILE");
  if (x->memory || x->seconds.given)
    return usage_error("add --stages FILE, or leave it out", "--%s applies to --stages only",
                       x->memory ? "memory" : "time");
  const bool file = is_file(x->operand);
  if (is_misnamed(x)) return false;
  if (!file && (!x->places.given || !x->micro.given))
    return usage_error("--pp 4 --mb 8", "`heddle schedule %s` needs --pp and --mb", x->operand);
  return put_schedule(x, named(x), x->output ? x->output : file || x->picture || x->json ? NULL : "-");
}
