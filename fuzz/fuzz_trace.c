// fuzz_trace.c - trace files of every format, by how they begin; a file of none is read as some format all the same.
// Rejected implies a diagnostic; what is accepted is whole: lanes, names, causes, communications and dependencies are
// there, times can be added, and reading it for fewer kinds gives the same events of these.
#define _GNU_SOURCE
#include "trace/trace.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static trace *read_kinds(ctx *c, arena *a, const char *path, trace_format f, u32 kinds, u64 *skipped) {
  trace *t = NEW(a, trace);
  trace_read_about about;
  const trace_want want = {.kinds = kinds};
  const u32 before = diag_errors(c);
  const bool ok = trace_read(c, a, path, f, &want, TRACE_NONE, t, &about);
  must(ok == (diag_errors(c) == before));
  *skipped = about.skipped;
  return ok ? t : NULL;
}

static void whole(arena *a, const trace *t) {
  const i64 most = INT64_MAX - 1;
  for (u32 e = 0; e < t->n; e++) {
    must(t->lane[e] < t->lanes.n && t->name[e] < t->names.n && t->is[e] < TRACE_KINDS);
    must(t->cause[e] == TRACE_NONE || (t->cause[e] < t->n && t->is[t->cause[e]] == TRACE_CALL));
    must(t->comm[e] == TRACE_NONE || t->comm[e] < t->comms.n);
    must(t->start_ps[e] >= -most / 2 && t->dur_ps[e] >= -1 && t->dur_ps[e] <= most - MAX(t->start_ps[e], 0));
  }
  for (u32 l = 0; l < t->lanes.n; l++) must(t->lanes.v[l].process < t->processes.n);
  for (u32 k = 0; k < t->edges.n; k++)
    must(t->edges.v[k].event < t->n && (t->edges.v[k].after == TRACE_NONE || t->edges.v[k].after < t->n));
  for (u32 p = 0; p < t->processes.n; p++) must(t->processes.v[p].base_ns >= 0);
  for (u32 k = 0; k < t->memory.n; k++) {
    const trace_memory *m = &t->memory.v[k];
    must(m->process < t->processes.n && m->bytes && m->at_ps > -most / 2 && m->at_ps < most / 2);
  }
  const u32 *order = trace_order(a, t);
  for (u32 e = 1; e < t->n; e++) must(t->lane[order[e - 1]] <= t->lane[order[e]]);
}

// SQLite needs a file that has a name.
static const char *named(const uint8_t *data, size_t size) {
  static char path[1100];
  if (!*path)
    snprintf(path, sizeof path, "%s/fuzz-trace-%d", getenv("BUILD") ? getenv("BUILD") : "/tmp",
             (int)getpid());
  FILE *f = fopen(path, "wb");
  must(f && fwrite(data, 1, size, f) == size && !fclose(f));
  return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *path = memory_file(data, size);
  trace_format f = trace_format_of(c, path);
  must(!diag_count(c));
  if (f == TRACE_FORMAT_NONE) f = (trace_format)(size % TRACE_FORMATS);
  if (f == TRACE_FORMAT_nsight) path = named(data, size);
  u64 skipped, ignored;
  const trace *all = read_kinds(c, a, path, f, TRACE_ALL | TRACE_MEMORY, &skipped);
  const trace *some = read_kinds(c, a, path, f, TRACE_ON_DEVICE, &ignored);
  must(!all == !some);
  if (all) {
    whole(a, all), whole(a, some);
    u32 n = 0;
    must(!some->memory.n);
    for (u32 e = 0; e < some->n; e++) must(TRACE_ON_DEVICE >> some->is[e] & 1);
    for (u32 e = 0; e < all->n; e++) n += TRACE_ON_DEVICE >> all->is[e] & 1;
    must(skipped || n == some->n);
  }
  if (f == TRACE_FORMAT_nsight) unlink(path);
  diag_render(c, a);
  arena_free(a);
  ctx_free(c);
  return 0;
}
