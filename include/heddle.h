// heddle.h - the C interface of Heddle: plans, simulates and verifies distributed training and inference.
//
// The work of a session, in the order in which handles are made of one another:
//
//   heddle_session *s = heddle_session_new();
//   heddle_load_options o = {.batch = 256, .loss = true};
//   heddle_program *p = heddle_program_load(s, "gpt3-xl", &o);
//   heddle_machine *m = heddle_machine_load(s, "dgx-2");
//   heddle_search  *f = heddle_search_run(p, m, &(heddle_search_options){.train = true});
//   heddle_plan    *b = heddle_search_plan(f, 0);                    // the best
//   heddle_program *d = heddle_plan_apply(b);                        // the distributed program
//   heddle_result  *r = heddle_result_run(d, m, NULL);               // its time and memory
//   heddle_check   *c = heddle_check_run(b, NULL);                   // its numbers against the model's
//   fputs(heddle_result_report(r, HEDDLE_TEXT), stdout);
//   heddle_session_free(s);
//
// Errors. A function that fails returns NULL (or false) and the session has diagnostics: what was wrong,
// where, both numbers, and what to do about it. Nothing is printed and nothing ends the process. A NULL
// handle given to a function makes it return NULL at once, so a chain as above may be checked once, at its end.
//
// Memory. Everything made in a session is freed with it; handles may be freed earlier, in any order: what a
// handle was made of may go before it. A string belongs to the handle that the function takes, and lives
// as long. When memory runs out the call fails, and the session is good for nothing but heddle_session_messages and heddle_session_free.
//
// Threads. A session and all that was made in it belong to one thread at a time; different sessions are
// independent. heddle_search_run uses threads of its own and returns when they have ended.
//
// Options. Every structure of options is zero where nothing is asked for: write (heddle_..._options){...}
// with the fields that matter, or pass NULL for none.
//
// Units. Bytes; picoseconds (integers: the same input gives the same bytes on every machine); floating-point
// operations. Decimal prefixes: a GB is 10^9 bytes.
#ifndef HEDDLE_H
#define HEDDLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_VERSION_MAJOR 0
#define HEDDLE_VERSION_MINOR 1
#define HEDDLE_VERSION_PATCH 0

typedef struct heddle_session heddle_session;
typedef struct heddle_program heddle_program;
typedef struct heddle_machine heddle_machine;
typedef struct heddle_plan heddle_plan;
typedef struct heddle_schedule heddle_schedule;
typedef struct heddle_search heddle_search;
typedef struct heddle_result heddle_result;
typedef struct heddle_check heddle_check;
typedef struct heddle_tensors heddle_tensors;

// How a report is rendered: aligned columns in human units, or one JSON object whose keys docs/json.md lists.
typedef enum { HEDDLE_TEXT, HEDDLE_JSON } heddle_format;

const char *heddle_version(void); // "0.1.0", of the library; the macros above are of this header

// ---- sessions and diagnostics ---------------------------------------------------------------------------
heddle_session *heddle_session_new(void); // NULL: out of memory
void heddle_session_free(heddle_session *s);
// All diagnostics so far, with source lines and carets, in the form that compilers use, each once; "" if there are none.
// Valid until the next call with this session.
const char *heddle_session_messages(heddle_session *s);
uint32_t heddle_session_errors(const heddle_session *s); // how many of them are errors, not warnings
void heddle_session_clear(heddle_session *s);            // forgets them
typedef struct {
  const char *code; // "E0301": heddle_docs_diagnostic has its explanation
  const char *message, *file, *node;
  uint32_t line, column; // from 1; 0: unknown
  bool error;
} heddle_diagnostic;
// Diagnostic number `index` from 0; false past the end. Absent strings are "".
bool heddle_session_diagnostic(heddle_session *s, uint32_t index, heddle_diagnostic *out);
// "28 GB", "80GiB": bytes; false and a diagnostic that names `what` if it is none.
bool heddle_session_bytes(heddle_session *s, const char *what, const char *text, int64_t *bytes);
// Writes a file as Heddle writes all of its files: it appears whole or not at all. "-": standard output.
bool heddle_session_write(heddle_session *s, const char *path, const char *text);
// Could a file be written there, or into a folder? Folders that are missing are made, and a file is not left. False and a diagnostic.
bool heddle_session_can_write(heddle_session *s, const char *path, bool folder);

// ---- programs: models, training steps, distributed programs ---------------------------------------------
typedef struct {
  const char *name;
  int64_t extent;
} heddle_dim;
typedef struct {
  const char *name;
  const char
      *value; // "1,2,3" in the input's shape and type, "0" for all elements, or the path of a .npy file
} heddle_fix;
typedef struct {
  int64_t
      batch; // of a built-in model, 0: its own; of an ONNX model, where that is plainly what it leaves open
  int64_t seq, vocab;     // of built-in models; 0: the model's own. seq: tokens, or pixels of an image's side
  const char *dtype;      // of built-in models: "f16", "bf16", "f32"; NULL: f32
  bool headless;          // built-in language models: without the projection to the vocabulary
  bool loss;              // end in a scalar loss, as training needs it
  uint32_t ndims;         // extents of the symbolic dimensions of an ONNX model; "INPUT:2" is the third
  const heddle_dim *dims; // ... extent of an input
  uint32_t nfix;          // inputs of an ONNX model that are constants
  const heddle_fix *fix;
} heddle_load_options;
// An .onnx file, a .heddle file, or a built-in model: "gpt3-175b", "llama2-7b:layers=2,hidden=256".
heddle_program *heddle_program_load(heddle_session *s, const char *model, const heddle_load_options *o);
// Program text (docs/language.md). `name` is what diagnostics call it.
heddle_program *heddle_program_parse(heddle_session *s, const char *name, const char *text, size_t n);
void heddle_program_free(heddle_program *p);
const char *heddle_program_print(heddle_program *p); // as text that reads back the same
const char *heddle_program_report(heddle_program *p, heddle_format f);
uint32_t heddle_program_ranks(const heddle_program *p); // 0: a single-device program without a mesh

