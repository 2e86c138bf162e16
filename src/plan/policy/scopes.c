// scopes.c - what the scopes of annotations cover: each instruction of main is of one task graph.
#include "plan/policy/annotate.h"
#include <ctype.h>

// ---- what a scope covers --------------------------------------------------------------------------------
static bool glob(const char *pattern, const char *text) {
  if (*pattern == '*') return glob(pattern + 1, text) || (*text && glob(pattern, text + 1));
  if (!*pattern || !*text) return *pattern == *text;
  return (*pattern == '?' || *pattern == *text) && glob(pattern + 1, text + 1);
}

static bool named(const work *w, const annotation_scope *s, sym name) {
  return name.i && glob(s->match, sym_str(w->c, name));
}

// The calls that lead to an instruction, the innermost first; NULL: it is of main. An imported block has the places of
// its first call; `was` is what they begin with, and in this call they begin with `now`.
typedef struct path path;
struct path {
  const path *up;
  const func_info *from;
  const instr *call;
  const char *was, *now; // NULL: alike
};

static const char *place_of(const work *w, const instr *in) {
  const loc_info *at = loc_get(w->c, in->where);
  return at && at->node.i ? sym_str(w->c, at->node) : "";
}

// Two places that differ in one number, up to its end: "h.0" and "h.3" of "h.0/ln" and "h.3/ln".
static void name_places(const work *w, path *x) {
  const func_info *f = func_get(w->p, x->call->callee);
  const char *was = f->body.n ? place_of(w, f->body.v) : "", *now = place_of(w, x->call);
  size_t n = 0, wn, nn;
  while (was[n] && was[n] == now[n]) n++;
  while (n && isdigit((u8)was[n - 1])) n--;
  wn = strspn(was + n, "0123456789"), nn = strspn(now + n, "0123456789");
  if (!wn || !nn || strcmp(was + n + wn, now + n + nn)) return;
  x->was = arena_printf(w->a, "%.*s", (int)(n + wn), was);
  x->now = arena_printf(w->a, "%.*s", (int)(n + nn), now);
}

static bool place_fits(const work *w, const annotation_scope *s, const instr *in, const path *x) {
  const char *text = place_of(w, in);
  for (; x && *text; x = x->up) {
    const size_t n = x->was ? strlen(x->was) : 0;
    if (n && !strncmp(text, x->was, n) && !isdigit((u8)text[n]))
      text = arena_printf(w->a, "%s%s", x->now, text + n);
  }
  return *text && glob(s->match, text);
}

// A weight, by its name in the function or in any that hands it on.
static bool weight_fits(const work *w, const annotation_scope *s, const func_info *f, value v,
                        const path *x) {
  if (v > f->nparams || f->params.v[v - 1].r != ROLE_WEIGHT) return false;
  if (named(w, s, val(f, v)->name)) return true;
  return x && weight_fits(w, s, x->from, opd_of(x->from, x->call, v - 1), x->up);
}

// By where it stands, its operator, its place in the model, its results, or a weight that it reads.
static bool selects(const work *w, const annotation_scope *s, const func_info *f, const instr *in,
                    const path *x) {
  if (s->written) return scope_within(w->p, in->scope, s->written);
  if (s->op) return in->op == op_named(w->p->c, s->op, strlen(s->op));
  if (place_fits(w, s, in, x)) return true;
  for (u32 k = 0; k < in->nres; k++)
    if (named(w, s, val(f, in->res + k)->name)) return true;
  for (u32 k = 0; k < instr_nopd(f, in); k++)
    if (weight_fits(w, s, f, opd_of(f, in, k), x)) return true;
  return false;
}

// Has a call a place of its own, not that of the first instruction of its block but for numbers?
static bool own_place(const work *w, const instr *in) {
  const func_info *f = func_get(w->p, in->callee);
  const char *s = place_of(w, in), *t = f->body.n ? place_of(w, f->body.v) : "";
  for (;; s++, t++) {
    while (isdigit((u8)*s)) s++;
    while (isdigit((u8)*t)) t++;
    if (*s != *t || !*s) return *s != *t;
  }
}

