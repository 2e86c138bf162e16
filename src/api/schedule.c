// schedule.c - schedules of pipelines behind heddle.h.
#include "api/internal.h"

static const sched *find(ctx *c, arena *a, const char *name, const heddle_schedule_options *o) {
  sched_shape form = {.places = o->places,
                      .chunks = o->chunks,
                      .micro = o->microbatches,
                      .group = o->group,
                      .backward = !o->inference,
                      .paired = true};
  choice_value x;
  if (choice_read(CHOICE_schedule, a, name, strlen(name), &x) && x.path) {
    const sched *s = sched_read(c, a, name, (loc){0});
    if (!s || !sched_fits(c, s, name, &form, (loc){0})) return NULL;
    if (!o->inference || !s->backward) return s;
    diag(c, E_PLAN, (loc){0}, "%s runs backward, but this is inference", name);
    diag_hint(c, "leave out --inference, or write a schedule of forwards (F) only");
    return NULL;
  }
  const sched_row *row = sched_row_find(name);
  if (!form.chunks) form.chunks = row ? MAX(row->chunks, 1u) : 1;
  return sched_make(c, a, name, &form, (loc){0});
}

static heddle_schedule *load(heddle_session *s, const char *name, const heddle_schedule_options *o) {
  heddle_schedule *x = object_new(s, sizeof *x, NULL);
  x->name = arena_strdup(x->o.a, name);
  x->s = find(s->c, x->o.a, name, o);
  if (x->s && sched_time(s->c, x->o.a, x->s, REPORT_COSTS, (loc){0}, &x->t)) return x;
  object_drop(x);
  return NULL;
}
heddle_schedule *heddle_schedule_load(heddle_session *s, const char *name, const heddle_schedule_options *o) {
  static const heddle_schedule_options none;
  if (!s || !name) return NULL;
  API_RETURN(heddle_schedule *, NULL, s, load(s, name, o ? o : &none));
}

void heddle_schedule_free(heddle_schedule *x) { object_drop(x); }

static const char *print(heddle_schedule *x) {
  strbuf b = {.a = x->o.a};
  sched_print(x->s, &b);
  return sb_str(&b);
}
const char *heddle_schedule_print(heddle_schedule *x) {
  if (!x) return NULL;
  API_RETURN(const char *, NULL, x->o.s, print(x));
}

static const char *describe(heddle_schedule *x, bool picture, heddle_format f) {
  report *r = report_new(x->o.a);
  report_schedule(r, x->o.a, x->s, &x->t, x->name, picture && f == HEDDLE_TEXT);
  return rendered(x->o.a, r, f);
}
const char *heddle_schedule_report(heddle_schedule *x, bool picture, heddle_format f) {
  if (!x) return NULL;
  API_RETURN(const char *, NULL, x->o.s, describe(x, picture, f));
}
