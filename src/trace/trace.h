// trace.h - event columns: the one form of a timeline, whether simulated, executed or imported. And a source
// of events, for timelines that are better made again than kept. Layer 3.
//
// Idea: one row per event and one array per property, so that a million events are a few plain arrays. An
// event occupies one stream of one rank. A communication is one event on each rank it occupies; they share a
// `match`.
#ifndef HEDDLE_TRACE_H
#define HEDDLE_TRACE_H
#include "base/base.h"

enum { TRACE_NONE = ~0u };
typedef struct {
  u32 n, cap;
  u32 *rank;
  u8 *stream;    // index into stream_name
  i64 *start_ps; // on the clock `domain` of the rank
  i64 *dur_ps;
  u32 *what;         // index into name: what ran
  u32 *func, *instr; // of the program the trace belongs to: function id, instruction number from 1; 0 = none
  loc *where;        // the user's node
  u32 *step;         // training step, from 0
  u32 *microbatch;   // TRACE_NONE where unknown
  i64 *bytes;        // moved or touched; -1 where unknown
  u32 *match;        // events of one message or collective share it; 0 = on its own
  u8 *flags;         // TRACE_...
  u32 domain; // clock of the start times: 0 = the simulator's, else 1 + number of the recording process
  u32 nranks, nstreams, nnames, nmatch;
  const sym *stream_name, *name;
} trace;
enum { TRACE_COMM = 1, TRACE_BACKWARD = 2, TRACE_UPDATE = 4, TRACE_RECOMPUTE = 8 };

// A timeline that is played as often as it is asked for. A lane is a stream of a rank: rank * nstreams +
// stream. The events of a lane come in order of their start; those of different lanes come mixed. What is the
// same for all executions of an instruction is said once, by its kind.
typedef struct {
  u32 what, func, instr;
  loc where;
  i64 bytes;
  u8 flags;
} trace_kind;
typedef struct {
  u32 stage, microbatch;
  char letter; // of the kind, as in sched.h: "2F5" is the forward of stage 2 for microbatch 5
  bool send;   // of what it has made
} trace_task;
typedef struct {
  u32 lane, kind;
  i64 start_ps, dur_ps;
  u32 microbatch;
  u32 task;        // of a pipeline, into trace_source.task; 0: none
  u32 match;       // equal for the events of one rendezvous, from 1; 0 = on its own
  u32 lowest_rank; // that meets; the event's own if it is on its own
} trace_event;
typedef void trace_tell(void *arg, const trace_event *e);
typedef struct trace_source trace_source;
struct trace_source {
  u32 nranks, nstreams, nnames;
  const sym *stream_name, *name;
  const trace_kind *kind;
  const trace_task *task;
  const u32 *count; // events of every lane
  // Tells the events of lanes from..to-1. Costs as much as all events, told or not, take to make.
  void (*play)(const trace_source *s, arena *scratch, u32 from, u32 to, trace_tell *tell, void *arg);
};
u64 trace_events(const trace_source *s);
trace *trace_collect(arena *a, const trace_source *s); // as columns, in the order in which they are played

// Room for n more events; columns move. Columns not written by the caller are undefined.
void trace_reserve(arena *a, trace *t, u32 n);
// Events in order of (rank, stream, start); stable. order[k] = index of the k-th event.
u32 *trace_order(arena *a, const trace *t);
// Last end of any event.
i64 trace_span_ps(const trace *t);
#endif
