// replicas.c - replicas of the model of different make-up (replicas=2x2+1x2): stages of each on ranks of its own, and
// microbatches by their speed.
//
// Idea: each replica is a pipeline of its own, so its stages and their order are what policies make of its degrees on its
// ranks alone. A plan has one list of segments: it is cut wherever a replica is, and a stage of a replica is a
// row of them on one place. Replicas of equal degrees that are cut alike are coordinates of one axis of one mesh, so that their
// gradients are summed over that axis; others lie on meshes of their own.
#include "plan/policy/balance.h"
#include <math.h>

typedef struct {
  replica_grid grid;
  strategy s;   // of it alone, with all microbatches
  u32 first;    // rank
  u32 nstages;  // several on a place where there are chunks
  u32 *end;     // last instruction of every stage
  u32 mesh, at; // of the plan; which of its replicas
  u32 micro;
} replica;

static loc said_at(const hybrid_opts *o, choice_id id) { return o->said ? o->said->of[id].at : (loc){0}; }

// ---- stages of each -------------------------------------------------------------------------------------------
static strategy of_replica(const hybrid_opts *o, const strategy *s, u32 r, u32 first) {
  strategy own = strategy_of_replica(s, r, o->train);
  const bool equal = choice_is(CHOICE_layers, s->layers, "equal");
  assert(own.skip.n == s->skip.n + first);
  if (own.pp.n > 1 && o->k && !equal) (void)choice_read(CHOICE_layers, NULL, "auto", 4, &own.layers);
  return own;
}

// NULL and diagnostics: one of them cannot be. cut: whose main the stages are of; pl itself, or its program with batch
// norm in groups, of which nothing is measured.
static replica *replicas_of(planner *pl, planner *cut_of, arena *a, const hybrid_opts *o, const strategy *s) {
  const u32 n = strategy_replicas(s);
  replica *v = ZNEWN(a, replica, n);
  for (u32 r = 0, first = 0; r < n; r++) {
    replica *x = &v[r];
    hybrid_opts own = *o;
    plan cut = {.train = o->train};
    own.said = NULL, own.s = of_replica(o, s, r, first), own.cuts = CUTS_BY_ESTIMATE;
    if (!policy_balance(pl, a, &own, &own.s) || !policy_stages(cut_of, a, &cut, 1, &own.s, NULL, (loc){0})) {
      diag_note(planner_source(pl)->c, said_at(o, CHOICE_replicas), "this is replica %u of replicas", r + 1);
      return NULL;
    }
    *x = (replica){.grid = strategy_replica(s, r),
                   .s = own.s,
                   .first = first,
                   .nstages = cut.nsegments,
                   .end = NEWN(a, u32, cut.nsegments)};
    for (u32 q = 0; q < cut.nsegments; q++) x->end[q] = cut.segments[q].to;
    first += x->grid.pp * x->grid.tp * x->grid.dp;
  }
  return v;
}

// ---- microbatches of each -------------------------------------------------------------------------------------
typedef struct {
  double all, longest; // ps of the places for one microbatch, together and the longest of them
} pace;

// False: not known.
static bool pace_of(planner *pl, arena *a, const hybrid_opts *o, const replica *x, pace *out) {
  balance b = auto_open(pl, a, o, &x->s);
  const u32 ranks = x->grid.dp * x->grid.tp;
  *out = (pace){0};
  for (u32 q = 0; q < x->grid.pp; q++) {
    double slowest = 0;
    for (u32 r = 0; r < ranks; r++) {
      const u32 rank = x->s.skip.n + strategy_block(&x->s, q) * ranks + r;
      const linear *of = rank < b.m->nranks ? auto_times(&b, b.m->dev[rank].kind) : NULL;
      double ps = 0;
      if (!of) return false;
      for (u32 k = q; k < x->nstages; k += x->grid.pp)
        for (u32 i = k ? x->end[k - 1] : 0; i < x->end[k]; i++)
          ps += auto_at(of[i], MAX(b.micro / x->grid.dp, 1));
      slowest = MAX(slowest, ps);
    }
    out->all += slowest, out->longest = MAX(out->longest, slowest);
  }
  return true;
}

