// straggler.c - timelines of pipelined jobs by operation: one event for every operation of every worker and step,
// with "step", "model_chunk", "mb_id" and "seq_id". Not what the operations wait for (diagnose/).
//
// Idea: a JSON array whose elements are read one at a time, so that only the columns stay in memory and a file that was
// cut off is read as far as it goes. The process of an event is its data rank; its thread belongs to one worker, whose
// stage and tensor rank the thread's name says ("PP rank 1, TP rank 0, compute"). Names come last in the file, so
// events are kept until all are known. In the published timelines a communication begins when its last member is
// there; what was recorded before that is not in them.
#include "trace/internal.h"
#include <math.h>
#include <stdlib.h>

enum { THREADS = 5 }; // of a worker: computation, pipeline, tensor, data, other
typedef enum { NONE, NEXT, DATA, TENSOR, ENDS, ALL } over;
static const struct {
  const char *name, *comm;
  u8 is, flags, over;
} rows[] = {
#define OPERATION(id, name, is, flags, comm, over) {name, comm, is, flags, over},
#include "trace/straggler.def"
#undef OPERATION
};

bool trace_knows_straggler(const char *start, size_t n) {
  (void)n;
  return *start == '[' && strstr(start, "\"seq_id\"") && strstr(start, "\"mb_id\"");
}

// ---- elements of the array ------------------------------------------------------------------------------
typedef struct {
  input *in;
  arena *a; // of the buffer
  char *buf;
  size_t cap, at, have;
  bool cut;
} elements;

static bool more(elements *e) { // after what lies from `at` on, which moves to the front
  e->have -= e->at;
  memmove(e->buf, e->buf + e->at, e->have);
  e->at = 0;
  if (e->have == e->cap) {
    char *wider = arena_alloc(e->a, 2 * e->cap);
    memcpy(wider, e->buf, e->have);
    e->buf = wider, e->cap *= 2;
  }
  const size_t got = input_read(e->in, (u8 *)e->buf + e->have, e->cap - e->have);
  e->have += got;
  return got > 0;
}

// The next {..} of the array, in the buffer until the next call. NULL at the end of the array or of the file.
static const char *element(elements *e, size_t *n) {
  while (e->at == e->have || e->buf[e->at] != '{') {
    if (e->at < e->have && e->buf[e->at] == ']') return NULL;
    if (e->at < e->have)
      e->at++;
    else if (!more(e))
      return e->cut = true, NULL;
  }
  u32 depth = 0;
  bool text = false;
  for (size_t k = 0;; k++) {
    if (e->at + k == e->have && !more(e)) return e->cut = true, NULL;
    const char ch = e->buf[e->at + k];
    if (text && ch == '\\') {
      k++;
      if (e->at + k == e->have && !more(e)) return e->cut = true, NULL;
    } else if (ch == '"') {
      text = !text;
    } else if (!text && ch == '{') {
      depth++;
    } else if (!text && ch == '}' && !--depth) {
      const char *start = e->buf + e->at;
      *n = k + 1;
      e->at += *n;
      return start;
    }
  }
}

// ---- events and threads ---------------------------------------------------------------------------------
typedef struct {
  i64 pid, tid;
  bool named;
  u32 stage, tensor, worker;
  sym kind;
} thread;
typedef struct {
  u32 thread, row; // row: TRACE_NONE: not of the table
  sym name;
  i64 start_ps, dur_ps, seq;
  u32 step, microbatch, chunk;
} operation;
typedef struct {
  u32 data, stage, tensor, process;
} worker;
typedef struct {
  reading *x;
  arena *tmp;
  hmap by_thread, by_comm;
  VEC(thread) threads;
  VEC(operation) operations;
  VEC(worker) workers;
  u32 size[3], tensors; // data, stages, tensor as found; tensor ranks of the job, recorded or not
  u32 world_size;
  double base_us; // that times are relative to; 0: they are as in the file
} timeline;

static u32 thread_of(timeline *l, i64 pid, i64 tid) {
  const u64 h = hash_u64((u64)tid, (u64)pid + 1);
  for (u32 it = 0, k; hmap_next(&l->by_thread, h, &it, &k);)
    if (k < l->threads.n && l->threads.v[k].pid == pid && l->threads.v[k].tid == tid) return k;
  hmap_add(l->tmp, &l->by_thread, h, l->threads.n);
  *vec_push(l->tmp, &l->threads) = (thread){.pid = pid, .tid = tid};
  return l->threads.n - 1;
}

