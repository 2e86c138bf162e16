// plan.h - the mechanism of plans: trans (split), assign (where), order (when), and what follows from them:
// materialised communication, the distributed program, its validation. Layer 6. Knows no model family and no
// strategy.
//
// Idea: a plan is data about a forward program: which letters of which instructions are split over which
// axes, which instructions of main run on which part of which mesh, in which order each part runs its tasks,
// and how parameters, gradients and optimizer states lie in storage. plan_apply makes the distributed program
// from it. Policies (plan/policy/) only fill in this structure.
#ifndef HEDDLE_PLAN_H
#define HEDDLE_PLAN_H
#include "eval/eval.h"
#include "pass/pass.h"
#include "plan/splits.h"
#include "plan/choice.h"
#include "sched/sched.h"
#include "sim/sim.h"

// shares: how much each coordinate gets of what is split over the axis, in parts of their sum; NULL: equal
// parts. What lies in storage is split equally.
typedef struct {
  sym name;
  u32 size;
  bool temporal;
  const u32 *shares;
} plan_axis;
static inline u32 plan_parts(const plan_axis *x) { // what an extent must be a multiple of
  u32 n = x->shares ? 0 : x->size;
  for (u32 k = 0; x->shares && k < x->size; k++) n += x->shares[k];
  assert(n > 0);
  return n;
}
typedef struct {
  sym name;
  u32 naxes;
  u8 axis[MESH_AXES];
  u32 first;
  const u32 *ranks;
  u32 nranks;
  loc at;    // in the plan's text; 0 where a policy made it: so with every `at` below
} plan_mesh; // axis: 1-based into axes
// The axes of a mesh that policy_hybrid made, from the last one: it has a place of the pipeline for each coordinate of
// AXIS_PLACE, and only with replicas of different make-up an AXIS_REPLICA.
typedef enum { AXIS_TENSOR = 1, AXIS_DATA, AXIS_PLACE, AXIS_REPLICA } axis_counts;
static inline u8 mesh_axis(const plan_mesh *m, axis_counts what) {
  assert(m->naxes >= what);
  return m->axis[m->naxes - what];
}
typedef struct {
  u8 axis;
  u32 at;
} plan_fix; // axis: 1-based into axes
typedef struct {
  u32 mesh;
  u32 nfix;
  plan_fix fix[MESH_AXES];
} plan_submesh; // mesh: from 0

// op-trans: split one dimension of an operand or a result of an instruction (then of everything that shares
// its letter) over an axis. instr 0: dimension `dim` of parameter `index` of fn (inputs of main: how data is
// dealt out). dim TRANS_WHOLE: the axis splits nothing in the instruction, its operands are whole over it, and so in
// what the backward makes of it. TRANS_SUM: a sum over the axis that has not been taken passes through the
// instruction, which is linear.
enum { TRANS_SUM = 0xfe, TRANS_WHOLE = 0xff };
static inline bool trans_splits(u8 dim) { return dim < TRANS_SUM; }
typedef struct {
  func fn;
  u32 instr;   // number from 1 in fn's body; 0 = a parameter
  bool result; // of result `index`, else of operand `index`
  u32 index;
  u8 dim, axis;
  i64 stride;  // elements between coordinates, of an axis with shares in one part; 0 = as major as possible
  bool weak;   // only where no operand brings a split over the axis along
  bool uneven; // stride 0: where the extent does not divide, pieces differ by one element
  loc at;
} plan_trans;

// op-assign: consecutive instructions of main (numbers from 1) become a segment, in the schedule a stage, on
// a submesh. Segments are in program order and cover main; several segments may share a submesh or overlap in
// ranks.
typedef struct {
  u32 from, to;
  plan_submesh on;
  loc at;
} plan_segment;

// Several replicas of the model, placed differently: each is a set of microbatches that runs on segments of its own
// submeshes. Microbatches of the first come first in time, then those of the second, and so on.
typedef struct {
  u32 micro;        // how many it has
  plan_submesh *on; // by segment; NULL, of the first replica: as the segments say
  loc at;
} plan_replica;

// What annotations call a task graph, for reports: where it lies, and in words what it is.
typedef struct {
  const char *name, *strategy, *covers, *devices; // "features", "replicate(8)", "layers 0-11", "{0-7}"
  sym mesh, axis; // it lies on this mesh; axis: at coordinate `at`, if there is one
  u32 at;
  loc where; // of the scope
} plan_task_graph;
// Values of task graph `from` that `to` reads, from 0: what moves in a step, forward and back, between
// different ranks.
typedef struct {
  u32 from, to;
  double bytes[2];
} plan_bridge;
typedef struct {
  u32 n, ninside, nbridges;
  const plan_task_graph *v; // n of them, and then splits inside their blocks, on devices of theirs
  const plan_bridge *bridge;
  u32 nkinds;
  const double *speed; // by kind of the machine: samples a ps of a device that never waits; NULL: not known
  u32 nranks;
  const u32 *of_rank; // the first task graph of each, from 0
  const char *less;   // what annotations could say to take less memory
} plan_task_graphs;

