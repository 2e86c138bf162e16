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

#include "heddle/model.h"

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
      microbatches;    // pp, v and mb of a strategy; chunks 0: 1. Of a file: 0, or what it has
  uint32_t group;      // microbatches that pass a chunk before the next one runs; 0: places
  bool inference;      // forwards only
  const char *buffers; // "unbounded", "rendezvous", or of how many messages, such as "2"; NULL: unbounded
} heddle_schedule_options;
// A schedule of a pipeline by its name, such as "1f1b" or "zb-h1", or one that a .csv file has
// (docs/schedules.md). NULL if there is none of these figures, or if it deadlocks with these buffers.
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
uint32_t heddle_search_count(const heddle_search *f); // plans that fit, best first; `top` of them at most
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
      what_if; // searched again with each choice that was left out, with 25 % and 50 % more memory, with twice the devices, and
               // without each kind
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

#include "heddle/job.h"

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
