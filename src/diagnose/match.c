// match.c - the events of different processes that are one communication.
//
// Calls fall into queues: those of one group on its k-th stream, those of one sender to one receiver. Within a queue
// every process makes its calls in the same order, so a call is known by its number if the recorder gave one, and else by
// its place in the order (match_order.c).
#include "diagnose/internal.h"
#include "diagnose/match_call.h"
#include <stdlib.h>

// ---- adding -------------------------------------------------------------------------------------------------
match *match_new(ctx *c, arena *a) {
  match *m = NEW(a, match);
  m->c = c, m->a = a;
  return m;
}

static const i64 FAR_PS = JOB_FAR_NS * 1000;

static i64 base_of(match *m, const trace_process *p, bool dated) {
  i64 *zero = &m->zero_ns[dated];
  if (!*zero) *zero = p->base_ns;
  const i64 ns = p->base_ns - *zero;
  return ns > -JOB_FAR_NS && ns < JOB_FAR_NS ? ns * 1000 : 0; // picoseconds of more do not fit
}

static void add_places(match *m, const trace *t, u32 file, u32 rank) {
  for (u32 k = 0; k < t->processes.n; k++) {
    const trace_process *p = &t->processes.v[k];
    match_place at = {.file = file, .process = k, .host = p->host, .dated = trace_dated(p->base_ns)};
    at.rank = p->rank != TRACE_NONE ? p->rank : t->processes.n == 1 ? rank : TRACE_NONE;
    at.base_ps = base_of(m, p, at.dated);
    *vec_push(m->a, &m->places) = at;
  }
}

static comm_kind kind_of(const match *m, sym op) { return comm_kind_named(sym_str(m->c, op)); }
static bool is_message(const match *m, sym op) { return comm_who_of(m->c, op) == COMM_WHO_MESSAGE; }

static void add_call(match *m, const trace *t, u32 file, u32 first_place, u32 e) {
  const trace_lane *lane = &t->lanes.v[t->lane[e]];
  const u32 place = first_place + lane->process;
  const i64 base = m->places.v[place].base_ps;
  call *x = vec_push(m->a, &m->calls);
  *x = (call){.place = place,
              .file = file,
              .event = e,
              .at = t->lane[e],
              .lane = lane->id,
              .peer = TRACE_NONE,
              .seq = -1,
              .bytes = -1};
  const i64 start = MAX(-FAR_PS, MIN(FAR_PS, t->start_ps[e]));
  x->start = base + start, x->end = x->start + MAX(0, MIN(FAR_PS, t->dur_ps[e]));
  x->name = trace_name(t, e), x->by_file = t->match[e];
  if (t->comm[e] != TRACE_NONE) {
    const trace_comm *c = &t->comms.v[t->comm[e]];
    x->op = c->op, x->group = c->group, x->members = c->members, x->size = c->size, x->peer = c->peer;
    x->seq = c->seq, x->bytes = c->bytes, x->type = c->type;
  }
  const bool serial = t->processes.v[lane->process].serial;
  x->tied = serial && x->seq >= 0, x->leaves = t->flags[e] & TRACE_LEAVES;
  u64 h = hash_step(17, x->op.i ? x->op.i : x->name.i);
  if (is_message(m, x->op)) h = 18;
  h = hash_step(hash_step(h, (u64)x->bytes), x->type.i);
  x->what = hash_u64(h, 1);
}

void match_add(match *m, const trace *t, u32 file, u32 rank) {
  const u32 first = m->places.n;
  add_places(m, t, file, rank);
  bool device = false;
  for (u32 e = 0; e < t->n && !device; e++)
    device = t->flags[e] & TRACE_COMM && t->lanes.v[t->lane[e]].device;
  for (u32 e = 0; e < t->n; e++)
    if ((t->flags[e] & TRACE_COMM || t->match[e]) && t->lanes.v[t->lane[e]].device == device)
      add_call(m, t, file, first, e);
}

// ---- queues -------------------------------------------------------------------------------------------------
static int by_place(const void *x, const void *y) {
  const call *a = x, *b = y;
  if (a->place != b->place) return a->place < b->place ? -1 : 1;
  if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}

