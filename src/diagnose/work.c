// work.c - what decides the time of a process: host work between calls, launches, waits, ops and their order.
//
// Idea: of a host's thousands of events only calls that launch or wait matter, and the time between them. That time
// is the host's own, whatever it did; a call that waited for the device gives back what it waited. Which op a stream
// waits for is said by events (cudaStreamWaitEvent). Newer traces have events of synchronisation that tell their streams,
// or what the host waited for. In older ones an op that is launched after such a call waits for what was launched last on every other stream, unless it began before that ended. So does
// an op of a graph, which is launched with others by one call. A process that runs its events itself (trace_process.serial)
// has no calls: each event is one, which launches it and waits for it, but those that went on beside it. These run one after the
// other in the order in which they were begun, and every wait is for the first begun that none was for. What passes from
// the end of what it waited for is its host's time; what passes until a thread that slept has begun is the op's wake_ps.
#include "diagnose/diagnose.h"
#include <stdlib.h>

static bool among(const char *name, const char *const *list, u32 n) {
  for (u32 k = 0; k < n; k++)
    if (!strcmp(name, list[k])) return true;
  return false;
}
static bool is_sync(const char *name) {
  static const char *const sync[] = {"cudaDeviceSynchronize",
                                     "cudaStreamSynchronize",
                                     "cudaEventSynchronize",
                                     "cudaMemcpy",
                                     "cuCtxSynchronize",
                                     "cuStreamSynchronize",
                                     "cuEventSynchronize",
                                     "hipDeviceSynchronize",
                                     "hipStreamSynchronize",
                                     "hipEventSynchronize",
                                     "hipMemcpy",
                                     "hipMemcpyWithStream",
                                     "wait for communication"}; // of Heddle's own runs
  return among(name, sync, COUNT_OF(sync));
}
static bool is_stream_wait(const char *name) {
  static const char *const wait[] = {"cudaStreamWaitEvent", "cuStreamWaitEvent", "hipStreamWaitEvent"};
  return among(name, wait, COUNT_OF(wait));
}

typedef struct {
  u32 event;
  i64 start, end;
} call;
static int by_end(const void *x, const void *y) {
  const call *a = x, *b = y;
  if (a->end != b->end) return a->end < b->end ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}
typedef struct {
  u32 event, call; // call: in the order of calls
  i64 start;
} launched;
static int by_call(const void *x, const void *y) {
  const launched *a = x, *b = y;
  if (a->call != b->call) return a->call < b->call ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}

typedef struct {
  u32 stream, op; // the next op of the stream waits for this one
} told;

typedef struct {
  ctx *c;
  arena *a, *tmp;
  const trace *t;
  u32 process;
  bool serial;
  job_work *w;
  VEC(call) call;
  VEC(launched) op;
  VEC(work_item) item;
  VEC(u32) wait, after;
  u32 *last;      // by stream: op + 1 that was launched last
  bool waited;    // a stream was told to wait for another since the last launch
  VEC(u32) begun; // of a serial process: the last op of every call that began some
  u32 ended;      // so many of them were waited for
  // In recordings with events of synchronisation:
  bool tells;
  u32 *made;      // by event of a call: the wait that it made, + 1
  u32 *awaited;   // by event of a wait: number of the op that it is for, + 1
  VEC(told) told; // and not come to yet
} reader;

static bool on_device(const reader *x, u32 e) {
  return TRACE_ON_DEVICE >> x->t->is[e] & 1 && x->t->lanes.v[x->t->lane[e]].process == x->process;
}

static void collect_calls(reader *x, i64 from, i64 to) {
  const trace *t = x->t;
  bool *launches = ZNEWN(x->tmp, bool, t->n + 1);
  for (u32 e = 0; e < t->n; e++)
    if (on_device(x, e) && t->cause[e] != TRACE_NONE) launches[t->cause[e]] = true;
  for (u32 e = 0; e < t->n; e++) {
    if (t->dur_ps[e] < 0 || t->start_ps[e] < from || t->start_ps[e] >= to) continue;
    if (t->lanes.v[t->lane[e]].process != x->process) continue;
    if (t->is[e] != TRACE_CALL && !launches[e]) continue;
    const char *name = sym_str(x->c, trace_name(t, e));
    if (launches[e] || is_sync(name) || is_stream_wait(name))
      *vec_push(x->tmp, &x->call) = (call){e, t->start_ps[e], t->start_ps[e] + t->dur_ps[e]};
  }
  if (x->call.n) qsort(x->call.v, x->call.n, sizeof *x->call.v, by_end);
}

static void collect_ops(reader *x) {
  const trace *t = x->t;
  u32 *number = ZNEWN(x->tmp, u32, t->n + 1);
  for (u32 k = 0; k < x->call.n; k++) number[x->call.v[k].event] = k + 1;
  for (u32 e = 0; e < t->n; e++) {
    if (!on_device(x, e) || t->dur_ps[e] < 0) continue;
    const u32 by = t->cause[e] == TRACE_NONE ? 0 : number[t->cause[e]];
    if (by)
      *vec_push(x->tmp, &x->op) = (launched){e, by - 1, t->start_ps[e]};
    else
      x->w->unlaunched += t->cause[e] == TRACE_NONE;
  }
  if (x->op.n) qsort(x->op.v, x->op.n, sizeof *x->op.v, by_call);
}

