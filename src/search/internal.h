// internal.h - the parts of a search. Private to search/.
#ifndef HEDDLE_SEARCH_INTERNAL_H
#define HEDDLE_SEARCH_INTERNAL_H
#include "search/search.h"

typedef struct known known; // evaluate.c
typedef struct {
  ctx *c;
  arena *a;
  planner *pl;
  coster *k;
  known *stages; // what is known of stages and schedules
  bool broken;   // the session could not be set up
} worker;

typedef struct {
  double work;                      // seconds of all products of a step on one device at its best rate
  bool chain;                       // one product after the other, there and back
  double weight_bytes, state_bytes; // of all weights, of their optimiser states
  bool train, distir;
} bounds;

typedef struct {
  const prog *src;
  const machine *m;
  const cost_opts *costs;
  const search_opts *o;
  schedule_files files;
  search_result *r;
  arena *a;
  worker *w;
  i64 limit;
  hmap by_strategy; // indices of points
  bounds bounds;
  search_point **wave;
} search;

// ---- search.c -----------------------------------------------------------------------------------------
plan *search_plan(const search *s, worker *w, arena *a, const search_point *p); // without its sequences
void search_impossible(search_point *p, const worker *w);      // for the reason that the session has
search_point *search_find(const search *s, const strategy *x); // NULL: not in the space

// ---- evaluate.c ---------------------------------------------------------------------------------------
// Time and bytes of the point's plan, its state, what it equals.
void search_evaluate(search *s, worker *w, search_point *p);
void known_free(known *k);

// ---- space.c ------------------------------------------------------------------------------------------
// Every strategy of the space once; impossible ones that show without a plan are marked. False and a
// diagnostic if there is none, if a value that was said is in none, or if a file is no schedule that runs.
bool space_make(ctx *c, arena *a, const search_opts *o, u32 ranks, search_result *r, schedule_files *files);

// ---- bound.c ------------------------------------------------------------------------------------------
void bounds_make(planner *pl, const machine *m, coster *k, const search_opts *o, bounds *b);
void bound(const bounds *b, search_point *p); // bound_ps and bound_bytes

// ---- outcome.c ----------------------------------------------------------------------------------------
void outcome_sort(arena *a, search_result *r); // ranks the points, counts states and reasons
void outcome_no_plan(ctx *c, const search_opts *o, const search_result *r);
#endif
