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
  // 13 samples take 650 ps in fractions. The 13th ends at 700 on the fast rank, at 800 on others.
  s = shares(a, BALANCE_OK, (balance_batch){.total = 13, .nkinds = 2, .kind = mixed});
  check_shares(&s, 3, (i64[]){7, 3, 3});
  CHECK_EQ_I64(s.time_ps, 700);
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
  CHECK_EQ_I64(shares(a, BALANCE_CAPS, (balance_batch){.total = 50, .nkinds = 2, .kind = capped}).off, 2);
  // A slow rank that must have 3.
  const balance_ranks must[] = {{.count = 1, .cap = 20, .each_ps = 10},
                                {.count = 1, .least = 3, .cap = 20, .each_ps = 1000}};
  s = shares(a, BALANCE_OK, (balance_batch){.total = 10, .nkinds = 2, .kind = must});
  check_shares(&s, 2, (i64[]){7, 3});
  CHECK_EQ_I64(s.time_ps, 3000);
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
  in.total = 20; // 12 + 8 and 16 + 4 take 40: the former is nearer to 10 + 10
  s = shares(a, BALANCE_OK, in);
  check_shares(&s, 2, (i64[]){12, 8});
  CHECK_EQ_I64(s.time_ps, 40);
  in.time = whole_tiles, in.total = 18;
  shares(a, BALANCE_SUM, in);
  arena_free(a);
}

// Half as long from 20 quanta on: rates above a 16th of the way must not be taken for those before it.
static i64 faster_from_20(const void *arg, u32 kind, i64 b) {
  (void)arg, (void)kind;
  return b < 20 ? 100 * b : 50 * b;
}
TEST(balance_bound_of_times_that_fall) {
  arena *a = arena_new();
  const balance_ranks two[] = {{.count = 2, .cap = 40}};
  balance_batch in = {.total = 40, .nkinds = 1, .kind = two, .time = faster_from_20, .falls = true};
  balance_split s = shares(a, BALANCE_OK, in);
  check_shares(&s, 2, (i64[]){20, 20});
  CHECK_EQ_I64(s.time_ps, 1000);
  in.total = 38; // 20 + 18 takes 1800
  s = shares(a, BALANCE_OK, in);
  check_shares(&s, 2, (i64[]){25, 13});
  CHECK_EQ_I64(s.time_ps, 1300);
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
  s = shares(a, BALANCE_OK, (balance_batch){.total = BALANCE_QUANTA, .nkinds = 1, .kind = most + 1});
  CHECK_EQ_I64(s.time_ps, BALANCE_QUANTA / (BALANCE_RANKS / 2) * most[1].each_ps);
  arena_free(a);
}

// ---- stages -------------------------------------------------------------------------------------------
static void check_stages(const balance_cuts *c, u32 n, const u32 *kind, const u32 *end) {
  CHECK_EQ_I64(c->nstages, n);
  for (u32 i = 0; i < n && i < c->nstages; i++) {
    CHECK_EQ_I64(c->kind[i], kind[i]);
    CHECK_EQ_I64(c->end[i], end[i]);
  }
}

// Nine layers of 10 ps, 20 ps on the slow kind.
static const i64 tens[9] = {10, 10, 10, 10, 10, 10, 10, 10, 10},
                 twenties[9] = {20, 20, 20, 20, 20, 20, 20, 20, 20}, ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1},
                 twos[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
static const i64 *const fast_slow[] = {tens, twenties};

TEST(balance_stages_by_speed) {
  arena *a = arena_new();
  const balance_devices one_each[] = {{1, 1000}, {1, 1000}};
  balance_line in = {.nlayers = 9, .nkinds = 2, .kind = one_each, .time_ps = fast_slow, .micro = 4};
  balance_cuts c;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  check_stages(&c, 2, (u32[]){0, 1}, (u32[]){6, 9});
  CHECK_EQ_I64(c.tau_ps, 60);
  CHECK_EQ_I64(c.total_ps, 3 * 60 + 60 + 60);
  CHECK_EQ_I64(c.tau_bound_ps, 60);
  CHECK_EQ_I64(c.total_bound_ps, 3 * 60 + 90);
  // One microbatch: the fast device alone.
  in.micro = 1;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  check_stages(&c, 1, (u32[]){0}, (u32[]){9});
  CHECK_EQ_I64(c.total_ps, 90);
  // .. unless the bottleneck is what counts, or two stages are wanted: one layer on the slow one.
  in.aim = BALANCE_BOTTLENECK;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  CHECK_EQ_I64(c.tau_ps, 60);
  in.aim = BALANCE_TOTAL, in.stages = 2;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  check_stages(&c, 2, (u32[]){0, 1}, (u32[]){8, 9});
  CHECK_EQ_I64(c.total_ps, 100);
  in.stages = 3;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_STAGES);
  arena_free(a);
}

