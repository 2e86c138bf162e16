// help.c - what would help: the critical path by the rates that its prices depend on.
#include "report/report.h"
#include <stdlib.h>

static const char *const rate_name[COST_BYS] = {"matmul rate",
                                                "other arithmetic",
                                                "memory bandwidth",
                                                "launch latency",
                                                "bandwidth inside nodes",
                                                "bandwidth between nodes",
                                                "network latency",
                                                "host",
                                                "two limits at once"};

typedef struct {
  cost_by by;
  double ps;
} share;
static int by_time(const void *x, const void *y) {
  const share *a = x, *b = y;
  return a->ps != b->ps ? (a->ps > b->ps ? -1 : 1) : a->by < b->by ? -1 : 1;
}

void report_help(report *r, const cost_parts *path, i64 step_ps) {
  static const column cols[] = {
      {"what", "what would help"}, {"time_ps", "on the path"}, {"slope", NULL}, {NULL, "10 % better"}};
  share v[COST_BYS];
  const double step = step_ps ? (double)step_ps : 1;
  for (u32 k = 0; k < COST_BYS; k++) v[k] = (share){(cost_by)k, path->ps[k]};
  qsort(v, COST_BYS, sizeof *v, by_time);
  report_gap(r);
  report_table(r, "help", cols, COUNT_OF(cols));
  for (u32 k = 0; k < COST_BYS && v[k].ps > 0; k++) {
    const bool alone = v[k].by != COST_BY_SEVERAL;
    const double slope = alone ? -v[k].ps / step : 0;
    report_row(r, (cell[]){cell_text(rate_name[v[k].by]), cell_i(CELL_PS, (i64)(v[k].ps + 0.5)),
                           cell_x(CELL_REAL, slope), alone ? cell_x(CELL_SHARE, 0.1 * slope) : cell_none()});
  }
  report_line(
      r, NULL,
      "(first-order estimate: 10 %% of the time on the critical path, while that path stays the longest)");
}