// op-order: what each place runs, in order: tasks of sched.h, whose stages are segments, without pairs,
// passes and versions.
enum { PLAN_STORED = 24 };
// How values become those that are needed: collectives found inside groups, and what is sent between groups too (move.c);
// collectives inside groups alone; plain sends and receives (layout_plain_path). As the choice has them.
typedef enum { MATERIALISE_INTER, MATERIALISE_INTRA, MATERIALISE_P2P, MATERIALISE_WAYS } materialise_way;
extern const char *const plan_materialise_name[MATERIALISE_WAYS];
enum { OFFLOAD_PARAMS = 1, OFFLOAD_GRADS = 2, OFFLOAD_STATES = 4, OFFLOAD_ACTS = 8 };
// What lies in pieces over axes while nothing computes with it. Over axes of STORAGE_SERVER every weight has one
// coordinate as its server: states are there alone, gradients are summed there, and what it updates goes to all.
typedef enum { STORAGE_WEIGHT, STORAGE_GRAD, STORAGE_STATE, STORAGE_SERVER, STORAGE_KINDS } storage_kind;
typedef struct {
  u32 naxes;
  plan_axis *axes;
  u32 nmeshes;
  plan_mesh *meshes;
  u32 ntrans;
  plan_trans *trans;
  u32 nsegments;
  plan_segment *segments;
  u32 nreplicas; // 0: one, of all microbatches
  plan_replica *replicas;
  u32 nseqs;
  sched_seq
      *seqs; // one for each place (distinct submesh), in order of first use by segments, then by those of
             // the next replica
  struct {
    const sched_row *row; // NULL: there is none
    sched_shape shape;
    const sched *file; // of a file, with one place after the other as in seqs; NULL: there is none
    u64 key;           // of the schedule
    const u32 *live;   // plan_live of it
  } made;  // by a policy: where seqs is NULL the sequences are made of it when they are needed. From text:
           // the row that they are, and its shape
  u8 time; // the temporal axis of microbatches (1-based; 0: no microbatches)
  u32 nstorage[STORAGE_KINDS];
  u8 storage
      [STORAGE_KINDS]
      [PLAN_STORED]; // axes over which weights / gradients / states are also sharded in storage; of servers
  u32 nrecompute;
  struct {
    func fn;
    u32 instr;
  } * recompute;
  materialise_way materialise;
  bool wide_gradients;  // those of f16 and bf16 weights are accumulated and summed in f32
  u32 batchnorm_groups; // parts of the batch, each normalised with its own statistics; 0: as the model says
  u32 coshard;          // parts in which heads and hidden units are computed (pass_coshard); 0, 1: in one
  bool fused_attention; // scores are not kept (pass_attention)
  u8 offload;           // what lies in host memory: OFFLOAD_..., as bits, in the order of the choice's words
  u8 prefetch;          // of copies from there: steps that they run ahead of (pass_offload)
  bool host_update;     // with OFFLOAD_STATES: the host updates weights (pass_host_update)
  bool train, keep_gradients;
  bool input_gradients; // of floating-point inputs too, though nothing reads them: what some systems spend
  optim_opts optim;
  sym send_stream;  // of sends; {0}: they occupy the compute stream at both ends (blocking sends)
  u8 send_channels; // 0, 1: all sends on that stream; 2: forward and backward apart; 4: one channel for
                    // each peer, pass and direction
  sym sum_stream;   // of sums of gradients over data ranks, beside the last backward; {0}: updates sum them
  bool rendezvous;  // a place goes on when what it sent was taken: sends on the compute stream alone
  sym name;         // what the user sees, "dp=2 tp=4 pp=2 mb=32 zero=1"
  const plan_task_graphs *task_graphs; // of a plan made from annotations; NULL: it was not
  const char *model; // what the model is called: plan_print writes its fingerprint; NULL: it does not
  loc at, order_at, groups_at, coshard_at, attention_at,
      sum_at;        // in the plan's text; 0 where a policy made it
  const loc *seq_at; // per sequence; NULL where a policy made them
} plan;

// Makes the distributed program. src: forward program (main's first result is the loss when plan->train). The
// result is a new program; NULL and diagnostics (E_DIVIDE, E_LAYOUT, E_DEADLOCK, E_PLAN) if the plan cannot
// be applied. k: for choosing communication by cost; NULL: by elements moved.
typedef struct planner
    planner; // a source program with its laws and gradients, reused over many plans (search)
planner *planner_new(prog *src);
void planner_free(planner *pl);
prog *plan_apply(planner *pl, const plan *pn, cost_model *k);
// Which stages read which, and where they lie: what a schedule needs to know of the program.
typedef struct {
  u32 nstages, nplaces, nmicro, nedges; // nstages: of one replica
  u32 nreplicas;
  const u32 *micro;       // by replica
  const u16 *place;       // [replica * nstages + stage]; of several the lowest
  const sched_places *at; // likewise, all of them; NULL: each has one
  const sched_edge *edge;
  const bool *forward;  // stages that the loss does not depend on; NULL: there are none
  bool train, backward; // backward: some stage has one
} plan_graph;
// The probe of the plan's pipeline (sim.h): tasks of its distinct stages only, and unless all_layers of every
// stage only some of the layers that are alike. *out is in `a`, and about the program that is returned.
// Neither depends on the plan's order, but for whether backwards are in two parts. NULL and diagnostics
// likewise.
typedef struct {
  sim_pipeline pipeline;
  plan_graph graph;
  bool storage_split[STORAGE_KINDS]; // was anything of the kind sharded in storage?
  // In words, all that what comes after the tasks depends on besides what these leave, the optimizer and how
  // states are stored; 0 of them: on more than that
  const u32 *ending;
  u32 nending;
} plan_probed;
// No weight has a server and none several versions, nothing is in host memory, no sums run beside a backward: plans that have
// such things are simulated whole. A probe of a plan that offloads is that of the plan that does not.
bool plan_has_probe(const plan *pn);
bool plan_lies_wide(const plan *pn); // may a segment lie on several places?
prog *plan_probe(planner *pl, const plan *pn, cost_model *k, arena *a, bool all_layers, plan_probed *out);
// The same without what comes after the tasks if `find` has that: sim_ending_of stages with equal words
// (plan_probed.ending) and states (plan_states), of the same planner and cost model. Then nothing is said of the
// storage of states.
typedef const sim_ending *plan_find_ending(void *arg, const u32 *word, u32 n);
prog *plan_probe_tasks(planner *pl, const plan *pn, cost_model *k, arena *a, bool all_layers,
                       plan_find_ending *find, void *arg, plan_probed *out);