// Streams are counted by their numbers, in every group and place by itself.
static void count_streams(match *m) {
  hmap lanes = {0}, counts = {0};
  VEC(u32) count = {0};
  if (m->calls.n) qsort(m->calls.v, m->calls.n, sizeof *m->calls.v, by_place);
  for (u32 k = 0; k < m->calls.n; k++) {
    call *x = &m->calls.v[k];
    const u64 group = hash_step(hash_step(hash_step(8, x->place), x->group.i), x->members.i);
    const u64 h = hash_u64(hash_step(group, (u64)x->lane), 2);
    u32 at = hmap_get(&lanes, h);
    if (!at) {
      u32 c = hmap_get(&counts, hash_u64(group, 3));
      if (!c) {
        *vec_push(m->a, &count) = 0;
        hmap_add(m->a, &counts, hash_u64(group, 3), c = count.n);
      }
      assert(count.v && c <= count.n);
      at = ++count.v[c - 1];
      hmap_add(m->a, &lanes, h, at);
    }
    x->stream = at - 1;
  }
}

static void put_problem(match *m, match_trouble is, const call *x, u32 of, u32 other) {
  *vec_push(m->a, &m->problem) = (match_problem){.is = is,
                                                 .place = x->place,
                                                 .file = x->file,
                                                 .event = x->event,
                                                 .op = x->op,
                                                 .group = x->group,
                                                 .seq = x->seq,
                                                 .of = of,
                                                 .other = other};
}

typedef struct {
  match_by by;
  bool message;
  u32 from, to; // of a message: ranks
  u32 n, at;    // calls: m->calls.v[at .. at + n)
} queue;
typedef VEC(queue) queues;

static u64 key_of(const match *m, const call *x, queue *q) {
  const u32 rank = m->places.v[x->place].rank;
  *q = (queue){.by = x->by_file ? MATCH_BY_FILE : x->seq >= 0 ? MATCH_BY_NUMBER : MATCH_BY_ORDER};
  if (x->by_file) return hash_u64(hash_step(hash_step(4, x->file), x->by_file), 4);
  const bool sends = kind_of(m, x->op) == COMM_SEND;
  if (is_message(m, x->op)) {
    if (x->peer == TRACE_NONE || rank == TRACE_NONE) return 0;
    q->by = x->tied ? MATCH_BY_NUMBER : MATCH_BY_ORDER, q->message = true;
    q->from = sends ? rank : x->peer, q->to = sends ? x->peer : rank;
    return hash_u64(hash_step(hash_step(hash_step(5, x->group.i), q->from), q->to), 5);
  }
  const u64 h = hash_step(hash_step(hash_step(6, x->group.i), x->members.i), x->members.i ? 0 : x->size);
  return hash_u64(hash_step(h, q->by == MATCH_BY_ORDER ? 1 + x->stream : 0), 6);
}

static int by_queue(const void *x, const void *y) {
  const call *a = x, *b = y;
  if (a->queue != b->queue) return a->queue < b->queue ? -1 : 1;
  if (a->place != b->place) return a->place < b->place ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}

static queues make_queues(match *m) {
  queues out = {0};
  hmap known = {0};
  u32 n = 0;
  for (u32 k = 0; k < m->calls.n; k++) {
    call x = m->calls.v[k];
    queue q;
    const u64 h = key_of(m, &x, &q);
    if (!h) {
      put_problem(m, MATCH_UNKNOWN, &x, 0, 0);
      continue;
    }
    x.queue = hmap_get(&known, h);
    if (!x.queue) {
      *vec_push(m->a, &out) = q;
      hmap_add(m->a, &known, h, x.queue = out.n);
    }
    x.queue--;
    m->calls.v[n++] = x;
    assert(out.v);
    out.v[x.queue].n++;
  }
  m->calls.n = n;
  if (m->calls.n) qsort(m->calls.v, n, sizeof *m->calls.v, by_queue);
  for (u32 k = 0, at = 0; k < out.n; at += out.v[k++].n) out.v[k].at = at;
  return out;
}

// ---- rows ---------------------------------------------------------------------------------------------------
typedef struct {
  match *m;
  const queue *q;
  VEC(u32) start; // of the calls of every place in the queue; one more at the end
  u32 expected;   // places that belong to the group
} filling;

