// loops.c - the loops of loops_body.h for f32 and f64, once for the registers that every machine has and once for wider
// ones where there are such.
#include "kernel/loops.h"
#include <math.h>

enum { LANES = 16 };

static double sum_lanes(double *lane) {
  for (int w = LANES / 2; w; w /= 2)
    for (int j = 0; j < w; j++) lane[j] += lane[j + w];
  return lane[0];
}

static double python_mod(double x, double y) {
  double m = fmod(x, y);
  return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

#define IS_F32   1
#define REAL     float
#define OF(s, d) s
#define NAME(x)  x##_f32
#include "kernel/loops_body.h"
#undef IS_F32
#undef REAL
#undef OF
#undef NAME

#define IS_F32   0
#define REAL     double
#define OF(s, d) d
#define NAME(x)  x##_f64
#include "kernel/loops_body.h"
#undef IS_F32
#undef REAL
#undef OF
#undef NAME

#if defined(__GNUC__) && defined(__x86_64__)
#define WIDER 1
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define IS_F32   1
#define REAL     float
#define OF(s, d) s
#define NAME(x)  x##_f32_wide
#include "kernel/loops_body.h"
#undef IS_F32
#undef REAL
#undef OF
#undef NAME

#define IS_F32   0
#define REAL     double
#define OF(s, d) d
#define NAME(x)  x##_f64_wide
#include "kernel/loops_body.h"
#undef IS_F32
#undef REAL
#undef OF
#undef NAME

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

const ker_loops *ker_loops_plain(dtype t) { return t == DT_F32 ? &loops_f32 : &loops_f64; }

const ker_loops *ker_loops_of(dtype t) {
#ifdef WIDER
  if (__builtin_cpu_supports("avx2")) return t == DT_F32 ? &loops_f32_wide : &loops_f64_wide;
#endif
  return ker_loops_plain(t);
}
