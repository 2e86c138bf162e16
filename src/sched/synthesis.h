// synthesis.h - what the files that look for a schedule share. Private to sched/.
//
// A *part* is what a stage does of one kind, for any microbatch: F, and B or I and W. Of all schedules that take
// least time there is one in which every part takes the microbatches in order: exchange two that are not, and each
// still begins after what it needs, with the same memory at every time. So a schedule is an *order*: a list of parts
// with each of them once for every microbatch, in which the n-th that names a part is its microbatch n. Timed as soon
// as possible, it says what every place runs when.
#ifndef HEDDLE_SCHED_SYNTHESIS_H
#define HEDDLE_SCHED_SYNTHESIS_H
#include "sched/internal.h"

typedef struct {
  u16 part;
  u64 delay; // from the end of the one to the beginning of the other
} part_edge;
typedef struct {
  u16 stage;
  u8 kind;
  u64 dur;
  u64 takes, gives; // memory, on every one of its places: when it begins, when it ends
  u32 npred, nsucc;
  const part_edge *pred, *succ; // of the same microbatch
  const sched_places *at;
} part;
typedef struct {
  arena *a;
  const sched_stages *of;
  u32 nparts, nplaces, micro;
  u32 n;      // tasks: nparts * micro
  u64 limit;  // memory of a place
  part *part; // each after those that it needs
  u16 *forward, *release,
      *back;           // by stage: the part that takes memory, that gives it back, whose end others need
  u64 *work;           // by place: of one microbatch
  const u32 *descends; // stage_descends
  bool *is_end;        // by stage: its backward waits for no other
  u64 *due;            // by place: room of order_has_way_out
  u64 steps;           // that may be taken still: of some nanoseconds each
} synth;
void synth_open(synth *x, arena *a, const sched_stages *of, const sched_aims *aims);
static inline void spend(synth *x, u64 steps) { x->steps -= MIN(x->steps, steps); }

// Does the backward of stage `from` wait for that of stage `to`, at once or over others?
static inline bool stage_descends(const sched_stages *of, const u32 *descends, u32 from, u32 to) {
  return descends[from * ((of->nstages + 31) / 32) + to / 32] >> to % 32 & 1;
}
static inline bool stage_is_on(const sched_stages *of, u32 stage, u32 place) {
  for (u32 i = 0; i < of->at[stage].n; i++)
    if (of->at[stage].v[i] == place) return true;
  return false;
}

// ---- orders: synthesis_order.c --------------------------------------------------------------------------
typedef u16 order_item;
// When it ends. begin (or NULL): by [part * micro + microbatch].
u64 order_time(const synth *x, const order_item *o, u64 *begin);
bool order_fits(const synth *x, const order_item *o); // is it one, and is memory enough?
// Is there room for the oldest microbatch that has forwards to run? An end of the model runs forward when all stages that it
// reads, over others or at once, have; until it has, nothing of those that wait for its backward is given back, of this
// microbatch or of later ones.
// count: by part, how many ran.
bool order_has_way_out(const synth *x, const u16 *count);
void order_sort(const synth *x, order_item *o); // by when tasks begin
// The order of a schedule that lies as the stages do. begin: of its tasks.
order_item *order_of(const synth *x, arena *a, const sched *s, const sched_times *t, const sched_line *line);
const sched *order_sched(const synth *x, arena *a, const order_item *o);
// A microbatch after the other: forwards, then backwards; where that is over the limit, backwards as soon as they can, in an
// order of stages that stays below it. False: none was found.
bool order_one_by_one(const synth *x, order_item *o);

// ---- windows: synthesis_window.c -----------------------------------------------------------------------
// Orders items from..to-1 of an order anew so that all ends before `before`; the others stay. At every number of items
// `width` partial orders are kept. True: done, o is changed. *all: none was dropped, so where it is false, no order of
// these items ends earlier.
bool window_search(synth *x, order_item *o, u32 from, u32 to, u64 before, u32 width, bool *all);

// ---- lists: synthesis_list.c -----------------------------------------------------------------------------
// The best order of some hundred list schedules, others for another seed, from the beginning or from the end. False: none was
// found.
bool list_search(synth *x, u64 seed, bool from_end, order_item *o);

// ---- periods: synthesis_period.c -----------------------------------------------------------------------
// An order that repeats every `period`, from the first microbatch to the last; NULL: none was found. best: the least
// time that an order has so far.
order_item *period_search(synth *x, arena *a, u64 period, u64 best);
u64 period_least(const synth *x); // no period is shorter

// ---- bounds: synthesis_bound.c -------------------------------------------------------------------------
// By stage: from the beginning of its forward to when its memory is given back, at least.
void stages_inside(const synth *x, u64 *inside);
u64 synth_bound(const synth *x, sched_bound_of *of, u32 *place);
#endif
