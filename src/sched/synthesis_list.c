// synthesis_list.c - orders by list scheduling: whatever can begin first runs next.
//
// Idea: a rule says which kind of task comes first where several of a place can begin at nearly one time, and how many
// microbatches a stage may have between its forward and its backward. An order by a rule takes microseconds to
// milliseconds, so hundreds of rules are tried: some at random, then changes of the best one. An order from the end to the
// beginning is one as well: it is read backwards. So lists are made from either end, and each packs its own end tightly.
#include "sched/synthesis.h"

enum { RULES = 400, AT_RANDOM = 80, CAPS = 6, KINDS = 3 };
// Of a stage.
typedef struct {
  u8 rank[KINDS]; // of forwards, of backwards that others need, of gradients of weights: the least one first
  u8 window;      // in tenths of the mean task: as good as at once
  u32 cap;        // microbatches between forward and backward, at most
} rule;
typedef struct {
  synth *x;         // as lists are made: from_end, with all edges turned round
  const u16 *until; // by stage: the part that ends what its cap counts
  bool from_end;
  arena *a;
  u64 rng;
  u64 mean;   // of all tasks
  u32 *most;  // by stage: what memory holds
  u32 *depth; // by stage: what a steady state has between forward and backward, at least
  u16 *count; // by part: how many ran
  u64 *clock, *live;
  u64 *end;   // by part and microbatch
  u64 *begin; // by part: of its next item; UINT64_MAX: it can not run
} lists;

static u32 pick(lists *l, u32 n) { return (u32)(rng_next(&l->rng) % n); }
static u32 kind_of(const part *p) { return p->kind == TASK_F ? 0 : p->kind == TASK_W ? 2 : 1; }

// ---- an order by a rule -------------------------------------------------------------------------------
// When a part can begin its next item; UINT64_MAX: not now.
static u64 begins(const lists *l, const rule *r, u32 k) {
  const synth *x = l->x;
  const part *p = &x->part[k];
  const u32 m = l->count[k];
  u64 t = 0;
  if (m == x->micro || (p->takes && m - l->count[l->until[p->stage]] >= r[p->stage].cap)) return UINT64_MAX;
  for (u32 i = 0; i < p->npred; i++) {
    const u16 from = p->pred[i].part;
    if (l->count[from] <= m) return UINT64_MAX;
    t = MAX(t, l->end[from * x->micro + m] + p->pred[i].delay);
  }
  for (u32 i = 0; i < p->at->n; i++) {
    const u32 at = p->at->v[i];
    if (p->takes && l->live[at] + p->takes > x->limit) return UINT64_MAX;
    t = MAX(t, l->clock[at]);
  }
  return t;
}

static bool leaves_way_out(lists *l, u32 k) {
  if (!l->x->part[k].takes || l->from_end) return true;
  l->count[k]++;
  const bool ok = order_has_way_out(l->x, l->count);
  l->count[k]--;
  return ok;
}

static u8 rank_of(const rule *r, const part *p) { return r[p->stage].rank[kind_of(p)]; }

// The first that can begin, or one that shares a place with it, begins nearly then and comes before it. parts: none can.
static u32 next_part(lists *l, const rule *r) {
  const synth *x = l->x;
  u32 first = x->nparts;
  for (u32 k = 0; k < x->nparts; k++) {
    l->begin[k] = begins(l, r, k);
    if (l->begin[k] == UINT64_MAX || (first < x->nparts && l->begin[k] >= l->begin[first])) continue;
    if (leaves_way_out(l, k)) first = k;
  }
  if (first == x->nparts) return first;
  u32 best = first;
  const u64 until = l->begin[first] + l->mean / 10 * r[x->part[first].stage].window;
  for (u32 k = 0; k < x->nparts; k++) {
    const u8 rank = rank_of(r, &x->part[k]), least = rank_of(r, &x->part[best]);
    if (l->begin[k] > until || rank > least || (rank == least && l->begin[k] >= l->begin[best])) continue;
    if (share_places(x->part[k].at, x->part[first].at) && leaves_way_out(l, k)) best = k;
  }
  return best;
}

static bool list_by(lists *l, const rule *r, order_item *o) {
  synth *x = l->x;
  memset(l->count, 0, x->nparts * sizeof *l->count);
  memset(l->clock, 0, x->nplaces * sizeof *l->clock);
  memset(l->live, 0, x->nplaces * sizeof *l->live);
  spend(x, (u64)x->n * x->nparts);
  for (u32 n = 0; n < x->n; n++) {
    const u32 k = next_part(l, r);
    if (k == x->nparts) return false;
    const part *p = &x->part[k];
    const u64 end = l->begin[k] + p->dur;
    l->end[k * x->micro + l->count[k]++] = end;
    for (u32 i = 0; i < p->at->n; i++) {
      const u32 at = p->at->v[i];
      l->clock[at] = end, l->live[at] += p->takes, l->live[at] -= p->gives;
    }
    o[n] = (order_item)k;
  }
  return true;
}

