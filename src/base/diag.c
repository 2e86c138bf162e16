// diag.c - the list of diagnostics of a session and how it reads as text. Nothing is printed here.
//
// Idea: diagnostics, their notes and their texts are three stacks that grow together, so that a trial run can
// be taken back in one step (diag_truncate) without leaving anything in memory.
#include "base/internal.h"

static const diag_row rows[DIAG_COUNT] = {
#define DIAG(code, name, sev, title, text) [name] = {code, #name, title, text, sev},
#include "base/diag.def"
#undef DIAG
};

const diag_row *diag_row_of(diag_id id) {
  assert(id > DIAG_NONE && id < DIAG_COUNT);
  return &rows[id];
}

diag_id diag_find(const char *code) {
  for (int id = DIAG_NONE + 1; id < DIAG_COUNT; id++)
    if (!strcmp(rows[id].code, code)) return (diag_id)id;
  return DIAG_NONE;
}

void diag(ctx *c, diag_id id, loc at, const char *fmt, ...) {
  const diag_row *row = diag_row_of(id);
  if (!c->diag_text) c->diag_text = arena_new();
  diag_rec d = {.id = id, .at = at, .part = c->part.n, .mark = arena_mark(c->diag_text)};
  va_list ap;
  va_start(ap, fmt);
  d.message = text_agree(arena_vprintf(c->diag_text, fmt, ap));
  va_end(ap);
  *vec_push(c->a, &c->diag) = d;
  c->errors += row->severity == DIAG_ERROR;
}

static void add_part(ctx *c, diag_part_item p, const char *fmt, va_list ap) {
  assert(c->diag.n);
  p.message = text_agree(arena_vprintf(c->diag_text, fmt, ap));
  *vec_push(c->a, &c->part) = p;
  c->diag.v[c->diag.n - 1].parts++;
}

void diag_note(ctx *c, loc at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add_part(c, (diag_part_item){.at = at}, fmt, ap);
  va_end(ap);
}

void diag_hint(ctx *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add_part(c, (diag_part_item){.hint = true}, fmt, ap);
  va_end(ap);
}

void diag_hint_number(ctx *c, u32 number, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add_part(c, (diag_part_item){.hint = true, .number = number}, fmt, ap);
  va_end(ap);
}

u32 diag_errors(const ctx *c) { return c->errors; }
u32 diag_count(const ctx *c) { return c->diag.n; }
void diag_clear(ctx *c) { diag_truncate(c, 0); }

void diag_truncate(ctx *c, u32 n) {
  if (n >= c->diag.n) return;
  for (u32 i = n; i < c->diag.n; i++) c->errors -= rows[c->diag.v[i].id].severity == DIAG_ERROR;
  c->part.n = c->diag.v[n].part;
  arena_release(c->diag_text, c->diag.v[n].mark);
  c->diag.n = n;
}

void diag_locate(ctx *c, u32 from, loc at) {
  for (u32 i = from; i < c->diag.n; i++)
    if (!c->diag.v[i].at.i) c->diag.v[i].at = at;
}

diag_item diag_get(const ctx *c, u32 index) {
  assert(index < c->diag.n);
  const diag_rec *d = &c->diag.v[index];
  return (diag_item){d->id, d->at, d->message, d->parts};
}

diag_part_item diag_part(const ctx *c, u32 index, u32 note) {
  assert(index < c->diag.n && note < c->diag.v[index].parts);
  return c->part.v[c->diag.v[index].part + note];
}

// ---- text ---------------------------------------------------------------------------------------------

static void put_sym(const ctx *c, strbuf *b, sym s) { sb_clean(b, sym_str(c, s), sym_len(c, s), ""); }

// The source line with a caret below column l->col (in bytes, from 1). A long line is cut to a window.
static void put_caret(strbuf *b, const loc_info *l, int indent) {
  const int gutter = snprintf(NULL, 0, "%4u", l->line);
  const size_t width = 96;
  size_t n = strlen(l->text), col = l->col ? l->col - 1 : 0, from = 0;
  col = MIN(col, n);
  if (n > width && col > width * 3 / 4) from = MIN(col - width / 2, n - width);
  while (from && from < col && (l->text[from] & 0xC0) == 0x80) from++; // not inside a character
  size_t to = MIN(n, from + width);
  while (to < n && (l->text[to] & 0xC0) == 0x80) to++;
  sb_fmt(b, "%*s%*u |%s%s", indent, "", gutter, l->line, n ? " " : "", from ? "..." : "");
  sb_clean(b, l->text + from, to - from, "\t");
  sb_put(b, to < n ? "...\n" : "\n");
  if (!l->col) return;
  sb_fmt(b, "%*s | %s", indent + gutter, "", from ? "   " : "");
  strbuf before = {.a = b->a};
  sb_clean(&before, l->text + from, col - from, "\t");
  for (const char *s = sb_str(&before); *s; s++) {
    if (*s == '\t')
      sb_char(b, '\t');
    else if ((*s & 0xC0) != 0x80)
      sb_char(b, ' ');
  }
  sb_put(b, "^\n");
}

static void put_loc(const ctx *c, strbuf *b, loc at, int indent) {
  const loc_info *l = loc_get(c, at);
  if (!l) return;
  const char *sep = "";
  sb_fmt(b, "%*s--> ", indent, "");
  if (l->file.i) {
    put_sym(c, b, l->file);
    if (l->line) sb_fmt(b, ":%u", l->line);
    if (l->line && l->col) sb_fmt(b, ":%u", l->col);
    sep = ": ";
  } else if (l->line) {
    sb_fmt(b, "line %u", l->line);
    if (l->col) sb_fmt(b, ", column %u", l->col);
    sep = ": ";
  }
  for (int i = 0; i < 2; i++) {
    sym s = i ? l->part : l->node;
    if (!s.i) continue;
    sb_put(b, sep);
    put_sym(c, b, s);
    sep = ", ";
  }
  sb_char(b, '\n');
  if (l->text && l->line) put_caret(b, l, indent - 2);
}

static void put_diag(const ctx *c, strbuf *b, const diag_rec *d) {
  const diag_row *row = &rows[d->id];
  sb_fmt(b, "%s[%s]: ", row->severity == DIAG_ERROR ? "error" : "warning", row->code);
  sb_clean(b, d->message, strlen(d->message), "\t\n");
  sb_char(b, '\n');
  put_loc(c, b, d->at, 2);
  for (u32 k = 0; k < d->parts; k++) {
    const diag_part_item *p = &c->part.v[d->part + k];
    sb_put(b, p->hint ? "  hint: " : "  note: ");
    sb_clean(b, p->message, strlen(p->message), "\t\n");
    sb_char(b, '\n');
    put_loc(c, b, p->at, 4);
  }
}

// What was tried twice says the same twice, and is printed once.
char *diag_render(const ctx *c, arena *a) {
  strbuf b = {.a = a};
  u32 *from = NEWN(a, u32, c->diag.n + 1), n = 0; // of what is printed
  sb_put(&b, "");
  for (u32 i = 0; i < c->diag.n; i++) {
    from[n] = (u32)b.n;
    put_diag(c, &b, &c->diag.v[i]);
    const u32 len = (u32)b.n - from[n];
    bool again = false;
    for (u32 k = 0; k < n && !again; k++)
      again = from[k + 1] - from[k] == len && !memcmp(b.v + from[k], b.v + from[n], len);
    if (again)
      b.n = from[n], b.v[b.n] = 0;
    else
      from[++n] = (u32)b.n;
  }
  return b.v;
}
