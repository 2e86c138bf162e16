// internal.h - what the files of sim/ share: a program prepared for simulation. Others include sim/sim.h.
//
// rendezvous.c: where instructions run, who meets whom in a communication. price.c: durations of every
// distinct instruction. fold.c: ranks to rank classes. event_graph.c: a function on a group as an event
// graph. flat.c, map.c, critical.c: the engines, which do not include this file. path.c: the critical path by
// instruction. life.c, heap.c, bytes.c, peak.c: memory. parts.c, origin.c: what the path is made of. split.c:
// what all time consists of. steady.c: steps that follow each other. timeline.c: events. stages.c, wide.c,
// stage_bytes.c, compose.c, ends.c, ending.c, line.c, pipe.c, totals.c, lanes.c: pipelines known by their stages. busy.c: how long tasks keep ranks busy. run.c: the whole.
#ifndef HEDDLE_SIM_INTERNAL_H
#define HEDDLE_SIM_INTERNAL_H
#include "live/live.h"
#include "sim/sim.h"

typedef struct {
  u32 n;
  const u32 *cls;
  const u32 *pos;
} class_set; // pos[class] = index + 1; 0 = not in it
typedef struct {
  group g;
  u32 n;
  const u32 *rank;     // member -> rank
  const class_set *cs; // rank classes, in order of first member
  const u32 *member;   // of every rank class in cs: its first member
} members;

// Who meets whom. Node i of a communication occupies ranks rank[begin[i]..begin[i+1]); its duration is the
// largest over the members mem[mbegin[i]..mbegin[i+1]) of the instruction's group.
typedef struct {
  u32 n;
  const u32 *begin, *rank, *mbegin, *mem;
  u32 nsets;                             // the same over rank classes (after folding): distinct sets of them
  const u32 *set_begin, *cls, *set_node; // set_node: the node that stands for it
} rendezvous;

typedef struct {
  bool send;
  u32 naxes;
  const u8 *axes;
  u32 key[4];
  bool direct,
      again; // a send from every member of a group to the same of another; the rendezvous is an earlier row's
  group from, to;
  rendezvous *m;
} rendezvous_row;

// One distinct instruction on one group with its price.
typedef struct {
  const u32 *key; // opcode, attributes, group, coordinate in time where it counts, types
  u32 nkey;
  group g;
  i64 dur;         // if per is NULL
  const i64 *per;  // per member of g
  rendezvous *met; // NULL: every member for itself
} event;

typedef struct {
  u32 op, at, g, from, to; // types of the operand and the result
  u32 coord;               // 0: the price is that of all coordinates in time, else it is of coord - 1
  u32 id;
} recent_event;

// One function on one group: the event of every instruction; for calls the number of the callee's row.
typedef struct {
  func f;
  group g;
  u32 *ev;
  const class_set **sets; // of its parameters, then of its results, once asked for; NULL: none were
  u32 like;               // row_like in event_graph.c; 0: not asked
} priced;

typedef struct { // of a function, anywhere; see event_graph.c
  u32 nparams;
  u16 *reads, *made, touch;
  u32 *thru_begin, *thru;
} summary;

// What is known of the values of a function wherever it runs; see life.c. Arrays by value.
enum { LIFE_GRAD = 1, LIFE_BACK = 2, LIFE_READ_BACK = 4, LIFE_PARAM = 8, LIFE_STATE = 16, LIFE_COMM = 32 };
typedef struct {
  lifetimes when;
  u32 *ret;  // result of the function + 1 that it, or a view of it, is
  u8 *flags; // NULL if nobody asks for kinds
} life;

typedef struct {
  u32 slot;
  const class_set *cs;
} entry; // the time of a value on a rank class: slot + position of the rank class

typedef struct {
  u32 n;
  const sim_span *v; // by place in the function
} sim_spans;

struct body;
typedef struct sim {
  ctx *c;
  arena *a;   // results and everything that is kept while simulating
  arena *tmp; // a stack
  const prog *p;
  const func_info *main; // p's
  const sim_opts *o;
  sim_cost *cost;
  void *cost_arg;
  i64 round;      // of allocations
  bool intern;    // prices depend on the event key only
  bool want_path; // slots are to know their clocks
  VEC(sim_carry) carry;
  bool overflow;   // durations add up to more than fits
  bool one_stream; // then nothing ever waits for a value
  u32 nranks, nclasses, nstreams, nstages;
  const bool *used; // by rank: is it of a mesh? Else it has no part in the program
  u32 nused;
  const u32 *class_of_rank, *stage_of_rank, *weight; // weight: ranks of a rank class
  VEC(members *) members;                            // by group id
  VEC(class_set *) class_sets;
  hmap class_set_map;
  const class_set **near; // by type: the latest answer of class_set_of_type
  group *near_g;          // and for which group
  VEC(rendezvous_row) rendezvous;
  hmap rendezvous_map;
  VEC(event) events; // [0] unused
  hmap event_map;
  recent_event recent[256];
  VEC(priced) priced; // [0] unused; 1 = main
  hmap priced_map;
  const summary **summaries; // by function
  u32 *first_row;            // by function: row of it that was asked for a graph first; 0: none
  const life **lives;        // by function
  u8 *life_flags;
  VEC(struct body *) bodies;
  hmap body_map;
  i64 *ps; // room for one price per rank
  i64 *
      held; // for a timeline: the most that rank class u holds with instruction k of main, [k * nclasses + u]
  // Of a probe (stages.c):
  const sim_pipeline *pipeline; // NULL: it is none
  u32 *node_of;                 // of main: first node of every instruction
  const sim_spans *spans;       // by function; NULL: there are none
  bool odd_spans;               // one reads what its like has made: it cannot stand for others
  value *root;                  // of main's values: the value whose slots hold its time; NULL: one stream
  entry *at;
  u16 *made; // ... on which streams they are made
} sim;

