// gtrace_link.c - which messages of dPRO's traces belong together, and what waits for what. Not reading them (gtrace.c).
//
// Idea: dPRO (MLSys 2022, section 4.1) gives a transmission an id: sender, receiver, tensor, push or pull, for a ring the chunk and
// its step. An id that is looked for is written down and searched for among the sorted ones.
#include "trace/gtrace.h"
#include <stdlib.h>

static int by_number(u64 x, u64 y) { return x < y ? -1 : x > y; }

static int by_id(const gtrace_message *x, const gtrace_message *y, bool from) {
  int d = by_number(x->what, y->what);
  if (!d) d = by_number(x->to.i, y->to.i);
  if (!d) d = by_number(x->tensor.i, y->tensor.i);
  if (!d) d = by_number(x->part.i, y->part.i);
  if (!d) d = by_number((u64)x->chunk, (u64)y->chunk);
  if (!d) d = by_number((u64)x->step, (u64)y->step);
  return d || !from ? d : by_number(x->from.i, y->from.i);
}
static int by_place(const void *a, const void *b) {
  const gtrace_message *x = a, *y = b;
  const int d = by_id(x, y, true);
  if (d) return d;
  return x->start_ps != y->start_ps ? (x->start_ps < y->start_ps ? -1 : 1) : by_number(x->event, y->event);
}

typedef struct {
  reading *x;
  gtrace_message *v;
  u32 n;
  u32 matches;
  bool *has; // of a message: an other end
  u32 twice, alone;
} linking;

// The first message with this id, of any sender if `from` is not to count; n: none.
static u32 find(const linking *k, const gtrace_message *id, bool from) {
  u32 lo = 0, hi = k->n;
  while (lo < hi) {
    const u32 mid = lo + (hi - lo) / 2;
    if (by_id(&k->v[mid], id, from) < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < k->n && !by_id(&k->v[lo], id, from) ? lo : k->n;
}

// Where the file does not say steps, the k-th message of an id is of the k-th step; else it is there twice, and left out.
static void number_steps(linking *k) {
  qsort(k->v, k->n, sizeof *k->v, by_place);
  u32 n = 0;
  for (u32 i = 0, end; i < k->n; i = end) {
    const gtrace_message first = k->v[i];
    for (end = i; end < k->n && !by_id(&first, &k->v[end], true); end++) {
      gtrace_message m = k->v[end];
      k->twice += m.step >= 0 && end > i;
      if (m.step >= 0 && end > i) continue;
      if (m.step < 0) m.step = end - i;
      k->v[n++] = m;
    }
  }
  k->n = n;
  if (n) qsort(k->v, n, sizeof *k->v, by_place);
}

static void put_edge(linking *k, u32 later, u32 earlier) {
  *vec_push(k->x->a, &k->x->t->edges) = (trace_edge){k->v[later].event, k->v[earlier].event, true};
  k->has[later] = k->has[earlier] = true;
}

// The message like this one that `what`, `from` and `to` say: of any sender if `from` is 0. n: none.
static u32 like(const linking *k, u32 i, gtrace_what what, sym from, sym to) {
  gtrace_message id = k->v[i];
  id.what = what, id.from = from, id.to = to;
  return find(k, &id, from.i);
}

// What a worker sends in a step of a ring it has got in the one before, whoever sent it; its other end, if that is known.
static void link_send(linking *k, u32 i) {
  gtrace_message id = k->v[i];
  id.what = GTRACE_RECV, id.to = id.from, id.chunk--;
  const u32 before = id.chunk >= 0 ? find(k, &id, false) : k->n;
  if (before < k->n)
    *vec_push(k->x->a, &k->x->t->edges) = (trace_edge){k->v[i].event, k->v[before].event, true};
  if (k->v[i].outside) return;
  const u32 other = like(k, i, GTRACE_RECV, k->v[i].from, k->v[i].to);
  if (other == k->n) return;
  k->has[i] = k->has[other] = true;
  k->x->t->match[k->v[i].event] = k->x->t->match[k->v[other].event] = ++k->matches;
}

// A server answers a push when it has come in, a pull when all workers have pushed as well.
static void link_answer(linking *k, u32 i) {
  const gtrace_message *m = &k->v[i];
  const bool pulled = m->what == GTRACE_PULLED;
  const u32 request = like(k, i, pulled ? GTRACE_PULL : GTRACE_PUSH, m->to, m->from);
  if (request < k->n) put_edge(k, i, request);
  if (!pulled) return;
  gtrace_message id = *m;
  id.what = GTRACE_PUSH, id.to = m->from;
  for (u32 p = find(k, &id, false); p < k->n && !by_id(&k->v[p], &id, false); p++)
    *vec_push(k->x->a, &k->x->t->edges) = (trace_edge){m->event, k->v[p].event, true};
}

// A worker asks for a sum when its own push was answered.
static void link_pull(linking *k, u32 i) {
  const gtrace_message *m = &k->v[i];
  const u32 pushed = like(k, i, GTRACE_PUSHED, m->to, m->from);
  if (pushed < k->n) *vec_push(k->x->a, &k->x->t->edges) = (trace_edge){m->event, k->v[pushed].event, true};
}

void gtrace_link(reading *x, arena *tmp, gtrace_message *v, u32 n) {
  linking k = {.x = x, .v = v, .n = n};
  if (!n) return;
  number_steps(&k);
  k.has = ZNEWN(tmp, bool, k.n + 1);
  for (u32 i = 0; i < k.n; i++) {
    if (v[i].what == GTRACE_SEND) link_send(&k, i);
    if (v[i].what == GTRACE_PULL) link_pull(&k, i);
    if (v[i].what == GTRACE_PUSHED || v[i].what == GTRACE_PULLED) link_answer(&k, i);
    k.has[i] |= v[i].outside; // what other files have, or who nobody says
    if (v[i].what >= GTRACE_PUSH) x->t->match[v[i].event] = ++k.matches; // one event has both ends
  }
  for (u32 i = 0; i < k.n; i++) k.alone += !k.has[i];
  if (k.alone || k.twice)
    diag(x->c, W_TRACE_ODD, loc_text(x->c, x->file, 0, 0, NULL),
         "of %u messages %u have no other end here and %u are there twice: what they wait for is not known",
         n, k.alone, k.twice);
}
