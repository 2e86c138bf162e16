// compare.c - measured beside predicted: slices of both sides, the step that is compared, and where its time goes.
#include "diagnose/compare.h"
#include "diagnose/internal.h"
#include "op/op.h"
#include "sim/sim.h"
#include <stdlib.h>

typedef VEC(compare_slice) slices;
// A step of a process.
typedef struct {
  u32 number;
  i64 first_ps, last_ps; // of its device events; first_ps: or of its host, where that says
  bool chosen;
} span;
typedef struct {
  u32 file, process, rank;
  trace_ran ran;
  i64 base_ns, shift_ps; // shift_ps: onto the clock that all share
  slices slice;
  VEC(span) step;
  sym *lane_name;
  u32 nlanes;
  i64 of; // the collective that the latest communication was a message of (trace_comm); 0: none
} recorded;
typedef struct {
  ctx *c;
  arena *a, *tmp;
  job *j;
  const sim_result *s;
  const char *steps;
  job_compare *out;
  match *m;
  hmap by_event; // of file and event: communications, number in `comm` + 1
  VEC(u32) comm; // pairs: recorded, slice
  VEC(recorded) rec;
  trace_ran ran;
  bool own; // names are those of Heddle's operators
} comparing;

static u32 row_of_comm(const char *op) {
  const comm_kind k = comm_kind_named(op);
  const comm_who who = comm_kind_rows[k].who;
  return COMPARE_COMM + (u32)(who == COMM_WHO_MESSAGE || who == COMM_WHO_MESSAGES ? COMM_SEND : k);
}
// Heddle's own operators of communication say all by their names, also where an execution moved nothing to another rank,
// or is part of an update. Some are communication by their layouts alone: what they do is move data on a rank.
static bool is_heddles(const char *name) { return op_row_of(op_find(name, strlen(name)))->flags & OPF_COMM; }
static u32 row_of_heddles(const char *name) {
  return strcmp(name, "shard") && strcmp(name, "partial") && strcmp(name, "copy") ? row_of_comm(name)
                                                                                  : (u32)KERNEL_MOVE;
}
static bool is_message(u32 row) { return row == (u32)COMPARE_COMM + COMM_SEND; }

// ---- the recording --------------------------------------------------------------------------------------
static u8 row_of_event(comparing *x, const trace *t, u32 e) {
  if (t->is[e] != TRACE_KERNEL) return COMPARE_COPY;
  if (t->flags[e] & TRACE_COMM)
    return (u8)(t->comm[e] == TRACE_NONE ? COMPARE_COMM + COMM_OTHER
                                         : row_of_comm(sym_str(x->c, t->comms.v[t->comm[e]].op)));
  if (t->flags[e] & TRACE_UPDATE) return KERNEL_OPTIMIZER;
  return (u8)kernel_class_of(sym_str(x->c, trace_name(t, e)));
}

typedef struct {
  u8 row;
  bool heddles;
} known_name;
static known_name name_of(const char *name) {
  const bool heddles = is_heddles(name);
  return (known_name){(u8)(heddles ? row_of_heddles(name) : (u32)kernel_class_of(name)), heddles};
}

static void take_slice(comparing *x, recorded *r, const trace *t, u32 e, const known_name *name) {
  const bool known = t->is[e] == TRACE_KERNEL && (!(t->flags[e] & ~TRACE_FORWARD) || name->heddles);
  const u8 row = known ? name->row : row_of_event(x, t, e);
  const u32 cause = t->cause[e];
  if (t->is[e] == TRACE_KERNEL && t->flags[e] & TRACE_COMM && row != KERNEL_MOVE) {
    *vec_push(x->tmp, &x->comm) = x->rec.n - 1, *vec_push(x->tmp, &x->comm) = r->slice.n;
    hmap_add(x->tmp, &x->by_event, event_hash(r->file, e), x->comm.n / 2);
  }
  const i64 of = t->comm[e] == TRACE_NONE ? 0 : t->comms.v[t->comm[e]].of, before = r->of;
  r->of = of;
  *vec_push(x->a, &r->slice) = (compare_slice){
      .start_ps = t->start_ps[e],
      .end_ps = t->start_ps[e] + t->dur_ps[e],
      .name = trace_name(t, e),
      .lane = t->lane[e],
      .row = row,
      .message = is_message(row),
      .goes_on = of && of == before,
      .launched_ps = cause == TRACE_NONE ? INT64_MIN : t->start_ps[cause],
      .at = t->origin[e] == TRACE_NONE ? (trace_origin){.node = {0}} : t->origins.v[t->origin[e]],
      .microbatch = t->microbatch[e]};
}