static i64 time_of_micro(const void *of, u32 r, i64 micro) {
  const pace *p = of;
  return (i64)(p[r].all + p[r].longest * (double)(micro - 1));
}

static choice_value shares_of(arena *a, const u32 *micro, u32 n) {
  u32 *v = arena_dup(a, micro, n * sizeof *v);
  return strategy_reduce(v, n) ? (choice_value){.nparts = n, .part = v} : choice_default(CHOICE_dp_shares);
}

typedef struct {
  planner *pl;
  const hybrid_opts *o;
  const strategy *s;
  u32 n, *micro;
  double best;
  u32 left; // simulations
  arena *a;
  plan_probed about;    // the latest probe
  const sim_stages *st; // its stages; NULL: there is none, or it is not known by them
} dealing;

static const sim_opts priced = {.mode = SIM_FOLDED, .peak_only = true};

// By the stages of the plan, which are those of the one before if its probe has as many microbatches of each
// replica. False: it is not known by them.
static bool run_stages(dealing *d, arena *tmp, const plan *pn, sim_pipe_result *out) {
  ctx *c = planner_source(d->pl)->c;
  u32 *micro = NEWN(tmp, u32, d->n), n;
  for (u32 r = 0; r < d->n; r++) micro[r] = pn->replicas[r].micro;
  const sim_stages *st = d->st ? sim_stages_dealt(tmp, d->st, micro) : NULL;
  if (!st) {
    prog *probe = plan_probe(d->pl, pn, d->o->k, d->a, false, &d->about);
    st = d->st = probe ? sim_stages_of(c, d->a, probe, d->o->k, &priced, &d->about.pipeline) : NULL;
    prog_free(probe);
  }
  plan_graph g = d->about.graph;
  g.micro = micro;
  const sim_order *order = NULL;
  if (!st || !plan_line(c, tmp, pn, &g, &n, &order)) return false;
  const sim_line *l = sim_line_new(tmp, st, order, n);
  if (l) sim_pipe(st, tmp, l, out);
  return l != NULL;
}

// ps of a step of the whole plan; one that fits is better than any that does not. INFINITY: there is no such plan.
static double time_of(dealing *d, const u32 *micro) {
  arena *tmp = arena_new();
  hybrid_opts h = *d->o;
  h.s = *d->s, h.said = NULL, h.s.dp_shares = shares_of(tmp, micro, d->n);
  const plan *pn = policy_hybrid(d->pl, tmp, &h);
  sim_pipe_result r;
  double ps = INFINITY;
  if (pn && (run_stages(d, tmp, pn, &r) || plan_price_whole(d->pl, pn, d->o->k, tmp, &priced, &r)))
    ps = (double)r.makespan_ps * (sim_within(&r, h.memory_bytes) ? 1 : 1e6);
  arena_free(tmp);
  d->left--;
  return ps;
}

// Moves so many microbatches from one replica to another if the step is shorter then.
static bool move(dealing *d, u32 from, u32 to, u32 by) {
  if (from == to || d->micro[from] <= by || !d->left) return false;
  d->micro[from] -= by, d->micro[to] += by;
  const double ps = time_of(d, d->micro);
  if (ps < d->best) return d->best = ps, true;
  d->micro[from] += by, d->micro[to] -= by;
  return false;
}

// From what arithmetic says, in ever smaller steps: the time of a step is that of the replica that ends last, which
// has fewer with every one that another gets. Copies of weights and sends of gradients take their part of it.
static void improve(dealing *d, u32 K) {
  const u32 n = d->n;
  assert(n);
  d->best = time_of(d, d->micro);
  for (u32 by = MAX(K / 4, 1); by && d->left; by /= 2)
    for (bool again = true; again;) {
      again = false;
      for (u32 x = 0; x < n * n && !again; x++) again = move(d, x / n, x % n, by);
    }
}

