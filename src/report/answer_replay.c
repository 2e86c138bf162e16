// answer_replay.c - a job replayed: how well, what its longest path consists of, and who is late.
#include "report/internal.h"

static void put_figures(report *r, const late_report *l, const replay_latency *x) {
  report_fact(r, "recorded_ps", "recorded", cell_i(CELL_PS, l->error.recorded_ps));
  report_fact(r, "replayed_ps", "replayed", cell_i(CELL_PS, l->replayed_ps));
  report_fact(r, "operations", "operations", cell_i(CELL_INT, (i64)l->error.n));
  report_fact(r, "error_ps", "error of their ends", cell_i(CELL_PS, (i64)(l->error.mean_ps + 0.5)));
  report_fact(r, "error99_ps", "  99 of 100 below", cell_i(CELL_PS, l->error.below_99_ps));
  report_fact(r, "error_most_ps", "  largest", cell_i(CELL_PS, l->error.most_ps));
  report_fact(r, "launch_ps", "launch latency", cell_i(CELL_PS, x->launch_ps[LAUNCH_KERNEL]));
  report_fact(r, "queue_ps", "between queued kernels", cell_i(CELL_PS, x->queue_ps));
  report_fact(r, "cross_ps", "between streams", cell_i(CELL_PS, x->cross_ps));
  report_fact(r, "sync_ps", "return of a wait", cell_i(CELL_PS, x->sync_ps));
  report_fact(r, "path_begin_ps", l->path.begin_ps ? "path: until it begins" : NULL,
              cell_i(CELL_PS, l->path.begin_ps));
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
  report_left_out(r, a, &in);
  report_gap(r);
  report_late(r, a, &l);
  return true;
}
