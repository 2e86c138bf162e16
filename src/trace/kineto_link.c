// kineto_link.c - what is known of a Kineto file when all of it was read: what its times are relative to, which
// events are there twice, which call launched which kernel, which communication a kernel is, what lanes are called.
//
// A kernel is of the communication that the framework was recording, on the same thread, when it launched the kernel:
// times say so in all versions. External ids say the same where they are ids of operators; in some versions they are
// the correlation id again.
#include "trace/kineto.h"
#include <ctype.h>
#include <stdlib.h>

#define DAY_NS ((i64)24 * 3600 * 1000000000)

// ---- calls by their ids -----------------------------------------------------------------------------------
hmap kineto_calls_by_id(kineto *k) {
  hmap m = {0};
  for (u32 i = 0; i < k->calls.n; i++) {
    const u64 h = hash_u64((u64)k->calls.v[i].correlation, 7);
    if (k->calls.v[i].correlation != ABSENT && !hmap_get(&m, h)) hmap_add(k->tmp, &m, h, i + 1);
  }
  return m;
}
const kineto_call *kineto_call_of(const kineto *k, const hmap *m, i64 correlation) {
  if (correlation == ABSENT) return NULL;
  const u32 i = hmap_get(m, hash_u64((u64)correlation, 7));
  return i && k->calls.v[i - 1].correlation == correlation ? &k->calls.v[i - 1] : NULL;
}

// ---- times --------------------------------------------------------------------------------------------------
// Takes events out of the columns. gone: of event first + k.
static void drop(kineto *k, const bool *gone, u32 *number) {
  trace *t = k->x->t;
  u32 to = k->first;
  for (u32 e = k->first; e < t->n; e++) {
    number[e - k->first] = gone[e - k->first] ? TRACE_NONE : to;
    if (gone[e - k->first]) continue;
    kineto_ns(k, to) = kineto_ns(k, e);
    trace_move(t, to++, e);
  }
  k->x->about->skipped += t->n - to;
  t->n = to;
}

static void renumber(kineto *k, const u32 *number) {
#define NEW_NUMBER(e) ((e) == TRACE_NONE ? TRACE_NONE : number[(e)-k->first])
  for (u32 i = 0; i < k->calls.n; i++) k->calls.v[i].event = NEW_NUMBER(k->calls.v[i].event);
  for (u32 i = 0; i < k->started.n; i++) k->started.v[i].event = NEW_NUMBER(k->started.v[i].event);
  for (u32 i = 0; i < k->waits.n; i++) k->waits.v[i].event = NEW_NUMBER(k->waits.v[i].event);
  u32 n = 0;
  for (u32 i = 0; i < k->work.n; i++) {
    const u32 e = NEW_NUMBER(k->work.v[i].event);
    if (e != TRACE_NONE) k->work.v[n] = k->work.v[i], k->work.v[n++].event = e;
  }
  k->work.n = n;
#undef NEW_NUMBER
}

// Marks events of the device that are there a second time.
static u32 mark_twice(kineto *k, bool *gone) {
  const trace *t = k->x->t;
  hmap seen = {0};
  u32 n = 0;
  for (u32 i = 0; i < k->work.n; i++) {
    const kineto_work *w = &k->work.v[i];
    const u32 e = w->event;
    u64 h = hash_step(hash_u64((u64)kineto_ns(k, e), t->lane[e]), (u64)t->dur_ps[e]);
    h = hash_u64(hash_step(h, (u64)w->correlation), t->name[e]);
    bool twice = false;
    for (u32 it = 0, v; !twice && hmap_next(&seen, h, &it, &v);) {
      const u32 o = k->work.v[v].event;
      twice = k->work.v[v].correlation == w->correlation && kineto_ns(k, o) == kineto_ns(k, e) &&
              t->start_ps[o] == t->start_ps[e] && t->lane[o] == t->lane[e] && t->dur_ps[o] == t->dur_ps[e] &&
              t->name[o] == t->name[e];
    }
    if (twice)
      n += !gone[e - k->first], gone[e - k->first] = true;
    else
      hmap_add(k->tmp, &seen, h, i);
  }
  return n;
}

