// steps.c - the steps of training in a recording, and which step events belong to. Not what they take (breakdown.c).
#include "diagnose/diagnose.h"
#include <stdlib.h>

static int by_start(const void *x, const void *y) {
  const step_span *a = x, *b = y;
  if (a->start_ps != b->start_ps) return a->start_ps < b->start_ps ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

static u32 process_of(const trace *t, u32 e) { return t->lanes.v[t->lane[e]].process; }

// Index of the last step that has started by then.
static u32 at(const job_steps *s, i64 ps) {
  u32 lo = 0, hi = s->n;
  while (lo < hi) {
    const u32 mid = lo + (hi - lo) / 2;
    if (s->step[mid].start_ps <= ps)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo ? lo - 1 : TRACE_NONE;
}

static u32 numbered(const job_steps *s, u32 number) {
  for (u32 k = 0; k < s->n; k++)
    if (s->step[k].number == number) return k;
  return TRACE_NONE;
}

// Steps from what events say of themselves, where the recorder has no events for steps.
static void from_events(arena *a, const trace *t, u32 process, job_steps *s) {
  VEC(step_span) found = {0};
  for (u32 e = 0; e < t->n; e++) {
    if (process_of(t, e) != process || t->step[e] == TRACE_NONE) continue;
    const i64 end = t->start_ps[e] + MAX(t->dur_ps[e], 0);
    u32 k = 0;
    while (k < found.n && found.v[k].number != t->step[e]) k++;
    if (k == found.n) *vec_push(a, &found) = (step_span){t->step[e], t->start_ps[e], end};
    found.v[k].start_ps = MIN(found.v[k].start_ps, t->start_ps[e]);
    found.v[k].end_ps = MAX(found.v[k].end_ps, end);
  }
  s->n = found.n, s->step = found.v;
}

static int by_number(const void *x, const void *y) {
  const step_span *a = x, *b = y;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return a->start_ps < b->start_ps ? -1 : a->start_ps > b->start_ps;
}

// Several threads may annotate one step: it is from the first start to the last end.
static void join(job_steps *s) {
  u32 n = 0;
  if (s->n) qsort(s->step, s->n, sizeof *s->step, by_number);
  for (u32 k = 0; k < s->n; k++) {
    if (n && s->step[n - 1].number == s->step[k].number)
      s->step[n - 1].end_ps = MAX(s->step[n - 1].end_ps, s->step[k].end_ps);
    else
      s->step[n++] = s->step[k];
  }
  s->n = n;
  if (n) qsort(s->step, n, sizeof *s->step, by_start);
}

job_steps *steps_of(arena *a, const trace *t, u32 process) {
  job_steps *s = NEW(a, job_steps);
  VEC(step_span) found = {0};
  bool has_causes = false;
  for (u32 e = 0; e < t->n; e++) {
    if (process_of(t, e) != process) continue;
    has_causes |= t->cause[e] != TRACE_NONE;
    if (t->is[e] == TRACE_STEP && t->step[e] != TRACE_NONE)
      *vec_push(a, &found) = (step_span){t->step[e], t->start_ps[e], t->start_ps[e] + MAX(t->dur_ps[e], 0)};
  }
  s->n = found.n, s->step = found.v, s->whole = t->processes.v[process].serial;
  if (!s->n) from_events(a, t, process, s);
  join(s);
  s->of = NEWN(a, u32, t->n + 1);
  for (u32 e = 0; e < t->n; e++) {
    s->of[e] = TRACE_NONE;
    if (process_of(t, e) != process || !s->n) continue;
    const bool launched = TRACE_ON_DEVICE >> t->is[e] & 1 && has_causes;
    if (t->step[e] != TRACE_NONE)
      s->of[e] = numbered(s, t->step[e]);
    else if (!launched)
      s->of[e] = at(s, t->start_ps[e]);
    else if (t->cause[e] != TRACE_NONE)
      s->of[e] = at(s, t->start_ps[t->cause[e]]);
  }
  return s;
}

bool steps_choose(ctx *c, const char *text, const job_steps *s, bool *chosen, const char *path) {
  arena *tmp = arena_new();
  number_set set;
  const bool good = number_set_parse(c, tmp, text, &set);
  u32 n = 0;
  for (u32 k = 0; good && k < s->n; k++) {
    chosen[k] = text ? number_set_has(&set, s->step[k].number) : s->n == 1 || s->whole || k + 1 < s->n;
    n += chosen[k];
  }
  arena_free(tmp);
  if (!good || n || !text) return good;
  diag(c, E_USAGE, loc_text(c, sym_of(c, path), 0, 0, NULL),
       s->n ? "none of the steps %s was recorded: there are %u to %u" : "no steps were recorded", text,
       s->n ? s->step[0].number : 0, s->n ? s->step[s->n - 1].number : 0);
  if (s->n) diag_hint(c, "--steps %u-%u", s->step[0].number, s->step[s->n - 1].number);
  return false;
}

u32 steps_events(const trace *t, u32 process, const job_steps *s, const bool *chosen, u32 *event) {
  u32 n = 0;
  for (u32 e = 0; e < t->n; e++) {
    if (process_of(t, e) != process) continue;
    if (!s->n || (s->of[e] != TRACE_NONE && chosen[s->of[e]])) event[n++] = e;
  }
  return n;
}
