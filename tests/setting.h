// setting.h - what a search is held against: a random model, machine and step, and every plan of it made, applied and
// simulated alone. Included by tests only.
#ifndef HEDDLE_TEST_SETTING_H
#define HEDDLE_TEST_SETTING_H
#include "plans.h"
#include "profiles.h"
#include "test.h"
#include <stdlib.h>

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }
static bool chance(u64 *rng, u32 n) { return pick(rng, n) == 0; }

// ---- one setting: a model, a machine, what the step is ----------------------------------------------------
typedef struct {
  strategy s;
  bool possible;
  i64 time_ps, alone_ps, peak_bytes;
  i64 memory; // of `auto`: under this limit
} truth;      // of one strategy

typedef struct {
  i64 memory; // limit of the search that is looked at
  u64 rng, seed;
  ctx *c;
  arena *a;
  u32 model;
  prog *src;
  planner *pl;
  machine *m;
  const char *machine_text;
  cost_opts costs;
  cost_model *k;
  bool train;
  i64 batch;
  sim_bytes bytes;
  optim_opts optim;
  VEC(truth) known;
} setting;

static const char *const machines[] = {
    "1x4 v100 hostmem=64GiB hostbw=50GB/s",
    "1x6 v100 hostmem=64GiB hostbw=50GB/s",
    "2x2 v100 nvlink=100GB/s ib=100Gb/s hostmem=64GiB hostbw=50GB/s",
    "1x3 v100 ib=100Gb/s hostmem=64GiB hostbw=50GB/s + 1x1 v100 ib=25Gb/s hostmem=64GiB hostbw=50GB/s",
    "3x2 a40 eth=100Gb/s hostmem=64GiB hostbw=50GB/s",
    "1x2 v100 ib=100Gb/s hostmem=64GiB hostbw=50GB/s + 2x1 t4 eth=25Gb/s hostmem=64GiB hostbw=50GB/s",
    "1x2 a10 eth=10Gb/s hostmem=64GiB hostbw=50GB/s + 1x4 a10 eth=40Gb/s hostmem=64GiB hostbw=50GB/s",
    "2x4 v100 nvlink=20GB/s ib=2x50Gb/s hostmem=64GiB hostbw=50GB/s",
};

// Tiny programs last as long as their launches. Slow devices, where products decide, let bounds bite.
static void slow_down(setting *s) {
  const u32 how = pick(&s->rng, 3);
  for (u32 k = 0; k < s->m->nkinds && how; k++) {
    device_kind *d = &s->m->kind[k];
    const double by = how == 1 ? 1e5 : 1e8;
    for (u32 t = 0; t < DT_COUNT; t++) d->rate[t] /= by;
    if (how == 2) memset(d->eff, 0, sizeof d->eff), d->launch_ps = 0;
  }
  s->machine_text = arena_printf(s->a, "%s, %s", s->machine_text,
                                 how == 2   ? "rates / 1e8, no launches, all efficiencies 1"
                                 : how == 1 ? "rates / 1e5"
                                            : "as it is");
}

static void quiet(void *arg, const cost_event *e, double factor) { (void)arg, (void)e, (void)factor; }

static u32 profiled;

static void open_setting(setting *s, u64 seed) {
  static const i64 batches[] = {0, 0, 1, 4, 6, 8, 12};
  static const optimizer optims[] = {OPTIM_SGD, OPTIM_MOMENTUM, OPTIM_ADAM, OPTIM_ADAFACTOR};
  *s = (setting){.rng = hash_u64(seed, 77), .seed = seed, .c = ctx_new(), .a = arena_new()};
  s->model = (u32)(seed % plans_count());
  s->batch = batches[pick(&s->rng, COUNT_OF(batches))];
  s->src = plans_load(s->c, s->model, s->batch);
  REQUIRE(s->src && pass_loss(s->src));
  const func_info *f = func_get(s->src, s->src->main);
  s->batch = val_type(s->src, f, 1)->s.dim[0];
  s->train = !chance(&s->rng, 4);
  s->optim = optim_default(optims[pick(&s->rng, COUNT_OF(optims))]);
  s->machine_text = machines[pick(&s->rng, COUNT_OF(machines))];
  s->m = machine_load(s->c, s->a, s->machine_text);
  REQUIRE(s->m);
  slow_down(s);
  s->costs.extrapolated = quiet;
  if (chance(&s->rng, 5) && profile_made_up(s->m, s->a, s->src, &s->rng))
    s->machine_text = arena_printf(s->a, "%s, times of layers", s->machine_text), profiled++;
  diag_clear(s->c);
  if (chance(&s->rng, 8)) s->costs.model = "distir", s->bytes = SIM_BYTES_DISTIR;
  s->k = cost_model_new(s->c, s->a, s->m, &s->costs);
  s->pl = planner_new(s->src);
}

