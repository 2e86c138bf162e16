// mixed_auto.c - `auto` shares and layers on machines of several kinds of devices: held against enumeration, against
// machines twice as fast and in another order; what a search tells of kinds against the simulated winner.
// PLANS=n makes more.
#include "mixed.h"

// ---- auto -------------------------------------------------------------------------------------------------
static const plan *plan_of(model *m, const hybrid_opts *h, arena *a) {
  diag_clear(m->c);
  const plan *pn = policy_hybrid(m->pl, a, h);
  return pn;
}

static hybrid_opts auto_of(model *m, arena *a, const char *machine_is, u32 dp, u32 tp, u32 pp, u32 mb) {
  hybrid_opts h = {.train = true, .optim = optim_default(OPTIM_ADAM), .s = strategy_default()};
  h.k = cost_model_new(m->c, a, machine_of(m->c, a, machine_is), &costs);
  h.s.dp.n = dp, h.s.tp.n = tp, h.s.pp.n = pp, h.s.mb.n = mb;
  if (dp > 1) h.s.dp_shares = word_of(CHOICE_dp_shares, "auto");
  if (tp > 1) h.s.tp_shares = word_of(CHOICE_tp_shares, "auto");
  if (pp > 1) h.s.layers = word_of(CHOICE_layers, "auto");
  return h;
}

// Where equal shares are impossible: such that differ by one sample, the larger ones first, and no sample is left.
static bool nearly_equal(const plan *p, i64 micro) {
  const u32 *v = shares_of(p, 1), n = p->axes[1].size;
  i64 sum = 0;
  bool ok = v != NULL;
  for (u32 r = 0; ok && r < n; r++)
    sum += v[r], ok = v[r] == micro / n + (r < micro % n) && (!r || v[r] <= v[r - 1]);
  return ok && sum == micro;
}

// Parts of heads and channels that equal ones do not divide.
static bool nearly_equal_parts(const plan *p, u32 axis) {
  const u32 *v = shares_of(p, axis), n = p->axes[axis].size;
  u32 most = 0, least = ~0u;
  for (u32 r = 0; v && r < n; r++) most = MAX(most, v[r]), least = MIN(least, v[r]);
  return v && least && most == least + 1;
}

TEST(mixed_auto_of_one_kind_is_equal) {
  u32 n = 0, nearly = 0, parts = 0;
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= 12; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 100 + i);
      figures x = random_figures(&rng, 1, true);
      while (ranks_of(&x) < 6) x.devices[0][0]++;
      static const u32 shapes[][4] = {{2, 1, 1, 1}, {3, 1, 1, 1}, {2, 1, 1, 2}, {1, 2, 1, 1},
                                      {1, 3, 1, 2}, {2, 3, 1, 1}, {3, 1, 2, 2}};
      const u32 *d = shapes[pick(&rng, COUNT_OF(shapes))];
      hybrid_opts h = auto_of(&m, a, machine_text(&x, 1, false, a), d[0], d[1], d[2], d[3]), e;
      h.s.layers = choice_default(CHOICE_layers), h.s.zero.n = d[0] > 1 ? pick(&rng, 4) : 0;
      e = h, e.s.dp_shares = choice_default(CHOICE_dp_shares),
      e.s.tp_shares = choice_default(CHOICE_tp_shares);
      const plan *p = plan_of(&m, &h, a), *q = plan_of(&m, &e, a);
      const bool dealt = p && !q && nearly_equal(p, models[i].batch / d[3]),
                 split = p && !q && d[1] > 1 && nearly_equal_parts(p, 2);
      CHECK_MSG(dealt || split || (!p == !q && (!p || plan_hash(m.c, p) == plan_hash(m.c, q))),
                "%s: %s is %s", models[i].name, strategy_str(a, &h.s), p ? sym_str(m.c, p->name) : "nothing");
      n += p != NULL, nearly += dealt, parts += split;
      arena_free(a);
    }
    close_model(&m);
  }
  CHECK_MSG(n >= 60 && nearly && parts, "%u, %u, %u", n, nearly, parts);
}

