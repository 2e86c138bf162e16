// main.h - the distributed main while it is being built: stages, their functions and values. Private to
// plan/.
#ifndef HEDDLE_PLAN_MAIN_H
#define HEDDLE_PLAN_MAIN_H
#include "plan/internal.h"

// An output of one stage is an input of another one. there, back: per microbatch the value and its gradient
// (NULL: none comes back), as it leaves, then as it came.
typedef struct {
  u32 from, to, input, output;
  u32 dx;       // number + 1 of its gradient among those of the reader's inputs; 0: there is none
  type sent[2]; // as what it arrives, there and back
  u8 strm[2];   // of the sends
  value *there, *back;
} edge;
typedef struct stage_build {
  stage_source *src;
  func f; // what it does: the source's function, or that of one that is like it
  group g;
  u32 segment, replica; // of the plan
  u32 place;            // number of its place, of several the lowest
  sched_places on;      // all of them
  const grad_pair *gp;  // NULL: no backward
  bool acc;             // gradients go into accumulators
  bool *has_dy;         // per output: a gradient comes back
  sharded fwd, bwd, wgt;
  const type *fwd_types, *bwd_types, *wgt_types; // results of a call on this group
  layout *in;                                    // per input of the stage
  const layout *out;                             // per output
  layout *dout;    // per output: layout of its gradient (a value that does not vary in time has partial ones)
  layout *acc_lay; // per accumulator / weight gradient
  u32 nneed_weights;
  value fwd_weights, bwd_weights, wgrad_weights; // packed weights for fwd, bwd, wgt (0: none)
  u32 nforwards, nbackwards;                     // of its tasks so far, where updates are between tasks
  value *fwd_of, *bwd_of;                        // there by version of its own weights; 0: not packed
  value *weight_of;                              // [version * nweights + weight]; 0: not asked for, or gone
  value grads;                                   // packed gradients so far
  u32 nsums;                                     // tasks so far that have added to them
  func last;        // of the last of these, where it sums over data ranks as well; {0}: updates do
  layout *last_lay; // per accumulator: as it leaves `last`
  value ended;      // made last by it; 0: not yet
  type *arg_type;   // per input that is a piece of a parameter: its type, once known
  edge **came;      // per input that another stage makes
  u32 nin;
  edge **ins;   // the same, by producer
  value *arg;   // [input * nmb + mb] as the functions take it; 0: not asked for
  value *res;   // [output * nmb + mb]
  value *dx;    // [input with a gradient * nmb + mb], where it is made
  value *saved; // [mb]
  value *carry; // [mb]
  u32 nedges;
  edge *edges; // consumers, in program order
  value *base; // per input that is a parameter of main: restricted to this group
} stage_build;

// A parameter of main as the stages of one mesh have it: itself on the mesh of the first stage that reads it, its
// home; on other meshes a copy, which is sent there before the tasks. Gradients go home.
typedef struct {
  value of; // of the source's main
  group g;  // all groups of these stages; {0}: nobody reads it
  value v;  // here; 0: not yet
  layout lay;
  u32 next;         // of a copy: the next one of the same parameter in main_build.copies, from 1; 0: none
  bool set, stored; // lay is known; it has splits that claim no role
  u64 some_free, all_free; // axes that some groups, all groups of these stages have
} mesh_param;

// The server of a weight: coordinate `at` of the axis, the ranks of its home there; axis 0: it has none.
typedef struct {
  u8 axis;
  u32 at;
  group g;
} server_of;
enum { SERVERS_MOST = 64 }; // streams of servers

// A weight that is updated between tasks.
typedef struct {
  u32 n;                     // updates so far
  u32 nreaders, first, last; // stages
  u32 sources;               // of these, with gradients of it
  value *came; // [update * sources + 0..ncame[update]): gradients of one that several stages read
  u32 *ncame;
} weight_updates;

