// internal.h - what the files of cost/ share.
#ifndef HEDDLE_COST_INTERNAL_H
#define HEDDLE_COST_INTERNAL_H
#include "cost/cost.h"

typedef struct {
  const char *name;
  u32 free; // rows with one of these flags cost nothing
  // Time of one event. False and a diagnostic at `at` if the machine lacks a rate or a link.
  bool (*compute)(coster *k, const cost_event *e, loc at, cost_info *out);
  bool (*comm)(coster *k, const cost_event *e, loc at, cost_info *out);
  double (*top_flops)(const coster *k, const device_kind *dev, dtype t);
  double (*top_bw)(const coster *k, const device_kind *dev);
  i64 (*launch_ps)(const coster *k, const device_kind *dev);
} accounting;
extern const accounting cost_heddle, cost_distir;

typedef struct {
  u32 at, n;
} key_ref; // words in a pool
typedef struct {
  key_ref key;
  u32 n, value;
} seen_instr; // n values from coster.values; 0: depends on coordinates
typedef struct {
  key_ref key;
  cost_info cost;
} seen_event;
typedef struct { // the subgroups of a group over some axes, or the transfers between two groups
  key_ref key;
  u32 nsub;
  u32 *place;   // of each; index in coster.places
  u32 *sub;     // member -> subgroup; NULL: member k has subgroup k
  bool uniform; // all places are equal
} seen_subs;

struct coster {
  ctx *c;
  arena *a, *scratch;
  const machine *m;
  const accounting *acc;
  cost_opts opts;
  distir_params distir;
  u64 warned[EFF_KINDS]; // bit per device kind
  // For ever: events, places.
  VEC(u64) event_words;
  VEC(seen_event) events;
  hmap event_map;
  VEC(machine_place) places;
  hmap place_map;
  // For one program.
  const prog *p;
  arena *mine; // all of this
  arena_mark_t empty;
  VEC(u32) words;
  VEC(seen_instr) instrs;
  VEC(i64) values;
  VEC(seen_subs) subs;
  VEC(u16) kinds; // group -> kind of all its devices + 1; 0: not known yet; KINDS_MIXED
  hmap instr_map, subs_map;
};
enum { KINDS_MIXED = 0xffff };

bool cost_known(coster *k, const cost_event *e, const u64 *key, u32 n, loc at, cost_info *out);
void cost_extrapolates(coster *k, const cost_event *e, const eff_curve *curve, double size);

// roofline.c: fills work, flops and bytes of a compute instruction's event. `share`: the part of the law's
// points that the rank computes.
void event_work(cost_event *e, const law *l, double share);
// coll.c: picoseconds of a collective by latency and bandwidth; -1 if a link is missing.
i64 coll_ps(opcode op, i64 bytes, const machine_place *p);
static inline i64 round_ps(double ps) { return ps < 9e18 ? (i64)(ps + 0.5) : INT64_MAX / 4; }
#endif
