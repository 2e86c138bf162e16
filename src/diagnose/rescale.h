// rescale.h - a recorded job with more data ranks: what a step would take. Part of diagnose.h.
//
// Idea: a replay in which the recorded data ranks stay and others like them are added. New ranks do as much as the
// recorded ones (every data rank brings its own microbatches), so two things change. Communications of data parallelism
// have more members: their transfer is scaled by what a machine model says of both sizes, so the model only
// extrapolates. And the last of more members comes later: the new ranks' delays are drawn from those of the recorded
// ranks over all steps, and what is taken is the expected maximum.
#ifndef HEDDLE_DIAGNOSE_RESCALE_H
#define HEDDLE_DIAGNOSE_RESCALE_H
#include "diagnose/straggler.h"

// The expected maximum of `most` and of `more` independent draws from the empirical distribution of v[0..n), ascending:
//   most F(most)^more + sum over v[i] > most of v[i] ((i/n)^more - ((i-1)/n)^more),  i from 1, F(x) = #{v <= x} / n,
// the expectation of the largest order statistic (David and Nagaraja, Order Statistics, 2.1: its distribution function
// is F^more).
double rescale_expected(const double *v, u32 n, double most, u32 more);

struct machine;
// How much longer communications take with other members. Without a machine by the traffic of rings (comm_bus_factor).
typedef struct rescale_model rescale_model;
// place[0], place[1]: of the recorded and the new group nsub x size ranks, subgroups that communicate at once. NULL and
// a diagnostic: the machine has too few devices.
rescale_model *rescale_model_new(ctx *c, arena *a, const struct machine *m, const u32 size[2], u32 nsub,
                                 const u32 *const place[2]);
// Time with new members over time with the recorded ones, of a transfer that took so long. Where the bytes are not
// known they are those with which the model takes as long. Below 0 and a diagnostic: a link is missing.
double rescale_ratio(rescale_model *k, const char *op, i64 bytes, i64 took_ps);

typedef struct {
  const char *name;           // of the operation
  u32 count;                  // in a step; of kernels: in the recording
  u32 from, to;               // members
  double before_ps, after_ps; // transfer, mean
  double late_ps;             // by which the last member comes later, mean
} rescale_row;
typedef struct {
  u32 ranks[2];  // of the job, recorded and new
  u32 data[2];   // data ranks
  bool pipeline; // a step of a pipelined job; else all of the recording
  u32 nsteps;
  double recorded_ps;  // as recorded
  double replayed_ps;  // the same by the replay
  double transfer_ps;  // with transfers among more members
  double late_ps;      // with late members
  double predicted_ps; // with both
  u32 n;
  const rescale_row *row;
  u32 draws; // of the pools, on average
} job_rescale;
// ranks: of the new job; m: NULL: none. at: where ranks were said. False and diagnostics: a file cannot be used, no
// data parallelism was recorded, the number does not fit.
bool job_rescale_of(job *j, const char *steps, u32 ranks, const struct machine *m, arena *a,
                    job_rescale *out);
// Of a pipelined job that is known already.
bool straggler_rescale(ctx *c, arena *a, const straggler *s, u32 ranks, const struct machine *m, loc at,
                       job_rescale *out);
#endif
