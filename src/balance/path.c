// path.c - the stages of a plan, found again from the tables: what was the least is looked for, in a fixed
// order.
#include "balance/internal.h"

static u32 used_of(const line *l, u32 state, u32 kind) {
  return state / l->stride[kind] % (l->count[kind] + 1);
}
static u32 depth_of(const line *l, u32 state) {
  u32 depth = 0;
  for (u32 k = 0; k < l->K; k++) depth += used_of(l, state, k);
  return depth;
}
static i64 time_of(const line *l, u32 kind, u32 start, u32 end) {
  return l->time[kind * (l->L + 1) + end] - l->time[kind * (l->L + 1) + start];
}
static i64 send_of(const line *l, u32 from, u32 to, u32 cut) {
  return l->send ? l->send[(from * l->K + to) * (l->L + 1) + cut] : 0;
}

// ---- by sums ------------------------------------------------------------------------------------------
// Of a state whose first stage begins at a cut and, where there are sends, is on a kind.
static i64 sum_of(const sums *s, u32 state, u32 cut, u32 kind) {
  const sums_row *r = &s->row[state];
  if (!r->sum || cut < r->lo || cut > r->hi) return NEVER;
  u32 n = r->hi + 1 - r->lo;
  return r->sum[(s->l->send && state ? kind * n : 0) + cut - r->lo];
}

typedef struct {
  u32 state, cut, kind; // of the first stage
} point;

// Is this where the plan goes on behind a stage, so that it has this sum?
static bool goes_on(const sums *s, const point *at, u32 end, i64 sum, point *next) {
  const line *l = s->l;
  u32 behind = at->state - l->stride[at->kind];
  i64 rest = sum - time_of(l, at->kind, at->cut, end);
  *next = (point){behind, end, 0};
  if (!behind) return sum_of(s, 0, end, 0) == rest;
  for (u32 k = 0; k < l->K; k++) {
    if (!used_of(l, behind, k)) continue;
    i64 send = send_of(l, at->kind, k, end);
    next->kind = k;
    if (send <= l->tau && sum_of(s, behind, end, k) == rest - send) return true;
  }
  return false;
}

// The end of the stage at a point, 0: no stage on its kind has this sum.
static u32 end_of(const sums *s, const point *at, i64 sum, point *next) {
  const line *l = s->l;
  if (!used_of(l, at->state, at->kind) || sum_of(s, at->state, at->cut, at->kind) != sum) return 0;
  u32 last = l->end[row_at(l, depth_of(l, at->state), at->kind) + at->cut];
  for (u32 e = at->cut + 1; e <= last; e++)
    if (goes_on(s, at, e, sum, next)) return e;
  return 0;
}

u32 path_of_sums(const sums *s, u32 *kind, u32 *end) {
  const line *l = s->l;
  u32 n = 0;
  i64 sum = s->least;
  for (point at = {s->state, 0, 0}, next; at.state; at = next, n++) {
    if (!l->send) at.kind = 0; // else the sum is that of its kind
    while (!(end[n] = end_of(s, &at, sum, &next))) at.kind++;
    kind[n] = at.kind;
    sum -= time_of(l, at.kind, at.cut, end[n]);
    if (next.state) sum -= send_of(l, at.kind, next.kind, end[n]);
  }
  return n;
}

// ---- by reach -----------------------------------------------------------------------------------------
u32 path_of_reach(const line *l, u32 *kind, u32 *end) {
  u32 state = 0, least = UINT32_MAX, n = 0;
  for (u32 s = 0; s < l->nstates; s++)
    if (l->reach[s] == 0 && depth_of(l, s) < least) state = s, least = depth_of(l, s);
  for (; state; n++) {
    const u16 *start = l->start + row_at(l, depth_of(l, state), 0);
    u32 k = 0;
    while (!used_of(l, state, k) || start[k * (l->L + 1) + l->reach[state - l->stride[k]]] != l->reach[state])
      k++;
    state -= l->stride[k];
    kind[n] = k, end[n] = l->reach[state];
  }
  return n;
}

// ---- figures ------------------------------------------------------------------------------------------
i64 path_bottleneck(const line *l, u32 n, const u32 *kind, const u32 *end) {
  i64 most = 0;
  for (u32 i = 0, start = 0; i < n; start = end[i++]) {
    most = MAX(most, time_of(l, kind[i], start, end[i]));
    if (i + 1 < n) most = MAX(most, send_of(l, kind[i], kind[i + 1], end[i]));
  }
  return most;
}
i64 path_sum(const line *l, u32 n, const u32 *kind, const u32 *end) {
  i64 sum = 0;
  for (u32 i = 0, start = 0; i < n; start = end[i++])
    sum += time_of(l, kind[i], start, end[i]) + (i + 1 < n ? send_of(l, kind[i], kind[i + 1], end[i]) : 0);
  return sum;
}
