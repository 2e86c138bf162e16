// test_events.c - times of events: the text an event is known by, the database, what is made of repeats, and that each is
// measured once and then is the price.
#include "front/front.h"
#include "machine/event_db.h"
#include "plan/plan.h"
#include "profile/internal.h"
#include "profiles.h"
#include "sim/sim.h"
#include <math.h>
#include "test.h"
#include <stdio.h>
#include <unistd.h>

// ---- the text of an event -----------------------------------------------------------------------------------
TEST(events_text_reads_back) {
  static const char *const lines[] = {
      "matmul f32[512,128] f32[128,384] -> f32[512,384] on cpu-core",
      "softmax f16[8,64,64] -> f16[8,64,64] {axis=-1} on a100",
      "layernorm f32[8,64] f32[64] f32[64] -> f32[8,64] {eps=1e-05} on \"my \\\"own\\\" device\"",
      "concat f32[2] f32[2] -> f32[4] {axis=0} on core",
      "transpose f32[2,3] -> f32[3,2] {perm=[1,0]} on core",
      "einsum f32[2,3] f32[3,4] -> f32[2,4] {law=\"ab,bc->ac\"} on core",
      "cast f32[] -> f16[] {dtype=f16} on core",
      "full -> f32[4] on core",
      "all_reduce f32 4096 B among 4 on 2 nodes, 2 each",
      "all_gather any 0 B among 3 on 1 node, 3 each",
      "send bf16 1 B among 2 on 2 nodes, at most 1 each at 2.5e+10 B/s",
  };
  ctx *c = ctx_new();
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    cost_event e;
    const bool ok = cost_event_parse(c, ctx_arena(c), lines[k], &e);
    CHECK_MSG(ok, "%s", lines[k]);
    if (!ok) continue;
    strbuf b = {.a = ctx_arena(c)};
    cost_event_print(c, NULL, &e, &b);
    CHECK_STR(sb_str(&b), lines[k]);
  }
  ctx_free(c);
}

TEST(events_text_refused) {
  static const char *const lines[] = {
      "",
      "matmul",
      "nonsense f32[1] -> f32[1] on core",
      "matmul f32[1] f32[1] on core",
      "matmul f32[1,] -> f32[1] on core",
      "matmul f32[-1] -> f32[1] on core",
      "matmul g32[1] -> f32[1] on core",
      "matmul f32[1] -> f32[1]",
      "matmul f32[1] -> f32[1] on ",
      "matmul f32[1] -> f32[1] on core ",
      "softmax f32[1] -> f32[1] {axis=} on core",
      "softmax f32[1] -> f32[1] {axis=1 on core",
      "softmax f32[1] -> f32[1] {what=1} on core",
      "matmul f32[1] -> f32[1] on \"core",
      "matmul f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] -> f32[1] on core",
      "all_reduce f32 4096 among 4 on 2 nodes, 2 each",
      "all_reduce f32 -1 B among 4 on 2 nodes, 2 each",
      "all_reduce f32 1 B among 99999999999 on 2 nodes, 2 each",
  };
  ctx *c = ctx_new();
  for (u32 k = 0; k < COUNT_OF(lines); k++) {
    cost_event e;
    CHECK_MSG(!cost_event_parse(c, ctx_arena(c), lines[k], &e), "%s", lines[k]);
  }
  CHECK_EQ_I64(diag_count(c), 0);
  ctx_free(c);
}

// ---- repeats ------------------------------------------------------------------------------------------------
TEST(events_repeats) {
  double even[] = {3, 1, 2, 4}, far[] = {10, 11, 9, 10, 1000}, one[] = {7};
  CHECK_CLOSE(profile_settle(even, 4).median, 2.5, 0);
  const profile_figure f = profile_settle(far, 5);
  CHECK_EQ_I64(f.count, 4);
  CHECK_CLOSE(f.median, 10, 0);
  CHECK_CLOSE(f.spread, 0.1, 1e-12);
  CHECK_EQ_I64(profile_settle(one, 1).count, 1);
}

// What is more than five times the median distance above the median is left out; on a coarse clock, more than 2 %. Nothing below.
TEST(events_outliers) {
  double at[] = {9, 10, 11, 10, 9, 11, 15}, over[] = {9, 10, 11, 10, 9, 11, 15.1},
         low[] = {9, 10, 11, 10, 9, 11, 1};
  CHECK_EQ_I64(profile_settle(at, 7).count, 7);
  CHECK_EQ_I64(profile_settle(over, 7).count, 6);
  CHECK_EQ_I64(profile_settle(low, 7).count, 7);
  double near[] = {100, 100, 100, 102}, far[] = {100, 100, 100, 102.1};
  CHECK_EQ_I64(profile_settle(near, 4).count, 4);
  CHECK_EQ_I64(profile_settle(far, 4).count, 3);
}