// Marks events whose time is a month from those of most others: what wrote them had no clock.
static u32 mark_far(kineto *k, bool *gone, i64 least, i64 most) {
  const trace *t = k->x->t;
  const u32 n = t->n - k->first;
  if (most - least <= 60 * DAY_NS) return 0;
  i64 *sorted = arena_dup(k->tmp, k->at_ns.v, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, ascending_i64);
  u32 far = 0;
  for (u32 i = 0; i < n; i++) {
    gone[i] = llabs(k->at_ns.v[i] - sorted[n / 2]) > 30 * DAY_NS;
    far += gone[i];
  }
  return far;
}

static void range(const kineto *k, i64 *least, i64 *most) {
  const trace *t = k->x->t;
  *least = INT64_MAX, *most = INT64_MIN;
  for (u32 e = k->first; e < t->n; e++)
    *least = MIN(*least, kineto_ns(k, e)), *most = MAX(*most, kineto_ns(k, e));
}

// What lies a day from all events has no time that could be trusted.
static void settle_memory(kineto *k, i64 least, i64 most) {
  trace *t = k->x->t;
  u32 n = k->first_memory;
  for (u32 i = n; i < t->memory.n; i++) {
    trace_memory m = t->memory.v[i];
    const i64 ns = k->memory_ns.v[i - k->first_memory];
    if (least > most || ns < least - DAY_NS || ns > most + DAY_NS) continue;
    m.at_ps = (ns - least) * 1000;
    t->memory.v[n++] = m;
  }
  t->memory.n = n;
}

// From ns of the file to ps from the first event.
static void settle_times(kineto *k) {
  trace *t = k->x->t;
  i64 least, most;
  range(k, &least, &most);
  settle_memory(k, least, most);
  if (least > most) return;
  for (u32 e = k->first; e < t->n; e++) t->start_ps[e] += (kineto_ns(k, e) - least) * 1000;
  const bool fits = k->base_ns > 0 && k->base_ns <= (i64)4 << 60 && least <= (i64)4 << 60;
  t->processes.v[k->process].base_ns = MAX(least + (fits ? k->base_ns : 0), 0);
}

static void settle_events(kineto *k) {
  const trace *t = k->x->t;
  const u32 n = t->n - k->first;
  i64 least, most;
  range(k, &least, &most);
  bool *gone = ZNEWN(k->tmp, bool, n + 1);
  const u32 far = n ? mark_far(k, gone, least, most) : 0, outside = kineto_mark_outside(k, gone);
  if (outside + far + mark_twice(k, gone)) {
    u32 *number = NEWN(k->tmp, u32, n + 1);
    drop(k, gone, number);
    k->x->about->skipped -= outside;
    renumber(k, number);
  }
  settle_times(k);
}

