// lanes.c - one pass over a line for several sets of stages at once, each in a lane of vectors. Stages of few
// rank classes, whose tasks have few values that come and that leave.
//
// Idea: times are doubles here, since every instruction set has a maximum of doubles and few have one of 64-bit
// integers. Doubles are exact to 2^53 ps, which is two and a half hours: all that is waited for comes to a clock or a
// channel, so where none of these passes half of that in the end, nothing did. Else the caller runs each alone.
//
// Ranks of a place meet in most tasks. Where they do in all of them, a task is one moment, from which its clocks and
// its value follow by constants: a moment is the one before it on its place, or when its value has come, whichever is
// later, and what is added to them does not depend on times. So a place has one number, a value too, and classes are
// told apart on channels only.
#include "sim/pipe.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const double EXACT = (double)((i64)1 << 52);
typedef struct {
  double of[SIM_LANES];
} __attribute__((aligned(64), may_alias)) lanes;

enum { LANE_PORTS = (1 + LANE_VALUES) * SIMPLE_CLASSES };
typedef struct {
  // Of rank one in all lanes: what every input takes, what every output takes after the latest of these. Clocks come
  // first, then the values. NULL: it is not
  const lanes *from, *to;
  const lanes *full;   // by output and input, what some lane waits for
  const u8 *in;        // ... the input of each
  u16 end[LANE_PORTS]; // ... by output: behind its last
} lane_task;
typedef struct {
  bool streams;     // else it occupies compute clocks
  lanes *from, *to; // clocks, by class; to: the same as from where a channel has these two ends only
  const lanes *dur; // by class
} lane_send;
typedef struct {
  const sim_line *l;
  lanes *clock,
      *value; // as a pipe has them; of moments: the latest by place; when that of the task that takes the value
              // may be, by slot
  const lane_send *send; // by what
  // Classes one by one: tasks by what
  const lane_task *const *task;
  // Moments: by pair, from one to the next (NULL: these are not known); from one to its value, [what * C + class]; from
  // a value that has come to the moment of who takes it, likewise
  const lanes *pair, *made, *taken;
} lane_pass;

#if defined(__clang__)
#define UNROLL         _Pragma("unroll")
#define UNROLL_CLASSES // it unrolls what it knows the number of, and warns of the rest
#else
#define UNROLL         _Pragma("GCC unroll 8")
#define UNROLL_CLASSES UNROLL
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

static bool all_one(pipe *const *p, u32 n, u32 w) {
  for (u32 k = 0; k < n; k++)
    if (!p[k]->task[w]->one) return false;
  return true;
}

static void put_one(lane_task *to, pipe *const *p, u32 n, u32 w, u32 ni, u32 no, arena *tmp) {
  lanes *v = blank(tmp, ni + no, sizeof *v);
  for (u32 k = 0; k < n; k++) {
    for (u32 i = 0; i < ni; i++) v[i].of[k] = (double)p[k]->task[w]->from[i];
    for (u32 o = 0; o < no; o++) v[ni + o].of[k] = (double)p[k]->task[w]->to[o];
  }
  to->from = v, to->to = v + ni;
}

// Lanes from n on do as the last one does.
static void put_full(lane_task *to, pipe *const *p, u32 n, u32 w, u32 ni, u32 no, arena *tmp) {
  lanes *full = blank(tmp, ni * no + 1, sizeof *full);
  u8 *in = NEWN(tmp, u8, ni * no);
  u32 at = 0;
  for (u32 o = 0; o < no; o++) {
    for (u32 i = 0; i < ni; i++) {
      bool any = false;
      for (u32 k = 0; k < SIM_LANES; k++) {
        full[at].of[k] = wait_of(p[MIN(k, n - 1)]->task[w], o, i, p[0]->C);
        any |= full[at].of[k] != (double)STAGE_NEVER;
      }
      if (any) in[at++] = (u8)i;
    }
    to->end[o] = (u16)at;
  }
  to->full = full, to->in = in;
}

