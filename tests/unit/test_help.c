// test_help.c - what would help: the critical path taken apart, by hand and against machines that really are
// faster.
#include "front/front.h"
#include "plan/plan.h"
#include "sim/sim.h"
#include "test.h"
#include <math.h>

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
} bed;

static bed parsed(const char *text) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.p = ir_parse(b.c, sym_of(b.c, "test"), text, strlen(text));
  CHECK_MSG(b.p, "%s", diag_render(b.c, b.a));
  REQUIRE(b.p);
  return b;
}

static bed planned(const char *model, i64 batch, const char *line) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  const front_opts fo = {.batch = batch, .seq = 128, .t = DT_F16, .loss = true};
  prog *src = front_load(b.c, model, &fo);
  REQUIRE(src);
  const hybrid_opts h = {.s = strategy_of("%s", line), .train = true, .optim = optim_default(OPTIM_ADAM)};
  planner *pl = planner_new(src);
  plan *pn = policy_hybrid(pl, b.a, &h);
  b.p = pn ? plan_apply(pl, pn, NULL) : NULL;
  CHECK_MSG(b.p, "%s", diag_render(b.c, b.a));
  REQUIRE(b.p);
  planner_free(pl);
  prog_free(src);
  return b;
}

static void drop(bed *b) {
  prog_free(b->p);
  arena_free(b->a);
  ctx_free(b->c);
}

static i64 step_on(bed *b, const machine *m, cost_parts *path, u32 *steps) {
  sim_result r;
  const sim_opts o = {.mode = SIM_FOLDED, .critical = true, .steps = true, .no_bytes = true};
  cost_model *k = cost_model_new(b->c, b->a, m, NULL);
  REQUIRE(k && sim_run(b->c, b->a, b->p, k, &o, &r));
  if (path) REQUIRE(sim_path_parts(b->p, k, &r, path));
  if (steps) *steps = r.ncritical;
  return r.makespan_ps;
}

// Two stages, two microbatches. A product takes 2 * 1000^3 FLOP / 1 TFLOP/s = 2 ms and 1 us of launch. A send
// of 4 MB at 4 GB/s takes 1 ms, 5 us to start and 3 us for its step. The second stage waits for the first
// microbatch to come, then the first stage's send for the second stage to be free: two sends, three products.
static const char two_devices[] = "name: two\n"
                                  "devices:\n"
                                  "  d:\n"
                                  "    rate: {f32: 1 TFLOP/s}\n"
                                  "    vector: 1 TFLOP/s\n"
                                  "    memory: 16 GB\n"
                                  "    bandwidth: 1000 GB/s\n"
                                  "    launch: 1 us\n"
                                  "nodes:\n"
                                  "  - devices: 2 d\n"
                                  "    link: {kind: switch, bandwidth: 4 GB/s, start: 5 us, step: 3 us}\n";
static const char two_stages[] =
    "mesh @m [pp=2]\n"
    "func @main(%x: f32[1000,1000] @m[pp=0], %y: f32[1000,1000] @m[pp=0], %w: f32[1000,1000] @m[pp=0] "
    "weight, "
    "%v: f32[1000,1000] @m[pp=1] weight) -> (f32[1000,1000] @m[pp=1], f32[1000,1000] @m[pp=1]) {\n"
    "  %a = matmul %x, %w @m[pp=0] : f32[1000,1000]\n"
    "  %b = send %a @m[pp=0] : f32[1000,1000] @m[pp=1]\n"
    "  %c = matmul %y, %w @m[pp=0] : f32[1000,1000]\n"
    "  %d = matmul %b, %v @m[pp=1] : f32[1000,1000]\n"
    "  %e = send %c @m[pp=0] : f32[1000,1000] @m[pp=1]\n"
    "  %f = matmul %e, %v @m[pp=1] : f32[1000,1000]\n"
    "  return %d, %f\n"
    "}\n";

