// test_eval.c - the numbers interpreter: on one rank, on many, in time; every collective by its own rule.
#include "eval/eval.h"
#include "kernel/kernel.h"
#include "test.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

static ctx *C;
static prog *P;
static arena *A;
static builder B;

static void begin(void) {
  C = ctx_new();
  A = arena_new();
  P = prog_new(C);
  P->main = func_new(P, sym_of(C, "main"), (loc){0});
  B = builder_at(P, P->main);
}
static void end(void) {
  prog_free(P);
  arena_free(A);
  ctx_free(C);
}

static u8 axis(const char *name, u32 n, bool temporal) {
  return axis_add(P->sp, sym_of(C, name), n, temporal);
}
static group mesh_group(const char *name, u32 n, const u8 *axes) {
  return group_all(P->sp, mesh_add(P->sp, sym_of(C, name), axes, n, 0, NULL));
}

// "[8{dp},4]+tp" of f32, or of i64 with an i in front.
static type ty(const char *text, group g) {
  shape s = {.t = *text == 'i' ? DT_I64 : DT_F32};
  text += *text == 'i';
  layout l;
  const char *error = NULL;
  if (!CHECK_MSG(layout_parse(P->sp, &text, &s.nd, s.dim, &l, &error), "%s: %s", text, error ? error : ""))
    test_leave();
  return type_tensor(P, &s, l, g);
}
static value param(const char *text, group g, role r) {
  static int n;
  return func_param(P, B.f, ty(text, g), sym_fmt(C, "x%d", n++), r);
}
static attr over(u8 a) { return attr_x(A_over, arena_dup(A, &a, 1), 1); }

static value put(opcode op, u32 n, const value *x, type t, u32 nat, const attr *at) {
  builder b = B;
  b.g = val_type(P, func_get(P, B.f), *x & OPD_VALUE)->g; // where the operand is
  return emit_res(P, B.f, emit(&b, op, attrs_of(P, at, nat), x, n, &t, 1));
}
static value comm(opcode op, u8 a, value x, const char *text, group g) {
  attr at = over(a);
  return put(op, 1, &x, ty(text, g), 1, &at);
}
static value matmul(value x, value y, const char *text, group g) {
  return put(OP_matmul, 2, (value[]){x, y}, ty(text, g), 0, NULL);
}
static void ret(u32 n, const value *v) { func_return(P, B.f, v, n); }

enum { MANY = 16 };
static eval_array In[MANY], Out[MANY];
static bool go(bool f64) {
  const func_info *f = func_get(P, P->main);
  if (!In[0].data && !CHECK(eval_random(P, 3, In, f->nparams, A))) test_leave();
  return eval_run(P, &(eval_opts){.as_f64 = f64}, In, f->nparams, Out, f->rets.n, A);
}
static void must_go(bool f64) {
  bool ok = go(f64);
  if (!CHECK_MSG(ok, "%s", diag_render(C, A))) test_leave();
}
static void restart(void) {
  memset(In, 0, sizeof In);
  begin();
}
static double in(u32 k, i64 i) {
  double v;
  ker_convert(&v, DT_F64, (char *)In[k].data + (size_t)i * dtype_bytes(In[k].s.t), In[k].s.t, 1);
  return v;
}
static void check_same(u32 k, u32 of) {
  i64 at;
  double d = eval_difference(&Out[k], &In[of], &at);
  CHECK_MSG(d == 0, "result %u differs from input %u at %lld", k, of, (long long)at);
}
// Out[k] against the product of inputs a [m,k] and b [k,n].
static void check_product(u32 res, u32 a, u32 b, double tol) {
  i64 m = In[a].s.dim[0], kk = In[a].s.dim[1], n = In[b].s.dim[1];
  double *want = ZNEWN(A, double, m *n);
  for (i64 i = 0; i < m; i++)
    for (i64 j = 0; j < n; j++)
      for (i64 k = 0; k < kk; k++) want[i * n + j] += in(a, i * kk + k) * in(b, k * n + j);
  eval_array w = {In[a].s, want};
  w.s.t = DT_F64;
  w.s.dim[1] = n;
  CHECK(eval_difference(&Out[res], &w, NULL) < tol);
}
static diag_id last_diag(void) { return diag_count(C) ? diag_get(C, diag_count(C) - 1).id : DIAG_NONE; }

