// sim.h - time and bytes of a program: what every rank does, when, and with how much memory. Layer 5.
// Not the prices of instructions (cost/), not numbers (eval/), not real execution (run/).
//
// Idea: time is linear over (max, +). An instruction on resources and values I with duration d that yields O
// does x[o] = max(x[i], i in I) + d. So a function is a linear map, a call applies it, and a schedule is a
// chain of applications: simulating whole functions at once is exact. Ranks that cannot differ are simulated
// once. docs/design/time.md has the reasons and the rules.
//
// The first half of this header is the interpreter of programs; the second half is the engines, which read
// event graphs (durations, resources, predecessors) and know no program, so that replaying a trace uses the
// same ones.
#ifndef HEDDLE_SIM_H
#define HEDDLE_SIM_H
#include "cost/cost.h"
#include "sched/sched.h"
#include "trace/trace.h"

// ---- what is asked ----------------------------------------------------------------------------------
// SIM_FLAT: every instruction of every rank, calls expanded. SIM_COMPOSED: calls apply the maps of their
// functions. SIM_FOLDED: composed, and ranks that cannot differ are one. All give the same times and bytes,
// to the last bit.
typedef enum { SIM_FLAT = 0, SIM_COMPOSED = 1, SIM_FLAT_FOLDED = 2, SIM_FOLDED = 3 } sim_mode;

// SIM_BYTES_HEDDLE: along every rank's issue order, as a caching allocator sees it: a value lives from the
// instruction that makes it to its last use, calls expanded; views share; donated operands are taken over where the
// operator allows, by all-reduces all that end. SIM_BYTES_DISTIR, for reproducing that simulator
// only: no sharing and no taking over except by optimizers (their results take no room), inputs live for
// ever, results without use are never freed, no rounding.
typedef enum { SIM_BYTES_HEDDLE, SIM_BYTES_DISTIR } sim_bytes;

// Durations in ps of one instruction on the members of group g (group 0, of main only: rank 0): writes one
// and returns 1 if all members are equal, else one per member and returns their number. 0 and a diagnostic:
// impossible.
typedef u32 sim_cost(void *arg, const prog *p, const func_info *f, const instr *i, group g, i64 *ps);

typedef struct {
  u32 result, param;
} sim_carry; // this result of main is that parameter of the next step (from 0)

typedef struct {
  sim_mode mode;
  bool no_bytes, timeline;
  bool critical; // the critical path, summed by instruction
  bool steps;    // and every step of it; then nothing is left out
  bool split;    // what every rank's time consists of
  bool steady;   // also the period of steps that follow each other without a barrier
  sim_bytes bytes;
  i64 round_bytes; // what the allocator rounds up to; 0: as the machine says, 512 without one
  bool peak_only;  // of memory: not by kind, not by value
  u32 top;         // values listed at the peak; 0 = 10
  u32 ncarry;
  const sim_carry *carry; // for steady; none: results that take over a parameter's storage (needs bytes), and
                          // those called "w.new" where a weight or state is w
  // Prices instead of the cost model's: asked once for every instruction of a function on a group
  sim_cost *cost;
  void *cost_arg;
  // Of sim_stages_of: how long the busiest rank works in a step, whatever the schedule. NULL: not asked
  i64 *busiest_ps, enough_ps;
} sim_opts;

// ---- what is answered -------------------------------------------------------------------------------
typedef enum { MEM_PARAM, MEM_GRAD, MEM_STATE, MEM_ACT, MEM_TEMP, MEM_COMM, MEM_KINDS } mem_kind;
// "parameters" "gradients" "optimizer state" "activations" "temporary" "communication"
const char *mem_kind_name(mem_kind k);
typedef struct {
  func f;
  value v;
  mem_kind kind;
  i64 bytes;
  u32 count;
} mem_item; // count equal ones in one function

