// scan.c - JSON as a stream of values: pulled one at a time, through a buffer of a fixed size, without a tree.
// Not small documents (json_parse in base/), not what values mean.
//
// Idea: a reader enters objects and arrays, asks for members and elements, and takes or passes over every value.
// What is passed over is looked at in blocks of 64 bytes: quotes, brackets and braces become bit masks, the bits
// inside strings are cleared, and a block that cannot close the value is counted and left behind.
// Commas may be missing or too many, and brackets are not held against braces: traces in the wild are so. What is
// no JSON at all stops the scanner (SCAN_BAD) until scan_find takes it to a place where it can go on.
#include "trace/scan.h"

enum { SIZE = 1 << 17, BLOCK = 64, TEXT_MOST = 1 << 16, KEY_MOST = 64 };
struct scan {
  input *in;
  u8 *at, *end; // bytes that were not looked at yet
  u64 before;   // bytes of the file before buf
  bool last;    // the input has no more than what is here
  scan_state state;
  u8 *buf;    // SIZE bytes, then spaces for a block
  char *text; // of a string without its escapes, or too long for buf
  char key[KEY_MOST];
};

scan *scan_new(arena *a, input *in) {
  scan *s = NEW(a, scan);
  s->in = in;
  s->buf = NEWN(a, u8, SIZE + BLOCK);
  s->text = NEWN(a, char, TEXT_MOST + 8);
  s->at = s->end = s->buf;
  memset(s->buf, ' ', BLOCK);
  return s;
}

scan_state scan_is(const scan *s) { return s->state; }
u64 scan_offset(const scan *s) { return s->before + (u64)(s->at - s->buf); }

static bool stop(scan *s, scan_state state) {
  if (s->state == SCAN_OK) s->state = state;
  return false;
}

// Brings more bytes behind those from *keep on, which move to the start of the buffer. False: there are no more, or
// there is no room for them.
static bool more(scan *s, u8 **keep) {
  const size_t kept = (size_t)(s->end - *keep), at = (size_t)(s->at - *keep);
  if (s->last || kept == SIZE) return false;
  memmove(s->buf, *keep, kept);
  s->before += (u64)(*keep - s->buf);
  const size_t got = input_read(s->in, s->buf + kept, SIZE - kept);
  s->last = got < SIZE - kept;
  *keep = s->buf, s->at = s->buf + at, s->end = s->buf + kept + got;
  memset(s->end, ' ', BLOCK);
  return got > 0;
}

// ---- blocks -------------------------------------------------------------------------------------------------
typedef u8 v16 __attribute__((vector_size(16)));
typedef u64 w16 __attribute__((vector_size(16)));

