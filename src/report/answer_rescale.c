// answer_rescale.c - a recorded job with more data ranks: the step, and where it grows.
#include "report/internal.h"

static void put_scenario(report *r, const char *title, const char *key, double ps, double from) {
  report_row(r, (cell[]){cell_text(key), cell_text(title), cell_ps(ps), cell_signed(cell_ps(ps - from)),
                         from > 0 ? cell_signed(cell_x(CELL_SHARE, (ps - from) / from)) : cell_none()});
}

static void put_rows(report *r, const job_rescale *x, u32 top) {
  enum { NAME = 50 };
  static const column cols[] = {{"name", "grows"},
                                {"count", "count"},
                                {"from", "members"},
                                {"to", "then"},
                                {"before_ps", "transfer"},
                                {"after_ps", "then"},
                                {"late_ps", "last comes later"}};
  report_gap(r);
  report_table(r, "communications", cols, COUNT_OF(cols));
  for (u32 k = 0; k < x->n; k++) {
    const rescale_row *c = &x->row[k];
    report_row(r, (cell[]){cell_name(c->name, NAME), cell_i(CELL_INT, c->count), cell_i(CELL_INT, c->from),
                           cell_i(CELL_INT, c->to), cell_ps(c->before_ps), cell_ps(c->after_ps),
                           cell_ps(c->late_ps)});
  }
  report_top(r, top);
}

bool answer_rescale(report *r, ctx *c, arena *a, const trace_ask *q) {
  static const column cols[] = {
      {"scenario", NULL}, {NULL, ""}, {"time_ps", "time"}, {"change_ps", "change"}, {"change", ""}};
  job_rescale x;
  if (!q->ranks) {
    diag(c, E_USAGE, (loc){0}, "how many ranks the job is to have is not said");
    diag_hint(c, "--ranks 64");
    return false;
  }
  job *j = job_open(c, a, q->npaths, q->path);
  if (!j || !job_rescale_of(j, q->steps, q->ranks, q->machine, a, &x)) return false;
  report_fact(r, "machine", q->machine ? "machine" : NULL,
              cell_text(q->machine ? machine_title(a, q->machine) : NULL));
  if (!q->machine) report_line(r, "machine", "none: transfers grow as the traffic of rings does");
  report_line(r, "job", "%u ranks, %u of data parallelism", x.ranks[0], x.data[0]);
  report_line(r, "becomes", "%u ranks, %u of data parallelism, each with as much work as now", x.ranks[1],
              x.data[1]);
  report_fact(r, "ranks", NULL, cell_i(CELL_INT, x.ranks[0])),
      report_fact(r, "new_ranks", NULL, cell_i(CELL_INT, x.ranks[1]));
  report_fact(r, "data_ranks", NULL, cell_i(CELL_INT, x.data[0])),
      report_fact(r, "new_data_ranks", NULL, cell_i(CELL_INT, x.data[1]));
  report_fact(r, "steps", NULL, x.nsteps ? cell_i(CELL_INT, x.nsteps) : cell_none());
  report_fact(r, "recorded_ps", x.pipeline ? "step recorded" : "recorded", cell_ps(x.recorded_ps));
  report_fact(r, "predicted_ps", x.pipeline ? "step predicted" : "predicted", cell_ps(x.predicted_ps));
  if (!x.pipeline)
    report_line(r, "taken for",
                "data parallelism: every rank a copy of the model. Of tensor parallelism this says nothing");
  report_gap(r);
  report_table(r, "scenarios", cols, COUNT_OF(cols));
  put_scenario(r, "replayed as recorded", "replayed", x.replayed_ps, x.replayed_ps);
  put_scenario(r, "transfers among more members", "transfers", x.transfer_ps, x.replayed_ps);
  put_scenario(r, "later last members", "late", x.late_ps, x.replayed_ps);
  put_scenario(r, "both", "both", x.predicted_ps, x.replayed_ps);
  put_rows(r, &x, q->top ? q->top : 10);
  return true;
}