enum { SIMULATIONS_MOST = 32 };
bool policy_replica_shares(planner *pl, arena *a, const hybrid_opts *o, strategy *s) {
  if (!choice_is(CHOICE_dp_shares, s->dp_shares, "auto")) return true;
  const u32 n = strategy_replicas(s), K = s->mb.n, said = diag_count(planner_source(pl)->c);
  const planner_key key = {KEPT_SHARES,
                           *s,
                           {o->memory_bytes},
                           planner_training(o->train, &o->optim, o->keep_gradients),
                           cost_model_serial(o->k)};
  const double *kept = planner_kept_times(pl, &key);
  const i64 batch = policy_batch_extent(pl);
  const bool may = K >= n && batch > 0 && batch % K == 0 &&
                   s->skip.n + strategy_ranks(s) <= cost_model_machine(o->k)->nranks;
  u32 *micro = NEWN(a, u32, n);
  double *now = NEWN(a, double, n);
  s->dp_shares = choice_default(CHOICE_dp_shares);
  const replica *v = may && !kept ? replicas_of(pl, pl, a, o, s) : NULL;
  pace *p = NEWN(a, pace, n);
  bool known = v != NULL;
  for (u32 r = 0; known && r < n; r++) known = pace_of(pl, a, o, &v[r], &p[r]);
  if (known) {
    const i64 *share = auto_shares(a, K, n, NULL, time_of_micro, p);
    for (u32 r = 0; r < n; r++) micro[r] = (u32)share[r];
    dealing d = {
        .pl = pl, .o = o, .s = s, .n = n, .micro = micro, .left = SIMULATIONS_MOST, .a = arena_new()};
    improve(&d, K);
    arena_free(d.a);
    for (u32 r = 0; r < n; r++) now[r] = micro[r];
    planner_keep_times(pl, &key, now, n);
  }
  diag_truncate(planner_source(pl)->c,
                said); // what cannot be measured cannot be planned either: the plan says why
  for (u32 r = 0; kept && r < n; r++) micro[r] = (u32)kept[r];
  if (kept || known) s->dp_shares = shares_of(a, micro, n);
  return true;
}

bool policy_replica_speeds(planner *pl, arena *a, const hybrid_opts *o, double *speed) {
  const u32 said = diag_count(planner_source(pl)->c), n = strategy_replicas(&o->s);
  const machine *m = cost_model_machine(o->k);
  const i64 batch = policy_batch_extent(pl);
  bool known = batch > 0 && batch % o->s.mb.n == 0 && o->s.skip.n + strategy_ranks(&o->s) <= m->nranks;
  for (u32 k = 0; k < m->nkinds; k++) speed[k] = 0;
  for (u32 r = 0, first = 0; r < n && known; r++) {
    const strategy own = of_replica(o, &o->s, r, first);
    const u32 ranks = (u32)strategy_ranks(&own);
    balance b = auto_open(pl, a, o, &own);
    for (u32 k = 0; k < ranks && known; k++) {
      const u32 kind = m->dev[own.skip.n + k].kind;
      const linear *of = speed[kind] > 0 ? NULL : auto_times(&b, kind);
      const i64 each = MAX(b.micro / own.dp.n, 1);
      known = of || speed[kind] > 0;
      if (of) speed[kind] = (double)each / auto_at(of[b.nbody], each) / own.tp.n;
    }
    first += ranks;
  }
  diag_truncate(planner_source(pl)->c, said);
  return known;
}

static bool set_micro(ctx *c, const hybrid_opts *o, const strategy *s, replica *v) {
  const u32 n = strategy_replicas(s), K = s->mb.n;
  u64 sum = 0;
  assert(n > 1); // strategies have none of fewer
  for (u32 r = 0; r < n; r++) sum += s->dp_shares.nparts ? s->dp_shares.part[r] : 1;
  const loc at = said_at(o, s->dp_shares.nparts ? CHOICE_dp_shares : CHOICE_replicas);
  for (u32 r = 0; r < n; r++)
    v[r].micro = (u32)(K * (u64)(s->dp_shares.nparts ? s->dp_shares.part[r] : 1) / sum);
  if (K % sum == 0) return true;
  diag(c, E_DIVIDE, at, "mb=%u microbatches cannot be dealt out to %u replicas in %s", K, n,
       s->dp_shares.nparts ? arena_printf(ctx_arena(c), "parts of %llu", (unsigned long long)sum)
                           : "equal parts");
  diag_hint(c, K < n ? "mb=%llu" : "mb=%llu, or dp.shares=auto",
            (unsigned long long)(K < sum ? sum : K / sum * sum));
  return false;
}