// Time and bytes of a plan (price.c). By its stages: false, with or without diagnostics, where they are not enough to tell
// (then they say nothing of whether the plan can be), or it is impossible. Whole: by its program; false and diagnostics: it
// is impossible, or a price is missing. Everything but the result is in `tmp`.
bool plan_price_stages(planner *pl, const plan *pn, cost_model *k, arena *tmp, const sim_opts *o,
                       sim_pipe_result *r);
bool plan_price_whole(planner *pl, const plan *pn, cost_model *k, arena *tmp, const sim_opts *o,
                      sim_pipe_result *r);
// A bound on its time: how long its busiest stream works, told from programs of its first two and three microbatches, for
// each microbatch more does what the third one does. 0: nothing is known (few microbatches, copies to and from hosts,
// updates between tasks, replicas of different make-up).
i64 plan_busiest(planner *pl, const plan *pn, cost_model *k, arena *tmp);
// Its stages as `heddle schedule --stages` reads them: times of a microbatch, activations in MiB. Of a plan with replicas,
// those of the first. False and diagnostics: it has no backward, or its stages are not known by themselves.
bool plan_stage_times(planner *pl, const plan *pn, cost_model *k, arena *a, sched_stages *out);
// In words, how the plan stores states, and its optimizer; all else of it that its probe depends on but whether
// backwards are in two parts. How many; they are in `a`.
u32 plan_states(arena *a, const plan *pn, const u32 **word);
u32 plan_tasks(arena *a, const plan *pn, const u32 **word);
// Tasks and sends of the plan's order on stages of that graph, in one line: stages as [replica * nstages + stage],
// microbatches of the step. False and diagnostics (E_PLAN, E_DEADLOCK). *order is in `a`.
bool plan_line(ctx *c, arena *a, const plan *pn, const plan_graph *g, u32 *n, const sim_order **order);
// Does a stage of the row stand for several segments of a plan? Those of a stage run one after the other.
bool plan_unrolls(const sched_row *row);
bool plan_is_unrolled(const plan *pn); // does one of the row or the file that the plan's order is made of?
// Its sequences with the plan's segments as stages. In `a`.
const sched_seq *plan_unroll(arena *a, const plan *pn, const sched *made);
u32 *plan_unroll_live(arena *a, const plan *pn, u32 npasses, const u32 *live); // plan_live likewise
bool *plan_unroll_split(arena *a, const plan *pn, const sched *made);          // sched.split likewise
// The schedule that the plan's order is: "1f1b". NULL: none with a name, or there is one place.
const char *plan_schedule(const plan *pn);
// The plan's sequences are called that schedule from now on if they are it, with groups of so many microbatches
// (0: none said). Else returns in what they differ, *at is of the sequence.
const char *plan_name_schedule(ctx *c, arena *a, plan *pn, const sched_row *row, u32 grouped, loc *at);

// The streams of n sends from place to place under the plan, there and back, numbered from 1; 0: they are on
// the compute stream. Returns how many there are.
u32 plan_send_streams(arena *scratch, const plan *pn, u32 n, const u16 *from, const u16 *to, u8 *strm[2]);

// The trivial plan: one device, everything in one segment.
plan *plan_single(arena *a, const prog *src, bool train, const optim_opts *o);

// What a plan is verified against: one device, with its groups of batch norm and, where updates are between tasks, its
// staleness. It returns gradients. The planner is of the plan's form (planner_formed).
plan *plan_reference(planner *pl, const plan *pn, arena *a);

// Shards one function of the source program alone, as the plan's trans say, weights free and other parameters
// replicated: what a choice of trans is worth before a whole plan exists. false (diagnostics dropped) if
// impossible.
typedef struct {
  double flops;      // per rank
  double moved;      // bytes moved by communication, per rank
  const bool *split; // per origin: was the instruction split over `axis`
} plan_trial_result;
bool plan_trial(planner *pl, const plan *pn, func f, u8 axis,
                plan_trial_result *out); // axis: 1-based into pn->axes
const law *
plan_law(planner *pl, func f,
         u32 instr_index); // law of an instruction of the source, kept; NULL and a diagnostic if refused
// An instruction (index from 0) of the source as a function that needs no dimension whole, kept; {0}: there
// is none.
func planner_decompose(planner *pl, func f, u32 index);
const classes *planner_classes(planner *pl); // of the source program, kept
// The key of a schedule, kept, with its plan_live (or NULL); 0 and a diagnostic if it cannot be made. Fits: has it one?
u64 planner_schedule_key(planner *pl, const sched_row *row, const sched_shape *shape, loc where,
                         const u32 **live);
bool planner_schedule_fits(planner *pl, const sched_row *row, const sched_shape *shape, loc where);
// By [replica * stages + stage], of a schedule with backwards: microbatches whose forward has run and whose backward has not,
// when its place has most of them. In `a`.
u32 *plan_live(arena *a, const sched *s);
void plan_live_on(const sched_seq *seq, u32 nstages, u32 npasses,
                  u32 *live); // of one place, whose stages have 0
// What a plan of one stage keeps from forward to backward: made by instruction `def` of main (from 0) and, if
// another one reads it, by `use` first; bytes on a rank, on average. A stage of the same plan that has both
// keeps it. Returns how many; 0 if there is no such plan or no gradient. accumulates: by parameter of main,
// has its gradient an accumulator where there are microbatches? In `a`.
typedef struct {
  u32 def, use;
  double bytes;
} plan_kept_value;
u32 plan_kept(planner *pl, const plan *pn, cost_model *k, arena *a, plan_kept_value **out,
              bool **accumulates);