static inline v16 load16(const u8 *p) {
  v16 x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline v16 all16(u8 x) { return (v16){0} + x; }

// A bit for every byte, which is 0 or 255: that of the first byte is the lowest.
static inline u32 bits16(v16 x) {
#ifdef __SSE2__
  return (u32)__builtin_ia32_pmovmskb128((char __attribute__((vector_size(16))))x);
#else
  u32 bits = 0;
  for (u32 k = 0; k < 16; k++) bits |= (u32)(x[k] & 1) << k;
  return bits;
#endif
}
static inline bool any16(v16 x) {
  const w16 w = (w16)x;
  return w[0] | w[1];
}
static inline u32 ones(u64 x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  return (u32)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}

// The next byte that is no space, not taken; -1: none.
static int peek(scan *s) {
  if (s->state != SCAN_OK) return -1;
  for (;;) {
    if (s->at<s->end && * s->at> ' ') return *s->at;
    while (s->at < s->end) { // files are indented: runs of spaces
      const u32 other = ~bits16((v16)(load16(s->at) <= all16(' '))) & 0xffff;
      if (other) return *(s->at += __builtin_ctz(other)); // behind the end there are spaces
      s->at += 16;
    }
    s->at = s->end;
    if (!more(s, &s->at)) return stop(s, SCAN_ENDED), -1;
  }
}

void scan_mark(scan *s) {
  if (peek(s) == 0xef && s->end - s->at >= 3 && s->at[1] == 0xbb && s->at[2] == 0xbf) s->at += 3;
}

typedef struct {
  u64 quote, open, close;
  bool escapes;
} block;

static inline block look(const u8 *p) {
  block b = {0};
  v16 escape = {0};
  for (u32 k = 0; k < 4; k++) {
    const v16 x = load16(p + 16 * k), low = x | all16(0x20); // [ and ] as { and }
    b.quote |= (u64)bits16((v16)(x == all16('"'))) << 16 * k;
    b.open |= (u64)bits16((v16)(low == all16('{'))) << 16 * k;
    b.close |= (u64)bits16((v16)(low == all16('}'))) << 16 * k;
    escape |= (v16)(x == all16('\\'));
  }
  b.escapes = any16(escape);
  return b;
}

typedef struct {
  u64 depth;
  bool in_string, escaped;
} nesting;

// Byte by byte, as far as `end` or to behind the end of the value.
static const u8 *pass_bytes(nesting *n, const u8 *p, const u8 *end) {
  for (; p < end && n->depth; p++) {
    if (n->escaped) {
      n->escaped = false;
    } else if (n->in_string) {
      if (*p == '\\') n->escaped = true;
      if (*p == '"') n->in_string = false;
    } else if (*p == '"') {
      n->in_string = true;
    } else if (*p == '{' || *p == '[') {
      n->depth++;
    } else if (*p == '}' || *p == ']') {
      n->depth--;
    }
  }
  return p;
}

// Takes all to the end of the value that is open n deep.
static bool pass(scan *s, u64 depth) {
  nesting n = {.depth = depth};
  while (n.depth) {
    if (s->end - s->at < BLOCK && !more(s, &s->at) && s->at >= s->end) return stop(s, SCAN_ENDED);
    const u8 *p = s->at, *end = MIN(p + BLOCK, s->end);
    const block b = look(p);
    if (b.escapes || n.escaped) {
      s->at = (u8 *)pass_bytes(&n, p, end);
      continue;
    }
    u64 inside = b.quote; // bits from a quote on to the next
    for (u32 k = 1; k < BLOCK; k *= 2) inside ^= inside << k;
    if (n.in_string) inside = ~inside;
    const u64 open = b.open & ~inside, close = b.close & ~inside;
    const u32 closes = ones(close);
    if (n.depth > closes) {
      n.depth = n.depth + ones(open) - closes;
      n.in_string = inside >> 63;
      s->at = (u8 *)end;
      continue;
    }
    for (u64 both = open | close; both && n.depth; both &= both - 1) {
      const u32 k = (u32)__builtin_ctzll(both);
      n.depth += open >> k & 1 ? 1 : -(u64)1;
      s->at = (u8 *)p + k + 1;
    }
    if (n.depth) n.in_string = inside >> 63, s->at = (u8 *)end;
  }
  return true;
}

// ---- strings ------------------------------------------------------------------------------------------------
// The first quote or escape from p on; end: none.
static inline u8 *string_stop(u8 *p, u8 *end) {
  for (; p < end; p += 16) {
    const v16 x = load16(p);
    const u32 bits = bits16((v16)(x == all16('"')) | (v16)(x == all16('\\')));
    if (bits) return MIN(p + __builtin_ctz(bits), end);
  }
  return end;
}

// A string that the buffer has no room for: its start is kept, the rest is passed over.
static bool long_string(scan *s, u8 *start, scan_text *out) {
  memcpy(s->text, start, TEXT_MOST);
  *out = (scan_text){s->text, TEXT_MOST, true};
  s->at = start;
  for (bool escaped = false;;) {
    for (; s->at < s->end; s->at++) {
      if (!escaped && *s->at == '"') return s->at++, true;
      escaped = !escaped && *s->at == '\\';
    }
    if (!more(s, &s->at)) return stop(s, SCAN_ENDED);
  }
}

// The string that starts here, as it is written: its text is in the buffer.
static bool take_string(scan *s, scan_text *out) {
  u8 *start = ++s->at, *p = start;
  bool escapes = false;
  for (;;) {
    p = string_stop(p, s->end);
    if (p >= s->end) {
      const size_t done = (size_t)(p - start);
      if (!more(s, &start)) return s->last ? stop(s, SCAN_ENDED) : long_string(s, start, out);
      p = start + done;
    } else if (*p == '"') {
      break;
    } else { // what is escaped may not be here yet
      if (s->end - p < 2) {
        const size_t done = (size_t)(p - start);
        if (!more(s, &start)) return s->last ? stop(s, SCAN_ENDED) : long_string(s, start, out);
        p = start + done;
      }
      escapes = true, p += 2;
    }
  }
  *out = (scan_text){(const char *)start, (u32)(p - start), escapes};
  s->at = p + 1;
  return true;
}

static u32 hex4(const char *v, const char *end) {
  u32 x = 0;
  for (u32 k = 0; k < 4; k++) {
    const int ch = v + k < end ? v[k] : 'x';
    const int digit = ch >= '0' && ch <= '9'                 ? ch - '0'
                      : (ch | 32) >= 'a' && (ch | 32) <= 'f' ? (ch | 32) - 'a' + 10
                                                             : -1;
    if (digit < 0) return 0xfffd;
    x = x << 4 | (u32)digit;
  }
  return x;
}

static char *utf8(char *to, u32 ch) {
  if (ch < 0x80) return *to = (char)ch, to + 1;
  const u32 n = ch < 0x800 ? 1 : ch < 0x10000 ? 2 : 3;
  *to++ = (char)((n == 1 ? 0xc0u : n == 2 ? 0xe0u : 0xf0u) | ch >> 6 * n);
  for (u32 k = n; k-- > 0;) *to++ = (char)(0x80u | (ch >> 6 * k & 0x3f));
  return to;
}

void scan_plain(scan *s, scan_text *t) {
  if (!t->escaped) return;
  static const char from[] = "bfnrt", is[] = "\b\f\n\r\t";
  const char *v = t->v, *end = v + t->n;
  char *to = s->text;
  while (v < end && to < s->text + TEXT_MOST - 4) {
    if (*v != '\\' || v + 1 >= end) {
      *to++ = *v++;
      continue;
    }
    const char *known = v[1] ? strchr(from, v[1]) : NULL;
    if (v[1] != 'u') {
      *to++ = known ? is[known - from] : v[1];
      v += 2;
      continue;
    }
    u32 ch = hex4(v + 2, end);
    v += MIN(6, end - v);
    if (ch >> 10 == 0x36 && end - v >= 6 && v[0] == '\\' && v[1] == 'u') { // the first of a pair
      const u32 low = hex4(v + 2, end);
      if (low >> 10 == 0x37) ch = 0x10000 + ((ch & 0x3ff) << 10 | (low & 0x3ff)), v += 6;
    }
    to = utf8(to, ch >> 11 == 0x1b || !ch ? 0xfffd : ch);
  }
  *t = (scan_text){s->text, (u32)(to - s->text), false};
}

// ---- values -------------------------------------------------------------------------------------------------
static inline bool ends_word(u8 ch) {
  return ch <= ' ' || ch == ',' || ch == '}' || ch == ']' || ch == ':' || ch == '"' || ch == '{' || ch == '[';
}

// A number, true, false, null: as it is written.
static bool take_word(scan *s, scan_text *out) {
  u8 *start = s->at, *p = start;
  for (;;) {
    while (p < s->end && !ends_word(*p)) p++;
    if (p < s->end) break;
    const size_t done = (size_t)(p - start);
    if (!more(s, &start)) break;
    p = start + done;
  }
  *out = (scan_text){(const char *)start, (u32)(p - start), false};
  s->at = p;
  return p > start || stop(s, SCAN_BAD);
}

bool scan_scalar(scan *s, scan_text *out) {
  const int ch = peek(s);
  *out = (scan_text){"", 0, false};
  if (ch < 0) return false;
  if (ch == '"') return take_string(s, out);
  if (ch != '{' && ch != '[') return take_word(s, out);
  s->at++;
  pass(s, 1);
  return false;
}

bool scan_string(scan *s, scan_text *out) {
  if (peek(s) == '"') return take_string(s, out);
  scan_skip(s);
  return false;
}

void scan_skip(scan *s) {
  scan_text t;
  scan_scalar(s, &t);
}

bool scan_leave(scan *s) { return s->state == SCAN_OK && pass(s, 1); }

static bool enter(scan *s, char with) {
  const int ch = peek(s);
  if (ch == with) return s->at++, true;
  if (ch >= 0) scan_skip(s);
  return false;
}
bool scan_object(scan *s) { return enter(s, '{'); }
bool scan_array(scan *s) { return enter(s, '['); }
bool scan_at_object(scan *s) { return peek(s) == '{'; }
bool scan_at_array(scan *s) { return peek(s) == '['; }

bool scan_element(scan *s) {
  int ch = peek(s);
  while (ch == ',') s->at++, ch = peek(s);
  if (ch == ']' || ch == '}') return s->at++, false;
  return ch >= 0;
}

bool scan_member(scan *s, scan_text *key) {
  int ch = peek(s);
  while (ch == ',') s->at++, ch = peek(s);
  if (ch < 0) return false;
  if (ch == '}' || ch == ']') return s->at++, false;
  if (ch != '"') return stop(s, SCAN_BAD);
  if (!take_string(s, key)) return false;
  if (s->at < s->end && *s->at == ':') return s->at++, true;
  key->n = MIN(key->n, KEY_MOST); // looking further may move the buffer
  memcpy(s->key, key->v, key->n);
  key->v = s->key;
  if (peek(s) != ':') return stop(s, SCAN_BAD);
  s->at++;
  return true;
}

bool scan_find(scan *s, const char *what) {
  const size_t n = strlen(what);
  if (s->state == SCAN_ENDED) return false;
  s->state = SCAN_OK;
  for (;;) {
    for (; s->at + n <= s->end; s->at++) {
      u8 *hit = memchr(s->at, what[0], (size_t)(s->end - s->at) - n + 1);
      s->at = hit ? hit : s->end - n;
      if (hit && !memcmp(hit, what, n)) return true;
    }
    if (!more(s, &s->at)) return stop(s, SCAN_ENDED);
  }
}

// ---- numbers ------------------------------------------------------------------------------------------------
// Digits without sign and point; the point is before digit `point`. Of more than 40 the last are dropped.
typedef struct {
  u8 digit[40];
  i64 n, point;
  bool minus;
} digits;

static bool read_digits(const char *v, u32 n, digits *d) {
  const char *p = v, *end = v + n;
  bool seen = false, point = false;
  *d = (digits){.minus = n && *v == '-'};
  if (p < end && (*p == '-' || *p == '+')) p++;
  for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
    if (*p == '.') {
      point = true;
      continue;
    }
    seen = true;
    if (!point && (d->n || *p != '0')) d->point++;
    if (point && !d->n && *p == '0') d->point--;
    if (d->n < 40 && (d->n || *p != '0')) d->digit[d->n++] = (u8)(*p - '0');
  }
  if (p < end && (*p | 32) == 'e') {
    const bool down = ++p < end && *p == '-';
    i64 by = 0;
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++) by = MIN(by * 10 + (*p - '0'), 1000000);
    d->point += down ? -by : by;
  }
  return seen && p == end;
}

