// events.c - the database of times of events.
//
// Idea: one row a time, known by its event, the machine and the versions of what was measured. A put is one
// transaction, so that a process which ends in the middle of it leaves the rows of before.
#include "machine/event_db.h"
#include <stdio.h>
#include <sys/stat.h>

enum { APPLICATION = 0x48444c45, LAYOUT = 1, WAIT_MS = 10000 }; // "HDLE"; of the table
static const char *const source_name[EVENT_SOURCES] = {"measured", "scaled", "fitted"};
static const char schema[] = "CREATE TABLE events (key TEXT NOT NULL, machine TEXT NOT NULL, versions TEXT "
                             "NOT NULL, median_ps INTEGER NOT NULL, "
                             "spread REAL NOT NULL, count INTEGER NOT NULL, source TEXT NOT NULL, PRIMARY "
                             "KEY (key, machine, versions)) "
                             "WITHOUT ROWID";

bool event_db_is(const void *start, size_t n) { return n >= 16 && !memcmp(start, "SQLite format 3", 16); }

loc event_db_at(const event_db *db) { return loc_text(db->c, db->file, 0, 0, NULL); }

bool event_db_damaged(const event_db *db) {
  const int code = sqlite3_errcode(db->db);
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    diag(db->c, E_PROFILE, event_db_at(db), "the database of measured times is damaged: %s",
         sqlite3_errmsg(db->db));
    diag_hint(db->c, "rm %s; `heddle profile` measures anew", sym_str(db->c, db->file));
  } else
    diag(db->c, E_PROFILE, event_db_at(db), "the database of measured times: %s", sqlite3_errmsg(db->db));
  return false;
}

bool event_db_do(const event_db *db, const char *sql) {
  return sqlite3_exec(db->db, sql, NULL, NULL, NULL) == SQLITE_OK || event_db_damaged(db);
}

