// fuse.c - buckets of gradients: the exact dynamic programme, the policies of frameworks, the best partition.
//
// Idea: only two things of the past matter to the gradients that are left: how many are done, and when the channel is
// free. Of two ways to be done with the same gradients the earlier one is never worse. So E(j), the earliest end of the
// first j, is the least over i of max(E(i), ready(j)) + time(bytes of i+1..j).
#include "tune/fuse.h"
#include <math.h>

const fuse_policy_row fuse_policy_rows[FUSE_POLICIES] = {
#define POLICY(id, name, about) {#id, name, about},
#include "tune/policies.def"
#undef POLICY
};

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

// ---- what people use ------------------------------------------------------------------------------------
static const i64 MIB = 1 << 20, MS = 1000000000;

// A bucket is closed when it has reached its size.
static u32 by_size(const fuse_gradient *g, u32 n, i64 first_bytes, i64 bytes, u32 *first) {
  u32 buckets = 0;
  i64 has = 0;
  for (u32 k = 0; k < n; k++) {
    if (!k || has >= (buckets == 1 ? first_bytes : bytes)) first[buckets++] = k, has = 0;
    has = add_sat(has, g[k].bytes);
  }
  return buckets;
}

fuse_plan fuse_by_bytes(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c, i64 first_bytes,
                        i64 bytes) {
  u32 *first = NEWN(a, u32, n + 1);
  return fuse_given(a, g, n, c, first, by_size(g, n, first_bytes, bytes, first));
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
  memcpy(late, g, sizeof *g * n);
  for (u32 k = 0; k < buckets; k++) {
    const u32 end = k + 1 < buckets ? first[k + 1] : n;
    i64 has = 0;
    for (u32 i = first[k]; i < end; i++) has = add_sat(has, g[i].bytes);
    late[end - 1].ready_ps = ceil_div(MAX(free, g[first[k]].ready_ps), cycle) * cycle;
    free = late[end - 1].ready_ps + time_of(c, has);
  }
  return fuse_given(a, late, n, c, first, buckets);
}

static fuse_plan autotuned(arena *a, const fuse_gradient *g, u32 n, const fuse_cost *c) {
  fuse_plan best = {.ends_ps = INT64_MAX};
  for (i64 ms = 1; ms <= 50; ms = ms < 5 ? ms + 1 : ms + 5)
    for (i64 mib = 1; mib <= 64; mib *= 2) {
      const fuse_plan p = fuse_by_cycle(a, g, n, c, ms * MS, mib * MIB);
      if (p.ends_ps < best.ends_ps) best = p;
    }
  return best;
}

// Theorem 2: a tensor joins the one before it if that one's end is later than its own readiness by more than what
// fusing them costs. With times that are linear in bytes this decides each pair rightly, not the whole sequence.
static u32 greedily(const fuse_gradient *g, u32 n, const fuse_cost *c, u32 *first) {
  u32 buckets = 0;
  i64 free = 0, before = 0, has = 0; // free: end of the bucket at hand; before: of the one before it
  for (u32 k = 0; k < n; k++) {
    const i64 alone = time_of(c, g[k].bytes), fused = time_of(c, add_sat(has, g[k].bytes));
    if (k && free > g[k].ready_ps + fused - alone) {
      has = add_sat(has, g[k].bytes);
      free = MAX(before, g[k].ready_ps) + fused;
      continue;
    }
    first[buckets++] = k;
    before = free, has = g[k].bytes;
    free = MAX(before, g[k].ready_ps) + alone;
  }
  return buckets;
}

fuse_plan fuse_by(arena *a, fuse_policy p, const fuse_gradient *g, u32 n, const fuse_cost *c) {
  u32 *first = NEWN(a, u32, n + 1), buckets = 0;
  if (!n) return fuse_given(a, g, n, c, first, 0);
  switch (p) {
  case FUSE_exact: return fuse_exact(a, g, n, c, 0);
  case FUSE_horovod: return fuse_by_cycle(a, g, n, c, 5 * MS, 64 * MIB);
  case FUSE_autotune: return autotuned(a, g, n, c);
  case FUSE_none:
    for (; buckets < n; buckets++) first[buckets] = buckets;
    break;
  case FUSE_all: first[buckets++] = 0; break;
  case FUSE_ddp: buckets = by_size(g, n, MIB, 25 * MIB, first); break;
  case FUSE_greedy: buckets = greedily(g, n, c, first); break;
  case FUSE_POLICIES: assert(false);
  }
  return fuse_given(a, g, n, c, first, buckets);
}

// ---- partitions -----------------------------------------------------------------------------------------
i64 fuse_partitioned_ps(i64 bytes, u32 k, i64 overhead_ps, double ps_per_byte) {
  const i64 piece = ceil_div(bytes, (i64)k);
  return (i64)(k + 1) * (overhead_ps + (i64)((double)piece * ps_per_byte + 0.5));
}

// (k + 1)(o + b/k) = o k + b/k + o + b has its minimum at k = sqrt(b / o) and is convex. Pieces are whole bytes and
// picoseconds, which adds at most (k + 1)(ps of a byte + 1): a k further away than that allows cannot be better.
u32 fuse_partitions(i64 bytes, u32 most, i64 overhead_ps, double ps_per_byte) {
  const double o = (double)overhead_ps, b = (double)bytes * ps_per_byte;
  const double root = o > 0 ? sqrt(b / o) : most;
  const u32 middle = (u32)MIN(MAX(root, 1), most);
  u32 best = middle;
  i64 least = fuse_partitioned_ps(bytes, middle, overhead_ps, ps_per_byte);
  for (int step = -1; step <= 1; step += 2)
    for (i64 k = (i64)middle + step; k >= 1 && k <= most; k += step) {
      const i64 t = fuse_partitioned_ps(bytes, (u32)k, overhead_ps, ps_per_byte);
      if (t < least || (t == least && (u32)k < best)) least = t, best = (u32)k;
      const double bound = o * (double)k + b / (double)k + o + b; // without rounding up; grows from here on
      if (bound - (double)(k + 1) > (double)least) break;
    }
  return best;
}
