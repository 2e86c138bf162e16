// part.c - some nodes of an event graph as an event graph of their own, in other memory, with the slots that they use.
#include "sim/digest.h"

typedef struct {
  const sim_graph *from;
  sim_graph *to;
} copied;
typedef struct {
  arena *a, *tmp;
  VEC(copied) done;
} copying;

static const sim_map *copy_map(arena *a, const sim_map *m) {
  sim_map *x = arena_dup(a, m, sizeof *m);
  const u32 ne = m->edge[m->nvert];
  x->edge = arena_dup(a, m->edge, (m->nvert + 1) * sizeof *m->edge);
  x->from = arena_dup(a, m->from, ne * sizeof *m->from), x->add = arena_dup(a, m->add, ne * sizeof *m->add);
  x->out = arena_dup(a, m->out, m->nout * sizeof *m->out);
  x->out_add = arena_dup(a, m->out_add, m->nout * sizeof *m->out_add);
  return x;
}

static const sim_graph *copy_callee(copying *x, const sim_graph *c);

static const sim_site *copy_sites(copying *x, const sim_graph *c) {
  sim_site *v = NEWN(x->a, sim_site, c->nsite + 1);
  for (u32 k = 0; k < c->nsite; k++) {
    const sim_site *s = &c->site[k];
    v[k] = (sim_site){copy_callee(x, s->sub), arena_dup(x->a, s->clock, s->sub->nclock * sizeof *s->clock)};
  }
  return v;
}

// What a call needs of its callee: the map, or else all nodes.
static const sim_graph *copy_callee(copying *x, const sim_graph *c) {
  for (u32 k = 0; k < x->done.n; k++)
    if (x->done.v[k].from == c) return x->done.v[k].to;
  sim_graph *to = ZNEWN(x->a, sim_graph, 1);
  *vec_push(x->tmp, &x->done) = (copied){c, to};
  to->nclock = c->nclock, to->nin = c->nin, to->nout = c->nout;
  if (c->map) {
    to->map = copy_map(x->a, c->map);
    return to;
  }
  to->n = c->n, to->nslot = c->nslot, to->frame = c->frame, to->nsite = c->nsite;
  to->dur = arena_dup(x->a, c->dur, c->n * sizeof *c->dur);
  to->occ = arena_dup(x->a, c->occ, (c->n + 1) * sizeof *c->occ);
  to->in = arena_dup(x->a, c->in, c->n * sizeof *c->in),
  to->out = arena_dup(x->a, c->out, c->n * sizeof *c->out);
  to->ref = arena_dup(x->a, c->ref, c->occ[c->n] * sizeof *c->ref);
  to->port_in = arena_dup(x->a, c->port_in, c->nin * sizeof *c->port_in);
  to->port_out = arena_dup(x->a, c->port_out, c->nout * sizeof *c->port_out);
  to->site = copy_sites(x, c);
  return to;
}

u32 sim_part_slot(part_slots *x, u32 slot) {
  if (slot && !x->now[slot]) x->now[slot] = x->n++;
  return x->now[slot];
}

const sim_graph *sim_graph_part(arena *a, arena *tmp, const sim_graph *c, u32 n0, u32 n1, part_slots *slots) {
  copying x = {a, tmp, {0}};
  sim_graph *to = ZNEWN(a, sim_graph, 1);
  const u32 n = n1 - n0, first = c->occ[n0], nref = c->occ[n1] - first;
  u32 *occ = NEWN(a, u32, n + 1), *in = NEWN(a, u32, n + 1), *out = NEWN(a, u32, n + 1),
      *ref = NEWN(a, u32, nref + 1);
  i64 *dur = NEWN(a, i64, n + 1);
  VEC(sim_site) site = {0};
  for (u32 i = 0; i < n; i++) {
    occ[i] = c->occ[n0 + i] - first, in[i] = c->in[n0 + i] - first, out[i] = c->out[n0 + i] - first;
    dur[i] = c->dur[n0 + i];
    if (dur[i] >= 0) continue;
    const sim_site *s = &c->site[~dur[i]];
    u32 *clock = NEWN(a, u32, s->sub->nclock + 1);
    for (u32 k = 0; k < s->sub->nclock; k++) clock[k] = sim_part_slot(slots, s->clock[k]);
    dur[i] = ~(i64)site.n;
    *vec_push(a, &site) = (sim_site){copy_callee(&x, s->sub), clock};
  }
  occ[n] = nref;
  for (u32 k = 0; k < nref; k++) ref[k] = sim_part_slot(slots, c->ref[first + k]);
  to->n = n, to->nslot = slots->n, to->frame = c->frame;
  to->dur = dur, to->occ = occ, to->in = in, to->out = out, to->ref = ref, to->site = site.v,
  to->nsite = site.n;
  return to;
}
