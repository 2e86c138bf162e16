// test_ir.c - the program's tables, the builder, copies.
#include "infer/infer.h"
#include "test.h"
#include <math.h>

static shape shape_of(dtype t, u32 nd, const i64 *dim) {
  shape s = {.t = t, .nd = nd};
  memcpy(s.dim, dim, nd * sizeof *dim);
  return s;
}

static type matrix(prog *p, i64 rows, i64 cols) {
  shape s = shape_of(DT_F32, 2, (i64[]){rows, cols});
  return type_tensor(p, &s, (layout){0}, (group){0});
}

TEST(ir_types_are_interned) {
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  u8 d = axis_add(p->sp, sym_of(c, "d"), 2, false);
  mesh m = mesh_add(p->sp, sym_of(c, "m"), &d, 1, 0, NULL);
  group g = group_all(p->sp, m);
  type a = matrix(p, 4, 6), b = matrix(p, 6, 4);
  CHECK(a.i && a.i != b.i && matrix(p, 4, 6).i == a.i);
  layout l = layout_with_split(p->sp, (layout){0}, d, 0, 2);
  type al = type_with(p, a, l, g);
  CHECK(al.i != a.i && type_with(p, al, (layout){0}, (group){0}).i == a.i);
  type t = type_tuple(p, (type[]){a, al}, 2);
  CHECK(type_tuple(p, (type[]){a, al}, 2).i == t.i && type_tuple(p, (type[]){al, a}, 2).i != t.i);
  CHECK(type_tuple(p, NULL, 0).i == type_tuple(p, NULL, 0).i);
  const type_info *on = type_get(p, type_on(p, t, g));
  CHECK(on->tuple && on->n == 2 && type_get(p, on->elem[0])->g.i == g.i && on->elem[1].i == al.i);
  group g1 = group_fix(p->sp, g, d, 1);
  const type_info *bound = type_get(p, type_bind(p, t, g1));
  CHECK(type_get(p, bound->elem[0])->g.i == g1.i && bound->elem[1].i == al.i);
  CHECK(type_bind(p, t, (group){0}).i == t.i);
  prog_free(p);
  ctx_free(c);
}

TEST(ir_attributes_are_interned) {
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  attr x[] = {attr_f(A_eps, 1e-5), attr_i(A_axis, -1), attr_v(A_perm, (i64[]){1, 0}, 2)};
  attr y[] = {x[2], x[1], x[0]};
  attrset a = attrs_of(p, x, 3);
  CHECK(a.i && attrs_of(p, y, 3).i == a.i && attrs_of(p, x, 2).i != a.i && attrs_of(p, NULL, 0).i == 0);
  CHECK_EQ_I64(attr_int(attrs_get(p, a), A_axis, 7), -1);
  const i64 *perm;
  CHECK(attr_ints(attrs_get(p, a), A_perm, &perm) == 2 && perm[0] == 1 && perm[1] == 0);
  attr minus = attr_f(A_value, -0.0), plus = attr_f(A_value, 0.0), nan = attr_f(A_value, NAN);
  CHECK(attrs_of(p, &minus, 1).i != attrs_of(p, &plus, 1).i);
  CHECK(attrs_of(p, &nan, 1).i == attrs_of(p, &nan, 1).i);
  attr s = attr_s(A_mode, sym_of(c, "edge")), t = attr_s(A_mode, sym_of(c, "wrap"));
  CHECK(attrs_of(p, &s, 1).i != attrs_of(p, &t, 1).i);
  prog_free(p);
  ctx_free(c);
}

TEST(ir_points) {
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  u8 mb = axis_add(p->sp, sym_of(c, "mb"), 4, true), cs = axis_add(p->sp, sym_of(c, "cs"), 2, true);
  u32 a = point_with(p, 0, mb, 0), b = point_with(p, 0, cs, 1), ab = point_with(p, a, cs, 1);
  CHECK(a && a != b && p->points.v[a].at[mb] == 0 && p->fixed.v[a] == (u64)1 << mb);
  CHECK_EQ_I64(point_merge(p, a, b), ab);
  CHECK_EQ_I64(point_merge(p, b, a), ab);
  CHECK_EQ_I64(point_merge(p, 0, a), a);
  CHECK_EQ_I64(point_merge(p, point_with(p, 0, mb, 3), a), a); // the inner coordinate wins
  prog_free(p);
  ctx_free(c);
}

