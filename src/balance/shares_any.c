// shares_any.c - quanta for ranks whose time may fall as they get more.
//
// Idea: under a limit T every kind has a set of shares that it can have, and the sums that ranks r, r+1, ..
// can make together are a set too: that of ranks r+1, .. moved by every share of rank r. Sets are bits. The
// least T for which all ranks can make the total is one of the times that there are.
#include "balance/internal.h"
#include <stdlib.h>

typedef struct {
  const balance_batch *in;
  u32 n;              // ranks
  size_t words;       // of a set of sums from 0 to total
  const u32 *kind_of; // by rank
  i64 **time;         // by kind: of least, least + 1, ..
  u64 *sums;          // [rank][word]: of the ranks from this one on; n + 1 sets
} dealing;

static u64 *sums_of(const dealing *d, u32 rank) { return d->sums + rank * d->words; }
static bool has(const u64 *set, i64 sum) { return set[sum / 64] >> (sum % 64) & 1; }

// Adds every sum of `from`, `by` more, to `to`; what is past the end is dropped.
static void add_moved(u64 *to, const u64 *from, i64 by, size_t words) {
  size_t skip = (size_t)by / 64;
  u32 bits = (u32)(by % 64);
  for (size_t w = skip; w < words; w++) {
    to[w] |= from[w - skip] << bits;
    if (bits && w > skip) to[w] |= from[w - skip - 1] >> (64 - bits);
  }
}

static bool can_do(dealing *d, i64 limit) {
  memset(d->sums, 0, (d->n + 1) * d->words * sizeof *d->sums);
  sums_of(d, d->n)[0] = 1;
  for (u32 r = d->n; r-- > 0;) {
    u32 k = d->kind_of[r];
    i64 least = d->in->kind[k].least, most = share_most(d->in, k);
    for (i64 b = least; b <= most; b++)
      if (d->time[k][b - least] <= limit) add_moved(sums_of(d, r), sums_of(d, r + 1), b, d->words);
  }
  return has(sums_of(d, 0), d->in->total);
}

static int by_value(const void *a, const void *b) {
  i64 x = *(const i64 *)a, y = *(const i64 *)b;
  return (x > y) - (x < y);
}

static bool optimum(dealing *d, const i64 *limit, u32 n, i64 *out) {
  if (!n || !can_do(d, limit[n - 1])) return false;
  u32 lo = 0, hi = n - 1; // limit[hi] suffices, nothing before limit[lo] does
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (can_do(d, limit[mid]))
      hi = mid;
    else
      lo = mid + 1;
  }
  *out = limit[hi];
  return can_do(d, limit[hi]); // leaves its sums
}

static i64 share_near(const dealing *d, u32 rank, i64 left, i64 limit) {
  u32 k = d->kind_of[rank];
  i64 even = ceil_div(left, d->n - rank), least = d->in->kind[k].least,
      most = MIN(share_most(d->in, k), left), best = -1;
  for (i64 b = least; b <= most; b++) {
    if (d->time[k][b - least] > limit || !has(sums_of(d, rank + 1), left - b)) continue;
    if (best < 0 || llabs(b - even) <= llabs(best - even)) best = b;
  }
  return best;
}

balance_fault shares_any(arena *a, arena *tmp, const balance_batch *in, balance_split *out) {
  dealing d = {.in = in, .words = (size_t)in->total / 64 + 1, .time = NEWN(tmp, i64 *, in->nkinds)};
  VEC(u32) kind_of = {0};
  VEC(i64) limit = {0};
  for (u32 k = 0; k < in->nkinds; k++) {
    i64 least = in->kind[k].least, most = share_most(in, k);
    d.time[k] = NEWN(tmp, i64, MAX(most - least + 1, 0));
    for (i64 b = least; b <= most && in->kind[k].count; b++) {
      i64 t = d.time[k][b - least] = share_time(in, k, b);
      if (t < INT64_MAX) *vec_push(tmp, &limit) = t;
    }
    for (u32 i = 0; i < in->kind[k].count; i++) *vec_push(tmp, &kind_of) = k;
  }
  d.n = kind_of.n, d.kind_of = kind_of.v;
  d.sums = NEWN(tmp, u64, (d.n + 1) * d.words);
  if (limit.n) qsort(limit.v, limit.n, sizeof *limit.v, by_value);
  if (!optimum(&d, limit.v, limit.n, &out->time_ps)) return BALANCE_SUM;
  i64 *share = NEWN(a, i64, d.n), left = in->total;
  for (u32 r = 0; r < d.n; r++) left -= share[r] = share_near(&d, r, left, out->time_ps);
  out->share = share;
  return BALANCE_OK;
}
