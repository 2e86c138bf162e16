// inspector.c - NCCL Inspector, a profiler plugin of NCCL (2.28 and later): a JSON object on a line for every collective
// and message that a process has completed. Formats v4.0 to v4.3: in the last one a line with dump_stats says the
// communicator and the process for the lines that follow.
//
// Ranks are those in the communicator. The communicator of the most ranks is taken for the job: rank and peers are
// numbered in it, and of messages in others the peer is not known. Numbers count the calls of one function, so each
// collective of a communicator is a group of its own.
//
// Idea: a record is a row; what the job is known at the end. Starts are in records only where NCCL_INSPECTOR_DUMP_VERBOSE
// was set (event_trace_ts: when the host saw the kernel's channels begin, us since 1970). Without them communications
// are laid one after the other, and times are relative to nothing.
#include "trace/comm_words.h"
#include "trace/scan.h"
#include <stdlib.h>

typedef struct {
  sym id, name; // of the communicator
  i64 rank, size;
} about_comm;
typedef struct {
  sym host;
  i64 pid;
} about_process;
typedef struct {
  u32 comm; // index into comms
  sym function;
  i64 seq, peer, bytes, exec_us, start_us; // -1: not said
} record;
typedef struct {
  about_comm comm;
  about_process process;
  bool has_comm, has_process, ends; // ends: a line without a record
  record r;
  bool has_record;
  u64 dropped; // since the dump before, as dump_stats says
} line;
typedef struct {
  reading *x;
  arena *tmp;
  scan *s;
  about_comm now; // of the lines that follow
  bool has_now;
  about_process process;
  VEC(about_comm) comms;
  VEC(record) records;
  hmap by_comm;
  u64 dropped, other; // other: lines without a communication
} inspector;

bool trace_knows_inspector(const char *start, size_t n) {
  (void)n;
  const char *p = start + strspn(start, " \t\r\n");
  return *p == '{' && (strstr(p, "\"coll_perf\"") || strstr(p, "\"p2p_perf\"") ||
                       strstr(p, "\"dump_stats\"") || strstr(p, "\"inspector_output_format_version\""));
}

// ---- values -------------------------------------------------------------------------------------------------
static i64 number(inspector *i) { // -1: none
  scan_text t;
  i64 n;
  return scan_scalar(i->s, &t) && scan_integer(t, &n) && n >= 0 ? n : -1;
}
static sym text(inspector *i) {
  scan_text t;
  if (!scan_scalar(i->s, &t)) return (sym){0};
  if (t.escaped) scan_plain(i->s, &t);
  return sym_ofn(i->x->c, t.v, t.n);
}

static void take_header(inspector *i, line *l) {
  scan_text key;
  if (!scan_object(i->s)) return;
  l->comm = (about_comm){.rank = -1, .size = -1};
  l->has_comm = true;
  while (scan_member(i->s, &key)) {
    if (scan_eq(key, "id"))
      l->comm.id = text(i);
    else if (scan_eq(key, "comm_name"))
      l->comm.name = text(i);
    else if (scan_eq(key, "rank"))
      l->comm.rank = number(i);
    else if (scan_eq(key, "n_ranks"))
      l->comm.size = number(i);
    else
      scan_skip(i->s);
  }
}

static void take_metadata(inspector *i, line *l) {
  scan_text key;
  if (!scan_object(i->s)) return;
  l->process = (about_process){.pid = -1};
  l->has_process = true;
  while (scan_member(i->s, &key)) {
    if (scan_eq(key, "hostname"))
      l->process.host = text(i);
    else if (scan_eq(key, "pid"))
      l->process.pid = number(i);
    else
      scan_skip(i->s);
  }
}

static void take_stats(inspector *i, line *l) {
  scan_text key;
  if (!scan_object(i->s)) return;
  l->ends = true;
  while (scan_member(i->s, &key)) {
    if (scan_eq(key, "coll_dropped_since_last_dump") || scan_eq(key, "p2p_dropped_since_last_dump")) {
      const i64 n = number(i);
      if (n > 0) l->dropped += (u64)n;
    } else {
      scan_skip(i->s);
    }
  }
}

