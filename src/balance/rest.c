// rest.c - what the layers before a cut take at least on the devices that are left.
//
// Idea: let layers take longer on a kind, by a factor 1 + y_k with any y_k >= 0. A plan whose devices of kind
// k are at most n_k, and do no more than c_k each, then takes at most sum_k y_k n_k c_k longer, and no less
// than if every layer were on the kind that is now fastest for it:
//
//   sum of times >= sum_l min_k (1 + y_k) time_kl - sum_k y_k n_k c_k.
//
// For every kind m there is one choice of y: such that no kind is faster than m, over all layers. So the
// kinds that are faster than m are full, those that are slower are empty, and for the right m that is what
// the best plans look like. With the fastest kind as m, y is 0.
#include "balance/internal.h"

enum { BITS = 20 }; // y is in units of 2^-20

void line_rests(line *l) {
  u32 n = l->L + 1;
  l->over = ZNEWN(l->tmp, wide, l->K * l->K), l->need = ZNEWN(l->tmp, i64, (size_t)l->K * n);
  for (u32 m = 0; m < l->K; m++) {
    wide sum = 0;
    for (u32 k = 0; k < l->K; k++) {
      i64 all_k = MAX(l->time[k * n + l->L], 1), all_m = l->time[m * n + l->L];
      l->over[m * l->K + k] = MAX(((wide)all_m << BITS) / all_k - ((wide)1 << BITS), 0);
    }
    for (u32 i = 0; i < l->L && l->most; i++) {
      wide least = -1;
      for (u32 k = 0; k < l->K; k++) {
        if (!l->count[k]) continue;
        wide t = (((wide)1 << BITS) + l->over[m * l->K + k]) * l->in->time_ps[k][i];
        least = least < 0 ? t : MIN(least, t);
      }
      sum += least;
      l->need[m * n + i + 1] = (i64)(sum >> BITS);
    }
  }
}

static i64 price(const line *l, u32 m, u32 k, i64 most) { // y_k c_k
  return (i64)((l->over[m * l->K + k] * most + ((wide)1 << BITS) - 1) >> BITS);
}

i64 line_rest_under(const line *l, i64 tau) {
  i64 best = 0;
  for (u32 m = 0; m < l->K; m++) {
    wide rest = l->need[m * (l->L + 1) + l->L];
    for (u32 k = 0; k < l->K; k++)
      rest -= (wide)l->count[k] * price(l, m, k, MIN(tau, l->time[k * (l->L + 1) + l->L]));
    if (rest > best) best = (i64)rest;
  }
  return best;
}

// The longest stage of a kind at a depth.
static i64 longest(const line *l, u32 depth, u32 kind) {
  const u16 *end = l->end + row_at(l, depth, kind);
  const i64 *time = l->time + kind * (l->L + 1);
  i64 most = 0;
  for (u32 s = 0; s < l->L; s++) most = MAX(most, time[end[s]] - time[s]);
  return most;
}

i64 *line_prices(const line *l, arena *a) {
  i64 *prices = NEWN(a, i64, (size_t)l->nkept * l->K * l->K), *at = prices;
  for (u32 d = 1; d <= l->nkept; d++)
    for (u32 m = 0; m < l->K; m++)
      for (u32 k = 0; k < l->K; k++) *at++ = price(l, m, k, longest(l, d, k));
  return prices;
}

void line_rest(const line *l, const i64 *prices, const u32 *used, u32 depth, u32 lo, u32 hi, i64 *rest) {
  const i64 *at = prices + (size_t)(MIN(depth + 1, l->nkept) - 1) * l->K * l->K;
  for (u32 e = lo; e <= hi; e++) rest[e] = 0;
  for (u32 m = 0; m < l->K; m++) {
    const i64 *need = l->need + m * (l->L + 1);
    wide spared = 0;
    for (u32 k = 0; k < l->K; k++) spared += (wide)*at++ * (l->count[k] - used[k]);
    if (spared >= need[hi]) continue;
    for (u32 e = lo; e <= hi; e++) rest[e] = MAX(rest[e], need[e] - (i64)spared);
  }
}
