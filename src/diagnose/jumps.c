// jumps.c - clocks that jump: corrections that are straight lines leave a step in everything that a clock takes part in.
//
// Time is cut into windows. In each, a clock is ahead of its neighbours by half of (fastest message from it less fastest
// to it), and of collectives by its end less their median; the median over neighbours says how far it is ahead by itself.
// A straight line, and a straight line with one step, are fitted to these; the clock whose step explains most jumps.
// Its step is taken off, and so on: neighbours have half of it or less, and come later or not at all.
#include "diagnose/align.h"
#include <math.h>
#include <stdlib.h>

enum { WINDOWS = 64, JUMPS_MOST = 16 };
static const double CERTAIN = 8; // steps over the scatter of windows
typedef struct {
  u32 x, y, window; // clocks; y TRACE_NONE: the middle of a collective
  double ahead;     // of x before y, ps
} lead;
typedef struct {
  const problem *p;
  arena *a;
  VEC(lead) leads;
  double *series; // [clock * WINDOWS + window]; NAN
} jumps;

static u32 window_of(const problem *p, double t) {
  const double w = t / p->span * WINDOWS;
  return w <= 0 ? 0 : w >= WINDOWS ? WINDOWS - 1 : (u32)w;
}

static void find_leads(jumps *j, const double *x) {
  const problem *p = j->p;
  const floor_of *f = floors_of(p, j->a, x, WINDOWS);
  const u32 *back = floors_reverse(p, j->a);
  for (u32 k = 0; k < p->in->nlinks; k++) {
    const u32 from = p->clock_of[p->in->link[k].from], to = p->clock_of[p->in->link[k].to];
    if (from >= to || back[k] == TRACE_NONE) continue;
    for (u32 w = 0; w < WINDOWS; w++) {
      const double there = f[k * WINDOWS + w].d, here = f[back[k] * WINDOWS + w].d;
      if (there < INFINITY && here < INFINITY)
        *vec_push(j->a, &j->leads) = (lead){from, to, w, (here - there) / 2};
    }
  }
  const double *table = problem_table(p, x);
  double *end = NEWN(j->a, double, p->in->nmembers + 1), *sorted = NEWN(j->a, double, p->in->nmembers + 1);
  for (u32 q = 0; q < p->in->ncollectives; q++) {
    const align_collective *c = &p->in->collective[q];
    const align_member *m = p->in->member + c->first;
    for (u32 k = 0; k < c->n; k++) {
      const double t = problem_local(p, m[k].process, m[k].end_ps);
      end[k] = sorted[k] = t - problem_correction(p, table, p->clock_of[m[k].process], t);
    }
    if (c->n == 2)
      *vec_push(j->a, &j->leads) =
          (lead){p->clock_of[m[0].process], p->clock_of[m[1].process], window_of(p, end[0]), end[0] - end[1]};
    const double middle = floors_median(sorted, c->n, NAN);
    for (u32 k = 0; c->n > 2 && k < c->n; k++)
      *vec_push(j->a, &j->leads) =
          (lead){p->clock_of[m[k].process], TRACE_NONE, window_of(p, end[k]), end[k] - middle};
  }
}

static void find_series(jumps *j) {
  const u32 cells = j->p->nclocks * WINDOWS;
  u32 *count = ZNEWN(j->a, u32, cells + 2);
  for (u32 k = 0; k < j->leads.n; k++) {
    const lead *l = &j->leads.v[k];
    count[l->x * WINDOWS + l->window + 1]++;
    if (l->y != TRACE_NONE) count[l->y * WINDOWS + l->window + 1]++;
  }
  for (u32 k = 0; k < cells; k++) count[k + 1] += count[k];
  double *v = NEWN(j->a, double, count[cells] + 1);
  u32 *end = arena_dup(j->a, count, (cells + 1) * sizeof *end);
  for (u32 k = 0; k < j->leads.n; k++) {
    const lead *l = &j->leads.v[k];
    v[end[l->x * WINDOWS + l->window]++] = l->ahead;
    if (l->y != TRACE_NONE) v[end[l->y * WINDOWS + l->window]++] = -l->ahead;
  }
  for (u32 k = 0; k < cells; k++) j->series[k] = floors_median(v + count[k], end[k] - count[k], NAN);
}

