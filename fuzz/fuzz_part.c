// fuzz_part.c - parts of a search as text: rejected implies a diagnostic; accepted implies that it prints and reads
// back equal, and that merging it ends with a result or with a diagnostic. Once as it is, where the checksum
// refuses most, and once with the checksum that it should have.
#include "search/search.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void merge(ctx *c, arena *a, search_part *p) {
  const u32 before = diag_errors(c);
  search_opts o;
  search_about about;
  search_result r;
  if (!search_merge(c, a, 1, &p, 0, &o, &about, &r)) {
    if (diag_errors(c) == before) abort();
    return;
  }
  u64 sum = 0;
  for (u32 k = 0; k < SEARCH_STATES; k++) sum += r.count[k];
  if (sum != r.space || r.nfit > r.npoints) abort();
}

static void read(const char *text, size_t n) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  search_part *p = search_part_parse(c, a, sym_of(c, "fuzz.json"), text, n);
  if (!p != (diag_errors(c) > 0)) abort();
  if (p) {
    strbuf b = {.a = a}, again = {.a = a};
    search_part_print(p, &b);
    search_part *q = search_part_parse(c, a, sym_of(c, "again.json"), b.v, b.n);
    if (!q) abort();
    search_part_print(q, &again);
    if (b.n != again.n || memcmp(b.v, again.v, b.n)) abort();
    merge(c, a, p);
  }
  if (diag_errors(c)) diag_render(c, a);
  arena_free(a);
  ctx_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char mark[] = ",\n  \"checksum\"";
  const char *text = (const char *)data;
  arena *a = arena_new();
  strbuf b = {.a = a};
  size_t n = size;
  read(text, size);
  for (size_t i = size >= sizeof mark ? size - sizeof mark : 0; i; i--)
    if (n == size && !memcmp(text + i, mark, sizeof mark - 1)) n = i;
  sb_putn(&b, text, n);
  const u64 sum = hash_bytes(b.v ? b.v : "", n, 0);
  sb_fmt(&b, ",\n  \"checksum\": \"%016llx\"\n}\n", (unsigned long long)sum);
  read(b.v, b.n);
  arena_free(a);
  return 0;
}
