// test_sched_interlaced.c - pipelines between a first and a last stage on all places: idle time and activations by
// formula, whatever the tasks take.
#include "sched/sched.h"
#include "test.h"

typedef struct {
  u64 f, b, wide_f, wide_b;
} costs;

static void check_row(const char *name, u32 P, u32 K, const costs *c, bool block) {
  ctx *s = ctx_new();
  arena *a = arena_new();
  const u32 n = P + 2;
  u64 *task[TASK_KINDS], *send = ZNEWN(a, u64, n), *memory = ZNEWN(a, u64, n);
  for (u32 k = 0; k < TASK_KINDS; k++) task[k] = ZNEWN(a, u64, n);
  for (u32 i = 0; i < n; i++) {
    const bool wide = i == 0 || i == n - 1;
    task[TASK_F][i] = wide ? c->wide_f : c->f, task[TASK_B][i] = wide ? c->wide_b : c->b, memory[i] = !wide;
  }
  sched_costs of = {.send = send, .memory = memory};
  for (u32 k = 0; k < TASK_KINDS; k++) of.task[k] = task[k];
  const sched_shape shape = {.places = P, .chunks = 1, .micro = K, .backward = true};
  const sched *x = sched_make(s, a, name, &shape, (loc){0});
  sched_times t;
  REQUIRE(x && sched_check(s, x, (loc){0}, NULL) && sched_time_of(s, a, x, &of, (loc){0}, &t));
  CHECK_EQ_I64(x->nstages, n);
  CHECK(x->at[0].n == P && x->at[n - 1].n == P && x->at[1].n == 1);
  const u64 apart = c->b > c->f ? c->b - c->f : c->f - c->b,
            idle = (P - 1) * (c->f + c->b) + (block && P > 1 ? (K - 1) * apart : 0);
  for (u32 r = 0; r < P; r++) {
    CHECK_MSG(t.makespan - t.busy[r] == idle, "%s P%u K%u: place %u is idle for %llu, not %llu", name, P, K,
              r, (unsigned long long)(t.makespan - t.busy[r]), (unsigned long long)idle);
    CHECK_EQ_I64(t.memory[r], MIN(block ? P - r : 2 * (P - r) - 1, K));
  }
  arena_free(a);
  ctx_free(s);
}

TEST(sched_interlaced) {
  static const costs all[] = {{1, 2, 0, 0},   {1, 2, 1, 2}, {1, 3, 1, 2},
                              {10, 20, 3, 5}, {3, 2, 1, 1}, {5, 5, 7, 1}};
  for (u32 P = 1; P <= 8; P++)
    for (u32 K = P; K <= 4 * P + 1; K += 1 + P / 2)
      for (u32 k = 0; k < COUNT_OF(all); k++) {
        check_row("interlaced", P, K, &all[k], false);
        check_row("interlaced-block", P, K, &all[k], true);
      }
}
