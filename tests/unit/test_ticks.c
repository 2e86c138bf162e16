// test_ticks.c - the processor's counter and the monotonic clock tell the same time, and so does the clock alone.
#include "eval/ticks.h"
#include "test.h"

// Readings of the counter, each between two of the clock, for 20 ms; then what the ticks were in ns.
static void ticks_agree(const char *what) {
  enum { MOST = 1 << 16, LASTS_NS = 20000000, OFF_NS = 20000 };
  static struct { i64 before, ticks, after; } v[MOST];
  u32 n = 0, off = 0, back = 0;
  const ticks_pair from = ticks_both();
  for (; n < MOST && (!n || v[n - 1].after < from.ns + LASTS_NS); n++) {
    v[n].before = (i64)clock_ns();
    v[n].ticks = ticks_now();
    v[n].after = (i64)clock_ns();
  }
  const ticks_pair to = ticks_both();
  for (u32 k = 0; k < n; k++) {
    const i64 ns = ticks_to_ns(from, to, v[k].ticks);
    off += ns < v[k].before - OFF_NS || ns > v[k].after + OFF_NS;
    back += k && v[k].ticks < v[k - 1].ticks;
  }
  CHECK_MSG(n > 10 && !off && !back, "%s: of %u readings %u are off, %u go back", what, n, off, back);
  CHECK(ticks_to_ns(from, to, from.ticks) == from.ns && ticks_to_ns(from, to, to.ticks) == to.ns);
}

TEST(ticks_are_the_clock) {
  ticks_choose();
  const bool is = ticks_of_processor;
  ticks_agree(is ? "the processor's counter" : "the clock, as the processor has no such counter");
  ticks_of_processor = false;
  ticks_agree("the clock");
  ticks_choose(); // which has chosen
  CHECK(!ticks_of_processor);
  ticks_of_processor = is;
}

TEST(ticks_in_proportion) {
  const ticks_pair from = {1000, 50}, to = {4000, 1050};
  CHECK(ticks_to_ns(from, to, 1000) == 50 && ticks_to_ns(from, to, 4000) == 1050);
  CHECK(ticks_to_ns(from, to, 2500) == 550);
  CHECK(ticks_to_ns(from, to, 5500) == 1550 && ticks_to_ns(from, to, 400) == -150); // outside, too
  CHECK(ticks_to_ns(from, from, 1007) == 57);
  // An hour at 5 GHz, since a machine was started two years ago.
  const ticks_pair begin = {(i64)315e15, (i64)63e15},
                   end = {(i64)315e15 + (i64)18e12, (i64)63e15 + (i64)36e11};
  CHECK(ticks_to_ns(begin, end, begin.ticks + 5) == begin.ns + 1);
  CHECK(ticks_to_ns(begin, end, end.ticks - 5) == end.ns - 1);
}