// Is a call covered whichever instructions it leads to? By its operator, the function's name, its own place, or where all
// weights are named.
static bool selects_call(const work *w, const annotation_scope *s, const func_info *f, const instr *in,
                         const path *x) {
  if (s->written || s->op) return selects(w, s, f, in, x);
  if (named(w, s, func_get(w->p, in->callee)->name)) return true;
  if (own_place(w, in) && place_fits(w, s, in, x)) return true;
  u32 weights = 0, hit = 0;
  for (u32 k = 0; k < instr_nopd(f, in); k++) {
    const value v = opd_of(f, in, k);
    if (v > f->nparams || f->params.v[v - 1].r != ROLE_WEIGHT) continue;
    weights++, hit += weight_fits(w, s, f, v, x);
  }
  return weights && hit == weights;
}

typedef enum { COVERS_NONE, COVERS_PART, COVERS_ALL } covers;
static covers covers_call(const work *w, const annotation_scope *s, const func_info *f, const instr *in,
                          const path *up) {
  if (selects_call(w, s, f, in, up)) return COVERS_ALL;
  const func_info *g = func_get(w->p, in->callee);
  path own = {.up = up, .from = f, .call = in};
  if (s->match) name_places(w, &own);
  bool all = g->body.n > 0, any = false;
  for (u32 i = 0; i < g->body.n; i++) {
    const instr *e = &g->body.v[i];
    const covers of = e->op == OP_call            ? covers_call(w, s, g, e, &own)
                      : selects(w, s, g, e, &own) ? COVERS_ALL
                                                  : COVERS_NONE;
    all = all && of == COVERS_ALL, any = any || of;
  }
  return all && !s->op ? COVERS_ALL : any ? COVERS_PART : COVERS_NONE;
}

// Marks what a call of `from` has of the scope, which covers it so far; with `odd` nothing is marked, and the answer is
// whether all is marked so already; if not, *odd is the function where it is not.
static bool mark_call(const work *w, const annotation_scope *s, bool **mark, const func_info *from,
                      const instr *call, const path *up, covers how, func *odd) {
  const func fn = call->callee;
  const func_info *f = func_get(w->p, fn);
  path own = {.up = up, .from = from, .call = call};
  if (s->match) name_places(w, &own);
  if (!mark[fn.i]) mark[fn.i] = ZNEWN(w->a, bool, f->body.n + 1);
  for (u32 i = 0; i < f->body.n; i++) {
    const instr *in = &f->body.v[i];
    covers of = how;
    if (how == COVERS_PART)
      of = in->op == OP_call            ? covers_call(w, s, f, in, &own)
           : selects(w, s, f, in, &own) ? COVERS_ALL
                                        : COVERS_NONE;
    if (in->op == OP_call && (of || odd) && !mark_call(w, s, mark, f, in, &own, of, odd)) return false;
    if (odd && in->op != OP_call && mark[fn.i][i] != (of != COVERS_NONE)) return *odd = fn, false;
    if (!odd) mark[fn.i][i] |= of != COVERS_NONE;
  }
  return true;
}

// From the first block to the last, with what lies between.
static bool select_layers(work *w, const annotation_scope *s, bool *in) {
  const func_info *m = main_of(w);
  u32 blocks = 0, first = 0, last = 0;
  for (u32 i = 0; i < w->n; i++) {
    if (m->body.v[i].op != OP_call) continue;
    if (blocks == s->first) first = i;
    if (blocks++ == s->last) last = i;
  }
  if (s->last < blocks) {
    for (u32 i = first; i <= last; i++) in[i] = true;
    return true;
  }
  diag(w->c, E_ANNOTATE, s->what_at, "layer %u does not exist: the model has %u repeated blocks", s->last,
       blocks);
  diag_note(w->c, m->where, "the calls of main are its repeated blocks");
  if (blocks)
    diag_hint(w->c, "layers: \"%u-%u\"", MIN(s->first, blocks - 1), blocks - 1);
  else
    diag_hint(w->c, "use `match` or `op`");
  return false;
}

static bool select_instructions(work *w, const annotation_scope *s, bool *in) {
  for (u32 i = s->first; i <= s->last && i <= w->n; i++) in[i - 1] = true;
  if (s->last <= w->n) return true;
  diag(w->c, E_ANNOTATE, s->what_at, "instruction %u does not exist: main has %u", s->last, w->n);
  diag_hint(w->c, "instructions: \"%u-%u\"", MIN(s->first, w->n), w->n);
  return false;
}

