// graph.c - the global graph of a plan, replayed: computation of every worker, and its communication step by step. Not
// memory (memory.c), not what to change (passes.c).
//
// Idea: one builder makes both graphs. With one worker a ring is one node as long as all its steps, and a server's link
// one node as long as what all workers send over it; with all workers these are nodes of their own. Durations are chosen
// so that both give the same times to the picosecond when all workers do the same.
//
// All-reduce is a ring: 2 (n - 1) steps in which every worker sends one n-th to the next (Patarasuk and Yuan, 2009).
// Servers: a piece is pushed over the worker's own link, comes in over the link of its server, is added up when it is
// there from all, goes out and is pulled (BytePS, OSDI 2020). Pieces are dealt out to servers in turn.
#include "sim/sim.h"
#include "tune/tune.h"

typedef struct {
  u32 from, to;
} edge;
typedef struct {
  arena *a;
  const tune_job *j;
  const tune_plan *p;
  u32 n; // workers that are nodes
  VEC(i64) dur;
  VEC(u32) res, rank, op, bucket;
  VEC(edge) edges;
  u32 piece; // pieces so far, for servers
  u32 turn;  // rank on a worker's link of what begins to be sent
} graph;
// On a link: what holds it or has begun; whatever is ready; with priorities, from here on by who reads it.
enum { TURN_NOW, TURN_ANY, TURN_BY_READER };

// Resources: the device of every worker; its link, or its link up; its link down; of every server the link in, out.
static u32 link_of(const graph *g, u32 worker) { return g->n + worker; }
static u32 down_of(const graph *g, u32 worker) { return 2 * g->n + worker; }
static u32 in_of(const graph *g, u32 server) { return 3 * g->n + server; }
static u32 out_of(const graph *g, u32 server) { return 3 * g->n + g->j->link.servers + server; }
static u32 resources(const graph *g) { return 3 * g->n + 2 * g->j->link.servers; }

static u32 node(graph *g, u32 res, i64 dur) {
  *vec_push(g->a, &g->dur) = dur, *vec_push(g->a, &g->res) = res;
  *vec_push(g->a, &g->op) = TUNE_NONE, *vec_push(g->a, &g->bucket) = TUNE_NONE;
  *vec_push(g->a, &g->rank) = TURN_ANY;
  return g->dur.n - 1;
}

static void after(graph *g, u32 to, u32 from) {
  if (from != TUNE_NONE) *vec_push(g->a, &g->edges) = (edge){from, to};
}

static i64 rate_ps(i64 bytes, double ps) { return (i64)((double)bytes * ps + 0.5); }

// ---- communication --------------------------------------------------------------------------------------
// ready, done: of every worker's node.
static void put_ring(graph *g, i64 bytes, const u32 *ready, u32 *done) {
  const tune_link *l = &g->j->link;
  const u32 steps = 2 * (l->workers - 1);
  const i64 step = l->step_ps + rate_ps((bytes + l->workers - 1) / l->workers, l->ps_per_byte);
  if (g->n == 1) {
    done[0] = node(g, link_of(g, 0), l->start_ps + (i64)steps * step);
    g->rank.v[done[0]] = g->turn;
    after(g, done[0], ready[0]);
    return;
  }
  // Its start waits for all, and holds the link till then as a kernel of a communication does.
  u32 *now = NEWN(g->a, u32, 2 * g->n), *next = now + g->n;
  for (u32 w = 0; w < g->n; w++) {
    now[w] = node(g, link_of(g, w), l->start_ps);
    g->rank.v[now[w]] = g->turn;
    for (u32 i = 0; i < g->n; i++) after(g, now[w], ready[i]);
  }
  for (u32 s = 0; s < steps; s++) {
    for (u32 w = 0; w < g->n; w++) {
      next[w] = node(g, link_of(g, w), step);
      if (g->turn >= TURN_BY_READER) g->rank.v[next[w]] = TURN_NOW;
      after(g, next[w], now[w]), after(g, next[w], now[(w + g->n - 1) % g->n]);
    }
    memcpy(now, next, sizeof *now * g->n);
  }
  memcpy(done, now, sizeof *now * g->n);
}

