// plan.c - heddle plan MODEL: searches, ranks, and writes the best plan.
#include "cli/run.h"
#include <stdlib.h>
#include <string.h>

// As a shell takes it back.
static char *put_quoted(char *at, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@%";
  if (*word && strspn(word, plain) == strlen(word)) return at + sprintf(at, " %s", word);
  at += sprintf(at, " '");
  for (; *word; word++)
    at += *word == '\'' ? sprintf(at, "'\\''") : sprintf(at, "%c", *word == '\n' ? ' ' : *word);
  return at + sprintf(at, "'");
}

// A plan file begins with how it was made: it fits only the model with the same options.
static bool write_plan(cli *x, const char *text) {
  size_t n = strlen(text) + 16;
  for (int i = 0; i < x->argc; i++) n += 4 * strlen(x->argv[i]) + 4;
  char *whole = malloc(n), *at = whole;
  if (!whole) return false;
  at += sprintf(at, "# heddle");
  for (int i = 0; i < x->argc; i++) at = put_quoted(at, x->argv[i]);
  sprintf(at, "\n%s", text);
  bool ok = heddle_session_write(x->s, x->output, whole);
  free(whole);
  return ok;
}

// A part goes into a file, and what is asked of a search is asked of the whole.
static bool part_agrees(const cli *x) {
  const char *question = x->why ? "--why" : x->what_if ? "--what-if" : x->measure.given ? "--measure" : NULL;
  if (!x->part.n || x->automatic) return true;
  if (question)
    return usage_error("leave out one of them", "%s needs a whole search, but --part evaluates a part of one",
                       question);
  return x->output || usage_error("-o part1.json", "--part needs -o FILE");
}

static bool put_part(const cli *x, heddle_search *f) {
  const char *text = heddle_search_part(f);
  if (!text || !heddle_session_write(x->s, x->output, text)) return false;
  return !strcmp(x->output, "-") || put(x, heddle_search_report(f, format_of(x)));
}

// Annotations say what the plan is: it is made, priced, and written where that is asked for.
static bool plan_annotated(cli *x, heddle_machine *m, heddle_program *model) {
  const char *search = x->part.n          ? "part"
                       : x->why           ? "why"
                       : x->what_if       ? "what-if"
                       : x->memory_limit  ? "memory-limit"
                       : x->powers_of_two ? "powers-of-two"
                       : x->top.given     ? "top"
                       : x->threads.given ? "threads"
                                          : NULL;
  heddle_plan *b;
  if (search && x->annotate)
    return usage_error("leave it out", "--%s does not apply to --annotate: nothing is searched", search);
  if (search)
    return usage_error("leave it out, or search without the annotations: --strategy ''",
                       "--%s does not apply to a model with annotations: nothing is searched", search);
  b = annotated_of(x, m, model);
  if (!b) return false;
  if (x->output && !write_plan(x, heddle_plan_print(b))) return false;
  if (x->output && !strcmp(x->output, "-")) return true;
  heddle_program *d = heddle_plan_apply(b);
  heddle_result *r = heddle_result_run(heddle_program_validate(d) ? d : NULL, m,
                                       &(heddle_simulate_options){.costs = x->costs});
  return put(x, heddle_result_report(r, format_of(x))) && heddle_result_fits(r);
}

static bool plan_automatic(cli *x, heddle_machine *m, heddle_program *model, const heddle_search_options *o) {
  const heddle_auto_options how = {.rules = x->constraints,
                                   .method = x->method,
                                   .proposals = (uint64_t)x->proposals.i,
                                   .seed = (uint64_t)x->seed.i};
  heddle_auto *f = heddle_auto_run(model, m, o, &how);
  if (!f) return false;
  if (x->output) {
    const char *text = heddle_plan_print(heddle_auto_plan(f));
    if (!text || !write_plan(x, text)) return false;
    if (!strcmp(x->output, "-")) return true;
  }
  return put(x, heddle_auto_report(f, format_of(x)));
}

// What --auto does not go with.
static bool automatic_agrees(const cli *x) {
  const char *other = x->annotate        ? "annotate"
                      : x->why           ? "why"
                      : x->what_if       ? "what-if"
                      : x->measure.given ? "measure"
                                         : NULL;
  if (x->measure.given && !x->train) return usage_error("add --train", "--measure runs training steps");
  if (x->measure.given && !strcmp(x->output ? x->output : "", "-"))
    return usage_error("-o best.plan",
                       "--measure prints what it has measured: the plan cannot go to standard output");
  const char *own = x->constraints       ? "constraints"
                    : x->method          ? "method"
                    : x->proposals.given ? "proposals"
                    : x->seed.given      ? "seed"
                                         : NULL;
  if (!x->automatic && own) return usage_error("add --auto", "--%s is for --auto", own);
  if (x->method && !strcmp(x->method, "exact") && (x->proposals.given || x->seed.given))
    return usage_error("--method mcmc", "--%s is of Markov chains, which --method exact does without",
                       x->proposals.given ? "proposals" : "seed");
  if (x->automatic && other)
    return usage_error("leave out one of them", "--%s does not go with --auto", other);
  return true;
}

bool cmd_plan(cli *x) {
  heddle_search_options o = {.strategy = chosen_of(x),
                             .ranks = (uint32_t)x->devices.i,
                             .powers_of_two = x->powers_of_two,
                             .train = x->train,
                             .top = x->top.given ? (uint32_t)x->top.i : 10,
                             .threads = (int)x->threads.i,
                             .costs = x->costs,
                             .part = x->part.i,
                             .parts = x->part.n};
  if (!part_agrees(x) || !automatic_agrees(x)) return false;
  if (x->memory_limit && !heddle_session_bytes(x->s, "--memory-limit", x->memory_limit, &o.memory_bytes))
    return false;
  if (!optimizer_of(x, &o.optimizer)) return false;
  heddle_machine *m = machine_of(x);
  heddle_program *model = m ? model_of(x, x->train) : NULL;
  if (x->annotate || (!x->automatic && !o.strategy && heddle_program_annotated(model)))
    return model && plan_annotated(x, m, model);
  if (x->automatic) return model && plan_automatic(x, m, model, &o);
  heddle_search *f = heddle_search_run(model, m, &o);
  if (!f) return false;
  if (x->part.n) return put_part(x, f);
  uint32_t best = 0;
  if (x->measure.given && !plans_measure(x, f, &best)) return false;
  if (x->output) {
    const char *text = heddle_plan_print(heddle_search_plan(f, best));
    if (!text || !write_plan(x, text)) return false;
    if (!strcmp(x->output, "-")) return true; // nothing else goes where the plan went
  }
  if (!x->why && !x->what_if) return put(x, heddle_search_report(f, format_of(x)));
  const heddle_search_questions q = {.why = x->why, .what_if = x->what_if};
  return put(x, heddle_search_answer(f, &q, format_of(x)));
}
