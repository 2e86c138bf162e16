// answer_blame.c - who is late, and what that costs. In a pipelined job by operation, stage, data rank, worker, microbatch
// and step, with one line that says it (found out in diagnose/straggler_blame.c); of recorded kernels by rank (late.c).
#include "report/internal.h"
#include <stdlib.h>

enum { TOP = 3 };
typedef struct {
  report *r;
  arena *a;
  const straggler *s;
  const straggler_blame *b;
  u32 top;
} blaming;

static double lost(const straggler_blame *b) { return b->replayed_ps - b->ideal_ps; }
// Of the time lost, what repairing wins back. Nothing is lost: 0.
static double explains(const straggler_blame *b, double repaired_ps) {
  return lost(b) > 0 ? (b->replayed_ps - repaired_ps) / lost(b) : 0;
}

// ---- the verdict ----------------------------------------------------------------------------------------
// The smallest group whose repair wins back at least half of the time lost: workers, then a stage or a data rank, then
// an operation. Below 3 % over the ideal nobody is blamed, as in the published analysis.
static u32 best_of(const straggler_score *x, u32 n) {
  u32 best = 0;
  for (u32 k = 1; k < n; k++)
    if (x[k].repaired_ps < x[best].repaired_ps) best = k;
  return best;
}

static const char *costs(const blaming *x, const char *who, straggler_score of) {
  const straggler_blame *b = x->b;
  strbuf now = {.a = x->a}, then = {.a = x->a};
  const cell before = cell_ps(b->replayed_ps), after = cell_ps(of.repaired_ps);
  cell_print(&before, &now), cell_print(&after, &then);
  return arena_printf(x->a, "%s costs %.0f %% of the step; repairing it gains %.0f %% (%s instead of %s)",
                      who, 100 * (of.alone_ps - b->ideal_ps) / b->replayed_ps,
                      100 * (b->replayed_ps - of.repaired_ps) / b->replayed_ps, sb_str(&then), sb_str(&now));
}

static const char *verdict(const blaming *x) {
  const straggler *s = x->s;
  const straggler_blame *b = x->b;
  if (b->replayed_ps < 1.03 * b->ideal_ps)
    return arena_printf(x->a, "nobody is late: a step takes %.1f %% longer than the ideal one",
                        100 * (b->replayed_ps / b->ideal_ps - 1));
  const u32 slowest = b->slowest[0];
  if (explains(b, b->worker[slowest].repaired_ps) >= 0.5)
    return costs(x, straggler_worker_name(x->a, s, slowest), b->worker[slowest]);
  if (explains(b, b->workers_repaired_ps) >= 0.5)
    return arena_printf(x->a, "%u of %u workers, first %s, cost %.0f %% of the step", b->nslow, s->nworkers,
                        straggler_worker_name(x->a, s, slowest),
                        100 * (b->replayed_ps - b->workers_repaired_ps) / b->replayed_ps);
  const u32 stage = best_of(b->stage, s->nstages), data = best_of(b->data, s->ndata),
            op = best_of(b->type, b->ngroups);
  const bool by_stage = b->stage[stage].repaired_ps <= b->data[data].repaired_ps;
  const straggler_score half = by_stage ? b->stage[stage] : b->data[data];
  if (s->nworkers > 1 && explains(b, half.repaired_ps) >= 0.5 && (by_stage ? s->nstages : s->ndata) > 1)
    return costs(
        x, by_stage ? arena_printf(x->a, "stage %u", stage) : arena_printf(x->a, "data rank %u", data), half);
  if (explains(b, b->type[op].repaired_ps) >= 0.5)
    return costs(x, arena_printf(x->a, "%s, of all workers,", b->group[op]), b->type[op]);
  return arena_printf(
      x->a,
      "many are late by turns: no stage, data rank or operation explains half of it; stage %u "
      "explains %.0f %%, %s %.0f %%",
      stage, 100 * explains(b, b->stage[stage].repaired_ps), b->group[op],
      100 * explains(b, b->type[op].repaired_ps));
}

// ---- tables ---------------------------------------------------------------------------------------------
static cell share(double x) { return cell_x(CELL_SHARE, x); }

