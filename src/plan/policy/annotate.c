// annotate.c - the plan of annotations: scopes become task graphs, task graphs become segments on
// virtual devices.
//
// Idea: every instruction of main belongs to one scope, or to the default; what a scope has is a task graph.
// A task graph that is replicated n times has an axis of n over the batch, one that is split an axis of n for
// policy_tensor. Its virtual devices are n ranks beside those of the task graph before it; all of them
// together are one replica of the model, and an axis `rep` over replicas is nested data parallelism. Where
// all task graphs have the same axes they lie on one mesh, with an axis of their numbers; else each has a
// mesh of its own, and shares axes of one kind and size.
//
// A split that covers part of a repeated block is no task graph of its own: it runs on the devices of the one
// around it, whose axis over the batch is, in these instructions, the axis that they are split over.
#include "cost/cost.h"
#include "plan/policy/annotate.h"

// ---- devices --------------------------------------------------------------------------------------------
// As a file says it.
static void hint_devices(const work *w, const annotation_scope *s, u32 n) {
  const scope_row *row = scope_row_of(s->kind);
  diag_hint(w->c, "%s%u%s", row->before, n, row->after);
}

// The scope around a task graph where that has nothing of its own, so that the task graph stands for both.
static const annotation_scope *around_alone(const work *w, u32 k) {
  const graph *g = &w->graph[k];
  return g->scope->parent && g->home == k ? &w->x->scope[g->scope->parent - 1] : NULL;
}

static bool sizes(work *w, bool colocated) {
  const u32 all = w->K;
  u32 most = 0;
  for (u32 k = 0; k < w->ngraphs; k++) {
    graph *g = &w->graph[k];
    const annotation_scope *s = g->scope;
    if (s->count == COUNT_ALL && !all) {
      diag(w->c, E_ANNOTATE, s->count_at, "`all` needs the number of devices");
      diag_hint(w->c, "add --machine or --devices; a file of annotations may have devices: 8");
      return false;
    }
    g->d = s->count == COUNT_ALL ? all : s->count ? s->count : 1;
    if (s->count) most = MAX(most, g->d);
    const annotation_scope *around = around_alone(w, k);
    if (!around || !around->count) continue;
    const u32 has = around->count == COUNT_ALL ? all : around->count;
    if (!s->count) g->d = has;
    if (g->d == has) continue;
    diag(w->c, E_ANNOTATE, s->count_at, "`%s` takes %u devices, but `%s`, whose devices it shares, has %u",
         s->name, g->d, around->name, has);
    diag_note(w->c, around->at, "on these devices");
    hint_devices(w, s, has);
    return false;
  }
  for (u32 k = 0; k < w->ngraphs; k++) {
    graph *g = &w->graph[k];
    const graph *home = &w->graph[g->home];
    const annotation_scope *around = around_alone(w, k);
    if (g->scope->count || (around && around->count)) continue;
    if (colocated)
      g->d = most ? most : scope_splits(g->scope) && all ? all : 1;
    else if (g->home != k)
      g->d = home->d;
    else if (scope_row_of(g->scope->kind)->counted) {
      diag(w->c, E_ANNOTATE, g->scope->at, "%s needs the number of devices", kind_of(g->scope));
      diag_hint(w->c, "such as split: 4; without a number it takes all devices if "
                      "cluster.colocate_split_and_replicate is true");
      return false;
    }
  }
  return true;
}

static bool do_not_share(const work *w, const graph *g, const graph *h) {
  diag(w->c, E_ANNOTATE, g->scope->count_at.i ? g->scope->count_at : g->scope->at,
       "`%s` takes %u devices, but `%s`, whose devices it shares, has %u", g->scope->name, g->d,
       h->scope->name, h->d);
  diag_note(w->c, h->scope->at, "on these devices");
  hint_devices(w, g->scope, h->d);
  return false;
}

// "2 of `features` + 4 of `head`"
static const char *sum_text(const work *w) {
  strbuf b = {.a = w->a};
  u32 n = 0;
  for (u32 k = 0; k < w->ngraphs; k++) n += w->graph[k].home == k;
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    if (g->home != k) continue;
    sb_fmt(&b, b.n ? " + %u" : "%u", g->d);
    if (n > 6) continue;
    if (g->scope == &w->x->dflt && !w->x->has_default)
      sb_put(&b, " for what no scope covers");
    else
      sb_fmt(&b, " of `%s`", g->scope->name);
  }
  return sb_str(&b);
}

