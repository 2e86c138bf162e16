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
  const char *name; // "wte.weight"
  eval_array x;
} eval_named;

typedef struct {
  bool as_f64; // every floating-point value is computed and stored in f64; otherwise in the program's types
  const char *title; // of the progress bar; NULL: "evaluating"
  int threads;       // of one instruction; 0: one. Results do not depend on it
  i64 step;          // number of the optimizer's first update in main, from 1; 0: what the program says
  // Of one rank: collectives go around a ring in chunks of so many bytes; 0: from each to each; EVAL_RING_AUTO: around a ring in
  // chunks of EVAL_RING_BYTES where more than two take part, as a cluster's libraries do and the cost model says. Two move the
  // same either way. EVAL_RING_LIBRARY: all-reduces by the link's own where it can, else as EVAL_RING_AUTO.
  i64 ring_bytes;
} eval_opts;
enum { EVAL_RING_AUTO = -1, EVAL_RING_LIBRARY = -2, EVAL_RING_BYTES = 256000 };

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
// model: the uses of the model that a distributed program was made from, which shows them plainest; NULL: p's own.
typedef struct eval_uses eval_uses;
const eval_uses *eval_uses_of(const prog *p, arena *a);
i64 eval_index_bound(const eval_uses *u, u32 k); // elements of parameter k must be below; 0: not known
bool eval_index_ignored(const eval_uses *u, u32 k,
                        i64 v); // may they be v all the same: a label that does not count?
bool eval_random_as(const prog *p, const eval_uses *model, u64 seed, eval_array *in, u32 nin, arena *a);
// As eval_random_as, and states are zero, but for masters: what training begins with. No page of them is touched.
bool eval_initial(const prog *p, const eval_uses *model, u64 seed, eval_array *in, u32 nin, arena *a);
// As eval_random, for telling programs apart by their results: weights and running statistics whose elements
// are given and all equal are random too. Equal weights make all equal that they are multiplied with, and one
// variance in every layer makes deep networks saturate.
bool eval_telling(const prog *p, u64 seed, eval_array *in, u32 nin, arena *a);
// Elements of parameter k, from 0, are indices below this; 0: they are none.
i64 eval_bound(const prog *p, u32 k);
// The same of an operand of one instruction, as that one says.
i64 eval_operand_bound(const prog *p, const func_info *f, const instr *i, u32 opd);
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
typedef struct eval_link eval_link;
struct eval_link {
  u32 rank; // this process
  void *arg;
  // Returns at once; the data is the caller's again. False: the other end is gone.
  bool (*send)(void *arg, u32 to, const void *data, i64 bytes);
  bool (*receive)(void *arg, u32 from, void *data, i64 bytes); // exactly so many bytes; waits for them
  // heddle_link's; NULL: there is none
  bool (*all_reduce)(void *arg, const u32 *ranks, u32 n, void *data, i64 count, int bytes, bool largest);
  // Connections of their own between the same ranks, which another thread may use meanwhile: what the program puts on
  // streams beside its first goes there, and computation goes on. NULL: there are none.
  const eval_link *beside;
};
typedef struct eval_rank eval_rank;
// Where a rank is, for other threads to read at any time.
typedef struct {
  _Atomic u64 at;    // function << 32 | instruction + 1; 0: in none
  _Atomic u32 top;   // of main, in which that is: instruction + 1
  _Atomic u64 count; // goes up with every instruction and message
  _Atomic u32 waits; // for a message of this rank + 1; 0: it waits for none
  _Atomic u32 sends; // to this rank + 1, just now
} eval_where;
const eval_where *eval_rank_where(const eval_rank *r);
// "matmul", "all_reduce over dp" of an instruction of such a number; *where gets the user's own node. NULL: it is none.
const char *eval_where_text(const prog *p, u64 at, u32 top, arena *a, loc *where);
// in: whole arrays for main's parameters, as eval_run takes them; pieces are copied. NULL and diagnostics.
eval_rank *eval_rank_new(const prog *p, const eval_opts *o, const eval_link *link, const eval_array *in,
                         u32 nin);
