// work.c - a better bound on time, from work that is measured: what the tasks of one microbatch take of a rank when the
// model is one stage, by instruction of main, and the stages of the plan as they are.
//
// Idea: a stage does what its instructions do in a plan of one stage, with the same tensor parallelism, samples in a
// microbatch and recomputation. Neither data ranks nor places nor the order change that, so a few hundred such
// plans bound all of a space. A place computes for every microbatch what its stages do. Where products form a chain
// (bound.c), the stages before its first one pass a microbatch on before it begins, and have a backward
// left when it has ended. A rank does one thing after the other, so the next stage waits for all calls but the
// last, of which only products surely come before what it waits for; likewise there and back, for a backward may
// begin to compute again what its last call needs.
//
// - What crosses the border of a stage may be summed and gathered in another way than inside one. So with several
//   stages communication counts half where it may be about that: in the first and the last call of a stage
//   that communicate, and where main does not call.
// - ZeRO 2 and 3 communicate in every microbatch and accumulate pieces. What that adds to ZeRO 0 does not depend
//   on microbatches, so it is measured once for each (dp, tp), at one sample in a microbatch.
// - Ranks of a tensor group lie as those of the first one or worse, if all nodes of the machine are alike. Else
//   nothing is said.
//
// Every plan that is simulated is held against its bound (search.c).
#include "search/internal.h"

struct work {
  strategy of;
  bool split; // backwards in two parts
  bool tried, known;
  double *compute[2], *comm[2]; // ps of instructions of main before number i, forward and backward
};
struct works {
  arena *a;
  const search *s;
  u32 nbody;
  const bool *call; // is that instruction of main a call?
  bool off;
  VEC(work *) v;
  hmap map;
};

works *works_new(arena *a, const search *s) {
  works *x = ZNEWN(a, works, 1);
  const prog *p = planner_source(s->w[0].pl);
  const func_info *m = func_get(p, p->main);
  bool *call = NEWN(a, bool, m->body.n + 1);
  for (u32 i = 0; i < m->body.n; i++) call[i] = m->body.v[i].op == OP_call;
  x->a = a, x->s = s, x->nbody = m->body.n, x->call = call;
  x->off = !machine_period(s->m);
  return x;
}

static work *work_of(works *x, const strategy *of, bool split) {
  const u64 h = hash_u64(strategy_hash(of), split);
  for (u32 it = 0, i; hmap_next(&x->map, h, &it, &i);)
    if (x->v.v[i]->split == split && !strategy_compare(&x->v.v[i]->of, of)) return x->v.v[i];
  work *v = ZNEWN(x->a, work, 1);
  v->of = *of, v->split = split;
  for (u32 k = 0; k < 2; k++)
    v->compute[k] = ZNEWN(x->a, double, x->nbody + 1), v->comm[k] = ZNEWN(x->a, double, x->nbody + 1);
  hmap_add(x->a, &x->map, h, x->v.n);
  return *vec_push(x->a, &x->v) = v;
}

// The strategy with one stage, whose samples in a microbatch are the same.
static strategy one_stage(const strategy *s, u32 dp, u32 mb, u32 zero) {
  strategy x = strategy_without(s, CHOICE_OF_ORDER);
  x = strategy_without(&x, CHOICE_OF_SENDS);
  x.schedule = choice_default(CHOICE_schedule), x.layers = choice_default(CHOICE_layers);
  x.pp.n = x.v.n = 1;
  x.dp.n = dp, x.mb.n = mb, x.zero.n = zero;
  return x;
}

u32 works_of(works *x, const strategy *s, work *v[WORKS_MOST]) {
  const search_opts *o = x->s->o;
  const bool split =
      o->train && !s->schedule.path && sched_row_find(choice_word(CHOICE_schedule, s->schedule.n))->split;
  const u64 all = (u64)s->dp.n * s->mb.n;
  strategy of = one_stage(s, 1, (u32)all, 0);
  if (x->off || s->schedule.path || all > CHOICE_MOST) return 0;
  if (s->mb.n == 1) of = one_stage(s, s->dp.n, 1, 0); // nothing is accumulated
  v[0] = work_of(x, &of, split);
  if (s->zero.n < 2 || s->mb.n == 1) return 1;
  const i64 own = o->batch / s->dp.n; // samples of a data rank
  if (o->batch <= 0 || own < 2 || own > CHOICE_MOST || o->batch % s->dp.n) return 0;
  for (u32 k = 1; k < 3; k++) {
    of = one_stage(s, s->dp.n, (u32)own, k == 1 ? s->zero.n : 0);
    of.recompute = choice_default(CHOICE_recompute);
    v[k] = work_of(x, &of, split);
  }
  return 3;
}

bool work_known(const work *v) { return v->tried; }