static u64 part(const digits *d, i64 from, i64 to) {
  u64 x = 0;
  for (i64 k = from; k < to; k++) x = x * 10 + (k >= 0 && k < d->n ? d->digit[k] : 0);
  return x;
}

bool scan_decimal(scan_text t, i64 *whole, u32 *millionths) {
  u64 x = 0;
  u32 k = 0;
  while (k < t.n && k < 18 && t.v[k] >= '0' && t.v[k] <= '9') x = x * 10 + (u64)(t.v[k++] - '0');
  u32 part_of = 0, scale = 1000000;
  if (k && k < t.n && t.v[k] == '.')
    for (u32 f = k + 1; f <= t.n; f++) {
      if (f == t.n) {
        k = f;
        break;
      }
      if (t.v[f] < '0' || t.v[f] > '9') break;
      scale /= 10; // 0 from the seventh on
      part_of += scale * (u32)(t.v[f] - '0');
    }
  if (k && k == t.n) return *whole = (i64)x, *millionths = part_of, true;
  digits d;
  if (!read_digits(t.v, t.n, &d) || d.point > 18) return false;
  *whole = (i64)part(&d, 0, d.point);
  *millionths = (u32)part(&d, d.point, d.point + 6);
  if (d.minus && (*whole || *millionths)) {
    *whole = -*whole - (*millionths > 0);
    if (*millionths) *millionths = 1000000 - *millionths;
  }
  return true;
}

