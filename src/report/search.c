// search.c - the ranked table of plans, why the best is best, and how much of the space was looked at.
#include "report/internal.h"
#include <stdlib.h>

static const char *state_name(const search_point *p) {
  return p->state == SEARCH_OVER_MEMORY ? "does not fit" : "simulated";
}

// The largest part of the time that is not spent computing; computing, if they are all small.
static const char *limit_of(const search_point *p) {
  if (p->state == SEARCH_OVER_MEMORY) return "memory";
  if (MAX(p->bubble, p->comm) < 0.2) return "computation";
  const strategy s = search_strategy(p);
  return p->comm > p->bubble ? "communication" : strategy_most(&s, CHOICE_pp) > 1 ? "bubble" : "waiting";
}

static const char *limit_text(arena *a, const search_point *p) {
  const char *what = limit_of(p);
  double share = *what == 'b' || *what == 'w'   ? p->bubble
                 : !strcmp(what, "computation") ? p->utilisation
                                                : p->comm;
  return p->state == SEARCH_OVER_MEMORY ? what : arena_printf(a, "%s %.0f %%", what, 100 * share);
}

static const char *text_of(arena *a, cell x) {
  strbuf b = {.a = a};
  cell_print(&x, &b);
  return sb_str(&b);
}

// Of a plan that was simulated: was every faster one, too? Those that were ruled out may be faster than it.
static bool is_known(const search_result *s, const search_point *p) {
  return p->time_ps <= s->last_ps || !s->count[SEARCH_BOUND_TIME];
}

// The best plan that uses one degree only, on all ranks; NULL: none was simulated, or it is not known.
static const search_point *alone(const search_result *s, choice_id degree, u32 ranks) {
  for (u32 i = 0; i < s->npoints; i++) {
    const search_point *p = &s->point[i];
    if (p->time_ps && search_value(p, degree).n == ranks) return is_known(s, p) ? p : NULL;
  }
  return NULL;
}

static void put_other(report *r, arena *a, const char *label, const search_point *p, const char *how,
                      const search_result *s) {
  double times = (double)p->time_ps / (double)s->point[0].time_ps;
  report_line(r, label, "%s", search_str(a, p));
  report_line(r, "", "%s the time, %s", text_of(a, cell_x(CELL_TIMES, times)), how);
}

static void put_alone(report *r, arena *a, const search_result *s, u32 ranks) {
  const search_point *w = &s->point[0];
  for (choice_id k = 0; choice_is_degree(k); k++) {
    const search_point *p = alone(s, k, ranks);
    const char *label = arena_printf(a, "%s alone", choice_get(k)->name);
    if (!p || p == w) continue;
    if (p->state == SEARCH_OVER_MEMORY && s->count[SEARCH_BOUND_TIME]) continue; // another one may fit
    if (p->state == SEARCH_OVER_MEMORY)
      report_line(r, label, "does not fit: %s", text_of(a, cell_i(CELL_BYTES, p->peak_bytes)));
    else
      report_line(r, label, "%s the time, limited by %s",
                  text_of(a, cell_x(CELL_TIMES, (double)p->time_ps / (double)w->time_ps)), limit_of(p));
  }
}

// ---- what became of the space -------------------------------------------------------------------------
// As many at once as a search holds beside what it had. NULL: there are none.
static const char *not_searched(arena *a, const search_opts *o, const search_result *s, u32 ranks) {
  enum { MOST = 1 << 20, CHUNKS = 6 }; // plans; values of v, about
  choice_id id[CHOICE_COUNT];
  const u32 n = search_left_out(o, ranks, s->nkinds > 0, id);
  strbuf b = {.a = a};
  u64 plans = MAX(s->space, 1u);
  for (u32 i = 0; i < n; i++) {
    const u32 words = choice_all(id[i]), each = words ? words : id[i] == CHOICE_v ? CHUNKS : 2;
    const bool apart = i && plans * each > MOST;
    plans = apart ? (u64)MAX(s->space, 1u) * each : plans * each;
    sb_fmt(&b, "%s%s=*", !i ? "" : apart ? "' or '" : " ", choice_get(id[i])->name);
  }
  return b.n ? sb_str(&b) : NULL;
}

