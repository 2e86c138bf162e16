// test_host_update.c - weights that the host updates: bytes over the link, time and memory of the host against formulas; CPU-Adam
// as ZeRO-Offload's authors measured it; what of it a validator refuses.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"
#include <math.h>

// Devices and links that take no time beside the host's memory, of 10 GB/s.
static const char host_bound[] =
    "name: m\n"
    "devices:\n"
    "  fast: {rate: {f16: 1e9 TFLOP/s, f32: 1e9 TFLOP/s}, vector: 1e9 TFLOP/s, memory: 64 GiB, "
    "bandwidth: 1e9 GB/s, allocation: 1 B}\n"
    "nodes: {devices: 4 fast, link: switch 1e6 GB/s, host: {bandwidth: 1000 GB/s, "
    "memory: 8 GiB, memory-bandwidth: 20 GB/s, memory-efficiency: 0.5%s}}\n";
enum { PS_A_BYTE = 100 };

typedef struct {
  ctx *c;
  arena *a;
  prog *src, *p;
  planner *pl;
  machine *m;
  cost_model *k;
  sim_result r;
} bed;

static bed bed_open(const char *model, const char *text, dtype t, const char *line) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = front_load(b.c, model, &(front_opts){.batch = 8, .seq = 16, .loss = true, .t = t});
  REQUIRE(b.src && pass_loss(b.src));
  b.m = text ? machine_parse(b.c, b.a, sym_of(b.c, "m.yaml"), text, strlen(text))
             : machine_load(b.c, b.a, "dgx-2");
  CHECK_MSG(b.m != NULL, "%s", diag_render(b.c, b.a));
  REQUIRE(b.m != NULL);
  b.k = cost_model_new(b.c, b.a, b.m, NULL);
  b.pl = planner_new(b.src);
  const hybrid_opts h = {
      .s = strategy_of("%s", line), .train = true, .optim = optim_default(OPTIM_ADAM), .k = b.k};
  hybrid_opts with = h;
  with.optim.master = true;
  const plan *pn = policy_hybrid(b.pl, b.a, &with);
  b.p = pn ? plan_apply(b.pl, pn, b.k) : NULL;
  const sim_opts o = {.mode = SIM_FOLDED};
  const bool ran = b.p && plan_validate(b.p) && sim_run(b.c, b.a, b.p, b.k, &o, &b.r);
  CHECK_MSG(ran, "%s: %s", line, diag_render(b.c, b.a));
  REQUIRE(ran);
  return b;
}

static void bed_close(bed *b) {
  prog_free(b->p);
  planner_free(b->pl);
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

static i64 busy(const bed *b, const char *name) {
  for (u32 k = 0; k < b->r.nstreams; k++)
    if (!strcmp(sym_str(b->c, b->p->streams.v[k]), name)) return b->r.busy_ps[k];
  return 0;
}

// Elements of the model's weights.
static i64 weights_of(const bed *b) {
  const func_info *m = func_get(b->src, b->src->main);
  i64 sum = 0;
  for (u32 k = 0; k < m->nparams; k++)
    if (m->params.v[k].r == ROLE_WEIGHT) sum += shape_elems(&val_type(b->src, m, k + 1)->s);
  return sum;
}

static i64 bytes_over(const bed *b, const char *name, double bytes_per_s) {
  return llround((double)busy(b, name) / 1e12 * bytes_per_s);
}

static const char *with(arena *a, const char *more) { return arena_printf(a, host_bound, more); }

// What Adam reads and writes of an f16 weight with a master copy: the gradient, and of master and two moments each both
// ways; to make f16 of it, the master and that.
enum { ADAM_BYTES = 2 + 6 * 4, CAST_BYTES = 4 + 2 };

TEST(host_update_moves_four_bytes_of_a_parameter) {
  static const char *const lines[] = {"update=host offload=states",
                                      "update=host offload=states recompute=full",
                                      "update=host offload=grads+states"};
  arena *a = arena_new();
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    bed b = bed_open("gpt2:layers=3,hidden=64,heads=4,vocab=64,positions=16", with(a, ""), DT_F16, lines[k]);
    const i64 n = weights_of(&b);
    CHECK_EQ_I64(bytes_over(&b, "h2d", 1e12), 2 * n);
    CHECK_EQ_I64(bytes_over(&b, "d2h", 1e12), 2 * n);
    CHECK_EQ_I64(busy(&b, "host"), n * (ADAM_BYTES + CAST_BYTES) * PS_A_BYTE);
    CHECK_EQ_I64(b.r.cls[0].host_peak_bytes, 14 * n); // states, and gradients as they come
    bed_close(&b);
  }
  arena_free(a);
}

