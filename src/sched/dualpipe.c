// dualpipe.c - a forward beside a backward, of pipelines that run through the places in opposite directions: DualPipe
// (DeepSeek-AI, 2024) of two replicas, and DualPipeV, which is half of it with the other half folded back: two chunks
// in a V. Both in the steps of DeepSeek's library, DualPipeV's also those of PyTorch's ScheduleDualPipeV.
//
// Idea: what a place sees of either is the same. There are `deep` places from an end to the middle, where the
// two directions meet; a place is `from` places away from its nearer end. Way 0 is the direction that begins at that
// end, way 1 the other one.
#include "sched/internal.h"

typedef struct {
  const sched_shape *s;
  u32 deep, from, micro; // micro: of each way
  u16 stage[2];          // by way
  u8 replica[2];
  bool split; // backwards are in two parts from here on
  sched_task *t;
  const sched_task *due; // before it no I is without its W
  u32 nf[2], nb[2];      // by way
} writer;

static void put(writer *x, task_kind kind, u32 way, u32 mb) {
  *x->t++ = (sched_task){.stage = x->stage[way], .kind = (u8)kind, .replica = x->replica[way], .mb = mb};
}

static void put_f(writer *x, u32 way) { put(x, TASK_F, way, x->nf[way]++); }

static void put_b(writer *x, u32 way) {
  if (x->s->backward) put(x, x->split ? TASK_I : TASK_B, way, x->nb[way]++);
}

// W of the first I that has none; false: there is no such I.
static bool put_w(writer *x) {
  while (x->due < x->t && x->due->kind != TASK_I) x->due++;
  if (x->due == x->t) return false;
  sched_task w = *x->due++;
  w.kind = TASK_W;
  *x->t++ = w;
  return true;
}

static void put_pair(writer *x, u32 f, u32 b) {
  put_f(x, f);
  x->t[-1].paired = x->s->paired && x->s->backward;
  put_b(x, b);
}

static sched_task *fill(writer *x) {
  const u32 left = x->deep - 1 - x->from, own = x->from + 1;
  for (u32 k = 0; k < 2 * left; k++) put_f(x, 0);
  for (u32 k = 0; k < own; k++) put_f(x, 0), put_f(x, 1);
  x->split = true;
  for (u32 k = 0; k < left; k++) put_b(x, 1), put_w(x), put_f(x, 1);
  x->split = false;
  for (u32 k = 0; k < x->micro - 2 * x->deep + own; k++) {
    if (k || left)
      put_pair(x, 0, 1);
    else
      put_f(x, 0), put_b(x, 1); // in the middle the backward needs that forward's way
    put_pair(x, 1, 0);
  }
  for (u32 k = 0; k < left; k++) put_b(x, 1), put_pair(x, 1, 0);
  for (u32 k = 0; k < own; k++) {
    const bool half = k == own / 2;
    // With one place on the way all of it, so that both ways have backwards in two parts.
    x->split |= half && (own % 2 == 0 || x->deep == 1);
    put_b(x, 1);
    x->split |= half;
    put_b(x, 0);
  }
  for (u32 k = 0; k < left; k++) put_w(x), put_b(x, 0);
  while (put_w(x)) {}
  return x->t;
}

sched_task *fill_dualpipev(const sched_shape *s, u32 place, sched_task *t) {
  writer x = {.s = s, .deep = s->places, .from = place, .micro = s->micro, .t = t, .due = t};
  x.stage[0] = (u16)place, x.stage[1] = (u16)(2 * s->places - 1 - place);
  return fill(&x);
}

sched_task *fill_dualpipe(const sched_shape *s, u32 place, sched_task *t) {
  const u32 back = s->places - 1 - place, up = place > back; // its nearer end is the last place
  writer x = {
      .s = s, .deep = s->places / 2, .from = MIN(place, back), .micro = s->micro / 2, .t = t, .due = t};
  x.replica[0] = (u8)up, x.replica[1] = (u8)!up;
  x.stage[up] = (u16)place, x.stage[!up] = (u16)back; // of the first replica, of the second
  return fill(&x);
}