typedef struct {
  const char *name; // "sgd", "momentum", "adam", "adamw", "adafactor"; NULL: sgd
  double lr, momentum, beta1, beta2, eps, weight_decay;
  bool no_master_weights; // weights in f16 and bf16 are updated as they are, not through a copy in f32
  bool figures;           // the figures are meant, be they all 0; else all 0 are the optimizer's defaults
} heddle_optimizer;
// The defaults of an optimizer, to be changed, with `figures`; false and a diagnostic if there is none of that name.
bool heddle_optimizer_find(heddle_session *s, const char *name, heddle_optimizer *out);
bool heddle_program_annotated(
    const heddle_program *p); // has it annotations of its own (docs/annotations.md)?
// One training step on a single device: loss, gradients, update. The gradients are results too if asked for.
heddle_program *heddle_program_train(heddle_program *p, const heddle_optimizer *o, bool gradients);
// Is every element there where it is needed, every sum complete, every rank in the same order of collectives,
// and nobody waiting for each other for ever? Programs from heddle_plan_apply and from files alike.
bool heddle_program_validate(heddle_program *p);
// What one rank of a distributed program runs, as a program: pieces instead of tensors, peers instead of groups.
const char *heddle_program_lower(heddle_program *p, uint32_t rank, heddle_format f);

// A distributed program as a program of another framework, to run on GPUs (docs/export.md): format "pytorch", whose
// first lines say what machine it is for, or nothing where that is NULL; or "profile-pytorch", which measures the events that it
// has on this machine. NULL and diagnostics at what the framework cannot say.
const char *heddle_program_export(heddle_program *p, const char *format, heddle_machine *machine);
// What was exported, as JSON (docs/json.md). output, arrays: the file and the folder that were written; output NULL: the text of the
// program is in it.
const char *heddle_program_exported(heddle_program *p, const char *format, heddle_machine *machine,
                                    const char *output, const char *arrays);
typedef struct {
  const char *name, *about;
} heddle_export_format;
bool heddle_export_format_get(uint32_t index, heddle_export_format *out); // from 0; false past the end

// ---- programs, built ------------------------------------------------------------------------------------
// A model instruction by instruction, with annotations around them as in program text (docs/language.md,
// docs/annotations.md):
//
//   heddle_builder *b = heddle_builder_new(s, "classifier");
//   heddle_value x = heddle_builder_parameter(b, "input", "x", "f32[256,2048]");
//   heddle_builder_replicate(b, HEDDLE_ALL, "features");
//   heddle_value w = heddle_builder_parameter(b, "weight", "w", "f32[2048,2048]");
//   heddle_value h = heddle_builder_op(b, "matmul", NULL, 2, (heddle_value[]){x, w});
//   heddle_builder_end(b);
//   heddle_program *p = heddle_builder_program(b, 1, &h);
//
// After a call that fails all others do nothing and return 0, false or NULL, so checking the last one is enough.
typedef struct heddle_builder heddle_builder;
typedef uint32_t heddle_value; // of a builder; 0: none
#define HEDDLE_ALL UINT32_MAX  // all devices
heddle_builder *heddle_builder_new(heddle_session *s,
                                   const char *name); // name: what diagnostics call the model
void heddle_builder_free(heddle_builder *b);
// A parameter of the function that is open, or of the model: role "input" (also NULL), "weight", "state", "label" or
// "const"; type as
// program text has it. At any time; parameters keep the order of these calls.
heddle_value heddle_builder_parameter(heddle_builder *b, const char *role, const char *name,
                                      const char *type);
// Applies an operator (`heddle ops`). attributes: "axes=[1], keepdims=0", or NULL. The first result; further
// ones are heddle_builder_result(b, it, 1) and so on.
heddle_value heddle_builder_op(heddle_builder *b, const char *op, const char *attributes, uint32_t n,
                               const heddle_value *operands);
heddle_value heddle_builder_result(heddle_builder *b, heddle_value v, uint32_t index);
bool heddle_builder_name(heddle_builder *b, heddle_value v, const char *name); // of a result or a parameter
// A repeated block: what is built until heddle_builder_return goes into a function, which may then be called as
// often as the model has the block. Inside a function no other one, and no scope that began outside.
bool heddle_builder_function(heddle_builder *b, const char *name);
bool heddle_builder_return(heddle_builder *b, uint32_t n, const heddle_value *results);
heddle_value heddle_builder_call(heddle_builder *b, const char *function, uint32_t n,
                                 const heddle_value *operands);
// Scopes: what is built until heddle_builder_end is replicated, or split, over so many devices (1 to 65535; HEDDLE_ALL;
// 0: not said). name: what reports call it; NULL: its number. Scopes of one name, kind and size are one task graph. A split may be inside a replicate.
bool heddle_builder_replicate(heddle_builder *b, uint32_t devices, const char *name);
bool heddle_builder_split(heddle_builder *b, uint32_t devices, const char *name);
bool heddle_builder_end(heddle_builder *b);
// What the devices of the scope that is open get, or where none is open replicas of the model, in parts of their
// sum, which are copied. n 0: equal shares. Where this is not said shares are found (docs/annotations.md).
bool heddle_builder_shares(heddle_builder *b, uint32_t n, const uint32_t *parts);
bool heddle_builder_default(heddle_builder *b, uint32_t devices); // what stands in no scope: replicated
// "num_micro_batch", "8"; what it says is looked at when a plan is made.
bool heddle_builder_setting(heddle_builder *b, const char *key, const char *value);
// The model, which returns these values. The builder is then of no more use.
heddle_program *heddle_builder_program(heddle_builder *b, uint32_t n, const heddle_value *results);

// ---- numbers --------------------------------------------------------------------------------------------
typedef struct {
  const char *name, *dtype; // dtype: "f32", "i64", ...
  uint32_t ndims;
  const int64_t *dims;
  const void *data; // last dimension fastest
} heddle_tensor;
uint32_t heddle_tensors_count(const heddle_tensors *t);
bool heddle_tensors_get(const heddle_tensors *t, uint32_t index, heddle_tensor *out);
void heddle_tensors_free(heddle_tensors *t);
// Inputs for a program: random ones that are the same for the same seed; NAME.npy files of a folder, or a file .safetensors or .npz.
heddle_tensors *heddle_tensors_random(heddle_program *p, uint64_t seed);
heddle_tensors *heddle_tensors_read(heddle_program *p, const char *path);
// NAME.npy each in a folder ('/' is %2F, '%' is %25), or one file whose name ends in .safetensors.
bool heddle_tensors_write(heddle_tensors *t, const char *path);
// As training begins: random weights and inputs, states of the optimizer at zero.
heddle_tensors *heddle_tensors_initial(heddle_program *p, uint64_t seed);
// Weights by their names, from what heddle_tensors_read reads, in place of those of t, which are p's. Each must be there, and
// no name that p does not have; the states of a checkpoint are left. False and diagnostics.
bool heddle_tensors_weights(heddle_tensors *t, heddle_program *p, const char *path);
const char *heddle_tensors_report(heddle_tensors *t, heddle_format f);
// The results of a program, distributed or not, all ranks in this process. wide: every floating-point value in float64 instead of its own type.
heddle_tensors *heddle_tensors_eval(heddle_program *p, const heddle_tensors *in, bool wide);

