// fuzz_yaml.c - the YAML reader: whatever the bytes, a tree without a diagnostic or a diagnostic without a
// tree.
#include "base/base.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static u32 count(const ctx *c, const ynode *y) {
  u32 n = loc_get(c, y->at)->line;
  for (u32 i = 0; i < y->n; i++) n += count(c, y->item[i]) + (y->kind == Y_MAP ? count(c, y->key[i]) : 0);
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  const ynode *y = yaml_parse(c, ctx_arena(c), sym_of(c, "fuzz.yaml"), (const char *)data, size);
  if (!y == !diag_errors(c) || (y && !count(c, y))) abort();
  if (!y) diag_render(c, ctx_arena(c));
  ctx_free(c);
  return 0;
}