static void put_piece(graph *g, i64 bytes, const u32 *ready, u32 *done) {
  const tune_link *l = &g->j->link;
  const u32 server = g->piece++ % l->servers, n = l->workers;
  const i64 wire = rate_ps(bytes, l->ps_per_byte), own = l->step_ps + wire;
  // What is left of a worker's piece on the server's link, since the first comes in while it is sent.
  const i64 in = (wire * (n - 1)) / n + rate_ps(bytes, l->sum_ps_per_byte), out = (wire * (n - 1)) / n;
  const u32 times = g->n == 1 ? n : 1;
  u32 *sent = NEWN(g->a, u32, g->n);
  for (u32 w = 0; w < g->n; w++) {
    const u32 push = node(g, link_of(g, w), l->start_ps + own);
    g->rank.v[push] = g->turn; // servers take what comes
    after(g, push, ready[w]);
    sent[w] = node(g, in_of(g, server), in * times);
    after(g, sent[w], push);
  }
  for (u32 w = 0; w < g->n; w++) {
    const u32 back = node(g, out_of(g, server), out * times);
    for (u32 i = 0; i < g->n; i++) after(g, back, sent[i]);
    done[w] = node(g, down_of(g, w), own);
    after(g, done[w], back);
  }
}

// All pieces of a bucket; its label is on them. last: what a worker waits for, appended.
typedef VEC(u32) numbers;
static void put_bucket(graph *g, u32 bucket, i64 bytes, u32 cut, const u32 *ready, numbers *last) {
  u32 *done = NEWN(g->a, u32, g->n);
  const i64 piece = (bytes + cut - 1) / cut;
  const u32 first = g->dur.n;
  for (u32 k = 0; k < cut; k++) {
    if (g->j->link.sync == TUNE_ALL_REDUCE)
      put_ring(g, piece, ready, done);
    else
      put_piece(g, piece, ready, done);
    for (u32 w = 0; w < g->n; w++) *vec_push(g->a, &last[w]) = done[w];
  }
  for (u32 k = first; k < g->dur.n; k++) g->bucket.v[k] = bucket;
}

// ---- computation ----------------------------------------------------------------------------------------
typedef struct {
  u32 last;   // node of the worker
  i64 at;     // its end, if it never waits: what workers compute does not wait before the updates
  u32 *ready; // node of every gradient
  i64 *ready_ps;
} worker;

static void put_op(graph *g, worker *x, u32 w, u32 op, i64 ps) {
  const u32 k = node(g, w, ps);
  g->op.v[k] = op;
  after(g, k, x->last);
  x->last = k, x->at += ps;
}

// What has to be computed again before the backward of a block.
static i64 again_ps(const graph *g, u32 block) {
  i64 ps = 0;
  for (u32 k = 0, end; k < g->j->nops && g->j->op[k].phase == TUNE_FORWARD; k = end) {
    const i64 ps_of_it = tune_group_ps(g->j, g->p, k, &end);
    bool heavy = false;
    for (u32 i = k; i < end; i++) heavy |= g->j->op[i].heavy;
    if (g->j->op[k].block == block && (g->p->recompute[block] == TUNE_WHOLE || !heavy)) ps += ps_of_it;
  }
  return ps;
}

static void put_phase(graph *g, worker *x, u32 w, tune_phase phase, const i64 *again) {
  const tune_job *j = g->j;
  u32 block = TUNE_NONE, tensor = 0;
  for (u32 k = 0, end; k < j->nops; k = end) {
    i64 ps = tune_group_ps(j, g->p, k, &end);
    if (j->op[k].phase != phase) continue;
    if (phase == TUNE_BACKWARD && j->op[k].block != block && again[j->op[k].block])
      put_op(g, x, w, TUNE_NONE, again[j->op[k].block]);
    block = j->op[k].block;
    for (u32 t = tensor; t < j->ntensors && j->tensor[t].op < end; t++)
      if (g->p->compressed[t]) ps += rate_ps(j->tensor[t].bytes, j->compress_ps_per_byte);
    put_op(g, x, w, k, ps);
    for (; phase == TUNE_BACKWARD && tensor < j->ntensors && j->tensor[tensor].op < end; tensor++)
      x->ready[tensor] = x->last, x->ready_ps[tensor] = x->at;
  }
}

