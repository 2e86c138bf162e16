// fits.c - lines through measured times, in the database beside them. How they are made and asked: cost/fit.c.
#include "machine/event_db.h"

static const char table[] =
    "CREATE TABLE IF NOT EXISTS fits (kind TEXT NOT NULL, machine TEXT NOT NULL, "
    "constant_ps REAL NOT NULL, byte_ps REAL NOT NULL, flop_ps REAL NOT NULL, member_ps REAL NOT NULL, "
    "least_bytes REAL NOT NULL, most_bytes REAL NOT NULL, least_flops REAL NOT NULL, "
    "most_flops REAL NOT NULL, least_members REAL NOT NULL, most_members REAL NOT NULL, "
    "spread REAL NOT NULL, worst REAL NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (kind, machine)) "
    "WITHOUT ROWID";
enum { COLUMNS = 15 };

static bool insert(event_db *db, const char *name, const event_fit *f, u32 n) {
  static const char sql[] =
      "INSERT INTO fits VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
  sqlite3_stmt *q = NULL;
  bool ok = sqlite3_prepare_v2(db->db, sql, -1, &q, NULL) == SQLITE_OK;
  for (u32 i = 0; i < n && ok; i++) {
    sqlite3_bind_text(q, 1, f[i].kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_STATIC);
    for (int k = 0; k < FIT_TERMS; k++) sqlite3_bind_double(q, 3 + k, f[i].ps[k]);
    for (int k = 1; k < FIT_TERMS; k++) {
      sqlite3_bind_double(q, 5 + 2 * k, f[i].least[k]);
      sqlite3_bind_double(q, 6 + 2 * k, f[i].most[k]);
    }
    sqlite3_bind_double(q, 13, f[i].spread);
    sqlite3_bind_double(q, 14, f[i].worst);
    sqlite3_bind_int64(q, COLUMNS, f[i].count);
    ok = sqlite3_step(q) == SQLITE_DONE;
    sqlite3_reset(q);
  }
  if (!ok) event_db_damaged(db);
  sqlite3_finalize(q);
  return ok;
}

bool event_db_put_fits(event_db *db, const char *name, const event_fit *f, u32 n) {
  sqlite3_stmt *q = NULL;
  if (!event_db_do(db, "BEGIN IMMEDIATE")) return false;
  bool ok = event_db_do(db, table) &&
            (sqlite3_prepare_v2(db->db, "DELETE FROM fits WHERE machine = ?1", -1, &q, NULL) == SQLITE_OK ||
             event_db_damaged(db));
  if (ok) {
    sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    ok = sqlite3_step(q) == SQLITE_DONE || event_db_damaged(db);
  }
  sqlite3_finalize(q);
  if (ok && insert(db, name, f, n) && (event_db_put_sum(db, name, "") || event_db_damaged(db)))
    return event_db_do(db, "COMMIT");
  sqlite3_exec(db->db, "ROLLBACK", NULL, NULL, NULL);
  return false;
}

static bool read_fit(const event_db *db, arena *a, sqlite3_stmt *q, event_fit *f) {
  const char *kind = (const char *)sqlite3_column_text(q, 0);
  *f = (event_fit){.kind = arena_strdup(a, kind ? kind : ""), .least = {1}, .most = {1}};
  bool ok = true;
  for (int k = 0; k < FIT_TERMS; k++) {
    f->ps[k] = sqlite3_column_double(q, 1 + k);
    ok = ok && f->ps[k] >= 0 && f->ps[k] < 1e18;
  }
  for (int k = 1; k < FIT_TERMS; k++) {
    f->least[k] = sqlite3_column_double(q, 3 + 2 * k);
    f->most[k] = sqlite3_column_double(q, 4 + 2 * k);
    ok = ok && f->least[k] >= 0 && f->most[k] >= f->least[k];
  }
  f->spread = sqlite3_column_double(q, 11), f->worst = sqlite3_column_double(q, 12);
  f->count = (u32)sqlite3_column_int64(q, 13);
  ok = ok && f->spread >= 0 && f->spread < 1e6;
  if (!ok)
    diag(db->c, E_PROFILE, event_db_at(db), "the fit of '%s': a figure of it is out of range", f->kind);
  return ok;
}

bool event_db_get_fits(event_db *db, arena *a, const char *name, event_fit **fits, u32 *n) {
  static const char sql[] =
      "SELECT kind, constant_ps, byte_ps, flop_ps, member_ps, least_bytes, most_bytes, "
      "least_flops, most_flops, least_members, most_members, spread, worst, count FROM fits "
      "WHERE machine = ?1 ORDER BY kind";
  VEC(event_fit) v = {0};
  sqlite3_stmt *q = NULL;
  *fits = NULL, *n = 0;
  const bool none = sqlite3_table_column_metadata(db->db, NULL, "fits", "kind", NULL, NULL, NULL, NULL, NULL);
  if (none) return true; // nobody has made any
  int r = SQLITE_DONE;
  bool ok = sqlite3_prepare_v2(db->db, sql, -1, &q, NULL) == SQLITE_OK;
  if (ok) sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
  while (ok && (r = sqlite3_step(q)) == SQLITE_ROW)
    if (!read_fit(db, a, q, vec_push(a, &v))) return sqlite3_finalize(q), false;
  if (!ok || r != SQLITE_DONE) ok = event_db_damaged(db);
  sqlite3_finalize(q);
  *fits = v.v, *n = v.n;
  return ok;
}
