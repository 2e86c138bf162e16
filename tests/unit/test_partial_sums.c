// test_partial_sums.c - where a sum over data ranks is taken that does not get smaller at once: what passes a transposition or goes
// into a call until it does, and what must not.
#include "plan/plan.h"
#include "test.h"

// What main and the functions that it calls run of it on one rank, in order, with the elements of each sum.
static void put_body(const prog *p, func fn, strbuf *out) {
  const func_info *f = func_get(p, fn);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    if (op_row_of(in->op)->flags & OPF_META && in->op != OP_call) continue;
    if (in->op == OP_call) {
      sb_put(out, "(");
      put_body(p, in->callee, out);
      sb_put(out, ") ");
    } else {
      sb_fmt(out, "%s ", op_row_of(in->op)->name);
      if (in->op == OP_all_reduce) sb_fmt(out, "%lld ", (long long)shape_elems(&val_type(p, f, in->res)->s));
    }
  }
}

// What a rank of two runs of the program, which computes what one device does.
static void check_runs(const char *text, const char *want) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *src = ir_parse(c, sym_of(c, "t.heddle"), text, strlen(text));
  CHECK_MSG(src != NULL, "%s", diag_render(c, a));
  REQUIRE(src != NULL);
  planner *pl = planner_new(src);
  const hybrid_opts h = {.s = strategy_of("dp=2")};
  const plan *pn = policy_hybrid(pl, a, &h);
  prog *p = pn ? plan_apply(pl, pn, NULL) : NULL, *one = p ? plan_lower(p, 0) : NULL;
  verify_report r;
  const bool ran = one && plan_verify(pl, pn, NULL, &(verify_opts){.seed = 1}, a, &r);
  CHECK_MSG(ran && r.passed, "%s\n%s", text, diag_render(c, a));
  REQUIRE(ran);
  strbuf out = {.a = a};
  put_body(one, one->main, &out);
  CHECK_STR(out.v, want);
  prog_free(one), prog_free(p);
  planner_free(pl), prog_free(src);
  arena_free(a), ctx_free(c);
}

// %p: a sum of 6 x 6 over the batch.
#define MAIN(more, types, body, results)                                                                     \
  "func @main(%x: f32[8,6] input" more ") -> (" types ") {\n" body "  return " results "\n}\n"
#define P   "  %p = einsum %x, %x {law=\"bm,bn->mn\"} backward\n"
#define T   "  %t = transpose %p {perm=[1, 0]} backward\n"
#define SUM "  %s = reduce_sum %t {axes=[0], keepdims=0} backward\n"

TEST(partial_sums_pass_until_they_are_smaller) {
  check_runs(MAIN("", "f32[6]", P T SUM, "%s"), "(einsum transpose reduce_sum ) all_reduce 6 ");
  // In another shape on the way: the same elements.
  check_runs(MAIN("", "f32[3]",
                  P T "  %v = reshape %t {shape=[3, 12]} backward\n"
                      "  %s = reduce_sum %v {axes=[1], keepdims=0} backward\n",
                  "%s"),
             "(einsum transpose reshape reduce_sum ) all_reduce 3 ");
  check_runs(MAIN("", "f32[6]",
                  P "  %q = transpose %p {perm=[1, 0]} backward\n"
                    "  %t = transpose %q {perm=[1, 0]} backward\n" SUM,
                  "%s"),
             "(einsum transpose transpose reduce_sum ) all_reduce 6 ");
}

TEST(partial_sums_stay_where_nothing_gets_smaller) {
  check_runs(MAIN(", %w: f32[6,12] weight", "f32[6,12]", P T "  %s = matmul %t, %w backward\n", "%s"),
             "(einsum all_reduce 36 transpose matmul ) ");
  check_runs(MAIN(", %w: f32[6,6] weight", "f32[6,6]", P T "  %s = mul %t, %w backward\n", "%s"),
             "(einsum all_reduce 36 transpose mul ) ");
}

