// zero_bubble.c - one forward, one backward, with backwards in two parts. I goes out as soon as it can; W,
// which nobody waits for, is put off so far that it fills the end: on place r it lags r turns behind.
#include "sched/internal.h"

sched_task *fill_zb_h1(const sched_shape *s, u32 place, sched_task *t) {
  walk f = walk_of(s), b = f, w = f;
  u32 n = s->chunks * s->micro, nf = 0, nw = 0;
  u64 warm = (u64)(s->chunks - 1) * s->group + s->places - 1 - place;
  for (; nf < n && (nf < warm || !s->backward); nf++) t = put_next(&f, place, TASK_F, t);
  for (u32 turn = 0; s->backward && turn < n; turn++) {
    if (nf < n) t = put_next(&f, place, TASK_F, t), nf++;
    t = put_next(&b, place, TASK_I, t);
    if (turn >= place) t = put_next(&w, place, TASK_W, t), nw++;
  }
  for (; s->backward && nw < n; nw++) t = put_next(&w, place, TASK_W, t);
  return t;
}
