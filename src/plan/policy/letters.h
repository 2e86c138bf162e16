// letters.h - what the laws say of the indices of a program (its classes, infer/infer.h), for the policies
// that split matmuls: which of them a split can follow, and which it cannot.
#ifndef HEDDLE_PLAN_POLICY_LETTERS_H
#define HEDDLE_PLAN_POLICY_LETTERS_H
#include "plan/plan.h"

enum {
  LETTER_WHOLE = 1, // a row other than a matmul with a weight needs it whole or multiplies along it (the
                    // product of queries and keys, a choice of experts)
  LETTER_AGAIN = 2, // a row sums over it, and the sum meets what still has it: a normalisation
  LETTER_INNER = 4  // a matmul sums over it or works on each of its coordinates alone (hidden units between
                    // two matmuls, heads, experts): a split is followed there
};
typedef struct {
  planner *pl;
  const classes *k;
  u8 *use;       // per class: LETTER_...
  bool **weight; // per function and value: is it a weight, or made of weights alone?
} letters;

// Reads all functions of the planner's source program. Everything is in `a`.
letters letters_of(planner *pl, arena *a);

bool letters_is_matmul(const letters *l, func f, u32 index); // with a weight

// One index of one dimension of a matmul's operand that is a weight.
typedef enum {
  LETTER_COLUMN, // the result has it, no other operand has
  LETTER_BATCH,  // the result and another operand have it: experts
  LETTER_ROW     // the result has not: it is summed over
} letter_kind;
typedef struct {
  letter_kind kind;
  u32 class, operand;
  u8 dim;
  bool alone;        // nothing else is in that dimension
  i64 extent, inner; // inner: elements between two neighbours
} letter;
enum { WEIGHT_LETTERS = 32 };
// Those of one matmul that its law allows to be split; WEIGHT_LETTERS at most.
u32 letters_weight(const letters *l, func f, u32 index, letter *out);
#endif
