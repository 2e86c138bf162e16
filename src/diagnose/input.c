// input.c - a job as replay takes it: what every process did, and which communications belong together.
#include "diagnose/diagnose.h"
#include <stdlib.h>

// From the start of the first step that was asked for to the end of the last. False and a diagnostic: there is none.
static bool window_of(job *j, const trace *t, u32 process, const char *steps, i64 *from, i64 *to) {
  arena *tmp = arena_new();
  const job_steps *s = steps_of(tmp, t, process);
  bool *chosen = ZNEWN(tmp, bool, s->n + 1);
  const bool ok = steps_choose(j->c, steps, s, chosen);
  *from = INT64_MAX, *to = INT64_MIN;
  for (u32 k = 0; ok && k < s->n; k++)
    if (chosen[k]) *from = MIN(*from, s->step[k].start_ps), *to = MAX(*to, s->step[k].end_ps);
  arena_free(tmp);
  return ok;
}

// ---- all of it ------------------------------------------------------------------------------------------
typedef struct {
  VEC(job_work *) work;
  VEC(u32) file, process; // of it
} works;

// Every process of a file.
static bool add_file(job *j, u32 k, const char *steps, match *m, works *x) {
  const trace *t = job_load(j, k, 0);
  bool ok = t;
  for (u32 p = 0; ok && p < t->processes.n; p++) {
    i64 from = INT64_MIN, to = INT64_MAX;
    ok = !steps || window_of(j, t, p, steps, &from, &to);
    if (!ok) break;
    job_work *w = job_work_of(j->c, j->a, t, p, from, to);
    if (!w->nops && t->processes.n > 1) continue;
    if (t->processes.n == 1) w->rank = job_rank(j, k);
    for (u32 i = 0; ok && i < x->work.n; i++) {
      if (w->rank == TRACE_NONE || x->work.v[i]->rank != w->rank) continue;
      diag(j->c, E_TRACE, (loc){0}, "%s and %s are both of rank %u", j->file[x->file.v[i]].path,
           j->file[k].path, w->rank);
      ok = false;
    }
    *vec_push(j->a, &x->work) = w, *vec_push(j->a, &x->file) = k, *vec_push(j->a, &x->process) = p;
  }
  if (ok) match_add(m, t, k, job_rank(j, k));
  if (t) job_unload(j, k);
  return ok;
}

static u64 event_hash(u32 file, u32 event) {
  return hash_u64((u64)file << 32 | event, 1);
} // no two are equal

// A communication counts if all of its members are in what is replayed.
static void put_colls(job *j, job_input *in, const match *m, const works *x) {
  replay_input *r = &in->replay;
  arena *tmp = arena_new();
  u32 **coll = NEWN(j->a, u32 *, r->n + 1), total = 0;
  hmap op = {0};     // of file and event: where it is, + 1
  VEC(u32) at = {0}; // pairs: process, op
  for (u32 p = 0; p < r->n; p++) {
    const job_work *w = x->work.v[p];
    coll[p] = ZNEWN(j->a, u32, w->nops + 1);
    for (u32 k = 0; k < w->nops; k++) {
      if (!w->op[k].comm) continue;
      total++;
      hmap_add(tmp, &op, event_hash(x->file.v[p], w->op[k].event), at.n + 1);
      *vec_push(tmp, &at) = p, *vec_push(tmp, &at) = k;
    }
  }
  for (u32 k = 0; k < m->row.n; k++) {
    const match_row *row = &m->row.v[k];
    const match_member *v = &m->member.v[row->first];
    u32 here = 0;
    for (u32 i = 0; i < row->n; i++) here += hmap_get(&op, event_hash(v[i].file, v[i].event)) > 0;
    if (row->n < 2 || here < row->n) continue;
    r->ncolls++, total -= row->n;
    for (u32 i = 0; i < row->n; i++) {
      const u32 *of = &at.v[hmap_get(&op, event_hash(v[i].file, v[i].event)) - 1];
      coll[of[0]][of[1]] = r->ncolls;
    }
  }
  in->lone = total;
  r->coll = coll;
  arena_free(tmp);
}

bool job_input_of(job *j, const char *steps, job_input *out) {
  match *m = match_new(j->c, j->a);
  works x = {.work = {0}};
  *out = (job_input){.lone = 0};
  for (u32 k = 0; k < j->n; k++)
    if (!add_file(j, k, steps, m, &x)) return false;
  u64 ops = 0;
  for (u32 p = 0; p < x.work.n; p++) ops += x.work.v[p]->nops;
  if (!ops) {
    diag(j->c, E_TRACE, (loc){0}, "no operation on a device whose launch is in the trace");
    diag_hint(j->c,
              "record activities of the device and of the host, such as CPU and CUDA of PyTorch's profiler");
    return false;
  }
  match_finish(m);
  out->replay.n = x.work.n, out->replay.w = x.work.v, out->file = x.file.v;
  put_colls(j, out, m, &x);
  return true;
}
