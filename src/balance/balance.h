// balance.h - exact shares of work for devices of different speed and memory. Layer 1. Knows no programs and
// no machines: times, bytes and limits come from the caller. Integers only, so that an optimum is one: times
// in picoseconds, memory in bytes.
//
// Every function returns BALANCE_OK or what makes the problem impossible, with the figures in the result: the
// caller words it. Results lie in the arena that the caller passes. Same input, same result, on every
// machine.
#ifndef HEDDLE_BALANCE_H
#define HEDDLE_BALANCE_H
#include "base/base.h"

// What makes a problem impossible, and where the figures are.
typedef enum {
  BALANCE_OK,
  // shares
  BALANCE_CAPS,   // the caps sum to less than what is shared out, by `off`
  BALANCE_LEASTS, // the least shares sum to more than that, by `off`
  BALANCE_SUM,    // no shares that are possible have this sum
  // stages
  BALANCE_LAYER,  // layer `layer` fits on no device: it needs need_bytes, the largest has have_bytes
  BALANCE_MEMORY, // on all devices (on `stages` of them) only the last `placed` layers fit
  BALANCE_STAGES, // too few devices or layers, or no plan with just so many stages though there are some with fewer
  BALANCE_STATES, // too large: `states` is more than 4,194,304 sets of devices, or 67,108,864 sums to keep
} balance_fault;

// ---- shares: data, tensor -----------------------------------------------------------------------------
// `total` quanta (samples; heads or tiles of a tensor) are shared out over ranks, so that the slowest rank is
// as fast as it can be: rank i gets b_i quanta, least_i <= b_i <= cap_i, sum b_i = total, and max t_i(b_i) is
// minimal. Ranks that are alike are one kind. A rank without quanta takes part too: t_i(0) counts.
//
// Picoseconds for so many quanta of a rank of a kind, below BALANCE_TIMES. Asked for least to min(cap,
// total).
typedef i64 balance_time(const void *arg, u32 kind, i64 quanta);
#define BALANCE_TIMES  ((i64)1 << 60)
#define BALANCE_QUANTA ((i64)1 << 31)
#define BALANCE_RANKS  ((i64)1 << 20)
typedef struct {
  u32 count;             // ranks
  i64 least, cap;        // quanta of one rank, 0 <= least <= cap
  i64 fixed_ps, each_ps; // fixed + b * each for b quanta; not read where balance_batch.time is given
} balance_ranks;
typedef struct {
  i64 total; // 0 to BALANCE_QUANTA
  u32 nkinds;
  const balance_ranks *kind; // up to BALANCE_RANKS ranks, one or more
  balance_time *time;        // NULL: fixed_ps and each_ps
  const void *arg;
  // Times may fall as quanta are added (kernels made for whole tiles). INT64_MAX: not possible with so many.
  bool falls;
} balance_batch;
typedef struct {
  const i64 *share; // by rank, those of kind 0 first
  i64 time_ps;      // of the slowest rank: no shares have less
  i64 off;          // BALANCE_CAPS, BALANCE_LEASTS
} balance_split;

// The optimum. Where times never fall it is T* = min {T : sum b_i(T) >= total}, b_i(T) the most quanta that
// rank i finishes by T; found by bisection in O(nkinds log total) steps, each with as many times asked for. Of all optima it
// is the one that a heap gives: the first `total` quanta in the order of (time of the rank with this quantum,
// its number on the rank, rank); so ranks of one kind differ by one quantum at most, and the first have more.
//
// Where times may fall: bisection over the times that there are, with the sums that the ranks can make as
// sets of bits; O(ranks * cap * total / 64) for each of its log(nkinds * cap) steps. Of all optima, the one
// in which each rank in turn has the share nearest to an even part of what is left, the larger of two.
balance_fault balance_shares(arena *a, const balance_batch *in, balance_split *out);

