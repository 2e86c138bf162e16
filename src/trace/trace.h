// trace.h - event columns: the one form of a timeline, whether simulated, executed or imported; readers of the
// files that others write; and a source of events, for timelines that are better made again than kept. Layer 3.
// Not what events mean for a job (diagnose/).
//
// Idea: one row per event and one array per property, so that a million events are a few plain arrays. An
// event is on one lane: a stream of a device or a thread of a host. What many events share (lanes, names,
// communications) is a table, and columns have its index.
#ifndef HEDDLE_TRACE_H
#define HEDDLE_TRACE_H
#include "base/base.h"

enum { TRACE_NONE = ~0u };

// ---- events ---------------------------------------------------------------------------------------------
// What an event is. On a device: KERNEL (computation and communication), COPY, FILL and WAIT (a stream waits for
// another, or the host for a stream: its name says which). On a host: OP (an operator of the framework), CALL (of
// the device's runtime or driver: launches, synchronisation), NOTE (what the user or a library annotated), STEP (one
// step of training), STACK (functions of Python), OTHER.
typedef enum {
  TRACE_KERNEL,
  TRACE_COPY,
  TRACE_FILL,
  TRACE_WAIT,
  TRACE_OP,
  TRACE_CALL,
  TRACE_NOTE,
  TRACE_STEP,
  TRACE_STACK,
  TRACE_OTHER,
  TRACE_KINDS
} trace_is;
enum {
  TRACE_ALL = (1 << TRACE_KINDS) - 1,
  TRACE_ON_DEVICE = 1 << TRACE_KERNEL | 1 << TRACE_COPY | 1 << TRACE_FILL,
  TRACE_MEMORY = 1 << TRACE_KINDS // in trace_want.kinds: what allocators tell, too
};
const char *trace_is_name(trace_is k); // "kernel"

// What was run, as a recording says it: the model as it was named, the plan in one line, the machine whose costs it was made
// with, a digest of the model's structure and the plan, how collectives moved (auto, ring, direct, mpi) and the number of the
// run, which all of its ranks say. 0: not said.
typedef struct {
  sym model, plan, machine, digest, collectives, run;
} trace_ran;
// A process is what has recorded: one clock.
typedef struct {
  u32 rank;       // in the job; TRACE_NONE: not said
  u32 world_size; // 0: not said
  i64 pid;        // -1: not said
  sym host;       // 0: not said
  sym device;     // kind of device, "NVIDIA A100-SXM4-80GB"; 0: not said
  // Its host runs its events itself, one after the other, and nothing launches them (Heddle's own runs).
  bool serial;
  trace_ran ran;
  bool placed;             // where it stands in the job is known:
  u32 data, stage, tensor; // ranks of data, pipeline and tensor parallelism
  i64 base_ns; // times of its events are relative to this, ns since 1970 (or since the host started: then it is
               // below a year); 0: times are relative to nothing that others know
} trace_process;
static inline bool trace_dated(i64 base_ns) { return base_ns >= (i64)365 * 24 * 3600 * 1000000000; }
typedef struct {
  u32 process;
  bool device; // a stream; else a thread
  i64 id;      // the stream's or thread's number, as the file has it
  i64 of;      // number of the device; -1: not said
  sym name;    // 0: none
} trace_lane;
// A communication, as the process that takes part in it describes it.
typedef struct {
  sym op;      // a name of comms.def or, of none of these, as the file has it
  sym group;   // name of the process group; 0: not said
  sym members; // its ranks, "0,1,2"; 0: not said
  u32 size;    // of the group; 0: not said
  u32 peer;    // send, recv: rank in the job; TRACE_NONE: not said
  i64 seq;     // number of the communication in its group; -1: not said
  i64 in, out; // elements; -1: not said
  sym type;    // of elements, "f16"; 0: not said
  i64 bytes;   // the larger of what goes in and comes out; -1: not said
  // A message that is a part of a collective: of which number, in which step of its ring, which chunk: with sender and
  // receiver what dPRO calls its transaction id, the same at both ends. of 0: it is none.
  i64 of;
  u32 hop, chunk;
} trace_comm;

// Where an event stands in the program that ran, as far as its file says.
typedef struct {
  sym node, func,
      task;  // of the user's model, "h.0.attn"; the program's function; "2F5", the task of a pipeline
  u32 layer; // of the model: its number + 1; 0: not said
} trace_origin;

// What a communication does, by its op: a row of comms.def each, then all others.
typedef enum {
#define COMM(id, name, letters, who, bus, chakra) COMM_##id,
#include "trace/comms.def"
#undef COMM
  COMM_OTHER,
  COMM_KINDS
} comm_kind;
typedef enum {
  COMM_WHO_UNKNOWN,
  COMM_WHO_FOR_ALL,
  COMM_WHO_ROOTED,
  COMM_WHO_MESSAGE,
  COMM_WHO_MESSAGES
} comm_who;
typedef enum { COMM_BUS_UNKNOWN, COMM_BUS_ONCE, COMM_BUS_OTHERS, COMM_BUS_TWICE } comm_bus;
typedef struct {
  const char *name, *letters; // of others "other", NULL
  comm_who who;
  comm_bus bus;
  i64 chakra; // below 0: none
} comm_kind_row;
extern const comm_kind_row comm_kind_rows[COMM_KINDS];
comm_kind comm_kind_named(const char *op); // COMM_OTHER: of no row
comm_who comm_who_of(const ctx *c, sym op);
comm_kind comm_kind_of_word(const char *name,
                            u32 n); // likewise, in the words of others: "_allgather_base", "ALLTOALL"

