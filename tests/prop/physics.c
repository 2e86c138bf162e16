// physics.c - what must hold of any plan on any machine, whatever its costs are: equal devices are equal,
// time has a unit, nothing ends before its work is done, faster hardware is not slower, memory costs no time,
// and more microbatches take longer. SEED=n MODEL=name runs one plan.
#include "plans.h"
#include "sim/sim.h"
#include "test.h"
#include <stdlib.h>

enum { EACH = 60, RANKS_MOST = 64 };

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }
static bool chance(u64 *rng, u32 n) { return pick(rng, n) == 0; }
static void quiet(void *arg, const cost_event *e, double factor) { (void)arg, (void)e, (void)factor; }
static const cost_opts no_warnings = {.extrapolated = quiet};

// Nodes of one kind, within which all devices are alike.
static const char *const even[] = {"16x4 v100 nvlink=100GB/s ib=4x100Gb/s hostbw=200GB/s",
                                   "8x8 a100 nvlink=200GB/s ib=8x200Gb/s hostbw=200GB/s",
                                   "32x2 a100 mesh=60GB/s eth=100Gb/s hostbw=200GB/s"};

typedef struct {
  plans_model m;
  machine *mach;
  const char *spec;
  cost_model *k;
  arena *a;
  u64 rng, seed;
} bench;

static u32 compared[8]; // by property

// ---- running ------------------------------------------------------------------------------------------
static bool simulate(const bench *b, const prog *d, cost_model *k, const sim_opts *o, sim_result *r) {
  return CHECK_MSG(sim_run(b->m.c, b->a, d, k, o, r), "%s", diag_render(b->m.c, b->a));
}

static const char *told(const bench *b, const plan *pn) {
  strbuf s = {.a = b->a};
  sb_fmt(&s, "%s seed %llu on %s: %s", b->m.name, (unsigned long long)b->seed, b->spec,
         sym_str(b->m.c, pn->name));
  if (getenv("SEED")) sb_char(&s, '\n'), plan_print(planner_source(b->m.pl), pn, &s);
  return sb_str(&s);
}

// ---- equal devices are equal ----------------------------------------------------------------------------
static u32 highest(const plan *pn) {
  u32 top = 0;
  for (u32 i = 0; i < pn->nmeshes; i++) {
    const plan_mesh *m = &pn->meshes[i];
    u32 size = 1;
    for (u32 k = 0; k < m->naxes; k++) size *= pn->axes[m->axis[k] - 1].size;
    for (u32 k = 0; k < size; k++) top = MAX(top, m->nranks ? m->ranks[k] : m->first + k);
  }
  return top;
}

static void shuffle(u64 *rng, u32 *v, u32 n) {
  for (u32 i = n; i-- > 1;) {
    u32 k = pick(rng, i + 1), x = v[i];
    v[i] = v[k], v[k] = x;
  }
}

// Devices change places within their nodes, nodes with each other, or both.
static void random_places(bench *b, u32 *to) {
  const u32 per = b->mach->node_kind[0].ndevs, nodes = b->mach->nnodes, how = pick(&b->rng, 3);
  u32 node[RANKS_MOST], dev[RANKS_MOST];
  for (u32 i = 0; i < nodes; i++) node[i] = i;
  if (how) shuffle(&b->rng, node, nodes);
  for (u32 i = 0; i < nodes; i++) {
    for (u32 k = 0; k < per; k++) dev[k] = k;
    if (how != 1) shuffle(&b->rng, dev, per);
    for (u32 k = 0; k < per; k++) to[i * per + k] = node[i] * per + dev[k];
  }
}

