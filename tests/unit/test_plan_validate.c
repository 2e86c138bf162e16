// test_plan_validate.c - programs that break what plan_validate proves, and the orders of ranks that cannot
// be merged.
#include "plan/plan.h"
#include "test.h"

typedef struct {
  ctx *c;
  arena *a;
  prog *p;
} session;

static session open_text(const char *text) {
  session s = {ctx_new(), arena_new(), NULL};
  s.p = ir_parse(s.c, sym_of(s.c, "text"), text, strlen(text));
  CHECK_MSG(s.p != NULL, "%s", diag_render(s.c, s.a));
  REQUIRE(s.p);
  return s;
}

static void close_text(session *s) {
  prog_free(s->p);
  arena_free(s->a);
  ctx_free(s->c);
}

// The first diagnostic of validation; "" if it holds.
static void check_text(const char *text, const char *want) {
  session s = open_text(text);
  bool ok = plan_validate(s.p);
  CHECK_MSG(ok == !*want, "%s", diag_render(s.c, s.a));
  CHECK_STR(diag_count(s.c) ? diag_get(s.c, 0).message : "", want);
  close_text(&s);
}

// Two microbatches: a forward that saves a tuple, a backward that adds to a sum, an update that takes it as
// complete.
#define HEAD                                                                                                 \
  "mesh @m [d=2]\n"                                                                                          \
  "time [mb=2]\n"                                                                                            \
  "func @fwd(%x: f32[4{mb},2]) -> (f32[4{mb},2], (f32[4{mb},2])) {\n"                                        \
  "  %y = relu %x\n"                                                                                         \
  "  %t = pack %y : (f32[4{mb},2])\n"                                                                        \
  "  return %y, %t\n"                                                                                        \
  "}\n"                                                                                                      \
  "func @bwd(%t: (f32[4{mb},2]), %acc: (f32[2]+mb)) -> ((f32[2]+mb)) {\n"                                    \
  "  %y = unpack %t : f32[4{mb},2]\n"                                                                        \
  "  %a = unpack %acc : f32[2]+mb\n"                                                                         \
  "  %g = reduce_sum %y {axes=[0], keepdims=0}\n"                                                            \
  "  %b = add !%a, %g\n"                                                                                     \
  "  %c = pack %b : (f32[2]+mb)\n"                                                                           \
  "  return %c\n"                                                                                            \
  "}\n"                                                                                                      \
  "func @update(%acc: (f32[2]+mb)) -> (f32[2]) {\n"                                                          \
  "  %a = unpack %acc : f32[2]+mb\n"                                                                         \
  "  %b = join %a over mb : f32[2]\n"                                                                        \
  "  return %b\n"                                                                                            \
  "}\n"                                                                                                      \
  "func @main(%x: f32[4,2] @m) -> (f32[2] @m) {\n"                                                           \
  "  %x0 = part %x {at=0} over mb @m @mb=0 : f32[4{mb},2]\n"                                                 \
  "  %x1 = part %x {at=1} over mb @m @mb=1 : f32[4{mb},2]\n"                                                 \
  "  %z = full {shape=[2], dtype=f32} @m : f32[2]+mb\n"                                                      \
  "  %a = pack %z @m : (f32[2]+mb)\n"                                                                        \
  "  %y0, %t0 = call @fwd(%x0) @m @mb=0\n"                                                                   \
  "  %y1, %t1 = call @fwd(%x1) @m @mb=1\n"
#define TAIL                                                                                                 \
  "  %u = call @update(%c) @m\n"                                                                             \
  "  return %u\n"                                                                                            \
  "}\n"