// rendezvous.c
members *members_new(sim *s, group g);
static inline members *members_of(sim *s, group g) {
  return g.i < s->members.n && s->members.v[g.i] ? s->members.v[g.i] : members_new(s, g);
} // ranks only until members_set_all_classes has run
const class_set *class_set_of(sim *s, const u32 *cls, u32 n); // distinct
void members_set_all_classes(sim *s);                         // after class_of_rank is known
const class_set *
class_set_of_type(sim *s, type t,
                  group g); // rank classes that hold a value of this type in a function called on g
i64 local_bytes(sim *s, const type_info *t, group g, u32 member); // of a tensor on one member, not rounded
bool is_rendezvous(opcode op); // a communication that its members do together
rendezvous *rendezvous_of(sim *s, const func_info *f, const instr *i, group g);

// price.c: false and a diagnostic if something has no price
bool price_program(sim *s);
static inline bool no_work(const op_row *r) { return r->flags & (OPF_VIEW | OPF_META); }

// fold.c
void fold_ranks(sim *s, bool fold);

// run.c: everything from the program to the event graph of main; NULL and diagnostics
bool sim_open(sim *s, ctx *c, arena *a, const prog *p, cost_model *k, const sim_opts *o, bool want_path);
const sim_graph *sim_graph_of(sim *s); // the two below
bool sim_price(sim *s);                // prices of all instructions
// Ranks folded, and the event graph. late, want: as graph_of_step has them; NULL: none.
const sim_graph *sim_graph_priced(sim *s, const u8 *late, const u8 *want);
const sim_graph *sim_probe_graph(sim *s, const sim_pipeline *pl); // stages.c: the same of a probe
i64 sim_busiest(sim *s,
                const sim_pipeline *pl); // busy.c: ps of the busiest rank of a priced probe's pipeline

// path.c: the path to the clock of x that is latest, by instruction
void path_of(sim *s, const sim_graph *c, const i64 *x, sim_result *r);

// event_graph.c: the event graph of main; those of its callees with maps if `maps`
sim_graph *graph_of_main(sim *s, bool maps);
// The same with parameters that may be late and results that are waited for, by number: for steady.c.
const sim_graph *graph_of_step(sim *s, const u8 *late, const u8 *want);

// origin.c: sums up the path by where its prices come from
void sum_up_origins(sim *s, sim_result *r);

// steady.c: time per step when steps follow each other. The event graph of one of them: parameters that are
// results of the step before are as late as these. graph NULL: that of main does it, since nothing waits for
// a value.
typedef struct {
  const sim_graph *graph;
  const u32 *next; // which output port an input port goes on from; NULL: its clock's
} step_graph;
void steady_named(sim *s);       // adds to s->carry the results that are named after a parameter
step_graph steady_steps(sim *s); // after the bytes: they tell which results parameters are in the next step
void steady_period(sim *s, const step_graph *x, sim_result *r); // r: of one step
// Steps that follow each other: the state at the end of each, until it repeats.
enum { STEPS_WINDOW = 8 };
typedef struct {
  u32 n, k, steps; // numbers of a state, steps so far, steps at most
  i64 *past, half;
  i64 period_ps; // when steps_add has said so
} steps_seen;
void steps_begin(steps_seen *x, arena *a, u32 n,
                 i64 alone);                   // alone: how long one step is; all states are in `a`
bool steps_add(steps_seen *x, const i64 *now); // true: the period is known

// split.c: fills in r's split from the event graph of main
void split_time(sim *s, const sim_graph *main, sim_result *r);

// timeline.c: the event graph as a source of events. It must lie in s->a.
trace_source *timeline_of(sim *s, const sim_graph *c);

// life.c
const life *life_of(sim *s, func f);
mem_kind life_kind(const life *l, value v, bool is_call);

// bytes.c
void bytes_run(sim *s, sim_result *r);
#endif
