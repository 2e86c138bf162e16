// test_draft.c - plans written by a program (heddle.h): the walk over operators, and drafts that are wrong. That the
// plans of examples/plans.c compute what the model computes is tested where the example runs.
#include "base/base.h"
#include "heddle.h"
#include "test.h"

static const heddle_load_options small = {.batch = 8, .seq = 16, .loss = true};
static const char model[] = "gpt2:layers=2,hidden=32,heads=2,vocab=128";

TEST(draft_walks_over_operators) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_operator op;
  heddle_operand x;
  const uint32_t n = heddle_program_operators(p, NULL);
  u32 calls = 0, tables = 0;
  for (u32 i = 1; heddle_program_operator(p, NULL, i, &op); i++) {
    CHECK(op.number == i);
    CHECK_STR(op.function, "main");
    calls += op.calls != NULL;
    for (u32 k = 0; heddle_program_operand(p, NULL, i, k, &x); k++) {
      CHECK(x.made_by < i);
      if (x.role && !strcmp(x.name, "wte"))
        tables++, CHECK(x.ndims == 2 && x.dims[0] == 128 && x.dims[1] == 32 && !strcmp(x.role, "weight"));
    }
    CHECK(!heddle_program_operand(p, NULL, i, op.noperands, &x));
    CHECK(heddle_program_result(p, NULL, i, 0, &x) && x.made_by == i);
  }
  CHECK(calls == 2 && tables == 2);
  CHECK(!heddle_program_operator(p, NULL, n + 1, &op) && !heddle_program_operator(p, NULL, 0, &op));
  CHECK(heddle_program_operators(p, "layer") > 10);
  CHECK(heddle_program_operator(p, "layer", 1, &op) && heddle_program_operand(p, "layer", 1, 0, &x) &&
        !x.role);
  CHECK(heddle_program_operators(p, "nothing") == 0 && !heddle_program_operator(p, "nothing", 1, &op));
  CHECK(heddle_session_errors(s) == 0);
  heddle_session_free(s);
}

// On two devices, each with half of the batch.
static heddle_draft *halves(heddle_program *p, const char *input) {
  heddle_draft *d = heddle_draft_new(p, "halves", &(heddle_plan_options){.train = true});
  heddle_draft_axis(d, "dp", 2);
  heddle_draft_mesh(d, "all", 0, 1, (const char *[]){"dp"});
  heddle_draft_trans_input(d, input, 0, "dp");
  heddle_draft_trans_input(d, "labels", 0, "dp");
  heddle_draft_assign(d, 1, heddle_program_operators(p, NULL), "all", NULL, 0);
  heddle_draft_order(d, 0, 'F', 0, 0);
  heddle_draft_order(d, 0, 'B', 0, 0);
  return d;
}

// It is the plan that a strategy makes, and its text reads back.
TEST(draft_is_a_plan) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_machine *m = heddle_machine_load(s, "1x2 v100");
  heddle_plan *b = heddle_draft_plan(halves(p, "tokens"));
  heddle_plan *same = heddle_plan_make(p, "dp=2", &(heddle_plan_options){.train = true});
  REQUIRE(b && same);
  CHECK_STR(heddle_plan_name(b), "halves");
  heddle_plan_on(b, m, NULL), heddle_plan_on(same, m, NULL);
  heddle_result *r = heddle_result_run(heddle_plan_apply(b), m, NULL),
                *want = heddle_result_run(heddle_plan_apply(same), m, NULL);
  REQUIRE(r && want);
  CHECK(heddle_result_time_ps(r) == heddle_result_time_ps(want));
  CHECK(heddle_result_peak_bytes(r) == heddle_result_peak_bytes(want));
  const char *text = heddle_plan_print(b);
  heddle_plan *again = heddle_plan_parse(p, "again", text, strlen(text));
  REQUIRE(again);
  CHECK_STR(heddle_plan_print(again), text);
  heddle_session_free(s);
}