// ---- machines -------------------------------------------------------------------------------------------
// A preset, a machine file, or one line: "dgx-h100*4", "my.yaml", "2x8 h100 ib=8x400Gb/s" (docs/machines.md).
heddle_machine *heddle_machine_load(heddle_session *s, const char *spec);
heddle_machine *heddle_machine_parse(heddle_session *s, const char *text); // of a machine file
void heddle_machine_free(heddle_machine *m);
// Times that were measured, in place of the cost model's (docs/profiles.md): of events, a database that
// heddle_profile_run has made; or of layers, a CSV file, for every program that a plan makes on the machine. False and
// diagnostics if it is malformed or damaged, or has nothing of the machine, or of a kind of device of it.
bool heddle_machine_profiles(heddle_machine *m, const char *path);
// A command that is asked what events take: it gets one a line and answers each with a line, microseconds, or "-"
// (docs/profiles.md). What was measured comes first. It runs until the machine is freed.
bool heddle_machine_predictor(heddle_machine *m, const char *command);
const char *heddle_machine_print(heddle_machine *m); // as a file that reads back the same
const char *heddle_machine_report(heddle_machine *m, heddle_format f);
const char *heddle_machine_written(heddle_machine *m,
                                   const char *output); // the report as JSON, with the file it was written to
uint32_t heddle_machine_ranks(const heddle_machine *m);
// How many cores of a processor the device of a rank is, and so how many threads the rank computes with (heddle_link); 0: the
// machine file does not say, or has no such rank.
uint32_t heddle_machine_cores(const heddle_machine *m, uint32_t rank);

// ---- plans ----------------------------------------------------------------------------------------------
typedef struct {
  bool train; // with gradients and update. Where the first result is no scalar a loss is added: cross entropy
              // with `labels` where it looks like scores of classes, else the mean square against `target`
  heddle_optimizer optimizer;
  heddle_machine *machine; // what `auto` balances for (dp.shares, tp.shares, layers); NULL: `auto` is refused
  const char *costs;       // its cost model; NULL: "heddle"
  // Of annotations: how many; 0: those of the machine, or without one as many as they ask for. Of a strategy: as many as
  // it has, else it is refused; 0: any.
  uint32_t devices;
  const char
      *strategy; // of annotations: choices that they do not say, such as "zero=1 recompute=full"; NULL: none
} heddle_plan_options;
// The plan of a strategy, one line such as "dp=2 tp=4 pp=2 mb=32 zero=1" (docs/strategy.md); a schedule that it
// names as a .csv file is read. NULL if it does not divide.
heddle_plan *heddle_plan_make(heddle_program *p, const char *strategy, const heddle_plan_options *o);
// What a strategy can say: choice number `index` from 0; false past the end.
typedef struct {
  const char *name, *option; // "dp"; "data": its long option
  const char *argument;      // "N"; "": on where it stands without a value
  const char *about;
  bool searched; // by heddle_search_run where the strategy does not say it
} heddle_choice;
bool heddle_choice_get(uint32_t index, heddle_choice *out);
// A plan file (docs/plans.md). One that heddle_plan_print wrote says which program it is for, and is refused for any other (E0511).
heddle_plan *heddle_plan_read(heddle_program *p, const char *path);
heddle_plan *heddle_plan_parse(heddle_program *p, const char *name, const char *text, size_t n);
// The plan of annotations (docs/annotations.md): of the program's own, and of a text, which diagnostics call `name`,
// or a file. Without text (NULL) of the program's own.
heddle_plan *heddle_plan_annotated(heddle_program *p, const char *name, const char *text, size_t n,
                                   const heddle_plan_options *o);
heddle_plan *heddle_plan_annotated_read(heddle_program *p, const char *path, const heddle_plan_options *o);
// Is the plan in this file one of training, so that its program must be loaded with a loss?
bool heddle_plan_trains(heddle_session *s, const char *path, bool *train);
void heddle_plan_free(heddle_plan *b);
const char *heddle_plan_print(heddle_plan *b);
const char *heddle_plan_name(const heddle_plan *b); // "dp=2 tp=4 pp=2 mb=32"
// Communication between groups is chosen by the costs of this machine, in a cost model (NULL: "heddle"),
// when the plan is applied or verified; plans of a search are on theirs. Without a machine (NULL), by the
// amounts that move. False and a diagnostic if the plan uses ranks that the machine does not have.
bool heddle_plan_on(heddle_plan *b, heddle_machine *m, const char *costs);
heddle_program *heddle_plan_apply(heddle_plan *b); // the distributed program
// Programs made of the plan from here on know what its stages take, on the machine of heddle_plan_on, and reports of their
// results have it. As text it is the CSV that heddle_schedule_find reads, activations in MiB; NULL: they do not know.
void heddle_plan_time_stages(heddle_plan *b);
const char *heddle_program_stage_times(heddle_program *distributed);

// ---- plans, written by a program ---------------------------------------------------------------------------
// What a program walks: instructions of main (function NULL) or of a function that it calls, numbered from 1 as plan
// files have them. examples/plans.c writes two plans with this.
typedef struct {
  const char *op;       // "matmul"; a call of a function is "call"
  const char *calls;    // that function; NULL: it is no call
  const char *function; // in which it stands
  uint32_t number, noperands, nresults;
} heddle_operator;
typedef struct {
  const char *name; // of a parameter of the function: "wte"; "" if it has none
  const char
      *role; // of a parameter of main: "input", "weight", "state", "label" or "const"; NULL: it is none
  const char *dtype; // NULL: a tuple, which has no dimensions
  uint32_t made_by;  // the number of the operator whose result it is; 0: it is a parameter
  uint32_t ndims;
  int64_t dims[8];
} heddle_operand;
uint32_t heddle_program_operators(heddle_program *p, const char *function); // 0: no such function
// False past the end.
bool heddle_program_operator(heddle_program *p, const char *function, uint32_t number, heddle_operator *out);
bool heddle_program_operand(heddle_program *p, const char *function, uint32_t number, uint32_t index,
                            heddle_operand *out);