// Of a mixed machine: who gets how much, what equal shares cost, and how far it is from no device ever
// waiting.
static void put_kinds(report *r, arena *a, const search_result *s, u32 ranks) {
  const search_point *w = &s->point[0];
  if (!s->nkinds) return;
  report_gap(r);
  report_kinds(r, s->kinds, s->nkinds);
  report_gap(r);
  const double even = (double)s->even_ps / (double)w->time_ps;
  const strategy best = search_strategy(w);
  const u32 used = (u32)strategy_ranks(&best), first = best.skip.n;
  bool more = false;
  if (used < ranks)
    report_line(r, "left out", "%u of %u devices: the winner is on ranks %u to %u", ranks - used, ranks,
                first, first + used - 1);
  for (u32 k = 0; used < ranks && k < s->nkinds; k++)
    if (!s->kinds[k].peak_bytes && s->kinds[k].apart && *s->kinds[k].apart)
      report_line(r, "", "%s: %s, so that nothing is sent there", s->kinds[k].name, s->kinds[k].apart);
  report_fact(r, "equal_ps", NULL, s->even_ps ? cell_i(CELL_PS, s->even_ps) : cell_none());
  report_fact(r, "equal_strategy", NULL, s->even_ps ? cell_text(s->even) : cell_none());
  const bool apart = !s->even_ps || strcmp(s->even, search_str(a, w));
  if (!s->even_ps)
    report_line(r, "equal shares", "no plan that gives every device the same is possible and fits");
  else if (apart)
    report_line(r, "equal shares", "%s the time at best%s: %s", text_of(a, cell_x(CELL_TIMES, even)),
                strstr(s->even, " skip=") ? "" : arena_printf(a, " on all %u devices", ranks), s->even);
  if (apart && s->batch % ranks)
    report_line(r, "", "the batch of %lld is not divisible by %u devices: dp=%u has no equal shares",
                (long long)s->batch, ranks, ranks);
  report_fact(r, "spread_ps", NULL, s->spread_ps ? cell_i(CELL_PS, s->spread_ps) : cell_none());
  if (s->spread_ps && s->spread_ps < w->time_ps) // layers that suit different kinds may be faster apart
    report_line(r, "without waits", "%s, if no device ever waited for another one: %s",
                text_of(a, cell_i(CELL_PS, s->spread_ps)),
                report_beyond(a, "the winner takes", (double)w->time_ps / (double)s->spread_ps));
  for (u32 k = 0; k < s->nkinds; k++) more |= s->kinds[k].one_more > 0;
  if (more)
    report_line(r, "one more",
                "of the last column: how much faster a step would be with one more device of the kind, if no "
                "device ever "
                "waited; --what-if searches plans with more");
}

static void put_certificate(report *r, arena *a, const search_about *about, const search_opts *o,
                            const search_result *s) {
  enum { REASONS = 5 };
  const char *more = not_searched(a, o, s, about->ranks);
  const u32 *n = s->count, simulated = n[SEARCH_RAN] + n[SEARCH_OVER_MEMORY];
  report_line(r, "certificate",
              "%u plans: %u fit, %u too large, %u too slow, %u impossible, %u equal to another;", s->space,
              s->nfit, n[SEARCH_OVER_MEMORY] + n[SEARCH_BOUND_MEMORY], n[SEARCH_BOUND_TIME],
              n[SEARCH_IMPOSSIBLE], n[SEARCH_EQUAL]);
  if (s->host_count)
    report_line(r, "", "%u of the too large ones fit the devices, but not the %s of host memory of a node",
                s->host_count, text_of(a, cell_i(CELL_BYTES, s->host_usable)));
  report_line(r, "", "%u simulated, %u ruled out by bounds on memory, %u on time", simulated,
              n[SEARCH_BOUND_MEMORY], n[SEARCH_BOUND_TIME]);
  if (s->bound_failed)
    report_line(
        r, "",
        "a plan was faster than its bound, so the search was repeated without such bounds: please report it");
  report_fact(r, "bound_failed", NULL, cell_i(CELL_BOOL, s->bound_failed));
  if (s->devices) report_line(r, "", "on ranks: %s", s->devices);
  report_fact(r, "devices_tried", NULL, s->devices ? cell_text(s->devices) : cell_none());
  if (s->bound_ps && s->nfit)
    report_line(r, "", "no plan can be faster than %s, its matmuls on all devices at their best rates: %s",
                text_of(a, cell_i(CELL_PS, s->bound_ps)),
                report_beyond(a, "the winner takes", (double)s->point[0].time_ps / (double)s->bound_ps));
  report_fact(r, "bound_ps", NULL, s->bound_ps ? cell_i(CELL_PS, s->bound_ps) : cell_none());
  if (s->most_microbatches)
    report_line(r, "", "the batch is not known, so mb=* ends at %u; --batch N has its divisors",
                s->most_microbatches);
  if (more)
    report_line(r, "",
                "other values of some choices are not in it; --strategy '%s' has them, --what-if tries each",
                more);
  if (o->space.of[CHOICE_v].all)
    report_line(r, "",
                "v=* has the numbers that deal out the layers evenly; others are tried when they are named, "
                "as in v=5");
  report_fact(r, "not_searched", NULL, more ? cell_text(more) : cell_none());
  for (u32 i = 0; i < s->nreasons && i < REASONS; i++) {
    report_line(r, i ? "" : "impossible", "%u such as %s:", s->reason[i].count,
                strategy_str(a, s->reason[i].example));
    report_line(r, "", "%s", s->reason[i].why);
  }
  if (s->nreasons > REASONS)
    report_line(r, "", "... and %u more reasons (--json has all)", s->nreasons - REASONS);
  report_replicas_tried(r, a, o, s);
}

