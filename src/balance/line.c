// line.c - layers, devices and what fits: the tables from which stages are chosen.
#include "balance/internal.h"

static i64 *prefix(arena *a, const i64 *v, u32 n) { // NULL: of zeros
  i64 *sum = ZNEWN(a, i64, n + 1);
  for (u32 i = 0; v && i < n; i++) sum[i + 1] = add_sat(sum[i], v[i]);
  return sum;
}

// For every end, the first cut from which the layers up to it need no more than `most`; for every start, the
// last cut. need[s, e) = (a[e] - a[s]) + times (b[e] - b[s]).
static void windows(const i64 *a, const i64 *b, i64 times, i64 most, u32 L, u16 *start, u16 *end) {
  for (u32 e = 0, s = 0; e <= L; e++) {
    while (s < e && add_sat(a[e] - a[s], mul_sat(times, b[e] - b[s])) > most) end[s++] = (u16)(e - 1);
    start[e] = (u16)s;
    if (e < L) continue;
    for (; s <= L; s++) end[s] = (u16)L;
  }
}

static void find_fits(line *l) {
  const balance_line *in = l->in;
  i64 *fixed = prefix(l->tmp, in->fixed_bytes, l->L), *kept = prefix(l->tmp, in->kept_bytes, l->L);
  size_t n = (size_t)l->nkept * l->K * (l->L + 1);
  l->fit_start = NEWN(l->tmp, u16, n), l->fit_end = NEWN(l->tmp, u16, n);
  l->start = NEWN(l->tmp, u16, n), l->end = NEWN(l->tmp, u16, n);
  for (u32 d = 1; d <= l->nkept; d++)
    for (u32 k = 0; k < l->K; k++)
      windows(fixed, kept, in->alive ? in->alive[d - 1] : d, in->kind[k].memory_bytes, l->L,
              l->fit_start + row_at(l, d, k), l->fit_end + row_at(l, d, k));
}

static void find_sends(line *l) {
  const balance_line *in = l->in;
  if (!in->send) return;
  l->send = NEWN(l->tmp, i64, (size_t)l->K * l->K * (l->L + 1));
  for (u32 j = 0; j < l->K; j++)
    for (u32 k = 0; k < l->K; k++)
      for (u32 e = 1; e < l->L; e++) {
        i64 ps = in->send(in->arg, e, j, k);
        l->send[(j * l->K + k) * (l->L + 1) + e] = ps;
        l->most_send = MAX(l->most_send, ps);
      }
}

u64 line_open(line *l, arena *tmp, const balance_line *in) {
  *l = (line){.in = in, .tmp = tmp, .K = in->nkinds, .L = in->nlayers, .most = in->nlayers, .tau = -1};
  assert(l->L > 0 && l->L < UINT16_MAX && l->K > 0 && in->micro > 0);
  l->count = NEWN(tmp, u32, l->K), l->stride = NEWN(tmp, u32, l->K);
  if (in->stages) l->most = MIN(l->most, in->stages);
  u64 states = 1, devices = 0;
  for (u32 k = 0; k < l->K; k++) {
    l->count[k] = MIN(in->kind[k].count, l->most);
    l->stride[k] = (u32)MIN(states, STATES_MAX);
    states = states > UINT32_MAX ? states : states * (l->count[k] + 1);
    devices += in->kind[k].count;
  }
  l->most = (u32)MIN(l->most, devices);
  l->nkept = MAX(in->alive ? l->most : MIN(l->most, in->micro), 1);
  u64 rows = (u64)l->nkept * l->K * (l->L + 1);
  if (states > STATES_MAX || rows > CELLS_MAX) return MAX(states, rows);
  l->time = NEWN(tmp, i64, (size_t)l->K * (l->L + 1));
  for (u32 k = 0; k < l->K; k++)
    memcpy(l->time + k * (l->L + 1), prefix(tmp, in->time_ps[k], l->L), (l->L + 1) * sizeof *l->time);
  line_rests(l);
  find_fits(l);
  find_sends(l);
  l->nstates = 1;
  for (u32 k = 0; k < l->K; k++) l->nstates *= l->count[k] + 1, l->devices += l->count[k];
  l->reach = NEWN(tmp, u16, l->nstates), l->front = NEWN(tmp, u16, l->nstates);
  return l->nstates;
}

void line_limit(line *l, i64 tau) {
  u32 n = l->L + 1;
  arena_mark_t mark = arena_mark(l->tmp);
  u16 *start = NEWN(l->tmp, u16, n), *end = NEWN(l->tmp, u16, n);
  l->tau = tau;
  for (u32 k = 0; k < l->K; k++) {
    const i64 *t = l->time + k * n;
    windows(t, t, 0, tau, l->L, start, end);
    for (u32 d = 1; d <= l->nkept; d++) {
      u32 at = row_at(l, d, k);
      for (u32 e = 0; e < n; e++) l->start[at + e] = MAX(start[e], l->fit_start[at + e]);
      for (u32 s = 0; s < n; s++) l->end[at + s] = MIN(end[s], l->fit_end[at + s]);
    }
  }
  arena_release(l->tmp, mark);
}
