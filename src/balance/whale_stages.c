// whale_stages.c - Whale's pipelines: devices by memory, layers by speed, then Algorithm 1 on the layers.
#include "balance/internal.h"

enum { FITS, OOM, FREE }; // FITS: it was a peak and fits by now, or a valley that can take nothing more

typedef struct {
  const balance_whale_line *in;
  u32 *device, *end;        // by stage
  i64 *flop, *fixed, *kept; // by cut: of the layers before it
  u8 *state;                // by stage
} cutting;

static u32 start_of(const cutting *c, u32 stage) { return stage ? c->end[stage - 1] : 0; }
static i64 part_of(const cutting *c, const i64 *sum, u32 stage) {
  return sum[c->end[stage]] - sum[start_of(c, stage)];
}
static i64 bytes_of(const cutting *c, u32 stage) {
  u32 keeps = MIN(c->in->n - stage, c->in->micro);
  return part_of(c, c->fixed, stage) + keeps * part_of(c, c->kept, stage);
}
static bool fits(const cutting *c, u32 stage) { return bytes_of(c, stage) <= c->in->DM[c->device[stage]]; }

// x / of[device] of one stage against another: below 0 if it is less.
static int compare(const cutting *c, const i64 *of, u32 i, i64 x_i, u32 j, i64 x_j) {
  wide a = (wide)x_i * of[c->device[j]], b = (wide)x_j * of[c->device[i]];
  return (a > b) - (a < b);
}
static int compare_mem(const cutting *c, u32 i, u32 j) {
  return compare(c, c->in->DM, i, bytes_of(c, i), j, bytes_of(c, j));
}
static int compare_flop(const cutting *c, u32 i, u32 j) {
  return compare(c, c->in->DF, i, part_of(c, c->flop, i), j, part_of(c, c->flop, j));
}

static void order_by_memory(cutting *c) {
  for (u32 i = 0; i < c->in->n; i++) {
    u32 at = i;
    for (; at > 0 && c->in->DM[c->device[at - 1]] < c->in->DM[i]; at--) c->device[at] = c->device[at - 1];
    c->device[at] = i;
  }
}

static void cut_by_speed(cutting *c) {
  const balance_whale_line *in = c->in;
  wide speed = 0, before = 0, work = c->flop[in->nlayers];
  for (u32 i = 0; i < in->n; i++) speed += in->DF[i];
  c->end[in->n - 1] = in->nlayers;
  for (u32 i = 0, cut = 0; i + 1 < in->n; i++) {
    before += in->DF[c->device[i]];
    u32 last = in->nlayers - (in->n - 1 - i);
    for (cut++; cut < last; cut++) {
      wide here = c->flop[cut] * speed - work * before, next = c->flop[cut + 1] * speed - work * before;
      if (next >= 0 && next >= (here < 0 ? -here : here)) break;
    }
    c->end[i] = cut;
  }
}

static u32 find(const cutting *c, u8 state, bool peak) { // n: there is none
  u32 best = c->in->n;
  for (u32 i = 0; i < c->in->n; i++) {
    if (c->state[i] != state) continue;
    if (best == c->in->n) {
      best = i;
      continue;
    }
    int mem = compare_mem(c, i, best), flop = compare_flop(c, i, best);
    if (peak ? mem > 0 : flop < 0 || (!flop && mem < 0)) best = i;
  }
  return best;
}

// One layer from stage to stage; those between keep as many.
static void move_layer(cutting *c, u32 from, u32 to) {
  for (u32 i = from; i < to; i++) c->end[i]--;
  for (u32 i = to; i < from; i++) c->end[i]++;
}
static bool shift_layer(cutting *c, u32 peak, u32 valley) {
  if (c->end[peak] == start_of(c, peak) + 1) return false;
  move_layer(c, peak, valley);
  for (u32 i = 0; i < c->in->n; i++) {
    if (c->state[i] == OOM || fits(c, i)) continue;
    move_layer(c, valley, peak);
    return false;
  }
  return true;
}
static bool shift_load(cutting *c, u32 peak, u32 valley) {
  u32 moved = 0;
  while (!fits(c, peak) && shift_layer(c, peak, valley)) moved++;
  return moved > 0;
}

static i64 *prefix(arena *a, const i64 *v, u32 n) {
  i64 *sum = ZNEWN(a, i64, n + 1);
  for (u32 i = 0; v && i < n; i++) sum[i + 1] = sum[i] + v[i];
  return sum;
}

balance_fault balance_whale_stages(arena *a, const balance_whale_line *in, balance_whale_cuts *out) {
  *out = (balance_whale_cuts){0};
  if (in->n > in->nlayers) return BALANCE_STAGES;
  u32 *oom = NEWN(a, u32, in->n);
  cutting c = {.in = in, .device = NEWN(a, u32, in->n), .end = NEWN(a, u32, in->n)};
  arena_mark_t mark = arena_mark(a);
  c.flop = prefix(a, in->flop, in->nlayers), c.fixed = prefix(a, in->fixed_bytes, in->nlayers);
  c.kept = prefix(a, in->kept_bytes, in->nlayers), c.state = NEWN(a, u8, in->n);
  order_by_memory(&c);
  cut_by_speed(&c);
  for (u32 i = 0; i < in->n; i++) c.state[i] = fits(&c, i) ? FREE : OOM;
  for (;;) {
    u32 peak = find(&c, OOM, true), valley = find(&c, FREE, false);
    if (peak == in->n || valley == in->n) break;
    if (!shift_load(&c, peak, valley)) c.state[valley] = FITS;
    for (u32 i = 0; i < in->n; i++) // stages between may fit now too
      if (c.state[i] == OOM && fits(&c, i)) c.state[i] = FITS;
  }
  for (u32 i = 0; i < in->n; i++)
    if (c.state[i] == OOM) oom[out->noom++] = c.device[i];
  arena_release(a, mark);
  out->device = c.device, out->end = c.end, out->oom_devices = oom;
  return out->noom ? BALANCE_MEMORY : BALANCE_OK;
}