// Values of main that its first result, the loss, depends on. In `a`.
bool *plan_behind_loss(const prog *src, arena *a);
// How long one microbatch keeps a rank busy, on average over ranks, under a plan of one stage: by instruction
// of main, what comes of it in forward and backward. out: one for each. False: there is no such plan, no
// price (with diagnostics), or two instructions have one origin.
bool plan_busy(planner *pl, const plan *pn, cost_model *k, sim_busy *out);
// Where the machine has times of layers (machine/machine.h), puts p->measured, of a program that the plan
// made. pl: of the whole program. False and diagnostics (E_PROFILE): layers or numbers of devices without
// times.
bool plan_measured(planner *pl, const plan *pn, cost_model *k, prog *p);
// What a policy found out about the source program, kept for the next plan: trans by any key. Keys of a policy begin
// with its word.
enum { KEY_TENSOR, KEY_SEQUENCE, KEY_STAGES, KEY_AXIAL };
const plan_trans *planner_kept(planner *pl, const key_words *key, u32 *n); // NULL: nothing kept
void planner_keep(planner *pl, const key_words *key, const plan_trans *v, u32 n);
// What a policy refuses whatever else a plan has, under another key: the diagnostic number `from`, with its hints, two at most. planner_refused reports it again, if there is one.
void planner_keep_refusal(planner *pl, const key_words *key, u32 from);
bool planner_refused(planner *pl, const key_words *key);
// Figures that were measured, one for each instruction of main, likewise: found by what they are, a strategy, two
// numbers that it does not say, what of training they depend on, and the cost model.
typedef enum {
  KEPT_TIMES,    // busy times on a kind of device (policy/balance.c)
  KEPT_MODELLED, // times of layers by the cost model (measured.c)
  KEPT_PEAK,
  KEPT_BYTES,
  KEPT_WEIGHTS,
  KEPT_CUTS,
  KEPT_VALUES,
  KEPT_SHARES,
  KEPT_TENSOR, // policy/balance.c, layers_auto.c
} kept_figures;
typedef struct {
  kept_figures what;
  strategy s;
  i64 number[2];
  u64 training; // planner_training
  u64 costs;    // cost_model_serial
} planner_key;
static inline u64 planner_training(bool train, const optim_opts *o, bool keep_gradients) { // 0: inference
  return train ? 1 + 2 * ((u64)o->kind << 2 | (u64)o->master << 1 | keep_gradients) : 0;
}
const double *planner_kept_times(const planner *pl, const planner_key *key); // NULL: nothing kept
void planner_keep_times(planner *pl, const planner_key *key, const double *v, u32 n);
const batchnorm_stats *planner_batchnorm(const planner *pl); // of the source program; groups 0: it has none
u32 planner_inputs(const planner *pl,
                   const u32 **param); // parameters of main that are inputs or labels, from 0
// Last instructions of stages, likewise; numbers from 1.
typedef struct {
  u32 stages;
  const u32 *place; // by stage
  choice_value layers;
  bool again;      // the backward computes layers again
  bool interlaced; // between what lies on all places
  bool passes;     // layers of every pass alike
} planner_ends;
const u32 *planner_kept_ends(const planner *pl, const planner_ends *of); // NULL: nothing kept
void planner_keep_ends(planner *pl, const planner_ends *of, const u32 *end);
// The planner's copy of the source program: plans name its functions, which are numbers 1 to
// planner_funcs()-1; those after them are the planner's own.
prog *planner_source(planner *pl);
u32 planner_funcs(const planner *pl);
// Functions from this number on are parts of others (plan.coshard); 0: there are none.
u32 planner_first_part(const planner *pl);
u32 planner_coshard_of(planner *pl, const coshard_index **out); // pass_coshard_of, kept
// What batch norm of the model takes its statistics over under the plan; {0, 0}: there is none in training.
batchnorm_stats plan_batchnorm(const prog *src, const plan *pn);
// Layers, calls of main, of every stage: "10x6/11/9", as `layers` of a strategy. In `a`; NULL: one stage, or
// no layers.
const char *plan_layers(arena *a, const prog *src, const plan *pn);
// The planner of the program in the form that the plan asks for: with pass_batchnorm, pass_attention and pass_coshard; pl itself
// where it asks for none. Kept, and freed with pl. Plans are about it, applied and verified on it; policies must look at it. main
// has the same instructions. NULL and a diagnostic, at the plan's locations, if something does not divide or is not there.
planner *planner_formed(planner *pl, const plan *pn);
// The program that the plan names instructions of: src, or a new one, which *own is then too. NULL and diagnostics.
const prog *plan_program(const prog *src, const plan *pn, prog **own);

// ---- validation -------------------------------------------------------------------------------------------
// Every element produced exactly once where it is needed, sums complete over space and time, what is in host memory
// copied before it is read, collectives in one order, rendezvous without a cycle. (sim_fits tells whether its memory is within the devices'.)
bool plan_validate(prog *distributed);

// What every rank issues, in its own order: numbers of main's instructions from 1. A call is one of them, and
// all that communicates inside it. plan_projections: the orders that main itself stands for; in `a`.
// plan_check_orders: does every rank issue all that it takes part in, communication of the same ranks in one
// order (E_COLLECTIVE_ORDER), and can all go on to the end when one instruction at a time runs on each stream
// of each rank and communication waits for all of its ranks (E_DEADLOCK)? Linear.
typedef struct {
  u32 n;
  const u32 *instr;
} plan_order;
u32 plan_ranks(const prog *p); // highest rank of any group + 1
void plan_projections(const prog *p, arena *a, plan_order *of_rank);
bool plan_check_orders(const prog *p, const plan_order *of_rank, u32 nranks);

