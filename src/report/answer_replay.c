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

// ---- operators and messages ---------------------------------------------------------------------------------
static void put_message_figures(report *r, const message_graph *g, const message_replay *x) {
  report_fact(r, "recorded_ps", "recorded", cell_i(CELL_PS, x->error.recorded_ps));
  report_fact(r, "replayed_ps", "replayed", cell_i(CELL_PS, x->replayed_ps));
  report_fact(r, "workers", "workers", cell_i(CELL_INT, g->workers));
  report_fact(r, "operations", "operators", cell_i(CELL_INT, g->n - g->nmessages));
  report_fact(r, "messages", "messages", cell_i(CELL_INT, g->nmessages));
  report_fact(r, "error_ps", "error of their ends", cell_i(CELL_PS, (i64)(x->error.mean_ps + 0.5)));
  report_fact(r, "error99_ps", "  99 of 100 below", cell_i(CELL_PS, x->error.below_99_ps));
  report_fact(r, "error_most_ps", "  largest", cell_i(CELL_PS, x->error.most_ps));
  report_fact(r, "operators_ps", "between operators", cell_i(CELL_PS, x->wait_ps[WAIT_OPERATORS]));
  report_fact(r, "step_ps", "between steps", cell_i(CELL_PS, x->wait_ps[WAIT_STEP]));
  report_fact(r, "to_link_ps", "operator to message", cell_i(CELL_PS, x->wait_ps[WAIT_TO_LINK]));
  report_fact(r, "link_ps", "message to message", cell_i(CELL_PS, x->wait_ps[WAIT_LINK]));
  report_fact(r, "from_link_ps", "message to operator", cell_i(CELL_PS, x->wait_ps[WAIT_FROM_LINK]));
  report_fact(r, "path_begin_ps", x->path_begin_ps ? "path: until it begins" : NULL,
              cell_i(CELL_PS, x->path_begin_ps));
  report_fact(r, "path_device_ps", "path: operators", cell_i(CELL_PS, x->path_operators_ps));
  report_fact(r, "path_transfer_ps", "path: messages", cell_i(CELL_PS, x->path_messages_ps));
  report_fact(r, "path_latency_ps", "path: gaps", cell_i(CELL_PS, x->path_latency_ps));
  report_fact(r, "clocks_corrected_ps", g->clocks_by_ps ? "clocks were apart by" : NULL,
              cell_i(CELL_PS, g->clocks_by_ps));
}

static cell place_cell(const message_graph *g, u32 place) {
  const match_place *p = &g->m->places.v[place];
  return p->rank != TRACE_NONE ? cell_i(CELL_INT, p->rank) : cell_text(sym_str(g->m->c, p->host));
}

static bool answer_messages(report *r, arena *a, job *j, const char *steps) {
  static const column cols[] = {
      {"from", "from"}, {"to", "to"}, {"count", "count"}, {"busy_ps", "busy"}, {"path_ps", "on the path"}};
  const message_graph *g = message_graph_of(j, steps);
  message_replay x;
  if (!g || !message_replay_of(g, a, &x)) return false;
  put_message_figures(r, g, &x);
  report_gap(r);
  report_table(r, "queues", cols, COUNT_OF(cols));
  for (u32 k = 0; k < x.nres; k++) {
    const message_resource *q = &x.res[k];
    report_row(r, (cell[]){place_cell(g, q->place), q->place == q->to ? cell_none() : place_cell(g, q->to),
                           cell_i(CELL_INT, q->count), cell_i(CELL_PS, q->busy_ps),
                           cell_i(CELL_PS, q->path_ps)});
  }
  return true;
}

bool answer_replay(report *r, ctx *c, arena *a, const trace_ask *q) {
  job *j = job_open(c, a, q->npaths, q->path);
  job_input in;
  if (j && message_job(j)) return answer_messages(r, a, j, q->steps);
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
