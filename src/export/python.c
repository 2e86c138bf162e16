// python.c - names and lines of Python.
#include "export/internal.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// Python's words, and the names that the program has at its top.
static const char *const reserved[] = {
    "False",    "None",   "True",  "and",  "as",     "assert",   "async",   "await",  "break", "class",
    "continue", "def",    "del",   "elif", "else",   "except",   "finally", "for",    "from",  "global",
    "if",       "import", "in",    "is",   "lambda", "nonlocal", "not",     "or",     "pass",  "raise",
    "return",   "try",    "while", "with", "yield",  "all",      "list",    "dict",   "range", "tuple",
    "zip",      "len",    "max",   "min",  "sum",    "any",      "int",     "print",  "math",  "os",
    "sys",      "torch",  "dist",  "F",    "np",     "part",     "f16",     "bf16",   "f32",   "f64",
    "i8",       "i16",    "i32",   "i64",  "u8",     "boolean",  "args",    "base64", "zlib",  "sorted",
    "reversed", "set",    "open",  "id"};

static bool py_taken(const py_names *in, const char *name) {
  for (u32 it = 0, id; hmap_next(&in->map, hash_bytes(name, strlen(name), 1), &it, &id);)
    if (!strcmp(in->used.v[id], name)) return true;
  return false;
}

static void take(py *w, py_names *in, const char *name) {
  hmap_add(w->a, &in->map, hash_bytes(name, strlen(name), 1), in->used.n);
  *vec_push(w->a, &in->used) = name;
  *vec_push(w->a, &in->numbered) = 1;
}

static bool is_reserved(const char *name) {
  for (u32 k = 0; k < COUNT_OF(reserved); k++)
    if (!strcmp(reserved[k], name)) return true;
  return false;
}

const char *py_name(py *w, py_names *in, const char *like) {
  strbuf b = {.a = w->a};
  for (const char *s = like; *s; s++) {
    const bool fits = isalnum((u8)*s) && (u8)*s < 128;
    if (!b.n && (!fits || isdigit((u8)*s))) sb_char(&b, 'x');
    if (fits)
      sb_char(&b, *s);
    else if (b.n && b.v[b.n - 1] != '_')
      sb_char(&b, '_');
  }
  while (b.n > 1 && b.v[b.n - 1] == '_') b.v[--b.n] = 0;
  const char *base = b.n ? sb_str(&b) : "x", *name = base;
  u32 own = in->used.n;
  for (u32 it = 0, id; hmap_next(&in->map, hash_bytes(base, strlen(base), 1), &it, &id);)
    if (!strcmp(in->used.v[id], base)) own = id;
  u32 k = own < in->used.n ? in->numbered.v[own] : 1;
  while (is_reserved(name) || py_taken(in, name) || (in != &w->global && py_taken(&w->global, name))) {
    strbuf n = {.a = w->a};
    sb_fmt(&n, "%s_%u", base, ++k);
    name = sb_str(&n);
  }
  if (own < in->used.n) in->numbered.v[own] = k;
  take(w, in, name);
  return name;
}

void py_quote(strbuf *b, const char *s) {
  sb_char(b, '"');
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') sb_char(b, '\\');
    if ((u8)*s < ' ')
      sb_fmt(b, "\\x%02x", (u8)*s);
    else
      sb_char(b, *s);
  }
  sb_char(b, '"');
}