// ---- verification (compare.c) -----------------------------------------------------------------------------
// Numbers of a program: its results by name, in f64. Inputs are random, by the numbers and uses of the source
// program's parameters (optimizer states: of the program's own), so every plan of one source sees the same
// ones. In `a`.
typedef struct {
  u32 n;
  const char **name;
  eval_array *v;
} plan_numbers;
// Gradients are compared in size with gradients, weights with weights: by what the name ends in.
typedef enum {
  RESULT_PLAIN,
  RESULT_GRAD,
  RESULT_M,
  RESULT_V,
  RESULT_R,
  RESULT_C,
  RESULT_MASTER,
  RESULT_NEW,
  RESULT_KINDS
} result_kind;
result_kind plan_result_kind(const char *name);
bool plan_evaluate(const prog *src, const prog *p, u64 seed, arena *a, plan_numbers *out);
typedef struct {
  const char *name;
  u32 result;    // its number, from 0
  i64 elems, at; // at: the element (row-major) with the largest relative difference
  i64 told;      // elements that are other numbers on other inputs: the rest say nothing about the plan
  i64 odd;       // infinite or not a number
  double max_abs,
      max_rel;   // relative to the larger of the two, where that is more than rounding (compare.c says how)
  double spread; // most that an element which tells nothing is away from what it is on other inputs
  bool rounding; // zero in exact arithmetic, say: no further from the model's than that is on other inputs
} verify_row;
typedef struct {
  bool passed; // equal, and told
  bool stale;  // compared with one device that has the plan's staleness, as updates are between tasks
  bool told;   // the results depend on the inputs, so equal results say that the plan is right
  double worst, tolerance;
  u32 nrows;
  verify_row *row;    // one for every result; the worst first
  const char *shrunk; // "" or what was made smaller to fit: "2048 -> 8 (h.0.mlp.up[1]), ..."
} verify_report;
// Compares results by name; E_DIFFERS names the worst. tolerance 0: 1e-9. False only if the two have
// different results. Takes every result to tell.
bool plan_compare(ctx *c, const plan_numbers *want, const plan_numbers *got, double tolerance, arena *a,
                  verify_report *r);
// What differences count relative to at least, by result (compare.c says why). In `a`.
const double *plan_scales(const plan_numbers *x, arena *a);
double plan_element(const eval_array *x, i64 k); // as a double
// ---- does a comparison tell? (tell.c) ---------------------------------------------------------------------
// Counts what differs between `want`, with its scales, and the same program's results on other inputs.
void plan_tell(const plan_numbers *want, const double *scale, const plan_numbers *other, verify_report *r);
bool plan_all_told(const verify_report *r);
// After plan_tell: marks results above the tolerance that are nothing but rounding, takes them out of `worst`, sorts them
// behind the others, and sets r->passed.
void plan_rounding(verify_report *r);
// W_UNTOLD for results that do not depend on the inputs or are not finite; E_UNTOLD, and no longer passed, if
// no result, or no gradient where there are gradients, does.
void plan_judge(ctx *c, loc where, const plan_numbers *want, verify_report *r);
typedef struct {
  u64 seed;
  double tolerance; // relative; 0: 1e-9
  i64 memory_bytes; // of the evaluator; 0: 1 GB. What needs more is shrunk letter by letter under the same
                    // plan
  double points;    // of all iteration spaces, forward; 0: 2e9, or any where memory_bytes is said. The same
} verify_opts;
// Every output, gradient, updated weight and state of the distributed program against the single-device
// program's. False and diagnostics if that was not possible; r->passed, with E_DIFFERS if it is false, says
// how it ended.
bool plan_verify(planner *pl, const plan *pn, cost_model *k, const verify_opts *o, arena *a,
                 verify_report *r);

// ---- text -------------------------------------------------------------------------------------------------
void plan_print(const prog *src, const plan *pn, strbuf *out);       // YAML; docs/plans.md
void plan_put_train(const optim_opts *o, bool masters, strbuf *out); // its line about training
// NULL and diagnostics; E_PLAN_MODEL, before anything else is read, if the text has the fingerprint of
// another program.
// model: what users call src; NULL: it has no name.
plan *plan_parse(arena *a, const prog *src, const char *model, sym file, const char *text, size_t n);
// What a plan depends on in a program: operators, what they read, shapes, element types, names of functions
// and inputs.
u64 plan_fingerprint(const prog *src);

// ---- between groups (move.c) ------------------------------------------------------------------------------
// How a tensor gets from layout `from` on group g to layout `want` on another group: converted on g to
// `sent`, sent so that it arrives as `got`, converted there to `want`. The cheapest of the routes that
// docs/design/communication.md lists; with `how` not MATERIALISE_INTER no other than the plain one, whose `sent` is what is
// there without sums and `got` what is wanted. cost in picoseconds of k, or with k NULL in elements moved, those
// between groups times 24, and one a hop.
typedef struct {
  layout sent, got;
  double cost;
} route;
route route_find(prog *p, const shape *s, group g, layout from, group to, layout want, materialise_way how,
                 cost_model *k);
// What one route costs; INFINITY if it is none.
double route_cost(prog *p, const shape *s, group g, layout from, group to, layout want, materialise_way how,
                  const route *r, cost_model *k);

// Value v of a function, brought to layout `want` on a group as a plan would: converted, sent where the group is another
// one, converted. At the end of the function. 0 and diagnostics: there is no way.
value plan_move(prog *p, func f, value v, group to, layout want, materialise_way how, cost_model *k);

// ---- the program of one rank (lower.c) --------------------------------------------------------------------
// Functions at the local shapes of the rank, on groups of one rank; instructions in which it takes no part
// are gone; who its communication is with stands in the attributes peers, gives and gets
// (docs/design/communication.md). Reads and prints like any program; cannot be run alone. NULL and
// diagnostics (E_RANK, E_LIMIT).
prog *plan_lower(const prog *distributed, u32 rank);

// Bytes that a send moves between different ranks, for one microbatch.
double plan_send_bytes(prog *distributed, const func_info *f, const instr *send);
// The same task graphs, in `a`, with what their bridges move in the distributed program (bridges.c).
plan_task_graphs *plan_bridges(prog *distributed, arena *a, const plan_task_graphs *t);

