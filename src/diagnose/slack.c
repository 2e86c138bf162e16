// slack.c - effects after causes: the largest slack that all ties can have at once, the cycle that allows no more, and
// corrections moved so that they keep every tie.
//
// The slack is a linear programme: as large as possible, with every tie's row at least the slack. Ties of messages are
// those on the hulls, which is all of them. Collectives have a tie for every pair of members; only that between the
// latest start and the earliest end can bind, and which that is depends on the corrections: ties are added until no
// collective has a worse one. At the best drifts what is left are difference constraints, whose slack is exact
// (cycle.c).
#include "diagnose/align.h"
#include <math.h>

enum { CUTS_MOST = 12 };
static const double MOST_DRIFT = 1e-3, MOST_SLACK = 1e6; // of a clock that works; microseconds
static const double COST_MOST = 4e6;                     // beyond it, the slack is that of the drifts found
static const double CLOSE = 1e-6;                        // microseconds: a picosecond

static void keep_hulls(const problem *p, ties *keep) {
  for (u32 k = 0; k < p->in->nlinks; k++) {
    const align_link *l = &p->in->link[k];
    if (p->clock_of[l->from] == p->clock_of[l->to]) continue;
    for (u32 i = 0; i < p->pieces; i++) {
      const points *h = &p->hull[k * p->pieces + i];
      for (u32 j = 0; j < h->n; j++)
        *vec_push(p->a, keep) = (tie){l->from, l->to, h->v[j].s, h->v[j].d, false};
    }
  }
}

// Ties that x holds worse than limit (microseconds) and that are not kept yet: of every collective one, of every link
// one (messages that cross from one piece into the next are on no hull). How many.
static u32 add_worse(const problem *p, ties *keep, const double *x, double limit) {
  const u32 before = keep->n;
  const double *table = problem_table(p, x);
  for (u32 q = 0; q < p->in->ncollectives; q++) {
    tie t;
    if (!problem_tie_of(p, table, q, &t)) continue;
    const row r = problem_row(p, &t);
    if (row_at(&r, x) < limit - CLOSE) *vec_push(p->a, keep) = t;
  }
  if (p->pieces == 1) return keep->n - before;
  const floor_of *f = floors_of(p, p->a, x, 4 * p->pieces);
  for (u32 k = 0; k < p->in->nlinks * 4 * p->pieces; k++) {
    const align_link *l = &p->in->link[k / (4 * p->pieces)];
    if (p->clock_of[l->from] != p->clock_of[l->to] && f[k].d < (limit - CLOSE) * ALIGN_UNIT)
      *vec_push(p->a, keep) = (tie){l->from, l->to, f[k].s, f[k].raw, false};
  }
  return keep->n - before;
}

// From the latest start of every collective to all its ends, from all its starts to the earliest end: so that there are
// cycles.
static void add_stars(const problem *p, ties *keep, const double *x) {
  const double *table = problem_table(p, x);
  for (u32 q = 0; q < p->in->ncollectives; q++) {
    const align_member *m = p->in->member + p->in->collective[q].first;
    tie t;
    if (!problem_tie_of(p, table, q, &t)) continue;
    const double end = t.sent + t.d;
    for (u32 k = 0; k < p->in->collective[q].n; k++) {
      const double s = problem_local(p, m[k].process, m[k].start_ps),
                   e = problem_local(p, m[k].process, m[k].end_ps);
      const u32 clock = p->clock_of[m[k].process];
      if (clock != p->clock_of[t.from])
        *vec_push(p->a, keep) = (tie){t.from, m[k].process, t.sent, e - t.sent, true};
      if (clock != p->clock_of[t.to]) *vec_push(p->a, keep) = (tie){m[k].process, t.to, s, end - s, true};
    }
  }
}

// ---- the programme ------------------------------------------------------------------------------------------------
static void add_drift_limits(const problem *p, rows *r) {
  if (p->nk == 1) return;
  const double most = MOST_DRIFT * (p->knot[1] - p->knot[0]) / ALIGN_UNIT;
  for (u32 v = 0; v < p->nx; v++)
    for (int sign = -1; v % p->nk != p->nk - 1 && sign <= 1; sign += 2) {
      row *x = vec_push(p->a, r);
      *x = (row){.c = most};
      row_add(x, v, -sign), row_add(x, v + 1, sign);
    }
}

