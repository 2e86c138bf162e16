// profile.c - what a measurement has added to a database of times.
#include "report/internal.h"

void report_profile(report *r, const profile_report *p) {
  report_fact(r, "machine", "machine", cell_text(p->machine));
  report_fact(r, "versions", "versions", cell_text(p->versions));
  report_fact(r, "events", "distinct events", cell_i(CELL_INT, p->nevents));
  report_fact(r, "known", "known before", cell_i(CELL_INT, p->nknown));
  report_fact(r, "measured", "measured now", cell_i(CELL_INT, p->nmeasured));
  if (p->nscaled) report_line(r, "scaled", "%u, from fewer ranks by what a ring moves", p->nscaled);
  report_fact(r, "scaled", NULL, cell_i(CELL_INT, p->nscaled));
  if (p->nleft) report_line(r, "not measured", "%u: there are too few processes", p->nleft);
  report_fact(r, "left", NULL, cell_i(CELL_INT, p->nleft));
  report_fact(r, "time_ps", "time", cell_i(CELL_PS, (i64)(p->seconds * 1e12)));
  report_fact(r, "file", "in", cell_text(p->path));
}
