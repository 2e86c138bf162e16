// timeline.c - a flat run as a source of events. Not how they are drawn (report/).
//
// Idea: a run is made again faster than its events are written, and takes no memory. So a timeline is the
// event graph and what is known of every instruction; who wants events in another order than that in which
// they are made plays it several times, a few lanes each.
#include "sim/internal.h"

typedef struct {
  trace_source of; // first: play gets this
  const prog *p;
  const sim_graph *c;
  const u32 *rank_of_class;
  const u32 *first_kind; // per function: number of its instruction 1
  const i64 *held;       // as sim.held; NULL: not known
  const u32 *class_of_rank;
  u32 nclasses;
  const ir_layers *layers;
} timeline;

typedef struct {
  const timeline *l;
  u32 from, to; // lanes
  trace_tell *tell;
  void *arg;
  u32 nmatch;
  u32 microbatch[64]; // of the calls around; deeper ones share the last
  u32 layer[64];      // likewise
  u32 depth;
  u32 task;  // of the instruction of main
  u32 at;    // that instruction, from 1
  u32 *told; // by rank: up to which of them what it holds was told; NULL: that is not known
} player;

static u32 level(const player *r) { return MIN(r->depth, COUNT_OF(r->microbatch) - 1); }
static u32 *here(player *r) { return &r->microbatch[level(r)]; }

static u32 layer_of(const player *r, const sim_graph *c, u32 node) {
  return ir_layer_at(r->l->layers, &(ir_layer_place){.func = c->tag,
                                                     .index = c->what[node] - 1,
                                                     .depth = r->depth,
                                                     .top = r->at - 1,
                                                     .task = r->task,
                                                     .around = r->layer[level(r)]});
}

static const instr *instr_at(const player *r, const sim_graph *c, u32 node) {
  return &func_get(r->l->p, (func){c->tag})->body.v[c->what[node] - 1];
}

static void meet(player *r, const sim_graph *c, u32 node) {
  if (!r->depth) r->at = c->what[node];
  if (!r->depth && r->l->of.task) r->task = ir_task_at(r->l->p, c->what[node] - 1);
}

// The most that the rank holds in what it has issued since it was asked last. Told on its first stream alone.
static i64 held_by(player *r, u32 rank, u32 strm) {
  const timeline *l = r->l;
  i64 most = 0;
  if (!r->told || strm) return 0;
  for (u32 k = MIN(r->told[rank], r->at - 1); k < r->at; k++)
    most = MAX(most, l->held[(size_t)k * l->nclasses + l->class_of_rank[rank]]);
  r->told[rank] = r->at;
  return most;
}

static u32 rank_at(const timeline *l, const sim_graph *c, u32 k) {
  return l->rank_of_class[c->clock_class[c->slot_clock[c->ref[k]] - 1]];
}

static void record(void *arg, const sim_graph *c, u32 node, i64 start) {
  player *r = arg;
  const timeline *l = r->l;
  if (!c->what[node]) return;
  const instr *i = instr_at(r, c, node);
  meet(r, c, node);
  const u32 layer = layer_of(r, c, node);
  u32 first = c->occ[node], end = c->in[node], lowest = TRACE_NONE;
  u32 match = end - first > 1 ? ++r->nmatch : 0;
  for (u32 k = first; k < end; k++) {
    u32 rank = rank_at(l, c, k), lane = rank * l->of.nstreams + i->strm;
    if (lane < r->from || lane >= r->to) continue;
    for (u32 j = lowest == TRACE_NONE ? first : end; j < end; j++) lowest = MIN(lowest, rank_at(l, c, j));
    trace_event e = {.lane = lane,
                     .kind = l->first_kind[c->tag] + c->what[node] - 1,
                     .start_ps = start,
                     .dur_ps = c->dur[node],
                     .microbatch = ir_microbatch(l->p, i->coord, *here(r)),
                     .task = r->task,
                     .step = 1,
                     .layer = layer,
                     .match = match,
                     .from_lane = lowest * l->of.nstreams + i->strm,
                     .from_ps = start,
                     .held_bytes = held_by(r, rank, i->strm)};
    r->tell(r->arg, &e);
  }
}

static void enter(void *arg, const sim_graph *c, u32 node) {
  player *r = arg;
  u32 around = *here(r);
  meet(r, c, node);
  const u32 layer = layer_of(r, c, node);
  r->depth++;
  r->layer[level(r)] = layer;
  *here(r) = ir_microbatch(r->l->p, instr_at(r, c, node)->coord, around);
}
static void leave(void *arg, const sim_graph *c, u32 node) {
  (void)c, (void)node;
  ((player *)arg)->depth--;
}

