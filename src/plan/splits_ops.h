// splits_ops.h - the operators of a program, in which ways each can be split over one axis, and what that costs in a plan:
// the problems of splits.h. What prices need is read from the laws and from gradients of single operators.
#ifndef HEDDLE_PLAN_SPLITS_OPS_H
#define HEDDLE_PLAN_SPLITS_OPS_H
#include "plan/internal.h"

// One way to split an operator. WAY_INDEX: an index of one letter, `extent` long, its neighbours `inner` elements of the letter
// apart. WAY_APART: the same of a letter that must stay whole, where the operator is decomposed (decompose.c).
// WAY_SUM: a sum that has not been taken passes, of all operands that are linear together, or of one alone, number `letter`.
// WAY_UNSAID: a plan says nothing of it. Its operands are whole already, and the gradient of its result is a sum that has
// not been taken, which passes through its backward where it may (shard.c).
enum { SPLITS_WAYS = 24 }; // most ways of an operator
typedef enum { WAY_WHOLE, WAY_SUM, WAY_UNSAID, WAY_INDEX, WAY_APART } way_kind;
typedef struct {
  u8 kind, letter;
  bool batch; // the index of the batch
  i64 extent, inner;
} splits_way;
typedef struct {
  func fn;
  u32 index; // of the instruction, from 0
  const law *l;
  const char *const *letter; // names
  u32 nways;
  splits_way *way;
  bool fixed;   // depends on constants alone: made where it is needed, and not split
  bool follows; // in whatever way the instruction before it in its chain: `leader`
  u32 leader;
  // Alone with its gradient, in the model's program: forward instructions, then backward ones
  func form;
  const classes *k;
  u32 nforward, nlikened, nbackward,
      nopd;                     // body: forward, likened values without a price, backward up to nbackward
  const bool *again, *gradient; // by operand: does the backward read it, has it a gradient
  const bool *kept;             // by result: does the backward read it
  const value *back;            // by operand: its gradient in the form, 0: none
  const bool *sums; // by operand: is its gradient a sum where that of the result is? NULL: of none
} splits_instr;
typedef struct {
  func f;
  bool known;                 // of tensors and operators that this reads
  const char *why;            // it is not
  splits_instr *v;            // body.n
  const bool *learns, *leads; // by value: there is a gradient of it if both
} splits_func;
typedef struct {
  planner *pl;
  arena *a;
  prog *p; // of forms
  bool train;
  const classes *k; // of the source
  u32 batch;        // its class; 0: there is none
  splits_func *fn;  // by function of the source
} splits_model;
splits_model *splits_model_new(planner *pl, arena *a, bool train);
void splits_model_free(splits_model *m);

// Does a sum pass from one operand beside others, in which the operator is linear as well?
bool splits_sums_alone(const splits_instr *x, const splits_way *w);

// The stride of the letter that a way has over an axis of `ways` ranks where the batch is in `parts` already; 0: it does not
// divide. *uneven: in pieces that differ by one element.
i64 splits_stride(const splits_instr *x, const splits_way *w, u32 ways, u32 parts, bool *uneven);
// The class and stride of an atom of the form that a split of a letter falls on. False: on several.
bool splits_class_of(const splits_model *m, const splits_instr *x, u32 letter, i64 stride, u32 *class,
                     i64 *within);

// ---- what it costs (splits_cost.c) --------------------------------------------------------------------------
// What prices depend on: devices of the plan, of which `ways` next to each other are the axis; into how many pieces the batch is
// cut, over data ranks and microbatches; how many microbatches a step has, and of how many activations are kept at a
// time; what a weight takes with what belongs to it.
typedef struct {
  u32 ranks, ways, data, micro, held;
  u32 zero;
  u8 offload; // OFFLOAD_...: that lies in host memory
  materialise_way materialise;
  bool train, again; // again: functions are computed again in the backward
  bool wide;         // gradients are accumulated in f32
  u32 recompute;     // number of the word, for comparison; marked: by function and instruction, NULL: none
  const bool *const *marked;
  optim_opts optim;
  splits_limits limits;
  splits_method method;
  const plan_trans *like; // of a start of chains: splits over axis `like_axis`
  u32 nlike;
  u8 like_axis;
} splits_terms;
// May the instruction be split in that way under the rules? NULL: in any.
typedef bool splits_allowed(void *arg, const splits_instr *x, const splits_way *w, u32 ways);
// An operator that is allowed no way, and those that it would have, by number.
typedef struct {
  const splits_instr *x; // NULL: there is none
  u32 ways, nways;
  const u8 *way;
} splits_refusal;
// What an instruction takes in the way that goes with one of its leader's: forward and backward.
typedef struct {
  bool known, possible;
  i64 ps[2];
} splits_price_of;
typedef struct {
  const splits_model *m;
  cost_model *k;
  splits_terms t;
  splits_allowed *allowed;
  void *arg;
  arena *a;
  prog *p; // of prices
  u8 axis, time;
  group all;
  i64 *ps; // room for a price of every rank
  key_table table_keys;
  VEC(const i64 *) tables;
  splits_refusal refusal;
  splits_price_of **known; // by function and instruction, then by way: of chains, by their first instruction
} splits_prices;
typedef struct {
  layout lay[LIES_MOST];
  u32 n;
} splits_lies; // layouts of a tensor's states
// The problem of one function, with an operator for every parameter and result in front and at the end, or of main, with
// one for every call.
typedef struct {
  func f;
  splits_problem p;
  splits_lies *lies; // by tensor: values of f
  u32 *instr;        // by operator: number from 1 of the (first) instruction; 0: a parameter or a result
  const u8 **way;    // [operator][option]: of the (first) instruction
  const u32 *leader; // by instruction, from 0: the one whose way it has; itself where it has its own
  splits_solution s;
  bool walked, better; // by chains; and their solution is the better one
  u32 ncalls;
} splits_sheet;
// ---- tensors (splits_tensor.c) -------------------------------------------------------------------------------
u8 splits_state(splits_lies *s, layout l); // added if need be; LIES_NONE: there are too many
layout splits_dealt(const splits_prices *x, func fn,
                    value v); // as the plan deals out the batch, and nothing else