bool scan_nearest(scan_text t, i64 *whole, u32 *millionths) {
  digits d;
  if (t.n < 9 && !memchr(t.v, 'e', t.n) && !memchr(t.v, 'E', t.n)) return scan_decimal(t, whole, millionths);
  if (!read_digits(t.v, t.n, &d) || d.point > 18) return false;
  const i64 next = d.point + 6;
  const bool up = next >= 0 && next < MIN(d.n, 40) && d.digit[next] >= 5;
  *whole = (i64)part(&d, 0, d.point);
  *millionths = (u32)part(&d, d.point, next) + up;
  if (*millionths == 1000000) ++*whole, *millionths = 0;
  if (d.minus && (*whole || *millionths)) {
    *whole = -*whole - (*millionths > 0);
    if (*millionths) *millionths = 1000000 - *millionths;
  }
  return true;
}

bool scan_integer(scan_text t, i64 *out) {
  i64 whole;
  u32 rest;
  u64 x = 0;
  u32 k = 0; // numbers of 64 bits, as addresses and identifiers are
  while (k < t.n && t.v[k] >= '0' && t.v[k] <= '9' && x <= (UINT64_MAX - 9) / 10)
    x = x * 10 + (u64)(t.v[k++] - '0');
  if (k && k == t.n) return *out = (i64)x, true;
  if (!scan_decimal(t, &whole, &rest) || rest) return false;
  *out = whole;
  return true;
}
