// types.c - element types: to and from the two types that are computed with, f64 and i64.
//
// Idea: a conversion to a small float rounds the f64 once, to nearest even, on its bits: through f32 it would
// be rounded twice. What does not fit becomes infinite; integers keep their low bits.
#include "kernel/internal.h"

static u64 bits_of(double x) {
  u64 b;
  memcpy(&b, &x, 8);
  return b;
}

static double of_bits(u64 b) {
  double x;
  memcpy(&x, &b, 8);
  return x;
}

// A float of 16 bits with `frac` fraction bits and exponent bias `bias`.
static u16 round16(double x, int frac, int bias) {
  u64 b = bits_of(x);
  u16 sign = (u16)(b >> 48 & 0x8000), inf = (u16)(sign | (u32)(2 * bias + 1) << frac);
  int e = (int)(b >> 52 & 0x7ff) - 1023;
  if (e == 1024) return b << 12 ? inf | (u16)(1u << (frac - 1)) : inf;
  if (e < 1 - bias)
    return sign | (u16)rint(fabs(x) * of_bits((u64)(1023 + bias - 1 + frac) << 52)); // subnormal
  u64 keep = ((u64)(e + bias) << 52 | (b & ((1ull << 52) - 1))) >> (52 - frac);
  u64 rest = b & ((1ull << (52 - frac)) - 1), half = 1ull << (51 - frac);
  keep += rest > half || (rest == half && (keep & 1));
  return keep > (u64)(2 * bias + 1) << frac ? inf : sign | (u16)keep;
}

static double unround16(u16 h, int frac, int bias) {
  u64 sign = (u64)(h & 0x8000) << 48;
  int e = h >> frac & (2 * bias + 1);
  u64 m = h & ((1u << frac) - 1);
  if (e == 0) {
    double x = (double)m * of_bits((u64)(1023 + 1 - bias - frac) << 52);
    return sign ? -x : x;
  }
  u64 to = e == 2 * bias + 1 ? 2047 : (u64)(e - bias + 1023);
  return of_bits(sign | to << 52 | m << (52 - frac));
}

static i64 saturate(double x) {
  if (x != x) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  if (x < -9223372036854775808.0) return INT64_MIN;
  return (i64)x;
}

static u64 saturate_u64(double x) {
  return x >= 18446744073709551616.0 ? UINT64_MAX : x >= 9223372036854775808.0 ? (u64)x : (u64)saturate(x);
}

#define INTEGERS(DO)                                                                                         \
  DO(DT_I8, int8_t)                                                                                          \
  DO(DT_I16, int16_t)                                                                                        \
  DO(DT_I32, int32_t)                                                                                        \
  DO(DT_I64, int64_t)                                                                                        \
  DO(DT_U8, uint8_t)                                                                                         \
  DO(DT_U16, uint16_t)                                                                                       \
  DO(DT_U32, uint32_t)                                                                                       \
  DO(DT_U64, uint64_t)

void ker_load_f64(double *dst, dtype t, const void *src, i64 n) {
  switch (t) {
  case DT_F16:
    for (i64 i = 0; i < n; i++) dst[i] = unround16(((const u16 *)src)[i], 10, 15);
    return;
  case DT_BF16:
    for (i64 i = 0; i < n; i++) dst[i] = unround16(((const u16 *)src)[i], 7, 127);
    return;
#define CASE(t, T)                                                                                           \
  case t:                                                                                                    \
    for (i64 i = 0; i < n; i++) dst[i] = (double)((const T *)src)[i];                                        \
    return;
    CASE(DT_F32, float)
    CASE(DT_F64, double)
    INTEGERS(CASE)
    CASE(DT_BOOL, uint8_t)
#undef CASE
  default: assert(!"element type");
  }
}

