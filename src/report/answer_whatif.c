// answer_whatif.c - what the steps of a pipelined job would take with changes: each change by itself, and all together.
#include "report/internal.h"
#include <stdlib.h>

typedef struct {
  const straggler *s;
  i64 *dur;
  double before_ps;
} trying;

static void as_recorded(trying *t) {
  memcpy(t->dur, t->s->recorded_ps, (size_t)t->s->nsteps * t->s->n * sizeof *t->dur);
}

static void put_change(report *r, const trying *t, const char *text, i64 touched, double after_ps) {
  report_row(r, (cell[]){cell_text(text), cell_i(CELL_INT, touched), cell_ps(after_ps),
                         cell_signed(cell_ps(after_ps - t->before_ps)),
                         after_ps > 0 ? cell_x(CELL_TIMES, t->before_ps / after_ps) : cell_none()});
}

static void put_steps(report *r, const straggler *s, const i64 *before, const i64 *after, u32 top) {
  static const column cols[] = {
      {"step", "step"}, {"replayed_ps", "now"}, {"changed_ps", "then"}, {"change_ps", "change"}};
  report_gap(r);
  report_table(r, "by_step", cols, COUNT_OF(cols));
  for (u32 i = 0; i < s->nsteps; i++)
    report_row(r, (cell[]){cell_i(CELL_INT, s->step[i]), cell_i(CELL_PS, before[i]),
                           cell_i(CELL_PS, after[i]), cell_signed(cell_i(CELL_PS, after[i] - before[i]))});
  report_top(r, top ? top : 5);
}

static bool answer(report *r, ctx *c, arena *a, const trace_ask *q, const straggler *s, const char *path,
                   const job_change *x) {
  static const column cols[] = {{"change", "change"},
                                {"operations", "operations a step"},
                                {"changed_ps", "step"},
                                {"change_ps", "change"},
                                {"times_faster", "faster"}};
  trying t = {.s = s, .dur = NEWN(a, i64, (size_t)s->nsteps * s->n)};
  i64 *before = NEWN(a, i64, s->nsteps), *after = NEWN(a, i64, s->nsteps);
  straggler_replay(s, s->recorded_ps, before);
  t.before_ps = straggler_mean(s, before);
  report_straggler(r, s, path);
  report_fact(r, "replayed_ps", "step", cell_ps(t.before_ps));
  report_gap(r);
  report_table(r, "changes", cols, COUNT_OF(cols));
  for (u32 k = 0; k < q->nset; k++) {
    as_recorded(&t);
    const u32 touched = straggler_apply(c, s, &x[k], t.dur);
    if (!touched) return false;
    straggler_replay(s, t.dur, after);
    put_change(r, &t, x[k].text, touched, straggler_mean(s, after));
  }
  if (q->nset > 1) {
    as_recorded(&t);
    u8 *any = ZNEWN(a, u8, s->n);
    i64 touched = 0;
    for (u32 k = 0; k < q->nset; k++) {
      straggler_mark(s, &x[k], any);
      straggler_apply(c, s, &x[k], t.dur);
    }
    for (u32 k = 0; k < s->n; k++) touched += any[k];
    straggler_replay(s, t.dur, after);
    put_change(r, &t, "all of them, in this order", touched, straggler_mean(s, after));
  }
  report_fact(r, "changed_ps", NULL, cell_ps(straggler_mean(s, after)));
  put_steps(r, s, before, after, q->top);
  return true;
}

// ---- recorded kernels -----------------------------------------------------------------------------------
static void copy_times(const replay_input *in, const replay_times *from, replay_times *to) {
  for (u32 p = 0; p < in->n; p++) {
    memcpy(to->host[p], from->host[p], in->w[p]->nitems * sizeof **to->host);
    memcpy(to->op[p], from->op[p], in->w[p]->nops * sizeof **to->op);
  }
}

static void put_kernels(report *r, const char *text, i64 touched, i64 before, i64 after) {
  report_row(r, (cell[]){cell_text(text), touched ? cell_i(CELL_INT, touched) : cell_none(),
                         cell_i(CELL_PS, after), cell_signed(cell_i(CELL_PS, after - before)),
                         after > 0 ? cell_x(CELL_TIMES, (double)before / (double)after) : cell_none()});
}

static bool whatif_kernels(report *r, ctx *c, arena *a, const trace_ask *q, job *j, const job_change *x) {
  static const column cols[] = {{"change", "change"},
                                {"operations", "durations"},
                                {"changed_ps", "job"},
                                {"change_ps", "change"},
                                {"times_faster", "faster"}};
  job_input in;
  replay *p = job_input_of(j, q->steps, &in) ? replay_new(c, a, &in.replay) : NULL;
  job_close(j);
  if (!p) return false;
  const replay_times was = replay_recorded(p, a), recorded = replay_medians(p, &was, a);
  replay_times one = replay_recorded(p, a), all = replay_recorded(p, a);
  i64 **end = NEWN(a, i64 *, in.replay.n + 1);
  for (u32 k = 0; k < in.replay.n; k++) end[k] = NEWN(a, i64, in.replay.w[k]->nops + 1);
  const i64 before = replay_run(p, &was, NULL, end);
  const replay_errors error = replay_errors_of(p, end, a);
  report_fact(r, "ranks", "ranks", cell_i(CELL_INT, in.replay.n));
  report_fact(r, "replayed_ps", "job", cell_i(CELL_PS, before));
  report_left_out(r, a, &in);
  report_replayed(r, a, &error);
  report_gap(r);
  report_table(r, "changes", cols, COUNT_OF(cols));
  i64 after = before;
  for (u32 k = 0; k < q->nset; k++) {
    copy_times(&in.replay, &was, &one);
    const u32 touched = replay_apply(c, p, &recorded, &x[k], &one);
    const replay_times median = replay_medians(p, &all, a); // of what the changes before have left
    if (!touched || !replay_apply(c, p, &median, &x[k], &all)) return false;
    put_kernels(r, x[k].text, touched, before, after = replay_run(p, &one, NULL, NULL));
  }
  if (q->nset > 1)
    put_kernels(r, "all of them, in this order", 0, before, after = replay_run(p, &all, NULL, NULL));
  report_fact(r, "changed_ps", NULL, cell_i(CELL_PS, after));
  return true;
}

bool answer_whatif(report *r, ctx *c, arena *a, const trace_ask *q) {
  if (!q->nset) {
    diag(c, E_USAGE, (loc){0}, "nothing is changed");
    diag_hint(c, "say what would be different, such as --set 'rank 3 = median', or of a pipelined job "
                 "'worker 0 = ideal'");
    return false;
  }
  job_change *x = NEWN(a, job_change, q->nset);
  if (!changes_parse(c, a, q->nset, q->set, x)) return false;
  job *j = job_open(c, a, q->npaths, q->path);
  const job_kind is = j ? job_kind_of(j) : JOB_MIXED;
  if (is == JOB_KERNELS) return whatif_kernels(r, c, a, q, j, x);
  const straggler *s = is == JOB_PIPELINE ? straggler_of_job(j, a, q->steps) : NULL;
  job_close(j);
  return s && answer(r, c, a, q, s, j->file[0].path, x);
}
