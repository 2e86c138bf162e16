// search.c - the space enumerated, bounded, dealt to threads, evaluated and ranked.
//
// Idea: points are taken in order of their lower bound on time, in waves of fixed size; before a wave, points
// whose bound cannot beat the plans already kept are ruled out. The waves, not the threads, decide what is
// ruled out, so the result and its certificate are the same on one core and on many. Every thread has a
// session, a copy of the program with its planner (cuts and gradients are made once per thread) and a coster
// of its own.
#include "search/search.h"
#include <math.h>
#include <stdlib.h>

enum { WAVE = 16 };

typedef struct {
  ctx *c;
  arena *a;
  planner *pl;
  coster *k;
  bool broken; // the session could not be set up
} worker;

typedef struct {
  const prog *src;
  const machine *m;
  const cost_opts *costs;
  const search_opts *o;
  search_result *r;
  arena *a;
  worker *w;
  u32 ranks;
  i64 limit;
  double flops_time;                // seconds of all products on one device at its best rate
  double weight_bytes, state_bytes; // of all weights, of their optimiser states
  double flops_per_byte;
  search_point **wave;
} search;

// ---- the space --------------------------------------------------------------------------------------------
static bool in_list(const u32 *v, u32 n, u32 x, u32 absent) {
  for (u32 i = 0; i < n; i++)
    if (v[i] == x) return true;
  return !n && (absent == ~0u || x == absent);
}
static bool pow2(u32 x) { return (x & (x - 1)) == 0; }
static bool degree_ok(const search_opts *o, u32 x) { return !o->pow2 || pow2(x); }

typedef struct {
  arena *a;
  bool states; // has the optimiser any?
  VEC(search_point) v;
} points;

// Is a level of ZeRO part of the space, with D data ranks? states: has the optimiser any?
static bool has_zero(const search_opts *o, bool states, u32 z, u32 D) {
  if (!in_list(o->zero, o->nzero, z, o->train && D > 1 ? ~0u : 0) || (z && (D == 1 || !o->train)))
    return false;
  return z != 1 || o->nzero || states; // no states to split: the same as 0
}

static void add_variants(points *ps, const search_opts *o, u32 D, u32 T, u32 P, u32 K) {
  for (u32 z = 0; z < 4; z++) {
    if (!has_zero(o, ps->states, z, D)) continue;
    for (u32 rc = 0; rc < 3; rc++) {
      if (!in_list(o->recompute, o->nrecompute, rc, o->train ? ~0u : 0) || (rc && !o->train)) continue;
      for (u32 s = 0; s < 2; s++) {
        if (!in_list(o->schedule, o->nschedule, s, SCHED_1F1B)) continue;
        if (P == 1 && s != (o->nschedule ? o->schedule[0] : SCHED_1F1B))
          continue; // one stage: orders do not differ
        *vec_push(ps->a, &ps->v) = (search_point){
            .data = D, .tensor = T, .pipeline = P, .micro = K, .zero = z, .recompute = rc, .schedule = s};
      }
    }
  }
}

static void add_micro(points *ps, const search_opts *o, u32 D, u32 T, u32 P) {
  u32 most = o->max_micro ? o->max_micro : 128, per = o->batch > 0 ? (u32)MIN(o->batch / D, 1 << 20) : most;
  if (o->nmicro) {
    for (u32 i = 0; i < o->nmicro; i++) add_variants(ps, o, D, T, P, o->micro[i]);
    return;
  }
  if (P == 1) add_variants(ps, o, D, T, P, 1);
  if (P == 1 && !o->micro_all) return;
  for (u32 K = 2; K <= most && K <= MAX(per, 1); K++)
    if (pow2(K) || (!o->pow2 && per % K == 0)) add_variants(ps, o, D, T, P, K);
}

static void enumerate(search *s, points *ps) {
  const search_opts *o = s->o;
  u32 N = s->ranks;
  for (u32 D = 1; D <= N; D++)
    for (u32 T = 1; N % D == 0 && T <= N / D; T++) {
      if ((N / D) % T) continue;
      u32 P = N / D / T;
      if (!in_list(o->data, o->ndata, D, ~0u) || !in_list(o->tensor, o->ntensor, T, ~0u) ||
          !in_list(o->pipeline, o->npipeline, P, ~0u))
        continue;
      if (!degree_ok(o, D) || !degree_ok(o, T) || !degree_ok(o, P)) continue;
      add_micro(ps, o, D, T, P);
    }
}

