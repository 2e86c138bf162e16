// balance.h - what `auto` stands for: what balance.c and layers_auto.c share.
#ifndef HEDDLE_PLAN_POLICY_BALANCE_H
#define HEDDLE_PLAN_POLICY_BALANCE_H
#include "balance/balance.h"
#include "plan/plan.h"

typedef struct {
  double fixed, each; // ps of a microbatch: fixed + each x samples
} linear;
typedef struct {
  planner *pl;
  arena *a;
  const hybrid_opts *o;
  const machine *m;
  const strategy *s;
  i64 micro;     // samples of a microbatch, on all data ranks
  u32 nbody;     // instructions of main
  linear **time; // [kind]: by instruction of main, then their sum; NULL: not asked for yet
} balance;

balance auto_open(planner *pl, arena *a, const hybrid_opts *o, const strategy *s);
// The same with the degrees of a place (tp.stages), where times are its own; they are kept in what is returned.
balance auto_at_place(const balance *b, u32 place);
// So many quanta for n ranks, at least one and at most cap of them for each (NULL: any number), whose slowest ends first
// (balance_shares); time asks for a rank in place of a kind. NULL: caps are too low.
const i64 *auto_shares(arena *a, i64 total, u32 n, const i64 *cap, balance_time *time, const void *arg);
// The same of any total up to 64, as parts of it. pace[x]: ps of all the work on rank x. may: can it be split so?
// NULL: no total can.
u32 *auto_parts(arena *a, const double *pace, u32 n, bool (*may)(void *arg, const u32 *part), void *arg);
// Of what does not depend on the order of tasks and on sends, nor (memory: false) on the level of ZeRO and what overlaps.
planner_key auto_key(const balance *b, kept_figures what, bool memory);
static inline u64 auto_training(const balance *b) {
  return planner_training(b->o->train, &b->o->optim, b->o->keep_gradients);
}
// What a microbatch takes of a device of the kind; b->time[kind], once it is known. NULL: it is not.
const linear *auto_times(balance *b, u32 kind);
static inline double auto_at(linear t, i64 samples) { return t.fixed + t.each * (double)samples; }
// policy_balance and policy_speeds of replicas of different make-up (replicas.c).
bool policy_replica_shares(planner *pl, arena *a, const hybrid_opts *o, strategy *s);
bool policy_replica_speeds(planner *pl, arena *a, const hybrid_opts *o, double *speed);
// ---- layers_costs.c ---------------------------------------------------------------------------------------
// A layer is a call of main and what stands before it; the last one has what follows, too. ends: what stands before the
// first call and after the last one are layers of their own, where weights are read there.
typedef struct {
  u32 n;
  u32 *of;            // by instruction of main
  bool before, after; // are there such?
  const bool *wide;   // by instruction: it lies on all places, and is of no layer; NULL: none does
} layer_list;
layer_list auto_layers_of(const balance *b, bool ends);
static inline bool auto_in_layer(const layer_list *l, u32 i) { return !l->wide || !l->wide[i]; }
// Calls of main among the first n layers.
static inline u32 auto_calls(const layer_list *l, u32 n) {
  return n - (l->before && n) - (l->after && n == l->n);
}
// By layer, of one rank: what lies there, what every microbatch on its way keeps for its backward, and what a layer
// takes besides while it runs.
typedef struct {
  i64 *fixed, *kept, *work;
} layer_bytes;
layer_bytes auto_bytes_of_layers(const balance *b, const layer_list *l);
// How much more than an equal part of the samples the data rank with most of them has.
double auto_largest_part(const balance *b);
// By layer, what is there in any case.
layer_bytes auto_least_bytes_of_layers(const balance *b, const layer_list *l);
// ps to send what a microbatch has at a cut to the next place, [place][cut]; 0 where that is not known.
const i64 *const *auto_sends(const balance *b, const layer_list *l);
// ps that the place takes once a step for its weights, by layer: sums of gradients, updates.
const i64 *auto_updates(const balance *b, const layer_list *l, u32 place);

// ---- layers_auto.c ----------------------------------------------------------------------------------------
// s->layers, and s->places if need be. False: times are not known.
bool auto_layers(balance *b, strategy *s);
// ps of all microbatches, with one of them sent at every cut, and the best cuts; one stage on a place. Below 0: not
// known.
double auto_step(balance *b, const layer_list *l);
// The same by Whale's policy; it has a layer for every stage if auto_whale_may.
bool auto_whale_may(const balance *b, loc at);
bool auto_whale_layers(balance *b, strategy *s);
#endif