// Two repeats in three lie within the spread, and the median of n is off by a root of n less.
TEST(events_spread) {
  double v[10], shuffled[10];
  for (u32 k = 0; k < 10; k++) v[k] = 100 + (k % 2 ? 1 : -1) * (double)(k / 2 + 1) / 2; // 99.5, 100.5, 99, ..
  for (u32 k = 0; k < 10; k++) shuffled[k] = v[k * 7 % 10];
  CHECK_CLOSE(profile_median(shuffled, 10), 100, 0);
  CHECK_CLOSE(profile_off(shuffled, 10), 2 / sqrt(10), 1e-12);
  CHECK_CLOSE(shuffled[1], v[7], 0);                             // they stay as they are
  CHECK_CLOSE(profile_settle(shuffled, 10).spread, 0.02, 1e-12); // 7 of 10
}

TEST(events_ring) {
  CHECK_CLOSE(profile_ring(OP_all_reduce, 8, 64), (2 * 63.0 / 64) / (2 * 7.0 / 8), 1e-12);
  CHECK_CLOSE(profile_ring(OP_all_gather, 2, 1024), (1023.0 / 1024) / 0.5, 1e-12);
  CHECK_CLOSE(profile_ring(OP_send, 2, 2), 1, 0);
  CHECK_CLOSE(profile_ring(OP_exchange, 2, 16), 1, 0);
  CHECK_CLOSE(profile_ring(OP_halo_exchange, 8, 64), 1, 0);
}

// ---- the database -------------------------------------------------------------------------------------------
static const char *file_of(arena *a, const char *name) {
  const char *path = arena_printf(a, "/tmp/heddle-events-%d-%s", (int)getpid(), name);
  unlink(path);
  return path;
}

TEST(events_database) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const char *path = file_of(a, "rows.db");
  const measured_event two[] = {{"b", 20, 0.5, 9, EVENT_SCALED}, {"a", 10, 0.25, 7, EVENT_MEASURED}};
  const measured_event late = {"a", 11, 0.125, 8, EVENT_FITTED};
  measured_event *row;
  u32 n;
  event_db *db = event_db_open(c, a, path, true);
  REQUIRE(db);
  CHECK(event_db_put(db, "m", "heddle 0.0.1", two, 2));
  CHECK(event_db_put(db, "other", "heddle 0.0.1", two, 1));
  event_db_close(db);
  REQUIRE((db = event_db_open(c, a, path, true)));
  REQUIRE(event_db_get(db, a, "m", "heddle 0.0.1", &row, &n) && n == 2);
  CHECK_STR(row[0].key, "a");
  CHECK_EQ_I64(row[0].ps, 10);
  CHECK_EQ_I64(row[1].source, EVENT_SCALED);
  CHECK_CLOSE(row[1].spread, 0.5, 0);
  // Of several versions those of this Heddle are taken, wherever their names stand.
  CHECK(event_db_put(db, "m", "heddle " HEDDLE_VERSION ", here", &late, 1));
  CHECK(event_db_put(db, "m", "later", two, 2));
  REQUIRE(event_db_get(db, a, "m", NULL, &row, &n) && n == 2);
  CHECK_EQ_I64(row[0].ps, 11);
  CHECK_EQ_I64(row[0].source, EVENT_FITTED);
  // A row that is put again takes the place of the first.
  CHECK(event_db_put(db, "m", "heddle 0.0.1", &(measured_event){"a", 99, 0, 1, EVENT_MEASURED}, 1));
  REQUIRE(event_db_get(db, a, "m", "heddle 0.0.1", &row, &n) && n == 2);
  CHECK_EQ_I64(row[0].ps, 99);
  event_db_close(db);
  CHECK_EQ_I64(diag_count(c), 0);
  unlink(path);
  ctx_free(c);
}

