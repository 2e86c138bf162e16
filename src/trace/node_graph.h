// node_graph.h - files that are a graph of nodes (Chakra's, and PyTorch's execution traces): which event a node became,
// and what it waits for, which may come later in the file. Private to trace/.
#ifndef HEDDLE_TRACE_NODE_GRAPH_H
#define HEDDLE_TRACE_NODE_GRAPH_H
#include "trace/internal.h"

enum {
  NODE_LOAD = 2,
  NODE_STORE,
  NODE_COMP,
  NODE_SEND,
  NODE_RECV,
  NODE_COLL
}; // Chakra's et_def.proto, NodeType

typedef struct {
  u32 event;
  u64 on; // id of a node
  bool data;
} node_wait;
typedef struct {
  arena *tmp;
  hmap by_id;
  VEC(u64) id;
  VEC(u32) event;
  VEC(node_wait) waits;
} node_graph;
void node_graph_put(node_graph *g, u64 id, u32 event); // the node became this event
void node_graph_wait(node_graph *g, u32 event, u64 on, bool data);
void node_graph_finish(const node_graph *g, arena *a, trace *t); // makes edges; they are all that waits
#endif
