// test_origin.c - where prices come from and how far the time of a step may be off, worked out by hand.
#include "sim/sim.h"
#include "test.h"
#include <math.h>

static const char machine_text[] = "devices:\n"
                                   "  d:\n"
                                   "    rate: {f16: 1 TFLOP/s, bf16: 1 TFLOP/s}\n"
                                   "    vector: 1 TFLOP/s\n"
                                   "    memory: 1 GiB\n"
                                   "    bandwidth: 1 TB/s\n"
                                   "    launch: 1 us\n" // line 7
                                   "    efficiency:\n"
                                   "      gemm: {1 MFLOP: 0.5, 1 GFLOP: 0.5}\n" // line 9
                                   "    link: {kind: switch, bandwidth: 1 GB/s, spread: {source: a "
                                   "stopwatch, all_reduce: {1 MB: 30 % of 10}}}\n"
                                   "    spread:\n"
                                   "      source: a clock\n"
                                   "      types: f16\n"
                                   "      launch: 50 % of 8\n"
                                   "      gemm: {1 MFLOP: unknown, 1 GFLOP: 10 % of 21}\n"
                                   "      elementwise: 20 % of 9\n"
                                   "nodes: {devices: 2 d}\n";

typedef struct {
  ctx *c;
  arena *a;
  sim_result r;
} run;

// main of these instructions on two devices, x being f16[512,512] on both.
static run run_of(const char *machine_file, const char *body, sim_mode mode) {
  run x = {.c = ctx_new()};
  x.a = arena_new();
  const char *text =
      arena_printf(x.a,
                   "mesh @m [d=2]\n"
                   "func @main(%%x: f16[512,512] @m, %%b: bf16[512,512] @m) -> (f16[512,512] @m) {\n"
                   "%s"
                   "  return %%x\n"
                   "}\n",
                   body);
  prog *p = ir_parse(x.c, sym_of(x.c, "test"), text, strlen(text));
  machine *m = machine_parse(x.c, x.a, sym_of(x.c, "m.yaml"), machine_file, strlen(machine_file));
  cost_model *k = m ? cost_model_new(x.c, x.a, m, NULL) : NULL;
  const bool ok = p && k && sim_run(x.c, x.a, p, k, &(sim_opts){.mode = mode, .critical = true}, &x.r);
  CHECK_MSG(ok, "%s", diag_render(x.c, x.a));
  REQUIRE(ok);
  prog_free(p);
  return x;
}
static void drop(run *x) {
  arena_free(x->a);
  ctx_free(x->c);
}

static u32 line_of(const run *x, loc at) { return at.i ? loc_get(x->c, at)->line : 0; }

// 2 * 512^3 FLOP at half of 1 TFLOP/s, and 1 us.
static const i64 product_ps = 536870912 + 1000000;

TEST(origin_one_price_is_off_by_its_spread) {
  run x = run_of(machine_text, "  %p = matmul %x, %x @m : f16[512,512]\n", SIM_FOLDED);
  CHECK_EQ_I64(x.r.makespan_ps, product_ps);
  CHECK_EQ_I64(x.r.spread_known_ps, product_ps);
  CHECK_EQ_I64(x.r.error_ps, llround(0.1 * (double)product_ps));
  CHECK_EQ_I64(x.r.norigins, 1);
  const sim_origin *o = &x.r.origin[0];
  CHECK_STR(o->row.figure, "d: f16 gemm from 1 MFLOP to 1 GFLOP");
  CHECK(o->row.source == COST_CURVE && o->row.count == 21);
  CHECK_STR(o->row.of, "a clock");
  CHECK_EQ_I64(line_of(&x, o->row.at), 9);
  drop(&x);
}

// Three products by one curve are off together; additions by something else. An addition moves 1.5 MiB at 1
// TB/s (1573 ns), which is more than its launch.
TEST(origin_rows_add_up_and_are_independent) {
  static const char body[] = "  %p = matmul %x, %x @m : f16[512,512]\n"
                             "  %q = matmul %p, %x @m : f16[512,512]\n"
                             "  %r = matmul %q, %x @m : f16[512,512]\n"
                             "  %s = add %r, %x @m : f16[512,512]\n"
                             "  %t = add %s, %x @m : f16[512,512]\n";
  const double products = 3 * (double)product_ps, sums = 2 * 2572864.0;
  for (sim_mode m = SIM_FLAT; m <= SIM_FOLDED; m++) {
    run x = run_of(machine_text, body, m);
    CHECK_CLOSE((double)x.r.makespan_ps, products + sums, 1e-12);
    CHECK_EQ_I64(x.r.spread_known_ps, x.r.makespan_ps);
    CHECK_EQ_I64(x.r.error_ps, llround(hypot(0.1 * products, 0.2 * sums)));
    CHECK_EQ_I64(x.r.norigins, 2);
    CHECK(x.r.origin[0].count == 3 && x.r.origin[1].count == 2);
    CHECK_STR(x.r.origin[1].row.figure, "d: elementwise");
    drop(&x);
  }
}