// Devices are too few, or no multiple of what a replica of the model takes: at the scope that goes beyond them.
static bool not_divided(const work *w) {
  const graph *at = NULL;
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    if (g->home != k || !(g->scope->count_at.i ? g->scope->count_at : g->scope->at).i) continue;
    if (g->scope == &w->x->dflt && !w->x->has_default) continue;
    at = g;
    if (g->first + g->d > w->K) break;
  }
  const u32 others = at ? w->D - at->d : w->D;
  const bool beyond = w->D > w->K && at;
  const loc where = !at || !(beyond || w->ngraphs == 1) ? w->x->at
                    : at->scope->count_at.i             ? at->scope->count_at
                                                        : at->scope->at;
  diag(w->c, E_ANNOTATE, where, "%u devices cannot be divided into replicas of the model of %u%s", w->K, w->D,
       w->ngraphs > 1 ? arena_printf(w->a, " (%s)", sum_text(w)) : "");
  const scope_row *row = at ? scope_row_of(at->scope->kind) : NULL;
  const char *less = beyond && w->K > others + scope_splits(at->scope) && row
                         ? arena_printf(w->a, "%s%u%s, or ", row->before, w->K - others, row->after)
                         : "";
  if (w->D > w->K && !w->x->nscopes && w->ngraphs > 1)
    diag_hint(w->c, "pipeline.num_stages: %u", w->K);
  else if (w->D <= w->K)
    diag_hint(w->c, "use %u devices, or %u", w->R * w->D, (w->R + 1) * w->D);
  else
    diag_hint(w->c, "%s%u devices%s", less, w->D,
              w->ngraphs > 1
                  ? ", or cluster.colocate_split_and_replicate: true for task graphs on the same devices"
                  : "");
  return false;
}

// One behind the other, or all on the same.
static bool place(work *w) {
  const bool colocated = w->x->config.colocate.n;
  if (!sizes(w, colocated)) return false;
  w->D = 0;
  for (u32 k = 0; k < w->ngraphs; k++) {
    graph *g = &w->graph[k];
    if (colocated) g->home = 0;
    const graph *home = &w->graph[g->home];
    if (g->home != k && g->d != home->d) return do_not_share(w, g, home);
    if (g->home != k) continue;
    g->first = w->D, w->D += g->d;
  }
  for (u32 k = 0; k < w->ngraphs; k++) w->graph[k].first = w->graph[w->graph[k].home].first;
  assert(w->D > 0);
  if (!w->K) w->K = w->D;
  w->R = w->K / w->D;
  return (w->R && w->K % w->D == 0) || not_divided(w);
}

// ---- axes and meshes ------------------------------------------------------------------------------------
static bool same_shares(const u32 *x, const u32 *y, u32 n) {
  return x == y || (x && y && !memcmp(x, y, n * sizeof *x));
}

// The axis of that name, or a new one; where one has the name with other shares, "name.1".
static u8 axis_named(work *w, const char *name, plan_axis x) {
  plan *pn = w->pn;
  for (u32 more = 0;; more++) {
    x.name = sym_of(w->c, more ? arena_printf(w->a, "%s.%u", name, more) : name);
    u32 k = 0;
    while (k < pn->naxes && pn->axes[k].name.i != x.name.i) k++;
    if (k < pn->naxes && !same_shares(pn->axes[k].shares, x.shares, x.size)) continue;
    if (k == pn->naxes) pn->axes[pn->naxes++] = x;
    return (u8)(k + 1);
  }
}

static void set_ranks(work *w, plan_mesh *m, const graph *g) {
  u32 *v = NEWN(w->a, u32, w->R * g->d);
  bool plain = true;
  for (u32 r = 0; r < w->R; r++)
    for (u32 k = 0; k < g->d; k++) {
      v[r * g->d + k] = rank_at(w, r, g, k);
      plain = plain && v[r * g->d + k] == v[0] + r * g->d + k;
    }
  if (plain)
    m->first = v[0];
  else
    m->ranks = v, m->nranks = w->R * g->d;
}

