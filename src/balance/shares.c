// shares.c - quanta for ranks whose time never falls as they get more.
//
// Idea: what a rank can do by a time T grows with T, so the optimum is sought by halving, among the times at which some
// rank ends a quantum. `before` holds what every kind does in less than the optimum, `by` what it does by it; the quanta that
// are left over after `before` all end at the optimum and go to the ranks with the fewest, as a heap would deal them out.
#include "balance/internal.h"

typedef struct {
  const balance_batch *in;
  i64 *before, *by, *mid; // by kind: quanta of one of its ranks
} dealing;

// Most quanta that a rank finishes by T; it is no less than lo and no more than hi.
static i64 most_by(const balance_batch *in, u32 kind, i64 T, i64 lo, i64 hi) {
  while (lo < hi) {
    i64 q = lo + (hi - lo + 1) / 2;
    if (share_time(in, kind, q) <= T)
      lo = q;
    else
      hi = q - 1;
  }
  return lo;
}

static i64 sum_of(const balance_batch *in, const i64 *quanta) {
  i64 sum = 0;
  for (u32 k = 0; k < in->nkinds; k++) sum = add_sat(sum, mul_sat(in->kind[k].count, quanta[k]));
  return sum;
}

// The kind with the most quanta that end after what is too early, and by what is late enough; nkinds: none does.
static u32 widest(const dealing *d) {
  u32 found = d->in->nkinds;
  i64 most = 0;
  for (u32 k = 0; k < d->in->nkinds; k++) {
    const i64 width = d->in->kind[k].count ? d->by[k] - d->before[k] : 0;
    if (width > most) most = width, found = k;
  }
  return found;
}

// The least T by which all quanta are done; ranks have their least share whenever they finish it. Some quanta
// are left after those. The least is a time at which a quantum ends: half of those that may be it go each time.
static void bisect(dealing *d) {
  const balance_batch *in = d->in;
  i64 lo = -1, hi = 0; // too early, late enough
  for (u32 k = 0; k < in->nkinds; k++) {
    d->before[k] = in->kind[k].least, d->by[k] = share_most(in, k);
    if (in->kind[k].count) hi = MAX(hi, share_time(in, k, d->by[k]));
  }
  for (u32 at; hi - lo > 1 && (at = widest(d)) < in->nkinds;) {
    i64 T = share_time(in, at, d->before[at] + (d->by[at] - d->before[at] + 1) / 2);
    if (T <= lo || T >= hi) T = hi - 1;
    for (u32 k = 0; k < in->nkinds; k++) d->mid[k] = most_by(in, k, T, d->before[k], d->by[k]);
    const bool done = sum_of(in, d->mid) >= in->total;
    memcpy(done ? d->by : d->before, d->mid, in->nkinds * sizeof *d->mid);
    *(done ? &hi : &lo) = T;
  }
}

static i64 held_at(const dealing *d, u32 k, i64 level) { return MIN(MAX(level, d->before[k]), d->by[k]); }
static i64 sum_at(const dealing *d, i64 level) {
  i64 sum = 0;
  for (u32 k = 0; k < d->in->nkinds; k++)
    sum = add_sat(sum, mul_sat(d->in->kind[k].count, held_at(d, k, level)));
  return sum;
}

// Every rank is filled to the same number of quanta, where it may have so many; the first of those that may
// have one more get what is left.
static void deal(const dealing *d, i64 *share) {
  const balance_batch *in = d->in;
  i64 lo = 0, hi = in->total; // sum_at(lo) <= total <= sum_at(hi)
  while (hi - lo > 1) {
    i64 level = lo + (hi - lo) / 2;
    if (sum_at(d, level) <= in->total)
      lo = level;
    else
      hi = level;
  }
  i64 left = in->total - sum_at(d, lo);
  for (u32 k = 0; k < in->nkinds; k++) {
    i64 held = held_at(d, k, lo), more = held_at(d, k, lo + 1) - held;
    for (u32 i = 0; i < in->kind[k].count; i++) {
      i64 extra = more && left > 0;
      *share++ = held + extra, left -= extra;
    }
  }
}

static balance_fault check_sums(arena *tmp, const balance_batch *in, balance_split *out) {
  i64 *quanta = NEWN(tmp, i64, in->nkinds), sum;
  for (u32 k = 0; k < in->nkinds; k++) quanta[k] = in->kind[k].least;
  if ((sum = sum_of(in, quanta)) > in->total) {
    out->off = sum - in->total;
    return BALANCE_LEASTS;
  }
  for (u32 k = 0; k < in->nkinds; k++) quanta[k] = share_most(in, k);
  if ((sum = sum_of(in, quanta)) < in->total) {
    out->off = in->total - sum;
    return BALANCE_CAPS;
  }
  return BALANCE_OK;
}

static void shares_rising(arena *a, arena *tmp, const balance_batch *in, balance_split *out) {
  dealing d = {.in = in,
               .before = NEWN(tmp, i64, in->nkinds),
               .by = NEWN(tmp, i64, in->nkinds),
               .mid = NEWN(tmp, i64, in->nkinds)};
  u32 n = 0;
  for (u32 k = 0; k < in->nkinds; k++) n += in->kind[k].count;
  i64 *share = NEWN(a, i64, n);
  bisect(&d);
  deal(&d, share);
  out->share = share;
  for (u32 k = 0; k < in->nkinds; share += in->kind[k++].count) // the first of a kind has the most
    if (in->kind[k].count) out->time_ps = MAX(out->time_ps, share_time(in, k, *share));
}

balance_fault balance_shares(arena *a, const balance_batch *in, balance_split *out) {
  assert(in->total >= 0 && in->total <= BALANCE_QUANTA);
  u64 ranks = 0;
  for (u32 k = 0; k < in->nkinds; k++) {
    assert(in->kind[k].least >= 0 && in->kind[k].least <= in->kind[k].cap);
    ranks += in->kind[k].count;
  }
  assert(ranks > 0 && ranks <= BALANCE_RANKS);
  *out = (balance_split){0};
  arena *tmp = arena_new();
  balance_fault f = check_sums(tmp, in, out);
  if (!f && in->falls)
    f = shares_any(a, tmp, in, out);
  else if (!f)
    shares_rising(a, tmp, in, out);
  arena_free(tmp);
  return f;
}