static void put_counts(report *r, arena *a, const search_result *s) {
  static const column cols[] = {{"count", NULL}, {"reason", NULL}, {"example", NULL}};
  report_fact(r, "space", NULL, cell_i(CELL_INT, s->space));
  report_fact(r, "fit", NULL, cell_i(CELL_INT, s->nfit));
  report_fact(r, "simulated", NULL, cell_i(CELL_INT, s->count[SEARCH_RAN] + s->count[SEARCH_OVER_MEMORY]));
  report_fact(r, "ruled_out_by_memory", NULL, cell_i(CELL_INT, s->count[SEARCH_BOUND_MEMORY]));
  report_fact(r, "too_large_for_host", NULL, cell_i(CELL_INT, s->host_count));
  report_fact(r, "ruled_out_by_time", NULL, cell_i(CELL_INT, s->count[SEARCH_BOUND_TIME]));
  report_fact(r, "impossible", NULL, cell_i(CELL_INT, s->count[SEARCH_IMPOSSIBLE]));
  report_fact(r, "equal", NULL, cell_i(CELL_INT, s->count[SEARCH_EQUAL]));
  report_fact(r, "most_microbatches", NULL,
              s->most_microbatches ? cell_i(CELL_INT, s->most_microbatches) : cell_none());
  report_table(r, "impossible_reasons", cols, COUNT_OF(cols));
  for (u32 i = 0; i < s->nreasons; i++)
    report_row(r, (cell[]){cell_i(CELL_INT, s->reason[i].count), cell_text(s->reason[i].why),
                           cell_text(strategy_str(a, s->reason[i].example))});
}

// With the numbers that `auto` stands for; NULL: it has none.
static const char *resolved_str(arena *a, const search_point *p) {
  if (!p->resolved) return NULL;
  const strategy is = strategy_unpack(p->resolved);
  return strategy_str(a, &is);
}

static void put_fewer(report *r, arena *a, const char *label, const search_fewer *x, const search_point *w) {
  if (!x->time_ps) return;
  report_line(r, label, "%s the time, %s: --devices %u --strategy '%s'",
              text_of(a, cell_x(CELL_TIMES, (double)x->time_ps / (double)w->time_ps)),
              text_of(a, cell_i(CELL_PS, x->time_ps)), x->ranks, x->strategy);
}

