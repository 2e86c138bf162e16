// handles.c - from options to handles: what several commands ask for in the same words.
#include "cli/cli.h"
#include <stdlib.h>

heddle_format format_of(const cli *x) { return x->json ? HEDDLE_JSON : HEDDLE_TEXT; }

bool put(const cli *x, const char *text) {
  if (!text) return false;
  if (!heddle_session_errors(x->s)) {
    fflush(stdout);
    fputs(heddle_session_messages(x->s), stderr);
    heddle_session_clear(x->s);
  }
  fputs(text, stdout);
  return true;
}

heddle_program *model_of(cli *x, bool loss) {
  return heddle_program_load(x->s, x->operand,
                             &(heddle_load_options){.batch = x->batch.i,
                                                    .seq = x->seq.i,
                                                    .vocab = x->vocab.i,
                                                    .dtype = x->dtype,
                                                    .headless = x->headless,
                                                    .loss = loss,
                                                    .ndims = x->dims.n,
                                                    .dims = x->dims.v,
                                                    .nfix = x->fixes.n,
                                                    .fix = x->fixes.v});
}

bool optimizer_of(cli *x, heddle_optimizer *o) {
  if (!heddle_optimizer_find(x->s, x->optimizer ? x->optimizer : "sgd", o)) return false;
  const struct {
    const char *name;
    bool given;
    double of;
    const char *hint;
  } own[] = {{"momentum", x->momentum.given, o->momentum, "--optimizer momentum"},
             {"beta1", x->beta1.given, o->beta1, "--optimizer adam or adamw"},
             {"beta2", x->beta2.given, o->beta2, "--optimizer adam, adamw or adafactor"},
             {"eps", x->eps.given, o->eps, "--optimizer adam, adamw or adafactor"}};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i].given && own[i].of == 0)
      return usage_error(own[i].hint, "--%s does not apply to the optimizer %s", own[i].name, o->name);
  o->no_master_weights = x->no_master;
  if (x->lr.given) o->lr = x->lr.x;
  if (x->momentum.given) o->momentum = x->momentum.x;
  if (x->beta1.given) o->beta1 = x->beta1.x;
  if (x->beta2.given) o->beta2 = x->beta2.x;
  if (x->eps.given) o->eps = x->eps.x;
  if (x->weight_decay.given) o->weight_decay = x->weight_decay.x;
  return true;
}

heddle_machine *machine_of(cli *x) {
  if (x->machine) {
    heddle_machine *m = heddle_machine_load(x->s, x->machine);
    if (m && (!x->profiles || heddle_machine_profiles(m, x->profiles)) &&
        (!x->predictor || heddle_machine_predictor(m, x->predictor)))
      return m;
    heddle_machine_free(m);
    return NULL;
  }
  usage_error("--machine dgx-2; `heddle machines` lists the presets", "--machine is missing");
  return NULL;
}

// ---- options that have no use --------------------------------------------------------------------------
// Silence would be a wrong answer: of a plan file nothing can be changed, and without --train nothing is
// trained.
bool options_agree(cli *x) {
  const struct {
    const char *name;
    bool given, training;
  } o[] = {{"strategy", x->strategy, false},
           {x->choice, x->choice, false},
           {"devices", x->devices.given, false},
           {"optimizer", x->optimizer, true},
           {"lr", x->lr.given, true},
           {"momentum", x->momentum.given, true},
           {"beta1", x->beta1.given, true},
           {"beta2", x->beta2.given, true},
           {"eps", x->eps.given, true},
           {"weight-decay", x->weight_decay.given, true},
           {"no-master-weights", x->no_master, true},
           {"gradients", x->gradients, true}};
  if (x->annotate && x->plan)
    return usage_error("give one of them", "--plan cannot be combined with --annotate");
  for (size_t i = 0; i < sizeof o / sizeof *o; i++) {
    if (o[i].given && x->plan)
      return usage_error("leave it out, or edit the plan file (docs/plans.md)",
                         "--%s cannot be combined with --plan: the plan file decides it", o[i].name);
    if (o[i].given && o[i].training && !x->train)
      return usage_error("add --train", "--%s applies to training only; this is inference", o[i].name);
  }
  return true;
}

// ---- plans --------------------------------------------------------------------------------------------
const char *chosen_of(cli *x) {
  if (!x->strategy || !x->choices) return x->strategy ? x->strategy : x->choices;
  size_t n = strlen(x->strategy) + strlen(x->choices) + 2;
  if (!x->line) x->line = malloc(n);
  if (x->line) snprintf(x->line, n, "%s %s", x->strategy, x->choices);
  return x->line;
}

// The plan holds the model from here on.
static heddle_plan *held_by_plan(heddle_plan *b, heddle_program *model) {
  heddle_program_free(model);
  return b;
}

heddle_plan *annotated_of(cli *x, heddle_machine *m, heddle_program *model) {
  heddle_plan_options o = {
      .train = x->train, .machine = m, .costs = x->costs, .devices = (uint32_t)x->devices.i};
  if (x->annotate) o.strategy = chosen_of(x);
  if (!optimizer_of(x, &o.optimizer)) return NULL;
  heddle_plan *b = held_by_plan(x->annotate ? heddle_plan_annotated_read(model, x->annotate, &o)
                                            : heddle_plan_annotated(model, NULL, NULL, 0, &o),
                                model);
  return heddle_plan_on(b, m, x->costs) ? b : NULL;
}

static heddle_plan *chosen(cli *x, heddle_machine *m, heddle_program *model, const char *strategy) {
  heddle_plan_options o = {
      .train = x->train, .machine = m, .costs = x->costs, .devices = (uint32_t)x->devices.i};
  if (!optimizer_of(x, &o.optimizer)) return NULL;
  heddle_plan *b = held_by_plan(heddle_plan_make(model, strategy, &o), model);
  return heddle_plan_on(b, m, x->costs) ? b : NULL;
}

static heddle_plan *read(cli *x, heddle_machine *m) {
  bool train = false;
  if (!heddle_plan_trains(x->s, x->plan, &train)) return NULL;
  heddle_program *model = model_of(x, train);
  heddle_plan *b = held_by_plan(heddle_plan_read(model, x->plan), model);
  return heddle_plan_on(b, m, x->costs) ? b : NULL;
}

bool plan_of(cli *x, heddle_machine *m, heddle_plan **out, heddle_program **model) {
  const char *strategy = chosen_of(x);
  *model = NULL;
  if (x->plan) return (*out = read(x, m)) != NULL;
  *model = model_of(x, x->train);
  if (!*model) return false;
  if (x->annotate || (!strategy && heddle_program_annotated(*model)))
    *out = annotated_of(x, m, *model);
  else if (strategy || x->train || x->devices.given)
    *out = chosen(x, m, *model, strategy);
  else
    return (*out = NULL, true);
  *model = NULL;
  return *out != NULL;
}

heddle_program *distributed_of(cli *x, heddle_machine *m) {
  heddle_plan *b;
  heddle_program *d;
  if (!plan_of(x, m, &b, &d)) return NULL;
  if (b && x->stage_times) heddle_plan_time_stages(b);
  if (b) d = heddle_plan_apply(b);
  heddle_plan_free(b); // and the model: what is simulated may need the room
  return heddle_program_validate(d) ? d : NULL;
}
