// shares.c - shares of a batch of random problems against enumeration from the definitions, and against Whale's.
#include "balance/balance.h"
#include "test.h"
#include <stdlib.h>

static u64 R;
static i64 few(i64 n) { return (i64)(rng_next(&R) % (u64)n); }

enum { RANKS = 6, QUANTA = 12 };
typedef struct {
  balance_batch batch;
  balance_ranks kind[RANKS];
  i64 time[RANKS][QUANTA + 1]; // by kind
  u32 n, kind_of[RANKS];       // ranks
} job;

static i64 table_time(const void *arg, u32 kind, i64 quanta) {
  const job *j = arg;
  assert(quanta >= j->kind[kind].least && quanta <= MIN(j->kind[kind].cap, j->batch.total));
  return j->time[kind][quanta];
}

typedef enum { AFFINE, RISES, FALLS, TIMES } times;

// Sometimes impossible. Few different times, so that many shares are alike.
static void make_job(job *j, times t) {
  *j = (job){.batch = {.total = few(QUANTA + 1), .nkinds = 1 + (u32)few(3), .falls = t == FALLS}};
  j->batch.kind = j->kind;
  if (t != AFFINE || few(2)) j->batch.time = table_time, j->batch.arg = j;
  i64 steep = 1 + few(few(2) ? 4 : 1000);
  for (u32 k = 0; k < j->batch.nkinds; k++) {
    balance_ranks *r = &j->kind[k];
    r->count = (u32)few(k ? 3 : 2) + !k;
    r->least = few(3) ? 0 : few(3);
    r->cap = r->least + few(few(2) ? QUANTA : 4);
    r->fixed_ps = few(2) ? few(4 * steep) : 0, r->each_ps = few(4) ? 1 + few(steep) : 0;
    for (i64 b = 0, at = r->fixed_ps; b <= QUANTA; b++) {
      j->time[k][b] = t == AFFINE  ? r->fixed_ps + b * r->each_ps
                      : t == RISES ? at
                      : few(6)     ? few(20)
                                   : INT64_MAX;
      at += few(2) ? 0 : few(steep);
    }
    for (u32 i = 0; i < r->count; i++) j->kind_of[j->n++] = k;
  }
}

static i64 makespan(const job *j, const i64 *share) {
  i64 t = 0;
  for (u32 r = 0; r < j->n; r++) t = MAX(t, j->time[j->kind_of[r]][share[r]]);
  return t;
}

// The least makespan of all shares of the ranks from r on that sum to `left`; INT64_MAX: there are none.
static i64 enumerate(const job *j, u32 r, i64 left) {
  if (r == j->n) return left ? INT64_MAX : 0;
  const balance_ranks *k = &j->kind[j->kind_of[r]];
  i64 best = INT64_MAX;
  for (i64 b = k->least; b <= MIN(k->cap, left); b++)
    best = MIN(best, MAX(j->time[j->kind_of[r]][b], enumerate(j, r + 1, left - b)));
  return best;
}

static i64 sum_of_caps(const job *j, bool least) {
  i64 sum = 0;
  for (u32 r = 0; r < j->n; r++) sum += least ? j->kind[j->kind_of[r]].least : j->kind[j->kind_of[r]].cap;
  return sum;
}

// Refused exactly where there are no shares, with how much is missing; true if there are some, and they are
// right.
static bool check_job(const job *j, balance_fault f, const balance_split *s) {
  i64 want = enumerate(j, 0, j->batch.total);
  if (want == INT64_MAX) {
    i64 caps = sum_of_caps(j, false), least = sum_of_caps(j, true);
    balance_fault because = least > j->batch.total  ? BALANCE_LEASTS
                            : caps < j->batch.total ? BALANCE_CAPS
                                                    : BALANCE_SUM;
    CHECK_EQ_I64(f, because);
    if (f == BALANCE_LEASTS) CHECK_EQ_I64(s->off, least - j->batch.total);
    if (f == BALANCE_CAPS) CHECK_EQ_I64(s->off, j->batch.total - caps);
    CHECK(because != BALANCE_SUM || j->batch.falls);
    return false;
  }
  CHECK_EQ_I64(f, BALANCE_OK);
  if (f) return false;
  i64 sum = 0;
  for (u32 r = 0; r < j->n; r++) {
    const balance_ranks *k = &j->kind[j->kind_of[r]];
    CHECK(s->share[r] >= k->least && s->share[r] <= k->cap);
    sum += s->share[r];
  }
  CHECK_EQ_I64(sum, j->batch.total);
  CHECK_EQ_I64(s->time_ps, want);
  CHECK_EQ_I64(makespan(j, s->share), want);
  return true;
}

// What a heap does: the next quantum to the rank that is done with it first; of equal ones, to the one with
// fewest, then to the first.
static void check_heap(const job *j, const i64 *share) {
  i64 b[RANKS] = {0};
  i64 left = j->batch.total;
  for (u32 r = 0; r < j->n; r++) left -= b[r] = j->kind[j->kind_of[r]].least;
  for (; left > 0; left--) {
    u32 to = UINT32_MAX;
    for (u32 r = 0; r < j->n; r++) {
      if (b[r] == j->kind[j->kind_of[r]].cap) continue;
      if (to == UINT32_MAX) {
        to = r;
        continue;
      }
      i64 t = j->time[j->kind_of[r]][b[r] + 1], least = j->time[j->kind_of[to]][b[to] + 1];
      if (t < least || (t == least && b[r] < b[to])) to = r;
    }
    b[to]++;
  }
  for (u32 r = 0; r < j->n; r++) CHECK_EQ_I64(share[r], b[r]);
}

