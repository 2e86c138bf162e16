// straggler_rerun.c - replays of a step in which few operations take another time than in one that was replayed before.
//
// Idea: nodes come in an order in which none waits for a later one. So the nodes whose time may change are kept as bits
// and taken in that order; what a node writes matters only if it differs, and only then those that wait for it are
// looked at. A worker that is late moves its own data rank and the end of the step: of a large job that is little.
#include "diagnose/straggler_making.h"
#include "sim/sim.h"

struct straggler_rerun {
  const straggler *s;
  const straggler_next *next;
  i64 *x, *dur; // times by slot, durations by node, as in the last base
  u64 *look;    // a bit for every node
  u32 nundo;
  u32 *undo_node;
  i64 *undo_x;
};

const straggler_next *straggler_next_of(arena *a, const straggler *s) {
  const sim_graph *g = s->graph;
  straggler_next *y = NEW(a, straggler_next);
  u32 *at = ZNEWN(a, u32, (size_t)s->n + 3), *to;
  for (u32 k = 0; k < s->n; k++)
    for (u32 i = g->occ[k]; i < g->out[k]; i++) at[g->ref[i] + 1]++; // slot k + 1 is of node k
  for (u32 k = 0; k <= s->n; k++) at[k + 1] += at[k];
  at[s->n + 2] = at[s->n + 1];
  to = NEWN(a, u32, at[s->n + 2] + 1);
  for (u32 k = s->n; k-- > 0;)
    for (u32 i = g->occ[k]; i < g->out[k]; i++) to[--at[g->ref[i] + 1]] = k;
  y->at = at + 1, y->to = to; // those of slot k begin at at[k + 1] now
  return y;
}

straggler_rerun *straggler_rerun_new(arena *a, const straggler *s, const straggler_next *next) {
  straggler_rerun *r = NEW(a, straggler_rerun);
  *r = (straggler_rerun){.s = s,
                         .next = next,
                         .x = NEWN(a, i64, s->graph->nslot),
                         .dur = NEWN(a, i64, s->n),
                         .look = ZNEWN(a, u64, s->n / 64 + 1),
                         .undo_node = NEWN(a, u32, s->n),
                         .undo_x = NEWN(a, i64, s->n)};
  return r;
}

void straggler_rerun_base(straggler_rerun *r, const i64 *dur_ps) {
  sim_graph g = *r->s->graph;
  memcpy(r->dur, dur_ps, r->s->n * sizeof *r->dur);
  g.dur = r->dur;
  sim_flat(&g, r->x, NULL);
}

static void look_at(straggler_rerun *r, u32 node) { r->look[node / 64] |= (u64)1 << node % 64; }

static u32 lowest(u64 bits) {
#if defined(__GNUC__)
  return (u32)__builtin_ctzll(bits);
#else
  u32 k = 0;
  while (!(bits >> k & 1)) k++;
  return k;
#endif
}

static void settle(straggler_rerun *r, u32 from) {
  const sim_graph *g = r->s->graph;
  const u32 words = r->s->n / 64 + 1;
  for (u32 w = from / 64; w < words; w++)
    while (r->look[w]) {
      const u32 k = w * 64 + lowest(r->look[w]);
      r->look[w] &= r->look[w] - 1;
      i64 t = 0;
      for (u32 i = g->occ[k]; i < g->out[k]; i++) t = MAX(t, r->x[g->ref[i]]);
      t += r->dur[k];
      if (t == r->x[k + 1]) continue;
      r->undo_node[r->nundo] = k, r->undo_x[r->nundo++] = r->x[k + 1];
      r->x[k + 1] = t;
      for (u32 i = r->next->at[k + 1]; i < r->next->at[k + 2]; i++) look_at(r, r->next->to[i]);
    }
}

i64 straggler_rerun_with(straggler_rerun *r, const u32 *node, u32 n, const i64 *dur_ps, const i64 *base_ps) {
  u32 first = r->s->n;
  for (u32 k = 0; k < n; k++) {
    if (r->dur[node[k]] == dur_ps[node[k]]) continue;
    r->dur[node[k]] = dur_ps[node[k]];
    look_at(r, node[k]);
    first = MIN(first, node[k]);
  }
  r->nundo = 0;
  settle(r, first);
  const i64 end = r->x[r->s->n];
  for (u32 k = 0; k < n; k++) r->dur[node[k]] = base_ps[node[k]];
  for (u32 k = 0; k < r->nundo; k++) r->x[r->undo_node[k] + 1] = r->undo_x[k];
  return end;
}
