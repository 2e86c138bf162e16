// test_arena_threads.c - blocks of arenas that a thread keeps, and the large pages that it cuts them from.
#include "base/base.h"
#include "test.h"
#include <pthread.h>
#include <unistd.h>

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
static i64 resident_bytes(void) {
  long pages = 0, resident = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f && fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (f) fclose(f);
  return (i64)resident * sysconf(_SC_PAGESIZE);
}

static void *use_small_blocks(void *arg) {
  enum { LARGE = 16, SMALL = 4000, EACH = 32 };
  arena *large = arena_new(), *held[SMALL / EACH];
  for (u32 k = 0; k < LARGE; k++) arena_alloc(large, (8 << 20) - 64);
  arena_free(large);
  const i64 before = resident_bytes();
  for (u32 k = 0; k < SMALL; k++) {
    if (k % EACH == 0) memset(arena_alloc(held[k / EACH] = arena_new(), 40000), 1, 40000);
    arena *a = arena_new();
    memset(arena_alloc(a, 40000), 1, 40000);
    arena_free(a);
  }
  *(i64 *)arg = resident_bytes() - before;
  for (u32 k = 0; k < SMALL / EACH; k++) arena_free(held[k]);
  return NULL;
}

// Small blocks lie in pages of several, which are given back when all of these are free. So a thread that keeps large blocks,
// as many as it may, drops these first, and small ones are used again although one in each page is in use.
TEST(arena_uses_small_blocks_again) {
  pthread_t of; // which has kept nothing yet
  i64 more = 0;
  CHECK(!pthread_create(&of, NULL, use_small_blocks, &more));
  pthread_join(of, NULL);
  CHECK(more < 64 << 20); // 8 MB are held
}

// A thread that has taken little has what malloc gives, which puts a header before each; then blocks are cut from large
// pages, one behind the other. Blocks that are large themselves, of weights, do not count.
static void *take_little(void *arg) {
  enum { BLOCKS = 500, BYTES = 64 << 10 };
  arena *a[BLOCKS], *weights = arena_new();
  u32 *first = arg;
  for (u32 i = 0; i < 8; i++) arena_alloc(weights, 7 << 20);
  for (u32 i = 0; i < BLOCKS; i++) a[i] = arena_new();
  for (*first = 0; *first < BLOCKS - 1 && (char *)a[*first] + BYTES != (char *)a[*first + 1];) ++*first;
  arena_free(weights);
  for (u32 i = 0; i < BLOCKS; i++) arena_free(a[i]);
  return NULL;
}
void __asan_init(void)
    __attribute__((weak)); // is there where the library looks for errors; then there are no large pages
TEST(arena_takes_large_pages_late) {
  if (__asan_init) return;
  pthread_t of;
  u32 first;
  REQUIRE(!pthread_create(&of, NULL, take_little, &first));
  pthread_join(of, NULL);
  CHECK(first == 383); // 24 MB before it, one block of them the weights'
}
#endif
