// pass.h - program to program. Layer 5. But for pass_count_labels and pass_batchnorm, passes never
// change what a program computes.
#ifndef HEDDLE_PASS_H
#define HEDDLE_PASS_H
#include "infer/infer.h"

// ---- outline (outline.c) ---------------------------------------------------------------------------------
// Repeated isomorphic stretches of main become functions called several times (structural hashing): a
// 96-layer model is a short program. In main's order, or in one found from its results where that shows more.
// Parameters of such a function: what is computed outside first, then weights; constants that all copies
// agree on are made inside. Locations of its instructions lead to those of the other copies (loc_info.alike).
// At worst some hundred walks over main. Returns the number of functions made.
u32 pass_outline(prog *p);
// The inverse: every call in main, nested ones too, becomes the callee's body (inline.c).
void pass_inline(prog *p);
// The same of some calls of main alone, by instruction from 0; calls in their bodies stay.
void pass_inline_calls(prog *p, const bool *which);
// Emits the body of f with args for its parameters; rets gets what it returns. Calls in it stay calls. behind: what
// emits more behind instruction k of f, from 0; id: by value of f what it is here, which may be changed. NULL: nothing.
typedef struct {
  void (*put)(void *arg, builder *b, u32 k, value *id);
  void *arg;
} pass_behind;
void pass_splice(builder *b, func f, const value *args, value *rets, bool names, const pass_behind *behind);

// Means over labels that are not some negative number, which no class has, become means over all labels: how
// many are ignored is nobody's to know before all are seen. Returns the number of instructions changed
// (labels.c).
u32 pass_count_labels(prog *p);
bool pass_ignores_labels(const prog *p); // would it change any?

// ---- batch normalisation (batchnorm.c) -------------------------------------------------------------------
// Every batchnorm_train (and its gradient) takes its statistics over each of `groups` equal consecutive parts
// of the batch. False and a diagnostic at `where` (E_DIVIDE, E_PLAN) if a batch does not divide or there is
// none.
bool pass_batchnorm(prog *p, i64 groups, loc where);
typedef struct {
  i64 samples, groups; // of the batch; parts of it with statistics of their own
} batchnorm_stats;
bool pass_batchnorm_of(const prog *p, batchnorm_stats *out); // of the smallest batch; false: there is none

// ---- co-sharding (coshard.c) --------------------------------------------------------------------------------
// In functions that main calls, attention heads and hidden units are computed in `parts` equal parts one after the
// other: what has such an index becomes a function of a part, called so often with pieces of the weights, and the
// results are added. The functions of parts are new; of the others the rewritten keep their ids, and main is as it
// was. False and a diagnostic at `where` (E_DIVIDE, E_PLAN) if the index of a function does not divide or there is
// none. parts: OP_RES_MAX at most.
bool pass_coshard(prog *p, u32 parts, loc where);
typedef struct {
  i64 extent;       // what must divide
  const char *what; // "heads"
  const char *of;   // "attn.out of layer"; "layer" where the weight has no name
  loc where;
} coshard_index;
u32 pass_coshard_of(prog *p, arena *a, coshard_index **out); // what would be split. How many; in `a`

// ---- attention (attention.c) --------------------------------------------------------------------------------
// Where functions write attention as products, scales, masks and a softmax, one operator takes their place that keeps no
// scores. Functions keep their ids, main the numbers of its instructions. False and a diagnostic at `where` (E_PLAN) if there
// is none.
typedef struct {
  u32 fused, left; // products that read a softmax: replaced, and as they were
  loc where;       // the first of those
} attention_count;
bool pass_attention(prog *p, loc where, attention_count *out);

// ---- host memory (offload.c, prefetch.c) ------------------------------------------------------------------
// Parameters and results of f that are marked, tensors or tuples of them, lie in host memory from now on, for whoever
// calls it: what instructions read of them is copied to the device just before, on stream `in`; what they make is copied
// to the host just after, on stream `out`. What instructions next to each other read is copied once if at most `ahead`
// others that do the same are between them. Types stay. Tuples that are returned and marked are packed in f.
enum { COPIES_AT_ONCE = 32 }; // tensors of one copy: a law has room for the dimensions of so many
typedef struct {
  const bool *param, *ret;
  u32 ahead;
  u8 in, out;
} offload_opts;
void pass_offload(prog *p, func f, const offload_opts *o);
// A new function that does what f, an update, does, with what reads something in host memory on the host: parameters and
// results that are marked lie there. On streams `host`, `in` and `out`. f stays. maker: by parameter, what has made it, where
// some are made long before others: each goes as soon as it can.
typedef struct {
  const bool *param, *ret;
  const u32 *maker;
  u8 in, out, host;
} host_update_opts;
func pass_host_update(prog *p, func f, const host_update_opts *o); // host_update.c
// Copies run beside computation, on every rank `ahead` steps before what they bring is read and after what they take
// away was made, and no further (prefetch.c has the rule). Calls of main to functions that copy become their bodies.
void pass_prefetch(prog *p, u32 ahead);

// ---- clean-up (clean.c) ----------------------------------------------------------------------------------
// Each drops unreachable functions, so that ids of functions may change.
u32 pass_dce(prog *p);      // instructions without effect on returned values; how many went
void pass_compact(prog *p); // unused types, attributes and constants; renumbers them

