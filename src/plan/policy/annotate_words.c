// annotate_words.c - an annotated plan in words: its name, what every task graph covers, on which devices, and which
// task graphs read values of which. What it is: annotate.c.
#include "plan/policy/annotate.h"

static void put_shares(strbuf *b, const u32 *part, u32 n) {
  for (u32 k = 0; part && k < n; k++) {
    sb_fmt(b, "%s%u", k ? "/" : " ", part[k]);
    if (k < 15 || k + 1 >= n) continue;
    sb_put(b, "/...");
    return;
  }
}

static const char *strategy_text(const work *w, const graph *g) {
  strbuf b = {.a = w->a};
  sb_fmt(&b, "%s(%u)", kind_of(g->scope), g->d);
  put_shares(&b, g->shares, g->d);
  return sb_str(&b);
}

static bool is_of(const work *w, u32 i, u32 g, bool unnamed) {
  return w->of[i] == g + 1 && !(unnamed && w->named[i]);
}

// "1-4,9": the instructions of a task graph; `unnamed`: those of them that no scope covers.
static void put_runs(strbuf *b, const work *w, u32 g, bool unnamed) {
  u32 runs = 0;
  for (u32 i = 0; i < w->n; i++) {
    if (!is_of(w, i, g, unnamed)) continue;
    u32 j = i;
    while (j + 1 < w->n && is_of(w, j + 1, g, unnamed)) j++;
    if (runs++ == 4) {
      sb_put(b, ",...");
      break;
    }
    sb_fmt(b, j > i ? "%s%u-%u" : "%s%u", runs > 1 ? "," : "", i + 1, j + 1);
    i = j;
  }
}

// "instructions 1-4,9 (9 in no scope)", with the layers among them.
static const char *covers_text(const work *w, u32 g) {
  const func_info *m = main_of(w);
  strbuf b = {.a = w->a};
  u32 blocks = 0, first = 0, last = 0, mine = 0;
  bool more = false;
  for (u32 i = 0; i < w->n; i++) {
    const bool block = m->body.v[i].op == OP_call;
    if (block && w->of[i] == g + 1) {
      if (!mine++) first = blocks;
      last = blocks;
    }
    blocks += block;
  }
  sb_put(&b, "instructions ");
  put_runs(&b, w, g, false);
  for (u32 i = 0; i < w->n && w->x->nscopes && w->graph[g].scope != &w->x->dflt; i++)
    more = more || (w->of[i] == g + 1 && !w->named[i]);
  if (more) {
    sb_put(&b, " (");
    put_runs(&b, w, g, true);
    sb_put(&b, " in no scope)");
  }
  if (mine == 1) sb_fmt(&b, ", layer %u", first);
  if (mine > 1) sb_fmt(&b, ", %s %u-%u", last - first + 1 == mine ? "layers" : "layers among", first, last);
  return sb_str(&b);
}

// "{0,1} {4,5}": one for each replica of the model.
static const char *devices_text(const work *w, const graph *g) {
  strbuf b = {.a = w->a};
  for (u32 r = 0; r < w->R; r++) {
    if (r == 4) {
      sb_fmt(&b, " and %u more", w->R - r);
      break;
    }
    const u32 first = rank_at(w, r, g, 0);
    sb_fmt(&b,
           g->d > 2   ? "%s{%u-%u}"
           : g->d > 1 ? "%s{%u,%u}"
                      : "%s{%u}",
           r ? " " : "", first, first + g->d - 1);
  }
  return sb_str(&b);
}

// "instructions 2-3 of layer, in task graph default": what a split has of blocks, and of main.
static plan_task_graph split_inside_text(const work *w, u32 k) {
  bool **mark = w->inner[k];
  strbuf b = {.a = w->a};
  u32 of = w->ngraphs;
  for (u32 i = w->n; i-- > 0;)
    if (mark[w->p->main.i][i]) of = w->of[i] - 1;
  for (u32 f = 1; f < planner_funcs(w->pl); f++) {
    const func_info *fi = func_get(w->p, (func){f});
    u32 runs = 0;
    for (u32 i = 0, j; mark[f] && i < fi->body.n; i = j + 1) {
      j = i;
      if (!mark[f][i] || fi->body.v[i].op == OP_call) continue;
      while (j + 1 < fi->body.n && mark[f][j + 1] && fi->body.v[j + 1].op != OP_call) j++;
      if (runs < 4) {
        sb_put(&b, runs ? "," : b.n ? "; instructions " : "instructions ");
        sb_fmt(&b, j > i ? "%u-%u" : "%u", i + 1, j + 1);
      }
      if (runs++ == 4) sb_put(&b, ",...");
    }
    if (runs) sb_fmt(&b, " of %s", sym_str(w->c, fi->name));
  }
  const graph *g = &w->graph[of]; // a scope has instructions
  sb_fmt(&b, ", inside `%s`", g->scope->name);
  return (plan_task_graph){.name = w->x->scope[k].name,
                           .strategy = arena_printf(w->a, "split(%u)", g->d),
                           .covers = sb_str(&b),
                           .devices = devices_text(w, g)};
}

