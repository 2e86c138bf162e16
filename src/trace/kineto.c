// kineto.c - the files of PyTorch's profiler, of all versions from 2020 to 2026: their members and events, in any
// order. Not what connects events, which is known at the end (kineto_link.c).
//
// Idea: most of a file is of no interest: stacks, shapes, flows. As soon as an event's category says that nobody
// wants it, what is left of it is passed over. What is taken goes straight into columns, all but its start, which is kept in ns
// of the file until kineto_link knows what it is relative to.
#include "trace/kineto.h"
#include <ctype.h>

bool trace_knows_kineto(const char *start, size_t n) {
  const char *p = start;
  if (n > 3 && !memcmp(p, "\xef\xbb\xbf", 3)) p += 3;
  while (*p && *p <= ' ') p++;
  if (*p != '{') return false;
  return strstr(p, "\"traceEvents\"") ||
         (strstr(p, "\"schemaVersion\"") && strstr(p, "\"deviceProperties\""));
}

// Some 140 years, so that the difference of two times in ns has 63 bits.
static const i64 MOST_US = (i64)4500000 * 1000000 * 1000, MOST_DUR_US = (i64)40 * 24 * 3600 * 1000000;

// ---- one event ----------------------------------------------------------------------------------------------
enum { KNOWS_CAT = 1, KNOWS_NAME = 2 };
enum {
  PLAIN,
  STEP_NAME,
  PARAM_NAME,
  NCCL_NAME,
  MEMORY_NAME
}; // what a name says: ProfilerStep#3, record_param_comms, nccl:send, [memory]
typedef struct {
  char phase; // 0: not said
  u32 knows;
  trace_is is;
  bool on_device, is_other_flow; // is_other_flow: from forward to backward
  u8 says;
  sym name, thread_name; // thread_name: what a metadata event has
  u32 step;
  i64 pid, tid, ts_us, dur_us;
  u32 ts_rest, dur_rest; // millionths
  bool has_ts, has_dur, bad;
  i64 correlation, external, device, stream, id; // id: of a flow
  i64 wait_on, record;                           // of a WAIT
  bool has_comm, comm_kernel, waits;
  i64 group_start, group_stride;
  trace_comm comm;
  i64 device_type; // ABSENT: it says nothing of memory
  trace_memory memory;
} event;

typedef struct {
  const char *name;
  u8 n, is; // n: bytes of the name
  bool on_device;
} category;
#define CATEGORY(name, is, on_device)                                                                        \
  { name, sizeof name - 1, is, on_device }
static const category categories[] = {
    CATEGORY("cpu_op", TRACE_OP, false),
    CATEGORY("cuda_runtime", TRACE_CALL, false),
    CATEGORY("kernel", TRACE_KERNEL, true),
    CATEGORY("python_function", TRACE_STACK, false),
    CATEGORY("user_annotation", TRACE_NOTE, false),
    CATEGORY("cuda_driver", TRACE_CALL, false),
    CATEGORY("gpu_memcpy", TRACE_COPY, true),
    CATEGORY("gpu_memset", TRACE_FILL, true),
    CATEGORY("cuda_sync", TRACE_WAIT, true),
    CATEGORY("gpu_user_annotation", TRACE_NOTE, true),
    CATEGORY("Operator", TRACE_OP, false), // until 2022
    CATEGORY("Runtime", TRACE_CALL, false),
    CATEGORY("Kernel", TRACE_KERNEL, true),
    CATEGORY("Memcpy", TRACE_COPY, true),
    CATEGORY("Memset", TRACE_FILL, true),
    CATEGORY("concurrent_kernel", TRACE_KERNEL, true),
    CATEGORY("collective_comm", TRACE_KERNEL, true),
    CATEGORY("mtia_ccp_events", TRACE_KERNEL, true),
    CATEGORY("hpu_op", TRACE_KERNEL, true),
    CATEGORY("cuda_event", TRACE_OTHER, true),
};
#undef CATEGORY

