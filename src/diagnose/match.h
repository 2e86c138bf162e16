// match.h - communications across ranks: which events of different processes are one. Part of diagnose.h. Not how calls are paired
// (match_call.h).
#ifndef HEDDLE_DIAGNOSE_MATCH_H
#define HEDDLE_DIAGNOSE_MATCH_H
#include "diagnose/job.h"

// ---- communications across ranks: match.c -----------------------------------------------------------------
// Which events of different processes are one communication: those that the file says are (trace.match), or that have
// the same number in their group, or else the k-th on the k-th stream of the group. A send belongs to the receive of
// its peer in the same way. Files are added one at a time, while they are loaded; what is kept of them is small.
typedef struct {
  u32 file, process; // of the job; of the file
  u32 rank;          // in the job; TRACE_NONE
  sym host;          // 0: not said
  i64 base_ps;       // of its times, from what counts as zero for all that say when they are; else 0
  bool dated;        // does it say?
} match_place;
typedef struct {
  u32 place, file, event, lane; // lane: of the file's trace
  i64 start_ps, end_ps;         // on the place's clock, base_ps included
  i64 wait_ps,
      transfer_ps; // from its start to when the last member is there; from then to its end (match_time)
  bool leaves;     // it waits for nobody (TRACE_LEAVES): its wait is 0, its transfer all of it
} match_member;
typedef enum { MATCH_BY_FILE, MATCH_BY_NUMBER, MATCH_BY_ORDER } match_by;
typedef struct {
  sym op, group, name; // name: of what ran, on the first member
  i64 seq, bytes;      // -1: not said
  u32 first, n;        // members, of match.member, in the order of files; of a message the sender first
  u32 late;            // the member that started last (match_time)
  i64 ahead_ps;        // and how much earlier the one before it did
  u32 size;            // of the group, as its members say; 0: not said
  match_by by;
  i64 at; // start of the first member
} match_row;
typedef enum {
  MATCH_ORPHAN,    // members of the group that are in the job do not have it
  MATCH_DUPLICATE, // a rank has the same number twice
  MATCH_DIFFERENT, // at the same place in the order ranks run different operations
  MATCH_UNKNOWN    // of a message: the peer is not said
} match_trouble;
typedef struct {
  match_trouble is;
  u32 place, file, event;
  sym op, group;
  i64 seq; // number or place in the order
  u32 of,
      other; // ORPHAN: so many members have it, of so many; DIFFERENT: other: event's place that it differs from
} match_problem;
typedef struct match {
  ctx *c;
  arena *a;
  VEC(match_place) places;
  VEC(match_row) row; // by the first member's start
  VEC(match_member) member;
  VEC(match_problem) problem;
  // private: what was added, and the first base of each kind
  VEC(struct match_call) calls;
  i64 zero_ns[2];
} match;
match *match_new(ctx *c, arena *a);
// The communications of a loaded file. rank: of its process, where the trace does not say.
void match_add(match *m, const trace *t, u32 file, u32 rank);
void match_finish(match *m); // matches what was added; times as recorded
// All files of a job. NULL and a diagnostic: one of them cannot be read.
match *match_job(job *j, arena *a);
const char *match_trouble_name(match_trouble t);           // "orphan"
u32 match_place_of(const match *m, u32 file, u32 process); // of a file that was added
struct align_clocks;
// Waits and transfers anew, on corrected clocks (processes are places); NULL: as recorded.
void match_time(match *m, const struct align_clocks *x);
#endif
