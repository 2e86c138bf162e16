// annotate.c - the task graphs of a plan that was made from annotations, and what moves between them.
#include "report/internal.h"

void report_task_graphs(report *r, const plan_task_graphs *t) {
  static const column graphs[] = {{"name", "task graph"},
                                  {"strategy", "strategy"},
                                  {"covers", "covers"},
                                  {"virtual_devices", "virtual devices"}};
  static const column bridges[] = {{"from", "bridge from"},
                                   {"to", "to"},
                                   {"forward_bytes", "forward"},
                                   {"backward_bytes", "backward"},
                                   {"fused", "fused"}};
  report_table(r, "task_graphs", graphs, COUNT_OF(graphs));
  for (u32 k = 0; k < t->n + t->ninside; k++)
    report_row(r, (cell[]){cell_text(t->v[k].name), cell_text(t->v[k].strategy), cell_text(t->v[k].covers),
                           cell_text(t->v[k].devices)});
  report_top(r, 16);
  report_gap(r);
  if (!t->nbridges) return;
  report_table(r, "bridges", bridges, COUNT_OF(bridges));
  for (u32 k = 0; k < t->nbridges; k++) {
    const plan_bridge *b = &t->bridge[k];
    report_row(r, (cell[]){cell_text(t->v[b->from].name), cell_text(t->v[b->to].name),
                           cell_i(CELL_BYTES, (i64)b->bytes[0]), cell_i(CELL_BYTES, (i64)b->bytes[1]),
                           cell_i(CELL_BOOL, b->bytes[0] + b->bytes[1] == 0)});
  }
  report_top(r, 16);
  report_gap(r);
}