// Wherever a file is damaged, it is either told or the rows are still there; nothing else happens.
TEST(events_damaged) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const char *path = file_of(a, "whole.db"), *bad = file_of(a, "bad.db");
  event_db *db = event_db_open(c, a, path, true);
  REQUIRE(db);
  measured_event row[40];
  for (u32 k = 0; k < 40; k++)
    row[k] = (measured_event){arena_printf(a, "matmul f32[%u,64] f32[64,64] -> f32[%u,64] on core", k, k), k,
                              0, 9, 0};
  CHECK(event_db_put(db, "1x2 cpu-core", "v", row, 40));
  event_db_close(db);
  machine *m = machine_load(c, a, "1x2 cpu-core");
  file_view f;
  REQUIRE(m && file_map(c, path, &f));
  char *copy = arena_dup(a, f.data, f.size);
  u32 told = 0, n = 0;
  for (size_t at = 16; at < f.size; at += 61, n++) {
    copy[at] ^= 0x5a;
    REQUIRE(file_write(c, bad, copy, f.size));
    copy[at] ^= 0x5a;
    diag_clear(c);
    m->events = NULL;
    const bool ok = machine_events_read(m, a, bad);
    CHECK_EQ_I64(ok, diag_count(c) == 0);
    for (u32 k = 0; ok && k < 40; k++) {
      const measured_event *x = machine_events_find(m->events, row[k].key);
      CHECK_MSG(x && x->ps == k && x->spread == 0 && x->count == 9, "a byte at %zu changes %s", at,
                row[k].key);
    }
    told += !ok;
  }
  CHECK(told > 0 && n > 100);
  for (size_t size = 16; size < f.size; size += 509) {
    REQUIRE(file_write(c, bad, copy, size));
    diag_clear(c);
    CHECK_MSG(!machine_events_read(m, a, bad) && diag_count(c) > 0, "%zu of %zu", size, f.size);
  }
  file_unmap(&f);
  db = event_db_open(c, a, path, true); // by another program: it is not damaged
  CHECK(db && event_db_do(db, "UPDATE events SET median_ps = 7 WHERE key LIKE 'matmul f32[3,%'"));
  event_db_close(db);
  diag_clear(c);
  CHECK(machine_events_read(m, a, path) && machine_events_find(m->events, row[3].key)->ps == 7);
  unlink(path), unlink(bad);
  ctx_free(c);
}

static bool said(ctx *c, const char *text) {
  arena *a = ctx_arena(c);
  const bool ok = CHECK_MSG(strstr(diag_render(c, a), text), "no '%s' in: %s", text, diag_render(c, a));
  diag_clear(c);
  return ok;
}

// Rows that another program has put: what is no time is refused, with the row's name; what just is one is taken.
TEST(events_rows_of_others) {
  static const struct {
    const char *columns, *why; // time, spread, count, source; NULL: it is taken
  } rows[] = {{"1, 0.5, 1, 'guessed'", "its source is none of measured, scaled, fitted"},
              {"1.5, 0.5, 1, 'measured'", "its time is no whole number"},
              {"'soon', 0.5, 1, 'measured'", "its time is no whole number"},
              {"1, 'wide', 1, 'scaled'", "its spread is no number"},
              {"1, 0.5, 0, 'fitted'", "it was measured less than once"},
              {"-1, 0.5, 1, 'fitted'", "its time is out of range"},
              {"9007199254740992, 0.5, 1, 'fitted'", "its time is out of range"},
              {"1, -0.001, 1, 'fitted'", "its spread is out of range"},
              {"1, 1000000, 1, 'fitted'", "its spread is out of range"},
              {"0, 0, 1, 'measured'", NULL},
              {"9007199254740991, 999999, 1, 'fitted'", NULL}};
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const char *path = file_of(a, "others.db");
  event_db *db = event_db_open(c, a, path, true);
  REQUIRE(db);
  measured_event *row;
  u32 n;
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    REQUIRE(event_db_do(
        db, arena_printf(a, "DELETE FROM events; INSERT INTO events VALUES ('relu', 'm', 'v', %s)",
                         rows[k].columns)));
    const bool ok = event_db_get(db, a, "m", "v", &row, &n);
    CHECK_MSG(ok == !rows[k].why, "%s", rows[k].columns);
    if (rows[k].why) said(c, arena_printf(a, "the row 'relu': %s", rows[k].why));
    CHECK(!ok || (n == 1 && diag_count(c) == 0));
  }
  // A sum over what was put goes where any row changes.
  static const char *const changes[] = {
      "INSERT INTO events VALUES ('neg', 'm', 'v', 5, 0, 1, 'measured')", "UPDATE events SET median_ps = 6",
      "DELETE FROM events WHERE key = 'relu'", "UPDATE events SET versions = 'w'",
      "UPDATE events SET machine = 'm2'"};
  for (u32 k = 0; k < COUNT_OF(changes); k++) {
    REQUIRE(event_db_do(db, "DELETE FROM events"));
    REQUIRE(event_db_put(db, "m", "v", &(measured_event){"relu", 1, 0, 1, EVENT_MEASURED}, 1));
    REQUIRE(event_db_do(db, changes[k]));
    CHECK_MSG(event_db_get(db, a, "m", NULL, &row, &n) && event_db_get(db, a, "m2", NULL, &row, &n), "%s: %s",
              changes[k], diag_render(c, a));
  }
  event_db_close(db);
  unlink(path);
  ctx_free(c);
}

