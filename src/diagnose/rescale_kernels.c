// rescale_kernels.c - jobs of kernels with more data ranks: what rescale.c does for pipelined ones, on a replay of all
// processes. Every process of the recording is a data rank.
//
// Idea: arrivals at a communication are starts of its members in a replay of the recording. Delays are pooled over all
// communications of one kernel, and what the last member comes later is added to the transfer of all of them.
#include "diagnose/diagnose.h"
#include "machine/machine.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
  u32 n; // members
  const char *op;
  sym name;
  double mean, most; // of arrivals; the latest, relative to the mean
  i64 transfer_ps;   // of the fastest member
  double ratio, late_ps;
} meeting;
typedef struct {
  sym name;
  VEC(double) delay;
} pool;
typedef struct {
  ctx *c;
  arena *a, *tmp;
  const replay_input *in;
  meeting *meet; // by number of the communication
  VEC(pool) pools;
  i64 **start;
} rescaling;

static pool *pool_of(rescaling *x, sym name) {
  for (u32 k = 0; k < x->pools.n; k++)
    if (x->pools.v[k].name.i == name.i) return &x->pools.v[k];
  pool *p = vec_push(x->tmp, &x->pools);
  *p = (pool){.name = name};
  return p;
}

static void take_meetings(rescaling *x, const replay_times *t) {
  const replay_input *in = x->in;
  x->meet = ZNEWN(x->tmp, meeting, in->ncolls + 1);
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 p = 0; p < in->n; p++)
      for (u32 k = 0; k < in->w[p]->nops; k++) {
        const work_op *o = &in->w[p]->op[k];
        meeting *m = &x->meet[in->coll[p][k]];
        if (!in->coll[p][k]) continue;
        const double at = (double)x->start[p][k];
        if (pass) {
          m->most = fmax(m->most, at - m->mean / m->n);
          *vec_push(x->tmp, &pool_of(x, o->name)->delay) = (at - m->mean / m->n);
          continue;
        }
        m->transfer_ps = m->n ? MIN(m->transfer_ps, t->op[p][k]) : t->op[p][k];
        m->n++, m->mean += at, m->most = -INFINITY;
        m->name = o->name, m->op = sym_str(x->c, o->comm_op);
      }
}

// Every communication must be one of all processes: which of several groups would grow cannot be told.
static bool all_grow(const rescaling *x) {
  for (u32 k = 1; k <= x->in->ncolls; k++) {
    const bool message = !strcmp(x->meet[k].op, "send") || !strcmp(x->meet[k].op, "recv");
    if (x->meet[k].n == x->in->n && !message) continue;
    if (message)
      diag(x->c, E_TRACE, (loc){0},
           "a message (%s) goes from one rank to another: ranks are no copies of each other",
           sym_str(x->c, x->meet[k].name));
    else
      diag(x->c, E_TRACE, (loc){0},
           "a communication (%s) has %u of %u ranks: which groups are of data parallelism is not known",
           sym_str(x->c, x->meet[k].name), x->meet[k].n, x->in->n);
    diag_hint(x->c, "rescale takes pipelined timelines, and jobs whose ranks all communicate with all");
    return false;
  }
  if (x->in->ncolls && x->in->n > 1) return true;
  diag(x->c, E_TRACE, (loc){0},
       "no communication between recorded ranks: how they wait for each other is not known");
  diag_hint(x->c, "name the recordings of all ranks");
  return false;
}

// members: that communications had, recorded or not.
static bool set_meetings(rescaling *x, const machine *m, u32 members, u32 ranks) {
  const u32 size[2] = {members, ranks};
  u32 *place[2];
  for (u32 w = 0; w < 2; w++) {
    place[w] = NEWN(x->a, u32, size[w]);
    for (u32 k = 0; k < size[w]; k++) place[w][k] = k;
  }
  rescale_model *k = rescale_model_new(x->c, x->a, m, size, 1, (const u32 *const *)place);
  if (!k) return false;
  for (u32 i = 0; i < x->pools.n; i++)
    qsort(x->pools.v[i].delay.v, x->pools.v[i].delay.n, sizeof(double), ascending_double);
  for (u32 i = 1; i <= x->in->ncolls; i++) {
    meeting *y = &x->meet[i];
    const pool *p = pool_of(x, y->name);
    if ((y->ratio = rescale_ratio(k, y->op, -1, y->transfer_ps)) < 0) return false;
    y->late_ps = rescale_expected(p->delay.v, p->delay.n, y->most, ranks - members) - y->most;
  }
  return true;
}

