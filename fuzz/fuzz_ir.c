// fuzz_ir.c - the program text: what is rejected has a diagnostic, what is accepted is verified, is printed,
// read again and printed the same.
#include "infer/infer.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
  if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  sym file = sym_of(c, "fuzz.heddle");
  prog *p = ir_parse(c, file, (const char *)data, size);
  must(!p == (diag_errors(c) > 0));
  if (p) {
    strbuf one = {.a = ctx_arena(c)}, two = one;
    ir_print(p, &one);
    prog *q = ir_parse(c, file, sb_str(&one), one.n);
    must(q && diag_errors(c) == 0);
    ir_print(q, &two);
    must(one.n == two.n && memcmp(sb_str(&one), sb_str(&two), one.n) == 0);
    u32 errors = diag_errors(c);
    must(infer_verify(q) == (diag_errors(c) == errors));
    prog_free(q);
  }
  diag_render(c, ctx_arena(c));
  prog_free(p);
  ctx_free(c);
  return 0;
}