// What was measured for training says nothing of inference, whatever was asked first.
TEST(mixed_speeds_are_of_what_is_done) {
  for (u32 i = 0; i < 2; i++) {
    arena *a = arena_new();
    u64 rng = 5;
    const figures x = random_figures(&rng, 3, true);
    const char *text = machine_text(&x, 1, false, a);
    double speed[2][2][MOST_KINDS] = {0}; // [asked second][training][kind]
    for (u32 first = 0; first < 2; first++) {
      model m = open_model(i);
      hybrid_opts h = auto_of(&m, a, text, ranks_of(&x), 1, 1, 1);
      for (u32 k = 0; k < 2; k++) {
        h.train = k == first;
        CHECK(policy_speeds(m.pl, a, &h, speed[k][h.train]));
      }
      close_model(&m);
    }
    for (u32 train = 0; train < 2; train++)
      for (u32 k = 0; k < x.kinds; k++) CHECK_CLOSE(speed[0][train][k], speed[1][train][k], 1e-12);
    arena_free(a);
  }
}

// A device that is not used may be one that cannot do it.
TEST(mixed_speeds_are_of_devices_that_are_used) {
  static const char text[] =
      "devices:\n"
      "  one: {rate: {f32: 800 GFLOP/s}, vector: 400 GFLOP/s, memory: 8 GiB, bandwidth: 160 GB/s}\n"
      "  two: {rate: {f32: 100 GFLOP/s}, vector: 50 GFLOP/s, memory: 8 GiB, bandwidth: 20 GB/s}\n"
      "  none: {rate: {f16: 100 GFLOP/s}, vector: 50 GFLOP/s, memory: 8 GiB, bandwidth: 20 GB/s}\n"
      "nodes:\n  - {count: 1, devices: 1 one + 1 two + 1 none, link: {kind: switch, bandwidth: 200 GB/s}}\n";
  model m = open_model(0);
  for (u32 dp = 2; dp <= 3; dp++) {
    const hybrid_opts h = auto_of(&m, m.a, text, dp, 1, 1, 1);
    double speed[3];
    CHECK(policy_speeds(m.pl, m.a, &h, speed) == (dp == 2));
    CHECK(dp == 3 || (speed[0] > speed[1] && speed[1] > 0));
  }
  close_model(&m);
}

// Everything twice as fast, and nothing that takes its time whatever it does: the same numbers.
TEST(mixed_auto_knows_no_unit) {
  u32 n = 0, unequal = 0;
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= 14; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 200 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 3), false);
      while (ranks_of(&x) < 6) x.devices[0][0]++;
      static const u32 shapes[][4] = {{2, 1, 1, 1}, {3, 1, 1, 1}, {4, 1, 1, 1}, {1, 2, 1, 1}, {1, 3, 1, 1},
                                      {2, 3, 1, 1}, {2, 1, 2, 2}, {1, 1, 2, 2}, {3, 1, 2, 1}};
      const u32 *d = shapes[pick(&rng, COUNT_OF(shapes))];
      for (u32 k = 0; k < x.kinds; k++) x.gflops[k] *= 10; // of a ms, so that whole ps do not count
      hybrid_opts h = auto_of(&m, a, machine_text(&x, 1, false, a), d[0], d[1], d[2], d[3]);
      const plan *p = plan_of(&m, &h, a);
      h.k = cost_model_new(m.c, a, machine_of(m.c, a, machine_text(&x, 2, false, a)), &costs);
      const plan *q = plan_of(&m, &h, a);
      CHECK_MSG(!p == !q && (!p || p->name.i == q->name.i), "%s: %s, twice as fast %s", models[i].name,
                p ? sym_str(m.c, p->name) : "", q ? sym_str(m.c, q->name) : "");
      n += p != NULL, unequal += p && (shares_of(p, 1) || shares_of(p, 2));
      arena_free(a);
    }
    close_model(&m);
  }
  printf("  %u plans on machines twice as fast, %u with unequal shares\n", n, unequal);
  CHECK(n >= 40 && unequal >= 20);
}

static int by_size(const void *x, const void *y) {
  const u32 a = *(const u32 *)x, b = *(const u32 *)y;
  return a < b ? -1 : a > b;
}

