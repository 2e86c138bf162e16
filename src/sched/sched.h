// sched.h - pipeline schedules: which task every place runs, in which order. Layer 1. Knows no programs, no
// machines and no costs.
//
// A *stage* is a part of the model, numbered from 0 in program order. A *place* is a set of ranks that runs
// one task at a time. A *task* is what one stage does for one microbatch in one go: its forward, its
// backward, or a part of the backward. A *schedule* says on which places every stage lies, which stage reads
// what which other stage makes, and which tasks every place runs, in order. It is a value: made once, never
// changed, compared by content.
//
// What a task needs follows from the edges: F of a stage needs F of the stages that it reads; B (or I) needs
// F of its own stage and B (or I) of the stages that read it; W needs I of its own stage. Where the forward
// runs in several passes, F of a stage that reads nothing needs in every later pass F of all stages that
// nobody reads in the pass before, and B needs the last pass.
//
// Where several *replicas* of the model run, every one has microbatches of its own, which count from 0 in each, and
// says where its stages lie. A task needs tasks of its own replica only.
//
// A pair of tasks needs what both need before it starts, takes as long as both, and gives the results of both
// when it ends. A pair lies on one place. A stage on several places runs its tasks on all of them at once:
// each of these places has the task in its sequence, and it starts when all of them have come to it.
#ifndef HEDDLE_SCHED_H
#define HEDDLE_SCHED_H
#include "base/base.h"

// Kinds of tasks, as PyTorch's schedules write them: kinds.def has a row for each.
typedef enum {
#define KIND(id, letter, about) TASK_##id,
#include "sched/kinds.def"
#undef KIND
  TASK_KINDS
} task_kind;
char sched_letter(task_kind k); // 'F', 'B', 'I', 'W'

typedef struct {
  u16 stage;
  u8 kind;
  u8 replica;  // of the model: bidirectional schedules run several; else 0
  u8 pass;     // of the forward, where a microbatch runs several; else 0
  u8 version;  // which of the versions of its weights that are alive it reads; 0 where there is one
  bool paired; // runs at once with the task after it in the sequence: together they start and end
  u32 mb;      // microbatch of its replica, from 0
} sched_task;

typedef struct {
  u32 n;
  const sched_task *v;
} sched_seq;

typedef struct {
  u16 from, to;     // stage `to` reads what stage `from` makes; from < to
  bool no_gradient; // none comes back along it
} sched_edge;

typedef struct {
  u32 n;
  const u16 *v;
} sched_places; // ascending

// Where a text says it: the line of every place, and the column of every task in it.
typedef struct {
  sym file;
  const u32 *line;
  const u32 *const *column;
  const char *const *text; // of the line; NULL: too long to be shown
} sched_source;

typedef struct sched {
  const char *name; // of its row in schedules.def; "csv": from text
  u32 nstages, nplaces;
  u32 nmicro; // microbatches of a replica: the most that one has
  u32 nreplicas;
  const u32 *micro; // by replica: how many it has; NULL: each nmicro
  u32 npasses;      // forwards of a microbatch through the whole model, one after the other; 0 is 1
  u32 updates;      // microbatches of an update between tasks; 0: all of a step, when its tasks have ended
  const sched_places *at; // [replica * nstages + stage]: the places that it lies on, one or more
  u32 nedges;
  const sched_edge *edge;     // by `from`, then `to`
  const sched_seq *seq;       // one for each place
  bool backward;              // are there tasks other than F?
  const bool *split;          // per stage: some of its backwards are in two parts, I and W
  const bool *forward;        // per stage: it has no backward, though others have; NULL: there is none such
  u64 key;                    // hash of all of the above but the name
  const sched_source *source; // NULL: not from text
} sched;
bool sched_equal(const sched *a, const sched *b);
static inline u32 sched_micro(const sched *s, u32 replica) {
  return s->micro ? s->micro[replica] : s->nmicro;
}
// A gradient comes back along an edge that has one, unless either end runs forwards only.
static inline bool sched_has_gradient(const sched *s, const sched_edge *e) {
  return !e->no_gradient && !(s->forward && (s->forward[e->from] || s->forward[e->to]));
}
// Microbatches of the replicas before this one: those of a step are those of replica 0, then those of replica 1, ..
static inline u32 sched_first(const sched *s, u32 replica) {
  u32 n = 0;
  for (u32 r = 0; r < replica; r++) n += sched_micro(s, r);
  return n;
}