// A rank class is a set of ranks that are simulated as one; unfolded, a rank. A stage is a set of ranks that
// take part in exactly the same instructions of main.
typedef struct {
  u32 first_rank, nranks, stage;
  i64 peak_bytes, host_peak_bytes; // on the device; in host memory
  i64 peak_kind[MEM_KINDS];
  u32 peak_at; // instruction of main (number from 1) during which the peak is reached; 0 = at the start
  i64 start_bytes, end_bytes; // before the first and after the last instruction
  u32 ntop;
  mem_item *top; // largest first
} sim_class;
typedef struct {
  u32 nranks;
  // Means over its ranks of the compute stream's time, over the makespan: in computation; in communication
  // that occupies it; in neither. Communication on other streams counts in none of them.
  double busy, comm, bubble;
  i64 peak_bytes; // largest of its ranks
} sim_stage;
typedef struct {
  func f;
  u32 instr; // number from 1
  u32 cls;   // one of the rank classes it occupies
  i64 start_ps, dur_ps;
} sim_step;
typedef struct {
  func f;
  u32 instr, cls; // of the first one
  u32 event;      // within sim/
  group g;        // that it runs on
  i64 dur_ps;
  u64 count;
} sim_like; // steps of the critical path that differ in nothing but when they are
typedef struct {
  u16 op;
  func f;
  u32 instr;
  u64 count;
  i64 total_ps;
} sim_weight; // derivative of the makespan by one cost
// Time in instructions of one kind, mean over all ranks. Those of the compute stream, with `bubble` of the
// result, add up to the makespan.
typedef enum { SPLIT_COMPUTE, SPLIT_RECOMPUTE, SPLIT_UPDATE, SPLIT_COMM } split_kind;
typedef struct {
  split_kind kind;
  cost_work work;   // SPLIT_COMPUTE
  u16 op;           // SPLIT_COMM
  const char *over; // SPLIT_COMM: the axes, "dp,tp"; "" of sends
  bool beside;      // on another stream than computation
  double ps;
} sim_split;
typedef struct {
  cost_row row;
  u64 count;
  i64 ps;
} sim_origin; // instructions on the critical path whose prices come from one row
typedef struct sim_result {
  i64 makespan_ps;
  i64 period_ps; // time per step in steady state, never above the makespan; = makespan unless asked for
  u32 ncarried;  // if steady: results that are a parameter of the next step
  u32 nranks, nclasses, nstreams, nstages;
  u32 nused;        // ranks of meshes; others below nranks have no part in the program, its stages and shares
  const bool *used; // by rank
  const u32 *class_of_rank;
  sim_class *cls;
  sim_stage *stage;
  const i64 *end_ps;                // nclasses x nstreams: when the stream is free
  const i64 *busy_ps;               // nclasses x nstreams: time in instructions
  const i64 *comm_ps;               // of it, in communication
  double utilisation, comm, bubble; // means over all ranks of what sim_stage has as busy, comm, bubble
  double beside;    // likewise of communication on all other streams, which pass at once: it may be above 1
  u64 instructions; // one instruction on n ranks counts n, calls expanded
  i64 peak_bytes;   // of the fullest rank class ...
  u32 peak_class;   // ... this one
  u32 ncritical;
  const sim_step *critical; // if steps: from the start to the end; nothing waits between
  u32 nweights;
  const sim_weight *weight; // the path summed by instruction, largest first
  u32 nlikes;
  const sim_like *like; // distinct steps of the path
  u32 norigins;
  const sim_origin *origin; // the same summed by where prices come from, largest first; without sim_opts.cost
  // One standard deviation of the makespan, of what has a spread: prices of one row are off together, rows by
  // themselves. And how much of the path that is.
  i64 error_ps, spread_known_ps;
  u32 nsplit;
  const sim_split *split; // every kind once
  // one event per rank or, folded, per first rank of a class; the program must live on
  trace_source *timeline;
} sim_result;

// Shares are means over ranks of times that are summed in whole ps first: in whatever order ranks are taken,
// and whether they are folded, it is the same number.
__extension__ typedef __int128 sim_sum;
static inline double sim_mean_share(sim_sum ps, i64 span_ps, u64 ranks) {
  return span_ps && ranks ? (double)ps / ((double)span_ps * (double)ranks) : 0;
}

// Simulates one step of main: all clocks start at 0. Everything in the result is in `a`. k may be NULL if
// o->cost is given. false and diagnostics if an instruction has no price (E_LINK, E_RATE) or the time does
// not fit (E_LIMIT).
bool sim_run(ctx *c, arena *a, const prog *p, cost_model *k, const sim_opts *o, sim_result *r);
// Host memory of the node that lacks most of it, or has least left: what all of its ranks hold there at their peaks
// together. bytes 0: nobody holds any.
typedef struct {
  u32 node, ranks;
  i64 bytes, usable_bytes;
} sim_host;
sim_host sim_host_memory(const sim_result *r, const machine *m);
// Does every rank stay within what its device leaves to programs, and every node within its host memory? Otherwise E_MEMORY for the rank that is
// furthest above, with the largest values alive at its peak. said: by rank, what says what it does, and what else to say; NULL:
// a strategy does.
typedef struct {
  loc at;
  const char *what, *hint;
} sim_said;
bool sim_fits(const prog *p, const machine *m, const sim_result *r, sim_said (*said)(void *arg, u32 rank),
              void *arg);

