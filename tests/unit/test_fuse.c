// test_fuse.c - buckets of gradients against enumeration, and the rules of frameworks against the exact ones.
#include "tune/fuse.h"
#include "test.h"

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

// No rule is faster than the exact buckets, and each is slower for some gradients.
TEST(fuse_rules_are_never_better) {
  u64 seed = 7;
  u32 slower[2] = {0};
  for (u32 i = 0; i < 2000; i++) {
    arena *a = arena_new();
    fuse_gradient g[30];
    link_cost l;
    const u32 n = random_chain(&seed, g, 30, &l);
    l.step = 0;
    const fuse_cost c = {cost, &l};
    const i64 best = fuse_exact(a, g, n, &c, 0).ends_ps;
    const fuse_plan p[] = {fuse_by_bytes(a, g, n, &c, 1 << 20, 25 << 20),
                           fuse_by_cycle(a, g, n, &c, 5000 * US, 64 << 20)};
    for (u32 k = 0; k < COUNT_OF(p); k++) {
      CHECK_MSG(p[k].ends_ps >= best, "chain %u: rule %u is faster than the exact one", i, k);
      CHECK(p[k].n && p[k].first[0] == 0 && p[k].first[p[k].n] == n);
      slower[k] += p[k].ends_ps > best;
    }
    arena_free(a);
  }
  CHECK(slower[0] && slower[1]);
}

TEST(fuse_nothing) {
  arena *a = arena_new();
  const link_cost l = {US, 1, 0};
  const fuse_cost c = {cost, &l};
  const fuse_plan p[] = {fuse_exact(a, NULL, 0, &c, 0), fuse_by_bytes(a, NULL, 0, &c, 1, 2),
                         fuse_by_cycle(a, NULL, 0, &c, US, 2)};
  for (u32 k = 0; k < COUNT_OF(p); k++) CHECK(p[k].n == 0 && p[k].ends_ps == 0);
  arena_free(a);
}

// By hand: 1 MiB each, ready every 3 ms, 1 ms each and 1 ms to start; so a bucket of 25 takes 26 ms.
TEST(fuse_rules_by_hand) {
  arena *a = arena_new();
  enum { N = 60, MIB = 1 << 20 };
  fuse_gradient g[N];
  const i64 ms = 1000 * US;
  for (u32 k = 0; k < N; k++) g[k] = (fuse_gradient){(k + 1) * 3 * ms, MIB};
  const link_cost l = {ms, (double)ms / (double)MIB, 0};
  const fuse_cost c = {cost, &l};
  const fuse_plan ddp = fuse_by_bytes(a, g, N, &c, MIB, 25 * MIB);
  CHECK(ddp.n == 4 && ddp.first[1] == 1 && ddp.first[2] == 26 && ddp.first[3] == 51);
  CHECK_EQ_I64(ddp.ends_ps, (3 * N + 9 + 1) * ms);
  const fuse_plan hvd = fuse_by_cycle(a, g, N, &c, 5 * ms, 64 * MIB); // the first goes at 5 ms, alone
  CHECK(hvd.first[1] == 1 && hvd.start_ps[0] == 5 * ms && hvd.start_ps[1] == 10 * ms);
  arena_free(a);
}
