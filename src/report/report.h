// report.h - what Heddle tells people and programs about models, machines, plans and runs. Layer 8.
//
// Idea: a report is said once and rendered twice. It is a list of facts and tables of cells; a cell is a
// quantity of a kind (bytes, picoseconds, a share, ...). As text it becomes aligned columns in human units;
// as JSON one object with the exact quantities, in the same order. So both always say the same, and the keys
// are next to what they mean. docs/json.md lists them; they do not change meaning.
#ifndef HEDDLE_REPORT_H
#define HEDDLE_REPORT_H
#include "diagnose/diagnose.h"
#include "eval/eval.h"
#include "front/front.h"
#include "machine/machine.h"
#include "profile/profile.h"
#include "search/search.h"

// ---- cells --------------------------------------------------------------------------------------------
typedef enum {
  CELL_NONE, // text: nothing; JSON: null
  CELL_TEXT, // "..."
  CELL_NAME, // the same; in tables of text cut to n characters, so that no two names print the same (names.c)
  CELL_INT,  // 1,280,000
  CELL_COUNT, // 1.56 billion
  CELL_BYTES, // 2.90 GiB: memory is counted in powers of two
  CELL_PS,    // 1.234 ms
  CELL_FLOP,  // 2.12 TFLOP
  CELL_RATE,  // 450 GB/s: transfer is not
  CELL_FLOPS, // 312 TFLOP/s
  CELL_PER_S, // 5,120/s
  CELL_SHARE, // of one: 82.3 %
  CELL_TIMES, // 1.23x
  CELL_REAL,  // 0.000123457
  CELL_BOOL,  // yes
  CELL_DIMS   // 8 x 1024; JSON: [8, 1024]
} cell_kind;
typedef struct {
  cell_kind kind;
  u32 n; // of DIMS and NAME; of TEXT, in tables of text: lines of so many characters at most, if words allow, 0: one
      // line; of others 1: a difference, with its sign
  union {
    const char *s;
    i64 i;
    double x;
    const i64 *v;
  } u;
} cell;
static inline cell cell_none(void) { return (cell){.kind = CELL_NONE}; }
static inline cell cell_text(const char *s) { return (cell){.kind = s ? CELL_TEXT : CELL_NONE, .u.s = s}; }
static inline cell cell_wrapped(const char *s, u32 most) {
  return (cell){.kind = s ? CELL_TEXT : CELL_NONE, .n = most, .u.s = s};
}
static inline cell cell_name(const char *s, u32 most) {
  return (cell){.kind = CELL_NAME, .n = most, .u.s = s};
}
static inline cell cell_i(cell_kind k, i64 i) { return (cell){.kind = k, .u.i = i}; } // INT .. PS, BOOL
static inline cell cell_x(cell_kind k, double x) {
  return (cell){.kind = k, .u.x = x};
} // FLOP, PER_S .. REAL
static inline cell cell_dims(const i64 *v, u32 n) { return (cell){.kind = CELL_DIMS, .n = n, .u.v = v}; }
static inline cell cell_signed(cell x) { return x.n = 1, x; }
void cell_print(const cell *x, strbuf *b); // as in text

// ---- reports ------------------------------------------------------------------------------------------
typedef struct {
  const char *key, *title; // key NULL: not in JSON. title NULL: not in text
} column;
typedef struct report report;
report *report_new(arena *a); // strings given to it are not copied
// One quantity. Labels of neighbouring facts and lines are aligned; label NULL: only in JSON.
void report_fact(report *r, const char *key, const char *label, cell x);
// Words of which text consists and JSON does not. label "" continues the one above; NULL: from the margin.
void report_line(report *r, const char *label, const char *fmt, ...) PRINTF_LIKE(3, 4);
void report_gap(report *r);                                               // an empty line in text
void report_table(report *r, const char *key, const column *cols, u32 n); // JSON: an array of objects
void report_row(report *r, const cell *cells);                            // of the latest table
void report_top(report *r, u32 n); // text shows the first n rows of the latest table and counts the others
void report_append(report *r, const report *with); // all of another, for tables that are filled side by side
void report_note(report *r, const char *text);     // paragraphs, as they are
void report_print(const report *r, bool as_json, strbuf *b);

