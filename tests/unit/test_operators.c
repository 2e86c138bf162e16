// test_operators.c - operators from outside through the public interface: what is refused and where, and that they are
// treated as the table's own: the same law, gradient and cost give the same plans, times and numbers.
#include "base/base.h"
#include "heddle.h"
#include "test.h"
#include <math.h>
#include <pthread.h>

// ---- kernels ---------------------------------------------------------------------------------------------
#define IN(x, k)  ((const double *)(x)->operands[k].data)
#define OUT(x, k) ((double *)(x)->results[k].data)
static int64_t count(const heddle_piece *p) {
  int64_t n = 1;
  for (uint32_t d = 0; d < p->ndims; d++) n *= p->dims[d];
  return n;
}
static int64_t last(const heddle_piece *p) { return p->dims[p->ndims - 1]; }

static bool matmul(void *arg, const heddle_application *x) {
  const int64_t k = x->operands[1].dims[0], n = x->operands[1].dims[1], m = count(x->operands) / k;
  (void)arg;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t l = 0; l < k; l++) sum += IN(x, 0)[i * k + l] * IN(x, 1)[l * n + j];
      OUT(x, 0)[i * n + j] = sum;
    }
  return true;
}
static bool gelu(void *arg, const heddle_application *x) {
  (void)arg;
  for (int64_t i = 0; i < count(x->results); i++)
    OUT(x, 0)[i] = IN(x, 0)[i] * 0.5 * (1 + erf(IN(x, 0)[i] * sqrt(0.5)));
  return heddle_application_number(x, "approx", -1) == 0;
}
static bool add(void *arg, const heddle_application *x) {
  (void)arg;
  for (int64_t i = 0; i < count(x->results); i++)
    OUT(x, 0)[i] = IN(x, 0)[i] + IN(x, 1)[i % count(&x->operands[1])];
  return true;
}
static bool rmsnorm(void *arg, const heddle_application *x) {
  const int64_t d = last(x->operands);
  const double eps = heddle_application_number(x, "eps", 0);
  (void)arg;
  for (int64_t i = 0; i < count(x->operands); i += d) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += IN(x, 0)[i + k] * IN(x, 0)[i + k];
    for (int64_t k = 0; k < d; k++)
      OUT(x, 0)[i + k] = IN(x, 0)[i + k] / sqrt(sum / (double)d + eps) * IN(x, 1)[k];
  }
  return true;
}
static bool squares(void *arg, const heddle_application *x) {
  const int64_t d = last(x->operands);
  (void)arg;
  for (int64_t i = 0; i < count(x->results); i++) {
    OUT(x, 0)[i] = 0;
    for (int64_t k = 0; k < d; k++) OUT(x, 0)[i] += IN(x, 0)[i * d + k] * IN(x, 0)[i * d + k];
  }
  return true;
}
static bool row_sum(void *arg, const heddle_application *x) {
  const int64_t d = last(x->operands);
  (void)arg;
  for (int64_t i = 0; i < count(x->results); i++) {
    OUT(x, 0)[i] = 0;
    for (int64_t k = 0; k < d; k++) OUT(x, 0)[i] += IN(x, 0)[i * d + k];
  }
  return true;
}
static bool halves(void *arg, const heddle_application *x) {
  const int64_t h = last(x->results);
  (void)arg;
  for (int64_t i = 0; i < count(x->results); i++) {
    OUT(x, 0)[i] = IN(x, 0)[i / h * 2 * h + i % h];
    OUT(x, 1)[i] = IN(x, 0)[i / h * 2 * h + h + i % h];
  }
  return true;
}
static bool ramp(void *arg, const heddle_application *x) {
  const heddle_piece *p = x->operands;
  const int64_t d = last(p), *index = p->index[p->ndims - 1];
  (void)arg;
  for (int64_t i = 0; i < count(p); i++) OUT(x, 0)
  [i] = IN(x, 0)[i] * (double)(1 + (index ? index[i % d] : i % d)) / (double)p->whole[p->ndims - 1];
  return true;
}

