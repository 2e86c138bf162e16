// straggler_graph.c - what waits for what in a step of a pipelined job, as an event graph. Not durations.
//
// Idea: four streams of sends and receives, one of computation and one of data parallelism on every worker run in the
// order that the first step has. Between them:
// - a receive lets its computation begin, and begins after the computation before that; a computation lets its send
//   begin. Without a receive or send (the ends of the pipeline) nothing waits.
// - the first backward receive and send begin after the computation two before the first backward one.
// - the last gather of a chunk's parameters lets the first forward computation of the chunk begin.
// - after a worker's last computation: garbage collection, gradients of norms, of the embedding, reduction of
//   gradients, clipping, update. Where a reduction of its own comes last ("separate"), gradients are reduced as soon
//   as the last backward computation of their chunk has ended, and norms wait for that.
// A communication begins when all its members are there; each member ends after its own transfer.
#include "diagnose/straggler_making.h"
#include "sim/sim.h"
#include <stdlib.h>

enum { SLACK_PS = 50000000 }; // clocks of the streams of a worker differ by less than 50 us
typedef struct {
  u32 op, after;
} pair;
typedef struct {
  straggler_making *m;
  VEC(pair) pairs;
  u32 *matched;  // of sends and receives: computation, TRACE_NONE: none was launched
  bool *idle;    // of sends and receives: no peer takes part
  u32 *by_start; // scratch
} linking;

static void after(linking *l, u32 op, u32 before) { *vec_push(l->m->tmp, &l->pairs) = (pair){op, before}; }
static void chain(linking *l, const u32 *op, u32 n) {
  for (u32 k = 1; k < n; k++) after(l, op[k], op[k - 1]);
}

// ---- one worker -----------------------------------------------------------------------------------------
// Operations of two types of a worker by start, into by_start. Those of one type come in order already.
static u32 merged(linking *l, u32 worker, straggler_type one, straggler_type two) {
  const straggler_making *m = l->m;
  const u32 *a = ops_of(m, worker, one), *b = ops_of(m, worker, two);
  u32 x = a[0], y = b[0], n = 0;
  while (x < a[1] || y < b[1])
    l->by_start[n++] = y == b[1] || (x < a[1] && start_of(m, x) <= start_of(m, y)) ? x++ : y++;
  return n;
}

// Which computation every send or receive serves. Some recorders have one more, before the first or after the last
// computation, that was never launched; and the first receive of the first stage may be missing.
static bool serve(linking *l, u32 worker, straggler_type t, straggler_type compute, bool recv) {
  const straggler_making *m = l->m;
  const u32 *o = ops_of(m, worker, t), *f = ops_of(m, worker, compute), n = f[1] - f[0];
  u32 real = 0, skip = 0, used = 0;
  if (o[0] == o[1]) return true;
  if (!n)
    return straggler_unfit(m, "stage %u of data rank %u has %s without %s", m->s->worker[worker].stage,
                           m->s->worker[worker].data, straggler_types[t].name, straggler_types[compute].name);
  i64 last = start_of(m, f[1] - 1), first = end_of(m, f[0]);
  for (u32 k = f[0]; k < f[1]; k++) first = MIN(first, end_of(m, k));
  for (u32 k = o[0]; k < o[1]; k++) {
    const bool launched = recv ? start_of(m, k) <= last + SLACK_PS : end_of(m, k) >= first - SLACK_PS;
    l->matched[k] = launched ? 0 : TRACE_NONE;
    real += launched;
  }
  if (recv && real + 1 == n) skip = 1;
  if (real && real + skip != n)
    return straggler_unfit(m, "stage %u of data rank %u has %u %s for %u %s", m->s->worker[worker].stage,
                           m->s->worker[worker].data, real, straggler_types[t].name, n,
                           straggler_types[compute].name);
  for (u32 k = o[0]; k < o[1]; k++)
    if (l->matched[k] != TRACE_NONE) l->matched[k] = f[0] + skip + used++;
  return true;
}

static u32 chunk_of(const straggler_making *m, u32 op) {
  return m->op[op].chunk == TRACE_NONE ? 0 : m->op[op].chunk;
}