// ---- generators: one row each in schedules.def
// -------------------------------------------------------------
typedef struct {
  u32 places,
      chunks; // how many stages that makes, and where they lie, the row says (sched_nstages, sched_place)
  u32 micro;  // of a step; replicas have equal parts of them
  u32 group; // microbatches that a place takes before it goes on to its next chunk, or of an update; 0: `places`
  bool backward; // training
  bool paired;   // pairs of a row run at once; else one task after the other
  u32 nedges;    // 0: a chain
  const sched_edge *edge;
  // Of the stages, for rows whose order is made for them (zb-1p, zb-2p); NULL: F, I and W take 1 each, and sends nothing
  const struct sched_costs *times;
} sched_shape;
bool sched_shape_same(const sched_shape *x, const sched_shape *y);
u64 sched_shape_hash(const sched_shape *x);
// Where stages lie on P places.
typedef enum {
  PLACED_LOOP, // stage k on place k % P: chunks go round
  PLACED_V, // every second chunk runs the other way: stages 0 and 2P-1 lie on place 0, P-1 and P on the last one
  PLACED_BOTH, // two replicas: stage k of the second lies where stage P-1-k of the first does
  PLACED_WIDE, // stage k on place k-1, between a first stage and a last one that lie on all places
  PLACED_PASSES, // a forward goes three times through the places: chunk k of a place is the same stage in pass k
} sched_placement;
typedef enum { SPLIT_NO, SPLIT_ALL, SPLIT_SOME } sched_split;
// When weights are updated. ONE: when a step's tasks have ended. Else between tasks, and tasks of one microbatch read one
// version, forward and backward (n stages): STASHED after every backward; a forward reads the newest version, and stage s
// keeps the n - s versions that its microbatches under way read. DOUBLE after the last backward of every group of
// microbatches; a group reads what the last but one before it has left, so there are two versions.
typedef enum { WEIGHTS_ONE, WEIGHTS_STASHED, WEIGHTS_DOUBLE } sched_weights;
// Forwards that a stage begins before a backward has come back, one chunk on each place: schedules.def.
typedef enum { AHEAD_OTHER, AHEAD_DEPTH, AHEAD_TWICE } sched_ahead;
enum { CHUNKS_ANY = 0 };
typedef struct {
  const char *name;          // "1f1b"
  const char *aliases;       // "dapple,pipedream-flush"
  const char *about;         // a sentence for users
  u32 chunks;                // on each place; CHUNKS_ANY: one or more
  bool group;                // reads sched_shape.group
  sched_split split;         // backward in two parts; SOME: of every stage that of some microbatches
  sched_placement placement; // of its stages
  u32 least;                 // microbatches for each place, at least
  u32 multiple;              // microbatches of a step are one of this
  sched_weights weights;
  sched_ahead ahead;
} sched_row;
// Replicas of the model that a row runs, passes of a forward, how many of its stages lie on all places, stages of one replica, is
// a stage one of those on all places, and the place of a stage; of several the lowest.
static inline u32 sched_replicas(const sched_row *r) { return r->placement == PLACED_BOTH ? 2 : 1; }
static inline u32 sched_passes(const sched_row *r) { return r->placement == PLACED_PASSES ? 3 : 1; }
static inline u32 sched_nwide(const sched_row *r) { return r->placement == PLACED_WIDE ? 2 : 0; }
// Are its weights updated between tasks? r NULL: no.
static inline bool sched_is_asynchronous(const sched_row *r) { return r && r->weights != WEIGHTS_ONE; }
static inline u64 sched_nstages(const sched_row *r, u32 places, u32 chunks) {
  return (u64)places * chunks / sched_passes(r) + sched_nwide(r);
}
static inline bool sched_is_wide(const sched_row *r, u32 places, u32 stage) {
  assert(places < UINT32_MAX);
  return sched_nwide(r) && stage % (places + 1) == 0;
}
static inline u32 sched_place(const sched_row *r, u32 places, u32 replica, u32 stage) {
  assert(places > 0);
  const bool back = replica || (r->placement == PLACED_V && stage / places % 2);
  if (sched_nwide(r)) return sched_is_wide(r, places, stage) ? 0 : (stage - 1) % places;
  return back ? places - 1 - stage % places : stage % places;
}
// Microbatches of an update; 0: all of a step. How many updates come before what a microbatch's tasks read on a stage; how
// many versions of its weights a stage keeps.
u32 sched_update_group(const sched_row *r, const sched_shape *s);
u32 sched_version(const sched_row *r, const sched_shape *s, u32 stage, u32 mb);
u32 sched_versions(const sched_row *r, const sched_shape *s, u32 stage);
const sched_row *sched_row_of(u32 i);              // number i from 0; NULL: there are no more
const sched_row *sched_row_find(const char *name); // by name or alias, case ignored; NULL: none
const char *sched_row_near(arena *a,
                           const char *name); // the name or alias that is most like it; NULL: none is
