// align.c - clock alignment against slower ways: cycles against all cycles, slacks against a simplex over every message,
// least squares within limits against every set of limits; and what it must reach on rings of 128 ranks.
#include "rings.h"
#include "diagnose/align.h"

#ifdef HEDDLE_DEBUG
enum { SEEDS = 3 }; // sanitizers: making a million messages takes most of the time
#else
enum { SEEDS = 20 };
#endif

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

// ---- cycles ---------------------------------------------------------------------------------------------------
typedef struct {
  const arc *v;
  u32 narcs, start;
  bool on[8];
  bool any;
  i64 sum;
  u32 length; // of the least mean so far
} walk;

static void walk_on(walk *w, u32 at, i64 sum, u32 length) {
  for (u32 k = 0; k < w->narcs; k++) {
    if (w->v[k].from != at) continue;
    const u32 to = w->v[k].to;
    const i64 s = sum + w->v[k].weight;
    if (to == w->start) {
      if (!w->any || s * w->length < w->sum * (length + 1)) w->any = true, w->sum = s, w->length = length + 1;
    } else if (to > w->start && !w->on[to]) {
      w->on[to] = true;
      walk_on(w, to, s, length + 1);
      w->on[to] = false;
    }
  }
}

TEST(align_cycle_of_least_mean_is_the_least_of_all) {
  u64 rng = 1;
  u32 with = 0, without = 0;
  for (u32 round = 0; round < 3000; round++) {
    arena *a = arena_new();
    const u32 n = 1 + pick(&rng, 7), m = pick(&rng, 2 * n + 3);
    arc v[32];
    for (u32 k = 0; k < m; k++) v[k] = (arc){pick(&rng, n), pick(&rng, n), (i64)pick(&rng, 2000) - 600};
    walk w = {.v = v, .narcs = m, .length = 1};
    for (w.start = 0; w.start < n; w.start++) walk_on(&w, w.start, 0, 0);
    u32 *cycle, length;
    i64 sum, potential[8];
    const bool any = cycle_least_mean(a, n, m, v, &cycle, &length, &sum, potential);
    CHECK(any == w.any);
    any ? with++ : without++;
    if (any) {
      CHECK_EQ_I64(sum * w.length, w.sum * length);
      i64 again = 0;
      for (u32 k = 0; k < length; k++) {
        again += v[cycle[k]].weight;
        CHECK_EQ_I64(v[cycle[k]].to, v[cycle[(k + 1) % length]].from);
      }
      CHECK_EQ_I64(again, sum);
      for (u32 k = 0; k < m; k++)
        CHECK((v[k].weight + potential[v[k].from] - potential[v[k].to] + 1) * length >= sum);
    }
    arena_free(a);
  }
  CHECK(with > 500 && without > 500);
}

// ---- the largest slack, by a dense simplex over every message ------------------------------------------------------
// Largest c x subject to A x <= b, x free; a point with all rows slack is known to be had by lowering the last unknown (the
// slack). Bland's rule.
enum { ROWS_MOST = 220, COLUMNS = 24 };
typedef struct {
  u32 m, n; // rows, unknowns that are not negative
  long double t[ROWS_MOST][COLUMNS];
  u32 basis[ROWS_MOST], out[COLUMNS];
} simplex;

static void pivot(simplex *s, u32 r, u32 c) {
  const long double p = s->t[r][c];
  for (u32 j = 0; j <= s->n; j++) s->t[r][j] /= p;
  s->t[r][c] = 1 / p;
  for (u32 i = 0; i <= s->m; i++) {
    const long double f = s->t[i][c];
    if (i == r || f == 0) continue;
    for (u32 j = 0; j <= s->n; j++)
      if (j != c) s->t[i][j] -= f * s->t[r][j];
    s->t[i][c] = -f / p;
  }
  const u32 x = s->basis[r];
  s->basis[r] = s->out[c], s->out[c] = x;
}

