// reach.c - how near to the first layer stages on so many devices come, and how far stages on the others come
// towards them.
//
// Idea: a part of a stage that fits its device fits too. So of all stages on the devices of a state those
// that begin earliest can do whatever the others can, and a state needs one number. A stage may come out
// empty: the plan without it has fewer stages, so it keeps less, and fits all the more.
#include "balance/internal.h"

u32 line_reach(line *l) {
  u32 *used = ZNEWN(l->tmp, u32, l->K), depth = 0, nearest = l->L;
  u16 *reach = l->reach;
  reach[0] = (u16)l->L;
  for (u32 s = 1; next_state(l, used, &depth); s++) {
    u32 best = l->L;
    const u16 *start = l->start + row_at(l, depth, 0);
    for (u32 k = 0; depth <= l->most && k < l->K; k++, start += l->L + 1)
      if (used[k]) best = MIN(best, start[reach[s - l->stride[k]]]);
    reach[s] = (u16)best;
    nearest = MIN(nearest, best);
  }
  return nearest;
}

// The mirror image, for the devices that a state leaves: in front of it stand at most `most` - depth stages.
// The one next to it keeps as many forwards as a first stage of depth + 1. Devices that are not used count as
// stages in front of all, where they cover nothing.
void line_front(line *l) {
  u32 *used = ZNEWN(l->tmp, u32, l->K), n = 0, last = l->nstates - 1;
  u16 *front = l->front;
  front[last] = 0;
  for (u32 s = 1; next_state(l, used, &n); s++) { // the devices in front; those behind are the others
    u32 best = 0, depth = l->devices - n + 1;
    for (u32 k = 0; depth <= l->most && k < l->K; k++)
      if (used[k]) best = MAX(best, l->end[row_at(l, depth, k) + front[last - s + l->stride[k]]]);
    front[last - s] = (u16)best;
  }
}
