// ticks.c - the processor's counter as a clock: whether it is one, and what its ticks are in nanoseconds.
//
// Idea: nobody asks how fast the counter runs. Whoever keeps ticks reads both clocks now and then; between two such
// moments ticks are in proportion. So they follow the monotonic clock also where that is adjusted.
#include "eval/ticks.h"
#include <pthread.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool ticks_of_processor;

#if defined(__x86_64__)
static bool one_rate(void) { // CPUID's "invariant TSC"
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
}

// Some virtual machines intercept the counter. The least of many tries, in ns.
static i64 cost_of_reading(bool processor) {
  enum { TRIES = 16, READINGS = 32 };
  i64 least = INT64_MAX, sum = 0;
  ticks_of_processor = processor;
  for (u32 k = 0; k < TRIES; k++) {
    const u64 since = clock_ns();
    for (u32 j = 0; j < READINGS; j++) sum |= ticks_now();
    const i64 took = (i64)(clock_ns() - since);
    least = MIN(least, took);
  }
  return sum ? least : INT64_MAX; // a counter that stands at 0 is none
}

static void choose(void) {
  if (one_rate()) ticks_of_processor = cost_of_reading(true) < cost_of_reading(false);
}
#else
static void choose(void) {}
#endif

void ticks_choose(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, choose);
}

// The reading of the clock between two of the counter that least passes between.
ticks_pair ticks_both(void) {
  enum { TRIES = 4 };
  if (!ticks_of_processor) {
    const i64 now = ticks_now();
    return (ticks_pair){now, now};
  }
  ticks_pair best = {0};
  i64 least = INT64_MAX;
  for (u32 k = 0; k < TRIES; k++) {
    const i64 before = ticks_now(), ns = (i64)clock_ns(), passed = ticks_now() - before;
    if (passed < least) least = passed, best = (ticks_pair){before + passed / 2, ns};
  }
  return best;
}

i64 ticks_to_ns(ticks_pair from, ticks_pair to, i64 ticks) {
  const i64 passed = ticks - from.ticks, all = to.ticks - from.ticks;
  if (all <= 0 || all == to.ns - from.ns) return from.ns + passed;
  return from.ns + (i64)((long double)passed * (to.ns - from.ns) / all);
}