// What the critical path of a result is made of (cost/cost.h): for every rate, by how many ps a step would be
// shorter if it were a little faster, per relative change: minus d(makespan) / d(log rate). That holds while
// the path stays the longest one and no price changes what it is made of; where several paths are equally
// long it is the derivative of the one that `critical` has. Sums up to the makespan, but for the rounding of
// prices. False if the cost model does not tell.
bool sim_path_parts(const prog *p, cost_model *k, const sim_result *r, cost_parts *out);

// ---- engines: event graphs --------------------------------------------------------------------------
// Nodes in issue order over slots. A slot holds a time: the moment a resource is free or a value is ready.
// Node i occupies the slots ref[occ[i]..in[i]) and waits for ref[in[i]..out[i]); it starts at the latest of
// them, ends dur[i] later, and writes the end to what it occupies and to ref[out[i]..occ[i+1]). A node
// without any starts at 0. A negative duration is a call of site ~dur: another event graph, in a frame of its
// own. A slot is written before it is read, except the input ports and slot 0, which is always 0 and never
// written.
typedef struct sim_graph sim_graph;
typedef struct sim_map sim_map;
typedef struct {
  const sim_graph *sub;
  const u32 *clock; // sub's k-th clock is this slot of the caller
} sim_site; // at the call node, ref[in..out) are sub's other input ports and ref[out..occ of the next) its
            // other output ports
struct sim_graph {
  u32 n, nslot;
  const i64 *dur;
  const u32 *occ, *in, *out; // n + 1, n, n
  const u32 *ref;
  u32 nclock;                    // resources; the first ports, in and out
  u32 nin, nout;                 // ports
  const u32 *port_in, *port_out; // slots
  const sim_site *site;
  u32 nsite;
  const sim_map *map; // NULL: calls of it are expanded
  u64 frame;          // slots that expanded calls inside take, at most, beyond nslot
  i64 nodes;          // with calls expanded and `weight` per occupied resource counted
  const i64 *busy;    // nclock: time that nodes occupy it
  const i64 *comm;    // of it, communication
  i64 total;          // no time exceeds it
  // for reports
  u32 tag, priced; // function; number of (function, group) that it is
  const u32 *what; // n: instruction number from 1; 0 = bookkeeping
  const u32 *clock_class;
  const u8 *clock_stream;
  const u32 *slot_clock; // nslot: number of the clock + 1; 0 = a value. NULL unless a report was asked for
};

// An event graph that is being made, node by node. The references of a node come in this order: what it occupies,
// sim_node_waits, what it waits for, sim_node_makes, what it makes, sim_node_end.
typedef struct {
  arena *a;
  VEC(i64) dur;
  VEC(u32) occ, in, out, ref;
  u32 nslot;
} sim_nodes;
void sim_nodes_begin(sim_nodes *b, arena *a); // with slot 0
static inline u32 sim_slot(sim_nodes *b) { return b->nslot++; }
static inline void sim_ref(sim_nodes *b, u32 slot) { *vec_push(b->a, &b->ref) = slot; }
static inline void sim_node_waits(sim_nodes *b) { *vec_push(b->a, &b->in) = b->ref.n; }
static inline void sim_node_makes(sim_nodes *b) { *vec_push(b->a, &b->out) = b->ref.n; }
static inline void sim_node_end(sim_nodes *b, i64 dur) {
  *vec_push(b->a, &b->dur) = dur;
  *vec_push(b->a, &b->occ) = b->ref.n;
}
// Of plain nodes, without clocks and ports but `end`, an output port: what it is read for. In b's arena.
sim_graph sim_nodes_graph(sim_nodes *b, u32 end);

