// internal.h - what the files of sched/ share among themselves and hide from everybody else.
#ifndef HEDDLE_SCHED_INTERNAL_H
#define HEDDLE_SCHED_INTERNAL_H
#include "sched/sched.h"

enum {
  TASKS_MAX = 1 << 28, // of one schedule, on all places
  STAGES_MAX = UINT16_MAX,
  PLACES_MAX = UINT16_MAX,
  PASSES_MAX = UINT8_MAX,
};

// ---- generators ---------------------------------------------------------------------------------------
// One skeleton: write the tasks of one place from t on, in order, and return where they end. The shape has
// been checked, and its group is not 0. Without backward a generator writes all forwards and nothing else. A row
// whose stages are all split has for each at least one backward in two parts. One that writes ALL places (schedules.def)
// puts those of each behind those of the place before it; every place has as many.
#define FILL_PLACE(id) sched_task *fill_##id(const sched_shape *s, u32 place, sched_task *t);
#define FILL_ALL(id)   void fill_##id(const sched_shape *s, sched_task *t);
#define SCHEDULE(id, name, aliases, about, chunks, group, split, placement, least, multiple, weights, ahead, \
                 by)                                                                                         \
  FILL_##by(id)
#include "sched/schedules.def"
#undef SCHEDULE
#undef FILL_PLACE
#undef FILL_ALL

// The order in which a place of a loop takes (chunk, microbatch): a group of microbatches in chunk 0, the same group in
// chunk 1, .., then the next group. The last group may be short. Backwards go through the chunks from the
// last to the first.
typedef struct {
  u32 places, chunks, micro, group;
  u32 chunk, mb, first, end; // the next one; its group
} walk;
static inline walk walk_of(const sched_shape *s) {
  return (walk){.places = s->places,
                .chunks = s->chunks,
                .micro = s->micro,
                .group = s->group,
                .end = MIN(s->group, s->micro)};
}
static inline sched_task *put_next(walk *w, u32 place, task_kind kind, sched_task *t) {
  u32 chunk = kind == TASK_F ? w->chunk : w->chunks - 1 - w->chunk;
  *t = (sched_task){.stage = (u16)(chunk * w->places + place), .kind = (u8)kind, .mb = w->mb};
  if (++w->mb == w->end) {
    if (++w->chunk == w->chunks) {
      w->chunk = 0, w->first = w->end;
      w->end += MIN(w->group, w->micro - w->end);
    }
    w->mb = w->first;
  }
  return t + 1;
}

// One kind of task: that of microbatch m is at `first` + m times the length of a period. Of equal times the earlier line of
// a table comes first.
typedef struct {
  u16 stage;
  task_kind kind;
  u8 pass;
  u64 first;
} beat;
enum { BEATS_MOST = 8 };
sched_task *merge_beats(const beat *v, u32 n, u64 period, const sched_shape *s, sched_task *t);

void unknown_schedule(ctx *c, const char *name, loc where); // tells those that there are

// ---- schedules ----------------------------------------------------------------------------------------
static inline const sched_places *places_of(const sched *s, const sched_task *t) {
  return &s->at[(size_t)t->replica * s->nstages + t->stage];
}
u32 npasses_of(const sched *s);
u64 ntasks_of(const sched *s);
void sched_seal(sched *s);                                  // works out the key
void sched_set_micro(arena *a, sched *s, const u32 *micro); // of nreplicas replicas
// "3F0"; with replica, pass and version behind it where they are not 0: "3F0r1p2v1".
typedef struct {
  char s[48];
} task_name;
task_name name_of(const sched_task *t);

// ---- checks -------------------------------------------------------------------------------------------
#define NO_TASK UINT32_MAX
typedef struct {
  u32 place, index;    // of the task at fault; NO_TASK: of the whole
  u32 edge;            // at fault, + 1; 0: none
  const char *message; // NULL: nothing is wrong
  const char *hint;    // or NULL
} fault;
fault sched_fault(arena *a, const sched *s);

