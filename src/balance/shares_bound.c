// shares_bound.c - what no shares can be faster than, from speeds alone.
//
// Let rank i do at most r_i (T - f_i) quanta by T. Then total <= sum r_i (T - f_i), which says how small T
// can be. With times f + b * e it is so with r = 1 / e, and T >= f_i as every rank takes part; with any other
// times with f = 0 and r the best rate that it has. Rates are kept in quanta per `unit`, rounded up: the
// bound stays one.
#include "balance/internal.h"

// quanta / ps is no less than any rate of a rank of the kind; quanta 0: it can have none.
typedef struct {
  i64 quanta, ps, fixed_ps;
} rate;

static rate best_rate(const balance_batch *in, u32 k) {
  i64 most = share_most(in, k);
  if (!most) return (rate){.ps = 1};
  if (!in->time) return (rate){.quanta = 1, .ps = in->kind[k].each_ps, .fixed_ps = in->kind[k].fixed_ps};
  rate best = {.ps = 1};
  for (i64 b = MAX(in->kind[k].least, 1), last; b <= most; b = last + 1) {
    last = in->falls ? b : MIN(b + b / 16, most); // times from b to last are no less than that of b
    i64 t = share_time(in, k, b);
    if (t < INT64_MAX && (wide)last * best.ps > (wide)best.quanta * t) best = (rate){.quanta = last, .ps = t};
  }
  return best;
}

// What a rank of the kind takes whatever it gets.
static i64 least_time(const balance_batch *in, u32 k) {
  i64 least = share_time(in, k, in->kind[k].least);
  if (in->falls)
    for (i64 b = in->kind[k].least + 1; b <= share_most(in, k); b++) least = MIN(least, share_time(in, k, b));
  return least;
}

i64 shares_bound(const balance_batch *in) {
  i64 need = 0;
  rate fastest = {.ps = 1};
  for (u32 k = 0; k < in->nkinds; k++) {
    if (!in->kind[k].count) continue;
    need = MAX(need, least_time(in, k));
    rate r = best_rate(in, k);
    if ((wide)r.quanta * fastest.ps > (wide)fastest.quanta * r.ps) fastest = r;
  }
  if (!fastest.quanta || !fastest.ps) return need;
  wide unit = MAX(((wide)fastest.ps << 30) / fastest.quanta, 1), rates = 0, late = 0;
  for (u32 k = 0; k < in->nkinds; k++) {
    if (!in->kind[k].count) continue;
    rate r = best_rate(in, k);
    wide each = (unit * r.quanta + r.ps - 1) / r.ps * in->kind[k].count;
    rates += each, late += each * r.fixed_ps;
  }
  assert(rates); // that of the fastest
  wide speed = (unit * in->total + late + rates - 1) / rates;
  return MAX(need, (i64)speed);
}
