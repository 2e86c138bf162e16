// answer_align.c - how far the clocks of a job's processes are apart, how that is known, and what contradicts it.
#include "report/report.h"
#include <math.h>
#include <stdlib.h>

enum { TROUBLES = 10 };

// ---- options ------------------------------------------------------------------------------------------------
typedef struct {
  align_opts opts;
  bool own_clocks;
} align_wish;

static bool is_word(const char *s, const char *word) {
  while (*s == ' ') s++;
  const size_t n = strlen(word);
  if (strncmp(s, word, n)) return false;
  for (s += n; *s == ' '; s++) {}
  return !*s;
}

static bool take_drift(align_wish *w, const char *says) {
  char *end;
  const unsigned long number = strtoul(says, &end, 10);
  if (is_word(says, "none"))
    w->opts.drift = ALIGN_DRIFT_NONE;
  else if (is_word(says, "linear"))
    w->opts.drift = ALIGN_DRIFT_LINEAR;
  else if (end != says && is_word(end, "") && number >= 1 && number <= ALIGN_PIECES_MAX)
    w->opts.drift = (u32)number + 1;
  else
    return false;
  return true;
}

static bool take_set(ctx *c, align_wish *w, const char *set) {
  const char *equals = strchr(set, '='), *says = equals ? equals + 1 : "";
  char key[16] = "";
  sscanf(set, " %15[a-z]", key);
  if (equals && !strcmp(key, "drift") && take_drift(w, says)) return true;
  if (equals && !strcmp(key, "method") && (is_word(says, "dpro") || is_word(says, "floors"))) {
    w->opts.method = is_word(says, "dpro") ? ALIGN_DPRO : ALIGN_FLOORS;
    return true;
  }
  if (equals && !strcmp(key, "clocks") && (is_word(says, "process") || is_word(says, "host"))) {
    w->own_clocks = is_word(says, "process");
    return true;
  }
  diag(c, E_USAGE, (loc){0}, "unknown setting '%s'", set);
  diag_hint(c, "--set drift=none, drift=linear, drift=4 (pieces), method=dpro, clocks=process (not one for "
               "each host)");
  return false;
}

// ---- parts of the answer ---------------------------------------------------------------------------------------
typedef struct {
  report *r;
  arena *a;
  const job *j;
  const match *m;
  const align_seen *seen;
  const align_clocks *x;
} aligning;

// The rank of a process; of none that says its rank, its file.
static cell who(const aligning *q, u32 process) {
  const match_place *p = &q->m->places.v[process];
  return p->rank != TRACE_NONE ? cell_i(CELL_INT, p->rank) : cell_text(q->j->file[p->file].path);
}

static cell picoseconds(i64 x) {
  return x == INT64_MIN || x == INT64_MAX ? cell_none() : cell_signed(cell_i(CELL_PS, x));
}