// ---- gradients (grad*.c) --------------------------------------------------------------------
// Reverse mode, function by function. From a forward function f(x1..xn) -> (y1..ym) two functions are made:
//
//   fwd(x1..xn) -> (y1..ym, s1..sk)
//   bwd(need.., s1..sk, dy.., acc..) -> (dx.., acc'..)
//
// s: saved values, results of instructions that bwd needs; need: the parameters of f that bwd reads (indices
// in need[]); dy: gradients of the results with has_dy; dx: gradients of the parameters marked GRAD_INPUT;
// acc: a donated gradient accumulator for every parameter marked GRAD_ACC (acc' = acc + gradient; in f32 where it is
// marked GRAD_ACC_F32); parameters
// marked GRAD_PLAIN return their gradient without an accumulator (in acc's place). Marked parameters that no
// gradient comes to are left out (dx[] and acc[] say which are there). A call must donate the accumulators. A saved value that is also a result is returned twice. Calls inside f are differentiated
// recursively, each (callee, marks) once. Fan-out adds are explicit. Every backward instruction carries
// INSTR_BACKWARD and the origin of its forward instruction; gradients have the parameter's type. Forward
// instructions marked INSTR_RECOMPUTE are not saved but computed again in bwd (a marked call: its inputs are
// kept and its fwd is called again; such instructions carry INSTR_RECOMPUTE|INSTR_BACKWARD); random keys are
// the same.
typedef enum { GRAD_NONE, GRAD_INPUT, GRAD_ACC, GRAD_PLAIN, GRAD_ACC_F32 } grad_mark;
dtype grad_acc_type(grad_mark m, dtype param); // of the accumulator: the parameter's, or f32 (GRAD_ACC_F32)
static inline bool grad_accumulates(u8 mark) { return mark == GRAD_ACC || mark == GRAD_ACC_F32; }
typedef struct {
  func fwd, bwd;
  u32 nsaved;
  u32 nneed;
  const u32 *need; // parameter numbers from 0, in the order bwd takes them
  u32 ndy;
  const u32 *dy; // result numbers whose gradient bwd takes, in order
  u32 ndx;
  const u32 *dx; // parameter numbers, in the order bwd returns them
  u32 nacc;
  const u32 *acc; // parameter numbers, in order (GRAD_ACC: taken and returned; GRAD_PLAIN: returned)
  // With split: bwd computes only dx and returns (dx.., carry..); wgt(need_w.., carry.., acc..) -> (acc'..)
  func wgt;
  u32 ncarry, nneed_w;
  const u32 *need_w; // bwd's saved values needed by wgt travel in carry
  u32 nagain;
  const u32 *again; // origins of instructions that are computed again because they are marked; callees' too
} grad_pair;
typedef struct {
  const u8 *mark;     // grad_mark per parameter of f
  const bool *has_dy; // per result of f
  bool split;         // input-gradient and weight-gradient apart (zero-bubble schedules)
} grad_opts;
// Parameters of non-float type must be GRAD_NONE. Needs laws only, no layouts (single-device functions).
// Diagnostic E_NOGRAD at the forward instruction when the gradient must pass an operator without one. Results
// in p->a.
bool pass_grad(prog *p, func f, const grad_opts *o, grad_pair *out);
// The same, sharing what was differentiated before: one memo for all functions of a program. It is out of
// date once such a function, or one that it calls, is changed. Lives in p->a.
typedef struct grad_memo grad_memo;
grad_memo *grad_memo_new(prog *p);
bool pass_grad_shared(grad_memo *m, func f, const grad_opts *o, grad_pair *out);

// ---- loss and optimizer (train.c) ------------------------------------------------------------------------
typedef enum { OPTIM_SGD, OPTIM_MOMENTUM, OPTIM_ADAM, OPTIM_ADAMW, OPTIM_ADAFACTOR } optimizer;
typedef struct {
  optimizer kind;
  bool master; // weights narrower than f32 have a copy in f32, which is updated; they are what it rounds to
  double lr, momentum, beta1, beta2, eps, weight_decay;
} optim_opts;
optim_opts optim_default(optimizer k); // with masters
const char *optim_wrong(const optim_opts *o,
                        arena *a); // what figure is outside its range, in words; NULL: none is
const char *optim_name(optimizer k);
bool optim_find(const char *name, optimizer *out);
// Makes main return a scalar loss first: kept if main's first result is already a scalar; logits [..,classes]
// get a label input and cross_entropy; anything else mean squares against a target input. Returns false and a
// diagnostic if main has no float result. Logits: two dimensions or more, and not the extents of an input; a
// softmax that ends the model is left to the cross entropy.
bool pass_loss(prog *p);
// State k of a weight: statistics, then the master where it has one. All f32, or f64 of a weight in f64.
// False: the weight has no state k.
enum { OPTIM_STATES = 3, OPTIM_WHOLE = DIMS_MAX }; // states at most
typedef struct {
  const char *suffix; // ".m", ".v", ".r", ".c", ".master": what a weight's name gets
  shape s;
  u32 without; // the dimension of the weight that it lacks (a mean over it); OPTIM_WHOLE: none
} optim_state;
bool optim_state_find(const optim_opts *o, const shape *weight, u32 k, optim_state *out);
bool optim_has_master(const optim_opts *o, dtype weight);
// Emits one update: w and states in, new w and states out (results[0] = w', then states; OPTIM_STATES of
// them, 0 where there is none). b->flags gets INSTR_UPDATE.
void optim_emit(builder *b, const optim_opts *o, value w, value g, const value *state, value *results);
// The single-device training program: main(inputs, labels, weights, states) -> (loss, [gradients,] weights',
// states'). Trained are floating-point parameters with ROLE_WEIGHT, in order; a weight's states follow each
// other. The reference that plans are verified against and what `heddle import --train` prints. Weights and
// states are donated.
bool pass_train(prog *p, const optim_opts *o, bool return_gradients);
#endif
