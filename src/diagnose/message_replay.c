// message_replay.c - a job recorded as operators and messages again, from durations and what waits for what (dPRO, MLSys
// 2022, 4.3): a queue for every thread and every link (sim/queue.c). Not the graph (message_graph.c).
//
// Idea: of recorded times only durations count, and one figure for each class of gaps. A gap is a node without a resource on
// the edge that it belongs to; what waits for nothing starts when it was recorded to.
#include "diagnose/internal.h"
#include "sim/sim.h"
#include <stdlib.h>

static message_wait wait_of(const message_node *on, const message_node *x) {
  if (x->is == MESSAGE_SENT) return on->is == MESSAGE_SENT ? WAIT_LINK : WAIT_TO_LINK;
  if (on->is == MESSAGE_SENT) return WAIT_FROM_LINK;
  return on->step == x->step ? WAIT_OPERATORS : WAIT_STEP;
}

static i64 begin_of(const message_node *x) { return x->end_ps - x->dur_ps; }

static int by_start(const void *x, const void *y) {
  const message_node *a = *(const message_node *const *)x, *b = *(const message_node *const *)y;
  if (a->res != b->res) return a->res < b->res ? -1 : 1;
  if (begin_of(a) != begin_of(b)) return begin_of(a) < begin_of(b) ? -1 : 1;
  return a < b ? -1 : a > b;
}

// From the end of the last that a node waits for to its begin, where its resource was free by then.
static void measure(const message_graph *g, arena *tmp, i64 out[WAIT_KINDS]) {
  const message_node **last = ZNEWN(tmp, const message_node *, g->n + 1),
                     **v = NEWN(tmp, const message_node *, g->n + 1);
  figures f[WAIT_KINDS] = {{0}};
  for (u32 k = 0; k < g->nedges; k++) {
    const message_node *on = &g->node[g->edge[k].after], **to = &last[g->edge[k].node];
    if (!*to || on->end_ps > (*to)->end_ps) *to = on;
  }
  for (u32 k = 0; k < g->n; k++) v[k] = &g->node[k];
  if (g->n) qsort(v, g->n, sizeof *v, by_start);
  for (u32 k = 0; k < g->n; k++) {
    const message_node *on = last[v[k] - g->node];
    const bool free = on && (!k || v[k - 1]->res != v[k]->res || v[k - 1]->end_ps <= on->end_ps);
    if (free) *vec_push(tmp, &f[wait_of(on, v[k])]) = MAX(0, begin_of(v[k]) - on->end_ps);
  }
  for (u32 k = 0; k < WAIT_KINDS; k++) out[k] = figures_median(&f[k]);
}

// Nodes of the graph, then a gap for every edge, then a begin for every node that waits for nothing.
typedef struct {
  sim_queue q;
  i64 *dur;
  u32 *res, *first, *next;
} queued;

static void link_up(arena *tmp, queued *x, const message_edge *v, u32 n) {
  x->first = ZNEWN(tmp, u32, x->q.n + 2), x->next = NEWN(tmp, u32, n + 1);
  for (u32 k = 0; k < n; k++) x->first[v[k].after + 2]++;
  for (u32 k = 2; k < x->q.n + 2; k++) x->first[k] += x->first[k - 1];
  for (u32 k = 0; k < n; k++) x->next[x->first[v[k].after + 1]++] = v[k].node;
}

static queued make(const message_graph *g, arena *tmp, i64 zero, const i64 wait[WAIT_KINDS]) {
  queued x = {.q = {.nres = g->nres}};
  VEC(message_edge) edge = {0};
  bool *waits = ZNEWN(tmp, bool, g->n + 1);
  const u32 most = 2 * g->n + g->nedges;
  x.dur = NEWN(tmp, i64, most + 1), x.res = NEWN(tmp, u32, most + 1);
  for (u32 k = 0; k < g->n; k++) x.dur[k] = g->node[k].dur_ps, x.res[k] = g->node[k].res;
  u32 n = g->n;
  for (u32 k = 0; k < g->nedges; k++) {
    const message_edge *e = &g->edge[k];
    waits[e->node] = true;
    x.dur[n] = wait[wait_of(&g->node[e->after], &g->node[e->node])], x.res[n] = TRACE_NONE;
    *vec_push(tmp, &edge) = (message_edge){e->after, n}, *vec_push(tmp, &edge) = (message_edge){n, e->node};
    n++;
  }
  for (u32 k = 0; k < g->n; k++) {
    if (waits[k]) continue;
    x.dur[n] = begin_of(&g->node[k]) - zero, x.res[n] = TRACE_NONE;
    *vec_push(tmp, &edge) = (message_edge){n++, k};
  }
  x.q.n = n;
  link_up(tmp, &x, edge.v, edge.n);
  x.q.dur = x.dur, x.q.res = x.res, x.q.first = x.first, x.q.next = x.next;
  return x;
}

static void put_path(const message_graph *g, const queued *x, const i64 *start, const u32 *cause,
                     message_resource *res, message_replay *out) {
  u32 k = 0;
  for (u32 i = 1; i < g->n; i++)
    if (start[i] + x->dur[i] > start[k] + x->dur[k]) k = i;
  for (; k != TRACE_NONE; k = cause[k]) {
    if (k >= g->n + g->nedges)
      out->path_begin_ps += x->dur[k];
    else if (k >= g->n)
      out->path_latency_ps += x->dur[k];
    else
      *(g->node[k].is == MESSAGE_SENT ? &out->path_messages_ps : &out->path_operators_ps) += x->dur[k],
          res[g->node[k].res].path_ps += x->dur[k];
  }
}

bool message_replay_of(const message_graph *g, arena *a, message_replay *out) {
  *out = (message_replay){.nres = g->nres};
  arena *tmp = arena_new();
  i64 zero = INT64_MAX, *end = NEWN(tmp, i64, g->n + 1), *was = NEWN(tmp, i64, g->n + 1);
  for (u32 k = 0; k < g->n; k++) zero = MIN(zero, begin_of(&g->node[k]));
  measure(g, tmp, out->wait_ps);
  const queued x = make(g, tmp, zero, out->wait_ps);
  i64 *start = NEWN(tmp, i64, x.q.n + 1);
  u32 *cause = NEWN(tmp, u32, x.q.n + 1);
  message_resource *res = ZNEWN(a, message_resource, g->nres + 1);
  out->replayed_ps = sim_queue_run(tmp, &x.q, start, cause);
  if (out->replayed_ps < 0) {
    diag(g->j->c, E_TRACE, loc_text(g->j->c, sym_of(g->j->c, g->j->file[0].path), 0, 0, NULL),
         "its operators and messages wait for each other in a circle: recorded clocks differ too much");
    diag_hint(g->j->c, "`heddle trace align` says how far clocks are apart");
    arena_free(tmp);
    return false;
  }
  for (u32 k = 0; k < g->n; k++) {
    message_resource *r = &res[g->node[k].res];
    r->count++, r->busy_ps += g->node[k].dur_ps;
    end[k] = start[k] + x.dur[k], was[k] = g->node[k].end_ps - zero;
  }
  for (u32 k = 0; k < g->nres; k++) res[k].place = g->link_from[k], res[k].to = g->link_to[k];
  out->error = replay_errors_between(tmp, g->n, end, was);
  put_path(g, &x, start, cause, res, out);
  out->res = res;
  arena_free(tmp);
  return true;
}
