// search.c - the ranked table of plans, why the best is best, and how much of the space was looked at.
#include "report/report.h"

static const char *const recompute_name[] = {"none", "selective", "full"};
static const char *const schedule_name[] = {"gpipe", "1f1b"};
static const char *const state_name[SEARCH_STATES] = {[SEARCH_RAN] = "simulated",
                                                      [SEARCH_INDIVISIBLE] = "impossible",
                                                      [SEARCH_BOUND_MEMORY] = "ruled out by memory",
                                                      [SEARCH_BOUND_TIME] = "ruled out by time",
                                                      [SEARCH_OVER_MEMORY] = "does not fit"};

// The largest part of the time that is not spent computing; computing, if they are all small.
static const char *limit_of(const search_point *p) {
  if (p->state == SEARCH_OVER_MEMORY) return "memory";
  if (MAX(p->bubble, p->comm) < 0.2) return "computation";
  return p->comm > p->bubble ? "communication" : p->pipeline > 1 ? "bubble" : "waiting";
}

static const char *limit_text(arena *a, const search_point *p) {
  const char *what = limit_of(p);
  double share = *what == 'b' || *what == 'w'   ? p->bubble
                 : !strcmp(what, "computation") ? p->utilisation
                                                : p->comm;
  return p->state == SEARCH_OVER_MEMORY ? what : arena_printf(a, "%s %.0f %%", what, 100 * share);
}

static const char *name_of(arena *a, const search_point *p, bool train) {
  strbuf b = {.a = a};
  sb_fmt(&b, "data %u", p->data);
  if (p->tensor > 1) sb_fmt(&b, ", tensor %u", p->tensor);
  if (p->pipeline > 1) sb_fmt(&b, ", pipeline %u", p->pipeline);
  if (p->micro > 1) sb_fmt(&b, ", microbatches %u", p->micro);
  if (p->pipeline > 1 && train) sb_fmt(&b, " (%s)", schedule_name[p->schedule]);
  if (p->zero) sb_fmt(&b, ", ZeRO %u", p->zero);
  if (p->recompute) sb_fmt(&b, ", recompute %s", recompute_name[p->recompute]);
  return sb_str(&b);
}

static const char *text_of(arena *a, cell x) {
  strbuf b = {.a = a};
  cell_print(&x, &b);
  return sb_str(&b);
}

// The best plan that uses one dimension only; NULL: none was simulated.
static const search_point *alone(const search_result *s, int dimension) {
  for (u32 i = 0; i < s->npoints; i++) {
    const search_point *p = &s->point[i];
    u32 others = dimension == 0   ? p->tensor * p->pipeline
                 : dimension == 1 ? p->data * p->pipeline
                                  : p->data * p->tensor;
    if (p->time_ps && others == 1) return p;
  }
  return NULL;
}

static void put_other(report *r, arena *a, const char *label, const search_point *p, const char *how,
                      const search_result *s, bool train) {
  double times = (double)p->time_ps / (double)s->point[0].time_ps;
  report_line(r, label, "%s", name_of(a, p, train));
  report_line(r, "", "%s the time, %s", text_of(a, cell_x(CELL_TIMES, times)), how);
}

// Of batch norm under a plan: what policy_hybrid gives it.
static void put_batchnorm(report *r, const prog *p, const search_opts *o, const search_point *at) {
  const hybrid_opts h = search_hybrid(o, at);
  const plan pn = {.batchnorm_groups = policy_batchnorm(p, &h)};
  const batchnorm_stats bn = plan_batchnorm(p, &pn);
  report_batchnorm(r, &bn);
}

// Why the best is best and what limits the others, in lines made of the figures.
static void put_why(report *r, arena *a, const prog *p, const search_opts *o, const search_result *s) {
  static const char *const dimension[] = {"data alone", "tensor alone", "pipeline alone"};
  const search_point *w = &s->point[0], *more = NULL;
  double best = (double)w->time_ps;
  report_line(r, "winner", "%s", name_of(a, w, o->train));
  report_line(r, "", "computes %s of the time, communicates %s; needs %s%s%s",
              text_of(a, cell_x(CELL_SHARE, w->utilisation)), text_of(a, cell_x(CELL_SHARE, w->comm)),
              text_of(a, cell_i(CELL_BYTES, w->peak_bytes)), s->memory_bytes > 0 ? " of " : "",
              s->memory_bytes > 0 ? text_of(a, cell_i(CELL_BYTES, s->memory_bytes)) : "");
  put_batchnorm(r, p, o, w);
  if (s->nfit > 1)
    put_other(r, a, "next", &s->point[1], arena_printf(a, "limited by %s", limit_of(&s->point[1])), s,
              o->train);
  for (int k = 0; k < 3; k++) {
    const search_point *at = alone(s, k);
    if (!at || at == w) continue;
    if (at->state == SEARCH_OVER_MEMORY)
      report_line(r, dimension[k], "does not fit: %s", text_of(a, cell_i(CELL_BYTES, at->peak_bytes)));
    else
      report_line(r, dimension[k], "%s the time, limited by %s",
                  text_of(a, cell_x(CELL_TIMES, (double)at->time_ps / best)), limit_of(at));
  }
  for (u32 i = s->nfit; i < s->npoints; i++) {
    const search_point *at = &s->point[i];
    if (at->state == SEARCH_OVER_MEMORY && at->time_ps < w->time_ps && (!more || at->time_ps < more->time_ps))
      more = at;
  }
  if (more)
    put_other(r, a, "with more memory", more,
              arena_printf(a, "with %s", text_of(a, cell_i(CELL_BYTES, more->peak_bytes))), s, o->train);
  if (s->one_device_ps)
    report_line(r, "one device", "%s the time, %s: --devices 1",
                text_of(a, cell_x(CELL_TIMES, (double)s->one_device_ps / best)),
                text_of(a, cell_i(CELL_PS, s->one_device_ps)));
  report_line(r, "certificate", "%u plans: %u simulated, of which %u fit;", s->npoints,
              s->count[SEARCH_RAN] + s->count[SEARCH_OVER_MEMORY], s->nfit);
  report_line(r, "", "%u ruled out by memory, %u by time; %u impossible", s->count[SEARCH_BOUND_MEMORY],
              s->count[SEARCH_BOUND_TIME], s->count[SEARCH_INDIVISIBLE]);
}

