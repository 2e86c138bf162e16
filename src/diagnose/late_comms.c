// late_comms.c - waiting and transfer of the communications of a job, as recorded, summed up by operation. What waits how long
// match.c has found.
#include "diagnose/diagnose.h"
#include <stdlib.h>

static int by_wait(const void *x, const void *y) {
  const late_comm *a = x, *b = y;
  if (a->wait_ps != b->wait_ps) return a->wait_ps > b->wait_ps ? -1 : 1;
  return a->op.i < b->op.i ? -1 : a->op.i > b->op.i;
}

u32 late_comms(const replay *r, arena *a, late_comm **out) {
  const replay_input *in = replay_input_of(r);
  arena *tmp = arena_new();
  VEC(late_comm) v = {0};
  VEC(u32 *) last = {0}; // by comm: how often each process came last
  for (u32 c = 1; c <= in->ncolls; c++) {
    const replay_meeting *m = &in->meet[c];
    u32 k = 0;
    while (k < v.n && v.v[k].op.i != m->op.i) k++;
    if (k == v.n)
      *vec_push(a, &v) = (late_comm){.op = m->op, .last = TRACE_NONE},
                   *vec_push(tmp, &last) = ZNEWN(tmp, u32, in->n + 1);
    late_comm *x = &v.v[k];
    x->count++, x->transfer_ps += m->transfer_ps, x->wait_ps += m->wait_ps;
    x->longest_ps = MAX(x->longest_ps, m->longest_ps);
    if (m->ahead_ps <= in->within_ps) continue;
    if (++last.v[k][m->process] > x->times) x->times = last.v[k][m->process], x->last = m->process;
  }
  if (v.n) qsort(v.v, v.n, sizeof *v.v, by_wait);
  arena_free(tmp);
  *out = v.v;
  return v.n;
}
