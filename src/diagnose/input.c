// input.c - a job as replay takes it: what every process did, and which communications belong together.
#include "diagnose/internal.h"
#include <stdlib.h>

// From the start of the first step that was asked for to the end of the last. False and a diagnostic: there is none.
static bool window_of(job *j, u32 file, const trace *t, u32 process, const char *steps, i64 *from, i64 *to) {
  arena *tmp = arena_new();
  const job_steps *s = steps_of(tmp, t, process);
  bool *chosen = ZNEWN(tmp, bool, s->n + 1);
  bool ok = steps_choose(j->c, steps, s, chosen, j->file[file].path);
  u32 first = 0, last = s->n;
  while (ok && !chosen[first]) first++;
  while (ok && !chosen[last - 1]) last--;
  for (u32 k = first; ok && k < last; k++) {
    if (chosen[k]) continue;
    diag(j->c, E_USAGE, (loc){0}, "--steps %s leaves out step %u: a replay takes one stretch of steps", steps,
         s->step[k].number);
    diag_hint(j->c, "--steps %u-%u", s->step[first].number, s->step[last - 1].number);
    ok = false;
  }
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
  VEC(i64) first, last;   // of all that its process has recorded, not of the steps alone
} works;

static void extent_of(const trace *t, u32 process, i64 *first, i64 *last) {
  *first = INT64_MAX, *last = INT64_MIN;
  for (u32 e = 0; e < t->n; e++) {
    if (t->lanes.v[t->lane[e]].process != process) continue;
    *first = MIN(*first, t->start_ps[e]), *last = MAX(*last, t->start_ps[e] + MAX(t->dur_ps[e], 0));
  }
}

// Every process of a file.
static bool add_file(job *j, u32 k, const char *steps, match *m, works *x) {
  const trace *t = job_load(j, k, 0);
  bool ok = t;
  for (u32 p = 0; ok && p < t->processes.n; p++) {
    i64 from = INT64_MIN, to = INT64_MAX;
    ok = !steps || window_of(j, k, t, p, steps, &from, &to);
    if (!ok) break;
    job_work *w = job_work_of(j->c, j->a, t, p, from, to);
    if (!w->nops && t->processes.n > 1) continue;
    if (t->processes.n == 1) w->rank = job_rank(j, k);
    for (u32 i = 0; ok && i < x->work.n; i++) {
      if (w->rank == TRACE_NONE || x->work.v[i]->rank != w->rank) continue;
      diag(j->c, E_TRACE, (loc){0}, "%s and %s are both of rank %u", j->file[x->file.v[i]].path,
           j->file[k].path, w->rank);
      diag_hint(j->c, "name one file of every rank, all of one run and of the same recorded steps");
      ok = false;
    }
    i64 first, last;
    extent_of(t, p, &first, &last);
    *vec_push(j->a, &x->first) = first, *vec_push(j->a, &x->last) = last;
    *vec_push(j->a, &x->work) = w, *vec_push(j->a, &x->file) = k, *vec_push(j->a, &x->process) = p;
  }
  if (ok) match_add(m, t, k, job_rank(j, k));
  if (t) job_unload(j, k);
  return ok;
}

// What must be said of a communication that counts: members that were not recorded, clocks that cannot be right.
static void note_row(ctx *c, job_input *in, const match_row *row, const match_member *v) {
  const bool all = comm_who_of(c, row->op) == COMM_WHO_FOR_ALL;
  i64 worst = 0, first = INT64_MAX, last = INT64_MIN;
  in->partial += row->size > row->n;
  for (u32 i = 0; all && i < row->n; i++) {
    worst = MAX(worst, -v[i].transfer_ps);
    first = MIN(first, v[i].transfer_ps), last = MAX(last, v[i].transfer_ps); // from one moment on
  }
  if (all) in->nends++, in->ends_ps += last - first;
  in->violated += worst > 0, in->worst_ps = MAX(in->worst_ps, worst);
}

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
  replay_meeting *meet = ZNEWN(j->a, replay_meeting, m->row.n + 1);
  for (u32 k = 0; k < m->row.n; k++) {
    const match_row *row = &m->row.v[k];
    const match_member *v = &m->member.v[row->first];
    u32 here = 0;
    for (u32 i = 0; i < row->n; i++) here += hmap_get(&op, event_hash(v[i].file, v[i].event)) > 0;
    if (row->n < 2 || here < row->n || (row->size && row->n > row->size))
      continue; // more: groups of one name
    assert(at.v);
    note_row(j->c, in, row, v);
    replay_meeting *y = &meet[++r->ncolls];
    total -= row->n;
    *y = (replay_meeting){
        .op = row->op.i ? row->op : row->name, .ahead_ps = row->ahead_ps, .transfer_ps = INT64_MAX};
    for (u32 i = 0; i < row->n; i++) {
      const u32 *of = &at.v[hmap_get(&op, event_hash(v[i].file, v[i].event)) - 1];
      coll[of[0]][of[1]] = r->ncolls;
      if (i == row->late) y->process = of[0], y->late_op = of[1];
      y->wait_ps += v[i].wait_ps, y->longest_ps = MAX(y->longest_ps, v[i].wait_ps);
      y->transfer_ps = MIN(y->transfer_ps, MAX(v[i].transfer_ps, 0));
    }
  }
  in->lone = total;
  r->coll = coll, r->meet = meet;
  arena_free(tmp);
}

// Have the first process and p recorded some instant together, if they have recorded anything?
static bool recorded_together(const works *x, u32 p) {
  if (!x->work.v[0]->nitems || !x->work.v[p]->nitems) return true;
  const i64 ps = (x->work.v[p]->base_ns - x->work.v[0]->base_ns) * 1000; // below five days
  return x->first.v[0] <= x->last.v[p] + ps && x->first.v[p] + ps <= x->last.v[0];
}

