// splits_beaten.c - which states of a cut (splits_cut.c) no fastest solution goes through: another state is reached so much faster
// that it may convert what lies otherwise and be faster still.
//
// Idea: from two states with the same held options the same options can follow. They then differ only in tensors that lie
// otherwise, and for each of these by no more than the worst that its next readers can ask. If the faster state is faster by more than the
// sum, the slower one is beaten, ties not counted. Asked are the fastest that are not beaten themselves, so only these come in order.
#include "plan/splits_kinds.h"

// FASTEST: with the same held options. TABLE_FROM: fewer states are not worth a table. ALL_OF: sums of so many entries are numbers.
enum { FASTEST = 24, TABLE_FROM = 64, ALL_OF = 15 };
static const i64 MOST = INT64_MAX / 16; // of an entry
typedef struct {
  i64 cost;
  u32 number;
} entry;
typedef struct {
  const splits_cut *c;
  splits_reached *v;
  u32 n, *slot, *gap; // slots in which states differ, and where their tensors are
  u32 nfast, at;      // at: where it was clear the last time
  i64 cost[FASTEST];  // of the fastest ...
  const u32 **fast;   // ... and their kinds
  i64 **
      more; // [by slot][kind * FASTEST + number]: more than that of the fastest; the first below 0: not known
} comparison;

static bool precedes(const entry *x, const entry *y) {
  return x->cost != y->cost ? x->cost < y->cost : x->number < y->number;
}

// A heap, the first of all at its top, but for what is at `at`.
static void sift(entry *e, u32 n, u32 at) {
  const entry x = e[at];
  for (u32 k; (k = 2 * at + 1) < n; at = k) {
    if (k + 1 < n && precedes(&e[k + 1], &e[k])) k++;
    if (!precedes(&e[k], &x)) break;
    e[at] = e[k];
  }
  e[at] = x;
}

// By the state's kinds: is a state that is slower by so much than one of the fastest beaten by it?
static bool beats(comparison *x, const u32 *fast, const u32 *slow, i64 least) {
  if (least <= 0) return false;
  const u32 first = x->at;
  i64 ps = splits_more(x->c->kinds, x->gap[first], fast[x->slot[first]], slow[x->slot[first]]);
  for (u32 j = 0; j < x->n && ps < least; j++) {
    if (j == first) continue;
    ps += splits_more(x->c->kinds, x->gap[j], fast[x->slot[j]], slow[x->slot[j]]);
    if (ps >= least) x->at = j;
  }
  return ps < least;
}

static bool is_beaten(comparison *x, const entry *e) {
  const u32 *own = x->v[e->number].kind;
  for (u32 i = 0; i < x->nfast; i++)
    if (beats(x, x->fast[i], own, e->cost - x->cost[i])) return true;
  return false;
}

static void clear_table(comparison *x) {
  for (u32 j = 0; j < x->n; j++)
    for (u32 k = x->c->kinds->gap[x->gap[j]].v.n; k-- > 0;) x->more[j][k * FASTEST] = -1;
}

static void fill_row(comparison *x, u32 j, u32 kind, i64 *more) {
  for (u32 i = 0; i < FASTEST; i++)
    more[i] = MIN(splits_more(x->c->kinds, x->gap[j], x->fast[i][x->slot[j]], kind), MOST);
}

// The same, of all of the fastest at once.
static bool is_beaten_by_table(comparison *x, const entry *e) {
  const u32 *own = x->v[e->number].kind;
  i64 ps[FASTEST], any = 0;
  for (u32 i = 0; i < FASTEST; i++) ps[i] = x->cost[i] - e->cost;
  for (u32 j = 0; j < x->n; j++) {
    const u32 kind = own[x->slot[j]];
    i64 *more = &x->more[j][kind * FASTEST];
    if (*more < 0) fill_row(x, j, kind, more);
    for (u32 i = 0; i < FASTEST; i++) ps[i] += more[i];
  }
  for (u32 i = 0; i < FASTEST; i++) any |= ps[i];
  return any < 0;
}

// States with the same held options.
static void compare(comparison *x, entry *e, u32 n) {
  x->nfast = 0;
  for (u32 i = n / 2; i-- > 0;) sift(e, n, i);
  for (; n && x->nfast < FASTEST; e[0] = e[--n], sift(e, n, 0)) {
    splits_reached *y = &x->v[e->number];
    if ((y->beaten = is_beaten(x, e))) continue;
    x->cost[x->nfast] = e->cost, x->fast[x->nfast++] = y->kind;
  }
  const bool table = n >= TABLE_FROM && x->n < ALL_OF;
  if (table) clear_table(x);
  for (u32 i = 0; i < n; i++)
    x->v[e[i].number].beaten =
        table && e[i].cost - x->cost[0] < MOST ? is_beaten_by_table(x, &e[i]) : is_beaten(x, &e[i]);
}

// Which slots lie otherwise in some states.
static void find_slots(arena *a, comparison *x, u32 n) {
  const splits_cut *c = x->c;
  x->slot = NEWN(a, u32, c->nslots + 1), x->gap = NEWN(a, u32, c->nslots + 1);
  x->more = NEWN(a, i64 *, c->nslots + 1);
  for (u32 j = 0; j < c->nslots; j++) {
    u32 i = 1;
    while (i < n && x->v[i].kind[j] == x->v[0].kind[j]) i++;
    if (i == n) continue;
    x->more[x->n] = NEWN(a, i64, FASTEST * c->kinds->gap[c->gap[j]].v.n + 1);
    x->slot[x->n] = j, x->gap[x->n++] = c->gap[j];
  }
}

void splits_find_beaten(arena *a, const splits_cut *c, splits_reached *v, u32 n) {
  const u32 *fast[FASTEST];
  comparison x = {.c = c, .v = v, .fast = fast};
  find_slots(a, &x, n);
  entry *e = NEWN(a, entry, n + 1);
  u32 *begin = ZNEWN(a, u32, c->nheld + 2);
  for (u32 i = 0; i < n; i++) begin[v[i].held + 1]++;
  for (u32 h = 0; h < c->nheld; h++) begin[h + 1] += begin[h];
  for (u32 i = 0; i < n; i++) e[begin[v[i].held]++] = (entry){v[i].cost, i};
  for (u32 h = 0, from = 0; h < c->nheld; from = begin[h++]) compare(&x, e + from, begin[h] - from);
}
