// answer_compare.c - a recorded step beside the simulated one: the gap row by row, by rank, by class of event, by place in
// the model. Both on one timeline: compare_timeline.c.
#include "report/internal.h"
#include "sim/sim.h"

enum { TOP = 10, KERNELS = 5, NAME = 60, PLACE = 28 };

// ---- text -----------------------------------------------------------------------------------------------
static void put_step(report *r, arena *a, const job_compare *d, const prediction *p) {
  strbuf b = {.a = a};
  report_fact(r, "model", "model", cell_text(p->model));
  report_fact(r, "plan", p->plan ? "plan" : NULL, cell_text(p->plan));
  report_fact(r, "parameter_dtypes", p->weights ? "weights" : NULL, cell_text(p->weights));
  report_fact(r, "machine", "machine", cell_text(machine_title(a, p->m)));
  report_fact(r, "ranks", d->n == d->plan_ranks ? "ranks" : NULL, cell_i(CELL_INT, d->n));
  if (d->n != d->plan_ranks)
    report_line(r, "ranks", "%u recorded of the plan's %u: those are compared", d->n, d->plan_ranks);
  const cell measured = cell_i(CELL_PS, d->step_ps[0]), least = cell_i(CELL_PS, d->least_ps),
             most = cell_i(CELL_PS, d->most_ps);
  cell_print(&measured, &b);
  if (d->nsteps > 1) {
    sb_fmt(&b, ", the median of %u steps from ", d->nsteps), cell_print(&least, &b);
    sb_put(&b, " to "), cell_print(&most, &b);
  }
  report_line(r, "measured", "%s", sb_str(&b));
  report_fact(r, "measured_ps", NULL, measured);
  report_fact(r, "steps", NULL, cell_i(CELL_INT, d->nsteps));
  report_fact(r, "step", NULL, d->step == TRACE_NONE ? cell_none() : cell_i(CELL_INT, d->step));
  report_fact(r, "least_ps", NULL, least), report_fact(r, "most_ps", NULL, most);
  report_fact(r, "sd_ps", NULL, d->nsteps > 1 ? cell_ps(d->steps.sd) : cell_none());
  report_fact(r, "alone", NULL, cell_i(CELL_BOOL, d->alone));
  report_fact(r, "predicted_ps", "predicted", cell_i(CELL_PS, d->step_ps[1]));
  report_error(r, a, p->s);
  report_fact(r, "gap_ps", "gap", cell_signed(cell_i(CELL_PS, d->step_ps[0] - d->step_ps[1])));
  report_fact(r, "ratio", "ratio", cell_x(CELL_TIMES, (double)d->step_ps[0] / (double)MAX(d->step_ps[1], 1)));
  if (d->alone && d->nsteps)
    report_line(r, "step", "no step before it was recorded, so it is compared with one step alone");
  report_fact(r, "clocks_corrected_ps", NULL, cell_i(CELL_PS, d->clocks_by_ps));
  if (d->clocks_by_ps)
    report_line(r, "clocks", "of hosts are up to %s apart: put on that of the first",
                time_text(a, d->clocks_by_ps));
  if (!d->clocks)
    report_line(r, "clocks",
                "ranks count from different moments: steps are laid one upon the other, and waiting inside "
                "communications is not told apart");
  if (d->lone)
    report_line(r, "alone",
                "%u of %u communications lack members in these files: their waiting counts as communication",
                d->lone, d->comms);
  report_fact(r, "lone", NULL, cell_i(CELL_INT, d->lone));
}

// Predictions take collectives to go around a ring where more than two ranks take part, else from each to the other.
static void tell_collectives(ctx *c, const job_compare *d, loc at) {
  const char *how = d->ran.collectives.i ? sym_str(c, d->ran.collectives) : "";
  const bool ring = d->members > 2;
  if (d->members < 2 || (strcmp(how, "mpi") != 0 && (strcmp(how, "direct") != 0 || !ring))) return;
  diag(c, W_TRACE_OTHER, at,
       "recorded with --collectives %s, but the prediction takes collectives of %s to go %s", how,
       ring ? "more than two ranks" : "two ranks", ring ? "around a ring" : "from each to the other");
  diag_hint(c, "record with --collectives auto, the default, to compare communication");
}

