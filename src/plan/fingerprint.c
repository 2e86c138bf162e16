// fingerprint.c - which model a plan file is for: the key `model`, and the refusal of another model.
//
// Idea: a plan names inputs, functions, numbers of instructions and dimensions, so it is for programs of one
// structure: the operators in their order, what each reads, shapes, element types, and the names that a plan
// can say. Names of other values, places in files, elements of constants and factors (eps, alpha) are no part
// of it. Everything is hashed as the text that it stands for, never by its number in a table of this build or
// session.
#include "front/front.h"
#include "plan/internal.h"

// ---- the fingerprint --------------------------------------------------------------------------------------
typedef struct {
  const prog *p;
  u64 *done; // per function; 0: not yet
  arena *a;
} hasher;

static u64 step_text(u64 h, const char *s) { return hash_step(h, hash_bytes(s, strlen(s), 0)); }
static u64 step_sym(u64 h, const hasher *x, sym s) {
  return hash_step(h, hash_bytes(sym_str(x->p->c, s), sym_len(x->p->c, s), 0));
}

static u64 step_shape(u64 h, dtype t, u32 nd, const i64 *dim) {
  h = hash_step(step_text(h, dtype_name(t)), nd);
  for (u32 d = 0; d < nd; d++) h = hash_step(h, (u64)dim[d]);
  return h;
}

static u64 step_type(u64 h, const hasher *x, type ty) {
  const type_info *t = type_get(x->p, ty);
  if (!t->tuple) return step_shape(h, t->s.t, t->s.nd, t->s.dim);
  h = hash_step(h, t->n);
  for (u32 k = 0; k < t->n; k++) h = step_type(h, x, t->elem[k]);
  return h;
}

static u64 step_attr(u64 h, const hasher *x, const attr *a) {
  h = hash_step(step_text(h, attr_name((attr_key)a->key)), a->n);
  switch ((attr_kind)a->kind) {
  case AK_INT: return hash_step(h, (u64)a->u.i);
  case AK_STR: return step_sym(h, x, a->u.s);
  case AK_DTYPE: return step_text(h, dtype_name(a->u.t));
  case AK_DATA: {
    const data_info *d = &x->p->data.v[a->u.data];
    return step_shape(h, d->t, d->nd, d->dim);
  }
  case AK_INTS:
    for (u32 k = 0; k < a->n; k++) h = hash_step(h, (u64)a->u.ints[k]);
    return h;
  case AK_FLOAT:
  case AK_FLOATS:
  case AK_AXES: return h; // factors; and axes are of distributed programs
  }
  return h;
}

static u64 hash_func(hasher *x, func fn);
static u64 step_instr(u64 h, hasher *x, const func_info *f, const instr *in, const u32 *number) {
  const attrs at = attrs_get(x->p, in->at);
  h = hash_step(step_text(h, op_row_of((opcode)in->op)->name), in->nopd);
  for (u32 k = 0; k < in->nopd; k++) {
    const u32 v = f->opds.v[in->opd + k];
    h = hash_step(h, number[v & OPD_VALUE] | (v & ~OPD_VALUE));
  }
  h = hash_step(h, in->nres);
  for (u32 k = 0; k < in->nres; k++) h = step_type(h, x, val(f, in->res + k)->ty);
  h = hash_step(h, at.n);
  for (u32 k = 0; k < at.n; k++) h = step_attr(h, x, &at.v[k]);
  return in->op == OP_call ? hash_step(h, hash_func(x, in->callee)) : h;
}