// Why the best is best and what limits the others, in lines made of the figures.
static void put_why(report *r, arena *a, const search_about *about, const search_result *s) {
  const search_point *w = &s->point[0], *more = NULL;
  const cell share = about->mfu > 0 ? cell_x(CELL_SHARE, about->mfu) : cell_none();
  const char *mfu = about->mfu > 0 ? arena_printf(a, "; MFU %s", text_of(a, share)) : "";
  const bool own = s->memory_least && s->memory_least < s->memory_bytes; // devices have limits of their own
  report_line(r, about->nmeasured ? "predicted best" : "winner", "%s", search_str(a, w));
  const char *resolved = resolved_str(a, w);
  if (resolved) report_line(r, "auto resolved", "%s", resolved);
  report_fact(r, "resolved", NULL,
              resolved        ? cell_text(resolved)
              : s->nkinds > 0 ? cell_text(search_str(a, w))
                              : cell_none());
  report_line(r, "", "computes %s of the time, communicates %s, idles %s%s; needs %s%s%s",
              text_of(a, cell_x(CELL_SHARE, w->utilisation)), text_of(a, cell_x(CELL_SHARE, w->comm)),
              text_of(a, cell_x(CELL_SHARE, w->bubble)), mfu, text_of(a, cell_i(CELL_BYTES, w->peak_bytes)),
              own                   ? " on the fullest device"
              : s->memory_bytes > 0 ? " of "
                                    : "",
              !own && s->memory_bytes > 0 ? text_of(a, cell_i(CELL_BYTES, s->memory_bytes)) : "");
  if (w->alone_ps - w->time_ps > w->time_ps / 1000)
    report_line(r, "", "of one step alone, which takes %s; the next one begins beside its end",
                text_of(a, cell_i(CELL_PS, w->alone_ps)));
  const strategy best = search_strategy(w);
  if (!choice_file(best.schedule) && best.pp.n > 1 && sched_is_asynchronous(sched_row_of(best.schedule.n)))
    report_line(
        r, "",
        "asynchronous: weights are updated between tasks, so it computes something else than the others");
  report_fact(r, "mfu", NULL, share);
  const bool stages = about->layers && *about->layers;
  report_fact(r, "layers_by_stage", stages ? "layers" : NULL, cell_text(stages ? about->layers : NULL));
  report_batchnorm(r, &about->batchnorm);
  if (s->nfit > 1 && is_known(s, &s->point[1]))
    put_other(r, a, "next", &s->point[1], arena_printf(a, "limited by %s", limit_of(&s->point[1])), s);
  put_alone(r, a, s, about->ranks);
  for (u32 i = s->nfit; i < s->npoints; i++) {
    const search_point *p = &s->point[i];
    if (p->state == SEARCH_OVER_MEMORY && p->time_ps < w->time_ps - w->time_ps / 100 &&
        (!more || p->time_ps < more->time_ps))
      more = p;
  }
  if (more)
    put_other(r, a, "with more memory", more,
              arena_printf(a, "with %s", text_bytes_beside(a, more->peak_bytes, s->memory_bytes)), s);
  put_fewer(r, a, "one device", &s->one_device, w), put_fewer(r, a, "one node", &s->one_node, w);
}

// ---- the table ----------------------------------------------------------------------------------------
// Rows of the ranked plans, simulated ones only.
static u32 rows_of(const search_opts *o, const search_result *s) {
  u32 top = o->top ? o->top : s->npoints, n = 0;
  while (n < s->npoints && n < top && s->point[n].time_ps) n++;
  return n;
}

// A choice has a column in text where a plan that is shown is not at its default.
static bool is_shown(const search_result *s, u32 n, choice_id id) {
  for (u32 i = 0; i < n; i++)
    if (!choice_same(search_value(&s->point[i], id), choice_default(id))) return true;
  return false;
}

static strategy resolved(const search_point *p) {
  return p->resolved ? strategy_unpack(p->resolved) : search_strategy(p);
}

enum { WIDEST = 32 }; // numbers of many stages or ranks
// Where `auto` stands for numbers text has these, and JSON the word.
static bool is_resolved(const search_result *s, u32 n, choice_id id) {
  for (u32 i = 0; i < n; i++) {
    const strategy is = resolved(&s->point[i]);
    if (!choice_same(search_value(&s->point[i], id), is.of[id])) return true;
  }
  return false;
}

// null: where the choice cannot be made.
static cell choice_cell(arena *a, choice_id id, const strategy *s, bool train) {
  if (!choice_applies(id, s, train)) return cell_none();
  if (choice_get(id)->kind == CK_COUNT) return cell_i(CELL_INT, s->of[id].n);
  if (choice_get(id)->kind == CK_FLAG) return cell_i(CELL_BOOL, s->of[id].n);
  strbuf b = {.a = a};
  choice_print(id, s->of[id], &b);
  return cell_text(sb_str(&b));
}

