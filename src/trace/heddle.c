// heddle.c - Heddle's own timelines: what `heddle sim --timeline` and `heddle trace convert --to heddle` write
// (docs/diagnosis.md has the format). Not how they are written (report/).
//
// Idea: Trace Event Format with words of its own: an event's category says what it is, its arguments have what columns
// have. A process is a rank, also of a job whose ranks are all in one file. What is told of processes and threads may
// come after their events, and a call after what it launched, so both are put right at the end.
#include "trace/scan.h"
#include <stdlib.h>

typedef struct {
  i64 pid;
  u32 process;
  bool dated;
} place;
typedef struct {
  i64 pid, tid; // as the file has them
  u32 lane;
} file_lane;
typedef struct {
  u32 event;
  i64 launch;
} launched;
// A slice around what a task of a pipeline runs, that has begun.
typedef struct {
  u32 lane;
  i64 start_ps;
} opened;
typedef struct {
  reading *x;
  scan *s;
  arena *tmp;
  i64 base_ns;
  VEC(place) places;
  VEC(file_lane) lanes;
  hmap by_lane;
  hmap calls; // by launch: event + 1
  VEC(launched) waits;
  VEC(opened) open;
} heddle;
typedef struct {
  char ph;
  bool has_ts, has_name;       // a name may be empty
  i64 pid, tid, ts_ps, dur_ps; // dur_ps: -1: not said
  sym name, cat;
  // of args
  sym title, host, device;
  trace_ran ran;
  trace_origin origin;
  i64 rank, world, data, stage, tensor, dated, serial, of, stream, thread; // ABSENT: not said
  i64 launch, step, microbatch, chunk, match, layer;
  bool waited; // for others, inside a communication
  trace_comm comm;
} event;
#define ABSENT INT64_MIN

bool trace_knows_heddle(const char *start, size_t n) {
  static const char key[] = "\"schema\"", is[] = "\"heddle timeline 1\"";
  const char *at = n && *start == '{' ? strstr(start, key) : NULL;
  if (!at || at - start >= 256) return false;
  at += strlen(key), at += strspn(at, " \t\r\n");
  if (*at != ':') return false;
  at++, at += strspn(at, " \t\r\n");
  return !strncmp(at, is, strlen(is));
}

static bool microseconds(scan_text t, i64 *ps) {
  i64 whole;
  u32 millionths;
  if (!scan_decimal(t, &whole, &millionths) || whole > INT64_MAX / 4000000 || whole < INT64_MIN / 4000000)
    return false;
  *ps = whole * 1000000 + millionths;
  return true;
}
static bool is_text(heddle *h, sym *to) {
  scan_text t;
  if (!scan_string(h->s, &t)) return false;
  if (t.escaped) scan_plain(h->s, &t);
  *to = sym_ofn(h->x->c, t.v, t.n);
  return true;
}
static sym take_text(heddle *h) {
  sym s = {0};
  return is_text(h, &s) ? s : (sym){0};
}
static i64 take_integer(heddle *h) {
  scan_text t;
  i64 v;
  return scan_scalar(h->s, &t) && scan_integer(t, &v) ? v : ABSENT;
}

// "17.2.5": collective, step of the ring, chunk. What is written otherwise says nothing.
static void take_transaction(heddle *h, trace_comm *m) {
  const char *text = sym_str(h->x->c, take_text(h));
  long long of;
  u32 hop, chunk;
  int n = 0;
  if (sscanf(text, "%18lld.%9u.%9u%n", &of, &hop, &chunk, &n) == 3 && !text[n] && of > 0)
    m->of = of, m->hop = hop, m->chunk = chunk;
}