// ---- one rank ------------------------------------------------------------------------------------------

TEST(eval_single_device) {
  restart();
  value x = param("[4,6]", (group){0}, ROLE_INPUT), w = param("[6,3]", (group){0}, ROLE_WEIGHT);
  value y = build2(&B, OP_matmul, x, w), z = build2(&B, OP_add, y, y);
  ret(2, (value[]){y, z});
  must_go(true);
  check_product(0, 0, 1, 1e-14);
  CHECK_EQ_I64(Out[0].s.t, DT_F64);
  must_go(false);
  CHECK_EQ_I64(Out[0].s.t, DT_F32);
  check_product(0, 0, 1, 1e-6);
  end();
}

TEST(eval_calls_and_tuples) {
  restart();
  func f = func_new(P, sym_of(C, "f"), (loc){0});
  B = builder_at(P, f);
  value a = param("[3]", (group){0}, ROLE_INPUT), b = param("[3]", (group){0}, ROLE_INPUT);
  value t = build(&B, OP_pack, (value[]){a, b}, 2, NULL, 0);
  value u = build_n(&B, OP_unpack, &t, 1, NULL, 0, 2);
  value s = build2(&B, OP_sub, u + 1, u);
  ret(1, &s);
  B = builder_at(P, P->main);
  value x = param("[3]", (group){0}, ROLE_INPUT), y = param("[3]", (group){0}, ROLE_INPUT);
  value c = build_call(&B, f, (value[]){x, y}, 2), d = build_call(&B, f, (value[]){c, x}, 2);
  ret(1, &d);
  must_go(true);
  for (i64 i = 0; i < 3; i++)
    CHECK_CLOSE(((double *)Out[0].data)[i], in(0, i) - (in(1, i) - in(0, i)), 1e-12);
  end();
}

TEST(eval_leaves_inputs_alone) {
  restart();
  value x = param("[3]", (group){0}, ROLE_INPUT),
        y = build1(&B, OP_neg, build1(&B, OP_neg, build1(&B, OP_neg, x)));
  value z = build1(&B, OP_identity, y), donated = z | OPD_DONATED;
  type t = ty("[3]", (group){0});
  value w = emit_res(P, B.f, emit(&B, OP_neg, (attrset){0}, &donated, 1, &t, 1));
  ret(1, &w);
  must_go(true);
  check_same(0, 0);
  end();
}

// ---- many ranks ----------------------------------------------------------------------------------------

TEST(eval_megatron_pair) {
  restart();
  u8 dp = axis("dp", 2, false), tp = axis("tp", 4, false);
  group g = mesh_group("m", 2, (u8[]){dp, tp});
  value x = param("[8{dp},6]", g, ROLE_INPUT), w = param("[6,12{tp}]", g, ROLE_WEIGHT),
        v = param("[12{tp},5]", g, ROLE_WEIGHT);
  value h = matmul(x, w, "[8{dp},12{tp}]", g), y = matmul(h, v, "[8{dp},5]+tp", g);
  value z = comm(OP_all_reduce, tp, y, "[8{dp},5]", g);
  value q = comm(OP_reduce_scatter, tp, y, "[8{dp,tp},5]", g);
  value r = comm(OP_all_gather, dp, q, "[8{tp:1},5]", g);
  ret(5, (value[]){h, y, z, q, r});
  must_go(true);
  check_product(0, 0, 1, 1e-14);
  for (u32 k = 2; k < 5; k++) CHECK(eval_difference(&Out[k], &Out[1], NULL) < 1e-14);
  In[3] = Out[0];
  check_product(2, 3, 2, 1e-13);
  end();
}

TEST(eval_moves_between_layouts) {
  restart();
  u8 a = axis("a", 2, false), b = axis("b", 3, false);
  group g = mesh_group("m", 2, (u8[]){a, b});
  value x = param("[12{a},6]", g, ROLE_INPUT);
  value s = comm(OP_shard, b, x, "[12{a},6{b}]", g), t = comm(OP_all_to_all, b, s, "[12{a,b},6]", g);
  value u = comm(OP_permute, 0, t, "[12{b:4,a:2},6]", g), w = comm(OP_all_gather, b, u, "[12{a:2},6]", g);
  value p = comm(OP_partial, b, w, "[12{a:2},6]+b", g), q = comm(OP_all_reduce, b, p, "[12{a:2},6]", g);
  ret(6, (value[]){s, t, u, w, p, q});
  // permute without `over`
  func_info *f = func_get(P, P->main);
  f->body.v[val(f, u)->def - 1].at = (attrset){0};
  must_go(true);
  for (u32 k = 0; k < 6; k++) check_same(k, 0);
  end();
}

