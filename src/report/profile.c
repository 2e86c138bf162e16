// profile.c - what a measurement has added to a database of times.
#include "report/internal.h"
#include <stdlib.h>

// The furthest first: those that a user would measure himself.
static int by_spread(const void *x, const void *y) {
  const event_fit *a = *(const event_fit *const *)x, *b = *(const event_fit *const *)y;
  return a->spread != b->spread ? (a->spread < b->spread ? 1 : -1) : strcmp(a->kind, b->kind);
}

static void report_fits(report *r, arena *a, const profile_report *p) {
  static const column columns[] = {{"kind", "kind"},
                                   {"count", "events"},
                                   {"mean_error", "held out: mean"},
                                   {"spread", "two in three"},
                                   {"worst_error", "worst"}};
  const event_fit **f = NEWN(a, const event_fit *, p->nfits + 1);
  double mean = 0;
  u64 events = 0;
  for (u32 k = 0; k < p->nfits; k++) {
    f[k] = &p->fit[k];
    mean += f[k]->mean * f[k]->count, events += f[k]->count;
  }
  qsort(f, p->nfits, sizeof *f, by_spread);
  report_fact(r, "fitted_kinds", "kinds fitted", cell_i(CELL_INT, p->nfits));
  report_fact(r, "thin_kinds", "of too few sizes", cell_i(CELL_INT, p->nthin));
  if (events) report_fact(r, "held_out_error", "held-out error", cell_x(CELL_SHARE, mean / (double)events));
  report_table(r, "fits", columns, COUNT_OF(columns));
  for (u32 k = 0; k < p->nfits; k++) {
    const cell row[] = {cell_name(f[k]->kind, 60), cell_i(CELL_INT, f[k]->count),
                        cell_x(CELL_SHARE, f[k]->mean), cell_x(CELL_SHARE, f[k]->spread),
                        cell_x(CELL_SHARE, f[k]->worst)};
    report_row(r, row);
  }
}

static void report_import(report *r, const profile_report *p) {
  static const column columns[] = {{"key", "not measured"}, {"why", "why"}};
  report_fact(r, "machine", "machine", cell_text(p->machine));
  report_fact(r, "versions", "versions", cell_text(p->versions));
  report_fact(r, "events", "events", cell_i(CELL_INT, p->nevents));
  report_fact(r, "measured", "measured", cell_i(CELL_INT, p->nmeasured));
  report_fact(r, "scaled", "scaled", cell_i(CELL_INT, p->nscaled));
  report_fact(r, "failed", "not measured", cell_i(CELL_INT, p->nfailed));
  if (p->nplan) {
    report_fact(r, "plan_events", "of the plan", cell_i(CELL_INT, p->nplan));
    report_fact(r, "left", "  without times", cell_i(CELL_INT, p->nlost));
  }
  if (p->launch_ps) {
    report_fact(r, "launch_ps", "launches a step", cell_i(CELL_PS, p->launch_ps));
    report_fact(r, "device_ps", "  on the device", cell_i(CELL_PS, p->device_ps));
    if (p->launch_ps > p->device_ps)
      report_line(r, "", "the device waits for launches: steps take longer than `heddle sim` says");
  }
  report_fact(r, "from", "from", cell_text(p->from));
  report_fact(r, "file", "in", cell_text(p->path));
  if (!p->nfailed) return;
  report_gap(r);
  report_table(r, "failures", columns, COUNT_OF(columns));
  for (u32 k = 0; k < p->nfailed; k++) {
    const cell row[] = {cell_name(p->failure[k].key, 80), cell_text(p->failure[k].why)};
    report_row(r, row);
  }
}

void report_profile(report *r, arena *a, const profile_report *p) {
  if (p->from) {
    report_import(r, p);
    return;
  }
  report_fact(r, "machine", "machine", cell_text(p->machine));
  report_fact(r, "versions", "versions", cell_text(p->versions));
  if (p->nprograms > 1) report_fact(r, "plans", "plans", cell_i(CELL_INT, p->nprograms));
  if (p->nrounds) report_fact(r, "searches", "searches", cell_i(CELL_INT, p->nrounds));
  report_fact(r, "events", "distinct events", cell_i(CELL_INT, p->nevents));
  report_fact(r, "known", "known before", cell_i(CELL_INT, p->nknown));
  report_fact(r, "measured", "measured now", cell_i(CELL_INT, p->nmeasured));
  if (p->nscaled) report_line(r, "scaled", "%u, from fewer ranks by what a ring moves", p->nscaled);
  report_fact(r, "scaled", NULL, cell_i(CELL_INT, p->nscaled));
  if (p->nleft) report_line(r, "not measured", "%u: there are too few processes", p->nleft);
  report_fact(r, "left", NULL, cell_i(CELL_INT, p->nleft));
  report_fact(r, "time_ps", "time", cell_i(CELL_PS, (i64)(p->seconds * 1e12)));
  report_fact(r, "file", "in", cell_text(p->path));
  if (p->fits) report_fits(r, a, p);
}
