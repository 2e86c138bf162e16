// internal.h - what the files of cost/ share.
//
// Everything of a cost model lives in one arena. What it keeps grows in vectors; what it needs for a moment
// lies in vectors that are used again and again, or above a mark of the arena below which nothing is kept
// meanwhile.
#ifndef HEDDLE_COST_INTERNAL_H
#define HEDDLE_COST_INTERNAL_H
#include "cost/cost.h"

typedef struct {
  const char *name;
  u32 free; // rows with one of these flags cost nothing
  // Time of one event. False and a diagnostic at `at` if the machine lacks a rate or a link.
  bool (*compute)(cost_model *k, const cost_event *e, loc at, cost_info *out);
  bool (*comm)(cost_model *k, const cost_event *e, loc at, cost_info *out);
  // The figure that decides the price of an event on this rank.
  void (*row)(cost_model *k, const cost_event *e, u32 rank, cost_row *out);
  double (*top_flops)(const cost_model *k, const device_kind *dev, dtype t);
  double (*top_bw)(const cost_model *k, const device_kind *dev);
  i64 (*launch_ps)(const cost_model *k, const device_kind *dev);
  void (*parts)(const cost_event *e, cost_parts *out); // of a computation; NULL: does not tell
} cost_formulas;
extern const cost_formulas cost_heddle, cost_distir;

typedef struct {
  u32 at, n;
} key_ref; // words in a pool
typedef struct {
  key_ref key;
  u32 n, at; // how many costs; more than one: from cost_model.values[at] on; 0: known by coordinates too
  i64 ps;
} seen_instr;
typedef struct {
  key_ref key;
  cost_info cost;
} seen_event;
typedef VEC(u32) u32_list;
enum { SUB_IS_MEMBER = ~0u };
typedef struct { // the subgroups of a group over some axes, or the transfers between two groups
  key_ref key;
  u32 nsub, size; // subgroups, members of each
  u32 placement;  // list[placement + s] is the placement of subgroup s; if they are uniform there is one
  u32 sub;        // list[sub + m] is the subgroup of member m; SUB_IS_MEMBER: m
  bool uniform;   // all placements are equal
  bool kept;      // the list is cost_model.kept_ids, else cost_model.ids
} seen_subgroups;

struct cost_model {
  ctx *c;
  arena *a;
  const machine *m;
  const cost_formulas *formulas;
  u64 own; // cost_model_serial
  cost_opts opts;
  distir_params distir;
  u64 warned[EFF_KINDS]; // bit per device kind

  // For ever: events, placements.
  VEC(u64) event_words;
  VEC(seen_event) events;
  VEC(machine_placement) placements;
  hmap event_map, placement_map;
  // Moving a communication by as many ranks does not change its placements; 0: machines of unlike
  u32 period;
  // nodes
  u16 one_kind;                 // of all devices, + 1; 0: they differ
  VEC(seen_subgroups) patterns; // of groups whose ranks are arithmetic patterns, by these
  u32_list pattern_words, kept_ids;
  hmap pattern_map;

  VEC(cost_row) rows; // [0] unused

  // For one program.
  const prog *p;
  u64 serial;     // its; 0: none yet
  u32_list words; // of keys
  u32_list ids;
  VEC(i64) values;
  VEC(seen_instr) instrs;
  VEC(seen_subgroups) subgroups;
  VEC(u16) kinds; // group -> kind of all its devices + 1; 0: not known yet; KINDS_MIXED
  hmap instr_map, subgroups_map;
  u32_list host_ranks; // by node, ranks of the program (host.c); empty: not counted yet

  // For one call.
  VEC(u32) ranks;
  VEC(u32) first;
  VEC(machine_placement) found;
  VEC(u64) key;
  VEC(shape) shapes;
  VEC(i64) bytes, costs;
};
enum { KINDS_MIXED = 0xffff };

bool same_key(const u32_list *words, key_ref r, const u32 *key, u32 n);
key_ref keep_key(cost_model *k, u32_list *words, const u32 *key, u32 n);

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

