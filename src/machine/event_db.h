// event_db.h - the database of measured times, open: what events.c and fits.c share.
#ifndef HEDDLE_MACHINE_EVENT_DB_H
#define HEDDLE_MACHINE_EVENT_DB_H
#include "machine/machine.h"
#include <sqlite3.h>

struct event_db {
  ctx *c;
  sqlite3 *db;
  sym file;
};
loc event_db_at(const event_db *db);
bool event_db_damaged(const event_db *db);             // false, with what SQLite says of the file
bool event_db_do(const event_db *db, const char *sql); // false and a diagnostic
// A sum over what the machine has, of these versions or, "", of its fits. In the transaction that put it. False: SQLite's fault,
// which is not told.
bool event_db_put_sum(const event_db *db, const char *name, const char *versions);
#endif
