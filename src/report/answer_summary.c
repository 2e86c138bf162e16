// answer_summary.c - where the time of every rank goes, by step; its streams, kernels and communications.
#include "report/report.h"

enum { TOP = 10 };
static const column time_cols[] = {{"rank", "rank"},
                                   {"steps", "steps"},
                                   {"span_ps", "time"},
                                   {"compute_ps", "computes"},
                                   {"exposed_ps", "exposed"},
                                   {"copy_ps", "copies"},
                                   {"idle_ps", "idle"},
                                   {"idle_host_ps", "for host"},
                                   {"idle_kernel_ps", "between"},
                                   {"idle_other_ps", "other"},
                                   {"comm_ps", NULL},
                                   {"overlap_ps", NULL},
                                   {"overlap", "hidden"},
                                   {"utilisation", "computing"}};

typedef struct {
  ctx *c;
  arena *a;
  const trace_ask *q;
  report *ranks, *steps, *comms, *streams; // tables, put together at the end
  u32 nranks, nsteps;
  kernel_uses uses;
} summary;

static cell ps(i64 x) { return cell_i(CELL_PS, x); }
static cell rank_cell(u32 rank) { return rank == TRACE_NONE ? cell_none() : cell_i(CELL_INT, rank); }

static void time_row(report *r, u32 rank, const char *steps, const breakdown *b) {
  report_row(
      r, (cell[]){rank_cell(rank), cell_text(steps), ps(b->span_ps), ps(b->compute_ps),
                  ps(breakdown_exposed_ps(b)), ps(b->copy_ps), ps(breakdown_idle_ps(b)),
                  ps(b->idle_ps[IDLE_HOST]), ps(b->idle_ps[IDLE_KERNEL]), ps(b->idle_ps[IDLE_OTHER]),
                  ps(b->comm_ps), ps(b->overlap_ps),
                  b->comm_ps ? cell_x(CELL_SHARE, (double)b->overlap_ps / (double)b->comm_ps) : cell_none(),
                  b->span_ps ? cell_x(CELL_SHARE, (double)b->compute_ps / (double)b->span_ps) : cell_none()});
}

static void comm_rows(summary *s, const trace *t, u32 rank, const breakdown *b, u32 n, const u32 *event) {
  i64 total[COMM_KINDS] = {0};
  u32 count[COMM_KINDS] = {0};
  for (u32 k = 0; k < n; k++) {
    const u32 e = event[k];
    if (t->is[e] != TRACE_KERNEL || !(t->flags[e] & TRACE_COMM)) continue;
    const u32 kind = comm_kind_of(s->c, t, e);
    count[kind]++, total[kind] = add_sat(total[kind], MAX(t->dur_ps[e], 0));
  }
  for (u32 k = 0; k < COMM_KINDS; k++)
    if (count[k])
      report_row(s->comms, (cell[]){rank_cell(rank), cell_text(comm_kind_rows[k].name),
                                    cell_i(CELL_INT, count[k]), ps(total[k]), ps(b->exposed_ps[k])});
}

static void stream_rows(summary *s, const trace *t, u32 process, u32 rank, u32 n, const u32 *event) {
  for (u32 l = 0; l < t->lanes.n; l++) {
    const trace_lane *lane = &t->lanes.v[l];
    if (lane->process != process || !lane->device) continue;
    arena *tmp = arena_new();
    const stream_times x = stream_times_of(tmp, t, l, n, event);
    arena_free(tmp);
    if (!x.events) continue;
    const bool queued = x.queue_n;
    report_row(s->streams, (cell[]){rank_cell(rank), cell_i(CELL_INT, lane->of), cell_i(CELL_INT, lane->id),
                                    cell_i(CELL_INT, x.events), ps(x.busy_ps), ps(x.idle_ps[IDLE_HOST]),
                                    ps(x.idle_ps[IDLE_KERNEL]), ps(x.idle_ps[IDLE_OTHER]),
                                    queued ? cell_x(CELL_REAL, x.queue_mean) : cell_none(),
                                    queued ? cell_x(CELL_REAL, x.queue_std) : cell_none(),
                                    queued ? cell_x(CELL_REAL, x.queue_median) : cell_none(),
                                    queued ? cell_i(CELL_INT, x.queue_max) : cell_none()});
  }
}

