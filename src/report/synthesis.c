// synthesis.c - a schedule that was found for given stages: beside the named ones, and how far from the best it may be.
#include "report/internal.h"

static double bubble_of(const sched *s, const sched_times *t) {
  double busy = 0;
  for (u32 p = 0; p < s->nplaces; p++) busy += (double)t->busy[p];
  return t->makespan ? 1 - busy / ((double)t->makespan * s->nplaces) : 0;
}

static cell memory_cell(u64 millionths) { return cell_x(CELL_REAL, (double)millionths / 1e6); }

static cell most_memory(const sched *s, const sched_times *t) {
  u64 most = 0;
  for (u32 p = 0; p < s->nplaces; p++) most = MAX(most, t->memory[p]);
  return memory_cell(most);
}

static void put_rivals(report *r, const sched_synthesis *x) {
  static const column cols[] = {{"schedule", "schedule"}, {"time_ps", "time"}, {"bubble", "bubble"},
                                {"memory", "memory"},     {"fits", "fits"},    {"why", "why not"}};
  report_table(r, "by_schedule", cols, COUNT_OF(cols));
  report_row(r, (cell[]){cell_text("found"), cell_i(CELL_PS, (i64)x->t.makespan),
                         cell_x(CELL_SHARE, bubble_of(x->s, &x->t)), most_memory(x->s, &x->t),
                         cell_i(CELL_BOOL, 1), cell_none()});
  for (u32 i = 0; i < x->nrivals; i++) {
    const sched_rival *v = &x->rival[i];
    if (!v->s)
      report_row(r, (cell[]){cell_text(v->name), cell_none(), cell_none(), cell_none(), cell_none(),
                             cell_text(v->why)});
    else
      report_row(r,
                 (cell[]){cell_text(v->name), cell_i(CELL_PS, (i64)v->t.makespan),
                          cell_x(CELL_SHARE, bubble_of(v->s, &v->t)), most_memory(v->s, &v->t),
                          cell_i(CELL_BOOL, v->fits), v->fits ? cell_none() : cell_text("over the limit")});
  }
}

static void put_places(report *r, arena *a, const sched_synthesis *x) {
  enum { SHOWN = 32 };
  static const column cols[] = {{"place", "place"},
                                {"stages", "stages"},
                                {"tasks", "tasks"},
                                {"idle_ps", "idle"},
                                {"bubble", "bubble"},
                                {"memory", "memory"},
                                {"activations", "activations"}};
  report_table(r, "by_place", cols, COUNT_OF(cols));
  for (u32 p = 0; p < x->s->nplaces; p++) {
    u32 n;
    const char *stages = stages_on(a, x->s, p, &n);
    const u64 idle = x->t.makespan - x->t.busy[p];
    report_row(r,
               (cell[]){cell_i(CELL_INT, p), cell_text(stages), cell_i(CELL_INT, x->s->seq[p].n),
                        cell_i(CELL_PS, (i64)idle), cell_x(CELL_SHARE, (double)idle / (double)x->t.makespan),
                        memory_cell(x->t.memory[p]), cell_i(CELL_INT, x->t.live[p])});
  }
  report_top(r, SHOWN);
}