// Rows that are Heddle's own under other names.
static const heddle_operator_row copies[] = {
    {.name = "my_matmul",
     .operands = "x, w",
     .law = "...mk,...kn->...mn",
     .types = "N->N",
     .linear = "e",
     .reduction = "sum",
     .product = true,
     .flops = 2,
     .kernel = matmul,
     .gradient =
         "%d_x = einsum %d_y, %w {law=\"bmn,kn->bmk\"}\n%d_w = einsum %x, %d_y {law=\"bmk,bmn->kn\"}"},
    {.name = "my_gelu",
     .operands = "x",
     .law = "...->...",
     .attributes = "approx=0",
     .flops = 10,
     .kernel = gelu,
     .gradient = "%d_x = gelu_dx %d_y, %x {approx} # as the operator has it"},
    {.name = "my_add",
     .operands = "x, z",
     .law = "...,...->...",
     .linear = "j",
     .reduction = "sum",
     .flops = 1,
     .kernel = add,
     .gradient = "%d_x = identity %d_y\n%d_z = identity %d_y"},
    {.name = "my_rmsnorm",
     .operands = "x, g",
     .law = "...D,D->...D",
     .attributes = "eps=1e-5",
     .linear = "-e",
     .reduction = "sum",
     .flops = 6,
     .kernel = rmsnorm,
     .gradient = "%d_x = rmsnorm_dx %d_y, %x, %g {eps}\n%d_g = rmsnorm_dg %d_y, %x {eps}"}};

static bool add_all(heddle_session *s, const heddle_operator_row *rows, size_t n) {
  bool ok = true;
  for (size_t k = 0; k < n; k++) ok &= heddle_operator_register(s, &rows[k]);
  return CHECK_MSG(ok, "%s", heddle_session_messages(s));
}

static heddle_program *network(heddle_session *s, const char *my, const char *type) {
  char text[2048];
  const int n = snprintf(text, sizeof text,
                         "main @main(%%x: %s[8,16,32], %%g: %s[32] weight, %%w: %s[32,64] weight, %%b: "
                         "%s[64] weight, %%v: %s[64,32] weight)"
                         " -> (%s[]) {\n"
                         "  %%n = %srmsnorm %%x, %%g {eps=0.001}\n"
                         "  %%h = %smatmul %%n, %%w\n"
                         "  %%i = %sadd %%h, %%b\n"
                         "  %%a = %sgelu %%i\n"
                         "  %%o = %smatmul %%a, %%v\n"
                         "  %%q = mul %%o, %%o\n"
                         "  %%l = reduce_mean %%q {keepdims=0}\n"
                         "  return %%l\n}\n",
                         type, type, type, type, type, type, my, my, my, my, my);
  return heddle_program_parse(s, "net.heddle", text, (size_t)n);
}

static int64_t time_of(heddle_program *p, heddle_machine *m, const char *strategy) {
  heddle_plan *b = heddle_plan_make(p, strategy, &(heddle_plan_options){.train = true});
  heddle_result *r = heddle_result_run(heddle_plan_apply(b), m, NULL);
  return r ? heddle_result_time_ps(r) : -1;
}

TEST(operators_equal_to_those_of_the_table_take_as_long) {
  static const char *const strategies[] = {"dp=4",
                                           "tp=4",
                                           "dp=2 tp=2 mb=2 zero=2",
                                           "tp=2 sp=on",
                                           "pp=2 mb=2",
                                           "dp=2 pp=2 mb=4 schedule=zb-h1",
                                           "dp=2 recompute=full"};
  heddle_session *s = heddle_session_new();
  REQUIRE(add_all(s, copies, COUNT_OF(copies)));
  heddle_program *mine = network(s, "my_", "f32"), *theirs = network(s, "", "f32");
  heddle_machine *m = heddle_machine_load(s, "dgx-2");
  for (size_t k = 0; k < COUNT_OF(strategies); k++) {
    const int64_t t = time_of(theirs, m, strategies[k]);
    CHECK_MSG(t > 0 && time_of(mine, m, strategies[k]) == t, "%s: %lld ps, not %lld: %s", strategies[k],
              (long long)time_of(mine, m, strategies[k]), (long long)t, heddle_session_messages(s));
  }
  heddle_session_free(s);
}

static bool equal_under(heddle_session *s, heddle_program *p, const char *strategy, bool train) {
  heddle_plan *b = heddle_plan_make(p, strategy, &(heddle_plan_options){.train = train});
  heddle_check *c = heddle_check_run(b, NULL);
  CHECK_MSG(c, "%s: %s", strategy, heddle_session_messages(s));
  const bool equal = c && heddle_check_passed(c);
  heddle_session_clear(s);
  return equal;
}

