// gtrace.h - messages of dPRO's traces by their transaction ids. Private to trace/gtrace*.c.
#ifndef HEDDLE_TRACE_GTRACE_H
#define HEDDLE_TRACE_GTRACE_H
#include "trace/chrome.h"

// Of NCCL a worker's ends of the steps of a ring; of BytePS requests of workers and answers of servers.
typedef enum { GTRACE_SEND, GTRACE_RECV, GTRACE_PUSH, GTRACE_PUSHED, GTRACE_PULL, GTRACE_PULLED } gtrace_what;
typedef struct {
  u32 event;
  gtrace_what what;
  sym from, to, tensor; // SEND: to, RECV: from may be 0: nothing says who is next in the ring
  sym part;             // of the tensor; of a ring its loop, channel and slice
  i64 chunk;            // step of the ring
  i64 step;             // of training; -1: not said: the k-th with this id is of the k-th step
  i64 start_ps;
  bool outside; // its other end is recorded in another file, if at all
} gtrace_message;

// Ties what belongs together: ends of one message (trace.match); what waits for what (trace.edges): the next step of a ring for
// what came in, a server's answer for its request, what is pulled for the pushes of all workers. W_TRACE_ODD: some have
// no other end, or are there twice.
void gtrace_link(reading *x, arena *tmp, gtrace_message *v, u32 n);

// ---- gtrace_ring.c: who is next ---------------------------------------------------------------------------
typedef struct {
  u32 channel, from, to; // ranks of NCCL
} gtrace_hop;
typedef struct {
  VEC(gtrace_hop) hops; // of all workers whose graphs were found
} gtrace_rings;
// Adds a worker's nccl_rank_graph.json. *rank: the worker's; TRACE_NONE: there is no such file, or a warning says that it has no
// rings. False and a diagnostic: it is no JSON.
bool gtrace_rings_add(reading *x, arena *tmp, const char *path, gtrace_rings *r, u32 *rank);
// To whom `rank` sends in a channel, or from whom it receives. TRACE_NONE: not known.
u32 gtrace_peer(const gtrace_rings *r, u32 channel, u32 rank, bool sends);

// ---- gtrace_sizes.c: bytes ---------------------------------------------------------------------------------
// Says the bytes of messages of a ring of so many workers, if the list of tensors is there. False and a diagnostic: it is no JSON.
bool gtrace_sizes(reading *x, arena *tmp, const char *path, u32 workers, const gtrace_message *v, u32 n);
#endif
