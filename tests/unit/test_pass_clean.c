// test_pass_clean.c - what the clean-up removes, and what it must leave.
#include "pass/pass.h"
#include "test.h"

static prog *parse(ctx *c, const char *text) {
  prog *p = ir_parse(c, sym_of(c, "test"), text, strlen(text));
  if (!CHECK(p != NULL)) {
    CHECK_STR(diag_render(c, ctx_arena(c)), "");
    test_leave();
  }
  return p;
}

// The bodies of all functions, one operator after the other: "matmul relu; call".
static const char *ops(const prog *p) {
  strbuf b = {.a = ctx_arena(p->c)};
  for (u32 k = 1; k < p->funcs.n; k++) {
    if (k > 1) sb_put(&b, "; ");
    for (u32 i = 0; i < p->funcs.v[k]->body.n; i++)
      sb_fmt(&b, "%s%s", i ? " " : "", op_row_of(p->funcs.v[k]->body.v[i].op)->name);
  }
  return sb_str(&b);
}

TEST(clean_dead) {
  ctx *c = ctx_new();
  prog *p = parse(c, "func @main(%x: f32[4], %y: f32[4]) -> (f32[4]) {\n"
                     "  %a = neg %x\n"
                     "  %b = exp %a\n" // nobody uses
                     "  %c = call @used(%a) : f32[4]\n"
                     "  %d = call @unused(%y) : f32[4]\n"
                     "  %e = add %d, %b\n"
                     "  return %c\n}\n"
                     "func @used(%x: f32[4]) -> (f32[4]) {\n  %a = sqrt %x\n  %b = log %x\n  return %a\n}\n"
                     "func @unused(%x: f32[4]) -> (f32[4]) {\n  %a = abs %x\n  return %a\n}\n");
  CHECK_EQ_I64(pass_dce(p), 4);
  CHECK(ir_verify(p));
  CHECK_STR(ops(p), "neg call; sqrt");
  CHECK_EQ_I64(func_get(p, p->main)->nparams, 2); // parameters stay
  CHECK_EQ_I64(pass_dce(p), 0);
  prog_free(p);
  ctx_free(c);
}

TEST(clean_tables) {
  ctx *c = ctx_new();
  prog *p = parse(c, "func @main(%x: f32[4]) -> (f32[4]) {\n"
                     "  %a = constant {shape=[4], dtype=f32, data=[1,2,3,4]}\n"
                     "  %b = constant {shape=[2], dtype=f32, data=[5,6]}\n"
                     "  %c = reshape %b {shape=[1,2]}\n"
                     "  %d = add %x, %a\n"
                     "  return %d\n}\n");
  pass_dce(p);
  pass_compact(p);
  CHECK(ir_verify(p));
  CHECK_STR(ops(p), "constant add");
  CHECK_EQ_I64(p->data.n, 2); // and [0]
  CHECK_EQ_I64(p->types.n, 2);
  CHECK_EQ_I64(p->attrsets.n, 2);
  strbuf b = {.a = ctx_arena(c)};
  ir_print(p, &b);
  prog *q = ir_parse(c, sym_of(c, "again"), sb_str(&b), b.n);
  CHECK(q != NULL);
  prog_free(q);
  prog_free(p);
  ctx_free(c);
}