// events.c: costs of one event, from the cache or the cost model. made_of (may be NULL) gets the event; its
// shapes stay until the cost model's next call.
bool compute_event(cost_model *k, const site *s, const coords *c, u16 kind, cost_info *out,
                   cost_event *made_of);
// Planners choose among communications, most of which nobody has measured, so they are told the formulas' times.
typedef enum { ASKED_BY_PLAN, ASKED_BY_PLANNER } comm_asked;
bool comm_event(cost_model *k, comm_asked by, opcode op, dtype t, i64 size, u32 placement, loc at,
                cost_info *out, cost_event *made_of);
// model.c. Coordinates matter only where pieces are uneven: NULL otherwise, which is much faster.
const coords *coords_at(const site *s, group g, u32 member, bool uneven, coords *room);
u32 fold(i64 *ps, u32 n); // one cost if all are equal
// host.c: of an instruction that runs on the host. A false or 0 and a diagnostic: the machine does not say how fast it is.
bool host_event(cost_model *k, const site *s, const coords *c, u32 rank, cost_info *out, cost_event *e);
u32 host_costs(cost_model *k, const site *s, bool uneven, i64 *ps);
void host_row(cost_model *k, const cost_event *e, u32 rank, cost_row *out);
void cost_extrapolates(cost_model *k, const cost_event *e, const eff_curve *curve, double size);

// subgroups.c. NULL, 0, false and a diagnostic if a rank is not on the machine.
void find_period(cost_model *k); // of the machine
u32 placement_id(cost_model *k, const machine_placement *p);
static inline const u32 *subgroups_list(const cost_model *k, const seen_subgroups *s) {
  return s->kept ? k->kept_ids.v : k->ids.v;
}
static inline u32 sub_of_member(const cost_model *k, const seen_subgroups *s, u32 m) {
  return s->sub == SUB_IS_MEMBER ? m : subgroups_list(k, s)[s->sub + m];
}
static inline u32 placement_of_subgroup(const cost_model *k, const seen_subgroups *s, u32 sub) {
  return subgroups_list(k, s)[s->placement + (s->uniform ? 0 : sub)];
}
bool on_machine(cost_model *k, u32 rank, loc at);
u16 group_kind(cost_model *k, group g, loc at); // kind of all its devices + 1, or KINDS_MIXED
const seen_subgroups *subgroups_over(cost_model *k, group g, const u8 *axes, u32 naxes, loc at);
// One for every member of `from`
const seen_subgroups *transfers(cost_model *k, group from, group to, loc at);

// rows.c: fills in source, spread and row of a price that is known.
void cost_locate(cost_model *k, const cost_event *e, u32 rank, cost_info *io);
void heddle_row(cost_model *k, const cost_event *e, u32 rank, cost_row *out); // of the cost model "heddle"

// fit.c: the fit of the event's kind, NULL: there is none; and what it says of the event. a: for a moment.
const event_fit *cost_fit_of(const machine *m, ctx *c, arena *a, const cost_event *e);
bool cost_fitted(const machine *m, ctx *c, arena *a, const cost_event *e, cost_info *out);

// roofline.c: arithmetic and memory traffic of a computation.
typedef struct {
  const eff_curve *curve; // NULL: the peak
  eff_kind of;
  double size, rate, ps; // ps: without the launch
} roof_term;
void roof_terms(const cost_event *e, roof_term t[2]);
// roofline.c: fills work, flops and bytes of an event. `share`: the part of the law's points that the rank
// computes.
void event_work(cost_event *e, const law *l, double share);
eff_kind work_of(const op_row *row, const law *l);
u64 term_letters(const law_term *t, u32 n); // that n terms have, one bit each
// coll.c: picoseconds of a collective by latency and bandwidth; -1 if a link is missing.
i64 coll_ps(opcode op, i64 bytes, const machine_placement *p);
void coll_parts(opcode op, i64 bytes, const machine_placement *p, cost_parts *out); // out is 0 so far
static inline i64 round_ps(double ps) { return ps < 9e18 ? (i64)(ps + 0.5) : INT64_MAX / 4; }
#endif
