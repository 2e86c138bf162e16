// internal.h - what the files of plan/ share; others include plan/plan.h.
#ifndef HEDDLE_PLAN_INTERNAL_H
#define HEDDLE_PLAN_INTERNAL_H
#include "plan/plan.h"

// ---- sharding one function (shard.c) ----------------------------------------------------------------------
typedef struct {
  u8 axis, letter;
  bool weak, result; // result: the plan named a dimension of the result
  u16 table;
  i64 stride;
} choice;                        // axis splits letter at stride
extern const layout LAYOUT_FREE; // a parameter that takes the layout its first consumer needs
typedef struct {
  func dst;
  const layout *in;
  const bool *stored;
} sharded; // layouts of the parameters, free ones resolved

// A stretch of main in periods that do the same with weights of their own, see layers.c.
typedef struct {
  u32 from, len, times; // from: instruction, from 0
} layer_run;

typedef struct {
  func fn;
  u32 instr; // number from 1
  bool idle; // it makes no difference: see plan_drop_marks
} plan_mark;
typedef struct {
  diag_item d;
  diag_part_item hint[2];
} refusal;
typedef struct {
  const sched_row *row;
  sched_shape shape;
  u64 key;   // 0: refused, or not asked for
  bool fits; // there is one
  u32 refusal;
  const u32 *live;
} planned_schedule;

// A source program with what does not depend on a plan: laws of its instructions, gradients of its functions.
struct planner {
  prog *src;              // the caller's forward program, extended with stage, gradient and update functions
  arena *a;               // laws, stage sources, gradient descriptors
  VEC(const law **) laws; // per function, per instruction; NULL until asked
  VEC(struct stage_source *) stage_sources;
  VEC(grad_pair *) grads;
  VEC(func) updates, decomposed;
  hmap source_map, like_map, schedule_map;
  key_table decompose_keys, grad_keys, update_keys, kept_keys;
  const classes *classes;
  VEC(struct {
    u32 n;
    const plan_trans *v;
  })
  kept;
  VEC(struct planner *) forms; // of the same program in other forms; what follows says which this one is
  u32 groups;                  // of the batch, for batch norm; 0: as the program came
  u32 coshard,
      first_part; // parts of heads and hidden units, and the first function of one; 0: as the program came
  bool fused;     // attention without scores
  bool indices_known;
  u32 nindices;
  coshard_index *indices; // pass_coshard_of
  u32 nmarks;
  plan_mark *mark;    // instructions that the backward computes again
  bool idle_known;    // of marks
  const u32 *periods; // per run of the longer program: how many are left; NULL: all
  u32 nfuncs;         // functions of the program as it came
  bool *cone;         // per instruction of main: depends on constants alone, or is read by nobody (forms.c)
  uses uses;          // of main's values: waiting counts, as a stage hands over what another one waits for
  VEC(planned_schedule) schedules;
  VEC(struct {
    planner_ends of;
    const u32 *end;
  })
  ends;
  VEC(struct {
    planner_key key;
    const double *v;
  })
  times;
  hmap times_map;
  batchnorm_stats batchnorm;
  VEC(u32) inputs; // parameters of main that are inputs or labels
  VEC(refusal) refusals;
  VEC(u32) refused; // by refusal_keys: number of the refusal
  key_table refusal_keys;
  grad_memo *memo; // gradients of functions called by several stage sources
  VEC(layer_run) runs;
  bool runs_known;
  const struct model_parts *parts; // measured.c; NULL until asked
};

// ---- fewer layers (layers.c) ------------------------------------------------------------------------------
// Instructions [from, from + len) of the shorter main, from 0, stand for `more` times as many others as well;
// those before them, [from - len, from), do the same.
typedef struct {
  u32 segment, from, len, more;
} layer_span;
typedef struct {
  planner *pl; // of the shorter program, kept with the longer one's
  plan *pn;
  VEC(layer_span) span; // one after the other
} fewer_layers;
// The plan over four of the equal layers that a stage has. False: no stage has more, or not every one is like
// the others under the plan. In `a`.
// Do two replicas mirror each other on the places (schedule.c)?
bool plan_is_mirrored(const plan *pn);
bool plan_fewer_layers(planner *pl, const plan *pn, arena *a, fewer_layers *out);

