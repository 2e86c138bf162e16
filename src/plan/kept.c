// kept.c - what a training step of the source program must keep from the forward of an instruction to its
// backward, whatever the plan is. Not what a plan keeps in fact: that is known when it is simulated.
//
// Idea: the gradient of the whole program says which values it saves. Views of one value are one. A stage keeps
// what is made and first used in it; what comes in from other stages is left out.
#include "plan/internal.h"

typedef struct {
  func f;
  value v;
  u32 at;     // instruction of the forward, from 0; ~0: a parameter is all that there is
  u64 inside; // of a call: which value there
} root;

static bool is_view(const func_info *f, const instr *i) {
  return op_row_of(i->op)->flags & (OPF_VIEW | OPF_META) && instr_nopd(f, i) == 1 && i->op != OP_unpack;
}

// The value that v is, or is a view of.
static root root_of(const prog *p, func fn, value v) {
  const func_info *f = func_get(p, fn);
  for (;;) {
    const u32 def = f->values.v[v].def;
    if (!def) return (root){fn, v, ~0u, 0};
    const instr *i = &f->body.v[def - 1];
    if (i->op == OP_call) {
      const root in = root_of(p, i->callee, func_get(p, i->callee)->rets.v[v - i->res]);
      if (in.at != ~0u) return (root){in.f, in.v, def - 1, hash_u64(in.v, hash_u64(in.f.i, in.inside + 1))};
      v = opd_of(f, i, in.v - 1);
    } else if (is_view(f, i)) {
      v = opd_of(f, i, 0);
    } else {
      return (root){fn, v, def - 1, 0};
    }
  }
}

static double bytes_of(const prog *p, func f, value v) {
  const type_info *t = val_type(p, func_get(p, f), v);
  return t->tuple ? 0 : (double)shape_bytes(&t->s);
}

static const grad_pair *whole_gradient(planner *pl, arena *a, const stage_source **out) {
  prog *p = pl->src;
  const stage_source *c = *out = planner_stage(pl, 1, func_get(p, p->main)->body.n);
  const func_info *m = func_get(p, p->main);
  u8 *mark = ZNEWN(a, u8, c->nweights + c->ninputs + 1);
  bool *has_dy = ZNEWN(a, bool, c->noutputs + 1);
  for (u32 k = 0; k < c->nweights; k++) {
    const type_info *t = val_type(p, m, c->weight[k]);
    mark[k] = !t->tuple && dtype_kind_of(t->s.t) == DK_FLOAT ? GRAD_PLAIN : GRAD_NONE;
  }
  for (u32 k = 0; k < c->noutputs; k++) has_dy[k] = c->output[k] == m->rets.v[0];
  const grad_opts o = {mark, has_dy, false};
  return planner_grad(pl, c->fwd, &o, 0);
}

typedef struct {
  u64 key;
  double root, views; // bytes
  u32 def, use;
} group_of_views;

u32 plan_kept(planner *pl, const plan *pn, arena *a, plan_kept_value **out) {
  const stage_source *c;
  const u32 before = diag_count(pl->src->c);
  pl = planner_marked(pl, pn);
  const grad_pair *g = whole_gradient(pl, a, &c);
  diag_truncate(pl->src->c, before);
  *out = NULL;
  if (!g) return 0;
  const prog *p = pl->src;
  const func_info *m = func_get(p, p->main), *f = func_get(p, g->fwd);
  u32 *main_at = ZNEWN(a, u32, p->norigins + 1), *first_use = ZNEWN(a, u32, m->values.n);
  for (u32 i = 0; i < m->body.n; i++) main_at[m->body.v[i].origin] = i + 1;
  for (u32 i = m->body.n; i-- > 0;)
    for (u32 k = 0; k < instr_nopd(m, &m->body.v[i]); k++) first_use[opd_of(m, &m->body.v[i], k)] = i + 1;
  VEC(group_of_views) v = {0};
  hmap seen = {0};
  for (u32 k = f->rets.n - g->nsaved; k < f->rets.n; k++) {
    const root r = root_of(p, g->fwd, f->rets.v[k]);
    const u32 at = r.at == ~0u ? 0 : main_at[f->body.v[r.at].origin];
    if (!at) continue;
    const u64 key = hash_u64(r.at, r.inside ? r.inside : hash_u64(r.v, 5));
    u32 id = hmap_get(&seen, key);
    if (!id) {
      group_of_views x = {key, bytes_of(p, r.f, r.v), 0, at - 1, at - 1};
      *vec_push(a, &v) = x;
      hmap_add(a, &seen, key, id = v.n);
    }
    v.v[id - 1].views += bytes_of(p, g->fwd, f->rets.v[k]);
    // a result of main's own instruction may be kept by who reads it
    const instr *made = &f->body.v[r.at], *own = &m->body.v[at - 1];
    for (u32 q = 0; q < own->nres && q < made->nres; q++) {
      const root result = root_of(p, g->fwd, made->res + q);
      const u32 use = first_use[own->res + q];
      if (result.at == r.at && result.inside == r.inside && result.v == r.v && use)
        v.v[id - 1].use = MAX(v.v[id - 1].use, use - 1);
    }
  }
  *out = NEWN(a, plan_kept_value, v.n + 1);
  for (u32 k = 0; k < v.n; k++)
    (*out)[k] = (plan_kept_value){v.v[k].def, v.v[k].use, MIN(v.v[k].root, v.v[k].views)};
  return v.n;
}

// ---- how many microbatches are on their way ---------------------------------------------------------------------
// At the moment when a place has most of them.
static void live_on(const sched_seq *q, u32 nstages, u32 *live) {
  u32 n = 0, most = 0, at = 0;
  for (u32 i = 0; i < q->n; i++) {
    n += q->v[i].kind == TASK_F;
    if (n > most) most = n, at = i + 1;
    n -= q->v[i].kind == TASK_B || q->v[i].kind == TASK_I;
  }
  for (u32 i = 0; i < at; i++) {
    const sched_task *t = &q->v[i];
    if (t->stage >= nstages) continue;
    if (t->kind == TASK_F) live[t->stage]++;
    if (t->kind == TASK_B || t->kind == TASK_I) live[t->stage]--;
  }
}

u32 *plan_live(arena *a, const sched *s) {
  u32 *live = ZNEWN(a, u32, s->nstages + 1);
  for (u32 k = 0; k < s->nplaces; k++) live_on(&s->seq[k], s->nstages, live);
  return live;
}
