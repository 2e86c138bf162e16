// compare_timeline.c - a recorded step and the simulated one as a single timeline: of every rank a process as measured
// and below it one as predicted, both from the start of the step. How it is written: chrome.c.
//
// Idea: what both sides are is slices, so both are one source of events. A communication that waited has a slice inside
// for its wait; why nothing runs is a thread of its own; arrows lead from who sent, or came last, to who waited.
#include "report/internal.h"

typedef struct {
  u32 lane;
  i64 ps;
} leader;
typedef struct {
  trace_source of; // first: play gets this
  ctx *c;
  arena *a;
  const job_compare *d;
  u32 nlanes;               // of a process; the last one is of pauses
  hmap names, kinds, tasks; // of what is interned below
  VEC(sym) name, func;
  VEC(trace_kind) kind;
  VEC(trace_task) task;
  VEC(leader) lead[2]; // by number of the rendezvous, of measured and predicted ones; lane + 1
} both;

static u32 intern_sym(both *b, hmap *m, sym s) {
  u32 at = hmap_get(m, hash_u64(s.i, 31));
  if (at) return at - 1;
  *vec_push(b->a, &b->name) = s;
  hmap_add(b->a, m, hash_u64(s.i, 31), at = b->name.n);
  return at - 1;
}

static u32 kind_of(both *b, sym name, u8 row, const trace_origin *at) {
  const u64 h = hash_u64(hash_step(hash_step(hash_step(33, name.i), at->node.i), at->func.i), row + 1u);
  u32 k = hmap_get(&b->kinds, h);
  if (k) return k - 1;
  trace_kind x = {.what = intern_sym(b, &b->names, name), .func = b->func.n, .bytes = -1, .flags = row};
  if (at->node.i) x.where = loc_node(b->c, (sym){0}, at->node, (sym){0});
  *vec_push(b->a, &b->func) = at->func;
  *vec_push(b->a, &b->kind) = x;
  hmap_add(b->a, &b->kinds, h, k = b->kind.n);
  return k - 1;
}

// Of "2F5"; 0: of none.
static u32 task_of(both *b, const compare_slice *s) {
  trace_task t = {.send = s->message};
  if (!s->at.task.i) return 0;
  const u64 h = hash_step(hash_step(35, s->at.task.i), s->message);
  u32 k = hmap_get(&b->tasks, h);
  if (k) return k;
  if (sscanf(sym_str(b->c, s->at.task), "%u%c%u", &t.stage, &t.letter, &t.microbatch) != 3) return 0;
  *vec_push(b->a, &b->task) = t;
  hmap_add(b->a, &b->tasks, h, k = b->task.n - 1);
  return k;
}

typedef struct {
  both *b;
  u32 from, to;
  trace_tell *tell;
  void *arg;
} player;

static void tell_slice(const player *p, u32 side, u32 lane, const compare_slice *s) {
  both *b = p->b;
  const leader *lead = s->meets ? &b->lead[side].v[s->meets] : NULL;
  trace_event e = {.lane = lane,
                   .kind = kind_of(b, s->name, s->row, &s->at),
                   .start_ps = s->start_ps - b->d->from_ps[side],
                   .dur_ps = s->end_ps - s->start_ps,
                   .microbatch = s->microbatch,
                   .task = task_of(b, s),
                   .layer = s->at.layer,
                   .held_bytes = s->held_bytes,
                   .step = b->d->step == TRACE_NONE ? 1 : b->d->step,
                   .waited_ps = s->wait_ps,
                   .match = s->meets ? 2 * s->meets + side : 0,
                   .from_lane = lane};
  e.from_ps = e.start_ps;
  if (lead && lead->lane) e.from_lane = lead->lane - 1, e.from_ps = lead->ps;
  p->tell(p->arg, &e);
  if (!s->wait_ps) return;
  const u8 row = s->message ? COMPARE_BUBBLE : COMPARE_PEERS;
  e.kind = kind_of(b, sym_of(b->c, compare_row_name(row)), row, &(trace_origin){.node = {0}});
  e.dur_ps = s->wait_ps, e.waited_ps = 0, e.held_bytes = 0, e.match = 0, e.from_lane = lane;
  p->tell(p->arg, &e);
}

static void tell_pauses(const player *p, u32 side, u32 lane, const compare_rank *r) {
  both *b = p->b;
  for (u32 i = 0; i < r->npauses[side]; i++) {
    const compare_pause *x = &r->pause[side][i];
    trace_event e = {.lane = lane, .start_ps = x->from_ps - b->d->from_ps[side], .from_lane = lane};
    e.kind = kind_of(b, sym_of(b->c, compare_row_name(x->row)), x->row, &(trace_origin){.node = {0}});
    e.dur_ps = x->to_ps - x->from_ps, e.microbatch = TRACE_NONE, e.from_ps = e.start_ps;
    p->tell(p->arg, &e);
  }
}