// ---- bounds -----------------------------------------------------------------------------------------------
static double products_time(search *s, worker *w, func f, double *memo) {
  if (memo[f.i] >= 0) return memo[f.i];
  const prog *p = planner_source(w->pl);
  const func_info *fi = func_get(p, f);
  double sum = 0;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (in->op == OP_call) {
      sum += products_time(s, w, in->callee, memo);
    } else if (op_row_of(in->op)->flags & OPF_GEMM) {
      double rate = 0;
      dtype t = val_type(p, fi, opd_of(fi, in, 0))->s.t;
      for (u32 k = 0; k < s->m->nkinds; k++) rate = MAX(rate, cost_top_flops(w->k, &s->m->kind[k], t));
      if (rate > 0) sum += op_flops(in->op, attrs_get(p, in->at), plan_law(w->pl, f, i)) / rate;
    }
  }
  return memo[f.i] = sum;
}

static void count_bytes(search *s) {
  const prog *p = s->src;
  const func_info *f = func_get(p, p->main);
  for (u32 i = 0; i < f->nparams; i++) {
    if (f->params.v[i].r != ROLE_WEIGHT) continue;
    shape x = val_type(p, f, i + 1)->s;
    s->weight_bytes += (double)shape_bytes(&x);
    if (dtype_kind_of(x.t) != DK_FLOAT) continue;
    double states = optim_states(&s->o->optim, x.t);
    x.t = optim_state_type(x.t);
    s->state_bytes += states * (double)shape_bytes(&x);
  }
}

// Time: products at their best rate on all devices. With stages and K microbatches a stage that has work w_s
// starts after one microbatch has passed the stages before it and runs K: max over s of K w_s + sum of w_r, r
// < s, which is least when all are equal: W / (1 - (1 - 1/K)^P) for W = sum of w. Memory: some rank holds at
// least the mean.
static void bound(const search *s, search_point *p) {
  double K = p->micro, n = (double)p->data * p->tensor, train = s->o->train ? 3 : 1;
  double W = s->flops_time * train / n / K;
  double t = K > 1 ? W / (1 - pow(1 - 1 / K, p->pipeline)) : W;
  p->bound_ps = (i64)(t * 1e12 * 0.999999);
  double share = (double)p->tensor * p->pipeline, w = s->weight_bytes / share,
         bytes = p->zero == 3 ? w / p->data : w;
  if (s->o->train)
    bytes += (p->zero >= 2 ? w / p->data : w) + s->state_bytes / share / (p->zero >= 1 ? p->data : 1);
  p->bound_bytes = (i64)(s->o->accounting == SIM_BYTES_HEDDLE ? bytes : w);
}

// ---- evaluation -------------------------------------------------------------------------------------------
hybrid_opts search_hybrid(const search_opts *o, const search_point *p) {
  return (hybrid_opts){.data = p->data,
                       .tensor = p->tensor,
                       .pipeline = p->pipeline,
                       .micro = p->micro,
                       .zero = p->zero,
                       .recompute = p->recompute,
                       .schedule = p->schedule,
                       .train = o->train,
                       .sequence = o->sequence,
                       .optim = o->optim,
                       .overlap = o->overlap};
}

static bool setup(search *s, worker *w) {
  if (w->c) return !w->broken;
  w->c = ctx_new();
  w->a = arena_new();
  prog *p = prog_clone(s->src, w->c);
  w->pl = planner_new(p);
  prog_free(p);
  w->k = coster_new(w->c, w->a, s->m, s->costs);
  w->broken = !w->k;
  return !w->broken;
}

static const char *reason(const worker *w) { return diag_count(w->c) ? diag_get(w->c, 0).message : ""; }

// The lower level of ZeRO in the space whose plan is the same, as far as tensors lie split at rest: nothing
// had enough elements for all data ranks. p's own level if there is none.
static u32 same_zero(const search *s, const worker *w, const search_point *p) {
  static const rest_what adds[] = {REST_STATE, REST_GRAD, REST_WEIGHT}; // what level 1, 2, 3 splits too
  u32 z = p->zero, same = z;
  for (; z && !planner_rests(w->pl, adds[z - 1]); z--)
    if (has_zero(s->o, s->state_bytes > 0, z - 1, p->data)) same = z - 1;
  return same;
}

