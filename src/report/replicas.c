// replicas.c - which replicas of different make-up a search tried, and what became of each.
#include "report/internal.h"

static const char *reason(arena *a, const search_result *s, const search_point *p) {
  strbuf b = {.a = a};
  cell x;
  switch (p->state) {
  case SEARCH_RAN: return NULL;
  case SEARCH_OVER_MEMORY: return "does not fit";
  case SEARCH_OPEN: return "left to another part";
  case SEARCH_BOUND_MEMORY:
    x = cell_i(CELL_BYTES, p->bound_bytes), cell_print(&x, &b);
    return arena_printf(a, "needs %s at least", sb_str(&b));
  case SEARCH_BOUND_TIME:
    x = cell_i(CELL_PS, s->last_ps), cell_print(&x, &b);
    return arena_printf(a, "its bound is above the last plan that is kept: %s", sb_str(&b));
  default: return p->why;
  }
}

void report_replicas_tried(report *r, arena *a, const search_opts *o, const search_result *s) {
  enum { SHOWN = 5 };
  static const column all[] = {{"replicas", "replicas tried"}, {"plans", "plans"},
                               {"simulated", "simulated"},     STEP_COLUMNS("best"),
                               {"bound_ps", "at least"},       {"reason", "why not"}};
  const search_make_up *v = s->make_up;
  const u32 n = s->nmake_ups;
  column *cols = arena_dup(a, all, sizeof all);
  bool any = false;
  if (s->no_replicas) report_line(r, "not tried", "%s", s->no_replicas);
  report_fact(r, "replicas_not_tried", NULL, cell_text(s->no_replicas));
  if (o->space.of[CHOICE_replicas].all && !n && !s->no_replicas)
    report_line(
        r, "replicas",
        "none tried: * is one of each node or kind of device, of 2 to 8, on devices of several kinds");
  for (u32 i = 0; i < n; i++) any |= v[i].top->state != SEARCH_RAN;
  if (!any) cols[COUNT_OF(all) - 1].title = NULL;
  if (n) report_gap(r);
  report_table(r, "replicas_tried", cols, COUNT_OF(all));
  for (u32 i = 0; i < n; i++) {
    const search_make_up *x = &v[i];
    strbuf name = {.a = a};
    choice_print(CHOICE_replicas, x->is, &name);
    report_row(r,
               (cell[]){cell_text(sb_str(&name)), cell_i(CELL_INT, x->plans), cell_i(CELL_INT, x->simulated),
                        STEP_CELLS(o->train, x->top->time_ps, x->top->alone_ps),
                        x->bound_ps ? cell_i(CELL_PS, x->bound_ps) : cell_none(),
                        cell_text(reason(a, s, x->top))});
  }
  report_top(r, SHOWN);
}
