// onnx_bind.c - what the user says about a model's inputs: extents that the file leaves open, and elements.
// Not what inputs become (onnx_import.c).
//
// Idea: an open extent is a letter with the places where it stands ("ids:0, mask:0"). A letter is bound by
// its name, a place by its own name, the batch by standing first. What the user names must be there: an
// answer for another model than the one that was meant would be worse than none.
#include "front/onnx.h"
#include "kernel/kernel.h"
#include <stdlib.h>

// The extent that --dim gives to a name or place, -1 if none.
static i64 given(imp *I, const char *name) {
  i64 n = -1;
  for (u32 k = 0; k < I->o->ndims; k++)
    if (!strcmp(I->o->dims[k].name, name)) n = I->o->dims[k].extent, I->dim_used[k] = true;
  return n;
}

static onnx_letter *letter_of(const imp *I, sym name) {
  for (u32 k = 0; k < I->letter.n; k++)
    if (I->letter.v[k].name.i == name.i) return &I->letter.v[k];
  return NULL;
}

// A place that --dim names is a letter of its own, whatever the file calls it. Writers put 0 for "any".
static void gather(imp *I, const onnx_value *v) {
  ctx *c = I->f.c;
  for (u32 d = 0; d < v->dim.n && d < DIMS_MAX; d++) {
    const onnx_dim *dim = &v->dim.v[d];
    sym place = sym_fmt(c, "%s:%u", sym_str(c, v->name), d);
    i64 n = given(I, sym_str(c, place));
    if (*onnx_mark(I, v->name) & MARK_INIT) continue;
    if (n < 0 && !dim->name.i && dim->n > 0) continue;
    sym name = n >= 0 || !dim->name.i ? place : dim->name;
    onnx_letter *l = letter_of(I, name);
    if (!l) {
      l = vec_push(I->a, &I->letter);
      *l = (onnx_letter){.name = name, .named = name.i != place.i, .extent = n, .at = {.a = I->a}};
      if (n < 0) l->extent = given(I, sym_str(c, name));
    }
    l->first |= d == 0;
    sb_fmt(&l->at, "%s%s", l->at.n ? ", " : "", sym_str(c, place));
  }
}

// ---- the batch -----------------------------------------------------------------------------------------
static bool called_batch(const imp *I, const onnx_letter *l) {
  const char *name = sym_str(I->f.c, l->name);
  return l->named &&
         (strstr(name, "batch") || strstr(name, "Batch") || strstr(name, "BATCH") || !strcmp(name, "N"));
}

// Is the open letter l plainly the batch? It is the only one that stands first, or the only one of them that
// is called so; letters without a name are one, if there are no others.
static bool is_batch(const imp *I, const onnx_letter *l) {
  u32 named = 0, nameless = 0, called = 0;
  for (u32 k = 0; k < I->letter.n; k++) {
    const onnx_letter *o = &I->letter.v[k];
    if (!o->first || o->extent >= 0) continue;
    named += o->named, nameless += !o->named, called += called_batch(I, o);
  }
  if (!l->first || l->extent >= 0) return false;
  return called == 1 ? called_batch(I, l) : named + nameless == 1 || !named;
}

static void note_letters(const imp *I) {
  for (u32 k = 0; k < I->letter.n; k++) {
    onnx_letter *l = &I->letter.v[k];
    const char *name = sym_str(I->f.c, l->name);
    if (l->extent >= 0)
      diag_note(I->f.c, (loc){0}, "`%s` is %lld: %s", name, (long long)l->extent, sb_str(&l->at));
    else if (l->named)
      diag_note(I->f.c, (loc){0}, "`%s` is not bound: %s", name, sb_str(&l->at));
    else
      diag_note(I->f.c, (loc){0}, "`%s` is not bound", name);
  }
}

// The first input that is none of the weights, for hints; "" if there is none.
static const char *some_input(imp *I) {
  for (u32 k = 0; k < I->m.graph.in.n; k++)
    if (!(*onnx_mark(I, I->m.graph.in.v[k].name) & MARK_INIT))
      return sym_str(I->f.c, I->m.graph.in.v[k].name);
  return "";
}

static void bind_batch(imp *I, loc where) {
  ctx *c = I->f.c;
  u32 nfirst = 0, n = 0;
  onnx_letter *first = NULL, **to = NEWN(I->a, onnx_letter *, I->letter.n + 1);
  for (u32 k = 0; k < I->letter.n; k++) {
    onnx_letter *l = &I->letter.v[k];
    if (l->first && l->extent < 0 && !nfirst++) first = l;
    if (is_batch(I, l)) to[n++] = l;
  }
  for (u32 k = 0; k < n; k++) to[k]->extent = I->o->batch;
  if (n) return;
  diag(c, E_USAGE, where,
       nfirst ? "--batch: %u first extents are not bound; which one is the batch?"
              : "--batch: no input leaves its first extent unbound",
       nfirst);
  note_letters(I);
  if (first)
    diag_hint(c, "name it: --dim %s=%lld", sym_str(c, first->name), (long long)I->o->batch);
  else if (*some_input(I))
    diag_hint(c, "to replace an extent that the file fixes: --dim %s:0=%lld", some_input(I),
              (long long)I->o->batch);
}