// ---- rules --------------------------------------------------------------------------------------------
static void rank_at_random(lists *l, rule *r) {
  static const u8 orders[][KINDS] = {{1, 0, 2}, {1, 0, 2}, {1, 0, 2}, {0, 1, 2}, {0, 1, 2}, {2, 0, 1}};
  static const u8 tenths[] = {0, 0, 1, 3, 5};
  memcpy(r->rank, orders[pick(l, COUNT_OF(orders))], sizeof r->rank);
  r->window = tenths[pick(l, COUNT_OF(tenths))];
}

static u32 cap_at_random(lists *l, u32 stage) {
  static const u8 quarters[CAPS] = {3, 4, 5, 6, 8, 0}; // of the depth; 0: all that memory holds
  const u32 q = quarters[pick(l, CAPS)], most = l->most[stage];
  const u32 cap = q ? l->depth[stage] * q / 4 + pick(l, 2) : most - (most > 1 ? pick(l, 2) : 0);
  return MAX(1, MIN(cap, most));
}

// All stages rank alike at first; what they may hold is alike, or each for itself.
static void make_rules(lists *l, rule *r) {
  const bool full = pick(l, 2);
  rank_at_random(l, &r[0]);
  for (u32 k = 0; k < l->x->of->nstages; k++)
    r[k] = (rule){.window = r[0].window, .cap = full ? l->most[k] : cap_at_random(l, k)},
    memcpy(r[k].rank, r[0].rank, sizeof r->rank);
}

static void change_rules(lists *l, const rule *from, rule *to) {
  const u32 stages = l->x->of->nstages;
  memcpy(to, from, stages * sizeof *to);
  for (u32 n = 1 + pick(l, 3); n--;) {
    const u32 k = pick(l, stages), what = pick(l, 8);
    if (what < 3)
      rank_at_random(l, &to[k]);
    else if (what == 3)
      to[k].cap = cap_at_random(l, k);
    else
      to[k].cap = what & 1 ? MIN(to[k].cap + 1, l->most[k]) : MAX(to[k].cap, 2) - 1;
  }
}

static void set_caps(lists *l, const synth *x) {
  u64 *inside = NEWN(l->a, u64, x->of->nstages), sum = 0;
  const u64 period = period_least(x);
  stages_inside(x, inside);
  for (u32 k = 0; k < x->of->nstages; k++) {
    const u64 each = x->of->cost.memory[k];
    const bool any = x->limit == SCHED_NO_LIMIT || !each;
    l->most[k] = any ? x->micro : (u32)MIN(x->limit / each, x->micro);
    l->depth[k] = (u32)MIN(inside[k] / period + 1, x->micro);
  }
  assert(x->nparts);
  for (u32 k = 0; k < x->nparts; k++) sum += x->part[k].dur;
  l->mean = sum / x->nparts;
}

// The same stages from the end: what gives memory back takes it, and each part waits for those that need it.
static synth turned(const synth *x, arena *a) {
  synth y = *x;
  y.part = arena_dup(a, x->part, x->nparts * sizeof *x->part);
  for (u32 k = 0; k < x->nparts; k++) {
    part *p = &y.part[k];
    const part *q = &x->part[k];
    p->takes = q->gives, p->gives = q->takes;
    p->npred = q->nsucc, p->pred = q->succ, p->nsucc = q->npred, p->succ = q->pred;
  }
  return y;
}

static void turn(const synth *x, order_item *o) {
  for (u32 i = 0; i < x->n / 2; i++) {
    const order_item was = o[i];
    o[i] = o[x->n - 1 - i], o[x->n - 1 - i] = was;
  }
}

bool list_search(synth *x, u64 seed, bool from_end, order_item *o) {
  arena *a = arena_new();
  const u32 stages = x->of->nstages;
  synth other = turned(x, a);
  lists l = {.x = from_end ? &other : x,
             .until = from_end ? x->forward : x->back,
             .from_end = from_end,
             .a = a,
             .rng = seed,
             .most = NEWN(a, u32, stages),
             .depth = NEWN(a, u32, stages),
             .count = NEWN(a, u16, x->nparts),
             .clock = NEWN(a, u64, x->nplaces),
             .live = NEWN(a, u64, x->nplaces),
             .end = NEWN(a, u64, x->n),
             .begin = NEWN(a, u64, x->nparts)};
  set_caps(&l, x);
  rule *now = NEWN(a, rule, stages), *best = NEWN(a, rule, stages);
  order_item *own = NEWN(a, order_item, x->n);
  u64 least = UINT64_MAX;
  for (u32 n = 0; n < RULES && x->steps; n++) {
    if (n < AT_RANDOM || least == UINT64_MAX)
      make_rules(&l, now);
    else
      change_rules(&l, best, now);
    const bool done = list_by(&l, now, own);
    x->steps = l.x->steps;
    if (!done) continue;
    if (from_end) turn(x, own);
    const u64 time = order_time(x, own, NULL);
    if (time > least) continue; // of equal ones the last, so that changes go on from there
    if (time < least) memcpy(o, own, x->n * sizeof *o);
    least = time, memcpy(best, now, stages * sizeof *best);
  }
  arena_free(a);
  return least < UINT64_MAX;
}