// With the weights in host memory, too, it writes what it has made into them: as many bytes as a cast.
TEST(host_update_assigns_as_it_casts) {
  arena *a = arena_new();
  bed b = bed_open("mlp-xs:layers=4,hidden=64", with(a, ""), DT_F16, "offload=params+states update=host");
  CHECK_EQ_I64(busy(&b, "host"), weights_of(&b) * (ADAM_BYTES + CAST_BYTES) * PS_A_BYTE);
  bed_close(&b);
  arena_free(a);
}

// On the device nothing but the update is different: states are never there, and gradients leave one layer after the other.
TEST(host_update_leaves_the_device) {
  arena *a = arena_new();
  const char *model = "mlp-xs:layers=16,hidden=64", *text = with(a, "");
  bed none = bed_open(model, text, DT_F16, "dp=1"), states = bed_open(model, text, DT_F16, "offload=states"),
      b = bed_open(model, text, DT_F16, "offload=states update=host");
  const i64 n = weights_of(&b);
  CHECK_EQ_I64(bytes_over(&states, "h2d", 1e12), 12 * n);
  CHECK(none.r.peak_bytes - b.r.peak_bytes >= 12 * n + 2 * n * 12 / 16);
  CHECK(b.r.peak_bytes < states.r.peak_bytes);
  bed_close(&none), bed_close(&states), bed_close(&b);
  arena_free(a);
}

// An f32 weight has no master copy: it goes down with its gradient, and comes back.
TEST(host_update_of_f32_takes_the_weight_along) {
  arena *a = arena_new();
  bed b = bed_open("mlp-xs:layers=4,hidden=64", with(a, ""), DT_F32, "offload=states update=host");
  const i64 n = weights_of(&b);
  CHECK_EQ_I64(bytes_over(&b, "d2h", 1e12), 8 * n);
  CHECK_EQ_I64(bytes_over(&b, "h2d", 1e12), 4 * n);
  CHECK_EQ_I64(busy(&b, "host"), n * 7 * 4 * PS_A_BYTE);
  bed_close(&b);
  arena_free(a);
}

// Ranks of a node share its memory and its processors; each has its own part of the states with zero=1.
TEST(host_update_is_shared_by_the_ranks_of_a_node) {
  arena *a = arena_new();
  const char *model = "mlp-xs:layers=4,hidden=64", *rate = with(a, ", rate: 1 GFLOP/s");
  for (u32 zero = 0; zero < 3; zero++) {
    const char *line = arena_printf(a, "dp=4 zero=%u offload=states update=host", zero);
    bed b = bed_open(model, with(a, ""), DT_F16, line), slow = bed_open(model, rate, DT_F16, line);
    const i64 n = weights_of(&b),
              times = zero ? 1 : 4; // with zero=2 gradients come in the backward, else by two layers
    CHECK_EQ_I64(busy(&b, "host"), times * n * (ADAM_BYTES + CAST_BYTES) * PS_A_BYTE);
    CHECK_EQ_I64(busy(&slow, "host"), times * n * 13 * 1000);
    CHECK_EQ_I64(b.r.cls[0].host_peak_bytes, (zero == 2 ? 14 : 13) * n * times / 4);
    bed_close(&b), bed_close(&slow);
  }
  arena_free(a);
}

// Ren and others, ZeRO-Offload, 2021, table 4: seconds of CPU-Adam on a DGX-2, by billions of parameters.
TEST(host_update_takes_what_cpu_adam_took) {
  static const struct { double billions, s; } of[] = {{1, 0.22}, {2, 0.51}, {4, 1.03}, {8, 2.41}, {10, 2.57}};
  bed b = bed_open("mlp-xs:layers=16,hidden=1024", NULL, DT_F16, "offload=states update=host");
  const double each = (double)busy(&b, "host") / 1e12 / (double)weights_of(&b);
  for (u32 k = 0; k < COUNT_OF(of); k++)
    CHECK_MSG(fabs(each * of[k].billions * 1e9 / of[k].s - 1) < 0.17, "%g billion: %.3f s, measured %.3f s",
              of[k].billions, each * of[k].billions * 1e9, of[k].s);
  bed_close(&b);
}