// What a stage computes, whatever the plan splits: a stretch of main as a function, with its gradient. Inputs
// are values of main: parameters or earlier results.
typedef struct stage_source {
  u64 key;
  func fwd; // weights first, then the other inputs -> outputs
  // The first stage source with the same function, but for names and origins; itself
  const struct stage_source *like;
  u32 n;             // instructions
  const u32 *origin; // of each of them
  u32 nweights;
  value *weight; // values of main: parameters of role WEIGHT
  u32 ninputs;
  value *input; // other values of main
  u32 noutputs;
  value *output; // values of main made here that are used later or returned
} stage_source;
// Instructions from..to of main (numbers from 1). Instructions that depend on constants alone are copied into
// every stage source that uses them. Cached.
stage_source *planner_stage(planner *pl, u32 from, u32 to);
// The last instruction of main, from 1, that reads value v or waits for it; 0: none; one more than there are: it is returned.
u32 planner_last_use(const planner *pl, value v);
const grad_pair *planner_grad(planner *pl, func f, const grad_opts *o); // kept by f and o; NULL if refused
// Microbatches of an update between tasks; 0: one update, when all tasks have ended.
static inline u32 plan_update_group(const plan *pn) {
  return pn->train && pn->made.row ? sched_update_group(pn->made.row, &pn->made.shape) : 0;
}
// Do gradients go into accumulators? With one microbatch only if they are stored in pieces (ZeRO 2 and 3).
static inline bool plan_accumulates(const plan *pn) {
  return (pn->time && pn->axes[pn->time - 1].size > 1 && plan_update_group(pn) != 1) ||
         pn->nstorage[STORAGE_GRAD];
}
// The update of n weights as a function: (w.., g.., states..) -> (w'.., states'.. [, g..]), the states of one
// kind for all weights that have it, then those of the next. Cached by types.
func planner_update(planner *pl, const value *weight, u32 n, const plan *pn);
// ---- other forms of the source program (forms.c) --------------------------------------------------------
// The planner of the same program with the instructions marked that the plan computes again. Kept, and freed
// with pl.
planner *planner_marked(planner *pl, const plan *pn);
prog *planner_program(const planner *pl);    // its source without what it has added
planner *planner_form(planner *pl, prog *p); // of p, which it takes; kept, and freed with pl

// The program of a plan's first microbatches of each replica alone, `most` of them; 0: of all, and verified.
prog *plan_apply_first(planner *pl, const plan *pn, cost_model *k, u32 most);

// One application of a plan.
typedef struct {
  u32 n;
  const choice *v;
} choice_list;
typedef struct {
  double cost;
  u32 n;
  layout_step *step;
} path_entry;
typedef struct seen_forward {
  u32 n;
  layout lay[3];
  const shape *shape[3];
  bool weight[3];
  struct seen_forward *other; // in other layouts before
} seen_forward;               // operands of a forward instruction as last sharded
typedef struct apply {
  u32 before;          // diagnostics that there were
  planner *pl, *asked; // asked: that the caller has; pl: its own for the plan's groups of batch norm
  const plan *pn;
  prog *src, *p; // from, to
  arena *a;      // scratch of this application
  cost_model *k;
  u8 axis[AXES_MAX];     // plan axis (1-based) -> axis of p's space
  u64 batch_axes;        // axes of p's space that split inputs of main, as bits
  mesh *mesh;            // plan mesh -> mesh of p
  choice_list *choices;  // explicit choices by origin
  seen_forward *seen;    // by origin
  VEC(attrset) attr_map; // source attribute set -> p's (0: not yet)
  VEC(u32) data_map;     // constant elements likewise
  VEC(sharded) variants; // sharded functions by the hash of how they are called
  key_table variant_keys;
  VEC(path_entry) paths;
  key_table path_keys;
  bool storage_split[STORAGE_KINDS]; // was anything of the kind sharded in storage?
  bool update;                       // sharding an update function: sums over time are complete
  plan_trial_result *trial;          // counting work and traffic (plan_trial)
  u8 trial_axis;
  bool *trial_split;
} apply;

