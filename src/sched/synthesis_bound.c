// synthesis_bound.c - how fast any schedule of given stages can be at most.
//
// Idea: parts take the microbatches in order (synthesis.h), so a task waits for the same part of the microbatch before,
// and where memory holds c activations of a stage, a forward waits until the backward of c microbatches before has given
// its memory back. The longest paths of that graph say when a task can begin at the earliest, and how long the rest
// takes after it at least. A place must then do its work between these times, one task after the other; and the memory
// that its activations take for as long as they must must lie within its limit.
#include "sched/synthesis.h"
#include <stdlib.h>

typedef struct {
  const synth *x;
  u32 *cap;    // by stage: activations that memory holds; UINT32_MAX: any
  u64 *head;   // by part and microbatch: earliest beginning
  u64 *tail;   // from the end of a task to the end of all
  u64 *inside; // stages_inside
} bounds;

static void set_caps(bounds *b) {
  const synth *x = b->x;
  for (u32 k = 0; k < x->of->nstages; k++) {
    const u64 each = x->of->cost.memory[k];
    b->cap[k] = x->limit == SCHED_NO_LIMIT || !each ? UINT32_MAX : (u32)MIN(x->limit / each, UINT32_MAX);
  }
}

static void set_heads(bounds *b) {
  const synth *x = b->x;
  const u32 M = x->micro;
  for (u32 m = 0; m < M; m++)
    for (u32 k = 0; k < x->nparts; k++) {
      const part *p = &x->part[k];
      u64 t = m ? b->head[k * M + m - 1] + p->dur : 0;
      for (u32 i = 0; i < p->npred; i++) {
        const u16 from = p->pred[i].part;
        t = MAX(t, b->head[from * M + m] + x->part[from].dur + p->pred[i].delay);
      }
      const u32 cap = p->kind == TASK_F ? b->cap[p->stage] : UINT32_MAX, release = x->release[p->stage];
      if (cap <= m) t = MAX(t, b->head[release * M + m - cap] + x->part[release].dur);
      b->head[k * M + m] = t;
    }
}

static void set_tails(bounds *b) {
  const synth *x = b->x;
  const u32 M = x->micro;
  for (u32 m = M; m-- > 0;)
    for (u32 k = x->nparts; k-- > 0;) {
      const part *p = &x->part[k];
      u64 t = m + 1 < M ? b->tail[k * M + m + 1] + p->dur : 0;
      for (u32 i = 0; i < p->nsucc; i++) {
        const u16 to = p->succ[i].part;
        t = MAX(t, p->succ[i].delay + x->part[to].dur + b->tail[to * M + m]);
      }
      const u32 cap = b->cap[p->stage], forward = x->forward[p->stage];
      if (k == x->release[p->stage] && cap < M - m)
        t = MAX(t, x->part[forward].dur + b->tail[forward * M + m + cap]);
      b->tail[k * M + m] = t;
    }
}

// ---- the work of a place ------------------------------------------------------------------------------
typedef struct {
  u64 head, tail, left;
} job;

static int by_head(const void *a, const void *b) {
  const job *p = a, *q = b;
  return p->head < q->head ? -1 : p->head > q->head;
}

static bool longer_tail(const job *v, u32 a, u32 b) { return v[a].tail > v[b].tail; }

static void sift_up(const job *v, u32 *heap, u32 i) {
  for (; i && longer_tail(v, heap[i], heap[(i - 1) / 2]); i = (i - 1) / 2) {
    const u32 t = heap[i];
    heap[i] = heap[(i - 1) / 2], heap[(i - 1) / 2] = t;
  }
}

static void sift_down(const job *v, u32 *heap, u32 n) {
  for (u32 i = 0, k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && longer_tail(v, heap[k + 1], heap[k])) k++;
    if (!longer_tail(v, heap[k], heap[i])) return;
    const u32 t = heap[i];
    heap[i] = heap[k], heap[k] = t;
  }
}