static void evaluate(search *s, worker *w, search_point *p) {
  arena *a = arena_new();
  hybrid_opts h = search_hybrid(s->o, p);
  h.flops_per_byte = s->flops_per_byte;
  plan *pn = policy_hybrid(w->pl, a, &h);
  prog *d = pn ? plan_apply(w->pl, pn, w->k) : NULL;
  sim_result r;
  sim_opts so = {.mode = SIM_FOLDED, .bytes = s->o->accounting, .peak_only = true};
  if (d) coster_use(w->k, d);
  u32 same = d ? same_zero(s, w, p) : p->zero;
  if (same != p->zero) {
    diag(w->c, E_PLAN, (loc){0}, "ZeRO %u splits no more over %u data ranks than ZeRO %u", p->zero, p->data,
         same);
    prog_free(d);
    d = NULL;
  }
  if (!d || !sim_run(w->c, a, d, w->k, &so, &r)) {
    p->state = SEARCH_INDIVISIBLE;
    const char *why = reason(w);
    p->why = strdup(why); // moved to the caller's arena when the wave is done
  } else {
    p->time_ps = r.makespan_ps, p->peak_bytes = r.peak_bytes, p->utilisation = r.utilisation,
    p->comm = r.comm;
    p->bubble = r.bubble;
    p->state = s->limit >= 0 && r.peak_bytes > s->limit ? SEARCH_OVER_MEMORY : SEARCH_RAN;
  }
  diag_clear(w->c);
  if (d) prog_free(d);
  arena_free(a);
}

static void job(void *arg, u32 i, int thread) {
  search *s = arg;
  worker *w = &s->w[thread];
  if (setup(s, w)) evaluate(s, w, s->wave[i]);
}

// ---- ranking ----------------------------------------------------------------------------------------------
static int by_bound(const void *x, const void *y) {
  const search_point *const *a = x, *const *b = y;
  if ((*a)->bound_ps != (*b)->bound_ps) return (*a)->bound_ps < (*b)->bound_ps ? -1 : 1;
  return *a < *b ? -1 : *a > *b;
}
static int by_rank(const void *x, const void *y) {
  const search_point *a = x, *b = y;
  if ((a->state == SEARCH_RAN) != (b->state == SEARCH_RAN)) return a->state == SEARCH_RAN ? -1 : 1;
  if (a->time_ps != b->time_ps) {
    if (!a->time_ps || !b->time_ps) return a->time_ps ? -1 : 1;
    return a->time_ps < b->time_ps ? -1 : 1;
  }
  if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
  const u32 *u = &a->data, *v = &b->data;
  for (u32 i = 0; i < 7; i++)
    if (u[i] != v[i]) return u[i] < v[i] ? -1 : 1;
  return 0;
}
static int by_i64(const void *x, const void *y) {
  return *(const i64 *)x < *(const i64 *)y ? -1 : *(const i64 *)x > *(const i64 *)y;
}

// The time that a plan must beat to be kept: the top-th best so far.
static i64 to_beat(const search *s, search_point **all, u32 done) {
  if (!s->o->top || s->o->no_bounds) return INT64_MAX;
  i64 *t = NEWN(s->a, i64, done + 1);
  u32 n = 0;
  for (u32 i = 0; i < done; i++)
    if (all[i]->state == SEARCH_RAN && all[i]->time_ps) t[n++] = all[i]->time_ps;
  if (n < s->o->top) return INT64_MAX;
  qsort(t, n, sizeof *t, by_i64);
  return t[s->o->top - 1];
}

static void run_waves(search *s, search_point **all, u32 n, int threads) {
  progress bar;
  progress_begin(&bar, "searching", n);
  s->wave = NEWN(s->a, search_point *, WAVE);
  for (u32 at = 0; at < n;) {
    i64 beat = to_beat(s, all, at);
    u32 k = 0;
    for (; at < n && k < WAVE; at++) {
      search_point *p = all[at];
      if (!s->o->no_bounds && s->limit >= 0 && p->bound_bytes > s->limit)
        p->state = SEARCH_BOUND_MEMORY;
      else if (p->bound_ps > beat)
        p->state = SEARCH_BOUND_TIME;
      else
        s->wave[k++] = p;
    }
    parallel_for(threads, k, job, s);
    for (u32 i = 0; i < k; i++) {
      if (!s->wave[i]->why) continue;
      char *own = (char *)(uintptr_t)s->wave[i]->why;
      s->wave[i]->why = arena_strdup(s->a, own);
      free(own);
    }
    progress_step(&bar, at);
  }
  progress_end(&bar);
}

double search_price(const machine *m) {
  const device_kind *k = &m->kind[0];
  double rate = MAX(machine_top_flops(k, DT_F16), machine_top_flops(k, DT_F32)),
         bw = m->node_kind[0].inside.bw * m->node_kind[0].inside.eff;
  if (m->node_kind[0].ndevs < 2) bw = m->node_kind[0].nics * m->node_kind[0].nic_bw * m->fabric.eff;
  return rate > 0 && bw > 0 ? rate / bw : 0;
}

