// interlaced.c - pipelines whose first and last stage (an embedding, a head over the same words) lie on all places
// and run between the tasks of the others.
//
// Idea: all places meet in every task of the two, so a place that is in the middle of a task holds up all others. Time
// goes in periods, and every kind of task comes once in each, so the sequence of a place is a merge of progressions.
// `interlaced-block` is 1F1B on steps that are as long as a forward or a backward; the places meet every second
// step, and there are both in it. In `interlaced` all places run a forward, meet, and run a backward: a microbatch goes on
// by one place in a period, each way.
#include "sched/internal.h"

// One kind of task: in period m, at `first` + m times the length of a period, that of microbatch m. Of equal times the
// earlier line of a table comes first.
typedef struct {
  u16 stage;
  task_kind kind;
  u64 first;
} beat;

enum { KINDS = 6 };
static sched_task *merge_beats(const beat v[KINDS], u64 period, const sched_shape *s, sched_task *t) {
  u32 done[KINDS] = {0};
  for (;;) {
    u32 next = KINDS;
    u64 first = UINT64_MAX;
    for (u32 k = 0; k < KINDS; k++) {
      const bool none = done[k] == s->micro || (v[k].kind != TASK_F && !s->backward);
      const u64 at = none ? UINT64_MAX : v[k].first + period * done[k];
      if (at < first) first = at, next = k;
    }
    if (next == KINDS) return t;
    *t++ = (sched_task){.stage = v[next].stage, .kind = (u8)v[next].kind, .mb = done[next]++};
  }
}

// Steps of a period: a forward, where all meet, a backward. From 2, so that the first embedding is at 1.
sched_task *fill_interlaced(const sched_shape *s, u32 place, sched_task *t) {
  const u64 P = s->places, r = place;
  const beat v[KINDS] = {{(u16)(P + 1), TASK_F, 3 * P + 1},
                         {(u16)(P + 1), TASK_B, 3 * P + 1},
                         {0, TASK_B, 6 * P + 1},
                         {0, TASK_F, 1},
                         {(u16)(r + 1), TASK_F, 3 * r + 3},
                         {(u16)(r + 1), TASK_B, 3 * (2 * P - 1 - r) + 2}};
  return merge_beats(v, 3, s, t);
}

// Forward m of place r is at step r + 2m and its backward at 2P - 1 - r + 2m, both doubled here; all meet between steps.
sched_task *fill_interlaced_block(const sched_shape *s, u32 place, sched_task *t) {
  const u64 P = s->places, r = place;
  const beat v[KINDS] = {{(u16)(P + 1), TASK_F, 2 * P},
                         {(u16)(P + 1), TASK_B, 2 * P},
                         {0, TASK_B, 4 * P},
                         {0, TASK_F, 0},
                         {(u16)(r + 1), TASK_F, 2 * r + 1},
                         {(u16)(r + 1), TASK_B, 2 * (2 * P - 1 - r) + 1}};
  return merge_beats(v, 4, s, t);
}
