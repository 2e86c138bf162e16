// gpipe.c - all forwards, then all backwards: of one chunk (GPipe), or chunk after chunk (looped BFS).
#include "sched/internal.h"

sched_task *fill_gpipe(const sched_shape *s, u32 place, sched_task *t) {
  walk f = walk_of(s), b = f;
  for (u32 k = 0; k < s->micro; k++) t = put_next(&f, place, TASK_F, t);
  for (u32 k = 0; s->backward && k < s->micro; k++) t = put_next(&b, place, TASK_B, t);
  return t;
}

// Backwards run in the opposite order of forwards, microbatches too.
sched_task *fill_bfs(const sched_shape *s, u32 place, sched_task *t) {
  for (u32 c = 0; c < s->chunks; c++)
    for (u32 m = 0; m < s->micro; m++)
      *t++ = (sched_task){.stage = (u16)(c * s->places + place), .kind = TASK_F, .mb = m};
  for (u32 c = s->chunks; s->backward && c--;)
    for (u32 m = s->micro; m--;)
      *t++ = (sched_task){.stage = (u16)(c * s->places + place), .kind = TASK_B, .mb = m};
  return t;
}
