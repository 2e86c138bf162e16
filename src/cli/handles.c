// handles.c - from options to handles: what several commands ask for in the same words.
#include "cli/cli.h"

heddle_format format_of(const cli *x) { return x->json ? HEDDLE_JSON : HEDDLE_TEXT; }

bool put(const char *text) {
  if (text) fputs(text, stdout);
  return text != NULL;
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

bool optimiser_of(cli *x, heddle_optimiser *o) {
  if (!heddle_optimiser_find(x->s, x->optimizer ? x->optimizer : "sgd", o)) return false;
  const struct {
    const char *name;
    bool given;
    double of;
  } own[] = {{"momentum", x->momentum.given, o->momentum},
             {"beta1", x->beta1.given, o->beta1},
             {"beta2", x->beta2.given, o->beta2},
             {"eps", x->eps.given, o->eps}};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i].given && own[i].of == 0)
      return usage_error(i ? "--optimizer adam or adamw" : "--optimizer momentum", "--%s: %s has none",
                         own[i].name, o->name);
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
  if (x->machine) return heddle_machine_load(x->s, x->machine);
  usage_error("--machine dgx-2; `heddle machines` lists the presets", "which machine? --machine is missing");
  return NULL;
}

// ---- options that have no use --------------------------------------------------------------------------
// Silence would be a wrong answer: of a plan file nothing can be changed, and without --train nothing is
// trained.
bool options_agree(cli *x) {
  const struct {
    const char *name;
    bool given, training;
  } o[] = {{"data", x->data.n, false},
           {"tensor", x->tensor.n, false},
           {"pipeline", x->pipeline.n, false},
           {"microbatches", x->microbatches.n, false},
           {"schedule", x->schedule, false},
           {"sequence-parallel", x->sequence, false},
           {"sync-batchnorm", x->sync_batchnorm, false},
           {"overlap", x->overlap, false},
           {"zero", x->zero.n, x->zero.n > 1 || x->zero.v[0]},
           {"recompute", x->recompute, x->recompute && strcmp(x->recompute, "none")},
           {"optimizer", x->optimizer, true},
           {"lr", x->lr.given, true},
           {"momentum", x->momentum.given, true},
           {"beta1", x->beta1.given, true},
           {"beta2", x->beta2.given, true},
           {"eps", x->eps.given, true},
           {"weight-decay", x->weight_decay.given, true},
           {"no-master-weights", x->no_master, true},
           {"gradients", x->gradients, true}};
  for (size_t i = 0; i < sizeof o / sizeof *o; i++) {
    if (o[i].given && x->plan)
      return usage_error("leave it out, or change the plan file (docs/plans.md)",
                         "--%s: the file of --plan has made the choices", o[i].name);
    if (o[i].given && o[i].training && !x->train)
      return usage_error("add --train", "--%s is for training; this is inference", o[i].name);
  }
  for (uint32_t i = 0; i < x->zero.n; i++)
    if (x->zero.v[i] > 3) return usage_error("0, 1, 2 or 3", "--zero: there is no level %u", x->zero.v[i]);
  return true;
}

// ---- choices ------------------------------------------------------------------------------------------
// Which of `words` are in the list `text`.
static bool words_of(const char *option, const char *text, const char *const *words, int nwords, int *v,
                     uint32_t *n) {
  for (*n = 0; text && *text; text += *text == ',') {
    size_t len = strcspn(text, ",");
    int k = 0;
    while (k < nwords && (strlen(words[k]) != len || memcmp(words[k], text, len))) k++;
    if (k == nwords || *n == (uint32_t)nwords)
      return usage_error(NULL, "--%s: '%.*s' is not one of%s%s%s%s%s%s", option, (int)len, text, " ",
                         words[0], ", ", words[1], nwords > 2 ? ", " : "", nwords > 2 ? words[2] : "");
    v[(*n)++] = k;
    text += len;
  }
  return true;
}

bool recomputes_of(cli *x, heddle_recompute *v, uint32_t *n) {
  static const char *const words[] = {"none", "selective", "full"};
  int k[3];
  if (!words_of("recompute", x->recompute, words, 3, k, n)) return false;
  for (uint32_t i = 0; i < *n; i++) v[i] = (heddle_recompute)k[i];
  return true;
}

bool schedules_of(cli *x, heddle_schedule *v, uint32_t *n) {
  static const char *const words[] = {"gpipe", "1f1b"};
  int k[3];
  if (!words_of("schedule", x->schedule, words, 2, k, n)) return false;
  for (uint32_t i = 0; i < *n; i++) v[i] = k[i] ? HEDDLE_1F1B : HEDDLE_GPIPE;
  return true;
}

static bool one(const char *option, const CLI_LIST *l, uint32_t *out) {
  *out = l->n ? l->v[0] : 0;
  return l->n <= 1 || usage_error("`heddle plan` searches several", "--%s: one value, not %u", option, l->n);
}

static bool hybrid_of(cli *x, const heddle_machine *m, heddle_hybrid *h) {
  heddle_recompute recompute[3] = {HEDDLE_RECOMPUTE_NONE};
  heddle_schedule schedule[2] = {HEDDLE_1F1B};
  uint32_t nr, ns;
  *h = (heddle_hybrid){.train = x->train, .sequence = x->sequence, .overlap = x->overlap, .machine = m};
  h->sync_batchnorm = x->sync_batchnorm;
  if (!one("data", &x->data, &h->data) || !one("tensor", &x->tensor, &h->tensor) ||
      !one("pipeline", &x->pipeline, &h->pipeline) ||
      !one("microbatches", &x->microbatches, &h->microbatches) || !one("zero", &x->zero, &h->zero) ||
      !recomputes_of(x, recompute, &nr) || !schedules_of(x, schedule, &ns) || !optimiser_of(x, &h->optimiser))
    return false;
  h->recompute = recompute[0];
  h->schedule = schedule[0];
  return nr <= 1 && ns <= 1
             ? true
             : usage_error("`heddle plan` searches several", "one schedule and one way of recomputing");
}

bool plan_of(cli *x, heddle_machine *m, heddle_plan **out) {
  bool chosen = x->data.n || x->tensor.n || x->pipeline.n || x->microbatches.n || x->zero.n || x->recompute ||
                x->schedule || x->train;
  *out = NULL;
  if (x->plan) {
    bool train = false;
    if (!heddle_plan_trains(x->s, x->plan, &train)) return false;
    *out = heddle_plan_read(model_of(x, train), x->plan);
    return heddle_plan_on(*out, m, x->costs);
  }
  if (!chosen) return true;
  heddle_hybrid h;
  return hybrid_of(x, m, &h) && (*out = heddle_plan_hybrid(model_of(x, x->train), &h)) != NULL &&
         heddle_plan_on(*out, m, x->costs);
}

heddle_program *distributed_of(cli *x, heddle_machine *m) {
  heddle_plan *b;
  if (!plan_of(x, m, &b)) return NULL;
  heddle_program *d = b ? heddle_plan_apply(b) : model_of(x, false);
  return heddle_program_validate(d) ? d : NULL;
}
