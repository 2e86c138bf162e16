// fuzz_kineto.c - Kineto files: rejected implies a diagnostic; what is accepted is whole: lanes, names, causes and
// communications are there, times can be added, and reading it for fewer kinds gives the same events of these.
#define _GNU_SOURCE
#include "trace/trace.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
  if (!ok) abort();
}

static trace *read_kinds(ctx *c, arena *a, const char *path, u32 kinds, u64 *skipped) {
  trace *t = NEW(a, trace);
  trace_read_about about;
  const trace_want want = {.kinds = kinds};
  const u32 before = diag_errors(c);
  const bool ok = trace_read(c, a, path, TRACE_FORMAT_kineto, &want, TRACE_NONE, t, &about);
  must(ok == (diag_errors(c) == before));
  *skipped = about.skipped;
  return ok ? t : NULL;
}

static void whole(const trace *t) {
  const i64 most = INT64_MAX - 1;
  for (u32 e = 0; e < t->n; e++) {
    must(t->lane[e] < t->lanes.n && t->name[e] < t->names.n && t->is[e] < TRACE_KINDS);
    must(t->cause[e] == TRACE_NONE || (t->cause[e] < t->n && t->is[t->cause[e]] == TRACE_CALL));
    must(t->comm[e] == TRACE_NONE || t->comm[e] < t->comms.n);
    must(t->start_ps[e] >= 0 && t->dur_ps[e] >= -1 && t->dur_ps[e] <= most - t->start_ps[e]);
  }
  for (u32 l = 0; l < t->lanes.n; l++) must(t->lanes.v[l].process < t->processes.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int fd = -1;
  static char path[64];
  if (fd < 0) {
    fd = memfd_create("kineto", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  must(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
  ctx *c = ctx_new();
  arena *a = arena_new();
  u64 skipped, ignored;
  const trace *all = read_kinds(c, a, path, TRACE_ALL, &skipped);
  const trace *some = read_kinds(c, a, path, TRACE_ON_DEVICE, &ignored);
  must(!all == !some);
  if (all) {
    whole(all), whole(some);
    u32 n = 0;
    for (u32 e = 0; e < some->n; e++) must(TRACE_ON_DEVICE >> some->is[e] & 1);
    for (u32 e = 0; e < all->n; e++) n += TRACE_ON_DEVICE >> all->is[e] & 1;
    must(skipped || n == some->n);
  }
  diag_render(c, a);
  arena_free(a);
  ctx_free(c);
  return 0;
}
