// build.c - event graphs made by hand: of traces, of tests. Those of programs are made in event_graph.c.
#include "sim/sim.h"

void sim_nodes_begin(sim_nodes *b, arena *a) {
  *b = (sim_nodes){.a = a, .nslot = 1};
  *vec_push(a, &b->occ) = 0;
}

sim_graph sim_nodes_graph(sim_nodes *b, u32 end) {
  assert(b->in.n == b->dur.n && b->out.n == b->dur.n && end < b->nslot);
  return (sim_graph){.n = b->dur.n,
                     .nslot = b->nslot,
                     .dur = b->dur.v,
                     .occ = b->occ.v,
                     .in = b->in.v,
                     .out = b->out.v,
                     .ref = b->ref.v,
                     .nout = 1,
                     .port_out = arena_dup(b->a, &end, sizeof end),
                     .nodes = b->dur.n,
                     .slot_clock = ZNEWN(b->a, u32, b->nslot)};
}
