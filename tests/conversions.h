// conversions.h - SuperScaler's conversions of a tensor: 6 kinds, each within a group, between groups of one size, and between groups of
// different size, under each way to materialise. Shared by the test that all arrive and by bench/reproduce, which prices them.
//
// What the summary of the paper does not say is assumed: groups of 8, on a node each; within a group, of 16 on two nodes; of different
// size, 8 and 4. A layout splits over all axes of its group that it splits over at all: two at once.
#ifndef HEDDLE_TESTS_CONVERSIONS_H
#define HEDDLE_TESTS_CONVERSIONS_H
#include "cost/cost.h"
#include "eval/eval.h"
#include "plan/plan.h"

enum { RELATIONS = 3, KINDS = 6 };
static const char *const conversion_cluster = "4x8 v100 ib=100Gb/s";
static const char *const relation_name[RELATIONS] = {"within 16", "8 to 8", "8 to 4"};

// From and to by the axes a, b of the source group and c, d of the target; within a group they are the same.
typedef struct {
  const char *name, *from, *to;
} conversion;
static const conversion conversions[KINDS] = {
    {"R to D", "[X,Y]", "[X{c,d},Y]"},       {"D to R", "[X{a,b},Y]", "[X,Y]"},
    {"V to R", "[X,Y]+a,+b", "[X,Y]"},       {"V to D", "[X,Y]+a,+b", "[X{c,d},Y]"},
    {"D to D'", "[X{a,b},Y]", "[X,Y{c,d}]"}, {"D, V to D', R", "[X{a},Y]+b", "[X,Y{c}]"}};

typedef struct {
  prog *p;
  group g, h;
} scene;

static inline scene scene_of(ctx *c, u32 relation) {
  static const u32 sizes[RELATIONS][4] = {{2, 8, 0, 0}, {2, 4, 2, 4}, {2, 4, 2, 2}};
  static const char *const names[] = {"a", "b", "c", "d"};
  scene s = {.p = prog_new(c)};
  const u32 *n = sizes[relation];
  u8 axis[4];
  for (u32 k = 0; k < (n[2] ? 4u : 2u); k++) axis[k] = axis_add(s.p->sp, sym_of(c, names[k]), n[k], false);
  s.g = s.h = group_all(s.p->sp, mesh_add(s.p->sp, sym_of(c, "from"), axis, 2, 0, NULL));
  if (n[2]) s.h = group_all(s.p->sp, mesh_add(s.p->sp, sym_of(c, "to"), axis + 2, 2, 8, NULL));
  s.p->main = func_new(s.p, sym_of(c, "main"), (loc){0});
  return s;
}

// Of a text above, for extents x by y; within a group of its own axes.
static inline layout layout_read(ctx *c, const scene *s, const char *text, i64 x, i64 y) {
  strbuf b = {.a = ctx_arena(c)};
  for (; *text; text++) {
    const bool own = s->g.i == s->h.i && (*text == 'c' || *text == 'd');
    if (*text == 'X' || *text == 'Y')
      sb_i64(&b, *text == 'X' ? x : y);
    else
      sb_char(&b, own ? (char)(*text - 2) : *text);
  }
  u32 nd;
  i64 dims[DIMS_MAX];
  layout l;
  const char *at = sb_str(&b), *error;
  const bool read = layout_parse(s->p->sp, &at, &nd, dims, &l, &error);
  assert(read); // a row above
  (void)read;
  return l;
}

// Does it arrive, element by element? On a small tensor of the same layouts.
static inline bool conversion_arrives(u32 relation, const conversion *k, materialise_way how,
                                      const machine *m) {
  enum { N = 64 };
  ctx *c = ctx_new();
  arena *a = arena_new();
  scene s = scene_of(c, relation);
  cost_model *cost = cost_model_new(c, a, m, NULL);
  const shape whole = {.t = DT_I64, .nd = 2, .dim = {N, N}};
  value v =
      func_param(s.p, s.p->main, type_tensor(s.p, &whole, (layout){0}, s.g), sym_of(c, "x"), ROLE_INPUT);
  v = plan_move(s.p, s.p->main, v, s.g, layout_read(c, &s, k->from, N, N), MATERIALISE_INTER, cost);
  v = v ? plan_move(s.p, s.p->main, v, s.h, layout_read(c, &s, k->to, N, N), how, cost) : 0;
  eval_array in = {whole, NEWN(a, i64, N * N)}, out;
  for (i64 i = 0; i < N * N; i++) ((i64 *)in.data)[i] = i * i + 7;
  if (v) func_return(s.p, s.p->main, &v, 1);
  const bool ok = v && ir_verify(s.p) && eval_run(s.p, &(eval_opts){.as_f64 = true}, &in, 1, &out, 1, a) &&
                  !memcmp(out.data, in.data, sizeof(i64) * N * N);
  prog_free(s.p);
  arena_free(a);
  ctx_free(c);
  return ok;
}
#endif
