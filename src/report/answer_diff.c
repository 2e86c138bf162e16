// answer_diff.c - a job before and after: slower, faster or the same within noise, and where the time went.
#include "report/internal.h"
#include <math.h>

enum { TOP = 10 };
static const double TOLD = 0.01; // of a step: what communications change by less is not worth a line
static cell ps(double x) { return cell_i(CELL_PS, (i64)(x + (x < 0 ? -.5 : .5))); }
static cell difference(double x) { return cell_signed(ps(x)); }
static cell share(double some, double of) {
  return of > 0 ? cell_signed(cell_x(CELL_SHARE, some / of)) : cell_none();
}

static void put_sides(report *r, const job_diff *d) {
  static const column cols[] = {{"side", ""},       {"files", "files"},  {"ranks", "ranks"},
                                {"steps", "steps"}, {"step_ps", "step"}, {"sd_ps", "scatter"}};
  static const char *const name[] = {"before", "after"};
  report_table(r, "sides", cols, COUNT_OF(cols));
  for (u32 k = 0; k < 2; k++) {
    const diff_side *s = &d->side[k];
    report_row(r, (cell[]){cell_text(name[k]), cell_i(CELL_INT, s->files), cell_i(CELL_INT, s->ranks),
                           cell_i(CELL_INT, s->step.n), ps(s->step.mean),
                           s->step.n > 1 ? ps(s->step.sd) : cell_none()});
  }
}

static void put_verdict(report *r, const job_diff *d) {
  static const char *const word[] = {"same", "slower", "unknown"};
  const double was = d->side[0].step.mean, by = was > 0 ? 100 * fabs(d->change.change) / was : 0,
               noise = was > 0 ? 100 * d->change.noise / was : 0;
  report_fact(r, "verdict", NULL, cell_text(d->verdict == DIFF_FASTER ? "faster" : word[d->verdict]));
  report_fact(r, "change_ps", NULL, difference(d->change.change));
  report_fact(r, "noise_ps", NULL, isinf(d->change.noise) ? cell_none() : ps(d->change.noise));
  if (d->verdict == DIFF_UNKNOWN)
    report_line(r, "verdict", "%.1f %% %s; one step on a side: how much steps vary is not known", by,
                d->change.change > 0 ? "slower" : "faster");
  else if (d->verdict == DIFF_SAME)
    report_line(r, "verdict", "no difference: %.1f %% %s, and steps vary so that up to %.1f %% mean nothing",
                by, d->change.change > 0 ? "slower" : "faster", noise);
  else
    report_line(r, "verdict", "%.1f %% %s; up to %.1f %% would mean nothing, as steps vary", by,
                d->verdict == DIFF_SLOWER ? "slower" : "faster", noise);
}

// Of communications whose members were all recorded: do ranks wait for others, or do links take longer?
static void put_waiting(report *r, arena *a, const job_diff *d) {
  const diff_waiting *w = &d->waiting;
  const double step = d->side[0].step.mean, transfer = w->ps - w->wait_ps;
  const bool longer = w->ps > 0;
  report_fact(r, "waiting_change_ps", NULL, w->known ? difference(w->wait_ps) : cell_none());
  report_fact(r, "transfer_change_ps", NULL, w->known ? difference(transfer) : cell_none());
  report_fact(r, "waits_for_rank", NULL,
              w->known && w->rank != TRACE_NONE ? cell_i(CELL_INT, w->rank) : cell_none());
  if (!w->known || fabs(w->ps) < TOLD * step) return;
  const bool waits = fabs(w->wait_ps) > fabs(transfer),
             one = w->rank != TRACE_NONE && 2 * w->rank_ps > w->wait_ps;
  const char *why =
      fabs(w->wait_ps) < w->doubt_ps && fabs(transfer) < w->doubt_ps ? "which of both, clocks leave in doubt"
      : !waits      ? longer ? "slower links, not late ranks" : "faster links"
      : !longer     ? "ranks come together more closely; links are not faster"
      : one         ? arena_printf(a, "waits for rank %u, not slower links", w->rank)
      : w->nameless ? "waits for ranks that no file names, not slower links; rank0.json, .. would name them"
                    : "waits for several ranks by turns, not slower links";
  report_line(r, "", "communications take %s %s: waiting %s%s, transfer %s%s; %s",
              time_text(a, (i64)fabs(w->ps)), longer ? "longer" : "less", w->wait_ps > 0 ? "+" : "",
              time_text(a, (i64)w->wait_ps), transfer > 0 ? "+" : "", time_text(a, (i64)transfer), why);
}

