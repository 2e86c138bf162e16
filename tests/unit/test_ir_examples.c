// test_ir_examples.c - what the examples claim. The programs of examples/distir/ train the same perceptron by
// pipeline, checkpointing and ZeRO: the same numbers, at other times. A block of a GPT gives the same on one
// device and on four.
#include "eval/eval.h"
#include "sim/sim.h"
#include "test.h"

enum { A1, B1, A2, B2, X, Y, INPUTS };

static prog *load(ctx *c, const char *name) {
  const char *path = arena_printf(ctx_arena(c), "examples/%s.heddle", name);
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
  prog *p = load(c, "distir/fig8_checkpointing");
  REQUIRE(eval_random(p, 1, in, INPUTS, a));
  prog_free(p);
  train(c, "distir/fig8_checkpointing", in, INPUTS, want);

  // The second device of ZeRO has the second half of the examples.
  eval_array halves[8] = {in[A1], in[B1], in[A2], in[B2], in[X], in[X], in[Y], in[Y]};
  for (u32 k = 4; k < 8; k++) {
    size_t bytes = (size_t)shape_bytes(&halves[k].s) / 2;
    halves[k].s.dim[0] /= 2;
    halves[k].data = (char *)halves[k].data + (k % 2 ? bytes : 0);
  }
  static const char *const name[] = {"distir/fig2_pipeline", "distir/fig2_swapped", "distir/fig9_zero"};
  for (u32 n = 0; n < COUNT_OF(name); n++) {
    train(c, name[n], n == 2 ? halves : in, n == 2 ? 8 : INPUTS, got);
    for (u32 k = 0; k < 4; k++)
      CHECK_MSG(eval_difference(&got[k], &want[k], NULL) < 1e-12, "%s: result %u differs", name[n], k);
  }
  for (u32 k = 0; k < 4; k++) CHECK(eval_difference(&want[k], &in[k], NULL) > 1e-6); // something was learnt
  ctx_free(c);
}

TEST(ir_gpt_block_split_over_heads) {
  ctx *c = ctx_new();
  enum { PARAMS = 13 };
  eval_array in[PARAMS], want, got;
  const char *name[] = {"gpt_block", "gpt_block_tensor"};
  for (u32 n = 0; n < 2; n++) {
    prog *p = load(c, name[n]);
    if (n == 0) REQUIRE(eval_random(p, 3, in, PARAMS, ctx_arena(c)));
    bool ok = eval_run(p, &(eval_opts){.as_f64 = true}, in, PARAMS, n ? &got : &want, 1, ctx_arena(c));
    CHECK_MSG(ok, "%s: %s", name[n], diag_render(c, ctx_arena(c)));
    prog_free(p);
    REQUIRE(ok);
  }
  CHECK(eval_difference(&got, &want, NULL) < 1e-10);
  ctx_free(c);
}

// Uneven pieces: the loss is the mean over all examples, whoever has them.
TEST(ir_uneven_data_parallel) {
  ctx *c = ctx_new();
  eval_array in[3], out[2];
  prog *p = load(c, "uneven_data");
  REQUIRE(eval_random(p, 5, in, 3, ctx_arena(c)));
  bool ok = eval_run(p, &(eval_opts){.as_f64 = true}, in, 3, out, 2, ctx_arena(c));
  CHECK_MSG(ok, "%s", diag_render(c, ctx_arena(c)));
  REQUIRE(ok);
  double loss = 0;
  const double *got = out[0].data;
  bool wide = in[0].s.t == DT_F64;
#define AT(k, i) (wide ? ((const double *)in[k].data)[i] : (double)((const float *)in[k].data)[i])
  for (u32 r = 0; r < 128; r++)
    for (u32 j = 0; j < 64; j++) {
      double e = -AT(2, r * 64 + j);
      for (u32 i = 0; i < 64; i++) e += AT(1, r * 64 + i) * AT(0, i * 64 + j);
      loss += e * e / (128 * 64);
    }
#undef AT
  CHECK_CLOSE(*got, loss, 1e-12);
  prog_free(p);
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
    CHECK_EQ_I64(makespan(c, "distir/fig2_pipeline", modes[k]), 167);
    CHECK_EQ_I64(makespan(c, "distir/fig2_swapped", modes[k]), 179);
  }
  ctx_free(c);
}
