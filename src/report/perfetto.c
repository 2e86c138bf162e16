// perfetto.c - a timeline as Perfetto's protobuf: packets of TrackEvent, one sequence for every track. Not when things run.
//
// Idea: a track is a packet sequence of its own, with a clock that counts from packet to packet and strings that are sent
// once, so a slice is some 30 bytes and nothing is kept but, for every track, what is open on it. Events are written as
// they are played: those of one track come in order of their start, and a reader sorts the tracks together. A slice ends
// when one comes that does not lie in it.
//
// Field numbers are those of protos/perfetto/trace of google/perfetto.
#include "report/internal.h"

enum { FLUSHED = 1 << 18, FLUSH_AT = FLUSHED - 4096, DEEP = 8, LATEST = 2 };
enum { CLOCK_REALTIME = 1, CLOCK_BOOT = 6, CLOCK_TRACK = 64 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, COUNTER = 4, SIZE_BYTES = 3 };
enum { // fields
  TRACE_PACKET = 1,
  PACKET_CLOCKS = 6,
  PACKET_TIME = 8,
  PACKET_SEQUENCE = 10,
  PACKET_EVENT = 11,
  PACKET_INTERNED = 12,
  PACKET_FLAGS = 13,
  PACKET_DEFAULTS = 59,
  PACKET_TRACK = 60,
  DEFAULTS_CLOCK = 58,
  DEFAULTS_EVENT = 11,
  EVENT_CATEGORY = 3,
  EVENT_ANNOTATION = 4,
  EVENT_TYPE = 9,
  EVENT_NAME = 10,
  EVENT_TRACK = 11,
  EVENT_NAME_TEXT = 23,
  EVENT_COUNTER = 30,
  EVENT_SOURCE = 34,
  EVENT_FLOW = 47,
  INTERNED_CATEGORY = 1,
  INTERNED_NAME = 2,
  INTERNED_ANNOTATION = 3,
  INTERNED_SOURCE = 4
};
enum { STATE_CLEARED = 1 }; // of PACKET_FLAGS
// Names that are no operator's; those of pauses end in an operator's.
enum { NAME_IDLE, NAME_PEERS, NAME_OWN };
enum { ARG_BYTES = 1, ARG_PEER, ARG_MICROBATCH, ARG_STEP, ARG_LAYER, ARGS };
static const char *const arg_name[ARGS] = {NULL, "bytes", "peer", "microbatch", "step", "layer"};

typedef struct {
  i64 at_ns;         // of its latest packet
  i64 open_ps[DEEP]; // ends of the slices that are open, outermost first
  u32 depth;
  u32 task;              // whose slice is the outermost; 0: none
  u32 layer, layer_task; // of the latest slice
  i64 end_ps;
  struct {
    i64 end_ps;
    u32 what;
  } latest[LATEST]; // events
  bool begun;
  u64 *sent; // strings that its sequence has: names, categories, places, arguments
} track;
typedef struct {
  sym node, func;
} place;

typedef struct {
  ctx *c;
  const trace_source *t;
  const timeline_opts *o;
  arena *a;
  strbuf out, packet, event, interned, inner;
  file_out *file;
  track *track; // by lane
  i64 *held;    // by rank: as it was told last
  u32 names, categories, nwords;
  hmap place_of; // of node and function -> number
  VEC(place) places;
  VEC(u32) place_at; // by location: of its node and no function
} writer;

// ---- packets -----------------------------------------------------------------------------------------------
static void put_packet(writer *w) {
  pb_put_bytes(&w->out, TRACE_PACKET, w->packet.v, w->packet.n);
  w->packet.n = 0;
  if (w->out.n < FLUSH_AT) return;
  file_put(w->file, w->out.v, w->out.n);
  w->out.n = 0;
}

static void put_message(strbuf *to, u32 field, strbuf *from) {
  pb_put_bytes(to, field, from->n ? from->v : "", from->n);
  from->n = 0;
}