// One event cannot begin before another has ended, as the file says (Chakra). In Kineto's files `event` is a WAIT, of a
// stream for an event that was recorded on another, or of the host for such an event: what it waits for. In dPRO's, messages.
typedef struct {
  u32 event, after; // after: TRACE_NONE: not in the file
  bool data;        // else control
} trace_edge;

// Memory of a device that a process has taken or given back, as its allocator tells (Kineto's "[memory]").
typedef struct {
  u32 process;
  i64 at_ps; // as start_ps of events
  i64 device;
  i64 bytes;        // below 0: given back; at most 2^50
  i64 total, place; // all that is taken thereafter; address. -1: not said
} trace_memory;

typedef struct {
  u32 n, cap;
  u32 *lane;
  i64 *start_ps;   // relative to base_ns of the lane's process
  i64 *dur_ps;     // below 0: the file has its start only
  u32 *name;       // index into names: what ran
  u8 *is;          // trace_is
  u8 *flags;       // TRACE_...
  u32 *cause;      // of what is on a device: the call that launched it, or where its host runs it itself
                   // (trace_process.serial) the event; TRACE_NONE: not known
  u32 *comm;       // index into comms; TRACE_NONE: none
  u32 *step;       // of training, as the recorder counts; TRACE_NONE: not said
  u32 *microbatch; // TRACE_NONE: not said
  u32 *chunk;      // of the model, of those that its process has (virtual stages); TRACE_NONE: not said
  u32 *origin;     // index into origins; TRACE_NONE: not said
  u32 *
      match; // events of one message or collective share it, if the file says which; 0: on its own or not said
  VEC(trace_process) processes;
  VEC(trace_lane) lanes;
  VEC(sym) names;
  VEC(trace_comm) comms;
  VEC(trace_origin) origins;
  VEC(trace_edge) edges;
  bool
      graph; // edges are all that waits, as in files that are a graph; else streams and threads have their order besides
  VEC(trace_memory) memory; // in the order of the file
  hmap by_lane, by_name, by_origin;
} trace;
// LEAVES: a communication that waits for nobody: it sends and goes on (trace_process.serial). FORWARD: its file says so.
enum {
  TRACE_COMM = 1,
  TRACE_BACKWARD = 2,
  TRACE_UPDATE = 4,
  TRACE_RECOMPUTE = 8,
  TRACE_LEAVES = 16,
  TRACE_FORWARD = 32
};

// The number of the lane, made if need be.
u32 trace_lane_of(arena *a, trace *t, u32 process, bool device, i64 of, i64 id);
u32 trace_origin_of(arena *a, trace *t, trace_origin x); // TRACE_NONE: nothing is said
// One event more; its cause, comm, origin, step, microbatch, chunk are TRACE_NONE, its match and flags 0. Returns its number.
u32 trace_add(arena *a, trace *t, trace_is is, u32 lane, sym name, i64 start_ps, i64 dur_ps);
// Event `to` becomes what event `from` is, in every column.
void trace_move(trace *t, u32 to, u32 from);
// A communication of which only the operation is said.
static inline trace_comm trace_comm_of(sym op) {
  return (trace_comm){.op = op, .peer = TRACE_NONE, .seq = -1, .in = -1, .out = -1, .bytes = -1};
}
// The event is this communication.
void trace_add_comm(arena *a, trace *t, u32 event, trace_comm m);
static inline const trace_process *trace_process_of(const trace *t, u32 event) {
  return &t->processes.v[t->lanes.v[t->lane[event]].process];
}
static inline sym trace_name(const trace *t, u32 event) { return t->names.v[t->name[event]]; }
// Events in order of (lane, start) and, on threads, where calls nest, longest first; stable. order[k] = index of the k-th event.
u32 *trace_order(arena *a, const trace *t);

// ---- files ----------------------------------------------------------------------------------------------
// Formats that are read, a row of formats.def each.
typedef enum {
#define FORMAT(id, name, kernels, about) TRACE_FORMAT_##id,
#include "trace/formats.def"
#undef FORMAT
  TRACE_FORMATS,
  TRACE_FORMAT_NONE = TRACE_FORMATS
} trace_format;
typedef struct {
  const char *id, *name, *about;
  bool kernels; // does it have launches and kernels, on a clock?
} trace_format_row;
extern const trace_format_row trace_format_rows[TRACE_FORMATS];
// The format of a file, by how it begins. NONE and no diagnostic: of none. NONE and a diagnostic: not readable.
trace_format trace_format_of(ctx *c, const char *path);