// Nodes in the other order: every kind of device has the same shares.
TEST(mixed_order_of_nodes_is_no_matter) {
  u32 n = 0;
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= 10; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 300 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 2), true);
      const u32 ranks = ranks_of(&x);
      if (ranks > models[i].batch) {
        arena_free(a);
        continue;
      }
      const plan *p[2];
      u32 share[2][MOST_KINDS][12], have[2][MOST_KINDS] = {0};
      for (u32 back = 0; back < 2; back++) {
        hybrid_opts h = auto_of(&m, a, machine_text(&x, 1, back, a), ranks, 1, 1, 1);
        const machine *mach = cost_model_machine(h.k);
        p[back] = plan_of(&m, &h, a);
        for (u32 r = 0; p[back] && r < ranks; r++) {
          const u32 *v = shares_of(p[back], 1),
                    k = (u32)(sym_str(m.c, machine_kind_of(mach, r)->name)[1] - '0');
          share[back][k][have[back][k]++] = v ? v[r] : 1;
        }
      }
      CHECK(!p[0] == !p[1]);
      if (p[0] && p[1])
        for (u32 k = 0; k < x.kinds; k++) {
          for (u32 back = 0; back < 2; back++) qsort(share[back][k], have[back][k], sizeof(u32), by_size);
          CHECK_MSG(have[0][k] == have[1][k] && !memcmp(share[0][k], share[1][k], have[0][k] * sizeof(u32)),
                    "%s, seed %llu: %s, backwards %s", models[i].name, (unsigned long long)seed,
                    sym_str(m.c, p[0]->name), sym_str(m.c, p[1]->name));
          n++;
        }
      arena_free(a);
    }
    close_model(&m);
  }
  CHECK_MSG(n >= 60, "%u", n);
}

// ---- auto against enumeration -----------------------------------------------------------------------------
typedef struct {
  double fixed, each;
} line;

// As balance.c says it, by other means: the busy time of one device of the kind at two sizes of the
// microbatch.
static double busy_of(model *m, const hybrid_opts *h, u32 kind, i64 batch, i64 samples, double *by,
                      arena *a) {
  const machine *mach = cost_model_machine(h->k);
  hybrid_opts one = *h;
  one.s = strategy_default(), one.s.mb.n = (u32)(batch / samples), one.s.recompute = h->s.recompute;
  plan *pn = policy_hybrid(m->pl, a, &one);
  const u32 n = func_get(m->src, m->src->main)->body.n;
  sim_busy *busy = ZNEWN(a, sim_busy, n + 1);
  u32 *rank = ZNEWN(a, u32, 1);
  while (mach->dev[*rank].kind != kind) ++*rank;
  REQUIRE(pn);
  pn->meshes[0].ranks = rank, pn->meshes[0].nranks = 1;
  REQUIRE(plan_busy(m->pl, pn, h->k, busy));
  double sum = 0;
  for (u32 i = 0; i < n; i++)
    sum += by[i] = busy[i].compute[0] + busy[i].compute[1] + busy[i].comm[0] + busy[i].comm[1];
  return sum;
}

static i64 divisor_to(i64 n, i64 most) {
  i64 d = MAX(MIN(n, most), 1);
  while (n % d) d--;
  return d;
}

// by: of every instruction of main; or NULL.
static line line_of(model *m, const hybrid_opts *h, u32 kind, line *by, arena *a) {
  const i64 batch = models[m->index].batch, micro = batch / h->s.mb.n,
            even = divisor_to(batch, micro / h->s.dp.n), less = divisor_to(batch, even / 2);
  const u32 n = func_get(m->src, m->src->main)->body.n;
  double *x = NEWN(a, double, n), *y = NEWN(a, double, n);
  line l = {0};
  busy_of(m, h, kind, batch, even, x, a), busy_of(m, h, kind, batch, less, y, a);
  for (u32 i = 0; i < n; i++) {
    double each = less < even ? (x[i] - y[i]) / (double)(even - less) : x[i] / (double)even;
    each = MIN(MAX(each, 0), x[i] / (double)even);
    l.each += each, l.fixed += x[i] - each * (double)even;
    if (by) by[i] = (line){x[i] - each * (double)even, each};
  }
  return l;
}

typedef struct {
  model *m;
  hybrid_opts h;
  const line *of; // [kind]
  u32 micro, n;
  u32 share[12];
  double least; // the least maximum of linear times
  i64 best;     // the least simulated time
} listing;

