// floors.c - clocks by weighted least squares: over the fastest message of every link and window of time, and over the
// ends of collectives.
//
// What a message takes is a latency, which messages of a family share, and a wait that is never negative and is
// sometimes almost nothing: of n messages the fastest says n times more than one of them. For two clocks that send both
// ways the two fastest say between which limits their offset is; the limits are as far apart as both waits together,
// and nothing says where between them it is, so the middle is taken, with the variance of an even spread. That
// variance is its weight.
//
// Ends of a collective differ by a scatter that has no sign. What one collective says is how far each member is from
// their mean; ends that are further off than the scatter allows count as if they were not (Huber).
#include "diagnose/align.h"
#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 8, MESSAGES_A_WINDOW = 40, WINDOWS_MOST = 16 };
static const double PRIOR_DRIFT = 1e-3;   // standard deviation of drifts if nothing is known
static const double PRIOR_LATENCY = 1000; // microseconds, where nothing else says what a latency is
static const double HUBER = 2.5, HUBER_FLOORS = 4, MAD = 1.4826;
static const double OUTLYING = 8; // so many times the lower quartile's distance below the middle

floor_of *floors_of(const problem *p, arena *a, const double *x, u32 n) {
  const align_seen *in = p->in;
  floor_of *f = NEWN(a, floor_of, (size_t)in->nlinks * n + 1);
  for (size_t k = 0; k < (size_t)in->nlinks * n; k++) f[k] = (floor_of){.d = INFINITY};
  const double *table = problem_table(p, x), scale = n / p->span;
  for (u32 k = 0; k < in->nmessages; k++) {
    const align_message *m = &in->message[k];
    const align_link *l = &in->link[m->link];
    const u32 from = p->clock_of[l->from], to = p->clock_of[l->to];
    const double s = (double)(m->send_ps - p->coarse[from] - p->origin);
    const double r = (double)(m->recv_ps - p->coarse[to] - p->origin);
    const double d = r - s - problem_correction(p, table, to, r) + problem_correction(p, table, from, s);
    const double w = s * scale;
    floor_of *at = &f[(size_t)m->link * n + (w <= 0 ? 0 : w >= n ? n - 1 : (u32)w)];
    if (d < at->d) *at = (floor_of){d, s, r - s};
  }
  return f;
}

u32 *floors_reverse(const problem *p, arena *a) {
  const align_seen *in = p->in;
  u32 *back = NEWN(a, u32, in->nlinks + 1);
  hmap by_pair = {0};
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 k = 0; k < in->nlinks; k++) {
      const align_link *l = &in->link[k];
      const u32 x = p->clock_of[pass ? l->to : l->from], y = p->clock_of[pass ? l->from : l->to];
      const u64 h = hash_u64((u64)x << 32 | y, l->family + 11);
      if (!pass)
        hmap_add(a, &by_pair, h, k + 1);
      else
        back[k] = hmap_get(&by_pair, h) - 1; // 0: TRACE_NONE
    }
  return back;
}

// ---- one round -------------------------------------------------------------------------------------------------
typedef struct {
  row r;
  u32 family, back; // floor of the way back in the same window; TRACE_NONE
  double d;         // at the present x, microseconds; the latency not taken off
} term;
typedef struct {
  u32 n, family;
  const u32 *process; // members, as the first collective has them
  double *moment;     // [nk * nk]: sum of products of shares of knots
} member_set;
typedef struct {
  const problem *p;
  arena *a;
  u32 n; // unknowns: of clocks, latencies
  sky h;
  double *g, *z, *ends_sd; // ends_sd: by family, microseconds
  VEC(term) terms;
  VEC(member_set) sets;
  u32 *set_of; // by collective
  double *scratch;
  bool *seen;
} least;

double floors_median(double *v, u32 n, double none) {
  qsort(v, n, sizeof *v, ascending_double);
  return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : none;
}

static void make_terms(least *q, const double *x0, u32 windows) {
  const problem *p = q->p;
  const floor_of *f = floors_of(p, q->a, x0, windows);
  const u32 *back = floors_reverse(p, q->a);
  u32 *number = NEWN(q->a, u32, (size_t)p->in->nlinks * windows + 1);
  for (u32 k = 0; k < p->in->nlinks * windows; k++) {
    const align_link *l = &p->in->link[k / windows];
    number[k] = TRACE_NONE;
    if (f[k].d == INFINITY || p->clock_of[l->from] == p->clock_of[l->to]) continue;
    const tie t = {l->from, l->to, f[k].s, f[k].raw, false};
    number[k] = q->terms.n;
    q->seen[l->family] = true;
    *vec_push(q->a, &q->terms) = (term){problem_row(p, &t), l->family, k, 0};
  }
  for (u32 k = 0; k < q->terms.n; k++) {
    term *t = &q->terms.v[k];
    const u32 link = t->back / windows, w = t->back % windows;
    t->back = back[link] == TRACE_NONE ? TRACE_NONE : number[(size_t)back[link] * windows + w];
  }
}

