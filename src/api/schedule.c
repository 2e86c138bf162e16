// schedule.c - schedules of pipelines behind heddle.h.
#include "api/internal.h"

enum { SECONDS = 5 }; // of a search, if nothing is said

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

// How senders wait: a word, or a number of messages.
static bool read_buffers(ctx *c, const char *word, sched_buffers *out) {
  u64 n = 0;
  *out = (sched_buffers){.rendezvous = word && !strcmp(word, "rendezvous")};
  if (!word || out->rendezvous || !strcmp(word, "unbounded")) return true;
  const char *p = word;
  while (*p >= '0' && *p <= '9' && n <= UINT32_MAX) n = 10 * n + (u64)(*p++ - '0');
  out->depth = (u32)n;
  if (!*p && n && n <= UINT32_MAX) return true;
  diag(c, E_PLAN, (loc){0}, "buffers: '%s' is not a number of messages", word);
  diag_hint(c, "1 to 4294967295, unbounded, or rendezvous");
  return false;
}

static bool runs_with(ctx *c, const sched *s, const char *buffers) {
  sched_buffers b;
  sched_line line;
  arena *tmp = arena_new();
  const bool ok = read_buffers(c, buffers, &b) && sched_merge(c, tmp, s, &b, (loc){0}, &line);
  arena_free(tmp);
  return ok;
}

static heddle_schedule *load(heddle_session *s, const char *name, const heddle_schedule_options *o) {
  heddle_schedule *x = object_new(s, sizeof *x, NULL);
  x->name = arena_strdup(x->o.a, name);
  x->s = find(s->c, x->o.a, name, o);
  if (x->s && (!o->buffers || runs_with(s->c, x->s, o->buffers)) &&
      sched_time(s->c, x->o.a, x->s, REPORT_COSTS, (loc){0}, &x->t))
    return x;
  object_drop(x);
  return NULL;
}

bool heddle_schedule_named(const char *name) { return name && sched_row_find(name); }

static bool names_file(const char *name) {
  arena *a = arena_new();
  choice_value x;
  const bool is = name && choice_read(CHOICE_schedule, a, name, strlen(name), &x) && x.path;
  arena_free(a);
  return is;
}

static bool order_for(ctx *c, arena *a, const heddle_find_options *o, heddle_schedule *x) {
  if (!o->schedule) return sched_synthesize(c, a, &x->stages, &x->aims, &x->of);
  if (!names_file(o->schedule))
    return sched_row_on_stages(c, a, o->schedule, &x->stages, o->microbatches, &x->of);
  if (!sched_file_on_stages(c, a, o->schedule, &x->stages, o->microbatches, &x->of)) return false;
  x->aims.micro = x->of.s->nmicro;
  return true;
}

static bool read_aims(ctx *c, const heddle_find_options *o, sched_aims *out) {
  *out = (sched_aims){
      .micro = o->microbatches, .memory = SCHED_NO_LIMIT, .seconds = o->seconds ? o->seconds : SECONDS};
  if (!o->microbatches && !names_file(o->schedule)) {
    diag(c, E_STAGES, (loc){0}, "microbatches must be 1 or more; got 0");
    return false;
  }
  if (!o->memory || sched_amount(o->memory, strlen(o->memory), &out->memory)) return true;
  diag(c, E_STAGES, (loc){0}, "memory: '%s' is not a number from 0 to 100,000,000", o->memory);
  diag_hint(c, "in the unit of the column memory, such as 8 or 2.5");
  return false;
}

static heddle_schedule *look_for(heddle_session *s, const char *path, const heddle_find_options *o) {
  heddle_schedule *x = object_new(s, sizeof *x, NULL);
  arena *a = x->o.a;
  const char *what = o->schedule ? o->schedule : "found";
  x->name = arena_printf(a, "%s for %s", what, path), x->found = true;
  if (read_aims(s->c, o, &x->aims) && sched_stages_read(s->c, a, path, &x->stages) &&
      order_for(s->c, a, o, x) && sched_time(s->c, a, x->of.s, REPORT_COSTS, (loc){0}, &x->t)) {
    x->s = x->of.s;
    return x;
  }
  object_drop(x);
  return NULL;
}
heddle_schedule *heddle_schedule_find(heddle_session *s, const char *stages, const heddle_find_options *o) {
  if (!s || !stages || !o) return NULL;
  API_RETURN(heddle_schedule *, NULL, s, look_for(s, stages, o));
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
  const bool draw = picture && f == HEDDLE_TEXT;
  if (x->found)
    report_synthesis(r, x->o.a, &x->stages, &x->aims, &x->of, x->name, draw ? &x->t : NULL);
  else
    report_schedule(r, x->o.a, x->s, &x->t, x->name, draw);
  return rendered(x->o.a, r, f);
}
const char *heddle_schedule_report(heddle_schedule *x, bool picture, heddle_format f) {
  if (!x) return NULL;
  API_RETURN(const char *, NULL, x->o.s, describe(x, picture, f));
}