// The slowest rank, which is as slow as its slowest place.
static double slowest_of(const listing *x, const u32 *share, u32 parts) {
  const machine *mach = cost_model_machine(x->h.k);
  const strategy *s = &x->h.s;
  double most = 0;
  for (u32 r = 0; r < s->pp.n * x->n; r++) {
    const line *l = &x->of[mach->dev[r].kind];
    most = MAX(most, l->fixed + l->each * x->micro / parts * (share ? share[r % x->n] : 1));
  }
  return most;
}

static i64 time_of(listing *x, choice_value v) {
  hybrid_opts h = x->h;
  h.s.dp_shares = v;
  arena *a = arena_new();
  const plan *pn = policy_hybrid(x->m->pl, a, &h);
  prog *p = pn ? plan_apply(x->m->pl, pn, h.k) : NULL;
  sim_result r = {0};
  const bool ok = p && sim_run(x->m->c, a, p, h.k, &(sim_opts){.mode = SIM_FOLDED, .peak_only = true}, &r);
  CHECK_MSG(ok, "%s %s: %s", models[x->m->index].name, strategy_str(a, &h.s), diag_render(x->m->c, a));
  diag_clear(x->m->c);
  prog_free(p);
  arena_free(a);
  return r.makespan_ps;
}

static void enumerate(listing *x, u32 at, u32 left) {
  if (at + 1 == x->n) {
    x->share[at] = left;
    x->least = MIN(x->least, slowest_of(x, x->share, x->micro));
    const i64 t = time_of(x, (choice_value){.nparts = x->n, .part = x->share});
    x->best = MIN(x->best, t);
    return;
  }
  for (u32 k = 1; k + (x->n - 1 - at) <= left; k++) x->share[at] = k, enumerate(x, at + 1, left - k);
}

// How far `auto` was from the best of all that were simulated.
typedef struct {
  u32 n, beaten;
  double mean, worst;
  char where[160];
} excess;

static void note(excess *e, const model *m, const plan *pn, i64 t, i64 best) {
  const double more = (double)t / (double)best - 1;
  e->n++, e->beaten += more > 0, e->mean += more;
  if (more <= e->worst) return;
  e->worst = more;
  snprintf(e->where, sizeof e->where, " (%s, %s)", models[m->index].name, sym_str(m->c, pn->name));
}

static void tell(const excess *e, const char *what) {
  printf("  %s: in %u of %u something else is faster, on average by %.2f %%, at most by %.2f %%%s\n", what,
         e->beaten, e->n, 100 * e->mean / MAX(e->n, 1), 100 * e->worst, e->where);
}

TEST(mixed_auto_against_enumeration) {
  static const u32 shapes[][3] = {{2, 1, 1}, {2, 1, 2}, {3, 1, 1}, {3, 1, 2},
                                  {2, 2, 1}, {2, 2, 2}, {3, 2, 1}, {4, 1, 2}};
  excess by[2] = {0}; // without and with a pipeline
  for (u32 i = 0; i < 6; i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= wanted(120) / 6; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 400 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 3), true);
      while (ranks_of(&x) < 6) x.devices[0][0]++;
      const u32 *d = shapes[pick(&rng, COUNT_OF(shapes))];
      listing l = {.m = &m, .n = d[0], .best = INT64_MAX, .least = HUGE_VAL};
      l.h = auto_of(&m, a, machine_text(&x, 1, false, a), d[0], 1, d[1], d[2] * (i ? 1 : 2));
      l.h.s.layers = choice_default(CHOICE_layers);
      line *of = NEWN(a, line, x.kinds);
      for (u32 k = 0; k < x.kinds; k++) of[k] = line_of(&m, &l.h, k, NULL, a);
      l.of = of, l.micro = (u32)models[i].batch / l.h.s.mb.n;
      const plan *pn = plan_of(&m, &l.h, a);
      if (!pn) { // of the first ranks, which are of one kind, and do not divide
        arena_free(a);
        continue;
      }
      const double chosen = slowest_of(&l, shares_of(pn, 1), plan_parts(&pn->axes[1]));
      const i64 t = time_of(&l, l.h.s.dp_shares);
      enumerate(&l, 0, l.micro);
      CHECK_MSG(chosen <= l.least * (1 + 1e-9),
                "%s, seed %llu: %s has a slowest rank of %.0f ps, %.0f is possible", models[i].name,
                (unsigned long long)seed, sym_str(m.c, pn->name), chosen, l.least);
      note(&by[d[1] > 1], &m, pn, t, l.best);
      arena_free(a);
    }
    close_model(&m);
  }
  CHECK(getenv("PLANS") || !test_all_cases() || (by[0].n >= 20 && by[1].n >= 8));
  tell(&by[0], "dp.shares=auto without a pipeline"), tell(&by[1], "dp.shares=auto in a pipeline");
}

