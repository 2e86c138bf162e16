// movement.h - one communication of one operand: who gives to whom. Shared by move.c and linked.c only.
#ifndef HEDDLE_EVAL_MOVEMENT_H
#define HEDDLE_EVAL_MOVEMENT_H
#include "eval/internal.h"

typedef struct {
  interp *m;
  const instr *i;
  attrs at;
  const point *when;
  const char *name;
  const u8 *over;
  u32 nover;
  const end *in, *out; // operand (the first, for a join) and result
  u32 nin;
  reduction red; // RED_NONE: put together
  givers by;     // of the target at hand
  own_part **of; // what is known of it already (linked.c); NULL: nothing is kept
} movement;

giving movement_giving(const movement *v, arena *a);
buf *movement_room(movement *v,
                   u32 to); // where the piece of `to` goes, which others may have begun to refer to
// The piece of `to` from what its givers hold, each element from the first; or combined from all of them, rounded once.
bool movement_put_together(movement *v, u32 to);
bool movement_combine(movement *v, u32 to);
bool movement_linked(movement *v); // what concerns this process (linked.c)
bool movement_known(movement *v);  // has it been here before? Then v->red is known, and that it is right
#endif
