// map.c - an event graph to a linear map over (max, +): the composed engine's unit of work. Knows no program.
//
// Idea: run the event graph with symbolic times. A time is "vertex + offset", so a chain of nodes stays one
// vertex; only where times of different vertices meet is a vertex made, with an edge from each. Then vertices
// are eliminated where that adds no edges: those that nobody reads, those with one edge in, those with one
// edge out.
#include "sim/sim.h"

typedef struct {
  u32 v;     // vertex: 0 is the time 0, 1..nin-1 are the input ports
  bool gone; // while a maximum is formed: another term dominates
  i64 add;
} term;
typedef struct {
  arena *tmp;
  u32 nin;
  VEC(term) edges;
  VEC(u32) begin; // of vertex nin + k's edges: begin[k]..begin[k+1]
  VEC(u32) seen;  // of every vertex: where in `set` it is, if it is there
  VEC(term) set;  // the maximum being formed, distinct vertices
} graph;

static graph graph_new(arena *tmp, u32 nin) {
  graph g = {.tmp = tmp, .nin = nin};
  *vec_push(tmp, &g.begin) = 0;
  (void)vec_push_n(tmp, &g.seen, nin);
  memset(g.seen.v, 0, nin * sizeof *g.seen.v);
  return g;
}

static term *set_find(graph *g, u32 v) {
  u32 at = g->seen.v[v];
  return at < g->set.n && g->set.v[at].v == v ? &g->set.v[at] : NULL;
}

static void set_add(graph *g, term t, i64 add) {
  term *same = set_find(g, t.v);
  t.add += add;
  if (same)
    same->add = MAX(same->add, t.add);
  else {
    g->seen.v[t.v] = g->set.n;
    *vec_push(g->tmp, &g->set) = t;
  }
}

// Drops what the edges of another member already say. Times are never below 0.
static void set_prune(graph *g) {
  u32 n = 0;
  for (u32 k = 0; k < g->set.n; k++) {
    term t = g->set.v[k];
    if (t.v == 0 && t.add <= 0) g->set.v[k].gone = true;
    if (t.v < g->nin) continue;
    for (u32 e = g->begin.v[t.v - g->nin]; e < g->begin.v[t.v - g->nin + 1]; e++) {
      term u = g->edges.v[e], *in = set_find(g, u.v);
      if (in && in->add <= u.add + t.add) in->gone = true;
    }
  }
  for (u32 k = 0; k < g->set.n; k++)
    if (!g->set.v[k].gone) g->set.v[n++] = g->set.v[k];
  g->set.n = n;
}

static term vertex_new(graph *g) { // of the set
  term t = {.v = g->nin + g->begin.n - 1};
  memcpy(vec_push_n(g->tmp, &g->edges, g->set.n), g->set.v, g->set.n * sizeof *g->set.v);
  *vec_push(g->tmp, &g->begin) = g->edges.n;
  *vec_push(g->tmp, &g->seen) = 0;
  return t;
}

// The maximum of the set as a term; the set is empty afterwards.
static term set_take(graph *g) {
  term t = {0};
  if (g->set.n > 1) set_prune(g);
  if (g->set.n == 1)
    t = g->set.v[0];
  else if (g->set.n)
    t = vertex_new(g);
  g->set.n = 0;
  return t;
}

// ---- symbolic run -----------------------------------------------------------------------------------
static void run_nodes(graph *g, const sim_graph *c, u32 from, u32 to, term *x, term *frame);

static void run_call(graph *g, const sim_graph *c, u32 i, term *x, term *frame) {
  const sim_site *st = &c->site[~c->dur[i]];
  const sim_graph *sub = st->sub;
  const sim_map *m = sub->map;
  u32 nc = sub->nclock;
  for (u32 k = 0; k < sub->nin; k++)
    frame[m ? 1 + k : sub->port_in[k]] = x[k < nc ? st->clock[k] : c->ref[c->in[i] + k - nc]];
  if (m) {
    frame[0] = (term){0};
    for (u32 v = 0; v < m->nvert; v++) {
      for (u32 e = m->edge[v]; e < m->edge[v + 1]; e++) set_add(g, frame[m->from[e]], m->add[e]);
      frame[m->nin + v] = set_take(g);
    }
  } else
    run_nodes(g, sub, 0, sub->n, frame, frame + sub->nslot);
  for (u32 k = 0; k < sub->nout; k++) {
    term t = frame[m ? m->out[k] : sub->port_out[k]];
    if (m) t.add += m->out_add[k];
    x[k < nc ? st->clock[k] : c->ref[c->out[i] + k - nc]] = t;
  }
}

