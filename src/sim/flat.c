// flat.c - the engine: one pass over an event graph in issue order. Knows no program.
//
// Idea: the schedule is explicit, so there is no event queue: a node starts when the latest of its slots
// allows. A call is the same again on a frame of its own (flat) or one application of a map (composed);
// nothing else differs.
#include "sim/sim.h"

static void run(const sim_graph *c, i64 *restrict x, i64 *restrict frame, bool maps, const sim_watch *w);

static void call_flat(const sim_graph *c, u32 i, i64 *restrict x, i64 *restrict frame, bool maps,
                      const sim_watch *w) {
  const sim_site *st = &c->site[~c->dur[i]];
  const sim_graph *sub = st->sub;
  const u32 *ref = c->ref, nc = sub->nclock;
  for (u32 k = 0; k < nc; k++) frame[sub->port_in[k]] = x[st->clock[k]];
  for (u32 k = c->in[i], p = nc; k < c->out[i]; k++) frame[sub->port_in[p++]] = x[ref[k]];
  if (w) w->enter(w->arg, c, i);
  run(sub, frame, frame + sub->nslot, maps, w);
  if (w) w->leave(w->arg, c, i);
  for (u32 k = 0; k < nc; k++) x[st->clock[k]] = frame[sub->port_out[k]];
  for (u32 k = c->out[i], p = nc; k < c->occ[i + 1]; k++) x[ref[k]] = frame[sub->port_out[p++]];
}

static void call_map(const sim_graph *c, u32 i, i64 *restrict x, i64 *restrict frame) {
  const sim_site *st = &c->site[~c->dur[i]];
  const sim_map *m = st->sub->map;
  const u32 *ref = c->ref, nc = st->sub->nclock;
  i64 *y = frame, *z = frame + m->nin + m->nvert;
  for (u32 k = 0; k < nc; k++) y[1 + k] = x[st->clock[k]];
  for (u32 k = c->in[i], p = nc + 1; k < c->out[i]; k++) y[p++] = x[ref[k]];
  sim_map_apply(m, y, z);
  for (u32 k = 0; k < nc; k++) x[st->clock[k]] = z[k];
  for (u32 k = c->out[i], p = nc; k < c->occ[i + 1]; k++) x[ref[k]] = z[p++];
}

static inline void run(const sim_graph *c, i64 *restrict x, i64 *restrict frame, bool maps,
                       const sim_watch *w) {
  const u32 *restrict ref = c->ref;
  x[0] = 0;
  for (u32 i = 0; i < c->n; i++) {
    i64 t = 0, dur = c->dur[i];
    if (dur < 0) {
      if (maps && c->site[~dur].sub->map)
        call_map(c, i, x, frame);
      else
        call_flat(c, i, x, frame, maps, w);
      continue;
    }
    u32 k = c->occ[i], in = c->in[i], out = c->out[i], end = c->occ[i + 1];
    for (u32 j = k; j < out; j++) t = MAX(t, x[ref[j]]);
    if (w) w->node(w->arg, c, i, t);
    t += dur;
    for (; k < in; k++) x[ref[k]] = t;
    for (k = out; k < end; k++) x[ref[k]] = t;
  }
}

void sim_call(const sim_graph *c, u32 node, i64 *x, i64 *frame) {
  if (c->site[~c->dur[node]].sub->map)
    call_map(c, node, x, frame);
  else
    call_flat(c, node, x, frame, true, NULL);
}

void sim_flat(const sim_graph *c, i64 *x, i64 *frame) { run(c, x, frame, false, NULL); }
void sim_composed(const sim_graph *c, i64 *x, i64 *frame) { run(c, x, frame, true, NULL); }
void sim_part(const sim_graph *c, u32 from, u32 to, i64 *x, i64 *frame) {
  sim_graph part = *c;
  part.n = to - from;
  part.dur += from, part.occ += from, part.in += from, part.out += from;
  if (c->what) part.what += from;
  sim_composed(&part, x, frame);
}
void sim_flat_watched(const sim_graph *c, i64 *x, i64 *frame, const sim_watch *w) {
  run(c, x, frame, false, w);
}

void sim_map_apply(const sim_map *m, i64 *y, i64 *z) {
  y[0] = 0;
  for (u32 v = 0, e = 0; v < m->nvert; v++) {
    const u32 end = m->edge[v + 1];
    i64 t = 0, u = 0;
    for (; e + 1 < end; e += 2) { // neither maximum waits for the other
      t = MAX(t, y[m->from[e]] + m->add[e]);
      u = MAX(u, y[m->from[e + 1]] + m->add[e + 1]);
    }
    if (e < end) t = MAX(t, y[m->from[e]] + m->add[e]), e++;
    y[m->nin + v] = MAX(t, u);
  }
  for (u32 k = 0; k < m->nout; k++) z[k] = y[m->out[k]] + m->out_add[k];
}
