// annotate.h - the making of a plan from annotations: what scopes.c and annotate.c share.
#ifndef HEDDLE_PLAN_POLICY_ANNOTATE_H
#define HEDDLE_PLAN_POLICY_ANNOTATE_H
#include "plan/annotations.h"

typedef struct {
  const annotation_scope *scope;
  u32 d, first; // ranks of a replica of the model: how many, from which
  u32 home;     // the task graph whose devices it shares; itself
  u8 axis;      // over its devices
  u32 mesh;
  bool nested;  // inside a replicate: on its devices
  u32 from, to; // instructions, from 1: the first and the last
} graph;

typedef struct {
  planner *pl;
  prog *p;
  ctx *c;
  arena *a;
  const annotations *x;
  const hybrid_opts *o;
  plan *pn;
  u32 n, *of; // instructions of main; the task graph of each, from 1
  u32 ngraphs;
  graph *graph;
  u32 K, D, R;   // devices; of a replica; replicas
  bool ***inner; // per scope: NULL, or by function what is split inside task graphs
  u8 rep;
  bool same; // one mesh
} work;

static inline const func_info *main_of(const work *w) { return func_get(w->p, w->p->main); }

// Which instructions of main are of which task graph, and what is split inside of them (w->of, graph, inner).
// False and diagnostics: a scope matches nothing, scopes overlap.
bool scopes_divide(work *w);
#endif