static bool matches_nothing(const work *w, const annotation_scope *s) {
  const func_info *m = main_of(w);
  const char *text = s->match ? s->match : s->op ? s->op : s->name;
  near_name near = near_to(text, strlen(text));
  diag(w->c, E_ANNOTATE, s->what_at, "`%s` matches nothing in the model", text);
  for (u32 i = 0; s->match && i < w->n; i++) {
    const loc_info *at = loc_get(w->c, m->body.v[i].where);
    if (at && at->node.i) near_try(&near, sym_str(w->c, at->node));
    if (m->body.v[i].op == OP_call) near_try(&near, sym_str(w->c, func_get(w->p, m->body.v[i].callee)->name));
  }
  for (u32 k = 0; s->match && k < m->nparams; k++)
    if (m->params.v[k].r == ROLE_WEIGHT) near_try(&near, sym_str(w->c, val(m, k + 1)->name));
  if (s->match && near.name)
    diag_hint(w->c, "did you mean `%s`?", near.name);
  else if (s->match)
    diag_hint(w->c, "`heddle import MODEL` shows functions, weights and places in the model (loc)");
  return false;
}

static bool not_inside(const work *w, const annotation_scope *s, u32 i) {
  const annotation_scope *around = &w->x->scope[s->parent - 1];
  diag(w->c, E_ANNOTATE, s->what_at,
       "`%s` is not inside the scope around it: instruction %u of main is not in `%s`", s->name, i + 1,
       around->name);
  diag_note(w->c, around->at, "the scope around it");
  return false;
}

static u32 first_of(const covers *how, u32 n) {
  u32 i = 0;
  while (i + 1 < n && !how[i]) i++;
  return i;
}

// in: by instruction of main, what is a task graph. *mark: inside functions, or NULL. What a scope inside another has of
// blocks lies within that: `scope` tells by instruction of main.
static bool select_scope(work *w, const annotation_scope *s, const u32 *scope, bool *in, bool ***mark) {
  const func_info *m = main_of(w);
  if (s->layers) return select_layers(w, s, in);
  if (s->instructions) return select_instructions(w, s, in);
  covers *how = ZNEWN(w->a, covers, w->n + 1);
  u32 whole = 0, parts = 0, inside = 0;
  for (u32 i = 0; i < w->n; i++) {
    const instr *c = &m->body.v[i];
    how[i] = c->op == OP_call            ? covers_call(w, s, m, c, NULL)
             : selects(w, s, m, c, NULL) ? COVERS_ALL
                                         : COVERS_NONE;
    in[i] = how[i] == COVERS_ALL;
    whole += in[i], parts += how[i] == COVERS_PART;
    inside += how[i] == COVERS_PART && (!s->parent || scope[i] == s->parent);
  }
  if (!whole && !parts) return matches_nothing(w, s);
  if (!inside && whole) return true;
  if (!inside) return not_inside(w, s, first_of(how, w->n));
  if (!scope_splits(s)) {
    diag(w->c, E_ANNOTATE, s->what_at, "`%s` is part of a repeated block, and only a split can be",
         s->match ? s->match
         : s->op  ? s->op
                  : s->name);
    diag_hint(w->c, "replicate whole blocks: by `layers`, by the name of a function, or by `default`");
    return false;
  }
  *mark = ZNEWN(w->a, bool *, w->p->funcs.n);
  bool *of_main = (*mark)[w->p->main.i] = ZNEWN(w->a, bool, w->n + 1);
  for (u32 i = 0; i < w->n; i++) {
    in[i] = false;
    if (!how[i] || (s->parent && scope[i] != s->parent)) continue;
    of_main[i] = true;
    if (m->body.v[i].op == OP_call) mark_call(w, s, *mark, m, &m->body.v[i], NULL, how[i], NULL);
  }
  return true;
}

// ---- task graphs ----------------------------------------------------------------------------------------
static bool overlap(const work *w, const annotation_scope *s, const annotation_scope *t, u32 i) {
  const instr *in = &main_of(w)->body.v[i];
  diag(w->c, E_ANNOTATE, s->what_at, "scopes `%s` and `%s` overlap: both cover instruction %u of main (%s)",
       t->name, s->name, i + 1, op_row_of(in->op)->name);
  diag_note(w->c, t->what_at, "the other scope");
  if (in->where.i) diag_note(w->c, in->where, "here in the model");
  diag_hint(w->c, "task graphs are disjoint; nest a split in a replicate with `scopes`");
  return false;
}

