// fuzz_straggler.c - timelines of pipelined jobs: rejected implies a diagnostic; what is accepted is whole, and what
// can be made of it as a job has times that are no longer than all its operations one after the other.
#define _GNU_SOURCE
#include "diagnose/diagnose.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void whole(const trace *t) {
  for (u32 e = 0; e < t->n; e++) {
    must(t->lane[e] < t->lanes.n && t->name[e] < t->names.n && t->is[e] < TRACE_KINDS);
    must(t->comm[e] == TRACE_NONE || t->comm[e] < t->comms.n);
    must(trace_process_of(t, e)->placed);
  }
  for (u32 l = 0; l < t->lanes.n; l++) must(t->lanes.v[l].process < t->processes.n);
}

static void job_is_whole(arena *a, const straggler *s) {
  u32 nops = 0;
  for (u32 k = 0; k < s->n; k++) {
    nops += s->node[k].worker != TRACE_NONE;
    must(s->node[k].worker == TRACE_NONE || s->node[k].worker < s->nworkers);
    must(s->ideal_ps[k] >= 0 && s->median_ps[k] >= 0);
    for (u32 i = s->after_at[k]; i < s->after_at[k + 1]; i++) must(s->after[i] < k);
  }
  must(nops == s->nops);
  i64 *step = NEWN(a, i64, s->nsteps);
  straggler_replay(s, s->recorded_ps, step);
  for (u32 i = 0; i < s->nsteps; i++) {
    i64 most = 0;
    for (u32 k = 0; k < s->n; k++) most += s->recorded_ps[(size_t)i * s->n + k];
    must(step[i] >= 0 && step[i] <= most);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *path = memory_file(data, size);
  trace t = {0};
  trace_read_about about;
  const bool ok = trace_read(c, a, path, TRACE_FORMAT_straggler, NULL, TRACE_NONE, &t, &about);
  must(ok == !diag_errors(c));
  if (ok) {
    whole(&t);
    const straggler *s = straggler_new(c, a, &t, sym_of(c, path), NULL);
    must(!s == (diag_errors(c) > 0));
    if (s) job_is_whole(a, s);
  }
  diag_render(c, a);
  arena_free(a);
  ctx_free(c);
  return 0;
}