TEST(help_of_two_stages_by_hand) {
  bed b = parsed(two_stages);
  const machine *m = machine_parse(b.c, b.a, sym_of(b.c, "two.yaml"), two_devices, sizeof two_devices - 1);
  CHECK_MSG(m, "%s", diag_render(b.c, b.a));
  REQUIRE(m);
  cost_parts path;
  CHECK_EQ_I64(step_on(&b, m, &path, NULL), 3 * 2001000000ll + 2 * 1008000000ll);
  const double want[COST_BYS] = {
      [COST_BY_MATMUL] = 6e9, [COST_BY_LAUNCH] = 3e6, [COST_BY_INSIDE] = 2e9, [COST_BY_LATENCY] = 16e6};
  for (u32 k = 0; k < COST_BYS; k++)
    CHECK_MSG(fabs(path.ps[k] - want[k]) < 1, "part %u is %.3f ps, not %.3f", k, path.ps[k], want[k]);
  drop(&b);
}

// Either stage has two products and takes part in two sends; what is left of the 8.019 ms it waits.
TEST(split_of_two_stages_by_hand) {
  bed b = parsed(two_stages);
  const machine *m = machine_parse(b.c, b.a, sym_of(b.c, "two.yaml"), two_devices, sizeof two_devices - 1);
  for (sim_mode mode = SIM_FLAT; mode <= SIM_FOLDED; mode++) {
    cost_model *k = cost_model_new(b.c, b.a, m, NULL);
    sim_result r;
    REQUIRE(k && sim_run(b.c, b.a, b.p, k, &(sim_opts){.mode = mode, .split = true}, &r));
    REQUIRE(r.nsplit == 2);
    const u32 send = r.split[0].kind == SPLIT_COMM ? 0 : 1;
    CHECK(r.split[send].op == OP_send && !*r.split[send].over && !r.split[send].beside);
    CHECK_CLOSE(r.split[send].ps, 2 * 1008e6, 1e-12);
    CHECK(r.split[1 - send].kind == SPLIT_COMPUTE && r.split[1 - send].work == WORK_PRODUCT);
    CHECK_CLOSE(r.split[1 - send].ps, 2 * 2001e6, 1e-12);
    CHECK_CLOSE(r.bubble * (double)r.makespan_ps, 2001e6, 1e-12);
  }
  drop(&b);
}

// ---- against machines that are faster -------------------------------------------------------------------
// Everything that the part is inversely proportional to, `times` as fast.
static void speed_up(machine *m, cost_by by, double times) {
  for (u32 k = 0; k < m->nkinds; k++) {
    device_kind *d = &m->kind[k];
    if (by == COST_BY_MATMUL)
      for (u32 t = 0; t < DT_COUNT; t++) d->rate[t] *= times;
    if (by == COST_BY_VECTOR) d->vector *= times;
    if (by == COST_BY_MEMORY) d->mem_bw *= times;
    if (by == COST_BY_LAUNCH) d->launch_ps = llround((double)d->launch_ps / times);
  }
  for (u32 k = 0; k < m->nnode_kinds; k++) {
    node_kind *n = (node_kind *)&m->node_kind[k]; // of this test's own copy
    if (by == COST_BY_INSIDE) n->inside.bw *= times, n->host.bw *= times;
    if (by == COST_BY_BETWEEN) n->nic_bw *= times;
    if (by != COST_BY_LATENCY) continue;
    i64 *latency[] = {&n->inside.start_ps, &n->inside.step_ps, &n->host.start_ps, &n->host.step_ps};
    for (u32 j = 0; j < COUNT_OF(latency); j++) *latency[j] = llround((double)*latency[j] / times);
  }
  if (by != COST_BY_LATENCY) return;
  m->fabric.start_ps = llround((double)m->fabric.start_ps / times);
  m->fabric.step_ps = llround((double)m->fabric.step_ps / times);
}

static const struct {
  const char *machine, *model, *strategy;
  i64 batch;
} cases[] = {
    {"dgx-h100", "gpt2:layers=4", "dp=1 tp=6 pp=1", 16},
    {"2x4 h100 ib=4x400Gb/s", "gpt2:layers=4", "dp=2 tp=2 pp=2 mb=4 zero=2", 32},
    {"a40-4x4", "gpt2:layers=8", "dp=4 tp=2 pp=2 mb=4 recompute=full", 64},
    {"2x8 v100 ib=100Gb/s", "mlp-xs", "dp=16 tp=1 pp=1 zero=3", 4096},
};

