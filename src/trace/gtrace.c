// gtrace.c - what dPRO makes of the traces of all workers (bps_trace_final.json, its "gTrace"), and the parts of it: a
// worker's own file, the messages of NCCL (comm_detail.json) and of BytePS (comm_timeline.json, bps_comm_aligned.json).
//
// Names: "Comm.3+4.SEND" is an operation of the tensors 3 and 4, which were fused; "FW.", "BW.", "UPDATE_", "I/O" and
// "OUTPUT" are operators. args.name has the process before "->" and, behind "~>", which part it is: loop, channel,
// chunk and slice of NCCL's ring. Processes are "host0.rank0", a worker's GPU by its number on its host, or
// "worker_0::server_1", messages from one to the other.
//
// Idea: a process of the file is one here, a thread is a lane. The group of a communication is its tensor, of a message
// also its part and, unless its other end is known, who has this one. Which rank is the next of a ring is not in these files: of
// two workers it is the other, else NCCL's graph says it (gtrace_ring.c).
#include "trace/gtrace.h"
#include <ctype.h>
#include <stdlib.h>

typedef struct {
  sym name, host;
  i64 local;   // number of the GPU on its host; -1: no worker
  i64 rank;    // said by the file; -1: not
  u32 process; // of the trace
  u32 lanes;   // so far
} member;
typedef struct {
  chrome k;
  i64 part[4]; // of the event that is read: loop, channel, chunk, slice
  u64 part_of; // which event
  VEC(member) members;
  hmap by_name;
  u32 *member, *lane; // of every track
  member *pair[2];    // the workers, if there are two
  gtrace_rings rings;
  u32 workers;
  const char *sizes; // where the list of tensors would be
  VEC(gtrace_message) messages;
} gtrace;

bool trace_knows_gtrace(const char *start, size_t n) {
  (void)n;
  const char *p = start + strspn(start, " \t\r\n");
  if (*p != '[' && *p != '{') return false;
  return chrome_start_has(p, "\"pid\"", ".rank", false) || chrome_start_has(p, "\"pid\"", "::", false) ||
         chrome_start_has(p, "\"pid\"", "comm_detail_r", true) ||
         (*p == '[' && (chrome_start_has(p, "\"name\"", " -> server_", false) ||
                        chrome_start_has(p, "\"name\"", " -> worker_", false)));
}

static bool take_arg(chrome *k, chrome_event *e, scan_text key) {
  static const char *const ids[] = {"loopId", "channelId", "chunkId", "sliceId"};
  gtrace *g = (gtrace *)k;
  i64 n;
  if (scan_eq(key, "cnt")) {
    if (chrome_number(sym_str(k->x->c, chrome_text(k)), &n) && n >= 0 && n < INT64_MAX) e->number = n + 1;
    return true;
  }
  for (u32 i = 0; i < COUNT_OF(ids); i++) {
    if (!scan_eq(key, ids[i])) continue;
    if (g->part_of != k->x->about->events + 1) g->part[0] = g->part[1] = g->part[2] = g->part[3] = -1;
    g->part_of = k->x->about->events + 1;
    if (!chrome_number(sym_str(k->x->c, chrome_text(k)), &g->part[i])) g->part[i] = -1;
    if (g->part[0] >= 0 && g->part[1] >= 0 && g->part[2] >= 0 && g->part[3] >= 0)
      e->extra = sym_fmt(k->x->c, "%lld_%lld_%lld_%lld", (long long)g->part[0], (long long)g->part[1],
                         (long long)g->part[2], (long long)g->part[3]);
    return true;
  }
  return false;
}