// ---- what devices get (given.c) ----------------------------------------------------------------------------
// Of one rank: its part of all products, samples of a step (the least and the most, where it has several stretches of
// main), calls of main.
typedef struct {
  double work;
  i64 samples[2];
  u32 layers;
  bool any; // else it has no part in the plan
} rank_given;
typedef struct {
  u32 nranks;
  bool cut; // some ranks have only some of the layers
  const rank_given *rank;
} plan_given;
plan_given plan_given_of(planner *pl, const plan *pn, i64 batch, arena *a); // batch 0: not known
double *plan_products(planner *pl, arena *a); // flops of the products of main's instructions, forward
// Of the ranks of one kind of device.
typedef struct {
  const char *name;
  u32 ranks;
  const char *gets;              // each of them: "5 to 6 samples, 7 layers"; "nothing"; NULL: not known
  const char *apart;             // machine_apart; NULL: they are not
  double work;                   // part of the products; below 0: not known
  double computes, communicates; // of the step, mean over its ranks
  double
      one_more; // the step without any waiting with one device more, relative; 0: not known, or not all of them work
  i64 peak_bytes, usable_bytes;
} plan_kind;
typedef struct {
  const machine *m;
  const plan_given *given; // NULL: not known
  const double *speed;     // by kind, samples a ps of a device that never waits; NULL: not known
  u32 first, ranks;        // so many of the machine, from first
  bool unused;             // those that the program leaves out count, too
  i64 memory_bytes;        // limit of every device; 0: its own
} plan_kinds_opts;
double plan_speed_of(const plan_kinds_opts *o,
                     const sim_result *r); // samples a ps of all of them; 0: not known
// Kinds that have ranks, in `a`. Returns how many.
u32 plan_kinds_of(arena *a, const plan_kinds_opts *o, const sim_result *r, const plan_kind **out);

// ---- policies (plan/policy/*.c), all from the mechanism above ---------------------------------------------
// Schedules that were read from files, for many plans: never changed, so for all threads.
typedef struct {
  u32 n;
  const struct schedule_file *v;
} schedule_files;
// What an axis splits in every operator, in place of what tp, tables and sp of a strategy say (policy_auto).
typedef struct {
  u32 n;
  const plan_trans *v; // the axis is the plan's
  u32 nagain;          // computed again in the backward, besides
  const struct plan_again {
    func fn;
    u32 instr;
  } * again;
} plan_splits;
typedef struct {
  strategy s;               // what is chosen
  const strategy_set *said; // where it was said, for messages; NULL: nowhere
  bool train;
  optim_opts optim;
  bool keep_gradients;
  bool no_order;               // the plan's sequences are left out: plan_line and plan_apply make them
  const schedule_files *files; // NULL: a file that the strategy names is read
  const plan_splits *splits;   // NULL: as the strategy says
  bool keep_layers;            // policy_auto: stages are those of the strategy, whatever their times
  i64 least_bytes;             // policy_auto_within: taken off the memory for what estimates do not know
  cost_model *k;               // what `auto` asks how long things take; NULL: `auto` is refused
  i64 memory_bytes;            // ... and how much there is: of every rank; 0: its device's own, -1: no limit
  cuts_wanted cuts;            // ... and which cuts layers=auto stands for
  bool *none_fit;              // of CUTS_TO_TRY, set if no cuts can fit; NULL: not asked
} hybrid_opts;
// The plan of a strategy. NULL and diagnostics if it cannot be: it does not divide, or strategy_settle
// refuses it (mbs must be settled before, where the batch is known).
plan *policy_hybrid(planner *pl, arena *a, const hybrid_opts *o);
// The same in steps, of a settled strategy and without a name. Unordered: all but the order of tasks, the
// streams of sends, and stages. Ordered: these two; *file: the schedule of the file that says it, or NULL.
// Staged: the rest. What a plan had stays as it was, so one plan without order can be copied for every
// strategy that differs in nothing else, with its stages where no file says where they lie.
plan *policy_unordered(planner *pl, arena *a, const hybrid_opts *o);
// `auto` and `whale` of a settled strategy made into numbers: devices of different speed end together (balance.c).
// False and a diagnostic: there is no machine, a microbatch has fewer samples than there are data ranks, whale's shares leave a rank without any or do not
// fit, or there are fewer layers than whale's stages. Numbers are in `a`. The same machine gives the same numbers.
bool policy_balance(planner *pl, arena *a, const hybrid_opts *o, strategy *s);
// Samples a ps that one device of each kind of the machine gets through, at the microbatch and with the
// tensor parallelism of a settled strategy, if it never waits; 0: not known. False: that of a kind which the
// strategy uses is not.
bool policy_speeds(planner *pl, arena *a, const hybrid_opts *o, double *speed);
// plan_busy of a strategy of one stage, on these ranks in place of the first (NULL), where backwards are in as many parts as in the row (NULL: in one). Of every one-stage measurement.
bool policy_busy(planner *pl, arena *a, const hybrid_opts *o, const u32 *ranks, const sched_row *row,
                 sim_busy *out);
i64 policy_batch_extent(planner *pl); // samples that the program takes; 0: it has no batch
bool policy_ordered(planner *pl, arena *a, plan *pn, const hybrid_opts *o, const sched **file);
bool policy_staged(planner *pl, arena *a, plan *pn, const hybrid_opts *o, const sched *file);
// Last, the replicas that the schedule runs and where their stages lie; and what a row says of fewer stages than the
// plan has segments (plan_unrolls). False and diagnostics.
void policy_replicas(arena *a, plan *pn, const strategy *s, const sched *file);
bool policy_unrolled(ctx *c, arena *a, plan *pn, const hybrid_opts *o);
// The plan of replicas of different make-up (replicas.c), but for what does not depend on degrees: with its stages and its order.
bool policy_make_up(planner *source, arena *a, plan *pn, const hybrid_opts *o);
// Of all but its name: equal plans of one source are the same program, in whatever session. unordered: of all
// but order and sends.
u64 plan_hash(const ctx *c, const plan *pn);
u64 plan_axis_hash(u64 h, const plan_axis *x);                  // h with its size and shares
void plan_axis_key(arena *a, key_words *k, const plan_axis *x); // likewise
// Splits of instructions over an axis, or, 0, over any, with their axes.
void plan_choices_key(arena *a, key_words *k, const plan *pn, u8 axis);
u64 plan_hash_unordered(const ctx *c, const plan *pn);
u64 plan_hash_ordered(const ctx *c, const plan *pn, u64 unordered); // plan_hash from that
// Its parts, each adding to a plan whose axes and meshes exist. axis: 1-based into pn->axes.
bool policy_batch(planner *pl, arena *a, plan *pn,
                  u8 axis); // the batch of every input over an axis (space or time)
