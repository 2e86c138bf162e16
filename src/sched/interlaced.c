// interlaced.c - pipelines whose first and last stage (an embedding, a head over the same words) lie on all places
// and run between the tasks of the others.
//
// Idea: all places meet in every task of the two, so a place that is in the middle of a task holds up all others. Time
// goes in periods, and every kind of task comes once in each, so the sequence of a place is a merge of progressions.
// `interlaced-block` is 1F1B on steps that are as long as a forward or a backward; the places meet every second
// step, and there are both in it. In `interlaced` all places run a forward, meet, and run a backward: a microbatch goes on
// by one place in a period, each way.
#include "sched/internal.h"

// Steps of a period: a forward, where all meet, a backward. From 2, so that the first embedding is at 1.
sched_task *fill_interlaced(const sched_shape *s, u32 place, sched_task *t) {
  const u64 P = s->places, r = place;
  const beat v[] = {{.stage = (u16)(P + 1), .kind = TASK_F, .first = 3 * P + 1},
                    {.stage = (u16)(P + 1), .kind = TASK_B, .first = 3 * P + 1},
                    {.stage = 0, .kind = TASK_B, .first = 6 * P + 1},
                    {.stage = 0, .kind = TASK_F, .first = 1},
                    {.stage = (u16)(r + 1), .kind = TASK_F, .first = 3 * r + 3},
                    {.stage = (u16)(r + 1), .kind = TASK_B, .first = 3 * (2 * P - 1 - r) + 2}};
  return merge_beats(v, COUNT_OF(v), 3, s, t);
}

// Forward m of place r is at step r + 2m and its backward at 2P - 1 - r + 2m, both doubled here; all meet between steps.
sched_task *fill_interlaced_block(const sched_shape *s, u32 place, sched_task *t) {
  const u64 P = s->places, r = place;
  const beat v[] = {{.stage = (u16)(P + 1), .kind = TASK_F, .first = 2 * P},
                    {.stage = (u16)(P + 1), .kind = TASK_B, .first = 2 * P},
                    {.stage = 0, .kind = TASK_B, .first = 4 * P},
                    {.stage = 0, .kind = TASK_F, .first = 0},
                    {.stage = (u16)(r + 1), .kind = TASK_F, .first = 2 * r + 1},
                    {.stage = (u16)(r + 1), .kind = TASK_B, .first = 2 * (2 * P - 1 - r) + 1}};
  return merge_beats(v, COUNT_OF(v), 4, s, t);
}