// NULL and a diagnostic at `where` (E_PLAN, E_LIMIT; E_DEADLOCK where groups of microbatches are too small
// for the places) that says which figures do not go together.
const sched *sched_make(ctx *c, arena *a, const char *name, const sched_shape *s, loc where);
// Are these sizes of a schedule of the row? Whether it deadlocks is left to sched_make. False and a diagnostic.
bool sched_possible(ctx *c, const sched_row *r, const sched_shape *s, loc where);
// Would sched_make make it? That is cheaper to find: most rows need no tasks for it.
bool sched_can_make(ctx *c, const char *name, const sched_shape *s, loc where);
// As sched_make for a graph of stages, whose edges are in order and stay the caller's. For whoever merges it at
// once: it has no key, and that it ends in no deadlock is left to sched_merge. sched_check has nothing to say.
const sched *sched_make_on(ctx *c, arena *a, const char *name, const sched_shape *s, loc where, u32 nedges,
                           const sched_edge *edge);
// The key of what sched_make makes, and nothing else: `each` is told the sequence of one place after the
// other, which it must not keep. 0 and a diagnostic as there.
u64 sched_make_key(ctx *c, const char *name, const sched_shape *s, loc where,
                   void (*each)(void *arg, const sched_seq *seq), void *arg);

// From sequences as they are, as a chain: micro[replica] microbatches, the place of a stage by [replica * nstages + stage].
// at (or NULL): all places of a stage, likewise, in place of that. Everything is copied. Nothing is checked: sched_check
// does.
const sched *sched_of_replicas(arena *a, u32 nstages, u32 nplaces, u32 nreplicas, const u32 *micro,
                               const u16 *place, const sched_places *at, const sched_seq *seq);
// The same schedule of another graph of stages.
const sched *sched_with(arena *a, const sched *s, u32 nedges, const sched_edge *edge, const bool *forward);

// ---- text: as PyTorch's pipelining reads and writes it --------------------------------------------------
// One line for each place, cells separated by commas: "0F0", "3I1", "3W1", "7B2", "(0F3;7B0)OVERLAP_F_B",
// empty cells idle; cells of its communication level (SEND_F, RECV_B, UNSHARD, ..) are read and left out, as
// they follow from the rest. Stages lie where their tasks stand. What PyTorch has no words for: replica, pass
// and version stand behind the microbatch where they are not 0 ("3F0r1p2v1"); edges that are no chain stand
// in a first line "# edges 0-1 0>2", with > those along which no gradient comes back. NULL and located diagnostics. A schedule that was read passes
// sched_check.
const sched *sched_parse(ctx *c, arena *a, sym file, const char *text, size_t n);
void sched_print(const sched *s, strbuf *out);       // reads back equal
const char *sched_choices(arena *a, const sched *s); // what a strategy must say for it: "pp=4 mb=8 v=2"
const sched *sched_read(ctx *c, arena *a, const char *path, loc where); // a file; where: that names it
// Has a schedule from text the figures of a shape (those that are not 0; groups it has none)? E_PLAN at
// `where` calls it `name` and tells both.
bool sched_fits(ctx *c, const sched *s, const char *name, const sched_shape *shape, loc where);
// Do its first and its last stage lie on all places, and between them one on each, as of a row that is PLACED_WIDE but on any
// places? Of one replica, with more than one place.
bool sched_ends_wide(const sched *s);
// Do tasks of it read several versions of weights, or update them? Then which row is it the schedule of? shape: its
// figures; the group becomes that of updates. NULL: of none, with E_PLAN at `where`, which calls it `name`.
bool sched_has_versions(const sched *s);
const sched_row *sched_row_of_versions(ctx *c, const sched *s, const char *name, sched_shape *shape,
                                       loc where);