TEST(ir_builder) {
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  func f = func_new(p, sym_of(c, "f"), (loc){0}), g = func_new(p, sym_of(c, "f"), (loc){0});
  CHECK_STR(sym_str(c, func_get(p, g)->name), "f.1");
  CHECK(func_find(p, sym_of(c, "f.1")).i == g.i && !func_find(p, sym_of(c, "h")).i);
  value x = func_param(p, f, matrix(p, 4, 8), sym_of(c, "x"), ROLE_INPUT);
  value w = func_param(p, f, matrix(p, 8, 2), (sym){0}, ROLE_WEIGHT);
  builder b = builder_at(p, f);
  value y = build2(&b, OP_matmul, x, w);
  REQUIRE(y);
  CHECK(val(func_get(p, f), y)->ty.i == matrix(p, 4, 2).i);
  value parts =
      build_n(&b, OP_split, &y, 1, (attr[]){attr_i(A_axis, 1), attr_v(A_sizes, (i64[]){1, 1}, 2)}, 2, 2);
  CHECK(parts && val(func_get(p, f), parts + 1)->ty.i == matrix(p, 4, 1).i);
  value t = build(&b, OP_pack, (value[]){x, y}, 2, NULL, 0);
  value u = build_n(&b, OP_unpack, &t, 1, NULL, 0, 2);
  CHECK(u && val(func_get(p, f), u)->ty.i == matrix(p, 4, 8).i);
  func_return(p, f, (value[]){y, x}, 2);
  CHECK(diag_count(c) == 0);

  // The first bad build is reported, all later ones do nothing.
  u32 n = func_get(p, f)->body.n;
  CHECK(!build2(&b, OP_matmul, w, x) && b.failed);
  CHECK(!build1(&b, OP_relu, x) && !build2(&b, OP_add, 0, x));
  CHECK_EQ_I64(diag_errors(c), 1);
  CHECK_EQ_I64(func_get(p, f)->body.n, n);

  builder h = builder_at(p, g);
  value a = func_param(p, g, matrix(p, 4, 8), (sym){0}, ROLE_INPUT);
  value v = func_param(p, g, matrix(p, 8, 2), (sym){0}, ROLE_WEIGHT);
  value r = build_call(&h, f, (value[]){a, v}, 2);
  CHECK(r && val(func_get(p, g), r)->ty.i == matrix(p, 4, 2).i &&
        val(func_get(p, g), r + 1)->ty.i == matrix(p, 4, 8).i);
  CHECK(!build_call(&h, f, (value[]){v, a}, 2) && h.failed);
  prog_free(p);
  ctx_free(c);
}

TEST(ir_uses) {
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  func f = func_new(p, sym_of(c, "main"), (loc){0});
  value x = func_param(p, f, matrix(p, 4, 4), (sym){0}, ROLE_INPUT);
  builder b = builder_at(p, f);
  value y = build2(&b, OP_add, x, x), z = build2(&b, OP_mul, x, y);
  func_return(p, f, (value[]){z, y}, 2);
  arena *a = arena_new();
  uses u = func_uses(a, func_get(p, f));
  CHECK_EQ_I64(u.begin[x + 1] - u.begin[x], 3);
  CHECK(u.use[u.begin[x]] == 1 && u.use[u.begin[x] + 1] == 1 && u.use[u.begin[x] + 2] == 2);
  CHECK(u.begin[y + 1] - u.begin[y] == 2 && u.use[u.begin[y]] == 2 && u.use[u.begin[y] + 1] == 0);
  CHECK(u.begin[z + 1] - u.begin[z] == 1 && u.use[u.begin[z]] == 0);
  arena_free(a);
  prog_free(p);
  ctx_free(c);
}

