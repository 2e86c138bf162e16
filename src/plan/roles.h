// roles.h - the role of an axis in one instruction: it splits a letter, or passes a partial sum through.
#ifndef HEDDLE_PLAN_ROLES_H
#define HEDDLE_PLAN_ROLES_H
#include "plan/internal.h"

enum { ROLES_MAX = LAY_SPLITS, PASS = 0xff, WHOLE = 0xfe };
typedef struct {
  u8 axis, red;
  letter_split at; // letter PASS: partial sums pass; WHOLE: nothing, as the plan says
} axis_role;
bool has_role(const axis_role *r, u32 n, u8 axis);
// May an axis split a letter so, given the other roles?
bool may_split(const law *l, reduction red, space *sp, u8 axis, const letter_split *x, const axis_role *r,
               u32 nr);
// Adds the splits over the space of g that a term has in a layout. Returns how many roles there are now.
u32 roles_of_layout(const prog *p, group g, const law *l, reduction red, const law_term *t, layout lay,
                    axis_role *r, u32 nr);
// Sums of operands that are all partial, or of which `one` is, are partial: summed once, not one by one.
u32 roles_of_sums(const space *sp, const law *l, reduction red, const layout *have, bool one, axis_role *r,
                  u32 nr);
// May a sum that has not been taken pass from an operand of `from` elements to a result of `to`, without regret: a view, an addition of
// several sums (joint), a smaller result of what nobody else reads?
bool sum_gains(const op_row *row, char lin, u32 joint, u32 nuses, i64 from, i64 to);
// Does all that becomes of v, a value of a function of the source, get smaller first: moved elements of it, in callees too,
// go into one result with fewer elements that is linear in them?
bool sum_shrinks(planner *pl, func fn, value v, i64 than);
// ... or is it added to another value of the backward, with which it may be summed at once?
bool sum_moves(planner *pl, func fn, value v, i64 than);
// Is this instruction the end of a branch, a product with a weight and its bias, that the next one adds to
// another branch (attention and feed-forward side by side)? nuses: per value, how many read it.
bool meets_branch(const func_info *f, const u32 *nuses, u32 index);
#endif
