// stages.c - order of devices, cuts and which devices: the least bottleneck, the least total.
//
// Idea: whether there is a plan under a bottleneck is monotone in it, so it is bisected over those that plans
// can have. Where no send can be the bottleneck and the number of stages is free, line_reach says it; else
// line_sums, between what line_reach says and where it would say the same.
#include "balance/internal.h"

typedef struct {
  line l;
  i64 most_tau; // no plan has more
  u64 cells;    // that the largest table of sums has, or would have
  u32 n;        // stages of the best plan yet, 0: none
  u32 *kind, *end;
  i64 tau, total; // of it
} choice;

// ---- whether there is a plan --------------------------------------------------------------------------
static bool reaches(choice *c, i64 tau) {
  line_limit(&c->l, tau);
  return line_reach(&c->l) == 0;
}
static bool has_sums(choice *c, i64 tau) {
  arena *a = arena_new();
  sums s;
  line_sums(&c->l, a, tau, NEVER - 1, &s);
  c->cells = MAX(c->cells, s.cells);
  arena_free(a);
  return s.least < NEVER;
}

// The least bottleneck above `above`, of those up to `upto`, of which the last suffices.
static i64 least_of(choice *c, bool (*suffices)(choice *c, i64 tau), i64 above, i64 upto) {
  i64 *tau;
  arena_mark_t mark = arena_mark(c->l.tmp);
  u32 n = line_bottlenecks(&c->l, c->l.tmp, above, upto, &tau), lo = 0, hi = n - 1;
  assert(n > 0);
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (suffices(c, tau[mid]))
      hi = mid;
    else
      lo = mid + 1;
  }
  i64 least = tau[hi];
  arena_release(c->l.tmp, mark);
  return least;
}

// From `least` on, which may suffice: steps that double, then bisection. NEVER: not even `most` suffices.
static i64 least_from(choice *c, bool (*suffices)(choice *c, i64 tau), i64 least, i64 most) {
  i64 above = least - 1, upto = least;
  for (i64 step = least / 64 + 1; !suffices(c, upto); step *= 2) {
    if (upto == most) return NEVER;
    above = upto;
    upto = MIN(add_sat(upto, step), most);
  }
  return least_of(c, suffices, above, upto);
}

// ---- the best plan ------------------------------------------------------------------------------------
static i64 total_of(const choice *c, i64 tau, i64 sum) {
  return add_sat(mul_sat(c->l.in->micro - 1, tau), sum);
}

// The least sum under tau; its plan is kept if it is the best yet. bottleneck: what that plan has. NEVER: it
// is more than `most`, or there are too many sums.
static i64 weigh(choice *c, i64 tau, i64 most, i64 *bottleneck) {
  line *l = &c->l;
  arena *a = arena_new();
  sums s;
  line_sums(l, a, tau, most, &s);
  c->cells = MAX(c->cells, s.cells);
  if (s.least == NEVER) {
    arena_free(a);
    return NEVER;
  }
  u32 *kind = NEWN(a, u32, l->most), *end = NEWN(a, u32, l->most), n = path_of_sums(&s, kind, end);
  *bottleneck = path_bottleneck(l, n, kind, end);
  i64 total = total_of(c, *bottleneck, s.least);
  if (!c->n || total < c->total || (total == c->total && *bottleneck < c->tau)) {
    c->n = n, c->total = total, c->tau = *bottleneck;
    memcpy(c->kind, kind, n * sizeof *kind);
    memcpy(c->end, end, n * sizeof *end);
  }
  arena_free(a);
  return s.least;
}

