// split_model.h - a model under tensor parallelism, and what its blocks communicate, compute and save.
#ifndef HEDDLE_TEST_SPLIT_MODEL_H
#define HEDDLE_TEST_SPLIT_MODEL_H
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *src, *p; // p NULL: refused
  planner *pl;
  plan *pn;
  u32 *calls; // per function of p
} split_model;

static const front_dim split_dims[] = {{"batch", 4}, {"sequence", 16}};

// dims: of an imported model, how many of split_dims.
static inline split_model split_open(const char *name, u32 dims, const hybrid_opts *h) {
  split_model m = {.c = ctx_new(), .a = arena_new()};
  front_opts fo = {.ndims = dims, .dims = split_dims, .loss = h->train};
  if (!dims && !strstr(name, ".heddle"))
    fo.batch = 4, fo.seq = strstr(name, "vit") ? 64 : strstr(name, "swin") ? 224 : 16;
  m.src = front_load(m.c, name, &fo);
  if (m.src && dims) pass_outline(m.src);
  if (m.src && h->train && !pass_loss(m.src)) REQUIRE(!"a loss");
  CHECK_MSG(m.src != NULL, "%s: %s", name, diag_render(m.c, m.a));
  REQUIRE(m.src != NULL);
  m.pl = planner_new(m.src);
  m.pn = policy_hybrid(m.pl, m.a, h);
  m.p = m.pn ? plan_apply(m.pl, m.pn, NULL) : NULL;
  if (!m.p) return m;
  m.calls = ZNEWN(m.a, u32, m.p->funcs.n);
  for (u32 f = 1; f < m.p->funcs.n; f++)
    for (u32 k = 0; k < m.p->funcs.v[f]->body.n; k++)
      if (m.p->funcs.v[f]->body.v[k].op == OP_call) m.calls[m.p->funcs.v[f]->body.v[k].callee.i]++;
  return m;
}

static void split_close(split_model *m) {
  if (m->p) prog_free(m->p);
  planner_free(m->pl);
  prog_free(m->src);
  arena_free(m->a);
  ctx_free(m->c);
}

static double local_bytes(const prog *p, const func_info *f, value v) {
  const type_info *t = val_type(p, f, v);
  i64 dim[DIMS_MAX];
  double n = dtype_bytes(t->s.t);
  layout_local_dims(p->sp, t->lay, t->s.nd, t->s.dim, &(coords){0}, dim);
  for (u32 d = 0; d < t->s.nd; d++) n *= (double)dim[d];
  return n;
}

// The function of the distributed program that is called most of those whose name begins so.
static inline u32 split_block(const split_model *m, const char *name) {
  u32 best = 0;
  for (u32 f = 1; f < m->p->funcs.n; f++) {
    const char *s = sym_str(m->c, m->p->funcs.v[f]->name);
    if (!strncmp(s, name, strlen(name)) && (!best || m->calls[f] > m->calls[best])) best = f;
  }
  CHECK_MSG(best > 0, "no function %s", name);
  REQUIRE(best > 0);
  return best;
}

// Communication inside one function: how many of each kind, and the bytes that a rank sends.
typedef struct {
  u32 n[OP_COUNT];
  double bytes[OP_COUNT], all;
} traffic;
static inline traffic split_traffic(const split_model *m, u32 f, u32 ways) {
  traffic t = {.all = 0};
  const func_info *fi = m->p->funcs.v[f];
  for (u32 k = 0; k < fi->body.n; k++) {
    const instr *in = &fi->body.v[k];
    if (!(op_row_of(in->op)->flags & OPF_COMM) || in->op == OP_shard || in->op == OP_partial) continue;
    t.n[in->op]++;
    for (u32 o = 0; o < in->nopd; o++) {
      double n = local_bytes(m->p, fi, opd_of(fi, in, o)) * (ways - 1);
      n *= in->op == OP_all_gather ? 1 : in->op == OP_all_reduce ? 2.0 / ways : 1.0 / ways;
      t.bytes[in->op] += n, t.all += n;
    }
  }
  return t;
}

// Flops of the matmuls of one function, or of all (0), on rank 0; whole: as if nothing were split.
static inline double split_work(const split_model *m, u32 only, bool whole) {
  double sum = 0;
  const prog *p = m->p;
  for (u32 f = 1; f < p->funcs.n; f++) {
    const func_info *fi = p->funcs.v[f];
    for (u32 k = 0; k < fi->body.n && (!only || f == only); k++) {
      const instr *in = &fi->body.v[k];
      if (!(op_row_of(in->op)->flags & OPF_GEMM)) continue;
      u32 n = instr_nopd(fi, in), nres = in->nres;
      shape opd[4], res[OP_RES_MAX];
      for (u32 j = 0; j < n && j < 4; j++) {
        const type_info *t = val_type(p, fi, opd_of(fi, in, j));
        opd[j] = t->s;
        if (!whole) layout_local_dims(p->sp, t->lay, t->s.nd, t->s.dim, &(coords){0}, opd[j].dim);
      }
      const law *l = op_law(p->c, m->a, in->op, attrs_get(p, in->at), n, opd, &nres, res, in->where);
      if (l) sum += op_flops(in->op, attrs_get(p, in->at), l);
    }
  }
  return sum;
}
#endif
