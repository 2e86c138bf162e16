// answer_replay.c - a job replayed: how well, what its step consists of, who is late and what repairing them gains.
#include "report/report.h"

static void put_rank(report *r, const job_input *in, const late_report *l) {
  static const column cols[] = {{"rank", "rank"},
                                {"host_ps", "host"},
                                {"device_ps", "device"},
                                {"path_ps", "host on path"},
                                {"last", "arrives last"},
                                {"repaired_ps", NULL},
                                {"gain", "gain if repaired"}};
  (void)in;
  report_table(r, "ranks", cols, COUNT_OF(cols));
  for (u32 p = 0; p < l->n; p++) {
    const late_process *x = &l->process[p];
    const bool can = x->repaired_ps >= 0;
    const double gain = can && l->replayed_ps ? 1 - (double)x->repaired_ps / (double)l->replayed_ps : 0;
    report_row(r, (cell[]){x->rank == TRACE_NONE ? cell_none() : cell_i(CELL_INT, x->rank),
                           cell_i(CELL_PS, x->host_ps), cell_i(CELL_PS, x->device_ps),
                           cell_i(CELL_PS, x->path_ps), cell_i(CELL_INT, x->last),
                           can ? cell_i(CELL_PS, x->repaired_ps) : cell_none(),
                           can ? cell_x(CELL_SHARE, gain) : cell_none()});
  }
}

static const char *share(arena *a, i64 part, i64 of) {
  return arena_printf(a, "%.1f %%", of ? 100 * (double)part / (double)of : 0);
}
static const char *time_text(arena *a, i64 ps) {
  strbuf b = {.a = a};
  const cell x = cell_i(CELL_PS, ps);
  cell_print(&x, &b);
  return sb_str(&b);
}

static const char *named(arena *a, const late_report *l, u32 p) {
  const u32 rank = l->process[p].rank;
  return rank == TRACE_NONE ? arena_printf(a, "process %u", p) : arena_printf(a, "rank %u", rank);
}

static void put_late(report *r, arena *a, const late_report *l) {
  const late_process *x = &l->process[l->late[0]];
  const char *first = named(a, l, l->late[0]);
  if (l->late[1] != TRACE_NONE)
    report_line(r, "late", "%s and %s arrive last: at %u and %u of %u communications", first,
                named(a, l, l->late[1]), x->last, l->process[l->late[1]].last, l->ncolls);
  else
    report_line(r, "late", "%s arrives last: at %u of %u communications", first, x->last, l->ncolls);
  if (x->repaired_ps >= 0)
    report_line(r, "",
                "with the host times of %s at the medians over ranks the job is %s shorter, of both %s",
                first, share(a, l->replayed_ps - x->repaired_ps, l->replayed_ps),
                share(a, l->replayed_ps - l->both_ps, l->replayed_ps));
}

static void put_verdict(report *r, arena *a, const late_report *l) {
  const bool all_hosts = l->hosts == l->n, all_devices = !l->hosts;
  report_fact(r, "bound", NULL, cell_text(all_hosts ? "host" : all_devices ? "device" : "mixed"));
  if (all_hosts)
    report_line(r, "verdict", "host-bound on all ranks: they take longer without devices than without hosts");
  else if (all_devices)
    report_line(r, "verdict",
                "device-bound on all ranks: they take longer without hosts than without devices");
  else
    report_line(r, "verdict", "host-bound on %u of %u ranks", l->hosts, l->n);
  if (l->late[0] != TRACE_NONE) put_late(r, a, l);
  if (l->all_ps > 0 && l->all_ps < l->replayed_ps)
    report_line(r, "", "with those of all ranks it is %.2g times faster: %s",
                (double)l->replayed_ps / (double)l->all_ps, time_text(a, l->all_ps));
  report_line(r, "bounds", "%s if hosts took no time, %s if devices took none", time_text(a, l->no_host_ps),
              time_text(a, l->no_device_ps));
}

static void put_figures(report *r, const late_report *l, const replay_latency *x) {
  report_fact(r, "recorded_ps", "recorded", cell_i(CELL_PS, l->recorded_ps));
  report_fact(r, "replayed_ps", "replayed", cell_i(CELL_PS, l->replayed_ps));
  report_fact(r, "operations", "operations", cell_i(CELL_INT, (i64)l->nops));
  report_fact(r, "error_ps", "error of their ends", cell_i(CELL_PS, (i64)(l->error_ps + 0.5)));
  report_fact(r, "error99_ps", "  99 of 100 below", cell_i(CELL_PS, l->error99_ps));
  report_fact(r, "error_most_ps", "  largest", cell_i(CELL_PS, l->error_most_ps));
  report_fact(r, "launch_ps", "launch latency", cell_i(CELL_PS, x->launch_ps[LAUNCH_KERNEL]));
  report_fact(r, "queue_ps", "between queued kernels", cell_i(CELL_PS, x->queue_ps));
  report_fact(r, "cross_ps", "between streams", cell_i(CELL_PS, x->cross_ps));
  report_fact(r, "sync_ps", "return of a wait", cell_i(CELL_PS, x->sync_ps));
  report_fact(r, "path_host_ps", "path: host", cell_i(CELL_PS, l->path.host_ps));
  report_fact(r, "path_device_ps", "path: device", cell_i(CELL_PS, l->path.device_ps));
  report_fact(r, "path_transfer_ps", "path: communication", cell_i(CELL_PS, l->path.transfer_ps));
  report_fact(r, "path_latency_ps", "path: latencies", cell_i(CELL_PS, l->path.latency_ps));
  report_fact(r, "both_ps", NULL, cell_i(CELL_PS, l->both_ps));
  report_fact(r, "all_ps", NULL, cell_i(CELL_PS, l->all_ps));
  report_fact(r, "no_host_ps", NULL, cell_i(CELL_PS, l->no_host_ps));
  report_fact(r, "no_device_ps", NULL, cell_i(CELL_PS, l->no_device_ps));
}

bool answer_replay(report *r, ctx *c, arena *a, const trace_ask *q) {
  job *j = job_open(c, a, q->npaths, q->path);
  job_input in;
  if (!j || !job_input_of(j, q->steps, &in)) return false;
  replay *x = replay_new(c, a, &in.replay);
  if (!x) return false;
  const late_report l = late_of(x, a);
  put_figures(r, &l, replay_latencies(x));
  report_gap(r);
  put_verdict(r, a, &l);
  report_gap(r);
  put_rank(r, &in, &l);
  return true;
}
