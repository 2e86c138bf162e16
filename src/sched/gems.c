// gems.c - two replicas in opposite directions, one microbatch at a time: GEMS (Jain et al., 2020), as the paper of
// Chimera draws it. Microbatches go to the replicas in turn; a forward follows the backward of the microbatch before
// it, which runs the same way through the places.
#include "sched/internal.h"

sched_task *fill_gems(const sched_shape *s, u32 place, sched_task *t) {
  for (u32 m = 0; m < s->micro; m++)
    for (u32 back = 0; back <= s->backward; back++)
      *t++ = (sched_task){.stage = (u16)(m % 2 ? s->places - 1 - place : place),
                          .kind = back ? TASK_B : TASK_F,
                          .replica = (u8)(m % 2),
                          .mb = m / 2};
  return t;
}