static bool take_steps(comparing *x, recorded *r, const trace *t, u32 process, const job_steps *s,
                       arena *tmp) {
  bool *chosen = ZNEWN(tmp, bool, s->n + 1);
  if (!steps_choose(x->c, x->steps, s, chosen, x->j->file[r->file].path)) return false;
  const u32 n = MAX(s->n, 1);
  span *v = vec_push_n(x->a, &r->step, n);
  for (u32 k = 0; k < n; k++) {
    v[k] = (span){s->n ? s->step[k].number : TRACE_NONE, INT64_MAX, INT64_MIN, !s->n || chosen[k]};
    if (s->n) v[k].first_ps = s->step[k].start_ps;
  }
  for (u32 e = 0; e < t->n; e++) {
    const u32 k = s->n ? s->of[e] : 0;
    if (t->lanes.v[t->lane[e]].process != process || k == TRACE_NONE || t->dur_ps[e] < 0 ||
        !(TRACE_ON_DEVICE >> t->is[e] & 1))
      continue;
    v[k].first_ps = MIN(v[k].first_ps, t->start_ps[e]);
    v[k].last_ps = MAX(v[k].last_ps, t->start_ps[e] + t->dur_ps[e]);
  }
  return true;
}

static void name_lanes(comparing *x, recorded *r, const trace *t) {
  r->nlanes = t->lanes.n, r->lane_name = NEWN(x->a, sym, t->lanes.n + 1);
  for (u32 l = 0; l < t->lanes.n; l++) {
    const trace_lane *y = &t->lanes.v[l];
    r->lane_name[l] = y->name.i ? y->name : sym_fmt(x->c, "stream %lld", (long long)y->id);
  }
}

static bool take_process(comparing *x, const trace *t, u32 file, u32 process) {
  arena *tmp = arena_new();
  const job_steps *s = steps_of(tmp, t, process);
  const u32 *order = trace_order(tmp, t), said = t->processes.v[process].rank;
  known_name *names = NEWN(tmp, known_name, t->names.n + 1);
  for (u32 k = 0; k < t->names.n; k++) names[k] = name_of(sym_str(x->c, t->names.v[k]));
  recorded *r = vec_push(x->a, &x->rec);
  *r = (recorded){.file = file,
                  .process = process,
                  .rank = said != TRACE_NONE    ? said
                          : t->processes.n == 1 ? job_rank(x->j, file)
                                                : TRACE_NONE,
                  .ran = t->processes.v[process].ran,
                  .base_ns = t->processes.v[process].base_ns};
  if (r->rank == TRACE_NONE) r->rank = x->rec.n - 1;
  if (!x->ran.digest.i) x->ran = r->ran;
  name_lanes(x, r, t);
  for (u32 k = 0; k < t->n; k++) {
    const u32 e = order[k];
    if (t->lanes.v[t->lane[e]].process != process || !(TRACE_ON_DEVICE >> t->is[e] & 1) || t->dur_ps[e] <= 0)
      continue;
    take_slice(x, r, t, e, &names[t->name[e]]);
    r->slice.v[r->slice.n - 1].step = s->of[e] == TRACE_NONE ? TRACE_NONE : s->step[s->of[e]].number;
  }
  const bool ok = take_steps(x, r, t, process, s, tmp);
  if (!r->slice.n) x->rec.n--; // a host without a device
  arena_free(tmp);
  return ok;
}