// The scope of every instruction, from 1; 0: of the default.
static bool cover(work *w, u32 *scope) {
  for (u32 k = 0; k < w->x->nscopes; k++) {
    const annotation_scope *s = &w->x->scope[k];
    bool *in = ZNEWN(w->a, bool, w->n + 1);
    bool **mark = NULL;
    if (!select_scope(w, s, scope, in, &mark)) return false;
    w->inner[k] = NULL;
    if (mark) {
      w->inner[k] = mark;
      continue;
    }
    for (u32 i = 0; i < w->n; i++) {
      if (!in[i]) continue;
      if (s->parent && scope[i] != s->parent) return not_inside(w, s, i);
      if (scope[i] && scope[i] != s->parent) return overlap(w, s, &w->x->scope[scope[i] - 1], i);
      scope[i] = k + 1;
    }
  }
  return true;
}

// Are they one task graph: of one name, kind and size, in scopes of which this is true?
static bool same_scope(const work *w, const annotation_scope *s, const annotation_scope *t) {
  if (s == t) return true;
  if (s == &w->x->dflt || t == &w->x->dflt || strcmp(s->name, t->name)) return false;
  if (s->kind != t->kind || s->count != t->count || !s->parent != !t->parent) return false;
  return !s->parent || same_scope(w, &w->x->scope[s->parent - 1], &w->x->scope[t->parent - 1]);
}

static u32 graph_of(work *w, const annotation_scope *s) {
  for (u32 g = 0; g < w->ngraphs; g++)
    if (same_scope(w, w->graph[g].scope, s)) return g + 1;
  w->graph[w->ngraphs] = (graph){.scope = s, .home = w->ngraphs};
  return ++w->ngraphs;
}

// What lies inside another task graph is on its devices; where that has nothing of its own, on those of the first
// that lies inside.
static u32 home_of(const work *w, u32 g) {
  const annotation_scope *s = w->graph[g].scope;
  if (!s->parent) return g;
  const annotation_scope *around = &w->x->scope[s->parent - 1];
  for (u32 k = 0; k < w->ngraphs; k++)
    if (same_scope(w, w->graph[k].scope, around)) return k;
  for (u32 k = 0; k < g; k++) {
    const u32 parent = w->graph[k].scope->parent;
    if (parent && same_scope(w, &w->x->scope[parent - 1], around)) return k;
  }
  return g;
}

static bool shares_agree(const work *w) {
  for (u32 k = 0; k < w->x->nscopes; k++)
    for (u32 j = 0; j < k; j++) {
      const annotation_scope *s = &w->x->scope[k], *t = &w->x->scope[j];
      const shares_info *x = &s->shares, *y = &t->shares;
      if (!same_scope(w, s, t)) continue;
      if (x->how == y->how && x->n == y->n && (!x->n || !memcmp(x->part, y->part, x->n * sizeof *x->part)))
        continue;
      diag(w->c, E_ANNOTATE, x->how ? x->where : s->at,
           "scopes named `%s` are one task graph, and have other shares", s->name);
      diag_note(w->c, y->how ? y->where : t->at, "the first of them");
      diag_hint(w->c, "the same shares, or another name");
      return false;
    }
  return true;
}

// The scope, or the one around it, if it is replicated.
static const annotation_scope *replicated(const work *w, u32 scope) {
  while (scope && scope_splits(&w->x->scope[scope - 1])) scope = w->x->scope[scope - 1].parent;
  return scope ? &w->x->scope[scope - 1] : NULL;
}

// In program order. What no scope covers is of the default; where there is none, of the last replicate before
// it, at the beginning of the first one, and if nothing is replicated of a default of one device for each
// replica.
static void make_graphs(work *w, const u32 *scope) {
  const annotation_scope *first = NULL, *last = NULL;
  for (u32 i = 0; i < w->n && !first; i++) first = replicated(w, scope[i]);
  last = w->x->has_default || !first ? &w->x->dflt : first;
  for (u32 i = 0; i < w->n; i++) {
    const annotation_scope *s = scope[i] ? &w->x->scope[scope[i] - 1] : last;
    const annotation_scope *rep = replicated(w, scope[i]);
    if (rep && !w->x->has_default) last = rep;
    w->of[i] = graph_of(w, s);
    graph *g = &w->graph[w->of[i] - 1];
    if (!g->from) g->from = i + 1;
    g->to = i + 1;
  }
  for (u32 g = 0; g < w->ngraphs; g++) w->graph[g].home = home_of(w, g);
}