// ---- what there is to report --------------------------------------------------------------------------
// Appends to r what is known of its subject. What is reported on is valid, so this does not fail unless it
// says so.
// show (model.c). open: extents that its file leaves open, NULL if there are none
void report_model(report *r, arena *a, const prog *p, const char *name, const front_extents *open);
const char *report_types(arena *a, const prog *p, role of); // of main's parameters: "f16, f32"; NULL: none
// One line where a built-in model is trained that others train with dropout.
void report_dropout(report *r, const char *model, bool train);
// Of one run, by the laws: what ranks do alike is counted once. again: of them, recomputation.
double report_flops(const prog *p, double *again);
// Of a step of a program on the ranks of its meshes: arithmetic but for recomputation, over the peak of the
// devices in the weights' type; 0: not known (sim.c).
double report_mfu(const prog *p, const machine *m, i64 step_ps);
// One line, and a fact; nothing without batch norm in training (batchnorm.c).
void report_batchnorm(report *r, const batchnorm_stats *s);
typedef struct {
  const char *model, *plan; // plan: NULL if there is none
  i64 batch;                // samples a step; 0: unknown
  batchnorm_stats batchnorm;
  const cost_parts *path;              // sim_path_parts; NULL: not known
  const plan_task_graphs *task_graphs; // NULL: the plan was not made from annotations
  const char *layers;                  // by stage (plan_layers); NULL: not known
  const plan_given *given;             // to every rank; NULL: not known
  const char *schedule;                // of the plan's order (plan_schedule); NULL: none with a name
  const sched_stages *times;           // of its stages (plan_stage_times); NULL: not asked for
} sim_about;
void report_task_graphs(report *r, const plan_task_graphs *t); // with their bridges (annotate.c)
void report_sim(report *r, arena *a, const prog *p, const machine *m, const sim_result *s,
                const sim_about *of); // sim.c
// What would help: of a critical path (sim_path_parts) of a step (help.c).
void report_help(report *r, const cost_parts *path, i64 step_ps);
void report_search(report *r, arena *a, const search_about *about, const search_opts *o,
                   const search_result *s);
void report_part(report *r, arena *a, const search_about *about, const search_opts *o,
                 const search_result *s);
// One split for every operator, and the best hybrid beside it (auto.c). src: whose instructions the rows name.
void report_auto(report *r, arena *a, const prog *src, const search_about *about, const search_opts *o,
                 const search_auto *s);
// Why not a plan, and on other machines (why.c).
void report_why(report *r, arena *a, const search_why *w, const search_result *s);
void report_what_if(report *r, arena *a, const search_opts *o, const search_what_if *v, u32 n,
                    const search_result *s);
// A schedule and its times by REPORT_COSTS (schedule.c).
extern const u32 REPORT_COSTS[TASK_KINDS]; // F 1, B 2
void report_schedule(report *r, arena *a, const sched *s, const sched_times *t, const char *name,
                     bool picture);
// A schedule that was found for stages (synthesis.c). drawn: its times by REPORT_COSTS, for a picture; or NULL.
void report_synthesis(report *r, arena *a, const sched_stages *of, const sched_aims *aims,
                      const sched_synthesis *x, const char *name, const sched_times *drawn);
void report_machine(report *r, arena *a, const machine *m); // machines NAME (machine.c)
void report_machines(report *r, ctx *c, arena *a);          // every preset
void report_check(report *r, arena *a, const verify_report *v, const char *model, const char *plan,
                  const batchnorm_stats *bn); // check.c
// The program of one rank (rank.c), of a distributed program that runs on ranks below nranks. False and a
// diagnostic if the rank has none.
bool report_rank(report *r, arena *a, const prog *p, u32 rank, u32 nranks);
void report_arrays(report *r, arena *a, const eval_array *x, const char *const *name, u32 n); // arrays.c
void report_choices(report *r, arena *a);                // every choice of a strategy (tables.c)
void report_families(report *r, arena *a);               // built-in models (tables.c)
void report_ops(report *r, const ctx *c, arena *a);      // every operator, those of the session last
void report_op(report *r, arena *a, opcode op);          // one of them
void report_diagnostics(report *r, arena *a);            // every diagnostic
void report_diagnostic(report *r, arena *a, diag_id id); // one of them

