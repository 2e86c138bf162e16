// node_graph.c - nodes of a file by their ids, and edges of what they wait for.
#include "trace/node_graph.h"

void node_graph_put(node_graph *g, u64 id, u32 event) {
  hmap_add(g->tmp, &g->by_id, hash_u64(id, 1), g->id.n);
  *vec_push(g->tmp, &g->id) = id, *vec_push(g->tmp, &g->event) = event;
}

void node_graph_wait(node_graph *g, u32 event, u64 on, bool data) {
  *vec_push(g->tmp, &g->waits) = (node_wait){event, on, data};
}

static u32 event_of(const node_graph *g, u64 id) {
  for (u32 it = 0, i; hmap_next(&g->by_id, hash_u64(id, 1), &it, &i);)
    if (g->id.v[i] == id) return g->event.v[i];
  return TRACE_NONE;
}

void node_graph_finish(const node_graph *g, arena *a, trace *t) {
  t->graph = true;
  for (u32 i = 0; i < g->waits.n; i++) {
    const node_wait *w = &g->waits.v[i];
    *vec_push(a, &t->edges) = (trace_edge){w->event, event_of(g, w->on), w->data};
  }
}
