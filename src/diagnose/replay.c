// replay.c - a job again from durations and dependencies alone: no start on a device and no wait is taken over.
//
// Idea: an event graph (sim/) of all processes. The host's line is a chain of items; an item releases its ops, which
// start one class latency later at the earliest, after what is before them on their stream, and after what their
// stream was told to wait for. In a serial process (job_work.serial) there are no such latencies, but that a thread takes to wake
// (wake_ps). A communication starts its transfer when the last member is there. Durations are written into the graph before a run, so a
// scenario costs one pass.
#include "diagnose/internal.h"
#include "sim/sim.h"
#include <stdlib.h>

typedef enum { NODE_HOST, NODE_OP, NODE_TRANSFER, NODE_LATENCY, NODE_FREE } part_kind;
typedef struct {
  u8 kind;
  u32 process, index; // item or op
} node_of;
struct replay {
  arena *a;
  replay_input in;
  replay_latency l;
  i64 base_ns;     // times of the graph are relative to ...
  i64 earliest_ps; // ... this, after base_ns
  sim_nodes b;
  VEC(node_of) node;
  u32 **item_node, **op_node; // the node whose duration is that of the item, the op or its transfer
  u32 **rest_node;            // + 1: of items that launch before they end; the other has what comes before
  u32 **start_node;           // the node that starts when the op does
  u32 **end_slot;
  u32 end; // slot: the end of all
  sim_graph g;
  i64 *dur, *x, *node_start;
};

// ---- latencies ------------------------------------------------------------------------------------------
// The median. Recorders round to whole microseconds or nanoseconds, so several are equal: within those it lies as far
// as they have to be divided, as if they filled the interval that is rounded to them.
i64 figures_median(figures *f) {
  if (!f->n) return 0;
  qsort(f->v, f->n, sizeof *f->v, ascending_i64);
  const i64 v = f->v[f->n / 2];
  u32 below = f->n / 2, above = f->n / 2;
  while (below && f->v[below - 1] == v) below--;
  while (above < f->n && f->v[above] == v) above++;
  const i64 unit = v % 1000000 ? 0 : 1000000; // whole microseconds
  if (above - below < 2 || !unit) return MAX(v, 0);
  return MAX(v - unit / 2 + (i64)((double)unit * (f->n / 2. - below) / (above - below)), 0);
}
static i64 op_end(const work_op *o) { return o->start_ps + o->dur_ps; }

// When the ops that o was told to wait for had ended.
static i64 others_end(const job_work *w, const work_op *o) {
  i64 t = INT64_MIN;
  for (u32 j = o->first_after; j < o[1].first_after; j++) t = MAX(t, op_end(&w->op[w->after[j]]));
  return t;
}

// Launches onto an idle device. What came before the first op is not known.
static void measure_launches(const job_work *w, arena *tmp, figures launch[LAUNCH_KINDS]) {
  i64 idle = INT64_MIN; // since when the device is
  for (u32 k = 0; k < w->nops; k++) {
    const work_op *o = &w->op[k];
    const work_item *it = &w->item[o->item];
    if (idle > INT64_MIN && idle <= it->start_ps && !it->early_ps)
      *vec_push(tmp, &launch[o->kind]) = o->start_ps - it->end_ps;
    idle = MAX(idle, op_end(o));
  }
}

// Where the device is never seen idle, its first op tells, if it began no later than starting a kernel takes.
static void measure_first(const job_work *w, arena *tmp, figures *first) {
  const i64 most = 30000000, ps = w->nops ? w->op[0].start_ps - w->item[w->op[0].item].end_ps : -1;
  if (ps >= 0 && ps < most && !w->item[w->op[0].item].early_ps) *vec_push(tmp, first) = ps;
}