static bool whole(const json *j, i64 *out) {
  if (!j || j->kind != JSON_NUM || j->num != floor(j->num) || fabs(j->num) > 1e15) return false;
  *out = (i64)j->num;
  return true;
}
static u32 count_of(const json *j) { // null and below 0: not said
  i64 k;
  return whole(j, &k) && k >= 0 && k < TRACE_NONE ? (u32)k : TRACE_NONE;
}
static bool ps_of(const json *j, double base_us, i64 *ps) { // microseconds, within 23 days of the base
  if (!j || j->kind != JSON_NUM || fabs(j->num - base_us) > 2e12) return false;
  *ps = (i64)llround((j->num - base_us) * 1e6);
  return true;
}

static bool take_name(timeline *l, const json *j, i64 pid, i64 tid) {
  const json *args = json_get(j, "args"), *name = args ? json_get(args, "name") : NULL;
  if (!name || name->kind != JSON_STR) return true;
  unsigned stage, tensor;
  int used = 0;
  if (sscanf(name->str, "PP rank %u, TP rank %u, %n", &stage, &tensor, &used) < 2 || !used) return true;
  if (stage > 1 << 20 || tensor > 1 << 20) return false;
  const u32 k = thread_of(l, pid, tid); // before the array is looked at: it may move
  thread *t = &l->threads.v[k];
  t->named = true, t->stage = stage, t->tensor = tensor;
  t->kind = sym_of(l->x->c, name->str + used);
  return true;
}

static u32 row_of(const char *name) {
  for (u32 k = 0; k < COUNT_OF(rows); k++)
    if (!strcmp(rows[k].name, name)) return k;
  return TRACE_NONE;
}

static bool take(timeline *l, const json *j) { // false: not understood
  if (j->kind != JSON_OBJ) return false;
  const json *ph = json_get(j, "ph"), *name = json_get(j, "name"), *args = json_get(j, "args");
  i64 pid = -1, tid = -1;
  if (!ph || ph->kind != JSON_STR || !name || name->kind != JSON_STR) return false;
  const bool placed =
      whole(json_get(j, "pid"), &pid) && whole(json_get(j, "tid"), &tid) && pid >= 0 && tid >= 0;
  if (!strcmp(ph->str, "M"))
    return !strcmp(name->str, "thread_name") && placed ? take_name(l, j, pid, tid) : true;
  l->x->about->events++;
  operation o = {.name = sym_of(l->x->c, name->str), .row = row_of(name->str), .seq = -1};
  const json *ts = json_get(j, "ts");
  if (!l->operations.n && ts && ts->kind == JSON_NUM && fabs(ts->num) > 1e12 && fabs(ts->num) < 9e15)
    l->base_us = floor(ts->num); // since 1970
  if (strcmp(ph->str, "X") || !placed || pid > 1 << 20 || !args || args->kind != JSON_OBJ ||
      !ps_of(ts, l->base_us, &o.start_ps) || !ps_of(json_get(j, "dur"), 0, &o.dur_ps) || o.dur_ps < 0)
    return false;
  whole(json_get(args, "seq_id"), &o.seq);
  o.step = count_of(json_get(args, "step"));
  o.microbatch = count_of(json_get(args, "mb_id"));
  o.chunk = count_of(json_get(args, "model_chunk"));
  o.thread = thread_of(l, pid, tid);
  *vec_push(l->tmp, &l->operations) = o;
  return true;
}

static void take_all(timeline *l) {
  reading *x = l->x;
  elements e = {.in = x->in, .a = l->tmp, .cap = 1 << 18};
  e.buf = arena_alloc(e.a, e.cap);
  arena *scratch = arena_new();
  size_t n;
  for (const char *text; (text = element(&e, &n));) {
    const arena_mark_t mark = arena_mark(scratch);
    const u32 before = diag_count(x->c);
    const json *j = json_parse(x->c, scratch, x->file, text, n);
    diag_truncate(x->c, before); // what is not JSON is counted, not told one by one
    if (!j || !take(l, j)) x->about->skipped++;
    arena_release(scratch, mark);
  }
  arena_free(scratch);
  x->about->truncated |= e.cut;
}

// ---- workers --------------------------------------------------------------------------------------------
static int by_thread(const void *x, const void *y) {
  const thread *a = *(thread *const *)x, *b = *(thread *const *)y;
  if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
  return a->tid < b->tid ? -1 : a->tid > b->tid;
}