static void check_relabelled(bench *b, const plan *pn, const sim_result *r) {
  u32 to[RANKS_MOST];
  sim_result s;
  random_places(b, to);
  const plan *q = plans_relabelled(pn, to, b->a);
  prog *d = plan_apply(b->m.pl, q, b->k);
  if (!CHECK_MSG(d, "%s", told(b, q))) return;
  sim_opts o = {.mode = SIM_FOLDED};
  if (simulate(b, d, b->k, &o, &s)) {
    CHECK_MSG(s.makespan_ps == r->makespan_ps && s.peak_bytes == r->peak_bytes,
              "%s: relabelled it takes %lld ps, %lld bytes for %lld, %lld", told(b, q),
              (long long)s.makespan_ps, (long long)s.peak_bytes, (long long)r->makespan_ps,
              (long long)r->peak_bytes);
    for (u32 k = 0; k < r->nranks; k++) // rank by rank
      for (u32 x = 0; x < r->nstreams && to[k] < s.nranks; x++)
        CHECK_MSG(s.nstreams == r->nstreams && s.end_ps[s.class_of_rank[to[k]] * s.nstreams + x] ==
                                                   r->end_ps[r->class_of_rank[k] * r->nstreams + x],
                  "%s: rank %u, which was %u, ends at another time", told(b, q), to[k], k);
    compared[0]++;
  }
  prog_free(d);
}

// ---- time has a unit ------------------------------------------------------------------------------------
static u32 times_three(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  u32 n = cost_instr(arg, p, f, i, g, ps);
  for (u32 k = 0; k < n; k++) ps[k] *= 3;
  return n;
}

static void check_scaled(bench *b, const plan *pn, const prog *d, const sim_result *r) {
  static const sim_mode modes[] = {SIM_FLAT, SIM_COMPOSED, SIM_FLAT_FOLDED, SIM_FOLDED};
  sim_opts o = {.mode = modes[pick(&b->rng, 4)], .cost = times_three, .cost_arg = b->k};
  sim_result s;
  if (!simulate(b, d, NULL, &o, &s)) return;
  bool ok = s.makespan_ps == 3 * r->makespan_ps && s.peak_bytes == r->peak_bytes;
  for (u32 k = 0; k < r->nranks && ok; k++)
    for (u32 x = 0; x < r->nstreams && ok; x++) {
      const u32 u = r->class_of_rank[k] * r->nstreams + x, v = s.class_of_rank[k] * s.nstreams + x;
      ok = s.end_ps[v] == 3 * r->end_ps[u] && s.busy_ps[v] == 3 * r->busy_ps[u] &&
           s.comm_ps[v] == 3 * r->comm_ps[u];
    }
  CHECK_MSG(ok, "%s: costs times 3 take %lld for %lld", told(b, pn), (long long)s.makespan_ps,
            (long long)r->makespan_ps);
  compared[1]++;
}

// ---- computations are what they cost ----------------------------------------------------------------------
typedef struct {
  const bench *b;
  const prog *p;
  i64 sum[RANKS_MOST][256]; // by rank and stream
  bool ok;
} tally;

// No computation takes less than its arithmetic at the best rate, or its traffic at the best bandwidth.
static void check_event(tally *t, const func_info *f, const instr *i, group g, u32 member, i64 ps) {
  cost_model *k = t->b->k;
  cost_info info;
  cost_event e;
  if (!cost_explain(k, t->p, f, i, g, member, &info, &e)) t->ok = false;
  if (!t->ok || !e.dev) return;
  const double flops = op_row_of(i->op)->flags & OPF_GEMM ? e.flops / cost_top_flops(k, e.dev, e.t) : 0,
               bytes = e.bytes / cost_top_bw(k, e.dev);
  t->ok = info.ps == ps && (double)ps + 1 >= flops * 1e12 && (double)ps + 1 >= bytes * 1e12;
  CHECK_MSG(t->ok, "%s: %s takes %lld ps, its %g FLOP %g s, its %g bytes %g s", t->b->m.name,
            op_row_of(i->op)->name, (long long)ps, e.flops, flops, e.bytes, bytes);
}

static void tally_func(tally *t, func fn, group call) {
  const func_info *f = func_get(t->p, fn);
  i64 ps[RANKS_MOST];
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    const group g = i->g.i ? i->g : call;
    if (i->op == OP_call) tally_func(t, i->callee, g);
    if (i->op == OP_call || op_row_of(i->op)->flags & (OPF_COMM | OPF_VIEW | OPF_META)) continue;
    const group_info *gi = g.i ? group_get(t->p->sp, g) : NULL; // none: rank 0
    const u32 n = cost_instr(t->b->k, t->p, f, i, g, ps);
    t->ok &= n > 0;
    for (u32 r = 0; r < (gi ? gi->nranks : 1) && t->ok; r++)
      t->sum[gi ? gi->ranks[r] : 0][i->strm] += ps[n == 1 ? 0 : r];
    if (t->ok && k % 7 == 0) check_event(t, f, i, g, 0, ps[0]);
  }
}

