// sums.c - the least sum of stages and sends under a bottleneck.
//
// Idea: sum[state][s] is the least sum of stages on the devices of a state for the layers from cut s on. The
// first of these stages is on some kind k and ends at some cut e, behind which the state without it begins:
//
//   sum[state][s] = min over k, e of sum[state - k][e] + time_k[s, e),  s < e <= end_k(s),
//
// where end_k(s) grows with s, so that for one k all s together take one pass with a queue of the e that can
// still be the least. Where there are sends, sum is kept for every kind of the first stage: the send to it
// depends on it.
//
// A cut is left out if the state does not reach it, if the others do not reach it from the first layer on, or
// if its sum and what the layers before it take at least are more than the sum of a plan that is known.
#include "balance/internal.h"

typedef struct {
  line *l;
  sums *out;
  arena *a;
  i64 most;
  u32 *used, depth, state; // the one at hand
  u32 lo, hi, n;           // its cuts
  i64 *sum;                // [kind * n + cut - lo]: theirs
  i64 *prices, *rest;      // what the layers before a cut take at least, by cut
  i64 *from;               // by cut: the least sum behind a stage that ends there, and its time up to there
  u16 *queue;
} pass;

static u32 kinds_of(const line *l, u32 state) { return l->send && state ? l->K : 1; }

// The cuts that the state at hand may reach. False: none.
static bool find_cuts(pass *p) {
  const line *l = p->l;
  if (p->depth > l->most) return false;
  p->lo = l->reach[p->state], p->hi = MIN(l->front[p->state], l->L - p->depth);
  if (l->in->stages) p->lo = MAX(p->lo, l->most - p->depth);
  p->n = p->hi + 1 - p->lo;
  return p->lo <= p->hi;
}

// from[e], first to last: where the stage is on kind k, in front of a state.
static void gather(pass *p, u32 k, u32 behind, u32 first, u32 last) {
  const line *l = p->l;
  const sums_row *r = &p->out->row[behind];
  const i64 *sum = r->sum, *time = l->time + k * (l->L + 1);
  if (!l->send || !behind) {
    for (u32 e = first; e <= last; e++) p->from[e] = sum[e - r->lo] + time[e];
    return;
  }
  for (u32 e = first; e <= last; e++) p->from[e] = NEVER;
  for (u32 to = 0; to < l->K; to++, sum += r->hi + 1 - r->lo) {
    const i64 *send = l->send + (k * l->K + to) * (l->L + 1);
    for (u32 e = first; e <= last; e++) {
      i64 x = send[e] <= l->tau ? sum[e - r->lo] + send[e] : NEVER;
      p->from[e] = MIN(p->from[e], x);
    }
  }
  for (u32 e = first; e <= last; e++) p->from[e] += time[e];
}

// A stage on kind k in front of a state, for all cuts at hand.
static void extend(pass *p, u32 k, u32 behind) {
  const line *l = p->l;
  const u16 *end = l->end + row_at(l, p->depth, k);
  const i64 *time = l->time + k * (l->L + 1), *from = p->from;
  i64 *sum = p->sum + (l->send ? k * p->n : 0);
  u16 *queue = p->queue; // ends that may be the least for a cut yet to come: from[] rises
  u32 head = 0, tail = 0, next = MAX(p->lo + 1, p->out->row[behind].lo);
  u32 most = MIN(end[p->hi], p->out->row[behind].hi);
  if (next > most) return;
  gather(p, k, behind, next, most);
  for (u32 s = p->lo; s <= p->hi; s++) {
    for (u32 last = MIN(end[s], most); next <= last; next++) {
      while (tail > head && from[queue[tail - 1]] >= from[next]) tail--;
      queue[tail++] = (u16)next;
    }
    while (head < tail && queue[head] <= s) head++;
    if (head == tail) continue;
    i64 x = from[queue[head]] - time[s];
    if (x < sum[s - p->lo]) sum[s - p->lo] = x;
  }
}

static bool any_behind(const pass *p) {
  for (u32 k = 0; k < p->l->K; k++)
    if (p->used[k] && p->out->row[p->state - p->l->stride[k]].sum) return true;
  return false;
}

// Keeps what can still be part of a plan.
static void keep(pass *p) {
  u32 first = p->hi + 1, last = 0, kinds = kinds_of(p->l, p->state);
  line_rest(p->l, p->prices, p->used, p->depth, p->lo, p->hi, p->rest);
  for (u32 k = 0; k < kinds; k++)
    for (u32 s = p->lo; s <= p->hi; s++) {
      i64 *x = &p->sum[k * p->n + s - p->lo];
      if (*x + p->rest[s] > p->most)
        *x = NEVER;
      else
        first = MIN(first, s), last = MAX(last, s);
    }
  if (first > last) return;
  u32 n = last + 1 - first;
  p->out->cells += (u64)n * kinds;
  if (p->out->cells > CELLS_MAX) return;
  i64 *sum = NEWN(p->a, i64, n * kinds);
  for (u32 k = 0; k < kinds; k++) memcpy(sum + k * n, p->sum + k * p->n + first - p->lo, n * sizeof *sum);
  p->out->row[p->state] = (sums_row){sum, (u16)first, (u16)last};
}

// A plan, if the state at hand reaches the first layer.
static void consider(pass *p, u32 *depth) {
  const line *l = p->l;
  sums *out = p->out;
  if (out->row[p->state].lo > 0 || (l->in->stages && p->depth != l->most)) return;
  for (u32 k = 0; k < kinds_of(l, p->state); k++) {
    i64 x = out->row[p->state].sum[k * (out->row[p->state].hi + 1)];
    if (x < out->least || (x < NEVER && x == out->least && p->depth < *depth))
      out->least = x, out->state = p->state, *depth = p->depth;
  }
}

void line_sums(line *l, arena *a, i64 tau, i64 most, sums *out) {
  if (l->tau != tau) line_limit(l, tau);
  line_reach(l);
  line_front(l);
  *out = (sums){.l = l, .row = NEWN(a, sums_row, l->nstates), .least = NEVER};
  pass p = {.l = l,
            .out = out,
            .a = a,
            .most = MIN(most, NEVER - 1),
            .used = ZNEWN(a, u32, l->K),
            .sum = NEWN(a, i64, l->K * (l->L + 1)),
            .prices = line_prices(l, a),
            .rest = NEWN(a, i64, l->L + 1),
            .from = NEWN(a, i64, l->L + 1),
            .queue = NEWN(a, u16, l->L + 1)};
  u32 depth = 0;
  out->row[0] = (sums_row){arena_zalloc(a, sizeof(i64)), (u16)l->L, (u16)l->L};
  for (u32 s = 1; next_state(l, p.used, &p.depth); s++) {
    out->row[s] = (sums_row){NULL, 1, 0};
    p.state = s;
    if (!find_cuts(&p) || !any_behind(&p)) continue;
    for (u32 i = 0; i < p.n * kinds_of(l, s); i++) p.sum[i] = NEVER;
    for (u32 k = 0; k < l->K; k++)
      if (p.used[k] && out->row[s - l->stride[k]].sum) extend(&p, k, s - l->stride[k]);
    keep(&p);
    if (out->cells > CELLS_MAX) break;
    if (out->row[s].sum) consider(&p, &depth);
  }
  if (out->cells > CELLS_MAX) out->least = NEVER;
}
