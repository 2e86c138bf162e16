// rare.h - reading a trace file in a test: one of tests/rare (tools/make-rare-traces.py), or a text of the test's own.
#ifndef HEDDLE_TEST_RARE_H
#define HEDDLE_TEST_RARE_H
#include "trace_file.h"
#include <stdio.h>
#include <unistd.h>

static inline trace_file rare_read(const char *path, trace_format f, u32 rank) {
  trace_file r = trace_file_read(path, f, rank);
  CHECK(trace_format_of(r.c, path) == f);
  return r;
}
// The text as a file. f: read as that format, whether or not it begins so.
static inline trace_file rare_text(const char *text, size_t n, trace_format f) {
  char path[200];
  snprintf(path, sizeof path, "%s/rare-%d", test_build(), (int)getpid());
  FILE *out = fopen(path, "wb");
  REQUIRE(out != NULL);
  CHECK(fwrite(text, 1, n, out) == n && !fclose(out));
  const trace_file r = trace_file_read(path, f, TRACE_NONE);
  unlink(path);
  return r;
}
// Events of that kind, and of that name if it is not NULL; their times in *ps.
static inline u32 rare_count(const trace_file *r, trace_is is, const char *name, i64 *ps) {
  u32 n = 0;
  i64 sum = 0;
  for (u32 e = 0; e < r->t.n; e++) {
    if (r->t.is[e] != is || (name && strcmp(trace_file_name(r, e), name))) continue;
    n++, sum += r->t.dur_ps[e];
  }
  if (ps) *ps = sum;
  return n;
}
// Cut off after any byte: what came before is there, and whoever asks is told. The file must end in more than spaces.
static inline void rare_cut(const char *path, trace_format f) {
  static char text[60000];
  ctx *c = ctx_new();
  const size_t n = trace_begin(c, path, text, sizeof text - 1);
  ctx_free(c);
  REQUIRE(n > 100);
  u32 before = 0;
  for (size_t k = 1; k < n; k += 1 + n / 150) {
    trace_file r = rare_text(text, k, f);
    CHECK_MSG(r.ok == !diag_errors(r.c), "after %zu bytes", k);
    CHECK_MSG(r.t.n >= before, "after %zu bytes", k);
    if (r.ok) before = r.t.n;
    trace_file_close(&r);
  }
  CHECK(before > 0);
}
#endif