// Every data rank has samples of every microbatch.
static bool micro_divide(planner *pl, const hybrid_opts *o) {
  ctx *c = planner_source(pl)->c;
  const strategy *s = &o->s;
  const u32 n = strategy_replicas(s), K = s->mb.n;
  const i64 batch = policy_batch_extent(pl);
  i64 all = 1; // what the samples of a microbatch must be a multiple of
  u32 bad = n, fits = K;
  for (u32 r = 0; r < n; r++) {
    const u32 dp = strategy_replica(s, r).dp;
    all = all / gcd_i64(all, dp) * dp;
    if (bad == n && batch % K == 0 && batch / K % dp) bad = r;
  }
  if (bad == n) return true;
  while (fits && (batch % (fits * all) || fits < n || (!s->dp_shares.nparts && fits % n))) fits--;
  diag(c, E_DIVIDE, said_at(o, CHOICE_replicas),
       "mb=%u: a microbatch of %lld samples is not divisible by the %u data ranks of replica %u", K,
       (long long)(batch / K), strategy_replica(s, bad).dp, bad + 1);
  if (fits)
    diag_hint(c, "mb=%u", fits);
  else
    diag_hint(c, "choose a batch that is a multiple of %lld", (long long)(K * all));
  return false;
}

// ---- the plan -------------------------------------------------------------------------------------------------
static bool alike(const replica *x, const replica *y) {
  return !memcmp(&x->grid, &y->grid, sizeof x->grid) && !memcmp(x->end, y->end, x->nstages * sizeof *x->end);
}

// One mesh for replicas that are alike, of axes rp0, pp0, dp0, tp0.
enum { AXES_A_MESH = AXIS_REPLICA, MAKE_UPS_MOST = (AXES_MAX - 2) / AXES_A_MESH };
_Static_assert((int)MAKE_UPS_MOST <= (int)PLAN_STORED, "an axis of each in storage");
static bool make_meshes(const hybrid_opts *o, ctx *c, arena *a, plan *pn, replica *v, u32 n) {
  u32 *members = ZNEWN(a, u32, n);
  for (u32 r = 0; r < n; r++) {
    u32 k = 0;
    while (k < r && !alike(&v[k], &v[r])) k++;
    v[r].mesh = k < r ? v[k].mesh : pn->nmeshes++;
    v[r].at = members[v[r].mesh]++;
  }
  if (pn->nmeshes > MAKE_UPS_MOST) {
    diag(c, E_LIMIT, said_at(o, CHOICE_replicas), "replicas are of %u make-ups; at most %d are possible",
         pn->nmeshes, MAKE_UPS_MOST);
    return false;
  }
  pn->meshes = ZNEWN(a, plan_mesh, pn->nmeshes);
  for (u32 r = 0; r < n; r++) {
    const replica *x = &v[r];
    const u32 k = x->mesh, block = x->grid.dp * x->grid.tp, each = x->grid.pp * block;
    plan_mesh *m = &pn->meshes[k];
    static const char *const names[] = {"rp%u", "pp%u", "dp%u", "tp%u"};
    const u32 sizes[] = {members[k], x->grid.pp, x->grid.dp, x->grid.tp};
    if (!m->naxes) m->name = sym_of(c, arena_printf(a, "m%u", k)), m->ranks = NEWN(a, u32, members[k] * each);
    for (u32 i = m->naxes; i < COUNT_OF(sizes); i++)
      m->axis[m->naxes++] = plan_add_axis(c, pn, arena_printf(a, names[i], k), sizes[i], false);
    u32 *rank = (u32 *)(uintptr_t)m->ranks;
    for (u32 i = 0; i < each; i++)
      rank[m->nranks++] = x->s.skip.n + strategy_block(&x->s, i / block) * block + i % block;
  }
  return true;
}