static u64 track_uuid(const writer *w, u32 lane) { return w->t->nranks + 1u + lane; }
static u64 memory_uuid(const writer *w, u32 rank) {
  return w->t->nranks + 1u + (u64)w->t->nranks * w->t->nstreams + rank;
}

static void put_process(writer *w, u32 rank, const char *name) {
  strbuf process = {.a = w->a};
  pb_put_uint(&process, 1, rank + 1); // 0 is the idle process of a kernel
  pb_put_uint(&process, 3, rank + 1); // its place among the others
  pb_put_text(&process, 6, name);
  pb_put_uint(&w->inner, 1, rank + 1);
  put_message(&w->inner, 3, &process);
  put_message(&w->packet, PACKET_TRACK, &w->inner);
  put_packet(w);
}

static void put_thread(writer *w, u32 rank, u32 number) {
  const u32 lane = rank * w->t->nstreams + number;
  strbuf thread = {.a = w->a};
  pb_put_uint(&thread, 1, rank + 1);
  pb_put_uint(&thread, 2,
              number ? w->t->nranks + 1 + lane : rank + 1); // the first one is the process's main thread
  pb_put_text(&thread, 5, sym_str(w->c, w->t->stream_name[number]));
  pb_put_uint(&w->inner, 1, track_uuid(w, lane));
  put_message(&w->inner, 4, &thread);
  put_message(&w->packet, PACKET_TRACK, &w->inner);
  put_packet(w);
}

static void put_tracks(writer *w) {
  const trace_source *t = w->t;
  for (u32 rank = 0; rank < t->nranks; rank++) {
    bool named = false;
    for (u32 s = 0; s < t->nstreams; s++) {
      if (!t->count[rank * t->nstreams + s]) continue;
      if (!named)
        put_process(w, rank, w->o->rank_name ? w->o->rank_name[rank] : arena_printf(w->a, "rank %u", rank));
      named = true;
      put_thread(w, rank, s);
    }
  }
}

// A counter of what the rank holds, below its process.
static void put_memory_track(writer *w, u32 rank) {
  strbuf counter = {.a = w->a};
  pb_put_uint(&counter, 3, SIZE_BYTES);
  pb_put_uint(&w->inner, 1, memory_uuid(w, rank));
  pb_put_uint(&w->inner, 5, rank + 1);
  pb_put_text(&w->inner, 2, "memory");
  put_message(&w->inner, 8, &counter);
  put_message(&w->packet, PACKET_TRACK, &w->inner);
  put_packet(w);
}

static void put_clock(writer *w, u32 id, i64 ns, bool incremental) {
  strbuf clock = {.a = w->a};
  pb_put_uint(&clock, 1, id);
  pb_put_uint(&clock, 2, (u64)ns);
  if (incremental) pb_put_uint(&clock, 3, 1);
  put_message(&w->inner, 1, &clock);
}

// The first packet of a track's sequence: its clock begins with the trace.
static void begin_track(writer *w, u32 lane) {
  const trace_process *p = w->t->process ? &w->t->process[lane / w->t->nstreams] : NULL;
  track *x = &w->track[lane];
  x->begun = true;
  x->sent = ZNEWN(w->a, u64, w->nwords);
  pb_put_uint(&w->packet, PACKET_SEQUENCE, lane + 1);
  pb_put_uint(&w->packet, PACKET_FLAGS, STATE_CLEARED);
  put_clock(w, CLOCK_BOOT, 0, false);
  put_clock(w, CLOCK_TRACK, 0, true);
  if (p && trace_dated(p->base_ns)) put_clock(w, CLOCK_REALTIME, p->base_ns, false);
  put_message(&w->packet, PACKET_CLOCKS, &w->inner);
  strbuf defaults = {.a = w->a};
  pb_put_uint(&defaults, EVENT_TRACK, track_uuid(w, lane));
  put_message(&w->inner, DEFAULTS_EVENT, &defaults);
  pb_put_uint(&w->inner, DEFAULTS_CLOCK, CLOCK_TRACK);
  put_message(&w->packet, PACKET_DEFAULTS, &w->inner);
  put_packet(w);
}