// Ops that were there in time, and waited for what is before them: on their stream, or on another.
static void measure_queues(const job_work *w, const replay_latency *l, arena *tmp, figures *queue,
                           figures *cross, figures *sync) {
  i64 *free = NEWN(tmp, i64, w->nstreams + 1);
  for (u32 s = 0; s < w->nstreams; s++) free[s] = INT64_MIN;
  for (u32 k = 0; k < w->nops; k++) {
    const work_op *o = &w->op[k];
    const i64 there = w->item[o->item].end_ps + l->launch_ps[o->kind], after = others_end(w, o);
    if (after == INT64_MIN && free[o->stream] >= there)
      *vec_push(tmp, queue) = o->start_ps - free[o->stream];
    else if (after >= there && after > free[o->stream])
      *vec_push(tmp, cross) = o->start_ps - after;
    free[o->stream] = MAX(free[o->stream], op_end(o));
  }
  for (u32 i = 0; i < w->nitems; i++) {
    i64 end = INT64_MIN;
    for (u32 j = w->item[i].first_wait; j < w->item[i + 1].first_wait; j++)
      end = MAX(end, op_end(&w->op[w->wait[j]]));
    if (w->item[i].waited) *vec_push(tmp, sync) = w->item[i].end_ps - end;
  }
}

// Of processes with devices.
static void measure(replay *r) {
  arena *tmp = arena_new();
  figures launch[LAUNCH_KINDS] = {0}, queue = {0}, cross = {0}, sync = {0};
  const job_work **w = NEWN(tmp, const job_work *, r->in.n + 1);
  u32 n = 0;
  for (u32 p = 0; p < r->in.n; p++)
    if (!r->in.w[p]->serial) w[n++] = r->in.w[p];
  for (u32 p = 0; p < n; p++) measure_launches(w[p], tmp, launch);
  figures any = {0}, first = {0}; // a class that was never seen on an idle device is taken for one that was
  for (u32 k = 0; k < LAUNCH_KINDS; k++)
    for (u32 i = 0; i < launch[k].n; i++) *vec_push(tmp, &any) = launch[k].v[i];
  for (u32 p = 0; !any.n && p < n; p++) measure_first(w[p], tmp, &first);
  if (!any.n) any = first;
  for (u32 k = 0; k < LAUNCH_KINDS; k++) r->l.launch_ps[k] = figures_median(launch[k].n ? &launch[k] : &any);
  for (u32 p = 0; p < n; p++) measure_queues(w[p], &r->l, tmp, &queue, &cross, &sync);
  r->l.queue_ps = figures_median(&queue), r->l.cross_ps = figures_median(&cross),
  r->l.sync_ps = figures_median(&sync);
  arena_free(tmp);
}

// ---- the graph ------------------------------------------------------------------------------------------
static u32 put(replay *r, part_kind kind, u32 p, u32 index, i64 dur) { // after its references
  sim_node_end(&r->b, dur);
  *vec_push(r->a, &r->node) = (node_of){(u8)kind, p, index};
  return r->node.n - 1;
}
// A slot that has the time in `slot` and a latency more.
static u32 later(replay *r, u32 p, u32 index, u32 slot, i64 latency) {
  const u32 to = sim_slot(&r->b);
  sim_node_waits(&r->b), sim_ref(&r->b, slot), sim_node_makes(&r->b), sim_ref(&r->b, to);
  put(r, NODE_LATENCY, p, index, latency);
  return to;
}

typedef struct {
  u32 clock;   // of the host
  u32 *stream; // when it is free
  u32 *item;   // slot: when the item is done
  u32 next;    // item to be placed
  u32 **queue; // by stream: ops in order, ended by TRACE_NONE
  u32 *at;     // by stream: of its queue
} line;
typedef struct {
  u32 members, arrived; // that there are; whose ops are placed
  u32 slot;             // when the last is there; made when all have arrived
  VEC(u32) here;        // their slots
} meeting;
typedef struct {
  replay *r;
  arena *tmp;
  line *line;
  meeting *meet;
  u32 **arrival; // [process][op]: of communications that are placed, slot + 1
} placing;

static i64 offset_of(const replay *r, const job_work *w) {
  return (w->base_ns - r->base_ns) * 1000 + w->start_ps;
}
i64 replay_start_of(const replay *r, u32 process) { return offset_of(r, r->in.w[process]) - r->earliest_ps; }

// A stream may still be busy with what was launched before the recording begins. If its first op began more than ten
// launch latencies after its launch, the stream was free then, and not before. In a short recording no launch may have
// met a free stream, so that their latency is not known: none is below a microsecond.
static const i64 LEAST_LAUNCH_PS = 1000000;