// Data ranks have parts of a microbatch. Statistics that are over all of it are over the major part of the batch then.
static bool split_all(planner *pl, arena *a, plan *pn, const strategy *s) {
  const bool sync = pn->batchnorm_groups && pn->time && choice_is(CHOICE_bn, s->bn, "sync");
  if (pn->time && !policy_batch(pl, a, pn, pn->time)) return false;
  for (u32 k = 0; k < pn->nmeshes; k++) {
    const u8 data = mesh_axis(&pn->meshes[k], AXIS_DATA);
    if (pn->axes[data - 1].size > 1 && !policy_batch_part(pl, a, pn, data, sync)) return false;
  }
  for (u32 k = 0; k < pn->nmeshes; k++)
    if (!policy_split_tensors(pl, a, pn, mesh_axis(&pn->meshes[k], AXIS_TENSOR), s)) return false;
  return policy_recompute(pl, a, pn, s->recompute);
}

static void store(plan *pn, storage_kind what, u8 axis) {
  if (pn->axes[axis - 1].size > 1) pn->storage[what][pn->nstorage[what]++] = axis;
}

// ZeRO: gradients, and copies of weights, over the data ranks of every replica. States lie with the weights, on the mesh
// of the first replica: over its data ranks, and over the replicas that are like it.
static void store_all(plan *pn, u32 level) {
  for (u32 k = 0; k < pn->nmeshes; k++) {
    const u8 data = mesh_axis(&pn->meshes[k], AXIS_DATA);
    if (level > 0 && !k)
      store(pn, STORAGE_STATE, data), store(pn, STORAGE_STATE, mesh_axis(&pn->meshes[k], AXIS_REPLICA));
    if (level > 1) store(pn, STORAGE_GRAD, data);
    if (level > 2) store(pn, STORAGE_WEIGHT, data);
  }
}

// A segment ends where a stage of any replica does. stage[r * segments + k]: that segment k is in.
static u32 *make_segments(arena *a, plan *pn, const replica *v, u32 n) {
  u32 most = 0, last = v[0].end[v[0].nstages - 1], at = 0;
  for (u32 r = 0; r < n; r++) most += v[r].nstages;
  pn->segments = ZNEWN(a, plan_segment, most);
  u32 *stage = ZNEWN(a, u32, n * most), *of = NEWN(a, u32, n * most), *now = ZNEWN(a, u32, n);
  while (at < last) {
    u32 end = last;
    for (u32 r = 0; r < n; r++) end = MIN(end, v[r].end[now[r]]);
    for (u32 r = 0; r < n; r++) {
      of[r * most + pn->nsegments] = now[r];
      now[r] += v[r].end[now[r]] == end;
    }
    pn->segments[pn->nsegments++] = (plan_segment){.from = at + 1, .to = end};
    at = end;
  }
  for (u32 r = 0; r < n; r++)
    for (u32 k = 0; k < pn->nsegments; k++) stage[r * pn->nsegments + k] = of[r * most + k];
  return stage;
}

static void place_segments(arena *a, plan *pn, const replica *v, u32 n, const u32 *stage) {
  pn->nreplicas = n, pn->replicas = ZNEWN(a, plan_replica, n);
  for (u32 r = 0; r < n; r++) {
    const plan_mesh *m = &pn->meshes[v[r].mesh];
    plan_submesh *on = NEWN(a, plan_submesh, pn->nsegments);
    for (u32 k = 0; k < pn->nsegments; k++) {
      on[k] = (plan_submesh){.mesh = v[r].mesh, .nfix = 2};
      on[k].fix[0] = (plan_fix){mesh_axis(m, AXIS_REPLICA), v[r].at};
      const u32 q =
          sched_place(sched_row_of(v[r].s.schedule.n), v[r].grid.pp, 0, stage[r * pn->nsegments + k]);
      on[k].fix[1] = (plan_fix){mesh_axis(m, AXIS_PLACE), q};
      if (!r) pn->segments[k].on = on[k];
    }
    pn->replicas[r] = (plan_replica){.micro = v[r].micro, .on = r ? on : NULL};
  }
}

