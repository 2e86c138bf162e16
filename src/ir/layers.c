// layers.c - which layer of the model something is of. Not which layers a plan puts where (plan/).
//
// Idea: a layer is a call of main to a function that main calls several times. Its number is in the names of its
// weights: "h.3.attn.qkv" is of layer 3. The forward, its gradients and what is computed again share the call's origin,
// so what is made of a program keeps a number by origin; updates and what is done to weights follow from the weights.
#include "ir/internal.h"

enum { COLUMNS = 4, MIXED = UINT32_MAX };

// The number in that column of a name, whose columns are the numbers between dots, + 1; 0: there is none.
static u32 number_in(const char *name, u32 column) {
  for (const char *at = name; *at;) {
    const size_t n = strcspn(at, "./"), digits = strspn(at, "0123456789");
    if (n && digits == n && n <= 9 && !column--) {
      u32 x = 0;
      for (size_t k = 0; k < n; k++) x = 10 * x + (u32)(at[k] - '0');
      return x + 1;
    }
    at += n + (at[n] != 0);
  }
  return 0;
}

static bool is_weight(const func_info *m, value v) {
  return v <= m->nparams && m->params.v[v - 1].r != ROLE_INPUT && m->params.v[v - 1].r != ROLE_LABEL;
}

// Calls of main to one function.
typedef struct {
  const prog *p;
  const func_info *m;
  u32 n, *call;      // numbers of instructions
  u32 *users, *last; // by parameter of main, from 0: how many of the calls take it, the last one that does
} calls;

static void count_users(calls *x, u32 *users) {
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->m->body.v[x->call[k]];
    for (u32 j = 0; j < instr_nopd(x->m, i); j++) {
      const value v = opd_of(x->m, i, j);
      if (v > x->m->nparams || x->last[v - 1] == x->call[k] + 1) continue;
      x->last[v - 1] = x->call[k] + 1, users[v - 1]++;
    }
  }
}

// What the names of all weights of the call say, but of those that all calls take; 0: they do not agree.
static u32 number_of_call(const calls *x, u32 k, u32 column) {
  const instr *i = &x->m->body.v[x->call[k]];
  u32 is = 0;
  for (u32 j = 0; j < instr_nopd(x->m, i); j++) {
    const value v = opd_of(x->m, i, j);
    if (!is_weight(x->m, v) || (x->n > 1 && x->users[v - 1] == x->n)) continue;
    const u32 said = number_in(sym_str(x->p->c, val(x->m, v)->name), column);
    if (!said || (is && said != is)) return 0;
    is = said;
  }
  return is;
}

// Numbers that tell the calls apart, of the first column that has them.
static bool number_by_names(const calls *x, u32 *layer) {
  for (u32 column = 0; column < COLUMNS; column++) {
    bool differ = x->n == 1;
    u32 k = 0, first = 0, is = 1;
    for (; k < x->n && is; k++) {
      layer[x->call[k]] = is = number_of_call(x, k, column);
      if (!k) first = is;
      differ |= is != first;
    }
    if (is && differ) return true;
  }
  for (u32 k = 0; k < x->n; k++) layer[x->call[k]] = 0;
  return false;
}

// Gradients come last first, and a plan's main calls stages: only calls of a model's own forward are counted.
static void number_calls(calls *x, u32 *layer) {
  for (u32 k = 0; k < x->n; k++) {
    const instr *i = &x->m->body.v[x->call[k]];
    for (u32 j = 0; j < instr_nopd(x->m, i); j++) {
      const value v = opd_of(x->m, i, j);
      if (v <= x->m->nparams) x->users[v - 1] = x->last[v - 1] = 0;
    }
  }
  count_users(x, x->users);
  if (number_by_names(x, layer) || x->n == 1 || mesh_count(x->p->sp)) return;
  if (x->m->body.v[x->call[0]].flags) return;
  for (u32 k = 0; k < x->n; k++) layer[x->call[k]] = k + 1;
}

u32 *ir_layer_of_calls(arena *a, const prog *p) {
  const func_info *m = func_get(p, p->main);
  u32 *layer = ZNEWN(a, u32, m->body.n + 1), *head = ZNEWN(a, u32, p->funcs.n + 1),
      *next = ZNEWN(a, u32, m->body.n + 1), *by = ZNEWN(a, u32, p->norigins + 1);
  calls x = {.p = p,
             .m = m,
             .call = NEWN(a, u32, m->body.n + 1),
             .users = ZNEWN(a, u32, m->nparams + 1),
             .last = ZNEWN(a, u32, m->nparams + 1)};
  for (u32 i = m->body.n; i-- > 0;) {
    const instr *in = &m->body.v[i];
    if (in->op == OP_call && !(in->flags & INSTR_UPDATE))
      next[i] = head[in->callee.i], head[in->callee.i] = i + 1;
  }
  for (u32 i = 0; i < m->body.n; i++) {
    const instr *in = &m->body.v[i];
    if (in->op != OP_call || head[in->callee.i] != i + 1) continue;
    x.n = 0;
    for (u32 k = i + 1; k; k = next[k - 1]) x.call[x.n++] = k - 1;
    number_calls(&x, layer);
  }
  for (u32 i = 0; i < m->body.n; i++) // the forward comes first
    if (layer[i] && !by[m->body.v[i].origin]) by[m->body.v[i].origin] = layer[i];
  for (u32 i = 0; i < m->body.n; i++)
    if (m->body.v[i].op == OP_call && m->body.v[i].origin && by[m->body.v[i].origin])
      layer[i] = by[m->body.v[i].origin];
  return layer;
}