static void put_task(lane_task *to, pipe *const *p, u32 n, u32 w, arena *tmp) {
  const task_map *m = p[0]->task[w];
  const u32 ni = (1 + MAX(m->nin, 1u)) * p[0]->C, no = (1 + MAX(m->nout, 1u)) * p[0]->C;
  *to = (lane_task){.from = NULL};
  (all_one(p, n, w) ? put_one : put_full)(to, p, n, w, ni, no, tmp);
}

static const lane_task *const *put_tasks(pipe *const *p, u32 n, arena *tmp) {
  const sim_pipeline *pl = &p[0]->st->pl;
  const u32 tasks = TASK_KINDS * pl->nstages;
  const bool likes = same_likes(p, n);
  lane_task *task = NEWN(tmp, lane_task, tasks);
  const lane_task **of = NEWN(tmp, const lane_task *, tasks);
  for (u32 w = 0; w < tasks; w++) {
    const u32 as = likes ? w - w % pl->nstages + pl->like[w % pl->nstages] : w;
    of[w] = &task[as];
    if (as == w) put_task(&task[w], p, n, w, tmp);
  }
  return of;
}

// ---- moments -----------------------------------------------------------------------------------------------
static bool has_moments(pipe *const *p, u32 n) {
  const sim_line *l = p[0]->l;
  for (u32 i = 0; l->at_once && i < l->npairs; i++)
    for (u32 k = 0; k < n; k++)
      if (!p[k]->task[l->pair[i].what]->all) return false;
  return l->at_once;
}

// From the moment of one task of a place to that of the next; to the first one from time 0.
static double between(const pipe *p, const sim_pair *x) {
  const task_map *m = p->task[x->what], *before = x->before ? p->task[x->before - 1] : NULL;
  const i64 *clock = p->clock + p->st->pl.place[x->what % p->st->pl.nstages] * p->C;
  i64 t = STAGE_NEVER;
  for (u32 c = 0; c < p->C; c++) t = MAX(t, (before ? before->to[c] : clock[c]) + m->from[c]);
  return (double)t;
}

static void put_moments(lane_pass *x, pipe *const *p, u32 n, arena *tmp) {
  const u32 C = p[0]->C, tasks = TASK_KINDS * p[0]->st->pl.nstages;
  lanes *pair = blank(tmp, x->l->npairs + 1, sizeof *pair);
  lanes *made = blank(tmp, (size_t)tasks * C, sizeof *made),
        *taken = blank(tmp, (size_t)(tasks + 1) * C, sizeof *taken);
  for (u32 k = 0; k < n; k++) {
    for (u32 i = 0; i < x->l->npairs; i++) pair[i].of[k] = between(p[k], &x->l->pair[i]);
    for (u32 w = 0; w < tasks; w++)
      for (u32 c = 0; p[k]->task[w]->a && c < C; c++) {
        made[w * C + c].of[k] = (double)p[k]->task[w]->to[C + c];
        taken[w * C + c].of[k] = (double)p[k]->task[w]->from[C + c];
      }
  }
  x->pair = pair, x->made = made, x->taken = taken;
}

// The clocks that the last tasks leave.
static void leave_clocks(const lane_pass *x, pipe *const *p, u32 n) {
  const u32 C = p[0]->C;
  for (u32 q = 0; q < p[0]->st->pl.nplaces; q++)
    for (u32 k = 0; x->l->last[q] && k < n; k++)
      for (u32 c = 0; c < C; c++)
        p[k]->clock[q * C + c] = (i64)x->clock[q].of[k] + p[k]->task[x->l->last[q] - 1]->to[c];
}