void report_search(report *r, arena *a, const prog *p, const machine *m, const search_opts *o,
                   const search_result *s, const char *model) {
  static const column cols[] = {{"rank", ""},
                                {"data", "D"},
                                {"tensor", "T"},
                                {"pipeline", "P"},
                                {"microbatches", "K"},
                                {"schedule", ""},
                                {"zero", "ZeRO"},
                                {"recompute", "recompute"},
                                {"state", NULL},
                                {"time_ps", "time"},
                                {"times_best", ""},
                                {"samples_per_s", "samples"},
                                {"peak_bytes", "memory"},
                                {"utilisation", NULL},
                                {"communication", NULL},
                                {"limit", NULL},
                                {NULL, "limited by"}};
  report_fact(r, "model", "model", cell_text(model));
  report_fact(r, "parameter_dtypes", "weights", cell_text(report_types(a, p, ROLE_WEIGHT)));
  report_fact(r, "machine", "machine", cell_text(sym_str(m->c, m->name)));
  report_fact(r, "ranks", "ranks", cell_i(CELL_INT, o->ranks ? o->ranks : m->nranks));
  report_fact(r, "batch", "batch", s->batch ? cell_i(CELL_INT, s->batch) : cell_none());
  report_fact(r, "memory_limit_bytes", "memory limit",
              s->memory_bytes >= 0 ? cell_i(CELL_BYTES, s->memory_bytes) : cell_text("none"));
  report_fact(r, "train", NULL, cell_i(CELL_BOOL, o->train));
  report_gap(r);
  report_table(r, "plans", cols, COUNT_OF(cols));
  u32 top = o->top ? o->top : s->npoints;
  i64 best = s->point[0].time_ps;
  for (u32 i = 0; i < s->npoints && i < top; i++) {
    const search_point *at = &s->point[i];
    if (!at->time_ps) break;
    double seconds = (double)at->time_ps * 1e-12;
    report_row(r,
               (cell[]){cell_i(CELL_INT, i + 1), cell_i(CELL_INT, at->data), cell_i(CELL_INT, at->tensor),
                        cell_i(CELL_INT, at->pipeline), cell_i(CELL_INT, at->micro),
                        at->pipeline > 1 && o->train ? cell_text(schedule_name[at->schedule]) : cell_none(),
                        cell_i(CELL_INT, at->zero), cell_text(recompute_name[at->recompute]),
                        cell_text(state_name[at->state]), cell_i(CELL_PS, at->time_ps),
                        cell_x(CELL_TIMES, (double)at->time_ps / (double)best),
                        s->batch ? cell_x(CELL_PER_S, (double)s->batch / seconds) : cell_none(),
                        cell_i(CELL_BYTES, at->peak_bytes), cell_x(CELL_SHARE, at->utilisation),
                        cell_x(CELL_SHARE, at->comm), cell_text(limit_of(at)), cell_text(limit_text(a, at))});
  }
  report_gap(r);
  put_why(r, a, p, o, s);
  if (s->one_device_ps) report_fact(r, "one_device_ps", NULL, cell_i(CELL_PS, s->one_device_ps));
  report_fact(r, "space", NULL, cell_i(CELL_INT, s->npoints));
  report_fact(r, "fit", NULL, cell_i(CELL_INT, s->nfit));
  report_fact(r, "simulated", NULL, cell_i(CELL_INT, s->count[SEARCH_RAN] + s->count[SEARCH_OVER_MEMORY]));
  report_fact(r, "ruled_out_by_memory", NULL, cell_i(CELL_INT, s->count[SEARCH_BOUND_MEMORY]));
  report_fact(r, "ruled_out_by_time", NULL, cell_i(CELL_INT, s->count[SEARCH_BOUND_TIME]));
  report_fact(r, "impossible", NULL, cell_i(CELL_INT, s->count[SEARCH_INDIVISIBLE]));
}
