// clocks.h - the clocks of processes, from what happened on several of them: align.c. Part of diagnose.h. Not files: this
// part is given times (observe.c makes them of matched communications).
//
// Idea: a process reads its clock; true time is what the clock of a reference shows. Two kinds of observations tie clocks
// together. A message is sent on one clock and has been received on another, later. A collective ends on all its
// members at nearly the same time, and on none before the last of them has started. Both must hold once times are
// corrected (else an effect comes before its cause), and among the corrections that keep all of them the one is taken
// that makes the fastest messages of a family, and the ends of a collective, as equal as they can be.
#ifndef HEDDLE_DIAGNOSE_CLOCKS_H
#define HEDDLE_DIAGNOSE_CLOCKS_H
#include "base/base.h"

struct match;
typedef struct {
  u32 from, to; // processes
  u32 family;   // of operations that take alike, 0 .. nfamilies-1: they share a latency
} align_link;
typedef struct {
  u32 link;
  i64 send_ps, recv_ps; // the end of sending on the sender's clock, of receiving on the receiver's
} align_message;
typedef struct {
  u32 first, n; // members, of align_seen.member
  u32 family;   // 0 .. nfamilies-1
} align_collective;
typedef struct {
  u32 process;
  i64 start_ps, end_ps; // on its own clock
} align_member;
// Readings lie within 900,000 s (9e17 ps) of zero.
typedef struct {
  u32 nprocesses, nfamilies;
  const u32 *machine; // by process: equal numbers share a clock. NULL: every process has its own
  u32 nlinks;
  const align_link *link;
  u32 nmessages;
  const align_message *message;
  const i64 *posted_ps; // by message: when the receiver began to wait, on its clock; NULL: not known
  u32 ncollectives;
  const align_collective *collective;
  u32 nmembers;
  const align_member *member;
} align_seen;

typedef enum {
  ALIGN_FLOORS, // weighted least squares over the fastest message of every window, and over ends of collectives
  ALIGN_DPRO    // dPRO: the least variance of the time that receiving takes, within a link. Offsets only
} align_method;
enum { ALIGN_DRIFT_AUTO = 0, ALIGN_DRIFT_NONE, ALIGN_DRIFT_LINEAR, ALIGN_PIECES_MAX = 16 };
typedef struct {
  align_method method;
  u32 drift; // ALIGN_DRIFT_..., or from 3 on: clocks of drift-1 pieces of equal length
} align_opts;

// What a clock shows less true time, at readings of the clock: straight between knots and beyond them.
typedef struct {
  i64 coarse_ps; // whole part, at any time
  double *at;    // [nknots]: ps that come on top, at align_clocks.knot_ps
  double *sd;    // [nknots]: standard error of at; 0: a reference, or not known (ALIGN_DPRO)
  // The offset (at the middle) is certainly between, by the order of causes and effects alone. INT64_MIN, INT64_MAX:
  // nothing says so, or something is violated.
  i64 low_ps, high_ps;
  u32 clock, component; // processes of one number have one clock; are tied together, directly or not
  u64 used;             // messages and ends of collectives of the process
} align_clock;
typedef struct {
  u32 from, to; // processes
  i64 time_ps;  // when it was sent, on the sender's clock
  i64 gap_ps;   // received less sent, corrected
  bool collective;
} align_step;
// A clock that jumps: after time (on its own clock) it is by_ps ahead of what it was.
typedef struct {
  u32 process;
  i64 time_ps, within_ps; // time, and how exactly it is known
  i64 by_ps;
} align_jump;
typedef struct align_clocks {
  u32 n;              // processes
  align_clock *clock; // by process
  u32 nknots;         // 1: offsets; 2: a drift; more: pieces
  i64 *knot_ps;       // readings, less coarse_ps
  u32 ncomponents;
  u32 *reference; // of a component: the process whose clock counts as true
  // The largest time by which every message of the tie can be later than its cause at once. Below 0: no clocks of
  // this form satisfy all of them. INT64_MAX: there is no cycle.
  i64 slack_ps;
  u32 ncycle; // the cycle of messages that allows no more (slack_ps * ncycle is what its gaps add up to)
  align_step *cycle;
  u64 constraints;               // messages, and pairs (latest start, earliest end) of collectives
  u64 before, after;             // of these, violated as recorded and once corrected
  i64 worst_before, worst_after; // by how much at most; 0: none is
  double *latency_ps;            // by family; NAN: no message of it counts
  double ends_sd_ps;             // scatter of ends of collectives; 0: none
  u32 njumps;
  align_jump *jump;
  bool
      flat; // ALIGN_DPRO: the objective does not say where some clocks are (every receiver waited for every message)
} align_clocks;
align_clocks *align_find(arena *a, const align_seen *seen, const align_opts *o); // o: NULL for defaults
// A reading of a process's clock as true time.
i64 align_time(const align_clocks *x, u32 process, i64 reading_ps);
i64 align_offset(const align_clocks *x, u32 process);   // clock less true time at the middle of all readings
double align_drift(const align_clocks *x, u32 process); // from the first knot to the last; 20e-6 = 20 ppm
double align_sd_ps(const align_clocks *x, u32 process); // largest standard error at any knot; 0: see sd
// What matched communications say of clocks (observe.c): processes are places. Sends are messages; of collectives those
// count of which no member can end before all have started. own_clocks: even processes of one host have clocks of
// their own.
const align_seen *align_observe(arena *a, const struct match *m, bool own_clocks);

// The clocks of m's places, where communications say that they are further apart than what else makes ends differ: by
// up to *by_ps, known to within *within_ps (clocks.c). own_clocks: as of align_observe. NULL, and
// both are 0: times are compared as recorded. In a.
const align_clocks *clocks_apart(arena *a, const struct match *m, bool own_clocks, i64 *by_ps,
                                 i64 *within_ps);
#endif
