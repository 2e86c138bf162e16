// eval.h - the numbers interpreter: runs a program on all its ranks in one process and yields its results.
// Layer 5.
//
// Idea: a value is one array per member of its group, the piece that its layout gives that member.
// Computation runs a reference kernel on every member's pieces; communication moves exactly what its
// collective moves, between the members it names. So the answer of a distributed program is right only if its
// layouts, communications and order are, which is what verification asks.
#ifndef HEDDLE_EVAL_H
#define HEDDLE_EVAL_H
#include "ir/ir.h"

typedef struct {
  shape s;
  void *data;
} eval_array; // a whole tensor, last dimension fastest

typedef struct {
  bool as_f64; // every floating-point value is computed and stored in f64; otherwise in the program's types
  const char *title; // of the progress bar; NULL: "evaluating"
  int threads;       // of large products; 0: one. Results do not depend on it
} eval_opts;

// Runs main. in: one array per parameter of main, in order; extents must be the parameter's, the element type
// any of the same kind (it is converted). out: one per result of main, elements in `a`; nout must be their
// number. Ranks that hold the same element of an output must agree (to 4096 units in the last place, else
// E_DIFFERS); partial outputs are reduced. Inputs are not changed, donated or not. False and a diagnostic on
// failure, `out` is then undefined.
bool eval_run(const prog *p, const eval_opts *o, const eval_array *in, u32 nin, eval_array *out, u32 nout,
              arena *a);

double eval_executions(const prog *p); // of instructions, calls expanded, on all ranks of main's groups

// Inputs for main, from a seed and the parameter's number alone: constant elements where the program has
// them, else normally distributed weights (1/sqrt(fan); gains around 1), states that an optimizer could have,
// integers within the bounds that their uses demand (rows of a table, classes), positive numbers under roots
// and logarithms, probabilities where p and 1 - p are taken logarithms of. Elements in `a`.
bool eval_random(const prog *p, u64 seed, eval_array *in, u32 nin, arena *a);
// As eval_random, for telling programs apart by their results: weights and running statistics whose elements
// are given and all equal are random too. Equal weights make all equal that they are multiplied with, and one
// variance in every layer makes deep networks saturate.
bool eval_telling(const prog *p, u64 seed, eval_array *in, u32 nin, arena *a);
// States called NAME.master become the input NAME; eval_random has done so already.
void eval_masters(const prog *p, eval_array *in);

shape eval_param_shape(const prog *p, u32 k); // of parameter k of main, from 0
shape eval_result_shape(const prog *p, u32 k);

double eval_element(const eval_array *x, i64 k); // as a double; of any type
// The largest difference of two arrays of one shape: max |x-y| / max(|x|, |y|, floor), where floor is 1e-3
// times the root mean square of y, so that elements that are nothing but rounding do not decide. *where (may
// be NULL) gets the element. Infinite where exactly one is not finite.
double eval_difference(const eval_array *x, const eval_array *y, i64 *where);

// ---- one rank of it (rank.c) -----------------------------------------------------------------------------
// A program whose ranks run in processes of their own, each with its pieces alone. What joins them is the caller's:
// messages between two ranks arrive in the order in which they were sent.
typedef struct {
  u32 rank; // this process
  void *arg;
  // Returns at once; the data is the caller's again. False: the other end is gone.
  bool (*send)(void *arg, u32 to, const void *data, i64 bytes);
  bool (*receive)(void *arg, u32 from, void *data, i64 bytes); // exactly so many bytes; waits for them
} eval_link;
typedef struct eval_rank eval_rank;
// in: whole arrays for main's parameters, as eval_run takes them; pieces are copied. NULL and diagnostics.
eval_rank *eval_rank_new(const prog *p, const eval_opts *o, const eval_link *link, const eval_array *in,
                         u32 nin);
void eval_rank_free(eval_rank *r);
// Runs main once. next[k]: the result, from 1, that parameter k is from the next step on, which must have its type;
// 0: it stays. False and diagnostics; E_PEER where another rank is gone.
bool eval_rank_step(eval_rank *r, const u32 *next);
// Result k of the latest step as a whole array on rank 0; on others data is NULL. Every rank asks for the same.
bool eval_rank_result(eval_rank *r, u32 k, eval_array *out, arena *a);
// Parameter k likewise, as it is now.
bool eval_rank_parameter(eval_rank *r, u32 k, eval_array *out, arena *a);

// What the rank executes is recorded from now on: every instruction that it has a part in, with its times. most: events
// that are kept, 64 bytes each; a step for which there is no room is left out, as are all after it. nranks: of the job.
void eval_rank_record(eval_rank *r, u32 nranks, u64 most);
typedef struct {
  u64 events, most;
  u32 steps, left_out;
} eval_recorded;
// What has been recorded, as a timeline (trace/trace.h): a process, whose number is the rank's, with a lane for every stream of the
// program and a thread for the steps. Good as long as r, and until the next step. In a. NULL: it was not asked for.
struct trace_source *eval_rank_recorded(const eval_rank *r, arena *a, eval_recorded *about);

// ---- numpy's files (npy.c) -----------------------------------------------------------------------------
// C order, any byte order, elements in `a`; bf16 is written as f32, for numpy has none.
bool npy_read(ctx *c, arena *a, const char *path, eval_array *out);
bool npy_write(ctx *c, const char *path, const eval_array *x);
typedef struct {
  const char *name; // "wte.weight"
  eval_array x;
} npz_item;
bool npz_read(ctx *c, arena *a, const char *path, npz_item **items, u32 *n);
bool npz_write(ctx *c, const char *path, const npz_item *items, u32 n); // stored, not compressed; below 4 GiB
#endif