static bool take_files(comparing *x) {
  x->own = true;
  for (u32 f = 0; f < x->j->n; f++) {
    if (!trace_format_rows[x->j->file[f].format].kernels)
      continue; // such as an execution trace of the same rank
    const trace *t = job_load(x->j, f, 0);
    bool ok = t;
    x->own &= x->j->file[f].format == TRACE_FORMAT_heddle;
    for (u32 p = 0; ok && p < t->processes.n; p++) ok = take_process(x, t, f, p);
    if (ok) match_add(x->m, t, f, job_rank(x->j, f));
    if (t) job_unload(x->j, f);
    if (!ok) return false;
  }
  if (x->rec.n) return true;
  diag(x->c, E_TRACE, loc_node(x->c, sym_of(x->c, x->j->file[0].path), (sym){0}, (sym){0}),
       "nothing runs on a device here");
  return false;
}

// What ranks of several runs did has nothing to do with each other: neither times nor waits could be compared.
static bool check_run(comparing *x) {
  const recorded *first = &x->rec.v[0];
  for (u32 k = 1; k < x->rec.n; k++) {
    const recorded *r = &x->rec.v[k];
    if ((!r->ran.run.i || !first->ran.run.i || r->ran.run.i == first->ran.run.i) &&
        (!r->ran.digest.i || !first->ran.digest.i || r->ran.digest.i == first->ran.digest.i))
      continue;
    const char *path = x->j->file[r->file].path, *other = x->j->file[first->file].path;
    diag(x->c, E_TRACE, loc_node(x->c, sym_of(x->c, path), (sym){0}, (sym){0}),
         "rank %u was recorded in another run than rank %u", r->rank, first->rank);
    diag_note(x->c, loc_node(x->c, sym_of(x->c, other), (sym){0}, (sym){0}), "rank %u", first->rank);
    diag_hint(x->c, "record all ranks in one run, into an empty folder: heddle run ... --trace DIR");
    return false;
  }
  return true;
}

// A rank of the recording must be one of the plan's, and be there once.
static bool check_ranks(comparing *x) {
  for (u32 k = 0; k < x->rec.n; k++) {
    const recorded *r = &x->rec.v[k];
    const loc at = loc_node(x->c, sym_of(x->c, x->j->file[r->file].path), (sym){0}, (sym){0});
    for (u32 i = 0; i < k; i++) {
      if (x->rec.v[i].rank != r->rank) continue;
      diag(x->c, E_TRACE, at, "rank %u is there twice: also in %s", r->rank,
           x->j->file[x->rec.v[i].file].path);
      return false;
    }
    if (r->rank < x->s->nranks && x->s->used[r->rank]) continue;
    diag(x->c, E_TRACE, at, "rank %u was recorded, but the plan has %u ranks", r->rank, x->s->nused);
    diag_hint(x->c, "compare with the plan that the job ran: its dp, tp and pp multiply to the job's ranks");
    return false;
  }
  return true;
}

// ---- clocks and waits -----------------------------------------------------------------------------------
static const span *step_numbered(const recorded *r, u32 number) {
  for (u32 k = 0; k < r->step.n; k++)
    if (r->step.v[k].number == number) return &r->step.v[k];
  return NULL;
}

// Times are compared as recorded. Where clocks count from different moments, the ends of a step count as one moment.
static void set_clocks(comparing *x) {
  const recorded *first = &x->rec.v[0];
  x->out->clocks = true;
  for (u32 k = 1; k < x->rec.n; k++) {
    recorded *r = &x->rec.v[k];
    const i64 off = r->base_ns - first->base_ns;
    const bool same = r->file == first->file || (trace_dated(r->base_ns) && trace_dated(first->base_ns));
    x->out->clocks &= same && off < JOB_FAR_NS && off > -JOB_FAR_NS;
    r->shift_ps = x->out->clocks ? off * 1000 : 0;
  }
  if (x->out->clocks) return;
  for (u32 k = 1; k < x->rec.n; k++) {
    recorded *r = &x->rec.v[k];
    const span *own = &r->step.v[0], *to = step_numbered(first, own->number);
    r->shift_ps = (to ? to->last_ps : first->step.v[0].last_ps) - own->last_ps;
  }
}

// Clocks of hosts that are apart are put on one: steps are short, so one shift does for all of a process.
static void align_ranks(comparing *x) {
  i64 within = 0;
  const align_clocks *of =
      x->out->clocks ? clocks_apart(x->tmp, x->m, false, &x->out->clocks_by_ps, &within) : NULL;
  for (u32 k = 0; of && k < x->rec.n; k++) {
    recorded *r = &x->rec.v[k];
    const u32 place = match_place_of(x->m, r->file, r->process);
    const i64 at = r->slice.v[r->slice.n / 2].start_ps + x->m->places.v[place].base_ps;
    r->shift_ps += align_time(of, place, at) - at;
  }
  if (of) match_time(x->m, of);
}

