// fuzz_sched.c - schedules as text: rejected implies a diagnostic; accepted implies that the schedule checks,
// prints, reads back equal, and either merges or is refused with a diagnostic, whatever the buffers.
#include "sched/sched.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void merge(ctx *c, arena *a, const sched *s, sched_buffers b) {
  u32 before = diag_errors(c), n = 0;
  sched_line line;
  bool ok = sched_merge(c, a, s, &b, (loc){0}, &line);
  if (ok != (diag_errors(c) == before)) abort();
  for (u32 k = 0; ok && k < line.n; k++) {
    if (line.v[k].place >= s->nplaces || line.v[k].index >= s->seq[line.v[k].place].n) abort();
    if (k && line.v[k].step < line.v[k - 1].step) abort();
    n += line.v[k].step < line.nsteps;
  }
  if (ok && n != line.n) abort();
}

static void picture(ctx *c, arena *a, const sched *s) {
  static const u32 cost[TASK_KINDS] = {[TASK_F] = 1, [TASK_B] = 2, [TASK_I] = 1, [TASK_W] = 1};
  u32 before = diag_errors(c);
  sched_times t;
  strbuf out = {.a = a};
  bool ok = sched_time(c, a, s, cost, (loc){0}, &t);
  if (ok != (diag_errors(c) == before)) abort();
  if (ok) sched_picture(s, &t, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const sched *s = sched_parse(c, a, sym_of(c, "fuzz.csv"), (const char *)data, size);
  if (!s != (diag_errors(c) > 0)) abort();
  if (s) {
    strbuf out = {.a = a};
    sched_print(s, &out);
    const sched *again = sched_parse(c, a, sym_of(c, "again.csv"), sb_str(&out), out.n);
    if (!again || !sched_equal(s, again) || s->key != again->key || !sched_check(c, s, (loc){0}, NULL))
      abort();
    merge(c, a, s, (sched_buffers){0});
    merge(c, a, s, (sched_buffers){.depth = 1});
    merge(c, a, s, (sched_buffers){.depth = 2});
    merge(c, a, s, (sched_buffers){.rendezvous = true});
    picture(c, a, s);
  }
  if (diag_errors(c)) diag_render(c, a);
  arena_free(a);
  ctx_free(c);
  return 0;
}