// Values count in the order of their definition.
static u64 hash_func(hasher *x, func fn) {
  const func_info *f = func_get(x->p, fn);
  if (x->done[fn.i]) return x->done[fn.i];
  u32 *number = ZNEWN(x->a, u32, f->values.n), n = 0;
  u64 h = hash_step(step_sym(0, x, f->name), f->nparams);
  for (u32 k = 0; k < f->nparams; k++) {
    number[k + 1] = ++n;
    h = hash_step(step_type(h, x, val(f, k + 1)->ty), (u64)f->params.v[k].r);
    if (fn.i == x->p->main.i) h = step_sym(h, x, val(f, k + 1)->name);
  }
  h = hash_step(h, f->body.n);
  for (u32 i = 0; i < f->body.n; i++) {
    for (u32 k = 0; k < f->body.v[i].nres; k++) number[f->body.v[i].res + k] = ++n;
    h = step_instr(h, x, f, &f->body.v[i], number);
  }
  h = hash_step(h, f->rets.n);
  for (u32 k = 0; k < f->rets.n; k++) h = hash_step(h, number[f->rets.v[k]]);
  h = hash_u64(h, n);
  return x->done[fn.i] = h ? h : 1;
}

u64 plan_fingerprint(const prog *src) {
  hasher x = {.p = src, .a = arena_new()};
  x.done = ZNEWN(x.a, u64, src->funcs.n);
  const u64 h = hash_func(&x, src->main);
  arena_free(x.a);
  return h;
}

// ---- what is said of it ---------------------------------------------------------------------------------
// What a refusal can say cheaply.
typedef struct {
  const char *instructions, *weights, *input; // of main; element types; type of the first input
} outline;

static outline outline_of(const prog *src, arena *a) {
  const func_info *m = func_get(src, src->main);
  strbuf weights = {.a = a};
  bool used[DT_COUNT] = {0};
  outline x = {.instructions = arena_printf(a, "%u", m->body.n), .input = "none"};
  for (u32 k = m->nparams; k-- > 0;) {
    const type_info *t = val_type(src, m, k + 1);
    if (t->tuple) continue;
    if (m->params.v[k].r == ROLE_WEIGHT) used[t->s.t] = true;
    if (m->params.v[k].r == ROLE_INPUT) x.input = ir_type_str(src, val(m, k + 1)->ty);
  }
  for (u32 t = 1; t < DT_COUNT; t++)
    if (used[t]) sb_fmt(&weights, "%s%s", weights.n ? ", " : "", dtype_name((dtype)t));
  x.weights = weights.n ? sb_str(&weights) : "none";
  return x;
}

void plan_model_print(const prog *src, const char *name, strbuf *b) {
  const outline x = outline_of(src, b->a);
  sb_put(b, "model: {name: ");
  sb_json_str(b, name);
  sb_fmt(b, ", instructions: %s, weights: ", x.instructions);
  sb_json_str(b, x.weights);
  sb_put(b, ", input: ");
  sb_json_str(b, x.input);
  sb_fmt(b, ", program: \"%016llx\"}\n", (unsigned long long)plan_fingerprint(src));
}

// ---- another model --------------------------------------------------------------------------------------
// Extents of "f32[8,1024]"; 0: it is none.
static u32 extents(const char *of, i64 *dim) {
  const char *s = strchr(of, '[');
  u32 n = 0;
  for (; s && *s != ']' && *s && n < DIMS_MAX; n++) {
    i64 v = 0;
    for (s++; *s >= '0' && *s <= '9' && v < 1ll << 40; s++) v = v * 10 + (*s - '0');
    dim[n] = v;
  }
  return n;
}

// Options that give the model back its weights and its first input. "": that is not known.
static const char *options_for(arena *a, const char *model, const outline *was, const outline *is) {
  const front_kind kind = front_kind_of(model);
  const bool family = kind == FRONT_FAMILY, types = strcmp(was->weights, is->weights) != 0;
  i64 old[DIMS_MAX], now[DIMS_MAX];
  const u32 n = extents(was->input, old);
  strbuf b = {.a = a};
  if (strcmp(was->instructions, is->instructions) || n != extents(is->input, now)) return "";
  if (kind == FRONT_TEXT || (types && (!family || !dtype_find(was->weights, strlen(was->weights)))))
    return "";
  for (u32 k = 0; k < n; k++) {
    const bool batch = !k, seq = k == 1 && n == 2 && family && strncmp(was->input, "i64[", 4) == 0;
    if (old[k] == now[k]) continue;
    if (old[k] < 1 || (!batch && !seq)) return "";
    sb_fmt(&b, "%s--%s %lld", b.n ? " " : "", batch ? "batch" : "seq", (long long)old[k]);
  }
  if (types) sb_fmt(&b, "%s--dtype %s", b.n ? " " : "", was->weights);
  return b.n ? sb_str(&b) : "";
}

