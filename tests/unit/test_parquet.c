// test_parquet.c - operations of pipelined jobs as Parquet tables: the published ones, row by row against the timelines
// of the same jobs; small ones in every way of writing that is read; and files with any byte changed or cut off.
#include "diagnose/diagnose.h"
#include "trace_file.h"
#include <math.h>
#include <stdlib.h>

// What an operation is, without its times: equal in both forms of a job.
static u64 key_of(const trace_file *f, u32 e) {
  const trace *t = &f->t;
  const trace_process *p = trace_process_of(t, e);
  u64 h = hash_bytes(sym_str(f->c, trace_name(t, e)), sym_len(f->c, trace_name(t, e)), 1);
  h = hash_step(hash_step(h, p->data), (u64)p->stage << 32 | p->tensor);
  h = hash_step(hash_step(h, p->rank), (u64)t->lanes.v[t->lane[e]].id);
  h = hash_step(hash_step(h, t->step[e]), (u64)t->microbatch[e] << 32 | t->chunk[e]);
  if (t->comm[e] == TRACE_NONE) return hash_u64(h, 0);
  const trace_comm *m = &t->comms.v[t->comm[e]];
  h = hash_bytes(sym_str(f->c, m->op), sym_len(f->c, m->op), h);
  h = hash_bytes(sym_str(f->c, m->members), sym_len(f->c, m->members), h);
  return hash_u64(hash_step(hash_step(h, m->peer), (u64)m->seq), 0);
}

// First start and last end of the step of every event.
typedef struct {
  i64 *from, *to;
} spans;
static spans spans_of(arena *a, const trace *t) {
  enum { STEPS = 4096 };
  i64 from[STEPS], to[STEPS];
  for (u32 k = 0; k < STEPS; k++) from[k] = INT64_MAX, to[k] = INT64_MIN;
  for (u32 e = 0; e < t->n; e++) {
    REQUIRE(t->step[e] < STEPS);
    from[t->step[e]] = MIN(from[t->step[e]], t->start_ps[e]);
    to[t->step[e]] = MAX(to[t->step[e]], t->start_ps[e] + t->dur_ps[e]);
  }
  spans s = {NEWN(a, i64, t->n), NEWN(a, i64, t->n)};
  for (u32 e = 0; e < t->n; e++) s.from[e] = from[t->step[e]], s.to[e] = to[t->step[e]];
  return s;
}

// The k-th event of a key in one file is the k-th of it in the other, and ends as long before the end of its step.
// early: how many communications of the table begin before they do in the timeline, where they begin together.
enum { ROUNDED = 1000000 }; // ps; the timelines were worked out in f32, 0.12 us apart
static void check_rows(const trace_file *table, const trace_file *timeline, u32 *early) {
  const trace *t = &table->t, *u = &timeline->t;
  arena *a = arena_new();
  hmap at = {0};
  u8 *used = ZNEWN(a, u8, u->n + 1);
  const spans st = spans_of(a, t), su = spans_of(a, u);
  for (u32 e = u->n; e-- > 0;) hmap_add(a, &at, key_of(timeline, e), e);
  CHECK_EQ_I64(t->n, u->n);
  CHECK_EQ_I64(t->processes.n, u->processes.n);
  *early = 0;
  u32 missing = 0, off = 0, late = 0;
  for (u32 e = 0; e < t->n; e++) {
    u32 it = 0, k = 0;
    bool found = false;
    const i64 end = st.to[e] - t->start_ps[e] - t->dur_ps[e];
    while (!found && hmap_next(&at, key_of(table, e), &it, &k))
      found = !used[k] &&
              llabs(su.to[k] - u->start_ps[k] - u->dur_ps[k] - end) <= 3; // ps: times are rounded twice
    if (!found) {
      missing++;
      continue;
    }
    used[k] = 1;
    CHECK(t->is[e] == u->is[k] && t->flags[e] == u->flags[k]);
    const i64 more = t->dur_ps[e] - u->dur_ps[k];
    off += llabs(more) > 3 && !(t->flags[e] & TRACE_COMM);
    late += more < -ROUNDED;
    *early += more > ROUNDED;
  }
  CHECK_EQ_I64(missing, 0);
  CHECK_EQ_I64(off, 0);
  CHECK_EQ_I64(late, 0);
  arena_free(a);
}

