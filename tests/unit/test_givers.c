// test_givers.c - who gives what to whom: order, pieces that overlap, elements that nobody has.
#include "ir/ir.h"
#include "test.h"

typedef struct {
  ctx *c;
  prog *p;
  group from, to;
  giving_end source;
  giving x;
} bed;

// A send between two meshes of one axis each.
static bed bed_new(u32 nf, u32 nt) {
  bed b = {.c = ctx_new()};
  b.p = prog_new(b.c);
  const u8 x = axis_add(b.p->sp, sym_of(b.c, "x"), nf, false),
           y = axis_add(b.p->sp, sym_of(b.c, "y"), nt, false);
  b.from = group_all(b.p->sp, mesh_add(b.p->sp, sym_of(b.c, "m"), &x, 1, 0, NULL));
  b.to = group_all(b.p->sp, mesh_add(b.p->sp, sym_of(b.c, "n"), &y, 1, nf, NULL));
  b.x = (giving){.sp = b.p->sp, .op = OP_send, .nfrom = 1, .to = {b.to, {0}}};
  return b;
}

static void bed_free(bed *b) {
  prog_free(b->p);
  ctx_free(b->c);
}

// What target `to` gets of 10 elements of which the source's members have what the layout says.
static gifts gifts_to(bed *b, arena *a, layout l, u32 to) {
  const i64 dim = 10;
  const u32 n = group_size(b->p->sp, b->from);
  box *have = NEWN(a, box, n);
  for (u32 k = 0; k < n; k++) have[k] = box_of(b->p->sp, a, l, 1, &dim, b->from, k);
  const box want = box_of(b->p->sp, a, (layout){0}, 1, &dim, b->to, to), *all = have;
  b->source = (giving_end){b->from, l}, b->x.from = &b->source;
  return gifts_of(&b->x, a, to, 1, &want, &all);
}

// Members that hold the same give in turn: with more givers than takers those at the takers' parts, with fewer each to several.
TEST(givers_of_a_send_that_hold_the_same) {
  static const struct {
    u32 nf, nt, giver[4];
  } cases[] = {{4, 2, {0, 2}}, {2, 4, {0, 0, 1, 1}}, {3, 2, {0, 1}}, {4, 4, {0, 1, 2, 3}}};
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    bed b = bed_new(cases[k].nf, cases[k].nt);
    arena *a = arena_new();
    for (u32 to = 0; to < cases[k].nt; to++) {
      const gifts m = gifts_to(&b, a, (layout){0}, to);
      CHECK(m.n == 1 && !m.missing && box_elems(&m.v->what, 1) == 10);
      CHECK_MSG(m.n && m.v->from.member == cases[k].giver[to], "%u to %u: %u gets it from %u", cases[k].nf,
                cases[k].nt, to, m.v->from.member);
    }
    arena_free(a);
    bed_free(&b);
  }
}

static layout in_pieces(bed *b, const i64 *bound) { // one interval each
  static const u32 begin[] = {0, 1, 2, 3};
  return layout_with_pieces(b->p->sp, (layout){0}, axis_find(b->p->sp, sym_of(b->c, "x")), 0,
                            pieces_of(b->p->sp, 3, begin, bound, 10));
}

TEST(givers_of_pieces_that_overlap) {
  bed b = bed_new(3, 1);
  arena *a = arena_new();
  static const i64 covered[] = {0, 6, 4, 10, 2, 8}; // nothing of the third is left
  gifts m = gifts_to(&b, a, in_pieces(&b, covered), 0);
  REQUIRE(m.n == 2 && !m.missing);
  CHECK(m.v[0].from.member == 0 && m.v[1].from.member == 1);
  CHECK(box_elems(&m.v[0].what, 1) == 6 && box_elems(&m.v[1].what, 1) == 6);
  static const i64 gap[] = {0, 3, 2, 4, 6, 10};
  m = gifts_to(&b, a, in_pieces(&b, gap), 0);
  CHECK(m.n == 3 && m.missing == 2);
  arena_free(a);
  bed_free(&b);
}

// ---- who may give ----------------------------------------------------------------------------------------
// Members of the operands in the order in which member `to` asks them, "0.3 1.0": operand and member.
static const char *asked(const giving *x, arena *a, u32 to) {
  const givers l = givers_of(x, a, to);
  strbuf s = {.a = a};
  for (u32 k = 0; k < l.n; k++) sb_fmt(&s, "%s%u.%u", k ? " " : "", l.v[k].opd, l.v[k].member);
  return sb_str(&s);
}

// A mesh of two axes, x major, and where each of them is fixed.
typedef struct {
  ctx *c;
  arena *a;
  space *sp;
  prog *p;
  u8 x, y;
  mesh m;
  group all;
} grid;

