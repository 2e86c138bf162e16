// plan.c - heddle plan MODEL: searches, ranks, and writes the best plan.
#include "cli/cli.h"
#include <stdlib.h>

// A plan file begins with how it was made: it fits only the model with the same options.
static bool write_plan(cli *x, const char *text) {
  size_t n = strlen(text) + 16;
  for (int i = 0; i < x->argc; i++) n += strlen(x->argv[i]) + 1;
  char *whole = malloc(n), *at = whole;
  if (!whole) return false;
  at += sprintf(at, "# heddle");
  for (int i = 0; i < x->argc; i++) at += sprintf(at, " %s", x->argv[i]);
  sprintf(at, "\n%s", text);
  bool ok = heddle_session_write(x->s, x->output, whole);
  free(whole);
  return ok;
}

bool cmd_plan(cli *x) {
  heddle_search_options o = {.strategy = chosen_of(x),
                             .ranks = (uint32_t)x->devices.i,
                             .powers_of_two = x->powers_of_two,
                             .train = x->train,
                             .top = x->top.given ? (uint32_t)x->top.i : 10,
                             .threads = (int)x->threads.i,
                             .costs = x->costs};
  if (x->memory_limit && !heddle_session_bytes(x->s, "--memory-limit", x->memory_limit, &o.memory_bytes))
    return false;
  if (!optimizer_of(x, &o.optimizer)) return false;
  heddle_machine *m = machine_of(x);
  heddle_search *f = heddle_search_run(m ? model_of(x, x->train) : NULL, m, &o);
  if (!f) return false;
  if (x->output) {
    const char *text = heddle_plan_print(heddle_search_plan(f, 0));
    if (!text || !write_plan(x, text)) return false;
    if (!strcmp(x->output, "-")) return true; // nothing else goes where the plan went
  }
  if (!x->why && !x->what_if) return put(heddle_search_report(f, format_of(x)));
  const heddle_search_questions q = {.why = x->why, .what_if = x->what_if};
  return put(heddle_search_answer(f, &q, format_of(x)));
}