static bool link_messages(linking *l, u32 worker, straggler_type t, straggler_type compute, bool recv,
                          bool up) {
  straggler_making *m = l->m;
  const u32 *o = ops_of(m, worker, t), first = ops_of(m, worker, compute)[0];
  if (!serve(l, worker, t, compute, recv)) return false;
  for (u32 k = o[0]; k < o[1]; k++) {
    const u32 of = l->matched[k];
    if (k > o[0]) after(l, k, k - 1);
    if (of == TRACE_NONE) continue;
    m->op[k].microbatch = m->op[of].microbatch;
    // up: towards the end of the model, that is, of all chunks of all stages
    const u32 at = chunk_of(m, of) * m->s->nstages + m->s->worker[worker].stage,
              end = m->nchunks * m->s->nstages - 1;
    l->idle[k] = at == (up ? end : 0);
    if (!recv) {
      after(l, k, of);
      continue;
    }
    after(l, of, k);
    if (of > first) after(l, k, of - 1);
  }
  return true;
}

static bool link_pipeline(linking *l, u32 worker) {
  const straggler_making *m = l->m;
  if (!link_messages(l, worker, STRAGGLER_FORWARD_SEND, STRAGGLER_FORWARD, false, true) ||
      !link_messages(l, worker, STRAGGLER_FORWARD_RECV, STRAGGLER_FORWARD, true, false) ||
      !link_messages(l, worker, STRAGGLER_BACKWARD_SEND, STRAGGLER_BACKWARD, false, false) ||
      !link_messages(l, worker, STRAGGLER_BACKWARD_RECV, STRAGGLER_BACKWARD, true, true))
    return false;
  const u32 n = merged(l, worker, STRAGGLER_FORWARD, STRAGGLER_BACKWARD);
  if (!n)
    return straggler_unfit(m, "stage %u of data rank %u computes nothing", m->s->worker[worker].stage,
                           m->s->worker[worker].data);
  chain(l, l->by_start, n);
  u32 back = 0;
  while (back < n && m->op[l->by_start[back]].type != STRAGGLER_BACKWARD) back++;
  if (back < 2 || back == n) return true;
  static const straggler_type both[] = {STRAGGLER_BACKWARD_RECV, STRAGGLER_BACKWARD_SEND};
  for (u32 k = 0; k < COUNT_OF(both); k++) {
    const u32 *o = ops_of(m, worker, both[k]);
    if (o[0] < o[1]) after(l, o[0], l->by_start[back - 2]);
  }
  return true;
}

// The first or last computation of a type and chunk; TRACE_NONE: there is none.
static u32 computation(const straggler_making *m, u32 worker, straggler_type t, u32 chunk, bool last) {
  const u32 *o = ops_of(m, worker, t);
  u32 found = TRACE_NONE;
  for (u32 k = o[0]; k < o[1]; k++)
    if (chunk_of(m, k) == chunk && (found == TRACE_NONE || (last ? end_of(m, k) > end_of(m, found)
                                                                 : start_of(m, k) < start_of(m, found))))
      found = k;
  return found;
}

static void link_data(linking *l, u32 worker, bool apart) {
  straggler_making *m = l->m;
  const u32 *g = ops_of(m, worker, STRAGGLER_GATHER), *r = ops_of(m, worker, STRAGGLER_REDUCE);
  chain(l, l->by_start, merged(l, worker, STRAGGLER_GATHER, STRAGGLER_REDUCE));
  for (u32 chunk = 0; chunk < m->nchunks; chunk++) {
    u32 gather = TRACE_NONE, reduce = TRACE_NONE;
    for (u32 k = g[0]; k < g[1]; k++)
      if (chunk_of(m, k) == chunk) gather = k;
    for (u32 k = r[1]; k-- > r[0];)
      if (chunk_of(m, k) == chunk) reduce = k;
    const u32 first = computation(m, worker, STRAGGLER_FORWARD, chunk, false);
    const u32 last = computation(m, worker, STRAGGLER_BACKWARD, chunk, true);
    if (gather != TRACE_NONE && first != TRACE_NONE) after(l, first, gather);
    if (apart && reduce != TRACE_NONE && last != TRACE_NONE) after(l, reduce, last);
  }
}

static u32 put_types(linking *l, u32 worker, straggler_type t, u32 n) { // behind n others in by_start
  const u32 *o = ops_of(l->m, worker, t);
  for (u32 k = o[0]; k < o[1]; k++) l->by_start[n++] = k;
  return n;
}

