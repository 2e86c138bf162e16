// splits_kinds.h - the ways in which a tensor lies between two of its readers, each once: its kinds. Private to splits_*.c.
//
// Idea: a state of a cut (splits_cut.c) has a live value for every tensor, but few of them differ. So they have numbers, and what the
// next reader takes in one of its options, and which kind there is then, is found once for all states.
#ifndef HEDDLE_PLAN_SPLITS_KINDS_H
#define HEDDLE_PLAN_SPLITS_KINDS_H
#include "plan/splits_live.h"

// What a reader takes, the operator that makes a tensor, or its end.
typedef struct {
  i64 time_ps, bytes;
  u32 kind; // then
  bool known, possible;
} splits_passed;
// Of one tensor: before a reader, or behind the last one.
typedef struct {
  u32 tensor, operand;
  const splits_op *next; // that reads it; NULL: it ends
  VEC(live) v;           // by kind
  splits_passed *passed; // [kind * noptions + option of `next`], for `npassed` kinds; at the end one each
  u32 npassed, nmore;
  i64 *more; // [fast * nmore + slow]; INT64_MIN: not known yet
  bool many; // combinations of what is to come
} splits_gap;
typedef struct {
  arena *a;
  const splits_problem *p;
  splits_readers readers;
  double ps_per_byte;
  splits_gap *gap;      // [number in `readers` + tensor]
  splits_passed **made; // by tensor and option of its operator
} splits_kinds;
void splits_kinds_of(arena *a, const splits_problem *p, double ps_per_byte, splits_kinds *out);

// Of a weight that nobody has read, and where there is no tensor, the kind is 0.
const splits_passed *splits_make(splits_kinds *k, u32 tensor, u32 option);
const splits_passed *splits_find_passed(splits_kinds *k, u32 gap, u32 kind, u32 option);
static inline const splits_passed *splits_pass(splits_kinds *k, u32 gap, u32 kind, u32 option) {
  const splits_gap *g = &k->gap[gap];
  const u32 at = g->next ? kind * g->next->noptions + option : kind;
  if (kind < g->npassed && g->passed[at].known) return &g->passed[at];
  return splits_find_passed(k, gap, kind, option);
}
// By how much all that is to come takes more for one kind than for another, at most; 0 or more. A quarter of INT64_MAX: there may be no way.
i64 splits_find_more(splits_kinds *k, u32 gap, u32 fast, u32 slow);
static inline i64 splits_more(splits_kinds *k, u32 gap, u32 fast, u32 slow) {
  const splits_gap *g = &k->gap[gap];
  if (fast == slow) return 0;
  if (fast >= g->nmore || slow >= g->nmore) return splits_find_more(k, gap, fast, slow);
  const i64 more = g->more[fast * g->nmore + slow];
  return more == INT64_MIN ? splits_find_more(k, gap, fast, slow) : MAX(more, 0);
}

// ---- states that are beaten (splits_beaten.c) -----------------------------------------------------------------
// The states of a cut.
typedef struct {
  splits_kinds *kinds;
  u32 nslots, nheld;
  const u32 *gap; // by slot: the one that its tensor is in
} splits_cut;
typedef struct {
  const u32 *kind; // by slot
  u32 held;        // number, below nheld, of the options that later operators or the solution ask for
  i64 cost;        // of the fastest way here
  bool beaten;     // no fastest solution with the same held options goes through it
} splits_reached;
void splits_find_beaten(arena *a, const splits_cut *c, splits_reached *v, u32 n);
#endif
