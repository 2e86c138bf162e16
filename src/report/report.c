// report.c - a report as it is said, and as aligned text.
#include "report/internal.h"

report *report_new(arena *a) {
  report *r = NEW(a, report);
  r->a = a;
  return r;
}

static part *add(report *r, part_kind kind, const char *key, const char *text) {
  part *p = vec_push(r->a, &r->parts);
  *p = (part){.kind = kind, .key = key, .text = text};
  return p;
}

void report_fact(report *r, const char *key, const char *label, cell x) {
  add(r, PART_FACT, key, label)->x = x;
}

void report_line(report *r, const char *label, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  char *s = NEWN(r->a, char, n + 1);
  vsnprintf(s, (size_t)n + 1, fmt, again);
  va_end(again);
  va_end(ap);
  add(r, PART_LINE, NULL, label)->x = cell_text(text_agree(s));
}

void report_gap(report *r) { add(r, PART_GAP, NULL, NULL); }
void report_note(report *r, const char *text) { add(r, PART_NOTE, NULL, text); }

void report_table(report *r, const char *key, const column *cols, u32 n) {
  part *p = add(r, PART_TABLE, key, NULL);
  p->col = cols;
  p->ncols = n;
}

void report_row(report *r, const cell *cells) {
  part *p = &r->parts.v[r->parts.n - 1];
  assert(p->kind == PART_TABLE);
  for (u32 k = 0; k < p->ncols; k++) *vec_push(r->a, &p->cells) = cells[k];
  p->nrows++;
}

void report_append(report *r, const report *with) {
  for (u32 k = 0; k < with->parts.n; k++) *vec_push(r->a, &r->parts) = with->parts.v[k];
}

void report_top(report *r, u32 n) { r->parts.v[r->parts.n - 1].top = n; }

// ---- text ---------------------------------------------------------------------------------------------
// Columns on the screen: characters, not bytes.
static u32 width(const char *s) {
  u32 n = 0;
  for (; *s; s++) n += (*s & 0xC0) != 0x80;
  return n;
}

// In lines of at most so many characters where there are spaces to begin one.
static const char *wrapped(arena *a, const char *s, u32 most) {
  char *out = arena_strdup(a, s), *last = NULL;
  u32 n = 0;
  for (char *c = out; *c; c++) {
    if (*c == ' ') last = c;
    n += (*c & 0xC0) != 0x80;
    if (n > most && last) *last = '\n', n = (u32)(c - last), last = NULL;
  }
  return out;
}

// The line that begins there, and where the next one does; NULL: it was the last.
static const char *next_line(arena *a, const char **at) {
  const char *s = *at, *end = strchr(s, '\n');
  *at = end ? end + 1 : NULL;
  return end ? arena_printf(a, "%.*s", (int)(end - s), s) : s;
}

static u32 widest(arena *a, const char *s) {
  u32 n = 0;
  while (s) {
    const u32 own = width(next_line(a, &s));
    n = MAX(n, own);
  }
  return n;
}

static void put_padded(strbuf *b, const char *s, u32 to, bool right) {
  u32 n = width(s), pad = to > n ? to - n : 0;
  if (right) sb_fmt(b, "%*s", (int)pad, "");
  sb_put(b, s);
  if (!right) sb_fmt(b, "%*s", (int)pad, "");
}

static void trim(strbuf *b) {
  while (b->n && b->v[b->n - 1] == ' ') b->v[--b->n] = 0;
}

static const char *cell_str(arena *a, const cell *x) {
  strbuf b = {.a = a};
  cell_print(x, &b);
  return sb_str(&b);
}

static u32 rows_shown(const part *p) { return p->top && p->nrows > p->top + 1 ? p->top : p->nrows; }

// Words to the left, quantities to the right, so that digits of one weight stand below each other.
static bool is_word(cell_kind k) {
  return k == CELL_NONE || k == CELL_TEXT || k == CELL_NAME || k == CELL_DIMS || k == CELL_BOOL;
}

static void put_row(const column *col, u32 ncols, const char *const *text, const u32 *to, const bool *right,
                    strbuf *b) {
  const char **at = arena_dup(b->a, text, ncols * sizeof *text);
  for (bool more = true; more;) {
    const char *between = "";
    more = false;
    for (u32 k = 0; k < ncols; k++) {
      if (!col[k].title) continue;
      sb_put(b, between);
      put_padded(b, at[k] ? next_line(b->a, &at[k]) : "", to[k], right[k]);
      more |= at[k] != NULL;
      between = "  ";
    }
    trim(b);
    sb_char(b, '\n');
  }
}

