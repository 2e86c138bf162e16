// queue.c - ready queues: event graphs whose order on a resource is not given. Not fixed orders (engine.c).
//
// Idea: time only moves on when all that ends at one time has been counted; then every resource that is free takes the
// best of what is ready. So equal times do not depend on the order in which they are found.
#include "sim/sim.h"

typedef struct {
  i64 ps;
  u32 rank, node;
} waiting;
typedef struct {
  u32 n;
  waiting *v;
} heap;

static bool before(const waiting *a, const waiting *b) {
  if (a->rank != b->rank) return a->rank < b->rank;
  if (a->ps != b->ps) return a->ps < b->ps;
  return a->node < b->node;
}

static void put(heap *h, waiting w) {
  u32 i = h->n++;
  for (; i && before(&w, &h->v[(i - 1) / 2]); i = (i - 1) / 2) h->v[i] = h->v[(i - 1) / 2];
  h->v[i] = w;
}

static waiting take(heap *h) {
  const waiting first = h->v[0], last = h->v[--h->n];
  u32 i = 0;
  for (u32 k; (k = 2 * i + 1) < h->n; i = k) {
    if (k + 1 < h->n && before(&h->v[k + 1], &h->v[k])) k++;
    if (!before(&h->v[k], &last)) break;
    h->v[i] = h->v[k];
  }
  h->v[i] = last;
  return first;
}

typedef struct {
  const sim_queue *q;
  i64 *start;
  u32 *cause;
  u32 *left;    // predecessors that have not ended
  u32 *decides; // of a node: the predecessor that ended last
  u32 *last;    // of a resource: the node that it ran last
  heap ends, *ready;
  bool *busy, *touched;
  u32 ntouched, *list;
  u32 done;
} run;

static void begin(run *r, u32 node, i64 at, u32 cause) {
  r->start[node] = at;
  if (r->cause) r->cause[node] = cause;
  put(&r->ends, (waiting){.ps = at + r->q->dur[node], .node = node});
}

static void touch(run *r, u32 res) {
  if (!r->touched[res]) r->touched[res] = true, r->list[r->ntouched++] = res;
}

static void becomes_ready(run *r, u32 node, i64 at) {
  const u32 res = r->q->res[node];
  if (res == TRACE_NONE) {
    begin(r, node, at, r->decides[node]);
    return;
  }
  put(&r->ready[res], (waiting){at, r->q->rank ? r->q->rank[node] : 0, node});
  touch(r, res);
}

static void ended(run *r, u32 node, i64 at) {
  const sim_queue *q = r->q;
  r->done++;
  if (q->res[node] != TRACE_NONE) {
    r->busy[q->res[node]] = false, r->last[q->res[node]] = node;
    touch(r, q->res[node]);
  }
  for (u32 k = q->first[node]; k < q->first[node + 1]; k++) {
    r->decides[q->next[k]] = node;
    if (!--r->left[q->next[k]]) becomes_ready(r, q->next[k], at);
  }
}

static void dispatch(run *r, i64 at) {
  for (u32 k = 0; k < r->ntouched; k++) {
    const u32 res = r->list[k];
    r->touched[res] = false;
    if (r->busy[res] || !r->ready[res].n) continue;
    const waiting w = take(&r->ready[res]);
    r->busy[res] = true;
    begin(r, w.node, at, w.ps < at ? r->last[res] : r->decides[w.node]);
  }
  r->ntouched = 0;
}

// Room for what may be ready at a time: all nodes of the resource.
static void make_room(run *r, arena *a) {
  const sim_queue *q = r->q;
  u32 *count = ZNEWN(a, u32, q->nres + 1);
  for (u32 k = 0; k < q->n; k++)
    if (q->res[k] != TRACE_NONE) count[q->res[k]]++;
  r->ready = ZNEWN(a, heap, q->nres + 1);
  for (u32 k = 0; k < q->nres; k++) r->ready[k].v = NEWN(a, waiting, count[k] + 1), r->last[k] = TRACE_NONE;
  r->ends.v = NEWN(a, waiting, q->n + 1);
  for (u32 k = 0; k < q->n; k++) r->decides[k] = TRACE_NONE;
  for (u32 k = 0; k < q->first[q->n]; k++) r->left[q->next[k]]++;
}

i64 sim_queue_run(arena *scratch, const sim_queue *q, i64 *start, u32 *cause) {
  run r = {.q = q,
           .start = start,
           .cause = cause,
           .left = ZNEWN(scratch, u32, q->n + 1),
           .decides = NEWN(scratch, u32, q->n + 1),
           .last = NEWN(scratch, u32, q->nres + 1),
           .busy = ZNEWN(scratch, bool, q->nres + 1),
           .touched = ZNEWN(scratch, bool, q->nres + 1),
           .list = NEWN(scratch, u32, q->nres + 1)};
  i64 at = 0;
  make_room(&r, scratch);
  // A node without predecessors has its count at 0 before anything ends; starting one does not change that.
  u32 nroots = 0, *root = NEWN(scratch, u32, q->n + 1);
  for (u32 k = 0; k < q->n; k++)
    if (!r.left[k]) root[nroots++] = k;
  for (u32 k = 0; k < nroots; k++) becomes_ready(&r, root[k], 0);
  for (;;) {
    while (r.ends.n && r.ends.v[0].ps == at) ended(&r, take(&r.ends).node, at);
    dispatch(&r, at);
    if (!r.ends.n) break;
    at = r.ends.v[0].ps;
  }
  return r.done == q->n ? at : -1;
}