static void link_end(linking *l, u32 worker, bool apart) {
  straggler_making *m = l->m;
  u32 n = merged(l, worker, STRAGGLER_FORWARD, STRAGGLER_BACKWARD), last = l->by_start[0];
  for (u32 k = 1; k < n; k++)
    if (end_of(m, l->by_start[k]) > end_of(m, last)) last = l->by_start[k];
  l->by_start[0] = last, n = 1;
  n = put_types(l, worker, STRAGGLER_COLLECT, n);
  const u32 before_norms = n;
  n = put_types(l, worker, STRAGGLER_NORMS, n);
  n = put_types(l, worker, STRAGGLER_EMBEDDING, n);
  n = put_types(l, worker, apart ? STRAGGLER_REDUCE_APART : STRAGGLER_REDUCE, n);
  n = put_types(l, worker, STRAGGLER_CLIP, n);
  n = put_types(l, worker, STRAGGLER_UPDATE, n);
  chain(l, l->by_start, n);
  const u32 *r = ops_of(m, worker, STRAGGLER_REDUCE);
  if (apart && r[0] < r[1] && before_norms < n) after(l, l->by_start[before_norms], r[1] - 1);
}

// ---- communications -------------------------------------------------------------------------------------
static u32 group_new(linking *l) { return l->m->ngroups++; }

// The k-th send that has a peer, and the k-th receive there, are one message.
static bool pair_messages(linking *l, u32 worker, straggler_type send, straggler_type recv, bool up) {
  straggler_making *m = l->m;
  const straggler *s = m->s;
  const u32 stage = s->worker[worker].stage, to = (stage + (up ? 1 : s->nstages - 1)) % s->nstages;
  const u32 peer = to * s->ndata + s->worker[worker].data;
  const u32 *o = ops_of(m, worker, send), *p = ops_of(m, peer, recv);
  u32 there = p[0], sends = 0, recvs = 0;
  for (u32 k = o[0]; k < o[1]; k++) sends += l->matched[k] != TRACE_NONE && !l->idle[k];
  for (u32 k = p[0]; k < p[1]; k++) recvs += l->matched[k] != TRACE_NONE && !l->idle[k];
  if (sends != recvs)
    return straggler_unfit(m, "data rank %u: stage %u has %u %s, stage %u has %u %s", s->worker[worker].data,
                           stage, sends, straggler_types[send].name, to, recvs, straggler_types[recv].name);
  for (u32 k = o[0]; k < o[1]; k++) {
    if (l->matched[k] == TRACE_NONE || l->idle[k]) continue;
    while (l->matched[there] == TRACE_NONE || l->idle[there]) there++;
    m->group[k] = m->group[there++] = group_new(l);
  }
  return true;
}

// Operations of a type with one number are one communication of the workers first, first + stride, ..
static bool collective(linking *l, straggler_type t, u32 first, u32 stride, u32 n) {
  straggler_making *m = l->m;
  const u32 *o = ops_of(m, first, t), count = o[1] - o[0];
  for (u32 k = 0; k < n; k++) {
    const u32 w = first + k * stride, *p = ops_of(m, w, t);
    if (p[1] - p[0] != count)
      return straggler_unfit(m, "worker %u has %u %s, worker %u has %u", first, count,
                             straggler_types[t].name, w, p[1] - p[0]);
    for (u32 i = 0; i < count; i++) m->group[p[0] + i] = m->ngroups + i;
  }
  m->ngroups += count;
  return true;
}

static bool find_groups(linking *l) {
  const straggler *s = l->m->s;
  bool ok = true;
  for (u32 w = 0; ok && w < s->nworkers; w++)
    ok = pair_messages(l, w, STRAGGLER_FORWARD_SEND, STRAGGLER_FORWARD_RECV, true) &&
         pair_messages(l, w, STRAGGLER_BACKWARD_SEND, STRAGGLER_BACKWARD_RECV, false);
  for (u32 stage = 0; ok && stage < s->nstages; stage++)
    ok = collective(l, STRAGGLER_GATHER, stage * s->ndata, 1, s->ndata) &&
         collective(l, STRAGGLER_REDUCE, stage * s->ndata, 1, s->ndata) &&
         collective(l, STRAGGLER_REDUCE_APART, stage * s->ndata, 1, s->ndata);
  for (u32 data = 0; ok && data < s->ndata; data++)
    ok = collective(l, STRAGGLER_EMBEDDING, data, MAX(s->nstages - 1, 1) * s->ndata, MIN(s->nstages, 2));
  return ok && collective(l, STRAGGLER_CLIP, 0, 1, s->nworkers);
}

