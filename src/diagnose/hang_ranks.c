// hang_ranks.c - sets of ranks of findings, and how they are said.
#include "diagnose/flight.h"
#include <stdlib.h>

hang_ranks hang_ranks_of(arena *a, u32 n, const u32 *v) {
  u32 *out = NEWN(a, u32, n), k = 0;
  if (n) {
    memcpy(out, v, n * sizeof *v);
    qsort(out, n, sizeof *out, ascending_u32);
  }
  for (u32 i = 0; i < n; i++)
    if (!k || out[k - 1] != out[i]) out[k++] = out[i];
  return (hang_ranks){k, out};
}

bool hang_has(const hang_ranks *r, u32 rank) {
  return r->n && bsearch(&rank, r->v, r->n, sizeof rank, ascending_u32);
}

const char *hang_ranks_text(arena *a, const hang_ranks *r, u32 most) {
  strbuf b = {.a = a};
  u32 parts = 0;
  for (u32 k = 0, n; k < r->n; k += n) {
    for (n = 1; k + n < r->n && r->v[k + n] == r->v[k] + n;) n++;
    if (n == 2) n = 1; // "2, 3"
    if (most && parts++ == most) {
      sb_fmt(&b, ", .. (%u in all)", r->n);
      break;
    }
    sb_fmt(&b, "%s%u", k ? ", " : "", r->v[k]);
    if (n > 1) sb_fmt(&b, "-%u", r->v[k + n - 1]);
  }
  return sb_str(&b);
}

const char *hang_who(arena *a, const hang_ranks *r) {
  return arena_printf(a, "%s %s", r->n == 1 ? "rank" : "ranks", hang_ranks_text(a, r, 12));
}

const char *hang_group_name(arena *a, ctx *c, sym name, sym desc) {
  const char *s = sym_str(c, name), *d = sym_str(c, desc);
  if (!*d || name.i == desc.i || !strcmp(d, "undefined")) return arena_printf(a, "group %s", s);
  return arena_printf(a, "group %s (%s)", s, d);
}