static bool listed(const char *members, u32 rank) {
  for (const char *p = members; *p;) {
    char *end;
    const unsigned long v = strtoul(p, &end, 10);
    if (end == p) {
      p++;
      continue;
    }
    if (v == rank) return true;
    p = end;
  }
  return false;
}

// Places of the job that the group has, whether or not they have a call in the queue.
static u32 places_of_group(const filling *f) {
  const match *m = f->m;
  const call *x = &m->calls.v[f->q->at];
  u32 n = 0, ranked = 0;
  for (u32 k = 0; k < m->places.n; k++) {
    const u32 rank = m->places.v[k].rank;
    if (rank == TRACE_NONE) continue;
    ranked++;
    if (f->q->message ? rank == f->q->from || rank == f->q->to
                      : x->members.i && listed(sym_str(m->c, x->members), rank))
      n++;
  }
  if (!f->q->message && !x->members.i && x->size == ranked) n = ranked;
  return MAX(n, f->start.n - 1);
}

static match_row *open_row(filling *f, const call *x) {
  match_row *r = vec_push(f->m->a, &f->m->row);
  *r = (match_row){.op = x->op,
                   .group = x->group,
                   .name = x->name,
                   .seq = x->seq,
                   .bytes = x->bytes,
                   .first = f->m->member.n,
                   .size = x->size,
                   .by = f->q->by};
  return r;
}
static void add_member(filling *f, match_row *r, const call *x) {
  *vec_push(f->m->a, &f->m->member) =
      (match_member){x->place, x->file, x->event, x->at, x->start, x->end, 0, 0, x->leaves};
  r->n++;
}
// What is tied by numbers is a message with the sender first, too.
static void turn_row(filling *f, match_row *r, const call *second) {
  match_member *v = &f->m->member.v[r->first];
  if (r->n != 2 || kind_of(f->m, r->op) != COMM_RECV || kind_of(f->m, second->op) != COMM_SEND) return;
  const match_member x = v[0];
  v[0] = v[1], v[1] = x, r->op = second->op;
}
static void close_row(filling *f, match_row *r, const call *x) {
  if (f->q->by != MATCH_BY_FILE && r->n < f->expected) put_problem(f->m, MATCH_ORPHAN, x, r->n, f->expected);
}

static int by_number(const void *x, const void *y) {
  const call *a = x, *b = y;
  if (a->seq != b->seq) return a->seq < b->seq ? -1 : 1;
  return by_queue(x, y);
}

static void fill_by_number(filling *f) {
  call *v = f->m->calls.v + f->q->at;
  qsort(v, f->q->n, sizeof *v, by_number);
  for (u32 k = 0; k < f->q->n;) {
    const call *head = &v[k];
    match_row *r = open_row(f, head);
    for (u32 last = TRACE_NONE; k < f->q->n && (f->q->by == MATCH_BY_FILE || v[k].seq == head->seq); k++) {
      if (v[k].place == last && f->q->by == MATCH_BY_NUMBER)
        put_problem(f->m, MATCH_DUPLICATE, &v[k], 0, 0);
      else if (v[k].op.i != head->op.i && f->q->by == MATCH_BY_NUMBER && !f->q->message)
        put_problem(f->m, MATCH_DIFFERENT, &v[k], 0, head->place);
      else
        add_member(f, r, &v[k]);
      last = v[k].place;
    }
    turn_row(f, r, &v[k - 1]);
    close_row(f, r, head);
  }
}