// Tasks of a place of replica r: those of its schedule, each as the tasks of its stage's segments.
static sched_seq tasks_of(arena *a, const plan *pn, const sched_seq *of, u32 r, const u32 *stage) {
  const u32 n = pn->nsegments;
  sched_task *v = NEWN(a, sched_task, of->n * n);
  u32 at = 0;
  for (u32 i = 0; i < of->n; i++)
    for (u32 j = 0; j < n; j++) {
      const u32 k = of->v[i].kind == TASK_F ? j : n - 1 - j;
      if (stage[r * n + k] == of->v[i].stage)
        v[at++] = (sched_task){.stage = (u16)k, .kind = of->v[i].kind, .replica = (u8)r, .mb = of->v[i].mb};
    }
  return (sched_seq){at, v};
}

static bool make_order(ctx *c, arena *a, plan *pn, const replica *v, u32 n, const u32 *stage, loc at) {
  u32 places = 0;
  for (u32 r = 0; r < n; r++) places += v[r].grid.pp;
  pn->seqs = NEWN(a, sched_seq, places);
  for (u32 r = 0; r < n; r++) {
    const strategy *of = &v[r].s;
    const sched_shape form = {.places = v[r].grid.pp,
                              .chunks = of->v.n,
                              .micro = v[r].micro,
                              .group = of->group.n,
                              .backward = pn->train};
    const sched *s = sched_make(c, a, sched_row_of(of->schedule.n)->name, &form, at);
    for (u32 q = 0; s && q < form.places; q++) pn->seqs[pn->nseqs++] = tasks_of(a, pn, &s->seq[q], r, stage);
    if (!s) return false;
  }
  return true;
}

// Statistics of a data rank are over its part of a microbatch, which is as large in every replica, or they are of all
// of it.
static bool batchnorm_is_even(planner *pl, const hybrid_opts *o) {
  ctx *c = planner_source(pl)->c;
  if (!planner_batchnorm(pl)->groups || strategy_data_ranks(&o->s) || choice_is(CHOICE_bn, o->s.bn, "sync"))
    return true;
  diag(c, E_STRATEGY, said_at(o, CHOICE_replicas),
       "replicas: batch norm would take its statistics over larger parts of the batch in replicas of "
       "fewer data ranks");
  diag_hint(c, "bn=sync takes them over whole microbatches; or give all replicas as many data ranks");
  return false;
}

bool policy_make_up(planner *source, arena *a, plan *pn, const hybrid_opts *o) {
  ctx *c = planner_source(source)->c;
  const strategy *s = &o->s;
  const u32 n = strategy_replicas(s);
  if (!batchnorm_is_even(source, o) || !micro_divide(source, o)) return false;
  planner *pl = planner_formed(source, pn);
  replica *v = pl ? replicas_of(source, pl, a, o, s) : NULL;
  if (!v || !set_micro(c, o, s, v)) return false;
  pn->axes = NEWN(a, plan_axis, 4 * n + 1), pn->nmeshes = 0;
  if (!make_meshes(o, c, a, pn, v, n)) return false;
  if (s->mb.n > 1) pn->time = plan_add_axis(c, pn, "mb", s->mb.n, true);
  if (!split_all(pl, a, pn, s)) return false;
  store_all(pn, s->zero.n);
  const u32 *stage = make_segments(a, pn, v, n);
  place_segments(a, pn, v, n, stage);
  policy_sends(c, pn, s);
  pn->rendezvous = choice_is(CHOICE_buffers, s->buffers, "rendezvous");
  return make_order(c, a, pn, v, n, stage, said_at(o, s->v.n > 1 ? CHOICE_v : CHOICE_schedule));
}
