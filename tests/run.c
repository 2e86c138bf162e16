// run.c - the harness behind test.h. Not for tests of the command line: those are golden files.
#include "test.h"
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SLOW_MS = 2000 };

typedef struct {
  const char *file, *name;
  int line;
  void (*run)(void);
} test;

static test *tests;
static size_t test_count, test_cap;
static const test *current;
static jmp_buf leave;
static bool failed, skipped;

void test_register(const char *file, int line, const char *name, void (*run)(void)) {
  if (test_count == test_cap) {
    test_cap = test_cap ? 2 * test_cap : 64;
    tests = realloc(tests, test_cap * sizeof *tests);
    if (!tests) abort();
  }
  tests[test_count++] = (test){file, name, line, run};
}

void test_leave(void) { longjmp(leave, 1); }

static void fail_at(const char *file, int line) {
  failed = true;
  printf("%s:%d: %s: ", file, line, current->name);
}

bool test_check(const char *file, int line, bool ok, const char *fmt, ...) {
  if (ok) return true;
  fail_at(file, line);
  va_list ap;
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  return false;
}

bool test_eq_i64(const char *file, int line, const char *what, int64_t got, int64_t want) {
  return test_check(file, line, got == want, "%s is %" PRId64 ", not %" PRId64, what, got, want);
}

bool test_close(const char *file, int line, const char *what, double got, double want, double rel) {
  bool ok = got == want || fabs(got - want) <= rel * fmax(fabs(got), fabs(want));
  return test_check(file, line, ok, "%s is %.17g, not %.17g (relative tolerance %g)", what, got, want, rel);
}

// Prints the first line in which two texts differ.
static void print_difference(const char *got, const char *want) {
  int line = 1;
  const char *g = got, *w = want;
  for (size_t i = 0; got[i] && got[i] == want[i]; i++)
    if (got[i] == '\n') line++, g = got + i + 1, w = want + i + 1;
  printf("  line %d\n  got:  %.*s\n  want: %.*s\n", line, (int)strcspn(g, "\n"), g, (int)strcspn(w, "\n"), w);
}

bool test_str(const char *file, int line, const char *what, const char *got, const char *want) {
  if (got && want && !strcmp(got, want)) return true;
  fail_at(file, line);
  printf("%s is not what it should be\n", what);
  print_difference(got ? got : "(null)", want ? want : "(null)");
  return false;
}

void test_skip(const char *fmt, ...) {
  va_list ap;
  printf("skipped: %s: ", current->name);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  skipped = true;
  test_leave();
}

// ---- golden files and data ----------------------------------------------------------------------------

static char *read_text(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  size_t n = 0, cap = 1 << 16;
  char *s = malloc(cap);
  for (size_t got; s && (got = fread(s + n, 1, cap - n - 1, f)) > 0;) {
    n += got;
    if (cap - n < 2) s = realloc(s, cap *= 2);
  }
  fclose(f);
  if (!s) abort();
  s[n] = 0;
  return s;
}

static bool write_text(const char *path, const char *text) {
  char dir[1024];
  for (size_t i = 1; path[i] && i < sizeof dir; i++) {
    if (path[i] != '/') continue;
    snprintf(dir, sizeof dir, "%.*s", (int)i, path);
    mkdir(dir, 0777);
  }
  FILE *f = fopen(path, "wb");
  if (!f) return false;
  bool ok = fputs(text, f) >= 0;
  return !fclose(f) && ok;
}

bool test_golden(const char *file, int line, const char *path, const char *text) {
  char want_path[1024], got_path[1024];
  snprintf(want_path, sizeof want_path, "tests/golden/%s", path);
  snprintf(got_path, sizeof got_path, "%s/golden/%s", test_build(), path);
  const char *bless = getenv("HEDDLE_BLESS");
  if (bless && !strcmp(bless, "1"))
    return test_check(file, line, write_text(want_path, text), "cannot write %s", want_path);
  char *want = read_text(want_path);
  bool same = want && !strcmp(want, text);
  if (!same) {
    fail_at(file, line);
    write_text(got_path, text);
    printf("%s %s; HEDDLE_BLESS=1 accepts %s\n", want_path, want ? "differs" : "is missing", got_path);
    if (want) print_difference(text, want);
  }
  free(want);
  return same;
}