static const char *steps_text(arena *a, const job_steps *st, const bool *chosen) {
  u32 *number = NEWN(a, u32, st->n + 1), n = 0;
  for (u32 k = 0; k < st->n; k++)
    if (chosen[k]) number[n++] = st->step[k].number;
  return n ? number_list(a, number, n) : NULL;
}

// One process of a file that is loaded.
static bool one_process(summary *s, const char *path, const trace *t, u32 process, u32 rank) {
  arena *tmp = arena_new();
  job_steps *st = steps_of(tmp, t, process);
  bool *chosen = ZNEWN(tmp, bool, st->n + 1);
  const bool ok = steps_choose(s->c, s->q->steps, st, chosen, path);
  u32 *event = NEWN(tmp, u32, t->n + 1), n = ok ? steps_events(t, process, st, chosen, event) : 0,
      nchosen = 0;
  for (u32 k = 0; k < st->n; k++) nchosen += chosen[k];
  if (ok) {
    const breakdown b = breakdown_of_steps(s->c, tmp, t, st, chosen, n, event);
    time_row(s->ranks, rank, steps_text(s->a, st, chosen), &b);
    s->nranks++;
    comm_rows(s, t, rank, &b, n, event);
    stream_rows(s, t, process, rank, n, event);
    kernel_uses_add(s->a, &s->uses, t, n, event);
  }
  u32 *one = NEWN(tmp, u32, t->n + 1);
  for (u32 k = 0; ok && nchosen > 1 && k < st->n; k++) {
    if (!chosen[k]) continue;
    u32 m = 0;
    for (u32 i = 0; i < n; i++)
      if (st->of[event[i]] == k) one[m++] = event[i];
    arena *again = arena_new();
    const breakdown b = breakdown_of(s->c, again, t, m, one);
    arena_free(again);
    time_row(s->steps, rank, arena_printf(s->a, "%u", st->step[k].number), &b);
    s->nsteps++;
  }
  arena_free(tmp);
  return ok;
}

static const char *kernel_kind(const kernel_use *x) {
  return x->comm ? "communication" : x->is == TRACE_KERNEL ? "compute" : trace_is_name(x->is);
}

static void kernel_rows(report *r, const ctx *c, const kernel_uses *u, u32 top) {
  enum { NAME = 60 };
  static const column cols[] = {{"name", "kernel"},     {"kind", "kind"},     {"count", "count"},
                                {"total_ps", "total"},  {"share", "share"},   {"mean_ps", "mean"},
                                {"min_ps", "shortest"}, {"max_ps", "longest"}};
  double all = 0;
  for (u32 k = 0; k < u->kernels.n; k++) all += (double)u->kernels.v[k].total_ps;
  report_table(r, "kernels", cols, COUNT_OF(cols));
  for (u32 k = 0; k < u->kernels.n; k++) {
    const kernel_use *x = &u->kernels.v[k];
    report_row(r, (cell[]){cell_name(sym_str(c, x->name), NAME), cell_text(kernel_kind(x)),
                           cell_i(CELL_INT, x->count), ps(x->total_ps),
                           all > 0 ? cell_x(CELL_SHARE, (double)x->total_ps / all) : cell_none(),
                           ps(x->total_ps / x->count), ps(x->min_ps), ps(x->max_ps)});
  }
  report_top(r, top);
}