// Axes of one replica of the model, and of replicas; meshes of the task graphs.
static bool make_meshes(work *w) {
  plan *pn = w->pn;
  bool same = true, alone = true;
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    same = same && is_alike(g, &w->graph[0]) && same_shares(g->shares, w->graph[0].shares, g->d);
    alone = alone && g->home == k;
  }
  bool together = true; // all on the same devices
  for (u32 k = 0; k < w->ngraphs; k++) together = together && w->graph[k].home == 0;
  w->same = same && (alone || together);
  pn->axes = NEWN(w->a, plan_axis, w->ngraphs + 4);
  pn->meshes = ZNEWN(w->a, plan_mesh, w->ngraphs + 1);
  if (microbatches_of(w) > 1)
    pn->time = axis_named(w, "mb", (plan_axis){.size = microbatches_of(w), .temporal = true});
  w->rep = axis_named(w, "rep", (plan_axis){.size = w->R, .shares = w->rep_shares});
  for (u32 k = 0; k < w->ngraphs; k++) {
    graph *g = &w->graph[k];
    if (pn->naxes >= AXES_MAX - 2) {
      diag(w->c, E_LIMIT, g->scope->at, "more than %d sizes of task graphs", AXES_MAX - 5);
      return false;
    }
    g->axis = axis_named(w, arena_printf(w->a, "%s%u", scope_row_of(g->scope->kind)->axis, g->d),
                         (plan_axis){.size = g->d, .shares = g->shares});
    if (w->same && k) continue;
    if (w->same) {
      const u8 tg = w->tg = axis_named(w, "tg", (plan_axis){.size = together ? 1 : w->ngraphs});
      const bool intra = w->x->config.intra_node.n;
      pn->meshes[0] = (plan_mesh){
          .name = sym_of(w->c, "m"), .naxes = 3, .axis = {intra ? w->rep : tg, intra ? tg : w->rep, g->axis}};
      pn->nmeshes = 1;
      continue;
    }
    g->mesh = pn->nmeshes++;
    pn->meshes[g->mesh] = (plan_mesh){.name = sym_of(w->c, arena_printf(w->a, "tg%u", k)),
                                      .naxes = 2,
                                      .axis = {w->rep, g->axis},
                                      .at = g->scope->at};
    set_ranks(w, &pn->meshes[g->mesh], g);
  }
  return true;
}

plan_submesh submesh_of(const work *w, u32 k) {
  const graph *g = &w->graph[k];
  if (!w->same) return (plan_submesh){.mesh = g->mesh};
  return (plan_submesh){.nfix = 1, .fix = {{w->tg, w->pn->axes[w->tg - 1].size > 1 ? k : 0}}};
}

static void make_segments(work *w) {
  plan *pn = w->pn;
  pn->segments = ZNEWN(w->a, plan_segment, w->n + 1);
  for (u32 i = 0; i < w->n; i++) {
    if (!i || w->of[i] != w->of[i - 1])
      pn->segments[pn->nsegments++] = (plan_segment){
          .from = i + 1, .on = submesh_of(w, w->of[i] - 1), .at = w->graph[w->of[i] - 1].scope->at};
    pn->segments[pn->nsegments - 1].to = i + 1;
  }
}

// ---- refusals ----
// What another policy refused, from diagnostic `said` on, at the place in the file that is to blame. Returns the number
// that its hint proposes; 0: none.
static u32 blame(work *w, u32 said, loc where, const char *what) {
  if (diag_count(w->c) == said) return 0;
  const diag_item d = diag_get(w->c, said);
  const char *why = arena_strdup(w->a, d.message);
  u32 number = 0;
  for (u32 k = 0; k < d.notes; k++) number = MAX(number, diag_part(w->c, said, k).number);
  diag_truncate(w->c, said);
  diag(w->c, d.id, where, "%s: %s", what, why);
  if (d.at.i) diag_note(w->c, d.at, "here in the model");
  return number;
}

static bool blame_scope(work *w, u32 said, const annotation_scope *s) {
  const bool parts = s->shares.how == SHARES_PARTS;
  const u32 number = blame(w, said,
                           parts           ? s->shares.where
                           : s->count_at.i ? s->count_at
                                           : s->at,
                           arena_printf(w->a, "%s of `%s`", kind_of(s), s->name));
  if (number && !parts) hint_devices(w, s, number);
  return false;
}

// Parts of the batch that task graphs need at so many microbatches: do they all divide it?
static bool batch_divides(const work *w, i64 batch, u32 K) {
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    const u32 d = scope_splits(g->scope) ? 1 : plan_parts(&w->pn->axes[g->axis - 1]);
    if (batch % ((i64)K * plan_parts(&w->pn->axes[w->rep - 1]) * d)) return false;
  }
  return true;
}

// Microbatches are to blame where the batch divides without them: the nearest that do.
static bool hint_microbatches(const work *w, i64 batch) {
  const u32 K = microbatches_of(w);
  u32 less = K - 1, more = K + 1;
  while (less && !batch_divides(w, batch, less)) less--;
  while (more <= batch && !batch_divides(w, batch, more)) more++;
  if (!less) return false;
  const char *key = w->o->said && w->o->said->of[CHOICE_mb].said ? "mb=" : "num_micro_batch: ";
  if (more <= batch)
    diag_hint(w->c, "%s%u, or %u", key, less, more);
  else
    diag_hint(w->c, "%s%u", key, less);
  return true;
}

