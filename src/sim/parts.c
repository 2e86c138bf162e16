// parts.c - the critical path by what would have to be faster.
//
// Idea: the makespan is the sum of the prices on the path, and every price is a sum of parts, each inversely
// proportional to one rate. A path has few distinct steps (sim_like), so every one is taken apart once.
#include "sim/internal.h"

typedef struct {
  arena *a;
  const prog *p;
  cost_model *k;
  const sim_result *r;
} parts;

// The member whose price the step has: its rank class's own, unless another one held it up.
static bool member_of(const parts *x, const sim_like *s, const func_info *f, const instr *i, u32 *out) {
  const u32 n = group_get(x->p->sp, s->g)->nranks;
  const int own = group_member(x->p->sp, s->g, x->r->cls[s->cls].first_rank);
  arena_mark_t mark = arena_mark(x->a);
  i64 *ps = NEWN(x->a, i64, n);
  const u32 count = cost_instr(x->k, x->p, f, i, s->g, ps);
  bool found = count != 0;
  *out = own < 0 ? 0 : (u32)own;
  if (count > 1 && ps[*out] != s->dur_ps)
    for (*out = 0; *out < n && ps[*out] != s->dur_ps;) ++*out;
  else if (count)
    found = ps[count > 1 ? *out : 0] == s->dur_ps;
  found = found && *out < n;
  arena_release(x->a, mark);
  return found;
}

static bool take_apart(parts *x, const sim_like *s, cost_parts *one) {
  const func_info *f = func_get(x->p, s->f);
  const instr *i = &f->body.v[s->instr - 1];
  u32 member;
  *one = (cost_parts){{0}};
  return !s->dur_ps || (member_of(x, s, f, i, &member) && cost_made_of(x->k, x->p, f, i, s->g, member, one));
}

bool sim_path_parts(const prog *p, cost_model *k, const sim_result *r, cost_parts *out) {
  arena *a = arena_new();
  parts x = {.a = a, .p = p, .k = k, .r = r};
  bool ok = r->nlikes > 0;
  *out = (cost_parts){{0}};
  for (u32 i = 0; i < r->nlikes && ok; i++) {
    cost_parts one;
    ok = take_apart(&x, &r->like[i], &one);
    for (u32 j = 0; j < COST_BYS && ok; j++) out->ps[j] += one.ps[j] * (double)r->like[i].count;
  }
  arena_free(a);
  return ok;
}