static bool ends_in(scan_text t, const char *with) {
  const size_t n = strlen(with);
  return t.n >= n && !memcmp(t.v + t.n - n, with, n);
}

static void take_category(event *e, scan_text t) {
  e->knows |= KNOWS_CAT;
  e->is = TRACE_OTHER, e->on_device = false;
  e->is_other_flow = scan_eq(t, "fwdbwd");
  for (u32 k = 0; k < COUNT_OF(categories); k++)
    if (t.n == categories[k].n && !memcmp(t.v, categories[k].name, t.n)) {
      e->is = (trace_is)categories[k].is, e->on_device = categories[k].on_device;
      return;
    }
  if (ends_in(t, "_runtime") || ends_in(t, "_driver")) e->is = TRACE_CALL; // xpu_, mtia_, privateuse1_
}

static bool starts_with(scan_text t, const char *with) {
  const size_t n = strlen(with);
  return t.n >= n && !memcmp(t.v, with, n);
}

// The number of "ProfilerStep#12", also with a colon or blank after the name.
static u32 step_number(scan_text t) {
  u64 x = 0;
  u32 k = (u32)strlen("ProfilerStep");
  while (k < t.n && !isdigit((unsigned char)t.v[k])) k++;
  if (k == t.n) return TRACE_NONE;
  for (; k < t.n && isdigit((unsigned char)t.v[k]) && x < UINT32_MAX; k++) x = x * 10 + (u64)(t.v[k] - '0');
  return x < UINT32_MAX ? (u32)x : TRACE_NONE;
}

static void take_name(kineto *k, event *e, scan_text t) {
  scan_plain(k->s, &t);
  e->knows |= KNOWS_NAME;
  e->says = starts_with(t, "ProfilerStep")     ? STEP_NAME
            : scan_eq(t, "record_param_comms") ? PARAM_NAME
            : starts_with(t, "nccl:")          ? NCCL_NAME
            : scan_eq(t, "[memory]")           ? MEMORY_NAME
                                               : PLAIN;
  if (e->says == STEP_NAME) e->step = step_number(t);
  if (e->says == NCCL_NAME) e->comm.op = comm_op_of(k->x->c, t.v + 5, t.n - 5), e->has_comm = e->comm.op.i;
  const bool may_be_kernel = !(e->knows & KNOWS_CAT) || e->is == TRACE_KERNEL;
  if (may_be_kernel) e->comm_kernel = comm_of_kernel(k->x->c, t.v, t.n, &e->comm);
  e->name = sym_ofn(k->x->c, t.v, t.n);
}

// A number, also in a string and after a word: "stream 7". False: no number.
static bool number_of(scan_text t, i64 *out) {
  u32 from = t.n;
  if (scan_integer(t, out)) return true;
  while (from && isdigit((unsigned char)t.v[from - 1])) from--;
  if (from && t.v[from - 1] == '-') from--;
  return from < t.n && from > 0 && t.v[from - 1] == ' ' &&
         scan_integer((scan_text){t.v + from, t.n - from, false}, out);
}

// A process or thread: its number, or one below -1 for every other name.
static i64 lane_number(kineto *k, scan_text t) {
  i64 x;
  if (number_of(t, &x)) return x;
  scan_plain(k->s, &t);
  const sym label = sym_ofn(k->x->c, t.v, t.n);
  for (u32 i = 0; i < k->labels.n; i++)
    if (k->labels.v[i].i == label.i) return -2 - (i64)i;
  *vec_push(k->tmp, &k->labels) = label;
  return -1 - (i64)k->labels.n;
}

static i64 integer_or(scan *s, i64 other) {
  scan_text t;
  i64 x;
  return scan_scalar(s, &t) && number_of(t, &x) ? x : other;
}
static sym text_of(kineto *k) {
  scan_text t;
  if (!scan_scalar(k->s, &t)) return (sym){0};
  scan_plain(k->s, &t);
  return sym_ofn(k->x->c, t.v, t.n);
}

