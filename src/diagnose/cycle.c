// cycle.c - the largest common slack of difference constraints, exact: the cycle of least mean weight.
//
// The weight of an arc is what the least message between two clocks takes. Moving a clock makes what it receives take
// longer and what it sends shorter, so the weights of a cycle add up to the same whatever the offsets are. No common
// slack is larger than the least mean of a cycle, and that one can be had: shortest paths give the offsets.
//
// Found by improvement: subtract the best mean so far from every arc; a negative cycle has a lesser mean; when there is
// none, the mean is the least. All in integers: weights are multiplied by the length of the cycle instead.
#include "diagnose/align.h"

typedef struct {
  u32 nnodes, narcs;
  const arc *v;
  i64 *dist;
  u32 *by, *mark; // arc by which a node was reached; walk in which it was seen
  u32 *found, length;
  i64 sum;
} search;

// A cycle among the arcs by which nodes were reached last.
static bool cycle_of_tree(search *s) {
  memset(s->mark, 0, s->nnodes * sizeof *s->mark);
  for (u32 k = 0; k < s->nnodes; k++) {
    u32 at = k;
    while (!s->mark[at] && s->by[at] != TRACE_NONE) s->mark[at] = k + 1, at = s->v[s->by[at]].from;
    if (s->mark[at] != k + 1) {
      s->mark[at] = s->mark[at] ? s->mark[at] : k + 1;
      continue;
    }
    u32 n = 0;
    i64 sum = 0;
    const u32 end = at;
    do {
      s->found[n++] = s->by[at];
      sum += s->v[s->by[at]].weight;
      at = s->v[s->by[at]].from;
    } while (at != end);
    for (u32 i = 0; i < n / 2; i++) {
      const u32 t = s->found[i];
      s->found[i] = s->found[n - 1 - i], s->found[n - 1 - i] = t;
    }
    s->length = n, s->sum = sum;
    return true;
  }
  return false;
}

// Shortest paths with weights length * weight - sum, from everywhere. True: a negative cycle was found instead.
static bool lesser(search *s, i64 sum, i64 length) {
  for (u32 k = 0; k < s->nnodes; k++) s->dist[k] = 0, s->by[k] = TRACE_NONE;
  for (u32 round = 0; round <= s->nnodes; round++) {
    bool changed = false;
    for (u32 k = 0; k < s->narcs; k++) {
      const arc *e = &s->v[k];
      const i64 d = s->dist[e->from] + length * e->weight - sum;
      if (d < s->dist[e->to]) s->dist[e->to] = d, s->by[e->to] = k, changed = true;
    }
    if (!changed) return false;
    if (cycle_of_tree(s)) return true;
  }
  return false;
}

bool cycle_least_mean(arena *a, u32 nnodes, u32 narcs, const arc *v, u32 **cycle, u32 *length, i64 *sum,
                      i64 *potential) {
  search s = {.nnodes = nnodes, .narcs = narcs, .v = v};
  s.dist = NEWN(a, i64, nnodes + 1), s.by = NEWN(a, u32, nnodes + 1), s.mark = NEWN(a, u32, nnodes + 1);
  s.found = NEWN(a, u32, nnodes + 1);
  i64 most = 0;
  for (u32 k = 0; k < narcs; k++) most = MAX(most, v[k].weight);
  bool any = false;
  *sum = most + 1, *length = 1; // more than any mean: the first cycle that there is
  while (lesser(&s, *sum, *length)) {
    any = true;
    *sum = s.sum, *length = s.length;
    *cycle = arena_dup(a, s.found, s.length * sizeof *s.found);
  }
  for (u32 k = 0; potential && k < nnodes; k++) potential[k] = any ? s.dist[k] / *length : 0;
  return any;
}

void paths_from(u32 nnodes, u32 narcs, const arc *v, u32 from, bool backwards, i64 *dist) {
  for (u32 k = 0; k < nnodes; k++) dist[k] = INT64_MAX;
  dist[from] = 0;
  bool changed = true;
  for (u32 round = 0; changed && round <= nnodes; round++) {
    changed = false;
    for (u32 k = 0; k < narcs; k++) {
      const u32 x = backwards ? v[k].to : v[k].from, y = backwards ? v[k].from : v[k].to;
      if (dist[x] == INT64_MAX || dist[x] + v[k].weight >= dist[y]) continue;
      dist[y] = dist[x] + v[k].weight, changed = true;
    }
  }
}
