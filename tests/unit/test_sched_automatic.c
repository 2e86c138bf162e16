// test_sched_automatic.c - orders that are made for the times of stages (zb-1p, zb-2p): against the rows by hand, and
// against the best that there is.
#include "sched/sched.h"
#include "test.h"

static u64 R;
static u32 few(u32 n) { return (u32)(rng_next(&R) % n); }

typedef struct {
  ctx *c;
  arena *a;
  u32 P, K;
  sched_stages of;
} bed;

// Stages in a chain, or each behind some of those before it; times from `least` to `most`.
static bed bed_of(u32 P, u32 K, u32 least, u32 most, u32 send, bool chain) {
  bed b = {.c = ctx_new(), .a = arena_new(), .P = P, .K = K};
  u64 *v[6];
  for (u32 k = 0; k < 6; k++) v[k] = NEWN(b.a, u64, P);
  sched_places *at = NEWN(b.a, sched_places, P);
  sched_edge *e = NEWN(b.a, sched_edge, P * P + 1);
  u32 ne = 0;
  for (u32 p = 0; p < P; p++) {
    for (u32 k = 0; k < 3; k++) v[k][p] = least + few(most - least + 1);
    v[3][p] = v[1][p] + v[2][p], v[4][p] = send ? few(send + 1) : 0, v[5][p] = 1;
    at[p] = (sched_places){1, arena_dup(b.a, &(u16){(u16)p}, sizeof(u16))};
    for (u32 q = p + 1; q < P; q++)
      if (chain ? q == p + 1 : few(2)) e[ne++] = (sched_edge){.from = (u16)p, .to = (u16)q};
  }
  b.of = (sched_stages){.nstages = P,
                        .nplaces = P,
                        .at = at,
                        .nedges = ne,
                        .edge = e,
                        .cost = {.task = {[TASK_F] = v[0], [TASK_I] = v[1], [TASK_W] = v[2], [TASK_B] = v[3]},
                                 .send = v[4],
                                 .memory = v[5]},
                        .where = ZNEWN(b.a, loc, P)};
  return b;
}
static void bed_free(bed *b) {
  arena_free(b->a);
  ctx_free(b->c);
}

static sched_times times_of(bed *b, const char *name, const sched_costs *known) {
  const sched_shape shape = {.places = b->P,
                             .chunks = 1,
                             .micro = b->K,
                             .backward = true,
                             .nedges = b->of.nedges,
                             .edge = b->of.edge,
                             .times = known};
  const sched *s = sched_make(b->c, b->a, name, &shape, (loc){0});
  sched_times t = {0};
  CHECK_MSG(s && sched_check(b->c, s, (loc){0}, NULL) &&
                sched_time_of(b->c, b->a, s, &b->of.cost, (loc){0}, &t),
            "%s P%u K%u: %s", name, b->P, b->K, diag_render(b->c, b->a));
  return t;
}

// Never later than the row by hand, nor in more room than in less, and never above the limit; and not always the same.
TEST(sched_made_for_times) {
  static const struct {
    const char *made, *by_hand;
    u32 limit;
  } row[] = {{"zb-1p", "zb-h1", 1}, {"zb-2p", "zb-h2", 2}};
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    const u32 runs = 1000;
    u32 shorter = 0;
    for (u32 seed = 1; seed <= runs; seed++) {
      R = seed;
      const u32 P = 1 + few(7), K = 1 + few(3 * P);
      bed b = bed_of(P, K, few(3) ? 5 : 0, 20, few(2) ? 10 : 0, few(4));
      const sched_times now = times_of(&b, row[k].made, &b.of.cost),
                        then = times_of(&b, row[k].by_hand, NULL);
      CHECK_MSG(now.makespan <= then.makespan, "%s P%u K%u: %llu, but %s %llu", row[k].made, P, K,
                (unsigned long long)now.makespan, row[k].by_hand, (unsigned long long)then.makespan);
      CHECK_MSG(!k || now.makespan <= times_of(&b, "zb-1p", &b.of.cost).makespan, "P%u K%u: zb-2p %llu", P, K,
                (unsigned long long)now.makespan);
      for (u32 p = 0; p < P; p++)
        CHECK_MSG(now.live[p] <= row[k].limit * P, "%s P%u K%u: %u alive on place %u", row[k].made, P, K,
                  now.live[p], p);
      shorter += now.makespan < then.makespan;
      bed_free(&b);
    }
    CHECK_MSG(shorter > runs / 5, "%s is shorter %u times of %u", row[k].made, shorter, runs);
  }
}

// Without times F, I and W take 1 each: no place idles for more than what the last one waits for its first task.
TEST(sched_made_without_times) {
  for (u32 P = 1; P <= 8; P++)
    for (u32 K = 2 * P; K <= 6 * P; K += P)
      for (u32 twice = 0; twice < 2; twice++) {
        bed b = bed_of(P, K, 1, 1, 0, true);
        const sched_times t = times_of(&b, twice ? "zb-2p" : "zb-1p", NULL);
        CHECK_EQ_I64(t.makespan, 3 * K + P - 1);
        bed_free(&b);
      }
}

// Of small pipelines whose best order the search knows. On average 0.2 % above it, and 1.2 % above it by hand; the worst is
// 4.3 %.
TEST(sched_made_beside_the_best) {
  double made = 0, by_hand = 0, most = 0;
  u32 n = 0;
  for (u32 seed = 1; seed <= 100; seed++) {
    R = seed;
    const u32 P = 2 + few(3), K = 2 + few(4);
    bed b = bed_of(P, K, 5, 20, few(2) ? 10 : 0, true);
    sched_synthesis x;
    REQUIRE(sched_synthesize(b.c, b.a, &b.of, &(sched_aims){.micro = K, .memory = P, .seconds = 1}, &x));
    if (x.t.makespan == x.bound) {
      const double best = (double)x.bound,
                   above = (double)times_of(&b, "zb-1p", &b.of.cost).makespan / best - 1;
      CHECK(above >= 0);
      made += above, by_hand += (double)times_of(&b, "zb-h1", NULL).makespan / best - 1;
      most = MAX(most, above), n++;
    }
    bed_free(&b);
  }
  CHECK_MSG(n > 50 && 3 * made < by_hand && most < 0.05, "of %u: %.4f made, %.4f by hand, at most %.4f", n,
            made / n, by_hand / n, most);
}
