// fuzz_machine.c - machine files and machines in one line: what is refused has a diagnostic, what is accepted
// prints as a file that reads back and prints the same.
#include "machine/machine.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *printed(arena *a, const machine *m) {
  strbuf b = {.a = a};
  machine_print(m, &b);
  return sb_str(&b);
}

// One line of plain text without a path.
static bool is_spec(const uint8_t *data, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (data[i] < ' ' || data[i] > '~' || data[i] == '/') return false;
  return size > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *text = arena_strndup(a, (const char *)data, size);
  for (int spec = 0; spec < (is_spec(data, size) ? 2 : 1); spec++) {
    const machine *m =
        spec ? machine_load(c, a, text) : machine_parse(c, a, sym_of(c, "fuzz.yaml"), text, size);
    if (!m == !diag_errors(c)) abort();
    if (m) {
      const char *once = printed(a, m);
      const machine *back = machine_parse(c, a, sym_of(c, "printed.yaml"), once, strlen(once));
      if (!back || back->nranks != m->nranks || strcmp(once, printed(a, back))) abort();
    } else
      diag_render(c, a);
    diag_clear(c);
  }
  arena_free(a);
  ctx_free(c);
  return 0;
}