TEST(eval_reductions_are_the_layouts) {
  restart();
  u8 a = axis("a", 3, false);
  group g = mesh_group("m", 1, &a);
  value x = param("[6{a},4]", g, ROLE_INPUT);
  i64 dims[] = {0};
  attr at[] = {attr_v(A_axes, dims, 1), attr_i(A_keepdims, 0)};
  value m = put(OP_reduce_max, 1, &x, ty("[4] max a", g), 2, at);
  value n = put(OP_reduce_min, 1, &x, ty("[4] min a", g), 2, at);
  value y = comm(OP_all_reduce, a, m, "[4]", g), z = comm(OP_all_reduce, a, n, "[4]", g);
  value mean = put(OP_reduce_mean, 1, &x, ty("[4]+a", g), 2, at);
  ret(4, (value[]){m, y, z, mean});
  must_go(true);
  for (i64 j = 0; j < 4; j++) {
    double top = -INFINITY, low = INFINITY, sum = 0;
    for (i64 i = 0; i < 6; i++) {
      top = fmax(top, in(0, i * 4 + j));
      low = fmin(low, in(0, i * 4 + j));
      sum += in(0, i * 4 + j) / 6;
    }
    CHECK(((double *)Out[0].data)[j] == top);
    CHECK(((double *)Out[1].data)[j] == top);
    CHECK(((double *)Out[2].data)[j] == low);
    CHECK_CLOSE(((double *)Out[3].data)[j], sum, 1e-12);
  }
  end();
}

TEST(eval_rooted_collectives) {
  restart();
  u8 a = axis("a", 2, false), b = axis("b", 3, false);
  group g = mesh_group("m", 2, (u8[]){a, b}), root = group_fix(P->sp, g, b, 1);
  value x = param("[6{b},4]", g, ROLE_INPUT), w = param("[4,6{b}]", g, ROLE_INPUT),
        v = param("[6{b},2]", g, ROLE_INPUT);
  attr at[] = {over(b), attr_i(A_root, 1)};
  value y = put(OP_gather_to, 1, &x, ty("[6,4]", root), 2, at);
  value z = put(OP_broadcast, 1, &y, ty("[6,4]", g), 2, at);
  value p = matmul(w, v, "[4,2]+b", g);
  value q = put(OP_reduce, 1, &p, ty("[4,2]", root), 2, at);
  value s2 = put(OP_scatter_from, 1, &y, ty("[6{b},4]", g), 2, at);
  ret(5, (value[]){y, z, s2, p, q});
  must_go(true);
  for (u32 k = 0; k < 3; k++) check_same(k, 0);
  check_product(3, 1, 2, 1e-14);
  check_product(4, 1, 2, 1e-14);
  end();
}

TEST(eval_sends_between_groups) {
  restart();
  u8 pp = axis("pp", 2, false), tp = axis("tp", 2, false), q = axis("q", 3, false);
  group all = mesh_group("m", 2, (u8[]){pp, tp});
  group g0 = group_fix(P->sp, all, pp, 0), g1 = group_fix(P->sp, all, pp, 1);
  group other = group_all(P->sp, mesh_add(P->sp, sym_of(C, "o"), &q, 1, 4, NULL));
  value x = param("[6{tp},4]", g0, ROLE_INPUT), w = param("[6{tp},5]", g0, ROLE_INPUT);
  i64 perm[] = {1, 0};
  attr tr = attr_v(A_perm, perm, 2);
  value xt = put(OP_transpose, 1, &x, ty("[4,6{tp}]", g0), 1, &tr);
  value p = matmul(xt, w, "[4,5]+tp", g0);
  value y = put(OP_send, 1, &x, ty("[6{tp},4]", g1), 0, NULL); // member to member
  value z = put(OP_send, 1, &y, ty("[6{q},4]", other), 0, NULL);
  value r = put(OP_send, 1, &z, ty("[6,4]", g0), 0, NULL); // everyone gets everything
  value p1 = put(OP_send, 1, &p, ty("[4,5]+tp", g1), 0, NULL);
  ret(4, (value[]){y, z, r, p1});
  must_go(true);
  for (u32 k = 0; k < 3; k++) check_same(k, 0);
  In[2].s = (shape){.t = DT_F32, .nd = 2, .dim = {4, 6}};
  float *t = NEWN(A, float, 24);
  for (i64 i = 0; i < 24; i++) t[i % 4 * 6 + i / 4] = (float)in(0, i);
  In[2].data = t;
  check_product(3, 2, 1, 1e-14);
  end();
}

