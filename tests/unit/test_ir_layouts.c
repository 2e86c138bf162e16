// test_ir_layouts.c - how layouts go through compute operators: one line per case, as people write them.
#include "infer/infer.h"
#include "test.h"

static const struct {
  const char *params, *instr;
  const char *result; // its type, or what is said
} cases[] = {
    // products: a kept letter stays split, a contracted one leaves a sum
    {"%a: f32[8{dp},16], %b: f32[16,32{tp}]", "matmul %a, %b", "f32[8{dp},32{tp}]"},
    {"%a: f32[8,16{tp}], %b: f32[16{tp},32]", "matmul %a, %b", "f32[8,32]+tp"},
    {"%a: f32[8{dp},16{tp}], %b: f32[16{tp},32]", "matmul %a, %b", "f32[8{dp},32]+tp"},
    {"%a: f32[8,16{dp,tp}], %b: f32[16{dp,tp},32]", "matmul %a, %b", "f32[8,32]+dp,+tp"},
    {"%a: f32[8{dp},16], %b: f32[8{dp},32]", "einsum %a, %b {law=\"bi,bo->io\"}", "f32[16,32]+dp"},
    {"%a: f32[8{mb},16], %b: f32[8{mb},32]", "einsum %a, %b {law=\"bi,bo->io\"}", "f32[16,32]+mb"},
    {"%a: f32[6{dp},8,16], %b: f32[16,4{tp}]", "matmul %a, %b", "f32[6{dp},8,4{tp}]"},
    {"%a: f32[6{dp},8,16], %b: f32[6,16,4{tp}]", "matmul %a, %b",
     "matmul: operand 2 is [6,16,4{tp}]; with operand 1, [6{dp},8,16], it must be split over dp"},
    {"%a: f32[8,16{tp}], %b: f32[16,32]", "matmul %a, %b",
     "matmul: operand 2 is [16,32]; with operand 1, [8,16{tp}], it must be split over tp"},
    {"%a: f32[8{tp},16], %b: f32[16,32{tp}]", "matmul %a, %b",
     "matmul: tp splits operand 1, [8{tp},16], and operand 2, [16,32{tp}], at different indices"},
    {"%a: f32[8,16{tp:2}], %b: f32[16{tp},32]", "matmul %a, %b",
     "matmul: tp splits operand 1, [8,16{tp:2}], and operand 2, [16{tp},32], at different indices"},
    // sums that are not complete pass what is linear
    {"%a: f32[8,16]+tp, %b: f32[16,32]", "matmul %a, %b", "f32[8,32]+tp"},
    {"%a: f32[8,16]+tp, %b: f32[16,32]+dp", "matmul %a, %b", "f32[8,32]+dp,+tp"},
    {"%a: f32[8,16]+tp, %b: f32[16,32]+tp", "matmul %a, %b",
     "matmul: a sum that is partial over tp cannot pass: operand 1 is [8,16]+tp"},
    {"%a: f32[8,16]+tp, %b: f32[16,32{tp}]", "matmul %a, %b",
     "matmul: operand 1 is [8,16]+tp; with operand 2, [16,32{tp}], it must be whole over tp"},
    {"%a: f32[8]+tp, %b: f32[8]+tp", "add %a, %b", "f32[8]+tp"},
    {"%a: f32[8]+tp, %b: f32[8]", "add %a, %b",
     "add: a sum that is partial over tp cannot pass: operand 1 is [8]+tp"},
    {"%a: f32[8{dp}]+tp, %b: f32[8{dp}]+tp", "sub %a, %b", "f32[8{dp}]+tp"},
    {"%a: f32[8]+tp, %b: f32[8]", "mul %a, %b", "f32[8]+tp"},
    {"%a: f32[8]+tp, %b: f32[8]", "div %a, %b", "f32[8]+tp"},
    {"%a: f32[8]+tp, %b: f32[8]", "div %b, %a", "div: operand 2, [8]+tp, is still partial over tp"},
    {"%a: f32[8]+tp", "gelu %a", "gelu: operand 1, [8]+tp, is still partial over tp"},
    {"%a: f32[8] max tp", "scale %a {alpha=2}", "scale: operand 1, [8] max tp, is still partial over tp"},
    {"%m: bool[8], %a: f32[8]+tp, %b: f32[8]+tp", "where %m, %a, %b", "f32[8]+tp"},
    {"%m: bool[8], %a: f32[8]+tp, %b: f32[8]", "where %m, %a, %b",
     "where: a sum that is partial over tp cannot pass: operand 2 is [8]+tp"},
    {"%a: f32[8]+tp, %b: f32[4]+tp", "concat %a, %b {axis=0}", "f32[12]+tp"},
    // a bias is added once
    {"%x: f32[4,8,5], %w: f32[6,8,1], %b: f32[6]+tp", "conv %x, %w, %b",
     "conv: a sum that is partial over tp cannot pass: operand 3 is [6]+tp"},
    {"%x: f32[4,8{tp},5], %w: f32[6,8{tp},1]", "conv %x, %w", "f32[4,6,5]+tp"},
    {"%x: f32[4{dp},8,5], %w: f32[12{tp},8,1], %b: f32[12{tp}]", "conv %x, %w, %b", "f32[4{dp},12{tp},5]"},
    {"%x: f32[4,8], %g: f32[8]+tp, %b: f32[8]+tp", "layernorm %x, %g, %b", "f32[4,8]+tp"},
    {"%x: f32[4,8], %g: f32[8]+tp, %b: f32[8]", "layernorm %x, %g, %b",
     "layernorm: a sum that is partial over tp cannot pass: operand 2 is [8]+tp"},
    // broadcasting
    {"%a: f32[8{dp},16{tp}], %b: f32[16{tp}]", "add %a, %b", "f32[8{dp},16{tp}]"},
    {"%a: f32[8{dp},16], %b: f32[1,16]", "mul %a, %b", "f32[8{dp},16]"},
    {"%a: f32[8,16], %b: f32[16{tp}]", "add %a, %b",
     "add: operand 1 is [8,16]; with operand 2, [16{tp}], it must be split over tp"},
    // form: 3072 = 3 * 16 * 64 can be split over heads only
    {"%a: f32[4,3072{tp:256}]", "reshape %a {shape=[4, 3, 16, 64]}", "f32[4,3,16{tp},64]"},
    {"%a: f32[4,3,16{tp},64]", "reshape %a {shape=[4, 3072]}", "f32[4,3072{tp:256}]"},
    {"%a: f32[4,3072{tp}]", "reshape %a {shape=[4, 3, 16, 64]}",
     "reshape: operand 1 is [4,3072{tp}]: the split over tp lies across two factors of dimension 1"},
    {"%a: f32[4{dp},8{tp},2]", "reshape %a {shape=[32, 2]}", "f32[32{dp,tp:2},2]"},
    {"%a: f32[32{dp:8,tp:2},2]", "reshape %a {shape=[4, 8, 2]}", "f32[4{dp:1},8{tp},2]"},
    {"%a: f32[32{dp:2,tp:4},2]", "reshape %a {shape=[4, 8, 2]}",
     "reshape: operand 1 is [32{tp:4,dp:2},2]: the split over tp lies across two factors of dimension 0"},
    {"%a: f32[8{dp},16{tp}]", "transpose %a {perm=[1, 0]}", "f32[16{tp},8{dp}]"},
    {"%a: f32[1,16{tp}]", "expand %a {shape=[8, 16]}", "f32[8,16{tp}]"},
    {"%a: f32[12{dp:0-5|5-12},16]", "relu %a", "f32[12{dp:0-5|5-12},16]"},
    {"%a: f32[12{dp:0-5|5-12},16], %b: f32[12{dp:0-7|7-12},16]", "add %a, %b",
     "add: dp splits operand 1, [12{dp:0-5|5-12},16], and operand 2, [12{dp:0-7|7-12},16], at different "
     "indices"},
    {"%a: f32[12{dp:0-5|5-12},2]", "reshape %a {shape=[3, 4, 2]}",
     "reshape: operand 1 is [12{dp:0-5|5-12},2]: the split over dp lies across two factors of dimension 0"},
    // reductions, normalisations, losses
    {"%a: f32[8{dp},16]", "reduce_sum %a {axes=[0]}", "f32[1,16]+dp"},
    {"%a: f32[8{dp},16]", "reduce_max %a {axes=[0]}", "f32[1,16] max dp"},
    {"%a: f32[8{dp},16{tp}]", "reduce_sum %a {axes=[0, 1], keepdims=0}", "f32[]+dp,+tp"},
    {"%a: f32[8{dp},16]", "softmax %a {axis=1}", "f32[8{dp},16]"},
    {"%a: f32[8,16{tp}]", "softmax %a {axis=1}",
     "softmax: dimension 1 of operand 1 must be whole, it is [8,16{tp}]"},
    {"%a: f32[8{dp},16]", "argmax %a {axis=0}",
     "argmax: dimension 0 of operand 1 must be whole, it is [8{dp},16]"},
    {"%x: f32[8{dp},16], %l: i64[8{dp}]", "cross_entropy %x, %l {reduce=\"mean\"}", "f32[]+dp"},
    // picked by value: a split table leaves masked sums
    {"%w: f32[100{tp},16], %i: i64[4{dp},8]", "gather %w, %i {axis=0}", "f32[4{dp},8,16]+tp"},
    {"%w: f32[100,16{tp}], %i: i64[4{dp},8]", "gather %w, %i {axis=0}", "f32[4{dp},8,16{tp}]"},
};