TEST(draft_refuses_with_its_line) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_diagnostic x;
  CHECK(!heddle_draft_plan(halves(p, "words")));
  REQUIRE(heddle_session_diagnostic(s, 0, &x));
  CHECK_STR(x.file, "halves");
  CHECK_STR(x.message, "the model has no input `words`");
  CHECK(strstr(heddle_session_messages(s), "- {input: \"words\", dim: 0, axis: \"dp\"}"));

  heddle_session_clear(s); // an operator without a place
  heddle_draft *d = heddle_draft_new(p, "short", NULL);
  heddle_draft_axis(d, "dp", 2);
  heddle_draft_mesh(d, "all", 0, 1, (const char *[]){"dp"});
  CHECK(heddle_draft_assign(d, 1, heddle_program_operators(p, NULL) - 1, "all", NULL, 0));
  CHECK(heddle_draft_order(d, 0, 'F', 0, 0));
  CHECK(!heddle_draft_plan(d) && heddle_session_errors(s) == 1);
  REQUIRE(heddle_session_diagnostic(s, 0, &x));
  CHECK_STR(x.file, "short");
  CHECK(strstr(x.message, "cross_entropy, main:") && strstr(x.message, "is in no segment"));
  CHECK(strstr(heddle_session_messages(s), "- {from: 1, to: ") &&
        strstr(heddle_session_messages(s), "hint: from: 1, to: "));

  heddle_session_clear(s); // operators have other numbers once they are co-sharded
  heddle_operator op;
  heddle_draft *parts = halves(p, "tokens");
  REQUIRE(heddle_program_operator(p, "layer", 2, &op));
  CHECK(heddle_draft_trans(parts, &op, 1, 1, "dp") && heddle_draft_set(parts, "coshard", "2"));
  CHECK(!heddle_draft_plan(parts));
  REQUIRE(heddle_session_diagnostic(s, 0, &x));
  CHECK(strstr(x.message, "coshard and attention=fused rewrite the functions"));

  heddle_session_clear(s); // what is no task; and nothing after it
  CHECK(!heddle_draft_order(d, 0, 'X', 0, 0));
  REQUIRE(heddle_session_diagnostic(s, 0, &x));
  CHECK_STR(x.message, "short: a task is 'F', 'B', 'I' or 'W'");
  CHECK(!heddle_draft_axis(d, "tp", 2) && !heddle_draft_plan(d) && heddle_session_errors(s) == 1);
  CHECK(!heddle_draft_new(NULL, NULL, NULL) && !heddle_draft_plan(NULL) && !heddle_draft_set(NULL, "a", "b"));
  heddle_session_clear(s);
  heddle_draft *two = halves(p, "tokens"); // a key is one line
  CHECK(!heddle_draft_set(two, "rest", "{states:\n [dp]}"));
  CHECK(
      !heddle_draft_trans(halves(p, "tokens"), &(heddle_operator){.op = NULL}, 0, 0, "dp")); // not filled in
  heddle_session_free(s);
}

// What is tried twice is told once, at the line that asks for what cannot be.
TEST(draft_that_is_tried_twice_is_told_once) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_draft *d = heddle_draft_new(p, "one", &(heddle_plan_options){.train = true});
  heddle_draft_axis(d, "dp", 2);
  heddle_draft_mesh(d, "all", 0, 1, (const char *[]){"dp"});
  heddle_draft_assign(d, 1, heddle_program_operators(p, NULL), "all", NULL, 0);
  heddle_draft_order(d, 0, 'F', 0, 0), heddle_draft_order(d, 0, 'B', 0, 0);
  heddle_draft_set(d, "sum-stream", "dp");
  heddle_plan *b = heddle_draft_plan(d);
  CHECK(b && !heddle_plan_apply(b) && !heddle_check_run(b, NULL));
  heddle_diagnostic x;
  REQUIRE(heddle_session_diagnostic(s, 0, &x));
  CHECK_STR(x.file, "one");
  const char *text = heddle_session_messages(s), *one = strstr(text, "no sum of gradients can run beside");
  CHECK_MSG(one && strstr(text, "| sum-stream: dp") && !strstr(one + 1, "no sum of gradients"), "%s", text);
  heddle_session_free(s);
}
