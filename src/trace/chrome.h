// chrome.h - files in the Trace Event Format (Chrome's) that other profilers than PyTorch's write: their events, pairs
// joined, on one clock. What they mean is the matter of each reader. Private to trace/.
#ifndef HEDDLE_TRACE_CHROME_H
#define HEDDLE_TRACE_CHROME_H
#include "trace/scan.h"

// Where events are: a process and thread, as the file has them. Asynchronous events have tracks of their own.
typedef struct {
  sym pid, tid;        // numbers as text; 0: not said
  bool async;          // of events b, e
  sym process, thread; // names that metadata give; 0: none
  u32 open;            // of the events that have begun, the last; TRACE_NONE: none
} chrome_track;
typedef struct {
  u32 track, step; // step: args.step or step_num; TRACE_NONE: not said
  char phase;      // 'X', also of a pair B, E or ( ,) or b, e that was joined; 'i': an instant
  bool ended;      // has an end
  sym name, category;
  sym label;  // args.name; 0: none
  sym extra;  // what the reader's own function took from args: 0: nothing
  i64 number; // and a number; 0: nothing
  // As read, then (chrome_read) from base_ns of the file, at least 0.
  i64 start_us;
  u32 start_rest;       // millionths
  i64 start_ps, dur_ps; // dur_ps: -1: the file has no end
  u32 before;           // on its track: what had begun and not ended when it began; TRACE_NONE: nothing
} chrome_event;
typedef struct chrome chrome;
struct chrome {
  reading *x;
  arena *tmp; // of the reader: events and tracks live here
  // Takes the value of a member of args, or returns false and takes nothing. May be NULL.
  bool (*arg)(chrome *k, chrome_event *e, scan_text key);
  bool endless; // the writer never closes its array: a file without an end is whole
  scan *s;
  VEC(chrome_event) events;
  VEC(chrome_track) tracks;
  hmap by_track;
  i64 epoch_us; // what times are relative to, if the file says; 0: not said
  i64 base_ns;  // as of trace_process
  u64 odd;      // places that were no JSON
};
// Reads all events; k: x, tmp, arg and endless are set. What cannot be understood, is there twice or lies a month from the rest
// is counted in about->skipped. Where there is no JSON it goes on at the next event, with W_TRACE_ODD. False and
// E_TRACE: the file is neither an array of events nor an object with one.
bool chrome_read(chrome *k);
// The event as one of the trace, on the lane (process, device, of, id). TRACE_NONE: nobody wants it.
u32 chrome_put(chrome *k, const chrome_event *e, trace_is is, u32 process, bool device, i64 of, i64 id);

// Of a file's start: is there a member `key` whose value, a string, has `part`? prefix: it begins so.
bool chrome_start_has(const char *start, const char *key, const char *part, bool prefix);
sym chrome_text(chrome *k);                  // the next value, a string or number; 0: something else
bool chrome_number(const char *s, i64 *out); // all of it
bool chrome_number_after(const char *s, const char *word, i64 *out); // the digits behind the first `word`
#endif