static void no_plan(ctx *c, const search_result *r, u32 ranks) {
  if (!r->npoints) {
    diag(c, E_NO_PLAN, (loc){0}, "no choice of data x tensor x pipeline makes %u devices", ranks);
    diag_hint(c, "leave one of --data, --tensor, --pipeline to the search, or say --devices N");
    return;
  }
  const u32 large = r->count[SEARCH_BOUND_MEMORY] + r->count[SEARCH_OVER_MEMORY];
  arena *a = ctx_arena(c);
  const char *limit = text_bytes(a, (double)r->memory_bytes);
  if (r->npoints > 1)
    diag(c, E_NO_PLAN, (loc){0}, "none of %u plans can run: %u impossible, %u over %s of memory", r->npoints,
         r->count[SEARCH_INDIVISIBLE], large, limit);
  else if (large)
    diag(c, E_NO_PLAN, (loc){0}, "the plan cannot run: it needs more than %s of memory", limit);
  else
    diag(c, E_NO_PLAN, (loc){0}, "the plan is impossible");
  const char *why = NULL;
  i64 least = 0;
  for (u32 i = 0; i < r->npoints; i++) {
    const search_point *p = &r->point[i];
    if (p->state == SEARCH_INDIVISIBLE && !why) why = p->why;
    i64 b = p->peak_bytes ? p->peak_bytes : p->bound_bytes;
    if ((p->state == SEARCH_OVER_MEMORY || p->state == SEARCH_BOUND_MEMORY) && (!least || b < least))
      least = b;
  }
  if (why && *why) diag_note(c, (loc){0}, "%s%s", r->npoints > 1 ? "for example: " : "", why);
  if (least)
    diag_note(c, (loc){0}, "%s needs at least %s on a rank", r->npoints > 1 ? "the smallest" : "it",
              text_bytes(a, (double)least));
  if (least)
    diag_hint(c, "more devices, a smaller batch, --zero 3 or --recompute full need less memory on each");
  else
    diag_hint(c, "degrees and microbatches that divide the batch, the heads and the layers can run");
}

bool search_run(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                const search_opts *o, search_result *r) {
  u64 start = clock_ns();
  *r = (search_result){.batch = o->batch};
  int threads = o->threads > 0 ? o->threads : cpu_count();
  search s = {.src = src,
              .m = m,
              .costs = costs,
              .o = o,
              .r = r,
              .a = a,
              .ranks = o->ranks ? o->ranks : m->nranks,
              .w = ZNEWN(a, worker, threads)};
  if (s.ranks > m->nranks) {
    diag(c, E_PLAN, (loc){0}, "%u devices asked for, but the machine has %u", s.ranks, m->nranks);
    diag_hint(c, "--devices %u, or a larger machine such as 'dgx-h100*%u'", m->nranks, (s.ranks + 7) / 8);
    return false;
  }
  i64 usable = m->kind[0].usable_bytes;
  for (u32 k = 1; k < m->nkinds; k++) usable = MIN(usable, m->kind[k].usable_bytes);
  s.limit = r->memory_bytes = o->memory_bytes ? o->memory_bytes : usable;
  s.flops_per_byte = search_price(m);
  count_bytes(&s);
  points ps = {.a = a, .states = s.state_bytes > 0};
  enumerate(&s, &ps);
  r->npoints = ps.v.n, r->point = ps.v.v;
  bool ok = setup(&s, &s.w[0]);
  if (ok) {
    const prog *p = planner_source(s.w[0].pl);
    double *memo = NEWN(a, double, p->funcs.n);
    for (u32 i = 0; i < p->funcs.n; i++) memo[i] = -1;
    s.flops_time = products_time(&s, &s.w[0], p->main, memo);
    u32 n = 0;
    search_point **all = NEWN(a, search_point *, ps.v.n + 1);
    for (u32 i = 0; i < ps.v.n; i++) {
      if (o->parts > 1 && i % o->parts != o->part) continue;
      bound(&s, &ps.v.v[i]);
      all[n++] = &ps.v.v[i];
    }
    qsort(all, n, sizeof *all, by_bound);
    run_waves(&s, all, n, threads);
    if (r->npoints) qsort(r->point, r->npoints, sizeof *r->point, by_rank);
    for (u32 i = 0; i < r->npoints; i++) r->count[r->point[i].state]++;
    r->nfit = r->count[SEARCH_RAN];
  } else {
    for (u32 i = 0; i < diag_count(s.w[0].c); i++)
      diag(c, diag_get(s.w[0].c, i).id, (loc){0}, "%s", diag_get(s.w[0].c, i).message);
  }
  for (int i = 0; i < threads; i++) {
    if (!s.w[i].c) continue;
    planner_free(s.w[i].pl);
    arena_free(s.w[i].a);
    ctx_free(s.w[i].c);
  }
  r->time_ns = clock_ns() - start;
  if (ok && !r->nfit) no_plan(c, r, s.ranks);
  return ok && r->nfit;
}
