// expand.h - an instruction while it becomes a function (expand.c). Private to plan/.
#ifndef HEDDLE_PLAN_EXPAND_H
#define HEDDLE_PLAN_EXPAND_H
#include "plan/internal.h"

enum { EXPAND_RESULTS = 3 }; // the most that a row with an expansion has
typedef struct {
  builder b;
  const func_info *f; // the new function
  attrs at;           // of the instruction
  value x[4];         // its operands
  u32 nopd, nd;       // nd: dimensions of the scores
} expansion;

bool expand_batchnorm(expansion *e, value *y);    // y, mean, var of batchnorm_train (expand_batchnorm.c)
bool expand_batchnorm_dx(expansion *e, value *y); // dx, dg, db
#endif