TEST(eval_uneven_pieces_and_halos) {
  restart();
  u8 a = axis("a", 3, false);
  group g = mesh_group("m", 1, &a);
  value x = param("[9{a:0-4|-|4-9},2]", g, ROLE_INPUT);
  value y = comm(OP_all_gather, a, x, "[9,2]", g);
  value z = comm(OP_shard, a, y, "[9{a},2]", g);
  value h = comm(OP_halo_exchange, a, z, "[9{a:0-4|2-7|5-9},2]", g);
  value p = comm(OP_permute, a, h, "[9{a:0-1+8-9|1-2+7-8|2-7},2]", g); // zig-zag
  ret(4, (value[]){y, z, h, p});
  must_go(true);
  for (u32 k = 0; k < 4; k++) check_same(k, 0);
  end();
}

TEST(eval_collectives_stay_in_their_group) {
  restart();
  u8 a = axis("a", 2, false), b = axis("b", 2, false);
  group g = mesh_group("m", 2, (u8[]){a, b});
  value x = param("[8{a,b},3]", g, ROLE_INPUT);
  value y = comm(OP_all_gather, b, x, "[8,3]", g); // a's pieces are elsewhere
  ret(1, &y);
  CHECK(!go(true));
  CHECK_EQ_I64(last_diag(), E_COVERAGE);
  end();

  restart();
  a = axis("a", 2, false), b = axis("b", 2, false);
  g = mesh_group("m", 2, (u8[]){a, b});
  x = param("[8{a},4]", g, ROLE_INPUT);
  value w = param("[8{a},3]", g, ROLE_INPUT);
  i64 perm[] = {1, 0};
  attr tr = attr_v(A_perm, perm, 2);
  value p = matmul(put(OP_transpose, 1, &x, ty("[4,8{a}]", g), 1, &tr), w, "[4,3]+a", g);
  y = comm(OP_all_reduce, b, p, "[4,3]", g); // over the wrong axis
  ret(1, &y);
  CHECK(!go(true));
  CHECK_EQ_I64(last_diag(), E_LAYOUT);
  end();
}

TEST(eval_disagreeing_ranks_are_found) {
  restart();
  u8 a = axis("a", 2, false);
  group g = mesh_group("m", 1, &a);
  value x = param("[8{a}]", g, ROLE_INPUT);
  i64 whole[] = {4};
  attr at = attr_v(A_shape, whole, 1);
  value y = put(OP_reshape, 1, &x, ty("[4]", g), 1, &at); // claims that both hold the same four
  ret(1, &y);
  CHECK(!go(true));
  CHECK_EQ_I64(last_diag(), E_DIFFERS);
  end();
}

// ---- time ----------------------------------------------------------------------------------------------

