// decompose.h - an instruction while it becomes a function (decompose.c). Private to plan/.
#ifndef HEDDLE_PLAN_DECOMPOSE_H
#define HEDDLE_PLAN_DECOMPOSE_H
#include "plan/internal.h"

enum { DECOMPOSE_RESULTS = 3 }; // the most that a row that is decomposed has
typedef struct {
  builder b;
  const func_info *f; // the new function
  attrs at;           // of the instruction
  value x[4];         // its operands
  u32 nopd, nd;       // nd: dimensions of the scores
} decomposition;

// Y, mean, var of batchnorm_train (decompose_batchnorm.c)
bool decompose_batchnorm(decomposition *e, value *y);
bool decompose_batchnorm_dx(decomposition *e, value *y); // dx, dg, db
#endif