static bool divides(work *w, const graph *g) {
  const annotation_scope *s = g->scope;
  const plan_axis *rep = &w->pn->axes[w->rep - 1], *own = &w->pn->axes[g->axis - 1];
  const u32 K = microbatches_of(w), R = plan_parts(rep), d = scope_splits(s) ? 1 : plan_parts(own);
  assert(R > 0 && d > 0);
  const i64 batch = policy_batch_extent(w->pl), parts = (i64)K * R * d;
  if (!batch || batch % parts == 0) return true;
  strbuf of = {.a = w->a};
  if (K > 1) sb_fmt(&of, " x %u microbatches", K);
  if (R > 1) sb_fmt(&of, " x %u %s of the model", R, rep->shares ? "shares of replicas" : "replicas");
  if (d > 1) sb_fmt(&of, " x %u %s of `%s`", d, own->shares ? "shares" : "devices", s->name);
  const bool by_mb = K > 1 && batch_divides(w, batch, 1);
  const shares_info *by = by_mb                  ? NULL
                          : d > 1 && own->shares ? &s->shares
                          : rep->shares          ? &w->x->replicas
                                                 : NULL;
  loc at = s->count_at.i ? s->count_at : s->at;
  if (by && by->where.i) at = by->where;
  if (by_mb && w->x->config.num_micro_batch.at.i) at = w->x->config.num_micro_batch.at;
  if (by_mb && w->o->said && w->o->said->of[CHOICE_mb].said) at = w->o->said->of[CHOICE_mb].at;
  diag(w->c, E_DIVIDE, at, "batch %lld is not divisible by %lld (%s)", (long long)batch, (long long)parts,
       sb_str(&of) + 3);
  diag_note(w->c, main_of(w)->where, "the batch is the first extent of the first input");
  if (by_mb && hint_microbatches(w, batch)) return false;
  const i64 others = by ? parts / (by == &s->shares ? d : R) : 0;
  const char *near = by && batch % others == 0 ? shares_near(w, by, batch / others) : NULL;
  if (near)
    diag_hint(w->c, "%s: %s, or a batch that is a multiple of %lld", by == &s->shares ? "shares" : "replicas",
              near, (long long)parts);
  else
    diag_hint(w->c, "choose a batch that is a multiple of %lld", (long long)parts);
  return false;
}

// ---- splits ---------------------------------------------------------------------------------------------
// The batch over microbatches, replicas of the model, and in every task graph that is replicated over its
// devices.
static bool split_batch(work *w) {
  plan *pn = w->pn;
  for (u32 k = 0; k < w->ngraphs; k++)
    if (!divides(w, &w->graph[k])) return false;
  if (pn->time && !policy_batch(w->pl, w->a, pn, pn->time)) return false;
  const bool last = w->rep_shares; // pieces of a device are alike then, whichever it is of its task graph
  if (w->R > 1 && !last && !policy_batch(w->pl, w->a, pn, w->rep)) return false;
  const u32 common = pn->ntrans;
  u64 done = 0;
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    if (scope_splits(g->scope) || g->d == 1 || done >> g->axis & 1) continue;
    done |= 1ull << g->axis;
    plan own = *pn; // task graphs do not split what another one has split
    own.ntrans = common;
    const u32 said = diag_count(w->c);
    if (!policy_batch(w->pl, w->a, &own, g->axis)) {
      if (diag_count(w->c) > said) diag_note(w->c, g->scope->at, "`%s` is replicated here", g->scope->name);
      return false;
    }
    const u32 more = own.ntrans - common;
    plan_trans *v = NEWN(w->a, plan_trans, pn->ntrans + more + 1);
    if (pn->ntrans) memcpy(v, pn->trans, pn->ntrans * sizeof *v);
    memcpy(v + pn->ntrans, own.trans + common, more * sizeof *v);
    pn->trans = v, pn->ntrans += more;
  }
  return !last || policy_batch(w->pl, w->a, pn, w->rep);
}

// Choices are tried on the first mesh of a plan, here one that has the axis. weak: where nothing arrives
// split.
static bool tensor(work *w, u8 axis, const bool *const *within, const annotation_scope *s, bool weak) {
  const u32 said = diag_count(w->c), before = w->pn->ntrans;
  plan_mesh m = {.name = sym_of(w->c, "m"), .naxes = 1, .axis = {axis}};
  plan own = *w->pn;
  own.meshes = &m, own.nmeshes = 1;
  if (!policy_tensor_within(w->pl, w->a, &own, axis, choice_is(CHOICE_tables, w->s.tables, "whole"), within,
                            weak ? TENSOR_ALONE : TENSOR_SHARED))
    return blame_scope(w, said, s);
  w->pn->trans = own.trans, w->pn->ntrans = own.ntrans;
  for (u32 k = before; k < own.ntrans; k++) own.trans[k].weak = weak;
  return true;
}