// Waits that the recording has events of, with what they are for.
static void collect_waits(reader *x) {
  const trace *t = x->t;
  u32 *op = ZNEWN(x->tmp, u32, t->n + 1);
  x->made = ZNEWN(x->tmp, u32, t->n + 1), x->awaited = ZNEWN(x->tmp, u32, t->n + 1);
  for (u32 k = 0; k < x->op.n; k++) op[x->op.v[k].event] = k + 1;
  for (u32 e = 0; e < t->n; e++)
    if (t->is[e] == TRACE_WAIT && t->cause[e] != TRACE_NONE && t->lanes.v[t->lane[e]].process == x->process)
      x->made[t->cause[e]] = e + 1, x->tells = true;
  for (u32 i = 0; i < t->edges.n; i++)
    if (t->edges.v[i].after != TRACE_NONE) x->awaited[t->edges.v[i].event] = op[t->edges.v[i].after];
}

static launch_kind kind_of(const trace *t, u32 e) {
  return t->is[e] == TRACE_COPY ? LAUNCH_COPY : t->is[e] == TRACE_FILL ? LAUNCH_FILL : LAUNCH_KERNEL;
}

// What op k waits for on other streams.
static void put_after(reader *x, u32 k) {
  job_work *w = x->w;
  work_op *o = &w->op[k];
  o->first_after = x->after.n;
  for (u32 s = 0; x->waited && s < w->nstreams; s++) {
    if (s == o->stream || !x->last[s]) continue;
    const work_op *p = &w->op[x->last[s] - 1];
    if (p->start_ps + p->dur_ps > o->start_ps) continue; // the trace says that it did not wait
    *vec_push(x->a, &x->after) = x->last[s] - 1;
    w->guessed++;
  }
  x->waited = false;
  u32 left = 0;
  for (u32 i = 0; i < x->told.n; i++) {
    if (x->told.v[i].stream == o->stream)
      *vec_push(x->a, &x->after) = x->told.v[i].op;
    else
      x->told.v[left++] = x->told.v[i];
  }
  x->told.n = left;
}

// A stream was told to wait. Where the recording has such events, a call without one made nothing wait.
static void put_told(reader *x, const call *c, u32 nops, const u32 *number) {
  const u32 wait = x->made[c->event], op = wait ? x->awaited[wait - 1] : 0;
  if (!x->tells)
    x->waited = true;
  else if (op && op <= nops && x->w->op[op - 1].stream != number[x->t->lane[wait - 1]])
    *vec_push(x->tmp, &x->told) = (told){number[x->t->lane[wait - 1]], op - 1};
}

static bool put_wait(reader *x, const call *c, u32 op) {
  const work_op *o = &x->w->op[op];
  *vec_push(x->a, &x->wait) = op;
  return o->start_ps + o->dur_ps > c->start;
}

// The op that a call waits for, its number; 0: that is not known. runs: it is the call itself.
static u32 awaited_by(reader *x, const call *c, bool runs, u32 nops) {
  const u32 wait = x->made[c->event];
  if (runs) return nops;
  if (x->ended < x->begun.n) return x->begun.v[x->ended++] + 1;
  return wait ? x->awaited[wait - 1] : 0;
}

// An item that waits: for what the recording says, a stream or an op, or else for the last op of every stream that had
// ended when the call did. Was it really waiting?
static bool put_waits(reader *x, const call *c, bool runs, u32 nops, const u32 *number) {
  const u32 wait = x->made[c->event], op = awaited_by(x, c, runs, nops);
  const trace_lane *lane = wait ? &x->t->lanes.v[x->t->lane[wait - 1]] : NULL;
  bool waited = false;
  if (op && op <= nops) return put_wait(x, c, op - 1);
  for (u32 s = 0; s < x->w->nstreams; s++) {
    if (lane && lane->id >= 0 && number[x->t->lane[wait - 1]] != s) continue;
    u32 k = x->last[s]; // back to one that had ended
    while (k && x->w->op[k - 1].start_ps + x->w->op[k - 1].dur_ps > c->end) {
      u32 j = k - 1;
      while (j && x->w->op[j - 1].stream != s) j--;
      k = j;
    }
    if (k) waited |= put_wait(x, c, k - 1);
  }
  return waited;
}

// When the op could begin.
static i64 able(const reader *x, const work_op *o) {
  const work_item *it = &x->item.v[o->item];
  const work_op *before = x->last[o->stream] ? &x->w->op[x->last[o->stream] - 1] : NULL;
  const i64 released = it->end_ps - it->early_ps;
  return before ? MAX(released, before->start_ps + before->dur_ps) : released;
}