// ---- checks and the merge -----------------------------------------------------------------------------
// Does every (stage, replica, microbatch of it) run forward once, and backward (B, or I and W) once if there is any
// backward, each on the places of its stage; are all numbers in range? With diagnostics (E_PLAN, at `where`)
// that name task and place. seq_at (or NULL): where every sequence was said.
bool sched_check(ctx *c, const sched *s, loc where, const loc *seq_at);

// How the ends of a send are coupled. When a task ends, its result is sent along every edge to a stage that
// lies on none of its places: a message on the channel of this edge, direction (forward or backward) and
// replica. (Where they share a place, that place is at both ends, and what it sends to the others holds nobody up.) A place comes to its next task when all sends of the task (or pair) before have ended; what a
// message brings can be used when its send has ended.
//   unbounded (all zero)  a send ends at once: the sender never waits;
//   depth > 0             at most so many messages of a channel are under way or waiting to be used: the send
//                         of the n-th ends when the task that uses the (n - depth)-th has run;
//   rendezvous            a send ends when the receiver comes to the task that uses the message, so two
//                         places that send to each other at once wait for ever. depth is not read.
typedef struct {
  u32 depth;
  bool rendezvous;
} sched_buffers;

// One linearisation of all sequences: at every step of a common clock each place runs its next task (pair) if
// it has come to it, and what it needs was made (a message that takes up room: used) in an earlier step.
// Tasks of one step stand in the order of places. `step` counts from 0.
typedef struct {
  u32 place, index; // seq[place].v[index]; a task on several places stands once, at its lowest
  u32 step;
} sched_slot;
typedef struct {
  u32 n, nsteps;
  const sched_slot *v;
} sched_line;
// False and a diagnostic E_DEADLOCK that tells which task every place waits at, and for what: at `where`, of
// a schedule from text at the first task that waits. The schedule has passed sched_check. b NULL: unbounded.
bool sched_merge(ctx *c, arena *a, const sched *s, const sched_buffers *b, loc where, sched_line *out);

// ---- channels -----------------------------------------------------------------------------------------
// Channels of sends between places, so that a place has one of its own for each peer and direction: those of
// from[k] to to[k] (different places) take channel[k], from 0. Pairs of places are coloured one after the
// other, which is two channels for a pipeline in one line, 64 at most. Returns how many there are.
u32 sched_channels(arena *scratch, u32 n, const u16 *from, const u16 *to, u8 *channel);

