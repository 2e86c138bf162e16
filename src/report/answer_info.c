// answer_info.c - what the traces of a job are: ranks, events, lanes, clocks, and what is missing.
#include "report/report.h"

bool answer_info(report *r, ctx *c, arena *a, const trace_ask *q) {
  static const column cols[] = {{"file", "file"},     {"format", "format"}, {"rank", "rank"},
                                {"events", "events"}, {"lanes", "lanes"},   {"span_ps", "span"}};
  job *j = job_open(c, a, q->npaths, q->path);
  if (!j) return false;
  report_table(r, "files", cols, COUNT_OF(cols));
  for (u32 k = 0; k < j->n; k++) {
    const trace *t = job_load(j, k, 0);
    if (!t) return false;
    const u32 rank = job_rank(j, k);
    report_row(r, (cell[]){cell_text(j->file[k].path), cell_text(trace_format_rows[j->file[k].format].name),
                           rank == TRACE_NONE ? cell_none() : cell_i(CELL_INT, rank),
                           cell_i(CELL_INT, (i64)j->file[k].about.events), cell_i(CELL_INT, t->lanes.n),
                           cell_i(CELL_PS, trace_span_ps(t))});
    job_unload(j, k);
  }
  return true;
}