static grid grid_new(u32 nx, u32 ny) {
  grid g = {.c = ctx_new(), .a = arena_new()};
  g.p = prog_new(g.c), g.sp = g.p->sp;
  g.x = axis_add(g.sp, sym_of(g.c, "x"), nx, false), g.y = axis_add(g.sp, sym_of(g.c, "y"), ny, false);
  g.m = mesh_add(g.sp, sym_of(g.c, "m"), (const u8[]){g.x, g.y}, 2, 0, NULL);
  g.all = group_all(g.sp, g.m);
  return g;
}
static void grid_free(grid *g) {
  prog_free(g->p);
  arena_free(g->a), ctx_free(g->c);
}
static group fixed(grid *g, u8 axis, u32 at) {
  return group_of(g->sp, g->m, &(group_axis){.axis = axis, .at = (u16)at}, 1);
}

TEST(givers_of_a_subgroup) {
  grid g = grid_new(2, 3);
  const giving_end end = {g.all, {0}};
  giving x = {.sp = g.sp,
              .op = OP_all_reduce,
              .over = &g.x,
              .nover = 1,
              .adds = true,
              .nfrom = 1,
              .from = &end,
              .to = end};
  CHECK_STR(asked(&x, g.a, 4), "0.1 0.4");
  x.over = &g.y;
  CHECK_STR(asked(&x, g.a, 4), "0.3 0.4 0.5");
  x.op = OP_exchange; // the own piece stays; of a sum the order is everybody's
  CHECK_STR(asked(&x, g.a, 4), "0.3 0.4 0.5");
  x.adds = false;
  CHECK_STR(asked(&x, g.a, 4), "0.4 0.3 0.4 0.5");
  x.op = OP_shard;
  CHECK_STR(asked(&x, g.a, 4), "0.4");
  grid_free(&g);
}

// What is rooted: the root asks all, or all ask it. The root is a place in the subgroup, the group at the root has its own numbers.
TEST(givers_of_roots) {
  grid g = grid_new(2, 3);
  const giving_end all = {g.all, {0}}, root = {fixed(&g, g.y, 2), {0}}; // ranks 2 and 5
  giving x = {.sp = g.sp,
              .op = OP_broadcast,
              .over = &g.y,
              .nover = 1,
              .root = 2,
              .nfrom = 1,
              .from = &root,
              .to = all};
  for (u32 to = 0; to < 6; to++) CHECK_STR(asked(&x, g.a, to), to < 3 ? "0.0" : "0.1");
  x.op = OP_scatter_from;
  CHECK_STR(asked(&x, g.a, 4), "0.1");
  x.op = OP_gather_to, x.from = &all, x.to = root;
  CHECK_STR(asked(&x, g.a, 0), "0.0 0.1 0.2");
  CHECK_STR(asked(&x, g.a, 1), "0.3 0.4 0.5");
  x.op = OP_reduce, x.root = 1; // the target is not the root: it gets nothing
  CHECK_STR(asked(&x, g.a, 0), "");
  grid_free(&g);
}

// A join takes from the operands that have this rank, in their order.
TEST(givers_of_joins) {
  grid g = grid_new(2, 3);
  const giving_end part[] = {{fixed(&g, g.x, 1), {0}}, {fixed(&g, g.x, 0), {0}}, {g.all, {0}}};
  giving x = {
      .sp = g.sp, .op = OP_join, .over = &g.x, .nover = 1, .nfrom = 2, .from = part, .to = {g.all, {0}}};
  for (u32 to = 0; to < 6; to++) CHECK_STR(asked(&x, g.a, to), arena_printf(g.a, "%u.%u", to < 3, to % 3));
  x.nfrom = 3;
  CHECK_STR(asked(&x, g.a, 4), "0.1 2.4");
  grid_free(&g);
}

// Parts of a sum go to who holds the same part of it.
TEST(givers_of_parts_of_a_sum) {
  grid g = grid_new(2, 3);
  const layout sum = layout_of(g.sp, &(layout_info){.npart = 1, .part = {{.axis = g.x, .red = RED_SUM}}});
  const giving_end end = {g.all, sum};
  giving x = {.sp = g.sp, .op = OP_permute, .nfrom = 1, .from = &end, .to = end};
  CHECK_STR(asked(&x, g.a, 1), "0.0 0.1 0.2");
  CHECK_STR(asked(&x, g.a, 4), "0.3 0.4 0.5");
  x.op = OP_send; // from its own number on
  CHECK_STR(asked(&x, g.a, 1), "0.1 0.0 0.2");
  CHECK_STR(asked(&x, g.a, 4), "0.4 0.5 0.3");
  const u8 time = axis_add(g.sp, sym_of(g.c, "t"), 2, true); // of a sum over time all have every part
  const giving_end whole = {
      g.all, layout_of(g.sp, &(layout_info){.npart = 1, .part = {{.axis = time, .red = RED_SUM}}})};
  x.from = &whole;
  CHECK_STR(asked(&x, g.a, 4), "0.4 0.5 0.0 0.1 0.2 0.3");
  grid_free(&g);
}
