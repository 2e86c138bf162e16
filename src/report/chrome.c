// chrome.c - a timeline as Trace Event Format JSON. Not a viewer.
//
// Idea: one line per event, in order of rank, stream and start, so that equal timelines are equal files. The
// name of an event is its operator, its place in the user's model is an argument; colours come from the
// category. Around what a task of a pipeline runs is a slice with the task's name. Events are not kept: the timeline is played once for as many streams as fit into a buffer, and
// what is written goes to the file at once.
#include "report/internal.h"

enum { ARROWS_MOST = 100000 };                  // viewers get slow
enum { BUFFERED = 1 << 18, FLUSHED = 1 << 18 }; // events; bytes of text

typedef struct {
  i64 start_ps, dur_ps, waited_ps, from_ps, held_bytes;
  u32 kind, microbatch, from_lane, task, layer, match, step, launch;
  u32 comm; // in writer.comms, from 1; 0: none
} kept;
typedef struct {
  i64 from_ps, to_ps;
  u32 from, to; // lanes
} arrow;

typedef struct {
  ctx *c;
  const trace_source *t;
  const timeline_opts *o;
  strbuf *out;
  file_out *file; // NULL: all text stays in out
  arena *a, *tmp; // what is kept while writing; what a play takes
  bool comma;
  VEC(const char *) places, heads; // by location; by name and flags
  VEC(arrow) arrows;
  VEC(trace_comm) comms; // of the events that are buffered
  u32 from;              // the lanes that are buffered
  u32 *at;               // of every lane: where its next event goes
  kept *buffer;
  u32 lane, task; // whose slice around its instructions is open; task 0: none is
  i64 end_ps;     // of what is in it
  i64 *held;      // by rank: what it holds, as it was told last
} writer;

static void flush(writer *w, size_t most) {
  if (!w->file || w->out->n <= most) return;
  file_put(w->file, w->out->v, w->out->n);
  w->out->n = 0;
}

static void open_event(writer *w) {
  sb_put(w->out, w->comma ? ",\n" : "\n");
  w->comma = true;
}

// Picoseconds as microseconds, exactly.
void put_us(strbuf *out, i64 ps) {
  i64 whole = ps / 1000000, rest = ps % 1000000;
  if (ps < 0) sb_char(out, '-');
  sb_i64(out, whole < 0 ? -whole : whole);
  rest = rest < 0 ? -rest : rest;
  if (!rest) return;
  char digits[8];
  for (u32 k = 6; k-- > 0; rest /= 10) digits[k] = (char)('0' + rest % 10);
  u32 n = 6;
  while (digits[n - 1] == '0') n--;
  sb_char(out, '.');
  sb_putn(out, digits, n);
}