// What is in w->event, on the track at that time.
static void put_at(writer *w, u32 lane, i64 ps) {
  track *x = &w->track[lane];
  const i64 ns = MAX((ps - w->o->earliest_ps) / 1000, x->at_ns); // a clock has no times below 0
  pb_put_uint(&w->packet, PACKET_TIME, (u64)(ns - x->at_ns));
  x->at_ns = ns;
  pb_put_uint(&w->packet, PACKET_SEQUENCE, lane + 1);
  put_message(&w->packet, PACKET_EVENT, &w->event);
  if (w->interned.n) put_message(&w->packet, PACKET_INTERNED, &w->interned);
  put_packet(w);
}

// ---- strings -------------------------------------------------------------------------------------------------
// Has the track's sequence string number `bit` of all? If not, the caller sends it.
static bool is_sent(writer *w, track *x, u32 bit) {
  const u32 word = bit / 64;
  if (word >= w->nwords) { // places become known on the way
    const u32 n = 2 * word + 1;
    for (u32 l = 0; l < w->t->nranks * w->t->nstreams; l++) {
      if (!w->track[l].sent) continue;
      u64 *more = ZNEWN(w->a, u64, n);
      memcpy(more, w->track[l].sent, w->nwords * sizeof *more);
      w->track[l].sent = more;
    }
    w->nwords = n;
  }
  const u64 mask = 1ull << bit % 64;
  const bool was = x->sent[word] & mask;
  x->sent[word] |= mask;
  return was;
}

static void send_text(writer *w, u32 field, u32 iid, const char *text) {
  pb_put_uint(&w->inner, 1, iid);
  pb_put_text(&w->inner, 2, text);
  put_message(&w->interned, field, &w->inner);
}

static const char *name_text(writer *w, u32 name) {
  if (name < w->t->nnames) return sym_str(w->c, w->t->name[name]);
  if (name == w->t->nnames + NAME_IDLE) return "idle";
  if (name == w->t->nnames + NAME_PEERS) return "waiting for peers";
  return arena_printf(w->a, "waiting for %s", sym_str(w->c, w->t->name[name - w->t->nnames - NAME_OWN]));
}

static void put_name(writer *w, track *x, u32 name) {
  if (!is_sent(w, x, name)) send_text(w, INTERNED_NAME, name + 1, name_text(w, name));
  pb_put_uint(&w->event, EVENT_NAME, name + 1);
}

static void put_category(writer *w, track *x, const trace_kind *k, u8 flags) {
  const bool kernel = w->t->category || k->is == TRACE_KERNEL;
  const u32 number = kernel ? flags : 256u + k->is;
  if (!is_sent(w, x, w->names + number))
    send_text(w, INTERNED_CATEGORY, number + 1,
              w->t->category ? sym_str(w->c, w->t->category[flags])
              : kernel       ? chrome_category(flags)
                             : trace_is_name((trace_is)k->is));
  pb_put_uint(&w->event, EVENT_CATEGORY, number + 1);
}

static void put_arg(writer *w, track *x, u32 arg, i64 is) {
  if (!is_sent(w, x, w->names + w->categories + arg)) send_text(w, INTERNED_ANNOTATION, arg, arg_name[arg]);
  pb_put_uint(&w->inner, 1, arg);
  pb_put_uint(&w->inner, 3, (u64)is);
  put_message(&w->event, EVENT_ANNOTATION, &w->inner);
}

// The number of a place of the model, from 1; 0: none is known.
static u32 place_number(writer *w, const trace_kind *k) {
  const bool in = w->o->functions && w->t->func && w->t->func[k->func].i;
  while (!in && w->place_at.n <= k->where.i) *vec_push(w->a, &w->place_at) = 0;
  if (!in && w->place_at.v[k->where.i]) return w->place_at.v[k->where.i];
  const place p = {loc_place(w->c, k->where), in ? w->t->func[k->func] : (sym){0}};
  if (!p.node.i && !p.func.i) return 0;
  const u64 h = hash_u64((u64)p.node.i << 32 | p.func.i, 41);
  u32 number = hmap_get(&w->place_of, h);
  if (!number) {
    *vec_push(w->a, &w->places) = p;
    hmap_add(w->a, &w->place_of, h, number = w->places.n);
  }
  if (!in) w->place_at.v[k->where.i] = number;
  return number;
}

