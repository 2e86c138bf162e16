// internal.h - what parts of the room share. Private to diagnose/.
#ifndef HEDDLE_DIAGNOSE_INTERNAL_H
#define HEDDLE_DIAGNOSE_INTERNAL_H
#include "diagnose/diagnose.h"

// Why nothing ran from since_ps until the event began.
idle_kind idle_reason(const trace *t, u32 event, i64 since_ps);

// Recordings that begin further apart than five days are not of one job. Sums of a few such times fit in picoseconds.
#define JOB_FAR_NS ((i64)5 * 24 * 3600 * 1000000000)

static inline u64 event_hash(u32 file, u32 event) { // no two are equal
  return hash_u64((u64)file << 32 | event, 1);
}
#endif
