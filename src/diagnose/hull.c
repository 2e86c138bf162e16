// hull.c - of all messages of a link, those that can ever bind: the lower convex hull of (sent, received less sent).
//
// As long as both clocks are straight lines, a correction adds a straight line to these points, and a straight line
// changes nothing in which points are on the hull. So the hull of what was recorded is the hull of what is true, and a
// few dozen messages say as much as a million.
#include "diagnose/align.h"
#include <stdlib.h>

static bool above(point a, point b, point c) { // is b on or above the line from a to c?
  return (b.d - a.d) * (c.s - a.s) >= (c.d - a.d) * (b.s - a.s);
}

void hull_add(arena *a, points *h, point p) {
  assert(!h->n || h->v[h->n - 1].s <= p.s);
  if (h->n && h->v[h->n - 1].s == p.s) {
    if (h->v[h->n - 1].d <= p.d) return;
    h->n--;
  }
  while (h->n >= 2 && above(h->v[h->n - 2], h->v[h->n - 1], p)) h->n--;
  *vec_push(a, h) = p;
}

static int by_sent(const void *x, const void *y) {
  const point *a = x, *b = y;
  if (a->s != b->s) return a->s < b->s ? -1 : 1;
  return (a->d > b->d) - (a->d < b->d);
}

void hull_sort(arena *a, points *h) {
  qsort(h->v, h->n, sizeof *h->v, by_sent);
  const points all = *h;
  h->n = 0;
  for (u32 k = 0; k < all.n; k++) hull_add(a, h, all.v[k]); // writes at or before what it has read
}
