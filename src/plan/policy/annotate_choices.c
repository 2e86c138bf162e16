// annotate_choices.c - the choices of a strategy line that an annotated plan has: what the configuration of its annotations
// stands for, and what is said beside them. What annotations say themselves, a choice cannot say otherwise.
//
// Idea: both become one strategy (work.s), which the rest reads. A choice that is said is taken, is refused because
// annotations say it in another way, or must agree with the key of the configuration that says the same.
#include "plan/policy/annotate.h"

// ---- the configuration as choices -----------------------------------------------------------------------
typedef struct {
  choice_id id;
  u32 setting;
  const char *value[4]; // by setting.n; "": a count
} key_row;
static const key_row keys[] = {
    {CHOICE_mb, SETTING_num_micro_batch, {""}},
    {CHOICE_zero, SETTING_zero, {"0", "1", "2"}},
    {CHOICE_recompute, SETTING_checkpoint, {"none", "full"}},
    {CHOICE_offload, SETTING_offload, {"none", "params"}},
    {CHOICE_schedule, SETTING_order, {"1f1b", "gpipe", "1f1b", "1f1b"}},
};

static choice_value configured(const work *w, const key_row *k) {
  const u32 n = w->x->config.of[k->setting].n;
  const char *text = k->value[*k->value[0] ? n : 0];
  choice_value x = {.n = MAX(n, 1u)};
  const bool ok = !*text || choice_read(k->id, w->a, text, strlen(text), &x);
  assert(ok); // words of the table above
  (void)ok;
  return x;
}

// ---- what cannot be said --------------------------------------------------------------------------------
static const struct {
  choice_id id;
  const char *why, *hint;
} never[] = {
    {CHOICE_dp, "annotations say the devices of every part of the model",
     "leave it out; `replicate`, `split` and the number of devices say it"},
    {CHOICE_tp, "annotations say the devices of every part of the model",
     "leave it out; `split: N` says it of a part of the model"},
    {CHOICE_pp, "annotations say the stages of a pipeline",
     "leave it out; one scope for each stage, or pipeline.num_stages"},
    {CHOICE_replicas, "annotations say the devices of every part of the model",
     "leave it out; `replicas: [3, 1]` deals out samples"},
    {CHOICE_mbs, "task graphs have data ranks of their own", "say the number of microbatches instead: mb"},
    {CHOICE_v, "a task graph is one stage, on its own place", "leave it out"},
    {CHOICE_group, "a task graph is one stage, on its own place", "leave it out"},
    {CHOICE_buffers, "sends of task graphs never wait", "leave it out; a strategy with pp has it"},
    {CHOICE_sp, "splits of annotations leave the sequence whole", "leave it out; a strategy with tp has it"},
    {CHOICE_coshard, "parts of heads and hidden units are of plans by degrees",
     "leave it out; a strategy with dp, tp and pp has it"},
    {CHOICE_axial, "annotations say what is split over devices", "leave it out; a strategy with tp has it"},
    {CHOICE_sync, "annotated plans sum gradients on all data ranks",
     "leave it out; a strategy with dp has it"},
    {CHOICE_bn, "annotated plans take the statistics of batch norm on every device alone", "leave it out"},
    {CHOICE_tp_stages, "annotations say the devices of every part of the model",
     "leave it out; `split: N` says it of a part of the model"},
    {CHOICE_dp_shares, "annotations say what devices get",
     "`shares: [3, 1]` of a scope, or `replicas: [3, 1]`"},
    {CHOICE_tp_shares, "annotations say what devices get", "`shares: [3, 1]` of a scope"},
    {CHOICE_places, "annotations say which devices each part has",
     "leave it out, or change the order of scopes"},
    {CHOICE_skip, "annotations are of devices from the first one on",
     "leave it out, or name these devices last"},
};

static const char *said_text(const work *w, choice_id id, choice_value x) {
  strbuf b = {.a = w->a};
  choice_say(id, x, &b);
  return sb_str(&b);
}

// Where the annotations begin to say which device does what.
static void note_annotations(const work *w) {
  const annotations *x = w->x;
  const loc at = x->nscopes ? x->scope[0].at : x->has_default ? x->dflt.at : x->at;
  diag_note(w->c, at, "the annotations");
}

static bool may_be_said(const work *w, choice_id id, choice_value x, loc at) {
  const bool degree = choice_is_degree(id);
  for (u32 k = 0; k < COUNT_OF(never); k++) {
    if (never[k].id != id || (!degree && choice_same(x, choice_default(id)))) continue;
    diag(w->c, E_STRATEGY, at, "%s cannot be combined with annotations: %s", said_text(w, id, x),
         never[k].why);
    note_annotations(w);
    diag_hint(w->c, "%s", never[k].hint);
    return false;
  }
  if (!(choice_get(id)->needs & CHOICE_TRAINING) || w->o->train || choice_same(x, choice_default(id)))
    return true;
  diag(w->c, E_STRATEGY, at, "%s applies to training only; this is inference", said_text(w, id, x));
  diag_hint(w->c, "add --train, or leave out %s", choice_get(id)->name);
  return false;
}

