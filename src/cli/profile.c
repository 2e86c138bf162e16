// profile.c - heddle profile MODEL: measures the events of a plan once, or imports what was measured elsewhere; heddle
// machines probe: describes this machine.
// Both are run by processes that a launcher has started, as those of `heddle run`.
#include "cli/cli.h"
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

// Is this process of the job that measures? If not, it has started one, which has ended: *ok.
static bool in_job(cli *x, heddle_machine *m, uint32_t ranks, heddle_transport *t, const char *file,
                   bool *ok) {
  const bool here = ranks_are_here();
  *ok = here ? ranks_join(x, m, t)
             : heddle_session_can_write(x->s, file, false) && heddle_profile_may_keep(x->s, file) &&
                   ranks_start(x, ranks < RANKS_MEASURING ? ranks : RANKS_MEASURING);
  return here && *ok;
}

static bool measured(cli *x, heddle_machine *m, heddle_transport *t, heddle_profile *p, const char *file) {
  const bool ok = p && (t->link.rank || ((!x->fit || heddle_profile_fit(p, m, file)) &&
                                         put(x, heddle_profile_report(p, format_of(x)))));
  return ended(x, t, ok);
}

static bool profile_best(cli *x, heddle_machine *m, const char *file) {
  heddle_search_options o = {.strategy = chosen_of(x),
                             .train = x->train,
                             .top = (uint32_t)x->top.i,
                             .ranks = (uint32_t)x->devices.i};
  heddle_transport t;
  bool ok;
  if (x->plan || x->annotate)
    return usage_error("leave out one of them", "--top searches: it does not go with --%s",
                       x->plan ? "plan" : "annotate");
  if (!m) return usage_error("--machine here.yaml", "--top needs --machine");
  if (!optimizer_of(x, &o.optimizer)) return false;
  if (!in_job(x, m, o.ranks ? o.ranks : heddle_machine_ranks(m), &t, file, &ok)) return ok;
  return measured(x, m, &t, heddle_profile_best(model_of(x, true), m, &o, &t, file), file);
}

static bool profile_plan(cli *x, heddle_machine *m, const char *file) {
  heddle_plan *b;
  heddle_program *d;
  heddle_transport t;
  char cores[32];
  bool ok;
  if (!plan_of(x, m, &b, &d)) return false;
  if (!b) return usage_error("--plan best.plan, or --strategy 'dp=2'", "`heddle profile` needs a plan");
  if (!heddle_program_validate(d = heddle_plan_apply(b))) return false;
  const uint32_t ranks = heddle_program_ranks(d);
  snprintf(cores, sizeof cores, "1x%u cpu-core", ranks);
  if (!m && !(m = heddle_machine_load(x->s, cores))) return false;
  if (!in_job(x, m, ranks, &t, file, &ok)) return ok;
  return measured(x, m, &t, heddle_profile_run(&d, 1, m, &t, file), file);
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
  if (x->machine && !m) return false;
  return x->top.given ? profile_best(x, m, file) : profile_plan(x, m, file);
}

bool machines_probe(cli *x) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  char name[256] = "here";
  if (!ranks_are_here())
    return (!x->output || heddle_session_can_write(x->s, x->output, false)) &&
           ranks_start(x, cores > 1 ? 2 : 1);
  heddle_transport t;
  if (!ranks_join(x, NULL, &t)) return false;
  gethostname(name, sizeof name - 1);
  const char *text = heddle_machine_probe(x->s, &t, name);
  bool ok = text != NULL;
  if (ok && !t.link.rank) {
    heddle_machine *m = x->json ? heddle_machine_parse(x->s, text) : NULL;
    ok = (m || !x->json) && machine_put(x, m, text, m ? heddle_machine_report(m, HEDDLE_JSON) : text);
  }
  return ended(x, &t, ok);
}
