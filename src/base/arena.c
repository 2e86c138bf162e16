// arena.c - memory that is given back all at once, growable arrays in it, and what happens when there is
// no more. Not a general allocator: nothing is freed singly.
//
// Idea: a stack of blocks, each about half of all below (64 KiB to 8 MiB, or as large as one request needs). The
// arena itself lives in its first block, so that making one is a single allocation that either works or
// leaves nothing behind. A release keeps one block as a spare: a scratch loop that crosses a block boundary
// on every round does not go to the system on every round.
//
// Under AddressSanitizer the unused part of every block is poisoned and allocations are kept apart, so that
// reads past the end of an arena allocation, or after its release, are caught like those of malloc.
//
// Every thread keeps some freed blocks for its next arenas: a search makes and frees arenas of the same sizes
// thousands of times, and fresh pages from the system cost more than all that is written to them. (Not under
// AddressSanitizer, which is to see every use after a free.) Large blocks ask for large pages, where the system has
// them for those who ask, and smaller ones are cut from stretches that are one large page each: a search has thousands
// of them, and of small pages the processor remembers too few. A thread that has taken little has none: a large page is all there from its
// first byte on, and a rank of `heddle run` is to take no more than it says.
#include "base/internal.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
enum { RED_ZONE = 16 };
#else
#define POISON(p, n)   ((void)0)
#define UNPOISON(p, n) ((void)0)
enum { RED_ZONE = 0 };
#endif

enum { ALIGN = 16, BLOCK_MIN = 64 << 10, LARGE_PAGE = 2 << 20 };
#ifdef ASAN // maps larger ones anew each time: a test of searches took twice as long
enum { BLOCK_MAX = BLOCK_MIN };
#else
enum { BLOCK_MAX = 8 << 20 };
#endif
#define ROUND_UP(n) (((n) + ALIGN - 1) & ~(size_t)(ALIGN - 1))

typedef struct { // a large page that smaller blocks are cut from; given back with the last of them
  void *page;
  atomic_size_t out; // bytes that are not given back; several threads may have blocks of one
} stretch;
typedef struct block block;
struct block {
  block *below;
  size_t size; // header included
  stretch *of; // NULL: of none
};

struct arena {
  char *at, *end; // free part of the top block
  block *top, *spare;
  size_t bytes;
};

_Thread_local jmp_buf *base_oom;
_Thread_local i64 base_fail_after;

void base_out_of_memory(size_t bytes) {
  if (base_oom) longjmp(*base_oom, 1);
  fprintf(stderr, "heddle: out of memory (%zu bytes wanted)\n", bytes);
  abort();
}

static bool must_fail(void) { return base_fail_after > 0 && --base_fail_after == 0; }

void *base_malloc(size_t bytes) {
  void *p = must_fail() ? NULL : malloc(bytes ? bytes : 1);
  if (!p) base_out_of_memory(bytes);
  return p;
}

static char *block_start(block *b) { return (char *)b + ROUND_UP(sizeof *b); }
static char *block_end(block *b) { return (char *)b + b->size; }

// ---- blocks kept by a thread, by size: 64 KiB << class ---------------------------------------------------
enum { CLASSES = 8, KEPT_MAX = 48 << 20, LITTLE = 24 << 20 };
typedef struct {
  block *top[CLASSES];
  size_t bytes;
  stretch *of; // the one at hand, and what is not cut yet
  char *at;
  size_t left;
  size_t taken; // of the system, ever, in blocks of less than a large page, up to LITTLE
  bool armed;   // given back when the thread ends
} kept_blocks;
static _Thread_local kept_blocks kept;

static void stretch_give_back(stretch *x, size_t bytes) {
  if (!bytes || atomic_fetch_sub(&x->out, bytes) != bytes) return;
  free(x->page);
  free(x);
}

static void block_give_back(block *b) {
  if (b && b->of)
    stretch_give_back(b->of, b->size);
  else
    free(b);
}

static void kept_free(void *unused) {
  (void)unused;
  for (int c = 0; c < CLASSES; c++)
    for (block *b = kept.top[c], *below; b; b = below) {
      below = b->below;
      block_give_back(b);
    }
  stretch_give_back(kept.of, kept.left);
  kept = (kept_blocks){0};
}

static pthread_key_t kept_key;
static void kept_key_make(void) { pthread_key_create(&kept_key, kept_free); }
static void kept_arm(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, kept_key_make);
  pthread_setspecific(kept_key, &kept);
  kept.armed = true;
}