// Files that are databases and not ours, or not whole, and times of other machines.
TEST(events_other_files) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  const char *path = file_of(a, "other.db"), *bad = file_of(a, "short.db");
  machine *m = machine_load(c, a, "1x2 cpu-core");
  event_db *db = event_db_open(c, a, path, true);
  REQUIRE(m && db);
  event_db_close(db);
  CHECK(!machine_events_read(m, a, path));
  said(c, "no measured times of the machine '1x2 cpu-core'");
  CHECK(!machine_events_read(m, a, path));
  said(c, "it is empty: heddle profile MODEL");
  REQUIRE((db = event_db_open(c, a, path, true)));
  for (u32 k = 0; k < 9; k++) {
    const measured_event x = {"relu", 1, 0, 1, EVENT_MEASURED};
    REQUIRE(event_db_put(db, arena_printf(a, "m%u", k), "v", &x, 1));
  }
  CHECK(!machine_events_read(m, a, path));
  said(c, "it has times of 'm0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'\n");
  // pages of 64 KiB, whose size the head cannot hold
  REQUIRE(event_db_put(db, "1x2 cpu-core", "v", &(measured_event){"relu", 7, 0, 1, EVENT_MEASURED}, 1));
  REQUIRE(event_db_do(db, "PRAGMA page_size = 65536; VACUUM"));
  event_db_close(db);
  file_view f;
  REQUIRE(file_map(c, path, &f));
  CHECK(f.size % 65536 == 0 && machine_events_read(m, a, path));
  for (size_t less = 1; less < f.size; less += 40000) {
    REQUIRE(file_write(c, bad, f.data, f.size - less));
    CHECK(!machine_events_read(m, a, bad));
    said(c, arena_printf(a, "cut short: %zu of %zu bytes", f.size - less, f.size));
  }
  file_unmap(&f);
  for (size_t n = 1; n < 700; n += 300) { // SQLite takes the first for an empty database
    char text[700];
    memset(text, 'x', sizeof text);
    REQUIRE(file_write(c, bad, text, n));
    CHECK(!event_db_open(c, a, bad, true));
    said(c, "the file is no database of measured times");
    file_view is;
    REQUIRE(file_map(c, bad, &is));
    CHECK(is.size == n && !memcmp(is.data, text, n));
    file_unmap(&is);
  }
  for (u32 k = 0; k < 2; k++) {
    REQUIRE((db = event_db_open(c, a, path, true)));
    REQUIRE(event_db_do(db, k ? "PRAGMA application_id = 7" : "PRAGMA user_version = 2"));
    event_db_close(db);
    CHECK(!event_db_open(c, a, path, true));
    said(c, k ? "holds no measured times (its application is 7, not 1212435525)"
              : "is of version 2; this Heddle reads version 1");
    if (!k) {
      sqlite3 *raw;
      REQUIRE(sqlite3_open(path, &raw) == SQLITE_OK);
      CHECK(sqlite3_exec(raw, "PRAGMA user_version = 1", NULL, NULL, NULL) == SQLITE_OK);
      sqlite3_close(raw);
    }
  }
  unlink(path), unlink(bad);
  ctx_free(c);
}

// ---- measured once, and then the price --------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a;
  prog *src, *p;
  planner *pl;
  machine *m;
} bed;

static bed open_bed(const char *model, const char *line, const char *spec) {
  bed b = {.c = ctx_new(), .a = arena_new()};
  b.src = front_load(b.c, model, &(front_opts){.batch = 8, .seq = 16, .loss = true});
  b.m = machine_load(b.c, b.a, spec);
  REQUIRE(b.src && b.m);
  strategy_set said;
  hybrid_opts h = {.said = &said, .train = true, .optim = optim_default(OPTIM_SGD)};
  b.pl = planner_new(b.src);
  REQUIRE(strategy_parse(b.c, b.a, line, &said) && strategy_one(b.c, &said, &h.s));
  REQUIRE(strategy_settle(b.c, &said, policy_batch_extent(b.pl), true, &h.s));
  plan *pn = policy_hybrid(b.pl, b.a, &h);
  b.p = pn ? plan_apply(b.pl, pn, NULL) : NULL;
  REQUIRE(b.p);
  return b;
}
static void close_bed(bed *b) {
  prog_free(b->p);
  planner_free(b->pl);
  prog_free(b->src);
  arena_free(b->a);
  ctx_free(b->c);
}