const char *test_data(const char *path) {
  static char buf[4][1024];
  static unsigned turn;
  const char *root = getenv("HEDDLE_DATA");
  char *s = buf[turn++ % 4];
  snprintf(s, sizeof *buf, "%s/%s", root ? root : "../shared/data", path);
  if (access(s, R_OK)) test_skip("no test data %s (HEDDLE_DATA says where it is)", s);
  return s;
}

const char *test_build(void) {
  const char *b = getenv("BUILD");
  return b ? b : "build";
}

static uint32_t percent(void) {
  const char *cases = getenv("CASES");
  return cases && atoi(cases) > 0 && atoi(cases) < 100 ? (uint32_t)atoi(cases) : 100;
}

uint32_t test_cases(uint32_t n) {
  const uint32_t some = (uint32_t)((uint64_t)n * percent() / 100);
  return some || !n ? some : 1;
}

uint32_t test_step(void) { return test_all_cases() ? 1 : 4; }

bool test_all_cases(void) { return percent() == 100; }

// ---- running ------------------------------------------------------------------------------------------

// What is freed is kept from being used again for 32 MiB, not 256: pages that are new each time are a third of the time.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "quarantine_size_mb=32"; }

// An assert that fails must say in which test: the rest of the run is lost.
static void on_abort(int signal_number) {
  (void)signal_number;
  static const char text[] = ": this test aborted\n";
  if (write(1, current->name, strlen(current->name)) < 0 || write(1, text, sizeof text - 1) < 0) _exit(1);
}

static int by_place(const void *a, const void *b) {
  const test *x = a, *y = b;
  int c = strcmp(x->file, y->file);
  return c ? c : x->line - y->line;
}

static bool wanted(const test *t, int n, char **prefix) {
  for (int i = 0; i < n; i++)
    if (!strncmp(t->name, prefix[i], strlen(prefix[i]))) return true;
  return n == 0;
}

// A program whose name is that of a file of tests/prop runs the tests of that file alone.
static void keep_file(const char *program) {
  const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
  char path[1024];
  snprintf(path, sizeof path, "tests/prop/%s.c", name);
  size_t n = 0;
  for (size_t i = 0; i < test_count; i++)
    if (!strcmp(tests[i].file, path)) tests[n++] = tests[i];
  if (n) test_count = n;
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// $PART, "K/N": of every N files of tests the Kth. Tests of one file may share a folder, so they stay together.
static bool read_part(unsigned *k, unsigned *n) {
  const char *part = getenv("PART");
  *k = *n = 1;
  return !part || (sscanf(part, "%u/%u", k, n) == 2 && *k >= 1 && *k <= *n);
}

int main(int argc, char **argv) {
  int count[3] = {0}; // passed, failed, skipped
  unsigned part, parts;
  volatile unsigned file = 0; // setjmp is in the loop
  if (!read_part(&part, &parts)) return fputs("PART is not K/N\n", stderr), 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGABRT, on_abort);
  keep_file(argv[0]);
  qsort(tests, test_count, sizeof *tests, by_place);
  for (size_t i = 0; i < test_count; i++) {
    if (i && strcmp(tests[i].file, tests[i - 1].file) != 0) file++;
    if (file % parts != part - 1 || !wanted(&tests[i], argc - 1, argv + 1)) continue;
    current = &tests[i];
    failed = skipped = false;
    int64_t begin = now_ms();
    if (!setjmp(leave)) tests[i].run();
    count[failed ? 1 : skipped ? 2 : 0]++;
    if (now_ms() - begin > SLOW_MS) printf("slow: %s: %" PRId64 " ms\n", current->name, now_ms() - begin);
  }
  free(tests);
  printf("%d passed, %d failed, %d skipped\n", count[0], count[1], count[2]);
  return count[1] > 0;
}
