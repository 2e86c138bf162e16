// kineto_wait.c - what waits for what on a device, from the synchronisation events of Kineto (cuda_sync, since 2023): a
// stream or the host waits for an event that was recorded on a stream. Not what waits for all of a stream or a device,
// which the lane of the WAIT says.
//
// Idea: an event stands for all that its stream had been given when it was recorded, and streams run in order, so it
// stands for the last of that. Files of some versions do not say which call recorded it: it was recorded before the wait.
#include "trace/kineto.h"
#include <stdlib.h>

typedef struct {
  u32 lane, event;
  i64 launched_ps;
} given;
static int by_launch(const void *x, const void *y) {
  const given *a = x, *b = y;
  if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
  if (a->launched_ps != b->launched_ps) return a->launched_ps < b->launched_ps ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}

// The last that the lane was given before that time; TRACE_NONE: nothing.
static u32 last_given(const given *v, u32 n, u32 lane, i64 ps) {
  u32 lo = 0, hi = n;
  while (lo < hi) {
    const u32 mid = lo + (hi - lo) / 2;
    if (v[mid].lane < lane || (v[mid].lane == lane && v[mid].launched_ps < ps))
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo && v[lo - 1].lane == lane ? v[lo - 1].event : TRACE_NONE;
}

// When what the wait is for was recorded; INT64_MIN: not known, or before what was read.
static i64 recorded_ps(const kineto *k, const hmap *calls, const kineto_wait *w) {
  const trace *t = k->x->t;
  const kineto_call *c = kineto_call_of(k, calls, w->record);
  if (w->record != ABSENT && w->record >= 0)
    return c && c->event != TRACE_NONE ? t->start_ps[c->event] : INT64_MIN;
  return t->cause[w->event] != TRACE_NONE ? t->start_ps[t->cause[w->event]] : INT64_MIN;
}

static u32 lane_of(const kineto *k, i64 device, i64 stream) {
  const trace *t = k->x->t;
  for (u32 l = 0; l < t->lanes.n; l++) {
    const trace_lane *x = &t->lanes.v[l];
    if (x->process == k->process && x->device && x->of == device && x->id == stream) return l;
  }
  return TRACE_NONE;
}

void kineto_link_waits(kineto *k) {
  trace *t = k->x->t;
  if (!k->waits.n) return;
  const hmap calls = kineto_calls_by_id(k);
  given *v = NEWN(k->tmp, given, k->work.n + 1);
  u32 n = 0;
  for (u32 i = 0; i < k->work.n; i++) {
    const u32 e = k->work.v[i].event;
    if (!(TRACE_ON_DEVICE >> t->is[e] & 1) || t->cause[e] == TRACE_NONE) continue;
    v[n++] = (given){t->lane[e], e, t->start_ps[t->cause[e]]};
  }
  if (n) qsort(v, n, sizeof *v, by_launch);
  for (u32 i = 0; i < k->waits.n; i++) {
    const kineto_wait *w = &k->waits.v[i];
    if (w->event == TRACE_NONE) continue;
    const i64 ps = recorded_ps(k, &calls, w);
    const u32 lane = lane_of(k, t->lanes.v[t->lane[w->event]].of, w->stream);
    const u32 after = ps == INT64_MIN || lane == TRACE_NONE ? TRACE_NONE : last_given(v, n, lane, ps);
    if (after != TRACE_NONE) *vec_push(k->x->a, &t->edges) = (trace_edge){w->event, after, false};
  }
}
