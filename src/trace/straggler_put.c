// straggler_put.c - event columns from the operations of a pipelined job: its workers, their places and communications.
// Not the files (straggler.c, straggler_table.c).
//
// Idea: the process of an event is its data rank; its thread belongs to one worker, whose stage and tensor rank are said
// or follow from the order of threads. What the job's other ranks are is in a file beside the timeline, if there is one.
#include "trace/straggler.h"
#include <stdlib.h>

const operation_row operation_rows[OPERATIONS] = {
#define OPERATION(id, name, is, flags, comm, over) {name, comm, is, flags, over},
#include "trace/straggler.def"
#undef OPERATION
};

u32 straggler_thread(timeline *l, i64 pid, i64 tid) {
  const u64 h = hash_u64((u64)tid, (u64)pid + 1);
  for (u32 it = 0, k; hmap_next(&l->by_thread, h, &it, &k);)
    if (k < l->threads.n && l->threads.v[k].pid == pid && l->threads.v[k].tid == tid) return k;
  hmap_add(l->tmp, &l->by_thread, h, l->threads.n);
  *vec_push(l->tmp, &l->threads) = (thread){.pid = pid, .tid = tid, .rank = TRACE_NONE};
  return l->threads.n - 1;
}

u32 straggler_row(const char *name) {
  for (u32 k = 0; k < OPERATIONS; k++)
    if (!strcmp(operation_rows[k].name, name)) return k;
  return TRACE_NONE;
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
    *vec_push(l->tmp, &l->workers) =
        (worker){.data = (u32)t->pid, .stage = t->stage, .tensor = t->tensor, .rank = t->rank};
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

// ---- sizes of the job: the file meta-NAME.yaml beside timeline-NAME.json.gz or trace-NAME.parquet -------------------------------
static u32 setting(const ynode *doc, const char *key) {
  const ynode *y = yaml_get(doc, key);
  return y && y->kind == Y_SCALAR ? (u32)strtoul(y->str, NULL, 10) : 0;
}

static const char *beside(arena *a, const char *path) { // NULL: it has no name that another file could have
  static const struct { const char *word, *end; } names[] = {{"timeline", ".json"}, {"trace", ".parquet"}};
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  for (u32 k = 0; k < COUNT_OF(names); k++) {
    const char *at = strstr(name, names[k].word), *end = at ? strstr(at, names[k].end) : NULL;
    if (!end) continue;
    const char *rest = at + strlen(names[k].word);
    if (at - name >= 6 && !strncmp(at - 6, "ideal-", 6)) at -= 6;
    return arena_printf(a, "%.*smeta%.*s.yaml", (int)(at - path), path, (int)(end - rest), rest);
  }
  return NULL;
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
  assert(OPERATIONS <= 16);
  trace *t = l->x->t;
  trace_comm m = {.op = sym_of(l->x->c, operation_rows[o->row].comm),
                  .peer = TRACE_NONE,
                  .seq = o->seq,
                  .in = -1,
                  .out = -1,
                  .bytes = -1};
  if (operation_rows[o->row].over == NEXT) {
    const bool up =
        !(operation_rows[o->row].flags & TRACE_BACKWARD) == !strcmp(operation_rows[o->row].comm, "send");
    const u32 to = worker_at(l, w->data, (w->stage + (up ? 1 : l->size[1] - 1)) % l->size[1], w->tensor);
    if (to != TRACE_NONE) m.peer = t->processes.v[l->workers.v[to].process].rank;
    m.size = 2;
  } else {
    put_group(l, w, operation_rows[o->row].over, &m);
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
    *vec_push(l->x->a, &t->processes) = (trace_process){
        .rank = w->rank != TRACE_NONE ? w->rank : (w->stage * l->size[0] + w->data) * l->tensors + w->tensor,
        .world_size = l->world_size,
        .pid = w->data,
        .base_ns = (i64)l->base_us * 1000,
        .placed = true,
        .data = w->data,
        .stage = w->stage,
        .tensor = w->tensor};
  }
}

bool straggler_put(timeline *l) {
  reading *x = l->x;
  find_workers(l);
  take_sizes(l);
  put_processes(l);
  u32 *lane = NEWN(l->tmp, u32, l->threads.n + 1);
  for (u32 k = 0; k < l->threads.n; k++) lane[k] = TRACE_NONE;
  for (u32 k = 0; k < l->operations.n; k++) {
    const operation *o = &l->operations.v[k];
    const thread *th = &l->threads.v[o->thread];
    const worker *w = &l->workers.v[th->worker];
    const bool known = o->row != TRACE_NONE;
    const trace_is is = known ? (trace_is)operation_rows[o->row].is : TRACE_OTHER;
    if (!wanted(x, is)) continue;
    if (lane[o->thread] == TRACE_NONE) {
      lane[o->thread] = trace_lane_of(x->a, x->t, w->process, true, 0, th->tid);
      x->t->lanes.v[lane[o->thread]].name = th->kind;
    }
    const u32 e = trace_add(x->a, x->t, is, lane[o->thread], o->name, o->start_ps, o->dur_ps);
    x->t->step[e] = o->step, x->t->microbatch[e] = o->microbatch, x->t->chunk[e] = o->chunk;
    x->t->flags[e] = known ? operation_rows[o->row].flags : 0;
    if (known && operation_rows[o->row].over != NONE) x->t->comm[e] = comm_of(l, o, w);
  }
  const bool any = l->operations.n > 0;
  if (!any)
    diag(x->c, E_TRACE, loc_node(x->c, x->file, (sym){0}, (sym){0}),
         "the timeline has no operation that can be read");
  return any;
}
