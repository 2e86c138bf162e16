// streams.c - one stream: when it had work, why not when it had none, and how far ahead the host was.
#include "diagnose/internal.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
  i64 at;
  bool begins;
} queue_edge;

// Launches first: what begins at the instant of its launch was there.
static int launches_first(const void *x, const void *y) {
  const queue_edge *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  return (int)a->begins - (int)b->begins;
}
static int begins_first(const void *x, const void *y) {
  const queue_edge *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  return (int)b->begins - (int)a->begins;
}
// Lengths of the queue after every edge.
static double lengths(const queue_edge *edges, u32 n, i64 *length) {
  i64 now = 0;
  double sum = 0;
  for (u32 k = 0; k < n; k++) length[k] = now += edges[k].begins ? -1 : 1, sum += (double)now;
  return sum / n;
}

static void queue(arena *tmp, const trace *t, u32 n, const u32 *mine, stream_times *s) {
  queue_edge *edges = NEWN(tmp, queue_edge, 2 * (size_t)n + 1);
  u32 m = 0;
  for (u32 k = 0; k < n; k++) {
    const u32 e = mine[k];
    if (t->cause[e] == TRACE_NONE) continue;
    edges[m++] = (queue_edge){t->start_ps[t->cause[e]], false};
    edges[m++] = (queue_edge){t->start_ps[e], true};
  }
  s->queue_n = m;
  if (!m) return;
  i64 *length = NEWN(tmp, i64, m);
  qsort(edges, m, sizeof *edges, begins_first);
  s->queue_mean_begin = lengths(edges, m, length);
  qsort(edges, m, sizeof *edges, launches_first);
  s->queue_mean = lengths(edges, m, length);
  double squares = 0;
  for (u32 k = 0; k < m; k++) {
    const double d = (double)length[k] - s->queue_mean;
    squares += d * d;
  }
  s->queue_std = sqrt(squares / (m - 1));
  qsort(length, m, sizeof *length, ascending_i64);
  s->queue_median = (double)(length[(m - 1) / 2] + length[m / 2]) / 2;
  s->queue_max = (u32)MAX(length[m - 1], 0);
}

typedef struct {
  i64 start_ps;
  u32 event;
} begin;
static int by_start(const void *x, const void *y) {
  const begin *a = x, *b = y;
  if (a->start_ps != b->start_ps) return a->start_ps < b->start_ps ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}

stream_times stream_times_of(arena *tmp, const trace *t, u32 lane, u32 n, const u32 *event) {
  stream_times s = {0};
  begin *order = NEWN(tmp, begin, n + 1);
  u32 *mine = NEWN(tmp, u32, n + 1), m = 0;
  for (u32 k = 0; k < n; k++) {
    const u32 e = event[k];
    if (t->lane[e] != lane || !(TRACE_ON_DEVICE >> t->is[e] & 1) || t->dur_ps[e] < 0) continue;
    order[m] = (begin){t->start_ps[e], e}, mine[m++] = e;
  }
  s.events = m;
  if (m) qsort(order, m, sizeof *order, by_start);
  i64 end = m ? order[0].start_ps : 0;
  for (u32 k = 0; k < m; k++) {
    const u32 e = order[k].event;
    const i64 start = t->start_ps[e], stop = start + t->dur_ps[e];
    if (start > end) s.idle_ps[idle_reason(t, e, end)] += start - end;
    if (stop > end) s.busy_ps += stop - MAX(start, end), end = stop;
  }
  queue(tmp, t, m, mine, &s);
  return s;
}