static void put_plans(report *r, arena *a, const search_opts *o, const search_result *s) {
  static const column after[] = {
      {"strategy", NULL},       {"resolved", NULL},    {"state", NULL},
      STEP_COLUMNS("time"),     {"times_best", ""},    {"samples_per_s", "samples"},
      {"peak_bytes", "memory"}, {"utilisation", NULL}, {"communication", NULL},
      {"limit", NULL},          {NULL, "limited by"}};
  const u32 n = rows_of(o, s);
  column *cols = NEWN(a, column, 1 + 2 * CHOICE_COUNT + COUNT_OF(after));
  bool apart[CHOICE_COUNT];
  u32 ncols = 0;
  cols[ncols++] = (column){"rank", ""};
  for (u32 k = 0; k < CHOICE_COUNT; k++) {
    const choice_row *row = choice_get((choice_id)k);
    const char *title = is_shown(s, n, (choice_id)k) ? row->title : NULL;
    apart[k] = title && is_resolved(s, n, (choice_id)k);
    if (row->title) cols[ncols++] = (column){row->name, apart[k] ? NULL : title};
    if (row->title && apart[k]) cols[ncols++] = (column){NULL, title};
  }
  for (u32 k = 0; k < COUNT_OF(after); k++) cols[ncols++] = after[k];
  report_table(r, "plans", cols, ncols);
  cell *v = NEWN(a, cell, ncols);
  for (u32 i = 0; i < n; i++) {
    const search_point *at = &s->point[i];
    const strategy of = search_strategy(at), is = resolved(at);
    double best = (double)s->point[0].time_ps, seconds = (double)at->time_ps * 1e-12;
    u32 k = 0;
    v[k++] = cell_i(CELL_INT, i + 1);
    for (u32 id = 0; id < CHOICE_COUNT; id++) {
      if (!choice_get((choice_id)id)->title) continue;
      v[k++] = choice_cell(a, (choice_id)id, &of, o->train);
      if (!apart[id]) continue;
      const cell numbers = choice_cell(a, (choice_id)id, &is, o->train);
      v[k] = strlen(text_of(a, numbers)) > WIDEST ? v[k - 1] : numbers, k++;
    }
    v[k++] = cell_text(search_str(a, at));
    v[k++] = cell_text(resolved_str(a, at));
    v[k++] = cell_text(state_name(at));
    const cell step[] = {STEP_CELLS(o->train, at->time_ps, at->alone_ps)};
    for (u32 j = 0; j < COUNT_OF(step); j++) v[k++] = step[j];
    v[k++] = cell_x(CELL_TIMES, (double)at->time_ps / best);
    v[k++] = s->batch ? cell_x(CELL_PER_S, (double)s->batch / seconds) : cell_none();
    v[k++] = cell_i(CELL_BYTES, at->peak_bytes);
    v[k++] = cell_x(CELL_SHARE, at->utilisation);
    v[k++] = cell_x(CELL_SHARE, at->comm);
    v[k++] = cell_text(limit_of(at));
    v[k++] = cell_text(limit_text(a, at));
    report_row(r, v);
  }
}

// ---- families -----------------------------------------------------------------------------------------
// The fastest known first, then those of which only bounds are known, then those that none can be of.
static int by_behind(const void *a, const void *b) {
  const search_family *x = a, *y = b;
  const i64 least_x = x->best ? x->time_ps : x->bound_ps, least_y = y->best ? y->time_ps : y->bound_ps;
  if (x->of != y->of) return x->of < y->of ? -1 : 1;
  if (!x->best != !y->best) return x->best ? -1 : 1;
  if (!least_x != !least_y) return least_x ? -1 : 1;
  if (least_x != least_y) return least_x < least_y ? -1 : 1;
  if (x->applies != y->applies) return x->applies ? -1 : 1;
  return choice_compare(x->value, y->value);
}

