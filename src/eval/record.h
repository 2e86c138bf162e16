// record.h - what a rank's recorder keeps. Private to eval/record.c, which notes it, and eval/recorded.c, which plays it.
#ifndef HEDDLE_EVAL_RECORD_H
#define HEDDLE_EVAL_RECORD_H
#include "eval/internal.h"
#include "eval/ticks.h"
#include "trace/trace.h"

enum {
  BLOCK = (1 << 15) - 4
}; // events: with all headers around them 2 MiB, a large page where there are such
typedef struct noted {
  u32 func, instr; // from 1; func 0: a step
  group g;         // that the function runs on
  u32 step, task;
  u16 microbatch, layer; // NARROW_NONE: none; number of the layer + 1, 0: of none
  u32 seq, peer; // of a communication: its number; of a message between two ranks that, and the other rank
  i64 start, dur, waited; // in ticks (ticks.h)
  i64 bytes;
} noted; // 64 bytes
// A step says what both clocks read when it began, in start and waited, and when it ended, in start + dur and bytes.
// A communication that consists of messages: noted with peer IN_MESSAGES, for what they have in common, then each of
// them, with func MESSAGE. These tell in other words than what their fields say: instr is whether it was sent, g and step
// are the step of the ring and the chunk, task whether it was sent early. If it went on beside computation, dur of the former is the number of the call that
// began it, else 0. CALL: func of a call of the host, instr is which, seq its number.
enum { IN_MESSAGES = TRACE_NONE - 1, MESSAGE = TRACE_NONE, CALL = TRACE_NONE - 2 };
enum { NARROW_NONE = UINT16_MAX };
enum { CALL_BEGIN, CALL_WAIT, CALLS };
// Behind the streams: what goes on beside computation, whatever its stream, for one thread does it all; threads of the host.
// LANE_EARLY: what that thread sends of a communication before its turn, while it would wait for an earlier one.
typedef enum { LANE_BESIDE, LANE_EARLY, LANE_STEPS, LANE_HOST, LANES_AFTER } lane_after;
typedef struct block block;
struct block {
  block *next;
  u32 n, room;
  noted v[];
};
// Of a function that runs on a group, by instruction: does it move anything between ranks, and does this rank have a part
// in it? Neither of the latter: that is not known yet.
enum { PART_MOVES = 1, PART_NONE = 2, PART_TAKEN = 4 };
typedef struct parts parts;
struct parts {
  parts *next; // of the same function
  group g;
  u8 part[];
};

struct recorder {
  arena *a;
  const interp *m;
  eval_link inner, outer; // what joins the ranks, and what interp sees of it
  u32 nranks, nstreams;
  i64 base_ns, zero_ns;        // since 1970; of the monotonic clock: when recording began
  block *first, *last, *spare; // spare: the last that there is; what is behind `last` is still empty
  u64 ahead;                   // events that there is room for, in memory that was touched
  u32 *count;                  // events of every stream, then by lane_after
  u64 n, most, begun;
  u32 step, left_out; // left_out: steps that found no room
  bool full;
  u32 *sent, *received; // by rank: messages between two
  u32 seq;              // communications so far
  u32 depth, fn, microbatch, task;
  const ir_layers *layers;
  u32 top;          // the instruction of main, from 0
  u32 layer;        // of the call that it is in
  parts **of;       // by function
  parts *here;      // of the function that runs
  ticks_pair began; // the step
  i64 at;           // when the last instruction ended; 0: the rank has done something else since
  u32 calls;        // so far
  i64 waits;        // since when the rank waits for what goes on beside computation
  struct {          // of the instruction that runs
    i64 start;
    struct errand *begun; // it goes on beside computation
    u32 to, from;
    i64 waited;
    bool message;    // every member gives to one other, at most
    VEC(noted) part; // the messages it consists of, when it is put together by them; in `a`
  } now;
};
#endif