static void put_op(reader *x, u32 k, const u32 *number) {
  const trace *t = x->t;
  const u32 e = x->op.v[k].event;
  work_op *o = &x->w->op[k];
  *o = (work_op){.item = x->item.n - 1,
                 .stream = number[t->lane[e]],
                 .event = e,
                 .kind = (u8)kind_of(t, e),
                 .comm = t->flags[e] & TRACE_COMM,
                 .leaves = t->flags[e] & TRACE_LEAVES,
                 .name = trace_name(t, e),
                 .start_ps = t->start_ps[e],
                 .dur_ps = t->dur_ps[e]};
  // A long call may launch early and do something else then (load a module): what had begun had been launched.
  work_item *it = &x->item.v[o->item];
  it->early_ps = MIN(MAX(it->early_ps, it->end_ps - o->start_ps), it->host_ps);
  if (t->comm[e] != TRACE_NONE) o->comm = true, o->comm_op = t->comms.v[t->comm[e]].op;
  put_after(x, k);
  if (x->serial) o->wake_ps = MAX(o->start_ps - able(x, o), 0);
  x->last[o->stream] = k + 1;
}

static void put_item(reader *x, i64 start, i64 end, i64 host) {
  *vec_push(x->a, &x->item) =
      (work_item){.start_ps = start, .end_ps = end, .host_ps = MAX(host, 0), .first_wait = x->wait.n};
}

// When the ops that the item waits for had ended: from there on a serial process does something of its own.
static i64 waited_until(const reader *x, const call *c, u32 first) {
  i64 ps = c->start;
  for (u32 j = first; j < x->wait.n; j++) {
    const work_op *o = &x->w->op[x->wait.v[j]];
    ps = MAX(ps, o->start_ps + o->dur_ps);
  }
  return MIN(ps, c->end);
}

// Calls in the order of their ends; what lies between the ends is the host's. A call that launches and then waits for
// what it has launched is two items.
static void put_items(reader *x, const u32 *number) {
  i64 before = x->w->start_ps;
  u32 k = 0;
  for (u32 i = 0; i < x->call.n; i++) {
    const call *c = &x->call.v[i];
    const char *name = sym_str(x->c, trace_name(x->t, c->event));
    const bool launches = k < x->op.n && x->op.v[k].call == i,
               runs = x->serial && x->t->cause[c->event] == c->event, sync = runs || is_sync(name);
    if (is_stream_wait(name)) put_told(x, c, k, number);
    if (launches) {
      const i64 end = sync ? c->start : c->end;
      put_item(x, c->start, end, end - before);
      for (const u32 first = k; k < x->op.n && x->op.v[k].call == i; k++) {
        x->waited |=
            k > first && !x->serial; // a graph: its ops wait for each other, and no event says for which
        put_op(x, k, number);
      }
      if (x->serial && !runs) *vec_push(x->tmp, &x->begun) = k - 1;
      before = MAX(before, end);
    }
    if (sync) {
      const u32 first = x->wait.n;
      const bool waited = put_waits(x, c, runs, k, number);
      put_item(x, c->start, c->end, (waited ? c->start : c->end) - before);
      x->item.v[x->item.n - 1].waited = waited, x->item.v[x->item.n - 1].first_wait = first;
      before = MAX(before, x->serial && waited ? waited_until(x, c, first) : c->end);
    }
  }
}

// By device and number, so that ranks that do the same have the same streams, whichever the file has first.
static u32 *number_streams(reader *x) {
  const trace *t = x->t;
  u32 *number = ZNEWN(x->tmp, u32, t->lanes.n + 1);
  for (u32 l = 0; l < t->lanes.n; l++) {
    const trace_lane *a = &t->lanes.v[l];
    if (!a->device || a->process != x->process) continue;
    x->w->nstreams++;
    for (u32 k = 0; k < t->lanes.n; k++) {
      const trace_lane *b = &t->lanes.v[k];
      if (b->device && b->process == x->process && (b->of != a->of ? b->of < a->of : b->id < a->id))
        number[l]++;
    }
  }
  return number;
}

job_work *job_work_of(ctx *c, arena *a, const trace *t, u32 process, i64 from_ps, i64 to_ps) {
  job_work *w = NEW(a, job_work);
  reader x = {.c = c,
              .a = a,
              .tmp = arena_new(),
              .t = t,
              .w = w,
              .process = process,
              .serial = t->processes.v[process].serial};
  w->serial = x.serial, w->rank = t->processes.v[process].rank, w->base_ns = t->processes.v[process].base_ns;
  collect_calls(&x, from_ps, to_ps);
  collect_ops(&x);
  collect_waits(&x);
  u32 *number = number_streams(&x);
  w->start_ps = from_ps;
  if (from_ps == INT64_MIN) {
    w->start_ps = x.call.n ? x.call.v[0].start : 0;
    for (u32 i = 0; i < x.call.n; i++) w->start_ps = MIN(w->start_ps, x.call.v[i].start);
  }
  w->nops = x.op.n;
  w->op = ZNEWN(a, work_op, w->nops + 1);
  x.last = ZNEWN(x.tmp, u32, w->nstreams + 1);
  put_items(&x, number);
  w->op[w->nops].first_after = x.after.n;
  w->nitems = x.item.n;
  vec_push(a, &x.item)->first_wait = x.wait.n;
  w->item = x.item.v, w->wait = x.wait.v, w->after = x.after.v;
  arena_free(x.tmp);
  return w;
}