static void close_setting(setting *s) {
  planner_free(s->pl);
  prog_free(s->src);
  arena_free(s->a);
  ctx_free(s->c);
}

// ---- one plan, alone ----------------------------------------------------------------------------------
static u64 text_hash(const strbuf *b) { return hash_bytes(b->v, b->n, 0); }

static prog *apply(setting *s, const strategy *x, arena *a, u64 *plan_text) {
  hybrid_opts h = {.s = *x, .train = s->train, .optim = s->optim, .k = s->k, .memory_bytes = s->memory};
  plan *pn = policy_hybrid(s->pl, a, &h);
  if (!pn) return NULL;
  if (plan_text) {
    strbuf b = {.a = a};
    pn->name = sym_of(s->c, "nameless");
    plan_print(planner_source(s->pl), pn, &b);
    *plan_text = text_hash(&b);
  }
  return plan_apply(s->pl, pn, s->k);
}

// DistIR's simulator knows one step only, and of inference each is alone.
static bool is_steady(const setting *s) { return s->train && s->bytes == SIM_BYTES_HEDDLE; }

static void work_out(setting *s, truth *t) {
  arena *a = arena_new();
  sim_opts so = {.mode = SIM_FOLDED, .bytes = s->bytes, .steady = is_steady(s)};
  sim_result r;
  const u32 before = diag_count(s->c);
  prog *d = apply(s, &t->s, a, NULL);
  if (d) {
    t->possible = sim_run(s->c, a, d, s->k, &so, &r);
    if (t->possible) t->time_ps = r.period_ps, t->alone_ps = r.makespan_ps, t->peak_bytes = r.peak_bytes;
    prog_free(d);
  }
  diag_truncate(s->c, before);
  arena_free(a);
}

// Are the programs of two strategies the same, letter by letter? plans: are the plans?
static bool same_program(setting *s, const truth *x, const truth *y, bool *plans) {
  if (x->time_ps != y->time_ps || x->alone_ps != y->alone_ps || x->peak_bytes != y->peak_bytes) return false;
  u64 plan_text[2], text[2];
  for (u32 k = 0; k < 2; k++) {
    arena *a = arena_new();
    strbuf b = {.a = a};
    prog *d = apply(s, k ? &y->s : &x->s, a, &plan_text[k]);
    ir_print(d, &b);
    text[k] = text_hash(&b);
    prog_free(d);
    arena_free(a);
  }
  if (plans) *plans = plan_text[0] == plan_text[1];
  return text[0] == text[1];
}

static const truth *truth_of(setting *s, const strategy *x);
static const truth *find_truth(setting *s, const strategy *x) {
  const bool fits = choice_is(CHOICE_dp_shares, x->dp_shares, "auto") ||
                    choice_is(CHOICE_dp_shares, x->dp_shares, "whale") ||
                    choice_is(CHOICE_layers, x->layers, "auto") ||
                    choice_is(CHOICE_layers, x->layers, "whale") ||
                    x->replicas.nparts; // whose layers are `auto`: they depend on the limit
  bool any = false;
  for (u32 i = 0; i < s->known.n; i++) {
    const truth *t = &s->known.v[i];
    if (strategy_compare(&t->s, x)) continue;
    if (!fits || t->memory == s->memory) return t;
    any = true;
  }
  return any ? truth_of(s, x) : NULL;
}

static const truth *truth_of(setting *s, const strategy *x) {
  for (u32 i = 0; i < s->known.n; i++)
    if (s->known.v[i].memory == s->memory && !strategy_compare(&s->known.v[i].s, x)) return &s->known.v[i];
  truth *t = vec_push(s->a, &s->known);
  *t = (truth){.s = *x, .memory = s->memory};
  if (getenv("PLANS")) fprintf(stderr, "%s\n", strategy_str(s->a, x));
  work_out(s, t);
  return t;
}
#endif
