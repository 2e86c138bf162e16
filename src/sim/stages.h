// stages.h - what is known of the stages of a pipeline: linear maps and bytes of their tasks, of the sends
// between them, and of what comes before and after. Of pipelines in sim/ only (internal.h lists the files).
//
// Ranks of a place that cannot differ are a rank class; all places have as many, numbered alike. A task takes
// the clocks of its place, one a class, and the times at which values came, one a class each, to the same
// clocks and the times at which values leave.
#ifndef HEDDLE_SIM_STAGES_H
#define HEDDLE_SIM_STAGES_H
#include "sim/internal.h"

enum { STAGE_CLASSES = 32, VALUES_MAX = 64 }; // VALUES_MAX: that come to a task, or leave it
enum { PORTS_MOST = (1 + VALUES_MAX) * STAGE_CLASSES };
static const i64 STAGE_NEVER = INT64_MIN / 4; // in a map: this input does not matter

typedef struct {
  i64 net, peak; // the peak above what was there before
} stage_bytes;
typedef struct {
  u32 nin, nout;               // values that came, that leave; then those carried from I to W
  const i64 *a;                // [out * (1 + nin) * C + in]: clocks first, then value after value
  const stage_bytes *bytes[3]; // of the first microbatch, of the others, of the last
  const i64 *busy, *comm;      // by class: on the compute stream; comm: communication of it
  // Of stages with ends of their own (stage_ends): slots that the first task of the kind waits for, which what comes
  // before the tasks has left there, with the map from them, [out * nwaits + number]; and slots that the last one
  // leaves for what comes after, with the maps to them.
  u32 nwaits, nleaves;
  const u32 *wait, *leave;
  const i64 *waits, *leaves, *leave_waits; // leaves: as a has it; leave_waits: as waits
} stage_task;
typedef struct {
  u32 from, to; // classes at the sender, at the receiver, as bits
  i64 dur;
} stage_rendezvous;
typedef struct {
  u32 n;
  const stage_rendezvous *v;
  const stage_bytes *sender[3], *receiver[3];
} stage_send;

// Values that all microbatches share are there from the first on, and gone after the last.
static inline u32 stage_turn(u32 mb, u32 nmicro) { return !mb ? 0 : mb + 1 == nmicro ? 2 : 1; }

typedef struct {
  const stage_bytes *bytes;
  const i64 *freed; // at its end, of every microbatch that there is above three
} stage_after;

// What the weight part of the next stage reads as well, on the same place: the input part (or a whole backward), the weight
// part of this one frees it, after that.
enum { STAGE_FREES_I = 1, STAGE_FREES_W = 2 };

typedef struct { // what a value is when all tasks have run
  u32 n;
  const i64 *v; // on which streams it was made; then of every tensor its `more` and its bytes by class
  bool odd;     // its memory is not its own
} stage_left;

// What comes before the tasks and after them where places are apart: instructions of the probe's main, run as they
// are. Any place may wait there for any other one, on the compute stream and on one more (ends.c).
enum { STAGE_BEGINS = 1, STAGE_ENDS = 2 };
typedef struct {
  const sim_graph *before, *after;
  u32 nslot;                 // of both together
  u64 frame;                 // of either, at most
  u32 strm;                  // the other stream; 0: there is none
  const u32 *clock;          // [place * C + class]: slots of compute streams, then of the other one; 0: none
  u32 nlate;                 // slots of parameters that somebody waits for there,
  const u32 *late, *renewed; // ... and of what takes their place in the next step
  stage_task *begin;         // by place: bytes[0], busy, comm of what comes before
} stage_ends;

// The last task of a stage that makes gradients, where it sums them on a stream of their own: what it does to the clocks of
// that stream, and slots that it leaves for what comes after the tasks, from what the task has and these clocks.
enum { STAGE_SUMS = 4 };
typedef struct {
  u32 n, nin;      // slots; inputs: those of the task, then the stream's clocks
  const u32 *slot; // of stage_beside.of
  const i64 *a;    // [out * nin + in]: the stream's clocks, then slots. NULL: the stage has no such task
} stage_sums;

// Places with such tasks. What comes after the tasks waits for every sum, so it is run as it stands in the probe's event
// graph: a place that stands for others once for each of them (sums.c).
typedef struct {
  u32 strm;
  const stage_sums *
      sums[2]; // per stage of a place that stands for others; [1]: of a whole backward where it has two parts
  const u32 *own; // per stage: the one of its place's that is in its stead
  const sim_graph *of;
  const u32 *clock;            // [(rep number * 2 + other stream) * C + class]: slots; 0: none
  const u32 *begin, (*run)[2]; // per rep number: run[begin[r]..begin[r + 1]) are its nodes, from, to
} stage_beside;

// Bytes of a task on another place than its own: what it gives back of what both have a part, and what a stage on
// several places does there. Of a send from or to such a stage: on every place.
typedef struct {
  u32 type, place; // type: line_task_type, line_send_type of the sender
  const stage_bytes *bytes;
} stage_other;

// A task of a stage on several places, or a send from or to one: a map from clocks of all places and values to these. A
// port is a number [place * C + class]: of a clock, then, STAGE_VALUE further on each, of the first value, the second.
// What has no clock or nobody waits for is no port.
enum { STAGE_VALUE = 1 << 16 };
typedef struct {
  const sim_map *map;     // NULL: there is none
  const u32 *in, *out;    // of its ports
  u32 nin, nout;          // values
  const i64 *busy, *comm; // [place * C + class]: on the stream that it occupies; comm: communication of it
} stage_wide;

