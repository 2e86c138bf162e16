// nodes.c - graphs of operations in JSON: PyTorch's execution traces (1.0.1 to 1.1 with and without Chakra's names) and
// Chakra's own JSON form. They say what ran after what; PyTorch's have no times.
//
// Idea: one array of objects, whatever it is called, and a node's members by the names that versions have given them.
#include "trace/comm_words.h"
#include "trace/node_graph.h"
#include "trace/scan.h"
#include <stdlib.h>

typedef struct {
  reading *x;
  scan *s;
  arena *tmp;
  u32 process;
  node_graph graph;
} nodes;
typedef struct {
  bool has_id, host, chakra;
  i64 id, type, tid, runtime; // runtime: us; -1: not said
  sym name;
  VEC(u64) ctrl, data;
} node;

bool trace_knows_nodes(const char *start, size_t n) {
  (void)n;
  const bool graph = strstr(start, "\"workload_graph\"");
  return graph || (strstr(start, "\"schema\"") && strstr(start, "\"nodes\""));
}

static bool take_integer(nodes *k, i64 *out) {
  scan_text t;
  return scan_scalar(k->s, &t) && scan_integer(t, out);
}
static sym take_name(nodes *k) {
  scan_text t;
  if (!scan_string(k->s, &t)) return (sym){0};
  if (t.escaped) scan_plain(k->s, &t);
  return sym_ofn(k->x->c, t.v, t.n);
}
// A number or an array of them.
static void take_ids(nodes *k, void *out) {
  VEC(u64) *v = out;
  i64 id;
  if (!scan_at_array(k->s)) {
    if (take_integer(k, &id)) *vec_push(k->tmp, v) = (u64)id;
    return;
  }
  scan_array(k->s);
  while (scan_element(k->s))
    if (take_integer(k, &id)) *vec_push(k->tmp, v) = (u64)id;
}
// [{"name": "tid", "type": "uint64", "value": 1}, ..]: only what is wanted of them.
static void take_attrs(nodes *k, node *n) {
  if (!scan_at_array(k->s)) {
    scan_skip(k->s);
    return;
  }
  scan_array(k->s);
  while (scan_element(k->s)) {
    scan_text key;
    bool tid = false;
    if (!scan_object(k->s)) continue;
    while (scan_member(k->s, &key)) {
      scan_text t;
      if (scan_eq(key, "name"))
        tid = scan_string(k->s, &t) && scan_eq(t, "tid");
      else if (tid && scan_eq(key, "value"))
        take_integer(k, &n->tid);
      else
        scan_skip(k->s);
    }
  }
}

static void take_member(nodes *k, scan_text key, node *n) {
  scan_text t;
  if (scan_eq(key, "id") || scan_eq(key, "Id"))
    n->has_id = take_integer(k, &n->id);
  else if (scan_eq(key, "name") || scan_eq(key, "Name"))
    n->name = take_name(k);
  else if (scan_eq(key, "NodeType"))
    n->chakra = take_integer(k, &n->type);
  else if (scan_eq(key, "tid"))
    take_integer(k, &n->tid);
  else if (scan_eq(key, "runtime"))
    take_integer(k, &n->runtime);
  else if (scan_eq(key, "is_cpu_op"))
    n->host = scan_scalar(k->s, &t) && !scan_eq(t, "false");
  else if (scan_eq(key, "ctrl_deps") || scan_eq(key, "ctrlDeps") || scan_eq(key, "parent"))
    take_ids(k, &n->ctrl);
  else if (scan_eq(key, "data_deps") || scan_eq(key, "dataDeps"))
    take_ids(k, &n->data);
  else if (scan_eq(key, "attrs"))
    take_attrs(k, n);
  else
    scan_skip(k->s);
}

// "nccl:all_reduce" is one; record_param_comms is what PyTorch writes down of one.
static void put_comm(nodes *k, const node *n, u32 e) {
  reading *x = k->x;
  const char *name = sym_str(x->c, n->name);
  const bool named = !strncmp(name, "nccl:", 5),
             typed = n->chakra && n->type >= NODE_SEND && n->type <= NODE_COLL;
  if (!named && !typed) return;
  sym op = named ? comm_op_of(x->c, name + 5, (u32)strlen(name + 5)) : sym_of(x->c, "communication");
  if (!op.i) op = sym_of(x->c, name + 5);
  trace_add_comm(x->a, x->t, e, trace_comm_of(op));
}

static void put_node(nodes *k, const node *n) {
  reading *x = k->x;
  x->about->events++;
  if (!n->has_id || n->runtime > INT64_MAX / 1000000) {
    x->about->skipped++;
    return;
  }
  const trace_is is = n->host ? TRACE_OP : TRACE_KERNEL;
  if (!wanted(x, is)) return;
  const u32 lane = trace_lane_of(x->a, x->t, k->process, !n->host, n->host ? -1 : 0, n->tid);
  const u32 e = trace_add(x->a, x->t, is, lane, n->name.i ? n->name : sym_of(x->c, "node"), 0,
                          n->runtime < 0 ? -1 : n->runtime * 1000000);
  put_comm(k, n, e);
  node_graph_put(&k->graph, (u64)n->id, e);
  for (u32 i = 0; i < n->ctrl.n; i++) node_graph_wait(&k->graph, e, n->ctrl.v[i], false);
  for (u32 i = 0; i < n->data.n; i++) node_graph_wait(&k->graph, e, n->data.v[i], true);
}

static void take_nodes(nodes *k) {
  if (!scan_at_array(k->s)) {
    scan_skip(k->s);
    return;
  }
  scan_array(k->s);
  while (scan_element(k->s)) {
    scan_text key;
    node n = {.host = true, .tid = 0, .runtime = -1};
    if (!scan_object(k->s)) {
      k->x->about->events++, k->x->about->skipped++;
      continue;
    }
    while (scan_member(k->s, &key)) take_member(k, key, &n);
    if (scan_is(k->s) == SCAN_OK) put_node(k, &n);
  }
}

bool trace_read_nodes(reading *x) {
  nodes k = {.x = x, .tmp = arena_new(), .process = x->t->processes.n};
  k.graph.tmp = k.tmp, k.s = scan_new(k.tmp, x->in);
  scan_text key;
  trace_process p = {.rank = x->rank, .pid = -1};
  bool found = false;
  scan_mark(k.s);
  if (scan_object(k.s))
    while (scan_member(k.s, &key)) {
      if (scan_eq(key, "nodes") || scan_eq(key, "workload_graph"))
        found = true, take_nodes(&k);
      else if (scan_eq(key, "pid"))
        take_integer(&k, &p.pid);
      else
        scan_skip(k.s);
    }
  *vec_push(x->a, &x->t->processes) = p;
  node_graph_finish(&k.graph, x->a, x->t);
  reading_ends(x, k.s, found, "there is no array of nodes");
  arena_free(k.tmp);
  return found;
}