bool heddle_program_result(heddle_program *p, const char *function, uint32_t number, uint32_t index,
                           heddle_operand *out);

// A plan out of three primitives: what is split (trans), where it runs (assign), when it runs (order). Communication,
// gradients and updates follow. Every call adds what a line of a plan file says (docs/plans.md), and
// heddle_draft_plan reads them as one: what is wrong is told with its line, and called `name`. Only what needs the parts of
// the model, such as whether all tasks are there, is left to heddle_plan_apply. After a call that fails all others return
// false or NULL.
typedef struct heddle_draft heddle_draft;
heddle_draft *heddle_draft_new(heddle_program *p, const char *name, const heddle_plan_options *o);
void heddle_draft_free(heddle_draft *d);
bool heddle_draft_axis(heddle_draft *d, const char *axis, uint32_t size); // across devices
bool heddle_draft_time(heddle_draft *d, const char *axis, uint32_t size); // microbatches; at most one
// Ranks from `first`, row-major over the axes.
bool heddle_draft_mesh(heddle_draft *d, const char *mesh, uint32_t first, uint32_t naxes,
                       const char *const *axes);
// op-trans: dimension `dim` of an input of the model, of an operand or of a result is split over the axis, with all
// that has its index by the operator's law.
bool heddle_draft_trans_input(heddle_draft *d, const char *input, uint32_t dim, const char *axis);
bool heddle_draft_trans(heddle_draft *d, const heddle_operator *o, uint32_t operand, uint32_t dim,
                        const char *axis);
bool heddle_draft_trans_result(heddle_draft *d, const heddle_operator *o, uint32_t result, uint32_t dim,
                               const char *axis);
// op-assign: instructions `from` to `to` of main run where the mesh has coordinate `at` of the axis (NULL: on all of
// it). Segments, numbered from 0 in the order of these calls.
bool heddle_draft_assign(heddle_draft *d, uint32_t from, uint32_t to, const char *mesh, const char *axis,
                         uint32_t at);
// op-order: the next task of a place: forward 'F', backward 'B', or in two parts 'I' and 'W', of a segment for a
// microbatch. Places are numbered from 0 in the order in which segments first use them; a segment on several places
// has its tasks in the order of each.
bool heddle_draft_order(heddle_draft *d, uint32_t place, char kind, uint32_t segment, uint32_t microbatch);
// Any other key of a plan file: "send-stream", "pp"; "rest", "{states: [dp]}". Not "coshard" beside splits of operators: it rewrites the
// functions that the walk shows.
bool heddle_draft_set(heddle_draft *d, const char *key, const char *value);
heddle_plan *heddle_draft_plan(heddle_draft *d);

// ---- schedules ------------------------------------------------------------------------------------------
typedef struct {
  uint32_t places, chunks,
      microbatches; // pp, v and mb of a strategy; chunks 0: 1. Of a file: 0, or what it has
  uint32_t group;   // microbatches that pass a chunk before the next one runs; 0: places
  bool inference;   // forwards only
} heddle_schedule_options;
// A schedule of a pipeline by its name, such as "1f1b" or "zb-h1", or one that a .csv file has
// (docs/schedules.md). NULL if there is none of these figures, or if it deadlocks.
heddle_schedule *heddle_schedule_load(heddle_session *s, const char *name, const heddle_schedule_options *o);
bool heddle_schedule_named(const char *name); // is there one of this name? Files are not asked
void heddle_schedule_free(heddle_schedule *x);
const char *heddle_schedule_print(heddle_schedule *x); // as CSV
// Idle time and live activations of every place, where a forward takes one unit of time and a backward two;
// picture: as text, with the tasks of every place over time.
const char *heddle_schedule_report(heddle_schedule *x, bool picture, heddle_format f);

typedef struct {
  uint32_t microbatches; // 0: those of the file that `schedule` names
  const char *memory;    // that activations may take on a place, in the unit of the file; NULL: no limit
  uint32_t seconds;      // about how long to search, counted in steps: same figures, same schedule; 0: 5
  const char *
      schedule; // look for nothing: this one ("zb-1p"), made for these times if it is of that kind, or "mine.csv"; NULL: search
} heddle_find_options;
// Looks for the fastest schedule of stages whose times a CSV file has (docs/schedules.md). Its report has the named
// schedules beside it, and below which time no schedule can be. NULL and diagnostics at lines of the file.
heddle_schedule *heddle_schedule_find(heddle_session *s, const char *stages, const heddle_find_options *o);

// ---- time and memory ------------------------------------------------------------------------------------
typedef struct {
  bool timeline; // keep the events for heddle_result_timeline: of every rank; where that makes millions, of
                 // one rank of those that are alike, with a warning
  bool flat;     // every rank and every instruction one by one: the same result, slowly
  int64_t batch; // samples a step, for throughput; 0: extent of the first dimension of the first input
  const char *costs; // cost model: "heddle" or "distir"; NULL: heddle
} heddle_simulate_options;
heddle_result *heddle_result_run(heddle_program *distributed, heddle_machine *m,
                                 const heddle_simulate_options *o);
void heddle_result_free(heddle_result *r);
int64_t heddle_result_time_ps(const heddle_result *r); // of one step alone, to the end of its last rank
// Time per step when training steps follow each other without a barrier: a rank begins the next step when its
// own part of this one is done. Never above the time of a step alone; equal to it without an update of weights.
int64_t heddle_result_period_ps(const heddle_result *r);
int64_t heddle_result_peak_bytes(const heddle_result *r); // of the fullest rank
double heddle_result_utilisation(const heddle_result *r); // mean over ranks: time computing over time
// Does every rank stay within its device? Otherwise false, and a diagnostic that names its largest values.
bool heddle_result_fits(heddle_result *r);
const char *heddle_result_report(heddle_result *r, heddle_format f);
// Writes the events in Chrome's trace format, which ui.perfetto.dev opens. Needs options.timeline.
bool heddle_result_timeline(heddle_result *r, const char *path);

