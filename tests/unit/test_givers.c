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