// ---- who ----------------------------------------------------------------------------------------------------
static member member_of(ctx *c, sym name) {
  const char *s = sym_str(c, name), *dot = NULL;
  member m = {.name = name, .host = name, .local = -1, .rank = -1};
  for (const char *p = s; (p = strstr(p, ".rank")); p++) dot = p;
  i64 n;
  if (dot && chrome_number(dot + 5, &n) && n >= 0 && n < 1 << 20)
    m.host = sym_ofn(c, s, (size_t)(dot - s)), m.local = n;
  else if (chrome_number_after(s, "comm_detail_r", &n) && n < 1 << 20)
    m.host = (sym){0}, m.local = m.rank = n;
  return m;
}

static void find_members(gtrace *g) {
  chrome *k = &g->k;
  g->member = NEWN(k->tmp, u32, k->tracks.n + 1), g->lane = NEWN(k->tmp, u32, k->tracks.n + 1);
  bool *used = ZNEWN(k->tmp, bool, k->tracks.n + 1); // not those that only metadata name
  for (u32 i = 0; i < k->events.n; i++) used[k->events.v[i].track] = true;
  for (u32 i = 0; i < k->tracks.n; i++) {
    const chrome_track *t = &k->tracks.v[i];
    const sym name = t->process.i ? t->process : t->pid;
    if (!used[i]) continue;
    const u64 h = hash_u64(name.i, 5);
    u32 at = hmap_get(&g->by_name, h);
    if (!at) {
      *vec_push(k->tmp, &g->members) = member_of(k->x->c, name);
      hmap_add(k->tmp, &g->by_name, h, at = g->members.n);
    }
    assert(g->members.v);
    g->member[i] = at - 1, g->lane[i] = g->members.v[at - 1].lanes++;
  }
}

typedef struct {
  const char *host;
  size_t words; // before its number
  unsigned long long number;
  member *m;
} worker;

// host2 is before host10.
static int by_place(const void *x, const void *y) {
  const worker *a = x, *b = y;
  const int words = a->words == b->words ? memcmp(a->host, b->host, a->words) : strcmp(a->host, b->host);
  if (words) return words;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  const int names = strcmp(a->host, b->host);
  if (names) return names;
  return a->m->local < b->m->local ? -1 : a->m->local > b->m->local;
}

static u32 find_workers(gtrace *g, worker *w) {
  u32 n = 0;
  for (u32 i = 0; i < g->members.n; i++) {
    member *m = &g->members.v[i];
    if (m->local < 0) continue;
    const char *host = sym_str(g->k.x->c, m->host);
    size_t words = strlen(host);
    while (words && isdigit((unsigned char)host[words - 1])) words--;
    w[n++] = (worker){host, words, strtoull(host + words, NULL, 10), m};
  }
  if (n) qsort(w, n, sizeof *w, by_place);
  return n;
}

// What dPRO has of a worker beside its traces: in the folder of its own file, and in HOST/NUMBER beside the file of all.
static const char *beside(const gtrace *g, const member *m, u32 workers, const char *file) {
  const char *path = g->k.x->path, *slash = strrchr(path, '/');
  const int n = slash ? (int)(slash - path) + 1 : 0;
  if (workers == 1) return arena_printf(g->k.tmp, "%.*s%s", n, path, file);
  return arena_printf(g->k.tmp, "%.*s%s/%lld/%s", n, path, sym_str(g->k.x->c, m->host), (long long)m->local,
                      file);
}

// NCCL's graphs say ranks, too; two graphs of one rank are of different jobs.
static bool find_rings(gtrace *g, const worker *w, u32 workers) {
  reading *x = g->k.x;
  bool *taken = ZNEWN(g->k.tmp, bool, workers + 1);
  u32 known = 0, *of = NEWN(g->k.tmp, u32, workers + 1);
  for (u32 i = 0; i < workers; i++) {
    member *m = w[i].m;
    const char *path = beside(g, m, workers, "nccl_rank_graph.json");
    u32 rank;
    if (!gtrace_rings_add(x, g->k.tmp, path, &g->rings, &rank)) return false;
    if (rank == TRACE_NONE) continue;
    const bool odd = workers > 1 ? rank >= workers || taken[rank] : m->rank >= 0 && m->rank != (i64)rank;
    if (odd) {
      diag(x->c, W_TRACE_ODD, loc_text(x->c, sym_of(x->c, path), 0, 0, NULL),
           "it is the graph of rank %u, which is not the rank of its worker: messages are not tied by it",
           rank);
      known = 0;
      break;
    }
    if (workers > 1) taken[rank] = true;
    of[i] = rank, known++;
  }
  for (u32 i = 0; i < workers && known == workers; i++) w[i].m->rank = of[i]; // all, or none
  if (known < workers) g->rings.hops.n = 0;
  return true;
}