TEST(operators_of_ones_own_verify_under_every_kind_of_split) {
  static const char *const strategies[] = {"dp=4", "tp=4", "dp=2 tp=2 mb=2 zero=3", "tp=2 sp=on",
                                           "pp=2 mb=2"};
  heddle_session *s = heddle_session_new();
  REQUIRE(add_all(s, copies, COUNT_OF(copies)));
  heddle_program *mine = network(s, "my_", "f32");
  for (size_t k = 0; k < COUNT_OF(strategies); k++)
    CHECK_MSG(equal_under(s, mine, strategies[k], true), "%s", strategies[k]);
  heddle_session_free(s);
}

// The gradient is not in what verify compares: both sides have it. Here the other side is the table's.
TEST(operators_train_as_those_of_the_table) {
  enum { STEPS = 4 };
  double loss[2][STEPS];
  heddle_session *s = heddle_session_new();
  REQUIRE(add_all(s, copies, COUNT_OF(copies)));
  const heddle_optimizer sgd = {.name = "sgd", .lr = 0.5};
  for (int k = 0; k < 2; k++) {
    heddle_program *p = heddle_program_train(network(s, k ? "my_" : "", "f64"), &sgd, false);
    // The same for both: random weights are what Heddle's operators make of them, gains near 1.
    heddle_program *of = heddle_program_train(network(s, "", "f64"), &sgd, false);
    heddle_tensors *t = heddle_tensors_random(of, 3);
    REQUIRE(heddle_tensors_train(t, p, NULL, STEPS, loss[k]));
  }
  for (int k = 0; k < STEPS; k++) CHECK_CLOSE(loss[1][k], loss[0][k], 1e-12);
  CHECK(loss[0][STEPS - 1] != loss[0][0]);
  heddle_session_free(s);
}

// Programs go to contexts of threads: words of gradients, names and kernels have to go with them.
TEST(operators_are_searched_like_those_of_the_table) {
  heddle_session *s = heddle_session_new();
  REQUIRE(add_all(s, copies, COUNT_OF(copies)));
  heddle_machine *m = heddle_machine_load(s, "dgx-2");
  const heddle_search_options o = {.train = true, .ranks = 4, .threads = 2};
  heddle_plan *best[2];
  int64_t t[2];
  for (int k = 0; k < 2; k++) {
    best[k] = heddle_search_plan(heddle_search_run(network(s, k ? "my_" : "", "f32"), m, &o), 0);
    heddle_result *r = heddle_result_run(heddle_plan_apply(best[k]), m, NULL);
    REQUIRE(r);
    t[k] = heddle_result_time_ps(r);
  }
  CHECK_STR(heddle_plan_name(best[1]), heddle_plan_name(best[0]));
  CHECK_EQ_I64(t[1], t[0]);
  heddle_plan *again = heddle_plan_parse(network(s, "my_", "f32"), "best", heddle_plan_print(best[1]),
                                         strlen(heddle_plan_print(best[1])));
  CHECK_MSG(heddle_plan_apply(again), "%s", heddle_session_messages(s));
  heddle_session_free(s);
}

// ---- laws against kernels ----------------------------------------------------------------------------------
// %o is a sum over tp=2 of two products.
static heddle_program *through(heddle_session *s, const char *op, const char *results, const char *use) {
  char text[1024];
  const int n =
      snprintf(text, sizeof text,
               "main @main(%%x: f32[8,16], %%w: f32[16,32] weight, %%v: f32[32,16] weight) -> (f32[]) {\n"
               "  %%h = matmul %%x, %%w\n  %%a = gelu %%h\n  %%o = matmul %%a, %%v\n"
               "  %s = %s\n  %%l = reduce_mean %s {keepdims=0}\n  return %%l\n}\n",
               results, op, use);
  return heddle_program_parse(s, "through.heddle", text, (size_t)n);
}

