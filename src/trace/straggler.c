// straggler.c - timelines of pipelined jobs by operation: one event for every operation of every worker and step,
// with "step", "model_chunk", "mb_id" and "seq_id", as JSON. Not the same as a table (straggler_table.c), nor what the
// operations wait for (diagnose/).
//
// Idea: a JSON array whose elements are read one at a time, so that only the columns stay in memory and a file that was
// cut off is read as far as it goes. The stage and tensor rank of a worker are in the names of its threads ("PP rank 1, TP rank 0, compute"). Names come last in the file, so
// events are kept until all are known. In the published timelines a communication begins when its last member is
// there; what was recorded before that is not in them.
#include "trace/straggler.h"
#include <math.h>

static bool is_table(const char *start, size_t n) { return n >= 4 && !memcmp(start, "PAR1", 4); }

bool trace_knows_straggler(const char *start, size_t n) {
  return is_table(start, n) || (*start == '[' && strstr(start, "\"seq_id\"") && strstr(start, "\"mb_id\""));
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
  const u32 k = straggler_thread(l, pid, tid); // before the array is looked at: it may move
  thread *t = &l->threads.v[k];
  t->named = true, t->stage = stage, t->tensor = tensor;
  t->kind = sym_of(l->x->c, name->str + used);
  return true;
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
  operation o = {.name = sym_of(l->x->c, name->str), .row = straggler_row(name->str), .seq = -1};
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
  o.thread = straggler_thread(l, pid, tid);
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

bool trace_read_straggler(reading *x) {
  timeline l = {.x = x, .tmp = arena_new()};
  char start[5];
  const bool table = is_table(start, trace_begin(x->c, x->path, start, 4));
  if (!table) take_all(&l);
  const bool ok = (!table || straggler_table(&l)) && straggler_put(&l);
  arena_free(l.tmp);
  return ok;
}
