// Ready queues against a clock that ticks: random graphs of up to ten nodes, every start compared.
#include "sim/sim.h"
#include "test.h"

enum { NODES = 10, RESOURCES = 3 };
typedef struct {
  u32 n;
  i64 dur[NODES];
  u32 res[NODES], rank[NODES];
  bool edge[NODES][NODES]; // from, to
} dag;

static dag make_dag(u64 *seed) {
  dag g = {.n = 1 + (u32)(rng_next(seed) % NODES)};
  for (u32 k = 0; k < g.n; k++) {
    g.dur[k] = (i64)(rng_next(seed) % 5); // 0 as well
    g.res[k] = rng_next(seed) % 5 ? (u32)(rng_next(seed) % RESOURCES) : TRACE_NONE;
    g.rank[k] = (u32)(rng_next(seed) % 3);
    for (u32 i = 0; i < k; i++) g.edge[i][k] = rng_next(seed) % 4 == 0;
  }
  return g;
}

static sim_queue queue_of(arena *a, const dag *g, bool ranks) {
  u32 *first = NEWN(a, u32, g->n + 1), *next = NEWN(a, u32, NODES * NODES), n = 0;
  for (u32 k = 0; k < g->n; k++) {
    first[k] = n;
    for (u32 i = 0; i < g->n; i++)
      if (g->edge[k][i]) next[n++] = i;
  }
  first[g->n] = n;
  return (sim_queue){.n = g->n,
                     .nres = RESOURCES,
                     .dur = g->dur,
                     .res = g->res,
                     .rank = ranks ? g->rank : NULL,
                     .first = first,
                     .next = next};
}

// When node k is ready at time t, else -1: all that it waits for has ended.
static i64 ready_at(const dag *g, const i64 *start, u32 k, i64 t) {
  i64 at = 0;
  for (u32 i = 0; i < g->n; i++) {
    if (!g->edge[i][k]) continue;
    if (start[i] < 0 || start[i] + g->dur[i] > t) return -1;
    at = MAX(at, start[i] + g->dur[i]);
  }
  return at;
}

// Whoever may start at t does; once more after each, since some take no time.
static bool tick(const dag *g, bool ranks, i64 *start, i64 t) {
  bool any = false;
  for (u32 k = 0; k < g->n; k++)
    if (g->res[k] == TRACE_NONE && start[k] < 0 && ready_at(g, start, k, t) >= 0) start[k] = t, any = true;
  if (any) return true;
  u32 chosen[RESOURCES];
  for (u32 r = 0; r < RESOURCES; r++) {
    u32 best = NODES;
    i64 best_at = 0;
    bool busy = false;
    for (u32 k = 0; k < g->n; k++) {
      const i64 at = ready_at(g, start, k, t);
      if (g->res[k] != r) continue;
      busy |= start[k] >= 0 && start[k] + g->dur[k] > t;
      if (start[k] >= 0 || at < 0) continue;
      const u32 rank = ranks ? g->rank[k] : 0, best_rank = best == NODES || !ranks ? 0 : g->rank[best];
      if (best == NODES || rank < best_rank || (rank == best_rank && at < best_at)) best = k, best_at = at;
    }
    chosen[r] = busy ? NODES : best;
  }
  for (u32 r = 0; r < RESOURCES; r++) // all choose before one begins
    if (chosen[r] < NODES) start[chosen[r]] = t, any = true;
  return any;
}

TEST(queue_equals_a_ticking_clock) {
  u64 seed = 1;
  for (u32 i = 0; i < 5000; i++) {
    arena *a = arena_new();
    const dag g = make_dag(&seed);
    const bool ranks = i % 2;
    const sim_queue q = queue_of(a, &g, ranks);
    i64 start[NODES], want[NODES], end = 0;
    u32 cause[NODES];
    for (u32 k = 0; k < g.n; k++) want[k] = -1;
    for (i64 t = 0; t < 5 * NODES; t++)
      while (tick(&g, ranks, want, t)) {}
    const i64 got = sim_queue_run(a, &q, start, cause);
    for (u32 k = 0; k < g.n; k++) {
      CHECK_EQ_I64(start[k], want[k]);
      end = MAX(end, want[k] + g.dur[k]);
      // What decided the start ended then; what nothing decided starts at once.
      CHECK(cause[k] == TRACE_NONE ? start[k] == 0 : start[cause[k]] + g.dur[cause[k]] == start[k]);
    }
    CHECK_EQ_I64(got, end);
    arena_free(a);
  }
}

TEST(queue_finds_circles) {
  arena *a = arena_new();
  dag g = {.n = 3, .dur = {1, 1, 1}, .res = {0, 1, TRACE_NONE}};
  g.edge[0][1] = g.edge[1][2] = true;
  i64 start[NODES];
  sim_queue q = queue_of(a, &g, false);
  CHECK_EQ_I64(sim_queue_run(a, &q, start, NULL), 3);
  g.edge[2][1] = true;
  q = queue_of(a, &g, false);
  CHECK_EQ_I64(sim_queue_run(a, &q, start, NULL), -1);
  arena_free(a);
}
