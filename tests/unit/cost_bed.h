// cost_bed.h - a machine with its cost model and a program to price instructions of. Included by tests only.
#ifndef HEDDLE_TEST_COST_BED_H
#define HEDDLE_TEST_COST_BED_H
#include "cost/cost.h"
#include "front/front.h"
#include "pass/pass.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
  ctx *c;
  arena *a;
  machine *m;
  cost_model *k;
  prog *p;
  u8 dp, tp;
  mesh mesh;
} bed;

static bed bed_new(const char *spec, const char *model, u32 dp, u32 tp) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  cost_opts o = {.model = model};
  b.m = machine_load(b.c, b.a, spec);
  b.k = b.m ? cost_model_new(b.c, b.a, b.m, &o) : NULL;
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

static inline layout split(bed *b, u8 axis, u8 dim, i64 stride) {
  return layout_with_split(b->p->sp, (layout){0}, axis, dim, stride);
}

static type matrix(bed *b, dtype t, i64 m, i64 n, layout l, group g) {
  const shape s = {t, 2, {m, n}};
  return type_tensor(b->p, &s, l, g);
}

// One instruction in a function of its own; its costs in ps, of which what they are made of is the sum.
static inline u32 cost_of(bed *b, opcode op, attrset at, const type *opd, u32 nopd, const type *res, u32 nres,
                          group g, i64 *ps) {
  func f = func_new(b->p, sym_of(b->c, "f"), (loc){0});
  u32 o[8];
  for (u32 i = 0; i < nopd; i++) o[i] = func_param(b->p, f, opd[i], (sym){0}, ROLE_INPUT);
  builder bl = builder_at(b->p, f);
  bl.g = g;
  const u32 i = emit(&bl, op, at, o, nopd, res, nres);
  const func_info *fi = func_get(b->p, f);
  const u32 count = cost_instr(b->k, b->p, fi, &fi->body.v[i - 1], g, ps);
  for (u32 m = 0; count && m < group_get(b->p->sp, g)->nranks; m++) {
    cost_parts parts;
    double sum = 0;
    if (!cost_made_of(b->k, b->p, fi, &fi->body.v[i - 1], g, m, &parts)) continue; // does not tell
    for (u32 j = 0; j < COST_BYS; j++) sum += parts.ps[j];
    CHECK_MSG(fabs(sum - (double)ps[count > 1 ? m : 0]) <= 0.501,
              "%s: member %u is made of %.1f ps, not %lld", op_row_of(op)->name, m, sum,
              (long long)ps[count > 1 ? m : 0]);
  }
  return count;
}
#endif
