// job.h - the data-parallel job of a model on a machine, and what Daydream says of it. Included by programs only.
#ifndef HEDDLE_BENCH_JOB_H
#define HEDDLE_BENCH_JOB_H
#include "cost/cost.h"
#include "front/front.h"
#include "pass/pass.h"
#include "tune/tune.h"

// batch: of a worker. profiles: times measured on that machine; NULL: by its figures. NULL and a diagnostic: there is no such
// job.
static inline tune_job *job_of_model(ctx *c, arena *a, const char *model, const front_opts *f,
                                     optimizer update, const char *on, const char *profiles,
                                     const tune_link *l) {
  const optim_opts o = optim_default(update);
  prog *p = front_load(c, model, f);
  machine *m = machine_load(c, a, on);
  if (m && profiles && !machine_events_read(m, a, profiles)) m = NULL;
  cost_model *k = m ? cost_model_new(c, a, m, NULL) : NULL;
  tune_job *j = p && k && pass_loss(p) && pass_train(p, &o, false) ? tune_of_program(c, a, p, k, l) : NULL;
  if (p) prog_free(p);
  return j;
}

// Daydream (ATC 2020) as dPRO describes it: the kernels of one worker, and for each gradient one communication of its size
// over the bandwidth, one after the other.
static inline i64 daydream_ps(arena *a, const tune_job *of, double ps_per_byte) {
  tune_job j = *of;
  j.link = (tune_link){.workers = 2, .ps_per_byte = ps_per_byte}; // of two a ring sends every byte once
  const tune_plan p = tune_plan_new(a, &j);
  return tune_time(&j, &p, TUNE_ONE_WORKER);
}
#endif