static void play(const trace_source *of, arena *scratch, u32 from, u32 to, trace_tell *tell, void *arg) {
  both *b = (both *)(uintptr_t)of; // its tables are complete: nothing is added
  const player p = {b, from, to, tell, arg};
  (void)scratch;
  for (u32 k = 0; k < b->d->n; k++)
    for (u32 side = 0; side < 2; side++) {
      const compare_rank *r = &b->d->rank[k];
      const u32 first = (2 * r->rank + side) * b->nlanes, idle = first + b->nlanes - 1;
      for (u32 i = 0; i < r->n[side]; i++) {
        const u32 lane = first + r->slice[side][i].lane;
        if (lane >= from && lane < to && compare_in_step(b->d, side, &r->slice[side][i]))
          tell_slice(&p, side, lane, &r->slice[side][i]);
      }
      if (idle >= from && idle < to) tell_pauses(&p, side, idle, r);
    }
}

// Of rendezvous whose members are there. Ranks that were drawn as others like them take no arrows.
static void find_leaders(both *b) {
  for (u32 k = 0; k < b->d->n; k++)
    for (u32 side = 0; side < 2; side++) {
      const compare_rank *r = &b->d->rank[k];
      for (u32 i = 0; i < r->n[side]; i++) {
        const compare_slice *s = &r->slice[side][i];
        while (b->lead[side].n <= s->meets) *vec_push(b->a, &b->lead[side]) = (leader){0};
        leader *to = &b->lead[side].v[s->meets];
        if (s->meets && s->leads && !to->lane && compare_in_step(b->d, side, s))
          *to = (leader){(2 * r->rank + side) * b->nlanes + s->lane + 1, s->start_ps - b->d->from_ps[side]};
      }
    }
}

static void count_event(void *arg, const trace_event *e) { ((u32 *)arg)[e->lane]++; }

// Lanes by number, as the first rank that has one calls it.
static const sym *name_lanes(both *b) {
  sym *v = ZNEWN(b->a, sym, b->nlanes);
  for (u32 k = 0; k < b->d->n; k++)
    for (u32 side = 0; side < 2; side++)
      for (u32 l = 0; l < b->d->rank[k].nlanes[side]; l++)
        if (!v[l].i) v[l] = b->d->rank[k].lane_name[side][l];
  v[b->nlanes - 1] = sym_of(b->c, "idle");
  return v;
}

static both *both_of(ctx *c, arena *a, const job_compare *d) {
  both *b = ZNEWN(a, both, 1);
  u32 nranks = 0;
  b->c = c, b->a = a, b->d = d;
  for (u32 k = 0; k < d->n; k++) {
    nranks = MAX(nranks, 2 * d->rank[k].rank + 2);
    for (u32 side = 0; side < 2; side++) b->nlanes = MAX(b->nlanes, d->rank[k].nlanes[side]);
  }
  b->nlanes++;
  *vec_push(a, &b->task) = (trace_task){.letter = 0}; // 0: of none
  find_leaders(b);
  sym *category = ZNEWN(a, sym, COMPARE_ROWS);
  for (u32 k = 0; k < COMPARE_ROWS; k++) category[k] = sym_of(c, compare_row_name(k));
  u32 *count = ZNEWN(a, u32, (size_t)nranks * b->nlanes);
  b->of = (trace_source){.nranks = nranks,
                         .nstreams = b->nlanes,
                         .nthreads = 1,
                         .stream_name = name_lanes(b),
                         .category = category,
                         .count = count,
                         .play = play};
  play(&b->of, NULL, 0, nranks * b->nlanes, count_event, count);
  b->of.name = b->name.v, b->of.nnames = b->name.n;
  b->of.kind = b->kind.v, b->of.func = b->func.v, b->of.task = b->task.v;
  return b;
}

// Ranks do not begin a step at the same time.
static i64 earliest(const both *b) {
  i64 least = 0;
  for (u32 k = 0; k < b->d->n; k++)
    for (u32 side = 0; side < 2; side++)
      for (u32 i = 0; i < b->d->rank[k].n[side]; i++) {
        const compare_slice *s = &b->d->rank[k].slice[side][i];
        if (compare_in_step(b->d, side, s)) least = MIN(least, s->start_ps - b->d->from_ps[side]);
      }
  return least;
}

bool compare_timeline(ctx *c, arena *a, const job_compare *d, const char *path) {
  const both *b = both_of(c, a, d);
  const char **name = ZNEWN(a, const char *, b->of.nranks);
  for (u32 k = 0; k < b->of.nranks; k++)
    name[k] = arena_printf(a, "rank %u, %s", k / 2, k % 2 ? "predicted" : "measured");
  const timeline_opts o = {.rank_name = name, .functions = true, .no_mark = true, .earliest_ps = earliest(b)};
  return timeline_write(c, &b->of, &o, path);
}