// What every stream of every rank computes, from the program alone.
static void check_computation(bench *b, const plan *pn, const prog *d, const sim_result *r) {
  static tally t;
  t = (tally){.b = b, .p = d, .ok = true};
  tally_func(&t, d->main, (group){0});
  for (u32 k = 0; k < r->nranks && t.ok; k++)
    for (u32 x = 0; x < r->nstreams; x++) {
      const u32 cell = r->class_of_rank[k] * r->nstreams + x;
      CHECK_MSG(r->busy_ps[cell] - r->comm_ps[cell] == t.sum[k][x],
                "%s: rank %u computes for %lld, should for %lld", told(b, pn), k,
                (long long)(r->busy_ps[cell] - r->comm_ps[cell]), (long long)t.sum[k][x]);
    }
  CHECK_MSG(t.ok, "%s: %s", told(b, pn), diag_render(b->m.c, b->a));
}

// ---- nothing ends before its work is done ---------------------------------------------------------------
static void check_work(bench *b, const plan *pn, const prog *d, const sim_result *r) {
  sim_opts o = {.mode = SIM_FOLDED, .no_bytes = true, .critical = true, .steps = true, .steady = true};
  sim_result s;
  if (!simulate(b, d, b->k, &o, &s)) return;
  for (u32 u = 0; u < r->nclasses; u++)
    for (u32 x = 0; x < r->nstreams; x++) {
      const i64 end = r->end_ps[u * r->nstreams + x], busy = r->busy_ps[u * r->nstreams + x];
      CHECK_MSG(busy <= end && end <= r->makespan_ps && r->comm_ps[u * r->nstreams + x] <= busy,
                "%s: unit %u stream %u is busy for %lld, ends at %lld of %lld", told(b, pn), u, x,
                (long long)busy, (long long)end, (long long)r->makespan_ps);
      CHECK_MSG(s.period_ps >= busy, "%s: a period of %lld with %lld of work", told(b, pn),
                (long long)s.period_ps, (long long)busy);
    }
  i64 path = 0;
  for (u32 k = 0; k < s.ncritical; k++) path += s.critical[k].dur_ps;
  CHECK_MSG(path == s.makespan_ps, "%s: the path lasts %lld of %lld", told(b, pn), (long long)path,
            (long long)s.makespan_ps);
  // Where weights are updated between tasks the first microbatches wait for no update, so a step that begins
  // with them may be shorter than one amid others.
  CHECK_MSG(
      s.makespan_ps == r->makespan_ps && (d->shorter || s.period_ps <= s.makespan_ps) && s.period_ps > 0,
      "%s: period %lld of a step of %lld", told(b, pn), (long long)s.period_ps, (long long)s.makespan_ps);
  compared[2]++;
}

// ---- steps follow each other ------------------------------------------------------------------------------
// Results of main that are a parameter of the next step: of the first ones of one type, weights and states
// only.
static u32 carries(const prog *d, sim_carry *x, u32 most) {
  const func_info *f = func_get(d, d->main);
  bool *taken = ZNEWN(d->a, bool, f->nparams + 1);
  u32 n = 0;
  for (u32 r = 0; r < f->rets.n && n < most; r++)
    for (u32 p = 0; p < f->nparams; p++) {
      const role as = f->params.v[p].r;
      if (taken[p] || (as != ROLE_WEIGHT && as != ROLE_STATE) ||
          f->values.v[p + 1].ty.i != f->values.v[f->rets.v[r]].ty.i)
        continue;
      taken[p] = true;
      x[n++] = (sim_carry){r, p};
      break;
    }
  return n;
}