// The first start of a channel's kernel; else when the call was made.
static i64 take_times(inspector *i) {
  scan_text key;
  i64 first = -1, called = -1;
  if (!scan_object(i->s)) return -1;
  while (scan_member(i->s, &key)) {
    if (scan_eq(key, "coll_start_ts") || scan_eq(key, "p2p_start_ts")) {
      called = number(i);
    } else if (scan_eq(key, "kernel_events") && scan_at_array(i->s)) {
      for (scan_array(i->s); scan_element(i->s);) {
        if (!scan_object(i->s)) continue;
        while (scan_member(i->s, &key)) {
          if (!scan_eq(key, "kernel_start_ts")) {
            scan_skip(i->s);
            continue;
          }
          const i64 n = number(i);
          if (n > 0 && (first < 0 || n < first)) first = n;
        }
      }
    } else {
      scan_skip(i->s);
    }
  }
  return first > 0 ? first : called > 0 ? called : -1;
}

static void take_record(inspector *i, line *l) {
  scan_text key;
  record *r = &l->r;
  if (!scan_object(i->s)) return;
  *r = (record){.seq = -1, .peer = -1, .bytes = -1, .exec_us = -1, .start_us = -1};
  l->has_record = true;
  while (scan_member(i->s, &key)) {
    if (scan_eq(key, "coll") || scan_eq(key, "p2p"))
      r->function = text(i);
    else if (scan_eq(key, "coll_sn") || scan_eq(key, "p2p_sn"))
      r->seq = number(i);
    else if (scan_eq(key, "p2p_peer"))
      r->peer = number(i);
    else if (scan_eq(key, "coll_msg_size_bytes") || scan_eq(key, "p2p_msg_size_bytes"))
      r->bytes = number(i);
    else if (scan_eq(key, "coll_exec_time_us") || scan_eq(key, "p2p_exec_time_us"))
      r->exec_us = number(i);
    else if (scan_eq(key, "event_trace_ts"))
      r->start_us = take_times(i);
    else
      scan_skip(i->s);
  }
}

// ---- lines --------------------------------------------------------------------------------------------------
static u32 comm_of(inspector *i, const about_comm *m) {
  const u64 h = hash_u64(m->id.i, 7);
  for (u32 it = 0, k; hmap_next(&i->by_comm, h, &it, &k);)
    if (i->comms.v[k].id.i == m->id.i) return k;
  hmap_add(i->tmp, &i->by_comm, h, i->comms.n);
  *vec_push(i->tmp, &i->comms) = *m;
  return i->comms.n - 1;
}

static void put_line(inspector *i, line *l) {
  static const i64 month_us = (i64)30 * 24 * 3600 * 1000000, most_us = (i64)4500000 * 1000000 * 1000;
  if (l->has_process) i->process = l->process;
  if (l->has_comm) i->now = l->comm;
  i->has_now = (i->has_now && !l->ends) || l->has_comm;
  i->dropped += l->dropped;
  if (!l->has_record) {
    i->other++;
    return;
  }
  i->x->about->events++;
  record *r = &l->r;
  const bool known =
      i->has_now && i->now.id.i && i->now.rank >= 0 && i->now.size > i->now.rank && i->now.size < 1 << 24;
  if (!known || !r->function.i || r->exec_us < 0 || r->exec_us > month_us || r->start_us > most_us) {
    i->x->about->skipped++;
    return;
  }
  r->comm = comm_of(i, &i->now);
  *vec_push(i->tmp, &i->records) = *r;
}

static void take_lines(inspector *i) {
  scan_text key;
  while (scan_at_object(i->s) || scan_is(i->s) == SCAN_OK) {
    line l = {.ends = false};
    if (!scan_object(i->s)) {
      i->x->about->events++, i->x->about->skipped++;
      continue;
    }
    while (scan_member(i->s, &key)) {
      if (scan_eq(key, "header"))
        take_header(i, &l);
      else if (scan_eq(key, "metadata"))
        take_metadata(i, &l);
      else if (scan_eq(key, "dump_stats"))
        take_stats(i, &l);
      else if (scan_eq(key, "coll_perf") || scan_eq(key, "p2p_perf"))
        take_record(i, &l);
      else
        scan_skip(i->s);
    }
    if (scan_is(i->s) == SCAN_OK)
      put_line(i, &l);
    else
      i->x->about->truncated |= scan_is(i->s) == SCAN_ENDED; // within a line
  }
}

// ---- the trace ----------------------------------------------------------------------------------------------
// Times are kept if every record has a start, within a month of the middle one; the least is what they are relative to.
static bool find_base(inspector *i, i64 *least) {
  static const i64 month_us = (i64)30 * 24 * 3600 * 1000000;
  const u32 n = i->records.n;
  i64 *us = NEWN(i->tmp, i64, n + 1);
  for (u32 k = 0; k < n; k++) us[k] = i->records.v[k].start_us;
  if (n) qsort(us, n, sizeof *us, ascending_i64);
  if (!n || us[0] < 0) return false;
  const i64 middle = us[n / 2];
  u32 to = 0;
  *least = INT64_MAX;
  for (u32 k = 0; k < n; k++) {
    const record r = i->records.v[k];
    if (llabs(r.start_us - middle) > month_us) continue;
    *least = MIN(*least, r.start_us), i->records.v[to++] = r;
  }
  i->x->about->skipped += n - to, i->records.n = to;
  return true;
}

