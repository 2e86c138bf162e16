// three_one.c - three passes forward of which the last keeps its values, then one backward (3F1B).
//
// Idea: a period has one task of each kind, of different microbatches. Those of the second pass are P periods behind those
// of the first, when a microbatch has been through all P places, and those of the third as far behind these. The third pass
// and the backward are 1F1B. So no place waits for a pass, and as many microbatches keep their values as in 1F1B.
#include "sched/internal.h"

sched_task *fill_3f1b(const sched_shape *s, u32 place, sched_task *t) {
  const u64 P = s->places;
  const u16 stage = (u16)place;
  const beat v[] = {{.stage = stage, .kind = TASK_F, .pass = 0, .first = 0},
                    {.stage = stage, .kind = TASK_F, .pass = 1, .first = 4 * P + 1},
                    {.stage = stage, .kind = TASK_F, .pass = 2, .first = 4 * 2 * P + 2},
                    {.stage = stage, .kind = TASK_B, .first = 4 * (2 * P + P - 1 - place) + 3}};
  return merge_beats(v, COUNT_OF(v), 4, s, t);
}
