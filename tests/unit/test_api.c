// test_api.c - the public interface: lifetimes, failures, diagnostics as data, and what happens at every
// allocation that fails. Not what is computed: that is tested where it is computed.
#include "base/base.h"
#include "heddle.h"
#include "test.h"
#include <stdlib.h>

static const char model[] = "mlp-xs:layers=4,hidden=32";
static const heddle_load_options small = {.batch = 16, .loss = true};

TEST(api_null_in_null_out) {
  CHECK(!heddle_program_report(NULL, HEDDLE_TEXT));
  CHECK(!heddle_plan_apply(heddle_plan_make(NULL, NULL, NULL)));
  CHECK(!heddle_result_report(heddle_result_run(NULL, NULL, NULL), HEDDLE_JSON));
  CHECK(!heddle_search_plan(heddle_search_run(NULL, NULL, NULL), 0));
  CHECK(!heddle_search_why(NULL, "tp=2", HEDDLE_TEXT));
  CHECK(!heddle_check_run(NULL, NULL));
  CHECK(!heddle_tensors_eval(NULL, NULL, false));
  heddle_program_free(NULL);
  heddle_session_free(NULL);
}

TEST(api_handles_are_freed_in_any_order) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_machine *m = heddle_machine_load(s, "laptop");
  heddle_plan *b = heddle_plan_make(p, "dp=2 pp=2 mb=2", &(heddle_plan_options){.train = true});
  heddle_program *d = heddle_plan_apply(b);
  heddle_result *r = heddle_result_run(d, m, NULL);
  REQUIRE(r);
  heddle_program_free(d);
  heddle_machine_free(m);
  heddle_program_free(p);
  CHECK(strstr(heddle_result_report(r, HEDDLE_TEXT), "dp=2 tp=1 pp=2 mb=2"));
  CHECK(heddle_plan_apply(b));
  heddle_plan_free(b);
  CHECK(heddle_result_time_ps(r) > 0);
  CHECK(heddle_result_run(heddle_program_load(s, model, NULL), heddle_machine_load(s, "laptop"), NULL));
  heddle_session_free(s); // and all that is left in it
}

// A question that is refused leaves the search as it was.
TEST(api_questions_about_a_search) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  const heddle_search_options o = {.train = true, .top = 1};
  heddle_search *f = heddle_search_run(p, heddle_machine_load(s, "laptop"), &o);
  REQUIRE(f);
  const char *why = heddle_search_why(f, "pp=2", HEDDLE_TEXT);
  REQUIRE(why);
  CHECK(strstr(why, " plans with pp=2") && strstr(why, "what would help"));
  CHECK(!heddle_search_why(f, "pp=3", HEDDLE_TEXT));
  CHECK(strstr(heddle_session_messages(s), "--why:1:1"));
  CHECK(!heddle_search_why(f, NULL, HEDDLE_TEXT));
  const char *plain = heddle_search_report(f, HEDDLE_JSON);
  const char *none = heddle_search_answer(f, NULL, HEDDLE_JSON);
  REQUIRE(plain && none);
  CHECK_STR(none, plain);
  heddle_session_free(s);
}

// Files are compared in tests/prop/parts.c; here is what parts and merged searches refuse.
TEST(api_parts_of_a_search) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_machine *m = heddle_machine_load(s, "laptop");
  heddle_search_options o = {.train = true, .strategy = "mb=1", .part = 3, .parts = 2};
  CHECK(!heddle_search_run(p, m, &o) && strstr(heddle_session_messages(s), "part 3 of 2"));
  heddle_session_clear(s);
  o.part = 0;
  CHECK(!heddle_search_run(p, m, &o));
  o.part = o.parts = 1;
  heddle_session_clear(s);
  heddle_search *f = heddle_search_run(p, m, &o);
  REQUIRE(f);
  CHECK(heddle_search_plan(f, 0) && !heddle_search_why(f, "tp=2", HEDDLE_TEXT));
  const char *path = "/tmp/heddle-api-part.json";
  CHECK(heddle_session_write(s, path, heddle_search_part(f)));
  heddle_session_clear(s);
  heddle_search *all = heddle_search_merge(s, 1, &path, 0);
  CHECK(all && heddle_search_count(all) == heddle_search_count(f));
  CHECK(!heddle_search_plan(all, 0) && !heddle_search_part(all) &&
        !heddle_search_why(all, "tp=2", HEDDLE_TEXT));
  CHECK(heddle_session_errors(s) == 3 && !heddle_search_merge(s, 0, NULL, 0));
  remove(path);
  heddle_session_free(s);
}

