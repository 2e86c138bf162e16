// scopes.c - what the scopes of annotations cover: each instruction of main is of one task graph.
#include "plan/policy/annotate.h"

// ---- what a scope covers --------------------------------------------------------------------------------
static bool glob(const char *pattern, const char *text) {
  if (*pattern == '*') return glob(pattern + 1, text) || (*text && glob(pattern, text + 1));
  if (!*pattern || !*text) return *pattern == *text;
  return (*pattern == '?' || *pattern == *text) && glob(pattern + 1, text + 1);
}

static bool named(const work *w, const annotation_scope *s, sym name) {
  return name.i && glob(s->match, sym_str(w->c, name));
}

// By its results, its place in the model, its operator, or a weight that it reads.
static bool selects(const work *w, const annotation_scope *s, const func_info *f, const instr *in) {
  if (s->op) return in->op == op_find(s->op, strlen(s->op));
  const loc_info *at = loc_get(w->c, in->where);
  if (at && named(w, s, at->node)) return true;
  for (u32 k = 0; k < in->nres; k++)
    if (named(w, s, val(f, in->res + k)->name)) return true;
  for (u32 k = 0; k < instr_nopd(f, in) && in->op != OP_call; k++) {
    const value v = opd_of(f, in, k);
    if (v <= f->nparams && f->params.v[v - 1].r == ROLE_WEIGHT && named(w, s, val(f, v)->name)) return true;
  }
  return false;
}

// Does it cover a call as a whole? By the function's name, or where it names all weights.
static bool selects_call(const work *w, const annotation_scope *s, const func_info *f, const instr *in) {
  if (s->op) return in->op == op_find(s->op, strlen(s->op));
  if (named(w, s, func_get(w->p, in->callee)->name) || selects(w, s, f, in)) return true;
  u32 weights = 0, hit = 0;
  for (u32 k = 0; k < instr_nopd(f, in); k++) {
    const value v = opd_of(f, in, k);
    if (v > f->nparams || f->params.v[v - 1].r != ROLE_WEIGHT) continue;
    weights++, hit += named(w, s, val(f, v)->name);
  }
  return weights && hit == weights;
}

// What it covers inside a function; `call` of `from` may name its weights otherwise. Returns how many
// instructions.
static u32 select_inside(work *w, const annotation_scope *s, bool **mark, func fn, const func_info *from,
                         const instr *call) {
  const func_info *f = func_get(w->p, fn);
  if (!mark[fn.i]) mark[fn.i] = ZNEWN(w->a, bool, f->body.n + 1);
  u32 hits = 0;
  for (u32 i = 0; i < f->body.n; i++) {
    const instr *in = &f->body.v[i];
    bool hit = in->op == OP_call ? selects_call(w, s, f, in) : selects(w, s, f, in);
    for (u32 k = 0; !hit && s->match && call && in->op != OP_call && k < instr_nopd(f, in); k++) {
      const value v = opd_of(f, in, k);
      const value outer = v <= f->nparams ? opd_of(from, call, v - 1) : 0;
      hit = outer && outer <= from->nparams && from->params.v[outer - 1].r == ROLE_WEIGHT &&
            named(w, s, val(from, outer)->name);
    }
    if (in->op == OP_call && !hit) hit = select_inside(w, s, mark, in->callee, f, in) > 0;
    mark[fn.i][i] |= hit;
    hits += hit;
  }
  return hits;
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

// ---- scopes of the program ------------------------------------------------------------------------------
// Instructions of a function, and in what it calls, that stand in the scope; *all: they all do.
static u32 written_inside(work *w, u32 scope, bool **mark, func fn, bool *all) {
  const func_info *f = func_get(w->p, fn);
  u32 hits = 0;
  if (!mark[fn.i]) mark[fn.i] = ZNEWN(w->a, bool, f->body.n + 1);
  *all = f->body.n > 0;
  for (u32 i = 0; i < f->body.n; i++) {
    const instr *in = &f->body.v[i];
    bool hit = scope_within(w->p, in->scope, scope), whole = hit;
    if (!hit && in->op == OP_call) hit = written_inside(w, scope, mark, in->callee, &whole) > 0;
    mark[fn.i][i] |= hit;
    hits += hit;
    *all = *all && whole;
  }
  return hits;
}

// in: instructions of main that stand in it, or call what does as a whole. parts: how many call what has a
// part in it, marked.
static void select_written(work *w, const annotation_scope *s, bool *in, bool **mark, u32 *whole,
                           u32 *parts) {
  const func_info *m = main_of(w);
  for (u32 i = 0; i < w->n; i++) {
    const instr *c = &m->body.v[i];
    bool all = scope_within(w->p, c->scope, s->written);
    const bool hit = all || (c->op == OP_call && written_inside(w, s->written, mark, c->callee, &all));
    in[i] = all, mark[w->p->main.i][i] = hit;
    *whole += all, *parts += hit && !all;
  }
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

// in: by instruction of main, what is a task graph. *mark: inside functions, or NULL.
static bool select_scope(work *w, const annotation_scope *s, bool *in, bool ***mark) {
  const func_info *m = main_of(w);
  if (s->layers) return select_layers(w, s, in);
  if (s->instructions) return select_instructions(w, s, in);
  bool **inside = ZNEWN(w->a, bool *, w->p->funcs.n);
  u32 whole = 0, parts = 0;
  inside[w->p->main.i] = ZNEWN(w->a, bool, w->n + 1);
  if (s->written) select_written(w, s, in, inside, &whole, &parts);
  for (u32 i = 0; !s->written && i < w->n; i++) {
    const instr *c = &m->body.v[i];
    const bool hit = c->op == OP_call ? selects_call(w, s, m, c) : selects(w, s, m, c);
    const bool part = !hit && c->op == OP_call && select_inside(w, s, inside, c->callee, m, c);
    in[i] = hit, inside[w->p->main.i][i] = hit || part;
    whole += hit, parts += part;
  }
  if (!whole && !parts) return matches_nothing(w, s);
  if (!parts) return true;
  if (!scope_splits(s)) {
    diag(w->c, E_ANNOTATE, s->what_at, "`%s` is part of a repeated block, and only a split can be",
         s->match ? s->match
         : s->op  ? s->op
                  : s->name);
    diag_hint(w->c, "replicate whole blocks: by `layers`, by the name of a function, or by `default`");
    return false;
  }
  for (u32 i = 0; i < w->n; i++) in[i] = false;
  *mark = inside;
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
    if (!select_scope(w, s, in, &mark)) return false;
    w->inner[k] = NULL;
    if (mark) {
      w->inner[k] = mark;
      continue;
    }
    for (u32 i = 0; i < w->n; i++) {
      if (!in[i]) continue;
      if (s->parent && scope[i] != s->parent) {
        diag(w->c, E_ANNOTATE, s->what_at,
             "`%s` is not inside the scope around it: instruction %u of main is not in `%s`", s->name, i + 1,
             w->x->scope[s->parent - 1].name);
        diag_note(w->c, w->x->scope[s->parent - 1].at, "the scope around it");
        return false;
      }
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
