// timeline.c - a flat run written down as event columns. Not how they are drawn (report/).
#include "sim/internal.h"

typedef struct {
  sim *s;
  trace *t;
  const u32 *rank_of_unit;
  u32 microbatch[64]; // of the calls around; deeper ones share the last
  u32 depth;
} recorder;

static u32 *here(recorder *r) { return &r->microbatch[MIN(r->depth, COUNT_OF(r->microbatch) - 1)]; }

// The first temporal axis that a coordinate fixes counts microbatches.
static u32 microbatch_of(const prog *p, u32 coord, u32 around) {
  u64 fixed = p->fixed.v[coord];
  for (u8 x = 1; fixed && x <= axis_count(p->sp); x++)
    if (fixed >> x & 1) return p->points.v[coord].at[x];
  return around;
}

static void record(void *arg, const sim_cols *c, u32 node, i64 start) {
  recorder *r = arg;
  if (!c->what[node]) return;
  sim *s = r->s;
  trace *t = r->t;
  const func_info *f = func_in(s, (func){c->tag});
  const instr *i = &f->body.v[c->what[node] - 1];
  u32 n = c->in[node] - c->occ[node], match = n > 1 ? ++t->nmatch : 0;
  const op_row *row = op_row_of(i->op);
  i64 bytes = -1;
  if (row->flags & OPF_COMM && i->nopd) {
    const type_info *ti = val_type(s->p, f, opd_of(f, i, 0));
    if (!ti->tuple) bytes = local_bytes(s, ti, (group){0}, 0);
  }
  trace_reserve(s->a, t, n);
  for (u32 k = c->occ[node]; k < c->in[node]; k++) {
    u32 e = t->n++, clock = c->slot_clock[c->ref[k]] - 1;
    t->rank[e] = r->rank_of_unit[c->clock_unit[clock]];
    t->stream[e] = i->strm;
    t->start_ps[e] = start;
    t->dur_ps[e] = c->dur[node];
    t->what[e] = i->op;
    t->func[e] = c->tag;
    t->instr[e] = c->what[node];
    t->where[e] = i->where;
    t->step[e] = 0;
    t->microbatch[e] = microbatch_of(s->p, i->coord, *here(r));
    t->bytes[e] = bytes;
    t->match[e] = match;
    t->flags[e] =
        (u8)((row->flags & OPF_COMM ? TRACE_COMM : 0) | (i->flags & INSTR_BACKWARD ? TRACE_BACKWARD : 0) |
             (i->flags & INSTR_UPDATE ? TRACE_UPDATE : 0) |
             (i->flags & INSTR_RECOMPUTE ? TRACE_RECOMPUTE : 0));
  }
}

static void enter(void *arg, const sim_cols *c, u32 node) {
  recorder *r = arg;
  const instr *i = &func_in(r->s, (func){c->tag})->body.v[c->what[node] - 1];
  u32 around = *here(r);
  r->depth++;
  *here(r) = microbatch_of(r->s->p, i->coord, around);
}
static void leave(void *arg, const sim_cols *c, u32 node) {
  (void)c, (void)node;
  ((recorder *)arg)->depth--;
}

trace *timeline_of(sim *s, const sim_cols *c) {
  arena_mark_t mark = arena_mark(s->tmp);
  trace *t = NEW(s->a, trace);
  u32 *rank = NEWN(s->tmp, u32, s->nunits);
  sym *name = NEWN(s->a, sym, OP_COUNT);
  for (u32 k = s->nranks; k-- > 0;) rank[s->unit_of_rank[k]] = k;
  for (u32 k = 0; k < OP_COUNT; k++) name[k] = k == OP_none ? (sym){0} : sym_of(s->c, op_row_of(k)->name);
  t->nranks = s->nranks;
  t->nstreams = s->nstreams;
  t->stream_name = s->p->streams.v;
  t->nnames = OP_COUNT;
  t->name = name;
  recorder r = {.s = s, .t = t, .rank_of_unit = rank, .microbatch = {TRACE_NONE}};
  sim_watch w = {&r, record, enter, leave};
  i64 *x = ZNEWN(s->tmp, i64, c->nslot), *frame = NEWN(s->tmp, i64, c->frame);
  sim_flat_watched(c, x, frame, &w);
  arena_release(s->tmp, mark);
  return t;
}