static void check_published(const char *name, u32 rows, u32 early) {
  char path[128];
  snprintf(path, sizeof path, "traces/bytedance_straggler/data__trace-%s.parquet", name);
  const char *full = test_data(path);
  trace_file table = trace_file_open(full, TRACE_FORMAT_straggler);
  snprintf(path, sizeof path, "traces/bytedance_straggler/data__timeline-%s.json.gz", name);
  trace_file timeline = trace_file_open(test_data(path), TRACE_FORMAT_straggler);
  u32 got;
  check_rows(&table, &timeline, &got);
  CHECK_EQ_I64(table.t.n, rows);
  CHECK_EQ_I64((i64)table.about.events, rows);
  CHECK_EQ_I64((i64)table.about.skipped, 0);
  CHECK_EQ_I64(got, early);
  trace_file_close(&table), trace_file_close(&timeline);
}
TEST(parquet_slow_stage_is_the_published_timeline) { check_published("ST", 6784, 2080); }
TEST(parquet_slow_worker_is_the_published_timeline) { check_published("AR", 117216, 35679); }

// ---- every way of writing ---------------------------------------------------------------------------------
// The tables of tests/table are the first two steps of an example: tools/make-parquet-trace.py.
static const char *const ways[] = {"plain", "dictionary", "v2", "v2-plain"};
enum { ROWS = 2 * 212 };

TEST(parquet_tables_say_the_same_however_they_are_written) {
  trace_file timeline = trace_file_open("examples/traces/pipeline/timeline.json.gz", TRACE_FORMAT_straggler);
  trace *t = &timeline.t;
  u32 n = 0;
  for (u32 e = 0; e < t->n; e++) n += t->step[e] < 12;
  CHECK_EQ_I64(n, ROWS);
  t->n = 0; // the steps that the tables have
  for (u32 e = 0; e < timeline.about.events; e++) {
    if (t->step[e] >= 12) continue;
    const u32 k = t->n++;
    t->lane[k] = t->lane[e], t->start_ps[k] = t->start_ps[e], t->dur_ps[k] = t->dur_ps[e],
    t->name[k] = t->name[e];
    t->is[k] = t->is[e], t->flags[k] = t->flags[e], t->comm[k] = t->comm[e], t->step[k] = t->step[e];
    t->microbatch[k] = t->microbatch[e], t->chunk[k] = t->chunk[e];
  }
  for (u32 w = 0; w < COUNT_OF(ways); w++) {
    char path[64];
    snprintf(path, sizeof path, "tests/table/%s.parquet", ways[w]);
    trace_file table = trace_file_open(path, TRACE_FORMAT_straggler);
    u32 early;
    check_rows(&table, &timeline, &early);
    CHECK_EQ_I64(early, 0);
    CHECK_EQ_I64((i64)table.about.skipped, 0);
    const trace *u = &table.t;
    i64 first = INT64_MAX, second = INT64_MAX, end = 0; // one step behind the other
    for (u32 e = 0; e < u->n; e++) {
      i64 *from = u->step[e] == 10 ? &first : &second;
      *from = MIN(*from, u->start_ps[e]);
      if (u->step[e] == 10) end = MAX(end, u->start_ps[e] + u->dur_ps[e]);
    }
    CHECK_EQ_I64(first, 0);
    CHECK_EQ_I64(second, end);
    trace_file_close(&table);
  }
  trace_file_close(&timeline);
}

