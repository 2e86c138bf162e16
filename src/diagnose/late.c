// late.c - who is late, and what it costs: a replay held against the recording, and replays with repaired processes.
//
// Idea: a process is repaired by giving its host the times that others take for the same items: the medians over all
// processes that launch the same ops in the same order. What devices take stays. So a gain is what the host of that
// process alone has cost the job, with all waiting that follows from it.
#include "diagnose/internal.h"
#include <stdlib.h>

// Do two processes launch the same?
static u64 signature(const job_work *w) {
  u64 h = hash_step(w->nitems, w->nops);
  for (u32 k = 0; k < w->nops; k++)
    h = hash_step(hash_step(h, w->op[k].name.i), (u64)w->op[k].item << 32 | w->op[k].stream);
  return hash_u64(h, 1);
}
static bool alike(const job_work *x, const job_work *y) {
  if (x->nitems != y->nitems || x->nops != y->nops) return false;
  for (u32 k = 0; k < x->nops; k++)
    if (x->op[k].name.i != y->op[k].name.i || x->op[k].item != y->op[k].item ||
        x->op[k].stream != y->op[k].stream)
      return false;
  return true;
}

static i64 *median_row(const replay_times *t, bool host, const u32 *same, u32 n, u32 len, i64 *v, arena *a) {
  i64 *m = NEWN(a, i64, len + 1);
  for (u32 i = 0; i < len; i++) {
    for (u32 k = 0; k < n; k++) v[k] = (host ? t->host : t->op)[same[k]][i];
    qsort(v, n, sizeof *v, ascending_i64);
    m[i] = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
  }
  return m;
}

replay_times replay_medians(const replay *r, const replay_times *t, arena *a) {
  const replay_input *in = replay_input_of(r);
  replay_times med = {ZNEWN(a, i64 *, in->n + 1), ZNEWN(a, i64 *, in->n + 1)};
  u64 *sign = NEWN(a, u64, in->n + 1);
  i64 *v = NEWN(a, i64, in->n + 1);
  u32 *same = NEWN(a, u32, in->n + 1);
  for (u32 p = 0; p < in->n; p++) sign[p] = signature(in->w[p]);
  for (u32 p = 0; p < in->n; p++) {
    u32 n = 0;
    for (u32 q = p; q < in->n && !med.host[p]; q++)
      if (sign[p] == sign[q] && alike(in->w[p], in->w[q])) same[n++] = q;
    if (n < 2) continue;
    i64 *host = median_row(t, true, same, n, in->w[p]->nitems, v, a),
        *op = median_row(t, false, same, n, in->w[p]->nops, v, a);
    for (u32 k = 0; k < n; k++) med.host[same[k]] = host, med.op[same[k]] = op;
  }
  return med;
}

// ---- the replay against the recording -------------------------------------------------------------------
static i64 **rows(arena *a, const replay_input *in) {
  i64 **v = NEWN(a, i64 *, in->n + 1);
  for (u32 p = 0; p < in->n; p++) v[p] = NEWN(a, i64, in->w[p]->nops + 1);
  return v;
}

replay_errors replay_errors_between(arena *tmp, u64 n, const i64 *end, const i64 *was) {
  replay_errors x = {.n = n};
  i64 *error = NEWN(tmp, i64, n + 1);
  double sum = 0;
  for (u64 k = 0; k < n; k++) {
    const i64 off = end[k] - was[k];
    x.recorded_ps = MAX(x.recorded_ps, was[k]);
    error[k] = off < 0 ? -off : off, sum += (double)error[k];
  }
  if (!n) return x;
  qsort(error, n, sizeof *error, ascending_i64);
  x.mean_ps = sum / (double)n, x.below_99_ps = error[n - 1 - n / 100], x.most_ps = error[n - 1];
  return x;
}

replay_errors replay_errors_of(const replay *r, i64 *const *end, arena *tmp) {
  const replay_input *in = replay_input_of(r);
  u64 n = 0;
  for (u32 p = 0; p < in->n; p++) n += in->w[p]->nops;
  i64 *is = NEWN(tmp, i64, n + 1), *was = NEWN(tmp, i64, n + 1);
  n = 0;
  for (u32 p = 0; p < in->n; p++) {
    const job_work *w = in->w[p];
    const i64 begins = replay_start_of(r, p);
    for (u32 k = 0; k < w->nops; k++, n++)
      is[n] = end[p][k], was[n] = w->op[k].start_ps + w->op[k].dur_ps - w->start_ps + begins;
  }
  return replay_errors_between(tmp, n, is, was);
}

