// auto.c - heddle plan --auto: degrees around the dynamic program of policy/auto.c, held against all hybrids.
//
// Idea: all hybrids are searched as always; the space of that search has the degrees. For every one of them the dynamic
// program gives splits, stages and an estimate of the step. The most promising are simulated, and so is nothing else: the
// answer is the fastest plan that was simulated and fits, automatic or hybrid.
#include "search/internal.h"
#include <math.h>
#include <stdlib.h>

// Degrees of which plans are simulated; splits that are sought again to fit; plans of a program of few operators, for each degrees
enum { SIMULATED = 12, FITTED = 8, FEW = 64 };

typedef struct {
  strategy s;
  i64 least_ps; // of the estimate
  auto_plan plan;
} candidate;
typedef struct {
  planner *pl;
  arena *a;
  const machine *m;
  cost_model *k;
  const search_opts *o;
  search_auto *r;
  splitter *x;
  u32 n;
  candidate *v;
} finding;

static hybrid_opts options(const finding *x, const strategy *s) {
  hybrid_opts h = search_hybrid(x->o, s);
  h.k = x->k, h.memory_bytes = x->o->memory_bytes;
  h.keep_layers = x->o->space.of[CHOICE_layers].said && !choice_is(CHOICE_layers, s->layers, "auto");
  return h;
}

// Time and bytes of a plan, as `heddle sim` has them. False: it cannot be applied.
static bool simulate(const finding *x, arena *tmp, const plan *pn, sim_pipe_result *r) {
  ctx *c = planner_source(x->pl)->c;
  const sim_opts so = {
      .mode = SIM_FOLDED, .bytes = x->o->bytes, .peak_only = true, .steady = search_steady(x->o)};
  const u32 before = diag_errors(c);
  if (plan_has_probe(pn) && x->o->bytes == SIM_BYTES_HEDDLE) {
    if (plan_price_stages(x->pl, pn, x->k, tmp, &so, r)) return true;
    if (diag_errors(c) > before) return false;
  }
  return plan_price_whole(x->pl, pn, x->k, tmp, &so, r);
}

static bool fits(const finding *x, const sim_pipe_result *r) { return sim_within(r, x->o->memory_bytes); }

static void count(const finding *x, const sim_pipe_result *r) {
  search_auto *of = x->r;
  const bool host = sim_lacks(r, x->o->memory_bytes) <= 0;
  if (fits(x, r))
    of->fit++;
  else if (!host)
    of->too_large++;
  else if (!of->host_too_large++ || r->host_bytes < of->host_least_bytes)
    of->host_least_bytes = r->host_bytes, of->host_usable_bytes = r->host_bytes - r->host_over_bytes;
}

// A plan that was simulated and fits becomes the answer if it is faster. Returns by how much it is too large.
static i64 try_plan(finding *x, const candidate *c) {
  ctx *ct = planner_source(x->pl)->c;
  const u32 before = diag_count(ct);
  arena *tmp = arena_new();
  hybrid_opts h = options(x, &c->s);
  h.splits = &c->plan.splits;
  sim_pipe_result r;
  const plan *pn = policy_hybrid(x->pl, tmp, &h);
  x->r->simulated++;
  const bool ran = pn && simulate(x, tmp, pn, &r);
  if (ran) count(x, &r);
  if (ran && fits(x, &r) &&
      (!x->r->time_ps || r.period_ps < x->r->time_ps ||
       (r.period_ps == x->r->time_ps && r.peak_bytes < x->r->peak_bytes))) {
    x->r->automatic = true, x->r->s = c->s, x->r->plan = c->plan;
    x->r->time_ps = r.period_ps, x->r->alone_ps = r.makespan_ps, x->r->peak_bytes = r.peak_bytes;
    x->r->utilisation = r.utilisation, x->r->comm = r.comm, x->r->bubble = r.bubble;
  }
  const i64 over = !ran || fits(x, &r) ? 0 : MAX(sim_lacks(&r, x->o->memory_bytes), r.host_over_bytes);
  diag_truncate(ct, before);
  arena_free(tmp);
  return ran ? over + (over ? r.peak_bytes - over - c->plan.bytes : 0) : 0;
}

