// program.c - models and programs behind heddle.h.
#include "api/internal.h"
#include "export/export.h"

static void program_fini(object *o) {
  heddle_program *p = (heddle_program *)o;
  planner_free(p->pl);
  prog_free(p->p);
  object_drop(p->by);
}

heddle_program *program_wrap(heddle_session *s, prog *p, const char *name) {
  if (!p) return NULL;
  heddle_program *w = object_new(s, sizeof *w, program_fini);
  w->p = p;
  w->name = arena_strdup(w->o.a, name);
  return w;
}

static bool is_model(const prog *p) {
  if (!mesh_count(p->sp)) return true;
  diag(p->c, E_PLAN, func_get(p, p->main)->where,
       "the program is distributed already: only models are planned and trained");
  diag_hint(p->c, "`heddle sim` and `heddle eval` take it as it is, without a plan");
  return false;
}

// A loss that ignores some labels is planned as if there were none of them.
static void tell_labels(heddle_program *p) {
  if (p->told || !pass_ignores_labels(p->p)) return;
  p->told = true;
  diag(p->p->c, W_LABELS, func_get(p->p, p->p->main)->where,
       "the loss ignores some labels (ignore_index), but plans average over all of them");
}

bool heddle_program_annotated(const heddle_program *p) { return p && annotations_in(p->p); }

void program_leave_annotations(heddle_program *p) {
  if (!annotations_in(p->p)) return;
  const prog *q = p->p;
  const loc at = q->scopes.n > 1  ? q->scopes.v[1].where
                 : q->settings.n  ? q->settings.v[0].where
                 : q->has_default ? q->scopes.v[0].where
                                  : q->replicas.where;
  diag(q->c, W_IGNORED, at, "the annotations of the program are left out: the strategy decides");
}

void program_tell_batchnorm(const heddle_program *p, const strategy_set *said) {
  const choice_set *bn = &said->of[CHOICE_bn];
  batchnorm_stats has;
  bool sync = false;
  for (u32 k = 0; k < bn->n; k++) sync |= choice_is(CHOICE_bn, bn->v[k], "sync");
  pass_batchnorm_of(p->p, &has);
  if (!sync || has.groups) return;
  diag(p->p->c, W_IGNORED, bn->at,
       "bn=sync changes nothing: no batch norm of the model takes statistics over the batch");
}

bool program_has_fusible(const heddle_program *p) {
  ctx *c = p->p->c;
  const u32 before = diag_count(c);
  prog *tmp = prog_clone(p->p, c);
  attention_count n = {0};
  pass_attention(tmp, (loc){0}, &n);
  prog_free(tmp);
  diag_truncate(c, before);
  return n.fused > 0;
}

void program_tell_attention(const heddle_program *p, const strategy_set *said) {
  const choice_set *how = &said->of[CHOICE_attention];
  ctx *c = p->p->c;
  bool fused = how->all;
  for (u32 k = 0; k < how->n; k++) fused |= choice_is(CHOICE_attention, how->v[k], "fused");
  if (!fused) return;
  const u32 before = diag_count(c);
  prog *tmp = prog_clone(p->p, c);
  attention_count n;
  pass_attention(tmp, how->at, &n);
  prog_free(tmp);
  diag_truncate(c, before); // a plan says it
  if (!n.fused || !n.left) return;
  diag(c, W_IGNORED, how->at, "attention=fused: %u of %u products of a softmax keep scores", n.left,
       n.fused + n.left);
  diag_note(c, n.where,
            "scores that are read elsewhere, or made in another way than by scales, a bias and a mask");
}

// Something to compute, and something to compute it on.
bool program_has_work(const prog *p) {
  const func_info *m = func_get(p, p->main);
  if (!m->body.n) {
    diag(p->c, E_PLAN, m->where, "@main computes nothing: there is nothing to plan");
    return false;
  }
  for (u32 i = 0; i < m->nparams; i++) {
    const type_info *t = val_type(p, m, i + 1);
    if (t->tuple || m->params.v[i].r != ROLE_INPUT || shape_elems(&t->s)) continue;
    diag(p->c, E_SHAPE, m->where, "input %s is empty: %s", sym_str(p->c, val(m, i + 1)->name),
         ir_type_str(p, val(m, i + 1)->ty));
    diag_hint(p->c, "every extent must be 1 or more; bind open extents with --batch 8 or --dim NAME=8");
    return false;
  }
  return true;
}