u32 *ir_layer_of_params(arena *a, const prog *p, const u32 *call) {
  const func_info *m = func_get(p, p->main);
  u32 *of = ZNEWN(a, u32, m->nparams + 1);
  for (u32 i = 0; i < m->body.n; i++) {
    const instr *in = &m->body.v[i];
    for (u32 j = 0; j < instr_nopd(m, in) && in->op == OP_call && !(in->flags & INSTR_UPDATE); j++) {
      const value v = opd_of(m, in, j);
      if (!is_weight(m, v)) continue;
      of[v - 1] = call[i] && (!of[v - 1] || of[v - 1] == call[i]) ? call[i] : MIXED;
    }
  }
  for (u32 k = 0; k < m->nparams; k++)
    if (of[k] == MIXED) of[k] = 0;
  return of;
}

const layer_table *ir_layers_copy(arena *a, const layer_table *t) {
  layer_table *to = arena_dup(a, t, sizeof *t);
  const u32 **of = NEWN(a, const u32 *, t->nstages + 1);
  for (u32 k = 0; k < t->nstages; k++)
    of[k] = k && t->of[k] == t->of[0] ? of[0] : arena_dup(a, t->of[k], (t->norigins + 1) * sizeof **of);
  to->of = of;
  to->param = arena_dup(a, t->param, (t->nparams + 1) * sizeof *t->param);
  return to;
}

// ---- updates ---------------------------------------------------------------------------------------------
// Values of a function that updates several weights, by weight: those that its instructions join have the same root.
static u32 root_of(u32 *root, u32 v) {
  while (root[v] != v) v = root[v] = root[root[v]];
  return v;
}

static const u32 *joined_values(arena *a, const func_info *f) {
  u32 *root = NEWN(a, u32, f->values.n + 1);
  for (u32 v = 0; v <= f->values.n; v++) root[v] = v;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    const u32 to = i->nres ? i->res : i->nopd ? opd_of(f, i, 0) : 0;
    for (u32 r = 1; r < i->nres; r++) root[root_of(root, i->res + r)] = root_of(root, to);
    for (u32 j = 0; j < i->nopd; j++) root[root_of(root, opd_of(f, i, j))] = root_of(root, to);
  }
  for (u32 v = 0; v < f->values.n; v++) root[v] = root_of(root, v);
  return root;
}

typedef struct {
  arena *a;
  const prog *p;
  const func_info *m;
  ir_layers *l;
  u32 *of;   // by instruction of main
  u32 *made; // by value: the layer that it is of
  u32 *goes; // by value: the layer whose update it goes into, and nowhere else; MIXED
} walk;

static bool is_update(const instr *i) { return i->op == OP_call && i->flags & INSTR_UPDATE; }

// Which layer each value in the function is of, by root: that of all weights that are joined there.
static void walk_update(walk *w, u32 k) {
  const instr *i = &w->m->body.v[k];
  const func_info *f = func_get(w->p, i->callee);
  if (!w->l->root[i->callee.i]) w->l->root[i->callee.i] = joined_values(w->a, f);
  const u32 *root = w->l->root[i->callee.i];
  u32 *by = ZNEWN(w->a, u32, f->values.n + 1);
  for (u32 j = 0; j < f->nparams; j++) {
    const value v = opd_of(w->m, i, j);
    const u32 is = w->made[v];
    if (!is && (v > w->m->nparams || !is_weight(w->m, v))) continue; // a gradient
    by[root[j + 1]] = is && (!by[root[j + 1]] || by[root[j + 1]] == is) ? is : MIXED;
  }
  for (u32 v = 0; v < f->values.n; v++)
    if (by[v] == MIXED) by[v] = 0;
  for (u32 r = 0; r < i->nres; r++) w->made[i->res + r] = by[root[f->rets.v[r]]];
  w->l->update[k] = by;
}

// ---- what main does itself -------------------------------------------------------------------------------
static bool is_packing(const instr *i) { return i->op == OP_pack || i->op == OP_unpack; }
// The model's own work has an origin; what a plan adds to it moves.
static bool is_model(const instr *i) { return i->origin && !(op_row_of(i->op)->flags & OPF_COMM); }

