// chimera.c - two replicas of the model, whose pipelines run through the places in opposite directions (Li and Hoefler,
// 2021).
//
// Idea: each is 1F1B of one microbatch at a time, on a clock of steps that are as long as a forward or a backward. Down,
// forward m of stage r is at step r + 2m and its backward at 2P - 1 - r + 2m; up, the same counted from the other
// end. P is even, so what a place does for one replica falls into the steps that the other leaves free. After P / 2
// microbatches of each every place has been busy for 2P steps: the next begin so much later, and fill the end of those
// before them.
//
// Where a backward takes as long as two forwards, a step is a backward or the forwards of two microbatches (forward
// doubling). Then a unit has P / 2 forwards of each replica and twice as many backwards. Forward n is at step r + 2a,
// backward m at 2P - 1 - r + 2b, and two of them never meet as long as no a is P / 2 + b: so forwards take the first
// P / 2 of 3P / 2 numbers, and backwards, which lag P / 2 behind, the others.
#include "sched/internal.h"

// The step of a task of a replica: number n of its forwards, or of its backwards. each: backwards for a step of forwards.
static u64 step_of(u32 places, u32 stage, u32 n, bool backward, u32 each) {
  const u32 half = places / 2, slot = backward ? n : n / each, of = backward ? each * half : half;
  const u64 unit = slot / of * (1 + each) * (u64)places + 2 * (slot % of);
  return unit + (backward ? 2 * (u64)places - 1 - stage : stage);
}

static sched_task *fill(const sched_shape *s, u32 place, u32 each, sched_task *t) {
  const u32 n = s->micro / 2, stage[2] = {place, s->places - 1 - place};
  u32 done[2][2] = {{0}}; // by replica: forwards, backwards
  for (u32 left = 2 * n * (1 + s->backward); left; left--) {
    u32 replica = 0, back = 0;
    u64 first = UINT64_MAX;
    for (u32 r = 0; r < 2; r++)
      for (u32 b = 0; b <= s->backward; b++) {
        const u64 step = done[r][b] < n ? step_of(s->places, stage[r], done[r][b], b, each) : UINT64_MAX;
        if (step < first) first = step, replica = r, back = b;
      }
    *t++ = (sched_task){.stage = (u16)stage[replica],
                        .kind = back ? TASK_B : TASK_F,
                        .replica = (u8)replica,
                        .mb = done[replica][back]++};
  }
  return t;
}

sched_task *fill_chimera(const sched_shape *s, u32 place, sched_task *t) { return fill(s, place, 1, t); }

sched_task *fill_chimera_double(const sched_shape *s, u32 place, sched_task *t) {
  return fill(s, place, 2, t);
}