// ---- all of them ---------------------------------------------------------------------------------------
static void tell_open(const imp *I, loc where) {
  ctx *c = I->f.c;
  strbuf open = {.a = I->a}, hint = {.a = I->a};
  u32 n = 0;
  bool batch = false;
  for (u32 k = 0; k < I->letter.n; k++) {
    const onnx_letter *l = &I->letter.v[k];
    if (l->extent >= 0) continue;
    const char *name = sym_str(c, l->name);
    sb_fmt(&open, "%s`%s`", n++ ? ", " : "", name);
    bool first = is_batch(I, l);
    if (!first || !batch) sb_put(&hint, hint.n ? " " : "");
    if (!first)
      sb_fmt(&hint, "--dim %s=8", name);
    else if (!batch)
      sb_put(&hint, "--batch 8");
    batch |= first;
  }
  if (!n) return;
  diag(c, E_ONNX_DIM, where, "extents are not bound: %s", sb_str(&open));
  note_letters(I);
  diag_hint(c, "%s", sb_str(&hint));
}

static void tell_unused(imp *I, loc where) {
  ctx *c = I->f.c;
  for (u32 k = 0; k < I->o->ndims; k++) {
    if (I->dim_used[k]) continue;
    diag(c, E_USAGE, where, "--dim: no input has a dimension `%s`", I->o->dims[k].name);
    note_letters(I);
    const char *name = some_input(I);
    if (*name) diag_hint(c, "name a dimension by its position: %s:0 is the first of `%s`", name, name);
  }
  for (u32 k = 0; k < I->o->nfixed; k++) {
    bool found = I->o->fixed[k].data != NULL;
    strbuf names = {.a = I->a};
    for (u32 i = 0; i < I->m.graph.in.n; i++) {
      const char *name = sym_str(c, I->m.graph.in.v[i].name);
      found |= !strcmp(name, I->o->fixed[k].name);
      if (!(*onnx_mark(I, I->m.graph.in.v[i].name) & MARK_INIT))
        sb_fmt(&names, "%s`%s`", names.n ? ", " : "", name);
    }
    if (found) continue;
    diag(c, E_USAGE, where, "--fix: unknown input `%s`", I->o->fixed[k].name);
    diag_hint(c, "the inputs are %s", sb_str(&names));
  }
}

// What --dim and --batch bound, for whoever asked.
static void hand_out(const imp *I) {
  ctx *c = I->f.c;
  front_extents *out = I->o->extents;
  if (!out) return;
  *out = (front_extents){.v = NEWN(ctx_arena(c), front_extent, I->letter.n + 1)};
  for (u32 k = 0; k < I->letter.n; k++) {
    onnx_letter *l = &I->letter.v[k];
    out->v[out->n++] =
        (front_extent){sym_str(c, l->name), arena_strdup(ctx_arena(c), sb_str(&l->at)), l->extent};
  }
}

void onnx_bind(imp *I) {
  const onnx_graph *g = &I->m.graph;
  loc where = loc_node(I->f.c, I->f.file, (sym){0}, (sym){0});
  I->dim_used = ZNEWN(I->a, bool, I->o->ndims + 1);
  for (u32 k = 0; k < g->in.n; k++) gather(I, &g->in.v[k]);
  tell_unused(I, where);
  if (I->o->batch) bind_batch(I, where);
  if (!onnx_errors(I)) tell_open(I, where);
  hand_out(I);
}