TEST(eval_microbatches) {
  restart();
  u8 dp = axis("dp", 2, false), mb = axis("mb", 3, true);
  group g = mesh_group("m", 1, &dp);
  func f = func_new(P, sym_of(C, "step"), (loc){0});
  B = builder_at(P, f);
  value x = param("[12{mb,dp},4]", (group){0}, ROLE_INPUT), w = param("[4,3]", (group){0}, ROLE_WEIGHT);
  value y = matmul(x, w, "[12{mb,dp},3]", (group){0});
  i64 perm[] = {1, 0};
  attr tr = attr_v(A_perm, perm, 2);
  value xt = put(OP_transpose, 1, &x, ty("[4,12{mb,dp}]", (group){0}), 1, &tr);
  value gw = matmul(xt, y, "[4,3]+mb+dp", (group){0});
  ret(2, (value[]){y, gw});
  B = builder_at(P, P->main);
  B.g = g;
  value whole = param("[12{dp:2},4]", g, ROLE_INPUT), weight = param("[4,3]", g, ROLE_WEIGHT);
  value ys[3], gs[3];
  for (u32 k = 0; k < 3; k++) {
    attr at[] = {over(mb), attr_i(A_at, k)};
    value xk = put(OP_part, 1, &whole, ty("[12{mb,dp},4]", g), 2, at);
    B.coord = point_with(P, 0, mb, (u16)k);
    type t[2] = {ty("[12{mb,dp},3]", g), ty("[4,3]+mb+dp", g)};
    value args[2] = {xk, weight};
    u32 i = emit(&B, OP_call, (attrset){0}, args, 2, t, 2);
    func_get(P, P->main)->body.v[i - 1].callee = f;
    ys[k] = emit_res(P, P->main, i);
    gs[k] = ys[k] + 1;
    B.coord = 0;
  }
  attr at = over(mb);
  value yy = put(OP_join, 3, ys, ty("[12{dp:2},3]", g), 1, &at);
  value gg = put(OP_join, 3, gs, ty("[4,3]+dp", g), 1, &at);
  value ga = comm(OP_all_reduce, dp, gg, "[4,3]", g);
  ret(2, (value[]){yy, ga});
  must_go(true);
  check_product(0, 0, 1, 1e-14);
  In[2].s = (shape){.t = DT_F64, .nd = 2, .dim = {4, 12}};
  double *t = NEWN(A, double, 48);
  for (i64 i = 0; i < 48; i++) t[i % 4 * 12 + i / 4] = in(0, i);
  In[2].data = t;
  In[3] = Out[0];
  check_product(1, 2, 3, 1e-13);
  // A join goes by position: swapped parts are another value.
  value swapped = put(OP_join, 3, (value[]){ys[1], ys[0], ys[2]}, ty("[12{dp:2},3]", g), 1, &at);
  ret(1, &swapped);
  must_go(true);
  CHECK(eval_difference(&Out[0], &In[3], NULL) > 0.01);
  end();
}

// A gradient that was accumulated over the microbatches is complete as it is: it is the same elements, not their sum with
// nothing, of which a negative zero would be a positive one.
TEST(eval_join_of_one_summand_is_that_summand) {
  restart();
  u8 mb = axis("mb", 3, true);
  attr at = over(mb);
  value x = param("[4]", (group){0}, ROLE_INPUT);
  B.coord = point_with(P, 0, mb, 0);
  value p = put(OP_partial, 1, &x, ty("[4]+mb", (group){0}), 1, &at);
  B.coord = 0;
  value y = put(OP_join, 1, &p, ty("[4]", (group){0}), 1, &at);
  ret(1, &y);
  In[0] = (eval_array){.s = {.t = DT_F64, .nd = 1, .dim = {4}}, .data = (double[]){-0.0, -0.0, 1, -0.0}};
  must_go(true);
  for (u32 k = 0; k < 4; k++) CHECK(k == 2 || signbit(((const double *)Out[0].data)[k]));
  end();
}

TEST(eval_time_must_be_fixed) {
  restart();
  u8 dp = axis("dp", 2, false);
  axis("mb", 2, true);
  group g = mesh_group("m", 1, &dp);
  value x = param("[8{dp}]", g, ROLE_INPUT);
  value y = put(OP_neg, 1, &x, ty("[8{mb,dp}]", g), 0, NULL);
  ret(1, &y);
  CHECK(!go(true));
  CHECK_EQ_I64(last_diag(), E_LAYOUT);
  end();
}

TEST(eval_joins_groups) {
  restart();
  u8 pp = axis("pp", 2, false), tp = axis("tp", 2, false);
  group all = mesh_group("m", 2, (u8[]){pp, tp});
  group g0 = group_fix(P->sp, all, pp, 0), g1 = group_fix(P->sp, all, pp, 1);
  value x = param("[4{tp}]", g0, ROLE_INPUT), y = param("[4{tp}]", g1, ROLE_INPUT);
  attr at = over(pp);
  value j = put(OP_join, 2, (value[]){x, y}, ty("[4{tp}]+pp", all), 1, &at);
  value s = comm(OP_all_reduce, pp, j, "[4{tp}]", all);
  attr pt[] = {over(pp), attr_i(A_at, 1)};
  value b = put(OP_part, 1, &s, ty("[4{tp}]", g1), 2, pt);
  ret(3, (value[]){j, s, b});
  must_go(true);
  for (u32 k = 0; k < 3; k++)
    for (i64 i = 0; i < 4; i++) CHECK_CLOSE(((double *)Out[k].data)[i], in(0, i) + in(1, i), 1e-14);
  end();
}

