// json.c - reads one JSON document (RFC 8259) into a tree. For small documents: settings, plans, test data.
//
// Idea: strict. What the standard leaves open and a C program could misread is refused at its place: names
// given twice, numbers beyond double, NUL in strings, lone surrogates, bytes that are not UTF-8.
#include "base/internal.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { DEPTH_MAX = 64 };

typedef struct {
  ctx *c;
  arena *a;
  sym file;
  const char *text, *p, *end;
  int depth;
  u32 line; // of the file: the first one of the text
} reader;

static bool bad(reader *r, const char *at, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool value(reader *r, json *out);

static bool bad(reader *r, const char *at, const char *fmt, ...) {
  u32 line = r->line;
  const char *start = r->text;
  for (const char *s = r->text; s < at; s++)
    if (*s == '\n') line++, start = s + 1;
  const char *stop = memchr(start, '\n', (size_t)(r->end - start));
  const char *copy = arena_strndup(r->a, start, (size_t)((stop ? stop : r->end) - start));
  va_list ap;
  va_start(ap, fmt);
  const char *message = arena_vprintf(r->a, fmt, ap);
  va_end(ap);
  diag(r->c, E_JSON, loc_text(r->c, r->file, line, (u32)(at - start) + 1, copy), "%s", message);
  return false;
}

static bool unexpected(reader *r, const char *wanted) {
  if (r->p == r->end) return bad(r, r->p, "the text ends where %s is expected", wanted);
  u32 n = utf8_len(r->p, (size_t)(r->end - r->p));
  if (!n || (u8)*r->p < 0x20) return bad(r, r->p, "byte 0x%02x where %s is expected", (u8)*r->p, wanted);
  return bad(r, r->p, "'%.*s' where %s is expected", (int)n, r->p, wanted);
}

static void space(reader *r) {
  while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) r->p++;
}

static bool take(reader *r, char ch) {
  if (r->p == r->end || *r->p != ch) return false;
  r->p++;
  return true;
}

static bool digits(reader *r) {
  const char *s = r->p;
  while (r->p < r->end && *r->p >= '0' && *r->p <= '9') r->p++;
  return r->p > s || unexpected(r, "a digit");
}

static bool number(reader *r, json *out) {
  const char *s = r->p;
  take(r, '-');
  if (!take(r, '0') && !digits(r)) return false;
  if (take(r, '.') && !digits(r)) return false;
  if (take(r, 'e') || take(r, 'E')) {
    if (!take(r, '+')) take(r, '-');
    if (!digits(r)) return false;
  }
  out->kind = JSON_NUM;
  out->str = arena_strndup(r->a, s, (size_t)(r->p - s));
  out->num = strtod(out->str, NULL);
  return isfinite(out->num) || bad(r, s, "%s is too large for a number", out->str);
}

static bool hex4(reader *r, u32 *out) {
  *out = 0;
  for (int i = 0; i < 4; i++, r->p++) {
    char ch = r->p < r->end ? *r->p : 0;
    int lower = ch | 0x20;
    if (ch >= '0' && ch <= '9')
      *out = *out << 4 | (u32)(ch - '0');
    else if (lower >= 'a' && lower <= 'f')
      *out = *out << 4 | (u32)(lower - 'a' + 10);
    else
      return unexpected(r, "a hexadecimal digit");
  }
  return true;
}

static void put_utf8(strbuf *b, u32 u) {
  if (u < 0x80) {
    sb_char(b, (char)u);
  } else if (u < 0x800) {
    sb_char(b, (char)(0xC0 | u >> 6));
    sb_char(b, (char)(0x80 | (u & 0x3F)));
  } else {
    if (u < 0x10000) {
      sb_char(b, (char)(0xE0 | u >> 12));
    } else {
      sb_char(b, (char)(0xF0 | u >> 18));
      sb_char(b, (char)(0x80 | (u >> 12 & 0x3F)));
    }
    sb_char(b, (char)(0x80 | (u >> 6 & 0x3F)));
    sb_char(b, (char)(0x80 | (u & 0x3F)));
  }
}

static bool escape(reader *r, strbuf *b) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *s = r->p - 1, *f;
  if (r->p < r->end && *r->p && (f = strchr(from, *r->p))) {
    r->p++;
    sb_char(b, to[f - from]);
    return true;
  }
  u32 hi, lo;
  if (!take(r, 'u')) return unexpected(r, "an escape (one of \"\\/bfnrtu)");
  if (!hex4(r, &hi)) return false;
  if (!hi) return bad(r, s, "a string cannot hold the character \\u0000");
  if (hi >= 0xD800 && hi < 0xE000) {
    bool pair = hi < 0xDC00 && take(r, '\\') && take(r, 'u');
    if (pair && !hex4(r, &lo)) return false;
    if (!pair || lo < 0xDC00 || lo > 0xDFFF) return bad(r, s, "half of a surrogate pair");
    hi = 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
  }
  put_utf8(b, hi);
  return true;
}

