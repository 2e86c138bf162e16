// why.c - why not a plan: beside the winner, row by row; and what other machines would give.
#include "report/internal.h"
#include <stdlib.h>

static const char *text_of(arena *a, cell x) {
  strbuf b = {.a = a};
  cell_print(&x, &b);
  return sb_str(&b);
}
static const char *ps_text(arena *a, i64 ps) { return text_of(a, cell_i(CELL_PS, ps)); }
static const char *bytes_text(arena *a, i64 n) { return text_of(a, cell_i(CELL_BYTES, n)); }

// ---- rows of two plans ----------------------------------------------------------------------------------
typedef struct {
  const char *what;
  u32 order;
  double of[2];
} row;
typedef struct {
  arena *a;
  VEC(row) v;
} rows;

static void add(rows *x, const char *what, u32 order, u32 side, double amount) {
  u32 k = 0;
  while (k < x->v.n && strcmp(x->v.v[k].what, what)) k++;
  if (k == x->v.n) *vec_push(x->a, &x->v) = (row){what, order, {0, 0}};
  x->v.v[k].of[side] += amount;
}

static int by_order(const void *x, const void *y) {
  const row *a = x, *b = y;
  return a->order != b->order ? (a->order < b->order ? -1 : 1) : strcmp(a->what, b->what);
}

enum { ORDER_COMM = 100, ORDER_SEND, ORDER_IDLE, ORDER_STEP, ORDER_BESIDE };
static void add_split(rows *x, const sim_split *s, u32 side) {
  static const char *const work[WORK_KINDS] = {
      [WORK_PRODUCT] = "matmul",          [WORK_BATCHED] = "batched matmul (attention)",
      [WORK_CONV] = "convolution",        [WORK_REDUCTION] = "reductions and norms",
      [WORK_ELEMENTWISE] = "elementwise", [WORK_MOVE] = "moving data"};
  static const char *const kind[] = {[SPLIT_RECOMPUTE] = "recomputing", [SPLIT_UPDATE] = "update"};
  u32 order = s->kind == SPLIT_COMM ? (s->op == OP_send ? ORDER_SEND : ORDER_COMM)
              : s->kind             ? WORK_KINDS + s->kind
                                    : (u32)s->work;
  const char *what = s->kind == SPLIT_COMM ? op_row_of(s->op)->name : s->kind ? kind[s->kind] : work[s->work];
  if (*s->over) what = arena_printf(x->a, "%s over %s", what, s->over);
  if (s->beside) what = arena_printf(x->a, "beside it: %s", what), order += ORDER_BESIDE;
  add(x, what, order, side, s->ps);
}

// The compute stream's time, mean over ranks; it adds up to the time per step.
static rows time_rows(arena *a, const search_why *w) {
  const search_look *look[2] = {&w->winner, &w->asked};
  rows x = {.a = a};
  for (u32 side = 0; side < 2; side++) {
    const sim_result *r = &look[side]->r;
    for (u32 k = 0; k < r->nsplit; k++) add_split(&x, &r->split[k], side);
    const double hidden = (double)(r->makespan_ps - r->period_ps); // what the next step begins beside
    add(&x, "idle", ORDER_IDLE, side, MAX(r->bubble * (double)r->makespan_ps - hidden, 0));
    add(&x, "step", ORDER_STEP, side, (double)r->period_ps);
  }
  qsort(x.v.v, x.v.n, sizeof *x.v.v, by_order);
  return x;
}

// In whole ps, so that the rows above the step add up to it: those with the largest fractions are rounded up.
static i64 *whole_ps(arena *a, const rows *x, u32 side) {
  i64 *out = NEWN(a, i64, x->v.n + 1), left = 0;
  u32 n = 0;
  for (u32 k = 0; k < x->v.n; k++) {
    const row *v = &x->v.v[k];
    const bool inside = v->order < ORDER_STEP;
    out[k] = (i64)(v->of[side] + (inside ? 0 : 0.5));
    left += inside ? -out[k] : v->order == ORDER_STEP ? out[k] : 0;
    n += inside;
  }
  bool *up = ZNEWN(a, bool, x->v.n + 1);
  for (left = left < 0 || left > n ? 0 : left; left;
       left--) { // outside of that, something is not in the rows
    u32 most = x->v.n;
    double best = -1;
    for (u32 k = 0; k < x->v.n; k++) {
      const double fraction = x->v.v[k].of[side] - (double)out[k];
      if (x->v.v[k].order < ORDER_STEP && !up[k] && fraction > best) most = k, best = fraction;
    }
    up[most] = true, out[most]++;
  }
  return out;
}

