// annotate.h - the making of a plan from annotations: what scopes.c and annotate.c share.
#ifndef HEDDLE_PLAN_POLICY_ANNOTATE_H
#define HEDDLE_PLAN_POLICY_ANNOTATE_H
#include "plan/annotations.h"

typedef struct {
  const annotation_scope *scope;
  u32 d, first;      // ranks of a replica of the model: how many, from which
  u32 home;          // the task graph whose devices it shares; itself
  u8 axis;           // over its devices
  const u32 *shares; // of them; NULL: equal
  u32 mesh;
  u32 from, to; // instructions, from 1: the first and the last
} graph;

typedef struct {
  planner *pl;
  prog *p;
  ctx *c;
  arena *a;
  const annotations *x;
  const hybrid_opts *o;
  strategy s; // choices that are no annotations: of the configuration, and beside it
  plan *pn;
  u32 n, *of;  // instructions of main; the task graph of each, from 1
  bool *named; // is it in a scope?
  u32 ngraphs;
  graph *graph;
  u32 K, D, R;           // devices; of a replica; replicas
  const u32 *rep_shares; // of replicas; NULL: equal
  bool ***inner;         // per scope: NULL, or by function what is split inside task graphs
  u8 rep, tg;            // axes: of replicas; of task graphs, 0 where each has a mesh of its own
  bool same;             // one mesh
  bool pipeline;         // task graphs run beside each other, in an order that a schedule says
} work;

static inline const func_info *main_of(const work *w) { return func_get(w->p, w->p->main); }
static inline u32 microbatches_of(const work *w) { return w->s.mb.n; }
static inline const char *kind_of(const annotation_scope *s) { return scope_row_of(s->kind)->word; }
static inline bool is_alike(const graph *g, const graph *h) { // of one kind and size: they may have one axis
  return g->d == h->d && scope_splits(g->scope) == scope_splits(h->scope);
}

// Which instructions of main are of which task graph, and what is split inside of them (w->of, graph, inner).
// False and diagnostics: a scope matches nothing, scopes overlap.
bool scopes_divide(work *w);
// Can scope k be split inside blocks over the axis of a task graph? Not where calls that share a function have not the same
// of it, or where another scope has instructions of it: false and a diagnostic.
bool scopes_inside(work *w, u32 k, u8 axis);
// The rank of device k of a task graph, of a replica of the model.
static inline u32 rank_at(const work *w, u32 replica, const graph *g, u32 k) {
  return w->x->config.intra_node.n ? replica * w->D + g->first + k : w->R * g->first + replica * g->d + k;
}
// w->s: what the configuration and the choices beside it (w->o->said) say. False and a diagnostic: a choice that
// annotations say themselves, or contradict.
bool choices_beside(work *w);
void choices_ignored(const work *w, const plan *pn); // warns of those that change nothing
const char *choices_text(const work *w);             // those beside, "zero=1 grads=f32"; "": none
// Name and task graphs of the plan (pn->name, pn->task_graphs).
void annotated_words(work *w);
plan_submesh submesh_of(const work *w, u32 graph);
// What devices of task graphs and replicas of the model get, as is said (graph.shares, rep_shares). False and
// diagnostics: shares that do not go together.
bool shares_said(work *w);
// The shares of so many samples that are nearest to these, "[23, 9]"; of a split, as far as it can be split so. NULL: there are
// none.
const char *shares_near(const work *w, const shares_info *s, i64 total);
const char *shares_to_split(work *w, const graph *g);
// What task graphs take on the devices of a machine of several kinds; alike: or of one. NULL: that is not known.
typedef struct times times;
const times *shares_open(work *w, bool alike);
// Shares by these times where none are said: of split task graphs, and of the batch.
typedef enum { BATCH_EQUAL, BATCH_OF_DEVICES, BATCH_OF_REPLICAS, BATCH_BY_WHALE, BATCH_WAYS } shares_of_batch;
void shares_by_time(const times *x, bool splits, shares_of_batch batch);
double shares_speed(const times *x,
                    u32 kind); // samples a ps of a device of the kind that never waits; 0: not known
// Can the instructions of these task graphs be split in such parts over an axis? Says nothing.
bool graphs_may_split(work *w, const graph *g, const u32 *part);
#endif