// Shapes of an annotation: the elements of all tensors of "Input Dims", which is a list of shapes or of such lists.
static i64 elements(scan *s, u32 depth) {
  i64 all = 0, product = 1;
  bool shape = false;
  if (!scan_array(s)) return 0;
  while (scan_element(s)) {
    if (scan_at_array(s)) {
      all = depth < 8 ? add_sat(all, elements(s, depth + 1)) : (scan_skip(s), all);
    } else {
      const i64 n = integer_or(s, 0);
      product = mul_sat(product, MAX(n, 0)), shape = true;
    }
  }
  return shape ? add_sat(all, product) : all;
}

static void take_type(kineto *k, event *e, scan_text t) {
  scan_plain(k->s, &t);
  if (t.n) e->comm.type = comm_type_of(k->x->c, t.v, t.n);
}

// Arguments that annotations of communications have: shapes where nothing better is said.
static void take_shapes(kineto *k, event *e, scan_text key) {
  scan_text t;
  if (scan_eq(key, "Input Dims")) {
    e->comm.in = elements(k->s, 0), e->has_comm = true;
  } else if (scan_eq(key, "Input type")) {
    bool first = true;
    if (scan_array(k->s))
      for (; scan_element(k->s); first = false)
        if (scan_string(k->s, &t) && first) take_type(k, e, t);
  } else {
    scan_skip(k->s);
  }
}

// What the framework says of a communication. False: the key is none of these.
static bool take_comm(kineto *k, event *e, scan_text key) {
  scan *s = k->s;
  scan_text t;
  trace_comm *m = &e->comm;
  if (scan_eq(key, "Collective name")) {
    if (!scan_string(s, &t)) return true;
    scan_plain(s, &t);
    const sym op = comm_op_of(k->x->c, t.v, t.n);
    if (op.i) m->op = op;
    e->has_comm = true, e->waits = !op.i;
  } else if (scan_eq(key, "dtype")) {
    if (scan_string(s, &t)) take_type(k, e, t);
  } else if (scan_eq(key, "In msg nelems")) {
    m->in = integer_or(s, -1), e->has_comm = true;
  } else if (scan_eq(key, "Out msg nelems")) {
    m->out = integer_or(s, -1), e->has_comm = true;
  } else if (scan_eq(key, "Group size")) {
    const i64 n = integer_or(s, 0);
    m->size = n > 0 && n < UINT32_MAX ? (u32)n : 0;
  } else if (scan_eq(key, "Process Group Name")) {
    m->group = text_of(k);
  } else if (scan_eq(key, "Process Group Ranks")) {
    if (scan_string(s, &t)) scan_plain(s, &t), m->members = comm_members_of(k->x->c, t.v, t.n);
  } else if (scan_eq(key, "Seq")) {
    m->seq = integer_or(s, -1);
  } else if (scan_eq(key, "Src Rank") || scan_eq(key, "Dst Rank")) {
    const i64 r = integer_or(s, -1);
    if (r >= 0 && r < UINT32_MAX) m->peer = (u32)r;
  } else if (scan_eq(key, "Global rank start")) {
    e->group_start = integer_or(s, -1);
  } else if (scan_eq(key, "Global rank stride")) {
    e->group_stride = integer_or(s, -1);
  } else {
    return false;
  }
  return true;
}

// What an allocator has done. False: the key is none of these.
static bool take_memory(kineto *k, event *e, scan_text key) {
  i64 *to = scan_eq(key, "Device Type")       ? &e->device_type
            : scan_eq(key, "Device Id")       ? &e->memory.device
            : scan_eq(key, "Bytes")           ? &e->memory.bytes
            : scan_eq(key, "Addr")            ? &e->memory.place
            : scan_eq(key, "Total Allocated") ? &e->memory.total
                                              : NULL;
  if (to) *to = integer_or(k->s, to == &e->device_type ? ABSENT : -1);
  return to;
}