// The same, and what has been copied is zero afterwards, but for elements that p itself carries: the memory is given back
// on the way. Elements are in malloc's memory.
eval_rank *eval_rank_take(const prog *p, const eval_opts *o, const eval_link *link, eval_array *in, u32 nin);
void eval_rank_free(eval_rank *r);
// By parameter of main: its result of a step, from 1, which eval_rank_step takes; 0: it stays. "wte.new" is what "wte"
// will be. next has room for all.
void eval_rank_next(const prog *p, u32 *next);
u32 eval_updates(const prog *p); // of every weight in a step of main
// done is told of every instruction, once it has ended and what dies with it is gone; of a call after those within. g:
// where it ran, on this rank or on others.
void eval_rank_watch(eval_rank *r, void (*done)(void *arg, const func_info *f, const instr *i, group g),
                     void *arg);
// Runs main once. next[k]: the result, from 1, that parameter k is from the next step on, which must have its type;
// 0: it stays. False and diagnostics; E_PEER where another rank is gone.
bool eval_rank_step(eval_rank *r, const u32 *next);
// What a step of the rank holds, known without running one. Pieces that end within it lie in one block, packed.
typedef struct {
  i64 peak_bytes;                         // of all pieces alive at once, parameters among them
  i64 device_peak_bytes, host_peak_bytes; // of those that the program has there
  i64 parameter_bytes;                    // of main's parameters when it begins
  i64 block_bytes;                        // of the block; it takes block_least_bytes at least
  i64 block_least_bytes;                  // alive in it at once, each rounded up to its alignment
  i64 outliving_bytes; // of what it makes and leaves, but for parameters that are updated in place
  i64 place_bytes;     // of the block, and of all others that are alive at once
} eval_memory;
bool eval_rank_memory(eval_rank *r, const u32 *next, eval_memory *out); // next: of the steps to come
// Parameter k from now on: a whole array, of which this rank takes its pieces. False and a diagnostic.
bool eval_rank_set(eval_rank *r, u32 k, const eval_array *x);
// row[i] = 1 where this rank holds elements of parameter k with index i in its first dimension; the others stay.
bool eval_rank_rows(eval_rank *r, u32 k, u8 *row);
u32 eval_rank_self(const eval_rank *r);        // its number
void eval_rank_number(eval_rank *r, i64 step); // eval_opts.step of the next step
void eval_hint_memory(ctx *c);                 // of an E_HOST_MEMORY: what needs less
// Runs a job of this rank. Where memory runs out in it: false and E_HOST_MEMORY, and the rank has nothing left.
bool eval_rank_guard(eval_rank *r, bool (*job)(void *arg), void *arg, const char *doing);
// Result k of the latest step as a whole array on rank 0; on others data is NULL. Every rank asks for the same.
bool eval_rank_result(eval_rank *r, u32 k, eval_array *out, arena *a);
// Parameter k likewise, as it is now.
bool eval_rank_parameter(eval_rank *r, u32 k, eval_array *out, arena *a);

// From the next step on, as eval_opts.ring_bytes; the same on all ranks.
void eval_rank_ring(eval_rank *r, i64 chunk_bytes);
// What the rank executes is recorded from now on: every instruction that it has a part in, with its times. most: events
// that are kept, 64 bytes each; a step for which there is no room is left out, as are all after it. nranks: of the job.
void eval_rank_record(eval_rank *r, u32 nranks, u64 most);
typedef struct {
  u64 events, most;
  u32 steps, left_out;
} eval_recorded;
typedef struct {
  u64 taken; // steps until now, by which they are numbered: the first one is 1
  const char *model, *plan, *machine, *digest, *run; // as in trace_ran; NULL: not said
} eval_job;
// What has been recorded, as a timeline (trace/trace.h): a process, whose number is the rank's, with a lane for every stream of the
// program and a thread for the steps. Good as long as r, and until the next step. In a. NULL: it was not asked for.
struct trace_source *eval_rank_recorded(const eval_rank *r, arena *a, const eval_job *of,
                                        eval_recorded *about);

// ---- numpy's files (npy.c) -----------------------------------------------------------------------------
// C order, any byte order, elements in `a`; bf16 is written as f32, for numpy has none.
bool npy_read(ctx *c, arena *a, const char *path, eval_array *out);
// The same without a copy where that can be: *f must stay mapped as long as the elements are used.
bool npy_map(ctx *c, arena *a, const char *path, file_view *f, eval_array *out);
bool npy_write(ctx *c, const char *path, const eval_array *x);
bool npz_read(ctx *c, arena *a, const char *path, eval_named **items, u32 *n);
bool npz_write(ctx *c, const char *path, const eval_named *items,
               u32 n); // stored, not compressed; below 4 GiB

