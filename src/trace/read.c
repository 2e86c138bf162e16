// read.c - which format a file is of, and reading it by the row of its format.
#include "trace/scan.h"
#include <stdlib.h>

const trace_format_row trace_format_rows[TRACE_FORMATS] = {
#define FORMAT(id, name, kernels, about) {#id, name, about, kernels},
#include "trace/formats.def"
#undef FORMAT
};
static const struct {
  bool (*knows)(const char *start, size_t n);
  bool (*read)(reading *x);
} readers[TRACE_FORMATS] = {
#define FORMAT(id, name, kernels, about) {trace_knows_##id, trace_read_##id},
#include "trace/formats.def"
#undef FORMAT
};

size_t trace_begin(ctx *c, const char *path, char *to, size_t n) {
  *to = 0;
  input *in = input_open(c, path);
  if (!in) return 0;
  n = input_read(in, (u8 *)to, n);
  to[n] = 0;
  input_close(in);
  return n;
}

bool input_whole(ctx *c, arena *a, input *in, const char *path, size_t limit, const char **text, size_t *n) {
  enum { PART = 1 << 20 };
  strbuf b = {.a = a};
  char *part = base_malloc(PART);
  for (size_t got; b.n <= limit && (got = input_read(in, (u8 *)part, PART));) sb_putn(&b, part, got);
  free(part);
  *text = sb_str(&b), *n = b.n;
  if (b.n <= limit) return true;
  diag(c, E_LIMIT, loc_node(c, sym_of(c, path), (sym){0}, (sym){0}), "the file has more than %s, unpacked",
       text_bytes(a, (double)limit));
  return false;
}

bool trace_whole(ctx *c, arena *a, const char *path, size_t limit, const char **text, size_t *n, bool *cut) {
  input *in = input_open(c, path);
  if (!in) return false;
  const bool ok = input_whole(c, a, in, path, limit, text, n);
  *cut = input_cut(in);
  input_close(in);
  return ok;
}

trace_format trace_format_of(ctx *c, const char *path) {
  enum { START = 1 << 16 };
  const u32 before = diag_count(c);
  char *start = base_malloc(START + 1);
  const size_t n = trace_begin(c, path, start, START);
  u32 k = 0;
  if (diag_count(c) > before) k = TRACE_FORMAT_NONE;
  while (k < TRACE_FORMATS && !readers[k].knows(start, n)) k++;
  free(start);
  return (trace_format)k;
}

bool trace_read(ctx *c, arena *a, const char *path, trace_format f, const trace_want *w, u32 rank, trace *t,
                trace_read_about *about) {
  assert(f < TRACE_FORMATS);
  trace_want all = w ? *w : (trace_want){0};
  if (!all.kinds) all.kinds = TRACE_ALL & ~(1u << TRACE_STACK);
  *about = (trace_read_about){0};
  reading x = {c, a, path, sym_of(c, path), input_open(c, path), &all, rank, t, about};
  if (!x.in) return false;
  const u32 before = t->n;
  const bool ok = readers[f].read(&x);
  about->bytes = input_total(x.in);
  about->truncated |= input_cut(x.in);
  input_close(x.in);
  if (ok && about->truncated)
    diag(c, W_TRACE_CUT, loc_node(c, x.file, (sym){0}, (sym){0}),
         "the file ends early: %llu events before that are used", (unsigned long long)(t->n - before));
  return ok;
}

void reading_ends(reading *x, const scan *s, bool found, const char *without) {
  const loc at = loc_node(x->c, x->file, (sym){0}, (sym){0});
  x->about->truncated |= scan_is(s) == SCAN_ENDED;
  if (scan_is(s) == SCAN_BAD)
    diag(x->c, found ? W_IGNORED : E_TRACE, at, "not JSON at byte %llu: what comes then is left out",
         (unsigned long long)scan_offset(s));
  else if (!found)
    diag(x->c, E_TRACE, at, "%s", without);
}