TEST(operators_whose_law_is_wrong_differ) {
  static const heddle_operator_row rows[] = {
      {.name = "squares", .operands = "x", .law = "bd->b", .reduction = "sum", .kernel = squares},
      {.name = "squares_linear",
       .operands = "x",
       .law = "bd->b",
       .reduction = "sum",
       .linear = "e",
       .kernel = squares},
      {.name = "sum_whole", .operands = "x", .law = "bd->b", .linear = "e", .kernel = row_sum},
      {.name = "sum_sum",
       .operands = "x",
       .law = "bd->b",
       .linear = "e",
       .reduction = "sum",
       .kernel = row_sum},
      {.name = "sum_max", .operands = "x", .law = "bd->b", .reduction = "max", .kernel = row_sum}};
  static const struct {
    const char *what;
    bool equal;
  } cases[] = {{"squares %o", true},        {"squares_linear %o", false}, {"squares %h", true},
               {"squares_linear %h", true}, {"sum_whole %h", true},       {"sum_sum %h", true},
               {"sum_sum %o", true},        {"sum_max %h", false}};
  heddle_session *s = heddle_session_new();
  REQUIRE(add_all(s, rows, COUNT_OF(rows)));
  for (size_t k = 0; k < COUNT_OF(cases); k++) {
    heddle_program *p = through(s, cases[k].what, "%r", "%r");
    CHECK_MSG(p && equal_under(s, p, "tp=2", false) == cases[k].equal, "%s is %s", cases[k].what,
              cases[k].equal ? "not equal" : "equal");
  }
  heddle_session_free(s);
}

TEST(operators_have_factors_and_several_results) {
  static const heddle_operator_row rows[] = {
      {.name = "halves",
       .operands = "x",
       .results = "a, b",
       .law = "...(2h)->...h,...h",
       .linear = "e",
       .reduction = "sum",
       .kernel = halves,
       .gradient = "%d_x = concat %d_a, %d_b {axis=-1}"},
      {.name = "pairs", .operands = "x, z", .law = "b(kh),bk->b(hk)", .gradient = "zero"}};
  heddle_session *s = heddle_session_new();
  REQUIRE(add_all(s, rows, COUNT_OF(rows)));
  heddle_program *p =
      through(s, "halves %h\n  %c = mul %r, %t\n  %d = silu %r", "%r, %t", "%d"); // nothing comes to %t
  REQUIRE(CHECK_MSG(p, "%s", heddle_session_messages(s)) && p);
  CHECK(strstr(heddle_program_print(p), "%r, %t = halves %h : f32[8,16], f32[8,16]"));
  CHECK(equal_under(s, p, "tp=2", true) && equal_under(s, p, "dp=2 tp=4", true) &&
        equal_under(s, p, "dp=4", true));
  const char *text = "main @main(%x: f32[4,6], %z: f32[4,2], %y: f32[4,7]) -> () {\n  %a = pairs %x, %z\n"
                     "  %b, %c = halves %y\n  %d = pairs %y, %z\n}\n";
  CHECK(!heddle_program_parse(s, "bad.heddle", text, strlen(text)));
  CHECK_STR(heddle_session_messages(s),
            "error[E0301]: halves: dimension 1 of operand 1 is 7, not a multiple of 2\n"
            "  --> bad.heddle:3:12\n"
            "   3 |   %b, %c = halves %y\n"
            "     |            ^\n"
            "error[E0301]: pairs: dimension 1 of operand 1 is 7, not a multiple of 2\n"
            "  --> bad.heddle:4:8\n"
            "   4 |   %d = pairs %y, %z\n"
            "     |        ^\n");
  heddle_session_free(s);
}

TEST(operators_know_where_their_elements_are) {
  static const heddle_operator_row row = {.name = "ramp",
                                          .operands = "x",
                                          .law = "...d->...d",
                                          .positions = true,
                                          .linear = "e",
                                          .reduction = "sum",
                                          .kernel = ramp,
                                          .gradient = "%d_x = ramp %d_y"};
  heddle_session *s = heddle_session_new();
  REQUIRE(add_all(s, &row, 1));
  heddle_program *p = through(s, "ramp %h", "%r", "%r");
  CHECK(equal_under(s, p, "tp=4", true) && equal_under(s, p, "dp=2 tp=2", true));
  heddle_session_free(s);
}

// ---- cost --------------------------------------------------------------------------------------------------
static double per_point(void *arg, const heddle_application *x) {
  return *(double *)arg * (double)count(x->results);
}
static double moved(void *arg, const heddle_application *x) {
  double n = 0;
  for (uint32_t k = 0; k < 2; k++) {
    const heddle_piece *p = k ? x->results : x->operands;
    n += (double)count(p) * p->element_bytes;
  }
  return *(double *)arg * n;
}

