// input.c - a job as replay takes it: what every process did, and which communications belong together.
#include "diagnose/diagnose.h"
#include <stdlib.h>

// ---- steps ----------------------------------------------------------------------------------------------
// The first and the last number of "3" or "3-5,8". False: it is no list of steps.
static bool read_steps(const char *s, u32 *least, u32 *most) {
  *least = TRACE_NONE, *most = 0;
  for (const char *p = s;; p++) {
    char *end;
    if (*p < '0' || *p > '9') return false;
    const unsigned long from = strtoul(p, &end, 10);
    unsigned long to = from;
    if (*end == '-') {
      if (end[1] < '0' || end[1] > '9') return false;
      to = strtoul(end + 1, &end, 10);
    }
    if (to < from || to >= TRACE_NONE) return false;
    *least = MIN(*least, (u32)from), *most = MAX(*most, (u32)to);
    if (!*end) return true;
    if (*(p = end) != ',') return false;
  }
}

static bool window_of(job *j, const trace *t, const job_file *f, u32 least, u32 most, i64 *from, i64 *to) {
  u32 lo = TRACE_NONE, hi = 0;
  *from = INT64_MAX, *to = INT64_MIN;
  for (u32 e = 0; e < t->n; e++) {
    if (t->is[e] != TRACE_STEP || t->step[e] == TRACE_NONE || t->lanes.v[t->lane[e]].device) continue;
    lo = MIN(lo, t->step[e]), hi = MAX(hi, t->step[e]);
    if (t->step[e] < least || t->step[e] > most) continue;
    *from = MIN(*from, t->start_ps[e]), *to = MAX(*to, t->start_ps[e] + MAX(t->dur_ps[e], 0));
  }
  if (*from < *to) return true;
  const loc at = loc_node(j->c, sym_of(j->c, f->path), (sym){0}, (sym){0});
  if (lo == TRACE_NONE)
    diag(j->c, E_TRACE, at, "the trace has no steps");
  else
    diag(j->c, E_TRACE, at, "step %u is not in the trace: it has steps %u to %u", least, lo, hi);
  if (lo != TRACE_NONE) diag_hint(j->c, "--steps %u", lo);
  return false;
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
  u32 least = 0, most = TRACE_NONE;
  if (steps && !read_steps(steps, &least, &most)) {
    diag(j->c, E_USAGE, (loc){0}, "--steps: '%s' is no list of steps", steps);
    diag_hint(j->c, "--steps 3, or --steps 3-5");
    return false;
  }
  job_work **w = NEWN(j->a, job_work *, j->n + 1);
  *out = (job_input){.replay = {.n = 0, .w = w}, .file = NEWN(j->a, u32, j->n + 1)};
  for (u32 k = 0; k < j->n; k++) {
    const trace *t = job_load(j, k, 0);
    if (!t) return false;
    i64 from = INT64_MIN, to = INT64_MAX;
    if (steps && !window_of(j, t, &j->file[k], least, most, &from, &to)) return false;
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
