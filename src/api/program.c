// program.c - models and programs behind heddle.h.
#include "api/internal.h"

static void program_fini(object *o) {
  heddle_program *p = (heddle_program *)o;
  planner_free(p->pl);
  prog_free(p->p);
}

heddle_program *program_wrap(heddle_session *s, prog *p, const char *name) {
  if (!p) return NULL;
  heddle_program *w = object_new(s, sizeof *w, program_fini);
  w->p = p;
  w->name = arena_strdup(w->o.a, name);
  return w;
}

planner *program_planner(heddle_program *p) {
  if (!p->pl) p->pl = planner_new(p->p);
  return p->pl;
}

static bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && !strcmp(s + n - k, end);
}

// Options that a model has no use for: silence would be a wrong answer.
static bool fits(ctx *c, bool file, bool onnx, const heddle_load_options *o) {
  const struct {
    const char *name;
    bool given;
  } own[] = {{"batch", o->batch},
             {"seq", o->seq},
             {"vocab", o->vocab},
             {"dtype", o->dtype},
             {"headless", o->headless}};
  for (u32 k = 0; file && k < COUNT_OF(own); k++) {
    if (!own[k].given) continue;
    diag(c, E_USAGE, (loc){0}, "--%s is for built-in models; a file has its own", own[k].name);
    if (onnx) diag_hint(c, "open extents of an ONNX model are bound with --dim NAME=N");
    return false;
  }
  if (onnx || !o->ndims) return true;
  diag(c, E_USAGE, (loc){0}, "--dim binds open extents of ONNX models; this model has none");
  if (!file) diag_hint(c, "--batch, --seq and --vocab change a built-in model");
  return false;
}

// Layers of an ONNX file become functions, as those of built-in models are. A built-in model has a loss of
// its own; what comes from a file gets one where it has none.
static prog *load(ctx *c, const char *model, const heddle_load_options *o) {
  front_opts f = {
      .batch = o->batch, .seq = o->seq, .vocab = o->vocab, .headless = o->headless, .loss = o->loss};
  if (o->dtype && !(f.t = dtype_find(o->dtype, strlen(o->dtype)))) {
    diag(c, E_USAGE, (loc){0}, "no element type is called '%s'", o->dtype);
    diag_hint(c, "f16, bf16, f32 or f64");
    return NULL;
  }
  bool onnx = ends_with(model, ".onnx");
  if (!fits(c, onnx || ends_with(model, ".heddle"), onnx, o)) return NULL;
  front_dim *dims = NEWN(ctx_arena(c), front_dim, o->ndims + 1);
  for (u32 i = 0; i < o->ndims; i++) dims[i] = (front_dim){o->dims[i].name, o->dims[i].extent};
  f.dims = dims;
  f.ndims = o->ndims;
  prog *p = front_load(c, model, &f);
  if (p && o->loss && !pass_loss(p)) {
    prog_free(p);
    return NULL;
  }
  if (p && onnx) pass_outline(p);
  return p;
}

heddle_program *heddle_program_load(heddle_session *s, const char *model, const heddle_load_options *o) {
  static const heddle_load_options none;
  API_RETURN(heddle_program *, NULL, s, program_wrap(s, load(s->c, model, o ? o : &none), model));
}

heddle_program *heddle_program_parse(heddle_session *s, const char *name, const char *text, size_t n) {
  API_RETURN(heddle_program *, NULL, s, program_wrap(s, ir_parse(s->c, sym_of(s->c, name), text, n), name));
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
  report_model(r, p->o.a, p->p, p->name);
  return rendered(p->o.a, r, f);
}
const char *heddle_program_report(heddle_program *p, heddle_format f) {
  if (!p) return NULL;
  API_RETURN(const char *, NULL, p->o.s, show(p, f));
}

uint32_t heddle_program_ranks(const heddle_program *p) {
  u32 n = 0;
  for (u32 k = 1; p && k <= mesh_count(p->p->sp); k++) {
    const mesh_info *m = mesh_get(p->p->sp, (mesh){k});
    for (u32 j = 0; m->ranks && j < m->nranks; j++) n = MAX(n, m->ranks[j] + 1);
    if (!m->ranks) n = MAX(n, m->first + m->nranks);
  }
  return n;
}

// ---- training -----------------------------------------------------------------------------------------
bool optimiser_read(ctx *c, const heddle_optimiser *o, optim_opts *out) {
  optimiser kind = OPTIM_SGD;
  const char *name = o && o->name ? o->name : "sgd";
  if (!optim_find(name, &kind)) {
    diag(c, E_USAGE, (loc){0}, "no optimiser is called '%s'", name);
    diag_hint(c, "sgd, momentum, adam or adamw");
    return false;
  }
  *out = optim_default(kind);
  if (o && (o->lr != 0 || o->momentum != 0 || o->beta1 != 0 || o->beta2 != 0 || o->eps != 0 ||
            o->weight_decay != 0))
    *out = (optim_opts){kind, o->lr, o->momentum, o->beta1, o->beta2, o->eps, o->weight_decay};
  return true;
}

static bool optimiser_find(ctx *c, const char *name, heddle_optimiser *out) {
  optim_opts d;
  if (!optimiser_read(c, &(heddle_optimiser){.name = name}, &d)) return false;
  *out = (heddle_optimiser){name, d.lr, d.momentum, d.beta1, d.beta2, d.eps, d.weight_decay};
  return true;
}
bool heddle_optimiser_find(heddle_session *s, const char *name, heddle_optimiser *out) {
  API_RETURN(bool, false, s, optimiser_find(s->c, name, out));
}

static heddle_program *train(heddle_program *p, const heddle_optimiser *o, bool gradients) {
  optim_opts opt;
  if (!optimiser_read(p->o.s->c, o, &opt)) return NULL;
  prog *t = prog_clone(p->p, p->o.s->c);
  if (pass_loss(t) && pass_train(t, &opt, gradients)) return program_wrap(p->o.s, t, p->name);
  prog_free(t);
  return NULL;
}
heddle_program *heddle_program_train(heddle_program *p, const heddle_optimiser *o, bool gradients) {
  if (!p) return NULL;
  API_RETURN(heddle_program *, NULL, p->o.s, train(p, o, gradients));
}

bool heddle_program_validate(heddle_program *p) {
  if (!p) return false;
  API_RETURN(bool, false, p->o.s, !mesh_count(p->p->sp) || plan_validate(p->p, NULL, 0));
}

static const char *lower(heddle_program *p, u32 rank, heddle_format f) {
  report *r = report_new(p->o.a);
  return report_rank(r, p->o.a, p->p, rank, heddle_program_ranks(p)) ? rendered(p->o.a, r, f) : NULL;
}
const char *heddle_program_lower(heddle_program *p, uint32_t rank, heddle_format f) {
  if (!p) return NULL;
  API_RETURN(const char *, NULL, p->o.s, lower(p, rank, f));
}
