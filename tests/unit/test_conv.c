// test_conv.c - convolutions of f32 and their gradients, with and without a BLAS,
// against a direct loop in f64.
#include "kernel/kernel.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
  i64 images, groups, channels, filters; // the last two of a group
  i64 x[2], w[2], y[2], stride[2], dilation[2], pads[4];
} geometry;
enum { FORWARD, OF_IMAGES, OF_WEIGHTS, PASSES };

static bool extents(geometry *g) { // of the result. False: there is none
  for (u32 i = 0; i < 2; i++) {
    const i64 room = g->x[i] + g->pads[i] + g->pads[2 + i] - (g->w[i] - 1) * g->dilation[i] - 1;
    if (room < 0) return false;
    g->y[i] = room / g->stride[i] + 1;
  }
  return true;
}

static i64 elems(const geometry *g, u32 tensor) { // images, weights, result
  if (tensor == 1) return g->groups * g->filters * g->channels * g->w[0] * g->w[1];
  const i64 *d = tensor ? g->y : g->x;
  return g->images * g->groups * (tensor ? g->filters : g->channels) * d[0] * d[1];
}

// One plane of the result, of a filter and one of its channels.
static void direct_plane(const geometry *g, u32 pass, double *x, double *w, double *y) {
  for (i64 i = 0; i < g->y[0]; i++)
    for (i64 j = 0; j < g->y[1]; j++)
      for (i64 u = 0; u < g->w[0]; u++)
        for (i64 v = 0; v < g->w[1]; v++) {
          const i64 a = i * g->stride[0] - g->pads[0] + u * g->dilation[0],
                    b = j * g->stride[1] - g->pads[1] + v * g->dilation[1];
          if (a < 0 || b < 0 || a >= g->x[0] || b >= g->x[1]) continue;
          double *px = &x[a * g->x[1] + b], *pw = &w[u * g->w[1] + v], *py = &y[i * g->y[1] + j];
          if (pass == FORWARD) *py += *px * *pw;
          if (pass == OF_IMAGES) *px += *py * *pw;
          if (pass == OF_WEIGHTS) *pw += *px * *py;
        }
}

static void direct(const geometry *g, u32 pass, double *t[3]) {
  static const u32 result[] = {2, 0, 1};
  memset(t[result[pass]], 0, sizeof(double) * (size_t)elems(g, result[pass]));
  for (i64 n = 0; n < g->images; n++)
    for (i64 f = 0; f < g->groups * g->filters; f++)
      for (i64 c = 0; c < g->channels; c++) {
        const i64 at = n * g->groups * g->channels + f / g->filters * g->channels + c;
        direct_plane(g, pass, t[0] + at * g->x[0] * g->x[1], t[1] + (f * g->channels + c) * g->w[0] * g->w[1],
                     t[2] + (n * g->groups * g->filters + f) * g->y[0] * g->y[1]);
      }
}

static void by_kernel(ctx *c, const geometry *g, u32 pass, float *t[3], int threads) {
  const shape s[] = {{.t = DT_F32, .nd = 4, .dim = {g->images, g->groups * g->channels, g->x[0], g->x[1]}},
                     {.t = DT_F32, .nd = 4, .dim = {g->groups * g->filters, g->channels, g->w[0], g->w[1]}},
                     {.t = DT_F32, .nd = 4, .dim = {g->images, g->groups * g->filters, g->y[0], g->y[1]}}};
  static const opcode op[] = {OP_conv, OP_conv_dx, OP_conv_dw};
  static const u32 opd[][2] = {{0, 1}, {2, 1}, {2, 0}}, result[] = {2, 0, 1};
  attr at[] = {{.key = A_strides, .kind = AK_INTS, .n = 2, .u.ints = g->stride},
               {.key = A_dilations, .kind = AK_INTS, .n = 2, .u.ints = g->dilation},
               {.key = A_pads, .kind = AK_INTS, .n = 4, .u.ints = g->pads},
               {.key = A_group, .kind = AK_INT, .u.i = g->groups},
               {.key = A_shape, .kind = AK_INTS, .n = 4, .u.ints = s[result[pass]].dim}};
  const u32 n = pass == FORWARD ? 4 : 5;
  for (u32 i = 0; i < n; i++) // in the order of their keys
    for (u32 j = i + 1; j < n; j++)
      if (at[j].key < at[i].key) {
        const attr other = at[i];
        at[i] = at[j], at[j] = other;
      }
  ker_tensor in[2], out = ker_whole(&s[result[pass]], t[result[pass]]);
  for (u32 i = 0; i < 2; i++) in[i] = ker_whole(&s[opd[pass][i]], t[opd[pass][i]]);
  const ker_args k = {
      .op = op[pass], .at = {n, at}, .nopd = 2, .nres = 1, .opd = in, .res = &out, .threads = threads};
  CHECK(kernel_run(c, &k, (loc){0}));
}

