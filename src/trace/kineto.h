// kineto.h - what the parts of the Kineto reader share: kineto.c takes the file apart, kineto_link.c connects what
// it had. Private to trace/.
#ifndef HEDDLE_TRACE_KINETO_H
#define HEDDLE_TRACE_KINETO_H
#include "trace/comm_words.h"
#include "trace/scan.h"

#define ABSENT          INT64_MIN // of ids: not said
#define kineto_ns(k, e) ((k)->at_ns.v[(e) - (k)->first])
// What connects events, as the file has it. Times are the file's, in ns.
typedef struct {
  i64 correlation, external, thread, start_ns;
  u32 event; // TRACE_NONE: not wanted
} kineto_call;
typedef struct {
  i64 correlation, external;
  u32 event;
  u32 comm; // index into comms: what the event itself says; TRACE_NONE: nothing
} kineto_work;
// What a WAIT waits for.
typedef struct {
  u32 event;
  i64 stream,
      record; // of its device; correlation id of the call that recorded the event there, ABSENT: not said
} kineto_wait;
// A communication that the host has started: what the framework says of it.
typedef struct {
  i64 external, thread, start_ns, end_ns;
  u32 comm;   // index into comms
  u32 event;  // TRACE_NONE: not wanted
  bool guess; // from the shapes of an annotation, not from metadata
  bool taken; // by a kernel
} kineto_started;
// One end of an arrow from a call to what it launched.
typedef struct {
  i64 id, pid, tid, ns;
  bool at_call;
} kineto_flow;
typedef struct {
  i64 pid, tid;
  sym name;
} kineto_name;
typedef struct {
  i64 device;
  sym name;
} kineto_device;
typedef struct {
  sym name, members;
  u32 size;
} kineto_group;

// A stretch of time of the file, ns, both ends in it. What was launched during it may start on the device until `late`;
// what starts later is looked for again if it is missed. Calls are known from `early` on, so that what starts in the
// window can be told from what was launched before.
typedef struct {
  i64 early, from, to, late;
} kineto_window;

typedef struct {
  reading *x;
  scan *s;
  arena *tmp;
  u32 process, first; // first: number of the first event
  u32 first_memory;   // likewise of the first row of memory
  i64 base_ns;        // of the file's times; 0: not said
  i64 pid;            // of the host's events; -1: none yet
  i64 host;           // the first process with operators or calls; -1: none yet
  bool several;       // others have some, too
  u32 rank, world_size;
  VEC(kineto_call) calls;
  VEC(kineto_work) work;
  VEC(kineto_wait) waits;
  VEC(kineto_started) started;
  VEC(kineto_flow) flows;     // kept as long as no event had a correlation id
  bool correlated;            // an event had one
  VEC(kineto_window) windows; // in order, apart; none: all of the file is wanted
  bool again;                 // this reading is for what starts late
  hmap launched;              // then: correlation ids of calls that are here
  VEC(trace_comm) comms;
  VEC(kineto_name) threads;
  VEC(kineto_device) devices;
  VEC(kineto_group) groups;
  VEC(sym) labels; // threads that have no number: -2, -3, ..
  VEC(i64)
  at_ns; // of event first + k: its start on the file's clock, which no picoseconds since 1970 would fit; in the
         // column is what it has above that, below 1000 ps, until all times are known (kineto_link.c)
  VEC(i64) memory_ns; // of row first_memory + k of memory, likewise
  u64 odd;            // places that were no JSON
} kineto;

// kineto.c: reads the file of k->s. False: there are no events.
bool kineto_document(kineto *k);

// kineto_steps.c: reading no more than some steps.
// Windows of the steps that are wanted, from a reading for steps alone. No windows: the file has no steps, or all are
// wanted. False and a diagnostic: it cannot be opened.
bool kineto_find_windows(kineto *k);
// Is the event out of all windows? Work of a device is in one if it may have been launched there.
typedef enum { KINETO_HOST, KINETO_CALL, KINETO_DEVICE } kineto_side;
bool kineto_outside(const kineto *k, kineto_side side, i64 from_ns, i64 to_ns, i64 correlation);
// Is this start in a window itself?
bool kineto_inside(const kineto *k, i64 ns);
// After reading: reads again for what was launched in a window and starts after its `late`, if there is such.
bool kineto_read_late(kineto *k);
// Marks work that no call in a window has launched. Returns how many.
u32 kineto_mark_outside(kineto *k, bool *gone);

// kineto_wait.c: from waits to edges; after causes and times are known.
void kineto_link_waits(kineto *k);

// kineto_link.c: after all events.
void kineto_link(kineto *k);
// Index of the call with this correlation id + 1, of calls that have one.
hmap kineto_calls_by_id(kineto *k);
const kineto_call *kineto_call_of(const kineto *k, const hmap *by_id, i64 correlation); // NULL: none
#endif