TEST(validate_time) {
  check_text(HEAD "  %b = call @bwd(%t0, !%a) @m @mb=0\n  %c = call @bwd(%t1, !%b) @m @mb=1\n" TAIL, "");
  check_text(HEAD "  %b = call @bwd(%t1, !%a) @m @mb=1\n  %c = call @bwd(%t0, !%b) @m @mb=0\n" TAIL, "");
  check_text(HEAD "  %b = call @bwd(%t0, !%a) @m @mb=0\n  %c = call @bwd(%t0, !%b) @m @mb=1\n" TAIL,
             "call of @bwd at mb=1 reads operand 1, which was made at mb=0");
  check_text(HEAD "  %c = call @bwd(%t0, !%a) @m @mb=0\n" TAIL, "join in @update: a sum over mb lacks mb=1");
  check_text(HEAD "  %b = call @bwd(%t1, !%a) @m @mb=1\n  %c = call @bwd(%t1, !%b) @m @mb=1\n" TAIL,
             "join in @update: a sum over mb lacks mb=0");
  check_text(HEAD "  %b = call @bwd(%t0, !%a) @m @mb=0\n  %d = call @bwd(%t1, !%b) @m @mb=1\n  %c = call "
                  "@bwd(%t1, !%d) @m @mb=1\n" TAIL,
             "join in @update: a sum over mb counts mb=1 twice");
  check_text(HEAD "  %b = call @bwd(%t0, !%a) @m @mb=0\n  %d = call @bwd(%t1, !%b) @m @mb=1\n  %e = call "
                  "@bwd(%t0, !%d) @m @mb=0\n  %c = call @bwd(%t1, !%e) @m @mb=1\n" TAIL,
             "join in @update: a sum over mb counts mb=0, mb=1 twice");
  check_text(HEAD "  %c = call @bwd(%t0, !%a) @m\n" TAIL,
             "call reads one piece of operand 1 along mb, but none is selected");
}

// Tuples of sums are followed together only where each element continues the one in its place.
TEST(validate_tuples_of_sums) {
  static const char head[] =
      "mesh @m [d=2]\ntime [mb=2]\n"
      "func @bwd(%x: f32[4{mb},2], %acc: (f32[2]+mb, f32[2]+mb)) -> ((f32[2]+mb, f32[2]+mb)) {\n"
      "  %a, %b = unpack %acc : f32[2]+mb, f32[2]+mb\n  %y = tanh %x\n"
      "  %g = reduce_sum %x {axes=[0], keepdims=0}\n  %h = reduce_sum %y {axes=[0], keepdims=0}\n"
      "  %a1 = add %a, %g\n  %b1 = add %b, %h\n  %a2 = add %a, %h\n  %a3 = add %a1, %g\n"
      "  %a4 = add %a1, %a\n";
  static const char tail[] =
      "  return %t\n}\n"
      "func @main(%x: f32[4,2] @m) -> (f32[2] @m, f32[2] @m) {\n"
      "  %x0 = part %x {at=0} over mb @m @mb=0 : f32[4{mb},2]\n"
      "  %x1 = part %x {at=1} over mb @m @mb=1 : f32[4{mb},2]\n"
      "  %z = full {shape=[2], dtype=f32} @m : f32[2]+mb\n"
      "  %a = pack %z, %z @m : (f32[2]+mb, f32[2]+mb)\n"
      "  %b = call @bwd(%x0, !%a) @m @mb=0\n  %c = call @bwd(%x1, !%b) @m @mb=1\n"
      "  %p, %q = unpack %c @m : f32[2]+mb, f32[2]+mb\n"
      "  %u = call @update(%p) @m\n  %v = call @update(%q) @m\n  return %u, %v\n}\n"
      "func @update(%a: f32[2]+mb) -> (f32[2]) {\n  %b = join %a over mb : f32[2]\n  return %b\n}\n";
  static const struct {
    const char *body, *want;
  } row[] = {{"%a1, %b1", ""},
             {"%a1, %b", ""},  // nothing is added to the second, as often as it should
             {"%a3, %b1", ""}, // what every microbatch adds is what the function says
             {"%a4, %b1", "join in @update: a sum over mb counts mb=0 twice"},
             {"%a1, %a2", "join in @update: a sum over mb lacks mb=0"},
             {"%b1, %a1", "join in @update: a sum over mb lacks mb=0"}};
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    char text[4096];
    snprintf(text, sizeof text, "%s  %%t = pack %s : (f32[2]+mb, f32[2]+mb)\n%s", head, row[k].body, tail);
    check_text(text, row[k].want);
  }
}

