// test_builder.c - programs that are built through the public interface: what their text is, what is refused.
#include "base/base.h"
#include "heddle.h"
#include "test.h"

// A block of two layers, called twice, each call a task graph; weights where they are used.
static heddle_program *built(heddle_session *s) {
  heddle_builder *b = heddle_builder_new(s, "net");
  const heddle_value x = heddle_builder_parameter(b, "input", "x", "f32[8,4]");
  heddle_builder_function(b, "block");
  heddle_value y = heddle_builder_parameter(b, "input", "x", "f32[8,4]"),
               w = heddle_builder_parameter(b, "weight", "w", "f32[4,4]");
  y = heddle_builder_op(b, "matmul", NULL, 2, (heddle_value[]){y, w});
  heddle_builder_name(b, y, "h");
  const heddle_value bias = heddle_builder_parameter(b, "weight", "bias", "f32[4]");
  y = heddle_builder_op(b, "add", NULL, 2, (heddle_value[]){y, bias});
  heddle_builder_return(b, 1, &y);
  heddle_builder_default(b, 1);
  heddle_builder_shares(b, 2, (uint32_t[]){1, 3});
  heddle_builder_setting(b, "num_micro_batch", "2");
  y = x;
  for (int k = 0; k < 2; k++) {
    heddle_builder_replicate(b, 1, k ? "last" : NULL);
    if (k) heddle_builder_shares(b, 1, (uint32_t[]){3});
    w = heddle_builder_parameter(b, "weight", k ? "w1" : "w0", "f32[4,4]");
    const heddle_value v = heddle_builder_parameter(b, "weight", k ? "b1" : "b0", "f32[4]");
    y = heddle_builder_call(b, "block", 3, (heddle_value[]){y, w, v});
    heddle_builder_end(b);
  }
  return heddle_builder_program(b, 1, &y);
}

TEST(builder_makes_the_program_of_its_text) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = built(s);
  REQUIRE(p);
  CHECK_STR(heddle_program_print(p),
            "source \"net\"\n"
            "default replicate 1\n"
            "replicas [1, 3]\n"
            "config num_micro_batch = 2\n"
            "\n"
            "func @main(%x: f32[8,4], %w0: f32[4,4] weight, %b0: f32[4] weight, %w1: f32[4,4] weight, "
            "%b1: f32[4] weight) -> (f32[8,4]) {\n"
            "  replicate 1 {\n"
            "    %6 = call @block(%x, %w0, %b0) : f32[8,4] loc(\"block.3\")\n"
            "  }\n"
            "  replicate 1 shares [3] as last {\n"
            "    %7 = call @block(%6, %w1, %b1) : f32[8,4] loc(\"block.4\")\n"
            "  }\n"
            "  return %7\n"
            "}\n"
            "\n"
            "func @block(%x: f32[8,4], %w: f32[4,4] weight, %bias: f32[4] weight) -> (f32[8,4]) "
            "loc(\"block.1\") {\n"
            "  %h = matmul %x, %w : f32[8,4] loc(\"matmul.1\")\n"
            "  %5 = add %h, %bias : f32[8,4] loc(\"add.2\")\n"
            "  return %5\n"
            "}\n");
  CHECK(heddle_program_annotated(p));
  heddle_plan *b =
      heddle_plan_annotated(p, NULL, NULL, 0, &(heddle_plan_options){.train = true, .devices = 4});
  CHECK_STR(heddle_plan_name(b), "scope 1: replicate(1), last: replicate(1); 2 replicas 1/3; 2 microbatches");
  CHECK(heddle_check_passed(heddle_check_run(b, NULL)));
  CHECK(!heddle_session_errors(s));
  heddle_session_free(s);
}

