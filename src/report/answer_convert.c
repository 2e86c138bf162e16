// answer_convert.c - the traces of a job as one timeline in the Trace Event Format: a process for every rank, a thread
// for every stream and thread, arrows between the kernels of one communication. Not simulated timelines (chrome.c).
//
// Idea: categories and arguments are those of Kineto, so what is written can be read again with the same answers. Files are
// read one after the other; of communications of all ranks only their place is kept, for the arrows at the end.
#include "report/report.h"
#include <stdlib.h>

enum { FLUSHED = 1 << 18, ARROWS_MOST = 100000 };
static const char *const categories[TRACE_KINDS] = {
    "kernel",       "gpu_memcpy",      "gpu_memset",      "cuda_sync",       "cpu_op",
    "cuda_runtime", "user_annotation", "user_annotation", "python_function", "Trace"};

typedef struct {
  u64 key; // of the communication
  i64 ps;  // from the start of the timeline
  u32 pid, tid;
} meeting;
typedef struct {
  u64 key;
  u32 count;
} counted;

typedef struct {
  ctx *c;
  arena *a;
  strbuf out;
  file_out *file;
  bool comma;
  i64 base_ns;                 // of the timeline
  u64 events, calls;           // calls: numbers that earlier files took
  u32 pids, processes, arrows; // pids: above the highest
  VEC(meeting) meetings;
} converter;

static void flush(converter *k, size_t most) {
  if (k->out.n <= most) return;
  file_put(k->file, k->out.v, k->out.n);
  k->out.n = 0;
}
static void open_event(converter *k) {
  flush(k, FLUSHED);
  sb_put(&k->out, k->comma ? ",\n" : "\n");
  k->comma = true;
}

// Picoseconds as microseconds, exactly.
static void put_us(strbuf *out, i64 ps) {
  const u64 x = ps < 0 ? -(u64)ps : (u64)ps;
  sb_fmt(out, "%s%llu", ps < 0 ? "-" : "", (unsigned long long)(x / 1000000));
  if (x % 1000000 % 1000)
    sb_fmt(out, ".%06u", (u32)(x % 1000000));
  else if (x % 1000000)
    sb_fmt(out, ".%03u", (u32)(x % 1000000 / 1000));
}

static void put_name(converter *k, const char *what, u32 pid, i64 tid, const char *name, u32 order) {
  open_event(k);
  sb_fmt(&k->out, "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%u,\"tid\":%lld,\"args\":{\"name\":", what, pid,
         (long long)MAX(tid, 0));
  sb_json_str(&k->out, name);
  sb_put(&k->out, "}}");
  open_event(k);
  sb_fmt(&k->out,
         "{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%u,\"tid\":%lld,\"args\":{\"sort_index\":%u}}",
         what, pid, (long long)MAX(tid, 0), order);
}

// Streams before threads, which are many.
static void put_lanes(converter *k, const trace *t, u32 process, u32 pid, const char *file) {
  const trace_process *p = &t->processes.v[process];
  put_name(k, "process", pid, -1,
           p->rank == TRACE_NONE ? file
           : p->host.i           ? arena_printf(k->a, "rank %u, %s", p->rank, sym_str(k->c, p->host))
                                 : arena_printf(k->a, "rank %u", p->rank),
           pid);
  for (u32 l = 0; l < t->lanes.n; l++) {
    const trace_lane *x = &t->lanes.v[l];
    if (x->process != process) continue;
    put_name(k, "thread", pid, l,
             x->device   ? arena_printf(k->a, "device %lld stream %lld", (long long)x->of, (long long)x->id)
             : x->name.i ? sym_str(k->c, x->name)
                         : arena_printf(k->a, "thread %lld", (long long)x->id),
             l + (x->device ? 0 : t->lanes.n));
  }
}

static void put_text(strbuf *out, const ctx *c, const char *key, sym s) {
  if (!s.i) return;
  sb_fmt(out, ",\"%s\":", key);
  sb_json_str(out, sym_str(c, s));
}
static void put_number(strbuf *out, const char *key, i64 x) {
  if (x >= 0) sb_fmt(out, ",\"%s\":%lld", key, (long long)x);
}

