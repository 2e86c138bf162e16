// interlaced.c - what of a model lies on all places of an interlaced pipeline, and how it is split over them.
//
// Idea: what stands before the first layer of main (the embedding) and behind the last one (the head and the loss)
// works on tables over the whole vocabulary, and so may what stands between layers and depends on none of them (the
// embedding of a decoder). These become segments on all places, with tables and matmuls split over the axis of places
// as tensor parallelism would split them. What cannot be split there is computed on every place.
#include "plan/plan.h"

static bool is_layer(const func_info *m, u32 i) { return m->body.v[i].op == OP_call; }

// By value of main: does it depend on a layer?
static bool *behind_layers(arena *a, const func_info *m) {
  bool *dep = ZNEWN(a, bool, m->values.n);
  for (u32 i = 0; i < m->body.n; i++) {
    const instr *in = &m->body.v[i];
    bool any = in->op == OP_call;
    for (u32 k = 0; k < instr_nopd(m, in); k++) any |= dep[opd_of(m, in, k)];
    for (u32 r = 0; r < in->nres; r++) dep[in->res + r] = any;
  }
  return dep;
}

// Does the instruction pick rows of a weight by value?
static bool looks_up(planner *pl, const func_info *m, u32 i) {
  const prog *p = planner_source(pl);
  const instr *in = &m->body.v[i];
  const value table = instr_nopd(m, in) ? opd_of(m, in, 0) : 0;
  if (!table || table > m->nparams || m->params.v[table - 1].r != ROLE_WEIGHT) return false;
  const law *l = plan_law(pl, p->main, i);
  for (u32 d = 0; l && d < l->opd[0].nd; d++)
    for (u32 j = 0; j < l->opd[0].dim[d].n; j++)
      if (l->letter[l->opd[0].dim[d].f[j]].flags & LAW_ADDRESSED) return true;
  return false;
}

static bool refuse(planner *pl, const strategy *s, loc at, const char *what) {
  const prog *p = planner_source(pl);
  const char *path = choice_file(s->schedule);
  diag(p->c, E_PLAN, at.i ? at : func_get(p, p->main)->where, "schedule=%s: the model has %s",
       path ? path : sched_row_of(s->schedule.n)->name, what);
  diag_hint(p->c, "schedule=1f1b");
  return false;
}

bool policy_is_interlaced(const strategy *s) { return s->pp.n > 1 && choice_is_interlaced(s->schedule); }

bool policy_wide_parts(planner *pl, arena *a, const strategy *s, loc at, wide_parts *out) {
  const func_info *m = func_get(planner_source(pl), planner_source(pl)->main);
  const u32 n = m->body.n;
  *out = (wide_parts){.tail = n};
  while (out->head < n && !is_layer(m, out->head)) out->head++;
  while (out->tail > out->head && !is_layer(m, out->tail - 1)) out->tail--;
  if (out->head == n)
    return refuse(pl, s, at, "no repeated layers to lie between its embedding and its head");
  if (!out->head) return refuse(pl, s, at, "nothing before its first layer that could lie on all places");
  if (out->tail == n) return refuse(pl, s, at, "nothing behind its last layer that could lie on all places");
  const bool *dep = behind_layers(a, m);
  out->wide = ZNEWN(a, bool, n);
  for (u32 i = 0; i < n; i++) out->wide[i] = i < out->head || i >= out->tail;
  for (u32 i = out->head, to; i < out->tail; i = to) {
    bool table = false;
    for (to = i; to < out->tail && !dep[m->body.v[to].res]; to++) table |= looks_up(pl, m, to);
    for (u32 k = i; table && k < to; k++) out->wide[k] = true;
    to = MAX(to, i + 1);
  }
  return true;
}

bool policy_split_wide(planner *pl, arena *a, plan *pn, u8 axis, const strategy *s, loc at) {
  const prog *p = planner_source(pl);
  const u32 before = pn->ntrans;
  wide_parts parts;
  if (!policy_wide_parts(pl, a, s, at, &parts)) return false;
  const bool **within = ZNEWN(a, const bool *, planner_funcs(pl) + 1);
  within[p->main.i] = parts.wide;
  if (!policy_tensor_within(pl, a, pn, axis, false, within, TENSOR_LEAVES)) return false;
  for (u32 k = before; k < pn->ntrans; k++) // behind what tensor ranks split
    if (s->tp.n > 1) pn->trans[k].stride = 0;
  return true;
}
