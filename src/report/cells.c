// cells.c - quantities in human units, for text; JSON has them exactly (json.c).
#include "report/internal.h"
#include <math.h>

// Three significant digits for what is compared at a glance, four for times: plans are ranked by them.
static void put_digits(strbuf *b, double x, int digits) {
  double m = fabs(x);
  int before = m >= 1000 ? 4 : m >= 100 ? 3 : m >= 10 ? 2 : 1;
  sb_fmt(b, "%.*f", MAX(digits - before, 0), x);
}

// x in the largest unit that leaves something before the point, also after rounding: 999.96 k is 1.00 M.
static void put_scaled(strbuf *b, double x, int digits, double step, const char *const *unit, u32 n) {
  u32 k = 0;
  while (k + 1 < n && fabs(x) >= step * (1 - 0.5 * pow(10, -digits))) x /= step, k++;
  if (k == 0 && x == floor(x))
    sb_fmt(b, "%.0f", x);
  else
    put_digits(b, x, digits);
  sb_put(b, unit[k]);
}

static void put_commas(strbuf *b, i64 x) {
  if (x == INT64_MAX) { // where counts stop
    sb_put(b, "> 9.2e18");
    return;
  }
  char s[32];
  int n = snprintf(s, sizeof s, "%lld", (long long)(x < 0 ? -x : x));
  if (x < 0) sb_char(b, '-');
  for (int i = 0; i < n; i++) {
    if (i && (n - i) % 3 == 0) sb_char(b, ',');
    sb_char(b, s[i]);
  }
}

static bool has_plus(const cell *x) {
  if (x->kind == CELL_PS || x->kind == CELL_BYTES) return x->n && x->u.i > 0;
  return x->kind == CELL_SHARE && x->n && x->u.x > 0;
}

void cell_print(const cell *x, strbuf *b) {
  static const char *const words[] = {"", " thousand", " million", " billion", " trillion"};
  static const char *const prefix[] = {" ", " k", " M", " G", " T", " P", " E", " Z"};
  static const char *const time[] = {" ps", " ns", " us", " ms", " s"};
  if (has_plus(x)) sb_char(b, '+');
  switch (x->kind) {
  case CELL_NONE: break;
  case CELL_TEXT:
  case CELL_NAME: sb_clean(b, x->u.s, strlen(x->u.s), "\t\n"); break;
  case CELL_INT: put_commas(b, x->u.i); break;
  case CELL_COUNT:
    if (x->u.i < 100000)
      put_commas(b, x->u.i);
    else
      put_scaled(b, (double)x->u.i, 3, 1e3, words, COUNT_OF(words));
    break;
  case CELL_BYTES:
    if (x->u.i < 0) sb_char(b, '-');
    sb_put(b, text_bytes(b->a, fabs((double)x->u.i)));
    break;
  case CELL_FLOP:
  case CELL_FLOPS:
  case CELL_RATE:
    put_scaled(b, x->u.x, 3, 1e3, prefix, COUNT_OF(prefix));
    sb_put(b, x->kind == CELL_FLOP ? "FLOP" : x->kind == CELL_FLOPS ? "FLOP/s" : "B/s");
    break;
  case CELL_PS:
    if (x->u.i == 0)
      sb_char(b, '0');
    else
      put_scaled(b, (double)x->u.i, 4, 1e3, time, COUNT_OF(time));
    break;
  case CELL_PER_S:
    if (x->u.x >= 1000)
      put_commas(b, (i64)(x->u.x + 0.5));
    else
      put_digits(b, x->u.x, 4);
    sb_put(b, "/s");
    break;
  case CELL_SHARE: sb_fmt(b, "%.1f %%", 100 * x->u.x); break;
  case CELL_TIMES:
    put_digits(b, x->u.x, 3);
    sb_char(b, 'x');
    break;
  case CELL_REAL: sb_fmt(b, "%.6g", x->u.x); break;
  case CELL_BOOL: sb_put(b, x->u.i ? "yes" : "no"); break;
  case CELL_DIMS:
    if (!x->n) sb_put(b, "scalar");
    for (u32 i = 0; i < x->n; i++) sb_fmt(b, "%s%lld", i ? " x " : "", (long long)x->u.v[i]);
    break;
  }
}

const char *time_text(arena *a, i64 ps) {
  strbuf b = {.a = a};
  const cell x = cell_i(CELL_PS, ps);
  cell_print(&x, &b);
  return sb_str(&b);
}