static long double simplex_run(simplex *s) {
  for (u32 j = 0; j < s->n; j++) s->out[j] = j;
  for (u32 i = 0; i < s->m; i++) s->basis[i] = s->n + i;
  for (;;) {
    u32 c = s->n;
    for (u32 j = 0; j < s->n; j++)
      if (s->t[s->m][j] > 1e-12L && (c == s->n || s->out[j] < s->out[c])) c = j;
    if (c == s->n) return -s->t[s->m][s->n];
    u32 r = s->m;
    long double best = 0;
    for (u32 i = 0; i < s->m; i++) {
      if (s->t[i][c] <= 1e-12L) continue;
      const long double q = s->t[i][s->n] / s->t[i][c];
      if (r == s->m || q < best || (q == best && s->basis[i] < s->basis[r])) r = i, best = q;
    }
    if (r == s->m) return INFINITY;
    pivot(s, r, c);
  }
}

// Unknowns: offset and drift (ps over the span) of ranks 1 .. and the slack; each as a difference of two that are not
// negative. The slack starts so low that zero is a solution.
static double slack_by_simplex(const align_seen *in, const problem *p, u32 nk) {
  static simplex s;
  memset(&s, 0, sizeof s);
  const u32 unknowns = (in->nprocesses - 1) * nk + 1;
  s.n = 2 * unknowns, s.m = in->nmessages;
  const double down = 1e6;
  for (u32 k = 0; k < in->nmessages; k++) {
    const align_link *l = &in->link[in->message[k].link];
    const double from = problem_local(p, l->from, in->message[k].send_ps);
    const double to = problem_local(p, l->to, in->message[k].recv_ps);
    for (u32 side = 0; side < 2; side++) {
      const u32 rank = side ? l->to : l->from;
      const double t = (side ? to : from) / p->span, sign = side ? 1 : -1;
      for (u32 i = 0; rank && i < nk; i++) {
        const u32 x = (rank - 1) * nk + i;
        const double a = sign * (nk == 1 ? 1 : i ? t : 1 - t);
        s.t[k][2 * x] += a, s.t[k][2 * x + 1] -= a;
      }
    }
    s.t[k][s.n - 2] = 1, s.t[k][s.n - 1] = -1;
    s.t[k][s.n] = (to - from) / ALIGN_UNIT + down; // slack is counted from -down
  }
  s.t[s.m][s.n - 2] = 1, s.t[s.m][s.n - 1] = -1;
  return (double)simplex_run(&s) - down;
}

TEST(align_slack_is_that_of_a_simplex_over_every_message) {
  u32 below = 0;
  for (u64 seed = 1; seed <= 150; seed++) {
    arena *a = arena_new();
    u64 rng = seed * 77;
    ring r = {.ranks = 2 + pick(&rng, 4), .each = 3 + pick(&rng, 15), .latency = 5e6, .jitter = 40e6};
    const u32 nk = 1 + pick(&rng, 2);
    if (nk == 2 || pick(&rng, 3) == 0) r.drift = 3e-6; // offsets alone cannot then satisfy all
    const ring_job j = ring_make(a, &r, seed);
    if (pick(&rng, 4) == 0)
      ((align_message *)j.seen.message)[pick(&rng, j.seen.nmessages)].recv_ps -= 90000000;
    const align_clocks *x = align_find(a, &j.seen, &(align_opts){.drift = nk});
    problem *p = problem_new(a, &j.seen);
    const double want = slack_by_simplex(&j.seen, p, nk), got = (double)x->slack_ps / ALIGN_UNIT;
    CHECK_MSG(fabs(got - want) < 1e-5, "seed %llu: slack %.7f us, by the simplex %.7f",
              (unsigned long long)seed, got, want);
    i64 sum = 0;
    for (u32 k = 0; k < x->ncycle; k++) {
      sum += x->cycle[k].gap_ps;
      CHECK_EQ_I64(x->clock[x->cycle[k].to].clock, x->clock[x->cycle[(k + 1) % x->ncycle].from].clock);
    }
    CHECK(x->ncycle && llabs(sum / (i64)x->ncycle - x->slack_ps) <= 1);
    if (want >= 1e-5) CHECK_EQ_I64((i64)x->after, 0);
    below += want < 0;
    arena_free(a);
  }
  CHECK(below >= 10);
}

