// literal.c - constant elements as text: single ones, exact in every element type, and base64 for many.
//
// Idea: a float is written with the fewest digits that read back as the same bits; what has no such decimal
// (a NaN with a payload) is written as its bits, 0x....
#include "ir/internal.h"
#include <math.h>
#include <stdlib.h>

void lit_put_float(strbuf *b, double x) {
  char text[40];
  if (isnan(x)) {
    sb_put(b, "nan");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  sb_put(b, text);
}

// A binary float of 1 + exponent + mantissa bits, and how a double becomes one: nearest, ties to even, once.
typedef struct {
  int exponent, mantissa;
} float_form;

static bool form_of(dtype t, float_form *f) {
  switch (t) {
  case DT_F16: *f = (float_form){5, 10}; return true;
  case DT_BF16: *f = (float_form){8, 7}; return true;
  case DT_F32: *f = (float_form){8, 23}; return true;
  case DT_F64: *f = (float_form){11, 52}; return true;
  default: return false;
  }
}

static u64 nan_of(float_form f) { return (((u64)2 << f.exponent) - 1) << (f.mantissa - 1); }

static u64 encode(float_form f, double x) {
  int bias = (1 << (f.exponent - 1)) - 1, e;
  u64 sign = (u64)(signbit(x) != 0) << (f.exponent + f.mantissa);
  u64 infinity = (((u64)1 << f.exponent) - 1) << f.mantissa;
  if (isnan(x)) return nan_of(f);
  if (isinf(x)) return sign | infinity;
  if (x == 0) return sign;
  frexp(x, &e);
  int scale = MAX(e - 1, 1 - bias); // of the last place: normal or subnormal
  u64 q = (u64)rint(ldexp(fabs(x), f.mantissa - scale));
  u64 bits = q + ((u64)(scale + bias - 1) << f.mantissa); // a carry of q moves to the next exponent by itself
  return sign | MIN(bits, infinity);
}

static double decode(float_form f, u64 bits) {
  int bias = (1 << (f.exponent - 1)) - 1, e = (int)(bits >> f.mantissa & (((u64)1 << f.exponent) - 1));
  u64 m = bits & (((u64)1 << f.mantissa) - 1);
  double x;
  if (e == (1 << f.exponent) - 1)
    x = m ? NAN : INFINITY;
  else
    x = e ? ldexp((double)(m | (u64)1 << f.mantissa), e - bias - f.mantissa)
          : ldexp((double)m, 1 - bias - f.mantissa);
  return bits >> (f.exponent + f.mantissa) ? -x : x;
}

static u64 load(dtype t, const void *elem) { // little-endian, as everything here
  u64 bits = 0;
  memcpy(&bits, elem, dtype_bytes(t));
  return bits;
}

void lit_put_elem(strbuf *b, dtype t, const void *elem) {
  u64 bits = load(t, elem);
  float_form f;
  if (form_of(t, &f)) {
    double x = decode(f, bits);
    if (isnan(x) && bits != nan_of(f)) {
      sb_fmt(b, "0x%llx", (unsigned long long)bits);
      return;
    }
    char text[40];
    for (int digits = 1; digits <= 17 && !isnan(x); digits++) {
      snprintf(text, sizeof text, "%.*g", digits, x);
      if (encode(f, strtod(text, NULL)) == bits) break;
    }
    sb_put(b, isnan(x) ? "nan" : text);
    return;
  }
  int unused = 64 - 8 * (int)dtype_bytes(t);
  switch (dtype_kind_of(t)) {
  case DK_BOOL: sb_fmt(b, bits < 2 ? bits ? "true" : "false" : "0x%x", (unsigned)bits); return;
  case DK_INT: sb_i64(b, (i64)(bits << unused) >> unused); return;
  default: sb_fmt(b, "%llu", (unsigned long long)bits); return;
  }
}

bool lit_get_elem(dtype t, const char *s, size_t n, void *elem) {
  char text[64], *end;
  float_form f;
  u32 width = 8 * dtype_bytes(t);
  u64 bits = 0;
  if (n == 0 || n >= sizeof text) return false;
  memcpy(text, s, n);
  text[n] = 0;
  bool raw = n > 2 && text[0] == '0' && text[1] == 'x', negative = *text == '-';
  if (raw) {
    if (n > 18) return false;
    bits = strtoull(text + 2, &end, 16);
    if (*end || (width < 64 && bits >> width)) return false;
  } else if (form_of(t, &f)) {
    double x = strtod(text, &end);
    if (*end) return false;
    bits = encode(f, x);
  } else if (dtype_kind_of(t) == DK_BOOL) {
    bits = strcmp(text, "true") == 0;
    if (!bits && strcmp(text, "false") != 0) return false;
  } else {
    if (n - negative > 20 || text[negative + 0] < '0' || text[negative + 0] > '9') return false;
    if (strspn(text + negative, "0123456789") != n - negative) return false;
    u64 limit = dtype_kind_of(t) == DK_INT ? ((u64)1 << (width - 1)) - !negative
                : width < 64               ? ((u64)1 << width) - 1
                                           : ~(u64)0;
    if (negative && dtype_kind_of(t) != DK_INT) return false;
    for (const char *d = text + negative; *d; d++) {
      u64 digit = (u64)(*d - '0');
      if (bits > (limit - digit) / 10) return false;
      bits = bits * 10 + digit;
    }
    if (negative) bits = -bits;
  }
  memcpy(elem, &bits, dtype_bytes(t));
  return true;
}

// ---- base64 -----------------------------------------------------------------------------------------
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void lit_put_base64(strbuf *b, const u8 *bytes, size_t n) {
  for (; n; bytes += MIN(n, (size_t)3), n -= MIN(n, (size_t)3)) {
    u32 w = (u32)bytes[0] << 16 | (n > 1 ? (u32)bytes[1] << 8 : 0) | (n > 2 ? bytes[2] : 0);
    char four[4] = {letters[w >> 18], letters[w >> 12 & 63], n > 1 ? letters[w >> 6 & 63] : '=',
                    n > 2 ? letters[w & 63] : '='};
    sb_putn(b, four, 4);
  }
}

static u32 value_of(char ch) { // 64: none
  if (ch >= 'A' && ch <= 'Z') return (u32)(ch - 'A');
  if (ch >= 'a' && ch <= 'z') return (u32)(ch - 'a' + 26);
  if (ch >= '0' && ch <= '9') return (u32)(ch - '0' + 52);
  return ch == '+' ? 62 : ch == '/' ? 63 : 64;
}

bool lit_get_base64(const char *s, size_t n, u8 **out, const u8 *end) {
  if (n % 4) return false;
  for (; n; s += 4, n -= 4) {
    u32 pad = n > 4 || s[3] != '=' ? 0 : s[2] != '=' ? 1 : 2, w = 0, seen = 0;
    for (u32 k = 0; k < 4; k++) {
      u32 six = k < 4 - pad ? value_of(s[k]) : 0;
      seen |= six;
      w = w << 6 | (six & 63);
    }
    if (seen & 64 || (pad && w & ((1u << 8 * pad) - 1))) return false; // one text for one value
    if (end - *out < (ptrdiff_t)(3 - pad)) return false;
    for (u32 k = 0; k < 3 - pad; k++) *(*out)++ = (u8)(w >> (16 - 8 * k));
  }
  return true;
}
