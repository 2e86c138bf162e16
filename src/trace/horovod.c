// horovod.c - Horovod's timeline: what the coordinator knows of every tensor, from its negotiation to its end.
//
// The file is an array that is never closed. A "process" is a tensor; what is done with it nests: B and E events. While
// it is negotiated every rank that is ready ticks: an event whose name is the rank.
//
// Idea: one lane for a tensor. Negotiation and operation are operators with their phases inside; a tick is a note.
#include "trace/scan.h"
#include <stdlib.h>

enum { DEPTH = 16 };
typedef struct {
  i64 pid;
  sym name;
  u32 depth, open[DEPTH]; // events that have begun
} tensor;
typedef struct {
  reading *x;
  scan *s;
  arena *tmp;
  u32 process;
  VEC(tensor) tensor;
} horovod;
typedef struct {
  char ph;
  bool has_ts;
  i64 pid, ts_ps, dur_ps, epoch_us; // dur_ps: -1: not said
  sym name, tensor;
} event;

bool trace_knows_horovod(const char *start, size_t n) {
  (void)n;
  const char *p = start + strspn(start, " \t\r\n");
  if (*p != '[' || strstr(start, "\"traceEvents\"")) return false;
  return strstr(start, "NEGOTIATE_") || strstr(start, "CYCLE_START") || strstr(start, "HorovodAllreduce");
}

static bool microseconds(scan_text t, i64 *ps) {
  i64 whole;
  u32 millionths;
  if (!scan_decimal(t, &whole, &millionths) || whole > INT64_MAX / 4000000 || whole < INT64_MIN / 4000000)
    return false;
  *ps = whole * 1000000 + millionths;
  return true;
}
static sym take_name(horovod *h) {
  scan_text t;
  if (!scan_string(h->s, &t)) return (sym){0};
  if (t.escaped) scan_plain(h->s, &t);
  return sym_ofn(h->x->c, t.v, t.n);
}
static void take_args(horovod *h, event *e) {
  scan_text key, t;
  if (!scan_object(h->s)) return;
  while (scan_member(h->s, &key)) {
    if (scan_eq(key, "name"))
      e->tensor = take_name(h);
    else if (scan_eq(key, "start_time_since_epoch_in_micros")) {
      if (scan_scalar(h->s, &t)) scan_integer(t, &e->epoch_us);
    } else
      scan_skip(h->s);
  }
}
static event take_event(horovod *h) {
  event e = {.pid = -1, .dur_ps = -1};
  scan_text key, t;
  while (scan_member(h->s, &key)) {
    if (scan_eq(key, "ph"))
      e.ph = scan_string(h->s, &t) && t.n == 1 ? *t.v : 0;
    else if (scan_eq(key, "name"))
      e.name = take_name(h);
    else if (scan_eq(key, "ts"))
      e.has_ts = scan_scalar(h->s, &t) && microseconds(t, &e.ts_ps);
    else if (scan_eq(key, "dur")) {
      if (!scan_scalar(h->s, &t) || !microseconds(t, &e.dur_ps)) e.dur_ps = -1;
    } else if (scan_eq(key, "pid")) {
      if (scan_scalar(h->s, &t)) scan_integer(t, &e.pid);
    } else if (scan_eq(key, "args"))
      take_args(h, &e);
    else
      scan_skip(h->s);
  }
  return e;
}

static tensor *tensor_of(horovod *h, i64 pid) {
  for (u32 k = h->tensor.n; k-- > 0;)
    if (h->tensor.v[k].pid == pid) return &h->tensor.v[k];
  tensor *t = vec_push(h->tmp, &h->tensor);
  *t = (tensor){.pid = pid};
  return t;
}