// An update is of the layer that its weights are of; what is done to weights alone, of theirs.
static u32 layer_of_operands(const walk *w, const instr *i) {
  u32 is = 0;
  if (is_packing(i)) return 0;
  for (u32 j = 0; j < instr_nopd(w->m, i); j++) {
    const value v = opd_of(w->m, i, j);
    if (!w->made[v] && v > w->m->nparams && i->flags & INSTR_UPDATE) continue; // a gradient
    if (!w->made[v] || (is && w->made[v] != is)) return 0;
    is = w->made[v];
  }
  return is;
}

// Gradients on their way to the update of one layer.
static void find_gradients(walk *w) {
  for (u32 k = w->m->body.n; k-- > 0;) {
    const instr *i = &w->m->body.v[k];
    bool gradient = w->of[k] && i->flags & INSTR_UPDATE;
    if (!w->of[k] && !is_model(i) && i->op != OP_call && !is_packing(i)) {
      u32 is = 0;
      for (u32 r = 0; r < i->nres; r++)
        if (w->goes[i->res + r]) is = is && is != w->goes[i->res + r] ? MIXED : w->goes[i->res + r];
      if (is && is != MIXED) w->of[k] = is, gradient = true;
    }
    const u32 *root = is_update(i) ? w->l->root[i->callee.i] : NULL, n = instr_nopd(w->m, i);
    for (u32 j = 0; j < i->nopd; j++) {
      u32 *to = &w->goes[opd_of(w->m, i, j)], here = gradient ? w->of[k] : MIXED;
      if (root && j < n && w->l->update[k][root[j + 1]]) here = w->l->update[k][root[j + 1]];
      *to = *to && *to != here ? MIXED : here;
    }
  }
}

static void walk_main(walk *w, const u32 *param) {
  for (u32 k = 0; k < w->m->nparams; k++) w->made[k + 1] = param[k];
  for (u32 k = 0; k < w->m->body.n; k++) {
    const instr *i = &w->m->body.v[k];
    if (is_update(i)) walk_update(w, k);
    if (i->op == OP_call || w->of[k]) continue;
    w->of[k] = layer_of_operands(w, i);
    for (u32 r = 0; r < i->nres; r++) w->made[i->res + r] = w->of[k];
  }
  if (w->p->layers) find_gradients(w); // what a plan did not add has no origin either
}

// ---- inside stages ----------------------------------------------------------------------------------------
// By instruction: of a call its origin; of what moves the results of calls of one origin that too.
static const u32 *origins_of(arena *a, const func_info *f) {
  u32 *of = ZNEWN(a, u32, f->body.n + 1);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    u32 is = i->op == OP_call ? i->origin : 0;
    const bool moves = i->op != OP_call && !is_packing(i) && !is_model(i);
    for (u32 j = 0; moves && j < instr_nopd(f, i) && is != MIXED; j++) {
      const u32 def = val(f, opd_of(f, i, j))->def, from = def ? of[def - 1] : 0;
      is = from && (!is || is == from) ? from : MIXED;
    }
    of[k] = is == MIXED ? 0 : is;
  }
  return of;
}

const ir_layers *ir_layers_of(arena *a, const prog *p) {
  const func_info *m = func_get(p, p->main);
  const layer_table *t = p->layers;
  ir_layers *l = ZNEWN(a, ir_layers, 1);
  u32 nfuncs, *call = t ? ZNEWN(a, u32, m->body.n + 1) : ir_layer_of_calls(a, p);
  if (t && t->nparams != m->nparams) return l;
  l->p = p, l->main = call;
  l->update = ZNEWN(a, const u32 *, m->body.n + 1);
  l->root = ZNEWN(a, const u32 *, p->funcs.n + 1), l->origin = ZNEWN(a, const u32 *, p->funcs.n + 1);
  walk w = {a, p, m, l, call, ZNEWN(a, u32, m->values.n + 1), ZNEWN(a, u32, m->values.n + 1)};
  walk_main(&w, t ? t->param : ir_layer_of_params(a, p, call));
  if (!t || (t->nstages > 1 && !ir_has_tasks(p))) return l;
  const u32 *order = ir_call_order(p, a, &nfuncs);
  for (u32 k = 0; k < nfuncs; k++) l->origin[order[k]] = origins_of(a, func_get(p, (func){order[k]}));
  l->of = t;
  return l;
}

u32 ir_layer_at(const ir_layers *l, const ir_layer_place *x) {
  if (!l->p || x->around) return x->around;
  if (!x->depth) return l->main[x->top];
  const func_info *f = func_get(l->p, (func){x->func});
  const instr *i = &f->body.v[x->index];
  if (x->depth == 1 && l->update[x->top])
    return l->update[x->top][l->root[x->func][i->nres ? i->res : i->nopd ? opd_of(f, i, 0) : 0]];
  const u32 origin = l->of ? l->origin[x->func][x->index] : 0;
  if (!origin || origin > l->of->norigins) return 0;
  const u32 stage = x->task ? l->p->tasks.v[x->task - 1].stage : 0;
  return stage < l->of->nstages ? l->of->of[stage][origin] : 0;
}