static void count_last(late_report *l, const replay_input *in) {
  l->ncolls = in->ncolls, l->doubt_ps = in->within_ps;
  for (u32 c = 1; c <= in->ncolls; c++) {
    const replay_meeting *x = &in->meet[c];
    if (x->process == TRACE_NONE) continue;
    l->process[x->process].last_read += x->ahead_ps > 0,
        l->process[x->process].last += x->ahead_ps > in->within_ps;
  }
  l->late[0] = l->late[1] = TRACE_NONE;
  for (u32 p = 0; p < l->n; p++) {
    if (!l->process[p].last) continue;
    if (l->late[0] == TRACE_NONE || l->process[p].last > l->process[l->late[0]].last)
      l->late[1] = l->late[0], l->late[0] = p;
    else if (l->late[1] == TRACE_NONE || l->process[p].last > l->process[l->late[1]].last)
      l->late[1] = p;
  }
}

static i64 with(replay *r, const replay_times *t, i64 *const *host) {
  return replay_run(r, &(replay_times){(i64 **)host, t->op}, NULL, NULL);
}

// When the last op of every process ends, from the beginning of its line.
static void put_ends(const replay *r, const replay_input *in, i64 *const *end, i64 *out) {
  for (u32 p = 0; p < in->n; p++) {
    out[p] = 0;
    for (u32 k = 0; k < in->w[p]->nops; k++) out[p] = MAX(out[p], end[p][k] - replay_start_of(r, p));
  }
}

// The host times that repair process p: of two that do the same those of the other, else the medians; NULL: nobody does
// the same.
static i64 *repaired(const replay_input *in, const replay_times *t, i64 *const *med, u32 p) {
  u32 n = 0, other = p;
  for (u32 q = 0; med[p] && q < in->n; q++)
    if (q != p && med[q] == med[p]) n++, other = q;
  return n == 1 ? t->host[other] : med[p];
}

late_report late_of(replay *r, arena *a) {
  const replay_input *in = replay_input_of(r);
  arena *tmp = arena_new();
  late_report l = {.n = in->n, .process = ZNEWN(a, late_process, in->n + 1)};
  const replay_times t = replay_recorded(r, tmp);
  i64 **end = rows(tmp, in), **host = NEWN(tmp, i64 *, in->n + 1), **med = replay_medians(r, &t, tmp).host,
      *none = NULL;
  l.replayed_ps = replay_run(r, &t, NULL, end);
  l.error = replay_errors_of(r, end, tmp);
  count_last(&l, in);
  l.path = replay_critical(r, &t, a);
  u32 items = 0, ops = 0;
  for (u32 p = 0; p < in->n; p++) {
    late_process *x = &l.process[p];
    items = MAX(items, in->w[p]->nitems), ops = MAX(ops, in->w[p]->nops);
    x->rank = in->w[p]->rank, x->path_ps = l.path.rank_host_ps[p], x->repaired_ps = -1;
    memcpy(host, t.host, sizeof *host * in->n);
    if (med[p]) host[p] = repaired(in, &t, med, p), x->repaired_ps = with(r, &t, host);
  }
  memcpy(host, t.host, sizeof *host * in->n);
  for (u32 k = 0; k < 2; k++)
    if (l.late[k] != TRACE_NONE && med[l.late[k]]) host[l.late[k]] = med[l.late[k]];
  l.both_ps = with(r, &t, host);
  for (u32 p = 0; p < in->n; p++)
    if (med[p]) host[p] = med[p];
  l.all_ps = with(r, &t, host);
  none = ZNEWN(tmp, i64, MAX(items, ops) + 1);
  i64 **nothing = NEWN(tmp, i64 *, in->n + 1), *ends = NEWN(tmp, i64, in->n + 1);
  for (u32 p = 0; p < in->n; p++) nothing[p] = none;
  l.no_host_ps = replay_run(r, &(replay_times){nothing, t.op}, NULL, end);
  put_ends(r, in, end, ends);
  for (u32 p = 0; p < in->n; p++) l.process[p].device_ps = ends[p];
  l.no_device_ps = replay_run(r, &(replay_times){t.host, nothing}, NULL, end);
  put_ends(r, in, end, ends);
  for (u32 p = 0; p < in->n; p++) l.process[p].host_ps = ends[p], l.hosts += ends[p] > l.process[p].device_ps;
  arena_free(tmp);
  return l;
}
