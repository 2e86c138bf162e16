// fuzz_stages.c - times of stages as text: rejected implies a diagnostic; of what is accepted, a few stages at least, a
// schedule is found that checks, fits the limit and takes no less than the bound, or there is a diagnostic.
#include "sched/sched.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STAGES_FEW = 12, MICRO = 3 };

static void find(ctx *c, arena *a, const sched_stages *of, u64 memory) {
  const sched_aims aims = {.micro = MICRO, .memory = memory}; // no seconds: what it begins with, and the rows
  const u32 before = diag_errors(c);
  sched_synthesis x;
  const bool ok = sched_synthesize(c, a, of, &aims, &x);
  if (ok != (diag_errors(c) == before)) abort();
  if (!ok) return;
  if (!sched_check(c, x.s, (loc){0}, NULL) || x.bound > x.t.makespan) abort();
  for (u32 p = 0; p < of->nplaces; p++)
    if (x.t.memory[p] > memory) abort();
  for (u32 i = 0; i < x.nrivals; i++)
    if (x.rival[i].s && x.rival[i].fits && x.rival[i].t.makespan < x.t.makespan) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  sched_stages of;
  const bool ok = sched_stages_parse(c, a, sym_of(c, "fuzz.csv"), (const char *)data, size, &of);
  if (ok != (diag_errors(c) == 0)) abort();
  if (ok && of.nstages <= STAGES_FEW && of.nplaces <= STAGES_FEW) {
    u64 all = 0;
    for (u32 k = 0; k < of.nstages; k++) all += of.cost.memory[k];
    find(c, a, &of, SCHED_NO_LIMIT);
    find(c, a, &of, all);
    find(c, a, &of, all / 2);
  }
  if (diag_errors(c)) diag_render(c, a);
  arena_free(a);
  ctx_free(c);
  return 0;
}
