// grad.h - what the files of the gradient share: what a rule sees and builds with, and one function while it
// is being differentiated. Inside src/pass only.
//
// Idea: a rule is called for one forward instruction whose results have gradients, and emits instructions
// that give the gradients of its operands. It names forward values directly, as if all were at hand: which of
// them are saved, made again or passed as parameters is settled afterwards from what the rules have used.
#ifndef HEDDLE_PASS_GRAD_H
#define HEDDLE_PASS_GRAD_H
#include "pass/pass.h"

typedef struct job job;
typedef struct sums sums;
typedef struct {
  builder *b;
  const func_info *f; // the function being built; forward values have ids in it, too
  opcode op;
  attrset at;
  u32 nopd, nres;
  const value *x;   // operands
  value y;          // first result; the others follow
  const value *dy;  // per result; 0 = no gradient
  const bool *want; // per operand: is its gradient needed
  value *dx;        // out, per operand; 0 = none
  sums *s;          // of grad.c
  u32 index;        // of the forward instruction
} rule;

#define OP(name, min, max, res, law, lin, types, attrs, red, flops, flags, kernel, grad, doc)                \
  void grad_##grad(rule *r);
#include "op/ops.def"
#undef OP

void grad_own(rule *r); // of an operator from outside: its formula

// E_NOGRAD at the forward instruction. what: the form of it that is meant, "mode reflect", or NULL.
void grad_refuse(rule *r, const char *what);

// ---- what rules build with: 0 and no effect once an instruction has failed -------------------------------
static inline shape shape_of(const rule *r, value v) { return val_type(r->b->p, r->f, v)->s; }
static inline attrs attrs_in(const rule *r) { return attrs_get(r->b->p, r->at); }
static inline value op1(rule *r, opcode op, value x) { return build1(r->b, op, x); }
static inline value op2(rule *r, opcode op, value x, value y) { return build2(r->b, op, x, y); }
static inline value mul(rule *r, value x, value y) { return build2(r->b, OP_mul, x, y); }
static inline value add(rule *r, value x, value y) { return build2(r->b, OP_add, x, y); }
static inline value sub(rule *r, value x, value y) { return build2(r->b, OP_sub, x, y); }
static inline value op_with(rule *r, opcode op, value x, attr a) { return build(r->b, op, &x, 1, &a, 1); }
static inline value scale(rule *r, value x, double by) {
  return op_with(r, OP_scale, x, attr_f(A_alpha, by));
}
static inline value offset(rule *r, value x, double by) {
  return op_with(r, OP_offset, x, attr_f(A_alpha, by));
}
value rule_same(rule *r, opcode op, const value *x, u32 n); // with the forward instruction's attributes
value rule_same_and(rule *r, opcode op, const value *x, u32 n, attr more);
value rule_full(builder *b, const shape *s, double v);
value rule_scalar(rule *r, dtype t, double v);
value rule_dims(rule *r, value x, u32 nd, const i64 *dim); // reshape, or x itself
value rule_dtype(rule *r, value x, dtype t);               // cast, or x itself
value rule_sum_to(rule *r, value g, value like); // undoes broadcasting: g summed to the extents of `like`

// ---- one function being differentiated: grad.c makes the body, grad_rematerialise.c the functions ---------
// Forward values have the same ids in the backward body, except that a differentiated call counts as one of
// the callee's fwd: the saved values follow its results, and later ids move up. Such an id is called F.
typedef struct {
  func f;
  bool split;
  const u8 *mark;
  const bool *has_dy;
  grad_pair pair;
} grad_done; // one function, differentiated under one set of marks

enum { VARIES = 1, BY_WEIGHTS = 2, BY_INPUTS = 4, FLOWS = 8 };
struct job {
  prog *p;
  arena *tmp;
  struct grad_memo *memo;
  func f;
  const func_info *fi;
  const u8 *mark;
  const bool *has_dy;
  bool split;
  u8 *flags;   // per value of f. VARIES: depends on a marked parameter; BY_...: on weights, on other
               // parameters; FLOWS: varies, and a result with a gradient depends on it
  u32 *handed; // value of f -> 1 + the latest call that takes its accumulator
  const grad_done **callee; // per instruction; NULL: not a differentiated call
  value *to;                // value of f -> F
  func_info *body;          // the backward body
  value nf;                 // values of the body: F ids, then the gradients of results ...
  value dy0, acc0, made0;   // ... then accumulators, then what it makes
  value *acc;               // parameter from 0 -> the accumulator that it has as the function begins; 0: none
  value *out;               // what it returns: pair.ndx gradients, then pair.nacc accumulators
  grad_pair pair;
};
void grad_rematerialise(job *j);
#endif