static int by_estimate(const void *x, const void *y) {
  const candidate *p = x, *q = y;
  if (p->plan.time_ps != q->plan.time_ps) return p->plan.time_ps < q->plan.time_ps ? -1 : 1;
  return strategy_compare(&p->s, &q->s);
}

typedef struct {
  double weights, gradients, states;
} weight_bytes;

static weight_bytes weights_of(const prog *src, const search_opts *o) {
  const func_info *m = func_get(src, src->main);
  weight_bytes sum = {0};
  for (u32 k = 0; k < m->nparams; k++) {
    if (m->params.v[k].r != ROLE_WEIGHT) continue;
    const shape x = val_type(src, m, k + 1)->s;
    optim_state state;
    sum.weights += (double)shape_bytes(&x);
    if (!o->train || dtype_kind_of(x.t) != DK_FLOAT) continue;
    sum.gradients += (double)shape_bytes(&x);
    for (u32 j = 0; optim_state_find(&o->optim, &x, j, &state); j++)
      sum.states += (double)shape_bytes(&state.s);
  }
  return sum;
}

// May an automatic plan of these degrees be the answer? Not if products alone take longer than the best hybrid, or weights, split
// over all ranks of a stage and the stages, do not fit. (Better bounds are of some points only, and which depends on threads.)
static bool is_promising(const finding *x, const search_point *p, const strategy *s, const weight_bytes *of,
                         i64 have) {
  if (x->r->time_ps && p->products_ps > x->r->time_ps) return false;
  if (s->offload.n || x->o->memory_bytes < 0) return true; // how much of them is on the device at a time?
  const double d = s->dp.n;
  const double all = of->weights / (s->zero.n > 2 ? d : 1) + of->gradients / (s->zero.n > 1 ? d : 1) +
                     of->states / (s->zero.n ? d : 1);
  return all / s->tp.n / s->pp.n <= (double)have;
}

// What hybrids split over the axis is not theirs to say: without it.
static strategy without(const strategy *s) {
  strategy x = *s;
  x.sp = choice_default(CHOICE_sp), x.axial = choice_default(CHOICE_axial);
  x.tables = choice_default(CHOICE_tables);
  return x;
}

static bool has_candidate(const finding *x, const strategy *s) {
  for (u32 k = x->n; k-- > 0;)
    if (!strategy_compare(&x->v[k].s, s)) return true;
  return false;
}

static int by_least(const void *x, const void *y) {
  const candidate *p = x, *q = y;
  if (p->least_ps != q->least_ps) return p->least_ps < q->least_ps ? -1 : 1;
  return strategy_compare(&p->s, &q->s);
}

// How much longer than the least a step of such degrees has been, by the last one that was split.
typedef struct {
  u32 dp, tp, pp;
  double more;
} excess;
typedef struct {
  VEC(excess) v;
} excesses;

static excess *excess_of(arena *a, excesses *all, const strategy *s) {
  for (u32 k = 0; k < all->v.n; k++) {
    excess *e = &all->v.v[k];
    if (e->dp == s->dp.n && e->tp == s->tp.n && e->pp == s->pp.n) return e;
  }
  excess *e = vec_push(a, &all->v);
  *e = (excess){s->dp.n, s->tp.n, s->pp.n, 1};
  return e;
}

// Moves the candidate that is likely to be the fastest of from.. to its place there; those that take more than most at least go.
// False: none is left.
static bool choose(finding *x, excesses *all, u32 from, i64 most) {
  double best = INFINITY;
  u32 n = from, at = from;
  for (u32 k = from; k < x->n; k++) {
    const candidate c = x->v[k];
    if (most && c.least_ps > most) {
      x->r->ruled_out++;
      continue;
    }
    x->v[n] = c;
    const double likely = (double)c.least_ps * excess_of(x->a, all, &c.s)->more;
    if (likely < best || (likely <= best && by_least(&c, &x->v[at]) < 0)) best = likely, at = n;
    n++;
  }
  x->n = n;
  if (at < n) {
    const candidate c = x->v[at];
    x->v[at] = x->v[from], x->v[from] = c;
  }
  return n > from;
}

