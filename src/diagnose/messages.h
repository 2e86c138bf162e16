// messages.h - jobs recorded as operators and messages (dPRO's traces): their global graph, and its replay. Part of diagnose.h.
#ifndef HEDDLE_DIAGNOSE_MESSAGES_H
#define HEDDLE_DIAGNOSE_MESSAGES_H
#include "diagnose/match.h"
#include "diagnose/replay.h"
#include "tune/tune.h"

// ---- the graph: message_graph.c ------------------------------------------------------------------------------
// Operators run in their order on the thread that they were recorded on. A message waits for what came in before it in
// its ring or for the requests that it answers, the first ones of a tensor for the operators that made it, which are,
// on every worker, the last of the backward that had ended when they began. The first operator after a tensor's
// last message that is no backward waits for it. Files say only what messages wait for: the rest is by their order.
typedef enum { MESSAGE_OPERATOR, MESSAGE_SENT, MESSAGE_KINDS } message_is;
typedef struct {
  message_is is;
  tune_phase phase;     // of an operator
  u32 place, to;        // of match.places: who runs it; of a message who sends and who receives it
  u32 res;              // its thread or link
  u32 step;             // of training; TRACE_NONE: not said
  sym name, tensor;     // tensor: of messages
  i64 start_ps, end_ps; // recorded, all on one clock
  i64 dur_ps, bytes;    // of a message from when both ends were there; bytes: -1: not known
  bool first;           // a message that no other message was before
} message_node;
typedef struct {
  u32 after, node; // node waits for after
} message_edge;
typedef struct {
  job *j;
  match *m; // of its files
  u32 n, nres, nmessages, nedges;
  message_node *node;       // operators by thread and start, then messages by start
  u32 *link_from, *link_to; // of a resource: places; equal: a thread
  message_edge *edge;
  u32 workers;        // places with operators
  bool ring, servers; // messages of rings, or of servers
  i64 clocks_by_ps;   // clocks were apart by up to this and are corrected; 0: as recorded
} message_graph;
// Are all files of the job such recordings?
bool message_job(const job *j);
// In the job's arena. NULL and a diagnostic: a message's other end is not there, or there are no operators or no messages.
message_graph *message_graph_of(job *j, const char *steps);

// ---- its replay: message_replay.c --------------------------------------------------------------------------------
// Latencies are one figure for a class, the median over the job.
// WAIT_STEP: between operators of different steps.
typedef enum { WAIT_OPERATORS, WAIT_STEP, WAIT_TO_LINK, WAIT_LINK, WAIT_FROM_LINK, WAIT_KINDS } message_wait;
typedef struct {
  u32 place, to; // of a link; equal: a thread
  u32 count;
  i64 busy_ps, path_ps; // its part of the longest path
} message_resource;
typedef struct {
  replay_errors error; // of the ends of all nodes
  i64 replayed_ps;
  i64 wait_ps[WAIT_KINDS];
  i64 path_begin_ps, path_operators_ps, path_messages_ps, path_latency_ps;
  u32 nres;
  const message_resource *res;
} message_replay;
// By ready queues, one for every thread and link. False and a diagnostic: nodes wait for each other in a circle.
bool message_replay_of(const message_graph *g, arena *a, message_replay *out);

#endif