// The names of column `of`, in the cells of the rows that are shown; text has those cells in the same order.
static void cut_names(arena *a, const part *p, u32 n, u32 of, const char **text) {
  VEC(const char *) name = {0};
  VEC(u32) where = {0};
  u32 at = 0, most = 0;
  for (u32 t = 0; t < n; at += rows_shown(&p[t]) * p->ncols, t++)
    for (u32 i = of; i < rows_shown(&p[t]) * p->ncols; i += p->ncols) {
      const cell *x = &p[t].cells.v[i];
      if (x->kind != CELL_NAME) continue;
      *vec_push(a, &name) = x->u.s, *vec_push(a, &where) = at + i, most = x->n;
    }
  if (!name.n) return;
  const char **cut = NEWN(a, const char *, name.n);
  names_cut(a, name.n, name.v, most, cut);
  for (u32 k = 0; k < name.n; k++) text[where.v[k]] = cut[k];
}

// Tables p[0..n) have the same columns and follow each other: they are aligned as one, below one head.
static void put_tables(const report *r, const part *p, u32 n, strbuf *b) {
  const column *col = p->col;
  u32 ncols = p->ncols, *to = ZNEWN(r->a, u32, ncols), cells = 0, at = 0;
  bool *right = ZNEWN(r->a, bool, ncols), heads = false, shown = false;
  for (u32 k = 0; k < ncols; k++) shown |= col[k].title != NULL;
  if (!shown) return; // of JSON alone
  for (u32 t = 0; t < n; t++) cells += rows_shown(&p[t]) * ncols;
  const char **text = NEWN(r->a, const char *, cells + ncols);
  for (u32 k = 0; k < ncols; k++) {
    text[cells + k] = col[k].title;
    heads |= col[k].title && *col[k].title;
    to[k] = col[k].title ? width(col[k].title) : 0;
  }
  for (u32 t = 0; t < n; t++)
    for (u32 i = 0; i < rows_shown(&p[t]) * ncols; i++, at++) {
      const cell *x = &p[t].cells.v[i];
      u32 k = i % ncols;
      if (!col[k].title) continue;
      text[at] = x->kind == CELL_TEXT && x->n ? wrapped(r->a, x->u.s, x->n) : cell_str(r->a, x);
      right[k] |= !is_word(x->kind);
    }
  for (u32 k = 0; k < ncols; k++) {
    if (!col[k].title) continue;
    cut_names(r->a, p, n, k, text);
    for (u32 i = k; i < cells; i += ncols) to[k] = MAX(to[k], widest(r->a, text[i]));
  }
  if (heads && cells) put_row(col, ncols, text + cells, to, right, b);
  at = 0;
  for (u32 t = 0; t < n; t++) {
    u32 rows = rows_shown(&p[t]);
    for (u32 row = 0; row < rows; row++, at += ncols) put_row(col, ncols, text + at, to, right, b);
    if (rows < p[t].nrows) sb_fmt(b, "... and %u more\n", p[t].nrows - rows);
  }
}

static bool labelled(const part *p) { return (p->kind == PART_FACT || p->kind == PART_LINE) && p->text; }
static bool hidden(const part *p) { return p->kind == PART_FACT && !p->text; }

// Labels are aligned over a run of facts and lines; what only JSON has does not interrupt a run.
static u32 label_width(const report *r, u32 from) {
  u32 w = 0;
  for (u32 i = from; i < r->parts.n && (labelled(&r->parts.v[i]) || hidden(&r->parts.v[i])); i++)
    if (labelled(&r->parts.v[i])) w = MAX(w, width(r->parts.v[i].text));
  return w;
}

static void put_text(const report *r, strbuf *b) {
  u32 label = 0;
  for (u32 i = 0; i < r->parts.n; i++) {
    const part *p = &r->parts.v[i];
    if (hidden(p)) continue;
    if (labelled(p)) {
      if (!label) label = MAX(label_width(r, i), 1);
      put_padded(b, p->text, label + 2, false);
      cell_print(&p->x, b);
      trim(b);
      sb_char(b, '\n');
      continue;
    }
    label = 0;
    if (p->kind == PART_TABLE) {
      u32 n = 1;
      while (i + n < r->parts.n && r->parts.v[i + n].kind == PART_TABLE && r->parts.v[i + n].col == p->col)
        n++;
      put_tables(r, p, n, b);
      i += n - 1;
    }
    if (p->kind == PART_GAP && b->n) sb_char(b, '\n');
    if (p->kind == PART_LINE) sb_fmt(b, "%s\n", p->x.u.s);
    if (p->kind == PART_NOTE) sb_put(b, p->text);
  }
}

void report_print(const report *r, bool as_json, strbuf *b) {
  if (as_json)
    report_json(r, b);
  else
    put_text(r, b);
}
