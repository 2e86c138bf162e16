// schedule.c - a schedule in figures: idle time and live activations of its places.
#include "report/internal.h"

const u32 REPORT_COSTS[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = 2, [TASK_I] = 1, [TASK_W] = 1};

const char *stages_on(arena *a, const sched *s, u32 place, u32 *count) {
  strbuf b = {.a = a};
  bool *on = ZNEWN(a, bool, s->nstages);
  *count = 0;
  for (u32 i = 0; i < s->seq[place].n; i++) on[s->seq[place].v[i].stage] = true;
  for (u32 k = 0; k < s->nstages; k++)
    if (on[k]) sb_fmt(&b, "%s%u", (*count)++ ? " " : "", k);
  return sb_str(&b);
}

static void put_places(report *r, arena *a, const sched *s, const sched_times *t) {
  enum { SHOWN = 32 };
  static const column cols[] = {{"place", "place"}, {"stages", "stages"}, {"tasks", "tasks"},
                                {"idle", "idle"},   {"bubble", "bubble"}, {"activations", "activations"}};
  report_table(r, "by_place", cols, COUNT_OF(cols));
  for (u32 p = 0; p < s->nplaces; p++) {
    u32 n;
    const char *stages = stages_on(a, s, p, &n);
    u64 idle = t->makespan - t->busy[p];
    report_row(r,
               (cell[]){cell_i(CELL_INT, p), cell_text(stages), cell_i(CELL_INT, s->seq[p].n),
                        cell_i(CELL_INT, (i64)idle), cell_x(CELL_SHARE, (double)idle / (double)t->makespan),
                        s->backward ? cell_i(CELL_INT, t->live[p]) : cell_none()});
  }
  report_top(r, SHOWN);
}

void report_schedule(report *r, arena *a, const sched *s, const sched_times *t, const char *name,
                     bool picture) {
  report_fact(r, "schedule", "schedule", cell_text(name));
  report_fact(r, "places", "places", cell_i(CELL_INT, s->nplaces));
  report_fact(r, "stages", "stages", cell_i(CELL_INT, s->nstages));
  report_fact(r, "microbatches", "microbatches", cell_i(CELL_INT, sched_first(s, s->nreplicas)));
  report_fact(r, "time", NULL, cell_i(CELL_INT, (i64)t->makespan));
  report_line(r, "time",
              s->backward ? "%llu, where a forward of a stage takes 1 and a backward 2"
                          : "%llu, where a forward of a stage takes 1",
              (unsigned long long)t->makespan);
  if (t->held) {
    report_fact(r, "time_held", NULL, cell_i(CELL_INT, (i64)t->held));
    report_line(r, "held", "%llu, where the tasks of a pair start together and end together",
                (unsigned long long)t->held);
  }
  report_gap(r);
  if (picture) {
    strbuf b = {.a = a};
    sched_picture(s, t, &b);
    sb_char(&b, '\n');
    report_note(r, sb_str(&b));
  }
  put_places(r, a, s, t);
}