splits_lies splits_lies_of(const splits_prices *x, func fn, value v); // whole and summands
i64 splits_local_bytes(const splits_prices *x, const shape *s, layout l);
i64 splits_held(const splits_prices *x); // microbatches whose activations are on the device at a time
i64 splits_stored_bytes(const splits_prices *x, const splits_terms *t, const shape *s,
                        layout l); // a weight with its gradient and the states of the optimizer
i64 splits_least_stored_bytes(const splits_terms *t, const shape *s); // in whatever layout
// [from * n + to] as splits_tensor has them, of a weight's gradient likewise; by state. In x->a, kept.
const i64 *splits_converts(splits_prices *x, const shape *s, const splits_lies *l);
const i64 *splits_settles(splits_prices *x, const shape *s, const splits_lies *l);
const i64 *splits_endings(splits_prices *x, const shape *s, const splits_lies *l);
i64 splits_slowest(const splits_prices *x, u32 n); // of x->ps

// How the letter of a way is split over the axis. False: it does not divide.
bool splits_letter_of(const splits_prices *x, const splits_instr *i, const splits_way *w, letter_split *at);
// The way of a follower that splits the same dimension as its leader's.
splits_way splits_way_of_follower(const splits_instr *lead, const splits_instr *i, const splits_way *w);
bool splits_prices_open(splits_prices *x, const splits_model *m, cost_model *k, const splits_terms *t,
                        splits_allowed *allowed, void *arg);
void splits_prices_close(splits_prices *x);
// What main takes for one microbatch, at least: its operators and those that it calls, each in its cheapest way, nothing converted and no
// weight updated. Below 0: as splits_sheets.
i64 splits_least(splits_prices *x);
// Solves all functions, then main. NULL: no operator can be split so, there is no price, or it is all slower than limits.most_ps. fn: by function of the
// source. In x->a.
typedef struct {
  splits_sheet *fn;
  const splits_sheet *main;
} splits_answer;
const splits_answer *splits_sheets(splits_prices *x);
// By the method of the terms (splits_method.c). False: there is no solution that takes most_ps at most; 0: none at all.
bool splits_solve_sheet(const splits_prices *x, i64 most_ps, splits_sheet *s);
// ---- answers (splits_answer.c) ---------------------------------------------------------------------------------
// Does a way of the instruction split what the trans says, over as many ranks?
bool splits_is_like(const splits_prices *x, const splits_instr *i, const splits_way *w, const plan_trans *t);
// The choice of main's solution as splits over axis `axis` of a plan. In `a`; how many.
u32 splits_trans(const splits_prices *x, const splits_answer *s, u32 pick, u8 axis, arena *a,
                 plan_trans **out);
// The same by operator, for reports.
typedef struct {
  func fn;
  u32 instr;
  const splits_instr *x;
  const splits_way *way;
} splits_row;
u32 splits_rows(const splits_prices *x, const splits_answer *s, u32 pick, arena *a, splits_row **out);
// By call of main (what stands between calls is added to the one before): ps of one microbatch, bytes of weights and what belongs to
// them as t says, bytes kept for one microbatch. [n] and [n + 1]: of what stands before the first call and behind the last one.
typedef struct {
  u32 n; // calls
  i64 *time_ps, *fixed, *kept;
} splits_by_layer;
splits_by_layer splits_layers(const splits_prices *x, const splits_terms *t, const splits_answer *s, u32 pick,
                              arena *a);
// Bytes of weights and what belongs to them that every solution has, at least.
i64 splits_least_fixed(const splits_model *m, const splits_terms *t);
#endif