static bool layers_may_be_said(const work *w, choice_value x, loc at) {
  if (choice_is(CHOICE_layers, x, "whale")) {
    diag(w->c, E_STRATEGY, at,
         "layers=whale cannot be combined with annotations: it orders places by memory");
    note_annotations(w);
    diag_hint(w->c, "layers=auto, or a strategy with pp");
    return false;
  }
  if (!w->x->nscopes && (w->x->config.auto_parallel.n || w->x->config.num_stages.n > 1)) return true;
  diag(w->c, E_STRATEGY, at, "%s: only automatic task graphs are cut by it", said_text(w, CHOICE_layers, x));
  note_annotations(w);
  diag_hint(w->c, w->x->nscopes ? "leave it out; the layers of a scope say it" : "pipeline.num_stages: 2");
  return false;
}

static bool file_may_be_said(const work *w, choice_value x, loc at) {
  if (!x.path) return true;
  diag(w->c, E_STRATEGY, at, "%s cannot be combined with annotations: the file has places of its own",
       said_text(w, CHOICE_schedule, x));
  note_annotations(w);
  diag_hint(w->c, "schedule=1f1b, or a strategy with pp for the file");
  return false;
}

// Does a key of the configuration say something else?
static bool agrees(const work *w, const key_row *k, choice_value x, loc at) {
  const annotation_setting *s = &w->x->config.of[k->setting];
  const choice_value own = configured(w, k);
  const bool said = s->at.i || !choice_same(own, choice_default(k->id));
  setting_row row;
  if (!said || choice_same(x, own)) return true;
  annotation_setting_get(w->a, k->setting, &row);
  diag(w->c, E_STRATEGY, at, "%s contradicts the annotations, which say %s", said_text(w, k->id, x),
       said_text(w, k->id, own));
  diag_note(w->c, s->at, "%s of the configuration%s", row.key,
            s->at.i ? "" : arena_printf(w->a, ", from the environment: %s", row.env));
  diag_hint(w->c, "leave out one of them");
  return false;
}

bool choices_beside(work *w) {
  const strategy_set *set = w->o->said;
  w->s = strategy_default();
  for (u32 k = 0; k < COUNT_OF(keys); k++) w->s.of[keys[k].id] = configured(w, &keys[k]);
  for (u32 i = 0; set && i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    const choice_value x = w->o->s.of[i];
    const loc at = set->of[i].at;
    if (!set->of[i].said) continue;
    if (!may_be_said(w, id, x, at)) return false;
    if (id == CHOICE_layers && !layers_may_be_said(w, x, at)) return false;
    if (id == CHOICE_schedule && !file_may_be_said(w, x, at)) return false;
    for (u32 k = 0; k < COUNT_OF(keys); k++)
      if (keys[k].id == id && !agrees(w, &keys[k], x, at)) return false;
    w->s.of[i] = x;
  }
  if (w->s.overlap.n & OVERLAP_DP) {
    diag(w->c, E_STRATEGY, set->of[CHOICE_overlap].at,
         "overlap=dp does not go with annotations: task graphs share weights");
    diag_hint(w->c, "overlap=pp");
    return false;
  }
  if (w->s.overlap.n || choice_same(w->s.channels, choice_default(CHOICE_channels))) return true;
  diag(w->c, E_STRATEGY, set->of[CHOICE_channels].at, "%s needs overlap=pp; got overlap=none",
       said_text(w, CHOICE_channels, w->s.channels));
  diag_hint(w->c, "leave out one of them");
  return false;
}

// ---- what made no difference ----------------------------------------------------------------------------
static void ignored(const work *w, choice_id id, const char *why) {
  const strategy_set *set = w->o->said;
  const key_row *key = NULL;
  setting_row row;
  for (u32 k = 0; k < COUNT_OF(keys); k++)
    if (keys[k].id == id) key = &keys[k];
  if (choice_same(w->s.of[id], choice_default(id))) return;
  if (set && set->of[id].said)
    diag(w->c, W_IGNORED, set->of[id].at, "%s changes nothing: %s", said_text(w, id, w->s.of[id]), why);
  else if (key && annotation_setting_get(w->a, key->setting, &row))
    diag(w->c, W_IGNORED, w->x->config.of[key->setting].at, "%s changes nothing: %s", row.key, why);
}

void choices_ignored(const work *w, const plan *pn) {
  bool split = false;
  for (u32 k = 0; k < w->ngraphs; k++)
    split = split || (scope_splits(w->graph[k].scope) && w->graph[k].d > 1);
  if (!pn->train)
    ignored(w, CHOICE_zero, "without --train there are no states");
  else if (!pn->nstorage[STORAGE_STATE])
    ignored(w, CHOICE_zero, "no states are on several data ranks");
  if (!split) ignored(w, CHOICE_tables, "no task graph is split");
  const strategy_set *set = w->o->said; // a key of the configuration says the order of any plan
  if (!w->pipeline && set && set->of[CHOICE_schedule].said)
    ignored(w, CHOICE_schedule, "microbatches follow one another; a pipeline has a task graph on each place");
  if (w->ngraphs > 1) return;
  ignored(w, CHOICE_overlap, "one task graph sends nothing");
  ignored(w, CHOICE_channels, "one task graph sends nothing");
}

const char *choices_text(const work *w) {
  const strategy_set *set = w->o->said;
  strbuf b = {.a = w->a};
  for (u32 i = 0; set && i < CHOICE_COUNT; i++) {
    const choice_id id = (choice_id)i;
    if (!set->of[i].said || id == CHOICE_mb || choice_same(w->s.of[i], choice_default(id))) continue;
    sb_fmt(&b, "%s%s", b.n ? " " : "", said_text(w, id, w->s.of[i]));
  }
  return sb_str(&b);
}
