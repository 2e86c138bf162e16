// rvd.c - the graph of all layouts of a tensor up to the names of axes, and all shortest paths in it. Tells
// what a way costs at best; path.c finds the way for given axes.
//
// Idea: R copies, V partial values and Di pieces of dimension i multiply to the number of devices. A step
// moves a factor n from one of these numbers to another; the kinds of steps and their costs are those of
// layout_path. One Dijkstra for every target, against the direction of the steps, gives the next state on the
// way there from everywhere.
#include "layout/internal.h"
#include <math.h>

enum { REPLICAS, VALUES, FIRST_DIM, ROLES = FIRST_DIM + DIMS_MAX };

typedef struct {
  u32 from, to;
  double cost;
} edge;

typedef struct {
  arena *a;
  u32 n, roles; // states; numbers in each
  const i64 *dims;
  VEC(u32) state;
  hmap index;
  VEC(edge) edges;
} graph;

static const u32 *state_of(const graph *g, u32 i) { return g->state.v + (size_t)i * g->roles; }

static u64 state_hash(const graph *g, const u32 *x) { return hash_bytes(x, g->roles * sizeof *x, 0); }

// All ways to write `left` as a product of numbers k..: in lexicographic order.
static void enumerate(graph *g, u32 *x, u32 k, u32 left) {
  if (k == g->roles) {
    if (left != 1) return;
    memcpy(vec_push_n(g->a, &g->state, g->roles), x, g->roles * sizeof *x);
    hmap_add(g->a, &g->index, state_hash(g, x), g->n++);
    return;
  }
  for (x[k] = 1; x[k] <= left; x[k]++)
    if (left % x[k] == 0 && (k < FIRST_DIM || g->dims[k - FIRST_DIM] % x[k] == 0))
      enumerate(g, x, k + 1, left / x[k]);
}

// State i with n ways moved from one number to another; g->n if there is none.
static u32 neighbour(const graph *g, u32 i, u32 from, u32 to, u32 n) {
  u32 x[ROLES];
  memcpy(x, state_of(g, i), g->roles * sizeof *x);
  x[from] /= n;
  x[to] *= n;
  for (u32 it = 0, k; hmap_next(&g->index, state_hash(g, x), &it, &k);)
    if (memcmp(state_of(g, k), x, g->roles * sizeof *x) == 0) return k;
  return g->n;
}

// The step that moves ways between two numbers; false if there is none (nothing becomes partial but what is
// whole).
static bool kind_of(u32 from, u32 to, step_kind *kind) {
  if (from == to || (to == VALUES && from != REPLICAS)) return false;
  if (from == REPLICAS)
    *kind = to == VALUES ? STEP_PARTIAL : STEP_SHARD;
  else if (from == VALUES)
    *kind = to == REPLICAS ? STEP_ALL_REDUCE : STEP_REDUCE_SCATTER;
  else
    *kind = to == REPLICAS ? STEP_ALL_GATHER : STEP_ALL_TO_ALL;
  return true;
}

static i64 local_elems(const graph *g, u32 i) {
  i64 n = 1;
  for (u32 k = FIRST_DIM; k < g->roles; k++) n *= g->dims[k - FIRST_DIM] / state_of(g, i)[k];
  return n;
}

// Edges that leave a state come one after the other, so `edges` is ordered by `from`.
static void connect(graph *g, step_cost *cost_fn, void *arg) {
  i64 *elems = NEWN(g->a, i64, g->n);
  for (u32 i = 0; i < g->n; i++) elems[i] = local_elems(g, i);
  for (u32 i = 0; i < g->n; i++)
    for (u32 from = 0; from < g->roles; from++)
      for (u32 to = 0; to < g->roles; to++) {
        step_kind kind;
        if (!kind_of(from, to, &kind)) continue;
        u32 ways = state_of(g, i)[from];
        for (u32 n = 2; n <= ways; n++) {
          if (ways % n) continue;
          u32 k = neighbour(g, i, from, to, n);
          if (k == g->n) continue;
          double cost = cost_fn(arg, kind, NULL, 0, n, elems[i], elems[k]);
          assert(cost >= 0);
          if (cost < INFINITY) *vec_push(g->a, &g->edges) = (edge){i, k, cost};
        }
      }
}