void ker_load_i64(i64 *dst, dtype t, const void *src, i64 n) {
  switch (t) {
  case DT_F16:
  case DT_BF16:
  case DT_F32:
  case DT_F64:
    for (i64 i = 0; i < n; i++) {
      double x;
      ker_load_f64(&x, t, (const char *)src + i * dtype_bytes(t), 1);
      dst[i] = saturate(x);
    }
    return;
  case DT_BOOL:
    for (i64 i = 0; i < n; i++) dst[i] = ((const u8 *)src)[i] != 0;
    return;
#define CASE(t, T)                                                                                           \
  case t:                                                                                                    \
    for (i64 i = 0; i < n; i++) dst[i] = (i64)((const T *)src)[i];                                           \
    return;
    INTEGERS(CASE)
#undef CASE
  default: assert(!"element type");
  }
}

void ker_store_f64(void *dst, dtype t, const double *src, i64 n) {
  switch (t) {
  case DT_F16:
    for (i64 i = 0; i < n; i++) ((u16 *)dst)[i] = round16(src[i], 10, 15);
    return;
  case DT_BF16:
    for (i64 i = 0; i < n; i++) ((u16 *)dst)[i] = round16(src[i], 7, 127);
    return;
  case DT_F32:
    for (i64 i = 0; i < n; i++) ((float *)dst)[i] = (float)src[i];
    return;
  case DT_F64:
    if (n) memmove(dst, src, (size_t)n * 8);
    return;
  default: assert(!"a float type");
  }
}

void ker_store_i64(void *dst, dtype t, const i64 *src, i64 n) {
  switch (t) {
  case DT_BOOL:
    for (i64 i = 0; i < n; i++) ((u8 *)dst)[i] = src[i] != 0;
    return;
#define CASE(t, T)                                                                                           \
  case t:                                                                                                    \
    for (i64 i = 0; i < n; i++) ((T *)dst)[i] = (T)(u64)src[i];                                              \
    return;
    INTEGERS(CASE)
#undef CASE
  default: assert(!"an integer type");
  }
}

enum { CHUNK = 512 };

static void from_f64(void *dst, dtype to, const double *x, i64 n) {
  if (dtype_kind_of(to) == DK_FLOAT) {
    ker_store_f64(dst, to, x, n);
    return;
  }
  i64 v[CHUNK];
  for (i64 i = 0; i < n; i++)
    v[i] = to == DT_BOOL ? x[i] != 0 : to == DT_U64 ? (i64)saturate_u64(x[i]) : saturate(x[i]);
  ker_store_i64(dst, to, v, n);
}

static void from_i64(void *dst, dtype to, const i64 *v, bool is_unsigned, i64 n) {
  if (dtype_kind_of(to) != DK_FLOAT) {
    ker_store_i64(dst, to, v, n);
    return;
  }
  double x[CHUNK];
  for (i64 i = 0; i < n; i++) {
    if (to == DT_F32)
      x[i] = is_unsigned ? (double)(float)(u64)v[i] : (double)(float)v[i]; // rounded once
    else
      x[i] = is_unsigned ? (double)(u64)v[i] : (double)v[i];
  }
  ker_store_f64(dst, to, x, n);
}

void ker_convert(void *dst, dtype to, const void *src, dtype from, i64 n) {
  size_t sd = dtype_bytes(to), ss = dtype_bytes(from);
  if (to == from) {
    if (n) memmove(dst, src, (size_t)n * sd);
    return;
  }
  union {
    double f[CHUNK];
    i64 i[CHUNK];
  } buf;
  for (i64 k = 0; k < n; k += CHUNK) {
    i64 m = MIN(n - k, (i64)CHUNK);
    const char *s = (const char *)src + (size_t)k * ss;
    char *d = (char *)dst + (size_t)k * sd;
    if (dtype_kind_of(from) == DK_FLOAT) {
      ker_load_f64(buf.f, from, s, m);
      from_f64(d, to, buf.f, m);
    } else {
      ker_load_i64(buf.i, from, s, m);
      from_i64(d, to, buf.i, dtype_kind_of(from) == DK_UINT, m);
    }
  }
}
