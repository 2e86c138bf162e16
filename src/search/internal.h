// internal.h - the parts of a search. Private to search/.
#ifndef HEDDLE_SEARCH_INTERNAL_H
#define HEDDLE_SEARCH_INTERNAL_H
#include "search/search.h"

// ---- space.c ------------------------------------------------------------------------------------------
// Every strategy of the space once; impossible ones that show without a plan are marked. False and a
// diagnostic if there is none, or if a value that was said is in none.
bool space_make(ctx *c, arena *a, const search_opts *o, u32 ranks, search_result *r);

// ---- bound.c ------------------------------------------------------------------------------------------
typedef struct {
  double work;                      // seconds of all products of a step on one device at its best rate
  double missing;                   // of gradients that are not needed, which would make it 3 x forward
  bool chain;                       // one product after the other, there and back
  double weight_bytes, state_bytes; // of all weights, of their optimiser states
  bool train, distir;
} bounds;
void bounds_make(planner *pl, const machine *m, coster *k, const search_opts *o, bounds *b);
void bound(const bounds *b, search_point *p); // bound_ps and bound_bytes

// ---- outcome.c ----------------------------------------------------------------------------------------
void outcome_sort(arena *a, search_result *r); // ranks the points, counts states and reasons
void outcome_no_plan(ctx *c, const search_opts *o, const search_result *r);
#endif
