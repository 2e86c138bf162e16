// whale.c - Algorithm 1 of Whale: loads in proportion to speed, then from devices that lack memory to others.
#include "balance/internal.h"

enum { FITS, OOM, FREE }; // FITS: it was a peak and fits by now, or a valley without room

typedef struct {
  const balance_whale *in;
  i64 *load; // by device
  u8 *state;
} loads;

static i64 most_of(const balance_whale *in, u32 i) { // quanta
  if (!in->TG_mem) return in->quanta;
  wide most = (wide)in->DM[i] * in->quanta / in->TG_mem;
  return most < in->quanta ? (i64)most : in->quanta;
}

// x / y of device i against that of device j: below 0 if it is less.
static int compare(i64 x_i, i64 y_i, i64 x_j, i64 y_j) {
  wide a = (wide)x_i * y_j, b = (wide)x_j * y_i;
  return (a > b) - (a < b);
}
// mem_util is load * TG_mem / (quanta * DM).
static int compare_mem(const loads *l, u32 i, u32 j) {
  return compare(l->load[i], l->in->DM[i], l->load[j], l->in->DM[j]);
}
static int compare_flop(const loads *l, u32 i, u32 j) {
  return compare(l->load[i], l->in->DF[i], l->load[j], l->in->DF[j]);
}

static void share_by_speed(loads *l) {
  const balance_whale *in = l->in;
  wide speed = 0;
  i64 left = in->quanta;
  for (u32 i = 0; i < in->n; i++) speed += in->DF[i];
  for (u32 i = 0; i < in->n; i++) left -= l->load[i] = (i64)((wide)in->quanta * in->DF[i] / speed);
  for (; left > 0; left--) { // fewer than devices
    u32 to = 0;
    wide most = -1;
    for (u32 i = 0; i < in->n; i++) {
      wide rest = (wide)in->quanta * in->DF[i] - l->load[i] * speed;
      if (rest > most) most = rest, to = i;
    }
    l->load[to]++;
  }
}

static u32 find(const loads *l, u8 state, bool peak) { // n: there is none
  u32 best = l->in->n;
  for (u32 i = 0; i < l->in->n; i++) {
    if (l->state[i] != state) continue;
    if (best == l->in->n) {
      best = i;
      continue;
    }
    int mem = compare_mem(l, i, best), flop = compare_flop(l, i, best);
    if (peak ? mem > 0 : flop < 0 || (!flop && mem < 0)) best = i;
  }
  return best;
}

static bool shift_load(loads *l, u32 peak, u32 valley) {
  i64 b = MIN(l->load[peak] - most_of(l->in, peak), most_of(l->in, valley) - l->load[valley]);
  l->load[peak] -= b, l->load[valley] += b;
  return b > 0;
}

balance_fault balance_whale_loads(arena *a, const balance_whale *in, balance_loads *out) {
  *out = (balance_loads){0};
  loads l = {in, NEWN(a, i64, in->n), NEWN(a, u8, in->n)};
  u32 *oom = NEWN(a, u32, in->n);
  share_by_speed(&l);
  for (u32 i = 0; i < in->n; i++) l.state[i] = l.load[i] > most_of(in, i) ? OOM : FREE;
  for (;;) {
    u32 peak = find(&l, OOM, true), valley = find(&l, FREE, false);
    if (peak == in->n || valley == in->n) break;
    if (!shift_load(&l, peak, valley))
      l.state[valley] = FITS;
    else if (l.load[peak] <= most_of(in, peak))
      l.state[peak] = FITS;
  }
  for (u32 i = 0; i < in->n; i++) {
    if (l.state[i] != OOM) continue;
    oom[out->noom++] = i;
    out->off += l.load[i] - most_of(in, i);
  }
  out->load = l.load, out->oom_devices = oom;
  return out->noom ? BALANCE_CAPS : BALANCE_OK;
}
