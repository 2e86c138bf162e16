// diff.h - two recordings compared: by more than noise, and where. Part of diagnose.h.
#ifndef HEDDLE_DIAGNOSE_DIFF_H
#define HEDDLE_DIAGNOSE_DIFF_H
#include "diagnose/job.h"

// ---- before and after: diff.c ---------------------------------------------------------------------------
typedef struct {
  u32 n;           // samples
  double mean, sd; // sd: of one sample; 0 if n < 2
} sample;
// The difference of two means with its standard error (Welch), and what it must exceed to be told from noise: the 95 %
// quantile of Student's t with Welch's degrees of freedom, times the standard error. INFINITY: one of them has a single
// sample, so nothing is known of its noise.
typedef struct {
  double change, error, noise;
} sample_change;
sample sample_of(const double *v, u32 n);
sample_change sample_compare(const sample *before, const sample *after);

typedef enum { DIFF_FASTER = -1, DIFF_SAME = 0, DIFF_SLOWER = 1, DIFF_UNKNOWN = 2 } diff_verdict;
enum { DIFF_PARTS = 7 };
extern const char *const diff_part_names[DIFF_PARTS]; // "computation" "exposed communication" "copies" ..
typedef struct {
  u32 files, ranks, world; // world: ranks that the job had, as a file says; 0: none does
  sample step; // ps: of every step, that of its slowest rank; of a job without steps one sample, all of it
  double part[DIFF_PARTS]; // ps, mean over ranks and steps
  u32 steps;               // looked at on every rank, at the most
} diff_side;
typedef struct {
  sym name;
  bool comm, split; // split: waiting is known of all of them, on both sides
  double count[2], ps[2],
      wait_ps[2]; // of a rank in a step, before and after; wait_ps: for members that came later
} diff_kernel;
// Of the communications that are split, by how much they and the waiting in them change, and for whom it grows most.
typedef struct {
  bool known;         // there are such, on both sides
  double doubt_ps;    // that corrected clocks leave in wait_ps, at the most; 0: clocks are as recorded
  double ps, wait_ps; // of a rank in a step
  u32 rank;           // TRACE_NONE: no rank that is known makes others wait longer
  double rank_ps;     // by which others wait longer for it
  bool nameless;      // others wait longer for one or several ranks whose files do not say which they are
} diff_waiting;
typedef struct {
  diff_side side[2];
  sample_change change;
  diff_verdict verdict;
  diff_waiting waiting;
  u32 nkernels;
  diff_kernel *kernel; // the largest change of time first
} job_diff;
// steps: as of steps_choose. False and a diagnostic: a file cannot be used.
bool job_diff_of(job *before, job *after, const char *steps, arena *a, job_diff *out);
#endif