// Parts of different sums do not make up for one another.
TEST(validate_sums_apart) {
  static const char head[] = "mesh @m [d=2]\ntime [mb=2]\n"
                             "func @f(%x: f32[4{mb},2]) -> (f32[2]+mb, f32[2]+mb) {\n"
                             "  %a = reduce_sum %x {axes=[0], keepdims=0}\n  %y = tanh %x\n"
                             "  %b = reduce_sum %y {axes=[0], keepdims=0}\n  return %a, %b\n}\n"
                             "func @main(%x: f32[4,2] @m) -> (f32[2] @m) {\n"
                             "  %x0 = part %x {at=0} over mb @m @mb=0 : f32[4{mb},2]\n"
                             "  %x1 = part %x {at=1} over mb @m @mb=1 : f32[4{mb},2]\n"
                             "  %a0, %b0 = call @f(%x0) @m @mb=0\n  %a1, %b1 = call @f(%x1) @m @mb=1\n";
  char text[2048];
  snprintf(text, sizeof text, "%s  %%u = join %%a0, %%a1 over mb @m\n  return %%u\n}\n", head);
  check_text(text, "");
  snprintf(text, sizeof text, "%s  %%u = join %%a0, %%b1 over mb @m\n  return %%u\n}\n", head);
  check_text(text, "join in @main: a sum over mb lacks mb=0");
  snprintf(text, sizeof text, "%s  %%u = join %%a1, %%a1 over mb @m\n  return %%u\n}\n", head);
  check_text(text, "join in @main: a sum over mb lacks mb=0");
}

// What calls of main yield is followed through tuples, sends and sums that main itself makes of it.
TEST(validate_through_main) {
  static const char head[] =
      "mesh @m [p=2]\ntime [mb=2]\n"
      "func @f(%x: f32[4{mb},2]) -> ((f32[2]+mb, f32[4{mb},2], f32[2])) {\n"
      "  %a = reduce_sum %x {axes=[0], keepdims=0}\n  %k = full {shape=[2], dtype=f32}\n"
      "  %t = pack %a, %x, %k : (f32[2]+mb, f32[4{mb},2], f32[2])\n  return %t\n}\n"
      "func @g(%t: (f32[4{mb},2], f32[2]+mb)) -> (f32[2]+mb, f32[4{mb},2]) {\n"
      "  %x, %a = unpack %t : f32[4{mb},2], f32[2]+mb\n  return %a, %x\n}\n"
      "func @main(%x: f32[4,2] @m[p=0]) -> (f32[2] @m[p=1]) {\n"
      "  %x0 = part %x {at=0} over mb @m[p=0] @mb=0 : f32[4{mb},2]\n"
      "  %x1 = part %x {at=1} over mb @m[p=0] @mb=1 : f32[4{mb},2]\n"
      "  %t0 = call @f(%x0) @m[p=0] @mb=0\n  %t1 = call @f(%x1) @m[p=0] @mb=1\n"
      "  %a0, %p0, %k0 = unpack %t0 @m[p=0] @mb=0 : f32[2]+mb, f32[4{mb},2], f32[2]\n"
      "  %a1, %p1, %k1 = unpack %t1 @m[p=0] @mb=1 : f32[2]+mb, f32[4{mb},2], f32[2]\n";
  static const struct {
    const char *tail, *want;
  } row[] = {
      {"  %u1 = pack %p1, %a1 @m[p=0] @mb=1 : (f32[4{mb},2], f32[2]+mb)\n"
       "  %b1, %q1 = call @g(%u1) @m[p=0] @mb=1\n  %b = add %a0, %b1 @m[p=0]\n",
       ""},
      {"  %u1 = pack %p1, %a1 @m[p=0] @mb=1 : (f32[4{mb},2], f32[2]+mb)\n"
       "  %b1, %q1 = call @g(%u1) @m[p=0] @mb=1\n  %b = add %a1, %b1 @m[p=0]\n",
       "join in @main: a sum over mb lacks mb=0"},
      {"  %u1 = pack %p1, %a0 @m[p=0] @mb=1 : (f32[4{mb},2], f32[2]+mb)\n"
       "  %b1, %q1 = call @g(%u1) @m[p=0] @mb=1\n  %b = add %a0, %b1 @m[p=0]\n",
       "join in @main: a sum over mb lacks mb=1"},
      {"  %u1 = pack %p1, %a1 @m[p=0] @mb=1 : (f32[4{mb},2], f32[2]+mb)\n"
       "  %b1, %q1 = call @g(%u1) @m[p=0] @mb=0\n  %b = add %a0, %b1 @m[p=0]\n",
       "call of @g at mb=0 reads operand 1, which was made at mb=1"},
  };
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    char text[4096];
    snprintf(text, sizeof text,
             "%s%s  %%s = send %%b @m[p=0] : f32[2]+mb @m[p=1]\n"
             "  %%j = join %%s over mb @m[p=1]\n  return %%j\n}\n",
             head, row[k].tail);
    check_text(text, row[k].want);
  }
}