// As far as rounding goes: relative to what a sum's terms are on the whole.
static double far(const float *x, const double *want, i64 n) {
  double off = 0, all = 0;
  for (i64 i = 0; i < n; i++) off += pow((double)x[i] - want[i], 2), all += want[i] * want[i];
  return all > 0 ? sqrt(off / all) : sqrt(off);
}

static void check(ctx *c, const geometry *g, u64 *seed) {
  static const u32 result[] = {2, 0, 1};
  arena *a = arena_new();
  double *wide[3];
  float *t[3], *again;
  for (u32 i = 0; i < 3; i++) wide[i] = NEWN(a, double, elems(g, i)), t[i] = NEWN(a, float, elems(g, i));
  for (u32 pass = 0; pass < PASSES; pass++) {
    for (u32 i = 0; i < 3; i++)
      for (i64 k = 0; k < elems(g, i); k++) wide[i][k] = t[i][k] = (float)(rng_unit(seed) * 2 - 1);
    direct(g, pass, wide);
    const i64 n = elems(g, result[pass]);
    float *to = t[result[pass]];
    again = NEWN(a, float, n);
    for (u32 library = 0; library < 2; library++) {
      if (kernel_set_blas(library) != (library > 0)) continue;
      for (i64 k = 0; k < n; k++) to[k] = NAN; // all of it is written
      by_kernel(c, g, pass, t, 1);
      const double off = far(to, wide[result[pass]], n);
      CHECK_MSG(off < 2e-6,
                "pass %u, %s: %g; images %lld groups %lld of %lld to %lld, %lldx%lld by %lldx%lld", pass,
                library ? "BLAS" : "own", off, (long long)g->images, (long long)g->groups,
                (long long)g->channels, (long long)g->filters, (long long)g->x[0], (long long)g->x[1],
                (long long)g->w[0], (long long)g->w[1]);
      memcpy(again, to, sizeof *to * (size_t)n);
      by_kernel(c, g, pass, t, 3);
      CHECK(!memcmp(again, to, sizeof *to * (size_t)n));
    }
  }
  kernel_set_blas(true);
  arena_free(a);
}

TEST(conv_f32_is_within_rounding) {
  static const geometry of[] = {// images, rows and slices that are cut, the last one smaller
                                {3, 1, 32, 48, {31, 29}, {3, 3}, {0, 0}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
                                {1, 1, 64, 32, {120, 60}, {3, 3}, {0, 0}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
                                {2, 1, 64, 64, {57, 90}, {1, 1}, {0, 0}, {2, 1}, {1, 1}, {0, 0, 0, 0}},
                                {5, 1, 128, 272, {7, 7}, {3, 3}, {0, 0}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
                                {2, 1, 3, 64, {90, 91}, {7, 7}, {0, 0}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
                                {2, 1, 24, 40, {30, 31}, {3, 5}, {0, 0}, {1, 2}, {2, 3}, {4, 0, 1, 5}},
                                {2, 1, 32, 32, {40, 40}, {3, 3}, {0, 0}, {1, 1}, {1, 1}, {-1, 2, 3, -2}},
                                {2, 2, 32, 16, {30, 33}, {3, 3}, {0, 0}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
                                {4, 96, 1, 1, {112, 112}, {3, 3}, {0, 0}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
                                {2, 8, 4, 4, {100, 60}, {3, 3}, {0, 0}, {1, 1}, {1, 1}, {1, 1, 1, 1}}};
  ctx *c = ctx_new();
  u64 seed = 5;
  for (u32 k = 0; k < COUNT_OF(of); k++) {
    geometry g = of[k];
    if (CHECK(extents(&g))) check(c, &g, &seed);
  }
  ctx_free(c);
}

static i64 below(u64 *seed, i64 n) { return (i64)(rng_next(seed) % (u64)n); }

TEST(conv_f32_of_random_shapes_is_within_rounding) {
  enum { SHAPES = 24 };
  const double most = 2e7; // multiplications
  ctx *c = ctx_new();
  u64 seed = 11;
  for (u32 k = 0; k < SHAPES; k++) {
    geometry g = {.images = 1 + below(&seed, 4), .groups = below(&seed, 3) ? 1 : 1 + below(&seed, 20)};
    g.channels = 1 + below(&seed, g.groups > 1 ? 18 : 70);
    g.filters = 1 + below(&seed, g.groups > 1 ? 18 : 150);
    for (u32 i = 0; i < 2; i++) {
      g.x[i] = 1 + below(&seed, 60), g.w[i] = 1 + below(&seed, 4), g.stride[i] = 1 + below(&seed, 3);
      g.dilation[i] = 1 + below(&seed, 2), g.pads[i] = below(&seed, 4), g.pads[2 + i] = below(&seed, 4);
    }
    const double work =
        (double)g.images * (double)g.groups * (double)(g.channels * g.filters * g.w[0] * g.w[1]);
    if (extents(&g) && work * (double)(g.y[0] * g.y[1]) < most) check(c, &g, &seed);
  }
  ctx_free(c);
}
