// test_master.c - master weights: what half precision loses without them, what they cost in bytes, what a
// plan says of them. That plans compute with them what one device computes is tested in tests/prop/plans.c
// (llama).
#include "eval/eval.h"
#include "front/front.h"
#include "kernel/kernel.h"
#include "plan/plan.h"
#include "search/search.h"
#include "sim/sim.h"
#include "test.h"

// ---- numbers ------------------------------------------------------------------------------------------
// w after some steps of w - 1e-4 from 1, in the program's own types. Below 1 neighbours in f16 are 2^-11
// apart, so no step alone changes anything.
static double after_steps(bool master, u32 steps, double *kept) {
  static const char text[] = "func @main(%x: f16[4], %w: f16[4] weight) -> (f16[]) {\n"
                             "  %1 = mul %x, %w\n"
                             "  %2 = reduce_sum %1 {axes=[0], keepdims=0}\n"
                             "  return %2\n"
                             "}\n";
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = ir_parse(c, sym_of(c, "model"), text, strlen(text));
  optim_opts o = optim_default(OPTIM_SGD);
  o.lr = 1e-4, o.master = master;
  REQUIRE(p && pass_train(p, &o, false));
  const func_info *f = func_get(p, p->main);
  CHECK_EQ_I64(f->nparams, 2 + master);
  eval_array in[3], out[3];
  REQUIRE(eval_random(p, 1, in, f->nparams, a));
  double one[4] = {1, 1, 1, 1};
  for (u32 k = 0; k < 2; k++) ker_convert(in[k].data, in[k].s.t, one, DT_F64, 4);
  eval_masters(p, in);
  for (u32 k = 0; k < steps; k++) {
    bool ok = eval_run(p, &(eval_opts){0}, in, f->nparams, out, f->rets.n, a);
    CHECK_MSG(ok, "%s", diag_render(c, a));
    for (u32 i = 1; ok && i < f->nparams; i++) in[i] = out[i]; // loss; weight, master
  }
  CHECK(in[1].s.t == DT_F16 && (!master || in[2].s.t == DT_F32));
  if (master) ker_convert(one, DT_F64, in[2].data, in[2].s.t, 4), *kept = one[3];
  ker_convert(one, DT_F64, in[1].data, in[1].s.t, 4);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
  return one[3];
}

TEST(master_keeps_small_steps) {
  double kept = 0;
  CHECK(after_steps(false, 30, &kept) == 1);
  CHECK(after_steps(true, 2, &kept) == 1);
  CHECK(after_steps(true, 3, &kept) == 1 - 0x1p-11); // 1 - 3e-4 is nearer to it than to 1
  CHECK_CLOSE(kept, 1 - 3e-4, 1e-7);
  CHECK(after_steps(true, 30, &kept) == 1 - 6 * 0x1p-11); // 1 - 3e-3
}

// 2,048 microbatches whose gradients are 1, 2^-11, 2^-11, ...: added in f16 the small ones are lost one by one.
static double accumulated(bool wide) {
  static const char text[] = "func @main(%x: f16[64], %w: f16[1] weight) -> (f16[]) {\n"
                             "  %1 = mul %x, %w : f16[64]\n"
                             "  %2 = reduce_sum %1 {axes=[0], keepdims=0}\n"
                             "  return %2\n"
                             "}\n";
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = ir_parse(c, sym_of(c, "model"), text, strlen(text));
  REQUIRE(src);
  planner *pl = planner_new(src);
  hybrid_opts h = {
      .s = strategy_of("mb=64 grads=%s", wide ? "f32" : "own"), .train = true, .keep_gradients = true};
  h.optim = optim_default(OPTIM_SGD);
  plan *pn = policy_hybrid(pl, a, &h);
  prog *p = pn ? plan_apply(pl, pn, NULL) : NULL;
  if (!CHECK_MSG(p != NULL, "%s", diag_render(c, a))) test_leave();
  const func_info *f = func_get(p, p->main);
  eval_array in[4], out[4];
  REQUIRE(f->nparams <= 4 && f->rets.n <= 4 && eval_random(p, 1, in, f->nparams, a));
  double x[64];
  for (u32 k = 0; k < 64; k++) x[k] = k ? 0x1p-11 : 1;
  for (u32 k = 0; k < f->nparams; k++)
    if (f->params.v[k].r == ROLE_INPUT) ker_convert(in[k].data, in[k].s.t, x, DT_F64, 64);
  bool ok = eval_run(p, &(eval_opts){0}, in, f->nparams, out, f->rets.n, a);
  CHECK_MSG(ok, "%s", diag_render(c, a));
  CHECK(out[1].s.t == (wide ? DT_F32 : DT_F16));
  double grad = 0;
  ker_convert(&grad, DT_F64, out[1].data, out[1].s.t, 1);
  prog_free(p);
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
  return grad;
}

TEST(gradients_accumulated_in_f32_keep_small_ones) {
  CHECK_CLOSE(accumulated(true), 1 + 63 * 0x1p-11, 1e-6);
  CHECK(accumulated(false) == 1); // half of what f16 tells apart at 1: rounded to even every time
}

// ---- bytes --------------------------------------------------------------------------------------------
enum { WAYS = 4 };
typedef struct {
  i64 params, kind[MEM_KINDS];
  double bound, peak;
} memory;