// The rank that the name of a file says: after "rank", else the last number that stands alone; TRACE_NONE: none. DUMP: of
// PyTorch's flight recorder, which writes the rank behind a prefix; FOLDER: of BytePS, whose folders have it. rank_name.c.
typedef enum { RANK_ANY, RANK_DUMP, RANK_FOLDER } rank_names;
u32 trace_rank_in_name(const char *path, rank_names of);

// Files that are no timeline: their bytes, unpacked, with a NUL behind them.
// The first bytes, at most n; their number. 0 and a diagnostic: cannot be opened. to has room for n + 1.
size_t trace_begin(ctx *c, const char *path, char *to, size_t n);
// All of it. False and a diagnostic: cannot be opened, or is longer than limit. *cut: it ends before its packing says so.
bool trace_whole(ctx *c, arena *a, const char *path, size_t limit, const char **text, size_t *n, bool *cut);

typedef struct {
  u32 kinds; // 1 << TRACE_...: others are passed over; 0: all but TRACE_STACK and TRACE_MEMORY
  // Which steps of training (NULL: all there is). Of these alone memory is taken: of what starts on a host during one of
  // them, until the next begins, and of what it launched. All steps themselves are there, and so may be more: readers of
  // formats that do not know how give everything, as does Kineto's where a recording has no steps.
  bool (*step)(const void *steps, u32 number);
  const void *steps;
} trace_want;
// What was wrong with a file that could be read all the same: told in reports.
typedef struct {
  u64 events;     // in the file, wanted or not
  u64 skipped;    // not events that can be understood: no time, not a number, ..
  bool truncated; // it ended early; what came before is there
  u64 bytes;      // of the file, unpacked
} trace_read_about;
// Appends what the file has to t. rank: that of the process where the file does not say; TRACE_NONE: not known.
// Files may be compressed (gzip). False and a diagnostic: nothing can be made of it. A file that ends early is read as
// far as it goes, with a warning.
bool trace_read(ctx *c, arena *a, const char *path, trace_format f, const trace_want *w, u32 rank, trace *t,
                trace_read_about *about);

// Writes the events of a process as a Chakra execution trace (chakra_write.c): a node for every operator, call and
// device event; what a node waits for is what its file says, else what launched it and what was before it on its stream
// or thread. Chakra counts in microseconds: what is finer stands in attributes that Heddle reads. *nodes: how many.
// False and a diagnostic: the file cannot be written.
bool trace_write_chakra(ctx *c, const trace *t, u32 process, const char *path, u64 *nodes);
// Stands at the start of Heddle's own timelines: by it they are known (heddle.c).
#define TRACE_HEDDLE_MARK "\"schema\":\"heddle timeline 1\""

// ---- timelines that are played --------------------------------------------------------------------------
// A timeline that is played as often as it is asked for. A lane is a stream of a rank: rank * nstreams +
// stream; the last nthreads of them are threads of its host. The events of a lane come in order of their start; those of different lanes come mixed. What is the
// same for all executions of an instruction is said once, by its kind.
typedef struct {
  u32 what, func, instr;
  loc where;
  i64 bytes;
  u8 flags;
  u8 is; // trace_is: TRACE_KERNEL, or of what was executed TRACE_STEP
} trace_kind;
typedef struct {
  u32 stage, microbatch;
  char letter; // of the kind, as in sched.h: "2F5" is the forward of stage 2 for microbatch 5
  bool send;   // of what it has made
} trace_task;
typedef struct {
  u32 lane, kind;
  i64 start_ps, dur_ps;
  u32 microbatch;
  u32 task;  // of a pipeline, into trace_source.task; 0: none
  u32 layer; // of the model: its number + 1; 0: of none
  u32 match; // equal for the events of one rendezvous, from 1; 0 = on its own
  // The event of the rendezvous from which arrows lead to the others, and its start; of that one, and of what is on its
  // own, the event's own.
  u32 from_lane;
  i64 from_ps;
  i64 held_bytes; // the most that its rank holds since the last event on its lane, with this one; 0: not said
  // Of what was executed:
  u32 step;
  u32 launch;             // equal for a call of the host and what it began; 0: the host runs it itself
  i64 waited_ps;          // inside it, for data of other ranks; of what is no communication 0
  const trace_comm *comm; // as long as the event is told; NULL: none, or simulated
} trace_event;
typedef void trace_tell(void *arg, const trace_event *e);
typedef struct trace_source trace_source;
struct trace_source {
  u32 nranks, nstreams, nthreads, nnames;
  const sym *stream_name, *name;
  const sym *func;              // by trace_kind.func; NULL: not told
  const sym *category;          // by trace_kind.flags; NULL: what these say
  const trace_process *process; // by rank: what has recorded; NULL: simulated
  const trace_kind *kind;
  const trace_task *task;
  const u32 *count; // events of every lane
  // Tells the events of lanes from..to-1. Costs as much as all events, told or not, take to make.
  void (*play)(const trace_source *s, arena *scratch, u32 from, u32 to, trace_tell *tell, void *arg);
};
u64 trace_events(const trace_source *s);
// As columns, in the order in which they are played: one process for every rank, one lane for every stream that
// has events.
trace *trace_collect(arena *a, const trace_source *s);

#endif