// 1F1B: the first of two stages keeps two forwards. Fast devices have 16 bytes, slow ones 40.
TEST(balance_stages_by_memory) {
  arena *a = arena_new();
  const balance_devices kinds[] = {{1, 16}, {1, 40}};
  balance_line in = {.nlayers = 9,
                     .nkinds = 2,
                     .kind = kinds,
                     .time_ps = fast_slow,
                     .fixed_bytes = ones,
                     .kept_bytes = ones,
                     .micro = 8};
  balance_cuts c;
  // Fast first: 5 layers in 15 bytes, 4 slow ones take 80. Fast last: 6 layers in 12 bytes, 3 slow ones take
  // 60.
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  check_stages(&c, 2, (u32[]){1, 0}, (u32[]){3, 9});
  CHECK_EQ_I64(c.tau_ps, 60);
  // One microbatch is kept once wherever it is.
  in.micro = 1, in.stages = 2;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  check_stages(&c, 2, (u32[]){0, 1}, (u32[]){8, 9});
  in.fixed_bytes = twos, in.micro = 8, in.stages = 0; // 9 layers are 27 bytes last, 4 a layer first
  const balance_devices small[] = {{1, 16}, {1, 12}};
  in.kind = small; // 5 and 3, or 4 and 4
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_MEMORY);
  CHECK_EQ_I64(c.placed, 8);
  const balance_devices tiny[] = {{4, 2}, {0, 100}};
  in.kind = tiny;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_LAYER);
  CHECK_EQ_I64(c.layer, 0);
  CHECK_EQ_I64(c.need_bytes, 3);
  CHECK_EQ_I64(c.have_bytes, 2);
  arena_free(a);
}

// A slow link between the kinds, except behind the first three layers.
static i64 slow_link(const void *arg, u32 cut, u32 from, u32 to) {
  (void)arg;
  return from == to ? 1 : cut == 3 ? 5 : 500;
}
TEST(balance_stages_by_links) {
  arena *a = arena_new();
  const balance_devices kinds[] = {{1, 1000}, {1, 1000}};
  balance_line in = {
      .nlayers = 9, .nkinds = 2, .kind = kinds, .time_ps = fast_slow, .micro = 100, .send = slow_link};
  balance_cuts c;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  check_stages(&c, 2, (u32[]){1, 0}, (u32[]){3, 9});
  CHECK_EQ_I64(c.tau_ps, 60);
  CHECK_EQ_I64(c.total_ps, 99 * 60 + 60 + 5 + 60);
  in.nlayers = 8; // 60 + 50 there; 90 on the other side
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  check_stages(&c, 2, (u32[]){1, 0}, (u32[]){3, 8});
  arena_free(a);
}

// A layer as long as all others.
TEST(balance_stages_with_a_large_layer) {
  arena *a = arena_new();
  const i64 fast[] = {10, 10, 40, 10, 10}, slow[] = {20, 20, 80, 20, 20}, *const times[] = {fast, slow};
  const balance_devices kinds[] = {{3, 1000}, {3, 1000}};
  balance_line in = {.nlayers = 5, .nkinds = 2, .kind = kinds, .time_ps = times, .micro = 3};
  balance_cuts c;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  check_stages(&c, 3, (u32[]){0, 0, 0}, (u32[]){2, 3, 5});
  CHECK_EQ_I64(c.tau_ps, 40);
  CHECK_EQ_I64(c.tau_bound_ps, 40);
  CHECK_EQ_I64(c.total_ps, 2 * 40 + 80);
  CHECK_EQ_I64(c.total_bound_ps, 2 * 40 + 80);
  arena_free(a);
}

