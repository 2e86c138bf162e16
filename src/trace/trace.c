// trace.c - growing and ordering event columns, and filling them from a source. Not reading files.
#include "trace/trace.h"

const char *trace_is_name(trace_is k) {
  static const char *const name[TRACE_KINDS] = {"kernel", "copy", "fill", "wait",  "op",
                                                "call",   "note", "step", "stack", "other"};
  return name[k];
}

const comm_kind_row comm_kind_rows[COMM_KINDS] = {
#define COMM(id, name, letters, who, bus, chakra) {name, letters, COMM_WHO_##who, COMM_BUS_##bus, chakra},
#include "trace/comms.def"
#undef COMM
    {"other", NULL, COMM_WHO_UNKNOWN, COMM_BUS_UNKNOWN, -1}};

comm_kind comm_kind_named(const char *op) {
  u32 k = 0;
  while (k < COMM_OTHER && strcmp(comm_kind_rows[k].name, op)) k++;
  return (comm_kind)k;
}

comm_who comm_who_of(const ctx *c, sym op) { return comm_kind_rows[comm_kind_named(sym_str(c, op))].who; }

#define COLUMNS(DO)                                                                                          \
  DO(lane), DO(start_ps), DO(dur_ps), DO(name), DO(is), DO(flags), DO(cause), DO(comm), DO(step),            \
      DO(microbatch), DO(chunk), DO(origin), DO(match)

static void grow(arena *a, trace *t) {
  const u32 cap = MAX(t->cap * 2, 64);
#define GROW(col) (t->col = vec_grow(a, t->col, t->n, &(u32){t->cap}, cap, sizeof *t->col))
  COLUMNS(GROW);
#undef GROW
  t->cap = cap;
}

void trace_move(trace *t, u32 to, u32 from) {
#define MOVE(col) (t->col[to] = t->col[from])
  COLUMNS(MOVE);
#undef MOVE
}

u32 trace_lane_of(arena *a, trace *t, u32 process, bool device, i64 of, i64 id) {
  const u64 h = hash_u64((u64)id, hash_u64((u64)of, (u64)process << 1 | device));
  for (u32 it = 0, k; hmap_next(&t->by_lane, h, &it, &k);) {
    const trace_lane *l = &t->lanes.v[k];
    if (l->process == process && l->device == device && l->of == of && l->id == id) return k;
  }
  hmap_add(a, &t->by_lane, h, t->lanes.n);
  *vec_push(a, &t->lanes) = (trace_lane){.process = process, .device = device, .id = id, .of = of};
  return t->lanes.n - 1;
}

static u32 name_of(arena *a, trace *t, sym name) {
  const u64 h = hash_u64(name.i, 1);
  for (u32 it = 0, k; hmap_next(&t->by_name, h, &it, &k);)
    if (t->names.v[k].i == name.i) return k;
  hmap_add(a, &t->by_name, h, t->names.n);
  *vec_push(a, &t->names) = name;
  return t->names.n - 1;
}

u32 trace_origin_of(arena *a, trace *t, trace_origin x) {
  if (!x.node.i && !x.func.i && !x.task.i && !x.layer) return TRACE_NONE;
  const u64 h = hash_u64(hash_step(hash_step(hash_step(9, x.node.i), x.func.i), x.layer), x.task.i);
  for (u32 it = 0, k; hmap_next(&t->by_origin, h, &it, &k);) {
    const trace_origin *o = &t->origins.v[k];
    if (o->node.i == x.node.i && o->func.i == x.func.i && o->task.i == x.task.i && o->layer == x.layer)
      return k;
  }
  hmap_add(a, &t->by_origin, h, t->origins.n);
  *vec_push(a, &t->origins) = x;
  return t->origins.n - 1;
}

u32 trace_add(arena *a, trace *t, trace_is is, u32 lane, sym name, i64 start_ps, i64 dur_ps) {
  if (t->n == t->cap) grow(a, t);
  const u32 e = t->n++;
  t->lane[e] = lane, t->start_ps[e] = start_ps, t->dur_ps[e] = dur_ps;
  t->name[e] = name_of(a, t, name);
  t->is[e] = (u8)is, t->flags[e] = 0;
  t->cause[e] = t->comm[e] = t->step[e] = t->microbatch[e] = t->chunk[e] = t->origin[e] = TRACE_NONE;
  t->match[e] = 0;
  return e;
}

static bool before(const trace *t, u32 x, u32 y) {
  if (t->lane[x] != t->lane[y]) return t->lane[x] < t->lane[y];
  if (t->start_ps[x] != t->start_ps[y]) return t->start_ps[x] < t->start_ps[y];
  return t->lanes.v[t->lane[x]].device || t->dur_ps[x] >= t->dur_ps[y];
}

void trace_add_comm(arena *a, trace *t, u32 event, trace_comm m) {
  t->flags[event] |= TRACE_COMM, t->comm[event] = t->comms.n;
  *vec_push(a, &t->comms) = m;
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

u64 trace_events(const trace_source *s) {
  u64 n = 0;
  for (u32 k = 0; k < s->nranks * s->nstreams; k++) n += s->count[k];
  return n;
}

typedef struct {
  const trace_source *s;
  arena *a;
  trace *t;
  u32 *lane; // of every stream of every rank, + 1
} collector;

static void collect(void *arg, const trace_event *x) {
  const collector *k = arg;
  const trace_kind *kind = &k->s->kind[x->kind];
  if (!k->lane[x->lane]) {
    const u32 rank = x->lane / k->s->nstreams, stream = x->lane % k->s->nstreams;
    const bool device = stream < k->s->nstreams - k->s->nthreads;
    const u32 l = trace_lane_of(k->a, k->t, rank, device, device ? 0 : -1, stream);
    k->t->lanes.v[l].name = k->s->stream_name[stream];
    k->lane[x->lane] = l + 1;
  }
  const u32 e = trace_add(k->a, k->t, (trace_is)kind->is, k->lane[x->lane] - 1, k->s->name[kind->what],
                          x->start_ps, x->dur_ps);
  k->t->microbatch[e] = x->microbatch, k->t->step[e] = x->step;
  k->t->match[e] = x->match;
  k->t->flags[e] = kind->flags;
  if (x->comm) trace_add_comm(k->a, k->t, e, *x->comm);
}

trace *trace_collect(arena *a, const trace_source *s) {
  trace *t = NEW(a, trace);
  for (u32 r = 0; r < s->nranks; r++)
    *vec_push(a, &t->processes) =
        s->process ? s->process[r] : (trace_process){.rank = r, .world_size = s->nranks, .pid = -1};
  const u64 n = trace_events(s);
  if (n >= UINT32_MAX) base_out_of_memory(n);
  collector k = {s, a, t, ZNEWN(a, u32, (size_t)s->nranks * s->nstreams + 1)};
  arena *scratch = arena_new(); // columns grow in `a` meanwhile
  s->play(s, scratch, 0, s->nranks * s->nstreams, collect, &k);
  arena_free(scratch);
  return t;
}
