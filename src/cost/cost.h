// cost.h - how long an instruction takes on the ranks it runs on. Layer 4. Not when it runs: that is sim's.
//
// Idea: a cost belongs to an *event*: operator, attributes, what one rank holds, kind of device; for
// communication operator, bytes and placement. Equal events cost equally and are costed once, however often
// and in however many programs they occur. A cost model is one machine, one set of formulas ("heddle" or
// "distir") and the caches; one cost model per thread, any number per machine.
//
// Costs are integer picoseconds. No cost depends on simulated time: an instruction is costed with all its
// subgroups running at once (they share the NICs of their nodes).
#ifndef HEDDLE_COST_H
#define HEDDLE_COST_H
#include "ir/ir.h"
#include "machine/machine.h"

// What decides a price: nothing; a peak, or an efficiency outside the sizes it is known for; an efficiency
// between two of them; the launch; latency and bandwidth; DistIR's formulas; cost_opts.predict; measured
// times of layers; a measured time of the event itself, one scaled from fewer ranks, or one that a fit through measured
// ones gives (machine/machine.h).
typedef enum {
  COST_FREE,
  COST_ROOFLINE,
  COST_CURVE,
  COST_LAUNCH,
  COST_LINK,
  COST_DISTIR,
  COST_PREDICTED,
  COST_MEASURED,
  COST_EVENT,
  COST_SCALED,
  COST_FITTED,
  COST_SOURCES
} cost_source;
const char *cost_source_name(cost_source s);
typedef struct {
  i64 ps;
  cost_source source;
  double spread; // real runs lie within ps*(1 +- spread) two times in three; below 0: not known
  u32 row;       // of cost_model_row; 0: not asked for
} cost_info;

// A row is one figure of the machine in one range of sizes: what is wrong in it is wrong in all prices that
// it decides.
typedef struct {
  cost_source source;
  const char *figure; // "a100: gemm from 1 GFLOP to 10 GFLOP"
  loc at;             // where the machine says it
  double spread;      // below 0: not known
  u32 count;          // measurements that the spread is from ...
  const char *of;     // ... of this; NULL: not known
} cost_row;

typedef struct { // what a cost is a function of
  opcode op;
  attrs at;
  dtype t; // of the first operand, else of the first result
  u32 nopd, nres;
  const shape *opd, *res; // what one rank holds
  const device_kind *dev; // NULL: communication
  bool host;              // it runs on the host of such a device
  eff_kind work;
  double flops, bytes;            // of one rank: floating-point operations, memory traffic
  i64 size;                       // communication: bytes, see cost_comm
  const machine_placement *where; // communication
} cost_event;

// An event as one line of text (key.c), what measured times are stored under. Two events with one text take the same
// time on a machine. m: the machine it is on; NULL where it has been read from text.
void cost_event_print(ctx *c, const machine *m, const cost_event *e, strbuf *out);
// The other way round, into `a`; printed again it is the same text. Work, flops and bytes are left out. False, without a
// diagnostic: that is no event.
bool cost_event_parse(ctx *c, arena *a, const char *text, cost_event *out);
// ---- events that nobody has measured (fit.c) ------------------------------------------------------------
// One fit for every kind of event of which rows have enough sizes, by kind, in `a`; *left: kinds that have too few. Rows that
// are fitted themselves do not count. Returns how many.
u32 cost_fit(ctx *c, arena *a, const measured_event *row, u32 n, event_fit **out, u32 *left);

// Is it costed as communication, by bytes and placement?
static inline bool cost_op_moves(opcode op) {
  return op_row_of(op)->flags & OPF_COMM && op != OP_shard && op != OP_partial;
}

typedef struct {
  const char *model;           // NULL: "heddle"
  const distir_params *distir; // cost model "distir": NULL takes the machine's
  // Asked before the cost model for every new event; false leaves the event to it. out->spread is below 0
  // before.
  bool (*predict)(void *arg, const cost_event *e, cost_info *out);
  // Told of events that lie far outside the sizes a curve was given for: `factor` beyond its end. NULL: a
  // warning W_EXTRAPOLATED for the first of every kind of device and work.
  void (*extrapolated)(void *arg, const cost_event *e, double factor);
  void *arg;
} cost_opts;
// Cost models by name. heddle: max(flops / rate, bytes / bandwidth), each at the machine's efficiency, plus
// launch; collectives from latency and bandwidth by placement (coll.c). distir: DistIR's formulas (distir.c).
const char *cost_model_name(u32 i); // the name of number i, from 0; NULL: there are no more

typedef struct cost_model cost_model;
// opts may be NULL. NULL and a diagnostic if no cost model has that name. Everything lives in `a`.
cost_model *cost_model_new(ctx *c, arena *a, const machine *m, const cost_opts *opts);
const machine *cost_model_machine(const cost_model *k);
const cost_opts *cost_model_opts(const cost_model *k); // it was made with
u64 cost_model_serial(const cost_model *k); // like no other cost model's, not even of one that is gone
// Costs of one instruction (no call) on the members of group g (resolved: the function's own group has been
// put in). Returns the number written: 1 if equal for all members, else g's number of ranks, one each. 0 and
// a diagnostic if a rate or a link is missing or a rank is not on the machine. A cached one takes tens of
// nanoseconds. send: of the members of the source, g.
u32 cost_instr(cost_model *k, const prog *p, const func_info *f, const instr *i, group g, i64 *ps);
// The same for one member, with what it is made of and its row: slower. False and a diagnostic likewise.
// What tells its price from those of instructions that are equal otherwise; 0 where no times were measured.
u32 cost_measured(const prog *p, const func_info *f, const instr *i);
bool cost_explain(cost_model *k, const prog *p, const func_info *f, const instr *i, group g, u32 member,
                  cost_info *out, cost_event *made_of);