// main, written out once more for every further step.
static void unroll(prog *d, const sim_carry *x, u32 n, u32 steps) {
  func_info *f = func_get(d, d->main);
  const u32 ninstr = f->body.n, nvalues = f->values.n;
  value *now = NEWN(d->a, value, nvalues), *next = NEWN(d->a, value, nvalues);
  value *rets = arena_dup(d->a, f->rets.v, f->rets.n * sizeof *rets);
  for (u32 v = 0; v < nvalues; v++) now[v] = v;
  for (u32 s = 1; s < steps; s++) {
    for (u32 v = 0; v <= f->nparams; v++) next[v] = v;
    for (u32 k = 0; k < n; k++) next[x[k].param + 1] = now[rets[x[k].result]];
    for (u32 k = 0; k < ninstr; k++) {
      instr i = f->body.v[k];
      const u32 opd = i.opd, res = i.res;
      i.opd = f->opds.n, i.res = f->values.n;
      for (u32 j = 0; j < i.nopd; j++) {
        const u32 o = f->opds.v[opd + j];
        *vec_push(d->a, &f->opds) = (o & ~OPD_VALUE) | next[o & OPD_VALUE];
      }
      for (u32 j = 0; j < i.nres; j++) {
        value_info v = f->values.v[res + j];
        v.def = f->body.n + 1;
        next[res + j] = f->values.n;
        *vec_push(d->a, &f->values) = v;
      }
      *vec_push(d->a, &f->body) = i;
    }
    value *swap = now;
    now = next, next = swap;
  }
  for (u32 k = 0; k < f->rets.n; k++) f->rets.v[k] = now[rets[k]];
}

// What one more step adds to several that are written out.
static void check_period(bench *b, const plan *pn, const prog *d) {
  enum { MOST = 512, SETTLE = 6, MORE = 2 };
  sim_carry x[MOST];
  const u32 n = carries(d, x, MOST);
  sim_opts o = {.mode = SIM_FOLDED, .steady = true, .carry = x, .ncarry = n};
  sim_opts own = {.mode = SIM_FOLDED, .steady = true}, flat = {.mode = SIM_FLAT_FOLDED, .no_bytes = true};
  sim_result r, mine, s[2];
  if (!n || d->shorter || !simulate(b, d, b->k, &own, &r)) return; // shorter: never drains (test_stale.c)
  CHECK_MSG(r.period_ps <= r.makespan_ps, "%s: a period of %lld for a step of %lld", told(b, pn),
            (long long)r.period_ps, (long long)r.makespan_ps);
  if (!r.ncarried || !simulate(b, d, b->k, &o, &mine)) return; // no training
  for (u32 k = 0; k < 2; k++) {
    prog *q = prog_clone(d, b->m.c);
    unroll(q, x, n, SETTLE + MORE * k);
    const bool ok = simulate(b, q, b->k, &flat, &s[k]);
    prog_free(q);
    if (!ok) return;
  }
  const i64 more = s[1].makespan_ps - s[0].makespan_ps;
  CHECK_MSG(llabs(more - MORE * mine.period_ps) <= MORE, "%s: %u steps more take %lld, a period %lld of %lld",
            told(b, pn), MORE, (long long)more, (long long)mine.period_ps, (long long)mine.makespan_ps);
  compared[6]++;
  compared[7] += mine.period_ps < mine.makespan_ps;
}

// ---- faster is not slower ---------------------------------------------------------------------------------
// One thing, or several, by up to 4 times.
static void speed_up(bench *b, machine *m) {
  const u32 what = 1 + pick(&b->rng, 127);
  const double by = 1 + pick(&b->rng, 30) / 10.0;
  const i64 less = 1 + pick(&b->rng, 4);
  for (u32 k = 0; k < m->nkinds; k++) {
    device_kind *d = &m->kind[k];
    for (u32 t = 0; t < DT_COUNT && what & 1; t++) d->rate[t] *= by;
    if (what & 2) d->vector *= by;
    if (what & 4) d->mem_bw *= by;
    if (what & 8) d->launch_ps /= less;
  }
  node_kind *n = (node_kind *)m->node_kind; // this test's own machine
  for (u32 k = 0; k < m->nnode_kinds; k++) {
    if (what & 16) n[k].inside.bw *= by, n[k].host.bw *= by;
    if (what & 32) n[k].inside.start_ps /= less, n[k].inside.step_ps /= less, n[k].host.start_ps /= less;
    if (what & 64) n[k].nic_bw *= by;
  }
  if (what & 32) m->fabric.start_ps /= less, m->fabric.step_ps /= less;
}