// Of these a record has what one rank gives or gets (its bandwidths are n_ranks times that); here: all of it.
static i64 bytes_of(const record *r, const char *op, i64 size) {
  const bool piece = !strcmp(op, "all_gather") || !strcmp(op, "reduce_scatter");
  return r->bytes >= 0 && piece ? mul_sat(r->bytes, size) : r->bytes;
}

static void put_record(inspector *i, const record *r, u32 world, i64 start_ps) {
  reading *x = i->x;
  const about_comm *m = &i->comms.v[r->comm];
  const char *function = sym_str(x->c, r->function);
  const u32 lane = trace_lane_of(x->a, x->t, x->t->processes.n - 1, true, 0, r->comm);
  const sym op = comm_op_of(x->c, function, sym_len(x->c, r->function));
  const bool messages = comm_who_of(x->c, op) == COMM_WHO_MESSAGE;
  const u32 n = trace_add(x->a, x->t, TRACE_KERNEL, lane, sym_fmt(x->c, "nccl:%s", function), start_ps,
                          r->exec_us * 1000000);
  x->t->lanes.v[lane].name = m->name.i && strcmp(sym_str(x->c, m->name), "unknown") ? m->name : m->id;
  trace_comm of = trace_comm_of(op.i ? op : r->function);
  of.group = messages ? m->id : sym_fmt(x->c, "%s %s", sym_str(x->c, m->id), function);
  of.size = (u32)m->size, of.seq = r->seq, of.bytes = bytes_of(r, sym_str(x->c, op), m->size);
  if (r->comm == world && r->peer >= 0 && r->peer < m->size) of.peer = (u32)r->peer;
  trace_add_comm(x->a, x->t, n, of);
}

static void put_all(inspector *i) {
  reading *x = i->x;
  i64 least = 0, at = 0;
  const bool timed = find_base(i, &least);
  u32 world = TRACE_NONE;
  for (u32 k = 0; k < i->comms.n; k++)
    if (world == TRACE_NONE || i->comms.v[k].size > i->comms.v[world].size) world = k;
  const about_comm *all = world == TRACE_NONE ? NULL : &i->comms.v[world];
  *vec_push(x->a, &x->t->processes) = (trace_process){.rank = all ? (u32)all->rank : x->rank,
                                                      .world_size = all ? (u32)all->size : 0,
                                                      .pid = i->process.pid,
                                                      .host = i->process.host,
                                                      .base_ns = timed ? least * 1000 : 0};
  for (u32 k = 0; k < i->records.n && wanted(x, TRACE_KERNEL); k++) {
    const record *r = &i->records.v[k];
    put_record(i, r, world, timed ? (r->start_us - least) * 1000000 : at);
    at = MIN(at + r->exec_us * 1000000, INT64_MAX / 4);
  }
  const loc here = loc_node(x->c, x->file, (sym){0}, (sym){0});
  if (i->records.n && !timed) {
    diag(x->c, W_IGNORED, here,
         "records have no starts: communications are laid one after the other, and ranks cannot be compared "
         "in time");
    diag_hint(x->c, "record with NCCL_INSPECTOR_DUMP_VERBOSE=1");
  }
  if (i->dropped)
    diag(x->c, W_IGNORED, here, "%llu communications are missing: the profiler has dropped them",
         (unsigned long long)i->dropped);
}

bool trace_read_inspector(reading *x) {
  inspector i = {.x = x, .tmp = arena_new(), .process = {.pid = -1}};
  i.s = scan_new(i.tmp, x->in);
  scan_mark(i.s);
  take_lines(&i);
  const loc at =
      loc_node(x->c, x->file, (sym){0}, sym_fmt(x->c, "byte %llu", (unsigned long long)scan_offset(i.s)));
  const bool none = !x->about->events && !i.other;
  if (scan_is(i.s) == SCAN_BAD && !none)
    diag(x->c, W_TRACE_ODD, at, "this is not JSON; what comes before is used");
  if (none)
    diag(x->c, E_TRACE, at, "there is no record of a communication");
  else
    put_all(&i);
  arena_free(i.tmp);
  return !none;
}
