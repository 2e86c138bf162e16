// layers.c - deep models, of which a probe has four layers of every stage, against the same programs written
// out: time and peak memory equal to the last bit. The oracle is the event graph, folded, on the program with
// all layers and tasks.
#include "front/front.h"
#include "plan/plan.h"
#include "sim/sim.h"
#include "test.h"
#include <stdlib.h>

static const struct {
  const char *spec;
  i64 batch, seq;
  dtype t;
} models[] = {
    {"gpt2:layers=13,hidden=24,heads=4,vocab=24,positions=10,ffn=36", 24, 8, DT_NONE},
    {"gpt2:layers=9,hidden=16,heads=4,vocab=17,positions=9,ffn=20", 12, 8, DT_F16},
    {"llama2-7b:layers=12,hidden=24,heads=4,kv_heads=2,head_dim=6,ffn=36,vocab=24", 24, 4, DT_F16},
    {"t5-small:layers=9,hidden=12,heads=4,head_dim=3,ffn=24,vocab=24", 12, 4, DT_NONE},
    {"moe-8x125m:layers=10,hidden=12,heads=2,vocab=12,experts=4,ffn=24,positions=10", 8, 8, DT_NONE},
    {"bert-base:layers=11,hidden=12,heads=2,vocab=24,positions=6,ffn=24", 12, 4, DT_NONE},
    {"vit-base:layers=14,hidden=12,heads=4,vocab=12,ffn=24", 8, 32, DT_NONE},
    {"mlp-xs:layers=23,hidden=24", 12, 0, DT_NONE},
    // a gradient that goes through two layers unchanged; weights that get none: all layers are there
    {"tests/twoways.heddle", 0, 0, DT_NONE},
    {"tests/frozen.heddle", 0, 0, DT_NONE},
};
enum { FAMILIES = 8 };

static u32 shorter, known, whole;

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

static strategy random_strategy(u64 *rng, bool train) {
  static const u32 degrees[] = {1, 1, 2, 3, 4};
  strategy s = strategy_default();
  s.dp.n = degrees[pick(rng, 5)], s.tp.n = degrees[pick(rng, 4)], s.pp.n = degrees[pick(rng, 5)];
  s.mb.n = 1 + pick(rng, 4);
  if (s.pp.n > 1) {
    if (!pick(rng, 3)) s.v.n = 2;
    s.schedule.n = pick(rng, 5);
    s.layers.n = pick(rng, 2);
    s.channels.n = pick(rng, 3);
    s.overlap.n = pick(rng, 3) > 0;
    if (!(s.overlap.n & OVERLAP_PP)) s.channels.n = 0;
  }
  if (train && s.dp.n > 1) s.zero.n = pick(rng, 4);
  if (train) s.recompute.n = pick(rng, 3);
  if (s.tp.n > 1) s.sp.n = pick(rng, 2), s.tables.n = pick(rng, 2);
  if (train) s.grads.n = pick(rng, 2);
  if (!pick(rng, 4)) s.coshard.n = 2;
  s.attention.n = !pick(rng, 4);
  return s;
}

static bool equal(ctx *c, arena *a, planner *pl, const plan *pn, cost_model *k) {
  plan_probed about;
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true};
  sim_result r;
  sim_pipe_result p;
  const sim_order *order;
  u32 n;
  prog *probe = plan_probe(pl, pn, k, a, getenv("ALL") != NULL, &about), *d = plan_apply(pl, pn, k);
  CHECK_MSG(!probe == !d, "probe %d, program %d: %s", probe != NULL, d != NULL, diag_render(c, a));
  if (!probe || !d) {
    prog_free(probe), prog_free(d);
    return true;
  }
  const sim_stages *st = sim_stages_of(c, a, probe, k, &so, &about.pipeline);
  bool ok = sim_run(c, a, d, k, &so, &r);
  if (st && ok) {
    known++, shorter += about.pipeline.nspans > 0;
    ok = plan_line(c, a, pn, &about.graph, &n, &order);
    if (ok) sim_pipe(st, a, sim_line_new(a, st, order, n), &p);
    ok = ok && p.makespan_ps == r.makespan_ps && p.peak_bytes == r.peak_bytes;
    if (!ok)
      printf("  %s: time %lld for %lld, bytes %lld for %lld\n", sym_str(c, pn->name),
             (long long)p.makespan_ps, (long long)r.makespan_ps, (long long)p.peak_bytes,
             (long long)r.peak_bytes);
    if (p.utilisation != r.utilisation || p.comm != r.comm || p.bubble != r.bubble)
      ok = false, printf("  shares %g %g %g for %g %g %g\n", p.utilisation, p.comm, p.bubble, r.utilisation,
                         r.comm, r.bubble);
  } else
    whole++;
  prog_free(probe), prog_free(d);
  return ok;
}

static void check_model(u32 index, u32 plans) {
  static const u8 kinds[] = {OPTIM_SGD, OPTIM_MOMENTUM, OPTIM_ADAM, OPTIM_ADAFACTOR};
  ctx *c = ctx_new();
  arena *ma = arena_new();
  front_opts o = {.batch = models[index].batch, .seq = models[index].seq, .loss = true, .t = models[index].t};
  prog *src = front_load(c, models[index].spec, &o);
  REQUIRE(src && pass_loss(src));
  planner *pl = planner_new(src);
  cost_model *k = cost_model_new(c, ma, machine_load(c, ma, "16x4 v100 nvlink=100GB/s ib=2x100Gb/s"), NULL);
  const char *one = getenv("SEED");
  for (u32 seed = one ? (u32)atoi(one) : 1; seed <= (one ? (u32)atoi(one) : plans); seed++) {
    u64 rng = seed * 7919 + index;
    arena *a = arena_new();
    const bool train = pick(&rng, 4) > 0;
    hybrid_opts h = {.train = train, .optim = optim_default(kinds[pick(&rng, 4)])};
    h.s = random_strategy(&rng, train);
    const plan *pn = policy_hybrid(pl, a, &h);
    diag_clear(c);
    if (pn && !equal(c, a, pl, pn, k)) {
      printf("%s, seed %u, %s: %s\n", models[index].spec, seed, train ? "training" : "inference",
             strategy_str(a, &h.s));
      CHECK(false);
    }
    diag_clear(c);
    arena_free(a);
  }
  planner_free(pl);
  prog_free(src);
  arena_free(ma);
  ctx_free(c);
}

TEST(layers_of_a_stage_stand_for_others) {
  const u32 plans = getenv("PLANS") ? (u32)atoi(getenv("PLANS")) : 60;
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    const u32 before = shorter, all = known;
    check_model(i, plans);
    printf("  %.10s: %u of %u with fewer layers\n", models[i].spec, shorter - before, known - all);
    CHECK(i >= FAMILIES || shorter > before);
  }
  printf("  %u by stages, %u of them with fewer layers; %u whole\n", known, shorter, whole);
  CHECK(shorter > 100);
}