// Gradients of the last layers are on their way while the backward of the first ones runs: of the last microbatch, and where the
// device casts them, too. Of one microbatch at least half of what this backward takes copies run: it waits for them, so as not
// to hold them all. Sums over microbatches it has held before; they go in turns, beside weights that come two layers at a time.
TEST(host_update_sends_gradients_beside_the_backward) {
  static const struct {
    const char *line;
    u32 gbps; // of the link, over which a gradient takes no longer than its layer's backward, but where it is f32
  } rows[] = {{"dp=1", 8},      {"mb=2", 8}, {"grads=f32", 8}, {"mb=2 grads=f32", 8}, {"dp=2 zero=2 mb=2", 8},
              {"pp=2 mb=2", 16}};
  arena *a = arena_new();
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    // Products of 16 x 64 x 64 take as long as copies of their gradients at 8 GB/s.
    const char *line = rows[k].line;
    const char *text = arena_printf(a,
                                    "name: m\ndevices:\n  d: {rate: {f16: 128 GFLOP/s}, vector: 1e9 TFLOP/s, "
                                    "memory: 64 GiB, bandwidth: 1e9 GB/s, allocation: 1 B}\n"
                                    "nodes: {devices: 2 d, link: switch 1e6 GB/s, host: {bandwidth: %u GB/s, "
                                    "memory: 8 GiB, memory-bandwidth: 1e6 GB/s}}\n",
                                    rows[k].gbps);
    bed b = bed_open("mlp-xs:layers=16,hidden=64", text, DT_F16,
                     arena_printf(a, "%s offload=states update=host", line)),
        none = bed_open("mlp-xs:layers=16,hidden=64", text, DT_F16, line);
    const i64 mb = strstr(line, "mb=2") ? 2 : 1, down = busy(&b, "d2h"), up = busy(&b, "h2d"),
              last = busy(&none, "compute") * 2 / 3 / mb,
              behind = mb > 1 ? MAX(up, down - last + up / 8) + down / 16 : up + down - last / 2;
    CHECK(up > 0 && down >= up);
    CHECK_MSG(b.r.makespan_ps < none.r.makespan_ps + behind,
              "%s: %lld ps with, %lld without, %lld down, %lld up", line, (long long)b.r.makespan_ps,
              (long long)none.r.makespan_ps, (long long)down, (long long)up);
    bed_close(&b), bed_close(&none);
  }
  arena_free(a);
}

// What comes after the backward, sums over ranks, is a row of layers: while the host updates one, gradients of the next go and
// weights of the one before come. Each of the three takes as long here.
TEST(host_update_of_a_layer_is_beside_others) {
  static const char *const lines[] = {"dp=2", "dp=2 zero=1", "dp=2 grads=f32"};
  arena *a = arena_new();
  const char *text =
      "name: m\ndevices:\n  d: {rate: {f16: 1e9 TFLOP/s}, vector: 1e9 TFLOP/s, memory: 64 GiB, "
      "bandwidth: 1e9 GB/s, allocation: 1 B}\nnodes: {devices: 2 d, link: switch 1e6 GB/s, "
      "host: {bandwidth: 8 GB/s, memory: 8 GiB, memory-bandwidth: 256 GB/s}}\n";
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    bed b = bed_open("mlp-xs:layers=16,hidden=64", text, DT_F16,
                     arena_printf(a, "%s offload=states update=host", lines[k])),
        none = bed_open("mlp-xs:layers=16,hidden=64", text, DT_F16, lines[k]);
    const i64 down = busy(&b, "d2h"), up = busy(&b, "h2d"), host = busy(&b, "host"),
              longest = MAX(host, MAX(down, up)), turns = 8; // two layers a turn
    CHECK(up > 0 && host > up / 2);
    CHECK_MSG(b.r.makespan_ps <= none.r.makespan_ps + longest + (down + up + host) / turns,
              "%s: %lld ps with, %lld without, %lld down, %lld up, host %lld", lines[k],
              (long long)b.r.makespan_ps, (long long)none.r.makespan_ps, (long long)down, (long long)up,
              (long long)host);
    bed_close(&b), bed_close(&none);
  }
  arena_free(a);
}

// ---- refused ---------------------------------------------------------------------------------------------------
static void check_refused(const char *body, const char *why) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *text =
      arena_printf(a,
                   "mesh @m [dp=1]\nstream h2d, d2h, host\n"
                   "func @main on @m(%%w: f32[4] weight host, %%g: f32[4]) -> (f32[4]) {\n%s}\n",
                   body);
  prog *p = ir_parse(c, sym_of(c, "t.heddle"), text, strlen(text));
  CHECK_MSG(p != NULL, "%s", diag_render(c, a));
  REQUIRE(p != NULL);
  const bool ok = plan_validate(p);
  CHECK_MSG(ok == !why, "%s", text);
  if (why) CHECK_MSG(strstr(diag_render(c, a), why), "%s", diag_render(c, a));
  prog_free(p);
  arena_free(a);
  ctx_free(c);
}

TEST(host_update_reads_host_memory_alone) {
  check_refused("  %3 = copy %g {to=\"host\"} !d2h : f32[4]\n  %4 = sgd !%w, %3 !host update host : f32[4]\n"
                "  return %4\n",
                NULL);
  check_refused("  %3 = sgd !%w, %g !host update host : f32[4]\n  return %3\n",
                "sgd on the host in @main reads operand 2, g, which lies in the device's memory");
  check_refused(
      "  %3 = copy %g {to=\"host\"} !d2h : f32[4]\n  %4 = sgd !%w, %3 update : f32[4]\n  return %4\n",
      "sgd in @main reads operand 1, w, which lies in host memory");
}
