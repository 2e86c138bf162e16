// internal.h - what the files of cost/ share.
//
// Everything of a coster lives in one arena. What it keeps grows in vectors; what it needs for a moment lies
// in vectors that are used again and again, or above a mark of the arena below which nothing is kept
// meanwhile.
#ifndef HEDDLE_COST_INTERNAL_H
#define HEDDLE_COST_INTERNAL_H
#include "cost/cost.h"

typedef struct {
  const char *name;
  u32 free;           // rows with one of these flags cost nothing
  cost_source source; // of communication
  // Time of one event. False and a diagnostic at `at` if the machine lacks a rate or a link.
  bool (*compute)(coster *k, const cost_event *e, loc at, cost_info *out);
  bool (*comm)(coster *k, const cost_event *e, loc at, cost_info *out);
  double (*top_flops)(const coster *k, const device_kind *dev, dtype t);
  double (*top_bw)(const coster *k, const device_kind *dev);
  i64 (*launch_ps)(const coster *k, const device_kind *dev);
  void (*parts)(const cost_event *e, cost_parts *out); // of a computation; NULL: does not tell
} accounting;
extern const accounting cost_heddle, cost_distir;

typedef struct {
  u32 at, n;
} key_ref; // words in a pool
typedef struct {
  key_ref key;
  u32 n, at; // how many costs; more than one: from coster.values[at] on; 0: known by coordinates too
  i64 ps;
} seen_instr;
typedef struct {
  key_ref key;
  cost_info cost;
} seen_event;
typedef struct { // the subgroups of a group over some axes, or the transfers between two groups
  key_ref key;
  u32 nsub, size; // subgroups, members of each
  u32 place;      // coster.ids[place + s] is the place of subgroup s
  u32 sub;        // coster.ids[sub + m] is the subgroup of member m
  bool uniform;   // all places are equal
} seen_subs;

struct coster {
  ctx *c;
  arena *a;
  const machine *m;
  const accounting *acc;
  cost_opts opts;
  distir_params distir;
  u64 warned[EFF_KINDS]; // bit per device kind

  // For ever: events, places.
  VEC(u64) event_words;
  VEC(seen_event) events;
  VEC(machine_place) places;
  hmap event_map, place_map;

  // For one program.
  const prog *p;
  VEC(u32) words; // of keys
  VEC(u32) ids;
  VEC(i64) values;
  VEC(seen_instr) instrs;
  VEC(seen_subs) subs;
  VEC(u16) kinds; // group -> kind of all its devices + 1; 0: not known yet; KINDS_MIXED
  hmap instr_map, subs_map;

  // For one call.
  VEC(u32) ranks;
  VEC(machine_place) found;
  VEC(u64) key;
  VEC(shape) shapes;
  VEC(i64) bytes, costs;
};
enum { KINDS_MIXED = 0xffff };

bool same_key(const coster *k, key_ref r, const u32 *key, u32 n);
key_ref keep_key(coster *k, const u32 *key, u32 n);

// An instruction where it runs.
typedef struct {
  const prog *p;
  const func_info *f;
  const instr *i;
  group g;
} site;
static inline const type_info *site_operand(const site *s, u32 j) {
  return val_type(s->p, s->f, opd_of(s->f, s->i, j));
}
static inline const type_info *site_result(const site *s, u32 j) {
  return val_type(s->p, s->f, s->i->res + j);
}
shape site_local(const site *s, const type_info *t,
                 const coords *c); // what the rank at these coordinates holds

// events.c: costs of one event, from the cache or the accounting. made_of (may be NULL) gets the event; its
// shapes stay until the coster's next call.
bool compute_event(coster *k, const site *s, const coords *c, u16 kind, cost_info *out, cost_event *made_of);
bool comm_event(coster *k, opcode op, dtype t, i64 size, u32 place, loc at, cost_info *out,
                cost_event *made_of);
void cost_extrapolates(coster *k, const cost_event *e, const eff_curve *curve, double size);

// subs.c. NULL, 0, false and a diagnostic if a rank is not on the machine.
u32 place_id(coster *k, const machine_place *p);
bool on_machine(coster *k, u32 rank, loc at);
u16 group_kind(coster *k, group g, loc at); // kind of all its devices + 1, or KINDS_MIXED
const seen_subs *subgroups(coster *k, group g, const u8 *axes, u32 naxes, loc at);
const seen_subs *transfers(coster *k, group from, group to, loc at); // one for every member of `from`

// roofline.c: fills work, flops and bytes of an event. `share`: the part of the law's points that the rank
// computes.
void event_work(cost_event *e, const law *l, double share);
eff_kind work_of(const op_row *row, const law *l);
u64 term_letters(const law_term *t, u32 n); // that n terms have, one bit each
// coll.c: picoseconds of a collective by latency and bandwidth; -1 if a link is missing.
i64 coll_ps(opcode op, i64 bytes, const machine_place *p);
void coll_parts(opcode op, i64 bytes, const machine_place *p, cost_parts *out); // out is 0 so far
static inline i64 round_ps(double ps) { return ps < 9e18 ? (i64)(ps + 0.5) : INT64_MAX / 4; }
#endif