TEST(operators_cost_what_their_functions_say) {
  static double three = 3, one = 1, ten = 10, many = 30000;
  const heddle_operator_row rows[] = {
      {.name = "by_row", .operands = "x", .law = "...->...", .flops = 3},
      {.name = "by_flops", .operands = "x", .law = "...->...", .flops_of = per_point, .arg = &three},
      {.name = "by_bytes", .operands = "x", .law = "...->...", .flops = 3, .bytes_of = moved, .arg = &one},
      {.name = "ten_bytes", .operands = "x", .law = "...->...", .flops = 3, .bytes_of = moved, .arg = &ten},
      {.name = "many", .operands = "x", .law = "...->...", .flops = 30000},
      {.name = "many_of", .operands = "x", .law = "...->...", .flops_of = per_point, .arg = &many}};
  int64_t t[COUNT_OF(rows)][2];
  heddle_session *s = heddle_session_new();
  REQUIRE(add_all(s, rows, COUNT_OF(rows)));
  heddle_machine *m = heddle_machine_load(s, "dgx-2");
  for (size_t k = 0; k < COUNT_OF(rows); k++)
    for (int split = 0; split < 2; split++) {
      char text[256];
      const int n = snprintf(text, sizeof text,
                             "main @main(%%x: f32[4096,8192]) -> (f32[4096,8192]) {\n"
                             "  %%y = %s %%x\n  return %%y\n}\n",
                             rows[k].name);
      heddle_plan *b =
          heddle_plan_make(heddle_program_parse(s, "cost", text, (size_t)n), split ? "dp=4" : "dp=1", NULL);
      heddle_result *r = heddle_result_run(heddle_plan_apply(b), m, NULL);
      REQUIRE(r);
      t[k][split] = heddle_result_time_ps(r);
    }
  for (int k = 1; k < 3; k++) CHECK(t[k][0] == t[0][0] && t[k][1] == t[0][1]);
  CHECK(t[5][0] == t[4][0] && t[5][1] == t[4][1] && t[4][0] > 10 * t[0][0]); // computation decides
  CHECK(t[0][1] < t[0][0] && t[3][0] > 9 * t[0][0] && t[3][0] < 10 * t[0][0]);
  heddle_session_free(s);
}

// ---- what is refused ---------------------------------------------------------------------------------------
TEST(operators_that_cannot_be_registered) {
#define ROW(...)                                                                                             \
  { .operands = "x, w", .law = "mk,kn->mn", __VA_ARGS__ }
  static const heddle_operator_row rows[] = {
      {.operands = "x", .law = "...->..."},
      {.name = "Fused", .operands = "x", .law = "...->..."},
      {.name = "matmul", .operands = "x, w", .law = "mk,kn->mn"},
      {.name = "taken", .operands = "x", .law = "...->..."},
      {.name = "none", .law = "->a"},
      {.name = "op", .operands = "x, x", .law = "m,m->m"},
      {.name = "op", .operands = "x; w", .law = "m,m->m"},
      {.name = "op", .operands = "d_x", .law = "m->m"},
      {.name = "op", .operands = "x"},
      {.name = "op", .operands = "x", .law = "mk,kn->mn"},
      {.name = "op", .operands = "x", .law = "m->m,m"},
      {.name = "op", .operands = "x", .law = "m->mn"},
      {.name = "op", .operands = "x", .law = "mM->m"},
      {.name = "op", .operands = "x", .law = "m1->m"},
      {.name = "op", .operands = "x", .law = "m(2->m"},
      {.name = "op", .operands = "x", .law = "m(1h)->mh"},
      {.name = "op", .operands = "x", .law = "m(gh)->mh"},
      {.name = "op", .operands = "x", .law = "m->...m"},
      ROW(.name = "op", .types = "F,F,F->F"),
      ROW(.name = "op", .types = "F->G"),
      ROW(.name = "op", .types = "f23->f32"),
      ROW(.name = "op", .types = "F"),
      ROW(.name = "op", .attributes = "epsilon=1"),
      ROW(.name = "op", .attributes = "eps"),
      ROW(.name = "op", .attributes = "eps=small"),
      ROW(.name = "op", .attributes = "mode?"),
      ROW(.name = "op", .attributes = "axes=1"),
      ROW(.name = "op", .linear = "ex"),
      ROW(.name = "op", .linear = "eee"),
      ROW(.name = "op", .reduction = "mean"),
      ROW(.name = "op", .gradient = "%d_x = matmull %d_y, %w"),
      ROW(.name = "op", .gradient = "%d_x = matmul %d_y, %w"),
      ROW(.name = "op", .gradient = "%d_x = mul %d_y, %z\n%d_w = none"),
      ROW(.name = "op", .gradient = "%d_x = none\n%d_x = mul %d_y, %x"),
      ROW(.name = "op", .gradient = "%d_x = none\n%d_w = mul %d_y"),
      ROW(.name = "op", .gradient = "%d_x = none\n%d_w, %t = mul %d_y, %w"),
      ROW(.name = "op", .gradient = "%d_x = none\n%d_w = gelu %d_y {eps=1}"),
      ROW(.name = "op", .gradient = "%d_x = none\n%d_w = gelu %d_y {approx}"),
      ROW(.name = "op", .gradient = "%d_x = none\n%d_w = all_reduce %d_y"),
      ROW(.name = "op", .gradient = "%d_x = none\n%d_w = gelu %d_y, "),
      ROW(.name = "op", .gradient = "%d_x = none\nreturn %d_y"),
  };
#undef ROW
  heddle_session *s = heddle_session_new();
  const heddle_operator_row taken = {.name = "taken", .operands = "x", .law = "...->..."};
  REQUIRE(add_all(s, &taken, 1));
  for (size_t k = 0; k < COUNT_OF(rows); k++)
    CHECK_MSG(!heddle_operator_register(s, &rows[k]), "row %zu is taken", k);
  CHECK_GOLDEN("op/own_refused.txt", heddle_session_messages(s));
  heddle_session_clear(s);
  const heddle_operator_row op = {
      .name = "op", .operands = "x", .law = "...->..."}; // none of them has left a name
  CHECK(add_all(s, &op, 1) && heddle_docs_operator(s, "op", HEDDLE_TEXT));
  heddle_session_free(s);
}

