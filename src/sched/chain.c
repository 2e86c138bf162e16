// chain.c - the line of a schedule of the usual form, by counting steps: stages in a chain, each on one place,
// one task at a time, senders that never wait. The same line as merge.c makes, which knows every form and tells
// what waits for what in a deadlock.
//
// Idea: time goes on by one step for all places. In each the next task of every place is looked at once: what
// it needs is one task of another stage and one of its own, and a byte tells whether these have run. So a line
// costs what its tasks and the idle steps of places cost, with no lists of who waits.
#include "sched/internal.h"

bool chain_is(const sched *s) {
  if (s->nreplicas != 1 || npasses_of(s) != 1 || s->forward || s->nedges != s->nstages - 1) return false;
  for (u32 k = 0; k < s->nstages; k++)
    if (s->at[k].n != 1) return false;
  for (u32 k = 0; k < s->nedges; k++)
    if (s->edge[k].from != k || s->edge[k].to != k + 1 || s->edge[k].no_gradient) return false;
  return true;
}

typedef struct {
  u32 place, at; // the next task is seq[place].v[at]
} turn;

static const u8 bit[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = 2, [TASK_I] = 2, [TASK_W] = 4};

// Has what the task needs run? ran: by stage and microbatch, 1: forward, 2: backward, 4: W.
static inline bool ready(const u8 *ran, const sched_task *t, u32 last, size_t K) {
  const u8 *own = ran + t->stage * K + t->mb;
  if (t->kind == TASK_F) return !t->stage || own[-(ptrdiff_t)K] & 1;
  if (t->kind == TASK_W) return *own & 2;
  return *own & 1 && (t->stage == last || own[K] & 2);
}

// In what order places go on does not matter to whether all of them end.
bool chain_ends(arena *a, const sched *s, bool *fits) {
  const size_t K = s->nmicro;
  const arena_mark_t mark = arena_mark(a);
  u8 *ran = ZNEWN(a, u8, s->nstages * K);
  u32 *at = ZNEWN(a, u32, s->nplaces + 1);
  u64 left = 0, had = 0;
  for (u32 p = 0; p < s->nplaces; p++) left += s->seq[p].n;
  *fits = true;
  while (left != had) {
    had = left;
    for (u32 p = 0; p < s->nplaces; p++) {
      const sched_seq *seq = &s->seq[p];
      u32 i = at[p];
      for (; i < seq->n && ready(ran, &seq->v[i], s->nstages - 1, K); i++) {
        const sched_task *t = &seq->v[i];
        *fits &= !t->paired;
        ran[t->stage * K + t->mb] |= bit[t->kind];
      }
      left -= i - at[p], at[p] = i;
    }
  }
  arena_release(a, mark);
  return !left && *fits;
}

bool chain_run(arena *a, const sched *s, sched_slot *v, u32 *nsteps, bool *fits) {
  const size_t K = s->nmicro;
  arena_mark_t mark = arena_mark(a);
  u8 *ran = ZNEWN(a, u8, s->nstages * K);
  turn *place = NEWN(a, turn, s->nplaces);
  u32 n = s->nplaces, put = 0, step = 0;
  for (u32 p = 0; p < n; p++) place[p] = (turn){p, 0};
  *fits = true;
  sched_slot *now = NEWN(a, sched_slot, n); // of this step
  for (bool any = true; n && any; step++) {
    u32 nnow = 0, left = 0;
    for (u32 k = 0; k < n; k++) {
      turn x = place[k];
      const sched_seq *seq = &s->seq[x.place];
      if (x.at < seq->n && ready(ran, &seq->v[x.at], s->nstages - 1, K)) {
        *fits &= !seq->v[x.at].paired;
        now[nnow++] = (sched_slot){x.place, x.at++, step};
      }
      if (x.at < seq->n) place[left++] = x;
    }
    for (u32 k = 0; k < nnow; k++) {
      const sched_task *t = &s->seq[now[k].place].v[now[k].index];
      ran[t->stage * K + t->mb] |= bit[t->kind];
      v[put + k] = now[k];
    }
    put += nnow, any = nnow, n = left;
  }
  *nsteps = step;
  arena_release(a, mark);
  return !n && *fits;
}
