// convert.c - the traces of a job as one timeline in the Trace Event Format: a process for every rank, a thread for
// every stream and thread, arrows between the kernels of one communication. Not simulated timelines (chrome.c).
//
// Idea: one writer for two dialects. Categories and arguments of one are Kineto's, of the other those of Heddle's own
// timelines (trace/heddle.c reads them), so what is written can be read again with the same answers. Files are read
// one after the other; of communications of all ranks only what matching keeps stays, for the arrows at the end. Several
// files are read twice: what they have in common says how far their clocks are apart.
#include "report/internal.h"
#include <stdlib.h>

enum { FLUSHED = 1 << 18, ARROWS_MOST = 100000 };
static const char *const categories[TRACE_KINDS] = {
    "kernel",       "gpu_memcpy",      "gpu_memset",      "cuda_sync",       "cpu_op",
    "cuda_runtime", "user_annotation", "user_annotation", "python_function", "Trace"};

// Where the events of a place of the match go.
typedef struct {
  u32 pid;
  i64 shift_ps; // from the process's own times to those of the timeline
} put_place;

typedef struct {
  ctx *c;
  arena *a;
  bool own; // Heddle's dialect. Kineto's has one rank in a file, so several are always written in Heddle's
  strbuf out;
  file_out *file;
  bool comma;
  i64 base_ns;                 // of the timeline
  u64 events, calls;           // calls: numbers that earlier files took
  u32 matches;                 // likewise, of events that their files match
  u32 pids, processes, arrows; // pids: above the highest
  match *m;
  const align_clocks *clocks; // of its places; NULL: times are as recorded
  VEC(put_place) places;      // as those of m
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

// more: members of "args" beside the name, each with a comma before it.
static void put_name(converter *k, const char *what, u32 pid, i64 tid, const char *name, const char *more,
                     u32 order) {
  open_event(k);
  sb_fmt(&k->out, "{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%u,\"tid\":%lld,\"args\":{\"name\":", what, pid,
         (long long)MAX(tid, 0));
  sb_json_str(&k->out, name);
  sb_fmt(&k->out, "%s}}", more);
  open_event(k);
  sb_fmt(&k->out,
         "{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%u,\"tid\":%lld,\"args\":{\"sort_index\":%u}}",
         what, pid, (long long)MAX(tid, 0), order);
}

static void put_text(strbuf *out, const ctx *c, const char *key, sym s) {
  if (!s.i) return;
  sb_fmt(out, ",\"%s\":", key);
  sb_json_str(out, sym_str(c, s));
}
static void put_number(strbuf *out, const char *key, i64 x) {
  if (x >= 0) sb_fmt(out, ",\"%s\":%lld", key, (long long)x);
}

// What Heddle's dialect says of a process beyond its name.
const char *process_args(const ctx *c, arena *a, const trace_process *p) {
  strbuf b = {.a = a};
  sb_fmt(&b, ",\"rank\":%lld,\"dated\":%d", p->rank == TRACE_NONE ? -1 : (long long)p->rank, p->base_ns != 0);
  put_number(&b, "world", p->world_size ? (i64)p->world_size : -1);
  put_text(&b, c, "host", p->host), put_text(&b, c, "device", p->device);
  if (p->serial) sb_put(&b, ",\"serial\":1");
  put_text(&b, c, "model", p->ran.model), put_text(&b, c, "plan", p->ran.plan);
  put_text(&b, c, "machine", p->ran.machine), put_text(&b, c, "digest", p->ran.digest);
  put_text(&b, c, "collectives", p->ran.collectives), put_text(&b, c, "run", p->ran.run);
  if (p->placed) sb_fmt(&b, ",\"data\":%u,\"stage\":%u,\"tensor\":%u", p->data, p->stage, p->tensor);
  return sb_str(&b);
}
static const char *lane_args(const converter *k, const trace_lane *l) {
  if (!k->own) return "";
  if (!l->device) return arena_printf(k->a, ",\"thread\":%lld", (long long)l->id);
  return arena_printf(k->a, ",\"device\":%lld,\"stream\":%lld", (long long)l->of, (long long)l->id);
}

// Streams before threads, which are many.
static void put_lanes(converter *k, const trace *t, u32 process, u32 pid, const char *file) {
  const trace_process *p = &t->processes.v[process];
  put_name(k, "process", pid, -1,
           p->rank == TRACE_NONE ? file
           : p->host.i           ? arena_printf(k->a, "rank %u, %s", p->rank, sym_str(k->c, p->host))
                                 : arena_printf(k->a, "rank %u", p->rank),
           k->own ? process_args(k->c, k->a, p) : "", pid);
  for (u32 l = 0; l < t->lanes.n; l++) {
    const trace_lane *x = &t->lanes.v[l];
    if (x->process != process) continue;
    put_name(k, "thread", pid, l,
             x->name.i   ? sym_str(k->c, x->name)
             : x->device ? arena_printf(k->a, "device %lld stream %lld", (long long)x->of, (long long)x->id)
                         : arena_printf(k->a, "thread %lld", (long long)x->id),
             lane_args(k, x), l + (x->device ? 0 : t->lanes.n));
  }
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
void put_own_comm(strbuf *out, const ctx *c, const trace_comm *m) {
  put_text(out, c, "op", m->op), put_text(out, c, "group", m->group);
  put_text(out, c, "members", m->members), put_text(out, c, "type", m->type);
  put_number(out, "size", m->size ? (i64)m->size : -1);
  put_number(out, "peer", m->peer == TRACE_NONE ? -1 : (i64)m->peer);
  put_number(out, "seq", m->seq), put_number(out, "bytes", m->bytes);
  put_number(out, "in", m->in), put_number(out, "out", m->out);
  if (m->of) sb_fmt(out, ",\"transaction\":\"%lld.%u.%u\"", (long long)m->of, m->hop, m->chunk);
}

static void put_origin(strbuf *out, const ctx *c, const trace_origin *x) {
  put_text(out, c, "task", x->task), put_text(out, c, "function", x->func), put_text(out, c, "node", x->node);
  put_number(out, "layer", (i64)x->layer - 1);
}

static void put_count(strbuf *out, const char *key, u32 x) {
  put_number(out, key, x == TRACE_NONE ? -1 : (i64)x);
}

static void put_args(converter *k, const trace *t, u32 e) {
  strbuf *out = &k->out;
  const trace_lane *lane = &t->lanes.v[t->lane[e]];
  const u32 call = t->is[e] == TRACE_CALL ? e : t->cause[e] == e ? TRACE_NONE : t->cause[e];
  const size_t start = out->n;
  if (lane->device && !k->own)
    sb_fmt(out, ",\"device\":%lld,\"stream\":%lld", (long long)lane->of, (long long)lane->id);
  put_number(out, k->own ? "launch" : "correlation", call == TRACE_NONE ? -1 : (i64)(k->calls + call));
  put_count(out, "step", t->step[e]), put_count(out, "microbatch", t->microbatch[e]);
  if (k->own) put_count(out, "chunk", t->chunk[e]);
  if (k->own && t->match[e]) put_number(out, "match", (i64)k->matches + t->match[e]);
  if (k->own && (t->flags[e] & (TRACE_COMM | TRACE_LEAVES)) == TRACE_COMM && trace_process_of(t, e)->serial)
    put_number(out, "waited", 0);
  if (k->own && t->origin[e] != TRACE_NONE) put_origin(out, k->c, &t->origins.v[t->origin[e]]);
  if (t->comm[e] != TRACE_NONE) (k->own ? put_own_comm : put_comm)(out, k->c, &t->comms.v[t->comm[e]]);
  if (out->n > start) out->v[start] = ' ';
}

static const char *category_of(const converter *k, const trace *t, u32 e) {
  if (!k->own) return categories[t->is[e]];
  if (t->is[e] != TRACE_KERNEL) return trace_is_name((trace_is)t->is[e]);
  return t->flags[e] ? chrome_category(t->flags[e]) : trace_is_name(TRACE_KERNEL);
}

static void put_event(converter *k, const trace *t, u32 e, u32 pid, i64 ps) {
  strbuf *out = &k->out;
  const bool whole = t->dur_ps[e] >= 0,
             on_gpu = !k->own && t->lanes.v[t->lane[e]].device && t->is[e] == TRACE_NOTE;
  open_event(k);
  sb_fmt(out, "{\"ph\":\"%s\",\"cat\":\"%s%s\",\"name\":", whole ? "X" : "i\",\"s\":\"t",
         on_gpu ? "gpu_" : "", category_of(k, t, e));
  sb_json_str(out, sym_str(k->c, trace_name(t, e)));
  sb_fmt(out, ",\"pid\":%u,\"tid\":%u,\"ts\":", pid, t->lane[e]);
  put_us(out, ps);
  if (whole) sb_put(out, ",\"dur\":"), put_us(out, t->dur_ps[e]);
  sb_put(out, ",\"args\":{");
  put_args(k, t, e);
  sb_put(out, "}}");
}

// A reading of a place's clock, base_ps included, as a time of the timeline.
static i64 in_timeline(const converter *k, u32 place, i64 reading_ps) {
  assert(k->places.v && place < k->places.n && place < k->m->places.n);
  const i64 time = k->clocks ? align_time(k->clocks, place, reading_ps) : reading_ps;
  return time - k->m->places.v[place].base_ps + k->places.v[place].shift_ps;
}

static bool put_process(converter *k, const trace *t, u32 process, const char *file) {
  const trace_process *p = &t->processes.v[process];
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
  const u32 pid = p->rank != TRACE_NONE ? p->rank : k->pids, place = k->places.n,
            *order = trace_order(tmp, t);
  k->pids = MAX(k->pids, pid + 1), k->processes++;
  *vec_push(k->a, &k->places) = (put_place){pid, shift_ns * 1000};
  put_lanes(k, t, process, pid, file);
  for (u32 i = 0; i < t->n; i++) {
    const u32 e = order[i];
    if (t->lanes.v[t->lane[e]].process != process) continue;
    put_event(k, t, e, pid, in_timeline(k, place, k->m->places.v[place].base_ps + t->start_ps[e]));
    k->events++;
  }
  arena_free(tmp);
  return true;
}

static i64 start_in_timeline(const converter *k, const match_member *v) {
  return in_timeline(k, v->place, v->start_ps);
}

static void put_end(converter *k, const match_member *v, u32 id, bool last) {
  open_event(k);
  sb_fmt(&k->out, "{\"ph\":\"%s,\"id\":%u,\"cat\":\"meet\",\"name\":\"meet\",\"pid\":%u,\"tid\":%u,\"ts\":",
         last ? "f\",\"bp\":\"e\"" : "s\"", id, k->places.v[v->place].pid, v->lane);
  put_us(&k->out, start_in_timeline(k, v));
  sb_char(&k->out, '}');
}

// From the rank that came first to each of the others: viewers draw no arrows backwards in time.
static void put_arrows(converter *k) {
  for (u32 i = 0; i < k->m->row.n; i++) {
    const match_row *r = &k->m->row.v[i];
    const match_member *v = k->m->member.v + r->first, *first = v;
    for (u32 j = 1; j < r->n; j++)
      if (start_in_timeline(k, &v[j]) < start_in_timeline(k, first)) first = &v[j];
    for (u32 j = 0; j < r->n && k->arrows < ARROWS_MOST; j++) {
      if (v[j].place == first->place) continue;
      k->arrows++;
      put_end(k, first, k->arrows, false);
      put_end(k, &v[j], k->arrows, true);
    }
  }
}

static void put_beginning(converter *k) {
  sb_put(&k->out, "{\"displayTimeUnit\":\"ms\",");
  if (k->own) sb_put(&k->out, TRACE_HEDDLE_MARK ",");
  sb_put(&k->out, "\"traceEvents\":[");
}

static bool put_job(converter *k, job *j) {
  u32 rank = TRACE_NONE, world = 0;
  for (u32 f = 0; f < j->n; f++) {
    const trace *t = job_load(j, f, 0);
    u32 matches = 0;
    if (!t) return false;
    k->own |= j->n > 1 || t->processes.n > 1;
    if (!f) put_beginning(k);
    if (j->n == 1) match_add(k->m, t, f, job_rank(j, f));
    for (u32 p = 0; p < t->processes.n; p++) {
      rank = t->processes.v[p].rank, world = MAX(world, t->processes.v[p].world_size);
      if (!put_process(k, t, p, j->file[f].path)) return false;
    }
    for (u32 e = 0; e < t->n; e++) matches = MAX(matches, t->match[e]);
    k->calls += t->n, k->matches += matches;
    job_unload(j, f);
  }
  if (j->n == 1) match_finish(k->m);
  put_arrows(k);
  sb_put(&k->out, "\n]");
  if (k->base_ns) sb_fmt(&k->out, ",\"baseTimeNanoseconds\":%lld", (long long)k->base_ns);
  if (!k->own && j->n == 1 && rank != TRACE_NONE) {
    sb_fmt(&k->out, ",\"distributedInfo\":{\"rank\":%u", rank);
    if (world) sb_fmt(&k->out, ",\"world_size\":%u", world);
    sb_char(&k->out, '}');
  }
  sb_put(&k->out, "}\n");
  flush(k, 0);
  return true;
}

// Other commands write Perfetto's protobuf under such a name.
static bool takes_name(ctx *c, const char *path) {
  static const char other[] = ".pftrace";
  const size_t n = path ? strlen(path) : 0, m = sizeof other - 1;
  if (n < m || strcmp(path + n - m, other) != 0) return true;
  diag(c, E_USAGE, (loc){0}, "trace convert writes JSON, not Perfetto's protobuf: %s", path);
  return diag_hint(c,
                   "-o %.*s.json, which ui.perfetto.dev reads too; `heddle compare -o X%s` has what was "
                   "recorded beside what is "
                   "predicted",
                   (int)(n - m), path, other),
         false;
}

static bool convert_timeline(conversion *v, job *j, bool own) {
  converter k = {.c = j->c, .a = v->a, .own = own, .out = {.a = v->a}};
  i64 within = 0;
  if (!takes_name(j->c, v->output)) return false;
  k.m = j->n > 1 ? match_job(j, v->a) : match_new(j->c, v->a); // one file is read once
  if (!k.m) return false;
  if (j->n > 1) k.clocks = clocks_apart(v->a, k.m, false, &v->clocks_by_ps, &within);
  if (!(k.file = file_begin(j->c, v->a, v->output))) return false;
  if (!put_job(&k, j)) return file_drop(k.file), false;
  if (!file_end(k.file)) return false;
  v->processes = k.processes, v->events = k.events, v->arrows = k.arrows;
  return true;
}
bool convert_chrome(conversion *v, job *j) { return convert_timeline(v, j, false); }
bool convert_heddle(conversion *v, job *j) { return convert_timeline(v, j, true); }
