// csv.h - text with a row on every line and cells between commas, read where it lies. Nothing is quoted. Lines that are
// empty, or begin with #, are passed over. The first of the others names the columns. Part of base.h.
#ifndef HEDDLE_BASE_CSV_H
#define HEDDLE_BASE_CSV_H
#include "base/base.h"

typedef struct {
  const char *s; // without blanks around it. NULL: there is no such column
  size_t n;
} csv_cell;
typedef struct {
  ctx *c;
  arena *a; // of the reader: for what is kept no longer than it
  sym file;
  diag_id id;                    // of diagnostics
  const char *text, *end, *line; // line: where it begins
  u32 number;                    // of the line; 0: before the first
  u32 ncells;                    // of the first line
} csv_text;
enum { CSV_COLUMNS = 32 };

bool csv_next(csv_text *x); // to the next line with something on it; false: there is none
loc csv_at(const csv_text *x, u32 number, const char *line,
           const char *at); // of another line, which began there
loc csv_here(const csv_text *x, const char *at);
// The cells of the line: as many as the first has. False and a diagnostic: it has fewer or more.
bool csv_cells(const csv_text *x, csv_cell out[CSV_COLUMNS]);
// The first line: at[cell], number of its column of the n named ones, CSV_COLUMNS at most; has[column]. False and a
// diagnostic: a column is unknown, there twice, or missing and one of the first `must`. all: all of them, for hints.
bool csv_header(csv_text *x, const char *const *name, u32 n, u32 must, const char *all, u32 *at, bool *has);
csv_cell csv_trim(const char *s, const char *end);
#endif
