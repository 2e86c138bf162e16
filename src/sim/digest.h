// digest.h - a probe while its stages are being made known. Shared by stages.c, stage_bytes.c, compose.c,
// ends.c and wide.c only.
#ifndef HEDDLE_SIM_DIGEST_H
#define HEDDLE_SIM_DIGEST_H
#include "sim/stages.h"

enum { PROBE_MICRO = 3 }; // microbatches of a replica that a probe has, at most
typedef struct {
  sim *s;
  arena *a; // of the result; what s has is gone then
  const sim_pipeline *pl;
  sim_stages *st;
  const sim_graph *c;
  u32 C;
  u32 *cell_of;          // by slot: place * C + class + 1, if it is the clock of their compute stream
  u32 *clock;            // (rank class, stream) -> slot; 0: none
  u32 *class_of;         // rank class -> its number on its place; ~0: on no place
  u32 *place_of;         // rank class -> place
  const u32 *rank_class; // [place * C + class]; NO_CLASS: a place that has fewer
  u32 *written;          // by slot: last piece + 1 that wrote it
  u32 *port, nport;      // by slot: nport, if it is an input port of the piece at hand
  u32 *unit_of;          // by slot of a value: its rank class + 1; 0: not known
  u32 W;                 // of the three below, by link: C, or places * C where some stage lies on several
  const u32 *leaves[2][PROBE_MICRO], // per link there, back, by microbatch: slots of its value by class,
      *comes[2][PROBE_MICRO]; // ... [link * W + class]; of a stage on several places [.. + place * C + class]
  const u32 *after[2][PROBE_MICRO]; // ... of what its send waits for as well
  bool *came; // by slot: it is of a value that comes over a link in the microbatch that stands for all
  i64 *x, *frame;
  stage_ends *ends;            // NULL: none of their own
  bool *summing;               // by slot: it is a clock of the stream of sums
  bool last;                   // tasks of the last microbatch are looked at
  u32 before[2], after_all[2]; // ... nodes of what comes before the tasks, and after them: from, to
  const u8 *arrived;           // ... by slot: what comes before the tasks leaves it
  u32 *writer;                 // ... by slot: the task's piece + 1 that writes it
  VEC(stage_other) other;
  VEC(u32) wait; // ... of the piece at hand: such slots that it waits for
} digest;
enum { NO_CLASS = ~0u };

typedef struct {
  u32 n;
  u32 slot[PORTS_MOST];
  u32 also[PORTS_MOST]; // the later of the two counts
} ports;                // clocks by class, then values by class; slot 0: absent

static inline void port_put(ports *p, u32 slot) { p->slot[p->n] = slot, p->also[p->n++] = 0; }

static inline u32 digest_last(const digest *d, u32 stage) {
  return MIN(sim_micro(d->pl, stage), (u32)PROBE_MICRO) - 1;
}
// The microbatch, of those in the probe, that stands for all: the second, if there is one and it is not the last one whose
// task is another.
static inline u32 digest_turn(const digest *d, u32 stage) {
  return d->last ? digest_last(d, stage) : sim_micro(d->pl, stage) > (d->pl->sums ? 2 : 1);
}
typedef struct {
  u32 slot, node, mark; // mark: of the piece that made it; node: that waits
} made_before;
// Values that a later task of a stage waits for, though they were there before: came for an earlier task, or
// were made by one.
typedef struct {
  VEC(u32) came; // slots
  VEC(made_before) made;
} late_reads;
u32 digest_clock(const digest *d, u32 at, u32 cls, u32 strm); // slot; 0: none
// Runs nodes [n0, n1) with one input far ahead: a[out * stride] is how much later each output is, or STAGE_NEVER.
void digest_respond(digest *d, u32 n0, u32 n1, u32 ahead, const ports *out, i64 *a, u32 stride);
// Do the nodes read only ports (d->port), what they write (as piece number `mark`) and what came before the tasks? Other
// slots go to `late`. False: they do, and it is NULL or has no room; or they occupy a clock that is no port.
bool digest_reads(digest *d, u32 n0, u32 n1, u32 mark, late_reads *late);
// Slots of what comes over a link in the microbatch that stands for all.
static inline const u32 *digest_coming(const digest *d, u32 link, bool back) {
  return d->comes[back][digest_turn(d, d->pl->link[link].from)] + (size_t)link * d->W;
}
// The clocks that a node occupies, n of them: those of its callee, if it is a call.
static inline const u32 *digest_occupies(const sim_graph *c, u32 node, u32 *n) {
  const sim_site *site = c->dur[node] < 0 ? &c->site[~c->dur[node]] : NULL;
  *n = site ? site->sub->nclock : c->in[node] - c->occ[node];
  return site ? site->clock : c->ref + c->occ[node];
}
// What comes over links in the microbatch that stands for all is noted in d->came.
void digest_coming_now(digest *d);
// Ports of a task of the microbatch that stands for all: clocks, values, then behind what comes what its I leaves for it,
// of which these are the values. also: clocks that it may occupy besides, NULL: none. False: it is not known by its stage.
bool digest_task(digest *d, const sim_piece *p, const ports *also, ports *in, ports *out, u32 *nin, u32 *nout,
                 ports *carried);