bool graphs_may_split(work *w, const graph *g, const u32 *part) {
  const u32 before = diag_count(w->c);
  const bool **within = ZNEWN(w->a, const bool *, w->p->funcs.n);
  bool *own = ZNEWN(w->a, bool, w->n + 1);
  for (u32 i = 0; i < w->n; i++) {
    const graph *h = &w->graph[w->of[i] - 1];
    own[i] = is_alike(h, g);
  }
  within[w->p->main.i] = own;
  arena *tmp = arena_new();
  plan_axis axis = {.name = sym_of(w->c, "tp"), .size = g->d, .shares = part};
  plan_mesh m = {.name = sym_of(w->c, "m"), .naxes = 1, .axis = {1}};
  plan pn = {.naxes = 1, .axes = &axis, .nmeshes = 1, .meshes = &m};
  const bool ok = policy_tensor_within(w->pl, tmp, &pn, 1, choice_is(CHOICE_tables, w->s.tables, "whole"),
                                       within, TENSOR_ALONE);
  arena_free(tmp);
  diag_truncate(w->c, before);
  return ok;
}

static bool split_graphs(work *w) {
  const u32 nf = w->p->funcs.n;
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    if (!scope_splits(g->scope) || g->d == 1) continue;
    const bool **within = ZNEWN(w->a, const bool *, nf);
    bool *own = ZNEWN(w->a, bool, w->n + 1), first = true;
    for (u32 j = 0; j < w->ngraphs; j++) { // of all task graphs with its axis, at the first of them
      if (w->graph[j].axis != g->axis) continue;
      first = first && j >= k;
      for (u32 i = 0; i < w->n; i++) own[i] |= w->of[i] == j + 1;
    }
    within[w->p->main.i] = own;
    if (first && !tensor(w, g->axis, within, g->scope, true)) {
      const char *near = g->scope->shares.how == SHARES_PARTS ? shares_to_split(w, g) : NULL;
      if (near) diag_hint(w->c, "shares: %s", near);
      return false;
    }
  }
  return true;
}

static bool has_class(const work *w, const classes *k, func f, value v, u32 class) {
  u32 id[16];
  const shape *s = &val_type(w->p, func_get(w->p, f), v)->s;
  for (u32 d = 0; d < s->nd; d++)
    for (u32 j = classes_dim(k, f, v, d, id, COUNT_OF(id)); j-- > 0;)
      if (id[j] == class) return true;
  return false;
}

// What ends a split inside a block, by summing over what is split, works on pieces of the batch again: its
// operands are exchanged then, where its result would be a sum over all ranks (the experts' outputs,
// combined).
static void return_batch(work *w, bool *const *mark, u32 before) {
  plan *pn = w->pn;
  const classes *k = planner_classes(w->pl);
  const u32 end = pn->ntrans, *input;
  u32 batch[16], id[16], room = 0;
  if (!planner_inputs(w->pl, &input) || !classes_dim(k, w->p->main, input[0] + 1, 0, batch, COUNT_OF(batch)))
    return;
  for (u32 t = before; t < end; t++) room += func_get(w->p, pn->trans[t].fn)->body.n;
  plan_trans *v = NEWN(w->a, plan_trans, end + room + 1);
  memcpy(v, pn->trans, end * sizeof *v);
  pn->trans = v;
  for (u32 t = before; t < end; t++) {
    const func f = v[t].fn;
    const func_info *fi = func_get(w->p, f);
    if (!classes_dim(k, f, opd_of(fi, &fi->body.v[v[t].instr - 1], v[t].index), v[t].dim, id, COUNT_OF(id)))
      continue;
    const u32 class = id[0];
    for (u32 i = 0; i < fi->body.n; i++) {
      const instr *in = &fi->body.v[i];
      if (!mark[f.i] || !mark[f.i][i] || in->op == OP_call || op_row_of(in->op)->flags & OPF_GEMM ||
          in->nres != 1)
        continue;
      bool reads = false, twice = false;
      for (u32 o = 0; o < instr_nopd(fi, in); o++)
        reads = reads || has_class(w, k, f, opd_of(fi, in, o), class);
      for (u32 j = end; j < pn->ntrans; j++) twice = twice || (v[j].fn.i == f.i && v[j].instr == i + 1);
      if (!reads || twice || has_class(w, k, f, in->res, class)) continue;
      if (!val_type(w->p, fi, in->res)->s.nd || !classes_dim(k, f, in->res, 0, id, COUNT_OF(id)) ||
          id[0] != batch[0])
        continue;
      v[pn->ntrans++] = (plan_trans){.fn = f, .instr = i + 1, .result = true, .axis = v[t].axis};
    }
  }
}

