// bottleneck.c - which bottlenecks a plan may have, and which it cannot have.
#include "balance/internal.h"
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
  i64 x = *(const i64 *)a, y = *(const i64 *)b;
  return (x > y) - (x < y);
}

u32 line_bottlenecks(const line *l, arena *a, i64 above, i64 upto, i64 **out) {
  VEC(i64) v = {0};
  for (u32 k = 0; k < l->K; k++) {
    if (!l->count[k]) continue;
    const i64 *time = l->time + k * (l->L + 1);
    for (u32 s = 0, first = 0; s < l->L; s++) {
      while (first <= l->L && time[first] - time[s] <= above) first++;
      for (u32 e = MAX(first, s + 1); e <= l->L && time[e] - time[s] <= upto; e++)
        *vec_push(a, &v) = time[e] - time[s];
    }
  }
  for (u32 pair = 0; l->send && pair < l->K * l->K; pair++)
    for (u32 e = 1; e < l->L; e++) {
      i64 ps = l->send[pair * (l->L + 1) + e];
      if (ps > above && ps <= upto) *vec_push(a, &v) = ps;
    }
  if (v.n) qsort(v.v, v.n, sizeof *v.v, by_value);
  u32 n = 0;
  for (u32 i = 0; i < v.n; i++)
    if (!n || v.v[n - 1] != v.v[i]) v.v[n++] = v.v[i];
  *out = v.v;
  return n;
}

// Any weights give a bound, so they may be rounded: 2^100 / time of all layers, so that their products with
// the times of all layers sum to 2^100.
i64 speed_bound(arena *tmp, u32 L, u32 K, const i64 *const *time, const u32 *count, u32 most) {
  arena_mark_t mark = arena_mark(tmp);
  wide *y = NEWN(tmp, wide, K), work = 0, speed = 0;
  i64 largest = 0;
  for (u32 k = 0; k < K; k++) {
    i64 all = 0;
    for (u32 i = 0; i < L; i++) all += time[k][i];
    y[k] = ((wide)1 << 100) / MAX(all, 1);
  }
  for (u32 i = 0; i < L; i++) {
    wide weighed = -1;
    i64 least = INT64_MAX;
    for (u32 k = 0; k < K; k++) {
      if (!count[k]) continue;
      wide t = y[k] * time[k][i];
      weighed = weighed < 0 ? t : MIN(weighed, t), least = MIN(least, time[k][i]);
    }
    work += weighed, largest = MAX(largest, least);
  }
  u32 *left = arena_dup(tmp, count, K * sizeof *left);
  while (most) { // the devices with the largest weights
    u32 best = K;
    for (u32 k = 0; k < K; k++)
      if (left[k] && (best == K || y[k] > y[best])) best = k;
    u32 n = MIN(most, left[best]);
    speed += y[best] * n, most -= n, left[best] = 0;
  }
  arena_release(tmp, mark);
  return MAX(largest, speed ? (i64)((work + speed - 1) / speed) : 0);
}