// A communication lasts until the last member has come, so the shortest of many alike tells most of the network.
static void bandwidth_rows(report *r, const ctx *c, const kernel_uses *u, u32 top) {
  static const column cols[] = {{"op", "operation"},        {"group", "group"},
                                {"type", "type"},           {"bytes", "size"},
                                {"count", "count"},         {"min_ps", "shortest"},
                                {"median_ps", "median"},    {"algorithm_bytes_per_s", "algorithm"},
                                {"bus_bytes_per_s", "bus"}, {"median_bus_bytes_per_s", "median bus"}};
  report_table(r, "bandwidths", cols, COUNT_OF(cols));
  for (u32 k = 0; k < u->comms.n; k++) {
    const comm_use *x = &u->comms.v[k];
    const char *op = sym_str(c, x->op);
    const i64 least = x->dur_ps.v[0], median = x->dur_ps.v[x->dur_ps.n / 2];
    const double rate = x->bytes > 0 && least > 0 ? (double)x->bytes / (double)least * 1e12 : 0;
    const double at_median = x->bytes > 0 && median > 0 ? (double)x->bytes / (double)median * 1e12 : 0;
    const double factor = comm_bus_factor(op, x->size);
    report_row(
        r, (cell[]){cell_text(*op ? op : "not known"), x->size ? cell_i(CELL_INT, x->size) : cell_none(),
                    cell_text(x->type.i ? sym_str(c, x->type) : NULL),
                    x->bytes >= 0 ? cell_i(CELL_BYTES, x->bytes) : cell_none(), cell_i(CELL_INT, x->dur_ps.n),
                    ps(least), ps(median), rate > 0 ? cell_x(CELL_RATE, rate) : cell_none(),
                    rate * factor > 0 ? cell_x(CELL_RATE, rate * factor) : cell_none(),
                    at_median * factor > 0 ? cell_x(CELL_RATE, at_median * factor) : cell_none()});
  }
  report_top(r, top);
}

bool answer_summary(report *r, ctx *c, arena *a, const trace_ask *q) {
  static const column comm_cols[] = {{"rank", "rank"},
                                     {"op", "communication"},
                                     {"count", "count"},
                                     {"total_ps", "runs"},
                                     {"exposed_ps", "exposed"}};
  static const column stream_cols[] = {{"rank", "rank"},
                                       {"device", "device"},
                                       {"stream", "stream"},
                                       {"events", "events"},
                                       {"busy_ps", "busy"},
                                       {"idle_host_ps", "for host"},
                                       {"idle_kernel_ps", "between"},
                                       {"idle_other_ps", "other"},
                                       {"queue_mean", "queue"},
                                       {"queue_std", NULL},
                                       {"queue_median", "median"},
                                       {"queue_max", "longest"}};
  const u32 top = q->top ? q->top : TOP;
  job *j = job_open(c, a, q->npaths, q->path);
  summary s = {.c = c,
               .a = a,
               .q = q,
               .ranks = report_new(a),
               .steps = report_new(a),
               .comms = report_new(a),
               .streams = report_new(a)};
  if (!j) return false;
  report_table(s.ranks, "ranks", time_cols, COUNT_OF(time_cols));
  report_table(s.steps, "steps", time_cols, COUNT_OF(time_cols));
  report_table(s.comms, "communication", comm_cols, COUNT_OF(comm_cols));
  report_table(s.streams, "streams", stream_cols, COUNT_OF(stream_cols));
  bool ok = job_want_steps(j, q->steps);
  for (u32 k = 0; ok && k < j->n; k++) {
    const trace *t = job_load(j, k, TRACE_ON_DEVICE | 1 << TRACE_CALL | 1 << TRACE_STEP);
    ok = t;
    for (u32 p = 0; ok && p < t->processes.n; p++)
      ok = one_process(&s, j->file[k].path, t, p,
                       t->processes.n > 1 ? t->processes.v[p].rank : job_rank(j, k));
    if (t) job_unload(j, k);
  }
  job_close(j);
  if (!ok) return false;
  if (!s.uses.kernels.n) {
    diag(c, E_TRACE, (loc){0}, "no events of a device in %s",
         s.nranks == 1 ? j->file[0].path : "these files");
    diag_hint(c, "heddle trace info %s", q->path[0]);
    return false;
  }
  kernel_uses_sort(&s.uses);
  report_append(r, s.ranks);
  report_gap(r);
  if (s.nsteps) report_append(r, s.steps), report_top(r, MAX(top, 2 * s.nranks)), report_gap(r);
  if (s.uses.comms.n) report_append(r, s.comms), report_gap(r);
  report_append(r, s.streams);
  report_gap(r);
  kernel_rows(r, c, &s.uses, top);
  if (s.uses.comms.n) report_gap(r), bandwidth_rows(r, c, &s.uses, top);
  return true;
}
