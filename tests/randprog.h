// randprog.h - random distributed programs for properties of interpreters: nested calls, several streams,
// groups of different size, collectives, sends between unlike layouts, uneven pieces, views, joins, tuples,
// control operands, donated operands. They need not make sense to a verifier: shapes and types are right,
// laws are not obeyed.
#ifndef HEDDLE_RANDPROG_H
#define HEDDLE_RANDPROG_H
#include "ir/ir.h"

enum { RANKS = 8, STREAMS = 3, FUNCS = 4, EXTENT = 8, VALUES = 96, LAYOUTS = 8 };

typedef struct { // made from rng, c and a; the rest is filled
  u64 rng;
  ctx *c;
  arena *a;
  prog *p;
  group groups[8];
  u32 ngroups;
  u8 ax[3];
  layout lays[LAYOUTS];
  func fn[FUNCS];
  u32 nfn;
  u32 uneven; // one price in this many differs between members
  u32 range;  // prices are below this: small ones tie
  func bump;  // one instruction costs more
  u32 bump_num;
  i64 bump_by;
} world;

u32 world_pick(world *w, u32 n); // below n
void world_program(world *w);    // into w->p; main's group 0 is w->groups[0]
#endif