// Repeated blocks that no scope names have joined another task graph than the default: said once for each.
static void warn_of_blocks(const work *w) {
  const func_info *m = main_of(w);
  for (u32 g = 0; g < w->ngraphs; g++) {
    const annotation_scope *s = w->graph[g].scope;
    u32 first = 0, last = 0, n = 0;
    for (u32 i = 0, block = 0; i < w->n && s != &w->x->dflt; i++) {
      if (m->body.v[i].op != OP_call) continue;
      if (!w->named[i] && w->of[i] == g + 1) {
        if (!n++) first = block;
        last = block;
      }
      block++;
    }
    if (!n) continue;
    diag(w->c, W_SCOPE, s->what_at.i ? s->what_at : s->at, "`%s` also takes %s %s, which no scope names",
         s->name,
         n == 1                  ? "block"
         : n == last - first + 1 ? "blocks"
                                 : "blocks among",
         n == 1 ? arena_printf(w->a, "%u", first) : arena_printf(w->a, "%u-%u", first, last));
    diag_hint(w->c, "name them in a scope, or say what is in none: default: {replicate: %s}",
              s->count && s->count != COUNT_ALL ? arena_printf(w->a, "%u", s->count) : "all");
  }
}

bool scopes_divide(work *w) {
  u32 *scope = ZNEWN(w->a, u32, w->n + 1);
  if (!cover(w, scope) || !shares_agree(w)) return false;
  make_graphs(w, scope);
  w->named = ZNEWN(w->a, bool, w->n + 1);
  for (u32 i = 0; i < w->n; i++) w->named[i] = scope[i] > 0;
  warn_of_blocks(w);
  return true;
}

// ---- inside blocks --------------------------------------------------------------------------------------
static bool on_axis(const work *w, u32 i, u8 axis) { return w->graph[w->of[i] - 1].axis == axis; }

static bool is_inside(const work *w, u32 k, u8 axis) {
  const bool *of_main = w->inner[k] ? w->inner[k][w->p->main.i] : NULL;
  for (u32 i = 0; of_main && i < w->n; i++)
    if (of_main[i] && on_axis(w, i, axis)) return true;
  return false;
}

// Is all that it has marked what every call has of it? Else *odd is one that has something else, of function *in.
static bool alike_inside(const work *w, const annotation_scope *s, bool **mark, u8 axis, u32 *odd, func *in) {
  const func_info *m = main_of(w);
  for (u32 i = 0; i < w->n; i++) {
    const instr *c = &m->body.v[i];
    if (c->op != OP_call || !on_axis(w, i, axis)) continue;
    const covers how = mark[w->p->main.i][i] ? covers_call(w, s, m, c, NULL) : COVERS_NONE;
    *odd = i;
    if (!mark_call(w, s, mark, m, c, NULL, how, in)) return false;
  }
  return true;
}

// What it covers with `*` for numbers, and not only inside the scope around it, where every call has the same of that; NULL: it
// is none.
static const char *pattern_of_all(const work *w, const annotation_scope *s, u8 axis) {
  const func_info *m = main_of(w);
  strbuf b = {.a = w->a};
  for (const char *t = s->match; t && *t; t++)
    if (!isdigit((u8)*t))
      sb_char(&b, *t);
    else if (t == s->match || !isdigit((u8)t[-1]))
      sb_char(&b, '*');
  annotation_scope all = *s;
  if (s->match) all.match = sb_str(&b);
  if (s->written || (!s->parent && (!s->match || !strcmp(all.match, s->match)))) return NULL;
  bool **mark = ZNEWN(w->a, bool *, w->p->funcs.n), any = false;
  mark[w->p->main.i] = ZNEWN(w->a, bool, w->n + 1);
  for (u32 i = 0; i < w->n; i++) {
    const instr *c = &m->body.v[i];
    if (c->op != OP_call || !on_axis(w, i, axis)) continue;
    const covers how = covers_call(w, &all, m, c, NULL);
    if (how) mark_call(w, &all, mark, m, c, NULL, how, NULL);
    mark[w->p->main.i][i] = how, any = any || how == COVERS_PART;
  }
  u32 odd;
  func in;
  return any && alike_inside(w, &all, mark, axis, &odd, &in) ? all.match ? all.match : all.op : NULL;
}

