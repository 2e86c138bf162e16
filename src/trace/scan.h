// scan.h - pulling values out of a JSON file of any size. Private to trace/. scan.c has the idea.
#ifndef HEDDLE_TRACE_SCAN_H
#define HEDDLE_TRACE_SCAN_H
#include "trace/internal.h"

typedef struct scan scan;
typedef enum {
  SCAN_OK,
  SCAN_ENDED, // the file ended where more was to come
  SCAN_BAD    // not JSON; scan_find may go on
} scan_state;
// A string without its quotes or a number or word, as it is written. Until the next call with this scanner.
typedef struct {
  const char *v;
  u32 n;
  bool escaped; // has escapes or is cut off (at 64 KiB): scan_plain
} scan_text;

scan *scan_new(arena *a, input *in); // takes about 200 KiB
scan_state scan_is(const scan *s);
void scan_mark(scan *s);        // passes over the mark of UTF-8 that a file may start with
u64 scan_offset(const scan *s); // bytes of the file that were taken

// All that follow return false where the scanner has stopped, or does.
// Enters the object or array that comes next. False: it is something else, which is passed over.
bool scan_object(scan *s);
bool scan_array(scan *s);
bool scan_at_object(scan *s); // is the next value an object? Takes nothing.
bool scan_at_array(scan *s);
// The next member of the object, or element of the array, that was entered last; its value must be taken, passed over
// or entered. False: there are no more, it is left.
bool scan_member(scan *s, scan_text *key);
bool scan_element(scan *s);
bool scan_leave(scan *s); // passes over what is left of it
// The next value. False: it is something else, which is passed over.
bool scan_string(scan *s, scan_text *out);
bool scan_scalar(scan *s, scan_text *out); // a string, number or word
void scan_skip(scan *s);
// Without escapes: in memory of the scanner, until the next scan_plain.
void scan_plain(scan *s, scan_text *t);
// To the next place, also in the midst of values, where the bytes are these. False: none.
bool scan_find(scan *s, const char *what);
// What is told when a reader is done with a file: that it ended early, is no JSON from some place on (an error unless `found`),
// or has nothing of what was looked for, in the words of `without`. In read.c.
void reading_ends(reading *x, const scan *s, bool found, const char *without);

static inline bool scan_eq(scan_text t, const char *s) { return strlen(s) == t.n && !memcmp(t.v, s, t.n); }
// A decimal number, also with exponent: its whole part, towards minus infinity, and the millionths above it; what is
// less than a millionth is dropped. False: not a number, or 10^18 or more.
bool scan_decimal(scan_text t, i64 *whole, u32 *millionths);
bool scan_nearest(scan_text t, i64 *whole, u32 *millionths); // the same, to the nearest millionth
bool scan_integer(scan_text t, i64 *out);                    // up to 2^64 - 1, wrapped. False: not an integer
#endif
