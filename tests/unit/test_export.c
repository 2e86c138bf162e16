// test_export.c - how exports say where pieces lie: which axes cut a tensor, in which order, at which stride.
#include "export/internal.h"
#include "test.h"
#include <stdio.h>

typedef struct {
  u8 dim;
  i64 stride; // 0: the axis does not split it
} way;

// A tensor [24, 16] that the axes x, y, z of 2 and one of size 1 split so; `whole` has those for which `there` is true.
static const char *cuts(const way *of, const bool *there) {
  static char text[200];
  ctx *c = ctx_new();
  prog *p = prog_new(c);
  py w = {.p = p, .c = c, .a = p->a};
  layout_info cut = {0}, whole = {0};
  u8 axis[4], order[4];
  for (u32 k = 0; k < 4; k++) {
    axis[k] =
        axis_add(p->sp, sym_of(c, (const char *const[]){"x", "y", "z", "one"}[k]), k < 3 ? 2 : 1, false);
    const lay_split s = {.axis = axis[k], .dim = of[k].dim, .stride = of[k].stride};
    if (s.stride) cut.split[cut.nsplit++] = s;
    if (s.stride && there[k]) whole.split[whole.nsplit++] = s;
  }
  const type_info t = {.s = {.t = DT_F32, .nd = 2, .dim = {24, 16}}, .lay = layout_of(p->sp, &cut)};
  u8 over[4];
  u32 n = 0;
  for (u32 k = 4; k-- > 0;)
    if (!there[k]) over[n++] = axis[k];
  n = py_order(&w, &t, over, n, order);
  strbuf b = {.a = p->a};
  for (u32 k = 0; k < n; k++) sb_put(&b, sym_str(c, axis_get(p->sp, order[k])->name));
  sb_put(&b, ": ");
  py_cuts(&w, &t, layout_of(p->sp, &whole), order, n, &b);
  snprintf(text, sizeof text, "%s", sb_str(&b));
  prog_free(p);
  ctx_free(c);
  return text;
}

TEST(export_cuts_a_dimension) {
  static const bool none[4] = {0}, x[4] = {true}, y[4] = {false, true}, z[4] = {false, false, true};
  const way even[4] = {{1, 8}, {1, 4}, {0, 12}, {0}}, within[4] = {{1, 8}, {1, 2}, {0}, {0}},
            low[4] = {{0, 3}, {0, 12}, {1, 1}, {1, 16}}, turned[4] = {{1, 2}, {1, 8}, {1, 4}, {0}};
  // the larger stride first, dimensions in order; what cuts the rest in two needs no stride
  CHECK_STR(cuts(even, none), "zxy: 0, 1, 1");
  CHECK_STR(cuts(even, x), "zy: 0, 1");
  CHECK_STR(cuts(even, y), "zx: 0, 1");
  CHECK_STR(cuts(even, z), "xy: 1, 1");
  // x and then parts of two that lie apart; where y has its part already, halves of what is left
  CHECK_STR(cuts(within, none), "xy: 1, (1, 2)");
  CHECK_STR(cuts(within, x), "y: (1, 2)");
  CHECK_STR(cuts(within, y), "x: 1");
  // an axis of one rank cuts nothing
  CHECK_STR(cuts(low, none), "yxz: 0, (0, 3), (1, 1)");
  CHECK_STR(cuts(low, y), "xz: (0, 3), (1, 1)");
  CHECK_STR(cuts(low, x), "yz: 0, (1, 1)");
  CHECK_STR(cuts(turned, none), "yzx: 1, 1, 1");
  CHECK_STR(cuts(turned, z), "yx: 1, 1");
}

// Beside a split at a small stride a larger one is counted in what that leaves.
TEST(export_counts_strides_in_what_is_left) {
  static const bool y[4] = {false, true}, none[4] = {0}, z[4] = {false, false, true};
  const way far[4] = {{0, 4}, {0, 1}, {0}, {0}}, three[4] = {{0, 4}, {0, 2}, {1, 4}, {0}};
  CHECK_STR(cuts(far, none), "xy: (0, 4), (0, 1)");
  CHECK_STR(cuts(far, y), "x: (0, 2)");
  CHECK_STR(cuts(three, y), "xz: (0, 2), (1, 4)");
  CHECK_STR(cuts(three, z), "xy: (0, 4), (0, 2)");
}
