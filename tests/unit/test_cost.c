// test_cost.c - costs of instructions and communication against figures worked out by hand, caches against no
// caches.
#include "cost/cost.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  machine *m;
  coster *k;
  prog *p;
  u8 dp, tp;
  mesh mesh;
} bed;

static bed bed_new(const char *spec, const char *accounting, u32 dp, u32 tp) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  cost_opts o = {.accounting = accounting};
  b.m = machine_load(b.c, b.a, spec);
  b.k = b.m ? coster_new(b.c, b.a, b.m, &o) : NULL;
  b.p = prog_new(b.c);
  b.dp = axis_add(b.p->sp, sym_of(b.c, "dp"), dp, false);
  b.tp = axis_add(b.p->sp, sym_of(b.c, "tp"), tp, false);
  b.mesh = mesh_add(b.p->sp, sym_of(b.c, "m"), (u8[]){b.dp, b.tp}, 2, 0, NULL);
  return b;
}

static void bed_free(bed *b) {
  prog_free(b->p);
  arena_free(b->a);
  ctx_free(b->c);
}

static layout split(bed *b, u8 axis, u8 dim, i64 stride) {
  return layout_with_split(b->p->sp, (layout){0}, axis, dim, stride);
}

static type matrix(bed *b, dtype t, i64 m, i64 n, layout l, group g) {
  const shape s = {t, 2, {m, n}};
  return type_tensor(b->p, &s, l, g);
}

// One instruction in a function of its own; its costs in ps.
static u32 cost_of(bed *b, opcode op, attrset at, const type *opd, u32 nopd, const type *res, u32 nres,
                   group g, i64 *ps) {
  func f = func_new(b->p, sym_of(b->c, "f"), (loc){0});
  u32 o[8];
  for (u32 i = 0; i < nopd; i++) o[i] = func_param(b->p, f, opd[i], (sym){0}, ROLE_INPUT);
  builder bl = builder_at(b->p, f);
  bl.g = g;
  const u32 i = emit(&bl, op, at, o, nopd, res, nres);
  const func_info *fi = func_get(b->p, f);
  return cost_instr(b->k, b->p, fi, &fi->body.v[i - 1], g, ps);
}

TEST(cost_matmul_roofline) {
  bed b = bed_new("dgx-a100-80", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  // 4096 x 4096 x 4096 over tp in n and dp in m: 2 * 2048 * 4096 * 1024 flops at an efficiency between 0.65
  // and 0.81.
  const type x = matrix(&b, DT_F16, 4096, 4096, split(&b, b.dp, 0, 2048), g);
  const type w = matrix(&b, DT_F16, 4096, 4096, split(&b, b.tp, 1, 1024), g);
  const layout both = layout_with_split(b.p->sp, split(&b, b.dp, 0, 2048), b.tp, 1, 1024);
  const type y = matrix(&b, DT_F16, 4096, 4096, both, g);
  i64 ps[8];
  CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, w}, 2, &y, 1, g, ps), 1);
  const double flops = 2.0 * 2048 * 4096 * 1024, lo = 1e10 / 0.65, hi = 1e11 / 0.81;
  const double work = lo + (hi - lo) * (flops - 1e10) / 9e10;
  CHECK_CLOSE((double)ps[0], work / 312e12 * 1e12 + 4e6, 1e-8);
  CHECK_EQ_I64(coster_events(b.k), 1);
  bed_free(&b);
}

TEST(cost_elementwise_and_views) {
  bed b = bed_new("dgx-a100-80", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const type x = matrix(&b, DT_F32, 8192, 8192, split(&b, b.tp, 0, 2048), g);
  i64 ps[8];
  CHECK_EQ_I64(cost_of(&b, OP_add, (attrset){0}, (type[]){x, x}, 2, &x, 1, g, ps), 1);
  const double bytes = 3 * 4.0 * 2048 * 8192, lo = 1e8 / 0.73, hi = 1e9 / 0.82;
  const double work = lo + (hi - lo) * (bytes - 1e8) / 9e8;
  CHECK_CLOSE((double)ps[0], work / 2039e9 * 1e12 + 4e6, 1e-8);
  CHECK_EQ_I64(cost_of(&b, OP_identity, (attrset){0}, &x, 1, &x, 1, g, ps), 1);
  CHECK_EQ_I64(ps[0], 0);
  bed_free(&b);
}

TEST(cost_missing_rate) {
  bed b = bed_new("dgx-2", NULL, 2, 4);
  REQUIRE(b.k);
  const group g = group_all(b.p->sp, b.mesh);
  const type x = matrix(&b, DT_BF16, 64, 64, (layout){0}, g);
  i64 ps[8];
  CHECK_EQ_I64(cost_of(&b, OP_matmul, (attrset){0}, (type[]){x, x}, 2, &x, 1, g, ps), 0);
  CHECK_GOLDEN("cost/rate.txt", diag_render(b.c, b.a));
  bed_free(&b);
}