static void take_args(heddle *h, event *e) {
  const struct {
    const char *key;
    i64 *to;
  } numbers[] = {
      {"rank", &e->rank},     {"world", &e->world},           {"data", &e->data},     {"stage", &e->stage},
      {"tensor", &e->tensor}, {"dated", &e->dated},           {"serial", &e->serial}, {"stream", &e->stream},
      {"thread", &e->thread}, {"launch", &e->launch},         {"step", &e->step},     {"chunk", &e->chunk},
      {"match", &e->match},   {"microbatch", &e->microbatch}, {"layer", &e->layer}};
  const struct {
    const char *key;
    i64 *to;
  } of_comm[] = {
      {"seq", &e->comm.seq}, {"in", &e->comm.in}, {"out", &e->comm.out}, {"bytes", &e->comm.bytes}};
  const struct {
    const char *key;
    sym *to;
  } texts[] = {{"name", &e->title},        {"host", &e->host},
               {"node", &e->origin.node},  {"function", &e->origin.func},
               {"task", &e->origin.task},  {"op", &e->comm.op},
               {"group", &e->comm.group},  {"members", &e->comm.members},
               {"type", &e->comm.type},    {"model", &e->ran.model},
               {"plan", &e->ran.plan},     {"machine", &e->ran.machine},
               {"digest", &e->ran.digest}, {"collectives", &e->ran.collectives},
               {"run", &e->ran.run}};
  scan_text key;
  if (!scan_object(h->s)) return;
  while (scan_member(h->s, &key)) {
    bool taken = false;
    for (u32 k = 0; k < COUNT_OF(numbers) && !taken; k++)
      if (scan_eq(key, numbers[k].key)) *numbers[k].to = take_integer(h), taken = true;
    for (u32 k = 0; k < COUNT_OF(of_comm) && !taken; k++)
      if (scan_eq(key, of_comm[k].key)) {
        const i64 v = take_integer(h);
        *of_comm[k].to = MAX(v, -1), taken = true;
      }
    for (u32 k = 0; k < COUNT_OF(texts) && !taken; k++)
      if (scan_eq(key, texts[k].key)) *texts[k].to = take_text(h), taken = true;
    if (taken) continue;
    if (scan_eq(key, "transaction")) {
      take_transaction(h, &e->comm);
      continue;
    }
    e->waited |= scan_eq(key, "waited");
    const bool size = scan_eq(key, "size"), peer = scan_eq(key, "peer");
    if (scan_eq(key, "device")) { // a process's kind of device, or the number of a stream's
      scan_text t;
      if (!scan_scalar(h->s, &t) || scan_integer(t, &e->of)) continue;
      if (t.escaped) scan_plain(h->s, &t);
      e->device = sym_ofn(h->x->c, t.v, t.n);
    } else if (size || peer) {
      const i64 v = take_integer(h);
      if (v >= 0 && v < TRACE_NONE) *(size ? &e->comm.size : &e->comm.peer) = (u32)v;
    } else {
      scan_skip(h->s);
    }
  }
}

static event take_event(heddle *h) {
  event e = {.pid = ABSENT, .tid = 0, .dur_ps = -1};
  i64 *absent[] = {&e.rank,   &e.world,  &e.data,   &e.stage, &e.tensor, &e.dated,      &e.serial, &e.of,
                   &e.stream, &e.thread, &e.launch, &e.step,  &e.chunk,  &e.microbatch, &e.match,  &e.layer};
  for (u32 k = 0; k < COUNT_OF(absent); k++) *absent[k] = ABSENT;
  e.comm = trace_comm_of((sym){0});
  scan_text key, t;
  while (scan_member(h->s, &key)) {
    if (scan_eq(key, "ph"))
      e.ph = scan_string(h->s, &t) && t.n == 1 ? *t.v : '?';
    else if (scan_eq(key, "name"))
      e.has_name = is_text(h, &e.name);
    else if (scan_eq(key, "cat"))
      e.cat = take_text(h);
    else if (scan_eq(key, "ts"))
      e.has_ts = scan_scalar(h->s, &t) && microseconds(t, &e.ts_ps);
    else if (scan_eq(key, "dur")) {
      if (!scan_scalar(h->s, &t) || !microseconds(t, &e.dur_ps)) e.dur_ps = -1;
    } else if (scan_eq(key, "pid"))
      e.pid = take_integer(h);
    else if (scan_eq(key, "tid"))
      e.tid = take_integer(h);
    else if (scan_eq(key, "args"))
      take_args(h, &e);
    else
      scan_skip(h->s);
  }
  return e;
}