// Where in the user's model: the node as the file, the function as the function.
static void put_place(writer *w, track *x, const trace_kind *k) {
  const u32 number = place_number(w, k);
  if (!number) return;
  if (!is_sent(w, x, w->names + w->categories + ARGS + number)) {
    const place *p = &w->places.v[number - 1];
    pb_put_uint(&w->inner, 1, number);
    if (p->node.i) pb_put_text(&w->inner, 2, sym_str(w->c, p->node));
    if (p->func.i) pb_put_text(&w->inner, 3, sym_str(w->c, p->func));
    put_message(&w->interned, INTERNED_SOURCE, &w->inner);
  }
  pb_put_uint(&w->event, EVENT_SOURCE, number);
}

// ---- slices ---------------------------------------------------------------------------------------------------
static void open_slice(writer *w, u32 lane, i64 start_ps, i64 end_ps) {
  track *x = &w->track[lane];
  pb_put_uint(&w->event, EVENT_TYPE, SLICE_BEGIN);
  put_at(w, lane, start_ps);
  assert(x->depth < DEEP);
  x->open_ps[x->depth++] = end_ps;
}

static void close_slice(writer *w, u32 lane) {
  track *x = &w->track[lane];
  pb_put_uint(&w->event, EVENT_TYPE, SLICE_END);
  put_at(w, lane, x->open_ps[--x->depth]);
  if (!x->depth) x->task = 0;
}

// What is over at that time, unless it is the slice around the same task.
static void close_before(writer *w, u32 lane, i64 ps, u32 task) {
  track *x = &w->track[lane];
  while (x->depth > (x->task ? 1u : 0u) && (x->open_ps[x->depth - 1] <= ps || x->depth == DEEP - 1))
    close_slice(w, lane);
  if (x->task && x->depth == 1 && x->task != task) close_slice(w, lane);
}

static void put_simple(writer *w, u32 lane, u32 name, i64 start_ps, i64 end_ps) {
  put_name(w, &w->track[lane], name);
  open_slice(w, lane, start_ps, end_ps);
}

// A rank's first stream stands still until this begins: for those that it meets, or for what ended then on another stream.
static void put_pause(writer *w, const trace_event *e) {
  const u32 rank = e->lane / w->t->nstreams;
  track *x = &w->track[e->lane];
  u32 name = w->t->nnames + (e->match ? NAME_PEERS : NAME_IDLE);
  for (u32 s = 1; s < w->t->nstreams; s++)
    for (u32 k = 0; k < LATEST; k++) {
      const track *y = &w->track[rank * w->t->nstreams + s];
      if (y->begun && y->latest[k].end_ps == e->start_ps && e->start_ps)
        name = w->t->nnames + NAME_OWN + y->latest[k].what;
    }
  put_simple(w, e->lane, name, x->end_ps, e->start_ps);
  close_slice(w, e->lane);
}

static void put_task(writer *w, const trace_event *e) {
  const trace_task *t = &w->t->task[e->task];
  track *x = &w->track[e->lane];
  char name[48];
  snprintf(name, sizeof name, "%u%c%u", t->stage, t->letter, t->microbatch); // in PyTorch's notation
  pb_put_text(&w->event, EVENT_NAME_TEXT, name);
  open_slice(w, e->lane, e->start_ps, e->start_ps);
  x->task = e->task;
}