static void begin_stream(placing *x, u32 p, u32 s) {
  const job_work *w = x->r->in.w[p];
  line *l = &x->line[p];
  const u32 k = l->queue[s][0];
  if (k == TRACE_NONE || w->serial || w->op[k].comm || w->op[k].first_after < w->op[k + 1].first_after)
    return;
  const work_op *o = &w->op[k];
  const i64 launch = MAX(x->r->l.launch_ps[o->kind], LEAST_LAUNCH_PS);
  if (o->start_ps - w->item[o->item].end_ps <= 10 * launch) return;
  l->stream[s] = sim_slot(&x->r->b);
  sim_node_waits(&x->r->b), sim_node_makes(&x->r->b), sim_ref(&x->r->b, l->stream[s]);
  put(x->r, NODE_FREE, p, k, o->start_ps - w->start_ps + replay_start_of(x->r, p));
}

static void begin_line(placing *x, u32 p) {
  const job_work *w = x->r->in.w[p];
  line *l = &x->line[p];
  *l = (line){.clock = sim_slot(&x->r->b)};
  sim_node_waits(&x->r->b), sim_node_makes(&x->r->b), sim_ref(&x->r->b, l->clock);
  put(x->r, NODE_FREE, p, 0, replay_start_of(x->r, p));
  l->stream = NEWN(x->tmp, u32, w->nstreams + 1);
  l->item = ZNEWN(x->tmp, u32, w->nitems + 1);
  l->queue = NEWN(x->tmp, u32 *, w->nstreams + 1);
  l->at = ZNEWN(x->tmp, u32, w->nstreams + 1);
  u32 *n = ZNEWN(x->tmp, u32, w->nstreams + 1);
  for (u32 k = 0; k < w->nops; k++) n[w->op[k].stream]++;
  for (u32 s = 0; s < w->nstreams; s++) {
    l->queue[s] = NEWN(x->tmp, u32, n[s] + 1), n[s] = 0;
    l->stream[s] = 0;
  }
  for (u32 k = 0; k < w->nops; k++) l->queue[w->op[k].stream][n[w->op[k].stream]++] = k;
  for (u32 s = 0; s < w->nstreams; s++) {
    l->queue[s][n[s]] = TRACE_NONE;
    begin_stream(x, p, s);
  }
}

// The item, if what it waits for is placed.
static bool place_item(placing *x, u32 p) {
  replay *r = x->r;
  const job_work *w = r->in.w[p];
  line *l = &x->line[p];
  const u32 i = l->next;
  const work_item *it = &w->item[i];
  if (i == w->nitems) return false;
  for (u32 j = it->first_wait; j < it[1].first_wait; j++)
    if (!r->end_slot[p][w->wait[j]]) return false;
  sim_ref(&r->b, l->clock), sim_node_waits(&r->b), sim_node_makes(&r->b);
  r->item_node[p][i] = put(r, NODE_HOST, p, i, it->host_ps);
  l->item[i] = sim_slot(&r->b);
  if (it->early_ps) { // released here; the rest of the call comes then
    sim_node_waits(&r->b), sim_ref(&r->b, l->clock), sim_node_makes(&r->b), sim_ref(&r->b, l->item[i]);
    put(r, NODE_FREE, p, i, 0);
    sim_ref(&r->b, l->clock), sim_node_waits(&r->b), sim_node_makes(&r->b);
    r->rest_node[p][i] = put(r, NODE_HOST, p, i, 0) + 1;
  }
  if (it->first_wait < it[1].first_wait) {
    u32 *slot = NEWN(x->tmp, u32, it[1].first_wait - it->first_wait), n = 0;
    for (u32 j = it->first_wait; j < it[1].first_wait; j++)
      slot[n++] = later(r, p, i, r->end_slot[p][w->wait[j]], w->serial ? 0 : r->l.sync_ps);
    sim_ref(&r->b, l->clock), sim_node_waits(&r->b);
    for (u32 j = 0; j < n; j++) sim_ref(&r->b, slot[j]);
    sim_node_makes(&r->b), put(r, NODE_FREE, p, i, 0);
  }
  if (!it->early_ps) {
    sim_node_waits(&r->b), sim_ref(&r->b, l->clock), sim_node_makes(&r->b), sim_ref(&r->b, l->item[i]);
    put(r, NODE_FREE, p, i, 0);
  }
  l->next++;
  return true;
}