static u64 hash_of(const finding *x, const candidate *c) {
  arena *tmp = arena_new();
  ctx *ct = planner_source(x->pl)->c;
  const u32 before = diag_count(ct);
  strategy s = c->s;
  s.layers = c->plan.layers;
  hybrid_opts h = options(x, &s);
  h.splits = &c->plan.splits;
  const plan *pn = policy_hybrid(x->pl, tmp, &h);
  const u64 hash = pn ? plan_hash(ct, pn) : 0;
  diag_truncate(ct, before);
  arena_free(tmp);
  return hash;
}

// Is it the program of one of the first n, under another strategy, as where recompute has nothing to do? They would take places
// among those that are simulated.
static bool is_known(const finding *x, u32 n, const candidate *c) {
  u64 own = 0;
  for (u32 k = 0; k < n; k++) {
    const candidate *y = &x->v[k];
    if (y->plan.time_ps != c->plan.time_ps || y->plan.bytes != c->plan.bytes) continue;
    if (!own) own = hash_of(x, c);
    if (own && own == hash_of(x, y)) return true;
  }
  return false;
}

// The order decides how soon much is ruled out, and nothing else. What is slower than as many that fit as are simulated can be none of
// these.
static void split_candidates(finding *x) {
  i64 best[SIMULATED];
  u32 nbest = 0, n = 0;
  const u32 total = x->n;
  excesses all = {0};
  progress bar;
  progress_begin(&bar, "splitting", total);
  for (u32 k = 0;; k++) {
    const i64 most = nbest < SIMULATED ? 0 : best[SIMULATED - 1];
    progress_step(&bar, total - (x->n - k));
    if (!choose(x, &all, k, most)) break;
    candidate c = x->v[k];
    const hybrid_opts h = options(x, &c.s);
    bool ruled_out = false;
    const bool any = policy_auto(x->x, x->a, &h, most, &ruled_out, &c.plan);
    if (c.least_ps > 0)
      excess_of(x->a, &all, &c.s)->more = (double)(any ? c.plan.time_ps : most) / (double)c.least_ps;
    if (!any) {
      x->r->ruled_out += ruled_out;
      continue;
    }
    x->r->points += c.plan.points, x->r->inexact += !c.plan.exact;
    x->r->walked += c.plan.walked, x->r->better += c.plan.better;
    x->r->degrees++;
    if (is_known(x, n, &c)) {
      x->r->equal++;
      continue;
    }
    x->v[n++] = c;
    u32 at;
    if (!c.plan.fits || (nbest == SIMULATED && c.plan.time_ps >= most)) continue;
    if (nbest < SIMULATED) nbest++;
    for (at = nbest - 1; at > 0 && best[at - 1] > c.plan.time_ps; at--) best[at] = best[at - 1];
    best[at] = c.plan.time_ps;
  }
  progress_end(&bar);
  x->n = n;
}

// Degrees of the search with a tensor axis, each once.
static void find_candidates(finding *x, const search_result *all) {
  const weight_bytes weights = weights_of(planner_source(x->pl), x->o);
  i64 have = x->o->memory_bytes;
  for (u32 q = 0; q < x->m->nranks && !x->o->memory_bytes; q++)
    have = MAX(have, machine_kind_of(x->m, q)->usable_bytes);
  x->v = NEWN(x->a, candidate, all->npoints + 2);
  for (u32 k = 0; k < all->npoints; k++) {
    const strategy own = search_strategy(&all->point[k]), *s = &own;
    if (s->tp.n < 2 || s->replicas.nparts || s->coshard.n > 1 || s->attention.n || s->tp_stages.nparts)
      continue;
    if (!is_promising(x, &all->point[k], s, &weights, have)) continue;
    candidate *c = &x->v[x->n];
    *c = (candidate){.s = without(s)};
    if (has_candidate(x, &c->s)) continue;
    const hybrid_opts h = options(x, &c->s);
    c->least_ps = policy_auto_least(x->x, &h);
    x->n++;
  }
  split_candidates(x);
}