bool policy_batch_part(planner *pl, arena *a, plan *pn, u8 axis, u32 which); // or a minor index of it
bool policy_split_tensors(planner *pl, arena *a, plan *pn, u8 axis,
                          const strategy *s); // tp, tables and sp of it
// Work of main's instructions, of what plan_products has. again: the backward computes layers again.
double *policy_work(planner *pl, arena *a, bool again);
// segments on the coordinates of axis, one for each stage of the schedule, as `layers` says; at: where it
// says so
bool policy_stages(planner *pl, arena *a, plan *pn, u8 axis, const strategy *s, const sched *file, loc at);
// A letter of every matmul with a weight, found from the laws (tensor.c has the rule). What cannot be divided
// is refused (E_DIVIDE), but for what stays whole by that rule.
bool policy_tensor(planner *pl, arena *a, plan *pn, u8 axis, bool whole_tables);
// Rows or columns of tables over the axis in place of all that (axial.c). Refused where no function has a table, and where
// neither divides.
bool policy_axial(planner *pl, arena *a, plan *pn, u8 axis);
// The same of a part of the program: within[f] tells by instruction of function f, from 0, what is of it;
// NULL: all. Calls that are not of it are not entered.
typedef enum {
  TENSOR_ALONE,
  // The axis splits the batch around these instructions, so a matmul along which the split cannot go on (a router) is
  // left to that, where it would be summed over.
  TENSOR_SHARED,
  TENSOR_LEAVES, // such a matmul is left whole, and there need not be any other
} tensor_rest;
bool policy_tensor_within(planner *pl, arena *a, plan *pn, u8 axis, bool whole_tables,
                          const bool *const *within, tensor_rest rest);
// What lies on all places of an interlaced pipeline (interlaced.c), by instruction of main from 0: all before `head`, all
// from `tail` on, and some between. False and a diagnostic: there are no layers, or nothing on one side of them.
typedef struct {
  u32 head, tail;
  bool *wide;
} wide_parts;
bool policy_is_interlaced(const strategy *s);
// Are backwards in two parts, I and W? Of a schedule file, which nobody has read: `file`.
bool policy_splits_backward(const strategy *s, bool file);
bool policy_wide_parts(planner *pl, arena *a, const strategy *s, loc at, wide_parts *out);
// Layers that main passes three times, the last time alone with gradients (passes.c): how many a pass has. *rest: so many
// instructions behind a pass, before what has gradients, may stay with it. 0 and a diagnostic: there are no such passes.
u32 policy_passes(planner *pl, const strategy *s, bool train, loc at, u32 *rest);
// Splits it over the axis of places, where that can be.
bool policy_split_wide(planner *pl, arena *a, plan *pn, u8 axis, const strategy *s, loc at);
bool policy_sequence(planner *pl, arena *a, plan *pn, u8 axis); // what tensor left whole, over the sequence
// Drops what the plan says is computed again where the backward has no use for it, or makes it again anyhow. What
// it leaves is the same program.
void plan_drop_marks(planner *pl, plan *pn);
// The same of how values move (materialise, buffers, channels), where stages and what they read show that it makes no
// difference (ways.c). Last of all.
void plan_drop_ways(planner *pl, plan *pn);
// parts of the batch that batch norm is to take its statistics over; 0: as the model says
u32 policy_batchnorm(const batchnorm_stats *has, const strategy *s);
// Sequences of all places: the schedule that the strategy names, or that its file has. at: where it says so.
// *file: the file's; NULL: there is none, and stage s lies on place s mod pp. False and diagnostics if the
// figures do not go together, or the file has what is not planned.
bool policy_schedule(planner *pl, arena *a, plan *pn, const strategy *s, const hybrid_opts *o, loc at,
                     const sched **file);
// The plan of the program's annotations and of a file of them (text NULL: none; docs/annotations.md), with the choices of
// o->s that o->said says beside them (NULL: none). devices: how many there are; 0: as the file says, else those of the machine of o->k, else one
// replica of the model. NULL and diagnostics, located in program or file.
plan *policy_annotated(planner *pl, arena *a, sym file, const char *text, size_t n, const hybrid_opts *o,
                       u32 devices);
bool annotations_in(const prog *p); // does the program say any of its own?