// ---- least squares within limits -----------------------------------------------------------------------------------
// For every set of rows that are held at zero, the least squares with equality; the best that keeps all rows is the
// answer.
static bool solve_dense(u32 n, double m[10][11]) {
  for (u32 i = 0; i < n; i++) {
    u32 p = i;
    for (u32 r = i + 1; r < n; r++)
      if (fabs(m[r][i]) > fabs(m[p][i])) p = r;
    if (fabs(m[p][i]) < 1e-9) return false;
    for (u32 c = 0; c <= n; c++) {
      const double t = m[i][c];
      m[i][c] = m[p][c], m[p][c] = t;
    }
    for (u32 r = 0; r < n; r++)
      for (u32 c = n + 1; r != i && c-- > i;) m[r][c] -= m[r][i] / m[i][i] * m[i][c];
  }
  for (u32 i = 0; i < n; i++) m[i][n] /= m[i][i];
  return true;
}

TEST(align_quadratic_is_the_best_of_all_sets_of_limits) {
  u64 rng = 5;
  u32 bound = 0;
  for (u32 round = 0; round < 400; round++) {
    arena *a = arena_new();
    const u32 n = 1 + pick(&rng, 3), m = 1 + pick(&rng, 5);
    const u32 first[3] = {0};
    sky h = sky_new(a, n, first);
    for (u32 k = 0; k < n + 1; k++) {
      row r = {0};
      for (u32 i = 0; i < n; i++) row_add(&r, i, rng_unit(&rng) * 2 - 1);
      sky_row(&h, &r, 1);
    }
    double g[3] = {0}, inside[3], x[3] = {0};
    rows keep = {0};
    for (u32 i = 0; i < n; i++) g[i] = rng_unit(&rng) * 4 - 2, inside[i] = rng_unit(&rng) * 2 - 1;
    for (u32 k = 0; k < m; k++) {
      row *r = vec_push(a, &keep);
      *r = (row){0};
      for (u32 i = 0; i < n; i++) row_add(r, i, rng_unit(&rng) * 2 - 1);
      r->c = 0.05 + rng_unit(&rng) - row_at(r, inside);
    }
    REQUIRE(quadratic_solve(a, &h, g, &keep, x));
    double best = INFINITY, found = 0;
    for (u32 set = 0; set < 1u << m; set++) {
      double t[10][11] = {{0}};
      u32 held = 0;
      for (u32 i = 0; i < n; i++)
        for (u32 k = 0; k < n; k++) t[i][k] = h.v[i >= k ? h.at[i] + k : h.at[k] + i];
      for (u32 k = 0; k < m; k++) held += set >> k & 1;
      if (held > n) continue;
      const u32 all = n + held;
      for (u32 i = 0; i < n; i++) t[i][all] = -g[i];
      for (u32 k = 0, at = n; k < m; k++) {
        if (!(set >> k & 1)) continue;
        for (u32 i = 0; i < n; i++) t[i][at] = t[at][i] = keep.v[k].val[i];
        t[at++][all] = -keep.v[k].c;
      }
      if (!solve_dense(all, t)) continue;
      double y[3], value = 0;
      bool ok = true;
      for (u32 i = 0; i < n; i++) y[i] = t[i][all];
      for (u32 k = 0; k < m; k++) ok &= row_at(&keep.v[k], y) > -1e-9;
      for (u32 i = 0; i < n; i++) {
        value += g[i] * y[i];
        for (u32 k = 0; k < n; k++) value += h.v[i >= k ? h.at[i] + k : h.at[k] + i] * y[i] * y[k] / 2;
      }
      if (ok && value < best) best = value, bound += set != 0;
    }
    for (u32 i = 0; i < n; i++) {
      found += g[i] * x[i];
      for (u32 k = 0; k < n; k++) found += h.v[i >= k ? h.at[i] + k : h.at[k] + i] * x[i] * x[k] / 2;
    }
    for (u32 k = 0; k < m; k++) CHECK(row_at(&keep.v[k], x) > -1e-6);
    CHECK_MSG(fabs(found - best) < 1e-5 * (1 + fabs(best)), "round %u: %.9g, the best is %.9g", round, found,
              best);
    arena_free(a);
  }
  CHECK(bound > 100);
}