static const char small[] =
    "mesh @m [d=2]\ntime [mb=2]\nstream net\n"
    "func @f(%x: f32[4{d},2]) -> (f32[4,2]) {\n"
    "  %y = all_gather %x over d !net loc(\"node\", \"input 1\", \"a.onnx\")\n  return %y\n}\n"
    "func @main(%x: f32[4{d},2] @m = absent, %k: f32[3] @m const = [1, 2.5, nan]) -> () {\n"
    "  %y = call @f(!%x) @m\n  %t = pack %y, %k @m @mb=1 plan ^3\n"
    "  %p = pad %y {mode=\"edge\", pads=[0, 0, 1, 1]} @m\n  return\n}\n";

static const char *text_of(const prog *p, ctx *c) {
  strbuf b = {.a = ctx_arena(c)};
  ir_print(p, &b);
  return sb_str(&b);
}

TEST(ir_clone) {
  ctx *c = ctx_new(), *d = ctx_new();
  sym_of(d, "other symbols"); // so that ids differ between the sessions
  sym_of(d, "wrap");
  prog *p = ir_parse(c, sym_of(c, "small"), small, sizeof small - 1);
  if (!p) CHECK_STR(diag_render(c, ctx_arena(c)), "");
  REQUIRE(p);
  const char *text = text_of(p, c);
  prog *same = prog_clone(p, c), *moved = prog_clone(p, d);
  CHECK_STR(text_of(same, c), text);
  CHECK_STR(text_of(moved, d), text);
  CHECK(ir_verify(moved) && diag_count(d) == 0);
  // A copy interns to the ids of the original and does not touch it.
  u32 types = p->types.n, sets = p->attrsets.n;
  for (u32 k = 1; k < types; k++) {
    const type_info t = *type_get(moved, (type){k});
    type again = t.tuple ? type_tuple(moved, t.elem, t.n) : type_tensor(moved, &t.s, t.lay, t.g);
    CHECK_EQ_I64(again.i, k);
  }
  for (u32 k = 1; k < sets; k++)
    CHECK_EQ_I64(attrs_of(moved, moved->attrsets.v[k].v, moved->attrsets.v[k].n).i, k);
  builder b = builder_at(moved, moved->main);
  value x =
      build(&b, OP_full, NULL, 0, (attr[]){attr_t(A_dtype, DT_F32), attr_v(A_shape, (i64[]){77}, 1)}, 2);
  CHECK(x && p->types.n == types && p->attrsets.n == sets);
  CHECK_STR(text_of(p, c), text);
  prog_free(p); // constant bytes are shared by the copies: they are not looked at below
  prog_free(same);
  prog_free(moved);
  ctx_free(c);
  ctx_free(d);
}

// Names are made unique in linear time: 0.1 s for 100,000 functions of one name.
TEST(ir_functions_of_one_name) {
  enum { MANY = 100000 };
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  const sym f = sym_of(c, "f");
  for (u32 k = 0; k < MANY; k++) func_new(p, f, (loc){0});
  CHECK_STR(sym_str(c, func_get(p, (func){1})->name), "f");
  CHECK_STR(sym_str(c, func_get(p, (func){MANY})->name), "f.99999");
  CHECK(func_find(p, sym_of(c, "f.500")).i == 501 && !func_find(p, sym_of(c, "f.100000")).i);
  p->funcs.n = 501; // the last ones are dropped, and their names are free again
  CHECK(!func_find(p, sym_of(c, "f.500")).i);
  CHECK_STR(sym_str(c, func_get(p, func_new(p, f, (loc){0}))->name), "f.500");
  p->funcs.v[1] = p->funcs.v[501];
  p->funcs.n = 2;
  func_renumbered(p);
  CHECK(!func_find(p, f).i && func_find(p, sym_of(c, "f.500")).i == 1);
  CHECK_STR(sym_str(c, func_get(p, func_new(p, f, (loc){0}))->name), "f");
  CHECK_STR(sym_str(c, func_get(p, func_new(p, f, (loc){0}))->name), "f.1");
  prog *q = prog_clone(p, c);
  CHECK(func_find(q, sym_of(c, "f.1")).i == 3);
  CHECK_STR(sym_str(c, func_get(q, func_new(q, f, (loc){0}))->name), "f.2");
  prog_free(q);
  prog_free(p);
  ctx_free(c);
}
