// lanes.c - one pass over a line for several sets of stages at once, each in a lane of vectors. Stages of few
// rank classes, whose tasks have one value that comes and one that leaves, at most.
//
// Idea: times are doubles here, since every instruction set has a maximum of doubles and few have one of 64-bit
// integers. Doubles are exact to 2^53 ps, which is two and a half hours: all that is waited for comes to a clock or a
// channel, so where none of these passes half of that in the end, nothing did. Else the caller runs each alone.
#include "sim/pipe.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const double EXACT = (double)((i64)1 << 52);
typedef struct {
  double of[SIM_LANES];
} __attribute__((aligned(64), may_alias)) lanes;

typedef struct {
  lanes clock_in[2], value_in[2], clock_out[2], value_out[2]; // by class; of maps of rank one
  const lanes
      *full;    // else, NULL: every lane's map is of rank one: by output and input, what some lane waits for
  const u8 *in; // ... the input of each
  u16 end[2 * SIMPLE_CLASSES]; // ... by output: behind its last. Clocks come first, then the value
} lane_task;
typedef struct {
  const sim_line *l;
  lanes *clock, *channel, *value; // as a pipe has them
  const lane_task *const *task;   // by op.what
  const lanes *dur;               // of sends, [what * classes + class]
  const u32 *strm;                // ... likewise, times places
} lane_pass;

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

// ---- instruction sets ------------------------------------------------------------------------------------
#if defined(__x86_64__)
#define PASS(name) name##_sse2
#define TARGET
#define VECTOR       __m128d
#define VECTORS      (SIM_LANES / 2)
#define LATEST(x, y) _mm_max_pd(x, y)
#include "sim/lanes_pass.h"

#define PASS(name)   name##_avx2
#define TARGET       __attribute__((target("avx2")))
#define VECTOR       __m256d
#define VECTORS      (SIM_LANES / 4)
#define LATEST(x, y) _mm256_max_pd(x, y)
#include "sim/lanes_pass.h"

#define PASS(name)   name##_avx512
#define TARGET       __attribute__((target("avx512f")))
#define VECTOR       __m512d
#define VECTORS      (SIM_LANES / 8)
#define LATEST(x, y) _mm512_max_pd(x, y)
#include "sim/lanes_pass.h"
#else
#define PASS(name) name##_plain
#define TARGET
#define VECTOR       double
#define VECTORS      SIM_LANES
#define LATEST(x, y) MAX(x, y)
#include "sim/lanes_pass.h"
#endif

typedef void pass(const lane_pass *x, u32 C);
static pass *pass_here(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return run_avx512;
  if (__builtin_cpu_supports("avx2")) return run_avx2;
  return run_sse2;
#else
  return run_plain;
#endif
}

// ---- what lanes run ----------------------------------------------------------------------------------------
static double wait_of(const task_map *m, u32 o, u32 i, u32 C) {
  const u32 nin = (1 + m->nin) * C, nout = (1 + m->nout) * C;
  return (double)(m->a && o < nout && i < nin ? m->a[o * nin + i] : STAGE_NEVER);
}

static void put_one(lane_task *to, u32 lane, const task_map *m, u32 C) {
  for (u32 c = 0; c < C; c++) {
    to->clock_in[c].of[lane] = (double)m->from[c], to->value_in[c].of[lane] = (double)m->from[C + c];
    to->clock_out[c].of[lane] = (double)m->to[c], to->value_out[c].of[lane] = (double)m->to[C + c];
  }
}

// Do all lanes have the same representative stages?
static bool same_likes(pipe *const *p, u32 n) {
  const sim_pipeline *pl = &p[0]->st->pl;
  for (u32 k = 1; k < n; k++)
    if (memcmp(p[k]->st->pl.like, pl->like, pl->nstages * sizeof *pl->like) != 0) return false;
  return true;
}

// Zeroed, and aligned to lines of the cache.
static void *blank(arena *tmp, size_t n, size_t size) {
  char *v = arena_alloc(tmp, n * size + sizeof(lanes));
  v += -(uintptr_t)v % sizeof(lanes);
  return memset(v, 0, n * size);
}