// ---- anything at all --------------------------------------------------------------------------------------------
static i64 any_time(u64 *rng) {
  switch (pick(rng, 5)) {
  case 0: return 0;
  case 1: return (i64)(rng_next(rng) % 1800000000000000001) - 900000000000000000;
  case 2: return (i64)(rng_next(rng) % 100);
  default: return (i64)(rng_next(rng) % 60000000000000);
  }
}

// Links of a process to itself, members twice, times that contradict each other, as far apart as may be: an answer comes,
// its figures are finite, and its cycle is one.
TEST(align_of_anything_ends) {
  for (u64 seed = 1; seed <= 150; seed++) {
    arena *a = arena_new();
    u64 rng = seed;
    align_seen s = {.nprocesses = 1 + pick(&rng, 6), .nfamilies = 3};
    align_link link[8];
    align_message message[40];
    i64 posted[40];
    align_collective collective[6];
    align_member member[30];
    u32 machine[6];
    s.nlinks = pick(&rng, 8), s.nmessages = s.nlinks ? pick(&rng, 40) : 0, s.ncollectives = pick(&rng, 6);
    for (u32 k = 0; k < s.nlinks; k++)
      link[k] = (align_link){pick(&rng, s.nprocesses), pick(&rng, s.nprocesses), pick(&rng, 3)};
    for (u32 k = 0; k < s.nmessages; k++)
      message[k] = (align_message){pick(&rng, s.nlinks), any_time(&rng), any_time(&rng)},
      posted[k] = any_time(&rng);
    for (u32 k = 0; k < s.ncollectives; k++) {
      collective[k] = (align_collective){s.nmembers, pick(&rng, 6), pick(&rng, 3)};
      for (u32 i = 0; i < collective[k].n; i++) {
        const i64 x = any_time(&rng), y = any_time(&rng);
        member[s.nmembers++] = (align_member){pick(&rng, s.nprocesses), MIN(x, y), MAX(x, y)};
      }
    }
    for (u32 k = 0; k < s.nprocesses; k++) machine[k] = pick(&rng, 4);
    s.link = link, s.message = message, s.collective = collective, s.member = member;
    s.posted_ps = pick(&rng, 2) ? posted : NULL, s.machine = pick(&rng, 2) ? machine : NULL;
    const align_opts o = {.method = pick(&rng, 4) ? ALIGN_FLOORS : ALIGN_DPRO, .drift = pick(&rng, 6)};
    const align_clocks *x = align_find(a, &s, &o);
    CHECK(x->n == s.nprocesses && x->ncomponents >= 1);
    for (u32 k = 0; k < x->n; k++)
      CHECK_MSG(isfinite(align_drift(x, k)) && isfinite(align_sd_ps(x, k)),
                "seed %llu: drift %g, error %g ps", (unsigned long long)seed, align_drift(x, k),
                align_sd_ps(x, k));
    for (u32 k = 0; k < x->ncycle; k++)
      CHECK_EQ_I64(x->clock[x->cycle[k].to].clock, x->clock[x->cycle[(k + 1) % x->ncycle].from].clock);
    arena_free(a);
  }
}

// ---- what it must reach -------------------------------------------------------------------------------------------
static void check_ring(u32 each, double drift, double most_us) {
  const ring r = {.ranks = 128, .each = each, .drift = drift, .latency = 10e6, .jitter = 30e6};
  const double us = ring_median_error(&r, test_cases(SEEDS));
  CHECK_MSG(us <= most_us, "%u messages a link, %g ppm: median error %.3f us, at most %g", each, drift * 1e6,
            us, most_us);
}
TEST(align_ring_with_10000_messages_a_link) { check_ring(10000, 0, 2); }
TEST(align_ring_with_drifts_of_20_ppm) { check_ring(10000, 20e-6, 5); }
TEST(align_ring_with_drifts_of_100_ppm) { check_ring(10000, 100e-6, 10); }