static bool wants_memory(const kineto *k) { return k->x->want->kinds & TRACE_MEMORY && !k->again; }
static bool may_be_memory(const kineto *k, const event *e) {
  return wants_memory(k) && (e->says == MEMORY_NAME || !(e->knows & KNOWS_NAME));
}

static void take_args(kineto *k, event *e) {
  scan *s = k->s;
  scan_text key;
  if (!scan_object(s)) return;
  while (scan_member(s, &key)) {
    if (may_be_memory(k, e) && take_memory(k, e, key)) continue;
    if (scan_eq(key, "correlation")) {
      e->correlation = integer_or(s, ABSENT);
    } else if (key.n == 11 && !memcmp(key.v + 1, "xternal id", 10)) { // External id, external id
      e->external = integer_or(s, ABSENT);
    } else if (scan_eq(key, "stream")) {
      e->stream = integer_or(s, ABSENT);
      if (e->stream == UINT32_MAX) e->stream = -1; // of no stream, in files of 2023
    } else if (scan_eq(key, "device")) {
      e->device = integer_or(s, ABSENT);
    } else if (e->is == TRACE_WAIT && scan_eq(key, "wait_on_stream")) {
      e->wait_on = integer_or(s, ABSENT);
    } else if (e->is == TRACE_WAIT && scan_eq(key, "wait_on_cuda_event_record_corr_id")) {
      e->record = integer_or(s, ABSENT);
    } else if (e->phase == 'M' && (scan_eq(key, "name") || scan_eq(key, "labels"))) {
      e->thread_name = text_of(k);
    } else if (e->says == NCCL_NAME && e->is != TRACE_KERNEL) {
      if (!take_comm(k, e, key)) take_shapes(k, e, key);
    } else if (!take_comm(k, e, key)) {
      scan_skip(s);
    }
  }
}

// ---- which events -------------------------------------------------------------------------------------------
enum { WORK = TRACE_ON_DEVICE | 1 << TRACE_WAIT };

static bool is_flow(const event *e) { return e->phase == 's' || e->phase == 'f'; }

// May an event of this category be of use, whatever its name?
static bool useful(const kineto *k, const event *e) {
  const u32 kinds = k->x->want->kinds;
  if (e->phase == 'M') return !k->again;
  if (is_flow(e)) return kinds & WORK && !k->correlated && !e->is_other_flow;
  if (e->phase && e->phase != 'X' && e->phase != 'i' && e->phase != 'I') return false;
  if (!(e->knows & KNOWS_CAT)) return true;
  if (wanted(k->x, e->is) || (e->is == TRACE_OTHER && !e->on_device && wants_memory(k))) return true;
  if (e->is == TRACE_CALL) return kinds & 1 << TRACE_KERNEL;
  return (e->is == TRACE_OP || e->is == TRACE_NOTE) && !e->on_device &&
         kinds & (1 << TRACE_KERNEL | 1 << TRACE_STEP);
}
static bool useful_by_name(const kineto *k, const event *e) {
  if (!(e->knows & KNOWS_NAME) || !(e->knows & KNOWS_CAT) || wanted(k->x, e->is) || is_flow(e)) return true;
  if (e->is == TRACE_OTHER) return e->says == MEMORY_NAME;
  if (e->is != TRACE_OP && e->is != TRACE_NOTE) return true;
  return e->says == STEP_NAME ? wanted(k->x, TRACE_STEP) : e->says != PLAIN;
}
static bool needs_args(const kineto *k, const event *e) {
  if (e->says == MEMORY_NAME) return wants_memory(k);
  if (!(e->knows & KNOWS_NAME) || !(e->knows & KNOWS_CAT) || e->phase == 'M') return true;
  if (e->is == TRACE_OP || e->is == TRACE_NOTE) return e->says == PARAM_NAME || e->says == NCCL_NAME;
  return e->is == TRACE_CALL || e->on_device;
}

static i64 ns_of(i64 us, u32 rest) { return us * 1000 + rest / 1000; }

