// units.c - quantities with units: reading, checking, printing.
//
// Idea: a unit is a prefix and a base; which prefixes a base takes follows from its kind (nobody means
// mega-seconds or milli-bytes). A quantity without a unit or of another kind is refused, never converted:
// bytes and bits, amounts and rates are what machine descriptions get wrong.
#include "machine/machine.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
  const char *text;
  double factor;
} prefix_row;
static const prefix_row large[] = {
    {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"k", 1e3}, {"K", 1e3},
    {"M", 1e6},     {"G", 1e9},        {"T", 1e12},    {"P", 1e15},    {"E", 1e18},    {"", 1}};
static const prefix_row small[] = {{"m", 1e9}, {"u", 1e6}, {"\xC2\xB5", 1e6}, {"\xCE\xBC", 1e6},
                                   {"n", 1e3}, {"p", 1},   {"", 1e12}};

static const struct {
  const char *text;
  unit_kind kind;
  double factor;
} bases[] = {
    {"B", UNIT_BYTES, 1},
    {"b", UNIT_BITS, 1},
    {"bit", UNIT_BITS, 1},
    {"B/s", UNIT_BYTES_PER_S, 1},
    {"Bps", UNIT_BYTES_PER_S, 1},
    {"b/s", UNIT_BYTES_PER_S, 0.125},
    {"bit/s", UNIT_BYTES_PER_S, 0.125},
    {"bps", UNIT_BYTES_PER_S, 0.125},
    {"FLOP", UNIT_FLOP, 1},
    {"FLOP/s", UNIT_FLOP_PER_S, 1},
    {"FLOPS", UNIT_FLOP_PER_S, 1},
    {"OP/s", UNIT_FLOP_PER_S, 1},
    {"s", UNIT_PS, 1},
};

static const struct {
  const char *what, *print, *example;
} kinds[UNIT_KINDS] = {
    // example: after a number
    [UNIT_NUMBER] = {"a plain number", "", " or a percentage with %"},
    [UNIT_BYTES] = {"an amount of bytes", "B", " GiB or GB"},
    [UNIT_BITS] = {"an amount of bits", "b", " Gb"},
    [UNIT_BYTES_PER_S] = {"a bandwidth", "B/s", " GB/s (bytes) or Gb/s (bits)"},
    [UNIT_FLOP] = {"a number of operations", "FLOP", " GFLOP"},
    [UNIT_FLOP_PER_S] = {"a rate of operations", "FLOP/s", " TFLOP/s"},
    [UNIT_PS] = {"a time", "s", " us"},
};

static bool unit_of(const char *s, unit_kind *kind, double *factor) {
  if (!*s || !strcmp(s, "%")) {
    *kind = UNIT_NUMBER;
    *factor = *s ? 0.01 : 1;
    return true;
  }
  for (u32 b = 0; b < COUNT_OF(bases); b++) {
    bool time = bases[b].kind == UNIT_PS;
    const prefix_row *p = time ? small : large;
    for (u32 i = 0; i < (time ? COUNT_OF(small) : COUNT_OF(large)); i++) {
      size_t n = strlen(p[i].text);
      if (strncmp(s, p[i].text, n) || strcmp(s + n, bases[b].text)) continue;
      *kind = bases[b].kind;
      *factor = p[i].factor * bases[b].factor;
      return true;
    }
  }
  return false;
}

// Digits, point, exponent: strtod alone would also take hexadecimal, infinities and leading blanks.
static const char *number(const char *s, double *out) {
  const char *p = s + (*s == '-');
  size_t digits = strspn(p, "0123456789");
  p += digits;
  if (*p == '.') {
    size_t n = strspn(++p, "0123456789");
    digits += n;
    p += n;
  }
  if (!digits) return NULL;
  // "5e3" is a number, "5 EB" and "5E" are not exponents without digits.
  size_t sign = (*p == 'e' || *p == 'E') ? 1 + (p[1] == '-' || p[1] == '+') : 0;
  if (sign && strspn(p + sign, "0123456789")) p += sign + strspn(p + sign, "0123456789");
  char text[64];
  if ((size_t)(p - s) >= sizeof text) return NULL;
  memcpy(text, s, (size_t)(p - s));
  text[p - s] = 0;
  *out = strtod(text, NULL);
  return p;
}