static double largest_slack(const problem *p, const ties *keep, double *x) {
  const u32 n = p->nx + 1;
  u32 *first = arena_dup(p->a, p->first, n * sizeof *first);
  first[p->nx] = 0;
  rows r = {0};
  double least = MOST_SLACK;
  for (u32 k = 0; k < keep->n; k++) {
    row *y = vec_push(p->a, &r);
    *y = problem_row(p, &keep->v[k]);
    least = fmin(least, row_at(y, x));
    row_add(y, p->nx, -1);
  }
  add_drift_limits(p, &r);
  row *most = vec_push(p->a, &r);
  *most = (row){.c = MOST_SLACK};
  row_add(most, p->nx, -1);
  sky h = sky_new(p->a, n, first);
  double *z = ZNEWN(p->a, double, n), *g = ZNEWN(p->a, double, n);
  for (u32 k = 0; k < p->nx; k++) z[k] = x[k], *sky_cell(&h, k, k) = 1e-13;
  z[p->nx] = least, g[p->nx] = -1;
  quadratic_solve(p->a, &h, g, &r, z);
  memcpy(x, z, p->nx * sizeof *x);
  return z[p->nx];
}

// ---- the cycle ----------------------------------------------------------------------------------------------------
typedef VEC(arc) arcs;
// Between clocks, the least tie of each: an arc from the cause's clock to the effect's. which: the tie of an arc.
static arcs arcs_of(const problem *p, const ties *keep, const double *x, u32 **which) {
  arcs out = {0};
  hmap known = {0};
  *which = NEWN(p->a, u32, keep->n + 1);
  for (u32 k = 0; k < keep->n; k++) {
    const tie *t = &keep->v[k];
    const row r = problem_row(p, t);
    const u32 from = p->clock_of[t->from], to = p->clock_of[t->to];
    const i64 gap = (i64)fmax(-4e15, fmin(4e15, floor(row_at(&r, x) * ALIGN_UNIT + 0.5))); // sums of many fit
    const u64 h = hash_u64((u64)from << 32 | to, 3);
    u32 at = hmap_get(&known, h);
    if (!at) {
      *vec_push(p->a, &out) = (arc){from, to, INT64_MAX};
      at = out.n;
      hmap_add(p->a, &known, h, at);
    }
    assert(out.v && at <= out.n);
    if (gap < out.v[at - 1].weight) out.v[at - 1].weight = gap, (*which)[at - 1] = k;
  }
  return out;
}

static i64 reading_of(const problem *p, u32 process, double t) {
  return (i64)floor(t + 0.5) + p->coarse[p->clock_of[process]] + p->origin;
}

static double find_cycle(const problem *p, const ties *keep, double *x, align_clocks *out) {
  u32 *which, *cycle, n;
  const arcs v = arcs_of(p, keep, x, &which);
  i64 sum;
  i64 *offset = NEWN(p->a, i64, p->nclocks + 1);
  out->slack_ps = INT64_MAX, out->ncycle = 0;
  if (!cycle_least_mean(p->a, p->nclocks, v.n, v.v, &cycle, &n, &sum, offset)) return MOST_SLACK;
  out->slack_ps = sum / n - (sum % n < 0);
  out->ncycle = n;
  out->cycle = NEWN(p->a, align_step, n);
  for (u32 k = 0; k < n; k++) {
    const tie *t = &keep->v[which[cycle[k]]];
    out->cycle[k] =
        (align_step){t->from, t->to, reading_of(p, t->from, t->sent), v.v[cycle[k]].weight, t->collective};
  }
  // Offsets that have this slack: the clock at the end of a path of gaps is that much later.
  for (u32 c = 0; c < p->nclocks; c++) {
    const i64 from = offset[p->reference[p->component[c]]];
    for (u32 k = 0; p->var[c] != TRACE_NONE && k < p->nk; k++)
      x[p->var[c] + k] += (double)(offset[c] - from) / ALIGN_UNIT;
  }
  return (double)sum / n / ALIGN_UNIT;
}

