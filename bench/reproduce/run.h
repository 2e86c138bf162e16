// run.h - one model on one machine, and what its plans take.
#ifndef HEDDLE_REPRODUCE_RUN_H
#define HEDDLE_REPRODUCE_RUN_H
#include "reproduce.h"

enum { RUN_KINDS = 4 }; // kinds of devices on a machine

// One model at one batch on one machine.
typedef struct {
  ctx *c;
  arena *a;
  planner *pl;
  cost_model *k;
  const machine *m;
  optim_opts optim;
  bool infer;
  i64 batch;
} setting;
typedef struct {
  const char *model, *machine;
  const char *text;                 // program text in place of the model; NULL: none
  const char *machine_text, *times; // of a machine file; of times of layers (docs/profiles.md); NULL: none
  bool half;                        // f16 in place of f32
  optimizer optim;
  i64 batch, seq, classes; // seq, classes: 0: the model's own
  bool infer;              // the forward alone
} setting_opts;
void setting_open(setting *x, const setting_opts *o); // ends the program if there is no such model or machine
void setting_close(setting *x);

typedef struct {
  bool ok, fits;                    // ok: there is such a plan
  double s, peak_bytes, host_bytes; // of the fullest rank, of the fullest node's host
  // Parts of the step, means over the ranks of each kind of device: computing, and communicating instead
  double computes[RUN_KINDS], communicates[RUN_KINDS];
  double bridge;  // communicating over the axis tp: between a hybrid's two parts, and inside the second
  char name[128]; // of the plan, with the numbers that `auto` became
} outcome;
outcome run_plan(setting *x, plan *pn);
// node_first: the stages of a replica lie next to each other on one node, as Whale places them; otherwise the
// replicas of a stage do.
typedef enum { STAGE_FIRST, NODE_FIRST } placing;
outcome run_strategy(setting *x, placing where, const char *line);
outcome run_once(const setting_opts *o, placing where, const char *line); // opened and closed

// The largest power of two samples for each of `parts` parts of the batch with which the plan fits; 0: none
// does.
i64 largest_batch(setting_opts o, i64 parts, placing where, const char *line);
#endif