static void finish_op(placing *x, u32 p, u32 k, u32 from, part_kind kind, i64 dur) {
  replay *r = x->r;
  const work_op *o = &r->in.w[p]->op[k];
  const u32 end = r->end_slot[p][k] = sim_slot(&r->b);
  sim_node_waits(&r->b), sim_ref(&r->b, from), sim_node_makes(&r->b), sim_ref(&r->b, end);
  r->op_node[p][k] = put(r, kind, p, k, dur);
  x->line[p].stream[o->stream] = later(r, p, k, end, r->in.w[p]->serial ? 0 : r->l.queue_ps);
  x->line[p].at[o->stream]++;
}

// When the last member of a communication is there.
static void meet(placing *x, meeting *m, u32 p, u32 k) {
  replay *r = x->r;
  m->slot = sim_slot(&r->b);
  sim_node_waits(&r->b);
  for (u32 j = 0; j < m->here.n; j++) sim_ref(&r->b, m->here.v[j]);
  sim_node_makes(&r->b), sim_ref(&r->b, m->slot);
  put(r, NODE_FREE, p, k, 0);
}

// The op's slot that has the time at which it begins.
static u32 begin_op(placing *x, u32 p, u32 k) {
  replay *r = x->r;
  const job_work *w = r->in.w[p];
  const work_op *o = &w->op[k];
  const line *l = &x->line[p];
  const bool at_once = w->serial || w->item[o->item].early_ps;
  const u32 there = later(r, p, k, l->item[o->item], at_once ? 0 : r->l.launch_ps[o->kind]);
  u32 *slot = NEWN(x->tmp, u32, o[1].first_after - o->first_after), n = 0, begins = sim_slot(&r->b);
  for (u32 j = o->first_after; j < o[1].first_after; j++)
    slot[n++] = later(r, p, k, r->end_slot[p][w->after[j]], r->l.cross_ps);
  sim_node_waits(&r->b), sim_ref(&r->b, there);
  if (l->stream[o->stream]) sim_ref(&r->b, l->stream[o->stream]);
  for (u32 j = 0; j < n; j++) sim_ref(&r->b, slot[j]);
  sim_node_makes(&r->b), sim_ref(&r->b, begins);
  r->start_node[p][k] = put(r, NODE_FREE, p, k, 0);
  if (!o->wake_ps) return begins;
  const u32 able = later(r, p, k, begins, o->wake_ps);
  begins = sim_slot(&r->b);
  sim_node_waits(&r->b), sim_ref(&r->b, able), sim_node_makes(&r->b), sim_ref(&r->b, begins);
  r->start_node[p][k] = put(r, NODE_FREE, p, k, 0);
  return begins;
}

// The next op of a stream, if what it waits for is placed; of a communication the arrival, then the transfer.
static bool place_op(placing *x, u32 p, u32 s) {
  replay *r = x->r;
  const job_work *w = r->in.w[p];
  line *l = &x->line[p];
  const u32 k = l->queue[s][l->at[s]];
  if (k == TRACE_NONE || w->op[k].item >= l->next) return false;
  const work_op *o = &w->op[k];
  const u32 coll = r->in.coll ? r->in.coll[p][k] : 0;
  meeting *m = coll ? &x->meet[coll] : NULL;
  if (m && x->arrival[p][k]) {
    if (m->arrived < m->members) return false;
    if (!m->slot) meet(x, m, p, k);
    finish_op(x, p, k, m->slot, NODE_TRANSFER, 0);
    return true;
  }
  for (u32 j = o->first_after; j < o[1].first_after; j++)
    if (!r->end_slot[p][w->after[j]]) return false;
  const u32 begins = begin_op(x, p, k);
  if (!m || o->leaves) {
    finish_op(x, p, k, begins, NODE_OP, o->dur_ps);
    if (m) *vec_push(x->tmp, &m->here) = begins, m->arrived++;
    return true;
  }
  *vec_push(x->tmp, &m->here) = begins;
  m->arrived++, x->arrival[p][k] = begins + 1;
  return true;
}