// The parts of a path add up to its length, but for half a picosecond a step: every price is rounded once. On
// a machine on which one rate is 1 % higher it takes part * (1 - 1 / 1.01) less, where the path stays the
// longest and no price comes to be made of something else; on these machines that is so. Both lengths are
// rounded. Latencies are whole picoseconds: the faster ones are wrong by up to half of one, at a start and at
// most 30 steps (a ring of 16 members, there and back).
TEST(help_is_what_a_faster_machine_gives) {
  u32 helps = 0;
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    bed b = planned(cases[i].model, cases[i].batch, cases[i].strategy);
    cost_parts path;
    u32 steps = 0;
    const machine *m = machine_load(b.c, b.a, cases[i].machine);
    REQUIRE(m);
    const i64 step = step_on(&b, m, &path, &steps);
    double sum = 0;
    for (u32 k = 0; k < COST_BYS; k++) sum += path.ps[k];
    CHECK_MSG(fabs(sum - (double)step) <= 0.5 * steps, "case %u: the parts make %.1f ps, not %lld", i, sum,
              (long long)step);
    CHECK(path.ps[COST_BY_SEVERAL] == 0);
    for (u32 k = 0; k < COST_BY_SEVERAL; k++) {
      machine *f = machine_load(b.c, b.a, cases[i].machine);
      speed_up(f, (cost_by)k, 1.01);
      const double got = (double)(step - step_on(&b, f, NULL, NULL)), want = path.ps[k] * (1 - 1 / 1.01);
      const double rounded = steps * (k == COST_BY_LATENCY ? 1 + 0.5 * 31 : k == COST_BY_LAUNCH ? 1.5 : 1);
      CHECK_MSG(fabs(got - want) <= rounded, "case %u, part %u: %.0f ps less, not %.1f, of %u steps", i, k,
                got, want, steps);
      helps += want > 100 * rounded; // else nothing would be seen
    }
    drop(&b);
  }
  CHECK_MSG(helps >= 18, "only %u of the parts are large enough to be seen", helps);
}

// A price that is as much arithmetic as traffic, to the last bit: neither alone helps. 2 * 1000^3 FLOP at
// 1 TFLOP/s are the 2 ms of 12 MB at 6 GB/s.
TEST(help_of_two_at_once) {
  bed b = parsed("mesh @m [dp=1]\n"
                 "func @main(%x: f32[1000,1000] @m, %w: f32[1000,1000] @m weight) -> (f32[1000,1000] @m) {\n"
                 "  %a = matmul %x, %w @m : f32[1000,1000]\n"
                 "  return %a\n"
                 "}\n");
  machine *m = machine_parse(b.c, b.a, sym_of(b.c, "two.yaml"), two_devices, sizeof two_devices - 1);
  REQUIRE(m);
  m->kind[0].mem_bw = 6e9;
  cost_parts path;
  CHECK_EQ_I64(step_on(&b, m, &path, NULL), 2001000000);
  CHECK_CLOSE(path.ps[COST_BY_SEVERAL], 2e9, 1e-9);
  CHECK(path.ps[COST_BY_MATMUL] == 0 && path.ps[COST_BY_MEMORY] == 0);
  speed_up(m, COST_BY_MATMUL, 1.01);
  CHECK_EQ_I64(step_on(&b, m, &path, NULL), 2001000000);
  CHECK_CLOSE(path.ps[COST_BY_MEMORY], 2e9, 1e-9);
  drop(&b);
}

// A cost model that does not tell what its prices are made of.
TEST(help_is_not_guessed) {
  bed b = parsed(two_stages);
  const machine *m = machine_parse(b.c, b.a, sym_of(b.c, "two.yaml"), two_devices, sizeof two_devices - 1);
  cost_model *k = cost_model_new(b.c, b.a, m, &(cost_opts){.model = "distir"});
  sim_result r;
  cost_parts path;
  REQUIRE(k && sim_run(b.c, b.a, b.p, k, &(sim_opts){.mode = SIM_FOLDED, .critical = true}, &r));
  CHECK(!sim_path_parts(b.p, k, &r, &path));
  drop(&b);
}