// The least latency of a family: the least half sum of both ways that is not out of all proportion to the others (a
// message that cannot have arrived so early).
static double least_way(double *v, u32 n) {
  qsort(v, n, sizeof *v, ascending_double);
  const double middle = v[n / 2], limit = middle - OUTLYING * (middle - v[n / 4]) - 1e-3;
  u32 k = 0;
  while (v[k] < limit) k++;
  return v[k];
}

// Limits of a term (microseconds): how far the sum of both ways is above twice the least latency of the family.
static void weigh(const least *q, double *variance) {
  const u32 n = q->terms.n;
  double *v = NEWN(q->a, double, n + 1);
  for (u32 k = 0; k < n; k++) {
    const term *t = &q->terms.v[k];
    variance[k] = t->back == TRACE_NONE ? t->d : (t->d + q->terms.v[t->back].d) / 2;
  }
  for (u32 f = 0; f < q->p->in->nfamilies; f++) {
    u32 m = 0;
    for (u32 k = 0; k < n; k++)
      if (q->terms.v[k].family == f) v[m++] = variance[k];
    if (!m) continue;
    const double low = least_way(v, m), typical = 2 * (floors_median(v, m, 0) - low);
    for (u32 k = 0; k < n; k++) {
      if (q->terms.v[k].family != f) continue;
      const double wide = fmax(2 * (variance[k] - low), typical + 1e-5);
      variance[k] = wide * wide / 6;
    }
  }
}

static void add_messages(least *q, bool first) {
  double *variance = NEWN(q->a, double, q->terms.n + 1);
  for (u32 k = 0; k < q->terms.n; k++) q->terms.v[k].d = row_at(&q->terms.v[k].r, q->z);
  if (!first) weigh(q, variance);
  for (u32 k = 0; k < q->terms.n; k++) {
    const term *t = &q->terms.v[k];
    double w = first ? 1 : 1 / variance[k];
    row r = t->r;
    row_add(&r, q->p->nx + t->family, -1);
    const double left = row_at(&r, q->z), far = fabs(left) * sqrt(w) / HUBER_FLOORS;
    if (!first && far > 1) w /= far;
    sky_row(&q->h, &r, w);
    for (u32 i = 0; i < r.n; i++) q->g[r.col[i]] += w * left * r.val[i];
  }
}

// ---- collectives -------------------------------------------------------------------------------------------------
static void shares(const problem *p, double t, double *v) { // of knots, in a reading
  memset(v, 0, p->nk * sizeof *v);
  if (p->nk == 1) {
    v[0] = 1;
    return;
  }
  const double step = p->knot[1] - p->knot[0];
  u32 k = 0;
  if (p->nk > 2 && t > 0) k = (u32)(t / step) < p->nk - 2 ? (u32)(t / step) : p->nk - 2;
  const double share = (t - p->knot[k]) / step;
  v[k] = 1 - share, v[k + 1] = share;
}

static void make_sets(least *q) {
  const problem *p = q->p;
  hmap known = {0};
  q->set_of = NEWN(q->a, u32, p->in->ncollectives + 1);
  for (u32 c = 0; c < p->in->ncollectives; c++) {
    const align_collective *x = &p->in->collective[c];
    u32 *who = NEWN(q->a, u32, x->n + 1), it = 0, id;
    for (u32 k = 0; k < x->n; k++) who[k] = p->clock_of[p->in->member[x->first + k].process];
    const u64 h = hash_bytes(who, x->n * sizeof *who, x->family);
    q->set_of[c] = TRACE_NONE;
    while (q->set_of[c] == TRACE_NONE && hmap_next(&known, h, &it, &id)) {
      if (id >= q->sets.n) break; // never: every id is of a set
      const member_set *s = &q->sets.v[id];
      if (s->n == x->n && s->family == x->family && !memcmp(s->process, who, x->n * sizeof *who))
        q->set_of[c] = id;
    }
    if (q->set_of[c] != TRACE_NONE) continue;
    hmap_add(q->a, &known, h, q->sets.n);
    q->set_of[c] = q->sets.n;
    *vec_push(q->a, &q->sets) = (member_set){x->n, x->family, who, ZNEWN(q->a, double, p->nk * p->nk)};
  }
}

