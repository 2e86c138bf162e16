// passes.c - models that run through the same layers three times, of which the last time alone has gradients: what
// 3F1B takes for its passes.
//
// Idea: the calls of main are three times the same, with the same weights. A gradient comes to what the loss depends on by a
// way without stop_gradient; calls of the first two passes must be on no such way.
#include "plan/plan.h"

enum { PASSES = 3 };

static bool same_layer(const func_info *m, const instr *x, const instr *y) {
  bool weights = x->callee.i == y->callee.i;
  for (u32 k = 0; weights && k < instr_nopd(m, x); k++) {
    const value v = opd_of(m, x, k), w = opd_of(m, y, k);
    if (v <= m->nparams && m->params.v[v - 1].r == ROLE_WEIGHT) weights = v == w;
  }
  return weights;
}

static bool any_result(const instr *in, const bool *has) {
  bool any = false;
  for (u32 r = 0; r < in->nres; r++) any |= has[in->res + r];
  return any;
}

// By value of main: does a gradient come to it?
static bool *gets_gradient(arena *a, const func_info *m) {
  bool *has = ZNEWN(a, bool, m->values.n);
  has[m->rets.v[0]] = true;
  for (u32 i = m->body.n; i-- > 0;) {
    const instr *in = &m->body.v[i];
    const bool any = any_result(in, has);
    for (u32 k = 0; any && in->op != OP_stop_gradient && k < instr_nopd(m, in); k++)
      has[opd_of(m, in, k)] = true;
  }
  return has;
}

static u32 refuse(const prog *p, const strategy *s, loc at, const char *what) {
  diag(p->c, E_PLAN, at, "schedule=%s: %s", sched_row_of(s->schedule.n)->name, what);
  diag_hint(p->c, "schedule=1f1b, or a model that recycles, such as alphafold2:recycle=3");
  return 0;
}

u32 policy_passes(planner *pl, const strategy *s, bool train, loc at, u32 *rest) {
  const prog *p = planner_source(pl);
  const func_info *m = func_get(p, p->main);
  arena *tmp = arena_new();
  const bool *has = gets_gradient(tmp, m);
  u32 *call = NEWN(tmp, u32, m->body.n + 1), n = 0;
  for (u32 i = 0; i < m->body.n; i++)
    if (m->body.v[i].op == OP_call) call[n++] = i;
  const u32 L = n / PASSES;
  bool alike = L && n % PASSES == 0, early = false;
  for (u32 k = 0; alike && k < n; k++) {
    const instr *in = &m->body.v[call[k]];
    alike = same_layer(m, &m->body.v[call[k % L]], in);
    early |= train && k < n - L && any_result(in, has);
  }
  *rest = 0;
  for (u32 i = alike ? call[n - L - 1] + 1 : 0; alike && i < call[n - L] && !any_result(&m->body.v[i], has);
       i++)
    ++*rest;
  arena_free(tmp);
  if (!alike) return refuse(p, s, at, "the model does not pass three times through the same layers");
  if (early)
    return refuse(p, s, at, "gradients go through all passes of the model, not through the last alone");
  return L;
}
