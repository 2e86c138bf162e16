// test_ir_distir.c - the programs of examples/distir/ say the same thing: pipeline, checkpointing and ZeRO
// train the same perceptron, so from the same weights and examples they come to the same new weights.
#include "eval/eval.h"
#include "sim/sim.h"
#include "test.h"

enum { A1, B1, A2, B2, X, Y, INPUTS };

static prog *load(ctx *c, const char *name) {
  const char *path = arena_printf(ctx_arena(c), "examples/distir/%s.heddle", name);
  file_view f;
  REQUIRE(file_map(c, path, &f));
  prog *p = ir_parse(c, sym_of(c, path), (const char *)f.data, f.size);
  file_unmap(&f);
  REQUIRE(p);
  return p;
}

static void train(ctx *c, const char *name, const eval_array *in, u32 n, eval_array out[4]) {
  prog *p = load(c, name);
  bool ok = eval_run(p, &(eval_opts){.as_f64 = true}, in, n, out, 4, ctx_arena(c));
  CHECK_MSG(ok, "%s: %s", name, diag_render(c, ctx_arena(c)));
  prog_free(p);
  REQUIRE(ok);
}

TEST(ir_distir_programs_agree) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  eval_array in[INPUTS], want[4], got[4];
  prog *p = load(c, "fig8_checkpointing");
  REQUIRE(eval_random(p, 1, in, INPUTS, a));
  prog_free(p);
  train(c, "fig8_checkpointing", in, INPUTS, want);

  // The second device of ZeRO has the second half of the examples.
  eval_array halves[8] = {in[A1], in[B1], in[A2], in[B2], in[X], in[X], in[Y], in[Y]};
  for (u32 k = 4; k < 8; k++) {
    size_t bytes = (size_t)shape_bytes(&halves[k].s) / 2;
    halves[k].s.dim[0] /= 2;
    halves[k].data = (char *)halves[k].data + (k % 2 ? bytes : 0);
  }
  static const char *const name[] = {"fig2_pipeline", "fig2_swapped", "fig9_zero"};
  for (u32 n = 0; n < COUNT_OF(name); n++) {
    train(c, name[n], n == 2 ? halves : in, n == 2 ? 8 : INPUTS, got);
    for (u32 k = 0; k < 4; k++)
      CHECK_MSG(eval_difference(&got[k], &want[k], NULL) < 1e-12, "%s: result %u differs", name[n], k);
  }
  for (u32 k = 0; k < 4; k++) CHECK(eval_difference(&want[k], &in[k], NULL) > 1e-6); // something was learnt
  ctx_free(c);
}

// Products 10, communication 5, views nothing, the rest 1: enough to tell one order from another.
static u32 price(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  const op_row *row = op_row_of((opcode)i->op);
  (void)arg, (void)p, (void)f, (void)g;
  *ps = row->flags & OPF_META ? 0 : row->flags & OPF_GEMM ? 10 : row->flags & OPF_COMM ? 5 : 1;
  return 1;
}

static i64 makespan(ctx *c, const char *name, sim_mode mode) {
  prog *p = load(c, name);
  sim_result r;
  bool ok = sim_run(c, ctx_arena(c), p, NULL, &(sim_opts){.mode = mode, .cost = price}, &r);
  CHECK_MSG(ok, "%s: %s", name, diag_render(c, ctx_arena(c)));
  prog_free(p);
  REQUIRE(ok);
  return r.makespan_ps;
}

// By hand: a layer is 12, its gradients 35, the loss 2. The second device has its first layer at 17..29 and
// gets the second microbatch at 34; in the swapped order it waits for that before it starts, and all that
// follows is 12 later.
TEST(ir_distir_order_matters) {
  ctx *c = ctx_new();
  static const sim_mode modes[] = {SIM_FLAT, SIM_COMPOSED, SIM_FLAT_FOLDED, SIM_FOLDED};
  for (u32 k = 0; k < COUNT_OF(modes); k++) {
    CHECK_EQ_I64(makespan(c, "fig2_pipeline", modes[k]), 167);
    CHECK_EQ_I64(makespan(c, "fig2_swapped", modes[k]), 179);
  }
  ctx_free(c);
}
