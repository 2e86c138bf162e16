// text.c - building text in an arena. Not for parsing; numbers are printed the same under every locale
// because Heddle never calls setlocale.
#include "base/internal.h"

static void room(strbuf *b, size_t n) {
  if (b->cap - b->n > n) return; // one more for the NUL
  size_t cap = MAX(2 * b->cap, b->n + n + 1);
  cap = MAX(cap, (size_t)64);
  char *v = arena_alloc(b->a, cap);
  if (b->n) memcpy(v, b->v, b->n);
  b->v = v;
  b->cap = cap;
}

void sb_putn(strbuf *b, const char *s, size_t n) {
  room(b, n);
  if (n) memcpy(b->v + b->n, s, n);
  b->n += n;
  b->v[b->n] = 0;
}

void sb_put(strbuf *b, const char *s) { sb_putn(b, s, strlen(s)); }

void sb_char(strbuf *b, char ch) { sb_putn(b, &ch, 1); }

void sb_fmt(strbuf *b, const char *fmt, ...) {
  va_list ap;
  room(b, 63);
  size_t left = b->cap - b->n;
  va_start(ap, fmt);
  int n = vsnprintf(b->v + b->n, left, fmt, ap);
  va_end(ap);
  assert(n >= 0);
  if ((size_t)n >= left) {
    room(b, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(b->v + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
  }
  b->n += (size_t)n;
}

void sb_i64(strbuf *b, i64 x) {
  char buf[20], *p = buf + sizeof buf;
  u64 u = x < 0 ? -(u64)x : (u64)x;
  do *--p = (char)('0' + u % 10);
  while (u /= 10);
  if (x < 0) *--p = '-';
  sb_putn(b, p, (size_t)(buf + sizeof buf - p));
}

const char *sb_str(strbuf *b) { return b->v ? b->v : ""; }

u32 utf8_len(const char *s, size_t n) {
  const u8 *p = (const u8 *)s;
  if (!n) return 0;
  if (p[0] < 0x80) return 1;
  u32 len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || p[0] > 0xF4 || n < len) return 0;
  for (u32 i = 1; i < len; i++)
    if ((p[i] & 0xC0) != 0x80) return 0;
  if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F)) return 0;
  if ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)) return 0;
  return len;
}

// Characters that are not shown but change what is: of control, and of format (Unicode's Cf), some of which turn the
// direction of all that follows; ends of lines and paragraphs.
static bool is_control(u32 ch) {
  static const u32 ranges[][2] = {
      {0, 0x1F},          {0x7F, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},
      {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x180E, 0x180E},
      {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},
      {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
      {0xE0001, 0xE0001}, {0xE0020, 0xE007F}};
  for (u32 k = 0; k < COUNT_OF(ranges) && ch >= ranges[k][0]; k++)
    if (ch <= ranges[k][1]) return true;
  return false;
}

// The first bytes of s are those of one character that a terminal shows; how many; 0: they are not.
static u32 shown(const char *s, size_t n) {
  const u32 len = utf8_len(s, n);
  u32 ch = len > 1 ? (u8)*s & (0xFFu >> (len + 1)) : (u8)*s;
  for (u32 k = 1; k < len; k++) ch = ch << 6 | ((u8)s[k] & 0x3F);
  return is_control(ch) ? 0 : len;
}

void sb_clean(strbuf *b, const char *s, size_t n, const char *keep) {
  for (const char *end = s + n; s < end;) {
    const u32 len = shown(s, (size_t)(end - s)), step = MAX(len, 1u);
    if (len || (*s && strchr(keep, *s)))
      sb_putn(b, s, step);
    else
      sb_fmt(b, "\\x%02x", (u8)*s);
    s += step;
  }
}

void sb_shell(strbuf *b, const char *s) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=,+@%-";
  if (*s && !s[strspn(s, plain)]) {
    sb_put(b, s);
    return;
  }
  sb_char(b, '\'');
  for (; *s; s++) *s == '\'' ? sb_put(b, "'\\''") : sb_char(b, *s);
  sb_char(b, '\'');
}

void sb_json_str(strbuf *b, const char *s) {
  sb_char(b, '"');
  for (size_t n = strlen(s); n;) {
    u32 len = utf8_len(s, n);
    if (!len)
      sb_put(b, "\\ufffd"); // names in model files are any bytes; JSON is UTF-8
    else if (*s == '"' || *s == '\\')
      sb_fmt(b, "\\%c", *s);
    else if (*s == '\n')
      sb_put(b, "\\n");
    else if (*s == '\t')
      sb_put(b, "\\t");
    else if ((u8)*s < 0x20 || *s == 0x7F)
      sb_fmt(b, "\\u%04x", *s);
    else
      sb_putn(b, s, len);
    s += MAX(len, 1u);
    n -= MAX(len, 1u);
  }
  sb_char(b, '"');
}
