// trace.c - growing and ordering event columns, and filling them from a source. Not reading or writing them.
#include "trace/trace.h"

void trace_reserve(arena *a, trace *t, u32 n) {
  if (t->n + n <= t->cap) return;
  u32 cap = MAX(t->cap * 2, MAX(t->n + n, 64));
#define GROW(col) (t->col = vec_grow(a, t->col, t->n, &(u32){t->cap}, cap, sizeof *t->col))
  GROW(rank), GROW(stream), GROW(start_ps), GROW(dur_ps), GROW(what), GROW(func), GROW(instr), GROW(where);
  GROW(step), GROW(microbatch), GROW(bytes), GROW(match), GROW(flags);
#undef GROW
  t->cap = cap;
}

static bool before(const trace *t, u32 x, u32 y) {
  if (t->rank[x] != t->rank[y]) return t->rank[x] < t->rank[y];
  if (t->stream[x] != t->stream[y]) return t->stream[x] < t->stream[y];
  return t->start_ps[x] <= t->start_ps[y];
}

u32 *trace_order(arena *a, const trace *t) { // merge sort: stable, and linear on what is in order already
  u32 *from = NEWN(a, u32, t->n), *to = NEWN(a, u32, t->n);
  for (u32 k = 0; k < t->n; k++) from[k] = k;
  for (u64 w = 1; w < t->n; w *= 2) {
    for (u64 lo = 0; lo < t->n; lo += 2 * w) {
      u64 mid = MIN(lo + w, t->n), hi = MIN(lo + 2 * w, t->n), x = lo, y = mid;
      if (mid == hi || before(t, from[mid - 1], from[mid])) {
        memcpy(to + lo, from + lo, (hi - lo) * sizeof *to);
        continue;
      }
      for (u64 k = lo; k < hi; k++)
        to[k] = y == hi || (x < mid && before(t, from[x], from[y])) ? from[x++] : from[y++];
    }
    u32 *swap = from;
    from = to;
    to = swap;
  }
  return from;
}

i64 trace_span_ps(const trace *t) {
  i64 end = 0;
  for (u32 k = 0; k < t->n; k++) end = MAX(end, t->start_ps[k] + t->dur_ps[k]);
  return end;
}

u64 trace_events(const trace_source *s) {
  u64 n = 0;
  for (u32 k = 0; k < s->nranks * s->nstreams; k++) n += s->count[k];
  return n;
}

typedef struct {
  const trace_source *s;
  trace *t;
} collector;

static void collect(void *arg, const trace_event *x) {
  const collector *c = arg;
  const trace_kind *k = &c->s->kind[x->kind];
  trace *t = c->t;
  u32 e = t->n++;
  t->rank[e] = x->lane / c->s->nstreams;
  t->stream[e] = (u8)(x->lane % c->s->nstreams);
  t->start_ps[e] = x->start_ps;
  t->dur_ps[e] = x->dur_ps;
  t->what[e] = k->what;
  t->func[e] = k->func;
  t->instr[e] = k->instr;
  t->where[e] = k->where;
  t->step[e] = 0;
  t->microbatch[e] = x->microbatch;
  t->bytes[e] = k->bytes;
  t->match[e] = x->match;
  t->flags[e] = k->flags;
  t->nmatch = MAX(t->nmatch, x->match);
}

trace *trace_collect(arena *a, const trace_source *s) {
  trace *t = NEW(a, trace);
  t->nranks = s->nranks;
  t->nstreams = s->nstreams;
  t->nnames = s->nnames;
  t->stream_name = s->stream_name;
  t->name = s->name;
  u64 n = trace_events(s);
  if (n >= UINT32_MAX) base_out_of_memory(n);
  trace_reserve(a, t, (u32)n);
  s->play(s, a, 0, s->nranks * s->nstreams, collect, &(collector){s, t});
  return t;
}
