// timeline.c - which format a timeline is written in.
#include "report/internal.h"

typedef bool write_fn(ctx *c, const trace_source *t, const timeline_opts *o, const char *path);
static const struct {
  const char *ending;
  write_fn *write;
} formats[] = {
#define TIMELINE(ending, function) {ending, function},
#include "report/timelines.def"
#undef TIMELINE
};

bool timeline_write(ctx *c, const trace_source *t, const timeline_opts *o, const char *path) {
  const size_t n = strlen(path);
  for (u32 k = 0; k < COUNT_OF(formats); k++) {
    const size_t end = strlen(formats[k].ending);
    if (n >= end && !strcmp(path + n - end, formats[k].ending)) return formats[k].write(c, t, o, path);
  }
  return formats[0].write(c, t, o, path);
}
