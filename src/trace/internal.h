// internal.h - what readers of trace files share. Private to trace/.
#ifndef HEDDLE_TRACE_INTERNAL_H
#define HEDDLE_TRACE_INTERNAL_H
#include "trace/trace.h"

// ---- input.c: the bytes of a file, unpacked -------------------------------------------------------------
typedef struct input input;
// NULL and a diagnostic: cannot be opened. Closed by input_close, which takes NULL.
input *input_open(ctx *c, const char *path);
void input_close(input *x);
// The next bytes, at most n; less only at the end. A file that is damaged or cut off ends there (input_cut).
size_t input_read(input *x, u8 *to, size_t n);
bool input_cut(const input *x);  // did it end before its packing says so, or in an error of reading?
u64 input_total(const input *x); // bytes given so far
// All that is left of it, with a NUL behind. False and a diagnostic: more than limit. In read.c.
bool input_whole(ctx *c, arena *a, input *x, const char *path, size_t limit, const char **text, size_t *n);

// ---- read.c ---------------------------------------------------------------------------------------------
typedef struct {
  ctx *c;
  arena *a;
  const char *path;
  sym file; // of locations
  input *in;
  const trace_want *want;
  u32 rank;
  trace *t;
  trace_read_about *about;
} reading;
static inline bool wanted(const reading *x, trace_is k) { return x->want->kinds >> k & 1; }

// A reader of one format: a row of formats.def with two functions.
// knows: may a file that begins so be of it? Asked in the order of the rows.
// read: appends. False and a diagnostic: nothing can be made of the file. What it passes over it counts.
#define FORMAT(id, name, kernels, about)                                                                     \
  bool trace_knows_##id(const char *start, size_t n);                                                        \
  bool trace_read_##id(reading *x);
#include "trace/formats.def"
#undef FORMAT
#endif
