// work.c - a better bound on time, from work that is measured: what the tasks of one microbatch take of a rank when the
// model is one stage, by instruction of main, and the stages of the plan as they are.
//
// Idea: a stage does what its instructions do in a plan of one stage, with the same tensor parallelism, samples in a
// microbatch and recomputation. Neither data ranks nor places nor the order change that, so a few hundred such
// plans bound all of a space. A place computes for every microbatch what its stages do; before its first stage and
// after its last backward the others do what bound_fill says.
//
// - What crosses the border of a stage may be summed and gathered in another way than inside one, so with several
//   stages communication counts half.
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
  double *compute, *comm; // ps of instructions of main before number i
};
struct works {
  arena *a;
  const search *s;
  u32 nbody;
  bool off;
  VEC(work *) v;
  hmap map;
};

works *works_new(arena *a, const search *s) {
  works *x = ZNEWN(a, works, 1);
  const prog *p = planner_source(s->w[0].pl);
  x->a = a, x->s = s, x->nbody = func_get(p, p->main)->body.n;
  x->off = !machine_period(s->m);
  return x;
}

static work *work_of(works *x, const strategy *of, bool split) {
  const u64 h = hash_u64(strategy_hash(of), split);
  for (u32 it = 0, i; hmap_next(&x->map, h, &it, &i);)
    if (x->v.v[i]->split == split && !strategy_compare(&x->v.v[i]->of, of)) return x->v.v[i];
  work *v = ZNEWN(x->a, work, 1);
  v->of = *of, v->split = split;
  v->compute = ZNEWN(x->a, double, x->nbody + 1), v->comm = ZNEWN(x->a, double, x->nbody + 1);
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
  for (u32 i = 0; v->known && i < x->nbody; i++) {
    v->compute[i + 1] = v->compute[i] + busy[i].compute;
    v->comm[i + 1] = v->comm[i] + busy[i].comm;
  }
  diag_truncate(w->c, before);
  arena_free(tmp);
}

// ps of instructions [from, to) for one microbatch.
static double work_in(work *const v[WORKS_MOST], u32 n, u32 from, u32 to, double crossing) {
  double t = v[0]->compute[to] - v[0]->compute[from] + crossing * (v[0]->comm[to] - v[0]->comm[from]);
  for (u32 k = 1; k < n; k++) {
    const double more = v[k]->compute[to] - v[k]->compute[from] + v[k]->comm[to] - v[k]->comm[from];
    t += k == 1 ? more : -more;
  }
  return t;
}

void work_bound(works *x, const search *s, worker *w, search_point *p) {
  work *v[WORKS_MOST];
  const u32 n = works_of(x, &p->s, v);
  for (u32 k = 0; k < n; k++)
    if (!v[k]->known) return;
  arena *tmp = arena_new();
  const plan *pn = n ? search_plan(s, w, tmp, p, NULL) : NULL;
  const u32 places = p->s.pp.n;
  u32 *first = ZNEWN(tmp, u32, places); // stage + 1
  double *takes = ZNEWN(tmp, double, places), most = 0, fill = 0;
  for (u32 k = 0; pn && k < pn->nsegments; k++) {
    const u32 at = pn->segments[k].on.nfix ? pn->segments[k].on.fix[0].at : 0;
    assert(at < places);
    if (!first[at]) first[at] = k + 1;
    takes[at] += work_in(v, n, pn->segments[k].from - 1, pn->segments[k].to, pn->nsegments > 1 ? 0.5 : 1);
  }
  for (u32 q = 0; pn && q < places; q++) {
    if (!first[q]) continue;
    const double before = bound_fill(&s->bounds, &p->s, pn, first[q] - 1), t = before + p->s.mb.n * takes[q];
    if (t > most) most = t, fill = before;
  }
  most *= 0.999999, fill *= 0.999999;
  if (most > (double)p->bound_ps) p->bound_ps = (i64)most, p->bound_fill_ps = (i64)fill, p->bound_work = true;
  diag_clear(w->c);
  arena_free(tmp);
}
