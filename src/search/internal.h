// internal.h - the parts of a search. Private to search/.
#ifndef HEDDLE_SEARCH_INTERNAL_H
#define HEDDLE_SEARCH_INTERNAL_H
#include "search/search.h"

typedef struct known known;                 // evaluate.c
typedef struct unordered unordered;         // plans.c
typedef struct works works;                 // work.c
typedef struct work work;                   // work.c
typedef struct memory_bounds memory_bounds; // memory.c
typedef struct known_kept known_kept;       // memory.c
typedef struct point_order point_order;     // order.c
// Texts, each once.
typedef struct {
  VEC(const char *) v;
  hmap map;
  const char *latest;
} texts;
typedef struct {
  ctx *c;
  arena *a;
  planner *pl;
  cost_model *k;
  unordered *plans; // what is known of plans but for their order
  known *stages;    // what is known of stages and schedules
  known_kept *kept; // what is known of activations
  texts reasons;    // why points are impossible
  bool broken;      // the session could not be set up
} worker;

// Ranks [first, first + n) of the machine: all of them, and where devices of several kinds are at choice those
// without some kinds, or some devices of the kinds, at either end.
typedef struct {
  u32 first, n;
  double spread; // bounds.spread of them
} rank_window;
enum { WINDOWS_MOST = CHOICE_ALTERNATIVES }; // of skip
typedef struct {
  double work; // seconds of all products of a step on one device at the best rate of any
  u32 nwindows;
  rank_window window[WINDOWS_MOST]; // spread: ... at the mean of the best rates of their ranks
  bool chain;                       // one product after the other, there and back
  bool train;
  double *forward; // seconds of the forward's products of main before instruction i, from 0, likewise
  double missing;  // of gradients that products do not have, where the others have two
  const memory_bounds *memory;
} bounds;

// The times of the best plans so far, the worst of them first (a heap).
typedef struct {
  u32 most, n; // most 0: nothing is kept, nothing is too slow
  i64 *v;
} kept;

// What is known of the time of points from their work, once for all that are alike. ps 0: nothing.
typedef struct {
  const search_point *of;
  double ps, fill_ps; // as bound_ps, bound_fill_ps
} limit;
typedef struct {
  VEC(limit) v;
  hmap map;
  u32 first; // of those that are not known yet
} limits;

typedef struct {
  const prog *src;
  const machine *m;
  const cost_opts *costs;
  const search_opts *o;
  schedule_files files;
  search_result *r;
  arena *a;
  worker *w;
  u32 ranks, threads; // ranks: of one plan, if it leaves none out
  rank_window within; // where all plans lie
  bool several;       // kinds of devices there
  i64 limit;
  kept kept;
  const point_order *order; // of the points, until they are ranked
  texts reasons;            // those of workers
  const char *kept_reason;  // the latest that was kept, as a worker had it
  strbuf text;              // of the latest point that is equal to another
  bounds bounds;
  works *works;
  work **measured; // in this wave
  limits limits;
  search_point **wave;
  u32 nwave, turn;     // turn: so many of it are evaluated together
  u32 nblocks, *block; // without bounds: where each begins among the points, and the end of the last one
} search;

// ---- parts: part.c, part_read.c, merge.c --------------------------------------------------------------
// What all parts of a search have in common, in the order of their files.
typedef enum {
#define SHARED(id, text, about) SHARED_##id,
#include "search/shared.def"
#undef SHARED
  SHARED_COUNT
} shared_id;
typedef struct {
  const char *key, *about;
  bool text; // a JSON string; else a number or a truth
} shared_row;
extern const shared_row shared_rows[SHARED_COUNT];
enum { PART_FORM = 6, PARTS_MOST = 1 << 20 };
extern const char *const part_states[SEARCH_STATES]; // of points in files; NULL: such points are in none
extern const char *const part_rest[SEARCH_STATES];   // of those that need no applying; likewise
void part_end(strbuf *b);                            // the last member of a file: the checksum of what b has

struct search_part {
  u32 part, parts;
  loc at, parts_at;                 // of these numbers in the file; 0: not read from one
  const char *shared[SHARED_COUNT]; // as the file writes them, without quotes; NULL: null
  loc shared_at[SHARED_COUNT];
  search_opts o; // ranks, train, top
  search_about about;
  const char *asked;       // the strategy as it was typed, which diagnostics are located in; NULL: not known
  const strategy *hint_of; // the point whose hint r.hint is; NULL: there is none
  search_result r; // points: those that were applied and are not too slow; counts and reasons: of all others
};

// Does the file of a part list it? Else it is counted.
static inline bool part_lists(const search_point *p) {
  return p->applied && (p->state != SEARCH_BOUND_TIME || p->cuts_of);
}

// Is the time per step that of steps that follow each other? Of training; DistIR's simulator knows one step.
static inline bool search_steady(const search_opts *o) { return o->train && o->bytes == SIM_BYTES_HEDDLE; }

// ---- search.c -----------------------------------------------------------------------------------------
void search_impossible(search_point *p, worker *w);            // for the reason that the session has
search_point *search_find(const search *s, const strategy *x); // NULL: not in the space
bool search_is_ours(const search_opts *o, u32 i); // is number i of what parts share out for this part?