// Multiplications of a factor: what a step of the linear programme costs.
static double factor_cost(const problem *p) {
  double sum = 0;
  for (u32 k = 0; k < p->nx; k++) sum += (double)(k - p->first[k]) * (k - p->first[k]);
  return sum;
}

slack_fit slack_solve(const problem *p, const double *near, align_clocks *out) {
  slack_fit f = {.x = NEWN(p->a, double, p->nx + 1)};
  memcpy(f.x, near, p->nx * sizeof *near);
  keep_hulls(p, &f.keep);
  bool programme = p->nk > 1 && factor_cost(p) <= COST_MOST;
  if (programme)
    add_worse(p, &f.keep, f.x, INFINITY);
  else
    add_stars(p, &f.keep, f.x);
  for (u32 round = 0; round < CUTS_MOST; round++) {
    if (programme) largest_slack(p, &f.keep, f.x);
    const double slack = find_cycle(p, &f.keep, f.x, out);
    const u32 more = add_worse(p, &f.keep, f.x, slack);
    if (p->nk > 1 && slack < 0 && !programme)
      programme = true; // other drifts may do
    else if (!more)
      break;
  }
  return f;
}

// ---- keeping ties ---------------------------------------------------------------------------------------------------
static double worst(const problem *p, const ties *keep, const double *x) {
  double least = INFINITY;
  for (u32 k = 0; k < keep->n; k++) {
    const row r = problem_row(p, &keep->v[k]);
    least = fmin(least, row_at(&r, x));
  }
  return least;
}

void slack_keep(const problem *p, const floors_fit *f, ties *keep, double slack, double *x) {
  const u32 n = p->nx + p->in->nfamilies;
  const double limit =
      fmin(2e-6, slack / 2); // readings are rounded to picoseconds after: 2 more, if there is room
  for (u32 round = 0; round < CUTS_MOST; round++) {
    add_worse(p, keep, x, 0);
    if (worst(p, keep, x) >= limit) return;
    rows r = {0};
    for (u32 k = 0; k < keep->n; k++) {
      row *y = vec_push(p->a, &r);
      *y = problem_row(p, &keep->v[k]);
      y->c -= limit;
    }
    double *z = NEWN(p->a, double, n + 1), *g = ZNEWN(p->a, double, n + 1);
    memcpy(z, f->z, n * sizeof *z);
    for (u32 i = 0; i < n; i++) // the least squares' own answer is where it has no slope
      for (u32 j = f->h.first[i]; j <= i; j++) {
        const double v = f->h.v[f->h.at[i] + j];
        g[i] -= v * f->z[j];
        if (j < i) g[j] -= v * f->z[i];
      }
    quadratic_solve(p->a, &f->h, g, &r, z);
    memcpy(x, z, p->nx * sizeof *x);
  }
}

void slack_bounds(const problem *p, const ties *keep, const double *x, align_clocks *out) {
  u32 *which;
  const arcs v = arcs_of(p, keep, x, &which);
  i64 *up = NEWN(p->a, i64, p->nclocks + 1), *down = NEWN(p->a, i64, p->nclocks + 1);
  i64 *low = NEWN(p->a, i64, p->nclocks + 1), *high = NEWN(p->a, i64, p->nclocks + 1);
  for (u32 k = 0; k < v.n; k++) v.v[k].weight = MAX(v.v[k].weight, 0); // rounding
  for (u32 c = 0; c < p->ncomponents; c++) {
    const u32 reference = p->reference[c];
    paths_from(p->nclocks, v.n, v.v, reference, false, up);
    paths_from(p->nclocks, v.n, v.v, reference, true, down);
    for (u32 k = 0; k < p->nclocks; k++)
      if (p->component[k] == c) low[k] = down[k], high[k] = up[k];
  }
  for (u32 k = 0; k < p->in->nprocesses; k++) {
    const u32 c = p->clock_of[k];
    const i64 offset = align_offset(out, k);
    out->clock[k].high_ps = high[c] == INT64_MAX ? INT64_MAX : offset + high[c];
    out->clock[k].low_ps = low[c] == INT64_MAX ? INT64_MIN : offset - low[c];
  }
}
