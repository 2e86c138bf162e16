// record.h - what a rank's recorder keeps. Private to eval/record.c, which notes it, and eval/recorded.c, which plays it.
#ifndef HEDDLE_EVAL_RECORD_H
#define HEDDLE_EVAL_RECORD_H
#include "eval/internal.h"
#include "trace/trace.h"

enum { BLOCK = 1024 };
typedef struct {
  u32 func, instr; // from 1; func 0: a step
  group g;         // that the function runs on
  u32 step, microbatch, task;
  u32 seq, peer; // of a communication: its number; of a message between two ranks that, and the other rank
  i64 start_ns, dur_ns, waited_ns, bytes;
} noted;
typedef struct block block;
struct block {
  block *next;
  u32 n;
  noted v[BLOCK];
};

struct recorder {
  arena *a;
  const interp *m;
  eval_link inner, outer; // what joins the ranks, and what interp sees of it
  u32 nranks, nstreams;
  i64 base_ns, zero_ns; // since 1970; of the clock that times are taken of
  block *first, *last;
  u32 *count; // events of every stream, then of steps
  u64 n, most, begun;
  u32 step, left_out; // left_out: steps that found no room
  bool full;
  u32 *sent, *received; // by rank: messages between two
  u32 seq;              // communications so far
  u32 depth, fn, microbatch, task;
  i64 step_ns; // when it began
  struct {     // of the instruction that runs
    u32 to, from;
    i64 waited_ns;
    bool message; // every member gives to one other, at most
  } now;
};
#endif