static bool tell_other(ctx *c, const job_compare *d, const prediction *p) {
  const trace_ran *ran = &d->ran;
  const loc at = loc_node(c, sym_of(c, d->file), (sym){0}, (sym){0});
  tell_collectives(c, d, at);
  if (!ran->digest.i || !p->digest || !strcmp(sym_str(c, ran->digest), p->digest)) return false;
  const char *model = sym_str(c, ran->model), *under = ran->plan.i ? sym_str(c, ran->plan) : "no plan";
  if (!strcmp(model, p->model) && p->plan && !strcmp(under, p->plan))
    diag(c, W_TRACE_OTHER, at,
         "recorded was '%s' under %s, as predicted, but with other sizes, another optimizer, or another file "
         "of that name",
         model, under);
  else
    diag(c, W_TRACE_OTHER, at, "recorded was '%s' under %s, predicted is '%s' under %s", model, under,
         p->model, p->plan ? p->plan : "no plan");
  if (ran->machine.i)
    diag_hint(
        c, "compare with the model, the sizes and the plan that were run, and as the run with --machine %s",
        sym_str(c, ran->machine));
  else
    diag_hint(c, "compare with the model, the sizes and the plan that were run; for training, with --train");
  return true;
}

// By how much instructions start and end earlier or later than predicted.
// other: the recording says that it is of another program.
static void put_activity(report *r, ctx *c, arena *a, const job_compare *d, bool other) {
  double worst = 0;
  for (u32 k = 0; k < d->nstages; k++) worst = MAX(worst, d->stage[k].median);
  const cell mean = d->paired ? cell_x(CELL_SHARE, d->activity) : cell_none(),
             median = d->paired ? cell_x(CELL_SHARE, worst) : cell_none();
  report_fact(r, "paired", NULL, cell_i(CELL_INT, (i64)d->paired));
  report_fact(r, "instructions_measured", NULL, cell_i(CELL_INT, (i64)d->instructions));
  if (2 * d->paired < d->instructions && !other) {
    diag(c, W_TRACE_OTHER, loc_node(c, sym_of(c, d->file), (sym){0}, (sym){0}),
         "only %llu of the %llu recorded instructions are in the prediction", (unsigned long long)d->paired,
         (unsigned long long)d->instructions);
    diag_hint(c, "compare with the model, the sizes and the plan that were run; for training, with --train");
  }
  report_fact(r, "activity", NULL, mean), report_fact(r, "activity_median", NULL, median);
  if (!d->paired) return;
  strbuf b = {.a = a};
  sb_fmt(&b, "%llu of %llu instructions start and end ", (unsigned long long)d->paired,
         (unsigned long long)d->instructions);
  cell_print(&mean, &b), sb_put(&b, " of the step away from the prediction, on average; median ");
  if (d->nstages > 1) sb_put(&b, "of the worst stage ");
  cell_print(&median, &b);
  report_line(r, "activity", "%s", sb_str(&b));
}

// Means over ranks, rounded so that they still add up.
typedef struct {
  i64 sum[2], told[2];
  u32 n;
} rounding;
static i64 mean_of(rounding *x, u32 side, i64 ps) {
  x->sum[side] += ps;
  const i64 half = x->sum[side] < 0 ? -(i64)x->n / 2 : (i64)x->n / 2,
            upto = (x->sum[side] + half) / (i64)x->n, mean = upto - x->told[side];
  return x->told[side] = upto, mean;
}

static const char *kind_of_row(u32 row) {
  if (row < COMPARE_COMM) return "computation";
  return row < COMPARE_COPY ? "exposed communication" : row == COMPARE_COPY ? "copies" : "idle";
}