void base_trim(void) {
  kept_free(NULL);
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                                                  \
    !defined(__SANITIZE_THREAD__) // whose malloc is another
  malloc_trim(0);
#endif
}

void base_zero(void *p, size_t bytes) {
#if defined(__linux__) // memory of malloc is private, so a page that is given back reads as zero
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)p, first = (at + page - 1) & -page,
                  end = (at + bytes) & -page;
  if (first < end && madvise((void *)first, end - first, MADV_DONTNEED) == 0) {
    memset(p, 0, first - at);
    memset((void *)end, 0, at + bytes - end);
    return;
  }
#endif
  memset(p, 0, bytes);
}

static int class_of(size_t size) {
  for (int c = 0; c < CLASSES; c++)
    if (size == (size_t)BLOCK_MIN << c) return c;
  return -1;
}

// Room for a block that was cut: nobody else can have its place until all of its page is free, so large blocks go first.
static void make_room(size_t size) {
  for (int c = CLASSES; c-- > 0;)
    for (block **at = &kept.top[c]; kept.bytes + size > KEPT_MAX && *at;) {
      block *x = *at;
      if (x->of) {
        at = &x->below;
        continue;
      }
      *at = x->below;
      kept.bytes -= x->size;
      free(x);
    }
}

static void block_free(block *b) {
  int c = b ? class_of(b->size) : -1;
#ifdef ASAN
  c = -1;
#endif
  if (c >= 0 && b->of && kept.bytes + b->size > KEPT_MAX) make_room(b->size);
  if (c < 0 || kept.bytes + b->size > KEPT_MAX) {
    block_give_back(b);
    return;
  }
  if (!kept.armed) kept_arm();
  b->below = kept.top[c];
  kept.top[c] = b;
  kept.bytes += b->size;
}

#if defined(MADV_HUGEPAGE) && !defined(ASAN)
static void *large_pages(size_t size) {
  void *p = NULL;
  if (must_fail() || posix_memalign(&p, LARGE_PAGE, size)) base_out_of_memory(size);
  (void)madvise(p, size, MADV_HUGEPAGE); // a system without them says no, and nothing is lost
  return p;
}

static block *cut(size_t size) {
  block *b = (block *)kept.at;
  b->size = size, b->of = kept.of;
  kept.at += size, kept.left -= size;
  return b;
}

// Of less than a large page. What the stretch at hand has left, if that is too little, is kept in smaller blocks.
static block *block_of_stretch(size_t size) {
  if (kept.left >= size) return cut(size);
  for (int c = CLASSES; c-- > 0;)
    while (kept.left >= (size_t)BLOCK_MIN << c) block_free(cut((size_t)BLOCK_MIN << c));
  void *page = large_pages(LARGE_PAGE);
  stretch *x = malloc(sizeof *x);
  if (!x) {
    free(page);
    base_out_of_memory(sizeof *x);
  }
  x->page = page;
  atomic_init(&x->out, LARGE_PAGE);
  if (!kept.armed) kept_arm();
  kept.of = x, kept.at = page, kept.left = LARGE_PAGE;
  return cut(size);
}
#endif

static block *block_from_system(size_t size, int c) {
  block *b;
#if defined(MADV_HUGEPAGE) && !defined(ASAN)
  const bool small = kept.taken < LITTLE;
  if (small && size < LARGE_PAGE) kept.taken += size;
  if (!small && size < LARGE_PAGE && c >= 0 && !base_fail_after) return block_of_stretch(size);
  b = small || size < LARGE_PAGE ? base_malloc(size) : large_pages(size);
#else
  (void)c;
  b = base_malloc(size);
#endif
  b->of = NULL;
  return b;
}

static block *block_new(size_t size) {
  int c = class_of(size);
  block *b = c >= 0 && !base_fail_after ? kept.top[c] : NULL; // fault injection counts every block
  if (b) {
    kept.top[c] = b->below;
    kept.bytes -= size;
  } else {
    b = block_from_system(size, c);
  }
  b->below = NULL;
  b->size = size;
  return b;
}

arena *arena_new(void) {
  block *b = block_new(BLOCK_MIN);
  arena *a = (arena *)block_start(b);
  *a = (arena){.at = block_start(b) + ROUND_UP(sizeof *a), .end = block_end(b), .top = b, .bytes = b->size};
  POISON(a->at, (size_t)(a->end - a->at));
  return a;
}