// ---- stages: pipeline ---------------------------------------------------------------------------------
// A chain of layers is cut into stages of one or more layers, each on a device of its own; not every device
// need be used. Wanted are the devices, their order and the cuts. With stage i of N, from 0, on a device of
// kind k:
//
//   t_i   = sum of time_ps[k] of its layers, forward and backward of one microbatch
//   s_i   = send_ps of the cut behind it, between its kind and the next one's; it runs beside the stages
//   tau   = max over all t_i and s_i: the bottleneck
//   total = (micro - 1) tau + sum t_i + sum s_i: the time of a step
//   bytes = sum of fixed_bytes + a_i * sum of kept_bytes of its layers <= memory_bytes[k], with a_i = min(N - i, micro) as of 1F1B,
//           or as `alive` has it
typedef struct {
  u32 count; // devices
  i64 memory_bytes;
} balance_devices;
// Picoseconds to bring the activations of a microbatch over the cut behind layer cut - 1, and their gradient
// back.
typedef i64 balance_send(const void *arg, u32 cut, u32 from_kind, u32 to_kind);
typedef enum {
  BALANCE_TOTAL,      // least total; of those, least tau
  BALANCE_BOTTLENECK, // least tau; of those, least total
} balance_aim;
typedef struct {
  u32 nlayers, nkinds; // layers: 1 to 65,534
  const balance_devices *kind;
  const i64 *const *time_ps; // [kind][layer], those of a kind below BALANCE_TIMES in all
  const i64 *fixed_bytes;    // by layer: weights, gradients, optimizer states; NULL: none
  const i64 *kept_bytes;     // by layer: what the backward of one microbatch needs; NULL: nothing
  u32 micro;                 // microbatches, one or more; the total of any plan must be below 2^62
  u32 stages;                // exactly so many; 0: any number
  const u32
      *alive; // microbatches under way, by stages from this one to the last, less one; NULL: those of 1F1B
  balance_send *send; // NULL: sends take no time. Asked for every cut and pair of kinds, once
  const void *arg;
  balance_aim aim;
} balance_line;
typedef struct {
  u32 nstages;
  const u32 *kind, *end; // by stage: its device; one past its last layer
  i64 tau_ps, total_ps;
  i64 tau_bound_ps, total_bound_ps; // no plan has less, found without a search: see below
  u32 layer, placed;                // of BALANCE_LAYER, BALANCE_MEMORY
  i64 need_bytes, have_bytes;
  u64 states; // sets of devices
} balance_cuts;

// The optimum of the aim, exactly. Of all plans with the same tau and total, that with the fewest stages; of
// those that with the fewest devices of the last kind, then of the kind before it, ..; of those that whose
// first stage is on the lowest kind and has the fewest layers, then the second, ..
//
// How. A state is a set of devices, so many of each kind; the last stages run on them. So how many devices it
// has says what its first stage keeps, whatever comes before it. A part of a stage that fits a device, in
// time and memory, fits it too; so where no send can be the bottleneck and any number of stages will do, only
// the first cut that a state reaches under a tau matters, and tau is bisected over the times of neighbouring
// layers: O(states * kinds) each. Else tau is bisected, and in any case the least sum of t_i and s_i is
// found, with a sum for every cut (and kind of the first stage) that a state reaches and from which the other
// devices reach the first layer: O(states * kinds * layers
// * (kinds, with sends)) at most. For the least total, taus between the least and the largest that can pay
// are tried by branch and bound.
//
// The bounds. For every y >= 0, tau >= (sum_l min_k y_k time_kl) / (sum of y over the devices), here with y_k
// = 1 / (time of all layers on kind k), and over the devices with the largest y if there are more than
// stages: W / sum F where kinds differ by a factor. Also no less than any layer on the kind that is fastest
// for it. For the total, (micro - 1) tau + every layer on the kind that is fastest for it.
balance_fault balance_stages(arena *a, const balance_line *in, balance_cuts *out);

// Several chunks on a place, for interleaved schedules: chunk c of place r is stage c * nplaces + r, as in
// sched.h, or where `place` says. What a place does is then a sum over chunks, which all passes through the same
// order of devices share: what a set of devices reaches no longer says enough, so balance_stages does not do it.
// Here the order is given.
//
// With one chunk on a place and `micro` microbatches, exactly (below 2^62) the cuts with the least
//
//   sum over all t_i and ways * send_i
//   + max over all (micro - 1) t_i + once_i, (micro - 1) send_i, and where it waits (micro - 1) back_i / alive_i
//
// With few microbatches layers are worth more on fast places than tau is, and what a place does once a step is worth
// as much. back_i is the sum of t_j and ways * send_j over j >= i. Where stages wait (`waits`), stage i with alive_i
// microbatches under way begins no other one before one of them has come back, if there are more than that. Of cuts that take the same those with the shortest
// longest stage; of these the fewest layers in the first stage, then in the second, .. O(stages * layers) for each limit
// of the longest that is tried: tens, mostly.
//
// With several chunks, or any number of microbatches (0), sends, memory and what comes once are left out: what a chunk
// keeps is the schedule's. What a microbatch waits for in the end is the busiest place, tau_ps; of cuts with the same, a
// shorter longest chunk (longest_ps) fills the pipeline sooner, and then the less the sum of squares of the chunks' times
// is the better. One chunk on a place is exact in all three. With several, tau_ps may be more than it need be: for
// limits of 1 to 9 times the least longest chunk, cuts with the least sum of squares are evened out by handing layers
// from stage to stage while the busiest of the places concerned gets less to do; the best of these is taken.
// O(chunks * layers^2 + rounds * chunks^3).
//
// No cuts have less than tau_bound_ps, found as above. BALANCE_STAGES: fewer layers than chunks. BALANCE_MEMORY: no
// cuts fit.
typedef struct {
  u32 nlayers, nkinds, nplaces, nchunks; // chunks of one place
  const u32 *kind;                       // by place
  const u32 *place;                      // by stage, nchunks for each place; NULL: they go round
  const i64 *const *time_ps;             // [kind][layer]
  u32 micro;                             // microbatches; 0: any number
  // One chunk on a place, each may be NULL. Picoseconds to send the activations of a microbatch over the cut behind layer
  // cut - 1 to the next place, [place][cut]; `ways` 2: and as long for their gradient, on a channel of its own.
  const i64 *const *send_ps;
  u32 ways;
  const i64 *const *once_ps; // [kind][layer]: what it takes once a step, behind the last microbatch
  // Bytes, with memory_bytes: by place. By layer: what lies there, what every microbatch under way keeps, and what it
  // takes besides while it runs, of which the most of a place counts.
  const i64 *memory_bytes, *fixed_bytes, *kept_bytes, *work_bytes;
  const u32 *alive; // microbatches under way, by stage; NULL: those of 1F1B
  bool waits;       // for one to come back, with so many under way
} balance_passes;
typedef struct {
  const u32 *end; // by stage: one past its last layer
  i64 longest_ps, tau_ps, tau_bound_ps;
} balance_chunked;
balance_fault balance_chunks(arena *a, const balance_passes *in, balance_chunked *out);