static void run_nodes(graph *g, const sim_graph *c, u32 from, u32 to, term *x, term *frame) {
  x[0] = (term){0};
  for (u32 i = from; i < to; i++) {
    if (c->dur[i] < 0) {
      run_call(g, c, i, x, frame);
      continue;
    }
    u32 k = c->occ[i], in = c->in[i], out = c->out[i], end = c->occ[i + 1];
    for (u32 j = k; j < out; j++) set_add(g, x[c->ref[j]], 0);
    term t = set_take(g);
    t.add += c->dur[i];
    for (; k < in; k++) x[c->ref[k]] = t;
    for (k = out; k < end; k++) x[c->ref[k]] = t;
  }
}

// ---- elimination ------------------------------------------------------------------------------------
// One pass: the graph again without vertices that nobody reads and, expanded into their reader, those read
// once.
static graph reduce(const graph *g, term *out, u32 nout) {
  u32 nv = g->begin.n - 1, nin = g->nin;
  arena *tmp = g->tmp;
  graph r = graph_new(tmp, nin);
  u32 *nuse = ZNEWN(tmp, u32, nin + nv);
  u8 *kept = ZNEWN(tmp, u8, nin + nv); // an output reads it
  for (u32 k = 0; k < nout; k++) kept[out[k].v] = 1, nuse[out[k].v]++;
  for (u32 v = nv; v-- > 0;)
    for (u32 e = g->begin.v[v]; nuse[nin + v] && e < g->begin.v[v + 1]; e++) nuse[g->edges.v[e].v]++;
  term *now = NEWN(tmp, term, nin + nv);       // what a vertex is in the new graph,
  u32 *list = ZNEWN(tmp, u32, 2 * (nin + nv)); // or the part of `lists` it is expanded to
  VEC(term) lists = {0};
  vec_reserve(tmp, &lists, 1);
  for (u32 v = 0; v < nin; v++) now[v] = (term){.v = v};
  for (u32 v = 0; v < nv; v++) {
    u32 id = nin + v, *mine = &list[2 * id];
    if (!nuse[id]) continue;
    for (u32 e = g->begin.v[v]; e < g->begin.v[v + 1]; e++) {
      term t = g->edges.v[e];
      const u32 *l = &list[2 * t.v];
      if (l[0] == l[1]) set_add(&r, now[t.v], t.add);
      for (u32 k = l[0]; k < l[1]; k++) set_add(&r, lists.v[k], t.add);
    }
    if (r.set.n > 1) set_prune(&r);
    if (kept[id] || nuse[id] > 1 || r.set.n <= 1)
      now[id] = set_take(&r);
    else {
      mine[0] = lists.n;
      memcpy(vec_push_n(tmp, &lists, r.set.n), r.set.v, r.set.n * sizeof *r.set.v);
      mine[1] = lists.n;
      r.set.n = 0;
    }
  }
  for (u32 k = 0; k < nout; k++) {
    i64 add = out[k].add;
    out[k] = now[out[k].v];
    out[k].add += add;
  }
  return r;
}

const sim_map *sim_map_part(arena *a, arena *scratch, const sim_graph *c, u32 from, u32 to,
                            const u32 *port_in, u32 nin, const u32 *port_out, u32 nout) {
  arena_mark_t mark = arena_mark(scratch);
  graph g = graph_new(scratch, 1 + nin);
  term *x = ZNEWN(scratch, term, c->nslot), *frame = NEWN(scratch, term, c->frame + 1),
       *out = NEWN(scratch, term, nout + 1);
  for (u32 k = 0; k < nin; k++) x[port_in[k]] = (term){.v = 1 + k};
  run_nodes(&g, c, from, to, x, frame);
  for (u32 k = 0; k < nout; k++) out[k] = x[port_out[k]];
  for (u32 size = ~0u, now; (now = g.begin.n + g.edges.n) < size; size = now) g = reduce(&g, out, nout);
  sim_map *m = NEW(a, sim_map);
  u32 nv = g.begin.n - 1, ne = g.edges.n, *at = NEWN(a, u32, ne), *last = NEWN(a, u32, nout);
  i64 *add = NEWN(a, i64, ne), *out_add = NEWN(a, i64, nout);
  for (u32 e = 0; e < ne; e++) {
    at[e] = g.edges.v[e].v;
    add[e] = g.edges.v[e].add;
  }
  for (u32 k = 0; k < nout; k++) {
    last[k] = out[k].v;
    out_add[k] = out[k].add;
  }
  *m = (sim_map){g.nin, nout, nv, arena_dup(a, g.begin.v, g.begin.n * sizeof(u32)), at, add, last, out_add};
  arena_release(scratch, mark);
  return m;
}

const sim_map *sim_map_new(arena *a, arena *scratch, const sim_graph *c) {
  return sim_map_part(a, scratch, c, 0, c->n, c->port_in, c->nin, c->port_out, c->nout);
}
