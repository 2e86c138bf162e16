// lanes.c - one pass over a line for several sets of stages at once, each in a lane of vectors. Stages of few
// rank classes, whose tasks have one value that comes and one that leaves, at most.
#include "sim/pipe.h"

#if defined(__x86_64__)
typedef i64 lanes __attribute__((vector_size(SIM_LANES * sizeof(i64)), aligned(64), may_alias));

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
  const lane_task *task;          // by of[op.what]
  const u32 *of;
  const lanes *dur; // of sends, [what * classes + class]
  const u32 *strm;  // ... likewise, times places
} lane_pass;

// Written once, compiled for each instruction set.
#define EACH static inline __attribute__((always_inline))

EACH void latest(lanes *t, const lanes *than) {
  for (u32 k = 0; k < SIM_LANES; k++) (*t)[k] = MAX((*t)[k], (*than)[k]);
}

EACH void run_full(const lane_task *m, lanes *clock, const lanes *in, lanes *out, const u32 C) {
  lanes y[2 * SIMPLE_CLASSES];
  for (u32 o = 0, k = 0; o < 2 * C; o++) {
    lanes t = {0};
    for (; k < m->end[o]; k++) {
      const u32 i = m->in[k];
      const lanes by = (i < C ? clock[i] : in[i - C]) + m->full[k];
      latest(&t, &by);
    }
    y[o] = t;
  }
  for (u32 c = 0; c < C; c++) clock[c] = y[c], out[c] = y[C + c];
}

EACH void run_task(const lane_pass *x, const sim_op *o, const u32 C) {
  const lane_task *m = &x->task[x->of[o->what]];
  const lanes zero = {0};
  lanes *clock = x->clock + o->place * C, *in = x->value + (size_t)o->in * C,
        *out = x->value + (size_t)o->out * C;
  if (m->full) {
    run_full(m, clock, in, out, C);
    return;
  }
  lanes t = clock[0] + m->clock_in[0];
  for (u32 c = 0; c < C; c++) {
    const lanes free = clock[c] + m->clock_in[c], came = in[c] + m->value_in[c];
    if (c) latest(&t, &free);
    latest(&t, &came);
  }
  for (u32 c = 0; c < C; c++) {
    lanes ends = t + m->clock_out[c];
    latest(&ends, &zero); // values that nobody waits for may be negative
    clock[c] = ends, out[c] = t + m->value_out[c];
  }
}

EACH void run_send(const lane_pass *x, const sim_op *o, const u32 C) {
  const u32 strm = x->strm[o->what];
  lanes *at = strm ? x->channel + strm : x->clock, *from = at + o->place * C, *to = at + o->out * C;
  lanes *slot = x->value + (size_t)o->in * C;
  for (u32 c = 0; c < C; c++) {
    lanes t = from[c];
    latest(&t, &to[c]);
    if (strm) latest(&t, &slot[c]);
    t += x->dur[o->what * C + c];
    from[c] = to[c] = t;
    if (strm) slot[c] = t;
  }
}

EACH void run(const lane_pass *x, const u32 C) {
  for (const sim_op *o = x->l->op, *end = o + x->l->n; o < end; o++)
    if (o->kind == OP_TASK)
      run_task(x, o, C);
    else
      run_send(x, o, C);
}

EACH void run_any(const lane_pass *x, u32 C) {
  switch (C) {
  case 1: run(x, 1); break;
  case 2: run(x, 2); break;
  case 4: run(x, 4); break;
  default: run(x, C);
  }
}

__attribute__((target("avx512f"))) static void run_512(const lane_pass *x, u32 C) { run_any(x, C); }
__attribute__((target("avx2"))) static void run_256(const lane_pass *x, u32 C) { run_any(x, C); }

bool lanes_here(void) { return __builtin_cpu_supports("avx2"); }

static i64 wait_of(const task_map *m, u32 o, u32 i, u32 C) {
  const u32 nin = (1 + m->nin) * C, nout = (1 + m->nout) * C;
  return m->a && o < nout && i < nin ? m->a[o * nin + i] : STAGE_NEVER;
}

static void put_one(lane_task *to, u32 lane, const task_map *m, u32 C) {
  for (u32 c = 0; c < C; c++) {
    to->clock_in[c][lane] = m->from[c], to->value_in[c][lane] = m->from[C + c];
    to->clock_out[c][lane] = m->to[c], to->value_out[c][lane] = m->to[C + c];
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
        full[at][k] = wait_of(&p[MIN(k, n - 1)]->task[w], o, i, C);
        any |= full[at][k] != STAGE_NEVER;
      }
      if (any) in[at++] = (u8)i;
    }
    to->end[o] = (u16)at;
  }
  to->full = full, to->in = in;
}

void lanes_run(pipe *const *p, u32 n, arena *tmp) {
  const sim_pipeline *pl = &p[0]->st->pl;
  const u32 C = p[0]->C, tasks = TASK_KINDS * pl->nstages, sends = 2 * pl->nlinks, cells = pl->nplaces * C;
  const size_t channels = (size_t)cells * p[0]->st->nstreams;
  lane_task *task = blank(tmp, tasks, sizeof *task);
  lanes *dur = blank(tmp, sends * C, sizeof *dur);
  u32 *of = NEWN(tmp, u32, tasks), *strm = NEWN(tmp, u32, sends + 1);
  const bool likes = same_likes(p, n);
  for (u32 w = 0; w < tasks; w++) {
    of[w] = likes ? w - w % pl->nstages + pl->like[w % pl->nstages] : w;
    if (of[w] == w) put_task(&task[w], p, n, w, tmp);
  }
  for (u32 w = 0; w < sends; w++) {
    strm[w] = p[0]->send[w].strm * cells;
    for (u32 k = 0; k < n; k++)
      for (u32 c = 0; c < C; c++) dur[w * C + c][k] = p[k]->send[w].dur[c];
  }
  const lane_pass x = {.l = p[0]->l,
                       .clock = blank(tmp, cells, sizeof(lanes)),
                       .channel = blank(tmp, channels, sizeof(lanes)),
                       .value = blank(tmp, (size_t)p[0]->l->nslots * C, sizeof(lanes)),
                       .task = task,
                       .of = of,
                       .dur = dur,
                       .strm = strm};
  for (u32 k = 0; k < SIM_LANES; k++)
    for (u32 c = 0; c < C; c++) x.value[SLOT_NEVER * C + c][k] = STAGE_NEVER;
  for (u32 k = 0; k < n; k++) {
    for (u32 q = 0; q < cells; q++) x.clock[q][k] = p[k]->clock[q];
    for (size_t q = 0; q < channels; q++) x.channel[q][k] = p[k]->channel[q];
  }
  (__builtin_cpu_supports("avx512f") ? run_512 : run_256)(&x, C);
  for (u32 k = 0; k < n; k++) {
    for (u32 q = 0; q < cells; q++) p[k]->clock[q] = x.clock[q][k];
    for (size_t q = 0; q < channels; q++) p[k]->channel[q] = x.channel[q][k];
  }
}
#else
bool lanes_here(void) { return false; }
void lanes_run(pipe *const *p, u32 n, arena *tmp) { (void)p, (void)n, (void)tmp; }
#endif
