// parameters.c - what ranks store: weights, states and data, with the pieces that they have.
//
// Idea: a model of many layers has the same lines for each. Lines that repeat but for a number that counts up become
// a loop.
#include "export/internal.h"
#include "eval/eval.h"
#include <ctype.h>
#include <stdlib.h>

typedef struct {
  const char *name, *rest; // rest: what is said of it
  group g;
  i64 number;           // the first one in the name; -1: there is none
  const char *template; // the name with {i} for it
} row;

static const char *const role_word[] = {"input", "weight", "state", "label", "const"};

static void split_name(py *w, row *r) {
  const char *s = r->name;
  r->number = -1, r->template = r->name;
  for (; *s; s++)
    if (isdigit((u8)*s) && (s == r->name || !isalnum((u8)s[-1]))) break;
  if (!*s) return;
  char *end;
  r->number = strtol(s, &end, 10);
  if (isalnum((u8)*end) || (*s == '0' && end > s + 1)) {
    r->number = -1;
    return;
  }
  strbuf b = {.a = w->a};
  sb_putn(&b, r->name, (size_t)(s - r->name));
  sb_fmt(&b, "{i}%s", end);
  r->template = sb_str(&b);
}

// Are all elements that the program gives the same?
static bool all_equal(const data_info *d) {
  const u32 size = dtype_bytes(d->t);
  return d->bytes && d->size >= size &&
         (d->size == size || !memcmp(d->bytes, (const char *)d->bytes + size, (size_t)d->size - size));
}

static row row_of(py *w, const func_info *f, u32 k) {
  const prog *p = w->p;
  const type_info *t = val_type(p, f, k + 1);
  const data_info *d = &p->data.v[f->params.v[k].data];
  u8 over[LAY_SPLITS], axes[LAY_SPLITS];
  u32 n = 0;
  strbuf b = {.a = w->a};
  row r = {.name = py_param(w, f, k), .g = t->g};
  const char *word = py_dtype(w, t->s.t, f->where);
  if (!word || !py_local(w, t, f->where)) return r;
  sb_put(&b, "Stored(");
  py_ints(&b, t->s.dim, t->s.nd, false);
  sb_fmt(&b, ", %s, \"%s\"", word, role_word[f->params.v[k].r]);
  const layout_info *l = layout_get(p->sp, t->lay);
  for (u32 j = 0; j < l->nsplit; j++) over[n++] = l->split[j].axis;
  n = py_order(w, t, over, n, axes);
  for (u32 j = 0; j < n; j++) {
    const lay_split *s = layout_split_of(p->sp, t->lay, axes[j]);
    sb_fmt(&b, ", (%s, %u, ", py_axes_of(w, &axes[j], 1), s->dim);
    py_stride(w, s, s->stride, &b);
    sb_char(&b, ')');
  }
  const i64 below = eval_bound(p, k);
  if (below) sb_fmt(&b, ", below=%lld", (long long)below);
  if (f->params.v[k].host) sb_put(&b, ", host=True");
  if (f->params.v[k].data && all_equal(d)) {
    eval_array x = {.s = {.t = d->t}, .data = (void *)(uintptr_t)d->bytes};
    sb_put(&b, ", fill=");
    py_float(&b, eval_element(&x, 0));
  }
  sb_char(&b, ')');
  r.rest = sb_str(&b);
  split_name(w, &r);
  return r;
}

static bool follows(const row *x, const row *y, i64 by) {
  return x->number >= 0 && y->number == x->number + by && x->g.i == y->g.i &&
         !strcmp(x->template, y->template) && !strcmp(x->rest, y->rest);
}

// How often the block of `n` rows is repeated from here on, counted up by 1.
static u32 repeats(const row *r, u32 left, u32 n) {
  u32 times = 1;
  for (u32 k = 1; k < n; k++)
    if (r[k].number != r[0].number || r[k].g.i != r[0].g.i) return 1;
  for (; (times + 1) * n <= left; times++)
    for (u32 k = 0; k < n; k++)
      if (!follows(&r[k], &r[times * n + k], times)) return times;
  return times;
}

static void put_group(py *w, group g) {
  const group_info *x = group_get(w->p->sp, g);
  strbuf b = {.a = w->a};
  if (g.i) {
    sb_fmt(&b, "if %s.has(RANK", w->meshes[x->m.i]);
    for (u32 k = 0; k < x->naxes; k++)
      if (x->axis[k].at >= 0)
        sb_fmt(&b, ", %s=%d", sym_str(w->c, axis_get(w->p->sp, x->axis[k].axis)->name), x->axis[k].at);
    sb_put(&b, "):");
  } else
    sb_put(&b, "if True:");
  py_put(w, PY_INDENT, "%s", sb_str(&b));
}

static void put_row(py *w, u32 indent, const row *r, bool counted) {
  strbuf b = {.a = w->a};
  sb_put(&b, counted ? "p[f" : "p[");
  py_quote(&b, counted ? r->template : r->name);
  py_put(w, indent, "%s] = %s", sb_str(&b), r->rest);
}

void py_parameters(py *w) {
  enum { BLOCK = 128 };
  const func_info *f = func_get(w->p, w->p->main);
  row *r = NEWN(w->a, row, f->nparams + 1);
  for (u32 k = 0; k < f->nparams && !w->failed; k++) r[k] = row_of(w, f, k);
  if (w->failed) return;
  py_put(w, 0, "\n\ndef parameters():");
  py_put(w, PY_INDENT,
         "\"\"\"What this rank stores, by name: whole extents, type, role, and (axes, dimension, stride) of "
         "every cut.\"\"\"");
  py_put(w, PY_INDENT, "p = {}");
  group now = {UINT32_MAX};
  for (u32 k = 0; k < f->nparams;) {
    if (r[k].g.i != now.i) put_group(w, r[k].g);
    now = r[k].g;
    u32 best = 1, times = 1;
    for (u32 n = 1; n <= BLOCK && r[k].number >= 0 && k + 2 * n <= f->nparams; n++) {
      const u32 t = repeats(r + k, f->nparams - k, n);
      if (t > 1 && t * n > best * times) best = n, times = t;
    }
    u32 indent = 2 * PY_INDENT;
    if (times > 1) {
      py_put(w, indent, "for i in range(%lld, %lld):", (long long)r[k].number,
             (long long)r[k].number + times);
      indent += PY_INDENT;
    }
    for (u32 j = 0; j < best; j++) put_row(w, indent, &r[k + j], times > 1);
    k += best * times;
  }
  py_put(w, PY_INDENT, "return p");
}