void digest_add_ports(ports *p, const ports *more);
// How much later each output is than each input: [out * in->n + in], STAGE_NEVER where it does not matter.
i64 *digest_matrix(digest *d, u32 n0, u32 n1, const ports *in, const ports *out);
// Clocks of its place, then values that come to the piece and leave it.
void digest_ports(const digest *d, const sim_piece *p, ports *in, ports *out, u32 *nin, u32 *nout);
// How long the nodes keep compute streams of n places from `at` on busy, and with communication: [place * C + class].
void digest_busy(const digest *d, u32 n0, u32 n1, u32 at, u32 n, i64 *busy, i64 *comm);
static inline bool digest_wide(const digest *d, u32 stage) { return d->pl->wide && d->pl->wide[stage]; }
static inline bool digest_wide_link(const digest *d, u32 link) {
  return digest_wide(d, d->pl->link[link].from) || digest_wide(d, d->pl->link[link].to);
}
// wide.c: of a stage on several places; false: it waits for more than its places' clocks and what comes to it.
bool wide_task(digest *d, const sim_piece *p);
bool wide_send(digest *d, const sim_piece *p);

void digest_compose(digest *d); // compose.c: whole backwards out of their two parts
// stage_bytes.c: False: equal layers do not take equal bytes, or who frees a buffer depends on an order that no line tells.
bool digest_bytes(digest *d);

// ---- part.c: nodes as an event graph of their own, which stays when the probe is gone ---------------------------
typedef struct {
  u32 n, *now; // slots so far, with slot 0; by slot of the probe's its number here, 0: it has none yet
} part_slots;
u32 sim_part_slot(part_slots *x, u32 slot); // its number here, a new one if it has none
// Nodes [n0, n1), without ports, in `a`.
const sim_graph *sim_graph_part(arena *a, arena *tmp, const sim_graph *c, u32 n0, u32 n1, part_slots *slots);

// ---- sums.c: tasks that sum gradients ----------------------------------------------------------------
bool sums_is(const digest *d, const sim_piece *p); // is it one?
bool sums_close(digest *d,
                const sim_piece *after); // once all other tasks are known. False: they cannot be known

// ---- ends.c -------------------------------------------------------------------------------------------------
// The event graph of a probe whose places are apart; NULL and diagnostics: its times do not fit.
const sim_graph *ends_graph(sim *s, const sim_pipeline *pl);
bool ends_open(digest *d);           // after the clocks are known. False: they cannot be known
bool ends_wait(digest *d, u32 slot); // the piece at hand waits for it, which d->arrived says
// What the task waits for, once its map is known for these ports. False: not only the first of its kind waits for it.
bool ends_waits(digest *d, const sim_piece *p, stage_task *t, const ports *in, const ports *out);
bool ends_close(digest *d); // what the tasks leave for what comes after them, once their maps are known
#endif