TEST(balance_stages_that_are_too_many) {
  arena *a = arena_new();
  balance_devices kinds[9];
  const i64 *times[9];
  for (u32 k = 0; k < 9; k++) kinds[k] = (balance_devices){9, 1000}, times[k] = tens;
  balance_line in = {.nlayers = 9, .nkinds = 9, .kind = kinds, .time_ps = times, .micro = 1};
  balance_cuts c;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_STATES);
  CHECK_EQ_I64((i64)c.states, 1000000000);
  in.nkinds = 2;
  CHECK_EQ_I64(balance_stages(a, &in, &c), BALANCE_OK);
  CHECK_EQ_I64((i64)c.states, 100);
  arena_free(a);
}

TEST(balance_chunks_of_unequal_places) {
  arena *a = arena_new();
  balance_chunked c;
  // Two chunks on a fast and a slow place: 3 + 1.5 layers a pass. Chunks of 3, 1, 4, 1 have the least
  // squares; the slow place can take one more, which the first cut gives it.
  balance_passes in = {
      .nlayers = 9, .nkinds = 2, .nplaces = 2, .nchunks = 2, .kind = (u32[]){0, 1}, .time_ps = fast_slow};
  CHECK_EQ_I64(balance_chunks(a, &in, &c), BALANCE_OK);
  for (u32 i = 0; i < 4; i++) CHECK_EQ_I64(c.end[i], ((u32[]){2, 4, 8, 9})[i]);
  CHECK_EQ_I64(c.longest_ps, 40);
  CHECK_EQ_I64(c.tau_ps, 60);
  CHECK_EQ_I64(c.tau_bound_ps, 60);
  in.nlayers = 3;
  CHECK_EQ_I64(balance_chunks(a, &in, &c), BALANCE_STAGES);
  arena_free(a);
}

TEST(balance_chunks_of_few_microbatches) {
  arena *a = arena_new();
  balance_chunked c;
  balance_passes in = {
      .nlayers = 9, .nkinds = 2, .nplaces = 2, .nchunks = 1, .kind = (u32[]){0, 1}, .time_ps = fast_slow};
  // 6 + 3 layers take 60 and 60. One microbatch passes through 8 + 1 in 100; two take 80 more there, and 60 more here.
  static const u32 first[] = {6, 8, 6};
  for (in.micro = 0; in.micro < COUNT_OF(first); in.micro++) {
    CHECK_EQ_I64(balance_chunks(a, &in, &c), BALANCE_OK);
    CHECK_EQ_I64(c.end[0], first[in.micro]);
  }
  arena_free(a);
}

// ---- Whale --------------------------------------------------------------------------------------------
TEST(balance_whale_shifts_until_the_peak_fits) {
  arena *a = arena_new();
  balance_loads l;
  // In GB: 19, 9.5, 9.5 by speed. The first has 9 too many; the third takes 6.5, the second the rest.
  balance_whale in = {.n = 3, .DF = (i64[]){16, 8, 8}, .DM = (i64[]){10, 14, 16}, .TG_mem = 38, .quanta = 38};
  CHECK_EQ_I64(balance_whale_loads(a, &in, &l), BALANCE_OK);
  for (u32 i = 0; i < 3; i++) CHECK_EQ_I64(l.load[i], ((i64[]){10, 12, 16})[i]);
  in.quanta = 3800; // hundredths: nothing is rounded
  CHECK_EQ_I64(balance_whale_loads(a, &in, &l), BALANCE_OK);
  for (u32 i = 0; i < 3; i++) CHECK_EQ_I64(l.load[i], ((i64[]){1000, 1200, 1600})[i]);
  // 41 GB are one too many: the others are full.
  in.TG_mem = in.quanta = 41;
  CHECK_EQ_I64(balance_whale_loads(a, &in, &l), BALANCE_CAPS);
  CHECK_EQ_I64(l.off, 1);
  CHECK_EQ_I64(l.noom, 1);
  CHECK_EQ_I64(l.oom_devices[0], 0);
  for (u32 i = 0; i < 3; i++) CHECK_EQ_I64(l.load[i], ((i64[]){11, 14, 16})[i]);
  // Memory for all: in proportion to speed.
  in = (balance_whale){.n = 2, .DF = (i64[]){2, 1}, .DM = (i64[]){32, 16}, .TG_mem = 12, .quanta = 6};
  CHECK_EQ_I64(balance_whale_loads(a, &in, &l), BALANCE_OK);
  for (u32 i = 0; i < 2; i++) CHECK_EQ_I64(l.load[i], ((i64[]){4, 2})[i]); // the batch of figure 4
  arena_free(a);
}