// Ends less their mean, microseconds, and the middle of the collective as local time.
static double ends_of(const problem *p, const double *table, u32 collective, double *end) {
  const align_collective *x = &p->in->collective[collective];
  double mean = 0;
  for (u32 k = 0; k < x->n; k++) {
    const align_member *m = &p->in->member[x->first + k];
    const double t = problem_local(p, m->process, m->end_ps);
    end[k] = t - problem_correction(p, table, p->clock_of[m->process], t);
    mean += end[k] / x->n;
  }
  for (u32 k = 0; k < x->n; k++) end[k] = (end[k] - mean) / ALIGN_UNIT;
  return mean;
}

static void find_scatter(least *q) {
  const problem *p = q->p;
  const double *table = problem_table(p, q->z);
  double *v = NEWN(q->a, double, p->in->nmembers + 1), *end = NEWN(q->a, double, p->in->nmembers + 1);
  for (u32 f = 0; f < p->in->nfamilies; f++) {
    u32 n = 0;
    for (u32 c = 0; c < p->in->ncollectives; c++) {
      const align_collective *x = &p->in->collective[c];
      if (x->family != f || x->n < 2) continue;
      ends_of(p, table, c, end);
      for (u32 k = 0; k < x->n; k++) v[n++] = fabs(end[k]) / sqrt(1 - 1.0 / x->n);
    }
    q->ends_sd[f] = fmax(MAD * floors_median(v, n, 0), 1e-3);
  }
}

static void add_collectives(least *q) {
  const problem *p = q->p;
  const u32 nk = p->nk;
  double *end = NEWN(q->a, double, p->in->nmembers + 1), *part = NEWN(q->a, double, nk);
  const double *table = problem_table(p, q->z);
  for (u32 s = 0; s < q->sets.n; s++) memset(q->sets.v[s].moment, 0, nk * nk * sizeof(double));
  for (u32 c = 0; c < p->in->ncollectives; c++) {
    const align_collective *x = &p->in->collective[c];
    if (x->n < 2) continue;
    const double sd = q->ends_sd[x->family], w = 1 / (sd * sd);
    shares(p, ends_of(p, table, c, end), part);
    double mean = 0; // of what is left once far ends are cut
    for (u32 k = 0; k < x->n; k++) {
      end[k] = fmax(-HUBER * sd, fmin(HUBER * sd, end[k]));
      mean += end[k] / x->n;
    }
    for (u32 k = 0; k < x->n; k++) {
      const u32 v = p->var[p->clock_of[p->in->member[x->first + k].process]];
      for (u32 i = 0; v != TRACE_NONE && i < nk; i++) q->g[v + i] -= w * (end[k] - mean) * part[i];
    }
    double *m = q->sets.v[q->set_of[c]].moment;
    for (u32 i = 0; i < nk; i++)
      for (u32 j = 0; j < nk; j++) m[i * nk + j] += w * part[i] * part[j];
  }
  for (u32 s = 0; s < q->sets.n; s++) {
    const member_set *x = &q->sets.v[s];
    for (u32 i = 0; i < x->n; i++)
      for (u32 j = 0; j < x->n; j++) {
        const u32 vi = p->var[x->process[i]], vj = p->var[x->process[j]];
        if (vi == TRACE_NONE || vj == TRACE_NONE || vi < vj) continue;
        for (u32 k = 0; k < nk; k++)
          for (u32 l = 0; l < nk; l++)
            if (vj + l <= vi + k)
              *sky_cell(&q->h, vi + k, vj + l) += x->moment[k * nk + l] * ((i == j) - 1.0 / x->n);
      }
  }
}

// ---- what is assumed if nothing is known ----------------------------------------------------------------------------
static void add_priors(least *q) {
  const problem *p = q->p;
  const double change = PRIOR_DRIFT * p->span / ALIGN_UNIT / (p->nk > 1 ? p->nk - 1 : 1);
  for (u32 v = 0; v < p->nx; v++) {
    *sky_cell(&q->h, v, v) += 1e-18; // of equals the one that changes least
    if (p->nk <= 1 || v % p->nk == p->nk - 1) continue;
    row r = {0};
    row_add(&r, v, -1), row_add(&r, v + 1, 1);
    const double square = change * change, w = square > 0 ? 1 / square : 0, left = row_at(&r, q->z);
    sky_row(&q->h, &r, w);
    q->g[v] -= w * left, q->g[v + 1] += w * left;
  }
  for (u32 f = 0; f < p->in->nfamilies; f++) {
    const u32 v = p->nx + f;
    const double w = 1 / (PRIOR_LATENCY * PRIOR_LATENCY);
    *sky_cell(&q->h, v, v) += w;
    q->g[v] += w * q->z[v];
  }
}