// ---- Whale --------------------------------------------------------------------------------------------
// The heuristics of Whale (Jia et al., "Whale: Efficient Giant Model Training over Heterogeneous GPUs",
// USENIX ATC 2022), with its names: a policy beside the optimum, which it may miss.
//
// Algorithm 1, memory-constraint load balancing. Device i begins with the load_ratio DF_i / sum DF. It is an
// oom_device if load_ratio_i * TG_mem > DM_i, else a free_device. While there are some of both, peak_device
// is the oom_device with the highest mem_util = load_ratio * TG_mem / DM; valley_device the free_device with
// the lowest flop_util = load_ratio * TG_flop / DF (TG_flop is a factor of all, so nobody asks for it), of
// equal ones that with the lowest mem_util; of equal ones the first. shift_load moves what the peak has too
// much, or as much as the valley has room for; without room the valley is no longer a free_device.
//
// As printed, a peak leaves the oom_devices after one shift even if it still does not fit: DF 16, 8, 8 with
// DM 10, 14, 16 GB and TG_mem 38 GB would end with 12.5 GB on the first. Here it leaves when it fits: 10, 12,
// 16.
//
// Loads are whole quanta (load_ratio = load / quanta), at first rounded by largest remainder, of equal ones
// the first. BALANCE_CAPS if some device still does not fit: by `off` quanta, all together.
typedef struct {
  u32 n;              // devices, one or more
  const i64 *DF, *DM; // by device: speed, above 0, in any unit; bytes that it has for the load
  i64 TG_mem;         // bytes of the whole load
  i64 quanta;         // parts that it has, such as samples
} balance_whale;
typedef struct {
  const i64 *load;        // by device, in quanta
  u32 noom;               // devices that do not fit
  const u32 *oom_devices; // ascending
  i64 off;
} balance_loads;
balance_fault balance_whale_loads(arena *a, const balance_whale *in, balance_loads *out);

// Its pipelines, which the paper has in words (section 3.3.2): one stage a device, all devices, those with
// more memory first (of equal ones as they were), as earlier stages keep more forwards: N - i of them in
// stage i of N, or `micro`. The layers are cut where the FLOP before is nearest to the part that the devices
// before have of sum DF, then Algorithm 1 balances them: shift_load moves the cuts between peak and valley, a
// layer at a time, until the peak fits; not so far that the peak has no layer, or that a device that fits no
// longer does. BALANCE_STAGES: fewer layers than devices. BALANCE_MEMORY: some device still does not fit.
typedef struct {
  u32 n;                                      // devices, one or more
  const i64 *DF, *DM;                         // by device, as above; DM is all its memory
  u32 nlayers, micro;                         // one or more
  const i64 *flop, *fixed_bytes, *kept_bytes; // by layer, as in balance_line
} balance_whale_line;
typedef struct {
  const u32 *device, *end; // by stage: one past its last layer
  u32 noom;
  const u32 *oom_devices; // in the order of stages
} balance_whale_cuts;
balance_fault balance_whale_stages(arena *a, const balance_whale_line *in, balance_whale_cuts *out);
#endif