// What is wrong is said once, with its place, and ends the building.
static void refused(strbuf *said, void (*make)(heddle_builder *b, heddle_value x)) {
  heddle_session *s = heddle_session_new();
  heddle_builder *b = heddle_builder_new(s, "net");
  const heddle_value x = heddle_builder_parameter(b, "input", "x", "f32[8,4]");
  make(b, x);
  CHECK(heddle_session_errors(s) == 1);
  CHECK(!heddle_builder_op(b, "relu", NULL, 1, &x) && !heddle_builder_program(b, 1, &x));
  CHECK(heddle_session_errors(s) == 1);
  sb_fmt(said, "%s\n", heddle_session_messages(s));
  heddle_session_free(s);
}
static void unknown_op(heddle_builder *b, heddle_value x) { heddle_builder_op(b, "rleu", NULL, 1, &x); }
static void bad_shape(heddle_builder *b, heddle_value x) {
  heddle_builder_op(b, "matmul", NULL, 2, (heddle_value[]){x, x});
}
static void bad_attribute(heddle_builder *b, heddle_value x) {
  heddle_builder_op(b, "softmax", "axes=[1", 1, &x);
}
static void bad_type(heddle_builder *b, heddle_value x) {
  (void)x;
  heddle_builder_parameter(b, "weight", "w", "f33[4]");
}
static void bad_role(heddle_builder *b, heddle_value x) {
  (void)x;
  heddle_builder_parameter(b, "wait", "w", "f32[4]");
}
static void twice(heddle_builder *b, heddle_value x) {
  (void)x;
  heddle_builder_parameter(b, "weight", "x", "f32[4]");
}
static void of_no_builder(heddle_builder *b, heddle_value x) {
  heddle_builder_op(b, "relu", NULL, 1, (heddle_value[]){x + 1});
}
static void of_another_function(heddle_builder *b, heddle_value x) {
  heddle_builder_function(b, "f");
  heddle_builder_op(b, "relu", NULL, 1, &x);
}
static void never_ended(heddle_builder *b, heddle_value x) {
  heddle_builder_split(b, 2, NULL);
  heddle_builder_op(b, "relu", NULL, 1, &x);
  heddle_builder_program(b, 1, &x);
}
static void never_begun(heddle_builder *b, heddle_value x) { heddle_builder_end(b), (void)x; }
static void empty_scope(heddle_builder *b, heddle_value x) {
  (void)x;
  heddle_builder_split(b, 2, NULL), heddle_builder_end(b);
}
static void function_in_scope(heddle_builder *b, heddle_value x) {
  (void)x;
  heddle_builder_split(b, 2, NULL), heddle_builder_function(b, "f");
}
static void function_in_function(heddle_builder *b, heddle_value x) {
  (void)x;
  heddle_builder_function(b, "f"), heddle_builder_function(b, "g");
}
static void no_function(heddle_builder *b, heddle_value x) { heddle_builder_return(b, 1, &x); }
static void calls_itself(heddle_builder *b, heddle_value x) {
  (void)x;
  heddle_builder_function(b, "f"), heddle_builder_call(b, "f", 0, NULL);
}
static void no_share(heddle_builder *b, heddle_value x) {
  heddle_builder_shares(b, 2, (uint32_t[]){1, 0}), (void)x;
}
static void communicates(heddle_builder *b, heddle_value x) {
  heddle_builder_op(b, "all_reduce", NULL, 1, &x);
}
static void no_such_result(heddle_builder *b, heddle_value x) {
  heddle_builder_result(b, heddle_builder_op(b, "relu", NULL, 1, &x), 1);
}

static void too_many(heddle_builder *b, heddle_value x) { heddle_builder_default(b, 0xfffffffe), (void)x; }

// Several results, parameters behind them, scopes in scopes.
TEST(builder_takes_parameters_late) {
  heddle_session *s = heddle_session_new();
  heddle_builder *b = heddle_builder_new(s, "late");
  const heddle_value x = heddle_builder_parameter(b, NULL, "x", "f32[8,4]");
  heddle_builder_replicate(b, 2, "around");
  const heddle_value half = heddle_builder_op(b, "split", "axis=1, sizes=[2, 2]", 1, &x),
                     other = heddle_builder_result(b, half, 1),
                     w = heddle_builder_parameter(b, "weight", "w", "f32[2,6]");
  heddle_builder_split(b, 2, NULL);
  const heddle_value y = heddle_builder_op(b, "matmul", NULL, 2, (heddle_value[]){other, w});
  heddle_builder_end(b), heddle_builder_end(b);
  const heddle_value z = heddle_builder_op(b, "matmul", NULL, 2, (heddle_value[]){half, w});
  heddle_program *p = heddle_builder_program(b, 2, (heddle_value[]){y, z});
  CHECK_STR(heddle_program_print(p),
            "source \"late\"\n"
            "\n"
            "func @main(%x: f32[8,4], %w: f32[2,6] weight) -> (f32[8,6], f32[8,6]) {\n"
            "  replicate 2 as around {\n"
            "    %3, %4 = split %x {axis=1, sizes=[2, 2]} : f32[8,2], f32[8,2] loc(\"split.1\")\n"
            "    split 2 {\n"
            "      %5 = matmul %4, %w : f32[8,6] loc(\"matmul.2\")\n"
            "    }\n"
            "  }\n"
            "  %6 = matmul %3, %w : f32[8,6] loc(\"matmul.3\")\n"
            "  return %5, %6\n"
            "}\n");
  heddle_session_free(s);
}

TEST(builder_refuses) {
  void (*const make[])(heddle_builder *, heddle_value) = {unknown_op,
                                                          bad_shape,
                                                          bad_attribute,
                                                          bad_type,
                                                          bad_role,
                                                          twice,
                                                          of_no_builder,
                                                          of_another_function,
                                                          never_ended,
                                                          never_begun,
                                                          empty_scope,
                                                          function_in_scope,
                                                          function_in_function,
                                                          no_function,
                                                          calls_itself,
                                                          communicates,
                                                          no_such_result,
                                                          no_share,
                                                          too_many};
  arena *a = arena_new();
  strbuf said = {.a = a};
  for (u32 k = 0; k < COUNT_OF(make); k++) refused(&said, make[k]);
  CHECK_GOLDEN("api/builder.expected", sb_str(&said));
  arena_free(a);
}

// What inner layers held when memory ran out is lost, as heddle.h says.
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

TEST(builder_every_failing_allocation) {
  if (__lsan_disable) __lsan_disable();
  i64 n = 1;
  for (bool ok = false; !ok && n < 1000; n++) {
    base_fail_after = n;
    heddle_session *s = heddle_session_new();
    ok = s && heddle_program_print(built(s));
    CHECK(!s || ok || strstr(heddle_session_messages(s), "out of memory"));
    if (s) heddle_session_free(s);
    base_fail_after = 0;
  }
  if (__lsan_enable) __lsan_enable();
  CHECK_MSG(n > 3 && n < 1000, "%lld allocations", (long long)n);
}