// ---- search ---------------------------------------------------------------------------------------------
typedef struct {
  const char *strategy; // what is fixed: "tp=1,2,4 zero=*"; what it does not say is searched. NULL: nothing
  uint32_t ranks;       // devices to use; 0: all of the machine
  bool powers_of_two;   // degrees and microbatches that are searched: powers of two only
  bool train;
  heddle_optimizer optimizer;
  int64_t batch;        // samples a step, for throughput; 0: the program's
  int64_t memory_bytes; // of every rank; 0: what the machine leaves usable; -1: no limit
  uint32_t top;         // how many of the best are asked for; 0: all
  int threads;          // 0: one for every core
  const char *costs;
  uint32_t part,
      parts; // evaluate this part of the space, from 1, of so many (heddle_search_part); 0: all of it
} heddle_search_options;
heddle_search *heddle_search_run(heddle_program *p, heddle_machine *m, const heddle_search_options *o);
void heddle_search_free(heddle_search *f);
uint32_t heddle_search_count(const heddle_search *f);              // plans that fit, best first
heddle_plan *heddle_search_plan(heddle_search *f, uint32_t index); // NULL past the end
// What the best n plans took, ps of a step each, 0 where one was not run: told in the report, beside what was predicted.
// *best: the index of the fastest. False and a diagnostic: none was run.
bool heddle_search_measured(heddle_search *f, uint32_t n, const int64_t *ps, uint32_t *best);
const char *heddle_search_report(heddle_search *f, heddle_format format);
// A search that is dealt out over machines (docs/parts.md): each evaluates a part, and the reports of all parts
// merged are those of the whole search. What a part found, as a file; NULL and a diagnostic if it cannot be made.
const char *heddle_search_part(heddle_search *f);
// All parts of one search, from their files, in any order. top: how many of the best are asked for, 0 as many as
// in the parts. It has no plans, only their strategies. NULL and diagnostics if they do not make a search, or
// if nothing fits.
heddle_search *heddle_search_merge(heddle_session *s, uint32_t n, const char *const *paths, uint32_t top);
// The report with the answers to questions about it, and what would help its best plan.
typedef struct {
  const char
      *why; // "tp=8 pp=8": why not the best plan with these choices? It is simulated and set beside the
            // winner. NULL: not asked
  bool
      what_if; // searched again with 25 % and 50 % more memory, with twice the devices, and without each kind
} heddle_search_questions;
// NULL and a diagnostic if `why` is no strategy with one value for each choice, or no plan here has it.
const char *heddle_search_answer(heddle_search *f, const heddle_search_questions *q, heddle_format format);
const char *heddle_search_why(heddle_search *f, const char *strategy,
                              heddle_format format); // of one question

// One split for every operator over the tensor axis, for the degrees that are fastest, beside the best hybrid
// (docs/auto.md). NULL and diagnostics: no plan fits, the rules are malformed, or what the options say does not go with it.
typedef struct {
  const char *rules; // a YAML file of constraints; NULL: none
  const char *
      method; // "exact", dynamic programming; "mcmc", Markov chains; "both", or NULL: these where that gave up states
  uint64_t proposals; // changes that chains try, for every function; 0: 100,000
  uint64_t seed;      // of chains: the same gives the same plan
} heddle_auto_options;
typedef struct heddle_auto heddle_auto;
heddle_auto *heddle_auto_run(heddle_program *p, heddle_machine *m, const heddle_search_options *o,
                             const heddle_auto_options *how); // NULL: all of them 0
void heddle_auto_free(heddle_auto *f);
heddle_plan *heddle_auto_plan(heddle_auto *f); // what it found: automatic, or the hybrid that is faster
const char *heddle_auto_report(heddle_auto *f, heddle_format format);

// ---- traces of real jobs --------------------------------------------------------------------------------
// A graph pass of yours, tried by the question `optimize` beside its own (examples/pass.c). Of one worker's step a pass
// sees the kernels in the order they run, and proposes changes one after the other; those that make the step shorter
// are kept. Indices of kernels stay.
typedef struct heddle_tuning heddle_tuning; // a step as it is now; lives as long as the call
typedef struct {
  const char *name;
  enum { HEDDLE_FORWARD, HEDDLE_BACKWARD, HEDDLE_UPDATE } phase;
  int64_t time_ps;        // before fusing
  int64_t gradient_bytes; // that are communicated once it has ended; 0: none
  bool critical;          // on the critical path when the pass began
  bool fused;             // with the kernel before
} heddle_kernel;
uint32_t heddle_tuning_kernels(const heddle_tuning *t);
bool heddle_tuning_kernel(const heddle_tuning *t, uint32_t k,
                          heddle_kernel *out);                         // false: there is no such kernel
bool heddle_tuning_set_time(heddle_tuning *t, uint32_t k, int64_t ps); // false: no such kernel, or below 0
// Of the gradients that the kernel makes together. False: it makes none, or below 0.
bool heddle_tuning_set_gradient(heddle_tuning *t, uint32_t k, int64_t bytes);
bool heddle_tuning_fuse(heddle_tuning *t, uint32_t k); // false: it cannot be fused with the kernel before
typedef struct {
  const char *name;
  bool (*propose)(void *arg, uint32_t number,
                  heddle_tuning *t); // false: there is no such proposal, nor later ones
  void *arg;
} heddle_pass;

// What can be asked of the traces of a job (docs/diagnosis.md).
typedef struct {
  const char *name, *operands; // "info", "PATH..."
  const char *options; // of heddle_trace_options that it takes, as the command line calls them, by commas
  const char *about, *example; // example: command lines, one a line
  const char *answers;         // what its help says of it, in lines
} heddle_question;
bool heddle_question_get(uint32_t index, heddle_question *out); // false past the end
typedef struct {
  const char *output; // file to write; NULL: none
  uint32_t top;       // rows of tables; 0: as the table has it
  const char *steps;  // of training, "3" or "3-5,8"; NULL: all
  uint32_t nset;      // changes, "rank 3 = median"
  const char *const *set;
  const char *to;       // format to convert to; NULL: not said
  int64_t memory_bytes; // of a device; 0: not said
  uint32_t npasses;     // of `optimize`
  const heddle_pass *passes;
  uint32_t ranks;           // that the job is to have; 0: not said
  heddle_machine *machine;  // whose model extrapolates; NULL: none
  const char *timeline;     // file for a timeline of measured and predicted; NULL: none
  heddle_result *predicted; // simulated with options.timeline: what questions with the option "plan" need
  const char *use_passes;   // of `optimize`: its own graph passes, "op_fusion,half"; NULL: the usual ones
} heddle_trace_options;
// The answer, from files and folders with one file for each rank. The string lives as long as the session. NULL and
// diagnostics if nothing can be made of the files.
const char *heddle_trace_ask(heddle_session *s, const char *question, uint32_t n, const char *const *paths,
                             const heddle_trace_options *o, heddle_format f);