// Without its name a thread belongs to worker tid / THREADS, and those of a data rank are its stages in order.
static void stages_by_order(timeline *l) {
  thread **t = NEWN(l->tmp, thread *, l->threads.n);
  for (u32 k = 0; k < l->threads.n; k++) t[k] = &l->threads.v[k];
  qsort(t, l->threads.n, sizeof *t, by_thread);
  for (u32 k = 0, stage = 0; k < l->threads.n; k++) {
    if (!k || t[k]->pid != t[k - 1]->pid)
      stage = 0;
    else
      stage += t[k]->tid / THREADS != t[k - 1]->tid / THREADS;
    if (!t[k]->named) t[k]->stage = stage;
  }
}

static int by_place(const void *x, const void *y) {
  const worker *a = x, *b = y;
  if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
  if (a->data != b->data) return a->data < b->data ? -1 : 1;
  return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

static u32 worker_at(const timeline *l, u32 data, u32 stage, u32 tensor) {
  const worker key = {.data = data, .stage = stage, .tensor = tensor};
  const worker *w = l->workers.n ? bsearch(&key, l->workers.v, l->workers.n, sizeof key, by_place) : NULL;
  return w ? (u32)(w - l->workers.v) : TRACE_NONE;
}

static void find_workers(timeline *l) {
  if (!l->threads.n) return;
  stages_by_order(l);
  for (u32 k = 0; k < l->threads.n; k++) {
    const thread *t = &l->threads.v[k];
    *vec_push(l->tmp, &l->workers) = (worker){.data = (u32)t->pid, .stage = t->stage, .tensor = t->tensor};
  }
  qsort(l->workers.v, l->workers.n, sizeof *l->workers.v, by_place);
  u32 n = 0;
  for (u32 k = 0; k < l->workers.n; k++) {
    const worker w = l->workers.v[k];
    if (n && !by_place(&l->workers.v[n - 1], &w)) continue;
    l->workers.v[n++] = w;
    l->size[0] = MAX(l->size[0], w.data + 1);
    l->size[1] = MAX(l->size[1], w.stage + 1);
    l->size[2] = MAX(l->size[2], w.tensor + 1);
  }
  l->workers.n = n;
  for (u32 k = 0; k < l->threads.n; k++) {
    thread *t = &l->threads.v[k];
    t->worker = worker_at(l, (u32)t->pid, t->stage, t->tensor);
  }
  l->tensors = l->size[2];
}

// ---- sizes of the job: the file meta-NAME.yaml beside timeline-NAME.json.gz -------------------------------
static u32 setting(const ynode *doc, const char *key) {
  const ynode *y = yaml_get(doc, key);
  return y && y->kind == Y_SCALAR ? (u32)strtoul(y->str, NULL, 10) : 0;
}

static const char *beside(arena *a, const char *path) { // NULL: it has no name that another file could have
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *at = strstr(name, "timeline"), *end = at ? strstr(at, ".json") : NULL;
  if (!end) return NULL;
  if (at - name >= 6 && !strncmp(at - 6, "ideal-", 6)) at -= 6;
  const char *rest = strstr(at, "timeline") + strlen("timeline");
  return arena_printf(a, "%.*smeta%.*s.yaml", (int)(at - path), path, (int)(end - rest), rest);
}

static void take_sizes(timeline *l) {
  static const char *const key[] = {"dp_size", "pp_size"};
  ctx *c = l->x->c;
  const char *path = beside(l->tmp, l->x->path);
  file_view f;
  if (!path || !file_exists(path) || !file_map(c, path, &f)) return;
  const sym file = sym_of(c, path);
  const ynode *doc = yaml_parse(c, l->tmp, file, (const char *)f.data, f.size);
  for (u32 k = 0; doc && doc->kind == Y_MAP && k < COUNT_OF(key); k++) {
    const u32 said = setting(doc, key[k]);
    if (said && said != l->size[k])
      diag(c, W_IGNORED, loc_node(c, file, sym_of(c, key[k]), (sym){0}),
           "%s is %u, but the timeline has %u: that is used", key[k], said, l->size[k]);
  }
  if (doc && doc->kind == Y_MAP) {
    l->tensors = MAX(l->tensors, setting(doc, "tp_size"));
    l->world_size = setting(doc, "world_size");
  }
  file_unmap(&f);
}

// ---- columns --------------------------------------------------------------------------------------------
// Members of the communication in which w takes part, in order of their ranks. One tensor rank of a worker is recorded
// for all: its group is not known.
static void put_group(const timeline *l, const worker *w, over who, trace_comm *m) {
  ctx *c = l->x->c;
  strbuf b = {.a = l->tmp};
  u32 n = 0;
  for (u32 k = 0; k < l->workers.n; k++) {
    const worker *o = &l->workers.v[k];
    const bool same_data = o->data == w->data, same_stage = o->stage == w->stage;
    const bool end = !o->stage || o->stage + 1 == l->size[1];
    if (o->tensor != w->tensor ||
        !(who == ALL || (who == DATA && same_stage) || (who == ENDS && same_data && end)))
      continue;
    sb_fmt(&b, "%s%u", n++ ? "," : "", l->x->t->processes.v[o->process].rank);
  }
  m->size = n;
  if (n) m->members = sym_of(c, sb_str(&b));
  if (who == DATA) m->group = sym_fmt(c, "data ranks of stage %u", w->stage);
  if (who == ENDS) m->group = sym_fmt(c, "first and last stage of data rank %u", w->data);
  if (who == ALL) m->group = sym_of(c, "all");
  if (who == TENSOR) m->group = sym_fmt(c, "tensor ranks of stage %u, data rank %u", w->stage, w->data);
}

static u32 comm_of(timeline *l, const operation *o, const worker *w) {
  const u64 h = hash_u64((u64)(u32)o->seq << 32 | w->process << 4 | o->row, 1); // one to one
  const u32 known = hmap_get(&l->by_comm, h);
  if (known) return known - 1;
  assert(COUNT_OF(rows) <= 16);
  trace *t = l->x->t;
  trace_comm m = {.op = sym_of(l->x->c, rows[o->row].comm),
                  .peer = TRACE_NONE,
                  .seq = o->seq,
                  .in = -1,
                  .out = -1,
                  .bytes = -1};
  if (rows[o->row].over == NEXT) {
    const bool up = !(rows[o->row].flags & TRACE_BACKWARD) == !strcmp(rows[o->row].comm, "send");
    const u32 to = worker_at(l, w->data, (w->stage + (up ? 1 : l->size[1] - 1)) % l->size[1], w->tensor);
    if (to != TRACE_NONE) m.peer = t->processes.v[l->workers.v[to].process].rank;
    m.size = 2;
  } else {
    put_group(l, w, rows[o->row].over, &m);
  }
  *vec_push(l->x->a, &t->comms) = m;
  hmap_add(l->tmp, &l->by_comm, h, t->comms.n);
  return t->comms.n - 1;
}

static void put_processes(timeline *l) {
  trace *t = l->x->t;
  for (u32 k = 0; k < l->workers.n; k++) {
    worker *w = &l->workers.v[k];
    w->process = t->processes.n;
    *vec_push(l->x->a, &t->processes) =
        (trace_process){.rank = (w->stage * l->size[0] + w->data) * l->tensors + w->tensor,
                        .world_size = l->world_size,
                        .pid = w->data,
                        .base_ns = (i64)l->base_us * 1000,
                        .placed = true,
                        .data = w->data,
                        .stage = w->stage,
                        .tensor = w->tensor};
  }
}

bool trace_read_straggler(reading *x) {
  timeline l = {.x = x, .tmp = arena_new()};
  take_all(&l);
  find_workers(&l);
  take_sizes(&l);
  put_processes(&l);
  u32 *lane = NEWN(l.tmp, u32, l.threads.n + 1);
  for (u32 k = 0; k < l.threads.n; k++) lane[k] = TRACE_NONE;
  for (u32 k = 0; k < l.operations.n; k++) {
    const operation *o = &l.operations.v[k];
    const thread *th = &l.threads.v[o->thread];
    const worker *w = &l.workers.v[th->worker];
    const bool known = o->row != TRACE_NONE;
    const trace_is is = known ? (trace_is)rows[o->row].is : TRACE_OTHER;
    if (!wanted(x, is)) continue;
    if (lane[o->thread] == TRACE_NONE) {
      lane[o->thread] = trace_lane_of(x->a, x->t, w->process, true, 0, th->tid);
      x->t->lanes.v[lane[o->thread]].name = th->kind;
    }
    const u32 e = trace_add(x->a, x->t, is, lane[o->thread], o->name, o->start_ps, o->dur_ps);
    x->t->step[e] = o->step, x->t->microbatch[e] = o->microbatch, x->t->chunk[e] = o->chunk;
    x->t->flags[e] = known ? rows[o->row].flags : 0;
    if (known && rows[o->row].over != NONE) x->t->comm[e] = comm_of(&l, o, w);
  }
  const bool any = l.operations.n > 0;
  if (!any)
    diag(x->c, E_TRACE, loc_node(x->c, x->file, (sym){0}, (sym){0}),
         "the timeline has no operation that can be read");
  arena_free(l.tmp);
  return any;
}