// Layers of stages: calls of main. The first stage may have none where a weight is read before them, as an embedding, and
// the last where one is read behind them, as a head.
typedef struct {
  model *m;
  hybrid_opts h;
  u32 share[8];
  i64 best, with; // with: where every stage has a layer
  bool before, after;
} dealing;

static void find_ends(dealing *x) {
  const func_info *f = func_get(x->m->src, x->m->src->main);
  u32 calls = 0;
  for (u32 i = 0; i < f->body.n; i++) {
    calls += f->body.v[i].op == OP_call;
    for (u32 k = 0; k < instr_nopd(f, &f->body.v[i]); k++) {
      const value v = opd_of(f, &f->body.v[i], k);
      const bool weight = v <= f->nparams && f->params.v[v - 1].r == ROLE_WEIGHT;
      x->before |= weight && !calls;
      x->after |= weight && calls == x->m->calls && f->body.v[i].op != OP_call;
    }
  }
}

static i64 time_of_layers(dealing *x, choice_value v) {
  listing l = {.m = x->m, .h = x->h};
  l.h.s.layers = v;
  return time_of(&l, choice_default(CHOICE_dp_shares));
}

static void deal_all(dealing *x, u32 at, u32 left) {
  const u32 n = x->h.s.pp.n;
  if (at + 1 == n) {
    x->share[at] = left;
    const i64 t = time_of_layers(x, (choice_value){.nparts = n, .part = x->share});
    x->best = MIN(x->best, t);
    if (x->share[0] && left) x->with = MIN(x->with, t);
    return;
  }
  for (u32 k = at || !x->before; k + (n - 1 - at) - x->after <= left; k++)
    x->share[at] = k, deal_all(x, at + 1, left - k);
}

// Every cut is simulated. What the policy weighs is held against enumeration in balance.c.
TEST(mixed_layers_against_enumeration) {
  excess by = {0};
  u32 without = 0, faster = 0; // plans with a stage without layers; enumerations in which one is faster
  for (u32 i = 0; i < 6; i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= wanted(240) / 6; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 600 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 3), true);
      while (ranks_of(&x) < 3) x.devices[0][0]++;
      dealing l = {.m = &m, .best = INT64_MAX, .with = INT64_MAX};
      l.h = auto_of(&m, a, machine_text(&x, 1, false, a), 1, 1, 2 + pick(&rng, MIN(m.calls, 3) - 1),
                    1u << pick(&rng, 3));
      const plan *pn = plan_of(&m, &l.h, a);
      strategy_set set;
      strategy s;
      REQUIRE(pn && strategy_parse(m.c, a, sym_str(m.c, pn->name), &set) && strategy_one(m.c, &set, &s));
      REQUIRE(s.layers.nparts == l.h.s.pp.n);
      const i64 t = time_of_layers(&l, l.h.s.layers);
      find_ends(&l);
      deal_all(&l, 0, m.calls);
      note(&by, &m, pn, t, l.best);
      without += !s.layers.part[0] || !s.layers.part[l.h.s.pp.n - 1], faster += l.best < l.with;
      arena_free(a);
    }
    close_model(&m);
  }
  tell(&by, "layers=auto");
  printf("  a stage without layers is faster in %u, layers=auto has one in %u\n", faster, without);
  CHECK(getenv("PLANS") || !test_all_cases() ||
        (without >= 20 && by.mean <= 0.008 * by.n && by.worst <= 0.15));
}

