// fuse.c - buckets of gradients: the exact dynamic programme, and the rules by which frameworks close buckets.
//
// Idea: only two things of the past matter to the gradients that are left: how many are done, and when the channel is
// free. Of two ways to be done with the same gradients the earlier one is never worse. So E(j), the earliest end of the
// first j, is the least over i of max(E(i), ready(j)) + time(bytes of i+1..j).
#include "tune/fuse.h"

static i64 time_of(const fuse_cost *c, i64 bytes) { return c->time(c->arg, bytes); }

fuse_plan fuse_given(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, const u32 *first,
                     u32 buckets) {
  fuse_plan p = {.n = buckets, .first = NEWN(a, u32, buckets + 1)};
  p.start_ps = NEWN(a, i64, buckets + 1), p.end_ps = NEWN(a, i64, buckets + 1);
  i64 free = 0;
  for (u32 k = 0; k < buckets; k++) {
    const u32 end = k + 1 < buckets ? first[k + 1] : n;
    i64 bytes = 0;
    assert(first[k] < end && end <= n);
    for (u32 i = first[k]; i < end; i++) bytes = add_sat(bytes, g[i].bytes);
    p.first[k] = first[k];
    p.start_ps[k] = MAX(free, g[end - 1].ready_ps);
    p.end_ps[k] = free = p.start_ps[k] + time_of(c, bytes);
  }
  p.first[buckets] = n;
  p.ends_ps = free;
  return p;
}

fuse_plan fuse_exact(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, i64 most) {
  arena *tmp = arena_new();
  i64 *end = NEWN(tmp, i64, n + 1);
  u32 *count = NEWN(tmp, u32, n + 1), *from = NEWN(tmp, u32, n + 1), *first = NEWN(tmp, u32, n + 1);
  end[0] = 0, count[0] = 0;
  for (u32 j = 1; j <= n; j++) {
    i64 bytes = 0;
    end[j] = INT64_MAX, count[j] = 0, from[j] = j - 1;
    for (u32 i = j; i-- > 0;) {
      bytes = add_sat(bytes, g[i].bytes);
      if (most && i + 1 < j && bytes > most) break;
      const i64 t = MAX(end[i], g[j - 1].ready_ps) + time_of(c, bytes);
      if (t > end[j] || (t == end[j] && count[i] + 1 >= count[j])) continue;
      end[j] = t, count[j] = count[i] + 1, from[j] = i;
    }
  }
  for (u32 j = n, k = count[n]; j; j = from[j]) first[--k] = from[j];
  const fuse_plan p = fuse_given(a, g, n, c, first, count[n]);
  arena_free(tmp);
  return p;
}

// ---- rules of frameworks --------------------------------------------------------------------------------
// A bucket is closed when it has reached its size.
fuse_plan fuse_by_bytes(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, i64 first_bytes,
                        i64 bytes) {
  u32 *first = NEWN(a, u32, n + 1), buckets = 0;
  i64 has = 0;
  for (u32 k = 0; k < n; k++) {
    if (!k || has >= (buckets == 1 ? first_bytes : bytes)) first[buckets++] = k, has = 0;
    has = add_sat(has, g[k].bytes);
  }
  return fuse_given(a, g, n, c, first, buckets);
}

// At the end of every cycle, when the channel is free: what is there, as much as the buffer holds.
static u32 by_cycle(const fuse_gradient *g, u32 n, const fuse_cost *c, i64 cycle, i64 bytes, u32 *first) {
  u32 buckets = 0;
  i64 free = 0;
  for (u32 k = 0; k < n;) {
    const i64 there = MAX(free, g[k].ready_ps), at = ceil_div(there, cycle) * cycle;
    i64 has = 0;
    first[buckets++] = k;
    do has = add_sat(has, g[k++].bytes);
    while (k < n && g[k].ready_ps <= at && add_sat(has, g[k].bytes) <= bytes);
    free = at + time_of(c, has);
  }
  return buckets;
}

// Horovod's communications start with the cycle, not when the gradients are there.
fuse_plan fuse_by_cycle(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, i64 cycle, i64 bytes) {
  u32 *first = NEWN(a, u32, n + 1);
  fuse_gradient *late = NEWN(a, fuse_gradient, n + 1);
  const u32 buckets = by_cycle(g, n, c, cycle, bytes, first);
  i64 free = 0;
  if (n) memcpy(late, g, sizeof *g * n);
  for (u32 k = 0; k < buckets; k++) {
    const u32 end = k + 1 < buckets ? first[k + 1] : n;
    i64 has = 0;
    for (u32 i = first[k]; i < end; i++) has = add_sat(has, g[i].bytes);
    late[end - 1].ready_ps = ceil_div(MAX(free, g[first[k]].ready_ps), cycle) * cycle;
    free = late[end - 1].ready_ps + time_of(c, has);
  }
  return fuse_given(a, late, n, c, first, buckets);
}
