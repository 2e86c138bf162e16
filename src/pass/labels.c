// labels.c - losses that ignore some labels, as losses over all of them. Not for evaluation, which knows the
// labels; for plans, which do not.
#include "pass/internal.h"

static bool ignores(const prog *p, const instr *i) {
  if (i->op != OP_cross_entropy && i->op != OP_cross_entropy_dx && i->op != OP_nll) return false;
  attrs at = attrs_get(p, i->at);
  const attr *ignore = attr_get(at, A_ignore), *reduce = attr_get(at, A_reduce);
  return ignore && ignore->u.i < 0 && (!reduce || !strcmp(sym_str(p->c, reduce->u.s), "mean"));
}

static u32 walk(prog *p, bool change) {
  u32 n = 0;
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 k = 0; k < p->funcs.v[f]->body.n; k++) {
      instr *i = &p->funcs.v[f]->body.v[k];
      if (!ignores(p, i)) continue;
      n++;
      if (!change) continue;
      attrs at = attrs_get(p, i->at);
      attr left[16];
      u32 m = 0;
      for (u32 j = 0; j < at.n && m < COUNT_OF(left); j++)
        if (at.v[j].key != A_ignore) left[m++] = at.v[j];
      i->at = attrs_of(p, left, m);
    }
  return n;
}

u32 pass_count_labels(prog *p) { return walk(p, true); }
bool pass_ignores_labels(const prog *p) { return walk((prog *)p, false) > 0; }
