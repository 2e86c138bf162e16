// nsight.c - Nsight Systems' export to SQLite: kernels, copies, calls of the runtime, NVTX ranges.
//
// Idea: one query a table. Tables are made by the profiler when there is something to put into them and columns have
// come and gone with versions, so what is absent is asked for first and read as nothing. A file may have several
// processes, on one clock.
#include "trace/comm_words.h"
#include "trace/internal.h"
#include <sqlite3.h>

typedef struct {
  reading *x;
  sqlite3 *db;
  i64 base_ns;
  VEC(i64) pid;  // globalPid of every process
  VEC(u64) key;  // of calls: process and correlation
  hmap calls;    // -> index into key
  VEC(u32) call; // their events
} nsight;

bool trace_knows_nsight(const char *start, size_t n) {
  return n >= 16 && !memcmp(start, "SQLite format 3", 16);
}

static loc here(const reading *x, const char *table) {
  return loc_node(x->c, x->file, sym_of(x->c, table), (sym){0});
}

// ---- tables and columns ---------------------------------------------------------------------------------
static sqlite3_stmt *query(nsight *s, const char *sql) { // NULL: no such table, or not one that can be read
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK) return q;
  sqlite3_finalize(q);
  return NULL;
}
static bool has(nsight *s, const char *table, const char *column) { // column NULL: the table
  char sql[160];
  snprintf(sql, sizeof sql, "SELECT %s FROM %s LIMIT 0", column ? column : "1", table);
  sqlite3_stmt *q = query(s, sql);
  sqlite3_finalize(q);
  return q;
}
static const char *or_null(nsight *s, const char *table, const char *column) {
  return has(s, table, column) ? column : "NULL";
}
static i64 whole(sqlite3_stmt *q, int column, i64 absent) {
  return sqlite3_column_type(q, column) == SQLITE_INTEGER ? sqlite3_column_int64(q, column) : absent;
}
static sym text(nsight *s, sqlite3_stmt *q, int column) {
  const char *t = (const char *)sqlite3_column_text(q, column);
  return t ? sym_of(s->x->c, t) : (sym){0};
}
// The next row. A damaged file ends there.
static bool next(nsight *s, sqlite3_stmt *q) {
  const int r = sqlite3_step(q);
  if (r == SQLITE_ROW) return true;
  if (r != SQLITE_DONE) s->x->about->truncated = true;
  sqlite3_finalize(q);
  return false;
}

// ---- processes ------------------------------------------------------------------------------------------
enum { PID_SHIFT = 24 }; // a globalTid has the thread below, the process above
static u32 process_of(nsight *s, i64 global) {
  const i64 pid = (i64)((u64)global >> PID_SHIFT << PID_SHIFT);
  for (u32 k = s->pid.n; k-- > 0;)
    if (s->pid.v[k] == pid) return k;
  *vec_push(s->x->a, &s->pid) = pid;
  *vec_push(s->x->a, &s->x->t->processes) = (trace_process){.rank = s->pid.n == 1 ? s->x->rank : TRACE_NONE,
                                                            .pid = pid >> PID_SHIFT & 0xffffff,
                                                            .base_ns = s->base_ns};
  return s->pid.n - 1;
}

