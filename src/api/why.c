// why.c - questions about a search behind heddle.h.
#include "api/internal.h"

// A search prices thousands of plans; what it extrapolates is told when one is simulated.
static void quiet(void *arg, const cost_event *e, double factor) { (void)arg, (void)e, (void)factor; }

static const char *answer(heddle_search *f, const heddle_search_questions *q, heddle_format format) {
  ctx *c = f->o.s->c;
  arena *a = f->o.a;
  if (!f->p || !f->r.nfit || f->so.parts) {
    diag(c, E_USAGE, (loc){0},
         "--why and --what-if need a search that was not split into parts and found a plan");
    return NULL;
  }
  const prog *p = f->p->p;
  const machine *m = f->m->m;
  const cost_opts costs = {.model = f->costs, .extrapolated = quiet};
  search_why w = {0};
  search_what_if what[WHAT_IF_MOST];
  u32 n = 0;
  if (q->why && !search_why_not(c, a, p, m, &costs, &f->so, &f->r, q->why, &w)) return NULL;
  if (!q->why && q->what_if) {
    const strategy best = search_strategy(&f->r.point[0]);
    search_look_at(a, p, m, &costs, &f->so, &best, &w.winner);
  }
  if (q->what_if) n = search_what_ifs(c, a, p, m, &costs, &f->so, &f->r, what);
  report *r = report_new(a);
  search_tell_mfu(f);
  report_search(r, a, &f->about, &f->so, &f->r);
  if (q->why) report_why(r, a, &w, &f->r);
  if (w.winner.has_path) report_help(r, &w.winner.path, w.winner.r.makespan_ps);
  if (q->what_if) report_what_if(r, a, &f->so, what, n, &f->r);
  return rendered(a, r, format);
}
const char *heddle_search_answer(heddle_search *f, const heddle_search_questions *q, heddle_format format) {
  static const heddle_search_questions none;
  if (!f) return NULL;
  API_RETURN(const char *, NULL, f->o.s, answer(f, q ? q : &none, format));
}
const char *heddle_search_why(heddle_search *f, const char *line, heddle_format format) {
  return heddle_search_answer(f, &(heddle_search_questions){.why = line ? line : ""}, format);
}
