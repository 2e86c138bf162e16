// synthesis.c - looks for the schedule of given stages that takes least time within a limit of memory.
//
// Idea: begin with what there is (the rows of schedules.def, one microbatch after the other) and with orders that
// repeat (synthesis_period.c) or begin whatever can begin (synthesis_list.c); then order windows of the best ones anew (synthesis_window.c): the lead-in, the tail and
// all between. Where a window is the whole, nothing is left out and the answer is proved; else synthesis_bound.c says
// how far from the best it is at most. What is done is counted in steps, never in time, so the same question has the
// same answer.
#include "sched/synthesis.h"
#include <stdlib.h>

enum {
  STEPS_PER_SECOND = 120 * 1000 * 1000,
  SEEDS = 7,    // orders that windows are tried on
  LISTED = 2,   // of them, that are list schedules
  CLIMBS = 12,  // searches for these, each from other random rules
  PERIODS = 40, // that are tried, each a PERIOD_STEP-th of the least longer than the one before
  PERIOD_STEP = 32,
  TASKS_MOST = 1 << 16,
  SMALL = 128, // tasks: the whole may be searched at once
  WINDOW_MOST = 256,
  WIDTH_MOST = 1 << 14,
  ITEMS_MOST = 1 << 22, // of all partial orders that are kept: tens of megabytes
};

typedef struct {
  u64 time;
  order_item *o;
} seed;
typedef struct {
  synth x;
  ctx *c;
  arena *a;
  const sched_stages *of;
  const sched_aims *aims;
  u32 nseeds, most;     // most: that are kept
  seed seed[SEEDS + 1]; // the best ones, the best first
  u64 bound;
} search;

// ---- seeds --------------------------------------------------------------------------------------------
static u64 best_time(const search *s) { return s->nseeds ? s->seed[0].time : UINT64_MAX; }

// Of orders of one time the first is kept.
static void add_seed(search *s, order_item *o) {
  order_sort(&s->x, o);
  const u64 time = order_time(&s->x, o, NULL);
  u32 at = s->nseeds;
  for (u32 i = 0; i < s->nseeds; i++)
    if (s->seed[i].time == time) return;
  for (; at && s->seed[at - 1].time > time; at--) s->seed[at] = s->seed[at - 1];
  s->seed[at] = (seed){time, o};
  s->nseeds = MIN(s->nseeds + 1, s->most);
}

static bool same_places(const sched *s, const sched_stages *of) {
  for (u32 k = 0; k < of->nstages; k++) {
    const sched_places *p = &s->at[k], *q = &of->at[k];
    if (p->n != q->n || memcmp(p->v, q->v, p->n * sizeof *p->v)) return false;
  }
  return true;
}

static bool within(const search *s, const sched_times *t) {
  for (u32 p = 0; p < s->of->nplaces; p++)
    if (t->memory[p] > s->aims->memory) return false;
  return true;
}

// The row's schedule of these stages; NULL and why there is none.
static const sched *row_schedule(ctx *c, arena *a, const sched_stages *of, u32 micro, const sched_row *row,
                                 const char **why) {
  const u32 own = of->nstages - MIN(sched_nwide(row), of->nstages), chunks = own / of->nplaces;
  sched_shape shape = {.places = of->nplaces,
                       .chunks = chunks,
                       .micro = micro,
                       .backward = true,
                       .nedges = of->nedges,
                       .edge = of->edge,
                       .times = &of->cost};
  if (sched_passes(row) > 1) return *why = "several passes of the forward", NULL;
  if (sched_nwide(row) && own != of->nplaces) return *why = "a first and a last stage on all places", NULL;
  if (!chunks || own % of->nplaces) return *why = "as many stages on every place", NULL;
  if (row->chunks == 1 && chunks > 1) return *why = "one stage on every place", NULL;
  if (row->chunks > 1 && chunks != row->chunks) return *why = "two stages on every place", NULL;
  const u32 before = diag_count(c);
  const sched *x = sched_make_on(c, a, row->name, &shape, (loc){0}, of->nedges, of->edge);
  if (x && !sched_runs(x, NULL)) return *why = "deadlocks", NULL;
  if (!x) *why = arena_strdup(a, diag_get(c, before).message);
  diag_truncate(c, before);
  if (!x) return NULL;
  if (x->nreplicas > 1) return *why = "a second replica of the model", NULL;
  if (!same_places(x, of)) return *why = "stages on other places", NULL;
  return x;
}

static void try_rows(search *s, sched_synthesis *out) {
  const sched_row *row;
  u32 n = 0;
  while (sched_row_of(n) && !sched_is_asynchronous(sched_row_of(n))) n++; // others compute something else
  sched_rival *v = ZNEWN(s->a, sched_rival, n);
  for (u32 i = 0; i < n; i++) {
    sched_rival *r = &v[i];
    sched_line line;
    row = sched_row_of(i);
    r->name = row->name;
    r->s = row_schedule(s->c, s->a, s->of, s->aims->micro, row, &r->why);
    if (!r->s) continue;
    const bool ok = sched_time_of(s->c, s->a, r->s, &s->of->cost, (loc){0}, &r->t) &&
                    sched_merge(s->c, s->x.a, r->s, NULL, (loc){0}, &line);
    assert(ok); // sched_runs said so
    r->fits = ok && within(s, &r->t);
    if (r->fits) add_seed(s, order_of(&s->x, s->a, r->s, &r->t, &line));
  }
  out->nrivals = n, out->rival = v;
}

