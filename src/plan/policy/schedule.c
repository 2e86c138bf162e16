// schedule.c - the order in which every stage runs its microbatches.
#include "plan/plan.h"

const char *policy_schedule_name(u32 i) {
  static const char *const names[] = {"gpipe", "1f1b"};
  return i < COUNT_OF(names) ? names[i] : NULL;
}

// One place per segment, tasks in the exact orders of GPipe (all forwards, then all backwards) and 1F1B
// (PipeDream-Flush: min(P-1-r, K) warm-up forwards, then one forward and one backward in turn, then the
// remaining backwards).
bool policy_schedule(planner *pl, arena *a, plan *pn, const strategy *s) {
  (void)pl;
  const bool gpipe = choice_is(CHOICE_schedule, s->schedule, "gpipe");
  u32 P = pn->nsegments, K = pn->time ? pn->axes[pn->time - 1].size : 1;
  pn->nseqs = P;
  pn->seqs = NEWN(a, task_seq, P);
  for (u32 p = 0; p < P; p++) {
    task *t = NEWN(a, task, 2 * K);
    u32 n = 0, warm = !pn->train || gpipe ? K : MIN(P - 1 - p, K);
    for (u32 i = 0; i < warm; i++) t[n++] = (task){(u16)p, TASK_F, i};
    for (u32 i = warm; i < K; i++) {
      t[n++] = (task){(u16)p, TASK_F, i};
      t[n++] = (task){(u16)p, TASK_B, i - warm};
    }
    for (u32 i = K - warm; pn->train && i < K; i++) t[n++] = (task){(u16)p, TASK_B, i};
    pn->seqs[p] = (task_seq){n, t};
  }
  return true;
}
