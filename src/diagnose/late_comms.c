// late_comms.c - waiting split from transfer in the communications of a job, as recorded.
#include "diagnose/diagnose.h"
#include <stdlib.h>

typedef struct {
  sym op;
  i64 last_ps, second_ps, ends_ps; // latest start, and the one before it; earliest end
  i64 starts_ps, first_ps;         // sum of starts; earliest start
  u32 members, late;
} meeting;

static int by_wait(const void *x, const void *y) {
  const late_comm *a = x, *b = y;
  if (a->wait_ps != b->wait_ps) return a->wait_ps > b->wait_ps ? -1 : 1;
  return a->op.i < b->op.i ? -1 : a->op.i > b->op.i;
}

static void add_member(meeting *m, const work_op *o, i64 start, u32 process) {
  if (!m->members)
    *m = (meeting){.op = o->comm_op.i ? o->comm_op : o->name,
                   .last_ps = INT64_MIN,
                   .second_ps = INT64_MIN,
                   .ends_ps = INT64_MAX,
                   .first_ps = INT64_MAX,
                   .late = process};
  m->second_ps = MAX(m->second_ps, MIN(start, m->last_ps));
  if (start > m->last_ps) m->last_ps = start, m->late = process;
  m->first_ps = MIN(m->first_ps, start), m->ends_ps = MIN(m->ends_ps, start + o->dur_ps);
  m->starts_ps += start, m->members++;
}

u32 late_comms(const replay *r, arena *a, late_comm **out) {
  const replay_input *in = replay_input_of(r);
  arena *tmp = arena_new();
  meeting *m = ZNEWN(tmp, meeting, in->ncolls + 1);
  VEC(late_comm) v = {0};
  VEC(u32 *) last = {0}; // by comm: how often each process came last
  for (u32 p = 0; in->coll && p < in->n; p++)
    for (u32 k = 0; k < in->w[p]->nops; k++) {
      const work_op *o = &in->w[p]->op[k];
      if (in->coll[p][k])
        add_member(&m[in->coll[p][k]], o, o->start_ps - in->w[p]->start_ps + replay_start_of(r, p), p);
    }
  for (u32 c = 1; c <= in->ncolls; c++) {
    u32 k = 0;
    while (k < v.n && v.v[k].op.i != m[c].op.i) k++;
    if (k == v.n)
      *vec_push(a, &v) = (late_comm){.op = m[c].op, .last = TRACE_NONE},
                   *vec_push(tmp, &last) = ZNEWN(tmp, u32, in->n + 1);
    late_comm *x = &v.v[k];
    x->count++, x->transfer_ps += MAX(m[c].ends_ps - m[c].last_ps, 0);
    x->wait_ps += m[c].last_ps * m[c].members - m[c].starts_ps;
    x->longest_ps = MAX(x->longest_ps, m[c].last_ps - m[c].first_ps);
    if (m[c].second_ps > INT64_MIN && m[c].last_ps - m[c].second_ps <= in->apart_ps) continue;
    if (++last.v[k][m[c].late] > x->times) x->times = last.v[k][m[c].late], x->last = m[c].late;
  }
  if (v.n) qsort(v.v, v.n, sizeof *v.v, by_wait);
  arena_free(tmp);
  *out = v.v;
  return v.n;
}