bool onnx_input_shape(imp *I, const onnx_value *v, shape *s) {
  static const i64 extent_max = (i64)1 << 40; // elements of an input
  ctx *c = I->f.c;
  loc where = onnx_loc(I, v->name);
  const char *name = sym_str(c, v->name);
  *s = (shape){.t = onnx_dtype(v->type), .nd = v->dim.n};
  if (!v->tensor || !s->t) {
    diag(c, E_ONNX_OP, where, "input `%s` is no tensor of numbers but %s", name,
         v->tensor ? onnx_type_name(v->type) : "a sequence, map or optional");
    return false;
  }
  if (!v->ranked || v->dim.n > DIMS_MAX) {
    diag(c, v->ranked ? E_LIMIT : E_ONNX_DIM, where, "input `%s` has %s", name,
         v->ranked ? "too many dimensions" : "no shape at all");
    return false;
  }
  i64 elems = 1;
  for (u32 d = 0; d < s->nd; d++) {
    const onnx_letter *l = letter_of(I, sym_fmt(c, "%s:%u", name, d));
    if (!l && v->dim.v[d].name.i) l = letter_of(I, v->dim.v[d].name);
    s->dim[d] = l ? l->extent : v->dim.v[d].n;
    if (s->dim[d] < 0) return false; // told
    if (mul_i64(elems, MAX(s->dim[d], 1), &elems) && elems <= extent_max) continue;
    diag(c, E_LIMIT, where, "input `%s` has more than %lld elements", name, (long long)extent_max);
    return false;
  }
  return true;
}

// ---- elements ------------------------------------------------------------------------------------------
// "1, 2.5, true" as n numbers of type t; one number stands for all.
static bool numbers(const char *text, dtype t, void *to, i64 n, i64 *found) {
  bool real = dtype_kind_of(t) == DK_FLOAT;
  u32 size = dtype_bytes(t);
  for (*found = 0; *text; text += *text == ',') {
    char *end;
    double x = real ? strtod(text, &end) : 0;
    i64 i = real ? 0 : strtoll(text, &end, 10);
    if (!real && end == text && !strncmp(text, "true", 4)) i = 1, end += 4;
    if (!real && end == text && !strncmp(text, "false", 5)) end += 5;
    if (end == text || (*end && *end != ',') || (*end && !end[1])) return false;
    u8 *at = (u8 *)to + (*found < n ? *found : 0) * size;
    if (*found < n) real ? ker_store_f64(at, t, &x, 1) : ker_store_i64(at, t, &i, 1);
    ++*found, text = end;
  }
  for (i64 k = 1; k < n && *found == 1; k++) memcpy((u8 *)to + k * size, to, size);
  return *found == n || (*found == 1 && n > 0);
}

// Elements that the caller brings are of the input's type and extents, as far as the file says them.
static bool suits(imp *I, const front_fixed *f, const onnx_value *v) {
  const data_info *d = f->data;
  bool ok = !v->tensor || !onnx_dtype(v->type) || onnx_dtype(v->type) == d->t;
  ok &= !v->ranked || v->dim.n == d->nd;
  for (u32 k = 0; ok && k < v->dim.n; k++) ok = v->dim.v[k].n <= 0 || v->dim.v[k].n == d->dim[k];
  if (ok) return true;
  strbuf b = {.a = I->a};
  for (u32 k = 0; k < d->nd; k++) sb_fmt(&b, "%s%lld", k ? "," : "", (long long)d->dim[k]);
  sb_put(&b, "], not ");
  sb_put(&b, onnx_type_name(v->type));
  for (u32 k = 0; k < v->dim.n; k++) {
    sb_put(&b, k ? "," : "[");
    if (v->dim.v[k].n > 0)
      sb_fmt(&b, "%lld", (long long)v->dim.v[k].n);
    else
      sb_put(&b, v->dim.v[k].name.i ? sym_str(I->f.c, v->dim.v[k].name) : "?");
  }
  diag(I->f.c, E_SHAPE, onnx_loc(I, v->name), "`%s` is fixed as %s[%s%s", f->name, dtype_name(d->t),
       sb_str(&b), v->dim.n ? "]" : "");
  return false;
}

bool onnx_fixed(imp *I, const front_fixed *f, const onnx_value *v, data_info *out) {
  ctx *c = I->f.c;
  shape s;
  if (f->data) {
    *out = *f->data;
    return suits(I, f, v);
  }
  if (!onnx_input_shape(I, v, &s)) return false;
  i64 n = shape_elems(&s), found = 0;
  void *to = arena_alloc(I->a, (size_t)shape_bytes(&s) + 16);
  *out = (data_info){.t = s.t, .nd = s.nd, .bytes = to, .size = shape_bytes(&s)};
  memcpy(out->dim, s.dim, sizeof out->dim);
  if (numbers(f->text, s.t, to, n, &found)) return true;
  strbuf b = {.a = I->a};
  for (u32 d = 0; d < s.nd; d++) sb_fmt(&b, "%s%lld", d ? "," : "", (long long)s.dim[d]);
  diag(c, E_USAGE, onnx_loc(I, v->name), "--fix: `%s` is %s[%s]; '%.60s' is not %lld such number%s", f->name,
       dtype_name(s.t), sb_str(&b), f->text, (long long)n, n == 1 ? "" : "s");
  diag_hint(c, "numbers with commas between them, one for all, or the name of a .npy file: --fix %s=1",
            f->name);
  return false;
}