// If tasks could be interrupted, running always the one of the longest tail would be best (Jackson).
static u64 interrupted(arena *a, job *v, u32 n) {
  u32 *heap = NEWN(a, u32, n + 1), nheap = 0, next = 0;
  u64 now = 0, end = 0;
  qsort(v, n, sizeof *v, by_head);
  while (next < n || nheap) {
    if (!nheap) now = MAX(now, v[next].head);
    for (; next < n && v[next].head <= now; next++) heap[nheap] = next, sift_up(v, heap, nheap++);
    job *j = &v[heap[0]];
    const u64 run = next < n ? MIN(j->left, v[next].head - now) : j->left;
    now += run, j->left -= run;
    if (j->left) continue;
    end = MAX(end, now + j->tail);
    heap[0] = heap[--nheap], sift_down(v, heap, nheap);
  }
  return end;
}

static bool lies_on(const part *p, u32 place) {
  for (u32 i = 0; i < p->at->n; i++)
    if (p->at->v[i] == place) return true;
  return false;
}

static u64 work_bound(const bounds *b, u32 place) {
  const synth *x = b->x;
  arena_mark_t mark = arena_mark(x->a);
  job *v = NEWN(x->a, job, x->n);
  u32 n = 0;
  for (u32 k = 0; k < x->nparts; k++)
    for (u32 m = 0; m < x->micro && lies_on(&x->part[k], place); m++)
      v[n++] = (job){b->head[k * x->micro + m], b->tail[k * x->micro + m], x->part[k].dur};
  const u64 end = interrupted(x->a, v, n);
  arena_release(x->a, mark);
  return end;
}

// ---- the memory of a place ----------------------------------------------------------------------------
// Memory times time: of each activation at least what it takes, for as long as it must lie.
static u64 memory_bound(const bounds *b, u32 place) {
  const synth *x = b->x;
  const u32 M = x->micro;
  u64 first = UINT64_MAX, last = UINT64_MAX;
  long double area = 0;
  if (x->limit == SCHED_NO_LIMIT || !x->limit) return 0;
  for (u32 k = 0; k < x->of->nstages; k++) {
    const part *p = &x->part[x->forward[k]];
    if (!lies_on(p, place) || !p->takes) continue;
    area += (long double)p->takes * (long double)b->inside[k] * M;
    first = MIN(first, b->head[x->forward[k] * M]);
    last = MIN(last, b->tail[x->release[k] * M + M - 1]);
  }
  if (first == UINT64_MAX) return 0;
  // Rounded down by more than the sum can be off, so that it stays a bound.
  const long double time = area / (long double)x->limit * (1 - 1e-12L);
  return first + (u64)time + last;
}

void stages_inside(const synth *x, u64 *inside) {
  arena_mark_t mark = arena_mark(x->a);
  u64 *at = NEWN(x->a, u64, x->nparts);
  for (u32 s = 0; s < x->of->nstages; s++) {
    for (u32 k = 0; k < x->nparts; k++) {
      at[k] = k == x->forward[s] ? 0 : UINT64_MAX; // not behind it
      for (u32 i = 0; i < x->part[k].npred && k != x->forward[s]; i++) {
        const part_edge *e = &x->part[k].pred[i];
        if (at[e->part] == UINT64_MAX) continue;
        const u64 t = at[e->part] + x->part[e->part].dur + e->delay;
        at[k] = at[k] == UINT64_MAX ? t : MAX(at[k], t);
      }
    }
    inside[s] = at[x->release[s]] + x->part[x->release[s]].dur;
  }
  arena_release(x->a, mark);
}

u64 synth_bound(const synth *x, sched_bound_of *of, u32 *place) {
  arena_mark_t mark = arena_mark(x->a);
  bounds b = {.x = x,
              .cap = NEWN(x->a, u32, x->of->nstages),
              .head = NEWN(x->a, u64, x->n),
              .tail = NEWN(x->a, u64, x->n),
              .inside = NEWN(x->a, u64, x->of->nstages)};
  set_caps(&b), set_heads(&b), set_tails(&b), stages_inside(x, b.inside);
  u64 most = 0;
  *of = BOUND_CHAIN, *place = 0;
  for (u32 k = 0; k < x->nparts; k++)
    for (u32 m = 0; m < x->micro; m++)
      most = MAX(most, b.head[k * x->micro + m] + x->part[k].dur + b.tail[k * x->micro + m]);
  for (u32 p = 0; p < x->nplaces; p++) {
    const u64 work = work_bound(&b, p), memory = memory_bound(&b, p);
    if (work > most) most = work, *of = BOUND_WORK, *place = p;
    if (memory > most) most = memory, *of = BOUND_MEMORY, *place = p;
  }
  arena_release(x->a, mark);
  return most;
}