static void set_waits(comparing *x) {
  match_finish(x->m);
  align_ranks(x);
  x->out->comms = x->comm.n / 2, x->out->lone = x->out->comms;
  for (u32 k = 0; k < x->m->row.n; k++) {
    const match_row *row = &x->m->row.v[k];
    const match_member *v = x->m->member.v + row->first;
    if (row->n < 2) continue;
    x->out->members = MAX(x->out->members, row->size);
    for (u32 i = 0; i < row->n; i++) {
      const u32 at = hmap_get(&x->by_event, event_hash(v[i].file, v[i].event));
      if (!at) continue;
      assert(x->comm.v);
      compare_slice *s = &x->rec.v[x->comm.v[2 * at - 2]].slice.v[x->comm.v[2 * at - 1]];
      x->out->lone--;
      s->meets = k + 1, s->leads = i == (s->message ? 0 : row->late);
      if (x->out->clocks) s->wait_ps = MIN(v[i].wait_ps, s->end_ps - s->start_ps);
    }
  }
}

// ---- the step -------------------------------------------------------------------------------------------
typedef struct {
  u32 number;
  i64 from_ps, to_ps;
  bool alone;
} stretch;

// A step goes from the end of the one before it, on all ranks, to its own; the first one begins with its first rank.
static bool stretch_of(const comparing *x, u32 number, u32 before, stretch *out) {
  *out = (stretch){number, INT64_MAX, INT64_MIN, before == TRACE_NONE};
  i64 begins = INT64_MIN;
  for (u32 k = 0; k < x->rec.n; k++) {
    const recorded *r = &x->rec.v[k];
    const span *s = step_numbered(r, number), *b = before == TRACE_NONE ? NULL : step_numbered(r, before);
    if (!s || !s->chosen || s->last_ps == INT64_MIN) return false; // the last of a rank may be cut off
    out->to_ps = MAX(out->to_ps, s->last_ps + r->shift_ps);
    out->from_ps = MIN(out->from_ps, s->first_ps + r->shift_ps);
    if (b && b->last_ps > INT64_MIN)
      begins = MAX(begins, b->last_ps + r->shift_ps);
    else
      out->alone = true;
  }
  if (!out->alone) out->from_ps = begins;
  return out->to_ps > out->from_ps;
}

static int by_time(const void *x, const void *y) {
  const stretch *a = x, *b = y;
  const i64 u = a->to_ps - a->from_ps, v = b->to_ps - b->from_ps;
  if (u != v) return u < v ? -1 : 1;
  return a->number < b->number ? -1 : a->number > b->number;
}

// The step of median length, of those that follow another one where there are any.
static bool choose_step(comparing *x, stretch *out) {
  const recorded *r = &x->rec.v[0];
  stretch *v = NEWN(x->tmp, stretch, r->step.n + 1);
  u32 n = 0, following = 0;
  for (u32 k = 0; k < r->step.n; k++)
    if (r->step.v[k].chosen &&
        stretch_of(x, r->step.v[k].number, k ? r->step.v[k - 1].number : TRACE_NONE, &v[n]))
      following += !v[n].alone, n++;
  if (!n) {
    diag(x->c, E_TRACE, loc_node(x->c, sym_of(x->c, x->j->file[r->file].path), (sym){0}, (sym){0}),
         "no step was recorded on all ranks");
    diag_hint(x->c, "`heddle trace info` says which steps every rank has");
    return false;
  }
  u32 m = 0;
  for (u32 k = 0; k < n; k++)
    if (!following || !v[k].alone) v[m++] = v[k];
  qsort(v, m, sizeof *v, by_time);
  double *ps = NEWN(x->tmp, double, m);
  for (u32 k = 0; k < m; k++) ps[k] = (double)(v[k].to_ps - v[k].from_ps);
  *out = v[(m - 1) / 2];
  job_compare *o = x->out;
  o->steps = sample_of(ps, m), o->nsteps = m, o->step = out->number, o->alone = out->alone;
  o->least_ps = v[0].to_ps - v[0].from_ps, o->most_ps = v[m - 1].to_ps - v[m - 1].from_ps;
  o->step_ps[0] = out->to_ps - out->from_ps;
  return true;
}

