// profile.c - heddle profile MODEL: measures the events of a plan once, or imports what was measured elsewhere; heddle
// machines probe: describes this machine.
// Both are run by processes that a launcher has started, as those of `heddle run`.
#include "cli/cli.h"
#include <stdlib.h>
#include <unistd.h>

static bool ended(cli *x, heddle_transport *t, bool ok) {
  if (!ok) fputs(heddle_session_messages(x->s), stderr), heddle_session_clear(x->s);
  fflush(stdout);
  t->close(t->link.arg, !ok);
  return ok;
}

// --import: of the plan, where one is named, the report says what has no times.
static bool profile_import(cli *x, const char *file) {
  heddle_machine *m = x->machine ? heddle_machine_load(x->s, x->machine) : NULL;
  heddle_program *d = NULL;
  if (x->operand && !x->machine)
    return usage_error("add --machine, as the program was exported for",
                       "--import of a plan's times needs --machine");
  if ((x->machine && !m) || (x->operand && !(d = distributed_of(x, m)))) return false;
  return put(x, heddle_profile_report(heddle_profile_import(x->s, x->import, file, m, d), format_of(x)));
}

// The plans whose events are asked for: the one that is named, or the best ones of a search.
typedef struct {
  heddle_program **v;
  uint32_t n, ranks; // ranks: of the largest
} programs;

static bool add_program(programs *to, heddle_plan *b) {
  heddle_program *d = b ? heddle_plan_apply(b) : NULL;
  if (!heddle_program_validate(d)) return false;
  const uint32_t ranks = heddle_program_ranks(d);
  if (ranks > to->ranks) to->ranks = ranks;
  to->v[to->n++] = d;
  return true;
}

static bool best_programs(cli *x, heddle_machine *m, programs *to) {
  heddle_search_options o = {.strategy = chosen_of(x),
                             .train = x->train,
                             .top = (uint32_t)x->top.i,
                             .threads = 1, // of each rank, and all ranks search
                             .ranks = (uint32_t)x->devices.i};
  if (x->plan || x->annotate)
    return usage_error("leave out one of them", "--top searches: it does not go with --%s",
                       x->plan ? "plan" : "annotate");
  if (!m) return usage_error("--machine here.yaml", "--top needs --machine");
  if (!optimizer_of(x, &o.optimizer)) return false;
  heddle_program *model = model_of(x, true);
  heddle_search *f = model ? heddle_search_run(model, m, &o) : NULL;
  const uint32_t found = f ? heddle_search_count(f) : 0, n = found < o.top ? found : o.top;
  to->v = calloc((size_t)n + 1, sizeof *to->v);
  if (!to->v) return usage_error(NULL, "out of memory");
  for (uint32_t k = 0; k < n; k++)
    if (!add_program(to, heddle_search_plan(f, k))) return false;
  return n;
}

static bool named_program(cli *x, heddle_machine *m, programs *to) {
  heddle_plan *b;
  heddle_program *d;
  if (!plan_of(x, m, &b, &d)) return false;
  if (!b) return usage_error("--plan best.plan, or --strategy 'dp=2'", "`heddle profile` needs a plan");
  to->v = calloc(1, sizeof *to->v);
  return to->v ? add_program(to, b) : usage_error(NULL, "out of memory");
}

static bool measure(cli *x, heddle_machine *m, const programs *d, const char *file) {
  char cores[32];
  snprintf(cores, sizeof cores, "1x%u cpu-core", d->ranks);
  if (!m) m = heddle_machine_load(x->s, cores);
  if (!m) return false;
  if (!ranks_are_here()) return ranks_start(x, d->ranks < RANKS_MEASURING ? d->ranks : RANKS_MEASURING);
  heddle_transport t;
  if (!ranks_join(x, m, &t)) return false;
  heddle_profile *p = heddle_profile_run(d->v, d->n, m, &t, file);
  if (p && x->fit && !t.link.rank && !heddle_profile_fit(p, m, file)) return ended(x, &t, false);
  return ended(x, &t, p && (t.link.rank || put(x, heddle_profile_report(p, format_of(x)))));
}

bool cmd_profile(cli *x) {
  const char *file = x->output ? x->output : "profile.db";
  if (x->import) return profile_import(x, file);
  if (!x->operand)
    return usage_error("heddle profile MODEL --plan best.plan, or --import FILE",
                       "`heddle profile` needs MODEL");
  if (x->profiles && !x->machine)
    return usage_error("add --machine, as `heddle sim` has it", "--profiles needs --machine");
  heddle_machine *m = x->machine ? machine_of(x) : NULL;
  programs d = {0};
  if (x->machine && !m) return false;
  const bool ok =
      (x->top.given ? best_programs(x, m, &d) : named_program(x, m, &d)) && measure(x, m, &d, file);
  free(d.v);
  return ok;
}

bool machines_probe(cli *x) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  char name[256] = "here";
  if (!ranks_are_here()) return ranks_start(x, cores > 1 ? 2 : 1);
  heddle_transport t;
  if (!ranks_join(x, NULL, &t)) return false;
  gethostname(name, sizeof name - 1);
  const char *text = heddle_machine_probe(x->s, &t, name);
  bool ok = text != NULL;
  if (ok && !t.link.rank) ok = x->output ? heddle_session_write(x->s, x->output, text) : put(x, text);
  return ended(x, &t, ok);
}
