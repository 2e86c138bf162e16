// chrome.c - event columns as Trace Event Format JSON. Not a viewer.
//
// Idea: one line per event, in order of rank, stream and start, so that equal timelines are equal files. The
// name of an event is its operator, its place in the user's model is an argument; colours come from the
// category.
#include "report/report.h"

enum { ARROWS_MOST = 100000 }; // viewers get slow

typedef struct {
  ctx *c;
  const trace *t;
  const chrome_opts *o;
  strbuf *out;
  bool comma;
  VEC(const char *) places, heads; // by location; by name and flags
} writer;

static void open_event(writer *w) {
  sb_put(w->out, w->comma ? ",\n" : "\n");
  w->comma = true;
}

// Picoseconds as microseconds, exactly.
static void put_us(strbuf *out, i64 ps) {
  i64 whole = ps / 1000000, part = ps % 1000000;
  if (ps < 0) sb_char(out, '-');
  sb_i64(out, whole < 0 ? -whole : whole);
  part = part < 0 ? -part : part;
  if (!part) return;
  char digits[8];
  for (u32 k = 6; k-- > 0; part /= 10) digits[k] = (char)('0' + part % 10);
  u32 n = 6;
  while (digits[n - 1] == '0') n--;
  sb_char(out, '.');
  sb_putn(out, digits, n);
}