void py_float(strbuf *b, double x) {
  char text[40];
  if (x != x || x - x != 0) {
    sb_put(b, x != x ? "math.nan" : x > 0 ? "math.inf" : "-math.inf");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  sb_put(b, text);
  if (!strpbrk(text, ".e")) sb_put(b, ".0");
}

const char *py_dtype(py *w, dtype t, loc where) {
  if (t != DT_U16 && t != DT_U32 && t != DT_U64) return t == DT_BOOL ? "boolean" : dtype_name(t);
  py_refuse(w, where, "PyTorch has no element type %s", dtype_name(t));
  return NULL;
}

void py_ints(strbuf *b, const i64 *v, u32 n, bool list) {
  sb_char(b, list ? '[' : '(');
  for (u32 k = 0; k < n; k++) sb_fmt(b, "%s%lld", k ? ", " : "", (long long)v[k]);
  sb_put(b, list ? "]" : n == 1 ? ",)" : ")");
}

static void blanks(strbuf *b, u32 n) {
  for (; n; n--) sb_char(b, ' ');
}

static size_t column(const strbuf *b) {
  size_t n = 0;
  while (n < b->n && b->v[b->n - 1 - n] != '\n') n++;
  return n;
}

// Items behind what stands in the line; where they and `more` columns do not fit, in lines of their own.
static void put_items(strbuf *b, u32 indent, const char *const *item, u32 n, size_t more) {
  size_t width = column(b) + more;
  for (u32 k = 0; k < n; k++) width += strlen(item[k]) + (k ? 2 : 0);
  if (width <= PY_LINE || !n) {
    for (u32 k = 0; k < n; k++) sb_fmt(b, "%s%s", k ? ", " : "", item[k]);
    return;
  }
  for (u32 k = 0; k < n; k++) {
    if (!k || column(b) + strlen(item[k]) + 2 > PY_LINE) {
      sb_char(b, '\n');
      blanks(b, indent + PY_INDENT);
    } else
      sb_char(b, ' ');
    sb_fmt(b, "%s,", item[k]);
  }
  sb_char(b, '\n');
  blanks(b, indent);
}

void py_line(py *w, u32 indent, const char *head, const char *const *item, u32 n, const char *tail) {
  blanks(&w->text, indent);
  sb_put(&w->text, head);
  put_items(&w->text, indent, item, n, strlen(tail));
  sb_fmt(&w->text, "%s\n", tail);
}

void py_assign(py *w, u32 indent, const char *const *left, u32 nleft, const char *head,
               const char *const *item, u32 n, const char *tail) {
  strbuf *b = &w->text;
  size_t width = indent;
  for (u32 k = 0; k < nleft; k++) width += strlen(left[k]) + 2;
  const bool many = nleft > 1 && width + strlen(head) + (n ? 12 : 1) > PY_LINE;
  blanks(b, indent);
  if (many) sb_char(b, '(');
  put_items(b, indent, left, nleft, many ? PY_LINE : 0);
  sb_fmt(b, "%s%s%s", many ? ")" : "", nleft ? " = " : "", head);
  put_items(b, indent, item, n, strlen(tail));
  sb_fmt(b, "%s\n", tail);
}

void py_put(py *w, u32 indent, const char *fmt, ...) {
  char small[512], *line = small;
  va_list va;
  va_start(va, fmt);
  const int n = vsnprintf(small, sizeof small, fmt, va);
  va_end(va);
  if (n >= (int)sizeof small) {
    line = arena_alloc(w->a, (size_t)n + 1);
    va_start(va, fmt);
    vsnprintf(line, (size_t)n + 1, fmt, va);
    va_end(va);
  }
  if (n) blanks(&w->text, indent);
  sb_put(&w->text, line);
  sb_char(&w->text, '\n');
}

void py_comment(py *w, u32 indent, const char *text) {
  strbuf *b = &w->text;
  size_t at = PY_LINE;
  for (const char *s = text; *s;) {
    const size_t n = strcspn(s, " ");
    if (at + n + 1 > PY_LINE) {
      if (s != text) sb_char(b, '\n');
      blanks(b, indent);
      sb_char(b, '#');
      at = indent + 1;
    }
    sb_char(b, ' ');
    sb_putn(b, s, n);
    at += n + 1;
    s += n + strspn(s + n, " ");
  }
  sb_char(b, '\n');
}

bool py_refuse(py *w, loc where, const char *fmt, ...) {
  if (w->here ? w->why != NULL : w->failed) return false;
  va_list va;
  va_start(va, fmt);
  char text[512];
  vsnprintf(text, sizeof text, fmt, va);
  va_end(va);
  if (w->here) {
    w->why = arena_strdup(w->a, text);
    return false;
  }
  w->failed = true;
  diag(w->c, E_EXPORT, where, "%s", text);
  return false;
}

void py_refuse_hint(py *w, bool first, const char *hint) {
  if (first && !w->here) diag_hint(w->c, "%s", hint);
}