static void put_worker(graph *g, worker *x, u32 w, i64 *ready_ps) {
  const tune_job *j = g->j;
  i64 *again = ZNEWN(g->a, i64, j->nblocks + 1);
  *x = (worker){.last = TUNE_NONE,
                .ready = NEWN(g->a, u32, j->ntensors + 1),
                .ready_ps = NEWN(g->a, i64, j->ntensors + 1)};
  for (u32 k = 0; k < j->nblocks; k++)
    if (g->p->recompute[k]) again[k] = again_ps(g, k);
  for (u32 m = 0; m < g->p->accumulate; m++) {
    if (m || !g->p->priority) put_phase(g, x, w, TUNE_FORWARD, again);
    put_phase(g, x, w, TUNE_BACKWARD, again);
  }
  memcpy(ready_ps, x->ready_ps, j->ntensors * sizeof *ready_ps);
}

static u32 *ready_nodes(graph *g, const worker *x, u32 tensor, i64 ready_ps) {
  u32 *ready = NEWN(g->a, u32, g->n);
  const i64 cycle = g->p->cycle_ps, wait = cycle ? (cycle - ready_ps % cycle) % cycle : 0;
  for (u32 w = 0; w < g->n; w++) {
    ready[w] = x[w].ready[tensor];
    if (!wait) continue;
    const u32 tick = node(g, TRACE_NONE, wait);
    after(g, tick, ready[w]);
    ready[w] = tick;
  }
  return ready;
}

// With cycles nothing starts between two of them: a bucket that begins with one holds the channel to the end of another.
static void hold(graph *g, u32 w, u32 last, i64 took) {
  const i64 cycle = g->p->cycle_ps, rest = (cycle - took % cycle) % cycle;
  if (!rest) return;
  const u32 k = node(g, link_of(g, w), rest);
  after(g, k, last);
  g->rank.v[k] = TURN_NOW;
}

// ---- the next forward, with priorities ------------------------------------------------------------------
// The op of the forward that waits for a gradient: the first one, if nobody knows.
static u32 reader_of(const tune_job *j, u32 tensor) {
  const u32 k = j->tensor[tensor].read_by;
  return k < j->nops && j->op[k].phase == TUNE_FORWARD ? k : 0;
}

static u32 first_reader(const tune_job *j, u32 first, u32 end) {
  u32 op = reader_of(j, first);
  for (u32 t = first + 1; t < end; t++) op = MIN(op, reader_of(j, t));
  return op;
}

static i64 updates_ps(const graph *g) {
  i64 ps = 0;
  for (u32 k = 0, end; k < g->j->nops; k = end) {
    const i64 own = tune_group_ps(g->j, g->p, k, &end);
    if (g->j->op[k].phase == TUNE_UPDATE) ps += own;
  }
  return ps;
}

// The update of what ops [first, end) read, by its share of the bytes; *done: bytes that were updated before.
static void put_update(graph *g, worker *x, u32 w, u32 first, u32 end, i64 all_ps, i64 *done,
                       const numbers *of_tensor) {
  const tune_job *j = g->j;
  i64 all = 0, bytes = *done;
  for (u32 t = 0; t < j->ntensors; t++) {
    all += j->tensor[t].bytes;
    if (reader_of(j, t) >= first && reader_of(j, t) < end) bytes += j->tensor[t].bytes;
  }
  const double before = all ? (double)*done / (double)all : 0,
               after_it = all ? (double)bytes / (double)all : 1;
  const i64 ps = (i64)((double)all_ps * after_it) - (i64)((double)all_ps * before);
  const u32 k = node(g, w, ps);
  after(g, k, x->last);
  for (u32 t = 0; t < j->ntensors; t++)
    if (reader_of(j, t) >= first && reader_of(j, t) < end)
      for (u32 i = 0; i < of_tensor[t].n; i++) after(g, k, of_tensor[t].v[i]);
  x->last = k, *done = bytes;
}

// Updates and the forward in its order, each kernel as soon as what it reads is there.
static void put_next(graph *g, worker *x, u32 w, const numbers *of_tensor) {
  const tune_job *j = g->j;
  const i64 all_ps = updates_ps(g);
  i64 done = 0;
  u32 k = 0;
  if (!j->nops || j->op[0].phase != TUNE_FORWARD) put_update(g, x, w, 0, j->nops, all_ps, &done, of_tensor);
  for (u32 end; k < j->nops && j->op[k].phase == TUNE_FORWARD; k = end) {
    const i64 ps = tune_group_ps(j, g->p, k, &end);
    bool reads = !j->ntensors && !k;
    for (u32 t = 0; t < j->ntensors && !reads; t++) reads = reader_of(j, t) >= k && reader_of(j, t) < end;
    if (reads) put_update(g, x, w, k, end, all_ps, &done, of_tensor);
    put_op(g, x, w, k, ps);
  }
}

