// align.h - what the parts of clock alignment share. Private to diagnose/align*.c.
//
// Unknowns: for every clock but the references, what it shows less true time at every knot, in units of UNIT ps;
// after them whatever else a step needs (a slack, latencies). Everything that is known is a row: c + sum of
// coefficients times unknowns. A message's row is what it took: reception less sending, both corrected.
#ifndef HEDDLE_DIAGNOSE_ALIGN_H
#define HEDDLE_DIAGNOSE_ALIGN_H
#include "diagnose/diagnose.h"

#define ALIGN_UNIT 1e6                 // ps: a microsecond
#define ALIGN_FAR  1800000000000000000 // ps: no two readings are further apart

// ---- quadratic.c: convex programmes with sparse rows -----------------------------------------------------
enum { ROW_TERMS = 6 };
typedef struct {
  u32 n, col[ROW_TERMS];
  double val[ROW_TERMS], c;
} row;
static inline void row_add(row *r, u32 col, double val) { // equal columns become one
  for (u32 k = 0; k < r->n; k++)
    if (r->col[k] == col) {
      r->val[k] += val;
      return;
    }
  assert(r->n < ROW_TERMS);
  r->col[r->n] = col, r->val[r->n++] = val;
}
static inline double row_at(const row *r, const double *x) {
  double s = r->c;
  for (u32 k = 0; k < r->n; k++) s += r->val[k] * x[r->col[k]];
  return s;
}
typedef VEC(row) rows;
// A symmetric matrix of which row i has columns from first[i] on.
typedef struct {
  u32 n;
  const u32 *first;
  size_t *at; // v[at[i] + j] is (i, j)
  double *v;
  size_t size;
} sky;
sky sky_new(arena *a, u32 n, const u32 *first); // zero
void sky_clear(sky *m);
void sky_copy(sky *to, const sky *from);
static inline double *sky_cell(sky *m, u32 i, u32 j) {
  assert(j <= i && j >= m->first[i]);
  return &m->v[m->at[i] + j];
}
void sky_row(sky *m, const row *r, double weight); // adds weight r r^T
void sky_factor(sky *m);                 // Cholesky, in place; a pivot of zero fixes its unknown at zero
void sky_solve(const sky *m, double *x); // of a factored matrix: right side to solution
// The x that makes x^T H x / 2 + g^T x least while every row is at least 0. False: not found in ROUNDS rounds (no x has
// all rows positive). x: where to start, then the answer.
bool quadratic_solve(arena *scratch, const sky *h, const double *g, const rows *keep, double *x);

// ---- hull.c: of the messages of a link those that can ever bind -------------------------------------------
typedef struct {
  double s, d; // sent, and received less sent, ps from the origin
} point;
typedef VEC(point) points;
// Adds a point that lies right of those before, to a lower hull.
void hull_add(arena *a, points *h, point p);
void hull_sort(arena *a, points *h); // any points become their lower hull

// ---- cycle.c: the largest common slack of difference constraints -------------------------------------------
typedef struct {
  u32 from, to;
  i64 weight;
} arc;
// The cycle of least mean weight: its arcs in order, its sum. False: there is no cycle. potential (may be NULL):
// [nnodes], such that weight + potential[from] - potential[to] >= sum / length (rounded down) for every arc.
bool cycle_least_mean(arena *a, u32 nnodes, u32 narcs, const arc *v, u32 **cycle, u32 *length, i64 *sum,
                      i64 *potential);
// Lengths of shortest paths from a node; INT64_MAX: there is none. No cycle may be negative.
void paths_from(u32 nnodes, u32 narcs, const arc *v, u32 from, bool backwards, i64 *dist);