TEST(events_of_programs_read_back) {
  static const char *const models[][2] = {
      {"gpt2:layers=2,hidden=32,heads=4,vocab=64", "dp=2 tp=2 pp=2 mb=2"},
      {"moe-8x125m:layers=2,hidden=32,heads=4,vocab=64,experts=4", "dp=2 zero=2"},
      {"mlp-xs:layers=2,hidden=16", "dp=4 zero=3"}};
  for (u32 k = 0; k < COUNT_OF(models); k++) {
    bed b = open_bed(models[k][0], models[k][1], "1x8 cpu-core");
    profile_events x;
    REQUIRE(profile_events_of(&x, b.c, b.a, b.p, b.m));
    CHECK(x.v.n > 5);
    for (u32 i = 0; i < x.v.n; i++) {
      const profile_event *e = &x.v.v[i];
      cost_event back;
      strbuf text = {.a = b.a};
      REQUIRE(cost_event_parse(b.c, b.a, e->key, &back));
      cost_event_print(b.c, b.m, &back, &text);
      CHECK_STR(sb_str(&text), e->key);
      CHECK_EQ_I64(back.op, e->e.op);
      if (e->e.where) CHECK_EQ_I64(e->nmembers, e->e.where->n);
    }
    close_bed(&b);
  }
}

// The keys of the events of one operator, in order.
static const char *keys_of(const char *text, const char *spec, const char *op, arena *a) {
  ctx *c = ctx_new();
  prog *p = ir_parse(c, sym_of(c, "program"), text, strlen(text));
  machine *m = machine_load(c, a, spec);
  profile_events x;
  strbuf b = {.a = a};
  CHECK_MSG(p && m, "%s", diag_render(c, a));
  REQUIRE(p && m && profile_events_of(&x, c, a, p, m));
  for (u32 k = 0; k < x.v.n; k++)
    if (!strcmp(op_row_of(x.v.v[k].e.op)->name, op)) sb_fmt(&b, "%s%s", b.n ? "; " : "", x.v.v[k].key);
  prog_free(p);
  ctx_free(c);
  return sb_str(&b);
}

// One instruction is as many events as its members differ: in their place, their device, or what they hold.
TEST(events_of_members_that_differ) {
  arena *a = arena_new();
  static const char pairs[] = "mesh @m [x=3, y=2]\nmain @f on @m(%w: f32[8{y},8] weight) -> (f32[8,8]) {\n"
                              "  %r = all_gather %w over y : f32[8,8]\n  return %r\n}\n";
  CHECK_STR(
      keys_of(pairs, "2x3 cpu-core ib=10Gb/s", "all_gather", a),
      "all_gather f32 256 B among 2 on 1 node, 2 each; all_gather f32 256 B among 2 on 2 nodes, 1 each");
  CHECK_STR(keys_of(pairs, "1x6 cpu-core", "all_gather", a),
            "all_gather f32 256 B among 2 on 1 node, 2 each");
  static const char both[] = "mesh @m [x=2]\nmain @f on @m(%w: f32[8,8] weight) -> (f32[8,8]) {\n"
                             "  %r = relu %w : f32[8,8]\n  return %r\n}\n";
  CHECK_STR(keys_of(both, "1x1 v100 + 1x1 t4 ib=100Gb/s", "relu", a),
            "relu f32[8,8] -> f32[8,8] on v100; relu f32[8,8] -> f32[8,8] on t4");
  static const char shares[] =
      "mesh @m [x=2]\nmain @f on @m(%w: f32[8{x:0-6|6-8},8] weight) -> (f32[8{x:0-6|6-8},8]) {\n"
      "  %r = relu %w : f32[8{x:0-6|6-8},8]\n  return %r\n}\n";
  CHECK_STR(keys_of(shares, "1x2 v100", "relu", a),
            "relu f32[6,8] -> f32[6,8] on v100; relu f32[2,8] -> f32[2,8] on v100");
  arena_free(a);
}

static bool measure(bed *b, const prog *const *p, u32 n, const char *path, const char *versions,
                    profile_report *r) {
  const profile_job alone = {.nprocs = 1};
  const profile_opts o = {.path = path, .versions = versions};
  profile_session *s = profile_begin(&alone, b->c, b->a, b->m, &o, r);
  const bool ok = s && profile_programs(s, p, n);
  profile_end(s);
  return ok;
}

// Alone there is nobody to communicate with: computations are measured, and only once.
TEST(events_measured_once) {
  bed b = open_bed("mlp-xs:layers=2,hidden=16", "dp=2", "1x2 cpu-core");
  const char *path = file_of(b.a, "once.db");
  profile_report r;
  REQUIRE(measure(&b, &(const prog *){b.p}, 1, path, "here", &r));
  CHECK(r.nmeasured > 5 && r.nleft > 0);
  CHECK_EQ_I64(r.nknown, 0);
  CHECK_EQ_I64(r.nmeasured + r.nleft, r.nevents);
  const u32 first = r.nmeasured, left = r.nleft;
  REQUIRE(measure(&b, &(const prog *){b.p}, 1, path, "here", &r));
  CHECK_EQ_I64(r.nmeasured, 0);
  CHECK_EQ_I64(r.nknown, first);
  REQUIRE(measure(&b, (const prog *const[]){b.p, b.p}, 2, path, "newer", &r));
  CHECK_EQ_I64(r.nmeasured, first);
  CHECK_EQ_I64(r.nleft, left);
  CHECK_EQ_I64(r.nprograms, 2);
  unlink(path);
  close_bed(&b);
}