static void put_rows(report *r, const job_compare *d) {
  static const column cols[] = {{"group", "of a rank"},        {"part", ""},      {"measured_ps", "measured"},
                                {"predicted_ps", "predicted"}, {"gap_ps", "gap"}, {"share", "of the gap"}};
  rounding x = {.n = d->n};
  const i64 gap = d->step_ps[0] - d->step_ps[1];
  report_gap(r);
  report_table(r, "parts", cols, COUNT_OF(cols));
  for (u32 k = 0; k < COMPARE_ROWS; k++) {
    const i64 m = mean_of(&x, 0, d->row_ps[0][k]), p = mean_of(&x, 1, d->row_ps[1][k]);
    if (!m && !p) continue;
    const char *name = compare_row_name(k);
    report_row(r, (cell[]){cell_text(kind_of_row(k)), cell_text(strcmp(name, "send") ? name : "send, recv"),
                           cell_i(CELL_PS, m), cell_i(CELL_PS, p), cell_signed(cell_i(CELL_PS, m - p)),
                           gap && m != p ? cell_x(CELL_SHARE, (double)(m - p) / (double)gap) : cell_none()});
  }
}

enum { PARTS = 4 };
static void parts_of(const compare_rank *c, u32 side, i64 sum[PARTS]) {
  for (u32 k = 0; k < COMPARE_ROWS; k++)
    sum[k < COMPARE_COMM ? 0 : k < COMPARE_COPY ? 1 : k == COMPARE_COPY ? 2 : 3] += c->row_ps[side][k];
}

// By rank; of a pipeline by stage, means over its ranks.
static void put_ranks(report *r, arena *a, const job_compare *d) {
  static const column by_rank[] = {{"rank", "rank"},           {"ranks", NULL},
                                   {"compute_ps", "computes"}, {"predicted_compute_ps", "predicted"},
                                   {"exposed_ps", "exposed"},  {"predicted_exposed_ps", "predicted"},
                                   {"copy_ps", "copies"},      {"predicted_copy_ps", "predicted"},
                                   {"idle_ps", "idle"},        {"predicted_idle_ps", "predicted"}};
  column *cols = NEWN(a, column, COUNT_OF(by_rank)); // a table keeps them
  u32 stages = 0, *of = NEWN(a, u32, d->n + 1);
  memcpy(cols, by_rank, sizeof by_rank);
  for (u32 k = 0; k < d->n; k++) stages = MAX(stages, d->rank[k].stage + 1);
  const bool staged = stages > 1;
  if (staged) cols[0] = (column){"stage", "stage"};
  report_gap(r);
  report_table(r, "by_rank", cols, COUNT_OF(by_rank));
  for (u32 k = 0; k < d->n; k++) of[k] = staged ? d->rank[k].stage : k;
  for (u32 g = 0; g < (staged ? stages : d->n); g++) {
    i64 sum[2][PARTS] = {{0}};
    u32 n = 0;
    for (u32 k = 0; k < d->n; k++)
      if (of[k] == g) n++, parts_of(&d->rank[k], 0, sum[0]), parts_of(&d->rank[k], 1, sum[1]);
    if (!n) continue;
    cell row[COUNT_OF(by_rank)] = {cell_i(CELL_INT, staged ? g : d->rank[g].rank), cell_i(CELL_INT, n)};
    for (u32 i = 0; i < PARTS; i++)
      for (u32 s = 0; s < 2; s++) row[2 + 2 * i + s] = cell_i(CELL_PS, sum[s][i] / (i64)n);
    report_row(r, row);
  }
  report_top(r, 16);
}