// By types: in which layout a value is sent, and as what it arrives.
typedef struct {
  u32 from, to, want;
  layout sent;
  type got;
} known_move;
// An update on the host of the sharded function `of`, of operands of which `host` lie there.
typedef struct {
  func of, made;
  const bool *host;
  const u32 *maker;
} host_update;
typedef struct {
  apply *x;
  VEC(known_move) moves;
  hmap move_map;
  attrset *part_at; // per microbatch: attributes of `part` over time
  u8 send_strm;     // of copies of parameters, and of gradients on their way home
  builder b;
  prog *s, *p;
  const func_info *m; // source main
  u32 K, nplaces;
  u32 nsegments, nreplicas, nstages; // stages: those of the first replica, then those of the next, ..
  u32 most, nmb; // most: microbatches of a replica that are emitted; nmb: of all. K, fewer in a probe
  bool *active;  // per stage, in a probe: is it emitted? NULL: all are
  const u32
      *weight_more; // per parameter of main from 0, in a probe: layers that it stands for as well; NULL: none
  u32 *stage_more;  // per stage: of its functions, a number for what they stand for as well; 0: nothing
  VEC(u32) more;    // (number of an instruction, layers that it stands for as well)
  bool no_ending;   // in a probe: what comes after the tasks is left out, and states with it
  u8 time;          // temporal axis in p, 0: none
  stage_build *stage;
  u32 *stage_of, *out_of; // per value of main: segment that makes it + 1, its output number
  u32 *coord, *point;     // per microbatch that is emitted: which of the step it is; temporal point
  mesh_param *home;       // per source parameter of main
  VEC(mesh_param) copies; // on other meshes
  u32 *first_copy;        // per source parameter of main: its first one, from 1; 0: none
  bool *skip;             // per source parameter: is it left out?
  u32 update_group;       // microbatches of an update between tasks; 0: one update, when all tasks have ended
  value *now,
      *last_grad; // of these, per source parameter: its newest version, the gradient of its latest update
  weight_updates *updates;       // likewise
  server_of *server;             // per source parameter, once main_params has run
  value *state[OPTIM_STATES];    // per source parameter: optimizer states; 0: it has none
  u8 offload;                    // as the plan says; 0 in a probe
  bool host_update;              // likewise
  u8 from_host, to_host;         // streams
  u8 on_host;                    // of updates on the host
  VEC(host_update) host_updates; // that there are
  bool *grad_on_host;            // per source parameter
} main_build;

void main_open(main_build *mb, apply *x,
               u32 most);         // most: microbatches of a replica that are emitted; 0: all
bool main_stages(main_build *mb); // stages.c: groups, stages, gradients, sharded functions
bool main_params(main_build *mb); // ... parameters and optimizer states
bool main_sums(main_build *mb);   // sums.c: stage_build.last, once main_params has run
// schedule.c: the graph of stages, after emit_begin; everything written out in the plan's order.
void main_graph(const main_build *mb, arena *a, plan_graph *g);
bool main_tasks(main_build *mb);
// server.c: the server of every weight, after its home is known; the gradient of a weight on its server; what the update
// made there on all ranks of its home. Of a weight without a server both stay as they are.
void main_servers(main_build *mb);
value main_push(main_build *mb, value w, value grad);
value main_pull(main_build *mb, value w, value updated);
static inline group main_update_group(const main_build *mb, value w) {
  return mb->server[w - 1].axis ? mb->server[w - 1].g : mb->home[w - 1].g;
}
// updates.c: before any task; what tasks of microbatch m read, packed; where updates are between tasks, after the
// backward of m.
bool main_updates_open(main_build *mb);
value main_fwd_weights(main_build *mb, stage_build *s, u32 m);
value main_bwd_weights(main_build *mb, stage_build *s, u32 m);
bool main_update_stage(main_build *mb, stage_build *s, u32 m);
attrset main_update_number(const main_build *mb, value w); // what the call of w's next update says
// finish.c: the update of n weights on one group as one call; by parameter new weights, states by kind, gradients.
bool main_update(main_build *mb, const value *w, u32 n, const value *grad, value *neww, value **news,
                 value *gradout);
