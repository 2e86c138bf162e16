// cli.h - what the commands share: the options, parsed, and the ways from options to handles.
//
// Idea: options and commands are two tables. Parsing, help, suggestions and completion read them; a command
// is one function in a file of its own that gets what was parsed.
#ifndef HEDDLE_CLI_H
#define HEDDLE_CLI_H
#include "heddle.h"
#include <stdio.h>
#include <string.h>

enum { EXIT_OK = 0, EXIT_USER = 1, EXIT_USAGE = 2, EXIT_BUG = 70 };
enum { DIMS_LIMIT = 64 };
enum {
  G_MODEL = 1 << 0,
  G_LIST = 1 << 1,
  G_TRAIN = 1 << 2,
  G_IMPORT = 1 << 3,
  G_CHOICE = 1 << 4,
  G_PLAN = 1 << 5,
  G_MACHINE = 1 << 6,
  G_SEARCH = 1 << 7,
  G_EVAL = 1 << 8,
  G_VERIFY = 1 << 9,
  G_RANK = 1 << 10,
  G_TIME = 1 << 11,
  G_OUTPUT = 1 << 12,
  G_ALL = 1 << 13,
  G_SHAPE = 1 << 14,
  G_RANKING = 1 << 15,
  G_PATTERN = 1 << 16,
  G_TRACE = 1 << 17,
  G_RUN = 1 << 18,
  G_EXPORT = 1 << 19,
  G_JOIN = 1 << 20,
  G_PROFILE = 1 << 21,
  G_COMPARE = 1 << 22
};

typedef bool CLI_FLAG;
typedef const char *CLI_TEXT; // NULL: not given
typedef struct {
  bool given;
  int64_t i;
} CLI_COUNT, CLI_FEW, CLI_SEED, CLI_INDEX;
typedef struct {
  bool given;
  double x;
} CLI_REAL, CLI_ABOVE;
typedef struct {
  uint32_t i, n; // i of n, from 1; 0: not given
} CLI_PART;
typedef struct {
  uint32_t n;
  heddle_dim v[DIMS_LIMIT];
} CLI_DIMS;
typedef struct {
  uint32_t n;
  heddle_fix v[DIMS_LIMIT];
} CLI_FIXES;
typedef struct {
  uint32_t n;
  const char *v[DIMS_LIMIT];
} CLI_TEXTS;

typedef struct {
  heddle_session *s;
  const char *operand; // the last; NULL: none
  const char **operands;
  uint32_t noperands;
  int argc; // the words after `heddle`
  char **argv;
  char *choices;      // a strategy, made of the options that are choices; NULL: none was given
  const char *choice; // the first of them
  char *line;         // --strategy and the choices
  bool quiet;         // a run says nothing of its steps, and writes no weights
#define OPT(name, field, kind, groups, arg, help) CLI_##kind field;
#define ALSO(name, field, kind, groups, arg, help)
#include "cli/options.def"
#undef OPT
#undef ALSO
} cli;

typedef struct {
  const char *name, *operands;
  int least, most;
  unsigned groups;
  const char *summary, *example;
  bool (*run)(cli *x); // false: diagnostics say why
} command;
extern const command commands[];
extern const int command_count;
const command *command_find(const char *name);

// ---- options.c -----------------------------------------------------------------------------------------
// Reads the words after the command. False: wrong usage, said on standard error.
bool options_parse(cli *x, const command *c, int argc, char **argv);
void options_help(const command *c, FILE *to);
// Of one question of `heddle trace`: its help, and whether it takes every option that was given (false: wrong usage, said).
void question_help(const command *c, const heddle_question *q, FILE *to);
bool question_agrees(const heddle_question *q);
bool question_takes(const heddle_question *q,
                    const char *option);       // by its own name; "plan": a model and its plan
void options_json(const command *c, FILE *to); // the texts of the tables need no escapes
const char *nearest(const char *word, const char *(*name)(int i)); // name: NULL ends; NULL: nothing is near
extern bool output_lost; // ranks printed what could not be written (launch.c)
extern int usage_errors; // so far
bool usage_error(const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); // always false

// ---- handles.c: from options to handles; NULL and diagnostics -----------------------------------------
heddle_format format_of(const cli *x);
heddle_program *model_of(cli *x, bool loss); // of the operand
bool optimizer_of(cli *x, heddle_optimizer *o);
bool options_agree(cli *x); // among each other; false: wrong usage, said
heddle_machine *machine_of(cli *x);
const char *chosen_of(cli *x); // --strategy and the options that are choices; NULL: nothing was chosen
// The plan of --plan, of the fixed choices or of annotations; where none of them is given, the model.
bool plan_of(cli *x, heddle_machine *m, heddle_plan **out, heddle_program **model);
// The plan of --annotate, or of what the model's own text says. It holds the model from here on.
heddle_plan *annotated_of(cli *x, heddle_machine *m, heddle_program *model);
heddle_program *distributed_of(cli *x, heddle_machine *m); // under that plan, or the program as it is
// To standard output, behind the warnings so far, which go to standard error; false for NULL. With errors all that is
// told comes last.
bool put(const cli *x, const char *text);

// ---- run.c: a plan, run; processes that are joined ---------------------------------------------------------
enum { RANKS_MEASURING = 8 };
bool ranks_are_here(void); // has a launcher started this process?
// m: what their devices are, of which a processor's cores say with how many threads a rank computes; NULL: not said.
bool ranks_join(cli *x, const heddle_machine *m, heddle_transport *t);
bool ranks_start(cli *x, uint32_t n); // this command again, n times; false: said
bool run_one_rank(cli *x, const heddle_machine *m, heddle_program *d, const char *plan);
// Starts the ranks as this same command, and waits for them. False, and said: the job did not come to its end.
bool run_start(cli *x, heddle_program *d);
bool run_collectives_of(const cli *x, int64_t *chunk);
const char *run_trace_of(const cli *x); // --trace, or $HEDDLE_TRACE; NULL: nothing is recorded
bool machines_probe(cli *x);            // profile.c
// The text to --output, or what is shown; with both --output and --json that it was written (machines.c).
bool machine_put(cli *x, heddle_machine *m, const char *text, const char *shown);
// Is a report due? Not where standard output has the text itself.
static inline bool reports(const cli *x) { return x->json && (!x->output || strcmp(x->output, "-") != 0); }
#endif
