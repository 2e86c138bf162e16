// straggler.h - operations of a pipelined job on their way from a file to event columns. Private to straggler*.c.
// straggler.c reads them from JSON, straggler_table.c from Parquet, straggler_put.c makes columns of them.
#ifndef HEDDLE_TRACE_STRAGGLER_H
#define HEDDLE_TRACE_STRAGGLER_H
#include "trace/internal.h"

// Threads of a worker have numbers from THREADS * rank on.
enum { THREAD_COMPUTE, THREAD_PIPELINE, THREAD_TENSOR, THREAD_DATA, THREAD_OTHER, THREADS };
typedef enum { NONE, NEXT, DATA, TENSOR, ENDS, ALL } over; // who takes part in an operation: straggler.def
typedef struct {
  const char *name, *comm;
  u8 is, flags, over;
} operation_row;
enum {
#define OPERATION(id, name, is, flags, comm, over) OPERATION_##id,
#include "trace/straggler.def"
#undef OPERATION
  OPERATIONS
};
extern const operation_row operation_rows[OPERATIONS];

typedef struct {
  i64 pid, tid; // pid: the data rank
  bool named;   // stage and tensor are known
  u32 stage, tensor, worker;
  u32 rank; // in the job, TRACE_NONE: not said
  sym kind;
} thread;
typedef struct {
  u32 thread, row; // row: TRACE_NONE: not of the table
  sym name;
  i64 start_ps, dur_ps, seq;
  u32 step, microbatch, chunk;
} operation;
typedef struct {
  u32 data, stage, tensor, rank, process;
} worker;
typedef struct {
  reading *x;
  arena *tmp;
  hmap by_thread, by_comm;
  VEC(thread) threads;
  VEC(operation) operations;
  VEC(worker) workers;
  u32 size[3], tensors; // data, stages, tensor as found; tensor ranks of the job, recorded or not
  u32 world_size;
  double base_us; // that times are relative to; 0: they are as in the file
} timeline;

// The thread of these numbers, made if need be. Valid until the next one is made.
u32 straggler_thread(timeline *l, i64 pid, i64 tid);
u32 straggler_row(const char *name); // of operation_rows; TRACE_NONE: none
// All threads and operations as columns of l->x->t. False and a diagnostic: there is no operation.
bool straggler_put(timeline *l);
// Parquet, whose first bytes have been recognised: fills l. False and a diagnostic: nothing can be made of it.
bool straggler_table(timeline *l);
#endif