static void by_operation(const blaming *x) {
  static const column cols[] = {{"operation", "operation"}, {"took_ps", "takes"},     {"waited_ps", "waits"},
                                {"waiting", "waiting"},     {"slowdown", "slowdown"}, {"costs_ps", "costs"},
                                {"gains_ps", "gains"},      {"explains", "explains"}};
  const straggler_blame *b = x->b;
  report_gap(x->r);
  report_line(x->r, NULL, "per step and worker, and what each operation does to the step:");
  report_table(x->r, "operations", cols, COUNT_OF(cols));
  for (u32 k = 0; k < b->ngroups; k++) {
    const double all = b->took_ps[k] + b->waited_ps[k];
    bool comm = false;
    for (u32 t = 0; t < STRAGGLER_TYPES; t++)
      comm |= x->s->count[t] && b->group_of[t] == k && straggler_types[t].comm;
    report_row(x->r, (cell[]){cell_text(b->group[k]), cell_ps(b->took_ps[k]),
                              comm ? cell_ps(b->waited_ps[k]) : cell_none(),
                              comm ? share(all > 0 ? b->waited_ps[k] / all : 0) : cell_none(),
                              cell_x(CELL_TIMES, b->type[k].alone_ps / b->ideal_ps),
                              cell_ps(b->type[k].alone_ps - b->ideal_ps),
                              cell_ps(b->replayed_ps - b->type[k].repaired_ps),
                              share(explains(b, b->type[k].repaired_ps))});
  }
}

typedef struct {
  u32 number;
  double alone;
} ranked;
static int by_alone(const void *x, const void *y) {
  const ranked *a = x, *b = y;
  if (a->alone != b->alone) return a->alone > b->alone ? -1 : 1;
  return a->number < b->number ? -1 : 1;
}

// Columns are the same for all kinds, so that text shows them as one table.
static const column who_cols[] = {{"name", "who"},       {"number", NULL},      {"rank", NULL},
                                  {"data", NULL},        {"stage", NULL},       {"slowdown", "slowdown"},
                                  {"costs_ps", "costs"}, {"gains_ps", "gains"}, {"explains", "explains"}};

static void by_who(const blaming *x, const char *key, const char *kind, const straggler_score *of, u32 n) {
  const straggler_blame *b = x->b;
  const bool worker = of == b->worker;
  ranked *order = NEWN(x->a, ranked, n + 1);
  for (u32 k = 0; k < n; k++) order[k] = (ranked){k, of[k].alone_ps};
  qsort(order, n, sizeof *order, by_alone);
  report_table(x->r, key, who_cols, COUNT_OF(who_cols));
  for (u32 i = 0; i < n; i++) {
    const u32 k = order[i].number;
    const straggler_worker *w = worker ? &x->s->worker[k] : NULL;
    report_row(x->r,
               (cell[]){cell_text(worker ? straggler_worker_name(x->a, x->s, k)
                                         : arena_printf(x->a, "%s %u", kind, k)),
                        cell_i(CELL_INT, k), w ? cell_i(CELL_INT, w->rank) : cell_none(),
                        w               ? cell_i(CELL_INT, w->data)
                        : of == b->data ? cell_i(CELL_INT, k)
                                        : cell_none(),
                        w                ? cell_i(CELL_INT, w->stage)
                        : of == b->stage ? cell_i(CELL_INT, k)
                                         : cell_none(),
                        cell_x(CELL_TIMES, of[k].alone_ps / b->ideal_ps),
                        cell_ps(of[k].alone_ps - b->ideal_ps), cell_ps(b->replayed_ps - of[k].repaired_ps),
                        share(explains(b, of[k].repaired_ps))});
  }
  report_top(x->r, x->top);
}

static void by_step(const blaming *x) {
  static const column cols[] = {{"step", "step"},
                                {"recorded_ps", "recorded"},
                                {"replayed_ps", "replayed"},
                                {"ideal_ps", "ideal"},
                                {"slowdown", "slowdown"}};
  const straggler *s = x->s;
  const straggler_blame *b = x->b;
  ranked *order = NEWN(x->a, ranked, s->nsteps);
  for (u32 k = 0; k < s->nsteps; k++)
    order[k] = (ranked){k, (double)b->replayed_step_ps[k] / (double)MAX(b->ideal_step_ps[k], 1)};
  qsort(order, s->nsteps, sizeof *order, by_alone);
  report_gap(x->r);
  report_table(x->r, "by_step", cols, COUNT_OF(cols));
  for (u32 i = 0; i < s->nsteps; i++) {
    const u32 k = order[i].number;
    report_row(x->r, (cell[]){cell_i(CELL_INT, s->step[k]), cell_i(CELL_PS, s->span_ps[k]),
                              cell_i(CELL_PS, b->replayed_step_ps[k]), cell_i(CELL_PS, b->ideal_step_ps[k]),
                              cell_x(CELL_TIMES, order[i].alone)});
  }
  report_top(x->r, x->top);
}