// ---- programs as text ----------------------------------------------------------------------------------

static void run_example(const char *path, eval_array *out, u32 nout) {
  file_view f;
  REQUIRE(file_map(C, path, &f));
  prog *p = ir_parse(C, sym_of(C, path), (const char *)f.data, f.size);
  file_unmap(&f);
  if (!CHECK_MSG(p, "%s", diag_render(C, A))) test_leave();
  u32 n = func_get(p, p->main)->nparams;
  eval_array *x = ZNEWN(A, eval_array, n);
  bool ok = eval_random(p, 1, x, n, A) && eval_run(p, &(eval_opts){.as_f64 = true}, x, n, out, nout, A);
  prog_free(p);
  if (!CHECK_MSG(ok, "%s: %s", path, diag_render(C, A))) test_leave();
}

// One step of training, three ways: two orders of one pipeline, one device that computes activations again.
TEST(eval_distir_examples_compute_the_same) {
  restart();
  static const char *const path[] = {"examples/distir/fig8_checkpointing.heddle",
                                     "examples/distir/fig2_pipeline.heddle",
                                     "examples/distir/fig2_swapped.heddle"};
  eval_array want[4], got[4];
  run_example(path[0], want, 4);
  for (u32 i = 1; i < COUNT_OF(path); i++) {
    run_example(path[i], got, 4);
    for (u32 k = 0; k < 4; k++)
      CHECK_MSG(eval_difference(&got[k], &want[k], NULL) < 1e-12, "%s: result %u", path[i], k);
  }
  end();
}

// ---- memory --------------------------------------------------------------------------------------------

// Every allocation fails once: the run jumps to its caller and leaves nothing behind.
TEST(eval_runs_out_of_memory) {
  restart();
  u8 a = axis("a", 2, false);
  group g = mesh_group("m", 1, &a);
  value x = param("[8{a},4]", g, ROLE_INPUT), w = param("[4,8{a}]", g, ROLE_INPUT);
  value y = comm(OP_all_gather, a, x, "[8,4]", g), z = comm(OP_all_gather, a, w, "[4,8]", g);
  value p = matmul(y, z, "[8,8]", g);
  ret(2, (value[]){p, x});
  must_go(true);
  u32 failures = 0;
  for (i64 n = 1; n < 1000; n++) {
    jmp_buf here, *outer = base_oom;
    volatile bool done = false;
    base_fail_after = n;
    if (setjmp(here) == 0) {
      base_oom = &here;
      go(true);
      done = true;
    }
    base_oom = outer;
    base_fail_after = 0;
    if (done) break;
    failures++;
  }
  CHECK(failures > 8 && failures < 900);
  end();
}

// ---- inputs --------------------------------------------------------------------------------------------

TEST(eval_random_respects_uses) {
  restart();
  value table = param("[7,3]", (group){0}, ROLE_WEIGHT), ids = param("i[50]", (group){0}, ROLE_INPUT);
  value labels = param("i[50]", (group){0}, ROLE_LABEL), gain = param("[3]", (group){0}, ROLE_WEIGHT);
  i64 two[] = {25, 2};
  attr at = attr_v(A_shape, two, 2), ax = attr_i(A_axis, 0);
  value r = build(&B, OP_reshape, &ids, 1, &at, 1);
  value e = build(&B, OP_gather, (value[]){table, r}, 2, &ax, 1);
  i64 flat[] = {50, 3};
  at = attr_v(A_shape, flat, 2);
  value x = build(&B, OP_reshape, &e, 1, &at, 1);
  value n = build2(&B, OP_rmsnorm, x, gain), l = build2(&B, OP_cross_entropy, n, labels);
  ret(1, &l);
  must_go(true);
  i64 top = 0, top_label = 0;
  for (i64 i = 0; i < 50; i++) {
    top = MAX(top, (i64)in(1, i));
    top_label = MAX(top_label, (i64)in(2, i));
  }
  CHECK(top <= 6 && top > 3 && top_label == 2);
  CHECK(fabs(in(3, 0) - 1) < 0.5);
  CHECK(isfinite(((double *)Out[0].data)[0]));
  eval_array again[MANY];
  REQUIRE(eval_random(P, 3, again, 4, A));
  CHECK(!memcmp(again[0].data, In[0].data, 7 * 3 * 4));
  end();
}