// NULL if malformed.
static const char *string(reader *r) {
  const char *s = r->p;
  if (!take(r, '"')) return unexpected(r, "a string"), NULL;
  strbuf b = {.a = r->a};
  for (;;) {
    const char *run = r->p;
    u32 n = 1;
    while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (u8)*r->p >= 0x20 &&
           (n = utf8_len(r->p, (size_t)(r->end - r->p))))
      r->p += n;
    size_t len = (size_t)(r->p - run);
    if (r->p == r->end) return bad(r, s, "this string does not end"), NULL;
    if (take(r, '"')) {
      if (b.v) sb_putn(&b, run, len);
      return b.v ? b.v : arena_strndup(r->a, run, len);
    }
    if (!n) return bad(r, r->p, "byte 0x%02x is not UTF-8", (u8)*r->p), NULL;
    if (!take(r, '\\')) return bad(r, r->p, "control character 0x%02x in a string", (u8)*r->p), NULL;
    sb_putn(&b, run, len);
    if (!escape(r, &b)) return NULL;
  }
}

static bool array(reader *r, json *out) {
  VEC(json) items = {0};
  space(r);
  if (!take(r, ']')) {
    do {
      json v = {0};
      if (!value(r, &v)) return false;
      *vec_push(r->a, &items) = v;
      space(r);
    } while (take(r, ','));
    if (!take(r, ']')) return unexpected(r, "',' or ']'");
  }
  out->kind = JSON_ARR;
  out->item = items.v;
  out->n = items.n;
  return true;
}

static bool object(reader *r, json *out) {
  VEC(json) items = {0};
  VEC(const char *) keys = {0};
  hmap seen = {0};
  space(r);
  if (!take(r, '}')) {
    do {
      json v = {0};
      space(r);
      const char *at = r->p, *key = string(r);
      if (!key) return false;
      u64 h = hash_bytes(key, strlen(key), 0);
      for (u32 it = 0, k; hmap_next(&seen, h, &it, &k);) {
        assert(k < keys.n && keys.v);
        if (!strcmp(keys.v[k], key)) return bad(r, at, "the name \"%s\" occurs twice in one object", key);
      }
      hmap_add(r->a, &seen, h, keys.n);
      space(r);
      if (!take(r, ':')) return unexpected(r, "':'");
      if (!value(r, &v)) return false;
      *vec_push(r->a, &keys) = key;
      *vec_push(r->a, &items) = v;
      space(r);
    } while (take(r, ','));
    if (!take(r, '}')) return unexpected(r, "',' or '}'");
  }
  out->kind = JSON_OBJ;
  out->item = items.v;
  out->key = keys.v;
  out->n = items.n;
  return true;
}

static bool word(reader *r, const char *w) {
  size_t n = strlen(w);
  if ((size_t)(r->end - r->p) < n || memcmp(r->p, w, n)) return false;
  r->p += n;
  return true;
}

static bool value(reader *r, json *out) {
  space(r);
  const char *s = r->p;
  if (s < r->end && (*s == '-' || (*s >= '0' && *s <= '9'))) return number(r, out);
  if (s < r->end && *s == '"') {
    out->kind = JSON_STR;
    return (out->str = string(r)) != NULL;
  }
  bool arr = take(r, '[');
  if (arr || take(r, '{')) {
    if (++r->depth > DEPTH_MAX) return bad(r, s, "nested deeper than %d levels", DEPTH_MAX);
    bool ok = arr ? array(r, out) : object(r, out);
    r->depth--;
    return ok;
  }
  if (word(r, "null")) return true;
  out->kind = JSON_BOOL;
  out->num = word(r, "true");
  return out->num != 0 || word(r, "false") || unexpected(r, "a value");
}

const json *json_parse(ctx *c, arena *a, sym file, const char *text, size_t n) {
  return json_parse_line(c, a, file, text, n, 1);
}

const json *json_parse_line(ctx *c, arena *a, sym file, const char *text, size_t n, u32 line) {
  reader r = {.c = c, .a = a, .file = file, .text = text, .p = text, .end = text + n, .line = line};
  json *root = NEW(a, json);
  if (!value(&r, root)) return NULL;
  space(&r);
  if (r.p < r.end) return unexpected(&r, "the end of the text"), NULL;
  return root;
}

const json *json_get(const json *j, const char *key) {
  if (!j || j->kind != JSON_OBJ) return NULL;
  for (u32 i = 0; i < j->n; i++)
    if (!strcmp(j->key[i], key)) return &j->item[i];
  return NULL;
}