// The price is the measured time, its error bar follows from the spreads, and planners still see the formulas.
TEST(events_are_prices) {
  bed b = open_bed("mlp-xs:layers=2,hidden=16", "dp=2", "1x2 cpu-core");
  const char *path = file_of(b.a, "prices.db");
  profile_events x;
  REQUIRE(profile_events_of(&x, b.c, b.a, b.p, b.m));
  measured_event *row = NEWN(b.a, measured_event, x.v.n);
  for (u32 k = 0; k < x.v.n; k++) row[k] = (measured_event){x.v.v[k].key, 1000000, 0.1, 9, EVENT_MEASURED};
  event_db *db = event_db_open(b.c, b.a, path, true);
  REQUIRE(db && event_db_put(db, sym_str(b.c, b.m->name), "v", row, x.v.n));
  event_db_close(db);
  const u64 before = machine_profile_hash(b.m);
  cost_model *plain = cost_model_new(b.c, b.a, b.m, NULL);
  const i64 planned = cost_comm(plain, OP_all_reduce, 1024, (u32[]){0, 1}, 2, DT_F32);
  REQUIRE(machine_events_read(b.m, b.a, path));
  CHECK(machine_profile_hash(b.m) != before);
  profile_events again; // what a program has is not what was measured of it
  REQUIRE(profile_events_of(&again, b.c, b.a, b.p, b.m) && again.v.n == x.v.n);
  for (u32 i = 0; i < x.v.n; i++) CHECK_STR(again.v.v[i].key, x.v.v[i].key);
  cost_model *k = cost_model_new(b.c, b.a, b.m, NULL);
  CHECK(!cost_rises(k) && cost_splits(k, 0) == 0);
  CHECK_EQ_I64(cost_comm(k, OP_all_reduce, 1024, (u32[]){0, 1}, 2, DT_F32), planned);
  sim_result r;
  REQUIRE(sim_run(b.c, b.a, b.p, k, &(sim_opts){.mode = SIM_FOLDED, .critical = true}, &r));
  CHECK(r.makespan_ps > 0 && r.makespan_ps % 1000000 == 0);
  CHECK_EQ_I64(r.spread_known_ps, r.makespan_ps);
  // Every event is off on its own: less than all of them together.
  CHECK(r.error_ps > 0 && (double)r.error_ps < 0.1 * (double)r.makespan_ps);
  for (u32 i = 0; i < r.norigins; i++) CHECK_EQ_I64(r.origin[i].row.source, COST_EVENT);
  unlink(path);
  close_bed(&b);
}

// Every third step one of three events takes 9 longer: no median sees it, every step has it.
TEST(events_add_up_to_the_step) {
  enum { MOST = 8, STEPS = 6 };
  double v[4 * MOST];
  const u32 count[4] = {1, 2, 1, 0};
  for (u32 e = 0; e < 4; e++)
    for (u32 s = 0; s < MOST; s++)
      v[e * MOST + s] = e == 3 || s >= STEPS ? NAN : s % 3 == e ? 10.0 / count[e] : 1;
  profile_add_up(v, MOST, count, 4, STEPS);
  double sum = 0;
  for (u32 e = 0; e < 3; e++) sum += profile_settle(v + e * MOST, STEPS).median * count[e];
  CHECK_MSG(fabs(sum - 13) < 1e-9, "%g", sum); // 1 + 2 + 10, or 10 + 2 + 1, or 1 + 10 + 1
}

// ---- programs of one communication ------------------------------------------------------------------------------
TEST(events_comm_programs) {
  static const opcode ops[] = {OP_all_reduce, OP_reduce_scatter, OP_all_gather, OP_all_to_all,
                               OP_broadcast,  OP_reduce,         OP_gather_to,  OP_scatter_from,
                               OP_permute,    OP_halo_exchange,  OP_exchange,   OP_send};
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  for (u32 k = 0; k < COUNT_OF(ops); k++)
    for (u32 n = 2; n <= (ops[k] == OP_send ? 2 : 5); n++) {
      const bool sums = ops[k] == OP_all_reduce || ops[k] == OP_reduce_scatter || ops[k] == OP_reduce;
      const cost_event e = {.op = ops[k], .t = n == 4 && !sums ? DT_BOOL : DT_F32, .size = 4 * 60};
      prog *p = comm_program(c, a, &e, n, 2, n % 2 ? (split_at){1, 1} : (split_at){2, 3}, n % 2);
      const u32 nin = ops[k] == OP_send ? 1 : 2;
      CHECK_MSG(p, "%s among %u: %s", op_row_of(ops[k])->name, n, diag_render(c, a));
      if (!p) continue;
      eval_array in[2], out;
      REQUIRE(eval_random(p, 1, in, nin, a));
      CHECK_MSG(eval_run(p, &(eval_opts){0}, in, nin, &out, 1, a), "%s among %u: %s", op_row_of(ops[k])->name,
                n, diag_render(c, a));
      // It is priced as the event that it is to measure.
      machine *m = machine_load(c, a, "1x8 cpu-core");
      profile_events x;
      REQUIRE(m && profile_events_of(&x, c, a, p, m));
      i64 size = -1;
      for (u32 i = 0; i < x.v.n; i++)
        if (x.v.v[i].e.op == ops[k]) size = x.v.v[i].e.size;
      CHECK_MSG(size == e.size, "%s among %u: %lld", op_row_of(ops[k])->name, n, (long long)size);
      prog_free(p);
    }
  ctx_free(c);
}