// Do the steps that were asked for, on one clock?
static bool meet(const job_work *x, const job_work *y) {
  if (!x->nitems || !y->nitems) return true;
  const i64 ps = (y->base_ns - x->base_ns) * 1000;
  const i64 x_end = x->item[x->nitems - 1].end_ps, y_end = y->item[y->nitems - 1].end_ps;
  return x->start_ps <= y_end + ps && y->start_ps + ps <= x_end;
}

// Ranks of one run wait for each other: no replay can say anything of recordings that lie apart.
static bool apart(job *j, const works *x, u32 p) {
  diag(j->c, E_TRACE, loc_node(j->c, sym_of(j->c, j->file[x->file.v[p]].path), (sym){0}, (sym){0}),
       "it has no instant in common with %s: they are of different runs, or clocks differ by more than the "
       "recording",
       j->file[x->file.v[0]].path);
  diag_hint(j->c, "name the files of one run; `heddle trace align` says how far clocks are apart");
  return false;
}

// Do all clocks count from one moment, as far as that can be told? Times of several are compared as they are.
static bool comparable(job *j, const works *x) {
  for (u32 p = 1; p < x->work.n; p++) {
    const i64 a = x->work.v[0]->base_ns, b = x->work.v[p]->base_ns;
    if (trace_dated(a) == trace_dated(b) && a - b < JOB_FAR_NS && b - a < JOB_FAR_NS) {
      if (!recorded_together(x, p)) return apart(j, x, p);
      continue;
    }
    diag(j->c, E_TRACE, loc_node(j->c, sym_of(j->c, j->file[x->file.v[p]].path), (sym){0}, (sym){0}),
         "its clock cannot be compared with that of %s: one counts from another moment, or days lie between "
         "them",
         j->file[x->file.v[0]].path);
    diag_hint(j->c, "`heddle trace info` says what the clocks are; one file alone can be replayed");
    return false;
  }
  return true;
}

// ---- clocks of several hosts ------------------------------------------------------------------------------
static void shift_work(job_work *w, const align_clocks *x, const match_place *at, u32 place) {
#define SHIFTED(t) (align_time(x, place, (t) + at->base_ps) - at->base_ps)
  w->start_ps = SHIFTED(w->start_ps);
  for (u32 k = 0; k < w->nitems; k++)
    w->item[k].start_ps = SHIFTED(w->item[k].start_ps), w->item[k].end_ps = SHIFTED(w->item[k].end_ps);
  for (u32 k = 0; k < w->nops; k++) w->op[k].start_ps = SHIFTED(w->op[k].start_ps);
#undef SHIFTED
}

// Onto one clock, where hosts have several that communications tie together and that are not the same.
static void align_works(job *j, match *m, const works *x, job_input *out) {
  const align_clocks *of =
      x->work.n > 1 ? clocks_apart(j->a, m, false, &out->clocks_by_ps, &out->clocks_within_ps) : NULL;
  if (!of) return;
  match_time(m, of);
  for (u32 p = 0; p < x->work.n; p++) {
    const u32 place = match_place_of(m, x->file.v[p], x->process.v[p]);
    shift_work(x->work.v[p], of, &m->places.v[place], place);
  }
}

// What BytePS records itself says neither which server has a tensor nor which worker asked for it.
static bool tied(const job *j) {
  u32 k = 0;
  while (k < j->n && j->file[k].format == TRACE_FORMAT_byteps) k++;
  if (!j->n || k < j->n) return true;
  diag(j->c, E_TRACE, loc_text(j->c, sym_of(j->c, j->file[0].path), 0, 0, NULL),
       "BytePS's own traces do not say which server has a tensor: what waits for what is not known");
  diag_hint(j->c, "bps_trace_final.json, in which dPRO joins workers and servers, can be replayed");
  return false;
}

// Are clocks known to be several: corrected, or of hosts that the files name?
static bool several_clocks(const job_input *in, const match *m) {
  sym host = {0};
  for (u32 k = 0; k < m->places.n; k++) {
    const sym h = m->places.v[k].host;
    if (h.i && host.i && h.i != host.i) return true;
    if (h.i) host = h;
  }
  return in->clocks_by_ps > 0;
}

bool job_input_of(job *j, const char *steps, job_input *out) {
  match *m = match_new(j->c, j->a);
  works x = {.work = {0}};
  *out = (job_input){.lone = 0};
  if (!tied(j)) return false;
  if (!job_want_steps(j, steps)) return false;
  for (u32 k = 0; k < j->n; k++) {
    if (!trace_format_rows[j->file[k].format].kernels) // such as an execution trace of the same rank
      out->left_out++;
    else if (!add_file(j, k, steps, m, &x))
      return false;
  }
  u64 ops = 0;
  for (u32 p = 0; p < x.work.n; p++) ops += x.work.v[p]->nops;
  if (!ops) {
    diag(j->c, E_TRACE, (loc){0}, "no operation on a device whose launch is in the trace");
    diag_hint(j->c,
              "record activities of the device and of the host, such as CPU and CUDA of PyTorch's profiler");
    return false;
  }
  if (!comparable(j, &x)) return false;
  match_finish(m);
  align_works(j, m, &x, out);
  for (u32 p = 1; p < x.work.n; p++)
    if (!meet(x.work.v[0], x.work.v[p])) return apart(j, &x, p);
  out->replay.n = x.work.n, out->replay.w = x.work.v, out->file = x.file.v;
  put_colls(j, out, m, &x);
  // Members of one communication end together, so clocks agree to within how far apart they show these ends.
  if (several_clocks(out, m))
    out->replay.within_ps = MAX(out->clocks_within_ps, out->nends ? out->ends_ps / out->nends : 0);
  return true;
}