// What was said that no automatic plan has, if every plan of the search has it. False and a located diagnostic: there is such.
static bool goes_with_auto(ctx *c, const search_opts *o) {
  static const char plain[] = "splits are of operators, over one axis of one degree";
  static const choice_unfit unfit[] = {
      {CHOICE_replicas, NULL, plain, "replicas=none, or leave out --auto"},
      {CHOICE_tp_stages, NULL, plain, "tp.stages=equal, or leave out --auto"},
      {CHOICE_coshard, NULL, "parts are cut before operators are split", "coshard=1, or leave out --auto"},
      {CHOICE_attention, NULL, "operators are split as the model has them",
       "attention=scores, or leave out --auto"}};
  strategy s = strategy_default();
  for (u32 k = 0; k < COUNT_OF(unfit); k++) {
    const choice_set *said = &o->space.of[unfit[k].id];
    bool may = !said->said || said->all;
    for (u32 j = 0; j < said->n && !may; j++) may = choice_same(said->v[j], choice_default(unfit[k].id));
    if (!may) s.of[unfit[k].id] = said->v[0];
  }
  return strategy_goes_with(c, &o->space, &s, "--auto", unfit, COUNT_OF(unfit));
}

// What does not fit gets the fastest split that does, with so many bytes less than there are for what the estimate does not
// know. False: there is none.
static bool make_fit(finding *x, candidate *c, i64 less) {
  if (c->s.tp.n < 2) return false;
  hybrid_opts h = options(x, &c->s);
  if (!h.keep_layers) h.s.layers = choice_default(CHOICE_layers);
  h.least_bytes = less;
  auto_plan p;
  if (!policy_auto_within(x->x, x->a, &h, &p) || !p.fits) return false;
  x->r->points += p.points, x->r->inexact += !p.exact && c->plan.exact;
  x->r->walked += p.walked && !c->plan.walked, x->r->better += p.better && !c->plan.better;
  c->plan = p;
  return true;
}

// The degrees, microbatches and storage of the best hybrid are worth it in any case.
static bool has_degrees_of_best(const finding *x, const candidate *c) {
  if (!x->r->hybrids.nfit) return false;
  const strategy of = search_strategy(&x->r->hybrids.point[0]), best = without(&of);
  return !strategy_compare(&best, &c->s);
}

// What the estimate does not know is a large part of a program of few operators: more of its assignments are simulated.
static void try_few(finding *x, const candidate *c) {
  auto_plan *v = NEWN(x->a, auto_plan, FEW);
  const hybrid_opts h = options(x, &c->s);
  const u32 n = c->s.tp.n < 2 ? 0 : policy_auto_few(x->x, x->a, &h, FEW, v);
  for (u32 k = 0; k < n; k++) {
    candidate other = {.s = c->s, .plan = v[k]};
    other.s.layers = v[k].layers;
    if (v[k].fits) try_plan(x, &other);
  }
}

// In the order of estimates: the first of those that do not fit are made to, the others are left out.
static void try_all(finding *x) {
  u32 n = 0, fitted = 0;
  progress bar;
  progress_begin(&bar, "simulating", MIN(x->n, SIMULATED));
  for (u32 k = 0; k < x->n; k++) {
    candidate c = x->v[k];
    if (c.plan.fits || ((has_degrees_of_best(x, &c) || fitted++ < FITTED) && make_fit(x, &c, 0)))
      x->v[n++] = c;
  }
  qsort(x->v, n, sizeof *x->v, by_estimate);
  for (u32 k = 0, done = 0; k < n && done < SIMULATED; k++, done++) {
    candidate *c = &x->v[k];
    progress_step(&bar, done);
    try_few(x, c);
    c->s.layers = c->plan.layers;
    const i64 over = try_plan(x, c);
    if (over > 0 && fitted++ < 2 * FITTED && make_fit(x, c, over))
      c->s.layers = c->plan.layers, try_plan(x, c), done++;
  }
  progress_end(&bar);
}

// The best hybrid with these degrees. False: none fits.
static bool search_with(finding *x, const cost_opts *costs, const strategy *of, u32 n,
                        const choice_id *degrees, search_point *out) {
  ctx *c = planner_source(x->pl)->c;
  const u32 before = diag_count(c);
  search_opts o = *x->o;
  search_result r;
  o.top = 1, o.plain = true;
  for (u32 k = 0; k < n; k++) {
    choice_value *v = NEW(x->a, choice_value);
    *v = of->of[degrees[k]];
    o.space.of[degrees[k]] = (choice_set){.at = o.space.of[degrees[k]].at, .said = true, .n = 1, .v = v};
  }
  o.only = ~0ull;
  const bool any = search_run(c, x->a, planner_source(x->pl), x->m, costs, &o, &r) && r.nfit;
  if (any) *out = r.point[0];
  diag_truncate(c, before);
  return any;
}