static bool place_all(placing *x) {
  const replay_input *in = &x->r->in;
  u64 left = 0;
  for (u32 p = 0; p < in->n; p++) left += in->w[p]->nitems + in->w[p]->nops;
  for (bool on = true; on;) {
    on = false;
    for (u32 p = 0; p < in->n; p++) {
      for (bool here = true; here;) {
        here = false;
        while (place_item(x, p)) here = true, left--;
        for (u32 s = 0; s < in->w[p]->nstreams; s++) {
          const line *l = &x->line[p];
          u32 before = l->at[s];
          while (place_op(x, p, s)) here = true;
          left -= l->at[s] - before;
        }
        on |= here;
      }
    }
  }
  return !left;
}

static void put_end(placing *x) {
  replay *r = x->r;
  r->end = sim_slot(&r->b);
  sim_node_waits(&r->b);
  for (u32 p = 0; p < r->in.n; p++)
    for (u32 k = 0; k < r->in.w[p]->nops; k++) sim_ref(&r->b, r->end_slot[p][k]);
  sim_node_makes(&r->b), sim_ref(&r->b, r->end);
  put(r, NODE_FREE, 0, 0, 0);
}

static void count_members(placing *x) {
  const replay_input *in = &x->r->in;
  x->meet = ZNEWN(x->tmp, meeting, in->ncolls + 1);
  for (u32 p = 0; in->coll && p < in->n; p++)
    for (u32 k = 0; k < in->w[p]->nops; k++) x->meet[in->coll[p][k]].members++;
}

// Transfers as recorded: from the moment when the last member was there.
static void put_transfers(const replay *r, i64 **op) {
  const replay_input *in = &r->in;
  for (u32 p = 0; in->coll && p < in->n; p++)
    for (u32 k = 0; k < in->w[p]->nops; k++) {
      if (!in->coll[p][k] || in->w[p]->op[k].leaves) continue;
      const replay_meeting *m = &in->meet[in->coll[p][k]];
      const job_work *w = in->w[p], *late = in->w[m->process];
      const i64 end = (w->base_ns - r->base_ns) * 1000 + op_end(&w->op[k]);
      op[p][k] = MAX(end - (late->base_ns - r->base_ns) * 1000 - late->op[m->late_op].start_ps, 0);
    }
}

replay *replay_new(ctx *c, arena *a, const replay_input *in) {
  replay *r = NEW(a, replay);
  r->a = a, r->in = *in;
  r->base_ns = in->n ? in->w[0]->base_ns : 0, r->earliest_ps = INT64_MAX;
  for (u32 p = 0; p < in->n; p++) r->base_ns = MIN(r->base_ns, in->w[p]->base_ns);
  for (u32 p = 0; p < in->n; p++) r->earliest_ps = MIN(r->earliest_ps, offset_of(r, in->w[p]));
  measure(r);
  sim_nodes_begin(&r->b, a);
  placing x = {.r = r, .tmp = arena_new()};
  x.line = NEWN(x.tmp, line, in->n + 1);
  x.arrival = NEWN(x.tmp, u32 *, in->n + 1);
  r->item_node = NEWN(a, u32 *, in->n + 1), r->op_node = NEWN(a, u32 *, in->n + 1);
  r->rest_node = NEWN(a, u32 *, in->n + 1);
  r->start_node = NEWN(a, u32 *, in->n + 1), r->end_slot = NEWN(a, u32 *, in->n + 1);
  for (u32 p = 0; p < in->n; p++) {
    const job_work *w = in->w[p];
    r->item_node[p] = ZNEWN(a, u32, w->nitems + 1), r->op_node[p] = ZNEWN(a, u32, w->nops + 1);
    r->rest_node[p] = ZNEWN(a, u32, w->nitems + 1);
    r->start_node[p] = ZNEWN(a, u32, w->nops + 1), r->end_slot[p] = ZNEWN(a, u32, w->nops + 1);
    x.arrival[p] = ZNEWN(x.tmp, u32, w->nops + 1);
    begin_line(&x, p);
  }
  count_members(&x);
  const bool ok = place_all(&x);
  put_end(&x);
  arena_free(x.tmp);
  if (!ok) {
    diag(c, E_TRACE, (loc){0},
         "the communications of the processes are not in one order, or some of them are missing");
    diag_hint(c,
              "ask for whole steps with --steps; `heddle trace hang` reads dumps of jobs that stood still");
    return NULL;
  }
  r->g = sim_nodes_graph(&r->b, r->end);
  r->dur = r->b.dur.v;
  r->x = NEWN(a, i64, r->g.nslot);
  r->node_start = NEWN(a, i64, r->g.n + 1);
  return r;
}

