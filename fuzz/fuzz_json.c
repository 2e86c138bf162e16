// fuzz_json.c - the JSON reader: whatever the bytes, a tree without a diagnostic or a diagnostic without a
// tree.
#include "base/base.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static u32 count(const json *j) {
  u32 n = 1;
  for (u32 i = 0; i < j->n; i++) n += count(&j->item[i]);
  if (j->kind == JSON_STR || j->kind == JSON_NUM) n += strlen(j->str) > 0;
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  const json *j = json_parse(c, ctx_arena(c), sym_of(c, "fuzz.json"), (const char *)data, size);
  if (!j == !diag_errors(c) || (j && !count(j))) abort();
  if (!j) diag_render(c, ctx_arena(c));
  ctx_free(c);
  return 0;
}