TEST(api_diagnostics_as_data) {
  heddle_session *s = heddle_session_new();
  const char text[] = "func @main(%x: f32[4,8]) -> (f32[4,8]) {\n  %y = rleu %x\n  return %y\n}\n";
  heddle_diagnostic d;
  CHECK(!heddle_session_diagnostic(s, 0, &d));
  CHECK_STR(heddle_session_messages(s), "");
  CHECK(!heddle_program_parse(s, "mine", text, sizeof text - 1));
  REQUIRE(heddle_session_diagnostic(s, 0, &d));
  CHECK_STR(d.code, "E0202");
  CHECK_STR(d.file, "mine");
  CHECK_EQ_I64(d.line, 2);
  CHECK_EQ_I64(d.column, 8);
  CHECK(d.error && heddle_session_errors(s) == 1);
  CHECK(strstr(heddle_docs_diagnostic(s, d.code, HEDDLE_TEXT), "E0202"));
  heddle_session_clear(s);
  CHECK_EQ_I64(heddle_session_errors(s), 0);
  int64_t bytes = 0;
  CHECK(heddle_session_bytes(s, "limit", "80 GiB", &bytes) && bytes == (int64_t)80 << 30);
  CHECK(!heddle_session_bytes(s, "limit", "80 GB/s", &bytes));
  heddle_session_free(s);
}

// A search must not say of a plan what its simulation does not.
TEST(api_search_value_is_simulated_value) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_machine *m = heddle_machine_load(s, "laptop");
  heddle_search *f = heddle_search_run(p, m, &(heddle_search_options){.train = true, .threads = 2});
  REQUIRE(heddle_search_count(f) > 10);
  int64_t before = 0;
  for (uint32_t i = 0; i < heddle_search_count(f); i++) {
    heddle_plan *b = heddle_search_plan(f, i);
    heddle_result *r = heddle_result_run(heddle_plan_apply(b), m, NULL);
    CHECK_MSG(heddle_result_time_ps(r) >= before, "%s is out of order", heddle_plan_name(b));
    before = heddle_result_time_ps(r);
  }
  heddle_session_free(s);
}

TEST(api_plans_and_programs_round_trip) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_plan_options o = {.train = true, .optimizer = {.name = "adamw"}};
  heddle_plan *b = heddle_plan_make(p, "dp=2 tp=2 zero=2", &o);
  const char *text = heddle_plan_print(b);
  heddle_plan *again = heddle_plan_parse(p, "again", text, strlen(text));
  CHECK_STR(heddle_plan_print(again), text);
  const char *program = heddle_program_print(heddle_plan_apply(b));
  CHECK_STR(heddle_program_print(heddle_plan_apply(again)), program);
  heddle_program *back = heddle_program_parse(s, "back", program, strlen(program));
  CHECK_STR(heddle_program_print(back), program);
  CHECK_EQ_I64(heddle_program_ranks(back), 4);
  heddle_session_free(s);
}

TEST(api_strategies) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  heddle_choice c;
  uint32_t n = 0;
  while (heddle_choice_get(n, &c)) n++, CHECK(*c.name && *c.option && *c.about && c.argument);
  CHECK(n > 10 && heddle_choice_get(0, &c) && c.searched);
  CHECK_STR(c.name, "dp");
  CHECK_STR(c.option, "data");
  CHECK(strstr(heddle_docs_choices(s, HEDDLE_JSON), "\"recompute\""));
  CHECK_STR(heddle_plan_name(heddle_plan_make(p, NULL, NULL)), "dp=1 tp=1 pp=1");
  const char *name = heddle_plan_name(
      heddle_plan_make(p, "microbatch-size=2 data=2 pp=2 layers=1/3", &(heddle_plan_options){.train = true}));
  CHECK_STR(name, "dp=2 tp=1 pp=2 mb=4 layers=1/3");
  CHECK(!heddle_plan_make(p, "dp=2 zero=1", NULL)); // inference
  heddle_diagnostic d;
  REQUIRE(heddle_session_diagnostic(s, 0, &d));
  CHECK_STR(d.code, "E0509");
  CHECK_EQ_I64(d.column, 6);
  heddle_session_clear(s);
  heddle_machine *m = heddle_machine_load(s, "laptop");
  heddle_search_options o = {
      .strategy = "dp=1,4 tp=1 mb=2,4 zero=0 recompute=none", .train = true, .threads = 1};
  heddle_search *f = heddle_search_run(p, m, &o);
  CHECK_EQ_I64(heddle_search_count(f), 4);
  for (uint32_t i = 0; i < heddle_search_count(f); i++) { // a plan's name makes it again
    heddle_plan *b = heddle_search_plan(f, i);
    heddle_plan *again = heddle_plan_make(p, heddle_plan_name(b), &(heddle_plan_options){.train = true});
    CHECK_STR(heddle_plan_print(again), heddle_plan_print(b));
  }
  o.strategy = "dp=3";
  CHECK(!heddle_search_run(p, m, &o));
  heddle_session_free(s);
}