// The operation that a phase of that name is: "ALLREDUCE", "NEGOTIATE_ALLGATHER"; NULL: none.
static const char *op_of(const char *name) {
  static const struct {
    const char *theirs, *op;
  } ops[] = {{"ALLREDUCE", "all_reduce"}, {"ADASUM", "all_reduce"},   {"ALLGATHER", "all_gather"},
             {"BROADCAST", "broadcast"},  {"ALLTOALL", "all_to_all"}, {"REDUCESCATTER", "reduce_scatter"}};
  for (size_t k = 0; k < COUNT_OF(ops); k++)
    if (!strcmp(name, ops[k].theirs)) return ops[k].op;
  return NULL;
}

static u32 lane_of(horovod *h, tensor *t, sym called) {
  const u32 lane = trace_lane_of(h->x->a, h->x->t, h->process, false, -1, t->pid);
  if (called.i) t->name = called;
  h->x->t->lanes.v[lane].name = t->name;
  return lane;
}

static u32 put(horovod *h, tensor *t, trace_is is, sym name, i64 start, i64 dur) {
  reading *x = h->x;
  const u32 e = trace_add(x->a, x->t, is, lane_of(h, t, (sym){0}), name, start, dur);
  const char *op = op_of(sym_str(x->c, name));
  if (!op) return e;
  x->t->flags[e] |= TRACE_COMM, x->t->comm[e] = x->t->comms.n;
  *vec_push(x->a, &x->t->comms) =
      (trace_comm){.op = sym_of(x->c, op), .peer = TRACE_NONE, .seq = -1, .in = -1, .out = -1, .bytes = -1};
  return e;
}

static void put_event(horovod *h, const event *e) {
  reading *x = h->x;
  x->about->events++;
  if (e->ph == 'M') {
    if (e->tensor.i && e->pid >= 0) lane_of(h, tensor_of(h, e->pid), e->tensor);
    if (e->epoch_us > 0 && e->epoch_us < INT64_MAX / 1000)
      x->t->processes.v[h->process].base_ns = e->epoch_us * 1000;
    return;
  }
  if (!e->has_ts || !e->ph) {
    x->about->skipped++;
    return;
  }
  tensor *t = tensor_of(h, e->pid);
  if (e->ph == 'B' && wanted(x, TRACE_OP)) {
    const u32 k = put(h, t, TRACE_OP, e->name, e->ts_ps, -1);
    if (t->depth < DEPTH) t->open[t->depth++] = k;
  } else if (e->ph == 'E' && t->depth) {
    const u32 k = t->open[--t->depth];
    x->t->dur_ps[k] = MAX(e->ts_ps - x->t->start_ps[k], 0);
  } else if (e->ph == 'X' || e->ph == 'i') {
    const bool tick = e->ph == 'i' || (e->dur_ps <= 0 && e->name.i);
    const trace_is is = tick ? TRACE_NOTE : TRACE_OP;
    if (wanted(x, is)) put(h, t, is, e->name, e->ts_ps, MAX(e->dur_ps, 0));
  } else if (e->ph != 'E' || wanted(x, TRACE_OP)) {
    x->about->skipped++;
  }
}

bool trace_read_horovod(reading *x) {
  horovod h = {.x = x, .tmp = arena_new(), .process = x->t->processes.n};
  h.s = scan_new(h.tmp, x->in);
  *vec_push(x->a, &x->t->processes) = (trace_process){.rank = x->rank, .pid = -1};
  scan_mark(h.s);
  const bool array = scan_array(h.s);
  while (array && scan_element(h.s)) {
    if (!scan_object(h.s)) {
      x->about->events++, x->about->skipped++;
      continue;
    }
    const event e = take_event(&h);
    if (scan_is(h.s) == SCAN_OK) put_event(&h, &e);
  }
  const loc at = loc_node(x->c, x->file, (sym){0}, (sym){0});
  if (scan_is(h.s) == SCAN_BAD)
    diag(x->c, W_IGNORED, at, "not JSON at byte %llu: what comes then is left out",
         (unsigned long long)scan_offset(h.s));
  if (!array) diag(x->c, E_TRACE, at, "a timeline of Horovod is an array of events");
  arena_free(h.tmp);
  return array;
}