static void put_facts(const aligning *q, const align_opts *o) {
  const align_clocks *x = q->x;
  u32 clocks = 0;
  for (u32 k = 0; k < x->n; k++) clocks = MAX(clocks, x->clock[k].clock + 1);
  report_fact(q->r, "processes", "processes", cell_i(CELL_INT, x->n));
  report_fact(q->r, "clocks", "clocks", cell_i(CELL_INT, clocks));
  report_fact(q->r, "collectives", "collectives", cell_i(CELL_INT, q->seen->ncollectives));
  report_fact(q->r, "messages", "messages", cell_i(CELL_INT, q->seen->nmessages));
  report_fact(q->r, "method", "method", cell_text(o->method == ALIGN_DPRO ? "dpro" : "floors"));
  const char *form = x->nknots == 1   ? "offsets"
                     : x->nknots == 2 ? "offsets and drifts"
                                      : arena_printf(q->a, "%u straight pieces", x->nknots - 1);
  report_fact(q->r, "form", "form", cell_text(form));
  if (x->ends_sd_ps > 0)
    report_fact(q->r, "ends_scatter_ps", "ends apart", cell_i(CELL_PS, (i64)floor(x->ends_sd_ps + 0.5)));
  report_fact(q->r, "slack_ps", "slack",
              x->slack_ps == INT64_MAX ? cell_none() : cell_i(CELL_PS, x->slack_ps));
  report_fact(q->r, "constraints", NULL, cell_i(CELL_INT, (i64)x->constraints));
  report_fact(q->r, "violated_before", NULL, cell_i(CELL_INT, (i64)x->before));
  report_fact(q->r, "violated_after", NULL, cell_i(CELL_INT, (i64)x->after));
  report_fact(q->r, "worst_before_ps", NULL, cell_i(CELL_PS, x->worst_before));
  report_fact(q->r, "worst_after_ps", NULL, cell_i(CELL_PS, x->worst_after));
  strbuf before = {.a = q->a}, after = {.a = q->a};
  cell_print(&(cell){.kind = CELL_PS, .u.i = x->worst_before}, &before);
  cell_print(&(cell){.kind = CELL_PS, .u.i = x->worst_after}, &after);
  report_line(q->r, "violated", "%llu of %llu as recorded (by up to %s), %llu once aligned%s%s%s",
              (unsigned long long)x->before, (unsigned long long)x->constraints, sb_str(&before),
              (unsigned long long)x->after, x->after ? " (by up to " : "", x->after ? sb_str(&after) : "",
              x->after ? ")" : "");
  if (x->flat)
    report_line(q->r, "flat", "receivers waited for every message: variances do not say where clocks are");
  report_fact(q->r, "flat", NULL, cell_i(CELL_BOOL, x->flat));
}

static void put_clocks(const aligning *q, const align_opts *o) {
  static const column cols[] = {
      {"rank", "rank"},           {"component", NULL},      {"offset_ps", "offset"},
      {"drift_ppm", "drift ppm"}, {"uncertainty_ps", "+-"}, {"least_ps", "at least"},
      {"most_ps", "at most"},     {"used", "used"},         {"file", NULL}};
  // Text shows which processes are tied only where not all are.
  column *now = arena_dup(q->a, cols, sizeof cols);
  if (q->x->ncomponents > 1) now[1].title = "tied";
  report_gap(q->r);
  report_table(q->r, "alignment", now, COUNT_OF(cols));
  for (u32 k = 0; k < q->x->n; k++) {
    const align_clock *c = &q->x->clock[k];
    const bool reference = q->x->reference[c->component] == k;
    const double ppm = floor(align_drift(q->x, k) * 1e9 + 0.5) / 1e3;
    report_row(q->r,
               (cell[]){who(q, k), cell_i(CELL_INT, c->component), picoseconds(align_offset(q->x, k)),
                        q->x->nknots > 1 ? cell_x(CELL_REAL, ppm) : cell_none(),
                        reference || o->method == ALIGN_DPRO
                            ? cell_none()
                            : cell_i(CELL_PS, (i64)floor(align_sd_ps(q->x, k) + 0.5)),
                        reference ? cell_none() : picoseconds(c->low_ps),
                        reference ? cell_none() : picoseconds(c->high_ps), cell_i(CELL_INT, (i64)c->used),
                        cell_text(q->j->file[q->m->places.v[k].file].path)});
  }
}