static void put_time(report *r, arena *a, const rows *x, i64 step_ps) {
  static const column cols[] = {{"what", "time on a rank"},
                                {"winner_ps", "winner"},
                                {"asked_ps", "asked"},
                                {"difference_ps", "difference"},
                                {"share", "of the step"}};
  const i64 *const of[] = {whole_ps(a, x, 0), whole_ps(a, x, 1)};
  report_gap(r);
  report_table(r, "why_time", cols, COUNT_OF(cols));
  for (u32 k = 0; k < x->v.n; k++) {
    const row *v = &x->v.v[k];
    const i64 winner = of[0][k], asked = of[1][k];
    if (!winner && !asked) continue;
    report_row(r,
               (cell[]){cell_text(v->what), cell_i(CELL_PS, winner), cell_i(CELL_PS, asked),
                        cell_signed(cell_i(CELL_PS, asked - winner)),
                        cell_signed(cell_x(CELL_SHARE, (double)(asked - winner) / (double)MAX(step_ps, 1)))});
  }
}

static void put_memory(report *r, const sim_result *winner, const sim_result *asked) {
  static const column cols[] = {{"what", "memory at the peak"},
                                {"winner_bytes", "winner"},
                                {"asked_bytes", "asked"},
                                {"difference_bytes", "difference"}};
  const sim_class *x = &winner->cls[winner->peak_class], *y = &asked->cls[asked->peak_class];
  report_gap(r);
  report_table(r, "why_memory", cols, COUNT_OF(cols));
  for (u32 k = 0; k <= MEM_KINDS; k++) {
    const i64 a = k < MEM_KINDS ? x->peak_kind[k] : x->peak_bytes;
    const i64 b = k < MEM_KINDS ? y->peak_kind[k] : y->peak_bytes;
    if (!a && !b) continue;
    report_row(r, (cell[]){cell_text(k < MEM_KINDS ? mem_kind_name((mem_kind)k) : "fullest rank"),
                           cell_i(CELL_BYTES, a), cell_i(CELL_BYTES, b),
                           cell_signed(cell_i(CELL_BYTES, b - a))});
  }
}

// ---- the answer in words --------------------------------------------------------------------------------
// "idle +1.2 ms, all_reduce over tp +300 us": up to three rows with most of what is lost (sign 1) or saved
// (-1).
static const char *because(arena *a, const rows *x, double sign) {
  enum { MOST = 3 };
  strbuf b = {.a = a};
  double all = 0, told = 0;
  bool *used = ZNEWN(a, bool, x->v.n + 1);
  for (u32 k = 0; k < x->v.n; k++)
    if (x->v.v[k].order < ORDER_STEP) all += MAX(sign * (x->v.v[k].of[1] - x->v.v[k].of[0]), 0);
  for (u32 i = 0; i < MOST && told < 0.9 * all; i++) {
    u32 best = x->v.n;
    double most = 0;
    for (u32 k = 0; k < x->v.n; k++) {
      const double d = sign * (x->v.v[k].of[1] - x->v.v[k].of[0]);
      if (x->v.v[k].order < ORDER_STEP && !used[k] && d > most) most = d, best = k;
    }
    if (best == x->v.n) break;
    used[best] = true, told += most;
    const cell d = cell_signed(cell_i(CELL_PS, (i64)(sign * most)));
    sb_fmt(&b, "%s%s %s", i ? ", " : "", x->v.v[best].what, text_of(a, d));
  }
  return b.n ? sb_str(&b) : "nothing";
}

typedef enum { IS_WINNER, IS_SAME, IS_IMPOSSIBLE, IS_LARGE, IS_SLOWER, IS_FASTER } verdict;
static verdict judge(const search_why *w) {
  if (!strategy_compare(&w->winner.s, &w->asked.s)) return IS_WINNER;
  if (!w->asked.ran || !w->winner.ran) return IS_IMPOSSIBLE;
  if (w->asked.plan == w->winner.plan) return IS_SAME;
  if (w->point->state != SEARCH_RAN) return IS_LARGE;
  return w->asked.r.period_ps < w->winner.r.period_ps ? IS_FASTER : IS_SLOWER;
}