// ---- into columns ---------------------------------------------------------------------------------------
static place *place_of(heddle *h, i64 pid) {
  for (u32 k = h->places.n; k-- > 0;)
    if (h->places.v[k].pid == pid) return &h->places.v[k];
  place *p = vec_push(h->tmp, &h->places);
  *p = (place){.pid = pid, .process = h->x->t->processes.n};
  *vec_push(h->x->a, &h->x->t->processes) =
      (trace_process){.rank = pid >= 0 && pid < TRACE_NONE ? (u32)pid : TRACE_NONE, .pid = -1};
  return p;
}

static void take_process(heddle *h, const event *e) {
  place *at = place_of(h, e->pid);
  trace_process *p = &h->x->t->processes.v[at->process];
  if (e->rank != ABSENT) p->rank = e->rank >= 0 && e->rank < TRACE_NONE ? (u32)e->rank : TRACE_NONE;
  if (e->world > 0 && e->world < TRACE_NONE) p->world_size = (u32)e->world;
  p->host = e->host, p->device = e->device, at->dated = e->dated > 0;
  p->serial = e->serial > 0, p->ran = e->ran;
  p->placed = e->data >= 0 && e->stage >= 0 && e->tensor >= 0;
  if (p->placed) p->data = (u32)e->data, p->stage = (u32)e->stage, p->tensor = (u32)e->tensor;
}

static u32 lane_of(heddle *h, const event *e) {
  const u64 key = hash_u64((u64)e->tid, (u64)e->pid + 1);
  for (u32 it = 0, k; hmap_next(&h->by_lane, key, &it, &k);)
    if (h->lanes.v[k].pid == e->pid && h->lanes.v[k].tid == e->tid) return h->lanes.v[k].lane;
  hmap_add(h->tmp, &h->by_lane, key, h->lanes.n);
  *vec_push(h->tmp, &h->lanes) = (file_lane){e->pid, e->tid, h->x->t->lanes.n};
  const u32 process = place_of(h, e->pid)->process;
  *vec_push(h->x->a, &h->x->t->lanes) = (trace_lane){.process = process, .device = true, .id = e->tid};
  return h->x->t->lanes.n - 1;
}

static void take_lane(heddle *h, const event *e) {
  const u32 l = lane_of(h, e);
  trace_lane *lane = &h->x->t->lanes.v[l];
  lane->name = e->title;
  if (e->thread != ABSENT) lane->device = false, lane->of = -1, lane->id = e->thread;
  if (e->stream != ABSENT) lane->of = e->of == ABSENT ? 0 : e->of, lane->id = e->stream;
}

// What a category says. False: it is none of Heddle's.
static bool kind_of(const char *cat, trace_is *is, u8 *flags) {
  static const struct {
    const char *cat;
    u8 flags;
  } kernels[] = {{"communication", TRACE_COMM},
                 {"update", TRACE_UPDATE},
                 {"recompute", TRACE_RECOMPUTE},
                 {"backward", TRACE_BACKWARD},
                 {"forward", TRACE_FORWARD}};
  *is = TRACE_KERNEL, *flags = 0;
  for (u32 k = 0; k < COUNT_OF(kernels); k++)
    if (!strcmp(cat, kernels[k].cat)) return *flags = kernels[k].flags, true;
  for (u32 k = 0; k < TRACE_KINDS; k++)
    if (!strcmp(cat, trace_is_name((trace_is)k))) return *is = (trace_is)k, true;
  return false;
}

static u32 count_of(i64 v) { return v >= 0 && v < TRACE_NONE ? (u32)v : TRACE_NONE; }

static u32 add_event(heddle *h, const event *e, trace_is is, u8 flags, i64 start_ps, i64 dur_ps) {
  reading *x = h->x;
  const u32 n = trace_add(x->a, x->t, is, lane_of(h, e), e->name, start_ps, dur_ps);
  trace *t = x->t;
  trace_origin at = e->origin;
  at.layer = count_of(e->layer) + 1;
  t->flags[n] = flags, t->step[n] = count_of(e->step), t->microbatch[n] = count_of(e->microbatch);
  t->chunk[n] = count_of(e->chunk), t->origin[n] = trace_origin_of(x->a, t, at);
  if (e->match > 0 && e->match < TRACE_NONE) t->match[n] = (u32)e->match;
  if (flags & TRACE_COMM || e->comm.op.i) {
    t->comm[n] = t->comms.n;
    trace_comm *m = vec_push(x->a, &t->comms);
    *m = e->comm;
    if (!m->op.i) m->op = e->name;               // of a simulation: the operator
    if (!e->waited) t->flags[n] |= TRACE_LEAVES; // if its process is serial
  }
  if (e->launch == ABSENT) return n;
  if (is == TRACE_CALL)
    hmap_add(h->tmp, &h->calls, hash_u64((u64)e->launch, 1), n + 1);
  else
    *vec_push(h->tmp, &h->waits) = (launched){n, e->launch};
  return n;
}