// Runs the event graph on slots x[nslot] whose input ports are set. frame: c->frame slots. With maps, calls
// apply them.
void sim_flat(const sim_graph *c, i64 *x, i64 *frame);
void sim_composed(const sim_graph *c, i64 *x, i64 *frame);
// The same as sim_flat; tells every node and every call.
typedef struct {
  void *arg;
  void (*node)(void *arg, const sim_graph *c, u32 node, i64 start);
  void (*enter)(void *arg, const sim_graph *c, u32 node); // a call
  void (*leave)(void *arg, const sim_graph *c, u32 node);
} sim_watch;
void sim_flat_watched(const sim_graph *c, i64 *x, i64 *frame, const sim_watch *w);

// ---- ready queues: queue.c ------------------------------------------------------------------------------
// Nodes whose order on a resource is not given: whenever it is free, a resource takes of the nodes that are ready that of
// the lowest rank; of equal ranks that which was ready first; of those the lowest number. (dPRO, MLSys 2022, 4.3, which
// keeps such a queue for every worker, server and link.)
typedef struct {
  u32 n, nres;
  const i64 *dur;          // not below 0
  const u32 *res;          // of every node; TRACE_NONE: needs none, starts when it is ready
  const u32 *rank;         // NULL: all the same
  const u32 *first, *next; // n + 1; nodes next[first[k]..first[k + 1]) wait for node k
} sim_queue;
// Writes start[n] and, if it is not NULL, cause[n]: the node whose end decided when it started, TRACE_NONE: none did.
// Returns the last end; -1: nodes wait for each other in a circle.
i64 sim_queue_run(arena *scratch, const sim_queue *q, i64 *start, u32 *cause);

// The linear map from input ports to output ports as a reduced graph. Number 0 is the time 0, 1..nin-1 are
// the input ports, nin + k is vertex k: the maximum over its edges of (earlier number) + weight. An output is
// a number + weight.
struct sim_map {
  u32 nin, nout, nvert;
  const u32 *edge; // nvert + 1
  const u32 *from; // of every edge
  const i64 *add;
  const u32 *out;
  const i64 *out_add;
};
// Maps of the sites inside are used where they exist. scratch is given back.
const sim_map *sim_map_new(arena *a, arena *scratch, const sim_graph *c);
// The same of nodes [from, to) alone, between slots of the caller's; all other slots are 0 before them.
const sim_map *sim_map_part(arena *a, arena *scratch, const sim_graph *c, u32 from, u32 to,
                            const u32 *port_in, u32 nin, const u32 *port_out, u32 nout);
// y[nin + nvert]: input ports in y[1..nin); outputs to z[nout], outside y.
void sim_map_apply(const sim_map *m, i64 *y, i64 *z);

// One call node: what sim_composed does with it.
void sim_call(const sim_graph *c, u32 node, i64 *x, i64 *frame);