TEST(api_schedules) {
  heddle_session *s = heddle_session_new();
  heddle_schedule_options o = {.places = 2, .microbatches = 2};
  heddle_schedule *x = heddle_schedule_load(s, "Schedule1F1B", &o);
  CHECK_STR(heddle_schedule_print(x), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(strstr(heddle_schedule_report(x, true, HEDDLE_TEXT), "place 1  .0aA1bB..\n"));
  o.inference = true;
  CHECK_STR(heddle_schedule_print(heddle_schedule_load(s, "gpipe", &o)), "0F0,0F1\n1F0,1F1\n");
  heddle_schedule *v = heddle_schedule_load(s, "examples/zbv.csv", NULL);
  CHECK(strstr(heddle_schedule_report(v, false, HEDDLE_JSON), "\"time\": 51"));
  CHECK_EQ_I64(heddle_session_errors(s), 0);
  heddle_schedule_free(x);
  CHECK(!heddle_schedule_load(s, "gpipe", NULL) && !heddle_schedule_load(NULL, "gpipe", &o));
  CHECK(!heddle_schedule_load(s, "examples/zbv.csv", &o)); // other figures
  heddle_program *p = heddle_program_load(s, "mlp-xs:layers=8,hidden=16", &small);
  const char *line = "pp=4 v=2 mb=8 schedule=examples/zbv.csv";
  heddle_plan *b = heddle_plan_make(p, line, &(heddle_plan_options){.train = true});
  CHECK_STR(heddle_plan_name(b), "dp=1 tp=1 pp=4 mb=8 v=2 schedule=examples/zbv.csv");
  CHECK(heddle_check_passed(heddle_check_run(b, NULL)));
  heddle_session_free(s);
}

TEST(api_tensors_go_through_files) {
  heddle_session *s = heddle_session_new();
  heddle_program *p = heddle_program_load(s, model, &small);
  char folder[256], command[300];
  snprintf(folder, sizeof folder, "%s/test_api_XXXXXX", test_build());
  REQUIRE(mkdtemp(folder));
  heddle_tensors *in = heddle_tensors_random(p, 3);
  CHECK(heddle_tensors_write(in, folder));
  heddle_tensors *x = heddle_tensors_eval(p, in, false),
                 *y = heddle_tensors_eval(p, heddle_tensors_read(p, folder), false);
  heddle_tensor a = {0}, b = {0};
  REQUIRE(heddle_tensors_get(x, 0, &a) && heddle_tensors_get(y, 0, &b));
  REQUIRE(a.data && b.data);
  CHECK(a.ndims == 0 && !memcmp(a.data, b.data, sizeof(float)));
  CHECK(!heddle_tensors_get(x, heddle_tensors_count(x), &a));
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
  heddle_session_free(s);
}

// ---- out of memory -------------------------------------------------------------------------------------
// What inner layers held when memory ran out is lost, as heddle.h says.
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static bool everything(void) {
  heddle_session *s = heddle_session_new();
  if (!s) return false;
  heddle_program *p =
      heddle_program_load(s, "mlp-xs:layers=2,hidden=8", &(heddle_load_options){.batch = 4, .loss = true});
  heddle_machine *m = heddle_machine_load(s, "laptop");
  heddle_plan *b = heddle_plan_make(p, "dp=2", &(heddle_plan_options){.train = true});
  heddle_result *r = heddle_result_run(heddle_plan_apply(b), m, NULL);
  heddle_check *k = heddle_check_run(b, NULL);
  bool ok =
      heddle_program_report(p, HEDDLE_JSON) && heddle_result_report(r, HEDDLE_TEXT) && heddle_check_passed(k);
  ok = ok && heddle_docs_patterns(s, "matmul", &(heddle_pattern_options){.machine = m}, HEDDLE_TEXT);
  const char *said = heddle_session_messages(s);
  CHECK_MSG(ok || strstr(said, "out of memory"), "%s", said);
  heddle_session_free(s);
  return ok;
}

TEST(api_every_failing_allocation) {
  if (__lsan_disable) __lsan_disable();
  i64 n = 1;
  for (bool ok = false; !ok && n < 5000; n++) {
    base_fail_after = n;
    ok = everything();
    base_fail_after = 0;
  }
  if (__lsan_enable) __lsan_enable();
  CHECK_MSG(n > 20 && n < 5000, "%lld allocations", (long long)n);
}