// ---- what a price is made of (parts.c) ------------------------------------------------------------------
// What would have to be faster. The parts of a price add up to it, but for its rounding; each is inversely
// proportional to its rate, so it is also minus the derivative of the price by the logarithm of that rate.
typedef enum {
  COST_BY_MATMUL,  // rate of matrix products
  COST_BY_VECTOR,  // rate of other arithmetic
  COST_BY_MEMORY,  // bandwidth of device memory
  COST_BY_LAUNCH,  // launch of an instruction
  COST_BY_INSIDE,  // bandwidth of links inside a node, also those to host memory
  COST_BY_BETWEEN, // bandwidth of NICs
  COST_BY_LATENCY, // start and steps of communication
  COST_BY_HOST,    // what the host computes: its memory, its processors
  COST_BY_SEVERAL, // two of them are equally slow: one alone changes nothing
  COST_BYS
} cost_by;
typedef struct {
  double ps[COST_BYS];
} cost_parts;
// Of one member, as cost_explain. False without a diagnostic if the cost model does not tell, or the price is
// a prediction.
bool cost_made_of(cost_model *k, const prog *p, const func_info *f, const instr *i, group g, u32 member,
                  cost_parts *out);
// What kind of work an instruction is, by its law. A batched product has a dimension that both operands and
// the result share, as attention has.
typedef enum {
  WORK_PRODUCT,
  WORK_BATCHED,
  WORK_CONV,
  WORK_REDUCTION,
  WORK_ELEMENTWISE,
  WORK_MOVE,
  WORK_KINDS
} cost_work;
// The axes that a communication of group g goes over, MESH_AXES at most; not of sends.
u32 cost_axes(const prog *p, const instr *i, group g, u8 *axes);
cost_work cost_work_of(ctx *c, arena *scratch, const prog *p, const func_info *f, const instr *i);
const cost_row *cost_model_row(const cost_model *k, u32 row); // from 1; until the cost model's next call

// What planners ask, by the formulas, whatever was measured: they choose among communications of which most were not.
// One communication among n ranks that run it alone; send: from ranks[0] to ranks[1]. -1 and a diagnostic if
// there is no link. `bytes` is what one member holds:
//   all_reduce, reduce_scatter, all_to_all, permute, reduce   of the operand
//   all_gather, broadcast                                     of the result
//   gather_to, scatter_from                                   of the whole, at the root
//   exchange                                                  received from all others
//   send                                                      of the message
//   halo_exchange                                             received from the neighbours
i64 cost_comm(cost_model *k, opcode op, i64 bytes, const u32 *ranks, u32 n, dtype t);
// nsub of them at once, of n ranks each: of each of nops operators the fastest one's ps, in out. ranks[i * n ..] are
// those of communication i.
bool cost_beside(cost_model *k, const opcode *op, u32 nops, i64 bytes, const u32 *ranks, u32 nsub, u32 n,
                 i64 *out);
// Do more samples of a computation never take less time, and is one communication never slower than its parts
// one after the other? So it is with the formulas of "heddle", where the time that every efficiency curve
// gives rises with the size. Not where times were measured or predicted, which may be anything.
bool cost_rises(const cost_model *k);
// What a part of a computation takes on a device of the kind at least, as a fraction of that part of the time of all
// of it: 1 where no efficiency falls as the size grows, less by as much as one does. 0: nothing is known, as above.
double cost_splits(const cost_model *k, u32 kind);
// The slowest of the subgroups of g over some axes, all running at once: what a planner asks. -1 likewise.
i64 cost_over(cost_model *k, const prog *p, group g, const u8 *axes, u32 naxes, opcode op, i64 bytes,
              dtype t);
// The slowest of the transfers that move a tensor from one group to another, every member of which is to hold
// to_bytes. -1 likewise.
i64 cost_between(cost_model *k, const prog *p, group from, group to, i64 to_bytes, dtype t);

// ---- sharding patterns (patterns.c) ----------------------------------------------------------------------
// What one application costs where it is split over ranks 0 .. ways - 1 of the machine.
typedef struct {
  bool divides;            // else nothing below is known
  double flops, bytes;     // of rank 0: floating-point operations, memory traffic
  i64 compute_ps;          // of the slowest rank
  i64 comm_bytes, comm_ps; // the all_reduces that complete the results: what a rank has of them
  i64 scatter_ps;          // by reduce_scatter instead; -1: nothing to complete, or no dimension divides
  i64 grad_ps;             // the all_reduces that complete the operands' gradients
} pattern_cost;
// Costs of v[0..n), patterns of the application that p (ir_application) consists of, whose law is l; out[n]
// is the whole application on rank 0. p gets a mesh and functions. `at` is where the ways were asked for.
// False and a diagnostic if they are fewer than 2 or more than the machine has, if no letter can be split so
// many ways, if it is communication, or if a rate or a link is missing.
bool cost_patterns(cost_model *k, prog *p, const law *l, const law_pattern *v, u32 n, u32 ways, loc at,
                   pattern_cost *out);

// ---- lower bounds: no event costs less than these say, by the formulas of the cost model -----------------
double cost_top_flops(const cost_model *k, const device_kind *dev, dtype t); // FLOP/s of matrix products
double cost_top_bw(const cost_model *k, const device_kind *dev);             // bytes/s of memory
i64 cost_launch_ps(const cost_model *k, const device_kind *dev); // of every instruction that is not free

u32 cost_model_events(const cost_model *k); // distinct events costed so far
#endif