void arena_free(arena *a) {
  if (!a) return;
  block_free(a->spare);
  for (block *b = a->top, *below; b; b = below) { // the lowest block holds the arena: it goes last
    below = b->below;
    block_free(b);
  }
}

// A new top block with room for n bytes. What is left of the old one is lost until a release returns to it.
static void grow(arena *a, size_t n) {
  size_t size = BLOCK_MIN;
  while (size < a->bytes / 2 && size < BLOCK_MAX) size *= 2;
  while (size < n + ROUND_UP(sizeof(block)) && size < BLOCK_MAX) size *= 2; // so that threads can keep it
  size = MAX(size, n + ROUND_UP(sizeof(block)));
  block *b = a->spare;
  a->spare = NULL;
  if (b && b->size < size) {
    a->bytes -= b->size;
    block_free(b);
    b = NULL;
  }
  if (!b) {
    b = block_new(size);
    a->bytes += size;
  }
  b->below = a->top;
  a->top = b;
  a->at = block_start(b);
  a->end = block_end(b);
  POISON(a->at, (size_t)(a->end - a->at));
}

void *arena_alloc(arena *a, size_t bytes) {
  if (bytes > PTRDIFF_MAX - BLOCK_MIN) base_out_of_memory(bytes);
  size_t n = ROUND_UP(bytes) + RED_ZONE;
  if ((size_t)(a->end - a->at) < n) grow(a, n);
  char *p = a->at;
  a->at += n;
  UNPOISON(p, bytes);
  return p;
}

void *arena_zalloc(arena *a, size_t bytes) { return memset(arena_alloc(a, bytes), 0, bytes); }

void *arena_dup(arena *a, const void *p, size_t bytes) {
  void *q = arena_alloc(a, bytes);
  if (bytes) memcpy(q, p, bytes);
  return q;
}

char *arena_strdup(arena *a, const char *s) { return arena_dup(a, s, strlen(s) + 1); }

char *arena_strndup(arena *a, const char *s, size_t n) {
  char *q = arena_alloc(a, n + 1);
  if (n) memcpy(q, s, n);
  q[n] = 0;
  return q;
}

char *arena_vprintf(arena *a, const char *fmt, va_list ap) {
  char small[256];
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(small, sizeof small, fmt, ap);
  assert(n >= 0);
  char *s = arena_alloc(a, (size_t)n + 1);
  if ((size_t)n < sizeof small)
    memcpy(s, small, (size_t)n + 1);
  else
    vsnprintf(s, (size_t)n + 1, fmt, again);
  va_end(again);
  return s;
}

char *arena_printf(arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *s = arena_vprintf(a, fmt, ap);
  va_end(ap);
  return s;
}

arena_mark_t arena_mark(arena *a) { return (arena_mark_t){a->top, (size_t)(a->at - (char *)a->top)}; }

void arena_release(arena *a, arena_mark_t m) {
  while (a->top != m.block) {
    block *b = a->top;
    a->top = b->below;
    assert(a->top); // else: a mark of another arena, or marks released out of order
    if (b->size > BLOCK_MAX || (a->spare && a->spare->size >= b->size)) {
      a->bytes -= b->size;
      block_free(b);
    } else {
      if (a->spare) a->bytes -= a->spare->size;
      block_free(a->spare);
      a->spare = b;
    }
  }
  a->at = (char *)a->top + m.used;
  a->end = block_end(a->top);
  POISON(a->at, (size_t)(a->end - a->at));
}

size_t arena_bytes(const arena *a) { return a->bytes; }

// What was allocated last grows where it is, if its block has room.
static bool lengthened(arena *a, char *v, size_t from, size_t to) {
  if (RED_ZONE || !v || v + ROUND_UP(from) != a->at || (size_t)(a->end - v) < ROUND_UP(to)) return false;
  a->at = v + ROUND_UP(to);
  return true;
}

void *vec_grow(arena *a, void *v, u32 n, u32 *cap, u32 want, size_t size) {
  const u32 most = 1u << 31; // so that n + 1 never wraps
  if (want <= *cap) return v;
  if (want > most) base_out_of_memory((size_t)want * size);
  const u32 c = *cap > most / 2 ? most : MAX(2 * *cap, MAX(want, 8u));
  void *q = v;
  if (!lengthened(a, v, (size_t)*cap * size, (size_t)c * size)) {
    q = arena_alloc(a, (size_t)c * size);
    if (n) memcpy(q, v, n * size);
  }
  *cap = c;
  return q;
}