// ---- the prediction -------------------------------------------------------------------------------------
typedef struct {
  comparing *x;
  const trace_source *s;
  slices *of;    // by rank, of those that are drawn
  i64 *held;     // by rank: the most of what is not drawn
  VEC(sym) task; // by number
} hearing;

// "2F5"
static sym task_name(hearing *h, u32 task) {
  while (h->task.n <= task) *vec_push(h->x->tmp, &h->task) = (sym){0};
  const trace_task *t = task ? &h->s->task[task] : NULL;
  if (t && !h->task.v[task].i)
    h->task.v[task] = sym_fmt(h->x->c, "%u%c%u", t->stage, t->letter, t->microbatch);
  return h->task.v[task];
}

static void hear(void *arg, const trace_event *e) {
  hearing *h = arg;
  const trace_kind *kind = &h->s->kind[e->kind];
  const sym name = h->s->name[kind->what];
  const char *text = sym_str(h->x->c, name);
  const u32 row = is_heddles(text)             ? row_of_heddles(text)
                  : kind->flags & TRACE_UPDATE ? KERNEL_OPTIMIZER
                                               : (u32)kernel_class_of(text);
  i64 *held = &h->held[e->lane / h->s->nstreams];
  *held = MAX(*held, e->held_bytes);
  if (!e->dur_ps) return;
  const i64 held_bytes = e->held_bytes ? *held : 0; // told on the first stream alone
  if (held_bytes) *held = 0;
  *vec_push(h->x->a, &h->of[e->lane / h->s->nstreams]) =
      (compare_slice){.start_ps = e->start_ps,
                      .end_ps = e->start_ps + e->dur_ps,
                      .name = name,
                      .lane = e->lane % h->s->nstreams,
                      .row = (u8)row,
                      .message = is_message(row),
                      .launched_ps = INT64_MIN,
                      .at = {loc_place(h->x->c, kind->where), h->s->func ? h->s->func[kind->func] : (sym){0},
                             task_name(h, e->task), e->layer},
                      .microbatch = e->microbatch,
                      .meets = e->match,
                      .held_bytes = held_bytes,
                      .leads = e->lane == e->from_lane};
}

static slices *hear_all(comparing *x) {
  const trace_source *s = x->s->timeline;
  hearing h = {
      .x = x, .s = s, .of = ZNEWN(x->tmp, slices, s->nranks + 1), .held = ZNEWN(x->tmp, i64, s->nranks + 1)};
  arena *scratch = arena_new();
  s->play(s, scratch, 0, s->nranks * s->nstreams, hear, &h);
  arena_free(scratch);
  return h.of;
}

// ---- where the time goes --------------------------------------------------------------------------------
typedef struct {
  i64 at;
  u32 slice;
  u8 row;
  bool begins;
} edge;
static int by_edge(const void *x, const void *y) {
  const edge *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  if (a->begins != b->begins) return a->begins ? -1 : 1;
  return a->slice < b->slice ? -1 : a->slice > b->slice;
}

static u32 put_edges(edge *v, u32 n, u32 slice, u32 row, i64 start, i64 end, i64 from, i64 to) {
  start = MAX(start, from), end = MIN(end, to);
  if (start >= end) return n;
  v[n++] = (edge){start, slice, (u8)row, true};
  v[n++] = (edge){end, slice, (u8)row, false};
  return n;
}

// Why nothing runs until a slice begins.
static u32 idle_row(const compare_slice *s, i64 since, i64 until) {
  if (s->launched_ps > since) return COMPARE_HOST;
  if (s->message) return COMPARE_BUBBLE;
  if (s->row >= COMPARE_COMM && s->row < COMPARE_COPY) return COMPARE_PEERS;
  return until - since < (i64)30 * 1000000 ? COMPARE_LAUNCH : COMPARE_IDLE;
}

