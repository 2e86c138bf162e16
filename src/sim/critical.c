// critical.c - why it takes that long: the path that decides a time, and how much every node could grow.
// Engines over event graphs; they know no program.
//
// Idea: run forward and note for every node which slot let it start. A call notes only the times that went
// in: if the path leads through it, its event graph is run again from there. So the path through a million
// nodes costs the calls that lie on it. Slack is the same in the other direction: the latest time at which
// every slot could have been written.
#include "sim/sim.h"

// ---- the path ---------------------------------------------------------------------------------------
typedef struct {
  u32 slot, by;
} source; // a slot and the node + 1 that wrote it last; 0 = an input port
typedef struct {
  const sim_graph *c;
  i64 *x;
  u32 *by;     // of every slot
  source *let; // of every plain node: what let it start; slot SIM_NEVER: nothing
  i64 *start;
  u32 *noted; // of every call: where its inputs are noted
  VEC(i64) time;
  VEC(source) from;
} pass;

static u32 input_slot(const sim_graph *c, u32 node,
                      u32 port) { // the caller's slot behind an input port of a call
  const sim_site *st = &c->site[~c->dur[node]];
  return port < st->sub->nclock ? st->clock[port] : c->ref[c->in[node] + port - st->sub->nclock];
}
static u32 output_slot(const sim_graph *c, u32 node, u32 port) {
  const sim_site *st = &c->site[~c->dur[node]];
  return port < st->sub->nclock ? st->clock[port] : c->ref[c->out[node] + port - st->sub->nclock];
}

static void forward_call(pass *p, arena *a, u32 i, i64 *frame) {
  const sim_graph *c = p->c, *sub = c->site[~c->dur[i]].sub;
  p->noted[i] = p->time.n;
  for (u32 k = 0; k < sub->nin; k++) {
    u32 slot = input_slot(c, i, k);
    *vec_push(a, &p->time) = p->x[slot];
    *vec_push(a, &p->from) = (source){slot, p->by[slot]};
  }
  sim_call(c, i, p->x, frame);
  for (u32 k = 0; k < sub->nout; k++) p->by[output_slot(c, i, k)] = i + 1;
}

static void forward_node(pass *p, u32 i) {
  const sim_graph *c = p->c;
  i64 t = 0;
  source let = {SIM_NEVER, 0};
  for (u32 k = c->occ[i]; k < c->out[i]; k++) {
    u32 slot = c->ref[k];
    if (slot == 0 || (p->x[slot] <= t && let.slot != SIM_NEVER)) continue;
    t = p->x[slot];
    let = (source){slot, p->by[slot]};
  }
  p->let[i] = let;
  p->start[i] = t;
  for (u32 k = c->occ[i]; k < c->occ[i + 1]; k++) {
    if (k == c->in[i]) k = c->out[i];
    if (k == c->occ[i + 1]) break;
    p->x[c->ref[k]] = t + c->dur[i];
    p->by[c->ref[k]] = i + 1;
  }
}

static void forward(pass *p, arena *a, i64 *frame) {
  const sim_graph *c = p->c;
  p->x[0] = 0;
  for (u32 i = 0; i < c->n; i++) {
    if (c->dur[i] < 0)
      forward_call(p, a, i, frame);
    else
      forward_node(p, i);
  }
}

static u32 class_of(const sim_graph *c, u32 node, u32 slot) {
  u32 clock = c->slot_clock[slot];
  if (!clock && c->occ[node] < c->in[node]) clock = c->slot_clock[c->ref[c->occ[node]]];
  return clock ? c->clock_class[clock - 1] : 0;
}

typedef struct {
  arena *scratch;
  sim_emit *tell;
  void *arg;
} teller;

static u32 follow(const teller *t, const sim_graph *c, const i64 *in, u32 port) {
  arena *a = t->scratch;
  arena_mark_t mark = arena_mark(a);
  assert(in || !c->nin);
  pass p = {.c = c};
  p.x = NEWN(a, i64, c->nslot);
  p.by = ZNEWN(a, u32, c->nslot);
  p.let = NEWN(a, source, c->n);
  p.start = NEWN(a, i64, c->n);
  p.noted = NEWN(a, u32, c->n);
  for (u32 k = 0; k < c->nin; k++) p.x[c->port_in[k]] = in[k];
  forward(&p, a, NEWN(a, i64, c->frame));
  source at = {c->port_out[port], p.by[c->port_out[port]]};
  while (at.by && at.slot != SIM_NEVER) {
    u32 i = at.by - 1;
    if (c->dur[i] >= 0) {
      t->tell(t->arg, c, i, class_of(c, i, at.slot), p.start[i]);
      at = p.let[i];
    } else {
      u32 out = 0, through;
      while (output_slot(c, i, out) != at.slot) out++;
      through = follow(t, c->site[~c->dur[i]].sub, p.time.v + p.noted[i], out);
      at = through == SIM_NEVER ? (source){SIM_NEVER, 0} : p.from.v[p.noted[i] + through];
    }
  }
  u32 from = SIM_NEVER;
  for (u32 k = 0; k < c->nin && at.slot != SIM_NEVER; k++)
    if (c->port_in[k] == at.slot) from = k;
  arena_release(a, mark);
  return from;
}

u32 sim_critical(arena *scratch, const sim_graph *c, const i64 *in, u32 port, sim_emit *tell, void *arg) {
  return follow(&(teller){scratch, tell, arg}, c, in, port);
}