static u32 layer_of(const work *w, u32 i) {
  u32 block = 0;
  for (u32 k = 0; k < i; k++) block += main_of(w)->body.v[k].op == OP_call;
  return block;
}

static bool overlap_inside(const work *w, const annotation_scope *s, const annotation_scope *t, func fn,
                           u32 i, u8 axis) {
  const func_info *f = func_get(w->p, fn);
  const instr *in = &f->body.v[i];
  const char *all = pattern_of_all(w, s, axis);
  diag(w->c, E_ANNOTATE, s->what_at, "scopes `%s` and `%s` overlap: both cover instruction %u of %s (%s)",
       t->name, s->name, i + 1,
       fn.i == w->p->main.i
           ? "main"
           : arena_printf(w->a, "function `%s`, which its calls share", sym_str(w->c, f->name)),
       op_row_of(in->op)->name);
  diag_note(w->c, t->what_at, "the other scope");
  if (in->where.i) diag_note(w->c, in->where, "here in the model");
  if (all && s->match && strcmp(all, s->match))
    diag_hint(w->c, "one scope for all: match: '%s'", all);
  else
    diag_hint(w->c, "leave out one of them, or name in it what the other does not cover");
  return false;
}

static bool not_alike(const work *w, const annotation_scope *s, bool **mark, u32 odd, func in, u8 axis) {
  const func_info *m = main_of(w);
  const instr *call = &m->body.v[odd];
  const char *all = pattern_of_all(w, s, axis);
  u32 other = w->n, calls = 0;
  for (u32 i = 0; i < w->n; i++) {
    const instr *c = &m->body.v[i];
    if (c->op != OP_call || c->callee.i != call->callee.i || !on_axis(w, i, axis)) continue;
    calls++;
    if (other == w->n && i != odd && mark[w->p->main.i][i]) other = i;
  }
  const char *name = sym_str(w->c, func_get(w->p, in)->name);
  if (other < w->n && in.i == call->callee.i)
    diag(w->c, E_ANNOTATE, s->what_at,
         "`%s` does not cover the same of layers %u and %u, which share function `%s`%s", s->name,
         layer_of(w, MIN(other, odd)), layer_of(w, MAX(other, odd)), name,
         calls > 2 ? arena_printf(w->a, " with %u more", calls - 2) : "");
  else
    diag(w->c, E_ANNOTATE, s->what_at, "`%s` does not cover the same in all calls of function `%s`", s->name,
         name);
  if (call->where.i) diag_note(w->c, call->where, "here in the model");
  if (all)
    diag_hint(w->c, "a split inside a function is of all its calls: %s: '%s'%s", s->match ? "match" : "op",
              all, s->parent ? arena_printf(w->a, ", outside `%s`", w->x->scope[s->parent - 1].name) : "");
  else
    diag_hint(w->c, "a split inside a function is of all its calls; whole layers: layers: \"%u\"",
              layer_of(w, other < w->n && !mark[w->p->main.i][odd] ? other : odd));
  return false;
}

bool scopes_inside(work *w, u32 k, u8 axis) {
  const annotation_scope *s = &w->x->scope[k];
  for (u32 j = 0; j < w->x->nscopes; j++) {
    if (j == k || !is_inside(w, j, axis)) continue;
    for (u32 f = 1; f < planner_funcs(w->pl); f++) {
      const bool *x = w->inner[k][f], *y = w->inner[j][f];
      const func_info *fi = func_get(w->p, (func){f});
      for (u32 i = 0; x && y && i < fi->body.n; i++)
        if (x[i] && y[i] && fi->body.v[i].op != OP_call)
          return overlap_inside(w, &w->x->scope[MAX(j, k)], &w->x->scope[MIN(j, k)], (func){f}, i, axis);
    }
  }
  u32 odd;
  func in;
  return alike_inside(w, s, w->inner[k], axis, &odd, &in) || not_alike(w, s, w->inner[k], odd, in, axis);
}