// ---- time and pictures --------------------------------------------------------------------------------
// When every task runs if a kind takes cost[kind] and sends take no time: as soon as its place is free and
// what it needs is there. The tasks of a pair run one after the other, as the published figures have it. An
// activation, of a (stage, microbatch), is alive from its F, of several passes the last, to its B or W.
typedef struct {
  u64 begin, end;
} sched_span;
typedef struct {
  u64 makespan;
  u64 held; // the same where the tasks of a pair start together, when both can, and end together; 0: there are no pairs
  const sched_span *const *at; // [place][number in the sequence]
  const u64 *busy;             // by place; it is idle for the rest of makespan
  const u32 *live;             // by place: most activations at once; 0 without backward
  const u64 *memory;           // by place: the most that activations take at once; 0 without backward
} sched_times;
// False and a diagnostic E_DEADLOCK. The schedule has passed sched_check.
bool sched_time(ctx *c, arena *a, const sched *s, const u32 cost[TASK_KINDS], loc where, sched_times *out);
// The same where stages differ. What a stage makes, and the gradient of it, reaches a stage that lies on places that have
// it not `send` after its end; meanwhile both ends go on.
typedef struct sched_costs {
  const u64 *task[TASK_KINDS]; // by stage
  const u64 *send;             // by stage
  const u64 *memory;           // by stage: of one activation, on every place of the stage
} sched_costs;
bool sched_time_of(ctx *c, arena *a, const sched *s, const sched_costs *cost, loc where, sched_times *out);
// The first place that waits, where F, I and W take 1 each, at an I of a stage that reads nothing, whose I is empty, and goes
// on to another task than its W: the wait that a plan has not. False: there is none. The schedule runs.
bool sched_waits_in_vain(ctx *c, const sched *s, u32 *place, u32 *index);
// One line for each place, a column for each unit of time where F, I and W take one and B two:
// docs/schedules.md explains it. t: of these costs. Lines longer than PICTURE_MOST units are cut, and end in
// "...".
enum { PICTURE_MOST = 1000 };
void sched_picture(const sched *s, const sched_times *t, strbuf *out);

// ---- synthesis: a schedule for given stages --------------------------------------------------------------
// Times are in picoseconds, memory in millionths of the user's unit.
typedef struct {
  u32 nstages, nplaces;
  const sched_places *at; // by stage
  u32 nedges;
  const sched_edge *edge;
  sched_costs cost;    // B takes as long as I and W
  const loc *where;    // by stage: its line
  const char *columns; // a header of the text that all these can be read from
} sched_stages;
// A table with a line for every stage (docs/schedules.md). False and diagnostics E_STAGES at line and column.
bool sched_stages_read(ctx *c, arena *a, const char *path, sched_stages *out);
bool sched_stages_parse(ctx *c, arena *a, sym file, const char *text, size_t n, sched_stages *out);
void sched_stages_print(const sched_stages *s, strbuf *out); // reads back equal
bool sched_amount(const char *text, size_t n, u64 *out); // "2.5": millionths; false: not that, or over 1e8

typedef struct {
  u32 micro;
  u64 memory;  // of every place; SCHED_NO_LIMIT
  u32 seconds; // about how long to search, counted in steps: the same figures give the same schedule
} sched_aims;
#define SCHED_NO_LIMIT UINT64_MAX
typedef struct {
  const char *name;
  const sched *s;  // NULL: the row has none for these stages
  const char *why; // ... as this says
  sched_times t;
  bool fits; // the limit
} sched_rival;
typedef enum { BOUND_CHAIN, BOUND_WORK, BOUND_MEMORY, BOUND_SEARCH } sched_bound_of;
typedef struct {
  u32 nrivals;
  const sched_rival *rival; // the rows of schedules.def
  const sched *s;           // the best that was found, never worse than a rival that fits
  sched_times t;
  u64 bound; // no schedule of these stages within the limit takes less
  // What says so: what one microbatch after the other must wait for; the work of `place`, with what comes before and
  // after it; the memory of `place`; or that the search left nothing out.
  sched_bound_of bound_of;
  u32 place;
  bool stopped; // the seconds were used up
} sched_synthesis;
// False and diagnostics: E_STAGES where one microbatch does not fit, at its stage; E_LIMIT.
bool sched_synthesize(ctx *c, arena *a, const sched_stages *of, const sched_aims *aims, sched_synthesis *out);
// The schedule of a row for these stages, made for their times where rows are, and when it runs; nothing else of *out is set.
// False and a diagnostic: there is no such row, or it has none for these stages (E_STAGES).
bool sched_row_on_stages(ctx *c, arena *a, const char *name, const sched_stages *of, u32 micro,
                         sched_synthesis *out);
// The same of a schedule from the file `path`, of so many microbatches (0: any). Edges are those of the stages.
bool sched_file_on_stages(ctx *c, arena *a, const char *path, const sched_stages *of, u32 micro,
                          sched_synthesis *out);
#endif
