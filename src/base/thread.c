// thread.c - a parallel loop, the clock and the progress bar. Not a pool: threads live for one loop.
//
// Idea: an atomic counter deals out the indices, so uneven jobs balance by themselves. A job that runs out of
// memory ends the loop; when every thread has stopped, the caller runs out of memory in its own name: no
// thread is left behind working on a stack that has been left.
#define _GNU_SOURCE // sched_getaffinity
#include "base/internal.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// ---- threads ------------------------------------------------------------------------------------------

int cpu_count(void) {
#ifdef __linux__
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
#endif
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (int)n : 1;
}

typedef struct {
  atomic_uint next;
  atomic_bool no_memory;
  u32 n;
  void (*job)(void *arg, u32 i, int thread);
  void *arg;
} loop;

typedef struct {
  loop *l;
  int index;
  pthread_t id;
} worker;

static void work(loop *l, int thread) {
  jmp_buf here, *before = base_oom;
  base_oom = &here;
  if (setjmp(here)) {
    atomic_store(&l->no_memory, true);
  } else {
    u32 i;
    while (!atomic_load(&l->no_memory) && (i = atomic_fetch_add(&l->next, 1)) < l->n)
      l->job(l->arg, i, thread);
  }
  base_oom = before;
}

static void *start(void *arg) {
  worker *w = arg;
  work(w->l, w->index);
  return NULL;
}

void parallel_for(int threads, u32 n, void (*job)(void *arg, u32 i, int thread), void *arg) {
  threads = (int)MIN((u32)MAX(threads, 1), n);
  if (threads <= 1) {
    for (u32 i = 0; i < n; i++) job(arg, i, 0);
    return;
  }
  assert(n <= UINT32_MAX - (u32)threads); // the counter overshoots by one a thread
  loop l = {.n = n, .job = job, .arg = arg};
  worker *w = base_malloc(sizeof *w * (size_t)threads);
  int started = 1;
  for (; started < threads; started++) { // fewer threads than wanted still do all the work
    w[started].l = &l;
    w[started].index = started;
    if (pthread_create(&w[started].id, NULL, start, &w[started])) break;
  }
  work(&l, 0);
  for (int t = 1; t < started; t++) pthread_join(w[t].id, NULL);
  free(w);
  if (l.no_memory) base_out_of_memory(0);
}

// ---- clock and progress -------------------------------------------------------------------------------

u64 clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

void progress_begin(progress *p, const char *title, u64 total) {
  *p = (progress){.title = title,
                  .total = total,
                  .start_ns = clock_ns(),
                  .on = isatty(STDERR_FILENO) || getenv("HEDDLE_TERMINAL")};
}

// Nothing is drawn in the first second, and then ten times a second: short work leaves no trace.
void progress_step(progress *p, u64 done) {
  enum { WIDTH = 30 };
  static const char bar[] = "##############################..............................";
  if (!p->on) return;
  u64 now = clock_ns();
  if (now - p->start_ns < 1000000000u || now - p->last_ns < 100000000u) return;
  p->last_ns = now;
  double part = p->total ? (double)MIN(done, p->total) / (double)p->total : 0;
  double left = part > 0 ? (double)(now - p->start_ns) * 1e-9 * (1 - part) / part : 0;
  const char *from = bar + WIDTH - (int)(part * WIDTH);
  fprintf(stderr, "\r%s [%.*s] %3d%%  %.0f s left \033[K", p->title, WIDTH, from, (int)(part * 100), left);
  fflush(stderr);
}

void progress_end(progress *p) {
  if (p->last_ns) fputs("\r\033[K", stderr);
  p->on = false;
}