// One reader makes it smaller, and another, or the step, has it as it is.
TEST(partial_sums_stay_where_somebody_wants_them_whole) {
  check_runs(
      MAIN(", %w: f32[6,6] weight", "f32[6], f32[6,6]", P T "  %u = mul %t, %w backward\n" SUM, "%s, %u"),
      "(einsum all_reduce 36 transpose mul reduce_sum ) ");
  check_runs(MAIN("", "f32[6], f32[6,6]", P T SUM, "%s, %p"),
             "(einsum all_reduce 36 transpose reduce_sum ) ");
  check_runs(MAIN("", "f32[6], f32[6,6]", P T SUM, "%s, %t"),
             "(einsum all_reduce 36 transpose reduce_sum ) ");
}

// Of two results the first has half of the elements, the other has the rest.
TEST(partial_sums_stay_where_there_are_two_results) {
  check_runs(MAIN("", "f32[3], f32[3,6]",
                  P T "  %a, %u = split %t {axis=0, sizes=[3, 3]} backward\n"
                      "  %s = reduce_sum %a {axes=[1], keepdims=0} backward\n",
                  "%s, %u"),
             "(einsum all_reduce 36 transpose split reduce_sum ) ");
}

// A gradient of a layer norm is linear in what comes, not in what the norm read.
TEST(partial_sums_stay_where_the_reader_is_not_linear) {
  check_runs(MAIN(", %w: f32[6,6] weight", "f32[6]", P T "  %s = layernorm_dg %w, %t backward\n", "%s"),
             "(einsum all_reduce 36 transpose layernorm_dg ) ");
  check_runs(MAIN(", %w: f32[6,6] weight", "f32[6]", P T "  %s = layernorm_dg %t, %w backward\n", "%s"),
             "(einsum transpose layernorm_dg ) all_reduce 6 ");
  check_runs(MAIN("", "f32[6]", P T "  %s = reduce_max %t {axes=[1], keepdims=0} backward\n", "%s"),
             "(einsum all_reduce 36 transpose reduce_max ) ");
}

#define FUNC(from, types, body, results)                                                                     \
  "func @low(%p: f32[" from "]) -> (" types ") {\n" body "  return " results "\n}\n"
#define ROWS "  %s = reduce_sum %p {axes=[0], keepdims=0}\n"

TEST(partial_sums_go_into_calls_that_make_them_smaller) {
  check_runs(FUNC("6,6", "f32[6]", ROWS, "%s") MAIN("", "f32[6]", P "  %s = call @low(%p) backward\n", "%s"),
             "(einsum (reduce_sum ) ) all_reduce 6 ");
  check_runs(FUNC("6,6", "f32[6]", ROWS, "%s")
                 MAIN("", "f32[6]", P T "  %s = call @low(%t) backward\n", "%s"),
             "(einsum transpose (reduce_sum ) ) all_reduce 6 ");
  check_runs(FUNC("6,6", "f32[6,6], f32[6]", ROWS, "%p, %s")
                 MAIN("", "f32[6,6], f32[6]", P "  %q, %s = call @low(%p) backward\n", "%q, %s"),
             "(einsum all_reduce 36 (reduce_sum ) ) ");
}

// Only a backward hands summands to a function.
TEST(partial_sums_stay_before_a_call_of_the_forward) {
  check_runs(FUNC("6,6", "f32[6]", ROWS, "%s") MAIN("", "f32[6]", P "  %s = call @low(%p)\n", "%s"),
             "(einsum all_reduce 36 (reduce_sum ) ) ");
}

// What a call takes over may be an accumulator: it is summed before.
TEST(partial_sums_stay_before_a_call_that_takes_over) {
  check_runs(FUNC("6,6", "f32[6]", ROWS, "%s")
                 MAIN("", "f32[6]", P T "  %s = call @low(!%t) backward\n", "%s"),
             "(einsum all_reduce 36 transpose (reduce_sum ) ) ");
}

// A maximum over the batch is none of the sum.
TEST(partial_maxima_do_not_pass) {
#define MAXIMUM "  %m = reduce_max %x {axes=[0], keepdims=0} backward\n"
  check_runs(FUNC("6", "f32[]", ROWS, "%s")
                 MAIN("", "f32[]", MAXIMUM "  %s = call @low(%m) backward\n", "%s"),
             "(reduce_max all_reduce 6 (reduce_sum ) ) ");
  check_runs(MAIN("", "f32[2]", MAXIMUM "  %p = reshape %m {shape=[2, 3]} backward\n" T SUM, "%s"),
             "(reduce_max all_reduce 6 reshape transpose reduce_sum ) ");
}
