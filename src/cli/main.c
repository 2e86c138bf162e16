// main.c - the heddle command: finds the command, reads its options, runs it, tells its diagnostics.
//
// Exit status: 0 done; 1 the input or the environment was at fault, standard error says how; 2 wrong usage;
// 70 a bug of Heddle. Results go to standard output, everything else to standard error; no colours.
#include "cli/cli.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define COMMAND(name, operands, least, most, groups, summary, example) bool cmd_##name(cli *x);
#include "cli/commands.def"
#undef COMMAND

const command commands[] = {
#define COMMAND(name, operands, least, most, groups, summary, example)                                       \
  {#name, operands, least, most, groups, summary, example, cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};
const int command_count = sizeof commands / sizeof *commands;

static const char *command_name(int i) { return i < command_count ? commands[i].name : NULL; }

const command *command_find(const char *name) {
  for (int i = 0; i < command_count; i++)
    if (!strcmp(commands[i].name, name)) return &commands[i];
  char hint[64];
  const char *near = nearest(name, command_name);
  snprintf(hint, sizeof hint, near ? "did you mean `heddle %s`?" : "`heddle help` lists the commands", near);
  usage_error(hint, "unknown command '%s'", name);
  return NULL;
}

static void bug(int sig) {
  static const char text[] =
      "heddle: this is a bug in Heddle; please report it with the command and its input\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) sig = 0;
  _exit(EXIT_BUG + 0 * sig);
}

// Some wrong usage shows only in the library: an optimizer or a choice that does not exist.
static bool is_usage(heddle_session *s) {
  heddle_diagnostic d;
  for (uint32_t i = 0; heddle_session_diagnostic(s, i, &d); i++)
    if (!strcmp(d.code, "E0801") || !strcmp(d.code, "E0509")) return true;
  return usage_errors > 0;
}

// What was printed must have arrived: a full disk is the user's to know.
static int finish(heddle_session *s, bool ok) {
  bool usage = is_usage(s);
  if (fflush(stdout) || ferror(stdout) || output_lost) {
    fputs("error[E0102]: cannot write standard output\n", stderr);
    ok = false;
  }
  fputs(heddle_session_messages(s), stderr);
  heddle_session_free(s);
  return ok ? EXIT_OK : usage ? EXIT_USAGE : EXIT_USER;
}

int main(int argc, char **argv) {
  signal(SIGABRT, bug);
  signal(SIGXFSZ, SIG_IGN); // a limit on the size of files is a write that fails
  if (argc < 2) {
    usage_error("`heddle help` lists the commands", "no command given");
    return EXIT_USAGE;
  }
  argc--, argv++;
  if (!strcmp(*argv, "-h")) *argv = "--help";
  if (!strcmp(*argv, "--help") || !strcmp(*argv, "--version")) *argv += 2;
  static cli x;
  x.argc = argc, x.argv = argv;
  const command *c = command_find(*argv);
  if (!c || !options_parse(&x, c, argc - 1, argv + 1)) return EXIT_USAGE;
  const bool question = c->groups & G_TRACE && x.noperands; // it has options and a help of its own
  if (x.help && !question) {
    options_help(c, stdout);
    return EXIT_OK;
  }
  if (c->groups & (G_RUN | G_PROFILE | G_COMPARE)) x.train = true;
  if (!question && !options_agree(&x)) return EXIT_USAGE;
  x.s = heddle_session_new();
  if (!x.s) {
    fputs("error: out of memory\n", stderr);
    return EXIT_USER;
  }
  return finish(x.s, (!x.operators || heddle_operators_load(x.s, x.operators)) && c->run(&x));
}