// Where members do not divide the elements, or are more than them, it is of as many bytes and what fills the last part.
TEST(events_comm_programs_of_few_bytes) {
  static const opcode ops[] = {OP_all_reduce, OP_reduce_scatter, OP_all_gather, OP_all_to_all,   OP_broadcast,
                               OP_exchange,   OP_gather_to,      OP_permute,    OP_halo_exchange};
  static const i64 elems[] = {1, 7};
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  machine *m = machine_load(c, a, "1x8 cpu-core");
  for (u32 k = 0; k < COUNT_OF(ops); k++)
    for (u32 n = 2; n <= 5; n++)
      for (u32 j = 0; j < COUNT_OF(elems); j++) {
        const cost_event e = {.op = ops[k], .t = DT_F32, .size = 4 * elems[j]};
        prog *p = comm_program(c, a, &e, n, 1, (split_at){1, 1}, false);
        profile_events x;
        eval_array in[2], out;
        i64 size = -1;
        REQUIRE(m && p && profile_events_of(&x, c, a, p, m) && eval_random(p, 1, in, 2, a));
        CHECK(eval_run(p, &(eval_opts){0}, in, 2, &out, 1, a));
        for (u32 i = 0; i < x.v.n; i++)
          if (x.v.v[i].e.op == ops[k]) size = x.v.v[i].e.size;
        CHECK_MSG(size >= e.size && size < e.size + 4 * n, "%s of %lld B among %u: %lld",
                  op_row_of(ops[k])->name, (long long)e.size, n, (long long)size);
        prog_free(p);
      }
  ctx_free(c);
}

// What a rank has of a communication lies as in the program: the middle dimension is split, in both directions.
TEST(events_comm_lies_as_in_the_program) {
  static const char text[] = "mesh @m [x=2, y=2]\n"
                             "main @lies on @m(%a: f32[4{y},6{x},5]) -> (f32[4{y},6{x},5]) {\n"
                             "  %b = all_gather %a over x : f32[4{y},6,5]\n"
                             "  %c = partial %b over x : f32[4{y},6,5]+x\n"
                             "  %d = reduce_scatter %c over x : f32[4{y},6{x},5]\n"
                             "  return %d\n}\n";
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  prog *p = ir_parse(c, sym_of(c, "lies"), text, strlen(text));
  machine *m = machine_load(c, a, "1x4 cpu-core");
  profile_events x;
  REQUIRE(p && m && profile_events_of(&x, c, a, p, m));
  u32 n = 0;
  for (u32 k = 0; k < x.v.n; k++) {
    if (!x.v.v[k].e.where) continue;
    n++;
    CHECK(x.v.v[k].at.outer == 2 && x.v.v[k].at.inner == 5);
    prog *q = comm_program(c, a, &x.v.v[k].e, 2, 1, x.v.v[k].at, false);
    REQUIRE(q);
    const type_info *t = val_type(q, func_get(q, q->main), (value){1});
    CHECK(t->s.nd == 3 && t->s.dim[0] == 2 && t->s.dim[1] == 6 && t->s.dim[2] == 5);
    prog_free(q);
  }
  CHECK(n == 2);
  prog_free(p);
  ctx_free(c);
}

// ---- times that were measured elsewhere --------------------------------------------------------------------------
static bool import_text(bed *b, const char *text, const char *db, profile_report *r) {
  const char *path = file_of(b->a, "lines.jsonl");
  REQUIRE(file_write(b->c, path, text, strlen(text)));
  const bool ok = profile_import(b->c, b->a, path, db, b->m, b->p, r);
  unlink(path);
  return ok;
}

