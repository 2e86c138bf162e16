// v_shape.c - two chunks that lie in a V, backwards in two parts: place r has stages r and 2P-1-r.
//
// Idea: ZB-V (Qi et al., 2023) is a list of phases, here as PyTorch's ScheduleZBVZeroBubble has them. Its forms with less
// memory (Qi et al., 2024, "Pipeline Parallelism with Controllable Memory") repeat one block of six steps: the times at
// which a place begins the two forwards and the two I of microbatch 0 are given, those of microbatch m are 6m later,
// and the two steps that are left in every six have W. A place runs its tasks in the order of these times, each as
// soon as it can.
#include "sched/internal.h"

typedef struct {
  const sched_shape *s;
  u16 stage[2]; // by chunk
  sched_task *t;
  const sched_task *due[2]; // by chunk: before it no I is without its W
  u32 nf[2], nb[2];         // by chunk: forwards and I that were counted
} writer;

// Microbatches that there are not count, but are not written.
static void put(writer *x, task_kind kind, u32 chunk, u32 mb) {
  if (mb >= x->s->micro || (kind != TASK_F && !x->s->backward)) return;
  *x->t++ = (sched_task){.stage = x->stage[chunk], .kind = (u8)kind, .mb = mb};
}

static void put_f(writer *x, u32 chunk) { put(x, TASK_F, chunk, x->nf[chunk]++); }
static void put_i(writer *x, u32 chunk) { put(x, TASK_I, chunk, x->nb[chunk]++); }

// W of the chunk's first I that has none; false: there is no such I.
static bool put_w(writer *x, u32 chunk) {
  const sched_task *i = x->due[chunk];
  while (i < x->t && (i->kind != TASK_I || i->stage != x->stage[chunk])) i++;
  x->due[chunk] = i;
  if (i == x->t) return false;
  x->due[chunk]++;
  put(x, TASK_W, chunk, i->mb);
  return true;
}

static void put_iw(writer *x, u32 chunk) { put_i(x, chunk), put_w(x, chunk); }

static writer writer_of(const sched_shape *s, u32 place, sched_task *t) {
  return (writer){.s = s, .stage = {(u16)place, (u16)(2 * s->places - 1 - place)}, .t = t, .due = {t, t}};
}

sched_task *fill_zb_v(const sched_shape *s, u32 place, sched_task *t) {
  writer x = writer_of(s, place, t);
  const u32 n = MAX(2 * s->places - 1, s->micro), below = s->places - place;
  for (u32 k = 0; k < 2 * below - 1; k++) put_f(&x, 0);
  for (u32 k = 0; k < place; k++) put_f(&x, 1), put_f(&x, 0);
  for (u32 k = 0; k < below; k++) put_f(&x, 1), put_iw(&x, 1);
  while (x.nf[1] < x.nf[0] || x.nf[0] < n) {
    if (x.nf[0] < n) put_f(&x, 0);
    put_iw(&x, 0);
    put_f(&x, 1), put_iw(&x, 1);
  }
  for (u32 k = 0; k < place; k++) put_i(&x, 0), put_i(&x, 1);
  for (u32 k = 0; k < below; k++) put_iw(&x, 0);
  for (u32 chunk = 2; chunk-- > 0;)
    while (put_w(&x, chunk)) {}
  return x.t;
}

// ---- one block, repeated --------------------------------------------------------------------------------
enum { F0, F1, I1, I0, W1, W0, STEPS }; // tasks of one microbatch on one place

// The first time after `from` that is in none of the steps of six that `taken` has, which takes it.
static u32 next_free(u32 from, u32 *taken) {
  u32 at = from + 1;
  while (*taken >> at % STEPS & 1) at++;
  *taken |= 1u << at % STEPS;
  return at;
}

// Microbatch after microbatch in the order of times; of one place no two are the same.
static sched_task *repeat(const sched_shape *s, u32 place, u32 begin[STEPS], sched_task *t) {
  static const u8 kind[STEPS] = {TASK_F, TASK_F, TASK_I, TASK_I, TASK_W, TASK_W},
                  chunk[STEPS] = {0, 1, 1, 0, 1, 0};
  writer x = writer_of(s, place, t);
  u32 taken = 0, done[STEPS] = {0};
  for (u32 k = 0; k < W1; k++) taken |= 1u << begin[k] % STEPS;
  assert(taken == (taken & 63) && __builtin_popcount(taken) == 4);
  begin[W0] = next_free(begin[I0], &taken), begin[W1] = next_free(begin[I1], &taken);
  for (u32 left = STEPS * s->micro; left; left--) {
    u32 next = STEPS;
    u64 first = UINT64_MAX;
    for (u32 k = 0; k < STEPS; k++) {
      const u64 at = done[k] < s->micro ? begin[k] + (u64)STEPS * done[k] : UINT64_MAX;
      if (at < first) first = at, next = k;
    }
    put(&x, (task_kind)kind[next], chunk[next], done[next]), done[next]++;
  }
  return x.t;
}

// Down the V at a place every two steps, up again at one a step; gradients likewise. Places beside each other take turns
// of one step, else two tasks would fall on one. On the last place the gradient goes straight on.
sched_task *fill_zb_v_half(const sched_shape *s, u32 place, sched_task *t) {
  const u32 P = s->places, r = place, odd = r % 2, last = r + 1 == P;
  u32 even[STEPS] = {2 * r - odd, 3 * P - 2 - r, 3 * P + 2 + 2 * r, 6 * P + 1 - r - last},
      other[STEPS] = {2 * r + odd, 3 * P - 1 - r, 3 * P + 2 * r, 6 * P - 1 - r - last};
  return repeat(s, place, P % 2 ? other : even, t);
}

// One place a step, all the way; with a multiple of three places two steps of rest, else two tasks would fall on one.
sched_task *fill_zb_v_min(const sched_shape *s, u32 place, sched_task *t) {
  const u32 P = s->places, r = place, rest = P % 3 ? 0 : 2;
  u32 begin[STEPS] = {r, 2 * P - 1 - r, 2 * P + rest + r, 4 * P + rest - 1 - r};
  return repeat(s, place, begin, t);
}