// Is it known by now that the event is of no step that is wanted?
static bool outside(const kineto *k, const event *e) {
  const bool flow = is_flow(e);
  if (!k->windows.n || !e->has_ts || e->bad || e->ts_us > MOST_US || e->ts_us < -MOST_US || e->phase == 'M')
    return false;
  if (!flow && !(e->knows & KNOWS_CAT)) return false;
  const kineto_side side = (flow ? e->phase == 'f' : e->on_device) ? KINETO_DEVICE
                           : flow || e->is == TRACE_CALL           ? KINETO_CALL
                                                                   : KINETO_HOST;
  const bool around =
      side == KINETO_HOST && e->says != PLAIN && e->says != MEMORY_NAME; // what tells of communications in it
  if (around && (!e->has_dur || e->dur_us > MOST_DUR_US)) return false;
  if (!e->on_device && e->says == STEP_NAME) return k->again;
  const i64 start = ns_of(e->ts_us, e->ts_rest);
  return kineto_outside(k, side, start, around ? start + ns_of(e->dur_us, e->dur_rest) : start,
                        e->correlation);
}

static void take_time(scan *s, bool *has, i64 *us, u32 *rest, bool *bad) {
  scan_text t;
  *has = scan_scalar(s, &t) && scan_decimal(t, us, rest);
  *bad |= !*has;
}

// Reads an event that was entered; of members that are there twice the first says what it is. False: it is of no
// use, or the scanner has stopped.
static bool take_event(kineto *k, event *e) {
  scan *s = k->s;
  scan_text key, t;
  while (scan_member(s, &key)) {
    if (scan_eq(key, "ph") && !e->phase) {
      e->phase = scan_string(s, &t) && t.n ? t.v[0] : '?';
      if (!useful(k, e)) return scan_leave(s), false;
    } else if (scan_eq(key, "cat") && !(e->knows & KNOWS_CAT)) {
      if (scan_string(s, &t)) take_category(e, t);
      if (e->phase && (!useful(k, e) || !useful_by_name(k, e))) return scan_leave(s), false;
    } else if (scan_eq(key, "name") && !(e->knows & KNOWS_NAME)) {
      if (scan_string(s, &t)) take_name(k, e, t);
      if (e->phase && !useful_by_name(k, e)) return scan_leave(s), false;
    } else if (scan_eq(key, "ts")) {
      take_time(s, &e->has_ts, &e->ts_us, &e->ts_rest, &e->bad);
    } else if (scan_eq(key, "dur")) {
      take_time(s, &e->has_dur, &e->dur_us, &e->dur_rest, &e->bad);
    } else if (scan_eq(key, "pid")) {
      if (scan_scalar(s, &t)) e->pid = lane_number(k, t);
    } else if (scan_eq(key, "tid")) {
      if (scan_scalar(s, &t)) e->tid = lane_number(k, t);
    } else if (scan_eq(key, "id")) {
      e->id = integer_or(s, ABSENT);
    } else if (scan_eq(key, "args") && needs_args(k, e)) {
      if (outside(k, e)) return scan_leave(s), false;
      take_args(k, e);
    } else {
      scan_skip(s);
    }
  }
  return scan_is(s) == SCAN_OK && useful(k, e) && useful_by_name(k, e) && !outside(k, e);
}

// ---- into columns -------------------------------------------------------------------------------------------

static u32 add_comm(kineto *k, event *e) {
  trace_comm *m = &e->comm;
  if (!m->members.i && m->size && e->group_stride > 0 && e->group_start >= 0 && m->size <= 1 << 16 &&
      e->group_stride < 1 << 24 && e->group_start < 1 << 24) {
    strbuf b = {.a = k->tmp};
    for (u32 i = 0; i < m->size; i++)
      sb_fmt(&b, "%s%lld", i ? "," : "", (long long)(e->group_start + i * e->group_stride));
    m->members = sym_of(k->x->c, sb_str(&b));
  }
  *vec_push(k->tmp, &k->comms) = *m;
  return k->comms.n - 1;
}

