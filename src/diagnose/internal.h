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

// The median (replay.c); 0: of none. Sorts.
typedef VEC(i64) figures;
i64 figures_median(figures *f);
// How far n ends are from recorded ones (late.c).
replay_errors replay_errors_between(arena *tmp, u64 n, const i64 *end, const i64 *was);

// A line through points of figures above 0 by least squares, neither part below 0 (tuning.c).
typedef struct {
  double n, s, t, ss, st; // sums of 1, x, y, x * x, x * y
} line_fit;
void line_fit_add(line_fit *f, double x, double y);
bool line_fit_of(const line_fit *f, double *start,
                 double *slope); // false: all x are the same, start is taken for 0
#endif