static void put_parts(report *r, const job_diff *d) {
  static const column cols[] = {{"part", "of a rank in a step"},
                                {"before_ps", "before"},
                                {"after_ps", "after"},
                                {"change_ps", "change"},
                                {NULL, ""}};
  report_table(r, "parts", cols, COUNT_OF(cols));
  for (u32 k = 0; k < DIFF_PARTS; k++) {
    const double x = d->side[0].part[k], y = d->side[1].part[k];
    report_row(r, (cell[]){cell_text(diff_part_names[k]), ps(x), ps(y), difference(y - x), share(y - x, x)});
  }
}

static void put_kernels(report *r, ctx *c, const job_diff *d, u32 top) {
  enum { NAME = 60, SPLIT = 6, COLUMNS = 8 };
  static const column all[COLUMNS] = {{"kernel", "kernel"},          {"before_count", "before"},
                                      {"after_count", "after"},      {"before_ps", "time"},
                                      {"after_ps", "time after"},    {"change_ps", "change"},
                                      {"wait_change_ps", "waiting"}, {"transfer_change_ps", "transfer"}};
  column *cols = NEWN(r->a, column, COLUMNS);
  memcpy(cols, all, sizeof all);
  for (u32 k = SPLIT; k < COLUMNS && !d->waiting.known; k++) cols[k].title = NULL;
  report_table(r, "kernels", cols, COLUMNS);
  for (u32 k = 0; k < d->nkernels; k++) {
    const diff_kernel *x = &d->kernel[k];
    const double by = x->ps[1] - x->ps[0], wait = x->wait_ps[1] - x->wait_ps[0];
    report_row(r, (cell[]){cell_name(sym_str(c, x->name), NAME), cell_x(CELL_REAL, x->count[0]),
                           cell_x(CELL_REAL, x->count[1]), ps(x->ps[0]), ps(x->ps[1]), difference(by),
                           x->split ? difference(wait) : cell_none(),
                           x->split ? difference(by - wait) : cell_none()});
  }
  report_top(r, top);
}

bool answer_diff(report *r, ctx *c, arena *a, const trace_ask *q) {
  if (q->npaths != 2) {
    diag(c, E_USAGE, (loc){0}, "a comparison needs two paths: before and after; got %u", q->npaths);
    diag_hint(c, "heddle trace diff BEFORE AFTER; the files of one job are in one folder");
    return false;
  }
  job *before = job_open(c, a, 1, q->path), *after = before ? job_open(c, a, 1, q->path + 1) : NULL;
  job_diff d;
  if (!after || !job_diff_of(before, after, q->steps, a, &d)) return false;
  put_sides(r, &d);
  for (u32 k = 0; k < 2; k++) { // a job need not have as many ranks as the other
    const u32 all = d.side[k].world ? d.side[k].world : d.side[!k].ranks;
    if (d.side[k].ranks < all)
      report_line(r, "ranks", "%u of %u recorded %s: the slowest may be missing", d.side[k].ranks, all,
                  k ? "after" : "before");
  }
  if (d.side[0].world && d.side[1].world && d.side[0].world != d.side[1].world)
    report_line(r, "ranks", "the job had %u before and has %u after", d.side[0].world, d.side[1].world);
  report_gap(r);
  put_verdict(r, &d);
  put_waiting(r, a, &d);
  report_gap(r);
  put_parts(r, &d);
  report_gap(r);
  put_kernels(r, c, &d, q->top ? q->top : TOP);
  return true;
}
