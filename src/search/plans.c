// plans.c - the plans of points, made in two steps: many strategies differ in the order of tasks and the
// streams of sends only, and the plan without these is kept for them.
#include "search/internal.h"

enum { SETS = 64, WAYS = 4, KEPT = SETS * WAYS };

typedef struct {
  strategy of; // settled, without what is about order and sends
  arena *a;    // NULL: empty
  plan *pn;    // NULL: impossible
  u64 hash;
  u64 used;
  diag_id id; // why it, or its stages, are impossible
  const char *why;
} unordered_plan;
typedef struct {
  strategy of, is;
  cuts_wanted cuts;
  bool none_fit;
} resolved; // a settled strategy, and the same with numbers in place of `auto`
struct unordered {
  unordered_plan v[KEPT]; // sets by hash
  u64 now;
  VEC(resolved) resolved;
  hmap resolved_map;
};

void unordered_free(unordered *x) {
  for (u32 i = 0; x && i < KEPT; i++) arena_free(x->v[i].a);
}

// Where it is, or is to be: in place of the one of its set that was used longest ago.
static unordered_plan *slot_of(unordered *of, const strategy *s) {
  unordered_plan *set = &of->v[strategy_hash(s) % SETS * WAYS], *oldest = set;
  for (unordered_plan *x = set; x < set + WAYS; x++) {
    if (x->a && !strategy_compare(&x->of, s)) return x;
    if (x->used < oldest->used) oldest = x;
  }
  arena_free(oldest->a);
  *oldest = (unordered_plan){.a = NULL};
  return oldest;
}

static unordered_plan *find(worker *w, const hybrid_opts *h) {
  hybrid_opts own = *h;
  own.s = strategy_of_stages(&h->s);
  unordered_plan *x = slot_of(w->plans, &own.s);
  x->used = ++w->plans->now;
  if (x->a) return x;
  x->a = arena_new();
  own.s = x->of = strategy_dup(x->a, &own.s);
  const u32 before = diag_count(w->c);
  x->pn = policy_unordered(w->pl, x->a, &own);
  if (x->pn && policy_staged(w->pl, x->a, x->pn, &own, NULL)) {
    x->hash = plan_hash_unordered(w->c, x->pn);
  } else {
    const diag_item d = diag_get(w->c, before);
    x->id = d.id, x->why = arena_strdup(x->a, d.message);
    diag_truncate(w->c, before);
  }
  return x;
}

// Every point is asked for several times: on screening, for its bound, for its time.
static bool resolve(worker *w, arena *a, hybrid_opts *h, point_plan *out) {
  unordered *x = w->plans;
  const u64 hash = x->resolved.n ? strategy_hash(&h->s) : 0;
  for (u32 it = 0, i; x->resolved.n && hmap_next(&x->resolved_map, hash, &it, &i);)
    if (x->resolved.v[i].cuts == h->cuts && !strategy_compare(&x->resolved.v[i].of, &h->s)) {
      out->is = h->s = x->resolved.v[i].is, out->none_fit = x->resolved.v[i].none_fit;
      return true;
    }
  const strategy of = h->s;
  h->none_fit = &out->none_fit;
  if (!policy_balance(w->pl, a, h, &h->s)) return false;
  out->as_said = !strategy_compare(&of, &h->s);
  out->is = out->as_said ? h->s : strategy_dup(w->a, &h->s);
  if (out->as_said) return true;
  hmap_add(w->a, &x->resolved_map, hash ? hash : strategy_hash(&of), x->resolved.n);
  *vec_push(w->a, &x->resolved) = (resolved){strategy_dup(w->a, &of), out->is, h->cuts, out->none_fit};
  return true;
}

const plan_submesh *search_stage_on(const plan *pn, u32 replica, u32 stage) {
  return replica && pn->replicas[replica].on ? &pn->replicas[replica].on[stage] : &pn->segments[stage].on;
}

u32 search_place(const plan *pn, u32 replica, u32 stage) {
  const plan_submesh *on = search_stage_on(pn, replica, stage);
  const u8 axis = mesh_axis(&pn->meshes[on->mesh], AXIS_PLACE);
  u32 k = 0;
  while (k < on->nfix && on->fix[k].axis != axis) k++;
  return k < on->nfix ? on->fix[k].at : 0;
}

u32 search_block(const strategy *s, const plan *pn, u32 replica, u32 stage) {
  const plan_submesh *on = search_stage_on(pn, replica, stage);
  const plan_mesh *m = &pn->meshes[on->mesh];
  u32 at = 0; // its first member
  for (u32 k = 0; k < m->naxes; k++) {
    at *= pn->axes[m->axis[k] - 1].size;
    for (u32 j = 0; j < on->nfix; j++) at += on->fix[j].axis == m->axis[k] ? on->fix[j].at : 0;
  }
  return ((m->ranks ? m->ranks[at] : m->first + at) - s->skip.n) / (s->dp.n * s->tp.n);
}

bool search_tries_cuts(const search *s, const search_point *p) {
  if (p->fitted || s->o->memory_bytes < 0) return false;
  const strategy of = search_strategy(p);
  return strategy_tries_cuts(&of);
}

// What is said of the order comes before what is said of stages; of one chunk and no group nothing can be. x NULL: it was said.
static plan *refuse(worker *w, const unordered_plan *x, const strategy *s, bool train) {
  const bool plain = s->v.n == 1 && !s->group.n;
  if (x && x->pn && !plain && !policy_schedule_runs(w->pl, s, train)) return NULL;
  if (x && x->why) diag(w->c, x->id, (loc){0}, "%s", x->why);
  return NULL;
}

static plan *make(worker *w, arena *a, hybrid_opts h, u64 *hash) {
  const bool made_up = h.s.replicas.nparts; // with stages and order of their own
  const unordered_plan *x = h.s.schedule.path || made_up ? NULL : find(w, &h);
  plan *pn = !x ? policy_unordered(w->pl, a, &h) : x->pn ? arena_dup(a, x->pn, sizeof *x->pn) : NULL;
  const sched *file = NULL;
  if (made_up) {
    if (pn) *hash = plan_hash_unordered(w->c, pn);
    if (pn) plan_drop_ways(w->pl, pn);
    return pn;
  }
  if (!pn || (x && x->why)) return refuse(w, x, &h.s, h.train);
  if (!policy_ordered(w->pl, a, pn, &h, &file)) return NULL;
  if (!x && !policy_staged(w->pl, a, pn, &h, file)) return NULL;
  policy_replicas(a, pn, &h.s, file);
  if (!policy_unrolled(w->c, a, pn, &h)) return NULL;
  plan_drop_ways(w->pl, pn);
  *hash = x ? x->hash : plan_hash_unordered(w->c, pn);
  return pn;
}

point_plan search_plan(const search *s, worker *w, arena *a, const search_point *p) {
  const strategy said = search_strategy(p);
  hybrid_opts h = search_hybrid(s->o, &said);
  point_plan out = {.pn = NULL};
  h.no_order = true, h.files = &s->files, h.k = w->k;
  h.cuts = p->fitted ? CUTS_THAT_FIT : CUTS_TO_TRY;
  if (!w->plans) w->plans = ZNEWN(w->a, unordered, 1);
  if (strategy_settle(w->c, NULL, 0, h.train, &h.s) && resolve(w, a, &h, &out))
    out.pn = make(w, a, h, &out.hash);
  return out;
}