// ---- blocks.c -----------------------------------------------------------------------------------------
// Puts those of n points that are this part's into the order in which they are evaluated without bounds, makes blocks of
// them, and returns how many there are. A worker takes a block at a time.
u32 blocks_make(search *s, search_point **all, u32 n);

// ---- plans.c ------------------------------------------------------------------------------------------
typedef struct {
  plan *pn;      // without its sequences and its name; NULL and diagnostics: it is impossible
  u64 hash;      // plan_hash_unordered
  strategy is;   // settled, with numbers for `auto`; lists are the worker's
  bool as_said;  // there was no `auto`, which may ask for the order
  bool none_fit; // no cuts of it can fit
} point_plan;
// The plan of the point, with parts that are valid until the worker makes the next one.
point_plan search_plan(const search *s, worker *w, arena *a, const search_point *p);
bool search_tries_cuts(const search *s,
                       const search_point *p); // are there cuts to try besides those of its plan?
// What a set of stages depends on: not on the order of tasks, nor on sends. sums: beside the last backward, which is another
// function then.
static inline strategy search_set(const strategy *s, bool sums) {
  strategy x = strategy_of_stages(s);
  x.overlap.n = (x.overlap.n & ~(u32)OVERLAP_DP) | sums * OVERLAP_DP;
  return x;
}
void unordered_free(unordered *x);
// Where the stage of that replica lies; its place; the block of dp x tp ranks, of those that s does not skip.
const plan_submesh *search_stage_on(const plan *pn, u32 replica, u32 stage);
u32 search_place(const plan *pn, u32 replica, u32 stage);
u32 search_block(const strategy *s, const plan *pn, u32 replica, u32 stage);

// ---- evaluate.c ---------------------------------------------------------------------------------------
enum { SETS_TOGETHER = 192 }; // of stages, that a worker keeps
// Time and bytes of the plans of n points, their states, what they equal: faster where neighbours have the same line
// of tasks.
void search_evaluate(search *s, worker *w, search_point **p, u32 n);
void known_free(known *k);

// ---- space.c ------------------------------------------------------------------------------------------
// Every strategy of the space once; impossible ones that show without a plan are marked. False and a
// diagnostic if there is none, if a value that was said is in none, or if a file is no schedule that runs.
u32 space_windows(const machine *m, const search_opts *o, u32 ranks, rank_window out[WINDOWS_MOST]);
const char *space_devices(arena *a, const bounds *b, u32 ranks); // the windows as text; NULL: it is one
rank_window space_within(const machine *m, const search_opts *o, u32 ranks); // the least that has all of them
bool space_make(ctx *c, arena *a, const prog *src, const machine *m, const search_opts *o, u32 ranks,
                search_result *r, schedule_files *files);

// ---- bound.c ------------------------------------------------------------------------------------------
void bounds_make(arena *a, const search *s, bounds *b);
void bound(const bounds *b, search_point *p); // bound_ps, bound_fill_ps
i64 bound_of_all(const bounds *b);            // no plan on the ranks of any window is faster
// Are its backwards in two parts, of which one may run late?
bool bound_splits(const bounds *b, const strategy *s);
// Is it known which stages a place runs, for which share of the microbatches? Not of files and of replicas of different
// make-up. Else stage k of replica r, of bound_replicas, lies on place sched_place, and each has as many microbatches.
bool bound_places(const strategy *s);
u32 bound_replicas(const strategy *s);
// Does a step wait for its pipeline to fill and to drain? A training step ends with the first stage's backward,
// where the next one begins, unless weight gradients may run later than that.
bool bound_fills(const bounds *b, const strategy *s);
// ps of the products of main's instructions [from, to) for one microbatch at the best rate: with their
// backwards, unless these are in two parts.
double bound_products(const bounds *b, const strategy *s, bool splits, u32 from, u32 to);

// ---- sync.c -------------------------------------------------------------------------------------------
typedef struct syncs syncs;
syncs *syncs_make(arena *a, const prog *src);
void sync_prepare(syncs *x, arena *a, u32 nbody, u32 dp, u32 tp); // before bytes are asked for
// Bytes that each of tp ranks has at least of gradients of weights; of those that dp data ranks can shard.
typedef struct {
  double all, sharded;
} sync_bytes;
void sync_add(const syncs *x, u32 from, u32 to, u32 dp, u32 tp,
              sync_bytes *out); // first read by main's [from, to)
// ps of summing them over the data ranks of a place whose first rank it is: for every microbatch, once a step. 0:
// nothing is known.
typedef struct {
  double micro, step;
} sync_time;
sync_time sync_ps(worker *w, arena *tmp, u32 first, const strategy *s, const sync_bytes *bytes);