TEST(operators_are_of_one_session) {
  const heddle_operator_row one = {.name = "mine", .operands = "x", .law = "ab->ab"},
                            other = {.name = "mine", .operands = "x", .law = "abc->cba"};
  heddle_session *s = heddle_session_new(), *t = heddle_session_new(), *u = heddle_session_new();
  CHECK(heddle_operator_register(s, &one) && heddle_operator_register(t, &other));
  const char *text = "main @main(%x: f32[2,3]) -> (f32[2,3]) {\n  %y = mine %x\n  return %y\n}\n";
  CHECK(heddle_program_parse(s, "p", text, strlen(text)));
  CHECK(!heddle_program_parse(t, "p", text, strlen(text)) &&
        strstr(heddle_session_messages(t), "operand 1 has 2"));
  CHECK(!heddle_program_parse(u, "p", text, strlen(text)) &&
        strstr(heddle_session_messages(u), "unknown operator"));
  heddle_session_free(s);
  text = "main @main(%x: f32[2,3,4]) -> (f32[4,3,2]) {\n  %y = mine %x\n  return %y\n}\n";
  CHECK(heddle_program_parse(t, "q", text, strlen(text)));
  heddle_session_free(t);
  heddle_session_free(u);
}

TEST(operators_are_256_at_most) {
  for (int round = 0; round < 2; round++) {
    heddle_session *s = heddle_session_new();
    char name[16];
    const heddle_operator_row row = {.name = name, .operands = "x", .law = "...->..."};
    for (int k = 0; k < 256; k++) {
      snprintf(name, sizeof name, "n%d", k);
      REQUIRE(heddle_operator_register(s, &row));
    }
    strcpy(name, "more");
    CHECK(!heddle_operator_register(s, &row));
    CHECK_STR(heddle_session_messages(s),
              "error[E0901]: more: more than 256 operators from outside in one process\n");
    heddle_session_free(s);
  }
}

static void *session_of_its_own(void *arg) {
  int *good = arg;
  for (int round = 0; round < 8; round++) {
    heddle_session *s = heddle_session_new();
    heddle_program *p = NULL;
    if (add_all(s, copies, COUNT_OF(copies)) && (p = network(s, "my_", "f32")))
      *good += time_of(p, heddle_machine_load(s, "dgx-2"), "tp=2") > 0;
    heddle_session_free(s);
  }
  return NULL;
}

TEST(operators_of_sessions_on_several_threads) {
  pthread_t thread[3];
  int good[COUNT_OF(thread)] = {0};
  for (size_t k = 0; k < COUNT_OF(thread); k++)
    REQUIRE(!pthread_create(&thread[k], NULL, session_of_its_own, &good[k]));
  for (size_t k = 0; k < COUNT_OF(thread); k++) pthread_join(thread[k], NULL);
  for (size_t k = 0; k < COUNT_OF(thread); k++) CHECK_EQ_I64(good[k], 8);
}
