// parts.c - the critical path by what would have to be faster.
//
// Idea: the makespan is the sum of the prices on the path, and every price is a sum of parts, each inversely
// proportional to one rate. A path has few distinct steps, so every one is taken apart once.
#include "sim/internal.h"

typedef struct {
  const sim_step *step;
  cost_parts of; // of one
} known_step;
typedef struct {
  arena *a;
  const prog *p;
  coster *k;
  const sim_result *r;
  VEC(known_step) known;
  hmap map;
} parts;

static bool same(const sim_step *x, const sim_step *y) {
  return x->f.i == y->f.i && x->instr == y->instr && x->unit == y->unit && x->g.i == y->g.i &&
         x->dur_ps == y->dur_ps;
}

// The member whose price the step has: its unit's own, unless another one held it up.
static bool member_of(const parts *x, const sim_step *s, const func_info *f, const instr *i, u32 *out) {
  const u32 n = group_get(x->p->sp, s->g)->nranks;
  const int own = group_member(x->p->sp, s->g, x->r->unit[s->unit].first_rank);
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

static const cost_parts *take_apart(parts *x, const sim_step *s) {
  const u64 h = hash_step(hash_step(hash_u64((u64)s->f.i << 32 | s->instr, s->unit), s->g.i), (u64)s->dur_ps);
  for (u32 it = 0, i; hmap_next(&x->map, h, &it, &i);)
    if (same(x->known.v[i].step, s)) return &x->known.v[i].of;
  const func_info *f = func_get(x->p, s->f);
  const instr *i = &f->body.v[s->instr - 1];
  known_step made = {.step = s};
  u32 member;
  if (s->dur_ps &&
      (!member_of(x, s, f, i, &member) || !cost_made_of(x->k, x->p, f, i, s->g, member, &made.of)))
    return NULL;
  hmap_add(x->a, &x->map, h, x->known.n);
  known_step *kept = vec_push(x->a, &x->known);
  *kept = made;
  return &kept->of;
}

bool sim_path_parts(const prog *p, coster *k, const sim_result *r, cost_parts *out) {
  arena *a = arena_new();
  parts x = {.a = a, .p = p, .k = k, .r = r};
  bool ok = r->ncritical > 0;
  *out = (cost_parts){{0}};
  for (u32 i = 0; i < r->ncritical && ok; i++) {
    const cost_parts *one = take_apart(&x, &r->critical[i]);
    ok = one != NULL;
    for (u32 j = 0; j < COST_BYS && ok; j++) out->ps[j] += one->ps[j];
  }
  arena_free(a);
  return ok;
}