static void search_same(finding *x, const cost_opts *costs) {
  static const choice_id degrees[] = {CHOICE_dp, CHOICE_tp, CHOICE_pp};
  x->r->has_same = search_with(x, costs, &x->r->s, COUNT_OF(degrees), degrees, &x->r->same);
}

// Where rules allow that nothing is split, the best of the hybrids without a tensor axis keeps them.
static void find_whole(finding *x, const cost_opts *costs) {
  static const choice_id degree[] = {CHOICE_tp};
  const strategy whole = strategy_default();
  bool any = false;
  for (u32 k = 0; k < x->r->hybrids.npoints; k++)
    any |= search_value(&x->r->hybrids.point[k], CHOICE_tp).n == 1;
  candidate *c = &x->v[x->n];
  search_point p;
  if (!any || !policy_auto_whole(x->x, x->a, 1, &c->plan)) return;
  if (!search_with(x, costs, &whole, COUNT_OF(degree), degree, &p)) return;
  c->s = search_strategy(&p), c->plan.layers = c->s.layers, c->plan.time_ps = p.time_ps,
  c->plan.bytes = p.peak_bytes;
  x->n++;
}

bool search_auto_run(planner *pl, arena *a, const machine *m, const cost_opts *costs, const search_opts *o,
                     const auto_opts *how, search_auto *r) {
  ctx *c = planner_source(pl)->c;
  const u32 before = diag_count(c);
  if (!goes_with_auto(c, o)) return false;
  search_opts all = *o;
  all.top = MAX(o->top, 1), all.plain = true;
  static const choice_id also[] = {CHOICE_sp, CHOICE_tables}; // what hybrids may split over the axis
  for (u32 k = 0; k < COUNT_OF(also); k++)
    if (!all.space.of[also[k]].said) all.space.of[also[k]] = (choice_set){.said = true, .all = true};
  *r = (search_auto){.how = *how};
  if (!r->how.proposals) r->how.proposals = SPLITS_PROPOSALS;
  finding x = {.pl = pl, .a = a, .m = m, .o = &all, .r = r, .k = cost_model_new(c, a, m, costs)};
  if (!x.k) return false;
  const bool any = search_run(c, a, planner_source(pl), m, costs, &all, &r->hybrids);
  if (!any && !r->hybrids.npoints) return false;
  const u32 said = diag_count(c);
  if (any && !how->rules) {
    const search_point *p = &r->hybrids.point[0];
    r->s = search_strategy(p), r->time_ps = p->time_ps, r->alone_ps = p->alone_ps,
    r->peak_bytes = p->peak_bytes;
    r->utilisation = p->utilisation, r->comm = p->comm, r->bubble = p->bubble;
  }
  x.x = policy_auto_new(pl, o->train, &r->how);
  find_candidates(&x, &r->hybrids);
  if (how->rules) find_whole(&x, costs);
  qsort(x.v, x.n, sizeof *x.v, by_estimate);
  try_all(&x);
  diag_truncate(c, said);
  if (!r->degrees && !r->time_ps) diag_truncate(c, before);
  const bool told = !r->degrees && !r->time_ps && policy_auto_tell(x.x);
  policy_auto_free(x.x);
  if (told) return false;
  if (!r->time_ps && any) {
    diag_truncate(c, before);
    diag(c, E_NO_PLAN, (loc){0},
         "no automatic plan fits and keeps the rules: of %u degrees with a tensor axis, %u were simulated",
         r->degrees, r->simulated);
    diag_hint(c, r->degrees ? "rules that allow more, recompute=full or zero=3"
                            : "degrees with tp > 1: --strategy 'tp=2'");
  }
  if (!r->time_ps) return false; // or the search said why
  diag_truncate(c, before);
  search_same(&x, costs);
  return true;
}