static void put_meta(writer *w, const char *what, u32 pid, i64 tid, const char *name) {
  open_event(w);
  sb_fmt(w->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u", what, pid);
  if (tid >= 0) sb_fmt(w->out, ",\"tid\":%u", (u32)tid);
  sb_put(w->out, ",\"args\":{\"name\":");
  sb_json_str(w->out, name);
  sb_put(w->out, "}}");
}

static void put_sort(writer *w, const char *what, u32 pid, i64 tid, u32 index) {
  open_event(w);
  sb_fmt(w->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u", what, pid);
  if (tid >= 0) sb_fmt(w->out, ",\"tid\":%u", (u32)tid);
  sb_fmt(w->out, ",\"args\":{\"sort_index\":%u}}", index);
}

static void put_names(writer *w, const u32 *order) {
  const trace *t = w->t;
  char text[32];
  u32 rank = TRACE_NONE, strm = TRACE_NONE;
  for (u32 k = 0; k < t->n; k++) {
    u32 e = order[k];
    if (t->rank[e] != rank) {
      rank = t->rank[e];
      strm = TRACE_NONE;
      snprintf(text, sizeof text, "rank %u", rank);
      put_meta(w, "process_name", rank, -1, w->o->rank_name ? w->o->rank_name[rank] : text);
      put_sort(w, "process_sort_index", rank, -1, rank);
    }
    if (t->stream[e] != strm) {
      strm = t->stream[e];
      put_meta(w, "thread_name", rank, strm, sym_str(w->c, t->stream_name[strm]));
      put_sort(w, "thread_sort_index", rank, strm, strm);
    }
  }
}

static const char *category(u8 flags) {
  if (flags & TRACE_COMM) return "communication";
  if (flags & TRACE_UPDATE) return "update";
  if (flags & TRACE_RECOMPUTE) return "recompute";
  return flags & TRACE_BACKWARD ? "backward" : "forward";
}

// Parts of events that repeat are made once.
static const char *place_of(writer *w, loc where) {
  const loc_info *l = loc_get(w->c, where);
  if (!l) return "";
  while (w->places.n <= where.i) *vec_push(w->out->a, &w->places) = NULL;
  if (w->places.v[where.i]) return w->places.v[where.i];
  strbuf s = {.a = w->out->a}, quoted = {.a = w->out->a};
  if (l->node.i)
    sb_put(&s, sym_str(w->c, l->node));
  else {
    sb_put(&s, sym_str(w->c, l->file));
    if (l->line) sb_fmt(&s, ":%u", l->line);
  }
  sb_put(&quoted, ",\"node\":");
  sb_json_str(&quoted, sb_str(&s));
  return w->places.v[where.i] = sb_str(&quoted);
}

static const char *head_of(writer *w, u32 e) { // up to the rank
  const trace *t = w->t;
  u32 key = t->what[e] << 8 | t->flags[e];
  while (w->heads.n <= key) *vec_push(w->out->a, &w->heads) = NULL;
  if (w->heads.v[key]) return w->heads.v[key];
  strbuf s = {.a = w->out->a};
  sb_put(&s, "{\"ph\":\"X\",\"name\":");
  sb_json_str(&s, sym_str(w->c, t->name[t->what[e]]));
  sb_fmt(&s, ",\"cat\":\"%s\",\"pid\":", category(t->flags[e]));
  return w->heads.v[key] = sb_str(&s);
}

static void put_number(writer *w, const char *key, i64 x) {
  sb_put(w->out, key);
  sb_i64(w->out, x);
}

static void put_event(writer *w, u32 e) {
  const trace *t = w->t;
  open_event(w);
  put_number(w, head_of(w, e), t->rank[e]);
  put_number(w, ",\"tid\":", t->stream[e]);
  sb_put(w->out, ",\"ts\":");
  put_us(w->out, t->start_ps[e]);
  sb_put(w->out, ",\"dur\":");
  put_us(w->out, t->dur_ps[e]);
  put_number(w, ",\"args\":{\"step\":", t->step[e]);
  if (t->microbatch[e] != TRACE_NONE) put_number(w, ",\"microbatch\":", t->microbatch[e]);
  if (t->bytes[e] >= 0) put_number(w, ",\"bytes\":", t->bytes[e]);
  sb_put(w->out, place_of(w, t->where[e]));
  sb_put(w->out, "}}");
}

// One arrow from the lowest rank of a meeting to each of the others.
static void put_arrows(writer *w, const u32 *order) {
  const trace *t = w->t;
  u32 *first = ZNEWN(w->out->a, u32, (size_t)t->nmatch + 1), arrows = 0;
  for (u32 k = 0; k < t->n && arrows < ARROWS_MOST; k++) {
    u32 e = order[k], m = t->match[e];
    if (!m) continue;
    if (!first[m]) {
      first[m] = e + 1;
      continue;
    }
    u32 ends[2] = {first[m] - 1, e};
    arrows++;
    for (u32 j = 0; j < 2; j++) {
      open_event(w);
      sb_fmt(w->out,
             "{\"ph\":\"%s,\"name\":\"meet\",\"cat\":\"meet\",\"id\":%u,\"pid\":%u,\"tid\":%u,\"ts\":",
             j ? "f\",\"bp\":\"e\"" : "s\"", arrows, t->rank[ends[j]], t->stream[ends[j]]);
      put_us(w->out, t->start_ps[ends[j]]);
      sb_char(w->out, '}');
    }
  }
}

void chrome_print(ctx *c, const trace *t, const chrome_opts *o, strbuf *out) {
  static const chrome_opts plain = {.title = NULL};
  writer w = {.c = c, .t = t, .o = o ? o : &plain, .out = out};
  u32 *order = trace_order(out->a, t);
  sb_put(out, "{\"displayTimeUnit\":\"ms\"");
  if (w.o->title) {
    sb_put(out, ",\"otherData\":{\"title\":");
    sb_json_str(out, w.o->title);
    sb_char(out, '}');
  }
  sb_put(out, ",\"traceEvents\":[");
  put_names(&w, order);
  for (u32 k = 0; k < t->n; k++) put_event(&w, order[k]);
  if (!w.o->no_arrows) put_arrows(&w, order);
  sb_put(out, "\n]}\n");
}

bool chrome_write(ctx *c, const trace *t, const chrome_opts *o, const char *path) {
  arena *a = arena_new();
  strbuf out = {.a = a};
  chrome_print(c, t, o, &out);
  bool ok = file_write(c, path, out.v, out.n);
  arena_free(a);
  return ok;
}
