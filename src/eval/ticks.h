// ticks.h - a clock that costs little to read, for recordings. Private to eval/.
#ifndef HEDDLE_EVAL_TICKS_H
#define HEDDLE_EVAL_TICKS_H
#include "base/base.h"

// Ticks of the processor's counter if this is set, else nanoseconds of the monotonic clock. ticks_choose sets it.
extern bool ticks_of_processor;

// Call before the first reading. Takes the processor's counter where the processor says that it runs at one rate, asleep
// or throttled, and where reading it takes less than reading the clock. Any thread may call it, as often as it likes.
void ticks_choose(void);

static inline i64 ticks_now(void) {
#if defined(__x86_64__)
  if (ticks_of_processor) return (i64)__builtin_ia32_rdtsc();
#endif
  return (i64)clock_ns();
}

// Both clocks at one moment.
typedef struct {
  i64 ticks, ns;
} ticks_pair;
// May be off by as long as a reading of the clock takes, and by more only if the thread is interrupted in every try.
ticks_pair ticks_both(void);

// The time in ns at `ticks`, from what both clocks said at two moments; from = to: at a tick a nanosecond.
i64 ticks_to_ns(ticks_pair from, ticks_pair to, i64 ticks);
#endif