const replay_latency *replay_latencies(const replay *r) { return &r->l; }
const replay_input *replay_input_of(const replay *r) { return &r->in; }

// ---- runs -----------------------------------------------------------------------------------------------
replay_times replay_recorded(const replay *r, arena *a) {
  replay_times t = {NEWN(a, i64 *, r->in.n + 1), NEWN(a, i64 *, r->in.n + 1)};
  for (u32 p = 0; p < r->in.n; p++) {
    const job_work *w = r->in.w[p];
    t.host[p] = NEWN(a, i64, w->nitems + 1), t.op[p] = NEWN(a, i64, w->nops + 1);
    for (u32 i = 0; i < w->nitems; i++) t.host[p][i] = w->item[i].host_ps;
    for (u32 k = 0; k < w->nops; k++) t.op[p][k] = w->op[k].dur_ps;
  }
  put_transfers(r, t.op);
  return t;
}

static void set_durations(replay *r, const replay_times *t) {
  for (u32 p = 0; p < r->in.n; p++) {
    for (u32 i = 0; i < r->in.w[p]->nitems; i++) {
      const i64 all = t->host[p][i], early = MIN(r->in.w[p]->item[i].early_ps, all);
      r->dur[r->item_node[p][i]] = all - early;
      if (r->rest_node[p][i]) r->dur[r->rest_node[p][i] - 1] = early;
    }
    for (u32 k = 0; k < r->in.w[p]->nops; k++) r->dur[r->op_node[p][k]] = t->op[p][k];
  }
}

static void note_start(void *arg, const sim_graph *g, u32 node, i64 start) {
  (void)g;
  ((replay *)arg)->node_start[node] = start;
}
static void pass_by(void *arg, const sim_graph *g, u32 node) { (void)arg, (void)g, (void)node; }

i64 replay_run(replay *r, const replay_times *t, i64 *const *start, i64 *const *end) {
  set_durations(r, t);
  const sim_watch w = {r, note_start, pass_by, pass_by};
  if (start)
    sim_flat_watched(&r->g, r->x, NULL, &w);
  else
    sim_flat(&r->g, r->x, NULL);
  for (u32 p = 0; p < r->in.n; p++)
    for (u32 k = 0; k < r->in.w[p]->nops; k++) {
      if (start) start[p][k] = r->node_start[r->start_node[p][k]];
      if (end) end[p][k] = r->x[r->end_slot[p][k]];
    }
  return r->x[r->end];
}

// ---- the longest path -----------------------------------------------------------------------------------
typedef struct {
  const replay *r;
  replay_path *path;
} follower;

static void on_path(void *arg, const sim_graph *g, u32 node, u32 cls, i64 start) {
  const follower *f = arg;
  const node_of *n = &f->r->node.v[node];
  (void)cls, (void)start;
  const i64 dur = g->dur[node];
  switch ((part_kind)n->kind) {
  case NODE_HOST: f->path->host_ps += dur, f->path->rank_host_ps[n->process] += dur; break;
  case NODE_OP: f->path->device_ps += dur; break;
  case NODE_TRANSFER: f->path->transfer_ps += dur; break;
  case NODE_LATENCY: f->path->latency_ps += dur; break;
  case NODE_FREE: f->path->begin_ps += dur; break;
  }
}

replay_path replay_critical(replay *r, const replay_times *t, arena *a) {
  replay_path path = {.rank_host_ps = ZNEWN(a, i64, r->in.n + 1)};
  set_durations(r, t);
  arena *tmp = arena_new();
  sim_critical(tmp, &r->g, NULL, 0, on_path, &(follower){r, &path});
  arena_free(tmp);
  return path;
}
