// splits_beaten.c - which states of a cut (splits_cut.c) no fastest solution goes through: another state is reached so much faster
// that it may convert what lies otherwise and be faster still.
//
// Idea: from two states with the same held options the same options can follow. They then differ only in tensors that lie
// otherwise, and for each of these by no more than the worst that its next readers can ask. If the faster state is faster by more than the sum, the slower one is beaten, ties not counted.
#include "plan/splits_live.h"
#include <stdlib.h>

enum { COMBINATIONS = 4096, FASTEST = 24, KINDS = 64 };
static const i64 NEVER = INT64_MAX / 4;

// What a step costs more than another; NEVER: it is not possible, below: the other one is not.
static i64 more(const splits_cut *c, const step *fast, const step *slow) {
  if (!slow->possible) return -NEVER;
  if (!fast->possible) return NEVER;
  const i64 rounding = c->ps_per_byte > 0;
  return fast->time_ps - slow->time_ps + rounding +
         (i64)(c->ps_per_byte * (double)(fast->bytes - slow->bytes));
}

// The most that a tensor takes more in one state than in another, from its reader q on.
static i64 most_more(const splits_cut *c, u32 tensor, u32 q, const live *fast, const live *slow) {
  const splits_readers *r = c->readers;
  const splits_tensor *t = &c->p->tensor[tensor];
  if (q == r->begin[tensor + 1]) {
    step f = {.possible = true}, s = {.possible = true};
    if (fast->made != LIES_NONE) splits_end(t, fast, &f);
    if (slow->made != LIES_NONE) splits_end(t, slow, &s);
    return more(c, &f, &s);
  }
  const splits_op *op = &c->p->op[r->reader[q]];
  i64 most = -NEVER;
  for (u32 i = 0; i < op->noptions; i++) {
    live x = *fast, y = *slow;
    step f = {.possible = true}, s = {.possible = true};
    splits_read(c->p, t, &x, op, r->operand[q], &op->option[i], &f);
    splits_read(c->p, t, &y, op, r->operand[q], &op->option[i], &s);
    i64 ps = more(c, &f, &s);
    if (ps > -NEVER && ps < NEVER) ps += most_more(c, tensor, q + 1, &x, &y);
    most = MAX(most, MIN(ps, NEVER));
  }
  return most;
}

static bool same_live(const live *x, const live *y) {
  return x->made == y->made && x->base == y->base && x->grad == y->grad && x->back == y->back &&
         x->has[0] == y->has[0] && x->has[1] == y->has[1];
}

// The same from the cut on, 0 or more.
static i64 tensor_more(const splits_cut *c, u32 tensor, const live *fast, const live *slow) {
  u32 q = c->readers->begin[tensor];
  const u32 end = c->readers->begin[tensor + 1];
  while (q < end && c->readers->reader[q] <= c->op) q++;
  u64 all = 1;
  for (u32 k = q; k < end && all <= COMBINATIONS; k++) all *= c->p->op[c->readers->reader[k]].noptions;
  return all > COMBINATIONS ? NEVER : MAX(most_more(c, tensor, q, fast, slow), 0);
}

// ---- the states of a cut -------------------------------------------------------------------------------------
typedef struct {
  splits_reached *of;
  u32 number, nheld;
  u8 *kind; // by slot: which of the kinds that its tensor is of
} entry;
// The ways in which one tensor lies in the states of this cut, and by how much one is more than another.
typedef struct {
  u32 n;
  live v[KINDS];
  i64 *more; // [fast * KINDS + slow]; below 0: not known yet
} kinds;

static int by_held_and_cost(const void *x, const void *y) {
  const entry *p = x, *q = y;
  const int held = memcmp(p->of->held, q->of->held, sizeof *p->of->held * p->nheld);
  if (held) return held;
  if (p->of->cost != q->of->cost) return p->of->cost < q->of->cost ? -1 : 1;
  return p->number < q->number ? -1 : 1;
}

// KINDS: there are too many.
static u8 kind_of(kinds *k, const live *l) {
  u32 i = 0;
  while (i < k->n && !same_live(&k->v[i], l)) i++;
  if (i == k->n && i < KINDS) k->v[k->n++] = *l;
  return (u8)i;
}

static i64 kinds_more(arena *a, const splits_cut *c, kinds *k, u32 slot, u32 fast, u32 slow) {
  if (fast == slow && fast < KINDS) return 0;
  if (fast == KINDS || slow == KINDS) return NEVER;
  if (!k->more) {
    k->more = NEWN(a, i64, KINDS * KINDS);
    memset(k->more, 0xff, sizeof *k->more * KINDS * KINDS);
  }
  i64 *ps = &k->more[fast * KINDS + slow];
  if (*ps < 0) *ps = tensor_more(c, c->tensor[slot], &k->v[fast], &k->v[slow]);
  return *ps;
}

// slot: those in which states differ.
static bool beats(arena *a, const splits_cut *c, kinds *k, const u32 *slot, u32 n, const entry *fast,
                  const entry *slow) {
  const i64 least = slow->of->cost - fast->of->cost;
  i64 ps = 0;
  for (u32 j = 0; j < n && ps < least; j++)
    ps += kinds_more(a, c, &k[slot[j]], slot[j], fast->kind[slot[j]], slow->kind[slot[j]]);
  return ps < least;
}

void splits_find_beaten(arena *a, const splits_cut *c, splits_reached *v, u32 n) {
  entry *e = NEWN(a, entry, n + 1);
  kinds *k = ZNEWN(a, kinds, c->nslots + 1);
  u8 *kind = NEWN(a, u8, (size_t)n * c->nslots + 1);
  for (u32 i = 0; i < n; i++) {
    e[i] = (entry){&v[i], i, c->nheld, kind + (size_t)i * c->nslots};
    for (u32 j = 0; j < c->nslots; j++) e[i].kind[j] = kind_of(&k[j], &v[i].of[j]);
  }
  u32 *slot = NEWN(a, u32, c->nslots + 1), nslot = 0;
  for (u32 j = 0; j < c->nslots; j++)
    if (k[j].n > 1) slot[nslot++] = j;
  if (n > 1) qsort(e, n, sizeof *e, by_held_and_cost);
  u32 fast[FASTEST], nfast = 0; // the fastest of those with the same held options
  for (u32 i = 0; i < n; i++) {
    if (i && memcmp(e[i].of->held, e[i - 1].of->held, sizeof *v->held * c->nheld)) nfast = 0;
    for (u32 j = 0; j < nfast && !e[i].of->beaten; j++)
      e[i].of->beaten = beats(a, c, k, slot, nslot, &e[fast[j]], &e[i]);
    if (!e[i].of->beaten && nfast < FASTEST) fast[nfast++] = i;
  }
}
