// trace_file.h - a trace file that a test reads, with what it takes to look at it.
#ifndef HEDDLE_TEST_TRACE_FILE_H
#define HEDDLE_TEST_TRACE_FILE_H
#include "test.h"
#include "trace/trace.h"

typedef struct {
  ctx *c;
  arena *a;
  trace t;
  trace_read_about about;
  bool ok; // it was read
} trace_file;

static inline trace_file trace_file_read(const char *path, trace_format f, u32 rank) {
  trace_file x = {.c = ctx_new(), .a = arena_new()};
  x.ok = trace_read(x.c, x.a, path, f, NULL, rank, &x.t, &x.about);
  return x;
}
// A file that has to be of that format, begin like it and be read.
static inline trace_file trace_file_open(const char *path, trace_format f) {
  trace_file x = trace_file_read(path, f, TRACE_NONE);
  CHECK_MSG(x.ok && trace_format_of(x.c, path) == f, "%s", diag_render(x.c, x.a));
  REQUIRE(x.ok);
  return x;
}
static inline void trace_file_close(trace_file *x) {
  arena_free(x->a);
  ctx_free(x->c);
}
static inline const char *trace_file_name(const trace_file *x, u32 e) {
  return sym_str(x->c, trace_name(&x->t, e));
}
#endif