// A split of part of a block: over the axis of the task graph that calls it.
static bool split_inside(work *w, u32 scope) {
  const annotation_scope *s = &w->x->scope[scope];
  bool **mark = w->inner[scope], *of_main = mark[w->p->main.i];
  const graph *in = NULL;
  for (u32 i = 0; i < w->n; i++) {
    if (!of_main[i]) continue;
    const graph *g = &w->graph[w->of[i] - 1];
    if (in && in->axis == g->axis) continue;
    if (scope_splits(g->scope)) {
      diag(w->c, E_ANNOTATE, s->what_at, "`%s` is split inside `%s`, which is split already", s->name,
           g->scope->name);
      diag_note(w->c, g->scope->at, "the scope around it");
      return false;
    }
    if (in) {
      diag(w->c, E_ANNOTATE, s->what_at, "`%s` is part of task graphs of %u and of %u devices: `%s` and `%s`",
           s->name, in->d, g->d, in->scope->name, g->scope->name);
      diag_note(w->c, g->scope->at, "the scope around it");
      return false;
    }
    in = g;
  }
  assert(in); // a scope has a block
  const u32 d = s->count == COUNT_ALL ? w->K : s->count ? s->count : in->d;
  if (d != in->d) {
    diag(w->c, E_ANNOTATE, s->count_at,
         "`%s` is part of blocks that `%s` computes on %u devices; it cannot be split %u ways", s->name,
         in->scope->name, in->d, d);
    if (in->scope->at.i) diag_note(w->c, in->scope->at, "the task graph around it");
    hint_devices(w, in->scope, d);
    return false;
  }
  const u32 before = w->pn->ntrans;
  if (!scopes_inside(w, scope, in->axis)) return false;
  if (d > 1 && !tensor(w, in->axis, (const bool *const *)mark, s, false)) return false;
  if (d > 1) return_batch(w, mark, before);
  return true;
}

// ---- order ----------------------------------------------------------------------------------------------
// Where task graphs share ranks, or one has several segments: microbatch after microbatch, or where every
// place has its own ranks all forwards of a segment and then all backwards.
static void write_order(work *w, const u32 *place, u32 nplaces, bool shared) {
  plan *pn = w->pn;
  const u32 K = microbatches_of(w), passes = pn->train ? 2 : 1;
  pn->nseqs = nplaces;
  pn->seqs = ZNEWN(w->a, sched_seq, nplaces + 1);
  for (u32 q = 0; q < nplaces; q++) {
    sched_task *v = NEWN(w->a, sched_task, (size_t)K * pn->nsegments * passes + 1);
    u32 n = 0, outer = shared ? K : 1, inner = shared ? 1 : K;
    for (u32 b = 0; b < outer; b++)
      for (u32 pass = 0; pass < passes; pass++)
        for (u32 k = 0; k < pn->nsegments; k++) {
          const u32 s = pass ? pn->nsegments - 1 - k : k;
          for (u32 m = 0; m < inner && place[s] == q; m++)
            v[n++] = (sched_task){.stage = (u16)s, .kind = pass ? TASK_B : TASK_F, .mb = shared ? b : m};
        }
    pn->seqs[q] = (sched_seq){n, v};
  }
}

static bool make_order(work *w) {
  plan *pn = w->pn;
  policy_sends(w->c, pn, &w->s);
  u32 *place = NEWN(w->a, u32, pn->nsegments), *first = NEWN(w->a, u32, w->ngraphs), nplaces = 0;
  bool shared = false;
  for (u32 s = 0; s < pn->nsegments; s++) {
    const u32 g = w->of[pn->segments[s].from - 1] - 1;
    u32 k = 0;
    while (k < nplaces && first[k] != g && !(w->same && w->graph[g].home == w->graph[first[k]].home)) k++;
    if (k == nplaces) first[nplaces++] = g;
    place[s] = k;
    shared = shared || w->graph[g].home != g;
  }
  if (nplaces < pn->nsegments || shared) {
    write_order(w, place, nplaces, shared || nplaces == 1);
    return true;
  }
  const sched *file;
  strategy s = w->s;
  s.pp.n = nplaces;
  const loc at =
      w->o->said && w->o->said->of[CHOICE_schedule].said ? w->o->said->of[CHOICE_schedule].at : w->x->at;
  w->pipeline = nplaces > 1;
  return policy_schedule(w->pl, w->a, pn, &s, w->o, at, &file);
}

// ---- stages that nobody drew ----------------------------------------------------------------------------
static bool automatic(const work *w) { return w->x->config.auto_parallel.n || w->x->config.num_stages.n > 1; }

static bool not_with_scopes(const work *w) {
  const annotation_setting *a = &w->x->config.auto_parallel, *n = &w->x->config.num_stages;
  if (!w->x->nscopes) {
    if (n->n) return true;
    diag(w->c, E_ANNOTATE, a->at, "auto.auto_parallel needs pipeline.num_stages, the number of task graphs");
    diag_hint(w->c, "pipeline.num_stages: 4");
    return false;
  }
  diag(w->c, E_ANNOTATE, w->x->scope[0].at, "a scope cannot be combined with automatic task graphs");
  if (a->n)
    diag_note(w->c, a->at.i ? a->at : n->at, "auto.auto_parallel is true");
  else
    diag_note(w->c, n->at, "pipeline.num_stages is %u", n->n);
  diag_hint(w->c, "leave out the scopes, or %s", a->n ? "auto.auto_parallel" : "pipeline.num_stages");
  return false;
}