bool program_to_plan(heddle_program *p) {
  bool ok = is_model(p->p) && program_has_work(p->p);
  if (ok) tell_labels(p);
  return ok;
}

planner *program_planner(heddle_program *p) {
  if (!p->pl) p->pl = planner_new(p->p);
  return p->pl;
}

// Options that a built-in model has no use for.
static bool fits_family(ctx *c, const char *model, const heddle_load_options *o) {
  const front_row *r = NULL;
  size_t n = strcspn(model, ":");
  for (u32 i = 0; (r = front_family_get(i)) && (strlen(r->name) != n || memcmp(r->name, model, n)); i++) {}
  const char *why = !r                        ? NULL // told when it is made
                    : o->seq && !r->positions ? "--seq: they have no sequence"
                    : o->vocab && !r->vocab   ? "--vocab: they have no vocabulary"
                    : o->headless && (!r->heads || !strcmp(r->kind, "vit"))
                        ? "--headless: they have no projection to a vocabulary"
                        : NULL;
  if (why) diag(c, E_USAGE, (loc){0}, "models of kind %s do not take %s", r->kind, why);
  return !why;
}

// Silence about an option that has no use would be a wrong answer.
static bool fits(ctx *c, front_kind kind, const char *model, const heddle_load_options *o) {
  const struct {
    const char *name;
    bool given, for_file;
  } own[] = {{"batch", o->batch, kind == FRONT_ONNX},
             {"seq", o->seq, false},
             {"vocab", o->vocab, false},
             {"dtype", o->dtype, false},
             {"headless", o->headless, false}};
  for (u32 k = 0; kind != FRONT_FAMILY && k < COUNT_OF(own); k++) {
    if (!own[k].given || own[k].for_file) continue;
    diag(c, E_USAGE, (loc){0}, "--%s applies to built-in models only; a file has its own", own[k].name);
    if (!strcmp(own[k].name, "dtype"))
      diag_hint(c, "leave out --dtype; export the model in the type that it is to be trained in");
    else if (kind == FRONT_ONNX && !strcmp(own[k].name, "seq"))
      diag_hint(c, "--dim NAME=N binds the open extents of an ONNX model");
    return false;
  }
  if (kind == FRONT_ONNX || (!o->ndims && !o->nfix)) return kind != FRONT_FAMILY || fits_family(c, model, o);
  diag(c, E_USAGE, (loc){0},
       o->ndims ? "--dim binds open extents of ONNX models; this model has none"
                : "--fix makes inputs of ONNX models constant; this is not one");
  if (kind == FRONT_FAMILY) diag_hint(c, "a built-in model takes --batch, --seq and --vocab");
  return false;
}

static bool dtype_of(ctx *c, const char *name, dtype *out) {
  *out = name ? dtype_find(name, strlen(name)) : DT_NONE;
  if (!name || (*out && dtype_kind_of(*out) == DK_FLOAT)) return true;
  diag(c, E_USAGE, (loc){0}, "--dtype: '%s' is not a floating-point type", name);
  static const char *const elsewhere[][2] = {{"fp16", "f16"},      {"float16", "f16"}, {"half", "f16"},
                                             {"bfloat16", "bf16"}, {"fp32", "f32"},    {"float32", "f32"},
                                             {"float", "f32"},     {"fp64", "f64"}};
  const char *ours = NULL;
  for (u32 k = 0; k < COUNT_OF(elsewhere) && !ours; k++)
    if (!strcmp(elsewhere[k][0], name)) ours = elsewhere[k][1];
  if (ours)
    diag_hint(c, "in Heddle: %s", ours);
  else
    diag_hint(c, "f16, bf16, f32 or f64");
  return false;
}