TEST(eval_refuses_inputs_that_do_not_fit) {
  restart();
  value x = param("[4,6]", (group){0}, ROLE_INPUT);
  ret(1, &x);
  must_go(true);
  In[0].s.dim[0] = 5;
  CHECK(!go(true));
  CHECK_EQ_I64(last_diag(), E_SHAPE);
  In[0].s.dim[0] = 4;
  In[0].s.t = DT_I64;
  CHECK(!go(true));
  CHECK_EQ_I64(last_diag(), E_DTYPE);
  end();
}

// ---- files ---------------------------------------------------------------------------------------------

static void check_file_round(dtype t) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/heddle-test-%d.npz", (int)getpid());
  eval_array x = {{.t = t, .nd = 2, .dim = {3, 5}}, arena_alloc(A, 15 * 8)};
  double v[15];
  for (int i = 0; i < 15; i++) v[i] = i - (dtype_kind_of(t) == DK_UINT || t == DT_BOOL ? 0 : 7);
  ker_convert(x.data, t, v, DT_F64, 15);
  eval_array scalar = {{.t = t}, x.data}, empty = {{.t = t, .nd = 1, .dim = {0}}, x.data};
  eval_named items[] = {{"a", x}, {"b.c", scalar}, {"empty", empty}}, *got;
  u32 n;
  REQUIRE(npz_write(C, path, items, 3));
  if (CHECK(npz_read(C, A, path, &got, &n)) && CHECK_EQ_I64(n, 3)) {
    CHECK_STR(got[1].name, "b.c");
    CHECK(shape_same(&got[0].x.s, &x.s) || t == DT_BF16);
    CHECK(eval_difference(&got[0].x, &x, NULL) == 0);
    CHECK_EQ_I64(got[1].x.s.nd, 0);
    CHECK_EQ_I64(got[2].x.s.dim[0], 0);
  }
  REQUIRE(npy_write(C, path, &x));
  eval_array back;
  CHECK(npy_read(C, A, path, &back) && eval_difference(&back, &x, NULL) == 0);
  unlink(path);
}

TEST(eval_numpy_files) {
  begin();
  for (dtype t = 1; t < DT_COUNT; t++) check_file_round(t);
  end();
}

TEST(eval_damaged_numpy_files) {
  begin();
  char path[64];
  snprintf(path, sizeof path, "/tmp/heddle-test-%d.npz", (int)getpid());
  eval_array x = {{.t = DT_F32, .nd = 2, .dim = {3, 5}}, arena_zalloc(A, 60)}, got;
  eval_named item = {"a", x}, *items;
  REQUIRE(npz_write(C, path, &item, 1));
  file_view f;
  REQUIRE(file_map(C, path, &f));
  u8 *copy = arena_dup(A, f.data, f.size);
  size_t size = f.size;
  file_unmap(&f);
  u64 r = 5;
  for (int k = 0; k < 400; k++) { // cut or changed: refused or read, never worse, never refused in silence
    u8 *bad = arena_dup(A, copy, size);
    size_t n = k % 2 ? size : rng_next(&r) % size;
    for (int j = 0; j < 3; j++) bad[rng_next(&r) % size] = (u8)rng_next(&r);
    REQUIRE(file_write(C, path, bad, n));
    u32 count, before = diag_count(C);
    bool ok = npz_read(C, A, path, &items, &count);
    CHECK(ok || diag_count(C) > before);
    before = diag_count(C);
    ok = npy_read(C, A, path, &got);
    CHECK(ok || diag_count(C) > before);
  }
  unlink(path);
  end();
}

TEST(eval_reads_what_numpy_compressed) {
  const char *path = test_data("reference/gpt_small_io.npz");
  begin();
  eval_named *items;
  u32 n;
  REQUIRE(npz_read(C, A, path, &items, &n));
  CHECK(n > 0);
  end();
}