// ---- sends -------------------------------------------------------------------------------------------------
// Streams of a place by the other end of what is sent there: two ends that have each other only are one clock.
static void put_sends(lane_pass *x, pipe *const *p, u32 n, lanes *channel, arena *tmp) {
  const sim_pipeline *pl = &p[0]->st->pl;
  const u32 C = p[0]->C, sends = 2 * pl->nlinks, cells = pl->nplaces;
  lane_send *v = NEWN(tmp, lane_send, sends + 1);
  lanes *dur = blank(tmp, (size_t)sends * C + 1, sizeof *dur);
  enum { SEVERAL = ~0u };
  u32 *other = ZNEWN(tmp, u32, (size_t)cells * p[0]->st->nstreams + 1); // + 1
  for (u32 w = 0; w < sends; w++) {
    const send_map *s = &p[0]->send[w];
    const u32 end[2] = {s->strm * cells + s->from, s->strm * cells + s->to};
    for (u32 k = 0; k < 2; k++)
      if (other[end[k]] != end[!k] + 1) other[end[k]] = other[end[k]] ? SEVERAL : end[!k] + 1;
  }
  for (u32 w = 0; w < sends; w++) {
    const send_map *s = &p[0]->send[w];
    const u32 from = s->strm * cells + s->from, to = s->strm * cells + s->to;
    const bool own = s->strm && other[from] != SEVERAL && other[to] != SEVERAL;
    lanes *at = s->strm ? channel : x->clock;
    v[w] = (lane_send){s->strm, at + (size_t)(own ? MIN(from, to) : from) * C,
                       at + (size_t)(own ? MIN(from, to) : to) * C, dur + (size_t)w * C};
    for (u32 k = 0; k < n; k++)
      for (u32 c = 0; c < C; c++) dur[w * C + c].of[k] = (double)p[k]->send[w].dur[c];
  }
  x->send = v;
}

// Of ends that are one clock: it is the later one before a pass, and both are that clock after it.
static void join_ends(const lane_pass *x, const pipe *p, lanes *channel, bool after) {
  for (u32 w = 0; w < 2 * p->st->pl.nlinks; w++) {
    const send_map *s = &p->send[w];
    if (!s->strm || x->send[w].to != x->send[w].from) continue;
    lanes *of = x->send[w].from,
          *end = channel + ((size_t)s->strm * p->st->pl.nplaces + MAX(s->from, s->to)) * p->C;
    for (u32 c = 0; c < p->C; c++)
      for (u32 k = 0; k < SIM_LANES; k++) {
        if (!after) of[c].of[k] = MAX(of[c].of[k], end[c].of[k]);
        end[c].of[k] = of[c].of[k];
      }
  }
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
  const u32 C = p[0]->C, cells = pl->nplaces * C;
  const size_t channels = (size_t)cells * p[0]->st->nstreams, values = (size_t)p[0]->l->nslots * C;
  lanes *channel = blank(tmp, channels, sizeof *channel);
  lane_pass x = {.l = p[0]->l};
  x.clock = blank(tmp, cells, sizeof *x.clock), x.value = blank(tmp, values, sizeof *x.value);
  const bool moments = has_moments(p, n);
  if (moments)
    put_moments(&x, p, n, tmp);
  else
    x.task = put_tasks(p, n, tmp);
  put_sends(&x, p, n, channel, tmp);
  for (u32 k = 0; k < SIM_LANES; k++)
    for (u32 c = 0; c < C; c++)
      x.value[SLOT_NEVER * (moments ? 1 : C) + (moments ? 0 : c)].of[k] = (double)STAGE_NEVER;
  for (u32 k = 0; k < n; k++) {
    for (u32 q = 0; !moments && q < cells; q++) x.clock[q].of[k] = (double)p[k]->clock[q];
    for (size_t q = 0; q < channels; q++) channel[q].of[k] = (double)p[k]->channel[q];
  }
  join_ends(&x, p[0], channel, false);
  pass_here()(&x, C);
  join_ends(&x, p[0], channel, true);
  if (!all_exact(x.clock, moments ? pl->nplaces : cells) || !all_exact(channel, channels)) return false;
  for (u32 k = 0; k < n; k++) {
    for (u32 q = 0; !moments && q < cells; q++) p[k]->clock[q] = (i64)x.clock[q].of[k];
    for (size_t q = 0; q < channels; q++) p[k]->channel[q] = (i64)channel[q].of[k];
  }
  if (moments) leave_clocks(&x, p, n);
  return true;
}