// "1.04x"; "1.02x to 1.04x" where plans that were ruled out may be faster than the one that is known.
static const char *behind(arena *a, const search_family *f, i64 best_ps) {
  const char *known = f->best ? text_of(a, cell_x(CELL_TIMES, (double)f->time_ps / (double)best_ps)) : NULL,
             *least =
                 f->bound_ps ? text_of(a, cell_x(CELL_TIMES, (double)f->bound_ps / (double)best_ps)) : NULL;
  if (known && least && f->bound_ps < f->time_ps && strcmp(known, least))
    return arena_printf(a, "%s to %s", least, known);
  return known      ? known
         : least    ? arena_printf(a, "%s or more", least)
         : f->slow  ? "not known"
         : f->large ? "too large"
                    : "impossible";
}

static void put_families(report *r, arena *a, const search_opts *o, const search_result *s) {
  static const column columns[] = {
      {"choice", NULL},     {"value", NULL},      {NULL, "value"},    {"plans", "plans"},
      {"fit", NULL},        {"too_large", NULL},  {"too_slow", NULL}, {"strategy", "best known"},
      STEP_COLUMNS("time"), {"times_best", NULL}, {"bound_ps", NULL}, {NULL, "behind"}};
  search_family *v = NEWN(a, search_family, s->nfamilies + 1);
  if (s->nfamilies) memcpy(v, s->family, s->nfamilies * sizeof *v);
  for (u32 k = 0; k < s->nfamilies; k++) // what is too slow takes longer than all that is kept
    if (v[k].bound_ps) v[k].bound_ps = MAX(v[k].bound_ps, s->last_ps);
  if (s->nfamilies) qsort(v, s->nfamilies, sizeof *v, by_behind);
  report_table(r, "families", columns, COUNT_OF(columns));
  for (u32 k = 0; k < s->nfamilies && s->nfit; k++) {
    const search_family *f = &v[k];
    strbuf said = {.a = a}, word = {.a = a};
    const i64 best = s->point[0].time_ps;
    choice_say(f->of, f->value, &said), choice_print(f->of, f->value, &word);
    const char *none = arena_printf(a, "no %s", choice_get(f->of)->name);
    report_row(
        r,
        (cell[]){cell_text(choice_get(f->of)->name), f->applies ? cell_text(sb_str(&word)) : cell_none(),
                 cell_text(f->applies ? sb_str(&said) : none), cell_i(CELL_INT, f->fit + f->large + f->slow),
                 cell_i(CELL_INT, f->fit), cell_i(CELL_INT, f->large), cell_i(CELL_INT, f->slow),
                 f->best ? cell_text(search_str(a, f->best)) : cell_none(),
                 STEP_CELLS(o->train, f->best ? f->time_ps : 0, f->best ? f->alone_ps : 0),
                 f->best ? cell_x(CELL_TIMES, (double)f->time_ps / (double)best) : cell_none(),
                 f->bound_ps ? cell_i(CELL_PS, f->bound_ps) : cell_none(), cell_text(behind(a, f, best))});
  }
  if (s->nfamilies) report_gap(r);
}

// The plans that were run, the fastest first, those that did not run last: what was predicted beside it.
static void put_measured(report *r, arena *a, const search_about *about, const search_result *s) {
  static const column columns[] = {{"strategy", "measured plans"},
                                   {"measured_ps", "measured"},
                                   {"predicted_ps", "predicted"},
                                   {"error", "error"},
                                   {"predicted_rank", "predicted as"}};
  const u32 n = about->nmeasured;
  u32 *order = NEWN(a, u32, n + 1);
  const i64 *ps = about->measured_ps;
  for (u32 k = 0; k < n; k++) {
    u32 at = k;
    for (; at && ps[k] && (!ps[order[at - 1]] || ps[order[at - 1]] > ps[k]); at--) order[at] = order[at - 1];
    order[at] = k;
  }
  report_table(r, "measured_plans", columns, COUNT_OF(columns));
  for (u32 k = 0; k < n; k++) {
    const search_point *at = &s->point[order[k]];
    const i64 took = ps[order[k]];
    const cell row[] = {cell_text(search_str(a, at)), took ? cell_i(CELL_PS, took) : cell_none(),
                        cell_i(CELL_PS, at->time_ps),
                        took ? cell_signed(cell_x(CELL_SHARE, (double)at->time_ps / (double)took - 1))
                             : cell_none(),
                        cell_i(CELL_INT, order[k] + 1)};
    report_row(r, row);
  }
  report_gap(r);
  report_fact(r, "fastest", "winner, measured",
              ps[order[0]] ? cell_text(search_str(a, &s->point[order[0]])) : cell_none());
}