static double replayed(rescaling *x, replay *r, const replay_times *t, bool transfers, bool late) {
  const replay_times now = replay_recorded(r, x->tmp);
  for (u32 p = 0; p < x->in->n; p++)
    for (u32 k = 0; k < x->in->w[p]->nops; k++) {
      const meeting *m = &x->meet[x->in->coll[p][k]];
      if (!x->in->coll[p][k]) continue;
      const double ps = (double)t->op[p][k] * (transfers ? m->ratio : 1) + (late ? m->late_ps : 0);
      now.op[p][k] = (i64)(ps + 0.5);
    }
  return (double)replay_run(r, &now, NULL, NULL);
}

static void put_rows(rescaling *x, u32 members, u32 ranks, job_rescale *out) {
  rescale_row *v = ZNEWN(x->a, rescale_row, x->pools.n + 1);
  u64 draws = 0;
  for (u32 i = 0; i < x->pools.n; i++) {
    v[i] = (rescale_row){.name = sym_str(x->c, x->pools.v[i].name), .from = members, .to = ranks};
    draws += x->pools.v[i].delay.n;
    for (u32 k = 1; k <= x->in->ncolls; k++) {
      const meeting *m = &x->meet[k];
      if (m->name.i != x->pools.v[i].name.i) continue;
      v[i].count++, v[i].before_ps += (double)m->transfer_ps,
          v[i].after_ps += (double)m->transfer_ps * m->ratio;
      v[i].late_ps += m->late_ps;
    }
    const double n = MAX(v[i].count, 1);
    v[i].before_ps /= n, v[i].after_ps /= n, v[i].late_ps /= n;
  }
  out->n = x->pools.n, out->row = v, out->draws = (u32)(draws / MAX(x->pools.n, 1));
}

// Ranks of the job, of which some may not be recorded; 0: the file does not say.
static u32 world_of(job *j, u32 file) {
  const trace *t = job_load(j, file, 1 << TRACE_STEP);
  const u32 n = t && t->processes.n ? t->processes.v[0].world_size : 0;
  if (t) job_unload(j, file);
  return n;
}

static bool kernels_rescale(job *j, const char *steps, u32 ranks, const machine *m, arena *a,
                            job_rescale *out) {
  job_input in;
  if (!job_input_of(j, steps, &in)) return false;
  const u32 n = in.replay.n, world = world_of(j, in.file[0]), members = MAX(world, n);
  if (ranks < members) {
    diag(j->c, E_USAGE, (loc){0}, "--ranks %u: the job has %u ranks already", ranks, members);
    diag_hint(j->c, "--ranks %u", 2 * members);
    return false;
  }
  replay *r = replay_new(j->c, a, &in.replay);
  if (!r) return false;
  rescaling x = {.c = j->c, .a = a, .tmp = arena_new(), .in = replay_input_of(r)};
  const replay_times t = replay_recorded(r, x.tmp);
  x.start = NEWN(x.tmp, i64 *, n + 1);
  i64 first = INT64_MAX, last = INT64_MIN;
  for (u32 p = 0; p < n; p++) {
    const job_work *w = in.replay.w[p];
    const i64 off = (w->base_ns - in.replay.w[0]->base_ns) * 1000;
    x.start[p] = NEWN(x.tmp, i64, w->nops + 1);
    first = MIN(first, off + w->start_ps);
    for (u32 k = 0; k < w->nops; k++) last = MAX(last, off + w->op[k].start_ps + w->op[k].dur_ps);
  }
  *out = (job_rescale){
      .ranks = {members, ranks}, .data = {members, ranks}, .recorded_ps = (double)(last - first)};
  out->replayed_ps = (double)replay_run(r, &t, x.start, NULL);
  take_meetings(&x, &t);
  const bool ok = all_grow(&x) && set_meetings(&x, m, members, ranks);
  if (ok) {
    out->transfer_ps = replayed(&x, r, &t, true, false), out->late_ps = replayed(&x, r, &t, false, true);
    out->predicted_ps = replayed(&x, r, &t, true, true);
    put_rows(&x, members, ranks, out);
  }
  arena_free(x.tmp);
  return ok;
}

bool job_rescale_of(job *j, const char *steps, u32 ranks, const machine *m, arena *a, job_rescale *out) {
  const job_kind is = job_kind_of(j);
  if (is == JOB_MIXED) return false;
  if (is == JOB_KERNELS) return kernels_rescale(j, steps, ranks, m, a, out);
  const straggler *s = straggler_of_job(j, a, steps);
  return s && straggler_rescale(j->c, a, s, ranks, m,
                                loc_node(j->c, sym_of(j->c, j->file[0].path), (sym){0}, (sym){0}), out);
}