static void check_faster(bench *b, const plan *pn, const prog *d, const sim_result *r) {
  machine *m = machine_load(b->m.c, b->a, b->spec);
  speed_up(b, m);
  cost_model *k = cost_model_new(b->m.c, b->a, m, &no_warnings);
  sim_opts o = {.mode = SIM_FOLDED, .peak_only = true};
  sim_result s;
  if (!simulate(b, d, k, &o, &s)) return;
  CHECK_MSG(s.makespan_ps <= r->makespan_ps && s.peak_bytes == r->peak_bytes,
            "%s: on a faster machine %lld ps, %lld bytes for %lld, %lld", told(b, pn),
            (long long)s.makespan_ps, (long long)s.peak_bytes, (long long)r->makespan_ps,
            (long long)r->peak_bytes);
  compared[3]++;
  compared[4] += s.makespan_ps < r->makespan_ps;
}

static void check_memory(bench *b, const plan *pn, const sim_result *r) {
  machine *m = machine_load(b->m.c, b->a, b->spec);
  for (u32 k = 0; k < m->nkinds; k++) m->kind[k].mem_bytes *= 2, m->kind[k].usable_bytes *= 2;
  cost_model *k = cost_model_new(b->m.c, b->a, m, &no_warnings);
  sim_opts o = {.mode = SIM_FOLDED};
  sim_result s;
  prog *d = plan_apply(b->m.pl, pn, k);
  if (CHECK(d) && simulate(b, d, k, &o, &s))
    CHECK_MSG(s.makespan_ps == r->makespan_ps && s.peak_bytes == r->peak_bytes, "%s: memory changes time",
              told(b, pn));
  compared[5]++;
  prog_free(d);
}

// ---- plans --------------------------------------------------------------------------------------------
static void check_plan(bench *b, const plan *pn) {
  sim_opts o = {.mode = SIM_FOLDED};
  sim_result r;
  prog *d = highest(pn) < b->mach->nranks ? plan_apply(b->m.pl, pn, b->k) : NULL;
  if (!d) return;
  if (simulate(b, d, b->k, &o, &r)) {
    check_relabelled(b, pn, &r);
    check_scaled(b, pn, d, &r);
    check_computation(b, pn, d, &r);
    check_work(b, pn, d, &r);
    check_faster(b, pn, d, &r);
    if (chance(&b->rng, 3)) check_memory(b, pn, &r);
    check_period(b, pn, d);
  }
  prog_free(d);
}

typedef plan *maker(plans_model *m, u64 *rng, arena *a);

TEST(physics_of_plans) {
  const char *one = getenv("SEED"), *only = getenv("MODEL"), *many = getenv("PLANS");
  for (u32 i = 0; i < plans_count(); i++) {
    bench b = {.spec = even[i % COUNT_OF(even)]};
    plans_open(&b.m, i);
    arena *kept = arena_new();
    b.mach = machine_load(b.m.c, kept, b.spec);
    REQUIRE(b.mach && b.mach->nranks == RANKS_MOST);
    b.k = cost_model_new(b.m.c, kept, b.mach, &no_warnings);
    u64 from = one ? strtoull(one, NULL, 0) : 1, to = one ? from : many ? strtoull(many, NULL, 0) : EACH;
    for (b.seed = from; b.seed <= to && (!only || !strcmp(only, b.m.name)); b.seed++) {
      b.rng = hash_u64(b.seed, i);
      b.a = arena_new();
      maker *const make = b.seed % 5 == 4 ? plans_stale : b.seed % 3 ? plans_hybrid : plans_random;
      const plan *pn = make(&b.m, &b.rng, b.a);
      diag_clear(b.m.c);
      if (pn) check_plan(&b, pn);
      diag_clear(b.m.c);
      arena_free(b.a);
    }
    arena_free(kept);
    plans_close(&b.m);
  }
  printf("  %u relabelled, %u scaled, %u with their work, %u on faster machines (%u sooner), %u with more "
         "memory, %u step after step (%u sooner)\n",
         compared[0], compared[1], compared[2], compared[3], compared[4], compared[5], compared[6],
         compared[7]);
  if (!one && !only && !many)
    CHECK(compared[0] > 150 && compared[2] > 150 && compared[4] > 100 && compared[5] > 30 &&
          compared[6] > 100 && compared[7] > 10);
}