void work_measure(works *x, worker *w, work *v) {
  if (v->tried) return;
  v->tried = true;
  arena *tmp = arena_new();
  const search_point p = {.s = v->of};
  const u32 before = diag_count(w->c);
  hybrid_opts h = search_hybrid(x->s->o, &p);
  h.no_order = true;
  plan *pn = policy_hybrid(w->pl, tmp, &h);
  sim_busy *busy = ZNEWN(tmp, sim_busy, x->nbody + 1);
  if (pn && v->split) pn->made.row = sched_row_find("zb-h1");
  v->known = pn && !pn->batchnorm_groups && plan_busy(w->pl, pn, w->k, busy);
  for (u32 i = 0; v->known && i < x->nbody; i++)
    for (u32 k = 0; k < 2; k++) {
      v->compute[k][i + 1] = v->compute[k][i] + busy[i].compute[k];
      v->comm[k][i + 1] = v->comm[k][i] + busy[i].comm[k];
    }
  diag_truncate(w->c, before);
  arena_free(tmp);
}

// Of instructions [from, to), forward, or forward and backward.
static double comm_of(const work *v, u32 passes, u32 from, u32 to) {
  double t = 0;
  for (u32 k = 0; k < passes; k++) t += v->comm[k][to] - v->comm[k][from];
  return t;
}

static double all_of(work *const v[WORKS_MOST], u32 n, u32 passes, u32 from, u32 to) {
  double t = 0;
  for (u32 k = 0; k < n; k++) {
    double own = comm_of(v[k], passes, from, to);
    for (u32 d = 0; d < passes; d++) own += v[k]->compute[d][to] - v[k]->compute[d][from];
    t += k == 2 ? -own : own;
  }
  return t;
}

// Of its communication, what may be done in another way if the instructions are a stage of several.
static double at_borders(const works *x, const work *v, u32 from, u32 to) {
  double sum = comm_of(v, 2, from, to), last = 0;
  bool first = true;
  for (u32 i = from; i < to; i++) {
    const double comm = comm_of(v, 2, i, i + 1);
    if (!x->call[i] || comm <= 0) continue;
    if (!first) sum -= comm, last = comm;
    first = false;
  }
  return sum + last;
}

// ps of instructions [from, to) for one microbatch.
static double work_in(const works *x, work *const v[WORKS_MOST], u32 n, u32 from, u32 to, bool several) {
  return all_of(v, n, 2, from, to) - (several ? at_borders(x, v[0], from, to) / 2 : 0);
}

// ps that pass between the arrival of a microbatch at the stage and its leaving it, there and back.
static double passing(const works *x, work *const v[WORKS_MOST], u32 n, const strategy *s, bool splits,
                      u32 from, u32 to) {
  const bounds *b = &x->s->bounds;
  const double products = bound_products(b, s, splits, from, to);
  u32 last = to; // call with products
  while (last > from && (!x->call[last - 1] || b->forward[last] <= b->forward[last - 1])) last--;
  if (last == from) return products;
  double t = bound_products(b, s, splits, last - 1, last);
  bool first = true;
  for (u32 i = from; i + 1 < last; i++) {
    if (!x->call[i] || b->forward[i + 1] <= b->forward[i]) continue;
    t += all_of(v, n, splits ? 1 : 2, i, i + 1) - (first ? comm_of(v[0], splits ? 1 : 2, i, i + 1) / 2 : 0);
    first = false;
  }
  return MAX(t, products);
}

void work_bound(works *x, const search *s, worker *w, search_point *p) {
  work *v[WORKS_MOST];
  const u32 n = works_of(x, &p->s, v);
  for (u32 k = 0; k < n; k++)
    if (!v[k]->known) return;
  arena *tmp = arena_new();
  const plan *pn = n ? search_plan(s, w, tmp, p, NULL) : NULL;
  const u32 places = p->s.pp.n;
  const bool splits = bound_splits(&s->bounds, &p->s);
  u32 *first = ZNEWN(tmp, u32, places); // stage + 1
  double *takes = ZNEWN(tmp, double, places), *passed, before = 0, most = 0, fill = 0;
  passed = ZNEWN(tmp, double, places); // before the first stage of a place
  for (u32 k = 0; pn && k < pn->nsegments; k++) {
    const u32 at = pn->segments[k].on.nfix ? pn->segments[k].on.fix[0].at : 0,
              from = pn->segments[k].from - 1, to = pn->segments[k].to;
    assert(at < places);
    if (!first[at]) first[at] = k + 1, passed[at] = before;
    takes[at] += work_in(x, v, n, from, to, pn->nsegments > 1);
    if (s->bounds.chain && k + 1 < pn->nsegments) before += passing(x, v, n, &p->s, splits, from, to);
  }
  for (u32 q = 0; pn && q < places; q++) {
    const double t = passed[q] + p->s.mb.n * takes[q];
    if (t > most) most = t, fill = passed[q];
  }
  most *= 0.999999, fill *= 0.999999;
  if (most > (double)p->bound_ps) p->bound_ps = (i64)most, p->bound_fill_ps = (i64)fill, p->bound_work = true;
  diag_clear(w->c);
  arena_free(tmp);
}