// ---- the bound ----------------------------------------------------------------------------------------
static void put_bound(report *r, arena *a, const sched_synthesis *x) {
  static const char *const name[] = {
      [BOUND_CHAIN] = "chain", [BOUND_WORK] = "work", [BOUND_MEMORY] = "memory", [BOUND_SEARCH] = "search"};
  const double gap = (double)(x->t.makespan - x->bound) / (double)x->bound;
  report_fact(r, "bound_ps", NULL, cell_i(CELL_PS, (i64)x->bound));
  report_fact(r, "bound_of", NULL, cell_text(name[x->bound_of]));
  const bool placed = x->bound_of == BOUND_WORK || x->bound_of == BOUND_MEMORY;
  report_fact(r, "bound_place", NULL, placed ? cell_i(CELL_INT, x->place) : cell_none());
  const char *why = x->bound_of == BOUND_CHAIN    ? "what every microbatch must wait for"
                    : x->bound_of == BOUND_WORK   ? arena_printf(a, "the work of place %u", x->place)
                    : x->bound_of == BOUND_MEMORY ? arena_printf(a, "the memory of place %u", x->place)
                                                  : "the search left no order out";
  report_line(r, "bound", "%s: %s", time_text(a, (i64)x->bound), why);
  report_fact(r, "gap", NULL, cell_x(CELL_SHARE, gap));
  report_fact(r, "stopped", NULL, cell_i(CELL_BOOL, x->stopped));
  if (x->t.makespan == x->bound)
    report_line(r, "gap", "none: no schedule of these stages within this memory is faster");
  else
    report_line(r, "gap", "%.2f %%: no schedule of these stages is faster by more%s", 100 * gap,
                x->stopped ? "; a longer --time may find a better one" : "");
}

// ---- the picture --------------------------------------------------------------------------------------
// The largest time of which all times are multiples.
static u64 unit_of(const sched_stages *of) {
  i64 unit = 0;
  for (u32 k = 0; k < of->nstages; k++) {
    for (u32 kind = 0; kind < TASK_KINDS; kind++) unit = gcd_i64(unit, (i64)of->cost.task[kind][k]);
    unit = gcd_i64(unit, (i64)of->cost.send[k]);
  }
  return unit ? (u64)unit : 1;
}

// To scale where that is no longer than lines that can be read; else by REPORT_COSTS, as schedules by name are drawn.
static void put_picture(report *r, arena *a, const sched_stages *of, const sched_synthesis *x,
                        const sched_times *drawn) {
  const u64 unit = unit_of(of);
  sched_times scaled = {.makespan = x->t.makespan / unit};
  enum { SCALED_MOST = 200 };
  const bool to_scale = scaled.makespan <= SCALED_MOST;
  sched_span **at = NEWN(a, sched_span *, x->s->nplaces);
  for (u32 p = 0; p < x->s->nplaces && to_scale; p++) {
    at[p] = NEWN(a, sched_span, x->s->seq[p].n);
    for (u32 i = 0; i < x->s->seq[p].n; i++)
      at[p][i] = (sched_span){x->t.at[p][i].begin / unit, x->t.at[p][i].end / unit};
  }
  scaled.at = (const sched_span *const *)at;
  strbuf b = {.a = a};
  if (to_scale)
    sb_fmt(&b, "a column is %s\n", time_text(a, (i64)unit));
  else
    sb_put(&b, "not to scale: a forward takes 1 column, a backward 2\n");
  sched_picture(x->s, to_scale ? &scaled : drawn, &b);
  sb_char(&b, '\n');
  report_note(r, sb_str(&b));
}

void report_synthesis(report *r, arena *a, const sched_stages *of, const sched_aims *aims,
                      const sched_synthesis *x, const char *name, const sched_times *drawn) {
  report_fact(r, "schedule", "schedule", cell_text(name));
  report_fact(r, "places", "places", cell_i(CELL_INT, of->nplaces));
  report_fact(r, "stages", "stages", cell_i(CELL_INT, of->nstages));
  report_fact(r, "microbatches", "microbatches", cell_i(CELL_INT, aims->micro));
  const bool limited = aims->memory != SCHED_NO_LIMIT;
  report_fact(r, "memory_limit", limited ? "memory" : NULL,
              limited ? memory_cell(aims->memory) : cell_none());
  report_fact(r, "time_ps", "time", cell_i(CELL_PS, (i64)x->t.makespan));
  if (x->bound) put_bound(r, a, x);
  report_gap(r);
  if (drawn) put_picture(r, a, of, x, drawn);
  if (x->nrivals) put_rivals(r, x), report_gap(r);
  put_places(r, a, x);
}
