// order.c - the points of a space by their strategies: which comes first, and where one is.
//
// Idea: a row of choices.def has few values in a space. Numbered in their order, they make a strategy one number,
// with a digit for each row, the first row in front. So points are sorted and found as numbers. Rows whose digits
// no longer fit into 64 bits are compared as they are.
#include "search/internal.h"
#include <stdlib.h>

typedef struct {
  u32 n, cap, latest;
  choice_value *v; // in order
} digit_values;
struct point_order {
  const search_point *point;
  u32 n, nrows; // of choices.def, that keys have
  digit_values row[CHOICE_COUNT];
  keyed *v;
};

static bool same(choice_value x, choice_value y) {
  return x.n == y.n && x.nparts == y.nparts && (x.part == y.part || !choice_compare(x, y));
}

// The number of a value; n: it is none of them. Neighbours often have the same.
static u32 digit_of(digit_values *d, choice_value x) {
  if (d->latest < d->n && same(d->v[d->latest], x)) return d->latest;
  for (u32 k = 0; k < d->n; k++)
    if (same(d->v[k], x)) return d->latest = k;
  return d->n;
}

static int by_value(const void *x, const void *y) {
  return choice_compare(*(const choice_value *)x, *(const choice_value *)y);
}

// The next row from k on in which a point is not as the one before; CHOICE_COUNT: there is none.
static u32 next_change(const point_order *o, u32 i, u32 k) {
  enum { AT_ONCE = 4 };
  const u16 *x = o->point[i].packed.n, *y = i ? o->point[i - 1].packed.n : NULL;
  while (k < CHOICE_COUNT) {
    u64 a, b;
    if (y && k + AT_ONCE <= CHOICE_COUNT && !o->point[i].packed.more) {
      memcpy(&a, x + k, sizeof a), memcpy(&b, y + k, sizeof b);
      if (a == b) {
        k += AT_ONCE;
        continue;
      }
    }
    if (!y || x[k] != y[k] || x[k] == PACKED_MORE) return k;
    k++;
  }
  return k;
}

static void list_values(point_order *o, arena *a) {
  for (u32 i = 0; i < o->n; i++)
    for (u32 k = 0; (k = next_change(o, i, k)) < CHOICE_COUNT; k++) {
      digit_values *d = &o->row[k];
      const choice_value x = strategy_packed_value(&o->point[i].packed, (choice_id)k);
      if (digit_of(d, x) < d->n) continue;
      d->latest = d->n;
      *vec_push(a, d) = x;
    }
  for (u32 k = 0; k < CHOICE_COUNT; k++)
    if (o->row[k].n) qsort(o->row[k].v, o->row[k].n, sizeof *o->row[k].v, by_value);
}

// False: a value is in no point.
static bool key_of(point_order *o, const strategy *s, u64 *key) {
  *key = 0;
  for (u32 k = 0; k < o->nrows; k++) {
    digit_values *d = &o->row[k];
    const u32 digit = digit_of(d, s->of[k]);
    if (digit == d->n) return false;
    if (d->n > 1) *key = *key * d->n + digit;
  }
  return true;
}

// What a point changes of the key of the one before.
static void make_keys(point_order *o) {
  u64 weight[CHOICE_COUNT], all = 1, key = 0;
  u32 digit[CHOICE_COUNT] = {0};
  for (u32 k = o->nrows; k-- > 0;) weight[k] = all, all *= MAX(o->row[k].n, 1u);
  for (u32 i = 0; i < o->n; i++) {
    for (u32 k = 0; (k = next_change(o, i, k)) < o->nrows; k++) {
      const u32 now = digit_of(&o->row[k], strategy_packed_value(&o->point[i].packed, (choice_id)k));
      key += ((u64)now - digit[k]) * weight[k], digit[k] = now;
    }
    o->v[i] = (keyed){.key = key, .at = i};
  }
}

// By byte in which they differ, the last one first.
void keyed_sort(keyed *v, u32 n) {
  arena *tmp = arena_new();
  keyed *from = v, *to = NEWN(tmp, keyed, n + 1);
  u64 differ = 0;
  for (u32 i = 0; i < n; i++) differ |= v[i].key ^ v[0].key;
  for (u32 shift = 0; shift < 64 && differ >> shift; shift += 8) {
    u32 at[257] = {0};
    if (!(differ >> shift & 255)) continue;
    for (u32 i = 0; i < n; i++) at[(from[i].key >> shift & 255) + 1]++;
    for (u32 k = 1; k < 257; k++) at[k] += at[k - 1];
    for (u32 i = 0; i < n; i++) to[at[from[i].key >> shift & 255]++] = from[i];
    keyed *was = from;
    from = to, to = was;
  }
  if (from != v) memcpy(v, from, n * sizeof *v);
  arena_free(tmp);
}

static int compare_points(const search_point *x, const search_point *y) {
  return strategy_packed_compare(&x->packed, &y->packed);
}

static void sort_equal(point_order *o, u32 from, u32 to) { // few: by insertion
  for (u32 i = from + 1; i < to; i++) {
    const keyed x = o->v[i];
    u32 k = i;
    for (; k > from && compare_points(&o->point[o->v[k - 1].at], &o->point[x.at]) > 0; k--)
      o->v[k] = o->v[k - 1];
    o->v[k] = x;
  }
}

point_order *order_make(arena *a, u32 n, const search_point *point) {
  point_order *o = ZNEWN(a, point_order, 1);
  u64 most = 1;
  o->point = point, o->n = n;
  list_values(o, a);
  while (o->nrows < CHOICE_COUNT && !__builtin_mul_overflow(most, MAX(o->row[o->nrows].n, 1u), &most))
    o->nrows++;
  o->v = NEWN(a, keyed, n + 1);
  make_keys(o);
  keyed_sort(o->v, o->n);
  for (u32 i = 0, end; o->nrows < CHOICE_COUNT && i < n; i = end) {
    for (end = i + 1; end < n && o->v[end].key == o->v[i].key;) end++;
    sort_equal(o, i, end);
  }
  return o;
}

u32 order_at(const point_order *o, u32 i) { return o->v[i].at; }

u32 order_find(const point_order *of, const strategy *s) {
  point_order own = *of; // several threads may ask
  u64 key;
  if (!key_of(&own, s, &key)) return of->n;
  u32 low = 0;
  for (u32 high = of->n; low < high;) {
    const u32 mid = low + (high - low) / 2;
    if (of->v[mid].key < key)
      low = mid + 1;
    else
      high = mid;
  }
  for (; low < of->n && of->v[low].key == key; low++)
    if (search_is(&of->point[of->v[low].at], s)) return of->v[low].at;
  return of->n;
}
