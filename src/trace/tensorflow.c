// tensorflow.c - timelines of TensorFlow: trace.json.gz of its profiler (TensorBoard's plugin, 2019 to 2022), the older
// Timeline of RunMetadata, and what smdebug recorded of TensorFlow and of its own.
//
// A process of the file is a device or the host: "/host:CPU", "/device:GPU:0", "/job:worker/task:0/gpu:0/stream:13
// Compute". On a device, threads named "Stream #N" have what ran; "TensorFlow Ops", "XLA Modules", "Steps" and the like
// say the same again, by what it was for. The file is of one host process: one process here, devices are lanes.
#include "trace/chrome.h"
#include "trace/comm_words.h"
#include <ctype.h>

typedef struct {
  bool device, stream; // stream: what runs on the device; else what a device's events were for
  bool steps;          // of a device: its steps
  i64 of, id;
} place; // of a track
typedef struct {
  chrome k;
  place *place;
  sym step;  // what events of steps are called; 0: none of the host has a number
  i64 first; // of the devices that have steps, the lowest; -1: none
} tensorflow;

bool trace_knows_tensorflow(const char *start, size_t n) {
  (void)n;
  const char *p = start + strspn(start, " \t\r\n");
  if (*p == '[') return strstr(p, "\"start_time_since_epoch_in_micros\"") && strstr(p, "\"process_name\"");
  if (*p != '{' || !strstr(p, "\"traceEvents\"") || strstr(p, "\"schemaVersion\"")) return false;
  return strstr(p, "\"highres-ticks\"") || chrome_start_has(p, "\"name\"", "/host:", true) ||
         chrome_start_has(p, "\"name\"", "/device:", false);
}

// ---- devices ------------------------------------------------------------------------------------------------
static bool device_number(const char *process, i64 *of) {
  static const char *const words[] = {"/device:GPU:", "/device:TPU:", "/gpu:", "/device:gpu:"};
  for (u32 k = 0; k < COUNT_OF(words); k++)
    if (chrome_number_after(process, words[k], of)) return true;
  return false;
}

static place place_of(const tensorflow *f, const chrome_track *t) {
  const char *process = sym_str(f->k.x->c, t->process), *thread = sym_str(f->k.x->c, t->thread);
  place p = {.of = -1, .id = -1};
  p.device = device_number(process, &p.of);
  if (!chrome_number(sym_str(f->k.x->c, t->tid), &p.id)) p.id = -1;
  if (!p.device) return p;
  i64 stream;
  if (chrome_number_after(process, "/stream:", &stream)) // of RunMetadata: a process of its own
    p.stream = true, p.id = stream;
  else if (strstr(process, "/stream:all") || strstr(process, "/memcpy"))
    p.stream = false; // all streams again
  else if (strstr(process, " Compute"))
    p.device = false, p.of = -1; // the host's part of operators that are for the device
  else if (chrome_number_after(thread, "Stream #", &stream))
    p.stream = true, p.id = stream;
  else
    p.stream = !*thread || !strcmp(thread, "XLA Ops"), p.steps = !strcmp(thread, "Steps");
  return p;
}

// Where streams are not told apart, all of them are one.
static void only_all(tensorflow *f) {
  bool single = false;
  for (u32 i = 0; i < f->k.tracks.n; i++) single |= f->place[i].stream;
  for (u32 i = 0; i < f->k.tracks.n && !single; i++)
    if (strstr(sym_str(f->k.x->c, f->k.tracks.v[i].process), "/stream:all")) f->place[i].stream = true;
}

// ---- events -------------------------------------------------------------------------------------------------
static sym without_number(tensorflow *f, sym name) { // "train 12" is "train"
  const char *s = sym_str(f->k.x->c, name);
  u32 n = sym_len(f->k.x->c, name);
  while (n && (isdigit((unsigned char)s[n - 1]) || s[n - 1] == ' ' || s[n - 1] == '#')) n--;
  return sym_ofn(f->k.x->c, s, n);
}

// Steps are those of the host that have a number, of the kind that comes first; else those of the first device.
static void find_steps(tensorflow *f) {
  f->first = -1;
  for (u32 i = 0; i < f->k.events.n; i++) {
    chrome_event *e = &f->k.events.v[i];
    const place *p = &f->place[e->track];
    i64 n;
    if (!p->device && e->step != TRACE_NONE && e->ended && !f->step.i) f->step = without_number(f, e->name);
    if (!p->steps) continue;
    if (chrome_number(sym_str(f->k.x->c, e->name), &n) && n >= 0 && n < TRACE_NONE) e->step = (u32)n;
    if (e->step != TRACE_NONE && (f->first < 0 || p->of < f->first)) f->first = p->of;
  }
}

static bool is_step(tensorflow *f, const chrome_event *e) {
  const place *p = &f->place[e->track];
  if (e->step == TRACE_NONE || e->phase != 'X') return false;
  return f->step.i ? !p->device && without_number(f, e->name).i == f->step.i : p->steps && p->of == f->first;
}

static bool begins(const char *s, const char *a, const char *b) {
  return !strncmp(s, a, strlen(a)) || !strncmp(s, b, strlen(b));
}

static void put_event(tensorflow *f, const chrome_event *e, u32 process) {
  ctx *c = f->k.x->c;
  const place *p = &f->place[e->track];
  const char *name = sym_str(c, e->name);
  trace_comm m = trace_comm_of((sym){0});
  bool comm = false;
  trace_is is = p->device ? TRACE_NOTE : TRACE_OP;
  if (e->phase != 'X') {
    is = TRACE_OTHER;
  } else if (is_step(f, e)) {
    is = TRACE_STEP;
  } else if (p->device && p->stream) {
    is = begins(name, "Memcpy", "MEMCPY")   ? TRACE_COPY
         : begins(name, "Memset", "MEMSET") ? TRACE_FILL
                                            : TRACE_KERNEL;
    comm = is == TRACE_KERNEL && comm_of_kernel(c, name, sym_len(c, e->name), &m);
  } else if (!strcmp(sym_str(c, f->k.tracks.v[e->track].process), "NcclManager") && *name == 'k') {
    m.op = comm_op_of(c, name + 1, sym_len(c, e->name) - 1); // "kAllReduce"
    comm = m.op.i;
  }
  const u32 n = chrome_put(&f->k, e, is, process, p->device, p->of, p->id);
  if (n != TRACE_NONE && is != TRACE_STEP)
    f->k.x->t->step[n] = TRACE_NONE; // numbers of others count other things
  if (n != TRACE_NONE && comm) trace_add_comm(f->k.x->a, f->k.x->t, n, m);
}

bool trace_read_tensorflow(reading *x) {
  tensorflow f = {.k = {.x = x, .tmp = arena_new()}};
  const u32 process = x->t->processes.n;
  const bool ok = chrome_read(&f.k);
  if (ok) {
    *vec_push(x->a, &x->t->processes) = (trace_process){.rank = x->rank, .pid = -1, .base_ns = f.k.base_ns};
    f.place = NEWN(f.k.tmp, place, f.k.tracks.n + 1);
    for (u32 i = 0; i < f.k.tracks.n; i++) f.place[i] = place_of(&f, &f.k.tracks.v[i]);
    only_all(&f);
    find_steps(&f);
    for (u32 i = 0; i < f.k.events.n; i++) put_event(&f, &f.k.events.v[i], process);
  }
  arena_free(f.k.tmp);
  return ok;
}
