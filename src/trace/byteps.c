// byteps.c - BytePS: what a worker recorded of its tensors (comm.json, BYTEPS_TRACE_ON) and a server of the requests
// that it answered (server_profile.json, BYTEPS_SERVER_ENABLE_PROFILE).
//
// A worker cuts a tensor into partitions, each with a key, and each goes through queues: reduced among the GPUs of the
// worker, copied to the host, pushed to a server, pulled back, copied to the device, broadcast. In comm.json a process
// is a tensor, "Comm.byteps.gradient_0"; a thread is a key, or "total" for the whole way of the tensor.
//
// Idea: a queue is a lane, since partitions overlap in it; what moves data is a communication of its tensor and key. A
// server has no rank, so peers are not said.
#include "trace/chrome.h"

typedef enum { HOST, COPIES, COMMUNICATES } queue_kind;
static const struct {
  const char *name; // in the order of BytePS's QueueType
  const char *op;
  queue_kind kind;
} queues[] = {
    {"COORDINATE_REDUCE", NULL, HOST},
    {"REDUCE", "reduce", COMMUNICATES},
    {"COPYD2H", NULL, COPIES},
    {"PCIE_REDUCE", NULL, HOST},
    {"COORDINATE_PUSH", NULL, HOST},
    {"COMPRESS", NULL, HOST},
    {"PUSH", "send", COMMUNICATES},
    {"PULL", "recv", COMMUNICATES},
    {"DECOMPRESS", NULL, HOST},
    {"COPYH2D", NULL, COPIES},
    {"COORDINATE_BROADCAST", NULL, HOST},
    {"BROADCAST", "broadcast", COMMUNICATES},
};

bool trace_knows_byteps(const char *start, size_t n) {
  (void)n;
  const char *p = start + strspn(start, " \t\r\n");
  if (*p != '{' && *p != '[') return false;
  if (chrome_start_has(p, "\"pid\"", "Comm.", true)) return true;
  return *p == '[' && !strstr(p, "\"args\"") &&
         (chrome_start_has(p, "\"name\"", "push-", true) || chrome_start_has(p, "\"name\"", "pull-", true));
}

// The queue that the last word of a name says; COUNT_OF(queues): none.
static u32 queue_of(const char *name) {
  const char *word = strrchr(name, '.');
  u32 q = 0;
  while (q < COUNT_OF(queues) && (!word || strcmp(word + 1, queues[q].name))) q++;
  return q;
}

static void put_comm(chrome *k, const chrome_event *e, u32 n, const char *op) {
  reading *x = k->x;
  const chrome_track *t = &k->tracks.v[e->track];
  trace_comm m = trace_comm_of(sym_of(x->c, op));
  m.group = sym_fmt(x->c, "%s key %s", sym_str(x->c, t->pid), sym_str(x->c, t->tid));
  trace_add_comm(x->a, x->t, n, m);
}

static void put_event(chrome *k, const chrome_event *e, u32 process) {
  enum { TOTALS = -1 };
  reading *x = k->x;
  const chrome_track *t = &k->tracks.v[e->track];
  const u32 q = queue_of(sym_str(x->c, e->name));
  i64 key;
  if (q < COUNT_OF(queues)) {
    const queue_kind kind = queues[q].kind;
    const trace_is is = kind == HOST ? TRACE_OP : kind == COPIES ? TRACE_COPY : TRACE_KERNEL;
    const u32 n = chrome_put(k, e, is, process, kind != HOST, kind == HOST ? -1 : 0, q);
    if (n == TRACE_NONE) return;
    x->t->lanes.v[x->t->lane[n]].name = sym_of(x->c, queues[q].name);
    if (kind == COMMUNICATES) put_comm(k, e, n, queues[q].op);
  } else if (chrome_number(sym_str(x->c, t->tid), &key) && chrome_number(sym_str(x->c, t->pid), &key)) {
    chrome_put(k, e, TRACE_OP, process, false, -1, key); // a request, of a server
  } else {
    chrome_put(k, e, TRACE_NOTE, process, false, -1, TOTALS);
  }
}

bool trace_read_byteps(reading *x) {
  chrome k = {.x = x, .tmp = arena_new()};
  const u32 process = x->t->processes.n;
  const bool ok = chrome_read(&k);
  if (ok)
    *vec_push(x->a, &x->t->processes) =
        (trace_process){.rank = x->rank != TRACE_NONE ? x->rank : trace_rank_in_name(x->path, RANK_FOLDER),
                        .pid = -1,
                        .base_ns = k.base_ns};
  for (u32 i = 0; ok && i < k.events.n; i++) put_event(&k, &k.events.v[i], process);
  arena_free(k.tmp);
  return ok;
}