// ---- the merge ----------------------------------------------------------------------------------------
// Where a place stands. A place goes through the phases once for every task (or pair) of its sequence.
typedef enum {
  SENDING,   // what it ran last is being sent
  GATHERING, // the other places of the task are not there yet
  NEEDING,   // something that the task needs was not made yet
} phase;
typedef struct {
  u32 at;    // the next task
  u32 clock; // the first step at which it can run, of what is known by now
  u32 item;  // sends or needs that are known to be done
  u32 next;  // another place that waits for the same, + 1
  u8 phase;
  u8 ran;      // tasks that ran together last: 0, 1 or 2
  bool second; // of a pair: the needs of its second task are looked at
} cursor;

enum { FWD, BWD, WGT, DIRECTIONS }; // W matters only to tasks on several places
static inline u32 direction_of(u8 kind) { return kind == TASK_F ? FWD : kind == TASK_W ? WGT : BWD; }

// A cell holds when something happened: the first step at which it counts, + 1; or, marked, the first of the
// places that wait for it, + 1; or 0.
typedef u32 cell;
#define CELL_WAITED (1u << 31)

// Tables of cells are indexed by (replica, pass, stage, microbatch): cell_index.
typedef struct {
  const sched *s;
  arena *a;
  sched_buffers buffers;
  u32 npasses;
  size_t ncells;
  u32 *reads, *read;        // stage k reads read[reads[k]] .. read[reads[k + 1] - 1]
  u32 *feeds, *fed;         // the other way round
  u32 *returns, *returned;  // where gradients go: as `reads`
  u32 *receives, *received; // whence they come: as `feeds`
  u32 nlast, *last;         // stages that nobody reads
  cell *done[2];            // forward; backward
  cell *here[2];            // rendezvous: the place of the task stands at it
  u32 *sent[2];             // depth: by (replica, stage): messages sent
  u32 *order[2], *nth[2];   // depth: the n-th message is of which index inside (replica, stage); and back
  bool plain;               // unbounded, with one pass
  bool bounded;             // does a sender ever wait?
  bool several;             // do some stages lie on several places?
  cell *gather[DIRECTIONS];
  u16 *gathered[DIRECTIONS];
  cursor *cur;                    // by place
  u32 *queue, head, tail, queued; // places that can go on; a ring
  u32 left;                       // places that have something to run or to send
  u32 *step, *base;               // step[base[place] + index]
  u32 nsteps;
} merge;
static inline size_t cell_index(const merge *m, const sched_task *t) {
  const sched *s = m->s;
  return (((size_t)t->replica * m->npasses + t->pass) * s->nstages + t->stage) * s->nmicro + t->mb;
}
void merge_open(merge *m, arena *a, const sched *s, const sched_buffers *b);
bool sched_runs(const sched *s, const sched_buffers *b);
// chain.c: is it of the form that this knows? Then its line, in v; false: a deadlock, or (*fits false) there are
// pairs. And without the line.
bool chain_is(const sched *s);
bool chain_ends(arena *a, const sched *s, bool *fits);
bool chain_run(arena *a, const sched *s, sched_slot *v, u32 *nsteps, bool *fits);
bool share_places(const sched_places *a, const sched_places *b); // clock.c
// How long what a task on places `from` makes is on its way to a task on places `to`: 0 if each of these has it already.
u64 way_of(const sched_places *from, const sched_places *to, u64 send);
void deadlock_report(ctx *c, const merge *m, loc where);

// What a place waits for.
typedef struct {
  cell *cell;
  sched_task task; // that must run (NEEDING), use what it gets (room), be reached (rendezvous)
  bool room;       // the task has not used its message, so there is no room for the next one
} want;
// The item that is not done at which the place stands.
want merge_want(const merge *m, u32 place);
#endif
