// fuzz_onnx.c - the ONNX reader and importer: what is rejected has a diagnostic, what is accepted is a
// verified program that prints and reads back the same.
#include "front/front.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
  if (!ok) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ctx *c = ctx_new();
  prog *p = front_onnx_bytes(c, "fuzz.onnx", data, size, NULL);
  must(!p == (diag_errors(c) > 0));
  if (!p) { // perhaps for an open extent
    diag_clear(c);
    p = front_onnx_bytes(c, "fuzz.onnx", data, size, &(front_opts){.batch = 2});
    must(!p == (diag_errors(c) > 0));
  }
  if (p) {
    strbuf one = {.a = ctx_arena(c)}, two = one;
    must(ir_verify(p));
    ir_print(p, &one);
    prog *q = ir_parse(c, sym_of(c, "fuzz.heddle"), sb_str(&one), one.n);
    must(q != NULL);
    ir_print(q, &two);
    must(one.n == two.n && memcmp(sb_str(&one), sb_str(&two), one.n) == 0);
    prog_free(q);
  }
  diag_render(c, ctx_arena(c));
  prog_free(p);
  ctx_free(c);
  return 0;
}