static u32 place_of(const i64 *tau, u32 n, i64 x) { // tau[i] == x
  u32 lo = 0, hi = n - 1;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (tau[mid] < x)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

// Bottlenecks that are still to be looked at: those after tau[from], before tau[to]. No plan under them has a
// smaller sum than `least`, and one under tau[from] has `most`.
typedef struct {
  u32 from, to;
  i64 least, most;
} gap;

// From the plan with the least bottleneck, of sum `most`, to that with the least total. The sum falls as the
// bottleneck grows: a plan in a gap has no smaller total than the first bottleneck there with the least sum
// there. Sums that could not be in a better plan are not looked for.
static void trade(choice *c, i64 most) {
  line *l = &c->l;
  i64 *tau, upto = c->most_tau, at, others = l->in->micro - 1;
  if (others) upto = MIN(upto, (c->total - line_rest_under(l, c->most_tau)) / others);
  if (upto <= c->tau) return;
  u32 n = line_bottlenecks(l, l->tmp, c->tau - 1, upto, &tau);
  VEC(gap) open = {0};
  *vec_push(l->tmp, &open) = (gap){.from = 0, .to = n, .most = most};
  while (open.n && c->cells <= CELLS_MAX) {
    gap g = open.v[--open.n];
    if (g.to < g.from + 2) continue;
    i64 first = tau[g.from + 1];
    i64 least = total_of(c, first, MAX(g.least, line_rest_under(l, tau[g.to - 1])));
    if (least > c->total || (least == c->total && first >= c->tau)) continue;
    u32 mid = g.from + (g.to - g.from) / 2;
    i64 sum = weigh(c, tau[mid], MIN(g.most, c->total - others * first), &at);
    *vec_push(l->tmp, &open) = (gap){mid, g.to, g.least, MIN(g.most, sum)};
    if (sum < NEVER) *vec_push(l->tmp, &open) = (gap){g.from, place_of(tau, n, at), sum, g.most};
  }
}

// ---- what is impossible -------------------------------------------------------------------------------
static balance_fault check_layers(const line *l, balance_cuts *out) {
  const balance_line *in = l->in;
  for (u32 k = 0; k < l->K; k++)
    if (l->count[k]) out->have_bytes = MAX(out->have_bytes, in->kind[k].memory_bytes);
  for (u32 i = 0; i < l->L; i++) {
    i64 fixed = in->fixed_bytes ? in->fixed_bytes[i] : 0, kept = in->kept_bytes ? in->kept_bytes[i] : 0;
    if (add_sat(fixed, kept) <= out->have_bytes) continue;
    out->layer = i, out->need_bytes = add_sat(fixed, kept);
    return BALANCE_LAYER;
  }
  return BALANCE_OK;
}

static balance_fault choose(choice *c, balance_cuts *out) {
  line *l = &c->l;
  const balance_line *in = l->in;
  c->most_tau = l->most_send;
  for (u32 k = 0; k < l->K; k++) c->most_tau = MAX(c->most_tau, l->time[k * (l->L + 1) + l->L]);
  line_limit(l, c->most_tau);
  u32 nearest = line_reach(l);
  if (nearest) {
    out->placed = l->L - nearest;
    return BALANCE_MEMORY;
  }
  out->tau_bound_ps = speed_bound(l->tmp, l->L, l->K, in->time_ps, l->count, l->most);
  out->total_bound_ps = total_of(c, out->tau_bound_ps, line_rest_under(l, c->most_tau));
  i64 tau = least_from(c, reaches, out->tau_bound_ps, c->most_tau), at;
  bool by_sums = in->stages || l->most_send > tau;
  if (by_sums) tau = least_from(c, has_sums, tau, in->stages ? c->most_tau : l->most_send);
  if (tau == NEVER) return BALANCE_STAGES;
  i64 most = NEVER - 1;
  if (!by_sums) {
    reaches(c, tau);
    u32 n = path_of_reach(l, c->kind, c->end);
    most = path_sum(l, n, c->kind, c->end);
  }
  i64 sum = weigh(c, tau, most, &at);
  if (in->aim == BALANCE_TOTAL && c->n) trade(c, sum);
  return BALANCE_OK;
}

balance_fault balance_stages(arena *a, const balance_line *in, balance_cuts *out) {
  *out = (balance_cuts){0};
  arena *tmp = arena_new();
  choice c = {0};
  line *l = &c.l;
  balance_fault f;
  out->states = line_open(l, tmp, in);
  if (out->states > STATES_MAX)
    f = BALANCE_STATES;
  else if (!l->most || l->most < in->stages)
    f = BALANCE_STAGES;
  else if ((f = check_layers(l, out)) == BALANCE_OK) {
    c.kind = NEWN(a, u32, l->most), c.end = NEWN(a, u32, l->most);
    f = choose(&c, out);
    if (c.cells > CELLS_MAX) f = BALANCE_STATES, out->states = c.cells;
    out->nstages = c.n, out->kind = c.kind, out->end = c.end;
    out->tau_ps = c.tau, out->total_ps = c.total;
  }
  arena_free(tmp);
  return f;
}