// Shares and cuts together: whole steps beside those with equal shares and the best cuts for these.
TEST(mixed_shares_and_cuts_against_equal_shares) {
  u32 n = 0, worse = 0, better = 0;
  double sum = 0, worst = 0;
  for (u32 i = 0; i < 6; i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= wanted(120) / 6; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 800 + i);
      figures x = random_figures(&rng, 2 + pick(&rng, 3), true);
      while (ranks_of(&x) < 6) x.devices[0][0]++;
      listing l = {.m = &m};
      l.h = auto_of(&m, a, machine_text(&x, 1, false, a), 2 + pick(&rng, 2), 1, 2, 1u << pick(&rng, 2));
      if (plan_of(&m, &l.h, a)) {
        const i64 both = time_of(&l, l.h.s.dp_shares), equal = time_of(&l, choice_default(CHOICE_dp_shares));
        const double more = (double)both / (double)equal - 1;
        n++, worse += more > 0, better += more < 0, sum += more, worst = MAX(worst, more);
      }
      arena_free(a);
    }
    close_model(&m);
  }
  printf("  shares with cuts: %.2f %% of the time of equal ones less, on average of %u; less in %u, more in "
         "%u, at most "
         "%.2f %%\n",
         -100 * sum / MAX(n, 1), n, better, worse, 100 * worst);
  CHECK(getenv("PLANS") || !test_all_cases() || (n >= 60 && better >= 2 && worse <= n / 20 && worst <= 0.1));
}

// A V: the first and the last stage are on the first place, which is eight times as fast.
TEST(mixed_layers_know_the_places_of_a_file) {
  static const char text[] =
      "devices:\n"
      "  fast: {rate: {f32: 800 GFLOP/s}, vector: 400 GFLOP/s, memory: 8 GiB, bandwidth: 160 GB/s}\n"
      "  slow: {rate: {f32: 100 GFLOP/s}, vector: 50 GFLOP/s, memory: 8 GiB, bandwidth: 20 GB/s}\n"
      "nodes:\n  - {count: 1, devices: 1 fast + 3 slow, link: {kind: switch, bandwidth: 200 GB/s}}\n";
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  prog *src = front_load(c, "mlp-xs:layers=44,hidden=512", &(front_opts){.batch = 2048, .loss = true});
  REQUIRE(src);
  planner *pl = planner_new(src);
  hybrid_opts h = {.train = true, .optim = optim_default(OPTIM_SGD)};
  strategy_set set;
  h.k = cost_model_new(c, a, machine_of(c, a, text), &costs);
  REQUIRE(strategy_parse(c, a, "pp=4 v=2 mb=8 schedule=examples/zbv.csv layers=auto", &set) &&
          strategy_one(c, &set, &h.s));
  const plan *pn = policy_hybrid(pl, a, &h);
  CHECK_MSG(pn && strstr(sym_str(c, pn->name), " layers=16/2x6/16"), "%s",
            pn ? sym_str(c, pn->name) : diag_render(c, a));
  planner_free(pl);
  prog_free(src);
  ctx_free(c);
}

// All shares of tensor splits of small sums that the model can be split by.
TEST(mixed_tensor_shares_against_enumeration) {
  excess by = {0};
  for (u32 i = 0; i < 6; i++) {
    model m = open_model(i);
    for (u64 seed = 1; seed <= wanted(36) / 6; seed++) {
      arena *a = arena_new();
      u64 rng = hash_u64(seed, 700 + i);
      figures x = random_figures(&rng, 2, true);
      const u32 n = 2;
      hybrid_opts h = auto_of(&m, a, machine_text(&x, 1, false, a), 1, n, 1, 1);
      listing l = {.m = &m, .h = h, .n = n};
      const plan *pn = plan_of(&m, &h, a);
      if (!pn) { // of the first ranks, which are of one kind, and do not divide
        const machine *mach = cost_model_machine(h.k);
        CHECK_MSG(mach->dev[0].kind == mach->dev[1].kind, "%s, seed %llu: %s", models[i].name,
                  (unsigned long long)seed, diag_render(m.c, a));
        arena_free(a);
        continue;
      }
      const i64 t = time_of(&l, choice_default(CHOICE_dp_shares));
      i64 best = INT64_MAX;
      for (u32 sum = n; sum <= 12; sum++)
        for (u32 k = 1; k < sum; k++) {
          const u32 share[] = {k, sum - k};
          hybrid_opts other = h;
          other.s.tp_shares = (choice_value){.nparts = n, .part = share};
          if (gcd_i64(k, sum) > 1 || !plan_of(&m, &other, a)) continue;
          l.h = other;
          best = MIN(best, time_of(&l, choice_default(CHOICE_dp_shares)));
        }
      note(&by, &m, pn, t, best);
      arena_free(a);
    }
    close_model(&m);
  }
  CHECK(getenv("PLANS") || !test_all_cases() || by.n >= 20);
  tell(&by, "tp.shares=auto of two");
}

