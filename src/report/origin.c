// origin.c - where the figures of a simulation come from, and the error bar of its time.
#include "report/internal.h"
#include <stdlib.h>

static double share(const sim_result *s, i64 ps) {
  return s->makespan_ps ? (double)ps / (double)s->makespan_ps : 0;
}

// An error bar of a part is none of the whole: what is not known is not small.
void report_error(report *r, arena *a, const sim_result *s) {
  if (!s->norigins) return;
  const bool whole = s->spread_known_ps == s->makespan_ps;
  const cell error = cell_i(CELL_PS, s->error_ps), relative = cell_x(CELL_SHARE, share(s, s->error_ps));
  strbuf b = {.a = a};
  if (!whole) {
    const cell rest = cell_x(CELL_SHARE, share(s, s->makespan_ps - s->spread_known_ps));
    if (s->spread_known_ps) sb_put(&b, "at least +-"), cell_print(&error, &b);
    sb_put(&b, s->spread_known_ps ? "; no measured spread for " : "unknown: no measured spread for ");
    cell_print(&rest, &b);
    sb_put(&b, " of the step");
  }
  if (whole) sb_put(&b, "+-"), cell_print(&error, &b);
  if (whole) sb_put(&b, ", "), cell_print(&relative, &b);
  report_line(r, "error bar", "%s", sb_str(&b));
  report_fact(r, "time_error_ps", NULL, whole ? error : cell_none());
  report_fact(r, "known_error_ps", NULL, error);
  report_fact(r, "known_error_share", NULL, cell_x(CELL_SHARE, share(s, s->spread_known_ps)));
}

typedef struct {
  cost_source source;
  u64 count;
  i64 ps, known;
} source_time;

static int by_time(const void *x, const void *y) {
  const source_time *a = x, *b = y;
  if (a->ps != b->ps) return a->ps < b->ps ? 1 : -1;
  return a->source < b->source ? -1 : a->source > b->source;
}

static void put_sources(report *r, const sim_result *s) {
  static const column cols[] = {{"source", "cost source"},
                                {"count", "count"},
                                {"time_ps", "time"},
                                {"share", "share"},
                                {"known_error_share", "spread known"}};
  source_time sum[COST_SOURCES];
  for (u32 k = 0; k < COST_SOURCES; k++) sum[k] = (source_time){.source = (cost_source)k};
  for (u32 k = 0; k < s->norigins; k++) {
    const sim_origin *o = &s->origin[k];
    source_time *t = &sum[o->row.source];
    t->count += o->count;
    t->ps += o->ps;
    if (o->row.spread >= 0) t->known += o->ps;
  }
  qsort(sum, COST_SOURCES, sizeof *sum, by_time);
  report_table(r, "sources", cols, COUNT_OF(cols));
  for (u32 k = 0; k < COST_SOURCES && sum[k].ps; k++)
    report_row(r, (cell[]){cell_text(cost_source_name(sum[k].source)), cell_i(CELL_INT, (i64)sum[k].count),
                           cell_i(CELL_PS, sum[k].ps), cell_x(CELL_SHARE, share(s, sum[k].ps)),
                           cell_x(CELL_SHARE, share(s, sum[k].known))});
}

// "devices.yaml:72": without the folder, in which it is found on one machine only.
static const char *stated_in(arena *a, ctx *c, loc at) {
  const loc_info *l = loc_get(c, at);
  if (!l) return NULL;
  const char *file = sym_str(c, l->file), *slash = strrchr(file, '/');
  if (!l->line) return slash ? slash + 1 : file;
  return arena_printf(a, "%s:%u", slash ? slash + 1 : file, l->line);
}

static void put_figures(report *r, arena *a, ctx *c, const sim_result *s) {
  static const column cols[] = {
      {"figure", "figure"}, {"stated", "stated in"}, {"source", NULL},     {"count", "count"},
      {"time_ps", "time"},  {"share", "share"},      {"spread", "spread"}, {"measurements", "measurements"},
      {"measured", NULL}};
  static const column unseen[] = {{"figure", NULL}, {"stated", NULL},       {"source", NULL},
                                  {"count", NULL},  {"time_ps", NULL},      {"share", NULL},
                                  {"spread", NULL}, {"measurements", NULL}, {"measured", NULL}};
  report_table(r, "figures", s->spread_known_ps ? cols : unseen,
               COUNT_OF(cols)); // without spreads in JSON only
  for (u32 k = 0; k < s->norigins && s->origin[k].ps; k++) {
    const sim_origin *o = &s->origin[k];
    const bool known = o->row.spread >= 0;
    report_row(r,
               (cell[]){cell_text(o->row.figure), cell_text(stated_in(a, c, o->row.at)),
                        cell_text(cost_source_name(o->row.source)), cell_i(CELL_INT, (i64)o->count),
                        cell_i(CELL_PS, o->ps), cell_x(CELL_SHARE, share(s, o->ps)),
                        known ? cell_x(CELL_SHARE, o->row.spread) : cell_none(),
                        o->row.count ? cell_i(CELL_INT, o->row.count) : cell_none(), cell_text(o->row.of)});
  }
  report_top(r, 8);
}

void report_origins(report *r, arena *a, ctx *c, const sim_result *s) {
  if (!s->norigins) return;
  report_gap(r);
  put_sources(r, s);
  if (s->spread_known_ps) report_gap(r);
  put_figures(r, a, c, s);
}
