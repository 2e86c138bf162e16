// channels.c - which sends share a channel.
#include "sched/internal.h"

typedef struct {
  u16 from, to;
  u8 channel;
} pair;

u32 sched_channels(arena *scratch, u32 n, const u16 *from, const u16 *to, u8 *channel) {
  arena_mark_t mark = arena_mark(scratch);
  pair *known = NEWN(scratch, pair, n + 1);
  u32 nknown = 0, most = 0;
  for (u32 i = 0; i < n; i++) {
    u64 taken = 0;
    u32 k = 0;
    for (; k < nknown && (known[k].from != from[i] || known[k].to != to[i]); k++)
      if (known[k].from == from[i] || known[k].from == to[i] || known[k].to == from[i] ||
          known[k].to == to[i])
        taken |= (u64)1 << known[k].channel;
    if (k == nknown)
      known[nknown++] = (pair){from[i], to[i], taken == ~(u64)0 ? 63 : (u8)__builtin_ctzll(~taken)};
    channel[i] = known[k].channel;
    most = MAX(most, channel[i] + 1u);
  }
  arena_release(scratch, mark);
  return most;
}