// ---- running ----------------------------------------------------------------------------------------------
// One rank of a distributed program in this process, the others in processes (or threads) of their own. What joins them
// is the caller's: MPI, sockets. Messages between two ranks arrive in the order in which they were sent.
typedef struct heddle_link heddle_link;
struct heddle_link {
  uint32_t rank; // this one
  void *arg;
  // Returns at once; the data is the caller's again. False: the other end is gone.
  bool (*send)(void *arg, uint32_t to, const void *data, int64_t bytes);
  bool (*receive)(void *arg, uint32_t from, void *data, int64_t bytes); // waits for exactly so many bytes
  // The sum of `data` over n ranks, this one among them, in its place on each of them; largest: the maximum. bytes: of an
  // element, f32 or f64. All of them call it with the same list. NULL: the link has none. False: the other end is gone.
  bool (*all_reduce)(void *arg, const uint32_t *ranks, uint32_t n, void *data, int64_t count, int bytes,
                     bool largest);
  uint32_t
      threads; // that this rank computes with; 0: one for each core that the process may use. Results do not depend on it
  // Connections of their own between the same ranks, which another thread may use at the same time; good as long as these. Over
  // them goes what the program puts on other streams than its first, while this rank computes. NULL: there are none, and
  // this rank waits for it.
  const heddle_link *beside;
};
// What `heddle run` loads to join its ranks: a shared object with a function `heddle_transport_open` of this type.
// heddle-mpi.so is one. False: it could not, and `error` says why.
typedef struct {
  uint32_t ranks;
  heddle_link link;
  void (*close)(void *arg,
                bool failed); // waits for what is still under way; failed: ends the job on all ranks
  const char *about;          // "Open MPI v4.1.4": what joins them; NULL: not said
} heddle_transport;
typedef bool heddle_transport_opener(heddle_transport *out, char *error, size_t size);
typedef struct heddle_run heddle_run;
// inputs: of the distributed program, whole; this rank takes its pieces of them. All ranks make the same calls.
heddle_run *heddle_run_new(heddle_program *distributed, const heddle_link *link,
                           const heddle_tensors *inputs);
// The same, and the inputs are spent, so that both are never held at once: free them.
heddle_run *heddle_run_take(heddle_program *distributed, const heddle_link *link, heddle_tensors *inputs);
// Before either, by whoever measures what a run takes: the library of matrix products is loaded and has its own memory for
// every thread of the link, and what was freed so far is the system's again. Changes no result.
void heddle_run_warm(const heddle_link *link);
void heddle_run_free(heddle_run *r);
// One step. Updated weights and states are those of the next one.
bool heddle_run_step(heddle_run *r);
// What a step of this rank holds, known before the first one: the steps' memory is taken then, once.
typedef struct {
  int64_t peak_bytes;      // of all its tensors at once, weights and states among them
  int64_t parameter_bytes; // of them, what it holds before a step: weights, states, data
  int64_t block_bytes;     // of the block in which tensors lie that begin and end within a step
  int64_t place_bytes; // of the places of all: the block, and at most so much at once of those that lie apart
} heddle_run_bytes;
bool heddle_run_memory(heddle_run *r, heddle_run_bytes *out);
// Of the latest step; on rank 0, and 0 on others. False: it has none, or another rank is gone.
bool heddle_run_loss(heddle_run *r, double *loss);
// How all-reduces, reduce-scatters and all-gathers move from now on, the same on all ranks, before the first step: from each
// member to each (chunk_bytes 0, the default), or around a ring in chunks of so many bytes, each of which is recorded as a
// message; HEDDLE_RING_LIBRARY: all-reduces of f32 and f64 that no computation runs beside by the link's own, all others as by -1; another number below 0: around a ring in chunks of HEDDLE_RING_BYTES where more than two ranks take part, as `heddle run` does and simulations assume. Around a ring sums are of another order, the same on all ranks and in every run.
enum { HEDDLE_RING_BYTES = 256000, HEDDLE_RING_LIBRARY = -2 };
void heddle_run_ring(heddle_run *r, int64_t chunk_bytes);
// What this rank executes is recorded from now on: computation, communication, steps. most: events that are kept, 64
// bytes each (0: 4,194,304, 256 MiB); a step for which there is no room is left out, as are all after it.
bool heddle_run_record(heddle_run *r, uint64_t most);
void heddle_run_number(heddle_run *r, uint64_t number); // that recordings say: one for all ranks of a job
// Writes what was recorded to DIR/rank3.json, for `heddle trace`; the folder is made if need be. The file appears whole
// or not at all. All ranks of a job write to one folder. False and diagnostics: it cannot be written.
bool heddle_run_recorded(heddle_run *r, const char *dir);
// All parameters as they are now, whole, on rank 0; without elements on others.
heddle_tensors *heddle_run_parameters(heddle_run *r);
// N steps of training in this process, with all ranks' pieces, of the parameters t: what a run on ranks is to compute. data: NULL,
// or where the samples of each step come from. Every step's loss in `loss`. False and diagnostics.
typedef struct heddle_data heddle_data;
bool heddle_tensors_train(heddle_tensors *t, heddle_program *p, heddle_data *data, uint64_t steps,
                          double *loss);

// Training data: a folder with a file for every input and label (NAME.npy, or NAME.u16 and the like for tokens), or one
// file of tokens, whose next tokens are the labels (docs/running.md). NULL and diagnostics if they do not fit.
typedef struct {
  const char *type; // of tokens in a file whose name does not tell: "u16"; NULL: none
  bool shuffle;     // every epoch anew, by the seed
  uint64_t seed;
} heddle_data_options;
heddle_data *heddle_data_open(heddle_program *p, const char *path, const heddle_data_options *o);
void heddle_data_free(heddle_data *d);
int64_t heddle_data_samples(const heddle_data *d); // of an epoch
int64_t heddle_data_batch(const heddle_data *d);   // of a step
const char *heddle_data_about(heddle_data *d);     // in one line
// Samples `first` and those that follow it are the next step's, as many as the batch. This rank reads what it holds.
bool heddle_run_feed(heddle_run *r, heddle_data *d, int64_t first);

