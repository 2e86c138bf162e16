// fewer.c - are fewer devices faster? One node and one device of each kind are searched where no bound rules them out. Not
// here: whole kinds of devices that are left out, which the search itself tries (space.c).
#include "search/internal.h"

// The least that any plan on n devices takes: all products at the best rate of any device, by n.
static i64 least_on(const search *s, u32 n) { return (i64)(s->bounds.work / n * 1e12 * 0.999999); }

bool search_needs_axis(choice_id id) {
  const choice_row *row = choice_get(id);
  bool axis = row->where != NULL;
  for (u32 k = 0; k < CHOICE_COUNT; k++) axis |= choice_is_degree((choice_id)k) && row->needs >> k & 1;
  return axis || row->of == CHOICE_OF_ORDER;
}

// What was said of degrees, of the order of tasks and of how ranks, layers and samples are dealt out is of another number of
// devices; on one there is no axis that a choice could need.
static bool goes_with(choice_id id, u32 n) {
  const choice_subject of = choice_get(id)->of;
  if (of == CHOICE_OF_DEGREE || of == CHOICE_OF_DEALT || of == CHOICE_OF_ORDER) return false;
  return n > 1 || !search_needs_axis(id);
}

// The best plan on n devices from rank `first` on; none: it is not faster than `best`.
static search_fewer on(const search *s, u32 first, u32 n, i64 best) {
  search_opts o = *s->o;
  search_result r;
  search_fewer out = {0};
  const choice_value skip = {.n = first};
  if (n >= s->within.n || least_on(s, n) >= best) return out;
  for (u32 k = 0; k < CHOICE_COUNT; k++)
    if (!goes_with((choice_id)k, n)) o.space.of[k] = (choice_set){0};
  o.space.of[CHOICE_skip] = (choice_set){.said = true, .n = 1, .v = &skip};
  o.ranks = n, o.top = 1, o.part = o.parts = 0, o.only = 0, o.no_bounds = false, o.plain = true;
  o.pow2 = o.pow2 && !(n & (n - 1));
  ctx *c = ctx_new();
  arena *a = arena_new();
  if (search_run(c, a, s->src, s->m, s->costs, &o, &r) && r.point[0].time_ps < best)
    out = (search_fewer){n, r.point[0].time_ps, arena_strdup(s->a, search_str(a, &r.point[0]))};
  arena_free(a);
  ctx_free(c);
  return out;
}

// The best of one node of each kind. Nodes whose ranks are not all used are none.
static search_fewer on_a_node(const search *s, i64 best) {
  const machine *m = s->m;
  const u32 end = s->within.first + s->within.n;
  search_fewer out = {0};
  bool *tried = ZNEWN(s->a, bool, m->nnode_kinds);
  for (u32 i = s->within.first, n; i < end; i += n) {
    const u32 kind = m->node[m->dev[i].node];
    for (n = 1; i + n < end && m->dev[i + n].node == m->dev[i].node;) n++;
    if (n == 1 || n < m->node_kind[kind].ndevs || tried[kind]) continue;
    tried[kind] = true;
    const search_fewer x = on(s, i, n, out.time_ps ? out.time_ps : best);
    if (x.time_ps) out = x;
  }
  return out;
}

// The best of one device of each kind.
static search_fewer on_a_device(const search *s, i64 best) {
  const machine *m = s->m;
  search_fewer out = {0};
  bool *tried = ZNEWN(s->a, bool, m->nkinds);
  for (u32 i = s->within.first; i < s->within.first + s->within.n; i++) {
    if (tried[m->dev[i].kind]) continue;
    tried[m->dev[i].kind] = true;
    const search_fewer x = on(s, i, 1, out.time_ps ? out.time_ps : best);
    if (x.time_ps) out = x;
  }
  return out;
}

void fewer_find(search *s) {
  search_result *r = s->r;
  const i64 best = r->nfit ? r->point[0].time_ps : INT64_MAX;
  if (s->o->plain || s->o->part > 1 || (!r->nfit && !s->o->parts)) return;
  r->one_device = on_a_device(s, best);
  r->one_node = on_a_node(s, best);
}