static void fill_by_order(filling *f) {
  match *m = f->m;
  const call *v = m->calls.v + f->q->at;
  const u32 n = f->start.n - 1;
  u32 longest = 0;
  for (u32 k = 1; k < n; k++)
    if (f->start.v[k + 1] - f->start.v[k] > f->start.v[longest + 1] - f->start.v[longest]) longest = k;
  const call *to = v + f->start.v[longest];
  const u32 nto = f->start.v[longest + 1] - f->start.v[longest];
  u32 *pair = NEWN(m->a, u32, (size_t)n * nto + 1);
  bool *paired = ZNEWN(m->a, bool, f->q->n + 1);
  for (u32 p = 0; p < n; p++) {
    match_in_order(to, nto, v + f->start.v[p], f->start.v[p + 1] - f->start.v[p], pair + (size_t)p * nto);
    for (u32 k = 0; k < nto; k++)
      if (pair[(size_t)p * nto + k] != TRACE_NONE) paired[f->start.v[p] + pair[(size_t)p * nto + k]] = true;
  }
  const bool turned =
      f->q->message && n == 2 && m->places.v[v->place].rank != f->q->from; // the sender is first
  for (u32 k = 0; k < nto; k++) {
    match_row *r = open_row(f, &to[k]);
    for (u32 i = 0; i < n; i++) {
      const u32 p = turned ? 1 - i : i, at = pair[(size_t)p * nto + k];
      if (at == TRACE_NONE) continue;
      call x = v[f->start.v[p] + at];
      x.seq = k;
      if (x.what != to[k].what)
        put_problem(m, MATCH_DIFFERENT, &x, 0, to[k].place);
      else
        add_member(f, r, &x);
    }
    call x = to[k];
    x.seq = k;
    close_row(f, r, &x);
  }
  for (u32 k = 0; k < f->q->n; k++)
    if (!paired[k]) put_problem(m, MATCH_ORPHAN, &v[k], 1, f->expected);
}

// ---- all ------------------------------------------------------------------------------------------------------
static int by_start(const void *x, const void *y) {
  const match_row *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  return a->first < b->first ? -1 : a->first > b->first;
}

void match_finish(match *m) {
  count_streams(m);
  const queues q = make_queues(m);
  for (u32 k = 0; k < q.n; k++) {
    filling f = {.m = m, .q = &q.v[k]};
    const call *v = m->calls.v + q.v[k].at;
    for (u32 i = 0; i < q.v[k].n; i++)
      if (!i || v[i].place != v[i - 1].place) *vec_push(m->a, &f.start) = i;
    *vec_push(m->a, &f.start) = q.v[k].n;
    f.expected = places_of_group(&f);
    if (q.v[k].by == MATCH_BY_ORDER)
      fill_by_order(&f);
    else
      fill_by_number(&f);
  }
  for (u32 k = 0; k < m->row.n; k++)
    m->row.v[k].at = m->row.v[k].n ? m->member.v[m->row.v[k].first].start_ps : 0;
  if (m->row.n) qsort(m->row.v, m->row.n, sizeof *m->row.v, by_start);
  match_time(m, NULL);
}

match *match_job(job *j, arena *a) {
  match *m = match_new(j->c, a);
  for (u32 k = 0; k < j->n; k++) {
    const trace *t = job_load(j, k, 0);
    if (!t) return NULL;
    match_add(m, t, k, job_rank(j, k));
    job_unload(j, k);
  }
  match_finish(m);
  return m;
}

static i64 time_of(const align_clocks *x, const match_member *v, i64 ps) {
  return x ? align_time(x, v->place, ps) : ps;
}

// A member is there when it starts.
void match_time(match *m, const align_clocks *x) {
  for (u32 k = 0; k < m->row.n; k++) {
    match_row *r = &m->row.v[k];
    match_member *v = m->member.v + r->first;
    i64 latest = INT64_MIN, second = INT64_MIN;
    for (u32 i = 0; i < r->n; i++) {
      const i64 start = time_of(x, &v[i], v[i].start_ps);
      second = MAX(second, MIN(start, latest));
      if (start > latest) latest = start, r->late = i;
    }
    r->ahead_ps = r->n > 1 ? latest - second : 0;
    for (u32 i = 0; i < r->n; i++) {
      v[i].wait_ps = v[i].leaves ? 0 : latest - time_of(x, &v[i], v[i].start_ps);
      v[i].transfer_ps = v[i].leaves ? v[i].end_ps - v[i].start_ps : time_of(x, &v[i], v[i].end_ps) - latest;
    }
  }
}

u32 match_place_of(const match *m, u32 file, u32 process) {
  u32 k = 0;
  while (k < m->places.n && (m->places.v[k].file != file || m->places.v[k].process != process)) k++;
  assert(k < m->places.n);
  return k;
}

const char *match_trouble_name(match_trouble t) {
  static const char *const name[] = {
      [MATCH_ORPHAN] = "orphan",
      [MATCH_DUPLICATE] = "duplicate",
      [MATCH_DIFFERENT] = "different",
      [MATCH_UNKNOWN] = "unknown peer",
  };
  return name[t];
}