// ---- shortest paths to one target --------------------------------------------------------------------

typedef struct {
  double cost;
  u32 hops, next; // next: the state after this one on the way
} way;

// States whose way is not final yet: a binary heap of them, and where each is in it.
typedef struct {
  u32 n, *heap, *place;
  way *best;
} queue;

static bool nearer(const queue *q, u32 x, u32 y) {
  const way *a = &q->best[x], *b = &q->best[y];
  if (a->cost != b->cost) return a->cost < b->cost;
  return a->hops != b->hops ? a->hops < b->hops : x < y;
}

static void put(queue *q, u32 i, u32 state) {
  q->heap[i] = state;
  q->place[state] = i;
}

static void rise(queue *q, u32 i, u32 state) {
  for (; i && nearer(q, state, q->heap[(i - 1) / 2]); i = (i - 1) / 2) put(q, i, q->heap[(i - 1) / 2]);
  put(q, i, state);
}

static u32 pop(queue *q) {
  u32 top = q->heap[0], last = q->heap[--q->n], i = 0;
  for (u32 k; (k = 2 * i + 1) < q->n; i = k) {
    if (k + 1 < q->n && nearer(q, q->heap[k + 1], q->heap[k])) k++;
    if (!nearer(q, q->heap[k], last)) break;
    put(q, i, q->heap[k]);
  }
  put(q, i, last);
  return top;
}

// into[begin[k]..begin[k+1]) are the edges that arrive at k. Of ways equally good the one with fewest steps,
// then the one whose next state comes first.
static void paths_to(u32 target, u32 n, const u32 *begin, const edge *into, queue *q) {
  for (u32 i = 0; i < n; i++) q->best[i] = (way){INFINITY, UINT32_MAX, n};
  q->best[target] = (way){0, 0, n};
  q->n = 0;
  rise(q, q->n++, target);
  while (q->n) {
    u32 x = pop(q);
    const way from = q->best[x];
    for (u32 e = begin[x]; e < begin[x + 1]; e++) {
      way *old = &q->best[into[e].from], new = {from.cost + into[e].cost, from.hops + 1, x};
      if (new.cost > old->cost || (new.cost == old->cost &&new.hops > old->hops)) continue;
      if (new.cost == old->cost &&new.hops == old->hops) {
        old->next = MIN(old->next, x);
        continue;
      }
      bool first = old->next == n;
      *old = new;
      rise(q, first ? q->n++ : q->place[into[e].from], into[e].from);
    }
  }
}

rvd_graph rvd_all_paths(arena *a, u32 ndevices, u32 nd, const i64 *dims, step_cost *cost_fn, void *arg) {
  assert(ndevices && nd <= DIMS_MAX);
  arena *scratch = arena_new();
  graph g = {.a = scratch, .roles = FIRST_DIM + nd, .dims = dims};
  u32 x[ROLES];
  enumerate(&g, x, 0, ndevices);
  connect(&g, cost_fn, arg);
  u32 n = g.n, nedges = g.edges.n, *begin = ZNEWN(scratch, u32, n + 2);
  edge *into = NEWN(scratch, edge, nedges);
  for (u32 e = 0; e < nedges; e++) begin[g.edges.v[e].to + 2]++;
  for (u32 i = 0; i < n; i++) begin[i + 2] += begin[i + 1];
  for (u32 e = 0; e < nedges; e++) into[begin[g.edges.v[e].to + 1]++] = g.edges.v[e];
  queue q = {.heap = NEWN(scratch, u32, n), .place = NEWN(scratch, u32, n), .best = NEWN(scratch, way, n)};
  double *cost = NEWN(a, double, (size_t)n *n);
  u32 *next = NEWN(a, u32, (size_t)n * n);
  for (u32 j = 0; j < n; j++) {
    paths_to(j, n, begin, into, &q);
    for (u32 i = 0; i < n; i++) {
      cost[(size_t)i * n + j] = q.best[i].cost;
      next[(size_t)i * n + j] = q.best[i].next;
    }
  }
  u32 *state = arena_dup(a, g.state.v, g.state.n * sizeof *state);
  arena_free(scratch);
  return (rvd_graph){.n = n, .nd = nd, .state = state, .cost = cost, .next = next};
}