static bool fixed_of(ctx *c, const heddle_load_options *o, front_opts *f) {
  front_fixed *fixed = NEWN(ctx_arena(c), front_fixed, o->nfix + 1);
  for (u32 i = 0; i < o->nfix; i++) {
    const char *text = o->fix[i].value, *dot = strrchr(text, '.');
    fixed[i] = (front_fixed){.name = o->fix[i].name, .text = text};
    if (!dot || strcmp(dot, ".npy")) continue;
    eval_array x;
    if (!npy_read(c, ctx_arena(c), text, &x)) return false;
    data_info *d = NEW(ctx_arena(c), data_info);
    *d = (data_info){.t = x.s.t, .nd = x.s.nd, .bytes = x.data, .size = shape_bytes(&x.s)};
    memcpy(d->dim, x.s.dim, sizeof d->dim);
    fixed[i].data = d;
  }
  f->fixed = fixed;
  f->nfixed = o->nfix;
  return true;
}

// Layers of an ONNX file become functions, as those of built-in models are. A built-in model has a loss of
// its own; what comes from a file gets one where it has none.
static prog *load(ctx *c, const char *model, const heddle_load_options *o, front_extents *extents) {
  front_opts f = {.batch = o->batch,
                  .seq = o->seq,
                  .vocab = o->vocab,
                  .headless = o->headless,
                  .loss = o->loss,
                  .extents = extents};
  front_kind kind = front_kind_of(model);
  if (!dtype_of(c, o->dtype, &f.t) || !fits(c, kind, model, o) || !fixed_of(c, o, &f)) return NULL;
  front_dim *dims = NEWN(ctx_arena(c), front_dim, o->ndims + 1);
  for (u32 i = 0; i < o->ndims; i++) dims[i] = (front_dim){o->dims[i].name, o->dims[i].extent};
  f.dims = dims;
  f.ndims = o->ndims;
  prog *p = front_load(c, model, &f);
  if (p && o->loss && (!is_model(p) || !pass_loss(p))) {
    prog_free(p);
    return NULL;
  }
  if (p && kind == FRONT_ONNX) pass_outline(p);
  return p;
}

static heddle_program *open_model(heddle_session *s, const char *model, const heddle_load_options *o) {
  front_extents extents = {0};
  heddle_program *p = program_wrap(s, load(s->c, model, o, &extents), model);
  if (!p) return NULL;
  p->extents = extents;
  p->default_batch = !o->batch && front_kind_of(model) == FRONT_FAMILY;
  p->default_dtype = !o->dtype && front_kind_of(model) == FRONT_FAMILY;
  return p;
}

heddle_program *heddle_program_load(heddle_session *s, const char *model, const heddle_load_options *o) {
  static const heddle_load_options none;
  API_RETURN(heddle_program *, NULL, s, open_model(s, model, o ? o : &none));
}

heddle_program *heddle_program_parse(heddle_session *s, const char *name, const char *text, size_t n) {
  API_RETURN(heddle_program *, NULL, s, program_wrap(s, front_text(s->c, sym_of(s->c, name), text, n), name));
}

void heddle_program_free(heddle_program *p) { object_drop(p); }

static const char *print(heddle_program *p) {
  strbuf b = {.a = p->o.a};
  ir_print(p->p, &b);
  return sb_str(&b);
}
const char *heddle_program_print(heddle_program *p) {
  if (!p) return NULL;
  API_RETURN(const char *, NULL, p->o.s, print(p));
}

static const char *show(heddle_program *p, heddle_format f) {
  report *r = report_new(p->o.a);
  report_model(r, p->o.a, p->p, p->name, &p->extents);
  return rendered(p->o.a, r, f);
}
const char *heddle_program_report(heddle_program *p, heddle_format f) {
  if (!p) return NULL;
  API_RETURN(const char *, NULL, p->o.s, show(p, f));
}

uint32_t heddle_program_ranks(const heddle_program *p) { return p ? mesh_ranks(p->p->sp) : 0; }

// ---- training -----------------------------------------------------------------------------------------
bool optimizer_read(ctx *c, const heddle_optimizer *o, optim_opts *out) {
  optimizer kind = OPTIM_SGD;
  const char *name = o && o->name ? o->name : "sgd";
  if (!optim_find(name, &kind)) {
    diag(c, E_USAGE, (loc){0}, "unknown optimizer '%s'", name);
    diag_hint(c, "sgd, momentum, adam, adamw or adafactor");
    return false;
  }
  *out = optim_default(kind);
  if (o && (o->figures || o->lr != 0 || o->momentum != 0 || o->beta1 != 0 || o->beta2 != 0 || o->eps != 0 ||
            o->weight_decay != 0))
    *out = (optim_opts){kind, true, o->lr, o->momentum, o->beta1, o->beta2, o->eps, o->weight_decay};
  const char *wrong = optim_wrong(out, ctx_arena(c));
  if (wrong) {
    diag(c, E_USAGE, (loc){0}, "the optimizer's %s", wrong);
    return false;
  }
  out->master = !o || !o->no_master_weights;
  return true;
}

