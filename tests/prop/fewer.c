// fewer.c - one device and one node in the result of a search, against searches of every device and of every node that is used
// whole: nodes of any size and kind in any order, some ranks left out, some choices said. SEED=n: one search.
#include "front/front.h"
#include "search/search.h"
#include "test.h"
#include <stdlib.h>

enum { SEARCHES = 30 };
static u32 devices, nodes; // faster than the whole

static u32 pick(u64 *rng, u32 n) { return (u32)(rng_next(rng) % n); }

static i64 own(ctx *c, const prog *src, const machine *m, const search_opts *all, u32 first, u32 n) {
  arena *a = arena_new();
  const choice_value skip = {.n = first};
  search_opts o = *all;
  search_result r;
  o.space.of[CHOICE_skip] = (choice_set){.said = true, .n = 1, .v = &skip};
  o.ranks = n, o.plain = true;
  const bool ok = search_run(c, a, src, m, NULL, &o, &r);
  const i64 time = ok ? r.point[0].time_ps : INT64_MAX;
  diag_clear(c);
  arena_free(a);
  return time;
}

static void search(u64 seed) {
  static const char *const kinds[] = {"v100", "t4", "a100", "p100"}, *const said[] = {
                                                                         "",          "recompute=none",
                                                                         "zero=0",    "mbs=1",
                                                                         "overlap=*", "attention=*"};
  u64 rng = hash_u64(seed, 31);
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  prog *src = front_load(c, "gpt2:layers=3,hidden=128,heads=4,vocab=200",
                         &(front_opts){.batch = 12, .seq = 64, .loss = true});
  strbuf on = {.a = a};
  for (u32 k = 0, n = 2 + pick(&rng, 2); k < n; k++)
    sb_fmt(&on, "%s%ux%u %s", k ? " + " : "", 1 + pick(&rng, 2), 1u << pick(&rng, 3),
           kinds[pick(&rng, COUNT_OF(kinds))]);
  sb_fmt(&on, " ib=%uMb/s", 50u << pick(&rng, 12));
  const machine *m = machine_load(c, a, sb_str(&on));
  REQUIRE(src && m);
  const u32 from = pick(&rng, 4) ? 0 : pick(&rng, m->nranks), ranks = m->nranks - from;
  const char *line = said[pick(&rng, COUNT_OF(said))];
  const choice_value skip = {.n = from};
  search_opts o = {
      .train = true, .batch = 12, .optim = optim_default(OPTIM_ADAM), .threads = 1, .ranks = ranks, .top = 1};
  search_result r;
  REQUIRE(strategy_parse(c, a, line, &o.space));
  if (from) o.space.of[CHOICE_skip] = (choice_set){.said = true, .n = 1, .v = &skip};
  if (search_run(c, a, src, m, NULL, &o, &r)) {
    i64 least[2] = {r.point[0].time_ps, r.point[0].time_ps};
    strategy_set one = o.space; // what is of several devices is of none
    const choice_id of_several[] = {CHOICE_zero, CHOICE_overlap};
    for (u32 k = 0; k < COUNT_OF(of_several); k++) one.of[of_several[k]] = (choice_set){0};
    search_opts alone = o;
    alone.space = one;
    for (u32 i = from, n; i < m->nranks; i += n) {
      for (n = 1; i + n < m->nranks && m->dev[i + n].node == m->dev[i].node;) n++;
      for (u32 k = 0; k < n && ranks > 1; k++) least[0] = MIN(least[0], own(c, src, m, &alone, i + k, 1));
      const bool whole = n == m->node_kind[m->node[m->dev[i].node]].ndevs;
      if (whole && n > 1 && n < ranks) least[1] = MIN(least[1], own(c, src, m, &o, i, n));
    }
    const search_fewer *got[2] = {&r.one_device, &r.one_node};
    for (u32 k = 0; k < 2; k++) {
      const bool faster = least[k] < r.point[0].time_ps;
      CHECK_MSG(got[k]->time_ps == (faster ? least[k] : 0),
                "seed %llu, %s, skip=%u %s: %s takes %lld, the search says %lld", (unsigned long long)seed,
                sb_str(&on), from, line, k ? "one node" : "one device", (long long)least[k],
                (long long)got[k]->time_ps);
      *(k ? &nodes : &devices) += faster;
    }
  }
  prog_free(src);
  ctx_free(c);
}

TEST(fewer_devices_are_searched_as_by_themselves) {
  const char *one = getenv("SEED");
  const u32 most = test_cases(SEARCHES);
  if (one) search(strtoull(one, NULL, 0));
  for (u64 seed = 1; !one && seed <= most; seed++) search(seed);
  printf("  one device is faster in %u searches, one node in %u\n", devices, nodes);
  if (!one && test_all_cases()) CHECK(devices >= 5 && nodes >= 10);
}
