// internal.h - the parts of a search. Private to search/.
#ifndef HEDDLE_SEARCH_INTERNAL_H
#define HEDDLE_SEARCH_INTERNAL_H
#include "search/search.h"

// ---- space.c ------------------------------------------------------------------------------------------
// Every strategy of the space once; impossible ones that show without a plan are marked. False and a
// diagnostic if there is none, or if a value that was said is in none.
bool space_make(ctx *c, arena *a, const search_opts *o, u32 ranks, search_result *r);

// ---- outcome.c ----------------------------------------------------------------------------------------
void outcome_sort(arena *a, search_result *r); // ranks the points, counts states and reasons
void outcome_no_plan(ctx *c, const search_opts *o, const search_result *r);
#endif