// Least squares of a line, and of a step from window `at` on (0: none): what is left. v: NAN where nothing is known.
static double line_left(const double *v, u32 at, double *step) {
  double m[3][4] = {{0}};
  for (u32 w = 0; w < WINDOWS; w++) {
    if (isnan(v[w])) continue;
    const double b[3] = {1, (double)w / WINDOWS - 0.5, at && w >= at};
    for (u32 i = 0; i < 3; i++) {
      for (u32 k = 0; k < 3; k++) m[i][k] += b[i] * b[k];
      m[i][3] += b[i] * v[w];
    }
  }
  const u32 n = at ? 3 : 2;
  for (u32 i = 0; i < n; i++) {
    if (!(m[i][i] > 1e-9)) return INFINITY;
    for (u32 r = 0; r < n; r++) {
      const double f = r == i ? 0 : m[r][i] / m[i][i];
      for (u32 k = i; k < 3; k++) m[r][k] -= f * m[i][k];
      m[r][3] -= f * m[i][3];
    }
  }
  const double a = m[0][3] / m[0][0], b = m[1][3] / m[1][1], s = at ? m[2][3] / m[2][2] : 0;
  double left = 0;
  for (u32 w = 0; w < WINDOWS; w++) {
    if (isnan(v[w])) continue;
    const double e = v[w] - a - b * ((double)w / WINDOWS - 0.5) - (at && w >= at ? s : 0);
    left += e * e;
  }
  *step = s;
  return left;
}

typedef struct {
  u32 clock, at;
  double step, gain;
} found;

static found find_step(const jumps *j) {
  found best = {.clock = TRACE_NONE};
  for (u32 c = 0; c < j->p->nclocks; c++) {
    const double *v = j->series + (size_t)c * WINDOWS;
    double difference[WINDOWS], step, last = NAN;
    u32 n = 0, seen = 0;
    for (u32 w = 0; w < WINDOWS; w++) {
      if (isnan(v[w])) continue;
      if (seen++) difference[n++] = fabs(v[w] - last);
      last = v[w];
    }
    if (seen < 8) continue;
    const double scatter = 1.4826 * floors_median(difference, n, NAN) / sqrt(2),
                 none = line_left(v, 0, &step);
    for (u32 at = 2; at + 2 <= WINDOWS; at++) {
      const double left = line_left(v, at, &step), gain = none - left;
      if (left == INFINITY || gain <= best.gain || fabs(step) < CERTAIN * scatter + ALIGN_UNIT ||
          left * 4 > none)
        continue;
      best = (found){c, at, step, gain};
    }
  }
  return best;
}

void jumps_find(const problem *p, const double *x, align_clocks *out) {
  jumps j = {.p = p, .a = p->a, .series = NEWN(p->a, double, (size_t)p->nclocks *WINDOWS + 1)};
  find_leads(&j, x);
  VEC(align_jump) all = {0};
  while (all.n < JUMPS_MOST) {
    find_series(&j);
    const found f = find_step(&j);
    if (f.clock == TRACE_NONE) break;
    for (u32 k = 0; k < j.leads.n; k++) {
      lead *l = &j.leads.v[k];
      if (l->window < f.at) continue;
      if (l->x == f.clock) l->ahead -= f.step;
      if (l->y == f.clock) l->ahead += f.step;
    }
    for (u32 k = 0; k < p->in->nprocesses; k++)
      if (p->clock_of[k] == f.clock)
        *vec_push(p->a, &all) = (align_jump){
            .process = k,
            .time_ps = (i64)(p->span / WINDOWS * f.at) + p->origin + p->coarse[f.clock],
            .within_ps = (i64)(p->span / WINDOWS),
            .by_ps = (i64)floor(f.step + 0.5),
        };
  }
  out->njumps = all.n, out->jump = all.v;
}
