// internal.h - what the files of balance/ share among themselves and hide from everybody else.
#ifndef HEDDLE_BALANCE_INTERNAL_H
#define HEDDLE_BALANCE_INTERNAL_H
#include "balance/balance.h"

__extension__ typedef __int128 wide; // products of two i64

// ---- shares -------------------------------------------------------------------------------------------
static inline i64 share_time(const balance_batch *in, u32 kind, i64 quanta) {
  if (in->time) return in->time(in->arg, kind, quanta);
  return add_sat(in->kind[kind].fixed_ps, mul_sat(in->kind[kind].each_ps, quanta));
}
// Quanta that a rank of a kind can have: no more than there are.
static inline i64 share_most(const balance_batch *in, u32 kind) { return MIN(in->kind[kind].cap, in->total); }

// Shares of times that may fall; tmp is scratch. The sums of least shares and caps have been checked.
balance_fault shares_any(arena *a, arena *tmp, const balance_batch *in, balance_split *out);

// ---- stages -------------------------------------------------------------------------------------------
enum { STATES_MAX = 1 << 22, CELLS_MAX = 1 << 26 };
static const i64 NEVER = INT64_MAX / 2; // no sum: more than any, and may be added to

// Layers as cuts: cut e has e layers before it. A *state* is a set of devices, as so many of each kind: the
// digits of its number. It stands for the last stages, which run on them; its *depth* is how many they are,
// so the first of them keeps as many forwards, or all microbatches.
typedef struct {
  const balance_line *in;
  arena *tmp;
  u32 K, L;
  u32 most;            // stages of a plan
  u32 *count, *stride; // by kind: devices that can be of use; what one of them adds to the number of a state
  u32 devices, nstates;
  i64 *time;        // [kind * (L + 1) + cut]: of the layers before it
  wide *over;       // [m * K + kind], see rest.c
  i64 *need;        // [m * (L + 1) + cut]
  i64 *send;        // [(from * K + to) * (L + 1) + cut]; NULL: none
  i64 most_send;    // longest
  u32 nkept;        // depths that differ in what they keep
  u16 *fit_start;   // [row_at(depth, kind) + e]: of the longest stage that ends at e and fits
  u16 *fit_end;     // [row_at(depth, kind) + s]: of the longest stage that starts at s and fits
  u16 *start, *end; // the same under the bottleneck `tau` too
  i64 tau;
  u16 *reach; // by state: these devices reach no cut before it from the last layer on
  u16 *front; // by state: the others reach no cut behind it from the first layer on
} line;

static inline u32 row_at(const line *l, u32 depth, u32 kind) {
  return ((MIN(depth, l->nkept) - 1) * l->K + kind) * (l->L + 1);
}
// The state after one: used and depth belong to it. False: there is none.
static inline bool next_state(const line *l, u32 *used, u32 *depth) {
  for (u32 k = 0; k < l->K; k++) {
    if (used[k] < l->count[k]) {
      used[k]++, ++*depth;
      return true;
    }
    *depth -= used[k], used[k] = 0;
  }
  return false;
}

// Returns how many states there are; above STATES_MAX nothing but that is known.
u64 line_open(line *l, arena *tmp, const balance_line *in);
void line_limit(line *l, i64 tau); // sets tau, start and end
// reach, sends left out of account. Returns the cut nearest to the first layer that any state reaches.
u32 line_reach(line *l);
void line_front(line *l);
// The least that the layers before a cut take. Over all layers, if no stage is longer than tau; by cut, from
// lo to hi, on the devices that a state leaves, with the prices of the bottleneck.
void line_rests(line *l); // finds over and need
i64 line_rest_under(const line *l, i64 tau);
i64 *line_prices(const line *l, arena *a);
void line_rest(const line *l, const i64 *prices, const u32 *used, u32 depth, u32 lo, u32 hi, i64 *rest);
// What no `most` of these devices, count[k] of kind k (no fewer than `most` in all), can be faster than:
// balance.h.
i64 speed_bound(arena *tmp, u32 L, u32 K, const i64 *const *time, const u32 *count, u32 most);
// The bottlenecks that a plan may have, above one and up to another: ascending, each once. Returns how many.
u32 line_bottlenecks(const line *l, arena *a, i64 above, i64 upto, i64 **out);

// Sums of stages and sends under the bottleneck, by state and cut.
typedef struct {
  i64 *sum;   // [kind * (hi - lo + 1) + cut - lo]; one kind where there are no sends. NULL: of no cut
  u16 lo, hi; // cuts
} sums_row;
typedef struct {
  const line *l;
  sums_row *row; // by state
  u64 cells;     // sums that there are; above CELLS_MAX: it was given up
  i64 least;     // NEVER: there is no plan
  u32 state;     // that has it
} sums;
// The least sum of a plan under tau, if it is not more than `most`. Everything is allocated in a.
void line_sums(line *l, arena *a, i64 tau, i64 most, sums *out);

// One chunk on each place, with micro: balance_chunks. Times by kind and cut, of the layers before it.
balance_fault chunks_in_order(arena *tmp, const balance_passes *in, const i64 *time, const i64 *once,
                              u32 *end);

// Stages of a plan, first stage first: kind and end of at most `most` of them. Return how many.
u32 path_of_sums(const sums *s, u32 *kind, u32 *end);  // with the least sum; line_limit is still that of s
u32 path_of_reach(const line *l, u32 *kind, u32 *end); // with the fewest stages; reach is 0 for some state
i64 path_bottleneck(const line *l, u32 n, const u32 *kind, const u32 *end);
i64 path_sum(const line *l, u32 n, const u32 *kind, const u32 *end);
#endif