static void put_args(writer *w, track *x, const trace_kind *k, const trace_event *e) {
  if (k->bytes >= 0 || (e->comm && e->comm->bytes >= 0))
    put_arg(w, x, ARG_BYTES, k->bytes >= 0 ? k->bytes : e->comm->bytes);
  if (e->comm && e->comm->peer != TRACE_NONE) put_arg(w, x, ARG_PEER, e->comm->peer);
  if (k->is == TRACE_STEP) put_arg(w, x, ARG_STEP, e->step);
  if (!e->task && e->microbatch != TRACE_NONE) put_arg(w, x, ARG_MICROBATCH, e->microbatch);
  if (e->layer && (x->layer != e->layer || x->layer_task != e->task)) // said once for all that follow
    put_arg(w, x, ARG_LAYER, (i64)e->layer - 1);
  x->layer = e->layer, x->layer_task = e->task;
  if (e->match && !w->o->no_arrows) pb_put_fixed64(&w->event, EVENT_FLOW, e->match);
}

static void put_held(writer *w, const trace_event *e) {
  const u32 rank = e->lane / w->t->nstreams;
  if (!e->held_bytes || w->held[rank] == e->held_bytes) return;
  if (!w->held[rank]) put_memory_track(w, rank);
  w->held[rank] = e->held_bytes;
  pb_put_uint(&w->event, EVENT_TYPE, COUNTER);
  pb_put_uint(&w->event, EVENT_TRACK, memory_uuid(w, rank));
  pb_put_uint(&w->event, EVENT_COUNTER, (u64)e->held_bytes);
  put_at(w, e->lane, e->start_ps);
}

static void put_event(void *arg, const trace_event *e) {
  writer *w = arg;
  const trace_kind *k = &w->t->kind[e->kind];
  track *x = &w->track[e->lane];
  const i64 end_ps = e->start_ps + e->dur_ps;
  const bool in_task = e->task && !w->t->task[e->task].send;
  if (!x->begun) begin_track(w, e->lane);
  close_before(w, e->lane, e->start_ps, in_task ? e->task : 0);
  if (!w->t->process && !w->t->nthreads && e->lane % w->t->nstreams == 0 && !x->depth &&
      e->start_ps > x->end_ps)
    put_pause(w, e);
  put_held(w, e);
  if (in_task && !x->task) put_task(w, e);
  put_name(w, x, k->what);
  put_category(w, x, k, w->t->process && !e->comm ? k->flags & (u8)~TRACE_COMM : k->flags);
  put_place(w, x, k);
  put_args(w, x, k, e);
  open_slice(w, e->lane, e->start_ps, end_ps);
  if (x->task) x->open_ps[0] = MAX(x->open_ps[0], end_ps);
  x->end_ps = MAX(x->end_ps, end_ps);
  x->latest[1] = x->latest[0];
  x->latest[0].end_ps = end_ps, x->latest[0].what = k->what;
  if (!e->waited_ps || w->t->category) return; // those of a comparison are events of their own
  put_simple(w, e->lane, w->t->nnames + NAME_PEERS, e->start_ps, e->start_ps + e->waited_ps);
}

bool perfetto_write(ctx *c, const trace_source *t, const timeline_opts *o, const char *path) {
  static const timeline_opts plain = {.title = NULL};
  const u32 lanes = t->nranks * t->nstreams;
  arena *a = arena_new(), *tmp = arena_new();
  writer w = {.c = c, .t = t, .o = o ? o : &plain, .a = a, .file = file_begin(c, a, path)};
  if (w.file) {
    w.out.a = w.packet.a = w.event.a = w.interned.a = w.inner.a = a;
    w.track = ZNEWN(a, track, lanes + 1);
    w.held = ZNEWN(a, i64, t->nranks + 1);
    w.names = 2 * t->nnames + NAME_OWN, w.categories = 256 + TRACE_KINDS;
    w.nwords = (w.names + w.categories + ARGS) / 64 + 2;
    put_tracks(&w);
    t->play(t, tmp, 0, lanes, put_event, &w);
    for (u32 l = 0; l < lanes; l++)
      while (w.track[l].depth) close_slice(&w, l);
    file_put(w.file, w.out.v, w.out.n);
  }
  const bool ok = w.file && file_end(w.file);
  arena_free(tmp);
  arena_free(a);
  return ok;
}
