// straggler.c - what a pipelined job is: the lines with which every answer about it begins. Not the answers.
#include "report/internal.h"

const char *straggler_worker_name(arena *a, const straggler *s, u32 worker) {
  const straggler_worker *w = &s->worker[worker];
  return arena_printf(a, "worker %u (rank %u: stage %u, data rank %u)", worker, w->rank, w->stage, w->data);
}

void report_straggler(report *r, const straggler *s, const char *path) {
  report_fact(r, "timeline", "timeline", cell_text(path));
  report_line(r, "job", "%u x %u workers (data ranks x stages), %u microbatches, %u steps of %u operations",
              s->ndata, s->nstages, s->nmicro, s->nsteps, s->nops);
  if (s->left_out)
    report_line(r, "", "%u steps left out: other operations, or another order of computation", s->left_out);
  report_fact(r, "workers", NULL, cell_i(CELL_INT, s->nworkers));
  report_fact(r, "data_ranks", NULL, cell_i(CELL_INT, s->ndata));
  report_fact(r, "stages", NULL, cell_i(CELL_INT, s->nstages));
  report_fact(r, "microbatches", NULL, cell_i(CELL_INT, s->nmicro));
  report_fact(r, "steps", NULL, cell_i(CELL_INT, s->nsteps));
  report_fact(r, "steps_left_out", NULL, cell_i(CELL_INT, s->left_out));
  report_fact(r, "operations_per_step", NULL, cell_i(CELL_INT, s->nops));
  report_fact(r, "recorded_ps", NULL, cell_ps(straggler_mean(s, s->span_ps)));
}
