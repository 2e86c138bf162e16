// test.h - the test harness: TEST(name) { CHECK(...); } and nothing to register by hand.
//
// A test that fails a CHECK goes on; REQUIRE and SKIP leave the test at once. A program of tests takes name
// prefixes as arguments, prints failures and skips, and ends with 'N passed, N failed, N skipped'. Programs
// run in the root of the repository. Tests of one program run one after the other, in order of file and line.
#ifndef HEDDLE_TEST_H
#define HEDDLE_TEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TEST_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TEST_PRINTF(f, a)
#endif

#define TEST(name)                                                                                           \
  static void test_##name(void);                                                                             \
  __attribute__((constructor)) static void test_register_##name(void) {                                      \
    test_register(__FILE__, __LINE__, #name, test_##name);                                                   \
  }                                                                                                          \
  static void test_##name(void)

// Each yields whether it held.
#define CHECK(cond)                 test_check(__FILE__, __LINE__, (cond), "%s", #cond)
#define CHECK_MSG(cond, ...)        test_check(__FILE__, __LINE__, (cond), __VA_ARGS__)
#define CHECK_EQ_I64(got, want)     test_eq_i64(__FILE__, __LINE__, #got, (got), (want))
#define CHECK_STR(got, want)        test_str(__FILE__, __LINE__, #got, (got), (want))
#define CHECK_CLOSE(got, want, rel) test_close(__FILE__, __LINE__, #got, (got), (want), (rel))
#define CHECK_GOLDEN(path, text)    test_golden(__FILE__, __LINE__, (path), (text))
#define REQUIRE(cond)               ((void)(CHECK(cond) || (test_leave(), 0)))
#define SKIP(...)                   test_skip(__VA_ARGS__)

void test_register(const char *file, int line, const char *name, void (*run)(void));
bool test_check(const char *file, int line, bool ok, const char *fmt, ...) TEST_PRINTF(4, 5);
bool test_eq_i64(const char *file, int line, const char *what, int64_t got, int64_t want);
bool test_str(const char *file, int line, const char *what, const char *got, const char *want);
bool test_close(const char *file, int line, const char *what, double got, double want, double rel);
void test_skip(const char *fmt, ...) TEST_PRINTF(1, 2);
void test_leave(void);

// Compares with tests/golden/PATH. HEDDLE_BLESS=1 writes the file instead. On a difference, what was got lies
// in build/golden/PATH and the first line that differs is shown.
bool test_golden(const char *file, int line, const char *path, const char *text);

// The path of a file or folder of the optional test data ($HEDDLE_DATA, by default ../shared/data). Skips the
// test if it is not there. Valid until the next call but three.
const char *test_data(const char *path);

// Of N random cases as many as are to be tried: all, or $CASES percent of them, one at least. Not all may have every
// choice: what counts them asks test_all_cases() first.
uint32_t test_cases(uint32_t n);
// Of cases that are listed every one is tried (1), or with $CASES every fourth, from the first: the step of the loop.
uint32_t test_step(void);
bool test_all_cases(void);

// The folder of the build under test ($BUILD, by default build), for programs that run others.
const char *test_build(void);
#endif
