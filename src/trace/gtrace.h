// gtrace.h - messages of dPRO's traces by their transaction ids. Private to trace/gtrace*.c.
#ifndef HEDDLE_TRACE_GTRACE_H
#define HEDDLE_TRACE_GTRACE_H
#include "trace/internal.h"

// Of NCCL a worker's ends of the steps of a ring; of BytePS requests of workers and answers of servers.
typedef enum { GTRACE_SEND, GTRACE_RECV, GTRACE_PUSH, GTRACE_PUSHED, GTRACE_PULL, GTRACE_PULLED } gtrace_what;
typedef struct {
  u32 event;
  gtrace_what what;
  sym from, to, tensor; // SEND: to, RECV: from may be 0: the file does not say who is next in the ring
  sym part;             // of the tensor; of a ring its loop, channel and slice
  i64 chunk;            // step of the ring
  i64 step;             // of training; -1: not said: the k-th with this id is of the k-th step
  i64 start_ps;
} gtrace_message;

// Ties what belongs together: ends of one message (trace.match); what waits for what (trace.edges): the next step of a ring for
// what came in, a server's answer for its request, what is pulled for the pushes of all workers. W_TRACE_ODD: some have
// no other end, or are there twice.
void gtrace_link(reading *x, arena *tmp, gtrace_message *v, u32 n);
#endif