static u32 add_column(kineto *k, const event *e, trace_is is, i64 start_ns) {
  reading *x = k->x;
  const bool numbered = e->on_device && e->device != ABSENT && e->stream != ABSENT;
  const u32 lane = e->on_device ? trace_lane_of(x->a, x->t, k->process, true, numbered ? e->device : e->pid,
                                                numbered ? e->stream : e->tid)
                                : trace_lane_of(x->a, x->t, k->process, false, -1, e->tid);
  const bool ends = e->phase == 'X' && e->has_dur && e->dur_us >= 0;
  const u32 n = trace_add(x->a, x->t, is, lane, e->name, e->ts_rest % 1000,
                          ends ? e->dur_us * 1000000 + e->dur_rest : -1);
  *vec_push(k->tmp, &k->at_ns) = start_ns;
  x->t->step[n] = e->step;
  if (is == TRACE_KERNEL && (e->comm_kernel || e->has_comm)) x->t->flags[n] |= TRACE_COMM;
  return n;
}

// Memory of hosts, and what says neither how much nor when, is of no use.
static void add_memory(kineto *k, const event *e, i64 ns) {
  const i64 most = (i64)1 << 50; // bytes of no device
  if (!wants_memory(k) || e->says != MEMORY_NAME || e->device_type == ABSENT || !e->device_type ||
      !e->memory.bytes || e->memory.bytes > most || e->memory.bytes < -most || !kineto_inside(k, ns))
    return;
  trace_memory *m = vec_push(k->x->a, &k->x->t->memory);
  *m = e->memory;
  if (m->total > most) m->total = -1;
  m->process = k->process, m->at_ps = 0;
  *vec_push(k->tmp, &k->memory_ns) = ns;
}

static void add_event(kineto *k, event *e) {
  const bool is_step = e->says == STEP_NAME && !e->on_device && (e->is == TRACE_OP || e->is == TRACE_NOTE);
  const trace_is is = e->phase != 'X' ? TRACE_OTHER : is_step ? TRACE_STEP : e->is;
  if (!e->has_ts || e->bad || !(e->knows & KNOWS_NAME) || e->ts_us > MOST_US || e->ts_us < -MOST_US ||
      e->dur_us > MOST_DUR_US) {
    k->x->about->skipped++;
    return;
  }
  const bool of_process = !e->on_device && e->pid >= 0 && (is == TRACE_OP || is == TRACE_CALL);
  if (of_process && k->host >= 0 && k->host != e->pid) k->several = true;
  if (of_process && k->host < 0) k->host = e->pid;
  if (k->pid < 0 && !e->on_device && e->pid > 0 && is != TRACE_OTHER && is != TRACE_STACK) k->pid = e->pid;
  const i64 ns = ns_of(e->ts_us, e->ts_rest);
  add_memory(k, e, ns);
  const bool known_only = is == TRACE_CALL && !kineto_inside(k, ns); // of another step
  const u32 n = wanted(k->x, is) && !known_only ? add_column(k, e, is, ns) : TRACE_NONE;
  k->correlated |= e->correlation != ABSENT && (is == TRACE_CALL || WORK >> is & 1);
  if (is == TRACE_CALL)
    *vec_push(k->tmp, &k->calls) = (kineto_call){e->correlation, e->external, e->tid, ns, n};
  if (WORK >> is & 1 && n != TRACE_NONE)
    *vec_push(k->tmp, &k->work) =
        (kineto_work){e->correlation, e->external, n,
                      is == TRACE_KERNEL && (e->has_comm || e->comm_kernel) ? add_comm(k, e) : TRACE_NONE};
  if (is == TRACE_WAIT && n != TRACE_NONE && e->wait_on != ABSENT)
    *vec_push(k->tmp, &k->waits) = (kineto_wait){n, e->wait_on, e->record};
  if (!e->on_device && (e->says == PARAM_NAME || e->says == NCCL_NAME) && e->has_comm && !e->waits)
    *vec_push(k->tmp, &k->started) = (kineto_started){.external = e->external,
                                                      .thread = e->tid,
                                                      .start_ns = ns,
                                                      .end_ns = ns + ns_of(e->dur_us, e->dur_rest),
                                                      .comm = add_comm(k, e),
                                                      .event = n,
                                                      .guess = e->says == NCCL_NAME};
}