static void put_events(report *r, const job_compare *d, u32 top) {
  static const column cols[] = {{"event", "event"},
                                {"group", "kind"},
                                {"measured_count", "measured"},
                                {"predicted_count", "predicted"},
                                {"measured_mean_ps", "mean"},
                                {"predicted_mean_ps", "predicted"},
                                {"difference_ps", "in all"}};
  report_gap(r);
  report_table(r, "events", cols, COUNT_OF(cols));
  for (u32 k = 0; k < d->nevents; k++) {
    const compare_event *e = &d->event[k];
    cell mean[2];
    for (u32 s = 0; s < 2; s++)
      mean[s] = e->count[s] ? cell_i(CELL_PS, e->total_ps[s] / (i64)e->count[s]) : cell_none();
    report_row(r, (cell[]){cell_text(strcmp(e->name, "send") ? e->name : "send, recv"),
                           cell_text(kind_of_row(e->row)), cell_x(CELL_REAL, (double)e->count[0] / d->n),
                           cell_x(CELL_REAL, (double)e->count[1] / d->n), mean[0], mean[1],
                           cell_signed(cell_i(CELL_PS, (e->total_ps[0] - e->total_ps[1]) / (i64)d->n))});
  }
  report_top(r, top);
}

static cell place_name(const char *s) { return *s ? cell_name(s, PLACE) : cell_none(); }

// Where the disagreement is in the program.
static void put_places(report *r, arena *a, const job_compare *d, u32 top) {
  static const column all[] = {{"instruction", "instruction"},     {"function", "function"},
                               {"node", "of the model"},           {"measured_count", "measured"},
                               {"predicted_count", "predicted"},   {"measured_mean_ps", "mean"},
                               {"predicted_mean_ps", "predicted"}, {"difference_ps", "in all"}};
  column *cols = NEWN(a, column, COUNT_OF(all)); // a table keeps them
  bool functions = false;
  if (!d->nplaces) return;
  for (u32 k = 0; k < d->nplaces; k++) functions |= *d->place[k].func;
  memcpy(cols, all, sizeof all);
  if (!functions) cols[1].title = NULL;
  report_gap(r);
  report_table(r, "instructions", cols, COUNT_OF(all));
  for (u32 k = 0; k < d->nplaces; k++) {
    const compare_place *p = &d->place[k];
    cell mean[2];
    for (u32 s = 0; s < 2; s++)
      mean[s] = p->count[s] ? cell_i(CELL_PS, p->total_ps[s] / (i64)p->count[s]) : cell_none();
    report_row(r, (cell[]){cell_text(p->name), place_name(p->func), place_name(p->node),
                           cell_x(CELL_REAL, (double)p->count[0] / d->n),
                           cell_x(CELL_REAL, (double)p->count[1] / d->n), mean[0], mean[1],
                           cell_signed(cell_i(CELL_PS, (p->total_ps[0] - p->total_ps[1]) / (i64)d->n))});
  }
  report_top(r, top);
}

static void put_unknown(report *r, ctx *c, const job_compare *d) {
  static const column cols[] = {{"kernel", "other kernels"}, {"count", "count"}, {"time_ps", "time"}};
  if (!d->nkernels) return;
  report_gap(r);
  report_table(r, "other", cols, COUNT_OF(cols));
  for (u32 k = 0; k < d->nkernels; k++) {
    report_row(r, (cell[]){cell_name(sym_str(c, d->kernel[k].name), NAME),
                           cell_x(CELL_REAL, (double)d->kernel[k].count / d->n),
                           cell_i(CELL_PS, d->kernel[k].total_ps / (i64)d->n)});
  }
  report_top(r, KERNELS);
}

bool answer_compare(report *r, ctx *c, arena *a, const trace_ask *q) {
  job_compare d;
  assert(q->predicted);
  job *j = job_open(c, a, q->npaths, q->path);
  if (!j || (q->timeline && convert_overwrites(c, j, q->timeline))) return false;
  if (!job_compare_of(j, q->predicted->s, q->steps, a, &d)) return false;
  if (q->timeline && !compare_timeline(c, a, &d, q->timeline)) return false;
  put_step(r, a, &d, q->predicted);
  put_activity(r, c, a, &d, tell_other(c, &d, q->predicted));
  put_rows(r, &d);
  put_ranks(r, a, &d);
  put_events(r, &d, q->top ? q->top : TOP);
  put_places(r, a, &d, q->top ? q->top : TOP);
  put_unknown(r, c, &d);
  return true;
}
