// test_layers_whale.c - layers=whale: the order of places and the cuts are those of Whale's policy.
#include "balance/balance.h"
#include "cost/cost.h"
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
  planner *pl;
  hybrid_opts o;
} bed;

// Two small and slow devices, then two large ones, twice as fast and with a memory of so many MiB: nothing takes time
// but what grows with the work.
static bed open_bed(u32 small, u32 large) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  const char *text = arena_printf(
      b.a,
      "devices:\n"
      "  small: {rate: {f32: 400 GFLOP/s}, vector: 400 GFLOP/s, memory: 1 GiB, usable: %u MiB, bandwidth: "
      "160 GB/s}\n"
      "  large: {rate: {f32: 800 GFLOP/s}, vector: 800 GFLOP/s, memory: 1 GiB, usable: %u MiB, bandwidth: "
      "320 GB/s}\n"
      "nodes:\n  - {count: 1, devices: 2 small + 2 large, link: {kind: switch, bandwidth: 200 GB/s}}\n",
      small, large);
  machine *m = machine_parse(b.c, b.a, sym_of(b.c, "m.yaml"), text, strlen(text));
  REQUIRE(m);
  b.p = front_load(b.c, "mlp-xs:layers=12,hidden=512", &(front_opts){.batch = 1024, .loss = true});
  REQUIRE(b.p);
  b.pl = planner_new(b.p);
  b.o = (hybrid_opts){.train = true, .optim = optim_default(OPTIM_SGD), .s = strategy_default()};
  b.o.k = cost_model_new(b.c, b.a, m, &(cost_opts){0});
  return b;
}
static void close_bed(bed *b) {
  planner_free(b->pl);
  prog_free(b->p);
  arena_free(b->a);
  ctx_free(b->c);
}

// What the strategy says once it is numbers; or why there is no plan.
static const char *named(bed *b, const char *line) {
  strategy_set *said = NEW(b->a, strategy_set);
  diag_clear(b->c);
  b->o.said = said;
  REQUIRE(strategy_parse(b->c, b->a, line, said) && strategy_one(b->c, said, &b->o.s));
  const plan *pn = policy_hybrid(b->pl, b->a, &b->o);
  return pn ? sym_str(b->c, pn->name) : diag_render(b->c, b->a);
}

static void check_named(bed *b, const char *line, const char *part) {
  const char *name = named(b, line);
  CHECK_MSG(strstr(name, part), "%s is %s, not %s", line, name, part);
}

// Layers are alike. Each takes 512 x 512 f32 of weights and as much of gradients, and keeps 256 x 512 f32 of a
// microbatch; 95 % of the memory is for them. As a strategy says what the solver makes of it.
static const char *solved(arena *a, i64 small, i64 large, balance_fault *fault) {
  const i64 MiB = 1 << 20, DM[] = {small * MiB / 100 * 95, small * MiB / 100 * 95, large * MiB / 100 * 95,
                                   large * MiB / 100 * 95};
  i64 flop[12], fixed[12], kept[12];
  for (u32 k = 0; k < 12; k++) flop[k] = 1, fixed[k] = 2 * MiB, kept[k] = MiB / 2;
  const balance_whale_line in = {.n = 4,
                                 .DF = (i64[]){1, 1, 2, 2},
                                 .DM = DM,
                                 .nlayers = 12,
                                 .micro = 4,
                                 .flop = flop,
                                 .fixed_bytes = fixed,
                                 .kept_bytes = kept};
  balance_whale_cuts c;
  choice_value part = {.nparts = 4, .part = ZNEWN(a, u32, 4)}, place = part;
  u32 *order = ZNEWN(a, u32, 4), *layers = ZNEWN(a, u32, 4);
  *fault = balance_whale_stages(a, &in, &c);
  for (u32 k = 0; k < 4; k++) layers[k] = c.end[k] - (k ? c.end[k - 1] : 0), order[k] = c.device[k] + 1;
  part.part = layers, place.part = order;
  strbuf s = {.a = a};
  choice_say(CHOICE_layers, part, &s);
  sb_put(&s, " "), choice_say(CHOICE_places, place, &s);
  return sb_str(&s);
}

TEST(layers_whale_are_those_of_the_solver) {
  u32 moved = 0, short_of = 0;
  for (u32 large = 11; large <= 24; large++) {
    bed b = open_bed(10, large);
    balance_fault fault;
    const char *whale = solved(b.a, 10, large, &fault);
    check_named(&b, "pp=4 mb=4 layers=whale", whale);
    moved += fault == BALANCE_OK && !strstr(whale, "layers=4/4/2/2"), short_of += fault == BALANCE_MEMORY;
    close_bed(&b);
  }
  CHECK(moved > 0 && short_of > 0);
}

TEST(layers_whale_put_large_memory_first) {
  bed b = open_bed(500, 1000);
  check_named(&b, "pp=4 mb=4 layers=whale", "layers=4/4/2/2 places=3/4/1/2");
  check_named(&b, "pp=2 dp=2 mb=4 layers=whale", "layers=8/4 places=2/1"); // blocks of two ranks
  check_named(&b, "pp=2 tp=2 mb=4 layers=whale", "layers=8/4 places=2/1");
  b.o.memory_bytes = -1; // no limit: the order is the same
  check_named(&b, "pp=2 dp=2 mb=4 layers=whale", "layers=8/4 places=2/1");
  b.o.memory_bytes = 1 << 28; // one limit for all: no place has more
  check_named(&b, "pp=2 dp=2 mb=4 layers=whale", "layers=4/8");
  CHECK(!strstr(named(&b, "pp=2 dp=2 mb=4 layers=whale"), "places"));
  close_bed(&b);
  b = open_bed(500, 500); // nor here
  check_named(&b, "pp=4 mb=4 layers=whale", "layers=2/2/4/4");
  CHECK(!strstr(named(&b, "pp=4 mb=4 layers=whale"), "places"));
  check_named(&b, "pp=2 mb=4 layers=whale", "layers=6/6"); // one kind of devices
  close_bed(&b);
}