static bool optimizer_find(ctx *c, const char *name, heddle_optimizer *out) {
  optim_opts d;
  if (!optimizer_read(c, &(heddle_optimizer){.name = name}, &d)) return false;
  *out = (heddle_optimizer){name, d.lr, d.momentum, d.beta1, d.beta2, d.eps, d.weight_decay, .figures = true};
  return true;
}
bool heddle_optimizer_find(heddle_session *s, const char *name, heddle_optimizer *out) {
  API_RETURN(bool, false, s, optimizer_find(s->c, name, out));
}

static heddle_program *train(heddle_program *p, const heddle_optimizer *o, bool gradients) {
  optim_opts opt;
  if (!is_model(p->p) || !optimizer_read(p->o.s->c, o, &opt)) return NULL;
  prog *t = prog_clone(p->p, p->o.s->c);
  prog_forget_scopes(t);
  heddle_program *w =
      pass_loss(t) && pass_train(t, &opt, gradients) ? program_wrap(p->o.s, t, p->name) : NULL;
  if (!w) prog_free(t);
  if (w) w->extents = p->extents;
  return w;
}
heddle_program *heddle_program_train(heddle_program *p, const heddle_optimizer *o, bool gradients) {
  if (!p) return NULL;
  API_RETURN(heddle_program *, NULL, p->o.s, train(p, o, gradients));
}

bool heddle_program_validate(heddle_program *p) {
  if (!p) return false;
  API_RETURN(bool, false, p->o.s, !mesh_count(p->p->sp) || plan_validate(p->p));
}

static const char *lower(heddle_program *p, u32 rank, heddle_format f) {
  report *r = report_new(p->o.a);
  return report_rank(r, p->o.a, p->p, rank, heddle_program_ranks(p)) ? rendered(p->o.a, r, f) : NULL;
}
const char *heddle_program_lower(heddle_program *p, uint32_t rank, heddle_format f) {
  if (!p) return NULL;
  API_RETURN(const char *, NULL, p->o.s, lower(p, rank, f));
}

static const char *export(heddle_program *p, const char *format, heddle_machine *m) {
  const export_about about = {.model = p->name,
                              .plan = p->plan,
                              .machine = m ? machine_title(p->o.a, m->m) : NULL,
                              .on = m ? m->m : NULL};
  return export_program(p->p, p->o.a, format, &about);
}
const char *heddle_program_export(heddle_program *p, const char *format, heddle_machine *m) {
  if (!p || !format) return NULL;
  API_RETURN(const char *, NULL, p->o.s, export(p, format, m));
}
static const char *exported(heddle_program *p, const char *format, heddle_machine *m, const char *output,
                            const char *arrays) {
  const char *text = output ? NULL : export(p, format, m);
  if (!output && !text) return NULL;
  report *r = report_new(p->o.a);
  report_fact(r, "model", NULL, cell_text(p->name));
  report_fact(r, "plan", NULL, cell_text(p->plan));
  report_fact(r, "machine", NULL, cell_text(m ? machine_title(p->o.a, m->m) : NULL));
  report_fact(r, "ranks", NULL, cell_i(CELL_INT, MAX(heddle_program_ranks(p), 1)));
  report_fact(r, "format", NULL, cell_text(format));
  report_fact(r, "output", NULL, cell_text(output));
  report_fact(r, "arrays", NULL, cell_text(arrays));
  report_fact(r, "text", NULL, cell_text(text));
  return rendered(p->o.a, r, HEDDLE_JSON);
}
const char *heddle_program_exported(heddle_program *p, const char *format, heddle_machine *m,
                                    const char *output, const char *arrays) {
  if (!p || !format) return NULL;
  API_RETURN(const char *, NULL, p->o.s, exported(p, format, m, output, arrays));
}
bool heddle_export_format_get(uint32_t index, heddle_export_format *out) {
  const export_format *f = export_format_get(index);
  if (f) *out = (heddle_export_format){f->name, f->doc};
  return f;
}