// ---- damaged files ----------------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a;
  const char *path;
  u8 *bytes;
  size_t n;
} damaged;
static damaged open_damaged(const char *path) {
  damaged d = {.c = ctx_new(), .a = arena_new()};
  file_view v;
  REQUIRE(file_map(d.c, path, &v));
  d.bytes = arena_dup(d.a, v.data, v.size), d.n = v.size;
  file_unmap(&v);
  d.path = arena_printf(d.a, "%s/test_parquet.parquet", test_build());
  return d;
}
static void close_damaged(damaged *d) {
  remove(d->path);
  arena_free(d->a);
  ctx_free(d->c);
}
// Reads the first n bytes. What is refused has one error; what is accepted has all its rows.
static bool reread(damaged *d, size_t n) {
  diag_clear(d->c);
  REQUIRE(file_write(d->c, d->path, d->bytes, n));
  arena *a = arena_new();
  trace t = {0};
  trace_read_about about;
  const bool ok = trace_read(d->c, a, d->path, TRACE_FORMAT_straggler, NULL, TRACE_NONE, &t, &about);
  CHECK_EQ_I64(diag_errors(d->c), ok ? 0 : 1);
  if (ok) CHECK_EQ_I64((i64)(t.n + about.skipped), (i64)about.events);
  if (!ok) CHECK(diag_get(d->c, diag_count(d->c) - 1).at.i);
  arena_free(a);
  return ok;
}

TEST(parquet_files_may_be_cut_anywhere) {
  damaged d = open_damaged("tests/table/v2.parquet");
  REQUIRE(reread(&d, d.n));
  for (size_t n = 4; n < d.n; n += 1 + n / 9) {
    CHECK(!reread(&d, n));
    CHECK_EQ_I64(diag_get(d.c, 0).id, E_PARQUET);
  }
  close_damaged(&d);
}

TEST(parquet_files_may_have_any_byte_changed) {
  for (u32 w = 0; w < COUNT_OF(ways); w++) {
    char path[64];
    snprintf(path, sizeof path, "tests/table/%s.parquet", ways[w]);
    damaged d = open_damaged(path);
    u64 seed = 7 + w;
    u32 refused = 0;
    for (u32 k = 0; k < 300 / test_step(); k++) { // half of them in the index, which is small
      const size_t tail = MIN(d.n, 1500);
      const size_t at = k % 2 ? 4 + rng_next(&seed) % (d.n - 4) : d.n - 1 - rng_next(&seed) % tail;
      const u8 was = d.bytes[at];
      d.bytes[at] = k % 4 < 2 ? (u8)rng_next(&seed) : was ^ (u8)(1u << rng_next(&seed) % 8);
      refused += !reread(&d, d.n);
      d.bytes[at] = was;
    }
    CHECK(refused > (test_all_cases() ? 50 : 0));
    close_damaged(&d);
  }
}

TEST(parquet_refusals_say_why) {
  damaged d = open_damaged("tests/table/zstd.parquet");
  CHECK(!reread(&d, d.n));
  CHECK_STR(diag_get(d.c, 0).message, "the pages are packed with Zstandard, which is not read");
  CHECK_STR(sym_str(d.c, loc_get(d.c, diag_get(d.c, 0).at)->node), "dp_rank");
  close_damaged(&d);
  d = open_damaged("tests/table/plain.parquet");
  for (size_t k = d.n - 6; k-- > 4;) // the name in the index, which is the last one
    if (!memcmp(d.bytes + k, "optype", 6)) d.bytes[k] = 'O';
  CHECK(!reread(&d, d.n));
  CHECK_STR(diag_get(d.c, 0).message, "the table has no such column");
  CHECK_STR(diag_part(d.c, 0, 0).message,
            "its columns are dp_rank, stage, rank, step, Optype, start_ts, duration, seq_id, mc, mb_id");
  memcpy(d.bytes + d.n - 4, "PARE", 4);
  CHECK(!reread(&d, d.n));
  CHECK_STR(diag_get(d.c, 0).message, "the index of the Parquet file is encrypted");
  close_damaged(&d);
}
