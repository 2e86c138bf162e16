// fold.c - elements combined: sums, products, the largest, the smallest, in f64 or i64, rounded once.
#include "eval/internal.h"
#include <math.h>

void eval_fold_begin(void *acc, dtype t, i64 n, reduction r) {
  bool flt = dtype_kind_of(t) == DK_FLOAT, uns = dtype_kind_of(t) == DK_UINT;
  for (i64 k = 0; k < n; k++) {
    if (flt)
      ((double *)acc)[k] = r == RED_PROD ? 1 : r == RED_MAX ? -INFINITY : r == RED_MIN ? INFINITY : 0;
    else
      ((i64 *)acc)[k] = r == RED_PROD  ? 1
                        : r == RED_MAX ? (uns ? 0 : INT64_MIN)
                        : r == RED_MIN ? (uns ? -1 : INT64_MAX)
                                       : 0;
  }
}

#define FOLD(expr)                                                                                           \
  for (i64 j = 0; j < w; j++) a[j] = (expr);                                                                 \
  break

static void fold_f64(double *a, const double *x, i64 w, reduction r) {
  switch (r) {
  case RED_MAX: FOLD(x[j] > a[j] || x[j] != x[j] ? x[j] : a[j]);
  case RED_MIN: FOLD(x[j] < a[j] || x[j] != x[j] ? x[j] : a[j]);
  case RED_PROD: FOLD(a[j] * x[j]);
  default: FOLD(a[j] + x[j]);
  }
}

static void fold_u64(u64 *a, const u64 *x, i64 w, reduction r, u64 flip) {
  switch (r) {
  case RED_MAX: FOLD((i64)(x[j] ^ flip) > (i64)(a[j] ^ flip) ? x[j] : a[j]);
  case RED_MIN: FOLD((i64)(x[j] ^ flip) < (i64)(a[j] ^ flip) ? x[j] : a[j]);
  case RED_PROD: FOLD(a[j] * x[j]);
  default: FOLD(a[j] + x[j]);
  }
}
#undef FOLD

void eval_fold(arena *scratch, void *acc, const void *x, dtype t, i64 n, reduction r) {
  enum { CHUNK = 1024 };
  arena_mark_t mark = arena_mark(scratch);
  u64 *wide = NEWN(scratch, u64, CHUNK);
  u64 flip = dtype_kind_of(t) == DK_UINT ? (u64)1 << 63 : 0;
  for (i64 k = 0; k < n; k += CHUNK) {
    i64 w = MIN(n - k, (i64)CHUNK);
    const char *from = (const char *)x + (size_t)k * dtype_bytes(t);
    if (dtype_kind_of(t) == DK_FLOAT) {
      ker_load_f64((double *)(void *)wide, t, from, w);
      fold_f64((double *)acc + k, (const double *)(const void *)wide, w, r);
    } else {
      ker_load_i64((i64 *)wide, t, from, w);
      fold_u64((u64 *)acc + k, wide, w, r, flip);
    }
  }
  arena_release(scratch, mark);
}

void eval_fold_stored(void *to, const void *x, dtype t, i64 n, reduction r) {
  enum { CHUNK = 512 };
  u64 a[CHUNK], b[CHUNK];
  float *f = to;
  const float *g = x;
  const u64 flip = dtype_kind_of(t) == DK_UINT ? (u64)1 << 63 : 0;
  if (t == DT_F32 && r == RED_SUM) { // as in f64 and rounded, which it is exactly
    for (i64 k = 0; k < n; k++) f[k] += g[k];
    return;
  }
  for (i64 k = 0; k < n; k += CHUNK) {
    const i64 w = MIN(n - k, (i64)CHUNK);
    char *dst = (char *)to + (size_t)k * dtype_bytes(t);
    const char *src = (const char *)x + (size_t)k * dtype_bytes(t);
    if (dtype_kind_of(t) == DK_FLOAT) {
      ker_load_f64((double *)(void *)a, t, dst, w), ker_load_f64((double *)(void *)b, t, src, w);
      fold_f64((double *)(void *)a, (const double *)(const void *)b, w, r);
    } else {
      ker_load_i64((i64 *)a, t, dst, w), ker_load_i64((i64 *)b, t, src, w);
      fold_u64(a, b, w, r, flip);
    }
    eval_store(dst, t, a, w);
  }
}

void eval_store(void *dst, dtype t, const void *acc, i64 n) {
  if (dtype_kind_of(t) == DK_FLOAT)
    ker_store_f64(dst, t, acc, n);
  else
    ker_store_i64(dst, t, acc, n);
}

// As in f64 and rounded, which the sum of two is exactly; as there, zeros of both signs add up to 0.
static void sum_two(float *to, const float *x, const float *y, i64 n) {
  for (i64 k = 0; k < n; k++) to[k] = 0 + x[k] + y[k];
}

void eval_sum(void *to, const char *const *x, u32 n, dtype t, i64 elems, reduction r) {
  enum { CHUNK = 512 };
  if (n == 2 && t == DT_F32 && r == RED_SUM) {
    sum_two(to, (const float *)(const void *)x[0], (const float *)(const void *)x[1], elems);
    return;
  }
  u64 acc[CHUNK], wide[CHUNK];
  const u64 flip = dtype_kind_of(t) == DK_UINT ? (u64)1 << 63 : 0;
  for (i64 k = 0; k < elems; k += CHUNK) {
    const i64 w = MIN(elems - k, (i64)CHUNK);
    const size_t from = (size_t)k * dtype_bytes(t);
    eval_fold_begin(acc, t, w, r);
    for (u32 j = 0; j < n; j++)
      if (dtype_kind_of(t) == DK_FLOAT) {
        ker_load_f64((double *)(void *)wide, t, x[j] + from, w);
        fold_f64((double *)(void *)acc, (const double *)(void *)wide, w, r);
      } else {
        ker_load_i64((i64 *)wide, t, x[j] + from, w);
        fold_u64(acc, wide, w, r, flip);
      }
    eval_store((char *)to + from, t, acc, w);
  }
}
