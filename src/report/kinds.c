// kinds.c - the table of the kinds of devices that a plan is on: what each of them gets and does.
#include "report/internal.h"

const char *report_beyond(arena *a, const char *who, double times) {
  strbuf b = {.a = a};
  const cell more = cell_x(CELL_SHARE, times - 1);
  sb_fmt(&b, "%s ", who);
  if (times >= 2)
    sb_fmt(&b, "%.3g times that", times);
  else
    cell_print(&more, &b), sb_put(&b, " more");
  return sb_str(&b);
}

void report_kinds(report *r, const plan_kind *v, u32 n) {
  static const column all[] = {{"device", "device"},        {"ranks", "ranks"},
                               {"gets", "each gets"},       {"work", "share of work"},
                               {"utilisation", "computes"}, {"communication", "communicates"},
                               {"bubble", "idle"},          {"peak_bytes", "peak memory"},
                               {"usable_bytes", "usable"},  {"one_more", "gain of one more, at most"}};
  column *cols = arena_dup(r->a, all, sizeof all);
  bool told = n > 1, some = false; // of one kind the rest of the report says it
  for (u32 k = 0; k < n; k++) told = told && v[k].gets, some |= v[k].one_more > 0;
  for (u32 i = 0; i < COUNT_OF(all); i++)
    if (!told && (i == 2 || i == 3 || i > 6)) cols[i].title = NULL;
  if (!some) cols[COUNT_OF(all) - 1].title = NULL;
  report_table(r, "devices", cols, COUNT_OF(all));
  for (u32 k = 0; k < n; k++) {
    const plan_kind *x = &v[k];
    const bool works = x->peak_bytes > 0;
    report_row(r,
               (cell[]){cell_text(x->name), cell_i(CELL_INT, x->ranks), cell_text(x->gets),
                        x->work >= 0 ? cell_x(CELL_SHARE, x->work) : cell_none(),
                        works ? cell_x(CELL_SHARE, x->computes) : cell_none(),
                        works ? cell_x(CELL_SHARE, x->communicates) : cell_none(),
                        works ? cell_x(CELL_SHARE, MAX(1 - x->computes - x->communicates, 0)) : cell_none(),
                        cell_i(CELL_BYTES, x->peak_bytes), cell_i(CELL_BYTES, x->usable_bytes),
                        x->one_more > 0 ? cell_x(CELL_SHARE, 1 / x->one_more - 1) : cell_none()});
  }
}