static void put_contradictions(const aligning *q) {
  static const column steps[] = {
      {"from", "from"}, {"to", "to"}, {"by", "by"}, {"time_ps", "at"}, {"gap_ps", "takes"}};
  static const column jumps[] = {
      {"rank", "rank"}, {"time_ps", "jumps at"}, {"within_ps", "+-"}, {"by_ps", "by"}};
  const align_clocks *x = q->x;
  i64 zero = INT64_MAX;
  for (u32 k = 0; k < q->seen->nmembers; k++)
    zero = MIN(zero, align_time(x, q->seen->member[k].process, q->seen->member[k].start_ps));
  for (u32 k = 0; k < q->seen->nmessages; k++)
    zero =
        MIN(zero, align_time(x, q->seen->link[q->seen->message[k].link].from, q->seen->message[k].send_ps));
  if (x->ncycle) {
    report_gap(q->r);
    if (x->slack_ps < 0) {
      report_line(q->r, NULL,
                  "no clocks of this form put every cause before its effect: these contradict each other");
    }
    report_table(q->r, "cycle", steps, COUNT_OF(steps));
    for (u32 k = 0; k < x->ncycle; k++) {
      const align_step *s = &x->cycle[k];
      report_row(q->r,
                 (cell[]){who(q, s->from), who(q, s->to), cell_text(s->collective ? "collective" : "message"),
                          cell_i(CELL_PS, align_time(x, s->from, s->time_ps) - zero),
                          cell_signed(cell_i(CELL_PS, s->gap_ps))});
    }
  }
  if (x->njumps) {
    report_gap(q->r);
    report_table(q->r, "jumps", jumps, COUNT_OF(jumps));
    for (u32 k = 0; k < x->njumps; k++) {
      const align_jump *v = &x->jump[k];
      report_row(q->r,
                 (cell[]){who(q, v->process), cell_i(CELL_PS, align_time(x, v->process, v->time_ps) - zero),
                          cell_i(CELL_PS, v->within_ps), cell_signed(cell_i(CELL_PS, v->by_ps))});
    }
  }
  if (x->ncomponents > 1) {
    report_gap(q->r);
    report_line(q->r, NULL,
                "nothing ties %u groups of processes to each other: offsets count from the first of each",
                x->ncomponents);
  }
  report_fact(q->r, "components", NULL, cell_i(CELL_INT, x->ncomponents));
}

static void put_troubles(const aligning *q, ctx *c, u32 top) {
  static const column cols[] = {
      {"problem", "problem"}, {"rank", "rank"},    {"op", "operation"}, {"group", "group"},
      {"number", "number"},   {"have", "have it"}, {"of", "of"}};
  if (!q->m->problem.n) return;
  report_gap(q->r);
  report_table(q->r, "unmatched", cols, COUNT_OF(cols));
  for (u32 k = 0; k < q->m->problem.n; k++) {
    const match_problem *p = &q->m->problem.v[k];
    const bool orphan = p->is == MATCH_ORPHAN;
    report_row(q->r, (cell[]){cell_text(match_trouble_name(p->is)), who(q, p->place),
                              p->op.i ? cell_text(sym_str(c, p->op)) : cell_none(),
                              p->group.i ? cell_text(sym_str(c, p->group)) : cell_none(),
                              p->seq >= 0 ? cell_i(CELL_INT, p->seq) : cell_none(),
                              orphan ? cell_i(CELL_INT, p->of) : cell_none(),
                              orphan ? cell_i(CELL_INT, p->other) : cell_none()});
  }
  report_top(q->r, top ? top : TROUBLES);
}

// ---- the answer --------------------------------------------------------------------------------------------------
static bool can_align(ctx *c, const match *m, const align_seen *seen) {
  if (m->places.n < 2) {
    diag(c, E_TRACE, (loc){0}, "clocks are aligned between processes: there is %u", m->places.n);
    diag_hint(c, "name the traces of all ranks, or the folder that they are in");
    return false;
  }
  if (!seen->ncollectives && !seen->nmessages) {
    diag(c, E_TRACE, (loc){0}, "no communication is in the traces of more than one of %u processes",
         m->places.n);
    diag_hint(c, "name traces of the same steps; `heddle trace info` says what they have");
    return false;
  }
  return true;
}

bool answer_align(report *r, ctx *c, arena *a, const trace_ask *q) {
  align_wish w = {0};
  for (u32 k = 0; k < q->nset; k++)
    if (!take_set(c, &w, q->set[k])) return false;
  job *j = job_open(c, a, q->npaths, q->path);
  if (!j) return false;
  const match *m = match_job(j, a);
  if (!m) return false;
  const align_seen *seen = align_observe(a, m, w.own_clocks);
  if (!can_align(c, m, seen)) return false;
  const aligning x = {r, a, j, m, seen, align_find(a, seen, &w.opts)};
  put_facts(&x, &w.opts);
  put_clocks(&x, &w.opts);
  put_contradictions(&x);
  put_troubles(&x, c, q->top);
  return true;
}