static memory memory_of(dtype t, optimizer kind, bool master, u32 zero, const char *grads) {
  memory out = {0};
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = front_load(c, "mlp-xs:layers=2", &(front_opts){.batch = 32, .loss = true, .t = t});
  machine *m = machine_load(c, a, "dgx-h100");
  planner *pl = src ? planner_new(src) : NULL;
  cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
  REQUIRE(pl && k);
  hybrid_opts h = {.s = strategy_of("dp=%u mb=2 zero=%u grads=%s", WAYS, zero, grads), .train = true};
  h.optim = optim_default(kind), h.optim.master = master;
  plan *pn = policy_hybrid(pl, a, &h);
  prog *p = pn ? plan_apply(pl, pn, k) : NULL;
  sim_result r;
  bool ok = p && sim_run(c, a, p, k, &(sim_opts){.mode = SIM_FOLDED}, &r);
  if (!CHECK_MSG(ok, "%s", diag_render(c, a))) test_leave();
  memcpy(out.kind, r.cls[0].peak_kind, sizeof out.kind);
  const func_info *f = func_get(src, src->main);
  for (u32 i = 0; i < f->nparams; i++)
    if (f->params.v[i].r == ROLE_WEIGHT) out.params += shape_elems(&val_type(src, f, i + 1)->s);
  search_opts so = {.train = true, .optim = h.optim, .batch = 32, .top = 1, .threads = 1, .ranks = WAYS};
  const char *line = arena_printf(a, "dp=%u mb=2 zero=%u recompute=none grads=%s", WAYS, zero, grads);
  REQUIRE(strategy_parse(c, a, line, &so.space));
  search_result s;
  ok = search_run(c, a, src, m, NULL, &so, &s);
  if (CHECK_MSG(ok && s.npoints == 1, "%s", diag_render(c, a)))
    out.bound = (double)s.point[0].bound_bytes, out.peak = (double)s.point[0].peak_bytes;
  prog_free(p);
  planner_free(pl);
  prog_free(src);
  arena_free(a);
  ctx_free(c);
  return out;
}

static void check_memory(dtype t, optimizer kind, bool master, double state,
                         const char *grads) { // bytes a parameter
  double b = dtype_bytes(t), g = !strcmp(grads, "f32") ? 4 : b;
  for (u32 zero = 0; zero <= 3; zero++) {
    memory x = memory_of(t, kind, master, zero, grads);
    double n = (double)x.params;
    CHECK_CLOSE((double)x.kind[MEM_STATE], n * state / (zero ? WAYS : 1), 1e-12);
    if (zero < 3) CHECK_CLOSE((double)x.kind[MEM_PARAM], n * b, 1e-12);
    const double summed = g > b ? 512 * 512 * g : 0; // of one weight: the peak is in the update then
    if (zero < 2) CHECK((double)x.kind[MEM_GRAD] == n * g || (double)x.kind[MEM_GRAD] == n * g + summed);
    double all = n * (b / (zero > 2 ? WAYS : 1) + g / (zero > 1 ? WAYS : 1) + state / (zero ? WAYS : 1));
    double kept = 3 * b * 32 / (WAYS * 2) * 512; // both layers' outputs and their distance from the target
    CHECK_CLOSE(x.bound, all + kept, 1e-9);
    CHECK(x.peak >= x.bound);
  }
}

TEST(master_is_a_state_in_bytes) {
  check_memory(DT_F16, OPTIM_ADAM, true, 12, "own"); // 16 with weight and gradient; ZeRO 1: 4 + 12 / WAYS
  check_memory(DT_F16, OPTIM_ADAM, false, 8, "own");
  check_memory(DT_BF16, OPTIM_SGD, true, 4, "own");
  check_memory(DT_F32, OPTIM_ADAM, true, 8, "own"); // it is its own master
  check_memory(DT_BF16, OPTIM_ADAM, true, 12,
               "f32"); // 18, and 6 + 12 / WAYS: Megatron-LM's distributed optimizer
  check_memory(DT_F32, OPTIM_ADAM, true, 8, "f32");
}

// ---- text ---------------------------------------------------------------------------------------------
TEST(master_in_plan_text) {
  static const dtype types[] = {DT_F16, DT_BF16, DT_F32};
  for (u32 k = 0; k < 2 * COUNT_OF(types); k++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    prog *p = front_family(c, "mlp-xs", &(front_opts){.batch = 32, .loss = true, .t = types[k / 2]});
    planner *pl = planner_new(p);
    hybrid_opts h = {.s = strategy_of("dp=2"), .train = true};
    h.optim = optim_default(OPTIM_ADAM), h.optim.master = k % 2;
    plan *pn = policy_hybrid(pl, a, &h);
    strbuf text = {.a = a}, again = {.a = a};
    REQUIRE(pn != NULL);
    plan_print(planner_source(pl), pn, &text);
    bool said = strstr(sb_str(&text), ", master-weights: true}") != NULL;
    CHECK(said == (k % 2 && types[k / 2] != DT_F32));
    plan *q = plan_parse(a, planner_source(pl), NULL, sym_of(c, "printed"), sb_str(&text), text.n);
    REQUIRE(q != NULL);
    CHECK(q->optim.master == said);
    plan_print(planner_source(pl), q, &again);
    CHECK_STR(sb_str(&again), sb_str(&text));
    planner_free(pl);
    prog_free(p);
    arena_free(a);
    ctx_free(c);
  }
}
