// usage.h - where the time of one process goes, on its device, on a stream, in kernels. Part of diagnose.h. Not who was late,
// which takes several (replay.h).
#ifndef HEDDLE_DIAGNOSE_USAGE_H
#define HEDDLE_DIAGNOSE_USAGE_H
#include "diagnose/job.h"

// ---- where the time goes: breakdown.c -------------------------------------------------------------------
comm_kind comm_kind_of(ctx *c, const trace *t, u32 event); // of a kernel that is a communication
// Why a device or stream had nothing to do until the next event began.
typedef enum {
  IDLE_HOST,   // it was launched only after the idle time had begun
  IDLE_KERNEL, // it had been launched, and the pause is shorter than 30 us: what starting a kernel takes
  IDLE_OTHER,  // it had been launched: it waited for another stream, or for memory
  IDLE_KINDS
} idle_kind;
// Of the device of one process, from the first start to the last end: span = compute + the exposed + idle. Every
// instant counts once: as compute if a kernel computes, else as communication, else as a copy (or fill), else as idle.
// Of communications that are exposed together the first kind counts.
typedef struct {
  u32 events;
  i64 span_ps, compute_ps;
  i64 comm_ps;    // in which a communication ran, computing or not
  i64 overlap_ps; // of it, while a kernel computed
  i64 exposed_ps[COMM_KINDS], copy_ps;
  i64 idle_ps[IDLE_KINDS];
} breakdown;
// event: n of them, of which those on the device count.
breakdown breakdown_of(ctx *c, arena *tmp, const trace *t, u32 n, const u32 *event);
// Of the chosen steps, whose events these are: a sum over stretches of steps that follow each other, so that steps
// that were not chosen are not idle time. Without steps of all events.
breakdown breakdown_of_steps(ctx *c, arena *tmp, const trace *t, const job_steps *s, const bool *chosen,
                             u32 n, const u32 *event);
static inline i64 breakdown_exposed_ps(const breakdown *b) {
  i64 sum = 0;
  for (u32 k = 0; k < COMM_KINDS; k++) sum += b->exposed_ps[k];
  return sum;
}
static inline i64 breakdown_idle_ps(const breakdown *b) {
  return b->idle_ps[IDLE_HOST] + b->idle_ps[IDLE_KERNEL] + b->idle_ps[IDLE_OTHER];
}

// ---- one stream: streams.c ------------------------------------------------------------------------------
typedef struct {
  u32 events;
  i64 busy_ps, idle_ps[IDLE_KINDS]; // idle between its events
  // How many events were launched and had not begun, after every launch and every begin. A launch that comes at
  // the instant of a begin counts first; queue_mean_begin: the mean if the begin does.
  u32 queue_n; // launches and begins; 0: the file does not say what launched anything
  u32 queue_max;
  double queue_mean, queue_mean_begin, queue_std, queue_median;
} stream_times;
stream_times stream_times_of(arena *tmp, const trace *t, u32 lane, u32 n, const u32 *event);

// ---- what runs: kernels.c -----------------------------------------------------------------------------------
typedef struct {
  sym name;
  trace_is is;
  bool comm;
  u32 count;
  i64 total_ps, min_ps, max_ps;
} kernel_use;
// Communications of one operation, size of group and number of bytes.
typedef struct {
  sym op, type;
  u32 size;        // 0: not known
  i64 bytes;       // -1: not known
  VEC(i64) dur_ps; // in order when kernel_uses_sort is done
} comm_use;
typedef struct {
  VEC(kernel_use) kernels;
  VEC(comm_use) comms;
  hmap by_name, by_comm;
} kernel_uses;
void kernel_uses_add(arena *a, kernel_uses *u, const trace *t, u32 n, const u32 *event);
void kernel_uses_sort(kernel_uses *u); // the longest total first
// Bytes that cross the slowest link for every byte of the communication, as nccl-tests count; 0: not known.
double comm_bus_factor(const char *op, u32 size);
#endif