// ---- the map --------------------------------------------------------------------------------------------
static void heat(const blaming *x) {
  static const char shade[] = " .:-=+*#%@";
  enum { WIDE = 16 };
  const straggler *s = x->s;
  const straggler_blame *b = x->b;
  strbuf m = {.a = x->a};
  double most = 1;
  for (u32 k = 0; k < s->nworkers; k++) most = MAX(most, b->worker[k].alone_ps / b->ideal_ps);
  sb_put(&m, "\nslowdown by each worker alone: a line for every stage, a column for every data rank\n");
  for (u32 stage = 0; stage < s->nstages; stage++) {
    sb_fmt(&m, "%5u ", stage);
    for (u32 data = 0; data < s->ndata; data++) {
      const double v = b->worker[stage * s->ndata + data].alone_ps / b->ideal_ps;
      const double hot = most > 1 && v > 1 ? (v - 1) / (most - 1) : 0;
      if (s->ndata <= WIDE)
        sb_fmt(&m, " %4.2f", v);
      else
        sb_char(&m, shade[(u32)(hot * (sizeof shade - 2) + 0.5)]);
    }
    sb_char(&m, '\n');
  }
  if (s->ndata > WIDE) sb_fmt(&m, "from '%c' 1.00x to '%c' %.2fx\n", shade[0], shade[sizeof shade - 2], most);
  report_note(x->r, sb_str(&m));
}

static void facts(const blaming *x) {
  const straggler *s = x->s;
  const straggler_blame *b = x->b;
  strbuf now = {.a = x->a}, then = {.a = x->a};
  const cell replayed = cell_ps(b->replayed_ps), ideal = cell_ps(b->ideal_ps);
  cell_print(&replayed, &now), cell_print(&ideal, &then);
  report_fact(x->r, "replayed_ps", NULL, replayed);
  report_fact(x->r, "ideal_ps", NULL, ideal);
  report_fact(x->r, "slowdown", NULL, cell_x(CELL_TIMES, b->replayed_ps / b->ideal_ps));
  report_line(x->r, "step", "%s; %s if every operation took what it does on average: %.2fx", sb_str(&now),
              sb_str(&then), b->replayed_ps / b->ideal_ps);
  report_fact(x->r, "verdict", "verdict", cell_text(verdict(x)));
  report_fact(x->r, "slowest_workers", NULL, cell_i(CELL_INT, b->nslow));
  report_fact(x->r, "slowest_workers_explain", NULL, share(explains(b, b->workers_repaired_ps)));
  report_fact(x->r, "last_stage_explains", NULL, share(explains(b, b->stage[s->nstages - 1].repaired_ps)));
  report_line(x->r, "explained",
              "by the slowest 3 %% of workers (%u) %.1f %% of what is lost, by the last stage %.1f %%",
              b->nslow, 100 * explains(b, b->workers_repaired_ps),
              100 * explains(b, b->stage[s->nstages - 1].repaired_ps));
}

// Of recorded kernels: a replay, who is late in it, and the waiting in every communication.
static bool blame_kernels(report *r, ctx *c, arena *a, const trace_ask *q, job *j) {
  job_input in;
  replay *x = job_input_of(j, q->steps, &in) ? replay_new(c, a, &in.replay) : NULL;
  job_close(j);
  if (!x) return false;
  const late_report l = late_of(x, a);
  report_fact(r, "recorded_ps", "recorded", cell_i(CELL_PS, l.error.recorded_ps));
  report_left_out(r, a, &in);
  report_replayed(r, a, &l.error);
  report_late(r, a, &l);
  report_late_comms(r, c, a, x, &l, q->top);
  return true;
}

bool answer_blame(report *r, ctx *c, arena *a, const trace_ask *q) {
  job *j = job_open(c, a, q->npaths, q->path);
  const job_kind is = j ? job_kind_of(j) : JOB_MIXED;
  if (is == JOB_KERNELS) return blame_kernels(r, c, a, q, j);
  straggler *s = is == JOB_PIPELINE ? straggler_of_job(j, a, q->steps) : NULL;
  job_close(j);
  if (!s) return false;
  const blaming x = {.r = r, .a = a, .s = s, .b = straggler_blame_of(a, s), .top = q->top ? q->top : TOP};
  report_straggler(r, s, j->file[0].path);
  facts(&x);
  by_operation(&x);
  report_gap(r);
  by_who(&x, "by_stage", "stage", x.b->stage, s->nstages);
  by_who(&x, "by_data", "data rank", x.b->data, s->ndata);
  by_who(&x, "by_worker", "worker", x.b->worker, s->nworkers);
  by_who(&x, "by_microbatch", "microbatch", x.b->microbatch, s->nmicro);
  heat(&x);
  by_step(&x);
  return true;
}