typedef VEC(compare_pause) pauses;
static void put_time(arena *a, i64 *row_ps, pauses *idle, u32 row, i64 from, i64 to) {
  row_ps[row] += to - from;
  if (row < COMPARE_PEERS || from >= to) return;
  if (idle->n && idle->v[idle->n - 1].row == row && idle->v[idle->n - 1].to_ps == from)
    idle->v[idle->n - 1].to_ps = to;
  else
    *vec_push(a, idle) = (compare_pause){from, to, (u8)row};
}

// Every instant from `from` to `to`. Pauses go to `a`.
static void take_apart(arena *a, arena *tmp, const compare_slice *s, u32 n, i64 from, i64 to, i64 *row_ps,
                       pauses *idle) {
  const arena_mark_t mark = arena_mark(tmp);
  edge *v = NEWN(tmp, edge, 4 * (size_t)n + 1);
  u32 m = 0, running[COMPARE_ROWS] = {0}, all = 0;
  for (u32 k = 0; k < n; k++) {
    const i64 start = s[k].start_ps, end = s[k].end_ps, there = start + s[k].wait_ps;
    m = put_edges(v, m, k, s[k].message ? COMPARE_BUBBLE : COMPARE_PEERS, start, there, from, to);
    m = put_edges(v, m, k, s[k].row, there, end, from, to);
  }
  if (m) qsort(v, m, sizeof *v, by_edge);
  i64 at = from;
  for (u32 k = 0; k < m; at = v[k++].at) {
    u32 row = 0;
    while (all && !running[row]) row++;
    if (!all && v[k].at > at) row = idle_row(&s[v[k].slice], at, v[k].at);
    put_time(a, row_ps, idle, row, at, v[k].at);
    const u32 by = v[k].begins ? 1 : ~(u32)0;
    running[v[k].row] += by, all += by;
  }
  bool pipeline = false; // nothing is left to run until the step's end
  for (u32 k = 0; k < n && !pipeline; k++) pipeline = s[k].message;
  put_time(a, row_ps, idle, pipeline ? COMPARE_BUBBLE : COMPARE_PEERS, at, to);
  arena_release(tmp, mark);
}

// ---- events by class ------------------------------------------------------------------------------------
typedef struct {
  VEC(compare_event) event;
  VEC(compare_kernel) kernel;
  hmap by_key, by_name;
} tally;

static void count_kernel(arena *a, tally *y, const compare_slice *s) {
  const u64 h = hash_u64(s->name.i, 1);
  u32 at = hmap_get(&y->by_name, h);
  if (!at) {
    *vec_push(a, &y->kernel) = (compare_kernel){.name = s->name};
    hmap_add(a, &y->by_name, h, at = y->kernel.n);
  }
  assert(y->kernel.v);
  y->kernel.v[at - 1].count++, y->kernel.v[at - 1].total_ps += s->end_ps - s->start_ps;
}

bool compare_in_step(const job_compare *o, u32 side, const compare_slice *s) {
  if (side) return true;
  return o->step == TRACE_NONE || s->step == TRACE_NONE
             ? s->start_ps >= o->from_ps[0] && s->start_ps < o->from_ps[0] + o->step_ps[0]
             : s->step == o->step;
}

static void count_slices(comparing *x, tally *y, u32 side, const compare_slice *s, u32 n) {
  for (u32 k = 0; k < n; k++) {
    if (!compare_in_step(x->out, side, &s[k])) continue;
    const u64 h = hash_u64(x->own ? s[k].name.i : 0, s[k].row + 1u);
    u32 at = hmap_get(&y->by_key, h);
    if (!at) {
      *vec_push(x->a, &y->event) = (compare_event){
          .name = x->own ? sym_str(x->c, s[k].name) : compare_row_name(s[k].row), .row = s[k].row};
      hmap_add(x->a, &y->by_key, h, at = y->event.n);
    }
    assert(y->event.v);
    compare_event *e = &y->event.v[at - 1];
    e->count[side] += !s[k].goes_on, e->total_ps[side] += s[k].end_ps - s[k].start_ps - s[k].wait_ps;
    if (!side && s[k].row == KERNEL_OTHER) count_kernel(x->a, y, &s[k]);
  }
}