// A line for every event of a program, half of them by another torch; and back: the step is made of them alone, although the
// versions are not this Heddle's.
TEST(events_imported) {
  bed b =
      open_bed("gpt2:layers=2,hidden=32,heads=4,vocab=64", "dp=2 tp=2 pp=2 mb=2", "2x4 cpu-core ib=10Gb/s");
  const char *path = file_of(b.a, "imported.db"), *name = sym_str(b.c, b.m->name);
  profile_events x;
  profile_report r;
  measured_event *row;
  u32 n = 0;
  strbuf text = {.a = b.a};
  REQUIRE(profile_events_of(&x, b.c, b.a, b.p, b.m));
  for (u32 k = 0; k < x.v.n; k++) {
    sb_put(&text, "{\"key\": ");
    sb_json_str(&text, x.v.v[k].key);
    sb_put(&text, ", \"machine\": ");
    sb_json_str(&text, name);
    sb_fmt(&text,
           ", \"versions\": \"torch %u\", \"median_ps\": %u, \"spread\": 0.125, \"count\": 9, \"source\": "
           "\"%s\"}\n",
           k % 2, 1000 + k, x.v.v[k].e.where ? "scaled" : "measured");
  }
  CHECK_MSG(import_text(&b, sb_str(&text), path, &r), "%s", diag_render(b.c, b.a));
  CHECK_EQ_I64(r.nevents, x.v.n);
  CHECK_EQ_I64(r.nmeasured + r.nscaled, x.v.n);
  CHECK(r.nscaled > 0 && r.nplan == x.v.n && r.nlost == 0 && r.nfailed == 0);
  REQUIRE(machine_events_read(b.m, b.a, path));
  for (u32 k = 0; k < x.v.n; k++) {
    const measured_event *e = machine_events_find(b.m->events, x.v.v[k].key);
    CHECK_MSG(e && e->ps == 1000 + k && e->spread == 0.125 && e->count == 9 &&
                  e->source == (x.v.v[k].e.where ? EVENT_SCALED : EVENT_MEASURED),
              "%s", x.v.v[k].key);
  }
  cost_model *k = cost_model_new(b.c, b.a, b.m, NULL);
  sim_result s;
  REQUIRE(sim_run(b.c, b.a, b.p, k, &(sim_opts){.mode = SIM_FOLDED, .critical = true}, &s));
  CHECK_EQ_I64(s.spread_known_ps, s.makespan_ps);
  // One that failed is no time.
  const char *failed = arena_printf(b.a,
                                    "{\"key\": \"relu f32[1] -> f32[1] on cpu-core\", \"machine\": \"%s\", "
                                    "\"versions\": \"torch 1\", \"failed\": \"out of memory\"}\n",
                                    name);
  CHECK(import_text(&b, failed, path, &r) && r.nfailed == 1 && !r.nmeasured);
  // One wrong line, the last, and nothing is written.
  const char *wrong = arena_printf(
      b.a,
      "{\"key\": \"relu f32[1] -> f32[1] on cpu-core\", \"machine\": \"%s\", \"versions\": \"v\", "
      "\"median_ps\": 1, \"spread\": 0, \"count\": 1, \"source\": \"measured\"}\n%s",
      name, "{\"key\": \"relu\"}\n");
  CHECK(!import_text(&b, wrong, path, &r) && diag_count(b.c) > 0);
  event_db *db = event_db_open(b.c, b.a, path, false);
  REQUIRE(db && event_db_get(db, b.a, name, NULL, &row, &n));
  CHECK_EQ_I64(n, x.v.n);
  event_db_close(db);
  unlink(path);
  close_bed(&b);
}

// Whatever a file says, it is told or taken; nothing else happens.
TEST(events_imported_whatever) {
  bed b = open_bed("mlp-xs:layers=2,hidden=16", "dp=2", "1x2 cpu-core");
  static const char line[] = "{\"key\": \"softmax f16[8,64] -> f16[8,64] {axis=-1} on a100\", \"machine\": "
                             "\"1x2 cpu-core\", \"versions\": \"v\", "
                             "\"median_ps\": 12, \"spread\": 0.5, \"count\": 9, \"source\": \"measured\"}\n";
  static const char odd[] = "\"{}[],:-9e\0 \n\\x";
  const char *path = file_of(b.a, "whatever.db");
  profile_report r;
  u32 told = 0, n = 0;
  for (size_t at = 0; at + 1 < sizeof line; at++)
    for (size_t k = 0; k + 1 < sizeof odd; k += 3, n++) {
      char *copy = arena_strdup(b.a, line);
      copy[at] = odd[(k + at) % (sizeof odd - 1)];
      diag_clear(b.c);
      const bool ok = import_text(&b, copy, path, &r);
      CHECK_EQ_I64(ok, diag_count(b.c) == 0);
      told += !ok;
    }
  CHECK(told > n / 2 && told < n);
  unlink(path);
  close_bed(&b);
}
