// straggler_making.h - what the making of a pipelined job shares. Private to straggler*.c.
#ifndef HEDDLE_DIAGNOSE_STRAGGLER_MAKING_H
#define HEDDLE_DIAGNOSE_STRAGGLER_MAKING_H
#include "diagnose/diagnose.h"

// The operations of one step, in order of (worker, type, start). All steps that are used have the same ones.
typedef struct {
  ctx *c;
  arena *a, *tmp; // of the result; of what is needed to make it
  sym file;
  const trace *t;
  straggler *s;
  u32 nops;
  straggler_node *op;
  u32 *first;        // nworkers x types + 1: operations of a type of a worker are first[k]..first[k + 1]
  const u32 *events; // nsteps x nops
  u32 nchunks;       // of the model, on a worker
  // by straggler_link
  u32 ngroups;
  u32 *group; // of every operation that others take part in: number; TRACE_NONE
  u32 *node;  // that an operation became
} straggler_making;
static inline const u32 *ops_of(const straggler_making *m, u32 worker, straggler_type t) { // [0], [1]
  return &m->first[worker * STRAGGLER_TYPES + t];
}
static inline i64 start_of(const straggler_making *m, u32 op) { return m->t->start_ps[m->events[op]]; }
static inline i64 end_of(const straggler_making *m, u32 op) {
  return start_of(m, op) + m->t->dur_ps[m->events[op]];
}
// What waits for what, by the first step; makes nodes, waits and the graph. False and a diagnostic: no pipeline.
bool straggler_link(straggler_making *m);

// ---- straggler_rerun.c: one step, with few other durations ------------------------------------------------
typedef struct {
  const u32 *at, *to; // the nodes that wait for slot k are to[at[k]..at[k + 1])
} straggler_next;
const straggler_next *straggler_next_of(arena *a, const straggler *s);
typedef struct straggler_rerun straggler_rerun; // for one thread
straggler_rerun *straggler_rerun_new(arena *a, const straggler *s, const straggler_next *next);
void straggler_rerun_base(straggler_rerun *r, const i64 *base_ps); // n durations
// The end of the step if these nodes take dur_ps[node] in place of what the base has.
i64 straggler_rerun_with(straggler_rerun *r, const u32 *node, u32 n, const i64 *dur_ps, const i64 *base_ps);

bool straggler_unfit(const straggler_making *m, const char *fmt, ...)
    PRINTF_LIKE(2, 3); // a diagnostic; false
#endif
