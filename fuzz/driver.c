// driver.c - a short run of a fuzzer as part of the tests, with any compiler: the corpus, then mutations of
// it. Not a fuzzer by coverage: that is what `make fuzz` is for.
//
// The same seed gives the same inputs everywhere. What crashes or takes longer than ten seconds is left in
// $BUILD/crash-NAME.  Usage: NAME [SECONDS [FILE...]]; with files only these are run.
#include "base/base.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

enum { INPUT_MAX = 1 << 16, HANG_SECONDS = 10 };

typedef struct {
  u8 *data;
  size_t size;
} input;

static const input *running;
static char crash_path[1024];

// Called from signal handlers: system calls only.
static void save_input(void) {
  if (!running) return;
  int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  bool saved = fd >= 0 && write(fd, running->data, running->size) == (ssize_t)running->size;
  running = NULL;
  if (saved && write(1, crash_path, strlen(crash_path)) > 0 && write(1, ": the input\n", 12) > 0) close(fd);
}

static void on_signal(int number) {
  save_input();
  signal(number, SIG_DFL);
  raise(number);
}

static void run(const u8 *data, size_t size) {
  // A copy of exactly this size, so that AddressSanitizer sees a read past its end.
  input in = {base_malloc(size), size};
  if (size) memcpy(in.data, data, size);
  running = &in;
  alarm(HANG_SECONDS);
  LLVMFuzzerTestOneInput(in.data, in.size);
  running = NULL;
  free(in.data);
}

static input read_file(ctx *c, const char *path) {
  file_view f;
  input in = {NULL, 0};
  if (!file_map(c, path, &f)) return in;
  in = (input){base_malloc(f.size), f.size};
  memcpy(in.data, f.data, f.size);
  file_unmap(&f);
  return in;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// The corpus in the order of its names; the empty input if there is none.
static u32 read_corpus(ctx *c, const char *dir, input **out) {
  VEC(char *) names = {0};
  arena *a = ctx_arena(c);
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d));)
    if (e->d_name[0] != '.') *vec_push(a, &names) = arena_printf(a, "%s/%s", dir, e->d_name);
  if (d) closedir(d);
  if (names.n) qsort(names.v, names.n, sizeof *names.v, by_name);
  *out = ZNEWN(a, input, names.n + 1);
  for (u32 i = 0; i < names.n; i++) (*out)[i] = read_file(c, names.v[i]);
  return MAX(names.n, 1);
}

// One to eight changes: bytes, numbers at the borders, ranges cut, doubled or taken from another input.
static size_t mutate(u8 *buf, size_t n, const input *other, u64 *rng) {
  static const i64 border[] = {0, 1, -1, 127, 128, 255, 32767, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  if (!n)
    for (size_t want = rng_next(rng) % 32; n < want;) buf[n++] = (u8)rng_next(rng);
  for (u64 k = rng_next(rng) % 8 + 1; k--;) {
    size_t at = n ? rng_next(rng) % n : 0, len = n ? rng_next(rng) % MIN(n - at, (size_t)64) + 1 : 0;
    len = MIN(len, n - at);
    switch (rng_next(rng) % 7) {
    case 0:
      if (n) buf[at] ^= (u8)(1u << rng_next(rng) % 8);
      break;
    case 1:
      if (n) buf[at] = (u8)rng_next(rng);
      break;
    case 2:
      if (n - at >= 8) memcpy(buf + at, &border[rng_next(rng) % COUNT_OF(border)], 1u << rng_next(rng) % 4);
      break;
    case 3: n = at; break;
    case 4:
      memmove(buf + at, buf + at + len, n - at - len);
      n -= len;
      break;
    case 5:
      if (n + len > INPUT_MAX) break;
      memmove(buf + at + len, buf + at, n - at);
      n += len;
      break;
    case 6: {
      size_t from = other->size ? rng_next(rng) % other->size : 0;
      len = MIN(MIN(other->size - from, (size_t)256), INPUT_MAX - at);
      if (len) memcpy(buf + at, other->data + from, len);
      n = MAX(n, at + len);
      break;
    }
    }
  }
  return n;
}

int main(int argc, char **argv) {
  const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
  const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
  double seconds = argc > 1 ? atof(argv[1]) : 1;
  snprintf(crash_path, sizeof crash_path, "%s/crash-%s", build, name);
  static const int caught[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
  for (size_t i = 0; i < COUNT_OF(caught); i++)
    if (!__sanitizer_set_death_callback || caught[i] == SIGABRT || caught[i] == SIGALRM)
      signal(caught[i], on_signal);
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_input);

  ctx *c = ctx_new();
  for (int i = 2; i < argc; i++) {
    input in = read_file(c, argv[i]);
    run(in.data, in.size);
    free(in.data);
  }
  if (argc <= 2) {
    static u8 buf[INPUT_MAX + 256];
    input *corpus;
    const char *stem = strncmp(name, "fuzz_", 5) ? name : name + 5;
    u32 n = read_corpus(c, arena_printf(ctx_arena(c), "fuzz/corpus/%s", stem), &corpus);
    u64 rng = 1, until = clock_ns() + (u64)(seconds * 1e9);
    for (u32 i = 0; i < n; i++) run(corpus[i].data, corpus[i].size);
    while (clock_ns() < until) {
      const input *in = &corpus[rng_next(&rng) % n];
      size_t size = MIN(in->size, (size_t)INPUT_MAX);
      if (size) memcpy(buf, in->data, size);
      run(buf, mutate(buf, size, &corpus[rng_next(&rng) % n], &rng));
    }
    for (u32 i = 0; i < n; i++) free(corpus[i].data);
  }
  ctx_free(c);
  puts("1 passed, 0 failed, 0 skipped");
  return 0;
}