TEST(validate_results_in_time) {
  check_text("mesh @m [d=2]\ntime [mb=2]\nfunc @main(%x: f32[4,2] @m) -> (f32[2]+mb @m) {\n"
             "  %y = part %x {at=0} over mb @m @mb=0 : f32[4{mb},2]\n"
             "  %z = reduce_sum %y {axes=[0], keepdims=0} @m @mb=0\n  return %z\n}\n",
             "result 1 of main, f32[2]+mb @m, is a sum over some coordinates of mb");
}

// ---- orders --------------------------------------------------------------------------------------------
// Instructions: 1, 2 reductions; 3 local; 4, 5 sends there and back; 6 a reduction on the other stream.
static const char comm_text[] = "mesh @m [p=2, d=2]\nstream net\n"
                                "func @main(%x: f32[4]+d @m[p=0], %y: f32[4]+d @m[p=0]) -> (f32[4] @m[p=0], "
                                "f32[4] @m[p=0], f32[4] @m[p=1], f32[4] @m[p=0]) {\n"
                                "  %a = all_reduce %x over d @m[p=0]\n"
                                "  %b = all_reduce %y over d @m[p=0]\n"
                                "  %c = relu %a @m[p=0]\n"
                                "  %e = send %b @m[p=0] : f32[4] @m[p=1]\n"
                                "  %g = send %e @m[p=1] : f32[4] @m[p=0]\n"
                                "  %h = all_reduce %x over d @m[p=0] !net\n"
                                "  return %c, %g, %e, %h\n"
                                "}\n";

// Rank `rank` issues `order` instead of its own; the first word of the diagnostic's code, "" if it can run.
static void check_order(u32 rank, u32 n, const u32 *order, const char *want) {
  session s = open_text(comm_text);
  plan_order of_rank[4];
  REQUIRE(plan_ranks(s.p) == 4);
  plan_projections(s.p, s.a, of_rank);
  CHECK(plan_check_orders(s.p, of_rank, 4));
  of_rank[rank] = (plan_order){n, order};
  CHECK(plan_check_orders(s.p, of_rank, 4) == !*want);
  CHECK_STR(diag_count(s.c) ? diag_row_of(diag_get(s.c, 0).id)->code : "", want);
  close_text(&s);
}
#define ORDER(rank, want, ...)                                                                               \
  check_order(rank, COUNT_OF(((u32[]){__VA_ARGS__})), (const u32[]){__VA_ARGS__}, want)

TEST(validate_orders) {
  ORDER(0, "", 1, 2, 3, 4, 5, 6);
  ORDER(0, "", 1, 3, 2, 4, 5, 6);      // local work moves freely
  ORDER(0, "", 6, 1, 2, 3, 4, 5);      // so does another stream
  ORDER(0, "E0507", 2, 1, 3, 4, 5, 6); // equal ranks, other order
  ORDER(0, "E0503", 3, 1, 2, 4, 5, 6); // before its operand
  ORDER(2, "E0503", 5, 4);             // sends the other way round, and before its operand
  ORDER(0, "E0503", 1, 2, 3, 5, 4, 6); // waits for what comes back before it has sent
  ORDER(1, "E0503", 1, 2, 3, 4, 5);    // never issues
  ORDER(1, "E0503", 1, 2, 3, 4, 5, 6, 6);
  ORDER(3, "E0503", 4, 5, 1); // not its own
}

TEST(validate_orders_merge) { // no two ranks disagree, and still nobody can go on
  session s =
      open_text("mesh @m [r=3]\nfunc @main(%x: f32[4] @m[r=0], %y: f32[4] @m[r=1], %z: f32[4] @m[r=2])"
                " -> (f32[4] @m[r=1], f32[4] @m[r=2], f32[4] @m[r=0]) {\n"
                "  %a = send %x @m[r=0] : f32[4] @m[r=1]\n  %b = send %y @m[r=1] : f32[4] @m[r=2]\n"
                "  %c = send %z @m[r=2] : f32[4] @m[r=0]\n  return %a, %b, %c\n}\n");
  const u32 v[3][2] = {{1, 3}, {2, 1}, {3, 2}};
  plan_order of_rank[3];
  for (u32 r = 0; r < 3; r++) of_rank[r] = (plan_order){2, v[r]};
  CHECK(!plan_check_orders(s.p, of_rank, 3));
  CHECK_STR(diag_get(s.c, 0).message, "deadlock: ranks wait for each other in a cycle");
  CHECK_EQ_I64(diag_get(s.c, 0).notes, 3);
  close_text(&s);
}