// The path that decides when output port `port` gets its time, last node first: calls tell(arg, ...) for
// every node on it and returns the input port where it begins (SIM_NEVER: at a node that waits for nothing).
// in: times of the input ports. Needs slot_clock. The rank class is that of the clock that let the node
// start.
enum { SIM_NEVER = ~0u };
typedef void sim_emit(void *arg, const sim_graph *c, u32 node, u32 cls, i64 start);
u32 sim_critical(arena *scratch, const sim_graph *c, const i64 *in, u32 port, sim_emit *tell, void *arg);
// ---- pipelines: a schedule of stages ------------------------------------------------------------------
// A *stage* is what one place does for one microbatch: its tasks. Stages that are alike are known by one of
// them. A *probe* is a program whose main runs the tasks of every distinct stage for up to three
// microbatches, with what comes before and after all tasks; pieces say which instructions of main are what.
// From it follow the stages as linear maps over (max, +) and as bytes, and from those what any schedule of
// them takes: the same to the last bit as the program that has all tasks written out.
typedef enum { PIECE_BEFORE, PIECE_TASK, PIECE_SEND, PIECE_AFTER } piece_kind;
typedef struct {
  u8 kind;
  u8 task;        // PIECE_TASK: its kind. PIECE_SEND: 0 there, 1 back
  u16 stage;      // PIECE_BEFORE, PIECE_TASK
  u32 link;       // PIECE_SEND
  u32 mb;         // PIECE_TASK, PIECE_SEND: of the first, second or third of min(nmicro, 3) microbatches
  u32 first, end; // instructions of main, from 0
} sim_piece;
typedef struct { // one value that goes from stage to stage, and its gradient back
  u16 from, to;
  u32 like_from, like_to; // links of the probe that stand for it at the sender, at the receiver
  bool back;              // there is a gradient
  u8 strm[2];             // of the sends there and back
} sim_link;
typedef struct { // instructions [from, from + len) of f, from 0, come `more` times more than they stand there
  func f;
  u32 from, len, like, more; // like: first of as many that do the same, next to them
} sim_span;
// A value that the tasks of a stage leave for what comes after all tasks.
typedef struct {
  u16 stage;
  u32 what; // 0: its gradients; else a result of main for one microbatch, by a number of its own
  value v;  // of main
} sim_left;
// What comes after all tasks, and what ranks hold before the first one. See sim_ending_of.
typedef struct sim_ending sim_ending;
typedef struct {
  u32 nplaces, nstages, nlinks, npieces;
  u32 nreplicas;    // of the schedule. Stages are those of the first, then of the next
  const u32 *micro; // of every replica
  // No place is like another one, and they may differ in size. What comes before the tasks is of all of them together:
  // values go from place to place there. The probe has all stages.
  bool apart;
  // Of what is sent there something is read by several replicas, so the order says which task frees it; or something is
  // sent for every microbatch: no stage tells.
  bool outside;
  u8 sums;            // stream on which the last tasks of stages sum their gradients; 0: none does
  const group *group; // of every place; of one size unless apart
  const u16 *alike;   // of every place: the place in the probe that stands for it
  const u16 *with;    // of every place: that it sums gradients with when all tasks have run; itself: none
  const u16 *place, *like; // of every stage; like: the stage that stands for it, in the probe
  const bool
      *wide; // of every stage: it lies on several places, of which `place` is the first; NULL: none does.
             // Then places are apart
  const sim_link *link;   // by from; between different places only
  const sim_piece *piece; // of the probe
  u32 nspans;             // equal layers that the probe leaves out; 0: then the two below are NULL
  const sim_span *span;   // of functions that main calls
  const u32 *main_more;   // per instruction of main: it comes so many times more
  const u32 *param_more;  // per parameter of main: there are so many more like it
  u32 nleft;
  const sim_left *left;
  const sim_ending *ending; // what comes after all tasks, where the probe leaves it out; NULL: it is a piece
} sim_pipeline;
static inline u32 sim_micro(const sim_pipeline *pl, u32 stage) { // microbatches that it runs
  return pl->micro[stage / MAX(pl->nstages / pl->nreplicas, 1u)];
}
typedef struct {
  bool send;
  bool whole;    // of I and of W, which follows it: both are one backward
  u8 task;       // kind; of a send that of the task it follows: B where I and W stand for it
  u16 stage, to; // to: of a send the stage that it goes to, + 1; 0: all
  u32 mb;
} sim_order; // one step of the line that main is
typedef struct {
  i64 makespan_ps, peak_bytes;
  i64 period_ps;       // time per step in steady state, of a training step; else the makespan
  i64 host_bytes;      // of the node that lacks most host memory
  i64 host_over_bytes; // the most that a node holds beyond its host memory; 0: none does
  i64 over_bytes;      // the most that a rank holds beyond what its device leaves usable; below 0: all fit
  double utilisation, comm, bubble; // as in sim_result
} sim_pipe_result;
// What a device lacks; 0 or less: nothing. limit: bytes of every device; 0: what each leaves usable; below 0: none.
static inline i64 sim_lacks(const sim_pipe_result *r, i64 limit) {
  return limit > 0 ? r->peak_bytes - limit : limit < 0 ? -r->peak_bytes : r->over_bytes;
}
static inline bool sim_within(const sim_pipe_result *r,
                              i64 limit) { // devices, and host memory, of which there is no limit
  return sim_lacks(r, limit) <= 0 && r->host_over_bytes <= 0;
}
i64 sim_over_bytes(const sim_result *r,
                   const machine *m); // the same of a whole simulation; also host memory of nodes
u32 sim_tightest(const sim_result *r, const machine *m); // the first rank that it is of
typedef struct sim_stages sim_stages;
// NULL without a diagnostic: this pipeline is not of a kind that can be known by its stages (groups of
// different size, ranks of a place that do not exchange what they hold member by member, tasks on several
// streams), or o->busiest became more than o->enough_ps; simulate the whole program. NULL with a diagnostic: a
// price is missing.
const sim_stages *sim_stages_of(ctx *c, arena *a, const prog *probe, cost_model *k, const sim_opts *o,
                                const sim_pipeline *pl);
