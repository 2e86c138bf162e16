// batchnorm.c - what the numbers of a model with batch norm depend on: over how many samples it takes its
// statistics.
#include "report/report.h"

void report_batchnorm(report *r, const batchnorm_stats *s) {
  if (!s->groups) return;
  i64 n = s->samples / s->groups;
  if (s->groups == 1)
    report_line(r, "batch norm", "statistics over all %lld samples", (long long)n);
  else
    report_line(r, "batch norm", "statistics over %lld of %lld samples", (long long)n, (long long)s->samples);
  report_fact(r, "batchnorm_samples", NULL, cell_i(CELL_INT, n));
}