// ---- what a search tells of kinds -------------------------------------------------------------------------
TEST(mixed_kinds_add_up) {
  u32 told = 0, small = 0, faster = 0;
  double nearest = HUGE_VAL;
  for (u64 seed = 1; seed <= wanted(16); seed++) {
    u64 rng = hash_u64(seed, 500);
    model m = open_model((u32)(seed % 2));
    arena *a = arena_new();
    figures x = random_figures(&rng, 2 + pick(&rng, 3), !chance(&rng, 3));
    u32 want = 2 + pick(&rng, 4);
    machine *mach = machine_of(m.c, a, machine_text(&x, 1, false, a));
    want = MIN(want, mach->nranks);
    for (u32 k = 0; k < mach->nkinds; k++) mach->kind[k].usable_bytes = (i64)(100 + pick(&rng, 300)) << 10;
    search_opts o = {.train = true,
                     .batch = models[m.index].batch,
                     .optim = optim_default(OPTIM_ADAM),
                     .top = 3,
                     .ranks = want,
                     .threads = 1};
    REQUIRE(strategy_parse(m.c, a, chance(&rng, 2) ? "" : "dp.shares=* layers=* tp.shares=*", &o.space));
    search_result r;
    if (!search_run(m.c, a, m.src, mach, &costs, &o, &r) || !r.nkinds) {
      diag_clear(m.c), arena_free(a), close_model(&m);
      continue;
    }
    double work = 0;
    u32 ranks = 0;
    for (u32 k = 0; k < r.nkinds; k++) {
      const plan_kind *q = &r.kinds[k];
      work += q->work, ranks += q->ranks;
      CHECK(q->peak_bytes <= q->usable_bytes && q->computes >= 0 && q->communicates >= 0);
      CHECK_MSG(q->computes + q->communicates <= 1 + 1e-9, "seed %llu: %s computes %g, communicates %g",
                (unsigned long long)seed, q->name, q->computes, q->communicates);
    }
    CHECK_CLOSE(work, 1, 1e-9);
    CHECK(ranks == want);
    if (r.spread_ps > r.point[0].time_ps)
      faster++, printf("  seed %llu: %s takes %lld ps, without waiting %lld\n", (unsigned long long)seed,
                       search_str(a, &r.point[0]), (long long)r.point[0].time_ps, (long long)r.spread_ps);
    nearest = MIN(nearest, (double)r.point[0].time_ps / (double)r.spread_ps);
    for (u32 w = 0; w < MIN(r.nfit, o.top); w++) { // every rank within its own limit
      const strategy is = search_strategy(&r.point[w]);
      hybrid_opts h = search_hybrid(&o, &is);
      h.k = cost_model_new(m.c, a, mach, &costs);
      const plan *pn = policy_hybrid(m.pl, a, &h);
      prog *p = pn ? plan_apply(m.pl, pn, h.k) : NULL;
      sim_result s;
      REQUIRE(p && sim_run(m.c, a, p, h.k, &(sim_opts){.mode = SIM_FLAT, .steady = true}, &s));
      CHECK(s.period_ps == r.point[w].time_ps && s.makespan_ps == r.point[w].alone_ps &&
            s.peak_bytes == r.point[w].peak_bytes);
      for (u32 q = 0; q < s.nranks; q++)
        CHECK(s.cls[s.class_of_rank[q]].peak_bytes <= machine_kind_of(mach, q)->usable_bytes);
      prog_free(p);
    }
    told++, small += r.count[SEARCH_OVER_MEMORY] > 0;
    arena_free(a);
    close_model(&m);
  }
  printf("  %u searches on mixed machines, in %u plans that were too large; %u faster than without waiting, "
         "the nearest %.2f "
         "of it\n",
         told, small, faster, nearest);
  CHECK(getenv("PLANS") || !test_all_cases() || (told >= 8 && small >= 3));
}
