// straggler_change.c - a change in words, done to the durations of a pipelined job. Not the words' form (changes.c).
#include "diagnose/diagnose.h"

// Numbers of a kind: which there are, and that of a node (TRACE_NONE: none).
static u32 number_of(const straggler *s, change_what what, const straggler_node *n) {
  const straggler_worker *w = &s->worker[n->worker];
  switch (what) {
  case WHAT_WORKER: return n->worker;
  case WHAT_RANK: return w->rank;
  case WHAT_STAGE: return w->stage;
  case WHAT_DATA: return w->data;
  default: return n->microbatch;
  }
}

static bool matches(const straggler *s, const change_term *t, const straggler_node *n) {
  if (t->what == WHAT_NAME) return change_name_matches(t->name, straggler_types[n->type].name);
  const u32 k = number_of(s, t->what, n);
  return k != TRACE_NONE && number_set_has(&t->is, k);
}

static bool changes(const straggler *s, const job_change *x, u32 node) {
  if (s->node[node].worker == TRACE_NONE) return false;
  for (u32 k = 0; k < x->nterms; k++)
    if (!matches(s, &x->term[k], &s->node[node])) return false;
  return true;
}

// What a change names and this job does not have: a name, or a number of all that it lists.
static bool known(ctx *c, const straggler *s, const change_term *t) {
  static const char *const name[] = {"worker", "rank", "stage", "data rank", "microbatch"};
  near_name near = near_to(t->name ? t->name : "", t->name ? strlen(t->name) : 0);
  u32 most = 0, unknown = 0;
  bool any = t->what != WHAT_NAME;
  for (u32 k = 0; k < STRAGGLER_TYPES && t->what == WHAT_NAME; k++) {
    if (!s->count[k]) continue;
    any |= change_name_matches(t->name, straggler_types[k].name);
    near_try(&near, straggler_types[k].name);
  }
  for (u32 i = 0; i < t->is.n; i++) {
    bool found = false;
    for (u32 k = 0; k < s->n; k++) {
      const u32 of = s->node[k].worker == TRACE_NONE ? TRACE_NONE : number_of(s, t->what, &s->node[k]);
      if (of == TRACE_NONE) continue;
      found |= t->is.from[i] <= of && of <= t->is.to[i];
      most = MAX(most, of);
    }
    if (!found && any) any = false, unknown = t->is.from[i];
  }
  if (any) return true;
  if (t->what != WHAT_NAME) {
    diag(c, E_USAGE, t->at, "this job has no %s %u", name[t->what], unknown);
    diag_hint(c, "they go from 0 to %u", most);
    return false;
  }
  diag(c, E_USAGE, t->at, "no operation of this job is called '%s'", t->name);
  if (near.name)
    diag_hint(c, "did you mean %s?", near.name);
  else
    diag_hint(c, "`heddle trace blame` lists the operations");
  return false;
}

void straggler_mark(const straggler *s, const job_change *x, u8 *touched) {
  for (u32 k = 0; k < s->n; k++)
    if (changes(s, x, k)) touched[k] = 1;
}

u32 straggler_apply(ctx *c, const straggler *s, const job_change *x, i64 *dur_ps) {
  const double most = (double)straggler_longest(s);
  u32 touched = 0;
  for (u32 k = 0; k < x->nterms; k++)
    if (!known(c, s, &x->term[k])) return 0;
  for (u32 k = 0; k < s->n; k++) {
    if (!changes(s, x, k)) continue;
    touched++;
    for (u32 i = 0; i < s->nsteps; i++) {
      i64 *d = &dur_ps[(size_t)i * s->n + k];
      if (x->how == CHANGE_SCALE ? (double)*d * x->scale > most
                                 : x->how == CHANGE_TIME && (double)x->ps > most) {
        diag(c, E_USAGE, x->at, "an operation would take days");
        diag_hint(c, "say less than in '%s'", x->text);
        return 0;
      }
      switch (x->how) {
      case CHANGE_IDEAL: *d = s->ideal_ps[k]; break;
      case CHANGE_MEDIAN: *d = s->median_ps[k]; break;
      case CHANGE_TIME: *d = x->ps; break;
      case CHANGE_SCALE: *d = (i64)((double)*d * x->scale + 0.5); break;
      }
    }
  }
  if (touched) return touched;
  diag(c, E_USAGE, x->at, "no operation of this job is all of that");
  diag_hint(c, "leave out a part of '%s'", x->text);
  return 0;
}
