// check.c - how far the numbers of a plan are from the model's, result by result.
#include "report/report.h"

// "1024 -> 8 (x[1]), 768 -> 16 (w[0])", several to a line where they fit.
static void put_shrunk(report *r, arena *a, const char *s) {
  enum { WIDTH = 88 };
  for (const char *label = "shrunk"; *s; label = "") {
    size_t n = strlen(s), fit = 0;
    for (const char *e = s; n > WIDTH && (e = strstr(e, "), ")); e += 3)
      if (!fit || (size_t)(e - s) + 2 <= WIDTH) fit = (size_t)(e - s) + 2;
    n = fit ? fit : n;
    report_line(r, label, "%s", arena_strndup(a, s, n));
    s += n + (s[n] == ' ');
  }
}

void report_check(report *r, arena *a, const verify_report *v, const char *model, const char *name,
                  const batchnorm_stats *bn) {
  static const column cols[] = {
      {"name", "result"},      {"elements", "elements"}, {"max_abs", "largest difference"},
      {"max_rel", "relative"}, {"told", NULL},           {"not_finite", NULL},
      {"rounding", NULL}};
  i64 elements = 0;
  u32 rounding = 0;
  const char *such = "";
  for (u32 i = 0; i < v->nrows; i++) elements += v->row[i].elems;
  for (u32 i = 0; i < v->nrows; i++)
    if (v->row[i].rounding && !rounding++) such = v->row[i].name;
  report_fact(r, "model", "model", cell_text(model));
  report_fact(r, "plan", "plan", cell_text(name));
  report_batchnorm(r, bn);
  bool whole = !v->shrunk || !*v->shrunk;
  report_fact(r, "shrunk", NULL, whole ? cell_none() : cell_text(v->shrunk));
  if (!whole) put_shrunk(r, a, v->shrunk);
  report_fact(r, "results", "results", cell_i(CELL_INT, v->nrows));
  report_fact(r, "elements", "elements", cell_i(CELL_INT, elements));
  report_fact(r, "worst", "worst", cell_x(CELL_REAL, v->worst));
  report_fact(r, "tolerance", "tolerance", cell_x(CELL_REAL, v->tolerance));
  report_fact(r, "passed", NULL, cell_i(CELL_BOOL, v->passed));
  report_fact(r, "told", NULL, cell_i(CELL_BOOL, v->told));
  report_line(r, "verdict", "%s%s",
              v->passed  ? v->stale ? "equal: the plan computes what one device does with the same staleness"
                                    : "equal: the plan computes what the model computes"
              : !v->told ? "INCONCLUSIVE: the results are equal, but a wrong plan could give the same"
                         : "DIFFERENT",
              whole || !v->passed ? "" : ", at the extents given above");
  if (rounding)
    report_line(r, "rounding", "%u result%s such as %s differ%s by no more than on other inputs", rounding,
                rounding == 1 ? "" : "s", such, rounding == 1 ? "s" : "");
  report_gap(r);
  report_table(r, "differences", cols, COUNT_OF(cols));
  for (u32 i = 0; i < v->nrows; i++)
    report_row(r, (cell[]){cell_text(v->row[i].name), cell_i(CELL_INT, v->row[i].elems),
                           cell_x(CELL_REAL, v->row[i].max_abs), cell_x(CELL_REAL, v->row[i].max_rel),
                           cell_i(CELL_INT, v->row[i].told), cell_i(CELL_INT, v->row[i].odd),
                           cell_i(CELL_BOOL, v->row[i].rounding)});
  report_top(r, 10);
}