// Checkpoints: one safetensors file with every weight and every state of the optimizer under its name, whole, whatever the
// plan was. It appears when it is complete and on the disk, or not at all.
typedef struct {
  uint64_t step;  // steps that were taken
  int64_t sample; // the next one of the data
  uint64_t seed;  // of weights and of the order of samples
  bool shuffle;
  const char *plan; // in one line
} heddle_checkpoint;
// FOLDER/step-NNNNNN.safetensors. All ranks make the same call; rank 0 writes. It sets the step. keep: so many of the folder's
// checkpoints stay, the newest; 0: all. False and diagnostics: what was there is there.
bool heddle_run_save(heddle_run *r, const char *folder, const heddle_checkpoint *at, uint32_t keep);
// Weights and states of t, which are p's, from a checkpoint, under any plan. heddle_run_begin_at then tells the run, which
// knows of t how many updates they have had; of other tensors it takes as many as its program has in these steps.
bool heddle_tensors_resume(heddle_tensors *t, heddle_program *p, const char *path, heddle_checkpoint *out);
void heddle_run_begin_at(heddle_run *r, uint64_t step);
// The checkpoint of a folder after the most steps: step-NNNNNN.safetensors; or the file itself. The string lives as long as the
// session. NULL and a diagnostic: there is none.
const char *heddle_checkpoint_find(heddle_session *s, const char *path);

// Where a rank is, as any thread may ask at any time; and what is said of ranks that died or hang.
typedef enum { HEDDLE_STARTING, HEDDLE_STEPPING, HEDDLE_READING, HEDDLE_SAVING, HEDDLE_ENDING } heddle_phase;
typedef struct {
  uint64_t step;  // from 1
  uint64_t place; // an instruction, of the program that all ranks run; 0: none
  uint64_t count; // goes up as long as it gets on
  uint32_t top;   // the instruction of main that place is in
  uint32_t waits; // for a message of this rank + 1; 0: it waits for none
  uint32_t sends; // to this rank + 1, just now
  uint32_t phase; // heddle_phase
} heddle_where;
void heddle_run_where(const heddle_run *r, heddle_where *out);
typedef enum {
  HEDDLE_DIED,      // the process of `rank` ended without a word
  HEDDLE_SILENT,    // nothing came from it for `seconds`
  HEDDLE_STUCK,     // `rank` waits for a rank that waits ..., and none of them got on for `seconds`
  HEDDLE_SENDING,   // `rank` has been sending one message for `seconds`, which is to take no time
  HEDDLE_TERMINATED // SIGTERM has ended `rank`, not from its launcher
} heddle_fault_kind;
typedef struct {
  heddle_fault_kind kind;
  uint32_t rank, ranks;
  double seconds;
  const heddle_where *where; // by rank, the latest that is known
  const char *saved;         // folder of checkpoints, for the hint; NULL: none
  const char *host;          // of `rank`; NULL: this computer
} heddle_fault;
void heddle_run_fault(heddle_program *distributed, const heddle_fault *f); // as a diagnostic

// ---- measuring ----------------------------------------------------------------------------------------------
// How long the instructions of n distributed programs of one session take where this process runs: every distinct event once, a
// database keeps it (docs/profiles.md). Every process of the transport makes the same calls; they may be fewer than a program
// has ranks. m: what ranks are on; its name is what the times are of. path: of the database, which need not be there;
// what it has of this machine and these versions is not measured again.
typedef struct heddle_profile heddle_profile;
heddle_profile *heddle_profile_run(heddle_program *const *distributed, uint32_t n, heddle_machine *m,
                                   const heddle_transport *t, const char *path);
bool heddle_profile_may_keep(heddle_session *s, const char *path); // false: it is there, and no database
// The same of the best o->top plans of a search (0: 10), which is searched again with what was measured until all of its best plans are
// known. Rank 0 searches; only there is the database.
heddle_profile *heddle_profile_best(heddle_program *model, heddle_machine *m, const heddle_search_options *o,
                                    const heddle_transport *t, const char *path);
// For rank 0: fits every kind of event that the database has of the machine, so that heddle_machine_profiles answers events
// that were not measured too, and says so (source "fitted"). What it was and how far off it is, is in p's report.
bool heddle_profile_fit(heddle_profile *p, heddle_machine *m, const char *path);
// Times that a program of heddle_program_export (format "profile-pytorch") has written, into the database at `path`: all of
// them, or NULL and diagnostics at the lines that are wrong. m: the machine that they must be of; NULL: any. distributed: the
// report says how many of its events have times; NULL: it does not.
heddle_profile *heddle_profile_import(heddle_session *s, const char *file, const char *path,
                                      heddle_machine *m, heddle_program *distributed);
void heddle_profile_free(heddle_profile *p);
const char *heddle_profile_report(heddle_profile *p, heddle_format f); // on rank 0
// A machine file of the machine that this process runs on, as heddle_machine_load takes it, every figure with how it was
// measured. On rank 0; "" on others. The string lives as long as the session. heddle_machine_parse takes it.
const char *heddle_machine_probe(heddle_session *s, const heddle_transport *t, const char *name);

// ---- verification ---------------------------------------------------------------------------------------
typedef struct {
  uint64_t seed;
  double tolerance;     // relative; 0: 1e-9
  int64_t memory_bytes; // a model that needs more is shrunk letter by letter under the same plan; 0: 1 GB
} heddle_check_options;
// Runs the plan and the single-device program on the same random inputs in float64 and compares every output,
// gradient and updated parameter. NULL if that was not possible; heddle_check_passed says how it ended:
// results that would be the same on any inputs prove nothing and do not pass.
heddle_check *heddle_check_run(heddle_plan *b, const heddle_check_options *o);
void heddle_check_free(heddle_check *c);
bool heddle_check_passed(const heddle_check *c);
double heddle_check_worst(const heddle_check *c); // largest relative difference
const char *heddle_check_report(heddle_check *c, heddle_format f);

