// input.c - a job as replay takes it: what every process did, and which communications belong together.
#include "diagnose/diagnose.h"
#include <stdlib.h>

// From the start of the first step that was asked for to the end of the last. False and a diagnostic: there is none.
static bool window_of(job *j, const trace *t, const char *steps, i64 *from, i64 *to) {
  arena *tmp = arena_new();
  const job_steps *s = steps_of(tmp, t, 0);
  bool *chosen = ZNEWN(tmp, bool, s->n + 1);
  const bool ok = steps_choose(j->c, steps, s, chosen);
  *from = INT64_MAX, *to = INT64_MIN;
  for (u32 k = 0; ok && k < s->n; k++)
    if (chosen[k]) *from = MIN(*from, s->step[k].start_ps), *to = MAX(*to, s->step[k].end_ps);
  arena_free(tmp);
  return ok;
}

// ---- communications -------------------------------------------------------------------------------------
typedef struct {
  u64 key; // of the group and stream
  u32 process, op;
  i64 turn; // its number in its group
} member;
static int by_turn(const void *x, const void *y) {
  const member *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  if (a->turn != b->turn) return a->turn < b->turn ? -1 : 1;
  return a->process < b->process ? -1 : a->process > b->process;
}

static void match(job *j, job_input *in, job_work **w) {
  arena *tmp = arena_new();
  VEC(member) m = {0};
  replay_input *r = &in->replay;
  for (u32 p = 0; p < r->n; p++) {
    u32 *turn = ZNEWN(tmp, u32, w[p]->nstreams + 1);
    for (u32 k = 0; k < w[p]->nops; k++) {
      const work_op *o = &w[p]->op[k];
      if (!o->comm) continue;
      const u64 key = o->group.i ? hash_u64(o->group.i, 7) : hash_u64(o->name.i, 3);
      *vec_push(tmp, &m) = (member){key, p, k, o->seq >= 0 ? o->seq : turn[o->stream]++};
    }
  }
  qsort(m.v, m.n, sizeof *m.v, by_turn);
  u32 **coll = NEWN(j->a, u32 *, r->n + 1);
  for (u32 p = 0; p < r->n; p++) coll[p] = ZNEWN(j->a, u32, w[p]->nops + 1);
  for (u32 k = 0, end; k < m.n; k = end) {
    for (end = k + 1; end < m.n && m.v[end].key == m.v[k].key && m.v[end].turn == m.v[k].turn;) end++;
    if (end - k < 2) {
      in->lone++;
      continue;
    }
    r->ncolls++;
    for (u32 i = k; i < end; i++) coll[m.v[i].process][m.v[i].op] = r->ncolls;
  }
  r->coll = coll;
  arena_free(tmp);
}

// ---- all of it ------------------------------------------------------------------------------------------
bool job_input_of(job *j, const char *steps, job_input *out) {
  job_work **w = NEWN(j->a, job_work *, j->n + 1);
  *out = (job_input){.replay = {.n = 0, .w = w}, .file = NEWN(j->a, u32, j->n + 1)};
  for (u32 k = 0; k < j->n; k++) {
    const trace *t = job_load(j, k, 0);
    if (!t) return false;
    i64 from = INT64_MIN, to = INT64_MAX;
    if (steps && !window_of(j, t, steps, &from, &to)) return false;
    job_work *x = job_work_of(j->c, j->a, t, from, to);
    x->rank = job_rank(j, k);
    job_unload(j, k);
    for (u32 p = 0; p < out->replay.n; p++) {
      if (x->rank == TRACE_NONE || w[p]->rank != x->rank) continue;
      diag(j->c, E_TRACE, (loc){0}, "%s and %s are both of rank %u", j->file[out->file[p]].path,
           j->file[k].path, x->rank);
      return false;
    }
    out->file[out->replay.n] = k;
    w[out->replay.n++] = x;
  }
  u64 ops = 0;
  for (u32 p = 0; p < out->replay.n; p++) ops += w[p]->nops;
  if (!ops) {
    diag(j->c, E_TRACE, (loc){0}, "no operation on a device whose launch is in the trace");
    diag_hint(j->c,
              "record activities of the device and of the host, such as CPU and CUDA of PyTorch's profiler");
    return false;
  }
  match(j, out, w);
  return true;
}
