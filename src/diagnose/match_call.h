// match_call.h - what the parts of matching share. Private to diagnose/match*.c.
#ifndef HEDDLE_DIAGNOSE_MATCH_CALL_H
#define HEDDLE_DIAGNOSE_MATCH_CALL_H
#include "diagnose/diagnose.h"

struct match_call {
  u32 place, file, event, at, stream; // at: index of its lane; stream: the k-th of its group on its place
  i64 start, end, seq, bytes, lane;
  sym op, group, members, name, type;
  u32 size, peer, by_file; // by_file: what the file says belongs together; 0: nothing
  bool leaves;             // it waits for nobody (TRACE_LEAVES)
  bool tied;               // a message whose number is the same on both ends
  u32 queue;
  u64 what; // operation, elements: equal on all members
};
typedef struct match_call call;

// Which of v's calls is which of to's, by order and time: pair[k], for to's call k; TRACE_NONE: none. Calls at the same
// place may be different operations (what).
void match_in_order(const call *to, u32 nto, const call *v, u32 n, u32 *pair);
#endif