// ---- operators of your own ----------------------------------------------------------------------------------
// A row beside those of `heddle ops`, for one session: program text, builders, plans, simulation and verification take
// the operator as they take Heddle's own (docs/operators.md; examples/operators.c has two).
//
// What an operator is, is said by texts and three functions. The functions get all that they need and call nothing of
// this header, so a shared object that has them need not be linked with the library.
typedef struct {
  const char *dtype;      // "bf16"; NULL: not told (flops)
  uint32_t element_bytes; // of it; 0: not told
  uint32_t ndims;         // 8 at most
  const int64_t *dims;    // extents of what this rank holds
  const int64_t *whole;   // extents of the tensor that it is a part of; NULL: not told (flops, bytes)
  const int64_t *const
      *index; // index[d][i]: where element i along dimension d is in the whole; index[d] NULL: at i
  void *data; // kernel: double for floats, int64_t for integers and bool; the last dimension fastest
} heddle_piece;
typedef struct {
  const char *name;
  double number; // integers, too
  uint32_t n;    // elements of a list; 0: it is a number
  const int64_t *list;
} heddle_attribute;
typedef struct {
  uint32_t noperands, nresults, nattributes;
  const heddle_piece *operands, *results;
  const heddle_attribute
      *attributes; // as the application has them, else as the row has them; others are not there
} heddle_application;
// The number of an attribute; `absent` where there is none.
static inline double heddle_application_number(const heddle_application *x, const char *name, double absent) {
  for (uint32_t k = 0; k < x->nattributes; k++)
    if (!strcmp(x->attributes[k].name, name)) return x->attributes[k].number;
  return absent;
}

typedef struct {
  const char *name; // small letters, digits, _: no operator of Heddle's, nor of this session
  const char
      *operands;       // their names, "gate, up": the gradient calls them so; 16 operands and results at most
  const char *results; // NULL: "y"
  // A term for every operand and result, letters for dimensions: "...mk,...kn->...mn". Equal letters are one index. Small
  // letters may be split, capitals stay whole. "...": leading dimensions, which broadcast. (2h): a dimension of two
  // factors, the first one outermost; a number is an index of that extent and stays whole.
  const char *law;
  const char *types; // NULL: "F->F", one type of floats; `heddle ops NAME` has those of others
  const char *
      attributes; // "eps=1e-5 k! axes?": default, required, optional, of those that `heddle ops` knows; NULL: none
  // A mark for every operand, the last one for all that follow: e, linear in it alone; j, linear jointly with the other
  // j; -, not. Sums that are not complete pass where it is linear, others are completed before. NULL: "-"
  const char *linear;
  // How parts combine where a letter that a result lacks is split: "sum", "max", "min", "prod". NULL: such letters stay whole.
  const char *reduction;
  // Lines "%a = operator %x, %y {attribute, other=2}": %d_NAME is the gradient of an operand or a result, an attribute
  // without a value is the application's. Operators are Heddle's, this one, or registered before. What is larger than its
  // operand is summed over the dimensions that broadcast. "%d_x = none": the result does not change with x. "zero": none
  // of them. NULL: it has no gradient, and a training step in which one has to pass is refused.
  const char *gradient;
  const char *about; // one line
  bool product;      // priced as a matrix product, and what tensor parallelism splits first
  bool positions;    // the kernel reads `whole` or `index`
  uint32_t flops; // floating-point operations for every point of the law: the product of its letters' extents
  // The numbers of a rank's part: fills in the results, which do not overlap operands. False: it cannot. It may run on
  // several threads at once. NULL: the operator is planned and priced, and refused where numbers are asked for.
  bool (*kernel)(void *arg, const heddle_application *x);
  // Instead of `flops`: of the whole application; a rank that computes a part of the points does that part of them.
  double (*flops_of)(void *arg, const heddle_application *x);
  // Bytes of device memory that a rank reads and writes. NULL: every operand once and every result once.
  double (*bytes_of)(void *arg, const heddle_application *x);
  void *arg;           // of these functions; it must be there as long as the session
  const char *pytorch; // an expression for `heddle export`: "F.silu($0) * $1"; NULL: exports are refused
} heddle_operator_row;
// From now on the session knows the operator, and until it ends. Texts are copied. False and a diagnostic at the place of
// the text that is wrong. 256 operators in all sessions of a process. Register before programs of the session are made
// on other threads, which heddle_search_run waits for anyhow.
bool heddle_operator_register(heddle_session *s, const heddle_operator_row *row);
// What a shared object exports under the name "heddle_operators", for --operators: rows, and how many.
typedef const heddle_operator_row *heddle_operator_rows(uint32_t *n);
// Registers the rows of a shared object. It stays loaded. False and diagnostics.
bool heddle_operators_load(heddle_session *s, const char *path);

// ---- documentation from the tables ----------------------------------------------------------------------
const char *heddle_docs_models(heddle_session *s, heddle_format f);                     // built-in models
const char *heddle_docs_choices(heddle_session *s, heddle_format f);                    // of strategies
const char *heddle_docs_machines(heddle_session *s, heddle_format f);                   // presets
const char *heddle_docs_operators(heddle_session *s, heddle_format f);                  // one line each
const char *heddle_docs_operator(heddle_session *s, const char *name, heddle_format f); // NULL if unknown
// Sharding patterns: every way to split one application of an operator over one axis, from its law. What every
// operand and result is then, what communication completes results and gradients, which letters stay whole and
// why; and what each pattern costs on a machine, by the prices of heddle_result_run. NULL and diagnostics (at
// --shapes, --attributes, --ways) if the operator is unknown, if shapes or attributes do not fit, if no letter can be
// split so many ways, or if the machine has fewer devices or lacks a rate or a link.
typedef struct {
  const char *shapes;      // operands, "4096x1024,i64:4096" ("scalar" has no extents); NULL: an example
  const char *attributes;  // "axes=[1], keepdims=0", as in program text; NULL: none. Needs shapes
  const char *type;        // of operands that say none and whose type is open; NULL: f32
  heddle_machine *machine; // NULL: no costs, and ways are not said
  uint32_t ways;           // ranks to split over, the first of the machine; 0: all of them
  const char *costs;       // cost model: "heddle" or "distir"; NULL: heddle
} heddle_pattern_options;
const char *heddle_docs_patterns(heddle_session *s, const char *name, const heddle_pattern_options *o,
                                 heddle_format f);
const char *heddle_docs_diagnostics(heddle_session *s, heddle_format f);
const char *heddle_docs_diagnostic(heddle_session *s, const char *code, heddle_format f); // NULL if unknown

#ifdef __cplusplus
}
#endif
#endif