static void put_comm(strbuf *out, const ctx *c, const trace_comm *m) {
  put_text(out, c, "Collective name", m->op);
  put_number(out, "In msg nelems", m->in), put_number(out, "Out msg nelems", m->out);
  put_text(out, c, "dtype", m->type);
  put_number(out, "Group size", m->size ? (i64)m->size : -1);
  put_text(out, c, "Process Group Name", m->group);
  if (m->members.i) sb_fmt(out, ",\"Process Group Ranks\":\"[%s]\"", sym_str(c, m->members));
  put_number(out, "Seq", m->seq);
  put_number(out, !strcmp(sym_str(c, m->op), "recv") ? "Src Rank" : "Dst Rank",
             m->peer == TRACE_NONE ? -1 : (i64)m->peer);
}

static void put_event(converter *k, const trace *t, u32 e, u32 pid, i64 ps) {
  strbuf *out = &k->out;
  const trace_lane *lane = &t->lanes.v[t->lane[e]];
  const bool whole = t->dur_ps[e] >= 0;
  open_event(k);
  sb_fmt(out, "{\"ph\":\"%s\",\"cat\":\"%s%s\",\"name\":", whole ? "X" : "i\",\"s\":\"t",
         lane->device && t->is[e] == TRACE_NOTE ? "gpu_" : "", categories[t->is[e]]);
  sb_json_str(out, sym_str(k->c, trace_name(t, e)));
  sb_fmt(out, ",\"pid\":%u,\"tid\":%u,\"ts\":", pid, t->lane[e]);
  put_us(out, ps);
  if (whole) sb_put(out, ",\"dur\":"), put_us(out, t->dur_ps[e]);
  sb_put(out, ",\"args\":{");
  const size_t start = out->n;
  if (lane->device) sb_fmt(out, ",\"device\":%lld,\"stream\":%lld", (long long)lane->of, (long long)lane->id);
  if (t->is[e] == TRACE_CALL)
    put_number(out, "correlation", (i64)(k->calls + e));
  else if (t->cause[e] != TRACE_NONE)
    put_number(out, "correlation", (i64)(k->calls + t->cause[e]));
  put_number(out, "step", t->step[e] == TRACE_NONE ? -1 : (i64)t->step[e]);
  put_number(out, "microbatch", t->microbatch[e] == TRACE_NONE ? -1 : (i64)t->microbatch[e]);
  if (t->comm[e] != TRACE_NONE) put_comm(out, k->c, &t->comms.v[t->comm[e]]);
  if (out->n > start) out->v[start] = ' ';
  sb_put(out, "}}");
}

// The communication that an event is, the same number on all ranks: by the number that the file has for it, else by how
// many of the group and operation came before.
static void meet(converter *k, arena *tmp, const trace *t, u32 e, u32 pid, i64 ps, hmap *before, u32 **count,
                 u32 *ncounts) {
  const trace_comm *m = &t->comms.v[t->comm[e]];
  u64 h = hash_u64(hash_step(m->op.i, m->members.i ? m->members.i : m->group.i), m->peer);
  if (t->match[e]) {
    h = hash_u64(t->match[e], 3);
  } else if (m->seq >= 0) {
    h = hash_u64(h, (u64)m->seq);
  } else {
    u32 at = hmap_get(before, h);
    if (!at) {
      *count = vec_grow(tmp, *count, *ncounts, &(u32){*ncounts}, *ncounts + 1, sizeof **count);
      (*count)[(*ncounts)++] = 0, at = *ncounts;
      hmap_add(tmp, before, h, at);
    }
    h = hash_u64(h, ~(u64)(*count)[at - 1]++);
  }
  *vec_push(k->a, &k->meetings) = (meeting){h, ps, pid, t->lane[e]};
}

static bool put_process(converter *k, const trace *t, u32 process, const char *file) {
  const trace_process *p = &t->processes.v[process];
  u32 *count = NULL, ncounts = 0;
  hmap before = {0};
  if (!k->base_ns && p->base_ns) { // a day's start, so that times are short and none is negative
    const i64 hour_ns = (i64)3600 * 1000000000, day_ns = 24 * hour_ns;
    k->base_ns = MAX((p->base_ns - hour_ns) / day_ns * day_ns, 0);
  }
  const i64 shift_ns = p->base_ns ? p->base_ns - k->base_ns : 0, month_ns = (i64)30 * 24 * 3600 * 1000000000;
  if (shift_ns > month_ns || shift_ns < -month_ns) {
    diag(k->c, E_TRACE, loc_node(k->c, sym_of(k->c, file), (sym){0}, (sym){0}),
         "its clock starts %lld days from that of the first file: these are not of one run",
         (long long)(llabs(shift_ns) / (month_ns / 30)));
    diag_hint(k->c, "heddle trace info %s", file);
    return false;
  }
  arena *tmp = arena_new();
  const u32 pid = p->rank != TRACE_NONE ? p->rank : k->pids, *order = trace_order(tmp, t);
  k->pids = MAX(k->pids, pid + 1), k->processes++;
  put_lanes(k, t, process, pid, file);
  for (u32 i = 0; i < t->n; i++) {
    const u32 e = order[i];
    if (t->lanes.v[t->lane[e]].process != process) continue;
    const i64 ps = shift_ns * 1000 + t->start_ps[e];
    put_event(k, t, e, pid, ps);
    k->events++;
    if (t->comm[e] != TRACE_NONE && t->is[e] == TRACE_KERNEL)
      meet(k, tmp, t, e, pid, ps, &before, &count, &ncounts);
  }
  arena_free(tmp);
  return true;
}

