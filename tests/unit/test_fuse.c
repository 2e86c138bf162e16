// test_fuse.c - buckets and partitions of gradients against enumeration.
#include "tune/fuse.h"
#include "test.h"
#include <math.h>

static const i64 US = 1000000;
typedef struct {
  i64 start_ps;
  double ps_per_byte;
  i64 step; // bytes above which it starts again; 0: linear
} link_cost;
static i64 cost(const void *arg, i64 bytes) {
  const link_cost *c = arg;
  const i64 starts = c->step ? ceil_div(bytes, c->step) : 1;
  return c->start_ps * starts + (i64)((double)bytes * c->ps_per_byte);
}

static u32 random_chain(u64 *seed, fuse_gradient *g, u32 most, link_cost *c) {
  const u32 n = 1 + (u32)(rng_next(seed) % most);
  i64 t = 0;
  for (u32 k = 0; k < n; k++) {
    t += (i64)(rng_next(seed) % 400) * US;
    g[k] = (fuse_gradient){t, 1000 + (i64)(rng_next(seed) % 5000000)};
  }
  *c = (link_cost){(i64)(rng_next(seed) % 300) * US, rng_unit(seed) * 150,
                   rng_next(seed) % 3 ? 0 : 1 + (i64)(rng_next(seed) % 4000000)};
  return n;
}

static i64 best_of_all(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, i64 most) {
  i64 best = INT64_MAX;
  for (u32 cuts = 0; cuts < 1u << (n - 1); cuts++) {
    u32 first[16], k = 0;
    bool fits = true;
    i64 bytes = 0;
    for (u32 i = 0; i < n; i++) {
      if (!i || cuts >> (i - 1) & 1) first[k++] = i, bytes = 0;
      bytes += g[i].bytes;
      fits &= !most || bytes <= most || bytes == g[i].bytes;
    }
    if (fits) best = MIN(best, fuse_given(a, g, n, c, first, k).ends_ps);
  }
  return best;
}

TEST(fuse_exact_equals_enumeration) {
  u64 seed = 1;
  for (u32 i = 0; i < 600; i++) {
    arena *a = arena_new();
    fuse_gradient g[11];
    link_cost l;
    const u32 n = random_chain(&seed, g, 11, &l);
    const fuse_cost c = {cost, &l};
    const i64 most = i % 3 ? 0 : (i64)(rng_next(&seed) % 9000000) + 1;
    const fuse_plan p = fuse_exact(a, g, n, &c, most);
    CHECK_EQ_I64(p.ends_ps, best_of_all(a, g, n, &c, most));
    CHECK_EQ_I64(fuse_given(a, g, n, &c, p.first, p.n).ends_ps, p.ends_ps);
    arena_free(a);
  }
}

// No policy is faster than the exact one; the greedy one is slower in some chains, so it is no proof of anything.
TEST(fuse_policies_are_never_better) {
  u64 seed = 7;
  u32 slower[FUSE_POLICIES] = {0};
  double worst = 1;
  for (u32 i = 0; i < 2000; i++) {
    arena *a = arena_new();
    fuse_gradient g[30];
    link_cost l;
    const u32 n = random_chain(&seed, g, 30, &l);
    l.step = 0;
    const fuse_cost c = {cost, &l};
    const i64 best = fuse_exact(a, g, n, &c, 0).ends_ps;
    for (u32 k = 0; k < FUSE_POLICIES; k++) {
      const fuse_plan p = fuse_by(a, (fuse_policy)k, g, n, &c);
      CHECK_MSG(p.ends_ps >= best, "chain %u: %s is faster than the exact one", i, fuse_policy_rows[k].name);
      CHECK(p.n && p.first[0] == 0 && p.first[p.n] == n);
      slower[k] += p.ends_ps > best;
      if (k == FUSE_greedy && best) worst = fmax(worst, (double)p.ends_ps / (double)best);
    }
    arena_free(a);
  }
  CHECK(slower[FUSE_exact] == 0);
  for (u32 k = 1; k < FUSE_POLICIES; k++) CHECK_MSG(slower[k] > 0, "%s is exact", fuse_policy_rows[k].name);
  CHECK_MSG(worst > 1.02, "the greedy policy is at most %.3f slower", worst);
}

TEST(fuse_nothing) {
  arena *a = arena_new();
  const link_cost l = {US, 1, 0};
  const fuse_cost c = {cost, &l};
  for (u32 k = 0; k < FUSE_POLICIES; k++) {
    const fuse_plan p = fuse_by(a, (fuse_policy)k, NULL, 0, &c);
    CHECK(p.n == 0 && p.ends_ps == 0);
  }
  arena_free(a);
}

// The known policies, by hand: 1 MiB each, ready every 3 ms, 1 ms each and 1 ms to start.
TEST(fuse_policies_by_hand) {
  arena *a = arena_new();
  enum { N = 60 };
  fuse_gradient g[N];
  const i64 ms = 1000 * US, mib = 1 << 20;
  for (u32 k = 0; k < N; k++) g[k] = (fuse_gradient){(k + 1) * 3 * ms, mib};
  const link_cost l = {ms, (double)ms / (double)mib, 0};
  const fuse_cost c = {cost, &l};
  CHECK_EQ_I64(fuse_by(a, FUSE_none, g, N, &c).ends_ps, (3 * N + 2) * ms);
  CHECK_EQ_I64(fuse_by(a, FUSE_all, g, N, &c).ends_ps, (3 * N + N + 1) * ms);
  const fuse_plan ddp = fuse_by(a, FUSE_ddp, g, N, &c);
  CHECK(ddp.n == 4 && ddp.first[1] == 1 && ddp.first[2] == 26 && ddp.first[3] == 51);
  CHECK_EQ_I64(ddp.ends_ps, (3 * N + 9 + 1) * ms);
  const fuse_plan hvd = fuse_by(a, FUSE_horovod, g, N, &c); // the first goes at 5 ms, alone
  CHECK(hvd.first[1] == 1 && hvd.start_ps[0] == 5 * ms && hvd.start_ps[1] == 10 * ms);
  arena_free(a);
}

TEST(fuse_partitions_equal_exhaustive_search) {
  u64 seed = 3;
  for (u32 i = 0; i < 400; i++) {
    const i64 bytes = i < 100 ? (i64)(i + 1) << 20 : 1 + (i64)(rng_next(&seed) % (100u << 20));
    const i64 overhead = (i64)(rng_next(&seed) % 200) * US / 4;
    const double rate = i % 50 ? 20 + rng_unit(&seed) * 1000 : 0;
    const u32 most = i % 7 ? 512 : 1 + (u32)(rng_next(&seed) % 20);
    u32 best = 1;
    for (u32 k = 2; k <= most; k++)
      if (fuse_partitioned_ps(bytes, k, overhead, rate) < fuse_partitioned_ps(bytes, best, overhead, rate))
        best = k;
    CHECK_EQ_I64(fuse_partitions(bytes, most, overhead, rate), best);
  }
}