void report_search(report *r, arena *a, const search_about *about, const search_opts *o,
                   const search_result *s) {
  report_fact(r, "model", "model", cell_text(about->model));
  report_fact(r, "parameter_dtypes", "weights", cell_text(about->types));
  report_dropout(r, about->model, o->train);
  report_fact(r, "machine", "machine", cell_text(about->machine));
  report_fact(r, "ranks", "ranks", cell_i(CELL_INT, about->ranks));
  report_fact(r, "batch", "batch", s->batch ? cell_i(CELL_INT, s->batch) : cell_none());
  const bool own = s->memory_least && s->memory_least < s->memory_bytes;
  if (own)
    report_line(r, "memory limit", "per device, %s to %s", text_of(a, cell_i(CELL_BYTES, s->memory_least)),
                text_of(a, cell_i(CELL_BYTES, s->memory_bytes)));
  report_fact(r, "memory_limit_bytes", own ? NULL : "memory limit",
              s->memory_bytes >= 0 ? cell_i(CELL_BYTES, s->memory_bytes) : cell_text("none"));
  report_line(r, "step", "%s", o->train ? "training" : "inference; --train plans a training step");
  report_fact(r, "train", NULL, cell_i(CELL_BOOL, o->train));
  report_gap(r);
  put_plans(r, a, o, s);
  report_gap(r);
  put_families(r, a, o, s);
  if (about->nmeasured) put_measured(r, a, about, s);
  put_why(r, a, about, s);
  if (s->one_device.time_ps) {
    report_fact(r, "one_device_ps", NULL, cell_i(CELL_PS, s->one_device.time_ps));
    report_fact(r, "one_device_strategy", NULL, cell_text(s->one_device.strategy));
  }
  if (s->one_node.time_ps) {
    report_fact(r, "one_node_ps", NULL, cell_i(CELL_PS, s->one_node.time_ps));
    report_fact(r, "one_node_devices", NULL, cell_i(CELL_INT, s->one_node.ranks));
    report_fact(r, "one_node_strategy", NULL, cell_text(s->one_node.strategy));
  }
  put_certificate(r, a, about, o, s);
  put_kinds(r, a, s, about->ranks);
  put_counts(r, a, s);
}

void report_part(report *r, arena *a, const search_about *about, const search_opts *o,
                 const search_result *s) {
  const u32 simulated = s->count[SEARCH_RAN] + s->count[SEARCH_OVER_MEMORY];
  const u32 left = s->dealt + s->count[SEARCH_OPEN]; // for all parts; what is open others have
  report_fact(r, "model", "model", cell_text(about->model));
  report_fact(r, "machine", "machine", cell_text(about->machine));
  report_line(r, "space", "%u plans; %u are left to look at%s", s->space, left,
              left < s->space ? ", the others impossible, too large or equal to another" : "");
  report_fact(r, "part", NULL, cell_i(CELL_INT, o->part));
  report_fact(r, "parts", NULL, cell_i(CELL_INT, o->parts));
  report_line(r, "part", "%u of %u has %u of the %u: %u simulated, %u ruled out by bounds on time", o->part,
              o->parts, s->dealt, left, simulated, s->count[SEARCH_BOUND_TIME]);
  if (s->nfit)
    report_line(r, "best", "%s, %s", search_str(a, &s->point[0]),
                text_of(a, cell_i(CELL_PS, s->point[0].time_ps)));
  else
    report_line(r, "best", "no plan fits");
  report_fact(r, "space", NULL, cell_i(CELL_INT, s->space));
  report_fact(r, "left", NULL, cell_i(CELL_INT, left));
  report_fact(r, "dealt", NULL, cell_i(CELL_INT, s->dealt));
  report_fact(r, "simulated", NULL, cell_i(CELL_INT, simulated));
  report_fact(r, "ruled_out_by_time", NULL, cell_i(CELL_INT, s->count[SEARCH_BOUND_TIME]));
}
