// portions.c - what one piece has of another, cut into portions: so much moves at a time that what is under way takes little
// memory beside what it is for. Not who gives to whom (move.c).
//
// Idea: two pieces meet in a product of index lists, one for each dimension. A portion is one index of each of the first
// dimensions, a stretch of the next and all of those behind: a block whose elements lie in order, so both ends know it by
// its number. Nothing here takes memory once a meeting is known, for a thread does it.
#include "eval/internal.h"

// One dimension: which indices of the target the giver has, and where they lie there. False: none.
static bool meet_in(arena *a, const spot *to, const spot *from, u32 d, meeting *x) {
  const imap *t = to->map[d], *f = from->map[d];
  x->n[d] = x->to_dim[d] = to->dim[d], x->from_dim[d] = from->dim[d];
  if (t == f) return to->dim[d];
  if (!f) {
    x->from[d] = t->index;
    return to->dim[d];
  }
  i64 *here = NEWN(a, i64, to->dim[d]), *there = NEWN(a, i64, to->dim[d]), n = 0;
  for (i64 k = 0; k < to->dim[d]; k++) {
    const i64 at = f->inverse[t ? t->index[k] : k];
    if (at >= 0) here[n] = k, there[n++] = at;
  }
  if (n < to->dim[d]) x->to[d] = here;
  x->n[d] = n, x->from[d] = there;
  return n;
}

meeting *meeting_of(arena *a, const spot *to, const spot *from, u32 nd, size_t bytes, i64 most) {
  meeting *x = ZNEWN(a, meeting, 1);
  x->nd = nd, x->bytes = bytes, x->elems = x->some = x->behind = 1;
  for (u32 d = 0; d < nd; d++) {
    if (!meet_in(a, to, from, d, x)) {
      x->elems = 0;
      return x;
    }
    x->elems *= x->n[d];
  }
  const i64 room = MAX(most / (i64)bytes, 1);
  x->at = nd;
  while (x->at > 0 && x->behind * x->n[x->at - 1] <= room) x->behind *= x->n[--x->at];
  if (x->at)
    x->at--, x->some = MAX(room / x->behind, 1);
  else if (nd)
    x->behind /= x->n[0], x->some = x->n[0];
  i64 before = 1;
  for (u32 d = 0; d < x->at; d++) before *= x->n[d];
  x->each = nd ? (u32)((x->n[x->at] + x->some - 1) / x->some) : 1;
  x->portions = (u32)before * x->each;
  return x;
}

// Where a portion begins: its index in each of the first dimensions, then in the one that is cut.
static void begin_of(const meeting *x, u32 portion, i64 *begin, i64 *n) {
  u32 lead = portion / x->each;
  *n = 1;
  if (!x->nd) return;
  begin[x->at] = (i64)(portion % x->each) * x->some;
  *n = MIN(x->some, x->n[x->at] - begin[x->at]);
  for (u32 d = x->at; d-- > 0; lead /= (u32)x->n[d]) begin[d] = lead % x->n[d];
}

i64 portion_bytes(const meeting *x, u32 portion) {
  i64 begin[DIMS_MAX], n;
  if (!x->elems) return 0; // a piece is empty
  begin_of(x, portion, begin, &n);
  return n * x->behind * (i64)x->bytes;
}

static i64 index_at(const i64 *table, i64 k) { return table ? table[k] : k; }

i64 portion_offset(const meeting *x, u32 portion, bool of_target) {
  const i64 *const *table = of_target ? x->to : x->from, *dim = of_target ? x->to_dim : x->from_dim;
  i64 begin[DIMS_MAX], n, at = 0;
  begin_of(x, portion, begin, &n);
  if (!x->nd) return 0;
  for (u32 d = 0; d <= x->at; d++) at = at * dim[d] + index_at(table[d], begin[d]);
  if (index_at(table[x->at], begin[x->at] + n - 1) != index_at(table[x->at], begin[x->at]) + n - 1) return -1;
  for (u32 d = x->at + 1; d < x->nd; d++) {
    if (x->n[d] != dim[d] || (table[d] && (table[d][0] || table[d][dim[d] - 1] != dim[d] - 1))) return -1;
    for (i64 k = 1; table[d] && k < dim[d]; k++)
      if (table[d][k] != k) return -1;
    at *= dim[d];
  }
  return at * (i64)x->bytes;
}

// The elements of a portion, in order, from where they lie apart or to there: runs of the last dimension.
static void spread(const meeting *x, u32 portion, char *apart, const i64 *const *table, const i64 *dim,
                   char *together, bool gather) {
  i64 begin[DIMS_MAX] = {0}, n, k[DIMS_MAX] = {0}, count[DIMS_MAX];
  begin_of(x, portion, begin, &n);
  const u32 last = x->nd - 1;
  for (u32 d = 0; d < x->nd; d++) {
    count[d] = d < x->at ? 1 : d == x->at ? n : x->n[d];
    if (d > x->at) begin[d] = 0;
  }
  for (;;) {
    i64 at = 0;
    for (u32 d = 0; d < last; d++) at = at * dim[d] + index_at(table[d], begin[d] + k[d]);
    at *= dim[last];
    for (i64 i = 0, run; i < count[last]; i += run) {
      const i64 first = index_at(table[last], begin[last] + i);
      for (run = 1; i + run < count[last] && index_at(table[last], begin[last] + i + run) == first + run;)
        run++;
      char *there = apart + (size_t)(at + first) * x->bytes;
      memcpy(gather ? together : there, gather ? there : together, (size_t)run * x->bytes);
      together += (size_t)run * x->bytes;
    }
    u32 d = last;
    while (d-- > 0) {
      if (++k[d] < count[d]) break;
      k[d] = 0;
    }
    if (d == (u32)-1) return;
  }
}

void portion_pick(const meeting *x, u32 portion, const char *from, char *together) {
  spread(x, portion, (char *)(uintptr_t)from, x->from, x->from_dim, together, true);
}
void portion_put(const meeting *x, u32 portion, char *to, const char *together) {
  spread(x, portion, to, x->to, x->to_dim, (char *)(uintptr_t)together, false);
}

void portion_copy(const meeting *x, char *to, const char *from, char *room) {
  for (u32 p = 0; p < x->portions && x->elems; p++) {
    const i64 there = portion_offset(x, p, false), here = portion_offset(x, p, true);
    const char *own = there < 0 ? room : from + there;
    if (there < 0) portion_pick(x, p, from, room);
    if (here < 0)
      portion_put(x, p, to, own);
    else
      memcpy(to + here, own, (size_t)portion_bytes(x, p));
  }
}
