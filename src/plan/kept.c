// kept.c - what a training step must keep from the forward of an instruction to its backward, on a rank of
// one stage. Not what a plan of several stages keeps in fact: that is known when it is simulated.
//
// Idea: the plan is applied as far as the forward function, which says which values are saved, and in which
// layout. Views of one value are one. A stage keeps what is made and first used in it; what comes in from
// other stages is left out.
#include "plan/main.h"

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

// Of a rank, on average.
static double bytes_of(const prog *p, func f, value v) {
  const type_info *t = val_type(p, func_get(p, f), v);
  const layout_info *l = t->tuple ? NULL : layout_get(p->sp, t->lay);
  double ways = 1;
  for (u32 k = 0; l && k < l->nsplit; k++) ways *= axis_size(p->sp, l->split[k].axis);
  return t->tuple ? 0 : (double)shape_bytes(&t->s) / ways;
}

typedef struct {
  u64 key;
  double root, views; // bytes
  u32 def, use;
} group_of_views;

typedef struct {
  arena *a;
  const prog *p;
  const func_info *m;       // of the source
  u32 *main_at, *first_use; // by origin, by value of main: numbers from 1
  VEC(group_of_views) v;
  hmap seen;
} keeping;

static void keep(keeping *x, func fn, value saved) {
  const func_info *f = func_get(x->p, fn);
  const root r = root_of(x->p, fn, saved);
  const u32 at = r.at == ~0u ? 0 : x->main_at[f->body.v[r.at].origin];
  if (!at) return;
  const u64 key = hash_u64(r.at, r.inside ? r.inside : hash_u64(r.v, 5));
  u32 id = hmap_get(&x->seen, key);
  if (!id) {
    group_of_views g = {key, bytes_of(x->p, r.f, r.v), 0, at - 1, at - 1};
    *vec_push(x->a, &x->v) = g;
    hmap_add(x->a, &x->seen, key, id = x->v.n);
  }
  assert(x->v.v && id <= x->v.n);
  group_of_views *g = &x->v.v[id - 1];
  g->views += bytes_of(x->p, fn, saved);
  // a result of main's own instruction may be kept by who reads it
  const instr *made = &f->body.v[r.at], *own = &x->m->body.v[at - 1];
  for (u32 q = 0; q < own->nres && q < made->nres; q++) {
    const root result = root_of(x->p, fn, made->res + q);
    const u32 use = x->first_use[own->res + q];
    if (result.at == r.at && result.inside == r.inside && result.v == r.v && use)
      g->use = MAX(g->use, use - 1);
  }
}

static void keep_all(keeping *x, const main_build *mb) {
  const stage_build *s = &mb->stage[0];
  const func_info *f = func_get(mb->p, s->fwd.dst), *m = x->m = mb->m;
  x->p = mb->p;
  x->main_at = ZNEWN(x->a, u32, mb->s->norigins + 1), x->first_use = ZNEWN(x->a, u32, m->values.n);
  for (u32 i = 0; i < m->body.n; i++) x->main_at[m->body.v[i].origin] = i + 1;
  for (u32 i = m->body.n; i-- > 0;)
    for (u32 k = 0; k < instr_nopd(m, &m->body.v[i]); k++) x->first_use[opd_of(m, &m->body.v[i], k)] = i + 1;
  const u32 def = f->values.v[f->rets.v[f->rets.n - 1]].def; // saved values leave as one tuple
  const instr *i = def ? &f->body.v[def - 1] : NULL;
  for (u32 k = 0; i && i->op == OP_pack && k < instr_nopd(f, i); k++) keep(x, s->fwd.dst, opd_of(f, i, k));
}

u32 plan_kept(planner *pl, const plan *pn, cost_model *k, arena *a, plan_kept_value **out,
              bool **accumulates) {
  const u32 before = diag_count(pl->src->c);
  keeping x = {.a = a};
  apply ap;
  main_build mb;
  bool ok = apply_open(&ap, pl, pn, k);
  if (ok) main_open(&mb, &ap, 1);
  ok = ok && main_stages(&mb);
  const stage_build *s = ok && mb.nstages == 1 && mb.stage[0].gp ? &mb.stage[0] : NULL;
  *accumulates = ZNEWN(a, bool, func_get(pl->src, pl->src->main)->nparams + 1);
  for (u32 i = 0; s && i < s->gp->nacc; i++) (*accumulates)[s->src->weight[s->gp->acc[i]] - 1] = true;
  if (s && s->gp->nsaved) keep_all(&x, &mb);
  *out = NEWN(a, plan_kept_value, x.v.n + 1);
  for (u32 i = 0; i < x.v.n; i++)
    (*out)[i] = (plan_kept_value){x.v.v[i].def, x.v.v[i].use, MIN(x.v.v[i].root, x.v.v[i].views)};
  prog_free(apply_close(&ap, ok));
  diag_truncate(pl->src->c, before);
  return x.v.n;
}

// ---- how many microbatches are on their way -------------------------------------------------------------
// At the moment when a place has most of them.
void plan_live_on(const sched_seq *q, u32 nstages, u32 npasses, u32 *live) {
  static const int adds[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = -1, [TASK_I] = -1};
  int n = 0, most = 0;
  u32 at = 0;
  for (u32 i = 0; i < q->n; i++) {
    n += adds[q->v[i].kind];
    if (npasses > 1 && q->v[i].kind == TASK_F && q->v[i].pass + 1u != npasses) n--; // another comes
    if (n > most) most = n, at = i + 1;
  }
  for (u32 i = 0; i < at; i++) {
    const sched_task *t = &q->v[i];
    if (t->stage >= nstages) continue;
    u32 *of = &live[t->replica * nstages + t->stage];
    if (t->kind == TASK_F && t->pass + 1u == npasses) ++*of;
    if (t->kind == TASK_B || t->kind == TASK_I) --*of;
  }
}

u32 *plan_live(arena *a, const sched *s) {
  u32 *live = ZNEWN(a, u32, s->nreplicas * s->nstages + 1);
  for (u32 k = 0; k < s->nplaces; k++) plan_live_on(&s->seq[k], s->nstages, s->npasses, live);
  return live;
}