// ---- problem.c: what is unknown, and what is known of it -----------------------------------------------------
// A tie: a message, or the latest start and an end of a collective. Effects come after causes: its row is not below 0.
typedef struct {
  u32 from, to;   // processes
  double sent, d; // local time of the cause; local time of the effect, less that
  bool collective;
} tie;
typedef VEC(tie) ties;
typedef struct {
  const align_seen *in;
  arena *a;
  u32 nclocks, ncomponents;
  u32 *clock_of;    // by process
  u32 *component;   // by clock
  u32 *reference;   // by component: a clock
  i64 *coarse;      // by clock
  i64 origin;       // local time: reading less coarse less origin
  double span;      // ps: local times are from 0 to it
  u64 *used;        // by process: messages and ends
  bool *by_message; // by clock: has it messages with other clocks?
  u32 *var;         // by clock: its first unknown; TRACE_NONE: a reference
  u32 *order;       // clocks, neighbours near each other
  u32 nk, nx;       // knots, unknowns of clocks
  double *knot;     // local times
  double *tables;   // x of all clocks, references too: scratch of problem_table
  u32 *first;       // of matrices: nx + nfamilies + 1 rows
  u32 pieces;
  points *hull; // of link and piece: hull[link * pieces + piece]
} problem;
problem *problem_new(arena *a, const align_seen *in);
void problem_set_knots(problem *p, u32 nk); // makes unknowns and hulls anew
static inline double problem_local(const problem *p, u32 process, i64 reading) {
  return (double)(reading - p->coarse[p->clock_of[process]] - p->origin);
}
// Corrections of all clocks, in ps: nk for each, also for references (zero).
const double *problem_table(const problem *p, const double *x);
static inline double problem_correction(const problem *p, const double *table, u32 clock, double t) {
  const double *v = table + (size_t)clock * p->nk;
  if (p->nk == 1) return v[0];
  const double step = p->knot[1] - p->knot[0];
  u32 k = 0;
  if (p->nk > 2 && t > 0) k = (u32)(t / step) < p->nk - 2 ? (u32)(t / step) : p->nk - 2;
  return v[k] + (v[k + 1] - v[k]) * ((t - p->knot[k]) / step);
}
row problem_row(const problem *p, const tie *t);
// The tie between the latest start and the earliest end of a collective, as the table has it, on different clocks.
// False: there is none.
bool problem_tie_of(const problem *p, const double *table, u32 collective, tie *out);

// ---- floors.c: least squares ---------------------------------------------------------------------------------
typedef struct {
  double *z;         // unknowns of clocks, then latencies of families
  sky h;             // matrix of the least squares
  double *sd;        // of unknowns of clocks, microseconds
  bool *seen;        // by family: has it messages?
  double ends_sd;    // scatter of ends, microseconds
  double drift_chi2; // how much worse without drifts, over the number of clocks: about 1 if none drifts
} floors_fit;
// Around x0, which says drifts well enough that the fastest message of a window is known.
floors_fit floors_solve(const problem *p, const double *x0);
typedef struct {
  double d, s; // least row (ps) of the window; when sent. d: INFINITY if there is none
  double raw;  // received less sent, local times
} floor_of;
// By link and window of n equal ones: floor[link * n + window].
floor_of *floors_of(const problem *p, arena *a, const double *x, u32 n);
double floors_median(double *v, u32 n, double none); // sorts; none: of no values
u32 *floors_reverse(const problem *p, arena *a);     // by link: the link back, of the same family; TRACE_NONE

// ---- slack.c -----------------------------------------------------------------------------------------------------
typedef struct {
  double *x;
  ties keep; // what the slack hangs on, and every message that can bind
} slack_fit;
// The largest common slack, as out->slack_ps and its cycle. near: corrections to start from.
slack_fit slack_solve(const problem *p, const double *near, align_clocks *out);
// x moved as little as the least squares of f allow, so that no tie is violated. slack: the largest, not below 0.
void slack_keep(const problem *p, const floors_fit *f, ties *keep, double slack, double *x);
void slack_bounds(const problem *p, const ties *keep, const double *x, align_clocks *out);

// ---- jumps.c, dpro.c ------------------------------------------------------------------------------------------------
void jumps_find(const problem *p, const double *x, align_clocks *out);
bool dpro_solve(const problem *p, const ties *keep, double *x); // true: flat
#endif