// Sharding patterns of an operator (patterns.c).
typedef struct {
  opcode op;
  const prog *p; // ir_application; NULL: the operator has no law
  bool example;  // the operator's own (op_example_of)
  const law *l;
  const law_pattern *v; // n of them
  u32 n;
  const pattern_cost *cost; // cost_patterns; NULL: not asked
  const machine *m;         // ... and of where
  u32 ways;                 // 0: not said
} report_pattern;
void report_patterns(report *r, arena *a, const report_pattern *of);

// ---- questions about traces (trace.c; questions.def, each in answer_ID.c) -------------------------------
// What the job's plan is predicted to take.
typedef struct {
  const sim_result *s; // with a timeline
  const machine *m;
  const char *model, *plan; // plan: NULL: a program that is distributed already
  const char *digest;       // of both (trace_ran); NULL likewise
  const char *weights;      // types of its parameters; NULL: it has none
} prediction;
typedef struct {
  u32 npaths;
  const char *const *path;
  const char *output; // file to write; NULL: none was named
  u32 top;            // rows of tables; 0: as the table has it
  const char *steps;  // "3" or "3-5,8"; NULL: all
  u32 nset;           // changes, "rank 3 = median"
  const char *const *set;
  const char *to;   // format to convert to; NULL: not said
  i64 memory_bytes; // of a device; 0: not said
  u32 npasses;      // graph passes of the caller's, for optimize
  const struct tune_pass *pass;
  const char *use_passes;      // built-in ones, "op_fusion,half"; NULL: the usual ones
  const char *timeline;        // file for a timeline; NULL: none was named
  u32 ranks;                   // that the job is to have; 0: not said
  const machine *machine;      // NULL: none was named
  const prediction *predicted; // of questions that have the option "plan", never NULL; else NULL
} trace_ask;
typedef struct {
  const char *id, *operands, *options, *about, *answers, *examples; // as questions.def has them
  // Appends the answer to r. False and diagnostics: there is none.
  bool (*answer)(report *r, ctx *c, arena *a, const trace_ask *q);
} trace_question;
#define QUESTION(id, operands, options, about, answers, examples)                                            \
  bool answer_##id(report *r, ctx *c, arena *a, const trace_ask *q);
#include "report/questions.def"
#undef QUESTION
const trace_question *trace_question_get(u32 index);               // NULL past the end
const trace_question *trace_question_find(ctx *c, const char *id); // NULL and a diagnostic

// ---- timelines (timeline.c, chrome.c, perfetto.c) -----------------------------------------------------------------------------
// A timeline in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open: one process for
// every rank, one thread for every stream; arrows join the events of one message or collective, up to 100,000
// of them. Times are microseconds, exact to the picosecond. An event's name is its operator; its place in the
// user's model, its microbatch and its bytes are arguments.
typedef struct {
  const char *title;            // of the whole; NULL: none
  const char *const *rank_name; // by rank; NULL: "rank 3"
  bool no_arrows;
  bool functions;  // events say which function of the program they are in
  bool no_mark;    // it is no timeline of one job, and must not be read as one
  i64 earliest_ps; // of all starts, where that is below 0
  u32 buffered;    // events held at a time; 0: a quarter of a million, 16 MiB. Changes the time it takes and
                   // nothing else
} timeline_opts;
void chrome_print(ctx *c, const trace_source *t, const timeline_opts *o, strbuf *out); // o may be NULL
// To a file as it is made, in memory that does not grow with the events. The file appears whole or not at
// all;
// "-" is standard output. False and a diagnostic on failure.
bool chrome_write(ctx *c, const trace_source *t, const timeline_opts *o, const char *path);
// The same slices in Perfetto's protobuf (perfetto.c), in nanoseconds. Of what is simulated it has also why a rank's first
// stream stands still, and what the rank holds. Memory is by tracks alone: packets are written as they are played.
bool perfetto_write(ctx *c, const trace_source *t, const timeline_opts *o, const char *path);
// In the format that the file's name ends in, a row of timelines.def each; else the first of them.
bool timeline_write(ctx *c, const trace_source *t, const timeline_opts *o, const char *path);

// profile.c: what a measurement has added to a database of times
void report_profile(report *r, arena *a, const profile_report *p);
#endif