static bool same_extents(const outline *x, const outline *other) {
  return !strcmp(x->input + strcspn(x->input, "["), other->input + strcspn(other->input, "["));
}

// Do the first inputs differ in their first extent alone?
static bool only_batch(const outline *x, const outline *other) {
  i64 u[DIMS_MAX], v[DIMS_MAX];
  const u32 n = extents(x->input, u);
  if (!n || n != extents(other->input, v) || u[0] == v[0]) return false;
  return !strncmp(x->input, other->input, strcspn(x->input, "[")) &&
         !memcmp(u + 1, v + 1, (n - 1) * sizeof *u);
}

// "6 instructions in main, weights in f16": what differs, with all words or as short as it can be.
static const char *differing(arena *a, const outline *x, const outline *other, bool words) {
  strbuf b = {.a = a};
  i64 dim[DIMS_MAX] = {0};
  if (strcmp(x->instructions, other->instructions))
    sb_fmt(&b, "%s%s", x->instructions, words ? " instructions in main" : "");
  if (strcmp(x->weights, other->weights))
    sb_fmt(&b, "%s%s%s", b.n ? ", " : "", words ? "weights in " : "", x->weights);
  if (only_batch(x, other) && extents(x->input, dim))
    sb_fmt(&b, "%s%s%lld", b.n ? ", " : "", words ? "a batch of " : "", (long long)dim[0]);
  else if (strcmp(x->weights, other->weights) ? !same_extents(x, other) : strcmp(x->input, other->input) != 0)
    sb_fmt(&b, "%s%s%s", b.n ? ", " : "", words ? "a first input of " : "", x->input);
  return b.n ? sb_str(&b) : NULL;
}

static const char *text_at(const ynode *y, const char *key) {
  const ynode *v = yaml_get(y, key);
  return v && v->kind == Y_SCALAR ? v->str : "";
}

static void tell_hint(ctx *c, arena *a, const char *name, const char *model, const outline *was,
                      const outline *is, const char *text, size_t n) {
  const char *options = strcmp(name, model) ? "" : options_for(a, model, was, is);
  const char *end = n > 9 && !memcmp(text, "# heddle ", 9) ? memchr(text, '\n', n) : NULL;
  if (*options)
    diag_hint(c, "%s", options);
  else if (end)
    diag_hint(c, "use the model and options of the command that made it: %.*s", (int)MIN(end - text - 2, 300),
              text + 2);
  else
    diag_hint(c, "`heddle plan %s -o FILE` makes a plan for this one", model);
}

bool plan_model_check(arena *a, const prog *src, const char *model, const ynode *y, const char *text,
                      size_t n) {
  ctx *c = src->c;
  const char *said = text_at(y, "program"), *name = text_at(y, "name");
  const outline is = outline_of(src, a);
  outline was = {text_at(y, "instructions"), text_at(y, "weights"), text_at(y, "input")};
  if (!strcmp(said, arena_printf(a, "%016llx", (unsigned long long)plan_fingerprint(src)))) return true;
  if (!*was.instructions) was.instructions = is.instructions; // changed by hand
  if (!*was.weights) was.weights = is.weights;
  if (!*was.input) was.input = is.input;
  if (!*name) name = "another model";
  if (!model) model = "this model";
  const char *with = differing(a, &was, &is, true);
  if (with)
    diag(c, E_PLAN_MODEL, y->at, "the plan was made for %s with %s; this is %s with %s", name, with, model,
         differing(a, &is, &was, false));
  else
    diag(c, E_PLAN_MODEL, y->at, "the plan was made for %s; this is %s, with other operators or shapes", name,
         model);
  tell_hint(c, a, name, model, &was, &is, text, n);
  return false;
}