static void try_periods(search *s) {
  const u64 least = period_least(&s->x);
  for (u32 i = 0; i < PERIODS && s->x.steps && best_time(s) > s->bound; i++) {
    order_item *o = period_search(&s->x, s->a, least + i * (least / PERIOD_STEP + 1), UINT64_MAX / 2);
    if (o) add_seed(s, o);
  }
}

// The best ones, beside those that there are.
static void try_lists(search *s) {
  search own = {.x = s->x, .a = s->a, .most = LISTED, .bound = s->bound};
  for (u32 k = 0; k < CLIMBS && own.x.steps && MIN(best_time(s), best_time(&own)) > s->bound; k++) {
    order_item *o = NEWN(s->a, order_item, s->x.n);
    if (list_search(&own.x, k, k % 2, o)) add_seed(&own, o);
  }
  s->x.steps = own.x.steps, s->most = SEEDS;
  for (u32 k = 0; k < own.nseeds; k++) add_seed(s, own.seed[k].o);
}

// ---- windows ------------------------------------------------------------------------------------------
// Leaves a share of the steps, one in so many, and returns the others, which are added again later.
static u64 set_aside(synth *x, u32 share) {
  const u64 own = x->steps / share, rest = x->steps - own;
  x->steps = own;
  return rest;
}

// Every window of this size, each half a window further; from the beginning again after whatever helps.
static bool improve(search *s, seed *d, u32 size, u32 width) {
  synth *x = &s->x;
  bool better = false, all;
  size = MIN(size, x->n);
  for (u32 from = 0; x->steps && d->time > s->bound;) {
    const u32 to = MIN(from + size, x->n);
    if (window_search(x, d->o, from, to, d->time, width, &all)) {
      order_sort(x, d->o);
      d->time = order_time(x, d->o, NULL);
      better = true;
      continue;
    }
    if (to == x->n) break;
    from += (size + 1) / 2;
  }
  return better;
}

static void improve_seed(search *s, seed *d) {
  for (u32 size = 16, width = 16; s->x.steps && d->time > s->bound;
       size = MIN(2 * size, WINDOW_MOST), width *= 2) {
    while (improve(s, d, size, width) && s->x.steps)
      ;
    if (width >= WIDTH_MOST) break;
  }
}

static int by_seed(const void *a, const void *b) {
  const seed *p = a, *q = b;
  return p->time < q->time ? -1 : p->time > q->time;
}

// The whole as one window, with more and more kept. True: nothing was left out.
static bool search_whole(search *s, u32 most) {
  synth *x = &s->x;
  most = MIN(most, ITEMS_MOST / x->n);
  for (u32 width = 4; width <= most && x->steps && best_time(s) > s->bound; width *= 4) {
    bool all;
    order_item *o = arena_dup(s->a, s->seed[0].o, x->n * sizeof *o);
    if (window_search(x, o, 0, x->n, best_time(s), width, &all)) add_seed(s, o);
    if (all) return true;
  }
  return false;
}

static bool run(search *s) {
  synth *x = &s->x;
  u64 rest = set_aside(x, 4);
  try_periods(s);
  x->steps += rest;
  rest = set_aside(x, 4);
  try_lists(s);
  x->steps += rest;
  const bool small = x->n <= SMALL;
  rest = set_aside(x, small ? 2 : 4);
  const bool all = search_whole(s, small ? WIDTH_MOST * 4 : 256);
  x->steps += rest;
  if (all || best_time(s) <= s->bound) return all;
  const u32 n = s->nseeds;
  for (u32 i = 0; i < n; i++) {
    rest = set_aside(x, n + 3 - i);
    improve_seed(s, &s->seed[i]);
    x->steps += rest;
  }
  qsort(s->seed, n, sizeof *s->seed, by_seed);
  rest = set_aside(x, 2); // what has become the best: with larger windows
  improve_seed(s, &s->seed[0]);
  x->steps += rest;
  return search_whole(s, WIDTH_MOST * 4);
}

// ---- what is asked ------------------------------------------------------------------------------------
// What a microbatch has on a place when a stage has run forward: its activations, and those of all that the stage reads,
// over others or at once, which wait for its backward.
static bool check_memory(ctx *c, const sched_stages *of, const sched_aims *aims, const u32 *descends) {
  for (u32 k = 0; k < of->nstages; k++)
    for (u32 i = 0; i < of->at[k].n; i++) {
      u64 need = 0;
      for (u32 y = 0; y <= k; y++)
        if ((y == k || stage_descends(of, descends, y, k)) && stage_is_on(of, y, of->at[k].v[i]))
          need += of->cost.memory[y];
      if (need <= aims->memory) continue;
      diag(c, E_STAGES, of->where[k],
           "place %u: one microbatch takes %.6g up to stage %u, but the limit is %.6g", of->at[k].v[i],
           (double)need / 1e6, k, (double)aims->memory / 1e6);
      diag_hint(c, "a higher limit, smaller microbatches, or fewer stages on the place");
      return false;
    }
  return true;
}