// more: members of "args" beside the name, each with a comma before it.
static void put_meta(writer *w, const char *what, u32 pid, i64 tid, const char *name, const char *more) {
  open_event(w);
  sb_fmt(w->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u", what, pid);
  if (tid >= 0) sb_fmt(w->out, ",\"tid\":%u", (u32)tid);
  sb_put(w->out, ",\"args\":{\"name\":");
  sb_json_str(w->out, name);
  sb_fmt(w->out, "%s}}", more);
}

static void put_sort(writer *w, const char *what, u32 pid, i64 tid, u32 index) {
  open_event(w);
  sb_fmt(w->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u", what, pid);
  if (tid >= 0) sb_fmt(w->out, ",\"tid\":%u", (u32)tid);
  sb_fmt(w->out, ",\"args\":{\"sort_index\":%u}}", index);
}

static void put_names(writer *w) {
  const trace_source *t = w->t;
  char text[32];
  for (u32 rank = 0; rank < t->nranks; rank++) {
    bool named = false;
    for (u32 strm = 0; strm < t->nstreams; strm++) {
      const bool host = strm >= t->nstreams - t->nthreads;
      if (!t->count[rank * t->nstreams + strm]) continue;
      if (!named) {
        snprintf(text, sizeof text, "rank %u", rank);
        put_meta(w, "process_name", rank, -1, w->o->rank_name ? w->o->rank_name[rank] : text,
                 t->process ? process_args(w->c, w->a, &t->process[rank]) : "");
        put_sort(w, "process_sort_index", rank, -1, rank);
      }
      named = true;
      put_meta(w, "thread_name", rank, strm, sym_str(w->c, t->stream_name[strm]),
               host ? ",\"thread\":0" : "");
      put_sort(w, "thread_sort_index", rank, strm, strm);
    }
    flush(w, FLUSHED);
  }
}

const char *chrome_category(u8 flags) {
  if (flags & TRACE_COMM) return "communication";
  if (flags & TRACE_UPDATE) return "update";
  if (flags & TRACE_RECOMPUTE) return "recompute";
  return flags & TRACE_BACKWARD ? "backward" : "forward";
}

// Parts of events that repeat are made once.
static const char *place_of(writer *w, loc where) {
  const loc_info *l = loc_get(w->c, where);
  if (!l) return "";
  while (w->places.n <= where.i) *vec_push(w->a, &w->places) = NULL;
  if (w->places.v[where.i]) return w->places.v[where.i];
  strbuf quoted = {.a = w->a};
  sb_put(&quoted, ",\"node\":");
  sb_json_str(&quoted, sym_str(w->c, loc_place(w->c, where)));
  return w->places.v[where.i] = sb_str(&quoted);
}

static const char *head_of(writer *w, const trace_kind *k, u8 flags) { // up to the rank
  const u32 key = k->what << 8 | flags;
  while (w->heads.n <= key) *vec_push(w->a, &w->heads) = NULL;
  if (w->heads.v[key]) return w->heads.v[key];
  strbuf s = {.a = w->a};
  sb_put(&s, "{\"ph\":\"X\",\"name\":");
  sb_json_str(&s, sym_str(w->c, w->t->name[k->what]));
  sb_fmt(&s, ",\"cat\":\"%s\",\"pid\":",
         w->t->category          ? sym_str(w->c, w->t->category[flags])
         : k->is == TRACE_KERNEL ? chrome_category(flags)
                                 : trace_is_name((trace_is)k->is));
  return w->heads.v[key] = sb_str(&s);
}

static void put_number(writer *w, const char *key, i64 x) {
  sb_put(w->out, key);
  sb_i64(w->out, x);
}

static void put_task(writer *w, const trace_task *t) { // in PyTorch's notation
  sb_fmt(w->out, "\"%u%c%u\"", t->stage, t->letter, t->microbatch);
}

static void put_edge(writer *w, char phase, i64 ps) {
  open_event(w);
  sb_fmt(w->out, "{\"ph\":\"%c\",\"name\":", phase);
  put_task(w, &w->t->task[w->task]);
  sb_fmt(w->out, ",\"cat\":\"task\",\"pid\":%u,\"tid\":%u,\"ts\":", w->lane / w->t->nstreams,
         w->lane % w->t->nstreams);
  put_us(w->out, ps);
  sb_char(w->out, '}');
}

// A slice around all that a task runs, one instruction after the other. Its sends are not in it.
static void put_around(writer *w, u32 lane, u32 task, const kept *e) {
  if (task && w->t->task[task].send) task = 0;
  if (w->task && (w->task != task || w->lane != lane)) put_edge(w, 'E', w->end_ps), w->task = 0;
  if (task && !w->task) w->task = task, w->lane = lane, put_edge(w, 'B', e->start_ps);
  if (e) w->end_ps = e->start_ps + e->dur_ps;
}

static void put_held(writer *w, u32 rank, const kept *e) {
  if (!e->held_bytes || w->held[rank] == e->held_bytes) return;
  w->held[rank] = e->held_bytes;
  open_event(w);
  put_number(w, "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":", rank);
  sb_put(w->out, ",\"ts\":");
  put_us(w->out, e->start_ps);
  put_number(w, ",\"args\":{\"bytes\":", e->held_bytes);
  sb_put(w->out, "}}");
}

static void put_event(writer *w, u32 lane, const kept *e) {
  const trace_kind *k = &w->t->kind[e->kind];
  u32 rank = lane / w->t->nstreams;
  put_held(w, rank, e);
  put_around(w, lane, e->task, e);
  open_event(w);
  // What was executed and moved nothing to another rank is no communication.
  put_number(w, head_of(w, k, w->t->process && !e->comm ? k->flags & ~TRACE_COMM : k->flags), rank);
  put_number(w, ",\"tid\":", lane % w->t->nstreams);
  sb_put(w->out, ",\"ts\":");
  put_us(w->out, e->start_ps);
  sb_put(w->out, ",\"dur\":");
  put_us(w->out, e->dur_ps);
  put_number(w, ",\"args\":{\"step\":", e->step);
  if (e->microbatch != TRACE_NONE) put_number(w, ",\"microbatch\":", e->microbatch);
  if (e->task) sb_put(w->out, ",\"task\":"), put_task(w, &w->t->task[e->task]);
  if (e->layer) put_number(w, ",\"layer\":", (i64)e->layer - 1);
  if (k->bytes >= 0) put_number(w, ",\"bytes\":", k->bytes);
  if (e->match) put_number(w, ",\"match\":", e->match);
  if (e->launch) put_number(w, ",\"launch\":", e->launch);
  if (e->waited_ps) sb_put(w->out, ",\"waited\":"), put_us(w->out, e->waited_ps);
  if (e->comm) put_own_comm(w->out, w->c, &w->comms.v[e->comm - 1]);
  if (w->o->functions && w->t->func && w->t->func[k->func].i)
    sb_put(w->out, ",\"function\":"), sb_json_str(w->out, sym_str(w->c, w->t->func[k->func]));
  sb_put(w->out, place_of(w, k->where));
  sb_put(w->out, "}}");
  flush(w, FLUSHED);
  if (e->from_lane / w->t->nstreams == rank || w->o->no_arrows || w->arrows.n == ARROWS_MOST) return;
  *vec_push(w->a, &w->arrows) =
      (arrow){e->from_ps, MAX(e->start_ps + e->waited_ps, e->from_ps), e->from_lane, lane};
}

static kept keep(writer *w, const trace_event *e) {
  if (e->comm) *vec_push(w->a, &w->comms) = *e->comm;
  return (kept){.start_ps = e->start_ps,
                .dur_ps = e->dur_ps,
                .waited_ps = e->waited_ps,
                .from_ps = e->from_ps,
                .held_bytes = e->held_bytes,
                .kind = e->kind,
                .microbatch = e->microbatch,
                .from_lane = e->from_lane,
                .task = e->task,
                .layer = e->layer,
                .match = e->match,
                .step = e->step,
                .launch = e->launch,
                .comm = e->comm ? w->comms.n : 0};
}

static void put_now(void *arg, const trace_event *e) {
  writer *w = arg;
  const kept k = keep(w, e);
  put_event(w, e->lane, &k);
  w->comms.n = 0;
}

static void put_later(void *arg, const trace_event *e) {
  writer *w = arg;
  w->buffer[w->at[e->lane]++] = keep(w, e);
}

// Lane by lane, each in the order in which it is played.
static void put_events(writer *w) {
  const trace_source *t = w->t;
  const u32 lanes = t->nranks * t->nstreams, most = w->o->buffered ? w->o->buffered : BUFFERED;
  w->at = NEWN(w->a, u32, lanes);
  w->buffer = NEWN(w->a, kept, MIN(trace_events(t), most));
  for (u32 from = 0, to; from < lanes; from = to) {
    u64 n = 0;
    for (to = from; to < lanes && (to == from || n + t->count[to] <= most); n += t->count[to++])
      w->at[to] = (u32)n;
    if (!n) continue;
    t->play(t, w->tmp, from, to, n > most ? put_now : put_later, w);
    for (u32 lane = from, k = 0; n <= most && lane < to; lane++)
      for (; k < w->at[lane]; k++) put_event(w, lane, &w->buffer[k]);
    w->comms.n = 0;
  }
}

// One arrow from one member of a rendezvous to each of the others, where its wait ends.
static void put_arrows(writer *w) {
  for (u32 k = 0; k < w->arrows.n; k++) {
    const arrow *x = &w->arrows.v[k];
    for (u32 end = 0; end < 2; end++) {
      open_event(w);
      sb_fmt(w->out,
             "{\"ph\":\"%s,\"name\":\"meet\",\"cat\":\"meet\",\"id\":%u,\"pid\":%u,\"tid\":%u,\"ts\":",
             end ? "f\",\"bp\":\"e\"" : "s\"", k + 1, (end ? x->to : x->from) / w->t->nstreams,
             (end ? x->to : x->from) % w->t->nstreams);
      put_us(w->out, end ? x->to_ps : x->from_ps);
      sb_char(w->out, '}');
    }
    flush(w, FLUSHED);
  }
}

static void print_to(ctx *c, const trace_source *t, const timeline_opts *o, strbuf *out, file_out *file) {
  static const timeline_opts plain = {.title = NULL};
  writer w = {.c = c, .t = t, .o = o ? o : &plain, .out = out, .file = file};
  w.a = arena_new();
  w.tmp = arena_new();
  w.held = ZNEWN(w.a, i64, t->nranks + 1);
  sb_put(out, "{\"displayTimeUnit\":\"ms\"");
  if (!w.o->no_mark) sb_put(out, "," TRACE_HEDDLE_MARK);
  if (t->process) sb_fmt(out, ",\"baseTimeNanoseconds\":%lld", (long long)t->process[t->nranks - 1].base_ns);
  if (w.o->title) {
    sb_put(out, ",\"otherData\":{\"title\":");
    sb_json_str(out, w.o->title);
    sb_char(out, '}');
  }
  sb_put(out, ",\"traceEvents\":[");
  put_names(&w);
  put_events(&w);
  put_around(&w, 0, 0, NULL);
  put_arrows(&w);
  sb_put(out, "\n]}\n");
  flush(&w, 0);
  arena_free(w.tmp);
  arena_free(w.a);
}

void chrome_print(ctx *c, const trace_source *t, const timeline_opts *o, strbuf *out) {
  print_to(c, t, o, out, NULL);
}

bool chrome_write(ctx *c, const trace_source *t, const timeline_opts *o, const char *path) {
  arena *a = arena_new();
  strbuf out = {.a = a};
  file_out *f = file_begin(c, a, path);
  if (f) print_to(c, t, o, &out, f);
  bool ok = f && file_end(f);
  arena_free(a);
  return ok;
}