// ---- order ----------------------------------------------------------------------------------------------
// A unit becomes nodes at once: an operation, or a communication with all its members.
typedef struct {
  u32 *left;               // of every unit: what it still waits for
  u32 *at, *next;          // of every operation: those that wait for it
  u32 *member_at, *member; // of every group
  u32 *after_at, *after;   // of every operation: what it waits for
} order;

static void by_row(const linking *l, u32 n, u32 *at, u32 *to, bool forward) { // pairs as rows
  for (u32 k = 0; k < l->pairs.n; k++) at[(forward ? l->pairs.v[k].after : l->pairs.v[k].op) + 1]++;
  for (u32 k = 0; k < n; k++) at[k + 1] += at[k];
  for (u32 k = l->pairs.n; k-- > 0;) { // from behind, so that rows keep their order
    const pair p = l->pairs.v[k];
    to[--at[(forward ? p.after : p.op) + 1]] = forward ? p.op : p.after;
  }
  for (u32 k = 0; k < n; k++) at[k] = at[k + 1]; // every row's end has moved to its start
  at[n] = l->pairs.n;
}

static order order_of(linking *l) {
  straggler_making *m = l->m;
  arena *tmp = m->tmp;
  const u32 n = m->nops;
  order o = {.left = ZNEWN(tmp, u32, n + m->ngroups),
             .at = ZNEWN(tmp, u32, n + 1),
             .next = NEWN(tmp, u32, l->pairs.n + 1),
             .member_at = ZNEWN(tmp, u32, m->ngroups + 1),
             .member = NEWN(tmp, u32, n + 1),
             .after_at = ZNEWN(tmp, u32, n + 1),
             .after = NEWN(tmp, u32, l->pairs.n + 1)};
  by_row(l, n, o.at, o.next, true);
  by_row(l, n, o.after_at, o.after, false);
  for (u32 k = 0; k < n; k++)
    if (m->group[k] != TRACE_NONE) o.member_at[m->group[k] + 1]++;
  for (u32 g = 0; g < m->ngroups; g++) o.member_at[g + 1] += o.member_at[g];
  u32 *fill = NEWN(tmp, u32, m->ngroups + 1);
  memcpy(fill, o.member_at, (m->ngroups + 1) * sizeof *fill);
  for (u32 k = 0; k < n; k++)
    if (m->group[k] != TRACE_NONE) o.member[fill[m->group[k]]++] = k;
  for (u32 k = 0; k < l->pairs.n; k++) {
    const u32 op = l->pairs.v[k].op;
    o.left[m->group[op] == TRACE_NONE ? op : n + m->group[op]]++;
  }
  return o;
}

// ---- the graph ------------------------------------------------------------------------------------------
typedef struct {
  VEC(u32) occ, out, ref; // of sim_graph: a node waits, and writes its own slot, which is its number + 1
  VEC(straggler_node) node;
  VEC(u32) after_at, after;
} making;

static u32 node_begin(making *g, arena *a, straggler_node what) {
  *vec_push(a, &g->occ) = g->ref.n;
  *vec_push(a, &g->after_at) = g->after.n;
  *vec_push(a, &g->node) = what;
  return g->node.n - 1;
}
static void node_waits(making *g, arena *a, u32 node) { *vec_push(a, &g->ref) = node + 1; }
static void node_end(making *g, arena *a) {
  *vec_push(a, &g->out) = g->ref.n;
  *vec_push(a, &g->ref) = g->node.n;
}
static const straggler_node nothing = {.worker = TRACE_NONE, .microbatch = TRACE_NONE};

static void put_waits(linking *l, const order *o, making *g, u32 op) {
  for (u32 k = o->after_at[op]; k < o->after_at[op + 1]; k++) node_waits(g, l->m->a, l->m->node[o->after[k]]);
}
static void put_operation(linking *l, const order *o, making *g, u32 op,
                          u32 start) { // start: TRACE_NONE: its own waits
  straggler_making *m = l->m;
  m->node[op] = node_begin(g, m->a, m->op[op]);
  for (u32 k = o->after_at[op]; k < o->after_at[op + 1]; k++)
    *vec_push(m->a, &g->after) = m->node[o->after[k]];
  if (start == TRACE_NONE)
    put_waits(l, o, g, op);
  else
    node_waits(g, m->a, start);
  node_end(g, m->a);
}