// ---- training data (dataset.c) ----------------------------------------------------------------------------
// Samples for main's inputs and labels, mapped from files: NAME.npy of a folder, [samples, ...]; or tokens one after
// the other (a .npy of one dimension; .u16 and the like), cut into sequences. Labels that have no file are the next
// tokens. Samples are numbered without end: behind the last one the next epoch begins, shuffled anew.
typedef struct {
  dtype raw; // of a file of tokens whose name does not tell; DT_NONE: none
  bool shuffle;
  u64 seed;
  const eval_uses *uses; // of the model; NULL: the program's own
  bool vocab;            // its vocabulary can be said: --vocab
} dataset_opts;
typedef struct dataset dataset;
dataset *dataset_open(const prog *p, arena *a, const char *path,
                      const dataset_opts *o); // NULL and diagnostics
void dataset_close(dataset *d);
i64 dataset_samples(const dataset *d); // of an epoch
i64 dataset_batch(const dataset *d);   // of a step
const char *dataset_about(const dataset *d, arena *a);
bool dataset_has(const dataset *d, u32 k); // parameter k of main
// Samples first, first + 1, .. as parameter k, of which only rows marked in `row` are written (NULL: all). False and a
// diagnostic where an element is outside what the model can look up.
bool dataset_read(const dataset *d, u32 k, i64 first, const u8 *row, void *to);

// ---- safetensors (safetensors.c) ------------------------------------------------------------------------
// Length of the header in 8 bytes, the header (JSON), elements. Files that Heddle writes have checksums too, among
// the notes (the header's "__metadata__"): zlib's crc32 of the header and of every tensor, in hexadecimal.
typedef struct {
  const char *key, *value;
} safetensors_note;
typedef struct {
  file_view f;
  bool checked; // it has checksums
  u32 n, nnotes;
  eval_named *item; // in the order of their elements, which are the file's own where they lie aligned
  safetensors_note *note;
} safetensors;
// Arrays live in `a` and as long as the file is open. A file that is cut off, or whose checksums are not those of its
// bytes, is refused. False and a diagnostic.
bool safetensors_open(ctx *c, arena *a, const char *path, safetensors *out);
void safetensors_close(safetensors *s);
const char *safetensors_find(const safetensors *s, const char *key); // a note; NULL: it has none of that name
// Tensors one after the other: the file appears when all are there and on the disk, or not at all. shape.t: the type.
typedef struct {
  const char *name;
  shape s;
} safetensors_entry;
typedef struct safetensors_out safetensors_out;
safetensors_out *safetensors_begin(ctx *c, arena *a, const char *path, const safetensors_entry *e, u32 n,
                                   const safetensors_note *note, u32 nnotes); // NULL and a diagnostic
void safetensors_put(safetensors_out *o, const void *data);                   // the next tensor's elements
bool safetensors_end(safetensors_out *o);
void safetensors_drop(safetensors_out *o); // instead of safetensors_end: nothing appears
bool safetensors_write(ctx *c, const char *path, const eval_named *item, u32 n);

// ---- arrays by name (named.c) ------------------------------------------------------------------------------
// A .safetensors or .npz file, or a folder: its NAME.npy ('/' as %2F, '%' as %25), else its .safetensors files.
typedef struct {
  ctx *c;
  arena *a;
  const char *path;
  bool states;
  u32 n, nfiles;
  eval_named *item;   // x.data NULL: not yet read
  const char **where; // its file, by item
  safetensors *file;  // that are open
} named_arrays;
typedef struct { // what is looked for, by name
  const char *name;
  bool wanted;   // its absence is an error; other names are only known
  eval_array *x; // shape given; elements are put here, converted to its type
} named_target;
#define CHECKPOINT_WEIGHTS "heddle.weights" // note of a checkpoint: so many tensors, the first, are weights
// states: those of a checkpoint too, not its weights alone. False and a diagnostic.
bool named_open(ctx *c, arena *a, const char *path, bool states, named_arrays *out);
// Every wanted target from the array of its name. False and diagnostics, with the nearest names: one is absent, has
// other extents, or an array has a name that no target has.
bool named_take(named_arrays *s, const named_target *t, u32 n);
void named_close(named_arrays *s);
const char *npy_path(arena *a, const char *folder, const char *name); // of an array in a folder
#endif
