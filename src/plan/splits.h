// splits.h - one split or none for every operator, over one axis: the problem, and two solvers of it, an exact one and a
// stochastic one. Part of plan.h.
//
// Idea: how an operator is split is an option: what it costs, in which state it needs its operands and in which
// its results come out. A tensor that lies otherwise is converted, at a price. Between two operators only the tensors
// that are still needed count: the cut. So the best way to reach every state of the cut is all that is kept, a front of
// time against memory for each, and the optimum is exact. docs/design/planning.md has the reasons.
//
// The problem knows no programs (splits_ops.c makes it of one), so it is held against all assignments in
// tests/prop/splits.c.
#ifndef HEDDLE_PLAN_SPLITS_H
#define HEDDLE_PLAN_SPLITS_H
#include "base/base.h"

// States of a tensor over the axis: whole on every rank; summands; from LIES_PIECES on in pieces of some dimension.
enum { LIES_WHOLE, LIES_SUM, LIES_PIECES, LIES_MOST = 16, LIES_NONE = 0xff };

typedef struct {
  u32 nstates;
  const i64 *convert; // [from * nstates + to], ps; below 0: there is no way
  const i64 *bytes;   // [state]: kept from the forward to the backward, of a weight stored; NULL: nothing
  bool gradient;      // a gradient comes back, at the same prices
  bool weight;        // lies as the first that reads it needs it, whole where that is summands
  // Of a weight: [state of its gradient, or nstates if there is none][where it lies]: ps of all that comes of the
  // gradient; below 0: there is no way.
  const i64 *settle;
} splits_tensor;
typedef struct {
  i64 time_ps, bytes; // 0 or more
  const u8 *need;     // by operand: its state
  const u8 *grad;     // by operand: the state in which its gradient comes out; LIES_NONE: there is none
  const u8 *made;     // by result. Its gradient is needed in that state, of summands whole
  bool
      as_comes; // operands must have been made as they are needed; of summands, nobody has taken the sum before
  bool grads_come; // gradients of results come as summands
} splits_option;
typedef struct {
  u32 nopd, nres, noptions;
  const u32 *opd, *res; // tensors; every one is made by one operator at most, before it is read
  const bool *again;    // by operand: the backward reads it, too
  const splits_option *option;
  u32 tie;    // from 1: operators with equal numbers choose the same option. 0: none
  bool named; // the solution has the best for every option of it
} splits_op;
typedef struct {
  u32 nops, ntensors;
  const splits_op *op; // in the order of the program
  const splits_tensor *tensor;
  u32 forwards; // 2: what happens in the forward is done once more in the backward
} splits_problem;

// What an assignment costs, by definition:
//
// Operators run in order. An operand that is not in the state that is needed is converted from the state in which it was
// made, once for all readers in the same state; summands are summed for the first reader that does not take summands, and
// converted from there for later ones. The backward converts what it reads of the forward once more. Gradients of a tensor are
// added in the order of its readers: two sums stay one; beside pieces everything becomes pieces, those that came first;
// else both are whole. The result is converted to the state that the maker needs, or settled.
typedef struct {
  i64 time_ps, bytes;
  const u16 *option; // by operator
} splits_choice;
typedef struct {
  u32 n;
  const splits_choice
      *v;     // none is beaten in time and bytes by another one with equal named options; by time, then bytes
  bool exact; // else states or points were given up: more than the limits
  u64 states, points; // looked at; of splits_walk: assignments
} splits_solution;
// An assignment that a change has led to, and what it costs; possible false: there is no way, the cost is of what there is.
typedef void splits_moved(void *arg, const u16 *option, i64 time_ps, i64 bytes, bool possible);
typedef struct {
  bool fastest; // one point is kept for every state, the fastest; of named options those that conversions of
                // the fastest do not beat
  u32 states;   // most states of a cut; 0: 8,192
  u32 points;   // most points of a front; 0: 64
  double ps_per_byte; // with `fastest`: bytes cost time, at this price; the least of both together is kept
  i64 most_ps;        // with `fastest` and no price: slower solutions are not wanted; 0: any are
  u64 steps;          // tried; after them 256 states of a cut are kept. 0: 2,097,152
  bool all;           // false, as if there were no way, where a limit is reached
  // Of splits_walk alone
  u64 seed, proposals; // proposals: changes that are tried; 0: SPLITS_PROPOSALS
  const u16 *prefer;   // by operator: option + 1 that one of the starts has, 0 any; NULL: no such start
  const splits_solution *known; // starts, too: solutions of splits_solve; NULL: sought with few states
  splits_moved *moved;          // told of every change that is accepted; NULL: nobody is
  void *arg;
} splits_limits;
enum { SPLITS_PROPOSALS = 100000 };
// By dynamic programming over cuts (splits_cut.c): exact, unless limits are reached. False: some operator has no option that
// can be reached.
bool splits_solve(arena *a, const splits_problem *p, const splits_limits *limits, splits_solution *out);
// By Markov chains (splits_walk.c): changes at random, accepted by Metropolis' rule at a temperature that falls. One point for
// each choice of named options, as with `fastest`, whatever the limits say; with `all` false. Never worse than its starts: everything as whole
// as can be, `prefer`, `known`. The same seed gives the same solution. False: no assignment was found.
bool splits_walk(arena *a, const splits_problem *p, const splits_limits *limits, splits_solution *out);
// The cost of one assignment, of one option for each operator; false: there is no way. What splits_solve minimises.
bool splits_price(const splits_problem *p, const u16 *option, i64 *time_ps, i64 *bytes);
#endif
