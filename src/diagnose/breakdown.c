// breakdown.c - where the time of a device goes: computing, communication that nothing hides, copies, and idle time
// by its reason. Not one stream (streams.c), not who was late (which takes several ranks).
//
// Idea: starts and ends of all events in order of time; between two neighbours nothing changes, so what runs there
// says what the time is. The definitions are those of HolisticTraceAnalysis (docs/diagnosis.md), so that its users find
// their figures.
#include "diagnose/internal.h"
#include <stdlib.h>

comm_kind comm_kind_of(ctx *c, const trace *t, u32 event) {
  if (t->comm[event] == TRACE_NONE) return COMM_OTHER;
  return comm_kind_named(sym_str(c, t->comms.v[t->comm[event]].op));
}

enum { COMPUTE, COPY, COMM }; // classes: COMM + kind
typedef struct {
  i64 at;
  u32 event, class;
  bool begins;
} edge;

static int by_time(const void *x, const void *y) {
  const edge *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  if (a->begins != b->begins) return a->begins ? -1 : 1; // what ends where another begins leaves no gap
  return a->event < b->event ? -1 : a->event > b->event;
}

idle_kind idle_reason(const trace *t, u32 event, i64 since_ps) {
  const u32 cause = t->cause[event];
  if (cause != TRACE_NONE && t->start_ps[cause] > since_ps) return IDLE_HOST;
  return t->start_ps[event] - since_ps < (i64)30 * 1000000 ? IDLE_KERNEL : IDLE_OTHER;
}

static u32 class_of(ctx *c, const trace *t, u32 e) {
  if (t->is[e] != TRACE_KERNEL) return COPY;
  return t->flags[e] & TRACE_COMM ? COMM + comm_kind_of(c, t, e) : COMPUTE;
}

static void account(breakdown *b, const u32 *running, u32 comms, i64 ps) {
  if (comms) b->comm_ps += ps;
  if (running[COMPUTE]) {
    b->compute_ps += ps;
    if (comms) b->overlap_ps += ps;
  } else if (comms) {
    u32 k = 0;
    while (!running[COMM + k]) k++;
    b->exposed_ps[k] += ps;
  } else {
    b->copy_ps += ps;
  }
}

breakdown breakdown_of(ctx *c, arena *tmp, const trace *t, u32 n, const u32 *event) {
  breakdown b = {0};
  edge *edges = NEWN(tmp, edge, 2 * (size_t)n + 1);
  u32 m = 0, running[COMM + COMM_KINDS] = {0}, all = 0, comms = 0;
  for (u32 k = 0; k < n; k++) {
    const u32 e = event[k];
    if (!(TRACE_ON_DEVICE >> t->is[e] & 1) || t->dur_ps[e] < 0) continue;
    const u32 class = class_of(c, t, e);
    edges[m++] = (edge){t->start_ps[e], e, class, true};
    edges[m++] = (edge){t->start_ps[e] + t->dur_ps[e], e, class, false};
    b.events++;
  }
  if (!m) return b;
  qsort(edges, m, sizeof *edges, by_time);
  b.span_ps = edges[m - 1].at - edges[0].at;
  for (u32 k = 0; k < m; k++) {
    const edge *x = &edges[k];
    const i64 since = k ? edges[k - 1].at : x->at, ps = x->at - since;
    if (ps && all)
      account(&b, running, comms, ps);
    else if (ps)
      b.idle_ps[idle_reason(t, x->event, since)] += ps;
    const u32 by = x->begins ? 1 : ~(u32)0;
    running[x->class] += by, all += by;
    if (x->class >= COMM) comms += by;
  }
  return b;
}

static void add(breakdown *to, const breakdown *b) {
  to->events += b->events, to->span_ps += b->span_ps, to->compute_ps += b->compute_ps;
  to->comm_ps += b->comm_ps, to->overlap_ps += b->overlap_ps, to->copy_ps += b->copy_ps;
  for (u32 k = 0; k < COMM_KINDS; k++) to->exposed_ps[k] += b->exposed_ps[k];
  for (u32 k = 0; k < IDLE_KINDS; k++) to->idle_ps[k] += b->idle_ps[k];
}

breakdown breakdown_of_steps(ctx *c, arena *tmp, const trace *t, const job_steps *s, const bool *chosen,
                             u32 n, const u32 *event) {
  breakdown sum = {0};
  u32 *some = NEWN(tmp, u32, n + 1);
  if (!s->n) return breakdown_of(c, tmp, t, n, event);
  for (u32 from = 0, to; from < s->n; from = to) {
    u32 m = 0;
    for (to = from + 1; to < s->n && chosen[from] == chosen[to];) to++;
    for (u32 k = 0; chosen[from] && k < n; k++)
      if (s->of[event[k]] >= from && s->of[event[k]] < to) some[m++] = event[k];
    const breakdown b = breakdown_of(c, tmp, t, m, some);
    add(&sum, &b);
  }
  return sum;
}