TEST(ir_layouts_through_operators) {
  for (u32 k = 0; k < COUNT_OF(cases); k++) {
    ctx *c = ctx_new();
    const char *text = arena_printf(ctx_arena(c),
                                    "mesh @m [dp=2, tp=4]\ntime [mb=2]\n"
                                    "func @f(%s) -> () {\n  %%result = %s\n  return\n}\n",
                                    cases[k].params, cases[k].instr);
    prog *p = ir_parse(c, sym_of(c, "case"), text, strlen(text));
    const char *got = p               ? ir_type_str(p, val(p->funcs.v[1], p->funcs.v[1]->nparams + 1)->ty)
                      : diag_count(c) ? diag_get(c, 0).message
                                      : "";
    CHECK_MSG(strcmp(got, cases[k].result) == 0, "%s, %s\n  got:  %s\n  want: %s", cases[k].params,
              cases[k].instr, got, cases[k].result);
    if (p) CHECK_MSG(infer_verify(p), "%s", cases[k].instr);
    prog_free(p);
    ctx_free(c);
  }
}

// What is declared may differ from what the operands say only where they say nothing.
static const struct {
  const char *instr;
  bool ok;
} declared[] = {
    {"relu %x : f32[8{dp},16]", true},
    {"relu %x : f32[8,16]", false},
    {"relu %x : f32[8{dp},16{tp}]", false},
    {"relu %x : f32[8{dp},16]+tp", false},
    {"relu %x : f32[8,16{dp}]", false},
    {"matmul %x, %w : f32[8{dp},4]", true},
    {"full {shape=[8, 16], dtype=f32, value=1} : f32[8{dp},16{tp}]", true},
    {"full {shape=[8, 16], dtype=f32, value=1} : f32[8,16]+tp", false},
    {"full {shape=[8, 16], dtype=f32, value=0} : f32[8,16]+tp", true},
    {"iota {shape=[8], dtype=i64} : i64[8{tp}]", true},
    {"expand %s {shape=[8, 16]} : f32[8{dp},16]", true},
    {"expand %s {shape=[8, 16]} : f32[8{dp},16{tp}]", false},
    {"one_hot %i {size=32, dtype=f32} : f32[8,32{tp}]", true},
    {"one_hot %i {size=32, dtype=f32} : f32[8{dp},32{tp}]", false},
};

TEST(ir_layouts_declared) {
  for (u32 k = 0; k < COUNT_OF(declared); k++) {
    ctx *c = ctx_new();
    const char *text =
        arena_printf(ctx_arena(c),
                     "mesh @m [dp=2, tp=4]\nfunc @f(%%x: f32[8{dp},16], %%w: f32[16,4], %%s: f32[1,16], "
                     "%%i: i64[8]) -> () {\n  %%r = %s\n  return\n}\n",
                     declared[k].instr);
    prog *p = ir_parse(c, sym_of(c, "case"), text, strlen(text));
    CHECK_MSG(p != NULL, "%s", diag_render(c, ctx_arena(c)));
    if (p) CHECK_MSG(infer_verify(p) == declared[k].ok, "%s", declared[k].instr);
    if (p) CHECK((diag_errors(c) == 0) == declared[k].ok);
    prog_free(p);
    ctx_free(c);
  }
}
