// test_balance.c - shares and stages that can be worked out by hand.
#include "balance/balance.h"
#include "test.h"

static balance_split shares(arena *a, balance_fault want, balance_batch in) {
  balance_split s;
  CHECK_EQ_I64(balance_shares(a, &in, &s), want);
  return s;
}
static void check_shares(const balance_split *s, u32 n, const i64 *want) {
  for (u32 r = 0; r < n; r++) CHECK_EQ_I64(s->share[r], want[r]);
}

TEST(balance_shares_by_speed) {
  arena *a = arena_new();
  // One rank twice as fast as two others: 1 : 2 : 2 ps for a sample.
  const balance_ranks mixed[] = {{.count = 1, .cap = 100, .each_ps = 100},
                                 {.count = 2, .cap = 100, .each_ps = 200}};
  balance_split s = shares(a, BALANCE_OK, (balance_batch){.total = 12, .nkinds = 2, .kind = mixed});
  check_shares(&s, 3, (i64[]){6, 3, 3});
  CHECK_EQ_I64(s.time_ps, 600);
  CHECK_EQ_I64(s.bound_ps, 600);
  // 13 samples take 650 ps in fractions. The 13th ends at 700 on the fast rank, at 800 on others.
  s = shares(a, BALANCE_OK, (balance_batch){.total = 13, .nkinds = 2, .kind = mixed});
  check_shares(&s, 3, (i64[]){7, 3, 3});
  CHECK_EQ_I64(s.time_ps, 700);
  CHECK_EQ_I64(s.bound_ps, 650);
  // No samples, no time; fewer samples than ranks.
  s = shares(a, BALANCE_OK, (balance_batch){.total = 0, .nkinds = 2, .kind = mixed});
  CHECK_EQ_I64(s.time_ps, 0);
  s = shares(a, BALANCE_OK, (balance_batch){.total = 2, .nkinds = 2, .kind = mixed});
  check_shares(&s, 3,
               (i64[]){1, 1, 0}); // the second one ends at 200 on any: fewest quanta, then the first rank
  arena_free(a);
}

TEST(balance_shares_of_equal_ranks_differ_by_one) {
  arena *a = arena_new();
  const balance_ranks same[] = {{.count = 4, .cap = 100, .each_ps = 10}};
  balance_split s = shares(a, BALANCE_OK, (balance_batch){.total = 10, .nkinds = 1, .kind = same});
  check_shares(&s, 4, (i64[]){3, 3, 2, 2});
  const balance_ranks free_of_cost[] = {{.count = 3, .cap = 100}, {.count = 1, .cap = 100}};
  s = shares(a, BALANCE_OK, (balance_batch){.total = 6, .nkinds = 2, .kind = free_of_cost});
  check_shares(&s, 4, (i64[]){2, 2, 1, 1});
  CHECK_EQ_I64(s.time_ps, 0);
  arena_free(a);
}

TEST(balance_shares_within_limits) {
  arena *a = arena_new();
  // Memory stops the fast rank at 8; the slow ones share the rest.
  const balance_ranks capped[] = {{.count = 1, .cap = 8, .each_ps = 10},
                                  {.count = 2, .cap = 20, .each_ps = 20}};
  balance_split s = shares(a, BALANCE_OK, (balance_batch){.total = 20, .nkinds = 2, .kind = capped});
  check_shares(&s, 3, (i64[]){8, 6, 6});
  CHECK_EQ_I64(s.time_ps, 120);
  CHECK_EQ_I64(s.bound_ps, 100);
  CHECK_EQ_I64(shares(a, BALANCE_CAPS, (balance_batch){.total = 50, .nkinds = 2, .kind = capped}).off, 2);
  // A slow rank that must have 3.
  const balance_ranks must[] = {{.count = 1, .cap = 20, .each_ps = 10},
                                {.count = 1, .least = 3, .cap = 20, .each_ps = 1000}};
  s = shares(a, BALANCE_OK, (balance_batch){.total = 10, .nkinds = 2, .kind = must});
  check_shares(&s, 2, (i64[]){7, 3});
  CHECK_EQ_I64(s.time_ps, 3000);
  CHECK_EQ_I64(s.bound_ps, 3000);
  CHECK_EQ_I64(shares(a, BALANCE_LEASTS, (balance_batch){.total = 1, .nkinds = 2, .kind = must}).off, 2);
  arena_free(a);
}

// Tiles of 4: 5 quanta take as long as 8, and 4 take less than 3 with the kernels for what is no whole tile.
static i64 tiles(const void *arg, u32 kind, i64 b) {
  (void)arg;
  return (kind + 1) * (b / 4 * 10 + (b % 4 ? 15 : 0));
}
static i64 whole_tiles(const void *arg, u32 kind, i64 b) {
  (void)arg;
  return b % 4 ? INT64_MAX : (kind + 1) * (b / 4 * 10);
}
TEST(balance_shares_of_whole_tiles) {
  arena *a = arena_new();
  const balance_ranks two[] = {{.count = 1, .cap = 32}, {.count = 1, .cap = 32}};
  balance_batch in = {.total = 24, .nkinds = 2, .kind = two, .time = tiles, .falls = true};
  balance_split s = shares(a, BALANCE_OK, in); // in proportion to speed
  check_shares(&s, 2, (i64[]){16, 8});
  CHECK_EQ_I64(s.time_ps, 40);
  CHECK_EQ_I64(s.bound_ps, 40);
  in.total = 20; // 12 + 8 and 16 + 4 take 40: the former is nearer to 10 + 10
  s = shares(a, BALANCE_OK, in);
  check_shares(&s, 2, (i64[]){12, 8});
  CHECK_EQ_I64(s.time_ps, 40);
  in.time = whole_tiles, in.total = 18;
  shares(a, BALANCE_SUM, in);
  arena_free(a);
}

TEST(balance_shares_at_the_limits) {
  arena *a = arena_new();
  const balance_ranks most[] = {
      {.count = BALANCE_RANKS / 2, .cap = INT64_MAX, .fixed_ps = BALANCE_TIMES - 2, .each_ps = 0},
      {.count = BALANCE_RANKS / 2,
       .cap = INT64_MAX,
       .fixed_ps = 0,
       .each_ps = (BALANCE_TIMES - 1) / BALANCE_QUANTA}};
  balance_split s =
      shares(a, BALANCE_OK, (balance_batch){.total = BALANCE_QUANTA, .nkinds = 2, .kind = most});
  CHECK_EQ_I64(s.time_ps, BALANCE_TIMES - 2);
  CHECK_EQ_I64(s.bound_ps, BALANCE_TIMES - 2);
  s = shares(a, BALANCE_OK, (balance_batch){.total = BALANCE_QUANTA, .nkinds = 1, .kind = most + 1});
  CHECK_EQ_I64(s.time_ps, BALANCE_QUANTA / (BALANCE_RANKS / 2) * most[1].each_ps);
  CHECK_EQ_I64(s.bound_ps, s.time_ps);
  CHECK_EQ_I64(balance_cap(100, 40, 7), 8);
  CHECK_EQ_I64(balance_cap(40, 40, 7), 0);
  CHECK_EQ_I64(balance_cap(39, 40, 7), 0);
  CHECK_EQ_I64(balance_cap(40, 40, 0), INT64_MAX);
  arena_free(a);
}