// An order to begin with: a microbatch after the other.
static bool add_first(search *s) {
  synth *x = &s->x;
  order_item *o = NEWN(s->a, order_item, x->n);
  if (order_one_by_one(x, o)) {
    add_seed(s, o);
    return true;
  }
  diag(s->c, E_STAGES, s->of->where[0], "no order was found in which one microbatch takes no more than %.6g",
       (double)x->limit / 1e6);
  diag_hint(s->c, "a higher limit, or smaller microbatches");
  return false;
}

static bool check_sizes(ctx *c, const sched_stages *of, const sched_aims *aims) {
  const u64 tasks = 3 * (u64)of->nstages * aims->micro;
  if (tasks <= TASKS_MOST) return true;
  diag(c, E_LIMIT, of->where[0], "%u stages x %u microbatches x 3 tasks are %llu tasks; at most %d",
       of->nstages, aims->micro, (unsigned long long)tasks, TASKS_MOST);
  diag_hint(c, "fewer microbatches: the steady state is the same");
  return false;
}

bool sched_synthesize(ctx *c, arena *a, const sched_stages *of, const sched_aims *aims,
                      sched_synthesis *out) {
  assert(aims->micro && of->nstages);
  *out = (sched_synthesis){0};
  if (!check_sizes(c, of, aims)) return false;
  search s = {.c = c, .a = a, .of = of, .aims = aims, .most = SEEDS - LISTED};
  arena *tmp = arena_new();
  synth_open(&s.x, tmp, of, aims);
  s.x.steps = (u64)aims->seconds * STEPS_PER_SECOND;
  if (!check_memory(c, of, aims, s.x.descends) || !add_first(&s)) {
    arena_free(tmp);
    return false;
  }
  s.bound = synth_bound(&s.x, &out->bound_of, &out->place);
  try_rows(&s, out);
  const bool all = run(&s);
  out->stopped = !s.x.steps;
  out->bound = s.bound;
  if (all && best_time(&s) > s.bound) out->bound = best_time(&s), out->bound_of = BOUND_SEARCH;
  assert(order_fits(&s.x, s.seed[0].o) && best_time(&s) >= out->bound);
  out->s = order_sched(&s.x, a, s.seed[0].o);
  const bool ok = sched_time_of(c, a, out->s, &of->cost, (loc){0}, &out->t);
  arena_free(tmp);
  return ok;
}

bool sched_row_on_stages(ctx *c, arena *a, const char *name, const sched_stages *of, u32 micro,
                         sched_synthesis *out) {
  const sched_row *row = sched_row_find(name);
  const char *why = NULL;
  *out = (sched_synthesis){0};
  if (!row) {
    unknown_schedule(c, name, (loc){0});
    return false;
  }
  if (sched_is_asynchronous(row)) why = "it updates weights between tasks";
  if (!why) out->s = row_schedule(c, a, of, micro, row, &why);
  if (out->s) return sched_time_of(c, a, out->s, &of->cost, (loc){0}, &out->t);
  diag(c, E_STAGES, of->where[0], "no %s of these %u stages on %u places: %s", row->name, of->nstages,
       of->nplaces, why);
  return false;
}

// Why a schedule from text has not the form of these stages; NULL: it has.
static const char *unlike(arena *a, const sched *s, const sched_stages *of) {
  if (s->nreplicas > 1) return "it runs several replicas of the model";
  if (s->npasses > 1) return "it runs several passes of the forward";
  if (sched_has_versions(s)) return "it updates weights between tasks";
  if (!s->backward) return "it runs no backward";
  if (s->nstages != of->nstages) return arena_printf(a, "it has %u", s->nstages);
  for (u32 k = 0; k < of->nstages; k++)
    if (s->at[k].n != of->at[k].n || memcmp(s->at[k].v, of->at[k].v, s->at[k].n * sizeof *s->at[k].v))
      return arena_printf(a, "it has stage %u on other places", k);
  return NULL;
}

bool sched_file_on_stages(ctx *c, arena *a, const char *path, const sched_stages *of, u32 micro,
                          sched_synthesis *out) {
  *out = (sched_synthesis){0};
  const sched *s = sched_read(c, a, path, (loc){0});
  const sched_shape shape = {.micro = micro};
  if (!s || !sched_fits(c, s, path, &shape, (loc){0})) return false;
  const char *why = unlike(a, s, of);
  if (why) {
    diag(c, E_STAGES, of->where[0], "%s is no schedule of these %u stages on %u places: %s", path,
         of->nstages, of->nplaces, why);
    return false;
  }
  out->s = sched_with(a, s, of->nedges, of->edge, NULL);
  return sched_time_of(c, a, out->s, &of->cost, (loc){0}, &out->t);
}