static void put_large(report *r, arena *a, const search_why *why) {
  const search_look *w = &why->asked;
  const search_point *p = why->point;
  if (p->host_bytes) {
    report_line(r, "too large", "%s of the %s of host memory of a node: %s more than there is",
                bytes_text(a, p->host_bytes), bytes_text(a, p->host_usable),
                bytes_text(a, p->host_bytes - p->host_usable));
    return;
  }
  const sim_class *u = &w->r.cls[w->r.class_of_rank[w->tightest]];
  const i64 limit = w->limit_bytes;
  u32 most = 0;
  for (u32 k = 1; k < MEM_KINDS; k++)
    if (u->peak_kind[k] > u->peak_kind[most]) most = k;
  report_line(r, "too large", "%s of %s: %s more than there is, most of it %s (%s)",
              bytes_text(a, u->peak_bytes), bytes_text(a, limit), bytes_text(a, u->peak_bytes - limit),
              mem_kind_name((mem_kind)most), bytes_text(a, u->peak_kind[most]));
}

static void put_bound(report *r, arena *a, const search_point *p) {
  report_line(r, "bound", "ruled out by its lower bound, %s: %s of %s", ps_text(a, p->bound_ps),
              ps_text(a, p->bound_ps - p->bound_fill_ps),
              p->bound_work ? "work on the busiest place" : "matmuls at every device's peak rate");
  if (p->bound_fill_ps > p->bound_ps / 1000)
    report_line(r, "", "and %s to fill and drain %u stages with %u microbatches",
                ps_text(a, p->bound_fill_ps), search_value(p, CHOICE_pp).n, search_value(p, CHOICE_mb).n);
}

static const char *times_text(arena *a, const search_why *w) {
  return text_of(a, cell_x(CELL_TIMES, (double)w->asked.r.period_ps / (double)w->winner.r.period_ps));
}

// A plan that the search did not look at: says which of its values no plan that was searched has, or if each is in some plan,
// all that it has but the degrees.
static void put_beyond(report *r, arena *a, const search_why *w, const search_result *s) {
  const strategy *asked = &w->asked.s, dflt = strategy_default();
  strbuf b = {.a = a};
  for (u32 pass = 0; pass < 2 && !b.n; pass++)
    for (u32 i = 0; i < CHOICE_COUNT; i++) {
      if (choice_is_degree((choice_id)i)) continue;
      bool tried = pass && choice_same(asked->of[i], dflt.of[i]);
      for (u32 k = 0; !pass && k < s->npoints && !tried; k++)
        tried = choice_same(search_value(&s->point[k], (choice_id)i), asked->of[i]);
      if (tried || !choice_get((choice_id)i)->title) continue;
      if (b.n) sb_put(&b, " ");
      choice_say((choice_id)i, asked->of[i], &b);
    }
  if (b.n)
    report_line(r, "space", "the search did not try it; --strategy '%s' would", sb_str(&b));
  else
    report_line(r, "space", "it is outside the space that was searched");
}

static void put_verdict(report *r, arena *a, const search_why *w, const search_result *s, const rows *time) {
  static const char *const key[] = {"winner", "same program", "impossible", "too large", "slower", "faster"};
  const verdict v = judge(w);
  const char *own = w->asked.why && *w->asked.why ? w->asked.why : NULL; // of the plan alone
  const char *why = w->point->state == SEARCH_IMPOSSIBLE && w->point->why ? w->point->why : own;
  report_fact(r, "verdict", NULL, cell_text(key[v]));
  report_fact(r, "asked_reason", NULL, v == IS_IMPOSSIBLE ? cell_text(why) : cell_none());
  report_fact(r, "why_rank", NULL, w->rank ? cell_i(CELL_INT, w->rank) : cell_none());
  switch (v) {
  case IS_WINNER: report_line(r, "", "which is the winner"); return;
  case IS_SAME:
    report_line(r, "", "which is the same program as the winner, %s", strategy_str(a, &w->winner.s));
    return;
  case IS_IMPOSSIBLE: report_line(r, "impossible", "%s", why ? why : ""); return;
  case IS_LARGE:
    put_large(r, a, w);
    report_line(r, "time", "%s the winner's, if it fit", times_text(a, w));
    break;
  case IS_SLOWER:
  case IS_FASTER: report_line(r, "time", "%s the winner's", times_text(a, w)); break;
  }
  const bool faster = w->asked.r.period_ps < w->winner.r.period_ps;
  report_line(r, faster ? "saves" : "costs", "%s", because(a, time, faster ? -1 : 1));
  if (!w->known)
    put_beyond(r, a, w, s);
  else if (w->known->state == SEARCH_EQUAL)
    report_line(r, "equal", "%s", w->known->why);
  else if (w->known->state == SEARCH_BOUND_TIME)
    put_bound(r, a, w->known);
  else if (w->rank)
    report_line(r, "ranked", "%u of %u that were simulated and fit", w->rank, s->nfit);
}