// Workers have ranks in the order of their hosts and of the GPUs on them, which is how dPRO and Horovod number them, unless
// NCCL's graphs say others.
static bool put_processes(gtrace *g) {
  reading *x = g->k.x;
  worker *w = NEWN(g->k.tmp, worker, g->members.n + 1);
  const u32 workers = find_workers(g, w);
  if (!find_rings(g, w, workers)) return false;
  g->workers = workers;
  if (workers > 1) g->sizes = beside(g, w[0].m, workers, "gradient_name_list.json");
  for (u32 i = 0; i < workers && workers == 2; i++) g->pair[i] = w[i].m;
  for (u32 i = 0; i < workers; i++) {
    member *m = w[i].m;
    if (m->rank < 0) m->rank = workers > 1 ? (i64)i : x->rank != TRACE_NONE ? (i64)x->rank : m->local;
  }
  for (u32 i = 0; i < g->members.n; i++) {
    member *m = &g->members.v[i];
    m->process = x->t->processes.n;
    *vec_push(x->a, &x->t->processes) =
        (trace_process){.rank = m->rank >= 0 ? (u32)m->rank : TRACE_NONE,
                        .world_size = workers > 1 && m->local >= 0 ? workers : 0,
                        .pid = -1,
                        .host = m->host,
                        .base_ns = g->k.base_ns};
  }
  if (!g->members.n) *vec_push(x->a, &x->t->processes) = (trace_process){.rank = x->rank, .pid = -1};
  return true;
}

// ---- what ---------------------------------------------------------------------------------------------------
static const struct {
  const char *word; // the last of a name
  const char *op;   // NULL: no communication
  trace_is is;
  bool message; // of one that has another end: what it is, from a worker and from a server
  gtrace_what request, answer;
} words[] = {
    {"SEND", "send", TRACE_KERNEL, true, GTRACE_SEND, GTRACE_SEND},
    {"RECV", "recv", TRACE_KERNEL, true, GTRACE_RECV, GTRACE_RECV},
    {"PUSH", "send", TRACE_KERNEL, true, GTRACE_PUSH, GTRACE_PUSHED},
    {"PULL", "send", TRACE_KERNEL, true, GTRACE_PULL, GTRACE_PULLED},
    {"PUSH_REQ", "send", TRACE_KERNEL, true, GTRACE_PUSH, GTRACE_PUSH},
    {"PUSH_RES", "send", TRACE_KERNEL, true, GTRACE_PUSHED, GTRACE_PUSHED},
    {"PULL_REQ", "send", TRACE_KERNEL, true, GTRACE_PULL, GTRACE_PULL},
    {"PULL_RES", "send", TRACE_KERNEL, true, GTRACE_PULLED, GTRACE_PULLED},
    {"NCCL_ALLREDUCE", "all_reduce", TRACE_KERNEL, .message = false},
    {"MEMCPY_IN_FUSION_BUFFER", NULL, TRACE_COPY, .message = false},
    {"MEMCPY_OUT_FUSION_BUFFER", NULL, TRACE_COPY, .message = false},
};
static const struct {
  const char *start;
  u8 flags;
} operators[] = {{"FW", 0}, {"BW", TRACE_BACKWARD}, {"UPDATE", TRACE_UPDATE}, {"OUTPUT", 0}};