// Lanes from n on do as the last one does.
static void put_task(lane_task *to, pipe *const *p, u32 n, u32 w, arena *tmp) {
  const u32 C = p[0]->C;
  bool one = C <= 2;
  for (u32 k = 0; k < n; k++) one &= !p[k]->task[w].a || p[k]->task[w].one;
  for (u32 k = 0; one && k < SIM_LANES; k++) put_one(to, k, &p[MIN(k, n - 1)]->task[w], C);
  if (one) return;
  lanes *full = blank(tmp, 4 * C * C + 1, sizeof *full);
  u8 *in = NEWN(tmp, u8, 4 * C * C);
  u32 at = 0;
  for (u32 o = 0; o < 2 * C; o++) {
    for (u32 i = 0; i < 2 * C; i++) {
      bool any = false;
      for (u32 k = 0; k < SIM_LANES; k++) {
        full[at].of[k] = wait_of(&p[MIN(k, n - 1)]->task[w], o, i, C);
        any |= full[at].of[k] != (double)STAGE_NEVER;
      }
      if (any) in[at++] = (u8)i;
    }
    to->end[o] = (u16)at;
  }
  to->full = full, to->in = in;
}

// Are all times that somebody waited for exact?
static bool all_exact(const lanes *v, size_t n) {
  double last = 0;
  for (size_t q = 0; q < n; q++)
    for (u32 k = 0; k < SIM_LANES; k++) last = MAX(last, v[q].of[k]);
  return last < EXACT;
}

bool lanes_run(pipe *const *p, u32 n, arena *tmp) {
  const sim_pipeline *pl = &p[0]->st->pl;
  const u32 C = p[0]->C, tasks = TASK_KINDS * pl->nstages, sends = 2 * pl->nlinks, cells = pl->nplaces * C;
  const size_t channels = (size_t)cells * p[0]->st->nstreams;
  lane_task *task = blank(tmp, tasks, sizeof *task);
  const lane_task **of = NEWN(tmp, const lane_task *, tasks);
  lanes *dur = blank(tmp, sends * C, sizeof *dur);
  u32 *strm = NEWN(tmp, u32, sends + 1);
  const bool likes = same_likes(p, n);
  for (u32 w = 0; w < tasks; w++) {
    const u32 as = likes ? w - w % pl->nstages + pl->like[w % pl->nstages] : w;
    of[w] = &task[as];
    if (as == w) put_task(&task[w], p, n, w, tmp);
  }
  for (u32 w = 0; w < sends; w++) {
    strm[w] = p[0]->send[w].strm * cells;
    for (u32 k = 0; k < n; k++)
      for (u32 c = 0; c < C; c++) dur[w * C + c].of[k] = (double)p[k]->send[w].dur[c];
  }
  const lane_pass x = {.l = p[0]->l,
                       .clock = blank(tmp, cells, sizeof(lanes)),
                       .channel = blank(tmp, channels, sizeof(lanes)),
                       .value = blank(tmp, (size_t)p[0]->l->nslots * C, sizeof(lanes)),
                       .task = of,
                       .dur = dur,
                       .strm = strm};
  for (u32 k = 0; k < SIM_LANES; k++)
    for (u32 c = 0; c < C; c++) x.value[SLOT_NEVER * C + c].of[k] = (double)STAGE_NEVER;
  for (u32 k = 0; k < n; k++) {
    for (u32 q = 0; q < cells; q++) x.clock[q].of[k] = (double)p[k]->clock[q];
    for (size_t q = 0; q < channels; q++) x.channel[q].of[k] = (double)p[k]->channel[q];
  }
  pass_here()(&x, C);
  if (!all_exact(x.clock, cells) || !all_exact(x.channel, channels)) return false;
  for (u32 k = 0; k < n; k++) {
    for (u32 q = 0; q < cells; q++) p[k]->clock[q] = (i64)x.clock[q].of[k];
    for (size_t q = 0; q < channels; q++) p[k]->channel[q] = (i64)x.channel[q].of[k];
  }
  return true;
}