// ---- a step ---------------------------------------------------------------------------------------------
// What follows the backward: the updates when all is there.
static void put_rest(graph *g, worker *x, u32 w, const numbers *of_tensor) {
  const u32 all = node(g, TRACE_NONE, 0);
  after(g, all, x->last);
  for (u32 t = 0; t < g->j->ntensors; t++)
    for (u32 i = 0; i < of_tensor[t].n && !g->p->bucketed[t]; i++) after(g, all, of_tensor[t].v[i]);
  x->last = all;
  put_phase(g, x, w, TUNE_UPDATE, NULL);
}

static void put_step(graph *g, i64 *ready_ps) {
  const tune_job *j = g->j;
  worker *x = NEWN(g->a, worker, g->n);
  numbers *last = NEWN(g->a, numbers, g->n),
          **of = NEWN(g->a, numbers *, g->n); // of: every tensor of a worker
  for (u32 w = 0; w < g->n; w++) of[w] = ZNEWN(g->a, numbers, j->ntensors + 1);
  for (u32 w = 0; w < g->n; w++) put_worker(g, &x[w], w, ready_ps);
  for (u32 k = 0, end; k < j->ntensors && j->link.workers > 1; k = end) {
    const i64 bytes = tune_bucket_bytes(j, g->p, k, &end);
    memset(last, 0, g->n * sizeof *last);
    g->turn = g->p->priority ? TURN_BY_READER + first_reader(j, k, end) : TURN_ANY;
    put_bucket(g, k, bytes, g->p->cut[k], ready_nodes(g, x, end - 1, ready_ps[end - 1]), last);
    for (u32 w = 0; w < g->n; w++)
      for (u32 t = k; t < end; t++) of[w][t] = last[w];
    if (!g->p->cycle_ps || end == j->ntensors || j->link.sync != TUNE_ALL_REDUCE) continue;
    const i64 took = tune_sync_ps(j, bytes, g->p->cut[k], TUNE_ONE_WORKER);
    for (u32 w = 0; w < g->n; w++) hold(g, w, last[w].v[last[w].n - 1], took);
  }
  for (u32 w = 0; w < g->n; w++)
    if (g->p->priority)
      put_next(g, &x[w], w, of[w]);
    else
      put_rest(g, &x[w], w, of[w]);
}

// ---- replays --------------------------------------------------------------------------------------------
static i64 play(graph *g, i64 *start, u32 *cause) {
  const u32 n = g->dur.n;
  u32 *first = ZNEWN(g->a, u32, n + 2), *next = NEWN(g->a, u32, g->edges.n + 1);
  for (u32 k = 0; k < g->edges.n; k++) first[g->edges.v[k].from + 2]++;
  for (u32 k = 2; k < n + 2; k++) first[k] += first[k - 1];
  for (u32 k = 0; k < g->edges.n; k++) next[first[g->edges.v[k].from + 1]++] = g->edges.v[k].to;
  const sim_queue q = {.n = n,
                       .nres = resources(g),
                       .dur = g->dur.v,
                       .res = g->res.v,
                       .rank = g->rank.v,
                       .first = first,
                       .next = next};
  const i64 ps = sim_queue_run(g->a, &q, start, cause);
  assert(ps >= 0); // edges go from earlier to later nodes
  return ps;
}

static graph graph_new(arena *a, const tune_job *j, const tune_plan *p, tune_scope scope) {
  return (graph){
      .a = a, .j = j, .p = p, .n = scope == TUNE_ALL_WORKERS ? j->link.workers : 1, .turn = TURN_ANY};
}

i64 tune_time(const tune_job *j, const tune_plan *p, tune_scope scope) {
  arena *tmp = arena_new();
  graph g = graph_new(tmp, j, p, scope);
  i64 *ready = NEWN(tmp, i64, j->ntensors + 1);
  put_step(&g, ready);
  const i64 ps = play(&g, NEWN(tmp, i64, g.dur.n + 1), NULL);
  arena_free(tmp);
  return ps;
}

