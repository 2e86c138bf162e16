// csv.c - lines, cells and the names of columns of text between commas.
#include "base/csv.h"

enum { LINE_SHOWN = 200 };

static const char *line_end(const csv_text *x, const char *from) {
  const char *e = memchr(from, '\n', (size_t)(x->end - from));
  return e ? e : x->end;
}

csv_cell csv_trim(const char *s, const char *end) {
  while (s < end && (*s == ' ' || *s == '\t')) s++;
  while (end > s && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
  return (csv_cell){s, (size_t)(end - s)};
}

bool csv_next(csv_text *x) {
  csv_cell all;
  do {
    x->line = x->number++ ? MIN(line_end(x, x->line) + 1, x->end) : x->text;
    if (x->line == x->end) return false;
    all = csv_trim(x->line, line_end(x, x->line));
  } while (!all.n || *all.s == '#');
  return true;
}

loc csv_at(const csv_text *x, u32 number, const char *line, const char *at) {
  const size_t n = (size_t)(line_end(x, line) - line);
  return loc_text(x->c, x->file, number, (u32)(at - line) + 1,
                  n <= LINE_SHOWN ? arena_strndup(ctx_arena(x->c), line, n) : NULL);
}

loc csv_here(const csv_text *x, const char *at) { return csv_at(x, x->number, x->line, at); }

// At most one more than there is room for: whoever asks sees that there are too many.
static u32 split(const csv_text *x, u32 most, csv_cell *out) {
  const char *e = line_end(x, x->line), *s = x->line;
  for (u32 n = 0;; n++) {
    const char *comma = memchr(s, ',', (size_t)(e - s));
    if (n < most) out[n] = csv_trim(s, comma ? comma : e);
    if (!comma || n == most) return n + 1;
    s = comma + 1;
  }
}

bool csv_cells(const csv_text *x, csv_cell out[CSV_COLUMNS]) {
  const u32 n = split(x, x->ncells, out);
  if (n == x->ncells) return true;
  diag(x->c, x->id, csv_here(x, x->line), "%s than the %u columns of the first line",
       n < x->ncells ? "fewer cells" : "more cells", x->ncells);
  return false;
}

static bool bad_column(const csv_text *x, csv_cell cell, bool again, const char *const *name, u32 n,
                       const char *all, const bool *has) {
  diag(x->c, x->id, csv_here(x, cell.s), "%s column '%.*s'", again ? "repeated" : "unknown",
       (int)MIN(cell.n, 40u), cell.s);
  near_name near = near_to(cell.s, cell.n);
  for (u32 k = 0; k < n && !again; k++)
    if (!has[k]) near_try(&near, name[k]);
  if (near.name)
    diag_hint(x->c, "did you mean %s? The first line names the columns: %s", near.name, all);
  else
    diag_hint(x->c, "the first line names the columns: %s", all);
  return false;
}

bool csv_header(csv_text *x, const char *const *name, u32 n, u32 must, const char *all, u32 *at, bool *has) {
  csv_cell cell[CSV_COLUMNS + 1]; // of one more than there are names, one is wrong
  assert(n <= CSV_COLUMNS);
  x->ncells = split(x, n + 1, cell);
  if (cell[0].n >= 3 && !memcmp(cell[0].s, "\xef\xbb\xbf", 3)) {
    diag(x->c, x->id, csv_at(x, x->number, x->line + 3, x->line + 3),
         "a byte order mark (BOM) before the first column");
    diag_hint(x->c, "save the file as UTF-8 without one");
    return false;
  }
  for (u32 k = 0; k < n; k++) has[k] = false;
  for (u32 i = 0; i < MIN(x->ncells, n + 1); i++) {
    u32 k = 0;
    while (k < n && !(cell[i].n == strlen(name[k]) && !memcmp(cell[i].s, name[k], cell[i].n))) k++;
    if (k == n || has[k]) return bad_column(x, cell[i], k < n, name, n, all, has);
    has[k] = true, at[i] = k;
  }
  for (u32 k = 0; k < must; k++)
    if (!has[k]) {
      diag(x->c, x->id, csv_here(x, x->line), "column '%s' is missing", name[k]);
      diag_hint(x->c, "the first line names the columns: %s", all);
      return false;
    }
  return true;
}
