// why.c - why not these choices: the best plan that has them, beside the winner.
//
// Idea: what a question leaves open is searched again, over the plans that agree with it; so the answer is
// about the best of them, and not about a plan that is bad for another reason. Bounds do not rule it out, nor
// is it bound to what the search that was asked about looked at.
#include "search/internal.h"

// ---- one plan in full -----------------------------------------------------------------------------------
void search_look_at(arena *a, const prog *src, const machine *m, const cost_opts *costs, const search_opts *o,
                    const strategy *s, search_look *out) {
  const sim_opts so = {
      .mode = SIM_FOLDED, .bytes = o->bytes, .critical = true, .split = true, .steady = search_steady(o)};
  hybrid_opts h = search_hybrid(o, s);
  ctx *c = ctx_new();
  arena *own = arena_new();
  prog *p = prog_clone(src, c);
  planner *pl = planner_new(p);
  cost_model *k = cost_model_new(c, own, m, costs);
  h.k = k;
  whole_answer x = {0};
  *out = (search_look){.s = *s};
  out->ran = k && whole_run(pl, k, a, &h, &so, &x);
  out->r = x.result;
  if (out->ran) {
    const sim_result *r = &out->r;
    out->tightest = o->memory_bytes ? r->cls[r->peak_class].first_rank : sim_tightest(r, m);
    out->limit_bytes = o->memory_bytes ? o->memory_bytes : machine_kind_of(m, out->tightest)->usable_bytes;
  }
  if (x.plan) out->plan = plan_hash(c, x.plan);
  if (out->ran) out->has_path = sim_path_parts(x.program, k, &out->r, &out->path);
  if (!out->ran) out->why = arena_strdup(a, diag_count(c) ? diag_get(c, 0).message : "");
  whole_free(&x);
  planner_free(pl);
  prog_free(p);
  arena_free(own);
  ctx_free(c);
}

// ---- the plans that agree -------------------------------------------------------------------------------
// What was said takes the place of what the search was told.
static strategy_set both(const strategy_set *told, const strategy_set *said) {
  strategy_set out = *told;
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (said->of[i].said) out.of[i] = said->of[i];
  if (said->of[CHOICE_mbs].said && !said->of[CHOICE_mb].said) out.of[CHOICE_mb] = (choice_set){0};
  if (said->of[CHOICE_mb].said && !said->of[CHOICE_mbs].said) out.of[CHOICE_mbs] = (choice_set){0};
  return out;
}

// Every degree that a search was told yields to one that was asked for.
static void free_degrees(strategy_set *x, const strategy_set *said) {
  bool any = false;
  for (choice_id k = 0; choice_is_degree(k); k++) any |= said->of[k].said;
  for (choice_id k = 0; any && choice_is_degree(k); k++)
    if (!said->of[k].said) x->of[k] = (choice_set){0};
}

static i64 need(const search_point *p) { return p->peak_bytes ? p->peak_bytes : p->bound_bytes; }

// The best that fits; else what comes nearest to it: a plan that is too large, the smallest, simulated before
// bounded; one that is impossible.
static const search_point *nearest(const search_result *r) {
  static const u8 order[SEARCH_STATES] = {
      [SEARCH_RAN] = 0,   [SEARCH_OVER_MEMORY] = 1, [SEARCH_BOUND_MEMORY] = 2, [SEARCH_BOUND_TIME] = 3,
      [SEARCH_EQUAL] = 4, [SEARCH_IMPOSSIBLE] = 5,  [SEARCH_OPEN] = 6};
  const search_point *best = &r->point[0];
  for (u32 i = 1; i < r->npoints && best->state != SEARCH_RAN; i++) {
    const search_point *p = &r->point[i];
    const u8 x = order[p->state], y = order[best->state];
    if (x < y || (x == y && need(p) < need(best))) best = p;
  }
  return best;
}

static void find_known(const search_result *r, search_why *out) {
  const strategy of = search_strategy(out->point);
  for (u32 i = 0; i < r->npoints; i++) {
    if (!search_is(&r->point[i], &of)) continue;
    out->known = &r->point[i];
    if (i < r->nfit) out->rank = i + 1;
  }
}

