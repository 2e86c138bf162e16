// beats.c - the sequence of a place in which every kind of task comes once in each period: a merge of progressions.
#include "sched/internal.h"

sched_task *merge_beats(const beat *v, u32 n, u64 period, const sched_shape *s, sched_task *t) {
  u32 done[BEATS_MOST] = {0};
  assert(n <= BEATS_MOST);
  for (;;) {
    u32 next = n;
    u64 first = UINT64_MAX;
    for (u32 k = 0; k < n; k++) {
      const bool none = done[k] == s->micro || (v[k].kind != TASK_F && !s->backward);
      const u64 at = none ? UINT64_MAX : v[k].first + period * done[k];
      if (at < first) first = at, next = k;
    }
    if (next == n) return t;
    *t++ = (sched_task){
        .stage = v[next].stage, .kind = (u8)v[next].kind, .pass = v[next].pass, .mb = done[next]++};
  }
}