static const char *blanks(const char *s) { return s + strspn(s, " \t"); }

bool unit_read(const char *text, double *out, unit_kind *kind) {
  double factor, x;
  const char *p = number(blanks(text), &x);
  if (!p || !unit_of(blanks(p), kind, &factor)) return false;
  *out = x * factor;
  return isfinite(*out);
}

enum { MANY_BYTES = 1000000 };
bool unit_parse(ctx *c, loc at, const char *what, const char *text, unit_kind want, double *out) {
  unit_kind got = UNIT_KINDS;
  double x;
  const char *rest = number(blanks(text), &x);
  if (!rest)
    diag(c, E_UNIT, at, "%s: '%s' is not a quantity", what, text);
  else if (!unit_read(text, out, &got) && unit_of(blanks(rest), &got, out))
    diag(c, E_UNIT, at, "%s: '%s' is too large", what, text), x = 0;
  else if (got == UNIT_KINDS)
    diag(c, E_UNIT, at, "%s: unknown unit '%s'", what, blanks(rest));
  else if (got != want && got == UNIT_NUMBER)
    diag(c, E_UNIT, at, "%s: '%s' has no unit; %s is needed", what, text, kinds[want].what);
  else if (got != want)
    diag(c, E_UNIT, at, "%s: '%s' is %s; %s is needed", what, text, kinds[got].what, kinds[want].what);
  else if (*out < 0)
    diag(c, E_UNIT, at, "%s: '%s' is negative", what, text);
  else
    return true;
  const char *digits = blanks(text);
  const int n = rest && rest > digits && x > 0 ? (int)(rest - digits) : 0;
  const bool bytes = want == UNIT_BYTES && n && x >= MANY_BYTES; // nobody means so many GiB
  if (rest && got == want && x < 0)
    diag_hint(c, "write %s", digits + 1);
  else
    diag_hint(c, "write %.*s%s", n ? n : 1, n ? digits : "1", bytes ? " B" : kinds[want].example);
  return false;
}

// As few digits as read back the same; false if 17 do not (x / factor was rounded).
static bool shortest(char *text, size_t room, double x, double factor) {
  double back;
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, room, "%.*g", digits, x / factor);
    if (number(text, &back) && back * factor == x) return true;
  }
  return false;
}

// The prefix that needs the fewest digits, of those the largest: 80 GiB, but 28 GB and 512 B.
void unit_print(strbuf *b, double x, unit_kind kind) {
  static const prefix_row none = {"", 1}, pico = {"p", 1};
  const bool time = kind == UNIT_PS;
  const prefix_row *rows = time ? small : large, *best = time ? &pico : &none;
  char text[40], least[40];
  shortest(least, sizeof least, x, 1);
  for (u32 i = 0; kind != UNIT_NUMBER && i < (time ? COUNT_OF(small) : COUNT_OF(large)); i++) {
    const prefix_row *p = &rows[i];
    const bool binary = p->text[0] && p->text[1] == 'i', second = p->text[0] == 'K' || (u8)p->text[0] > 127;
    if (x < p->factor || (second && !binary) || (binary && kind != UNIT_BYTES)) continue;
    if (!shortest(text, sizeof text, x, p->factor)) continue;
    if (strlen(text) > strlen(least) || (strlen(text) == strlen(least) && p->factor < best->factor)) continue;
    memcpy(least, text, sizeof least);
    best = p;
  }
  sb_put(b, least);
  if (kind != UNIT_NUMBER) sb_fmt(b, " %s%s", best->text, kinds[kind].print);
}
