// whale.h - what the comparisons with Whale share: a model on a machine, what a plan of it takes, and the
// rows of the table.
#ifndef HEDDLE_REPRODUCE_WHALE_H
#define HEDDLE_REPRODUCE_WHALE_H
#include "reproduce.h"

enum { WHALE_KINDS = 4 }; // kinds of devices on a machine

// One model at one batch on one machine.
typedef struct {
  ctx *c;
  arena *a;
  planner *pl;
  cost_model *k;
  const machine *m;
  optim_opts optim;
  bool infer;
} setting;
typedef struct {
  const char *model, *machine;
  optimizer optim;
  i64 batch, seq, classes; // seq, classes: 0: the model's own
  bool infer;              // the forward alone
} setting_opts;
void setting_open(setting *x, const setting_opts *o); // ends the program if there is no such model or machine
void setting_close(setting *x);

typedef struct {
  bool ok, fits; // ok: there is such a plan
  double s, peak_bytes;
  // Parts of the step, means over the ranks of each kind of device: computing, and communicating instead
  double computes[WHALE_KINDS], communicates[WHALE_KINDS];
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

// A row: what Whale published as numbers from `low` to `high`, and ours, which meets it within 5 %. high 0:
// not judged.
void row(verdict *v, const char *what, double low, double high, double ours, const char *note, ...)
    PRINTF_LIKE(6, 7);
void row_text(const char *what, const char *published, const char *ours, const char *note);

void whale_hybrid(arena *a, verdict *v); // whale_hybrid.c: a classifier of 100,000 and of 1,000,000 classes
#endif
