// test_sched_passes.c - 3F1B: idle time and activations by formula, whatever the tasks take.
#include "sched/sched.h"
#include "test.h"

static void check_passes(u32 P, u32 K, u32 f, u32 b) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const u32 cost[TASK_KINDS] = {[TASK_F] = f, [TASK_B] = b};
  const sched_shape shape = {.places = P, .chunks = 3, .micro = K, .backward = true};
  const sched *s = sched_make(c, a, "3f1b", &shape, (loc){0});
  sched_times t;
  REQUIRE(s && sched_check(c, s, (loc){0}, NULL) && sched_time(c, a, s, cost, (loc){0}, &t));
  CHECK(s->nstages == P && s->npasses == 3);
  const u64 idle = (P - 1) * (u64)(f + b);
  CHECK_MSG(t.makespan == (u64)K * (3 * f + b) + idle, "P%u K%u %u/%u: %llu, not %llu", P, K, f, b,
            (unsigned long long)t.makespan, (unsigned long long)(K * (3 * f + b) + idle));
  for (u32 r = 0; r < P; r++) CHECK_EQ_I64(t.live[r], MIN(P - r, K));
  arena_free(a);
  ctx_free(c);
}

TEST(sched_passes) {
  static const u32 costs[][2] = {{1, 2}, {1, 3}, {2, 3}, {1, 1}};
  for (u32 P = 1; P <= 8; P++)
    for (u32 K = P; K <= 4 * P + 1; K++)
      for (u32 k = 0; k < COUNT_OF(costs); k++) check_passes(P, K, costs[k][0], costs[k][1]);
}

// Before a microbatch begins a pass on the first place it has ended the one before on the last: nothing in between waits
// for it, so a place runs other tasks meanwhile.
TEST(sched_passes_inference) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const u32 cost[TASK_KINDS] = {[TASK_F] = 1};
  const sched_shape shape = {.places = 4, .chunks = 3, .micro = 8};
  const sched *s = sched_make(c, a, "3f1b", &shape, (loc){0});
  sched_times t;
  REQUIRE(s && sched_time(c, a, s, cost, (loc){0}, &t));
  CHECK_EQ_I64(t.makespan, 3 * 8 + 3);
  arena_free(a);
  ctx_free(c);
}