static bool anything(ctx *c, const strategy_set *said) {
  for (u32 i = 0; i < CHOICE_COUNT; i++)
    if (said->of[i].said) return true;
  diag(c, E_STRATEGY, (loc){0}, "--why: no choices given");
  diag_hint(c, "--why 'tp=8 pp=8'");
  return false;
}

// ---- what cannot be together ----------------------------------------------------------------------------
// Rows of the set that some plans cannot choose, left out: those that were not asked for and, where it is the degrees
// that were not, those that were. False: there are none.
static bool leave_out(strategy_set *x, const strategy_set *said) {
  bool degrees = false, any = false;
  for (choice_id k = 0; choice_is_degree(k); k++) degrees |= said->of[k].said;
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    if (!x->of[i].said || !choice_get((choice_id)i)->needs || (said->of[i].said && degrees)) continue;
    x->of[i] = (choice_set){0}, any = true;
  }
  return any;
}

// No plan of the search has all that was told and asked. The best that has what any plan can have, with the rest as it
// was said, is no plan, and why is the answer.
static const search_point *contradiction(arena *a, const prog *src, const machine *m, const cost_opts *costs,
                                         const search_opts *o, search_result *r, const strategy_set *said) {
  const strategy_set all = o->space;
  search_opts less = *o;
  ctx *c = ctx_new();
  search_point *p = NULL;
  if (leave_out(&less.space, said)) search_run(c, a, src, m, costs, &less, r);
  if (r->npoints) {
    bool lacks = false;
    p = NEW(a, search_point);
    strategy s = search_strategy(nearest(r));
    for (u32 i = 0; i < CHOICE_COUNT; i++) {
      const choice_id id = (choice_id)i;
      bool has = less.space.of[i].said || !all.of[i].n;
      for (u32 k = 0; k < all.of[i].n && !has; k++) has = choice_same(all.of[i].v[k], s.of[i]);
      if (has) continue;
      s.of[i] = all.of[i].v[0], lacks = lacks || !choice_applies(id, &s, o->train);
    }
    *p = (search_point){.packed = strategy_pack(a, &s), .state = SEARCH_IMPOSSIBLE, .stands = 1};
    *r = (search_result){.space = 1, .npoints = 1, .point = p, .batch = r->batch};
    r->count[SEARCH_IMPOSSIBLE] = 1;
    if (!lacks) p = NULL;
  }
  ctx_free(c);
  return p;
}

bool search_why_not(ctx *c, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                    const search_opts *o, const search_result *r, const char *line, search_why *out) {
  strategy one;
  search_opts narrow = *o;
  *out = (search_why){0};
  if (!strategy_parse_named(c, a, "--why", line, &out->said) || !anything(c, &out->said) ||
      !strategy_one(c, &out->said, &one))
    return false;
  narrow.space = both(&o->space, &out->said);
  free_degrees(&narrow.space, &out->said);
  narrow.top = 1, narrow.plain = true;
  for (u32 i = 0; i < CHOICE_COUNT; i++) narrow.only |= (u64)out->said.of[i].said << i;
  const u32 before = diag_count(c);
  if (!search_run(c, a, src, m, costs, &narrow, &out->agree)) {
    u32 ended = 0;
    for (u32 i = 0; i < SEARCH_STATES; i++) ended += out->agree.count[i];
    if (!ended) out->point = contradiction(a, src, m, costs, &narrow, &out->agree, &out->said);
    if (!ended && !out->point) return false;
    diag_truncate(c, before); // that none fits is the answer
  }
  if (!out->point) out->point = nearest(&out->agree);
  find_known(r, out);
  const strategy best = search_strategy(&r->point[0]), asked = search_strategy(out->point);
  search_look_at(a, src, m, costs, o, &best, &out->winner);
  search_look_at(a, src, m, costs, o, &asked, &out->asked);
  return true;
}