void report_why(report *r, arena *a, const search_why *w, const search_result *s) {
  strbuf said = {.a = a};
  strategy_set_print(&w->said, &said);
  const bool two = w->winner.ran && w->asked.ran;
  const rows time = two ? time_rows(a, w) : (rows){.a = a};
  report_gap(r);
  report_fact(r, "asked", "why not", cell_text(sb_str(&said)));
  report_line(r, "winner", "%s", strategy_str(a, &w->winner.s));
  report_fact(r, "asked_strategy", "asked", cell_text(strategy_str(a, &w->asked.s)));
  report_fact(r, "agree", NULL, cell_i(CELL_INT, w->agree.space));
  const search_state is = w->point->state;
  if (w->agree.space > 1 && is == SEARCH_RAN)
    report_line(r, "", "the best of %u plans with %s", w->agree.space, sb_str(&said));
  else if (w->agree.space > 1)
    report_line(r, "", "none of %u plans with %s %s", w->agree.space, sb_str(&said),
                is == SEARCH_IMPOSSIBLE ? "is possible; this is one of them"
                                        : "fits; this one is the smallest");
  put_verdict(r, a, w, s, &time);
  if (!two || judge(w) <= IS_SAME) return;
  put_time(r, a, &time, w->winner.r.period_ps);
  put_memory(r, &w->winner.r, &w->asked.r);
}

// ---- what if --------------------------------------------------------------------------------------------
void report_what_if(report *r, arena *a, const search_opts *o, const search_what_if *v, u32 n,
                    const search_result *s) {
  static const column cols[] = {{"what", "what if"},      {"strategy", NULL},           {"reason", NULL},
                                {NULL, "best plan"},      STEP_COLUMNS("time"),         {"speedup", "faster"},
                                {"peak_bytes", "memory"}, {"memory_limit_bytes", NULL}, {"ranks", NULL}};
  const search_point *w = &s->point[0];
  const strategy best = search_strategy(w);
  const char *now = search_str(a, w);
  report_gap(r);
  report_table(r, "what_if", cols, COUNT_OF(cols));
  report_row(r, (cell[]){cell_text("as it is"), cell_text(now), cell_none(), cell_text(now),
                         STEP_CELLS(o->train, w->time_ps, w->alone_ps), cell_x(CELL_TIMES, 1),
                         cell_i(CELL_BYTES, w->peak_bytes), cell_i(CELL_BYTES, s->memory_bytes),
                         cell_i(CELL_INT, (i64)strategy_ranks(&best))});
  for (u32 i = 0; i < n; i++) {
    const search_what_if *x = &v[i];
    const char *name = x->found ? strategy_str(a, &x->s) : NULL;
    const double times = x->found ? (double)w->time_ps / (double)x->time_ps : 0;
    report_row(r, (cell[]){cell_text(x->what), cell_text(name), cell_text(x->why),
                           cell_text(name ? name : arena_printf(a, "none: %s", x->why)),
                           STEP_CELLS(o->train, name ? x->time_ps : 0, name ? x->alone_ps : 0),
                           name ? cell_x(CELL_TIMES, times) : cell_none(),
                           name ? cell_i(CELL_BYTES, x->peak_bytes) : cell_none(),
                           cell_i(CELL_BYTES, x->memory_bytes), cell_i(CELL_INT, x->ranks)});
  }
}
