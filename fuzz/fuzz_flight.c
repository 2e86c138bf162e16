// fuzz_flight.c - dumps of the flight recorder, as pickle or JSON, and RAS output: whatever the bytes, an answer whose
// findings are whole, or a diagnostic. Several dumps of one job are separated by lines "----".
#include "diagnose/flight.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *next_line(const char *from, const char *end) {
  static const char line[] = "\n----\n";
  for (const char *p = from; (p = memchr(p, '\n', (size_t)(end - p))); p++)
    if ((size_t)(end - p) >= sizeof line - 1 && !memcmp(p, line, sizeof line - 1)) return p;
  return NULL;
}

static void check_ranks(const hang_ranks *r) {
  for (u32 k = 1; k < r->n; k++)
    if (r->v[k - 1] >= r->v[k]) abort();
}

static void check(const hang *h) {
  if (h->matched > h->collectives || h->no_dump.n + h->dumps != h->ranks) abort();
  for (u32 k = 0; k < h->nfound; k++) {
    const hang_finding *x = &h->found[k];
    if (x->kind >= HANG_KINDS || !x->text || !strlen(x->text) || !x->who.n) abort();
    check_ranks(&x->who), check_ranks(&x->wait);
  }
  for (u32 k = 0; k < h->nstands; k++) {
    if (!h->stand[k].ranks.n || h->stand[k].completed > h->stand[k].started) abort();
    check_ranks(&h->stand[k].ranks);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  hang_input x = {.f = {.c = c, .a = a}};
  const char *from = arena_strndup(a, (const char *)data, size), *end = from + size;
  bool ok = true;
  for (u32 rank = 0; rank < 8 && ok; rank++) {
    const char *stop = next_line(from, end), *to = stop ? stop : end;
    const u32 before = diag_errors(c);
    ok = hang_take(&x, sym_of(c, "fuzz"), rank, arena_strndup(a, from, (size_t)(to - from)),
                   (size_t)(to - from));
    if (ok != (diag_errors(c) == before)) abort();
    if (!stop) break;
    from = stop + 6;
  }
  if (ok) {
    const u32 before = diag_errors(c);
    const hang *h = hang_of(&x);
    if (!h != (diag_errors(c) > before)) abort();
    if (h) check(h);
  }
  diag_render(c, a);
  arena_free(a);
  ctx_free(c);
  return 0;
}