static void read_start(nsight *s) {
  sqlite3_stmt *q = query(s, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1");
  while (q && next(s, q)) s->base_ns = whole(q, 0, 0);
}
// Names of devices, where there is one kind of them.
static void read_devices(nsight *s) {
  sqlite3_stmt *q = query(s, "SELECT DISTINCT name FROM TARGET_INFO_GPU LIMIT 2");
  sym name = {0};
  u32 n = 0;
  while (q && next(s, q)) name = text(s, q, 0), n++;
  for (u32 k = 0; n == 1 && k < s->pid.n; k++) s->x->t->processes.v[k].device = name;
}

// ---- events ---------------------------------------------------------------------------------------------
// ps of ns; false: there is no time that can be used.
static bool times(nsight *s, sqlite3_stmt *q, i64 *start, i64 *dur) {
  const i64 from = whole(q, 0, INT64_MIN), to = whole(q, 1, INT64_MIN);
  const i64 most = INT64_MAX / 4000;
  s->x->about->events++;
  if (from >= -most && from <= most && (to == INT64_MIN || (to >= from && to <= most))) {
    *start = from * 1000, *dur = to == INT64_MIN ? -1000 : (to - from) * 1000;
    return true;
  }
  s->x->about->skipped++;
  return false;
}

static u64 key_of(u32 process, i64 correlation) { return (u64)process << 40 ^ (u64)correlation; }

static void read_calls(nsight *s) {
  const char *table = "CUPTI_ACTIVITY_KIND_RUNTIME";
  sqlite3_stmt *q =
      query(s, "SELECT start, end, globalTid, correlationId, value FROM CUPTI_ACTIVITY_KIND_RUNTIME "
               "LEFT JOIN StringIds ON nameId = StringIds.id");
  if (!q && has(s, table, NULL))
    diag(s->x->c, W_IGNORED, here(s->x, table), "calls of the runtime cannot be read");
  reading *x = s->x;
  while (q && next(s, q)) {
    i64 start, dur;
    const i64 tid = whole(q, 2, 0);
    if (!times(s, q, &start, &dur) || !wanted(x, TRACE_CALL)) continue;
    const u32 p = process_of(s, tid), lane = trace_lane_of(x->a, x->t, p, false, -1, tid & 0xffffff);
    // "cudaLaunchKernel_v7000" is cudaLaunchKernel
    const char *name = (const char *)sqlite3_column_text(q, 4), *cut = name ? strstr(name, "_v") : NULL;
    const bool version = cut && cut[2] && strspn(cut + 2, "0123456789") == strlen(cut + 2);
    const sym of = !name     ? sym_of(x->c, "call")
                   : version ? sym_ofn(x->c, name, (size_t)(cut - name))
                             : sym_of(x->c, name);
    const u32 e = trace_add(x->a, x->t, TRACE_CALL, lane, of, start, dur);
    const u64 key = key_of(p, whole(q, 3, -1));
    hmap_add(x->a, &s->calls, hash_u64(key, 1), s->key.n);
    *vec_push(x->a, &s->key) = key, *vec_push(x->a, &s->call) = e;
  }
}

static u32 call_of(const nsight *s, u64 key) {
  for (u32 it = 0, k; hmap_next(&s->calls, hash_u64(key, 1), &it, &k);)
    if (s->key.v[k] == key) return s->call.v[k];
  return TRACE_NONE;
}

// Kernels, copies, fills: all with the same columns but for the name.
static void read_device(nsight *s, const char *table, trace_is is, const char *name) {
  reading *x = s->x;
  char sql[640];
  if (!has(s, table, NULL)) return;
  const char *pid = or_null(s, table, "globalPid"),
             *demangled = is == TRACE_KERNEL ? or_null(s, table, "demangledName") : "NULL",
             *shorter = is == TRACE_KERNEL ? or_null(s, table, "shortName") : "NULL";
  snprintf(sql, sizeof sql,
           "SELECT start, end, %s, %s, %s, %s, (SELECT value FROM StringIds WHERE id = %s), "
           "(SELECT value FROM StringIds WHERE id = %s) FROM %s",
           pid, or_null(s, table, "deviceId"), or_null(s, table, "streamId"),
           or_null(s, table, "correlationId"), demangled, shorter, table);
  sqlite3_stmt *q = query(s, sql);
  if (!q) diag(x->c, W_IGNORED, here(x, table), "the table cannot be read: %s", sqlite3_errmsg(s->db));
  while (q && next(s, q)) {
    i64 start, dur;
    if (!times(s, q, &start, &dur) || !wanted(x, is)) continue;
    const u32 p = process_of(s, whole(q, 2, 0)),
              lane = trace_lane_of(x->a, x->t, p, true, whole(q, 3, -1), whole(q, 4, 0));
    const sym own = text(s, q, 6), other = text(s, q, 7),
              is_called = own.i     ? own
                          : other.i ? other
                                    : sym_of(x->c, name);
    const u32 e = trace_add(x->a, x->t, is, lane, is_called, start, dur);
    const i64 corr = whole(q, 5, -1);
    if (corr >= 0) x->t->cause[e] = call_of(s, key_of(p, corr));
    const char *called = sym_str(x->c, is_called);
    trace_comm comm = trace_comm_of((sym){0});
    if (is != TRACE_KERNEL || !comm_of_kernel(x->c, called, (u32)strlen(called), &comm)) continue;
    if (!comm.op.i) comm.op = sym_of(x->c, "communication");
    trace_add_comm(x->a, x->t, e, comm);
  }
}

static void read_ranges(nsight *s) {
  reading *x = s->x;
  char sql[320];
  if (!has(s, "NVTX_EVENTS", NULL) || !wanted(x, TRACE_NOTE)) return;
  snprintf(sql, sizeof sql,
           "SELECT start, end, globalTid, %s, (SELECT value FROM StringIds WHERE id = %s) FROM NVTX_EVENTS "
           "WHERE eventType IN (59, 60)",
           or_null(s, "NVTX_EVENTS", "text"), or_null(s, "NVTX_EVENTS", "textId"));
  sqlite3_stmt *q = query(s, sql);
  if (!q) diag(x->c, W_IGNORED, here(x, "NVTX_EVENTS"), "ranges cannot be read: %s", sqlite3_errmsg(s->db));
  while (q && next(s, q)) {
    i64 start, dur;
    if (!times(s, q, &start, &dur)) continue;
    const i64 tid = whole(q, 2, 0);
    const sym own = text(s, q, 3), other = text(s, q, 4);
    if (own.i || other.i)
      trace_add(x->a, x->t, TRACE_NOTE,
                trace_lane_of(x->a, x->t, process_of(s, tid), false, -1, tid & 0xffffff), own.i ? own : other,
                start, dur);
  }
}

bool trace_read_nsight(reading *x) {
  nsight s = {.x = x};
  const bool open = sqlite3_open_v2(x->path, &s.db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;
  const bool known = open && has(&s, "StringIds", NULL);
  if (!known) {
    diag(x->c, E_TRACE, here(x, ""), "this is no export of Nsight Systems%s%s", open ? "" : ": ",
         open ? "" : sqlite3_errmsg(s.db));
    diag_hint(x->c, "make one with `nsys export --type sqlite report.nsys-rep`; it must not be compressed");
  } else {
    read_start(&s);
    read_calls(&s);
    read_device(&s, "CUPTI_ACTIVITY_KIND_KERNEL", TRACE_KERNEL, "kernel");
    read_device(&s, "CUPTI_ACTIVITY_KIND_MEMCPY", TRACE_COPY, "copy");
    read_device(&s, "CUPTI_ACTIVITY_KIND_MEMSET", TRACE_FILL, "fill");
    read_ranges(&s);
    read_devices(&s);
  }
  sqlite3_close(s.db);
  return known;
}