static void add_flow(kineto *k, const event *e) {
  if (!e->has_ts || e->bad || e->id == ABSENT || e->ts_us > MOST_US || e->ts_us < -MOST_US) return;
  *vec_push(k->tmp, &k->flows) =
      (kineto_flow){e->id, e->pid, e->tid, ns_of(e->ts_us, e->ts_rest), e->phase == 's'};
}

static void add_thread_name(kineto *k, const event *e) {
  if (strcmp(sym_str(k->x->c, e->name), "thread_name")) return;
  const char *s = sym_str(k->x->c, e->thread_name);
  u32 n = sym_len(k->x->c, e->thread_name);
  while (n && s[n - 1] == ' ') n--;
  if (n) *vec_push(k->tmp, &k->threads) = (kineto_name){e->pid, e->tid, sym_ofn(k->x->c, s, n)};
}

// An event that was entered, or what is left of it.
static void one_event(kineto *k) {
  event e = {.correlation = ABSENT,
             .external = ABSENT,
             .device = ABSENT,
             .stream = ABSENT,
             .wait_on = ABSENT,
             .record = ABSENT,
             .id = ABSENT,
             .step = TRACE_NONE};
  e.is = TRACE_OTHER;
  e.comm = trace_comm_of((sym){0});
  e.group_start = e.group_stride = -1;
  e.device_type = ABSENT, e.memory = (trace_memory){.device = -1, .total = -1, .place = -1};
  const bool use = take_event(k, &e);
  if (scan_is(k->s) != SCAN_OK) return;
  const bool is_event = e.phase == 'X' || e.phase == 'i' || e.phase == 'I';
  k->x->about->events += is_event;
  if (e.phase == 'M' && use)
    add_thread_name(k, &e);
  else if (is_flow(&e) && use)
    add_flow(k, &e);
  else if (is_event && use)
    add_event(k, &e);
  else if (!e.phase)
    k->x->about->skipped++;
}

// ---- the document -------------------------------------------------------------------------------------------
static loc here(kineto *k) {
  const reading *x = k->x;
  return loc_node(x->c, x->file, sym_fmt(x->c, "event %llu", (unsigned long long)x->about->events + 1),
                  sym_fmt(x->c, "byte %llu", (unsigned long long)scan_offset(k->s)));
}

// Where there is no JSON, it goes on at the next event: they start with their phase.
static bool go_on(kineto *k) {
  if (scan_is(k->s) != SCAN_BAD) return false;
  if (!k->odd++)
    diag(k->x->c, W_TRACE_ODD, here(k), "this is not JSON; the trace is read on from the next event");
  k->x->about->skipped++;
  return scan_find(k->s, "\"ph\"");
}

static void take_events(kineto *k) {
  scan *s = k->s;
  if (!scan_array(s)) return;
  while (scan_element(s)) {
    if (scan_object(s))
      one_event(k);
    else
      k->x->about->skipped++;
    while (go_on(k)) one_event(k);
  }
  while (go_on(k)) {
    one_event(k);
    while (scan_element(s))
      if (scan_object(s)) one_event(k);
  }
}