// ---- more microbatches take longer ------------------------------------------------------------------------
static i64 time_of(ctx *c, u32 model, const machine *m, const strategy *s, i64 mbs, bool train, i64 *peak) {
  i64 ps = -1;
  arena *a = arena_new();
  prog *src = plans_load(c, model, mbs * s->dp.n * s->mb.n);
  if (src && pass_loss(src)) {
    planner *pl = planner_new(src);
    cost_model *k = cost_model_new(c, a, m, &no_warnings);
    hybrid_opts h = {.s = *s, .train = train, .optim = optim_default(OPTIM_ADAM)};
    plan *pn = policy_hybrid(pl, a, &h);
    prog *d = pn ? plan_apply(pl, pn, k) : NULL;
    sim_opts o = {.mode = SIM_FOLDED, .peak_only = true};
    sim_result r;
    if (d && sim_run(c, a, d, k, &o, &r)) ps = r.makespan_ps, *peak = r.peak_bytes;
    prog_free(d);
    planner_free(pl);
  }
  prog_free(src);
  diag_clear(c);
  arena_free(a);
  return ps;
}

TEST(physics_of_microbatches) {
  static const char *const lines[] = {
      "dp=1 tp=1 pp=%u mb=1",
      "dp=2 tp=1 pp=%u mb=1 zero=1",
      "dp=1 tp=2 pp=%u mb=1 schedule=gpipe recompute=full",
      "dp=1 tp=1 pp=%u mb=1 schedule=zb-h1",
      "dp=2 tp=1 pp=%u mb=1 overlap=pp zero=2 recompute=selective",
      "dp=1 tp=1 pp=%u mb=1 schedule=zb-h1 overlap=pp",
      "dp=1 tp=1 pp=%u mb=1 v=2 schedule=bfs",
      "dp=2 tp=2 pp=%u mb=1 zero=3",
  };
  static const u32 models[] = {0, 1, 2, 5, 6}; // those whose batch is free
  u32 pairs = 0;
  ctx *c = ctx_new();
  arena *a = arena_new();
  machine *m = machine_load(c, a, "4x4 v100 nvlink=100GB/s ib=100Gb/s");
  u64 rng = 11;
  for (u32 i = 0; i < COUNT_OF(models) * COUNT_OF(lines); i++) {
    const u32 model = models[i % COUNT_OF(models)];
    strategy s = strategy_of(lines[i / COUNT_OF(models)], 1 + pick(&rng, 3));
    if (s.pp.n == 1)
      s.schedule = choice_default(CHOICE_schedule), s.overlap = choice_default(CHOICE_overlap), s.v.n = 1;
    const i64 mbs = 1 + pick(&rng, 2);
    const bool train = !chance(&rng, 6) || s.zero.n || s.recompute.n;
    i64 before = -1;
    for (s.mb.n = 1; s.mb.n <= 6; s.mb.n++) {
      i64 peak, t = time_of(c, model, m, &s, mbs, train, &peak);
      if (t > 0 && before > 0) {
        pairs++;
        CHECK_MSG(t >= before, "%s %s, %lld samples each: %lld ps, with one microbatch less %lld",
                  plans_name(model), strategy_str(a, &s), (long long)mbs, (long long)t, (long long)before);
      }
      before = t > 0 ? t : before;
    }
  }
  printf("  %u pairs of numbers of microbatches\n", pairs);
  CHECK(pairs > 150);
  arena_free(a);
  ctx_free(c);
}