// What was not measured has no spread: another element type, a larger size, a smaller one, another kind of
// work.
TEST(origin_says_what_is_not_known) {
  static const struct {
    const char *body, *figure;
    u32 line;
    double spread;
    cost_source source;
  } rows[] = {
      {"  %p = matmul %b, %b @m : bf16[512,512]\n", "d: bf16 gemm from 1 MFLOP to 1 GFLOP", 9, -1,
       COST_CURVE},
      {"  %o = concat %x, %x {axis=0} @m : f16[1024,512]\n  %t = transpose %o {perm=[1,0]} @m : "
       "f16[512,1024]\n"
       "  %p = matmul %o, %t @m : f16[1024,1024]\n",
       "d: f16 gemm above 1 GFLOP", 9, -1, COST_ROOFLINE},
      {"  %p = softmax %x {axis=1} @m : f16[512,512]\n", "d: vector rate, reduction", 4, -1, COST_ROOFLINE},
      {"  %p = slice %x {starts=[0,0], ends=[8,8], axes=[0,1]} @m : f16[8,8]\n  %q = matmul %p, %p @m : "
       "f16[8,8]\n",
       "d: launch of f16 gemm", 7, 0.5, COST_LAUNCH},
  };
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    run x = run_of(machine_text, rows[i].body, SIM_FOLDED);
    const sim_origin *o = NULL;
    for (u32 k = 0; k < x.r.norigins; k++)
      if (!strcmp(x.r.origin[k].row.figure, rows[i].figure)) o = &x.r.origin[k];
    for (u32 k = 0; k < x.r.norigins && !o; k++) CHECK_MSG(o, "%s", x.r.origin[k].row.figure);
    REQUIRE(o);
    CHECK(o->row.spread == rows[i].spread && o->row.source == rows[i].source);
    CHECK_EQ_I64(line_of(&x, o->row.at), rows[i].line);
    if (rows[i].spread < 0) CHECK(x.r.spread_known_ps <= x.r.makespan_ps - o->ps);
    drop(&x);
  }
}

// By the operator and its bytes: 512 KiB have a spread, two of them at once (1 MiB) have none.
TEST(origin_of_communication) {
  static const char *const body[] = {"  %p = partial %x over d @m\n"
                                     "  %q = all_reduce %p over d @m\n",
                                     "  %p = partial %x over d @m\n"
                                     "  %q, %r = all_reduce %p, %p over d @m\n"};
  for (u32 i = 0; i < 2; i++) {
    run x = run_of(machine_text, body[i], SIM_FOLDED);
    const sim_origin *o = &x.r.origin[0];
    CHECK_STR(o->row.figure, i ? "link of d: all_reduce above 1 MB" : "link of d: all_reduce up to 1 MB");
    CHECK(o->row.source == COST_LINK && o->row.spread == (i ? -1 : 0.3) && o->row.count == (i ? 0 : 10));
    CHECK(i || !strcmp(o->row.of, "a stopwatch"));
    CHECK_EQ_I64(line_of(&x, o->row.at), 10);
    drop(&x);
  }
}

// A figure that is changed loses what was found with the old one; other changes leave it.
TEST(origin_spreads_hold_for_their_figures) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  static const struct {
    const char *text;
    bool device, link, fabric;
  } rows[] = {{"nodes: {devices: 8 h100}", true, true, true},
              {"devices: {d: {like: h100, usable: 70 GB}}\nnodes: {devices: 8 d}", true, true, true},
              {"devices: {d: {like: h100, launch: 9 us}}\nnodes: {devices: 8 d}", false, true, true},
              {"nodes: {devices: 8 h100, link: switch 200 GB/s}", true, false, true},
              {"nodes: {devices: 8 h100, link: {step: 2 us}}", true, false, true},
              {"nodes: {devices: 8 h100}\nfabric: {step: 2 us}", true, true, false}};
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    const machine *m = machine_parse(c, a, sym_of(c, "m.yaml"), rows[i].text, strlen(rows[i].text));
    CHECK_MSG(m, "%s", diag_render(c, a));
    REQUIRE(m);
    CHECK_MSG((m->kind[0].spread.n > 0) == rows[i].device, "%s", rows[i].text);
    CHECK_MSG((m->node_kind[0].inside.spread.n > 0) == rows[i].link, "%s", rows[i].text);
    CHECK_MSG((m->fabric.spread.n > 0) == rows[i].fabric, "%s", rows[i].text);
  }
  CHECK(machine_load(c, a, "dgx-h100 link=200GB/s")->node_kind[0].inside.spread.n == 0);
  CHECK(machine_load(c, a, "dgx-h100*2 step=2us")->fabric.spread.n == 0);
  arena_free(a);
  ctx_free(c);
}