static void put_unit(linking *l, const order *o, making *g, u32 unit) {
  const straggler_making *m = l->m;
  if (unit < m->nops) {
    put_operation(l, o, g, unit, TRACE_NONE);
    return;
  }
  const u32 from = o->member_at[unit - m->nops], to = o->member_at[unit - m->nops + 1];
  const u32 start = node_begin(g, m->a, nothing);
  for (u32 k = from; k < to; k++) put_waits(l, o, g, o->member[k]);
  node_end(g, m->a);
  for (u32 k = from; k < to; k++) put_operation(l, o, g, o->member[k], start);
}

// Takes every unit as soon as nothing is left that it waits for. False: some wait for each other.
static bool put_all(linking *l, order *o, making *g) {
  const straggler_making *m = l->m;
  const u32 n = m->nops + m->ngroups;
  u32 *queue = NEWN(m->tmp, u32, n + 1), head = 0, tail = 0, done = 0;
  for (u32 k = 0; k < n; k++)
    if (!o->left[k] && (k >= m->nops || m->group[k] == TRACE_NONE)) queue[tail++] = k;
  while (head < tail) {
    const u32 unit = queue[head++], of = unit < m->nops ? TRACE_NONE : unit - m->nops;
    put_unit(l, o, g, unit);
    const u32 count = of == TRACE_NONE ? 1 : o->member_at[of + 1] - o->member_at[of];
    for (u32 k = 0; k < count; k++) {
      const u32 op = of == TRACE_NONE ? unit : o->member[o->member_at[of] + k];
      done++;
      for (u32 i = o->at[op]; i < o->at[op + 1]; i++) {
        const u32 next = o->next[i], to = m->group[next] == TRACE_NONE ? next : m->nops + m->group[next];
        if (!--o->left[to]) queue[tail++] = to;
      }
    }
  }
  if (done == m->nops) return true;
  for (u32 k = 0; k < m->nops; k++)
    if (o->left[m->group[k] == TRACE_NONE ? k : m->nops + m->group[k]])
      return straggler_unfit(m, "operations wait for each other, among them %s %u of stage %u, data rank %u",
                             straggler_types[m->op[k].type].name, m->op[k].seq,
                             m->s->worker[m->op[k].worker].stage, m->s->worker[m->op[k].worker].data);
  assert(false);
  return false;
}

static void close_graph(linking *l, const order *o, making *g) {
  straggler_making *m = l->m;
  node_begin(g, m->a, nothing); // the end, after all that nothing waits for
  for (u32 k = 0; k < m->nops; k++)
    if (o->at[k] == o->at[k + 1]) node_waits(g, m->a, m->node[k]);
  node_end(g, m->a);
  *vec_push(m->a, &g->occ) = g->ref.n;
  *vec_push(m->a, &g->after_at) = g->after.n;
  straggler *s = m->s;
  s->n = g->node.n, s->node = g->node.v;
  s->after_at = g->after_at.v, s->after = g->after.v;
  sim_graph *graph = NEW(m->a, sim_graph);
  *graph = (sim_graph){
      .n = s->n, .nslot = s->n + 1, .occ = g->occ.v, .in = g->occ.v, .out = g->out.v, .ref = g->ref.v};
  s->graph = graph;
}

bool straggler_link(straggler_making *m) {
  linking l = {.m = m,
               .matched = NEWN(m->tmp, u32, m->nops),
               .idle = ZNEWN(m->tmp, bool, m->nops),
               .by_start = NEWN(m->tmp, u32, m->nops + 1)};
  m->group = NEWN(m->tmp, u32, m->nops);
  m->node = NEWN(m->tmp, u32, m->nops);
  for (u32 k = 0; k < m->nops; k++) m->group[k] = l.matched[k] = TRACE_NONE;
  const bool apart = m->s->count[STRAGGLER_REDUCE_APART] > 0;
  for (u32 w = 0; w < m->s->nworkers; w++) {
    if (!link_pipeline(&l, w)) return false;
    link_data(&l, w, apart);
    link_end(&l, w, apart);
  }
  if (!find_groups(&l)) return false;
  order o = order_of(&l);
  making g = {0};
  if (!put_all(&l, &o, &g)) return false;
  close_graph(&l, &o, &g);
  return true;
}