// Which task graphs read values of which.
static plan_bridge *bridges_of(const work *w, u32 *n) {
  const func_info *m = main_of(w);
  plan_bridge *v = ZNEWN(w->a, plan_bridge, w->ngraphs * w->ngraphs + 1);
  *n = 0;
  for (u32 i = 0; i < w->n; i++)
    for (u32 k = 0; k < instr_nopd(m, &m->body.v[i]); k++) {
      const u32 def = val(m, opd_of(m, &m->body.v[i], k))->def;
      if (!def || w->of[def - 1] == w->of[i]) continue;
      const plan_bridge b = {.from = w->of[def - 1] - 1, .to = w->of[i] - 1};
      u32 j = 0;
      while (j < *n && (v[j].from != b.from || v[j].to != b.to)) j++;
      if (j == *n) v[(*n)++] = b;
    }
  return v;
}

static const u32 *of_ranks(const work *w) {
  u32 *of = ZNEWN(w->a, u32, w->K + 1);
  for (u32 g = w->ngraphs; g-- > 0;)
    for (u32 r = 0; r < w->R; r++)
      for (u32 k = 0; k < w->graph[g].d; k++) of[rank_at(w, r, &w->graph[g], k)] = g;
  return of;
}

// Keys of the configuration that are not used, of those that take less memory.
static const char *less_memory(const work *w) {
  strbuf b = {.a = w->a};
  bool shared = w->R > 1;
  for (u32 k = 0; k < w->ngraphs; k++)
    shared = shared || (w->graph[k].d > 1 && !scope_splits(w->graph[k].scope));
  if (w->o->train && choice_is(CHOICE_recompute, w->s.recompute, "none"))
    sb_put(&b, "gradient_checkpoint.type: auto, ");
  if (w->o->train && shared && w->s.zero.n < 2) sb_put(&b, "zero.level: v1, ");
  if (w->o->train && policy_batch_extent(w->pl) > 1) sb_put(&b, "a larger pipeline.num_micro_batch, ");
  sb_put(&b, "more devices in `split`, or more task graphs");
  return sb_str(&b);
}

void annotated_words(work *w) {
  plan_task_graph *t = ZNEWN(w->a, plan_task_graph, w->ngraphs + w->x->nscopes + 1);
  u32 inside = 0;
  strbuf name = {.a = w->a};
  for (u32 k = 0; k < w->ngraphs; k++) {
    const graph *g = &w->graph[k];
    t[k] = (plan_task_graph){.name = g->scope->name,
                             .strategy = strategy_text(w, g),
                             .covers = covers_text(w, k),
                             .devices = devices_text(w, g),
                             .where = g->scope->count_at.i ? g->scope->count_at : g->scope->at};
    const plan_submesh on = submesh_of(w, k);
    t[k].mesh = w->pn->meshes[on.mesh].name;
    if (on.nfix) t[k].axis = w->pn->axes[on.fix[0].axis - 1].name, t[k].at = on.fix[0].at;
    if (k == 6) sb_fmt(&name, ", ... (%u task graphs)", w->ngraphs);
    if (k < 6) sb_fmt(&name, "%s%s: %s", k ? ", " : "", t[k].name, t[k].strategy);
  }
  for (u32 k = 0; k < w->x->nscopes; k++)
    if (w->inner[k]) {
      sb_fmt(&name, ", %s: split inside", w->x->scope[k].name);
      t[w->ngraphs + inside++] = split_inside_text(w, k);
    }
  if (w->R > 1) sb_fmt(&name, "; %u replicas", w->R);
  put_shares(&name, w->rep_shares, w->R);
  if (microbatches_of(w) > 1) sb_fmt(&name, "; %u microbatches", microbatches_of(w));
  const char *beside = choices_text(w);
  if (*beside) sb_fmt(&name, "; %s", beside);
  plan_task_graphs *all = NEW(w->a, plan_task_graphs);
  *all = (plan_task_graphs){.n = w->ngraphs, .ninside = inside, .v = t};
  all->bridge = bridges_of(w, &all->nbridges);
  all->of_rank = of_ranks(w), all->nranks = w->K;
  all->less = less_memory(w);
  w->pn->task_graphs = all;
  w->pn->name = sym_of(w->c, sb_str(&name));
}
