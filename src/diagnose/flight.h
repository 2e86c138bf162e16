// flight.h - what PyTorch's flight recorder has written down, of all ranks; how dumps and RAS output are read. Private
// to diagnose/. Not what follows from it (hang.c).
//
// Idea: a dump is a ring of the latest communications of one rank, with their states. Entries of all dumps lie in one
// array, sorted by group and number, so that what ranks did in one collective lies side by side.
#ifndef HEDDLE_FLIGHT_H
#define HEDDLE_FLIGHT_H
#include "diagnose/diagnose.h"

// ---- pickles: pickle.c ----------------------------------------------------------------------------------------
// As json_parse, of plain data: dictionaries are objects, with keys as text; lists, tuples and sets are arrays; bytes
// are text. A number may be infinite or none, and integers have all their digits in str. Values that the file shares
// are shared in the tree. NULL and a diagnostic: not a pickle, cut off, too large or nested too deep, or it would have
// to run code, which is never done.
const json *pickle_parse(ctx *c, arena *a, sym file, const u8 *data, size_t n);

// ---- the model: flight.c --------------------------------------------------------------------------------------
typedef enum { FLIGHT_SCHEDULED, FLIGHT_STARTED, FLIGHT_COMPLETED } flight_state;
const char *flight_state_name(u8 s);

typedef struct {
  sym name, desc;             // "0" "default_pg"
  u32 size;                   // 0: members are not known
  const u32 *member, *sorted; // ranks of the job, in the group's order; ascending
} flight_group;
typedef struct {
  u32 rank; // of the job
  u32 group;
  u32 order;             // of being recorded by this rank
  bool p2p;              // a send or receive
  u8 state;              // flight_state
  i64 seq;               // number of the collective in its group; of a message the recorder's number for it
  u32 src, dst;          // of a message, ranks of the job
  sym op;                // "all_reduce" "send" "recv"
  sym in, out;           // sizes, "[4, 4]"; of several tensors "[4, 4] [8]"
  sym in_type, out_type; // "float32"; of several types "float32, int64"
  i64 nin, nout;         // elements
  i64 bytes;             // the larger of what goes in and comes out; -1: not known
  sym at;                // who called: "train.py:41 train_step"; 0: not recorded
  i64 created_ns;
} flight_entry;
// Where a rank stands in the collectives of a group that it is in.
typedef struct {
  u32 group, rank;
  i64 first, last;        // lowest and highest number that it recorded; -1: none
  i64 enqueued;           // highest number that it came to, recorded or not; -1: none is known
  i64 started, completed; // highest numbers; -1: none is known
} flight_stand;
typedef struct {
  u32 rank;
  sym path;
  bool lost;   // the ring was full: what came first is not there
  sym last_at; // where it last called anything
} flight_dump;
typedef struct {
  ctx *c;
  arena *a;
  VEC(flight_dump) dumps;    // flight_done: by rank
  VEC(flight_group) groups;  // in the order in which they are met
  VEC(flight_entry) entries; // flight_done: by group, collectives before messages, number, rank, order
  VEC(flight_stand) stands;  // flight_done: by group, rank
  u32 skipped;               // entries that cannot be understood
} flight;
// The group of this name and these members, in the group's order; made if need be.
u32 flight_group_of(flight *f, sym name, sym desc, u32 n, const u32 *member);
flight_stand *flight_stand_add(flight *f, u32 group,
                               u32 rank); // the one of this rank's dump, made if need be
// Call when all dumps are added. False and a diagnostic: two dumps are of one rank.
bool flight_done(flight *f);
const flight_dump *flight_dump_of(const flight *f, u32 rank);              // NULL: none
const flight_stand *flight_stand_of(const flight *f, u32 group, u32 rank); // NULL: none

// ---- dumps: flight_read.c --------------------------------------------------------------------------------------
// Adds one dump. rank: of what its name says; TRACE_NONE: nothing. False and a diagnostic: it is no dump, or does not
// say its rank either.
bool flight_add(flight *f, sym file, u32 rank, const json *dump);
// A number, also as text. dflt: it is none.
i64 flight_int(const json *j, i64 dflt);
// Text of a file for reports, without control characters; 0: not text.
sym flight_text(ctx *c, const json *j);

// ---- RAS output: ras.c -------------------------------------------------------------------------------------------
bool ras_is(const json *j);
// The JSON of `ncclras -f json`. NCCL 2.28 leaves out a comma, which is put in. NULL and a diagnostic.
const json *ras_parse(ctx *c, arena *a, sym file, const char *text, size_t n);
// Appends to h what this output says. False and a diagnostic: its communicators cannot be understood.
typedef VEC(hang_finding) hang_findings;
typedef VEC(hang_comm) hang_comms;
bool ras_add(ctx *c, arena *a, sym file, const json *ras, hang_findings *found, hang_comms *comms);

// ---- answers: hang.c ------------------------------------------------------------------------------------------
typedef struct {
  flight f; // its c and a are set
  hang_findings ras;
  hang_comms comms;
} hang_input;
// Adds the bytes of a file: a dump as JSON or as pickle, or RAS output. rank: by its name. text ends in NUL. False and a
// diagnostic.
bool hang_take(hang_input *x, sym file, u32 rank, const char *text, size_t n);
hang *hang_of(hang_input *x); // after the last one; NULL and a diagnostic

// ---- findings: hang.c, hang_pairs.c, hang_order.c ------------------------------------------------------------
hang_ranks hang_ranks_of(arena *a, u32 n, const u32 *v); // sorted, each once
const char *hang_who(arena *a, const hang_ranks *r);     // "rank 1", "ranks 0, 2, 3"
bool hang_has(const hang_ranks *r, u32 rank);
const char *hang_group_name(arena *a, ctx *c, sym name, sym desc); // "group 0 (default_pg)"
void hang_collectives(const flight *f, arena *a, hang_findings *found, u32 *numbers, u32 *matched);
void hang_pairs(const flight *f, arena *a, hang_findings *found, u32 *messages);
// Ranks that wait for each other; which finding follows from which; order by what came first.
void hang_arrange(const flight *f, arena *a, hang_findings *found);
#endif