struct sim_stages {
  sim_pipeline pl;
  u32 nclass, nstreams;
  const stage_ends *ends;     // NULL: `before` and `after` say it
  const stage_beside *beside; // NULL: no task sums; else `after` says nothing
  const u32 *weight;          // [place * C + class]: ranks
  const u32 *micro;           // by place: microbatches
  u32 nmembers;               // ranks of a place
  const u32 *member_class;    // of each of them
  const stage_left *left;     // beside pl.left
  u32 nranks;                 // of the program
  u32 nreps, *rep, *rep_no;   // places that stand for others; number of every place's one in them
  const i64 *start;           // [rep number * C + class]: bytes of parameters
  const i64 *usable;          // ... likewise: of the device
  const stage_task *before;   // per stage of the probe
  // By kind, per stage of the probe; B where there are I and W: both at once (not where places are apart).
  const stage_task *task[TASK_KINDS];
  u32 nothers;
  const stage_other *others;
  const u8 *frees;    // per stage of the probe: STAGE_FREES
  const u32 *carried; // per stage of the probe: values that I leaves for W, besides those that it sends
  const stage_send *send[2];                         // there, back; per link of the probe
  const stage_wide *wide[TASK_KINDS], *wide_send[2]; // likewise; NULL: no stage lies on several places
  const i64 *after;                                  // [(rep number, cls) out][... in]
  const stage_task *tail;                            // per rep number: busy
  u32 nafter;
  const stage_after
      *after_bytes; // [number * nreps + rep number]: of what comes after, one stretch after the other
  bool after_sends; // what comes after all tasks sends
};

// The same with all sends on the compute stream. In `a`, and with parts of b.
stage_beside *sums_without_values(arena *a, const stage_beside *b, u32 nstages, u32 C);

// ---- what comes after all tasks (ending.c) -----------------------------------------------------------------
struct sim_ending {
  sim_stages
      of; // of it: nclass, nmembers, member_class, left with pl.left, nreps, start, after to after_sends
};
struct walk;
const stage_left *ending_left(sim *s, arena *a, struct walk *w, const u32 *rank_class, u32 C); // in `a`
bool ending_has_classes(const sim_ending *e, const sim_stages *st); // ranks are alike as they were there
bool ending_fits(const sim_ending *e, const sim_stages *st);        // what tasks leave is the same as there
void ending_use(arena *a, sim_stages *st, const sim_ending *e);

// ---- compiled lines (line.c) ----------------------------------------------------------------------------
enum { SLOT_NEVER, SLOT_NOBODY, SLOT_FIRST }; // a value that is never waited for; one that nobody takes
typedef enum { OP_TASK, OP_TASK_MANY, OP_TASK_END, OP_TASK_WIDE, OP_SEND } sim_op_kind;
typedef struct {   // 20 bytes: most of what a search reads
  u16 kind, place; // place: of a task
  u16 what;        // kind * stages + stage; of a send: back * links + link
  // TASK: what of the send + 1 that takes its value at once, 0: there is none; the task that takes it then, by what;
  // which pair it is of the task before it on its place and itself
  u16 send, next, pair;
  // Slots; MANY, END, WIDE: in: from there on in `many` n, n slots, m, m slots, STAGE_BEGINS, STAGE_ENDS and STAGE_SUMS. Of a send: in:
  // its slot
  u32 in, out;
} sim_op;
typedef struct {
  u32 before, what; // before: of what + 1; 0: it is the first of its place
} sim_pair;
typedef struct {
  u32 first, len, times; // of the word
} sim_stretch;
typedef struct {
  const u32 *type;
  u32 n;
  const sim_stretch *v;
} sim_word;
struct sim_line {
  u32 n, nslots;
  const sim_op *op;
  const u32 *many;
  bool at_once; // every value is sent by the task that makes it, and there is nothing else
  u32 npairs;
  const sim_pair *pair;
  const u32 *last;  // per place: what + 1 of its last task; 0: it has none
  sim_word *word;   // per place: what it does to its memory
  const u32 *count; // per type
  u32 nreplicas, nplaces, nstages, nlinks;
  bool ends;        // of stages with ends of their own
  const bool *sums; // per stage: its last task sums; NULL: none does
  u32 nothers;
  const stage_other *others;
  const u32 *micro;
  const u16 *place; // of the stages that it was made for
  const bool *wide; // likewise
  const u32 *carried;
  const sim_link *link;
  const u8 *
      early; // per stage: STAGE_FREES, of what runs for some microbatch before the weight part of the next stage
};
static inline u32 line_types(const sim_pipeline *pl) {
  return 3 * (TASK_KINDS * pl->nstages + 4 * pl->nlinks);
}
static inline u32 line_other_type(const sim_pipeline *pl, u32 other) { return line_types(pl) + other; }
static inline u32 line_task_type(const sim_pipeline *pl, u32 what, u32 turn) {
  (void)pl;
  return 3 * what + turn;
}
static inline u32 line_send_type(const sim_pipeline *pl, u32 what, bool receiver, u32 turn) {
  return 3 * (TASK_KINDS * pl->nstages + 2 * what + receiver) + turn;
}
#endif