static void put_path(tune_step *s, const graph *g, const i64 *start, const u32 *cause, arena *tmp) {
  u32 *path = NEWN(tmp, u32, g->dur.n + 1), n = 0, k = 0;
  for (u32 i = 1; i < g->dur.n; i++)
    if (start[i] + g->dur.v[i] >= start[k] + g->dur.v[k]) k = i;
  for (; k != TRACE_NONE; k = cause[k]) path[n++] = k;
  while (n--) {
    const u32 op = g->op.v[path[n]], b = g->bucket.v[path[n]];
    if (op != TUNE_NONE && (!s->nops || s->op[s->nops - 1] != op)) s->op[s->nops++] = op;
    if (b != TUNE_NONE && (!s->nbuckets || s->bucket[s->nbuckets - 1] != b)) s->bucket[s->nbuckets++] = b;
  }
}

tune_step tune_step_of(arena *a, const tune_job *j, const tune_plan *p, tune_scope scope) {
  arena *tmp = arena_new();
  graph g = graph_new(tmp, j, p, scope);
  tune_step s = {.ready_ps = ZNEWN(a, i64, j->ntensors + 1),
                 .start_ps = NEWN(a, i64, j->ntensors + 1),
                 .end_ps = ZNEWN(a, i64, j->ntensors + 1)};
  put_step(&g, s.ready_ps);
  i64 *start = NEWN(tmp, i64, g.dur.n + 1);
  u32 *cause = NEWN(tmp, u32, g.dur.n + 1);
  s.ps = play(&g, start, cause);
  s.op = NEWN(a, u32, g.dur.n + 1), s.bucket = NEWN(a, u32, g.dur.n + 1);
  for (u32 k = 0; k < j->ntensors; k++) s.start_ps[k] = INT64_MAX;
  for (u32 k = 0; k < g.dur.n; k++) {
    const u32 b = g.bucket.v[k];
    if (b == TUNE_NONE) continue;
    s.start_ps[b] = MIN(s.start_ps[b], start[k]), s.end_ps[b] = MAX(s.end_ps[b], start[k] + g.dur.v[k]);
  }
  put_path(&s, &g, start, cause, tmp);
  arena_free(tmp);
  return s;
}

i64 tune_sync_ps(const tune_job *j, i64 bytes, u32 cut, tune_scope scope) {
  if (j->link.workers < 2) return 0;
  arena *tmp = arena_new();
  graph g = graph_new(tmp, j, NULL, scope);
  u32 *ready = NEWN(tmp, u32, g.n);
  numbers *last = ZNEWN(tmp, numbers, g.n);
  for (u32 w = 0; w < g.n; w++) ready[w] = TUNE_NONE;
  put_bucket(&g, 0, bytes, cut, ready, last);
  const i64 ps = play(&g, NEWN(tmp, i64, g.dur.n + 1), NULL);
  arena_free(tmp);
  return ps;
}

// No cut into k pieces takes less: all are pushed over one link, and then the last one goes its way.
static i64 least_ps(const tune_job *j, i64 bytes, u32 k) {
  const tune_link *l = &j->link;
  const i64 piece = (bytes + k - 1) / k, wire = rate_ps(piece, l->ps_per_byte), own = l->step_ps + wire;
  const i64 out = wire * (l->workers - 1) / l->workers, in = out + rate_ps(piece, l->sum_ps_per_byte);
  return (i64)k * (l->start_ps + own) + (i64)l->workers * (in + out) + own;
}

// The most promising first, until none can be better.
u32 tune_best_cut(const tune_job *j, i64 bytes, tune_scope scope) {
  enum { MOST = 64 };
  bool tried[MOST + 1] = {false};
  u32 best = 1;
  i64 best_ps = INT64_MAX;
  if (j->link.sync != TUNE_SERVERS || j->link.workers < 2) return 1;
  for (u32 n = 0; n < MOST; n++) {
    u32 next = 0;
    for (u32 k = 1; k <= MOST; k++)
      if (!tried[k] && (!next || least_ps(j, bytes, k) < least_ps(j, bytes, next))) next = k;
    if (least_ps(j, bytes, next) > best_ps) break;
    tried[next] = true;
    const i64 ps = tune_sync_ps(j, bytes, next, scope);
    if (ps < best_ps || (ps == best_ps && next < best)) best_ps = ps, best = next;
  }
  return best;
}