// 10 each by speed. The first has 3 too many, the second 1: the fullest goes first. Both others are as busy,
// the last has more memory and takes the 3; then the third is less busy.
TEST(balance_whale_takes_the_fullest_first) {
  arena *a = arena_new();
  balance_loads l;
  balance_whale in = {
      .n = 4, .DF = (i64[]){5, 5, 5, 5}, .DM = (i64[]){7, 9, 19, 20}, .TG_mem = 40, .quanta = 40};
  CHECK_EQ_I64(balance_whale_loads(a, &in, &l), BALANCE_OK);
  for (u32 i = 0; i < 4; i++) CHECK_EQ_I64(l.load[i], ((i64[]){7, 9, 11, 13})[i]);
  // The same the other way round.
  in.DM = (i64[]){20, 19, 9, 7};
  CHECK_EQ_I64(balance_whale_loads(a, &in, &l), BALANCE_OK);
  for (u32 i = 0; i < 4; i++) CHECK_EQ_I64(l.load[i], ((i64[]){13, 11, 9, 7})[i]);
  arena_free(a);
}

// Figure 8: P100 of 16 GB and V100 of 32 GB; the V100 comes first.
TEST(balance_whale_orders_by_memory) {
  arena *a = arena_new();
  balance_whale_line in = {.n = 2,
                           .DF = (i64[]){10, 20},
                           .DM = (i64[]){16, 32},
                           .nlayers = 9,
                           .micro = 4,
                           .flop = ones,
                           .fixed_bytes = twos,
                           .kept_bytes = ones};
  balance_whale_cuts c;
  CHECK_EQ_I64(balance_whale_stages(a, &in, &c), BALANCE_OK);
  CHECK_EQ_I64(c.device[0], 1);
  CHECK_EQ_I64(c.device[1], 0);
  CHECK_EQ_I64(c.end[0], 6);
  CHECK_EQ_I64(c.end[1], 9);
  in.DM = (i64[]){16, 20}; // 6 layers are 24 bytes there; 4 on the other one are 12
  CHECK_EQ_I64(balance_whale_stages(a, &in, &c), BALANCE_OK);
  CHECK_EQ_I64(c.end[0], 5);
  in.DM = (i64[]){9, 20}; // 4 layers do not fit there
  CHECK_EQ_I64(balance_whale_stages(a, &in, &c), BALANCE_MEMORY);
  CHECK_EQ_I64(c.noom, 1);
  CHECK_EQ_I64(c.oom_devices[0], 1);
  CHECK_EQ_I64(c.end[0], 6);
  in.nlayers = 1;
  CHECK_EQ_I64(balance_whale_stages(a, &in, &c), BALANCE_STAGES);
  arena_free(a);
}

// Layers alike, each kept once: where Algorithm 1 moves them.
static void check_whale_stages(u32 n, u32 nlayers, const i64 *DF, const i64 *DM, const u32 *end) {
  static const i64 same[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  arena *a = arena_new();
  balance_whale_cuts c;
  balance_whale_line in = {
      .n = n, .DF = DF, .DM = DM, .nlayers = nlayers, .micro = 1, .flop = same, .fixed_bytes = same};
  CHECK_EQ_I64(balance_whale_stages(a, &in, &c), BALANCE_OK);
  for (u32 i = 0; i < n; i++) CHECK_EQ_I64(c.end[i], end[i]);
  arena_free(a);
}
TEST(balance_whale_moves_layers) {
  // 4, 4, 4; the last has one too many. Both others are as busy: the one with more memory takes it.
  check_whale_stages(3, 12, (i64[]){10, 10, 10}, (i64[]){20, 19, 3}, (u32[]){5, 9, 12});
  // The second is less busy.
  check_whale_stages(3, 12, (i64[]){10, 11, 10}, (i64[]){20, 19, 3}, (u32[]){4, 9, 12});
  // 4 each. The last has two too many and goes first, the third one.
  check_whale_stages(4, 16, (i64[]){1, 1, 1, 1}, (i64[]){30, 29, 3, 2}, (u32[]){6, 11, 14, 16});
  // 5 each; the last two have one too many, and the first is the only valley.
  check_whale_stages(3, 15, (i64[]){1, 1, 1}, (i64[]){9, 4, 4}, (u32[]){7, 11, 15});
}
