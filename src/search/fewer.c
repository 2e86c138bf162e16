// fewer.c - are fewer devices faster? One node, or one device, is searched where no bound rules it out. Not here: kinds of
// devices that are left out, which the search itself tries (space.c).
#include "search/internal.h"

// The least that any plan on n devices takes: what the best of them multiplies, by n.
static i64 least_on(const search *s, u32 n) {
  strategy one = strategy_default();
  one.skip.n = s->within.first;
  search_point p = {.packed = strategy_pack(s->a, &one)};
  bound(&s->bounds, &p);
  return p.bound_ps / n;
}

// What was said of degrees and of the pipeline is of another number of devices.
static search_fewer on(const search *s, u32 n, i64 best) {
  static const choice_id rows[] = {CHOICE_skip,    CHOICE_recompute, CHOICE_attention,
                                   CHOICE_offload, CHOICE_coshard,   CHOICE_grads};
  search_opts o = *s->o;
  search_result r;
  search_fewer out = {0};
  if (n >= s->ranks || least_on(s, n) >= best) return out;
  memset(&o.space, 0, sizeof o.space);
  for (u32 k = 0; k < COUNT_OF(rows); k++) o.space.of[rows[k]] = s->o->space.of[rows[k]];
  o.ranks = n, o.top = 1, o.part = o.parts = 0, o.only = o.no_bounds = false, o.plain = true;
  ctx *c = ctx_new();
  arena *a = arena_new();
  if (search_run(c, a, s->src, s->m, s->costs, &o, &r) && r.point[0].time_ps < best)
    out = (search_fewer){n, r.point[0].time_ps, arena_strdup(s->a, search_str(a, &r.point[0]))};
  arena_free(a);
  ctx_free(c);
  return out;
}

void fewer_find(search *s) {
  search_result *r = s->r;
  const machine *m = s->m;
  const u32 first = s->within.first;
  const i64 best = r->nfit ? r->point[0].time_ps : INT64_MAX;
  u32 n = 0; // devices of a node
  if (s->o->plain || s->o->part > 1 || (!r->nfit && !s->o->parts)) return;
  while (n < s->within.n && m->dev[first + n].node == m->dev[first].node) n++;
  r->one_device = on(s, 1, best);
  if (n > 1 && !s->several) r->one_node = on(s, n, best);
}