// Task graphs of equal work, each replicated as the default says.
static bool draw(work *w) {
  const u32 N = w->x->config.num_stages.n, K = microbatches_of(w),
            d = MAX(w->x->dflt.count == COUNT_ALL ? w->K / N : w->x->dflt.count, 1u);
  const machine *m = w->o->k ? cost_model_machine(w->o->k) : NULL;
  const bool divides = w->K && N && w->K % N == 0 && w->K / N >= d,
             as_balanced = m && (m->nkinds == 1 || !w->x->config.intra_node.n || w->K == N * d),
             timed = divides && as_balanced; // else stages lie elsewhere than they are balanced for
  annotation_scope *s = ZNEWN(w->a, annotation_scope, N);
  hybrid_opts h = *w->o;
  h.s = strategy_of("dp=%u pp=%u mb=%u layers=%s", timed ? w->K / N : d, N, K, timed ? "auto" : "cost");
  if (h.said && h.said->of[CHOICE_layers].said) h.s.layers = w->s.layers;
  strategy_take_stages(&h.s, &w->s, h.train);
  h.cuts = CUTS_BY_ESTIMATE;
  plan cut = {.train = w->o->train};
  if (!policy_balance(w->pl, w->a, &h, &h.s)) return false;
  const u32 said = diag_count(w->c);
  if (!policy_stages(w->pl, w->a, &cut, 0, &h.s, NULL, w->x->config.num_stages.at)) {
    const loc at = w->x->config.num_stages.at;
    const u32 number = blame(w, said, at.i ? at : w->x->at, "automatic task graphs");
    if (number) diag_hint(w->c, "pipeline.num_stages: %u", number);
    return false;
  }
  for (u32 k = 0; k < N; k++) {
    s[k] = (annotation_scope){.name = arena_printf(w->a, "stage %u", k),
                              .kind = SCOPE_replicate,
                              .count = d,
                              .at = w->x->config.num_stages.at};
    w->graph[k] = (graph){.scope = &s[k], .home = k, .from = cut.segments[k].from, .to = cut.segments[k].to};
    for (u32 i = cut.segments[k].from; i <= cut.segments[k].to; i++) w->of[i - 1] = k + 1;
  }
  w->ngraphs = N;
  return true;
}

// ---- all together ---------------------------------------------------------------------------------------
// Batch norm takes its statistics over what a rank has of a microbatch. *changed: that is another program.
static bool normalise(work *w, bool *changed) {
  const u32 K = microbatches_of(w);
  i64 parts = 1;
  for (u32 k = 0; k < w->ngraphs && parts <= CHOICE_MOST; k++)
    if (!scope_splits(w->graph[k].scope))
      parts = parts / gcd_i64(parts, w->R * w->graph[k].d) * w->R * w->graph[k].d;
  if (parts > CHOICE_MOST) parts = 1; // no batch is so large: it will be refused
  const strategy s = strategy_of("dp=%u mb=%u", (u32)parts, K);
  planner *before = w->pl;
  w->pn->batchnorm_groups = policy_batchnorm(planner_batchnorm(w->pl), &s);
  w->pn->fused_attention = choice_is(CHOICE_attention, w->s.attention, "fused");
  w->pn->attention_at = w->o->said ? w->o->said->of[CHOICE_attention].at : (loc){0};
  w->pl = planner_formed(w->pl, w->pn);
  *changed = w->pl != before;
  return w->pl != NULL;
}

static void begin(work *w) {
  w->p = planner_source(w->pl), w->n = main_of(w)->body.n, w->ngraphs = 0;
  w->of = ZNEWN(w->a, u32, w->n + 1);
  w->graph = ZNEWN(w->a, graph, w->n + 2 + w->x->config.num_stages.n);
  w->inner = ZNEWN(w->a, bool **, w->x->nscopes + 1);
}

// Task graphs and their devices.
static bool divide(work *w) {
  begin(w);
  if (automatic(w)) return not_with_scopes(w) && draw(w) && place(w);
  return scopes_divide(w) && place(w);
}

static void store(work *w) {
  const u32 level = w->s.zero.n;
  u64 done = 0;
  if (w->R > 1) policy_zero(w->pn, w->rep, level);
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    if (scope_splits(g->scope) || g->d == 1 || done >> g->axis & 1 || w->pn->nstorage[STORAGE_STATE] == 4)
      continue;
    done |= 1ull << g->axis;
    policy_zero(w->pn, g->axis, level);
  }
}

