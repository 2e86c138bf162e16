// compare.h - a job's recording beside the simulation of the plan that it runs: where the step's time went and where
// the prediction has it, row by row. Part of diagnose.h.
//
// Idea: both sides are slices of time on ranks. A step is one stretch of time, the same for all ranks, and every
// instant of it on a rank counts once, in the first row of those that run. So rows add up to the step's time on either
// side, and their differences to the gap, to the picosecond.
#ifndef HEDDLE_DIAGNOSE_COMPARE_H
#define HEDDLE_DIAGNOSE_COMPARE_H
#include "diagnose/diff.h"

typedef enum {
#define CLASS(id, name) KERNEL_##id,
#include "diagnose/classes.def"
  KERNEL_CLASSES
} kernel_class;
// By the table of patterns; never by guessing.
kernel_class kernel_class_of(const char *name);

// Rows, in the order in which they take an instant. Communications by kind (comms.def), send and recv together;
// then what the device does besides, and why it does nothing:
enum {
  COMPARE_COMM = KERNEL_CLASSES,            // + comm_kind: transfer that no computation hides
  COMPARE_COPY = COMPARE_COMM + COMM_KINDS, // only copies or fills run
  COMPARE_PEERS,  // a collective has begun whose last member has not, or nothing runs until one begins
  COMPARE_BUBBLE, // the same of a message of a pipeline; nothing is left to run in the step
  COMPARE_HOST,   // nothing runs, and what ends the pause was launched after it had begun
  COMPARE_LAUNCH, // nothing runs for less than 30 us, though it had been launched
  COMPARE_IDLE,   // nothing runs for another reason
  COMPARE_NEXT,   // predicted only, below 0: what a step saves by beginning before the last one has ended
  COMPARE_ROWS
};
const char *compare_row_name(u32 row); // "matmul" "all_reduce" "waiting for peers"

typedef struct {
  i64 start_ps, end_ps; // on the clock of the side
  sym name;
  u32 lane;
  u8 row;
  bool message;    // send or recv
  bool goes_on;    // one more message of the collective that the slice before it is part of
  i64 wait_ps;     // of a communication: until its last member came
  i64 launched_ps; // INT64_MIN: not said
  trace_origin at;
  u32 step;       // that it belongs to, of measured ones; TRACE_NONE: not said
  u32 microbatch; // TRACE_NONE: not said
  u32 meets;      // equal for the members of one rendezvous of a side, from 1; 0: on its own
  bool leads;     // of a rendezvous: the sender, or who came last; of predicted ones, the lowest rank
  i64 held_bytes; // of predicted ones: the most that the rank holds since the last one that says so; 0: not said
} compare_slice;
typedef struct { // time in which nothing runs but what waits for others
  i64 from_ps, to_ps;
  u8 row;
} compare_pause;
typedef struct {
  u32 rank, stage;
  u32 nlanes[2], npauses[2];
  const sym *lane_name[2];
  const compare_pause *pause[2]; // in the step
  u32 n[2];
  const compare_slice *slice[2]; // measured, predicted: by start
  i64 row_ps[2][COMPARE_ROWS];
} compare_rank;
typedef struct {
  const char *name; // of the class; where both sides have Heddle's words, of the operator
  u32 row;
  u64 count[2]; // on all compared ranks
  i64 total_ps[2];
} compare_event;
typedef struct {                  // an operator at a place of the model
  const char *name, *node, *func; // node, func: "": not said, or of func by one side alone
  u32 row;
  u64 count[2]; // on all compared ranks
  i64 total_ps[2];
} compare_place;
typedef struct {
  sym name;
  u64 count;
  i64 total_ps;
} compare_kernel;
// Instructions of a stage whose start and end are known on both sides; the median of their errors, of the measured step.
typedef struct {
  u32 stage;
  u64 instructions, paired; // measured; of them also predicted
  double median;
} compare_stage;
typedef struct {
  u32 n; // ranks that were recorded
  compare_rank *rank;
  u32 plan_ranks;        // of the plan
  trace_ran ran;         // what was recorded
  const char *file;      // of the first rank
  u32 members;           // of the largest group that a communication has, as far as files say
  u32 nsteps;            // that were looked at
  u32 step;              // the one that is told, TRACE_NONE: the recording has no steps
  sample steps;          // ps
  i64 least_ps, most_ps; // of them
  bool alone;            // no step before it was recorded: it is compared with one step alone
  bool clocks;           // times of ranks can be compared; else steps are laid one upon the other
  i64 clocks_by_ps;      // ... after they were put on one, since they were up to this apart; 0: as recorded
  i64 step_ps[2], from_ps[2];
  i64 row_ps[2][COMPARE_ROWS]; // sums over compared ranks
  u32 nevents;
  const compare_event *event; // the largest difference of time first
  u32 nplaces;                // only where both sides have Heddle's words
  const compare_place *place; // likewise
  u64 instructions, paired;   // likewise; of all stages
  double activity;            // mean error of starts and ends of those that are paired, of the measured step
  u32 nstages;
  const compare_stage *stage; // with any that are paired
  u32 nkernels;
  const compare_kernel *kernel; // of no class, the longest first
  u32 lone, comms;              // communications without all of their members, of all
} job_compare;

// Does the slice belong to the step that is told? By its step where that is said, else by when it starts.
bool compare_in_step(const job_compare *o, u32 side, const compare_slice *s);
void compare_places(const ctx *c, arena *a, job_compare *o); // of such slices (compare_places.c)
void compare_activity(arena *a, job_compare *o);             // likewise (compare_activity.c)

struct sim_result;
// What is predicted: a result with a timeline. steps: as of steps_choose. False and diagnostics: a file cannot be used,
// or a rank was recorded that the plan has not.
bool job_compare_of(job *j, const struct sim_result *predicted, const char *steps, arena *a,
                    job_compare *out);
#endif