// ---- causes -------------------------------------------------------------------------------------------------
static int by_place(const void *x, const void *y) {
  const kineto_flow *a = x, *b = y;
  if (a->at_call != b->at_call) return (int)a->at_call - (int)b->at_call;
  if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
  if (a->tid != b->tid) return a->tid < b->tid ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

static i64 id_at(const kineto *k, bool at_call, i64 ns, i64 tid) {
  const kineto_flow what = {.id = INT64_MIN, .tid = tid, .ns = ns, .at_call = at_call};
  u32 lo = 0, hi = k->flows.n;
  while (lo < hi) {
    const u32 mid = lo + (hi - lo) / 2;
    if (by_place(&k->flows.v[mid], &what) < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  const kineto_flow *f = &k->flows.v[lo];
  return lo < k->flows.n && f->at_call == at_call && f->ns == ns && f->tid == tid ? f->id : ABSENT;
}

// Where events have no correlation ids, arrows that start at a call and end at an event of the device stand for them.
static void ids_from_flows(kineto *k) {
  const trace *t = k->x->t;
  if (k->correlated || !k->flows.n) return;
  qsort(k->flows.v, k->flows.n, sizeof *k->flows.v, by_place);
  for (u32 i = 0; i < k->calls.n; i++) {
    kineto_call *c = &k->calls.v[i];
    c->correlation = id_at(k, true, c->start_ns, c->thread);
  }
  for (u32 i = 0; i < k->work.n; i++) {
    kineto_work *w = &k->work.v[i];
    w->correlation = id_at(k, false, kineto_ns(k, w->event), t->lanes.v[t->lane[w->event]].id);
  }
}

// ---- communications -----------------------------------------------------------------------------------------
static int by_start(const void *x, const void *y) {
  const kineto_started *a = x, *b = y;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  if (a->end_ns != b->end_ns) return a->end_ns > b->end_ns ? -1 : 1;
  return a->comm < b->comm ? -1 : a->comm > b->comm;
}

// The last that starts on the thread by then; n: none.
static u32 last_started(const kineto *k, i64 thread, i64 ns) {
  u32 lo = 0, hi = k->started.n;
  while (lo < hi) {
    const u32 mid = lo + (hi - lo) / 2;
    const kineto_started *s = &k->started.v[mid];
    if (s->thread < thread || (s->thread == thread && s->start_ns <= ns))
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo && k->started.v[lo - 1].thread == thread ? lo - 1 : k->started.n;
}

// What m lacks. Elements are of the type that is said with them: NCCL moves bytes in its send_recv kernels.
static void fill(ctx *c, trace_comm *m, const trace_comm *from) {
  if (!m->op.i || (from->op.i && !strcmp(sym_str(c, m->op), "send_recv"))) m->op = from->op;
  if (m->in < 0 && m->out < 0 && (from->in >= 0 || from->out >= 0) && from->type.i) m->type = from->type;
  if (!m->group.i) m->group = from->group;
  if (!m->members.i) m->members = from->members;
  if (!m->size) m->size = from->size;
  if (m->peer == TRACE_NONE) m->peer = from->peer;
  if (m->seq < 0) m->seq = from->seq;
  if (m->in < 0) m->in = from->in;
  if (m->out < 0) m->out = from->out;
  if (!m->type.i) m->type = from->type;
}

// What the host recorded around the launch, metadata before annotations.
static void fill_from_host(kineto *k, const hmap *by_external, const kineto_call *call, i64 external,
                           trace_comm *m) {
  enum { NESTED = 8 };
  u32 found[NESTED], n = 0;
  for (u32 s = call ? last_started(k, call->thread, call->start_ns) : k->started.n, back = 0;
       s < k->started.n && back < NESTED && k->started.v[s].thread == call->thread; s--, back++)
    if (k->started.v[s].end_ns >= call->start_ns) found[n++] = s;
  if (!n && external != ABSENT) // times do not tell
    for (u32 it = 0, i; n < NESTED && hmap_next(by_external, hash_u64((u64)external, 11), &it, &i);)
      if (k->started.v[i].external == external) found[n++] = i;
  for (u32 guess = 0; guess < 2; guess++)
    for (u32 i = 0; i < n; i++) {
      kineto_started *s = &k->started.v[found[i]];
      if (s->guess != guess) continue;
      s->taken = true;
      fill(k->x->c, m, &k->comms.v[s->comm]);
    }
}

static void finish(kineto *k, trace_comm *m) {
  ctx *c = k->x->c;
  for (u32 g = 0; g < k->groups.n && m->group.i; g++)
    if (k->groups.v[g].name.i == m->group.i) {
      if (!m->members.i) m->members = k->groups.v[g].members;
      if (!m->size) m->size = k->groups.v[g].size;
    }
  const i64 most = MAX(m->in, m->out), bytes = comm_type_bytes(sym_str(c, m->type));
  if (most >= 0 && bytes) m->bytes = mul_sat(most, bytes);
}

static u32 put_comm(kineto *k, const trace_comm *m) {
  trace *t = k->x->t;
  *vec_push(k->x->a, &t->comms) = *m;
  return t->comms.n - 1;
}

static void link_work(kineto *k) {
  trace *t = k->x->t;
  const hmap calls = kineto_calls_by_id(k);
  hmap by_external = {0};
  if (k->started.n) qsort(k->started.v, k->started.n, sizeof *k->started.v, by_start);
  for (u32 i = 0; i < k->started.n; i++)
    if (k->started.v[i].external != ABSENT)
      hmap_add(k->tmp, &by_external, hash_u64((u64)k->started.v[i].external, 11), i);
  for (u32 i = 0; i < k->work.n; i++) {
    const kineto_work *w = &k->work.v[i];
    const kineto_call *call = kineto_call_of(k, &calls, w->correlation);
    if (call) t->cause[w->event] = call->event;
    if (w->comm == TRACE_NONE) continue;
    trace_comm m = k->comms.v[w->comm];
    const i64 external = w->external == w->correlation ? ABSENT : w->external;
    const bool by_call = external == ABSENT && call && call->external != call->correlation;
    fill_from_host(k, &by_external, call, by_call ? call->external : external, &m);
    finish(k, &m);
    t->comm[w->event] = put_comm(k, &m);
  }
  for (u32 i = 0; i < k->started.n; i++) { // on the host alone
    kineto_started *s = &k->started.v[i];
    if (s->taken || s->guess || s->event == TRACE_NONE) continue;
    finish(k, &k->comms.v[s->comm]);
    t->comm[s->event] = put_comm(k, &k->comms.v[s->comm]);
  }
}

// ---- lanes and the process ----------------------------------------------------------------------------------
static void name_lanes(kineto *k) {
  trace *t = k->x->t;
  for (u32 l = 0; l < t->lanes.n; l++) {
    trace_lane *x = &t->lanes.v[l];
    if (x->process != k->process) continue;
    if (x->id <= -2 && x->id >= -1 - (i64)k->labels.n) x->name = k->labels.v[-2 - x->id];
    for (u32 i = 0; i < k->threads.n; i++) {
      const kineto_name *n = &k->threads.v[i];
      if (n->tid == x->id && (x->device ? n->pid == x->of : n->pid == k->pid || n->pid == 0))
        x->name = n->name;
    }
  }
}

// Of "gpu12_4711.1690000000000.pt.trace.json.gz" what is before the process: the host.
static sym host_of(const kineto *k) {
  const char *slash = strrchr(k->x->path, '/'), *s = slash ? slash + 1 : k->x->path;
  const char *end = strstr(s, ".pt.trace.json"), *under = NULL;
  for (const char *p = s; end && p < end; p++)
    if (*p == '_') under = p;
  if (!under || under == s) return (sym){0};
  for (const char *p = under + 1; p < end; p++)
    if (!isdigit((unsigned char)*p) && *p != '.') return (sym){0};
  return sym_ofn(k->x->c, s, (size_t)(under - s));
}

// The device that its events are on, or the only one that there is.
static sym device_of(const kineto *k) {
  const trace *t = k->x->t;
  for (u32 l = 0; l < t->lanes.n; l++)
    for (u32 i = 0; i < k->devices.n && t->lanes.v[l].process == k->process && t->lanes.v[l].device; i++)
      if (k->devices.v[i].device == t->lanes.v[l].of) return k->devices.v[i].name;
  return k->devices.n ? k->devices.v[0].name : (sym){0};
}

void kineto_link(kineto *k) {
  ids_from_flows(k);
  settle_events(k);
  link_work(k);
  kineto_link_waits(k);
  name_lanes(k);
  trace_process *p = &k->x->t->processes.v[k->process];
  p->rank = k->rank, p->world_size = k->world_size, p->pid = k->pid;
  p->host = host_of(k), p->device = device_of(k);
}