static void play(const trace_source *s, arena *scratch, u32 from, u32 to, trace_tell *tell, void *arg) {
  const timeline *l = (const timeline *)s;
  arena_mark_t mark = arena_mark(scratch);
  player r = {.l = l, .from = from, .to = to, .tell = tell, .arg = arg, .microbatch = {TRACE_NONE}};
  if (l->held) r.told = ZNEWN(scratch, u32, l->of.nranks);
  sim_watch w = {&r, record, enter, leave};
  i64 *x = ZNEWN(scratch, i64, l->c->nslot), *frame = NEWN(scratch, i64, l->c->frame);
  sim_flat_watched(l->c, x, frame, &w);
  arena_release(scratch, mark);
}

static trace_kind kind_of(sim *s, const func_info *f, const instr *i) {
  const op_row *row = op_row_of(i->op);
  trace_kind k = {.what = i->op, .where = i->where, .bytes = -1};
  k.flags =
      (u8)((row->flags & OPF_COMM ? TRACE_COMM : 0) | (i->flags & INSTR_BACKWARD ? TRACE_BACKWARD : 0) |
           (i->flags & INSTR_UPDATE ? TRACE_UPDATE : 0) | (i->flags & INSTR_RECOMPUTE ? TRACE_RECOMPUTE : 0));
  for (u32 o = 0; row->flags & OPF_COMM && o < instr_nopd(f, i); o++) { // of all that is moved in one go
    const type_info *ti = val_type(s->p, f, opd_of(f, i, o));
    if (!ti->tuple) k.bytes = MAX(k.bytes, 0) + local_bytes(s, ti, (group){0}, 0);
  }
  return k;
}

// Of the functions that run.
static void describe_kinds(sim *s, timeline *l) {
  arena_mark_t mark = arena_mark(s->tmp);
  u32 nfuncs, n = 0, *order = ir_call_order(s->p, s->tmp, &nfuncs);
  u32 *first = ZNEWN(s->a, u32, s->p->funcs.n);
  for (u32 k = 0; k < nfuncs; k++) first[order[k]] = n, n += func_get(s->p, (func){order[k]})->body.n;
  trace_kind *kind = NEWN(s->a, trace_kind, n);
  for (u32 k = 0; k < nfuncs; k++) {
    const func_info *f = func_get(s->p, (func){order[k]});
    for (u32 j = 0; j < f->body.n; j++) {
      trace_kind *to = &kind[first[order[k]] + j];
      *to = kind_of(s, f, &f->body.v[j]);
      to->func = order[k];
      to->instr = j + 1;
    }
  }
  sym *name = ZNEWN(s->a, sym, s->p->funcs.n);
  for (u32 k = 0; k < nfuncs; k++) name[order[k]] = func_get(s->p, (func){order[k]})->name;
  l->first_kind = first;
  l->of.kind = kind, l->of.func = name;
  arena_release(s->tmp, mark);
}

static const trace_task *tasks_of(sim *s) {
  const prog *p = s->p;
  if (!ir_has_tasks(p)) return NULL;
  trace_task *v = NEWN(s->a, trace_task, p->tasks.n + 1);
  for (u32 k = 0; k < p->tasks.n; k++) {
    const task_span *x = &p->tasks.v[k];
    v[k + 1] = (trace_task){x->stage, x->microbatch, x->letter, x->send};
  }
  return v;
}

static void count_event(void *arg, const trace_event *e) { ((u32 *)arg)[e->lane]++; }

trace_source *timeline_of(sim *s, const sim_graph *c) {
  timeline *l = NEW(s->a, timeline);
  u32 *rank = NEWN(s->a, u32, s->nclasses), lanes = s->nranks * s->nstreams;
  u32 *count = ZNEWN(s->a, u32, lanes);
  const u32 nnames = op_limit(s->c);
  sym *name = ZNEWN(s->a, sym, nnames);
  for (u32 k = s->nranks; k-- > 0;) rank[s->class_of_rank[k]] = k;
  op_names(s->c, name);
  *l = (timeline){.of = {.nranks = s->nranks,
                         .nstreams = s->nstreams,
                         .nnames = nnames,
                         .stream_name = s->p->streams.v,
                         .name = name,
                         .task = tasks_of(s),
                         .count = count,
                         .play = play},
                  .p = s->p,
                  .c = c,
                  .rank_of_class = rank,
                  .layers = ir_layers_of(s->a, s->p),
                  .held = s->held,
                  .class_of_rank = arena_dup(s->a, s->class_of_rank, s->nranks * sizeof *s->class_of_rank),
                  .nclasses = s->nclasses};
  describe_kinds(s, l);
  play(&l->of, s->tmp, 0, lanes, count_event, count);
  return &l->of;
}
