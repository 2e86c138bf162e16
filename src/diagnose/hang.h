// hang.h - what dumps of PyTorch's flight recorder (one for every rank) and the output of NCCL's RAS say of a job that
// does not go on. Part of diagnose.h. Not how dumps are read (flight.h).
#ifndef HEDDLE_DIAGNOSE_HANG_H
#define HEDDLE_DIAGNOSE_HANG_H
#include "base/base.h"

typedef enum {
#define HANG(id, name, pytorch, about) HANG_##id,
#include "diagnose/hang.def"
#undef HANG
  HANG_KINDS
} hang_kind;
typedef struct {
  const char *name, *pytorch, *about;
} hang_kind_row;
extern const hang_kind_row hang_kind_rows[HANG_KINDS];
typedef struct {
  u32 n;
  const u32 *v; // ranks of the job (RAS: of the communicator), ascending
} hang_ranks;
typedef struct {
  hang_kind kind;
  const char *text; // one line that says it all
  sym group, desc;  // name and description of the group, hash of the communicator; 0: of several
  sym op;           // "all_reduce"; 0: of none
  i64 seq;          // number of the collective in its group, of the message between its two ranks; -1: none
  hang_ranks who;   // those to look at: who did not come, who differs, who is behind
  hang_ranks wait;  // those that wait, or that `who` differs from
  sym at;      // where the first of `who` last called a communication: "train.py:41 train_step"; 0: not known
  i64 bytes;   // of the communication; -1: not known
  i64 when_ns; // when the first rank called it; RAS: 0
  bool done;   // a mismatch in what was done all the same
  bool follows; // from an earlier finding: `who` waits there
} hang_finding;
// Ranks that stand alike in a group.
typedef struct {
  hang_ranks ranks;
  sym group, desc;
  i64 completed, started, scheduled; // highest numbers of collectives; -1: none
  sym op;            // the first that is not done, else the last one: "all_reduce"; 0: none recorded
  i64 seq;           // its number
  const char *state; // "scheduled" "started" "completed"; NULL: none recorded
  sym at;
  i64 bytes;
} hang_stand;
// A communicator of RAS output.
typedef struct {
  sym file, hash;
  u32 size, answered, missing;
  const char *state; // "ok", or RAS's words: "INCOMPLETE,MISMATCH"
} hang_comm;
typedef struct {
  u32 dumps, ranks; // read; of the job, as far as dumps know
  hang_ranks no_dump;
  u32 groups, collectives, messages,
      matched; // matched: of the collectives, on all ranks that there are dumps of
  u32 skipped; // entries that cannot be understood
  u32 nfound, nstands, ncomms;
  const hang_finding *found; // what came first comes first
  const hang_stand *stand;   // by lowest rank, group
  const hang_comm *comm;
} hang;
// Files, and folders with dumps or RAS output directly in them. A file that cannot be read is left out with a warning
// if others can. NULL and diagnostics.
hang *hang_find(ctx *c, arena *a, u32 n, const char *const *paths);
const char *hang_ranks_text(arena *a, const hang_ranks *r,
                            u32 most); // "0-3, 7"; most: ranges, then ".."; 0: all
#endif