// Axes, meshes and choices of the plan in a new program. Closed in any case: the program, or NULL and freed
// unless ok.
bool apply_open(apply *x, planner *pl, const plan *pn, cost_model *k);
prog *apply_close(apply *x, bool ok);
// The diagnostics from number `from` on refuse the plan: those without a location get the plan's, and one
// that lies in the model a note that names the entry of the plan behind it. Nothing if no text made the plan.
void plan_point(const prog *src, const plan *pn, u32 from);
// Says that a value cannot get from its layout to another one.
void plan_no_way(const prog *p, loc where, const type_info *t, layout to);
// Is an operand that microbatches have pieces of needed whole in time? Then says so, and why.
bool plan_whole_in_time(const apply *x, const instr *in, u32 operand, layout have, layout need);

// How a source function is to be sharded. in[]: layouts in which parameters arrive (LAYOUT_FREE: weights and
// accumulators that take what their first consumer needs, plus the axes of storage[]); stored[] (or NULL):
// weights whose splits over storage axes claim no role. demand[] (or NULL): layouts in which results must
// leave (LAYOUT_FREE: as they come, LAYOUT_SUMMED: no partial sums over space). g: a group it is called on.
// pack: ranges of parameters that arrive as one tuple each; pack_results: so many last results leave as one
// tuple.
typedef struct {
  u32 first, count;
} pack_range;
typedef struct {
  func f;
  const layout *in;
  const bool *stored;
  const layout *demand;
  group g;
  const pack_range *pack;
  u32 npack, pack_results;
  u32 acc,
      nacc; // the last nacc results continue the accumulators that parameters acc.. are, in their layouts
  u32 own;  // functions with different numbers here are not shared; 0: any
} shard_call_of;
extern const layout LAYOUT_SUMMED;
// Cached by all of the above. false and diagnostics if it cannot be done.
bool shard_function(apply *x, const shard_call_of *c, sharded *out);

// ---- layouts (convert.c) ---------------------------------------------------------------------------------
// All that sharding looks at in a group, as a key: its mesh, and which axes are free. Functions and paths are
// shared by groups that agree.
void group_put_free_axes(arena *a, key_words *k, const space *sp, group g);
// v converted to a layout by the cheapest chain of communications, emitted at b; v itself if nothing is to be
// done. 0: impossible.
value shard_convert(apply *x, builder *b, value v, layout to, group g);
value shard_complete(apply *x, builder *b, value v);
extern const opcode step_op[]; // of a step_kind
enum { PATH_STEPS = 16 };
// The cheapest chain of communications between two layouts on a group, or the plain one: by the time they take on the
// machine, or with k NULL by elements moved. Number of steps written, -1: there is none. *cost in ps or elements.
int plan_path(const prog *p, cost_model *k, materialise_way how, const shape *s, layout from, layout to,
              group g, layout_step steps[PATH_STEPS], double *cost);
// l with further splits over the axes of the plan's storage[what] that g has, each on the first dimension
// that divides, else in pieces that differ by one element on the largest dimension that nothing splits yet,
// if that has an element for every rank. What is left out then stays whole.
layout shard_storage(apply *x, layout l, const shape *sh, storage_kind what, group g);

extern const char *const plan_storage_name[STORAGE_KINDS]; // in plan files
void plan_put_task(strbuf *b, const sched_task *t); // "F0.3"; of another replica than the first: "F0.3r1"
// Is it a sum of a gradient beside a backward, on a stream of its own (sums.c)?
bool plan_is_sum_beside(const instr *i);
// By function the one that does all that it does but for such sums, or itself; in `a`.
u32 *plan_alike_but_sums(const prog *p, arena *a);
// Is what lies in host memory read by copies to the device alone? Else E_COVERAGE (validate_host.c).
bool plan_check_host(prog *p);
// Do the segments cover main, one behind the other? Else E_PLAN at the segment that does not, with what it can be
// (stages.c). What plan_parse returns does.
bool plan_covers(const prog *src, const plan *pn);
bool plan_check_projections(const prog *p); // plan_check_orders of main's own orders, one rank of each kind

// ---- the model of a plan file (fingerprint.c) -----------------------------------------------------------
void plan_model_print(const prog *src, const char *name, strbuf *b); // "model: {name: ..., program: ...}"
// Is src what the value y of that key says? Else a diagnostic. model: how users call src; NULL: it has no
// name. text: the plan file.
bool plan_model_check(arena *a, const prog *src, const char *model, const ynode *y, const char *text,
                      size_t n);
#endif
