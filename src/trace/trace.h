// trace.h - event columns: the one form of a timeline, whether simulated, executed or imported. Layer 3.
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

// Room for n more events; columns move. Columns not written by the caller are undefined.
void trace_reserve(arena *a, trace *t, u32 n);
// Events in order of (rank, stream, start); stable. order[k] = index of the k-th event.
u32 *trace_order(arena *a, const trace *t);
// Last end of any event.
i64 trace_span_ps(const trace *t);
#endif
