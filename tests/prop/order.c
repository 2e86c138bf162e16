// order.c - points of a space by their strategies, against qsort: strategies at random, of few values and of so many that their
// digits do not fit into 64 bits, with lists. SEED=n: one space.
#include "search/internal.h"
#include "test.h"
#include <stdlib.h>

enum { SPACES = 300, POINTS = 400 };
typedef struct {
  strategy s;
  u32 at;
} numbered;

static u32 few(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

static int by_strategy(const void *x, const void *y) {
  const numbered *a = x, *b = y;
  const int before = strategy_compare(&a->s, &b->s);
  return before ? before : a->at < b->at ? -1 : a->at > b->at;
}

// Every third of the rows from `from` on gets another value, of `most` or a little more; some are lists.
static strategy any(u64 *rng, arena *a, u32 from, u32 most, const strategy *like) {
  strategy s = *like;
  for (u32 k = from; k < CHOICE_COUNT; k++) {
    if (few(rng, 3)) continue;
    s.of[k] = (choice_value){.n = few(rng, 10) ? 1 + few(rng, most) : (1u << 16) - 3 + few(rng, 6)};
    if (few(rng, 8)) continue;
    u32 *part = NEWN(a, u32, 4);
    s.of[k] = (choice_value){.nparts = 1 + few(rng, 4), .part = part};
    for (u32 i = 0; i < 4; i++) part[i] = few(rng, 3);
  }
  return s;
}

static void check_space(u64 seed, u32 *beyond) {
  u64 rng = hash_u64(seed, 1);
  arena *a = arena_new();
  const u32 n = few(&rng, POINTS), most = 1 + few(&rng, few(&rng, 2) ? 3 : 60),
            from = few(&rng, 2) ? few(&rng, CHOICE_COUNT) : 0;
  search_point *point = ZNEWN(a, search_point, n + 1);
  numbered *want = NEWN(a, numbered, n + 1);
  strategy s = strategy_default();
  double values = 1;
  for (u32 i = 0; i < n; i++) {
    s = any(&rng, a, from, most, &s);
    want[i] = (numbered){s, i};
    point[i].packed = strategy_pack(a, &s);
  }
  qsort(want, n, sizeof *want, by_strategy);
  const point_order *o = order_make(a, n, point);
  for (u32 i = 0; i < n; i++) CHECK_EQ_I64(order_at(o, i), want[i].at);
  for (u32 i = 0; i < n; i++) {
    const u32 at = order_find(o, &want[i].s);
    CHECK(at < n && search_is(&point[at], &want[i].s));
    s = any(&rng, a, from, most, &want[i].s);
    u32 k = 0;
    while (k < n && strategy_compare(&s, &want[k].s)) k++;
    CHECK_EQ_I64(order_find(o, &s) == n, k == n);
  }
  for (u32 k = 0; k < CHOICE_COUNT; k++) { // how many values a row has
    u32 different = 0;
    for (u32 i = 0; i < n; i++) {
      u32 j = 0;
      while (j < i && !choice_same(want[j].s.of[k], want[i].s.of[k])) j++;
      different += j == i;
    }
    values *= MAX(different, 1u);
  }
  *beyond += values > 0x1p64;
  arena_free(a);
}

TEST(order_is_that_of_qsort) {
  const char *one = getenv("SEED");
  const u32 most = test_cases(SPACES);
  u32 beyond = 0;
  if (one) check_space(strtoull(one, NULL, 0), &beyond);
  for (u64 seed = 1; !one && seed <= most; seed++) check_space(seed, &beyond);
  printf("  %u of %u spaces have more than 2^64 strategies\n", beyond, most);
  if (!one && test_all_cases()) CHECK(beyond > most / 4 && beyond < most * 9 / 10);
}