// Each rank in turn takes what is nearest to an even part of what is left, if the others can make the rest.
static void check_nearest(const job *j, const balance_split *s) {
  i64 left = j->batch.total;
  for (u32 r = 0; r < j->n; r++) {
    const balance_ranks *k = &j->kind[j->kind_of[r]];
    i64 even = (left + j->n - r - 1) / (j->n - r), best = -1;
    for (i64 b = k->least; b <= MIN(k->cap, left); b++) {
      if (j->time[j->kind_of[r]][b] > s->time_ps || enumerate(j, r + 1, left - b) > s->time_ps) continue;
      if (best < 0 || llabs(b - even) <= llabs(best - even)) best = b;
    }
    CHECK_EQ_I64(s->share[r], best);
    left -= s->share[r];
  }
}

TEST(shares_are_optimal) {
  R = 1;
  u32 done = 0;
  for (u32 tries = 0; tries < 20000; tries++) {
    job j;
    make_job(&j, tries % 2 ? AFFINE : RISES);
    arena *a = arena_new();
    balance_split s;
    balance_fault f = balance_shares(a, &j.batch, &s);
    if (check_job(&j, f, &s)) check_heap(&j, s.share), done++;
    arena_free(a);
  }
  CHECK_MSG(done >= 10000, "only %u of the problems were possible", done);
}

TEST(shares_of_times_that_fall_are_optimal) {
  R = 2;
  u32 done = 0;
  for (u32 tries = 0; tries < 8000; tries++) {
    job j;
    make_job(&j, FALLS);
    arena *a = arena_new();
    balance_split s;
    balance_fault f = balance_shares(a, &j.batch, &s);
    if (check_job(&j, f, &s)) check_nearest(&j, &s), done++;
    arena_free(a);
  }
  CHECK_MSG(done >= 3500, "only %u of the problems were possible", done);
}

// Where the speeds make whole shares that all take as long, these are the optimum.
TEST(shares_that_take_as_long_are_found) {
  R = 3;
  for (u32 tries = 0; tries < 2000; tries++) {
    balance_ranks kind[4];
    balance_batch in = {.nkinds = 1 + (u32)few(4), .kind = kind};
    i64 T = 0, share[4];
    for (u32 k = 0; k < in.nkinds; k++) {
      kind[k] = (balance_ranks){.count = 1 + (u32)few(300), .each_ps = 1 + few(1000), .fixed_ps = few(5000)};
      share[k] = 1 + few(100);
      T = MAX(T, kind[k].fixed_ps + share[k] * kind[k].each_ps);
    }
    for (u32 k = 0; k < in.nkinds; k++) {
      kind[k].fixed_ps = T - share[k] * kind[k].each_ps;
      kind[k].cap = BALANCE_QUANTA;
      in.total += kind[k].count * share[k];
    }
    arena *a = arena_new();
    balance_split s;
    CHECK_EQ_I64(balance_shares(a, &in, &s), BALANCE_OK);
    CHECK_EQ_I64(s.time_ps, T);
    arena_free(a);
  }
}

// ---- Whale's Algorithm 1 ------------------------------------------------------------------------------
// Samples of some bytes on devices of different speed and memory: where Algorithm 1 finds shares they fit,
// and take no less than the best ones; where it finds none, there are none.
TEST(shares_are_no_worse_than_whales) {
  R = 7;
  u32 better = 0, binding = 0, none = 0;
  for (u32 tries = 0; tries < 10000; tries++) {
    u32 n = 1 + (u32)few(6);
    i64 DF[6], DM[6], quanta = 1 + few(60), each = 1 + few(5);
    balance_ranks rank[6];
    for (u32 i = 0; i < n; i++) {
      DF[i] = 1 + few(12), DM[i] = few(3 * quanta * each / n + 2);
      rank[i] = (balance_ranks){.count = 1, .cap = DM[i] / each, .each_ps = 27720 / DF[i]};
    }
    arena *a = arena_new();
    balance_loads l;
    balance_split s;
    balance_batch batch = {.total = quanta, .nkinds = n, .kind = rank};
    balance_fault whale = balance_whale_loads(
        a, &(balance_whale){.n = n, .DF = DF, .DM = DM, .TG_mem = quanta * each, .quanta = quanta}, &l);
    balance_fault best = balance_shares(a, &batch, &s);
    CHECK_EQ_I64(whale, best);
    i64 sum = 0, time = 0, over = 0;
    for (u32 i = 0; i < n; i++) {
      sum += l.load[i], time = MAX(time, l.load[i] * rank[i].each_ps);
      over += MAX(l.load[i] * each - DM[i], 0);
      CHECK(l.load[i] >= 0);
    }
    CHECK_EQ_I64(sum, quanta);
    if (whale) {
      CHECK_EQ_I64(l.off, s.off);
      none++;
    } else {
      CHECK_EQ_I64(over, 0);
      CHECK(s.time_ps <= time);
      better += s.time_ps < time;
      for (u32 i = 0; i < n; i++) rank[i].cap = quanta;
      balance_split unlimited;
      CHECK_EQ_I64(balance_shares(a, &batch, &unlimited), BALANCE_OK);
      binding += unlimited.time_ps < s.time_ps;
    }
    arena_free(a);
  }
  CHECK_MSG(better >= 500 && binding >= 2000 && none >= 500,
            "better %u times, memory mattered in %u, none in %u", better, binding, none);
}
