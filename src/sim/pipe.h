// pipe.h - a pass over a line under way. Shared by pipe.c, totals.c, lanes.c and wide.c only.
#ifndef HEDDLE_SIM_PIPE_H
#define HEDDLE_SIM_PIPE_H
#include "sim/stages.h"

// Most rank classes of simple sends, and of lanes; most values that come to a task there, or leave it.
enum {
  SIMPLE_CLASSES = 8,
  LANE_VALUES = 3,
  ONE_PORTS = 2 * STAGE_CLASSES
}; // ONE_PORTS: most of a map of rank one
typedef struct {
  bool one; // a[o][i] = to[o] + from[i]
  bool
      all; // ... with one value at most that comes and one that leaves, and every clock is later than its task began
  u32 nin, nout;
  const i64 *a;   // as stage_task has it; NULL: there is no such task
  i64 *from, *to; // of a value besides the clocks at least
} task_map;
typedef struct {
  bool simple;  // class k to class k
  u16 from, to; // places
  i64 dur[SIMPLE_CLASSES];
  u32 strm;
  const stage_send *x;
  const stage_wide *wide; // from or to a stage on several places; NULL: neither is
} send_map;

typedef struct {
  const sim_stages *st;
  const sim_line *l;
  u32 C;
  i64 *clock;   // [place * C + class]: compute
  i64 *channel; // [(strm * places + place) * C + class]
  i64 *value;   // [slot * C + class]
  const task_map *const *task;
  const send_map *send;
  // Of stages with ends of their own: slots of these, late parameters as the step before has left them, and by task
  // when what the first of its kind waits for lets it leave every output
  i64 *slot, *frame, *late, **waited;
  i64 *sum; // of stages with tasks that sum: when each sum has ended, from sum_at[stage] on
  u32 *sum_at;
  i64 *cur, *peak, *busy, *comm; // [place * C + class]
  i64 *wide;                     // room for one map of a stage on several places
} pipe;

// What passes of the same tasks have in common.
struct sim_totals {
  const task_map *const *task;
  const sim_line *line;    // that the rest is of; NULL: of none
  i64 *peak, *busy, *comm; // [place * C + class]
};
// totals.c: what the pass that has run comes to, from `totals` as far as these know it, and left there. NULL: it is not.
void totals_add(pipe *p, arena *tmp, sim_totals *totals, sim_pipe_result *r);

// wide.c. A value from or to a stage on several places has a slot for each of these.
u32 wide_room(const sim_stages *st); // of pipe.wide
void wide_run_task(pipe *p, const sim_op *o);
void wide_run_send(pipe *p, const stage_wide *x, u32 strm,
                   u32 slot); // strm 0: it occupies the compute stream
// A task, so many times: [place * C + class]. comm may be NULL.
void wide_add_busy(const sim_stages *st, u32 what, i64 times, i64 *busy, i64 *comm);

// sums.c, where st->beside. A task that sums, besides what all tasks do: of the stage, whose clocks and values were x.
void sums_open(pipe *p, arena *tmp);
void sums_run_task(pipe *p, u32 kind, u32 stage, const i64 *x);
void sums_run_after(pipe *p);

// Runs the line for n pipes at once: of as many rank classes, SIMPLE_CLASSES at most, with the same line and
// streams, LANE_VALUES at most into and out of every task, and all sends simple. Clocks and channels go on from
// theirs, and are left as pipe.c would leave them. False, and they stay as they were: times are too long for
// lanes.
bool lanes_run(pipe *const *p, u32 n, arena *tmp);
#endif
