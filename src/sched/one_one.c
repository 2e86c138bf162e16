// one_one.c - one forward, one backward: some forwards first, then a forward and a backward in turn, then the
// backwards that are left. With one chunk (1F1B) and with several (interleaved).
#include "sched/internal.h"

static sched_task *fill(const sched_shape *s, u32 place, u64 warm, sched_task *t) {
  walk f = walk_of(s), b = f;
  u32 n = s->chunks * s->micro, w = s->backward ? (u32)MIN(warm, n) : n;
  for (u32 k = 0; k < w; k++) t = put_next(&f, place, TASK_F, t);
  for (u32 k = w; k < n; k++) {
    t = put_next(&f, place, TASK_F, t);
    t = put_next(&b, place, TASK_B, t);
  }
  for (u32 k = 0; s->backward && k < w; k++) t = put_next(&b, place, TASK_B, t);
  return t;
}

sched_task *fill_1f1b(const sched_shape *s, u32 place, sched_task *t) {
  return fill(s, place, s->places - 1 - place, t);
}

// The forwards that Megatron runs first.
sched_task *fill_interleaved(const sched_shape *s, u32 place, sched_task *t) {
  return fill(s, place, 2 * (u64)(s->places - 1 - place) + (u64)(s->chunks - 1) * s->group, t);
}

// The order of 1F1B. It never drains, but for the end of the program: the next microbatches would follow.
static sched_task *fill_versions(const sched_row *r, const sched_shape *s, u32 place, sched_task *t) {
  sched_task *end = fill_1f1b(s, place, t);
  for (; t < end; t++)
    t->version = (u8)(sched_version(r, s, t->stage, t->mb) % sched_versions(r, s, t->stage));
  return end;
}

sched_task *fill_pipedream(const sched_shape *s, u32 place, sched_task *t) {
  return fill_versions(sched_row_find("pipedream"), s, place, t);
}

sched_task *fill_pipedream_2bw(const sched_shape *s, u32 place, sched_task *t) {
  return fill_versions(sched_row_find("pipedream-2bw"), s, place, t);
}