// The rest, with the shares that there are.
static bool compile(work *w) {
  if (!make_meshes(w) || !split_batch(w) || !split_graphs(w)) return false;
  for (u32 k = 0; k < w->x->nscopes; k++)
    if (w->inner[k] && !split_inside(w, k)) return false;
  make_segments(w);
  store(w);
  hybrid_opts h = *w->o;
  h.s = w->s;
  if (!policy_offload(w->p, w->pn, &h)) return false;
  w->pn->wide_gradients = policy_wide_gradients(w->p, &w->s);
  w->pn->materialise = (materialise_way)w->s.materialise.n;
  if (!policy_recompute(w->pl, w->a, w->pn, w->s.recompute) || !make_order(w)) return false;
  annotated_words(w);
  return true;
}

// ---- shares ---------------------------------------------------------------------------------------------
typedef struct {
  plan *pn;
  i64 ps, over; // of a step; bytes above the memory of the device that has too little
  u64 shares;   // a hash of them
} candidate;

static u64 hash_of_shares(const work *w) {
  u64 h = w->rep_shares ? hash_bytes(w->rep_shares, w->R * sizeof *w->rep_shares, 0) : 0;
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    h = hash_step(h, g->shares ? hash_bytes(g->shares, g->d * sizeof *g->shares, 0) : k);
  }
  return h;
}

static bool price(const work *w, candidate *x) {
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true, .steady = x->pn->train};
  arena *tmp = arena_new();
  sim_pipe_result r;
  const bool ok = plan_price_whole(w->pl, x->pn, w->o->k, tmp, &so, &r);
  if (ok) x->ps = r.period_ps, x->over = MAX(MAX(r.over_bytes, r.host_over_bytes), 0);
  arena_free(tmp);
  return ok;
}

static void tell_speeds(const work *w, const times *x, plan *pn) {
  plan_task_graphs *t = arena_dup(w->a, pn->task_graphs, sizeof *t);
  t->nkinds = cost_model_machine(w->o->k)->nkinds;
  double *speed = NEWN(w->a, double, t->nkinds);
  for (u32 k = 0; k < t->nkinds; k++) speed[k] = shares_speed(x, k);
  t->speed = speed, pn->task_graphs = t;
}

// Where devices are of several kinds, or equal shares do not divide, and shares are not said: of some that balance what
// task graphs compute, and of equal ones, those with which the whole step is fastest.
static plan *compile_best(work *w) {
  candidate best = {0};
  const plan frame = *w->pn;
  const u32 before = diag_count(w->c);
  const times *x = shares_open(w, false);
  const bool several = x != NULL;
  if (!several) {
    w->pn = arena_dup(w->a, &frame, sizeof frame);
    if (compile(w)) return w->pn;
    x = diag_get(w->c, before).id == E_DIVIDE ? shares_open(w, true) : NULL;
    if (!x) return NULL;
    diag_truncate(w->c, before); // the first of those below says it again
  }
  u64 seen[2 * BATCH_WAYS];
  u32 nseen = 0;
  for (u32 k = 0; k < 2 * BATCH_WAYS; k += several ? 1 : 2) { // on one kind splits stay equal
    candidate c = {.pn = arena_dup(w->a, &frame, sizeof frame)};
    shares_by_time(x, k % 2, (shares_of_batch)(k / 2));
    c.shares = hash_of_shares(w);
    bool again = false;
    for (u32 j = 0; j < nseen; j++) again = again || seen[j] == c.shares;
    if (again) continue;
    seen[nseen++] = c.shares;
    w->pn = c.pn;
    const u32 said = diag_count(w->c);
    const bool ok = compile(w) && price(w, &c);
    if (k) diag_truncate(w->c, said); // equal shares are what is refused
    if (ok && (!best.pn || c.over < best.over || (c.over == best.over && c.ps < best.ps))) best = c;
  }
  if (best.pn) diag_truncate(w->c, before);
  if (best.pn && several) tell_speeds(w, x, best.pn);
  return best.pn;
}

static plan *make(work *w) {
  bool changed;
  if (!divide(w) || !normalise(w, &changed) || (changed && !divide(w))) return NULL;
  return shares_said(w) ? compile_best(w) : NULL;
}

plan *policy_annotated(planner *pl, arena *a, sym file, const char *text, size_t n, const hybrid_opts *o,
                       u32 devices) {
  prog *p = planner_source(pl);
  const annotations *x = annotations_read(p, a, file, text, n);
  if (!x) return NULL;
  plan *pn = NEW(a, plan);
  pn->train = o->train, pn->optim = o->optim, pn->keep_gradients = o->keep_gradients;
  work w = {.pl = pl,
            .c = p->c,
            .a = a,
            .x = x,
            .o = o,
            .pn = pn,
            .K = devices      ? devices
                 : x->devices ? x->devices
                 : o->k       ? cost_model_machine(o->k)->nranks
                              : 0};
  plan *made = choices_beside(&w) ? make(&w) : NULL;
  if (made) choices_ignored(&w, made);
  return made;
}
