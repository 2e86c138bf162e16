// zero_bubble.c - one forward, one backward, with backwards in two parts: ZB-H1 and ZB-H2 of "Zero Bubble Pipeline
// Parallelism" (Qi et al., 2023, figure 3). I goes out as soon as it can; W, which nobody waits for, is put off so far
// that it fills the end.
#include "sched/internal.h"

// warm: forwards before the first turn; late: turns that W lags behind.
static sched_task *fill(const sched_shape *s, u32 place, u64 warm, u32 late, sched_task *t) {
  walk f = walk_of(s), b = f, w = f;
  u32 n = s->chunks * s->micro, nf = 0, nw = 0;
  for (; nf < n && (nf < warm || !s->backward); nf++) t = put_next(&f, place, TASK_F, t);
  for (u32 turn = 0; s->backward && turn < n; turn++) {
    if (nf < n) t = put_next(&f, place, TASK_F, t), nf++;
    t = put_next(&b, place, TASK_I, t);
    if (turn >= late) t = put_next(&w, place, TASK_W, t), nw++;
  }
  for (; s->backward && nw < n; nw++) t = put_next(&w, place, TASK_W, t);
  return t;
}

// On place r W lags r turns behind, so no place keeps more than the first one.
sched_task *fill_zb_h1(const sched_shape *s, u32 place, sched_task *t) {
  return fill(s, place, (u64)(s->chunks - 1) * s->group + s->places - 1 - place, place, t);
}

// Forwards fill the way to the last place and back, and as many W the way of the last gradient.
sched_task *fill_zb_h2(const sched_shape *s, u32 place, sched_task *t) {
  return fill(s, place, 2 * (u64)(s->places - 1 - place), 2 * place, t);
}
