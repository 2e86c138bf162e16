// plans.h - tiny models of every kind and random plans for them, shared by the property tests of plans.
#ifndef HEDDLE_TEST_PLANS_H
#define HEDDLE_TEST_PLANS_H
#include "plan/plan.h"

enum { PLANS_GROUPS = 32 }; // of batch norm, less than
typedef struct {
  const char *name, *spec; // front_load's name
  ctx *c;
  arena *a;
  prog *src; // with a loss
  planner *pl;
  optim_opts optim;
  bool batchnorm;                        // has it any, in training?
  plan_numbers want[2];                  // of the single-device program: inference, training (with gradients)
  plan_numbers grouped[2][PLANS_GROUPS]; // the same with batch norm in so many groups
  const plan
      *stale; // the latest plan with updates between tasks that was asked for, and what it must compute
  arena *of_stale;
  plan_numbers want_stale;
} plans_model;

enum { PLANS_SEED = 7 }; // of the inputs
u32 plans_count(void);
bool plans_has_tables(u32 index); // rows and columns of an Evoformer   // models
const char *plans_name(u32 index);
prog *plans_load(ctx *c, u32 index, i64 batch); // its program alone; batch: where it is free, 0 its own
void plans_open(plans_model *m, u32 index);     // aborts with its diagnostics if the model cannot be made
void plans_close(plans_model *m);
const plan_numbers *plans_want(plans_model *m, const plan *pn); // what pn must compute

// A plan made by policies: a hybrid of data, tensor and pipeline parallelism with random options. NULL: it
// does not divide; the diagnostics stand in m->c. In `a`.
plan *plans_hybrid(plans_model *m, u64 *rng, arena *a);
plan *plans_by_degree(plans_model *m, u64 *rng, arena *a); // NULL: refused
plan *plans_made_up(plans_model *m, u64 *rng, arena *a);   // replicas of different make-up; NULL: refused
plan *plans_placed(plans_model *m, u64 *rng, arena *a);    // interlaced, or with passes; NULL: refused
plan *plans_stale(plans_model *m, u64 *rng, arena *a);     // with updates between tasks; NULL: refused
// Such a pipeline of microbatches, with its tasks in any order that respects who waits for whom, backwards in
// one part, in two, or some so and some so, sends on any streams. NULL: none was found.
plan *plans_ordered(plans_model *m, u64 *rng, arena *a);
// A plan from random primitives, without policies: meshes, places, cuts, splits, orders, what is sharded in
// storage.
plan *plans_random(plans_model *m, u64 *rng, arena *a);
// The plan with to[r] in the place of every rank r. In `a`.
plan *plans_relabelled(const plan *pn, const u32 *to, arena *a);
#endif