// ... gradients of one weight by the stages that read it: their sum where the weight is updated. 0: it has failed.
value main_joined_gradient(main_build *mb, value w, value *grad, u32 n);
bool main_finish(main_build *mb); // finish.c: results, gradients, updates
// ending.c: plan_probed.ending, after main_stages. In `a`; returns how many.
u32 main_ending(main_build *mb, const u16 *alike, arena *a, const u32 **word);
// emit.c: one task after the other, in any order in which what a task needs was made before
void emit_begin(main_build *mb);
value main_on_group(main_build *mb, value v, group g); // restricted to a group within its own
value main_param_here(main_build *mb, value w,
                      group g); // a parameter on a stage's group, as the step finds it
value main_packed(main_build *mb, const value *v, u32 n, group g); // 0: there are none
// The latest instruction is one for weight w's layer, and for those that it stands for.
void emit_one_a_layer(main_build *mb, value w);
shape main_gradient_shape(const main_build *mb, value weight); // of the one that the backwards leave
void emit_before(main_build *mb, stage_build *s);              // weights, pieces of inputs, accumulators
void emit_accumulators(main_build *mb, stage_build *s);
void emit_task(main_build *mb, stage_build *s, task_kind kind, u32 m);
// Of what the task left: to the stage `to` - 1, or, if `to` is 0, to all.
void emit_sends(main_build *mb, stage_build *s, task_kind kind, u32 m, u32 to);
// blocking.c: a line of tasks, with each send where sender and receiver have come to it. order: room for all.
// Returns how many steps.
u32 blocking_line(arena *a, const sched *s, const sched_line *line, sim_order *order);
// schedule.c: one task as steps of a line; more than one if it is a whole backward of a stage that has it in two.
void order_put(const sched *s, sim_order *v, u32 *n, const sched_task *t, bool send);
// Of a backward: what they wait for as well. whole: it was a B, though the stage has its backward in two parts.
value emit_sends_after(const stage_build *s, bool whole);
// offload.c: stages copy what lies in host memory, as they use it. Before main_params.
void main_offload_stages(main_build *mb);
static inline bool main_on_host(const main_build *mb, u8 what) { return mb->offload & what; }
static inline bool main_weight_on_host(const main_build *mb, value w) {
  return main_on_host(mb, OFFLOAD_PARAMS) && mb->m->params.v[w - 1].r == ROLE_WEIGHT;
}
// Values of main on one group, operands with their marks, copied from host memory; the copies come in their place.
void main_fetch(main_build *mb, u32 *opd, u32 n);
void main_store(main_build *mb, value *v, u32 n); // likewise, to host memory
// The update f on the host; host: by operand, ret: by result, is it in host memory? maker: as pass_host_update has it.
func main_host_update(main_build *mb, func f, const bool *host, const bool *ret, const u32 *maker);
// move.c: a value of main on its way to another group, where it is wanted in layout `want`. leave: converted
// to what is sent; *got is the type that arrives. send: sent. Nothing is done on the same group. What came is
// converted by whoever uses it; move does all three.
value main_leave(main_build *mb, value v, group to, layout want, type *got);
value main_send(main_build *mb, value v, type got, u8 strm,
                value after); // after: not before this is made, or 0
value main_move(main_build *mb, value v, group to, layout want);
layout main_filter(const main_build *mb, layout l,
                   group g);                     // what of l can be said on g; sums over space done
bool main_trains(const main_build *mb, value v); // is this parameter of main updated?
// The stage that makes value v of main, in the replica of stage s; NULL: v is a parameter.
static inline stage_build *main_maker(const main_build *mb, const stage_build *s, value v) {
  return mb->stage_of[v] ? &mb->stage[s->replica * mb->nsegments + mb->stage_of[v] - 1] : NULL;
}
// Microbatches of a replica that are emitted.
static inline u32 main_micro(const main_build *mb, u32 replica) {
  return mb->nreplicas == 1 ? mb->nmb : MIN(mb->x->pn->replicas[replica].micro, mb->most);
}
group main_union(main_build *mb, group a, group b); // the smallest group of their mesh that has both; a 0: b
mesh_param *main_param(const main_build *mb, value v,
                       group g); // parameter v on the mesh of g; NULL: not there
bool main_has_copies(const main_build *mb, value v);
type func_result(const prog *p, func f, u32 k); // type of result k
#endif