// What comes after the tasks of these stages, for a probe that leaves it out because it would be the same there
// (sim_pipeline.ending). Stages of that probe have it if what its tasks leave is the same, byte by byte, and its
// ranks are alike as they were; else there are none (NULL without a diagnostic). In `a`; NULL: it is of no use
// elsewhere.
const sim_ending *sim_ending_of(arena *a, const sim_stages *st);
// The same stages with that after their tasks instead of what they have; NULL: likewise. In `a`, and with parts of
// st.
const sim_stages *sim_stages_ending(arena *a, const sim_stages *st, const sim_ending *e);
// How long the tasks of one microbatch in a probe of one place keep a rank busy, on average over its ranks:
// by the origin of the instructions that the tasks' functions have, probe->norigins + 1 of them, 0 before.
// False and a diagnostic: a price is missing.
typedef struct {
  double compute[2], comm[2]; // ps on the compute stream: of forwards, of backwards
  double inner[2];            // ... of comm, what lies between products of one call
  double needed;              // ... of compute[1], products and what a product of the same call needs
  double joined; // ... of compute[1], sums of gradients of one value that several instructions read
} sim_busy;
bool sim_busy_of(ctx *c, const prog *probe, cost_model *k, const sim_pipeline *pl, sim_busy *out);
// The same stages with the sends of every link, there and back, on other streams, numbered from 1 up to n,
// or, if n is 0, on the compute stream. st: with sends on streams. channels: 0, all sends are on the compute stream;
// 1: all on one other, with what is sent before the tasks and after them. NULL: what st says is not enough to
// tell. In `a`, and with parts of st.
const sim_stages *sim_stages_sending(arena *a, const sim_stages *st, u32 n, u8 *const strm[2], u32 channels);
// The same stages with so many microbatches of every replica; NULL: the probe has another number of one for them.
const sim_stages *sim_stages_dealt(arena *a, const sim_stages *st, const u32 *micro);
u32 sim_stages_classes(const sim_stages *st); // rank classes of a place
// By stage of one replica: what each kind of task takes from when all that it waits for is there to the end of its last
// rank, 0 of kinds that it does not run (where I and W are two tasks, B is both); how long what it makes, or the gradient of
// that, is on its way to another stage; what a rank has of a microbatch between forward and backward, at the most.
typedef struct {
  i64 task_ps[TASK_KINDS], send_ps, activation_bytes;
} sim_stage_cost;
void sim_stages_costs(const sim_stages *st, sim_stage_cost *out);
// How long the busiest rank works in a step, whatever the order of tasks: what no line of these stages beats. after: with what
// comes after the tasks.
i64 sim_stages_busiest(const sim_stages *st, arena *tmp, bool after);
// A line of n steps, in which every task comes after what it needs, compiled for stages of that form: places,
// stages, links and whether these have streams, microbatches, what a stage's I leaves for its W. In `a`. NULL: places
// are apart, and a backward of a stage that has them in two parts runs whole; or two stages on one place read the same buffer
// in their weight parts, and another one frees it than in the probe; or there are more than 16,000 stages. No line tells
// what that takes.
typedef struct sim_line sim_line;
const sim_line *sim_line_new(arena *a, const sim_stages *st, const sim_order *order, u32 n);
bool sim_line_fits(const sim_line *l, const sim_stages *st); // are they of that form?
// Everything is in `tmp` and given back. The line fits the stages.
void sim_pipe(const sim_stages *st, arena *tmp, const sim_line *l, sim_pipe_result *r);
// The same of n sets of stages, SIM_LANES at most; those with as many rank classes in less than twice the time
// of one on processors with AVX2.
enum { SIM_LANES = 8 };
// What passes of the same tasks have in common, whatever streams their sends are on, if they are on streams
// (sim_stages_sending), in `a`: how tasks run; and of the latest line bytes and busy times, which do not depend on times.
typedef struct sim_totals sim_totals;
sim_totals *sim_totals_new(arena *a, const sim_stages *st);
void sim_totals_forget(sim_totals *x, const sim_line *l); // the line is given up
// totals: of each set; NULL: of none.
void sim_pipes(u32 n, const sim_stages *const *st, arena *tmp, const sim_line *l, sim_totals *const *totals,
               sim_pipe_result *r);

// Nodes [from, to) of an event graph on slots x, calls by their maps where they have any.
void sim_part(const sim_graph *c, u32 from, u32 to, i64 *x, i64 *frame);
#endif