// ---- one split for every operator (policy/auto.c, docs/auto.md) ---------------------------------------------
// Rules of a YAML file (splits_rules.c). NULL and diagnostics (E_RULES), located in it. In `a`.
typedef struct splits_rules splits_rules;
splits_rules *splits_rules_read(planner *pl, arena *a, sym file, const char *text, size_t n);
// The node that a rule names an instruction by, with * for what differs between the calls of its function: `/blocks.*/q/MatMul`. NULL: there
// is none. In `a`.
const char *splits_node(arena *a, const prog *p, func f, u32 index);
// Does every rule about degrees leave one that plans of so many devices have, from 2 and a divisor of them (some: or of fewer,
// as plans may leave devices out)? False and diagnostics at those that do not, with the degrees that there are.
bool splits_rules_fit(const splits_rules *x, u32 devices, bool some);
// What solves the problem of one function (splits.h): dynamic programming, and Markov chains where it gave up states, the
// better of the two; or one of them alone.
typedef enum { SPLITS_BOTH, SPLITS_EXACT, SPLITS_MCMC, SPLITS_METHODS } splits_method;
extern const char *const splits_method_names[SPLITS_METHODS];
typedef struct {
  const splits_rules *rules; // NULL: none
  splits_method method;
  u64 seed, proposals; // of chains; proposals 0: SPLITS_PROPOSALS for every function
} auto_opts;
typedef struct splitter splitter;
splitter *policy_auto_new(planner *pl, bool train, const auto_opts *how);
void policy_auto_free(splitter *x);
// An operator and how it is split.
typedef struct {
  func fn;
  u32 instr;          // number from 1
  bool whole, sum;    // not split; a sum passes through
  bool follows;       // decomposed, as its operand comes
  const char *letter; // else: the letter of its law, and what is split
  u32 operand;
  bool result;
  u8 dim;
  i64 extent;
} auto_row;
typedef struct {
  plan_splits splits;
  choice_value layers; // of the stages; of one stage the default
  i64 time_ps;         // of a step, from its parts: what degrees are compared by before any is simulated
  i64 bytes;           // of the fullest rank, likewise
  bool fits;           // in the memory of the devices, by `bytes`
  bool exact;          // the best of all assignments by these prices
  bool walked, better; // by Markov chains; they found a better one than the dynamic program
  u64 points;          // looked at
  u32 nrows;
  const auto_row *row;
} auto_plan;
// For the degrees, microbatches and storage of a settled strategy with tp > 1, on the machine of o->k: the fastest
// split, whether it fits or not. False: there is none (an operator in a function that is not read; no price), or *ruled_out (may be NULL):
// it is slower than most_ps, by auto_plan.time_ps; 0: it may be as slow as it is.
bool policy_auto(splitter *x, arena *a, const hybrid_opts *o, i64 most_ps, bool *ruled_out, auto_plan *out);
// No split of these is faster, by the same estimate: operators alone in their cheapest ways, in stages that are as long. 0: nothing is
// known.
i64 policy_auto_least(splitter *x, const hybrid_opts *o);
// Of a program of few operators, all in main: the plans that are fastest by estimates, of all assignments, the fastest first; at most
// so many. How many; 0: there are more operators.
enum { AUTO_FEW = 8 };
u32 policy_auto_few(splitter *x, arena *a, const hybrid_opts *o, u32 most, auto_plan *out);
// The fastest that fits the memory of o, less o->least_bytes; else the smallest.
bool policy_auto_within(splitter *x, arena *a, const hybrid_opts *o, auto_plan *out);
// Do the rules allow plans that split nothing over so many ranks? out: what is computed again; stages as the strategy says.
bool policy_auto_whole(const splitter *x, arena *a, u32 ways, auto_plan *out);
// Of degrees for which there was none: says which operator the rules leave no way. False: it was not for that.
bool policy_auto_tell(const splitter *x);
// By place of the pipeline: microbatches whose activations it keeps at once when it has most, under the schedule of a settled
// strategy (plan_live); of several stages on a place their mean, rounded up; without a backward none. What estimates of memory
// count with. NULL: there is no such schedule.
const u32 *policy_alive(planner *pl, arena *a, const hybrid_opts *o, const strategy *s);
// Reads every file that a strategy set names into `a`, and notes in the set what strategies need to know of it
// (choice_is_interlaced). False and diagnostics if one cannot be read, or deadlocks.
bool policy_schedule_files(ctx *c, arena *a, strategy_set *set, schedule_files *out);
bool policy_schedule_read(ctx *c, arena *a, hybrid_opts *o); // likewise of one, unless `files` has it
// Has the schedule of a settled strategy the sizes that its row asks for; does it run? Else a diagnostic. Files are not asked.
bool policy_schedule_fits(ctx *c, const strategy *s, bool train);
bool policy_schedule_runs(planner *pl, const strategy *s, bool train);
const char *policy_schedule_name(u32 i);                 // NULL past the last
bool policy_schedule_named(const char *name, u32 *word); // by any of its names; false: none
void policy_zero(plan *pn, u8 axis, u32 level);
void policy_sync(plan *pn, u8 axis, const strategy *s); // servers over the axis, as sync says
bool policy_wide_gradients(const prog *src,
                           const strategy *s);           // are gradients of half-precision weights in f32?
void policy_sums(ctx *c, plan *pn, const strategy *s);   // stream of sums of gradients, as overlap says
void policy_sends(ctx *c, plan *pn, const strategy *s);  // streams of sends, as overlap and channels say
void policy_trans_room(planner *pl, arena *a, plan *pn); // for one trans more of every instruction, in `a`
bool policy_recompute(planner *pl, arena *a, plan *pn, choice_value what);
// What lies in host memory (offload.c): plan.offload of a strategy. False and a diagnostic if there is no such thing or memory.
const char *plan_offload_absent(const prog *src, const plan *pn, u32 word); // why not; NULL: it has
bool policy_offload(const prog *src, plan *pn, const hybrid_opts *o);
// Another axis of a plan that has room for it; returns its number, from 1.
u8 plan_add_axis(ctx *c, plan *pn, const char *name, u32 size, bool temporal);
// Heads and hidden units in parts (coshard.c): plan.coshard of a strategy. fits: false and a diagnostic if what a tensor
// rank has of them does not divide. again: parts are computed again in the backward. tensor: what parts are cut from is
// split as their operands are over the axis, after policy_tensor.
u32 policy_coshard_parts(const strategy *s);
bool policy_coshard_fits(planner *pl, const strategy *s, loc at);
void policy_coshard_again(planner *pl, arena *a, plan *pn);
void policy_coshard_tensor(planner *pl, arena *a, plan *pn, u8 axis);
#endif