// ---- work.c -------------------------------------------------------------------------------------------
// What one microbatch takes of a rank under strategies without stages, for all of the search.
works *works_new(arena *a, const search *s);
// The strategies that the bound of s needs measured, in v; returns how many: 0, the bound says no more than
// `bound`.
enum { WORKS_MOST = 64 };
u32 works_of(works *x, const strategy *s, work *v[WORKS_MOST]);
void works_off(works *x);                        // no such bound from here on
void work_measure(works *x, worker *w, work *v); // unless it is; each by one thread
bool work_known(const work *v);
// What the work of its stages says of a point's time.
void work_bound(works *x, const search *s, worker *w, limit *of);
// Points whose bound is the same for sure: of the same stages, with backwards in as many parts.
bool work_alike(const works *x, const search_point *p, const search_point *q);
u64 work_key(const works *x, const search_point *p); // equal for those

// ---- whole.c ------------------------------------------------------------------------------------------
typedef struct {
  plan *plan;
  prog *program;
  sim_result result;
} whole_answer;
// False and diagnostics in the planner's session: there is no such plan, or no price. Everything but the
// program, which whole_free gives back in any case, is in `a`.
bool whole_run(planner *pl, cost_model *k, arena *a, const hybrid_opts *h, const sim_opts *so,
               whole_answer *out);
void whole_free(whole_answer *x);
// NULL if the program of the point's plan, written out, passes validation and takes the time and memory that
// the search has for it; else what is wrong, in `a`.
// told (or NULL) is told of what was simulated.
const char *whole_differs(planner *pl, cost_model *k, arena *a, const search_opts *o, const search_point *p,
                          search *told);

// ---- fewer.c --------------------------------------------------------------------------------------------
bool search_needs_axis(choice_id id); // is it of nothing on one device?
void fewer_find(search *s);           // when plans are ranked: one_device and one_node of the result

// ---- kinds.c --------------------------------------------------------------------------------------------
bool kinds_told(
    const search *s); // are there several? Of all ranks, skipped ones too, unless it was said how many
// What the result says of the best plan beside its figures; of kinds where the machine has several.
void kinds_of(search *s, const whole_answer *x, const hybrid_opts *h);

// ---- memory.c -----------------------------------------------------------------------------------------
// By parameter of main, from 1: the number from 1 of the first instruction that reads it; 0: none does.
u32 *memory_readers(arena *a, const prog *p);
const memory_bounds *memory_bounds_make(arena *a, planner *pl, const search_opts *o); // in `a`
bool memory_has_states(const memory_bounds *b);                                       // of the optimizer
// Bytes that some rank of the plan holds at least, some time; pn: of s, with or without its sequences.
double memory_bound(const memory_bounds *b, worker *w, const search_opts *o, arena *a, const strategy *s,
                    const plan *pn);

// ---- order.c ------------------------------------------------------------------------------------------
typedef struct {
  u64 key;
  u32 at;
} keyed;
void keyed_sort(keyed *v, u32 n); // by key; equal ones stay in their order
// The points by strategy_compare, as they are where they lie. In `a`.
point_order *order_make(arena *a, u32 n, const search_point *point);
u32 order_at(const point_order *o, u32 i);               // the index of number i in order
u32 order_find(const point_order *o, const strategy *s); // its index; n: it is none of them

// ---- families.c ----------------------------------------------------------------------------------------
// The families of the points, without figures.
void families_find(arena *a, const search_opts *o, search_result *r);
// What those that were passed over take at least. least: the least bound of so many, once it is measured.
void families_bound(search *s, i64 (*least)(search *s, search_point **v, u32 n));
// Adds ranked points to the figures.
void families_count(search_result *r, u32 n, const search_point *point);
void families_of(const search_opts *o, search_result *r); // which of those that there are points are of
void families_also(arena *a, search_result *r); // and points that others are equal to, until they are ranked
void families_copy(arena *a, const search_result *from, search_result *to); // with their bounds alone
bool families_add(search_result *to, const search_result *more); // of another part; false: they are others

// ---- make_ups.c ------------------------------------------------------------------------------------------
// The make-ups of ranked points; what the file of a part does not list of them is summed up.
void make_ups_find(arena *a, const search_opts *o, search_result *r);
bool make_ups_add(arena *a, search_result *to,
                  const search_result *more);   // of another part; false: they are others
void make_ups_slow(arena *a, search_result *r); // parts are put together: of those that are listed, too
void make_ups_settle(search_result *r);         // what is told of each

// ---- outcome.c ----------------------------------------------------------------------------------------
kept kept_new(arena *a, const search_opts *o, u32 npoints);
void kept_add(kept *k, i64 time_ps);
i64 kept_last(const kept *k); // the time above which a lower bound is too slow; INT64_MAX: there is none yet
// Points that stand for other cuts of one that is too slow, and are too slow as well, are equal to it after all: whether
// they were looked at is a matter of order.
void outcome_refit(arena *a, const search_opts *o, search_result *r, const point_order *order);
// Which of the points that were applied are too slow after all. Ranks the points, adds them to the counts and
// reasons that r has. order: of the points.
void outcome_settle(arena *a, const search_opts *o, search_result *r, const point_order *order);
void outcome_count(arena *a, search_result *r, const search_point *p); // one point
// May a hint be that of a reason? Of the only point, or of all for one reason that is no matter of numbers.
bool outcome_one_reason(const search_result *r);
void outcome_no_plan(ctx *c, const search_opts *o, const search_result *r);
#endif
