// test_conversions.c - SuperScaler's 18 conversions arrive element by element, however they are materialised; and what each way may
// use.
#include "conversions.h"
#include "test.h"

static const char *told(arena *a, u32 k, u32 r, u32 how) {
  return arena_printf(a, "%s, %s, materialise=%s", conversions[k].name, relation_name[r],
                      plan_materialise_name[how]);
}

TEST(conversions_arrive_element_by_element) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const machine *m = machine_load(c, a, conversion_cluster);
  REQUIRE(m != NULL);
  for (u32 k = 0; k < KINDS; k++)
    for (u32 r = 0; r < RELATIONS; r++)
      for (u32 how = 0; how < MATERIALISE_WAYS; how++)
        CHECK_MSG(conversion_arrives(r, &conversions[k], (materialise_way)how, m), "%s", told(a, k, r, how));
  arena_free(a);
  ctx_free(c);
}

// A conversion as a program: what it is made of.
static prog *converted(ctx *c, u32 r, const conversion *k, materialise_way how, const machine *m, arena *a) {
  enum { N = 64 };
  scene s = scene_of(c, r);
  cost_model *cost = cost_model_new(c, a, m, NULL);
  const shape whole = {.t = DT_I64, .nd = 2, .dim = {N, N}};
  const type t = type_tensor(s.p, &whole, layout_read(c, &s, k->from, N, N), s.g);
  value v = func_param(s.p, s.p->main, t, sym_of(c, "x"), ROLE_INPUT);
  v = plan_move(s.p, s.p->main, v, s.h, layout_read(c, &s, k->to, N, N), how, cost);
  REQUIRE(v != 0);
  func_return(s.p, s.p->main, &v, 1);
  return s.p;
}

static u32 count_of(const prog *p, bool collectives) {
  const func_info *f = func_get(p, p->main);
  u32 n = 0;
  for (u32 i = 0; i < f->body.n; i++) {
    const opcode op = (opcode)f->body.v[i].op;
    n += collectives ? coll_find(op) != NULL && op != OP_send && op != OP_permute && op != OP_exchange &&
                           op != OP_shard && op != OP_partial
                     : op == OP_send;
  }
  return n;
}

// Plain sends and receives know no collectives; inside one group nothing is sent from group to group; what
// lies on other ranks has to be.
TEST(conversions_are_made_of_what_they_may_be) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const machine *m = machine_load(c, a, conversion_cluster);
  REQUIRE(m != NULL);
  u32 joint = 0;
  for (u32 k = 0; k < KINDS; k++)
    for (u32 r = 0; r < RELATIONS; r++)
      for (u32 how = 0; how < MATERIALISE_WAYS; how++) {
        prog *p = converted(c, r, &conversions[k], (materialise_way)how, m, a);
        const u32 sends = count_of(p, false), all = count_of(p, true);
        CHECK_MSG((sends > 0) == (r > 0), "%s: %u sends", told(a, k, r, how), sends);
        if (how == MATERIALISE_P2P) CHECK_MSG(!all, "%s: %u collectives", told(a, k, r, how), all);
        joint += how != MATERIALISE_P2P && all > 0;
        prog_free(p);
      }
  CHECK_MSG(joint > 12, "%u with collectives", joint); // R to D is local; D to R and the rest are not
  arena_free(a);
  ctx_free(c);
}