static void take_groups(kineto *k) {
  scan *s = k->s;
  scan_text key, t;
  if (!scan_array(s)) return;
  while (scan_element(s)) {
    kineto_group g = {0};
    if (!scan_object(s)) continue;
    while (scan_member(s, &key)) {
      if (scan_eq(key, "pg_name")) {
        g.name = text_of(k);
      } else if (scan_eq(key, "pg_size")) {
        const i64 n = integer_or(s, 0);
        g.size = n > 0 && n < UINT32_MAX ? (u32)n : 0;
      } else if (scan_eq(key, "ranks") && scan_at_array(s)) {
        strbuf b = {.a = k->tmp};
        for (scan_array(s); scan_element(s);)
          sb_fmt(&b, "%s%lld", b.n ? "," : "", (long long)integer_or(s, -1));
        g.members = sym_of(k->x->c, sb_str(&b));
      } else if (scan_eq(key, "ranks")) {
        if (scan_scalar(s, &t)) scan_plain(s, &t), g.members = comm_members_of(k->x->c, t.v, t.n);
      } else {
        scan_skip(s);
      }
    }
    if (g.name.i) *vec_push(k->tmp, &k->groups) = g;
  }
}

static void take_job(kineto *k) {
  scan_text key;
  if (!scan_object(k->s)) return;
  while (scan_member(k->s, &key)) {
    if (scan_eq(key, "rank")) {
      const i64 r = integer_or(k->s, -1);
      if (r >= 0 && r < UINT32_MAX) k->rank = (u32)r;
    } else if (scan_eq(key, "world_size")) {
      const i64 n = integer_or(k->s, 0);
      if (n > 0 && n < UINT32_MAX) k->world_size = (u32)n;
    } else if (scan_eq(key, "pg_config")) {
      take_groups(k);
    } else {
      scan_skip(k->s);
    }
  }
}

static void take_devices(kineto *k) {
  scan_text key;
  if (!scan_array(k->s)) return;
  while (scan_element(k->s)) {
    kineto_device d = {.device = -1};
    if (!scan_object(k->s)) continue;
    while (scan_member(k->s, &key)) {
      if (scan_eq(key, "id"))
        d.device = integer_or(k->s, -1);
      else if (scan_eq(key, "name"))
        d.name = text_of(k);
      else
        scan_skip(k->s);
    }
    if (d.name.i) *vec_push(k->tmp, &k->devices) = d;
  }
}

// False: there are no events.
bool kineto_document(kineto *k) {
  scan *s = k->s;
  scan_text key;
  bool has_events = false;
  if (!scan_object(s)) return false;
  while (scan_member(s, &key)) {
    if (scan_eq(key, "traceEvents")) {
      has_events |= scan_at_array(s);
      take_events(k);
    } else if (scan_eq(key, "baseTimeNanoseconds")) {
      k->base_ns = integer_or(s, 0);
    } else if (scan_eq(key, "distributedInfo")) {
      take_job(k);
    } else if (scan_eq(key, "deviceProperties")) {
      take_devices(k);
    } else {
      scan_skip(s);
    }
  }
  return has_events;
}

bool trace_read_kineto(reading *x) {
  kineto k = {.x = x,
              .tmp = arena_new(),
              .process = x->t->processes.n,
              .first = x->t->n,
              .first_memory = x->t->memory.n,
              .pid = -1,
              .host = -1,
              .rank = x->rank};
  k.s = scan_new(k.tmp, x->in);
  *vec_push(x->a, &x->t->processes) = (trace_process){.rank = x->rank, .pid = -1};
  scan_mark(k.s);
  const bool found = !x->want->step || kineto_find_windows(&k);
  bool ok = found && kineto_document(&k);
  if (found && !ok) {
    diag(x->c, E_TRACE, here(&k), "%s",
         scan_is(k.s) == SCAN_ENDED ? "the file ends before its events"
                                    : "there is no list of events, traceEvents");
  } else if (ok && (ok = !k.windows.n || kineto_read_late(&k))) {
    x->about->truncated |= scan_is(k.s) == SCAN_ENDED;
    if (scan_is(k.s) == SCAN_BAD && !k.odd)
      diag(x->c, W_TRACE_ODD, here(&k), "this is not JSON; what comes before is used");
    kineto_link(&k);
    if (k.several)
      diag(x->c, W_TRACE_ODD, loc_text(x->c, x->file, 0, 0, NULL),
           "it has host events of several processes, which are read as one rank");
  }
  arena_free(k.tmp);
  return ok;
}