static int by_key(const void *x, const void *y) {
  const meeting *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  if (a->ps != b->ps) return a->ps < b->ps ? -1 : 1;
  return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static void put_end(converter *k, const meeting *m, u32 id, bool last) {
  open_event(k);
  sb_fmt(&k->out, "{\"ph\":\"%s,\"id\":%u,\"cat\":\"meet\",\"name\":\"meet\",\"pid\":%u,\"tid\":%u,\"ts\":",
         last ? "f\",\"bp\":\"e\"" : "s\"", id, m->pid, m->tid);
  put_us(&k->out, m->ps);
  sb_char(&k->out, '}');
}

// From the rank that came first to each of the others: viewers draw no arrows backwards in time.
static void put_arrows(converter *k) {
  if (k->meetings.n) qsort(k->meetings.v, k->meetings.n, sizeof *k->meetings.v, by_key);
  for (u32 i = 0, first = 0; i < k->meetings.n && k->arrows < ARROWS_MOST; i++) {
    if (k->meetings.v[i].key != k->meetings.v[first].key) first = i;
    if (k->meetings.v[i].pid == k->meetings.v[first].pid) continue;
    k->arrows++;
    put_end(k, &k->meetings.v[first], k->arrows, false);
    put_end(k, &k->meetings.v[i], k->arrows, true);
  }
}

static bool put_job(converter *k, job *j) {
  sb_put(&k->out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  u32 rank = TRACE_NONE, world = 0;
  for (u32 f = 0; f < j->n; f++) {
    const trace *t = job_load(j, f, 0);
    if (!t) return false;
    for (u32 p = 0; p < t->processes.n; p++) {
      rank = t->processes.v[p].rank, world = MAX(world, t->processes.v[p].world_size);
      if (!put_process(k, t, p, j->file[f].path)) return false;
    }
    k->calls += t->n;
    job_unload(j, f);
  }
  put_arrows(k);
  sb_put(&k->out, "\n]");
  if (k->base_ns) sb_fmt(&k->out, ",\"baseTimeNanoseconds\":%lld", (long long)k->base_ns);
  if (j->n == 1 && rank != TRACE_NONE) {
    sb_fmt(&k->out, ",\"distributedInfo\":{\"rank\":%u", rank);
    if (world) sb_fmt(&k->out, ",\"world_size\":%u", world);
    sb_char(&k->out, '}');
  }
  sb_put(&k->out, "}\n");
  flush(k, 0);
  return true;
}

bool answer_convert(report *r, ctx *c, arena *a, const trace_ask *q) {
  if (q->to && strcmp(q->to, "chrome")) {
    diag(c, E_USAGE, (loc){0}, "traces are not converted to '%s'", q->to);
    diag_hint(c, "--to chrome");
    return false;
  }
  if (!q->output) {
    diag(c, E_USAGE, (loc){0}, "no file to write was named");
    diag_hint(c, "-o trace.json");
    return false;
  }
  job *j = job_open(c, a, q->npaths, q->path);
  converter k = {.c = c, .a = a, .out = {.a = a}};
  if (!j || !(k.file = file_begin(c, a, q->output))) return false;
  const bool ok = put_job(&k, j);
  job_close(j);
  if (!ok) return file_drop(k.file), false;
  if (!file_end(k.file)) return false;
  report_fact(r, "output", strcmp(q->output, "-") ? "file" : NULL, cell_text(q->output));
  report_fact(r, "processes", strcmp(q->output, "-") ? "processes" : NULL, cell_i(CELL_INT, k.processes));
  report_fact(r, "events", strcmp(q->output, "-") ? "events" : NULL, cell_i(CELL_INT, (i64)k.events));
  report_fact(r, "arrows", strcmp(q->output, "-") ? "arrows" : NULL, cell_i(CELL_INT, k.arrows));
  return true;
}
