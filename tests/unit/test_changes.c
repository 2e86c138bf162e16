// test_changes.c - what users say in words: changes, steps, names with stars; and where an error points.
#include "diagnose/diagnose.h"
#include "test.h"

TEST(changes_steps) {
  ctx *c = ctx_new();
  number_set s;
  REQUIRE(number_set_parse(c, ctx_arena(c), NULL, &s));
  CHECK(!s.n && number_set_has(&s, 0) && number_set_has(&s, 77));
  REQUIRE(number_set_parse(c, ctx_arena(c), " 3-5,8 ", &s));
  for (u32 k = 0; k < 12; k++) CHECK(number_set_has(&s, k) == ((k >= 3 && k <= 5) || k == 8));
  static const char *const bad[] = {"", "3-", "5-3", "3;4", "-1", "3,", "4294967295", "3 4"};
  for (u32 k = 0; k < COUNT_OF(bad); k++) {
    const u32 before = diag_count(c);
    CHECK_MSG(!number_set_parse(c, ctx_arena(c), bad[k], &s) && diag_count(c) == before + 1, "'%s'", bad[k]);
  }
  ctx_free(c);
}

TEST(changes_forms) {
  ctx *c = ctx_new();
  job_change x;
  static const struct {
    const char *text;
    u32 nterms;
    change_how how;
    i64 ps;
    double scale;
  } row[] = {{"worker 12 = ideal", 1, CHANGE_IDEAL, 0, 0},
             {"stage 3=median", 1, CHANGE_MEDIAN, 0, 0},
             {"rank 3-5,9 matmul x 0.5", 2, CHANGE_SCALE, 0, 0.5},
             {"host = 0", 1, CHANGE_TIME, 0, 0},
             {"all x 2", 0, CHANGE_SCALE, 0, 2},
             {"\"void at::native::x = 3\" = 1.5us", 1, CHANGE_TIME, 1500000, 0},
             {"  microbatch 0   data 1 nccl*  =  2 ms ", 3, CHANGE_TIME, 2000000000, 0}};
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    const bool ok = changes_parse(c, ctx_arena(c), 1, &row[k].text, &x);
    CHECK_MSG(ok, "%s", diag_render(c, ctx_arena(c)));
    REQUIRE(ok);
    CHECK(x.nterms == row[k].nterms && x.how == row[k].how && x.ps == row[k].ps && x.scale == row[k].scale);
  }
  CHECK(x.term[0].what == WHAT_MICROBATCH && x.term[1].what == WHAT_DATA && x.term[2].what == WHAT_NAME);
  CHECK_STR(x.term[2].name, "nccl*");
  ctx_free(c);
}

TEST(changes_errors_point_at_their_place) {
  static const struct {
    const char *text;
    u32 col;
  } row[] = {{"worker = ideal", 8},
             {"worker 3 = ideel", 12},
             {"stage 1", 8},
             {"", 1},
             {"x 3", 1},
             {"a x", 4},
             {"a x -1", 5},
             {"a x 1e9", 5},
             {"a = 3", 5},
             {"a = 3 parsec", 5},
             {"a = 0 b", 5},
             {"a = nan", 5},
             {"\"a = 0", 1},
             {"rank 5-3 = 0", 6},
             {"a x 0.5 x 0.5", 9}};
  for (u32 k = 0; k < COUNT_OF(row); k++) {
    ctx *c = ctx_new();
    job_change x;
    CHECK_MSG(!changes_parse(c, ctx_arena(c), 1, &row[k].text, &x) && diag_count(c) == 1, "'%s'",
              row[k].text);
    const loc_info *at = loc_get(c, diag_get(c, 0).at);
    CHECK_MSG(at && at->col == row[k].col, "'%s': column %u", row[k].text, at ? at->col : 0);
    ctx_free(c);
  }
}

TEST(changes_names_with_stars) {
  static const struct {
    const char *pattern, *name;
    bool is;
  } row[] = {{"abc", "abc", true},    {"abc", "abcd", false},  {"a*", "abcd", true}, {"*cd", "abcd", true},
             {"a*d", "abcd", true},   {"a*c", "abcd", false},  {"*", "", true},      {"", "", true},
             {"*b*b*", "abab", true}, {"*b*b*", "aba", false}, {"a**b", "ab", true}, {"", "a", false}};
  for (u32 k = 0; k < COUNT_OF(row); k++)
    CHECK_MSG(change_name_matches(row[k].pattern, row[k].name) == row[k].is, "%s %s", row[k].pattern,
              row[k].name);
}