// The figure that a pragma answers; -1 and a diagnostic.
static i64 ask(const event_db *db, const char *sql) {
  sqlite3_stmt *q = NULL;
  i64 x = -1;
  if (sqlite3_prepare_v2(db->db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
    x = sqlite3_column_int64(q, 0);
  else
    event_db_damaged(db);
  sqlite3_finalize(q);
  return x;
}

// Is it one of ours, and whole? Makes the table of an empty one.
static bool prepare(const event_db *db, bool create) {
  const i64 tables = ask(db, "SELECT count(*) FROM sqlite_master");
  if (tables < 0) return false;
  if (!tables && create) {
    char sql[640];
    snprintf(sql, sizeof sql,
             "BEGIN IMMEDIATE; PRAGMA application_id = %d; PRAGMA user_version = %d; %s; COMMIT", APPLICATION,
             LAYOUT, schema);
    return event_db_do(db, sql);
  }
  const i64 application = ask(db, "PRAGMA application_id"), form = ask(db, "PRAGMA user_version");
  if (application < 0 || form < 0) return false;
  if (application != APPLICATION || form != LAYOUT) {
    diag(db->c, E_PROFILE, event_db_at(db),
         application == APPLICATION
             ? "the table of measured times is of version %lld; this Heddle reads version %d"
             : "the database holds no measured times (its application is %lld, not %d)",
         (long long)(application == APPLICATION ? form : application),
         application == APPLICATION ? LAYOUT : APPLICATION);
    diag_hint(db->c, "heddle profile MODEL --plan best.plan -o FILE.db writes one");
    return false;
  }
  sqlite3_stmt *q = NULL;
  bool ok = sqlite3_prepare_v2(db->db, "PRAGMA quick_check(1)", -1, &q, NULL) == SQLITE_OK &&
            sqlite3_step(q) == SQLITE_ROW;
  const char *said = ok ? (const char *)sqlite3_column_text(q, 0) : NULL;
  if (!ok)
    event_db_damaged(db);
  else if (!said || strcmp(said, "ok")) {
    diag(db->c, E_PROFILE, event_db_at(db), "the database of measured times is damaged: %s",
         said ? said : "no answer");
    diag_hint(db->c, "rm %s; `heddle profile` measures anew", sym_str(db->c, db->file));
    ok = false;
  }
  sqlite3_finalize(q);
  return ok;
}

// SQLite takes what is missing at the end for zeros.
static bool cut_short(const event_db *db, const char *path) {
  u8 head[32];
  struct stat at;
  FILE *f = fopen(path, "rb");
  const bool read = f && fread(head, 1, sizeof head, f) == sizeof head && !fstat(fileno(f), &at);
  if (f) fclose(f);
  if (!read || !event_db_is(head, sizeof head)) return false; // no file, or SQLite tells
  const i64 page = head[16] == 0 && head[17] == 1 ? 65536 : head[16] << 8 | head[17];
  const i64 pages = (i64)head[28] << 24 | head[29] << 16 | head[30] << 8 | head[31];
  if (at.st_size >= page * pages) return false;
  diag(db->c, E_PROFILE, event_db_at(db), "the database of measured times is cut short: %lld of %lld bytes",
       (long long)at.st_size, (long long)(page * pages));
  diag_hint(db->c, "rm %s; `heddle profile` measures anew", sym_str(db->c, db->file));
  return true;
}

// SQLite takes what is shorter than a header for an empty database, and writes over it.
static bool is_other(const event_db *db, const char *path) {
  u8 head[16];
  FILE *f = fopen(path, "rb");
  const size_t n = f ? fread(head, 1, sizeof head, f) : 0;
  if (f) fclose(f);
  if (!n || event_db_is(head, n)) return false;
  diag(db->c, E_PROFILE, event_db_at(db), "the file is no database of measured times");
  diag_hint(db->c, "name another one; `heddle profile ... -o FILE.db` makes it");
  return true;
}

// A writer that was killed in its commit has left a journal, with which SQLite puts the rows of before back, if it may write.
static void roll_back(arena *a, const char *path) {
  struct stat at;
  sqlite3 *w = NULL;
  if (stat(arena_printf(a, "%s-journal", path), &at) || !at.st_size) return;
  if (sqlite3_open_v2(path, &w, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
    sqlite3_busy_timeout(w, WAIT_MS);
    sqlite3_exec(w, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
  }
  sqlite3_close(w);
}

event_db *event_db_open(ctx *c, arena *a, const char *path, bool create) {
  event_db *db = NEW(a, event_db);
  *db = (event_db){.c = c, .file = sym_of(c, path)};
  const int flags = create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (is_other(db, path)) return NULL;
  roll_back(a, path);
  bool ok =
      sqlite3_open_v2(path, &db->db, flags, NULL) == SQLITE_OK || (db->db ? event_db_damaged(db) : false);
  if (!db->db) diag(c, E_PROFILE, event_db_at(db), "out of memory");
  if (ok) sqlite3_busy_timeout(db->db, WAIT_MS);
  if (ok && !cut_short(db, path) && prepare(db, create)) return db;
  event_db_close(db);
  return NULL;
}

void event_db_close(event_db *db) {
  if (db) sqlite3_close(db->db);
}

// ---- rows ---------------------------------------------------------------------------------------------------
static const char *text_at(sqlite3_stmt *q, int column) {
  const char *s = (const char *)sqlite3_column_text(q, column);
  return s ? s : "";
}

// ---- what was put, unchanged ----------------------------------------------------------------------------------
// A bit that flips in a time leaves a table that SQLite takes for whole. So a second table has a sum over all rows of a machine and
// versions, and one over its fits, written with them. Files of before have none; where another program changes rows, triggers take the sum away.
#define FORGET(table, when, row, which)                                                                      \
  "CREATE TRIGGER IF NOT EXISTS sums_" table "_" when "_" row " AFTER " when " ON " table                    \
  " BEGIN DELETE FROM sums WHERE machine = " row ".machine AND versions = " which "; END;"
#define FORGET_ALL(table, new, old)                                                                          \
  FORGET(table, "insert", "new", new)                                                                        \
  FORGET(table, "update", "new", new) FORGET(table, "update", "old", old) FORGET(table, "delete", "old", old)
static const char sums[] =
    "CREATE TABLE IF NOT EXISTS sums (machine TEXT NOT NULL, versions TEXT NOT NULL, sum "
    "INTEGER NOT NULL, PRIMARY KEY (machine, versions)) WITHOUT ROWID;";
static const char forget_events[] = FORGET_ALL("events", "new.versions", "old.versions");
static const char forget_fits[] = FORGET_ALL("fits", "''", "''");

static u64 step_column(u64 h, sqlite3_stmt *q, int column) {
  if (sqlite3_column_type(q, column) == SQLITE_INTEGER)
    return hash_step(h, (u64)sqlite3_column_int64(q, column));
  if (sqlite3_column_type(q, column) == SQLITE_FLOAT) {
    const double x = sqlite3_column_double(q, column);
    u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return hash_step(h, bits);
  }
  return hash_bytes(sqlite3_column_text(q, column), (size_t)sqlite3_column_bytes(q, column), h);
}

// versions "": of the fits, which have none. False: SQLite's fault, which is not told.
static bool sum_rows(const event_db *db, const char *name, const char *versions, i64 *sum) {
  const char *sql = *versions ? "SELECT * FROM events WHERE machine = ?1 AND versions = ?2 ORDER BY key"
                              : "SELECT * FROM fits WHERE machine = ?1 AND ?2 = '' ORDER BY kind";
  sqlite3_stmt *q = NULL;
  u64 h = 17;
  int r = sqlite3_prepare_v2(db->db, sql, -1, &q, NULL);
  if (r == SQLITE_OK) {
    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC), sqlite3_bind_text(q, 2, versions, -1, SQLITE_STATIC);
    while ((r = sqlite3_step(q)) == SQLITE_ROW)
      for (int k = 0; k < sqlite3_column_count(q); k++) h = step_column(h, q, k);
  }
  sqlite3_finalize(q);
  *sum = (i64)h;
  return r == SQLITE_DONE;
}

bool event_db_put_sum(const event_db *db, const char *name, const char *versions) {
  sqlite3_stmt *q = NULL;
  i64 sum;
  if (sqlite3_exec(db->db, sums, NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_exec(db->db, *versions ? forget_events : forget_fits, NULL, NULL, NULL) != SQLITE_OK ||
      !sum_rows(db, name, versions, &sum) ||
      sqlite3_prepare_v2(db->db, "INSERT OR REPLACE INTO sums VALUES (?1, ?2, ?3)", -1, &q, NULL) !=
          SQLITE_OK)
    return false;
  sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC), sqlite3_bind_text(q, 2, versions, -1, SQLITE_STATIC);
  sqlite3_bind_int64(q, 3, sum);
  const bool ok = sqlite3_step(q) == SQLITE_DONE;
  sqlite3_finalize(q);
  return ok;
}

// Are all rows of the machine as they were put?
static bool sums_agree(const event_db *db, const char *name) {
  sqlite3_stmt *q = NULL;
  bool ok = true;
  if (sqlite3_prepare_v2(db->db, "SELECT versions, sum FROM sums WHERE machine = ?1", -1, &q, NULL) !=
      SQLITE_OK)
    return true; // there are none
  sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
  while (ok && sqlite3_step(q) == SQLITE_ROW) {
    i64 sum;
    if (!sum_rows(db, name, text_at(q, 0), &sum)) {
      ok = event_db_damaged(db);
    } else if (sum != sqlite3_column_int64(q, 1)) {
      diag(db->c, E_PROFILE, event_db_at(db),
           "the measured times of '%s' are not those that were written: the file is damaged", name);
      diag_hint(db->c, "rm %s; `heddle profile` measures anew", sym_str(db->c, db->file));
      ok = false;
    }
  }
  sqlite3_finalize(q);
  return ok;
}

bool event_source_find(const char *name, event_source *out) {
  for (u32 s = 0; s < EVENT_SOURCES; s++)
    if (!strcmp(name, source_name[s])) return *out = (event_source)s, true;
  return false;
}

static bool read_row(const event_db *db, arena *a, sqlite3_stmt *q, measured_event *x) {
  event_source s = EVENT_SOURCES;
  event_source_find(text_at(q, 4), &s);
  *x = (measured_event){.key = arena_strdup(a, text_at(q, 0)),
                        .ps = sqlite3_column_int64(q, 1),
                        .spread = sqlite3_column_double(q, 2),
                        .count = (u32)sqlite3_column_int64(q, 3),
                        .source = s};
  const char *wrong =
      s == EVENT_SOURCES                            ? "its source is none of measured, scaled, fitted"
      : sqlite3_column_type(q, 1) != SQLITE_INTEGER ? "its time is no whole number"
      : sqlite3_column_type(q, 2) != SQLITE_FLOAT && sqlite3_column_type(q, 2) != SQLITE_INTEGER
          ? "its spread is no number"
      : sqlite3_column_int64(q, 3) < 1        ? "it was measured less than once"
      : x->ps < 0 || x->ps > INT64_MAX / 1024 ? "its time is out of range"
      : !(x->spread >= 0 && x->spread < 1e6)  ? "its spread is out of range"
                                              : NULL;
  if (wrong) diag(db->c, E_PROFILE, event_db_at(db), "the row '%s': %s", x->key, wrong);
  return !wrong;
}

bool event_db_get(event_db *db, arena *a, const char *name, const char *versions, measured_event **rows,
                  u32 *n) {
  static const char sql[] = "SELECT key, median_ps, spread, count, source FROM events WHERE machine = ?1 AND "
                            "(?2 IS NULL OR versions = ?2) ORDER BY key, versions LIKE ?3, versions";
  VEC(measured_event) v = {0};
  if (!sums_agree(db, name)) return false;
  sqlite3_stmt *q = NULL;
  int r = SQLITE_DONE;
  bool ok = sqlite3_prepare_v2(db->db, sql, -1, &q, NULL) == SQLITE_OK;
  if (ok) {
    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    if (versions) sqlite3_bind_text(q, 2, versions, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 3, "heddle " HEDDLE_VERSION "%", -1, SQLITE_STATIC);
    measured_event x;
    while (ok && (r = sqlite3_step(q)) == SQLITE_ROW) {
      if (!read_row(db, a, q, &x)) {
        sqlite3_finalize(q);
        return false;
      }
      if (v.n && !strcmp(v.v[v.n - 1].key, x.key)) // the better one comes later
        v.v[v.n - 1] = x;
      else
        *vec_push(a, &v) = x;
    }
    ok = r == SQLITE_DONE;
  }
  if (!ok) event_db_damaged(db);
  sqlite3_finalize(q);
  *rows = v.v, *n = v.n;
  return ok;
}

bool event_db_put(event_db *db, const char *name, const char *versions, const measured_event *rows, u32 n) {
  static const char sql[] = "INSERT OR REPLACE INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
  sqlite3_stmt *q = NULL;
  if (!event_db_do(db, "BEGIN IMMEDIATE")) return false;
  bool ok = sqlite3_prepare_v2(db->db, sql, -1, &q, NULL) == SQLITE_OK;
  for (u32 i = 0; i < n && ok; i++) {
    sqlite3_bind_text(q, 1, rows[i].key, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 3, versions, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 4, rows[i].ps);
    sqlite3_bind_double(q, 5, rows[i].spread);
    sqlite3_bind_int64(q, 6, rows[i].count);
    sqlite3_bind_text(q, 7, source_name[rows[i].source], -1, SQLITE_STATIC);
    ok = sqlite3_step(q) == SQLITE_DONE;
    sqlite3_reset(q);
  }
  ok = ok && event_db_put_sum(db, name, versions);
  if (!ok) event_db_damaged(db);
  sqlite3_finalize(q);
  if (ok) return event_db_do(db, "COMMIT");
  sqlite3_exec(db->db, "ROLLBACK", NULL, NULL, NULL);
  return false;
}

// ---- as prices of a machine -----------------------------------------------------------------------------------
static void tell_machines(event_db *db, arena *a, const char *wanted) {
  strbuf has = {.a = a};
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(db->db, "SELECT DISTINCT machine FROM events ORDER BY machine LIMIT 8", -1, &q,
                         NULL) == SQLITE_OK)
    while (sqlite3_step(q) == SQLITE_ROW) sb_fmt(&has, "%s'%s'", has.n ? ", " : "", text_at(q, 0));
  sqlite3_finalize(q);
  diag(db->c, E_PROFILE, event_db_at(db), "no measured times of the machine '%s'", wanted);
  if (has.n)
    diag_hint(db->c, "it has times of %s", sb_str(&has));
  else
    diag_hint(db->c, "it is empty: heddle profile MODEL --plan best.plan -o %s", sym_str(db->c, db->file));
}

bool machine_events_read(machine *m, arena *a, const char *path) {
  event_db *db = event_db_open(m->c, a, path, false);
  const char *name = sym_str(m->c, m->name);
  measured_event *rows;
  u32 n;
  machine_events *e = NEW(a, machine_events);
  *e = (machine_events){.file = arena_strdup(a, path)};
  bool ok =
      db && event_db_get(db, a, name, NULL, &rows, &n) && event_db_get_fits(db, a, name, &e->fit, &e->nfits);
  if (ok && !n) tell_machines(db, a, name), ok = false;
  event_db_close(db);
  if (!ok) return false;
  e->n = n, e->row = rows;
  for (u32 i = 0; i < n; i++) hmap_add(a, &e->by_key, hash_bytes(rows[i].key, strlen(rows[i].key), 0), i);
  m->events = e;
  return true;
}

const measured_event *machine_events_find(const machine_events *e, const char *key) {
  for (u32 it = 0, i; hmap_next(&e->by_key, hash_bytes(key, strlen(key), 0), &it, &i);)
    if (!strcmp(e->row[i].key, key)) return &e->row[i];
  return NULL;
}