// Without the process before it and the part behind it.
static scan_text plain_name(const char *s) {
  const char *arrow = strstr(s, "->"), *tilde;
  if (arrow) s = arrow + 2;
  tilde = strstr(s, "~>");
  return (scan_text){s, (u32)(tilde ? (size_t)(tilde - s) : strlen(s)), false};
}

// "worker_0 -> server_1" or "worker_0::server_1".
static bool ends_of(ctx *c, const char *name, sym *from, sym *to) {
  const char *at = strstr(name, " -> "), *mark = at ? " -> " : "::";
  if (!at) at = strstr(name, mark);
  if (!at) return false;
  *from = sym_ofn(c, name, (size_t)(at - name)), *to = sym_of(c, at + strlen(mark));
  return true;
}

// The transaction id of event n, if it has one. tensor: of its name; part: behind "~>", or of its arguments.
static void put_message(gtrace *g, const chrome_event *e, u32 n, u32 w, scan_text tensor, const char *part) {
  if (!words[w].message) return;
  ctx *c = g->k.x->c;
  const member *m = &g->members.v[g->member[e->track]];
  const trace *t = g->k.x->t;
  gtrace_message x = {.event = n, .step = t->comms.v[t->comm[n]].seq, .start_ps = e->start_ps};
  const bool ends = ends_of(c, sym_str(c, m->name), &x.from, &x.to);
  x.what = ends && !strncmp(sym_str(c, x.from), "server", 6) ? words[w].answer : words[w].request;
  x.tensor = sym_ofn(c, tensor.v, tensor.n);
  long long loop, channel, chunk, slice;
  if (x.what > GTRACE_RECV) {
    const char *last = strrchr(part, ':'); // worker_0::server_0::1
    x.part = sym_of(c, last ? last + 1 : part);
    if (ends) *vec_push(g->k.tmp, &g->messages) = x;
    return;
  }
  if (m->local < 0 || sscanf(part, "%lld_%lld_%lld_%lld", &loop, &channel, &chunk, &slice) != 4) return;
  const u32 peer = t->comms.v[t->comm[n]].peer;
  const sym own = sym_fmt(c, "%lld", (long long)m->rank),
            its = peer == TRACE_NONE ? (sym){0} : sym_fmt(c, "%u", peer);
  x.part = sym_fmt(c, "%lld_%lld_%lld", loop, channel, slice), x.chunk = chunk;
  x.from = x.what == GTRACE_SEND ? own : its, x.to = x.what == GTRACE_SEND ? its : own;
  x.outside = true;
  for (u32 i = 0; i < t->processes.n && peer != TRACE_NONE; i++) x.outside &= t->processes.v[i].rank != peer;
  *vec_push(g->k.tmp, &g->messages) = x;
}

// Who has the other end of a message of a ring; TRACE_NONE: not known.
static u32 peer_of(const gtrace *g, const member *m, const char *part, bool sends) {
  long long loop, channel;
  const member *const *p = (const member *const *)g->pair;
  if (m->local < 0 || sscanf(part, "%lld_%lld_", &loop, &channel) != 2 || channel < 0) return TRACE_NONE;
  if (g->rings.hops.n) return gtrace_peer(&g->rings, (u32)channel, (u32)m->rank, sends);
  if (!p[0] || !p[1] || (p[0] != m && p[1] != m)) return TRACE_NONE;
  return (u32)(p[0] == m ? p[1] : p[0])->rank;
}

// NCCL's own file has the number of the step in front of the name, "5->Comm.3.SEND".
static i64 step_of(const chrome_event *e, const char *long_name) {
  char *end;
  if (e->number) return e->number - 1;
  const long long n = strtoll(long_name, &end, 10);
  return end > long_name && n >= 0 && !strncmp(end, "->", 2) ? n : -1;
}