static void find_errors(least *q, const sky *factor, floors_fit *out) {
  const problem *p = q->p;
  double *e = NEWN(q->a, double, q->n + 1);
  for (u32 c = 0; c < p->nclocks; c++) {
    const u32 v = p->var[c];
    if (v == TRACE_NONE) continue;
    const double scatter =
        p->by_message[c] ? 0 : out->ends_sd; // ends may be off by as much, all of them alike
    for (u32 k = 0; k < p->nk; k++) {
      memset(e, 0, q->n * sizeof *e);
      e[v + k] = 1;
      sky_solve(factor, e);
      out->sd[v + k] = sqrt(fmax(e[v + k], 0) + scatter * scatter);
    }
  }
}

// How much worse the least squares are if no clock may drift: over the number of clocks, about 1 if none does.
static double drift_chi2(const least *q) {
  const problem *p = q->p;
  const u32 nk = p->nk, nx = p->nx / nk, n = nx + p->in->nfamilies;
  if (nk == 1 || !nx) return 0;
  u32 *first = NEWN(q->a, u32, n + 1), *to = NEWN(q->a, u32, q->n + 1);
  for (u32 i = 0; i < q->n; i++) to[i] = i < p->nx ? i / nk : i - p->nx + nx;
  for (u32 i = 0; i < n; i++) first[i] = i;
  for (u32 i = 0; i < q->n; i++) first[to[i]] = MIN(first[to[i]], to[q->h.first[i]]);
  sky h = sky_new(q->a, n, first);
  double *g = ZNEWN(q->a, double, n + 1), *slope = ZNEWN(q->a, double, q->n + 1), sum = 0;
  for (u32 i = 0; i < q->n; i++)
    for (u32 j = q->h.first[i]; j <= i; j++) {
      const double v = q->h.v[q->h.at[i] + j];
      slope[i] += v * q->z[j];
      if (j < i) slope[j] += v * q->z[i];
      *sky_cell(&h, to[i], to[j]) += to[i] == to[j] && j < i ? 2 * v : v;
    }
  for (u32 i = 0; i < q->n; i++) g[to[i]] += slope[i], sum += slope[i] * q->z[i];
  double *u = arena_dup(q->a, g, (n + 1) * sizeof *u);
  sky_factor(&h);
  sky_solve(&h, u);
  for (u32 i = 0; i < n; i++) sum -= u[i] * g[i];
  return sum / nx;
}

floors_fit floors_solve(const problem *p, const double *x0) {
  const u32 nf = p->in->nfamilies;
  u32 *first = arena_dup(p->a, p->first, (p->nx + nf + 1) * sizeof *first);
  least q = {.p = p, .a = p->a, .n = p->nx + nf, .h = sky_new(p->a, p->nx + nf, first)};
  q.g = NEWN(p->a, double, q.n + 1), q.z = ZNEWN(p->a, double, q.n + 1);
  q.ends_sd = NEWN(p->a, double, nf + 1), q.seen = ZNEWN(p->a, bool, nf + 1);
  memcpy(q.z, x0, p->nx * sizeof *x0);
  const u64 each = p->in->nlinks ? p->in->nmessages / p->in->nlinks : 0;
  const u64 most = WINDOWS_MOST * (p->nk > 1 ? p->nk - 1 : 0), some = 2 * (p->nk - 1);
  u64 windows = each / MESSAGES_A_WINDOW;
  windows = p->nk == 1 ? 1 : windows < some ? some : windows > most ? most : windows;
  make_terms(&q, x0, (u32)windows);
  make_sets(&q);
  for (u32 f = 0; f < nf; f++) q.ends_sd[f] = 10;
  sky factor = sky_new(p->a, q.n, first);
  for (u32 round = 0; round < ROUNDS; round++) {
    sky_clear(&q.h);
    memset(q.g, 0, q.n * sizeof *q.g);
    if (round && p->in->ncollectives) find_scatter(&q);
    add_messages(&q, round == 0);
    add_collectives(&q);
    add_priors(&q);
    sky_copy(&factor, &q.h);
    sky_factor(&factor);
    sky_solve(&factor, q.g);
    for (u32 k = 0; k < q.n; k++)
      if (isfinite(q.g[k])) q.z[k] -= q.g[k];
  }
  floors_fit out = {.z = q.z, .h = q.h, .sd = ZNEWN(p->a, double, p->nx + 1), .seen = q.seen};
  for (u32 c = 0; c < p->in->ncollectives; c++)
    out.ends_sd = fmax(out.ends_sd, q.ends_sd[p->in->collective[c].family]);
  find_errors(&q, &factor, &out);
  out.drift_chi2 = drift_chi2(&q);
  return out;
}