static int by_difference(const void *x, const void *y) {
  const compare_event *a = x, *b = y;
  const i64 u = llabs(a->total_ps[0] - a->total_ps[1]), v = llabs(b->total_ps[0] - b->total_ps[1]);
  if (u != v) return u > v ? -1 : 1;
  if (a->row != b->row) return a->row < b->row ? -1 : 1;
  return strcmp(a->name, b->name);
}
static int by_total(const void *x, const void *y) {
  const compare_kernel *a = x, *b = y;
  if (a->total_ps != b->total_ps) return a->total_ps > b->total_ps ? -1 : 1;
  return a->name.i < b->name.i ? -1 : a->name.i > b->name.i;
}
static int by_rank(const void *x, const void *y) {
  const compare_rank *a = x, *b = y;
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

// ---- all of it ------------------------------------------------------------------------------------------
static void compare_ranks(comparing *x, const stretch *step) {
  job_compare *o = x->out;
  const sim_result *s = x->s;
  const slices *heard = hear_all(x);
  tally y = {.by_key = {0}};
  o->n = x->rec.n, o->plan_ranks = s->nused, o->ran = x->ran, o->file = x->j->file[x->rec.v[0].file].path;
  o->rank = ZNEWN(x->a, compare_rank, o->n);
  o->from_ps[0] = step->from_ps;
  o->step_ps[1] = o->alone ? s->makespan_ps : s->period_ps;
  for (u32 k = 0; k < o->n; k++) {
    const recorded *r = &x->rec.v[k];
    const u32 cls = s->class_of_rank[r->rank], like = s->cls[cls].first_rank;
    const slices *p = heard[r->rank].n ? &heard[r->rank] : &heard[like];
    compare_rank *c = &o->rank[k];
    for (u32 i = 0; i < r->slice.n; i++)
      r->slice.v[i].start_ps += r->shift_ps, r->slice.v[i].end_ps += r->shift_ps;
    for (u32 i = 0; i < r->slice.n; i++)
      if (r->slice.v[i].launched_ps > INT64_MIN) r->slice.v[i].launched_ps += r->shift_ps;
    *c = (compare_rank){.rank = r->rank,
                        .nlanes = {r->nlanes, s->timeline->nstreams},
                        .lane_name = {r->lane_name, s->timeline->stream_name},
                        .stage = s->cls[cls].stage,
                        .n = {r->slice.n, p->n},
                        .slice = {r->slice.v, p->v}};
    const i64 from[2] = {step->from_ps, 0}, to[2] = {step->to_ps, s->makespan_ps};
    for (u32 side = 0; side < 2; side++) {
      pauses idle = {0};
      take_apart(x->a, x->tmp, c->slice[side], c->n[side], from[side], to[side], c->row_ps[side], &idle);
      c->npauses[side] = idle.n, c->pause[side] = idle.v;
      count_slices(x, &y, side, c->slice[side], c->n[side]);
    }
    c->row_ps[1][COMPARE_NEXT] = o->step_ps[1] - s->makespan_ps;
    for (u32 side = 0; side < 2; side++)
      for (u32 i = 0; i < COMPARE_ROWS; i++) o->row_ps[side][i] += c->row_ps[side][i];
  }
  if (x->own) compare_places(x->c, x->a, o), compare_activity(x->a, o);
  qsort(o->rank, o->n, sizeof *o->rank, by_rank);
  if (y.event.n) qsort(y.event.v, y.event.n, sizeof *y.event.v, by_difference);
  if (y.kernel.n) qsort(y.kernel.v, y.kernel.n, sizeof *y.kernel.v, by_total);
  o->nevents = y.event.n, o->event = y.event.v, o->nkernels = y.kernel.n, o->kernel = y.kernel.v;
}

bool job_compare_of(job *j, const sim_result *predicted, const char *steps, arena *a, job_compare *out) {
  *out = (job_compare){.n = 0};
  assert(predicted->timeline);
  comparing x = {.c = j->c, .a = a, .tmp = arena_new(), .j = j, .s = predicted, .steps = steps, .out = out};
  x.m = match_new(j->c, x.tmp);
  stretch step;
  bool ok = take_files(&x) && check_ranks(&x) && check_run(&x);
  if (ok) set_clocks(&x), set_waits(&x);
  ok = ok && choose_step(&x, &step);
  if (ok) compare_ranks(&x, &step);
  arena_free(x.tmp);
  return ok;
}