static void put_comm(gtrace *g, const chrome_event *e, u32 n, u32 w, scan_text name, u32 dot) {
  reading *x = g->k.x;
  const char *op = words[w].op;
  const u32 from = name.n > 5 && !memcmp(name.v, "Comm.", 5) ? 5 : 0;
  const char *long_name = sym_str(x->c, e->label.i ? e->label : e->name), *part = strstr(long_name, "~>");
  const member *m = &g->members.v[g->member[e->track]];
  const bool all = !strcmp(op, "all_reduce"), of = !all && m->local >= 0;
  const scan_text tensor = {name.v + from, dot > from ? dot - from : 0, false};
  part = part ? part + 2 : sym_str(x->c, e->extra);
  trace_comm is = trace_comm_of(sym_of(x->c, op));
  is.seq = step_of(e, long_name);
  if (of) is.peer = peer_of(g, m, part, !strcmp(op, "send"));
  // Ends in different files are one message if they are of one step.
  const char *end = !of                     ? ""
                    : is.peer == TRACE_NONE ? sym_str(x->c, m->name)
                    : is.seq < 0            ? "ring"
                                            : sym_str(x->c, sym_fmt(x->c, "step %lld", (long long)is.seq));
  is.group =
      sym_fmt(x->c, "%.*s%s%s%s%s", (int)tensor.n, tensor.v, *part ? " " : "", part, *end ? " " : "", end);
  is.size = all ? x->t->processes.v[m->process].world_size : 0;
  trace_add_comm(x->a, x->t, n, is);
  put_message(g, e, n, w, tensor, part);
}

static void put_event(gtrace *g, const chrome_event *e) {
  reading *x = g->k.x;
  const member *m = &g->members.v[g->member[e->track]];
  const scan_text name = plain_name(sym_str(x->c, e->name));
  u32 dot = name.n, w = 0;
  while (dot && name.v[dot - 1] != '.') dot--;
  const scan_text last = {name.v + dot, name.n - dot, false};
  const bool messages = strstr(sym_str(x->c, m->name), "::") || strstr(sym_str(x->c, m->name), " -> ");
  while (w < COUNT_OF(words) && !(dot && scan_eq(last, words[w].word))) w++;
  const bool comm = w < COUNT_OF(words) && (messages || !strncmp(name.v, "Comm", 4));
  trace_is is = comm ? words[w].is : TRACE_OP;
  u8 flags = 0;
  for (u32 k = 0; k < COUNT_OF(operators) && !comm; k++) {
    const u32 n = (u32)strlen(operators[k].start);
    if (name.n < n || memcmp(name.v, operators[k].start, n)) continue;
    is = TRACE_KERNEL, flags = operators[k].flags;
    break;
  }
  if (e->phase != 'X') is = TRACE_NOTE;
  const bool device = TRACE_ON_DEVICE >> is & 1;
  const u32 n =
      chrome_put(&g->k, e, is, m->process, device, device ? MAX(m->local, 0) : -1, g->lane[e->track]);
  if (n == TRACE_NONE) return;
  const sym tid = g->k.tracks.v[e->track].tid;
  trace_lane *lane = &x->t->lanes.v[x->t->lane[n]];
  if (!lane->name.i) lane->name = tid;
  x->t->flags[n] |= flags;
  if (comm && is == TRACE_KERNEL && words[w].op) put_comm(g, e, n, w, name, dot ? dot - 1 : 0);
}

bool trace_read_gtrace(reading *x) {
  gtrace g = {.k = {.x = x, .tmp = arena_new(), .arg = take_arg}};
  bool ok = chrome_read(&g.k);
  if (ok) {
    find_members(&g);
    ok = put_processes(&g);
  }
  if (ok) {
    for (u32 i = 0; i < g.k.events.n; i++) put_event(&g, &g.k.events.v[i]);
    if (g.sizes) ok = gtrace_sizes(x, g.k.tmp, g.sizes, g.workers, g.messages.v, g.messages.n);
    gtrace_link(x, g.k.tmp, g.messages.v, g.messages.n);
  }
  arena_free(g.k.tmp);
  return ok;
}