static void take_task(heddle *h, const event *e) { // tasks of a lane follow each other
  const u32 lane = lane_of(h, e);
  u32 k = 0;
  while (k < h->open.n && h->open.v[k].lane != lane) k++;
  if (k == h->open.n) *vec_push(h->tmp, &h->open) = (opened){lane, INT64_MIN};
  opened *o = &h->open.v[k];
  if (e->ph == 'E' && o->start_ps > INT64_MIN && wanted(h->x, TRACE_NOTE))
    add_event(h, e, TRACE_NOTE, 0, o->start_ps, MAX(e->ts_ps - o->start_ps, 0));
  o->start_ps = e->ph == 'B' ? e->ts_ps : INT64_MIN;
}

static void put_event(heddle *h, const event *e) {
  reading *x = h->x;
  trace_is is;
  u8 flags;
  if (e->ph == 'M') {
    if (e->pid == ABSENT) return;
    if (!strcmp(sym_str(x->c, e->name), "process_name")) take_process(h, e);
    if (!strcmp(sym_str(x->c, e->name), "thread_name")) take_lane(h, e);
    return;
  }
  if (e->ph == 's' || e->ph == 'f' || e->ph == 'C') return;
  x->about->events += e->ph != 'B';
  const bool task = e->ph == 'B' || e->ph == 'E';
  if (!e->has_ts || e->pid == ABSENT || e->tid == ABSENT || !e->has_name || (e->ph == 'X' && e->dur_ps < 0)) {
    x->about->skipped++;
  } else if (task) {
    take_task(h, e);
  } else if ((e->ph == 'X' || e->ph == 'i') && kind_of(sym_str(x->c, e->cat), &is, &flags)) {
    if (wanted(x, is)) add_event(h, e, is, flags, e->ts_ps, e->ph == 'X' ? e->dur_ps : -1);
  } else {
    x->about->skipped++;
  }
}

static void settle(heddle *h) {
  trace *t = h->x->t;
  for (u32 k = 0; k < h->waits.n; k++) {
    const u32 call = hmap_get(&h->calls, hash_u64((u64)h->waits.v[k].launch, 1));
    if (call) t->cause[h->waits.v[k].event] = call - 1;
  }
  for (u32 e = 0; e < t->n; e++) {
    const bool serial = trace_process_of(t, e)->serial;
    if (TRACE_ON_DEVICE >> t->is[e] & 1 && serial && t->cause[e] == TRACE_NONE) t->cause[e] = e;
    if (!serial) t->flags[e] &= (u8)~TRACE_LEAVES;
  }
  for (u32 k = 0; k < h->places.n; k++)
    if (h->places.v[k].dated && h->base_ns > 0) t->processes.v[h->places.v[k].process].base_ns = h->base_ns;
}

static void take_events(heddle *h) {
  if (!scan_array(h->s)) return;
  while (scan_element(h->s)) {
    if (!scan_object(h->s)) {
      h->x->about->events++, h->x->about->skipped++;
      continue;
    }
    const event e = take_event(h);
    if (scan_is(h->s) == SCAN_OK) put_event(h, &e);
  }
}

bool trace_read_heddle(reading *x) {
  heddle h = {.x = x, .tmp = arena_new()};
  scan_text key;
  bool found = false;
  h.s = scan_new(h.tmp, x->in);
  if (scan_object(h.s))
    while (scan_member(h.s, &key)) {
      if (scan_eq(key, "traceEvents"))
        found = true, take_events(&h);
      else if (scan_eq(key, "baseTimeNanoseconds"))
        h.base_ns = take_integer(&h);
      else
        scan_skip(h.s);
    }
  settle(&h);
  reading_ends(x, h.s, found, "there is no list of events, traceEvents");
  arena_free(h.tmp);
  return found;
}
